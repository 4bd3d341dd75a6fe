package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/traffic"
	"github.com/ibweave/ibweave/verify"
)

// Trees on which switches add up all-reduces, like those for streaming aggregation of NVIDIA SHARP.
// These public facts hold here too:
//
//   - A tree is of one job, or of one of its rails, and may be made when the job begins (NVIDIA SHARP Rev 3.5.2,
//     Operating NVIDIA SHARP in Dynamic Trees Allocation Mode).
//   - A Quantum switch runs one at a time, and a Quantum-2 switch one on each port (Rev 3.13.0, General Information). Jobs
//     lock theirs by default (Rev 3.0.0, Changes and New Features).
//   - The radix of a node is the number of its children (README of SHArP 1.1); max_tree_radix of sharp_am is at most 252.
//   - The sum comes back by multicast (Rev 3.3.0, Setting up NVIDIA SHARP Environment).
//
// How sharp_am chooses roots is not public, nor the time that a node takes,
// which is 0 here; low latency trees are not here. A tree is the routes of the
// tables to a switch, up to where all have met: the root. Jobs choose roots in
// the order of their names: that whose tree shares fewest switches and cables
// with earlier ones, then has fewest levels and switches.

// MostRadix bounds the children of a switch.
const MostRadix = 252

// Reduction is the tree of a job, or of a set of its ranks.
type Reduction struct {
	Name     string           `json:"tree"`              // of the job; a later set's has its number too
	Refused  string           `json:"refused,omitempty"` // why there is no tree
	Root     *verify.Endpoint `json:"root,omitempty"`    // port 0 of the switch; nil without a tree
	Levels   int              `json:"levels"`            // of switches
	Switches int              `json:"switches"`
	Radix    int              `json:"radix"` // most children of a switch: ports of hosts, and switches
	Cables   int              `json:"cables"`

	nodes []aggregator            // parents before children, the root first
	above map[fabric.PortID]int32 // by port of the set: index in nodes
	roots []mft.Tree              // of the sum: from Senders[0], a port of the root, to Receivers
	masks []fabric.PortID
	uses  []fabric.PortID // port 0 of each switch, and the lower port of each cable
}

// aggregator is a switch that adds up.
type aggregator struct {
	at       fabric.NodeID
	parent   int32         // index in Reduction.nodes; unused for the root
	out      fabric.PortID // its port with the cable to the parent
	children int
}

// Meeting is two trees with a switch in common.
type Meeting struct {
	Trees    [2]string       `json:"trees"`
	Switches int             `json:"switches"`
	Cables   int             `json:"cables"`
	First    verify.Endpoint `json:"first"` // of a shared cable, else port 0 of a shared switch
}

// Aggregate places the trees of all jobs, as Reductions does, and finds where they meet.
func (t *Traffic) Aggregate(tables *lft.Tables, radix int) (trees []*Reduction, meetings []*Meeting) {
	trees = slices.DeleteFunc(t.Reductions(tables, radix), func(r *Reduction) bool { return r == nil })
	on := make(map[fabric.PortID][]int32) // trees
	for i, r := range trees {
		for _, p := range r.uses {
			on[p] = append(on[p], int32(i))
		}
	}
	pairs := make(map[[2]int32]*Meeting)
	for _, p := range slices.Sorted(maps.Keys(on)) {
		for i, x := range on[p] {
			for _, y := range on[p][i+1:] {
				m := pairs[[2]int32{x, y}]
				if m == nil {
					m = &Meeting{Trees: [2]string{trees[x].Name, trees[y].Name}, First: verify.EndpointOf(t.f, p)}
					pairs[[2]int32{x, y}] = m
				}
				if t.f.Num(p) == fabric.ManagementPort {
					m.Switches++
				} else if m.Cables++; m.Cables == 1 {
					m.First = verify.EndpointOf(t.f, p)
				}
			}
		}
	}
	return trees, text.Each(sortedPairs(pairs), func(pair [2]int32) *Meeting { return pairs[pair] })
}

// Reductions places an aggregation tree for each part that has an all-reduce among several ports.
// list has an element for each part, in the order of PartsOf; nil for other parts. A
// switch has at most radix children.
func (t *Traffic) Reductions(tables *lft.Tables, radix int) (list []*Reduction) {
	x := &reducer{f: t.f, tables: tables, radix: radix, adds: make([]bool, t.f.NumSwitches()), used: make(map[fabric.PortID]bool)}
	for _, s := range t.f.Switches() {
		x.adds[s] = t.f.LID(t.f.PortBase(s)) != 0 && slices.ContainsFunc(t.f.EndPortsOn(s), func(p fabric.PortID) bool {
			return t.f.Kind(t.f.Owner(p)) == fabric.AggregationKind
		})
	}
	for _, j := range t.jobs {
		for set := 0; set < len(j.streams) && j.streams[set].set == set; set++ { // the first pattern has all sets
			ends := j.streams[set].end
			ports := text.Each(ends[:len(ends)-j.streams[set].storage], func(e int32) fabric.PortID { return j.ends[e] })
			slices.Sort(ports)
			ports = slices.Compact(ports)
			var r *Reduction
			if len(ports) > 1 && slices.ContainsFunc(j.streams, func(s stream) bool { return s.set == set && s.operation.AllReduce }) {
				r = x.place(ports)
				if r.Name = j.name; set > 0 {
					r.Name = fmt.Sprintf("%s, set %d", j.name, set+1)
				}
			}
			list = append(list, r)
		}
	}
	return list
}

type reducer struct {
	f      *fabric.Fabric
	tables *lft.Tables
	radix  int
	adds   []bool // by switch: it has an aggregation node and a LID
	used   map[fabric.PortID]bool
}

// place returns the best tree for some ports; if there is none, only Refused is set.
func (x *reducer) place(ports []fabric.PortID) *Reduction {
	best, least := &Reduction{Refused: "no switch has an aggregation node and a LID"}, []int(nil)
	for root, adds := range x.adds {
		if !adds {
			continue
		}
		if r, err := x.grow(ports, fabric.NodeID(root)); err == nil {
			shared := text.CountIf(r.uses, func(p fabric.PortID) bool { return x.used[p] })
			if cost := []int{shared, r.Levels, r.Switches}; least == nil || slices.Compare(cost, least) < 0 {
				best, least = r, cost
			}
		} else if least == nil {
			best.Refused = err.Error()
		}
	}
	for _, p := range best.uses {
		x.used[p] = true
	}
	return best
}

// grow makes the tree of some ports from their routes to switch root.
func (x *reducer) grow(ports []fabric.PortID, root fabric.NodeID) (*Reduction, error) {
	f, index := x.f, map[fabric.NodeID]int32{root: 0}
	nodes := []aggregator{{at: root}}
	for _, p := range ports {
		at := f.PeerSwitch(p)
		path, err := x.tables.Path(f, f.PortBase(at), f.LID(f.PortBase(root)), nil)
		if err != nil {
			return nil, err
		}
		for _, out := range slices.Backward(path) {
			s, parent := f.Owner(out), index[f.PeerSwitch(out)]
			if _, known := index[s]; known {
				continue
			}
			if !x.adds[s] {
				return nil, fmt.Errorf("%s has no aggregation node and LID", f.Name(s))
			}
			nodes[parent].children++
			index[s] = int32(len(nodes))
			nodes = append(nodes, aggregator{at: s, parent: parent, out: out})
		}
		nodes[index[at]].children++
	}
	first := int32(0)
	for nodes[first].children == 1 { // a switch with one child adds nothing up
		first++
	}
	end := verify.EndpointOf(f, f.PortBase(nodes[first].at))
	r := &Reduction{nodes: nodes[first:], above: make(map[fabric.PortID]int32), Root: &end}
	for i := range r.nodes {
		a := &r.nodes[i]
		if a.children > x.radix {
			return nil, fmt.Errorf("%s has %d children, and the radix is %d", f.Name(a.at), a.children, x.radix)
		}
		if i > 0 {
			a.parent -= first
			r.join(f, a.out)
		}
		r.Radix, r.Switches = max(r.Radix, a.children), i+1
		r.uses = append(r.uses, f.PortBase(a.at))
	}
	behind := make(map[fabric.PortID][]fabric.PortID) // by port of the root: the ports below it
	for _, p := range ports {
		r.join(f, p)
		from, i, level := f.Peer(p), index[f.PeerSwitch(p)]-first, 1
		for r.above[p] = i; i > 0; i = r.nodes[i].parent {
			from = f.Peer(r.nodes[i].out)
			level++
		}
		r.Levels = max(r.Levels, level)
		behind[from] = append(behind[from], p)
	}
	for _, from := range slices.Sorted(maps.Keys(behind)) {
		r.roots = append(r.roots, mft.Tree{Senders: []fabric.PortID{from}, Receivers: behind[from]})
	}
	slices.Sort(r.masks)
	r.Cables = len(r.uses) - r.Switches
	return r, nil
}

// join adds to r the cable at p, by which p sends to its parent and gets the sum.
func (r *Reduction) join(f *fabric.Fabric, p fabric.PortID) {
	q := f.Peer(p)
	r.uses, r.masks = append(r.uses, min(p, q)), append(r.masks, q)
}

// addTo appends ranks to a part: one for each switch but the root, children
// before parents, then one for each port by which the root sends. It returns
// the tree by ranks; nil if r is nil.
func (r *Reduction) addTo(p *WorkPart) *traffic.Reduction {
	if r == nil {
		return nil
	}
	var ports []fabric.PortID
	for _, a := range slices.Backward(r.nodes[1:]) {
		ports = append(ports, a.out)
	}
	for _, t := range r.roots {
		ports = append(ports, t.Senders[0])
	}
	root := int32(len(p.Ports) + len(r.nodes) - 1)
	x := &traffic.Reduction{}
	for i, port := range ports {
		rank := int32(len(p.Ports))
		p.Ports, p.Hosts = append(p.Ports, port), append(p.Hosts, -1-rank)
		if i >= len(r.nodes)-1 {
			x.Roots = append(x.Roots, rank)
		}
	}
	p.Nodes = len(ports)
	x.Parent = slices.Repeat([]int32{traffic.None}, len(p.Ports))
	to := make(map[fabric.PortID]int32)
	for port, node := range r.above {
		to[port] = root - node
	}
	for rank := p.Ranks - 1; rank >= 0; rank-- { // the last rank of a port sends to its switch, others to the next
		x.Parent[rank], to[p.Ports[rank]] = to[p.Ports[rank]], int32(rank)
	}
	for i := 1; i < len(r.nodes); i++ {
		x.Parent[root-int32(i)] = root - r.nodes[i].parent
	}
	return x
}

// Down returns the multicast tables that bring the sums of trees back, each with its own MLID. The
// plan's Trees have the name of the part, and what each port sends to whom. The error is a
// *mft.RefusedError if a tree is missing, or an MLID for it.
func Down(f *fabric.Fabric, list []*Reduction) (*mft.Plan, error) {
	plan := &mft.Plan{Tables: mft.NewTables(f)}
	mlid := mft.MinMLID
	for i, r := range list {
		if r == nil {
			continue
		}
		if mlid++; r.Refused != "" || mlid > mft.MaxMLID {
			return nil, &mft.RefusedError{Scheme: "sharp", Group: r.Name, Reason: cmp.Or(r.Refused, "there are more trees than MLIDs")}
		}
		plan.Tables.Add(mlid, r.masks)
		for _, t := range r.roots {
			t.Name, t.MLID = fmt.Sprintf("part %d", i), mlid
			plan.Trees = append(plan.Trees, t)
		}
	}
	return plan, nil
}
