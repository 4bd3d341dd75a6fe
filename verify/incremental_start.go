package verify

import (
	"slices"

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
	w.flows, w.lids = make([]uint32, pairs), make([]uint16, pairs)
	w.routes, w.hops = make([]int64, x.NumPorts()), make([]int64, n+2)
	w.checkerScratch = newCheckerScratch(n, w.stride)
	if !w.countAll() || !w.renumber() {
		w.now = nil
	}
}

// copyDistances fills in dist for the slots with CAs.
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

// lidCounter counts the paths of all switches to one LID after the other. Packets to a
// LID come together on their way, so it looks at each switch once for it, which takes a
// tenth of the time of IncrementalChecker.countPath for each.
type lidCounter struct {
	w       *IncrementalChecker
	dest    int32
	root    int32    // the slot of dest
	ca      bool     // dest is not the switch itself
	out     []int32  // by slot: the port that packets leave by
	next    []int32  // by slot: the slot that they come to
	waiting []int32  // by slot: how many send here and are not in order
	order   []int32  // slots without the root, each before the one that it sends to
	flow    []uint32 // by slot: sources that send through it
	depth   []int32  // by slot: switches that its packets pass
}

// countAll counts every path. It returns false when not all is delivered.
func (w *IncrementalChecker) countAll() bool {
	n := len(w.now.Node)
	c := lidCounter{
		w: w, out: make([]int32, n), next: make([]int32, n), waiting: make([]int32, n), order: make([]int32, 0, n),
		flow: make([]uint32, n), depth: make([]int32, n),
	}
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

// count counts the paths to a destination by the entries for it, by slot. It returns
// false when it is not reached from all switches.
func (c *lidCounter) count(dest int32, entries []fabric.PortNum) bool {
	c.dest, c.root = dest, c.w.now.Index.Owner[dest]
	c.ca = dest != c.w.now.Index.Base[c.root]
	if !c.readEntries(entries) || !c.sort() {
		return false
	}
	c.addDependencies()
	if c.ca {
		c.addHops()
	}
	return true
}

// readEntries fills in out, next and waiting. It returns false for an entry that leads to
// no switch, and when the root does not deliver.
func (c *lidCounter) readEntries(entries []fabric.PortNum) bool {
	v, x := c.w.now, c.w.now.Index
	clear(c.waiting)
	for s, num := range entries {
		switch {
		case v.Node[s] == fabric.NoNode:
			continue
		case int32(s) == c.root:
			if int32(num) != c.dest-x.Base[s] {
				return false
			}
			c.out[s] = c.dest
			continue
		}
		out := x.Base[s] + int32(num)
		if num == fabric.ManagementPort || out >= x.Base[s+1] || v.Peer[out] < 0 {
			return false
		}
		c.out[s], c.next[s] = out, x.Owner[v.Peer[out]]
		c.waiting[c.next[s]]++
	}
	return true
}

// sort fills in order, and on the way flow and the routes. It returns false when packets
// from some switch do not come to the root.
func (c *lidCounter) sort() bool {
	v, w := c.w.now, c.w
	c.order = c.order[:0]
	for s := range c.flow {
		c.flow[s] = 0
		if c.ca {
			c.flow[s] = uint32(v.Sources[s])
		}
		if c.waiting[s] == 0 && int32(s) != c.root && v.Node[s] != fabric.NoNode {
			c.order = append(c.order, int32(s))
		}
	}
	if c.ca {
		c.flow[c.root]-- // the port does not send to itself
	}
	for i := 0; i < len(c.order); i++ {
		s := c.order[i]
		to := c.next[s]
		w.routes[c.out[s]] += int64(c.flow[s])
		c.flow[to] += c.flow[s]
		if c.waiting[to]--; c.waiting[to] == 0 && to != c.root {
			c.order = append(c.order, to)
		}
	}
	if c.ca {
		w.routes[c.dest] += int64(c.flow[c.root])
	}
	return len(c.order) == v.Present-1
}

// addDependencies counts the dependencies, and fills in depth.
func (c *lidCounter) addDependencies() {
	w := c.w
	c.depth[c.root] = 1
	for _, s := range slices.Backward(c.order) {
		to := c.next[s]
		c.depth[s] = c.depth[to] + 1
		if to == c.root && !c.ca {
			continue
		}
		pair := w.pair(w.now.Peer[c.out[s]], c.out[to])
		w.lids[pair]++
		if c.flow[s] > 0 && w.flows[pair] == 0 {
			w.dependencies++
		}
		w.flows[pair] += c.flow[s]
	}
}

// addHops counts the switches that the packets of CAs pass.
func (c *lidCounter) addHops() {
	w := c.w
	for s, sources := range w.now.Sources {
		if int32(s) == c.root {
			sources--
		}
		if sources == 0 {
			continue
		}
		w.hops[c.depth[s]] += int64(sources)
		if int32(w.dist[c.root][s])+1 < c.depth[s] {
			w.nonMinimal += int64(sources)
		}
	}
}
