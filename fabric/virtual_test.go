package fabric_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

func TestVirtualLIDs(t *testing.T) {
	f := labelled(t)
	host, _ := f.NodeByGUID(7)
	h := f.Port(host, 1) // with LID 3
	g := short.Must(f.WithVirtualLIDs(map[fabric.LID]fabric.PortID{9: h, 5: h, 3: h}))(t)
	if g.MaxLID() != 9 || g.LIDPort(5) != h || g.LIDPort(9) != h || g.LIDPort(8) != fabric.NoPort || g.LID(h) != 3 || f.MaxLID() != 3 {
		t.Errorf("LIDs up to %d, port %d has 5", g.MaxLID(), g.LIDPort(5))
	}
	if got, own := slices.Collect(g.AllLIDs(h)), slices.Collect(f.AllLIDs(h)); !slices.Equal(got, []fabric.LID{3, 5, 9}) || !slices.Equal(own, []fabric.LID{3}) {
		t.Errorf("LIDs %v with virtual ports, %v without", got, own)
	}
	if same, err := f.WithVirtualLIDs(nil); same != f || err != nil {
		t.Error("another fabric without virtual ports")
	}
	var overlap *fabric.LIDOverlapError
	if _, err := f.WithVirtualLIDs(map[fabric.LID]fabric.PortID{3: 0}); !errors.As(err, &overlap) {
		t.Errorf("LID of another port: %v", err)
	}
	for l, p := range map[fabric.LID]fabric.PortID{0: h, fabric.MaxUnicastLID + 1: h, 7: f.Port(0, 1)} {
		if g, err := f.WithVirtualLIDs(map[fabric.LID]fabric.PortID{l: p}); g != nil || err == nil {
			t.Errorf("LID %d on port %d: %v", l, p, err)
		}
	}
}
