// Package fabrictest generates fabrics for tests and routes them as compile does. It is for
// external tests of the packages that compile imports. It makes no promise to other modules.
package fabrictest

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

// FatTree generates a full tree of switches with radix ports.
func FatTree(t short.TB, radix, levels int) *fabric.Fabric {
	t.Helper()
	return short.Must(gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: levels}))(t)
}

// Grid generates a mesh, or a torus if wrap is true, with hosts on each switch.
func Grid(t short.TB, hosts int, wrap bool, dims ...int) *fabric.Fabric {
	t.Helper()
	return short.Must(mesh.Generate(mesh.Spec{Dims: dims, Wrap: slices.Repeat([]bool{wrap}, len(dims)), Hosts: hosts}))(t)
}

// WithLIDs gives all end ports the lowest LIDs that their LMC allows.
func WithLIDs(t short.TB, f *fabric.Fabric, lmc int) *fabric.Fabric {
	t.Helper()
	return short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: lmc}))(t)
}

// Compile routes a fabric with the engine of this name, and verifies the tables.
func Compile(t short.TB, f *fabric.Fabric, engine string, opt compile.Options) *compile.Result {
	t.Helper()
	e := short.Must(compile.EngineByName(engine))(t)
	return short.Must(compile.Run(context.Background(), f, e, opt))(t)
}
