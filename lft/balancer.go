package lft

import (
	"context"
	"math"
	"math/bits"
	"runtime"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
)

// Balancer chooses one port for each LID where an engine leaves a switch
// several equal ones, so that the most loaded channel carries as little as it
// can: the common second half of all engines.
//
// The load of a channel is the number of routes that cross it, one for each
// source CA port and destination CA LID, divided by the capacity of its link.
// An engine says for each destination switch which ports each other switch
// may use, farthest switches first; Balancer knows by then how many sources
// stand behind a switch. It weighs a port by the third powers of two loads,
// its own and the greatest on the best path from the next switch on, and sends
// each LID where the sum is least: that is how fast the sum of the fourth
// powers of all loads grows, which the greatest loads dominate. LIDs of
// switches and aggregation nodes carry no load; they are dealt in turn.
//
// Loads are those of the whole fabric, so the order of destinations matters,
// and with it what may run in parallel: destinations are taken in rounds whose
// size follows from the fabric alone, and the destinations of a round all see
// the loads at its beginning. The result is therefore the same on any number
// of CPUs. Where the tables are small enough, all LIDs are then placed again
// one by one (refine.go), and the tables with the smallest greatest load are
// kept.
type Balancer struct {
	fab     *fabric.Fabric
	tables  *Tables
	jobs    []balancerJob
	loaded  int             // how many of jobs, the first, have a LID that carries load
	hosts   []uint32        // by switch: CA ports with a cable to it that send load
	to      []fabric.NodeID // by PortID of switches: the switch that a channel leads to
	num     []fabric.PortNum
	unit    []uint64  // by PortID: what one route adds to a channel's load
	load    []uint64  // by PortID
	cost    []float64 // by PortID: the cube of load as the round begins
	sources float64   // sources in the fabric
	near    []fabric.NodeID
	round   int // how many jobs see the same loads
	passes  int // how often all LIDs may be placed again
}

// balancerJob is a destination switch with at most maxJobLIDs of its LIDs, or
// all LIDs of several equivalent ones, of which t is the first.
type balancerJob struct {
	t       fabric.NodeID
	lids    []fabric.LID // of switch port 0 first, then of aggregation nodes, then by port of t
	mgmt    int          // how many of lids, the first, carry no load
	runs    []lidRun     // of all lids; those of hosts are one run, mostly
	members []member     // none for a single destination
}

// lidRun is lids[at:at+n] of a job when they are lid, lid+1 and so on.
type lidRun struct {
	lid   fabric.LID
	at, n int32
}

// writeRow writes the ports of the job's LIDs, by index, to the row of a switch.
// Each row is another cache line, which a few large stores wait for less long
// than many small ones.
func (j *balancerJob) writeRow(row, ports []fabric.PortNum) {
	for _, r := range j.runs {
		copy(row[r.lid:][:r.n], ports[r.at:])
	}
}

// lidSet is a set of the LIDs of a job, by index.
type lidSet [maxJobLIDs / 64]uint64

func (s *lidSet) add(k int) { s[k>>6&(len(s)-1)] |= 1 << (k & 63) }

func (s *lidSet) join(o *lidSet) {
	for i, set := range o {
		s[i] |= set
	}
}

func (s *lidSet) count() (n int) {
	for _, set := range s {
		n += bits.OnesCount64(set)
	}
	return n
}

// isIdle says that no LID of the job carries load.
func (j *balancerJob) isIdle() bool { return j.mgmt == len(j.lids) }

const (
	// maxJobLIDs bounds the scratch of a job.
	maxJobLIDs = 128
	// capacityUnits is the load that a route puts on the fastest link; on one
	// with a third of its capacity it is three times that.
	capacityUnits = 64
	// maxRound bounds the destinations of a round, and roundsAtLeast keeps
	// the load that a round does not see small: at most 1/roundsAtLeast.
	// A job of several equivalent destinations knows its own.
	maxRound            = 16
	roundsAtLeast       = 64
	maxJoinedRound      = 8
	joinedJobsAtLeast   = 256
	joinedRoundsAtLeast = 16
	// flushesAtLeast is likewise for the switches that send to a destination:
	// they see what others sent as of the last flush.
	flushesAtLeast = 64
	// maxFew is how many LIDs that carry load are few for a switch between
	// others.
	maxFew = 8
	// refineEntries bounds the work of placing again, entries times passes.
	// Passes end after patience without a smaller greatest load.
	refineEntries = 1 << 19
	maxPasses     = 12
	patience      = 3
)

// alwaysJoin has small fabrics joined too, in tests.
var alwaysJoin bool

// switchPorts counts the PortIDs of switches, which come before all others.
func switchPorts(f *fabric.Fabric) int { return int(f.PortBase(fabric.NodeID(f.NumSwitches()))) }

// LoadUnits is what a route adds to the load of each channel, by PortID of switches: 64
// on the fastest link, and more on slower ones, by the ratio of the rates.
func LoadUnits(f *fabric.Fabric) []uint64 {
	fastest := 0
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		for _, p := range ports {
			fastest = max(fastest, f.Link(p).Mbps())
		}
	}
	unit := make([]uint64, switchPorts(f))
	for p := range unit {
		unit[p] = capacityUnits
		if mbps := f.Link(fabric.PortID(p)).Mbps(); mbps > 0 {
			unit[p] = uint64((capacityUnits*fastest + mbps/2) / mbps)
		}
	}
	return unit
}

// NewBalancer prepares empty tables for f, whose LIDs must be assigned. class numbers
// equivalent switches by NodeID: those of one class have as many channels to the same
// switches, and grow lets all other switches reach them by the same ports and them each
// other. It is nil where the engine knows of none.
func NewBalancer(f *fabric.Fabric, class []int32) *Balancer {
	n, channels := f.NumSwitches(), switchPorts(f)
	s := &Balancer{
		fab:    f,
		tables: NewTables(n, f.MaxLID()),
		hosts:  make([]uint32, n),
		to:     make([]fabric.NodeID, channels),
		num:    make([]fabric.PortNum, channels),
		unit:   LoadUnits(f),
		load:   make([]uint64, channels),
		cost:   make([]float64, channels),
	}
	for p := range s.to {
		s.to[p] = fabric.NoNode
	}
	for t := range fabric.NodeID(n) {
		ports, to := f.SwitchLinks(t)
		for i, p := range ports {
			s.to[p] = to[i]
			s.num[p] = f.Num(p)
		}
	}
	for t := range fabric.NodeID(n) {
		s.addJobs(t)
	}
	for _, h := range s.hosts {
		s.sources += float64(h)
	}
	s.near = listNear(f)
	s.round = roundSize(len(s.jobs), roundsAtLeast, maxRound)
	s.passes = min(maxPasses, refineEntries/len(s.tables.entries))
	joined := class != nil && (s.passes == 0 || alwaysJoin)
	if joined {
		s.joinEquivalent(class)
		s.passes = 0
	}
	s.sortJobs()
	if joined {
		s.round = min(s.round, roundSize(s.loaded, joinedRoundsAtLeast, maxJoinedRound))
	}
	return s
}

// listNear lists all switches so that near ones are close in the list: after each comes
// the nearest one left, equal ones by NodeID.
func listNear(f *fabric.Fabric) []fabric.NodeID {
	list := make([]fabric.NodeID, 0, f.NumSwitches())
	left := f.Switches()
	for at := 0; len(left) > 0; {
		s := left[at]
		list = append(list, s)
		left = slices.Delete(left, at, at+1)
		at = 0
		from, nearest := f.Distances().To(s), fabric.Unreachable
		for i, u := range left {
			if d := from[u]; d < nearest {
				at, nearest = i, d
			}
		}
	}
	return list
}

// sortJobs puts destinations near each other in the switch graph far apart in
// the list, so that those of a round meet as little as possible, and so that
// all parts of the fabric fill at the same pace: a channel near its destination
// would have all of its load at once otherwise, and the choices of the last
// destinations would serve the channels near the sources alone. Destinations
// with hosts come first. Those without carry no load; they follow by LID, and a
// worker takes a block of them, so that workers do not write to the same cache
// lines in turn.
func (s *Balancer) sortJobs() {
	place := make([]int, len(s.hosts))
	for i, u := range s.near {
		place[u] = i
	}
	slices.SortStableFunc(s.jobs, func(a, b balancerJob) int {
		switch {
		case a.isIdle() && b.isIdle():
			return int(a.lids[0]) - int(b.lids[0])
		case a.isIdle():
			return 1
		case b.isIdle():
			return -1
		}
		return place[a.t] - place[b.t]
	})
	for s.loaded < len(s.jobs) && !s.jobs[s.loaded].isIdle() {
		s.loaded++
	}
	jobs := make([]balancerJob, 0, len(s.jobs))
	step := goldenStep(s.loaded)
	for i, at := 0, 0; i < s.loaded; i++ {
		jobs = append(jobs, s.jobs[at])
		if at += step; at >= s.loaded {
			at -= s.loaded
		}
	}
	s.jobs = append(jobs, s.jobs[s.loaded:]...)
}

// goldenStep is a step that visits each of n places and keeps the visited places far
// apart at any time: the number nearest below the golden section of n that has no
// factor in common with n.
func goldenStep(n int) int {
	step := int(math.Round(float64(n) * (math.Phi - 1)))
	for step > 1 && gcd(n, step) > 1 {
		step--
	}
	return step
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// Near lists all switches so that near ones are close in the list. Place is
// fastest when equally distant switches come in this order: those with the
// same paths on then follow each other, and one choice serves several.
func (s *Balancer) Near() []fabric.NodeID { return s.near }

// roundSize is how many jobs see the same loads.
func roundSize(jobs, rounds, most int) int {
	n := jobs / rounds
	if n <= 1 {
		return 1
	}
	return min((n+3)&^3, most) // a multiple of most numbers of CPUs
}

// addJobs lists the LIDs that t delivers, and fills t's own row for them.
func (s *Balancer) addJobs(t fabric.NodeID) {
	f := s.fab
	row := s.tables.Row(t)
	var lids []fabric.LID
	add := func(p fabric.PortID, out fabric.PortNum) {
		for lid := range f.LIDs(p) {
			lids = append(lids, lid)
			row[lid] = out
		}
	}
	add(f.PortBase(t), fabric.ManagementPort)
	for _, p := range f.EndPortsOn(t) {
		if !f.PortCounts(p, fabric.ForLoad) {
			add(p, f.Num(f.Peer(p)))
		}
	}
	mgmt := len(lids)
	for _, host := range f.HostsOn(t) {
		add(host, f.Num(f.Peer(host)))
	}
	s.hosts[t] = uint32(len(f.HostsOn(t)))
	for part := range slices.Chunk(lids, maxJobLIDs) {
		own := min(mgmt, len(part))
		mgmt -= own
		job := balancerJob{t: t, lids: part, mgmt: own}
		job.findRuns()
		s.jobs = append(s.jobs, job)
	}
}

// Tables is the result of Run.
func (s *Balancer) Tables() *Tables { return s.tables }

// Run fills the tables. newGrow is called once for each worker, which then
// calls what it returned for one destination switch at a time: grow must call
// p.Place once for each switch that can reach t, t itself excepted, after the
// calls for all switches whose ports lead to it. It is called several times
// for the same t and must do the same each time. The error is ctx's.
func (s *Balancer) Run(ctx context.Context, newGrow func() func(t fabric.NodeID, p *Placement)) error {
	if len(s.jobs) == 0 {
		return ctx.Err()
	}
	workers := min(runtime.GOMAXPROCS(0), len(s.jobs))
	grow := make([]func(fabric.NodeID, *Placement), workers)
	placements := make([]*Placement, workers)
	longest := 0
	for _, j := range s.jobs {
		longest = max(longest, len(j.lids))
	}
	for w := range grow {
		grow[w] = newGrow()
		placements[w] = newPlacement(s, longest)
	}
	q := newRounds(s.round, s.loaded, len(s.jobs))
	work := func(w int) {
		ended := false
		defer func() {
			if !ended {
				q.stopWorkers()
			}
		}()
		for mine := new(block); ctx.Err() == nil; {
			job := q.takeJob(mine)
			if job < 0 {
				ended = true
				return
			}
			placements[w].startJob(&s.jobs[job], job)
			grow[w](s.jobs[job].t, placements[w])
			placements[w].placeJob()
			if job < s.loaded && q.finishJob() {
				s.mergeLoads(placements)
				q.startRound()
			}
		}
	}
	par.Each(workers, work)
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.refineTables(ctx, grow[0], placements[0])
}

// mergeLoads ends a round: it adds what the workers have placed to the loads.
func (s *Balancer) mergeLoads(placements []*Placement) {
	const part = 1 << 9 // that stays in a cache
	for from := 0; from < len(s.load); from += part {
		end := min(from+part, len(s.load))
		load, cost := s.load[from:end], s.cost[from:end]
		for _, p := range placements {
			if p.placed {
				pending := p.pending[from:end]
				for c, more := range pending[:len(load)] {
					load[c] += more
				}
				clear(pending)
			}
		}
		for c, l := range load[:len(cost)] {
			cost[c] = cube(float64(int64(l)))
		}
	}
	for _, p := range placements {
		p.placed = false
	}
}

// refineTables places all LIDs again, and keeps the best tables.
func (s *Balancer) refineTables(ctx context.Context, grow func(fabric.NodeID, *Placement), p *Placement) error {
	passes := s.passes
	if passes == 0 {
		return nil
	}
	best := slices.Clone(s.tables.entries)
	bestLoad := slices.Clone(s.load)
	r := newRefiner(s, p)
	for worse := 0; passes > 0 && worse < patience; passes-- {
		for i := range s.jobs[:s.loaded] {
			if err := ctx.Err(); err != nil {
				return err
			}
			p.startJob(&s.jobs[i], i)
			grow(s.jobs[i].t, p)
			r.startDestination()
			for _, lid := range s.jobs[i].lids[s.jobs[i].mgmt:] {
				r.replaceLID(lid)
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

// Placement takes the ports that lead to one destination switch. It belongs to a
// worker.
type Placement struct {
	s     *Balancer
	job   *balancerJob
	turn  int               // decides between equally loaded ports
	order []fabric.NodeID   // farthest first
	ports [][]fabric.PortID // by index in order: what Place was given
	run   []int32           // by index in order: the same for all that are alike
	index []int32           // by NodeID: index in order
	jobs  int               // how many jobs there were

	stride        int
	weight        []uint32     // by switch and LID of the job: sources behind the switch
	loaded        []lidSet     // by NodeID: those of the LIDs, by index in the job, with a weight there
	routes        []uint64     // by NodeID: sum of the weights
	paths         []onwardPath // by NodeID
	pathCost      []float64    // by NodeID, as paths: sum of the cubes of the loads on the path, as the round begins
	pending       []uint64     // by PortID: load to add when the round ends
	placed        bool         // pending may hold any
	sent          []float64    // by NodeID: routes sent there since the last flush
	sentTo        []fabric.NodeID
	flushes       int
	sides         []side                        // by port, of the last switch with a choice
	sums          []float64                     // by port: scratch of placeFew
	fewShares     []fewShare                    // by port, of the last switch with few LIDs
	keys          []uint64                      // from the port on that begins
	rows          [2][maxJobLIDs]fabric.PortNum // row, and the result of chosenRow
	row           []fabric.PortNum              // by index in the LIDs of the job: the ports of the switch at hand
	taken         []uint8                       // by index in the LIDs of the job: index in sides
	shares        []uint64                      // by index in sides: how many LIDs took it
	began         int                           // the start that choosePorts was given
	chosen        int                           // how many sides repeatChoice may use, 0 for none
	chooser       int32                         // the run that they are of
	first         fabric.PortNum                // of consecutive ports that chosenRow was last asked for
	repeatedHosts uint32                        // hosts that repeatChoice has placed since, not yet in weight and sent
	costs         []float64                     // scratch of channelCosts
	role          []uint8                       // by NodeID, in a job of several members
	last          []fabric.PortID               // scratch of channelsTo
	pathCosts     onwardCosts                   // values of far
	risks         onwardCosts                   // values of onwardPath.risk as of a flush
}

// onwardCosts is the costs of the paths on from the ports of a switch, the same for all
// switches of a run.
type onwardCosts struct {
	cost  []float64 // by index in the ports
	run   int32     // -1 for none
	flush int
}

// onwardPath is the best path on from a switch as a round begins, and what the job
// has added to it since.
type onwardPath struct {
	near     float64       // load of the channel that the path begins with
	arriving float64       // routes to the destination that come to the switch, or are expected to
	each     float64       // load of one route, divided among the ports of the switch
	next     fabric.NodeID // where the channel leads; the destination has no path
	job      int           // the job that all this belongs to
	// most is the greatest load on the path as of flush known, risk its cube.
	most  float64
	risk  float64
	known int
}

func newPlacement(s *Balancer, lids int) *Placement {
	n := s.fab.NumSwitches()
	return &Placement{
		s:         s,
		stride:    lids,
		weight:    make([]uint32, n*lids),
		loaded:    make([]lidSet, n),
		routes:    make([]uint64, n),
		paths:     make([]onwardPath, n),
		pathCost:  make([]float64, n),
		index:     make([]int32, n),
		role:      make([]uint8, n),
		pending:   make([]uint64, len(s.load)),
		sent:      make([]float64, n),
		sides:     make([]side, 256),
		sums:      make([]float64, 256),
		fewShares: make([]fewShare, 256),
		taken:     make([]uint8, lids),
		keys:      make([]uint64, 256),
		shares:    make([]uint64, 256),
		costs:     make([]float64, 256),
		pathCosts: onwardCosts{cost: make([]float64, 256)},
		risks:     onwardCosts{cost: make([]float64, 256)},
	}
}

func (p *Placement) startJob(job *balancerJob, turn int) {
	p.job, p.turn = job, turn
	p.jobs++
	p.row = p.rows[0][:len(job.lids)]
	p.order, p.ports, p.run = p.order[:0], p.ports[:0], p.run[:0]
	p.pathCosts.run, p.risks.run = -1, -1
}

// Turn is a number that differs between destinations.
func (p *Placement) Turn() int { return p.turn }

// Single says that the destination carries no load, so that one port for each
// switch is as good as all; which, should depend on Turn. The order of
// switches does not matter then.
func (p *Placement) Single() bool { return p.job.isIdle() && len(p.job.lids) == 1 }

// Place lets the LIDs of the destination leave switch u through any of ports,
// of which there must be at least one, all leading to other switches, in
// ascending order. Unless the destination is Single, the list must not change
// until the next destination.
func (p *Placement) Place(u fabric.NodeID, ports []fabric.PortID) {
	if p.job.isIdle() {
		p.s.dealPorts(p.row, ports, p.startPort(ports))
		p.job.writeRow(p.s.tables.Row(u), p.row)
		return
	}
	p.index[u] = int32(len(p.order))
	p.order = append(p.order, u)
	p.ports = append(p.ports, ports)
	p.run = append(p.run, p.index[u])
}

// PlaceEquivalent is Place for a switch whose ports lead to the same switches, one
// by one, as those of the last call: the tables are the same, but sooner made.
func (p *Placement) PlaceEquivalent(u fabric.NodeID, ports []fabric.PortID) {
	p.Place(u, ports)
	if n := len(p.run); n > 0 { // none for idle destinations
		p.run[n-1] = p.run[n-2]
	}
}

// PlaceOnly is Place for a Single destination and the one port of u with a number.
func (p *Placement) PlaceOnly(u fabric.NodeID, port fabric.PortNum) {
	t := p.s.tables
	t.entries[int(u)*t.stride+int(p.job.lids[0])] = port
}

// startPort is the port that comes first where equal ports are used in turn.
func (p *Placement) startPort(ports []fabric.PortID) int {
	if len(ports) == 1 {
		return 0
	}
	return int(uint32(p.turn) % uint32(len(ports))) // a third of the time of 64 bits
}

// cube is a channel's cost. Its conversions, and those below, keep the
// compiler from fusing a multiplication with an addition, which would make the
// result depend on the processor.
func cube(load float64) float64 { return float64(load * load * load) }

// pathAtFlush is the path on from v, with most and risk as of the last flush.
func (p *Placement) pathAtFlush(v fabric.NodeID) *onwardPath {
	w := &p.paths[v]
	if w.known != p.flushes { // no two jobs have a flush in common
		w = p.pathFrom(v)
		w.most, w.known = p.maxLoadFrom(v), p.flushes
		w.risk = cube(w.most)
	}
	return w
}

// maxLoadFrom is the greatest load on the path from v, with the routes expected on it.
func (p *Placement) maxLoadFrom(v fabric.NodeID) float64 {
	most := 0.0
	for v != p.job.t {
		w := p.pathFrom(v)
		most = max(most, w.near+float64(w.arriving*w.each))
		v = w.next
	}
	return most
}

// expectRoutes adds routes to the path from v to t.
func (p *Placement) expectRoutes(v, t fabric.NodeID, routes float64) {
	for v != t {
		w := p.pathFrom(v)
		w.arriving += routes
		v = w.next
	}
}

// noteRoutes records routes sent to v, until flushRoutes adds them to the path from v.
func (p *Placement) noteRoutes(v fabric.NodeID, routes float64) {
	if p.sent[v] == 0 {
		p.sentTo = append(p.sentTo, v)
	}
	p.sent[v] += routes
}

// flushRoutes adds the recorded routes to the paths of the switches that they were sent to.
func (p *Placement) flushRoutes() {
	p.addRepeats()
	for _, v := range p.sentTo {
		p.expectRoutes(v, p.job.t, p.sent[v])
		p.sent[v] = 0
	}
	p.sentTo = p.sentTo[:0]
	p.flushes++
	p.chosen = 0
}

// pathFrom is the best path on from v, found at the first call: most switches only send,
// and their paths are never needed.
func (p *Placement) pathFrom(v fabric.NodeID) *onwardPath {
	w := &p.paths[v]
	if w.job != p.jobs {
		p.findPath(v)
	}
	return w
}

// findPath finds the best path on from v.
func (p *Placement) findPath(v fabric.NodeID) {
	s := p.s
	found := onwardPath{job: p.jobs, known: -1}
	p.pathCost[v] = 0
	switch {
	case v == p.job.t:
	case p.role[v] == roleNeighbour:
		p.findNeighbourPath(v, &found)
	default:
		i := p.index[v]
		ports := p.ports[i]
		fars := &p.pathCosts
		if fars.run != p.run[i] {
			for _, c := range ports {
				p.pathFrom(s.to[c]) // which may find paths itself
			}
			for i, c := range ports {
				fars.cost[i] = p.pathCost[s.to[c]]
			}
			fars.run = p.run[i]
		}
		sums := p.sums[:len(ports)]
		for i, cost := range p.channelCosts(ports) {
			sums[i] = cost + fars.cost[i]
		}
		best := leastFrom(sums, 0)
		p.pathCost[v] = sums[best]
		found.near = float64(s.load[ports[best]])
		found.each = float64(s.unit[ports[best]]) / float64(len(ports))
		found.next = s.to[ports[best]]
	}
	p.paths[v] = found
}

// channelCosts is the costs of the channels as the round began.
func (p *Placement) channelCosts(ports []fabric.PortID) []float64 {
	if consecutive(ports) {
		return p.s.cost[ports[0]:][:len(ports)]
	}
	for i, c := range ports {
		p.costs[i] = p.s.cost[c]
	}
	return p.costs[:len(ports)]
}

// fewShare is what a port carries of the LIDs of placeFew.
type fewShare struct {
	routes uint64
	lids   float64
}

// leastFrom finds the least of costs, and of equal ones that which comes first
// from start on, and then from 0 on. Costs are not negative, so their bits order as
// they do, and min needs no unpredictable branches.
func leastFrom(costs []float64, start int) int {
	lowest := ^uint64(0)
	for _, c := range costs {
		lowest = min(lowest, math.Float64bits(c))
	}
	least := math.Float64frombits(lowest)
	at := start
	for costs[at] != least {
		if at++; at == len(costs) {
			at = 0
		}
	}
	return at
}

// routesTo is how many routes come to u. It is complete once all switches that send to u
// are placed and flushed.
func (p *Placement) routesTo(u fabric.NodeID) float64 {
	if w := &p.paths[u]; w.job == p.jobs {
		return w.arriving
	}
	return 0
}

// placeJob fills the tables for the job, whose ports are all known.
func (p *Placement) placeJob() {
	s, job, lids := p.s, p.job, p.job.lids
	if job.isIdle() {
		return
	}
	p.placed = true
	clear(p.weight)
	clear(p.loaded)
	clear(p.routes)
	var hosted lidSet // LIDs of hosts
	for k := job.mgmt; k < len(lids); k++ {
		hosted.add(k)
	}
	p.setRoles(roleMember, roleNeighbour)
	// Find the paths from switches without hosts: if these are on a path at all, others
	// send to them. Nearest first, equivalent ones together.
	for _, u := range slices.Backward(p.order) {
		if s.hosts[u] == 0 {
			p.pathFrom(u)
		}
	}
	// Equivalent sources choose once for a whole run, except in long runs.
	long := max(1, 2*(len(p.order)/flushesAtLeast))
	every := max(1, len(p.order)/flushesAtLeast/max(1, len(job.members)))
	due, chose := 0, 0
	for i, u := range p.order {
		if p.sent[u] > 0 || i >= due && (p.chosen == 0 || p.chooser != p.run[i] || i >= chose+long) {
			p.flushRoutes()
			due, chose = i+every, i
		}
		ports := p.ports[i]
		if p.role[u] == roleMember {
			j := slices.IndexFunc(job.members, func(x member) bool { return x.t == u })
			if j == 1 {
				p.placeFirstMember(ports)
			}
			p.placeMember(j, ports)
			continue
		}
		row := s.tables.Row(u)
		start := p.startPort(ports)
		source := p.routesTo(u) == 0 // nothing comes to u from other switches
		if source && s.hosts[u] > 0 && (p.chosen > 0 && p.chooser == p.run[i] || p.canRepeat(ports)) {
			job.writeRow(row, p.repeatChoice(ports, s.hosts[u]))
			continue
		}
		weight := p.weight[int(u)*p.stride:][:len(lids)]
		if h := s.hosts[u]; h > 0 {
			for k := job.mgmt; k < len(weight); k++ {
				weight[k] += h
			}
			p.loaded[u].join(&hosted)
			p.routes[u] += uint64(h) * uint64(len(lids)-job.mgmt)
		}
		loaded := p.loaded[u].count()
		switch {
		case p.role[u] == roleNeighbour:
			p.deliverToMembers(u, weight)
		case loaded == 0:
			s.dealPorts(p.row, ports, start)
		case len(ports) == 1:
			p.placeOnOnePort(u, ports[0], weight)
		case loaded == 1, !source && loaded <= maxFew:
			p.placeFew(u, ports, start, weight)
		default:
			job.writeRow(row, p.choosePorts(u, ports, start, weight))
			continue
		}
		job.writeRow(row, p.row)
	}
	p.flushRoutes()
	p.setRoles(roleNone, roleNone)
}

// placeOnOnePort sends all LIDs through channel c. Routes that do not begin at u were
// expected there.
func (p *Placement) placeOnOnePort(u fabric.NodeID, c fabric.PortID, weight []uint32) {
	s := p.s
	num, next := s.num[c], s.to[c]
	for k := range p.row {
		p.row[k] = num
	}
	onward := p.weight[int(next)*p.stride:][:len(weight)]
	for w, set := range p.loaded[u] {
		for ; set != 0; set &= set - 1 {
			k := w*64 + bits.TrailingZeros64(set)
			onward[k] += weight[k]
		}
	}
	p.loaded[next].join(&p.loaded[u])
	sum := p.routes[u]
	p.routes[next] += sum
	p.pending[c] += sum * s.unit[c]
	if more := float64(sum) - p.routesTo(u); more > 0 {
		p.noteRoutes(next, more)
	}
}

// placeFew does what choosePorts does where only some LIDs carry load, with less work
// for each switch of a run and little for the idle LIDs.
func (p *Placement) placeFew(u fabric.NodeID, ports []fabric.PortID, start int, weight []uint32) {
	s := p.s
	p.withdrawExpected(u)
	i := p.index[u]
	risks := &p.risks
	if risks.run != p.run[i] || risks.flush != p.flushes {
		for i, c := range ports {
			risks.cost[i] = p.pathAtFlush(s.to[c]).risk
		}
		risks.run, risks.flush = p.run[i], p.flushes
	}
	sums := p.sums[:len(ports)]
	for i, cost := range p.channelCosts(ports) {
		sums[i] = cost + risks.cost[i]
		p.fewShares[i] = fewShare{}
	}
	turn, from := start, 0
	for w, set := range p.loaded[u] {
		for ; set != 0; set &= set - 1 {
			k := w*64 + bits.TrailingZeros64(set)
			at := leastFrom(sums, start)
			c := ports[at]
			next := s.to[c]
			routes := uint64(weight[k])
			p.weight[int(next)*p.stride+k] += weight[k]
			p.loaded[next].add(k)
			p.routes[next] += routes
			p.pending[c] += routes * s.unit[c]
			p.noteRoutes(next, float64(routes))
			turn = s.dealPorts(p.row[from:k], ports, turn)
			p.row[k] = s.num[c]
			from = k + 1
			x := &p.fewShares[at]
			x.routes += routes
			x.lids++
			own := float64(s.load[c] + x.routes*s.unit[c])
			sums[at] = cube(own) + cube(p.pathAtFlush(next).most+float64(x.lids*s.sources*float64(s.unit[c])))
		}
	}
	s.dealPorts(p.row[from:], ports, turn)
}

// consecutive says that ports follow each other in their switch.
func consecutive(ports []fabric.PortID) bool {
	return int(ports[len(ports)-1]-ports[0]) == len(ports)-1
}

// dealPorts gives the LIDs of row the ports in turn, beginning with the one at start, and
// returns the next start.
func (s *Balancer) dealPorts(row []fabric.PortNum, ports []fabric.PortID, start int) int {
	if consecutive(ports) {
		first := s.num[ports[0]]
		num, end := first+fabric.PortNum(start), first+fabric.PortNum(len(ports))
		for k := range row {
			row[k] = num
			if num++; num == end {
				num = first
			}
		}
		return int(num - first)
	}
	for k := range row {
		row[k] = s.num[ports[start]]
		if start++; start == len(ports) {
			start = 0
		}
	}
	return start
}

// withdrawExpected removes the routes that were expected on the best path from u: their
// ports are chosen now.
func (p *Placement) withdrawExpected(u fabric.NodeID) {
	if came := p.routesTo(u); came > 0 {
		p.expectRoutes(p.paths[u].next, p.job.t, -came)
	}
}

// choosePorts sends each LID through the channel of ports that costs least, of equal
// ones that which comes first from start on. It returns the ports of the LIDs.
func (p *Placement) choosePorts(u fabric.NodeID, ports []fabric.PortID, start int, weight []uint32) []fabric.PortNum {
	s := p.s
	p.addRepeats()
	p.withdrawExpected(u)
	p.began = start
	sides := p.sides[:len(ports)]
	keys := p.keys[:len(ports)]
	turn := func(i int) int { // the port that comes i-th from start on
		if i += start; i >= len(ports) {
			i -= len(ports)
		}
		return i
	}
	for i := range sides {
		at := turn(i)
		c := ports[at]
		x := &sides[at]
		x.port, x.to = c, s.to[c]
		x.weight = int(x.to) * p.stride
		x.routes, x.lids, x.set, x.same = 0, 0, lidSet{}, 0
		x.own = float64(s.load[c])
		x.onward = p.pathAtFlush(x.to).most
		x.unit = float64(s.unit[c])
		keys[i] = x.costKey(i)
	}
	idle, next := 0, p.nextMember(-1, nil, nil)
	for k, w := range weight {
		if k == next {
			next = p.nextMember(k, sides, keys)
		}
		if w == 0 {
			p.taken[k] = uint8(turn(idle))
			if idle++; idle == len(sides) {
				idle = 0
			}
			continue
		}
		i := int(leastKey(keys) & 0xff)
		at := turn(i)
		x := &sides[at]
		p.taken[k] = uint8(at)
		p.weight[x.weight+k] += w
		x.lids++
		x.set.add(k)
		x.routes += uint64(w)
		x.own += float64(float64(w) * x.unit)
		x.onward += float64(s.sources * x.unit)
		if next >= 0 {
			x.same += float64(s.sources * x.unit)
		}
		keys[i] = x.costKey(i)
	}
	for i := range sides {
		x := &sides[i]
		p.shares[i] = x.lids
		if x.routes > 0 {
			p.pending[x.port] += x.routes * uint64(x.unit)
			p.loaded[x.to].join(&x.set)
			p.routes[x.to] += x.routes
			p.noteRoutes(x.to, float64(x.routes))
		}
	}
	p.chosen, p.chooser = len(ports), p.run[p.index[u]]
	if p.routesTo(u) > 0 {
		p.chosen = 0
	}
	p.first = fabric.ManagementPort
	return p.chosenRow(ports)
}

// chosenRow is the ports of the LIDs as choosePorts chose them, for a switch with these
// ports.
func (p *Placement) chosenRow(ports []fabric.PortID) []fabric.PortNum {
	row := p.rows[1][:len(p.row)]
	first := fabric.ManagementPort // which is among no ports
	if consecutive(ports) {
		first = p.s.num[ports[0]]
	}
	if first == fabric.ManagementPort || first != p.first {
		for k := range row {
			row[k] = p.s.num[ports[p.taken[k]]]
		}
		p.first = first
	}
	return row
}

// canRepeat says whether the last choice since the last flush, for a switch that no routes
// came through, was between ports to the same switches.
func (p *Placement) canRepeat(ports []fabric.PortID) bool {
	if p.chosen != len(ports) {
		return false
	}
	for i, c := range ports {
		if p.s.to[c] != p.sides[i].to {
			return false
		}
	}
	return true
}

// repeatChoice chooses as choosePorts did the last time. addRepeats passes the routes on
// to the next switches later: these have routes of choosePorts to be flushed, so that
// placeJob flushes before it looks at any of them.
func (p *Placement) repeatChoice(ports []fabric.PortID, hosts uint32) []fabric.PortNum {
	shares := p.shares[:len(ports)]
	for i, c := range ports {
		p.pending[c] += shares[i] * uint64(hosts) * p.s.unit[c]
	}
	p.repeatedHosts += hosts
	return p.chosenRow(ports)
}

// addRepeats adds the routes of repeatChoice to the next switches.
func (p *Placement) addRepeats() {
	if p.repeatedHosts == 0 {
		return
	}
	for i := range p.sides[:p.chosen] {
		if x := &p.sides[i]; x.lids > 0 { // loaded is as choosePorts left it
			routes := x.lids * uint64(p.repeatedHosts)
			p.routes[x.to] += routes
			p.noteRoutes(x.to, float64(routes))
		}
	}
	for k := p.job.mgmt; k < len(p.job.lids); k++ {
		p.weight[p.sides[p.taken[k]].weight+k] += p.repeatedHosts
	}
	p.repeatedHosts = 0
}

// side is one of the ports to choose from.
type side struct {
	own float64 // load of the channel
	// onward is the greatest load on the path on. Each LID sent there adds to
	// it as if all sources did the same, so that the LIDs of a destination
	// divide over the ports.
	onward float64
	same   float64 // in a job of several members: what beyond has of the LIDs of the last one, once more
	unit   float64
	routes uint64 // sent there now
	lids   uint64 // the same in LIDs
	set    lidSet // these LIDs
	weight int    // where the weights of the next switch begin
	port   fabric.PortID
	to     fabric.NodeID
}

// costKey makes the cost of a side comparable as an integer, with its index to
// break ties. Costs are not negative, so their bits order as they do.
func (x *side) costKey(i int) uint64 {
	return math.Float64bits(cube(x.own)+cube(x.onward+x.same))&^0xff | uint64(i)
}

// leastKey is the smallest key, by four independent chains of comparisons.
func leastKey(keys []uint64) uint64 {
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
