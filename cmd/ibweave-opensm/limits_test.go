package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

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
				Program: script, Engine: "ibweave-updn,dor", Dir: s.dir, Options: []string{"event_plugin_name ibweave-opensm"}, Timeout: time.Minute,
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
			if run.Engine != engine {
				t.Errorf("OpenSM used %s, want %s", run.Engine, engine)
			}
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
