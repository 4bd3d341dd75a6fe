package verify

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Start takes a copy of tables of v.Fabric that Check has found to be r, on one VL and
// without multicast, if they can be followed. O(switches x LIDs).
func (w *IncrementalChecker) Start(v *fabric.Snapshot, t *lft.Tables, r *Result) {
	*w = IncrementalChecker{}
	x := v.Index
	n := x.Slots()
	hops := v.Fabric.Distances()
	if len(r.Undecided) > 0 || r.Unicast.Unreachable+r.Unicast.Loops+r.Management.Unreachable+r.Management.Loops > 0 ||
		r.CreditLoops.Count+r.Management.CreditLoops > 0 || n*n > maxMatrix || !v.Whole || hops.TooLong() {
		return
	}
	w.at = make([]int, n)
	pairs := 0
	for s := range n {
		w.at[s] = pairs
		ports := int(x.Base[s+1] - x.Base[s])
		pairs += ports * ports
	}
	if pairs > maxPairs {
		return
	}
	w.now = v
	w.stride = (int(x.MaxLID)/lft.BlockSize + 1) * lft.BlockSize
	w.rows = make([]fabric.PortNum, n*w.stride)
	for slot, s := range v.Node {
		from := []fabric.PortNum(nil)
		if s != fabric.NoNode {
			from = t.Row(s)
		}
		row := w.row(int32(slot))
		for i := copy(row, from); i < len(row); i++ {
			row[i] = fabric.NoPath
		}
	}
	w.copyDistances(hops)
	w.pairs = make([]pairUse, pairs)
	w.routes, w.sent = make([]int64, x.NumPorts()), make([]int64, x.NumPorts())
	w.hops, w.longer = make([]int64, n+2), make([]int64, n+2)
	w.checkerScratch = newCheckerScratch(n, w.stride)
	if !w.countAll() || !w.renumber() {
		w.now = nil
	}
}

// copyDistances fills in dist for the slots with CAs that count for load.
func (w *IncrementalChecker) copyDistances(hops *fabric.HopMatrix) {
	w.dist = make([][]uint8, len(w.now.Node))
	for t, sources := range w.now.Sources {
		if sources == 0 {
			continue
		}
		to := hops.To(w.now.Node[t])
		row := make([]uint8, len(w.now.Node))
		for slot, s := range w.now.Node {
			row[slot] = fabric.Unreachable
			if s != fabric.NoNode {
				row[slot] = to[s]
			}
		}
		w.dist[t] = row
	}
}

// countAll counts every path. It returns false when not all is delivered.
func (w *IncrementalChecker) countAll() bool {
	for lid, dest := range w.now.Dest {
		if dest == fabric.NoDestination {
			continue
		}
		for s, node := range w.now.Node {
			if node != fabric.NoNode && !w.countPath(w.now, w.dist, int32(s), int32(lid), dest, 1) {
				return false
			}
		}
	}
	return true
}
