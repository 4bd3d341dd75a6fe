// Package state holds a fabric and everything that was read with it as one value: the cables, the
// tables, what was odd about them, and what they leave undecided. It is supported. Package open,
// below it, reads a State; package ibweave opens one for other modules.
package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/mft"
)

// Part is a part of a State, which files of one or several forms tell.
type Part string

// The parts, by the names that messages have for them.
const (
	Topology         Part = "topology"
	ForwardingTables Part = "forwarding tables"
	AdaptiveTables   Part = "adaptive routing"
	PLFTChoice       Part = "choice of private LFTs"
	SL2VLTables      Part = "SL-to-VL tables"
	SLsOfPaths       Part = "path SLs"
	MulticastTables  Part = "multicast tables"
	Groups           Part = "groups"
	PKeyTables       Part = "P_Key tables"
	Certificate      Part = "certificate"
	SwitchOrder      Part = "order of the switches"
	Names            Part = "names of nodes"
	PortCounters     Part = "counters"
)

// State is a fabric and what was read beside it. A part that was not read is nil. A State does not
// change once it is made: another one is a copy with other parts.
type State struct {
	Name   string // of the directory or the topology, for people
	Fabric *fabric.Fabric
	// Tables forwards unicast packets, and has rows for the switches of Fabric. Beside
	// Adaptive alone it is the static ports of PLFT 0.
	Tables   *lft.Tables
	Adaptive *adaptive.Tables // choices of adaptive switches
	// SL2VL has the lane of each hop; nil puts everything on one VL.
	SL2VL *lft.SL2VL
	// PathSLs has the SL of each path: packets from a CA or router port have that in the row of
	// the switch that the port is cabled to, packets from port 0 of a switch that in its own row.
	// Nil means that a port may send with any SL that its own SL-to-VL table does not drop, which
	// is the port's for CAs and routers, and that of input port 0 for switches; or, with
	// UnknownSLs, that paths have SLs which are not at hand. It has no effect without SL2VL.
	PathSLs    *lft.PathSLs
	UnknownSLs bool
	// Sampled tells, for parts that were not read as a whole, what was read and what the rest is assumed to be.
	Sampled map[Part]string
	// Multicast has the multicast tables, and a tree for each MLID of a group. Trees is nil
	// where no groups were read.
	Multicast *mft.Plan
	// MFTCapacity gives, by NodeID of switches, the number of MLIDs that a multicast table can hold, 0
	// if not known; nil if none is known.
	MFTCapacity []int
	// Order is the rank of each switch by NodeID, 0 on top; nil where none was read.
	Order []int32
	// PKeys has the entries in use of each P_Key table, by fabric.PortID; nil for a port
	// without a table, or where no table was read.
	PKeys [][]fabric.PKey
	// Manager is the port of the only master subnet manager, fabric.NoPort where that is not
	// known.
	Manager fabric.PortID
	// Unread marks, by NodeID, the switches whose tables could not be read; nil for none.
	Unread []bool
	// LostRows is true if the form of the forwarding tables has no row where there is no path,
	// so that a row that was lost cannot be told from one.
	LostRows bool

	Engine    string           // that made the tables; "" where it is not known
	Sources   []Source         // in the order of reading
	Problems  []fabric.Problem // what was odd, in the order of reading
	Undecided []Undecided      // what the input does not tell, in the order of reading
	Lines     *Lines           // where the files name nodes and ports; nil if it was not asked for
}

// Lines has the lines, from 1, of switches, adapters and their ports in the files of a State, for
// viewers that show findings beside the text.
type Lines struct {
	Topology, Tables string              // the files; of tables that are to be looked at
	topology.Lines                       // in the topology
	Switches         map[fabric.GUID]int // in the tables: where the table of a switch begins
}

// Source is a file that a part was read from.
type Source struct {
	Part   Part
	File   string
	Form   string // as ibweave help forms lists it
	SHA256 string // of the file as it is, in hexadecimal; "" if it was not asked for
}

// Source returns where a part was read from, and whether it was read.
func (s *State) Source(p Part) (Source, bool) {
	i := slices.IndexFunc(s.Sources, func(x Source) bool { return x.Part == p })
	if i < 0 {
		return Source{}, false
	}
	return s.Sources[i], true
}

// Of is the state of a routing.
func Of(r *lft.Routing) *State {
	return &State{Engine: r.Engine, Fabric: r.Fabric, Tables: r.Tables, Order: r.Order, SL2VL: r.SL2VL, PathSLs: r.PathSLs, Manager: fabric.NoPort}
}

// Routing returns the unicast tables with their lanes, as engines return them.
func (s *State) Routing() *lft.Routing {
	return &lft.Routing{Engine: s.Engine, Fabric: s.Fabric, Tables: s.Tables, Order: s.Order, SL2VL: s.SL2VL, PathSLs: s.PathSLs}
}

// errNoFabric is the error of a State without a fabric.
var errNoFabric = errors.New("no fabric")

// Check returns an error for a State without a fabric, and for parts of another fabric.
func (s *State) Check() error {
	f := s.Fabric
	if f == nil {
		return errNoFabric
	}
	err := lft.CheckFabric(f, s.Tables, s.SL2VL, s.PathSLs)
	switch {
	case err != nil:
	case s.Multicast != nil && !fabric.SameNodes(s.Multicast.Tables.Fabric(), f):
		err = errors.New("multicast tables of other nodes than the fabric has")
	case s.Unread != nil && len(s.Unread) != f.NumSwitches():
		err = fmt.Errorf("%d switches read or not, of %d", len(s.Unread), f.NumSwitches())
	case s.Adaptive != nil:
		err = s.Adaptive.Check(f)
	}
	if err != nil && s.Name != "" {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	return err
}

// Undecided is a reason for which nothing can be said of a part, or not all.
type Undecided struct {
	Part Part
	// Kind is fabric.Dropped for text that was left out or cut off, fabric.Missing for what is not
	// there, fabric.MissingEnds for tables of CA and router ports, or fabric.PrivateTables.
	Kind   fabric.ProblemKind
	Reason string
}

// UndecidedBy lists what the problems of a file of a part leave undecided: text that was left
// out or cut off, switches and ports without tables, private LFTs. There is one for each kind
// of problem, which quotes the first.
func UndecidedBy(p Part, problems []fabric.Problem) (list []Undecided) {
	type reason struct {
		Undecided
		n int
	}
	byKind := map[fabric.ProblemKind]*reason{}
	for i := range problems {
		x := &problems[i]
		kind, what := x.Kind, x.File+": "+x.Message
		switch x.Kind {
		case fabric.Dropped, fabric.Truncated:
			kind, what = fabric.Dropped, x.File+": --lenient left something out: "+x.Message
			if x.Line > 0 && p == Topology && x.Err == nil {
				what = fmt.Sprintf("%s:%d: --lenient left something out: %s", x.File, x.Line, x.Message)
			} else if x.Line > 0 {
				what = fmt.Sprintf("%s:%d: --lenient left this out: %s", x.File, x.Line, x.Message)
			}
		case fabric.Missing, fabric.MissingEnds, fabric.PrivateTables:
		default:
			continue
		}
		if byKind[kind] == nil {
			byKind[kind] = &reason{Undecided: Undecided{p, kind, what}}
		}
		if byKind[kind].n++; x.Err == nil { // of a topology, where one stands for several lines
			byKind[kind].n += max(x.Count, 1) - 1
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		r := byKind[kind]
		if r.n > 1 {
			r.Reason += fmt.Sprintf("; and %d more like that", r.n-1)
		}
		list = append(list, r.Undecided)
	}
	return list
}
