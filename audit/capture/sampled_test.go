package capture_test

import (
	"slices"
	"testing"

	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
)

// What pull writes of a sample says so: check notes it, and leaves undecided that no packet is dropped where other
// path SLs than those of the sample would be. Of a dump that is whole the verdict is clean.
func TestSampled(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Hosts: 1}))(t)
	e := short.Must(compile.EngineByName("xy"))(t)
	routed := short.Must(compile.Run(t.Context(), f, e, compile.Options{}))(t)
	f = routed.Routing.Fabric
	identity := lft.VLMap{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 14}
	maps := lft.NewSL2VL(f, identity)
	identity[1] = lft.DropVL
	for in := range f.Node(4).NumPorts {
		maps.Set(in+1, f.Channels()[f.NumSwitches()], identity)
	}
	for _, sampled := range []map[state.Part]string{
		nil,
		{state.SLsOfPaths: "3 path SLs were asked for"},
		{state.SLsOfPaths: "3 path SLs were asked for", state.SL2VLTables: "5 of 10 maps were read"},
	} {
		live := open.Swept{State: &state.State{
			Fabric: f, Tables: routed.Routing.Tables, Multicast: &mft.Plan{Tables: mft.NewTables(f)},
			SL2VL: maps, PathSLs: lft.NewPathSLs(f.NumSwitches(), f.MaxLID()), PKeys: make([][]fabric.PKey, f.NumPorts()), Sampled: sampled,
		}}
		dir := t.TempDir()
		if err := live.Write(dir); err != nil {
			t.Fatal(err)
		}
		s := short.Must(open.Path(t.Context(), dir, open.Options{}))(t)
		r := short.Must(capture.Check(t.Context(), s, verify.Options{}))(t)
		notes := 0
		for _, x := range r.Findings {
			if x.Rule == capture.SampledTables {
				notes++
			}
		}
		undecided := slices.ContainsFunc(r.Undecided, func(u verify.Undecided) bool { return u.Rule == verify.SLDropped })
		if notes != len(sampled) || undecided != (sampled != nil) || (r.Verdict == "undecided") != undecided {
			t.Errorf("%v: %d notes, verdict %s, undecided %v, findings %v", sampled, notes, r.Verdict, r.Undecided, r.Findings)
		}
	}
}

// Beside adaptive tables a sample leaves undecided what packets of other SLs come to by any choice of switches.
func TestSampledAdaptive(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Hosts: 1}))(t)
	e := short.Must(compile.EngineByName("xy"))(t)
	routed := short.Must(compile.Run(t.Context(), f, e, compile.Options{}))(t)
	f = routed.Routing.Fabric
	maps := lft.NewSL2VL(f, lft.VLMap{0, lft.DropVL, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 14})
	for _, p := range f.CAPorts() {
		maps.Set(0, p, lft.VLMap{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 14})
	}
	for _, sampled := range []map[state.Part]string{nil, {state.SLsOfPaths: "3 path SLs were asked for"}} {
		s := &state.State{
			Fabric: f, Tables: routed.Routing.Tables, SL2VL: maps, PathSLs: lft.NewPathSLs(f.NumSwitches(), f.MaxLID()), Sampled: sampled,
			Adaptive: &adaptive.Tables{
				Groups: make([][]adaptive.Group, f.NumSwitches()),
				PLFTs:  []*adaptive.PLFT{adaptive.NewPLFT(routed.Routing.Tables)},
			},
		}
		r := short.Must(capture.CheckTables(t.Context(), s, verify.Options{}))(t)
		undecided := slices.ContainsFunc(r.Undecided, func(u verify.Undecided) bool { return u.Rule == verify.AdaptiveDeadEnd })
		if undecided != (sampled != nil) || (r.Verdict == "undecided") != undecided {
			t.Errorf("%v: verdict %s, undecided %v, findings %v", sampled, r.Verdict, r.Undecided, r.Findings)
		}
	}
}
