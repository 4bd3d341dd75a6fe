package main

import (
	"bytes"
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
			files, err := outdir.Write(t.Context(), dir, r, opt)
			if err != nil {
				t.Fatal(err)
			}
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

			twin, err := ibsim.NewTwin(s.f)
			if err != nil {
				t.Fatal(err)
			}
			cables, _ := s.f.SwitchLinks(0)
			cable := cables[0]
			if err := s.Console(t.Context(), fmt.Sprintf("Unlink %q[%d]", twin.NodeID(s.f.Owner(cable)), s.f.Num(cable)), nil); err != nil {
				t.Fatal(err)
			}
			d.sweep()
			d.wait("-> SUBNET UP\n", 2)
			v, err := verify.Check(t.Context(), &state.State{Fabric: s.f.Without(cable), Tables: s.have(t, c).LFT}, verify.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if v.Unicast.Unreachable != unreachable {
				t.Errorf("%d pairs are unreachable after a cable has failed, want %d", v.Unicast.Unreachable, unreachable)
			}
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
		if found != tc.want {
			t.Errorf("%d lines of options without effect, want %d: %q", found, tc.want, log)
		}
	}
}
