package mft_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// TestPaperUnion is the worked example of Zhou, Liu and Chung (figure 7 and its
// table), source N(2,2) and DLIDs 4, 5, 19, 21 and 23 on a mesh of 5x5, with the
// ports of the hosts that the paper's table lacks (G-X4, E-X6).
func TestPaperUnion(t *testing.T) {
	g := newGrid(t, 5, 5)
	group := mft.Group{Name: "paper", Receivers: g.byLID(4, 5, 19, 21, 23), Senders: g.byLID(13)}
	p := mustBuild(t, mft.Union{}, g.r, []mft.Group{group}, mft.Options{})
	ports := p.Tables.Ports(p.Trees[0].MLID)
	const want = "(0,2)2 (0,3)2,5 (0,4)5 (1,2)3 (2,2)1,3 (3,2)1,2 (3,3)5 (4,0)5 (4,1)4 (4,2)4,5"
	if got := g.masks(ports); got != want {
		t.Errorf("masks\n%s, want\n%s", got, want)
	}
	mustBeExact(t, []mft.Group{group}, p)
	fl := newFlood(g.r.Fabric, ports, group.Senders[0])
	if len(fl.links) != 9 {
		t.Errorf("%d links crossed, want 9", len(fl.links))
	}
	c, err := mft.Measure(t.Context(), g.r, p)
	if err != nil {
		t.Fatal(err)
	}
	if want := (mft.TreeCost{Links: 9, Depth: 4, Crossings: 9, Unicast: 15}); c.Trees[0] != want || c.Saved() != 6 {
		t.Errorf("cost %+v, saved %d; want %+v and 6", c.Trees[0], c.Saved(), want)
	}

	// Whoever else sends on that MLID loses members silently (G-X5).
	for _, x := range []struct {
		x, y  int
		reach []int
	}{
		{0, 3, []int{5}}, {0, 4, nil}, {3, 3, nil}, {4, 0, nil}, {4, 2, []int{21}}, {3, 2, []int{19, 21, 23}},
		{0, 2, []int{4, 5}}, {1, 2, []int{4, 5}},
	} {
		fl := newFlood(g.r.Fabric, ports, g.host(x.x, x.y))
		var got []int
		for d := range fl.copies {
			got = append(got, int(g.r.Fabric.LID(d)))
		}
		slices.Sort(got)
		if !slices.Equal(got, x.reach) {
			t.Errorf("from N(%d,%d) packets reach %v, want %v", x.x, x.y, got, x.reach)
		}
	}
}

// TestPaperRows has all six nodes of the example send. Their paths on one MLID
// loop from each of them; an MLID for each row is exact (G-X6).
func TestPaperRows(t *testing.T) {
	g := newGrid(t, 5, 5)
	all := g.byLID(4, 5, 13, 19, 21, 23)
	groups := []mft.Group{{Name: "paper", Receivers: g.byLID(4, 5, 19, 21, 23), Senders: all}}
	one := mustBuild(t, mft.UnionRow{Class: make([]int32, 25)}, g.r, groups, mft.Options{})
	if len(one.Trees) == 1 {
		t.Error("all senders on one MLID")
	}
	mustBeExact(t, groups, one)

	var merged []fabric.PortID
	single := mustBuild(t, mft.Union{}, g.r, groups, mft.Options{})
	for _, x := range single.Tables.MLIDs() {
		merged = append(merged, single.Tables.Ports(x)...)
	}
	for _, s := range all {
		if v := newFlood(g.r.Fabric, merged, s).verdict(s, groups[0].Receivers); v != "loop" {
			t.Errorf("all on one MLID, from %s: %s, want loop", g.r.Fabric.PortName(s), v)
		}
	}

	for _, s := range []mft.Scheme{mft.UnionRow{Class: g.rows}, mft.UnionMerge{Class: g.rows}, mft.UnionMerge{NoExtra: true}} {
		p := mustBuild(t, s, g.r, groups, mft.Options{})
		mustBeExact(t, groups, p)
		var masks []string
		for _, x := range p.Trees {
			masks = append(masks, g.masks(p.Tables.Ports(x.MLID)))
		}
		if len(masks) != 4 {
			t.Fatalf("%s: %d MLIDs, want 4", s.Name(), len(masks))
		}
		for _, want := range []string{
			"(0,2)2 (0,3)2,5 (0,4)5 (1,2)3 (2,2)1,3 (3,2)1,2,3 (3,3)5 (4,0)5 (4,1)4 (4,2)3,4,5",
			"(0,3)1,2,5 (0,4)5 (1,3)1,3 (2,3)1,3 (3,3)1,3,5 (4,0)5 (4,1)4 (4,2)4,5 (4,3)4",
		} {
			if !slices.Contains(masks, want) {
				t.Errorf("%s: no masks\n%s in\n%s", s.Name(), want, strings.Join(masks, "\n"))
			}
		}
	}
}
