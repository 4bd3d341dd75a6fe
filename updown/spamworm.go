package updown

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
)

// SPAMNetwork is a fabric of the paper's own SPAM routers (section 3): they know by
// which kind of channel a worm came, choose among the free channels, and read the
// destinations from its header. SPAM and SPAMTree do as much of this as forwarding
// tables permit.
//
// Processors are the ports of channel adapters, each a leaf of the spanning tree. Of
// several cables between a switch and its parent, the one on the parent's lowest port
// is the tree channel, the others are cross channels.
//
// A SPAMNetwork never changes, and may be used concurrently.
type SPAMNetwork struct {
	f      *fabric.Fabric
	root   fabric.NodeID
	parent []fabric.NodeID // by switch; NoNode for the root
	level  []int32         // by switch: links of the tree to the root
	first  []int32         // by switch: place in preorder
	last   []int32         // by switch: first place after its subtree
	atTree []fabric.NodeID // by place in preorder: the switch
	down   []fabric.PortID // by switch: its parent's port to it
	kind   []ChannelKind   // by PortID: of the channel that leaves there
	above  []relation      // by target switch, then switch
}

// ChannelKind is the part of a route that a channel can be in.
type ChannelKind uint8

// The kinds, in the order in which a worm takes them. Channels from processors are Up,
// those to processors DownTree.
const (
	NoChannel ChannelKind = iota
	Up
	DownCross
	DownTree
)

// String returns the kind in words.
func (k ChannelKind) String() string {
	return [...]string{"no channel", "up", "down cross", "down tree"}[k]
}

// relation is the relation of a switch to a target.
type relation uint8

const (
	unrelated relation = iota
	extended           // an extended ancestor that is no ancestor
	ancestor           // or the target itself
)

// SpanningTree is how SPAMNetwork grows its tree.
type SpanningTree uint8

const (
	// BreadthFirst gives each switch as parent the lowest of its neighbours that are
	// nearer to the root. The paper does not name its tree; a shallow one is needed for
	// broadcasts that take less than 14 us.
	BreadthFirst SpanningTree = iota
	// DepthFirst continues from each switch to its lowest neighbour outside the tree.
	DepthFirst
)

// Centre returns the switch with the least distance to its farthest switch, the lowest
// of several: a root for shallow trees. If the fabric is in parts, the switch is in a
// part with most switches. It is NoNode if there are no switches.
func Centre(f *fabric.Fabric) fabric.NodeID {
	best, apart, least := fabric.NoNode, 0, 0
	for _, s := range f.Switches() {
		far, lost := 0, 0
		for _, d := range f.Distances().To(s) {
			if d == fabric.Unreachable {
				lost++
			} else {
				far = max(far, int(d))
			}
		}
		if best == fabric.NoNode || lost < apart || lost == apart && far < least {
			best, apart, least = s, lost, far
		}
	}
	return best
}

// NewSPAMNetwork grows the spanning tree from root and classifies all channels. A
// channel between switches that is not in the tree is up if it leads to a lower level,
// or on the same level to a lower switch. It takes O(switches x channels) time and a
// byte for each pair of switches. It returns an error if cables do not join all
// switches.
func NewSPAMNetwork(f *fabric.Fabric, root fabric.NodeID, tree SpanningTree) (*SPAMNetwork, error) {
	n := f.NumSwitches()
	if root < 0 || int(root) >= n {
		return nil, fmt.Errorf("root %d: want a switch, 0 to %d", root, n-1)
	}
	w := &SPAMNetwork{
		f: f, root: root, parent: slices.Repeat([]fabric.NodeID{fabric.NoNode}, n), level: make([]int32, n),
		first: make([]int32, n), last: make([]int32, n), atTree: make([]fabric.NodeID, 0, n),
		down: slices.Repeat([]fabric.PortID{fabric.NoPort}, n), kind: make([]ChannelKind, f.NumPorts()), above: make([]relation, n*n),
	}
	order := NewOrder(f, []fabric.NodeID{root})
	if tree == DepthFirst {
		order = w.growDeep()
	} else {
		parent := newDirections(f, order).findParents()
		for r, s := range order.Switch {
			if p := parent[r]; p != mft.NoParent {
				w.parent[s] = order.Switch[p]
				w.level[s] = w.level[w.parent[s]] + 1
			}
		}
	}
	for s, p := range w.parent {
		if s := fabric.NodeID(s); p == fabric.NoNode && s != root {
			return nil, fmt.Errorf("no cables join %s to %s", f.Name(s), f.Name(root))
		}
	}
	for s := range fabric.NodeID(n) {
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			if w.parent[to[i]] == s && w.down[to[i]] == fabric.NoPort {
				w.down[to[i]] = p
			}
		}
	}
	w.numberTree()
	for s := range fabric.NodeID(n) {
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			v := to[i]
			switch {
			case w.down[v] == p:
				w.kind[p] = DownTree
			case order.Rank[v] < order.Rank[s]:
				w.kind[p] = Up
			default:
				w.kind[p] = DownCross
			}
		}
	}
	for _, p := range f.CAPorts() {
		if q := f.Peer(p); f.IsSwitch(f.Owner(q)) {
			w.kind[p], w.kind[q] = Up, DownTree
		}
	}
	for t := range fabric.NodeID(n) {
		w.findAncestors(t, order.Switch)
	}
	return w, nil
}

// growDeep grows the depth-first tree. It returns the switches by level, then number.
func (w *SPAMNetwork) growDeep() *Order {
	seen := make([]bool, len(w.parent))
	seen[w.root] = true
	for s := w.root; s != fabric.NoNode; {
		next := fabric.NoNode
		for _, v := range w.f.Neighbors(s) {
			if !seen[v] && (next == fabric.NoNode || v < next) {
				next = v
			}
		}
		if next == fabric.NoNode {
			s = w.parent[s]
			continue
		}
		seen[next], w.parent[next], w.level[next] = true, s, w.level[s]+1
		s = next
	}
	list := w.f.Switches()
	slices.SortStableFunc(list, func(a, b fabric.NodeID) int { return cmp.Compare(w.level[a], w.level[b]) })
	return rankSwitches(list)
}

// numberTree numbers the tree in preorder, children by their parents' ports.
func (w *SPAMNetwork) numberTree() {
	stack := []fabric.NodeID{w.root}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		w.first[s] = int32(len(w.atTree))
		w.last[s] = w.first[s] + 1
		w.atTree = append(w.atTree, s)
		ports, to := w.f.SwitchLinks(s)
		for i := len(ports) - 1; i >= 0; i-- {
			if w.down[to[i]] == ports[i] {
				stack = append(stack, to[i])
			}
		}
	}
	for i := len(w.atTree) - 1; i > 0; i-- {
		s := w.atTree[i]
		p := w.parent[s]
		w.last[p] = max(w.last[p], w.last[s])
	}
}

// findAncestors finds the ancestors and extended ancestors of target t. order has the
// switches by level, then number, so that channels down lead to later ones.
func (w *SPAMNetwork) findAncestors(t fabric.NodeID, order []fabric.NodeID) {
	row := w.above[int(t)*len(order) : (int(t)+1)*len(order)]
	for s := t; s != fabric.NoNode; s = w.parent[s] {
		row[s] = ancestor
	}
	for i := len(order) - 1; i >= 0; i-- {
		s := order[i]
		if row[s] != unrelated {
			continue
		}
		ports, to := w.f.SwitchLinks(s)
		for k, p := range ports {
			if w.kind[p] == DownCross && row[to[k]] != unrelated {
				row[s] = extended
				break
			}
		}
	}
}

// Fabric returns the fabric of the network.
func (w *SPAMNetwork) Fabric() *fabric.Fabric { return w.f }

// Parent returns the switch above s in the spanning tree, NoNode for the root.
func (w *SPAMNetwork) Parent(s fabric.NodeID) fabric.NodeID { return w.parent[s] }

// Level returns the number of tree links between s and the root.
func (w *SPAMNetwork) Level(s fabric.NodeID) int { return int(w.level[s]) }

// Channel returns the kind of the channel that leaves by a port.
func (w *SPAMNetwork) Channel(p fabric.PortID) ChannelKind { return w.kind[p] }

// IsAncestor returns true if the tree leads down from s to t, or s is t.
func (w *SPAMNetwork) IsAncestor(s, t fabric.NodeID) bool {
	return w.above[int(t)*len(w.parent)+int(s)] == ancestor
}

// Worm is the header of a message.
type Worm struct {
	// At is the switch that the worm is routed to: the least common ancestor of its
	// destinations, or the switch of a single one.
	At fabric.NodeID
	to []fabric.PortID // switches' ports to the destinations, in preorder
}

// Destinations returns the ports of the channel adapters that get the worm, in the
// order of the tree.
func (x *Worm) Destinations(f *fabric.Fabric) []fabric.PortID {
	return text.Each(x.to, f.Peer)
}

// NewWorm makes the header for destinations, ports of channel adapters in any order. It
// returns an error for no destination, one given twice, or one without a cable to a
// switch.
func (w *SPAMNetwork) NewWorm(to []fabric.PortID) (*Worm, error) {
	if len(to) == 0 {
		return nil, errors.New("a worm without destinations")
	}
	x := &Worm{to: make([]fabric.PortID, len(to))}
	for i, p := range to {
		if p < 0 || int(p) >= w.f.NumPorts() || w.f.IsSwitch(w.f.Owner(p)) || w.kind[p] != Up {
			return nil, fmt.Errorf("port %d is no destination: want one of a channel adapter, with a cable to a switch", p)
		}
		x.to[i] = w.f.Peer(p)
	}
	slices.SortFunc(x.to, func(a, b fabric.PortID) int {
		return cmp.Or(cmp.Compare(w.first[w.f.Owner(a)], w.first[w.f.Owner(b)]), cmp.Compare(a, b))
	})
	for i := 1; i < len(x.to); i++ {
		if x.to[i] == x.to[i-1] {
			return nil, fmt.Errorf("destination %s twice", w.f.PortName(w.f.Peer(x.to[i])))
		}
	}
	far := w.f.Owner(x.to[len(x.to)-1])
	for x.At = w.f.Owner(x.to[0]); w.last[x.At] <= w.first[far]; {
		x.At = w.parent[x.At]
	}
	return x, nil
}

// Channels tells which channels would accept a worm now. *sim.Sim implements it.
type Channels interface {
	Free(p fabric.PortID, vl fabric.VL) bool
}

// Route appends the ports by which a worm leaves switch at, which it
// entered by port in. Before switch x.At that is one port: the first
// free one of Allowed or, if none is free, the first one, for which the
// worm waits. From x.At on the worm goes down the tree, by all ports
// that lead to its destinations: the router takes these together
// (OCRQ).
//
// From At on a worm with several destinations only goes down, though Allowed would let
// it go up. It may go down by the cable that it came up by, if a neighbour of its
// source is a destination.
func (w *SPAMNetwork) Route(c Channels, at fabric.NodeID, in fabric.PortID, x *Worm, to []fabric.PortID) []fabric.PortID {
	if len(x.to) > 1 && (at == x.At || w.kind[w.f.Peer(in)] == DownTree && w.IsAncestor(x.At, at)) {
		return w.splitWorm(at, x, to)
	}
	from := len(to)
	to = w.Allowed(at, in, x, to)
	for _, p := range to[from:] {
		if c.Free(p, 0) {
			to[from] = p
			break
		}
	}
	return to[:min(len(to), from+1)]
}

// splitWorm appends, ascending, the ports down from a switch that lead to destinations.
func (w *SPAMNetwork) splitWorm(at fabric.NodeID, x *Worm, to []fabric.PortID) []fabric.PortID {
	from := len(to)
	i, _ := slices.BinarySearchFunc(x.to, w.first[at], func(p fabric.PortID, place int32) int {
		return cmp.Compare(w.first[w.f.Owner(p)], place)
	})
	for i < len(x.to) && w.first[w.f.Owner(x.to[i])] < w.last[at] {
		s := w.f.Owner(x.to[i])
		if s == at {
			to = append(to, x.to[i])
			i++
			continue
		}
		for w.parent[s] != at {
			s = w.parent[s]
		}
		to = append(to, w.down[s])
		for i < len(x.to) && w.first[w.f.Owner(x.to[i])] < w.last[s] {
			i++
		}
	}
	slices.Sort(to[from:])
	return to
}

// Allowed appends the ports that the routing function allows a worm before it splits,
// best first: those from which the path to At is shortest in the graph, among equal
// ones the one to the lowest switch. After up channels all up channels are allowed;
// after up and down cross channels also down cross channels to extended ancestors of
// At; and always the tree channel down to an ancestor of At, or to the destination.
func (w *SPAMNetwork) Allowed(at fabric.NodeID, in fabric.PortID, x *Worm, to []fabric.PortID) []fabric.PortID {
	came := w.kind[w.f.Peer(in)]
	relations := w.above[int(x.At)*len(w.parent) : (int(x.At)+1)*len(w.parent)]
	from := len(to)
	ports, next := w.f.SwitchLinks(at)
	for i, p := range ports {
		ok := false
		switch w.kind[p] {
		case Up:
			ok = came == Up
		case DownCross:
			ok = came != DownTree && relations[next[i]] != unrelated
		case DownTree:
			ok = relations[next[i]] == ancestor
		}
		if ok {
			to = append(to, p)
		}
	}
	far := w.f.Distances().To(x.At)
	slices.SortFunc(to[from:], func(a, b fabric.PortID) int {
		u, v := w.f.Owner(w.f.Peer(a)), w.f.Owner(w.f.Peer(b))
		return cmp.Or(cmp.Compare(far[u], far[v]), cmp.Compare(u, v), cmp.Compare(a, b))
	})
	if at == x.At && len(x.to) == 1 {
		to = slices.Insert(to, from, x.to[0])
	}
	return to
}
