package cabling

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

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
		for _, dims := range orders(want.Dims) {
			if s := recognizeGridOf(f, dims); s != nil && s.Kind == want.Kind && s.Parallel == want.Parallel {
				s.countDeviations(f)
				return s
			}
		}
		wrong()
		return nil
	}
	if found.Kind != want.Kind || found.Name != want.Name {
		wrong()
		return nil
	}
	return found
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
