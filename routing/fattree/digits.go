package fattree

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/internal/graph"
)

// plan is the positions of hosts and switches in a tree.
type plan struct {
	*tree
	// leaves lists the switches of level 0 with hosts, in the order of the hosts. The leaves
	// of a subtree follow each other.
	leaves []int32
	// subtreeIndex is by level and leaf the number of the leaf's subtree of that level within
	// the subtree one level above; -1 for leaves without hosts. On level 0 the subtree is the
	// leaf itself.
	subtreeIndex [][]int32
	// subtreeCount is by level the most subtrees with hosts of that level in a subtree of the
	// next level. The last is 1.
	subtreeCount []int32
	// hostIndex is by switch and port the index of the host there. indexCount is by switch
	// the number of indices, some of them without a host.
	hostIndex   [][]int32
	indexCount  []int32
	leafIndices int32 // the most indices of a leaf
	// digit is by switch its number in its level. Switches of different subtrees have the
	// same digit if they are joined to the same switches above.
	digit []int32
	// uplinkList is by level below the top and digit the uplinks that most switches with
	// that digit have, by copy and digit above.
	uplinkList [][][]uplink
	// uplinkChannel is by level below the top, switch and number in uplinkList the channel,
	// -1 for a missing one.
	uplinkChannel [][][]int32
	// uplinks is by level the most uplinks of a digit, and distinctParents the most different
	// switches that they lead to. oversubscription is how many hosts of a leaf, or slots of
	// the level, share one of these switches.
	uplinks, distinctParents, oversubscription []int32
}

// uplink is a channel that leads up, as all switches with one digit have it.
type uplink struct {
	copy  uint8
	digit int32 // of the switch above
}

func newPlan(x *tree) *plan {
	p := &plan{tree: x}
	sub := p.findSubtrees()
	p.findSubtreeIndices(sub)
	p.findDigits(sub)
	x.sortUps(p.digit)
	p.findUplinks()
	return p
}

// findSubtrees finds the subtree of each switch, by level l and switch: the component of the
// fabric without the levels above l, known by its lowest switch. It is -1 for switches
// above l.
func (p *plan) findSubtrees() [][]int32 {
	n := int32(len(p.switches))
	sub := make([][]int32, p.height+1)
	parts := graph.NewUnionFind[int32](int(n))
	for l := range sub {
		for _, u := range p.byLevel(int32(l)) {
			for c, end := p.downs(u); c < end; c++ {
				parts.Join(u, p.to[c])
			}
		}
		sub[l] = make([]int32, n)
		for u := range n {
			sub[l][u] = -1
			if int(p.level[u]) <= l {
				sub[l][u] = parts.Find(u)
			}
		}
	}
	return sub
}

// findSubtreeIndices sorts the leaves and numbers their subtrees.
func (p *plan) findSubtreeIndices(sub [][]int32) {
	for _, u := range p.byLevel(0) {
		if p.hosts[u] > 0 {
			p.leaves = append(p.leaves, u)
		}
	}
	p.findHostIndices()
	// first is by level the first leaf of each subtree, which decides the subtree's index.
	first := make([][]int32, p.height+1)
	for l := range first {
		first[l] = make([]int32, len(p.switches))
		for _, u := range slices.Backward(p.leaves) {
			first[l][sub[l][u]] = u
		}
	}
	slices.SortFunc(p.leaves, func(a, b int32) int {
		for l := len(sub) - 1; l > 0; l-- {
			if c := cmp.Compare(first[l][sub[l][a]], first[l][sub[l][b]]); c != 0 {
				return c
			}
		}
		return cmp.Compare(a, b)
	})
	p.subtreeIndex = make([][]int32, p.height)
	p.subtreeCount = make([]int32, p.height)
	for l := range p.subtreeIndex {
		p.subtreeIndex[l] = slices.Repeat([]int32{-1}, len(p.switches))
		var before, at int32
		for i, u := range p.leaves {
			switch {
			case i == 0 || sub[l+1][before] != sub[l+1][u]:
				at = 0
			case sub[l][before] != sub[l][u]:
				at++
			}
			p.subtreeIndex[l][u] = at
			p.subtreeCount[l] = max(p.subtreeCount[l], at+1)
			before = u
		}
	}
}

// findHostIndices numbers the hosts of each switch. If three of four leaves have hosts on the
// same ports only, and on three of four of these ports, the indices follow these ports, so
// that a host that goes leaves the indices of others alone. On a switch with hosts on other
// ports the indices follow the ports that have hosts.
func (p *plan) findHostIndices() {
	var users [int(fabric.MaxPortNum) + 1]int
	var usual []fabric.PortNum
	ports := make([][]fabric.PortNum, len(p.switches))
	for u, s := range p.switches {
		for _, host := range p.f.HostsOn(s) {
			ports[u] = append(ports[u], p.f.Num(p.f.Peer(host)))
		}
	}
	for _, u := range p.leaves {
		for _, n := range ports[u] {
			users[n]++
		}
	}
	for n, k := range users {
		if k > 0 && 2*k >= len(p.leaves) {
			usual = append(usual, fabric.PortNum(n))
		}
	}
	unusual := func(n fabric.PortNum) bool { return !slices.Contains(usual, n) }
	like, all := 0, 0
	for _, u := range p.leaves {
		if !slices.ContainsFunc(ports[u], unusual) {
			like++
			all += len(ports[u])
		}
	}
	if 4*like < 3*len(p.leaves) || 4*all < 3*like*len(usual) {
		usual = nil
	}
	p.hostIndex, p.indexCount = make([][]int32, len(p.switches)), make([]int32, len(p.switches))
	for u, s := range p.switches {
		p.hostIndex[u] = make([]int32, int(p.f.Node(s).NumPorts)+1)
		at := ports[u]
		if p.level[u] == 0 && !slices.ContainsFunc(at, unusual) {
			at = usual
		}
		for i, n := range at {
			if int(n) < len(p.hostIndex[u]) {
				p.hostIndex[u][n] = int32(i)
			}
		}
		p.indexCount[u] = int32(len(at))
		if p.level[u] == 0 {
			p.leafIndices = max(p.leafIndices, p.indexCount[u])
		}
	}
}

// findDigits numbers the switches of each level, from the top down. Switches that are joined
// mostly to the same digits above get the same digit, but those of one subtree get
// different digits.
func (p *plan) findDigits(sub [][]int32) {
	p.digit = make([]int32, len(p.switches))
	count := int32(0)
	for _, u := range p.byLevel(p.height) {
		p.digit[u] = count
		count++
	}
	for l := p.height - 1; l > 0; l-- {
		count = p.numberLevel(l, count, sub[l])
	}
}

// numberLevel finds the digits of a level and returns their number; above is the number of
// digits of the next level.
func (p *plan) numberLevel(l, above int32, sub []int32) int32 {
	list := p.byLevel(l)
	words := (int(above) + 63) / 64
	near := make([]uint64, len(list)*words)
	degree := make([]int, len(list))
	at := func(i int) []uint64 { return near[i*words : (i+1)*words] }
	for i, u := range list {
		set := at(i)
		for c, end := p.ups(u); c < end; c++ {
			q := p.digit[p.to[c]]
			set[q>>6] |= 1 << (q & 63)
		}
		for _, w := range set {
			degree[i] += bits.OnesCount64(w)
		}
	}
	byDegree := make([]int, len(list))
	for i := range byDegree {
		byDegree[i] = i
	}
	slices.SortStableFunc(byDegree, func(a, b int) int { return cmp.Compare(degree[b], degree[a]) })
	var first []int
	group := make([]int, len(list)) // the first switch of the group, -1 for none
	for _, i := range byDegree {
		group[i] = -1
		if degree[i] == 0 {
			continue
		}
		most := degree[i] // twice the parents that must be shared
		for _, j := range first {
			shared := 0
			for w, word := range at(i) {
				shared += bits.OnesCount64(word & at(j)[w])
			}
			if 2*shared > most {
				group[i], most = j, 2*shared
			}
		}
		if group[i] < 0 {
			group[i] = i
			first = append(first, i)
		}
	}
	// The switches of one group in a subtree are numbered in the order of NodeIDs.
	type key struct{ group, nth int }
	keys := make([]key, len(list))
	met := map[[2]int]int{}
	var all []key
	for i, u := range list {
		if group[i] < 0 {
			continue
		}
		where := [2]int{group[i], int(sub[u])}
		keys[i] = key{group[i], met[where]}
		met[where]++
		all = append(all, keys[i])
	}
	compare := func(a, b key) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.nth, b.nth)) }
	slices.SortFunc(all, compare)
	all = slices.Compact(all)
	taken := map[[2]int32]bool{}
	for i, u := range list {
		if group[i] >= 0 {
			k, _ := slices.BinarySearchFunc(all, keys[i], compare)
			p.digit[u] = int32(k)
			taken[[2]int32{sub[u], int32(k)}] = true
		}
	}
	// A switch that lost all uplinks gets a digit that its subtree lacks.
	count := int32(len(all))
	for i, u := range list {
		if group[i] < 0 {
			k := int32(0)
			for taken[[2]int32{sub[u], k}] {
				k++
			}
			taken[[2]int32{sub[u], k}] = true
			p.digit[u] = k
			count = max(count, k+1)
		}
	}
	return count
}

// findUplinks finds the uplinks of all digits, and which switches have them.
func (p *plan) findUplinks() {
	p.uplinkList, p.uplinkChannel = make([][][]uplink, p.height), make([][][]int32, p.height)
	p.uplinks, p.distinctParents, p.oversubscription = make([]int32, p.height), make([]int32, p.height), make([]int32, p.height)
	var counts []int32
	for _, u := range p.leaves {
		counts = append(counts, p.indexCount[u])
	}
	slots := levels.MedianHost(counts) // of a switch of the level
	for l := range p.height {
		p.uplinkList[l] = p.listUplinks(l)
		p.uplinks[l], p.distinctParents[l] = 1, 1
		for _, list := range p.uplinkList[l] {
			p.uplinks[l] = max(p.uplinks[l], int32(len(list)))
			parents := int32(0)
			for _, link := range list {
				if link.copy == 0 {
					parents++
				}
			}
			p.distinctParents[l] = max(p.distinctParents[l], parents)
		}
		p.uplinkChannel[l] = make([][]int32, len(p.switches))
		for _, u := range p.byLevel(l) {
			if int(p.digit[u]) >= len(p.uplinkList[l]) {
				continue
			}
			list := p.uplinkList[l][p.digit[u]]
			channels := slices.Repeat([]int32{-1}, len(list))
			for c, end := p.ups(u); c < end; c++ {
				if i := slices.Index(list, uplink{p.copy[c], p.digit[p.to[c]]}); i >= 0 {
					channels[i] = c
				}
			}
			p.uplinkChannel[l][u] = channels
		}
		p.oversubscription[l] = max(1, (slots+p.distinctParents[l]-1)/p.distinctParents[l])
		slots = p.subtreeCount[l] * p.oversubscription[l]
	}
}

// listUplinks lists the uplinks that at least half of the switches with a digit have, by
// digit of the level.
func (p *plan) listUplinks(l int32) [][]uplink {
	type key struct {
		uplink
		below int32 // digit of the level
	}
	having, switches := map[key]int{}, map[int32]int{}
	digits := int32(1)
	list := p.leaves
	if l > 0 {
		list = p.byLevel(l)
	}
	for _, u := range list {
		if from, to := p.ups(u); from < to || l == 0 {
			switches[p.digit[u]]++
			digits = max(digits, p.digit[u]+1)
			for c := from; c < to; c++ {
				having[key{uplink{p.copy[c], p.digit[p.to[c]]}, p.digit[u]}]++
			}
		}
	}
	uplinks := make([][]uplink, digits)
	for k, n := range having {
		if 2*n >= switches[k.below] {
			uplinks[k.below] = append(uplinks[k.below], k.uplink)
		}
	}
	for _, list := range uplinks {
		slices.SortFunc(list, func(a, b uplink) int { return cmp.Or(cmp.Compare(a.copy, b.copy), cmp.Compare(a.digit, b.digit)) })
	}
	return uplinks
}

// uplinkOffset rotates the uplinks of a level for the leaves of a subtree below the top,
// where there are more uplinks than slots, so that all uplinks are used. From one subtree
// to the next the offset falls by no more than the spare uplinks. So any window of the
// order with as many slots as a switch has takes different uplinks, even if the window
// spans two subtrees, or the end and the beginning of the order.
func (p *plan) uplinkOffset(l, leaf int32) int32 {
	slots := p.leafIndices
	if l > 0 {
		slots = p.subtreeCount[l-1] * p.oversubscription[l-1]
	}
	uplinks, spare := p.uplinks[l], p.uplinks[l]-slots
	if spare <= 0 {
		return 0
	}
	subtrees := p.subtreeCount[p.height-1]
	turns := spare * subtrees / uplinks
	return (uplinks - p.subtreeIndex[p.height-1][leaf]*turns*uplinks/subtrees%uplinks) % uplinks
}

// listCAOrder lists the CA ports of the leaves, subtree by subtree, then those of other
// switches. All subtrees of a level are equally long: fabric.NoPort stands for a missing
// host.
func (p *plan) listCAOrder() []fabric.PortID {
	size := int(p.leafIndices)
	present := 0
	for _, w := range p.subtreeCount {
		if size *= int(w); size > 1<<20 {
			break
		}
	}
	for _, h := range p.hosts {
		present += int(h)
	}
	padded := size <= 4*present+256
	if !padded {
		size = int(p.leafIndices) * len(p.leaves)
	}
	list := slices.Repeat([]fabric.PortID{fabric.NoPort}, size)
	end := 0
	for i, u := range p.leaves {
		at := i
		if padded {
			at = 0
			for l := int(p.height) - 1; l >= 0; l-- {
				at = at*int(p.subtreeCount[l]) + int(p.subtreeIndex[l][u])
			}
		}
		for _, port := range p.f.HostsOn(p.switches[u]) {
			list[at*int(p.leafIndices)+int(p.hostIndex[u][p.f.Num(p.f.Peer(port))])] = port
		}
		end = (at + 1) * int(p.leafIndices)
	}
	list = list[:end]
	for u := range p.switches {
		if p.level[u] > 0 {
			list = append(list, p.f.HostsOn(p.switches[u])...)
		}
	}
	return list
}
