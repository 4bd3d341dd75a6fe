package cabling

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// recognizeFatTree recognizes trees in which the switches of one level fall into blocks: all
// of a block are joined to the same switches of the next level, and by as many cables
// each. Two levels are one block, of three levels the pods are blocks and so are the
// switches below each group of core switches.
func recognizeFatTree(f *fabric.Fabric) *Shape {
	level := levelsOf(f, hostsOf(f))
	if level == nil {
		return nil
	}
	s := &Shape{Kind: FatTree, level: level, Levels: levelSizes(level)}
	if len(s.Levels) > 8 {
		return nil
	}
	edges := adjacency(f)
	var blocks []*block
	pods := 0
	for l := range len(s.Levels) - 1 {
		made := blocksOf(f, edges, level, int32(l))
		if made == nil {
			return nil
		}
		if l == 0 {
			pods = len(made)
		}
		blocks = append(blocks, made...)
	}
	s.compareBlocks(f, blocks)
	missing := 0
	for _, d := range s.deficits {
		missing += d.n
	}
	if 4*missing > s.Cables || 8*len(s.surplus) > s.Cables {
		return nil
	}
	s.Name = fmt.Sprintf("%s-level fat tree: %s", [...]string{"", "one", "two", "three", "four", "five", "six", "seven", "eight"}[len(s.Levels)], levelNames(s.Levels))
	if len(s.Levels) == 2 {
		s.Name += fmt.Sprintf(", %s between each two", countCables(s.Parallel))
	} else {
		s.Name += ", " + text.Count(pods, "pod", "pods")
	}
	return s
}

// compareBlocks finds what cables the blocks lack, and those that are in none.
func (s *Shape) compareBlocks(f *fabric.Fabric, blocks []*block) {
	belongs := make([]bool, f.NumPorts()) // that the cable is part of the shape
	var each []int
	for _, b := range blocks {
		each = append(each, b.parallel)
		s.Cables += b.parallel * len(b.lower) * len(b.upper)
		for _, cables := range b.cables {
			for _, p := range cables[:min(b.parallel, len(cables))] {
				belongs[p], belongs[f.Peer(p)] = true, true
			}
		}
	}
	s.Parallel = mode(each)
	for sw := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(sw)
		for _, p := range ports {
			if !belongs[p] && p < f.Peer(p) {
				s.surplus = append(s.surplus, p)
			}
		}
	}
	free := freePorts(f, s.surplus)
	for _, b := range blocks {
		b.addDeficits(s, f, free)
	}
}

// block is switches of one level that are all joined to the same ones of the next.
type block struct {
	lower, upper []fabric.NodeID
	cables       [][]fabric.PortID // by index in lower, then upper: ports of the lower switch
	parallel     int               // the usual number of cables of a pair that has any
}

// blocksOf finds the blocks of a level, nil when there are none. edges is by switch as
// of adjacency.
func blocksOf(f *fabric.Fabric, edges [][]edge, level []int32, at int32) []*block {
	blocks, member := groupLevel(edges, level, at)
	for s, k := range member {
		if level[s] == at {
			blocks[k].lower = append(blocks[k].lower, fabric.NodeID(s))
		}
	}
	// An upper switch belongs to the block of which most switches are joined to it.
	votes := make([]int, len(blocks))
	for u := range fabric.NodeID(f.NumSwitches()) {
		if level[u] != at+1 {
			continue
		}
		clear(votes)
		for _, e := range edges[u] {
			if level[e.to] == at {
				votes[member[e.to]]++
			}
		}
		best := slices.Index(votes, slices.Max(votes))
		if votes[best] == 0 {
			return nil
		}
		blocks[best].upper = append(blocks[best].upper, u)
	}
	for _, b := range blocks {
		if len(b.upper) == 0 {
			return nil
		}
		b.findCables(f)
	}
	return blocks
}

// groupLevel makes the blocks of a level, and says by switch of the level to which it
// belongs: that whose first switch shares most neighbours of the next level with it, if
// these are more than half of the smaller set, else one of its own. Switches with many
// neighbours come first.
func groupLevel(edges [][]edge, level []int32, at int32) (blocks []*block, member []int) {
	up := make([][]fabric.NodeID, len(edges)) // neighbours of the next level
	var order []fabric.NodeID
	for s := range edges {
		if level[s] != at {
			continue
		}
		order = append(order, fabric.NodeID(s))
		for _, e := range edges[s] {
			if level[e.to] == at+1 {
				up[s] = append(up[s], e.to)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b fabric.NodeID) int { return len(up[b]) - len(up[a]) })
	member = make([]int, len(edges))
	var first []fabric.NodeID             // by block
	blocksAt := make([][]int, len(edges)) // by upper switch: the blocks whose first one is joined to it
	for _, s := range order {
		shared := make([]int, len(first))
		for _, t := range up[s] {
			for _, k := range blocksAt[t] {
				shared[k]++
			}
		}
		best, most := -1, 0.5
		for k, n := range shared {
			if x := float64(n) / float64(max(1, min(len(up[s]), len(up[first[k]])))); x > most {
				best, most = k, x
			}
		}
		if best < 0 {
			best = len(first)
			first = append(first, s)
			blocks = append(blocks, &block{})
			for _, t := range up[s] {
				blocksAt[t] = append(blocksAt[t], best)
			}
		}
		member[s] = best
	}
	return blocks, member
}

// findCables fills in cables and parallel.
func (b *block) findCables(f *fabric.Fabric) {
	b.cables = make([][]fabric.PortID, len(b.lower)*len(b.upper))
	var have []int
	for i, s := range b.lower {
		ports, to := f.SwitchLinks(s)
		for k, p := range ports {
			if j, ok := slices.BinarySearch(b.upper, to[k]); ok {
				c := &b.cables[i*len(b.upper)+j]
				*c = append(*c, p)
			}
		}
		for _, c := range b.cables[i*len(b.upper) : (i+1)*len(b.upper)] {
			if len(c) > 0 {
				have = append(have, len(c))
			}
		}
	}
	b.parallel = mode(have)
	b.sortCables(f)
}

// sortCables puts the cables of pairs that have too many into the order in which they look
// like part of the shape: those in ports that other switches use for the same come
// first.
func (b *block) sortCables(f *fabric.Fabric) {
	up, down := make([]int, int(fabric.MaxPortNum)+1), make([]int, int(fabric.MaxPortNum)+1)
	for i := range b.lower {
		for j := range b.upper {
			c := b.cables[i*len(b.upper)+j]
			if len(c) <= b.parallel {
				continue
			}
			b.countPorts(f, i, j, up, down)
			slices.SortStableFunc(c, func(x, y fabric.PortID) int {
				return up[f.Num(y)] + down[f.Num(f.Peer(y))] - up[f.Num(x)] - down[f.Num(f.Peer(x))]
			})
		}
	}
}

// countPorts counts for a lower and an upper switch of a block by port number: in up the
// lower switches that lead to the upper one by the port, in down the upper switches
// that lead to the lower one by it.
func (b *block) countPorts(f *fabric.Fabric, i, j int, up, down []int) {
	clear(up)
	clear(down)
	for o := range b.lower {
		for _, p := range b.cables[o*len(b.upper)+j] {
			up[f.Num(p)]++
		}
	}
	for o := range b.upper {
		for _, p := range b.cables[i*len(b.upper)+o] {
			down[f.Num(f.Peer(p))]++
		}
	}
}

// addDeficits adds the pairs of a block that lack cables. A missing cable is looked for
// at the ports by which other switches of the block lead to the same switch.
func (b *block) addDeficits(s *Shape, f *fabric.Fabric, free []bool) {
	up := make([]int, int(fabric.MaxPortNum)+1)
	down := make([]int, int(fabric.MaxPortNum)+1)
	for i, l := range b.lower {
		for j, u := range b.upper {
			if k := b.parallel - len(b.cables[i*len(b.upper)+j]); k > 0 {
				b.countPorts(f, i, j, up, down)
				s.addDeficit(f, free, k, l, u, up, down)
			}
		}
	}
}
