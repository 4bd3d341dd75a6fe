package mft_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/updown"
)

func mustFit(t testing.TB, r *lft.Routing, groups []mft.Group, opt mft.Options, schemes ...mft.Scheme) *mft.Plan {
	t.Helper()
	return short.Must(mft.Fit(t.Context(), r, groups, opt, schemes...))(t)
}

// schemesOf is by group the scheme and the number of trees: "union 3".
func schemesOf(groups []mft.Group, p *mft.Plan) []string {
	list := make([]string, len(groups))
	for i := range groups {
		n, scheme := 0, "none"
		for k := range p.Trees {
			if p.Trees[k].Group == i {
				n++
				scheme = p.Trees[k].Scheme
			}
		}
		list[i] = fmt.Sprintf("%s %d", scheme, n)
	}
	return list
}

// TestStepDown: the groups that take the most MLIDs step down first, as far as
// they must.
func TestStepDown(t *testing.T) {
	g := newGrid(t, 4, 4)
	groups := []mft.Group{
		{Name: "one", Receivers: g.hosts(0xf0f0), Senders: g.hosts(1)},
		{Name: "all", Receivers: g.hosts(0xffff), Senders: g.hosts(0xffff)},
		{Name: "five", Receivers: g.hosts(0x1248), Senders: g.hosts(0x001f)},
		{Name: "five again", Receivers: g.hosts(0x1248), Senders: g.hosts(0x001f), MLID: 0xc010},
	}
	order := updown.NewOrder(g.r.Fabric, nil).Rank
	schemes := []mft.Scheme{mft.Union{}, mft.UnionRow{Class: g.rows}, mft.UpdnTree{Order: order}}
	for _, x := range []struct {
		capacity int
		want     []string
		notes    []string
	}{
		{28, []string{"union 1", "union 16", "union 5", "union 5"}, nil},
		// 0xc000 is reserved, and 0xc010 is the last group's own.
		{27, []string{"union 1", "union-row 4", "union 5", "union 5"}, []string{
			"1 of 4 groups steps down to union-row: with union the trees take more than 25 MLIDs, all that are free"}},
		{17, []string{"union 1", "union-row 4", "union 5", "union 5"}, []string{
			"1 of 4 groups steps down to union-row: with union the trees take more than 15 MLIDs, all that are free"}},
	} {
		p := mustFit(t, g.r, groups, mft.Options{Capacity: x.capacity}, schemes...)
		mustBeExact(t, groups, p)
		short.Diff(t, schemesOf(groups, p), x.want, "capacity", x.capacity)
		short.Diff(t, p.Notes, x.notes, "capacity", x.capacity)
	}
	groups[3].MLID = 0xc001
	for _, x := range []struct {
		capacity int
		want     []string
	}{
		{16, []string{"union 1", "union-row 4", "union 5", "union 5"}},
		{15, []string{"union 1", "union-row 4", "union 5", "union-row 4"}},
		{14, []string{"union 1", "union-row 4", "union-row 4", "union-row 4"}},
		{13, []string{"union 1", "union-row 4", "union-row 4", "updn-tree 1"}},
		{8, []string{"union 1", "union-row 4", "updn-tree 1", "updn-tree 1"}},
		{5, []string{"union 1", "updn-tree 1", "updn-tree 1", "updn-tree 1"}},
	} {
		p := mustFit(t, g.r, groups, mft.Options{Capacity: x.capacity}, schemes...)
		mustBeExact(t, groups, p)
		short.Diff(t, schemesOf(groups, p), x.want, "capacity", x.capacity)
		for i := range p.Trees {
			if l := int(p.Trees[i].MLID - mft.MinMLID); l >= x.capacity || p.Trees[i].Name == "five again" && l != 1 && p.Trees[i].MGID.As16()[15] == 0 {
				t.Errorf("capacity %d: %s has MLID %#x", x.capacity, p.Trees[i].Name, p.Trees[i].MLID)
			}
		}
	}
	var none *mft.BudgetError
	if p, err := mft.Fit(t.Context(), g.r, groups, mft.Options{Capacity: 10}, mft.Union{}); p != nil || !errors.As(err, &none) || none.MLIDs != 8 {
		t.Errorf("%v, %v", p, err)
	}
	if p, err := (mft.Union{}).Build(t.Context(), g.r, groups, mft.Options{Capacity: 10}); p != nil || !errors.As(err, &none) || none.MLIDs != 8 {
		t.Errorf("%v, %v", p, err)
	}
	short.Must((mft.Union{}).Build(t.Context(), g.r, groups, mft.Options{Capacity: 28}))(t) // just enough
	if p, err := mft.Fit(t.Context(), g.r, groups, mft.Options{}); p != nil || err == nil {
		t.Errorf("%v, %v", p, err)
	}
	if p, err := mft.Fit(t.Context(), g.r, []mft.Group{{Name: "g", MLID: 7}}, mft.Options{}, mft.Union{}); p != nil || err == nil {
		t.Errorf("%v, %v", p, err)
	}
}

// TestRefusedSteps: the first scheme's refusal is the answer; one further down
// is passed over.
func TestRefusedSteps(t *testing.T) {
	g := newGrid(t, 3, 3)
	groups := []mft.Group{{Name: "g", Receivers: g.hosts(0x1ff), Senders: g.hosts(0x1ff)}}
	order := updown.NewOrder(g.r.Fabric, nil).Rank
	var no *mft.RefusedError
	if p, err := mft.Fit(t.Context(), g.r, groups, mft.Options{}, refusing{}, mft.OpenSM{}); p != nil || !errors.As(err, &no) {
		t.Errorf("%v, %v", p, err)
	}
	p := mustFit(t, g.r, groups, mft.Options{Capacity: 3}, mft.Union{}, refusing{}, mft.UpdnTree{Order: order})
	mustBeExact(t, groups, p)
	if got := schemesOf(groups, p); got[0] != "updn-tree 1" || len(p.Notes) != 2 || !strings.Contains(p.Notes[1], "no group suits it") {
		t.Errorf("%v, %q", got, p.Notes)
	}
	if p, err := mft.Fit(t.Context(), g.r, groups, mft.Options{Capacity: 3}, mft.Union{}, refusing{}); p != nil || !errors.As(err, &no) {
		t.Errorf("%v, %v", p, err)
	}
}

// refusing is a scheme that refuses all groups.
type refusing struct{}

func (refusing) Name() string { return "refusing" }

func (refusing) Build(_ context.Context, _ *lft.Routing, groups []mft.Group, _ mft.Options) (*mft.Plan, error) {
	return nil, &mft.RefusedError{Scheme: "refusing", Group: groups[0].Name, Reason: "no group suits it"}
}

// foreign is a scheme of another package: it has Name and Build only.
type foreign struct{ mft.Scheme }

// TestForeign: schemes that Fit knows nothing of.
func TestForeign(t *testing.T) {
	g := newGrid(t, 3, 3)
	groups := []mft.Group{
		{Name: "a", Receivers: g.hosts(0x1ff), Senders: g.hosts(0x1ff), MLID: 0xc005},
		{Name: "b", Receivers: g.hosts(0x0ff), Senders: g.hosts(0x03f)},
	}
	for _, capacity := range []int{0, 12, 10, 8, 7} {
		opt := mft.Options{Capacity: capacity}
		own := mustFit(t, g.r, groups, opt, mft.Union{}, mft.UnionRow{Class: g.rows})
		other := mustFit(t, g.r, groups, opt, foreign{mft.Union{}}, foreign{mft.UnionRow{Class: g.rows}})
		mustBeExact(t, groups, other)
		short.Diff(t, text(other), text(own), "capacity", capacity)
		for _, x := range other.Trees {
			if x.Group == 0 && x.MGID.As16()[15] == 0 && x.MLID != 0xc005 {
				t.Errorf("MLID %#x of a", x.MLID)
			}
		}
	}
}

// text is everything in a plan.
func text(p *mft.Plan) []string {
	var list []string
	for i := range p.Trees {
		list = append(list, fmt.Sprintf("%+v", p.Trees[i]))
	}
	for _, l := range p.Tables.MLIDs() {
		list = append(list, fmt.Sprintf("%#x %v", uint16(l), p.Tables.Ports(l)))
	}
	return append(list, p.Notes...)
}

// checkShared floods the trees of a plan in which groups may share MLIDs: all
// receivers get a copy and none two; it returns the stray copies, a packet
// from one sender of each group, and the groups without MLID.
func checkShared(t testing.TB, groups []mft.Group, p *mft.Plan) (stray int, without []int) {
	t.Helper()
	f := p.Tables.Fabric()
	served := make([]int, len(groups))
	sl := map[fabric.LID]fabric.SL{}
	for i := range p.Trees {
		x := &p.Trees[i]
		g := &groups[x.Group]
		served[x.Group]++
		if !slices.Equal(x.Senders, g.Senders) || !slices.Equal(x.Receivers, g.Receivers) || x.Name != g.Name {
			t.Fatalf("%+v of %+v", x, g)
		}
		if g.MLID != 0 && g.MLID != x.MLID {
			t.Fatalf("group %q has MLID %#x", g.Name, x.MLID)
		}
		if first, ok := sl[x.MLID]; ok && first != x.SL || x.SL != g.SL {
			t.Fatalf("group %q has SL %d, another one of MLID %#x SL %d", g.Name, x.SL, x.MLID, first)
		}
		sl[x.MLID] = x.SL
		for k, s := range g.Senders {
			fl := newFlood(f, p.Tables.Ports(x.MLID), s)
			if v := fl.verdict(s, g.Receivers); v != "exact" && v != "stray" {
				t.Fatalf("group %q from %s: %s", g.Name, f.PortName(s), v)
			}
			n := 0
			for d := range fl.copies {
				if _, is := slices.BinarySearch(g.Receivers, d); !is {
					n++
				}
			}
			if k == 0 {
				stray += n
			}
		}
	}
	for i, n := range served {
		switch {
		case n == 0:
			without = append(without, i)
		case n > 1:
			t.Fatalf("group %q has %d trees", groups[i].Name, n)
		}
	}
	return stray, without
}

// slowShare is the same agglomeration the obvious way: it returns the stray
// copies, and how many groups have no MLID.
func slowShare(groups []mft.Group, free int, most float64) (stray, without int) {
	type cluster struct {
		groups    []int
		receivers map[fabric.PortID]bool
		wanted    int
		stray     int
		own       bool
	}
	var list []*cluster
	need := 0
	for i := range groups {
		c := &cluster{groups: []int{i}, receivers: map[fabric.PortID]bool{}, own: groups[i].MLID != 0}
		for _, p := range groups[i].Receivers {
			c.receivers[p] = true
			c.wanted++
		}
		if !c.own {
			need++
		}
		list = append(list, c)
	}
	join := func(a, b *cluster) *cluster {
		c := &cluster{groups: slices.Concat(a.groups, b.groups), receivers: map[fabric.PortID]bool{}, wanted: a.wanted + b.wanted, own: a.own || b.own}
		slices.Sort(c.groups)
		for _, i := range c.groups {
			for _, p := range groups[i].Receivers {
				c.receivers[p] = true
			}
		}
		for _, i := range c.groups {
			c.stray += len(c.receivers) - len(groups[i].Receivers)
		}
		return c
	}
	for ; need > free; need-- {
		var best *cluster
		var at [2]int
		cost := 0
		for i, a := range list {
			for k, b := range list[:i] {
				if a.own && b.own || groups[a.groups[0]].SL != groups[b.groups[0]].SL {
					continue
				}
				c := join(a, b)
				if float64(c.stray) > most*float64(c.wanted) {
					continue
				}
				// Of equal ones the pair whose first groups are first.
				if x := c.stray - a.stray - b.stray; best == nil || x < cost || x == cost && (k < at[0] || k == at[0] && i < at[1]) {
					best, cost, at = c, x, [2]int{k, i}
				}
			}
		}
		if best == nil {
			break
		}
		list[at[0]] = best
		list = slices.Delete(list, at[1], at[1]+1)
	}
	slices.SortStableFunc(list, func(a, b *cluster) int {
		if a.wanted != b.wanted {
			return a.wanted - b.wanted
		}
		return b.groups[0] - a.groups[0]
	})
	for _, c := range list {
		if need > free && !c.own {
			need--
			without += len(c.groups)
			continue
		}
		stray += c.stray
	}
	return stray, without
}

// TestShare compares which groups share MLIDs with the obvious way, and floods
// them.
func TestShare(t *testing.T) {
	r := routed(t, updown.Engine{})(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}))
	hosts := r.Fabric.CAPorts()
	rnd := rand.New(rand.NewPCG(6, 0))
	shared, dropped := 0, 0
	for range 60 {
		// Groups that are a bit like each other.
		groups := make([]mft.Group, 4+rnd.IntN(20))
		for i := range groups {
			g := &groups[i]
			g.Name = fmt.Sprint(i)
			if i > 0 && rnd.IntN(4) > 0 {
				g.Receivers = slices.Clone(groups[rnd.IntN(i)].Receivers)
			} else {
				for _, k := range rnd.Perm(len(hosts))[:1+rnd.IntN(len(hosts)-1)] {
					g.Receivers = append(g.Receivers, hosts[k])
				}
			}
			if p := hosts[rnd.IntN(len(hosts))]; rnd.IntN(2) == 0 && !slices.Contains(g.Receivers, p) {
				g.Receivers = append(g.Receivers, p)
			}
			slices.Sort(g.Receivers)
			g.Senders = g.Receivers
			if rnd.IntN(4) == 0 { // SLs do not mix: trees may depend on them
				g.SL = 1
			}
			if rnd.IntN(8) == 0 {
				g.MLID = mft.MinMLID + 100 + fabric.LID(i)
			}
		}
		free := 1 + rnd.IntN(len(groups))
		opt := mft.Options{MaxStray: []float64{0, -1, 0.5, 100}[rnd.IntN(4)]}
		for l := mft.MinMLID + fabric.LID(free) + 1; l < mft.MaxMLID; l++ {
			if l < mft.MinMLID+100 || l >= mft.MinMLID+100+fabric.LID(len(groups)) {
				opt.Reserved = append(opt.Reserved, l)
			} else if g := groups[l-mft.MinMLID-100]; g.MLID == 0 {
				opt.Reserved = append(opt.Reserved, l)
			}
		}
		opt.Reserved = append(opt.Reserved, mft.MaxMLID)
		p := mustFit(t, r, groups, opt, mft.UpdnTree{})
		most := opt.MaxStray
		if most == 0 {
			most = mft.DefaultMaxStray
		}
		stray, without := checkShared(t, groups, p)
		wantStray, wantWithout := slowShare(groups, free, max(most, 0))
		if stray != wantStray || len(without) != wantWithout || !slices.Equal(p.Unserved, without) {
			t.Fatalf("%d groups, %d MLIDs, at most %v: %d stray copies and %v left out, want %d and %d", len(groups), free, most, stray, without, wantStray, wantWithout)
		}
		if most < 0 && stray > 0 {
			t.Errorf("%d stray copies", stray)
		}
		shared += stray
		dropped += len(without)
		again := slices.Clone(groups)
		short.Diff(t, text(mustFit(t, r, again, opt, mft.UpdnTree{})), text(p))
	}
	if shared < 60 || dropped < 20 {
		t.Errorf("only %d stray copies and %d groups left out", shared, dropped)
	}
}

// TestShareNotes is what is said of groups that share MLIDs or have none.
func TestShareNotes(t *testing.T) {
	g := newGrid(t, 2, 2)
	order := updown.NewOrder(g.r.Fabric, nil).Rank
	groups := []mft.Group{
		{Name: "a", Receivers: g.byLID(1, 2, 3), Senders: g.byLID(1)},
		{Name: "b", Receivers: g.byLID(1, 2, 3), Senders: g.byLID(4)},
		{Name: "c", Receivers: g.byLID(4), Senders: g.byLID(1)},
		{Name: "d", Receivers: g.byLID(1, 2, 3, 4), Senders: g.byLID(1)},
	}
	for _, x := range []struct {
		capacity int
		stray    float64
		notes    []string
	}{
		{5, 0, nil},
		{4, 0, []string{
			"2 groups share 1 MLID, with at most 0 stray copies for 6 to receivers when each sends a packet; OpenSM gives no two MGIDs one MLID",
			`groups "a", "b" share an MLID, and nothing strays`}},
		{3, 0, []string{
			"2 groups share 1 MLID, with at most 0 stray copies for 6 to receivers when each sends a packet; OpenSM gives no two MGIDs one MLID",
			`groups "a", "b" share an MLID, and nothing strays`,
			`1 group without an MLID, left to a unicast packet for each receiver: "c"`}},
		{3, 0.2, []string{
			"3 groups share 1 MLID, with at most 2 stray copies for 10 to receivers when each sends a packet; OpenSM gives no two MGIDs one MLID",
			`groups "a", "b", "d" share an MLID: packets of "a" reach "host 1,1"[1] as well`}},
	} {
		p := mustFit(t, g.r, groups, mft.Options{Capacity: x.capacity, MaxStray: x.stray}, mft.UpdnTree{Order: order})
		checkShared(t, groups, p)
		short.Diff(t, p.Notes, x.notes, "capacity", x.capacity)
	}
}
