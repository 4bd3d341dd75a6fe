package experiment

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/traffic"
)

// copies counts packets by the port that sends them, and follows each packet on its own.
type copies struct {
	t       *testing.T
	net     *sim.Network
	packets []int64 // by port
}

// unicast follows packets by the forwarding tables, and returns the ports that send them.
func (c *copies) unicast(src, dst fabric.PortID, n int64) (sent []fabric.PortID) {
	f := c.net.Fabric
	if f.IsSwitch(f.Owner(dst)) {
		dst = f.PortBase(f.Owner(dst))
	}
	lid := f.LID(dst)
	for at := src; ; {
		sent = append(sent, at)
		c.packets[at] += n
		if at == dst || f.Peer(at) == dst { // at is port 0 of a switch, or the last one before a host
			return sent
		}
		s := f.Owner(f.Peer(at))
		at = f.Port(s, c.net.Tables.Row(s)[lid])
	}
}

// multicast floods packets by the masks of an MLID, and returns how many copies each end port gets.
func (c *copies) multicast(src fabric.PortID, mlid fabric.LID, n int64) map[fabric.PortID]int {
	f, got := c.net.Fabric, map[fabric.PortID]int{}
	sent := []fabric.PortID{src}
	for len(sent) > 0 {
		p := sent[0]
		sent = sent[1:]
		c.packets[p] += n
		at := f.Peer(p)
		s := f.Owner(at)
		if !f.IsSwitch(s) {
			got[at]++
			continue
		}
		for _, out := range c.net.Multicast.Tables.Ports(mlid) {
			if f.Owner(out) == s && out != at {
				sent = append(sent, out)
			}
		}
		if len(sent) > f.NumPorts() {
			c.t.Fatalf("MLID %#x loops", mlid)
		}
	}
	return got
}

// job follows all messages of a job, and checks that those to all come to each other rank once.
func (c *copies) job(j *sim.Job, mtu int64) {
	for _, part := range j.Parts {
		for _, m := range part.Program.Messages {
			n := (m.Bytes + mtu - 1) / mtu
			switch {
			case n == 0:
			case m.Dst != traffic.All:
				if part.Hosts[m.Src] != part.Hosts[m.Dst] {
					c.unicast(part.Ports[m.Src], part.Ports[m.Dst], n)
				}
			default:
				to := part.Multicast[m.Src]
				got := c.multicast(part.Ports[m.Src], to.MLID, n)
				if part.Nodes > 0 { // of a tree, which sums judges
					continue
				}
				for rank, p := range part.Ports {
					if want := rank != int(m.Src); (got[p] == 1) != want || got[p] > 1 {
						c.t.Errorf("rank %d gets %d copies of a message of rank %d", rank, got[p], m.Src)
					}
				}
				if len(got) != len(part.Ports)-1 {
					c.t.Errorf("%d ports get a message of rank %d of %d", len(got), m.Src, len(part.Ports))
				}
			}
		}
	}
}

// routeTest routes a fabric for jobs.
func routeTest(t *testing.T, f *fabric.Fabric, engine string) []Routing {
	t.Helper()
	res := fabrictest.Compile(t, f, engine, compile.Options{})
	return []Routing{New(res.Routing, 0, 0, nil)}
}

func newSetup() *Setup {
	s := &Setup{Config: sim.Defaults(), Buffer: 64 << 10, Seeds: []uint64{1}}
	s.Stop.MaxTime = sim.Second
	return s
}

// addJob adds a job on the hosts at some places of all, each of which is step after the one before.
func addJob(t *testing.T, jt *jobs.Traffic, all []jobs.Host, name, operation string, bytes float64, first, step, n int) {
	t.Helper()
	var hosts []jobs.Host
	for i := range n {
		hosts = append(hosts, all[(first+i*step)%len(all)])
	}
	short.Check(t, jt.Add(name, hosts, operation, bytes, 0))
}

// TestMulticastSchemes has broadcasts and all-gathers on the trees of each scheme on fabrics of several shapes.
// Each copy of a packet that the simulator has counted on a cable is on the scheme's masks: a program of its own
// floods them message by message, and finds that each rank gets each message once.
func TestMulticastSchemes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, engine string
		f            *fabric.Fabric
		not          []string // schemes that cannot do it
	}{
		{"mesh", "xy", short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1}))(t), []string{"spam", "region"}},
		{"mesh", "updn", short.Must(mesh.Generate(mesh.Spec{Dims: []int{3, 4}, Hosts: 2}))(t), []string{"region"}},
		{"tree", "updn", fabrictest.FatTree(t, 4, 3), []string{"union", "union-row", "union-merge", "comb", "region"}},
		{"tree", "spam", fabrictest.FatTree(t, 4, 3), []string{"comb", "region"}},
		{"irregular", "updn", short.Must(gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 24, Seed: 1}))(t), []string{"comb", "region"}},
		{"irregular", "minhop", short.Must(gen.Irregular(gen.IrregularSpec{Switches: 10, Degree: 3, Hosts: 20, Seed: 2}))(t), []string{"comb", "spam", "region"}},
	} {
		t.Run(tt.name+" "+tt.engine, func(t *testing.T) {
			t.Parallel()
			routings := routeTest(t, tt.f, tt.engine)
			jt, all := jobs.New(routings[0].Net.Fabric), jobs.Hosts(routings[0].Net.Fabric, fabric.HostKind)
			addJob(t, jt, all, "gather", "all-gather", 64<<10, 0, 3, 5)
			addJob(t, jt, all, "cast", "broadcast", 20_000, 1, 2, 6)
			addJob(t, jt, all, "ring", "shift:1", 10_000, 2, 1, 4)
			judgeSchemes(t, routings, jt, tt.not)
		})
	}
	t.Run("banyan", func(t *testing.T) { // from the first source to all sinks, which is all that region does
		t.Parallel()
		routings := routeTest(t, short.Must(banyan.Banyan(3, false))(t), "banyan")
		jt, all := jobs.New(routings[0].Net.Fabric), jobs.Hosts(routings[0].Net.Fabric, fabric.HostKind)
		addJob(t, jt, slices.Concat(all[8:], all[:1]), "cast", "broadcast", 20_000, 8, 1, 9)
		judgeSchemes(t, routings, jt, []string{"union-turns", "comb", "spam"})
	})
}

// judgeSchemes simulates jobs on the trees of all schemes but those that cannot do it.
func judgeSchemes(t *testing.T, routings []Routing, jt *jobs.Traffic, not []string) {
	t.Helper()
	setup := newSetup()
	r := short.Must(NewJobsRun(setup, routings, jt, 1))(t)
	var names, out []string
	for _, s := range compile.MulticastSchemes {
		names = append(names, s.Name)
	}
	short.Check(t, r.AddTrees(t.Context(), names, 0, func(err error) {
		name, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "left out mcast "), ":")
		t.Log(err)
		out = append(out, name)
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("several lines: %v", err)
		}
	}))
	short.EqualList(t, out, not, "left out")
	if want := 1 + len(names) - len(not); len(r.Routings) != want {
		t.Fatalf("%d routings, want %d", len(r.Routings), want)
	}
	for i, p := range r.Points {
		if p.Job < 0 {
			judgePackets(t, r, i)
		}
	}
}

// judgePackets simulates all jobs of a point, and compares what each port has sent with what it has to send.
func judgePackets(t *testing.T, r *JobsRun, point int) {
	t.Helper()
	routing := r.Points[point].Routing
	x := &r.Routings[routing]
	res := short.Must(r.Simulate(t.Context(), point))(t)
	if res.JobsDone == nil || res.Dropped+res.Strayed != 0 {
		t.Fatalf("%s: %+v", x.Name(), res.Result)
	}
	c := &copies{t: t, net: &x.Net, packets: make([]int64, x.Net.Fabric.NumPorts())}
	for k := range r.jobs[routing] {
		c.job(&r.jobs[routing][k], int64(r.Config.MTU))
		if left := res.Jobs[k].Left; left != 0 {
			t.Errorf("%s: %d messages of job %d are left", x.Name(), left, k)
		}
	}
	for port, want := range c.packets {
		if got := res.Loads[port].Packets; got != want {
			t.Errorf("%s: %s has sent %d packets, want %d", x.Name(), x.Net.Fabric.PortName(fabric.PortID(port)), got, want)
		}
	}
}

// sums follows an all-reduce through the messages of a part. It returns the cables between switches and of hosts that
// carry it, and counts for each rank and piece whose data it gets: each rank's once.
func (c *copies) sums(part *sim.Part, ranks int) map[fabric.PortID]bool {
	f, program := c.net.Fabric, part.Program
	cables := map[fabric.PortID]bool{}
	cross := func(p fabric.PortID) {
		q := f.Peer(p)
		if q != fabric.NoPort && f.Kind(f.Owner(p)) != fabric.AggregationKind && f.Kind(f.Owner(q)) != fabric.AggregationKind {
			cables[min(p, q)] = true
		}
	}
	carries := make([]map[fabric.PortID]int, len(program.Messages)) // by message: whose data, and how often
	got := make([][]map[fabric.PortID]int, ranks)                   // by rank and piece
	for i, m := range program.Messages {
		carries[i] = map[fabric.PortID]int{}
		if m.Src == m.Dst {
			continue // waits alone
		}
		if int(m.Src) < ranks {
			carries[i][part.Ports[m.Src]]++
		}
		for _, k := range program.After(i) {
			for p, n := range carries[k] {
				carries[i][p] += n
			}
		}
		for _, k := range program.After(i) {
			if got := program.Messages[k].Dst; got != m.Src && (m.Dst != traffic.All || f.Owner(part.Ports[got]) != f.Owner(part.Ports[m.Src])) {
				c.t.Errorf("rank %d sends what rank %d gets", m.Src, got)
			}
		}
		if m.Dst != traffic.All {
			if part.Hosts[m.Src] != part.Hosts[m.Dst] {
				for _, p := range c.unicast(part.Ports[m.Src], part.Ports[m.Dst], 0) {
					cross(p)
				}
			}
			continue
		}
		to := part.Multicast[m.Src]
		for _, p := range c.net.Multicast.Tables.Ports(to.MLID) {
			cross(p)
		}
		reached := c.multicast(part.Ports[m.Src], to.MLID, 0)
		for rank, p := range part.Ports[:ranks] {
			for range reached[p] {
				got[rank] = append(got[rank], carries[i])
			}
		}
	}
	for rank := range got {
		if len(got[rank]) != len(got[0]) || len(got[0]) == 0 {
			c.t.Errorf("rank %d gets %d pieces, rank 0 %d", rank, len(got[rank]), len(got[0]))
		}
		for piece, whose := range got[rank] {
			for _, p := range part.Ports[:ranks] {
				if whose[p] != 1 || len(whose) != ranks {
					c.t.Errorf("rank %d, piece %d: the sum has the data of %s %d times, and of %d ports", rank, piece, f.PortName(p), whose[p], len(whose))
				}
			}
		}
	}
	return cables
}

// TestReductions has all-reduces on trees of switches on fabrics of several shapes, also where some switches have no
// aggregation node. A program of its own follows the messages: each sum has the data of each rank once, each
// rank gets each sum once, over the cables that the tree counts, and the simulator sends no other packet. Trees meet where
// both have cables.
func TestReductions(t *testing.T) {
	t.Parallel()
	const ranks = 6
	for _, tt := range []struct {
		name, engine string
		f            *fabric.Fabric
		without      []fabric.NodeID // switches whose aggregation nodes are gone
	}{
		{"tree", "updn", fabrictest.FatTree(t, 4, 3), nil},
		{"tree without some nodes", "updn", fabrictest.FatTree(t, 4, 3), []fabric.NodeID{8, 10, 16}},
		{"tree", "fattree", fabrictest.FatTree(t, 6, 2), nil},
		{"mesh", "xy", short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1}))(t), nil},
		{"irregular", "updn", short.Must(gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 24, Seed: 1}))(t), []fabric.NodeID{7}},
		{"irregular", "layered", short.Must(gen.Irregular(gen.IrregularSpec{Switches: 10, Degree: 3, Hosts: 20, Seed: 2}))(t), nil},
	} {
		t.Run(tt.name+" "+tt.engine, func(t *testing.T) {
			t.Parallel()
			f := short.Must(gen.Options{AggregationNodes: true}.Apply(tt.f))(t)
			var gone []fabric.PortID
			for _, s := range tt.without {
				ports := f.EndPortsOn(s)
				gone = append(gone, ports[len(ports)-1])
			}
			routings := routeTest(t, f.Without(gone...), tt.engine)
			f = routings[0].Net.Fabric
			jt, all := jobs.New(f), jobs.Hosts(f, fabric.HostKind)
			addJob(t, jt, all, "a", "allreduce-ring", 100_000, 0, 2, ranks)
			addJob(t, jt, all, "b", "allreduce-tree", 10_000, 1, 2, ranks)
			r := short.Must(NewJobsRun(newSetup(), routings, jt, 1))(t)
			short.Check(t, r.AddTrees(t.Context(), nil, jobs.MostRadix, func(err error) { t.Error(err) }))
			for i, p := range r.Points {
				if p.Job >= 0 || p.Routing == 0 {
					continue
				}
				x := &r.Routings[p.Routing]
				judgePackets(t, r, i)
				trees, found := jt.Aggregate(x.Routes.Tables, jobs.MostRadix)
				c := &copies{t: t, net: &x.Net, packets: make([]int64, f.NumPorts())}
				var cables [2]map[fabric.PortID]bool
				for k := range cables {
					cables[k] = c.sums(&r.jobs[p.Routing][k].Parts[0], ranks)
					if got := trees[k].Cables; got != len(cables[k]) {
						t.Errorf("%s: %s has %d cables, want %d", x.Name(), trees[k].Name, got, len(cables[k]))
					}
				}
				shared, meet := 0, false
				at := map[fabric.NodeID]bool{}
				for p := range cables[0] {
					if cables[1][p] {
						shared++
					}
					at[f.Owner(p)], at[f.Owner(f.Peer(p))] = true, true
				}
				for p := range cables[1] {
					for _, n := range []fabric.NodeID{f.Owner(p), f.Owner(f.Peer(p))} {
						meet = meet || f.IsSwitch(n) && at[n]
					}
				}
				if meet != (len(found) == 1) || meet && found[0].Cables != shared {
					t.Errorf("%s: trees meet %t on %d cables, and %+v", x.Name(), meet, shared, found)
				}
			}
		})
	}
}

// TestReductionTime has one job alone on the streaming tree of an idle fabric: its data at the rate of a cable, and one
// piece late at each level, up to the delays of switches and cables.
func TestReductionTime(t *testing.T) {
	t.Parallel()
	f := short.Must(gen.Options{AggregationNodes: true}.Apply(fabrictest.FatTree(t, 6, 2)))(t)
	routings := routeTest(t, f, "updn")
	jt := jobs.New(routings[0].Net.Fabric)
	const bytes, piece, beta = 4 << 20, 16384, 80 // ps a byte
	addJob(t, jt, jobs.Hosts(routings[0].Net.Fabric, fabric.HostKind), "a", "allreduce-ring", bytes, 0, 3, 6)
	setup := newSetup()
	setup.Config.Mbps = 100_000
	r := short.Must(NewJobsRun(setup, routings, jt, 1))(t)
	short.Check(t, r.AddTrees(t.Context(), nil, jobs.MostRadix, func(err error) { t.Error(err) }))
	res := short.Must(r.Simulate(t.Context(), 1))(t)
	// From the host to the leaf, to the root, and down two cables, which packets of an MTU cut through.
	least := sim.Time(beta * (bytes + piece + piece))
	if late := res.JobsDone.Time - least; late < 0 || late > 5*100_000+4*10_000 {
		t.Errorf("%s, want %s and little more", res.JobsDone.Time, least)
	}
}

// TestReductionsRefused says why there is no tree.
func TestReductionsRefused(t *testing.T) {
	t.Parallel()
	plain := fabrictest.FatTree(t, 6, 2)
	with := short.Must(gen.Options{AggregationNodes: true}.Apply(plain))(t)
	for _, tt := range []struct {
		f     *fabric.Fabric
		radix int
		why   string
	}{
		{plain, jobs.MostRadix, "left out sharp: sharp cannot serve group a: no switch has an aggregation node and a LID"},
		{with, 2, "has 3 children, and the radix is 2"},
		{with.Without(with.EndPortsOn(0)[3]), jobs.MostRadix, `"leaf 0" has no aggregation node and LID`},
	} {
		routings := routeTest(t, tt.f, "updn")
		jt := jobs.New(routings[0].Net.Fabric)
		addJob(t, jt, jobs.Hosts(routings[0].Net.Fabric, fabric.HostKind), "a", "allreduce-ring", 1000, 0, 1, 9)
		r := short.Must(NewJobsRun(newSetup(), routings, jt, 1))(t)
		said := ""
		short.Check(t, r.AddTrees(t.Context(), nil, tt.radix, func(err error) { said += err.Error() }))
		if !strings.Contains(said, tt.why) || len(r.Routings) != 1 {
			t.Errorf("%q, want %q", said, tt.why)
		}
	}
}
