package verify

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// What a switch does with a packet is the number of the next switch, or one
// of these added to the number of switches.
const (
	outCA   = 0 // sends it to a CA or router
	outDrop = 1 // has no entry, or no such port, or no cable there
	outPort = 2 // takes it in at its port 0
	outs    = 3
)

// batch is how many LIDs of one root are taken through the switches together:
// so many cells are two cache lines for each switch.
const batch = 32

// maxMatrix bounds the distance matrix in bytes. In a larger fabric distances
// are searched for one destination switch at a time.
const maxMatrix = 256 << 20

// plan is what all workers read.
type plan struct {
	f         *fabric.Fabric
	t         *lft.Tables
	n         int               // switches
	hops      *fabric.HopMatrix // nil when it would be larger than maxMatrix
	*channels                   // on one VL
	lanes     *lanes            // nil without SL-to-VL tables
	sources   []uint32          // by switch: CA and router ports cabled to it
	parts     *fabric.Components
	// next is what each switch does with packets by the entry for their LID:
	// NumPorts+2 for each switch, the last for all that is beyond its ports.
	next   []uint32
	nextAt []int32 // by switch: its part of next; one more at the end
	alike
	units []unit
	holes []hole
}

// unit is up to lft.BlockSize LIDs that are taken through the switches together.
// Those of one root are side by side, however far apart their numbers are, since
// they share what is computed for it.
type unit struct {
	dests   []dest
	inOrder bool // LID after LID
}

// hole is a block with LIDs that nobody has.
type hole struct {
	block int
	set   uint64 // bit i: the LID block*lft.BlockSize+i
}

func newPlan(f *fabric.Fabric, t *lft.Tables, l *lanes) *plan {
	n := f.NumSwitches()
	p := &plan{f: f, t: t, n: n, channels: newChannels(f, 0), lanes: l, parts: f.Components()}
	p.sources = make([]uint32, n)
	for _, s := range f.CASwitches() {
		if s != fabric.NoNode {
			p.sources[s]++
		}
	}
	p.next = make([]uint32, 0, len(p.to)+n)
	p.nextAt = make([]int32, n+1)
	for s := range n {
		base := int(f.PortBase(fabric.NodeID(s)))
		p.next = append(p.next, uint32(n+outPort))
		for _, to := range p.to[base+1 : base+1+int(f.Node(fabric.NodeID(s)).NumPorts)] {
			switch to {
			case toCA:
				to = int32(n + outCA)
			case toNowhere:
				to = int32(n + outDrop)
			}
			p.next = append(p.next, uint32(to))
		}
		p.next = append(p.next, uint32(n+outDrop))
		p.nextAt[s+1] = int32(len(p.next))
	}
	p.alike = p.findAlike()
	p.findUnits()
	p.next = append(p.next, make([]uint32, 256)...) // so that there are 256 from the last switch's on
	if n*n <= maxMatrix {
		p.hops = f.Distances()
	}
	return p
}

// findUnits deals the LIDs out.
func (p *plan) findUnits() {
	most := max(p.f.MaxLID(), p.t.MaxLID())
	all := make([]dest, 0, most)
	var set uint64
	for lid := 1; lid < (int(most)/lft.BlockSize+1)*lft.BlockSize; lid++ { // LID 0 is nobody's, and its entry means nothing
		if d, ok := p.destination(fabric.LID(lid)); ok {
			all = append(all, d)
		} else {
			set |= 1 << (lid % lft.BlockSize)
		}
		if lid%lft.BlockSize == lft.BlockSize-1 {
			if set != 0 {
				p.holes = append(p.holes, hole{lid / lft.BlockSize, set})
			}
			set = 0
		}
	}
	kind := func(d *dest) int {
		if d.ca {
			return 1
		}
		return 0
	}
	slices.SortFunc(all, func(d, e dest) int {
		return cmp.Or(kind(&d)-kind(&e), cmp.Compare(d.root, e.root), cmp.Compare(d.last, e.last), cmp.Compare(d.lid, e.lid))
	})
	for len(all) > 0 {
		n := min(len(all), lft.BlockSize)
		if n < len(all) { // up to where another root begins, if any does
			for at := n; at > n/2; at-- {
				if all[at].root != all[at-1].root {
					n = at
					break
				}
			}
		}
		u := unit{dests: all[:n:n], inOrder: true}
		for i := range u.dests {
			u.dests[i].column = uint8(i)
			u.inOrder = u.inOrder && u.dests[i].lid == u.dests[0].lid+fabric.LID(i)
		}
		p.units = append(p.units, u)
		all = all[n:]
	}
}

// dest is a LID and the switch its tree is rooted in.
type dest struct {
	lid    fabric.LID
	column uint8          // in its unit
	last   fabric.PortNum // what the root's entry must be
	ca     bool           // the owner is a CA or router port, else port 0 of the root
	root   int32          // -1 when the owner's cable leads to no switch
}

// own is how many of the sources at the root are the owner itself.
func (d *dest) own() uint32 {
	if d.ca && d.root >= 0 {
		return 1
	}
	return 0
}

// worker turns units of LIDs into counts and dependencies. Its results are
// sums, unions and minima, so that it does not matter which worker had which
// unit.
type worker struct {
	*plan

	// For each channel a record: the routes that cross it, and then its
	// dependencies in traffic between CAs; together, since they are wanted
	// together. Dependencies that management traffic makes are apart.
	records []uint64
	stride  int      // of records: 1 + words
	idle    []uint64 // words for each channel
	used    []bool   // channels that paths end with: they show in no dependency of their own

	delivered  Histogram // pairs by switches passed
	nonMinimal int64     // of these, those that pass more than needed
	stretch    detour
	troubles   []trouble
	apart      [2]int64 // unreachable pairs that no cables join: unicast, management
	stale      []staleLID
	dead       map[deadKey]deadCount
	gap        gap // the first

	stage []fabric.PortNum // the unit's entries, lft.BlockSize for each switch

	// By destination switch.
	at     int32   // which one; -1 for none
	dist   []uint8 // by switch and beyond; not valid if capped
	capped bool    // some switch is 254 links away or more
	exact  []int32 // by switch, -1 where no cables lead to; valid if capped
	near   bool    // cables lead to all switches, and not capped
	rooted         // valid if near
	queue  []int32

	cells []uint32 // by switch and LID of a batch
	together

	flow *flow // nil when VLs can be left out

	ports []fabric.PortNum // by switch, for one LID of a switch: the entry
	steps [3][]uint32      // and what lies 1, 2, 4 hops on and so forth, as in plan.next

	after  []int32 // by switch, for one LID: what it does, as in plan.next
	depth  []int32 // and so are those that follow
	end    []int32
	tree   []int32
	path   []int32
	bucket []int32
}

// trouble is what pairs of one destination LID came to that were not
// delivered: how many, and the lowest switch where one of them starts.
type trouble struct {
	lid                                         fabric.LID
	unreachable, misdelivered, loops, discarded tally // from CA and router ports to a CA LID
	mgmtUnreachable, mgmtLoops, mgmtDiscarded   tally
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
		stride:    1 + p.words,
		used:      make([]bool, p.count()),
		delivered: make(Histogram, p.n+1),
		dead:      make(map[deadKey]deadCount),
		stage:     make([]fabric.PortNum, p.n*lft.BlockSize),
		at:        -1,
		dist:      make([]uint8, p.n+outs),
		exact:     make([]int32, p.n),
		rooted:    rooted{order: make([]int32, 0, p.n), pure: make([]bool, len(p.groups))},
		queue:     make([]int32, 0, p.n),
		cells:     make([]uint32, p.n*batch),
		ports:     make([]fabric.PortNum, p.n),
		after:     make([]int32, p.n),
		depth:     make([]int32, p.n),
		end:       make([]int32, p.n),
		tree:      make([]int32, p.n),
		path:      make([]int32, 0, p.n),
		bucket:    make([]int32, p.n+1),
	}
	if p.lanes.tracks() {
		w.flow = newFlow(p.lanes)
	} else {
		w.together = newTogether(p)
	}
	// So that 256 ports of the last switch are within bounds.
	w.records = make([]uint64, p.count()*w.stride+512)
	w.idle = make([]uint64, p.count()*p.words+256)
	for i := range w.steps {
		w.steps[i] = make([]uint32, p.n+outs)
		for end := p.n; end < p.n+outs; end++ {
			w.steps[i][end] = uint32(end)
		}
	}
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
	d = dest{lid: lid, root: -1}
	node := p.f.Owner(port)
	if p.f.IsSwitch(node) {
		d.root, d.last = int32(node), fabric.ManagementPort
		return d, p.f.Num(port) == fabric.ManagementPort
	}
	peer := p.f.Peer(port)
	if peer == fabric.NoPort {
		return d, false
	}
	d.ca = true
	if s := p.f.Owner(peer); p.f.IsSwitch(s) {
		d.root, d.last = int32(s), p.f.Num(peer)
	}
	return d, true
}

// unit checks the LIDs of u.
func (w *worker) unit(u *unit) {
	w.stageEntries(u)
	if w.flow != nil {
		w.flow.load(u)
	}
	w.findLeaders()
	for dests := u.dests; len(dests) > 0; {
		n := 1
		for n < min(len(dests), batch) && dests[n].root == dests[0].root && dests[n].ca == dests[0].ca {
			n++
		}
		w.route(dests[:n])
		dests = dests[n:]
	}
	w.shareOut()
}

// stageEntries stages the entries of the LIDs of u.
func (w *worker) stageEntries(u *unit) {
	n := len(u.dests)
	for s := range w.n {
		row := w.t.Row(fabric.NodeID(s))
		to := w.stage[s*lft.BlockSize:][:lft.BlockSize]
		if u.inOrder && int(u.dests[n-1].lid) < len(row) {
			copy(to, row[u.dests[0].lid:][:n])
		} else {
			for i := range u.dests {
				to[i] = fabric.NoPath
				if lid := int(u.dests[i].lid); lid < len(row) {
					to[i] = row[lid]
				}
			}
		}
		clear(to[n:]) // so that rows are equal when their entries are
	}
}

// unowned looks for entries of the LIDs that nobody has, of a block.
func (w *worker) unowned(b int, set uint64) {
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

// route checks destinations of the unit that have one root and kind of
// owner: together if all their paths are minimal.
func (w *worker) route(dests []dest) {
	root := dests[0].root
	if root < 0 {
		for i := range dests {
			w.walk(&dests[i])
		}
		return
	}
	if !dests[0].ca && w.flow == nil {
		for i := range dests {
			if !w.manage(&dests[i]) {
				w.walk(&dests[i])
			}
		}
		return
	}
	w.root(root)
	near := w.near && (w.flow == nil || !w.flow.drops) // else nobody knows what is delivered
	if near && w.fill(dests) {
		w.minimal(dests)
		return
	}
	// Some go long ways: those that do not are checked alone.
	for i := range dests {
		if near && len(dests) > 1 && w.fill(dests[i:i+1]) {
			w.minimal(dests[i : i+1])
		} else {
			w.walk(&dests[i])
		}
	}
}

// minimal checks destinations of one root and owner kind whose paths are all
// minimal, after fill.
func (w *worker) minimal(dests []dest) {
	if w.flow != nil {
		for i := range dests {
			w.descend(&tree{&dests[i], len(dests), i, w.order})
		}
	}
	if !dests[0].ca {
		return // descend has found the dependencies
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
	w.at = t
	w.capped = w.hops == nil
	if !w.capped {
		copy(w.dist, w.hops.To(fabric.NodeID(t)))
		w.capped = bytes.IndexByte(w.dist[:w.n], fabric.Unreachable-1) >= 0
	}
	if w.capped {
		w.search(t)
		if slices.Max(w.exact) < int32(fabric.Unreachable)-1 {
			w.capped = false
			for s, d := range w.exact {
				w.dist[s] = uint8(d) // Unreachable for -1
			}
		}
	}
	w.near = !w.capped && bytes.IndexByte(w.dist[:w.n], fabric.Unreachable) < 0
	if !w.near {
		return
	}
	w.rooted.grow(w.dist[:w.n], w.sources)
	w.findPure()
}

// rooted is what serves all destinations at one switch whose paths are all
// minimal.
type rooted struct {
	order  []int32 // all switches but the root, the farthest first
	levels []int64 // sources by distance
	pure   []bool  // by group of switches alike: nothing comes to them from others
}

// grow orders the switches by their distance.
func (r *rooted) grow(dist []uint8, sources []uint32) {
	var count [256]int32
	var levels [256]int64
	farthest := uint8(0)
	for s, d := range dist {
		count[d]++
		levels[d] += int64(sources[s])
		farthest = max(farthest, d)
	}
	r.order = r.order[:len(dist)-1]
	r.levels = append(r.levels[:0], levels[:farthest+1]...)
	at := int32(0)
	for d := int(farthest); d >= 0; d-- {
		at, count[d] = at+count[d], at
	}
	for s, d := range dist {
		if d > 0 {
			r.order[count[d]] = int32(s)
			count[d]++
		}
	}
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
	switch {
	case w.capped:
		return w.exact[s]
	case w.dist[s] == fabric.Unreachable:
		return -1
	}
	return int32(w.dist[s])
}

// A cell is what is known of a switch and one LID of a batch: the entry in
// the upper 8 bits, and below it how many sources' packets pass the switch.
const (
	cellBits   = 24
	maxSources = 1<<cellBits - 1
)

// fill makes the cells of destinations that are all rooted where root was
// called with. It says whether all their paths are minimal, that is, whether
// each entry leads one link closer. The root itself, at distance 0, passes
// with an entry that leads out of the switches, whose distance is 255.
func (w *worker) fill(dests []dest) bool {
	g := len(dests)
	w.joint = false
	if g == 1 {
		return w.fillOne(&dests[0])
	}
	w.joint = dests[0].ca && len(w.groups) > 0 && w.flow == nil
	var columns [batch]uint8
	for i := range dests {
		columns[i] = dests[i].column
	}
	cells := w.cells[:w.n*g]
	off := uint8(0) // bits in which some distance is not what it should be
	for s := range w.n {
		if w.joint && w.led(int32(s)) {
			continue
		}
		at := w.nextAt[s]
		next := (*[256]uint32)(w.next[at:])
		off |= fillRow(cells[s*g:s*g+g], columns[:g], (*[lft.BlockSize]fabric.PortNum)(w.stage[s*lft.BlockSize:]),
			next, uint8(w.nextAt[s+1]-at-1), w.dist, w.dist[s]-1, w.sources[s])
	}
	root := cells[int(w.at)*g:]
	for i := range dests {
		if root[i]>>cellBits != uint32(dests[i].last) {
			return false
		}
	}
	return off == 0
}

// fillOne is fill for one destination.
func (w *worker) fillOne(d *dest) bool {
	cells, stage, next, nextAt, dist := w.cells[:w.n], w.stage[d.column:], w.next, w.nextAt[:w.n+1], w.dist[:w.n+outs]
	off := uint8(0)
	from := nextAt[0]
	for s, sources := range w.sources[:len(cells)] {
		p := int(stage[s*lft.BlockSize])
		to := nextAt[s+1]
		off |= dist[next[min(int(from)+p, int(to)-1)]] ^ (dist[s] - 1)
		cells[s] = uint32(p)<<cellBits | sources
		from = to
	}
	return off == 0 && cells[w.at]>>cellBits == uint32(d.last)
}

// fillRow is fill for one switch: its entries of the unit, what it does by
// entry, the last of these standing for all beyond, and the distance that the
// next switch should have.
func fillRow(cells []uint32, columns []uint8, row *[lft.BlockSize]fabric.PortNum, next *[256]uint32, last uint8, dist []uint8, want uint8, sources uint32) (off uint8) {
	columns = columns[:len(cells)]
	for i := range cells {
		p := uint8(row[columns[i]%lft.BlockSize])
		off |= dist[next[min(p, last)]] ^ want
		cells[i] = uint32(p)<<cellBits | sources
	}
	return off
}

// load sends the packets of all sources down the trees of LIDs of CAs that
// are cabled to one switch, of which fill made the cells. order is the
// switches of the trees without the root, each before the one it leads to in
// any of them.
func (w *worker) load(dests []dest, order []int32) {
	g := len(dests)
	cells := w.cells[:w.n*g]
	if g == 1 && w.words == 1 {
		w.loadOne(order)
		order = nil
	}
	for _, s := range order {
		next := (*[256]uint32)(w.next[w.nextAt[s]:])
		base := int(w.f.PortBase(fabric.NodeID(s)))
		row := cells[int(s)*g : int(s)*g+g]
		if w.joint {
			if w.led(s) {
				continue
			}
			if share := w.sharing(s); share != nil {
				loadRows(row, cells, next, share, w.words)
				continue
			}
		}
		if w.words == 1 {
			loadRow(row, cells, next, (*[512]uint64)(w.records[base*2:]), (*[256]uint64)(w.idle[base:]))
		} else {
			loadWideRow(row, cells, next, w.records[base*w.stride:], w.idle[base*w.words:], w.words)
		}
	}
	for i := range dests {
		d := &dests[i]
		out := int(w.f.PortBase(fabric.NodeID(d.root))) + int(d.last)
		w.records[out*w.stride] += uint64(cells[int(d.root)*g+i]&maxSources - 1) // the owner does not send to itself
		w.used[out] = true
	}
}

// loadOne is load for one destination where a set of channels is one word.
func (w *worker) loadOne(order []int32) {
	cells, records, idle, next, nextAt := w.cells[:w.n], w.records, w.idle, w.next, w.nextAt
	for _, s := range order {
		cell := cells[s]
		n := cell & maxSources
		at := int(nextAt[s]) + int(cell>>cellBits)
		u := next[at]
		after := cells[u] + n
		cells[u] = after
		bit := uint64(1) << ((after>>cellBits - 1) & 63)
		at -= int(s) // a switch has one more in next than it has PortIDs
		if n == 0 {
			if idle[at]&bit == 0 {
				idle[at] |= bit
			}
			continue
		}
		records[2*at] += uint64(n)
		if records[2*at+1]&bit == 0 {
			records[2*at+1] |= bit
		}
	}
}

// loadRow is load for one switch, of which row are the cells and records and
// idle begin with port 0, where a set of channels is one word. Most
// dependencies are there already, and a store would only hold up the next
// load from there.
func loadRow(row, cells []uint32, next *[256]uint32, records *[512]uint64, idle *[256]uint64) {
	for i, cell := range row {
		p := uint8(cell >> cellBits)
		n := cell & maxSources
		u := int(next[p])*len(row) + i
		after := cells[u] + n
		cells[u] = after
		bit := uint64(1) << ((after>>cellBits - 1) & 63)
		if n == 0 {
			// Nothing but the switch's own packets.
			if idle[p]&bit == 0 {
				idle[p] |= bit
			}
			continue
		}
		records[2*int(p)] += uint64(n)
		if records[2*int(p)+1]&bit == 0 {
			records[2*int(p)+1] |= bit
		}
	}
}

// loadWideRow is loadRow where a set of channels is several words.
func loadWideRow(row, cells []uint32, next *[256]uint32, records, idle []uint64, words int) {
	for i, cell := range row {
		p := int(cell >> cellBits)
		n := cell & maxSources
		u := int(next[uint8(p)])*len(row) + i
		after := cells[u] + n
		cells[u] = after
		bit := after>>cellBits - 1
		set := &idle[p*words+int(bit>>6)]
		if n != 0 {
			records[p*(1+words)] += uint64(n)
			set = &records[p*(1+words)+1+int(bit>>6)]
		}
		if *set>>(bit&63)&1 == 0 {
			*set |= 1 << (bit & 63)
		}
	}
}

// maxClimb bounds the hops of paths that manage follows, a power of two.
const maxClimb = 64

// manage checks the LID of a switch's port 0, and adds the dependencies of
// packets for it, if all switches reach it in at most maxClimb hops: there is
// nothing else to be told of it then. Otherwise it says false and adds nothing.
func (w *worker) manage(d *dest) bool {
	root := uint32(d.root)
	ports, next := w.ports[:w.n], w.next
	after := w.steps[0][:w.n]
	stage, nextAt := w.stage[d.column:], w.nextAt[:w.n+1]
	from := nextAt[0]
	for s := range ports {
		p := stage[s*lft.BlockSize]
		to := nextAt[s+1]
		ports[s] = p
		after[s] = next[min(from+int32(p), to-1)]
		from = to
	}
	if ports[root] != d.last {
		return false
	}
	after[root] = root
	// Twice as far with each turn, until all are there.
	at, to := w.steps[0], 1
	for span := 2; ; span *= 2 { // which this turn reaches
		far, off := w.steps[to], uint32(0)
		for s, u := range at[:w.n] {
			v := at[u]
			far[s] = v
			off |= v ^ root
		}
		if off == 0 {
			break
		}
		if span >= maxClimb {
			return false
		}
		at, to = far, 3-to
	}
	idle, words := w.idle, w.words
	for s, u := range after {
		ch := int(nextAt[s]) - s + int(ports[s]) // a switch has one more in next than it has PortIDs
		if u == root {
			w.used[ch] = w.used[ch] || s != int(root)
			continue
		}
		bit := ports[u] - 1
		if set := &idle[ch*words+int(bit>>6)]; *set>>(bit&63)&1 == 0 {
			*set |= 1 << (bit & 63)
		}
	}
	return true
}

// manageSome adds the dependencies of packets for the LID of a switch's port 0
// from the switches that walk has found to reach it.
func (w *worker) manageSome(d *dest, order []int32) {
	for _, s := range order {
		ch := int(w.nextAt[s]-s) + int(w.cells[s]>>cellBits)
		u := w.after[s]
		if u == d.root {
			w.used[ch] = true
			continue
		}
		bit := w.cells[u]>>cellBits - 1
		w.idle[ch*w.words+int(bit>>6)] |= 1 << (bit & 63)
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
// may be dropped, go round, or take long ways. It follows each switch's entry
// until something known, once for each switch.
func (w *worker) walk(d *dest) {
	w.joint = false
	if d.root >= 0 {
		w.root(d.root)
	}
	for s := range w.n {
		p := w.stage[s*lft.BlockSize+int(d.column)]
		next := w.next[w.nextAt[s]:w.nextAt[s+1]]
		w.after[s] = int32(next[min(int(p), len(next)-1)])
		w.cells[s] = uint32(p)<<cellBits | w.sources[s]
		w.depth[s] = depthUnknown
	}
	if d.root >= 0 && w.cells[d.root]>>cellBits == uint32(d.last) {
		w.depth[d.root] = 0
	}
	for s := range w.n {
		if w.depth[s] != depthUnknown {
			continue
		}
		path := w.path[:0]
		at := s
		for at < w.n && w.depth[at] == depthUnknown {
			w.depth[at] = depthWalked
			path = append(path, int32(at))
			at = int(w.after[at])
		}
		depth, end := int32(depthDead), path[len(path)-1]
		if at < w.n {
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
	if d.root < 0 || w.depth[d.root] != 0 {
		w.tallyUp(d)
		return
	}
	// Order the tree by depth, the deepest first.
	clear(w.bucket)
	for _, h := range w.depth {
		if h > 0 {
			w.bucket[h]++
		}
	}
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
	order := w.tree[:at]
	if w.flow != nil {
		t := &tree{d, 1, 0, order}
		if w.flow.drops {
			w.discard(t)
		}
		w.descend(t)
	}
	w.tallyUp(d)
	if d.ca {
		one := [...]dest{*d}
		w.load(one[:], order)
	} else if w.flow == nil {
		w.manageSome(d, order)
	}
}

// tallyUp counts the pairs of a destination by what walk found, and takes those
// that SL-to-VL tables drop out of its cells.
func (w *worker) tallyUp(d *dest) {
	bad := trouble{lid: d.lid}
	apart := func(s int) bool { return d.root < 0 || w.parts.Of[s] != w.parts.Of[d.root] }
	for s, h := range w.depth {
		sources := int64(w.sources[s])
		managers := int64(1)
		if int32(s) == d.root {
			sources -= int64(d.own())
			if !d.ca {
				managers = 0
			}
		}
		if h >= 0 && w.flow != nil && w.flow.drops {
			lost, own := int64(w.flow.lost[s]), int64(w.flow.lostOwn[s])
			if d.ca {
				bad.discarded.add(lost, s)
				bad.mgmtDiscarded.add(own, s)
				sources -= lost
				w.cells[s] -= uint32(lost)
			} else {
				bad.mgmtDiscarded.add(lost+own, s)
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
			if int(w.after[w.end[s]]) == w.n+outCA {
				bad.misdelivered.add(sources, s)
			} else if apart(s) {
				w.apart[0] += sources
			} else {
				bad.unreachable.add(sources, s)
			}
			if apart(s) {
				w.apart[1] += managers
			} else {
				bad.mgmtUnreachable.add(managers, s)
			}
		case h == depthDead && apart(s):
			w.apart[1] += sources + managers
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
		} else if h == depthDead && w.cells[w.end[s]]>>cellBits == uint32(fabric.NoPath) {
			w.gap.consider(gap{d.lid, w.end[s]})
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
