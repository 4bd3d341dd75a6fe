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
	// keys is by level of a switch, number of levels to climb less 1, and destination: the
	// switch of the chain at the end of the climb, and the copy of the channel that a path up
	// begins with, as index in rowFiller.portUp.
	keys [][][]int32
	// skip is the set of switches to which all paths go by the order.
	skip []uint64
	// unreachable is by switch the set of switches to which no path by levels leads.
	unreachable []uint64
	ascents     *ascents
}

func newFiller(c *chains, t *lft.Tables) *filler {
	x := &filler{chains: c, tables: t, skip: c.findIllegal(), unreachable: make([]uint64, len(c.switches)*c.words), ascents: newAscents(c.tree)}
	n := int32(len(x.switches))
	x.keys = make([][][]int32, x.height)
	for l := range x.height {
		for m := l + 1; m <= x.height; m++ {
			key := make([]int32, len(x.lid))
			for d, u := range x.switchAt[m] {
				key[d] = n * x.copies
				if u >= 0 {
					key[d] = u*x.copies + int32(x.copyUp[l][d])
				}
			}
			x.keys[l] = append(x.keys[l], key)
		}
	}
	for u := range n {
		lost := x.setOf(x.unreachable, u)
		for w := range lost {
			var reached uint64
			for k := range x.reach {
				reached |= x.setOf(x.reach[k], u)[w]
			}
			lost[w] = ^reached
		}
		if r := n & 63; r != 0 {
			lost[len(lost)-1] &= 1<<r - 1
		}
	}
	// A switch without a path by levels goes up in the order to a switch that has one, at
	// last the top one. If the top has none, all paths go by the order.
	for w, word := range x.setOf(x.unreachable, x.byRank[0]) {
		x.skip[w] |= word
	}
	return x
}

// fillTables fills all rows: O(switches x LIDs), and O(channels) for each destination with
// paths by the order.
func (x *filler) fillTables(ctx context.Context) error {
	n := int32(len(x.switches))
	var detours []int32
	set := slices.Clone(x.skip)
	for u := range n {
		for w, word := range x.setOf(x.unreachable, u) {
			set[w] |= word
		}
	}
	forEachSwitch(set, func(u int32) { detours = append(detours, u) })
	if _, err := par.ForEachWith(ctx, 0, int(n), x.newRowFiller, func(r *rowFiller, u int) error {
		r.fillRow(int32(u))
		return nil
	}); err != nil {
		return err
	}
	_, err := par.ForEachWith(ctx, 0, len(detours), x.newDetour, func(r *detour, i int) error {
		if !r.fillDestination(detours[i]) {
			return errTooLong
		}
		return nil
	})
	return err
}

// rowFiller fills rows. It is the scratch of a worker.
type rowFiller struct {
	*filler
	climb []uint8 // by switch: channels to go up; none if no path goes by levels
	// portUp is by ancestor and copy the port that leads there: NoPath for none,
	// ManagementPort if ports to several switches do.
	portUp []fabric.PortNum
	seen   []int32 // by switch: the channel by which the search last found it
	stack  []int32
	// portDown is by switch the only port that leads down to it, ManagementPort for several.
	portDown  []fabric.PortNum
	load      []float64  // by channel of the current switch: destinations
	undecided []int32    // destinations whose chain leaves the port open
	count     [256]int32 // by port: destinations of hosts
	allowed   []int32    // channels that may lead to the current destination switch
	// uplinksFrom is by number the uplink of the current switch, -1 for none, and uplinkPort
	// its port, NoPath for none. common is by number of channels to go up less 1 the set of
	// destinations to which all uplinks lead.
	uplinksFrom []int32
	uplinkPort  [256]fabric.PortNum
	common      []uint64
}

const none = 255

func (x *filler) newRowFiller() *rowFiller {
	n := len(x.switches)
	return &rowFiller{
		filler: x, climb: make([]uint8, n), portUp: make([]fabric.PortNum, n*int(x.copies)+1), seen: make([]int32, n), common: make([]uint64, int(x.height)*x.words),
		portDown: make([]fabric.PortNum, n),
	}
}

// fillRow writes the row of switch u, except for destinations with paths by the order.
func (r *rowFiller) fillRow(u int32) {
	for v := range r.climb {
		r.climb[v] = none
	}
	for k := int(r.height); k >= 0; k-- {
		forEachSwitch(r.setOf(r.reach[k], u), func(v int32) { r.climb[v] = uint8(k) })
	}
	forEachSwitch(r.skip, func(v int32) { r.climb[v] = none })
	r.findPortsUp(u)
	r.findPortsDown(u)
	r.undecided = r.undecided[:0]
	row := r.tables.Row(r.switches[u])
	l := r.level[u]
	r.findUplinkPorts(u)
	for t, k := range r.climb {
		first, end := r.destStart[t], r.destStart[t+1]
		switch {
		case int32(t) == u:
			for d := first; d < end; d++ {
				row[r.lid[d]] = r.out[d]
			}
		case k == none:
		case k == 0:
			port := r.portDown[t]
			at := r.switchAt[l][first:end]
			for i, v := range at {
				d := first + int32(i)
				switch {
				case v == u && l > r.level[t]:
					row[r.lid[d]] = r.back[r.channelUp[l-1][d]]
				case port == fabric.ManagementPort:
					r.undecided = append(r.undecided, d)
				default:
					row[r.lid[d]] = port
				}
			}
		default:
			keys := r.keys[l][k-1][first:end]
			lids, uplinks := r.lid[first:end][:len(keys)], r.uplinkOf[l][first:end][:len(keys)]
			common := hasSwitch(r.setOf(r.common, int32(k)-1), int32(t))
			for i, key := range keys {
				port := r.portUp[key]
				if port == fabric.NoPath {
					if w := uplinks[i]; common || r.uplinkLeads(w, k, int32(t)) {
						port = r.uplinkPort[w]
					}
				}
				row[lids[i]] = port
				if port == fabric.NoPath || port == fabric.ManagementPort {
					r.undecided = append(r.undecided, first+int32(i))
				}
			}
		}
	}
	if len(r.undecided) > 0 {
		r.placeUndecided(u, row)
	}
}

// findUplinkPorts finds the uplinks of u and their ports.
func (r *rowFiller) findUplinkPorts(u int32) {
	for i := range r.uplinkPort {
		r.uplinkPort[i] = fabric.NoPath
	}
	r.uplinksFrom = nil
	if l := r.level[u]; l < r.height {
		r.uplinksFrom = r.uplinkChannel[l][u]
	}
	for i := range r.common {
		r.common[i] = ^uint64(0)
	}
	for i, c := range r.uplinksFrom {
		if c < 0 {
			continue
		}
		r.uplinkPort[i] = r.num[c]
		if r.copy[c] > 0 {
			continue // leads where the first copy leads
		}
		for k := range r.height {
			common := r.setOf(r.common, k)
			for w, word := range r.setOf(r.reach[k], r.to[c]) {
				common[w] &= word
			}
		}
	}
}

// uplinkLeads says whether uplink w of the current switch leads to switch t by k channels
// up.
func (r *rowFiller) uplinkLeads(w, k uint8, t int32) bool {
	if int(w) >= len(r.uplinksFrom) || r.uplinksFrom[w] < 0 {
		return false
	}
	return hasSwitch(r.setOf(r.reach[k-1], r.to[r.uplinksFrom[w]]), t)
}

// findPortsUp finds the ports that lead to the ancestors of u.
func (r *rowFiller) findPortsUp(u int32) {
	for i := range r.portUp {
		r.portUp[i] = fabric.NoPath
	}
	from, to := r.ups(u)
	for i := range r.seen {
		r.seen[i] = -1
	}
	var group [256]int32
	for c := from; c < to; c++ {
		v := r.to[c]
		if r.copy[c] != 0 {
			continue // handled with the first copy
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
			at := r.portUp[w*r.copies:][:r.copies]
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

// findPortsDown finds the ports that lead to the switches below u.
func (r *rowFiller) findPortsDown(u int32) {
	for i := range r.portDown {
		r.portDown[i] = fabric.NoPath
	}
	for c, end := r.downs(u); c < end; c++ {
		num := r.num[c]
		forEachSwitch(r.setOf(r.reach[0], r.to[c]), func(v int32) {
			if r.portDown[v] != fabric.NoPath {
				r.portDown[v] = fabric.ManagementPort
				return
			}
			r.portDown[v] = num
		})
	}
}

// placeUndecided chooses the ports that the chains leave open at switch u: those with the
// best detour, of these the least loaded.
func (r *rowFiller) placeUndecided(u int32, row []fabric.PortNum) {
	from, end := r.first[u], r.first[u+1]
	for _, d := range r.undecided {
		row[r.lid[d]] = fabric.NoPath
	}
	clear(r.count[:])
	for t, k := range r.climb {
		if k == none || int32(t) == u {
			continue
		}
		for _, lid := range r.lid[r.destStart[t]:r.ownStart[t]] {
			r.count[row[lid]]++
		}
	}
	r.load = r.load[:0]
	for c := from; c < end; c++ {
		r.load = append(r.load, float64(r.count[r.num[c]])*r.unit[c])
	}
	t, k := int32(-1), int32(0)
	for _, d := range r.undecided {
		if t < 0 || d >= r.destStart[t+1] {
			t = r.findOwner(d)
			k = int32(r.climb[t])
			r.listAllowed(u, t, k)
		}
		best, bestRating, least := int32(-1), 0, 0.0
		at := int(r.lid[d]) % len(r.allowed)
		for range r.allowed {
			c := r.allowed[at]
			if at++; at == len(r.allowed) {
				at = 0
			}
			load := r.load[c-from] + r.unit[c]
			rating := 0
			if k > 0 {
				rating = r.rateDetour(u, c, d, k)
			}
			if best < 0 || rating < bestRating || rating == bestRating && load < least {
				best, bestRating, least = c, rating, load
			}
		}
		row[r.lid[d]] = r.num[best]
		if d < r.ownStart[t] {
			r.load[best-from] = least
		}
	}
}

// listAllowed lists the channels by which paths by levels may leave u for t, which is k
// channels up and then some down.
func (r *rowFiller) listAllowed(u, t, k int32) {
	a, b := r.downs(u)
	onward := r.reach[0]
	if k > 0 {
		a, b = r.ups(u)
		onward = r.reach[k-1]
	}
	r.allowed = r.allowed[:0]
	for c := a; c < b; c++ {
		if hasSwitch(r.setOf(onward, r.to[c]), t) {
			r.allowed = append(r.allowed, c)
		}
	}
}

// rateDetour rates a path to destination d that begins with channel c up from u and has k
// channels to go up. It is 0 if the path has the chain's digit from the beginning and meets
// the chain where it turns, 1 if it only meets the chain there, 2 if it only has the digit,
// else 3.
func (r *rowFiller) rateDetour(u, c, d, k int32) int {
	l := r.level[u]
	v := r.to[c]
	rating := 3
	if next := r.switchAt[l+1][d]; next >= 0 && r.digit[next] == r.digit[v] {
		rating = 2
	}
	if turn := r.switchAt[l+k][d]; turn >= 0 && r.isBelow(v, turn) {
		rating -= 2
	}
	return rating
}
