package lft

import (
	"context"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
)

// Balance makes the tables of an engine: for each LID and switch one of the allowed next
// hops. It calls newList several times.
//
// The load of a channel is the number of routes on it, one from each host to each LID of
// another, times the ratio of the fastest rate to its own. The aims are, in this order:
//
//   - a small greatest load;
//   - small loads elsewhere;
//   - few LIDs on a channel for the routes on it. A host receives one message at a time, so
//     routes to one LID do not contend where they share channels. So paths to a LID meet early,
//     as paths by destination do (d-mod-k in fat trees; SSSP: Hoefler, Schneider
//     and Lumsdaine, Optimized Routing for Large-Scale InfiniBand Networks, HOTI 2009);
//   - few LIDs that are near each other on a channel: these contend in shifts.
//
// It places one LID after the other: each switch, the nearest to the destination first,
// takes the next hop with the least sum of loads on the path, among equal ones in turn. On
// a full fat tree that is d-mod-k. If some load is above its lower bound, it places LIDs
// again, and moves routes off the busiest channels, see mover. At last it moves routes to
// different LIDs apart, see separate.
//
// LIDs of switches and of aggregation nodes carry no load. They take the paths of a host's
// LID on the same switch, if possible of one in the same block of the tables.
//
// It takes O(LIDs x channels) at most, on regular fabrics little more than O(LIDs x
// switches). The result does not depend on the number of CPUs. Errors: ctx's and those of
// listing next hops.
func Balance(ctx context.Context, f *fabric.Fabric, newList func() ListNextHops) (*Tables, error) {
	return newBalancer(f, newList).makeTables(ctx, false)
}

// makeTables is Balance. With loadsOnly it does not move routes to different LIDs apart.
func (b *balancer) makeTables(ctx context.Context, loadsOnly bool) (*Tables, error) {
	if err := b.balance(ctx); err != nil {
		return nil, err
	}
	b.even = b.even || loadsOnly
	if err := b.separate(ctx); err != nil {
		return nil, err
	}
	b.routeAlike()
	return b.tables, nil
}

func (b *balancer) balance(ctx context.Context) error {
	if err := b.placeRoutes(ctx, b.jobs, (*chooser).placeJob); err != nil {
		return err
	}
	bound := BoundLoad(b.fab)
	b.even = b.greatestLoad() <= bound
	for range min(againWork/b.countVisits(), maxAgain) {
		if b.greatestLoad() <= bound {
			break
		}
		if err := b.placeAgain(ctx); err != nil {
			return err
		}
	}
	return b.newMover().lower(ctx, bound, bound+bound/rebalanceDone)
}

const (
	// capacityUnits is the load of a route on the fastest link; on a link with a third of
	// its capacity the load is three times that.
	capacityUnits = 64
	// maxJobLIDs bounds the scratch memory of a job.
	maxJobLIDs = 64
	// jobsAhead is how many jobs may wait, with listed next hops or placed, besides those
	// in work.
	jobsAhead = 8
	// LIDs are placed again at most maxAgain times, and only while that visits at most
	// againWork channels.
	maxAgain  = 2
	againWork = 1 << 28
)

// balancer balances the routes of one fabric.
type balancer struct {
	fab     *fabric.Fabric
	newList func() ListNextHops
	tables  *Tables
	hosts   []uint32 // by switch: hosts that send
	jobs    []balancerJob
	to      []fabric.NodeID // by PortID of switches: the switch at the other end
	unit    []uint64        // by PortID of switches: the load of one route
	// switchUnit is by switch the unit of all its channels, 0 if they differ.
	switchUnit []uint64
	load       []uint64 // by PortID of switches
	// loads are parts of load: part k has the routes to the k-th LID of each port. It is
	// just load if all ports have one LID.
	loads [][]uint64
	even  bool // skip separate: loads are small without it
}

// balancerJob is a destination switch and some of its LIDs.
type balancerJob struct {
	t      fabric.NodeID
	lids   []fabric.LID // of hosts
	others []fabric.LID // other LIDs, which carry no load
	turn   uint32       // how many jobs come before
}

// switchPorts counts the PortIDs of switches, which come before all others.
func switchPorts(f *fabric.Fabric) int { return int(f.PortBase(fabric.NodeID(f.NumSwitches()))) }

// LoadUnits returns, by PortID of switches, the load of one route on each channel between
// switches: 64 on the fastest, and more on slower ones, by the ratio of the rates. It is 64
// for unknown rates and for ports that lead to no other switch.
func LoadUnits(f *fabric.Fabric) []uint64 {
	fastest := fastestRate(f)
	unit := slices.Repeat([]uint64{capacityUnits}, switchPorts(f))
	for _, p := range f.Channels() {
		if mbps := f.Link(p).Mbps(); mbps > 0 && mbps < fastest {
			unit[p] = uint64((capacityUnits*fastest + mbps/2) / mbps)
		}
	}
	return unit
}

// fastestRate returns the highest rate of a channel between switches in Mbit/s, 0 if none
// is known.
func fastestRate(f *fabric.Fabric) (fastest int) {
	for _, p := range f.Channels() {
		fastest = max(fastest, f.Link(p).Mbps())
	}
	return fastest
}

// Rescale converts a load from the LoadUnits of one fabric to those of another, which may
// have another fastest rate.
func Rescale(load uint64, from, to *fabric.Fabric) uint64 {
	was, is := fastestRate(from), fastestRate(to)
	if was == 0 || is == 0 {
		return load
	}
	return uint64(math.Round(float64(load) * float64(is) / float64(was)))
}

func newBalancer(f *fabric.Fabric, newList func() ListNextHops) *balancer {
	n, channels := f.NumSwitches(), switchPorts(f)
	b := &balancer{
		fab:        f,
		newList:    newList,
		tables:     NewTables(n, f.MaxLID()),
		hosts:      make([]uint32, n),
		to:         make([]fabric.NodeID, channels),
		unit:       LoadUnits(f),
		load:       make([]uint64, channels),
		switchUnit: make([]uint64, n),
	}
	b.loads = [][]uint64{b.load}
	for s := range fabric.NodeID(n) {
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			b.to[p] = to[i]
		}
		b.switchUnit[s] = b.findSwitchUnit(ports)
		b.hosts[s] = uint32(len(f.HostsOn(s)))
		b.addJobs(s)
	}
	b.splitLoads()
	return b
}

// findSwitchUnit returns the unit of all ports, 0 if they differ.
func (b *balancer) findSwitchUnit(ports []fabric.PortID) (unit uint64) {
	for i, p := range ports {
		if i > 0 && b.unit[p] != unit {
			return 0
		}
		unit = b.unit[p]
	}
	return unit
}

// splitLoads makes parts of load if ports have several LIDs.
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

// greatestLoad returns the load of the busiest channel.
func (b *balancer) greatestLoad() uint64 { return greatest(b.load) }

// addJobs adds jobs for the LIDs that t delivers, and writes t's own entries for them.
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

// routeAlike gives each LID without load the entries of a LID with load at the same switch,
// if possible in the same block of the tables, so that both change together. If there is
// none there, each switch copies another LID, so that a lost path changes few entries.
func (b *balancer) routeAlike() {
	type follower struct {
		lid  fabric.LID
		turn uint32
		like []fabric.LID // switch s copies the one at turn + s
	}
	var list []follower
	for i := range b.jobs {
		j := &b.jobs[i]
		if len(j.lids) == 0 {
			continue
		}
		for k, lid := range j.others {
			x := follower{lid, uint32(lid) + uint32(k), j.lids}
			near := slices.DeleteFunc(slices.Clone(j.lids), func(like fabric.LID) bool { return like/BlockSize != lid/BlockSize })
			if n := len(near); n > 0 {
				at := int(x.turn) % n
				x.like = near[at : at+1]
			}
			list = append(list, x)
		}
	}
	par.Each(len(b.hosts), func(s int) {
		row := b.tables.Row(fabric.NodeID(s))
		for i := range list {
			x := &list[i]
			if row[x.lid] == fabric.NoPath {
				row[x.lid] = row[x.like[(x.turn+uint32(s))%uint32(len(x.like))]]
			}
		}
	})
}

// placeRoutes calls place for one job after the other. Meanwhile other CPUs list the next
// hops of the jobs ahead, and write the rows of the jobs done.
func (b *balancer) placeRoutes(ctx context.Context, jobs []balancerJob, place func(c *chooser, d *destination)) error {
	ring := make([]*destination, jobsAhead+par.Workers(0, len(jobs)))
	for i := range ring {
		ring[i] = b.newDestination()
	}
	c := b.newChooser()
	err := par.Pipeline(ctx, len(jobs), len(ring), func(slot, i int) error {
		return ring[slot].set(b, &jobs[i])
	}, func(slot, _ int) error {
		place(c, ring[slot])
		return nil
	}, func(slot, _ int) error {
		ring[slot].writeRows(b)
		return nil
	})
	b.sumLoads()
	return err
}

// placeAgain places each LID again, by the loads of all others.
func (b *balancer) placeAgain(ctx context.Context) error {
	loaded := slices.DeleteFunc(slices.Clone(b.jobs), func(j balancerJob) bool { return len(j.lids) == 0 })
	return b.placeRoutes(ctx, loaded, (*chooser).replaceJob)
}

// countVisits estimates how many channels are visited when all LIDs take their paths once.
func (b *balancer) countVisits() int {
	visits := 1
	for i := range b.jobs {
		visits += len(b.jobs[i].lids) * len(b.load) / 2
	}
	return visits
}
