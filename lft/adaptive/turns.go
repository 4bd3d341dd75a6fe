package adaptive

import "math/bits"

// turns is a graph of nodes: those that packets can have after one another.
type turns struct {
	*channels
	vls   int
	words int
	bits  []uint64 // by node: a bit for each node of the switch that its channel leads to
	list  []int32
}

func newTurns(c *channels, vls int) turns {
	most := int32(0)
	for s := range len(c.first) - 1 {
		most = max(most, c.first[s+1]-c.first[s])
	}
	t := turns{channels: c, vls: vls, words: (int(most)*vls + 63) / 64}
	t.bits = make([]uint64, len(c.to)*vls*t.words)
	return t
}

func (t *turns) row(a int32) []uint64 { return t.bits[int(a)*t.words : int(a+1)*t.words] }

// base is the first node of a switch.
func (t *turns) base(s int32) int32 { return t.first[s] * int32(t.vls) }

// bit is where the turn from a to b is.
func (t *turns) bit(a, b int32) (word *uint64, bit uint64) {
	i := b - t.base(int32(t.to[a/int32(t.vls)]))
	return &t.bits[int(a)*t.words+int(i>>6)], 1 << (i & 63)
}

func (t *turns) add(a, b int32) {
	word, bit := t.bit(a, b)
	*word |= bit
}

func (t *turns) remove(a, b int32) {
	word, bit := t.bit(a, b)
	*word &^= bit
}

func (t *turns) has(a, b int32) bool {
	word, bit := t.bit(a, b)
	return *word&bit != 0
}

func (t *turns) union(u *turns) {
	for i := range t.bits {
		t.bits[i] |= u.bits[i]
	}
}

// listNext lists the nodes after a. The list holds until the next call.
func (t *turns) listNext(a int32) []int32 {
	t.list = t.list[:0]
	base := t.base(int32(t.to[a/int32(t.vls)]))
	for i, word := range t.row(a) {
		for ; word != 0; word &= word - 1 {
			t.list = append(t.list, base+int32(i*64+bits.TrailingZeros64(word)))
		}
	}
	return t.list
}

// listBefore lists the nodes before b. The list holds until the next call.
func (t *turns) listBefore(b int32) []int32 {
	t.list = t.list[:0]
	s := t.from[b/int32(t.vls)]
	for out := t.first[s]; out < t.first[s+1]; out++ {
		for vl := range int32(t.vls) {
			if a := t.back[out]*int32(t.vls) + vl; t.has(a, b) {
				t.list = append(t.list, a)
			}
		}
	}
	return t.list
}

// turnSearch adds turns to those of a widener as long as they close no cycle.
type turnSearch struct {
	w       *widener
	refused turns
	added   [][2]int32 // since the last end
	work    int
}

func newTurnSearch(w *widener) *turnSearch {
	return &turnSearch{w: w, refused: newTurns(&w.channels, w.numVLs())}
}

// add says whether there is a turn, or else adds it if it closes no cycle. After searchWork steps it
// adds no more. What is added before a turn is refused goes with end.
func (x *turnSearch) add(a, b int32) bool {
	t := &x.w.turns
	if t.has(a, b) {
		return true
	}
	if x.refused.has(a, b) || x.work > searchWork {
		return false
	}
	next := func(v int32) []int32 {
		list := t.listNext(v)
		x.work += t.words + len(list)
		return list
	}
	if !x.w.order.Add(a, b, next, t.listBefore) {
		// Turns that go again may be part of the cycle.
		if len(x.added) == 0 {
			x.refused.add(a, b)
		}
		return false
	}
	t.add(a, b)
	x.added = append(x.added, [2]int32{a, b})
	return true
}

// end keeps the turns that were added, or takes them away.
func (x *turnSearch) end(keep bool) {
	if !keep {
		for _, t := range x.added {
			x.w.turns.remove(t[0], t[1])
		}
	}
	x.added = x.added[:0]
}
