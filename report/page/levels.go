package page

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// distances gives each switch a level where the fabric has none: what package levels finds
// in its cables, or how far it is from the lowest GUID of its part of the fabric, which is on top.
func distances(f *fabric.Fabric) []int32 {
	level := levels.Of(f)
	if len(level) == 0 || slices.Max(level) > 0 {
		return level
	}
	of, parts := graph.Components(f.NumSwitches(), f.Neighbors)
	tops := make([]fabric.NodeID, parts)
	for s, part := range slices.Backward(of) {
		tops[part] = fabric.NodeID(s)
	}
	search := graph.NewSearch[fabric.NodeID](f.NumSwitches())
	search.Run(f.Neighbors, tops...)
	deepest := slices.Max(search.Distance)
	for s, d := range search.Distance {
		level[s] = deepest - d
	}
	return level
}

// onLevels places switches in rows, level 0 at the bottom, with hosts below their switches,
// but those of the top level above them. Rows are sorted by pods and names.
func (l *layout) onLevels(f *fabric.Fabric, level []int32, hosts [][]fabric.NodeID) {
	if f.NumSwitches() == 0 {
		return
	}
	r := newRows(f, level, l.edges)
	if g, ok := r.podsOf(f, hosts); ok {
		l.groupings = append(l.groupings, g)
	}
	widest := 0
	for _, row := range r.rows {
		widest = max(widest, len(row))
	}
	if widest > mostInRow && l.onTiles(r, hosts) {
		return
	}
	levels := float64(len(r.rows))
	width := float64(widest) * unit
	gap := max(1.7*unit, 0.6*width/max(levels-0.5, 1))
	tallest := min(0.85*gap, max(0.7*unit, 0.5*gap))
	for i, row := range r.rows {
		spacing := width / float64(len(row))
		y := -float64(i) * gap
		top := i == len(r.rows)-1 && i > 0
		for k, s := range row {
			x := (float64(k) + 0.5) * spacing
			radius := min(0.3*spacing, 0.5*unit, 0.09*gap)
			l.x[s], l.y[s], l.radius[s] = float32(x), float32(y), float32(radius)
			switch {
			case top:
				l.block(hosts[s], x, y-1.5*radius, 0.8*spacing, 0.3*gap, true)
			case i == 0:
				l.block(hosts[s], x, y+1.5*radius, 0.8*spacing, tallest, false)
			default:
				l.block(hosts[s], x, y+1.5*radius, 0.5*spacing, 0.3*gap, false)
			}
		}
	}
	for i := range l.edges {
		e := &l.edges[i]
		if level[e.a] != level[e.b] {
			continue
		}
		// Within a row: an arc above, the higher the longer.
		e.bend = min(0.5*float32(gap), 0.2*unit+0.12*max(l.x[e.a]-l.x[e.b], l.x[e.b]-l.x[e.a]))
		if l.x[e.a] > l.x[e.b] {
			e.bend = -e.bend
		}
	}
}

// rows is switches in levels, and their order.
type rows struct {
	rows [][]fabric.NodeID // by level, from the bottom
	// pods is by pod and row the switches of the lowest rows, below of them; nil where the tree does
	// not fall into pods.
	pods  [][][]fabric.NodeID
	below int
	lower [][]fabric.NodeID // by switch: its neighbours one level down
}

func newRows(f *fabric.Fabric, level []int32, edges []edge) *rows {
	n := f.NumSwitches()
	r := &rows{lower: make([][]fabric.NodeID, n)}
	r.rows = make([][]fabric.NodeID, slices.Max(level)+1)
	for s := range fabric.NodeID(n) {
		r.rows[level[s]] = append(r.rows[level[s]], s)
	}
	r.rows = slices.DeleteFunc(r.rows, func(row []fabric.NodeID) bool { return len(row) == 0 })
	for _, row := range r.rows {
		slices.SortFunc(row, func(a, b fabric.NodeID) int {
			return cmp.Or(text.Natural(f.Name(a).Text, f.Name(b).Text), cmp.Compare(a, b))
		})
	}
	r.findPods(edges)
	for _, e := range edges {
		for _, way := range [][2]fabric.NodeID{{e.a, e.b}, {e.b, e.a}} {
			if level[way[0]]-level[way[1]] == 1 {
				r.lower[way[0]] = append(r.lower[way[0]], way[1])
			}
		}
	}
	return r
}

// mostPodLevels bounds the levels that are looked at for pods.
const mostPodLevels = 16

// findPods finds what belongs together: the parts that rows fall into when those above are
// taken away, such as the pods of a fat tree. Switches of a part stand side by side in
// every row, and parts in the order of the first names in them. Rows are in the order of
// names.
func (r *rows) findPods(edges []edge) {
	if len(r.rows) > mostPodLevels {
		return
	}
	n := len(r.lower)
	all := slices.Concat(r.rows...)
	at, rank := make([]int, n), make([]int32, n) // by switch: its row, and its place in all
	for i, row := range r.rows {
		for _, s := range row {
			at[s] = i
		}
	}
	for k, s := range all {
		rank[s] = int32(k)
	}
	joins := graph.NewUnionFind[int32](n)
	parts := make([][]int32, len(r.rows)) // by row and switch: the lowest rank in its part up to there
	for i := range r.rows {
		for _, e := range edges {
			if max(at[e.a], at[e.b]) == i {
				joins.Join(rank[e.a], rank[e.b])
			}
		}
		first := slices.Repeat([]int32{-1}, n) // by the rank that stands for a part
		parts[i] = make([]int32, n)
		for k, s := range all {
			root := joins.Find(int32(k))
			if first[root] < 0 {
				first[root] = int32(k)
			}
			parts[i][s] = first[root]
		}
	}
	for i, row := range r.rows {
		slices.SortStableFunc(row, func(a, b fabric.NodeID) int {
			for _, part := range slices.Backward(parts[i:]) {
				if c := cmp.Compare(part[a], part[b]); c != 0 {
					return c
				}
			}
			return 0
		})
	}
	for i := len(r.rows) - 2; i >= 0 && r.pods == nil; i-- {
		if slices.ContainsFunc(slices.Concat(r.rows[:i+1]...), func(s fabric.NodeID) bool { return parts[i][s] > 0 }) {
			r.below = i + 1
		}
		var pods numbered[int32]
		for k, row := range r.rows[:r.below] {
			for _, s := range row {
				pod := pods.number(parts[i][s])
				if pod == len(r.pods) {
					r.pods = append(r.pods, make([][]fabric.NodeID, r.below))
				}
				r.pods[pod][k] = append(r.pods[pod][k], s)
			}
		}
	}
}
