package mesh

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

const (
	// mostOdd is how many cables are named as those that do not fit.
	mostOdd = 8
	// trialSteps bounds the search when a grid is looked for without a cable.
	trialSteps = 20_000
	// trialWork bounds the switches of all graphs that are tried without a
	// cable, and mostTrials the graphs.
	trialWork  = 1 << 18
	mostTrials = 64
)

// explain says why nothing fits.
func explain(f *fabric.Fabric, g *links, why trouble) *NotGridError {
	if s, most := g.busiest(); most > maxNeighbors {
		return &NotGridError{Reason: fmt.Sprintf("%s has cables to %d other switches; the most on a grid of %d dimensions is %d", nameOf(f, s), most, maxDims, maxNeighbors)}
	}
	if e := explainOdd(f, g, why.odd); e != nil {
		return e
	}
	if g.crowds > 0 {
		c := g.crowd
		return &NotGridError{Reason: fmt.Sprintf("%s and %s have three neighbours in common, %s, %s and %s; on a grid two switches have at most two",
			nameOf(f, c[0]), nameOf(f, c[1]), nameOf(f, c[2]), nameOf(f, c[3]), nameOf(f, c[4]))}
	}
	if why.over != nil {
		links := why.over.links()
		return &NotGridError{Reason: fmt.Sprintf("all cables fit a %s, but %d of its %d pairs of neighbours have none; at most %d may be missing",
			describe(f, g, why.over), why.over.missing, links, mostMissing(links))}
	}
	if part, parts := g.parts(); parts > 1 {
		other := fabric.NodeID(slices.Index(part, 1))
		return &NotGridError{Reason: fmt.Sprintf("they are %d parts without cables between them, one with %s, one with %s, and too little is left to tell how they belong together",
			parts, nameOf(f, 0), nameOf(f, other))}
	}
	if s, ok := g.branch(); ok {
		return &NotGridError{Reason: fmt.Sprintf("%s has %d neighbours, %s, of which no two have another neighbour in common; on a grid, those in different dimensions do",
			nameOf(f, s), len(g.of(s)), namesOf(f, g.of(s)))}
	}
	if why.wide.size != nil {
		sizes := make([]int, len(why.wide.size))
		for d, size := range why.wide.size {
			sizes[d] = int(size)
		}
		return &NotGridError{Reason: fmt.Sprintf("all cables fit a grid of %s, but more than an eighth of its positions have no switch: there are %d", times(sizes), g.switches())}
	}
	if len(why.odd) > 0 {
		c := why.odd[0]
		return &NotGridError{Reason: fmt.Sprintf("no coordinates fit all cables: whatever is tried leaves %d or more between switches that are no neighbours, such as that between %s", len(why.odd), cableName(f, c))}
	}
	s, most := g.busiest()
	return &NotGridError{Reason: fmt.Sprintf("no coordinates fit the cables; the most irregular is %s with %d neighbours, %s", nameOf(f, s), most, namesOf(f, g.of(s)))}
}

// explainOdd looks for a few cables without which there were a grid: the odd
// ones, each of them, or each link that lies on no cycle of four; in small
// fabrics each link. Nil when there are none.
func explainOdd(f *fabric.Fabric, g *links, odd []cable) *NotGridError {
	if g.switches() < 2 {
		return nil
	}
	// One odd cable makes crowds of few switches only.
	if _, most := g.busiest(); g.crowds > 4*most {
		return nil
	}
	trials := max(4, min(mostTrials, trialWork/g.switches()))
	var best *fit
	var without []cable
	var rest *links
	try := func(cables []cable) {
		if trials--; trials < 0 {
			return
		}
		h := newLinks(f, cables)
		if fit, _ := solve(h, trialSteps); fit != nil && (best == nil || len(cables) < len(without) || len(cables) == len(without) && fit.better(best)) {
			best, without, rest = fit, cables, h
		}
	}
	if len(odd) <= mostOdd && len(odd) > 0 {
		try(odd)
	}
	if best == nil || len(without) > 1 {
		tried := make(map[cable]bool)
		for _, c := range slices.Concat(odd, g.lonely(), g.all(searchSwitches)) {
			if trials > 0 && !tried[c] {
				tried[c] = true
				try([]cable{c})
			}
		}
	}
	if best == nil {
		return nil
	}
	v := newSurvey(f, rest, best)
	axes := v.axes(nil)
	if v.turn(axes, 0) != nil {
		return nil
	}
	grid := v.grid(rest, axes)
	e := &NotGridError{}
	var names []string
	for _, c := range without {
		if best.direction(c[0], c[1]) != NoDir {
			continue
		}
		names = append(names, fmt.Sprintf("%s, which would join %s and %s", cableName(f, c), grid.place(c[0]), grid.place(c[1])))
		ports, to := f.SwitchLinks(c[0])
		for i, t := range to {
			if t == c[1] {
				e.Cables = append(e.Cables, ports[i])
			}
		}
	}
	if len(names) == 0 { // the links of a torn ring
		for _, c := range without {
			names = append(names, cableName(f, c))
		}
	}
	e.Reason = fmt.Sprintf("they were a %s%s without the cable between %s", grid, grid.lacking(), strings.Join(names, "; and that between "))
	return e
}

// lacking is how many things are missing, for messages.
func (g *Grid) lacking() string {
	if len(g.Missing) == 0 {
		return ""
	}
	return fmt.Sprintf(" with %d missing", len(g.Missing))
}

// lonely gives the links that lie on no cycle of four.
func (g *links) lonely() []cable {
	var cables []cable
	for s := range fabric.NodeID(g.switches()) {
		for i := g.start[s]; i < g.start[s+1]; i++ {
			if g.square[i] == 0 && s < g.to[i] {
				cables = append(cables, cable{s, g.to[i]})
			}
		}
	}
	return cables
}

// all gives all links of a graph of at most so many switches.
func (g *links) all(most int) []cable {
	var cables []cable
	if g.switches() > most {
		return nil
	}
	for s := range fabric.NodeID(g.switches()) {
		for _, t := range g.of(s) {
			if s < t {
				cables = append(cables, cable{s, t})
			}
		}
	}
	return cables
}

// branch is a switch with three neighbours or more and none of its links on a
// cycle of four.
func (g *links) branch() (fabric.NodeID, bool) {
	for s := range fabric.NodeID(g.switches()) {
		if own := g.square[g.start[s]:g.start[s+1]]; len(own) > 2 && !slices.ContainsFunc(own, func(m uint32) bool { return m != 0 }) {
			return s, true
		}
	}
	return 0, false
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
