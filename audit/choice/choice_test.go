package choice

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
)

// The engine is the one with the least loss, or an equal one before it, of those on the lanes that
// there are; and the same on any number of CPUs.
func TestChoose(t *testing.T) {
	fabrics := map[string]*fabric.Fabric{}
	add := func(name string, f *fabric.Fabric, err error) {
		short.Check(t, err)
		fabrics[name] = f
	}
	f, err := mesh.Generate(mesh.Spec{Dims: []int{short.Of(5, 3), 4}, Hosts: short.Of(2, 1)})
	add("mesh", f, err)
	f, err = mesh.Generate(mesh.Spec{Dims: short.Of([]int{5, 5}, []int{4, 3}), Wrap: []bool{true, true}, Hosts: 1})
	add("torus", f, err)
	f, err = gen.Irregular(gen.IrregularSpec{Switches: short.Of(24, 8), Degree: short.Of(5, 3), Hosts: 2, Seed: 7})
	add("irregular", f, err)
	f, err = gen.FatTree(gen.FatTreeSpec{Radix: short.Of(8, 4), Levels: 2})
	add("tree", f, err)
	add("slow", f.WithLinks(slowCable(f)), nil)
	for name, f := range fabrics {
		for _, vls := range []int{0, 4} {
			var opt compile.Options
			opt.Route.VLs = vls
			c, r := short.Must2(Choose(t.Context(), f, opt))(t)
			own := c.Find(c.Engine)
			if own == nil || r != own.Result || r.Engine.Name() != c.Engine {
				t.Fatalf("%s: %q was chosen, and the result is another", name, c.Engine)
			}
			if own.VLs > max(1, vls) {
				t.Errorf("%s: %q takes %d VLs of %d", name, c.Engine, own.VLs, vls)
			}
			for _, x := range c.Candidates {
				if x.Refused != "" || x.VLs > max(1, vls) {
					continue
				}
				worst := max(own.Load/x.Load, x.Bandwidth/own.Bandwidth)
				if back := max(x.Load/own.Load, own.Bandwidth/x.Bandwidth); worst > back*(1+2*equal) {
					t.Errorf("%s on %d VLs: %s was chosen, with load %g and bandwidth %g; %s has %g and %g", name, vls, c.Engine, own.Load, own.Bandwidth, x.Engine, x.Load, x.Bandwidth)
				}
			}
			first, _ := json.Marshal(c)
			old := runtime.GOMAXPROCS(1)
			c, _, err := Choose(t.Context(), f, opt)
			runtime.GOMAXPROCS(old)
			if again, _ := json.Marshal(c); err != nil || string(again) != string(first) {
				t.Errorf("%s: another choice on one CPU: %s, not %s", name, again, first)
			}
		}
	}
}

// slowCable makes the first cable between switches slow.
func slowCable(f *fabric.Fabric) map[fabric.PortID]fabric.Link {
	ports, _ := f.SwitchLinks(0)
	slow := fabric.Link{Width: 1, Speed: f.Link(ports[0]).Speed}
	return map[fabric.PortID]fabric.Link{ports[0]: slow, f.Peer(ports[0]): slow}
}
