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
func (e Minhop) Route(ctx context.Context, f *fabric.Fabric, opt Options) (*Routing, error) {
	if opt.Previous != nil {
		if r, ok := Reroute(e, opt.Previous, f); ok {
			return r, nil
		}
	}
	dist := f.Distances()
	if dist.TooLong() {
		return nil, &DomainError{Engine: "minhop", Reason: fmt.Sprintf("two switches are %d links or more apart", fabric.MaxHops)}
	}
	s := NewBalancer(f, EquivalentSwitches(f))
	err := s.Run(ctx, func() func(fabric.NodeID, *Placement) {
		var ports []fabric.PortID
		sorter := NewByDistance(s.Near())
		return func(t fabric.NodeID, p *Placement) {
			to := dist.To(t)
			ports = ports[:0]
			for _, u := range sorter.FarthestFirst(to) {
				channels, next := f.SwitchLinks(u)
				from := len(ports)
				start := 0
				if p.Single() {
					start = p.Turn() % len(next)
				}
				for i := range next {
					if i += start; i >= len(next) {
						i -= len(next)
					}
					if to[next[i]]+1 != to[u] {
						continue
					}
					ports = append(ports, channels[i])
					if p.Single() {
						break
					}
				}
				p.Place(u, ports[from:len(ports):len(ports)])
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return &Routing{Engine: "minhop", Fabric: f, Tables: s.Tables()}, nil
}

var _ IncrementalEngine = Minhop{}

// KeepOrder is nil: any shortest path will do.
func (Minhop) KeepOrder(*fabric.Fabric, []int32) []int32 { return nil }

// ByDistance sorts switches by their distance to a destination, again and
// again without allocating.
type ByDistance struct {
	list   []fabric.NodeID
	sorted []fabric.NodeID
}

// NewByDistance is for the switches of list, which it keeps.
func NewByDistance(list []fabric.NodeID) *ByDistance {
	return &ByDistance{list: list, sorted: make([]fabric.NodeID, len(list))}
}

// FarthestFirst lists the switches with a distance from 1 to MaxHops, the
// greatest first, equal ones as in the list of NewByDistance. The result is
// good until the next call.
func (b *ByDistance) FarthestFirst(dist []uint8) []fabric.NodeID {
	var start [257]int32 // start[i]: where distance 255-i begins, then goes on
	for _, d := range dist {
		start[256-int(d)]++
	}
	unreachable, end := start[1], int32(len(dist))-start[256]
	for i := 1; i < len(start); i++ {
		start[i] += start[i-1]
	}
	for _, u := range b.list {
		at := &start[255-int(dist[u])]
		b.sorted[*at] = u
		*at++
	}
	return b.sorted[unreachable:end]
}
