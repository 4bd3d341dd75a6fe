// Package lft holds the unicast part of a subnet manager: LID assignment, linear forwarding
// tables, legal hop counts, and the contract between a routing engine and the rest of
// ibweave. It also has what engines share, such as the spreading of LIDs over equal ports,
// and the minhop engine. It is part of the supported Go API.
package lft

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
)

// BlockSize is the number of entries in one LinearForwardingTable attribute (IBA
// 14.2.5.10), which a subnet manager writes with one SMP.
const BlockSize = 64

// Tables holds the linear forwarding tables of all switches, one row of ports for each,
// indexed by LID, in one piece of memory. Rows are whole blocks.
type Tables struct {
	maxLID  fabric.LID
	stride  int
	entries []fabric.PortNum
}

// NewTables makes tables for LIDs 0 to maxLID with NoPath everywhere.
func NewTables(switches int, maxLID fabric.LID) *Tables {
	t := newTables(switches, maxLID)
	// Each call fills some megabytes: most of the time is the first touch of memory.
	const part = 4 << 20
	par.Each((len(t.entries)+part-1)/part, func(i int) {
		row := t.entries[i*part : min((i+1)*part, len(t.entries))]
		row[0] = fabric.NoPath
		for n := 1; n < len(row); n *= 2 {
			copy(row[n:], row[:n])
		}
	})
	return t
}

// CheckFabric returns an error if tables, SL-to-VL tables or path SLs do not fit f. Those
// that are nil are not checked; rows of tables may end before the highest LID of f.
func CheckFabric(f *fabric.Fabric, t *Tables, lanes *SL2VL, sls *PathSLs) error {
	switch {
	case t != nil && t.Switches() != f.NumSwitches():
		return fmt.Errorf("tables of %d switches for a fabric of %d", t.Switches(), f.NumSwitches())
	case lanes != nil && !fabric.SameNodes(lanes.Fabric(), f):
		return errors.New("SL-to-VL tables of other nodes than the fabric has")
	case sls != nil && (sls.Switches() != f.NumSwitches() || sls.MaxLID() < f.MaxLID()):
		return fmt.Errorf("path SLs of %d switches and LIDs up to %d for a fabric of %d and up to %d",
			sls.Switches(), sls.MaxLID(), f.NumSwitches(), f.MaxLID())
	}
	return nil
}

// newTables makes tables without values: the caller must write all entries.
func newTables(switches int, maxLID fabric.LID) *Tables {
	stride := (int(maxLID)/BlockSize + 1) * BlockSize
	return &Tables{maxLID: maxLID, stride: stride, entries: make([]fabric.PortNum, switches*stride)}
}

// Clone copies the tables.
func (t *Tables) Clone() *Tables {
	c := *t
	c.entries = slices.Clone(t.entries)
	return &c
}

// Switches returns the number of rows.
func (t *Tables) Switches() int { return len(t.entries) / t.stride }

// MaxLID returns the highest LID that rows have an entry for.
func (t *Tables) MaxLID() fabric.LID { return t.maxLID }

// Row returns switch s's table, indexed by LID, of length MaxLID+1. Its capacity extends to
// the end of the last block; entries there are NoPath.
func (t *Tables) Row(s fabric.NodeID) []fabric.PortNum {
	a := int(s) * t.stride
	return t.entries[a : a+int(t.maxLID)+1 : a+t.stride]
}

// Entry returns the entry of a row for a LID, NoPath if the row is shorter.
func Entry(row []fabric.PortNum, lid fabric.LID) fabric.PortNum {
	if int(lid) < len(row) {
		return row[lid]
	}
	return fabric.NoPath
}

// CountChanges counts the entries in which two rows differ, and the blocks of BlockSize
// that hold them. A shorter row counts as filled up with NoPath.
func CountChanges(old, row []fabric.PortNum) (entries, blocks int) {
	for from := 0; from < max(len(row), len(old)); from += BlockSize {
		was, is := blockAt(old, from), blockAt(row, from)
		if *is == *was {
			continue
		}
		blocks++
		for i := 0; i < BlockSize; i += 8 {
			differ := word(is, i) ^ word(was, i)
			const low = 0x7f7f7f7f7f7f7f7f
			entries += bits.OnesCount64(((differ&low + low) | differ) &^ low) // bytes that are not 0
		}
	}
	return entries, blocks
}

// word returns the 8 entries of a block from i on; the compiler reads them at once.
func word(b *[BlockSize]fabric.PortNum, i int) uint64 {
	x := (*[8]fabric.PortNum)(b[i:])
	return uint64(x[0]) | uint64(x[1])<<8 | uint64(x[2])<<16 | uint64(x[3])<<24 | uint64(x[4])<<32 | uint64(x[5])<<40 | uint64(x[6])<<48 | uint64(x[7])<<56
}

// blockAt returns the block of a row from a LID on, filled up with NoPath.
func blockAt(row []fabric.PortNum, from int) *[BlockSize]fabric.PortNum {
	if from+BlockSize <= len(row) {
		return (*[BlockSize]fabric.PortNum)(row[from:])
	}
	if from >= len(row) {
		return &emptyBlock
	}
	b := emptyBlock
	copy(b[:], row[from:])
	return &b
}

var emptyBlock = [BlockSize]fabric.PortNum(slices.Repeat([]fabric.PortNum{fabric.NoPath}, BlockSize))
