package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// distances returns a level for each switch: the one that package levels finds in the
// cables; if it finds none, by distance from the lowest GUID in each part of the fabric,
// which is on top.
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

// rows has the switches of each level in order.
type rows struct {
	rows [][]fabric.NodeID // by level, from the bottom
	// pods has, by pod and row, its switches in the lowest rows; below is the number
	// of these rows. It is nil if the tree has no pods.
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

// mostPodLevels bounds the levels of trees that are searched for pods.
const mostPodLevels = 16

// findPods finds the pods: the parts into which rows fall without the rows above, such as
// the pods of a fat tree. It sorts each row so that switches of a part are side by side,
// and parts by the first names in them. Rows must be sorted by name.
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
	parts := make([][]int32, len(r.rows)) // by row and switch: the lowest rank in its part so far
	for i := range r.rows {
		for _, e := range edges {
			if max(at[e.a], at[e.b]) == i {
				joins.Join(rank[e.a], rank[e.b])
			}
		}
		first := slices.Repeat([]int32{-1}, n) // by root: the lowest rank in its part
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

// podsOf returns the groups that the layout finds: the parts of a tree without its upper
// rows, with their hosts, and sets of upper switches with cables to the same switches. It
// returns false if there are none.
func (r *rows) podsOf(f *fabric.Fabric, hosts [][]fabric.NodeID) (Grouping, bool) {
	if r.pods == nil {
		return Grouping{}, false
	}
	g := Grouping{Name: "pods"}
	if r.below == 1 {
		g.Name = "leaves"
	}
	for _, pod := range r.pods {
		g.Groups = append(g.Groups, Group{Nodes: slices.Concat(pod...)})
	}
	for _, row := range r.rows[r.below:] {
		last := ""
		for _, s := range row {
			// A group has only neighbours in the row: a box with others would cover what is
			// between.
			if cables := fmt.Sprint(r.lower[s]); cables != last {
				g.Groups = append(g.Groups, Group{})
				last = cables
			}
			plane := &g.Groups[len(g.Groups)-1]
			plane.Nodes = append(plane.Nodes, s)
		}
	}
	common := ""
	if f.NumSwitches() > 1 {
		common = sharedName(f, slices.Concat(r.rows...))
	}
	names := make(map[string]int) // how many groups have this name
	for k := range g.Groups {
		g.Groups[k].Name = sharedName(f, g.Groups[k].Nodes)
		names[g.Groups[k].Name]++
	}
	for k := range g.Groups {
		x := &g.Groups[k]
		if x.Name == "" || x.Name == common || names[x.Name] > 1 || len(x.Nodes) == 1 && k >= len(r.pods) {
			switch {
			case k >= len(r.pods):
				x.Name = fmt.Sprintf("plane %d", k-len(r.pods)+1)
			case r.below == 1:
				x.Name = fmt.Sprintf("leaf %d", k+1)
			default:
				x.Name = fmt.Sprintf("pod %d", k+1)
			}
		}
		for _, s := range x.Nodes {
			x.Nodes = append(x.Nodes, hosts[s]...)
		}
	}
	g.Groups = slices.DeleteFunc(g.Groups, func(x Group) bool { return len(x.Nodes) < 2 })
	return g, len(g.Groups) > 1
}

// separators separate the words of names.
const separators = " :;/_,.-"

// shared returns the common beginning and end of all names, in whole words.
func shared(names []string) (head, tail string) {
	head, tail = names[0], names[0]
	for _, name := range names[1:] {
		i := 0
		for i < min(len(head), len(name)) && head[i] == name[i] {
			i++
		}
		head = head[:i]
		for !strings.HasSuffix(name, tail) {
			tail = tail[1:]
		}
	}
	if i := strings.IndexAny(tail, separators); i >= 0 {
		return head[:strings.LastIndexAny(head, separators)+1], tail[i:]
	}
	return head[:strings.LastIndexAny(head, separators)+1], ""
}

// sharedName returns the common end of the nodes' names, or else their common beginning; ""
// if there is none.
func sharedName(f *fabric.Fabric, nodes []fabric.NodeID) string {
	names := text.Each(nodes, func(n fabric.NodeID) string { return f.Name(n).Text })
	if len(names) == 1 {
		return names[0]
	}
	head, tail := shared(names)
	if strings.HasPrefix(tail, ".") { // a domain names no group
		tail = ""
	}
	return strings.ToValidUTF8(cmp.Or(strings.Trim(tail, separators), strings.Trim(head, separators)), "\uFFFD")
}

// of returns, by node, the index of its group, -1 for none.
func (g *Grouping) of(nodes int) []int32 {
	of := slices.Repeat([]int32{-1}, nodes)
	for k, x := range g.Groups {
		for _, n := range x.Nodes {
			of[n] = int32(k)
		}
	}
	return of
}

// among returns the groups for another fabric, whose node n corresponds to node in[n] of
// this one. It keeps groups without nodes, so that groups have the same numbers in both.
func (g *Grouping) among(in []fabric.NodeID, nodes int) Grouping {
	of := g.of(nodes)
	return g.with(text.Each(in, func(at fabric.NodeID) int32 { return of[at] }))
}

// with returns groups of the same names with other nodes: of has, by node, the index of its
// group, or a negative number.
func (g *Grouping) with(of []int32) Grouping {
	all := Grouping{Name: g.Name, Groups: make([]Group, len(g.Groups))}
	for k := range g.Groups {
		all.Groups[k].Name = g.Groups[k].Name
	}
	for n, k := range of {
		if k >= 0 {
			all.Groups[k].Nodes = append(all.Groups[k].Nodes, fabric.NodeID(n))
		}
	}
	return all
}

// withSwitches adds switches to groups of hosts: a switch joins a
// group if all its hosts, and in a tree all its lower switches, are
// in it. So racks and islands include their leaves.
func (g Grouping) withSwitches(f *fabric.Fabric, hosts [][]fabric.NodeID, level []int32) Grouping {
	const none, several = -1, -2
	of := slices.Repeat([]int32{none}, f.NumNodes())
	for k, x := range g.Groups {
		for _, n := range x.Nodes {
			if of[n] == none && !f.IsSwitch(n) {
				of[n] = int32(k)
			}
		}
	}
	order := f.Switches()
	if level != nil {
		slices.SortStableFunc(order, func(a, b fabric.NodeID) int { return cmp.Compare(level[a], level[b]) })
	}
	for _, s := range order {
		below := slices.Clone(hosts[s])
		if level != nil {
			below = append(below, text.Where(f.Neighbors(s), func(t fabric.NodeID) bool { return level[t] < level[s] })...)
		}
		for i, n := range below {
			if i == 0 {
				of[s] = of[n]
			} else if of[n] != of[s] {
				of[s] = several
			}
		}
	}
	return g.with(of)
}

// numbered numbers different values in the order of their first use.
type numbered[T comparable] struct {
	numbers map[T]int
	list    []T
}

// number returns the number of a value, from 0.
func (x *numbered[T]) number(v T) int {
	k, known := x.numbers[v]
	if !known {
		if x.numbers == nil {
			x.numbers = make(map[T]int)
		}
		k = len(x.list)
		x.numbers[v] = k
		x.list = append(x.list, v)
	}
	return k
}
