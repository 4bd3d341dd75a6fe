package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// Grouping is groups of nodes that the page can close, each to one box: racks, islands. A
// node that several groups have is in the first of them.
type Grouping struct {
	Name   string
	Groups []Group
}

// Group is nodes that belong together.
type Group struct {
	Name  string
	Nodes []fabric.NodeID
}

// podsOf returns the groups that the layout finds: the parts into which a tree falls without
// its upper rows, with their hosts, and sets of upper switches that are cabled to the same switches. It
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
			// Apart from others of these cables: a box of all would be over what is between them.
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
	names := make(map[string]int) // groups of this name
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

// separators stand between the words of names.
const separators = " :;/_,.-"

// shared returns the beginning and the end that all names share, in whole words.
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

// sharedName returns what the names of nodes share: their end, or else their
// beginning; "" if they share nothing.
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

// of is by node the index of its group, -1 for none.
func (g *Grouping) of(nodes int) []int32 {
	of := slices.Repeat([]int32{-1}, nodes)
	for k, x := range g.Groups {
		for _, n := range x.Nodes {
			of[n] = int32(k)
		}
	}
	return of
}

// among is the groups of another fabric, whose node n has the place of node in[n] of this one.
// Groups without nodes stay, so that groups have the same numbers in both.
func (g *Grouping) among(in []fabric.NodeID, nodes int) Grouping {
	of := g.of(nodes)
	return g.with(text.Each(in, func(at fabric.NodeID) int32 { return of[at] }))
}

// with is groups of the same names with other nodes: by node the index of its group, below 0
// for none.
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

// withSwitches adds switches to groups of hosts: a switch whose hosts, or in a tree whose lower
// switches, are all in one group. So racks and islands include their leaves.
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

// mostInRow is how many switches the widest row of a tree has that is drawn as rows alone.
const mostInRow = 512

// onTiles places the pods of a wide tree as tiles, in lines of equal length, and the switches
// above the pods over all of them; in single long rows one could not see the pods. It returns
// false, and places nothing, where there are no pods.
func (l *layout) onTiles(r *rows, hosts [][]fabric.NodeID) bool {
	if r.pods == nil || len(l.groupings) == 0 || r.below != len(r.rows)-1 {
		return false
	}
	wide := 0
	for _, pod := range r.pods {
		for _, row := range pod {
			wide = max(wide, len(row))
		}
	}
	width := float64(wide) * unit
	gap := max(1.7*unit, 0.28*width)
	height := gap * (float64(r.below) - 0.4)
	columns := min(len(r.pods), max(1, int(math.Round(math.Sqrt(1.7*float64(len(r.pods))*height/width)))))
	stepX, stepY := width+max(2*unit, 0.08*width), height+max(2*unit, 0.35*height)
	for k, pod := range r.pods {
		left, bottom := float64(k%columns)*stepX, float64(k/columns)*stepY
		for i, row := range pod {
			spacing := width / float64(max(len(row), 1))
			for j, s := range row {
				x, y := left+(float64(j)+0.5)*spacing, bottom-float64(i)*gap
				l.x[s], l.y[s], l.radius[s] = float32(x), float32(y), 0.3*unit
				l.block(hosts[s], x, y+0.45*unit, 0.8*min(spacing, 3*unit), 0.5*gap, false)
			}
		}
	}
	l.aboveTiles(r, hosts, float64(columns)*stepX-(stepX-width), -float64(r.below)*gap)
	return true
}

// aboveTiles places the top row over tiles of some width: switches with the same cables side by
// side, as squares, from the bottom up.
func (l *layout) aboveTiles(r *rows, hosts [][]fabric.NodeID, width, bottom float64) {
	var planes [][]fabric.NodeID
	var cables numbered[string]
	for _, s := range r.rows[r.below] {
		k := cables.number(fmt.Sprint(r.lower[s]))
		if k == len(planes) {
			planes = append(planes, nil)
		}
		planes[k] = append(planes[k], s)
	}
	side := 1
	for _, plane := range planes {
		side = max(side, int(math.Ceil(math.Sqrt(float64(len(plane))))))
	}
	step := float64(side+1) * unit
	columns := max(1, int((width+unit)/step))
	columns = (len(planes) + (len(planes)+columns-1)/columns - 1) / ((len(planes) + columns - 1) / columns)
	step = max(step, (width+unit)/float64(columns))
	for k, plane := range planes {
		left := float64(k%columns)*step + (step-float64(side)*unit)/2 - unit/2
		y0 := bottom - 4*unit - float64(k/columns)*float64(side+2)*unit
		for j, s := range plane {
			x, y := left+(float64(j%side)+0.5)*unit, y0-float64(j/side)*unit
			l.x[s], l.y[s], l.radius[s] = float32(x), float32(y), 0.3*unit
			l.block(hosts[s], x, y+0.4*unit, 0.3*unit, 0.2*unit, false)
		}
	}
}
