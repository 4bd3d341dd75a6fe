package gen_test

import (
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
)

// TestRemaining: a dead switch and the unreachable hosts are gone, and
// all others are cabled as before.
func TestRemaining(t *testing.T) {
	whole := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3}))(t)
	cable, _ := whole.SwitchLinks(5)
	for _, x := range []struct {
		name   string
		cables []fabric.PortID
	}{{"cable", cable[:1]}, {"leaf", slices.Collect(whole.Cabled(5))}, {"spine", slices.Collect(whole.Cabled(13))}, {"core", slices.Collect(whole.Cabled(18))}} {
		f := short.Must(gen.Remaining(whole, x.cables...))(t)
		hosts, switches := 16, 20
		switch x.name {
		case "leaf":
			hosts, switches = 14, 19
		case "spine", "core":
			switches = 19
		}
		if len(f.CAPorts()) != hosts || f.NumSwitches() != switches || f.NumLinks() != whole.NumLinks()-len(x.cables) {
			t.Errorf("%s: %d hosts, %d switches, %d cables", x.name, len(f.CAPorts()), f.NumSwitches(), f.NumLinks())
		}
		for n := range fabric.NodeID(f.NumNodes()) {
			was, ok := whole.NodeByGUID(f.Node(n).GUID)
			for num := fabric.PortNum(1); num <= f.Node(n).NumPorts && ok; num++ {
				peer := f.Peer(f.Port(n, num))
				if peer == fabric.NoPort {
					continue
				}
				before := whole.Peer(whole.Port(was, num))
				ok = whole.Node(whole.Owner(before)).GUID == f.Node(f.Owner(peer)).GUID && whole.Num(before) == f.Num(peer)
			}
			if !ok {
				t.Errorf("%s: %s is not cabled as before", x.name, f.Node(n).Description)
			}
		}
	}
}
