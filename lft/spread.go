package lft

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
)

// Spread chooses one port for each LID where an engine leaves a switch
// several equal ones, so that the most loaded channel carries as little as it
// can: the common second half of all engines.
//
// The load of a channel is the number of routes that cross it, one for each
// source CA port and destination CA LID, divided by the capacity of its link.
// An engine says for each destination switch which ports each other switch
// may use, farthest switches first; Spread knows by then how many sources
// stand behind a switch and sends each LID through the port that would be the
// least loaded. LIDs of switches carry no load; they are dealt in turn.
//
// Loads are those of the whole fabric, so the order of destinations matters,
// and with it what may run in parallel: destinations are taken in rounds whose
// size follows from the fabric alone, and the destinations of a round all see
// the loads at its beginning. The result is therefore the same on any number
// of CPUs. Where the tables are small enough, all LIDs are then placed again,
// one by one, with the load of the whole path in view (refine.go), and the
// tables with the smallest greatest load are kept.
type Spread struct {
	fab    *fabric.Fabric
	tables *Tables
	jobs   []spreadJob
	hosts  []uint32        // by switch: CA ports with a cable to it
	to     []fabric.NodeID // by PortID: the switch that a channel leads to
	num    []fabric.PortNum
	unit   []uint64 // by PortID: what one route adds to a channel's load
	load   []uint64 // by PortID
}

// spreadJob is a destination switch with at most maxJobLIDs of its LIDs.
type spreadJob struct {
	t    fabric.NodeID
	lids []fabric.LID // of switch port 0 first, then by port of t
	mgmt int          // how many of lids are the switch's own
}

const (
	// maxJobLIDs bounds the scratch of a job and keeps the counter in the
	// keys of Placer.Place from overflowing its eight bits.
	maxJobLIDs = 64
	// capacityUnits is the load that a route puts on the fastest link; on one
	// with a third of its capacity it is three times that.
	capacityUnits = 64
	// maxRound bounds the destinations of a round, and roundsAtLeast keeps
	// the load that a round does not see small: at most 1/roundsAtLeast.
	maxRound      = 16
	roundsAtLeast = 64
	// refineEntries bounds the work of placing again, entries times passes.
	// Passes end after patience without a smaller greatest load.
	refineEntries = 1 << 19
	maxPasses     = 12
	patience      = 3
)

// NewSpread prepares empty tables for f, whose LIDs must be assigned.
func NewSpread(f *fabric.Fabric) *Spread {
	n := f.NumSwitches()
	s := &Spread{
		fab:    f,
		tables: NewTables(n, f.MaxLID()),
		hosts:  make([]uint32, n),
		to:     make([]fabric.NodeID, f.NumPorts()),
		num:    make([]fabric.PortNum, f.NumPorts()),
		unit:   make([]uint64, f.NumPorts()),
		load:   make([]uint64, f.NumPorts()),
	}
	for p := range s.to {
		s.to[p] = fabric.NoNode
	}
	fastest := 0
	for t := range fabric.NodeID(n) {
		ports, to := f.SwitchLinks(t)
		for i, p := range ports {
			s.to[p] = to[i]
			s.num[p] = f.Num(p)
			fastest = max(fastest, f.Link(p).Mbps())
		}
	}
	for p := range s.unit {
		s.unit[p] = capacityUnits
		if mbps := f.Link(fabric.PortID(p)).Mbps(); mbps > 0 {
			s.unit[p] = uint64((capacityUnits*fastest + mbps/2) / mbps)
		}
	}
	for t := range fabric.NodeID(n) {
		s.addJobs(t)
	}
	return s
}

// addJobs lists the LIDs that t delivers, and fills t's own row for them.
func (s *Spread) addJobs(t fabric.NodeID) {
	f := s.fab
	row := s.tables.Row(t)
	var lids []fabric.LID
	own := f.PortBase(t)
	if base := f.LID(own); base != 0 {
		for k := range 1 << f.LMC(own) {
			lids = append(lids, base+fabric.LID(k))
			row[int(base)+k] = fabric.ManagementPort
		}
	}
	mgmt := len(lids)
	for p := range f.Node(t).NumPorts {
		at := own + fabric.PortID(p) + 1
		peer := f.Peer(at)
		if peer == fabric.NoPort || f.IsSwitch(f.Owner(peer)) {
			continue
		}
		s.hosts[t]++
		if base := f.LID(peer); base != 0 {
			for k := range 1 << f.LMC(peer) {
				lids = append(lids, base+fabric.LID(k))
				row[int(base)+k] = p + 1
			}
		}
	}
	for part := range slices.Chunk(lids, maxJobLIDs) {
		own := min(mgmt, len(part))
		mgmt -= own
		s.jobs = append(s.jobs, spreadJob{t: t, lids: part, mgmt: own})
	}
}

// Tables is the result of Run.
func (s *Spread) Tables() *Tables { return s.tables }

// MaxLoad is the greatest number of routes on a channel between switches, in
// routes of the fastest link.
func (s *Spread) MaxLoad() float64 {
	return float64(slices.Max(append([]uint64{0}, s.load...))) / capacityUnits
}

// Run fills the tables. newGrow is called once for each worker, which then
// calls what it returned for one destination switch at a time: grow must call
// p.Place once for each switch that can reach t, t itself excepted, after the
// calls for all switches whose ports lead to it. It is called several times
// for the same t and must do the same each time. The error is ctx's.
func (s *Spread) Run(ctx context.Context, newGrow func() func(t fabric.NodeID, p *Placer)) error {
	if len(s.jobs) == 0 {
		return ctx.Err()
	}
	round := min(max(1, len(s.jobs)/roundsAtLeast), maxRound)
	workers := min(runtime.GOMAXPROCS(0), round)
	grow := make([]func(fabric.NodeID, *Placer), workers)
	placers := make([]*Placer, workers)
	longest := 0
	for _, j := range s.jobs {
		longest = max(longest, len(j.lids))
	}
	for w := range grow {
		grow[w] = newGrow()
		placers[w] = newPlacer(s, longest)
	}
	for first := 0; first < len(s.jobs); first += round {
		if err := ctx.Err(); err != nil {
			return err
		}
		jobs := s.jobs[first:min(first+round, len(s.jobs))]
		var next atomic.Int32
		work := func(w int) {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) {
					return
				}
				placers[w].begin(&jobs[i], first+i)
				grow[w](jobs[i].t, placers[w])
			}
		}
		var wg sync.WaitGroup
		for w := 1; w < min(workers, len(jobs)); w++ {
			wg.Go(func() { work(w) })
		}
		work(0)
		wg.Wait()
		for _, p := range placers {
			p.merge()
		}
	}
	return s.refine(ctx, grow[0], placers[0])
}

// refine places all LIDs again, and keeps the best tables.
func (s *Spread) refine(ctx context.Context, grow func(fabric.NodeID, *Placer), p *Placer) error {
	passes := min(maxPasses, refineEntries/len(s.tables.entries))
	if passes == 0 {
		return nil
	}
	best := slices.Clone(s.tables.entries)
	bestLoad := slices.Clone(s.load)
	p.refine = newRefiner(s)
	for worse := 0; passes > 0 && worse < patience; passes-- {
		for i := range s.jobs {
			if err := ctx.Err(); err != nil {
				return err
			}
			p.refine.begin()
			grow(s.jobs[i].t, p)
			for _, lid := range s.jobs[i].lids[s.jobs[i].mgmt:] {
				p.refine.replace(lid)
			}
		}
		if slices.Max(s.load) < slices.Max(bestLoad) {
			copy(best, s.tables.entries)
			copy(bestLoad, s.load)
			worse = 0
		} else {
			worse++
		}
	}
	copy(s.tables.entries, best)
	copy(s.load, bestLoad)
	return nil
}

// Placer places the LIDs of one destination switch. It belongs to a worker.
type Placer struct {
	s       *Spread
	job     *spreadJob
	turn    int // decides between equally loaded ports
	stride  int
	weight  []uint32 // by switch and LID of the job: sources behind the switch
	refine  *refiner // takes the ports instead, once the first pass is done
	pending []uint64 // by PortID: load to add when the round ends
	touched []fabric.PortID
	keys    [256]uint64
}

func newPlacer(s *Spread, lids int) *Placer {
	n := s.fab.NumSwitches()
	return &Placer{
		s:       s,
		stride:  lids,
		weight:  make([]uint32, n*lids),
		pending: make([]uint64, s.fab.NumPorts()),
	}
}

func (p *Placer) begin(job *spreadJob, turn int) {
	p.job, p.turn = job, turn
	for u, h := range p.s.hosts {
		row := p.weight[u*p.stride:][:len(job.lids)]
		clear(row[:job.mgmt])
		for k := job.mgmt; k < len(row); k++ {
			row[k] = h
		}
	}
}

func (p *Placer) merge() {
	for _, c := range p.touched {
		p.s.load[c] += p.pending[c]
		p.pending[c] = 0
	}
	p.touched = p.touched[:0]
}

func (p *Placer) add(c fabric.PortID, load uint64) {
	if p.pending[c] == 0 {
		p.touched = append(p.touched, c)
	}
	p.pending[c] += load
}

// Place sends each LID of the destination from switch u through one of ports,
// of which there must be at least one, all leading to other switches.
func (p *Placer) Place(u fabric.NodeID, ports []fabric.PortID) {
	if p.refine != nil {
		p.refine.record(u, ports)
		return
	}
	s, lids := p.s, p.job.lids
	row := s.tables.Row(u)
	weight := p.weight[int(u)*p.stride:][:len(lids)]
	if len(ports) == 1 {
		c := ports[0]
		num, onward := s.num[c], p.weight[int(s.to[c])*p.stride:][:len(lids)]
		sum := uint64(0)
		for k, w := range weight {
			row[lids[k]] = num
			onward[k] += w
			sum += uint64(w)
		}
		p.add(c, sum*s.unit[c])
		return
	}
	// A key is load, times used here, and place in turn, so that the least
	// one is the port to take.
	keys := p.keys[:len(ports)]
	start := p.turn % len(ports)
	for i := range keys {
		at := start + i
		if at >= len(ports) {
			at -= len(ports)
		}
		keys[i] = s.load[ports[at]]<<16 | uint64(i)
	}
	idle := 0
	for k, w := range weight {
		var i int
		if w == 0 {
			i = idle
			if idle++; idle == len(keys) {
				idle = 0
			}
		} else {
			i = int(least(keys) & 0xff)
		}
		at := start + i
		if at >= len(ports) {
			at -= len(ports)
		}
		c := ports[at]
		row[lids[k]] = s.num[c]
		if w == 0 {
			continue
		}
		load := uint64(w) * s.unit[c]
		keys[i] += load<<16 + 1<<8
		p.weight[int(s.to[c])*p.stride+k] += w
		p.add(c, load)
	}
}

// least is the smallest key, by four independent chains of comparisons.
func least(keys []uint64) uint64 {
	a, b, c, d := keys[0], ^uint64(0), ^uint64(0), ^uint64(0)
	keys = keys[1:]
	for len(keys) >= 4 {
		a, b, c, d = min(a, keys[0]), min(b, keys[1]), min(c, keys[2]), min(d, keys[3])
		keys = keys[4:]
	}
	for _, k := range keys {
		a = min(a, k)
	}
	return min(a, b, c, d)
}
