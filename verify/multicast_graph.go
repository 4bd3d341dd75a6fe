package verify

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/mft"
)

// mcState is a packet that went out by an arc on one of channels.vl.
type mcState struct{ arc, vl int32 }

// split means that a packet which comes in by channel in goes out by both a and
// b. For packets of a CA, and for those of a switch by its port 0, in is ^ of the
// channel that the input port would have if it were an output; so it is below 0.
type split struct{ in, a, b int32 }

func (s split) compare(o split) int {
	return cmp.Or(cmp.Compare(s.in, o.in), cmp.Compare(s.a, o.a), cmp.Compare(s.b, o.b))
}

// addDependencies notes the channels that packets of a tree take, from any sender but
// loopers, and the dependencies between them: packets that loop are an error of
// their own. Where a copy goes on depends only on where it came in, so that each arc is
// looked at once for each VL.
func (w *mcWorker) addDependencies(t *mft.Tree) {
	vls := w.graph.vls
	n := len(w.ports) * vls
	w.reached = slices.Grow(w.reached[:0], n)[:n]
	clear(w.reached)
	w.queue = w.queue[:0]
	for _, s := range t.Senders {
		in := w.f.Attachment(s)
		if in == fabric.NoPort || w.mutes(t.SL, s) {
			continue
		}
		if _, loops := slices.BinarySearch(w.loopers, s); loops {
			continue
		}
		vl := w.lane(w.vlOf(0, s, t.SL))
		w.leave(t.SL, ^(int32(in)*int32(vls) + vl), w.start(t.SL, s))
	}
	for i := 0; i < len(w.queue); i++ {
		at := w.queue[i]
		ch := int32(w.ports[at.arc])*int32(vls) + at.vl
		w.leave(t.SL, ch, w.arcs[at.arc].mcStart)
	}
}

// lane is which one of channels.vl a VL is.
func (c *multicast) lane(vl fabric.VL) int32 {
	i, _ := slices.BinarySearch(c.graph.vl, vl)
	return int32(i)
}

// leave sends a packet out of a switch by all ports that it goes out by. It came in by a
// channel, or one less than 0, see split.
func (w *mcWorker) leave(sl fabric.SL, in int32, at mcStart) {
	first, vls := int32(-1), int32(w.graph.vls)
	w.outs(sl, at, func(k int32) {
		p := w.ports[k]
		w.taken[k] = true
		if w.arcs[k].kind == arcDead || w.f.Num(p) == fabric.ManagementPort {
			return
		}
		vl := w.lane(w.vlOf(at.num, p, sl))
		ch := int32(p)*vls + vl
		if seen := &w.reached[k*vls+vl]; !*seen {
			*seen = true
			w.queue = append(w.queue, mcState{k, vl})
			w.graph.take(int(ch))
		}
		if in >= 0 {
			w.graph.depend(int(in), int(ch-w.graph.base(w.graph.tail(ch))))
		}
		if w.copying != Independent {
			if first >= 0 {
				w.found.splits[split{in, first, ch}] = true
			}
			first = ch
		}
	})
}

// portGraph is what else than dependencies can stop packets when switches do not
// copy independently, in the graph of all traffic.
//
// Where a packet holds one output port while it waits for another one of the same
// switch, these two are as one: a packet that waits for the one waits for the other,
// too. So channels that some packet leaves by together are put in one class, and,
// where it holds ports and not just VLs of them, with the other VLs of these. That
// the channels of a class wait for each other is no harm by itself, if packets
// take their places in the queues of a switch all at once: the first comes first
// in all of them. A cycle that leaves the switch is.
//
// LockStep packets take ports one by one, so that two packets from different
// input ports can each have what the other wants as soon as they share two.
//
// A worm holds channels of one branch far from the switch at which it waits in
// another. Two worms whose branches meet in two places can have one each. That
// cannot be when all worms that have split go down one forest: no switch is
// entered by two channels that packets take after they have split or that such
// channels lead to. Two worms that hold branches of each other must then have
// passed the switch where both split, one after the other, the second when the
// first had left it (the argument for SPAM, Libeskind-Hadas et al., of which
// E-S6 of the errata is a sketch).
type portGraph struct {
	*dependencyGraph
	class   graph.UnionFind[int32] // of channels
	members map[int32][]int32      // by the lowest channel of a class of two or more
}

func newPortGraph(g *dependencyGraph, c *multicast) *portGraph {
	k := &portGraph{dependencyGraph: g, class: graph.NewUnionFind[int32](g.count()), members: make(map[int32][]int32)}
	for s := range c.found.splits {
		k.class.Join(s.a, s.b)
		if c.copying == Wormhole {
			continue
		}
		for vl := range int32(g.vls) {
			k.class.Join(s.a, k.port(s.a)+vl)
			k.class.Join(s.b, k.port(s.b)+vl)
		}
	}
	for ch := range int32(g.count()) {
		if class := k.class.Find(ch); class != ch {
			if k.members[class] == nil {
				k.members[class] = []int32{class}
			}
			k.members[class] = append(k.members[class], ch)
		}
	}
	return k
}

// channelsOf is the channels of a class.
func (k *portGraph) channelsOf(class int32) []int32 {
	if list := k.members[class]; list != nil {
		return list
	}
	return []int32{class}
}

// nextClasses lists the other classes that a class waits for. A channel that is not the
// lowest of its class waits for nothing.
func (k *portGraph) nextClasses() graph.Next[int32] {
	next := k.Next()
	var list []int32
	return func(class int32) []int32 {
		list = list[:0]
		if k.class.Find(class) != class {
			return list
		}
		for _, ch := range k.channelsOf(class) {
			for _, d := range next(ch) {
				if to := k.class.Find(d); to != class {
					list = append(list, to)
				}
			}
		}
		return list
	}
}

// cycle is a short cycle among classes that wait for each other, by its
// channels: each waits for the next, or goes out with it for one packet. It is a
// shortest one through the lowest class.
func (k *portGraph) cycle(classes []int32) (list []int32) {
	first, nextClasses, next := classes[0], k.nextClasses(), k.Next()
	s := graph.NewSearch[int32](k.count())
	s.Run(nextClasses, first)
	last := slices.IndexFunc(s.Order, func(c int32) bool { return slices.Contains(nextClasses(c), first) })
	path := s.Path(s.Order[last])
	// left and entered have the channels between a class and the next one.
	left, entered := make([]int32, len(path)), make([]int32, len(path))
	for i, c := range path {
		to := path[(i+1)%len(path)]
		for _, ch := range slices.Backward(k.channelsOf(c)) {
			for _, d := range slices.Backward(next(ch)) {
				if k.class.Find(d) == to {
					left[i], entered[i] = ch, d
				}
			}
		}
	}
	for i := range path {
		if in := entered[(i+len(path)-1)%len(path)]; left[i] != in {
			list = append(list, left[i])
		}
		list = append(list, entered[i])
	}
	return list
}

// sharedPair is two channels that packets from two input ports go out by both, or that
// two worms can be on.
type sharedPair struct{ a, b int32 }

// outputPairs are found where packets take output ports one by one: by switch, two
// ports, by a channel of each, that the packets of one input port and those of others go
// out by.
func (k *portGraph) outputPairs(splits []split) (found []sharedPair) {
	own := graph.NewUnionFind[int32](k.count())    // of one input port
	shared := graph.NewUnionFind[int32](k.count()) // of those before it
	said := make(map[int32]bool)                   // by switch
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
			if own.Join(s.a, s.b) {
				joins = append(joins, s)
			}
		}
		for _, s := range joins {
			own[s.a], own[s.b] = s.a, s.b
		}
		for _, s := range joins {
			if !shared.Join(s.a, s.b) && !said[k.tail(s.a)] {
				said[k.tail(s.a)] = true
				found = append(found, sharedPair{s.a, s.b})
			}
		}
	}
	return found
}

// inputPairs are two channels into one switch that worms can be on after they
// have split.
func (k *portGraph) inputPairs() (found []sharedPair) {
	after := graph.NewSearch[int32](k.count())
	for _, list := range k.members {
		after.Extend(k.Next(), list...)
	}
	into := make([]int32, k.f.NumSwitches())
	for ch := range int32(k.count()) {
		s := k.head(ch)
		if !after.Reached(ch) || s < 0 {
			continue
		}
		switch into[s] {
		case 0:
			into[s] = ch + 1
		case -1: // said already
		default:
			found = append(found, sharedPair{into[s] - 1, ch})
			into[s] = -1
		}
	}
	return found
}
