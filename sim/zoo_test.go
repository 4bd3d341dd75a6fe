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
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

var zooCases = flag.Int("cases", 400, "how many sets of multicast packets verify and the simulator are compared on")

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
