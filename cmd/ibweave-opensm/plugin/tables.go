package plugin

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

// Tables is a verified routing, for OpenSM to write.
type Tables struct {
	Engine  string // OpenSM's name of the engine; for auto, of the chosen one
	Fabric  *fabric.Fabric
	Routing *lft.Routing
	Verify  *verify.Result
	// Step says how they were made from the tables before.
	Step compile.Step
	// Rebalanced says that, in an unchanged subnet, they are a step towards balanced tables.
	Rebalanced bool
	// GUIDs is the GUID of each switch, by NodeID.
	GUIDs []fabric.GUID
	// LatePorts counts ports that have fewer VLs at this moment
	// than the SL-to-VL tables use, though they can have as many:
	// OpenSM cuts their tables until its next heavy sweep.
	LatePorts int
	// SweepAgain asks OpenSM to sweep again at once: if there are LatePorts, unless the
	// sweep before had the same, or if a Snapshot.Reroute changed masks.
	SweepAgain bool
	Timing     Timing

	result     *compile.Result
	asked      int // the engine that OpenSM asked for
	snapshot   *Snapshot
	pieces     *fabric.Components
	largest    int32 // index of the largest piece
	hops       *dump.Hops
	generation uint64
	fullMatrix bool
	ports      map[fabric.GUID]fabric.PortID // end ports by GUID, made when needed
}

// Timing is how long OpenSM waited for its callbacks, and for parts of them.
type Timing struct {
	Snapshot, Route, Verify time.Duration
	// Computing is all of the first callback, with the three above; Writing all
	// of the second.
	Computing, Writing time.Duration
}

// Total is the time inside both callbacks.
func (t *Timing) Total() time.Duration { return t.Computing + t.Writing }

// rest returns the time outside of snapshot, routing and verification: for checking
// OpenSM's room for the tables, and for writing.
func (t *Timing) rest() time.Duration { return t.Total() - t.Snapshot - t.Route - t.Verify }

// isFound returns false if OpenSM read tables from switches that differ from t.
func (t *Tables) isFound(s *Snapshot) bool {
	for i, row := range s.Found {
		if row == nil {
			continue
		}
		if n, ok := t.Fabric.SwitchByGUID(s.Nodes[i].GUID); ok {
			is := t.LFT(n)
			if _, blocks := lft.CountChanges(row[:min(len(row), len(is))], is); blocks > 0 {
				return false
			}
		}
	}
	return true
}

// equal returns true if both are the same subnet, in the same order, with the same
// options.
func (s *Snapshot) equal(o *Snapshot) bool {
	return o.Settings == s.Settings && o.MaxLID == s.MaxLID && slices.Equal(o.Nodes, s.Nodes) && slices.Equal(o.Ports, s.Ports)
}

// same returns true if both are the same tables of the same fabric, so that
// multicast masks for one are right for the other.
func (t *Tables) same(o *Tables) bool {
	f, g := t.Fabric, o.Fabric
	if t.Engine != o.Engine || !fabric.SameTopology(f, g) || (t.Routing.SL2VL == nil) != (o.Routing.SL2VL == nil) ||
		(t.Routing.PathSLs == nil) != (o.Routing.PathSLs == nil) {
		return false
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if f.LID(p) != g.LID(p) || f.LMC(p) != g.LMC(p) || f.PortGUID(p) != g.PortGUID(p) {
			return false
		}
	}
	for _, s := range f.Switches() {
		if !slices.Equal(t.LFT(s), o.LFT(s)) {
			return false
		}
		if p := t.Routing.PathSLs; p != nil && !slices.Equal(p.Row(s), o.Routing.PathSLs.Row(s)) {
			return false
		}
	}
	return t.Routing.SL2VL == nil || t.Routing.SL2VL.Equal(o.Routing.SL2VL)
}

// LFT is switch s's linear forwarding table, by LID up to Fabric.MaxLID.
func (t *Tables) LFT(s fabric.NodeID) []fabric.PortNum { return t.Routing.Tables.Row(s) }

// verdict returns the first error that the checker found, or else what it could not decide; nil
// if there is neither.
func verdict(v *verify.Result) error {
	var first *verify.Finding
	n := 0
	for i := range v.Findings {
		if v.Findings[i].Severity == verify.Error {
			if n++; first == nil {
				first = &v.Findings[i]
			}
		}
	}
	switch n {
	case 0:
		if len(v.Undecided) > 0 {
			return fmt.Errorf("its tables are undecided: %s: %s", v.Undecided[0].Rule, v.Undecided[0].Reason)
		}
		return nil
	case 1:
		return fmt.Errorf("its tables break a rule: %s: %s", first.Rule, first.Message)
	}
	return fmt.Errorf("its tables break rules, %d findings: %s: %s", n, first.Rule, first.Message)
}

// HopRow writes a row of OpenSM's lid matrix into hops,
// for Tables that WantsLIDMatrix: hops[i] is the count
// from switch s by its port i to the second switch, 255
// if that port does not lead there; hops[0] is the least.
//
// A count is one more than the length of the tables' path from the
// neighbour on the port, as in the dump of a compiled directory.
func (t *Tables) HopRow(s, to fabric.NodeID, hops []uint8) { t.hops.Row(s, to, hops) }

// ErrSwitches means that OpenSM's table of switches differs from the
// snapshot's, or has no room for the tables. Nothing has been written.
var ErrSwitches = &Error{Code: BadSubnet, Err: errors.New("OpenSM's switches have changed, or have no room for the tables")}

// switchGUIDs returns the GUID of each switch, by NodeID.
func switchGUIDs(f *fabric.Fabric) []fabric.GUID {
	return text.Each(f.Switches(), func(s fabric.NodeID) fabric.GUID { return f.Node(s).GUID })
}

// SwitchLIDs returns the base LID of each switch, by NodeID.
func (t *Tables) SwitchLIDs() []fabric.LID {
	return text.Each(t.Fabric.Switches(), func(s fabric.NodeID) fabric.LID { return t.Fabric.LID(t.Fabric.PortBase(s)) })
}

// WantsLIDMatrix returns true if OpenSM is about to read its
// lid matrix: to dump it (-D 0x40), or to build multicast
// trees. Nothing else reads it, and on large fabrics filling
// it takes longer than everything else together.
func (t *Tables) WantsLIDMatrix() bool { return t.snapshot.DumpsTables || t.fullMatrix }

// excuse turns errors about pairs that no cables join into notes, since no
// engine can join them: after lost packets OpenSM has a subnet in pieces until
// its next sweep. It returns a line about the pieces, "" if it excused nothing.
func excuse(c *fabric.Components, v *verify.Result) string {
	apart := []string{verify.Partitioned, verify.ManagementPartitioned}
	if !slices.ContainsFunc(v.Findings, func(f verify.Finding) bool { return slices.Contains(apart, f.Rule) }) {
		return ""
	}
	for _, rule := range apart {
		v.Regrade(rule, verify.Note)
	}
	return fmt.Sprintf("the subnet is in %d pieces that no cables join, and tables for each", len(c.List))
}
