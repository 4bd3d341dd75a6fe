package mesh

import (
	"context"
	"fmt"
	"math/bits"
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
					w.on[w.channel(arc, bits.TrailingZeros16(held))*int(w.ways)+int(way)] |= then
				}
			}
			if m == nil {
				return
			}
		}
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

// with is w with all turns of a comb for packets of some SLs.
func (w *combWaits) with(t *combTree, sls []fabric.SL) *combWaits {
	x := &combWaits{slLanes: w.slLanes, on: append([]uint16(nil), w.on...)}
	set := uint16(0)
	for _, sl := range sls {
		set |= 1 << sl
	}
	joined := make([]uint32, len(w.node)) // by switch: directions of the comb
	for r, s := range t.node {
		if way := t.up[r]; way != NoDir {
			joined[w.index[s]] |= 1 << way
			joined[w.index[t.node[t.parent[r]]]] |= 1 << way.Opposite()
		}
	}
	for s := range int32(len(joined)) {
		for rest := joined[s]; rest != 0; rest &= rest - 1 {
			arc := w.arc(s, Dir(bits.TrailingZeros32(rest)))
			back := Dir(bits.TrailingZeros32(rest)).Opposite()
			for then := joined[w.head[arc]] &^ (1 << back); then != 0; then &= then - 1 {
				x.addTurn(arc, Dir(bits.TrailingZeros32(then)), set)
			}
		}
	}
	return x
}

// circle is channels that wait for each other in a circle, none when there is
// none. It takes O(channels x directions x VLs).
func (w *combWaits) circle() []int {
	vls, ways := len(w.vls), int(w.ways)
	after := func(ch int, visit func(int)) {
		for d := range ways {
			for set := w.on[ch*ways+d]; set != 0; set &= set - 1 {
				visit(w.channel(w.next(int32(ch/vls), Dir(d)), bits.TrailingZeros16(set)))
			}
		}
	}
	n := len(w.head) * vls
	in := make([]int32, n) // channels that wait for each
	for ch := range n {
		after(ch, func(to int) { in[to]++ })
	}
	free := make([]int, 0, n)
	for ch, k := range in {
		if k == 0 {
			free = append(free, ch)
		}
	}
	for i := 0; i < len(free); i++ {
		after(free[i], func(to int) {
			if in[to]--; in[to] == 0 {
				free = append(free, to)
			}
		})
	}
	if len(free) == n {
		return nil
	}
	// Each of those left is waited for by one of those left: back from any,
	// until one comes again.
	before := make([]int, n)
	at := -1
	for ch := range n {
		if in[ch] > 0 {
			after(ch, func(to int) { before[to] = ch })
			at = ch
		}
	}
	seen := make([]int, n)
	var list []int
	for seen[at] == 0 {
		list = append(list, at)
		seen[at] = len(list)
		at = before[at]
	}
	list = list[seen[at]-1:]
	for i, k := 0, len(list)-1; i < k; i, k = i+1, k-1 {
		list[i], list[k] = list[k], list[i]
	}
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
		fmt.Fprintf(&b, "%q VL %d > ", w.g.Fabric.Node(s).Description, w.vls[ch%len(w.vls)])
	}
	first := w.node[int32(circle[0]/len(w.vls))/w.ways]
	fmt.Fprintf(&b, "%q", w.g.Fabric.Node(first).Description)
	return b.String()
}
