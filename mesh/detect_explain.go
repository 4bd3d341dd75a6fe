package mesh

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

const (
	// mostOdd is how many cables are named as those that do not fit.
	mostOdd = 8
	// trialWork bounds the switches of all graphs that are tried without a
	// cable, and mostTrials the graphs.
	trialWork  = 1 << 16
	mostTrials = 64
)

// explain says why nothing fits.
func explain(f *fabric.Fabric, g *links, why trouble) *NotGridError {
	if s, most := g.busiest(); most > maxNeighbors {
		return &NotGridError{Reason: fmt.Sprintf("%s has cables to %d other switches; the most on a grid of %d dimensions is %d", nameOf(f, s), most, maxDims, maxNeighbors)}
	}
	if g.crowds > 0 {
		c := g.crowd
		return &NotGridError{Reason: fmt.Sprintf("%s and %s have three neighbours in common, %s, %s and %s; on a grid two switches have at most two",
			nameOf(f, c[0]), nameOf(f, c[1]), nameOf(f, c[2]), nameOf(f, c[3]), nameOf(f, c[4]))}
	}
	if why.long > 0 {
		return &NotGridError{Reason: fmt.Sprintf("%d of them are in a row: want at most %d", why.long, math.MaxInt16)}
	}
	if why.over != nil {
		o := why.over
		return &NotGridError{Reason: fmt.Sprintf("all cables fit %s, but %d of its %d positions have no switch and %d of its %d pairs of neighbours no cable, more than an eighth together",
			withArticle(describe(f, g, o)), o.absent, len(o.at), o.missing, o.links())}
	}
	if part, parts := g.parts(); parts > 1 {
		other := fabric.NodeID(slices.Index(part, 1))
		return &NotGridError{Reason: fmt.Sprintf("they are %d parts without cables between them, one with %s, one with %s, and too little is left to tell how they belong together",
			parts, nameOf(f, 0), nameOf(f, other))}
	}
	if why.wide.size != nil {
		sizes := make([]int, len(why.wide.size))
		for d, size := range why.wide.size {
			sizes[d] = int(size)
		}
		return &NotGridError{Reason: fmt.Sprintf("all cables fit a grid of %s, but more than an eighth of its positions have no switch: there are %d", times(sizes), g.switches())}
	}
	if s, many := g.branches(); 8*many > g.switches() {
		return &NotGridError{Reason: fmt.Sprintf("%d of %d have three neighbours or more of which no two have another neighbour in common, as those in different dimensions have; the first is %s with %s",
			many, g.switches(), nameOf(f, s), namesOf(f, g.of(s)))}
	}
	if len(why.odd) > 0 {
		return &NotGridError{Reason: fmt.Sprintf("whatever coordinates are tried, %d or more cables join switches that are no neighbours by them, such as that between %s",
			len(why.odd), cableName(f, why.odd[0]))}
	}
	if why.left > 0 && why.lone != fabric.NoNode {
		return &NotGridError{Reason: fmt.Sprintf("whatever coordinates are tried, %d or more switches have no place, such as %s beside %s",
			why.left, nameOf(f, why.lone), namesOf(f, g.of(why.lone)))}
	}
	s, most := g.busiest()
	return &NotGridError{Reason: fmt.Sprintf("too little of them is regular; the most neighbours has %s, %d: %s", nameOf(f, s), most, namesOf(f, g.of(s)))}
}

// without looks for the best fit of a graph less a few links: the odd ones,
// each of them, each of those that make a crowd, or the links on the fewest
// cycles of four. It returns the links that are left out and do not fit, the
// graph without them, and what fits it, or nil; sometimes that is the whole
// graph.
func without(f *fabric.Fabric, g *links, why trouble) (out []cable, rest *links, found *fit) {
	// One odd cable makes crowds of few switches only, and takes few others
	// their places.
	_, most := g.busiest()
	if most > maxNeighbors || g.crowds > 4*most || why.long > 0 {
		return nil, nil, nil
	}
	var suspects []cable
	if g.crowds > 0 {
		for _, s := range g.crowd[:2] {
			for _, t := range g.crowd[2:] {
				suspects = append(suspects, cableOf(s, t))
			}
		}
	}
	if g.switches() <= searchSwitches || len(why.odd) <= mostTrials && 8*why.left <= g.switches() {
		suspects = slices.Concat(why.odd, suspects, g.suspects())
	}
	trials := max(4, min(mostTrials, trialWork/g.switches()))
	try := func(cables []cable) {
		if trials--; trials < 0 {
			return
		}
		fit, _ := solve(newLinks(f, cables), quick)
		if fit == nil {
			return
		}
		var odd []cable
		for _, c := range cables {
			if fit.direction(c[0], c[1]) == NoDir {
				odd = append(odd, c)
			}
		}
		h := newLinks(f, odd)
		if fit, _ = accept(h, fit); fit == nil {
			return
		}
		if found == nil || len(odd) < len(out) || len(odd) == len(out) && fit.compare(found) < 0 {
			out, rest, found = odd, h, fit
		}
	}
	if len(why.odd) > 0 && len(why.odd) <= mostOdd {
		try(why.odd)
	}
	tried := make(map[cable]bool)
	for _, c := range suspects {
		if found != nil && len(out) < 2 || trials <= 0 {
			break
		}
		if !tried[c] {
			tried[c] = true
			try([]cable{c})
		}
	}
	return out, rest, found
}

// explainOdd names the links that are out of a fit of the rest of a fabric.
func explainOdd(f *fabric.Fabric, out []cable, rest *links, found *fit) *NotGridError {
	v := newSurvey(f, rest, found)
	axes := v.axes(nil)
	if err := v.turn(axes, 0); err != nil {
		return err
	}
	grid := v.grid(rest, axes)
	e := &NotGridError{}
	var names []string
	for _, c := range out {
		names = append(names, fmt.Sprintf("between %s, which joins %s and %s", cableName(f, c), grid.place(c[0]), grid.place(c[1])))
		ports, to := f.SwitchLinks(c[0])
		for i, t := range to {
			if t == c[1] {
				e.Cables = append(e.Cables, ports[i])
			}
		}
	}
	e.Reason = fmt.Sprintf("all cables fit %s%s, but not that %s", withArticle(grid.String()), grid.lacking(), strings.Join(names, "; nor that "))
	return e
}

// lacking is how many things are missing, for messages.
func (g *Grid) lacking() string {
	switches := 0
	for _, m := range g.Missing {
		if m.Dir == NoDir {
			switches++
		}
	}
	count := func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprint(n, " ", many)
	}
	cables := len(g.Missing) - switches
	switch {
	case switches > 0 && cables > 0:
		return " that lacks " + count(switches, "switch", "switches") + " and " + count(cables, "cable", "cables")
	case switches > 0:
		return " that lacks " + count(switches, "switch", "switches")
	case cables > 0:
		return " that lacks " + count(cables, "cable", "cables")
	}
	return ""
}

// suspects gives the links that lie on no cycle of four, in small fabrics all,
// those on the fewest cycles first.
func (g *links) suspects() []cable {
	type suspect struct {
		cable
		squares int
	}
	var found []suspect
	for s := range fabric.NodeID(g.switches()) {
		for i := g.start[s]; i < g.start[s+1]; i++ {
			if n := bits.OnesCount32(g.square[i]); s < g.to[i] && (n == 0 || g.switches() <= searchSwitches) {
				found = append(found, suspect{cable{s, g.to[i]}, n})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b suspect) int { return a.squares - b.squares })
	cables := make([]cable, len(found))
	for i := range found {
		cables[i] = found[i].cable
	}
	return cables
}

// branches counts the switches with three neighbours or more and none of their
// links on a cycle of four, and gives the first.
func (g *links) branches() (first fabric.NodeID, count int) {
	for s := range fabric.NodeID(g.switches()) {
		own := g.square[g.start[s]:g.start[s+1]]
		if len(own) > 2 && !slices.ContainsFunc(own, func(m uint32) bool { return m != 0 }) {
			if count++; count == 1 {
				first = s
			}
		}
	}
	return first, count
}

// describe is a fit in words.
func describe(f *fabric.Fabric, g *links, found *fit) string {
	v := newSurvey(f, g, found)
	return v.grid(nil, v.axes(nil)).String()
}

// cableName is the ports at both ends of a cable with their switches, and how
// many more cables there are between these.
func cableName(f *fabric.Fabric, c cable) string {
	ports, to := f.SwitchLinks(c[0])
	name, more := "", -1
	for i, t := range to {
		if t == c[1] {
			if more++; more == 0 {
				p, q := ports[i], f.Peer(ports[i])
				name = fmt.Sprintf("%s (%s) and %s (%s)", f.PortName(p), f.Node(c[0]).GUID, f.PortName(q), f.Node(c[1]).GUID)
			}
		}
	}
	if more > 0 {
		name += fmt.Sprintf(" (and %d parallel to it)", more)
	}
	return name
}

// namesOf lists switches for messages, at most 6.
func namesOf(f *fabric.Fabric, switches []fabric.NodeID) string {
	const most = 6
	var names []string
	for i, s := range switches {
		if i == most {
			names = append(names, "...")
			break
		}
		names = append(names, nameOf(f, s))
	}
	return strings.Join(names, ", ")
}

// withArticle puts a or an before a shape: "an 8x8 mesh", "an 11x2 torus".
func withArticle(shape string) string {
	digits := len(shape) - len(strings.TrimLeft(shape, "0123456789"))
	eleven := digits%3 == 2 && (strings.HasPrefix(shape, "11") || strings.HasPrefix(shape, "18"))
	if digits > 0 && shape[0] == '8' || eleven {
		return "an " + shape
	}
	return "a " + shape
}
