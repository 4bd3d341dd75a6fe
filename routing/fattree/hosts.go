package fattree

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// numbers numbers the hosts of a tree and its subtrees.
type numbers struct {
	*tree
	// leaves lists the switches of level 0 with hosts, in the order of the hosts. The
	// leaves of a subtree are in a row.
	leaves []int32
	// subtree has, by level and switch, the subtree up to that level with the switch.
	subtree [][]int32
	// subtreeIndex has, by level and leaf, the number of the leaf's subtree of that level
	// within the subtree one level above; -1 for leaves without hosts. On level 0 it
	// numbers leaves.
	subtreeIndex [][]int
	// subtreeCount has, by level, how many subtrees with hosts a subtree of the next level
	// has at most. The last one is 1.
	subtreeCount []int
	// hostIndex has, by switch and port, the index of the host there. indexCount has, by
	// switch, the number of indices, also those without a host.
	hostIndex   [][]int
	indexCount  []int
	leafIndices int // greatest indexCount of a leaf
}

func numberHosts(x *tree) *numbers {
	p := &numbers{tree: x, leaves: text.Where(x.byLevel[0], func(u int32) bool { return len(x.f.HostsOn(x.switches[u])) > 0 })}
	for l := range x.byLevel {
		p.subtree = append(p.subtree, x.findParts(0, l))
	}
	p.findHostIndices()
	p.findSubtreeIndices()
	return p
}

// findSubtreeIndices sorts the leaves and numbers their subtrees.
func (p *numbers) findSubtreeIndices() {
	// first has, by level and subtree, its first leaf, which determines its index.
	first := make([][]int32, len(p.subtree))
	for l, of := range p.subtree {
		first[l] = make([]int32, len(p.switches))
		for _, u := range slices.Backward(p.leaves) {
			first[l][of[u]] = u
		}
	}
	slices.SortFunc(p.leaves, func(a, b int32) int {
		for l, of := range slices.Backward(p.subtree) {
			if c := cmp.Compare(first[l][of[a]], first[l][of[b]]); c != 0 {
				return c
			}
		}
		return 0
	})
	p.subtreeIndex = make([][]int, p.height())
	p.subtreeCount = make([]int, p.height())
	for l := range p.subtreeIndex {
		p.subtreeIndex[l] = slices.Repeat([]int{-1}, len(p.switches))
		below, above := p.subtree[l], p.subtree[l+1]
		index := 0
		for i, u := range p.leaves {
			switch {
			case i == 0 || above[p.leaves[i-1]] != above[u]:
				index = 0
			case below[p.leaves[i-1]] != below[u]:
				index++
			}
			p.subtreeIndex[l][u] = index
			p.subtreeCount[l] = max(p.subtreeCount[l], index+1)
		}
	}
}

// findHostIndices numbers the hosts of each switch. On leaves a host on a usual port has
// the index of the port, so that it does not change if other hosts go. Hosts on other
// ports get the free indices.
func (p *numbers) findHostIndices() {
	ports := make([][]fabric.PortNum, len(p.switches)) // with hosts
	for u, s := range p.switches {
		for _, host := range p.f.HostsOn(s) {
			ports[u] = append(ports[u], p.f.Num(p.f.Peer(host)))
		}
	}
	usual := p.listUsualPorts(ports)
	p.hostIndex, p.indexCount = make([][]int, len(p.switches)), make([]int, len(p.switches))
	for u, s := range p.switches {
		p.hostIndex[u] = make([]int, int(p.f.Node(s).NumPorts)+1)
		var others []fabric.PortNum
		var taken [int(fabric.MaxPortNum) + 1]bool
		give := func(n fabric.PortNum, i int) {
			p.hostIndex[u][n], taken[i] = i, true
			p.indexCount[u] = max(p.indexCount[u], i+1)
		}
		for _, n := range ports[u] {
			if i := slices.Index(usual, n); i >= 0 && p.level[u] == 0 {
				give(n, i)
			} else {
				others = append(others, n)
			}
		}
		for _, n := range others {
			give(n, slices.Index(taken[:], false))
		}
		if p.level[u] == 0 {
			p.leafIndices = max(p.leafIndices, p.indexCount[u])
		}
	}
}

// listUsualPorts lists the ports on which at least half of the leaves have hosts. It lists
// none if less than 3/4 of the leaves have hosts only on such ports, or if these leaves
// have hosts on less than 3/4 of them.
func (p *numbers) listUsualPorts(ports [][]fabric.PortNum) []fabric.PortNum {
	var users [int(fabric.MaxPortNum) + 1]int
	for _, u := range p.leaves {
		for _, n := range ports[u] {
			users[n]++
		}
	}
	var usual []fabric.PortNum
	for n, k := range users {
		if k > 0 && 2*k >= len(p.leaves) {
			usual = append(usual, fabric.PortNum(n))
		}
	}
	like, all := 0, 0
	for _, u := range p.leaves {
		if !slices.ContainsFunc(ports[u], func(n fabric.PortNum) bool { return !slices.Contains(usual, n) }) {
			like++
			all += len(ports[u])
		}
	}
	if 4*like < 3*len(p.leaves) || 4*all < 3*like*len(usual) {
		return nil
	}
	return usual
}

// listCAOrder lists the CA ports of the leaves, subtree by subtree, then those of other
// switches. All subtrees of a level take equally many places: fabric.NoPort stands for a
// missing host.
func (p *numbers) listCAOrder() []fabric.PortID {
	size := p.leafIndices
	present := 0
	for _, w := range p.subtreeCount {
		if size *= w; size > 1<<20 {
			break
		}
	}
	for _, s := range p.switches {
		present += len(p.f.HostsOn(s))
	}
	padded := size <= 4*present+256
	if !padded {
		size = p.leafIndices * len(p.leaves)
	}
	list := slices.Repeat([]fabric.PortID{fabric.NoPort}, size)
	end := 0
	for i, u := range p.leaves {
		at := i
		if padded {
			at = 0
			for l := p.height() - 1; l >= 0; l-- {
				at = at*p.subtreeCount[l] + p.subtreeIndex[l][u]
			}
		}
		for _, port := range p.f.HostsOn(p.switches[u]) {
			list[at*p.leafIndices+p.hostIndex[u][p.f.Num(p.f.Peer(port))]] = port
		}
		end = (at + 1) * p.leafIndices
	}
	list = list[:end]
	for u, s := range p.switches {
		if p.level[u] > 0 {
			list = append(list, p.f.HostsOn(s)...)
		}
	}
	return list
}
