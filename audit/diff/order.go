package diff

import (
	"math/bits"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// A switch may get its new entry for a LID once the next switch by this entry has its own new
// entry. A packet that has met a new entry then meets only new ones, so no state has a loop that is
// neither in the old nor in the new tables. A packet on its way while states change may come to a
// switch a second time, by new entries after old ones, but no more often. The rule is needed only
// within strongly connected components of the graph of old and new next hops: every loop is in one.
//
// If the new tables loop by themselves there is no order.

// before is a constraint: for a LID, switch first has to be written before switch then.
type before struct {
	lid         fabric.LID
	first, then int32
}

// stagesOf returns by switch the stage in which it can be written, from 0. ok is false if the
// constraints form a cycle. It takes O(constraints + n).
func stagesOf(n int, constraints []before) (stage []int32, ok bool) {
	then := make([][]int32, n)
	for _, c := range constraints {
		then[c.first] = append(then[c.first], c.then)
	}
	next := func(s int32) []int32 { return then[s] }
	order := graph.TopologicalOrder(n, next)
	return graph.Levels(n, order, next), len(order) == n
}

// blockOrder has the writes of one block and the constraints on their order.
type blockOrder struct {
	number      int
	writes      []uint64 // by switch: a bit for each LID whose entry changes
	constraints []before // in the order of LIDs
}

func makeOrder(f *fabric.Fabric, blocks []*blockOrder) Order {
	writes := make([]uint64, f.NumSwitches())
	var all []before
	for _, b := range blocks {
		for s, set := range b.writes {
			writes[s] |= set
		}
		all = append(all, b.constraints...)
	}
	order := Order{Kind: OrderSwitches}
	if len(all) == 0 {
		order.Kind = OrderAny
	}
	if stage, ok := stagesOf(len(writes), all); ok {
		order.Stages = listStages(f, writes, ^uint64(0), stage)
		return order
	}
	order.Kind = OrderBlocks
	order.Blocks = text.Each(blocks, func(b *blockOrder) BlockOrder { return BlockOrder{Block: b.number, Passes: b.passes(f)} })
	return order
}

// passes orders the writes of a block, in one pass if possible. Else a pass takes the remaining
// LIDs in ascending order, except those whose constraints would close a cycle.
func (b *blockOrder) passes(f *fabric.Fabric) []Pass {
	n := len(b.writes)
	if stage, ok := stagesOf(n, b.constraints); ok {
		return []Pass{{Stages: listStages(f, b.writes, ^uint64(0), stage)}}
	}
	changed := uint64(0)
	for _, set := range b.writes {
		changed |= set
	}
	var passes []Pass
	for rest := changed; rest != 0; {
		var p Pass
		var constraints []before
		var stage []int32
		lids := uint64(0)
		for left := rest; left != 0; left &= left - 1 {
			bit := left & -left
			l := fabric.LID(b.number*lft.BlockSize + bits.TrailingZeros64(left))
			more := append(constraints, text.Where(b.constraints, func(c before) bool { return c.lid == l })...)
			if s, ok := stagesOf(n, more); ok {
				p.LIDs, constraints, stage, lids = append(p.LIDs, l), more, s, lids|bit
			}
		}
		rest &^= lids
		p.Stages = listStages(f, b.writes, lids, stage)
		passes = append(passes, p)
	}
	return passes
}

// listStages lists by stage the switches that write an entry for one of lids, a bit for each LID.
func listStages(f *fabric.Fabric, writes []uint64, lids uint64, stage []int32) [][]fabric.GUID {
	stages := [][]fabric.GUID{}
	for s, set := range writes {
		if set&lids == 0 {
			continue
		}
		for len(stages) <= int(stage[s]) {
			stages = append(stages, nil)
		}
		stages[stage[s]] = append(stages[stage[s]], f.Node(fabric.NodeID(s)).GUID)
	}
	return stages
}
