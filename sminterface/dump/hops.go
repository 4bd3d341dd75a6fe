package dump

import (
	"fmt"
	"io"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// noHops is OSM_NO_PATH, as OpenSM's hop counts have it.
const noHops = fabric.Unreachable

// hopCounts is the lid matrix that tables imply. OpenSM counts links between
// switches, from switch to switch; the links of end ports do not count.
//
// The hop count of a switch to a target by one of its ports is one more than
// the length of the path that the tables give from the neighbour on that port
// to the target's base LID, and the least hop count is the least of these; of
// a switch to itself it is 0.
type hopCounts struct {
	f    *fabric.Fabric
	n    int     // switches
	dist []uint8 // by source, then target: length of the tables' path
}

// newHopCounts walks all paths between switches: O(switches^2), on all CPUs.
func newHopCounts(f *fabric.Fabric, t *lft.Tables) *hopCounts {
	n := f.NumSwitches()
	h := &hopCounts{f: f, n: n, dist: make([]uint8, n*n)}
	// A batch of targets reads each table once, and writes whole cache lines.
	const batch = 64
	par.Each((n+batch-1)/batch, func(i int) {
		first, end := fabric.NodeID(i*batch), fabric.NodeID(min((i+1)*batch, n))
		next := make([]fabric.NodeID, batch*n) // by target of the batch, then switch
		for s := range fabric.NodeID(n) {
			row := t.Row(s)
			for k := first; k < end; k++ {
				next[int(k-first)*n+int(s)] = h.next(s, row, f.LID(f.PortBase(k)))
			}
		}
		hops := make([]int16, n)
		for k := first; k < end; k++ {
			walkAll(next[int(k-first)*n:int(k-first+1)*n], k, hops)
			for s, d := range hops {
				h.dist[s*n+int(k)] = uint8(d)
			}
		}
	})
	return h
}

// next is the switch that the table of s leads a LID to, NoNode for none.
func (h *hopCounts) next(s fabric.NodeID, row []fabric.PortNum, lid fabric.LID) fabric.NodeID {
	if lid == 0 || int(lid) >= len(row) || row[lid] == fabric.ManagementPort || row[lid] > h.f.Node(s).NumPorts {
		return fabric.NoNode
	}
	return h.f.PeerSwitch(h.f.Port(s, row[lid]))
}

// walkAll computes how far every switch is from target t when a packet at s
// goes on to next[s]: noHops when it never arrives, at most noHops-1.
func walkAll(next []fabric.NodeID, t fabric.NodeID, hops []int16) {
	const unknown, onPath = -1, -2
	for s := range hops {
		hops[s] = unknown
	}
	hops[t] = 0
	var path []fabric.NodeID
	for s := range fabric.NodeID(len(hops)) {
		at := s
		for path = path[:0]; at != fabric.NoNode && hops[at] == unknown; at = next[at] {
			hops[at] = onPath
			path = append(path, at)
		}
		d := int16(noHops)
		if at != fabric.NoNode && hops[at] != onPath {
			d = hops[at]
		}
		for _, s := range slices.Backward(path) {
			if d < int16(noHops)-1 {
				d++
			}
			hops[s] = d
		}
	}
}

// oneMore is the hop count by way of a port whose neighbour is d away.
func oneMore(d uint8) uint8 {
	if d >= noHops-1 {
		return noHops
	}
	return d + 1
}

// via is the hop count to a target by way of a port behind which switch u is,
// which may be none.
func (h *hopCounts) via(u, target fabric.NodeID) uint8 {
	if u == fabric.NoNode {
		return noHops
	}
	return oneMore(h.dist[int(u)*h.n+int(target)])
}

// least is the least hop counts of switch s to all switches.
func (h *hopCounts) least(s fabric.NodeID) []uint8 {
	least := slices.Repeat([]uint8{noHops}, h.n)
	for _, u := range h.f.Neighbors(s) {
		for t, d := range h.dist[int(u)*h.n:][:h.n] {
			least[t] = min(least[t], oneMore(d))
		}
	}
	least[s] = 0
	return least
}

// neighbours lists the switches at the ports 0 to NumPorts of switch s,
// NoNode where there is none.
func (h *hopCounts) neighbours(s fabric.NodeID) []fabric.NodeID {
	list := make([]fabric.NodeID, int(h.f.Node(s).NumPorts)+1)
	for p := range list {
		if list[p] = h.f.PeerSwitch(h.f.Port(s, fabric.PortNum(p))); list[p] == s {
			list[p] = fabric.NoNode // a cable to itself is no path
		}
	}
	return list
}

// WriteLIDMatrix writes opensm-lid-matrix.dump, as osm_dump.c does, for
// opensm -R file -M. The hop counts are those that the tables imply: by a port
// to a switch, one more than the length of the tables' path from the neighbour
// on that port to that switch. Column 0 is the least of a row, as OpenSM has
// it when it has loaded the file. Rows are for the base LIDs of switches;
// there is none where no port leads to the switch. For tables of shortest
// paths this is what OpenSM computes itself. Errors are as for WriteLFTs.
func WriteLIDMatrix(w io.Writer, f *fabric.Fabric, t *lft.Tables, opt WriteOptions) error {
	if err := lft.CheckFabric(f, t, nil, nil); err != nil {
		return err
	}
	h := newHopCounts(f, t)
	targets := newMatrixTargets(f, opt.Lean)
	return writeSwitches(w, f, opt.Only, func(b []byte, s fabric.NodeID) []byte {
		least, neighbours := h.least(s), h.neighbours(s)
		b = fmt.Appendf(b, "Switch: guid %s\n", f.Node(s).GUID)
		for _, t := range targets {
			if least[t.sw] == noHops {
				continue
			}
			b = append(b, t.begin...)
			b = appendHops(b, least[t.sw])
			for _, u := range neighbours[1:] {
				b = appendHops(b, h.via(u, t.sw))
			}
			b = append(b, t.end...)
		}
		return b
	})
}

func appendHops(b []byte, hops uint8) []byte {
	return append(b, ' ', lowerHex[hops>>4], lowerHex[hops&15])
}

// matrixTarget is a switch that has rows in opensm-lid-matrix.dump, and what these
// begin and end with.
type matrixTarget struct {
	sw         fabric.NodeID
	begin, end string
}

// newMatrixTargets lists the switches that have LIDs, in the order of these.
func newMatrixTargets(f *fabric.Fabric, lean bool) []matrixTarget {
	var list []matrixTarget
	for l := fabric.LID(1); l <= f.MaxLID(); l++ {
		p := f.LIDPort(l)
		if p == fabric.NoPort || !f.IsSwitch(f.Owner(p)) || f.LID(p) != l {
			continue
		}
		t := matrixTarget{sw: f.Owner(p), begin: fmt.Sprintf("0x%04x:", l), end: "\n"}
		if !lean {
			t.end = fmt.Sprintf(" # portguid %s\n", f.PortGUID(p))
		}
		list = append(list, t)
	}
	return list
}
