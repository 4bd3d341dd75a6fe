package verify

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
)

// channel is a VL of the cable that leaves a port.
type channel struct {
	port fabric.PortID
	vl   fabric.VL
}

func (c channel) compare(d channel) int {
	return cmp.Or(cmp.Compare(c.port, d.port), cmp.Compare(c.vl, d.vl))
}

// slow is a checker that is too plain to be wrong: it walks every pair, port
// by port, with every SL, and keeps dependencies in a map.
type slow struct {
	f   *fabric.Fabric
	t   *lft.Tables
	s   *lft.SL2VL   // nil for one VL
	sls *lft.PathSLs // nil for any SL

	pairs, unreachable, misdelivered, loops, nonMinimal int64
	maxDetour                                           int
	discarded, mgmtDiscarded                            int64 // of the unreachable: for VL 15
	mgmtPairs, mgmtUnreachable, mgmtLoops               int64
	apart, mgmtApart                                    int64 // of the unreachable: no cables join them
	hist                                                map[int]int64
	routes                                              map[fabric.PortID]int64 // unicast pairs on a cable
	unicast, all                                        dependencies
	usedUnicast, used                                   map[channel]bool
}

// dependencies has for each channel the channels waited for, and a LID of a
// packet that waits.
type dependencies map[channel]map[channel]map[fabric.LID]bool

func (d dependencies) add(path []channel, lid fabric.LID) {
	for i := 1; i < len(path); i++ {
		if d[path[i-1]] == nil {
			d[path[i-1]] = map[channel]map[fabric.LID]bool{}
		}
		if d[path[i-1]][path[i]] == nil {
			d[path[i-1]][path[i]] = map[fabric.LID]bool{}
		}
		d[path[i-1]][path[i]][lid] = true
	}
}

type outcome int

const (
	delivered outcome = iota
	dropped
	astray // handed to a CA that is not the LID's
	circling
)

// walk follows a packet from an end port to a LID: the channels it takes, and
// the number of switches it passes.
func (s *slow) walk(from fabric.PortID, lid fabric.LID) (path []fabric.PortID, hops int, end outcome) {
	f := s.f
	owner := f.LIDPort(lid)
	at := f.Owner(from) // the switch that has the packet
	if !f.IsSwitch(at) {
		path = append(path, from)
		peer := f.Peer(from)
		if peer == owner {
			return path, 0, delivered
		}
		if at = f.Owner(peer); !f.IsSwitch(at) {
			return path, 0, dropped
		}
	}
	for hops = 1; hops <= f.NumSwitches(); hops++ {
		row := s.t.Row(at)
		if int(lid) >= len(row) || row[lid] > f.Node(at).NumPorts {
			return path, hops, dropped
		}
		out := f.Port(at, row[lid])
		if row[lid] == 0 {
			if out == owner {
				return path, hops, delivered
			}
			return path, hops, dropped
		}
		peer := f.Peer(out)
		if peer == fabric.NoPort {
			return path, hops, dropped
		}
		path = append(path, out)
		if at = f.Owner(peer); !f.IsSwitch(at) {
			if peer == owner {
				return path, hops, delivered
			}
			return path, hops, astray
		}
	}
	return path, hops, circling
}

// joined returns true if cables join two end ports, through switches.
func (s *slow) joined(from, to fabric.PortID) bool {
	f := s.f
	at := f.Owner(from)
	if !f.IsSwitch(at) {
		if f.Peer(from) == to {
			return true
		}
		if at = f.Owner(f.Peer(from)); !f.IsSwitch(at) {
			return false
		}
	}
	seen := map[fabric.NodeID]bool{at: true}
	for queue := []fabric.NodeID{at}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if n == f.Owner(to) {
			return true
		}
		for p := fabric.PortNum(1); p <= f.Node(n).NumPorts; p++ {
			peer := f.Peer(f.Port(n, p))
			if peer == to {
				return true
			}
			if peer != fabric.NoPort && f.IsSwitch(f.Owner(peer)) && !seen[f.Owner(peer)] {
				seen[f.Owner(peer)] = true
				queue = append(queue, f.Owner(peer))
			}
		}
	}
	return false
}

// distance is the least number of switches between an end port and another.
func (s *slow) distance(from, to fabric.PortID) int {
	f := s.f
	if f.Peer(from) == to {
		return 0
	}
	start, goal := f.Owner(f.Peer(from)), f.Owner(f.Peer(to))
	if !f.IsSwitch(start) || !f.IsSwitch(goal) {
		return -1
	}
	dist := map[fabric.NodeID]int{start: 1}
	for queue := []fabric.NodeID{start}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for p := fabric.PortNum(1); p <= f.Node(n).NumPorts; p++ {
			peer := f.Peer(f.Port(n, p))
			if peer == fabric.NoPort || !f.IsSwitch(f.Owner(peer)) || dist[f.Owner(peer)] != 0 {
				continue
			}
			dist[f.Owner(peer)] = dist[n] + 1
			queue = append(queue, f.Owner(peer))
		}
	}
	return dist[goal]
}

func newSlow(f *fabric.Fabric, t *lft.Tables, sl2vl *lft.SL2VL, sls *lft.PathSLs) *slow {
	s := &slow{
		f: f, t: t, s: sl2vl, sls: sls, hist: map[int]int64{}, routes: map[fabric.PortID]int64{},
		unicast: dependencies{}, all: dependencies{}, usedUnicast: map[channel]bool{}, used: map[channel]bool{},
	}
	var ends []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { ends = append(ends, p) })
	for _, from := range ends {
		for _, to := range ends {
			if from == to || f.LID(to) == 0 {
				continue
			}
			for k := range 1 << f.LMC(to) {
				s.pair(from, to, f.LID(to)+fabric.LID(k))
			}
		}
	}
	return s
}

// vls gives the ports of a path their VLs for an SL; ok is false when one of
// them drops it.
func (s *slow) vls(path []fabric.PortID, sl fabric.SL) (on []channel, ok bool) {
	in := fabric.ManagementPort
	for _, out := range path {
		c := channel{port: out}
		if s.s != nil {
			c.vl = s.s.At(in, out)[sl]
		}
		if c.vl == lft.DropVL {
			return nil, false
		}
		on = append(on, c)
		in = s.f.Num(s.f.Peer(out))
	}
	return on, true
}

// sends lists the SLs of packets from a port to a LID that take a path, which
// is empty from a switch to itself.
func (s *slow) sends(from fabric.PortID, lid fabric.LID, path []fabric.PortID) (list []fabric.SL) {
	if s.s == nil {
		return []fabric.SL{0}
	}
	at := s.f.Owner(from)
	if !s.f.IsSwitch(at) {
		at = s.f.Owner(s.f.Peer(from))
	}
	if s.sls != nil && s.f.IsSwitch(at) {
		if row := s.sls.PortRow(from); row != nil {
			return row[lid : lid+1]
		}
		return []fabric.SL{s.sls.Row(at)[lid]}
	}
	for sl := range fabric.SL(lft.NumSLs) {
		if s.s.At(0, path[0])[sl] != lft.DropVL {
			list = append(list, sl)
		}
	}
	return list
}

func (s *slow) pair(from, to fabric.PortID, lid fabric.LID) {
	path, hops, end := s.walk(from, lid)
	management := s.f.IsSwitch(s.f.Owner(from)) || s.f.IsSwitch(s.f.Owner(to))
	lost := false
	if end == delivered {
		sls := s.sends(from, lid, path)
		lost = len(sls) == 0
		for _, sl := range sls {
			on, ok := s.vls(path, sl)
			lost = lost || !ok
			s.all.add(on, lid)
			if !management {
				s.unicast.add(on, lid)
			}
			for _, c := range on {
				s.used[c] = true
				if !management {
					s.usedUnicast[c] = true
				}
			}
		}
	}
	switch {
	case management:
		s.mgmtPairs++
		if (end == dropped || end == astray) && !s.joined(from, to) {
			s.mgmtApart++
		}
		switch {
		case lost:
			s.mgmtDiscarded++
			s.mgmtUnreachable++
		case end == dropped, end == astray:
			s.mgmtUnreachable++
		case end == circling:
			s.mgmtLoops++
		}
		return
	case lost:
		s.discarded++
		s.unreachable++
	case end == delivered:
		s.hist[hops]++
		if s.f.Kind(s.f.Owner(from)) == fabric.AggregationKind || s.f.Kind(s.f.Owner(to)) == fabric.AggregationKind {
			break
		}
		if extra := hops - s.distance(from, to); extra > 0 {
			s.nonMinimal++
			s.maxDetour = max(s.maxDetour, extra)
		}
		for _, p := range path {
			s.routes[p]++
		}
	case end == astray:
		s.misdelivered++
		s.unreachable++
	case end == dropped:
		s.unreachable++
		if !s.joined(from, to) {
			s.apart++
		}
	case end == circling:
		s.loops++
	}
	s.pairs++
}

// reach is the set of channels that a chain of one or more dependencies leads
// to from a channel.
func (d dependencies) reach(from channel) map[channel]bool {
	seen := map[channel]bool{}
	var visit func(channel)
	visit = func(p channel) {
		for q := range d[p] {
			if !seen[q] {
				seen[q] = true
				visit(q)
			}
		}
	}
	visit(from)
	return seen
}

// components lists the sets of channels that all lead to each other, lowest
// channel first, each with the length of its shortest cycle.
func (d dependencies) components() (sets [][]channel, shortest []int) {
	reach := map[channel]map[channel]bool{}
	for p := range d {
		reach[p] = d.reach(p)
	}
	done := map[channel]bool{}
	for _, p := range slices.SortedFunc(maps.Keys(d), channel.compare) {
		if done[p] || !reach[p][p] {
			continue
		}
		var set []channel
		best := -1
		for _, q := range slices.SortedFunc(maps.Keys(d), channel.compare) {
			if reach[p][q] && reach[q][p] {
				set = append(set, q)
				done[q] = true
				if n := d.cycle(q); best < 0 || n < best {
					best = n
				}
			}
		}
		sets = append(sets, set)
		shortest = append(shortest, best)
	}
	return sets, shortest
}

// cycle is the length of the shortest cycle through a channel that is on one.
func (d dependencies) cycle(start channel) int {
	dist := map[channel]int{}
	for queue := []channel{start}; len(queue) > 0; queue = queue[1:] {
		for q := range d[queue[0]] {
			if q == start {
				return dist[queue[0]] + 1
			}
			if _, seen := dist[q]; !seen {
				dist[q] = dist[queue[0]] + 1
				queue = append(queue, q)
			}
		}
	}
	return -1
}

// fromSwitches counts the dependencies between channels that leave switches,
// and the channels of switches that unicast packets take.
func (s *slow) fromSwitches() (channels, deps int) {
	for c := range s.usedUnicast {
		if s.f.IsSwitch(s.f.Owner(c.port)) {
			channels++
		}
	}
	for c, next := range s.unicast {
		if s.f.IsSwitch(s.f.Owner(c.port)) {
			deps += len(next)
		}
	}
	return channels, deps
}

// lanes counts the VLs that packets are on, at least 1, except for cables between
// two CAs.
func (s *slow) lanes() int {
	vls := map[fabric.VL]bool{}
	for c := range s.used {
		if s.f.IsSwitch(s.f.Owner(c.port)) || s.f.IsSwitch(s.f.Owner(s.f.Peer(c.port))) {
			vls[c.vl] = true
		}
	}
	return max(1, len(vls))
}

// randomGraph has any dependencies between the channels of a random fabric,
// but those that would have a packet turn round: whatever makes a shortest
// cycle of one or two channels.
func randomGraph(t testing.TB, r *rand.Rand, f *fabric.Fabric, vls, percent int) *dependencyGraph {
	t.Helper()
	c := newChannels(f, []fabric.VL{0, 1, 2, 3}[:vls]...)
	g := newGraph(c)
	for a := range int32(c.count()) {
		u := c.head(a)
		if u < 0 || u == c.tail(a) {
			continue
		}
		for b := c.base(u); b < c.base(u+1)-int32(vls); b++ {
			if c.cabled(b) && c.head(b) != c.tail(a) && c.head(b) != u && r.IntN(100) < percent {
				i := b - c.base(u)
				g.Row(a)[i>>6] |= 1 << (i & 63)
			}
		}
	}
	return g
}

// named is the same graph as the slow checker has it, a channel being named
// by its number.
func (g *dependencyGraph) named() dependencies {
	d := dependencies{}
	for a := range int32(g.count()) {
		for b := range int32(g.count()) {
			if g.has(a, b) {
				d.add([]channel{{port: fabric.PortID(a)}, {port: fabric.PortID(b)}}, 1)
			}
		}
	}
	return d
}

// TestGraph compares orders, levels, components and shortest cycles of random
// graphs, on several VLs too, with plain searches.
func TestGraph(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	cyclic, acyclic := 0, 0
	part := short.Of(1, 14)
	for i := range 400 / part {
		g := randomGraph(t, r, randomFabric(t, r), 1+i%4, 1+r.IntN(30))
		d := g.named()
		sets, shortest := d.components()
		order, ok := g.order()
		if ok != (len(sets) == 0) {
			t.Fatalf("order %t with %d cyclic components", ok, len(sets))
		}
		if ok {
			acyclic++
			at := make([]int, g.count())
			for i, ch := range order {
				at[ch] = i
			}
			level := graph.Levels(g.count(), order, g.Next())
			for x, next := range d {
				for y := range next {
					if a, b := x.port, y.port; at[a] >= at[b] || level[a] >= level[b] {
						t.Fatalf("%d depends on %d: places %d, %d; levels %d, %d", a, b, at[a], at[b], level[a], level[b])
					}
				}
			}
			continue
		}
		cyclic++
		components := g.components()
		short.MustEqual(t, len(components), len(sets), "components")
		for i, set := range sets {
			members := components[i]
			if !slices.EqualFunc(members, set, func(a int32, b channel) bool { return a == int32(b.port) }) {
				t.Fatalf("component %v, want %v", members, set)
			}
			for _, budget := range []int{0, 20, cycleBudget} {
				cycle, exact := g.shortestCycle(members, minCycle, budget)
				for k, ch := range cycle {
					if !g.has(ch, cycle[(k+1)%len(cycle)]) {
						t.Fatalf("%v is no cycle", cycle)
					}
				}
				if slices.Min(cycle) != cycle[0] {
					t.Errorf("%v does not start at its lowest channel", cycle)
				}
				if exact && len(cycle) != shortest[i] || len(cycle) < shortest[i] {
					t.Errorf("cycle of %d channels (exact %t), the shortest has %d", len(cycle), exact, shortest[i])
				}
				if !exact && budget == cycleBudget {
					t.Error("the budget is not enough for a small graph")
				}
			}
		}
	}
	if part*cyclic < 50 || part*acyclic < 50 {
		t.Errorf("%d cyclic, %d acyclic", cyclic, acyclic)
	}
}

// What is not known can be anything: a rule that has no findings and is decided has none
// whatever SLs the unknown paths get, and what is found is there with all of them.
func TestUnknownPathSLs(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	decided, undecided, found := 0, 0, 0
	for trial := range 200 {
		f, tables := sparseRing(t, r)
		if r.IntN(2) == 0 {
			f = randomFabric(t, r)
			tables = shortestTables(f, r)
		}
		s, sls := someLanes(f, r)
		if sls == nil || f.MaxLID() == 0 {
			continue
		}
		// Rows are shared with what is completed below.
		rate := 1 + r.IntN(20)
		blank := func(row []fabric.SL) []fabric.SL {
			row = slices.Clone(row)
			for lid := range row {
				if r.IntN(20) < rate {
					row[lid] = lft.UnknownSL
				}
			}
			return row
		}
		partly := lft.NewPathSLs(f.NumSwitches(), sls.MaxLID())
		for n := range fabric.NodeID(f.NumSwitches()) {
			partly.SetRow(blank(sls.Row(n)), n)
		}
		for _, port := range sls.Ports() {
			partly.SetPorts(blank(sls.PortRow(port)), port)
		}
		in := &state.State{Fabric: f, Tables: tables, SL2VL: s, PathSLs: partly}
		got := mustCheck(t, in, Options{Workers: 1})
		open := func(rule string) bool {
			return slices.ContainsFunc(got.Undecided, func(u Undecided) bool { return u.Rule == rule })
		}
		for range 4 {
			in.PathSLs = lft.NewPathSLs(f.NumSwitches(), sls.MaxLID())
			fill := func(row []fabric.SL) []fabric.SL {
				row = slices.Clone(row)
				any := fabric.SL(r.IntN(lft.NumSLs))
				for lid := range row {
					if row[lid] == lft.UnknownSL {
						if row[lid] = any; r.IntN(2) == 0 {
							row[lid] = fabric.SL(r.IntN(lft.NumSLs))
						}
					}
				}
				return row
			}
			for n := range fabric.NodeID(f.NumSwitches()) {
				in.PathSLs.SetRow(fill(partly.Given(n)), n)
			}
			for _, port := range partly.Ports() {
				in.PathSLs.SetPorts(fill(partly.PortRow(port)), port)
			}
			full := mustCheck(t, in, Options{Workers: 1})
			for _, rule := range []string{SLDropped, CreditLoop, ManagementSLDropped} {
				switch is := countFindings(full.Findings, rule); {
				case is > 0 && countFindings(got.Findings, rule) == 0 && !open(rule):
					t.Fatalf("trial %d: %s is decided and not found, and there is one with some SLs", trial, rule)
				case countFindings(got.Findings, rule) > is:
					t.Fatalf("trial %d: %s is found %d times, and with some SLs %d", trial, rule, countFindings(got.Findings, rule), is)
				}
			}
		}
		switch {
		case len(got.Undecided) > 0:
			undecided++
		case got.Worst() >= Error:
			found++
		default:
			decided++
		}
	}
	if decided < 10 || undecided < 10 || found < 10 {
		t.Errorf("%d decided, %d undecided, %d found: the trials do not cover everything", decided, undecided, found)
	}
}
