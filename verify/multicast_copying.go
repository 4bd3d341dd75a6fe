package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// reportCopying reports what can stop packets, beyond dependencies, if
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

// portGraph has the graph of all traffic, with what can stop packets beyond
// dependencies if switches do not copy independently.
//
// If a packet holds one output port while it waits for another port of the same
// switch, the two are as one: a packet that waits for one waits for the other,
// too. So channels by which some packet leaves together are one class and, if it
// holds whole ports and not only VLs, all VLs of these ports. If packets join
// all queues of a switch at once, channels of one class that wait for each other
// do no harm: the first packet comes first in all queues. A cycle through other
// switches does.
//
// LockStep packets take ports one by one. So two packets from different input
// ports that share two output ports can each have the port that the other wants.
//
// A worm holds channels of one branch far from the switch where another branch
// waits. Two worms whose branches meet in two places can have one each. This
// cannot happen if all worms that have split go down one forest: no switch has
// two input channels that packets take after a split, or that such channels lead
// to. Then two worms that hold branches of each other must have passed the
// switch where both split one after the other, the second when the first had
// left it (the argument for SPAM, Libeskind-Hadas et al., of which E-S6 of the
// errata is a sketch).
type portGraph struct {
	*dependencyGraph
	class   graph.UnionFind[int32] // of channels
	members map[int32][]int32      // by lowest channel of a class of two or more: its channels
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

// channelsOf lists the channels of a class.
func (k *portGraph) channelsOf(class int32) []int32 {
	if list := k.members[class]; list != nil {
		return list
	}
	return []int32{class}
}

// nextClasses lists the classes for which a class waits. A class is given by its lowest channel;
// for other channels the list is empty.
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

// cycle returns a shortest cycle through the lowest of some classes that wait
// for each other, as channels: each waits for the next, or some packet leaves
// by both.
func (k *portGraph) cycle(classes []int32) (list []int32) {
	first, nextClasses, next := classes[0], k.nextClasses(), k.Next()
	s := graph.NewSearch[int32](k.count())
	s.Run(nextClasses, first)
	last := slices.IndexFunc(s.Order, func(c int32) bool { return slices.Contains(nextClasses(c), first) })
	path := s.Path(s.Order[last])
	// Of each class some channel, left, waits for a channel of the next class, entered.
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

// sharedPair is two channels. Packets of either of two input ports leave by both, or two worms may
// hold one each.
type sharedPair struct{ a, b int32 }

// outputPairs lists, for LockStep, pairs of ports by which packets of several input ports leave
// together, at most one for each switch. A port is given by its first channel.
func (k *portGraph) outputPairs(splits []split) (found []sharedPair) {
	own := graph.NewUnionFind[int32](k.count())    // ports that packets of one input port join
	shared := graph.NewUnionFind[int32](k.count()) // ports that packets of the input ports before it join
	said := make(map[int32]bool)                   // switches in found
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

// inputPairs lists pairs of channels into one switch that worms may hold after a split, at most one
// pair for each switch.
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
		case -1: // found already
		default:
			found = append(found, sharedPair{into[s] - 1, ch})
			into[s] = -1
		}
	}
	return found
}
