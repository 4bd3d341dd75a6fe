package mesh

import (
	"context"
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

// sideLoad is the load of the busiest link along dimension j of the order with the
// trunk at coordinate y.
func (l *combLoads) sideLoad(j, y int) int64 {
	most := int64(0)
	for i, x := range l.load[j] {
		switch link := i % l.g.Dims[l.order[j]]; {
		case y <= link:
			most = max(most, x[beyondPlus], x[beyondMinus])
		default:
			most = max(most, x[beforePlus], x[beforeMinus])
		}
	}
	return most
}

// trunkLoad is the load of the busiest link of the trunk.
func (l *combLoads) trunkLoad() int64 { return l.sideLoad(0, 0) }

// spread moves the coordinates of trunks in the last dimension of the order, no two to
// one, as long as the busiest link along it, when the trunks share the load equally,
// carries less, or as much with the trunks nearer to the middle.
func (l *combLoads) spread(rows []int) {
	j := len(l.order) - 1
	size := l.g.Dims[l.order[j]]
	cost := func() []int64 {
		load, distance := int64(0), 0
		for _, y := range rows {
			distance += abs(2*y - size + 1)
		}
		for i, x := range l.load[j] {
			above := int64(0)
			for _, y := range rows {
				if y > i%size {
					above++
				}
			}
			below := int64(len(rows)) - above
			load = max(load, below*x[beyondPlus]+above*x[beforePlus], below*x[beyondMinus]+above*x[beforeMinus])
		}
		return []int64{load, int64(distance)}
	}
	best := cost()
	for moved := true; moved; {
		moved = false
		for k := range rows {
			for y := range size {
				before := rows[k]
				if slices.Contains(rows, y) {
					continue
				}
				rows[k] = y
				if c := cost(); slices.Compare(c, best) < 0 {
					best, moved = c, true
				} else {
					rows[k] = before
				}
			}
		}
	}
	slices.Sort(rows)
}
