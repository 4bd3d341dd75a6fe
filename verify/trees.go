package verify

import (
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// A step is where a switch sends a packet: the next switch in the low 24 bits
// and the link it takes, counted from the switch's first, in the upper 8.
// Three numbers beyond the switches say that the packet leaves the switches.
type step = uint32

const (
	stepBits    = 24
	stepMask    = 1<<stepBits - 1
	maxSwitches = stepMask - 3

	outCA   = 0 // added to the number of switches: over the link to a CA or router
	outDrop = 1 // no entry, no cable, no such port
	outPort = 2 // to port 0 of the switch
	outs    = 3
)

// columns is how many LIDs are taken from the tables at a time. A row's 64
// entries of a block are one cache line; fewer columns keep the steps of all
// switches in the cache next to the dependencies.
const columns = 16

// maxMatrix bounds the distance matrix in bytes. In a larger fabric distances
// are searched for one destination switch at a time.
const maxMatrix = 256 << 20

// plan is what all workers read.
type plan struct {
	f    *fabric.Fabric
	t    *lft.Tables
	n    int               // switches
	hops *fabric.HopMatrix // nil when it would be larger than maxMatrix
	*channels
	sources []uint32 // by switch: CA and router ports cabled to it
	total   int64    // CA and router ports cabled to any switch
	steps   []step   // for each switch NumPorts+2: by port number, the last for what is beyond
	stepAt  []int32  // by switch: its part of steps; one more at the end
}

func newPlan(f *fabric.Fabric, t *lft.Tables) *plan {
	n := f.NumSwitches()
	p := &plan{f: f, t: t, n: n, channels: newChannels(f, 1)}
	p.sources = make([]uint32, n)
	for _, s := range f.CASwitches() {
		if s != fabric.NoNode {
			p.sources[s]++
			p.total++
		}
	}
	p.stepAt = make([]int32, n+1)
	for s := range n {
		p.stepAt[s+1] = p.stepAt[s] + int32(f.Node(fabric.NodeID(s)).NumPorts) + 2
	}
	p.steps = make([]step, p.stepAt[n])
	for i := range p.steps {
		p.steps[i] = step(n + outDrop)
	}
	for s := range n {
		p.steps[p.stepAt[s]] = step(n + outPort)
		base := f.PortBase(fabric.NodeID(s))
		for l := p.first[s]; l < p.first[s+1]; l++ {
			to := step(n + outCA)
			if p.to[l] >= 0 {
				to = step(p.to[l])
			}
			p.steps[p.stepAt[s]+int32(p.port[l]-base)] = to | step(l-p.first[s])<<stepBits
		}
	}
	if n*n <= maxMatrix {
		p.hops = f.Distances()
	}
	return p
}

// dest is a LID and the switch its tree is rooted in.
type dest struct {
	lid    fabric.LID
	column int           // in the block
	port   fabric.PortID // the port that owns the LID
	root   int32         // -1 when the port's cable leads to no switch
	last   step          // what the root must do with the packet
	own    uint32        // sources at the root that are the port itself: 1 for CAs
	ca     bool          // else port 0 of the root owns the LID
}

// worker turns blocks of LIDs into counts and dependencies. Its results are
// sums, unions and minima, so that it does not matter which worker had which
// block.
type worker struct {
	*plan

	// For each channel a record: the routes that cross it, then its
	// dependencies in traffic between CAs, then those in management traffic
	// only. Together, since they are wanted together.
	records []uint64
	stride  int    // of records: 1 + 2*words
	used    []bool // channels that paths end with: they show in no dependency of their own

	delivered  Histogram // pairs by switches passed
	nonMinimal int64     // of these, those that pass more than needed
	stretch    detour
	troubles   []trouble
	stale      []staleLID
	dead       map[deadKey]deadCount

	// By destination switch.
	at     int32   // which one; -1 for none
	dist   []uint8 // by switch and beyond; valid if near
	exact  []int32 // by switch, -1 where no cables lead to; valid if not near
	near   bool    // all switches are at most 253 links away
	order  []int32 // all switches but at, the farthest first
	last   int     // where in order those one link away begin
	levels []int64 // sources by distance
	queue  []int32

	// By destination.
	cols      []step // columns x colStride
	colStride int
	weight    []uint32 // by switch: sources whose packets pass it
	depth     []int32
	end       []int32
	tree      []int32
	path      []int32
	bucket    []int32
}

// trouble is what pairs of one destination LID came to that were not
// delivered: how many, and the lowest switch where one of them starts.
type trouble struct {
	lid                              fabric.LID
	unreachable, misdelivered, loops tally // from CA and router ports to a CA LID
	mgmtUnreachable, mgmtLoops       tally
}

type tally struct {
	pairs int64
	from  int32
}

func (t *tally) add(pairs int64, from int) {
	if pairs > 0 && t.pairs == 0 {
		t.from = int32(from)
	}
	t.pairs += pairs
}

// detour is the pair that goes farthest out of its way: the lowest LID and
// switch of several.
type detour struct {
	extra int32
	lid   fabric.LID
	from  int32
}

func (d *detour) consider(e detour) {
	if e.extra > d.extra || e.extra == d.extra && (e.lid < d.lid || e.lid == d.lid && e.from < d.from) {
		*d = e
	}
}

type staleLID struct {
	lid      fabric.LID
	switches int64
	first    int32
}

type deadKey struct {
	sw   int32
	port fabric.PortNum
}

type deadCount struct {
	lids  int64
	first fabric.LID
}

func newWorker(p *plan) *worker {
	w := &worker{
		plan:      p,
		stride:    1 + 2*p.words,
		used:      make([]bool, p.count()),
		delivered: make(Histogram, p.n+1),
		dead:      make(map[deadKey]deadCount),
		at:        -1,
		dist:      make([]uint8, p.n+outs),
		exact:     make([]int32, p.n),
		order:     make([]int32, p.n),
		levels:    make([]int64, 256),
		queue:     make([]int32, 0, p.n),
		colStride: (p.n+15)/16*16 | 16, // an odd number of cache lines: columns must not share sets
		weight:    make([]uint32, p.n),
		depth:     make([]int32, p.n),
		end:       make([]int32, p.n),
		tree:      make([]int32, p.n),
		path:      make([]int32, 0, p.n),
		bucket:    make([]int32, p.n+1),
	}
	w.records = make([]uint64, p.count()*w.stride)
	w.cols = make([]step, columns*w.colStride)
	w.dist[p.n+outCA] = 255
	w.dist[p.n+outDrop] = 254
	w.dist[p.n+outPort] = 255
	return w
}

// noEntries is a block that a table does not have.
var noEntries = func() (b [lft.BlockSize]fabric.PortNum) {
	for i := range b {
		b[i] = fabric.NoPath
	}
	return b
}()

// entries is switch s's table for the LIDs from b*lft.BlockSize on.
func (p *plan) entries(s, b int) *[lft.BlockSize]fabric.PortNum {
	row := p.t.Row(fabric.NodeID(s))
	row = row[:cap(row)]
	if b*lft.BlockSize >= len(row) {
		return &noEntries
	}
	return (*[lft.BlockSize]fabric.PortNum)(row[b*lft.BlockSize:])
}

// destination says who owns a LID. ok is false for a LID that no port with a
// cable, and no switch, has.
func (p *plan) destination(lid fabric.LID) (d dest, ok bool) {
	port := p.f.LIDPort(lid)
	if port == fabric.NoPort {
		return d, false
	}
	d = dest{lid: lid, column: int(lid) % lft.BlockSize, port: port, root: -1}
	node := p.f.Owner(port)
	if p.f.IsSwitch(node) {
		d.root, d.last = int32(node), step(p.n+outPort)
		return d, p.f.Num(port) == fabric.ManagementPort
	}
	peer := p.f.Peer(port)
	if peer == fabric.NoPort {
		return d, false
	}
	d.ca = true
	if s := p.f.Owner(peer); p.f.IsSwitch(s) {
		d.root, d.own = int32(s), 1
		d.last = step(p.n+outCA) | step(p.link(s, peer)-p.first[s])<<stepBits
	}
	return d, true
}

// block checks the LIDs from b*lft.BlockSize on.
func (w *worker) block(b int) {
	var all [lft.BlockSize]dest
	dests := all[:0]
	var unowned uint64
	for i := range lft.BlockSize {
		if b == 0 && i == 0 {
			continue // LID 0 is nobody's, and its entry means nothing
		}
		if d, ok := w.destination(fabric.LID(b*lft.BlockSize + i)); ok {
			dests = append(dests, d)
		} else {
			unowned |= 1 << i
		}
	}
	w.unowned(b, unowned)
	// Destinations with one root share what is computed for it.
	slices.SortFunc(dests, func(d, e dest) int {
		if d.root != e.root {
			return int(d.root - e.root)
		}
		return int(d.lid) - int(e.lid)
	})
	for len(dests) > 0 {
		part := dests[:min(len(dests), columns)]
		dests = dests[len(part):]
		w.gather(b, part)
		for i := range part {
			w.route(&part[i], w.cols[i*w.colStride:][:w.n])
		}
	}
}

// unowned looks for entries of LIDs that nobody has.
func (w *worker) unowned(b int, set uint64) {
	if set == 0 {
		return
	}
	var found [lft.BlockSize]staleLID
	for s := range w.n {
		row := w.entries(s, b)
		if *row == noEntries {
			continue
		}
		for m := set; m != 0; m &= m - 1 {
			i := bits.TrailingZeros64(m)
			if row[i] == fabric.NoPath {
				continue
			}
			if found[i].switches == 0 {
				found[i].first = int32(s)
			}
			found[i].switches++
		}
	}
	for i := range found {
		if found[i].switches > 0 {
			found[i].lid = fabric.LID(b*lft.BlockSize + i)
			w.stale = append(w.stale, found[i])
		}
	}
}

// gather turns entries into steps: a column of all switches for each
// destination.
func (w *worker) gather(b int, dests []dest) {
	for s := range w.n {
		row := w.entries(s, b)
		steps := w.steps[w.stepAt[s]:w.stepAt[s+1]]
		beyond := len(steps) - 1
		at := s
		for i := range dests {
			p := min(int(row[dests[i].column&(lft.BlockSize-1)]), beyond)
			w.cols[at] = steps[p]
			at += w.colStride
		}
	}
}

// route takes one destination through all switches' steps.
func (w *worker) route(d *dest, col []step) {
	if d.root < 0 || w.n == 0 {
		w.walk(d, col)
		return
	}
	w.root(d.root)
	if !w.near || col[d.root] != d.last || !w.minimal(col) {
		w.walk(d, col)
		return
	}
	if !d.ca {
		w.manage(col, w.order, w.last)
		return
	}
	for h, sources := range w.levels[:min(len(w.levels), w.n)] {
		w.delivered[h+1] += sources
	}
	w.delivered[1] -= int64(d.own)
	w.load(d, col, w.order)
}

// root prepares for destinations at switch t: distances, and an order of the
// switches that serves for every destination there whose paths are minimal.
func (w *worker) root(t int32) {
	if w.at == t {
		return
	}
	w.at = t
	w.near = w.hops != nil
	if w.near {
		copy(w.dist, w.hops.To(fabric.NodeID(t)))
		w.near = slices.Max(w.dist[:w.n]) < fabric.Unreachable-1
	}
	if !w.near {
		w.search(t)
		if farthest := slices.Max(w.exact); slices.Min(w.exact) >= 0 && farthest < int32(fabric.Unreachable)-1 {
			w.near = true
			for s, d := range w.exact {
				w.dist[s] = uint8(d)
			}
		}
	}
	if !w.near {
		return
	}
	var count [256]int32
	clear(w.levels)
	for s, d := range w.dist[:w.n] {
		count[d]++
		w.levels[d] += int64(w.sources[s])
	}
	w.last = w.n - 1 - int(count[1])
	at := int32(0)
	for d := len(count) - 1; d >= 0; d-- {
		at, count[d] = at+count[d], at
	}
	order := w.order[:w.n]
	for s, d := range w.dist[:w.n] {
		order[count[d]] = int32(s)
		count[d]++
	}
	w.order = order[:w.n-1] // the last is t
}

// search fills exact with the distances to switch t.
func (w *worker) search(t int32) {
	for s := range w.exact {
		w.exact[s] = -1
	}
	w.exact[t] = 0
	w.queue = append(w.queue[:0], t)
	for at := 0; at < len(w.queue); at++ {
		s := w.queue[at]
		_, to := w.f.SwitchLinks(fabric.NodeID(s))
		for _, u := range to {
			if w.exact[u] < 0 {
				w.exact[u] = w.exact[s] + 1
				w.queue = append(w.queue, int32(u))
			}
		}
	}
}

// distance is that of switch s to the one that root was called with.
func (w *worker) distance(s int) int32 {
	if w.near {
		return int32(w.dist[s])
	}
	return w.exact[s]
}

// minimal says whether each step leads one link closer to the root. The root
// itself, at distance 0, passes with a step out of the switches, whose
// distance is 255.
func (w *worker) minimal(col []step) bool {
	dist := w.dist
	bad := uint8(0)
	for s, e := range col {
		bad |= dist[e&stepMask] ^ (dist[s] - 1)
	}
	return bad == 0
}

// load sends the packets of all sources down the tree of a CA's LID: order is
// its switches without the root, each before the one it leads to.
func (w *worker) load(d *dest, col []step, order []int32) {
	weight := w.weight[:len(col)]
	copy(weight, w.sources)
	records, stride, words := w.records, w.stride, w.words
	first := w.first
	for _, s := range order {
		e := col[s]
		u := e & stepMask
		k := col[u] >> stepBits
		n := uint64(weight[s])
		weight[u] += uint32(n)
		at := (int(first[s]) + int(e>>stepBits)) * stride
		records[at] += n
		at += 1 + int(k>>6)
		if n == 0 {
			at += words // nothing but the switch's own packets
		}
		records[at] |= 1 << (k & 63)
	}
	out := int(first[d.root]) + int(d.last>>stepBits)
	records[out*stride] += uint64(weight[d.root] - d.own)
	w.used[out] = true
}

// manage adds the dependencies of packets for port 0 of a switch: order as
// for load, with those next to the root from last on.
func (w *worker) manage(col []step, order []int32, last int) {
	records, stride := w.records, w.stride
	first := w.first
	for _, s := range order[:last] {
		e := col[s]
		k := col[e&stepMask] >> stepBits
		at := (int(first[s])+int(e>>stepBits))*stride + 1 + w.words + int(k>>6)
		records[at] |= 1 << (k & 63)
	}
	for _, s := range order[last:] {
		w.used[int(first[s])+int(col[s]>>stepBits)] = true
	}
}

// Depths of switches that are not in the tree.
const (
	depthUnknown = -1 - iota
	depthWalked  // on the way that is being walked
	depthDead
	depthLoop
)

// walk takes a destination through tables of which nothing is known: packets
// may be dropped, go round, or take long ways. It follows each switch's steps
// until something known, once for each switch.
func (w *worker) walk(d *dest, col []step) {
	if d.root >= 0 {
		w.root(d.root)
	}
	for s := range w.depth {
		w.depth[s] = depthUnknown
	}
	if d.root >= 0 && col[d.root] == d.last {
		w.depth[d.root] = 0
	}
	for s := range col {
		if w.depth[s] != depthUnknown {
			continue
		}
		path := w.path[:0]
		at := int32(s)
		for at < int32(w.n) && w.depth[at] == depthUnknown {
			w.depth[at] = depthWalked
			path = append(path, at)
			at = int32(col[at] & stepMask)
		}
		depth, end := int32(depthDead), path[len(path)-1]
		if at < int32(w.n) {
			depth, end = w.depth[at], w.end[at]
		}
		for i, u := range slices.Backward(path) {
			switch {
			case depth >= 0:
				w.depth[u] = depth + int32(len(path)-i)
			case depth == depthWalked:
				w.depth[u] = depthLoop
			default:
				w.depth[u] = depth
			}
			w.end[u] = end
		}
	}
	w.tallyUp(d, col)
	if d.root < 0 || w.depth[d.root] != 0 {
		return
	}
	// Order the tree by depth, the deepest first.
	clear(w.bucket)
	for _, h := range w.depth {
		if h > 0 {
			w.bucket[h]++
		}
	}
	nextTo := w.bucket[1:2]
	if w.n == 1 {
		nextTo = w.bucket[:1]
	}
	direct := int(nextTo[0])
	at := int32(0)
	for h := len(w.bucket) - 1; h > 0; h-- {
		at, w.bucket[h] = at+w.bucket[h], at
	}
	for s, h := range w.depth {
		if h > 0 {
			w.tree[w.bucket[h]] = int32(s)
			w.bucket[h]++
		}
	}
	tree := w.tree[:at]
	if d.ca {
		w.load(d, col, tree)
	} else {
		w.manage(col, tree, len(tree)-direct)
	}
}

// tallyUp counts the pairs of a destination by what walk found.
func (w *worker) tallyUp(d *dest, col []step) {
	bad := trouble{lid: d.lid}
	for s, h := range w.depth {
		sources := int64(w.sources[s])
		managers := int64(1)
		if int32(s) == d.root {
			sources -= int64(d.own)
			if !d.ca {
				managers = 0
			}
		}
		switch {
		case h >= 0 && d.ca:
			w.delivered[h+1] += sources
			if extra := h - w.distance(s); extra > 0 && sources > 0 {
				w.nonMinimal += sources
				w.stretch.consider(detour{extra, d.lid, int32(s)})
			}
		case h == depthDead && d.ca:
			if int(col[w.end[s]]&stepMask) == w.n+outCA {
				bad.misdelivered.add(sources, s)
			} else {
				bad.unreachable.add(sources, s)
			}
			bad.mgmtUnreachable.add(managers, s)
		case h == depthDead:
			bad.mgmtUnreachable.add(sources+managers, s)
		case h == depthLoop && d.ca:
			bad.loops.add(sources, s)
			bad.mgmtLoops.add(managers, s)
		case h == depthLoop:
			bad.mgmtLoops.add(sources+managers, s)
		}
		if h == depthDead && w.end[s] == int32(s) {
			w.deadEntry(s, d.lid)
		}
	}
	if bad != (trouble{lid: d.lid}) {
		w.troubles = append(w.troubles, bad)
	}
}

// deadEntry notes an entry that leads nowhere. No entry at all is no dead
// one, nor is one that leads to a wrong CA.
func (w *worker) deadEntry(s int, lid fabric.LID) {
	port := fabric.NoPath
	if row := w.t.Row(fabric.NodeID(s)); int(lid) < len(row) {
		port = row[lid]
	}
	node := fabric.NodeID(s)
	if port == fabric.NoPath || port <= w.f.Node(node).NumPorts && port != fabric.ManagementPort && w.f.Peer(w.f.Port(node, port)) != fabric.NoPort {
		return
	}
	key := deadKey{int32(s), port}
	n := w.dead[key]
	if n.lids == 0 || lid < n.first {
		n.first = lid
	}
	n.lids++
	w.dead[key] = n
}
