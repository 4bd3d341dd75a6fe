package mesh

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

const (
	// mostOdd bounds how many cables are named as not fitting.
	mostOdd = 8
	// trialWork bounds the switches of all graphs that are tried without a
	// cable, mostTrials the number of graphs.
	trialWork  = 1 << 16
	trialSteps = 4_000 // switches placed in each search
	mostTrials = 64
)

// explain returns the reason why nothing fits.
func explain(f *fabric.Fabric, g *links, why trouble) *NotGridError {
	not := func(format string, args ...any) *NotGridError {
		return &NotGridError{Reason: fmt.Sprintf(format, args...)}
	}
	busiest, most := g.busiest()
	if most > maxNeighbors {
		return not("%s has cables to %d other switches; the most on a grid of %d dimensions is %d", nameOf(f, busiest), most, maxDims, maxNeighbors)
	}
	if g.crowds > 0 {
		c := g.crowd
		return not("%s and %s have three neighbours in common, %s, %s and %s; on a grid two switches have at most two",
			nameOf(f, c[0]), nameOf(f, c[1]), nameOf(f, c[2]), nameOf(f, c[3]), nameOf(f, c[4]))
	}
	if o := why.over; o != nil {
		return not("all cables fit %s, but %d of its %d positions have no switch and %d of its %d pairs of neighbours no cable, more than an eighth together",
			withArticle(newReading(f, g, o, nil).shape().String()), o.absent(), len(o.at), o.missing, o.links())
	}
	component := f.Components().Of
	if other := slices.Index(component, 1); other >= 0 {
		return not("they are %d parts without cables between them, one with %s, one with %s, and too little is left to tell how they belong together",
			slices.Max(component)+1, nameOf(f, 0), nameOf(f, fabric.NodeID(other)))
	}
	if len(why.odd) > 0 {
		return not("whatever coordinates are tried, %d or more cables join switches that are no neighbours by them, such as that between %s",
			len(why.odd), cableName(f, why.odd[0]))
	}
	return not("no coordinates fit them all; %s has the most neighbours, %d: %s", nameOf(f, busiest), most, namesOf(f, g.of(busiest), 6))
}

// leaveOut looks for the best fit of a graph without a few links. It tries
// to leave out all odd links together, then single links: odd ones, those
// of a crowd, and those on the fewest cycles of four. It returns the links
// that do not fit, none if all fit in the end, the graph without them, and
// its fit; nil if there is none.
func leaveOut(f *fabric.Fabric, g *links, why trouble) (out []cable, rest *links, found *fit) {
	// An odd cable makes crowds of only a few switches, and leaves few others
	// without a place.
	_, most := g.busiest()
	if most > maxNeighbors || g.crowds > 4*most {
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
	try := func(cables ...cable) {
		trials--
		odd, graph, fit := inferWithout(f, cables)
		if fit != nil && (found == nil || len(odd) < len(out) || len(odd) == len(out) && fit.compare(found) < 0) {
			out, rest, found = odd, graph, fit
		}
	}
	if len(why.odd) > 0 && len(why.odd) <= mostOdd {
		try(why.odd...)
	}
	tried := make(map[cable]bool)
	for _, c := range suspects {
		if found != nil && len(out) < 2 || trials <= 0 {
			break
		}
		if !tried[c] {
			tried[c] = true
			try(c)
		}
	}
	return out, rest, found
}

// inferWithout looks for a fit of the graph without some cables. odd lists
// those of cables that do not join neighbours in it; graph g has the others
// again.
func inferWithout(f *fabric.Fabric, cables []cable) (odd []cable, g *links, found *fit) {
	fit, _ := infer(newLinks(f, cables), trialSteps)
	if fit == nil {
		return nil, nil, nil
	}
	odd = text.Where(cables, func(c cable) bool { return !fit.neighbors(c[0], c[1]) })
	g = newLinks(f, odd)
	found, _ = accept(g, fit)
	return odd, g, found
}

// explainOdd names the links that do not fit.
func explainOdd(f *fabric.Fabric, out []cable, rest *links, found *fit) *NotGridError {
	grid := newReading(f, rest, found, nil).grid(fabric.NoNode)
	e := &NotGridError{}
	var names []string
	for _, c := range out {
		names = append(names, fmt.Sprintf("between %s, which joins %s and %s", cableName(f, c), grid.coordinatesOf(c[0]), grid.coordinatesOf(c[1])))
		e.Cables = append(e.Cables, f.LinksBetween(c[0], c[1])...)
	}
	e.Reason = fmt.Sprintf("all cables fit %s%s, but not that %s", withArticle(grid.String()), grid.lacking(), strings.Join(names, "; nor that "))
	return e
}

// lacking says how many switches and cables are missing.
func (g *Grid) lacking() string {
	switches := text.CountIf(g.Missing, func(m Fault) bool { return m.Dir == NoDir })
	var lacks []string
	if switches > 0 {
		lacks = append(lacks, text.Count(switches, "switch", "switches"))
	}
	if cables := len(g.Missing) - switches; cables > 0 {
		lacks = append(lacks, text.Count(cables, "cable", "cables"))
	}
	if len(lacks) == 0 {
		return ""
	}
	return " that lacks " + text.List(lacks, "and")
}

// cableName names the ports at both ends of a cable, and the number of
// parallel cables.
func cableName(f *fabric.Fabric, c cable) string {
	ports := f.LinksBetween(c[0], c[1])
	p, q := ports[0], f.Peer(ports[0])
	name := fmt.Sprintf("%s (%s) and %s (%s)", f.PortName(p), f.Node(c[0]).GUID, f.PortName(q), f.Node(c[1]).GUID)
	if more := len(ports) - 1; more > 0 {
		name += fmt.Sprintf(" (and %d parallel to it)", more)
	}
	return name
}

// nameOf returns "name" (GUID).
func nameOf(f *fabric.Fabric, s fabric.NodeID) string {
	return fmt.Sprintf("%q (%s)", f.Name(s).Text, f.Node(s).GUID)
}

// namesOf lists up to most switches by name.
func namesOf(f *fabric.Fabric, switches []fabric.NodeID, most int) string {
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
