package cause

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// Two switches agree by the share of LIDs that they lead to the same
// neighbors. It is at least alike for switches of one routing, and below
// unlike for those of two routings.
const alike, unlike = 0.9, 0.6

// tellMixture names a mixture of two routings as the cause of a load far from
// its bound, if findMixture finds one: for example after a change of which
// only half was written.
func (g *grouper) tellMixture(t *lft.Tables) {
	names := func(list []fabric.NodeID) string {
		return text.Few(text.Each(list, func(s fabric.NodeID) string { return g.f.Name(s).String() }), shownSwitches)
	}
	i := slices.IndexFunc(g.list, func(c verify.Cause) bool { return c.Rule == verify.FarFromBound })
	if i < 0 {
		return
	}
	if few, most := findMixture(g.f, t); few != nil {
		c := &g.list[i]
		c.Text = fmt.Sprintf("tables of two routings, as of a change half written: %s lead LIDs by other neighbors than %s, which agree; %s",
			names(few), names(most), c.Text)
		c.Follows = []string{"the tables do not tell which of the two sets is the older one: ibweave diff with tables from before the change lists the switches with new ones"}
		if len(few) > shownSwitches {
			c.Switches = text.Each(few, func(s fabric.NodeID) verify.SwitchRef { return verify.SwitchOf(g.f, s) })
		}
	}
}

// findMixture compares switches with the same neighbors. Their tables are a
// mixture if they fall into two sets that agree within themselves but not with
// each other. It returns the smaller and the greater set of the first such
// switches, or nil. A set has at least two switches, as a single one may be a
// root. Tables of engines that balance each switch by itself agree nowhere. It
// takes O(switches x LIDs).
func findMixture(f *fabric.Fabric, t *lft.Tables) (few, most []fabric.NodeID) {
	var order []string
	of := make(map[string][]fabric.NodeID)
	for s := range fabric.NodeID(f.NumSwitches()) {
		key := fmt.Sprint(slices.Compact(slices.Sorted(slices.Values(f.Neighbors(s)))))
		if of[key] == nil {
			order = append(order, key)
		}
		of[key] = append(of[key], s)
	}
	for _, key := range order {
		list := of[key]
		few, most := splitBy(f, t, list)
		if len(few) < 2 || agreement(f, t, few[0], most[0]) >= unlike {
			continue
		}
		if rest, _ := splitBy(f, t, few); rest != nil {
			continue
		}
		if rest, _ := splitBy(f, t, most); rest != nil {
			continue
		}
		return few, most
	}
	return nil, nil
}

// splitBy divides switches into those that agree with the first one and the others, and returns the
// smaller and the greater set; few is nil if all agree.
func splitBy(f *fabric.Fabric, t *lft.Tables, list []fabric.NodeID) (few, most []fabric.NodeID) {
	for _, s := range list {
		if agreement(f, t, list[0], s) >= alike {
			most = append(most, s)
		} else {
			few = append(few, s)
		}
	}
	if len(few) > len(most) {
		few, most = most, few
	}
	return few, most
}

// agreement returns how alike two switches route: of the LIDs of hosts that both send to a switch,
// the share that they send to the same switch.
func agreement(f *fabric.Fabric, t *lft.Tables, a, b fabric.NodeID) float64 {
	next := func(s fabric.NodeID, lid int) fabric.NodeID {
		if _, peer := t.Step(f, s, fabric.LID(lid)); peer != fabric.NoPort && f.IsSwitch(f.Owner(peer)) {
			return f.Owner(peer)
		}
		return fabric.NoNode
	}
	same, all := 1, 1
	for lid := range min(len(t.Row(a)), len(t.Row(b))) {
		if to := f.LIDPort(fabric.LID(lid)); to == fabric.NoPort || class(f, to) != verify.LostHosts {
			continue
		}
		if x, y := next(a, lid), next(b, lid); x != fabric.NoNode && y != fabric.NoNode {
			if all++; x == y {
				same++
			}
		}
	}
	return float64(same) / float64(all)
}
