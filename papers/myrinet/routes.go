// Package myrinet has the host adapter multicast of Gerla, Palnati and Walton,
// Multicasting Protocols for High-Speed, Wormhole-Routing Local Area Networks
// (SIGCOMM 1996). It makes no promise to other modules.
package myrinet

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
)

// UpDown is Myrinet's up/down routing (section 2 of the paper): a
// link goes up towards the switch nearer the root, and between
// switches at the same distance towards the lower NodeID (which the
// paper leaves open, M3). A path goes up any number of links and
// then down any number. It is immutable and safe for concurrent use.
type UpDown struct {
	fab   *fabric.Fabric
	order *updown.Order
	up    []fabric.PortID // by switch: its port to its parent in the spanning tree; NoPort for roots
}

// NewUpDown grows the order from a root. The parent of a switch in the spanning
// tree is the neighbour nearer the root with the lowest NodeID, by the lowest
// port. Switches without a way to the root have a root of their own.
func NewUpDown(f *fabric.Fabric, root fabric.NodeID) (*UpDown, error) {
	if !f.IsSwitch(root) || root < 0 {
		return nil, fmt.Errorf("root %d is no switch", root)
	}
	u := &UpDown{fab: f, order: updown.NewOrder(f, []fabric.NodeID{root}), up: make([]fabric.PortID, f.NumSwitches())}
	level := make([]int32, f.NumSwitches())
	for _, s := range u.order.Switch {
		u.up[s] = fabric.NoPort
		ports, to := f.SwitchLinks(s)
		parent := fabric.NoNode
		for i, v := range to {
			if u.order.Rank[v] > u.order.Rank[s] {
				continue
			}
			if parent == fabric.NoNode || level[v] < level[parent] || level[v] == level[parent] && v < parent {
				parent, u.up[s] = v, ports[i]
			}
		}
		if parent != fabric.NoNode {
			level[s] = level[parent] + 1
		}
	}
	return u, nil
}

// Goes returns true if the channel that leaves a switch by a port to another switch
// goes up.
func (u *UpDown) Goes(p fabric.PortID) (up bool) {
	to := u.fab.Owner(u.fab.Peer(p))
	return u.order.Rank[to] < u.order.Rank[u.fab.Owner(p)]
}

// Tree returns true if the cable of a port between switches is in the spanning tree.
func (u *UpDown) Tree(p fabric.PortID) bool {
	peer := u.fab.Peer(p)
	return u.up[u.fab.Owner(p)] == p || u.up[u.fab.Owner(peer)] == peer
}

// Tables makes forwarding tables of up/down paths (M4). A switch
// that can reach a destination by downward hops alone sends
// down, by a shortest such path; any other sends up to the
// neighbour with the shortest way left. Of equal neighbours it
// takes the lowest NodeID, by its lowest port: one fixed path
// for each pair, as in the paper's simulation. It takes time for
// switches times channels. Errors: end ports without LIDs.
func (u *UpDown) Tables() (*lft.Tables, error) {
	return u.tables(func(fabric.PortID) bool { return true })
}

// TreeTables is Tables on the spanning tree alone, the paper's first way to keep
// switch-level multicast out of deadlocks (M9).
func (u *UpDown) TreeTables() (*lft.Tables, error) { return u.tables(u.Tree) }

func (u *UpDown) tables(uses func(fabric.PortID) bool) (*lft.Tables, error) {
	f := u.fab
	n := f.NumSwitches()
	t := lft.NewTables(n, f.MaxLID())
	lids := make([][]fabric.LID, n) // by switch: LIDs of its end ports
	var err error
	f.EndPorts(func(p fabric.PortID) {
		at := f.Attachment(p)
		if at == fabric.NoPort {
			return
		}
		if f.LID(p) == 0 && err == nil {
			err = fmt.Errorf("%s has no LID", f.PortName(p))
		}
		s := f.Owner(at)
		for i := range fabric.LID(1) << f.LMC(p) {
			lids[s] = append(lids[s], f.LID(p)+i)
			t.Row(s)[f.LID(p)+i] = f.Num(at)
		}
	})
	if err != nil {
		return nil, err
	}
	w := &wayTo{u: u, uses: uses, down: graph.NewSearch[fabric.NodeID](n), cost: make([]int32, n)}
	for dest := range fabric.NodeID(n) {
		if len(lids[dest]) == 0 {
			continue
		}
		w.down.Run(w.above, dest)
		for _, s := range u.order.Switch { // switches above come first
			port := fabric.NoPath
			if w.cost[s] = 0; s != dest {
				port, w.cost[s] = w.choose(s)
			}
			if port == fabric.NoPath {
				continue
			}
			row := t.Row(s)
			for _, l := range lids[dest] {
				row[l] = port
			}
		}
	}
	return t, nil
}

// wayTo has the up/down paths to a switch.
type wayTo struct {
	u    *UpDown
	uses func(fabric.PortID) bool
	down *graph.Search[fabric.NodeID] // from the switch, against downward links
	cost []int32                      // by switch: links on its path to the switch
	next []fabric.NodeID              // scratch
}

// far is the cost without a path.
const far = int32(1) << 30

// above lists the switches to which used links of s lead up.
func (w *wayTo) above(s fabric.NodeID) []fabric.NodeID {
	w.next = w.next[:0]
	ports, to := w.u.fab.SwitchLinks(s)
	for i, v := range to {
		if w.uses(ports[i]) && w.u.Goes(ports[i]) {
			w.next = append(w.next, v)
		}
	}
	return w.next
}

// choose returns the port by which a switch sends, and its
// cost. Costs of all switches above it are known.
func (w *wayTo) choose(s fabric.NodeID) (port fabric.PortNum, cost int32) {
	falls := w.down.Reached(s)
	left := func(v fabric.NodeID) int32 {
		switch {
		case !falls:
			return w.cost[v]
		case w.down.Reached(v):
			return w.down.Distance[v]
		}
		return far
	}
	ports, to := w.u.fab.SwitchLinks(s)
	port, cost = fabric.NoPath, far
	via := fabric.NoNode
	for i, v := range to {
		if !w.uses(ports[i]) || w.u.Goes(ports[i]) == falls {
			continue
		}
		if l := left(v); l < cost || l == cost && l < far && v < via {
			port, cost, via = w.u.fab.Num(ports[i]), l, v
		}
	}
	return port, min(cost+1, far)
}

// Links returns how many links between switches a packet crosses from
// one end port to another, the hop count of the paper's figures: 0
// for a path through one switch. Errors are those of lft.Tables.Path.
func Links(f *fabric.Fabric, t *lft.Tables, src fabric.PortID, dlid fabric.LID) (int, error) {
	p, err := t.Path(f, src, dlid, make([]fabric.PortID, 0, 16))
	return max(len(p)-2, 0), err
}
