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
