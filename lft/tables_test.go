package lft_test

import (
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// New tables say nothing of any LID, up to the end of the last block, however large they
// are.
func TestNewTables(t *testing.T) {
	for _, c := range []struct {
		switches int
		maxLID   fabric.LID
	}{{0, 10}, {1, 0}, {3, 64}, {100, fabric.MaxUnicastLID}, {301, fabric.MaxUnicastLID - 100}} {
		x := lft.NewTables(c.switches, c.maxLID)
		if x.Switches() != c.switches || x.MaxLID() != c.maxLID {
			t.Errorf("%+v: %d switches, LIDs up to %d", c, x.Switches(), x.MaxLID())
		}
		for s := range fabric.NodeID(c.switches) {
			row := x.Row(s)
			for lid, port := range row[:cap(row)] {
				if port != fabric.NoPath {
					t.Fatalf("%+v: switch %d sends LID %d to port %d", c, s, lid, port)
				}
			}
		}
	}
}
