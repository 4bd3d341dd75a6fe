package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
)

// far is the distance of switches, by Floyd and Warshall.
func far(f *fabric.Fabric) [][]int {
	n := f.NumSwitches()
	d := make([][]int, n)
	for s := range d {
		d[s] = slices.Repeat([]int{1 << 20}, n)
		d[s][s] = 0
		_, to := f.SwitchLinks(fabric.NodeID(s))
		for _, o := range to {
			if o != fabric.NodeID(s) {
				d[s][o] = 1
			}
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				d[i][j] = min(d[i][j], d[i][k]+d[k][j])
			}
		}
	}
	return d
}

// idleReasons is why channels are idle, by the definitions.
func idleReasons(f *fabric.Fabric, channels, idle []fabric.PortID, usable map[fabric.PortID]bool, lids, hosts []int) (list []IdleChannel) {
	ends := func(p fabric.PortID) [2]fabric.NodeID { return [2]fabric.NodeID{f.Owner(p), f.Owner(f.Peer(p))} }
	spare := func(s fabric.NodeID) bool {
		for _, p := range channels {
			if (ends(p)[0] == s || ends(p)[1] == s) && (usable[p] || !slices.Contains(idle, p)) {
				return false
			}
		}
		return hosts[s] == 0
	}
	for _, p := range idle {
		faster, parallel, known := false, 0, map[int]int{}
		for _, q := range channels {
			if rate := f.Link(q).Mbps(); rate > 0 {
				known[rate]++
			}
		}
		rate := func(q fabric.PortID) int {
			best := f.Link(q).Mbps()
			for x, n := range known {
				if f.Link(q).Mbps() == 0 && (n > known[best] || n == known[best] && x > best) {
					best = x
				}
			}
			return best
		}
		for _, q := range channels {
			faster = faster || ends(q)[0] == ends(p)[0] && rate(q) > rate(p)
			if ends(q) == ends(p) {
				parallel++
			}
		}
		to := ends(p)[1]
		reason := IdleUnused
		if spare(ends(p)[0]) || spare(to) {
			reason = IdleNoHosts
		} else if !usable[p] {
			reason = IdleNotShortest
		} else if faster {
			reason = IdleSlow
		} else if lids[to] > 0 && lids[to] < parallel {
			reason = IdleFewLIDs
		}
		list = append(list, IdleChannel{EndpointOf(f, p), reason})
	}
	return list
}

// balance is what the slow checker says of loads: everything but the routes by the
// definitions, pair of switches by pair of switches.
func (s *slow) balance(t testing.TB, r *Result) (b BalanceCounts) {
	t.Helper()
	f := s.f
	hosts, lids := make([]int, f.NumSwitches()), make([]int, f.NumSwitches())
	for i, p := range f.CAPorts() {
		if at := f.CASwitches()[i]; at != fabric.NoNode && f.Kind(f.Owner(p)) != fabric.AggregationKind {
			hosts[at]++
			if f.LID(p) != 0 {
				lids[at] += 1 << f.LMC(p)
			}
		}
	}
	var channels []fabric.PortID
	fastest := fabric.Link{}
	rates := map[int]int{}
	for n := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(n)
		channels = append(channels, ports...)
	}
	hop := func(p fabric.PortID) Hop {
		n := f.Owner(p)
		return Hop{Switch: f.Node(n).GUID, Name: f.Name(n), Port: f.Num(p)}
	}
	var idle []fabric.PortID
	for _, p := range channels {
		b.MeanRoutes += float64(s.routes[p]) / float64(len(channels))
		if s.routes[p] > b.MaxRoutes {
			at := hop(p)
			b.MaxRoutes, b.MaxLink = s.routes[p], &at
		}
		if s.routes[p] == 0 {
			idle = append(idle, p)
		}
		if link := f.Link(p); link.Mbps() > 0 {
			rates[link.Mbps()]++
			if link.Mbps() > fastest.Mbps() {
				fastest = link
			}
		}
	}
	if b.MaxRoutes == 0 {
		idle = nil
	} else if len(rates) > 1 {
		b.MaxRelative = &RelativeLoad{Fastest: fastest.String()}
		commonest := 0
		for rate, n := range rates {
			if n > rates[commonest] || n == rates[commonest] && rate > commonest {
				commonest = rate
			}
		}
		for _, p := range channels {
			rate, name := f.Link(p).Mbps(), f.Link(p).String()
			if rate == 0 {
				rate, name = commonest, UnknownRate
			}
			if load := float64(s.routes[p]) * float64(fastest.Mbps()) / float64(rate); load > b.MaxRelative.Load {
				*b.MaxRelative = RelativeLoad{load, s.routes[p], hop(p), name, fastest.String()}
			}
		}
	}
	b.IdleLinks = len(idle)

	// By channel and destination: is it on a shortest path from another switch?
	d := far(f)
	takes := func(p fabric.PortID, to int) bool {
		x, y := f.Owner(p), f.Owner(f.Peer(p))
		for from := range hosts {
			if from != to && hosts[from] > 0 && lids[to] > 0 && d[from][to] < 1<<20 && d[from][x]+1+d[y][to] == d[from][to] {
				return true
			}
		}
		return false
	}
	usable := map[fabric.PortID]bool{}
	beyond, into := make([]map[int]bool, len(hosts)), make([]map[int]bool, len(hosts))
	for i := range beyond {
		beyond[i], into[i] = map[int]bool{}, map[int]bool{}
	}
	out, in := make([]int, len(hosts)), make([]int, len(hosts))
	for _, p := range channels {
		x, y := f.Owner(p), f.Owner(f.Peer(p))
		for to := range lids {
			if takes(p, to) {
				usable[p], beyond[x][to], into[y][to] = true, true, true
			}
		}
		if usable[p] {
			out[x]++
			in[y]++
		}
	}
	if r.Unicast.Unreachable+r.Unicast.Loops == 0 {
		b.Idle = idleReasons(f, channels, idle, usable, lids, hosts)
	}
	sum := func(set map[int]bool) (n float64) {
		for to := range set {
			n += float64(lids[to])
		}
		return n
	}
	could, used, lost := 0.0, 0, int64(0)
	for _, p := range channels {
		if !usable[p] {
			continue
		}
		x, y := f.Owner(p), f.Owner(f.Peer(p))
		could += min(1, sum(beyond[x])/float64(out[x]), sum(into[y])/float64(in[y]))
		if slices.Contains(idle, p) {
			lost++
		} else {
			used++
		}
	}
	if s.unreachable+s.loops > 0 {
		lost = 0
	}
	want := Note
	if 5*len(idle) > 2*len(channels) && 5*float64(used) < 3*could-1e-6 {
		want = Warning
	}
	i := slices.IndexFunc(r.Findings, func(x Finding) bool { return x.Rule == IdleLinks })
	switch {
	case i >= 0 && lost == 0, i < 0 && lost > 0:
		t.Errorf("%d idle channels, finding %d", lost, i)
	case i >= 0:
		x := &r.Findings[i]
		if x.Count != lost || x.Severity != want && math.Abs(5*float64(used)-3*could) > 1e-6 || len(x.Ports) == 0 {
			t.Errorf("%d idle channels, %s, %d used of %.2f: %+v", lost, want, used, could, x)
		}
		for _, e := range x.Ports {
			n, _ := f.NodeByGUID(e.Node)
			if p := f.Port(n, e.Port); !usable[p] || s.routes[p] != 0 {
				t.Errorf("%v is not idle: %+v", e, x)
			}
		}
	}
	return b
}

// rated is f with random rates of cables, some unknown, and few hosts.
func rated(t *testing.T, f *fabric.Fabric, rng *rand.Rand) *fabric.Fabric {
	t.Helper()
	links := []fabric.Link{{}, {Width: 4, Speed: fabric.DDR}, {Width: 4, Speed: fabric.HDR}, {Width: 1, Speed: fabric.NDR}, {Width: 4, Speed: fabric.NDR}}
	keep := 1 + rng.IntN(4)
	var b fabric.Builder
	index := make([]int, f.NumNodes())
	for n := range fabric.NodeID(f.NumNodes()) {
		index[n] = -1
		if f.IsSwitch(n) || rng.IntN(4) < keep {
			i := short.Must(b.AddNode(*f.Node(n)))(t)
			index[n] = i
		}
	}
	for p := range fabric.PortID(f.NumPorts()) {
		q := f.Peer(p)
		if q < p || index[f.Owner(p)] < 0 || index[f.Owner(q)] < 0 {
			continue
		}
		short.Check(t, b.Connect(index[f.Owner(p)], f.Num(p), index[f.Owner(q)], f.Num(q), links[rng.IntN(len(links))]))
	}
	g, err := b.Build()
	return number(t, g, err)
}

// Loads, idle channels and what could be used, on small fabrics with few hosts and many
// rates, against the definitions; the tables are shortest paths by the lowest port, which
// leave much idle.
func TestBalance(t *testing.T) {
	seen := map[Severity]int{}
	relative := 0
	part := short.Of(1, 3)
	for seed := range uint64(60 / part) {
		rng := rand.New(rand.NewPCG(seed, 9))
		var whole *fabric.Fabric
		var err error
		switch seed % 4 {
		case 0:
			whole, err = gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2})
		case 1:
			whole, err = gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})
		case 2:
			whole, err = gen.Irregular(gen.IrregularSpec{Switches: 10, Degree: 3, Hosts: 12, Seed: seed})
		case 3:
			whole, err = gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2, HostsPerLeaf: 2})
		}
		short.Check(t, err)
		f := rated(t, whole, rng)
		d := far(f)
		tables := lft.NewTables(f.NumSwitches(), f.MaxLID())
		f.EndPorts(func(end fabric.PortID) {
			to := f.Owner(end)
			if !f.IsSwitch(to) {
				to = f.Owner(f.Peer(end))
			}
			for s := range fabric.NodeID(f.NumSwitches()) {
				row := tables.Row(s)
				if s == to {
					row[f.LID(end)] = 0
					if !f.IsSwitch(f.Owner(end)) {
						row[f.LID(end)] = f.Num(f.Peer(end))
					}
					continue
				}
				ports, next := f.SwitchLinks(s)
				var ways []fabric.PortNum
				for i, p := range ports {
					if d[next[i]][to] == d[s][to]-1 {
						ways = append(ways, f.Num(p))
					}
				}
				if len(ways) > 0 {
					row[f.LID(end)] = ways[rng.IntN(1+int(seed)%3)%len(ways)]
				}
			}
		})
		r, _ := compare(t, f, tables)
		for i := range r.Findings {
			if r.Findings[i].Rule == IdleLinks {
				seen[r.Findings[i].Severity]++
			}
		}
		if r.Balance.MaxRelative != nil {
			relative++
		}
	}
	if part*seen[Note] < 5 || part*seen[Warning] < 5 || part*relative < 50 {
		t.Errorf("that tests too little: %v, %d with rates", seen, relative)
	}
}

// What a finding of idle channels says: a whole tree by one of its spines, and a cable
// that no shortest path needs.
func TestIdleLinks(t *testing.T) {
	tree := &wiring{}
	var spines, leaves []int
	for range 3 {
		spines = append(spines, tree.node(fabric.Switch, 10))
	}
	for range 4 {
		leaf := tree.node(fabric.Switch, 10)
		leaves = append(leaves, leaf)
		for range 4 {
			tree.cable(leaf, tree.node(fabric.CA, 1))
		}
		for _, s := range spines {
			tree.cable(leaf, s)
		}
	}
	tree.cable(spines[0], spines[1])
	f := number(t, tree.fabric(t), nil)
	// by way of spine k for each leaf that sends
	route := func(spine func(leaf, lid int) int) *lft.Tables {
		tables := lft.NewTables(f.NumSwitches(), f.MaxLID())
		switchAt := func(i int) fabric.NodeID {
			s, _ := f.NodeByGUID(0x5000 + 0x100*fabric.GUID(i))
			return s
		}
		port := func(a, b fabric.NodeID) fabric.PortNum {
			ports, to := f.SwitchLinks(a)
			return f.Num(ports[slices.Index(to, b)])
		}
		for i, p := range f.CAPorts() {
			at, lid := f.CASwitches()[i], f.LID(p)
			for _, s := range spines {
				tables.Row(switchAt(s))[lid] = port(switchAt(s), at)
			}
			for l, leaf := range leaves {
				s := switchAt(leaf)
				tables.Row(s)[lid] = port(s, switchAt(spines[spine(l, int(lid))]))
				if s == at {
					tables.Row(s)[lid] = f.Num(f.Peer(p))
				}
			}
		}
		return tables
	}
	for _, tc := range []struct {
		name  string
		spine func(leaf, lid int) int
		idle  int
		want  string
	}{
		{"spread", func(leaf, lid int) int { return lid % 3 }, 2, ""},
		{"by one spine", func(leaf, lid int) int { return 0 }, 18, `warning: 16 of 26 channels between switches carry no route though shortest paths could take them, both directions of 8 cables among them, and everything to and from "switch 1", "switch 2"; the tables use 8 channels and could use about 24`},
		{"a leaf avoids a spine", func(leaf, lid int) int {
			if leaf == 1 {
				return lid % 2
			}
			return lid % 3
		}, 3, `note: 1 of 26 channels between switches carry no route though shortest paths could take them: "switch 8"[7] to "switch 2"[2]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := mustCheck(t, &state.State{Fabric: f, Tables: route(tc.spine)}, Options{})
			short.Equal(t, r.Balance.IdleLinks, tc.idle, "idle links")
			var said []string
			for _, x := range r.Findings {
				if x.Rule == IdleLinks {
					said = append(said, fmt.Sprintf("%s: %s", x.Severity, x.Message))
				}
			}
			short.Equal(t, strings.Join(said, "\n"), tc.want)
		})
	}
}

// Two leaves below two spines, of which the order has one at the bottom: no path by its legal ports
// takes the cables of that spine.
func TestIdleNotLegal(t *testing.T) {
	var b fabric.Builder
	fail := func(err error) {
		short.Check(t, err)
	}
	for i := range 4 { // 0 and 1 are leaves
		_, err := b.AddNode(fabric.Node{Type: fabric.Switch, GUID: fabric.GUID(1 + i), NumPorts: 4})
		fail(err)
	}
	for leaf := range 2 {
		h, err := b.AddNode(fabric.Node{Type: fabric.CA, GUID: fabric.GUID(0x10 + leaf), NumPorts: 1})
		fail(err)
		fail(b.SetPort(h, 1, fabric.GUID(0x10+leaf), fabric.LID(1+leaf), 0))
		fail(b.Connect(h, 1, leaf, 1, fabric.Link{}))
		for spine := 2; spine < 4; spine++ {
			fail(b.Connect(leaf, fabric.PortNum(spine), spine, fabric.PortNum(1+leaf), fabric.Link{}))
		}
	}
	f, err := b.Build()
	fail(err)
	tables := lft.NewTables(4, 2)
	for leaf := range fabric.NodeID(2) {
		tables.Row(leaf)[1+leaf], tables.Row(leaf)[2-leaf] = 1, 2
		tables.Row(2)[1+leaf], tables.Row(3)[1+leaf] = fabric.PortNum(1+leaf), fabric.PortNum(1+leaf)
	}
	order := []int32{1, 2, 0, 3}
	detour := tables.Clone()
	detour.Row(3)[1] = 2 // by the other leaf, which is farther
	for _, test := range []struct {
		tables *lft.Tables
		order  []int32
		want   string
	}{
		{tables, nil, IdleUnused},
		{tables, []int32{1, 2, 0}, IdleUnused},
		{tables, order, IdleNotLegal},
		{detour, order, IdleUnused},
		{tables, []int32{2, 3, 0, 1}, IdleUnused}, // both spines on top
	} {
		r, err := Check(t.Context(), &state.State{Fabric: f, Tables: test.tables, Order: test.order}, Options{})
		fail(err)
		for _, x := range r.Balance.Idle {
			short.Equal(t, x.Reason, test.want, "order", test.order, x)
		}
		short.Equal(t, len(r.Balance.Idle), 4, "order", test.order, "idle channels")
	}
}
