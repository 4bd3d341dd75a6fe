package policy

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// Routing checks tables against the policy. t are the tables of f, nil for
// none, and r is the result of verify.Check for them. It takes O(switches x
// LIDs) for each required property. Errors are ctx's, and roots of the policy
// that are no switches of f.
func (p *Policy) Routing(ctx context.Context, f *fabric.Fabric, t *lft.Tables, r *verify.Result) ([]verify.Finding, error) {
	if t == nil {
		demands := len(p.Require) + text.CountIf([]float64{float64(p.MaxHops), p.MaxImbalance}, func(limit float64) bool { return limit > 0 })
		if demands == 0 {
			return nil, nil
		}
		return []verify.Finding{p.finding(RoutingUnchecked, int64(demands), "the policy has %d demands on the routing, which were not checked: there are no tables", demands)}, nil
	}
	var list []verify.Finding
	if p.MaxHops > 0 && r.Unicast.MaxHops > p.MaxHops {
		over := int64(0)
		for hops, n := range r.Unicast.HopHistogram {
			if hops > p.MaxHops {
				over += n
			}
		}
		list = append(list, p.finding(HopsAboveLimit, over, "%d of %d pairs pass more than %d switches, up to %d", over, r.Unicast.Pairs, p.MaxHops, r.Unicast.MaxHops))
	}
	if b := &r.Balance; p.MaxImbalance > 0 && b.MaxLink != nil && float64(b.MaxRoutes) > p.MaxImbalance*b.MeanRoutes {
		x := p.finding(ImbalanceAboveLimit, b.MaxRoutes, "%s has %d routes, %.2f times the mean of %.1f; the policy allows %.2f times",
			b.MaxLink, b.MaxRoutes, float64(b.MaxRoutes)/b.MeanRoutes, b.MeanRoutes, p.MaxImbalance)
		x.Switch = b.MaxLink.Switch
		x.Ports = []verify.Endpoint{{Node: b.MaxLink.Switch, Name: b.MaxLink.Name, Port: b.MaxLink.Port, Label: b.MaxLink.Label}}
		list = append(list, x)
	}
	for _, property := range p.Require {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch property {
		case Minimal:
			if n := r.Unicast.NonMinimal; n > 0 {
				x := p.finding(NotMinimal, n, "%d of %d pairs pass more switches than they need to", n, r.Unicast.Pairs)
				for i := range r.Findings {
					if from := &r.Findings[i]; from.Rule == verify.NonMinimal {
						x.Message, x.Switch, x.LID, x.Witness = from.Message, from.Switch, from.LID, from.Witness
					}
				}
				list = append(list, x)
			}
		case UpDown:
			x, err := p.checkUpDown(ctx, f, t)
			if err != nil {
				return nil, err
			}
			list = append(list, x...)
		case XY:
			list = append(list, p.checkDimensionOrder(f, t)...)
		}
	}
	return list, nil
}

func (p *Policy) finding(rule string, count int64, format string, args ...any) verify.Finding {
	return verify.NewFinding(Rules, rule, int(count), format, args...)
}

// RootError says that a root of the policy is no switch of the fabric.
type RootError struct{ Root string }

func (e *RootError) Error() string {
	return fmt.Sprintf("the policy's root %q is no switch of this fabric", e.Root)
}

// checkUpDown finds paths that go down and then up.
func (p *Policy) checkUpDown(ctx context.Context, f *fabric.Fabric, t *lft.Tables) ([]verify.Finding, error) {
	if f.NumSwitches() == 0 {
		return nil, nil
	}
	var roots []fabric.NodeID
	for _, at := range p.Roots {
		found := false
		for s := range fabric.NodeID(f.NumSwitches()) {
			if at.Has(f.Node(s).GUID, f.Name(s).Text, 0) {
				roots = append(roots, s)
				found = true
			}
		}
		if !found {
			return nil, &RootError{at.text}
		}
	}
	find := func(rank []int32) turn { // by switch, lower is up
		return findTurns(f, t, func(s, u, v fabric.NodeID, _, _ fabric.PortID) bool {
			down := rank[u] > rank[s] || rank[u] == rank[s] && u > s
			up := rank[v] < rank[u] || rank[v] == rank[u] && v < u
			return down && up
		})
	}
	if roots != nil {
		return p.report(f, NotUpDown, find(updown.NewOrder(f, roots).Rank), "go down and up again by the order from the policy's roots", "go down by", "up by"), nil
	}
	chosen, err := updown.ChooseOrder(ctx, f, nil)
	if err != nil {
		return nil, err
	}
	best, by := find(chosen.Rank), "the order that updn chooses"
	if level := cabling.Recognize(f).Level(); level != nil {
		rank := text.Each(level, func(l int32) int32 { return -l })
		if bad := find(rank); bad.lids < best.lids {
			best, by = bad, "the levels of the tree"
		}
	}
	return p.report(f, NotUpDown, best, "go down and up again by "+by, "go down by", "up by"), nil
}

// checkDimensionOrder finds paths that turn into an earlier dimension or back.
func (p *Policy) checkDimensionOrder(f *fabric.Fabric, t *lft.Tables) []verify.Finding {
	if f.NumSwitches() <= 1 {
		return nil
	}
	g, err := mesh.Detect(f, mesh.DetectOptions{})
	if err != nil {
		return []verify.Finding{p.finding(NotXY, 0, "%v", err)}
	}
	bad := findTurns(f, t, func(_, _, _ fabric.NodeID, first, second fabric.PortID) bool {
		a, b := g.Dir(first), g.Dir(second)
		return b.Dim() < a.Dim() || b == a.Opposite()
	})
	return p.report(f, NotXY, bad, fmt.Sprintf("are not in the order of the dimensions of the %s", g), "take", "then")
}

// report makes a finding of turns, if any. what says what the paths do; first and then are words
// before the two channels of the example.
func (p *Policy) report(f *fabric.Fabric, rule string, bad turn, what, first, then string) []verify.Finding {
	if bad.lids == 0 {
		return nil
	}
	x := p.finding(rule, bad.lids, "paths to %d LIDs %s: packets for LID %d at switch %q (%s) %s %s and %s %s",
		bad.lids, what, bad.lid, f.Name(bad.at).Text, f.Node(bad.at).GUID, first, bad.way[0], then, bad.way[1])
	x.LID, x.Switch, x.Witness = bad.lid, f.Node(bad.at).GUID, bad.way
	return []verify.Finding{x}
}

// turn has the turns that findTurns found: their number, and an example.
type turn struct {
	lids int64 // LIDs with a turn that is not allowed
	lid  fabric.LID
	at   fabric.NodeID // the switch before the turn
	way  []verify.Hop  // the two channels of the turn
}

// findTurns follows packets from all CA and router ports to each LID of
// another such port. It counts the LIDs on whose delivered paths wrong returns
// true for some turn: from switch s by port first to u, and from there by port
// second to v. The lowest of these LIDs is the example.
func findTurns(f *fabric.Fabric, t *lft.Tables, wrong func(s, u, v fabric.NodeID, first, second fabric.PortID) bool) (bad turn) {
	tree := lft.NewForest(f)
	sends := make([]bool, f.NumSwitches()) // hosts send from this switch or through it
	for lid := fabric.LID(1); lid <= min(f.MaxLID(), t.MaxLID()); lid++ {
		to := f.LIDPort(lid)
		if to == fabric.NoPort || f.IsSwitch(f.Owner(to)) {
			continue
		}
		tree.FindTree(t, lid)
		clear(sends)
		found := false
		for _, s := range slices.Backward(tree.Order) {
			hosts := f.EndPortsOn(s)
			sends[s] = sends[s] || len(hosts) > 1 || len(hosts) == 1 && hosts[0] != to
			if s == tree.Order[0] || !sends[s] {
				continue
			}
			first := tree.Next[s]
			u := f.PeerSwitch(first)
			sends[u] = true
			if u == tree.Order[0] || found || !wrong(s, u, f.PeerSwitch(tree.Next[u]), first, tree.Next[u]) {
				continue
			}
			found = true
			if bad.lids++; bad.lids == 1 {
				hop := func(p fabric.PortID) verify.Hop {
					h := verify.HopOf(f, p)
					h.LID = lid
					return h
				}
				bad.lid, bad.at, bad.way = lid, s, []verify.Hop{hop(first), hop(tree.Next[u])}
			}
		}
	}
	return bad
}
