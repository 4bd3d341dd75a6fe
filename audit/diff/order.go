package diff

import (
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// A switch may get its new entry for a LID when the switch that this leads to
// has its new one. Then a packet that has met a new entry meets new ones all the
// way, so that no state has a loop which is neither in the old nor in the new
// tables. A packet that is on its way while states change may come to a switch a
// second time, by new entries after old ones, and no more often. It is enough to
// hold to that within each strongly connected component of the graph of old and
// new next hops, since every loop is inside of one.
//
// Where the new tables loop by themselves the order is the reverse: a switch gets
// its new entry before the switch that its old one leads to. Then a packet that has
// met an old entry meets old ones all the way, in every state. Where both loop there
// is no order.

// before says that switch first has to be written before then, for a LID.
type before struct {
	lid         fabric.LID
	first, then int32
}

// relation is a set of pairs of switches: bit first of row then.
type relation struct {
	n, words int
	bits     []uint64
}

func newRelation(n int) *relation {
	words := (n + 63) / 64
	return &relation{n: n, words: words, bits: make([]uint64, n*words)}
}

func (r *relation) add(first, then int32) {
	r.bits[int(then)*r.words+int(first>>6)] |= 1 << (first & 63)
}

func (r *relation) clone() *relation {
	return &relation{n: r.n, words: r.words, bits: slices.Clone(r.bits)}
}

// stages numbers the stages in which members can be written: the first 0. ok is
// false when the relation has a cycle. It takes O(pairs + n) and the size of the
// relation.
func (r *relation) stages(members []int32) (stage []int32, ok bool) {
	stage = make([]int32, r.n)
	waits := make([]int32, r.n)
	followers := make([][]int32, r.n)
	for _, s := range members {
		row := r.bits[int(s)*r.words : (int(s)+1)*r.words]
		for w, set := range row {
			for ; set != 0; set &= set - 1 {
				first := int32(w<<6 + bits.TrailingZeros64(set))
				followers[first] = append(followers[first], s)
				waits[s]++
			}
		}
	}
	var queue []int32
	for _, s := range members {
		if waits[s] == 0 {
			queue = append(queue, s)
		}
	}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		for _, d := range followers[s] {
			stage[d] = max(stage[d], stage[s]+1)
			if waits[d]--; waits[d] == 0 {
				queue = append(queue, d)
			}
		}
	}
	return stage, len(queue) == len(members)
}

// orderWorker collects what the order of writes has to hold to.
type orderWorker struct {
	n      int
	block  *blockOrder
	blocks []*blockOrder // those with a write
	all    *relation     // of all blocks together
	any    bool          // there is a constraint
}

// blockOrder is what one block has.
type blockOrder struct {
	number      int
	writes      []uint64 // by switch: a bit for each LID whose entry changes
	constraints []before // by LID
}

func newOrderWorker(n int) *orderWorker {
	return &orderWorker{n: n, all: newRelation(n)}
}

func (o *orderWorker) begin(b int) { o.block = &blockOrder{number: b, writes: make([]uint64, o.n)} }

func (o *orderWorker) end() {
	if slices.ContainsFunc(o.block.writes, func(set uint64) bool { return set != 0 }) {
		o.blocks = append(o.blocks, o.block)
	}
}

// touch notes the writes and constraints of the LID that a worker looks at.
func (o *orderWorker) touch(w *mixWorker) {
	for s, changed := range w.changed {
		if changed {
			o.block.writes[s] |= 1 << (w.lid % lft.BlockSize)
		}
	}
	if w.loops == 0 {
		return
	}
	for s := range int32(w.n) {
		c := w.comp[s]
		if c < 0 || !w.changed[s] || !w.parts[c].mixed() {
			continue
		}
		layer := 1
		if w.parts[c].loops[1] {
			layer = 0
		}
		if w.parts[c].loops[layer] {
			continue
		}
		// Switches between that keep their entries are as new, or old, as what comes
		// after them. They are on no loop: the layer has none here.
		heads := w.heads[layer]
		d := heads[s]
		for d >= 0 && w.comp[d] == c && !w.changed[d] {
			d = heads[d]
		}
		if d < 0 || w.comp[d] != c {
			continue
		}
		b := before{lid: w.lid, first: d, then: s}
		if layer == 0 {
			b.first, b.then = s, d
		}
		o.block.constraints = append(o.block.constraints, b)
		o.all.add(b.first, b.then)
		o.any = true
	}
}

// makeOrder makes stages of what all workers collected.
func makeOrder(f *fabric.Fabric, list []*mixWorker) Order {
	var blocks []*blockOrder
	n := f.NumSwitches()
	all := newRelation(n)
	any := false
	for _, w := range list {
		o := w.writes
		blocks = append(blocks, o.blocks...)
		any = any || o.any
		for i, set := range o.all.bits {
			all.bits[i] |= set
		}
	}
	slices.SortFunc(blocks, func(a, b *blockOrder) int { return a.number - b.number })
	writes := make([]uint64, n)
	for _, b := range blocks {
		for s, set := range b.writes {
			writes[s] |= set
		}
	}
	members := membersOf(writes, ^uint64(0))
	if stage, ok := all.stages(members); ok {
		order := Order{Kind: OrderSwitches}
		if !any {
			order.Kind = OrderAny
		}
		order.Stages, order.names = stagesOf(f, members, stage)
		return order
	}
	order := Order{Kind: OrderBlocks}
	for _, b := range blocks {
		order.Blocks = append(order.Blocks, BlockOrder{Block: b.number, Passes: b.passes(f)})
	}
	return order
}

// The kinds of Order.
const (
	OrderNone     = "none"
	OrderAny      = "any"
	OrderSwitches = "switches"
	OrderBlocks   = "blocks"
)

// passes orders the writes of a block: in one pass where that is possible, else
// in several, each of the LIDs of the block that the passes before it had to
// leave. The LIDs are taken in ascending order.
func (b *blockOrder) passes(f *fabric.Fabric) []Pass {
	members := membersOf(b.writes, ^uint64(0))
	whole := newRelation(f.NumSwitches())
	for _, c := range b.constraints {
		whole.add(c.first, c.then)
	}
	if stage, ok := whole.stages(members); ok {
		var p Pass
		p.Stages, p.names = stagesOf(f, members, stage)
		return []Pass{p}
	}
	type passInMaking struct {
		relation *relation
		lids     []fabric.LID
	}
	var list []passInMaking
	rest := b.constraints // by LID
	changed := uint64(0)
	for _, set := range b.writes {
		changed |= set
	}
	for ; changed != 0; changed &= changed - 1 {
		l := fabric.LID(b.number*lft.BlockSize + bits.TrailingZeros64(changed))
		n := 0
		for n < len(rest) && rest[n].lid == l {
			n++
		}
		mine := rest[:n]
		rest = rest[n:]
		at := 0
		for ; at < len(list); at++ {
			if n == 0 {
				break
			}
			try := list[at].relation.clone()
			for _, c := range mine {
				try.add(c.first, c.then)
			}
			if _, ok := try.stages(members); ok {
				list[at].relation = try
				break
			}
		}
		if at == len(list) {
			r := newRelation(f.NumSwitches())
			for _, c := range mine {
				r.add(c.first, c.then)
			}
			list = append(list, passInMaking{relation: r})
		}
		list[at].lids = append(list[at].lids, l)
	}
	var passes []Pass
	for _, p := range list {
		lids := uint64(0)
		for _, l := range p.lids {
			lids |= 1 << (l % lft.BlockSize)
		}
		members := membersOf(b.writes, lids)
		stage, _ := p.relation.stages(members)
		pass := Pass{LIDs: p.lids}
		pass.Stages, pass.names = stagesOf(f, members, stage)
		passes = append(passes, pass)
	}
	return passes
}

// membersOf is the switches that write one of some LIDs of a block.
func membersOf(writes []uint64, lids uint64) []int32 {
	var list []int32
	for s, set := range writes {
		if set&lids != 0 {
			list = append(list, int32(s))
		}
	}
	return list
}

// group divides switches by stage.
func group(members, stage []int32) [][]int32 {
	var stages [][]int32
	for _, s := range members {
		for len(stages) <= int(stage[s]) {
			stages = append(stages, nil)
		}
		stages[stage[s]] = append(stages[stage[s]], s)
	}
	return stages
}

// stagesOf is switches by stage, with their names.
func stagesOf(f *fabric.Fabric, members, stage []int32) (stages [][]fabric.GUID, names [][]fabric.Name) {
	stages = [][]fabric.GUID{}
	for _, switches := range group(members, stage) {
		guids := make([]fabric.GUID, len(switches))
		words := make([]fabric.Name, len(switches))
		for i, s := range switches {
			guids[i], words[i] = f.Node(fabric.NodeID(s)).GUID, f.Name(fabric.NodeID(s))
		}
		stages = append(stages, guids)
		names = append(names, words)
	}
	return stages, names
}
