package lft

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// On returns r for fabric f, which has all nodes of r's fabric, by GUID, and perhaps more.
// The added switches get no entries and the last ranks, added LIDs SL 0. If f has no more
// nodes, it copies only the tables; else it drops CAOrder.
func (r *Routing) On(f *fabric.Fabric) *Routing {
	g := r.Fabric
	same := fabric.SameNodes(f, g)
	node := func(n fabric.NodeID) fabric.NodeID {
		if !same {
			n, _ = f.NodeByGUID(g.Node(n).GUID)
		}
		return n
	}
	port := func(p fabric.PortID) fabric.PortID { return f.Port(node(g.Owner(p)), g.Num(p)) }
	c := &Routing{Engine: r.Engine, Fabric: f, Tables: NewTables(f.NumSwitches(), max(r.Tables.MaxLID(), f.MaxLID())), SL2VL: r.SL2VL}
	for _, s := range g.Switches() {
		copy(c.Tables.Row(node(s)), r.Tables.Row(s))
	}
	if same {
		c.Order, c.CAOrder, c.Notes = r.Order, r.CAOrder, r.Notes
	} else if r.Order != nil {
		c.Order = slices.Repeat([]int32{-1}, f.NumSwitches())
		for s, rank := range r.Order {
			c.Order[node(fabric.NodeID(s))] = rank
		}
		last := int32(len(r.Order))
		for s, rank := range c.Order {
			if rank < 0 {
				c.Order[s] = last
				last++
			}
		}
	}
	if r.SL2VL != nil && !same {
		c.SL2VL = NewSL2VL(f, VLMap{})
		for in, out := range r.SL2VL.PortPairs() {
			c.SL2VL.Set(in, port(out), *r.SL2VL.At(in, out))
		}
	}
	if p := r.PathSLs; p != nil {
		c.PathSLs = p.On(f.NumSwitches(), max(p.MaxLID(), c.Tables.MaxLID()), node, port)
	}
	return c
}
