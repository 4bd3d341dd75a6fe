package verify

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
)

// worker turns units of LIDs into counts and dependencies. Its results are
// sums, unions and minima, so it does not matter which worker has which unit.
type worker struct {
	*plan
	own *loads // of its LIDs

	delivered  Histogram // pairs, by switches passed
	nonMinimal int64     // delivered pairs that pass more than needed
	stretch    detour
	troubles   []trouble
	apart      [2]int64 // unreachable pairs that no cables join: unicast, management
	stale      []staleLID
	dead       map[deadKey]deadCount
	gap        gap // the lowest one

	stage []fabric.PortNum // the unit's entries, lft.BlockSize for each switch
	cells []uint32         // by switch and LID of one root, see cellBits

	// For one destination switch.
	at     int32   // the switch; -1 for none
	dist   []uint8 // by switch, after places beyond switches: see beyond
	exact  *graph.Search[fabric.NodeID]
	far    bool    // some switch is fabric.MaxHops links away or more: exact has the distances
	near   bool    // all switches but those in alone have a path, and far is false
	order  []int32 // these switches without the root, farthest first; valid if near
	levels []int64 // sources by distance; likewise

	flow *flow // nil if VLs make no difference

	paths forest // for the LID of walk
}

// loads has a record for each channel: the number of pairs that cross it and count for load, its
// dependencies in traffic between CAs, and its dependencies in other traffic, to and from port 0 of
// switches. Sets of channels are as in dependencyGraph.
type loads struct {
	records []uint64
	words   int // of a set of channels
	// By channel: paths of CAs, or other paths, end with it, which no dependency shows.
	caEnds, idleEnds []bool
}

func newLoads(c *channels) *loads {
	return &loads{make([]uint64, c.count()*(1+2*c.words)), c.words, make([]bool, c.count()), make([]bool, c.count())}
}

// stride returns the length of a record.
func (l *loads) stride() int { return 1 + 2*l.words }

// routes returns the number of pairs that cross a channel between switches and count for load.
func (l *loads) routes(ch int) *uint64 { return &l.records[ch*l.stride()] }

// deps returns the dependencies of a channel, in traffic between CAs and in other traffic.
func (l *loads) deps(ch int) (cas, idle []uint64) {
	at := ch*l.stride() + 1
	return l.records[at : at+l.words], l.records[at+l.words : at+2*l.words]
}

// add adds the records of o.
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

// detour is the pair that passes the most switches beyond those needed; among equals the one of
// lowest LID, then switch.
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

// gap is a switch without an entry for a LID, to which another switch's entry leads.
type gap struct {
	lid fabric.LID // 0 for none
	at  int32
}

// consider keeps the gap of the lowest LID, then the lowest switch.
func (g *gap) consider(o gap) {
	if o.lid > 0 && (g.lid == 0 || o.lid < g.lid || o.lid == g.lid && o.at < g.at) {
		*g = o
	}
}

// trouble counts the pairs of one LID that are not delivered, by kind: how
// many, and the lowest switch from which one starts.
type trouble struct {
	lid     fabric.LID
	tallies [numTallies]tally
}

// The tallies of a trouble: from CA and router ports to a CA LID, and of management packets.
const (
	tallyUnreachable = iota
	tallyMisdelivered
	tallyDropped
	tallyLoops
	tallyManagementUnreachable
	tallyManagementDropped
	tallyManagementLoops
	numTallies
)

type tally struct {
	pairs int64
	from  int32
}

func (t *trouble) add(tally int, pairs int64, from int) {
	at := &t.tallies[tally]
	if pairs > 0 && at.pairs == 0 {
		at.from = int32(from)
	}
	at.pairs += pairs
}

// forest has the paths of packets for one LID: each switch sends them to one other.
type forest struct {
	next  []int32 // by switch: where it sends packets, as in channels.to
	depth []int32 // by switch: links to the root, or depthUnknown and so on
	end   []int32 // by switch: where its packets end if they do not arrive
	order []int32 // switches from which packets arrive, without the root, each before its next
	room  []int32 // array of which order is the end
}

// Depths of switches from which packets do not arrive.
const (
	depthUnknown  = -1 - iota
	depthFollowed // on the path being followed
	depthDead
	depthLoop
)

// flow is the state of a worker that follows packets by VL. For one LID a node sends packets of a
// class on to one other node, so nodes are a forest, as switches are. Packets are followed once
// from each node, for each LID and class: it takes O(senders + nodes that packets reach).
type flow struct {
	*lanes
	fates  [][]uint32 // by class and node: 2 x serial if packets are dropped from there on, + 1 if they arrive
	marks  [][]uint32 // by class and node: 2 x serial if packets were there, + 1 if from a CA to a CA
	serial uint32     // number of the LID
	path   []int32
	sent   []uint16 // by sender: classes of its packets that arrive at other senders' ports
	sentBy []uint16 // by PortID: likewise at other ports of the same sender

	// By switch, for one LID: the number of pairs whose packets SL-to-VL tables drop; nil if
	// no table drops any.
	lost      []uint32 // from CAs on the switch
	lostHosts []uint32 // from those of its CA ports that count for load
	lostOwn   []uint32 // from its port 0
}

func newFlow(l *lanes) *flow {
	n := l.f.NumSwitches()
	w := &flow{lanes: l, sent: make([]uint16, len(l.senders)), sentBy: make([]uint16, l.f.NumPorts())}
	for _, c := range l.classes {
		w.fates, w.marks = append(w.fates, make([]uint32, len(c.nodes))), append(w.marks, make([]uint32, len(c.nodes)))
	}
	if l.drops {
		w.lost, w.lostHosts, w.lostOwn = make([]uint32, n), make([]uint32, n), make([]uint32, n)
	}
	return w
}

// A cell is for a switch and one LID of a root: the entry in the upper 8 bits, then a bit that is
// set if packets of CAs that count for no load pass the switch, then the number of sources that
// count for load and whose packets pass it.
const (
	cellBits   = 24
	noLoad     = 1 << (cellBits - 1)
	maxSources = noLoad - 1
)

// weigh returns what the sources on switch s add to its cell for a destination. A destination that
// counts for no load is no source.
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

// load sends the packets of all sources down the trees of CA LIDs on one switch. Cells must be set.
// order has the switches of the trees without the root; in each tree a switch comes before its
// next.
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
			// Most dependencies are there already, and a store would delay the
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

// beyond is the number of places other than switches to which packets may go:
// w.dist[beyond+to] is the distance of a place in channels.to.
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

// merge adds the results of another worker.
func (w *worker) merge(o *worker) {
	w.own.add(o.own)
	if w.flow != nil {
		for i, classes := range o.flow.sent {
			w.flow.sent[i] |= classes
		}
		for port, classes := range o.flow.sentBy {
			w.flow.sentBy[port] |= classes
		}
	}
	for h, n := range o.delivered {
		w.delivered[h] += n
	}
	w.nonMinimal += o.nonMinimal
	for i, pairs := range o.apart {
		w.apart[i] += pairs
	}
	w.stretch.consider(o.stretch)
	w.gap.consider(o.gap)
	w.troubles = append(w.troubles, o.troubles...)
	w.stale = append(w.stale, o.stale...)
	for key, n := range o.dead {
		if m, ok := w.dead[key]; ok {
			n.lids += m.lids
			n.first = min(n.first, m.first)
		}
		w.dead[key] = n
	}
}

// distance returns the distance from switch s to the root, if there is a path.
func (w *worker) distance(s int) int32 {
	if w.far {
		return w.exact.Distance[s]
	}
	return int32(w.dist[beyond+s])
}
