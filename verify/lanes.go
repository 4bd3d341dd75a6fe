package verify

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// lanes is the second half of a check on several VLs: which channels, as (port,
// VL), packets hold while they wait for others. Where packets go does not
// depend on VLs, and the first half has found that out.
//
// A switch chooses the VL by way in, way out and SL. So all packets of one SL
// that come to a switch by one cable for one LID leave it on one VL, whatever
// VLs they came on; a set of VLs for each cable of a LID's tree is all that has
// to flow down it, once for each SL that is in use.
type lanes struct {
	*plan
	channels *channels
	s        *lft.SL2VL
	sls      *lft.PathSLs
	any      uint16   // SLs of a path when sls is nil: one of each class that differs somewhere
	hosts    []uint16 // by way out of a switch and SL: VLs on which packets of CAs on the switch leave
	drops    bool     // paths with SLs of their own may meet one that has no VL
}

func newLanes(p *plan, s *lft.SL2VL, sls *lft.PathSLs) *lanes {
	f := p.f
	l := &lanes{plan: p, s: s, sls: sls, channels: newChannels(f, max(1, s.VLs()))}
	l.hosts = make([]uint16, len(l.channels.to)*lft.NumSLs)
	type column struct {
		same [lft.NumSLs]fabric.SL // by SL: the lowest that has the same VL everywhere
	}
	var c column // all in one class, until a map tells them apart
	seen := make(map[*lft.VLMap]bool)
	for in, out := range s.Ways() {
		m := s.At(in, out)
		if !seen[m] {
			seen[m] = true
			var next [lft.NumSLs]fabric.SL
			for sl := range next {
				next[sl] = fabric.SL(sl)
				for o := range sl {
					if c.same[o] == c.same[sl] && m[o] == m[sl] {
						next[sl] = next[o]
						break
					}
				}
				l.drops = l.drops || sls != nil && m[sl] == lft.DropVL
			}
			c.same = next
		}
		if int(out) >= len(l.channels.to) {
			continue // of a CA
		}
		at := f.Port(f.Owner(out), in)
		peer := f.Peer(at)
		if in == fabric.ManagementPort || at == out || peer == fabric.NoPort || f.IsSwitch(f.Owner(peer)) {
			continue
		}
		own := s.At(0, peer) // the CA's
		for sl, vl := range m {
			if vl != lft.DropVL && own[sl] != lft.DropVL {
				l.hosts[int(out)*lft.NumSLs+sl] |= 1 << vl
			}
		}
	}
	for sl, first := range c.same {
		if int(first) == sl {
			l.any |= 1 << sl
		}
	}
	return l
}

// laneWorker finds the dependencies of some of the LIDs.
type laneWorker struct {
	*lanes
	unicast, all         []uint64 // as graph.deps
	usedUnicast, usedAll []bool   // by channel

	stage []fabric.PortNum // the block's entries, and SLs, lft.BlockSize for each switch
	sl    []fabric.SL

	// By switch, for one LID.
	out   []int32 // PortID that packets leave by
	next  []int32 // as in plan.next
	depth []int32
	tree  []int32 // switches from which packets arrive, the farthest first, without the root
	path  []int32
	count []int32
	clear []bool   // whether packets of an SL that leave the switch are delivered
	slSet []uint16 // SLs of the paths from the switch
	from  []uint16 // VLs of the channel out: of unicast packets
	every []uint16 // and of all

	losses []loss
}

// loss is packets for a LID that arrive nowhere because their SL has no VL at
// some port on the way.
type loss struct {
	lid             fabric.LID
	sl              fabric.SL
	unicast, manage int64         // pairs
	at              fabric.PortID // a port where packets are lost, and by which they came to its switch
	in              fabric.PortNum
	hops            Histogram // of the unicast pairs, by the switches that they would pass
	longer          int64     // unicast pairs that would pass more than needed
}

func newLaneWorker(l *lanes) *laneWorker {
	size, n := l.channels.count(), l.n
	return &laneWorker{
		lanes:       l,
		unicast:     make([]uint64, size*l.channels.words),
		all:         make([]uint64, size*l.channels.words),
		usedUnicast: make([]bool, size),
		usedAll:     make([]bool, size),
		stage:       make([]fabric.PortNum, n*lft.BlockSize),
		sl:          make([]fabric.SL, n*lft.BlockSize),
		out:         make([]int32, n),
		next:        make([]int32, n),
		depth:       make([]int32, n),
		tree:        make([]int32, n),
		path:        make([]int32, 0, n),
		count:       make([]int32, n+1),
		clear:       make([]bool, n),
		slSet:       make([]uint16, n),
		from:        make([]uint16, n),
		every:       make([]uint16, n),
	}
}

// run finds all dependencies.
func (l *lanes) run(ctx context.Context, workers int) (*laneWorker, error) {
	blocks := int(l.f.MaxLID())/lft.BlockSize + 1
	list := make([]*laneWorker, max(1, min(workers, blocks)))
	var next atomic.Int32
	group, ctx := errgroup.WithContext(ctx)
	for i := range list {
		group.Go(func() error {
			w := newLaneWorker(l)
			list[i] = w
			for {
				b := int(next.Add(1)) - 1
				if b >= blocks {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				w.block(b)
			}
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	w := list[0]
	for _, o := range list[1:] {
		for i := range w.unicast {
			w.unicast[i] |= o.unicast[i]
			w.all[i] |= o.all[i]
		}
		w.losses = append(w.losses, o.losses...)
		for ch := range w.usedAll {
			w.usedUnicast[ch] = w.usedUnicast[ch] || o.usedUnicast[ch]
			w.usedAll[ch] = w.usedAll[ch] || o.usedAll[ch]
		}
	}
	return w, nil
}

// block finds the dependencies of the LIDs from b*lft.BlockSize on.
func (w *laneWorker) block(b int) {
	w.load(b)
	for i := range lft.BlockSize {
		if d, ok := w.destination(fabric.LID(b*lft.BlockSize + i)); ok && d.root >= 0 {
			w.lid(&d)
		}
	}
}

// load copies the entries and SLs of a block.
func (w *laneWorker) load(b int) {
	for s := range w.n {
		*(*[lft.BlockSize]fabric.PortNum)(w.stage[s*lft.BlockSize:]) = *w.entries(s, b)
		if w.sls != nil {
			at := w.sl[s*lft.BlockSize : (s+1)*lft.BlockSize]
			clear(at)
			if row := w.sls.Row(fabric.NodeID(s)); b*lft.BlockSize < len(row) {
				copy(at, row[b*lft.BlockSize:])
			}
		}
	}
}

// lid finds the dependencies of packets for one LID.
func (w *laneWorker) lid(d *dest) {
	tree := w.grow(d)
	if tree == nil {
		return
	}
	var sls uint16
	for _, s := range tree {
		sls |= w.slsOf(s, d)
	}
	sls |= w.slsOf(d.root, d)
	for ; sls != 0; sls &= sls - 1 {
		sl := fabric.SL(bits.TrailingZeros16(sls))
		w.flow(d, tree, sl)
		if w.drops {
			w.lose(d, tree, sl)
		}
	}
}

// slsOf is the set of SLs of paths from switch s.
func (w *laneWorker) slsOf(s int32, d *dest) uint16 {
	set := w.any
	if w.sls != nil {
		set = 1 << w.sl[int(s)*lft.BlockSize+int(d.column)]
	}
	w.slSet[s] = set
	return set
}

// grow fills in out, next and depth, and lists the switches from which packets
// for d arrive, the farthest first, without the root; nil when the root does
// not deliver them.
func (w *laneWorker) grow(d *dest) []int32 {
	for s := range w.n {
		p := int(w.stage[s*lft.BlockSize+int(d.column)])
		next := w.plan.next[w.nextAt[s]:w.nextAt[s+1]]
		w.next[s] = int32(next[min(p, len(next)-1)])
		w.out[s] = int32(w.f.PortBase(fabric.NodeID(s))) + int32(p)
		w.depth[s] = depthUnknown
	}
	if w.stage[int(d.root)*lft.BlockSize+int(d.column)] != d.last {
		return nil
	}
	clear(w.count)
	w.depth[d.root] = 0
	arriving := int32(0)
	for s := range w.n {
		path := w.path[:0]
		at := int32(s)
		for int(at) < w.n && w.depth[at] == depthUnknown {
			w.depth[at] = depthWalked
			path = append(path, at)
			at = w.next[at]
		}
		depth := int32(depthDead)
		if int(at) < w.n {
			depth = w.depth[at]
		}
		for i := len(path) - 1; i >= 0; i-- {
			if depth < 0 {
				w.depth[path[i]] = depthDead
				continue
			}
			depth++
			w.depth[path[i]] = depth
			w.count[depth]++
			arriving++
		}
	}
	at := arriving
	for h := range w.count {
		at -= w.count[h]
		w.count[h] = at
	}
	for s, h := range w.depth {
		if h > 0 {
			w.tree[w.count[h]] = int32(s)
			w.count[h]++
		}
	}
	return w.tree[:arriving]
}

// flow sends packets of one SL down the tree of a LID.
func (w *laneWorker) flow(d *dest, tree []int32, sl fabric.SL) {
	for _, s := range tree {
		unicast, every := w.start(d, s, w.out[s], sl)
		unicast |= w.from[s]
		every |= w.every[s] | unicast
		w.from[s], w.every[s] = 0, 0
		if every == 0 {
			continue
		}
		w.use(w.out[s], unicast, every)
		u := w.next[s]
		out := w.out[u]
		if u == d.root && !d.ca {
			continue // port 0 takes the packet
		}
		in := w.f.Num(w.f.Peer(fabric.PortID(w.out[s])))
		vl := w.s.At(in, fabric.PortID(out))[sl]
		if vl == lft.DropVL {
			continue
		}
		w.depend(w.unicast, w.out[s], unicast, out, vl)
		w.depend(w.all, w.out[s], every, out, vl)
		if unicast != 0 {
			w.from[u] |= 1 << vl
		}
		w.every[u] |= 1 << vl
	}
	unicast, every := w.from[d.root], w.every[d.root]
	w.from[d.root], w.every[d.root] = 0, 0
	if d.ca {
		u, e := w.start(d, d.root, w.out[d.root], sl)
		w.use(w.out[d.root], unicast|u, every|e|u)
	}
}

// start is the VLs on which packets that begin at switch s leave it: those of
// its CAs, and all together with those of its port 0.
func (w *laneWorker) start(d *dest, s, out int32, sl fabric.SL) (unicast, every uint16) {
	if w.slSet[s]>>sl&1 == 0 {
		return 0, 0
	}
	every = w.hosts[int(out)*lft.NumSLs+int(sl)]
	if d.ca {
		unicast = every
	}
	if vl := w.s.At(fabric.ManagementPort, fabric.PortID(out))[sl]; vl != lft.DropVL {
		every |= 1 << vl
	}
	return unicast, every
}

// use notes the channels of a way out.
func (w *laneWorker) use(out int32, unicast, every uint16) {
	at := int(out) * w.channels.vls
	for ; every != 0; every &= every - 1 {
		vl := bits.TrailingZeros16(every)
		w.usedAll[at+vl] = true
		if unicast>>vl&1 != 0 {
			w.usedUnicast[at+vl] = true
		}
	}
}

// depend notes that packets which hold VLs of one way out wait for a VL of
// another one, of the next switch.
func (w *laneWorker) depend(deps []uint64, in int32, vls uint16, out int32, vl fabric.VL) {
	ch := out*int32(w.channels.vls) + int32(vl)
	i := ch - w.channels.base(int32(w.f.Owner(fabric.PortID(out))))
	word, bit := int(i>>6), uint64(1)<<(i&63)
	for ; vls != 0; vls &= vls - 1 {
		at := (int(in)*w.channels.vls+bits.TrailingZeros16(vls))*w.channels.words + word
		if deps[at]&bit == 0 {
			deps[at] |= bit
		}
	}
}

// lose counts the pairs of a LID and an SL whose packets are dropped.
func (w *laneWorker) lose(d *dest, tree []int32, sl fabric.SL) {
	n := loss{lid: d.lid, sl: sl, at: fabric.NoPort}
	lost := func(in fabric.PortNum, out fabric.PortID) bool {
		if w.s.At(in, out)[sl] != lft.DropVL {
			return false
		}
		if n.at == fabric.NoPort {
			n.at, n.in = out, in
		}
		return true
	}
	root := w.f.LIDPort(d.lid)
	sources := func(s int32) {
		if w.slSet[s]>>sl&1 == 0 {
			return
		}
		out := fabric.PortID(w.out[s])
		for num := fabric.PortNum(1); num != 0 && num <= w.f.Node(fabric.NodeID(s)).NumPorts; num++ {
			ca := w.f.Peer(w.f.Port(fabric.NodeID(s), num))
			if ca == fabric.NoPort || ca == root || w.f.IsSwitch(w.f.Owner(ca)) {
				continue
			}
			first := lost(0, ca)
			switch {
			case !first && w.clear[s] && (s == d.root && !d.ca || !lost(num, out)):
			case !d.ca:
				n.manage++
			default:
				n.unicast++
				hops := int(w.depth[s]) + 1
				if len(n.hops) <= hops {
					n.hops = append(n.hops, make(Histogram, hops+1-len(n.hops))...)
				}
				n.hops[hops]++
				if w.hops != nil && w.depth[s] > int32(w.hops.To(fabric.NodeID(d.root))[s]) {
					n.longer++
				}
			}
		}
		if s == d.root && !d.ca {
			return
		}
		if !w.clear[s] || lost(fabric.ManagementPort, out) {
			n.manage++
		}
	}
	w.clear[d.root] = true
	sources(d.root)
	for _, s := range slices.Backward(tree) {
		u := w.next[s]
		w.clear[s] = w.clear[u] && (u == d.root && !d.ca || !lost(w.f.Num(w.f.Peer(fabric.PortID(w.out[s]))), fabric.PortID(w.out[u])))
		sources(s)
	}
	if n.unicast+n.manage > 0 {
		w.losses = append(w.losses, n)
	}
}

// summarizeLosses takes what was dropped for its SL out of what was delivered.
func (l *lanes) summarizeLosses(r *Result, w *laneWorker, opt Options) {
	slices.SortFunc(w.losses, func(a, b loss) int { return cmp.Or(cmp.Compare(a.lid, b.lid), cmp.Compare(a.sl, b.sl)) })
	c := newCollector(r, opt.Findings)
	for _, n := range w.losses {
		r.Unicast.Unreachable += n.unicast
		r.Unicast.NonMinimal -= n.longer
		r.Management.Unreachable += n.manage
		for h, pairs := range n.hops {
			r.Unicast.HopHistogram[h] -= pairs
		}
		rule, pairs := SLDropped, n.unicast
		if pairs == 0 {
			rule, pairs = ManagementSLDropped, n.manage
		}
		c.add(rule, pairs, func(f *Finding) {
			node := l.f.Node(l.f.Owner(n.at))
			f.LID, f.Switch = n.lid, node.GUID
			f.Message = fmt.Sprintf("%s cannot send to %s: packets of SL %d that come to %s %q by port %d are dropped, since its SL-to-VL table has VL 15 for the way to port %d",
				count(pairs, "port"), l.lidName(n.lid), n.sl, node.Type, node.Description, n.in, l.f.Num(n.at))
		})
	}
	c.close()
	for len(r.Unicast.HopHistogram) > 0 && r.Unicast.HopHistogram[len(r.Unicast.HopHistogram)-1] == 0 {
		r.Unicast.HopHistogram = r.Unicast.HopHistogram[:len(r.Unicast.HopHistogram)-1]
	}
	r.Unicast.MaxHops = max(0, len(r.Unicast.HopHistogram)-1)
}

// closes is the lowest LID whose packets hold channel a while they wait for b.
func (l *lanes) closes(a, b int32, unicast bool) fabric.LID {
	w := newLaneWorker(l)
	portA, _ := l.channels.portVL(a)
	portB, _ := l.channels.portVL(b)
	g := &graph{channels: l.channels, deps: w.all}
	if unicast {
		g.deps = w.unicast
	}
	for lid := fabric.LID(1); lid <= l.f.MaxLID(); lid++ {
		d, ok := l.destination(lid)
		if !ok || d.root < 0 || l.entry(int32(l.f.Owner(portA)), lid) != l.f.Num(portA) || l.entry(int32(l.f.Owner(portB)), lid) != l.f.Num(portB) {
			continue
		}
		w.load(int(lid) / lft.BlockSize)
		w.lid(&d)
		if g.has(a, b) {
			return lid
		}
	}
	return 0
}

// waits is the dependencies that a worker found.
func (l *lanes) waits(w *laneWorker) *waits {
	return &waits{
		unicast:     &graph{channels: l.channels, deps: w.unicast},
		all:         &graph{channels: l.channels, deps: w.all},
		usedUnicast: w.usedUnicast,
		usedAll:     w.usedAll,
		closes:      l.closes,
	}
}
