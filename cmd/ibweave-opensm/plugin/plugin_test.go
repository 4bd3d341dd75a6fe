package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/updown"
)

// snapshotOf is the snapshot that OpenSM gives of a fabric, its nodes in a random
// order.
func snapshotOf(f *fabric.Fabric, rnd *rand.Rand) *Snapshot {
	s := &Snapshot{MaxLID: f.MaxLID(), Settings: Settings{DumpsTables: true}}
	order := rnd.Perm(f.NumNodes())
	at := make([]int32, f.NumNodes()) // by NodeID: index in Nodes
	for i, n := range order {
		at[n] = int32(i)
	}
	for _, n := range order {
		node := f.Node(fabric.NodeID(n))
		s.Nodes = append(s.Nodes, Node{
			GUID: node.GUID, SystemGUID: node.SystemGUID, Type: uint8(node.Type), NumPorts: uint8(node.NumPorts),
			EnhancedPort0: node.EnhancedPort0, First: int32(len(s.Ports)), LinearCap: 0xC000,
			VendorID: node.VendorID, DeviceID: node.DeviceID, Description: node.Description,
		})
		for num := fabric.PortNum(0); num <= node.NumPorts; num++ {
			p := f.Port(fabric.NodeID(n), num)
			port := Port{GUID: f.PortGUID(p), LID: f.LID(p), LMC: f.LMC(p), Peer: -1, VLs: 8, OpVLs: 8, Link: f.Link(p)}
			if q := f.Peer(p); q != fabric.NoPort {
				port.Peer, port.Num = at[f.Owner(q)], uint8(f.Num(q))
			}
			s.Ports = append(s.Ports, port)
		}
	}
	return s
}

func withLIDs(t testing.TB, f *fabric.Fabric, err error) *fabric.Fabric {
	t.Helper()
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: lft.KeepLMC})
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// opened is a plugin, and the lines of OpenSM's log.
type opened struct {
	*Plugin
	mu    sync.Mutex // our log may have a line of its own for OpenSM's
	lines []string
	dir   string
}

func open(t testing.TB, config string, engines ...compile.Engine) *opened {
	t.Helper()
	o := &opened{dir: t.TempDir()}
	host := Host{LogDir: o.dir, Log: func(l Level, line string) {
		if strings.Contains(line, "\n") {
			t.Errorf("a line with an end: %q", line)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.lines = append(o.lines, fmt.Sprintf("%d %s", l, line))
	}}
	if engines != nil {
		host.Engines = engines
	}
	options := ""
	if config != "" {
		file := filepath.Join(o.dir, "ibweave.yaml")
		writeFile(t, file, []byte(config))
		options = "--config " + file
	}
	o.Plugin = Open(options, host)
	t.Cleanup(func() { o.Close() })
	return o
}

// ownLog is what our log has, with all lines so far.
func (o *opened) ownLog(t *testing.T) string {
	t.Helper()
	short.Check(t, o.log.Sync())
	log := short.Must(os.ReadFile(filepath.Join(o.dir, LogName)))(t)
	return string(log)
}

// engine is the index of an engine.
func (o *opened) engine(name string) int { return slices.Index(o.Engines(), Prefix+name) }

// A routing on a snapshot is the compiler's, whatever the order of OpenSM's
// nodes, and so is the lid matrix.
func TestRoute(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	tree := func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}) }
	grid := func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: []int{3, 4}, Hosts: 2}) }
	for _, tc := range []struct {
		engine string
		make   func() (*fabric.Fabric, error)
	}{{"updn", tree}, {"minhop", tree}, {"spam", tree}, {"xy", grid}, {"north-last", grid}, {"layered", tree}, {"fattree", tree}, {"ftree", tree}} {
		f, err := tc.make()
		f = withLIDs(t, f, err)
		e := short.Must(compile.EngineByName(tc.engine))(t)
		want := short.Must(compile.Run(context.Background(), f, e, compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}}))(t)
		o := open(t, "")
		got := short.Must(o.Route(o.engine(tc.engine), snapshotOf(f, rnd)))(t)
		for s := range fabric.NodeID(f.NumSwitches()) {
			if got.GUIDs[s] != f.Node(s).GUID || !slices.Equal(got.LFT(s), want.Routing.Tables.Row(s)) {
				t.Fatalf("%s: switch %d differs", tc.engine, s)
			}
		}
		var text bytes.Buffer
		short.Check(t, dump.WriteLIDMatrix(&text, f, want.Routing.Tables, dump.WriteOptions{Lean: true}))
		for s := range fabric.NodeID(f.NumSwitches()) {
			section := fmt.Sprintf("Switch: guid %s\n", f.Node(s).GUID)
			row := make([]uint8, f.Node(s).NumPorts+1)
			for lid := range f.MaxLID() + 1 {
				to := f.Owner(max(0, f.LIDPort(lid)))
				if f.IsSwitch(to) && f.LID(f.PortBase(to)) == lid {
					got.HopRow(s, to, row)
					section += fmt.Sprintf("0x%04x: % x\n", lid, row)
				}
			}
			if !strings.Contains(text.String(), section) {
				t.Fatalf("%s: the matrix of the compiled directory lacks the rows of switch %d, want\n%s", tc.engine, s, section)
			}
		}
		if len(o.lines) > 0 {
			t.Errorf("OpenSM's log has %q", o.lines)
		}
		o.Written(got)
		if len(o.lines) != 1 || !strings.HasPrefix(o.lines[0], "2 ibweave-"+tc.engine+": ") {
			t.Errorf("OpenSM's log has %q", o.lines)
		}
	}
}

// A subnet that has not changed is not routed again; one that has is, and the
// snapshot that was kept does not change with OpenSM's.
func TestUnchanged(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{3, 4}, Hosts: 1})
	f = withLIDs(t, f, err)
	take := func() *Snapshot { return snapshotOf(f, rand.New(rand.NewPCG(1, 2))) }
	o := open(t, "")
	route := func(engine string, s *Snapshot) *Tables {
		t.Helper()
		return short.Must(o.Route(o.engine(engine), s))(t)
	}
	first := route("xy", take())
	if again := route("xy", take()); again.Routing != first.Routing || again.generation != first.generation {
		t.Error("the same subnet was routed again")
	}
	if other := route("updn", take()); other.Routing == first.Routing || other.generation == first.generation {
		t.Error("another engine has the same tables")
	}
	before := route("xy", take())
	for i, change := range []func(*Snapshot){
		func(s *Snapshot) { s.Ports[s.Nodes[0].First+1].OpVLs = 4 },
		func(s *Snapshot) { s.DumpsTables = false },
		func(s *Snapshot) { s.MaxLID++ },
		func(s *Snapshot) { s.Nodes[0].Description = "new" },
	} {
		s := take()
		change(s)
		if got := route("xy", s); got.Routing == before.Routing || got.generation != before.generation {
			t.Errorf("change %d: not routed again, or masks forgotten", i)
		}
	}
	s := take()
	for i := range s.Ports {
		if p := &s.Ports[i]; p.Peer >= 0 && s.Nodes[p.Peer].Type == 2 {
			peer := &s.Ports[s.Nodes[p.Peer].First+int32(p.Num)]
			if s.Nodes[peer.Peer].Type == 2 {
				p.Peer, peer.Peer = -1, -1
				break
			}
		}
	}
	// OpenSM asks for masks in a sweep alone, so one is to follow.
	s.Reroute = true
	if got := route("updn", s); got.generation == before.generation || got.Fabric.NumLinks() != f.NumLinks()-1 || !got.SweepAgain {
		t.Error("a cable is gone, and nothing was routed")
	}
	if got := route("updn", s); got.SweepAgain {
		t.Error("another sweep, and nothing has changed")
	}
}

// broken is an engine that fails as its name says.
type broken struct {
	lft.Minhop
	name string
}

func (b broken) Name() string { return b.name }

func (b broken) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	switch b.name {
	case "panic":
		panic("a fault on purpose")
	case "worker":
		par.Each(2, func(int) { panic("in a worker") })
	case "guarded":
		return nil, par.Catch(func() error { panic("in a group") })
	case "error":
		return nil, errors.New("no\nway")
	case "slow":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r, err := b.Minhop.Route(ctx, f, opt)
	if err == nil && b.name == "hole" {
		r.Tables.Row(1)[f.MaxLID()] = fabric.NoPath
	}
	return r, err
}

// Every failure is an *Error with its code, one line in OpenSM's log, and leaves
// what was before.
func TestFailures(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Hosts: 1})
	f = withLIDs(t, f, err)
	rnd := rand.New(rand.NewPCG(1, 2))
	engines := []compile.Engine{{Engine: lft.Minhop{}}}
	for _, name := range []string{"panic", "worker", "guarded", "error", "slow", "hole"} {
		engines = append(engines, compile.Engine{Engine: broken{name: name}})
	}
	engines = append(engines, compile.Engine{Engine: mesh.XY{}})
	for _, tc := range []struct {
		name, engine, config string
		change               func(*Snapshot)
		code                 Code
		line                 string
	}{
		{"panic", "panic", "", nil, Panicked, "ERR IBW6: ibweave-panic: a bug of ibweave, please report it with its log: a fault on purpose"},
		{"panic in a worker", "worker", "", nil, Panicked, "ERR IBW6: ibweave-worker: a bug of ibweave, please report it with its log: in a worker; OpenSM"},
		{"panic in a group", "guarded", "", nil, Panicked, "ERR IBW6: ibweave-guarded: a bug of ibweave, please report it with its log: in a group; OpenSM"},
		{"error", "error", "", nil, CannotRoute, "ERR IBW2: ibweave-error: no; way"},
		{"timeout", "slow", "timeout: 5ms", nil, CannotRoute, "ERR IBW2: ibweave-slow: not done after 5ms (timeout in "},
		{"hole", "hole", "", nil, NotVerified, "ERR IBW3: ibweave-hole: its tables break a rule: "},
		{"configuration", "minhop", "vls: 3", nil, BadConfig, `ibweave.yaml:1:5: "3"; want 1, 2, 4, 8 or 15 data VLs`},
		{"origin", "minhop", "origin: 0x77", nil, BadConfig, "the switch of origin, 0x0000000000000077, is not in the subnet"},
		{"switch without LID", "minhop", "", func(s *Snapshot) {
			for i := range s.Nodes {
				if s.Nodes[i].GUID == 0x200003 {
					s.Ports[s.Nodes[i].First].LID = 0
				}
			}
		}, BadSubnet, `ERR IBW5: ibweave-minhop: switch 0x0000000000200003 "switch 1,0" has no LID`},
		{"small switch", "minhop", "", func(s *Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].LinearCap = 18
			}
		}, CannotRoute, "has room for LIDs up to 17, ports have LIDs up to 18"},
		{"no room", "minhop", "", func(s *Snapshot) { s.MaxLID = 17 }, BadSubnet, "ports have LIDs up to 18, OpenSM has tables up to 17"},
		{"VLs without qos", "xy", "vls: 2\nsl2vl: spread", nil, NeedsOpenSM, "qos TRUE (-Q) only"},
		{"too few VLs", "xy", "vls: 4\nsl2vl: spread", func(s *Snapshot) { s.QoS, s.MaxDataVLs = true, 2 }, CannotRoute, "has 2 data VLs, but SL 2 by way in 0 maps to VL 2"},
		{"one-way cable", "minhop", "", func(s *Snapshot) {
			for i := range s.Ports {
				if s.Ports[i].Peer >= 0 {
					s.Ports[i].Num++
					return
				}
			}
		}, BadSubnet, "has a cable to a port"},
		{"cable that only leads back", "minhop", "", func(s *Snapshot) {
			s.Ports[s.Nodes[s.Ports[back(s)].Peer].First+int32(s.Ports[back(s)].Num)].Peer = -1
		}, BadSubnet, "has a cable to a port which has none to it"},
		{"cable back to another port", "minhop", "", func(s *Snapshot) {
			s.Ports[back(s)].Num ^= 1
		}, BadSubnet, "has a cable to a port"},
		{"ports that are not there", "minhop", "", func(s *Snapshot) { s.Ports = s.Ports[:20] }, BadSubnet, "has ports that are not there"},
		{"nothing", "minhop", "", func(s *Snapshot) { s.Nodes = nil }, BadSubnet, "no switch"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := open(t, tc.config, engines...)
			before := o.Current()
			s := snapshotOf(f, rnd)
			if tc.change != nil {
				tc.change(s)
			}
			tables, err := o.Route(o.engine(tc.engine), s)
			var e *Error
			if tables != nil || !errors.As(err, &e) || e.Code != tc.code {
				t.Fatalf("%v, %v; want code %s", tables, err, tc.code)
			}
			if len(o.lines) != 1 || !strings.Contains(o.lines[0], tc.line) || o.lines[0][0] != '1' {
				t.Errorf("OpenSM's log has %q, want one line with %q", o.lines, tc.line)
			}
			if o.Current() != before {
				t.Error("the failure left tables")
			}
			if tc.code == BadConfig && tc.name == "configuration" {
				if err := o.Setup(0, Settings{}, ""); !errors.As(err, &e) || e.Code != BadConfig || len(o.lines) != 1 {
					t.Errorf("Setup: %v, and OpenSM's log has %q", err, o.lines)
				}
			}
		})
	}
}

// disordered routes as updn does, and panics where it is to keep its order on a fabric
// with other cables than the one that it has routed.
type disordered struct {
	updown.Engine
	links *int
}

func (e disordered) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	*e.links = f.NumLinks()
	return e.Engine.Route(ctx, f, opt)
}

func (e disordered) KeepOrder(f *fabric.Fabric, was []int32) ([]int32, bool) {
	if f.NumLinks() != *e.links {
		panic("where was I?")
	}
	return e.Engine.KeepOrder(f, was)
}

// A panic where tables are to be kept costs OpenSM no engine: they are those from
// scratch, and its log has the bug.
func TestStepPanics(t *testing.T) {
	whole, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})
	whole = withLIDs(t, whole, err)
	cables, _ := whole.SwitchLinks(0)
	damaged := whole.Without(cables[0])
	rnd := rand.New(rand.NewPCG(1, 2))
	o := open(t, "", compile.Engine{Engine: disordered{links: new(int)}})
	short.Must(o.Route(0, snapshotOf(whole, rnd)))(t)
	o.SubnetUp()
	got := short.Must(o.Route(0, snapshotOf(damaged, rnd)))(t)
	want := short.Must(open(t, "", compile.Engine{Engine: disordered{links: new(int)}}).Route(0, snapshotOf(damaged, rnd)))(t)
	if got.Step.Kept || !got.same(want) {
		t.Errorf("not as from scratch: %+v", got.Step)
	}
	if len(o.lines) != 1 || !strings.HasPrefix(o.lines[0], "1 ERR IBW6: ibweave-updn: a bug of ibweave") || !strings.HasSuffix(o.lines[0], "where was I?; routed from scratch instead") {
		t.Errorf("OpenSM's log has %q", o.lines)
	}
}

// back is the first port with a cable to an earlier node.
func back(s *Snapshot) int {
	for i := range s.Nodes {
		for p := int(s.Nodes[i].First); p <= int(s.Nodes[i].First)+int(s.Nodes[i].NumPorts); p++ {
			if s.Ports[p].Peer >= 0 && int(s.Ports[p].Peer) < i {
				return p
			}
		}
	}
	panic("no cable")
}

// counted counts how often it is asked.
type counted struct {
	broken
	calls *int
}

func (c counted) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	*c.calls++
	return c.broken.Route(ctx, f, opt)
}

// A subnet that an engine has refused is not tried again while it stays as it is:
// OpenSM uses its next engine and asks at every sweep. Its log has the line each
// time. What was late, or panicked, is tried again.
func TestRefusedOnce(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Hosts: 1})
	f = withLIDs(t, f, err)
	for name, want := range map[string]int{"error": 3, "hole": 3, "slow": 5, "panic": 5} {
		calls := 0
		config := ""
		if name == "slow" { // on a busy machine the others may be, too
			config = "timeout: 30ms"
		}
		o := open(t, config, compile.Engine{Engine: counted{broken{name: name}, &calls}}, compile.Engine{Engine: lft.Minhop{}})
		s := snapshotOf(f, rand.New(rand.NewPCG(1, 2)))
		other := *s
		other.QoS = true
		var line string
		for i, s := range []*Snapshot{s, s, &other, &other, s} {
			o.lines = nil
			if _, err := o.Route(0, s); err == nil || len(o.lines) != 1 {
				t.Fatalf("%s: %v, %q", name, err, o.lines)
			}
			if i > 0 && o.lines[0] != line {
				t.Errorf("%s: %q, and before %q", name, o.lines[0], line)
			}
			line = o.lines[0]
			if _, err := o.Route(1, s); err != nil && name != "slow" {
				t.Fatal(err)
			}
		}
		if calls != want {
			t.Errorf("%s was asked %d times, want %d", name, calls, want)
		}
	}
}

// With verify: warn what breaks a rule is installed.
func TestVerifyWarn(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Hosts: 1})
	f = withLIDs(t, f, err)
	o := open(t, "verify: warn", compile.Engine{Engine: broken{name: "hole"}})
	short.Must(o.Route(0, snapshotOf(f, rand.New(rand.NewPCG(1, 2)))))(t)
	if len(o.lines) != 1 || !strings.HasSuffix(o.lines[0], "; installed all the same (verify: warn)") {
		t.Errorf("%q", o.lines)
	}
}

// Cables between switches that are sick, and end ports without LIDs, are left
// out.
func TestSickCables(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Hosts: 1})
	f = withLIDs(t, f, err)
	s := snapshotOf(f, rand.New(rand.NewPCG(3, 4)))
	at := func(guid fabric.GUID, port int) *Port {
		for i := range s.Nodes {
			if s.Nodes[i].GUID == guid {
				return &s.Ports[int(s.Nodes[i].First)+port]
			}
		}
		t.Fatal(guid)
		return nil
	}
	at(0x200004, 1).Sick = true // a cable between switches
	at(0x200000, 5).Sick = true // one to a host
	at(0x100000, 1).LID = 0     // another host
	o := open(t, "")
	got := short.Must(o.Route(o.engine("updn"), s))(t)
	if n, want := got.Fabric.NumLinks(), f.NumLinks()-2; n != want {
		t.Errorf("%d cables, want %d", n, want)
	}
	sw, _ := got.Fabric.SwitchByGUID(0x200004)
	if got.Fabric.Peer(got.Fabric.Port(sw, 1)) != fabric.NoPort {
		t.Error("the sick cable is used")
	}
	log := o.ownLog(t)
	for _, want := range []string{`without a LID, and left out: port 1 of 0x0000000000100000 "host 0,0"`, "unhealthy, and not used: cable from port "} {
		if !strings.Contains(log, want) {
			t.Errorf("our log has no %q:\n%s", want, log)
		}
	}
}

// SL-to-VL tables, path SLs and VL arbitration are those of the routing.
func TestLanes(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{5, 4}, Wrap: []bool{true, true}, Hosts: 1})
	f = withLIDs(t, f, err)
	s := snapshotOf(f, rand.New(rand.NewPCG(1, 2)))
	s.QoS = true
	s.Ports[s.Nodes[0].First+1].OpVLs = 1
	o := open(t, "vlarb: equal")
	got := short.Must(o.Route(o.engine("xy"), s))(t)
	if !got.NeedsQoS() || !got.HasPathSLs() || !o.ArbitratesVLs(got) || got.LatePorts != 1 || !got.SweepAgain {
		t.Errorf("%v %v %v %d %v", got.NeedsQoS(), got.HasPathSLs(), o.ArbitratesVLs(got), got.LatePorts, got.SweepAgain)
	}
	// OpenSM sweeps again for a port that has fewer VLs than it can have, once.
	again, err := o.Route(o.engine("xy"), s)
	if err != nil || again.LatePorts != 1 || again.SweepAgain {
		t.Errorf("%v %+v", err, again)
	}
	ready := *s
	ready.Ports = slices.Clone(s.Ports)
	ready.Ports[s.Nodes[0].First+1].OpVLs = 2
	other, err := o.Route(o.engine("xy"), &ready)
	if err != nil || other.LatePorts != 0 || other.SweepAgain {
		t.Errorf("%v %+v", err, other)
	}
	o.lines = nil
	for _, t := range []*Tables{got, again, other} {
		o.Written(t)
	}
	const late = "2 ibweave-xy: 1 ports have fewer VLs at this moment than the tables use, and OpenSM cuts their SL-to-VL tables"
	if len(o.lines) != 5 || o.lines[1] != late+": it is to sweep again" || o.lines[3] != late+", sweep after sweep" {
		t.Errorf("%q", o.lines)
	}
	r := got.Routing
	for in, out := range r.SL2VL.PortPairs() {
		n := got.Fabric.Owner(out)
		table, ok := got.SL2VL(got.Fabric.Node(n).GUID, in, got.Fabric.Num(out))
		want := r.SL2VL.At(in, out)
		for sl, vl := range want {
			if have := fabric.VL(table[sl/2] >> (4 * (1 - sl%2)) & 15); !ok || have != vl {
				t.Fatalf("%s by %d: SL %d has VL %d, want %d", got.Fabric.PortName(out), in, sl, have, vl)
			}
		}
	}
	for _, x := range []struct {
		guid    fabric.GUID
		in, out fabric.PortNum
	}{{0x77, 0, 1}, {0x200000, 9, 1}, {0x200000, 1, 9}, {0x100000, 0, 0}} {
		if _, ok := got.SL2VL(x.guid, x.in, x.out); ok {
			t.Errorf("a table for %v", x)
		}
	}
	for _, from := range f.CAPorts() {
		for _, to := range f.CAPorts() {
			sl, ok := got.PathSL(f.LID(from), f.LID(to))
			if want := r.PathSLs.Row(f.Owner(f.Peer(from)))[f.LID(to)]; !ok || sl != want {
				t.Fatalf("path %d to %d: SL %d, want %d", f.LID(from), f.LID(to), sl, want)
			}
		}
	}
	for _, pair := range [][2]fabric.LID{{0, 1}, {1, 0}, {1, 0xbfff}, {0xc001, 1}} {
		if _, ok := got.PathSL(pair[0], pair[1]); ok {
			t.Errorf("an SL for %v", pair)
		}
	}
	low, high := make([]Arbitration, 8), []Arbitration{{0, 4}, {1, 4}}
	if !o.VLArb(got, 0, low) || !o.VLArb(got, 2, high) {
		t.Fatal("no arbitration")
	}
	if low[0] != (Arbitration{0, 64}) || low[1] != (Arbitration{1, 64}) || low[2] != (Arbitration{}) || high[0] != (Arbitration{}) {
		t.Errorf("%v %v", low, high)
	}
	var none *Tables
	if _, ok := none.SL2VL(1, 1, 1); ok {
		t.Error("a table of nothing")
	}
	if _, ok := none.PathSL(1, 1); ok {
		t.Error("an SL of nothing")
	}
}

// BenchmarkRoute is all that happens in OpenSM's callbacks but C.
func BenchmarkRoute(b *testing.B) {
	for _, radix := range []int{12, 24} {
		f, err := gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: 3})
		f = withLIDs(b, f, err)
		s := snapshotOf(f, rand.New(rand.NewPCG(1, 2)))
		s.DumpsTables = false
		s.MaxLID = fabric.MaxUnicastLID - 1
		b.Run(fmt.Sprintf("radix%d", radix), func(b *testing.B) {
			o := open(b, "")
			b.ReportAllocs()
			var sum Timing
			i := 0
			for b.Loop() {
				next := *s
				next.MaxLID ^= fabric.LID(i & 1) // or the subnet would be unchanged
				i++
				t := short.Must(o.Route(0, &next))(b)
				sum.Snapshot += t.Timing.Snapshot
				sum.Route += t.Timing.Route
				sum.Verify += t.Timing.Verify
			}
			b.ReportMetric(float64(sum.Snapshot.Microseconds())/float64(b.N), "snapshot-us/op")
			b.ReportMetric(float64(sum.Route.Microseconds())/float64(b.N), "route-us/op")
			b.ReportMetric(float64(sum.Verify.Microseconds())/float64(b.N), "verify-us/op")
		})
	}
}

// BenchmarkSnapshot is what it takes to make the model of OpenSM's subnet.
func BenchmarkSnapshot(b *testing.B) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 24, Levels: 3})
	f = withLIDs(b, f, err)
	s := snapshotOf(f, rand.New(rand.NewPCG(1, 2)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.fabric(nil); err != nil {
			b.Fatal(err)
		}
	}
}
