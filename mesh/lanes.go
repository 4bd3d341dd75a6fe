package mesh

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

const (
	// maxSLBits is the number of bits of an SL.
	maxSLBits = 4
	// datelineRing is the least length of a ring that needs a dateline. In a
	// ring of three no shortest path has two hops, so no channel of the ring
	// waits for another.
	datelineRing = 4
)

// lanes gives the SLs of paths and the VLs of their hops.
//
// Bit i of an SL is set if the path crosses the cable that closes the ring of
// dimension rings[i]: the dateline of Dally and Seitz (IEEE Trans. Computers
// 1987). The next bit is the path's order, if there are two. With datelines
// order o has VLs 2o and 2o+1, and a hop takes VL 2o plus the bit of its
// dimension, 0 in dimensions without one. Without datelines it takes VL o.
//
// A switch chooses the VL by input port, output port and SL, and does not know
// on which VL the packet came (IBA 7.6.6). So a packet cannot change its VL at
// the dateline, as in Dally and Seitz; it stays on one of the two for the whole
// dimension, and the SL must be known before.
//
// No channels wait for each other in a cycle:
//
//   - A path passes through the dimensions in order and never returns to one,
//     and it keeps to its order's VLs, so a cycle would have to lie within one
//     dimension, one direction, one VL: on a ring, all the way round.
//   - On VL 0 of a ring no packet uses the closing cable.
//   - On VL 1 of a ring of k positions, in the direction of greater
//     coordinates, a path from x to y crosses the closing cable and is at most
//     half way round: y + k - x <= k/2, so that x >= k/2 and y <= k/2 - 1. It
//     takes channels out of the positions from x on and of those below y. So none
//     takes the channel out of k/2 - 1, rounded up. The other direction is the
//     mirror image.
//
// The channels into and out of hosts are in no cycle: nothing comes before
// channels from hosts and nothing after channels to hosts. They use VL 0 (X15).
type lanes struct {
	g      *Grid
	rings  []int   // dimensions with a dateline, ascending
	orders [][]Dir // as in paths
}

// datelines lists the dimensions that need a dateline if paths are shortest
// paths.
func datelines(g *Grid) []int {
	var rings []int
	for d, size := range g.Dims {
		if g.Wrap[d] && size >= datelineRing {
			rings = append(rings, d)
		}
	}
	return rings
}

func (l *lanes) vls() int {
	n := len(l.orders)
	if len(l.rings) > 0 {
		n *= 2
	}
	return n
}

// slBits returns how many bits of the SL are used.
func (l *lanes) slBits() int {
	n := len(l.rings)
	if len(l.orders) > 1 {
		n++
	}
	return n
}

// sl2vl returns the tables of all ports. They depend only on the output port
// and the SL.
func (l *lanes) sl2vl() *lft.SL2VL {
	f := l.g.Fabric
	s := lft.NewSL2VL(f, lft.ConstantVL(0))
	byDim := make([]lft.VLMap, len(l.g.Dims))
	for d := range byDim {
		for sl := range lft.NumSLs {
			if len(l.orders) > 1 {
				byDim[d][sl] = fabric.VL(sl >> len(l.rings) & 1 * l.vls() / 2)
			}
			for bit, ring := range l.rings {
				if ring == d {
					byDim[d][sl] += fabric.VL(sl >> bit & 1)
				}
			}
		}
	}
	for _, p := range f.Channels() {
		if way := l.g.Dir(p); way != NoDir {
			s.SetOut(p, byDim[way.Dim()])
		}
	}
	return s
}

// pathSLs returns the SLs of all of p's paths. Switches with equal coordinates
// in all dimensions with a dateline share a row.
func (l *lanes) pathSLs(ctx context.Context, p *paths) (*lft.PathSLs, error) {
	f, g := l.g.Fabric, l.g
	var groups [][]fabric.NodeID // switches by their coordinates in the rings
	number := make(map[int]int)
	for _, s := range f.Switches() {
		key := 0
		for _, d := range l.rings {
			key += int(g.Coord(s)[d]) * g.step[d]
		}
		i, known := number[key]
		if !known {
			i = len(groups)
			number[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], s)
	}
	rows := make([][]fabric.SL, len(groups))
	err := eachSwitch(ctx, len(groups), func() func(fabric.NodeID) {
		bySlot := make([]fabric.SL, len(l.orders)*g.Positions()+1) // last: LIDs without a position
		return func(i fabric.NodeID) {
			l.slotSLs(p, groups[i][0], bySlot)
			rows[i] = make([]fabric.SL, int(f.MaxLID())+1)
			for lid, slot := range p.slot {
				rows[i][lid] = bySlot[slot]
			}
		}
	})
	if err != nil {
		return nil, err
	}
	sls := lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
	for i, row := range rows {
		sls.SetRow(row, groups[i]...)
	}
	return sls, nil
}

// slotSLs sets the SLs of the paths from switch s, by slot: a bit for each ring
// whose closing cable the path crosses, and the order.
func (l *lanes) slotSLs(p *paths, s fabric.NodeID, bySlot []fabric.SL) {
	positions := l.g.Positions()
	for o, order := range l.orders {
		for at := range positions {
			sl := fabric.SL(o) << len(l.rings)
			odd := p.odd[l.g.Position(s)]        // of the path's current switch
			for i := 0; i < len(order); i += 2 { // both directions of a dimension
				d := order[i].Dim()
				ring := slices.Index(l.rings, d)
				if ring < 0 {
					continue
				}
				x, y, others := int(l.g.Coord(s)[d]), l.g.coord(at, d), uint8(0)
				if p.tied[d] {
					others = (odd ^ uint8(x)) & 1
					odd ^= uint8(x^y) & 1
				}
				if way, _ := p.around(d, x, y, others); y != x && way.Positive() != (y > x) {
					sl |= 1 << ring
				}
			}
			bySlot[o*positions+at] = sl
		}
	}
}

// ByDirection returns SL-to-VL tables in which a switch's port has the VL of
// its direction for all SLs and all input ports. vls is the number of data VLs
// of ports. With 2n or more, on a grid of n dimensions, each direction has its
// own VL, in the order of the text (Zhou, Liu and Chung, section 3.2): the
// positive direction of dimension d has VL d, the negative one n+d. With fewer,
// but two or more, positive directions share VL 0 and negative ones VL 1 (Fig.
// 6(c) and 8(c): north and east VL 0, south and, for the second "east" of the
// text, west VL 1, E-X2). With one VL, and on cables of hosts, all is VL 0.
//
// The VL follows from the port alone, so no cable ever has packets of two VLs.
// The network behaves as with one VL, and tables have the same credit loops as
// on one (X17, E-X13).
//
// Errors are lft.CheckVLCount's.
func ByDirection(g *Grid, vls int) (*lft.SL2VL, error) {
	if err := lft.CheckVLCount(vls); err != nil {
		return nil, err
	}
	f := g.Fabric
	n := len(g.Dims)
	s := lft.NewSL2VL(f, lft.ConstantVL(0))
	for _, p := range f.Channels() {
		way := g.Dir(p)
		if way == NoDir || vls == 1 {
			continue
		}
		vl := 0
		if vls >= 2*n {
			vl = way.Dim()
			if !way.Positive() {
				vl += n
			}
		} else if !way.Positive() {
			vl = 1
		}
		s.SetOut(p, lft.ConstantVL(fabric.VL(vl)))
	}
	return s, nil
}

// ByDirectionNESW is ByDirection for grids of two dimensions, with the four VLs
// in the order of the labels of Fig. 8(e): north 0, east 1, south 2, west 3
// (E-X5). The network behaves the same.
func ByDirectionNESW(g *Grid, vls int) (*lft.SL2VL, error) {
	s, err := ByDirection(g, vls)
	if err != nil {
		return nil, err
	}
	if len(g.Dims) != 2 {
		return nil, fmt.Errorf("north, east, south and west are of two dimensions, and this grid has %d", len(g.Dims))
	}
	for _, p := range g.Fabric.Channels() {
		if vls >= 4 && g.Dir(p) != NoDir {
			s.SetOut(p, lft.ConstantVL(s.At(0, p)[0]^1))
		}
	}
	return s, nil
}
