package main

import (
	"context"
	"fmt"

	"github.com/ibweave/ibweave/audit/experiment"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/updown"
)

// choices lists how switches choose in the routings that are compared; nil where they do not.
func (in *simulation) choices() []string {
	switch {
	case in.adaptive == "all":
		return []string{experiment.Static, experiment.Free, experiment.HBF}
	case in.adaptive != "":
		return []string{experiment.Static, in.adaptive}
	case in.FAR != "":
		return []string{experiment.Static, experiment.AsRead}
	}
	return nil
}

// routed returns true if sim has to make the tables: with -t FILE and without tables.
func (in *simulation) routed(args []string) bool {
	return len(args) == 0 && in.Topology != "" && !in.HasTables() &&
		(in.engine != "" || in.engines != nil || in.adaptive != "" || in.vls != nil || in.jobTraffic.fit)
}

// routeSimulated makes the tables of -t: with an engine, with each of several, or with the one that
// suits the fabric best, and on as many VLs as are asked for. An engine that cannot do the fabric is
// left out with a line on standard error, as long as another one can.
func (a *app) routeSimulated(ctx context.Context, in *simulation) ([]experiment.Routing, error) {
	f, err := a.readTopology(in.Topology, in.Lenient)
	if err != nil {
		return nil, err
	}
	engines := in.engines
	if engines == nil {
		engines = []string{in.engine}
	}
	fits := []demandFunc{nil} // with tables for the jobs, too
	if in.jobTraffic.fit {
		file, err := a.readSimulatedJobs(in)
		if err != nil {
			return nil, err
		}
		fits = append(fits, demandOf(a.fitting(file)))
	}
	var list []experiment.Routing
	var refused error
	for _, engine := range engines {
		for _, vls := range in.lanes() {
			for _, fit := range fits {
				r, err := a.routeBy(ctx, f, in.Topology, engine, compile.Options{Route: lft.Options{VLs: vls}, Demand: fit})
				if cli.Is[*lft.DomainError](err) && len(engines) > 1 {
					fmt.Fprintf(a.stderr, "ibweave: left out: %v\n", err)
					refused = err
					break
				}
				if err != nil {
					return nil, err
				}
				x := experiment.New(r.Routing, vls, in.spread(), nil)
				if x.Fitted = fit != nil; in.engines != nil || len(fits) > 1 {
					x.Engine = r.Routing.Engine
				}
				if !x.Fitted || a.isFitted(r, x.Name()) {
					list = append(list, x)
				}
			}
		}
	}
	if len(list) == 0 {
		return nil, refused
	}
	return list, nil
}

// divideLanes has the tables that were read on as many VLs as --vls says.
func (in *simulation) divideLanes(r *lft.Routing) (list []experiment.Routing, err error) {
	for _, vls := range in.lanes() {
		lanes := r
		if vls > 0 {
			if lanes, err = experiment.WithLanes(r, vls); err != nil {
				return nil, wrong("vls", "%w", err)
			}
		}
		list = append(list, experiment.New(lanes, vls, in.spread(), nil))
	}
	return list, nil
}

// onlyOnce refuses routings of one name.
func (in *simulation) onlyOnce(list []experiment.Routing) error {
	flag, seen := "vls", make(map[string]bool)
	if in.engines != nil {
		flag = "engines"
	}
	for i := range list {
		name := list[i].Name()
		if scheme := list[i].Multicast; seen[name] && scheme != "" { // and the routing without it is once in the list
			return wrong("mcast", "%s twice: want each once", scheme)
		}
		if seen[name] {
			return wrong(flag, "%s twice: want each once", name)
		}
		seen[name] = true
	}
	return nil
}

// spread is --sls, below 0 where it is not given.
func (in *simulation) spread() int {
	if in.given("sls") {
		return in.Setup.Traffic.SLs
	}
	return -1
}

// lanes is --vls, and 0 where it is not given.
func (in *simulation) lanes() []int {
	if in.vls == nil {
		return []int{0}
	}
	return in.vls
}

// routerSPAM is the only --router.
const routerSPAM = "spam"

// checkRouter returns an error if --router does not fit other flags.
func (in *simulation) checkRouter(args []string) error {
	switch {
	case in.router != routerSPAM:
		return wrong("router", "%q: want %s", in.router, routerSPAM)
	case len(args) > 0 || in.Topology == "" || in.HasTables() || in.SL2VL != "" || in.PathSLs != "" || in.MFTs != "" || in.routed(args):
		return wrong("router", "takes the place of tables and engines: want -t FILE alone")
	case in.jobTraffic.file != "":
		return wrong("router", "is for --load and --burst: jobs go by tables")
	case !in.given("copying"):
		in.Config.Copying = sim.Wormhole
	case in.Config.Copying != sim.Wormhole && in.Config.Copying != sim.GreedyWormhole:
		return wrong("router", "simulates worms: want --copying wormhole, its default, or greedy-wormhole, which can deadlock")
	}
	return nil
}

// routeWorms makes the network of SPAM's routers on a topology, with the groups that messages
// may go to.
func (a *app) routeWorms(ctx context.Context, in *simulation) (routings []experiment.Routing, trees []mft.Tree, err error) {
	f, err := a.readTopology(in.Topology, in.Lenient)
	if err != nil {
		return nil, nil, err
	}
	// The engine's tables are not used, but the LIDs that it has given.
	r, err := a.routeBy(ctx, f, in.Topology, in.router, compile.Options{})
	if err != nil {
		return nil, nil, err
	}
	f = r.Routing.Fabric
	if in.Groups != "" {
		if trees, err = a.readReceivers(in, f); err != nil {
			return nil, nil, err
		}
	}
	if len(trees) > int(mft.MaxMLID-mft.MinMLID)+1 {
		return nil, nil, inputf("%s: %d groups: want at most %d, one for each MLID", in.Groups, len(trees), mft.MaxMLID-mft.MinMLID+1)
	}
	for i := range trees {
		trees[i].MLID = mft.MinMLID + fabric.LID(i)
	}
	roots, err := a.switches(f, "--roots", in.roots)
	if err != nil {
		return nil, nil, err
	}
	if len(roots) > 1 {
		return nil, nil, wrong("roots", "%d switches: a spanning tree has one root", len(roots))
	}
	roots = append(roots, updown.Centre(f))
	tree := updown.BreadthFirst
	if in.tree == "dfs" {
		tree = updown.DepthFirst
	}
	routers, err := experiment.NewSPAM(f, trees, roots[0], tree)
	if err != nil {
		return nil, nil, inputf("%s: --router %s: %w", in.Topology, in.router, err)
	}
	return []experiment.Routing{experiment.New(r.Routing, 0, in.spread(), routers)}, trees, nil
}
