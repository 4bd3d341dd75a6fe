package lft

import (
	"context"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
)

// Balance makes the tables of an engine: for each LID one of the next hops of each switch.
// newList is called once for each goroutine.
//
// The load of a channel is the number of routes on it, from each host to each LID of
// another one, times the ratio of the fastest rate to its own. The tables have, in this order:
//
//   - a small greatest load;
//   - small loads elsewhere;
//   - few LIDs on a channel for the routes on it. A host receives one message at a time, so
//     routes to one LID do not contend where they share channels. Paths to a LID therefore
//     meet early, as paths by destination do (d-mod-k in fat trees; SSSP: Hoefler, Schneider
//     and Lumsdaine, Optimized Routing for Large-Scale InfiniBand Networks, HOTI 2009);
//   - few near LIDs on a channel, which contend in shifts.
//
// One LID after the other takes its paths: each switch, the nearest to the destination
// first, takes the next hop with the least sum of loads on the path, equal ones in turn. On
// a full fat tree that is d-mod-k. Where some load is then above its lower bound, LIDs
// take their paths again, and routes leave the busiest channels, see rebalance; at last routes
// to different LIDs move apart, see separate.
//
// LIDs of switches and of aggregation nodes carry no load. They take the paths of the LIDs
// of hosts on the same switch, those in the same block of the tables.
//
// It takes O(LIDs x channels) at most, and on regular fabrics little more than O(LIDs x
// switches). The result is the same on any number of CPUs. Errors are those of ctx and of
// listing next hops.
func Balance(ctx context.Context, f *fabric.Fabric, newList func() ListNextHops) (*Tables, error) {
	return newBalancer(f, newList).makeTables(ctx, false)
}

// makeTables is Balance; with loadsOnly routes to different LIDs stay together where loads are small.
func (b *balancer) makeTables(ctx context.Context, loadsOnly bool) (*Tables, error) {
	if err := b.balance(ctx); err != nil {
		return nil, err
	}
	b.even = b.even || loadsOnly
	if err := b.improve(ctx); err != nil {
		return nil, err
	}
	b.routeAlike()
	return b.tables, nil
}

// improve improves balanced routes without a greater greatest load.
func (b *balancer) improve(ctx context.Context) error {
	if !b.even {
		if err := b.separate(ctx); err != nil {
			return err
		}
	}
	return b.useIdle(ctx)
}

func (b *balancer) balance(ctx context.Context) error {
	if err := b.placeRoutes(ctx, b.jobs, (*chooser).placeJob); err != nil {
		return err
	}
	bound := BoundLoad(b.fab)
	b.even = b.greatestLoad() <= bound
	for range b.countAgain() {
		if b.greatestLoad() <= bound {
			break
		}
		if err := b.placeAgain(ctx); err != nil {
			return err
		}
	}
	return b.rebalance(ctx)
}

const (
	// capacityUnits is the load that a route puts on the fastest link; on one
	// with a third of its capacity it is three times that.
	capacityUnits = 64
	// maxJobLIDs bounds the scratch memory of a job.
	maxJobLIDs = 64
	// batchJobs is how many jobs are listed or written at a time.
	batchJobs = 8
	// LIDs take their paths again at most maxAgain times, and as often as visits no more
	// than againWork channels.
	maxAgain  = 2
	againWork = 1 << 28
)

// balancer balances the routes of one fabric.
type balancer struct {
	fab     *fabric.Fabric
	newList func() ListNextHops
	tables  *Tables
	hosts   []uint32 // by switch: hosts that send load
	jobs    []balancerJob
	to      []fabric.NodeID  // by PortID of switches: the switch that a channel leads to
	num     []fabric.PortNum // by PortID of switches
	unit    []uint64         // by PortID of switches: what a route adds to the load
	load    []uint64         // by PortID of switches
	// loads are the parts of load by the number of a LID among those of its port; load alone
	// where all have one LID.
	loads [][]uint64
	even  bool // routes to different LIDs need not move apart: the first paths have small loads
}

// balancerJob is a destination switch and some of its LIDs.
type balancerJob struct {
	t      fabric.NodeID
	lids   []fabric.LID // of hosts
	others []fabric.LID // without load
	turn   uint32       // how many jobs come before
}

// switchPorts counts the PortIDs of switches, which come before all others.
func switchPorts(f *fabric.Fabric) int { return int(f.PortBase(fabric.NodeID(f.NumSwitches()))) }

// LoadUnits is what a route adds to the load of each channel between switches, by PortID of
// switches: 64 on the fastest, and more on slower ones, by the ratio of the rates. It is 64
// where a rate is not known, and for ports that lead to no other switch.
func LoadUnits(f *fabric.Fabric) []uint64 {
	fastest := 0
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		for _, p := range ports {
			fastest = max(fastest, f.Link(p).Mbps())
		}
	}
	unit := slices.Repeat([]uint64{capacityUnits}, switchPorts(f))
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		for _, p := range ports {
			if mbps := f.Link(p).Mbps(); mbps > 0 {
				unit[p] = uint64((capacityUnits*fastest + mbps/2) / mbps)
			}
		}
	}
	return unit
}

func newBalancer(f *fabric.Fabric, newList func() ListNextHops) *balancer {
	n, channels := f.NumSwitches(), switchPorts(f)
	b := &balancer{
		fab:     f,
		newList: newList,
		tables:  NewTables(n, f.MaxLID()),
		hosts:   make([]uint32, n),
		to:      make([]fabric.NodeID, channels),
		num:     make([]fabric.PortNum, channels),
		unit:    LoadUnits(f),
		load:    make([]uint64, channels),
	}
	b.loads = [][]uint64{b.load}
	for s := range fabric.NodeID(n) {
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			b.to[p], b.num[p] = to[i], f.Num(p)
		}
		b.hosts[s] = uint32(len(f.HostsOn(s)))
		b.addJobs(s)
	}
	b.splitLoads()
	return b
}

// splitLoads prepares loads for ports with several LIDs.
func (b *balancer) splitLoads() {
	lmc := uint8(0)
	for i := range b.jobs {
		for _, lid := range b.jobs[i].lids {
			lmc = max(lmc, b.fab.LMC(b.fab.LIDPort(lid)))
		}
	}
	if lmc == 0 {
		return
	}
	b.loads = make([][]uint64, min(1<<lmc, maxJobLIDs))
	for k := range b.loads {
		b.loads[k] = make([]uint64, len(b.load))
	}
}

// sumLoads sets load to the sum of its parts.
func (b *balancer) sumLoads() {
	if len(b.loads) == 1 {
		return
	}
	clear(b.load)
	for _, part := range b.loads {
		for c, n := range part {
			b.load[c] += n
		}
	}
}

// greatestLoad is the load of the busiest channel.
func (b *balancer) greatestLoad() (most uint64) {
	for _, n := range b.load {
		most = max(most, n)
	}
	return most
}

// addJobs lists the LIDs that t delivers, and fills in t's own row for them.
func (b *balancer) addJobs(t fabric.NodeID) {
	f := b.fab
	row := b.tables.Row(t)
	add := func(lids []fabric.LID, p fabric.PortID, out fabric.PortNum) []fabric.LID {
		for lid := range f.LIDs(p) {
			lids = append(lids, lid)
			row[lid] = out
		}
		return lids
	}
	others := add(nil, f.PortBase(t), fabric.ManagementPort)
	for _, p := range f.EndPortsOn(t) {
		if !f.PortCounts(p, fabric.ForLoad) {
			others = add(others, p, f.Num(f.Peer(p)))
		}
	}
	var lids []fabric.LID
	for _, p := range f.HostsOn(t) {
		lids = add(lids, p, f.Num(f.Peer(p)))
	}
	for len(lids)+len(others) > 0 {
		k := min(len(lids), maxJobLIDs)
		b.jobs = append(b.jobs, balancerJob{t, lids[:k], others, uint32(len(b.jobs))})
		lids, others = lids[k:], nil
	}
}

// destination is the next hops to the switch of a job, and the chosen ones of its LIDs.
type destination struct {
	job   *balancerJob
	hops  NextHops
	index []int32   // by switch: its index in hops.Switches; that of the destination is their number
	next  []int32   // by index in hops.ports: the index of the switch that the port leads to
	like  []bool    // by index in hops.Switches: its ports lead where those of the one after it lead
	kept  [][]int32 // by LID of the job, then by index in hops.Switches: its next hop, by index in hops.ports
}

func (b *balancer) newDestination() *destination {
	n := b.fab.NumSwitches()
	return &destination{index: make([]int32, n), like: make([]bool, n), kept: make([][]int32, maxJobLIDs)}
}

// set lists the next hops for a job.
func (d *destination) set(b *balancer, list ListNextHops, j *balancerJob) error {
	d.job = j
	h := &d.hops
	h.Reset()
	if err := list(j.t, h); err != nil {
		return err
	}
	n := len(h.Switches)
	for i, s := range h.Switches {
		d.index[s] = int32(i)
	}
	d.index[j.t] = int32(n)
	d.next = d.next[:0]
	for _, c := range h.ports {
		d.next = append(d.next, d.index[b.to[c]])
	}
	for i := range n {
		d.like[i] = i+1 < n && slices.Equal(d.nextOf(i), d.nextOf(i+1))
	}
	return nil
}

// nextOf lists the indices of the switches that the ports of the i-th switch lead to.
func (d *destination) nextOf(i int) []int32 { return d.next[d.hops.start[i]:d.hops.start[i+1]] }

// writeRows writes the rows of all switches for the LIDs of the job.
func (d *destination) writeRows(b *balancer) {
	for i, s := range d.hops.Switches {
		row, base, ports := b.tables.Row(s), b.fab.PortBase(s), d.hops.Ports(i)
		for k, lid := range d.job.lids {
			row[lid] = fabric.PortNum(d.hops.ports[d.kept[k][i]] - base)
		}
		if len(d.job.lids) > 0 {
			continue // see routeAlike
		}
		for k, lid := range d.job.others {
			if row[lid] == fabric.NoPath {
				row[lid] = b.num[ports[(int(lid)+k)%len(ports)]]
			}
		}
	}
}

// routeAlike gives LIDs without load the paths of those with load at the same switch. It is one of
// those in the same block of the tables, so that both change together. Where there is none,
// each switch takes another one, so that few entries change when a path is gone.
func (b *balancer) routeAlike() {
	for i := range b.jobs {
		j := &b.jobs[i]
		for k, lid := range j.others {
			near := slices.DeleteFunc(slices.Clone(j.lids), func(like fabric.LID) bool { return like/BlockSize != lid/BlockSize })
			for s := range b.hosts {
				row, at := b.tables.Row(fabric.NodeID(s)), int(lid)+k
				switch {
				case row[lid] != fabric.NoPath || len(j.lids) == 0:
				case len(near) > 0:
					row[lid] = row[near[at%len(near)]]
				default:
					row[lid] = row[j.lids[(at+s)%len(j.lids)]]
				}
			}
		}
	}
}

// placeRoutes places the LIDs of jobs, one job after the other. Meanwhile it lists the next hops
// of the jobs ahead, and writes the rows of those behind.
func (b *balancer) placeRoutes(ctx context.Context, jobs []balancerJob, place func(c *chooser, d *destination)) error {
	batches := slices.Collect(slices.Chunk(jobs, batchJobs))
	var sets [3][batchJobs]*destination
	for i := range sets {
		for k := range sets[i] {
			sets[i][k] = b.newDestination()
		}
	}
	nextHops := b.newList()
	list := func(i int) error {
		if i == len(batches) {
			return nil
		}
		for k := range batches[i] {
			if err := sets[i%3][k].set(b, nextHops, &batches[i][k]); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	write := func(i int) {
		if i < 0 {
			return
		}
		for k := range batches[i] {
			sets[i%3][k].writeRows(b)
		}
	}
	c := b.newChooser()
	if err := list(0); err != nil {
		return err
	}
	for i := range batches {
		wait := par.Go(func() error {
			write(i - 1)
			return list(i + 1)
		})
		for k := range batches[i] {
			place(c, sets[i%3][k])
		}
		if err := wait(); err != nil {
			return err
		}
	}
	write(len(batches) - 1)
	b.sumLoads()
	return nil
}

// chooser chooses paths, LID after LID.
type chooser struct {
	*balancer
	least    []uint64 // by the same: no next hop has a smaller load
	cost     []uint64 // by index of the destination's switches: of the path on
	arriving []uint64 // by the same: routes that come there or begin there
	choice   []int32  // by the same: the next hop of the current LID, by index in hops.ports

	load      []uint64  // by PortID of switches: of the LIDs at hand
	penalties []penalty // for the LIDs before of the current port

	beyond      [256]uint64 // by next hop of the current switch: the cost beyond
	leastBeyond uint64      // the least of them
}

func (b *balancer) newChooser() *chooser {
	n := len(b.hosts)
	return &chooser{balancer: b, load: b.load, least: make([]uint64, n), cost: make([]uint64, n+1), arriving: make([]uint64, n+1), choice: make([]int32, n)}
}

// placeJob places the LIDs of a job.
func (c *chooser) placeJob(d *destination) {
	c.findLeast(d)
	for from, end := range c.ports(d.job.lids) {
		c.placePort(d, from, end)
	}
}

// ports yields the parts of a list of LIDs that belong to one port each.
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

// placePort places the LIDs of one port, some of the job. Each takes other switches than
// those before it, as far as there are any, else other channels. The k-th LIDs of all ports
// are balanced among themselves, since programs may use the first ones only.
func (c *chooser) placePort(d *destination, from, end int) {
	first := d.job.lids[from]
	turn := uint32(first) >> c.fab.LMC(c.fab.LIDPort(first)) // counts ports
	c.penalties = c.penalties[:0]
	for k := from; k < end; k++ {
		c.selectLoad(d.job.lids[k])
		for _, x := range c.penalties {
			c.load[x.port] += x.load
		}
		c.choosePaths(d, turn+uint32(k-from))
		for _, x := range c.penalties {
			c.load[x.port] -= x.load
		}
		c.addRoutes(d, 1)
		c.keepPaths(d, k)
		if k+1 < end {
			c.penalize(d)
		}
	}
}

// selectLoad sets load to the part that a LID belongs to.
func (c *chooser) selectLoad(lid fabric.LID) {
	if len(c.loads) > 1 {
		c.load = c.loads[int(lid-c.fab.LID(c.fab.LIDPort(lid)))%len(c.loads)]
	}
}

const (
	// A path has at most 255 channels, so that no load comes near a penalty, nor a sum of
	// penalties for channels near one for switches.
	channelPenalty = 1 << 40
	switchPenalty  = 1 << 50
)

// penalty is what a channel seems to have more of load.
type penalty struct {
	port fabric.PortID
	load uint64
}

// penalize makes the paths of the current LID costly for the next LIDs of its port.
func (c *chooser) penalize(d *destination) {
	for i, s := range d.hops.Switches {
		if c.arriving[i] == 0 {
			continue
		}
		c.penalties = append(c.penalties, penalty{d.hops.ports[c.choice[i]], channelPenalty})
		if c.arriving[i] > uint64(c.hosts[s]) {
			for _, port := range d.hops.Ports(i) {
				c.penalties = append(c.penalties, penalty{port, switchPenalty})
			}
		}
	}
}

// findLeast finds the least load of the next hops of each switch. Later loads are no smaller,
// as long as no routes are taken off.
func (c *chooser) findLeast(d *destination) {
	if len(c.loads) > 1 { // not known for each part
		clear(c.least)
		return
	}
	for i := range d.hops.Switches {
		least := uint64(math.MaxUint64)
		for _, port := range d.hops.Ports(i) {
			least = min(least, c.load[port])
		}
		c.least[i] = least
	}
}

// choosePaths chooses the next hops of one LID: at each switch the one with the least sum of
// loads on the path, of equal ones the first from turn on.
//
// It looks no further when it finds a next hop with the least load and the least cost beyond: on a
// regular fabric that is one of the first.
func (c *chooser) choosePaths(d *destination, turn uint32) {
	h := &d.hops
	c.cost[len(h.Switches)] = 0
	for i := len(h.Switches) - 1; i >= 0; i-- {
		from, n := h.start[i], h.start[i+1]-h.start[i]
		if n == 1 {
			c.choice[i] = from
			c.cost[i] = c.load[h.ports[from]] + c.cost[d.next[from]]
			continue
		}
		if !d.like[i] {
			c.readBeyond(d, i)
		}
		first := turn
		if c.hosts[h.Switches[i]] == 0 {
			first = d.job.turn
		}
		c.choice[i], c.cost[i] = c.leastNextHop(h.ports[from:from+n], first, c.least[i])
		c.choice[i] += from
	}
}

// readBeyond sets beyond to the costs beyond the next hops of the i-th switch.
func (c *chooser) readBeyond(d *destination, i int) {
	next := d.nextOf(i)
	c.leastBeyond = math.MaxUint64
	for k, v := range next {
		c.beyond[k] = c.cost[v]
		c.leastBeyond = min(c.leastBeyond, c.cost[v])
	}
}

// leastNextHop finds the one of ports with the least sum of loads on the path, of equal ones
// the first from turn on, by index. No port has a load of less than least. The costs beyond are
// those of readBeyond.
func (c *chooser) leastNextHop(ports []fabric.PortID, turn uint32, least uint64) (best int32, lowest uint64) {
	goal := least + c.leastBeyond
	beyond := c.beyond[:len(ports)]
	lowest = math.MaxUint64
	at := int(turn % uint32(len(ports)))
	for range ports {
		if cost := c.load[ports[at]] + beyond[at]; cost < lowest {
			best, lowest = int32(at), cost
			if cost == goal {
				break
			}
		}
		if at++; at == len(ports) {
			at = 0
		}
	}
	return best, lowest
}

// placeAgain places all LIDs again, each with the loads of all others.
func (b *balancer) placeAgain(ctx context.Context) error {
	d, c, list := b.newDestination(), b.newChooser(), b.newList()
	for i := range b.jobs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(b.jobs[i].lids) == 0 {
			continue
		}
		if err := d.set(b, list, &b.jobs[i]); err != nil {
			return err
		}
		c.replaceJob(d)
		d.writeRows(b)
	}
	b.sumLoads()
	return nil
}

// countAgain is how often LIDs take their paths again.
func (b *balancer) countAgain() int {
	return min(againWork/b.countVisits(), maxAgain)
}

// countVisits is about how many channels are visited when all LIDs take their paths once.
func (b *balancer) countVisits() int {
	visits := 1
	for i := range b.jobs {
		visits += len(b.jobs[i].lids) * len(b.load) / 2
	}
	return visits
}

// replaceJob places the LIDs of a job again, all LIDs of a port at a time.
func (c *chooser) replaceJob(d *destination) {
	c.findLeast(d)
	for from, end := range c.ports(d.job.lids) {
		for _, lid := range d.job.lids[from:end] {
			c.selectLoad(lid)
			c.readEntries(d, c.tables, lid)
			c.addRoutes(d, -1)
			for i, at := range c.choice[:len(d.hops.Switches)] {
				c.least[i] = min(c.least[i], c.load[d.hops.ports[at]])
			}
		}
		c.placePort(d, from, end)
	}
}

// keepPaths keeps the chosen paths for the k-th LID of the job.
func (c *chooser) keepPaths(d *destination, k int) {
	d.kept[k] = append(d.kept[k][:0], c.choice[:len(d.hops.Switches)]...)
}

// addRoutes adds the load of the chosen paths, or takes it off when sign is -1.
func (c *chooser) addRoutes(d *destination, sign int64) {
	h := &d.hops
	for i, s := range h.Switches {
		c.arriving[i] = uint64(c.hosts[s])
	}
	for i, at := range c.choice[:len(h.Switches)] {
		if n := c.arriving[i]; n > 0 {
			port := h.ports[at]
			c.load[port] += uint64(sign) * n * c.unit[port]
			c.arriving[d.next[at]] += n
		}
	}
}
