package adaptive

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// lanes gives the virtual lanes of packets. SLs with equal VLs for every pair of input and
// output port form a class: they need not be told apart.
type lanes struct {
	// several is true if packets may change lanes. Otherwise each SL stays on one lane and all
	// lanes are alike, so this struct models one of them: one class, on VL 0.
	several bool
	sl2vl   *lft.SL2VL
	sls     *lft.PathSLs
	vls     int               // the highest VL + 1
	classes []fabric.SL       // by class: one of its SLs
	class   [lft.NumSLs]uint8 // by SL
	senders [][]sender        // by switch
}

// sender stands for an end port, and for all others on its switch whose packets get
// the same SLs and VLs.
type sender struct {
	end fabric.PortID
	in  fabric.PortNum // the input port of its packets, 0 for port 0 of a switch
}

func newLanes(r *lft.Routing) *lanes {
	s := r.SL2VL
	one := &lanes{vls: 1, classes: []fabric.SL{0}}
	for _, n := range r.Fabric.Switches() {
		one.senders = append(one.senders, []sender{{end: r.Fabric.PortBase(n)}})
	}
	if s == nil {
		return one
	}
	used := make([]bool, len(s.Maps()))
	for in, out := range s.PortPairs() {
		used[s.Index(in, out)] = used[s.Index(in, out)] || r.Fabric.IsSwitch(r.Fabric.Owner(out)) && in != r.Fabric.Num(out)
	}
	var maps []lft.VLMap
	for i, m := range s.Maps() {
		if used[i] {
			maps = append(maps, m)
		}
	}
	if len(maps) < 2 && r.PathSLs == nil {
		return one
	}
	l := &lanes{several: true, sl2vl: s, sls: r.PathSLs, vls: max(1, s.VLs())}
	for sl := range fabric.SL(lft.NumSLs) {
		i := slices.IndexFunc(l.classes, func(first fabric.SL) bool {
			return !slices.ContainsFunc(maps, func(m lft.VLMap) bool { return m[sl] != m[first] })
		})
		if i < 0 {
			i = len(l.classes)
			l.classes = append(l.classes, sl)
		}
		l.class[sl] = uint8(i)
	}
	for _, n := range r.Fabric.Switches() {
		l.senders = append(l.senders, l.listSenders(r.Fabric, n))
	}
	return l
}

// listSenders lists the senders on a switch, its port 0 first.
func (l *lanes) listSenders(f *fabric.Fabric, s fabric.NodeID) []sender {
	list := []sender{{end: f.PortBase(s)}}
	links, _ := f.SwitchLinks(s)
	same := func(a, b sender) bool {
		if l.sls != nil && (l.sls.PortRow(a.end) != nil || l.sls.PortRow(b.end) != nil) {
			return false
		}
		return !slices.ContainsFunc(links, func(out fabric.PortID) bool { return l.sl2vl.Index(a.in, out) != l.sl2vl.Index(b.in, out) })
	}
	for _, end := range f.EndPortsOn(s) {
		x := sender{end, f.Num(f.Peer(end))}
		if !slices.ContainsFunc(list, func(y sender) bool { return same(x, y) }) {
			list = append(list, x)
		}
	}
	return list
}

// classesOf returns, as bits, the classes that packets of sender x on switch s to a LID may
// have.
func (l *lanes) classesOf(x sender, s fabric.NodeID, lid fabric.LID) uint16 {
	if l.sls != nil {
		row := l.sls.PortRow(x.end)
		if row == nil {
			row = l.sls.Given(s)
		}
		if sl := row[lid]; sl < lft.NumSLs {
			return 1 << l.class[sl]
		}
	}
	return 1<<len(l.classes) - 1
}

// vl returns the lane of packets of a class that pass a switch from port in to port out.
func (l *lanes) vl(in fabric.PortNum, out fabric.PortID, class int) fabric.VL {
	if !l.several {
		return 0
	}
	return l.sl2vl.At(in, out)[l.classes[class]]
}
