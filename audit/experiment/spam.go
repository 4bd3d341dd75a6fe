package experiment

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/updown"
)

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

// NewSPAM returns SPAM's routers (Libeskind-Hadas and others), which take the place of tables. On a
// spanning tree from a root, worms go up, then down, and choose among the free channels. trees are
// the groups that worms may go to.
func NewSPAM(f *fabric.Fabric, trees []mft.Tree, root fabric.NodeID, tree updown.SpanningTree) (sim.Router, error) {
	net, err := updown.NewSPAMNetwork(f, root, tree)
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

// Route implements sim.Router. It drops a message for which there is no header.
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
