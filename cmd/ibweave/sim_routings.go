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
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/updown"
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
	case in.FAR != "":
		return []string{routedStatic, routedAsRead}
	}
	return nil
}

// routed says whether the tables are to be made: -t FILE without tables.
func (in *simulation) routed(args []string) bool {
	return len(args) == 0 && in.Topology != "" && !in.HasTables() &&
		(in.engine != "" || in.engines != nil || in.adaptive != "" || in.vls != nil || in.jobTraffic.fit)
}

// routeSimulated makes the tables of -t: with an engine, with each of several, or with the one that
// suits the fabric best, and on as many VLs as are asked for. An engine that cannot do the fabric is
// left out with a line on standard error, as long as another one can.
func (a *app) routeSimulated(ctx context.Context, in *simulation) ([]simRouting, error) {
	f, err := a.readTopology(in.Topology, in.Lenient)
	if err != nil {
		return nil, err
	}
	in.Sums = map[string]string{in.Topology: open.Sum(topology.Append(nil, f))}
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
			r, err := a.routeBy(ctx, f, in.Topology, engine, compile.Options{Route: lft.Options{VLs: vls}})
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
			if r, err = a.routeBy(ctx, f, in.Topology, engine, compile.Options{Route: lft.Options{VLs: vls}, Demand: demand}); err != nil {
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

// addChoices adds to each of the routings those with a choice of ports, which have the same static
// ports and lanes.
func (a *app) addChoices(ctx context.Context, in *simulation, static []simRouting) ([]simRouting, error) {
	choices := in.choices()
	if choices == nil {
		return static, nil
	}
	if in.State.Adaptive == nil && in.adaptive == routedAsRead {
		return nil, in.wrong("adaptive", "far: there is none: want --far FILE, or a directory with adaptive routing")
	}
	states := map[string]adaptive.State{routedStatic: adaptive.Static, routedFree: adaptive.Free, routedHBF: adaptive.HBF}
	var list []simRouting
	for _, x := range static {
		tables := in.State.Adaptive
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
			switch state, all := states[choice]; {
			case !all:
				x.net.Adaptive = tables
			case state != adaptive.Static || len(tables.PLFTs) > 1: // each with static ports of its own
				x.net.Adaptive = tables.WithState(state)
			}
			list = append(list, x)
		}
	}
	return list, nil
}

// routerSPAM is the only --router.
const routerSPAM = "spam"

// checkRouter says what --router does not go with.
func (in *simulation) checkRouter(args []string) error {
	switch {
	case in.router != routerSPAM:
		return in.wrong("router", "%q: want %s", in.router, routerSPAM)
	case len(args) > 0 || in.Topology == "" || in.HasTables() || in.SL2VL != "" || in.PathSLs != "" || in.MFTs != "" || in.routed(args):
		return in.wrong("router", "takes the place of tables and engines: want -t FILE alone")
	case in.jobTraffic.file != "":
		return in.wrong("router", "is for --load, --burst and --trace: jobs go by tables")
	case !in.given("copying"):
		in.cfg.Copying = sim.Wormhole
	case in.cfg.Copying != sim.Wormhole && in.cfg.Copying != sim.GreedyWormhole:
		return in.wrong("router", "simulates worms: want --copying wormhole, its default, or greedy-wormhole, which can deadlock")
	}
	return nil
}

// routeWorms makes the network of SPAM's routers on a topology, with the groups that messages
// may go to.
func (a *app) routeWorms(ctx context.Context, in *simulation) (x simRouting, trees []mft.Tree, err error) {
	f, err := a.readTopology(in.Topology, in.Lenient)
	if err != nil {
		return x, nil, err
	}
	in.Sums = map[string]string{in.Topology: open.Sum(topology.Append(nil, f))}
	// The engine's tables are not used, but the LIDs that it has given.
	r, err := a.routeBy(ctx, f, in.Topology, in.router, compile.Options{})
	if err != nil {
		return x, nil, err
	}
	f = r.Routing.Fabric
	if in.Groups != "" {
		if trees, err = a.readReceivers(in, f); err != nil {
			return x, nil, err
		}
	}
	if len(trees) > int(mft.MaxMLID-mft.MinMLID)+1 {
		return x, nil, inputf("%s: %d groups: want at most %d, one for each MLID", in.Groups, len(trees), mft.MaxMLID-mft.MinMLID+1)
	}
	for i := range trees {
		trees[i].MLID = mft.MinMLID + fabric.LID(i)
	}
	routers, err := newWormRouters(f, trees)
	if err != nil {
		return x, nil, inputf("%s: --router %s: %w", in.Topology, in.router, err)
	}
	return simRouting{routes: r.Routing, router: routers}, trees, nil
}

// wormRouters are SPAM's routers, with the header of each worm that a host may send.
type wormRouters struct {
	net   *updown.SPAMNetwork
	worms map[wormTo]*updown.Worm
}

// wormTo is a LID and, if it is an MLID, the host that sends to the others of the group.
type wormTo struct {
	lid fabric.LID
	src fabric.PortID // NoPort for unicast
}

// newWormRouters grows a breadth-first spanning tree from the centre.
func newWormRouters(f *fabric.Fabric, trees []mft.Tree) (*wormRouters, error) {
	net, err := updown.NewSPAMNetwork(f, updown.Centre(f), updown.BreadthFirst)
	if err != nil {
		return nil, err
	}
	r := &wormRouters{net: net, worms: map[wormTo]*updown.Worm{}}
	for _, p := range f.CAPorts() {
		if f.Peer(p) == fabric.NoPort {
			continue
		}
		w, err := net.NewWorm([]fabric.PortID{p})
		if err != nil {
			return nil, err
		}
		for lid := range f.LIDs(p) {
			r.worms[wormTo{lid, fabric.NoPort}] = w
		}
	}
	for _, t := range trees {
		for _, src := range t.Senders {
			to := slices.DeleteFunc(slices.Clone(t.Receivers), func(p fabric.PortID) bool { return p == src })
			if len(to) == 0 {
				continue
			}
			if r.worms[wormTo{t.MLID, src}], err = net.NewWorm(to); err != nil {
				return nil, fmt.Errorf("group %q: %w", t.Name, err)
			}
		}
	}
	return r, nil
}

// Route is for sim. What has no header is dropped.
func (r *wormRouters) Route(s *sim.Sim, at fabric.NodeID, in fabric.PortID, m *sim.Message, to []fabric.PortID) []fabric.PortID {
	dst := wormTo{m.DLID, fabric.NoPort}
	if m.DLID >= mft.MinMLID {
		dst.src = m.Src
	}
	if w := r.worms[dst]; w != nil {
		return r.net.Route(s, at, in, w, to)
	}
	return to
}
