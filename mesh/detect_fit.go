package mesh

import (
	"cmp"

	"github.com/ibweave/ibweave/fabric"
)

// shape is a grid in its finest form: no dimension is a ring of four, since
// that is two dimensions of size 2.
type shape struct {
	size []int32 // 2 or more each; none for a single switch
	ring []bool  // 3 or 5 or more positions where true
}

// positions is the product of the sizes, or more than limit if that is more
// than limit.
func (s shape) positions(limit int) int {
	n := 1
	for _, size := range s.size {
		if n > limit/int(size) {
			return limit + 1
		}
		n *= int(size)
	}
	return n
}

// links is how many pairs of neighbouring positions there are.
func (s shape) links() int {
	n := s.positions(maxPositions)
	total := 0
	for d, size := range s.size {
		along := int(size) - 1
		if s.ring[d] {
			along++
		}
		total += n / int(size) * along
	}
	return total
}

// maxPositions is more than any fabric has switches for.
const maxPositions = 1 << 30

// mostPositions is how many positions a grid of n switches may have: an eighth
// of them may be without a switch.
func mostPositions(n int) int { return 8 * n / 7 }

// mostMissing is how many links may be missing between the n switches that are
// there: the part of the positions without a switch and the part of the links
// that are missing may be an eighth together, rounded to the nearest link.
func (s shape) mostMissing(n int) int {
	positions, links := s.positions(maxPositions), s.links()
	return (positions*(links+4) - 8*(positions-n)*links) / (8 * positions)
}

// fit is a shape with a position for every switch.
type fit struct {
	shape
	coord   []int32         // by switch and dimension
	at      []fabric.NodeID // by position, the first dimension slowest
	step    []int           // by dimension
	absent  int             // positions without a switch
	missing int             // neighbouring positions with switches but without a link
}

// newFit finds the sizes of the dimensions that are no rings and moves all
// coordinates to 0 and more. It says false when there are far more positions
// than switches, or two switches meet.
func newFit(s shape, coord []int32) (*fit, bool) {
	dims := len(s.size)
	n := 1
	if dims > 0 {
		n = len(coord) / dims
	}
	f := &fit{shape: s, coord: coord, step: make([]int, dims)}
	for d := range dims {
		if s.ring[d] {
			continue
		}
		low, high := coord[d], coord[d]
		for i := d; i < len(coord); i += dims {
			low, high = min(low, coord[i]), max(high, coord[i])
		}
		for i := d; i < len(coord); i += dims {
			coord[i] -= low
		}
		s.size[d] = high - low + 1
	}
	positions := s.positions(mostPositions(n))
	if positions > mostPositions(n) {
		return nil, false
	}
	f.absent = positions - n
	step := positions
	for d, size := range s.size {
		step /= int(size)
		f.step[d] = step
	}
	f.at = make([]fabric.NodeID, positions)
	for i := range f.at {
		f.at[i] = fabric.NoNode
	}
	for i := range fabric.NodeID(n) {
		p := f.position(i)
		if f.at[p] != fabric.NoNode {
			return nil, false
		}
		f.at[p] = i
	}
	return f, true
}

func (f *fit) position(s fabric.NodeID) int {
	p := 0
	for d, x := range f.coord[int(s)*len(f.size) : (int(s)+1)*len(f.size)] {
		p += int(x) * f.step[d]
	}
	return p
}

// direction is that from switch s to switch t, NoDir when they are not
// neighbours.
func (f *fit) direction(s, t fabric.NodeID) Dir {
	dims := len(f.size)
	found := NoDir
	for d := range dims {
		x, y := f.coord[int(s)*dims+d], f.coord[int(t)*dims+d]
		if x == y {
			continue
		}
		if found != NoDir {
			return NoDir
		}
		last := f.size[d] - 1
		switch {
		case y == x+1 || f.ring[d] && x == last && y == 0:
			found = Plus(d)
		case y == x-1 || f.ring[d] && x == 0 && y == last:
			found = Minus(d)
		default:
			return NoDir
		}
	}
	return found
}

// beyond is the switch next to s in direction plus of dimension d, and whether
// there is such a position.
func (f *fit) beyond(s fabric.NodeID, d int) (fabric.NodeID, bool) {
	x, p := f.coord[int(s)*len(f.size)+d], f.position(s)
	switch {
	case x+1 < f.size[d]:
		return f.at[p+f.step[d]], true
	case f.ring[d]:
		return f.at[p-int(x)*f.step[d]], true
	}
	return fabric.NoNode, false
}

// check is what makes every detection sound: it goes through all links of g
// and returns those that do not join neighbouring positions, and counts the
// links that are missing.
func (f *fit) check(g *links) (odd []cable) {
	n := fabric.NodeID(g.switches())
	for s := range n {
		for _, t := range g.of(s) {
			if s < t && f.direction(s, t) == NoDir {
				odd = append(odd, cable{s, t})
			}
		}
	}
	f.missing = 0
	for s := range n {
		for d := range f.size {
			if t, ok := f.beyond(s, d); ok && t != fabric.NoNode {
				if _, linked := g.slot(s, t); !linked {
					f.missing++
				}
			}
		}
	}
	return odd
}

// torn says whether fewer than a third of the links of a step round a ring are
// there: then it is no ring, but an open dimension with links where none
// belong, which are those.
func (f *fit) torn(g *links) (odd []cable, torn bool) {
	for d, ring := range f.ring {
		if !ring {
			continue
		}
		have, want := make([]int, f.size[d]), make([]int, f.size[d])
		for s := range fabric.NodeID(g.switches()) {
			t, _ := f.beyond(s, d)
			if t == fabric.NoNode {
				continue
			}
			x := f.coord[int(s)*len(f.size)+d]
			want[x]++
			if _, linked := g.slot(s, t); linked {
				have[x]++
			}
		}
		at := 0
		for x := range have {
			if have[x]*want[at] < have[at]*want[x] || want[x] == 0 {
				at = x
			}
		}
		if want[at] > 0 && 3*have[at] >= want[at] {
			continue
		}
		for s := range fabric.NodeID(g.switches()) {
			if t, _ := f.beyond(s, d); t != fabric.NoNode && int(f.coord[int(s)*len(f.size)+d]) == at {
				if _, linked := g.slot(s, t); linked {
					odd = append(odd, cableOf(s, t))
				}
			}
		}
		return odd, true
	}
	return nil, false
}

// faults is how many things are missing.
func (f *fit) faults() int { return f.absent + f.missing }

// rings is how many dimensions are rings.
func (s shape) rings() int {
	n := 0
	for _, ring := range s.ring {
		if ring {
			n++
		}
	}
	return n
}

// compare orders the fits of one graph, the best first: the one with the fewest
// positions, then with the fewest missing links, then with the fewest
// dimensions, then with the fewest rings.
func (f *fit) compare(g *fit) int {
	return cmp.Or(len(f.at)-len(g.at), f.missing-g.missing, len(f.size)-len(g.size), f.rings()-g.rings())
}
