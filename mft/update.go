package mft

import (
	"cmp"
	"context"
	"errors"
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
	// Interrupted is who loses packets meanwhile, by MLID.
	Interrupted []Interruption
	// Stop is senders that must be quiet before the first stage begins, and
	// Start those that must not send before the last has been confirmed: the new
	// masks do not suit the former, the old ones not the latter. By MLID and
	// port.
	Stop, Start []MLIDSender
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
	// Reason is what packets do in the old masks when they are faulty, else what they do in old
	// and new masks together.
	Reason string
}

// MLIDSender is an end port that sends to an MLID.
type MLIDSender struct {
	MLID fabric.LID
	Port fabric.PortID
}

// PlanUpdate orders the writes that take a fabric from the old tables to the
// new ones, so that in no state between does a packet loop or arrive twice,
// whichever old or new sender sends it, and in few stages. That holds
// for every subset of the writes of a stage, and also for a packet that meets
// some switches before their write and others after it.
//
// Each MLID is planned by itself; all of them go through their stages together.
// If the links of the old and the new masks together have no cycle (join and leave on
// one tree), all is written in one stage: no mixture of them has another way from one
// port to another. Else ports that are not in the new masks are taken out first, and
// then those that are not in the old ones put in: masks are part of the old ones, and
// then part of the new ones, all the time. Old members whose paths stay as they
// are keep their packets. Update.Interrupted says who does not.
//
// Members that join or leave get each packet once at most meanwhile. Where the
// old masks loop or duplicate for an old sender, Update.Interrupted calls the MLID faulty.
//
// An MLID with masks but without a tree in a plan, as in a dump, is taken to
// have all end ports in its masks as senders and receivers, of any MGID.
//
// Old and new tables need the same nodes; cables are those of the new fabric.
// Errors: new masks that loop or duplicate packets of their own senders, fabrics
// that differ, and ctx's error when that ends first.
//
// It takes time linear in the ports of masks that change, times the senders
// when there are cycles.
func PlanUpdate(ctx context.Context, old, new *Plan) (*Update, error) {
	f := new.Tables.Fabric()
	if !fabric.SameNodes(old.Tables.Fabric(), f) {
		return nil, errors.New("old and new tables are for different switches and hosts; want the same nodes in both fabrics")
	}
	oldTrees, newTrees := treesByMLID(old.Trees), treesByMLID(new.Trees)
	w := newUpdatePlanner(f)
	for _, m := range changedMLIDs(old.Tables, new.Tables) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := w.plan(m, [2]*Tables{old.Tables, new.Tables}, [2][]*Tree{oldTrees[m], newTrees[m]}); err != nil {
			return nil, err
		}
	}
	for _, stage := range w.Stages {
		slices.SortFunc(stage, compareWrites)
	}
	return w.Update, nil
}

// compareWrites puts writes together that one SMP can do.
func compareWrites(a, b Write) int { return cmp.Or(compareSMPs(&a, &b), cmp.Compare(a.MLID, b.MLID)) }

// compareSMPs is 0 for writes that one SMP can do.
func compareSMPs(a, b *Write) int {
	return cmp.Or(
		cmp.Compare(a.Switch, b.Switch),
		cmp.Compare((a.MLID-MinMLID)/BlockMLIDs, (b.MLID-MinMLID)/BlockMLIDs),
		cmp.Compare(a.Position, b.Position),
	)
}

// SMPs is how many SMPs the stage with index i takes when those writes go
// together that can: one for each switch, block of MLIDs and position.
func (u *Update) SMPs(i int) int {
	n := 0
	stage := u.Stages[i]
	for k := range stage {
		if k == 0 || compareSMPs(&stage[k-1], &stage[k]) != 0 {
			n++
		}
	}
	return n
}

// changedMLIDs is the MLIDs with other masks in one table than in the other,
// ascending.
func changedMLIDs(a, b *Tables) []fabric.LID {
	list := slices.Concat(a.mlids, b.mlids)
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(m fabric.LID) bool { return slices.Equal(a.Ports(m), b.Ports(m)) })
}

// treesByMLID is the trees of each MLID.
func treesByMLID(trees []Tree) map[fabric.LID][]*Tree {
	m := make(map[fabric.LID][]*Tree, len(trees))
	for i := range trees {
		m[trees[i].MLID] = append(m[trees[i].MLID], &trees[i])
	}
	return m
}
