package diff

import (
	"fmt"
	"math/bits"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// injection is CA ports of one switch whose packets have the same VLs from there
// on.
type injection struct {
	in    fabric.PortNum
	live  [2]uint16 // by layer: SLs that the CA's own tables do not drop
	ports int
	port  fabric.PortID // the first of these CA ports; there is one where it has path SLs of its own
}

// injections lists where packets of CAs come in at a switch.
func (m *mixture) injections(s fabric.NodeID) (list []injection) {
	known := map[string]int{}
	for _, port := range m.f.EndPortsOn(s) {
		j := injection{in: m.f.Num(m.f.Peer(port)), ports: 1, port: port}
		var key []byte
		for k := range m.layers {
			l := &m.layers[k]
			own := fabric.NoPort // with path SLs of its own
			if p := l.port[port]; p != fabric.NoPort {
				for sl, vl := range l.sl2vl.At(0, p) {
					if vl != lft.DropVL {
						j.live[k] |= 1 << sl
					}
				}
				if l.sls != nil && l.sls.PortRow(p) != nil {
					own = port
				}
			}
			key = fmt.Append(key, j.live[k], own)
			for out := range fabric.PortID(m.f.Node(s).NumPorts) {
				key = fmt.Append(key, " ", l.index(j.in, m.f.PortBase(s)+1+out))
			}
		}
		if at, ok := known[string(key)]; ok {
			list[at].ports++
			continue
		}
		known[string(key)] = len(list)
		list = append(list, j)
	}
	return list
}

// index is the map for packets that come in by port in of a switch and leave by
// out, -1 when the layer has none, since it does not have the port.
func (l *layer) index(in fabric.PortNum, out fabric.PortID) int {
	p := l.port[out]
	if f := l.sl2vl.Fabric(); p == fabric.NoPort || in > f.Node(f.Owner(p)).NumPorts {
		return -1
	}
	return int(l.sl2vl.Index(in, p))
}

// mixVLs is the VLs, a bit each, that packets with an SL may have in a mixture
// when they come in by port in of a switch and leave by out.
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

// slSet is the SLs, a bit each, of packets for the LID from a source port at switch s with these live SLs.
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

// addDependencies calls add for the dependencies of packets for the LID: sets of VLs go on with the
// packets, for each SL. onlyCAs leaves packets out that switches send.
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

// passPackets passes the packets that leave a switch on, through the next one. It returns
// true if that one gets packets that were not known there.
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
