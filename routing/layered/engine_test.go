package layered_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/layered"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// routed routes a fabric and fails unless the result is what the engine promises:
// all reachable and no credit loop within the VLs, shortest paths unless a note says
// otherwise, and SL 0 on VL 0. It gives the VLs that paths have.
func routed(t require, f *fabric.Fabric, opt lft.Options) (*lft.Routing, *verify.Result, int) {
	t.Helper()
	r := short.Must(layered.Engine{}.Route(context.Background(), f, opt))(t)
	v := short.Must(verify.Check(context.Background(), &state.State{Fabric: f, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs}, verify.Options{}))(t)
	short.Equal(t, v.Unicast.Unreachable+v.Unicast.Loops+v.Management.Unreachable+v.Management.Loops, 0, "unicast", v.Unicast, "management", v.Management)
	short.Equal(t, v.CreditLoops.Count+v.Management.CreditLoops, 0, v.CreditLoops.Count, "credit loops", v.Management.CreditLoops, "with management")
	longer := strings.Contains(strings.Join(r.Notes, "\n"), "do not suffice")
	if v.Unicast.NonMinimal != 0 && !longer {
		t.Errorf("%d pairs are longer than a shortest path, and no note says so: %q", v.Unicast.NonMinimal, r.Notes)
	}
	vls := 1
	if r.PathSLs != nil {
		for s := range fabric.NodeID(f.NumSwitches()) {
			for _, sl := range r.PathSLs.Row(s) {
				vls = max(vls, int(sl)+1)
			}
		}
		if r.SL2VL == nil || r.SL2VL.VLs() < vls {
			t.Errorf("path SLs for %d VLs without tables for them", vls)
		}
	}
	if limit := opt.VLs; vls > limit && limit > 0 || vls > layered.DefaultVLs {
		t.Errorf("%d VLs", vls)
	}
	return r, v, vls
}

// require is what testing.T and rapid.T have.
type require interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
}

func withLIDs(t require, lmc int) func(f *fabric.Fabric, err error) *fabric.Fabric {
	return func(f *fabric.Fabric, err error) *fabric.Fabric {
		t.Helper()
		short.Check(t, err)
		return short.Must(lft.AssignLIDs(f, lft.LIDOptions{LMC: lmc}))(t)
	}
}

// Whatever the network, the LMC and the number of lanes.
func TestAnyNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		var f *fabric.Fabric
		var err error
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			f, err = gen.Irregular(gen.IrregularSpec{Switches: rapid.IntRange(6, short.Of(24, 12)).Draw(t, "switches"), Degree: 4,
				Hosts: rapid.IntRange(2, short.Of(40, 20)).Draw(t, "hosts"), Seed: seed})
		case 1:
			f, err = mesh.Generate(mesh.Spec{Dims: []int{rapid.IntRange(2, short.Of(6, 4)).Draw(t, "x"), rapid.IntRange(2, short.Of(6, 5)).Draw(t, "y")},
				Wrap: []bool{true, true}, Hosts: rapid.IntRange(0, 2).Draw(t, "hosts")})
		case 2:
			f, err = gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})
		case 3:
			f, err = gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: short.Of(3, 2)})
		}
		if err == nil && f.NumSwitches() > 8 {
			spare := f.NumLinks() - len(f.CAPorts()) - (f.NumSwitches() - 1) // links that are not needed to connect all
			f, err = gen.DropLinks(f, rapid.IntRange(0, min(6, spare)).Draw(t, "missing"), seed)
		}
		short.Check(t, err)
		f = withLIDs(t, rapid.IntRange(0, 2).Draw(t, "lmc"))(f, nil)
		routed(t, f, lft.Options{VLs: rapid.SampledFrom([]int{0, 1, 2, 4}).Draw(t, "vls")})
	})
}

// On fat trees one lane is enough for everybody, and there is nothing for the file
// engine to lose.
func TestFatTree(t *testing.T) {
	for _, radix := range []int{4, 8, 12} {
		f := withLIDs(t, 0)(gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: 3}))
		r, v, _ := routed(t, f, lft.Options{})
		if r.SL2VL != nil || r.PathSLs != nil || v.Unicast.NonMinimal != 0 {
			t.Errorf("radix %d: %q", radix, r.Notes)
		}
	}
}

// The lanes that these networks took, and the routes on their busiest link, when the
// figures of docs/dev/layered.md were made. Fewer are welcome.
func TestLanes(t *testing.T) {
	torus := func(n int) *fabric.Fabric {
		return withLIDs(t, 0)(mesh.Generate(mesh.Spec{Dims: []int{n, n}, Wrap: []bool{true, true}, Hosts: 1}))
	}
	tree := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 3}))(t)
	for _, tc := range short.Part(2, []struct {
		name    string
		f       *fabric.Fabric
		vls     int
		busiest int64
	}{
		{"torus 4x4", torus(4), 2, 9},
		{"torus 6x6", torus(6), 4, 28},
		{"torus 8x8", torus(8), 4, 71},
		{"irregular", withLIDs(t, 0)(gen.Irregular(gen.IrregularSpec{Switches: 64, Degree: 5, Hosts: 256, Seed: 1})), 4, 592},
		{"fat tree", withLIDs(t, 0)(tree, nil), 1, 426},
		{"fat tree, 20 links missing", withLIDs(t, 0)(gen.DropLinks(tree, 20, 3)), 1, 522},
	}) {
		r, v, vls := routed(t, tc.f, lft.Options{})
		n := busiest(t, tc.f, r.Tables)
		if vls > tc.vls || n > tc.busiest || v.Unicast.NonMinimal != 0 {
			t.Errorf("%s: %d VLs, %d routes on the busiest link, %d pairs longer; want %d, %d and none: %q",
				tc.name, vls, n, v.Unicast.NonMinimal, tc.vls, tc.busiest, r.Notes)
		}
		t.Logf("%s: %d VLs, %d routes", tc.name, vls, n)
	}
}

// Networks that have nothing to route are routed.
func TestNothingToRoute(t *testing.T) {
	single := withLIDs(t, 0)(mesh.Generate(mesh.Spec{Dims: []int{1, 1}, Hosts: 3}))
	routed(t, single, lft.Options{})
	none := withLIDs(t, 0)(mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Wrap: []bool{true, true}}))
	routed(t, none, lft.Options{})
}

func TestCancelled(t *testing.T) {
	f := withLIDs(t, 0)(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Wrap: []bool{true, true}, Hosts: 1}))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := (layered.Engine{}).Route(ctx, f, lft.Options{}); err == nil || r != nil {
		t.Errorf("routing %v, error %v", r != nil, err)
	}
}

// cluster is leaves below spines, several cables between each two, less some cables of which
// the last between two switches may be one, and on each spine a host or none.
func cluster(t *rapid.T) (*fabric.Fabric, error) {
	leaves := rapid.IntRange(2, 9).Draw(t, "leaves")
	spines := rapid.IntRange(1, 5).Draw(t, "spines")
	cables := rapid.IntRange(1, 4).Draw(t, "cables")
	hosts := rapid.IntRange(1, spines*cables+2).Draw(t, "hosts")
	return cabled(leaves, spines, cables, hosts, rapid.IntRange(0, 1).Draw(t, "hosts on a spine"))
}

func cabled(leaves, spines, cables, hosts, onSpine int) (*fabric.Fabric, error) {
	p, err := gen.NewPlan(leaves+spines, leaves*hosts+spines*onSpine)
	if err != nil {
		return nil, err
	}
	leaf, spine := make([]int, leaves), make([]int, spines)
	for i := range spine {
		spine[i] = p.Switch(leaves*cables+1, "spine")
		if onSpine == 1 {
			p.Cable(p.CA(1, "host"), 1, spine[i], leaves*cables+1)
		}
	}
	for i := range leaf {
		leaf[i] = p.Switch(spines*cables+hosts, "leaf")
		for h := range hosts {
			p.Cable(p.CA(1, "host"), 1, leaf[i], spines*cables+h+1)
		}
		for s := range spine {
			for c := range cables {
				p.Cable(leaf[i], s*cables+c+1, spine[s], i*cables+c+1)
			}
		}
	}
	return p.Fabric()
}

// damaged leaves out cables as long as all is connected.
func damaged(t *rapid.T, f *fabric.Fabric, most int) (*fabric.Fabric, error) {
	spare := f.NumLinks() - len(f.CAPorts()) - (f.NumSwitches() - 1)
	return gen.DropLinks(f, rapid.IntRange(0, min(most, spare)).Draw(t, "missing"), rapid.Uint64().Draw(t, "seed"))
}

// Where the up*/down* paths of updn are as short as any, so that one lane is enough, the
// busiest link is at most a tenth busier than with updn, for the sake of routes that come
// together, and a second lane is taken only where it is less busy than with updn.
func TestNotBusierThanUpDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f *fabric.Fabric
		var err error
		if rapid.Bool().Draw(t, "fat tree") {
			f, err = gen.FatTree(gen.FatTreeSpec{Radix: 2 * rapid.IntRange(2, 4).Draw(t, "half radix"), Levels: rapid.IntRange(2, 3).Draw(t, "levels"),
				HostsPerLeaf: rapid.IntRange(0, 3).Draw(t, "hosts per leaf")})
		} else {
			f, err = cluster(t)
		}
		if err == nil {
			f, err = damaged(t, f, 6)
		}
		short.Check(t, err)
		checkAgainstUpDown(t, withLIDs(t, 0)(f, nil))
	})
}

// Spines with a host of their own: moving routes into one lane made a link busier than updn's.
func TestNotBusierWithHostsOnSpines(t *testing.T) {
	f := short.Must(cabled(3, 3, 3, 3, 1))(t)
	checkAgainstUpDown(t, withLIDs(t, 0)(f, nil))
}

func checkAgainstUpDown(t require, f *fabric.Fabric) {
	t.Helper()
	r, v, vls := routed(t, f, lft.Options{})
	u := short.Must(updown.Engine{}.Route(context.Background(), f, lft.Options{}))(t)
	theirs := short.Must(verify.Check(context.Background(), &state.State{Fabric: f, Tables: u.Tables}, verify.Options{}))(t)
	if theirs.Unicast.NonMinimal > 0 {
		return
	}
	if v.Unicast.NonMinimal > 0 {
		t.Errorf("%d pairs are longer than a shortest path", v.Unicast.NonMinimal)
	}
	a, b := busiest(t, f, r.Tables), busiest(t, f, u.Tables)
	if a > b+b/10 || vls > 1 && a >= b {
		t.Errorf("%d routes on the busiest link and %d lanes, %d routes with updn", a, vls, b)
	}
}

// busiest is the routes on the busiest link.
func busiest(t require, f *fabric.Fabric, tables *lft.Tables) int64 {
	t.Helper()
	q := short.Must(quality.Measure(context.Background(), f, tables, quality.Options{}))(t)
	return q.Links.Max
}

// TestKeepHosts: when a host goes and comes back no entry and no SL for others changes, on one lane
// and on several.
func TestKeepHosts(t *testing.T) {
	tree := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2}))(t)
	torus := short.Must(mesh.Generate(mesh.Spec{Dims: []int{5, short.Of(5, 4)}, Wrap: []bool{true, true}, Hosts: 2}))(t)
	for name, f := range map[string]*fabric.Fabric{"one lane": tree, "lanes": torus} {
		f := short.Must(lft.AssignLIDs(f, lft.LIDOptions{LMC: 1}))(t)
		before, _, vls := routed(t, f, lft.Options{})
		if (vls > 1) != (name == "lanes") {
			t.Fatalf("%s: %d VLs", name, vls)
		}
		for _, gone := range []fabric.PortID{f.CAPorts()[0], f.CAPorts()[len(f.CAPorts())/2]} {
			less, _, _ := routed(t, f.Without(gone), lft.Options{Previous: before})
			again, _, _ := routed(t, f, lft.Options{Previous: less})
			for i, r := range []*lft.Routing{less, again} {
				if !r.Kept {
					t.Errorf("%s: step %d: routed from scratch: %q", name, i, r.Notes)
				}
				for s := range fabric.NodeID(f.NumSwitches()) {
					for lid, p := range f.LIDPorts() {
						if p == fabric.NoPort || p == gone {
							continue
						}
						short.MustEqual(t, before.Tables.Row(s)[lid], r.Tables.Row(s)[lid], name, "step", i, "switch", s, "has another port for LID", lid)
						if before.PathSLs != nil && before.PathSLs.Row(s)[lid] != r.PathSLs.Row(s)[lid] {
							t.Fatalf("%s: step %d: switch %d has another SL for LID %d", name, i, s, lid)
						}
					}
				}
			}
		}
		// A cable between switches is another matter on several lanes.
		cables, _ := f.SwitchLinks(0)
		if less, _, _ := routed(t, f.Without(cables[0]), lft.Options{Previous: before}); less.Kept != (vls == 1) {
			t.Errorf("%s: kept %v after a cable is gone: %q", name, less.Kept, less.Notes)
		}
		// What has no order, no SLs, more lanes than there are, or other switches, is not kept.
		bare, mixed := *before, *before
		bare.Order, bare.PathSLs, bare.SL2VL = nil, nil, nil
		mixed.SL2VL = lft.NewSL2VL(f, lft.IdentityVLs(2))
		mixed.PathSLs = nil
		slower := *before
		changed := slices.Clone(f.Cables())
		for i, c := range changed {
			if f.IsSwitch(f.Owner(c.A)) && f.IsSwitch(f.Owner(c.B)) {
				changed[i].Link.Speed = fabric.SDR
			}
		}
		slower.Fabric = short.Must(f.WithCables(changed))(t)
		other := *before
		other.Fabric = short.Must(lft.AssignLIDs(short.Must(mesh.Generate(mesh.Spec{Dims: []int{3}, Hosts: 1}))(t), lft.LIDOptions{}))(t)
		for _, tt := range []struct {
			was *lft.Routing
			why string
		}{
			{&bare, "there is no order of the switches to keep"}, {&mixed, "it has other virtual lanes"},
			{&slower, "the cables between switches have changed, "}, {&other, "the cables between switches have changed, "},
		}[:2*min(vls, 2)] {
			why := tt.why
			r, _, _ := routed(t, f, lft.Options{Previous: tt.was})
			if note := r.Notes[len(r.Notes)-1]; r.Kept || !strings.HasPrefix(note, "routed from scratch: "+why) {
				t.Errorf("%s: kept %v: %q, want %s", name, r.Kept, r.Notes, why)
			}
		}
	}
}
