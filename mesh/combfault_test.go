package mesh

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// connected is the CA ports by connected part of the fabric, the largest first.
func connected(f *fabric.Fabric) [][]fabric.PortID {
	part := make([]int, f.NumSwitches())
	n := 0
	for s := range part {
		if part[s] != 0 {
			continue
		}
		n++
		part[s] = n
		for queue := []fabric.NodeID{fabric.NodeID(s)}; len(queue) > 0; queue = queue[1:] {
			_, to := f.SwitchLinks(queue[0])
			for _, u := range to {
				if part[u] == 0 {
					part[u] = n
					queue = append(queue, u)
				}
			}
		}
	}
	list := make([][]fabric.PortID, n)
	for i, p := range f.CAPorts() {
		k := part[f.CASwitches()[i]] - 1
		list[k] = append(list[k], p)
	}
	for _, ports := range list {
		slices.Sort(ports)
	}
	slices.SortStableFunc(list, func(a, b []fabric.PortID) int { return len(b) - len(a) })
	return list
}

// TestCombFaults has B6: every cable and switch of a 4x4 mesh missing, each
// alone and in pairs, on repaired XY routing. Every group of hosts that are still
// connected gets an exact tree, which with unicast closes no cycle on any VL:
// on a VL without unicast if need be.
func TestCombFaults(t *testing.T) {
	type fault struct{ at, dim int } // dim 2 for a switch
	var faults []fault
	for at := range 16 {
		for dim := range 2 {
			if at/4 < 3 && dim == 0 || at%4 < 3 && dim == 1 {
				faults = append(faults, fault{at, dim})
			}
		}
		faults = append(faults, fault{at, 2})
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	made, refused, cut := 0, 0, 0
	for i, a := range faults {
		for k, b := range faults[:i+1] {
			if k != i && (i+k)%short.Of(6, 30) != 0 {
				continue // a sixth of the pairs, or less
			}
			g := grow(t, plot{dims: []int{4, 4},
				missing: func(at, d int) bool { return fault{at, d} == a || fault{at, d} == b },
				absent:  func(at int) bool { return fault{at, 2} == a || fault{at, 2} == b }})
			r, err := routeXY(t.Context(), g, lft.Options{Repair: true})
			if err != nil {
				t.Fatal(a, b, err)
			}
			parts := connected(g.Fabric)
			groups := append(randomGroups(rnd, parts[0], 5, 6), mft.Group{Name: "all", Receivers: parts[0], Senders: parts[0]})
			c := Comb{Grid: g}
			p, err := c.Build(t.Context(), r, groups, mft.Options{})
			if err != nil {
				refused++
				if r.PathSLs == nil {
					r.PathSLs = lft.NewPathSLs(g.Fabric.NumSwitches(), g.Fabric.MaxLID())
				}
				r = short.Must(AddVLs(r, 4))(t)
				c.VLs = 2
				p = combed(t, c, r, groups, mft.Options{})
			}
			made++
			mustBeExact(t, groups, p)
			if hasCycle(together(waitsFor(t, r), r, p)) {
				t.Fatal(a, b, "a cycle")
			}
			if len(parts) > 1 {
				cut++
				groups[2].Receivers = slices.Sorted(slices.Values(append(parts[1][:1:1], groups[2].Receivers...)))
				_, err := c.Build(t.Context(), r, groups, mft.Options{})
				var no *mft.RefusedError
				if !errors.As(err, &no) || no.Group != "group 2" || !strings.Contains(no.Reason, "of the cables that are left none joins") {
					t.Fatal(a, b, err)
				}
			}
		}
	}
	t.Logf("%d grids, on %d a VL without unicast is needed, on %d not all hosts are connected", made, refused, cut)
	if made < short.Of(150, 60) || refused > made/6 || cut == 0 {
		t.Errorf("%d grids, on %d a VL without unicast is needed, on %d not all hosts are connected", made, refused, cut)
	}
}

// TestCombProperties has random grids with parallel cables and missing parts,
// repaired or not, SLs, trunks: what is built is exact and closes no cycle.
func TestCombProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shape := drawPlot(rt, true)
		shape.lmc = rapid.IntRange(0, 1).Draw(rt, "LMC")
		g := grow(t, shape)
		r, err := routeXY(t.Context(), g, lft.Options{Repair: rapid.Bool().Draw(rt, "repair"), NoWrap: rapid.Bool().Draw(rt, "no wrap")})
		var outside *lft.DomainError
		if errors.As(err, &outside) { // with parts missing; repair routes around them
			r, err = routeXY(t.Context(), g, lft.Options{Repair: true, NoWrap: true})
		}
		short.Check(rt, err)
		c := Comb{Grid: g}
		if rapid.Bool().Draw(rt, "VLs") {
			if more, err := AddVLs(r, 8); err == nil {
				r, c.VLs = more, rapid.IntRange(1, 5).Draw(rt, "trunks")
			}
		}
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "groups"), 1))
		var groups []mft.Group
		for i, part := range connected(g.Fabric) {
			if len(part) > 0 {
				for _, x := range randomGroups(rnd, part, 8, 6) {
					x.Name += fmt.Sprint(" of part ", i)
					groups = append(groups, x)
				}
			}
		}
		p, err := c.Build(t.Context(), r, groups, mft.Options{Balance: rapid.Bool().Draw(rt, "balance")})
		if err != nil {
			var no *mft.RefusedError
			if !errors.As(err, &no) || p != nil {
				rt.Fatal(err)
			}
			if len(g.Missing) == 0 && shape.missing == nil && shape.absent == nil && c.VLs <= 1 {
				rt.Fatal("a whole grid: ", err)
			}
			return
		}
		mustBeExact(t, groups, p)
		unicast := waitsFor(t, r)
		if r.SL2VL != nil && r.PathSLs == nil {
			unicast = everySL(t, r)
		}
		if hasCycle(together(unicast, r, p)) {
			rt.Fatal("a cycle")
		}
	})
}
