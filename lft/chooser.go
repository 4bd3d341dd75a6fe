package lft

import (
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// chooser chooses the paths to one LID after the other.
type chooser struct {
	*balancer
	load     []uint64 // by PortID of switches: the part of loads for the current LID
	cost     []uint64 // by the destination's index of a switch: of its path to the destination
	arriving []int32  // by the same: routes that come to the switch or begin there
	choice   []uint8  // by the same: the next hop of the current LID
	beyond   []uint64 // by index in the destination's next: the cost there, to find changes
	sent     []int32  // switches of inner that send routes to the current LID
	current  bool     // cost, choice and sent are of the last LID, and only its paths changed loads since

	penalties []penalty // for the paths to earlier LIDs of the port
}

func (b *balancer) newChooser() *chooser {
	n := len(b.hosts)
	return &chooser{
		balancer: b, load: b.load, cost: make([]uint64, n+1),
		arriving: make([]int32, n+1), sent: make([]int32, 0, n), choice: make([]uint8, n),
	}
}

// placeJob chooses paths to all LIDs of a job.
func (c *chooser) placeJob(d *destination) {
	c.findLeast(d)
	for from, end := range c.ports(d.job.lids) {
		c.placePort(d, from, end)
	}
}

// replaceJob takes off the paths to the LIDs of a job and chooses new ones, port by port.
func (c *chooser) replaceJob(d *destination) {
	c.findLeast(d)
	for from, end := range c.ports(d.job.lids) {
		for _, lid := range d.job.lids[from:end] {
			c.selectLoad(lid)
			c.readEntries(d, c.tables, lid)
			c.addRoutes(d, -1)
			for i, n := range c.arriving[:len(d.sources)] {
				if n > 0 {
					d.at[i].least = min(d.at[i].least, c.load[d.channel(i, c.choice[i])])
				}
			}
		}
		c.placePort(d, from, end)
	}
}

// ports yields the ranges of a list of LIDs that belong to the same port.
func (b *balancer) ports(lids []fabric.LID) func(yield func(from, end int) bool) {
	return func(yield func(from, end int) bool) {
		for from := 0; from < len(lids); {
			port, end := b.fab.LIDPort(lids[from]), from+1
			for end < len(lids) && b.fab.LIDPort(lids[end]) == port {
				end++
			}
			if !yield(from, end) {
				return
			}
			from = end
		}
	}
}

// placePort places the LIDs of one port, from the from-th to the end-th of the job.
// Paths to a LID avoid the switches of the paths to LIDs before it if possible, else
// their channels. The k-th LIDs of all ports are balanced among themselves, since
// programs may use only the first LIDs.
func (c *chooser) placePort(d *destination, from, end int) {
	first := d.job.lids[from]
	turn := uint32(first) >> c.fab.LMC(c.fab.LIDPort(first)) // goes up by 1 from port to port
	c.penalties = c.penalties[:0]
	for k := from; k < end; k++ {
		c.selectLoad(d.job.lids[k])
		for _, x := range c.penalties {
			c.load[x.port] += x.load
			c.current = false
		}
		c.choosePaths(d, turn+uint32(k-from))
		for _, x := range c.penalties {
			c.load[x.port] -= x.load
		}
		c.keepPaths(d)
		if k+1 < end {
			c.penalize(d)
		}
	}
}

// selectLoad sets load to the part of loads that a LID belongs to.
func (c *chooser) selectLoad(lid fabric.LID) {
	if len(c.loads) > 1 {
		c.load = c.loads[int(lid-c.fab.LID(c.fab.LIDPort(lid)))%len(c.loads)]
		c.current = false
	}
}

const (
	// A path has at most 255 channels. So no load comes near a penalty, and no sum of penalties
	// for channels near one for switches.
	channelPenalty = 1 << 40
	switchPenalty  = 1 << 50
)

// penalty is an extra load that a channel gets for a while.
type penalty struct {
	port fabric.PortID
	load uint64
}

// penalize makes the paths to the current LID costly for the next LIDs of its port.
func (c *chooser) penalize(d *destination) {
	for i, n := range d.sources {
		if c.arriving[i] == 0 {
			continue
		}
		c.penalties = append(c.penalties, penalty{d.channel(i, c.choice[i]), channelPenalty})
		if c.arriving[i] > n {
			for k := range d.hops.Ports(i) {
				c.penalties = append(c.penalties, penalty{d.channel(i, uint8(k)), switchPenalty})
			}
		}
	}
}

// findLeast finds the least load of the next hops of each switch. It remains a lower bound as
// long as no routes are taken off.
func (c *chooser) findLeast(d *destination) {
	c.beyond, c.current = slices.Grow(c.beyond[:0], len(d.next))[:len(d.next)], false
	if len(c.loads) > 1 { // least is not known for each part of load
		return
	}
	for i := range d.at {
		at := &d.at[i]
		least, load := uint64(math.MaxUint64), c.load[at.base:]
		for _, num := range d.hops.Ports(i) {
			least = min(least, load[num])
		}
		at.least = least
	}
}

// choosePaths chooses the next hops for one LID and adds its routes. Each switch takes the next
// hop with the least sum of loads on the path; among equal ones the first, counted from turn.
//
// On regular fabrics little is to be done. A switch keeps its choice for the LID before
// if no load, cost beyond or turn has changed. A search ends at a next hop with both the
// least load and the least cost beyond.
func (c *chooser) choosePaths(d *destination, turn uint32) {
	copy(c.arriving, d.sources)
	c.cost[len(d.sources)] = 0
	sent := c.sent // for the LID before; visited switches are cut off
	for i := len(d.groups) - 1; i >= 0; i-- {
		g := &d.groups[i]
		next, beyond := d.next[g.next:][:g.hops], c.beyond[g.next:][:g.hops]
		changed, least := c.readBeyond(next, beyond)
		first := turn
		if d.sources[g.first] == 0 {
			first = d.job.turn
		}
		first %= uint32(g.hops)
		if !d.passed[g.first] {
			c.chooseOuter(d, g, int(first), least)
			continue
		}
		from := len(sent)
		for from > 0 && sent[from-1] >= g.first {
			from--
		}
		if changed || !c.current || d.sources[g.first] > 0 {
			for k := g.first; k < g.end; k++ {
				c.chooseInner(d, k, beyond, int(first), least)
			}
		} else {
			for _, k := range sent[from:] {
				c.chooseInner(d, k, beyond, int(first), least)
			}
		}
		sent = sent[:from]
	}
	c.sent = c.sent[:0]
	for _, i := range d.inner {
		if n := c.arriving[i]; n > 0 {
			c.send(d, int(i), n, 1)
			c.sent = append(c.sent, i)
		}
	}
	c.current = true
}

// readBeyond sets beyond to the costs of the switches in next. It returns the least of them,
// and true if any has changed.
func (c *chooser) readBeyond(next []int32, beyond []uint64) (changed bool, least uint64) {
	least = math.MaxUint64
	var differ uint64
	for k, v := range next {
		cost := c.cost[v]
		least = min(least, cost)
		differ |= beyond[k] ^ cost
		beyond[k] = cost
	}
	return differ != 0, least
}

// chooseOuter chooses for the switches of a group that no next hop leads to. It adds their
// routes.
func (c *chooser) chooseOuter(d *destination, g *group, first int, leastBeyond uint64) {
	load, ports, beyond, next := c.load, d.hops.ports, c.beyond[g.next:][:g.hops], d.next[g.next:][:g.hops]
	at, sources, choice := d.at[g.first:g.end], d.sources[g.first:g.end], c.choice[g.first:g.end]
	beyondFirst, toFirst := beyond[first], int32(0)
	for i := range at {
		at, n, k := &at[i], sources[i], first
		port := at.base + fabric.PortID(ports[int(at.ports)+k])
		if goal := at.least + leastBeyond; load[port]+beyondFirst > goal {
			k, _ = leastNextHop(load[at.base:], beyond, ports[at.ports:], k, goal)
			port = at.base + fabric.PortID(ports[int(at.ports)+k])
			c.arriving[next[k]] += n
		} else {
			toFirst += n
		}
		choice[i] = uint8(k)
		unit := at.unit
		if unit == 0 {
			unit = c.unit[port]
		}
		load[port] += uint64(n) * unit
	}
	c.arriving[next[first]] += toFirst
}

// chooseInner chooses for a switch that next hops lead to. It does not add its routes.
func (c *chooser) chooseInner(d *destination, i int32, beyond []uint64, first int, leastBeyond uint64) {
	at := &d.at[i]
	k, cost := leastNextHop(c.load[at.base:], beyond, d.hops.ports[at.ports:], first, at.least+leastBeyond)
	c.choice[i], c.cost[i] = uint8(k), cost
}

// leastNextHop returns the index of the port with the least sum of loads on the path, and the
// sum; among equal ones the first, counted from first. It stops at a sum of goal: none is less.
func leastNextHop(load, beyond []uint64, ports []fabric.PortNum, first int, goal uint64) (best int, lowest uint64) {
	lowest = math.MaxUint64
	at := first
	for range beyond {
		if cost := load[ports[at]] + beyond[at]; cost < lowest {
			best, lowest = at, cost
			if cost == goal {
				break
			}
		}
		if at++; at == len(beyond) {
			at = 0
		}
	}
	return best, lowest
}

// send adds the load of n routes of the i-th switch, or takes it off if sign is -1. It adds the
// routes to arriving at the next switch.
func (c *chooser) send(d *destination, i int, n int32, sign int64) {
	k := c.choice[i]
	port := d.channel(i, k)
	unit := d.at[i].unit
	if unit == 0 {
		unit = c.unit[port]
	}
	c.load[port] += uint64(sign*int64(n)) * unit
	c.arriving[d.next[d.nextAt[i]+int32(k)]] += n
}

// keepPaths stores the chosen paths for writeRows.
func (c *chooser) keepPaths(d *destination) {
	d.kept = append(d.kept, c.choice[:len(d.hops.Switches)]...)
}

// addRoutes adds the load of the chosen paths, or takes it off if sign is -1.
func (c *chooser) addRoutes(d *destination, sign int64) {
	copy(c.arriving, d.sources)
	for i := range d.sources {
		if n := c.arriving[i]; n > 0 {
			c.send(d, i, n, sign)
		}
	}
	c.current = false
}

// readEntries sets choice to the entries for a LID: noChoice for an entry that is no next hop;
// 0, the only next hop, if there is just one. It returns true if all switches have a choice.
func (c *chooser) readEntries(d *destination, t *Tables, lid fabric.LID) bool {
	all := true
	for i, s := range d.hops.Switches {
		if c.choice[i] = 0; len(d.hops.Ports(i)) > 1 {
			c.choice[i] = d.hops.find(i, t.Row(s)[lid])
		}
		all = all && c.choice[i] != noChoice
	}
	return all
}

// completePaths chooses next hops for the switches that have none: the one with the least sum
// of loads on the path; among equal ones the first, counted from turn.
func (c *chooser) completePaths(d *destination, turn uint32) {
	c.cost[len(d.sources)] = 0
	c.beyond = slices.Grow(c.beyond[:0], len(d.next))[:len(d.next)]
	for i := len(d.sources) - 1; i >= 0; i-- {
		load, ports, next := c.load[d.at[i].base:], d.hops.Ports(i), d.next[d.nextAt[i]:]
		if c.choice[i] == noChoice {
			beyond := c.beyond[:len(ports)]
			c.readBeyond(next[:len(ports)], beyond)
			k, _ := leastNextHop(load, beyond, ports, int(turn%uint32(len(ports))), 0)
			c.choice[i] = uint8(k)
		}
		k := c.choice[i]
		c.cost[i] = load[ports[k]] + c.cost[next[k]]
	}
}
