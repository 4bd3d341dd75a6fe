package verify

import (
	"bytes"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
)

// worker turns units of LIDs into counts and dependencies. Its results are
// sums, unions and minima, so that it does not matter which worker had which
// unit.
type worker struct {
	*plan
	own *loads // of each channel

	delivered  Histogram // pairs by switches passed
	nonMinimal int64     // of these, those that pass more than needed
	stretch    detour
	troubles   []trouble
	apart      [2]int64 // unreachable pairs that no cables join: unicast, management
	stale      []staleLID
	dead       map[deadKey]deadCount
	gap        gap // the first

	stage []fabric.PortNum // the unit's entries, lft.BlockSize for each switch
	cells []uint32         // by switch and LID of one root

	// By destination switch.
	at     int32   // which one; -1 for none
	dist   []uint8 // by switch, after those of places beyond: see beyond
	exact  *graph.Search[fabric.NodeID]
	far    bool    // some switch is fabric.MaxHops links away or more: exact has how many
	near   bool    // cables lead to all switches but those in alone, and not far
	order  []int32 // these but the root, the farthest first; valid if near, as the following
	levels []int64 // sources by distance

	flow *flow // nil when VLs can be left out

	paths forest // of the LID that is walked
}

// loads is what channels carry, in a record for each: the pairs that cross it and count for
// load, its dependencies in traffic between CAs, and those in traffic to and from port 0 of
// switches alone. Sets of channels are as in dependencyGraph.
type loads struct {
	records []uint64
	words   int // of a set
	// By channel: paths end with it, which shows in no dependency; of CAs, and of others.
	caEnds, idleEnds []bool
}

func newLoads(c *channels) *loads {
	return &loads{make([]uint64, c.count()*(1+2*c.words)), c.words, make([]bool, c.count()), make([]bool, c.count())}
}

// stride is the length of a record.
func (l *loads) stride() int { return 1 + 2*l.words }

// routes is the pairs that cross a channel between switches and count for load.
func (l *loads) routes(ch int) *uint64 { return &l.records[ch*l.stride()] }

// deps is the dependencies of a channel, of traffic between CAs and of other traffic.
func (l *loads) deps(ch int) (cas, idle []uint64) {
	at := ch*l.stride() + 1
	return l.records[at : at+l.words], l.records[at+l.words : at+2*l.words]
}

// add adds what o has for each channel.
func (l *loads) add(o *loads) {
	for ch := range l.caEnds {
		*l.routes(ch) += *o.routes(ch)
		l.caEnds[ch] = l.caEnds[ch] || o.caEnds[ch]
		l.idleEnds[ch] = l.idleEnds[ch] || o.idleEnds[ch]
		cas, idle := l.deps(ch)
		moreCAs, moreIdle := o.deps(ch)
		for k := range cas {
			cas[k] |= moreCAs[k]
			idle[k] |= moreIdle[k]
		}
	}
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

// beyond is how many places there are besides switches that packets can go to:
// w.dist[beyond+to] is the distance of a place that channels.to names.
const beyond = -toPort0

func newWorker(p *plan) *worker {
	w := &worker{
		plan:      p,
		own:       newLoads(p.channels),
		delivered: make(Histogram, p.n+1),
		dead:      make(map[deadKey]deadCount),
		stage:     make([]fabric.PortNum, p.n*lft.BlockSize),
		cells:     make([]uint32, p.n*lft.BlockSize),
		at:        -1,
		dist:      make([]uint8, beyond+p.n),
		exact:     graph.NewSearch[fabric.NodeID](p.n),
		order:     make([]int32, max(0, p.n-1)),
		paths:     forest{next: make([]int32, p.n), depth: make([]int32, p.n), end: make([]int32, p.n), room: make([]int32, p.n)},
	}
	if p.lanes.tracks() {
		w.flow = newFlow(p.lanes)
	}
	// The root's entry has to lead out of the switches, from distance 0 to 255.
	w.dist[beyond+toCA], w.dist[beyond+toPort0], w.dist[beyond+toNowhere] = 255, 255, 254
	return w
}

// unit checks the LIDs of u.
func (w *worker) unit(u *unit) {
	if u.dests == nil {
		w.findStale(u.unowned)
		return
	}
	w.stageEntries(u.dests)
	for dests := u.dests; len(dests) > 0; {
		n := 1
		for n < len(dests) && dests[n].root == dests[0].root && dests[n].ca == dests[0].ca && dests[n].loads == dests[0].loads {
			n++
		}
		w.route(dests[:n])
		dests = dests[n:]
	}
}

// stageEntries stages the entries of some LIDs.
func (w *worker) stageEntries(dests []dest) {
	first, n := int(dests[0].lid), len(dests)
	inOrder := true
	for i := range dests {
		inOrder = inOrder && int(dests[i].lid) == first+i
	}
	for s := range int32(w.n) {
		row, to := w.t.Row(fabric.NodeID(s)), w.stage[int(s)*lft.BlockSize:][:lft.BlockSize]
		if inOrder && first+n <= len(row) {
			copy(to, row[first:first+n])
		} else {
			for i := range dests {
				to[i] = w.entry(s, dests[i].lid)
			}
		}
	}
}

// findStale looks for entries of LIDs without a port.
func (w *worker) findStale(lids []fabric.LID) {
	found := make([]staleLID, len(lids))
	for s := range int32(w.n) {
		for i, lid := range lids {
			if w.entry(s, lid) == fabric.NoPath {
				continue
			}
			if found[i].switches == 0 {
				found[i].lid, found[i].first = lid, s
			}
			found[i].switches++
		}
	}
	w.stale = append(w.stale, slices.DeleteFunc(found, func(x staleLID) bool { return x.switches == 0 })...)
}

// route checks destinations of the unit that have one root and kind of
// owner: together if all their paths are minimal.
func (w *worker) route(dests []dest) {
	if dests[0].root >= 0 && (dests[0].ca || w.flow != nil) {
		w.root(dests[0].root)
		if drops := w.flow != nil && w.flow.drops; w.near && !drops && w.fill(dests) { // else it is unknown what is delivered
			w.minimal(dests)
			return
		}
	}
	for i := range dests {
		w.walk(&dests[i])
	}
}

// minimal checks destinations of one root and owner kind whose paths are all
// minimal, after fill.
func (w *worker) minimal(dests []dest) {
	if w.flow != nil {
		for i := range dests {
			w.followLanes(&tree{&dests[i], len(dests), i}, true)
		}
	}
	if !dests[0].ca {
		return // followLanes has found the dependencies
	}
	for i := range dests {
		w.failAlone(&dests[i])
	}
	for h, sources := range w.levels {
		w.delivered[h+1] += sources * int64(len(dests))
	}
	w.delivered[1] -= int64(len(dests)) // the owners
	w.load(dests, w.order)
}

// root prepares for destinations at switch t.
func (w *worker) root(t int32) {
	if w.at == t {
		return
	}
	w.at, w.far = t, w.hops == nil
	dist := w.dist[beyond:]
	if w.hops != nil {
		copy(dist, w.hops.To(fabric.NodeID(t)))
		w.far = bytes.IndexByte(dist, fabric.MaxHops) >= 0
	}
	if w.far {
		w.exact.Run(w.f.Neighbors, fabric.NodeID(t))
		w.far = false
		for s, d := range w.exact.Distance {
			w.far = w.far || d >= int32(fabric.MaxHops)
			dist[s] = uint8(d) // fabric.Unreachable for -1
		}
	}
	w.near = !w.far
	if bytes.IndexByte(dist, fabric.Unreachable) >= 0 {
		w.near = w.near && w.flow == nil && bytes.Count(dist, []byte{fabric.Unreachable}) == len(w.alone)
	}
	if w.near {
		w.sortByDistance(dist)
	}
}

// sortByDistance fills in order and levels.
func (w *worker) sortByDistance(dist []uint8) {
	var count [256]int32
	var levels [256]int64
	farthest := uint8(0)
	for s, d := range dist {
		if d == fabric.Unreachable {
			continue
		}
		count[d]++
		levels[d] += int64(w.sources[s])
		farthest = max(farthest, d)
	}
	w.levels = append(w.levels[:0], levels[:farthest+1]...)
	at := int32(0)
	for d := int(farthest); d >= 0; d-- {
		at, count[d] = at+count[d], at
	}
	w.order = w.order[:at-1]
	for s, d := range dist {
		if d > 0 && d != fabric.Unreachable {
			w.order[count[d]] = int32(s)
			count[d]++
		}
	}
}

// distance is that of switch s to the one that root was called with, if there is a path.
func (w *worker) distance(s int) int32 {
	if w.far {
		return w.exact.Distance[s]
	}
	return int32(w.dist[beyond+s])
}

// A cell is what is known of a switch and one LID of a root: the entry in the upper 8 bits,
// below it a bit that says whether packets of CAs pass the switch that count for no load,
// and how many sources' packets pass it that do.
const (
	cellBits   = 24
	noLoad     = 1 << (cellBits - 1)
	maxSources = noLoad - 1
)

// weigh is what the sources on switch s add to its cell for a destination, itself excepted
// if it counts for no load.
func (p *plan) weigh(s int32, d *dest) uint32 {
	hosts, others := p.hosts[s], p.sources[s]-p.hosts[s]
	if !d.loads {
		hosts, others = 0, p.sources[s]
		if s == d.root {
			others--
		}
	}
	if others > 0 {
		hosts |= noLoad
	}
	return hosts
}

// fill fills in the cells of destinations at the current root. It returns true if all their paths
// are minimal: each entry leads one link closer, switches in alone not counted. The root, at
// distance 0, passes with an entry that leads out of the switches, to distance 255.
func (w *worker) fill(dests []dest) bool {
	g, column := len(dests), dests[0].column
	off := uint8(0) // bits in which some distance is not what it should be
	for s := range w.n {
		if w.dist[beyond+s] == fabric.Unreachable {
			continue
		}
		row := w.stage[s*lft.BlockSize+column:][:g]
		cells := w.cells[s*g:][:len(row)]
		to := w.to[w.ports[s]:w.ports[s+1]]
		want := w.dist[beyond+s] - 1
		sources := w.weigh(int32(s), &dests[0])
		for i, p := range row {
			if int(p) >= len(to) {
				return false
			}
			off |= w.dist[beyond+to[p]] ^ want
			cells[i] = uint32(p)<<cellBits | sources
		}
	}
	for i := range dests {
		if w.cells[int(w.at)*g+i]>>cellBits != uint32(dests[i].last) {
			return false
		}
	}
	return off == 0
}

// load sends the packets of all sources down the trees of LIDs of CAs on one
// switch, of which there are cells. order is the switches of the trees without the root,
// each before the one it leads to in any of them.
func (w *worker) load(dests []dest, order []int32) {
	g, words, stride, cells := len(dests), w.words, w.own.stride(), w.cells
	for _, s := range order {
		first, end := int(w.ports[s]), int(w.ports[s+1])
		records, to := w.own.records[first*stride:end*stride], w.to[first:end]
		for i, cell := range cells[int(s)*g:][:g] {
			port, sources := int(cell>>cellBits), cell&maxSources
			next := int(to[port])*g + i
			after := (cells[next] + sources) | cell&noLoad
			cells[next] = after
			out := after>>cellBits - 1
			at := port * stride
			records[at] += uint64(sources)
			at += 1 + int(out>>6)
			if cell&(noLoad|maxSources) == 0 {
				at += words
			}
			// Most dependencies are there already, and a store would only hold up the
			// next load from there.
			if set := &records[at]; *set>>(out&63)&1 == 0 {
				*set |= 1 << (out & 63)
			}
		}
	}
	root := int(dests[0].root)
	for i := range dests {
		out := int(w.ports[root]) + int(dests[i].last)
		cell := w.cells[root*g+i]
		sources := cell & maxSources
		if dests[i].loads {
			sources-- // the owner does not send to itself
		}
		if sources > 0 || cell&noLoad != 0 {
			w.own.caEnds[out] = true
		} else {
			w.own.idleEnds[out] = true
		}
	}
}
