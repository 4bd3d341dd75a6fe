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

// planOf is a plan of one MLID.
func planOf(f *fabric.Fabric, ports, senders, receivers []fabric.PortID) *mft.Plan {
	t := mft.NewTables(f)
	t.Add(0xC001, ports)
	return &mft.Plan{Tables: t, Trees: []mft.Tree{{Name: "g", MLID: 0xC001, Senders: senders, Receivers: receivers}}}
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
