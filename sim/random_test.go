package sim

import (
	"errors"
	"flag"
	"fmt"
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

var trials = flag.Int("trials", 300, "how many random fabrics and routings verify and the simulator are compared on")

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

// hasLoops says whether CAs' packets can wait for each other in a cycle.
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
