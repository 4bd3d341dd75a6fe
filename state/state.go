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

// Part names a part of a State. Each comes from files of one or several forms.
type Part string

// The parts, by their names in messages.
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

// State is a fabric and what was read beside it. A part that was not
// read is nil. A State is immutable: to change a part, copy the State.
type State struct {
	Name   string // of the directory or the topology, for messages
	Fabric *fabric.Fabric
	// Tables has the LFTs of the switches of Fabric. If only
	// Adaptive was read, it has the static ports of PLFT 0.
	Tables   *lft.Tables
	Adaptive *adaptive.Tables // port choices of adaptive switches
	// SL2VL has the VL of each hop; nil puts everything on one VL.
	SL2VL *lft.SL2VL
	// PathSLs has the SL of each path. Packets from a CA or router port take
	// their SL from the row of the switch that the port is cabled to, packets
	// from port 0 of a switch from that switch's row. If PathSLs is nil, a port
	// may send with each SL that its own SL-to-VL table does not drop (port 0
	// of a switch: the table of input port 0). But if UnknownSLs is set, paths
	// have SLs that were not read. Without SL2VL, PathSLs has no effect.
	PathSLs    *lft.PathSLs
	UnknownSLs bool
	// Sampled states what was read of each sampled part, and what is assumed of the rest.
	Sampled map[Part]string
	// Multicast has the multicast tables, and a tree for each
	// MLID of a group. Trees is nil if no groups were read.
	Multicast *mft.Plan
	// MFTCapacity has, by NodeID, the number of MLIDs that a switch's
	// multicast table can hold, 0 if unknown; nil if all are unknown.
	MFTCapacity []int
	// Order is the rank of each switch by NodeID, 0 on top; nil if none was read.
	Order []int32
	// PKeys has the entries in use of each P_Key table, by fabric.PortID;
	// nil for a port without a table, or if no table was read.
	PKeys [][]fabric.PKey
	// Manager is the port of the master subnet manager,
	// fabric.NoPort if it is unknown or there are several.
	Manager fabric.PortID
	// Unread marks, by NodeID, the switches whose tables could not be read; nil for none.
	Unread []bool
	// LostRows is true if the form of the forwarding tables omits
	// rows without a path. A row that got lost then looks the same.
	LostRows bool

	Engine    string           // that made the tables; "" where it is not known
	Sources   []Source         // in the order of reading
	Problems  []fabric.Problem // what was odd, in the order of reading
	Undecided []Undecided      // what the input leaves undecided, in the order of reading
	Lines     *Lines           // where files name nodes and ports; nil if it was not asked for
}

// Lines has the lines, from 1, of nodes and their ports in the
// files of a State, for viewers that show findings beside the text.
type Lines struct {
	Topology, Tables string              // the files; Tables has LFTs or adaptive tables
	topology.Lines                       // in the file Topology
	Switches         map[fabric.GUID]int // in the file Tables: where the table of a switch begins
}

// Source is a file that a part was read from.
type Source struct {
	Part   Part
	File   string
	Form   string // as ibweave help forms lists it
	SHA256 string // of the file's bytes, in hexadecimal; "" if it was not asked for
}

// Source returns where part p was read from, false if it was not read.
func (s *State) Source(p Part) (Source, bool) {
	i := slices.IndexFunc(s.Sources, func(x Source) bool { return x.Part == p })
	if i < 0 {
		return Source{}, false
	}
	return s.Sources[i], true
}

// Of returns a state with the unicast tables and lanes of a routing.
func Of(r *lft.Routing) *State {
	return &State{Engine: r.Engine, Fabric: r.Fabric, Tables: r.Tables, Order: r.Order, SL2VL: r.SL2VL, PathSLs: r.PathSLs, Manager: fabric.NoPort}
}

// Routing returns the unicast tables and lanes of s, as an engine would.
func (s *State) Routing() *lft.Routing {
	return &lft.Routing{Engine: s.Engine, Fabric: s.Fabric, Tables: s.Tables, Order: s.Order, SL2VL: s.SL2VL, PathSLs: s.PathSLs}
}

// errNoFabric is the error of a State without a fabric.
var errNoFabric = errors.New("no fabric")

// Check returns an error if s has no fabric, or a part that belongs to another fabric.
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

// Undecided is a reason why nothing, or not all, can be said about a part.
type Undecided struct {
	Part Part
	// Kind is fabric.Dropped for text left out or cut off, fabric.Missing for missing
	// tables, fabric.MissingEnds for those of CA and router ports, or fabric.PrivateTables.
	Kind   fabric.ProblemKind
	Reason string
}

// UndecidedBy returns what the problems of a part's file leave undecided: text
// that was left out or cut off, switches and ports without tables, private
// LFTs. It returns one element per kind of problem, which quotes the first.
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
		if byKind[kind].n++; x.Err == nil { // a problem of a topology stands for several lines
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
