package cabling

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/internal/graph"
)

// maxSteps bounds the search of embed.
const maxSteps = 1 << 20

// embed finds for each switch of f one of full, such that every cable between
// switches of f has its own one in full; nil when there is none, or when it is not
// found in maxSteps steps. Switches with cables come one after the other along
// cables, so that the place of most follows from those before.
//
// hosts says that a switch of f must not have more hosts than its place.
func embed(f, full *fabric.Fabric, hosts bool) []fabric.NodeID {
	n, m := f.NumSwitches(), full.NumSwitches()
	if n > m || m > 1<<12 {
		return nil
	}
	have, want, byDegree := adjacency(f), adjacency(full), firstNodes(n)
	slices.SortStableFunc(byDegree, func(a, b fabric.NodeID) int { return len(have[b]) - len(have[a]) })
	search := graph.NewSearch[fabric.NodeID](n)
	for _, s := range byDegree {
		search.Extend(func(s fabric.NodeID) []fabric.NodeID { return neighbors(have[s]) }, s)
	}
	on, room := levels.Hosts(f), levels.Hosts(full)
	place, taken := slices.Repeat([]fabric.NodeID{fabric.NoNode}, n), make([]bool, m)
	steps := 0
	// assignFrom finds switches of full for those of the search's order from the i-th on.
	var assignFrom func(i int) bool
	assignFrom = func(i int) bool {
		if i == n {
			return true
		}
		s := search.Order[i]
		candidates := firstNodes(m)
		if before := search.From[s]; before != fabric.NoNode {
			candidates = neighbors(want[place[before]])
		}
		for _, t := range candidates {
			if steps++; steps > maxSteps || taken[t] || len(have[s]) > len(want[t]) || hosts && on[s] > room[t] {
				continue
			}
			if slices.ContainsFunc(have[s], func(x edge) bool { return place[x.to] != fabric.NoNode && cablesTo(want[t], place[x.to]) < x.cables }) {
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

// firstNodes lists n nodes from the first one on.
func firstNodes(n int) []fabric.NodeID {
	list := make([]fabric.NodeID, n)
	for i := range list {
		list[i] = fabric.NodeID(i)
	}
	return list
}

// edge is the cables between a switch and another one.
type edge struct {
	to     fabric.NodeID
	cables int
}

// neighbors lists the switches that edges lead to.
func neighbors(edges []edge) []fabric.NodeID {
	list := make([]fabric.NodeID, len(edges))
	for i, e := range edges {
		list[i] = e.to
	}
	return list
}

// adjacency is by switch its neighbours, by NodeID.
func adjacency(f *fabric.Fabric) [][]edge {
	list := make([][]edge, f.NumSwitches())
	for s := range fabric.NodeID(f.NumSwitches()) {
		_, to := f.SwitchLinks(s)
		to = slices.Clone(to)
		slices.Sort(to)
		for i, t := range to {
			if i > 0 && to[i-1] == t {
				list[s][len(list[s])-1].cables++
			} else {
				list[s] = append(list[s], edge{t, 1})
			}
		}
	}
	return list
}

func cablesTo(edges []edge, to fabric.NodeID) int {
	i, ok := slices.BinarySearchFunc(edges, to, func(e edge, t fabric.NodeID) int { return int(e.to) - int(t) })
	if !ok {
		return 0
	}
	return edges[i].cables
}

// embedded makes a shape of f as a part of full: what full has and f has not is
// missing. Ports are free ones by which most switches lead to others.
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
	for t, edges := range adjacency(full) {
		if at[t] == fabric.NoNode {
			h := hole{name: full.Name(fabric.NodeID(t)).String()}
			for _, e := range edges {
				if sw := at[e.to]; sw != fabric.NoNode {
					for _, num := range likely(f, sw, lead, e.cables, free) {
						h.ports = append(h.ports, f.Port(sw, num))
					}
				}
			}
			s.holes = append(s.holes, h)
			continue
		}
		for _, e := range edges {
			if e.to < fabric.NodeID(t) || at[e.to] == fabric.NoNode {
				continue
			}
			pairs = append(pairs, e.cables)
			s.Cables += e.cables
			if k := e.cables - len(parallel(f, at[t], at[e.to])); k > 0 {
				s.addDeficit(f, free, k, at[t], at[e.to], lead, lead)
			}
		}
	}
	s.Parallel = mode(pairs)
	return s
}

// towardSwitches counts by port number the switches of which the port leads to
// another one, if most have one there.
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

// recognizeShufflenet recognizes bidirectional (p, k) shufflenets of at least two columns, k
// p^k switches, with at most an eighth of their cables missing.
func recognizeShufflenet(f *fabric.Fabric) *Shape {
	n := f.NumSwitches()
	most := 0
	for sw := range fabric.NodeID(n) {
		ports, _ := f.SwitchLinks(sw)
		most = max(most, len(ports))
	}
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
	Full *fabric.Fabric // such a fabric, nothing missing
}

// fitShape reads f as the shape that is meant. Where it is another one it adds a finding,
// and returns nil when nothing further can be said.
func (m *Meant) fitShape(f *fabric.Fabric, found *Shape, c *checker) *Shape {
	want := Recognize(m.Full)
	wrong := func() {
		c.add(WrongShape, f.NumSwitches(), nil, "the policy wants %s: %s; this is %s", m.Name, want.Name, found.Name)
	}
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
		s := recognizeGridOf(f, want.Dims)
		if s == nil && slices.Equal(sorted(found.Dims), sorted(want.Dims)) { // in another order
			s = found
		}
		if s == nil || s.Kind != want.Kind || s.Parallel != want.Parallel {
			wrong()
			return nil
		}
		s.countDeviations(f)
		return s
	}
	s := embedded(f, m.Full, true, want.Kind, want.Name)
	if s == nil {
		wrong()
		return nil
	}
	s.countDeviations(f)
	return s
}

// sorted returns the dimensions of a grid in ascending order.
func sorted(dims []int) []int { return slices.Sorted(slices.Values(dims)) }
