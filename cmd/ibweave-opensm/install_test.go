package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// The commands that compile prints add lines to the opensm.conf of a site, whose own
// partitions, prefix and timers stay in force. Either way OpenSM has the compiled tables.
// After one cable has failed, static files leave pairs unreachable at every sweep, and the
// plugin none.
func TestInstall(t *testing.T) {
	for name, unreachable := range map[string]int64{"plugin": 0, "static": 56} {
		t.Run(name, func(t *testing.T) {
			f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
			s := start(t, f, err)
			r := s.compiled(t, "updn", compile.Options{})
			etc, cache := filepath.Join(s.dir, "etc"), filepath.Join(s.dir, "cache") // where launch has it
			for _, dir := range []string{etc, cache} {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			conf := filepath.Join(etc, "opensm.conf")
			s.site(t, conf)
			before := readFile(t, conf)

			dir, installed := filepath.Join(s.dir, "tables"), filepath.Join(s.dir, "installed")
			opt := outdir.Options{InstallDir: installed}
			files := short.Must(outdir.Write(t.Context(), dir, r, opt))(t)
			plugin, static, undo := outdir.InstallCommands(dir, files, opt)
			commands := map[string][]string{"plugin": plugin, "static": static}[name]
			place := strings.NewReplacer("/var/cache/opensm/", cache+"/", "/etc/opensm/", etc+"/")
			run := func(commands []string) {
				t.Helper()
				for _, c := range commands {
					if strings.HasPrefix(c, "systemctl ") {
						continue // the test starts OpenSM
					}
					if out, err := exec.Command("sh", "-e", "-c", place.Replace(c)).CombinedOutput(); err != nil {
						t.Fatalf("%s: %v\n%s", c, err, out)
					}
				}
			}
			run(commands)

			d := s.launch(t, conf, "", "0x03")
			d.wait("SUBNET UP", 1)
			c := s.dial(t)
			have := s.have(t, c).LFT
			for n := range fabric.NodeID(s.f.NumSwitches()) {
				if want := r.Routing.Tables.Row(n); !slices.Equal(have.Row(n)[:len(want)], want) {
					t.Fatalf("switch %d has other entries than compiled", n)
				}
			}
			if got := s.run(t, "smpquery", "-D", "portinfo", "0,1"); !strings.Contains(got, "GidPrefix:.......................0xfec0000000001234") {
				t.Errorf("the subnet prefix of the site is gone:\n%s", got)
			}
			if got := s.run(t, "smpquery", "-D", "pkeys", "0,1"); !strings.Contains(got, "0x8123") {
				t.Errorf("the partition of the site is gone:\n%s", got)
			}

			twin := short.Must(ibsim.NewTwin(s.f))(t)
			cables, _ := s.f.SwitchLinks(0)
			cable := cables[0]
			short.Check(t, s.Console(t.Context(), fmt.Sprintf("Unlink %q[%d]", twin.NodeID(s.f.Owner(cable)), s.f.Num(cable)), nil))
			d.sweep()
			d.wait("-> SUBNET UP\n", 2)
			v := short.Must(verify.Check(t.Context(), &state.State{Fabric: s.f.Without(cable), Tables: s.have(t, c).LFT}, verify.Options{}))(t)
			short.Equal(t, v.Unicast.Unreachable, unreachable, "pairs are unreachable after a cable has failed")
			d.signal(syscall.SIGKILL) // libumad2sim may hang in exit()
			<-d.ended
			run(undo)
			if !bytes.Equal(readFile(t, conf), before) {
				t.Error("undone, opensm.conf is another than before")
			}
			for _, name := range []string{installed, filepath.Join(cache, outdir.GUID2LIDName)} {
				if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("undone, %s is there: %v", name, err)
				}
			}
		})
	}
}

// site writes what a site may have: all options by OpenSM itself, some of its own, and no
// end of the last line.
func (s *testbed) site(t *testing.T, conf string) {
	t.Helper()
	if out, err := exec.Command("opensm", "-c", conf).CombinedOutput(); err != nil {
		t.Fatalf("opensm -c: %v\n%s", err, out)
	}
	data := readFile(t, conf)
	partitions := filepath.Join(filepath.Dir(conf), "partitions.conf")
	writeFile(t, partitions, []byte("Default=0x7fff,ipoib : ALL=full;\nours=0x8123 : ALL=full;\n"))
	lines := []string{
		"subnet_prefix 0xfec0000000001234",
		"log_file " + filepath.Join(s.dir, "opensm.log"), "dump_files_dir " + s.dir, "force_log_flush TRUE", "sweep_interval 0",
		"partition_config_file " + partitions,
	}
	writeFile(t, conf, append(data, strings.Join(lines, "\n")...))
}

// TestIgnoredOptions wants one line that names all options of OpenSM that our engines take no notice of, and none
// where there are no such.
func TestIgnoredOptions(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	s := start(t, f, err)
	roots := filepath.Join(s.dir, "roots")
	writeFile(t, roots, []byte(s.f.Node(0).GUID.String()+"\n"))
	files := []string{"root_guid_file", "cn_guid_file", "io_guid_file", "ids_guid_file", "guid_routing_order_file", "port_search_ordering_file"}
	flags := []string{"connect_roots", "port_shifting", "do_mesh_analysis", "nue_include_switches"}
	numbers := []string{"max_reverse_hops", "lash_start_vl", "nue_max_num_vls"}
	var options []string
	for _, name := range files {
		options = append(options, name+" "+roots)
	}
	for _, name := range flags {
		options = append(options, name+" TRUE")
	}
	for _, name := range numbers {
		options = append(options, name+" 2")
	}
	for _, tc := range []struct {
		options []string
		want    int
	}{{append(options, "lmc 1"), 1}, {[]string{"lmc 1", "qos TRUE", "avoid_throttled_links TRUE"}, 0}} {
		_, log := s.opensm(t, libraries.lib, "", ibsim.OpenSMConfig{Engine: "ibweave-updn,ibweave-minhop,updn", Options: tc.options})
		found := 0
		for _, l := range log {
			if strings.Contains(l, "without effect on ibweave's engines") {
				found++
				for _, name := range slices.Concat(files, flags, numbers) {
					if !strings.Contains(l, name) {
						t.Errorf("no %s in %q", name, l)
					}
				}
				if strings.Contains(l, "lmc") {
					t.Errorf("lmc in %q", l)
				}
			}
		}
		short.Equal(t, found, tc.want, "lines of options without effect", log)
	}
}

// Where the limits of the process leave Go's runtime too little it is not started, and
// OpenSM goes on with its next engine after one line. Just above it starts, and routes.
func TestLimits(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1})
	s := start(t, f, err)
	namespace := "unshare -rm"
	if os.Getuid() == 0 {
		namespace = "unshare -m"
	}
	group := t.TempDir()
	// The group of a process is a path, and its limit that of the least of all above.
	cgroup := func(max string) string {
		return fmt.Sprintf(`exec %s sh -c 'mount -t tmpfs none /sys/fs/cgroup && d=$(sed -n "s/^0:://p" /proc/self/cgroup) && mkdir -p /sys/fs/cgroup$d && echo %s >/sys/fs/cgroup$d/memory.max && exec opensm "$@"' opensm "$@"`, namespace, max)
	}
	const space = "3072 MiB of address space are not left, which the plugin needs: raise LimitAS (ulimit -v), or set no limit"
	const data = "256 MiB of data are not left, which the plugin needs: raise LimitDATA (ulimit -d), or set no limit"
	for _, tc := range short.Part(5, []struct{ limit, want string }{
		{"ulimit -v 700000", space}, // the runtime would end the process here
		{"ulimit -d 200000", data},  // OpenSM's own threads would not start here
		{"ulimit -n 10", "16 more files cannot be opened, which the plugin needs: raise LimitNOFILE (ulimit -n)"},
		{cgroup("33554432"), "the cgroup has 32 MiB of memory, and OpenSM with the plugin needs 64 MiB: raise MemoryMax (memory.max)"},
		{"ulimit -v 3500000", ""},
		{"ulimit -v 200000", space},
		{"ulimit -v 1500000", space},
		{"ulimit -d 130000", data},
		{"ulimit -d 400000", ""},
		{"ulimit -n 32", ""},
		{cgroup("67108864"), ""},
		{cgroup("max"), ""},
	}) {
		name, _, _ := strings.Cut(tc.limit, " sh ")
		t.Run(name, func(t *testing.T) {
			script := filepath.Join(group, "opensm.sh")
			short.Check(t, os.WriteFile(script, []byte("#!/bin/bash\n"+tc.limit+"\nexec opensm \"$@\"\n"), 0o700))
			var log []string
			run, err := ibsim.RunOpenSM(t.Context(), s.Sim, ibsim.OpenSMConfig{
				Program: script, Engine: "ibweave-updn,dor", Dir: s.dir, Options: []string{"event_plugin_name ibweave-opensm"}, Timeout: hung,
				Line: func(l ibsim.LogLine) { log = append(log, l.Message) },
			})
			if err != nil || !run.UP {
				t.Fatalf("OpenSM is not up: %v\n%s", err, strings.Join(log, "\n"))
			}
			lines, engine := ours(log), "dor"
			if tc.want == "" {
				if engine = "ibweave-updn"; len(lines) > 0 {
					t.Errorf("OpenSM's log has %q", lines)
				}
			} else if len(lines) != 1 || lines[0] != "ibweave: ERR IBW8: "+tc.want {
				t.Errorf("OpenSM's log has %q, want %q", lines, tc.want)
			}
			short.Equal(t, run.Engine, engine, "OpenSM used")
		})
	}
}

// A log that is larger than files may be costs its lines, and neither OpenSM nor an engine:
// the signal that comes then would end OpenSM.
func TestLogTooLarge(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1})
	s := start(t, f, err)
	script, own := filepath.Join(t.TempDir(), "opensm.sh"), filepath.Join(s.dir, "ibweave.log")
	if err := os.WriteFile(script, []byte("#!/bin/bash\nulimit -f 512\nexec opensm \"$@\"\n"), 0o700); err != nil { // KiB
		t.Fatal(err)
	}
	writeFile(t, own, make([]byte, 1<<20))
	run, log := s.opensm(t, libraries.lib, "", ibsim.OpenSMConfig{Program: script, Engine: "ibweave-updn", Flags: 0x03})
	want := "ibweave: ERR IBW9: log: write " + own + ": file too large; its lines are counted until it can be written"
	if lines := ours(log); run.Engine != "ibweave-updn" || len(lines) != 1 || lines[0] != want {
		t.Errorf("OpenSM used %s, and has %q, want %q", run.Engine, lines, want)
	}
}

// What compile writes where files cannot carry a routing is enough for OpenSM with
// the plugin to have it: LIDs, forwarding tables and SL-to-VL tables; the groups are
// there for those who join.
func TestCompiledDirectory(t *testing.T) {
	bare := short.Must(mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 1}))(t)
	twin := short.Must(ibsim.NewTwin(bare))(t)
	e := short.Must(compile.EngineByName("xy"))(t)
	r, err := compile.Run(t.Context(), twin.Fabric, e, compile.Options{
		LIDs: lft.LIDOptions{Policy: lft.MeshLIDs},
		Groups: func(f *fabric.Fabric) ([]mft.Group, error) {
			hosts := f.CAPorts()
			return []mft.Group{
				{Name: "all", Receivers: hosts, Senders: hosts},
				{Name: "some", Receivers: hosts[3:7], Senders: hosts[:1]},
			}, nil
		},
	})
	short.Check(t, err)
	dir := filepath.Join(t.TempDir(), "tables")
	files := short.Must(outdir.Write(t.Context(), dir, r, outdir.Options{InstallDir: dir}))(t)
	if _, static, _ := outdir.InstallCommands(dir, files, outdir.Options{InstallDir: dir}); static != nil {
		t.Fatalf("commands for files that cannot carry the routing: %q", static)
	}

	temp := t.TempDir()
	text := filepath.Join(temp, "fabric.txt")
	writeFile(t, text, topology.Append(nil, twin.Fabric))
	sim := short.Must(ibsim.Start(t.Context(), text, ibsim.Config{}))(t)
	defer sim.Close()
	read := func(name string) []byte {
		data := readFile(t, name)
		return data
	}
	writeFile(t, filepath.Join(temp, outdir.GUID2LIDName), read(filepath.Join(dir, outdir.GUID2LIDName)))
	// Where no engine serves OpenSM tries for ever.
	ctx, cancel := context.WithTimeout(t.Context(), hung)
	defer cancel()
	cmd := sim.Command(ctx, "opensm", "-o", "-D", "0x43", "-F", filepath.Join(dir, outdir.PluginOpenSMName), "-f", filepath.Join(temp, "opensm.log"))
	cmd.Env = append(cmd.Env, "OSM_TMP_DIR="+temp, "OSM_CACHE_DIR="+temp)
	if err := sim.Run(ctx, cmd); err != nil {
		t.Fatalf("%v\n%s", err, read(filepath.Join(temp, "opensm.log")))
	}
	log := string(read(filepath.Join(temp, "opensm.log")))
	if strings.Contains(log, "ERR") || !strings.Contains(log, "SUBNET UP") {
		t.Errorf("OpenSM says\n%s", log)
	}
	for name, theirs := range map[string]string{outdir.LFTsName: "opensm-lfts.dump", outdir.SL2VLName: "opensm-sl2vl.dump"} {
		if !bytes.Equal(read(filepath.Join(dir, name)), read(filepath.Join(temp, theirs))) {
			t.Errorf("OpenSM's %s is not ours", theirs)
		}
	}
}

// readFile returns the bytes of a file.
func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data := short.Must(os.ReadFile(name))(t)
	return data
}
