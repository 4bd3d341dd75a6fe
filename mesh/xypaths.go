package mesh

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// paths is direction-order routing on a grid: a path takes all the hops that
// it needs in the first direction of a list, then all in the next one, and so
// on. East, west, north, south is XY routing, west, south, east, north is
// negative-first.
//
// In each dimension a path goes one way only: on an open one towards the
// destination, on a ring by the shorter way. Half way round an even ring both
// are short; then paths that leave the ring at a position with an even sum of
// coordinates go towards greater ones, the others towards smaller ones, where
// the coordinates in rings of even length count. Half of the positions in a ring
// are even, and so each direction gets half of these paths. Of a ring of 4i
// positions each channel carries the same, of one of 4i+2 positions neighbouring
// channels differ, by the paths of one position.
//
// Where a path leaves a ring follows from its source and from the destination's
// coordinates in this dimension and those before it. So paths of one source that
// have part of their destinations' coordinates in common have that part of the
// way in common, and the paths of one source are a tree, as multicast along them
// needs it. A tree takes from the balance: what goes to one position in a ring
// goes one way, wherever it goes on to, and in rings of 4i+2 positions that
// leaves an odd number of such bundles for two ways.
//
// Whatever the list, on open dimensions no channels can wait for each other in
// a cycle: a packet that holds a channel waits for one of the same direction
// further on, or for one of a direction that is later in the list.
type paths struct {
	g      *Grid
	ring   []bool  // by dimension: whether the cables that close it are used
	orders [][]Dir // the list of directions; that of slot i is orders[i/positions]
	tied   []bool  // by dimension: whether it is a ring of even length, with paths half way round
	odd    []uint8 // by position: the parity of the sum of its coordinates in these
	gaps   []gap   // where a path would leave a switch and cannot

	// A slot is a position as the destination of one of orders: the number of
	// the order times Positions, plus the position. LIDs that lead nowhere
	// have one more slot.
	slot []int32          // by LID
	lids [][]fabric.LID   // by slot, ascending
	exit []fabric.PortNum // by LID: the port that delivers it at its position
}

// gap is a hop that a grid without missing parts would have.
type gap struct {
	from fabric.NodeID
	way  Dir
}

// newPaths prepares the routing of all LIDs of g's fabric by orders: a LID
// that is n above its port's base LID goes by orders[n%len(orders)].
func newPaths(g *Grid, noWrap bool, orders ...[]Dir) *paths {
	p := &paths{g: g, ring: make([]bool, len(g.Dims)), tied: make([]bool, len(g.Dims)), orders: orders, odd: make([]uint8, g.Positions())}
	for d, size := range g.Dims {
		p.ring[d] = g.Wrap[d] && !noWrap
		p.tied[d] = p.ring[d] && size%2 == 0
	}
	for s := range fabric.NodeID(g.Fabric.NumSwitches()) {
		sum := 0
		for d, x := range g.Coord(s) {
			if p.tied[d] {
				sum += int(x)
			}
		}
		p.odd[g.Position(s)] = uint8(sum & 1)
	}
	for s := range fabric.NodeID(g.Fabric.NumSwitches()) {
		for way := range Dir(2 * len(g.Dims)) {
			if p.inside(s, way) && p.next(s, way) == fabric.NoNode {
				p.gaps = append(p.gaps, gap{s, way})
			}
		}
	}
	p.findSlots()
	return p
}

// inside says whether the grid goes on from s in direction way, by a cable
// that may be used.
func (p *paths) inside(s fabric.NodeID, way Dir) bool {
	d := way.Dim()
	if p.ring[d] {
		return true
	}
	x := int(p.g.Coord(s)[d])
	return way.Positive() && x < p.g.Dims[d]-1 || !way.Positive() && x > 0
}

// next is the switch that a hop from s in direction way leads to, NoNode for
// none.
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

// toward is the direction from coordinate x to y of dimension d and the hops
// that it takes, where the other coordinates are those of switch s.
func (p *paths) toward(s fabric.NodeID, d, x, y int) (Dir, int) {
	odd := uint8(0)
	if p.tied[d] {
		odd = p.odd[p.g.Position(s)] ^ uint8(p.g.Coord(s)[d]&1)
	}
	return p.around(d, x, y, odd)
}

// around is toward by the parity of the other coordinates in tied dimensions.
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

// tables fills the forwarding tables. An entry is NoPath when a cable or switch
// anywhere on the path is missing, so that packets which cannot arrive do not
// set out; broken counts these entries. Rows are independent of each other:
// the result does not depend on the number of CPUs. It takes O(switches x
// (positions + LIDs + gaps) + broken paths), with parallel links times their
// number.
func (p *paths) tables(ctx context.Context) (t *lft.Tables, broken int, err error) {
	f := p.g.Fabric
	t = lft.NewTables(f.NumSwitches(), f.MaxLID())
	unit := lft.LoadUnits(f)
	var lost atomic.Int64
	err = eachSwitch(ctx, f.NumSwitches(), func() func(fabric.NodeID) {
		r := newRow(p, unit)
		return func(s fabric.NodeID) {
			r.fill(s, t.Row(s))
			lost.Add(int64(r.broken))
		}
	})
	if err != nil {
		return nil, 0, err
	}
	return t, int(lost.Load()), nil
}

// eachSwitch calls what newWork returns for every switch, on all CPUs.
func eachSwitch(ctx context.Context, switches int, newWork func() func(fabric.NodeID)) error {
	_, err := par.ForEachWith(ctx, 0, switches, newWork, func(work func(fabric.NodeID), s int) error {
		work(fabric.NodeID(s))
		return nil
	})
	return err
}

// row makes one row of the tables after the other: scratch of a worker.
//
// Directions are known by their rank, the place in the list of their order;
// of the second order, ranks go on after those of the first. The first
// direction of a path is the least rank of those that its dimensions want.
type row struct {
	*paths
	unit    []uint64 // by PortID of switches: what a path adds to the load
	arrived uint8    // rank of a dimension that wants no hop
	lost    uint8    // rank of a path that is broken
	rankOf  []uint8  // by order and direction
	before  []uint64 // by order and direction: positions in the dimensions that are earlier in the list
	wants   []uint8  // by coordinate of the dimension at hand
	first   []uint8  // by slot: rank of the first direction
	num     [256]fabric.PortNum
	choices []choice
	weight  []uint64 // by direction and coordinate: what a LID adds to the load of one of the choices
	broken  int      // entries of the last row
	lostAt  []int32  // positions
}

// choice is the parallel links of a switch in one direction.
type choice struct {
	ports []fabric.PortID
	unit  []uint64 // by index in ports
	load  []uint64 // the same
	turn  int      // for LIDs without load
}

func newRow(p *paths, unit []uint64) *row {
	dirs := 2 * len(p.g.Dims)
	r := &row{
		paths:   p,
		unit:    unit,
		arrived: uint8(len(p.orders) * dirs),
		rankOf:  make([]uint8, len(p.orders)*dirs),
		before:  make([]uint64, len(p.orders)*dirs),
		first:   make([]uint8, len(p.orders)*p.g.Positions()+1),
		choices: make([]choice, dirs),
	}
	r.lost = r.arrived + 1
	r.first[len(r.first)-1] = r.lost
	longest := slices.Max(p.g.Dims)
	r.wants = make([]uint8, longest)
	r.weight = make([]uint64, dirs*longest)
	for o, order := range p.orders {
		before := uint64(1)
		seen := make([]bool, dirs)
		for i, way := range order {
			r.rankOf[o*dirs+int(way)] = uint8(o*dirs + i)
			r.before[o*dirs+int(way)] = before
			if seen[way] = true; seen[way.Opposite()] {
				before *= uint64(p.g.Dims[way.Dim()])
			}
		}
	}
	return r
}

// fill makes the row of switch s.
func (r *row) fill(s fabric.NodeID, to []fabric.PortNum) {
	g := r.g
	dirs := 2 * len(g.Dims)
	positions := g.Positions()
	r.broken = 0
	for o := range r.orders {
		part := r.first[o*positions : (o+1)*positions]
		r.directions(s, o, part)
		for _, gap := range r.gaps {
			r.lose(s, o, gap, part)
		}
	}
	for i := range r.num {
		r.num[i] = fabric.NoPath
	}
	parallel := false
	for way := range Dir(dirs) {
		c := &r.choices[way]
		c.ports = g.Ports(s, way)
		if len(c.ports) == 0 {
			continue
		}
		parallel = parallel || len(c.ports) > 1
		for o := range r.orders {
			r.num[r.rankOf[o*dirs+int(way)]] = g.Fabric.Num(c.ports[0])
		}
	}
	to = to[:len(r.slot)]
	for lid, slot := range r.slot {
		to[lid] = r.num[r.first[slot]]
	}
	if parallel {
		r.divide(s, to)
	}
	for slot := g.Position(s); slot < len(r.orders)*positions; slot += positions {
		for _, lid := range r.lids[slot] {
			to[lid] = r.exit[lid]
		}
	}
}

// directions finds the rank of the first direction from s to every position. It
// goes from the coordinates of the first dimension to those of the first two,
// and so on. In the dimension that comes first of those in which s is not at
// its destination's coordinate, a path leaves a ring at other coordinates that
// are those of s.
func (r *row) directions(s fabric.NodeID, order int, first []uint8) {
	dirs := 2 * len(r.g.Dims)
	first[0] = r.arrived
	n := 1
	for d, size := range r.g.Dims {
		wants := r.wants[:size]
		x := int(r.g.Coord(s)[d])
		for y := range wants {
			way, _ := r.toward(s, d, x, y)
			wants[y] = r.rankOf[order*dirs+int(way)]
		}
		wants[x] = r.arrived
		for i := n - 1; i >= 0; i-- {
			least := first[i]
			for y, rank := range wants {
				first[i*size+y] = min(least, rank)
			}
		}
		n *= size
	}
}

// lose changes the rank of paths from s to lost that meet a gap, and counts
// their LIDs. It takes time in proportion to the paths.
//
// A path comes by the gap in direction way from position u when in each other
// dimension, where it has gone before way, u is where it ends, and where it goes
// after way or not at all, u is where it starts; and when u is on the way in
// that dimension.
func (r *row) lose(s fabric.NodeID, order int, gap gap, first []uint8) {
	g := r.g
	ranks := r.rankOf[order*2*len(g.Dims):]
	rank := ranks[gap.way]
	from, u := g.Coord(s), g.Coord(gap.from)
	dim := gap.way.Dim()
	for d := range g.Dims {
		if d == dim || from[d] == u[d] {
			continue
		}
		if way, _ := r.toward(gap.from, d, int(from[d]), int(u[d])); ranks[way] > rank {
			return
		}
	}
	before := int(u[dim]) - int(from[dim]) // hops in direction way before the gap
	if !gap.way.Positive() {
		before = -before
	}
	if before < 0 {
		if !r.ring[dim] {
			return
		}
		before += g.Dims[dim]
	}
	r.lostAt = append(r.lostAt[:0], 0)
	for d, size := range g.Dims {
		if d != dim && from[d] != u[d] {
			for i := range r.lostAt {
				r.lostAt[i] += int32(int(u[d]) * g.step[d])
			}
			continue
		}
		had := len(r.lostAt)
		for y := range size {
			way, hops := r.toward(gap.from, d, int(from[d]), y)
			if d == dim && (way != gap.way || hops <= before) || d != dim && hops > 0 && ranks[way] < rank {
				continue
			}
			for _, at := range r.lostAt[:had] {
				r.lostAt = append(r.lostAt, at+int32(y*g.step[d]))
			}
		}
		r.lostAt = append(r.lostAt[:0], r.lostAt[had:]...)
	}
	for _, at := range r.lostAt {
		if first[at] != r.lost {
			first[at] = r.lost
			r.broken += len(r.lids[order*len(first)+int(at)])
		}
	}
}

// divide spreads the LIDs that leave s in a direction with parallel links over
// these. A LID counts as often as a path to it comes by, as long as all
// switches have as many hosts, and goes where that leaves the least load in
// proportion to the link's capacity. LIDs of switches carry no load and are
// dealt in turn.
func (r *row) divide(s fabric.NodeID, to []fabric.PortNum) {
	g := r.g
	dirs := 2 * len(g.Dims)
	positions := g.Positions()
	for way := range r.choices {
		c := &r.choices[way]
		c.unit, c.load, c.turn = c.unit[:0], c.load[:0], 0
		for _, p := range c.ports {
			c.unit = append(c.unit, r.unit[p])
			c.load = append(c.load, 0)
		}
	}
	for o, order := range r.orders {
		for i, way := range order {
			if len(r.choices[way].ports) > 1 {
				r.countBehind(s, o, i, way)
			}
		}
		for at, t := range g.at {
			slot := o*positions + at
			rank := int(r.first[slot]) - o*dirs
			if t == fabric.NoNode || rank < 0 || rank >= dirs {
				continue
			}
			way := order[rank]
			c := &r.choices[way]
			if len(c.ports) == 1 {
				continue
			}
			weight := r.weight[rank*len(r.wants)+int(g.Coord(t)[way.Dim()])]
			for _, lid := range r.lids[slot] {
				i := c.turn
				if r.exit[lid] == fabric.ManagementPort {
					if c.turn++; c.turn == len(c.ports) {
						c.turn = 0
					}
				} else {
					i = c.least(weight)
				}
				to[lid] = g.Fabric.Num(c.ports[i])
			}
		}
	}
}

// least is the port with the least load after weight more is put on it, and
// puts it there.
func (c *choice) least(weight uint64) int {
	best, least := 0, ^uint64(0)
	for i, unit := range c.unit {
		if load := c.load[i] + weight*unit; load < least {
			best, least = i, load
		}
	}
	c.load[best] = least
	return best
}

// countBehind counts for the destinations with each coordinate in the dimension of
// way, the direction of some rank, the switches whose paths to them leave s in
// that direction: those behind s in this dimension, with any coordinates in
// the dimensions that paths are through with by then.
func (r *row) countBehind(s fabric.NodeID, order, rank int, way Dir) {
	d := way.Dim()
	size := r.g.Dims[d]
	x := int(r.g.Coord(s)[d])
	before := r.before[order*2*len(r.g.Dims)+int(way)]
	weight := r.weight[rank*len(r.wants):]
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
