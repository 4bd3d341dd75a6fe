package mesh

import (
	"testing"
	"time"

	"github.com/ibweave/ibweave/fabric"
)

// TestDetectGenerated: the coordinates and directions of whole generated
// fabrics are the generator's.
func TestDetectGenerated(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{Dims: []int{4, 4}, Hosts: 1}, "4x4 mesh"},
		{Spec{Dims: []int{4, 4}, Hosts: 1, Wrap: []bool{true, true}}, "4x4 torus"},
		{Spec{Dims: []int{128, 128}, Hosts: 0, Wrap: []bool{true, true}}, "128x128 torus"},
		{Spec{Dims: []int{128, 128}, Hosts: 0}, "128x128 mesh"},
		{Spec{Dims: []int{7, 7, 7, 7, 7}, Hosts: 0}, "7x7x7x7x7 mesh"},
		{Spec{Dims: []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, Hosts: 0}, "15-cube"},
		{Spec{Dims: []int{3, 4, 5}, Hosts: 1, Wrap: []bool{true, true, true}}, "3x4x5 torus"},
		{Spec{Dims: []int{9}, Wrap: []bool{true}}, "ring of 9"},
		{Spec{Dims: []int{1}}, "single switch"},
	} {
		f, err := Generate(tt.spec)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		g, err := Detect(f, DetectOptions{})
		if err != nil {
			t.Errorf("%s: %v", tt.want, err)
			continue
		}
		t.Log(tt.want, time.Since(start))
		if g.String() != tt.want {
			t.Errorf("%s: detected a %s", tt.want, g)
		}
		for s := range fabric.NodeID(f.NumSwitches()) {
			if g.Position(s) != int(s) {
				t.Fatalf("%s: %q is at %v", tt.want, f.Node(s).Description, g.Coord(s))
			}
		}
	}
}
