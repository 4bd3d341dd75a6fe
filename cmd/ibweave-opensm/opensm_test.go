package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/cmd/ibweave-opensm/plugin"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/built"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

const library = "libibweave-opensm.so"

// libraries is the folder of the plugin as it is shipped, in lib, and with the
// engine that panics, in fault.
var libraries struct{ lib, fault string }

// withFaults are the build tags of the plugin with the tests' engines.
const withFaults = "opensm,ibweave_fault"

// The tests load the plugin into the real OpenSM, so it is built first. Programs find it by LD_LIBRARY_PATH.
func TestMain(m *testing.M) {
	short.UseMemory()
	flag.Parse()
	if testing.Short() {
		return // all start programs
	}
	for dir, tags := range map[*string]string{&libraries.lib: "opensm", &libraries.fault: withFaults} {
		file, err := built.Program(library, ".", "-tags", tags, "-buildmode=c-shared", "-ldflags=-w")
		if err != nil {
			fmt.Fprintf(os.Stderr, "the plugin cannot be built; on Debian and Ubuntu, apt install libopensm-dev libibumad-dev gcc:\n%v\n", err)
			os.Exit(1)
		}
		*dir = filepath.Dir(file)
	}
	os.Setenv("LD_LIBRARY_PATH", libraries.lib)
	os.Exit(m.Run())
}

// testbed is a fabric in ibsim, with LIDs.
type testbed struct {
	*ibsim.Sim
	f     *fabric.Fabric
	dir   string
	flags string          // of OpenSM's log, "" for most
	file  os.FileInfo     // opensm.log
	read  strings.Builder // what has been read of it
}

// start loads a fabric, with dense LIDs, into ibsim, beside other tests.
func start(t *testing.T, f *fabric.Fabric, err error) *testbed {
	t.Helper()
	t.Parallel()
	return startAlone(t, f, err)
}

// startAlone is start for a test that other tests must not disturb.
func startAlone(t *testing.T, f *fabric.Fabric, err error) *testbed {
	t.Helper()
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: lft.KeepLMC})
	}
	short.Check(t, err)
	sim, twin := ibsimtest.Start(t, f)
	return &testbed{Sim: sim, f: twin.Fabric, dir: t.TempDir()}
}

// opensm runs OpenSM once with the plugin.
func (s *testbed) opensm(t *testing.T, lib, config string, cfg ibsim.OpenSMConfig) (run *ibsim.OpenSMRun, log []string) {
	t.Helper()
	file := filepath.Join(s.dir, "ibweave.yaml")
	writeFile(t, file, []byte(config))
	cfg.Dir = s.dir
	cfg.LMC = lmcOf(s.f)
	cfg.Env = append(cfg.Env, "LD_LIBRARY_PATH="+lib)
	cfg.Options = append([]string{"event_plugin_name ibweave-opensm", "event_plugin_options --config " + file}, cfg.Options...)
	cfg.Line = func(l ibsim.LogLine) { log = append(log, l.Message) }
	if cfg.Flags == 0 {
		cfg.Flags = 0x47
	}
	run, err := ibsim.RunOpenSM(t.Context(), s.Sim, cfg)
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(log, "\n"))
	}
	if !run.UP {
		t.Fatalf("no SUBNET UP\n%s", strings.Join(log, "\n"))
	}
	return run, log
}

func lmcOf(f *fabric.Fabric) (lmc uint8) {
	for _, p := range f.CAPorts() {
		lmc = max(lmc, f.LMC(p))
	}
	return lmc
}

// ours is the lines of the plugin in OpenSM's log, of level error.
func ours(log []string) (lines []string) {
	for _, l := range log {
		if strings.HasPrefix(l, "ibweave: ERR ") {
			lines = append(lines, l)
		}
	}
	return lines
}

// ownLog is our log.
func (s *testbed) ownLog(t *testing.T) string {
	t.Helper()
	data := readFile(t, filepath.Join(s.dir, "ibweave.log"))
	return string(data)
}

// compiled is what the compiler makes of the fabric.
func (s *testbed) compiled(t *testing.T, engine string, opt compile.Options) *compile.Result {
	t.Helper()
	e := short.Must(compile.EngineByName(engine))(t)
	opt.LIDs.LMC = lft.KeepLMC
	return short.Must(compile.Run(context.Background(), s.f, e, opt))(t)
}

// sameDump compares a dump of OpenSM's with ours.
func (s *testbed) sameDump(t *testing.T, name string, write func(*bytes.Buffer) error) {
	t.Helper()
	got := readFile(t, filepath.Join(s.dir, name))
	var want bytes.Buffer
	short.Check(t, write(&want))
	if !bytes.Equal(got, want.Bytes()) {
		g, w := strings.Split(string(got), "\n"), strings.Split(want.String(), "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Errorf("%s, line %d: %q, want %q", name, i+1, g[i], w[i])
				return
			}
		}
		t.Errorf("%s: %d lines, want %d", name, len(g), len(w))
	}
}

// OpenSM's own dumps after a sweep with the plugin are, byte for byte, those of
// the compiler: forwarding tables, lid matrix, and its list of routes, which goes
// by both.
func TestSameAsCompiler(t *testing.T) {
	small := func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1}) }
	for _, tc := range short.Part(1, []struct {
		name, engine, config string
		make                 func() (*fabric.Fabric, error)
		lmc                  int
		route                func(*fabric.Fabric) lft.Options
	}{
		{"4x4", "xy", "", small, 0, nil},
		{"16x16", "xy", "", func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: []int{16, 16}, Hosts: 1}) }, 0, nil},
		{"fat tree", "updn", "", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 3}) }, 0, nil},
		{"irregular, LMC 2, roots", "updn", "roots: [0x200003, 0x200001]", func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 24, Seed: 7})
		}, 2, func(f *fabric.Fabric) lft.Options {
			a, _ := f.SwitchByGUID(0x200003)
			b, _ := f.SwitchByGUID(0x200001)
			return lft.Options{Roots: []fabric.NodeID{a, b}}
		}},
		{"spam", "spam", "", func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 24, Seed: 7})
		}, 0, nil},
		{"minhop", "minhop", "", small, 0, nil},
		{"west first", "west-first", "dims: 4x4", small, 0, func(*fabric.Fabric) lft.Options { return lft.Options{Dims: []int{4, 4}} }},
	}) {
		t.Run(tc.name, func(t *testing.T) {
			f, err := tc.make()
			if err == nil {
				f, err = lft.AssignLIDs(f, lft.LIDOptions{LMC: tc.lmc})
			}
			s := start(t, f, err)
			run, log := s.opensm(t, libraries.lib, tc.config, ibsim.OpenSMConfig{Engine: "ibweave-" + tc.engine})
			if run.Engine != "ibweave-"+tc.engine || len(ours(log)) > 0 {
				t.Errorf("OpenSM used %s; %q", run.Engine, ours(log))
			}
			opt := compile.Options{}
			if tc.route != nil {
				opt.Route = tc.route(s.f)
			}
			r := s.compiled(t, tc.engine, opt)
			tables := r.Routing.Tables
			s.sameDump(t, "opensm-lfts.dump", func(b *bytes.Buffer) error { return dump.WriteLFTs(b, s.f, tables, dump.WriteOptions{}) })
			s.sameDump(t, "opensm-lid-matrix.dump", func(b *bytes.Buffer) error { return dump.WriteLIDMatrix(b, s.f, tables, dump.WriteOptions{}) })
			s.sameDump(t, "opensm.fdbs", func(b *bytes.Buffer) error { return dump.WriteFDBs(b, s.f, tables, dump.WriteOptions{}) })
		})
	}
}

// Whatever goes wrong is one line in OpenSM's log, which says what, and OpenSM's
// next engine, here dor, whose tables are then exactly those that it makes
// without the plugin.
func TestFailuresEndInNextEngine(t *testing.T) {
	grid := func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1}) }
	ring := func() (*fabric.Fabric, error) {
		return mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 1})
	}
	tree := func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}) }
	other := filepath.Join(t.TempDir(), "other")
	otherVersion(t, other)
	for _, tc := range short.Part(1, []struct {
		name, lib, engine, config string
		options                   []string
		make                      func() (*fabric.Fabric, error)
		want                      string // the line, with FILE for the configuration
		ours                      bool   // that it is our line
	}{
		{"panic", libraries.fault, "ibweave-fault", "", nil, grid,
			"ibweave: ERR IBW6: ibweave-fault: a bug of ibweave, please report it with its log: a fault on purpose; OpenSM goes on with its next engine", true},
		{"tables that break a rule", libraries.fault, "ibweave-wrong", "", nil, grid,
			`ibweave: ERR IBW3: ibweave-wrong: its tables break a rule: unicast-unreachable: LID 32 of "host 3,3"[1]: 1 port cannot reach it; packets from "host 0,0"[1] end at switch "switch 0,0" (0x0000000000200000), which has no entry for it; OpenSM goes on with its next engine`, true},
		{"version", other, "ibweave-xy", "", nil, grid,
			"Error loading plugin 'ibweave-opensm': OpenSM version mismatch - plugin was built against OpenSM 3.3.99 version of OpenSM. Skip loading.", false},
		{"no configuration file", libraries.lib, "ibweave-xy", "", []string{"event_plugin_options --config /nowhere/ibweave.yaml"}, grid,
			"ibweave: ERR IBW1: stat /nowhere/ibweave.yaml: no such file or directory", true},
		{"an unreadable configuration", libraries.lib, "ibweave-xy", "", []string{"event_plugin_options --config /proc/self/mem"}, grid,
			"ibweave: ERR IBW1: read /proc/self/mem: input/output error", true},
		{"groups that are none", libraries.lib, "ibweave-xy", "multicast:\n  groups: /proc/self/cmdline\n", nil, grid,
			"ibweave: ERR IBW1: ", true},
		{"a key that there is not", libraries.lib, "ibweave-xy", "vls: 2\nroot: [0x1]\n", nil, grid,
			`ibweave: ERR IBW1: FILE:2: unknown key "root"; want dims, flap, incremental, labels, log, metrics, multicast, no-wrap, origin, rebalance, repair, roots, shadow, sl2vl, timeout, traffic, uniform-floor, verify, vlarb, vls; root: [0x1]`, true},
		{"no mesh", libraries.lib, "ibweave-xy", "", nil, tree,
			"ibweave: ERR IBW2: ibweave-xy: xy cannot route this fabric: ", true},
		{"VLs without qos", libraries.lib, "ibweave-xy", "", nil, ring,
			"ibweave: ERR IBW4: ibweave-xy: it needs SL-to-VL tables, which OpenSM writes with qos TRUE (-Q) only; OpenSM goes on with its next engine", true},
		{"unicast cache", libraries.lib, "ibweave-updn", "", []string{"use_ucast_cache TRUE"}, grid,
			"ibweave: ERR IBW4: ibweave-updn: use_ucast_cache TRUE makes OpenSM change tables without asking the engine; set it FALSE", true},
		{"too few VLs", libraries.lib, "ibweave-xy", "", []string{"qos TRUE", "max_op_vls 1"}, ring,
			"ibweave: ERR IBW2: ibweave-xy: ", true},
	}) {
		t.Run(tc.name, func(t *testing.T) {
			f, err := tc.make()
			s := start(t, f, err)
			run, log := s.opensm(t, tc.lib, tc.config, ibsim.OpenSMConfig{Engine: tc.engine + ",dor", Options: tc.options})
			short.Equal(t, run.Engine, "dor", "OpenSM used")
			want := strings.ReplaceAll(tc.want, "FILE", filepath.Join(s.dir, "ibweave.yaml"))
			found := 0
			for _, l := range log {
				if strings.Contains(l, want) {
					found++
				}
			}
			if lines := ours(log); found != 1 || tc.ours && len(lines) != 1 {
				t.Errorf("want the line once:\n%s\ngot\n%s", want, strings.Join(run.Errors, "\n"))
			}
			// Our log has the same line once, as far as we have come.
			if tc.ours {
				code, text, _ := strings.Cut(strings.TrimPrefix(want, "ibweave: ERR "), ": ")
				text, _, _ = strings.Cut(strings.TrimPrefix(text, tc.engine+": "), "; OpenSM goes on")
				lines := regexp.MustCompile(`(?m)^\S+\tERROR\t(.*)\{"code": "(.*?)"`).FindAllStringSubmatch(s.ownLog(t), -1)
				if len(lines) != 1 || lines[0][2] != code || !strings.Contains(lines[0][1], text) {
					t.Errorf("our log has %q, want one line with\n%s", lines, text)
				}
			}
			got := short.Must(os.ReadFile(filepath.Join(s.dir, "opensm-lfts.dump")))(t)
			alone := *s
			alone.dir = t.TempDir()
			short.Must(ibsim.RunOpenSM(t.Context(), s.Sim, ibsim.OpenSMConfig{Engine: "dor", Dir: alone.dir, Flags: 0x47}))(t)
			plain := readFile(t, filepath.Join(alone.dir, "opensm-lfts.dump"))
			if !bytes.Equal(got, plain) {
				t.Error("OpenSM's dor has other tables after the plugin failed than without it")
			}
		})
	}
}

// otherVersion makes a copy of the plugin for another version of OpenSM.
func otherVersion(t *testing.T, dir string) {
	t.Helper()
	data := short.Must(os.ReadFile(filepath.Join(libraries.lib, library)))(t)
	const version = "OpenSM 3.3."
	i := bytes.Index(data, []byte(version))
	if i < 0 || bytes.LastIndex(data, []byte(version)) != i {
		t.Fatalf("the plugin does not have %q once", version)
	}
	copy(data[i+len(version):], "99")
	short.Check(t, os.Mkdir(dir, 0o700))
	short.Check(t, os.WriteFile(filepath.Join(dir, library), data, 0o700))
}

// With verify: warn the tables are installed, and both logs have what is wrong.
func TestVerifyWarn(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1})
	s := start(t, f, err)
	run, log := s.opensm(t, libraries.fault, "verify: warn\n", ibsim.OpenSMConfig{Engine: "ibweave-wrong,dor"})
	if lines := ours(log); run.Engine != "ibweave-wrong" || len(lines) != 1 || !strings.HasSuffix(lines[0], "; installed all the same (verify: warn)") {
		t.Errorf("OpenSM used %s, and has %q", run.Engine, lines)
	}
	if l := s.ownLog(t); !strings.Contains(l, "installed although its tables break a rule: unicast-unreachable") {
		t.Error(l)
	}
}

// On a torus, SL-to-VL tables are what the compiler makes, byte for byte in
// OpenSM's dump; and with vlarb: equal all VLs in use have equal weights in the
// table of low priority of every port, as read from the ports.
func TestLanes(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 1})
	s := start(t, f, err)
	transport := short.Must(s.Dial(t.Context(), ""))(t)
	c := subnet.New(transport, subnet.Options{Timeout: 10 * time.Second})
	defer c.Close()
	for _, tc := range []struct {
		config string
		low    []byte // how the table of low priority begins: VL and weight of each entry
		high   []byte
	}{
		// OpenSM's defaults, which have all VLs in both.
		{"", []byte{0, 0, 1, 4, 2, 4}, []byte{0, 4, 1, 0}},
		{"vlarb: equal\n", []byte{0, 64, 1, 64, 0, 0}, []byte{0, 0, 0, 0}},
	} {
		run, log := s.opensm(t, libraries.lib, tc.config, ibsim.OpenSMConfig{Engine: "ibweave-xy", Options: []string{"qos TRUE"}})
		if run.Engine != "ibweave-xy" || len(ours(log)) > 0 {
			t.Fatalf("OpenSM used %s; %q", run.Engine, ours(log))
		}
		r := s.compiled(t, "xy", compile.Options{})
		s.sameDump(t, "opensm-lfts.dump", func(b *bytes.Buffer) error {
			return dump.WriteLFTs(b, s.f, r.Routing.Tables, dump.WriteOptions{})
		})
		s.sameDump(t, "opensm-sl2vl.dump", func(b *bytes.Buffer) error { return dump.WriteSL2VL(b, r.Routing.SL2VL, dump.WriteOptions{}) })
		for p := range fabric.PortID(s.f.NumPorts()) {
			if s.f.Peer(p) == fabric.NoPort {
				continue
			}
			n, out := s.f.Owner(p), s.f.Num(p)
			target := subnet.Target{LID: s.f.LID(p)}
			if s.f.IsSwitch(n) {
				target.LID = s.f.LID(s.f.PortBase(n))
			} else {
				out = 0
			}
			for block, want := range map[uint32][]byte{1: tc.low, 3: tc.high} { // IBA 14.2.5.9
				got := short.Must(c.Get(t.Context(), target, mad.AttrVLArbitrationTable, block<<16|uint32(out)))(t)
				if !bytes.Equal(got[:len(want)], want) {
					t.Fatalf("%q: %s, block %d: %v, want %v", tc.config, s.f.PortName(p), block, got, want)
				}
			}
		}
	}
}

// Ports that have one VL when OpenSM begins have their SL-to-VL tables cut off to
// it, and are given more VLs in the same sweep. So it sweeps again by itself, and
// then the tables are whole.
func TestLatePorts(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 1})
	s := start(t, f, err)
	short.Must(ibsim.RunOpenSM(t.Context(), s.Sim, ibsim.OpenSMConfig{Engine: "minhop", Dir: t.TempDir(), Options: []string{"qos TRUE", "max_op_vls 1"}}))(t)
	d := s.stay(t, "ibweave-xy", "", "qos TRUE")
	d.wait("-> SUBNET UP\n", 2)
	log := d.log()
	late := regexp.MustCompile(`ibweave: ibweave-xy: \d+ ports have fewer VLs at this moment than the tables use, and OpenSM cuts their SL-to-VL tables: it is to sweep again\n`)
	if n := len(late.FindAllString(log, -1)); n != 1 || strings.Contains(log, "sweep after sweep") {
		t.Errorf("%d lines that ports are late\n%s", n, log)
	}
	r := s.compiled(t, "xy", compile.Options{})
	transport := short.Must(s.Dial(t.Context(), ""))(t)
	c := subnet.New(transport, subnet.Options{Timeout: 10 * time.Second})
	defer c.Close()
	found := short.Must(c.Discover(t.Context()))(t)
	tables, err := c.Pull(t.Context(), found, subnet.PullOptions{SL2VL: true})
	if err != nil || len(tables.Problems) > 0 {
		t.Fatal(err, tables.Problems)
	}
	used := make(map[fabric.VL]bool)
	for in, out := range r.Routing.SL2VL.PortPairs() {
		if s.f.Peer(out) == fabric.NoPort {
			continue
		}
		got, want := tables.SL2VL.At(in, out), r.Routing.SL2VL.At(in, out)
		if *got != *want {
			t.Fatalf("from port %d to %s: %v, want %v", in, s.f.PortName(out), *got, *want)
		}
		for _, vl := range want {
			used[vl] = true
		}
	}
	short.Equal(t, len(used), 2, "VLs", used, "are used")
}

// The sample configuration and the documentation name all engines, and no others.
func TestEnginesAreNamed(t *testing.T) {
	want := []string{"auto"}
	for i := range compile.Engines {
		want = append(want, compile.Engines[i].Name())
	}
	slices.Sort(want)
	for file, list := range map[string]string{"ibweave.yaml": `(?s)# Engines: (.*?)\. The keys`, "../../docs/plugin.md": `(?s)The engines are (.*?): the results are`} {
		data := readFile(t, file)
		found := regexp.MustCompile(list).FindSubmatch(data)
		if found == nil {
			t.Errorf("%s has no list of engines", file)
			continue
		}
		var got []string
		for _, name := range regexp.MustCompile(`-([a-z][a-z-]*[a-z])`).FindAllSubmatch(found[1], -1) {
			got = append(got, string(name[1]))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s names the engines %v, want %v", file, got, want)
		}
	}
}

// The sample configuration says what the defaults are.
func TestSampleConfiguration(t *testing.T) {
	data := readFile(t, "ibweave.yaml")
	got := short.Must(plugin.ParseConfig("ibweave.yaml", data))(t)
	want, err := plugin.ParseConfig("ibweave.yaml", nil)
	if err != nil || !gocmp.Equal(got, want) {
		t.Errorf("%v %s", err, gocmp.Diff(want, got))
	}
	// What is commented out can be used.
	text := regexp.MustCompile(`(?m)^( *)#([a-z0-9-]+: )`).ReplaceAll(data, []byte("$1$2"))
	text = bytes.ReplaceAll(text, []byte("event_plugin"), nil)
	if got, err = plugin.ParseConfig("ibweave.yaml", text); err != nil || len(got.Roots) != 1 || got.VLs != 2 || got.Log.File == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// writeFile makes a file that has data.
func writeFile(t testing.TB, name string, data []byte) {
	t.Helper()
	short.Check(t, os.WriteFile(name, data, 0o600))
}
