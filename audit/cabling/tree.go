package cabling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// recognizeFatTree recognizes trees by their blocks: switches of one level
// that are all joined to the same switches of the next level, by equally many
// cables each. Two levels are one block. Of three levels each pod is a block,
// and each group of core switches with the switches below it.
//
// Blocks are found in rounds, each among the cables that earlier rounds have not explained. A
// switch with less than half of the cables of its block is cabled by another rule, and has no block
// until some round finds one: leaves with half the uplinks are a block of their own, a leaf for
// management on one spine has none.
func recognizeFatTree(f *fabric.Fabric) *Shape {
	s := &Shape{Kind: FatTree, level: levels.Of(f)}
	s.LevelFit = levels.Share(f, s.level)
	s.Levels = levelSizes(s.level)
	if len(s.Levels) < 2 || len(s.Levels) > len(levelCounts)-1 || above(f, s.level) > 1./3 {
		return nil
	}
	x := &blockFinder{f: f, level: s.level, explained: make([]bool, f.NumPorts())}
	pods := 0
	for l := range len(s.Levels) - 1 {
		first := x.findBlocks(int32(l))
		if l == 0 {
			pods = first
		}
	}
	x.joinLone()
	x.describe(s)
	if len(x.blocks) == 0 {
		return nil
	}
	s.Name = fmt.Sprintf("%s-level fat tree: %s", levelCounts[len(s.Levels)], levelNames(s.Levels))
	if len(s.Levels) == 2 {
		s.Name += fmt.Sprintf(", %s between each two", countCables(s.Parallel))
		if pods > 1 {
			s.Name += fmt.Sprintf(" of each of %d parts", pods)
		}
	} else {
		s.Name += ", " + text.Count(pods, "pod", "pods")
	}
	return s
}

var levelCounts = [...]string{"", "one", "two", "three", "four", "five", "six", "seven", "eight"}

// block is switches of one level that are all joined to the same switches of the next.
type block struct {
	lower, upper []fabric.NodeID
	cables       [][]fabric.PortID // by index in lower, then upper: ports of the lower switch
	parallel     int               // the usual number of cables of a joined pair
}

// blockFinder finds the blocks of a tree.
type blockFinder struct {
	f         *fabric.Fabric
	level     []int32
	blocks    []*block
	explained []bool // by PortID: its cable belongs to a block
}

// findBlocks finds the blocks between a level and the next. first is how many round 0 found.
func (x *blockFinder) findBlocks(level int32) (first int) {
	for round := 0; ; round++ {
		found := 0
		for _, b := range x.groupLevel(level) {
			b.findCables(x)
			b.dropMisfits(x)
			if !b.isRegular(round == 0) {
				continue
			}
			found++
			b.sortCables(x.f)
			x.blocks = append(x.blocks, b)
			for _, cables := range b.cables {
				for _, p := range cables[:min(b.parallel, len(cables))] {
					x.explained[p], x.explained[x.f.Peer(p)] = true, true
				}
			}
		}
		if round == 0 {
			first = found
		}
		if found == 0 {
			return first
		}
	}
}

// upCables lists the cables of a switch to the next level that no block explains.
func (x *blockFinder) upCables(s fabric.NodeID) (ports []fabric.PortID, to []fabric.NodeID) {
	all, far := x.f.SwitchLinks(s)
	for i, p := range all {
		if x.level[far[i]] == x.level[s]+1 && !x.explained[p] {
			ports, to = append(ports, p), append(to, far[i])
		}
	}
	return ports, to
}

// groupLevel divides the switches of a level that have unexplained cables into
// blocks. A switch joins the block whose first switch shares most upper
// neighbours with it, if these are more than half of the smaller set of
// neighbours; else it begins a block. Switches with many neighbours come
// first. An upper switch belongs to the block with most switches joined to it.
func (x *blockFinder) groupLevel(level int32) []*block {
	n := len(x.level)
	up := make([][]fabric.NodeID, n) // neighbours of the next level
	var order []fabric.NodeID
	for s := range fabric.NodeID(n) {
		if x.level[s] != level {
			continue
		}
		if _, to := x.upCables(s); len(to) > 0 {
			up[s] = slices.Compact(slices.Sorted(slices.Values(to)))
			order = append(order, s)
		}
	}
	slices.SortStableFunc(order, func(a, b fabric.NodeID) int { return len(up[b]) - len(up[a]) })
	var blocks []*block
	pivotsAt := make([][]int, n) // by upper switch: the blocks whose first switch is joined to it
	for _, s := range order {
		shared := make([]int, len(blocks))
		for _, t := range up[s] {
			for _, k := range pivotsAt[t] {
				shared[k]++
			}
		}
		best, most := -1, 0.5
		for k, both := range shared {
			if share := float64(both) / float64(min(len(up[s]), len(up[blocks[k].lower[0]]))); share > most {
				best, most = k, share
			}
		}
		if best < 0 {
			best = len(blocks)
			blocks = append(blocks, &block{})
			for _, t := range up[s] {
				pivotsAt[t] = append(pivotsAt[t], best)
			}
		}
		blocks[best].lower = append(blocks[best].lower, s)
	}
	most, chosen := make([]int, n), make([]*block, n) // by upper switch: links to its block, its block
	for _, b := range blocks {
		joined := make([]int, n)
		for _, s := range b.lower {
			for _, t := range up[s] {
				if joined[t]++; joined[t] > most[t] {
					most[t], chosen[t] = joined[t], b
				}
			}
		}
		slices.Sort(b.lower)
	}
	for t, b := range chosen {
		if b != nil {
			b.upper = append(b.upper, fabric.NodeID(t))
		}
	}
	return blocks
}

// findCables fills in cables and parallel.
func (b *block) findCables(x *blockFinder) {
	b.cables = make([][]fabric.PortID, len(b.lower)*len(b.upper))
	for i, s := range b.lower {
		ports, to := x.upCables(s)
		for k, p := range ports {
			if j, ok := slices.BinarySearch(b.upper, to[k]); ok {
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
}

// compare counts the cables between the i-th lower and the j-th upper switch: lacks and has add up
// to the block's usual number, and more is the surplus.
func (b *block) compare(i, j int) (lacks, has, more int) {
	n := len(b.cables[i*len(b.upper)+j])
	has = min(b.parallel, n)
	return b.parallel - has, has, n - has
}

// deviation sums up the pairs of a switch: by is the number of missing plus surplus
// cables, has that of the block's cables that are there; more is true if a pair has
// surplus cables.
type deviation struct {
	by, has int
	more    bool
}

func (d *deviation) add(lacks, has, more int) {
	d.by += lacks + more
	d.has += has
	d.more = d.more || more > 0
}

// isMisfit returns true if a switch is cabled by another rule than its block.
func (d deviation) isMisfit() bool {
	least := misfitCables
	if d.more {
		least-- // damage never adds cables
	}
	return d.by >= least && d.by > d.has || d.by > misfitCables && d.by == d.has
}

// dropMisfits takes the misfits out of a block, those that deviate most first.
func (b *block) dropMisfits(x *blockFinder) {
	for {
		lower, upper := make([]deviation, len(b.lower)), make([]deviation, len(b.upper))
		for i := range b.lower {
			for j := range b.upper {
				lower[i].add(b.compare(i, j))
				upper[j].add(b.compare(i, j))
			}
		}
		worst := 0
		for _, d := range slices.Concat(lower, upper) {
			if d.isMisfit() {
				worst = max(worst, d.by)
			}
		}
		if worst == 0 {
			return
		}
		keep := func(list []fabric.NodeID, off []deviation) (kept []fabric.NodeID) {
			for i, s := range list {
				if !off[i].isMisfit() || off[i].by < worst {
					kept = append(kept, s)
				}
			}
			return kept
		}
		b.lower, b.upper = keep(b.lower, lower), keep(b.upper, upper)
		b.findCables(x)
	}
}

// isRegular returns true if a block lacks at most a quarter of its cables and is large enough to
// show a rule: two switches on each level, after the first round three on one of them. If a level
// has one switch, the other needs four; two in the first round if no cable is missing.
func (b *block) isRegular(first bool) bool {
	lacking, all := 0, b.parallel*len(b.cables)
	for i := range b.lower {
		for j := range b.upper {
			lacks, _, _ := b.compare(i, j)
			lacking += lacks
		}
	}
	few, many := min(len(b.lower), len(b.upper)), max(len(b.lower), len(b.upper))
	return 4*lacking <= all && (few >= 2 && (first || many >= 3) || few == 1 && many >= 4 || first && few == 1 && many >= 2 && lacking == 0)
}

// joinLone adds leaves without uplinks to the block of the leaves. There must be only one such
// block, with four leaves or more and at most two uplinks for each.
func (x *blockFinder) joinLone() {
	var only *block
	for _, b := range x.blocks {
		if x.level[b.lower[0]] == 0 {
			if only != nil {
				return
			}
			only = b
		}
	}
	if only == nil || len(only.lower) < 4 || only.parallel*len(only.upper) > 2 {
		return
	}
	for s := range fabric.NodeID(len(x.level)) {
		if ports, _ := x.f.SwitchLinks(s); len(ports) == 0 && len(x.f.HostsOn(s)) > 0 {
			i, _ := slices.BinarySearch(only.lower, s)
			only.lower = slices.Insert(only.lower, i, s)
			only.cables = slices.Insert(only.cables, i*len(only.upper), make([][]fabric.PortID, len(only.upper))...)
		}
	}
}

// describe sets the cables of s, and what its blocks lack.
func (x *blockFinder) describe(s *Shape) {
	f := x.f
	var each []int
	for _, b := range x.blocks {
		each = append(each, slices.Repeat([]int{b.parallel}, len(b.cables))...)
		s.Cables += b.parallel * len(b.cables)
	}
	s.Parallel = mode(each)
	x.findSurplus(s)
	free := freePorts(f, s.surplus)
	for _, b := range x.blocks {
		b.addDeficits(s, f, free)
	}
}

// findSurplus counts the cables that no block explains. Such a cable is surplus if blocks explain
// at least half of the cables of each end, and their cables connect its ends, or leave them in two
// parts that only few such cables join, as in two fabrics.
func (x *blockFinder) findSurplus(s *Shape) {
	f := x.f
	part := graph.NewUnionFind[fabric.NodeID](f.NumSwitches())
	odd, all := make([]int, f.NumSwitches()), make([]int, f.NumSwitches())
	for _, p := range f.Channels() {
		sw := f.Owner(p)
		if all[sw]++; x.explained[p] {
			part.Join(sw, f.PeerSwitch(p))
		} else {
			odd[sw]++
		}
	}
	ends := func(p fabric.PortID) [2]fabric.NodeID {
		a, b := part.Find(f.Owner(p)), part.Find(f.PeerSwitch(p))
		return [2]fabric.NodeID{min(a, b), max(a, b)}
	}
	joins := make(map[[2]fabric.NodeID]int) // by two parts: cables between them
	for _, p := range f.Channels() {
		if !x.explained[p] && p < f.Peer(p) {
			s.unexplained++
			joins[ends(p)]++
		}
	}
	for _, p := range f.Channels() {
		if x.explained[p] || p > f.Peer(p) {
			continue
		}
		sw, t, at := f.Owner(p), f.PeerSwitch(p), ends(p)
		if 2*odd[sw] <= all[sw] && 2*odd[t] <= all[t] && (at[0] == at[1] || joins[at] <= fewFaults) {
			s.surplus = append(s.surplus, p)
		}
	}
}

// sortCables sorts the cables of pairs that have too many. Those in ports that other switches use
// for the same purpose come first: they count as part of the shape.
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

// countPorts counts by port number, for a lower switch i and an upper switch
// j: in up, other lower switches that lead to j by the port; in down, other
// upper ones that lead to i by it.
func (b *block) countPorts(f *fabric.Fabric, i, j int, up, down []int) {
	clear(up)
	clear(down)
	for k := range b.lower {
		for _, p := range b.cables[k*len(b.upper)+j] {
			if k != i {
				up[f.Num(p)]++
			}
		}
	}
	for k := range b.upper {
		for _, p := range b.cables[i*len(b.upper)+k] {
			if k != j {
				down[f.Num(f.Peer(p))]++
			}
		}
	}
}

// addDeficits adds the pairs of a block that lack cables and have free ports.
// It guesses the ports of a missing cable from those by which other switches
// of the block lead to the same switch. If these are too few at the upper
// switch, as at one alone above its leaves (ibdiagnet2-rails), it takes gaps in
// the row of ports that this uses.
func (b *block) addDeficits(s *Shape, f *fabric.Fabric, free []bool) {
	isFull := func(sw fabric.NodeID) bool { return !slices.Contains(free[f.PortBase(sw)+1:f.PortBase(sw+1)], true) }
	up := make([]int, int(fabric.MaxPortNum)+1)
	down := make([]int, int(fabric.MaxPortNum)+1)
	for i, l := range b.lower {
		for j, u := range b.upper {
			k, _, _ := b.compare(i, j)
			if k == 0 || isFull(l) || isFull(u) {
				continue
			}
			b.countPorts(f, i, j, up, down)
			d := s.addDeficit(f, free, k, l, u, up, down)
			if len(d.pb) < k {
				d.pb = b.rowPorts(f, j, k, free)
			}
		}
	}
}

// rowPorts guesses k free ports of the j-th upper switch of a block: the gaps
// in the row of its ports to the lower switches. It returns nil if there are
// not exactly k such gaps.
func (b *block) rowPorts(f *fabric.Fabric, j, k int, free []bool) []fabric.PortID {
	u := b.upper[j]
	var row []fabric.PortNum
	for i := range b.lower {
		for _, p := range b.cables[i*len(b.upper)+j] {
			row = append(row, f.Num(f.Peer(p)))
		}
	}
	list := text.Each(gaps(row, f.Node(u).NumPorts), func(n fabric.PortNum) fabric.PortID { return f.Port(u, n) })
	if len(list) != k || slices.ContainsFunc(list, func(p fabric.PortID) bool { return !free[p] }) {
		return nil
	}
	return list
}

// gaps lists the numbers missing in a row of three or more. If none is missing, it lists the number
// before the row if that is odd, else the one after it. most bounds the numbers.
func gaps(row []fabric.PortNum, most fabric.PortNum) []fabric.PortNum {
	if len(row) < 3 {
		return nil
	}
	slices.Sort(row)
	step := int(most)
	for i := range row[1:] {
		step = min(step, int(row[i+1]-row[i]))
	}
	first, last := int(row[0]), int(row[len(row)-1])
	var list []fabric.PortNum
	for n := first + step; n < last; n += step {
		if _, ok := slices.BinarySearch(row, fabric.PortNum(n)); !ok {
			list = append(list, fabric.PortNum(n))
		}
	}
	switch before, after := first-step, last+step; {
	case len(list) > 0:
		return list
	case before > 0 && before%2 == 1:
		return []fabric.PortNum{fabric.PortNum(before)}
	case after <= int(most):
		return []fabric.PortNum{fabric.PortNum(after)}
	}
	return nil
}

// above returns the share of the hosts that are not on leaves.
func above(f *fabric.Fabric, level []int32) float64 {
	all, above := 0, 0
	for s, n := range levels.Hosts(f) {
		all += n
		if level[s] > 0 {
			above += n
		}
	}
	return float64(above) / float64(max(1, all))
}

func levelSizes(level []int32) []int {
	sizes := make([]int, slices.Max(level)+1)
	for _, l := range level {
		sizes[l]++
	}
	return sizes
}

// levelNames writes "31 leaves, 9 spines"; the topmost of three levels or more has core switches.
func levelNames(sizes []int) string {
	parts := make([]string, len(sizes))
	for i, n := range sizes {
		switch {
		case i == 0:
			parts[i] = text.Count(n, "leaf", "leaves")
		case i == 1:
			parts[i] = text.Count(n, "spine", "spines")
		case i == len(sizes)-1:
			parts[i] = text.Count(n, "core switch", "core switches")
		default:
			parts[i] = fmt.Sprintf("%d on level %d", n, i+1)
		}
	}
	return strings.Join(parts, ", ")
}
