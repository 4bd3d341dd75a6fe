package mft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// A multicast forwarding table is written by SMPs of a block of BlockMLIDs
// MLIDs by PositionPorts ports of one switch (IBA 14.2.5.11,
// MulticastForwardingTable).
const (
	BlockMLIDs    = 32
	PositionPorts = 16
)

// Write sets 16 ports of the mask of one MLID in one switch: those that one SMP
// sets at once. A mask of a switch with more than 15 ports takes several, and
// switches forward by a mask half of which is old while they are on their way.
type Write struct {
	Switch   fabric.NodeID
	MLID     fabric.LID
	Position uint8           // ports 16*Position to 16*Position+15
	Ports    []fabric.PortID // those that are in the mask from now on, ascending; not to be changed
}

// Update is an order of writes that takes a fabric from old multicast tables to
// new ones. The writes of a stage may be done in any order, and a stage begins
// when the switches have confirmed all writes of the one before and the packets
// that were on their way then have arrived: one that met old masks behind it and
// meets those of a later stage ahead may be lost.
type Update struct {
	// Stages have their writes by switch, block of MLIDs, position and MLID.
	Stages [][]Write
	// Moves are MLIDs that are left for a fresh one, by From.
	Moves []Move
	// Interrupted is who loses packets meanwhile, by MLID.
	Interrupted []Interruption
	// Stop is senders that must be quiet before the first stage begins, and
	// Start those that must not send before the last has been confirmed: the new
	// masks do not suit the former, the old ones not the latter. By MLID and
	// port.
	Stop, Start []MLIDSender
	// Result is the plan that is in force in the end: the new one, but for MLIDs
	// that Moves have changed.
	Result *Plan
}

// Move says that members of the groups of an MLID go over to another one, whose
// masks stand when stage After, counted from 1, has been confirmed; the next
// stage clears the masks of From. A host attaches its queue pairs to an MLID
// as well as to an MGID, so receivers must be told before senders are.
type Move struct {
	From, To fabric.LID
	After    int
}

// Interruption is an MLID on which old members that stay lose packets.
type Interruption struct {
	MLID fabric.LID
	// From and To are the first and the last stage, from 1, while which packets
	// may be lost.
	From, To int
	// Receivers is who may miss packets, of some senders at least, ascending.
	Receivers []fabric.PortID
	// Pairs is how many (sender, receiver) that is. Faulty ones are not counted.
	Pairs int
	// Faulty says that the old masks themselves loop or duplicate for their
	// senders, which ends with stage From.
	Faulty bool
	// Reason is what packets can do by the old masks when they are faulty, else
	// what they could do if all masks were written at once.
	Reason string
}

// MLIDSender is an end port that sends to an MLID.
type MLIDSender struct {
	MLID fabric.LID
	Port fabric.PortID
}

// UpdateOptions are what a caller may ask of PlanUpdate.
type UpdateOptions struct {
	// Fresh is MLIDs without masks in the old and the new tables. An MLID that
	// would be interrupted is left for one of them, as long as there are any:
	// those first for which most (sender, receiver) pairs would lose packets.
	Fresh []fabric.LID
}

// UnsafeError says that masks loop or duplicate.
type UnsafeError struct {
	MLID fabric.LID
	// Stage is that of the Update while which it can happen, from 1; 0 for
	// the tables that are to be reached.
	Stage  int
	Sender fabric.PortID
	// At is the port of a switch by which a copy can leave that has passed
	// there before (Loop), or after another one has.
	At   fabric.PortID
	Loop bool
	// Undecided says that there are too many ways to follow them all.
	Undecided bool

	fab *fabric.Fabric
}

func (e *UnsafeError) Error() string {
	when := "the new masks"
	if e.Stage > 0 {
		when = fmt.Sprintf("the masks while stage %d", e.Stage)
	}
	return fmt.Sprintf("MLID %#04x: %s: %s", uint16(e.MLID), when, e.what())
}

// what is the harm, without the MLID and the stage.
func (e *UnsafeError) what() string {
	from, at := e.fab.PortName(e.Sender), e.fab.PortName(e.At)
	switch {
	case e.Undecided:
		return "packets from " + from + " have more ways than can be followed"
	case e.Loop:
		return "packets from " + from + " can loop through " + at
	}
	return "packets from " + from + " can leave " + at + " twice"
}

// PlanUpdate orders the writes that take a fabric from the old tables to the
// new ones, so that in no state between does a packet loop or arrive twice,
// whoever of the old or the new senders sends it, and in few stages. That holds
// for every subset of the writes of a stage, and also for a packet that meets
// some switches before their write and others after it.
//
// Each MLID is planned by itself; all of them go through their stages together.
// It takes the first of these ways that is safe and, but for the last, keeps
// old members that stay supplied exactly once:
//
//  1. The links of the old and the new masks together have no cycle (join and
//     leave on one tree), or it is proven otherwise that no mixture does harm:
//     one stage.
//  2. Masks of switches to which no packet comes are written first, then those
//     at which the old and the new paths part, in stages that are proven each,
//     and last those to which no packet comes any more. This needs paths that
//     part at one switch for a receiver: trees of one sender, mostly. The
//     search is greedy: it may miss an order.
//  3. A fresh MLID of UpdateOptions, where members can be moved.
//  4. Ports that are not in the new masks are taken out where packets come, and
//     then those that are not in the old ones put in: two stages, or more where
//     way 2 goes part of the way and fewer pairs lose packets for it. Old
//     members whose paths stay as they are keep their packets.
//     Update.Interrupted says who does not.
//
// Members that join or leave get each packet once at most meanwhile. Where the
// old masks loop or duplicate for an old sender, ports go out and then in
// as in way 4, and Update.Interrupted calls the MLID faulty.
//
// An MLID with masks but without a tree in a plan, as in a dump, is taken to
// have all end ports in its masks as senders and receivers, of any MGID.
//
// Old and new tables need the same nodes; cables are those of the new fabric.
// Errors: an *UnsafeError when the new masks loop or duplicate packets of their
// own senders, other errors for fabrics that differ and for MLIDs that are not
// fresh, and ctx's error when that ends first.
//
// It takes time linear in the ports of masks that change, times the senders
// when there are cycles; way 2 also times the square of the masks at which paths
// part. The result is the same on any number of CPUs.
func PlanUpdate(ctx context.Context, old, new *Plan, opt UpdateOptions) (*Update, error) {
	f := new.Tables.Fabric()
	if err := sameNodes(old.Tables.Fabric(), f); err != nil {
		return nil, err
	}
	fresh, err := checkFresh(old.Tables, new.Tables, opt.Fresh)
	if err != nil {
		return nil, err
	}
	changed := changedMLIDs(old.Tables, new.Tables)
	oldTrees, newTrees := byMLID(old.Trees), byMLID(new.Trees)
	list := make([]mlidUpdate, len(changed))
	err = parallel(ctx, len(changed), func() func(int) {
		w := newUpdater(f)
		return func(i int) {
			m := changed[i]
			w.load(m, old.Tables.Ports(m), new.Tables.Ports(m), nil, treesOf(oldTrees, m), treesOf(newTrees, m))
			list[i] = w.plan()
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].err != nil {
			return nil, list[i].err
		}
	}
	u := &Update{Result: new}
	u.takeFresh(list, old.Tables, new, fresh)
	for i := range list {
		x := &list[i]
		for k, stage := range x.stages {
			if k == len(u.Stages) {
				u.Stages = append(u.Stages, nil)
			}
			u.Stages[k] = append(u.Stages[k], stage...)
		}
		if x.interruption != nil {
			u.Interrupted = append(u.Interrupted, *x.interruption)
		}
		u.Stop = append(u.Stop, x.stop...)
		u.Start = append(u.Start, x.start...)
	}
	for _, stage := range u.Stages {
		slices.SortFunc(stage, compareWrites)
	}
	return u, nil
}

// compareWrites puts writes together that one SMP can do.
func compareWrites(a, b Write) int {
	return cmp.Or(
		cmp.Compare(a.Switch, b.Switch),
		cmp.Compare(a.block(), b.block()),
		cmp.Compare(a.Position, b.Position),
		cmp.Compare(a.MLID, b.MLID),
	)
}

func (w *Write) block() fabric.LID { return (w.MLID - MinMLID) / BlockMLIDs }

// sameNodes says whether PortIDs mean the same ports in both.
func sameNodes(a, b *fabric.Fabric) error {
	if a == b {
		return nil
	}
	if a.NumNodes() != b.NumNodes() || a.NumSwitches() != b.NumSwitches() || a.NumPorts() != b.NumPorts() {
		return errors.New("old and new tables are for different switches and hosts; want the same nodes in both fabrics")
	}
	for n := range fabric.NodeID(a.NumNodes()) {
		if x, y := a.Node(n), b.Node(n); x.GUID != y.GUID || x.NumPorts != y.NumPorts || x.Type != y.Type {
			return fmt.Errorf("the old tables have node %s with %d ports where the new ones have %s with %d; want the same nodes in both fabrics",
				x.GUID, x.NumPorts, y.GUID, y.NumPorts)
		}
	}
	return nil
}

// checkFresh is the fresh MLIDs, ascending.
func checkFresh(old, new *Tables, list []fabric.LID) ([]fabric.LID, error) {
	list = slices.Clone(list)
	slices.Sort(list)
	for i, m := range list {
		switch {
		case m < MinMLID || m > MaxMLID:
			return nil, fmt.Errorf("fresh MLID %#04x, want %#04x to %#04x", uint16(m), uint16(MinMLID), uint16(MaxMLID))
		case i > 0 && list[i-1] == m:
			return nil, fmt.Errorf("fresh MLID %#04x twice", uint16(m))
		case has(old, m) || has(new, m):
			return nil, fmt.Errorf("MLID %#04x is not fresh: it has masks", uint16(m))
		}
	}
	return list, nil
}

func has(t *Tables, m fabric.LID) bool {
	_, ok := slices.BinarySearch(t.mlids, m)
	return ok
}

// changedMLIDs is the MLIDs with other masks in one table than in the other,
// ascending.
func changedMLIDs(a, b *Tables) []fabric.LID {
	var list []fabric.LID
	i, k := 0, 0
	for i < len(a.mlids) || k < len(b.mlids) {
		var m fabric.LID
		switch {
		case i == len(a.mlids):
			m = b.mlids[k]
		case k == len(b.mlids):
			m = a.mlids[i]
		default:
			m = min(a.mlids[i], b.mlids[k])
		}
		var x, y []fabric.PortID
		if i < len(a.mlids) && a.mlids[i] == m {
			x = a.ports[a.start[i]:a.start[i+1]]
			i++
		}
		if k < len(b.mlids) && b.mlids[k] == m {
			y = b.ports[b.start[k]:b.start[k+1]]
			k++
		}
		if !slices.Equal(x, y) {
			list = append(list, m)
		}
	}
	return list
}

// byMLID is the trees by MLID, ascending, those of one MLID in the order that
// they have.
func byMLID(trees []Tree) []Tree {
	order := func(a, b Tree) int { return cmp.Compare(a.MLID, b.MLID) }
	if !slices.IsSortedFunc(trees, order) {
		trees = slices.Clone(trees)
		slices.SortStableFunc(trees, order)
	}
	return trees
}

// treesOf is the trees of one MLID.
func treesOf(trees []Tree, m fabric.LID) []Tree {
	order := func(t Tree, m fabric.LID) int { return cmp.Compare(t.MLID, m) }
	from, _ := slices.BinarySearchFunc(trees, m, order)
	to := from
	for to < len(trees) && trees[to].MLID == m {
		to++
	}
	return trees[from:to]
}

// takeFresh gives fresh MLIDs to those that would be interrupted.
func (u *Update) takeFresh(list []mlidUpdate, old *Tables, new *Plan, fresh []fabric.LID) {
	if len(fresh) == 0 {
		return
	}
	var worst []int
	for i := range list {
		if x := list[i].interruption; x != nil && x.Pairs > 0 {
			worst = append(worst, i)
		}
	}
	slices.SortStableFunc(worst, func(a, b int) int {
		return cmp.Compare(list[b].interruption.Pairs, list[a].interruption.Pairs)
	})
	worst = worst[:min(len(worst), len(fresh))]
	if len(worst) == 0 {
		return
	}
	for k, i := range worst {
		x := &list[i]
		u.Moves = append(u.Moves, Move{From: x.mlid, To: fresh[k], After: 1})
		x.interruption = nil
		// Every sender has masks that suit it on either MLID.
		x.stop, x.start = nil, nil
		x.stages = [][]Write{
			allWrites(new.Tables, x.mlid, fresh[k], false),
			allWrites(old, x.mlid, x.mlid, true),
		}
	}
	slices.SortFunc(u.Moves, func(a, b Move) int { return cmp.Compare(a.From, b.From) })
	u.Result = moved(new, u.Moves)
}

// allWrites sets, or clears, the ports that MLID m has in t, as those of MLID
// as.
func allWrites(t *Tables, m, as fabric.LID, clear bool) []Write {
	var list []Write
	ports := t.Ports(m)
	for len(ports) > 0 {
		s, first := t.fab.Owner(ports[0]), cellStart(t.fab, ports[0])
		n := 1
		for n < len(ports) && t.fab.Owner(ports[n]) == s && ports[n] < first+PositionPorts {
			n++
		}
		w := Write{Switch: s, MLID: as, Position: uint8(t.fab.Num(first) / PositionPorts), Ports: ports[:n:n]}
		if clear {
			w.Ports = nil
		}
		list = append(list, w)
		ports = ports[n:]
	}
	return list
}

// cellStart is the first of the ports that are written together with p.
func cellStart(f *fabric.Fabric, p fabric.PortID) fabric.PortID {
	return p - fabric.PortID(f.Num(p)%PositionPorts)
}

// moved is a plan whose trees have changed their MLIDs.
func moved(p *Plan, moves []Move) *Plan {
	to := make(map[fabric.LID]fabric.LID, len(moves))
	for _, m := range moves {
		to[m.From] = m.To
	}
	q := &Plan{Trees: slices.Clone(p.Trees), Notes: p.Notes}
	for i := range q.Trees {
		if m, ok := to[q.Trees[i].MLID]; ok {
			q.Trees[i].MLID = m
		}
	}
	slices.SortStableFunc(q.Trees, func(a, b Tree) int { return cmp.Compare(a.MLID, b.MLID) })
	list := make([]masks, 0, len(p.Tables.mlids))
	for _, m := range p.Tables.mlids {
		ports := p.Tables.Ports(m)
		if t, ok := to[m]; ok {
			m = t
		}
		list = append(list, masks{m, ports})
	}
	slices.SortFunc(list, func(a, b masks) int { return cmp.Compare(a.mlid, b.mlid) })
	q.Tables = NewTables(p.Tables.fab)
	for _, m := range list {
		q.Tables.Add(m.mlid, m.ports)
	}
	return q
}

// After is the tables in force when n stages have been confirmed, if old was
// before.
func (u *Update) After(old *Tables, n int) *Tables {
	type numbered struct {
		*Write
		stage int
	}
	var writes []numbered
	for i, stage := range u.Stages[:n] {
		for k := range stage {
			writes = append(writes, numbered{&stage[k], i})
		}
	}
	slices.SortFunc(writes, func(a, b numbered) int {
		return cmp.Or(cmp.Compare(a.MLID, b.MLID), compareWrites(*a.Write, *b.Write), cmp.Compare(b.stage, a.stage))
	})
	writes = slices.CompactFunc(writes, func(a, b numbered) bool { return compareWrites(*a.Write, *b.Write) == 0 })
	f := old.fab
	t := NewTables(f)
	mlids := old.mlids
	var ports []fabric.PortID
	for len(writes) > 0 || len(mlids) > 0 {
		if len(writes) == 0 || len(mlids) > 0 && mlids[0] < writes[0].MLID {
			t.Add(mlids[0], old.Ports(mlids[0]))
			mlids = mlids[1:]
			continue
		}
		m := writes[0].MLID
		rest := old.Ports(m)
		ports = ports[:0]
		for ; len(writes) > 0 && writes[0].MLID == m; writes = writes[1:] {
			first := f.Port(writes[0].Switch, fabric.PortNum(writes[0].Position)*PositionPorts)
			from, _ := slices.BinarySearch(rest, first)
			ports = append(append(ports, rest[:from]...), writes[0].Ports...)
			for from < len(rest) && cellStart(f, rest[from]) == first {
				from++
			}
			rest = rest[from:]
		}
		t.Add(m, append(ports, rest...))
		if len(mlids) > 0 && mlids[0] == m {
			mlids = mlids[1:]
		}
	}
	return t
}

// Writes is how many writes there are in all stages.
func (u *Update) Writes() int {
	n := 0
	for _, stage := range u.Stages {
		n += len(stage)
	}
	return n
}

// SMPs is how many SMPs the stage with index i takes when those writes go
// together that can: one for each switch, block of MLIDs and position.
func (u *Update) SMPs(i int) int {
	n := 0
	stage := u.Stages[i]
	for k := range stage {
		if w := &stage[k]; k == 0 || w.Switch != stage[k-1].Switch || w.block() != stage[k-1].block() || w.Position != stage[k-1].Position {
			n++
		}
	}
	return n
}

// Lines is the order in words, a line at a time, for operators.
func (u *Update) Lines() iter.Seq[string] {
	return func(yield func(string) bool) {
		f := u.Result.Tables.Fabric()
		if len(u.Stages) == 0 {
			yield("no masks change")
			return
		}
		for i := range u.Interrupted {
			x := &u.Interrupted[i]
			line := fmt.Sprintf("MLID %#04x: faulty until stage %d is confirmed: %s", uint16(x.MLID), x.From, x.Reason)
			if !x.Faulty {
				line = fmt.Sprintf("MLID %#04x: interrupted from stage %d to %d, %s; written at once, %s",
					uint16(x.MLID), x.From, x.To, count(x.Pairs, "(sender, receiver) pair"), x.Reason)
			}
			if !yield(line) {
				return
			}
			for _, p := range x.Receivers {
				if !yield("\t" + f.PortName(p) + " may miss packets") {
					return
				}
			}
		}
		for _, s := range u.Stop {
			if !yield(fmt.Sprintf("MLID %#04x: %s must not send any more when stage 1 begins", uint16(s.MLID), f.PortName(s.Port))) {
				return
			}
		}
		moves := u.Moves
		var line []byte
		for i, stage := range u.Stages {
			if !yield(fmt.Sprintf("stage %d of %d: %s in %s, in any order", i+1, len(u.Stages), count(len(stage), "write"), count(u.SMPs(i), "SMP"))) {
				return
			}
			for k := range stage {
				w := &stage[k]
				n := f.Node(w.Switch)
				line = fmt.Appendf(line[:0], "\t%s %q MLID %#04x position %d: ", n.GUID, f.Name(w.Switch).Text, uint16(w.MLID), w.Position)
				if len(w.Ports) == 0 {
					line = append(line, "no ports"...)
				} else {
					line = append(line, "ports"...)
					for _, p := range w.Ports {
						line = fmt.Appendf(line, " %d", f.Num(p))
					}
				}
				if !yield(string(line)) {
					return
				}
			}
			for _, m := range moves {
				if m.After == i+1 && !yield(fmt.Sprintf("members of MLID %#04x go to %#04x, receivers first", uint16(m.From), uint16(m.To))) {
					return
				}
			}
		}
		for _, s := range u.Start {
			if !yield(fmt.Sprintf("MLID %#04x: %s may send from now on", uint16(s.MLID), f.PortName(s.Port))) {
				return
			}
		}
	}
}
