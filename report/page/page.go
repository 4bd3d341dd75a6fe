// Package page draws a fabric, its tables and verify's findings, as one HTML page that needs
// only a browser, and as single pictures. It makes no promise to other modules.
//
// An operator sees where a path goes, which cable is hot, and what a credit loop looks like.
// The caller gives coordinates and levels of switches: the package knows no engine. Pictures
// are for systems other than browsers. The same input gives the same bytes, on any number of
// CPUs.
package page

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// DefaultMaxEntries is the default for Input.MaxEntries: 5,000 switches and 13,000 end ports.
// A browser needs a byte for each entry.
const DefaultMaxEntries = 64 << 20

// MostInteractive is the greatest number of table entries for which a page can try changes:
// 2,500 switches and 6,500 end ports. With more, a step takes a browser a minute.
const MostInteractive = 16 << 20

// Input is what a page or a picture shows. Only Fabric and Result are required.
type Input struct {
	Title   string // of the page, such as the name of a file
	Version string // of ibweave
	Shape   string // describes the fabric's shape; "" if not asked for

	// State has the fabric, its tables and lanes, and the name that is shown if there is an
	// Old. Loads are those of Tables, even with adaptive choices.
	*state.State

	Result *verify.Result
	Rules  []verify.Rule // they explain the findings

	// Routes is lft.ChannelLoads of Tables; nil if the caller does not have it.
	Routes []int64

	// Counters are values that cables can show, besides those that follow from the tables.
	Counters []Counter
	// Cables names what cables show: routes, bound, trees, choices or a Counter; "" for the
	// first of these that exists.
	Cables string

	// Grid has the coordinates of switches on a mesh or torus; else nil.
	Grid *Grid
	// Levels has, by switch, its level in a tree, 0 for leaves; nil if there are none: the
	// drawing then uses distances.
	Levels []int32

	// Old, if not nil, is another state to compare with.
	Old *Old
	// Groupings are groups of hosts that the user can close to boxes, besides pods.
	Groupings []Grouping

	// Base, if not nil, lets the page try changes: it is the data that package session packed.
	Base []byte
	// Compiler is the compiler that runs on Base: WebAssembly, as gzip.
	Compiler []byte

	// MaxEntries bounds the entries of forwarding tables in a page; 0 means DefaultMaxEntries.
	// If there are more, the page shows no paths and says why.
	MaxEntries int64
}

// Counter is a counter of ports.
type Counter struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"` // per time, for a rate
	Values []float64 `json:"-"`    // by PortID: of packets that leave there, or of the port; < 0: unknown

	// FromTables is true if the values depend on the tables: then trying a change drops the
	// counter.
	FromTables bool `json:"tables,omitempty"`
}

// Grid is the coordinates of switches.
type Grid struct {
	Dims  []int
	Wrap  []bool  // by dimension: it is a ring
	Coord []int16 // by switch and dimension, 0 to Dims-1
}

// Old is an earlier state than the Input.
type Old struct {
	*Input // its Old is nil
	// Both has the nodes and cables of both states, joined by Union, with coordinates or
	// levels. Nodes take its places and groups in both states.
	Both *Input
	// Replaced maps each old node to the new node in its place.
	Replaced map[fabric.GUID]fabric.GUID
	// Changes are listed and highlighted in the page; Summary describes them.
	Changes []Change
	Summary []Note
}

// Note is a sentence about the differences.
type Note struct {
	Severity verify.Severity `json:"severity"`
	Text     string          `json:"text"`
}

// Change is a difference between two states.
type Change struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
	// Old and New are the changed nodes, or the two ends of each changed cable.
	Old []End `json:"old,omitempty"`
	New []End `json:"new,omitempty"`
}

// Kind is the kind of a Change.
type Kind string

// The kinds of changes, in the order in which they are listed.
const (
	NodeGone  Kind = "node gone"
	NodeNew   Kind = "new node"
	NodeOther Kind = "other node" // replaced or renamed
	CableGone Kind = "cable gone"
	CableNew  Kind = "new cable"
	Moved     Kind = "moved cable"
	Rate      Kind = "other rate"
	Entries   Kind = "forwarding entries" // of a switch
	Other     Kind = "other"
)

// End is a node, or one of its ports if Port is not 0.
type End struct {
	GUID   fabric.GUID    `json:"guid"`
	Switch bool           `json:"switch,omitempty"`
	Port   fabric.PortNum `json:"port,omitempty"`
}

// Grouping is groups of nodes that the user can close to a box each, such as racks or islands.
// A node in several groups counts for the first.
type Grouping struct {
	Name   string
	Groups []Group
}

// Group is nodes that belong together.
type Group struct {
	Name  string
	Nodes []fabric.NodeID
}

// check returns an error if parts of the input are not of one fabric.
func (in *Input) check() error {
	f := in.Fabric
	if err := lft.CheckFabric(f, in.Tables, in.SL2VL, in.PathSLs); err != nil {
		return err
	}
	if t := in.Tables; t != nil && t.MaxLID() < f.MaxLID() {
		return fmt.Errorf("tables of LIDs up to %d for a fabric of LIDs up to %d", t.MaxLID(), f.MaxLID())
	}
	if t := in.Adaptive; t != nil {
		if in.Tables == nil {
			return fmt.Errorf("adaptive routing without tables of the static ports")
		}
		if err := t.Check(f); err != nil {
			return err
		}
	}
	if m := in.Multicast; m != nil && m.Tables.Fabric() != f {
		return fmt.Errorf("multicast tables are not of this fabric")
	}
	for _, c := range in.Counters {
		if len(c.Values) != f.NumPorts() {
			return fmt.Errorf("%s of %d ports: the fabric has %d", c.Name, len(c.Values), f.NumPorts())
		}
	}
	if g := in.Grid; g != nil && (len(g.Wrap) != len(g.Dims) || len(g.Coord) != f.NumSwitches()*len(g.Dims)) {
		return fmt.Errorf("%d coordinates in %d dimensions: the fabric has %d switches", len(g.Coord), len(g.Dims), f.NumSwitches())
	}
	if in.Levels != nil && len(in.Levels) != f.NumSwitches() {
		return fmt.Errorf("levels of %d switches: the fabric has %d", len(in.Levels), f.NumSwitches())
	}
	return nil
}

// lids lists the LIDs that ports have.
func (in *Input) lids() (lids []fabric.LID) {
	for l, port := range in.Fabric.LIDPorts() {
		if port != fabric.NoPort {
			lids = append(lids, fabric.LID(l))
		}
	}
	return lids
}

// groups lists the trees by MLID. It adds MLIDs of the tables without a tree: their members
// are the end ports in the masks.
func (in *Input) groups() []mft.Tree {
	if in.Multicast == nil {
		return nil
	}
	f := in.Fabric
	list := slices.Clone(in.Multicast.Trees)
	known := make(map[fabric.LID]bool)
	for _, t := range list {
		known[t.MLID] = true
	}
	for _, mlid := range in.Multicast.Tables.MLIDs() {
		if known[mlid] {
			continue
		}
		t := mft.Tree{Name: fmt.Sprintf("MLID %#x", uint16(mlid)), MLID: mlid}
		for _, out := range in.Multicast.Tables.Ports(mlid) {
			if f.Num(out) == fabric.ManagementPort {
				t.Receivers = append(t.Receivers, out)
			} else if peer := f.Peer(out); peer != fabric.NoPort && !f.IsSwitch(f.Owner(peer)) {
				t.Receivers = append(t.Receivers, peer)
			}
		}
		slices.Sort(t.Receivers)
		t.Senders = t.Receivers
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b mft.Tree) int { return cmp.Compare(a.MLID, b.MLID) })
	return list
}
