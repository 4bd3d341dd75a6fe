package mesh

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// cables lists the cables of f, each from its lower port, in the order of
// ports.
func cables(f *fabric.Fabric) []string {
	var lines []string
	for p := range fabric.PortID(f.NumPorts()) {
		if peer := f.Peer(p); peer > p {
			lines = append(lines, f.PortName(p)+" "+f.PortName(peer))
		}
	}
	return lines
}

// TestGenerate has every cable of small meshes, by the port numbers in the
// comment of Generate.
func TestGenerate(t *testing.T) {
	for _, tt := range []struct {
		name string
		spec Spec
		want string
	}{
		{"2x3", Spec{Dims: []int{2, 3}, Hosts: 1}, `
"switch 0,0"[1] "switch 1,0"[3]
"switch 0,0"[2] "switch 0,1"[4]
"switch 0,0"[5] "host 0,0"[1]
"switch 0,1"[1] "switch 1,1"[3]
"switch 0,1"[2] "switch 0,2"[4]
"switch 0,1"[5] "host 0,1"[1]
"switch 0,2"[1] "switch 1,2"[3]
"switch 0,2"[5] "host 0,2"[1]
"switch 1,0"[2] "switch 1,1"[4]
"switch 1,0"[5] "host 1,0"[1]
"switch 1,1"[2] "switch 1,2"[4]
"switch 1,1"[5] "host 1,1"[1]
"switch 1,2"[5] "host 1,2"[1]`},
		{"a line", Spec{Dims: []int{3}, Hosts: 2}, `
"switch 0"[1] "switch 1"[3]
"switch 0"[5] "host 0/0"[1]
"switch 0"[6] "host 0/1"[1]
"switch 1"[1] "switch 2"[3]
"switch 1"[5] "host 1/0"[1]
"switch 1"[6] "host 1/1"[1]
"switch 2"[5] "host 2/0"[1]
"switch 2"[6] "host 2/1"[1]`},
		{"a ring of three, two and one", Spec{Dims: []int{3, 2, 1}, Wrap: []bool{true, true, true}}, `
"switch 0,0,0"[1] "switch 1,0,0"[3]
"switch 0,0,0"[2] "switch 0,1,0"[4]
"switch 0,0,0"[3] "switch 2,0,0"[1]
"switch 0,0,0"[4] "switch 0,1,0"[2]
"switch 0,1,0"[1] "switch 1,1,0"[3]
"switch 0,1,0"[3] "switch 2,1,0"[1]
"switch 1,0,0"[1] "switch 2,0,0"[3]
"switch 1,0,0"[2] "switch 1,1,0"[4]
"switch 1,0,0"[4] "switch 1,1,0"[2]
"switch 1,1,0"[1] "switch 2,1,0"[3]
"switch 2,0,0"[2] "switch 2,1,0"[4]
"switch 2,0,0"[4] "switch 2,1,0"[2]`},
		{"only y wraps", Spec{Dims: []int{2, 3}, Wrap: []bool{false, true}}, `
"switch 0,0"[1] "switch 1,0"[3]
"switch 0,0"[2] "switch 0,1"[4]
"switch 0,0"[4] "switch 0,2"[2]
"switch 0,1"[1] "switch 1,1"[3]
"switch 0,1"[2] "switch 0,2"[4]
"switch 0,2"[1] "switch 1,2"[3]
"switch 1,0"[2] "switch 1,1"[4]
"switch 1,0"[4] "switch 1,2"[2]
"switch 1,1"[2] "switch 1,2"[4]`},
		{"four dimensions", Spec{Dims: []int{1, 1, 2, 2}, Hosts: 1}, `
"switch 0,0,0,0"[5] "switch 0,0,1,0"[6]
"switch 0,0,0,0"[7] "switch 0,0,0,1"[8]
"switch 0,0,0,0"[9] "host 0,0,0,0"[1]
"switch 0,0,0,1"[5] "switch 0,0,1,1"[6]
"switch 0,0,0,1"[9] "host 0,0,0,1"[1]
"switch 0,0,1,0"[7] "switch 0,0,1,1"[8]
"switch 0,0,1,0"[9] "host 0,0,1,0"[1]
"switch 0,0,1,1"[9] "host 0,0,1,1"[1]`},
	} {
		f, err := Generate(tt.spec)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(strings.Split(tt.want[1:], "\n"), cables(f)); diff != "" {
			t.Errorf("%s: cables (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestHypercube has every cable of a cube, by the port numbers in the comment
// of Hypercube.
func TestHypercube(t *testing.T) {
	f := short.Must(Hypercube(3, 1))(t)
	want := `
"switch 0,0,0"[1] "switch 1,0,0"[1]
"switch 0,0,0"[2] "switch 0,1,0"[2]
"switch 0,0,0"[3] "switch 0,0,1"[3]
"switch 0,0,0"[4] "host 0,0,0"[1]
"switch 0,0,1"[1] "switch 1,0,1"[1]
"switch 0,0,1"[2] "switch 0,1,1"[2]
"switch 0,0,1"[4] "host 0,0,1"[1]
"switch 0,1,0"[1] "switch 1,1,0"[1]
"switch 0,1,0"[3] "switch 0,1,1"[3]
"switch 0,1,0"[4] "host 0,1,0"[1]
"switch 0,1,1"[1] "switch 1,1,1"[1]
"switch 0,1,1"[4] "host 0,1,1"[1]
"switch 1,0,0"[2] "switch 1,1,0"[2]
"switch 1,0,0"[3] "switch 1,0,1"[3]
"switch 1,0,0"[4] "host 1,0,0"[1]
"switch 1,0,1"[2] "switch 1,1,1"[2]
"switch 1,0,1"[4] "host 1,0,1"[1]
"switch 1,1,0"[3] "switch 1,1,1"[3]
"switch 1,1,0"[4] "host 1,1,0"[1]
"switch 1,1,1"[4] "host 1,1,1"[1]`
	if diff := cmp.Diff(strings.Split(want[1:], "\n"), cables(f)); diff != "" {
		t.Errorf("cables (-want +got):\n%s", diff)
	}
}
