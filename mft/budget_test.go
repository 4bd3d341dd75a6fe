package mft_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		if diff := cmp.Diff(x.want, schemesOf(groups, p)); diff != "" {
			t.Errorf("capacity %d: %s", x.capacity, diff)
		}
		if diff := cmp.Diff(x.notes, p.Notes); diff != "" {
			t.Errorf("capacity %d: %s", x.capacity, diff)
		}
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
		if diff := cmp.Diff(x.want, schemesOf(groups, p)); diff != "" {
			t.Errorf("capacity %d: %s", x.capacity, diff)
		}
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
		if diff := cmp.Diff(text(own), text(other)); diff != "" {
			t.Errorf("capacity %d: %s", capacity, diff)
		}
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

// TestLeaveOut: where MLIDs are few, the groups with the fewest receivers have none, the last of
// equal ones, but for those that came with one; all others have exact trees.
func TestLeaveOut(t *testing.T) {
	r := routed(t, updown.Engine{})(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}))
	hosts := r.Fabric.CAPorts()
	rnd := rand.New(rand.NewPCG(6, 0))
	for range 60 {
		groups := make([]mft.Group, 4+rnd.IntN(20))
		own := 0
		for i := range groups {
			g := &groups[i]
			g.Name = fmt.Sprint(i)
			for _, k := range rnd.Perm(len(hosts))[:1+rnd.IntN(6)] {
				g.Receivers = append(g.Receivers, hosts[k])
			}
			slices.Sort(g.Receivers)
			g.Senders = g.Receivers
			if rnd.IntN(8) == 0 {
				g.MLID = mft.MinMLID + 1 + fabric.LID(own)
				own++
			}
		}
		free := rnd.IntN(len(groups))
		p := mustFit(t, r, groups, mft.Options{Capacity: 1 + own + free}, mft.UpdnTree{})
		// A group has no MLID if those with more receivers take all that are free.
		var want []int
		for i, g := range groups {
			before := 0
			for k, h := range groups {
				if h.MLID == 0 && (len(h.Receivers) > len(g.Receivers) || len(h.Receivers) == len(g.Receivers) && k < i) {
					before++
				}
			}
			if g.MLID == 0 && before >= free {
				want = append(want, i)
			}
		}
		if !slices.Equal(p.Unserved, want) {
			t.Fatalf("without an MLID: %v, want %v of %d groups with %d MLIDs", p.Unserved, want, len(groups), free)
		}
		if len(p.Trees) != len(groups)-len(want) {
			t.Fatalf("%d trees for %d groups of %d", len(p.Trees), len(groups)-len(want), len(groups))
		}
		for i := range p.Trees {
			x := &p.Trees[i]
			g := &groups[x.Group]
			if slices.Contains(want, x.Group) || g.MLID != 0 && g.MLID != x.MLID {
				t.Fatalf("%+v of %+v", x, g)
			}
			for _, s := range g.Senders {
				if v := newFlood(r.Fabric, p.Tables.Ports(x.MLID), s).verdict(s, g.Receivers); v != "exact" {
					t.Fatalf("group %q from %s: %s", g.Name, r.Fabric.PortName(s), v)
				}
			}
		}
		if said := slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, " without an MLID, left to ") }); said != (len(want) > 0) {
			t.Fatalf("notes %q with %v left out", p.Notes, want)
		}
	}
}
