package jobs

import (
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
)

// A root with one child adds nothing up, and is cut off the tree as long as it has one.
func TestCutRoot(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 1}, Hosts: 2}))(t)
	e := short.Must(compile.EngineByName("xy"))(t)
	r := short.Must(compile.Run(t.Context(), f, e, compile.Options{}))(t).Routing
	f = r.Fabric
	adds := make([]bool, f.NumSwitches())
	for s := range adds {
		adds[s] = true
	}
	x := &reducer{f: f, tables: r.Tables, radix: 2, adds: adds}
	at := f.PeerSwitch(f.CAPorts()[0])
	for root := range fabric.NodeID(f.NumSwitches()) {
		tree := short.Must(x.grow(f.HostsOn(at), root))(t)
		if tree.Root.Node != f.Node(at).GUID || tree.Levels != 1 || tree.Switches != 1 || tree.Cables != 2 || tree.Radix != 2 {
			t.Errorf("from switch %d: %+v", root, tree)
		}
	}
}
