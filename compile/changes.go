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
		any := false
		for from := 0; from < max(len(row), len(old)); from += lft.BlockSize {
			is, was := entries(row, from), entries(old, from)
			if *is == *was {
				continue
			}
			any = true
			c.Blocks++
			for i := range is {
				if is[i] != was[i] {
					c.Entries++
				}
			}
		}
		if any {
			c.Switches++
		}
	}
	return c
}

// entries is the block of a row that begins with a LID.
func entries(row []fabric.PortNum, from int) *[lft.BlockSize]fabric.PortNum {
	if from+lft.BlockSize <= len(row) {
		return (*[lft.BlockSize]fabric.PortNum)(row[from:])
	}
	var b [lft.BlockSize]fabric.PortNum
	for i := range b {
		b[i] = fabric.NoPath
	}
	if from < len(row) {
		copy(b[:], row[from:])
	}
	return &b
}
