package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/cmd/ibweave-opensm/plugin"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
	"github.com/ibweave/ibweave/verify/bound"
)

// hop is a line of ibtracert -m, [1] -> switch 0x200005[3] lid 6 "switch 1,1".
var hop = regexp.MustCompile(`(?m)^\[(\d+)\] -> (?:switch|ca) 0x([0-9a-f]+)\[\d+\]`)

// trace is the ports of switches by which ibtracert -m says that a packet leaves, and
// the node at the end.
func (s *testbed) trace(t *testing.T, from, to fabric.PortID, args ...string) (out []fabric.PortID, end fabric.NodeID) {
	t.Helper()
	text := s.run(t, "ibtracert", append(args, strconv.Itoa(int(s.f.LID(from))), strconv.Itoa(int(s.f.LID(to))))...)
	end = s.f.Owner(from)
	for _, m := range hop.FindAllStringSubmatch(text, -1) {
		num := short.Must(strconv.ParseUint(m[1], 10, 8))(t)
		if s.f.IsSwitch(end) {
			out = append(out, s.f.Port(end, fabric.PortNum(num)))
		}
		guid := short.Must(strconv.ParseUint(m[2], 16, 64))(t)
		node, ok := s.f.NodeByGUID(fabric.GUID(guid))
		if !ok {
			t.Fatalf("no node %s\n%s", m[2], text)
		}
		end = node
	}
	return out, end
}

// Programs that know nothing of us agree on what OpenSM and the switches have:
// saquery on the group and its members, dump_mfts on the masks, and ibtracert on
// the paths, by multicast and by unicast.
func TestToolsAgree(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1})
	s := start(t, f, err)
	s.stay(t, "ibweave-xy", "")
	r := s.compiled(t, "xy", compile.Options{Multicast: "comb", Groups: func(f *fabric.Fabric) ([]mft.Group, error) {
		p := f.CAPorts()
		three := []fabric.PortID{p[0], p[6], p[len(p)-2]} // ibsim cuts answers off after three records
		return []mft.Group{{Name: "three", Receivers: three, Senders: three}}, nil
	}})
	tree := &r.Plan.Trees[0]
	transport := short.Must(s.Dial(t.Context(), ""))(t)
	c := subnet.New(transport, subnet.Options{})
	defer c.Close()
	m := short.Must(c.Manager(t.Context()))(t)
	for _, p := range tree.Receivers {
		short.Must(c.Join(t.Context(), m, subnet.Membership{MGID: tree.MGID, MLID: tree.MLID, Port: s.f.PortGUID(p), State: mad.FullMember}))(t)
	}
	groups, problems, err := dump.ReadSAQuery("saquery", []byte(s.run(t, "saquery", "--smkey", "1", "-m")), s.f, dump.Options{})
	if err != nil || len(problems) > 0 || len(groups) != 1 {
		t.Fatalf("%v %v %v", groups, problems, err)
	}
	if g := &groups[0]; g.MGID != tree.MGID || g.MLID != tree.MLID || !slices.Equal(g.Senders, tree.Senders) || !slices.Equal(g.Receivers, tree.Receivers) {
		t.Errorf("saquery has %+v, want %+v", g, tree)
	}
	// OpenSM answers before it writes masks.
	short.Await(t, func() bool {
		read, problems, err := dump.ReadMFTs("dump_mfts", []byte(s.run(t, "dump_mfts")), s.f, dump.Options{})
		if err != nil || len(problems) > 0 {
			t.Fatal(problems, err)
		}
		return slices.Equal(read.MLIDs(), r.Plan.Tables.MLIDs()) && slices.Equal(read.Ports(tree.MLID), r.Plan.Tables.Ports(tree.MLID))
	}, "switches without the masks", portNames(s.f, r.Plan.Tables.Ports(tree.MLID)))
	masks := r.Plan.Tables.Ports(tree.MLID)
	used := make(map[fabric.PortID]bool)
	for _, from := range tree.Senders {
		for _, to := range tree.Receivers {
			if from == to {
				continue
			}
			out, end := s.trace(t, from, to, "-m", fmt.Sprintf("%#x", uint16(tree.MLID)))
			if end != s.f.Owner(to) {
				t.Errorf("ibtracert comes from %s to %q, want %s", s.f.PortName(from), s.f.Node(end).Description, s.f.PortName(to))
			}
			for _, p := range out {
				used[p] = true
				if !slices.Contains(masks, p) {
					t.Errorf("ibtracert leaves by %s, which is in no mask", s.f.PortName(p))
				}
			}
			printed := s.run(t, "ibtracert", strconv.Itoa(int(s.f.LID(from))), strconv.Itoa(int(s.f.LID(to))))
			traces, problems, err := dump.ReadTraces("ibtracert", []byte(printed), s.f, dump.Options{})
			if err != nil || len(problems) > 0 || len(traces) != 1 || traces[0].Source != from || traces[0].Destination != to {
				t.Fatalf("%v %v %v\n%s", traces, problems, err, printed)
			}
			path := short.Must(r.Routing.Tables.Path(s.f, from, s.f.LID(to), nil))(t)
			short.Diff(t, portNames(s.f, traces[0].Out), portNames(s.f, path))
		}
	}
	short.Equal(t, len(used), len(masks), "ibtracert uses ports, the masks have")
}

// TestShadow runs one OpenSM with the plugin in shadow mode and one without it through the same failures and repairs:
// the switches of both have the same tables after each, ours are in a folder, and memory stays as it is.
//
//	go test ./cmd/ibweave-opensm -run TestShadow -sweeps 15000 -timeout 0    # for about half an hour
func TestShadow(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})
	with := start(t, f, err)
	without := startAlone(t, f, err)
	twin := short.Must(ibsim.NewTwin(with.f))(t)
	with.flags, without.flags = "0x03", "0x03"
	// A sweep begins with the entries of the one before, so both have to sweep equally often: a trap may come before
	// the sweep that the test asks for, or make one more. And no request may end as unanswered on a busy machine.
	options := []string{"sweep_on_trap FALSE", "transaction_timeout 2000", "long_transaction_timeout 4000"}
	a := with.stay(t, "ibweave-updn,ftree", "shadow: true\n", options...)
	b := without.stay(t, "ftree", "", append(options, "event_plugin_name (null)")...)
	c, d := with.dial(t), without.dial(t)
	port := func(p fabric.PortID) string {
		return fmt.Sprintf("%q[%d]", twin.NodeID(with.f.Owner(p)), with.f.Num(p))
	}
	var cables []fabric.PortID
	for s := range fabric.NodeID(with.f.NumSwitches()) {
		out, _ := with.f.SwitchLinks(s)
		cables = append(cables, out...)
	}
	rnd := rand.New(rand.NewPCG(5, 5))
	down := map[fabric.PortID]bool{}
	steps := *sweeps / 3
	var rss []int
	for i := range steps {
		p := cables[rnd.IntN(len(cables))]
		command := "Unlink " + port(p)
		if len(down) > 4 {
			p = slices.Min(slices.Collect(maps.Keys(down)))
			command = "Link " + port(p) + " " + port(with.f.Peer(p))
			delete(down, p)
		} else if down[p] || down[with.f.Peer(p)] {
			continue
		} else {
			down[p] = true
		}
		for _, s := range []*testbed{with, without} {
			short.Check(t, s.Console(t.Context(), command, nil))
		}
		for _, o := range []*daemon{a, b} {
			n := strings.Count(o.log(), "-> SUBNET UP\n")
			o.sweep()
			o.wait("-> SUBNET UP\n", n+1)
		}
		if entries, _ := differ(with.f, with.have(t, c), without.have(t, d)); len(entries) > 0 {
			t.Fatalf("step %d: %d entries are not those of OpenSM without the plugin; OpenSM with it says\n%s\nand without\n%s", i, len(entries),
				end([]byte(a.log())), end([]byte(b.log())))
		}
		rss = append(rss, residentKiB(t, a.cmd.Process.Pid))
	}
	if log := a.log(); strings.Count(log, "ibweave: not installed (shadow: true): ibweave-updn: ") <= len(rss)/2 || strings.Contains(log, "ibweave: ERR") {
		t.Errorf("OpenSM's log has %q", log)
	}
	dir := filepath.Join(with.dir, plugin.ShadowName)
	short.Await(t, func() bool {
		m, err := outdir.ReadManifest(dir)
		return err == nil && m.Engine == "updn"
	}, dir, "without a manifest of updn")
	if n := len(rss); n > 100 && slices.Max(rss[3*n/4:]) > slices.Max(rss[n/4:n/2])+maxDrift {
		t.Errorf("OpenSM grows: %v KiB", rss)
	}
}

// OpenSM has tables for the jobs of a file, and when the file changes, its heavy sweeps bring it tables for those,
// without a change of the subnet.
func TestTraffic(t *testing.T) {
	f, err := gen.Tree(gen.TreeSpec{Ports: 36, Pods: []int{4}, Hosts: 6, Spines: 3, Parallel: 2})
	s := start(t, f, err)
	name := filepath.Join(s.dir, "traffic.yaml")
	write := func(seed int) {
		var hosts []string
		for _, p := range s.f.CAPorts() {
			hosts = append(hosts, s.f.Node(s.f.Owner(p)).GUID.String())
		}
		writeFile(t, name, fmt.Appendf(nil, "jobs: [{name: a, hosts: [%s], patterns: [{pattern: \"permutation:%d\", size: 1G}]}]\n", strings.Join(hosts, ", "), seed))
	}
	seconds := func(tables *lft.Tables) bound.Times {
		t.Helper()
		x := short.Must(jobs.Read(name, os.ReadFile))(t)
		in := short.Must(x.In(s.f, nil))(t)
		d := short.Must(in.Demand(t.Context()))(t)
		return short.Must(bound.TimesUnder(t.Context(), s.f, tables, d))(t)
	}
	write(1)
	d := s.stay(t, "ibweave-updn", "log: {level: debug}\nuniform-floor: 2\ntraffic: "+name+"\n")
	c := s.dial(t)
	first := s.have(t, c)
	fresh := seconds(first.LFT)
	seed := 2
	for write(seed); seconds(first.LFT).Switches < 2.9*fresh.Hosts && seed < 100; seed++ {
		write(seed + 1)
	}
	was, sweeps := seconds(first.LFT), 1
	now := was
	for ; now.Switches >= was.Switches && sweeps < 30; sweeps++ {
		d.sweep()
		d.wait("-> SUBNET UP\n", sweeps+1)
		now = seconds(s.have(t, c).LFT)
	}
	t.Logf("%v seconds for the first jobs; for others %v, after %d sweeps %v", fresh, was, sweeps, now)
	if fresh.Switches > 2.1*fresh.Hosts || was.Switches < 2.9*was.Hosts || now.Switches > 2.1*now.Hosts {
		t.Errorf("%v for the first jobs, %v for others, after %d sweeps %v: want two flows on a cable at most, then three or more, then two", fresh, was, sweeps, now)
	}
	if log := d.log(); strings.Contains(log, "ibweave: ERR") {
		t.Errorf("the plugin says %q", ours(strings.Split(log, "\n")))
	}
	// The plugin writes its log while OpenSM goes on.
	short.Await(t, func() bool { return strings.Contains(s.ownLog(t), `"rebalanced": true`) }, "no step is in the log")
}
