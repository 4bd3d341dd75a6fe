package mesh

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// paths is direction-order routing on a grid: a path makes all hops that it needs
// in the first direction of a list, then all in the next one, and so on. East,
// west, north, south is XY routing; west, south, east, north is negative-first.
//
// In each dimension a path goes one way: on an open one towards the destination,
// on a ring the shorter way. Half way round an even ring both are short: then
// paths that leave the ring at a position with an even sum of coordinates go
// towards greater ones, the others towards smaller ones; only coordinates in
// rings of even length count. Half of the positions in a ring are even, so each
// direction gets half of these paths. In a ring of 4i positions all channels
// carry the same; in one of 4i+2 positions neighbouring channels differ by the
// paths of one position.
//
// Where a path leaves a ring follows from its source and from the destination's
// coordinates up to this dimension. So paths of one source to destinations with
// these coordinates in common share that part of the way: they are a tree, as
// multicast along them needs. That costs balance: all that goes to one position
// in a ring goes one way, wherever it goes on to. In rings of 4i+2 positions that
// leaves an odd number of such bundles for two ways.
//
// For any list, on open dimensions no channels can wait for each other in a
// cycle: a packet in a channel waits for one of the same direction further on, or
// of a direction that is later in the list.
type paths struct {
	g      *Grid
	ring   []bool  // by dimension: the cables that close it are used
	orders [][]Dir // lists of directions; slot i has orders[i/positions]
	tied   []bool  // by dimension: a ring of even length, with paths half way round
	odd    []uint8 // by position: the parity of the sum of its coordinates in tied dimensions

	// A slot is a position as the destination of one of orders: the order's
	// number times Positions, plus the position. LIDs that lead nowhere have one
	// more slot.
	slot []int32          // by LID
	lids [][]fabric.LID   // by slot, ascending
	exit []fabric.PortNum // by LID: the port that delivers it at its position
}

// newPaths prepares the routing of all LIDs by orders: a LID that is n above its
// port's base LID goes by orders[n%len(orders)].
func newPaths(g *Grid, noWrap bool, orders ...[]Dir) *paths {
	p := &paths{g: g, ring: make([]bool, len(g.Dims)), tied: make([]bool, len(g.Dims)), orders: orders, odd: make([]uint8, g.Positions())}
	for d, size := range g.Dims {
		p.ring[d] = g.Wrap[d] && !noWrap
		p.tied[d] = p.ring[d] && size%2 == 0
	}
	for _, s := range g.Fabric.Switches() {
		sum := 0
		for d, x := range g.Coord(s) {
			if p.tied[d] {
				sum += int(x)
			}
		}
		p.odd[g.Position(s)] = uint8(sum & 1)
	}
	p.findSlots()
	return p
}

// inside returns true if s is not at an edge in direction way. With noWrap a ring
// has edges, too.
func (p *paths) inside(s fabric.NodeID, way Dir) bool {
	d := way.Dim()
	if p.ring[d] {
		return true
	}
	x := int(p.g.Coord(s)[d])
	return way.Positive() && x < p.g.Dims[d]-1 || !way.Positive() && x > 0
}

// next returns the switch that a hop from s in direction way leads to, NoNode if
// there is none.
func (p *paths) next(s fabric.NodeID, way Dir) fabric.NodeID {
	if !p.inside(s, way) || len(p.g.Ports(s, way)) == 0 {
		return fabric.NoNode
	}
	return p.g.Neighbor(s, way)
}

// findSlots finds the slot of every LID, and the LIDs of every slot.
func (p *paths) findSlots() {
	f := p.g.Fabric
	owners := f.LIDPorts()
	slots := len(p.orders) * p.g.Positions()
	p.slot = make([]int32, len(owners))
	p.exit = make([]fabric.PortNum, len(owners))
	p.lids = make([][]fabric.LID, slots)
	for lid, port := range owners {
		p.slot[lid] = int32(slots)
		exit := f.Attachment(port)
		if exit == fabric.NoPort {
			continue
		}
		order := (lid - int(f.LID(port))) % len(p.orders)
		slot := order*p.g.Positions() + p.g.Position(f.Owner(exit))
		p.slot[lid] = int32(slot)
		p.lids[slot] = append(p.lids[slot], fabric.LID(lid))
		p.exit[lid] = f.Num(exit)
	}
}

// toward returns the direction from coordinate x to y of dimension d and the
// number of hops, for paths whose other coordinates are those of switch s.
func (p *paths) toward(s fabric.NodeID, d, x, y int) (Dir, int) {
	odd := uint8(0)
	if p.tied[d] {
		odd = p.odd[p.g.Position(s)] ^ uint8(p.g.Coord(s)[d]&1)
	}
	return p.around(d, x, y, odd)
}

// around is toward with the parity of the other coordinates in tied dimensions.
func (p *paths) around(d, x, y int, odd uint8) (Dir, int) {
	plus := y - x
	if !p.ring[d] {
		if plus < 0 {
			return Minus(d), -plus
		}
		return Plus(d), plus
	}
	size := p.g.Dims[d]
	if plus < 0 {
		plus += size
	}
	if minus := size - plus; minus < plus || minus == plus && uint8(y&1) != odd {
		return Minus(d), minus
	}
	return Plus(d), plus
}

// tables makes the forwarding tables. An entry is NoPath if a cable or switch
// anywhere on its path is missing, so that packets that cannot arrive do not set
// out; broken counts these entries. Rows do not depend on each other, so the
// result does not depend on the number of CPUs. It takes O(switches x (positions
// + LIDs)), with parallel links times their number.
func (p *paths) tables(ctx context.Context) (t *lft.Tables, broken int, err error) {
	f := p.g.Fabric
	t = lft.NewTables(f.NumSwitches(), f.MaxLID())
	unit := lft.LoadUnits(f)
	fill := func(again bool) error {
		return eachSwitch(ctx, f.NumSwitches(), func() func(fabric.NodeID) {
			r := newRow(p, unit)
			r.again = again
			return func(s fabric.NodeID) { r.fill(s, t.Row(s)) }
		})
	}
	if err = fill(false); err != nil || len(p.g.Missing) == 0 {
		return t, 0, err
	}
	if broken, err = p.dropBroken(ctx, t); err == nil && broken > 0 {
		err = fill(true)
	}
	return t, broken, err
}

// dropBroken sets entries to NoPath if the path from there ends at a switch
// without an entry. It returns the number of entries that a whole grid would have
// and this one lacks.
func (p *paths) dropBroken(ctx context.Context, t *lft.Tables) (int, error) {
	f := p.g.Fabric
	var broken atomic.Int64
	err := eachSwitch(ctx, len(p.lids), func() func(fabric.NodeID) {
		tree, arrives := lft.NewForest(f), make([]bool, f.NumSwitches())
		return func(slot fabric.NodeID) {
			lids := p.lids[slot]
			if len(lids) == 0 {
				return
			}
			tree.FindTree(t, lids[0]) // the other LIDs pass the same switches
			clear(arrives)
			for _, s := range tree.Order {
				arrives[s] = true
			}
			for s, ok := range arrives {
				if ok {
					continue
				}
				broken.Add(int64(len(lids)))
				for _, lid := range lids {
					t.Row(fabric.NodeID(s))[lid] = fabric.NoPath
				}
			}
		}
	})
	return int(broken.Load()), err
}

// eachSwitch calls the result of newWork for every switch, on all CPUs.
func eachSwitch(ctx context.Context, switches int, newWork func() func(fabric.NodeID)) error {
	_, err := par.ForEachWith(ctx, 0, switches, newWork, func(work func(fabric.NodeID), s int) error {
		work(fabric.NodeID(s))
		return nil
	})
	return err
}

// row makes one row of the tables at a time. It is the scratch memory of a
// worker.
//
// Directions are ranked by their place in their order. The first direction of a
// path is the one with the least rank of those that it needs.
type row struct {
	*paths
	again   bool     // keep entries with NoPath; their LIDs count no load
	unit    []uint64 // by PortID of switches: the load of one path
	wants   []int8   // by coordinate of the current dimension: rank of its direction
	first   []int8   // by position: rank of the first direction; len(order) at the switch itself
	choices []choice // by direction
	weight  []uint64 // by direction and coordinate: the load of a LID at that coordinate
}

// choice is the parallel links of a switch in one direction.
type choice struct {
	ports []fabric.PortID
	load  []uint64 // by index in ports
	turn  int      // for dealing out LIDs without load
}

func newRow(p *paths, unit []uint64) *row {
	dirs, longest := 2*len(p.g.Dims), slices.Max(p.g.Dims)
	return &row{paths: p, unit: unit, wants: make([]int8, longest), first: make([]int8, p.g.Positions()),
		choices: make([]choice, dirs), weight: make([]uint64, dirs*longest)}
}

// fill makes the row of switch s, which must have only NoPath. It divides
// LIDs that leave in a direction with parallel links over these. A LID's
// load is the number of paths to it through s if all switches have equally
// many hosts; it takes the link with the least load in proportion to
// capacity. LIDs of switches have no load and are dealt in turn.
func (r *row) fill(s fabric.NodeID, to []fabric.PortNum) {
	g := r.g
	for way := range r.choices {
		c := &r.choices[way]
		c.ports, c.turn = g.Ports(s, Dir(way)), 0
		c.load = append(c.load[:0], make([]uint64, len(c.ports))...)
	}
	for o, order := range r.orders {
		r.directions(s, order)
		before := uint64(1)
		for i, way := range order {
			if len(r.choices[way].ports) > 1 {
				r.countBehind(s, way, before)
			}
			if slices.Contains(order[:i], way.Opposite()) {
				before *= uint64(g.Dims[way.Dim()])
			}
		}
		for at, rank := range r.first {
			lids := r.lids[o*len(r.first)+at]
			if int(rank) == len(order) {
				for _, lid := range lids {
					to[lid] = r.exit[lid]
				}
			} else if len(lids) > 0 {
				r.enter(lids, at, order[rank], to)
			}
		}
	}
}

// enter sets the entries for the LIDs at a position to ports in direction way.
func (r *row) enter(lids []fabric.LID, at int, way Dir, to []fabric.PortNum) {
	c := &r.choices[way]
	if len(c.ports) == 0 {
		return
	}
	weight := r.weight[int(way)*len(r.wants)+r.g.coord(at, way.Dim())]
	for _, lid := range lids {
		i := 0
		switch {
		case r.again && to[lid] == fabric.NoPath:
			continue
		case len(c.ports) == 1:
		case r.exit[lid] == fabric.ManagementPort:
			i = c.turn % len(c.ports)
			c.turn++
		default:
			i = r.least(c, weight)
		}
		to[lid] = r.g.Fabric.Num(c.ports[i])
	}
}

// directions finds the rank of the first direction from s to every position: from
// the coordinates of the first dimension to those of the first two, and so on. In
// the first dimension in which s differs from the destination, a path leaves a
// ring at a switch with s's other coordinates.
func (r *row) directions(s fabric.NodeID, order []Dir) {
	arrived := int8(len(order))
	r.first[0] = arrived
	n := 1
	for d, size := range r.g.Dims {
		wants := r.wants[:size]
		x := int(r.g.Coord(s)[d])
		for y := range wants {
			way, _ := r.toward(s, d, x, y)
			wants[y] = int8(slices.Index(order, way))
		}
		wants[x] = arrived
		for i := n - 1; i >= 0; i-- {
			least := r.first[i]
			for y, rank := range wants {
				r.first[i*size+y] = min(least, rank)
			}
		}
		n *= size
	}
}

// least returns the index of the port with the least load once weight is added,
// and adds it.
func (r *row) least(c *choice, weight uint64) int {
	best, least := 0, ^uint64(0)
	for i, p := range c.ports {
		if load := c.load[i] + weight*r.unit[p]; load < least {
			best, least = i, load
		}
	}
	c.load[best] = least
	return best
}

// countBehind sets weight for each coordinate in the dimension of way: the
// number of switches whose paths to a destination there leave s in
// direction way. These are the ones behind s in this dimension, with any
// coordinates (before positions) in the dimensions that paths have finished
// by then.
func (r *row) countBehind(s fabric.NodeID, way Dir, before uint64) {
	d := way.Dim()
	size := r.g.Dims[d]
	x := int(r.g.Coord(s)[d])
	weight := r.weight[int(way)*len(r.wants):]
	for y := range size {
		n := 0
		switch taken, hops := r.toward(s, d, x, y); {
		case taken != way:
		case r.ring[d]:
			most := (size - 1) / 2
			if size%2 == 0 {
				if half, _ := r.toward(s, d, (y+size/2)%size, y); half == way {
					most++
				}
			}
			n = most - hops + 1
		case way.Positive():
			n = x + 1
		default:
			n = size - x
		}
		weight[y] = uint64(n) * before
	}
}
