package rehearse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

func TestMain(m *testing.M) {
	short.UseMemory()
	m.Run()
}

func grid(t *testing.T, x, y int) *fabric.Fabric {
	t.Helper()
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{x, y}, Hosts: 1}))(t)
	return short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: 0}))(t)
}

func irregular(t *testing.T, switches int, lmc int) *fabric.Fabric {
	t.Helper()
	f := short.Must(gen.Irregular(gen.IrregularSpec{Switches: switches, Degree: 3, Hosts: switches + 3, Seed: 5}))(t)
	return short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: lmc}))(t)
}

// tables are shortest paths by breadth-first search, the LIDs of a port spread
// over equal cables.
func tables(f *fabric.Fabric) *lft.Tables {
	t := lft.NewTables(f.NumSwitches(), f.MaxLID())
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		p := f.LIDPort(lid)
		if p == fabric.NoPort {
			continue
		}
		root := f.Owner(p)
		if f.IsSwitch(root) {
			t.Row(root)[lid] = fabric.ManagementPort
		} else {
			at := f.Peer(p)
			if root = f.Owner(at); !f.IsSwitch(root) {
				continue
			}
			t.Row(root)[lid] = f.Num(at)
		}
		distance := map[fabric.NodeID]int{root: 0}
		queue := []fabric.NodeID{root}
		for i := 0; i < len(queue); i++ {
			_, to := f.SwitchLinks(queue[i])
			for _, s := range to {
				if _, seen := distance[s]; !seen {
					distance[s] = distance[queue[i]] + 1
					queue = append(queue, s)
				}
			}
		}
		for s, d := range distance {
			if s == root {
				continue
			}
			var ports []fabric.PortNum
			links, to := f.SwitchLinks(s)
			for i, next := range to {
				if distance[next] == d-1 {
					ports = append(ports, f.Num(links[i]))
				}
			}
			t.Row(s)[lid] = ports[int(lid)%len(ports)]
		}
	}
	return t
}

// alone gives the test a private folder for temporary files, and checks that
// it leaves nothing in it, nor where OpenSM writes when it is not told.
func alone(t *testing.T) {
	t.Helper()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	defaults := []string{"/var/log/opensm*", "/var/cache/opensm/*", "/tmp/opensm*", "/tmp/osm*"}
	state := func() (s []string) {
		for _, pattern := range defaults {
			names, _ := filepath.Glob(pattern)
			for _, name := range names {
				if info, err := os.Stat(name); err == nil {
					s = append(s, fmt.Sprint(name, info.Size(), info.ModTime()))
				}
			}
		}
		return s
	}
	before := state()
	t.Cleanup(func() {
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		if after := state(); !slices.Equal(before, after) {
			t.Errorf("OpenSM's folders have changed: %q, %q before", after, before)
		}
		if left := running(os.Getpid()); len(left) > 0 {
			t.Errorf("still running: %q", left)
		}
	})
}

// running lists the processes that a process of this program has started.
func running(pid int) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && bytes.Contains(env, []byte("IBSIM_SOCKNAME=ibweave-"+strconv.Itoa(pid)+"-")) {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			found = append(found, filepath.Base(dir)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// compiled is a compile directory with these tables.
func compiled(t *testing.T, f *fabric.Fabric, tb *lft.Tables) string {
	t.Helper()
	dir := t.TempDir()
	for name, write := range map[string]func(io.Writer) error{
		lftsFile:      func(w io.Writer) error { return dump.WriteLFTs(w, f, tb, dump.WriteOptions{}) },
		lidMatrixFile: func(w io.Writer) error { return dump.WriteLIDMatrix(w, f, tb, dump.WriteOptions{}) },
		guid2lidFile:  func(w io.Writer) error { return dump.WriteGUID2LID(w, f) },
	} {
		short.Check(t, files.Write(filepath.Join(dir, name), write))
	}
	return dir
}

// edit changes a file; old must be in it.
func edit(t *testing.T, file, old, new string) {
	t.Helper()
	data := short.Must(os.ReadFile(file))(t)
	if !bytes.Contains(data, []byte(old)) {
		t.Fatalf("%s has no %q", file, old)
	}
	short.Check(t, os.WriteFile(file, bytes.Replace(data, []byte(old), []byte(new), 1), 0o600))
}

func equal(t *testing.T, r *Report, err error, f *fabric.Fabric) {
	t.Helper()
	short.Check(t, err)
	want := Report{Switches: f.NumSwitches(), EqualSwitches: f.NumSwitches(), Entries: f.NumSwitches() * int(f.MaxLID()),
		OpenSM: r.OpenSM, Engine: "file", SubnetUp: true}
	if !r.Equal() || r.EqualSwitches != want.EqualSwitches || r.Switches != want.Switches || r.Entries != want.Entries ||
		r.Engine != want.Engine || !r.SubnetUp || r.NumErrors != 0 || len(r.Notes) != 0 || r.OpenSM == "" {
		t.Errorf("report %+v, want %+v", r, want)
	}
}

func TestEqual(t *testing.T) {
	alone(t)
	for _, c := range short.Part(2, []struct {
		name string
		f    *fabric.Fabric
	}{
		{"mesh 4x4", grid(t, 4, 4)},
		// The last of 64 or 128 LIDs is alone in its block.
		{"mesh 4x8, highest LID 64", grid(t, 4, 8)},
		{"mesh 8x8, highest LID 128", grid(t, 8, 8)},
		{"irregular", irregular(t, 12, 0)},
		{"irregular, LMC 2", irregular(t, 12, 2)},
		{"real GUIDs", real(t)},
		{"enhanced ports 0, LMC 1 for them too", enhanced(t)},
	}) {
		t.Run(c.name, func(t *testing.T) {
			tb := tables(c.f)
			r, err := Run(t.Context(), c.f, tb, Options{})
			equal(t, r, err, c.f)
			r, err = Run(t.Context(), c.f, tb, Options{Dir: compiled(t, c.f, tb)})
			equal(t, r, err, c.f)
		})
	}
}

// real is a fabric as captures have them: port GUIDs equal the node's, GUIDs
// are one apart, LIDs have gaps, a router, two ports on an adapter, speeds
// that ibsim does not know, and descriptions that its reader stumbles over.
func real(t *testing.T) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	add := func(n fabric.Node) int {
		return short.Must(b.AddNode(n))(t)
	}
	port := func(node int, p fabric.PortNum, guid fabric.GUID, lid fabric.LID) {
		short.Check(t, b.SetPort(node, p, guid, lid, 0))
	}
	cable := func(m int, p fabric.PortNum, n int, q fabric.PortNum) {
		short.Check(t, b.Connect(m, p, n, q, fabric.Link{Width: 4, Speed: fabric.NDR}))
	}
	const base = 0xfc6a1c0300000000
	s1 := add(fabric.Node{GUID: base + 0x40, Type: fabric.Switch, NumPorts: 65, Description: `MF0;sw-1 "a=b" # lid 7 @x/Q3400`})
	s2 := add(fabric.Node{GUID: base + 0x80, Type: fabric.Switch, NumPorts: 254, Description: strings.Repeat("long base port 0 lid 9 lmc 3 ", 9)})
	port(s1, 0, 0, 17)
	port(s2, 0, 0, 3000)
	cable(s1, 65, s2, 254)
	cable(s1, 1, s2, 1)
	for k, lid := range []fabric.LID{1, 2, 900, 901, 41} {
		c := add(fabric.Node{GUID: base + fabric.GUID(k), Type: fabric.CA, NumPorts: 1, Description: fmt.Sprintf("dgx-%d mlx5_%d", k/2, k%2)})
		port(c, 1, base+fabric.GUID(k), lid)
		cable(c, 1, []int{s1, s2}[k%2], fabric.PortNum(10+k))
	}
	double := add(fabric.Node{GUID: base + 0x20, Type: fabric.CA, NumPorts: 2, Description: "double"})
	port(double, 1, base+0x21, 60)
	port(double, 2, base+0x22, 61)
	cable(double, 1, s1, 30)
	cable(double, 2, s2, 30)
	// With port GUIDs one up this one would take that of double's second port.
	single := add(fabric.Node{GUID: base + 0x23 - 2, Type: fabric.CA, NumPorts: 1, Description: "single"})
	port(single, 1, base+0x1021, 62)
	cable(single, 1, s1, 31)
	router := add(fabric.Node{GUID: base + 0x30, Type: fabric.Router, NumPorts: 2, Description: "router"})
	port(router, 1, base+0x31, 70)
	cable(router, 1, s2, 40)
	return short.Must(b.Build())(t)
}

// enhanced is a mesh whose switches have enhanced ports 0, and LMC 1 for all.
func enhanced(t *testing.T) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	var at [3][2]int
	for i := range at {
		at[i][0], _ = b.AddNode(fabric.Node{GUID: fabric.GUID(0x200000 + i), Type: fabric.Switch, NumPorts: 4, EnhancedPort0: true, Description: "switch"})
		at[i][1], _ = b.AddNode(fabric.Node{GUID: fabric.GUID(0x100000 + 2*i), Type: fabric.CA, NumPorts: 1, Description: "host"})
		short.Check(t, errors.Join(b.Connect(at[i][0], 3, at[i][1], 1, fabric.Link{}),
			b.SetPort(at[i][0], 0, 0, fabric.LID(8*i+2), 1), b.SetPort(at[i][1], 1, 0, fabric.LID(8*i+4), 1)))
		if i > 0 {
			short.Check(t, b.Connect(at[i-1][0], 1, at[i][0], 2, fabric.Link{}))
		}
	}
	return short.Must(b.Build())(t)
}

// The entry of one switch changes: in what is expected, so OpenSM got another.
func TestChangedEntry(t *testing.T) {
	alone(t)
	f := grid(t, 4, 8)
	dir := compiled(t, f, tables(f))
	for _, c := range short.Part(2, []struct {
		lid  fabric.LID
		port fabric.PortNum
	}{{1, fabric.NoPath}, {64, 7}, {33, 7}, {63, 7}, {64, fabric.NoPath}}) {
		tb := tables(f)
		s := fabric.NodeID(11)
		was := tb.Row(s)[c.lid]
		tb.Row(s)[c.lid] = c.port
		r := short.Must(Run(t.Context(), f, tb, Options{Dir: dir}))(t)
		want := []Difference{{Switch: f.Node(s).GUID, Name: f.Name(s), LID: c.lid, Ours: c.port, OpenSM: was}}
		if r.Equal() || r.Differences != 1 || r.EqualSwitches != 31 || !reflect.DeepEqual(r.Samples, want) || r.Entries != 32*64 {
			t.Errorf("LID %d, port %d: report %+v, want the difference %+v", c.lid, c.port, r, want)
		}
	}
}

func TestSamples(t *testing.T) {
	alone(t)
	f := grid(t, 4, 4)
	dir := compiled(t, f, tables(f))
	tb := lft.NewTables(f.NumSwitches(), f.MaxLID()+70) // no paths at all
	r := short.Must(Run(t.Context(), f, tb, Options{Dir: dir, Samples: 3}))(t)
	if r.Differences != 16*32 || r.EqualSwitches != 0 || len(r.Samples) != 3 || r.Entries != 16*(32+70) {
		t.Errorf("report %+v", r)
	}
	for i, d := range r.Samples {
		if d.Switch != f.Node(0).GUID || d.LID != fabric.LID(i+1) || d.Ours != fabric.NoPath || d.OpenSM == fabric.NoPath {
			t.Errorf("sample %d: %v", i, d)
		}
	}
}

func notes(t *testing.T, r *Report, want ...string) {
	t.Helper()
	all := strings.Join(r.Notes, "\n")
	for _, w := range want {
		short.Contains(t, all, w, "no note says")
	}
}

// A comment that names another port moves the entry to that port's LID.
func TestRemapped(t *testing.T) {
	alone(t)
	f := real(t)
	tb := tables(f)
	dir := compiled(t, f, tb)
	s, _ := f.SwitchByGUID(0xfc6a1c0300000040)
	row := fmt.Sprintf("0x%04x %03d # Channel Adapter portguid ", 900, tb.Row(s)[900])
	edit(t, filepath.Join(dir, lftsFile), row+"0xfc6a1c0300000002", row+"0xfc6a1c0300000003")
	r := short.Must(Run(t.Context(), f, tb, Options{Dir: dir}))(t)
	// The row of LID 901 comes later, and is right.
	want := []Difference{{Switch: f.Node(s).GUID, Name: f.Name(s), LID: 900, Ours: tb.Row(s)[900], OpenSM: fabric.NoPath}}
	if r.Equal() || !reflect.DeepEqual(r.Samples, want) || r.Differences != 1 || r.WrongLIDs != 0 {
		t.Errorf("report %+v, want the difference %+v", r, want)
	}
}

func TestPortOutOfRange(t *testing.T) {
	alone(t)
	f := grid(t, 4, 4)
	tb := tables(f)
	for _, port := range []string{"006", "255"} {
		dir := compiled(t, f, tb)
		edit(t, filepath.Join(dir, lftsFile), fmt.Sprintf("0x0005 %03d", tb.Row(0)[5]), "0x0005 "+port)
		r := short.Must(Run(t.Context(), f, tb, Options{Dir: dir}))(t)
		if r.Equal() || r.Differences == 0 || r.Engine != "minhop" || r.NumErrors == 0 {
			t.Errorf("report %+v", r)
		}
		notes(t, r, "minhop tables instead, because of: do_ucast_file_load: Invalid port "+strings.TrimLeft(port, "0"),
			"a LID without a path must have no row")
	}
}

func TestLIDs(t *testing.T) {
	alone(t)
	f := grid(t, 4, 4)
	tb := tables(f)
	p := f.LIDPort(32)
	record := f.PortGUID(p).String() + " 0x0020 0x0020\n\n"

	dir := compiled(t, f, tb)
	edit(t, filepath.Join(dir, guid2lidFile), record, f.PortGUID(p).String()+" 0x0030 0x0030\n\n")
	r := short.Must(Run(t.Context(), f, tb, Options{Dir: dir}))(t)
	want := []LIDDifference{{Port: f.PortName(p), GUID: f.PortGUID(p), Ours: 32, OpenSM: 48}}
	if r.Equal() || r.WrongLIDs != 1 || !slices.Equal(r.LIDSamples, want) {
		t.Errorf("report %+v, want %+v", r, want)
	}
	// Every switch now has an entry for LID 48 in place of one for LID 32.
	if r.Differences != 2*16 || r.EqualSwitches != 0 {
		t.Errorf("%d differences on %d switches, want 2 on each of 16", r.Differences, r.Switches-r.EqualSwitches)
	}
	notes(t, r, "has other LIDs than the fabric for 1 of the end ports")

	gaps := real(t)
	gapTables := tables(gaps)
	dir = compiled(t, gaps, gapTables)
	p = gaps.LIDPort(900)
	edit(t, filepath.Join(dir, guid2lidFile), gaps.PortGUID(p).String()+" 0x0384 0x0384\n\n", "")
	r = short.Must(Run(t.Context(), gaps, gapTables, Options{Dir: dir}))(t)
	want = []LIDDifference{{Port: gaps.PortName(p), GUID: gaps.PortGUID(p), Ours: 900, OpenSM: 3}}
	if r.Equal() || r.WrongLIDs != 1 || !slices.Equal(r.LIDSamples, want) {
		t.Errorf("report %+v, want %+v", r, want)
	}
	notes(t, r, "lacks 1 of the end ports")

	dir = compiled(t, f, tb)
	for _, name := range []string{guid2lidFile, lidMatrixFile} {
		short.Check(t, os.Remove(filepath.Join(dir, name)))
	}
	r = short.Must(Run(t.Context(), f, tb, Options{Dir: dir}))(t)
	notes(t, r, guid2lidFile+" is not there", lidMatrixFile+" is not there")

	short.Check(t, os.Remove(filepath.Join(dir, lftsFile)))
	if r, err := Run(t.Context(), f, tb, Options{Dir: dir}); r != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without tables: %v, %v", r, err)
	}
}

// A fabric in two pieces: OpenSM sees the larger one.
func TestPieces(t *testing.T) {
	alone(t)
	var b fabric.Builder
	for i := range 5 {
		s, _ := b.AddNode(fabric.Node{GUID: fabric.GUID(0x200000 + i), Type: fabric.Switch, NumPorts: 4, Description: "switch " + strconv.Itoa(i)})
		short.Check(t, b.SetPort(s, 0, 0, fabric.LID(i+1), 0))
	}
	for _, c := range [][2]int{{0, 1}, {2, 3}, {3, 4}} {
		short.Check(t, b.Connect(c[0], 1, c[1], 2, fabric.Link{}))
	}
	f := short.Must(b.Build())(t)
	r := short.Must(Run(t.Context(), f, tables(f), Options{}))(t)
	want := []Switch{{0x200000, fabric.Name{Text: "switch 0"}}, {0x200001, fabric.Name{Text: "switch 1"}}}
	if r.Equal() || r.Unread != 2 || !slices.Equal(r.UnreadSamples, want) || r.EqualSwitches != 3 || r.Differences != 0 {
		t.Errorf("report %+v, want %+v unread", r, want)
	}
	notes(t, r, "no cables lead to 2 of the switches")
}

func TestErrors(t *testing.T) {
	alone(t)
	f := grid(t, 2, 2)
	tb := tables(f)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Run(cancelled, f, tb, Options{}); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, %v", r, err)
	}
	if r, err := Run(t.Context(), f, lft.NewTables(3, 9), Options{}); r != nil || err == nil {
		t.Errorf("tables of another fabric: %v, %v", r, err)
	}
	var unfit *UnfitError
	if r, err := Run(t.Context(), &fabric.Fabric{}, lft.NewTables(0, 0), Options{}); r != nil || !errors.As(err, &unfit) {
		t.Errorf("no switch: %v, %v", r, err)
	}
	base := make([]fabric.LID, f.NumPorts())
	lmc := make([]uint8, f.NumPorts())
	for i, p := range f.CAPorts() {
		base[p], lmc[p] = fabric.LID(16*(i+1)), uint8(i)
	}
	mixed := short.Must(f.WithLIDs(base, lmc))(t)
	if r, err := Run(t.Context(), mixed, tables(mixed), Options{}); r != nil || !errors.As(err, &unfit) || !strings.Contains(err.Error(), "LMC") {
		t.Errorf("several LMCs: %v, %v", r, err)
	}
	clear(lmc)
	lmc[f.PortBase(0)], base[f.PortBase(0)] = 1, 2
	mixed = short.Must(f.WithLIDs(base, lmc))(t)
	if r, err := Run(t.Context(), mixed, tables(mixed), Options{}); r != nil || !errors.As(err, &unfit) || !strings.Contains(err.Error(), "OpenSM gives it 0") {
		t.Errorf("LMC on a base port 0: %v, %v", r, err)
	}
	var missing *ibsim.MissingError
	if r, err := Run(t.Context(), f, tb, Options{OpenSM: "/no/such/opensm"}); r != nil || !errors.As(err, &missing) || missing.Package != "opensm" {
		t.Errorf("no OpenSM: %v, %v", r, err)
	}
	var exit *ibsim.ExitError
	if r, err := Run(t.Context(), f, tb, Options{OpenSM: "false"}); r != nil || !errors.As(err, &exit) {
		t.Errorf("an OpenSM that fails: %v, %v", r, err)
	}
	t.Setenv("PATH", "")
	if r, err := Run(t.Context(), f, tb, Options{}); r != nil || !errors.As(err, &missing) {
		t.Errorf("an empty PATH: %v, %v", r, err)
	}
}

// Rehearsals at the same time do not see each other.
func TestTwo(t *testing.T) {
	alone(t)
	var wg sync.WaitGroup
	for _, f := range []*fabric.Fabric{grid(t, 4, 4), irregular(t, 12, 0), grid(t, 3, 5)} {
		wg.Go(func() {
			r, err := Run(t.Context(), f, tables(f), Options{})
			if err != nil {
				t.Error(err)
				return
			}
			equal(t, r, nil, f)
		})
	}
	wg.Wait()
}

// Cancelled in each of its stages, a rehearsal leaves nothing. It may be done before.
func TestCancelled(t *testing.T) {
	alone(t)
	f := grid(t, short.Of(12, 5), 12)
	tb := tables(f)
	for _, at := range short.Part(3, []struct {
		stage string
		after time.Duration
	}{
		{StagePrepare, 0}, {StageSimulate, 0}, {StageSimulate, 20 * time.Millisecond},
		{StageOpenSM, 0}, {StageOpenSM, 50 * time.Millisecond}, {StageOpenSM, 200 * time.Millisecond},
		{StageReadBack, 0}, {StageReadBack, 30 * time.Millisecond},
	}) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := Run(ctx, f, tb, Options{Progress: func(stage string) {
			if stage == at.stage {
				time.AfterFunc(at.after, cancel)
			}
		}})
		cancel()
		if done := err == nil && r.Equal() && at.after > 0; !done && (r != nil || err != context.Canceled) {
			t.Errorf("%s after %v: %v, %v", at.stage, at.after, r, err)
		}
		if left := running(os.Getpid()); len(left) > 0 {
			t.Errorf("%s after %v: still running: %q", at.stage, at.after, left)
		}
	}
}

// A process that is killed in the middle leaves no process.
func TestKilled(t *testing.T) {
	if os.Getenv("IBWEAVE_TEST_REHEARSE") != "" {
		f := grid(t, 20, 20)
		_, err := Run(t.Context(), f, tables(f), Options{Progress: func(stage string) {
			if stage == StageOpenSM {
				fmt.Println("ready")
			}
		}})
		t.Fatal("it has not been killed:", err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "IBWEAVE_TEST_REHEARSE=1", "TMPDIR="+t.TempDir())
	out := short.Must(cmd.StdoutPipe())(t)
	short.Check(t, cmd.Start())
	io.ReadFull(out, make([]byte, len("ready\n")))
	short.Await(t, func() bool { return len(running(cmd.Process.Pid)) == 2 }, "ibsim and opensm do not run")
	cmd.Process.Kill()
	cmd.Wait()
	var left []string
	short.Await(t, func() bool {
		left = running(cmd.Process.Pid)
		return len(left) == 0
	}, "still running ", &left)
}

func TestReplaceGUIDs(t *testing.T) {
	up := func(g fabric.GUID) fabric.GUID {
		if g == 0x1f {
			return 0x123
		}
		return g
	}
	for _, c := range [][2]string{
		{"", ""},
		{"Unicast lids [0-9] of switch Lid 1 guid 0x000000000000001f ('x'):\n", "Unicast lids [0-9] of switch Lid 1 guid 0x000000000000001f ('x'):\n"},
		{"0x0001 003 # Channel Adapter portguid 0x000000000000001f: 'a portguid 0x1f'", "0x0001 003 # Channel Adapter portguid 0x0000000000000123: 'a portguid 0x1f'"},
		{"0x0001 003 # portguid 0x1F\r\n\n", "0x0001 003 # portguid 0x0000000000000123\r\n\n"},
		{"0x0001 003 # portguid 0x000000000000002f\n", "0x0001 003 # portguid 0x000000000000002f\n"},
		{"0x0001: 00 02 ff # portguid 0x000000000000001f\n", "0x0001: 00 02 ff # portguid 0x0000000000000123\n"},
		{"0x000000000000001f 0x0001 0x0001\n\n0x0000000000000020 0x001f 0x001f\n", "0x0000000000000123 0x0001 0x0001\n\n0x0000000000000020 0x001f 0x001f\n"},
		{"0x001f 003\n", "0x001f 003\n"},
		{" portguid 0x00000000000000001f\n", " portguid 0x00000000000000001f\n"},
		{" portguid 0x", " portguid 0x"},
	} {
		var out bytes.Buffer
		if err := replaceGUIDs(&out, []byte(c[0]), up); err != nil || out.String() != c[1] {
			t.Errorf("%.80q: %.80q, %v, want %.80q", c[0], out.String(), err, c[1])
		}
	}
}

func FuzzReplaceGUIDs(f *testing.F) {
	f.Add([]byte("Unicast lids [0-2] of switch Lid 1 guid 0x0000000000000010 ('s guid 0x20'):\n0x0000 255 \n0x0001 000 \n"))
	f.Add([]byte("0x0001 003 # Switch portguid 0x000000000000001f: 'a'\n0x000000000000001f 0x0001 0x0001\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var same, there, back bytes.Buffer
		if err := replaceGUIDs(&same, text, func(g fabric.GUID) fabric.GUID { return g }); err != nil || !bytes.Equal(same.Bytes(), text) {
			t.Fatalf("no GUID changes, but the text: %q, %v", same.Bytes(), err)
		}
		turn := func(g fabric.GUID) fabric.GUID { return ^g }
		short.Check(t, replaceGUIDs(&there, text, turn))
		short.Check(t, replaceGUIDs(&back, there.Bytes(), turn))
		var full bytes.Buffer // GUIDs with all digits, as they are written
		short.Check(t, replaceGUIDs(&full, text, func(g fabric.GUID) fabric.GUID { return g ^ 1 }))
		same.Reset()
		short.Check(t, replaceGUIDs(&same, full.Bytes(), func(g fabric.GUID) fabric.GUID { return g ^ 1 }))
		if !bytes.Equal(back.Bytes(), same.Bytes()) {
			t.Errorf("there and back: %q, %q", back.Bytes(), same.Bytes())
		}
	})
}

// Differences name ports by number and label.
func TestDifferencesHaveLabels(t *testing.T) {
	labels := fabric.PortLabels{1: "1/1/1", 3: "1/2/1"}
	s := Switch{0x10, fabric.Name{Text: "leaf"}}
	for _, c := range []struct {
		got  fmt.Stringer
		want string
	}{
		{Difference{Switch: 0x10, Name: s.Name, LID: 4, Ours: 3, OpenSM: 2, Labels: labels},
			`"leaf" (0x0000000000000010), LID 4: port 3(1/2/1), OpenSM has port 2`},
		{Difference{Switch: 0x10, Name: s.Name, LID: 4, Ours: fabric.NoPath, OpenSM: 1, Labels: labels},
			`"leaf" (0x0000000000000010), LID 4: no path, OpenSM has port 1(1/1/1)`},
		{MaskDifference{"g", "ff12::1", 0xc001, s, []int{1, 2, 3}, []int{3}, labels},
			`group "g" (ff12::1), MLID 0xc001, "leaf" (0x0000000000000010): ports 1(1/1/1),2,3(1/2/1), OpenSM has port 3(1/2/1)`},
		{MapDifference{s, 1, 2, []int{0, 1}, []int{0, 0}, labels},
			`"leaf" (0x0000000000000010), port 1(1/1/1) to port 2: VLs 0,1, OpenSM has 0,0`},
	} {
		short.Equal(t, c.got.String(), c.want)
	}
}

// Paths are thinned by the LIDs that there are, and not by the highest.
func TestThinning(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Hosts: 1}))(t)
	for _, apart := range []fabric.LID{1, 1000} {
		base, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
		last := fabric.LID(0)
		f.EndPorts(func(p fabric.PortID) {
			last += apart
			base[p] = last
		})
		g := short.Must(f.WithLIDs(base, lmc))(t)
		for most, want := range map[int]int{325: 1, 324: 2, 100: 4} {
			short.Equal(t, thinning(g, most), want, "LIDs", apart, "apart, at most", most, "paths: one of ports")
		}
	}
}
