package updown

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// network is the switch graph on which orders are judged. Parallel cables are one link
// with the sum of their rates.
type network struct {
	f     *fabric.Fabric
	dist  *fabric.HopMatrix
	hosts []float64 // by switch; all 1 if no switch has hosts
	first []int32   // by switch: where its part of to and rate begins
	to    []fabric.NodeID
	rate  []float64 // in units of the fastest cable
}

func newNetwork(f *fabric.Fabric) *network {
	n := f.NumSwitches()
	x := &network{f: f, dist: f.Distances(), hosts: make([]float64, n), first: make([]int32, 1, n+1)}
	unit := lft.LoadUnits(f)
	fastest := float64(slices.Min(append(unit, math.MaxInt64)))
	any := false
	for s := range fabric.NodeID(n) {
		x.hosts[s] = float64(len(f.HostsOn(s)))
		any = any || x.hosts[s] > 0
		ports, to := f.SwitchLinks(s)
		from := len(x.to)
		for i, v := range to {
			k := from + slices.Index(x.to[from:], v)
			if k < from {
				k = len(x.to)
				x.to, x.rate = append(x.to, v), append(x.rate, 0)
			}
			x.rate[k] += fastest / float64(unit[ports[i]])
		}
		x.first = append(x.first, int32(len(x.to)))
	}
	if !any {
		text.Fill(x.hosts, 1)
	}
	return x
}

// listTargets lists the switches with hosts. If they are more than most, it lists a
// random sample of most, always the same: a stride could pick one column of a mesh.
func (x *network) listTargets(most int) []fabric.NodeID {
	list := text.Indices[fabric.NodeID](x.hosts, func(h float64) bool { return h > 0 })
	if len(list) > most {
		rnd := rand.New(rand.NewPCG(uint64(len(list)), uint64(most)))
		rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		list = list[:most]
		slices.Sort(list)
	}
	return list
}

// legality counts what orders bar (make illegal), for 64 targets at a time. It never
// changes.
type legality struct {
	*network
	targets []fabric.NodeID
	words   int // how many 64-bit words a set of targets has
	// at has, by distance and switch, the targets at that distance; busy has those
	// of them to which a shortest path from some host passes the switch. Both are
	// sets.
	at, busy [][]uint64
}

// bars measures what an order bars.
type bars struct {
	longer float64 // routes between hosts without a legal shortest path
	// hops measures how many shortest next hops are lost, with more weight where
	// few are left: it is the sum over switches and routes of r (q^2 - 1), where r
	// is the rate of all shortest next hops, in fastest cables, and q is r divided
	// by the rate of those left.
	hops float64
	// squeeze is the greatest q.
	squeeze float64
}

func (b bars) none() bool { return b.longer == 0 && b.hops == 0 }

func (b bars) compare(c bars) int {
	return cmp.Or(cmp.Compare(b.longer, c.longer), cmp.Compare(b.hops, c.hops))
}

// anyBars is above the bars of any order.
var anyBars = bars{longer: math.Inf(1)}

// newLegality prepares counts for as many targets as legalityWork allows.
func (x *network) newLegality() *legality {
	n := len(x.hosts)
	diameter := 0
	for s := range fabric.NodeID(n) {
		for _, d := range x.dist.To(s) {
			if d != fabric.Unreachable {
				diameter = max(diameter, int(d))
			}
		}
	}
	most := legalityWork / max(1, (diameter+1)*(len(x.to)+n))
	l := &legality{network: x, targets: x.listTargets(64 * max(1, most))}
	l.words = (len(l.targets) + 63) / 64
	l.at, l.busy = make([][]uint64, diameter+1), make([][]uint64, diameter+1)
	for h := range l.at {
		l.at[h], l.busy[h] = make([]uint64, n*l.words), make([]uint64, n*l.words)
	}
	for i, t := range l.targets {
		for s, d := range x.dist.To(t) {
			if d != fabric.Unreachable {
				l.at[d][s*l.words+i/64] |= 1 << (i & 63)
			}
		}
	}
	for h := diameter; h >= 0; h-- {
		for s := range n {
			own := l.set(l.busy[h], s)
			if x.hosts[s] > 0 {
				copy(own, l.set(l.at[h], s))
				continue
			}
			if h == diameter {
				continue
			}
			for _, v := range x.to[x.first[s]:x.first[s+1]] {
				for w, word := range l.set(l.busy[h+1], int(v)) {
					own[w] |= word & l.at[h][s*l.words+w]
				}
			}
		}
	}
	return l
}

// set returns the bits of switch s in a set of targets for all switches.
func (l *legality) set(all []uint64, s int) []uint64 { return all[s*l.words : (s+1)*l.words] }

// counter counts what orders bar. It is the scratch memory of a worker.
type counter struct {
	*legality
	*Order
	bars
	// By switch, the targets whose distance by legal paths is above the current one,
	// equal to it, and one less; hereDown and nearDown have those of them to which the
	// switch only goes down.
	farther, here, near, hereDown, nearDown []uint64

	open  []uint64  // by link of the current switch: targets that may take it
	tally []float64 // by switch: the next hops lost at it and to it
	work  int       // links looked at so far
}

func (l *legality) newCounter() *counter {
	n := len(l.hosts)
	c := &counter{legality: l, tally: make([]float64, n)}
	for _, set := range []*[]uint64{&c.farther, &c.here, &c.near, &c.hereDown, &c.nearDown} {
		*set = make([]uint64, n*l.words)
	}
	return c
}

// count returns what an order bars. It stops once that is as much as worst. It takes
// O(links x diameter x targets / 64), and more if the order bars something.
func (c *counter) count(o *Order, worst bars) bars {
	c.Order, c.bars = o, bars{}
	clear(c.near)
	for i, t := range c.targets {
		c.near[int(t)*c.words+i/64] |= 1 << (i & 63)
	}
	copy(c.nearDown, c.near)
	for k, set := range c.near {
		c.farther[k] = ^set
	}
	clear(c.tally)
	for h := 1; h < len(c.at); h++ {
		c.findHere()
		for s := range fabric.NodeID(len(c.hosts)) {
			for w := range c.words {
				k := int(s)*c.words + w
				c.hereDown[k] = 0
				if c.here[k]|c.at[h][k] != 0 {
					c.countWord(h, s, w)
				}
			}
		}
		c.near, c.here = c.here, c.near
		c.nearDown, c.hereDown = c.hereDown, c.nearDown
		if c.bars.compare(worst) >= 0 {
			break
		}
	}
	return c.bars
}

// findHere sets here: the targets in farther that are in reach now. It removes them
// from farther.
func (c *counter) findHere() {
	for s := range fabric.NodeID(len(c.hosts)) {
		links := c.to[c.first[s]:c.first[s+1]]
		for w := range c.words {
			k := int(s)*c.words + w
			reached := uint64(0)
			if c.farther[k] != 0 {
				for _, v := range links {
					reached |= c.leads(s, v, w)
				}
			}
			c.here[k] = reached & c.farther[k]
			c.farther[k] &^= reached
		}
	}
}

// leads returns the targets, in word w, towards which s may take the link to v.
func (c *counter) leads(s, v fabric.NodeID, w int) uint64 {
	k := int(v)*c.words + w
	if c.Rank[v] < c.Rank[s] {
		return c.near[k]
	}
	return c.nearDown[k]
}

// countWord counts the lost shortest next hops of s, for the targets of word w of the
// bit sets that are at distance h from s.
func (c *counter) countWord(h int, s fabric.NodeID, w int) {
	k, rank := int(s)*c.words+w, c.Rank[s]
	links := c.to[c.first[s]:c.first[s+1]]
	c.work += len(links)
	c.open = c.open[:0]
	var up, down, needed uint64
	for _, v := range links {
		open := c.leads(s, v, w) & c.here[k]
		if c.Rank[v] < rank {
			up |= open
			needed |= c.farther[int(v)*c.words+w]
		} else {
			down |= open
		}
		c.open = append(c.open, open)
	}
	down &= needed | ^up
	c.hereDown[k] = down
	var lost uint64
	near := c.at[h-1]
	for i, v := range links {
		if c.Rank[v] < rank {
			c.open[i] &^= down
		}
		lost |= near[int(v)*c.words+w] &^ c.open[i]
	}
	for lost &= c.busy[h][k]; lost != 0; lost &= lost - 1 {
		c.countTarget(s, w, bits.TrailingZeros64(lost), near)
	}
}

// countTarget counts the lost shortest next hops of s for one target.
func (c *counter) countTarget(s fabric.NodeID, w, bit int, near []uint64) {
	from := c.first[s]
	all, left := 0.0, 0.0
	c.work += len(c.open)
	for i, v := range c.to[from:c.first[s+1]] {
		if near[int(v)*c.words+w]>>bit&1 == 0 {
			continue
		}
		r := c.rate[int(from)+i]
		if all += r; c.open[i]>>bit&1 != 0 {
			left += r
		}
	}
	hosts := c.hosts[c.targets[w*64+bit]]
	if left == 0 {
		if c.hosts[s] == 0 {
			return // it counts only at switches with hosts
		}
		c.longer += float64(c.hosts[s] * hosts)
		c.squeeze = math.Inf(1)
		left = min(all, 1)
	}
	squeezed := all / left
	c.squeeze = max(c.squeeze, squeezed)
	much := float64(hosts * all * float64(float64(squeezed*squeezed)-1))
	c.hops += much
	c.tally[s] += much
	for i, v := range c.to[from:c.first[s+1]] {
		if near[int(v)*c.words+w]>>bit&1 != 0 && c.open[i]>>bit&1 == 0 {
			c.tally[v] += much
		}
	}
}

// countWork returns how many words one count looks at.
func (l *legality) countWork() int { return max(1, len(l.at)*l.words*(len(l.to)+len(l.hosts))) }
