package verify

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
)

// choicePlan is what all workers read. Sets of the ports of a switch are words of bits, port 0 the
// lowest bit of the first.
type choicePlan struct {
	*plan // without tables
	t     *adaptive.Tables
	read  *state.State
	opt   Options
	words int

	vls      []fabric.VL      // those in use, ascending; one stands for all if they are copies
	copies   []fabric.VL      // all VLs, each of which is a copy of one network
	numPorts []fabric.PortNum // by switch
	toSwitch []uint64         // by switch: its ports that are cabled to switches
	groups   []groupSets      // by switch

	classes []*class
	senders []senderGroup // CA and router ports by switch, then port 0 of each switch
	slRows  [][]fabric.SL // the different rows of path SLs
	ports0  int           // where the latter begin
	units   [][]dest

	certain bool // packets of unknown SL are left out; else they have any
}

// groupSets is the groups of a switch: their ports, words for each, and whether one has a
// port that the switch lacks.
type groupSets struct {
	ports  []uint64
	beyond []bool
}

// class is SLs whose packets are treated alike everywhere.
type class struct {
	sl    fabric.SL // the lowest
	sls   uint16
	node  []int32 // by PortID of a switch: the node of packets that come in by the port
	next  []int32 // by PortID of a switch: the node that packets come to which leave by the port; -1 for none
	nodes []node
	// lanes is by node and VL the output ports to which packets take it, words for each; nil
	// where all take one VL and none are dropped.
	lanes []uint64
}

// node is a switch with some of its input ports, by which packets meet the same tables.
type node struct {
	s    int32
	base int32          // PortID of port 0 of the switch
	plft int32          // or anyPLFT
	in   fabric.PortNum // one of the ports
	// own says that the packets are the switch's, which it sends by no port that drops them,
	// as their SL may be another.
	own bool
}

const anyPLFT = -1

// senderGroup is ports whose packets come into a switch at the same nodes with the same SLs.
type senderGroup struct {
	s     int32
	in    fabric.PortID   // the port of the switch that those of the first come in by
	ports []fabric.PortID // the end ports
	row   []fabric.SL     // by LID; nil for any of may
	may   uint16          // SLs that their own tables do not drop
}

func newChoicePlan(s *state.State, opt Options, certain bool) (*choicePlan, error) {
	f := s.Fabric
	if err := s.Adaptive.Check(f); err != nil {
		return nil, err
	}
	if err := lft.CheckFabric(f, nil, s.SL2VL, nil); err != nil {
		return nil, err
	}
	p := &choicePlan{plan: &plan{f: f, n: f.NumSwitches(), parts: f.Components()}, t: s.Adaptive, read: s, opt: opt, certain: certain}
	inUse, err := slsInUse(f, s.PathSLs)
	if err != nil {
		return nil, err
	}
	most := 0
	for s := range p.n {
		p.numPorts = append(p.numPorts, f.Node(fabric.NodeID(s)).NumPorts)
		most = max(most, int(p.numPorts[s]))
	}
	p.words = most/64 + 1
	p.toSwitch = make([]uint64, p.n*p.words)
	for s := range fabric.NodeID(p.n) {
		for num := 1; num <= int(f.Node(s).NumPorts); num++ {
			if f.PeerSwitch(f.Port(s, fabric.PortNum(num))) != fabric.NoNode {
				p.toSwitch[int(s)*p.words+num>>6] |= 1 << (num & 63)
			}
		}
	}
	p.findGroups()
	p.findClasses(inUse)
	p.findSenders()
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

// selections numbers the SLs by the PLFTs that they take: equal ones take the same
// everywhere.
func (p *choicePlan) selections() (number [lft.NumSLs]int) {
	if p.t.Select == nil {
		return number
	}
	type key struct {
		number int
		plft   uint8
	}
	for s := range fabric.NodeID(p.n) {
		for in := range int(p.f.Node(s).NumPorts) + 1 {
			row := p.t.Select.Row(s, fabric.PortNum(in))
			known := make(map[key]int)
			for sl, plft := range row {
				k := key{number[sl], plft}
				if _, ok := known[k]; !ok {
					known[k] = len(known)
				}
				number[sl] = known[k]
			}
		}
	}
	return number
}

// findClasses makes the classes of the SLs in use, their nodes, and the VLs.
func (p *choicePlan) findClasses(inUse uint16) {
	var maps []lft.VLMap
	if p.read.SL2VL != nil {
		maps = mapsInUse(p.f, p.read.SL2VL, true)
	}
	selected := p.selections()
	// With one map everywhere each VL is a copy of the network, unless SLs differ otherwise.
	copies := p.read.PathSLs == nil && len(maps) == 1
	for set := inUse; set != 0; set &= set - 1 {
		copies = copies && selected[lowestSL(set)] == selected[lowestSL(inUse)]
	}
	for _, set := range slClasses(inUse, func(a, b fabric.SL) bool {
		return selected[a] == selected[b] && !slices.ContainsFunc(maps, func(m lft.VLMap) bool {
			return m[a] != m[b] && !(copies && m[a] != lft.DropVL && m[b] != lft.DropVL)
		})
	}) {
		p.classes = append(p.classes, &class{sl: lowestSL(set), sls: set})
	}
	p.vls = vlsInUse(inUse, maps)
	p.copies = p.vls
	if copies {
		p.vls = p.vls[:1]
	} else {
		p.copies = nil
	}
	for _, c := range p.classes {
		p.findNodes(c, slices.ContainsFunc(maps, func(m lft.VLMap) bool { return m[c.sl] == lft.DropVL }))
	}
}

// laneOf is the place in p.vls of the VL of packets of a class that come into a switch by a
// port and leave it by another; -1 where they are dropped. It is 0 for ports without a cable.
func (p *choicePlan) laneOf(c *class, in fabric.PortNum, out fabric.PortID) int {
	if p.read.SL2VL == nil || p.f.Peer(out) == fabric.NoPort {
		return 0
	}
	vl := p.read.SL2VL.At(in, out)[c.sl]
	if vl == lft.DropVL {
		return -1
	}
	if p.copies != nil {
		return 0
	}
	i, _ := slices.BinarySearch(p.vls, vl)
	return i
}

// findNodes makes the nodes of a class, of which some port may drop packets.
func (p *choicePlan) findNodes(c *class, drops bool) {
	f := p.f
	c.node = make([]int32, f.PortBase(fabric.NodeID(p.n)))
	for s := range fabric.NodeID(p.n) {
		first := len(c.nodes)
		num := int(f.Node(s).NumPorts)
		for i := range num + 1 {
			in := fabric.PortNum(i)
			x := node{s: int32(s), base: int32(f.PortBase(s)), plft: anyPLFT, in: in}
			if p.t.Select != nil {
				x.plft = int32(p.t.Select.PLFT(s, in, c.sl))
			} else if len(p.t.PLFTs) == 1 {
				x.plft = 0
			}
			x.own = i == 0 && p.read.PathSLs == nil && p.dropsSome(c, s, in)
			same := func(y node) bool {
				if x.plft != y.plft || x.own != y.own {
					return false
				}
				for out := 1; p.read.SL2VL != nil && out <= num; out++ {
					port := f.Port(s, fabric.PortNum(out))
					if p.laneOf(c, x.in, port) != p.laneOf(c, y.in, port) {
						return false
					}
				}
				return true
			}
			at := first + slices.IndexFunc(c.nodes[first:], same)
			if at < first {
				at = len(c.nodes)
				c.nodes = append(c.nodes, x)
			}
			c.node[f.Port(s, in)] = int32(at)
		}
	}
	c.next = make([]int32, len(c.node))
	for out := range c.next {
		c.next[out] = -1
		if f.PeerSwitch(fabric.PortID(out)) != fabric.NoNode {
			c.next[out] = c.node[f.Peer(fabric.PortID(out))]
		}
	}
	if len(p.vls) == 1 && !drops {
		return
	}
	c.lanes = make([]uint64, len(c.nodes)*len(p.vls)*p.words)
	for i, x := range c.nodes {
		for out := range int(f.Node(fabric.NodeID(x.s)).NumPorts) + 1 {
			if vl := p.laneOf(c, x.in, f.Port(fabric.NodeID(x.s), fabric.PortNum(out))); vl >= 0 {
				c.lanes[(i*len(p.vls)+vl)*p.words+out>>6] |= 1 << (out & 63)
			}
		}
	}
}

// dropsSome says whether packets of a class that come into a switch by a port are dropped
// at some other port.
func (p *choicePlan) dropsSome(c *class, s fabric.NodeID, in fabric.PortNum) bool {
	for num := 1; num <= int(p.f.Node(s).NumPorts); num++ {
		if p.laneOf(c, in, p.f.Port(s, fabric.PortNum(num))) < 0 {
			return true
		}
	}
	return false
}

// findSenders lists the senders.
func (p *choicePlan) findSenders() {
	f := p.f
	add := func(first int, port, in fabric.PortID, may uint16) {
		x := senderGroup{s: int32(f.Owner(in)), in: in, ports: []fabric.PortID{port}, may: may}
		if sls := p.read.PathSLs; sls != nil {
			if x.row = sls.PortRow(port); x.row == nil {
				x.row = sls.Given(f.Owner(in))
			}
		}
		for i := first; i < len(p.senders); i++ {
			y := &p.senders[i]
			differ := func(c *class) bool { return c.node[x.in] != c.node[y.in] }
			if x.may == y.may && (x.row == nil || &x.row[0] == &y.row[0]) && !slices.ContainsFunc(p.classes, differ) {
				y.ports = append(y.ports, port)
				return
			}
		}
		p.senders = append(p.senders, x)
	}
	for s := range fabric.NodeID(p.n) {
		first := len(p.senders)
		for _, port := range f.EndPortsOn(s) {
			may := uint16(0xffff)
			if p.read.SL2VL != nil {
				for sl, vl := range p.read.SL2VL.At(0, port) {
					if vl == lft.DropVL {
						may &^= 1 << sl
					}
				}
			}
			add(first, port, f.Peer(port), may)
		}
	}
	p.ports0 = len(p.senders)
	for s := range fabric.NodeID(p.n) {
		port := f.PortBase(s)
		add(len(p.senders), port, port, 0xffff)
	}
}

// sends says whether a sender's packets for a LID can be of a class.
func (p *choicePlan) sends(x *senderGroup, c *class, lid fabric.LID) bool {
	set := c.sls & x.may
	if x.row != nil {
		switch sl := x.row[lid]; {
		case sl != lft.UnknownSL:
			set &= 1 << sl
		case p.certain:
			set = 0
		}
	} else if p.certain && p.read.UnknownSLs {
		set = 0
	}
	return set != 0
}

// maxUnit bounds the LIDs of a unit.
const maxUnit = 256

// findUnits deals the LIDs out, those of one root together.
func (p *choicePlan) findUnits() {
	var dests []dest
	for lid := fabric.LID(1); lid <= p.f.MaxLID(); lid++ {
		if d, ok := p.destination(lid); ok {
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
