package compile_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/sminterface/rehearse"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// compiled routes a fabric with xy, which must come out clean.
func compiled(t *testing.T, f *fabric.Fabric, opt compile.Options) *compile.Result {
	t.Helper()
	e := short.Must(compile.EngineByName("dor"))(t)
	r := short.Must(compile.Run(t.Context(), f, e, opt))(t)
	if r.Verify.Verdict != verify.VerdictClean || r.Verify.Certificate() == nil {
		t.Fatalf("%s: %+v", r.Verify.Verdict, r.Verify.Findings)
	}
	return r
}

// The tables of xy for meshes, tori and cubes, whole and repaired, are what the
// real OpenSM then has.
func TestMeshesInOpenSM(t *testing.T) {
	short.NeedPrograms(t)
	cube := short.Must(mesh.Hypercube(5, 1))(t)
	faulty := short.Must(gen.DropLinks(fabrictest.Grid(t, 1, false, 16, 16), 3, 1))(t)
	fabrics := map[string]*fabric.Fabric{
		"4x4": fabrictest.Grid(t, 1, false, 4, 4), "16x16": fabrictest.Grid(t, 1, false, 16, 16), "8x8 torus": fabrictest.Grid(t, 1, true, 8, 8),
		"3x4x5": fabrictest.Grid(t, 1, false, 3, 4, 5), "5-cube": cube, "16x16 without 3 links": faulty,
	}
	for name, f := range fabrics {
		t.Run(name, func(t *testing.T) {
			r := compiled(t, f, compile.Options{Route: lft.Options{Repair: f == faulty}})
			got := short.Must(rehearse.Run(t.Context(), r.Routing.Fabric, r.Routing.Tables, rehearse.Options{}))(t)
			if !got.Equal() || got.EqualSwitches != f.NumSwitches() {
				t.Errorf("%d of %d switches equal, %d entries differ: %v", got.EqualSwitches, f.NumSwitches(), got.Differences, got.Samples)
			}
		})
	}
}

// creditLoops has ibdmchk look for credit loops in the files of a directory.
// Its exit status says nothing: it may crash when all is printed.
func creditLoops(t *testing.T, dir, fdbs string, args ...string) bool {
	t.Helper()
	short.NeedPrograms(t)
	program := short.Must(ibsim.Find("ibdmchk"))(t)
	args = append([]string{"-s", outdir.SubnetListName, "-f", fdbs, "-m", os.DevNull}, args...)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	found, none := strings.Contains(string(out), "-E- credit loops in routing"), strings.Contains(string(out), "-I- no credit loops found")
	if found == none {
		t.Fatalf("no verdict of ibdmchk:\n%.3000s", out)
	}
	return found
}

// On a torus OpenSM's dor has a credit loop and xy, with the SL-to-VL tables and
// path SLs that compile writes, has none: ours and ibdmchk say so alike, of
// both. On an open mesh both are free of credit loops, with the same hops.
func TestDOR(t *testing.T) {
	for _, c := range short.Part(2, []struct {
		name string
		f    *fabric.Fabric
		loop bool
	}{
		{"5x7 torus", fabrictest.Grid(t, 1, true, 5, 7), true},
		{"6x5 mesh", fabrictest.Grid(t, 1, false, 6, 5), false},
		{"8x8 torus", fabrictest.Grid(t, 1, true, 8, 8), true},
	}) {
		t.Run(c.name, func(t *testing.T) {
			r := compiled(t, c.f, compile.Options{})
			dir := filepath.Join(t.TempDir(), "tables")
			short.Must(outdir.Write(t.Context(), dir, r, outdir.Options{InstallDir: "/x", PairSLs: true}))(t)
			f := r.Routing.Fabric
			theirs, run := ibsimtest.Route(t, f, "dor")
			short.MustEqual(t, run.Engine, "dor", "OpenSM used engine")
			v := short.Must(verify.Check(t.Context(), &state.State{Fabric: f, Tables: theirs}, verify.Options{}))(t)
			short.Equal(t, v.CreditLoops.Count > 0, c.loop, "OpenSM's dor: credit loop")
			if !c.loop {
				short.EqualList(t, v.Unicast.HopHistogram, r.Verify.Unicast.HopHistogram, "hops", "OpenSM's")
			}
			out := short.Must(os.Create(filepath.Join(dir, "dor.fdbs")))(t)
			short.Check(t, errors.Join(dump.WriteFDBs(io.Writer(out), f, theirs, dump.WriteOptions{}), out.Close()))
			short.Equal(t, creditLoops(t, dir, "dor.fdbs"), c.loop, "ibdmchk on OpenSM's dor: credit loop")
			if !c.loop {
				if creditLoops(t, dir, outdir.FDBsName) {
					t.Error("ibdmchk finds a credit loop in xy's tables")
				}
				return
			}
			if creditLoops(t, dir, outdir.FDBsName, "-c", outdir.PairSLsName, "-d", outdir.SL2VLName) {
				t.Error("ibdmchk finds a credit loop in xy's tables on two VLs")
			}
			if !creditLoops(t, dir, outdir.FDBsName) {
				t.Error("ibdmchk finds no credit loop in xy's tables on one VL")
			}
		})
	}
}

// What compile cannot put into files it does not pretend to: without an
// opensm.conf there is no way to load half of a routing.
func TestPluginOnly(t *testing.T) {
	for _, c := range []struct {
		name   string
		f      *fabric.Fabric
		opt    compile.Options
		plugin bool
		vls    int
	}{
		{"mesh", fabrictest.Grid(t, 1, false, 4, 4), compile.Options{}, false, 1},
		{"torus", fabrictest.Grid(t, 1, true, 6, 6), compile.Options{}, true, 2},
		{"torus, no wrap", fabrictest.Grid(t, 1, true, 6, 6), compile.Options{Route: lft.Options{NoWrap: true}}, false, 1},
		{"two orders", fabrictest.Grid(t, 1, false, 4, 4), compile.Options{LIDs: lft.LIDOptions{LMC: 1}}, true, 2},
		{"one order", fabrictest.Grid(t, 1, false, 4, 4), compile.Options{LIDs: lft.LIDOptions{LMC: 1}, Route: lft.Options{VLs: 1}}, false, 1},
		{"spread", fabrictest.Grid(t, 1, false, 4, 4), compile.Options{SL2VL: compile.SpreadVLs, Route: lft.Options{VLs: 4}}, false, 4},
		{"by direction", fabrictest.Grid(t, 1, false, 4, 4), compile.Options{SL2VL: compile.ByDirectionVLs, Route: lft.Options{VLs: 4}}, true, 4},
		{"8 VLs", fabrictest.Grid(t, 1, false, 4, 4), compile.Options{Route: lft.Options{VLs: 8}}, false, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := compiled(t, c.f, c.opt)
			if _, err := outdir.QoSOptions(r); (err != nil) != c.plugin {
				t.Errorf("plugin only: %v, want %v", err, c.plugin)
			}
			vls := 1
			if r.Routing.SL2VL != nil {
				vls = r.Routing.SL2VL.VLs()
			}
			if vls != c.vls || r.Verify.CreditLoops.VLs != c.vls {
				t.Errorf("%d VLs, verified on %d, want %d", vls, r.Verify.CreditLoops.VLs, c.vls)
			}
			dir := filepath.Join(t.TempDir(), "d")
			for _, force := range []bool{false, true} {
				files := short.Must(outdir.Write(t.Context(), dir, r, outdir.Options{InstallDir: "/x", Force: force}))(t)
				_, err := os.Stat(filepath.Join(dir, outdir.ConfigName))
				short.Equal(t, err == nil, force || !c.plugin, "force", force, "opensm.conf is there")
				for _, name := range []string{outdir.PluginConfigName, outdir.PluginOpenSMName} {
					if !slices.Contains(files, name) {
						t.Errorf("force %v: no %s", force, name)
					}
				}
			}
		})
	}
}

// What the engine's proof stands on is not replaced by what the user asks for.
func TestSchemesRefused(t *testing.T) {
	e := short.Must(compile.EngineByName("xy"))(t)
	tree := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))(t)
	var domain *lft.DomainError
	var notGrid *mesh.NotGridError
	for name, c := range map[string]struct {
		f    *fabric.Fabric
		opt  compile.Options
		want any
	}{
		"identity on a torus":    {fabrictest.Grid(t, 1, true, 5, 5), compile.Options{SL2VL: compile.IdentityVLs, Route: lft.Options{VLs: 2}}, &domain},
		"dateline on a mesh":     {fabrictest.Grid(t, 1, false, 5, 5), compile.Options{SL2VL: compile.DatelineVLs}, &domain},
		"one VL on a torus":      {fabrictest.Grid(t, 1, true, 5, 5), compile.Options{Route: lft.Options{VLs: 1}}, &domain},
		"five rings":             {fabrictest.Grid(t, 1, true, 4, 4, 4, 4, 5), compile.Options{}, &domain},
		"a fat tree":             {tree, compile.Options{}, &domain},
		"LIDs of no mesh":        {tree, compile.Options{LIDs: lft.LIDOptions{Policy: lft.MeshLIDs}}, &notGrid},
		"an origin in the midst": {fabrictest.Grid(t, 1, false, 3, 3), compile.Options{Route: lft.Options{Origin: fabrictest.Grid(t, 1, false, 3, 3).Node(4).GUID}}, &domain},
		"other sizes":            {fabrictest.Grid(t, 1, false, 3, 4), compile.Options{Route: lft.Options{Dims: []int{6, 2}}}, &domain},
	} {
		if _, err := compile.Run(t.Context(), c.f, e, c.opt); !errors.As(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// laneCounter sends a message from each host to each other one, and counts by channel the lanes of
// what arrives. The lane is that of the paper, SL mod V on all ports (figure 8 (b) and (d)), and the
// way is read from the tables.
type laneCounter struct {
	r     *lft.Routing
	vls   int
	count map[fabric.PortID][]int
	err   error
}

func (c *laneCounter) Wake(s *sim.Sim, _ int64) {
	f := c.r.Fabric
	for _, from := range f.CAPorts() {
		for _, to := range f.CAPorts() {
			if from != to {
				c.err = errors.Join(c.err, s.Send(sim.Message{Src: from, DLID: f.LID(to), SL: sim.PathSL, Bytes: 256}))
			}
		}
	}
}

func (c *laneCounter) Deliver(_ *sim.Sim, d *sim.Delivery) {
	f := c.r.Fabric
	for p := d.Src; p != d.Port; {
		if c.count[p] == nil {
			c.count[p] = make([]int, c.vls)
		}
		c.count[p][int(d.SL)%c.vls]++
		if p = f.Peer(p); p != d.Port {
			p = f.Port(f.Owner(p), c.r.Tables.Row(f.Owner(p))[d.DLID])
		}
	}
}

// TestSpreadLanes has path SLs that the scheme spread gives out: in the simulator packets of all lanes
// cross each channel, a quarter of the mean at least, on meshes and an irregular fabric with several hosts on a
// switch. The proof does not need these SLs, files may leave them out, and a multicast
// scheme is chosen as without.
func TestSpreadLanes(t *testing.T) {
	odd := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 9, Degree: 4, Hosts: 30, Seed: 2}))(t)
	for _, tt := range []struct {
		name, engine string
		f            *fabric.Fabric
		vls          int
	}{{"4x4", "xy", fabrictest.Grid(t, 1, false, 4, 4), 2}, {"6x5", "xy", fabrictest.Grid(t, 1, false, 6, 5), 4}, {"irregular", "updn", odd, 4}} {
		e := short.Must(compile.EngineByName(tt.engine))(t)
		r := short.Must(compile.Run(t.Context(), tt.f, e, compile.Options{SL2VL: compile.SpreadVLs, Route: lft.Options{VLs: tt.vls}}))(t)
		if _, err := outdir.QoSOptions(r); err != nil || !r.AnySL || r.Verify.Verdict == verify.VerdictErrors {
			t.Errorf("%s: %v, %t, %s", tt.name, err, r.AnySL, r.Verify.Verdict)
		}
		c := &laneCounter{r: r.Routing, vls: tt.vls, count: map[fabric.PortID][]int{}}
		s := short.Must(sim.New(sim.Network{State: *state.Of(r.Routing)}, sim.Defaults(), c))(t)
		s.Wake(0, 0)
		short.Check(t, errors.Join(s.Run(t.Context(), 1<<40), c.err))
		n := int64(len(tt.f.CAPorts()))
		short.MustEqual(t, s.Counts().Delivered, n*(n-1), tt.name, "packets arrive")
		for p, lanes := range c.count {
			sum := 0
			for _, k := range lanes {
				sum += k
			}
			if least := slices.Min(lanes); sum >= 8*tt.vls && 4*least*tt.vls < sum {
				t.Errorf("%s: %s has %v packets by lane", tt.name, r.Routing.Fabric.PortName(p), lanes)
			}
		}
	}
}
