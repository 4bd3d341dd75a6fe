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

// countAll counts every path. Packets to a LID come together on their way, so it looks at
// each switch once for each LID, which takes a third of the time of countPath for each
// path. It returns false when not all is delivered.
func (w *IncrementalChecker) countAll() bool {
	n := len(w.now.Node)
	c := lidCounter{IncrementalChecker: w, paths: newForest(n), out: make([]int32, n), sent: make([]uint32, n), load: make([]uint32, n)}
	stage := make([]fabric.PortNum, n*lft.BlockSize)
	for block := 0; block < len(w.now.Dest); block += lft.BlockSize {
		for s := range n {
			for i, num := range w.row(int32(s))[block : block+lft.BlockSize] {
				stage[i*n+s] = num
			}
		}
		for lid := block; lid < min(block+lft.BlockSize, len(w.now.Dest)); lid++ {
			if w.now.Dest[lid] != fabric.NoDestination && !c.count(w.now.Dest[lid], stage[(lid-block)*n:][:n]) {
				return false
			}
		}
	}
	return true
}

// lidCounter counts the paths of all switches to one LID after the other.
type lidCounter struct {
	*IncrementalChecker
	paths forest
	out   []int32  // by slot: the port that packets leave by
	sent  []uint32 // by slot: CAs that send through it
	load  []uint32 // of these, sources of load
}

// count counts the paths to a destination by the entries for it, by slot. It returns
// false when it is not reached from all switches.
func (c *lidCounter) count(dest int32, entries []fabric.PortNum) bool {
	v, x := c.now, c.now.Index
	root := x.Owner[dest]
	ca, loads := dest != x.Base[root], v.CarriesLoad(dest)
	for s, num := range entries {
		out := x.Base[s] + int32(num)
		c.out[s], c.paths.next[s], c.sent[s], c.load[s] = out, toNowhere, 0, 0
		if num != fabric.ManagementPort && out < x.Base[s+1] && v.Peer[out] >= 0 {
			c.paths.next[s] = x.Owner[v.Peer[out]]
		}
		if ca {
			c.sent[s] = uint32(v.Sources[s] + v.Others[s])
		}
		if loads {
			c.load[s] = uint32(v.Sources[s])
		}
	}
	c.paths.find(root)
	if c.out[root] != dest || len(c.paths.order) != v.Present-1 {
		return false
	}
	for _, s := range c.paths.order {
		to, sent := c.paths.next[s], c.sent[s]
		c.IncrementalChecker.sent[c.out[s]] += int64(sent)
		c.routes[c.out[s]] += int64(c.load[s])
		c.sent[to] += sent
		c.load[to] += c.load[s]
		if to == root && !ca {
			continue
		}
		use := &c.pairs[c.pair(v.Peer[c.out[s]], c.out[to])]
		use.lids++
		if sent > 0 && use.sent == 0 {
			c.dependencies++
		}
		use.sent += sent
	}
	if !ca {
		return true
	}
	c.IncrementalChecker.sent[dest] += int64(c.sent[root]) - 1 // the port does not send to itself
	if loads {
		c.routes[dest] += int64(c.load[root]) - 1
	}
	for s, sources := range v.Sources {
		sent := int64(sources + v.Others[s])
		if int32(s) == root {
			sent--
		}
		c.hops[c.paths.depth[s]+1] += sent
		if loads && int32(s) != root {
			if extra := c.paths.depth[s] - int32(c.dist[root][s]); extra > 0 {
				c.longer[extra] += int64(sources)
			}
		}
	}
	return true
}
