package lft

import (
	"context"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// Minhop routes along shortest paths in the switch graph and spreads LIDs
// over equal ports. It routes every fabric whose switches are less than
// fabric.MaxHops links apart, and promises nothing about credit loops.
//
// Unlike OpenSM's minhop (osm_ucast_mgr.c), which counts for each switch by
// itself how many LIDs a port has, it counts the routes of the whole fabric.
type Minhop struct{}

// Name is "minhop".
func (Minhop) Name() string { return "minhop" }

// Guarantee is Reachable and Minimal.
func (Minhop) Guarantee() Guarantee { return Reachable | Minimal }

// Route takes O(switches x channels + switches x LIDs x parallel ports).
func (Minhop) Route(ctx context.Context, f *fabric.Fabric, _ Options) (*Routing, error) {
	dist := f.Distances()
	if dist.TooLong() {
		return nil, &DomainError{Engine: "minhop", Reason: fmt.Sprintf("two switches are %d links or more apart", fabric.MaxHops)}
	}
	s := NewSpread(f)
	err := s.Run(ctx, func() func(fabric.NodeID, *Placer) {
		var ports []fabric.PortID
		sorter := NewByDistance(f.NumSwitches())
		return func(t fabric.NodeID, p *Placer) {
			to := dist.To(t)
			single := p.Single()
			for _, u := range sorter.FarthestFirst(to) {
				channels, next := f.SwitchLinks(u)
				ports = ports[:0]
				start := p.Turn() % len(next)
				for i := range next {
					if i += start; i >= len(next) {
						i -= len(next)
					}
					if to[next[i]]+1 == to[u] {
						ports = append(ports, channels[i])
						if single {
							break
						}
					}
				}
				p.Place(u, ports)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return &Routing{Engine: "minhop", Fabric: f, Tables: s.Tables()}, nil
}

// ByDistance sorts switches by their distance to a destination, again and
// again without allocating.
type ByDistance struct {
	sorted []fabric.NodeID
}

// NewByDistance is for fabrics of n switches.
func NewByDistance(n int) *ByDistance { return &ByDistance{sorted: make([]fabric.NodeID, n)} }

// FarthestFirst lists the switches with a distance from 1 to 254, the
// greatest first, equal ones by NodeID. The list is good until the next call.
func (b *ByDistance) FarthestFirst(dist []uint8) []fabric.NodeID {
	var start [257]int32 // start[d]: where distance 255-d begins
	for _, d := range dist {
		start[255-int(d)+1]++
	}
	first := start[1] // after the unreachable ones, at distance 255
	for d := 1; d < len(start); d++ {
		start[d] += start[d-1]
	}
	for u, d := range dist {
		at := &start[255-int(d)]
		b.sorted[*at] = fabric.NodeID(u)
		*at++
	}
	return b.sorted[first : len(dist)-zeros(dist)]
}

func zeros(dist []uint8) int {
	n := 0
	for _, d := range dist {
		if d == 0 {
			n++
		}
	}
	return n
}
