package mesh

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// paths is dimension-order routing on a grid: a path takes all the hops that
// it needs in the first dimension of an order, then all in the next one, and so
// on.
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
// Between parallel links the balancer chooses, see lft.Balance.
type paths struct {
	g      *Grid
	noWrap bool
	ring   []bool  // by dimension: whether the cables that close it are used
	tied   []bool  // by dimension: whether it is a ring of even length, with paths half way round
	odd    []uint8 // by switch: the parity of the sum of its coordinates in these
}

// newPaths prepares for g; noWrap leaves the cables that close rings out.
func newPaths(g *Grid, noWrap bool) *paths {
	p := &paths{g: g, noWrap: noWrap, ring: make([]bool, len(g.Dims)), tied: make([]bool, len(g.Dims)), odd: make([]uint8, g.Fabric.NumSwitches())}
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
		p.odd[s] = uint8(sum & 1)
	}
	return p
}

// next is the switch that a hop from s in direction way leads to, NoNode for
// none.
func (p *paths) next(s fabric.NodeID, way Dir) fabric.NodeID {
	ports := p.g.Ports(s, way)
	if len(ports) == 0 || p.noWrap && p.g.Wraps(ports[0]) {
		return fabric.NoNode
	}
	return p.g.Fabric.PeerSwitch(ports[0])
}

// toward is the direction from coordinate x to y of dimension d and the hops
// that it takes, where the other coordinates are those of switch s.
func (p *paths) toward(s fabric.NodeID, d, x, y int) (Dir, int) {
	odd := uint8(0)
	if p.tied[d] {
		odd = p.odd[s] ^ uint8(p.g.Coord(s)[d]&1)
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

// tables makes the forwarding tables for paths by one of several orders of the dimensions: a LID that is n above
// its port's base LID goes by orders[n%len(orders)]. An entry is NoPath when a cable or switch anywhere on the path is
// missing, so that packets which cannot arrive do not set out; broken counts these entries. It takes the
// time of lft.Balance for each order.
func (p *paths) tables(ctx context.Context, orders ...[]int) (t *lft.Tables, broken int, err error) {
	f := p.g.Fabric
	for o, order := range orders {
		own, err := lft.Balance(ctx, f, func() lft.ListNextHops { return p.listHops(order) })
		if err != nil {
			return nil, 0, err
		}
		if o == 0 {
			t = own
			continue
		}
		for lid, port := range f.LIDPorts() {
			if port == fabric.NoPort || orderOf(f, fabric.LID(lid), len(orders)) != o {
				continue
			}
			for s := range fabric.NodeID(f.NumSwitches()) {
				t.Row(s)[lid] = own.Row(s)[lid]
			}
		}
	}
	if len(p.g.Missing) > 0 {
		broken = countBroken(f, t)
	}
	return t, broken, nil
}

// orderOf is the order, of n, by which packets go to a LID that a port has.
func orderOf(f *fabric.Fabric, lid fabric.LID, n int) int { return int(lid-f.LID(f.LIDPort(lid))) % n }

// countBroken counts the entries without a path for LIDs that are at a switch.
func countBroken(f *fabric.Fabric, t *lft.Tables) (broken int) {
	for s := range fabric.NodeID(f.NumSwitches()) {
		row := t.Row(s)
		for lid, port := range f.LIDPorts() {
			if row[lid] == fabric.NoPath && f.Attachment(port) != fabric.NoPort {
				broken++
			}
		}
	}
	return broken
}

// listHops lists, for an order of the dimensions, the switches whose path to a destination has all its cables,
// each with its ports in the direction that the path takes.
func (p *paths) listHops(order []int) lft.ListNextHops {
	const unknown, arrives, stops = 0, 1, 2
	n := p.g.Fabric.NumSwitches()
	state, way := make([]uint8, n), make([]Dir, n)
	var path, list []fabric.NodeID
	return func(t fabric.NodeID, h *lft.NextHops) error {
		clear(state)
		state[t] = arrives
		list = list[:0]
		for s := range fabric.NodeID(n) {
			path = path[:0]
			u, end := s, uint8(stops)
			for ; u != fabric.NoNode && state[u] == unknown; u = p.next(u, way[u]) {
				way[u] = p.firstHop(u, t, order)
				path = append(path, u)
			}
			if u != fabric.NoNode {
				end = state[u]
			}
			for _, u := range slices.Backward(path) {
				if state[u] = end; end == arrives {
					list = append(list, u)
				}
			}
		}
		for _, s := range slices.Backward(list) {
			p.g.addHops(h, s, way[s])
		}
		return nil
	}
}

// firstHop is the direction of the first hop from switch s to another one.
func (p *paths) firstHop(s, t fabric.NodeID, order []int) Dir {
	from, to := p.g.Coord(s), p.g.Coord(t)
	for _, d := range order {
		if from[d] != to[d] {
			way, _ := p.toward(s, d, int(from[d]), int(to[d]))
			return way
		}
	}
	return NoDir
}

// addHops adds switch s to h, with its ports in a direction.
func (g *Grid) addHops(h *lft.NextHops, s fabric.NodeID, way Dir) {
	var nums [int(fabric.MaxPortNum)]fabric.PortNum
	ports := g.Ports(s, way)
	for i, p := range ports {
		nums[i] = g.Fabric.Num(p)
	}
	h.Add(s, nums[:len(ports)]...)
}

// eachSwitch calls what newWork returns for every switch, on all CPUs.
func eachSwitch(ctx context.Context, switches int, newWork func() func(fabric.NodeID)) error {
	_, err := par.ForEachWith(ctx, 0, switches, newWork, func(work func(fabric.NodeID), s int) error {
		work(fabric.NodeID(s))
		return nil
	})
	return err
}
