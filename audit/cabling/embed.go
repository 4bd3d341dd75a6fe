package cabling

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
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
	have, want := adjacency(f), adjacency(full)
	own, places := hostsOf(f), hostsOf(full)
	fits := func(s, t fabric.NodeID) bool {
		return len(have[s]) <= len(want[t]) && (!hosts || own[s] <= places[t])
	}

	// The order: from the switch with the most neighbours on, breadth first.
	order := make([]fabric.NodeID, 0, n)
	before := make([]fabric.NodeID, n) // a neighbour that comes earlier
	seen := make([]bool, n)
	byDegree := make([]fabric.NodeID, n)
	for s := range byDegree {
		byDegree[s] = fabric.NodeID(s)
		before[s] = fabric.NoNode
	}
	slices.SortStableFunc(byDegree, func(a, b fabric.NodeID) int { return len(have[b]) - len(have[a]) })
	for _, s := range byDegree {
		if seen[s] {
			continue
		}
		seen[s] = true
		order = append(order, s)
		for i := len(order) - 1; i < len(order); i++ {
			for _, e := range have[order[i]] {
				if !seen[e.to] {
					seen[e.to] = true
					before[e.to] = order[i]
					order = append(order, e.to)
				}
			}
		}
	}

	place := make([]fabric.NodeID, n)
	taken := make([]bool, m)
	for s := range place {
		place[s] = fabric.NoNode
	}
	steps := 0
	var put func(i int) bool
	put = func(i int) bool {
		if i == n {
			return true
		}
		s := order[i]
		try := func(t fabric.NodeID) bool {
			if steps++; steps > maxSteps || taken[t] || !fits(s, t) {
				return false
			}
			for _, e := range have[s] {
				if at := place[e.to]; at != fabric.NoNode && cablesTo(want[t], at) < e.cables {
					return false
				}
			}
			place[s], taken[t] = t, true
			if put(i + 1) {
				return true
			}
			place[s], taken[t] = fabric.NoNode, false
			return false
		}
		if b := before[s]; b != fabric.NoNode {
			for _, e := range want[place[b]] {
				if try(e.to) {
					return true
				}
			}
			return false
		}
		for t := range fabric.NodeID(m) {
			if try(t) {
				return true
			}
		}
		return false
	}
	if !put(0) {
		return nil
	}
	return place
}

// edge is the cables between a switch and another one.
type edge struct {
	to     fabric.NodeID
	cables int
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
	at := make([]fabric.NodeID, full.NumSwitches())
	for t := range at {
		at[t] = fabric.NoNode
	}
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
			a, b := at[t], at[e.to]
			k := e.cables - len(parallel(f, a, b))
			if k <= 0 {
				continue
			}
			s.deficits = append(s.deficits, deficit{a: a, b: b, n: k, pa: likely(f, a, lead, k, free), pb: likely(f, b, lead, k, free)})
		}
	}
	s.Parallel = mode(pairs)
	return s
}

// towardSwitches counts by port number the switches of which the port leads to
// another one, if most have one there.
func towardSwitches(f *fabric.Fabric) []int {
	lead := make([]int, int(fabric.MaxPortNum)+1)
	for sw := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(sw)
		for _, p := range ports {
			lead[f.Num(p)]++
		}
	}
	for num := range lead {
		if 2*lead[num] < f.NumSwitches() {
			lead[num] = 0
		}
	}
	return lead
}

// shufflenet recognizes bidirectional (p, k) shufflenets of at least two columns, k
// p^k switches, with at most an eighth of their cables missing.
func shufflenet(f *fabric.Fabric) *Shape {
	n := f.NumSwitches()
	most := 0
	for _, edges := range adjacency(f) {
		degree := 0
		for _, e := range edges {
			degree += e.cables
		}
		most = max(most, degree)
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

// fit reads f as the shape that is meant. Where it is another one it adds a finding,
// and returns nil when nothing further can be said.
func (m *Meant) fit(f *fabric.Fabric, found *Shape, c *checker) *Shape {
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
		for _, dims := range orders(want.Dims) {
			if s := gridOf(f, dims); s != nil && s.Kind == want.Kind && s.Parallel == want.Parallel {
				s.settle(f)
				return s
			}
		}
		wrong()
		return nil
	}
	s := embedded(f, m.Full, true, want.Kind, want.Name)
	if s == nil {
		wrong()
		return nil
	}
	s.settle(f)
	return s
}

// orders lists the orders of dimensions, the given one first.
func orders(dims []int) [][]int {
	if len(dims) > 5 {
		return [][]int{dims}
	}
	if len(dims) <= 1 {
		return [][]int{slices.Clone(dims)}
	}
	var all [][]int
	for i := range dims {
		rest := slices.Delete(slices.Clone(dims), i, i+1)
		for _, o := range orders(rest) {
			o = append([]int{dims[i]}, o...)
			if !slices.ContainsFunc(all, func(x []int) bool { return slices.Equal(x, o) }) {
				all = append(all, o)
			}
		}
	}
	return all
}
