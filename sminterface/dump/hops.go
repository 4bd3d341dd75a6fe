package dump

import (
	"bytes"
	"fmt"
	"io"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// noHops is OSM_NO_PATH in OpenSM's hop counts.
const noHops = fabric.Unreachable

// Hops is the lid matrix that tables imply. OpenSM counts
// links between switches; links of end ports do not count.
//
// The hop count of a switch to a target through a port is one
// more than the length of the tables' path from the neighbour
// on that port to the target's base LID. The least hop count
// is the least of these, and 0 to the switch itself. A target
// whose own entry for that LID is not port 0 has no paths.
type Hops struct {
	f    *fabric.Fabric
	n    int     // switches
	dist []uint8 // by target, then source: length of the tables' path, noHops if it does not arrive
}

// NewHops follows the paths of tables of f to all switches: O(switches^2), on all CPUs.
func NewHops(f *fabric.Fabric, t *lft.Tables) *Hops {
	n := f.NumSwitches()
	h := &Hops{f: f, n: n, dist: bytes.Repeat([]byte{noHops}, n*n)}
	par.EachWith(n, func() *lft.Forest { return lft.NewForest(f) }, func(forest *lft.Forest, i int) {
		to := fabric.NodeID(i)
		lid := f.LID(f.PortBase(to))
		if lid > t.MaxLID() {
			return
		}
		row := h.dist[i*n : (i+1)*n]
		forest.FindTree(t, lid)
		for _, s := range forest.Order {
			if row[s] = 0; s != to {
				row[s] = min(row[f.PeerSwitch(forest.Next[s])], noHops-2) + 1
			}
		}
	})
	return h
}

// via returns the hop count to a target through a port that
// leads to switch u, noHops if u is NoNode.
func (h *Hops) via(u, target fabric.NodeID) uint8 {
	if u == fabric.NoNode || h.dist[int(target)*h.n+int(u)] >= noHops-1 {
		return noHops
	}
	return h.dist[int(target)*h.n+int(u)] + 1
}

// Row sets hops to the hop counts of switch s to a target: hops[p]
// is the count through port p, and hops[0] is the least count.
func (h *Hops) Row(s, target fabric.NodeID, hops []uint8) {
	for i := range hops {
		hops[i] = noHops
	}
	ports, neighbours := h.f.SwitchLinks(s)
	for i, p := range ports {
		d := h.via(neighbours[i], target)
		hops[h.f.Num(p)], hops[0] = d, min(hops[0], d)
	}
	if s == target {
		hops[0] = 0
	}
}

// least returns the least hop counts of switch s to all switches.
func (h *Hops) least(s fabric.NodeID) []uint8 {
	least := make([]uint8, h.n)
	for t := range least {
		least[t] = noHops
		for _, u := range h.f.Neighbors(s) {
			least[t] = min(least[t], h.via(u, fabric.NodeID(t)))
		}
	}
	least[s] = 0
	return least
}

// WriteLIDMatrix writes opensm-lid-matrix.dump, as osm_dump.c
// does, for opensm -R file -M. The hop counts are those of
// Hops: for tables of shortest paths OpenSM computes the same
// itself. A row has the counts to the base LID of a switch,
// by port. Column 0 is the least of them, as in OpenSM after
// it has loaded the file. Switches to which no port leads
// have no row. Errors are as for WriteLFTs.
func WriteLIDMatrix(w io.Writer, f *fabric.Fabric, t *lft.Tables, opt WriteOptions) error {
	if err := lft.CheckFabric(f, t, nil, nil); err != nil {
		return err
	}
	h := NewHops(f, t)
	targets := newMatrixTargets(f, opt.Lean)
	return writeSwitches(w, f, opt.Only, func(b []byte, s fabric.NodeID) []byte {
		hops := make([]uint8, int(f.Node(s).NumPorts)+1)
		b = fmt.Appendf(b, "Switch: guid %s\n", f.Node(s).GUID)
		for _, t := range targets {
			if h.Row(s, t.sw, hops); hops[0] == noHops {
				continue
			}
			b = append(b, t.begin...)
			for _, d := range hops {
				b = append(b, ' ', lowerHex[d>>4], lowerHex[d&15])
			}
			b = append(b, t.end...)
		}
		return b
	})
}

// matrixTarget is a switch that has rows in opensm-lid-matrix.dump,
// and the text with which they begin and end.
type matrixTarget struct {
	sw         fabric.NodeID
	begin, end string
}

// newMatrixTargets lists the switches that have LIDs, by LID.
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
