package verify

import (
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// tree is a destination that a worker follows: the i-th of those that have cells, g in number.
type tree struct {
	*dest
	g, i int
}

// out returns the port by which switch s sends packets for the tree's LID.
func (w *worker) out(t *tree, s int32) fabric.PortNum {
	return fabric.PortNum(w.cells[int(s)*t.g+t.i] >> cellBits)
}

// followLanes follows the packets of a tree whose forwarding tables lead to the root: from all
// switches or, without all, from those that w.paths joins to it. It adds their dependencies, and
// counts pairs whose packets SL-to-VL tables drop.
func (w *worker) followLanes(t *tree, all bool) {
	f := w.flow
	f.serial += 2
	clear(f.lost)
	clear(f.lostHosts)
	clear(f.lostOwn)
	owner := f.f.LIDPort(t.lid)
	for i := range f.senders {
		x := &f.senders[i]
		own := x.s == t.root && slices.Contains(x.ports, owner)
		if own && len(x.ports) == 1 || !all && w.paths.depth[x.s] < 0 {
			continue
		}
		ca, may := i < f.ports0, x.may
		if !ca { // the switch's own packets: it drops those of other classes at once
			may = 0
			for _, c := range f.classes {
				if f.laneOf(c, c.node[x.in], w.out(t, x.s)) != noLane {
					may |= c.bit
				}
			}
		}
		set, known := f.wants(x, t.lid)
		live := uint16(0)
		for set := set & may; set != 0; set &= set - 1 {
			k := bits.TrailingZeros16(set)
			if !f.drops || w.arrives(t, k, f.classes[k].node[x.in]) {
				live |= 1 << k
			}
		}
		leftOut := !known && f.leavesOut(x)
		if f.drops && (live == 0 || !known && !leftOut && live != set&may) {
			w.countLost(t, x, ca, own)
		}
		if leftOut {
			continue
		}
		for set := live; set != 0; set &= set - 1 {
			k := bits.TrailingZeros16(set)
			w.descend(t, k, f.classes[k].node[x.in], ca && t.ca)
		}
		switch {
		case !ca:
		case !own:
			f.sent[i] |= live
		default:
			for _, port := range x.ports {
				if port != owner {
					f.sentBy[port] |= live
				}
			}
		}
	}
}

// countLost counts a sender's pairs as lost; own is true if one of its ports owns the LID.
func (w *worker) countLost(t *tree, x *senderGroup, ca, own bool) {
	f, pairs, hosts := w.flow, len(x.ports), x.hosts
	if own {
		pairs--
		if t.loads {
			hosts--
		}
	}
	if !ca {
		f.lostOwn[x.s] = 1
		return
	}
	f.lost[x.s] += uint32(pairs)
	f.lostHosts[x.s] += uint32(hosts)
}

// arrives returns true if packets of class k arrive from node x.
func (w *worker) arrives(t *tree, k int, x int32) bool {
	f, c := w.flow, w.flow.classes[k]
	fates := f.fates[k]
	f.path = f.path[:0]
	fate := f.serial
	for {
		if fates[x] >= f.serial {
			fate = fates[x]
			break
		}
		f.path = append(f.path, x)
		at := &c.nodes[x]
		out := w.out(t, at.s)
		if f.laneOf(c, x, out) == noLane {
			break
		}
		if at.s == t.root {
			fate++
			break
		}
		x = c.next[at.base+int32(out)]
	}
	for _, x := range f.path {
		fates[x] = fate
	}
	return fate > f.serial
}

// descend adds the dependencies of packets of class k that arrive from node x, up to a node that
// such packets passed before. Packets to port 0 of a switch wait for nothing there.
func (w *worker) descend(t *tree, k int, x int32, unicast bool) {
	f, c := w.flow, w.flow.classes[k]
	g, mark := w.others, f.serial
	if unicast {
		g, mark = w.unicast, f.serial+1
	}
	vls := len(f.vls)
	for held := -1; ; {
		at := &c.nodes[x]
		if at.s == t.root && !t.ca {
			if held >= 0 {
				g.take(held)
			}
			return
		}
		out := w.out(t, at.s)
		vl := f.laneOf(c, x, out)
		if held >= 0 {
			g.depend(held, (int(out)-1)*vls+vl)
		}
		if f.marks[k][x] >= mark {
			return
		}
		f.marks[k][x] = mark
		held = int(at.base+int32(out))*vls + vl
		if at.s == t.root {
			g.take(held)
			return
		}
		x = c.next[at.base+int32(out)]
	}
}
