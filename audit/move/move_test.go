package move_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/audit/move"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// drawFabric makes a damaged tree or an irregular fabric.
func drawFabric(t *testing.T, rnd *rand.Rand) *fabric.Fabric {
	t.Helper()
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2 + rnd.IntN(2)})
	if rnd.IntN(3) == 0 {
		f, err = gen.Irregular(gen.IrregularSpec{Switches: 8, Degree: 3, Hosts: 16, Seed: rnd.Uint64()})
	}
	if err == nil {
		f, err = gen.DropLinks(f, rnd.IntN(4), rnd.Uint64())
	}
	short.Check(t, err)
	return f
}

// drawing is a fabric that is recabled at random.
type drawing struct {
	t      *testing.T
	rnd    *rand.Rand
	f      *fabric.Fabric
	nodes  []fabric.Node // those of f, then new ones
	cables [][2]end
}

// end is a port, by index in nodes.
type end struct {
	node int
	num  fabric.PortNum
}

// drawNew recables f.
func drawNew(t *testing.T, f *fabric.Fabric, rnd *rand.Rand) *fabric.Fabric {
	t.Helper()
	d := &drawing{t: t, rnd: rnd, f: f}
	for n := range fabric.NodeID(f.NumNodes()) {
		d.nodes = append(d.nodes, *f.Node(n))
		d.nodes[n].NumPorts = max(d.nodes[n].NumPorts, 9) // room to grow
	}
	for _, c := range f.Cables() {
		d.cables = append(d.cables, [2]end{{int(f.Owner(c.A)), f.Num(c.A)}, {int(f.Owner(c.B)), f.Num(c.B)}})
	}
	for range 1 + rnd.IntN(4) {
		[]func(){d.swap, d.swapAll, d.addSwitch, d.remove, d.moveOne, d.addHost}[rnd.IntN(6)]()
	}
	var b fabric.Builder
	used := make([]bool, len(d.nodes))
	for _, c := range d.cables {
		used[c[0].node], used[c[1].node] = true, true
	}
	at := make([]int, len(d.nodes))
	var err error
	for i, n := range d.nodes {
		if used[i] {
			if at[i], err = b.AddNode(n); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range d.cables {
		short.Check(t, b.Connect(at[c[0].node], c[0].num, at[c[1].node], c[1].num, fabric.Link{Width: 4, Speed: fabric.QDR}))
	}
	return short.Must(b.Build())(t)
}

// swap swaps the ends of two cables of one kind.
func (d *drawing) swap() {
	x, y := &d.cables[d.rnd.IntN(len(d.cables))], &d.cables[d.rnd.IntN(len(d.cables))]
	if d.nodes[x[1].node].Type == d.nodes[y[1].node].Type {
		x[1], y[1] = y[1], x[1]
	}
}

// swapAll swaps all cables of a switch to others at these, pair by pair.
func (d *drawing) swapAll() {
	n := d.rnd.IntN(d.f.NumSwitches())
	var at []*end // the other ends
	for i := range d.cables {
		for k := range 2 {
			if other := d.cables[i][1-k].node; d.cables[i][k].node == n && d.nodes[other].Type == fabric.Switch {
				at = append(at, &d.cables[i][1-k])
			}
		}
	}
	for i := 1; i < len(at); i += 2 {
		*at[i-1], *at[i] = *at[i], *at[i-1]
	}
}

// free is a free port of a switch with other cables.
func (d *drawing) free() (end, bool) {
	taken := make(map[end]bool)
	cabled := make(map[int]bool)
	for _, c := range d.cables {
		taken[c[0]], taken[c[1]] = true, true
		cabled[c[0].node], cabled[c[1].node] = true, true
	}
	for range 30 {
		n := d.rnd.IntN(len(d.nodes))
		if d.nodes[n].Type != fabric.Switch || !cabled[n] {
			continue
		}
		for p := fabric.PortNum(1); p <= d.nodes[n].NumPorts; p++ {
			if e := (end{n, p}); !taken[e] {
				return e, true
			}
		}
	}
	return end{}, false
}

// connect puts a cable from a node to a switch.
func (d *drawing) connect(n int, num fabric.PortNum) {
	if e, ok := d.free(); ok && e.node != n {
		d.cables = append(d.cables, [2]end{{n, num}, e})
	}
}

func (d *drawing) add(typ fabric.NodeType, ports fabric.PortNum) int {
	d.nodes = append(d.nodes, fabric.Node{GUID: 0xabc0000 + 16*fabric.GUID(len(d.nodes)), Type: typ, NumPorts: ports, Description: "new"})
	return len(d.nodes) - 1
}

// addSwitch adds a switch with up to two hosts.
func (d *drawing) addSwitch() {
	s := d.add(fabric.Switch, 8)
	for p := range 1 + d.rnd.IntN(5) {
		d.connect(s, fabric.PortNum(p+1))
	}
	for p := range d.rnd.IntN(3) {
		d.cables = append(d.cables, [2]end{{s, fabric.PortNum(6 + p)}, {d.add(fabric.CA, 1), 1}})
	}
}

func (d *drawing) addHost() {
	h := d.add(fabric.CA, 2)
	d.connect(h, 1)
	if d.rnd.IntN(2) == 0 {
		d.connect(h, 2)
	}
}

// remove takes away a node with all that hangs on it alone.
func (d *drawing) remove() {
	n := d.rnd.IntN(len(d.nodes))
	d.cables = slices.DeleteFunc(d.cables, func(c [2]end) bool { return c[0].node == n || c[1].node == n })
}

// moveOne moves an end of a cable.
func (d *drawing) moveOne() {
	if e, ok := d.free(); ok {
		c := &d.cables[d.rnd.IntN(len(d.cables))]
		if e.node != c[0].node && e.node != c[1].node && d.nodes[c[0].node].Type == fabric.Switch {
			c[0] = e
		}
	}
}

// TestPlans plans random changes of random fabrics, and follows every pair in every state: tables lead
// nothing of those that stay over cables that are about to go or have just come, all arrive, with old and
// new tables in force at once too, loads and limits are as the plan says, and the last state is the fabric
// that was asked for where nothing is refused. Then the same steps, as written.
func TestPlans(t *testing.T) {
	engines := []string{"updn", "layered", "minhop", "fattree"}
	plans, steps, refused, drained, limited := 0, 0, 0, 0, 0
	for seed := uint64(short.Of(0, 18)); seed < short.Of(short.Usual[uint64](120, 60), 40); seed++ {
		rnd := rand.New(rand.NewPCG(seed, 1))
		old := drawFabric(t, rnd)
		e := short.Must(compile.EngineByName(engines[seed%4]))(t)
		old = short.Must(lft.AssignLIDs(old, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
		old = withPorts(t, old, 9)
		base, err := compile.Run(context.Background(), old, e, compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}})
		if err != nil || base.Verify.Verdict == verify.VerdictErrors || base.Verify.CreditLoops.Count > 0 {
			continue // not for this engine
		}
		job, err := move.Between(old, drawNew(t, old, rnd), false)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		opt := move.Options{Limit: float64(rnd.IntN(2)) * (1 + rnd.Float64()), AtOnce: rnd.IntN(3)}
		if opt.Limit > 0 {
			limited++
		}
		plan, err := move.Make(context.Background(), base, job, compile.Options{}, opt)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		plans, steps, refused = plans+1, steps+len(plan.Steps), refused+len(plan.Refused)
		x := &follower{t: t, seed: seed, job: job, cables: job.Old, before: base.Routing.On(job.Nodes), limit: opt.Limit, rnd: rnd}
		written := *job
		written.Steps = []move.Batch{}
		for i := range plan.Steps {
			if plan.Steps[i].Drained != nil {
				drained++
			}
			x.follow(&plan.Steps[i])
			written.Steps = append(written.Steps, plan.Steps[i].Batch)
		}
		last := short.Must(job.Nodes.WithCables(x.cables))(t)
		if want, _ := job.Nodes.WithCables(job.New); fabric.SameTopology(last, want) != (len(plan.Refused) == 0) {
			t.Errorf("seed %d: the last state is as wanted: %v; refused: %v", seed, fabric.SameTopology(last, want), plan.Refused)
		}
		again, err := move.Make(context.Background(), base, &written, compile.Options{}, opt)
		if len(plan.Refused) == 0 {
			text := move.Write(job, plan.Steps)
			parsed, err := move.Parse("plan", text, old)
			if err != nil || !reflect.DeepEqual(parsed.Steps, sorted(written.Steps)) || !fabric.SameNodes(parsed.Nodes, job.Nodes) {
				t.Errorf("seed %d: other steps after they were written and read, %v\n%s", seed, err, text)
			}
		}
		if err != nil || len(again.Steps) != len(plan.Steps) || len(again.Refused) > 0 {
			t.Errorf("seed %d: %d steps as written, %d found; %v, refused %v", seed, len(again.Steps), len(plan.Steps), err, again.Refused)
		}
	}
	if plans < 10 || steps < plans || drained < 5 || refused == 0 || limited == 0 {
		t.Errorf("%d plans, %d steps, %d drained, %d refused, %d limited: the draw is too narrow", plans, steps, drained, refused, limited)
	}
	t.Logf("%d plans, %d steps, %d drained, %d refused, %d limited", plans, steps, drained, refused, limited)
}

// sorted has the cables of each step in the order of their ports.
func sorted(steps []move.Batch) []move.Batch {
	list := []move.Batch{}
	for _, b := range steps {
		c := move.Batch{Unplug: slices.Clone(b.Unplug), Plug: slices.Clone(b.Plug)}
		for _, cables := range [...][]fabric.Cable{c.Unplug, c.Plug} {
			slices.SortFunc(cables, func(x, y fabric.Cable) int { return cmp.Compare(x.A, y.A) })
		}
		list = append(list, c)
	}
	return list
}

// withPorts gives each switch at least as many ports as given.
func withPorts(t *testing.T, f *fabric.Fabric, ports fabric.PortNum) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	for n := range fabric.NodeID(f.NumNodes()) {
		node := *f.Node(n)
		node.NumPorts = max(node.NumPorts, ports)
		short.Must(b.AddNode(node))(t)
		for p := range f.Node(n).NumPorts + 1 {
			if at := f.Port(n, p); f.LID(at) != 0 {
				short.Check(t, b.SetPort(int(n), p, 0, f.LID(at), f.LMC(at)))
			}
		}
	}
	for _, c := range f.Cables() {
		short.Check(t, b.Connect(int(f.Owner(c.A)), f.Num(c.A), int(f.Owner(c.B)), f.Num(c.B), c.Link))
	}
	return short.Must(b.Build())(t)
}

// follower follows packets through the steps of a plan.
type follower struct {
	t      *testing.T
	seed   uint64
	job    *move.Job
	cables []fabric.Cable
	before *lft.Routing
	limit  float64
	rnd    *rand.Rand
}

// follow follows all pairs in the states of a step.
func (x *follower) follow(s *move.Step) {
	t := x.t
	t.Helper()
	gone := make(map[[2]fabric.PortID]bool)
	for _, c := range s.Batch.Unplug {
		gone[[2]fabric.PortID{c.A, c.B}] = true
	}
	left := slices.DeleteFunc(slices.Clone(x.cables), func(c fabric.Cable) bool { return gone[[2]fabric.PortID{c.A, c.B}] })
	short.MustEqual(t, len(left), len(x.cables)-len(gone), "seed", x.seed, "a cable is unplugged that is not there")
	was := x.fabric(x.cables)
	rest := x.fabric(left)
	x.cables = append(left, s.Batch.Plug...)
	now := x.fabric(x.cables)
	moved := make(map[fabric.PortID]bool) // both ends
	for _, c := range slices.Concat(s.Batch.Unplug, s.Batch.Plug) {
		moved[c.A], moved[c.B] = true, true
	}
	force := x.before
	if s.Drained != nil {
		d := s.Drained.Compiled.Routing
		if !s.Drained.Cuts {
			x.all(was, d.Tables, "drained")
		}
		x.stay(was, rest, d.Tables, moved, "drained, cables there")
		x.mixed(was, rest, x.before.Tables, d.Tables, &s.Drained.Write, nil, "to drain")
		x.load(rest, d.Tables, &s.Drained.Load, s.Drained.Factor)
		force = d
	}
	x.stay(rest, rest, force.Tables, nil, "unplugged")
	x.stay(now, rest, force.Tables, moved, "plugged in")
	w := s.After.Compiled.Routing
	x.mixed(now, rest, force.Tables, w.Tables, &s.After.Write, s.After.WriteFirst, "to use the new cables")
	x.all(now, w.Tables, "after")
	x.load(now, w.Tables, &s.After.Load, s.After.Factor)
	// And back.
	leave := s.After.Leave.Routing
	if !s.After.BackCuts {
		x.all(now, leave.Tables, "about to go back")
	}
	x.stay(now, rest, leave.Tables, moved, "about to go back")
	x.mixed(now, rest, w.Tables, leave.Tables, &s.After.Back, nil, "to leave the new cables")
	x.stay(was, rest, leave.Tables, moved, "back")
	if s.Drained != nil {
		x.mixed(was, rest, leave.Tables, x.before.Tables, &s.Drained.Back, s.Drained.BackFirst, "to be back")
	}
	down, lost, come := x.hosts(was, rest, now)
	if !slices.Equal(s.Down.List, down) || !slices.Equal(s.Gone.List, lost) || !slices.Equal(s.Come.List, come) {
		t.Errorf("seed %d: %v down, %v gone, %v new; the plan says %v, %v, %v", x.seed, down, lost, come, s.Down.List, s.Gone.List, s.Come.List)
	}
	x.before = w
}

// hosts lists the adapters with a port that is down in rest and back now, that is gone, and that is new.
func (x *follower) hosts(was, rest, now *fabric.Fabric) (down, gone, come []fabric.NodeID) {
	for n := fabric.NodeID(was.NumSwitches()); int(n) < was.NumNodes(); n++ {
		var is [3]bool
		for num := range was.Node(n).NumPorts {
			p := was.Port(n, num+1)
			before, between, after := was.Peer(p) != fabric.NoPort, rest.Peer(p) != fabric.NoPort, now.Peer(p) != fabric.NoPort
			is[0] = is[0] || before && !between && after
			is[1] = is[1] || before && !after
			is[2] = is[2] || !before && after
		}
		for i, list := range []*[]fabric.NodeID{&down, &gone, &come} {
			if is[i] {
				*list = append(*list, n)
			}
		}
	}
	return down, gone, come
}

func (x *follower) fabric(cables []fabric.Cable) *fabric.Fabric {
	f, err := x.job.Nodes.WithCables(cables)
	if err != nil {
		x.t.Fatalf("seed %d: %v", x.seed, err)
	}
	return f
}

// all follows all pairs of hosts that have a cable.
func (x *follower) all(f *fabric.Fabric, tables *lft.Tables, when string) {
	x.stay(f, f, tables, nil, when)
}

// stay follows the pairs of the hosts with a cable in rest, which must not meet some ports.
func (x *follower) stay(f, rest *fabric.Fabric, tables *lft.Tables, not map[fabric.PortID]bool, when string) {
	x.t.Helper()
	for _, src := range rest.CAPorts() {
		for _, dst := range rest.CAPorts() {
			if src == dst {
				continue
			}
			path, err := tables.Path(f, src, f.LID(dst), nil)
			if err != nil {
				x.t.Fatalf("seed %d, %s: %v", x.seed, when, err)
			}
			for _, c := range path {
				if not[c] {
					x.t.Fatalf("seed %d, %s: a packet goes through %s", x.seed, when, f.PortName(c))
				}
			}
		}
	}
}

// load holds a load to the routes that there are.
func (x *follower) load(f *fabric.Fabric, tables *lft.Tables, load *drain.Load, factor float64) {
	x.t.Helper()
	routes := make(map[fabric.PortID]int64)
	most := int64(0)
	for _, src := range f.CAPorts() {
		for _, dst := range f.CAPorts() {
			if src == dst {
				continue
			}
			path, err := tables.Path(f, src, f.LID(dst), nil)
			if err != nil {
				x.t.Fatalf("seed %d: %v", x.seed, err)
			}
			for _, c := range path {
				if f.IsSwitch(f.Owner(c)) && f.PeerSwitch(c) != fabric.NoNode {
					routes[c]++
					most = max(most, routes[c])
				}
			}
		}
	}
	if most != load.MaxRoutes || x.limit > 0 && factor > x.limit {
		x.t.Errorf("seed %d: %d routes on the busiest cable, %v times, the plan says %d, limit %v", x.seed, most, factor, load.MaxRoutes, x.limit)
	}
}

// mixed follows the pairs of the hosts that stay while some switches have new entries and some old ones, in
// the order of the plan, which has to have all switches whose entries differ.
func (x *follower) mixed(f, rest *fabric.Fabric, old, new *lft.Tables, c *drain.Change, first []fabric.GUID, when string) {
	x.t.Helper()
	listed := make(map[fabric.GUID]bool)
	for _, guid := range slices.Concat(append(c.Order.Stages, first)...) {
		listed[guid] = true
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		entries, _ := lft.CountChanges(old.Row(s), new.Row(s))
		if guid := f.Node(s).GUID; entries > 0 && f.LID(f.PortBase(s)) != 0 && !listed[guid] && c.Order.Kind != diff.OrderBlocks {
			x.t.Errorf("seed %d, %s: the order lacks %s", x.seed, when, f.Name(s))
		}
	}
	for range 3 {
		x.mixedOnce(f, rest, old, new, c, first, when)
	}
}

func (x *follower) mixedOnce(f, rest *fabric.Fabric, old, new *lft.Tables, c *drain.Change, first []fabric.GUID, when string) {
	x.t.Helper()
	if c.Order.Kind != diff.OrderAny && c.Order.Kind != diff.OrderSwitches {
		return
	}
	mix := lft.NewTables(f.NumSwitches(), max(old.MaxLID(), new.MaxLID()))
	for s := range fabric.NodeID(f.NumSwitches()) {
		copy(mix.Row(s), old.Row(s))
	}
	write := func(guid fabric.GUID) {
		s, _ := f.SwitchByGUID(guid)
		for lid := range mix.Row(s) {
			mix.Row(s)[lid] = fabric.NoPath
		}
		copy(mix.Row(s), new.Row(s))
	}
	for _, guid := range first {
		write(guid)
	}
	stage := x.rnd.IntN(max(len(c.Order.Stages), 1))
	for i, list := range c.Order.Stages {
		for _, guid := range list {
			if i < stage || i == stage && x.rnd.IntN(2) == 0 {
				write(guid)
			}
		}
	}
	x.stay(f, rest, mix, nil, when)
}

// site is three leaves with two hosts each under two spines.
func site(t testing.TB, leaves int) *fabric.Fabric {
	t.Helper()
	spec := gen.TreeSpec{Ports: 8, Pods: []int{leaves}, Hosts: 2, Spines: 2}
	f := short.Must(gen.Tree(spec))(t)
	return short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
}

// TestParse reads edits, and says what is wrong with others and where.
func TestParse(t *testing.T) {
	f := site(t, 3)
	for _, c := range []struct{ text, want string }{
		{"edits: [unplug leaf 0:3]", "want unplug NODE:PORT"},
		{"edits:\n  - unplug \"leaf 0\":7\n  - plug \"leaf 0\":7 \"spine 1\":4 4xhdr", "1 step, -1 +1"},
		{"# steps\n---\nsteps:\n- [unplug \"leaf 0\":7]\n- [plug \"leaf 0\":7 \"spine 1\":4]\n- []", "3 steps, -1 +1"},
		{"edits:\n- add switch \"new \\\"leaf\" 8\n- add host h 0xabc 1\n- plug h:1 \"new \\\"leaf\":1\n- plug \"new \\\"leaf\":2 \"spine 0\":4\n- remove \"spine 1\"\n", "1 step, -3 +2"},
		{"edits: []", "1 step, -0 +0"},
		{"", "want a file of edits with edits:"}, {"edits", `"edits"; want a mapping with edits, steps`}, {"moves: []", `unknown key "moves"`}, {"edits: []\nsteps: []", "want either edits: or steps:"},
		{"edits: {a: b}", "a mapping; want a list of edits"}, {"steps: [a]", `"a"; want a list of edits`}, {"steps: x", "want a list of lists of edits"}, {"edits: [[a]]", "a list; want an edit"},
		{"edits: [a: b]", "a mapping; want an edit"}, {"edits: [\t", "want YAML"},
		{"edits: [' ']", "want an edit, like unplug leaf03:37"}, {"edits: [fly x]", `"fly": want unplug NODE:PORT`}, {"edits: ['unplug \"x']", "a quotation mark without another"}, {"edits: [unplug x:1]", `no node is called "x"`},
		{"edits:\n- unplug \"leaf 0\":99", "2:2: \"leaf 0\" has ports 1 to"}, {"edits:\n- unplug \"leaf 0\":5", "has no cable"}, {"edits:\n- plug \"leaf 0\":5 \"leaf 1\":8", "has a cable already"},
		{"edits:\n- plug \"leaf 0\":5 \"leaf 0\":5", "has a cable already"}, {"edits:\n- plug \"leaf 0\":5 \"leaf 1\":5 3xHDR", "want one like 4xHDR"}, {"edits: [add switch x]", "want add switch NAME"},
		{"edits: [add router x 3]", "want add switch NAME"}, {"edits: [add host x 0]", "want 1 to 254"}, {"edits: [add host x 0x0 1]", "GUID 0 is no node's"}, {"edits: [add host x 0xg 1]", "hexadecimal"},
		{fmt.Sprintf("edits: [add host x %s 1]", f.Node(0).GUID), "is that of another node"}, {"edits: [remove n9]", `no node is called "n9"`}, {"edits: [&a unplug x, *a]", "an anchor or an alias"},
		{"edits:\n- add host x 1\n- add host x 1\n- unplug x:1", `2 nodes are called "x"`},
	} {
		job, err := move.Parse("f", []byte(c.text), f)
		got := fmt.Sprint(err)
		if err == nil {
			var b move.Batch
			for _, s := range job.Steps {
				b.Unplug, b.Plug = append(b.Unplug, s.Unplug...), append(b.Plug, s.Plug...)
			}
			n := max(1, len(job.Steps))
			if job.Steps == nil {
				b.Unplug, b.Plug = difference(job.Old, job.New), difference(job.New, job.Old)
			}
			got = fmt.Sprintf("%d step%s, -%d +%d", n, strings.Repeat("s", min(1, n-1)), len(b.Unplug), len(b.Plug))
		}
		var at *fabric.ParseError
		if !strings.Contains(got, c.want) || err != nil && (!errors.As(err, &at) || job != nil) {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

func difference(a, b []fabric.Cable) (rest []fabric.Cable) {
	has := make(map[fabric.PortID]fabric.PortID)
	for _, c := range b {
		has[c.A] = c.B
	}
	for _, c := range a {
		if z, ok := has[c.A]; !ok || z != c.B {
			rest = append(rest, c)
		}
	}
	return rest
}

// TestBetween finds nodes by name where GUIDs are others, and tells that.
func TestBetween(t *testing.T) {
	old, new := site(t, 3), site(t, 4) // whose spines have the GUIDs after those of the leaves
	if _, err := move.Between(old, new, false); err == nil || !strings.Contains(err.Error(), "--by name") {
		t.Errorf("by GUIDs that mean other nodes: %v", err)
	}
	job := short.Must(move.Between(old, new, true))(t)
	if gone, come := len(difference(job.Old, job.New)), len(difference(job.New, job.Old)); gone != 0 || come != 4 || job.Nodes.NumNodes() != old.NumNodes()+3 {
		t.Errorf("%d cables go, %d come, %d nodes for %d", gone, come, job.Nodes.NumNodes(), old.NumNodes())
	}
	for n := range fabric.NodeID(old.NumNodes()) {
		at, ok := job.Nodes.NodeByGUID(old.Node(n).GUID)
		if !ok || job.Nodes.Name(at) != old.Name(n) {
			t.Errorf("%s is not what it was", old.Name(n))
		}
		for p := range old.Node(n).NumPorts + 1 {
			if x, y := old.Port(n, p), job.Nodes.Port(at, p); old.LID(x) != job.Nodes.LID(y) || old.PortGUID(x) != job.Nodes.PortGUID(y) {
				t.Errorf("%s has LID %d, and had %d", old.PortName(x), job.Nodes.LID(y), old.LID(x))
			}
		}
	}
	if _, err := move.Between(old, old, true); err != nil {
		t.Error(err)
	}
	if job, err := move.Between(old, old, false); err != nil || len(difference(job.Old, job.New)) > 0 {
		t.Errorf("from a fabric to itself: %v", err)
	}
}

// FuzzParse reads anything: an error has no result, and all states of a job are fabrics with LIDs.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"edits:\n- add switch \"new \\\"leaf\" 8\n- add host h 0xabc 1\n- plug h:1 \"new \\\"leaf\":1\n- plug \"new \\\"leaf\":2 \"spine 0\":4\n- remove \"spine 1\"\n",
		"steps:\n- [unplug \"leaf 0\":7, add host x 2]\n- [plug \"leaf 0\":7 x:2 4xEDR]\n- [unplug x:2]", "edits: [&a unplug x, *a]", "edits: [add host a 0xffffffffffffffff 9, plug a:9 a:8]",
	} {
		f.Add([]byte(text))
	}
	old := site(f, 3)
	f.Fuzz(func(t *testing.T, data []byte) {
		job, err := move.Parse("f", data, old)
		if err != nil {
			if job != nil {
				t.Fatal("an error and a result")
			}
			return
		}
		cables := job.Old
		steps := job.Steps
		if steps == nil {
			steps = []move.Batch{{Unplug: difference(job.Old, job.New), Plug: difference(job.New, job.Old)}}
		}
		for _, b := range steps {
			cables = append(difference(cables, b.Unplug), b.Plug...)
			g := short.Must(job.Nodes.WithCables(cables))(t)
			g.EndPorts(func(p fabric.PortID) {
				if s := g.Owner(p); g.LID(p) == 0 && (!g.IsSwitch(s) || len(g.Neighbors(s)) > 0) {
					t.Fatalf("%s has no LID", g.PortName(p))
				}
			})
		}
		if len(difference(cables, job.New))+len(difference(job.New, cables)) > 0 {
			t.Fatal("the steps do not lead to the end")
		}
	})
}

// TestNoStateLoops draws 1,000 plans, of moves and of drains, and follows packets for every LID through every
// state that they allow: each state's tables, all orders of writes from one to the next, switches written in
// part too, and any number of the cables moved already, there and back. No packet loops, not even one to a LID of
// a port that is down, gone or never was there. The loads are those that the routes add up to.
func TestNoStateLoops(t *testing.T) {
	var n tally
	for seed := uint64(3500); seed < short.Of(short.Usual[uint64](4700, 3900), 3540); seed++ { // 4546 moves switches that lead through each other
		w := &walker{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 2)), tally: &n}
		if base := w.drawBase(); base != nil && seed%4 == 0 {
			w.drain(base)
		} else if base != nil {
			w.move(base)
		}
	}
	if n.plans < short.Of(short.Usual(1000, 300), 30) || n.steps < n.plans || min(n.down, n.gone, n.apart, n.mixed, n.blocks, n.stale) < short.Of(short.Usual(100, 25), 1) || min(n.cuts, n.credit) < short.Of(1, 0) {
		t.Errorf("%+v: the draw is too narrow", n)
	}
	t.Logf("%+v", n)
}

// tally counts what was drawn: plans, their steps, those in which ports are down or gone, or whole
// switches out, or that cut off before cables move, orders with more than one stage and with passes by
// blocks, writes with credit loops on the way, and fabrics with stale entries.
type tally struct{ plans, steps, down, gone, apart, cuts, mixed, blocks, credit, stale int }

// walker follows packets through the states of a plan. It goes by lists of cables and rows of tables alone.
type walker struct {
	*tally
	t    *testing.T
	seed uint64
	rnd  *rand.Rand
	f    *fabric.Fabric // the numbers of switches and ports, not the cables
}

// cabling is the other end of each cabled port.
type cabling map[fabric.PortID]fabric.PortID

func cablingOf(cables []fabric.Cable) cabling {
	c := make(cabling)
	for _, x := range cables {
		c[x.A], c[x.B] = x.B, x.A
	}
	return c
}

// drawBase makes a small fabric with tables, some of which have entries for LIDs that no port has. It is nil
// where the engine cannot.
func (w *walker) drawBase() *compile.Result {
	w.t.Helper()
	var f *fabric.Fabric
	var err error
	switch w.rnd.IntN(4) {
	case 0:
		f, err = gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2 + w.rnd.IntN(2)})
	case 1:
		f, err = gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2})
	default:
		f, err = gen.Irregular(gen.IrregularSpec{Switches: 4 + 2*w.rnd.IntN(3), Degree: 3, Hosts: 8, Seed: w.rnd.Uint64()})
	}
	if err == nil {
		f, err = gen.DropLinks(f, w.rnd.IntN(3), w.rnd.Uint64())
	}
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: w.rnd.IntN(8) / 7})
	}
	if err == nil && w.rnd.IntN(2) == 0 {
		lids, lmcs := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
		for p := range fabric.PortID(f.NumPorts()) {
			lids[p], lmcs[p] = 2*f.LID(p), f.LMC(p)
		}
		f, err = f.WithLIDs(lids, lmcs)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	f = withPorts(w.t, f, 9)
	e := short.Must(compile.EngineByName([]string{"updn", "layered", "minhop", "fattree"}[w.rnd.IntN(4)]))(w.t)
	base, err := compile.Run(context.Background(), f, e, compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}})
	if err != nil || base.Verify.Verdict == verify.VerdictErrors {
		return nil
	}
	if w.rnd.IntN(3) == 0 {
		w.stale++
		base.Routing = w.withStale(base.Routing)
	}
	return base
}

// withStale adds entries for some LIDs that no port has: those of another LID, some of which are missing or lead to
// ports without a cable.
func (w *walker) withStale(r *lft.Routing) *lft.Routing {
	c, most := *r, r.Fabric.MaxLID()
	c.Tables = lft.NewTables(r.Tables.Switches(), most+3)
	for s := range fabric.NodeID(r.Tables.Switches()) {
		copy(c.Tables.Row(s), r.Tables.Row(s))
	}
	for lid := fabric.LID(1); lid <= most+3; lid++ {
		if r.Fabric.LIDPort(lid) != fabric.NoPort {
			continue
		}
		like := 1 + fabric.LID(w.rnd.IntN(int(most)))
		for s := range fabric.NodeID(r.Tables.Switches()) {
			c.Tables.Row(s)[lid] = r.Tables.Row(s)[like]
			if free := fabric.PortNum(1 + w.rnd.IntN(9)); w.rnd.IntN(3) == 0 {
				c.Tables.Row(s)[lid] = fabric.NoPath
				if r.Fabric.Peer(r.Fabric.Port(s, free)) == fabric.NoPort {
					c.Tables.Row(s)[lid] = free
				}
			}
		}
	}
	return &c
}

// move plans a move, in one step or in as many as it takes, and follows packets through it.
func (w *walker) move(base *compile.Result) {
	w.t.Helper()
	ctx, old := context.Background(), base.Routing.Fabric
	job, err := move.Between(old, drawNew(w.t, old, w.rnd), false)
	if err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	if gone, come := difference(job.Old, job.New), difference(job.New, job.Old); w.rnd.IntN(2) == 0 {
		job.Steps = []move.Batch{{Unplug: gone, Plug: come}}
	}
	plan, err := move.Make(ctx, base, job, compile.Options{}, move.Options{})
	if err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	w.plans++
	w.f = job.Nodes
	cables, tables := job.Old, base.Routing.On(job.Nodes).Tables
	w.load(cables, tables, plan.Before.MaxRoutes, "before")
	for i := range plan.Steps {
		s := &plan.Steps[i]
		rest := difference(cables, s.Batch.Unplug)
		next := append(slices.Clone(rest), s.Batch.Plug...)
		w.step(s, cables, rest, next, tables)
		cables, tables = next, s.After.Compiled.Routing.Tables
	}
}

// step follows packets through a step of a move, there and back. was, rest and next are the cables before, without
// those that go, and after.
func (w *walker) step(s *move.Step, was, rest, next []fabric.Cable, before *lft.Tables) {
	w.t.Helper()
	w.steps++
	if len(s.Down.List) > 0 {
		w.down++
	}
	if len(s.Gone.List) > 0 {
		w.gone++
	}
	x, y := cablingOf(was), cablingOf(next)
	drained, after, leave := before, s.After.Compiled.Routing.Tables, s.After.Leave.Routing.Tables
	w.only("before", before, x)
	if d := s.Drained; d != nil {
		drained = d.Compiled.Routing.Tables
		w.order("to drain", before, drained, &d.Write, x)
		w.load(rest, drained, d.MaxRoutes, "drained")
		w.tell(d.Verdict, &d.Write)
		w.noCreditLoop("drained", d.Compiled)
		if d.Cuts {
			w.cuts++
			w.justify(x, cablingOf(rest), y)
		} else {
			w.load(was, drained, -1, "drained, cables there")
		}
	}
	w.only("drained", drained, x, y)
	ready := w.first("drained", drained, after, s.After.WriteFirst, y)
	w.order("to use the new cables", ready, after, &s.After.Write, y)
	w.only("after", after, y)
	w.load(next, after, s.After.MaxRoutes, "after")
	w.tell(s.After.Verdict, &s.After.Write)
	w.order("to leave the new cables", after, leave, &s.After.Back, y)
	w.noCreditLoop("back", s.After.Leave)
	w.only("back", leave, y, x)
	if d := s.Drained; d != nil {
		ready = w.first("back", leave, before, d.BackFirst, x)
		w.order("to be back", ready, before, &d.Back, x)
		w.apart += min(1, len(d.BackFirst))
	}
}

// noCreditLoop checks tables on the cables of their own fabric.
func (w *walker) noCreditLoop(when string, c *compile.Result) {
	w.t.Helper()
	r := c.Routing
	v, err := verify.Check(w.t.Context(), &state.State{Fabric: r.Fabric, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs}, verify.Options{})
	if err != nil || v.CreditLoops.Count > 0 {
		w.t.Errorf("seed %d: %s: %d credit loops, %v", w.seed, when, v.CreditLoops.Count, err)
	}
}

// justify looks for a port whose entries cannot stay until it is unplugged: its switch gets another switch in its place, or
// has no cable that stays.
func (w *walker) justify(was, rest, next cabling) {
	w.t.Helper()
	for at, p := range was {
		s := w.f.Owner(at)
		if _, stays := rest[at]; stays || !w.f.IsSwitch(s) || w.f.IsSwitch(w.f.Owner(p)) && w.isCabled(s, rest) {
			continue
		}
		if to, is := next[at]; !w.isCabled(s, rest) || is && w.f.IsSwitch(w.f.Owner(to)) {
			return
		}
	}
	w.t.Errorf("seed %d: hosts are cut off before they are unplugged, without need", w.seed)
}

// drain plans a drain, and follows packets through it.
func (w *walker) drain(base *compile.Result) {
	w.t.Helper()
	w.f = base.Routing.Fabric
	parts := w.drawParts()
	plan, err := drain.Make(context.Background(), base, compile.Options{}, parts, drain.Options{})
	if err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	w.plans++
	cables := w.f.Cables()
	whole := cablingOf(cables)
	w.load(cables, base.Routing.Tables, plan.Before.MaxRoutes, "before")
	for _, window := range plan.Windows {
		tables, rest := base.Routing.Tables, cables
		for i := range window.Steps {
			s := &window.Steps[i]
			w.steps++
			for _, p := range parts {
				if p.Name == s.Part {
					rest = slices.DeleteFunc(slices.Clone(rest), func(c fabric.Cable) bool {
						return slices.Contains(p.Cables, c.A) || slices.Contains(p.Cables, c.B)
					})
				}
			}
			drained := s.Compiled.Routing.Tables
			w.only("in force", tables, whole)
			w.order("to drain", tables, drained, &s.Drain, whole)
			w.only("drained", drained, whole)
			w.load(rest, drained, s.MaxRoutes, "drained")
			w.order("to be back", drained, tables, &s.Back, whole)
			w.tell(s.Verdict, &s.Drain)
			tables = drained
		}
		w.gone += min(1, window.Gone)
	}
}

// drawParts draws cables, switches and hosts.
func (w *walker) drawParts() (parts []drain.Part) {
	cables := w.f.Cables()
	for range 1 + w.rnd.IntN(4) {
		p := drain.SwitchPart(w.f, []fabric.NodeID{fabric.NodeID(w.rnd.IntN(w.f.NumSwitches()))})
		if w.rnd.IntN(2) == 0 {
			p = drain.CablePart(w.f, cables[w.rnd.IntN(len(cables))].A)
		}
		p.Name = string(rune('a' + len(parts)))
		parts = append(parts, p)
	}
	return parts
}

// tell holds a verdict to what it has to tell.
func (w *walker) tell(verdict string, c *drain.Change) {
	w.t.Helper()
	w.credit += min(1, c.CreditLoops)
	if verdict == verify.VerdictErrors || c.CreditLoops > 0 && verdict == verify.VerdictClean {
		w.t.Errorf("seed %d: %d credit loops on the way, and the verdict is %s", w.seed, c.CreditLoops, verdict)
	}
}

// only checks tables on some cables: each port has the cable of any of them.
func (w *walker) only(when string, tables *lft.Tables, cables ...cabling) {
	w.t.Helper()
	w.check(when, tables.MaxLID(), func(s fabric.NodeID, lid fabric.LID) []fabric.PortNum { return []fabric.PortNum{tables.Row(s)[lid]} }, cables...)
}

// first checks the writes of switches that get all of their entries before others, and returns the tables then.
func (w *walker) first(when string, old, new *lft.Tables, list []fabric.GUID, at cabling) *lft.Tables {
	w.t.Helper()
	w.apart += min(1, len(list))
	maxLID := max(old.MaxLID(), new.MaxLID())
	ready := lft.NewTables(old.Switches(), maxLID)
	for s := range fabric.NodeID(old.Switches()) {
		copy(ready.Row(s), old.Row(s))
		if slices.Contains(list, w.f.Node(s).GUID) {
			for lid := range ready.Row(s) {
				ready.Row(s)[lid] = entryOf(new, s, fabric.LID(lid))
			}
		}
	}
	w.check(when+", first writes", maxLID, func(s fabric.NodeID, lid fabric.LID) []fabric.PortNum {
		return []fabric.PortNum{entryOf(old, s, lid), entryOf(ready, s, lid)}
	}, at)
	return ready
}

func entryOf(t *lft.Tables, s fabric.NodeID, lid fabric.LID) fabric.PortNum {
	if lid > t.MaxLID() {
		return fabric.NoPath
	}
	return t.Row(s)[lid]
}

// order checks all orders of writes that a change allows: for each LID the switches of the stages before some one have
// new entries, those of this stage old or new ones, and the others old ones. All switches whose entry changes have a
// stage, unless they have no cable by which they could be written.
func (w *walker) order(when string, old, new *lft.Tables, c *drain.Change, at cabling) {
	w.t.Helper()
	maxLID := max(old.MaxLID(), new.MaxLID())
	most := 0
	stages := make([]map[fabric.GUID]int, maxLID+1) // by LID
	for lid := range stages {
		list := c.Order.Stages
		for _, b := range c.Order.Blocks {
			for _, p := range b.Passes {
				if b.Block == lid/lft.BlockSize && (len(p.LIDs) == 0 || slices.Contains(p.LIDs, fabric.LID(lid))) {
					list = p.Stages
				}
			}
		}
		stages[lid] = make(map[fabric.GUID]int)
		for i, guids := range list {
			for _, guid := range guids {
				stages[lid][guid] = i
			}
		}
		most = max(most, len(list)-1)
	}
	switch {
	case c.Order.Kind == diff.OrderBlocks:
		w.blocks++
	case most > 0:
		w.mixed++
	}
	for now := range most + 1 {
		w.check(when, maxLID, func(s fabric.NodeID, lid fabric.LID) []fabric.PortNum {
			stage, is := stages[lid][w.f.Node(s).GUID]
			from, to := entryOf(old, s, lid), entryOf(new, s, lid)
			switch {
			case from == to || is && stage < now:
				return []fabric.PortNum{to}
			case is && stage == now:
				return []fabric.PortNum{from, to}
			case !is && w.isCabled(s, at):
				w.t.Fatalf("seed %d, %s: the order %q lacks the entry of %s for LID %d", w.seed, when, c.Order.Kind, w.f.Name(s), lid)
			}
			return []fabric.PortNum{from}
		}, at)
	}
}

func (w *walker) isCabled(s fabric.NodeID, at cabling) bool {
	for num := range w.f.Node(s).NumPorts {
		if _, is := at[w.f.Port(s, num+1)]; is {
			return true
		}
	}
	return false
}

// check looks for a loop of packets for each LID, where a switch may have one of several entries and each port the
// cable of one of several cablings. A cycle of such choices meets a switch once, and so is a loop of a state.
func (w *walker) check(when string, maxLID fabric.LID, entries func(fabric.NodeID, fabric.LID) []fabric.PortNum, cables ...cabling) {
	w.t.Helper()
	const onPath, done = 1, 2
	for lid := fabric.LID(1); lid <= maxLID; lid++ {
		seen := make([]int, w.f.NumSwitches())
		var visit func(s fabric.NodeID) bool
		visit = func(s fabric.NodeID) bool {
			seen[s] = onPath
			for _, num := range entries(s, lid) {
				if num == 0 || num > w.f.Node(s).NumPorts {
					continue
				}
				for _, c := range cables {
					peer, is := c[w.f.Port(s, num)]
					if !is || !w.f.IsSwitch(w.f.Owner(peer)) {
						continue
					}
					if to := w.f.Owner(peer); seen[to] == onPath || seen[to] == 0 && visit(to) {
						return true
					}
				}
			}
			seen[s] = done
			return false
		}
		for s := range fabric.NodeID(w.f.NumSwitches()) {
			if seen[s] == 0 && visit(s) {
				w.t.Errorf("seed %d, %s: packets for LID %d loop", w.seed, when, lid)
				return
			}
		}
	}
}

// load follows packets between all adapters that have cables, and holds the greatest load to their routes, if want is
// not negative.
func (w *walker) load(cables []fabric.Cable, tables *lft.Tables, want int64, when string) {
	w.t.Helper()
	at := cablingOf(cables)
	var ports []fabric.PortID
	for _, c := range cables {
		for _, p := range [...]fabric.PortID{c.A, c.B} {
			if !w.f.IsSwitch(w.f.Owner(p)) {
				ports = append(ports, p)
			}
		}
	}
	routes := make(map[fabric.PortID]int64)
	most := int64(0)
	for _, src := range ports {
		for _, dst := range ports {
			for k := range fabric.LID(1) << w.f.LMC(dst) {
				p := src
				for hops := 0; src != dst && at[p] != dst; hops++ {
					s := w.f.Owner(at[p])
					p = w.f.Port(s, entryOf(tables, s, w.f.LID(dst)+k))
					if _, is := at[p]; !is || hops > w.f.NumSwitches() {
						w.t.Fatalf("seed %d, %s: no path from %s to %s", w.seed, when, w.f.PortName(src), w.f.PortName(dst))
					}
					if w.f.IsSwitch(w.f.Owner(at[p])) {
						routes[p]++
						most = max(most, routes[p])
					}
				}
			}
		}
	}
	if want >= 0 && most != want {
		w.t.Errorf("seed %d, %s: %d routes on the busiest cable; the plan says %d", w.seed, when, most, want)
	}
}
