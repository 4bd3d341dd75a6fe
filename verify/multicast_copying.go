package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// reportCopying looks for what else than dependencies can stop packets when
// switches do not copy independently.
func (c *mcPlan) reportCopying(r *Result, out *Collector, g *dependencyGraph) {
	k := newPortGraph(g, c)
	components := graph.StronglyConnected(k.count(), k.nextClasses())
	r.Multicast.CreditLoops = len(components)
	for _, classes := range components {
		channels := 0
		for _, class := range classes {
			channels += len(k.channelsOf(class))
		}
		out.Add(MulticastCopying, int64(channels), func(f *Finding) {
			for _, ch := range k.cycle(classes) {
				f.Witness = append(f.Witness, g.hop(ch, 0))
			}
			f.Switch = f.Witness[0].Switch
			f.Message = fmt.Sprintf("with %s copying %s wait for each other; a cycle, in which channels that leave one switch one after the other are held by one packet: %s",
				c.copying, text.Count(channels, "channel", "channels"), formatCycle(f.Witness, false, g.vls > 1))
		})
	}
	var found []sharedPair
	var why string
	switch c.copying {
	case LockStep:
		found = k.outputPairs(slices.SortedFunc(maps.Keys(c.found.splits), split.compare))
		why = "packets of two ways in go out by both %s and %s, so that each can take one of them first"
	case Wormhole:
		found = k.inputPairs()
		why = "worms that have split can be on both %s and %s, which lead into one switch: two of them can hold what the other one waits for"
	}
	r.Multicast.CreditLoops += len(found)
	for _, x := range found {
		out.Add(MulticastCopying, 2, func(f *Finding) {
			a, b := g.hop(x.a, 0), g.hop(x.b, 0)
			f.Witness = []Hop{a, b}
			f.Switch = a.Switch
			f.Message = fmt.Sprintf("with %s copying "+why, c.copying, a, b)
		})
	}
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

func newPortGraph(g *dependencyGraph, c *mcPlan) *portGraph {
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
