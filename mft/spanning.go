package mft

import (
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// SpanningTree is a tree of all switches, or several trees if cables are missing. A group uses the
// part that joins its members, over any of the cables between a switch and its parent. Switches are
// known by rank; a parent has a lower rank than its children.
type SpanningTree struct {
	Fabric *fabric.Fabric
	Rank   []int32         // by NodeID
	Switch []fabric.NodeID // by rank
	Parent []int32         // by rank, NoParent for a root
}

// NoParent stands for the parent of a root.
const NoParent = -1

// TreeWalk finds the parts of spanning trees that join groups. Each worker has one.
type TreeWalk struct {
	Links []TreeLink // of the last part

	touched            []uint64 // by rank, a bit: the subtree has members; all 0 between calls
	senders, receivers []int32  // by rank: how many the group has in the subtree; all 0 between calls
}

// TreeLink is the link between a switch and its parent.
type TreeLink struct {
	Below    int32 // rank of the switch
	Up, Down int32 // copies that cross it if each sender sends one packet
}

// NewTreeWalk makes a TreeWalk for trees with some number of switches.
func NewTreeWalk(switches int) *TreeWalk {
	return &TreeWalk{touched: make([]uint64, (switches+63)/64), senders: make([]int32, switches), receivers: make([]int32, switches)}
}

// Join fills Links with the part of a tree that joins the group's members, and returns -1. If
// missing cables part them, it returns the rank of a root with only some members below it. All
// members must have a switch. It takes O(members + links).
func (w *TreeWalk) Join(t *SpanningTree, g *Group) (stuck int32) {
	w.Links = w.Links[:0]
	top := 0 // the last word of touched that is not 0
	count := func(members []fabric.PortID, by []int32) {
		for _, p := range members {
			r := t.Rank[t.Fabric.Owner(t.Fabric.Attachment(p))]
			w.touched[r/64] |= 1 << (r % 64)
			top = max(top, int(r/64))
			by[r]++
		}
	}
	count(g.Receivers, w.receivers)
	count(g.Senders, w.senders)
	receivers, senders := int32(len(g.Receivers)), int32(len(g.Senders))
	stuck = -1
	for k := top; k >= 0; k-- { // children before their parents
		for w.touched[k] != 0 {
			r := int32(k*64 + 63 - bits.LeadingZeros64(w.touched[k]))
			w.touched[k] &^= 1 << (r % 64)
			in, out := w.receivers[r], w.senders[r]
			w.receivers[r], w.senders[r] = 0, 0
			if in == receivers && out == senders || stuck >= 0 {
				continue // r is above all members, or Join is stuck
			}
			u := t.Parent[r]
			if u == NoParent {
				stuck = r
				continue
			}
			w.touched[u/64] |= 1 << (u % 64)
			w.receivers[u] += in
			w.senders[u] += out
			link := TreeLink{Below: r}
			if in < receivers {
				link.Up = out
			}
			if in > 0 {
				link.Down = senders - out
			}
			if link.Up > 0 || link.Down > 0 {
				w.Links = append(w.Links, link)
			}
		}
	}
	return stuck
}

// Masks returns the ports in a group's masks after Join, ascending. Of the n cables of a link,
// sorted by port of the lower switch, it takes the one of index cable modulo n.
func (w *TreeWalk) Masks(t *SpanningTree, g *Group, cable int) []fabric.PortID {
	f := t.Fabric
	ports := make([]fabric.PortID, 0, len(g.Receivers)+2*len(w.Links))
	for _, l := range w.Links {
		cables := f.LinksBetween(t.Switch[l.Below], t.Switch[t.Parent[l.Below]])
		p := cables[cable%len(cables)]
		if l.Up > 0 {
			ports = append(ports, p)
		}
		if l.Down > 0 {
			ports = append(ports, f.Peer(p))
		}
	}
	ports = append(ports, text.Each(g.Receivers, f.Attachment)...)
	slices.Sort(ports)
	return ports
}
