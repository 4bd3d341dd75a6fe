package lft

import "github.com/ibweave/ibweave/fabric"

// destination holds the next hops to the switch of a job, and those chosen for its LIDs. In it
// a switch is given by its index in hops.Switches, the destination by the index after the last,
// and a next hop by its index among the ports of its switch.
type destination struct {
	list    ListNextHops
	job     *balancerJob
	hops    NextHops
	index   []int32 // by NodeID: the index of a switch
	at      []place // by switch
	sources []int32 // by switch: how many routes begin there
	// next lists the switches that next hops lead to, those of a group together; nextAt is by
	// switch where its part of next begins.
	next   []int32
	nextAt []int32
	groups []group
	passed []bool  // by switch and destination: some next hop leads there
	inner  []int32 // the switches with passed set
	kept   []uint8 // by LID of the job, then by switch: the chosen next hop
}

// place holds the data for a choice at a switch: in one struct, since each LID reads all of it.
type place struct {
	base  fabric.PortID
	ports int32  // index in hops.ports of its first port
	unit  uint64 // load of a route on each of its channels, 0 if they differ
	least uint64 // lower bound of the loads of its next hops
}

// group is consecutive switches whose k-th next hops lead to the same switch, for each k. All
// are passed or none, and all have sources or none.
type group struct {
	first, end int32 // range of switches
	next, hops int32 // where its part of next begins, and its length
}

// noChoice stands for no next hop: a switch has fewer ports.
const noChoice = 255

func (b *balancer) newDestination() *destination {
	n := b.fab.NumSwitches()
	return &destination{list: b.newList(), index: make([]int32, n), passed: make([]bool, n+1)}
}

// set lists the next hops for a job. If the job has no LIDs with load, it fills in only hops.
func (d *destination) set(b *balancer, j *balancerJob) error {
	d.job = j
	d.at, d.sources, d.kept = d.at[:0], d.sources[:0], d.kept[:0]
	h := &d.hops
	h.Reset()
	if err := d.list(j.t, h); err != nil || len(j.lids) == 0 {
		return err
	}
	for i, s := range h.Switches {
		d.index[s] = int32(i)
		d.at = append(d.at, place{base: b.fab.PortBase(s), ports: h.parts[i].from, unit: b.switchUnit[s]})
		d.sources = append(d.sources, int32(b.hosts[s]))
	}
	d.index[j.t] = int32(len(h.Switches))
	d.findNext(b)
	return nil
}

// findNext sets next, nextAt, groups, passed and inner. A switch comes after all that lead to it.
func (d *destination) findNext(b *balancer) {
	d.next, d.nextAt, d.groups, d.inner = d.next[:0], d.nextAt[:0], d.groups[:0], d.inner[:0]
	clear(d.passed)
	for i := range d.hops.Switches {
		if d.passed[i] {
			d.inner = append(d.inner, int32(i))
		}
		if i == 0 || d.passed[i-1] != d.passed[i] || (d.sources[i-1] == 0) != (d.sources[i] == 0) || !d.hops.isAlike(i) && !d.areAlike(b, i-1, i) {
			at := len(d.next)
			to := b.to[d.at[i].base:]
			for _, num := range d.hops.Ports(i) {
				v := d.index[to[num]]
				d.next = append(d.next, v)
				d.passed[v] = true
			}
			d.groups = append(d.groups, group{int32(i), int32(i), int32(at), int32(len(d.next) - at)})
		}
		g := &d.groups[len(d.groups)-1]
		g.end++
		d.nextAt = append(d.nextAt, g.next)
	}
}

// areAlike returns true if the next hops of two switches lead to the same switches, one by one.
func (d *destination) areAlike(b *balancer, i, j int) bool {
	ports, to := d.hops.Ports(i), b.to[d.at[i].base:]
	others, toOthers := d.hops.Ports(j), b.to[d.at[j].base:]
	if len(ports) != len(others) {
		return false
	}
	for k, num := range ports {
		if to[num] != toOthers[others[k]] {
			return false
		}
	}
	return true
}

// channel returns the port of the k-th next hop of the i-th switch.
func (d *destination) channel(i int, k uint8) fabric.PortID {
	return d.at[i].base + fabric.PortID(d.hops.ports[int(d.at[i].ports)+int(k)])
}

// writeRows writes the entries of all switches for the LIDs of the job.
func (d *destination) writeRows(b *balancer) {
	lids, n := d.job.lids, len(d.hops.Switches)
	for i, s := range d.hops.Switches {
		row, ports, at := b.tables.Row(s), d.hops.Ports(i), i
		for _, lid := range lids {
			row[lid] = ports[d.kept[at]]
			at += n
		}
		if len(lids) > 0 {
			continue // see routeAlike
		}
		for k, lid := range d.job.others {
			if row[lid] == fabric.NoPath {
				row[lid] = ports[(int(lid)+k)%len(ports)]
			}
		}
	}
}
