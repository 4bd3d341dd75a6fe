package drift

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// grid is a 4x4 mesh with tables, and one group of all hosts on the MLIDs of the rows.
func grid(t testing.TB) *state.State {
	t.Helper()
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1}))(t)
	return compiled(t, f)
}

// compiled is up*/down* tables of a fabric and a tree of OpenSM's for a group of all its hosts.
func compiled(t testing.TB, f *fabric.Fabric) *state.State {
	t.Helper()
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	r := short.Must(updown.Engine{}.Route(context.Background(), f, lft.Options{}))(t)
	all := f.CAPorts()
	groups := []mft.Group{{Name: "all", MLID: 0xc001, Senders: all, Receivers: all}}
	p := short.Must((mft.OpenSM{}).Build(context.Background(), r, groups, mft.Options{}))(t)
	return &state.State{Fabric: f, Tables: r.Tables, Multicast: p, SL2VL: lft.NewSL2VL(f, lft.IdentityVLs(1))}
}

// again is the same fabric, read from its text.
func again(t testing.TB, f *fabric.Fabric, edit func(string) string) *fabric.Fabric {
	t.Helper()
	text := string(topology.Append(nil, f))
	if edit != nil {
		text = edit(text)
	}
	g, _ := short.Must2(topology.Parse("again", []byte(text), topology.Options{}))(t)
	return g
}

// masksOf is tables as a mask for each switch and MLID, and remade the way back.
func masksOf(m *mft.Tables) map[[2]int][]fabric.PortNum {
	f, out := m.Fabric(), map[[2]int][]fabric.PortNum{}
	for _, l := range m.MLIDs() {
		for _, p := range m.Ports(l) {
			key := [2]int{int(f.Owner(p)), int(l)}
			out[key] = append(out[key], f.Num(p))
		}
	}
	return out
}

func remade(f *fabric.Fabric, masks map[[2]int][]fabric.PortNum) *mft.Plan {
	by := map[fabric.LID][]fabric.PortID{}
	for key, ports := range masks {
		for _, n := range ports {
			l := fabric.LID(key[1])
			by[l] = append(by[l], f.Port(fabric.NodeID(key[0]), n))
		}
	}
	m := mft.NewTables(f)
	var mlids []fabric.LID
	for l := range by {
		mlids = append(mlids, l)
	}
	slices.Sort(mlids)
	for _, l := range mlids {
		slices.Sort(by[l])
		m.Add(l, by[l])
	}
	return &mft.Plan{Tables: m}
}

func compare(t rapid.TB, meant, live *state.State) *Report {
	t.Helper()
	r := short.Must(Compare(context.Background(), meant, live, 1<<20))(t)
	cpus := runtime.GOMAXPROCS(1)
	one, err := Compare(context.Background(), meant, live, 1<<20)
	runtime.GOMAXPROCS(cpus)
	short.Check(t, err)
	if d := cmp.Diff(one, r, cmp.AllowUnexported(verify.Finding{})); d != "" {
		t.Fatalf("one worker finds something else:\n%s", d)
	}
	return r
}

// Nothing has drifted when nothing has, on the same fabric and on one read again.
func TestEqual(t *testing.T) {
	fabrics := map[string]*fabric.Fabric{}
	for name, make := range map[string]func() (*fabric.Fabric, error){
		"fattree": func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3}) },
		"irregular": func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 8, Degree: 3, Hosts: 10, Seed: 3})
		},
	} {
		f := short.Must(make())(t)
		fabrics[name] = f
	}
	for name, f := range fabrics {
		meant := compiled(t, f)
		other := again(t, meant.Fabric, nil)
		for _, live := range []*state.State{
			{Fabric: meant.Fabric, Tables: meant.Tables, Multicast: meant.Multicast, SL2VL: meant.SL2VL},
			{Fabric: meant.Fabric, Tables: meant.Tables},
			{Fabric: meant.Fabric, Multicast: meant.Multicast},
			{Fabric: other, Tables: meant.Tables, Multicast: remade(other, masksOf(meant.Multicast.Tables)), SL2VL: lft.NewSL2VL(other, lft.IdentityVLs(1))},
		} {
			r := compare(t, meant, live)
			if !r.Equal() || len(r.Findings) > 0 || r.Drifted > 0 || len(r.PerSwitch) > 0 {
				t.Errorf("%s: %+v", name, r)
			}
			if live.Tables != nil && r.LFT.Compared == 0 || live.Multicast != nil && r.MFT.Compared == 0 {
				t.Errorf("%s: nothing was compared: %+v", name, r)
			}
		}
	}
}

// Whatever is changed at random in all tables is what Compare lists, and no more.
func TestRandom(t *testing.T) {
	meant := grid(t)
	f := meant.Fabric
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		live := &state.State{Fabric: f, Tables: meant.Tables.Clone(), SL2VL: meant.SL2VL.Clone()}
		masks := masksOf(meant.Multicast.Tables)
		wantLFT, wantMFT, wantMaps := map[string]bool{}, map[string]bool{}, 0
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			s := fabric.NodeID(rng.IntN(f.NumSwitches()))
			switch rng.IntN(3) {
			case 0:
				lid := 1 + rng.IntN(int(f.MaxLID()))
				port := fabric.PortNum(rng.IntN(6))
				if rng.IntN(3) == 0 {
					port = fabric.NoPath
				}
				live.Tables.Row(s)[lid] = port
				key := fmt.Sprintf("%d/%d", s, lid)
				if wantLFT[key] = port != meant.Tables.Row(s)[lid]; !wantLFT[key] {
					delete(wantLFT, key)
				}
			case 1:
				key := [2]int{int(s), 0xc001}
				n := fabric.PortNum(rng.IntN(6))
				was := masks[key]
				if i := slices.Index(was, n); i >= 0 {
					masks[key] = slices.Delete(slices.Clone(was), i, i+1)
				} else {
					masks[key] = append(slices.Clone(was), n)
				}
			case 2:
				out := f.Port(s, 5) // the host's
				if live.SL2VL.At(0, out)[3] == meant.SL2VL.At(0, out)[3] {
					m := *live.SL2VL.At(0, out)
					m[3] = 7
					live.SL2VL.Set(0, out, m)
					wantMaps++
				}
			}
		}
		live.Multicast = remade(f, masks)
		for s := range fabric.NodeID(f.NumSwitches()) {
			a, b := meant.Multicast.Tables.Mask(s, 0xc001), live.Multicast.Tables.Mask(s, 0xc001)
			if !slices.Equal(a, b) {
				wantMFT[fmt.Sprint(s)] = true
			}
		}
		r := compare(t, meant, live)
		gotLFT, gotMFT := map[string]bool{}, map[string]bool{}
		for _, p := range r.PerSwitch {
			s, _ := f.SwitchByGUID(p.Switch)
			for _, e := range p.Entries {
				gotLFT[fmt.Sprintf("%d/%d", s, e.LID)] = true
				if e.Meant != meant.Tables.Row(s)[e.LID] || e.Live != live.Tables.Row(s)[e.LID] {
					t.Errorf("switch %d: %+v", s, e)
				}
			}
			for _, m := range p.Masks {
				gotMFT[fmt.Sprint(s)] = true
				var ports []int
				for _, q := range meant.Multicast.Tables.Mask(s, m.MLID) {
					if !slices.Contains(m.Missing, int(f.Num(q))) {
						ports = append(ports, int(f.Num(q)))
					}
				}
				ports = append(ports, m.Extra...)
				slices.Sort(ports)
				var want []int
				for _, q := range live.Multicast.Tables.Mask(s, m.MLID) {
					want = append(want, int(f.Num(q)))
				}
				if !slices.Equal(ports, want) {
					t.Errorf("switch %d: %+v gives ports %v, live %v", s, m, ports, want)
				}
			}
		}
		if d := cmp.Diff(wantLFT, gotLFT); d != "" || r.LFT.Differ() != len(wantLFT) {
			t.Errorf("forwarding entries, %+v:\n%s", r.LFT, d)
		}
		if d := cmp.Diff(wantMFT, gotMFT); d != "" || r.MFT.Differ() != len(wantMFT) {
			t.Errorf("masks, %+v:\n%s", r.MFT, d)
		}
		if r.SL2VL.Changed != wantMaps || r.SL2VL.Missing+r.SL2VL.Extra != 0 {
			t.Errorf("maps: %+v, want %d changed", r.SL2VL, wantMaps)
		}
	})
}

// A mask that closes a cycle comes before everything else, with the cycle; also when
// the packets that loop are those of another MLID than any that was compiled.
func TestMulticastLoop(t *testing.T) {
	meant := grid(t)
	f := meant.Fabric
	// Switches 0 and 1 of the first row and the two above them, and all ports of
	// these to each other: two for each.
	square := []fabric.NodeID{0, 1, 4, 5}
	for _, mlid := range []fabric.LID{0xc001, 0xc123} {
		live := &state.State{Fabric: f, Tables: meant.Tables.Clone()}
		masks := masksOf(meant.Multicast.Tables)
		for _, s := range square {
			ports, to := f.SwitchLinks(s)
			key := [2]int{int(s), int(mlid)}
			masks[key] = append(masks[key], 5) // the host
			for i, p := range ports {
				if slices.Contains(square, to[i]) {
					masks[key] = append(masks[key], f.Num(p))
				}
			}
			slices.Sort(masks[key])
			masks[key] = slices.Compact(masks[key])
		}
		live.Tables.Row(7)[3] = fabric.NoPath // and something else
		live.Multicast = remade(f, masks)
		r := compare(t, meant, live)
		if r.Loops != 1 || len(r.Findings) < 2 || r.Findings[0].Rule != verify.MulticastLoop || r.Findings[0].LID != mlid || r.Equal() {
			t.Fatalf("MLID %#x: %d loops, %+v", uint16(mlid), r.Loops, r.Findings)
		}
		w := r.Findings[0].Witness
		short.MustEqual(t, len(w), 4, "the cycle is", w)
		for i, h := range w {
			s, _ := f.SwitchByGUID(h.Switch)
			next, _ := f.SwitchByGUID(w[(i+1)%len(w)].Switch)
			if f.Owner(f.Peer(f.Port(s, h.Port))) != next || !slices.Contains(live.Multicast.Tables.Mask(s, mlid), f.Port(s, h.Port)) {
				t.Errorf("the cycle is %+v", w)
			}
		}
		rules := map[string]int{}
		for _, x := range r.Findings {
			rules[x.Rule]++
		}
		if rules[Missing] != 1 || (rules[ForeignMLID] == 1) != (mlid != 0xc001) || (r.MFT.Differ() > 0) != (mlid == 0xc001) {
			t.Errorf("MLID %#x: %v, %+v", uint16(mlid), rules, r.MFT)
		}
	}
}

// A loop that no sender of the group gets into is found all the same: who is in a mask may
// send tomorrow.
func TestLoopOfNobody(t *testing.T) {
	meant := grid(t)
	f := meant.Fabric
	last := f.Peer(f.Port(15, 5))
	meant.Multicast.Trees = []mft.Tree{{Name: "all", MLID: 0xc001, Senders: []fabric.PortID{last}, Receivers: f.CAPorts()}}
	masks := map[[2]int][]fabric.PortNum{}
	square := []fabric.NodeID{0, 1, 4, 5}
	for _, s := range square {
		key := [2]int{int(s), 0xc001}
		masks[key] = []fabric.PortNum{5}
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			if slices.Contains(square, to[i]) {
				masks[key] = append(masks[key], f.Num(p))
			}
		}
	}
	r := compare(t, meant, &state.State{Fabric: f, Tables: meant.Tables, Multicast: remade(f, masks)})
	if r.Loops != 1 || r.Findings[0].Rule != verify.MulticastLoop || !strings.Contains(r.Findings[0].Message, `group "all"`) {
		t.Errorf("%d loops, %+v", r.Loops, r.Findings)
	}
	// The same in a fabric that was found again.
	other := again(t, f, nil)
	r = compare(t, meant, &state.State{Fabric: other, Tables: meant.Tables, Multicast: remade(other, masks)})
	if r.Loops != 1 || r.Findings[0].Rule != verify.MulticastLoop {
		t.Errorf("another fabric: %d loops, %+v", r.Loops, r.Findings)
	}
}

// Unicast packets that loop come next, with or without a multicast table.
func TestUnicastLoop(t *testing.T) {
	meant := grid(t)
	f := meant.Fabric
	live := &state.State{Fabric: f, Tables: meant.Tables.Clone()}
	ports, to := f.SwitchLinks(0)
	lid := f.LID(f.Peer(f.Port(15, 5)))
	live.Tables.Row(0)[lid] = f.Num(ports[0])
	live.Tables.Row(to[0])[lid] = f.Num(f.Peer(ports[0]))
	r := compare(t, meant, live)
	if r.Loops != 1 || r.Findings[0].Rule != verify.UnicastLoop || r.Findings[0].LID != lid || r.MFT != nil {
		t.Errorf("%d loops, %+v", r.Loops, r.Findings)
	}
}

// TestCablesInUse removes each cable from a fabric whose tables leave out one: it is an error just
// where the checker finds packets that are lost, and else a warning.
func TestCablesInUse(t *testing.T) {
	f := grid(t).Fabric
	var cables []fabric.PortID
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		for _, p := range ports {
			if p < f.Peer(p) {
				cables = append(cables, p)
			}
		}
	}
	for _, spare := range short.Part(4, cables) {
		meant := &state.State{Fabric: f, Tables: compiled(t, again(t, f.Without(spare), nil)).Tables}
		for _, gone := range cables {
			live := &state.State{Fabric: again(t, f.Without(gone), nil), Tables: meant.Tables}
			v := short.Must(verify.Check(t.Context(), &state.State{Fabric: live.Fabric, Tables: live.Tables}, verify.Options{}))(t)
			want := verify.Warning
			if v.Unicast.Unreachable+v.Management.Unreachable > 0 {
				want = verify.Error
			}
			if r := compare(t, meant, live); r.Worst() != want || gone == spare && want != verify.Warning {
				t.Errorf("without the cable of %s, which tables without that of %s use: worst is %v, want %v", f.PortName(gone), f.PortName(spare), r.Worst(), want)
			}
		}
	}
}

// TestHostsCables takes each host away with its cable, as a sweep then does not see it: the tables in force send
// packets there, so that it is an error with exit status 1.
func TestHostsCables(t *testing.T) {
	meant := grid(t)
	f := meant.Fabric
	for _, host := range short.Part(3, f.CAPorts()) {
		var rest []fabric.NodeID
		for n := range fabric.NodeID(f.NumNodes()) {
			if n != f.Owner(host) {
				rest = append(rest, n)
			}
		}
		part := short.Must(f.Part(rest))(t)
		live := &state.State{Fabric: again(t, part, nil)}
		live.Tables = lft.NewTables(f.NumSwitches(), meant.Tables.MaxLID())
		for s := range fabric.NodeID(f.NumSwitches()) {
			copy(live.Tables.Row(s), meant.Tables.Row(s))
		}
		only := &state.State{Fabric: f, Tables: meant.Tables}
		r := compare(t, only, live)
		if len(r.Findings) != 1 || r.Worst() != verify.Error || r.Findings[0].Rule != Cable || !slices.Equal(r.Findings[0].Ports, verify.EndpointsOf(f, f.Peer(host))) {
			t.Errorf("without %s: %+v", f.PortName(host), r.Findings)
		}
	}
}

// TestCauses takes away a cable, a host's cable, and a switch with all of its cables: each is one cause, which stands before what
// follows from it.
func TestCauses(t *testing.T) {
	meant := &state.State{Fabric: grid(t).Fabric, Tables: grid(t).Tables}
	f := meant.Fabric
	without := func(cut ...fabric.PortID) *fabric.Fabric { return again(t, f.Without(cut...), nil) }
	var ports []fabric.PortID
	for p := range f.Cabled(5) {
		ports = append(ports, p)
	}
	var rest []fabric.NodeID
	for n := range fabric.NodeID(f.NumNodes()) {
		if n != 5 {
			rest = append(rest, n)
		}
	}
	host := f.HostsOn(5)[0]
	for _, tt := range []struct {
		live  *fabric.Fabric
		cause string
	}{
		{without(ports[0]), fmt.Sprintf("the cable between %s and %s is gone, or leads elsewhere", f.PortName(ports[0]), f.PortName(f.Peer(ports[0])))},
		{without(host), fmt.Sprintf("the cable between %s and %s is gone, or leads elsewhere", f.PortName(f.Peer(host)), f.PortName(host))},
		{without(ports...), fmt.Sprintf("%d cables of %s are gone or lead elsewhere than when the tables were made", len(ports), f.Name(5))},
		{short.Must(f.Part(rest))(t), fmt.Sprintf("switch %q (%s) is not in the live fabric", f.Name(5).Text, f.Node(5).GUID)},
	} {
		tables := meant.Tables
		if n := tt.live.NumSwitches(); n < f.NumSwitches() {
			tables = lft.NewTables(n, meant.Tables.MaxLID())
			for s := range fabric.NodeID(n) {
				copy(tables.Row(s), meant.Tables.Row(s+min(1, s/5)))
			}
		}
		r := compare(t, meant, &state.State{Fabric: tt.live, Tables: tables})
		var b text.Sheet
		r.Print(&b, "tables", false, false)
		lines := strings.Split(b.String(), "\n")
		if len(lines) < 3 || lines[2] != "error: drift-cable: "+tt.cause || strings.Count(b.String(), "\nerror: ") != 1 {
			t.Errorf("want the one cause %s:\n%s", tt.cause, b.String())
		}
		for _, x := range r.Findings {
			if x.Rule == Cable && x.Cause != tt.cause {
				t.Errorf("%s: cause %q", x.Message, x.Cause)
			}
		}
	}
}

// TestCablesOfChoices removes each cable whose entries at one end may all use another port, too: where the live
// state does not tell choices, those that were meant stand, and no packet has to take the cable from that end.
func TestCablesOfChoices(t *testing.T) {
	meant := grid(t)
	meant.Multicast, meant.SL2VL = nil, nil
	f := meant.Fabric
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		for i, p := range ports {
			both := adaptive.Group{Number: 1, Subgroups: []adaptive.Subgroup{{}}}
			both.Subgroups[0].Ports.Add(f.Num(p))
			both.Subgroups[0].Ports.Add(f.Num(ports[(i+1)%len(ports)]))
			plft := adaptive.NewPLFT(meant.Tables)
			meant.Adaptive = &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches()), PLFTs: []*adaptive.PLFT{plft}}
			meant.Adaptive.Groups[s] = []adaptive.Group{both}
			for lid, out := range meant.Tables.Row(s) {
				if out == f.Num(p) {
					plft.Set(s, fabric.LID(lid), adaptive.Free, 0)
				}
			}
			live := &state.State{Fabric: again(t, f.Without(p), nil), Tables: meant.Tables}
			var idle, used []fabric.GUID
			for _, x := range compare(t, meant, live).Findings {
				switch {
				case x.Rule == Cable && x.Severity == verify.Error:
					used = append(used, x.Switch)
				case x.Rule == Cable:
					idle = append(idle, x.Switch)
				}
			}
			here, there := f.Node(s).GUID, f.Node(f.Owner(f.Peer(p))).GUID
			if !slices.Equal(idle, []fabric.GUID{here}) || !slices.Equal(used, []fabric.GUID{there}) {
				t.Errorf("without the cable of %s: idle at %v, in use at %v", f.PortName(p), idle, used)
			}
		}
	}
}

// A live fabric tells LIDs and cables too, and switches that did not answer.
func TestLive(t *testing.T) {
	meant := grid(t)
	host := meant.Fabric.CAPorts()[0]
	lid := meant.Fabric.LID(host)
	sameLFT := func(f *fabric.Fabric) *state.State { return &state.State{Fabric: f, Tables: meant.Tables} }
	rules := func(r *Report) map[string]int {
		m := map[string]int{}
		for _, x := range r.Findings {
			m[x.Rule]++
		}
		return m
	}

	moved := again(t, meant.Fabric, nil)
	base, lmc := make([]fabric.LID, moved.NumPorts()), make([]uint8, moved.NumPorts())
	for p := range base {
		base[p] = moved.LID(fabric.PortID(p))
	}
	base[host] = 99
	moved = short.Must(moved.WithLIDs(base, lmc))(t)
	r := compare(t, meant, sameLFT(moved))
	if got := rules(r); got[LID] != 1 || !strings.Contains(r.Findings[0].Message, fmt.Sprintf("LID 99, LMC 0, and was meant to have LID %d", lid)) || r.Drifted != 0 {
		t.Errorf("another LID: %v, %+v", got, r.Findings)
	}

	ports, _ := meant.Fabric.SwitchLinks(5)
	r = compare(t, meant, sameLFT(again(t, meant.Fabric.Without(ports[0]), nil)))
	if got := rules(r); got[Cable] != 2 || r.Findings[len(r.Findings)-1].Count != 1 {
		t.Errorf("a cable less: %v, %+v", got, r.Findings)
	}

	unread := sameLFT(again(t, meant.Fabric, nil))
	unread.Unread = make([]bool, 16)
	unread.Unread[3] = true
	unread.Tables = meant.Tables.Clone()
	for i := range unread.Tables.Row(3) {
		unread.Tables.Row(3)[i] = fabric.NoPath
	}
	r = compare(t, meant, unread)
	if got := rules(r); got[Unread] != 1 || got[Missing] != 0 || r.Unread != 1 || r.LFT.Missing != 0 {
		t.Errorf("unread: %v, %+v", got, r.LFT)
	}
	unread.Unread = nil
	r = compare(t, meant, unread)
	if got := rules(r); got[Unread] != 1 || got[Missing] != 0 || r.Unread != 1 || r.LFT.Missing != 32 || !r.PerSwitch[0].Empty {
		t.Errorf("empty: %v, %+v", got, r.LFT)
	}

	gone := again(t, meant.Fabric, func(s string) string { // another switch in its place
		return strings.ReplaceAll(s, "200006", "200ff6")
	})
	n, _ := gone.SwitchByGUID(0x200ff6)
	tables := lft.NewTables(16, meant.Fabric.MaxLID())
	for s := range fabric.NodeID(16) {
		from, ok := meant.Fabric.SwitchByGUID(gone.Node(s).GUID)
		if s == n {
			from, ok = 6, true
		}
		if !ok {
			t.Fatal("no such switch")
		}
		copy(tables.Row(s), meant.Tables.Row(from))
	}
	r = compare(t, meant, &state.State{Fabric: gone, Tables: tables})
	if got := rules(r); got[Unread] != 1 || got[Cable] < 3 || r.LFT.Differ() != 0 {
		t.Errorf("replaced: %v, %+v", got, r.Findings)
	}
}

// A credit loop that drift made is found, and one that was meant is no drift.
func TestCreditLoop(t *testing.T) {
	meant := grid(t)
	r := short.Must(lft.Minhop{}.Route(context.Background(), meant.Fabric, lft.Options{}))(t)
	loops := func(a, b *state.State) (n int) {
		for _, x := range compare(t, a, b).Findings {
			if x.Rule == verify.CreditLoop {
				n++
			}
		}
		return n
	}
	minhop := &state.State{Fabric: meant.Fabric, Tables: r.Tables}
	if n := loops(&state.State{Fabric: meant.Fabric, Tables: meant.Tables}, minhop); n == 0 {
		t.Error("minhop's credit loop was not found")
	}
	short.Equal(t, loops(minhop, minhop), 0, "credit loops where nothing has drifted")
	// Only hosts have an SL that is not dropped.
	f := meant.Fabric
	m := lft.ConstantVL(lft.DropVL)
	m[0] = 0
	dropping := lft.NewSL2VL(f, m)
	sls := lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
	for s := range fabric.NodeID(f.NumSwitches()) {
		sls.SetRow(slices.Repeat([]fabric.SL{1}, int(f.MaxLID())+1), s)
	}
	sls.SetPorts(make([]fabric.SL, int(f.MaxLID())+1), f.CAPorts()...)
	if n := loops(&state.State{Fabric: f, Tables: meant.Tables, SL2VL: dropping, PathSLs: sls}, &state.State{Fabric: f, Tables: r.Tables, SL2VL: dropping}); n == 0 {
		t.Error("the credit loop of hosts with path SLs of their own was not found")
	}
}

// States that do not belong together are refused.
func TestErrors(t *testing.T) {
	meant := grid(t)
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))(t)
	other := compiled(t, f)
	for _, live := range []*state.State{
		{Fabric: meant.Fabric, Tables: lft.NewTables(3, 10)},
		{Fabric: meant.Fabric, Multicast: other.Multicast},
		{Fabric: meant.Fabric, SL2VL: other.SL2VL},
		{Fabric: meant.Fabric, Unread: make([]bool, 2)},
	} {
		if r, err := Compare(context.Background(), meant, live, DefaultSamples); err == nil || r != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Compare(ctx, meant, meant, DefaultSamples); err == nil {
		t.Error("a cancelled comparison has no error")
	}
}

// TestLostEntryOfSecondPLFT takes an entry with one port from private LFT 1: no linear table has it.
func TestLostEntryOfSecondPLFT(t *testing.T) {
	meant, live := grid(t), grid(t)
	for _, s := range []*state.State{meant, live} {
		s.Adaptive = &adaptive.Tables{Groups: make([][]adaptive.Group, s.Fabric.NumSwitches())}
		for range 2 {
			ports := lft.NewTables(s.Fabric.NumSwitches(), s.Fabric.MaxLID())
			for n := range fabric.NodeID(s.Fabric.NumSwitches()) {
				copy(ports.Row(n), s.Tables.Row(n))
			}
			s.Adaptive.PLFTs = append(s.Adaptive.PLFTs, adaptive.NewPLFT(ports))
		}
	}
	live.Adaptive.PLFTs[1].Ports.Row(3)[5] = fabric.NoPath
	r := short.Must(Compare(t.Context(), meant, live, DefaultSamples))(t)
	entries := int64(meant.Fabric.NumSwitches()) * int64(meant.Fabric.MaxLID())
	if r.Choices == nil || int64(r.Choices.Compared) != entries || r.Choices.Changed != 1 {
		t.Errorf("%+v, want 1 of %d entries", r.Choices, entries)
	}
}
