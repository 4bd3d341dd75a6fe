package verify

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
)

// lanes tells which tables packets meet, by their SL and by the port where they enter a switch:
// these determine the VL on which a packet leaves the switch, and its PLFT there. SLs whose packets
// meet the same tables everywhere are one class. A set of classes has a bit for each.
type lanes struct {
	f        *fabric.Fabric
	sl2vl    *lft.SL2VL         // nil for one VL
	sls      *lft.PathSLs       // nil if a port may send with any SL
	hidden   bool               // without sls: each path has one SL, which is not known
	selector *adaptive.Selector // nil if all packets take one PLFT
	plft     int32              // without a selector: the PLFT of all packets, or anyPLFT

	// certain leaves out packets of unknown SL, so that findings hold for all SLs that they may have.
	// Otherwise such packets may have any SL.
	certain bool

	vls     []fabric.VL // VLs in use, ascending; only the first if they are copies
	copies  []fabric.VL // all VLs, if each is a copy of the same network; else nil
	uniform bool        // VLs are copies, and some SL is dropped nowhere
	drops   bool        // some packets are dropped
	classes []*class
	classOf [lft.NumSLs]uint8 // by SL in use: index in classes
	stride  int               // length of a node's part of class.lane
	senders []senderGroup     // CA and router ports by switch, then port 0 of each switch
	ports0  int               // index of the first port 0
}

// class is a set of SLs whose packets are treated alike everywhere.
type class struct {
	bit   uint16
	sl    fabric.SL // the lowest
	sls   uint16
	node  []int32 // by PortID of a switch: the node of packets that enter by the port
	next  []int32 // by PortID of a switch: the node that packets enter after the port; -1 for none
	nodes []node
	// lane has, by node and output port, stride for each node, the index in vls of the VL on which
	// packets leave, or noLane if they are dropped. It is nil if all take one VL and none are dropped.
	lane []int8
	// kept has, by node, the set of ports to which packets are not dropped, for a search of choices;
	// nil without lane.
	kept []uint64
}

const noLane = -1

// node is a switch with a set of its input ports, whose packets meet the same tables.
type node struct {
	s    int32
	base int32          // PortID of port 0 of the switch
	plft int32          // or anyPLFT
	in   fabric.PortNum // one of the input ports
	// own is true for a switch's own packets of unknown SL if some output port drops the class. By
	// that port the switch sends with another SL.
	own bool
}

const anyPLFT = -1

// senderGroup has end ports whose packets enter a switch at the same nodes with the same SLs.
type senderGroup struct {
	s     int32
	in    fabric.PortID   // the switch port that packets of the first end port enter
	ports []fabric.PortID // the end ports
	hosts int             // number of ports that count for load
	row   []fabric.SL     // SL by LID; nil for any
	may   uint16          // classes that the ports' own SL-to-VL tables do not drop
}

// newLanes finds classes, nodes and senders of a state, for adaptive tables t or, if t is nil, its
// static ones. The set also has SLs in use besides those of paths. Errors are those of checkLanes.
func newLanes(s *state.State, t *adaptive.Tables, also uint16, certain bool) (*lanes, error) {
	l := &lanes{f: s.Fabric, sl2vl: s.SL2VL, sls: s.PathSLs, hidden: s.UnknownSLs, certain: certain}
	inUse, err := checkLanes(l.f, l.sl2vl, l.sls)
	if err != nil {
		return nil, err
	}
	inUse |= also
	if t != nil {
		l.selector = t.Select
		if len(t.PLFTs) > 1 {
			l.plft = anyPLFT
		}
	}
	for _, s := range l.f.Switches() {
		l.stride = max(l.stride, int(l.f.Node(s).NumPorts)+1)
	}
	l.findClasses(inUse, t != nil)
	l.findSenders()
	return l, nil
}

// selections numbers the SLs: those that take the same PLFTs everywhere have
// equal numbers.
func (l *lanes) selections() (number [lft.NumSLs]int) {
	if l.selector == nil {
		return number
	}
	type key struct {
		number int
		plft   uint8
	}
	for _, s := range l.f.Switches() {
		for in := range int(l.f.Node(s).NumPorts) + 1 {
			known := make(map[key]int)
			for sl, plft := range l.selector.Row(s, fabric.PortNum(in)) {
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

// findClasses makes the classes of the SLs in use, with their nodes, and the VLs. If turns is set,
// packets may leave a switch by the port where they entered.
func (l *lanes) findClasses(inUse uint16, turns bool) {
	var maps []lft.VLMap
	if l.sl2vl != nil {
		maps = mapsInUse(l.f, l.sl2vl, turns)
	}
	selected := l.selections()
	// With one map everywhere VLs are copies of one network, if SLs do not differ otherwise.
	copies := l.sls == nil && len(maps) == 1 && !(l.certain && l.hidden)
	for set := inUse; set != 0; set &= set - 1 {
		copies = copies && selected[lowestSL(set)] == selected[lowestSL(inUse)]
	}
	for i, set := range slClasses(inUse, func(a, b fabric.SL) bool {
		return selected[a] == selected[b] && !slices.ContainsFunc(maps, func(m lft.VLMap) bool {
			return m[a] != m[b] && !(copies && m[a] != lft.DropVL && m[b] != lft.DropVL)
		})
	}) {
		l.classes = append(l.classes, &class{bit: 1 << i, sl: lowestSL(set), sls: set})
		for ; set != 0; set &= set - 1 {
			l.classOf[lowestSL(set)] = uint8(i)
		}
	}
	l.vls = vlsInUse(inUse, maps)
	if copies {
		l.copies, l.vls = l.vls, l.vls[:1]
	}
	for _, c := range l.classes {
		drops := slices.ContainsFunc(maps, func(m lft.VLMap) bool { return m[c.sl] == lft.DropVL })
		l.drops, l.uniform = l.drops || drops, l.uniform || copies && !drops
		l.findNodes(c)
		if len(l.vls) == 1 && !drops {
			c.lane = nil
		}
	}
}

// findNodes makes the nodes of a class.
func (l *lanes) findNodes(c *class) {
	f := l.f
	var lanes []int8 // by number of a map
	if l.sl2vl != nil {
		for _, m := range l.sl2vl.Maps() {
			i, known := slices.BinarySearch(l.vls, m[c.sl])
			switch {
			case m[c.sl] == lft.DropVL:
				i = noLane
			case l.copies != nil || !known: // no packet meets a map that is not in use
				i = 0
			}
			lanes = append(lanes, int8(i))
		}
	}
	c.node = make([]int32, f.PortBase(fabric.NodeID(f.NumSwitches())))
	row := make([]int8, l.stride)
	for _, s := range f.Switches() {
		first := len(c.nodes)
		for i := range int(f.Node(s).NumPorts) + 1 {
			x := node{s: int32(s), base: int32(f.PortBase(s)), plft: l.plft, in: fabric.PortNum(i)}
			if l.selector != nil {
				x.plft = int32(l.selector.PLFT(s, x.in, c.sl))
			}
			clear(row)
			for out := f.PortBase(s) + 1; lanes != nil && out <= f.PortBase(s)+fabric.PortID(f.Node(s).NumPorts); out++ {
				if f.Peer(out) != fabric.NoPort {
					row[f.Num(out)] = lanes[l.sl2vl.Index(x.in, out)]
				}
			}
			x.own = i == 0 && l.sls == nil && slices.Contains(row, noLane)
			at := first
			for at < len(c.nodes) && (x.plft != c.nodes[at].plft || x.own != c.nodes[at].own || !slices.Equal(row, l.row(c, int32(at)))) {
				at++
			}
			if at == len(c.nodes) {
				c.nodes, c.lane = append(c.nodes, x), append(c.lane, row...)
			}
			c.node[f.Port(s, x.in)] = int32(at)
		}
	}
	c.next = make([]int32, len(c.node))
	for out := range c.next {
		c.next[out] = -1
		if f.PeerSwitch(fabric.PortID(out)) != fabric.NoNode {
			c.next[out] = c.node[f.Peer(fabric.PortID(out))]
		}
	}
}

// allVLs returns the VLs in use, ascending.
func (l *lanes) allVLs() []fabric.VL {
	if l.copies != nil {
		return l.copies
	}
	return l.vls
}

// tracks returns true if VLs are not copies of one network, so packets must be followed by VL.
func (l *lanes) tracks() bool { return l != nil && !l.uniform }

// row returns the part of lane of node x.
func (l *lanes) row(c *class, x int32) []int8 {
	return c.lane[int(x)*l.stride : (int(x)+1)*l.stride]
}

// laneOf returns the index in vls of the VL of packets that leave node x by port out, or noLane if
// they are dropped.
func (l *lanes) laneOf(c *class, x int32, out fabric.PortNum) int {
	if c.lane == nil {
		return 0
	}
	return int(c.lane[int(x)*l.stride+int(out)])
}

// findSenders sets senders and ports0.
func (l *lanes) findSenders() {
	f := l.f
	add := func(first int, port, in fabric.PortID, may uint16) {
		x := senderGroup{s: int32(f.Owner(in)), in: in, ports: []fabric.PortID{port}, may: may}
		if f.PortCounts(port, fabric.ForLoad) {
			x.hosts = 1
		}
		if l.sls != nil {
			x.row = l.slsFrom(port, f.Owner(in))
		}
		for i := first; i < len(l.senders); i++ {
			y := &l.senders[i]
			differ := func(c *class) bool { return c.node[x.in] != c.node[y.in] }
			if x.may == y.may && (x.row == nil || &x.row[0] == &y.row[0]) && !slices.ContainsFunc(l.classes, differ) {
				y.ports, y.hosts = append(y.ports, port), y.hosts+x.hosts
				return
			}
		}
		l.senders = append(l.senders, x)
	}
	for _, s := range f.Switches() {
		first := len(l.senders)
		for _, port := range f.EndPortsOn(s) {
			may := uint16(0)
			for _, c := range l.classes {
				if l.sl2vl == nil || l.sl2vl.At(0, port)[c.sl] != lft.DropVL {
					may |= c.bit
				}
			}
			add(first, port, f.Peer(port), may)
		}
	}
	l.ports0 = len(l.senders)
	for _, s := range f.Switches() {
		port := f.PortBase(s)
		add(len(l.senders), port, port, 0xffff)
	}
}

// wants returns the classes that a sender's packets for a LID may have: the class of the path's SL,
// or all classes, with known false, if they may have any SL.
func (l *lanes) wants(x *senderGroup, lid fabric.LID) (set uint16, known bool) {
	if x.row != nil && x.row[lid] != lft.UnknownSL {
		return 1 << l.classOf[x.row[lid]], true
	}
	return 1<<len(l.classes) - 1, false
}

// leavesOut returns true if packets of x with unknown SLs are to be left out: certain is set, there
// are several classes, and path SLs are hidden or known in part.
func (l *lanes) leavesOut(x *senderGroup) bool {
	return l.certain && len(l.classes) > 1 && (x.row != nil || l.hidden)
}

// sends returns true if a sender's packets for a LID may have class c.
func (l *lanes) sends(x *senderGroup, c *class, lid fabric.LID) bool {
	set, known := l.wants(x, lid)
	return set&x.may&c.bit != 0 && (known || !l.leavesOut(x))
}

// slsFrom returns, by LID, the SLs of paths from a source port on switch s.
func (l *lanes) slsFrom(source fabric.PortID, s fabric.NodeID) []fabric.SL {
	if row := l.sls.PortRow(source); row != nil {
		return row
	}
	return l.sls.Given(s)
}

// fromCAs lists the channels by which packets leave CAs and routers into switches, with number 0.
// sent returns the classes that a port of a sender sends.
func (l *lanes) fromCAs(sent func(sender int, port fabric.PortID) uint16) (list []NumberedChannel) {
	for i := range l.senders[:l.ports0] {
		for _, port := range l.senders[i].ports {
			for set := sent(i, port) & l.senders[i].may; set != 0; set &= set - 1 {
				for sls := l.classes[bits.TrailingZeros16(set)].sls; sls != 0; sls &= sls - 1 {
					ch := NumberedChannel{GUID: l.f.Node(l.f.Owner(port)).GUID, Port: l.f.Num(port)}
					if l.sl2vl != nil {
						ch.VL = l.sl2vl.At(0, port)[lowestSL(sls)]
					}
					list = append(list, ch)
				}
			}
		}
	}
	slices.SortFunc(list, NumberedChannel.Compare)
	return slices.Compact(list)
}

// checkLanes returns the set of SLs that paths have. It returns an error for SL-to-VL tables and
// path SLs of another fabric, and for SLs and VLs that do not exist.
func checkLanes(f *fabric.Fabric, s *lft.SL2VL, sls *lft.PathSLs) (inUse uint16, err error) {
	if s != nil {
		if err := lft.CheckFabric(f, nil, s, nil); err != nil {
			return 0, err
		}
		for _, m := range s.Maps() {
			if vl := slices.Max(m[:]); vl > lft.DropVL {
				return 0, fmt.Errorf("an SL-to-VL table has VL %d: want 0 to %d", vl, lft.DropVL)
			}
		}
	}
	return slsInUse(f, sls)
}

// slsInUse returns the set of SLs that paths have: all if sls is nil or has an unknown SL. It
// returns an error for path SLs of another fabric, and for SLs that do not exist.
func slsInUse(f *fabric.Fabric, sls *lft.PathSLs) (inUse uint16, err error) {
	if err := lft.CheckFabric(f, nil, nil, sls); err != nil || sls == nil {
		return 0xffff, err
	}
	var seen [256]bool
	rows := make(map[*fabric.SL]bool) // switches share them
	look := func(row []fabric.SL) {
		if row = row[:int(f.MaxLID())+1]; rows[&row[0]] {
			return
		}
		rows[&row[0]] = true
		for _, sl := range row[1:] {
			seen[sl] = true
		}
	}
	for _, n := range f.Switches() {
		look(sls.Given(n))
	}
	for _, port := range sls.Ports() {
		if int(port) >= f.NumPorts() {
			return 0, fmt.Errorf("path SLs of port %d, the fabric has %d", port, f.NumPorts())
		}
		look(sls.PortRow(port))
	}
	if seen[lft.UnknownSL] {
		return 0xffff, nil
	}
	for sl, ok := range seen {
		if ok && sl >= lft.NumSLs {
			return 0, fmt.Errorf("a path has SL %d: want 0 to %d", sl, lft.NumSLs-1)
		}
		if ok {
			inUse |= 1 << sl
		}
	}
	return inUse, nil
}

// mapsInUse lists the SL-to-VL maps that packets may meet; if turns is set, packets may leave a
// switch by the port where they entered.
func mapsInUse(f *fabric.Fabric, s *lft.SL2VL, turns bool) (maps []lft.VLMap) {
	used := make([]bool, len(s.Maps()))
	for in, out := range s.PortPairs() {
		if turns || in != f.Num(out) || !f.IsSwitch(f.Owner(out)) {
			used[s.Index(in, out)] = true
		}
	}
	for m, ok := range used {
		if ok {
			maps = append(maps, s.Maps()[m])
		}
	}
	return maps
}

// slClasses divides a set of SLs into sets whose SLs are alike.
func slClasses(set uint16, alike func(a, b fabric.SL) bool) (classes []uint16) {
	for ; set != 0; set &= set - 1 {
		sl := lowestSL(set)
		i := slices.IndexFunc(classes, func(class uint16) bool { return alike(lowestSL(class), sl) })
		if i < 0 {
			i = len(classes)
			classes = append(classes, 0)
		}
		classes[i] |= 1 << sl
	}
	return classes
}

func lowestSL(set uint16) fabric.SL { return fabric.SL(bits.TrailingZeros16(set)) }

// vlsInUse lists the VLs that SLs of a set have in maps; VL 0 if there are none.
func vlsInUse(set uint16, maps []lft.VLMap) (vls []fabric.VL) {
	for ; set != 0; set &= set - 1 {
		for _, m := range maps {
			if vl := m[lowestSL(set)]; vl != lft.DropVL {
				vls = append(vls, vl)
			}
		}
	}
	if len(vls) == 0 {
		return []fabric.VL{0}
	}
	slices.Sort(vls)
	return slices.Compact(vls)
}
