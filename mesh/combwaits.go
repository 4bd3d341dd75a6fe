package mesh

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// slLanes says which VLs packets of each SL may have.
type slLanes struct {
	*arcs
	g   *Grid
	r   *lft.Routing
	vls []fabric.VL // in use between switches, ascending
	// on is by arc and SL, 16 each: the VLs, a bit for each index in vls, that
	// packets of the SL may have on the arc, by whatever port they came in.
	on [][lft.NumSLs]uint16
	// drops is the SLs that are dropped on some way through a switch, a bit
	// each.
	drops uint16
}

func newSLLanes(g *Grid, r *lft.Routing) *slLanes {
	l := &slLanes{arcs: newArcs(g, false), g: g, r: r, vls: []fabric.VL{0}}
	l.on = make([][lft.NumSLs]uint16, len(l.head))
	if r.SL2VL == nil {
		for a := range l.on {
			for sl := range l.on[a] {
				l.on[a][sl] = 1
			}
		}
		return l
	}
	f := g.Fabric
	used := uint16(0)
	for in, out := range r.SL2VL.Ways() {
		m := r.SL2VL.At(in, out)
		for sl, vl := range m {
			if vl == lft.DropVL {
				l.drops |= 1 << sl
			}
		}
		if d := g.Dir(out); f.IsSwitch(f.Owner(out)) && d != NoDir {
			a := l.arc(l.index[f.Owner(out)], d)
			for sl, vl := range m {
				if vl != lft.DropVL {
					l.on[a][sl] |= 1 << vl
				}
			}
			for _, vl := range m {
				used |= 1 << vl
			}
		}
	}
	used &^= 1 << lft.DropVL
	l.vls = l.vls[:0]
	index := [lft.NumSLs]int{}
	for ; used != 0; used &= used - 1 {
		vl := bits.TrailingZeros16(used)
		index[vl] = len(l.vls)
		l.vls = append(l.vls, fabric.VL(vl))
	}
	for a := range l.on {
		for sl, set := range l.on[a] {
			l.on[a][sl] = 0
			for ; set != 0; set &= set - 1 {
				l.on[a][sl] |= 1 << index[bits.TrailingZeros16(set)]
			}
		}
	}
	return l
}

// meets is by SL the SLs, a bit each, whose packets have a VL in common with
// it on some arc.
func (l *slLanes) meets() [lft.NumSLs]uint16 {
	var list [lft.NumSLs]uint16
	for a := range l.on {
		for v := range l.vls {
			set := uint16(0)
			for sl, on := range l.on[a] {
				set |= on >> v & 1 << sl
			}
			for rest := set; rest != 0; rest &= rest - 1 {
				list[bits.TrailingZeros16(rest)] |= set
			}
		}
	}
	return list
}

// combWaits is a channel dependency graph: which channels a packet that holds a
// channel may wait for. A channel is an arc and a VL. Parallel cables count as
// one: what is safe so is safe with each of them for itself.
type combWaits struct {
	*slLanes
	// on is by arc, index in vls and direction: the VLs, by index, a bit each,
	// of the channels in that direction, from where the arc leads, that are
	// waited for.
	on []uint16
	// growing is for one that stays free of circles, else nil.
	growing *combOrder
}

func (w *combWaits) channel(arc int32, vl int) int { return int(arc)*len(w.vls) + vl }

// addTurn adds what packets of some SLs, a bit each, wait for on a turn.
func (w *combWaits) addTurn(arc int32, way Dir, sls uint16) {
	from := w.node[arc/w.ways]
	to := w.node[w.head[arc]]
	next := w.next(arc, way)
	for _, out := range w.g.Ports(to, way) {
		for _, port := range w.g.Ports(from, Dir(arc%w.ways)) {
			var m *lft.VLMap
			if w.r.SL2VL != nil {
				m = w.r.SL2VL.At(w.g.Fabric.Num(w.g.Fabric.Peer(port)), out)
			}
			for rest := sls; rest != 0; rest &= rest - 1 {
				sl := bits.TrailingZeros16(rest)
				then := uint16(1)
				if m != nil {
					if then = w.slLanes.on[next][sl] & w.bit(m[sl]); then == 0 {
						continue
					}
				}
				for held := w.slLanes.on[arc][sl]; held != 0; held &= held - 1 {
					w.add(w.channel(arc, bits.TrailingZeros16(held))*int(w.ways)+int(way), then)
				}
			}
			if m == nil {
				return
			}
		}
	}
}

// add sets bits of on. When w is growing it does so as far as they close no
// circle.
func (w *combWaits) add(i int, bitset uint16) {
	if w.growing == nil {
		w.on[i] |= bitset
		return
	}
	for rest := bitset &^ w.on[i]; rest != 0 && !w.growing.circle; rest &= rest - 1 {
		w.growing.add(w, i, bits.TrailingZeros16(rest))
	}
}

// bit is that of the index in vls, 0 for a VL that is not there.
func (l *slLanes) bit(vl fabric.VL) uint16 {
	for i, v := range l.vls {
		if v == vl {
			return 1 << i
		}
	}
	return 0
}

// newCombWaits has the turns of unicast paths from all switches.
func newCombWaits(ctx context.Context, l *slLanes) (*combWaits, error) {
	w := &combWaits{slLanes: l, on: make([]uint16, len(l.head)*len(l.vls)*int(l.ways))}
	turns, err := l.unicastTurns(ctx)
	if err != nil {
		return nil, err
	}
	for i, sls := range turns {
		if sls != 0 {
			w.addTurn(int32(i)/w.ways, Dir(int32(i)%w.ways), sls)
		}
	}
	return w, nil
}

// unicastTurns is by arc and direction the SLs, a bit each, of packets that turn
// there. Without path SLs any packet may have any.
func (l *slLanes) unicastTurns(ctx context.Context) ([]uint16, error) {
	if l.r.PathSLs != nil {
		return l.turnsOfPaths(ctx)
	}
	turns := make([]uint16, len(l.head)*int(l.ways))
	tables := l.r.Tables
	err := eachSwitch(ctx, len(l.node), func() func(fabric.NodeID) {
		dirs := make([][256]Dir, l.ways) // by direction, then by port of the switch there
		rows := make([][]fabric.PortNum, l.ways)
		found := make([]uint32, l.ways) // by direction: those in which paths go on
		return func(s fabric.NodeID) {
			var first [256]Dir
			l.dirsOf(s, &first)
			for d := range Dir(l.ways) {
				found[d] = 0
				if to := l.head[l.arc(l.index[s], d)]; to >= 0 {
					rows[d] = tables.Row(l.node[to])
					l.dirsOf(l.node[to], &dirs[d])
				}
			}
			for lid, num := range tables.Row(s) {
				if d := first[num]; d != NoDir {
					if then := dirs[d][rows[d][lid]]; then != NoDir {
						found[d] |= 1 << then
					}
				}
			}
			for d, set := range found {
				for ; set != 0; set &= set - 1 {
					turns[int(l.arc(l.index[s], Dir(d)))*int(l.ways)+bits.TrailingZeros32(set)] = 1<<lft.NumSLs - 1
				}
			}
		}
	})
	return turns, err
}

// dirsOf fills dirs, by port number, with where the ports of switch s lead.
func (l *slLanes) dirsOf(s fabric.NodeID, dirs *[256]Dir) {
	for num := range dirs {
		dirs[num] = NoDir
	}
	for num := range l.g.Fabric.Node(s).NumPorts {
		dirs[num+1] = l.g.Dir(l.g.Fabric.Port(s, num+1))
	}
}

// turnsOfPaths is unicastTurns with path SLs. For each LID, the SLs of packets
// that pass a switch are those of all that come by.
func (l *slLanes) turnsOfPaths(ctx context.Context) ([]uint16, error) {
	const some = 32 // LIDs at a time
	n := len(l.node)
	lids := len(l.g.Fabric.LIDPorts())
	var mu sync.Mutex
	turns := make([]uint16, len(l.head)*int(l.ways))
	err := eachSwitch(ctx, (lids+some-1)/some, func() func(fabric.NodeID) {
		dirs := make([][256]Dir, n)
		for s := range dirs {
			l.dirsOf(l.node[s], &dirs[s])
		}
		var ways [some][]Dir
		var sls [some][]uint16
		for i := range ways {
			ways[i], sls[i] = make([]Dir, n), make([]uint16, n)
		}
		w := &pathTurns{slLanes: l, in: make([]int32, n), turns: make([]uint16, len(turns))}
		return func(i fabric.NodeID) {
			from, to := int(i)*some, min(lids, int(i+1)*some)
			for s, node := range l.node {
				row, path := l.r.Tables.Row(node), l.r.PathSLs.Row(node)
				for lid := from; lid < to; lid++ {
					ways[lid-from][s] = dirs[s][row[lid]]
					sls[lid-from][s] = 1 << path[lid]
				}
			}
			for k := range to - from {
				w.collect(ways[k], sls[k])
			}
			mu.Lock()
			defer mu.Unlock()
			for k, set := range w.turns {
				turns[k] |= set
			}
			clear(w.turns)
		}
	})
	return turns, err
}

// pathTurns collects turns: scratch of a worker.
type pathTurns struct {
	*slLanes
	in    []int32 // by switch: neighbours whose packets have not come yet
	queue []int32
	turns []uint16
}

// collect follows the packets for one LID: ways is by switch where they go, sls
// the SLs of those that begin there, to which those that come by are added.
func (w *pathTurns) collect(ways []Dir, sls []uint16) {
	clear(w.in)
	for s, way := range ways {
		if way != NoDir {
			w.in[w.head[w.arc(int32(s), way)]]++
		}
	}
	w.queue = w.queue[:0]
	for s, n := range w.in {
		if n == 0 {
			w.queue = append(w.queue, int32(s))
		}
	}
	for i := 0; i < len(w.queue); i++ {
		w.pass(w.queue[i], ways, sls)
	}
	w.queue = w.queue[:0]
	for s, n := range w.in {
		if n > 0 { // paths go round: the order is lost
			sls[s] = 1<<lft.NumSLs - 1
			w.queue = append(w.queue, int32(s))
		}
	}
	for _, s := range w.queue {
		w.pass(s, ways, sls)
	}
}

func (w *pathTurns) pass(s int32, ways []Dir, sls []uint16) {
	if ways[s] == NoDir {
		return
	}
	arc := w.arc(s, ways[s])
	to := w.head[arc]
	sls[to] |= sls[s]
	if then := ways[to]; then != NoDir {
		w.turns[int(arc)*int(w.ways)+int(then)] |= sls[s]
	}
	if w.in[to]--; w.in[to] == 0 {
		w.queue = append(w.queue, to)
	}
}

// with is w with all turns of a comb for packets of some SLs, a bit each.
func (w *combWaits) with(t *combTree, sls uint16) *combWaits {
	x := &combWaits{slLanes: w.slLanes, on: slices.Clone(w.on)}
	for s := range fabric.NodeID(len(w.node)) {
		x.addTurns(t, s, sls)
	}
	return x
}

// addTurns adds the turns of a comb at switch s, from each cable into each
// other.
func (w *combWaits) addTurns(t *combTree, s fabric.NodeID, sls uint16) {
	at := w.index[s]
	for from := t.joined[s]; from != 0; from &= from - 1 {
		way := Dir(bits.TrailingZeros32(from))
		arc := w.arc(w.head[w.arc(at, way)], way.Opposite())
		for to := t.joined[s] &^ (1 << way); to != 0; to &= to - 1 {
			w.addTurn(arc, Dir(bits.TrailingZeros32(to)), sls)
		}
	}
}

// grow joins the parts of a comb by cables with which it makes no circle, as
// far as there are any: those in wanted, by NodeID the directions, a bit each,
// first, then those that close no ring; of each kind those nearest to the
// middle of the trunk. The result has their turns, w stays what it was.
func (w *combWaits) grow(t *combTree, sls uint16, wanted []uint32) *combWaits {
	order, _ := w.sorted()
	x := &combWaits{slLanes: w.slLanes, on: slices.Clone(w.on), growing: newCombOrder(order)}
	root := make([]fabric.NodeID, len(t.node)) // by NodeID: union-find
	for s := range root {
		root[s] = fabric.NodeID(s)
	}
	find := func(s fabric.NodeID) fabric.NodeID {
		for root[s] != s {
			root[s] = root[root[s]]
			s = root[s]
		}
		return s
	}
	for s, ways := range t.joined {
		for ; ways != 0; ways &= ways - 1 {
			root[find(fabric.NodeID(s))] = find(w.g.Neighbor(fabric.NodeID(s), Dir(bits.TrailingZeros32(ways))))
		}
	}
	for kind := range 3 {
		for _, s := range t.near {
			for way := range Dir(w.ways) {
				ports := w.g.Ports(s, way)
				if len(ports) == 0 || kind == 0 && wanted[s]>>way&1 == 0 || kind > 0 && w.g.Wraps(ports[0]) != (kind == 2) {
					continue
				}
				u := w.g.Neighbor(s, way)
				a, b := find(s), find(u)
				if a == b {
					continue
				}
				before := [2]uint32{t.joined[s], t.joined[u]}
				t.join(s, way)
				x.addTurns(t, s, sls)
				x.addTurns(t, u, sls)
				if x.growing.circle {
					x.growing.undo(x)
					t.joined[s], t.joined[u] = before[0], before[1]
					continue
				}
				x.growing.keep()
				root[a] = b
			}
		}
	}
	x.growing = nil
	t.climb()
	return x
}

// combOrder is a topological order of channels that is kept up to date while
// they come to wait for more (Pearce and Kelly, A Dynamic Topological Sort
// Algorithm for Directed Acyclic Graphs, ACM JEA 2006).
type combOrder struct {
	rank   []int32 // by channel: each ranks below those that it waits for
	at     []int32 // by rank
	circle bool    // something was not added since the last keep or undo
	trial  []int   // indices of on, and bits, that were added since then

	seen          []bool // by channel; false between calls
	ahead, behind []int32
	ranks         []int32
}

// newCombOrder takes all channels in a topological order.
func newCombOrder(order []int32) *combOrder {
	o := &combOrder{rank: make([]int32, len(order)), at: order, seen: make([]bool, len(order))}
	for i, ch := range order {
		o.rank[ch] = int32(i)
	}
	return o
}

func (o *combOrder) keep() { o.trial = o.trial[:0] }

func (o *combOrder) undo(w *combWaits) {
	for k := 0; k < len(o.trial); k += 2 {
		w.on[o.trial[k]] &^= 1 << o.trial[k+1]
	}
	o.trial, o.circle = o.trial[:0], false
}

// add sets a bit of on, or circle when that would close one.
func (o *combOrder) add(w *combWaits, i, bit int) {
	vls, ways := len(w.vls), int(w.ways)
	x := int32(i / ways)
	y := int32(w.channel(w.next(x/int32(vls), Dir(i%ways)), bit))
	if low, high := o.rank[y], o.rank[x]; low < high {
		// What y leads to has to rank above what leads to x.
		o.ahead = append(o.ahead[:0], y)
		o.seen[y] = true
		for k := 0; k < len(o.ahead); k++ {
			w.after(int(o.ahead[k]), func(ch int) {
				o.circle = o.circle || int32(ch) == x
				if !o.seen[ch] && o.rank[ch] < high {
					o.seen[ch] = true
					o.ahead = append(o.ahead, int32(ch))
				}
			})
		}
		for _, ch := range o.ahead {
			o.seen[ch] = false
		}
		if o.circle {
			return
		}
		o.behind = append(o.behind[:0], x)
		o.seen[x] = true
		for k := 0; k < len(o.behind); k++ {
			w.before(int(o.behind[k]), func(ch int) {
				if !o.seen[ch] && o.rank[ch] > low {
					o.seen[ch] = true
					o.behind = append(o.behind, int32(ch))
				}
			})
		}
		for _, ch := range o.behind {
			o.seen[ch] = false
		}
		o.reorder()
	}
	w.on[i] |= 1 << bit
	o.trial = append(o.trial, i, bit)
}

// reorder gives behind the lowest ranks of those that behind and ahead have
// together, and ahead the others.
func (o *combOrder) reorder() {
	byRank := func(a, b int32) int { return cmp.Compare(o.rank[a], o.rank[b]) }
	slices.SortFunc(o.behind, byRank)
	slices.SortFunc(o.ahead, byRank)
	o.behind = append(o.behind, o.ahead...)
	o.ranks = o.ranks[:0]
	for _, ch := range o.behind {
		o.ranks = append(o.ranks, o.rank[ch])
	}
	slices.Sort(o.ranks)
	for k, ch := range o.behind {
		o.rank[ch] = o.ranks[k]
		o.at[o.ranks[k]] = ch
	}
}

// after visits the channels that a channel waits for.
func (w *combWaits) after(ch int, visit func(int)) {
	vls, ways := len(w.vls), int(w.ways)
	for d := range ways {
		for set := w.on[ch*ways+d]; set != 0; set &= set - 1 {
			visit(w.channel(w.next(int32(ch/vls), Dir(d)), bits.TrailingZeros16(set)))
		}
	}
}

// before visits the channels that wait for a channel.
func (w *combWaits) before(ch int, visit func(int)) {
	vls, ways := len(w.vls), int(w.ways)
	s, way := int32(ch/vls)/w.ways, ch/vls%ways
	for d := range Dir(ways) {
		from := w.head[w.arc(s, d)]
		if from < 0 {
			continue
		}
		for vl := range vls {
			if before := w.channel(w.arc(from, d.Opposite()), vl); w.on[before*ways+way]>>(ch%vls)&1 != 0 {
				visit(before)
			}
		}
	}
}

// sorted is all channels in an order in which each comes before those that it
// waits for. When there is none, list has those that can be sorted, and left is
// by channel how many that are not in the list wait for it. It takes O(channels
// x directions x VLs).
func (w *combWaits) sorted() (list, left []int32) {
	n := len(w.head) * len(w.vls)
	left = make([]int32, n)
	for ch := range n {
		w.after(ch, func(to int) { left[to]++ })
	}
	list = make([]int32, 0, n)
	for ch, k := range left {
		if k == 0 {
			list = append(list, int32(ch))
		}
	}
	for i := 0; i < len(list); i++ {
		w.after(int(list[i]), func(to int) {
			if left[to]--; left[to] == 0 {
				list = append(list, int32(to))
			}
		})
	}
	return list, left
}

// circle is channels that wait for each other in a circle, none when there is
// none.
func (w *combWaits) circle() []int {
	order, left := w.sorted()
	if len(order) == len(left) {
		return nil
	}
	// Each of those left is waited for by one of those left: back from any,
	// until one comes again.
	before := make([]int, len(left))
	at := -1
	for ch, n := range left {
		if n > 0 {
			w.after(ch, func(to int) { before[to] = ch })
			at = ch
		}
	}
	seen := make([]int, len(left))
	var list []int
	for seen[at] == 0 {
		list = append(list, at)
		seen[at] = len(list)
		at = before[at]
	}
	list = list[seen[at]-1:]
	slices.Reverse(list)
	return list
}

// describe names the switches round a circle.
func (w *combWaits) describe(circle []int) string {
	const most = 12
	var b strings.Builder
	for i, ch := range circle {
		if i == most {
			fmt.Fprintf(&b, " ... (%d cables)", len(circle))
			return b.String()
		}
		s := w.node[int32(ch/len(w.vls))/w.ways]
		fmt.Fprintf(&b, "%s VL %d > ", w.g.Fabric.Name(s), w.vls[ch%len(w.vls)])
	}
	first := w.node[int32(circle[0]/len(w.vls))/w.ways]
	b.WriteString(w.g.Fabric.Name(first).String())
	return b.String()
}
