package diff

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/verify"
)

// compareMulticast compares the multicast masks of switches that both states have, by
// MLID and port number.
func (c *comparison) compareMulticast(ctx context.Context) error {
	d := &MulticastChanges{Changed: []MLIDChange{}}
	c.r.Multicast = d
	a, b := c.a.Multicast.Tables, c.b.Multicast.Tables
	mlids := slices.Concat(a.MLIDs(), b.MLIDs())
	slices.Sort(mlids)
	for _, l := range slices.Compact(mlids) {
		change := MLIDChange{MLID: l, Masks: []MaskChange{}}
		if c.Old == c.New && slices.Equal(a.Ports(l), b.Ports(l)) {
			continue
		}
		c.EachMask(a, b, l, func(s fabric.NodeID, was, is []int) {
			if !slices.Equal(was, is) {
				change.Masks = append(change.Masks, MaskChange{SwitchRef: verify.SwitchOf(c.New, s), Old: was, New: is, Labels: c.New.PortLabels(s)})
			}
		})
		if len(change.Masks) > 0 {
			d.Changed = append(d.Changed, change)
			d.Masks += len(change.Masks)
		}
	}
	d.MLIDs = len(d.Changed)
	if d.Masks == 0 {
		return nil
	}
	u, err := mft.PlanUpdate(ctx, c.a.Multicast, c.b.Multicast)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		d.Unplanned = err.Error()
	default:
		d.Update = newUpdatePlan(c.New, u)
	}
	return nil
}

// newUpdatePlan is an order of writes by GUID and port number.
func newUpdatePlan(f *fabric.Fabric, u *mft.Update) *UpdatePlan {
	senders := func(from []mft.MLIDSender) []Sender {
		list := []Sender{}
		for _, s := range from {
			list = append(list, Sender{MLID: s.MLID, Port: portRef(f, s.Port)})
		}
		return list
	}
	p := &UpdatePlan{Stages: []MaskStage{}, Interrupted: []Interruption{}, Stop: senders(u.Stop), Start: senders(u.Start)}
	for i, stage := range u.Stages {
		s := MaskStage{SMPs: u.SMPs(i), Writes: make([]MaskWrite, len(stage))}
		for k := range stage {
			w := &stage[k]
			s.Writes[k] = MaskWrite{Switch: f.Node(w.Switch).GUID, MLID: w.MLID, Position: int(w.Position), Ports: f.Nums(w.Ports)}
		}
		p.Stages = append(p.Stages, s)
	}
	for i := range u.Interrupted {
		x := &u.Interrupted[i]
		d := Interruption{MLID: x.MLID, From: x.From, To: x.To, Pairs: x.Pairs, Receivers: []PortRef{}, Faulty: x.Faulty, Reason: x.Reason}
		for _, r := range x.Receivers {
			d.Receivers = append(d.Receivers, portRef(f, r))
		}
		p.Interrupted = append(p.Interrupted, d)
	}
	return p
}
