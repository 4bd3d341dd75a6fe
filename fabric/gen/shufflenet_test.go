package gen_test

import (
	"fmt"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
)

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
