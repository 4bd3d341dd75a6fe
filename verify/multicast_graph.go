package verify

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// mcState is a packet that went out by an arc on one of channels.vl.
type mcState struct{ arc, vl int32 }

// split says that a packet which comes in by a channel goes out by both of two
// others. Packets of a CA come in by the number that the channel would have if it
// left the switch, less than 0 for ^, and those of port 0 by port 0 alike.
type split struct{ in, a, b int32 }

func (s split) compare(o split) int {
	return cmp.Or(cmp.Compare(s.in, o.in), cmp.Compare(s.a, o.a), cmp.Compare(s.b, o.b))
}

// spread notes the channels that packets of a tree take, from any sender but
// loopers, and the dependencies between them: packets that go round are an error of
// their own. A copy's way on depends on where it came in
// alone, so that each arc is looked at once for each VL.
func (w *mcWorker) spread(t *mft.Tree) {
	vls := w.graph.vls
	if n := len(w.ports) * vls; len(w.reached) < n {
		w.reached = append(w.reached, make([]uint32, n-len(w.reached))...)
	}
	next(&w.reachNow, w.reached)
	w.queue = w.queue[:0]
	for _, s := range t.Senders {
		in := w.terminal(s)
		if in == fabric.NoPort || w.mutes(t.SL, s) {
			continue
		}
		if _, loops := slices.BinarySearch(w.loopers, s); loops {
			continue
		}
		vl := int32(0)
		if w.lanes != nil && !w.f.IsSwitch(w.f.Owner(s)) {
			vl = w.lane(w.lanes.sl2vl.At(0, s)[t.SL])
		}
		from, to, back := w.enter(in)
		w.leave(t.SL, ^(int32(in)*int32(vls) + vl), w.f.Num(in), from, to, back, nil)
	}
	for i := 0; i < len(w.queue); i++ {
		at := w.queue[i]
		a := &w.arcs[at.arc]
		if a.kind != arcSwitch {
			continue
		}
		p := w.ports[at.arc]
		ch := int32(p)*int32(vls) + at.vl
		w.leave(t.SL, ch, w.f.Num(w.f.Peer(p)), a.from, a.to, a.back, w.graph.row(ch))
	}
}

// lane is which one of channels.vl a VL is.
func (c *multicast) lane(vl fabric.VL) int32 {
	i, _ := slices.BinarySearch(c.lanes.vl, vl)
	return int32(i)
}

// leave sends a packet out by all arcs of a switch but back. It came in by a
// channel, whose dependencies are in row.
func (w *mcWorker) leave(sl fabric.SL, in int32, num fabric.PortNum, from, to, back int32, row []uint64) {
	first, vls := int32(-1), int32(w.graph.vls)
	for k := from; k < to; k++ {
		p := w.ports[k]
		if k == back || w.dropped(sl, num, k) {
			continue
		}
		w.taken[k] = w.loaded
		if w.arcs[k].kind == arcDead || w.f.Num(p) == fabric.ManagementPort {
			continue
		}
		vl := int32(0)
		if w.lanes != nil {
			vl = w.lane(w.lanes.sl2vl.At(num, p)[sl])
		}
		ch := int32(p)*vls + vl
		if seen := &w.reached[k*vls+vl]; *seen != w.reachNow {
			*seen = w.reachNow
			w.queue = append(w.queue, mcState{k, vl})
			add(w.used, int(ch>>6), 1<<(ch&63))
		}
		if row != nil {
			bit := ch - w.graph.base(w.graph.tail(ch))
			add(row, int(bit>>6), 1<<(bit&63))
		}
		if w.Copying != Independent {
			if first >= 0 {
				w.splits = append(w.splits, split{in, first, ch})
			}
			first = ch
		}
	}
	if len(w.splits) > 1<<16 && len(w.splits) > 2*w.packed {
		w.pack()
	}
}

// pack leaves each split in the list once.
func (w *mcWorker) pack() {
	slices.SortFunc(w.splits, split.compare)
	w.splits = slices.Compact(w.splits)
	w.packed = len(w.splits)
}

// union adds the dependencies of another graph of the same channels.
func (g *dependencyGraph) union(o *dependencyGraph) {
	for i, set := range o.deps {
		g.deps[i] |= set
	}
	for ch, used := range o.used {
		g.used[ch] = g.used[ch] || used
	}
}

// knots is what else than dependencies can stop packets when switches do not
// copy independently, in the graph of all traffic.
//
// Where a packet holds one output port while it waits for another one of the same
// switch, these two are as one: whoever waits for the one waits for the other
// too. So channels that some packet leaves by together are put in one class, and,
// where it holds ports and not just VLs of them, with the other VLs of these. That
// the channels of a class wait for each other is no harm by itself, if packets
// take their places in the queues of a switch all at once: the first comes first
// in all of them. A circle that leaves the switch is.
//
// LockStep packets take ports one by one, so that two packets from different
// ways in can each have what the other wants as soon as they share two.
//
// A worm holds channels of one branch far from the switch at which it waits in
// another. Two worms whose branches meet in two places can have one each. That
// cannot be when all worms that have split go down one forest: no switch is
// entered by two channels that packets take after they have split or that such
// channels lead to. Two worms that hold branches of each other must then have
// passed the switch where both split, one after the other, the second when the
// first had left it (the argument for SPAM, Libeskind-Hadas et al., of which
// E-S6 of the errata is a sketch).
type knots struct {
	*dependencyGraph
	copying Copying
	class   []int32 // by channel: the lowest channel of its class
	members map[int32][]int32
}

func newKnots(g *dependencyGraph, c *multicast) *knots {
	k := &knots{dependencyGraph: g, copying: c.Copying, class: make([]int32, g.count()), members: make(map[int32][]int32)}
	for i := range k.class {
		k.class[i] = int32(i)
	}
	for _, s := range c.splits {
		join(k.class, s.a, s.b)
		if c.Copying == Wormhole {
			continue
		}
		for vl := range int32(g.vls) {
			join(k.class, s.a, k.port(s.a)+vl)
			join(k.class, s.b, k.port(s.b)+vl)
		}
	}
	size := make([]int32, len(k.class))
	for ch := range k.class {
		k.class[ch] = find(k.class, int32(ch))
		size[k.class[ch]]++
	}
	for ch, class := range k.class {
		if size[class] > 1 {
			k.members[class] = append(k.members[class], int32(ch))
		}
	}
	return k
}

// port is the first channel of the port that a channel is of.
func (g *dependencyGraph) port(ch int32) int32 { return ch - ch%int32(g.vls) }

// find and join are a union-find in which the lowest is the root; join says whether
// the two were apart.
func find(parent []int32, i int32) int32 {
	for parent[i] != i {
		parent[i] = parent[parent[i]]
		i = parent[i]
	}
	return i
}

func join(parent []int32, a, b int32) bool {
	a, b = find(parent, a), find(parent, b)
	parent[max(a, b)] = min(a, b)
	return a != b
}

// of is the channels of a class.
func (k *knots) of(class int32) []int32 {
	if list := k.members[class]; list != nil {
		return list
	}
	return []int32{class}
}

// each calls do for the dependencies of a channel.
func (g *dependencyGraph) each(ch int32, do func(d int32)) {
	u := g.head(ch)
	if u < 0 {
		return
	}
	for w, set := range g.row(ch) {
		for ; set != 0; set &= set - 1 {
			do(g.base(u) + int32(w*64+bits.TrailingZeros64(set)))
		}
	}
}

// circles are the sets of classes that wait for each other, in ascending order
// of their lowest channel. It is Tarjan's search as in components, on classes.
func (k *knots) circles() (found [][]int32) {
	const none = -1
	n := k.count()
	index, low, open := make([]int32, n), make([]int32, n), make([]bool, n)
	for i := range index {
		index[i] = none
	}
	type frame struct {
		class int32
		left  []int32
	}
	var frames []frame
	var stack []int32
	seen := int32(0)
	enter := func(class int32) {
		index[class], low[class] = seen, seen
		seen++
		open[class] = true
		stack = append(stack, class)
		var left []int32
		for _, ch := range k.of(class) {
			k.each(ch, func(d int32) { left = append(left, k.class[d]) })
		}
		slices.Sort(left)
		frames = append(frames, frame{class, slices.Compact(left)})
	}
	for start := range int32(n) {
		if k.class[start] != start || index[start] != none {
			continue
		}
		enter(start)
		for len(frames) > 0 {
			f := &frames[len(frames)-1]
			if len(f.left) > 0 {
				d := f.left[0]
				f.left = f.left[1:]
				if index[d] == none {
					enter(d)
				} else if open[d] {
					low[f.class] = min(low[f.class], index[d])
				}
				continue
			}
			class := f.class
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				up := frames[len(frames)-1].class
				low[up] = min(low[up], low[class])
			}
			if low[class] != index[class] {
				continue
			}
			i := len(stack) - 1
			for stack[i] != class {
				i--
			}
			for _, d := range stack[i:] {
				open[d] = false
			}
			if len(stack)-i > 1 {
				list := slices.Clone(stack[i:])
				slices.Sort(list)
				found = append(found, list)
			}
			stack = stack[:i]
		}
	}
	slices.SortFunc(found, func(a, b []int32) int { return cmp.Compare(a[0], b[0]) })
	return found
}

// circle is a short circle among classes that wait for each other, by its
// channels: each waits for the next, or goes out with it for one packet. It is a
// shortest one through the lowest class.
func (k *knots) circle(classes []int32) (list []int32) {
	in := make(map[int32]bool, len(classes))
	for _, c := range classes {
		in[c] = true
	}
	type step struct{ from, to int32 } // channels
	by := map[int32]step{}
	queue := []int32{classes[0]}
	for len(queue) > 0 {
		c := queue[0]
		queue = queue[1:]
		for _, ch := range k.of(c) {
			k.each(ch, func(d int32) {
				to := k.class[d]
				if _, seen := by[to]; in[to] && !seen {
					by[to] = step{ch, d}
					queue = append(queue, to)
				}
			})
		}
		if _, closed := by[classes[0]]; closed {
			break
		}
	}
	// Backwards from the first class: entered by a channel, left by another.
	c := classes[0]
	leave := int32(-1)
	for {
		s := by[c]
		if leave >= 0 && leave != s.to {
			list = append(list, leave)
		}
		list = append(list, s.to)
		leave, c = s.from, k.class[s.from]
		if c == classes[0] {
			break
		}
	}
	if last := by[c].to; leave != last {
		list = append(list, leave)
	}
	slices.Reverse(list)
	return list
}

// grip is two channels that packets from two ways in go out by both.
type grip struct{ a, b int32 }

// grips are found where packets take output ports one by one: by switch, two
// ports, by a channel of each, that the packets of one way in and those of others go
// out by.
func (k *knots) grips(splits []split) (found []grip) {
	own := make([]int32, k.count())    // of one way in
	shared := make([]int32, k.count()) // of those before it
	for i := range own {
		own[i], shared[i] = int32(i), int32(i)
	}
	said := make(map[int32]bool) // by switch
	for len(splits) > 0 {
		n := 1
		for n < len(splits) && splits[n].in == splits[0].in {
			n++
		}
		group := splits[:n]
		splits = splits[n:]
		var joins []split
		for _, s := range group {
			s.a, s.b = k.port(s.a), k.port(s.b)
			if join(own, s.a, s.b) {
				joins = append(joins, s)
			}
		}
		for _, s := range joins {
			own[s.a], own[s.b] = s.a, s.b
		}
		for _, s := range joins {
			if !join(shared, s.a, s.b) && !said[k.tail(s.a)] {
				said[k.tail(s.a)] = true
				found = append(found, grip{s.a, s.b})
			}
		}
	}
	return found
}

// meetings are two channels into one switch that worms can be on after they
// have split.
func (k *knots) meetings() (found []grip) {
	after := make([]bool, k.count())
	var queue []int32
	visit := func(ch int32) {
		if !after[ch] {
			after[ch] = true
			queue = append(queue, ch)
		}
	}
	for _, list := range k.members {
		for _, ch := range list {
			visit(ch)
		}
	}
	for len(queue) > 0 {
		ch := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		k.each(ch, visit)
	}
	into := make([]int32, k.f.NumSwitches())
	for ch := range int32(k.count()) {
		s := k.head(ch)
		if !after[ch] || s < 0 {
			continue
		}
		switch into[s] {
		case 0:
			into[s] = ch + 1
		case -1: // said already
		default:
			found = append(found, grip{into[s] - 1, ch})
			into[s] = -1
		}
	}
	return found
}
