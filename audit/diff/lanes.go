package diff

import (
	"math/bits"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// mixVLs returns the VLs, a bit each, that packets with an SL may have in a mixture when they enter
// a switch by port in and leave by out.
func (m *mixture) mixVLs(in fabric.PortNum, out int32, sl int) (vls uint16) {
	if m.vls == 1 {
		return 1
	}
	for k := range m.layers {
		l := &m.layers[k]
		if at := l.index(in, fabric.PortID(out)); at >= 0 {
			if v := l.sl2vl.Maps()[at][sl]; v != lft.DropVL {
				vls |= 1 << v
			}
		}
	}
	return vls
}

// slSet returns the SLs, a bit each, of packets for the LID from a source port at switch s. live
// has, for each state, the SLs that the source can use.
func (w *mixWorker) slSet(s int32, source fabric.PortID, live [2]uint16) (sls uint16) {
	for k := range w.layers {
		a := &w.layers[k]
		switch r := a.row[s]; {
		case a.sls == nil:
			sls |= live[k]
		case r == fabric.NoNode || w.lid > a.sls.MaxLID():
		default:
			sls |= live[k] & (1 << a.sls.SL(a.port[source], r, w.lid))
		}
	}
	return sls & (1<<w.sls - 1)
}

// addDependencies calls add for each dependency of packets for the LID. For
// each SL it passes sets of VLs along the packets' paths. onlyCAs leaves out
// packets that switches send.
func (w *mixWorker) addDependencies(add func(c, e int32), onlyCAs bool) {
	clear(w.state[0])
	clear(w.state[1])
	for s := range int32(w.n) {
		for _, j := range w.inject[s] {
			if j.ports > 1 || j.port != w.owner {
				w.startPackets(s, j.in, w.slSet(s, j.port, j.live))
			}
		}
		if !onlyCAs {
			w.startPackets(s, fabric.ManagementPort, w.slSet(s, w.f.PortBase(fabric.NodeID(s)), [2]uint16{0xffff, 0xffff}))
		}
	}
	if w.loops == 0 {
		for _, s := range w.order {
			w.passPackets(add, s)
		}
		return
	}
	for more := true; more; {
		more = false
		for s := range int32(w.n) {
			more = w.passPackets(add, s) || more
		}
	}
}

// startPackets starts packets with some SLs at a switch, from its port in.
func (w *mixWorker) startPackets(s int32, in fabric.PortNum, sls uint16) {
	for ; sls != 0; sls &= sls - 1 {
		sl := bits.TrailingZeros16(sls)
		for a := range w.next {
			if c := w.next[a][s]; c >= 0 && (a == 0 || c != w.next[0][s]) {
				w.state[a][int(s)*w.sls+sl] |= w.mixVLs(in, c, sl)
			}
		}
	}
}

// passPackets takes the packets that leave switch u through the next switch,
// and adds their dependencies. It returns true if the next switch gets packets
// that were not known there.
func (w *mixWorker) passPackets(add func(c, e int32), u int32) (more bool) {
	for a := range w.next {
		c, s := w.next[a][u], w.heads[a][u]
		if s < 0 || a == 1 && c == w.next[0][u] {
			continue
		}
		in := w.f.Num(w.f.Peer(fabric.PortID(c)))
		for b := range w.next {
			e := w.next[b][s]
			if e < 0 || b == 1 && e == w.next[0][s] {
				continue
			}
			counts := w.loops == 0 || w.counts(u, s, c, e)
			for sl := range w.sls {
				have := w.state[a][int(u)*w.sls+sl]
				if have == 0 {
					continue
				}
				vls := w.mixVLs(in, e, sl)
				at := &w.state[b][int(s)*w.sls+sl]
				more = more || *at|vls != *at
				*at |= vls
				if !counts {
					continue
				}
				for from := have; from != 0; from &= from - 1 {
					ch := c*int32(w.vls) + int32(bits.TrailingZeros16(from))
					for to := vls; to != 0; to &= to - 1 {
						add(ch, e*int32(w.vls)+int32(bits.TrailingZeros16(to)))
					}
				}
			}
		}
	}
	return more
}
