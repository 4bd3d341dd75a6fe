package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/sim"
)

// The names of routings.
const (
	routedStatic = "static"
	routedFree   = "free"
	routedHBF    = "hbf"
	routedAsRead = "far" // as a file says
)

// simRouting is a routing that points are simulated with. Where there is one only, its parts have no
// names.
type simRouting struct {
	engine string // of --engines and --fit
	fitted bool   // to the jobs, by --fit
	vls    int    // of --vls; 0 for those of the tables
	choice string // static, or how switches choose
	sls    int    // that messages are spread over, as Traffic.SLs
	mcast  string // scheme of --mcast, "" for unicast
	net    sim.Network
	routes *lft.Routing
	router sim.Router // in place of tables; nil for tables
}

// name is what tells it from the others, "" where there is no other.
func (r *simRouting) name() string {
	var parts []string
	switch {
	case r.fitted:
		parts = append(parts, fittedName(r.engine))
	case r.engine != "":
		parts = append(parts, r.engine)
	}
	if r.vls > 0 {
		parts = append(parts, text.Count(r.vls, "VL", "VLs"))
	}
	if r.choice != "" {
		parts = append(parts, r.choice)
	}
	if r.mcast != "" {
		parts = append(parts, "mcast "+r.mcast)
	}
	return strings.Join(parts, ", ")
}

// parameters are those of points with the routing.
func (r *simRouting) parameters() simParameters {
	return simParameters{Routing: r.name(), Engine: r.engine, VLs: r.vls}
}

// routing finds a routing by its name.
func (r *simRun) routing(name string) *simRouting {
	return &r.routings[slices.IndexFunc(r.routings, func(x simRouting) bool { return x.name() == name })]
}

// choices lists how switches choose in the routings that are compared; nil where they do not.
func (in *simulation) choices() []string {
	switch {
	case in.adaptive == "all":
		return []string{routedStatic, routedFree, routedHBF}
	case in.adaptive != "":
		return []string{routedStatic, in.adaptive}
	case in.far != "":
		return []string{routedStatic, routedAsRead}
	}
	return nil
}

// routed says whether the tables are to be made: -t FILE without tables.
func (in *simulation) routed(args []string) bool {
	return len(args) == 0 && in.topology != "" && !in.hasTables() &&
		(in.engine != "" || in.engines != nil || in.adaptive != "" || in.vls != nil || in.jobTraffic.fit)
}

// routeSimulated makes the tables of -t: with an engine, with each of several, or with the one that
// suits the fabric best, and on as many VLs as are asked for. An engine that cannot do the fabric is
// left out with a line on standard error, as long as another one can.
func (a *app) routeSimulated(ctx context.Context, in *simulation) ([]simRouting, error) {
	f, err := a.readTopology(in.topology, in.lenient)
	if err != nil {
		return nil, err
	}
	in.sums = map[string]string{in.topology: textSum(topology.Append(nil, f))}
	engines := in.engines
	if engines == nil {
		engines = []string{in.engine}
	}
	var demand demandFunc
	if in.jobTraffic.fit {
		file, err := a.readSimulatedJobs(in)
		if err != nil {
			return nil, err
		}
		demand = (&fitting{name: in.jobTraffic.file, file: file}).demandIn(a)
	}
	var list []simRouting
	var refused error
	for _, engine := range engines {
		for _, vls := range in.lanes() {
			x := simRouting{vls: vls}
			r, err := a.routeBy(ctx, f, in.topology, engine, compile.Options{Route: lft.Options{VLs: vls}})
			if is[*lft.DomainError](err) && len(engines) > 1 {
				fmt.Fprintf(a.stderr, "ibweave: left out: %v\n", err)
				refused = err
				continue
			}
			if err != nil {
				return nil, err
			}
			if x.routes = r.Routing; in.engines != nil || demand != nil {
				x.engine = x.routes.Engine
			}
			list = append(list, x)
			if demand == nil {
				continue
			}
			if r, err = a.routeBy(ctx, f, in.topology, engine, compile.Options{Route: lft.Options{VLs: vls}, Demand: demand}); err != nil {
				return nil, err
			}
			if x.routes, x.engine, x.fitted = r.Routing, r.Routing.Engine, true; a.isFitted(r, x.name()) {
				list = append(list, x)
			}
		}
	}
	if len(list) == 0 {
		return nil, refused
	}
	return list, nil
}

// onlyOnce refuses routings of one name.
func (in *simulation) onlyOnce(list []simRouting) error {
	for i := range list {
		for k := range i {
			if name := list[i].name(); name == list[k].name() {
				flag := "engines"
				if in.engines == nil {
					flag = "vls"
				}
				return in.wrong(flag, "%s twice: want each once", name)
			}
		}
	}
	return nil
}

// lanes is --vls, and 0 where it is not given.
func (in *simulation) lanes() []int {
	if in.vls == nil {
		return []int{0}
	}
	return in.vls
}

// divideLanes has the tables that were read on as many VLs as --vls says.
func (in *simulation) divideLanes(r *lft.Routing) ([]simRouting, error) {
	var list []simRouting
	for _, vls := range in.lanes() {
		x := simRouting{vls: vls, routes: r}
		if vls > 0 {
			if r.PathSLs != nil || r.SL2VL != nil && r.SL2VL.VLs() > 1 {
				return nil, in.wrong("vls", "the tables have VLs of their own: want -t TOPOLOGY and -e ENGINE, or tables of one VL")
			}
			lanes := *r
			lanes.SL2VL = lft.NewSL2VL(r.Fabric, lft.IdentityVLs(vls))
			x.routes = &lanes
		}
		list = append(list, x)
	}
	return list, nil
}

// setNetwork makes the network of a routing. Messages are spread over all VLs of --vls, unless --sls says
// otherwise or the tables say which SL each path has.
func (in *simulation) setNetwork(x *simRouting) {
	r := x.routes
	x.net = sim.Network{Fabric: r.Fabric, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs, Router: x.router}
	x.sls = in.traffic.SLs
	if x.vls > 1 && r.PathSLs == nil && !in.given("sls") {
		x.sls = x.vls
	}
}

// addChoices adds to each of the routings those with a choice of ports, which have the same static
// ports and lanes.
func (a *app) addChoices(ctx context.Context, in *simulation, static []simRouting) ([]simRouting, error) {
	choices := in.choices()
	if choices == nil {
		return static, nil
	}
	if in.choosing.adaptive == nil && in.adaptive == routedAsRead {
		return nil, in.wrong("adaptive", "far: there is none: want --far FILE, or a directory with adaptive routing")
	}
	var list []simRouting
	for _, x := range static {
		tables := in.choosing.adaptive
		if tables == nil {
			s := a.startStage("find choices")
			var err error
			tables, err = adaptive.Widen(ctx, x.routes)
			s.End()
			if err != nil {
				return nil, err
			}
		}
		for _, choice := range choices {
			x.choice = choice
			switch {
			case choice == routedStatic && len(tables.PLFTs) > 1: // each with static ports of its own
				x.net.Adaptive = withState(tables, adaptive.Static)
			case choice == routedStatic:
			case choice == routedFree:
				x.net.Adaptive = withState(tables, adaptive.Free)
			case choice == routedHBF:
				x.net.Adaptive = withState(tables, adaptive.HBF)
			default:
				x.net.Adaptive = tables
			}
			list = append(list, x)
		}
	}
	return list, nil
}

// withState is tables of which all entries with a choice have one state.
func withState(t *adaptive.Tables, state adaptive.State) *adaptive.Tables {
	out := *t
	out.PLFTs = nil
	for _, p := range t.PLFTs {
		q := adaptive.NewPLFT(p.Ports)
		q.Lacking = p.Lacking
		for s := range fabric.NodeID(p.Ports.Switches()) {
			for lid := range p.Row(s) {
				if was, group := p.At(s, fabric.LID(lid)); was != adaptive.Static && group >= 0 {
					q.Set(s, fabric.LID(lid), state, group)
				}
			}
		}
		out.PLFTs = append(out.PLFTs, q)
	}
	return &out
}
