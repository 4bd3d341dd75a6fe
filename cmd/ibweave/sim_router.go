package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/updown"
)

// routerSPAM is the only --router.
const routerSPAM = "spam"

// checkRouter says what --router does not go with.
func (in *simulation) checkRouter(args []string) error {
	switch {
	case in.router != routerSPAM:
		return in.wrong("router", "%q: want %s", in.router, routerSPAM)
	case len(args) > 0 || in.topology == "" || in.hasTables() || in.sl2vl != "" || in.pathSL != "" || in.mfts != "" || in.routed(args):
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
	f, err := a.readTopology(in.topology, in.lenient)
	if err != nil {
		return x, nil, err
	}
	in.sums = map[string]string{in.topology: textSum(topology.Append(nil, f))}
	// The engine's tables are not used, but the LIDs that it has given.
	r, err := a.routeBy(ctx, f, in.topology, in.router, compile.Options{})
	if err != nil {
		return x, nil, err
	}
	f = r.Routing.Fabric
	if in.groups != "" {
		if trees, err = a.readReceivers(in, f); err != nil {
			return x, nil, err
		}
	}
	if len(trees) > int(mft.MaxMLID-mft.MinMLID)+1 {
		return x, nil, inputf("%s: %d groups: want at most %d, one for each MLID", in.groups, len(trees), mft.MaxMLID-mft.MinMLID+1)
	}
	for i := range trees {
		trees[i].MLID = mft.MinMLID + fabric.LID(i)
	}
	routers, err := newWormRouters(f, trees)
	if err != nil {
		return x, nil, inputf("%s: --router %s: %w", in.topology, in.router, err)
	}
	return simRouting{routes: r.Routing, router: routers}, trees, nil
}

// wormRouters are SPAM's routers, with the header of each worm that a host may send.
type wormRouters struct {
	net    *updown.SPAMNetwork
	single map[fabric.LID]*updown.Worm
	groups map[wormGroup]*updown.Worm
}

// wormGroup is a multicast group without the host that sends to it.
type wormGroup struct {
	mlid fabric.LID
	src  fabric.PortID
}

// newWormRouters grows a breadth-first spanning tree from the centre.
func newWormRouters(f *fabric.Fabric, trees []mft.Tree) (*wormRouters, error) {
	net, err := updown.NewSPAMNetwork(f, updown.Centre(f), updown.BreadthFirst)
	if err != nil {
		return nil, err
	}
	r := &wormRouters{net: net, single: map[fabric.LID]*updown.Worm{}, groups: map[wormGroup]*updown.Worm{}}
	for _, p := range f.CAPorts() {
		if f.Peer(p) == fabric.NoPort {
			continue
		}
		w, err := net.NewWorm([]fabric.PortID{p})
		if err != nil {
			return nil, err
		}
		for lid := range f.LIDs(p) {
			r.single[lid] = w
		}
	}
	for _, t := range trees {
		for _, src := range t.Senders {
			to := slices.DeleteFunc(slices.Clone(t.Receivers), func(p fabric.PortID) bool { return p == src })
			if len(to) == 0 {
				continue
			}
			if r.groups[wormGroup{t.MLID, src}], err = net.NewWorm(to); err != nil {
				return nil, fmt.Errorf("group %q: %w", t.Name, err)
			}
		}
	}
	return r, nil
}

// Route is for sim. What has no header is dropped.
func (r *wormRouters) Route(s *sim.Sim, at fabric.NodeID, in fabric.PortID, m *sim.Message, to []fabric.PortID) []fabric.PortID {
	w := r.single[m.DLID]
	if m.DLID >= mft.MinMLID {
		w = r.groups[wormGroup{m.DLID, m.Src}]
	}
	if w == nil {
		return to
	}
	return r.net.Route(s, at, in, w, to)
}
