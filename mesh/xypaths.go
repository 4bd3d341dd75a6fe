package mesh

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// paths is direction-order routing on a grid: a path takes all the hops that
// it needs in the first direction of a list, then all in the next one, and so
// on. East, west, north, south is XY routing, west, south, east, north is
// negative-first.
//
// In each dimension a path goes one way only: on an open one towards the
// destination, on a ring by the shorter way. Half way round an even ring both
// are short; then paths to destinations whose coordinates have an even sum go
// towards greater coordinates, the others towards smaller ones. Half of the
// destinations in a ring are even, and so each direction gets half of these
// paths. Of a ring of 4i positions each channel carries the same, of one of
// 4i+2 positions neighbouring channels differ by a path.
//
// Whatever the list, on open dimensions no channels can wait for each other in
// a circle: a packet that holds a channel waits for one of the same direction
// further on, or for one of a direction that is later in the list.
type paths struct {
	g      *Grid
	ring   []bool  // by dimension: whether the cables that close it are used
	orders [][]Dir // the list of directions; that of slot i is orders[i/positions]
	ties   bool    // whether a ring is even
	odd    []uint8 // by position: the parity of the sum of its coordinates
	hops   []int16 // by switch and direction: how many an unbroken path can go; nil when nothing is missing

	// A slot is a position as the destination of one of orders: the number of
	// the order times Positions, plus the position. LIDs that lead nowhere
	// have one more slot.
	slot  []int32          // by LID
	lids  []fabric.LID     // by slot, then ascending
	start []int32          // by slot, one more: its part of lids
	exit  []fabric.PortNum // by LID: the port that delivers it at its position
}

// newPaths prepares the routing of all LIDs of g's fabric by orders: a LID
// that is n above its port's base LID goes by orders[n%len(orders)].
func newPaths(g *Grid, noWrap bool, orders ...[]Dir) *paths {
	p := &paths{g: g, ring: make([]bool, len(g.Dims)), orders: orders, odd: make([]uint8, g.Positions())}
	for d, size := range g.Dims {
		p.ring[d] = g.Wrap[d] && !noWrap
		p.ties = p.ties || p.ring[d] && size%2 == 0
	}
	for s := range fabric.NodeID(g.Fabric.NumSwitches()) {
		sum := 0
		for _, x := range g.Coord(s) {
			sum += int(x)
		}
		p.odd[g.Position(s)] = uint8(sum & 1)
	}
	if !p.complete() {
		p.measure()
	}
	p.place()
	return p
}

// complete says whether no path can meet a missing cable or switch.
func (p *paths) complete() bool {
	for _, s := range p.g.at {
		if s == fabric.NoNode {
			return false
		}
		for way := range Dir(2 * len(p.g.Dims)) {
			if p.inside(s, way) && len(p.g.Ports(s, way)) == 0 {
				return false
			}
		}
	}
	return true
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

// measure finds how far each switch can go in each direction.
func (p *paths) measure() {
	g := p.g
	ways := 2 * len(g.Dims)
	p.hops = make([]int16, g.Fabric.NumSwitches()*ways)
	for s := range fabric.NodeID(g.Fabric.NumSwitches()) {
		for way := range Dir(ways) {
			n, at := 0, s
			for n < g.Dims[way.Dim()]-1 && p.inside(at, way) && len(g.Ports(at, way)) > 0 {
				if at = g.Neighbor(at, way); at == fabric.NoNode {
					break
				}
				n++
			}
			p.hops[int(s)*ways+int(way)] = int16(n)
		}
	}
}

// place finds the slot of every LID, and the LIDs of every slot.
func (p *paths) place() {
	f := p.g.Fabric
	owners := f.LIDPorts()
	slots := len(p.orders) * p.g.Positions()
	p.slot = make([]int32, len(owners))
	p.exit = make([]fabric.PortNum, len(owners))
	p.start = make([]int32, slots+1)
	for lid, port := range owners {
		p.slot[lid] = int32(slots)
		s, exit := delivery(f, port)
		if s == fabric.NoNode {
			continue
		}
		order := (lid - int(f.LID(port))) % len(p.orders)
		p.slot[lid] = int32(order*p.g.Positions() + p.g.Position(s))
		p.exit[lid] = exit
		p.start[p.slot[lid]+1]++
	}
	for i := range slots {
		p.start[i+1] += p.start[i]
	}
	p.lids = make([]fabric.LID, p.start[slots])
	next := append([]int32(nil), p.start...)
	for lid, slot := range p.slot {
		if slot < int32(slots) {
			p.lids[next[slot]] = fabric.LID(lid)
			next[slot]++
		}
	}
}

// delivery is the switch that has an end port, or a cable to it, and the port
// by which the switch delivers; NoNode when no switch does.
func delivery(f *fabric.Fabric, port fabric.PortID) (fabric.NodeID, fabric.PortNum) {
	if port == fabric.NoPort {
		return fabric.NoNode, 0
	}
	if n := f.Owner(port); f.IsSwitch(n) {
		return n, fabric.ManagementPort
	}
	peer := f.Peer(port)
	if peer == fabric.NoPort || !f.IsSwitch(f.Owner(peer)) {
		return fabric.NoNode, 0
	}
	return f.Owner(peer), f.Num(peer)
}

// toward is the direction from coordinate x to y of dimension d and the hops
// that it takes, for destinations whose coordinates have an odd or even sum.
func (p *paths) toward(d, x, y int, odd uint8) (Dir, int) {
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
	if minus := size - plus; minus < plus || minus == plus && odd != 0 {
		return Minus(d), minus
	}
	return Plus(d), plus
}

// tables fills the forwarding tables. An entry is NoPath when a cable or switch
// anywhere on the path is missing, so that packets which cannot arrive do not
// set out; broken counts these entries. Rows are independent of each other:
// the result does not depend on the number of CPUs. It takes O(switches x
// (positions + LIDs)), with parallel links times their number.
func (p *paths) tables(ctx context.Context) (t *lft.Tables, broken int, err error) {
	f := p.g.Fabric
	t = lft.NewTables(f.NumSwitches(), f.MaxLID())
	unit := capacities(f)
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
	const some = 16 // switches that a worker takes at a time
	var next atomic.Int32
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (switches+some-1)/some) {
		wg.Go(func() {
			work := newWork()
			for ctx.Err() == nil {
				to := int(next.Add(some))
				for s := to - some; s < min(to, switches); s++ {
					work(fabric.NodeID(s))
				}
				if to >= switches {
					return
				}
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// capacities gives by PortID what one path adds to the load of a channel: 64
// on the fastest link, on slower ones more in proportion.
func capacities(f *fabric.Fabric) []uint64 {
	const fastestUnit = 64
	unit := make([]uint64, f.NumPorts())
	fastest := 0
	for p := range unit {
		fastest = max(fastest, f.Link(fabric.PortID(p)).Mbps())
	}
	for p := range unit {
		unit[p] = fastestUnit
		if mbps := f.Link(fabric.PortID(p)).Mbps(); mbps > 0 {
			unit[p] = uint64((fastestUnit*fastest + mbps/2) / mbps)
		}
	}
	return unit
}

// row makes one row of the tables after the other: scratch of a worker.
//
// Directions are known by their rank, the place in the list of their order;
// of the second order, ranks go on after those of the first. The first
// direction of a path is the least rank of those that its dimensions want.
type row struct {
	*paths
	unit    []uint64 // by PortID
	arrived uint8    // rank of a dimension that wants no hop
	lost    uint8    // rank of a path that is broken
	rankOf  []uint8  // by order and direction
	before  []uint64 // by order and direction: positions in the dimensions that are earlier in the list
	wants   []uint8  // by coordinate of the dimension at hand
	least   [2][]uint8
	first   []uint8 // by slot: rank of the first direction
	num     [256]fabric.PortNum
	choices []choice
	broken  int // entries of the last row
}

// choice is the parallel links of a switch in one direction.
type choice struct {
	ports []fabric.PortID
	load  []uint64 // by index in ports, in capacity units
	turn  int      // for LIDs without load
}

func newRow(p *paths, unit []uint64) *row {
	ways := 2 * len(p.g.Dims)
	r := &row{
		paths:   p,
		unit:    unit,
		arrived: uint8(len(p.orders) * ways),
		rankOf:  make([]uint8, len(p.orders)*ways),
		before:  make([]uint64, len(p.orders)*ways),
		first:   make([]uint8, len(p.orders)*p.g.Positions()+1),
		choices: make([]choice, ways),
	}
	r.lost = r.arrived + 1
	r.first[len(r.first)-1] = r.lost
	longest := 0
	for _, size := range p.g.Dims {
		longest = max(longest, size)
	}
	r.wants = make([]uint8, longest)
	for i := range r.least {
		r.least[i] = make([]uint8, p.g.Positions())
	}
	for o, order := range p.orders {
		before := uint64(1)
		seen := make([]bool, ways)
		for i, way := range order {
			r.rankOf[o*ways+int(way)] = uint8(o*ways + i)
			r.before[o*ways+int(way)] = before
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
	ways := 2 * len(g.Dims)
	positions := g.Positions()
	r.broken = 0
	for o := range r.orders {
		part := r.first[o*positions : (o+1)*positions]
		r.directions(s, o, part)
		if r.hops != nil {
			r.breaks(s, o, part)
		}
	}
	for i := range r.num {
		r.num[i] = fabric.NoPath
	}
	parallel := false
	for way := range Dir(ways) {
		c := &r.choices[way]
		c.ports = g.Ports(s, way)
		if len(c.ports) == 0 {
			continue
		}
		parallel = parallel || len(c.ports) > 1
		for o := range r.orders {
			r.num[r.rankOf[o*ways+int(way)]] = g.Fabric.Num(c.ports[0])
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
		for _, lid := range r.lids[r.start[slot]:r.start[slot+1]] {
			to[lid] = r.exit[lid]
		}
	}
}

// directions finds the rank of the first direction from s to every position.
func (r *row) directions(s fabric.NodeID, order int, first []uint8) {
	if !r.ties {
		r.spread(s, order, 0, first)
		return
	}
	for odd := range r.least {
		r.spread(s, order, uint8(odd), r.least[odd])
	}
	for at := range first {
		first[at] = r.least[r.odd[at]][at]
	}
}

// spread does the same for destinations of one parity. It goes from
// the positions of the first dimension to those of the first two, and so on.
func (r *row) spread(s fabric.NodeID, order int, odd uint8, first []uint8) {
	ways := 2 * len(r.g.Dims)
	first[0] = r.arrived
	n := 1
	for d, size := range r.g.Dims {
		wants := r.wants[:size]
		x := int(r.g.Coord(s)[d])
		for y := range wants {
			way, _ := r.toward(d, x, y, odd)
			wants[y] = r.rankOf[order*ways+int(way)]
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

// breaks changes the rank of broken paths to lost, and counts their LIDs.
func (r *row) breaks(s fabric.NodeID, order int, first []uint8) {
	g := r.g
	ways := 2 * len(g.Dims)
	from := g.Coord(s)
	for at, t := range g.at {
		if t == fabric.NoNode || t == s {
			continue
		}
		u, to := s, g.Coord(t)
		for _, way := range r.orders[order] {
			d := way.Dim()
			if from[d] == to[d] {
				continue
			}
			if taken, hops := r.toward(d, int(from[d]), int(to[d]), r.odd[at]); taken == way {
				if int(r.hops[int(u)*ways+int(way)]) < hops {
					slot := order*len(first) + at
					r.broken += int(r.start[slot+1] - r.start[slot])
					first[at] = r.lost
					break
				}
				u = g.at[g.Position(u)+(int(to[d])-int(from[d]))*g.step[d]]
			}
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
	ways := 2 * len(g.Dims)
	positions := g.Positions()
	for way := range r.choices {
		c := &r.choices[way]
		c.load = append(c.load[:0], make([]uint64, len(c.ports))...)
		c.turn = 0
	}
	for o, order := range r.orders {
		for at, t := range g.at {
			slot := o*positions + at
			rank := int(r.first[slot]) - o*ways
			if t == fabric.NoNode || rank < 0 || rank >= ways {
				continue
			}
			c := &r.choices[order[rank]]
			if len(c.ports) == 1 {
				continue
			}
			weight := r.sources(s, t, o, order[rank])
			for _, lid := range r.lids[r.start[slot]:r.start[slot+1]] {
				i := c.turn
				if r.exit[lid] == fabric.ManagementPort {
					if c.turn++; c.turn == len(c.ports) {
						c.turn = 0
					}
				} else {
					i = c.least(weight, r.unit)
				}
				to[lid] = g.Fabric.Num(c.ports[i])
			}
		}
	}
}

// least is the port with the least load after weight more is put on it, and
// puts it there.
func (c *choice) least(weight uint64, unit []uint64) int {
	best, least := 0, ^uint64(0)
	for i, p := range c.ports {
		if load := c.load[i] + weight*unit[p]; load < least {
			best, least = i, load
		}
	}
	c.load[best] = least
	return best
}

// sources counts the switches whose path to t leaves s in direction way: those
// behind s in the dimension of way, any coordinate in the dimensions that
// paths are through with by then.
func (r *row) sources(s, t fabric.NodeID, order int, way Dir) uint64 {
	d := way.Dim()
	size := r.g.Dims[d]
	x, odd := int(r.g.Coord(s)[d]), r.odd[r.g.Position(t)]
	n := 0
	switch {
	case r.ring[d]:
		_, hops := r.toward(d, x, int(r.g.Coord(t)[d]), odd)
		most := (size - 1) / 2
		if size%2 == 0 && way.Positive() == (odd == 0) {
			most++
		}
		n = most - hops + 1
	case way.Positive():
		n = x + 1
	default:
		n = size - x
	}
	return uint64(n) * r.before[order*2*len(r.g.Dims)+int(way)]
}
