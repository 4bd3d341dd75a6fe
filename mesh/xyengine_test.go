package mesh

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// TestEngines routes fabrics without given coordinates: paths are the
// shortest there are, and no cycle exists.
func TestEngines(t *testing.T) {
	for name, shape := range shapes() {
		g := grow(t, shape)
		engines := []lft.Engine{XY{}}
		if !slices.Contains(g.Wrap, true) {
			engines = append(engines, NegativeFirst, WestFirst, NorthLast)
		}
		for _, e := range engines {
			t.Run(name+"/"+e.Name(), func(t *testing.T) {
				f := g.Fabric
				r := short.Must(e.Route(t.Context(), f, lft.Options{}))(t)
				if r.Engine != e.Name() || r.Fabric != f {
					t.Errorf("engine %q", r.Engine)
				}
				for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
					dest, _ := delivery(f, f.LIDPort(lid))
					if dest == fabric.NoNode {
						continue
					}
					for s := range fabric.NodeID(f.NumSwitches()) {
						ports, ok := walk(t, r, s, lid)
						if want := int(f.Distances().To(dest)[s]) + 1; !ok || len(ports) != want {
							t.Fatalf("switch %d to LID %d: arrives %v after %d switches, want %d", s, lid, ok, len(ports), want)
						}
					}
				}
				if waitInCycle(t, r) {
					t.Error("channels wait for each other in a cycle")
				}
			})
		}
	}
}

// TestEnginesRefuse has fabrics that are no grids, grids that some engines do not
// route, and origins that no grid has.
func TestEnginesRefuse(t *testing.T) {
	must := func(f *fabric.Fabric, err error) *fabric.Fabric {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	}
	tree := must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}))
	torus := must(Generate(Spec{Dims: []int{4, 5}, Wrap: []bool{true, true}, Hosts: 1}))
	mesh := must(Generate(Spec{Dims: []int{4, 5}, Hosts: 1}))
	for _, e := range []lft.Engine{XY{}, NegativeFirst, WestFirst, NorthLast} {
		_, isXY := e.(XY)
		for _, tt := range []struct {
			name   string
			f      *fabric.Fabric
			opt    lft.Options
			refuse bool
		}{
			{"fat tree", tree, lft.Options{}, true},
			{"torus", torus, lft.Options{}, !isXY},
			{"torus, no wrap", torus, lft.Options{NoWrap: true}, false},
			{"origin", mesh, lft.Options{Origin: mesh.Node(0).GUID}, false},
			{"origin in the middle", mesh, lft.Options{Origin: mesh.Node(6).GUID}, true},
			{"origin nowhere", mesh, lft.Options{Origin: 12345}, true},
			{"dims", mesh, lft.Options{Dims: []int{5, 4}}, false},
			{"other dims", mesh, lft.Options{Dims: []int{2, 10}}, true},
		} {
			r, err := e.Route(t.Context(), tt.f, tt.opt)
			var domain *lft.DomainError
			if refused := errors.As(err, &domain); refused != tt.refuse || refused && (r != nil || domain.Engine != e.Name()) || !refused && err != nil {
				t.Errorf("%s, %s: %v; refuse: %v", e.Name(), tt.name, err, tt.refuse)
			}
		}
	}
}

// TestOriginAndDims has the origin and the order of dimensions decide about
// the first dimension, and so about the paths.
func TestOriginAndDims(t *testing.T) {
	g := generated(t, Spec{Dims: []int{4, 5}, Hosts: 1}, lft.LIDOptions{})
	f := g.Fabric
	for _, tt := range []struct {
		dims  []int
		first int // the generator's dimension that paths go along first
	}{{[]int{4, 5}, 0}, {[]int{5, 4}, 1}} {
		for _, corner := range []int{0, 4, 15, 19} {
			r, err := XY{}.Route(t.Context(), f, lft.Options{Origin: f.Node(g.At(corner)).GUID, Dims: tt.dims})
			if err != nil {
				t.Fatal(err)
			}
			want := routed(t, g, lft.Options{})
			if tt.first == 1 {
				p := newPaths(g, false, dimensionOrder(2, true))
				if want.Tables, _, err = p.tables(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for s := range fabric.NodeID(f.NumSwitches()) {
				if !slices.Equal(r.Tables.Row(s), want.Tables.Row(s)) {
					t.Fatalf("%s, origin %d: other tables", fmt.Sprint(tt.dims), corner)
				}
			}
		}
	}
}
