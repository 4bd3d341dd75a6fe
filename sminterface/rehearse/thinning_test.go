package rehearse

import (
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
)

// Paths are thinned by the LIDs that there are, and not by the highest.
func TestThinning(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Hosts: 1}))(t)
	for _, apart := range []fabric.LID{1, 1000} {
		base, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
		last := fabric.LID(0)
		f.EndPorts(func(p fabric.PortID) {
			last += apart
			base[p] = last
		})
		g := short.Must(f.WithLIDs(base, lmc))(t)
		for most, want := range map[int]int{325: 1, 324: 2, 100: 4} {
			if got := thinning(g, most); got != want {
				t.Errorf("LIDs %d apart, at most %d paths: one of %d ports, want %d", apart, most, got, want)
			}
		}
	}
}
