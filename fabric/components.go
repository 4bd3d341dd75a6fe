package fabric

import (
	"slices"

	"github.com/ibweave/ibweave/internal/graph"
)

// Components are the connected parts of a fabric. CAs and routers
// do not forward, so only cables between switches join switches.
type Components struct {
	// Of has, by switch, the index of its component.
	Of []int32
	// List has the components with switches in the order of their first
	// switches, then the pairs of CA or router ports that a cable joins.
	List []Component
}

// Component describes one connected part of a fabric.
type Component struct {
	Switches int
	Ports    int    // CA and router ports with a cable
	First    PortID // port 0 of the first switch; without switches, one of the ports
}

// Components returns the components of f, in O(switches + cables).
func (f *Fabric) Components() *Components {
	of, n := graph.Components(f.switches, f.Neighbors)
	c := &Components{Of: of, List: make([]Component, n)}
	for s := NodeID(f.switches) - 1; s >= 0; s-- {
		x := &c.List[of[s]]
		x.Switches++
		x.First = f.PortBase(s)
	}
	for i, p := range f.caPorts {
		if s := f.attached[i]; s != NoNode {
			c.List[c.Of[s]].Ports++
		} else if q := f.peer[p]; p < q {
			c.List = append(c.List, Component{Ports: 2, First: p})
		}
	}
	return c
}

// Largest returns the index of the component with most switches, the first of equal ones.
func (c *Components) Largest() int32 {
	largest := 0
	for i := range c.List {
		if c.List[i].Switches > c.List[largest].Switches {
			largest = i
		}
	}
	return int32(largest)
}

// Systems lists the groups of two or more switches that share a system image GUID: the chips of
// a director, or of a switch with several planes (an XDR switch has four). Groups are in the
// order of their first switch, and switches are in NodeID order.
func (f *Fabric) Systems() [][]NodeID {
	first := map[GUID]int{} // by system image GUID: its index in all
	var all [][]NodeID
	for s := range NodeID(f.switches) {
		guid := f.nodes[s].SystemGUID
		if guid == 0 {
			continue
		}
		i, known := first[guid]
		if !known {
			i = len(all)
			first[guid], all = i, append(all, nil)
		}
		all[i] = append(all[i], s)
	}
	return slices.DeleteFunc(all, func(chips []NodeID) bool { return len(chips) == 1 })
}

// SameNodes returns true if two fabrics have the same nodes with the same ports, so that
// a PortID means the same port in both. Cables, LIDs and descriptions may differ.
func SameNodes(a, b *Fabric) bool {
	if a == b {
		return true
	}
	return a.switches == b.switches && slices.EqualFunc(a.nodes, b.nodes, func(x, y Node) bool {
		return x.GUID == y.GUID && x.Type == y.Type && x.NumPorts == y.NumPorts
	})
}

// SameTopology returns true if two fabrics have the same nodes and the same cables. LIDs,
// descriptions, labels, widths and speeds may differ.
func SameTopology(a, b *Fabric) bool {
	return a == b || SameNodes(a, b) && slices.Equal(a.peer, b.peer)
}
