package compile_test

import (
	"errors"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/verify"
)

// Sound fabrics, with few hosts too, have no warning of idle cables by any engine.
func TestNoIdleWarnings(t *testing.T) {
	list := make(map[string]*fabric.Fabric)
	add := func(name string) func(f *fabric.Fabric, err error) {
		return func(f *fabric.Fabric, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			list[name] = f
		}
	}
	for name, s := range map[string]gen.FatTreeSpec{
		"tree": {Radix: 8, Levels: 2}, "tree of three levels": {Radix: 8, Levels: 3}, "a host on a leaf": {Radix: 16, Levels: 2, HostsPerLeaf: 1},
		"two hosts on a leaf": {Radix: 24, Levels: 2, HostsPerLeaf: 2}, "a host on a leaf of three levels": {Radix: 8, Levels: 3, HostsPerLeaf: 1},
	} {
		add(name)(gen.FatTree(s))
	}
	add("mesh")(mesh.Generate(mesh.Spec{Dims: []int{5, 4}, Hosts: 1}))
	add("torus")(mesh.Generate(mesh.Spec{Dims: []int{5, 4}, Wrap: []bool{true, true}, Hosts: 1}))
	add("small torus")(mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Wrap: []bool{true, true}, Hosts: 2}))
	add("hypercube")(mesh.Hypercube(5, 1))
	add("shufflenet")(gen.Shufflenet(2, 3))
	add("banyan")(banyan.Banyan(3, true))
	add("irregular")(gen.Irregular(gen.IrregularSpec{Switches: 20, Degree: 4, Hosts: 30, Seed: 3}))
	ran := 0
	for _, name := range short.Keys(list, "a host on a leaf of three levels", "torus", "banyan", "irregular") {
		f := list[name]
		for i := range compile.Engines {
			e := &compile.Engines[i]
			r, err := compile.Run(t.Context(), f, e, compile.Options{LIDs: lft.LIDOptions{Policy: lft.DenseLIDs}})
			var domain *lft.DomainError
			if errors.As(err, &domain) {
				continue
			}
			if err != nil {
				t.Fatalf("%s by %s: %v", name, e.Name(), err)
			}
			ran++
			for _, x := range r.Verify.Findings {
				if x.Rule == verify.IdleLinks && x.Severity > verify.Note {
					t.Errorf("%s by %s: %s", name, e.Name(), x.Message)
				}
			}
		}
	}
	if ran < short.Of(40, 20) {
		t.Errorf("%d routings only", ran)
	}
}
