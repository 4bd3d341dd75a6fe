// Package layered routes any fabric along shortest paths, spread over the whole
// fabric as lft.Minhop does, and keeps them free of credit loops by virtual
// lanes: a path has a service level, and with it one lane all the way, and the
// channel dependency graph of each lane has no cycle. That is the idea of LASH
// (Skeie, Lysne and Theiss, Layered Shortest Path (LASH) Routing in Irregular
// System Area Networks, IPDPS 2002) and DFSSSP (Domke, Hoefler and Nagel,
// Deadlock-Free Oblivious Routing for Arbitrary Topologies, IPDPS 2011). It makes no
// promise to other modules.
package layered

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// DefaultVLs is how many virtual lanes the engine takes at most by default: what
// most switches have.
const DefaultVLs = 8

const (
	// searchWork bounds the turns that the searches of one layer look at.
	searchWork = 1 << 26
	// trialWork bounds the entries and turns that all trials together look at. There are
	// minTrials trials at least, and maxTrials at most.
	trialWork = 1 << 22
	minTrials = 2
	maxTrials = 8
	// loadSlack is how much the greatest load may grow to save a lane: by 1/loadSlack.
	loadSlack = 10
)

// Engine is the layered engine.
type Engine struct{}

// Name is "layered".
func (Engine) Name() string { return "layered" }

// Guarantee is Reachable and NoCreditLoop. Paths between CA and router ports are
// shortest paths if the virtual lanes suffice; a note says when they do not.
func (Engine) Guarantee() lft.Guarantee { return lft.Reachable | lft.NoCreditLoop }

// Route takes the time of lft.Minhop, O(LIDs x channels x hops) at most to place the paths
// again, O(switches x LIDs) for each layer, and the searches for cycles. It routes from
// scratch, whatever opt.Previous is.
func (e Engine) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	opt.Previous = nil // its turns and lanes are not ours
	limit := opt.VLs
	if limit == 0 {
		limit = DefaultVLs
	}
	r, err := lft.Minhop{}.Route(ctx, f, opt)
	if err != nil {
		return nil, e.renameError(err)
	}
	r.Engine = e.Name()
	t := newTurns(f)
	p := &assigner{paths: newPaths(t, r.Tables)}
	p.listManagementJobs()
	order, err := p.chooseOrder(ctx, opt.Roots)
	if err != nil {
		return nil, err
	}
	r.Order = order.Rank
	p.updn = newUpDown(t, order.Order)
	p.opt = opt
	p.opt.Roots = order.rootsFor(opt.Roots)
	x, err := p.choosePathsAndLayers(ctx, order, limit)
	if err != nil {
		return nil, e.renameError(err)
	}
	if err := p.finishPaths(ctx, x, r); err != nil {
		return nil, e.renameError(err)
	}
	if len(x.layers) == 1 {
		return r, nil
	}
	r.PathSLs = p.makePathSLs(ctx, x)
	if r.SL2VL, err = lft.IdentitySL2VL(f, lft.LeastVLCount(max(len(x.layers), opt.VLs))); err != nil {
		return nil, &lft.DomainError{Engine: e.Name(), Reason: err.Error()}
	}
	return r, ctx.Err()
}

// renameError puts this engine's name into a *lft.DomainError of another engine.
func (e Engine) renameError(err error) error {
	var domain *lft.DomainError
	if errors.As(err, &domain) {
		return &lft.DomainError{Engine: e.Name(), Reason: domain.Reason}
	}
	return err
}

// finishPaths finds layers for the paths that have none yet: management paths, and those
// that become up*/down* paths.
func (p *assigner) finishPaths(ctx context.Context, x *assignment, r *lft.Routing) error {
	for _, l := range x.layers {
		l.work = searchWork
	}
	replace := func(lids []fabric.LID) error {
		if len(lids) == 0 {
			return nil
		}
		tables, err := p.upDownTables(ctx)
		if err != nil {
			return err
		}
		for _, lid := range lids {
			p.replacePaths(tables, lid)
		}
		return nil
	}
	var longer []fabric.LID // of CA and router ports
	if x.unassigned > 0 {
		longer = p.listUnassigned(x)
		if err := replace(longer); err != nil {
			return err
		}
	}
	more := p.assignManagementPaths(ctx, x, p.jobs)
	if err := replace(more); err != nil {
		return err
	}
	if err := replace(p.assignManagementPaths(ctx, x, p.management)); err != nil {
		return err
	}
	p.copyPaths()
	longer = append(longer, more...)
	note := fmt.Sprintf("%d virtual lanes", len(x.layers))
	if len(x.layers) == 1 {
		note = "1 virtual lane"
	}
	if n := len(longer); n > 0 {
		note += fmt.Sprintf("; they do not suffice for shortest paths to %d of %d LIDs, which have up*/down* paths instead", n, p.numLIDs())
	}
	r.Notes = append(r.Notes, note)
	return ctx.Err()
}

// choosePathsAndLayers chooses the paths between hosts and assigns layers to them. On a
// fabric small enough it begins with aligned paths. If these take several layers, it tries
// again with the paths of the tables, and takes the assignment with fewer layers, of equal
// ones the first.
func (p *assigner) choosePathsAndLayers(ctx context.Context, o *order, limit int) (*assignment, error) {
	try := func(aligned bool) (*assignment, error) {
		load, err := p.choosePaths(ctx, o, limit, aligned)
		if err != nil {
			return nil, err
		}
		return p.assignFewest(ctx, limit, load), ctx.Err()
	}
	if p.countPasses() < maxPasses || p.countTrials() < maxTrials {
		return try(false)
	}
	spread := p.tables.Clone()
	x, err := try(true)
	if err != nil || len(x.layers) == 1 && x.unassigned == 0 {
		return x, err
	}
	aligned := p.tables.Clone()
	*p.tables = *spread
	y, err := try(false)
	if err != nil || y.isBetter(x) {
		return y, err
	}
	*p.tables = *aligned
	return x, nil
}

// assignFewest assigns all paths to as few layers as it can.
func (p *assigner) assignFewest(ctx context.Context, limit int, load []uint64) *assignment {
	if x := p.assignOne(ctx); x != nil {
		return x
	}
	best := p.assignLayers(ctx, trial{ordered: true}, limit, 0)
	if len(best.layers) <= 1 && best.unassigned == 0 {
		return best
	}
	most := slices.Max(append([]uint64{0}, load...))
	reroute := func(x *assignment) (*rerouter, bool) {
		r := &rerouter{assigner: p, w: p.newWalker(), x: x, load: slices.Clone(load)}
		left := r.rerouteLIDs(ctx)
		return r, left == 0
	}
	if best.unassigned > 0 {
		r, ok := reroute(best)
		load = r.load
		if !ok {
			return best
		}
		best.unassigned = 0
	}
	for len(best.layers) > 1 && ctx.Err() == nil {
		x := p.assignBest(ctx, len(best.layers)-1)
		if x.unassigned == 0 {
			best = x
			continue
		}
		r, ok := reroute(x)
		if !ok || slices.Max(r.load) > most+most/loadSlack {
			r.restoreAll()
			break
		}
		x.unassigned = 0
		best, load = x, r.load
	}
	return best
}

// assignOne assigns a single layer with the turns of the order. It returns nil if a path
// from a switch with hosts makes another turn.
func (p *assigner) assignOne(ctx context.Context) *assignment {
	x := &assignment{set: make([]uint16, p.countTurns())}
	l := newLayer(p.turns, x.set, 0, p.updn.order, searchWork)
	p.updn.seedLayer(l)
	x.layers = []*layer{l}
	var lost atomic.Bool
	forEach(ctx, 0, len(p.jobs), p.newWalker, func(w *walker, i int) {
		if lost.Load() {
			return
		}
		w.loadJob(&p.jobs[i], x.set, 1)
		for k := range p.jobs[i].lids {
			if w.hostMissesLayer(k) {
				lost.Store(true)
			}
		}
	})
	if lost.Load() {
		return nil
	}
	return x
}

// countTrials is how many trials there is time for.
func (p *assigner) countTrials() int {
	n := trialWork / (p.countTurns() + len(p.all)*len(p.upDownOnly))
	return min(max(n, minTrials), maxTrials)
}

// assignBest makes several trials with at most limit layers, and takes the best.
func (p *assigner) assignBest(ctx context.Context, limit int) *assignment {
	n := p.countTrials()
	tries := make([]*assignment, n)
	none := func() struct{} { return struct{}{} }
	forEach(ctx, 0, n, none, func(_ struct{}, i int) {
		tries[i] = p.assignLayers(ctx, trial{ordered: i%2 == 0, seed: uint64(i / 2)}, limit, 1)
	})
	best := tries[0]
	for _, x := range tries {
		if x != nil && x.isBetter(best) {
			best = x
		}
	}
	return best
}
