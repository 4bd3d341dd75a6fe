package verify

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// lanes is SL-to-VL tables and path SLs in the form that a check wants. SLs
// that have the same VL as each other from every input to every output port are one
// class: their packets can be told apart nowhere. Sets of classes are bits.
type lanes struct {
	*channels // of the VLs that the classes have

	sl2vl   *lft.SL2VL
	sls     *lft.PathSLs
	class   [lft.NumSLs]uint8       // by SL, of those that paths have
	first   []fabric.SL             // by class: its lowest SL
	classes uint16                  // all classes
	maps    []classMap              // by lft.SL2VL.Index, and one more that drops nothing
	others  [][]fabric.SL           // rows of source ports of their own
	rows    map[fabric.PortID]int32 // which of others a source port has
	own     []int32                 // by switch: the row in others of its port 0, or noRow

	// certain says that paths of unknown SL have none, so that what is found is so
	// whatever SLs they have. Else they have all.
	certain bool

	// uniform says that all ports have the same map and that any port may send
	// with any SL. Then each VL is a copy of the network with one.
	uniform   bool
	drops     bool             // some map drops a class
	peer      []fabric.PortNum // by PortID of a switch: the port's number at the other end of the cable
	senders   []senders
	sendersAt []int32 // by PortID of a switch: its part of senders; one more at the end

	// What the workers found, together, since it is large. Those in all are
	// without those in unicast until graphs puts them together.
	unicast, all   *dependencyGraph
	ends, idleEnds []uint64 // a bit by channel: paths of unicast packets end with it, and of others
}

// classMap is an SL-to-VL map by class.
type classMap struct {
	live uint16            // classes that are not dropped
	vl   [lft.NumSLs]uint8 // by class of live: which one of channels.vl
}

// senders are CA and router ports on one switch whose packets meet the same
// tables when they leave it by one port.
type senders struct {
	n     uint32
	hosts uint32 // of n: those that count for load
	may   uint16 // classes that their own tables do not drop
	m     uint16 // the map at the switch
	row   int32  // in lanes.others, or noRow
}

// noRow stands for the path SLs of the switch.
const noRow = -1

// newLanes returns nil without SL-to-VL tables. SLs that multicast packets have
// are in use as well as those of paths. Errors: tables that are not of this fabric,
// and SLs and VLs that do not exist.
func newLanes(f *fabric.Fabric, s *lft.SL2VL, sls *lft.PathSLs, multicast uint16, certain bool) (*lanes, error) {
	inUse, err := checkLanes(f, s, sls)
	if s == nil || err != nil {
		return nil, err
	}
	inUse |= multicast
	l := &lanes{sl2vl: s, sls: sls, certain: certain}
	maps := mapsInUse(f, s, false)
	for i, set := range slClasses(inUse, func(a, b fabric.SL) bool {
		return !slices.ContainsFunc(maps, func(m lft.VLMap) bool { return m[a] != m[b] })
	}) {
		l.first = append(l.first, lowestSL(set))
		for ; set != 0; set &= set - 1 {
			l.class[lowestSL(set)] = uint8(i)
		}
	}
	l.classes = uint16(1<<len(l.first) - 1)
	l.channels = newChannels(f, vlsInUse(inUse, maps)...)
	for _, m := range s.Maps() {
		l.maps = append(l.maps, l.byClass(&m))
	}
	l.maps = append(l.maps, classMap{live: l.classes})
	for _, m := range maps {
		live := l.byClass(&m).live
		l.drops = l.drops || live != l.classes
		l.uniform = live != 0 && len(maps) == 1 && sls == nil
	}
	if !l.uniform {
		l.prepare()
	}
	return l, nil
}

// checkLanes says whether SL-to-VL tables and path SLs can be those of a
// fabric, and which SLs paths have.
func checkLanes(f *fabric.Fabric, s *lft.SL2VL, sls *lft.PathSLs) (inUse uint16, err error) {
	if s == nil {
		return 0, nil
	}
	if err := lft.CheckFabric(f, nil, s, nil); err != nil {
		return 0, err
	}
	for _, m := range s.Maps() {
		if vl := slices.Max(m[:]); vl > lft.DropVL {
			return 0, fmt.Errorf("an SL-to-VL table has VL %d: want 0 to %d", vl, lft.DropVL)
		}
	}
	return slsInUse(f, sls)
}

// slsInUse is the SLs that paths have, a bit each: all where sls is nil or some path has an unknown one.
// Errors: path SLs of another fabric, and SLs that do not exist.
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
	for n := range fabric.NodeID(f.NumSwitches()) {
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

// mapsInUse lists the maps that packets may meet; with turns also those of packets that leave a
// switch by the port that they came in by.
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

// slClasses divides a set of SLs, a bit each, into sets of those that are alike.
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

// vlsInUse lists the VLs that a set of SLs has in some maps, VL 0 without any.
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

// byClass turns a map round. A VL that is not in use is as good as dropped:
// no packet meets the map.
func (l *lanes) byClass(m *lft.VLMap) (c classMap) {
	for class, sl := range l.first {
		if i, ok := slices.BinarySearch(l.vl, m[sl]); ok {
			c.live |= 1 << class
			c.vl[class] = uint8(i)
		}
	}
	return c
}

// prepare makes what only a check needs in which VLs are not copies of one
// network.
func (l *lanes) prepare() {
	f := l.f
	l.peer = make([]fabric.PortNum, len(l.to))
	l.sendersAt = make([]int32, len(l.to)+1)
	l.own = slices.Repeat([]int32{noRow}, f.NumSwitches())
	l.rows = make(map[fabric.PortID]int32)
	if l.sls != nil {
		for _, port := range l.sls.Ports() {
			l.rows[port] = int32(len(l.others))
			if n := f.Owner(port); f.IsSwitch(n) {
				l.own[n] = l.rows[port]
			}
			l.others = append(l.others, l.sls.PortRow(port))
		}
	}
	for out := range fabric.PortID(len(l.to)) {
		if peer := f.Peer(out); peer != fabric.NoPort {
			l.peer[out] = f.Num(peer)
		}
		first := len(l.senders)
		for _, host := range f.EndPortsOn(f.Owner(out)) {
			if f.Peer(host) == out || l.to[out] == toNowhere {
				continue
			}
			s := senders{n: 1, may: l.may(host), m: uint16(len(l.maps) - 1), row: noRow}
			if row, ok := l.rows[host]; ok {
				s.row = row
			}
			if l.to[out] != toPort0 {
				s.m = l.sl2vl.Index(f.Num(f.Peer(host)), out)
			}
			i := slices.IndexFunc(l.senders[first:], func(o senders) bool { return o.may == s.may && o.m == s.m && o.row == s.row })
			if i < 0 {
				i = len(l.senders) - first
				l.senders = append(l.senders, s)
			} else {
				l.senders[first+i].n++
			}
			if f.PortCounts(host, fabric.ForLoad) {
				l.senders[first+i].hosts++
			}
		}
		l.sendersAt[out+1] = int32(len(l.senders))
	}
	l.unicast, l.all = newGraph(l.channels), newGraph(l.channels)
	l.ends, l.idleEnds = make([]uint64, l.count()/64+1), make([]uint64, l.count()/64+1)
}

// tracks says whether workers must look at VLs.
func (l *lanes) tracks() bool { return l != nil && !l.uniform }

// may is the classes that a CA's or router's own table does not drop.
func (l *lanes) may(port fabric.PortID) uint16 { return l.maps[l.sl2vl.Index(0, port)].live }

// want is the classes that the packets of a path may have.
type want struct {
	set  uint16
	open bool // they have one of them, but it is not known which
}

// wantOf is the classes of an SL.
func (l *lanes) wantOf(sl fabric.SL) want {
	if sl != lft.UnknownSL {
		return want{set: 1 << l.class[sl]}
	}
	return want{l.classes, len(l.first) > 1}
}

// slsFrom is by LID the SL of paths from a source port on switch s.
func (l *lanes) slsFrom(source fabric.PortID, s fabric.NodeID) []fabric.SL {
	if row := l.sls.PortRow(source); row != nil {
		return row
	}
	return l.sls.Given(s)
}

// followed is the classes whose packets are followed.
func (l *lanes) followed(w want) uint16 {
	if w.open && l.certain {
		return 0
	}
	return w.set
}

// isLost says whether a pair is not delivered: the first table drops all classes but
// may, and of these only live arrive.
func (l *lanes) isLost(w want, may, live uint16) bool {
	if l.sls == nil || w.open && !l.certain {
		return may == 0 || may&^live != 0
	}
	return w.set&may&live == 0
}

// graphs puts together what the workers found.
func (l *lanes) graphs() (unicast, all *dependencyGraph) {
	unicast, all = l.unicast, l.all
	for ch := range int32(l.count()) {
		unicast.used[ch] = l.ends[ch>>6]>>(ch&63)&1 != 0 || unicast.depends(ch)
		all.used[ch] = l.idleEnds[ch>>6]>>(ch&63)&1 != 0 || all.depends(ch)
	}
	all.union(unicast)
	return unicast, all
}
