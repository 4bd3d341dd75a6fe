package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/dump/dumptest"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// daemon is an OpenSM that stays.
type daemon struct {
	*testbed
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser // its console
	ended chan error
}

// stay starts OpenSM with the plugin and waits until the subnet is up.
func (s *testbed) stay(t *testing.T, engine, config string, options ...string) *daemon {
	t.Helper()
	d := s.begin(t, "", engine, config, options...)
	d.wait("SUBNET UP", 1)
	return d
}

// begin starts OpenSM with the plugin, attached to a node, "" for the centre.
func (s *testbed) begin(t *testing.T, node, engine, config string, options ...string) *daemon {
	t.Helper()
	file := filepath.Join(s.dir, "ibweave.yaml")
	lines := append([]string{
		"event_plugin_name ibweave-opensm", "event_plugin_options --config " + file,
		"routing_engine " + engine, "lmc " + strconv.Itoa(int(lmcOf(s.f))),
		"log_file " + filepath.Join(s.dir, "opensm.log"), "dump_files_dir " + s.dir, "force_log_flush TRUE",
		"partition_config_file " + filepath.Join(s.dir, "partitions.conf"), "prefix_routes_file " + filepath.Join(s.dir, "prefix-routes.conf"),
		"per_module_logging_file " + filepath.Join(s.dir, "per-module-logging.conf"), "sweep_interval 0",
	}, options...)
	conf := filepath.Join(s.dir, "opensm.conf")
	for name, text := range map[string]string{file: config, conf: strings.Join(lines, "\n") + "\n"} {
		writeFile(t, name, []byte(text))
	}
	return s.launch(t, conf, node, cmp.Or(s.flags, "0x4f"))
}

// launch starts OpenSM by a file of options, whose log_file is opensm.log in the testbed's
// folder. LIDs come from the folder cache there.
func (s *testbed) launch(t *testing.T, conf, node, flags string) *daemon {
	t.Helper()
	cache := filepath.Join(s.dir, "cache")
	short.Check(t, os.MkdirAll(cache, 0o700))
	d := &daemon{testbed: s, t: t, cmd: s.Command(t.Context(), "opensm", "-F", conf, "-D", flags), ended: make(chan error, 1)}
	d.cmd.Env = append(d.cmd.Env, "OSM_TMP_DIR="+s.dir, "OSM_CACHE_DIR="+cache)
	if node != "" {
		d.cmd.Env = append(d.cmd.Env, "SIM_HOST="+node)
	}
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	d.cmd.Cancel = nil
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	short.Check(t, d.cmd.Start())
	go func() { d.ended <- d.cmd.Wait() }()
	t.Cleanup(func() { _ = d.cmd.Process.Kill() })
	return d
}

// log is OpenSM's log, of which each call reads what was added.
func (d *daemon) log() string {
	f, err := os.Open(filepath.Join(d.dir, "opensm.log"))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	short.Check(d.t, err)
	defer f.Close()
	if info := short.Must(f.Stat())(d.t); d.file == nil || !os.SameFile(info, d.file) { // SIGUSR1 opens another
		d.file = info
		d.read.Reset()
	}
	short.Must(f.Seek(int64(d.read.Len()), io.SeekStart))(d.t)
	short.Must(io.Copy(&d.read, f))(d.t)
	return d.read.String()
}

// wait waits until OpenSM's log has a text as often as times says.
func (d *daemon) wait(text string, times int) {
	d.t.Helper()
	n, at := 0, 0
	short.Await(d.t, func() bool {
		log := d.log()
		if len(log) < at {
			n, at = 0, 0 // another file
		}
		end := strings.LastIndexByte(log, '\n') + 1
		n, at = n+strings.Count(log[at:end], text), end
		if n >= times {
			return true
		}
		select {
		case err := <-d.ended:
			d.t.Fatalf("OpenSM has ended: %v\n%s", err, d.log())
		default:
		}
		return false
	}, "OpenSM's log without", text, times, "times")
}

// run is what a diagnostic program prints.
func (s *testbed) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := s.Command(t.Context(), name, args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := s.Run(t.Context(), cmd); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out.Bytes())
	}
	return out.String()
}

// OpenSM's signals work with Go's runtime in the process: SIGHUP makes it route
// again, SIGUSR1 reopen its log, SIGTERM end. Only its main thread takes them: a
// handler that ran on a stack of Go's would overrun it.
func TestSignals(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1})
	s := start(t, f, err)
	d := s.stay(t, "ibweave-xy", "")
	pid := d.cmd.Process.Pid
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(tasks) < 5 {
		t.Fatal(tasks, err)
	}
	const taken = 1<<(syscall.SIGHUP-1) | 1<<(syscall.SIGINT-1) | 1<<(syscall.SIGTERM-1) | 1<<(syscall.SIGUSR1-1)
	for _, name := range tasks {
		data := readFile(t, name)
		_, rest, ok := strings.Cut(string(data), "\nSigBlk:\t")
		mask, err := strconv.ParseUint(strings.TrimSpace(rest[:16]), 16, 64)
		if !ok || err != nil {
			t.Fatalf("%s: %v\n%s", name, err, data)
		}
		main := strings.Contains(name, fmt.Sprintf("/task/%d/", pid))
		if blocked := mask & taken; main && blocked != 0 || !main && blocked != taken {
			t.Errorf("%s blocks %#x; want %#x of all threads but the main one", name, blocked, taken)
		}
	}
	const routed = "ibweave: ibweave-xy: 16 switches, LIDs up to 32, clean, in "
	d.wait(routed, 1)
	for n := 2; n <= 6; n++ {
		d.signal(syscall.SIGHUP)
		d.wait(routed, n)
	}
	moved := filepath.Join(s.dir, "opensm.log")
	short.Check(t, os.Rename(moved, moved+".1"))
	d.signal(syscall.SIGUSR1)
	d.signal(syscall.SIGHUP)
	d.wait(routed, 1)
	d.signal(syscall.SIGTERM)
	select {
	case err := <-d.ended:
		if err != nil {
			t.Errorf("OpenSM, told to end: %v", err)
		}
	case <-time.After(hung):
		t.Error("OpenSM does not end on SIGTERM")
	}
}

// groupsOn is some groups of hosts: one sender, several, send-only members.
func groupsOn(f *fabric.Fabric) []mft.Group {
	ports := f.CAPorts()
	var groups []mft.Group
	for i := range 8 {
		var g mft.Group
		g.Name = fmt.Sprintf("group %d", i)
		for k, p := range ports {
			if (k*7+i*5)%(i+2) == 0 {
				g.Receivers = append(g.Receivers, p)
			}
		}
		g.Senders = g.Receivers
		if i%2 == 1 {
			g.Senders = slices.Clone(append(g.Senders, ports[i], ports[len(ports)-1-i]))
			slices.Sort(g.Senders)
			g.Senders = slices.Compact(g.Senders)
		}
		groups = append(groups, g)
	}
	return groups
}

// With joined groups the multicast tables, by MGID, are those of the compiler,
// and those that the simulated switches then have.
func TestMulticast(t *testing.T) {
	for _, tc := range short.Part(1, []struct {
		name, engine, scheme string
		make                 func() (*fabric.Fabric, error)
		options              []string
	}{
		{"mesh", "xy", "comb", func() (*fabric.Fabric, error) {
			return mesh.Generate(mesh.Spec{Dims: []int{4, 5}, Hosts: 2})
		}, nil},
		{"fat tree", "updn", "updn-tree", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}) }, nil},
		{"torus", "xy", "comb", func() (*fabric.Fabric, error) {
			return mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 1})
		}, []string{"qos TRUE"}},
		{"irregular", "spam", "spam", func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 24, Seed: 7})
		}, nil},
	}) {
		t.Run(tc.name, func(t *testing.T) {
			f, err := tc.make()
			s := start(t, f, err)
			r := s.compiled(t, tc.engine, compile.Options{
				Groups:    func(f *fabric.Fabric) ([]mft.Group, error) { return groupsOn(f), nil },
				Multicast: tc.scheme,
			})
			if r.Verify.Multicast.CreditLoops > 0 || r.Verify.Multicast.Missing > 0 {
				t.Fatal(r.Verify.Findings)
			}
			// OpenSM gives the groups other MLIDs than ours: those of partitions.conf.
			moved := slices.Clone(r.Plan.Trees)
			for i := range moved {
				moved[i].MLID = mft.MinMLID + 20 + fabric.LID(len(moved)-i)
			}
			file := filepath.Join(s.dir, "sa.dump")
			writeFile(t, file, dumptest.SADump(s.f, moved))
			run, log := s.opensm(t, libraries.lib, "", ibsim.OpenSMConfig{Engine: "ibweave-" + tc.engine, Options: append(tc.options, "sa_db_file "+file)})
			if run.Engine != "ibweave-"+tc.engine || len(ours(log)) > 0 {
				t.Fatal(run.Engine, ours(log), run.Errors)
			}
			if l := s.ownLog(t); !strings.Contains(l, `"verified": true`) || strings.Contains(l, "steps down") {
				t.Error(l)
			}
			data := readFile(t, filepath.Join(s.dir, "opensm.mcfdbs"))
			got, problems, err := dump.ReadMFTs("opensm.mcfdbs", data, s.f, dump.Options{})
			if err != nil || len(problems) > 0 {
				t.Fatal(err, problems)
			}
			for i, tree := range r.Plan.Trees {
				want, have := r.Plan.Tables.Ports(tree.MLID), got.Ports(moved[i].MLID)
				if !slices.Equal(want, have) {
					t.Errorf("%s, MGID %s: OpenSM has %d ports, want %d:\n%v\n%v", tree.Name, tree.MGID, len(have), len(want), portNames(s.f, have), portNames(s.f, want))
				}
			}
			short.Equal(t, len(r.Plan.Trees), 8, "trees, want one for each group")
			// What the switches have, by a program that knows nothing of us.
			var text strings.Builder
			for n := range fabric.NodeID(s.f.NumSwitches()) {
				text.WriteString(s.run(t, "ibroute", "-M", strconv.Itoa(int(s.f.LID(s.f.PortBase(n))))))
			}
			read, problems, err := dump.ReadMFTs("ibroute", []byte(text.String()), s.f, dump.Options{})
			if err != nil || len(problems) > 0 {
				t.Fatal(err, problems)
			}
			for i := range moved {
				if want, have := got.Ports(moved[i].MLID), read.Ports(moved[i].MLID); !slices.Equal(want, have) {
					t.Errorf("MLID %#x: switches have %d ports, want %d", uint16(moved[i].MLID), len(have), len(want))
				}
			}
		})
	}
}

// Where the trees that are wanted cannot be built, here since the routing has no
// order of the switches, groups have others, which OpenSM writes, and both logs have a line that says so.
func TestMulticastNeverFails(t *testing.T) {
	// On a row of switches there is one tree for a group of which all send, so the
	// masks are the compiler's all the same.
	f, err := mesh.Generate(mesh.Spec{Dims: []int{6}, Hosts: 2})
	s := start(t, f, err)
	r := s.compiled(t, "updn", compile.Options{
		Groups: func(f *fabric.Fabric) (groups []mft.Group, err error) {
			for i := range 4 {
				g := mft.Group{Name: fmt.Sprint(i)}
				for k, p := range f.CAPorts() {
					if k%(i+2) == 1 {
						g.Receivers = append(g.Receivers, p)
					}
				}
				g.Senders = g.Receivers
				groups = append(groups, g)
			}
			return groups, nil
		},
		Multicast: "updn-tree",
	})
	file := filepath.Join(s.dir, "sa.dump")
	writeFile(t, file, dumptest.SADump(s.f, r.Plan.Trees))
	run, log := s.opensm(t, libraries.fault, "multicast: {scheme: updn-tree}", ibsim.OpenSMConfig{Engine: "ibweave-lost,dor", Options: []string{"sa_db_file " + file}})
	const want = "ibweave: ERR IBW7: ibweave-lost: 4 groups have any tree, such as "
	if lines := ours(log); run.Engine != "ibweave-lost" || len(lines) != 1 || !strings.HasPrefix(lines[0], want) || !strings.HasSuffix(lines[0], ": updn-tree: an up*/down* order of 1 switches, the fabric has 6") {
		t.Errorf("OpenSM used %s, and has %q, want %q", run.Engine, lines, want)
	}
	if l := s.ownLog(t); strings.Count(l, `"code": "IBW7"`) != 1 {
		t.Error(l)
	}
	data := readFile(t, filepath.Join(s.dir, "opensm.mcfdbs"))
	got, problems, err := dump.ReadMFTs("opensm.mcfdbs", data, s.f, dump.Options{})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	for _, tree := range r.Plan.Trees {
		if want, have := r.Plan.Tables.Ports(tree.MLID), got.Ports(tree.MLID); !slices.Equal(want, have) || len(have) == 0 {
			t.Errorf("%s: %v, want %v", tree.Name, portNames(s.f, have), portNames(s.f, want))
		}
	}
}

func portNames(f *fabric.Fabric, ports []fabric.PortID) (list []string) {
	for _, p := range ports {
		list = append(list, f.PortName(p))
	}
	return list
}

// A live OpenSM answers queries for paths with the SLs of the routing, smpquery
// reads its SL-to-VL tables from the switches, and tables follow the fabric as
// links go and come back.
func TestLive(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 1})
	s := start(t, f, err)
	d := s.stay(t, "ibweave-xy,ibweave-updn", "", "qos TRUE")
	r := s.compiled(t, "xy", compile.Options{})

	ports := s.f.CAPorts()
	sls := make(map[fabric.SL]bool)
	for _, pair := range [][2]int{{0, 4}, {0, 3}, {1, 24}, {7, 20}, {24, 0}} {
		from, to := ports[pair[0]], ports[pair[1]]
		text := s.run(t, "saquery", "--src-to-dst", fmt.Sprintf("%d:%d", s.f.LID(from), s.f.LID(to)))
		_, rest, ok := strings.Cut(text, "sl......................")
		if !ok {
			t.Fatalf("saquery has no SL:\n%s", text)
		}
		got, err := strconv.ParseUint(strings.TrimPrefix(strings.Fields(rest)[0], "0x"), 16, 8)
		if err != nil {
			t.Fatal(err, rest)
		}
		want := r.Routing.PathSLs.Row(s.f.Owner(s.f.Peer(from)))[s.f.LID(to)]
		short.Equal(t, fabric.SL(got), want, "path", pair, "OpenSM answers SL", got, text)
		sls[want] = true
	}
	if len(sls) < 2 {
		t.Error("all paths have one SL")
	}
	for s0 := range fabric.NodeID(3) {
		for port := 1; port <= 4; port++ {
			text := s.run(t, "smpquery", "sl2vl", strconv.Itoa(int(s.f.LID(s.f.PortBase(s0)))), strconv.Itoa(port))
			want := r.Routing.SL2VL.At(2, s.f.Port(s0, fabric.PortNum(port)))
			var line strings.Builder
			for _, vl := range want {
				fmt.Fprintf(&line, "%2d|", vl)
			}
			short.Contains(t, text, line.String(), "switch", s0, "to port", port, "from port 2")
		}
	}

	// A ring that is broken is no torus: updn takes over. A ring that is whole
	// again has its former tables.
	id := fmt.Sprintf("%q", "S-"+string(s.f.Node(6).GUID.AppendDigits(nil)))
	short.Check(t, s.Console(t.Context(), "Unlink "+id+"[1]", nil))
	d.sweep()
	d.wait("ibweave: ibweave-updn: 25 switches", 1)
	other := s.f.Peer(s.f.Port(6, 1))
	link := fmt.Sprintf("Link %s[1] \"S-%s\"[%d]", id, s.f.Node(s.f.Owner(other)).GUID.AppendDigits(nil), s.f.Num(other))
	short.Check(t, s.Console(t.Context(), link, nil))
	d.sweep()
	d.wait("ibweave: ibweave-xy: 25 switches", 2)
	var want bytes.Buffer
	short.Check(t, dump.WriteLFTs(&want, s.f, r.Routing.Tables, dump.WriteOptions{}))
	dumped := filepath.Join(s.dir, "opensm-lfts.dump") // some time after the sweep
	short.Await(t, func() bool { return bytes.Equal(readFile(t, dumped), want.Bytes()) }, "other tables than before the link was down in", dumped)
}

// sweep makes OpenSM look at the whole fabric.
func (d *daemon) sweep() {
	d.t.Helper()
	d.signal(syscall.SIGHUP)
}

// signal sends OpenSM a signal.
func (d *daemon) signal(sig syscall.Signal) {
	d.t.Helper()
	short.Check(d.t, d.cmd.Process.Signal(sig))
}
