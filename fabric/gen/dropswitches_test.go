package gen_test

import (
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
)

// TestDropSwitches takes spines and core switches away until hosts need all that are left.
func TestDropSwitches(t *testing.T) {
	whole, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})
	if err != nil {
		t.Fatal(err)
	}
	rule := fabric.KindRule{Kind: fabric.ServiceKind, Pattern: whole.Node(whole.Owner(whole.CAPorts()[5])).GUID.String()}
	whole, _ = whole.WithKinds([]fabric.KindRule{rule})
	before := whole
	n := 1
	for ; ; n++ {
		f, err := gen.DropSwitches(whole, n, 7)
		if err != nil {
			if !strings.Contains(err.Error(), "want at most") {
				t.Error(err)
			}
			break
		}
		if f.NumSwitches() > whole.NumSwitches()-n || len(f.CAPorts()) != len(whole.CAPorts()) || len(f.Components().List) != 1 {
			t.Fatalf("%d gone: %d switches, %d hosts, %d parts", n, f.NumSwitches(), len(f.CAPorts()), len(f.Components().List))
		}
		for _, s := range f.Switches() {
			if _, is := before.SwitchByGUID(f.Node(s).GUID); !is {
				t.Fatalf("%d gone: %s has come back", n, f.Name(s))
			}
		}
		if service, _ := f.NodeByGUID(whole.Node(whole.Owner(whole.CAPorts()[5])).GUID); f.Kind(service) != fabric.ServiceKind {
			t.Errorf("%d gone: a node has lost its kind", n)
		}
		before = f
	}
	// Each of 6 pods needs a spine, and all need a core switch: at most 27 - 7 can go.
	if n <= 10 || n > 21 {
		t.Errorf("%d switches can go", n-1)
	}
	if _, err := gen.DropSwitches(whole, -1, 1); err == nil {
		t.Error("-1 switches")
	}
}
