package cabling

import (
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// addDeviations adds findings for what a shape lacks and for surplus cables. If a missing cable
// belongs in the port of a surplus one, it compares the two as with an expected topology, and so
// finds crossed and moved cables.
func (c *checker) addDeviations(s *Shape) {
	f := c.f
	for _, h := range s.holes {
		c.markNamed(h.ports...)
		for i := range h.ports {
			c.joined = append(c.joined, [2]fabric.NodeID{f.Owner(h.ports[0]), f.Owner(h.ports[i])})
		}
		c.add(MissingSwitch, 1, verify.EndpointsOf(f, h.ports...), "the %s has no switch at %s; %s should lead there",
			s.Name, h.name, portList(verify.EndpointsOf(f, h.ports...)))
	}
	m := &comparison{checker: c, shape: s.Name}
	m.clear()
	for _, p := range s.surplus {
		m.have[p], m.have[f.Peer(p)] = f.Peer(p), p
	}
	deficits := slices.Clone(s.deficits)
	for _, anywhere := range []bool{false, true} { // guessed ports first, then any
		for i := range deficits {
			d := &deficits[i]
			for ; d.n > 0; d.n-- {
				a, b := m.portFor(d.a, d.pa, anywhere), m.portFor(d.b, d.pb, anywhere)
				if m.want[a] != fabric.NoPort || m.want[b] != fabric.NoPort || !anywhere && (f.Num(a) == 0 || f.Num(b) == 0) || !m.explains(a, b) {
					break
				}
				m.want[a], m.want[b] = b, a
			}
		}
	}
	for i := range deficits {
		d := &deficits[i]
		c.joined = append(c.joined, [2]fabric.NodeID{d.a, d.b})
		if d.n > 0 {
			from, to := m.ends(d.a, d.pa), m.ends(d.b, d.pb)
			c.add(MissingCable, d.n, slices.Concat(from, to), "%s missing between %s and %s", countCables(d.n), portList(from), portList(to))
		}
	}
	m.addDifferences()
}

// portFor returns the port of a switch that a missing cable should be in: first a guessed port
// with a cable that does not belong there; then, if anywhere is set, any port with such a
// cable; then a free guessed port; else port 0 for "not known". It skips ports that another
// missing cable should be in.
func (m *comparison) portFor(s fabric.NodeID, guessed []fabric.PortID, anywhere bool) fabric.PortID {
	best := m.f.PortBase(s)
	for _, p := range guessed {
		switch {
		case m.want[p] != fabric.NoPort:
		case m.have[p] != fabric.NoPort:
			return p
		case best == m.f.PortBase(s):
			best = p
		}
	}
	for p := range m.f.Cabled(s) {
		if anywhere && m.have[p] != fabric.NoPort && m.want[p] == fabric.NoPort {
			return p
		}
	}
	return best
}

// explains returns true if a missing cable from a to b explains surplus cables in these ports: both
// have one; or one has, and no missing cable belongs in its far end.
func (m *comparison) explains(a, b fabric.PortID) bool {
	p, q := m.have[a], m.have[b]
	switch {
	case p == fabric.NoPort && q == fabric.NoPort:
		return false
	case p != fabric.NoPort && q != fabric.NoPort:
		return true
	case p == fabric.NoPort:
		p = q
	}
	return m.want[p] == fabric.NoPort
}

// ends returns the guessed ports of a switch that no missing cable claims; if there are none, the
// switch.
func (m *comparison) ends(s fabric.NodeID, guessed []fabric.PortID) []verify.Endpoint {
	m.markNamed(guessed...)
	list := slices.DeleteFunc(slices.Clone(guessed), func(p fabric.PortID) bool { return m.want[p] != fabric.NoPort })
	if len(list) == 0 {
		list = []fabric.PortID{m.f.PortBase(s)}
	}
	return verify.EndpointsOf(m.f, list...)
}

// portList lists endpoints; successive ports of one node share its name.
func portList(ports []verify.Endpoint) string {
	words := text.Each(ports, verify.Endpoint.String)
	for i, e := range ports {
		if i > 0 && e.Port != 0 && e.Node == ports[i-1].Node {
			words[i] = strings.TrimPrefix(words[i], e.Name.String())
		}
	}
	return joinFew(words, ", ", "%d more")
}
