package mft_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
)

// comb is masks on a grid by the closed form of the comb: columns to row trunk
// and out of it again, for members and any sender.
func (g *grid) comb(members [][2]int, trunk int) []fabric.PortID {
	var ports []fabric.PortID
	for x := range g.m {
		for y := range g.n {
			var east, north, west, south, host, below, above bool
			for _, m := range members {
				same := m[0] == x
				east = east || y == trunk && m[0] > x
				west = west || y == trunk && m[0] < x
				north = north || y >= trunk && same && m[1] > y
				south = south || y <= trunk && same && m[1] < y
				host = host || same && m[1] == y
				below = below || !(same && m[1] >= y)
				above = above || !(same && m[1] <= y)
			}
			south = south || y > trunk && below
			north = north || y < trunk && above
			for i, in := range []bool{east, north, west, south, host} {
				if in {
					ports = append(ports, g.r.Fabric.Port(g.at(x, y), fabric.PortNum(i+1)))
				}
			}
		}
	}
	slices.Sort(ports)
	return ports
}

func (g *grid) hostsAt(members [][2]int) []fabric.PortID {
	var list []fabric.PortID
	for _, m := range members {
		list = append(list, g.host(m[0], m[1]))
	}
	slices.Sort(list)
	return list
}

// planOf is a plan of one MLID.
func planOf(f *fabric.Fabric, ports, senders, receivers []fabric.PortID) *mft.Plan {
	t := mft.NewTables(f)
	t.Add(0xC001, ports)
	return &mft.Plan{Tables: t, Trees: []mft.Tree{{Name: "g", MLID: 0xC001, Senders: senders, Receivers: receivers}}}
}

// mix is ports of old where chosen is false for the switch, and of new
// elsewhere.
func mix(f *fabric.Fabric, old, new []fabric.PortID, chosen func(fabric.NodeID) bool) []fabric.PortID {
	var list []fabric.PortID
	for _, p := range old {
		if !chosen(f.Owner(p)) {
			list = append(list, p)
		}
	}
	for _, p := range new {
		if chosen(f.Owner(p)) {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// worst is what the flooding checker finds that a packet suffers: it loops, else
// it misses a receiver, else it comes twice.
func (fl *flood) worst(sender fabric.PortID, receivers []fabric.PortID) string {
	if fl.loop {
		return "loop"
	}
	for _, d := range receivers {
		if d != sender && fl.copies[d] == 0 {
			return "lose"
		}
	}
	if fl.copies[sender] > 0 {
		return "duplicate"
	}
	for _, n := range fl.copies {
		if n > 1 {
			return "duplicate"
		}
	}
	return "ok"
}

// state is what masks do to the packets of all senders: the first of loop,
// duplicate, lose and ok that one of them suffers, by the flooding checker and
// by PlanUpdate's own.
func state(t *testing.T, f *fabric.Fabric, ports, senders, receivers []fabric.PortID) string {
	t.Helper()
	found := map[string]bool{}
	for _, s := range senders {
		v := newFlood(f, ports, s).worst(s, receivers)
		if w := mft.Verdict(f, ports, s, receivers); w != v {
			t.Fatalf("flooding says %s, Verdict %s", v, w)
		}
		found[v] = true
	}
	for _, v := range []string{"loop", "duplicate", "lose"} {
		if found[v] {
			return v
		}
	}
	return "ok"
}

func all3x3() [][2]int {
	var list [][2]int
	for x := range 3 {
		for y := range 3 {
			list = append(list, [2]int{x, y})
		}
	}
	return list
}

// TestTrunkMoved is G-X14: all 3x3 hosts are members, and the trunk of their
// comb moves from row 0 to row 2; each of the nine switches has its old or its
// new mask.
func TestTrunkMoved(t *testing.T) {
	g := newGrid(t, 3, 3)
	f, hosts := g.r.Fabric, g.hostsAt(all3x3())
	old, new := g.comb(all3x3(), 0), g.comb(all3x3(), 2)
	got := map[string]int{}
	for set := range 512 {
		got[state(t, f, mix(f, old, new, func(s fabric.NodeID) bool { return set>>s&1 != 0 }), hosts, hosts)]++
	}
	if want := map[string]int{"loop": 312, "duplicate": 8, "lose": 176, "ok": 16}; !maps.Equal(got, want) {
		t.Errorf("moved in place: %v, want %v", got, want)
	}
	clear(got)
	for set := range 512 {
		chosen := func(s fabric.NodeID) bool { return set>>s&1 != 0 }
		got[state(t, f, mix(f, old, nil, chosen), hosts, hosts)]++
		got[state(t, f, mix(f, nil, new, chosen), hosts, hosts)]++
	}
	if got["loop"]+got["duplicate"] > 0 || got["ok"] == 0 {
		t.Errorf("cleared, then filled: %v", got)
	}

	before, after := planOf(f, old, hosts, hosts), planOf(f, new, hosts, hosts)
	u := mustPlan(t, before, after)
	floodStages(t, before, after, u)
	// Row 0 loses its links first, then row 2 gets its own. Who has the trunk in between
	// on the way to whom loses packets: only the columns stay.
	if len(u.Stages) != 2 || writes(u) != 6 || len(u.Interrupted) != 1 || u.Interrupted[0].Pairs != 54 || len(u.Interrupted[0].Receivers) != 9 {
		t.Error(show(f, u))
	}
}

// TestJoinedOneTree is G-X14: a host joins a group of one or two on the comb
// with the middle trunk of 3x3. Of the states that are neither the old nor the
// new one, all 1,568 keep the old members supplied exactly once; so do those of
// groups and trunks of all kinds, and of leaving, which is the same states.
func TestJoinedOneTree(t *testing.T) {
	g := newGrid(t, 3, 3)
	f := g.r.Fabric
	between := map[int]int{} // by trunk, groups of one or two
	for _, trunk := range short.Of([]int{0, 1, 2}, []int{1}) {
		for group := 1; group < 512; group++ {
			var members [][2]int
			for i, m := range all3x3() {
				if group>>i&1 != 0 {
					members = append(members, m)
				}
			}
			old, stay := g.comb(members, trunk), g.hostsAt(members)
			for i, m := range all3x3() {
				if group>>i&1 != 0 {
					continue
				}
				with := append(slices.Clone(members), m)
				new, all := g.comb(with, trunk), g.hostsAt(with)
				var changed []fabric.NodeID
				for s := range fabric.NodeID(9) {
					if !slices.Equal(mix(f, old, nil, func(x fabric.NodeID) bool { return x != s }), mix(f, new, nil, func(x fabric.NodeID) bool { return x != s })) {
						changed = append(changed, s)
					}
				}
				if len(members) <= 2 {
					for set := range 1 << len(changed) {
						ports := mix(f, old, new, func(s fabric.NodeID) bool {
							k := slices.Index(changed, s)
							return k >= 0 && set>>k&1 != 0
						})
						for _, s := range all {
							fl := newFlood(f, ports, s)
							if fl.loop || fl.copies[g.host(m[0], m[1])] > 1 {
								t.Fatalf("trunk %d, %v joined by %v: from %s: %+v", trunk, members, m, f.PortName(s), fl)
							}
							for _, d := range stay {
								if d != s && fl.copies[d] != 1 {
									t.Fatalf("trunk %d, %v joined by %v: %d copies from %s to %s", trunk, members, m, fl.copies[d], f.PortName(s), f.PortName(d))
								}
							}
						}
						if set != 0 && set != 1<<len(changed)-1 {
							between[trunk]++
						}
					}
				}
				a, b := planOf(f, old, stay, stay), planOf(f, new, all, all)
				for _, u := range []*mft.Update{mustPlan(t, a, b), mustPlan(t, b, a)} {
					if len(u.Stages) != 1 || writes(u) != len(changed) || len(u.Interrupted)+len(u.Stop)+len(u.Start) > 0 {
						t.Fatal(show(f, u))
					}
				}
			}
		}
	}
	if between[1] != 1568 {
		t.Errorf("%v states, want 1568 with the middle trunk", between)
	}
}

// mustPlan plans an update and has it proven.
func mustPlan(t testing.TB, old, new *mft.Plan) *mft.Update {
	t.Helper()
	u := short.Must(mft.PlanUpdate(t.Context(), old, new))(t)
	if err := mft.CheckUpdate(t.Context(), old, new, u); err != nil {
		t.Fatalf("%v\n%s", err, show(new.Tables.Fabric(), u))
	}
	return u
}

// floodStages floods from every sender in every state of every stage.
func floodStages(t interface {
	Helper()
	Fatalf(string, ...any)
}, old, new *mft.Plan, u *mft.Update) {
	t.Helper()
	lost, err := tryStages(old, new, u)
	if want := interrupted(u); err == nil && lost != want {
		err = fmt.Errorf("%d pairs lose packets, not %d", lost, want)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, show(new.Tables.Fabric(), u))
	}
}

// show prints who loses packets, and the writes by stage.
func show(f *fabric.Fabric, u *mft.Update) string {
	var b strings.Builder
	for _, x := range u.Interrupted {
		fmt.Fprintf(&b, "MLID %#x: stages %d to %d, %d pairs, faulty %t: %s\n", uint16(x.MLID), x.From, x.To, x.Pairs, x.Faulty, x.Reason)
	}
	for i, stage := range u.Stages {
		for _, w := range stage {
			fmt.Fprintf(&b, "stage %d: MLID %#x, %s, position %d:", i+1, uint16(w.MLID), f.Name(w.Switch), w.Position)
			for _, p := range w.Ports {
				fmt.Fprintf(&b, " %d", f.Num(p))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func writes(u *mft.Update) int { return len(slices.Concat(u.Stages...)) }

// interrupted is the pairs that lose packets as the update says.
func interrupted(u *mft.Update) int {
	n := 0
	for _, x := range u.Interrupted {
		n += x.Pairs
	}
	return n
}

// tryStages is CheckUpdate the obvious way: it makes each subset of the writes
// of a stage to an MLID, or 300 of more than 4,096, and floods. A packet that
// comes back to its sender is a duplicate. It counts the (sender, receiver) pairs
// that lose packets where Update.Interrupted says so.
func tryStages(old, new *mft.Plan, u *mft.Update) (all int, _ error) {
	f := old.Tables.Fabric()
	rnd := rand.New(rand.NewPCG(1, 2))
	var mlids []fabric.LID
	mlids = append(mlids, old.Tables.MLIDs()...)
	mlids = append(mlids, new.Tables.MLIDs()...)
	slices.Sort(mlids)
	for _, m := range slices.Compact(mlids) {
		oldPorts, newPorts := old.Tables.Ports(m), new.Tables.Ports(m)
		masks := map[fabric.PortID]bool{}
		for _, p := range oldPorts {
			masks[p] = true
		}
		type pair struct{ from, to fabric.PortID }
		keep := map[pair]bool{}
		var senders []fabric.PortID
		for _, to := range treesOf(new, m) {
			senders = append(senders, to.Senders...)
		}
		for _, from := range treesOf(old, m) {
			senders = append(senders, from.Senders...)
			for _, to := range treesOf(new, m) {
				if from.MGID != to.MGID && from.MGID.IsValid() && to.MGID.IsValid() {
					continue
				}
				for _, s := range from.Senders {
					if !slices.Contains(to.Senders, s) {
						continue
					}
					a, b := newFlood(f, oldPorts, s), newFlood(f, newPorts, s)
					for _, d := range from.Receivers {
						if d != s && slices.Contains(to.Receivers, d) && a.copies[d] > 0 && b.copies[d] > 0 {
							keep[pair{s, d}] = true
						}
					}
				}
			}
		}
		slices.Sort(senders)
		senders = slices.DeleteFunc(slices.Compact(senders), func(p fabric.PortID) bool {
			s := mft.MLIDSender{MLID: m, Port: p}
			return slices.Contains(u.Stop, s) || slices.Contains(u.Start, s)
		})
		lost := map[pair]bool{}
		var excused mft.Interruption
		for _, x := range u.Interrupted {
			if x.MLID == m {
				excused = x
			}
		}
		for i, stage := range u.Stages {
			var writes []mft.Write
			for _, w := range stage {
				if w.MLID == m {
					writes = append(writes, w)
				}
			}
			states := 1 << min(len(writes), 12)
			if len(writes) > 12 {
				states = 300
			}
			for n := range states {
				now := maps.Clone(masks)
				for k := range writes {
					if n != states-1 && (len(writes) <= 12 && n>>k&1 == 0 || len(writes) > 12 && rnd.IntN(2) == 0) {
						continue
					}
					do(f, now, &writes[k])
				}
				ports := slices.Sorted(maps.Keys(now))
				for _, s := range senders {
					fl := newFlood(f, ports, s)
					if excused.Faulty && i+1 <= excused.From {
						continue
					}
					if fl.loop || fl.verdict(s, nil) == "duplicate" || fl.copies[s] > 0 {
						return 0, fmt.Errorf("MLID %#x, stage %d, from %s: %s, %v", m, i+1, f.PortName(s), fl.worst(s, nil), fl.copies)
					}
					for x := range keep {
						if d := x.to; x.from == s && fl.copies[d] == 0 {
							lost[x] = true
							if i+1 < excused.From || i+1 > excused.To || !excused.Faulty && !slices.Contains(excused.Receivers, d) {
								return 0, fmt.Errorf("MLID %#x, stage %d: %s misses packets of %s", m, i+1, f.PortName(d), f.PortName(s))
							}
						}
					}
				}
			}
			for k := range writes {
				do(f, masks, &writes[k])
			}
		}
		if !excused.Faulty {
			all += len(lost)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(masks)), newPorts) {
			return 0, fmt.Errorf("MLID %#x ends with other masks", m)
		}
	}
	return all, nil
}

// do is a write.
func do(f *fabric.Fabric, masks map[fabric.PortID]bool, w *mft.Write) {
	for n := int(w.Position) * 16; n < int(w.Position)*16+16 && n <= int(f.Node(w.Switch).NumPorts); n++ {
		delete(masks, f.Port(w.Switch, fabric.PortNum(n)))
	}
	for _, p := range w.Ports {
		masks[p] = true
	}
}

// treesOf is the trees of an MLID, or else one of all end ports in its masks.
func treesOf(p *mft.Plan, m fabric.LID) []mft.Tree {
	var trees []mft.Tree
	for _, x := range p.Trees {
		if x.MLID == m {
			trees = append(trees, x)
		}
	}
	if len(trees) > 0 {
		return trees
	}
	f := p.Tables.Fabric()
	var list []fabric.PortID
	for _, q := range p.Tables.Ports(m) {
		if f.Num(q) == 0 {
			list = append(list, q)
		} else if q = f.Peer(q); !f.IsSwitch(f.Owner(q)) {
			list = append(list, q)
		}
	}
	slices.Sort(list)
	return []mft.Tree{{Senders: list, Receivers: list}}
}

// drawFabric is a few switches of 40 ports, three positions, in any of which a
// cable may be; some cables are parallel.
func drawFabric(t *rapid.T) *fabric.Fabric {
	n := rapid.IntRange(2, 7).Draw(t, "switches")
	extra := rapid.IntRange(0, n+1).Draw(t, "extra cables")
	hosts := rapid.IntRange(2, 8).Draw(t, "hosts")
	seed := rapid.Uint64().Draw(t, "wiring")
	rnd := rand.New(rand.NewPCG(seed, 0))
	p := short.Must(gen.NewPlan(n, hosts))(t)
	free := make([][]int, n)
	for i := range n {
		p.Switch(40, fmt.Sprintf("S%d", i))
		for _, k := range rnd.Perm(40) {
			free[i] = append(free[i], k+1)
		}
	}
	port := func(i int) int {
		k := free[i][0]
		free[i] = free[i][1:]
		return k
	}
	for i := 1; i < n; i++ {
		k := rnd.IntN(i)
		p.Cable(i, port(i), k, port(k))
	}
	for range extra {
		if i, k := rnd.IntN(n), rnd.IntN(n); i != k {
			p.Cable(i, port(i), k, port(k))
		}
	}
	for i := range hosts {
		h, s := p.CA(1, fmt.Sprintf("H%d", i)), rnd.IntN(n)
		p.Cable(h, 1, s, port(s))
	}
	return short.Must(p.Fabric())(t)
}

// drawMasks is random masks that are exact for the senders: of a tree that
// suits all of them, or of one that grew from the only sender and need not be
// passable backwards.
func drawMasks(t *rapid.T, f *fabric.Fabric, senders, receivers []fabric.PortID) []fabric.PortID {
	rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "tree"), 0))
	root := f.Owner(entry(f, senders[0]))
	up := map[fabric.NodeID]fabric.PortID{} // the port of the parent that leads there
	seen := []fabric.NodeID{root}
	for len(seen) < f.NumSwitches() {
		s := seen[rnd.IntN(len(seen))]
		ports, to := f.SwitchLinks(s)
		if k := rnd.IntN(len(ports) + 1); k < len(ports) && !slices.Contains(seen, to[k]) {
			seen = append(seen, to[k])
			up[to[k]] = ports[k]
		}
	}
	in := map[fabric.PortID]bool{}
	for _, s := range senders {
		for _, d := range receivers {
			if s == d {
				continue
			}
			a, b := entry(f, s), entry(f, d)
			in[b] = true
			// Down from the root to b, and up from a, without what they share.
			down, climb := map[fabric.PortID]bool{}, map[fabric.PortID]bool{}
			for x := f.Owner(b); x != root; x = f.Owner(up[x]) {
				down[up[x]] = true
			}
			for x := f.Owner(a); x != root; x = f.Owner(up[x]) {
				if down[up[x]] {
					delete(down, up[x])
				} else {
					climb[f.Peer(up[x])] = true
				}
			}
			maps.Copy(in, down)
			maps.Copy(in, climb)
		}
	}
	return slices.Sorted(maps.Keys(in))
}

func entry(f *fabric.Fabric, p fabric.PortID) fabric.PortID {
	if f.IsSwitch(f.Owner(p)) {
		return p
	}
	return f.Peer(p)
}

// drawMembers is some hosts and ports 0 of switches.
func drawMembers(t *rapid.T, f *fabric.Fabric, least, most int, name string) []fabric.PortID {
	var all []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { all = append(all, p) })
	list := rapid.SliceOfNDistinct(rapid.SampledFrom(all), least, min(most, len(all)), rapid.ID).Draw(t, name)
	slices.Sort(list)
	return list
}

// drawChange is an MLID before and after, of any kind. Some plans have no trees,
// like those of dumps; some masks are faulty, or do not suit all senders.
func drawChange(t *rapid.T) (old, new *mft.Plan) {
	f := drawFabric(t)
	senders := drawMembers(t, f, 1, rapid.SampledFrom([]int{1, 1, 3}).Draw(t, "most senders"), "senders")
	receivers := drawMembers(t, f, 1, 6, "receivers")
	after := [2][]fabric.PortID{senders, receivers}
	if rapid.IntRange(0, 3).Draw(t, "other senders") == 0 {
		after[0] = drawMembers(t, f, 1, 3, "new senders")
	}
	if rapid.Bool().Draw(t, "other receivers") {
		after[1] = drawMembers(t, f, 1, 6, "new receivers")
	}
	draw := func(senders, receivers []fabric.PortID) *mft.Plan {
		ports := drawMasks(t, f, senders, receivers)
		if rapid.IntRange(0, 7).Draw(t, "faulty") == 0 {
			ports = append(ports, drawMasks(t, f, drawMembers(t, f, 1, 3, "others"), receivers)...)
			slices.Sort(ports)
			ports = slices.Compact(ports)
		}
		return planOf(f, ports, senders, receivers)
	}
	old, new = draw(senders, receivers), draw(after[0], after[1])
	switch rapid.IntRange(0, 15).Draw(t, "groups") {
	case 0, 1:
		old.Trees, new.Trees = nil, nil
	case 2, 3: // some members are of another group that has the MLID too
		share(old, "ff12:1b3e::1", "ff12:1b3e::2")
		share(new, "ff12:1b3e::2", "ff12:1b3e::1")
	case 4:
		share(old, "ff12:1b3e::1", "ff12:1b3e::2")
		share(new, "ff12:1b3e::1", "ff12:1b3e::3")
	}
	return old, new
}

// share makes two groups of the members of one.
func share(p *mft.Plan, a, b string) {
	x, y := p.Trees[0], p.Trees[0]
	x.MGID, y.MGID = netip.MustParseAddr(a), netip.MustParseAddr(b)
	y.Senders = y.Senders[len(y.Senders)/2:]
	x.Receivers = x.Receivers[:(len(x.Receivers)+1)/2]
	p.Trees = []mft.Tree{x, y}
}

// TestUpdates floods in every state of random updates, and in those of orders
// that are not as planned: whatever flooding finds CheckUpdate must find.
func TestUpdates(t *testing.T) {
	kinds := map[string]int{}
	update := func(t *rapid.T) {
		old, new := drawChange(t)
		u, err := mft.PlanUpdate(t.Context(), old, new)
		if err != nil && strings.Contains(err.Error(), ": the new masks: ") {
			f, ports := new.Tables.Fabric(), new.Tables.Ports(0xC001)
			if u != nil || !slices.ContainsFunc(treesOf(new, 0xC001), func(x mft.Tree) bool {
				return slices.ContainsFunc(x.Senders, func(s fabric.PortID) bool {
					fl := newFlood(f, ports, s)
					return fl.loop || fl.verdict(s, nil) == "duplicate"
				})
			}) {
				t.Fatalf("%v, and flooding finds none", err)
			}
			kinds["new masks refused"]++
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		short.Check(t, mft.CheckUpdate(t.Context(), old, new, u))
		floodStages(t, old, new, u)
		for _, x := range u.Interrupted {
			if (x.Pairs == 0) != x.Faulty || (len(x.Receivers) == 0) != x.Faulty {
				t.Fatalf("%+v", x)
			}
		}
		kind := fmt.Sprintf("%d stages", len(u.Stages))
		switch {
		case len(u.Interrupted) > 0 && u.Interrupted[0].Faulty:
			kind += ", faulty"
		case len(u.Interrupted) > 0:
			kind += ", interrupted"
		}
		if len(u.Stop) > 0 {
			kinds["senders stop"]++
		}
		if len(u.Start) > 0 {
			kinds["senders start"]++
		}
		kinds[kind]++
		if len(u.Stages) < 2 {
			return
		}
		merged, reversed := *u, *u
		merged.Stages = [][]mft.Write{merge(u.Stages)}
		reversed.Stages = slices.Clone(u.Stages)
		slices.Reverse(reversed.Stages)
		for name, v := range map[string]*mft.Update{"merged": &merged, "reversed": &reversed} {
			_, slow := tryStages(old, new, v)
			fast := mft.CheckUpdate(t.Context(), old, new, v)
			if slow != nil && fast == nil {
				t.Fatalf("%s: %v\n%s", name, slow, show(new.Tables.Fabric(), v))
			}
			switch {
			case slow != nil:
				kinds[name+" is harmful"]++
			case fast != nil:
				kinds[name+" is refused without need"]++
			}
		}
	}
	for range 5 {
		rapid.Check(t, update)
	}
	t.Log(kinds)
	for _, kind := range []string{"1 stages", "2 stages, interrupted", "merged is harmful", "reversed is harmful"} {
		if kinds[kind] == 0 {
			t.Errorf("no update with %s: %v", kind, kinds)
		}
	}
	for _, kind := range []string{"merged", "reversed"} {
		if vain := kinds[kind+" is refused without need"]; vain > 5+kinds[kind+" is harmful"]/20 {
			t.Errorf("%d %s orders are refused without need: %v", vain, kind, kinds)
		}
	}
}

// merge is the last write to each cell.
func merge(stages [][]mft.Write) []mft.Write {
	type cell struct {
		s fabric.NodeID
		k uint8
	}
	last := map[cell]mft.Write{}
	for _, stage := range stages {
		for _, w := range stage {
			last[cell{w.Switch, w.Position}] = w
		}
	}
	return slices.Collect(maps.Values(last))
}
