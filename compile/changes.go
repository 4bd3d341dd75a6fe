package compile

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Changes is what a subnet manager has to write where tables of prev are in force:
// entries, the blocks of lft.BlockSize of them that a single packet carries, and the
// switches that have some.
type Changes struct {
	Entries  int `json:"entries"`
	Blocks   int `json:"blocks"`
	Switches int `json:"switches"`
}

// ChangesSince compares the tables of r with those of prev, switches by GUID. A switch
// that prev did not have has all its entries to be written except those that are
// fabric.NoPath. A switch without a LID or without a cable can have nothing written.
func ChangesSince(prev, r *lft.Routing) Changes {
	var c Changes
	f := r.Fabric
	for s := range fabric.NodeID(f.NumSwitches()) {
		if f.LID(f.PortBase(s)) == 0 || !f.HasCable(s) {
			continue
		}
		var old []fabric.PortNum
		if was, ok := prev.Fabric.SwitchByGUID(f.Node(s).GUID); ok {
			old = prev.Tables.Row(was)
		}
		entries, blocks := lft.CountChanges(old, r.Tables.Row(s))
		c.Entries += entries
		c.Blocks += blocks
		if blocks > 0 {
			c.Switches++
		}
	}
	return c
}

// LeastChanges bounds from below what any routing of next's fabric must change of the
// tables of prev, in blocks.
//
// used counts those with an entry for a LID that is still there by a cable that is gone:
// whatever the routing, such an entry cannot stay.
//
// short counts besides those with an entry that leads to a switch from which, by the
// cables that there are, the way on is longer than next's way from here leaves room for.
// No routing keeps such an entry whose ways are nowhere longer than next's, in whatever
// order or by whatever rule it goes. So it is a bound for all that do as well as next for
// the packets; one that sends them round farther may keep more.
//
// It takes O(switches x LIDs).
func LeastChanges(prev, next *lft.Routing) (used, short int) {
	f, g := prev.Fabric, next.Fabric
	dist := g.Distances()
	n := g.NumSwitches()
	was := make([]fabric.NodeID, n) // by switch of g, in f
	for s := range was {
		was[s] = fabric.NoNode
		if old, ok := f.SwitchByGUID(g.Node(fabric.NodeID(s)).GUID); ok {
			was[s] = old
		}
	}
	// By switch and port: where the port leads in g if it led there in f.
	const gone = fabric.NodeID(-2)
	to := make([][]fabric.NodeID, n)
	for s := range fabric.NodeID(n) {
		to[s] = make([]fabric.NodeID, 256)
		for num := range to[s] {
			to[s][num] = fabric.NoNode
		}
		if was[s] == fabric.NoNode {
			continue
		}
		for num := fabric.PortNum(1); num <= min(g.Node(s).NumPorts, f.Node(was[s]).NumPorts); num++ {
			before, after := f.Peer(f.Port(was[s], num)), g.Peer(g.Port(s, num))
			switch {
			case before == fabric.NoPort:
			case after == fabric.NoPort || f.Num(before) != g.Num(after) || f.Node(f.Owner(before)).GUID != g.Node(g.Owner(after)).GUID:
				to[s][num] = gone
			case g.IsSwitch(g.Owner(after)):
				to[s][num] = g.Owner(after)
			}
		}
	}
	blocks := (int(g.MaxLID()))/lft.BlockSize + 1
	mark := make([]uint8, n*blocks) // 1: short, 2: used
	length := make([]int32, n)
	forest := lft.NewForest(g)
	for lid := range g.LIDPorts() {
		forest.FindTree(next.Tables, fabric.LID(lid))
		for i, s := range forest.Order {
			if i > 0 {
				length[s] = length[g.Owner(g.Peer(forest.Next[s]))] + 1
			} else {
				length[s] = 0
			}
		}
		for i, s := range forest.Order {
			if was[s] == fabric.NoNode || lid > int(prev.Tables.MaxLID()) {
				continue
			}
			at := &mark[int(s)*blocks+lid/lft.BlockSize]
			switch v := to[s][prev.Tables.Row(was[s])[lid]]; {
			case v == gone:
				*at = 2
			case v >= 0 && i > 0 && int32(dist.To(forest.Order[0])[v])+1 > length[s]:
				*at = max(*at, 1)
			}
		}
	}
	for _, m := range mark {
		if m == 2 {
			used++
		}
		if m > 0 {
			short++
		}
	}
	return used, short
}
