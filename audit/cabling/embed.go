package cabling

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// maxSteps bounds the search of embed.
const maxSteps = 1 << 20

// embed maps the switches of f to different switches of full, such that each
// cable between switches of f has one of its own in full. It returns nil if
// there is no such map, or none is found in maxSteps steps. It follows cables:
// most switches can only be placed next to one that has its place.
//
// If hosts is set, a switch of f must not have more hosts than its place in full.
func embed(f, full *fabric.Fabric, hosts bool) []fabric.NodeID {
	n, m := f.NumSwitches(), full.NumSwitches()
	if n > m || m > 1<<12 {
		return nil
	}
	have, want, byDegree, all := adjacency(f), adjacency(full), f.Switches(), full.Switches()
	slices.SortStableFunc(byDegree, func(a, b fabric.NodeID) int { return len(have[b]) - len(have[a]) })
	search := graph.NewSearch[fabric.NodeID](n)
	for _, s := range byDegree {
		search.Extend(func(s fabric.NodeID) []fabric.NodeID { return have[s] }, s)
	}
	on, room := levels.Hosts(f), levels.Hosts(full)
	place, taken := slices.Repeat([]fabric.NodeID{fabric.NoNode}, n), make([]bool, m)
	steps := 0
	// assignFrom places the switches of the search's order from the i-th on; false if it cannot.
	var assignFrom func(i int) bool
	assignFrom = func(i int) bool {
		if i == n {
			return true
		}
		s := search.Order[i]
		candidates := all
		if before := search.From[s]; before != fabric.NoNode {
			candidates = want[place[before]]
		}
		for _, t := range candidates {
			if steps++; steps > maxSteps || taken[t] || len(have[s]) > len(want[t]) || hosts && on[s] > room[t] {
				continue
			}
			if slices.ContainsFunc(have[s], func(x fabric.NodeID) bool {
				return place[x] != fabric.NoNode && len(full.LinksBetween(t, place[x])) < len(f.LinksBetween(s, x))
			}) {
				continue
			}
			place[s], taken[t] = t, true
			if assignFrom(i + 1) {
				return true
			}
			place[s], taken[t] = fabric.NoNode, false
		}
		return false
	}
	if !assignFrom(0) {
		return nil
	}
	return place
}

// adjacency returns for each switch its neighbouring switches, each once, in ascending order.
func adjacency(f *fabric.Fabric) [][]fabric.NodeID {
	return text.Each(f.Switches(), func(s fabric.NodeID) []fabric.NodeID {
		return slices.Compact(slices.Sorted(slices.Values(f.Neighbors(s))))
	})
}

// embedded returns the shape of f as a part of full, nil if f is no part. What
// full has and f lacks is missing. It guesses a missing cable in free ports
// whose numbers lead to switches on half of the switches or more.
func embedded(f, full *fabric.Fabric, hosts bool, kind, name string) *Shape {
	place := embed(f, full, hosts)
	if place == nil {
		return nil
	}
	s := &Shape{Kind: kind, Name: name}
	at := slices.Repeat([]fabric.NodeID{fabric.NoNode}, full.NumSwitches())
	for sw, t := range place {
		at[t] = fabric.NodeID(sw)
	}
	free := freePorts(f, nil)
	lead := towardSwitches(f)
	var pairs []int
	for t, near := range adjacency(full) {
		h := hole{name: full.Name(fabric.NodeID(t)).String()}
		for _, to := range near {
			cables := len(full.LinksBetween(fabric.NodeID(t), to))
			switch sw := at[to]; {
			case sw == fabric.NoNode:
			case at[t] == fabric.NoNode:
				h.ports = append(h.ports, likely(f, sw, lead, cables, free)...)
			case fabric.NodeID(t) < to:
				pairs = append(pairs, cables)
				s.Cables += cables
				if k := cables - len(f.LinksBetween(at[t], sw)); k > 0 {
					s.addDeficit(f, free, k, at[t], sw, lead, lead)
				}
			}
		}
		if at[t] == fabric.NoNode {
			s.holes = append(s.holes, h)
		}
	}
	s.Parallel = mode(pairs)
	return s
}

// towardSwitches counts by port number the switches on which the port leads to a switch; a count
// below half of all switches is set to 0.
func towardSwitches(f *fabric.Fabric) []int {
	lead := make([]int, int(fabric.MaxPortNum)+1)
	for _, p := range f.Channels() {
		lead[f.Num(p)]++
	}
	for num := range lead {
		if 2*lead[num] < f.NumSwitches() {
			lead[num] = 0
		}
	}
	return lead
}

// recognizeShufflenet recognizes bidirectional (p, k) shufflenets, which have k columns of p^k
// switches; k is at least 2, and at most an eighth of the cables may be missing.
func recognizeShufflenet(f *fabric.Fabric) *Shape {
	n, most := f.NumSwitches(), slices.Max(degrees(f))
	for p := 2; 2*p <= most+1; p++ {
		for k, column := 2, p*p; k*column <= n; k, column = k+1, column*p {
			if k*column != n || 2*p < most {
				continue
			}
			full, err := gen.Shufflenet(p, k)
			if err != nil || 8*(switchCables(full)-switchCables(f)) > switchCables(full) {
				continue
			}
			name := fmt.Sprintf("(%d, %d) shufflenet: %d columns of %d switches", p, k, k, column)
			if s := embedded(f, full, false, Shufflenet, name); s != nil {
				return s
			}
		}
	}
	return nil
}

// Meant is the shape that a fabric should have.
type Meant struct {
	Name string         // as the operator wrote it
	Full *fabric.Fabric // a complete fabric of this shape
}

// fitShape reads f as the meant shape and returns that. If f has another shape it adds a finding,
// and returns nil if nothing further can be said.
func (m *Meant) fitShape(f *fabric.Fabric, found *Shape, c *checker) *Shape {
	want := Recognize(m.Full)
	wrong := func() {
		c.add(WrongShape, f.NumSwitches(), nil, "the policy wants %s: %s; this is %s", m.Name, want.Name, found.Name)
	}
	var s *Shape
	switch want.Kind {
	case FatTree:
		if found.Kind != FatTree {
			wrong()
			return nil
		}
		if !slices.Equal(found.Levels, want.Levels) || found.Parallel != want.Parallel {
			wrong()
		}
		return found
	case Mesh, Torus, MixedGrid, Hypercube, Ring, Line:
		sorted := func(dims []int) []int { return slices.Sorted(slices.Values(dims)) }
		s = recognizeGrid(f, want.Dims)
		if s == nil && slices.Equal(sorted(found.Dims), sorted(want.Dims)) { // Dims in another order
			s = found
		}
		if s != nil && (s.Kind != want.Kind || s.Parallel != want.Parallel) {
			s = nil
		}
	default:
		s = embedded(f, m.Full, true, want.Kind, want.Name)
	}
	if s == nil {
		wrong()
		return nil
	}
	s.countDeviations(f)
	return s
}
