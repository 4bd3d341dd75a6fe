package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/sminterface/subnet"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
)

// channel is a VL of a port.
type channel struct {
	port fabric.PortID
	vl   fabric.VL
}

// hasCreditLoop walks from each CA port to the LIDs of all others, on the lane that vl gives for an
// SL and a way through a node, and takes channels away that wait for none until none is left.
func hasCreditLoop(t *testing.T, r *lft.Routing, vl func(sl fabric.SL, in fabric.PortNum, out fabric.PortID) fabric.VL) bool {
	f, waits := r.Fabric, map[channel]map[channel]bool{}
	for _, src := range f.CAPorts() {
		for _, dst := range f.CAPorts() {
			if src == dst {
				continue
			}
			first, lid := f.PeerSwitch(src), f.LID(dst)
			sl := fabric.SL(0)
			if r.PathSLs != nil {
				sl = r.PathSLs.SL(src, first, lid)
			}
			last := channel{src, vl(sl, 0, src)}
			for at := first; ; {
				out := f.Port(at, r.Tables.Row(at)[lid])
				next := channel{out, vl(sl, f.Num(f.Peer(last.port)), out)}
				if waits[last] == nil {
					waits[last] = map[channel]bool{}
				}
				waits[last][next] = true
				if f.Peer(out) == dst {
					break
				}
				last, at = next, f.Owner(f.Peer(out))
				if len(waits) > f.NumPorts()*lft.NumSLs {
					t.Fatal("a forwarding loop")
				}
			}
		}
	}
	for more := true; more; {
		more = false
		for c, on := range waits {
			for next := range on {
				if waits[next] == nil {
					delete(on, next)
				}
			}
			if len(on) == 0 {
				delete(waits, c)
				more = true
			}
		}
	}
	return len(waits) > 0
}

// TestOpenSMLanes has engines of OpenSM that rest on lanes route random fabrics. With SL-to-VL
// tables and path SLs as read there is a credit loop just where a plain walk finds one, which on one
// lane it does on most, and without path SLs no loop is certain.
func TestOpenSMLanes(t *testing.T) {
	short.NeedPrograms(t)
	t.Parallel()
	torus := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Wrap: []bool{true, true}, Hosts: 1}))(t)
	fabrics := []*fabric.Fabric{torus}
	for seed := range uint64(short.Usual(6, 2)) {
		f := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 8 + int(seed), Degree: 2 + 2*int(seed%2), Hosts: 12, Seed: seed}))(t)
		fabrics = append(fabrics, f)
	}
	a := &app{stderr: io.Discard}
	onOneLane := 0
	for i, f := range fabrics {
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
		for _, engine := range openSMLanes {
			r, in, used, err := a.routeByOpenSM(t.Context(), f, engine, &siteOptions{})
			short.Check(t, err)
			if used != engine {
				continue
			}
			if engine != "nue" && r.PathSLs == nil || r.SL2VL == nil || len(in.State.Undecided) > 0 {
				t.Fatalf("fabric %d, %s: path SLs %v, SL-to-VL tables %v, %v; want them", i, engine, r.PathSLs != nil, r.SL2VL != nil, in.State.Undecided)
			}
			want := hasCreditLoop(t, r, func(sl fabric.SL, in fabric.PortNum, out fabric.PortID) fabric.VL { return r.SL2VL.At(in, out)[sl] })
			if got := loops(t, a, in, r); (got.CreditLoops.Count > 0) != want || want {
				t.Errorf("fabric %d, %s: %d credit loops, a walk finds one: %v; want none", i, engine, got.CreditLoops.Count, want)
			}
			if hasCreditLoop(t, r, func(fabric.SL, fabric.PortNum, fabric.PortID) fabric.VL { return 0 }) {
				onOneLane++
				r.PathSLs = nil
				got := loops(t, a, in, r)
				if got.CreditLoops.Count > 0 || !slices.ContainsFunc(got.Undecided, func(u verify.Undecided) bool { return u.Rule == verify.CreditLoop }) {
					t.Errorf("fabric %d, %s without path SLs: %d credit loops, undecided %v; want it undecided", i, engine, got.CreditLoops.Count, got.Undecided)
				}
			}
		}
	}
	if onOneLane < 2 {
		t.Errorf("%d routings have a credit loop on one lane; want some", onOneLane)
	}
}

// loops verifies a routing of OpenSM.
func loops(t *testing.T, a *app, in *audit, r *lft.Routing) *verify.Result {
	t.Helper()
	s := state.Of(r)
	s.UnknownSLs = in.State.UnknownSLs
	return short.Must(a.checkTables(t.Context(), s, verify.Options{Complete: true}))(t)
}

// TestComparedAsPulled has dfsssp, lash and nue route four fabrics, each by compare and by an
// OpenSM of its own whose subnet is pulled with all path SLs: the errors, the credit loops and
// what is undecided are the same. Warnings of traffic of switches may differ, since dfsssp puts
// it on other lanes each time that it runs.
func TestComparedAsPulled(t *testing.T) {
	short.NeedPrograms(t)
	t.Parallel()
	torus := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Wrap: []bool{true, true}, Hosts: 1}))(t)
	tree, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	short.Check(t, err)
	fabrics := []*fabric.Fabric{torus, tree}
	for seed := range uint64(2) {
		f, err := gen.Irregular(gen.IrregularSpec{Switches: 10, Degree: 3 + int(seed), Hosts: 12, Seed: seed})
		short.Check(t, err)
		fabrics = append(fabrics, f)
	}
	a := &app{stderr: io.Discard}
	for i, f := range fabrics[:short.Usual(4, 2)] {
		if f, err = lft.AssignLIDs(f, lft.LIDOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, engine := range []string{"dfsssp", "lash", "nue"} {
			r, in, used, err := a.routeByOpenSM(t.Context(), f, engine, &siteOptions{})
			short.Check(t, err)
			compared := loops(t, a, in, r)
			sim, _ := ibsimtest.Start(t, f)
			sm := short.Must(ibsim.StartOpenSM(t.Context(), sim, ibsim.OpenSMConfig{Engine: engine, Dir: t.TempDir(), Options: []string{"sweep_interval 0", "qos TRUE"}}))(t)
			transport := short.Must(sim.Dial(t.Context(), ""))(t)
			c := subnet.New(transport, subnet.Options{})
			live, err := open.Live(t.Context(), c, open.LiveOptions{AllPaths: true})
			short.Check(t, errors.Join(err, c.Close(), sm.Stop()))
			live.UnknownSLs = true
			pulled := short.Must(a.checkTables(t.Context(), live.State, verify.Options{Complete: true}))(t)
			verdict := func(v *verify.Result) string {
				return fmt.Sprint(v.Worst() == verify.Error, v.Unicast.Pairs, v.Unicast.Unreachable, v.CreditLoops.Count, v.Undecided)
			}
			if got, want := verdict(compared), verdict(pulled); got != want || sm.Run().Engine != used {
				t.Errorf("fabric %d, %s: %s by %s, and what was pulled has %s by %s\n%+v\n%+v", i, engine, got, used, want, sm.Run().Engine, compared.Findings, pulled.Findings)
			}
		}
	}
}

// TestSiteOptions has OpenSM's updn route a torus with a site's opensm.conf: all paths go up to
// its root and down again, and its LMC holds. What opensm.conf says of other things, and
// wrongly, is passed over or refused with its line.
func TestSiteOptions(t *testing.T) {
	t.Parallel()
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 1}))(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		short.Check(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	const root = fabric.NodeID(7)
	write("roots", fmt.Sprintf("# of the site\n%#x\n", uint64(f.Node(root).GUID)))
	a := &app{stderr: io.Discard}
	conf := write("opensm.conf", "# OpenSM\nguid 0x1\nroot_guid_file roots\ncn_guid_file (null)\nlog_file /nowhere/log\nlmc 1\nmax_op_vls 3\n")
	site, err := a.readSiteOptions(conf)
	if err != nil || site.lmc != 1 || !slices.Equal(site.lines, []string{"max_op_vls 3"}) || len(site.files) != 1 {
		t.Fatalf("%+v, %v", site, err)
	}
	g := short.Must(lft.AssignLIDs(f, lft.LIDOptions{LMC: site.lmc}))(t)
	r, _, used, err := a.routeByOpenSM(t.Context(), g, "updn", site)
	if err != nil || used != "updn" {
		t.Fatal(used, err)
	}
	far := make([]int, g.NumSwitches()) // hops to the root
	for at, seen := []fabric.NodeID{root}, map[fabric.NodeID]bool{root: true}; len(at) > 0; at = at[1:] {
		for _, next := range g.Neighbors(at[0]) {
			if !seen[next] {
				seen[next], far[next] = true, far[at[0]]+1
				at = append(at, next)
			}
		}
	}
	paths := 0
	for _, src := range g.CAPorts() {
		for lid := fabric.LID(1); lid <= g.MaxLID(); lid++ {
			if dst := g.LIDPort(lid); dst == fabric.NoPort || dst == src || g.IsSwitch(g.Owner(dst)) {
				continue
			}
			channels := short.Must(r.Tables.Path(g, src, lid, nil))(t)
			down := false
			paths++
			for _, c := range channels[1 : len(channels)-1] {
				from, to := far[g.Owner(c)], far[g.PeerSwitch(c)]
				if down && to < from {
					t.Fatalf("the path from %s to LID %d goes up behind a way down", g.PortName(src), lid)
				}
				down = down || to > from
			}
		}
	}
	if want := 25 * 24 * 2; paths != want {
		t.Errorf("%d paths, want %d: LMC 1", paths, want)
	}
	for text, want := range map[string]string{"lmc 8\n": "bad.conf:1: want an LMC", "\nroot_guid_file nowhere\n": "bad.conf:2: "} {
		if _, err := a.readSiteOptions(write("bad.conf", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
