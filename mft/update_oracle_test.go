package mft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
)

// LossError says that an old member that stays may miss a packet and that
// Update.Interrupted does not say so.
type LossError struct {
	MLID     fabric.LID
	Stage    int // from 1
	Sender   fabric.PortID
	Receiver fabric.PortID

	fab *fabric.Fabric
}

func (e *LossError) Error() string {
	return fmt.Sprintf("MLID %#04x: the masks while stage %d: %s may miss packets from %s",
		uint16(e.MLID), e.Stage, e.fab.PortName(e.Receiver), e.fab.PortName(e.Sender))
}

// CheckUpdate proves an order of writes from any author: from the tables of old
// it comes to those of new, in no mixture of the writes of a stage does a
// packet loop or arrive twice, of any sender of the old or the new groups but
// those in u.Stop and u.Start, and old members that stay get every packet
// except for what u.Interrupted says. MLIDs that it calls faulty may do harm until
// the stage is over that ends it.
//
// Errors: *LossError, others for harm and for writes that do not fit, and
// ctx's error when that ends first. An order that is safe can be refused when
// there are very many paths.
func CheckUpdate(ctx context.Context, old, new *Plan, u *Update) error {
	f := new.Tables.Fabric()
	if !fabric.SameNodes(old.Tables.Fabric(), f) {
		return errors.New("fabrics with other nodes")
	}
	writes := make(map[fabric.LID][]stagedWrite)
	for i, stage := range u.Stages {
		for k := range stage {
			writes[stage[k].MLID] = append(writes[stage[k].MLID], stagedWrite{i + 1, &stage[k]})
		}
	}
	list := changedMLIDs(old.Tables, new.Tables)
	for m := range writes {
		list = append(list, m)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	oldTrees, newTrees := treesByMLID(old.Trees), treesByMLID(new.Trees)
	_, err := par.ForEachWith(ctx, 0, len(list), func() *updateCheck { return &updateCheck{w: newMixtures(f), u: u} }, func(c *updateCheck, i int) error {
		m := list[i]
		return c.check(m, writes[m], old.Tables.Ports(m), new.Tables.Ports(m), oldTrees[m], newTrees[m])
	})
	return err
}

type stagedWrite struct {
	stage int // from 1
	*Write
}

// updateCheck proves one MLID at a time: scratch of one worker. It shares maskGraph with
// the planner, and nothing of what that decides.
type updateCheck struct {
	w   *mixtures
	u   *Update
	now []bool // by index in ports: the masks after the stages so far
}

func (c *updateCheck) check(m fabric.LID, writes []stagedWrite, old, new []fabric.PortID, oldTrees, newTrees []*Tree) error {
	w, u := c.w, c.u
	var extra []fabric.PortID
	for _, x := range writes {
		if err := checkWrite(w.f, x.Write); err != nil {
			return err
		}
		extra = append(extra, x.Ports...)
	}
	slices.SortFunc(writes, func(a, b stagedWrite) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), compareWrites(*a.Write, *b.Write))
	})
	for k := range writes[min(1, len(writes)):] {
		if a, b := &writes[k], &writes[k+1]; a.stage == b.stage && compareWrites(*a.Write, *b.Write) == 0 {
			return fmt.Errorf("MLID %#04x: stage %d writes position %d of %s twice", uint16(m), a.stage, a.Position, w.f.Name(a.Switch))
		}
	}
	slices.Sort(extra)
	w.load(m, old, union(nil, new, slices.Compact(extra)))
	for i, p := range w.ports {
		if _, in := slices.BinarySearch(new, p); !in {
			w.is[i] &^= inNew
		}
	}
	c.restart()
	w.listMembers(oldTrees, newTrees)
	if done, err := c.oneTree(writes); done || err != nil {
		return err
	}
	faultyTo := 0
	var excused *Interruption
	for i := range u.Interrupted {
		if x := &u.Interrupted[i]; x.MLID == m {
			if excused = x; x.Faulty {
				faultyTo = x.From
			}
		}
	}
	senders := w.senders[:0]
	for _, s := range w.senders {
		if !slices.Contains(u.Stop, MLIDSender{m, s.port}) && !slices.Contains(u.Start, MLIDSender{m, s.port}) {
			senders = append(senders, s)
		}
	}
	w.senders = senders
	for _, s := range w.senders {
		for _, mask := range [...]uint8{inOld, inNew} {
			if !w.exempt(s, mask) && (mask == inNew || faultyTo == 0) {
				return c.harm(map[uint8]int{inOld: 1, inNew: 0}[mask], s)
			}
		}
	}

	now := c.now
	for stage := 1; stage <= len(u.Stages); stage++ {
		for i := range now {
			w.mode[i] = never
			if now[i] {
				w.mode[i] = always
			}
		}
		n, changes := 0, false
		for ; n < len(writes) && writes[n].stage == stage; n++ {
			x := &writes[n]
			from, to := c.portsOf(x.Write)
			for i := from; i < to; i++ {
				changes = true
				w.mode[i] = never
				if now[i] {
					w.mode[i] = before
				}
				if _, in := slices.BinarySearch(x.Ports, w.ports[i]); in {
					w.mode[i] |= after
				}
			}
		}
		writes = writes[n:]
		if changes {
			if err := c.stage(stage, stage <= faultyTo, excused); err != nil {
				return err
			}
		}
		for i := range now {
			now[i] = w.mode[i]&after != 0
		}
	}
	return c.ended()
}

// ended says whether the masks are the new ones.
func (c *updateCheck) ended() error {
	w := c.w
	for i, in := range c.now {
		if in != (w.is[i]&inNew != 0) {
			return fmt.Errorf("MLID %#04x: %s in the end is not as the new tables have it", uint16(w.mlid), w.f.PortName(w.ports[i]))
		}
	}
	return nil
}

// oneTree is for writes whose ports lie on one tree of cables, as nearly all do:
// what was in the old masks and is in the new ones has to be in all masks
// between. Then a packet that had a way before and has one afterwards has the
// same way all the time, since there is no other.
func (c *updateCheck) oneTree(writes []stagedWrite) (bool, error) {
	w := c.w
	if !w.isForest() {
		return false, nil
	}
	for k := range writes {
		x := &writes[k]
		from, to := c.portsOf(x.Write)
		for i := from; i < to; i++ {
			_, in := slices.BinarySearch(x.Ports, w.ports[i])
			if !in && w.is[i] == inOld|inNew {
				c.restart()
				return false, nil
			}
			c.now[i] = in
		}
	}
	return true, c.ended()
}

// stage looks at all that can happen while the writes in w.mode are on their way.
func (c *updateCheck) stage(stage int, faulty bool, excused *Interruption) error {
	w := c.w
	for _, s := range w.senders {
		if what, _ := w.flood(s.entry, false); what != sound {
			if !faulty {
				return c.harm(stage, s)
			}
			continue
		}
		for _, i := range w.missed(s) {
			r := w.endPort(i)
			if excused == nil || excused.From > stage || stage > excused.To || !excused.Faulty && !slices.Contains(excused.Receivers, r) {
				return &LossError{MLID: w.mlid, Stage: stage, Sender: s.port, Receiver: r, fab: w.f}
			}
		}
	}
	return nil
}

// harm is what packets of s can suffer in a stage, 0 for the new masks.
func (c *updateCheck) harm(stage int, s *mixedSender) error {
	when := "the new masks"
	if stage > 0 {
		when = fmt.Sprintf("the masks while stage %d", stage)
	}
	harm, _ := c.w.describeHarm(s)
	return fmt.Errorf("MLID %#04x: %s: %s", uint16(c.w.mlid), when, harm)
}

// restart goes back to the old masks.
func (c *updateCheck) restart() {
	c.now = resize(c.now, len(c.w.ports))
	for i, is := range c.w.is {
		c.now[i] = is&inOld != 0
	}
}

// portsOf is the ports that a write sets, as a range of indices in ports.
func (c *updateCheck) portsOf(x *Write) (from, to int) {
	w := c.w
	first := w.f.Port(x.Switch, fabric.PortNum(x.Position)*PositionPorts)
	from, _ = slices.BinarySearch(w.ports, first)
	for to = from; to < len(w.ports) && w.f.Owner(w.ports[to]) == x.Switch && w.ports[to] < first+PositionPorts; to++ {
	}
	return from, to
}

// checkWrite says whether a write has ports of its switch and position only.
func checkWrite(f *fabric.Fabric, x *Write) error {
	if x.MLID < MinMLID || x.MLID > MaxMLID {
		return fmt.Errorf("a write of MLID %#04x, want %#04x to %#04x", uint16(x.MLID), uint16(MinMLID), uint16(MaxMLID))
	}
	if int(x.Switch) < 0 || int(x.Switch) >= f.NumSwitches() {
		return fmt.Errorf("MLID %#04x: a write to node %d, want a switch, 0 to %d", uint16(x.MLID), x.Switch, f.NumSwitches()-1)
	}
	n := int(f.Node(x.Switch).NumPorts)
	low := int(x.Position) * PositionPorts
	if low > n {
		return fmt.Errorf("MLID %#04x: a write to position %d of %s, want 0 to %d", uint16(x.MLID), x.Position, f.Name(x.Switch), n/PositionPorts)
	}
	base := f.PortBase(x.Switch)
	for i, p := range x.Ports {
		if p < base+fabric.PortID(low) || p > base+fabric.PortID(min(n, low+PositionPorts-1)) || i > 0 && p <= x.Ports[i-1] {
			return fmt.Errorf("MLID %#04x: a write to position %d of %s has other ports than %d to %d, ascending", uint16(x.MLID), x.Position, f.Name(x.Switch), low, min(n, low+PositionPorts-1))
		}
	}
	return nil
}
