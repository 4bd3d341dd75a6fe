package capture_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
)

const text = `Switch 4 "S-0000000000000001" # "leaf" enhanced port 0 lid 1 lmc 0
[1](1/1/1) "H-0000000000000002"[1](2) # "host" lid 65535 4xNDR

Ca 1 "H-0000000000000002" # "host"
[1](2) "S-0000000000000001"[1] # lid 65535 lmc 0 "leaf" lid 1 4xNDR
`

func parse(t *testing.T, text string) (*fabric.Fabric, []fabric.Problem) {
	t.Helper()
	f, problems := short.Must2(topology.Parse("in", []byte(text), topology.Options{}))(t)
	return f, problems
}

func TestFindings(t *testing.T) {
	for _, test := range []struct {
		name, before, want string
		count              int64
		rule               string
	}{
		{"one port", "", `1 port has a LID that cannot be; in:2: "host"[1]: LID 65535: want 1 to 49151; taken as none`, 1, capture.InvalidLID},
		{"a timeout", "ibwarn: [1] mad_rpc: timed out\n", "the sweep had timeouts: 1; in:1: ibwarn: [1] mad_rpc: timed out", 1, capture.SweepErrors},
		{"no timeouts", "ibwarn: [1] x\n../libibnetdisc/ibnetdisc.c:12; y\n", "the sweep had errors: 2; the first, in:1: ibwarn: [1] x", 2, capture.SweepErrors},
		{"of several kinds", "iberror: [1] x\nx.c:12; timeout\n", "the sweep had errors: 2, 1 of them timeouts; the first, in:1: iberror: [1] x", 2, capture.SweepErrors},
		{"a prompt", "$ ibnetdiscover\n", "1 line is no topology text and skipped; in:1: $ ibnetdiscover", 1, capture.ForeignLines},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, problems := parse(t, test.before+text)
			for _, x := range capture.Findings(f, problems) {
				if x.Rule != test.rule {
					continue
				}
				if diff := cmp.Diff(test.want, x.Message); diff != "" || x.Count != test.count || len(x.Fingerprint) != 16 {
					t.Errorf("count %d, (-want +got)\n%s", x.Count, diff)
				}
				return
			}
			t.Errorf("no finding of rule %s", test.rule)
		})
	}
}

// The same capture with other lines has the same fingerprints, and each rule its own.
func TestFingerprints(t *testing.T) {
	const noise = "$ ibnetdiscover\nibwarn: [1] x\n"
	f, problems := parse(t, noise+text)
	g, more := parse(t, noise+"# shifts lines\n"+noise+text)
	first, second := capture.Findings(f, problems), capture.Findings(g, more)
	if len(first) != 3 || len(second) != 3 {
		t.Fatalf("%d and %d findings", len(first), len(second))
	}
	seen := map[string]bool{}
	for i := range first {
		if first[i].Fingerprint != second[i].Fingerprint || seen[first[i].Fingerprint] {
			t.Errorf("fingerprints %s and %s", first[i].Fingerprint, second[i].Fingerprint)
		}
		seen[first[i].Fingerprint] = true
	}
}

func TestRules(t *testing.T) {
	names := map[string]bool{}
	for _, r := range capture.Rules {
		if r.Severity == verify.Clean || r.Count == "" || r.Summary == "" || strings.TrimSpace(r.Explain) == "" {
			t.Errorf("rule %+v", r)
		}
		names[r.Name] = true
	}
	for _, kind := range []fabric.ProblemKind{fabric.SweepTimeout, fabric.SweepError, fabric.InvalidLID, fabric.Loopback, fabric.ForeignLines} {
		if !names[capture.RuleOf(kind)] {
			t.Errorf("kind %s has the rule %q, which is not there", kind, capture.RuleOf(kind))
		}
	}
	if capture.RuleOf(fabric.Contradiction) != "" || capture.RuleOf(fabric.Dropped) != "" {
		t.Error("what is listed line by line has a rule")
	}
}

// What pull writes of a sample says so: check notes it, and leaves undecided that no packet is dropped where other
// path SLs than those of the sample would be. Of a dump that is whole the verdict is clean.
func TestSampled(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Hosts: 1}))(t)
	routed := fabrictest.Compile(t, f, "xy", compile.Options{})
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
		short.Check(t, live.Write(dir))
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
	routed := fabrictest.Compile(t, f, "xy", compile.Options{})
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
