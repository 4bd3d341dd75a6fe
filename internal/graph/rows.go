package graph

import "math/bits"

// Rows is a directed graph in which all edges of a vertex lead into one window of
// vertices, such as the channels that leave one switch. Each vertex has a row of bits.
type Rows struct {
	base  []int32 // by vertex: the first of its window; -1 for a vertex without edges
	words int     // of each row
	Bits  []uint64
}

// NewRows returns a graph without edges. base, which it keeps, has for each vertex the
// first vertex of its window, -1 for none; width is the most vertices in a window.
func NewRows(base []int32, width int) Rows {
	words := max(1, (width+63)/64)
	return Rows{base, words, make([]uint64, len(base)*words)}
}

// Row returns the bits of a vertex.
func (r *Rows) Row(v int32) []uint64 { return r.Bits[int(v)*r.words : (int(v)+1)*r.words] }

// at returns where the bit of the edge from v to w is; w is in the window of v.
func (r *Rows) at(v, w int32) (word *uint64, bit uint64) {
	i := w - r.base[v]
	return &r.Bits[int(v)*r.words+int(i>>6)], 1 << (i & 63)
}

// Add adds the edge from v to w.
func (r *Rows) Add(v, w int32) {
	word, bit := r.at(v, w)
	*word |= bit
}

// Remove takes the edge from v to w away.
func (r *Rows) Remove(v, w int32) {
	word, bit := r.at(v, w)
	*word &^= bit
}

// Has returns true if there is an edge from v to w.
func (r *Rows) Has(v, w int32) bool {
	word, bit := r.at(v, w)
	return *word&bit != 0
}

// Union adds the edges of another graph with the same windows.
func (r *Rows) Union(o *Rows) {
	for i, set := range o.Bits {
		r.Bits[i] |= set
	}
}

// Count returns the number of edges.
func (r *Rows) Count() (n int) {
	for _, set := range r.Bits {
		n += bits.OnesCount64(set)
	}
	return n
}

// Next returns a lister of edges, ascending, with a buffer of its own.
func (r *Rows) Next() Next[int32] {
	var list []int32
	return func(v int32) []int32 {
		list = list[:0]
		for i, set := range r.Row(v) {
			for ; set != 0; set &= set - 1 {
				list = append(list, r.base[v]+int32(i<<6+bits.TrailingZeros64(set)))
			}
		}
		return list
	}
}

// Levels numbers n vertices along a topological order: 0 if no edge leads to
// a vertex, else one more than the highest level that an edge comes from.
func Levels(n int, order []int32, next Next[int32]) []int32 {
	level := make([]int32, n)
	for _, v := range order {
		for _, w := range next(v) {
			level[w] = max(level[w], level[v]+1)
		}
	}
	return level
}

// Acyclic grows a graph edge by edge without cycles. Edges are on trial until Keep or Undo.
type Acyclic struct {
	Rows
	order        *Order[int32]
	next, before Next[int32]
	refused      Rows // edges that would close a cycle with edges that stay
	trial        [][2]int32
	work         int // words and edges that searches may still look at
}

// NewAcyclic shares the edges of r, for which order is topological;
// before lists the vertices that edges come from. Once searches
// have looked at work words and edges in all, Try adds nothing.
func NewAcyclic(r *Rows, order *Order[int32], before Next[int32], work int) *Acyclic {
	a := &Acyclic{Rows: *r, order: order, before: before, refused: Rows{r.base, r.words, make([]uint64, len(r.Bits))}, work: work}
	next := r.Next()
	a.next = func(v int32) []int32 {
		list := next(v)
		a.work -= r.words + len(list)
		return list
	}
	return a
}

// Try adds the edge from v to w. It changes nothing and returns false if that would close a cycle.
func (a *Acyclic) Try(v, w int32) bool {
	switch {
	case a.Has(v, w):
		return true
	case a.work < 0 || a.refused.Has(v, w):
		return false
	case !a.order.Add(v, w, a.next, a.before):
		if len(a.trial) == 0 { // else edges on trial may be part of the cycle
			a.refused.Add(v, w)
		}
		return false
	}
	a.Add(v, w)
	a.trial = append(a.trial, [2]int32{v, w})
	return true
}

// Keep makes the edges on trial stay.
func (a *Acyclic) Keep() { a.trial = a.trial[:0] }

// Undo takes the edges on trial away.
func (a *Acyclic) Undo() {
	for _, e := range a.trial {
		a.Remove(e[0], e[1])
	}
	a.Keep()
}
