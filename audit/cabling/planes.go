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
// XDR switches have four. A cable has a lane for each chip, on ports of one number, so all planes
// are cabled alike. Only the cables tell that a system has planes. Its chips are of one model; of
// the port numbers in use, four or more, three quarters lead from all chips to one system or adapter.

// planes finds chips that a system lacks and others of its model have, and lanes that one of its
// planes lacks.
type planes struct {
	*checker
	unit  []fabric.NodeID                   // by node: first chip of its system, or itself
	chips map[fabric.NodeID][]fabric.NodeID // by unit, of systems of several planes
}

// checkPlanes checks all systems of several planes; it returns false if there are none.
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

// lanes returns for each chip the far end of its port num; NoPort without a cable, or to an
// aggregation node. some is the last that is not NoPort.
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

// isPlanar returns true if chips are cabled as planes, by the rule above.
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

// findShort reports systems with fewer chips than usual, if three quarters or more of the systems
// of their model have the usual number. It returns them by unit.
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

// compareLanes reports the chips without a lane on port num if at least half
// of the chips have one there to another system. It skips ports that a finding
// already names for a missing cable.
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

// freeEnd returns the port that a missing lane should lead to; q is the far end of another lane of
// the cable. On planes it is the only free port of q's number, on an adapter its only free port;
// NoPort for none or several.
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

// systemName returns the common start of the chips' names, "MF0;spine-1:Q3400_RA" for
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
