package fattree

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// filler writes the rows of the switches of a tree.
type filler struct {
	*chains
	tables *lft.Tables
	// keys is by level of a switch, number of levels to climb less 1, and destination:
	// the switch of the chain there, and the copy of the channel that a path up
	// begins with, as index in row.via.
	keys [][][]int32
	// skip is the set of switches to which paths are made by the order.
	skip []uint64
	// lost is by switch the set of those to which no path of levels leads.
	lost    []uint64
	ascents *ascents
}

func newFiller(c *chains, t *lft.Tables) *filler {
	x := &filler{chains: c, tables: t, skip: c.illegal(), lost: make([]uint64, len(c.sw)*c.words), ascents: newAscents(c.tree)}
	n := int32(len(x.sw))
	x.keys = make([][][]int32, x.height)
	for l := range x.height {
		for m := l + 1; m <= x.height; m++ {
			key := make([]int32, len(x.lid))
			for d, u := range x.at[m] {
				key[d] = n * x.copies
				if u >= 0 {
					key[d] = u*x.copies + int32(x.nth[l][d])
				}
			}
			x.keys[l] = append(x.keys[l], key)
		}
	}
	for u := range n {
		lost := x.set(x.lost, u)
		for w := range lost {
			var reached uint64
			for k := range x.reach {
				reached |= x.set(x.reach[k], u)[w]
			}
			lost[w] = ^reached
		}
		if r := n & 63; r != 0 {
			lost[len(lost)-1] &= 1<<r - 1
		}
	}
	// A switch without a path of levels goes up in the order until there is one, in the
	// end at the top. If there is none at the top, all go by the order.
	for w, word := range x.set(x.lost, x.byRank[0]) {
		x.skip[w] |= word
	}
	return x
}

// run fills all rows: O(switches x LIDs), and for each destination with paths by the
// order O(channels).
func (x *filler) run(ctx context.Context) error {
	n := int32(len(x.sw))
	var detours []int32
	set := slices.Clone(x.skip)
	for u := range n {
		for w, word := range x.set(x.lost, u) {
			set[w] |= word
		}
	}
	each(set, func(u int32) { detours = append(detours, u) })
	if _, err := par.ForEachWith(ctx, 0, int(n), x.newRow, func(r *row, u int) error {
		r.fill(int32(u))
		return nil
	}); err != nil {
		return err
	}
	_, err := par.ForEachWith(ctx, 0, len(detours), x.newDetour, func(r *detour, i int) error {
		if !r.fill(detours[i]) {
			return errTooLong
		}
		return nil
	})
	return err
}

// row is the scratch of a worker.
type row struct {
	*filler
	climb []uint8 // by switch: channels to go up, none for not by levels
	// via is by ancestor and copy the port that leads to it: NoPath for none,
	// ManagementPort where several switches do.
	via   []fabric.PortNum
	seen  []int32 // by switch: the channel by which it was last met
	stack []int32
	// down is by switch the one port that leads down to it, ManagementPort for several.
	down  []fabric.PortNum
	load  []float64  // by channel of the switch at hand: destinations
	other []int32    // destinations that need a closer look
	count [256]int32 // by port: destinations of hosts
	able  []int32    // channels for the destination switch at hand
	// ways is by number the channel up from the switch at hand, -1 for none, and wayPort its
	// port, NoPath for none. common is by number of channels to go up less 1 the set of
	// destinations to which all of them lead.
	ways    []int32
	wayPort [256]fabric.PortNum
	common  []uint64
}

const none = 255

func (x *filler) newRow() *row {
	n := len(x.sw)
	return &row{
		filler: x, climb: make([]uint8, n), via: make([]fabric.PortNum, n*int(x.copies)+1), seen: make([]int32, n), common: make([]uint64, int(x.height)*x.words),
		down: make([]fabric.PortNum, n),
	}
}

// fill writes the row of switch u, but for destinations with paths by the order.
func (r *row) fill(u int32) {
	for v := range r.climb {
		r.climb[v] = none
	}
	for k := int(r.height); k >= 0; k-- {
		each(r.set(r.reach[k], u), func(v int32) { r.climb[v] = uint8(k) })
	}
	each(r.skip, func(v int32) { r.climb[v] = none })
	r.findVia(u)
	r.findDown(u)
	r.other = r.other[:0]
	row := r.tables.Row(r.sw[u])
	l := r.level[u]
	r.findWays(u)
	for t, k := range r.climb {
		first, end := r.dests[t], r.dests[t+1]
		switch {
		case int32(t) == u:
			for d := first; d < end; d++ {
				row[r.lid[d]] = r.out[d]
			}
		case k == none:
		case k == 0:
			port := r.down[t]
			at := r.at[l][first:end]
			for i, v := range at {
				d := first + int32(i)
				switch {
				case v == u && l > r.level[t]:
					row[r.lid[d]] = r.back[r.by[l-1][d]]
				case port == fabric.ManagementPort:
					r.other = append(r.other, d)
				default:
					row[r.lid[d]] = port
				}
			}
		default:
			keys := r.keys[l][k-1][first:end]
			lids, ways := r.lid[first:end][:len(keys)], r.way[l][first:end][:len(keys)]
			common := has(r.set(r.common, int32(k)-1), int32(t))
			for i, key := range keys {
				port := r.via[key]
				if port == fabric.NoPath {
					if w := ways[i]; common || r.leads(w, k, int32(t)) {
						port = r.wayPort[w]
					}
				}
				row[lids[i]] = port
				if port == fabric.NoPath || port == fabric.ManagementPort {
					r.other = append(r.other, first+int32(i))
				}
			}
		}
	}
	if len(r.other) > 0 {
		r.settle(u, row)
	}
}

// findWays finds the ways up from u.
func (r *row) findWays(u int32) {
	for i := range r.wayPort {
		r.wayPort[i] = fabric.NoPath
	}
	r.ways = nil
	if l := r.level[u]; l < r.height {
		r.ways = r.channel[l][u]
	}
	for i := range r.common {
		r.common[i] = ^uint64(0)
	}
	for i, c := range r.ways {
		if c < 0 {
			continue
		}
		r.wayPort[i] = r.num[c]
		if r.copy[c] > 0 {
			continue // as the first one
		}
		for k := range r.height {
			common := r.set(r.common, k)
			for w, word := range r.set(r.reach[k], r.to[c]) {
				common[w] &= word
			}
		}
	}
}

// leads says whether way w up from the switch at hand is one to switch t with k channels
// up.
func (r *row) leads(w, k uint8, t int32) bool {
	if int(w) >= len(r.ways) || r.ways[w] < 0 {
		return false
	}
	return has(r.set(r.reach[k-1], r.to[r.ways[w]]), t)
}

// findVia finds for all ancestors of u the ports that lead to them.
func (r *row) findVia(u int32) {
	for i := range r.via {
		r.via[i] = fabric.NoPath
	}
	from, to := r.ups(u)
	for i := range r.seen {
		r.seen[i] = -1
	}
	var group [256]int32
	for c := from; c < to; c++ {
		v := r.to[c]
		if r.copy[c] != 0 {
			continue // with the first one
		}
		n := int32(0)
		for d := c; d < to; d++ {
			if r.to[d] == v {
				group[n] = d
				n++
			}
		}
		r.stack = append(r.stack[:0], v)
		r.seen[v] = c
		for len(r.stack) > 0 {
			w := r.stack[len(r.stack)-1]
			r.stack = r.stack[:len(r.stack)-1]
			at := r.via[w*r.copies:][:r.copies]
			if at[0] == fabric.NoPath {
				for k := range at {
					at[k] = r.num[group[int32(k)%n]]
				}
			} else {
				for k := range at {
					at[k] = fabric.ManagementPort
				}
			}
			for d, end := r.ups(w); d < end; d++ {
				if next := r.to[d]; r.seen[next] != c {
					r.seen[next] = c
					r.stack = append(r.stack, next)
				}
			}
		}
	}
}

// findDown finds for all switches below u the ports that lead to them.
func (r *row) findDown(u int32) {
	for i := range r.down {
		r.down[i] = fabric.NoPath
	}
	for c, end := r.downs(u); c < end; c++ {
		num := r.num[c]
		each(r.set(r.reach[0], r.to[c]), func(v int32) {
			if r.down[v] != fabric.NoPath {
				num := fabric.ManagementPort
				r.down[v] = num
				return
			}
			r.down[v] = num
		})
	}
}

// settle finds ports for what the chains leave open at switch u: those that come
// closest to the chain, and of these the one with the least load of all that leave u.
func (r *row) settle(u int32, row []fabric.PortNum) {
	from, end := r.first[u], r.first[u+1]
	for _, d := range r.other {
		row[r.lid[d]] = fabric.NoPath
	}
	clear(r.count[:])
	for t, k := range r.climb {
		if k == none || int32(t) == u {
			continue
		}
		for _, lid := range r.lid[r.dests[t]:r.own[t]] {
			r.count[row[lid]]++
		}
	}
	r.load = r.load[:0]
	for c := from; c < end; c++ {
		r.load = append(r.load, float64(r.count[r.num[c]])*r.unit[c])
	}
	t, k := int32(-1), int32(0)
	for _, d := range r.other {
		if t < 0 || d >= r.dests[t+1] {
			t = r.owner(d)
			k = int32(r.climb[t])
			r.candidates(u, t, k)
		}
		best, bestDetour, least := int32(-1), 0, 0.0
		at := int(r.lid[d]) % len(r.able)
		for range r.able {
			c := r.able[at]
			if at++; at == len(r.able) {
				at = 0
			}
			load := r.load[c-from] + r.unit[c]
			detour := 0
			if k > 0 {
				detour = r.detour(u, c, d, k)
			}
			if best < 0 || detour < bestDetour || detour == bestDetour && load < least {
				best, bestDetour, least = c, detour, load
			}
		}
		row[r.lid[d]] = r.num[best]
		if d < r.own[t] {
			r.load[best-from] = least
		}
	}
}

// candidates finds the channels by which paths of levels to t may leave u, which has k to
// go up.
func (r *row) candidates(u, t, k int32) {
	a, b := r.downs(u)
	onward := r.reach[0]
	if k > 0 {
		a, b = r.ups(u)
		onward = r.reach[k-1]
	}
	r.able = r.able[:0]
	for c := a; c < b; c++ {
		if has(r.set(onward, r.to[c]), t) {
			r.able = append(r.able, c)
		}
	}
}

// detour says how far from the chain of destination d a path is that begins with
// channel c up from u and has k to go up: 0 when it meets the chain where it turns and
// has its column from the beginning, 1 when it meets it there, 2 when it has its
// column, and else 3.
func (r *row) detour(u, c, d, k int32) int {
	l := r.level[u]
	v := r.to[c]
	detour := 3
	if next := r.at[l+1][d]; next >= 0 && r.column[next] == r.column[v] {
		detour = 2
	}
	if turn := r.at[l+k][d]; turn >= 0 && r.below(v, turn) {
		detour -= 2
	}
	return detour
}
