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

// DefaultVLs is how many virtual lanes the engine takes at most when nobody
// says: what most switches have.
const DefaultVLs = 8

const (
	// searchWork bounds the turns that the searches of one layer look at.
	searchWork = 1 << 26
	// trialWork bounds the entries and turns that all trials together look at, as far
	// as minTrials allows, and maxTrials bounds the trials.
	trialWork = 1 << 22
	minTrials = 2
	maxTrials = 8
	// loadSlack is how much greater the greatest load may become for one lane less:
	// one part in so many.
	loadSlack = 10
)

// Engine is the layered engine.
type Engine struct{}

// Name is "layered".
func (Engine) Name() string { return "layered" }

// Guarantee is Reachable and NoCreditLoop. Paths between CA and router ports are
// shortest ones as far as the virtual lanes suffice; a note says when they do not.
func (Engine) Guarantee() lft.Guarantee { return lft.Reachable | lft.NoCreditLoop }

// Route takes what lft.Minhop takes, O(LIDs x channels x hops) at most to place the paths
// again, for each layer O(switches x LIDs), and the searches for circles. It makes all tables
// anew, whatever opt.Previous is.
func (e Engine) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	opt.Previous = nil // its turns and lanes are not ours
	limit := opt.VLs
	if limit == 0 {
		limit = DefaultVLs
	}
	r, err := lft.Minhop{}.Route(ctx, f, opt)
	if err != nil {
		return nil, e.asOwn(err)
	}
	r.Engine = e.Name()
	t := newTurns(f)
	p := &packer{paths: newPaths(t, r.Tables)}
	p.follow()
	order, err := p.chooseOrder(ctx, opt.Roots)
	if err != nil {
		return nil, err
	}
	r.Order = order.Rank
	p.updn = newUpDown(t, order.Order)
	p.opt = opt
	p.opt.Roots = order.roots(opt.Roots)
	x, err := p.pathsAndLayers(ctx, order, limit)
	if err != nil {
		return nil, e.asOwn(err)
	}
	if err := p.finish(ctx, x, r); err != nil {
		return nil, e.asOwn(err)
	}
	if x.layers == 1 {
		return r, nil
	}
	r.PathSLs = p.levels(ctx, x)
	if r.SL2VL, err = lft.IdentitySL2VL(f, vlCount(max(x.layers, opt.VLs))); err != nil {
		return nil, &lft.DomainError{Engine: e.Name(), Reason: err.Error()}
	}
	return r, ctx.Err()
}

// asOwn has an error of another engine's domain name this one.
func (e Engine) asOwn(err error) error {
	var domain *lft.DomainError
	if errors.As(err, &domain) {
		return &lft.DomainError{Engine: e.Name(), Reason: domain.Reason}
	}
	return err
}

// vlCount is the least number of data VLs that a port can have and that is not
// less than n.
func vlCount(n int) int {
	for _, v := range lft.VLCounts {
		if v >= n {
			return v
		}
	}
	return n
}

// finish finds layers for what has none yet: the paths of management, and those that
// are to be up*/down* paths.
func (p *packer) finish(ctx context.Context, x *packing, r *lft.Routing) error {
	for _, l := range x.final {
		l.work = searchWork
	}
	replace := func(lids []fabric.LID) error {
		if len(lids) == 0 {
			return nil
		}
		instead, err := p.upDown(ctx)
		if err != nil {
			return err
		}
		for _, lid := range lids {
			p.replace(instead, lid)
		}
		return nil
	}
	var longer []fabric.LID // of CA and router ports
	if x.left > 0 {
		longer = p.homeless(x)
		if err := replace(longer); err != nil {
			return err
		}
	}
	more := p.manage(ctx, x, p.jobs)
	if err := replace(more); err != nil {
		return err
	}
	if err := replace(p.manage(ctx, x, p.own)); err != nil {
		return err
	}
	p.copyAlike()
	longer = append(longer, more...)
	note := fmt.Sprintf("%d virtual lanes", x.layers)
	if x.layers == 1 {
		note = "1 virtual lane"
	}
	if n := len(longer); n > 0 {
		note += fmt.Sprintf("; they do not suffice for shortest paths to %d of %d LIDs, which have up*/down* paths instead", n, p.numLIDs())
	}
	r.Notes = append(r.Notes, note)
	return ctx.Err()
}

// pathsAndLayers makes the paths between hosts and packs them. Where there is time it begins
// with aligned paths, and if these take several layers, once more with those of the tables; of
// the two that with fewer layers is taken, and the first of equal ones.
func (p *packer) pathsAndLayers(ctx context.Context, o *order, limit int) (*packing, error) {
	try := func(aligned bool) (*packing, error) {
		load, err := p.place(ctx, o, limit, aligned)
		if err != nil {
			return nil, err
		}
		return p.fewest(ctx, limit, load), ctx.Err()
	}
	if p.passes() < maxPasses || p.trials() < maxTrials {
		return try(false)
	}
	var spread, aligned snapshot
	spread.save(p.paths)
	x, err := try(true)
	if err != nil || x.layers == 1 && x.left == 0 {
		return x, err
	}
	aligned.save(p.paths)
	spread.restore(p.paths)
	y, err := try(false)
	if err != nil || y.better(x) {
		return y, err
	}
	aligned.restore(p.paths)
	return x, nil
}

// fewest packs all paths into as few layers as it finds a way to.
func (p *packer) fewest(ctx context.Context, limit int, load []uint64) *packing {
	if x := p.one(ctx); x != nil {
		return x
	}
	best := p.pack(ctx, trial{ordered: true}, limit, 0)
	if best.layers <= 1 && best.left == 0 {
		return best
	}
	most := slices.Max(append([]uint64{0}, load...))
	reroute := func(x *packing) (*rerouter, bool) {
		r := &rerouter{packer: p, w: p.newWalker(), x: x, load: slices.Clone(load)}
		left := r.run(ctx)
		return r, left == 0
	}
	if best.left > 0 {
		r, ok := reroute(best)
		load = r.load
		if !ok {
			return best
		}
		best.left = 0
	}
	for best.layers > 1 && ctx.Err() == nil {
		x := p.best(ctx, best.layers-1)
		if x.left == 0 {
			best = x
			continue
		}
		r, ok := reroute(x)
		if !ok || slices.Max(r.load) > most+most/loadSlack {
			r.undo()
			break
		}
		x.left = 0
		best, load = x, r.load
	}
	return best
}

// one is a single layer with the turns of the order, if all paths from switches with
// hosts make no others, else nil.
func (p *packer) one(ctx context.Context) *packing {
	x := &packing{set: make([]uint16, p.count()), layers: 1}
	l := newLayer(p.turns, x.set, 0, p.updn.order, searchWork)
	p.updn.seedLayer(l)
	x.final = []*layer{l}
	var lost atomic.Bool
	forEach(ctx, 0, len(p.jobs), p.newWalker, func(w *walker, i int) {
		if lost.Load() {
			return
		}
		w.load(&p.jobs[i], x.set, 1)
		for k := range p.jobs[i].lids {
			if w.lacks(k) {
				lost.Store(true)
			}
		}
	})
	if lost.Load() {
		return nil
	}
	return x
}

// trials is how many ways to pack there is time for.
func (p *packer) trials() int {
	n := trialWork / (p.count() + len(p.all)*len(p.fixed))
	return min(max(n, minTrials), maxTrials)
}

// best packs into so many layers in several ways.
func (p *packer) best(ctx context.Context, limit int) *packing {
	n := p.trials()
	tries := make([]*packing, n)
	none := func() struct{} { return struct{}{} }
	forEach(ctx, 0, n, none, func(_ struct{}, i int) {
		tries[i] = p.pack(ctx, trial{ordered: i%2 == 0, seed: uint64(i / 2)}, limit, 1)
	})
	best := tries[0]
	for _, x := range tries {
		if x != nil && x.better(best) {
			best = x
		}
	}
	return best
}
