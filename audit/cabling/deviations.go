package cabling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/verify"
)

// addDeviations makes findings of what a shape lacks and has too much.
func (c *checker) addDeviations(s *Shape) {
	f := c.f
	for _, h := range s.holes {
		c.markNamed(h.ports...)
		for i := range h.ports {
			c.joined = append(c.joined, [2]fabric.NodeID{f.Owner(h.ports[0]), f.Owner(h.ports[i])})
		}
		c.add(MissingSwitch, 1, verify.EndpointsOf(f, h.ports...), "the %s has no switch at %s; %s should lead there", s.Name, h.name, portList(verify.EndpointsOf(f, h.ports...)))
	}
	deficits := slices.Clone(s.deficits)
	for _, d := range deficits {
		c.joined = append(c.joined, [2]fabric.NodeID{d.a, d.b})
		for _, p := range d.pa {
			c.markNamed(f.Port(d.a, p))
		}
		for _, p := range d.pb {
			c.markNamed(f.Port(d.b, p))
		}
	}
	surplus := slices.Clone(s.surplus)
	if len(deficits) <= maxMatched && len(surplus) <= maxMatched {
		c.matchCrossed(deficits, surplus)
		c.matchMoved(deficits, surplus)
	}
	for _, d := range deficits {
		if d.n == 0 {
			continue
		}
		ports := append(d.ends(f, d.a, d.pa), d.ends(f, d.b, d.pb)...)
		c.add(MissingCable, d.n, ports, "%s missing between %s and %s", countCables(d.n), portList(ports[:len(ports)-max(1, len(d.pb))]), portList(ports[len(ports)-max(1, len(d.pb)):]))
	}
	for _, p := range surplus {
		if p != fabric.NoPort {
			c.add(ExtraCable, 1, verify.EndpointsOf(f, p, f.Peer(p)), "%s to %s does not belong to the %s", f.PortName(p), f.PortName(f.Peer(p)), s.Name)
		}
	}
}

// ends names one end of a deficit: its ports, or the switch when they are not known.
func (d *deficit) ends(f *fabric.Fabric, s fabric.NodeID, ports []fabric.PortNum) []verify.Endpoint {
	if len(ports) == 0 {
		return []verify.Endpoint{nodeEndpoint(f, s, 0)}
	}
	list := make([]verify.Endpoint, len(ports))
	for i, p := range ports {
		list[i] = nodeEndpoint(f, s, p)
	}
	return list
}

// portList writes endpoints one after the other, a node's name once for its ports.
func portList(list []verify.Endpoint) string {
	parts := make([]string, 0, len(list))
	for i, e := range list {
		if i == 8 && len(list) > 9 {
			parts = append(parts, fmt.Sprintf("%d more", len(list)-i))
			break
		}
		if i > 0 && e.Port != 0 && e.Node == list[i-1].Node {
			parts = append(parts, strings.TrimPrefix(e.String(), e.Name.String()))
			continue
		}
		parts = append(parts, e.String())
	}
	return strings.Join(parts, ", ")
}

// maxMatched bounds the deviations that are tried against each other: with more of
// them the fabric is not one shape with a few faults.
const maxMatched = 500

// matchCrossed finds two cables that lead to each other's switch: the pairs a,b and c,d
// lack one, and two others of the four have one too many. It takes from both lists what it
// finds.
func (c *checker) matchCrossed(deficits []deficit, surplus []fabric.PortID) {
	f := c.f
	for i := range surplus {
		for j := i + 1; surplus[i] != fabric.NoPort && j < len(surplus); j++ {
			p, q := surplus[i], surplus[j]
			d, e := c.crossed(deficits, p, q)
			if d == nil {
				continue
			}
			d.n--
			e.n--
			surplus[i], surplus[j] = fabric.NoPort, fabric.NoPort
			c.markNamed(p, f.Peer(p), q, f.Peer(q))
			c.add(CrossedCables, 2, verify.EndpointsOf(f, p, f.Peer(p), q, f.Peer(q)), "%s leads to %s and %s to %s: %s should have a cable to %s, and %s one to %s",
				f.PortName(p), f.PortName(f.Peer(p)), f.PortName(q), f.PortName(f.Peer(q)),
				f.Name(d.a), f.Name(d.b), f.Name(e.a), f.Name(e.b))
		}
	}
}

// crossed finds two pairs that lack a cable and would have one each if the cables of
// two ports were exchanged; nil when there are none.
func (c *checker) crossed(deficits []deficit, p, q fabric.PortID) (d, e *deficit) {
	joins := func(p fabric.PortID, a, b fabric.NodeID) bool {
		x, y := c.f.Owner(p), c.f.PeerSwitch(p)
		return x == a && y == b || x == b && y == a
	}
	if q == fabric.NoPort {
		return nil, nil
	}
	for k := range deficits {
		for l := range deficits {
			d, e := &deficits[k], &deficits[l]
			if d.n == 0 || e.n == 0 || k == l && d.n < 2 {
				continue
			}
			if joins(p, d.a, e.a) && joins(q, d.b, e.b) || joins(p, d.a, e.b) && joins(q, d.b, e.a) {
				return d, e
			}
		}
	}
	return nil, nil
}

// matchMoved finds cables of which one end is at another switch: a pair lacks one, and
// one of the two has one too many. It takes from both lists what it finds.
func (c *checker) matchMoved(deficits []deficit, surplus []fabric.PortID) {
	f := c.f
	for i, p := range surplus {
		if p == fabric.NoPort {
			continue
		}
		d, at := c.moved(deficits, p)
		if d == nil {
			continue
		}
		d.n--
		missing, ports := d.b, &d.pb
		if f.Owner(at) == d.b {
			missing, ports = d.a, &d.pa
		}
		ends := []verify.Endpoint{verify.EndpointOf(f, at), nodeEndpoint(f, missing, 0), verify.EndpointOf(f, f.Peer(at))}
		if len(*ports) > 0 {
			ends[1] = nodeEndpoint(f, missing, (*ports)[0])
			*ports = (*ports)[1:]
		}
		c.markNamed(at, f.Peer(at))
		c.add(MovedCable, 1, ends, "%s leads to %s and should lead to %s", ends[0], ends[2], ends[1])
		surplus[i] = fabric.NoPort
	}
}

// moved finds a pair that lacks a cable at a switch where the cable of port p ends, and
// that end: the last one in a port that the missing cable needs, else the first.
func (c *checker) moved(deficits []deficit, p fabric.PortID) (d *deficit, at fabric.PortID) {
	for k := range deficits {
		x := &deficits[k]
		for _, end := range []fabric.PortID{p, c.f.Peer(p)} {
			s, own := c.f.Owner(end), x.pa
			if s == x.b {
				own = x.pb
			}
			if x.n == 0 || s != x.a && s != x.b {
				continue
			}
			// The end that stayed is in the port that the missing cable needs.
			fits := slices.Contains(own, c.f.Num(end))
			if d == nil || fits {
				d, at = x, end
			}
			if fits {
				break
			}
		}
	}
	return d, at
}
