package lft

import "github.com/ibweave/ibweave/fabric"

// NextHops are the output ports that an engine allows towards one destination switch. The
// paths over them have no loop.
type NextHops struct {
	// Switches lists the switches that reach the destination, without it. Each comes before
	// the switches that its ports lead to.
	Switches []fabric.NodeID
	parts    []part // by index in Switches: its part of ports; switches of AddAlike share one
	ports    []fabric.PortNum
}

// part is a range of a list.
type part struct{ from, end int32 }

// ListNextHops lists the next hops to switch t in h, which must be empty. For the same t it
// always lists the same. It is for one goroutine at a time.
type ListNextHops func(t fabric.NodeID, h *NextHops) error

// Add appends a switch with its ports, at least one. It copies them.
func (h *NextHops) Add(s fabric.NodeID, ports ...fabric.PortNum) {
	from := int32(len(h.ports))
	h.Switches = append(h.Switches, s)
	h.ports = append(h.ports, ports...)
	h.parts = append(h.parts, part{from, int32(len(h.ports))})
}

// AddAlike appends switches with the same ports as the last one, which must lead to the
// same switches.
func (h *NextHops) AddAlike(list ...fabric.NodeID) {
	h.Switches = append(h.Switches, list...)
	for range list {
		h.parts = append(h.parts, h.parts[len(h.parts)-1])
	}
}

// isAlike returns true if AddAlike added the i-th switch.
func (h *NextHops) isAlike(i int) bool { return i > 0 && h.parts[i] == h.parts[i-1] }

// Ports returns the ports of the i-th switch.
func (h *NextHops) Ports(i int) []fabric.PortNum { return h.ports[h.parts[i].from:h.parts[i].end] }

// find returns the index of a port among those of the i-th switch, noChoice if it is not
// allowed.
func (h *NextHops) find(i int, num fabric.PortNum) uint8 {
	for k, port := range h.Ports(i) {
		if port == num {
			return uint8(k)
		}
	}
	return noChoice
}

// Reset empties h.
func (h *NextHops) Reset() { h.Switches, h.parts, h.ports = h.Switches[:0], h.parts[:0], h.ports[:0] }

// ShortestNextHops lists all ports that lead nearer to the destination.
func ShortestNextHops(f *fabric.Fabric) ListNextHops {
	dist := f.Distances()
	sort := NewByDistance(f.Switches())
	var nearer []fabric.PortNum
	return func(t fabric.NodeID, h *NextHops) error {
		to := dist.To(t)
		for _, s := range sort.FarthestFirst(to) {
			ports, next := f.SwitchLinks(s)
			nearer = nearer[:0]
			for i, v := range next {
				if to[v]+1 == to[s] {
					nearer = append(nearer, fabric.PortNum(ports[i]-f.PortBase(s)))
				}
			}
			h.Add(s, nearer...)
		}
		return nil
	}
}

// ByDistance sorts switches by their distance to a destination. It does not allocate.
type ByDistance struct {
	list   []fabric.NodeID
	sorted []fabric.NodeID
}

// NewByDistance sorts the switches of list, which it keeps.
func NewByDistance(list []fabric.NodeID) *ByDistance {
	return &ByDistance{list: list, sorted: make([]fabric.NodeID, len(list))}
}

// FarthestFirst lists the switches with a distance from 1 to MaxHops, the greatest first,
// equal ones as in the list of NewByDistance. The next call overwrites the result.
func (b *ByDistance) FarthestFirst(dist []uint8) []fabric.NodeID {
	var start [257]int32 // start[i]: next place for distance 255-i
	for from := 0; from < len(dist); {
		d, end := dist[from], from+1
		for end < len(dist) && dist[end] == d {
			end++
		}
		start[256-int(d)] += int32(end - from)
		from = end
	}
	unreachable, end := start[1], int32(len(dist))-start[256]
	for i := 1; i < len(start); i++ {
		start[i] += start[i-1]
	}
	last, at := fabric.Unreachable, start[0]
	for _, u := range b.list {
		if d := dist[u]; d != last {
			start[255-int(last)], at, last = at, start[255-int(d)], d
		}
		b.sorted[at] = u
		at++
	}
	return b.sorted[unreachable:end]
}
