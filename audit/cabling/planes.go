package cabling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// A switch of several planes is several chips with one system image GUID and no cable between them;
// XDR switches have four. A cable has a lane for each chip, on ports of one number, so that the chips,
// the planes, are cabled alike. Nothing but the cables says that a system is one: its chips are of one
// model, and at least three quarters of the ports that any of them uses, four or more, lead from all
// of them to one system or adapter.

// planes finds what planes lack that their sisters have.
type planes struct {
	*checker
	unit  []fabric.NodeID                   // by node: the first chip of its system, the node itself where it is no chip
	chips map[fabric.NodeID][]fabric.NodeID // by unit: those of systems of several planes
}

// checkPlanes looks at all systems of several planes. It returns false where there are none.
func (c *checker) checkPlanes() bool {
	p := &planes{checker: c, unit: c.units(), chips: map[fabric.NodeID][]fabric.NodeID{}}
	var systems [][]fabric.NodeID
	for _, chips := range c.f.Systems() {
		if p.isPlanar(chips) {
			systems = append(systems, chips)
			p.chips[chips[0]] = chips
		}
	}
	short := p.findShort(systems)
	for _, chips := range systems {
		for num := fabric.PortNum(1); num <= c.f.Node(chips[0]).NumPorts && !short[chips[0]]; num++ {
			p.compareLanes(chips, num, short)
		}
	}
	return len(systems) > 0
}

// lanes lists for each chip the port at the far end of its port num, NoPort for none or one of an
// aggregation node; some is the last that is not NoPort.
func (p *planes) lanes(chips []fabric.NodeID, num fabric.PortNum) (far []fabric.PortID, some fabric.PortID) {
	some = fabric.NoPort
	for _, s := range chips {
		peer := p.f.Peer(p.f.Port(s, num))
		if peer != fabric.NoPort && p.f.Kind(p.f.Owner(peer)) == fabric.AggregationKind {
			peer = fabric.NoPort
		}
		if far = append(far, peer); peer != fabric.NoPort {
			some = peer
		}
	}
	return far, some
}

// isPlanar returns true for chips that are cabled as planes.
func (p *planes) isPlanar(chips []fabric.NodeID) bool {
	first := p.modelOf(chips[0])
	if slices.ContainsFunc(chips, func(s fabric.NodeID) bool { return p.modelOf(s) != first }) {
		return false
	}
	used, whole := 0, 0
	for num := fabric.PortNum(1); num <= first.ports; num++ {
		far, some := p.lanes(chips, num)
		if some == fabric.NoPort {
			continue
		}
		unit := p.unit[p.f.Owner(some)]
		if unit == p.unit[chips[0]] {
			return false
		}
		used++
		if !slices.ContainsFunc(far, func(q fabric.PortID) bool { return q == fabric.NoPort || p.unit[p.f.Owner(q)] != unit }) {
			whole++
		}
	}
	return used >= 4 && 4*whole >= 3*used
}

// findShort reports systems with fewer chips than at least three quarters of the systems
// of their model have, and returns them by unit.
func (p *planes) findShort(systems [][]fabric.NodeID) map[fabric.NodeID]bool {
	sizes := map[model][]int{}
	for _, chips := range systems {
		m := p.modelOf(chips[0])
		sizes[m] = append(sizes[m], len(chips))
	}
	short := map[fabric.NodeID]bool{}
	for _, chips := range systems {
		like := sizes[p.modelOf(chips[0])]
		usual := mode(like)
		n := text.CountIf(like, func(k int) bool { return k == usual })
		if len(chips) < usual && 4*n >= 3*len(like) {
			short[chips[0]] = true
			p.add(UnevenPlanes, usual-len(chips), nodeEndpoints(p.f, chips...), "%s has %d planes, and %d of the %d systems like it have %d",
				p.systemName(chips), len(chips), n, len(like), usual)
		}
	}
	return short
}

// compareLanes reports the chips that have no lane on a port by which half of their sisters or more
// lead to another system, unless a finding says already that a cable is missing there.
func (p *planes) compareLanes(chips []fabric.NodeID, num fabric.PortNum, short map[fabric.NodeID]bool) {
	far, some := p.lanes(chips, num)
	lacking := text.CountIf(far, func(q fabric.PortID) bool { return q == fabric.NoPort })
	if some == fabric.NoPort || lacking == 0 || 2*lacking > len(chips) || short[p.unit[p.f.Owner(some)]] {
		return
	}
	name := p.f.Name(p.f.Owner(some)).String()
	if sisters := p.chips[p.unit[p.f.Owner(some)]]; sisters != nil {
		name = p.systemName(sisters)
	}
	for i, s := range chips {
		at := p.f.Port(s, num)
		if p.f.Peer(at) != fabric.NoPort || far[i] != fabric.NoPort || p.isNamed[at] {
			continue
		}
		ends := []fabric.PortID{at}
		text := fmt.Sprintf("%s has no lane to %s, where its sister planes have one", p.f.PortName(at), name)
		if to := p.freeEnd(some); to != fabric.NoPort {
			ends = append(ends, to)
			text += "; it should lead to " + p.f.PortName(to)
		}
		p.markNamed(ends...)
		p.add(UnevenPlanes, 1, verify.EndpointsOf(p.f, ends...), "%s", text)
	}
}

// freeEnd finds the port that a missing lane should lead to, where another lane of its cable leads to
// port q: of planes the port of that number that has no cable, of an adapter its only port without
// one; NoPort for none or several.
func (p *planes) freeEnd(q fabric.PortID) fabric.PortID {
	f, n := p.f, p.f.Owner(q)
	var free []fabric.PortID
	add := func(at fabric.PortID) {
		if f.Peer(at) == fabric.NoPort && !p.isNamed[at] {
			free = append(free, at)
		}
	}
	for _, s := range p.chips[p.unit[n]] {
		add(f.Port(s, f.Num(q)))
	}
	for num := fabric.PortNum(1); num <= f.Node(n).NumPorts && !f.IsSwitch(n); num++ {
		add(f.Port(n, num))
	}
	if len(free) != 1 {
		return fabric.NoPort
	}
	return free[0]
}

// systemName returns what the names of chips begin with, "MF0;spine-1:Q3400_RA" for
// "MF0;spine-1:Q3400_RA/U2", or the system image GUID.
func (c *checker) systemName(chips []fabric.NodeID) string {
	name := ""
	for i, s := range chips {
		text := c.f.Name(s).Text
		cut := strings.LastIndexByte(text, '/')
		if cut <= 0 || i > 0 && text[:cut] != name {
			return "system " + c.f.Node(chips[0]).SystemGUID.String()
		}
		name = text[:cut]
	}
	return fmt.Sprintf("system %q", name)
}
