package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

var (
	changes = flag.Int("changes", short.Usual(51, 18), "changes of the fabric in TestChaos, in all cases together")
	seed    = flag.Uint64("seed", 1, "seed of TestChaos, TestChaosSequences, TestFileChaos and TestRestart with -fabrics")
)

// Cables, switches and hosts go and come, packets are lost, OpenSM is killed, or another takes over, and
// the ports that are there join and leave groups. After every change OpenSM, with the
// plugin, has tables in the switches by which all that is connected is reached, by
// unicast and by multicast, without a loop and without a credit loop; they are those
// that the compiler makes of the fabric as it is then, by the first engine that can,
// unless the plugin keeps of the last ones what it can.
//
// The tables are read by our own requests, and verified on the fabric that these
// find, which is held against what has been left connected.
func TestChaos(t *testing.T) {
	cases := []chaosCase{
		{"fat tree", "ibweave-updn,updn", "incremental: false\n", nil, compile.Options{}, func() (*fabric.Fabric, error) {
			return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})
		}},
		{"fat tree, kept", "ibweave-updn,updn", keepsTables, nil, compile.Options{}, func() (*fabric.Fabric, error) {
			return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})
		}},
		{"irregular, kept", "ibweave-updn,updn", keepsTables, nil, compile.Options{}, func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 16, Degree: 4, Hosts: 32, Seed: 7})
		}},
		{"fat tree by fattree, kept alone", "ibweave-fattree,ibweave-updn,updn", keepsAlone, nil, compile.Options{}, func() (*fabric.Fabric, error) {
			return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})
		}},
		{"fat tree by layered, kept alone", "ibweave-layered,ibweave-updn,updn", keepsAlone, nil, compile.Options{}, func() (*fabric.Fabric, error) {
			return gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
		}},
		{"mesh", "ibweave-xy,ibweave-updn,updn", "incremental: false\n", nil, compile.Options{}, func() (*fabric.Fabric, error) {
			return mesh.Generate(mesh.Spec{Dims: []int{5, 4}, Hosts: 2})
		}},
		{"irregular with VLs", "ibweave-updn,updn", "vls: 2\nsl2vl: spread\n", []string{"qos TRUE"}, compile.Options{Route: lft.Options{VLs: 2}, SL2VL: "spread"}, func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 16, Degree: 4, Hosts: 32, Seed: 7})
		}},
	}
	t.Cleanup(func() {
		for _, left := range running("") {
			t.Errorf("still running: %s", left.line)
		}
	})
	for i, tc := range cases {
		n := *changes / len(cases)
		if i < *changes%len(cases) {
			n++
		}
		t.Run(tc.name, func(t *testing.T) { tc.run(t, n) })
	}
}

// hung is how long an event is waited for: no machine is that slow.
const hung = 5 * time.Minute

// keepsTables is a configuration by which tables depend on those before.
const keepsTables = "incremental: true\n"

// keepsAlone is one by which they do, and the plugin asks for no sweeps: a restart changes nothing.
const keepsAlone = keepsTables + unbalanced

// program is a process and its command line.
type program struct {
	pid  int
	line string
}

// running lists the programs that these tests have started on ibsim, and ibsim, of those with a text in their environment.
func running(with string) (list []program) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && bytes.Contains(env, []byte("IBSIM_SOCKNAME=ibweave-"+strconv.Itoa(os.Getpid())+"-")) && bytes.Contains(env, []byte(with)) {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			pid, _ := strconv.Atoi(filepath.Base(dir))
			list = append(list, program{pid, strings.ReplaceAll(string(line), "\x00", " ")})
		}
	}
	return list
}

// chaosCase is a fabric and how OpenSM routes it.
type chaosCase struct {
	name, engine, config string
	options              []string
	compile              compile.Options // the same for the compiler
	make                 func() (*fabric.Fabric, error)
}

// chaos is a fabric that does not stay as it is.
type chaos struct {
	chaosCase
	*testbed
	t      *testing.T
	rnd    *rand.Rand
	twin   *ibsim.Twin
	client *subnet.Client
	sm     fabric.NodeID // the switch that OpenSM is attached to, and client

	cables []fabric.PortID // one end of each
	down   map[fabric.PortID]bool
	lossy  []fabric.NodeID
	groups []*chaosGroup
	// gone is the members that OpenSM may have forgotten, since they were not
	// always there: they join again, as hosts do.
	gone    map[fabric.PortID]bool
	history []string
	kinds   map[string]int
	sweeps  int
	// files is the test of the files that the plugin reads and writes, nil for none.
	files *fileChaos
	// see is shown each line of OpenSM's log, and named are texts of files that an option of opensm.conf names, by the option.
	see   func(message string)
	named map[string][]byte

	o *ibsim.OpenSM
	// place is the folder of this OpenSM, and priority is its sm_priority.
	place    string
	priority int

	mu      sync.Mutex
	failed  []string       // lines of the plugin in OpenSM's log
	engines map[string]int // how often each routed
	last    string         // the one that did last
	moved   int            // lines of steps towards balanced tables
	rss     []int          // KiB, after each sweep of this OpenSM
	grown   int            // KiB, the most that one OpenSM grew
}

// chaosGroup is a multicast group and those who are members while they are there.
type chaosGroup struct {
	mgid    netip.Addr
	members map[fabric.PortID]mad.JoinState
}

// full returns true if a full member of the group is among ports.
func (g *chaosGroup) full(ports []bool) bool {
	for p, state := range g.members {
		if ports[p] && state == mad.FullMember {
			return true
		}
	}
	return false
}

func (tc chaosCase) run(t *testing.T, n int) {
	c := tc.begin(t)
	c.startOpenSM()
	defer func() {
		if err := c.o.Stop(); err != nil {
			t.Error(err)
		}
	}()
	c.dial()
	c.settle()
	start := time.Now()
	for i := range n {
		c.disturb()
		c.settle()
		if (i+1)%min(n, max(10, n/4)) == 0 {
			c.restart()
		}
	}
	c.checkMemory()
	t.Logf("%d changes %v, %d sweeps, in %v; routed by %v; OpenSM grew by at most %d KiB, to %d KiB", n, c.kinds, c.sweeps,
		time.Since(start).Round(time.Millisecond), c.engines, c.grown, c.rss[len(c.rss)-1])
}

// begin simulates the fabric, and says who joins.
func (tc chaosCase) begin(t *testing.T) *chaos {
	t.Helper()
	f, err := tc.make()
	return tc.on(t, start(t, f, err))
}

// on is begin on a fabric that is simulated already.
func (tc chaosCase) on(t *testing.T, s *testbed) *chaos {
	t.Helper()
	c := &chaos{
		chaosCase: tc, testbed: s, t: t, rnd: rand.New(rand.NewPCG(*seed, 1)), sm: ibsim.Centre(s.f),
		place: s.dir, down: make(map[fabric.PortID]bool), gone: make(map[fabric.PortID]bool), kinds: make(map[string]int), engines: make(map[string]int),
	}
	c.twin = short.Must(ibsim.NewTwin(s.f))(t) // of itself: for the names of nodes
	for p := range fabric.PortID(s.f.NumPorts()) {
		if q := s.f.Peer(p); q > p {
			c.cables = append(c.cables, p)
		}
	}
	for i := range 6 {
		g := &chaosGroup{mgid: netip.MustParseAddr(fmt.Sprintf("ff12:a01c::%x", i+1)), members: make(map[fabric.PortID]mad.JoinState)}
		for range 4 + 3*i {
			c.change(g)
		}
		c.groups = append(c.groups, g)
	}
	c.mayBeForgotten()
	return c
}

// dial is a client on the fabric, where OpenSM is.
func (c *chaos) dial() {
	c.t.Helper()
	if c.client != nil {
		_ = c.client.Close() // it was where another OpenSM was
	}
	transport := short.Must(c.Dial(c.t.Context(), c.twin.NodeID(c.sm)))(c.t)
	client := subnet.New(transport, subnet.Options{Window: 8, Timeout: 2 * time.Second})
	c.client = client
	c.t.Cleanup(func() { _ = client.Close() }) // ibsim is about to end
}

// fail ends the test, with what has happened.
func (c *chaos) fail(format string, args ...any) {
	c.t.Helper()
	log, _ := os.ReadFile(filepath.Join(c.place, "opensm.log"))
	own, _ := os.ReadFile(filepath.Join(c.place, "ibweave.log"))
	c.t.Fatalf("%s\n-seed %d, the last changes:\n%s\nOpenSM's log ends with\n%s\nand the plugin's with\n%s", fmt.Sprintf(format, args...), *seed,
		strings.Join(c.history[max(0, len(c.history)-25):], "\n"), end(log), end(own))
}

// end is the last lines of a log.
func end(log []byte) string {
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}

// highest is the sm_priority of an OpenSM that starts alone. Each that takes over has one less
// than the one before, which it would take the fabric from else.
const highest = 15

// startOpenSM runs OpenSM, which keeps its cache of LIDs from the one before.
func (c *chaos) startOpenSM() {
	c.t.Helper()
	c.priority = highest
	var err error
	if c.o, err = ibsim.StartOpenSM(c.t.Context(), c.Sim, c.openSM(nil)); err != nil {
		c.fail("OpenSM: %v", err)
	}
	c.rss = nil
}

// openSM is how OpenSM runs at its place. A line of the log is shown to see as well, unless that is nil.
func (c *chaos) openSM(see func(message string)) ibsim.OpenSMConfig {
	c.t.Helper()
	file, program := filepath.Join(c.dir, "ibweave.yaml"), ""
	if c.files != nil {
		file, program = c.files.names["config"], c.files.program
	} else if err := os.WriteFile(file, []byte(c.config), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return ibsim.OpenSMConfig{
		Program: program, Engine: c.engine, Dir: c.place, Timeout: hung, Files: c.named,
		Env: []string{"SIM_HOST=" + c.twin.NodeID(c.sm), "OSM_CACHE_DIR=" + filepath.Join(c.dir, "cache")},
		Options: append([]string{"event_plugin_name ibweave-opensm", "event_plugin_options --config " + file, "sweep_interval 0",
			"transaction_timeout 100", "long_transaction_timeout 300", "sm_priority " + strconv.Itoa(c.priority), "honor_guid2lid_file TRUE",
			"sminfo_polling_timeout 200", "polling_retry_number 2"}, c.options...),
		Line: func(l ibsim.LogLine) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if strings.HasPrefix(l.Message, "ibweave: ERR ") {
				c.failed = append(c.failed, l.Message)
			}
			if name, found := strings.CutSuffix(l.Message, " tables configured on all switches"); found {
				c.last = name[strings.LastIndexByte(name, ' ')+1:]
				c.engines[c.last]++
			}
			if strings.Contains(l.Message, "; rebalanced, ") {
				c.moved++
			}
			for _, see := range []func(string){see, c.see} {
				if see != nil {
					see(l.Message)
				}
			}
		},
	}
}

// replace kills OpenSM after do has been called, and starts it again.
func (c *chaos) replace(do func()) {
	c.t.Helper()
	c.kinds["killed"]++
	do()
	c.signal(syscall.SIGKILL)
	<-c.o.Done
	c.history = append(c.history, "# OpenSM starts")
	c.startOpenSM()
	c.mayBeForgotten()
}

// takeOver has another OpenSM, on another switch, wait until this one is killed or told to end, after do has been
// called, and manage the fabric then.
func (c *chaos) takeOver(do func()) {
	c.t.Helper()
	c.kinds["takeover"]++
	there := c.connected()
	var list []fabric.NodeID
	for s := range fabric.NodeID(c.f.NumSwitches()) {
		if s != c.sm && there[c.f.PortBase(s)] {
			list = append(list, s)
		}
	}
	c.sm = one(c.rnd, list)
	c.place = map[bool]string{true: filepath.Join(c.dir, "other"), false: c.dir}[c.place == c.dir]
	c.priority--
	c.history = append(c.history, fmt.Sprintf("# OpenSM of priority %d waits on %s", c.priority, c.twin.NodeID(c.sm)))
	waits := make(chan struct{})
	var once sync.Once
	cfg := c.openSM(func(message string) {
		if strings.Contains(message, "Entering STANDBY state") {
			once.Do(func() { close(waits) })
		}
	})
	type started struct {
		o   *ibsim.OpenSM
		err error
	}
	up := make(chan started, 1)
	go func() {
		o, err := ibsim.StartOpenSM(c.t.Context(), c.Sim, cfg)
		up <- started{o, err}
	}()
	select {
	case <-waits:
	case s := <-up:
		c.fail("another OpenSM does not wait: %v", s.err)
	case <-time.After(hung):
		c.fail("another OpenSM does not wait")
	}
	// ibsim loses what it has handed to a program that ends, and a program on ibsim has no timeouts of the
	// kernel: OpenSM would wait for that answer for ever. So it asks nothing while the other one ends.
	pids := running("OSM_TMP_DIR=" + c.place + "\x00")
	if len(pids) != 1 {
		c.fail("%d OpenSMs wait", len(pids))
	}
	short.Check(c.t, syscall.Kill(pids[0].pid, syscall.SIGSTOP))
	m, err := c.client.Manager(c.t.Context())
	if err == nil { // what it has asked is answered before
		_, err = c.client.Members(c.t.Context(), m, mad.MCMemberRecord{MGID: c.groups[0].mgid}, mad.MCMemberMGID, 0)
	}
	if err != nil {
		c.fail("%v", err)
	}
	time.Sleep(300 * time.Millisecond) // the answer may have to wait for a CPU
	do()
	if c.rnd.IntN(2) == 0 {
		c.signal(syscall.SIGTERM)
		select {
		case <-c.o.Done:
		case <-time.After(5 * time.Second): // libumad2sim may hang in exit()
		}
		_ = c.o.Stop()
	} else {
		c.signal(syscall.SIGKILL)
		<-c.o.Done
	}
	short.Check(c.t, syscall.Kill(pids[0].pid, syscall.SIGCONT))
	c.history = append(c.history, "# OpenSM takes over")
	s := <-up
	if c.o = s.o; s.err != nil {
		c.fail("OpenSM: %v", s.err)
	}
	c.rss = nil
	c.dial()
	c.mayBeForgotten()
}

// console gives ibsim a command, which becomes part of the history.
func (c *chaos) console(format string, args ...any) {
	c.t.Helper()
	command := fmt.Sprintf(format, args...)
	c.history = append(c.history, command)
	if err := c.Console(c.t.Context(), command, nil); err != nil {
		c.fail("%v", err)
	}
}

// port is ibsim's name of a port.
func (c *chaos) port(p fabric.PortID) string {
	return fmt.Sprintf("%q[%d]", c.twin.NodeID(c.f.Owner(p)), c.f.Num(p))
}

// cut and mend take a cable away and put it back. A port that is cleared loses its
// LID as well, as when a host starts again.
func (c *chaos) cut(p fabric.PortID, how string) {
	if !c.down[p] {
		c.down[p] = true
		c.console("%s %s", how, c.port(p))
	}
}

func (c *chaos) mend(p fabric.PortID) {
	if c.down[p] {
		delete(c.down, p)
		c.console("Link %s %s", c.port(p), c.port(c.f.Peer(p)))
	}
}

// cablesOf is the cables of a node.
func (c *chaos) cablesOf(n fabric.NodeID) (list []fabric.PortID) {
	for _, p := range c.cables {
		if c.f.Owner(p) == n || c.f.Owner(c.f.Peer(p)) == n {
			list = append(list, p)
		}
	}
	return list
}

// one is one of a list.
func one[T any](rnd *rand.Rand, list []T) T { return list[rnd.IntN(len(list))] }

// disturb makes one change.
func (c *chaos) disturb() {
	c.t.Helper()
	kind := one(c.rnd, []string{"cable", "cable", "cables", "switch", "switch", "host", "host", "restored", "flap", "loss", "during a sweep", "repaired"})
	if kind == "repaired" && c.rnd.IntN(3) > 0 {
		kind = "restored"
	}
	c.kinds[kind]++
	c.history = append(c.history, "# "+kind)
	toggle := func(p fabric.PortID) {
		if c.down[p] {
			c.mend(p)
		} else {
			c.cut(p, one(c.rnd, []string{"Unlink", "Unlink", "Clear"}))
		}
	}
	switch kind {
	case "cable":
		toggle(one(c.rnd, c.cables))
	case "cables":
		for range 2 + c.rnd.IntN(5) {
			toggle(one(c.rnd, c.cables))
		}
	case "switch", "host":
		first, last := 0, c.f.NumSwitches()
		if kind == "host" {
			first, last = last, c.f.NumNodes()
		}
		list := c.cablesOf(fabric.NodeID(first + c.rnd.IntN(last-first)))
		away := c.rnd.IntN(4) > 0
		for _, p := range list {
			if away {
				c.cut(p, "Unlink")
			} else {
				c.mend(p)
			}
		}
	case "restored":
		down := slices.Sorted(maps.Keys(c.down))
		for range (len(down) + 1) / 2 {
			c.mend(one(c.rnd, down))
		}
	case "repaired":
		for _, p := range slices.Sorted(maps.Keys(c.down)) {
			c.mend(p)
		}
	case "flap":
		// Down and up again, so fast that OpenSM may see it or not.
		for range 1 + c.rnd.IntN(4) {
			p := one(c.rnd, c.cables)
			toggle(p)
			c.pause(20)
			toggle(p)
		}
		c.mayBeForgotten()
	case "loss":
		// Packets are lost while OpenSM sweeps.
		for range 1 + c.rnd.IntN(3) {
			n := fabric.NodeID(c.rnd.IntN(c.f.NumSwitches()))
			c.lossy = append(c.lossy, n)
			c.console("Error %q %d", c.twin.NodeID(n), 2+c.rnd.IntN(20))
		}
		toggle(one(c.rnd, c.cables))
		c.signal(syscall.SIGHUP)
		c.pause(500)
		for _, n := range c.lossy {
			c.console("Error %q 0", c.twin.NodeID(n))
		}
		c.lossy = nil
		c.mayBeForgotten()
	case "during a sweep":
		c.signal(syscall.SIGHUP)
		for range 1 + c.rnd.IntN(6) {
			c.pause(15)
			toggle(one(c.rnd, c.cables))
		}
		c.mayBeForgotten()
	}
	c.keepManageable()
	// And somebody joins, or leaves.
	for range c.rnd.IntN(3) {
		g := one(c.rnd, c.groups)
		p, left := c.change(g)
		if left != 0 {
			c.leave(g, p, left)
		} else {
			c.gone[p] = true
		}
	}
}

// keepManageable mends all cables of OpenSM's switch if no other switch is left there: it would have nothing to manage.
func (c *chaos) keepManageable() {
	c.t.Helper()
	list := c.cablesOf(c.sm)
	if slices.ContainsFunc(list, func(p fabric.PortID) bool {
		return !c.down[p] && c.f.IsSwitch(c.f.Owner(p)) && c.f.IsSwitch(c.f.Owner(c.f.Peer(p)))
	}) {
		return
	}
	for _, p := range list {
		c.mend(p)
	}
}

// pause waits up to some milliseconds.
func (c *chaos) pause(ms int) { time.Sleep(time.Duration(c.rnd.IntN(1000*ms)) * time.Microsecond) }

func (c *chaos) signal(s syscall.Signal) {
	c.history = append(c.history, "# "+s.String())
	if err := syscall.Kill(c.o.Process.Pid, s); err != nil {
		c.fail("OpenSM is not there: %v", err)
	}
}

// mayBeForgotten has all members join again.
func (c *chaos) mayBeForgotten() {
	for _, p := range c.f.CAPorts() {
		c.gone[p] = true
	}
}

// change makes a port a member of a group, or no longer: then left is as what it
// was. A group always has a member.
func (c *chaos) change(g *chaosGroup) (p fabric.PortID, left mad.JoinState) {
	p = one(c.rnd, c.f.CAPorts())
	if state, ok := g.members[p]; ok && len(g.members) > 3 {
		delete(g.members, p)
		return p, state
	}
	if _, ok := g.members[p]; !ok {
		g.members[p] = one(c.rnd, []mad.JoinState{mad.FullMember, mad.FullMember, mad.NonMember, mad.SendOnlyNonMember})
	}
	return p, 0
}

// leave tells OpenSM that a port leaves. It may no longer know the port.
func (c *chaos) leave(g *chaosGroup, p fabric.PortID, state mad.JoinState) {
	c.t.Helper()
	c.history = append(c.history, fmt.Sprintf("# %s leaves %s as %s", c.f.PortName(p), g.mgid, state))
	if !c.connected()[p] {
		return // it cannot; OpenSM has forgotten it, or is about to
	}
	m, err := c.client.Manager(c.t.Context())
	if err == nil {
		_, err = c.client.Leave(c.t.Context(), m, subnet.Membership{MGID: g.mgid, Port: c.f.PortGUID(p), State: state})
	}
	if err != nil {
		c.history = append(c.history, "# "+err.Error())
	}
}

// connected says of each port whether its node is connected with OpenSM's switch;
// CAs do not forward.
func (c *chaos) connected() []bool {
	f := c.f
	there := make([]bool, f.NumPorts())
	seen := make([]bool, f.NumNodes())
	queue := []fabric.NodeID{c.sm}
	seen[c.sm] = true
	for i := 0; i < len(queue); i++ {
		n := queue[i]
		for num := range f.Node(n).NumPorts + 1 {
			p := f.Port(n, num)
			if f.IsSwitch(n) {
				there[p] = true
			}
			q := f.Peer(p)
			if !f.IsSwitch(n) || q == fabric.NoPort || c.down[min(p, q)] {
				continue
			}
			if to := f.Owner(q); !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
			there[q] = true
		}
	}
	return there
}

// settle lets OpenSM sweep and members join, and checks what the switches have
// then.
func (c *chaos) settle() {
	c.t.Helper()
	c.sweep()
	there := c.connected()
	joined := false
	for _, p := range c.f.CAPorts() {
		if !there[p] {
			c.gone[p] = true
		}
	}
	// With the last full member a group has gone, for the others too (IBA
	// 15.2.5.17.2): they join again.
	for _, g := range c.groups {
		kept := false
		for p, state := range g.members {
			kept = kept || state == mad.FullMember && !c.gone[p]
		}
		if !kept {
			for p := range g.members {
				c.gone[p] = true
			}
		}
	}
	m, err := c.client.Manager(c.t.Context())
	if err != nil {
		c.fail("%v", err)
	}
	for _, g := range c.groups {
		// The first full member makes the group.
		for _, full := range []bool{true, false} {
			for _, p := range slices.Sorted(maps.Keys(g.members)) {
				state := g.members[p]
				if !there[p] || !c.gone[p] || full != (state == mad.FullMember) || !g.full(there) {
					continue
				}
				joined = true
				if _, err := c.client.Join(c.t.Context(), m, subnet.Membership{MGID: g.mgid, Port: c.f.PortGUID(p), State: state}); err != nil {
					c.fail("%s does not become %s of %s: %v", c.f.PortName(p), state, g.mgid, err)
				}
			}
		}
	}
	for _, p := range c.f.CAPorts() {
		if there[p] {
			delete(c.gone, p)
		}
	}
	if joined && c.rnd.IntN(2) == 0 {
		// Without a sweep: OpenSM has answered, and writes the masks of these groups.
		var err error
		for end := time.Now().Add(hung); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if _, err = c.read(there); err == nil {
				break
			}
		}
		if err != nil {
			c.fail("after joins: %v", err)
		}
	}
	if joined {
		c.sweep()
	}
	c.check(there)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files != nil {
		return // which says itself what it expects
	}
	for _, line := range c.failed {
		// The first engine says so when the fabric is none of its own at the moment, and updn goes on.
		first, _, several := strings.Cut(c.engine, ",ibweave-")
		if !several || !strings.HasPrefix(line, "ibweave: ERR IBW2: "+first+": ") && !strings.HasPrefix(line, "ibweave: ERR IBW3: "+first+": ") {
			c.fail("the plugin says %s", line)
		}
	}
	c.failed = nil
}

// sweep lets OpenSM sweep, and notes how large it is then.
func (c *chaos) sweep() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), hung)
	defer cancel()
	if err := c.o.Sweep(ctx); err != nil {
		c.fail("OpenSM does not end a sweep: %v", err)
	}
	c.sweeps++
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.o.Process.Pid))
	_, rest, ok := strings.Cut(string(data), "\nVmRSS:")
	if err != nil || !ok {
		c.fail("OpenSM is not there: %v", err)
	}
	kib := short.Must(strconv.Atoi(strings.Fields(rest)[0]))(c.t)
	c.rss = append(c.rss, kib)
}

// have is what the switches have: by switch its entries by LID, and its ports by
// group.
type have struct {
	entries map[fabric.GUID][]fabric.PortNum
	masks   map[netip.Addr]map[fabric.GUID][]fabric.PortNum
}

// check reads all tables and verifies them.
func (c *chaos) check(there []bool) *have {
	c.t.Helper()
	h, err := c.read(there)
	if err != nil {
		c.fail("%v", err)
	}
	return h
}

// read is check, with what is wrong as an error.
func (c *chaos) read(there []bool) (*have, error) {
	ctx := c.t.Context()
	d, err := c.client.Discover(ctx)
	if err != nil || len(d.Problems) > 0 {
		return nil, fmt.Errorf("the fabric cannot be read: %v %v", err, d.Problems)
	}
	f := d.Fabric
	ports := make(map[fabric.GUID]fabric.PortID) // end ports
	f.EndPorts(func(p fabric.PortID) { ports[f.PortGUID(p)] = p })
	want := 0
	var lost error
	c.f.EndPorts(func(p fabric.PortID) {
		if !there[p] {
			return
		}
		want++
		if q, ok := ports[c.f.PortGUID(p)]; !ok {
			lost = fmt.Errorf("%s is connected, and was not found", c.f.PortName(p))
		} else if f.LID(q) != c.f.LID(p) {
			lost = fmt.Errorf("%s has LID %d, and had %d", c.f.PortName(p), f.LID(q), c.f.LID(p))
		}
	})
	if lost != nil {
		return nil, lost
	}
	if len(ports) != want {
		return nil, fmt.Errorf("%d end ports were found, %d are connected", len(ports), want)
	}
	m, err := c.client.Manager(ctx)
	if err != nil {
		return nil, err
	}
	// The groups as they are meant to be, on the MLIDs that OpenSM gave them.
	mc := &mft.Plan{}
	highest := mft.MinMLID + 63
	known := make(map[fabric.LID]bool)
	for i, g := range c.groups {
		list, err := c.client.Members(ctx, m, mad.MCMemberRecord{MGID: g.mgid}, mad.MCMemberMGID, 0)
		if err != nil {
			return nil, fmt.Errorf("group %s: %v", g.mgid, err)
		}
		if len(list) > 0 != g.full(there) {
			return nil, fmt.Errorf("OpenSM has %d groups %s, and full members are there: %t", len(list), g.mgid, g.full(there))
		}
		if len(list) == 0 {
			continue
		}
		tree := mft.Tree{Group: i, Name: g.mgid.String(), MGID: g.mgid, MLID: list[0].MLID}
		for p, state := range g.members {
			if !there[p] {
				continue
			}
			q := ports[c.f.PortGUID(p)]
			tree.Senders = append(tree.Senders, q)
			if state != mad.SendOnlyNonMember {
				tree.Receivers = append(tree.Receivers, q)
			}
		}
		slices.Sort(tree.Senders)
		slices.Sort(tree.Receivers)
		mc.Trees = append(mc.Trees, tree)
		known[tree.MLID] = true
		highest = max(highest, tree.MLID)
	}
	slices.SortFunc(mc.Trees, func(a, b mft.Tree) int { return int(a.MLID) - int(b.MLID) })
	tables, err := c.client.Pull(ctx, d, subnet.PullOptions{LFT: true, MFT: true, SL2VL: c.options != nil, MaxMLID: highest})
	if err != nil || len(tables.Problems) > 0 {
		return nil, fmt.Errorf("tables cannot be read: %v %v", err, tables.Problems)
	}
	for _, l := range tables.MFT.MLIDs() {
		if !known[l] {
			return nil, fmt.Errorf("MLID %#x has masks, and is no group's: %d ports", uint16(l), len(tables.MFT.Ports(l)))
		}
	}
	mc.Tables = tables.MFT
	in := &state.State{Fabric: f, Tables: tables.LFT, SL2VL: tables.SL2VL, Multicast: mc}
	if c.options != nil && c.compile.SL2VL == "" { // SLs are the engine's
		if in.PathSLs, _, err = c.client.PathSLs(ctx, m, f, 1); err != nil {
			return nil, fmt.Errorf("SLs of paths: %v", err)
		}
	}
	r, err := verify.Check(ctx, in, verify.Options{})
	if err != nil {
		return nil, err
	}
	for i := range r.Findings {
		if x := &r.Findings[i]; x.Severity == verify.Error {
			return nil, fmt.Errorf("%s: %s", x.Rule, x.Message)
		}
	}
	if err := c.compare(f, tables); err != nil {
		return nil, err
	}
	h := &have{entries: make(map[fabric.GUID][]fabric.PortNum), masks: make(map[netip.Addr]map[fabric.GUID][]fabric.PortNum)}
	for s := range fabric.NodeID(f.NumSwitches()) {
		guid := f.Node(s).GUID
		// Entries for unused LIDs do not matter.
		row := slices.Clone(tables.LFT.Row(s))
		for l := range row {
			if f.LIDPort(fabric.LID(l)) == fabric.NoPort {
				row[l] = fabric.NoPath
			}
		}
		h.entries[guid] = row[:f.MaxLID()+1]
		for _, tree := range mc.Trees {
			if h.masks[tree.MGID] == nil {
				h.masks[tree.MGID] = make(map[fabric.GUID][]fabric.PortNum)
			}
			for _, p := range tables.MFT.Mask(s, tree.MLID) {
				h.masks[tree.MGID][guid] = append(h.masks[tree.MGID][guid], f.Num(p))
			}
		}
	}
	return h, nil
}

// compare holds tables against those of the compiler, by the engine that OpenSM
// used, and finds that the engines before it refuse the fabric.
func (c *chaos) compare(f *fabric.Fabric, got *subnet.Tables) error {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	if c.files != nil {
		return c.files.compare(last)
	}
	for _, name := range strings.Split(c.engine, ",") {
		e, err := compile.EngineByName(strings.TrimPrefix(name, "ibweave-"))
		if err != nil || !strings.HasPrefix(name, "ibweave-") {
			return fmt.Errorf("OpenSM used %s", last)
		}
		opt := c.compile
		opt.LIDs.LMC = lft.KeepLMC
		r, err := compile.Run(c.t.Context(), f, e, opt)
		fits := err == nil && r.Verify.Worst() < verify.Error
		if name != last {
			if fits {
				return fmt.Errorf("OpenSM used %s, and %s can route this fabric", last, name)
			}
			continue
		}
		if !fits {
			return fmt.Errorf("OpenSM used %s, which cannot route this fabric: %v", name, err)
		}
		if strings.HasPrefix(c.config, keepsTables) {
			return nil
		}
		var wrong error
		f.EndPorts(func(p fabric.PortID) {
			for l := f.LID(p); l < f.LID(p)+1<<f.LMC(p); l++ {
				for s := range fabric.NodeID(f.NumSwitches()) {
					if got, want := got.LFT.Row(s)[l], r.Routing.Tables.Row(s)[l]; got != want {
						wrong = fmt.Errorf("switch %s has port %d for LID %d, the compiler has %d", f.Node(s).GUID, got, l, want)
					}
				}
			}
		})
		if wrong != nil || r.Routing.SL2VL == nil {
			return wrong
		}
		for p := range fabric.PortID(f.NumPorts()) {
			if f.Peer(p) == fabric.NoPort {
				continue
			}
			ways := fabric.PortNum(0)
			if n := f.Owner(p); f.IsSwitch(n) {
				ways = f.Node(n).NumPorts
			}
			for in := range ways + 1 {
				if got, want := got.SL2VL.At(in, p), r.Routing.SL2VL.At(in, p); *got != *want {
					return fmt.Errorf("from port %d to %s SLs map to the VLs %v, the compiler has %v", in, f.PortName(p), *got, *want)
				}
			}
		}
		return nil
	}
	return fmt.Errorf("OpenSM used %s", last)
}

// restart kills OpenSM, in the middle of a sweep and once more at rest: then the
// next one, which may have waited for that, comes to the tables of the one before.
func (c *chaos) restart() {
	c.t.Helper()
	c.checkMemory()
	next := c.replace
	if c.priority > 1 && c.rnd.IntN(2) == 0 {
		next = c.takeOver
	}
	next(func() {
		c.disturb()
		c.signal(syscall.SIGHUP)
		c.pause(150)
	})
	c.settle()
	before := c.check(c.connected())
	next(func() {})
	c.settle()
	after := c.check(c.connected())
	c.kinds["restart"]++
	if c.config == keepsTables {
		return // it may have asked for sweeps in between
	}
	for guid, row := range before.entries {
		if !slices.Equal(row, after.entries[guid]) {
			c.fail("after a restart switch %s has %v, and had %v", guid, after.entries[guid], row)
		}
	}
	for mgid, masks := range before.masks {
		if !maps.EqualFunc(masks, after.masks[mgid], slices.Equal[[]fabric.PortNum]) {
			c.fail("after a restart group %s has the masks %v, and had %v", mgid, after.masks[mgid], masks)
		}
	}
}

// maxGrowth bounds how much OpenSM may grow in the second half of its life, in KiB.
const maxGrowth = 16 << 10

// checkMemory compares how large this OpenSM was at its largest in the first half of
// its life, and in the second one.
func (c *chaos) checkMemory() {
	c.t.Helper()
	half := len(c.rss) / 2
	if half == 0 {
		return
	}
	grown := slices.Max(c.rss[half:]) - slices.Max(c.rss[:half])
	c.grown = max(c.grown, grown)
	if grown > maxGrowth {
		c.fail("OpenSM grows: %v KiB", c.rss)
	}
}
