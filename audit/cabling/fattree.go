package cabling

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// ranks gives every switch a level: 0 for leaves, which have hosts, and for the
// others their distance from the nearest leaf. It is nil when there are no levels:
// all switches have hosts, or some switch is joined to no leaf.
//
// A switch with less than half as many hosts as the median of those with any is no
// leaf, nor is one whose cables lead mostly to leaves: it is a spine with a host on it.
// A switch two levels above leaves whose neighbours are all neighbours of one leaf is a
// leaf too: it has few hosts or none.
func ranks(f *fabric.Fabric, hosts []int) []int32 {
	n := f.NumSwitches()
	var some []int
	for _, h := range hosts {
		if h > 0 {
			some = append(some, h)
		}
	}
	if len(some) == 0 {
		return nil
	}
	slices.Sort(some)
	least := max(1, (some[len(some)/2]+1)/2)
	leaf := make([]bool, n)
	leaves := 0
	for s, h := range hosts {
		if h >= least {
			leaf[s] = true
			leaves++
		}
	}
	demoted := 0
	for {
		worst, share := fabric.NoNode, 0.5
		for s := range fabric.NodeID(n) {
			_, to := f.SwitchLinks(s)
			if !leaf[s] || len(to) == 0 {
				continue
			}
			k := 0
			for _, t := range to {
				if leaf[t] {
					k++
				}
			}
			if x := float64(k) / float64(len(to)); x > share {
				worst, share = s, x
			}
		}
		if worst == fabric.NoNode {
			break
		}
		leaf[worst] = false
		if demoted++; 4*demoted > leaves {
			return nil
		}
	}
	level := make([]int32, n)
	queue := make([]fabric.NodeID, 0, n)
	for s := range level {
		level[s] = -1
		if leaf[s] {
			level[s] = 0
			queue = append(queue, fabric.NodeID(s))
		}
	}
	if len(queue) == n {
		return nil
	}
	for i := 0; i < len(queue); i++ {
		_, to := f.SwitchLinks(queue[i])
		for _, t := range to {
			if level[t] < 0 {
				level[t] = level[queue[i]] + 1
				queue = append(queue, t)
			}
		}
	}
	if len(queue) < n {
		return nil
	}
	var lean []fabric.NodeID
	for s := range fabric.NodeID(n) {
		if level[s] == 2 && cabledAsLeaf(f, s, level) {
			lean = append(lean, s)
		}
	}
	for _, s := range lean {
		level[s] = 0
	}
	return level
}

// cabledAsLeaf says whether some leaf is joined to all neighbours of s.
func cabledAsLeaf(f *fabric.Fabric, s fabric.NodeID, level []int32) bool {
	_, near := f.SwitchLinks(s)
	_, leaves := f.SwitchLinks(near[0])
	return slices.ContainsFunc(leaves, func(leaf fabric.NodeID) bool {
		if level[leaf] != 0 {
			return false
		}
		_, to := f.SwitchLinks(leaf)
		return !slices.ContainsFunc(near, func(t fabric.NodeID) bool { return !slices.Contains(to, t) })
	})
}

// levelSizes counts switches by level.
func levelSizes(level []int32) []int {
	sizes := make([]int, slices.Max(level)+1)
	for _, l := range level {
		sizes[l]++
	}
	return sizes
}

// levelNames is "31 leaves, 9 spines", the topmost of three levels or more being
// core switches.
func levelNames(sizes []int) string {
	parts := make([]string, len(sizes))
	for i, n := range sizes {
		switch {
		case i == 0:
			parts[i] = count(n, "leaf")
		case i == 1:
			parts[i] = count(n, "spine")
		case i == len(sizes)-1:
			parts[i] = count(n, "core switch")
			if n != 1 {
				parts[i] = fmt.Sprintf("%d core switches", n)
			}
		default:
			parts[i] = fmt.Sprintf("%d on level %d", n, i+1)
		}
	}
	return strings.Join(parts, ", ")
}

// fatTree recognizes trees in which the switches of one level fall into blocks: all
// of a block are joined to the same switches of the next level, and by as many cables
// each. Two levels are one block, of three levels the pods are blocks and so are the
// switches below each group of core switches.
func fatTree(f *fabric.Fabric) *Shape {
	level := ranks(f, hostsOf(f))
	if level == nil {
		return nil
	}
	n := f.NumSwitches()
	s := &Shape{Kind: FatTree, level: level, Levels: levelSizes(level)}
	if len(s.Levels) > 8 {
		return nil
	}
	// belongs says by PortID that a cable is part of the shape.
	belongs := make([]bool, f.NumPorts())
	var blocks []*block
	pods := 0
	for l := range len(s.Levels) - 1 {
		made := blocksOf(f, level, int32(l))
		if made == nil {
			return nil
		}
		if l == 0 {
			pods = len(made)
		}
		blocks = append(blocks, made...)
	}
	var each []int
	for _, b := range blocks {
		each = append(each, b.parallel)
		s.Cables += b.parallel * len(b.lower) * len(b.upper)
		for i := range b.lower {
			for j := range b.upper {
				for k, p := range b.cables[i*len(b.upper)+j] {
					if k < b.parallel {
						belongs[p], belongs[f.Peer(p)] = true, true
					}
				}
			}
		}
	}
	s.Parallel = mode(each)
	extra := 0
	for sw := range fabric.NodeID(n) {
		ports, _ := f.SwitchLinks(sw)
		for _, p := range ports {
			if !belongs[p] && p < f.Peer(p) {
				s.surplus = append(s.surplus, p)
				extra++
			}
		}
	}
	free := freePorts(f, s.surplus)
	for _, b := range blocks {
		s.deficits = append(s.deficits, b.deficits(f, free)...)
	}
	missing := 0
	for _, d := range s.deficits {
		missing += d.n
	}
	if 4*missing > s.Cables || 8*extra > s.Cables {
		return nil
	}
	s.Name = fmt.Sprintf("%s-level fat tree: %s", [...]string{"", "one", "two", "three", "four", "five", "six", "seven", "eight"}[len(s.Levels)], levelNames(s.Levels))
	if len(s.Levels) == 2 {
		s.Name += fmt.Sprintf(", %s between each two", countCables(s.Parallel))
	} else {
		s.Name += fmt.Sprintf(", %s", count(pods, "pod"))
	}
	return s
}

// block is switches of one level that are all joined to the same ones of the next.
type block struct {
	lower, upper []fabric.NodeID
	cables       [][]fabric.PortID // by index in lower, then upper: ports of the lower switch
	parallel     int               // the usual number of cables of a pair that has any
}

// blocksOf finds the blocks of a level, nil when there are none.
func blocksOf(f *fabric.Fabric, level []int32, at int32) []*block {
	n := f.NumSwitches()
	index := make([]int, n) // of the upper switches
	var lower, upper []fabric.NodeID
	for s := range fabric.NodeID(n) {
		switch level[s] {
		case at:
			lower = append(lower, s)
		case at + 1:
			index[s] = len(upper)
			upper = append(upper, s)
		}
	}
	// near is by lower switch a set of upper ones.
	words := (len(upper) + 63) / 64
	near := make([]uint64, len(lower)*words)
	degree := make([]int, len(lower))
	for i, s := range lower {
		_, to := f.SwitchLinks(s)
		for _, t := range to {
			if level[t] == at+1 {
				j := index[t]
				if w := &near[i*words+j/64]; *w>>(j%64)&1 == 0 {
					*w |= 1 << (j % 64)
					degree[i]++
				}
			}
		}
	}
	// A switch joins the block whose first one shares most neighbours with it, if
	// these are more than half of the smaller set. Those with many neighbours begin.
	order := make([]int, len(lower))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return degree[b] - degree[a] })
	var first []int
	member := make([]int, len(lower))
	for _, i := range order {
		best, most := -1, 0.5
		for k, j := range first {
			shared := 0
			for w := range words {
				shared += bits.OnesCount64(near[i*words+w] & near[j*words+w])
			}
			if x := float64(shared) / float64(max(1, min(degree[i], degree[j]))); x > most {
				best, most = k, x
			}
		}
		if best < 0 {
			best = len(first)
			first = append(first, i)
		}
		member[i] = best
	}
	blocks := make([]*block, len(first))
	for k := range blocks {
		blocks[k] = &block{}
	}
	for i, s := range lower {
		b := blocks[member[i]]
		b.lower = append(b.lower, s)
	}
	// An upper switch belongs to the block of which most switches are joined to it.
	votes := make([]int, len(blocks))
	for j, u := range upper {
		clear(votes)
		for i := range lower {
			if near[i*words+j/64]>>(j%64)&1 != 0 {
				votes[member[i]]++
			}
		}
		best := 0
		for k := range votes {
			if votes[k] > votes[best] {
				best = k
			}
		}
		if votes[best] == 0 {
			return nil
		}
		blocks[best].upper = append(blocks[best].upper, u)
	}
	for _, b := range blocks {
		if len(b.upper) == 0 {
			return nil
		}
		b.cables = make([][]fabric.PortID, len(b.lower)*len(b.upper))
		column := make(map[fabric.NodeID]int, len(b.upper))
		for j, u := range b.upper {
			column[u] = j
		}
		for i, s := range b.lower {
			ports, to := f.SwitchLinks(s)
			for k, p := range ports {
				if j, ok := column[to[k]]; ok {
					c := &b.cables[i*len(b.upper)+j]
					*c = append(*c, p)
				}
			}
		}
		var have []int
		for _, c := range b.cables {
			if len(c) > 0 {
				have = append(have, len(c))
			}
		}
		b.parallel = mode(have)
		b.sort(f)
	}
	return blocks
}

// sort puts the cables of pairs that have too many into the order in which they look
// like part of the shape: those in ports that other switches use for the same come
// first.
func (b *block) sort(f *fabric.Fabric) {
	up, down := make([]int, int(fabric.MaxPortNum)+1), make([]int, int(fabric.MaxPortNum)+1)
	for i := range b.lower {
		for j := range b.upper {
			c := b.cables[i*len(b.upper)+j]
			if len(c) <= b.parallel {
				continue
			}
			b.usage(f, i, j, up, down)
			slices.SortStableFunc(c, func(x, y fabric.PortID) int {
				return up[f.Num(y)] + down[f.Num(f.Peer(y))] - up[f.Num(x)] - down[f.Num(f.Peer(x))]
			})
		}
	}
}

// usage counts for a lower and an upper switch of a block by port number: in up the
// lower switches that lead to the upper one by the port, in down the upper switches
// that lead to the lower one by it.
func (b *block) usage(f *fabric.Fabric, i, j int, up, down []int) {
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

// deficits lists the pairs of a block that lack cables. A missing cable is looked for
// at the ports by which other switches of the block lead to the same switch.
func (b *block) deficits(f *fabric.Fabric, free []bool) []deficit {
	var list []deficit
	up := make([]int, int(fabric.MaxPortNum)+1)
	down := make([]int, int(fabric.MaxPortNum)+1)
	for i, s := range b.lower {
		for j, u := range b.upper {
			k := b.parallel - len(b.cables[i*len(b.upper)+j])
			if k <= 0 {
				continue
			}
			b.usage(f, i, j, up, down)
			list = append(list, deficit{a: s, b: u, n: k, pa: likely(f, s, up, k, free), pb: likely(f, u, down, k, free)})
		}
	}
	return list
}
