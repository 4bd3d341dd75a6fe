// Package layered routes any fabric along shortest paths, spread over the whole fabric as by
// lft.Minhop, and avoids credit loops by virtual lanes: each path has a service level, and so
// one lane all the way, and the channel dependency graph of each lane has no cycle. The idea
// is that of LASH (Skeie, Lysne and Theiss, Layered Shortest Path (LASH) Routing in Irregular
// System Area Networks, IPDPS 2002) and DFSSSP (Domke, Hoefler and Nagel, Deadlock-Free
// Oblivious Routing for Arbitrary Topologies, IPDPS 2011). It makes no promise to other
// modules.
package layered

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
)

// DefaultVLs is the default for the greatest number of virtual lanes: what most switches have.
const DefaultVLs = 8

const (
	// searchWork bounds how many turns the searches of one layer look at.
	searchWork = 1 << 26
	// smallFabric bounds the entries and turns of fabrics on which aligned paths are tried.
	smallFabric = 1 << 19
	// alignedTries is how many times aligned paths are improved.
	alignedTries = 6
	// To save a lane, the greatest load may grow by 1/loadSlack.
	loadSlack = 10
)

// Engine is the layered engine.
type Engine struct{}

// Name is "layered".
func (Engine) Name() string { return "layered" }

// Guarantee is Reachable and NoCreditLoop. Paths between CA and router ports are shortest
// paths if there are enough virtual lanes; else a note says so.
func (Engine) Guarantee() lft.Guarantee { return lft.Reachable | lft.NoCreditLoop }

// Route returns the paths of updn if these are shortest paths between all hosts and the
// greatest load is at most 1/loadSlack above its lower bound, or above that of Minhop: they
// need only one lane. Otherwise it takes the paths of lft.Minhop and assigns layers.
//
// For each layer it takes O(switches x LIDs) and the searches for cycles, besides the time of
// these engines. With opt.Previous, keep says which tables stay.
func (e Engine) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	if opt.Previous != nil {
		return e.keep(ctx, f, opt)
	}
	limit := cmp.Or(opt.VLs, DefaultVLs)
	order, err := updown.OrderFor(ctx, f, &opt)
	if err != nil {
		return nil, err
	}
	t := newTurns(f)
	p := &assigner{paths: newPaths(t), balanceUpDown: sync.OnceValues(func() (*lft.Tables, error) {
		return lft.Balance(ctx, f, updown.NextHops(e, f, order))
	})}
	shortest, err := order.HasShortest(ctx, f)
	if err != nil {
		return nil, err
	}
	var updnLoad uint64
	one := &lft.Routing{Engine: e.Name(), Fabric: f, Order: order.Rank, Notes: []string{describeLanes(1)}}
	if shortest {
		if one.Tables, err = p.balanceUpDown(); err != nil {
			return nil, err
		}
		p.tables = one.Tables
		updnLoad = p.greatestLoad()
		if !isBusier(updnLoad, lft.BoundLoad(f)) {
			return one, nil
		}
	}
	r, err := lft.Minhop{LoadsOnly: true}.Route(ctx, f, opt)
	if err != nil {
		return nil, e.renameError(err)
	}
	r.Engine, r.Order = e.Name(), order.Rank
	p.tables = r.Tables
	if shortest && (limit == 1 || !isBusier(updnLoad, p.greatestLoad())) {
		return one, nil
	}
	p.listManagementJobs()
	p.updn = newUpDown(t, order.Rank)
	x, err := p.choosePaths(ctx, limit)
	if err != nil {
		return nil, e.renameError(err)
	}
	if err := p.finishPaths(ctx, x, r); err != nil {
		return nil, e.renameError(err)
	}
	// Paths that had to change for their layers may have greater loads than those of updn.
	if load := p.greatestLoad(); shortest && (load > updnLoad || len(x.layers) > 1 && load == updnLoad) {
		return one, nil
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

// isBusier returns true if a load is more than 1/loadSlack above another.
func isBusier(load, other uint64) bool { return load > other+other/loadSlack }

// describeLanes returns a note with the number of lanes.
func describeLanes(n int) string {
	if n == 1 {
		return "1 virtual lane"
	}
	return fmt.Sprintf("%d virtual lanes", n)
}

// renameError puts this engine's name into another engine's *lft.DomainError.
func (e Engine) renameError(err error) error {
	if domain, ok := errors.AsType[*lft.DomainError](err); ok {
		return &lft.DomainError{Engine: e.Name(), Reason: domain.Reason}
	}
	return err
}

// finishPaths finds layers for the paths without one: management paths, and paths that it
// replaces by up*/down* paths.
func (p *assigner) finishPaths(ctx context.Context, x *assignment, r *lft.Routing) error {
	for _, l := range x.layers {
		l.work = searchWork
	}
	replace := func(lids []fabric.LID) error {
		if len(lids) == 0 {
			return nil
		}
		t, err := p.balanceUpDown()
		if err != nil {
			return err
		}
		for _, lid := range lids { // the first layer has the up*/down* paths of t
			for s := range fabric.NodeID(len(p.all)) {
				p.tables.Row(s)[lid] = t.Row(s)[lid]
			}
			p.upDownOnly[lid] = true
		}
		return nil
	}
	var longer []fabric.LID // to CA and router ports, with paths that became longer
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
	note := describeLanes(len(x.layers))
	if n := len(longer); n > 0 {
		note += fmt.Sprintf("; they do not suffice for shortest paths to %d of %d LIDs, which have up*/down* paths instead", n, p.numLIDs())
	}
	r.Notes = append(r.Notes, note)
	return ctx.Err()
}

// choosePaths assigns the paths of the tables to layers. If that takes several and the fabric
// is small, it also tries paths that it improves step by step from aligned ones. It takes the
// paths with the fewest layers, among equal ones those with the smallest greatest load.
func (p *assigner) choosePaths(ctx context.Context, limit int) (*assignment, error) {
	best := p.assignFewest(ctx, limit, p.countLoads())
	if len(best.layers) <= 1 || p.countTurns()+len(p.all)*len(p.upDownOnly) > smallFabric {
		return best, ctx.Err()
	}
	tables, load := p.tables.Clone(), p.greatestLoad()
	next := p.alignPaths()
	for range alignedTries {
		var err error
		next, err = lft.Improve(ctx, p.f, next, func() lft.ListNextHops { return lft.ShortestNextHops(p.f) })
		if err != nil {
			return nil, err
		}
		*p.tables = *next.Clone()
		x := p.assignFewest(ctx, limit, p.countLoads())
		if y := p.greatestLoad(); x.isBetter(best) || !best.isBetter(x) && y < load {
			best, tables, load = x, p.tables.Clone(), y
		}
	}
	*p.tables = *tables
	return best, ctx.Err()
}

// alignPaths makes tables in which each switch sends a LID by its first channel that leads
// nearer. On a torus with ports numbered dimension by dimension, paths then go along one
// dimension after the other, which takes few turns.
func (p *paths) alignPaths() *lft.Tables {
	tables := p.tables.Clone()
	for i := range p.jobs {
		dist := p.dist.To(p.jobs[i].t)
		for _, s := range p.all {
			for c := p.first[s]; c < p.first[s+1]; c++ {
				if dist[p.to[c]] < dist[s] {
					for _, lid := range p.jobs[i].lids {
						tables.Row(s)[lid] = p.port[c]
					}
					break
				}
			}
		}
	}
	return tables
}

// assignFewest assigns all paths to as few layers as it can. It saves a layer only if ports
// then need fewer lanes.
func (p *assigner) assignFewest(ctx context.Context, limit int, load []uint64) *assignment {
	best := p.assignLayers(ctx, limit)
	most := slices.Max(append([]uint64{0}, load...))
	if best.unassigned > 0 && !p.reroute(ctx, best, load) {
		return best
	}
	tables := p.tables.Clone()
	for x := best; len(x.layers) > 1 && ctx.Err() == nil; {
		x = p.assignLayers(ctx, len(x.layers)-1)
		if x.unassigned > 0 && (!p.reroute(ctx, x, load) || slices.Max(load) > most+most/loadSlack) {
			break
		}
		if x.isBetter(best) {
			best, tables = x, p.tables.Clone()
		}
	}
	*p.tables = *tables
	return best
}
