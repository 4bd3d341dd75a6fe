package fattree

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// plan is what the positions of hosts and switches in a tree are.
type plan struct {
	*tree
	// leaves are the switches of level 0 with hosts, in the order of the hosts: those
	// of a subtree follow each other.
	leaves []int32
	// place is by level and switch of level 0 the position of its subtree of that level,
	// the leaf itself on level 0, in the subtree one level above; -1 for no hosts.
	place [][]int32
	// width is by level the most subtrees with hosts of that level in one of the next;
	// the last is 1.
	width []int32
	// seat is by switch and port the position of the host there, and seats the number of
	// positions, some of them without a host.
	seat  [][]int32
	seats []int32
	most  int32 // positions of a leaf
	// column is by switch its number among those of its level: switches of different
	// subtrees have the same one when they are joined to the same switches above.
	column []int32
	// ways is by level below the top and column the channels that most switches there
	// have upward, by copy and column above.
	ways [][][]way
	// channel is by level below the top for each switch the channels that it has of these,
	// -1 for those that are missing.
	channel [][][]int32
	// wide is by level the most ways of a column, and apart to how many different switches
	// they lead; fold is how many hosts of a leaf, or slots of the level, come to share one
	// of these.
	wide, apart, fold []int32
}

// way is a channel upward.
type way struct {
	copy   uint8
	column int32 // above
}

func newPlan(x *tree) *plan {
	p := &plan{tree: x}
	sub := p.subtrees()
	p.findPlaces(sub)
	p.findColumns(sub)
	x.sortUps(p.column)
	p.findWays()
	return p
}

// subtrees gives by level l for each switch up to that level the least switch of its
// part of the fabric when all higher levels are left out.
func (p *plan) subtrees() [][]int32 {
	n := int32(len(p.sw))
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

// findPlaces puts the leaves in order.
func (p *plan) findPlaces(sub [][]int32) {
	for _, u := range p.byLevel(0) {
		if p.hosts[u] > 0 {
			p.leaves = append(p.leaves, u)
		}
	}
	p.findSeats()
	// first is by level the first leaf of each subtree, which its place goes by.
	first := make([][]int32, p.height+1)
	for l := range first {
		first[l] = make([]int32, len(p.sw))
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
	p.place = make([][]int32, p.height)
	p.width = make([]int32, p.height)
	for l := range p.place {
		p.place[l] = slices.Repeat([]int32{-1}, len(p.sw))
		var before, at int32
		for i, u := range p.leaves {
			switch {
			case i == 0 || sub[l+1][before] != sub[l+1][u]:
				at = 0
			case sub[l][before] != sub[l][u]:
				at++
			}
			p.place[l][u] = at
			p.width[l] = max(p.width[l], at+1)
			before = u
		}
	}
}

// findSeats gives hosts their positions on switches. When three of four leaves have hosts
// on the same ports only, and on three of four of these, these are the positions, so that
// a host that goes leaves those of others as they are. On switches with hosts on other
// ports it is the order of those that are there.
func (p *plan) findSeats() {
	var users [int(fabric.MaxPortNum) + 1]int
	var usual []fabric.PortNum
	ports := make([][]fabric.PortNum, len(p.sw))
	for u, s := range p.sw {
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
	strange := func(n fabric.PortNum) bool { return !slices.Contains(usual, n) }
	like, all := 0, 0
	for _, u := range p.leaves {
		if !slices.ContainsFunc(ports[u], strange) {
			like++
			all += len(ports[u])
		}
	}
	if 4*like < 3*len(p.leaves) || 4*all < 3*like*len(usual) {
		usual = nil
	}
	p.seat, p.seats = make([][]int32, len(p.sw)), make([]int32, len(p.sw))
	for u, s := range p.sw {
		p.seat[u] = make([]int32, int(p.f.Node(s).NumPorts)+1)
		at := ports[u]
		if p.level[u] == 0 && !slices.ContainsFunc(at, strange) {
			at = usual
		}
		for i, n := range at {
			if int(n) < len(p.seat[u]) {
				p.seat[u][n] = int32(i)
			}
		}
		p.seats[u] = int32(len(at))
		if p.level[u] == 0 {
			p.most = max(p.most, p.seats[u])
		}
	}
}

// findColumns numbers the switches of each level, from the top down. Switches belong
// together that are joined mostly to the same columns above; those of one subtree are
// told apart.
func (p *plan) findColumns(sub [][]int32) {
	p.column = make([]int32, len(p.sw))
	count := int32(0)
	for _, u := range p.byLevel(p.height) {
		p.column[u] = count
		count++
	}
	for l := p.height - 1; l > 0; l-- {
		count = p.columnsOf(l, count, sub[l])
	}
}

// columnsOf numbers the switches of a level and gives the number of numbers; above is
// that of the next level.
func (p *plan) columnsOf(l, above int32, sub []int32) int32 {
	list := p.byLevel(l)
	words := (int(above) + 63) / 64
	near := make([]uint64, len(list)*words)
	degree := make([]int, len(list))
	at := func(i int) []uint64 { return near[i*words : (i+1)*words] }
	for i, u := range list {
		set := at(i)
		for c, end := p.ups(u); c < end; c++ {
			q := p.column[p.to[c]]
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
	group := make([]int, len(list)) // the first one of its group
	for _, i := range byDegree {
		group[i] = -1
		if degree[i] == 0 {
			continue
		}
		most := degree[i] // twice as many as must be shared
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
	// Those of one group in a subtree are numbered in the order of NodeIDs.
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
			p.column[u] = int32(k)
			taken[[2]int32{sub[u], int32(k)}] = true
		}
	}
	// One that lost all cables upward has the number that its subtree lacks.
	count := int32(len(all))
	for i, u := range list {
		if group[i] < 0 {
			k := int32(0)
			for taken[[2]int32{sub[u], k}] {
				k++
			}
			taken[[2]int32{sub[u], k}] = true
			p.column[u] = k
			count = max(count, k+1)
		}
	}
	return count
}

// findWays finds what most switches of a column have upward.
func (p *plan) findWays() {
	p.ways, p.channel = make([][][]way, p.height), make([][][]int32, p.height)
	p.wide, p.apart, p.fold = make([]int32, p.height), make([]int32, p.height), make([]int32, p.height)
	var counts []int32
	total := int32(0)
	for _, u := range p.leaves {
		counts = append(counts, p.seats[u])
		total += p.seats[u]
	}
	slots := medianOf(counts, total) // of a switch at the level
	for l := range p.height {
		list := p.leaves
		if l > 0 {
			list = p.byLevel(l)
		}
		type count struct {
			way
			column int32
		}
		has, of := map[count]int{}, map[int32]int{}
		columns := int32(1)
		for _, u := range list {
			if from, to := p.ups(u); from < to || l == 0 {
				of[p.column[u]]++
				columns = max(columns, p.column[u]+1)
				for c := from; c < to; c++ {
					has[count{way{p.copy[c], p.column[p.to[c]]}, p.column[u]}]++
				}
			}
		}
		p.ways[l] = make([][]way, columns)
		for w, n := range has {
			if 2*n >= of[w.column] {
				p.ways[l][w.column] = append(p.ways[l][w.column], w.way)
			}
		}
		p.wide[l], p.apart[l] = 1, 1
		for _, ways := range p.ways[l] {
			slices.SortFunc(ways, func(a, b way) int { return cmp.Or(cmp.Compare(a.copy, b.copy), cmp.Compare(a.column, b.column)) })
			p.wide[l] = max(p.wide[l], int32(len(ways)))
			apart := int32(0)
			for _, w := range ways {
				if w.copy == 0 {
					apart++
				}
			}
			p.apart[l] = max(p.apart[l], apart)
		}
		p.channel[l] = make([][]int32, len(p.sw))
		for _, u := range p.byLevel(l) {
			if int(p.column[u]) >= len(p.ways[l]) {
				continue
			}
			ways := p.ways[l][p.column[u]]
			list := slices.Repeat([]int32{-1}, len(ways))
			for c, end := p.ups(u); c < end; c++ {
				if i := slices.Index(ways, way{p.copy[c], p.column[p.to[c]]}); i >= 0 {
					list[i] = c
				}
			}
			p.channel[l][u] = list
		}
		p.fold[l] = max(1, (slots+p.apart[l]-1)/p.apart[l])
		slots = p.width[l] * p.fold[l]
	}
}

// offset turns the ways at a level for the leaves of one of the subtrees below the top,
// where there are more ways than slots, so that all are used. From one subtree to the
// next it falls by no more than there are ways to spare: so the slots of any window of
// the order that is as long as one switch's meet different ways, also where the window
// spans two subtrees, or the end of the order and its beginning.
func (p *plan) offset(l, leaf int32) int32 {
	slots := p.most
	if l > 0 {
		slots = p.width[l-1] * p.fold[l-1]
	}
	wide, spare := p.wide[l], p.wide[l]-slots
	if spare <= 0 {
		return 0
	}
	subtrees := p.width[p.height-1]
	turns := spare * subtrees / wide
	return (wide - p.place[p.height-1][leaf]*turns*wide/subtrees%wide) % wide
}

// caOrder lists the CA ports of the leaves, so that those of a subtree follow each other
// and all subtrees of a level are equally long, fabric.NoPort standing for hosts that
// are not there; then those of other switches.
func (p *plan) caOrder() []fabric.PortID {
	size := int(p.most)
	present := 0
	for _, w := range p.width {
		if size *= int(w); size > 1<<20 {
			break
		}
	}
	for _, h := range p.hosts {
		present += int(h)
	}
	padded := size <= 4*present+256
	if !padded {
		size = int(p.most) * len(p.leaves)
	}
	list := slices.Repeat([]fabric.PortID{fabric.NoPort}, size)
	end := 0
	for i, u := range p.leaves {
		at := i
		if padded {
			at = 0
			for l := int(p.height) - 1; l >= 0; l-- {
				at = at*int(p.width[l]) + int(p.place[l][u])
			}
		}
		for _, port := range p.f.HostsOn(p.sw[u]) {
			list[at*int(p.most)+int(p.seat[u][p.f.Num(p.f.Peer(port))])] = port
		}
		end = (at + 1) * int(p.most)
	}
	list = list[:end]
	for u := range p.sw {
		if p.level[u] > 0 {
			list = append(list, p.f.HostsOn(p.sw[u])...)
		}
	}
	return list
}
