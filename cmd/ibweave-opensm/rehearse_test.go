package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/sminterface/rehearse"
)

// config is a configuration with the file of groups.
func config(groups string) ([]byte, error) {
	return outdir.PluginConfig(nil, groups)
}

// compiledOn is what the compiler makes of a fabric.
func compiledOn(t *testing.T, f *fabric.Fabric, err error, engine string, opt compile.Options) *compile.Result {
	t.Helper()
	short.Check(t, err)
	e := short.Must(compile.EngineByName(engine))(t)
	return short.Must(compile.Run(t.Context(), f, e, opt))(t)
}

// rehearsal is the options for what was compiled.
func rehearsal(r *compile.Result) rehearse.PluginOptions {
	opt := rehearse.PluginOptions{Library: filepath.Join(libraries.lib, library), Engine: r.Routing.Engine, Config: config, Options: rehearse.Options{SL2VL: r.Routing.SL2VL, PathSLs: r.Routing.PathSLs}}
	if r.Plan != nil {
		opt.MFT, opt.Trees = r.Plan.Tables, r.Plan.Trees
	}
	return opt
}

// alone gives the test a private folder for temporary files, and checks that it
// leaves neither files nor programs.
func alone(t *testing.T) {
	t.Helper()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Cleanup(func() {
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		if left := running(""); len(left) > 0 {
			t.Errorf("still running: %v", left)
		}
	})
}

// What was compiled is what the plugin makes, with groups that ports really join,
// whatever the scheme and though hosts have other GUIDs in ibsim.
func TestRehearse(t *testing.T) {
	grid := func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 2}) }
	torus := func() (*fabric.Fabric, error) {
		return mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 1})
	}
	tree := func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}) }
	odd := func() (*fabric.Fabric, error) {
		return gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 24, Seed: 7})
	}
	for _, tc := range short.Part(1, []struct {
		engine, scheme string
		make           func() (*fabric.Fabric, error)
		lmc            int
	}{
		{"xy", "union", grid, 1}, {"xy", "", grid, 0}, {"xy", "union-row", grid, 0}, {"xy", "union-merge", grid, 0}, {"xy", "comb", torus, 0},
		{"updn", "", tree, 0}, {"spam", "spam", odd, 2}, {"layered", "", torus, 0}, {"layered", "updn-tree", tree, 0}, {"fattree", "updn-tree", tree, 1},
	}) {
		t.Run(tc.engine+" "+tc.scheme, func(t *testing.T) {
			alone(t)
			f, err := tc.make()
			r := compiledOn(t, f, err, tc.engine, compile.Options{Multicast: tc.scheme, LIDs: lft.LIDOptions{LMC: tc.lmc},
				Groups: func(f *fabric.Fabric) ([]mft.Group, error) {
					groups := groupsOn(f)
					groups[0].Senders = groups[0].Senders[:1]
					groups[2].Senders = groups[2].Senders[:2]
					return groups, nil
				}})
			got := short.Must(rehearse.RunPlugin(t.Context(), r.Routing.Fabric, r.Routing.Tables, rehearsal(r)))(t)
			m := got.Multicast
			members := 0
			for _, tree := range r.Plan.Trees {
				if len(tree.Receivers) == 0 {
					continue // the group is never made
				}
				all := slices.Concat(tree.Senders, tree.Receivers)
				slices.Sort(all)
				members += len(slices.Compact(all))
			}
			switches := r.Routing.Fabric.NumSwitches()
			if !got.Equal() || got.Engine != "ibweave-"+tc.engine || got.EqualSwitches != switches || got.Entries < switches*int(r.Routing.Fabric.MaxLID()) ||
				m.Groups != len(r.Plan.Trees) || m.Equal != m.Groups || m.Masks < m.Groups*switches || m.Members != members || m.OtherMLIDs != 0 {
				t.Errorf("%+v\n%+v", got, m)
			}
			if has := r.Routing.SL2VL != nil; has != (got.SL2VL != nil) || has && got.SL2VL.Maps < 20*switches {
				t.Errorf("%+v", got.SL2VL)
			}
			if p := got.PathSLs; (r.Routing.PathSLs != nil) != (p != nil) || p != nil && p.Paths < len(r.Routing.Fabric.CAPorts())*len(r.Routing.Fabric.CAPorts()) {
				t.Errorf("%+v", p)
			}
		})
	}
}

// On a banyan network multicast goes from outputs of processors to inputs.
func TestRehearseBanyan(t *testing.T) {
	alone(t)
	f, err := banyan.Banyan(4, true)
	r := compiledOn(t, f, err, "banyan", compile.Options{
		Groups: func(f *fabric.Fabric) ([]mft.Group, error) {
			w, err := banyan.Detect(f)
			if err != nil {
				return nil, err
			}
			groups := []mft.Group{w.Group("region 4-8", 4, 5, 6, 7, 8), w.Group("no region", 0, 3, 6, 11, 13), w.Group("one", 9)}
			groups[1].Senders = groups[1].Senders[3:5]
			return groups, nil
		}})
	got := short.Must(rehearse.RunPlugin(t.Context(), r.Routing.Fabric, r.Routing.Tables, rehearsal(r)))(t)
	if !got.Equal() || got.Multicast.Groups != 3 || got.Multicast.Equal != 3 || got.SL2VL.Differences != 0 {
		t.Errorf("%+v, multicast %+v, SL-to-VL %+v", got, got.Multicast, got.SL2VL)
	}
}

// Every kind of difference is found: an entry, a mask, a SL-to-VL table, the SL of a path.
func TestRehearseDifferences(t *testing.T) {
	alone(t)
	f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 2})
	r := compiledOn(t, f, err, "xy", compile.Options{Multicast: "comb", SL2VL: "spread", Route: lft.Options{VLs: 2},
		Groups: func(f *fabric.Fabric) ([]mft.Group, error) { return groupsOn(f), nil }})
	opt := rehearsal(r)
	opt.Config = func(groups string) ([]byte, error) {
		return outdir.PluginConfig(map[string]any{"vls": 2, "sl2vl": "spread"}, groups)
	}
	f = r.Routing.Fabric
	opt.SL2VL = opt.SL2VL.Clone()
	way := f.Port(3, 1)
	m := *opt.SL2VL.At(2, way)
	m[5] = 1 - m[5]
	opt.SL2VL.Set(2, way, m)
	opt.MFT = mft.NewTables(f)
	changed := r.Plan.Trees[1].MLID
	for _, l := range r.Plan.Tables.MLIDs() {
		ports := r.Plan.Tables.Ports(l)
		if l == changed {
			ports = ports[1:]
		}
		opt.MFT.Add(l, ports)
	}
	first := r.Plan.Tables.Ports(changed)[0]
	from, to := f.HostsOn(4)[0], f.LID(f.HostsOn(9)[0])
	row := slices.Clone(opt.PathSLs.Row(4))
	was := row[to]
	row[to] = 3
	opt.PathSLs.SetPorts(row, from)
	r.Routing.Tables.Row(5)[7]++
	got := short.Must(rehearse.RunPlugin(t.Context(), f, r.Routing.Tables, opt))(t)
	if got.Equal() || got.Differences != 1 || got.Samples[0].Switch != f.Node(5).GUID || got.Samples[0].LID != 7 {
		t.Errorf("%+v", got)
	}
	if p := got.PathSLs; p.Differences != 1 || p.Samples[0] != (rehearse.PathDifference{From: f.PortName(from), LID: to, Ours: 3, OpenSM: was}) {
		t.Errorf("%+v", p)
	}
	x := got.Multicast
	if x.Differences != 1 || x.Equal != x.Groups-1 || x.Samples[0].Switch.GUID != f.Node(f.Owner(first)).GUID ||
		len(x.Samples[0].OpenSM) != len(x.Samples[0].Ours)+1 || !slices.Contains(x.Samples[0].OpenSM, int(f.Num(first))) {
		t.Errorf("%+v", x)
	}
	// Of too many paths those from some ports are compared, and that is said.
	opt.Paths = 500
	some := short.Must(rehearse.RunPlugin(t.Context(), f, r.Routing.Tables, opt))(t)
	sampled := slices.ContainsFunc(some.Notes, func(note string) bool {
		return strings.HasPrefix(note, "SLs of paths are compared from one of 5 ports alone")
	})
	if p := some.PathSLs; !sampled || p.Paths < 400 || p.Paths > opt.Paths {
		t.Errorf("%+v, %v", p, some.Notes)
	}
	if y := got.SL2VL; y.Differences != 1 || y.Samples[0].Node.GUID != f.Node(3).GUID || y.Samples[0].In != 2 || y.Samples[0].Out != 1 {
		t.Errorf("%+v", y)
	}
}

// A plugin that OpenSM does not take leaves it to its own engine, and the report
// says so; what cannot be carried by OpenSM is said before anything runs.
func TestRehearseFailures(t *testing.T) {
	alone(t)
	other := filepath.Join(t.TempDir(), "other")
	otherVersion(t, other)
	f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1})
	r := compiledOn(t, f, err, "xy", compile.Options{Groups: func(f *fabric.Fabric) ([]mft.Group, error) { return groupsOn(f), nil }})
	for _, tc := range short.Part(1, []struct {
		name   string
		change func(*rehearse.PluginOptions)
		note   string
	}{
		{"version", func(o *rehearse.PluginOptions) { o.Library = filepath.Join(other, library) }, "version mismatch"},
		{"configuration", func(o *rehearse.PluginOptions) {
			o.Config = func(string) ([]byte, error) { return []byte("nonsense: 1\n"), nil }
		}, "ERR IBW1"},
		{"engine", func(o *rehearse.PluginOptions) { o.Engine = "nosuch" }, "OpenSM did not use ibweave-nosuch and has its own minhop tables instead"},
	}) {
		opt := rehearsal(r)
		tc.change(&opt)
		got, err := rehearse.RunPlugin(t.Context(), r.Routing.Fabric, r.Routing.Tables, opt)
		if err != nil || got.Equal() || got.Engine != "minhop" || !strings.Contains(strings.Join(got.Notes, "\n"), tc.note) {
			t.Errorf("%s: %v %+v", tc.name, err, got)
		}
	}
	opt := rehearsal(r)
	opt.Trees = slices.Clone(opt.Trees)
	opt.Trees[1].MLID = opt.Trees[0].MLID
	var unfit *rehearse.UnfitError
	if got, err := rehearse.RunPlugin(t.Context(), r.Routing.Fabric, r.Routing.Tables, opt); got != nil || !errors.As(err, &unfit) ||
		!strings.Contains(err.Error(), "OpenSM gives every group a MLID of its own") {
		t.Errorf("groups that share a MLID: %v", err)
	}
	opt = rehearsal(r)
	opt.Library = "/nowhere/libibweave-opensm.so"
	if got, err := rehearse.RunPlugin(t.Context(), r.Routing.Fabric, r.Routing.Tables, opt); got != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no plugin: %v", err)
	}
	// A rehearsal that ends at any stage leaves nothing.
	for _, stage := range short.Part(2, []string{rehearse.StageSimulate, rehearse.StageJoin, rehearse.StageOpenSM, rehearse.StageSweep, rehearse.StageReadBack}) {
		ctx, cancel := context.WithCancel(t.Context())
		opt := rehearsal(r)
		seen := false
		opt.Progress = func(name string) {
			if name == stage {
				seen = true
				cancel()
			}
		}
		if got, err := rehearse.RunPlugin(ctx, r.Routing.Fabric, r.Routing.Tables, opt); got != nil || !errors.Is(err, context.Canceled) || !seen {
			t.Errorf("%s: %v, %v", stage, got, err)
		}
		cancel()
	}
}
