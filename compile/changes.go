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
// that prev did not have has all its entries to be written but those that are
// fabric.NoPath.
func ChangesSince(prev, r *lft.Routing) Changes {
	var c Changes
	f := r.Fabric
	for s := range fabric.NodeID(f.NumSwitches()) {
		var old []fabric.PortNum
		if was, ok := prev.Fabric.SwitchByGUID(f.Node(s).GUID); ok {
			old = prev.Tables.Row(was)
		}
		row := r.Tables.Row(s)
		block, any := -1, false
		for lid := range max(len(row), len(old)) {
			is, was := fabric.NoPath, fabric.NoPath
			if lid < len(row) {
				is = row[lid]
			}
			if lid < len(old) {
				was = old[lid]
			}
			if is == was {
				continue
			}
			c.Entries++
			any = true
			if b := lid / lft.BlockSize; b != block {
				block = b
				c.Blocks++
			}
		}
		if any {
			c.Switches++
		}
	}
	return c
}
