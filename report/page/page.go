// Package page draws a fabric, its tables and what verify found: as one HTML page
// that needs nothing but a browser, and as single pictures. It makes no promise to other
// modules.
//
// An operator sees where a path goes, which cable is hot, and what a credit loop looks
// like. Coordinates and levels of switches come in as data: the package knows no engine.
// Pictures are for systems other than browsers. The same input gives the same bytes, on any
// number of CPUs.
package page

import (
	"context"
	"fmt"

	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// DefaultMaxEntries is how many entries of forwarding tables a page holds by
// default: those of 5,000 switches and 13,000 end ports. A browser needs a byte for
// each.
const DefaultMaxEntries = 64 << 20

// MostInteractive is the greatest number of entries in tables of which a page can try changes:
// those of 2,500 switches and 6,500 end ports. With more, a step would take a browser a minute.
const MostInteractive = 16 << 20

// Input is what a page or a picture shows. Only Fabric and Result must be there.
type Input struct {
	Title   string // of the page, such as the name of a file
	Version string // of ibweave
	Shape   string // what the fabric looks like, in words; "" when not asked for

	// State has the fabric, its tables and lanes. Its name is shown if there is an Old, whose state
	// has a name too. Even with adaptive choices loads are those of Tables.
	*state.State

	Result *verify.Result
	Rules  []verify.Rule // that explain the findings

	// Routes is lft.ChannelLoads of Tables; nil if the caller does not have it.
	Routes []int64

	// Counters are what cables may show besides routes, and what follows from the tables.
	Counters []Counter
	// Cables names what they show: routes, bound, trees, choices or a Counter; "" for the first of
	// these that there is.
	Cables string

	// Grid has the coordinates of switches on a mesh or torus; nil elsewhere.
	Grid *Grid
	// Levels has by switch its level in a tree, 0 for leaves; nil if the fabric
	// has none: then the drawing uses distances.
	Levels []int32

	// Old, if not nil, is another state, which the page compares with this one.
	Old *Old
	// Groupings are groups of hosts that the drawing can close to boxes, beside pods.
	Groupings []Grouping

	// Base, if not nil, has the compiler in the page try changes: what package session packed.
	Base []byte
	// Compiler is the compiler that tries changes when there is a Base: WebAssembly, as gzip.
	Compiler []byte

	// MaxEntries bounds the forwarding tables in a page; 0 for DefaultMaxEntries.
	// Larger ones are left out: the page then shows no paths and says why.
	MaxEntries int64
}

// Counter is a counter of ports.
type Counter struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"` // with the time, for a rate
	Values []float64 `json:"-"`    // by PortID, of packets that leave there or of the port itself; below 0 unknown

	// FromTables says that other tables have other values, so that trying a change drops it.
	FromTables bool `json:"tables,omitempty"`
}

// Grid is the coordinates of switches.
type Grid struct {
	Dims  []int
	Wrap  []bool  // by dimension: whether it is a ring
	Coord []int16 // by switch and dimension, 0 to Dims-1
}

// check sees that all parts are of one fabric.
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

// scene is the data that pages and pictures are drawn from.
type scene struct {
	*Input
	*layout
	routes []int64 // by PortID, see loads; nil without tables
	max    int64   // of channels between switches
	mean   float64 // of these, unused ones too
}

func newScene(ctx context.Context, in *Input) (*scene, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return load(ctx, in, arrange(in))
}

// load is a scene with what the routes say.
func load(ctx context.Context, in *Input, l *layout) (*scene, error) {
	s := &scene{Input: in, layout: l}
	if in.Tables == nil {
		return s, nil
	}
	var err error
	if s.routes = in.Routes; s.routes == nil {
		if s.routes, err = lft.ChannelLoads(ctx, in.Fabric, in.Tables); err != nil {
			return nil, err
		}
	}
	sum := int64(0)
	for _, p := range in.Fabric.Channels() {
		sum += s.routes[p]
		s.max = max(s.max, s.routes[p])
	}
	s.mean = float64(sum) / float64(max(len(in.Fabric.Channels()), 1))
	return s, nil
}
