package lft

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// refiner places LIDs again, one at a time, each against the load of all
// others, and looks at the whole path: it adds up for each path to the
// destination by how much the fourth power of the loads on it would grow, so
// that the most loaded channels count most. Work for each LID is
// O(equal ports, times the equal ports of the next switch).
type refiner struct {
	s      *Balancer
	p      *Placement // has the ports
	index  []int32    // by NodeID: its place in p.order, -1 for none
	weight []uint64
	was    []uint64
	ahead  []float64 // by NodeID: growth on the path to the destination
}

func newRefiner(s *Balancer, p *Placement) *refiner {
	n := s.fab.NumSwitches()
	return &refiner{
		s:      s,
		p:      p,
		index:  make([]int32, n),
		weight: make([]uint64, n),
		was:    make([]uint64, n),
		ahead:  make([]float64, n),
	}
}

// startDestination reads the ports of a destination from p.
func (r *refiner) startDestination() {
	for u := range r.index {
		r.index[u] = -1
	}
	for i, u := range r.p.order {
		r.index[u] = int32(i)
	}
}

// portsOf is the ports that a switch may use; none for the destination.
func (r *refiner) portsOf(u fabric.NodeID) []fabric.PortID {
	i := r.index[u]
	if i < 0 {
		return nil
	}
	return r.p.ports[i]
}

// fourthPowerGrowth is how much the fourth power of a load grows with more. The
// conversions keep the compiler from fusing a multiplication with an addition,
// which would make the result depend on the processor.
func fourthPowerGrowth(load, more uint64) float64 {
	a, b := float64(load), float64(load+more)
	a, b = float64(a*a), float64(b*b)
	return float64(b*b) - float64(a*a)
}

// replaceLID places one LID again.
func (r *refiner) replaceLID(lid fabric.LID) {
	s := r.s
	for u, h := range s.hosts {
		r.was[u] = uint64(h)
		r.weight[u] = uint64(h)
	}
	for _, u := range r.p.order {
		if w := r.was[u]; w > 0 {
			c := s.fab.Port(u, s.tables.Row(u)[lid])
			s.load[c] -= w * s.unit[c]
			r.was[s.to[c]] += w
		}
	}
	for _, u := range slices.Backward(r.p.order) {
		w := max(1, uint64(s.hosts[u]))
		least := -1.0
		for _, c := range r.portsOf(u) {
			if g := fourthPowerGrowth(s.load[c], w*s.unit[c]) + r.growthFrom(s.to[c]); least < 0 || g < least {
				least = g
			}
		}
		r.ahead[u] = least
	}
	for _, u := range r.p.order {
		w := r.weight[u]
		if w == 0 {
			continue
		}
		ports := r.portsOf(u)
		best := ports[0]
		if len(ports) > 1 {
			least := -1.0
			for _, c := range ports {
				if g := fourthPowerGrowth(s.load[c], w*s.unit[c]) + r.growthBeyond(s.to[c], w); least < 0 || g < least {
					best, least = c, g
				}
			}
		}
		s.tables.Row(u)[lid] = s.num[best]
		s.load[best] += w * s.unit[best]
		r.weight[s.to[best]] += w
	}
}

// growthFrom is the growth on the path from switch v on; 0 for the destination.
func (r *refiner) growthFrom(v fabric.NodeID) float64 {
	if r.index[v] < 0 {
		return 0
	}
	return r.ahead[v]
}

// growthBeyond is the growth from switch v on when w more sources come to it.
func (r *refiner) growthBeyond(v fabric.NodeID, w uint64) float64 {
	s := r.s
	least := -1.0
	for _, c := range r.portsOf(v) {
		there := r.weight[v] * s.unit[c]
		if g := fourthPowerGrowth(s.load[c]+there, w*s.unit[c]) + r.growthFrom(s.to[c]); least < 0 || g < least {
			least = g
		}
	}
	return max(least, 0)
}
