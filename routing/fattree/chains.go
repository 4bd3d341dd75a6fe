package fattree

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// chains finds, for each LID of a host, its chain: the path by which packets come down from
// the top of a full tree, with a switch of each level. It uses only cables and switches that
// the tree has.
type chains struct {
	*numbers
	// digit is the number of each switch in its level. Switches of different subtrees have the
	// same digit if they have cables to the same switches above.
	digit []int
	// mixed is true if levels above join many switches of the same subtree, or if some leaves
	// are joined only by cables within a level. Then no chains keep shifts free of contention.
	mixed bool
	// uplinksOf has, by switch, the uplinks of listUplinks for its digit, nil for missing
	// ones.
	uplinksOf [][]*uplink
	// uplinks is, by level, the greatest number of uplinks of a digit,
	// distinctParents that of the switches that these lead to. oversubscription is
	// how many slots of a switch share one such parent: a leaf has a slot for each
	// host, a higher switch for each subtree as many as oversubscription of the level
	// below.
	uplinks, distinctParents, oversubscription []int
	// turns is, by level, the least multiple of uplinks that is not less than the number of
	// slots.
	turns []int
	// offsets are the results of offset, by level and top subtree.
	offsets [][]int
}

// In a mixed tree over 1/mixedShare of a level's switches are like an earlier one
// of their subtree.
const mixedShare = 4

// digitUplink describes an uplink that all switches with a digit have.
type digitUplink struct{ copy, digit int }

func newChains(p *numbers) *chains {
	c := &chains{numbers: p, digit: make([]int, len(p.switches))}
	for l := range c.byLevel {
		c.findDigits(l)
	}
	roots := c.subtree[c.height()]
	c.mixed = c.mixed || slices.ContainsFunc(c.leaves, func(u int32) bool { return roots[u] != roots[c.leaves[0]] })
	c.findUplinks()
	c.offsets = make([][]int, c.height())
	for l := range c.offsets {
		for i := range c.subtreeCount[c.height()-1] + 1 {
			c.offsets[l] = append(c.offsets[l], c.offset(l, i))
		}
	}
	return c
}

// findDigits numbers the switches of a level. Switches that the levels above join are alike.
// The n-th of them in each subtree, by NodeID, have the same digit.
func (c *chains) findDigits(l int) {
	type key struct {
		part int32
		nth  int
	}
	part := c.findParts(l, c.height())
	before := map[[2]int32]int{}
	further := 0
	keys := make([]key, len(c.byLevel[l]))
	for i, u := range c.byLevel[l] {
		where := [2]int32{part[u], c.subtree[l][u]}
		keys[i] = key{part[u], before[where]}
		if before[where]++; before[where] > 1 && l > 0 {
			further++
		}
	}
	c.mixed = c.mixed || mixedShare*further > len(keys)
	compare := func(a, b key) int { return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.nth, b.nth)) }
	all := slices.SortedFunc(slices.Values(keys), compare)
	all = slices.Compact(all)
	for i, u := range c.byLevel[l] {
		c.digit[u], _ = slices.BinarySearchFunc(all, keys[i], compare)
	}
}

// findUplinks finds the uplinks of each digit, and which of them each switch has.
func (c *chains) findUplinks() {
	c.uplinksOf = make([][]*uplink, len(c.switches))
	counts := text.Each(c.leaves, func(u int32) int { return c.indexCount[u] })
	slots := levels.MedianHost(counts) // how many slots a switch of the level has
	for l, switches := range c.byLevel[:c.height()] {
		if l == 0 {
			switches = c.leaves
			for _, u := range switches {
				c.digit[u] = 0
			}
		}
		lists := c.listUplinks(switches)
		uplinks, parents := 1, 1
		for _, list := range lists {
			uplinks = max(uplinks, len(list))
			parents = max(parents, text.CountIf(list, func(d digitUplink) bool { return d.copy == 0 }))
		}
		for _, u := range switches {
			list := lists[c.digit[u]]
			c.uplinksOf[u] = make([]*uplink, len(list))
			for i := range c.ups[u] {
				up := &c.ups[u][i]
				if k := slices.Index(list, digitUplink{up.copy, c.digit[up.to]}); k >= 0 {
					c.uplinksOf[u][k] = up
				}
			}
		}
		share := max(1, (slots+parents-1)/parents)
		c.uplinks, c.distinctParents, c.oversubscription = append(c.uplinks, uplinks), append(c.distinctParents, parents), append(c.oversubscription, share)
		slots = c.subtreeCount[l] * share
		all := c.leafIndices
		if l > 0 {
			all = c.subtreeCount[l-1] * c.oversubscription[l-1]
		}
		c.turns = append(c.turns, max(1, (all+uplinks-1)/uplinks)*uplinks)
	}
}

// listUplinks lists, by digit, the uplinks that at least half of the switches with the digit
// have.
func (c *chains) listUplinks(switches []int32) map[int][]digitUplink {
	type key struct {
		digitUplink
		below int // digit of the switch below
	}
	having, count := map[key]int{}, map[int]int{}
	for _, u := range switches {
		if len(c.ups[u]) > 0 {
			count[c.digit[u]]++
		}
		for _, up := range c.ups[u] {
			having[key{digitUplink{up.copy, c.digit[up.to]}, c.digit[u]}]++
		}
	}
	lists := map[int][]digitUplink{}
	for k, n := range having {
		if 2*n >= count[k.below] {
			lists[k.below] = append(lists[k.below], k.digitUplink)
		}
	}
	for _, list := range lists {
		slices.SortFunc(list, func(a, b digitUplink) int { return cmp.Or(cmp.Compare(a.copy, b.copy), cmp.Compare(a.digit, b.digit)) })
	}
	return lists
}

// offset returns the rotation of the uplinks of a level for a top subtree. It gives all
// uplinks equal shares of the routes if the slots do not divide evenly among them. Slots take
// the uplinks in turn, round after round, and some turns at the end are spare. From one
// subtree to the next the offset falls by at most the spare turns. So a window of the order
// with as many slots as a switch has takes different turns, even if it spans two subtrees, or
// the end and the beginning of the order.
func (c *chains) offset(l, subtree int) int {
	slots := c.leafIndices
	if l > 0 {
		slots = c.subtreeCount[l-1] * c.oversubscription[l-1]
	}
	turns := c.turns[l]
	subtrees := max(1, c.subtreeCount[c.height()-1]) // roots may leave all hosts above level 0
	rounds := min(1, (turns-slots)*subtrees/turns)
	return (turns - subtree*rounds*turns/subtrees%turns) % turns
}

// target is a LID with what determines its chain.
type target struct {
	lid     fabric.LID
	u       int32 // switch
	i       int   // index of its host there
	k, lids int   // it is LID k of a port with lids LIDs
}

// listTargets lists the targets of all LIDs.
func (c *chains) listTargets() []target {
	var list []target
	add := func(u int, port fabric.PortID, i int) {
		for lid := range c.f.LIDs(port) {
			list = append(list, target{lid, int32(u), i, int(lid - c.f.LID(port)), 1 << c.f.LMC(port)})
		}
	}
	for u, s := range c.switches {
		for _, port := range c.f.HostsOn(s) {
			add(u, port, c.hostIndex[u][c.f.Num(c.f.Peer(port))])
		}
		add(u, c.f.PortBase(s), u)
		for _, port := range c.f.EndPortsOn(s) {
			if !c.f.PortCounts(port, fabric.ForLoad) {
				add(u, port, u)
			}
		}
	}
	return list
}

// numberUplinks finds the uplink that switches of a top subtree take to a LID, and writes its
// number into numbers, by level below the top. The LIDs of one port are rotated against each
// other, so that for each k the k-th LIDs of all ports are equally free of contention.
func (c *chains) numberUplinks(t *target, subtree int, numbers []uint16) {
	slot, k, lids := t.i, t.k, t.lids
	inOrder := c.level[t.u] == 0 && c.subtreeIndex[0][t.u] >= 0
	for l := range numbers {
		uplinks := c.uplinks[l]
		if l < c.level[t.u] {
			numbers[l] = uint16(slot % uplinks)
			continue
		}
		shift, step := 0, 1
		for _, n := range []int{c.distinctParents[l], uplinks / c.distinctParents[l]} { // other switches first, then other cables
			same := min(lids, n)
			shift += k % same * (n / same) * step
			k /= same
			lids = (lids + same - 1) / same
			step *= n
		}
		if inOrder {
			top := c.subtreeIndex[c.height()-1][t.u]
			slot = (slot + c.offsets[l][top] + c.turns[l] - c.offsets[l][subtree]) % c.turns[l]
		}
		numbers[l] = uint16((slot + shift) % uplinks)
		if inOrder {
			slot = c.subtreeIndex[l][t.u]*c.oversubscription[l] + slot/c.distinctParents[l]%c.oversubscription[l]
		}
	}
}

// writeEntries writes the entries of a full tree for all LIDs: those for paths up, and for
// paths down those between switches with several cables. Other entries for paths down have no
// choice.
func (c *chains) writeEntries(t *lft.Tables) {
	targets := c.listTargets()
	if c.height() == 0 || c.mixed {
		return
	}
	below := make([][]int32, c.subtreeCount[c.height()-1]+1) // by top subtree: its switches
	top := make([]int, len(c.switches))                      // by switch: its top subtree
	byRoot := map[int32]int{}
	for _, u := range c.leaves {
		byRoot[c.subtree[c.height()-1][u]] = c.subtreeIndex[c.height()-1][u]
	}
	for u := range c.switches {
		top[u] = byRoot[c.subtree[c.height()-1][u]]
		if c.level[u] < c.height() {
			below[top[u]] = append(below[top[u]], int32(u))
		}
	}
	par.Each(len(below), func(i int) {
		levels := c.height()
		numbers := make([]uint16, len(targets)*levels) // by LID and level
		for k := range targets {
			c.numberUplinks(&targets[k], i, numbers[k*levels:][:levels])
		}
		for _, u := range below[i] {
			row, l := t.Row(c.switches[u]), c.level[u]
			num := slices.Repeat([]fabric.PortNum{fabric.NoPath}, c.uplinks[l]) // by the uplink's number: its port
			for w, up := range c.uplinksOf[u] {
				if up != nil {
					num[w] = c.f.Num(up.port)
				}
			}
			for k := range targets {
				row[targets[k].lid] = num[numbers[k*levels+l]]
			}
		}
	})
	numbers := make([]uint16, c.height())
	var groups [][]uplink
	for k := range targets {
		x := &targets[k]
		if k == 0 || targets[k-1].u != x.u {
			groups = c.listParallels(x.u)
		}
		if len(groups) == 0 {
			continue
		}
		c.numberUplinks(x, top[x.u], numbers)
		for _, group := range groups {
			l := c.level[group[0].to] - 1
			up := group[int(numbers[l])/c.distinctParents[l]%len(group)]
			t.Row(c.switches[up.to])[x.lid] = c.f.Num(up.peer)
		}
	}
}

// listParallels lists the parallel cables on paths up from u: for each two switches with
// several, a group of uplinks.
func (c *chains) listParallels(u int32) (groups [][]uplink) {
	if slices.Equal(c.uplinks, c.distinctParents) {
		return nil
	}
	seen := map[int32]bool{u: true}
	for list := []int32{u}; len(list) > 0; list = list[1:] {
		v := list[0]
		for _, first := range c.ups[v] {
			if first.copy > 0 {
				continue
			}
			group := text.Where(c.ups[v], func(up uplink) bool { return up.to == first.to })
			if len(group) > 1 {
				groups = append(groups, group)
			}
			if !seen[first.to] {
				seen[first.to] = true
				list = append(list, first.to)
			}
		}
	}
	return groups
}

// isFull returns true if the tree is full: all leaves with hosts have equally many, all
// switches of a level have equally many uplinks, and none is missing. So shifts of the hosts
// are as free of contention as the shape allows.
func (c *chains) isFull() bool {
	if c.mixed {
		return false
	}
	for u, s := range c.switches {
		hosts := len(c.f.HostsOn(s))
		ports, _ := c.f.SwitchLinks(s)
		switch l := c.level[u]; {
		case l == 0 && hosts == 0 && len(c.leaves) > 0 && len(c.switches) > 1:
			// Leaves without hosts do not matter.
		case l > 0 && hosts > 0:
			return false
		case l < c.height() && (len(c.ups[u]) != c.uplinks[l] || slices.Contains(c.uplinksOf[u], nil)):
			return false
		case l == 0 && len(ports) != len(c.ups[u]):
			return false
		}
	}
	return true
}
