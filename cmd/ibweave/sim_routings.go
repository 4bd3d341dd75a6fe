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
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/updown"
)

// readNetwork reads the tables, or makes them, and reads the groups.
func (a *app) readNetwork(ctx context.Context, in *simulation, args []string) (routings []experiment.Routing, trees []mft.Tree, err error) {
	switch {
	case in.router != "":
		routings, trees, err = a.routeWorms(ctx, in)
	case in.routed(args):
		routings, err = a.routeSimulated(ctx, in)
	default:
		var r *lft.Routing
		if r, err = a.readSimulated(in, args); err == nil {
			routings, err = in.divideLanes(r)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if err := in.onlyOnce(routings); err != nil {
		return nil, nil, err
	}
	f := routings[0].Net.Fabric
	switch {
	case in.Setup.Traffic.Multicast > 0 && in.Groups == "":
		return nil, nil, wrong("multicast", "needs groups: -g FILE, or a directory that was compiled with groups")
	case in.Groups == "" && in.MFTs == "", in.router != "":
	case in.Setup.Traffic.Repeat:
		trees, err = a.readReceivers(in, f)
	case in.MFTs == "":
		return nil, nil, inputf("%s has groups, and there are no multicast tables: name them, --mfts FILE, or send by --repeat", in.Groups)
	default:
		if err = a.reader(&in.audit).Multicast(); err == nil {
			m := in.State.Multicast
			trees = m.Trees
			for i := range routings {
				routings[i].Net.Multicast = m
			}
		}
	}
	return routings, trees, err
}

// readSimulated reads the unicast tables and lanes.
func (a *app) readSimulated(in *simulation, args []string) (*lft.Routing, error) {
	in.TakeAdaptive = in.adaptive != "" || in.FAR != ""
	groups := in.Groups
	in.Groups = ""
	if err := a.resolveAudit("sim", &in.audit, args); err != nil {
		return nil, err
	}
	in.Certificate = ""
	if groups != "" {
		in.Groups = groups
	}
	r, err := a.readRouting(&in.audit)
	if err != nil {
		return nil, err
	}
	r.Engine = "--adaptive"
	return r, nil
}

// routeSimulated makes the tables of -t: with one engine, with each
// of several, or with the one that suits the fabric best, and with
// each number of VLs. If one of several engines does not support
// the fabric, a line on standard error says that it is left out.
func (a *app) routeSimulated(ctx context.Context, in *simulation) ([]experiment.Routing, error) {
	f, err := a.readTopology(in.Topology, in.Lenient)
	if err != nil {
		return nil, err
	}
	engines := in.engines
	if engines == nil {
		engines = []string{in.engine}
	}
	fits := []demandFunc{nil} // nil for any traffic
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

// divideLanes returns the tables that were read, with each number of VLs of --vls.
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

// routeWorms makes the network of SPAM's routers on a topology, and its groups.
func (a *app) routeWorms(ctx context.Context, in *simulation) (routings []experiment.Routing, trees []mft.Tree, err error) {
	f, err := a.readTopology(in.Topology, in.Lenient)
	if err != nil {
		return nil, nil, err
	}
	// Only the LIDs that the engine gives are used, not its tables.
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

// readReceivers reads groups; their MLIDs are not used.
func (a *app) readReceivers(in *simulation, f *fabric.Fabric) ([]mft.Tree, error) {
	data, err := a.reader(&in.audit).ReadFile(in.Groups)
	if err != nil {
		return nil, err
	}
	groups, problems, err := open.ReadGroups(in.Groups, data, f, dump.Options{Lenient: in.Lenient})
	a.dumpProblems(problems, in.Lenient)
	if err != nil {
		return nil, err
	}
	var trees []mft.Tree
	for i := range groups {
		g := &groups[i]
		trees = append(trees, mft.Tree{Group: i, Name: g.Name, Senders: g.Senders, Receivers: g.Receivers, SL: g.SL})
	}
	return trees, nil
}
