package mesh

import (
	"context"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// XY is dimension-order routing on meshes, tori and hypercubes: the routing of
// Zhou, Liu and Chung (section 3.2) for any number of dimensions, hosts and
// parallel links.
//
// A path changes the first coordinate until it is the destination's, then the
// second, and so on. The paper prints four cases by the signs of the two
// differences; in its cases 3 and 4 y goes the wrong way (E-X3), its list of
// ports names east twice where the second one is west (E-X2), and its table has
// no entry for a switch's own host. Here y always moves towards the destination,
// and LIDs of ports on the switch itself leave by the port to them. The paper's
// LID x*m+y+1, which its tables divide by m again, is not unique (E-X1), see
// Grid.LIDs; these tables use coordinates, for any LIDs. All LIDs of a position,
// the switch's own included, follow the same path, except for the choice between
// parallel links.
//
// # Rings
//
// On a ring a path goes the shorter way. Of the paths that go exactly half way
// round, those that leave the ring at a switch whose coordinates have an even sum
// go towards greater coordinates, the others towards smaller ones; only
// coordinates in rings of even length count in the sum. So on rings too the paths
// from one source are a tree, which mft.Union and similar schemes can follow,
// unless parallel cables divide the destinations.
//
// Channels of a ring can wait for each other in a cycle, so rings of four or more
// positions take two VLs: see datelines. Each such dimension takes a bit of the
// SL, which has four. In a ring of three no path has two hops, so there is no
// cycle.
//
// With Options.NoWrap the cables that close rings are not used, VL 0 is enough,
// and paths are those of a mesh.
//
// # Several LIDs on a port
//
// With an LMC of 1 or more, LIDs at odd distances from the base LID are routed in
// the opposite order of the dimensions, YX, so that a sender has two paths. On a
// grid of two dimensions these share no link between switches if all coordinates
// differ. Both orders on one VL would close cycles, so the second one has VLs of
// its own, and the next bit of the SL gives the order: on a mesh SL 0 and VL 0
// for XY, SL 1 and VL 1 for YX. If Options.VLs is too small for both, all LIDs
// use XY. On a grid of one dimension both orders are the same.
//
// # Missing cables and switches
//
// Dimension order allows one path. If a cable or a switch on it is missing,
// all switches on the path before the gap have NoPath for the LID: packets
// are dropped where they set out, and the checker names the pairs.
// Options.Repair routes them around what is missing; then all LIDs of a
// port go by one order; see repair.
type XY struct{}

// Name is "xy"; OpenSM's name is dor.
func (XY) Name() string { return "xy" }

// Guarantee is NoCreditLoop. On a grid without missing cables or switches, all
// pairs also reach each other, by shortest paths unless Options.NoWrap forbids
// these.
func (XY) Guarantee() lft.Guarantee { return lft.NoCreditLoop }

// Route takes O(switches x (positions + LIDs)).
func (e XY) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	g, err := detectFor(e.Name(), f, opt)
	if err != nil {
		return nil, err
	}
	r, err := routeXY(ctx, g, opt)
	if err != nil {
		return nil, err
	}
	r.Notes = g.notes()
	if len(g.Missing) > 0 && !opt.Repair {
		if pairs := broken(g.Fabric, r.Tables); len(pairs) > 0 {
			r.Notes = append(r.Notes, pairs...)
			r.Notes = append(r.Notes, "repair gives these pairs detours")
		}
	}
	return r, nil
}

// maxNotes bounds how many missing parts, and how many pairs, are named.
const maxNotes = 8

// broken names pairs of CA ports without a path, by the first LID of the
// destination.
func broken(f *fabric.Fabric, t *lft.Tables) []string {
	var notes []string
	count := 0
	for _, to := range f.CAPorts() {
		lid := f.LID(to)
		for i, from := range f.CAPorts() {
			s := f.CASwitches()[i]
			if from == to || lid == 0 || s == fabric.NoNode || t.Row(s)[lid] != fabric.NoPath {
				continue
			}
			if count++; count <= maxNotes {
				notes = append(notes, fmt.Sprintf("no path from %s to %s, LID %d", f.PortName(from), f.PortName(to), lid))
			}
		}
	}
	if count > maxNotes {
		notes = append(notes, fmt.Sprintf("and none for %d more pairs", count-maxNotes))
	}
	return notes
}

// notes describes a grid and its missing parts.
func (g *Grid) notes() []string {
	notes := []string{g.String()}
	for i, fault := range g.Faults() {
		if i == maxNotes {
			return append(notes, fmt.Sprintf("and %d more are missing", len(g.Missing)-i))
		}
		notes = append(notes, fault)
	}
	return notes
}

// detectFor finds the grid for an engine.
func detectFor(engine string, f *fabric.Fabric, opt lft.Options) (*Grid, error) {
	g, err := Detect(f, DetectOptions{Origin: opt.Origin, Dims: opt.Dims})
	if err != nil {
		return nil, &lft.DomainError{Engine: engine, Reason: err.Error()}
	}
	return g, nil
}

// routeXY is XY.Route on a grid.
func routeXY(ctx context.Context, g *Grid, opt lft.Options) (*lft.Routing, error) {
	l, err := planLanes(g, opt)
	if err != nil {
		return nil, err
	}
	p := newPaths(g, opt.NoWrap, l.orders...)
	tables, broken, err := p.tables(ctx)
	if err == nil && opt.Repair && broken > 0 && len(l.orders) > 1 {
		l.orders = l.orders[:1]
		p = newPaths(g, opt.NoWrap, l.orders...)
		tables, broken, err = p.tables(ctx)
	}
	if err != nil {
		return nil, err
	}
	r := &lft.Routing{Engine: XY{}.Name(), Fabric: g.Fabric, Tables: tables}
	if l.vls() > 1 {
		r.SL2VL = l.sl2vl()
		if r.PathSLs, err = l.pathSLs(ctx, p); err != nil {
			return nil, err
		}
	}
	if opt.Repair && broken > 0 {
		return repair(ctx, g, r, opt)
	}
	return r, nil
}

// dimensionOrder returns the directions of XY routing in order; if reversed, the
// last dimension first.
func dimensionOrder(dims int, reversed bool) []Dir {
	var order []Dir
	for d := range dims {
		if reversed {
			d = dims - 1 - d
		}
		order = append(order, Plus(d), Minus(d))
	}
	return order
}

// planLanes chooses the VLs of XY routing.
func planLanes(g *Grid, opt lft.Options) (*lanes, error) {
	n := len(g.Dims)
	l := &lanes{g: g, orders: [][]Dir{dimensionOrder(n, false)}}
	if !opt.NoWrap {
		l.rings = datelines(g)
	}
	fail := func(format string, args ...any) error {
		return &lft.DomainError{Engine: XY{}.Name(), Reason: fmt.Sprintf(format, args...)}
	}
	if len(l.rings) > maxSLBits {
		return nil, fail("%d dimensions are rings of four switches or more; each takes a bit of the SL, which has %d; without the cables that close rings (no-wrap) it can",
			len(l.rings), maxSLBits)
	}
	if opt.VLs > 0 && opt.VLs < l.vls() {
		return nil, fail("rings of four switches or more take %d VLs, and it may use %d; without the cables that close rings (no-wrap) one is enough", l.vls(), opt.VLs)
	}
	if n == 1 || !manyLIDs(g.Fabric) {
		return l, nil
	}
	single := l.orders
	l.orders = append(l.orders, dimensionOrder(n, true))
	switch {
	case opt.VLs > 0 && opt.VLs < l.vls():
		l.orders = single
	case l.slBits() > maxSLBits:
		return nil, fail("%d dimensions are rings of four switches or more; each takes a bit of the SL, the second path of an LMC above 0 takes one more, and an SL has %d; with %d VLs all LIDs of a port take one path",
			len(l.rings), maxSLBits, l.vls()/2)
	}
	return l, nil
}

// manyLIDs returns true if any port has more than one LID.
func manyLIDs(f *fabric.Fabric) bool {
	many := false
	f.EndPorts(func(p fabric.PortID) {
		many = many || f.LID(p) != 0 && f.LMC(p) > 0
	})
	return many
}
