package gen_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
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

func TestFour(t *testing.T) {
	f := short.Must(gen.Myrinet4())(t)
	want := `
"switch 0"[1] "switch 1"[2]
"switch 0"[2] "switch 3"[1]
"switch 0"[3] "host 0"[1]
"switch 0"[4] "host 1"[1]
"switch 1"[1] "switch 2"[2]
"switch 1"[3] "host 2"[1]
"switch 1"[4] "host 3"[1]
"switch 2"[1] "switch 3"[2]
"switch 2"[3] "host 4"[1]
"switch 2"[4] "host 5"[1]
"switch 3"[3] "host 6"[1]
"switch 3"[4] "host 7"[1]`
	if diff := cmp.Diff(strings.Split(want[1:], "\n"), cables(f)); diff != "" {
		t.Errorf("cables (-want +got):\n%s", diff)
	}
	if n := f.Node(0).NumPorts; n != 8 {
		t.Errorf("switches with %d ports, want 8", n)
	}
}

// TestShufflenet has every cable of the (2, 2) shufflenet, in which some
// switches have two cables between them.
func TestShufflenet(t *testing.T) {
	f := short.Must(gen.Shufflenet(2, 2))(t)
	want := `
"switch 0,0"[1] "switch 1,0"[3]
"switch 0,0"[2] "switch 1,1"[3]
"switch 0,0"[3] "switch 1,0"[1]
"switch 0,0"[4] "switch 1,2"[1]
"switch 0,0"[5] "host 0,0"[1]
"switch 0,1"[1] "switch 1,2"[3]
"switch 0,1"[2] "switch 1,3"[3]
"switch 0,1"[3] "switch 1,0"[2]
"switch 0,1"[4] "switch 1,2"[2]
"switch 0,1"[5] "host 0,1"[1]
"switch 0,2"[1] "switch 1,0"[4]
"switch 0,2"[2] "switch 1,1"[4]
"switch 0,2"[3] "switch 1,1"[1]
"switch 0,2"[4] "switch 1,3"[1]
"switch 0,2"[5] "host 0,2"[1]
"switch 0,3"[1] "switch 1,2"[4]
"switch 0,3"[2] "switch 1,3"[4]
"switch 0,3"[3] "switch 1,1"[2]
"switch 0,3"[4] "switch 1,3"[2]
"switch 0,3"[5] "host 0,3"[1]
"switch 1,0"[5] "host 1,0"[1]
"switch 1,1"[5] "host 1,1"[1]
"switch 1,2"[5] "host 1,2"[1]
"switch 1,3"[5] "host 1,3"[1]`
	if diff := cmp.Diff(strings.Split(want[1:], "\n"), cables(f)); diff != "" {
		t.Errorf("cables (-want +got):\n%s", diff)
	}
}

// TestShufflenet24 checks the rows that the 24-node shufflenet of the paper
// connects: shuffles of eight, two to each.
func TestShufflenet24(t *testing.T) {
	f := short.Must(gen.Shufflenet(2, 3))(t)
	rows := [8][2]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 1}, {2, 3}, {4, 5}, {6, 7}}
	node := 0
	for c := range 3 {
		for r, next := range rows {
			s := fabric.NodeID(node)
			node++
			if got, want := f.Node(s).Description, fmt.Sprintf("switch %d,%d", c, r); got != want {
				t.Fatalf("node %d is %q, want %q", s, got, want)
			}
			for j, to := range next {
				in := 3
				if r >= 4 {
					in = 4
				}
				want := fmt.Sprintf(`"switch %d,%d"[%d]`, (c+1)%3, to, in)
				if got := f.PortName(f.Peer(f.Port(s, fabric.PortNum(j+1)))); got != want {
					t.Errorf("port %d of switch %d,%d leads to %s, want %s", j+1, c, r, got, want)
				}
			}
		}
	}
}
