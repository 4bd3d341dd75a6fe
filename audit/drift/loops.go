package drift

import (
	"cmp"
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// loopRules are the rules of forwarding loops, the gravest first: a multicast packet that loops is
// copied to all members again and again until its lifetime in queues ends. creditLoopRules are the
// rules of credit loops.
var (
	loopRules       = []string{verify.MulticastLoop, verify.UnicastLoop, verify.ManagementLoop}
	creditLoopRules = []string{verify.CreditLoop, verify.MulticastCreditLoop, verify.ManagementCreditLoop}
)

// findLoops finds the loops of the live state. If both states have one fabric,
// tables that the live one lacks are as meant. Forwarding loops are always
// found, credit loops only if something has drifted: tables may be meant to
// have one, since minhop does not rule them out.
func (c *comparison) findLoops(ctx context.Context) ([]verify.Finding, error) {
	s := &state.State{Fabric: c.live.Fabric, Tables: c.live.Tables, SL2VL: c.live.SL2VL, UnknownSLs: c.meant.UnknownSLs}
	masks := c.live.Multicast
	if c.Old == c.New {
		s.Tables, s.SL2VL, masks = cmp.Or(s.Tables, c.meant.Tables), cmp.Or(s.SL2VL, c.meant.SL2VL), cmp.Or(masks, c.meant.Multicast)
	}
	if s.Tables == nil {
		return nil, nil // where packets go is unknown
	}
	if s.SL2VL != nil && c.meant.PathSLs != nil {
		// Switches that were not meant to be there send on SL 0.
		top := max(s.Tables.MaxLID(), s.Fabric.MaxLID(), c.meant.PathSLs.MaxLID())
		s.PathSLs = c.meant.PathSLs.On(s.Fabric.NumSwitches(), top,
			func(n fabric.NodeID) fabric.NodeID { return c.Node[n] }, func(p fabric.PortID) fabric.PortID { return c.Port[p] })
	}
	if masks != nil {
		s.Multicast = &mft.Plan{Tables: masks.Tables, Trees: c.listTrees(masks.Tables)}
	}
	result, err := verify.Check(ctx, s, verify.Options{Complete: true})
	if err != nil {
		return nil, err
	}
	rules := slices.Concat(loopRules, creditLoopRules)
	if c.r.Equal() {
		rules = loopRules
	}
	var list []verify.Finding
	looping := map[fabric.LID]bool{}
	for _, rule := range rules {
		for i := range result.Findings {
			x := &result.Findings[i]
			if x.Rule != rule {
				continue
			}
			if slices.Contains(loopRules, rule) {
				if looping[x.LID] && x.LID != 0 {
					continue // unicast and management traffic loop alike
				}
				looping[x.LID] = true
			}
			list = append(list, *x)
		}
	}
	for _, u := range result.Undecided {
		if s.UnknownSLs && !c.r.Equal() && slices.Contains(creditLoopRules, u.Rule) {
			list = append(list, verify.Finding{Rule: u.Rule, Severity: verify.Error, Message: "undecided: " + u.Reason, Count: 1, Witness: []verify.Hop{}})
		}
	}
	delete(looping, 0) // that of findings that stand for others
	c.r.Loops = len(looping)
	return list, nil
}

// listTrees returns the trees to follow packets by: the meant groups, with
// every end port in the live masks of an MLID as a sender too. So it finds
// loops of ports that are not named as senders.
func (c *comparison) listTrees(masks *mft.Tables) []mft.Tree {
	meant := map[fabric.LID]mft.Tree{}
	for _, t := range cmp.Or(c.meant.Multicast, &mft.Plan{}).Trees {
		of, ok := meant[t.MLID]
		if !ok {
			of = mft.Tree{Group: t.Group, Name: t.Name, MGID: t.MGID, MLID: t.MLID, SL: t.SL}
		}
		there := text.Each(t.Senders, func(p fabric.PortID) fabric.PortID { return c.Port[p] })
		of.Senders = append(of.Senders, text.Where(there, func(p fabric.PortID) bool { return p != fabric.NoPort })...)
		meant[t.MLID] = of
	}
	var trees []mft.Tree
	for _, mlid := range masks.MLIDs() {
		t, ok := meant[mlid]
		if !ok {
			t = mft.Tree{Group: -1, MLID: mlid}
		}
		t.Senders = append(t.Senders, masks.EndPorts(mlid)...)
		slices.Sort(t.Senders)
		t.Senders = slices.Compact(t.Senders)
		t.Receivers = t.Senders
		trees = append(trees, t)
	}
	return trees
}
