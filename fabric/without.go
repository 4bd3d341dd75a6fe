package fabric

import (
	"cmp"
	"fmt"
	"slices"
)

// Without returns the same subnet with some cables removed, each given as either of its
// ports; ports without a cable are ignored. Nodes and their indices stay, even nodes
// that are now cut off. A CA or router port that loses its cable loses its LID, and so does
// a switch that loses its last cable.
func (f *Fabric) Without(cables ...PortID) *Fabric {
	g := f.copyPorts()
	var cut []PortID // ports that lost their cable
	for _, p := range cables {
		q := g.peer[p]
		if q == NoPort {
			continue
		}
		for _, end := range [...]PortID{p, q} {
			g.peer[end], g.link[end] = NoPort, Link{}
		}
		cut = append(cut, p, q)
	}
	return g.recabled(cut)
}

// Part returns the subnet of some nodes of f, in their order in the input, with the cables
// between them. They keep their kinds and their LIDs, except those of virtual ports.
func (f *Fabric) Part(nodes []NodeID) (*Fabric, error) {
	var b Builder
	at := slices.Repeat([]int{-1}, len(f.nodes)) // by NodeID: the index in b
	for _, n := range slices.SortedFunc(slices.Values(nodes), func(m, n NodeID) int { return cmp.Compare(f.nodes[m].Order, f.nodes[n].Order) }) {
		var err error
		if at[n], err = b.CopyNode(f, n); err != nil {
			return nil, err
		}
	}
	for _, c := range f.Cables() {
		x, y := at[f.owner[c.A]], at[f.owner[c.B]]
		if x < 0 || y < 0 {
			continue
		}
		if err := b.Connect(x, f.Num(c.A), y, f.Num(c.B), c.Link); err != nil {
			return nil, err
		}
	}
	part, err := b.Build()
	if err != nil {
		return nil, err
	}
	kinds := make([]Kind, 0, len(nodes))
	for n, k := range f.kinds { // in the order of NodeIDs, as in f
		if at[n] >= 0 {
			kinds = append(kinds, k)
		}
	}
	part.indexHosts(kinds)
	return part, nil
}

// Cable joins two ports.
type Cable struct {
	A, B PortID
	Link Link
}

// WithCables returns the same nodes with the given cables instead of those of f. Nodes and their
// indices stay. CA and router ports without a cable have no LID, nor have switches without
// any cable. Errors: a cable at port 0, from a port to itself, or a second one at a port.
func (f *Fabric) WithCables(cables []Cable) (*Fabric, error) {
	g := f.copyPorts()
	for p := range g.peer {
		g.peer[p], g.link[p] = NoPort, Link{}
	}
	for _, c := range cables {
		for _, end := range [...]PortID{c.A, c.B} {
			if f.Num(end) == ManagementPort || c.A == c.B || g.peer[end] != NoPort {
				return nil, fmt.Errorf("%s cannot have a cable between %s and %s", f.PortName(end), f.PortName(c.A), f.PortName(c.B))
			}
		}
		g.peer[c.A], g.link[c.A] = c.B, c.Link
		g.peer[c.B], g.link[c.B] = c.A, c.Link
	}
	var free []PortID
	for p, peer := range g.peer {
		if peer == NoPort {
			free = append(free, PortID(p))
		}
	}
	return g.recabled(free), nil
}

// Cables lists all cables, each with the lower PortID first, in ascending order of it.
func (f *Fabric) Cables() []Cable {
	list := make([]Cable, 0, f.links)
	for p, q := range f.peer {
		if PortID(p) < q {
			list = append(list, Cable{PortID(p), q, f.link[p]})
		}
	}
	return list
}

// copyPorts returns a copy of f whose cables can be changed until recabled is
// called.
func (f *Fabric) copyPorts() *Fabric {
	g := *f
	g.ports = &ports{owner: f.owner, guid: f.guid, labels: f.labels, peer: slices.Clone(f.peer), link: slices.Clone(f.link)}
	return &g
}

// recabled updates and returns g after its cables have changed. CA and router
// ports in free, and switches that have no cable left, lose their LIDs.
func (g *Fabric) recabled(free []PortID) *Fabric {
	base, lmc := slices.Clone(g.lid), slices.Clone(g.lmc)
	for _, p := range free {
		if n := g.owner[p]; !g.IsSwitch(n) {
			base[p], lmc[p] = 0, 0
		} else if at := g.base[n]; base[at] != 0 && alone(g.peer[at+1:g.base[n+1]]) {
			base[at], lmc[at] = 0, 0
		}
	}
	g.indexCables()
	g.indexHosts(g.kinds)
	with, err := g.WithLIDs(base, lmc)
	if err != nil {
		panic(err) // fewer LIDs than before cannot overlap
	}
	return with
}

// WithLinks returns the same subnet with other widths and speeds at some ports.
func (f *Fabric) WithLinks(links map[PortID]Link) *Fabric {
	g := f.copyPorts()
	for p, link := range links {
		g.link[p] = link
	}
	return g.recabled(nil)
}

// HasCable returns true if any port of a node has a cable.
func (f *Fabric) HasCable(n NodeID) bool { return !alone(f.peer[f.base[n]:f.base[n+1]]) }

func alone(peers []PortID) bool {
	return !slices.ContainsFunc(peers, func(p PortID) bool { return p != NoPort })
}
