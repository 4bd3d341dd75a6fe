package mesh

import (
	"context"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/mft"
)

// combLoads is the copies that groups send over combs when each sender sends
// one packet, for all trunks at once.
//
// The links of a comb along dimension j of its order are in lines, one for each
// combination of the coordinates before it, and what a group sends there
// depends on its members' coordinates up to j only: those after it are the
// trunk's. Take the link of a line between y and y+1, and the members beyond it
// in the same line, on the side away from the trunk. All others of the group's
// senders send over it, outward, when there is a receiver among these; and
// inward those among these send, when there is a receiver elsewhere. So the load
// of a link depends on the trunk only by the side that the trunk is on, and
// there are two loads for each direction. On the trunk itself both are the same.
type combLoads struct {
	g     *Grid
	order []int
	step  []int // by place in order: how far apart positions in the order are that differ by 1
	lines []int // by place in order
	// load is by place in order, then line*size+y: the copies on the link from y
	// to y+1.
	load [][]sideLoads
}

// sideLoads is by side of the trunk, then direction.
type sideLoads [4]int64

const (
	beyondPlus  = iota // the trunk is at y or below: towards greater coordinates
	beyondMinus        // towards smaller ones
	beforeMinus        // the trunk is above y
	beforePlus
)

// newCombLoads takes O(members x log members x dimensions) for each group.
func newCombLoads(ctx context.Context, g *Grid, order []int, groups []mft.Group) (*combLoads, error) {
	l := emptyCombLoads(g, order)
	start := func() *combLoads { return emptyCombLoads(g, order) }
	parts, err := par.ForEachWith(ctx, 0, len(groups), start, func(part *combLoads, i int) error {
		part.add(&groups[i])
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		for j, load := range part.load {
			for i := range load {
				for k, n := range load[i] {
					l.load[j][i][k] += n
				}
			}
		}
	}
	for j, load := range l.load {
		size := g.Dims[order[j]]
		for i := range load {
			if i%size == 0 {
				continue
			}
			for k := range load[i] {
				load[i][k] += load[i-1][k]
			}
		}
	}
	return l, nil
}

func emptyCombLoads(g *Grid, order []int) *combLoads {
	n := len(order)
	l := &combLoads{g: g, order: order, step: make([]int, n), lines: make([]int, n), load: make([][]sideLoads, n)}
	positions := 1
	for j, d := range order {
		l.lines[j] = positions
		positions *= g.Dims[d]
		l.load[j] = make([]sideLoads, positions)
	}
	for j, d := range order {
		l.step[j] = positions / l.lines[j] / g.Dims[d]
	}
	return l
}

// add adds the differences between the loads of neighbouring links.
func (l *combLoads) add(g *mft.Group) {
	// A key is twice the position in the order, and 1 more for a sender.
	keys := make([]int, 0, len(g.Receivers)+len(g.Senders))
	f := l.g.Fabric
	for i, list := range [2][]fabric.PortID{g.Receivers, g.Senders} {
		for _, p := range list {
			x := l.g.Coord(f.Owner(f.Attachment(p)))
			at := 0
			for j, d := range l.order {
				at += int(x[d]) * l.step[j]
			}
			keys = append(keys, 2*at+i)
		}
	}
	slices.Sort(keys)
	for j := range l.order {
		size := l.g.Dims[l.order[j]]
		for from := 0; from < len(keys); {
			line := keys[from] / (2 * l.step[j]) / size
			to := from
			for to < len(keys) && keys[to]/(2*l.step[j])/size == line {
				to++
			}
			l.addLine(j, line, keys[from:to], len(g.Senders), len(g.Receivers))
			from = to
		}
	}
}

// addLine is add for one line, whose members are given.
func (l *combLoads) addLine(j, line int, keys []int, senders, receivers int) {
	size := l.g.Dims[l.order[j]]
	load := l.load[j][line*size : (line+1)*size]
	var below, above [2]int // receivers and senders of the line
	for _, key := range keys {
		above[key%2]++
	}
	y := 0
	put := func(to int) { // the same members for the links from y to before to
		if y == to {
			return
		}
		var x sideLoads
		if above[0] > 0 {
			x[beyondPlus] = int64(senders - above[1])
		}
		if above[0] < receivers {
			x[beyondMinus] = int64(above[1])
		}
		if below[0] > 0 {
			x[beforeMinus] = int64(senders - below[1])
		}
		if below[0] < receivers {
			x[beforePlus] = int64(below[1])
		}
		for k, n := range x {
			load[y][k] += n
			load[to][k] -= n
		}
		y = to
	}
	for _, key := range keys {
		put(key / (2 * l.step[j]) % size)
		below[key%2]++
		above[key%2]--
	}
	put(size - 1)
}

// greatest is the load of the busiest of the links from y to y+1 along
// dimension j of the order, when of all trunks, which share the load equally,
// some are at y or below and the others above; times the number of trunks.
func (l *combLoads) greatest(j, y, below, trunks int) int64 {
	size := l.g.Dims[l.order[j]]
	a, b := int64(below), int64(trunks-below)
	most := int64(0)
	for line := range l.lines[j] {
		x := &l.load[j][line*size+y]
		most = max(most, a*x[beyondPlus]+b*x[beforePlus], a*x[beyondMinus]+b*x[beforeMinus])
	}
	return most
}

// trunkLoad is the load of the busiest link of the trunk.
func (l *combLoads) trunkLoad() int64 {
	most := int64(0)
	for y := range l.g.Dims[l.order[0]] - 1 {
		most = max(most, l.greatest(0, y, 1, 1))
	}
	return most
}

// rowChoice chooses the coordinates of trunks in one dimension.
type rowChoice struct {
	size    int
	weight  [][]int64 // by y, then by how many trunks are at y or below: the load of the links from y to y+1
	allowed [][]bool  // by trunk and coordinate
	least   int64     // the load that matters: what is less counts as equal
}

// newRowChoice is for some trunks along dimension j of the order, all of whose
// coordinates are allowed at first.
func newRowChoice(l *combLoads, j, trunks int, least int64) *rowChoice {
	c := &rowChoice{size: l.g.Dims[l.order[j]], least: least, allowed: make([][]bool, trunks)}
	for y := range c.size - 1 {
		w := make([]int64, trunks+1)
		for below := range w {
			w[below] = l.greatest(j, y, below, trunks)
		}
		c.weight = append(c.weight, w)
	}
	for k := range c.allowed {
		c.allowed[k] = slices.Repeat([]bool{true}, c.size)
	}
	return c
}

// rows chooses a coordinate for each trunk, ascending, all different as long as
// there are enough, such that the greatest load is the least and, of those, the
// sum of the distances to the middle; of equal ones the first coordinates are
// the lowest. It returns nil when too few are allowed. load is at least c.least.
func (c *rowChoice) rows() (rows []int, load int64) {
	load = c.search(math.MaxInt64, nil)
	if load == math.MaxInt64 {
		return nil, 0
	}
	rows = make([]int, len(c.allowed))
	c.search(load, rows)
	return rows, load
}

// search is the least load with which all trunks have a coordinate, or, with
// rows, which it fills, the least sum of twice the distances to the middle with
// a load up to limit; math.MaxInt64 when there is no way. It takes O(size x
// trunks) when there are no more trunks than coordinates.
func (c *rowChoice) search(limit int64, rows []int) int64 {
	const never = math.MaxInt64
	n := len(c.allowed)
	most := (n + c.size - 1) / c.size // trunks on one coordinate
	cost := make([][]int64, c.size+1) // by coordinate and trunks placed before: of what is left
	take := make([][]int, c.size)     // likewise, how many trunks to place
	for y := range cost {
		cost[y] = slices.Repeat([]int64{never}, n+1)
	}
	cost[c.size][n] = 0
	for y := c.size - 1; y >= 0; y-- {
		take[y] = make([]int, n+1)
		for k := range n + 1 {
			for m := 0; m <= most && k+m <= n; m++ {
				if m > 0 && !c.allowed[k+m-1][y] {
					break
				}
				x := cost[y+1][k+m]
				w := c.least
				if y < c.size-1 {
					w = max(w, c.weight[y][k+m])
				}
				switch {
				case x == never || w > limit:
					continue
				case rows == nil:
					x = max(x, w)
				default:
					x += int64(m * abs(2*y-c.size+1))
				}
				if x <= cost[y][k] { // of equal ones the most trunks here
					cost[y][k], take[y][k] = x, m
				}
			}
		}
	}
	if rows != nil && cost[0][0] != never {
		k := 0
		for y := range c.size {
			for range take[y][k] {
				rows[k] = y
				k++
			}
		}
	}
	return cost[0][0]
}
