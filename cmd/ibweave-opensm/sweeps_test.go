package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
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
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

var sweeps = flag.Int("sweeps", short.Usual(60, 20), "heavy sweeps of TestManySweeps")

// dial is a client on the simulated fabric.
func (s *testbed) dial(t *testing.T) *subnet.Client {
	t.Helper()
	transport := short.Must(s.Dial(t.Context(), ""))(t)
	c := subnet.New(transport, subnet.Options{Timeout: 10 * time.Second})
	t.Cleanup(func() { _ = c.Close() }) // ibsim is about to end
	return c
}

// join has every other host join a group as a full member.
func (s *testbed) join(t *testing.T, c *subnet.Client, groups int) {
	t.Helper()
	m := short.Must(c.Manager(t.Context()))(t)
	for i := range groups {
		for k, p := range s.f.CAPorts() {
			if (k+i)%2 > 0 {
				continue
			}
			member := subnet.Membership{MGID: netip.MustParseAddr(fmt.Sprintf("ff12:a01c::%x", i+1)), Port: s.f.PortGUID(p), State: mad.FullMember}
			if _, err := c.Join(t.Context(), m, member); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// have is what the switches have.
func (s *testbed) have(t *testing.T, c *subnet.Client) *subnet.Tables {
	t.Helper()
	d, err := c.Discover(t.Context())
	if err != nil || len(d.Problems) > 0 {
		t.Fatal(err, d.Problems)
	}
	tables, err := c.Pull(t.Context(), d, subnet.PullOptions{LFT: true, MFT: true, MaxMLID: 0xc03f})
	if err != nil || len(tables.Problems) > 0 {
		t.Fatal(err, tables.Problems)
	}
	return tables
}

// same waits until the switches have tables, since OpenSM has answered who joined
// before it writes masks.
func (s *testbed) same(t *testing.T, c *subnet.Client, want *subnet.Tables, when string) {
	t.Helper()
	var wrong bytes.Buffer
	short.Await(t, func() bool {
		got := s.have(t, c)
		wrong.Reset()
		for n := range fabric.NodeID(s.f.NumSwitches()) {
			if !slices.Equal(got.LFT.Row(n)[:s.f.MaxLID()+1], want.LFT.Row(n)[:s.f.MaxLID()+1]) {
				fmt.Fprintf(&wrong, "switch %s has other entries\n", s.f.Node(n).GUID)
			}
		}
		if !slices.Equal(got.MFT.MLIDs(), want.MFT.MLIDs()) {
			fmt.Fprintf(&wrong, "MLIDs %v, want %v\n", got.MFT.MLIDs(), want.MFT.MLIDs())
			return false
		}
		for _, l := range want.MFT.MLIDs() {
			if !slices.Equal(got.MFT.Ports(l), want.MFT.Ports(l)) {
				fmt.Fprintf(&wrong, "MLID %#x has other masks\n", uint16(l))
			}
		}
		return wrong.Len() == 0
	}, when, &wrong)
}

// A standby OpenSM with the plugin routes nothing, and takes over when the master
// has died: with the same tables, those of the compiler, and with the same masks
// once ports have joined again. An engine that keeps tables keeps those that came of
// failures and repairs, and not one block is written.
func TestHandover(t *testing.T) {
	t.Run("xy", func(t *testing.T) {
		f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1})
		handOver(t, "xy", f, err)
	})
	for _, engine := range []string{"updn", "layered", "fattree"}[:short.Usual(3, 2)] {
		t.Run(engine, func(t *testing.T) {
			f, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})
			handOver(t, engine, f, err)
		})
	}
}

// handOver has a standby take over a fabric.
func handOver(t *testing.T, engine string, f *fabric.Fabric, err error) {
	s := startAlone(t, f, err) // under load OpenSM misses that the master has died
	twin := short.Must(ibsim.NewTwin(s.f))(t)
	polling := []string{"sminfo_polling_timeout 200", "polling_retry_number 2"}
	config := filepath.Join(s.dir, "ibweave.yaml") // which the standby has, too
	writeFile(t, config, []byte(unbalanced))
	// ibsim keeps the place of a client that is killed, unless it is told.
	first, err := ibsim.StartOpenSM(t.Context(), s.Sim, ibsim.OpenSMConfig{
		Engine: "ibweave-" + engine, Dir: t.TempDir(), Timeout: hung,
		Options: append([]string{"event_plugin_name ibweave-opensm", "event_plugin_options --config " + config, "sweep_interval 0", "sm_priority 9"}, polling...),
		Line: func(l ibsim.LogLine) {
			if strings.HasPrefix(l.Message, "ibweave: ERR ") {
				t.Error(l.Message)
			}
		},
	})
	short.Check(t, err)
	c := s.dial(t)
	s.join(t, c, 3)
	sweep := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), hung)
		defer cancel()
		short.Check(t, first.Sweep(ctx))
	}
	sweep()
	cables, _ := s.f.SwitchLinks(1)
	port := func(p fabric.PortID) string { return fmt.Sprintf("%q[%d]", twin.NodeID(s.f.Owner(p)), s.f.Num(p)) }
	for _, command := range []string{"Unlink " + port(cables[0]), "Link " + port(cables[0]) + " " + port(s.f.Peer(cables[0]))} {
		if engine == "xy" {
			break // it has to have the whole mesh
		}
		short.Check(t, s.Console(t.Context(), command, nil))
		sweep()
	}
	want := s.have(t, c)
	if len(want.MFT.MLIDs()) != 3 {
		t.Fatalf("MLIDs %v", want.MFT.MLIDs())
	}
	r := s.compiled(t, engine, compile.Options{})
	for n := range fabric.NodeID(s.f.NumSwitches()) {
		if engine == "xy" && !slices.Equal(want.LFT.Row(n)[:s.f.MaxLID()+1], r.Routing.Tables.Row(n)[:s.f.MaxLID()+1]) {
			t.Fatalf("switch %d does not have the compiler's entries", n)
		}
	}

	second := s.begin(t, twin.NodeID(2), "ibweave-"+engine, unbalanced, append(polling, "sm_priority 1")...)
	second.wait("Entering STANDBY state", 1)
	if strings.Contains(second.log(), "ibweave: ibweave-"+engine) {
		t.Error("a standby has routed")
	}
	// ibsim loses what it has handed to a program that ends, and a program on ibsim has
	// no timeouts of the kernel: OpenSM would wait for that answer for ever. So no program
	// asks the master while it dies.
	second.signal(syscall.SIGSTOP)
	s.join(t, c, 3) // what the standby has asked is answered before
	short.Check(t, first.Stop())
	second.signal(syscall.SIGCONT)
	second.wait("Entering MASTER state", 1)
	second.wait("-> SUBNET UP\n", 1)
	if n := strings.Count(second.log(), "Writing FT block"); n > 0 {
		t.Errorf("%d blocks are written for the same fabric", n)
	}
	s.join(t, c, 3)
	second.sweep()
	second.wait("-> SUBNET UP\n", 2)
	s.same(t, c, want, "after the master died")

	if log := second.log(); strings.Contains(log, "ibweave: ERR") {
		t.Errorf("the plugin says %q", ours(strings.Split(log, "\n")))
	}
}

// OpenSM's console can have it route without a sweep. It does not ask for masks
// then, and those that there are stay.
func TestReroute(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1})
	s := start(t, f, err)
	d := s.stay(t, "ibweave-xy", "log: {level: debug}", "console local")
	c := s.dial(t)
	s.join(t, c, 3)
	d.sweep()
	d.wait("-> SUBNET UP\n", 2)
	want := s.have(t, c)
	const line = "routed without a sweep"
	if strings.Contains(s.ownLog(t), line) {
		t.Error("sweeps are taken for something else")
	}
	if _, err := d.in.Write([]byte("reroute\n")); err != nil {
		t.Fatal(err)
	}
	d.wait("REROUTE COMPLETE", 1)
	// Our log is written in the background.
	short.Await(t, func() bool { return strings.Contains(s.ownLog(t), line) }, line)
	if n := strings.Count(s.ownLog(t), line); n != 1 {
		t.Errorf("%d lines %q, want one\n%s", n, line, s.ownLog(t))
	}
	s.same(t, c, want, "after rerouting")
	d.sweep()
	d.wait("-> SUBNET UP\n", 3)
	if n := strings.Count(s.ownLog(t), line); n != 1 {
		t.Errorf("%d lines %q, want one\n%s", n, line, s.ownLog(t))
	}
	s.same(t, c, want, "after another sweep")
}

// maxDrift bounds how much OpenSM may grow from the second quarter of its sweeps to
// the last one, in KiB, however many they are.
const maxDrift = 4 << 10

// The memory of one OpenSM stays as it is, sweep after sweep, while the fabric
// changes each time and is routed from scratch, with groups.
func TestManySweeps(t *testing.T) {
	sweeps := *sweeps
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 3})
	s := startAlone(t, f, err) // it measures memory
	routed := 0
	o, err := ibsim.StartOpenSM(t.Context(), s.Sim, ibsim.OpenSMConfig{
		Engine: "ibweave-updn", Dir: s.dir, Timeout: hung, Flags: 0x07,
		Options: []string{"event_plugin_name ibweave-opensm", "sweep_interval 0"},
		Line: func(l ibsim.LogLine) {
			if strings.HasPrefix(l.Message, "ibweave: ERR ") {
				t.Error(l.Message)
			}
			if strings.HasPrefix(l.Message, "ibweave: ibweave-updn: ") {
				routed++
			}
		},
	})
	short.Check(t, err)
	s.join(t, s.dial(t), 4)
	twin := short.Must(ibsim.NewTwin(s.f))(t)
	// A cable between switches goes and comes.
	cable, _ := s.f.SwitchLinks(0)
	port := func(p fabric.PortID) string { return fmt.Sprintf("%q[%d]", twin.NodeID(s.f.Owner(p)), s.f.Num(p)) }
	var rss []int
	for i := range sweeps / 2 { // Sweep has two
		command := "Unlink " + port(cable[0])
		if i%2 > 0 {
			command = "Link " + port(cable[0]) + " " + port(s.f.Peer(cable[0]))
		}
		short.Check(t, s.Console(t.Context(), command, nil))
		ctx, cancel := context.WithTimeout(t.Context(), hung)
		err := o.Sweep(ctx)
		cancel()
		short.Check(t, err)
		rss = append(rss, residentKiB(t, o.Process.Pid))
	}
	if err := o.Stop(); err != nil {
		t.Error(err)
	}
	log := readFile(t, filepath.Join(s.dir, "ibweave.log"))
	scratch := strings.Count(string(log), "routed") - strings.Count(string(log), `"route": "0s"`)
	quarter := len(rss) / 4
	early, late := slices.Max(rss[quarter:2*quarter]), slices.Max(rss[3*quarter:])
	t.Logf("%d heavy sweeps, %d routings, %d of them from scratch; OpenSM has %d KiB in the second quarter and %d KiB in the last", sweeps, routed, scratch, early, late)
	// One step of some MiB is no leak: the kernel makes huge pages of small ones at any time.
	step := 0
	for i := quarter + 1; i < len(rss); i++ {
		step = max(step, rss[i]-rss[i-1])
	}
	if late-step > early+maxDrift {
		t.Errorf("OpenSM grows: %v KiB", rss)
	}
	if scratch < sweeps/2 {
		t.Errorf("routed from scratch %d times, want %d", scratch, sweeps/2)
	}
}

// residentKiB is the memory of a process.
func residentKiB(t *testing.T, pid int) int {
	t.Helper()
	return statusKiB(t, pid, "VmRSS")
}

// statusKiB is a figure of a process' memory.
func statusKiB(t *testing.T, pid int, name string) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, ok := strings.Cut(string(data), "\n"+name+":")
	if err != nil || !ok {
		t.Fatalf("no process %d: %v", pid, err)
	}
	kib := short.Must(strconv.Atoi(strings.Fields(rest)[0]))(t)
	return kib
}

// unbalanced is a configuration by which the plugin asks for no sweeps.
const unbalanced = "rebalance: 100\n"

// After a cable has gone, the entries for LIDs whose packets did not use it are those of
// before in all switches, and in blocks few are others; and groups are reached all the
// same. When it is back, entries that lead elsewhere since then may stay.
func TestKeptTables(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})
	s := start(t, f, err)
	d := s.stay(t, "ibweave-updn", unbalanced)
	c := s.dial(t)
	s.join(t, c, 2)
	d.sweep()
	d.wait("-> SUBNET UP\n", 2)
	before := s.have(t, c)
	twin := short.Must(ibsim.NewTwin(s.f))(t)
	cables, _ := s.f.SwitchLinks(4) // the order of the switches does not hang on it
	cable := cables[1]
	port := func(p fabric.PortID) string { return fmt.Sprintf("%q[%d]", twin.NodeID(s.f.Owner(p)), s.f.Num(p)) }
	short.Check(t, s.Console(t.Context(), "Unlink "+port(cable), nil))
	d.sweep()
	d.wait("-> SUBNET UP\n", 3)
	after := s.have(t, c)
	entries, blocks := differ(s.f, before, after)
	if len(entries) == 0 {
		t.Fatal("nothing has changed")
	}
	short.Await(t, func() bool { return strings.Contains(s.ownLog(t), `"kept": true`) }, "nothing was kept")
	used := usersOf(s.f, before.LFT, cable)
	for _, e := range entries {
		if !used[e.lid] {
			t.Errorf("switch %d has another entry for LID %d, whose packets did not use the cable", e.s, e.lid)
		}
	}
	want := fmt.Sprintf(" rerouted, %d blocks changed", blocks)
	if log := d.log(); !strings.Contains(log, want) {
		t.Errorf("OpenSM's log has no line with %q: %q", want, ours(strings.Split(log, "\n")))
	}
	g := s.f.Without(cable)
	short.EqualList(t, after.MFT.MLIDs(), before.MFT.MLIDs(), "MLIDs before")
	forest := lft.NewForest(g)
	for lid, p := range g.LIDPorts() {
		if p == fabric.NoPort {
			continue
		}
		if forest.FindTree(after.LFT, fabric.LID(lid)); len(forest.Order) != g.NumSwitches() {
			t.Errorf("%d of %d switches deliver LID %d", len(forest.Order), g.NumSwitches(), lid)
		}
	}

	short.Check(t, s.Console(t.Context(), "Link "+port(cable)+" "+port(s.f.Peer(cable)), nil))
	d.sweep()
	d.wait("-> SUBNET UP\n", 4)
	back := s.have(t, c)
	used = usersOf(s.f, back.LFT, cable)
	entries, _ = differ(s.f, after, back)
	for _, e := range entries {
		if !used[e.lid] {
			t.Errorf("switch %d has another entry for LID %d, whose packets do not use the cable that is back", e.s, e.lid)
		}
	}
	if len(entries) == 0 {
		t.Error("the cable that is back has no share")
	}
	if log := d.log(); strings.Contains(log, "ibweave: ERR") {
		t.Errorf("the plugin says %q", ours(strings.Split(log, "\n")))
	}
}

type entryAt struct {
	s   fabric.NodeID
	lid int
}

// differ lists the entries that are not the same, and counts the blocks that have some.
func differ(f *fabric.Fabric, a, b *subnet.Tables) (list []entryAt, blocks int) {
	for s := range fabric.NodeID(f.NumSwitches()) {
		last := -1
		for lid := range int(f.MaxLID()) + 1 {
			if a.LFT.Row(s)[lid] != b.LFT.Row(s)[lid] {
				list = append(list, entryAt{s, lid})
				if lid/lft.BlockSize != last {
					last = lid / lft.BlockSize
					blocks++
				}
			}
		}
	}
	return list, blocks
}

// usersOf says of each LID whether some switch sends it over a cable.
func usersOf(f *fabric.Fabric, t *lft.Tables, cable fabric.PortID) []bool {
	used := make([]bool, int(f.MaxLID())+1)
	for _, p := range []fabric.PortID{cable, f.Peer(cable)} {
		for lid := range used {
			used[lid] = used[lid] || t.Row(f.Owner(p))[lid] == f.Num(p)
		}
	}
	return used
}
