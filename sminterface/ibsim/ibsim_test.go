package ibsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// mesh4x4 has 16 switches with a host each, and LIDs 1 to 32.
func mesh4x4(t *testing.T) *fabric.Fabric {
	t.Helper()
	return fabrictest.WithLIDs(t, fabrictest.Grid(t, 1, false, 4, 4), 0)
}

func startTwin(t *testing.T, f *fabric.Fabric) (*Sim, *Twin) {
	t.Helper()
	twin := short.Must(NewTwin(f))(t)
	s := short.Must(StartTwin(t.Context(), twin, Config{}))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder is still there: %v", err)
		}
	})
	return s, twin
}

// running lists the processes whose environment has IBSIM_SOCKNAME=prefix...
func running(t *testing.T, prefix string) []string {
	t.Helper()
	dirs := short.Must(filepath.Glob("/proc/[0-9]*"))(t)
	var found []string
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil {
			continue // it has ended, or it is not ours
		}
		if bytes.Contains(env, []byte("IBSIM_SOCKNAME="+prefix)) {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			found = append(found, filepath.Base(dir)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// none waits until no process is left.
func none(t *testing.T, prefix string) {
	t.Helper()
	var left []string
	short.Await(t, func() bool {
		left = running(t, prefix)
		return len(left) == 0
	}, "still running ", &left)
}

func TestClients(t *testing.T) {
	s, _ := startTwin(t, mesh4x4(t))
	// More at a time than ibsim has places for.
	var wg sync.WaitGroup
	for range 2 * MaxClients {
		wg.Go(func() {
			var out bytes.Buffer
			cmd := s.Command(t.Context(), "ibnetdiscover", "-t", "10000")
			cmd.Stdout = &out
			if err := s.Run(t.Context(), cmd); err != nil {
				t.Error(err)
			}
			short.Equal(t, bytes.Count(out.Bytes(), []byte("\nswitchguid=")), 16, "ibnetdiscover found", "switches, want 16")
		})
	}
	wg.Wait()
	if left, err := filepath.Glob(filepath.Join(s.dir, "sys-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestConsole(t *testing.T) {
	s, twin := startTwin(t, mesh4x4(t))
	count := func() (links int) {
		t.Helper()
		short.Check(t, s.Console(t.Context(), "dump", func(line []byte) {
			if bytes.Contains(line, []byte("Init/LinkUp")) {
				links++
			}
		}))
		return links
	}
	short.MustEqual(t, count(), 2*(24+16), "ports up")
	name := `"` + twin.NodeID(0) + `"[1]`
	short.Check(t, s.Console(t.Context(), "unlink "+name, nil))
	short.Equal(t, count(), 2*(24+16)-2, "ports up after unlink")
	err := s.Console(t.Context(), "unlink "+name, nil)
	short.Contains(t, fmt.Sprint(err), "is not linked", "unlink of a free port")
	for _, bad := range []string{"# comment", "two\nlines", strings.Repeat("x", 127)} {
		if err := s.Console(t.Context(), bad, nil); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	// An answer without a waiting caller must not be the next one's.
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		if err := s.Console(done, "dump", func([]byte) {}); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("an abandoned dump: %v", err)
		}
	}
	if err := s.Console(t.Context(), "verbose", func(line []byte) {
		if !bytes.Contains(line, []byte("verbose level is 0")) {
			t.Errorf("verbose: %q", line)
		}
	}); err != nil {
		t.Error(err)
	}
	short.Equal(t, count(), 2*(24+16)-2, "ports up after that")
}

// A client that is killed must give its place to others.
func TestKilledClients(t *testing.T) {
	s, _ := startTwin(t, mesh4x4(t))
	for i := range MaxClients + 2 {
		ctx, cancel := context.WithCancel(t.Context())
		cmd := s.Command(ctx, "opensm", "-F", "/dev/null", "-f", filepath.Join(s.dir, "opensm.log"), "-D", "2")
		cmd.Env = append(cmd.Env, "OSM_CACHE_DIR="+s.dir, "OSM_TMP_DIR="+s.dir)
		out := short.Must(cmd.StdoutPipe())(t)
		up := make(chan bool, 1)
		go func() {
			defer cancel()
			buf := make([]byte, 4096)
			var said []byte
			for !bytes.Contains(said, []byte("MASTER")) {
				n, err := out.Read(buf)
				if said = append(said, buf[:n]...); err != nil {
					up <- false
					return
				}
			}
			up <- true
		}()
		if err := s.Run(ctx, cmd); !errors.Is(err, context.Canceled) || !<-up {
			t.Fatalf("run %d: %v", i, err)
		}
	}
}

func TestEnds(t *testing.T) {
	twin := short.Must(NewTwin(mesh4x4(t)))(t)
	sleeping := func(t *testing.T, ctx context.Context, s *Sim) <-chan error {
		done := make(chan error, 1)
		cmd := s.Command(ctx, "sleep", "100")
		go func() { done <- s.Run(ctx, cmd) }()
		short.Await(t, func() bool { return len(running(t, s.socket)) == 2 }, "the client does not run")
		return done
	}
	for _, end := range []struct {
		name string
		end  func(s *Sim, cancel func())
		want error
	}{
		{"close", func(s *Sim, _ func()) { s.Close() }, os.ErrClosed},
		{"cancel", func(_ *Sim, cancel func()) { cancel() }, context.Canceled},
		{"quit", func(s *Sim, _ func()) { s.Console(context.Background(), "quit", nil) }, nil},
	} {
		t.Run(end.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			s := short.Must(StartTwin(ctx, twin, Config{}))(t)
			defer s.Close()
			done := sleeping(t, context.Background(), s)
			end.end(s, cancel)
			err := <-done
			var exit *ExitError
			if end.want != nil && !errors.Is(err, end.want) || end.want == nil && !errors.As(err, &exit) {
				t.Errorf("the client ended with %v", err)
			}
			none(t, s.socket)
			short.Check(t, s.Close())
			if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the folder is still there: %v", err)
			}
			if err := s.Run(context.Background(), s.Command(context.Background(), "true")); !errors.Is(err, os.ErrClosed) {
				t.Errorf("Run after Close: %v", err)
			}
			if err := s.Console(context.Background(), "help", nil); !errors.Is(err, os.ErrClosed) {
				t.Errorf("Console after Close: %v", err)
			}
		})
	}
}

func TestStartErrors(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	empty := func(t *testing.T) {
		t.Helper()
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad")
	short.Check(t, os.WriteFile(bad, []byte("Switch 4 \"a\"\n[1] \"b\"[1]\n"), 0o600))
	_, err := Start(t.Context(), bad, Config{})
	var exit *ExitError
	if !errors.As(err, &exit) || !strings.Contains(err.Error(), `can't find remote node "b"`) {
		t.Errorf("a cable to nowhere: %v", err)
	}
	empty(t)

	_, err = Start(t.Context(), filepath.Join(tmp, "none"), Config{})
	if !errors.As(err, &exit) || !strings.Contains(err.Error(), "No such file") {
		t.Errorf("no file: %v", err)
	}
	empty(t)

	_, err = Start(t.Context(), bad, Config{Nodes: 1, Timeout: time.Minute, Program: "sleep"})
	if !errors.As(err, &exit) {
		t.Errorf("another program: %v", err)
	}
	empty(t)

	// sleep takes no -s, so a program that does not become ready is a script.
	slow := filepath.Join(t.TempDir(), "slow")
	short.Check(t, os.WriteFile(slow, []byte("#!/bin/sh\nexec sleep 100\n"), 0o700))
	_, err = Start(t.Context(), bad, Config{Program: slow, Timeout: 50 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("never ready: %v", err)
	}
	empty(t)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = Start(ctx, bad, Config{Program: slow})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled: %v", err)
	}
	empty(t)

	t.Setenv("PATH", "")
	for _, want := range []MissingError{
		{"ibsim", "ibsim-utils"}, {"opensm", "opensm"}, {"dump_fts", "infiniband-diags"}, {"/no/such/opensm", "opensm"}, {"nothing", ""},
	} {
		_, err := Find(want.Program)
		var missing *MissingError
		if !errors.As(err, &missing) || *missing != want || !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("%s: %v", want.Program, err)
		}
	}
	var missing *MissingError
	if _, err := Start(t.Context(), bad, Config{}); !errors.As(err, &missing) {
		t.Errorf("no ibsim: %v", err)
	}
	empty(t)
}

// Users other than root have no sbin on $PATH.
func TestFindBesideBin(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"bin", "sbin"} {
		short.Check(t, os.Mkdir(filepath.Join(root, dir), 0o700))
	}
	want := filepath.Join(root, "sbin", "tool")
	short.Check(t, os.WriteFile(want, nil, 0o700))
	t.Setenv("PATH", filepath.Join(root, "bin"))
	if got, err := Find("tool"); got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestKilledParent kills a process that runs ibsim and OpenSM.
func TestKilledParent(t *testing.T) {
	if dir := os.Getenv("IBWEAVE_TEST_PARENT"); dir != "" {
		parent(t, dir)
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledParent$")
	cmd.Env = append(os.Environ(), "IBWEAVE_TEST_PARENT="+dir, "TMPDIR="+dir)
	short.Check(t, cmd.Start())
	prefix := "ibweave-" + strconv.Itoa(cmd.Process.Pid) + "-"
	short.Await(t, func() bool { return len(running(t, prefix)) == 2 }, "ibsim and opensm do not run")
	cmd.Process.Kill()
	cmd.Wait()
	none(t, prefix)
}

func parent(t *testing.T, dir string) {
	twin := short.Must(NewTwin(mesh4x4(t)))(t)
	s := short.Must(StartTwin(t.Context(), twin, Config{}))(t)
	cmd := s.Command(t.Context(), "opensm", "-F", "/dev/null", "-f", filepath.Join(dir, "opensm.log"))
	cmd.Env = append(cmd.Env, "OSM_CACHE_DIR="+dir, "OSM_TMP_DIR="+dir)
	t.Fatal(s.Run(t.Context(), cmd)) // until killed
}

// wild draws a fabric of a few nodes whose GUIDs crowd together.
func wild(t *rapid.T) *fabric.Fabric {
	var b fabric.Builder
	guids := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 40), 1, 12, rapid.ID[uint64]).Draw(t, "node GUIDs")
	portGUIDs := rapid.Permutation(seq(1, 200)).Draw(t, "port GUIDs")
	lid := fabric.LID(0)
	for i, g := range guids {
		kind := rapid.SampledFrom([]fabric.NodeType{fabric.Switch, fabric.CA, fabric.CA, fabric.Router}).Draw(t, "type")
		n := short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(g), Type: kind, Description: rapid.OneOf(rapid.String(), rapid.SampledFrom(nasty)).Draw(t, "description"),
			NumPorts: rapid.SampledFrom([]fabric.PortNum{0, 1, 2, 4}).Draw(t, "ports")}))(t)
		first, last := fabric.PortNum(1), b.Node(n).NumPorts
		if kind == fabric.Switch {
			first, last = 0, 0
		}
		for p := first; p <= last; p++ {
			lid++
			guid := portGUIDs[4*i+int(p)]
			if kind == fabric.Switch {
				guid = g + 1000
			}
			short.Check(t, b.SetPort(n, p, fabric.GUID(guid), lid, 0))
		}
	}
	for range rapid.IntRange(0, 10).Draw(t, "cables") {
		m := rapid.IntRange(0, len(guids)-1).Draw(t, "node")
		n := rapid.IntRange(0, len(guids)-1).Draw(t, "node")
		b.Connect(m, rapid.SampledFrom([]fabric.PortNum{1, 2, 3, 4}).Draw(t, "port"), n,
			rapid.SampledFrom([]fabric.PortNum{1, 2, 3, 4}).Draw(t, "port"),
			fabric.Link{Width: rapid.SampledFrom([]uint8{0, 1, 2, 4, 8, 12}).Draw(t, "width"), Speed: fabric.Speed(rapid.IntRange(0, 9).Draw(t, "speed"))})
	}
	return short.Must(b.Build())(t)
}

// nasty are descriptions that ibsim would take for something else.
var nasty = []string{
	"w=99", "x s=0 e=-1", `a" lid 77 lmc 3 "`, "base port 0 lid 5", "# comment", "@alias", strings.Repeat("long ", 60), "ends with \n[1] \"S-1\"[2]", "%s%n", "",
}

func seq(from, to uint64) (s []uint64) {
	for v := from; v <= to; v++ {
		s = append(s, v)
	}
	return s
}

func TestTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := wild(t)
		twin := short.Must(NewTwin(f))(t)
		g := twin.Fabric
		if g.NumNodes() != f.NumNodes() || g.NumSwitches() != f.NumSwitches() || g.NumLinks() != f.NumLinks() || g.MaxLID() != f.MaxLID() {
			t.Fatalf("%d nodes, %d switches, %d links, LIDs to %d; want %d, %d, %d, %d", g.NumNodes(), g.NumSwitches(), g.NumLinks(), g.MaxLID(),
				f.NumNodes(), f.NumSwitches(), f.NumLinks(), f.MaxLID())
		}
		for s := range fabric.NodeID(f.NumSwitches()) {
			short.Equal(t, f.Node(s).GUID, g.Node(s).GUID, "switch", s, "GUID")
		}
		seen := map[fabric.GUID]bool{}
		for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
			p, q := f.LIDPort(lid), g.LIDPort(lid)
			if p == fabric.NoPort {
				continue
			}
			node := g.Node(g.Owner(q))
			if g.Num(q) != f.Num(p) || node.Type != f.Node(f.Owner(p)).Type {
				t.Errorf("LID %d: %s, want %s", lid, g.PortName(q), f.PortName(p))
			}
			// As ibsim will have it.
			if want := node.GUID + fabric.GUID(g.Num(q)); g.PortGUID(q) != want || twin.PortGUID(f.PortGUID(p)) != want {
				t.Errorf("LID %d: port GUID %s, %s of %s; want %s", lid, g.PortGUID(q), twin.PortGUID(f.PortGUID(p)), f.PortGUID(p), want)
			}
			if seen[g.PortGUID(q)] {
				t.Errorf("port GUID %s comes twice", g.PortGUID(q))
			}
			seen[g.PortGUID(q)] = true
			// The cable leads to the port with the same LID, or to the same
			// port of the same switch.
			a, z := f.Peer(p), g.Peer(q)
			if (a == fabric.NoPort) != (z == fabric.NoPort) {
				t.Fatalf("LID %d: cable %d, want %d", lid, z, a)
			}
			if a != fabric.NoPort && (f.Num(a) != g.Num(z) || f.LID(a) != g.LID(z)) {
				t.Errorf("LID %d: a cable to %s, want one to %s", lid, g.PortName(z), f.PortName(a))
			}
		}
		for guid := range fabric.GUID(1300) {
			short.Equal(t, seen[twin.PortGUID(guid)], known(f, guid), "an unused port GUID", guid, "becomes", twin.PortGUID(guid))
		}
		again := short.Must(NewTwin(g))(t)
		if !again.Same() {
			t.Error("the twin's twin has other GUIDs")
		}
		// ibsim must read it as it is.
		s, err := StartTwin(t.Context(), twin, Config{})
		if f.NumSwitches() == 0 {
			short.MustEqual(t, err, ErrNoSwitch, "no switch")
			return
		}
		short.Check(t, err)
		defer s.Close()
		nodes := map[string]bool{}
		short.Check(t, s.Console(t.Context(), "dump", func(line []byte) {
			if _, rest, ok := strings.Cut(string(line), `"`); ok && strings.Contains(rest, "nodeguid") {
				id, _, _ := strings.Cut(rest, `"`)
				nodes[id] = true
			}
		}))
		for n := range fabric.NodeID(g.NumNodes()) {
			if !nodes[twin.NodeID(n)] {
				t.Errorf("ibsim has no %s, only %v", twin.NodeID(n), nodes)
			}
		}
	})
}

func known(f *fabric.Fabric, g fabric.GUID) bool {
	for p := range fabric.PortID(f.NumPorts()) {
		if g != 0 && f.PortGUID(p) == g {
			return true
		}
	}
	return false
}

func TestTwinErrors(t *testing.T) {
	var b fabric.Builder
	for i := range 2 {
		n := short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(10 * (i + 1)), Type: fabric.CA, NumPorts: 1, Description: fmt.Sprint("host ", i)}))(t)
		short.Check(t, b.SetPort(n, 1, 77, 0, 0))
	}
	f := short.Must(b.Build())(t)
	if twin, err := NewTwin(f); twin != nil || err == nil || !strings.Contains(err.Error(), `"host 1"[1]`) {
		t.Errorf("a GUID on two ports: %v, %v", twin, err)
	}
}

func TestCentre(t *testing.T) {
	var b fabric.Builder
	// A row of 9 switches, and another of 4.
	for i := range 13 {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(100 + i), Type: fabric.Switch, NumPorts: 2}))(t)
		if i > 0 && i != 4 {
			short.Check(t, b.Connect(i-1, 1, i, 2, fabric.Link{}))
		}
	}
	f := short.Must(b.Build())(t)
	short.Equal(t, Centre(f), 4+4, "centre")
	short.Equal(t, Centre(&fabric.Fabric{}), fabric.NoNode, "centre of nothing")
}
