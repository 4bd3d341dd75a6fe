package sim

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

var trials = flag.Int("trials", short.Usual(300, 100), "how many random fabrics and routings verify and the simulator are compared on")

// trial is a random fabric with tables, groups and virtual lanes.
type trial struct {
	seed  uint64
	rng   *rand.Rand
	name  string
	f     *fabric.Fabric
	net   Network
	trees []mft.Tree
	hosts []fabric.PortID
}

func newTrial(t *testing.T, seed uint64) *trial {
	t.Helper()
	x := &trial{seed: seed, rng: rand.New(rand.NewPCG(seed, 9))}
	var err error
	switch kind := x.rng.IntN(5); kind {
	case 0:
		x.name = "irregular"
		n := 4 + 2*x.rng.IntN(4)
		x.f, err = gen.Irregular(gen.IrregularSpec{Switches: n, Hosts: n + x.rng.IntN(n), Degree: 3, Seed: seed})
	case 1:
		x.name = "ring"
		x.f, err = mesh.Generate(mesh.Spec{Dims: []int{3 + x.rng.IntN(5)}, Wrap: []bool{true}, Hosts: 1 + x.rng.IntN(2)})
	case 2:
		x.name = "torus"
		x.f, err = mesh.Generate(mesh.Spec{Dims: []int{3, 3 + x.rng.IntN(2)}, Wrap: []bool{true, true}, Hosts: 1})
	case 3:
		x.name = "mesh"
		x.f, err = mesh.Generate(mesh.Spec{Dims: []int{2 + x.rng.IntN(2), 2 + x.rng.IntN(3)}, Hosts: 1})
	default:
		x.name = "lattice"
		x.f, err = gen.Lattice(4+x.rng.IntN(8), seed)
	}
	if err == nil {
		x.f, err = lft.AssignLIDs(x.f, lft.LIDOptions{})
	}
	short.Check(t, err)
	x.hosts = x.f.CAPorts()
	x.net.Fabric = x.f
	x.route(t)
	x.lanes()
	x.groups(t)
	return x
}

// route draws the unicast tables: of an engine, or a random tree to each switch.
func (x *trial) route(t *testing.T) {
	t.Helper()
	var e lft.Engine
	switch x.rng.IntN(5) {
	case 0:
		e = updown.Engine{}
	case 1, 2:
		e = lft.Minhop{}
	default:
		x.randomTables()
		return
	}
	x.name += " " + e.Name()
	r := short.Must(e.Route(t.Context(), x.f, lft.Options{}))(t)
	x.net.Tables = r.Tables
}

// randomTables is a random tree to each switch, or to some of its hosts.
func (x *trial) randomTables() {
	x.name += " random"
	x.net.Tables = lft.NewTables(x.f.NumSwitches(), x.f.MaxLID())
	trees := make([][]fabric.PortID, x.f.NumSwitches())
	for lid := fabric.LID(1); lid <= x.f.MaxLID(); lid++ {
		p := x.f.LIDPort(lid)
		if p == fabric.NoPort {
			continue
		}
		root, num := x.f.Owner(p), fabric.ManagementPort
		if !x.f.IsSwitch(root) {
			num = x.f.Num(x.f.Peer(p))
			root = x.f.Owner(x.f.Peer(p))
		}
		if trees[root] == nil || x.rng.IntN(2) == 0 {
			trees[root] = x.tree(root)
		}
		for s, up := range trees[root] {
			if up != fabric.NoPort {
				x.net.Tables.Row(fabric.NodeID(s))[lid] = x.f.Num(up)
			}
		}
		x.net.Tables.Row(root)[lid] = num
	}
}

// tree is a random tree to a switch: for each other one the port that leads there.
// It grows from a switch that was reached last, or first, or any.
func (x *trial) tree(root fabric.NodeID) []fabric.PortID {
	up := make([]fabric.PortID, x.f.NumSwitches())
	for i := range up {
		up[i] = fabric.NoPort
	}
	how := x.rng.IntN(3)
	reached := []fabric.NodeID{root}
	for len(reached) > 0 {
		i := x.rng.IntN(len(reached))
		switch how {
		case 0:
			i = len(reached) - 1
		case 1:
			i = 0
		}
		at := reached[i]
		var ways []fabric.PortID
		ports, to := x.f.SwitchLinks(at)
		for k, p := range ports {
			if to[k] != root && up[to[k]] == fabric.NoPort {
				ways = append(ways, x.f.Peer(p))
			}
		}
		if len(ways) == 0 {
			reached = slices.Delete(reached, i, i+1)
			continue
		}
		way := ways[x.rng.IntN(len(ways))]
		up[x.f.Owner(way)] = way
		reached = append(reached, x.f.Owner(way))
	}
	return up
}

// lanes draws one virtual lane, or some: by SL, or anyhow.
func (x *trial) lanes() {
	vls := 1 + x.rng.IntN(3)
	if vls == 1 {
		return
	}
	maps := make([]lft.VLMap, 3)
	for i := range maps {
		for sl := range maps[i] {
			maps[i][sl] = fabric.VL(x.rng.IntN(vls))
		}
	}
	x.net.SL2VL = lft.NewSL2VL(x.f, lft.IdentityVLs(vls))
	if x.rng.IntN(2) == 0 {
		x.name += fmt.Sprintf(" VLs=%d", vls)
	} else {
		x.name += fmt.Sprintf(" VLs=%d by port", vls)
		for in, out := range x.net.SL2VL.PortPairs() {
			x.net.SL2VL.Set(in, out, maps[x.rng.IntN(len(maps))])
		}
	}
	if x.rng.IntN(2) == 0 {
		x.name += " path SLs"
		x.net.PathSLs = lft.NewPathSLs(x.f.NumSwitches(), x.f.MaxLID())
		for s := range fabric.NodeID(x.f.NumSwitches()) {
			row := make([]fabric.SL, x.f.MaxLID()+1)
			for i := range row {
				row[i] = fabric.SL(x.rng.IntN(3))
			}
			x.net.PathSLs.SetRow(row, s)
		}
	}
}

// groups draws some multicast groups, or none: the trees of a scheme, or a random
// one for each group, which all its members use.
func (x *trial) groups(t *testing.T) {
	t.Helper()
	if x.rng.IntN(2) == 0 || len(x.hosts) < 3 {
		return
	}
	groups := x.members()
	if x.rng.IntN(2) == 0 {
		for i := range groups {
			groups[i].MLID = 0
		}
		plan, err := mft.Union{}.Build(t.Context(), &lft.Routing{Engine: "any", Fabric: x.f, Tables: x.net.Tables}, groups, mft.Options{})
		if err == nil {
			x.name += " union"
			x.net.Multicast, x.trees = plan, plan.Trees
			return
		}
		if _, refused := errors.AsType[*mft.RefusedError](err); !refused {
			t.Fatal(err)
		}
		for i := range groups {
			groups[i].MLID = mft.MinMLID + 1 + fabric.LID(i)
		}
	}
	x.randomTrees(groups)
}

// members draws groups of hosts, all of which send and receive.
func (x *trial) members() (groups []mft.Group) {
	for i := range 1 + x.rng.IntN(4) {
		members := slices.Clone(x.hosts)
		x.rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		members = members[:2+x.rng.IntN(len(members)-1)]
		slices.Sort(members)
		g := mft.Group{Name: fmt.Sprint(i), MLID: mft.MinMLID + 1 + fabric.LID(i), Receivers: members, Senders: members}
		if x.net.SL2VL != nil {
			g.SL = fabric.SL(x.rng.IntN(3))
		}
		groups = append(groups, g)
	}
	return groups
}

// randomTrees gives each group a random tree, which all its members use.
func (x *trial) randomTrees(groups []mft.Group) {
	x.name += " random trees"
	x.net.Multicast = &mft.Plan{Tables: mft.NewTables(x.f)}
	for i, g := range groups {
		root := x.f.Owner(x.f.Peer(g.Receivers[x.rng.IntN(len(g.Receivers))]))
		up := x.tree(root)
		var mask []fabric.PortID
		for _, p := range g.Receivers {
			p = x.f.Peer(p)
			mask = append(mask, p)
			for at := x.f.Owner(p); up[at] != fabric.NoPort; at = x.f.Owner(x.f.Peer(up[at])) {
				mask = append(mask, up[at], x.f.Peer(up[at]))
			}
		}
		slices.Sort(mask)
		x.net.Multicast.Tables.Add(g.MLID, slices.Compact(mask))
		x.trees = append(x.trees, mft.Tree{
			Group: i, Name: g.Name, MLID: g.MLID, Senders: g.Senders, Receivers: g.Receivers, SL: g.SL, Scheme: "random",
		})
	}
}

// verify says what is wrong with the trial on switches that copy in some way.
func (x *trial) verify(t *testing.T, copying Copying) *verify.Result {
	t.Helper()
	s := &state.State{Fabric: x.f, Tables: x.net.Tables, SL2VL: x.net.SL2VL, PathSLs: x.net.PathSLs}
	if x.trees != nil {
		s.Multicast = &mft.Plan{Tables: x.net.Multicast.Tables, Trees: x.trees}
	}
	r := short.Must(verify.Check(t.Context(), s, verify.Options{Copying: verify.Copying(min(copying, Wormhole)), Witnesses: 1 << 20, Findings: 1 << 20}))(t)
	for _, f := range r.Findings {
		switch f.Rule {
		case verify.CreditLoop, verify.MulticastCreditLoop, verify.MulticastCopying:
		default:
			if f.Severity == verify.Error {
				t.Fatalf("%s: %s", x, f.Message)
			}
		}
	}
	return r
}

// String is for who wants to see it again.
func (x *trial) String() string { return fmt.Sprintf("seed %d, %s", x.seed, x.name) }

// config draws hardware: any delays, any arbitration, buffers of one packet or more.
func (x *trial) config(copying Copying) Config {
	cfg := cycles(copying, 8)
	cfg.WireDelay = Time(x.rng.IntN(5)) * Nanosecond
	cfg.CreditDelay = Time(x.rng.IntN(5)) * Nanosecond
	cfg.RoutingDelay = Time(x.rng.IntN(5)) * Nanosecond
	cfg.Arbitration = Arbitration(x.rng.IntN(int(LowestPort) + 1))
	cfg.FullChecks = 1 << 10
	if copying >= Wormhole {
		cfg.BufferFlits = 1 + x.rng.IntN(4)
		cfg.OutputFlits = x.rng.IntN(3)
	} else if x.rng.IntN(3) == 0 {
		cfg.BufferFlits = 8 + x.rng.IntN(16)
	}
	return cfg
}

// sls is the SL of the next unicast message.
func (x *trial) sl() fabric.SL {
	if x.net.PathSLs != nil {
		return PathSL
	}
	if x.net.SL2VL == nil {
		return 0
	}
	return fabric.SL(x.rng.IntN(lft.NumSLs))
}

// saturate has all hosts send at once, more than the network holds, and returns the
// deadlock, if there is one.
func (x *trial) saturate(t *testing.T, copying Copying, messages []Message) *DeadlockError {
	t.Helper()
	s := mustNew(t, x.net, x.config(copying), nil)
	for _, m := range messages {
		mustSend(t, s, m)
	}
	err := s.Run(t.Context(), Forever)
	if dead, ok := errors.AsType[*DeadlockError](err); ok {
		x.checkWitness(t, copying, dead)
		return dead
	}
	if c := s.Counts(); err != nil || c.Copies != 0 || c.Dropped != 0 || c.Strayed != 0 {
		t.Errorf("%s, %s: %v, %+v", x, copying, err, c)
	}
	return nil
}

// lids is the LIDs that random traffic goes to: those of the hosts, and of switches
// if they may have packets too.
func (x *trial) lids(switches bool) (list []fabric.LID) {
	for lid := fabric.LID(1); lid <= x.f.MaxLID(); lid++ {
		if p := x.f.LIDPort(lid); p != fabric.NoPort && (switches || !x.f.IsSwitch(x.f.Owner(p))) {
			list = append(list, lid)
		}
	}
	return list
}

// anyTraffic is 30 random messages from each host, a third to groups where there are
// some, in an order in which all of them have their turn.
func (x *trial) anyTraffic(lids []fabric.LID) (list []Message) {
	for range 30 {
		for _, i := range x.rng.Perm(len(x.hosts)) {
			m := Message{Src: x.hosts[i], Bytes: 8}
			if x.rng.IntN(4) == 0 {
				m.Bytes = 1 + x.rng.IntN(8)
			}
			if len(x.trees) > 0 && x.rng.IntN(3) == 0 {
				tree := &x.trees[x.rng.IntN(len(x.trees))]
				if _, ok := slices.BinarySearch(tree.Senders, m.Src); ok {
					m.DLID, m.SL = tree.MLID, tree.SL
					list = append(list, m)
					continue
				}
			}
			if m.DLID = lids[x.rng.IntN(len(lids))]; m.DLID != x.f.LID(m.Src) {
				m.SL = x.sl()
				list = append(list, m)
			}
		}
	}
	return list
}

// round is messages that hold the channels of a cycle, from all hosts whose
// packets pass them.
func (x *trial) round(circle []verify.Hop, each int) (list []Message) {
	for i, h := range circle {
		channel := x.hop(h)
		at := x.f.Owner(channel)
		for k := range x.trees {
			// A hop without a LID is of a packet that waits for several channels there.
			if tree := &x.trees[k]; tree.MLID == h.LID || h.LID == 0 && slices.Contains(x.net.Multicast.Tables.Mask(at, tree.MLID), channel) {
				for _, src := range tree.Senders {
					list = append(list, Message{Src: src, DLID: tree.MLID, SL: tree.SL, Bytes: 8})
				}
			}
		}
		if h.LID == 0 || h.LID >= mft.MinMLID {
			continue
		}
		next := x.hop(circle[(i+1)%len(circle)])
		for _, src := range x.hosts {
			way := x.way(src, h.LID)
			if k := slices.Index(way, channel); k >= 0 && k+1 < len(way) && way[k+1] == next {
				for range 4 {
					list = append(list, Message{Src: src, DLID: h.LID, SL: x.sl(), Bytes: 8})
				}
			}
		}
	}
	var all []Message
	for range each {
		x.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		all = append(all, list...)
	}
	return all
}

// hop is the port of a hop.
func (x *trial) hop(h verify.Hop) fabric.PortID {
	at, _ := x.f.NodeByGUID(h.Switch)
	return x.f.Port(at, h.Port)
}

// way is the ports of switches that packets leave by, to the host that has a LID.
func (x *trial) way(src fabric.PortID, lid fabric.LID) (way []fabric.PortID) {
	if x.f.LIDPort(lid) == src {
		return nil
	}
	for s := x.f.Owner(x.f.Peer(src)); x.f.IsSwitch(s); s = x.f.Owner(x.f.Peer(way[len(way)-1])) {
		way = append(way, x.f.Port(s, x.net.Tables.Row(s)[lid]))
	}
	return way
}

// checkWitness follows a deadlock's cycle of channels in the tables: each must be
// what the packet behind the one before goes on by.
func (x *trial) checkWitness(t *testing.T, copying Copying, dead *DeadlockError) {
	t.Helper()
	hops := dead.Channels()
	if copying != Independent || len(hops) == 0 {
		if len(hops) == 0 {
			t.Errorf("%s, %s: %v has no channels", x, copying, dead)
		}
		return
	}
	for i, h := range hops {
		next := hops[(i+1)%len(hops)]
		in := x.f.Peer(x.hop(h))
		s := x.f.Owner(in)
		ok := x.f.Node(s).GUID == next.Switch
		if ok && h.LID >= mft.MinMLID {
			ok = slices.Contains(x.net.Multicast.Tables.Mask(s, h.LID), x.f.Port(s, next.Port))
		} else if ok {
			ok = x.net.Tables.Row(s)[h.LID] == next.Port
		}
		if ok && x.net.SL2VL != nil {
			ok = slices.Contains(x.net.SL2VL.At(x.f.Num(in), x.f.Port(s, next.Port))[:], next.VL)
		}
		if !ok {
			t.Errorf("%s, %s: LID %d does not go from %+v to %+v: %v", x, copying, h.LID, h, next, dead)
		}
	}
}

// hasLoops returns true if CAs' packets can wait for each other in a cycle.
func hasLoops(r *verify.Result) bool { return r.CreditLoops.Count+r.Multicast.CreditLoops > 0 }

// TestRandomRoutings compares what verify says of random fabrics and routings, half
// of them with credit loops, with what saturating traffic does to them. Where verify
// finds none the simulator must not deadlock, however switches copy. Where it finds
// some, the simulator is driven into them: by random traffic, or by traffic round the
// cycle that verify names. With switches that copy as InfiniBand's do it always gets
// there. The other ways to copy have cycles that need more than that traffic, or that
// cannot close at all: see docs/dev/simulator-validation.md.
func TestRandomRoutings(t *testing.T) {
	trials := short.Of(*trials, 16)
	type tally struct{ clean, loops, byChance, aimed int }
	var all [GreedyWormhole + 1]tally
	clean, loops := 0, 0
	for seed := uint64(0); clean+loops < trials; seed++ {
		x := newTrial(t, seed)
		if hasLoops(x.verify(t, Independent)) {
			if loops == trials/2 {
				continue
			}
			loops++
		} else {
			if clean == trials-trials/2 {
				continue
			}
			clean++
		}
		for copying := Independent; copying <= GreedyWormhole; copying++ {
			if (copying == Reserving || copying == LockStep || copying == GreedyWormhole) && x.trees == nil {
				continue // as independent
			}
			r := x.verify(t, copying)
			n := &all[copying]
			if !hasLoops(r) && copying == GreedyWormhole {
				r = x.verify(t, LockStep) // for which verify has no name: a worm that takes its ports one by one
			}
			if !hasLoops(r) {
				n.clean++
				lids := x.lids(r.Management.CreditLoops == 0)
				for range 6 {
					if dead := x.saturate(t, copying, x.anyTraffic(lids)); dead != nil {
						t.Errorf("%s, %s is clean: %v", x, copying, dead)
					}
				}
				continue
			}
			n.loops++
			dead, lids := false, x.lids(false)
			for i := 0; i < 4 && !dead; i++ {
				dead = x.saturate(t, copying, x.anyTraffic(lids)) != nil
			}
			if dead {
				n.byChance++
				continue
			}
			for _, f := range r.Findings {
				if f.Rule != verify.CreditLoop && f.Rule != verify.MulticastCreditLoop && f.Rule != verify.MulticastCopying {
					continue
				}
				for i := 0; i < 20 && !dead; i++ {
					dead = x.saturate(t, copying, x.round(f.Witness, 4)) != nil
				}
			}
			if dead {
				n.aimed++
			} else {
				t.Logf("%s, %s does not deadlock: %v", x, copying, r.Findings[0].Witness)
			}
		}
	}
	for copying := Independent; copying <= GreedyWormhole; copying++ {
		n := all[copying]
		t.Logf("%s: %d clean, which never deadlock; %d with credit loops, of which %d deadlock in random traffic and %d more in traffic round the loop",
			copying, n.clean, n.loops, n.byChance, n.aimed)
	}
	for copying, n := range all {
		if dead := n.byChance + n.aimed; dead < n.loops*3/4 || Copying(copying) == Independent && dead < n.loops*95/100 {
			t.Errorf("%s: of %d with credit loops only %d deadlock", Copying(copying), n.loops, dead)
		}
	}
}

var zooCases = flag.Int("cases", short.Usual(400, 130), "how many sets of multicast packets verify and the simulator are compared on")

// zooCase is some multicast packets on a small mesh, and how it copies them.
type zooCase struct {
	m, n    int
	scheme  int // 0: unions of XY paths, 1: one tree for all, 2: OpenSM's trees
	cfg     Config
	packets []zooPacket
}

type zooPacket struct {
	multicast
	at Time
}

func newZooCase(seed uint64) *zooCase {
	rng := rand.New(rand.NewPCG(seed, 12))
	x := &zooCase{m: 1 + rng.IntN(4), n: 2 + rng.IntN(3), scheme: rng.IntN(3)}
	copying := Copying(rng.IntN(int(GreedyWormhole) + 1))
	x.cfg = cycles(copying, 8)
	x.cfg.FullChecks = 1 << 10
	x.cfg.Arbitration = Arbitration(rng.IntN(int(LowestPort) + 1))
	if copying >= Wormhole {
		x.cfg.BufferFlits = 1 + rng.IntN(8)
	}
	hosts := x.m * x.n
	for range 2 + rng.IntN(12) {
		p := zooPacket{multicast{from: [2]int{rng.IntN(x.m), rng.IntN(x.n)}}, Time(rng.IntN(20)) * Nanosecond}
		for _, i := range rng.Perm(hosts)[:1+rng.IntN(min(5, hosts-1))] {
			if at := [2]int{i / x.n, i % x.n}; at != p.from {
				p.to = append(p.to, at)
			}
		}
		if len(p.to) > 0 {
			x.packets = append(x.packets, p)
		}
	}
	return x
}

// String is the case as a fixture.
func (x *zooCase) String() string {
	s := fmt.Sprintf("%dx%d, scheme %d, %s, %s, %d flits:", x.m, x.n, x.scheme, x.cfg.Copying, x.cfg.Arbitration, x.cfg.BufferFlits)
	for _, p := range x.packets {
		s += fmt.Sprintf(" {%v at %s to %v}", p.from, p.at, p.to)
	}
	return s
}

// plan has an MLID for each packet.
func (x *zooCase) plan(t *testing.T, g *grid) *mft.Plan {
	t.Helper()
	var packets []multicast
	for _, p := range x.packets {
		packets = append(packets, p.multicast)
	}
	if x.scheme == 0 {
		return g.plan(t, packets)
	}
	var groups []mft.Group
	for i, p := range packets {
		group := mft.Group{Name: fmt.Sprint(i), Senders: []fabric.PortID{g.host(p.from[0], p.from[1])}}
		for _, to := range p.to {
			group.Receivers = append(group.Receivers, g.host(to[0], to[1]))
		}
		slices.Sort(group.Receivers)
		groups = append(groups, group)
	}
	var scheme mft.Scheme = mft.OpenSM{}
	r := &lft.Routing{Engine: "xy", Fabric: g.Fabric, Tables: g.tables}
	if x.scheme == 1 {
		var err error
		if r, err = (updown.SPAM{}).Route(t.Context(), g.Fabric, lft.Options{VLs: 1}); err != nil {
			t.Fatal(err)
		}
		scheme = updown.SPAMTree{}
	}
	plan := short.Must(scheme.Build(t.Context(), r, groups, mft.Options{}))(t)
	return plan
}

// zooStarts sends the packets at their times.
type zooStarts struct {
	messages []Message
	got      int
	err      error
}

func (z *zooStarts) Deliver(*Sim, *Delivery) { z.got++ }
func (z *zooStarts) Wake(s *Sim, id int64)   { z.err = errors.Join(z.err, s.Send(z.messages[id])) }

// run says whether verify finds the trees safe, and whether the packets deadlock.
func (x *zooCase) run(t *testing.T) (safe, dead bool) {
	t.Helper()
	g := newGrid(t, x.m, x.n)
	plan := x.plan(t, g)
	ways := []Copying{x.cfg.Copying}
	if x.cfg.Copying == GreedyWormhole { // verify has no name for it
		ways = []Copying{Wormhole, LockStep}
	}
	safe = true
	for _, c := range ways {
		r := short.Must(verify.Check(t.Context(), &state.State{Fabric: g.Fabric, Tables: g.tables, Multicast: &mft.Plan{Tables: plan.Tables, Trees: plan.Trees}}, verify.Options{Copying: verify.Copying(c)}))(t)
		safe = safe && !hasLoops(r)
	}
	z := &zooStarts{}
	s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Multicast: plan}}, x.cfg, z)
	want := 0
	for i, p := range x.packets {
		tree := slices.IndexFunc(plan.Trees, func(tree mft.Tree) bool { return tree.Group == i })
		z.messages = append(z.messages, Message{Src: plan.Trees[tree].Senders[0], DLID: plan.Trees[tree].MLID, Bytes: 8})
		s.Wake(p.at, int64(i))
		want += len(p.to)
	}
	err := s.Run(t.Context(), Forever)
	if _, ok := errors.AsType[*DeadlockError](err); ok {
		return safe, true
	}
	if err != nil || z.err != nil || z.got != want {
		t.Fatalf("%s: %v, %v, %d deliveries of %d", x, err, z.err, z.got, want)
	}
	return safe, false
}

// minimize takes away packets, then destinations, and then waiting before the start, as long as
// a property stays.
func (x *zooCase) minimize(holds func(*zooCase) bool) *zooCase {
	try := func(change func(y *zooCase)) bool {
		y := *x
		y.packets = slices.Clone(x.packets)
		change(&y)
		if !holds(&y) {
			return false
		}
		x = &y
		return true
	}
	for i := 0; i < len(x.packets); {
		if len(x.packets) == 1 || !try(func(y *zooCase) { y.packets = slices.Delete(y.packets, i, i+1) }) {
			i++
		}
	}
	for i := range x.packets {
		for k := 0; k < len(x.packets[i].to); {
			if len(x.packets[i].to) == 1 || !try(func(y *zooCase) { y.packets[i].to = slices.Delete(slices.Clone(y.packets[i].to), k, k+1) }) {
				k++
			}
		}
	}
	for i := range x.packets {
		for at := Time(0); at < x.packets[i].at; at += Nanosecond {
			if try(func(y *zooCase) { y.packets[i].at = at }) {
				break
			}
		}
	}
	return x
}

// TestZoo has trees of several schemes on switches that copy in several ways: what verify finds
// safe never deadlocks in the simulator. Deadlocks are made as small as they get: they stay
// deadlocks that verify finds, and nothing can be taken from them.
func TestZoo(t *testing.T) {
	cases := short.Of(*zooCases, 60)
	safe, dead, small := 0, 0, map[string]string{}
	most := map[string]int{}
	for seed := range uint64(cases) {
		x := newZooCase(seed)
		if len(x.packets) == 0 {
			continue
		}
		isSafe, isDead := x.run(t)
		if isSafe {
			safe++
		}
		if !isDead {
			continue
		}
		dead++
		if isSafe {
			y := x.minimize(func(y *zooCase) bool { s, d := y.run(t); return s && d })
			t.Errorf("seed %d: verify finds this safe, and it deadlocks: %s", seed, y)
			continue
		}
		// The smallest for each way to copy.
		kind := fmt.Sprintf("%s, scheme %d", x.cfg.Copying, x.scheme)
		if n, ok := most[kind]; ok && n <= 3 {
			continue
		}
		y := x.minimize(func(y *zooCase) bool { _, d := y.run(t); return d })
		if s, d := y.run(t); s || !d {
			t.Errorf("seed %d: made smaller, it is safe %v and deadlocks %v: %s", seed, s, d, y)
		}
		if n, ok := most[kind]; !ok || len(y.packets) < n {
			most[kind], small[kind] = len(y.packets), y.String()
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(small)) {
		t.Logf("%s: %s", kind, small[kind])
		if most[kind] < 2 {
			t.Errorf("%s: one packet alone deadlocks: %s", kind, small[kind])
		}
	}
	t.Logf("%d cases, %d safe, %d deadlock", cases, safe, dead)
	if safe == 0 || dead == 0 {
		t.Errorf("%d cases, %d safe, %d deadlock: want some of each", cases, safe, dead)
	}
}
