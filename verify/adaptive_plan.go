package verify

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
)

// choicePlan has the data that all workers read. A set of ports of a switch is bits in several
// words; port 0 is the lowest bit of the first word.
type choicePlan struct {
	*lanes
	n     int // switches
	parts *fabric.Components
	t     *adaptive.Tables
	opt   Options
	words int // in a set of ports

	numPorts []fabric.PortNum // by switch
	toSwitch []uint64         // by switch: set of its ports to switches
	groups   []groupSets      // by switch

	slRows [][]fabric.SL // the different rows of path SLs
	units  [][]dest
}

// groupSets has, for each group of a switch, its set of ports, and
// whether it names a port that the switch lacks.
type groupSets struct {
	ports  []uint64
	beyond []bool
}

func newChoicePlan(s *state.State, opt Options, certain bool) (*choicePlan, error) {
	f := s.Fabric
	if err := s.Adaptive.Check(f); err != nil {
		return nil, err
	}
	l, err := newLanes(s, s.Adaptive, 0, certain)
	if err != nil {
		return nil, err
	}
	p := &choicePlan{lanes: l, n: f.NumSwitches(), parts: f.Components(), t: s.Adaptive, opt: opt}
	for s := range p.n {
		p.numPorts = append(p.numPorts, f.Node(fabric.NodeID(s)).NumPorts)
	}
	p.words = max(0, p.stride-1)/64 + 1
	p.toSwitch = make([]uint64, p.n*p.words)
	for s := range fabric.NodeID(p.n) {
		for num := 1; num <= int(f.Node(s).NumPorts); num++ {
			if f.PeerSwitch(f.Port(s, fabric.PortNum(num))) != fabric.NoNode {
				p.toSwitch[int(s)*p.words+num>>6] |= 1 << (num & 63)
			}
		}
	}
	p.findGroups()
	p.findKept()
	for i := range p.senders {
		row := p.senders[i].row
		if row != nil && (len(p.slRows) == 0 || &p.slRows[len(p.slRows)-1][0] != &row[0]) {
			p.slRows = append(p.slRows, row)
		}
	}
	p.findUnits()
	return p, nil
}

// findGroups makes sets of the groups' ports.
func (p *choicePlan) findGroups() {
	p.groups = make([]groupSets, p.n)
	for s := range p.groups {
		list := p.t.Groups[s]
		g := groupSets{make([]uint64, len(list)*p.words), make([]bool, len(list))}
		for i := range list {
			ports := list[i].Ports()
			ports.Each(func(num fabric.PortNum) {
				if num > p.f.Node(fabric.NodeID(s)).NumPorts {
					g.beyond[i] = true
				} else {
					g.ports[i*p.words+int(num>>6)] |= 1 << (num & 63)
				}
			})
		}
		p.groups[s] = g
	}
}

// findKept makes, by node, the sets of ports to which packets are not dropped.
func (p *choicePlan) findKept() {
	for _, c := range p.classes {
		if c.lane == nil {
			continue
		}
		c.kept = make([]uint64, len(c.nodes)*p.words)
		for x := range c.nodes {
			for out, vl := range p.row(c, int32(x)) {
				if vl != noLane {
					c.kept[x*p.words+out>>6] |= 1 << (out & 63)
				}
			}
		}
	}
}

// maxUnit is the most LIDs of a unit.
const maxUnit = 256

// findUnits divides the LIDs into units, each of LIDs behind one switch.
func (p *choicePlan) findUnits() {
	var dests []dest
	for lid := fabric.LID(1); lid <= p.f.MaxLID(); lid++ {
		if d, ok := destination(p.f, lid); ok {
			dests = append(dests, d)
		}
	}
	slices.SortFunc(dests, func(a, b dest) int { // switches last
		return cmp.Or(cmp.Compare(a.root, b.root), cmp.Compare(a.last-1, b.last-1), cmp.Compare(a.lid, b.lid))
	})
	for len(dests) > 0 {
		n := 1
		for n < len(dests) && n < maxUnit && dests[n].root == dests[0].root {
			n++
		}
		p.units = append(p.units, dests[:n])
		dests = dests[n:]
	}
}
