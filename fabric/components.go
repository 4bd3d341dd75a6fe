package fabric

// Components is the parts of a fabric that no cables join. CAs and routers do not
// forward: only cables between switches join switches.
type Components struct {
	// Of is by switch its component.
	Of []int32
	// List has the components with switches in the order of their first switches, then
	// the pairs of CA or router ports that a cable joins.
	List []Component
}

// Component is what a part of a fabric has.
type Component struct {
	Switches int
	Ports    int    // CA and router ports with a cable
	First    PortID // port 0 of the first switch; without switches a port
}

// Components finds them, in O(switches + cables).
func (f *Fabric) Components() *Components {
	c := &Components{Of: make([]int32, f.switches)}
	for s := range c.Of {
		c.Of[s] = -1
	}
	var queue []NodeID
	for s := range NodeID(f.switches) {
		if c.Of[s] >= 0 {
			continue
		}
		id := int32(len(c.List))
		x := Component{First: f.PortBase(s)}
		c.Of[s] = id
		queue = append(queue[:0], s)
		for i := 0; i < len(queue); i++ {
			x.Switches++
			_, to := f.SwitchLinks(queue[i])
			for _, t := range to {
				if c.Of[t] < 0 {
					c.Of[t] = id
					queue = append(queue, t)
				}
			}
		}
		c.List = append(c.List, x)
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

// Largest is the component with most switches, of equal ones the first.
func (c *Components) Largest() int32 {
	largest := 0
	for i := range c.List {
		if c.List[i].Switches > c.List[largest].Switches {
			largest = i
		}
	}
	return int32(largest)
}
