package verify

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// MayMix says whether packets may meet entries of the last tables and of t, for the same fabric,
// in any mixture, as they do while a subnet manager writes t. Then all dependencies of both, and
// those from an entry of one to an entry of the other, lead to greater numbers: there is no
// credit loop and no forwarding loop. It is false for tables that the checker does not know.
// O(switches x LIDs).
func (w *IncrementalChecker) MayMix(t *lft.Tables) bool {
	if w.now == nil || w.now.Present != t.Switches() {
		return false
	}
	x := &mixer{IncrementalChecker: w, tables: t}
	for slot, node := range w.now.Node {
		if node == fabric.NoNode {
			continue
		}
		row, table := w.row(int32(slot)), t.Row(node)
		for lid, dest := range w.now.Dest {
			if old, num := row[lid], entryOf(table, lid); dest != fabric.NoDestination && old != num {
				x.mixAt(int32(slot), int32(lid), old)
				x.mixAt(int32(slot), int32(lid), num)
			}
		}
	}
	ok, number := true, w.number
	for _, i := range x.added {
		if !w.rises(i) {
			ok = w.renumber()
			break
		}
	}
	if !ok {
		w.number = number
	}
	for _, i := range x.added {
		w.pairs[i].lids = 0
	}
	return ok
}

// mixer adds the dependencies of mixtures to those of the last tables.
type mixer struct {
	*IncrementalChecker
	tables *lft.Tables
	added  []int // of pairs
}

// entries are those of a slot for a LID, of both tables.
func (x *mixer) entries(slot, lid int32) [2]fabric.PortNum {
	return [2]fabric.PortNum{x.entry(slot, lid), entryOf(x.tables.Row(x.now.Node[slot]), int(lid))}
}

// mixAt adds the dependencies of packets for a LID that leave a slot by a port: on the channels by
// which they come there, and those by which they go on.
func (x *mixer) mixAt(s, lid int32, num fabric.PortNum) {
	v, base := x.now, x.now.Index.Base
	out := base[s] + int32(num)
	if num == fabric.ManagementPort || out >= base[s+1] || v.Peer[out] < 0 {
		return
	}
	for in := base[s]; in < base[s+1]; in++ {
		if peer := v.Peer[in]; peer >= 0 {
			u := v.Index.Owner[peer]
			if from := x.entries(u, lid); int32(from[0]) == peer-base[u] || int32(from[1]) == peer-base[u] {
				x.add(in, out)
			}
		}
	}
	next := v.Index.Owner[v.Peer[out]]
	for _, e := range x.entries(next, lid) {
		if on := base[next] + int32(e); on < base[next+1] {
			x.add(v.Peer[out], on)
		}
	}
}

func (x *mixer) add(in, out int32) {
	if x.now.Peer[out] < 0 {
		return
	}
	if i := x.pair(in, out); x.pairs[i].lids == 0 {
		x.pairs[i].lids = 1
		x.added = append(x.added, i)
	}
}
