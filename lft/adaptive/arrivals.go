package adaptive

import (
	"math/bits"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// arrivals follows packets to the LIDs of p if there are several lanes. It records, by
// channel, the classes of SLs whose packets come over it, and their VLs.
type arrivals struct {
	p    *paths
	last fabric.PortID // output port for the LIDs at the root switch; port 0 for its own LID
	// vls holds the VLs as bits, at index channel x classes + class.
	vls []uint16
	log []arrival
}

// arrival is an entry of the log: a bit that was set in vls.
type arrival struct {
	at int32
	vl uint16
}

// newArrivals starts without packets, for the choices of p. It reuses x if that is not nil.
func newArrivals(x *arrivals, p *paths) *arrivals {
	if x == nil {
		x = &arrivals{vls: make([]uint16, len(p.w.to)*len(p.w.classes))}
	}
	for _, a := range x.log {
		x.vls[a.at] = 0
	}
	f := p.w.Fabric
	x.p, x.log, x.last = p, x.log[:0], f.Attachment(f.LIDPort(p.lids[0]))
	return x
}

// seed sends packets from all switches. It calls turn for each dependency; turn must
// return true.
func (x *arrivals) seed(turn func(a, b int32) bool) {
	w := x.p.w
	for _, s := range x.p.queue[1:] {
		for c, end := w.out(s); c < end; c++ {
			if x.p.chosen[c] {
				x.inject(c, turn)
			}
		}
	}
}

// inject sends over channel c the packets that begin at the switch it leaves. It
// returns false if turn refuses a dependency or a packet would be dropped.
func (x *arrivals) inject(c int32, turn func(a, b int32) bool) bool {
	w, ok := x.p.w, true
	s := w.from[c]
	for _, from := range w.senders[s] {
		for set := w.classesOf(from, s, x.p.lids[0]); set != 0; set &= set - 1 {
			class := bits.TrailingZeros16(set)
			ok = x.send(c, class, w.vl(from.in, w.port[c], class), turn) && ok
		}
	}
	return ok
}

// offer sends by channel c all packets at the switch it leaves: those that come there and
// those of its own senders. It returns false and changes nothing if turn refuses a
// dependency or a packet would be dropped.
func (x *arrivals) offer(c int32, turn func(a, b int32) bool) bool {
	mark := len(x.log)
	if x.inject(c, turn) && x.forward(c, turn) {
		return true
	}
	for _, a := range x.log[mark:] {
		x.vls[a.at] &^= a.vl
	}
	x.log = x.log[:mark]
	return false
}

// forward sends by channel c the packets that come to its switch from other switches.
func (x *arrivals) forward(c int32, turn func(a, b int32) bool) bool {
	w := x.p.w
	for out, end := w.out(w.from[c]); out < end; out++ {
		in := w.back[out]
		for class := range w.classes {
			if vls := x.vls[int(in)*len(w.classes)+class]; vls != 0 && !x.turn(in, c, class, vls, turn) {
				return false
			}
		}
	}
	return true
}

// turn sends by channel c the packets of a class that come by channel in on some VLs.
func (x *arrivals) turn(in, c int32, class int, vls uint16, turn func(a, b int32) bool) bool {
	w := x.p.w
	vl := w.vl(w.Fabric.Num(w.Fabric.Peer(w.port[in])), w.port[c], class)
	if vl == lft.DropVL {
		return false
	}
	for ; vls != 0; vls &= vls - 1 {
		if !turn(in*int32(w.lanes.vls)+int32(bits.TrailingZeros16(vls)), c*int32(w.lanes.vls)+int32(vl)) {
			return false
		}
	}
	return x.send(c, class, vl, turn)
}

// send sends packets over channel c and on to the root, by all chosen channels there.
func (x *arrivals) send(c int32, class int, vl fabric.VL, turn func(a, b int32) bool) bool {
	w := x.p.w
	at := int(c)*len(w.classes) + class
	switch {
	case vl == lft.DropVL:
		return false
	case x.vls[at]>>vl&1 != 0:
		return true
	}
	x.vls[at] |= 1 << vl
	x.log = append(x.log, arrival{int32(at), 1 << vl})
	s := w.to[c]
	if s == x.p.root {
		return w.Fabric.Num(x.last) == fabric.ManagementPort ||
			w.vl(w.Fabric.Num(w.Fabric.Peer(w.port[c])), x.last, class) != lft.DropVL
	}
	for next, end := w.out(s); next < end; next++ {
		if x.p.chosen[next] && !x.turn(c, next, class, 1<<vl, turn) {
			return false
		}
	}
	return true
}
