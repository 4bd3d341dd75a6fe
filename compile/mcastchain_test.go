package compile_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/verify"
)

// damaged is a fabric without some of its cables between switches.
func damaged(f *fabric.Fabric, r *rand.Rand) *fabric.Fabric {
	var cables, cut []fabric.PortID
	for p := range fabric.PortID(f.NumPorts()) {
		if q := f.Peer(p); q > p && f.IsSwitch(f.Owner(p)) && f.IsSwitch(f.Owner(q)) {
			cables = append(cables, p)
		}
	}
	for _, i := range r.Perm(len(cables))[:r.IntN(1+len(cables)/6)] {
		cut = append(cut, cables[i])
	}
	if r.IntN(4) == 0 {
		s := fabric.NodeID(r.IntN(f.NumSwitches()))
		channels, _ := f.SwitchLinks(s)
		cut = append(cut, channels...)
	}
	slices.Sort(cut)
	return f.Without(slices.Compact(cut)...)
}

// TestDefaultSchemes pins what is tried, by the order, the SLs and the shape that a routing has.
func TestDefaultSchemes(t *testing.T) {
	ordered, lanes := &lft.Routing{Order: []int32{0}}, &lft.Routing{PathSLs: lft.NewPathSLs(1, 1)}
	for _, c := range []struct {
		r       *lft.Routing
		onMesh  bool
		senders int
		want    string
	}{
		{&lft.Routing{}, true, 1, "union union-row comb updn-tree union-turns"},
		{&lft.Routing{}, true, 2, "union-row comb updn-tree union-turns"},
		{&lft.Routing{}, false, 1, "union updn-tree union-turns"},
		{ordered, true, 2, "updn-tree union-turns"},
		{lanes, true, 1, "comb updn-tree union-turns"},
	} {
		short.Equal(t, strings.Join(compile.DefaultSchemes(c.r, c.onMesh, c.senders), " "), c.want)
	}
}

// TestDefaultScheme has the default multicast schemes on damaged fabrics of all
// kinds, with all engines.
func TestDefaultScheme(t *testing.T) {
	fabrics := map[string]*fabric.Fabric{
		"mesh 5x5":    short.Must(mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Hosts: 1}))(t),
		"mesh 3x3x3":  short.Must(mesh.Generate(mesh.Spec{Dims: []int{3, 3, 3}, Hosts: 1}))(t),
		"torus 5x5":   short.Must(mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 1}))(t),
		"hypercube 4": short.Must(mesh.Hypercube(4, 1))(t),
		"tree":        short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}))(t),
		"irregular":   short.Must(gen.Irregular(gen.IrregularSpec{Switches: 16, Degree: 4, Hosts: 30, Seed: 1}))(t),
	}
	outcome := map[string]int{}
	for _, name := range short.Keys(fabrics, "mesh 3x3x3", "torus 5x5", "tree", "irregular") {
		whole := fabrics[name]
		for _, e := range []string{"updn", "spam", "minhop", "xy", "negative-first", "west-first", "north-last", "layered", "fattree"} {
			n := short.Of(*trials/10, 1)
			if e == "xy" && name == "mesh 3x3x3" {
				n = short.Of(*trials/2, 14) // the paths of repaired meshes part and meet
			}
			for i := range n {
				r := rand.New(rand.NewPCG(uint64(i), 5))
				f := damaged(whole, r)
				var groups []mft.Group
				opt := compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}}
				opt.Route.Repair, opt.Route.NoWrap = e == "xy", r.IntN(3) == 0
				opt.Groups = func(f *fabric.Fabric) ([]mft.Group, error) {
					groups = nil
					for k := range 1 + r.IntN(4) {
						groups = append(groups, randomGroup(f, r, k))
					}
					return groups, nil
				}
				res, err := compile.Run(t.Context(), f, engine(t, e), opt)
				var domain *lft.DomainError
				if errors.As(err, &domain) {
					continue
				}
				what, why := judgeDefault(t, f, engine(t, e), opt, res, err, groups)
				outcome[what]++
				short.Equal(t, why, "", e, name, "trial", i, what)
			}
		}
	}
	t.Log(outcome)
	for _, what := range short.Part(1, []string{"clean", "refused", "no unicast either", "stepped down after the check"}) {
		if outcome[what] == 0 {
			t.Errorf("none is %s: %v", what, outcome)
		}
	}
}

// judgeDefault says what the default schemes came to, and why that is wrong.
func judgeDefault(t *testing.T, f *fabric.Fabric, e *compile.Engine, opt compile.Options, res *compile.Result, err error, groups []mft.Group) (what, why string) {
	t.Helper()
	// named returns true if all schemes have been tried for some group.
	named := func(r *lft.Routing, text string) bool {
		_, noMesh := mesh.Detect(r.Fabric, mesh.DetectOptions{})
		for i := range groups {
			all := strings.Contains(text, groups[i].Name+":")
			for _, s := range compile.DefaultSchemes(r, noMesh == nil, len(groups[i].Senders)) {
				all = all && (strings.Contains(text, s+": ") || strings.Contains(text, s+" cannot"))
			}
			if all {
				return true
			}
		}
		return false
	}
	if err != nil {
		var refused *mft.RefusedError
		if !errors.As(err, &refused) {
			return "error", err.Error()
		}
		opt.Groups = nil
		alone := short.Must(compile.Run(t.Context(), f, e, opt))(t)
		if alone.Verify.Unicast.Unreachable+alone.Verify.Management.Unreachable == 0 {
			return "refused", "and unicast reaches all: " + err.Error()
		}
		if !named(alone.Routing, err.Error()) {
			return "refused", "not all schemes are named: " + err.Error()
		}
		return "refused", ""
	}
	wrong, unicast := false, false
	for _, x := range res.Verify.Findings {
		if x.Severity == verify.Error {
			multicast := strings.HasPrefix(x.Rule, "multicast")
			wrong, unicast = wrong || multicast, unicast || !multicast
		}
	}
	if wrong {
		if !unicast || !named(res.Routing, strings.Join(res.Plan.Notes, "\n")) {
			return "no unicast either", fmt.Sprintf("unicast errors %t: %q", unicast, res.Plan.Notes)
		}
		return "no unicast either", ""
	}
	what = "clean"
	_, noMesh := mesh.Detect(res.Routing.Fabric, mesh.DetectOptions{})
	for i := range res.Plan.Trees {
		tree := &res.Plan.Trees[i]
		chain := compile.DefaultSchemes(res.Routing, noMesh == nil, len(groups[tree.Group].Senders))
		at := slices.Index(chain, tree.Scheme)
		if at < 0 || (at > 0) != (len(tree.Why) > 0) {
			return what, fmt.Sprintf("%s has scheme %s of %v, because of %q", tree.Name, tree.Scheme, chain, tree.Why)
		}
		if strings.Contains(strings.Join(tree.Why, " "), "the check finds") {
			what = "stepped down after the check"
			if !strings.Contains(strings.Join(res.Plan.Notes, " "), "the check finds") {
				return what, fmt.Sprintf("no note says so: %q", res.Plan.Notes)
			}
			// A scheme that is asked for stays, whatever the check says.
			opt.Groups = func(*fabric.Fabric) ([]mft.Group, error) { return groups, nil }
			opt.Multicast = "updn-tree"
			asked, err := compile.Run(t.Context(), f, e, opt)
			if err != nil {
				return what, err.Error()
			}
			for k := range asked.Plan.Trees {
				if s := asked.Plan.Trees[k].Scheme; s != "updn-tree" {
					return what, s + " in place of updn-tree"
				}
			}
		}
	}
	return what, ""
}
