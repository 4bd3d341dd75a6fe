package lft

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// twin is one of the destinations of a job: a switch and which of the job's
// LIDs are its own.
//
// Twins have the same neighbours. All other switches but these reach them in
// the same ways, so that a tree grown for one serves all, and their LIDs are
// placed together: the leaves of a pod are twins. A twin sends to the others by
// its neighbours, and a neighbour is one channel from each.
type twin struct {
	t           fabric.NodeID
	mgmt, hosts span // of the LIDs of its port 0, and of its hosts
}

// span is lids[from:end] of a job.
type span struct{ from, end int }

// Roles of switches in a job of twins.
const (
	roleNone uint8 = iota
	roleTwin
	roleNeighbour
)

// Twins tells the switches apart that have other neighbours: two of one number,
// by NodeID, have their channels to the same switches, one by one.
func Twins(f *fabric.Fabric) []int32 {
	list := make([]fabric.NodeID, f.NumSwitches())
	for s := range list {
		list[s] = fabric.NodeID(s)
	}
	compare := func(a, b fabric.NodeID) int {
		_, x := f.SwitchLinks(a)
		_, y := f.SwitchLinks(b)
		return slices.Compare(x, y)
	}
	slices.SortFunc(list, compare)
	kind := make([]int32, len(list))
	for i := 1; i < len(list); i++ {
		kind[list[i]] = kind[list[i-1]]
		if compare(list[i-1], list[i]) != 0 {
			kind[list[i]]++
		}
	}
	return kind
}

// joinTwins makes one job of the destinations of one kind that have hosts, as
// many as have 64 LIDs together, or more in fabrics so large that these are
// still few.
func (s *Spread) joinTwins(kind []int32) {
	most := min(max(64, int(s.fab.MaxLID())/twinJobsAtLeast), maxJobLIDs)
	parts := make([]uint8, len(s.hosts)) // jobs of a destination, at most 2
	for _, j := range s.jobs {
		parts[j.t] = min(parts[j.t]+1, 2)
	}
	last := make(map[int32]int) // by kind: the job that takes the next one
	jobs := s.jobs[:0]
	for _, j := range s.jobs {
		if j.idle() || parts[j.t] > 1 {
			jobs = append(jobs, j)
			continue
		}
		at, ok := last[kind[j.t]]
		if !ok || len(jobs[at].lids)+len(j.lids) > most {
			last[kind[j.t]] = len(jobs)
			j.sets = []twin{{t: j.t, mgmt: span{0, j.mgmt}, hosts: span{j.mgmt, len(j.lids)}}}
			jobs = append(jobs, j)
			continue
		}
		jobs[at].join(j)
	}
	for i := range jobs {
		if len(jobs[i].sets) == 1 {
			jobs[i].sets = nil
		}
	}
	s.jobs = jobs
}

// join adds the one destination of another job.
func (j *spreadJob) join(other spreadJob) {
	for i := range j.sets {
		j.sets[i].hosts.from += other.mgmt
		j.sets[i].hosts.end += other.mgmt
	}
	hosts := len(other.lids) - other.mgmt
	lids := make([]fabric.LID, 0, len(j.lids)+len(other.lids))
	lids = append(append(lids, j.lids[:j.mgmt]...), other.lids[:other.mgmt]...)
	lids = append(append(lids, j.lids[j.mgmt:]...), other.lids[other.mgmt:]...)
	j.sets = append(j.sets, twin{t: other.t, mgmt: span{j.mgmt, j.mgmt + other.mgmt}, hosts: span{len(lids) - hosts, len(lids)}})
	j.lids = lids
	j.mgmt += other.mgmt
	j.findRuns()
}

// findRuns lists the runs of lids.
func (j *spreadJob) findRuns() {
	j.runs = nil
	for k, lid := range j.lids {
		if k == 0 || lid != j.lids[k-1]+1 {
			j.runs = append(j.runs, lidRun{lid: lid, at: int32(k)})
		}
		j.runs[len(j.runs)-1].n++
	}
}

// giveRoles marks the twins of the job and their neighbours, or none again.
func (p *Placer) giveRoles(twin, neighbour uint8) {
	if len(p.job.sets) == 0 {
		return
	}
	_, to := p.s.fab.SwitchLinks(p.job.t)
	for _, v := range to {
		p.role[v] = neighbour
	}
	for i := range p.job.sets {
		p.role[p.job.sets[i].t] = twin
	}
}

// placeTwin sends the LIDs of the other twins from twin i on their ways.
func (p *Placer) placeTwin(i int, ports []fabric.PortID) {
	s, own := p.s, &p.job.sets[i]
	u := own.t
	weight := p.weight[int(u)*p.stride:][:len(p.job.lids)]
	for k := p.job.mgmt; k < len(weight); k++ {
		if h := s.hosts[u]; h > 0 && (k < own.hosts.from || k >= own.hosts.end) {
			weight[k] += h
			p.loaded[u].add(k)
			p.routes[u] += uint64(h)
		}
	}
	ways := p.row
	if len(ports) == 1 {
		p.only(u, ports[0], weight)
	} else {
		ways = p.choose(u, ports, p.start(ports), weight)
		p.chosen = 0 // others send to all twins
	}
	row := s.tables.Row(u)
	for _, x := range [2]span{own.mgmt, own.hosts} {
		for k := x.from; k < x.end; k++ {
			ways[k] = row[p.job.lids[k]]
		}
	}
	p.job.put(row, ways)
}

// firstTwin places the job's first destination, which the tree is grown for
// and which Place therefore never gets, by its channels to the switches that
// another twin may send to.
func (p *Placer) firstTwin(ports []fabric.PortID) {
	mine, to := p.s.fab.SwitchLinks(p.job.t)
	same := make([]fabric.PortID, 0, len(ports))
	for i, c := range mine {
		if slices.ContainsFunc(ports, func(x fabric.PortID) bool { return p.s.to[x] == to[i] }) {
			same = append(same, c)
		}
	}
	p.placeTwin(0, same)
}

// channelsTo lists the channels from v to its neighbour t.
func (p *Placer) channelsTo(v, t fabric.NodeID) []fabric.PortID {
	ports, to := p.s.fab.SwitchLinks(v)
	p.last = p.last[:0]
	for i, c := range ports {
		if to[i] == t {
			p.last = append(p.last, c)
		}
	}
	return p.last
}

// deliver sends the LIDs of each twin from their neighbour v through the least
// loaded of its channels there.
func (p *Placer) deliver(v fabric.NodeID, weight []uint32) {
	s := p.s
	for i := range p.job.sets {
		x := &p.job.sets[i]
		ports := p.channelsTo(v, x.t)
		start := p.start(ports)
		s.deal(p.row[x.mgmt.from:x.mgmt.end], ports, start)
		for k := x.hosts.from; k < x.hosts.end; k++ {
			best := ports[start]
			for _, c := range ports {
				if s.load[c]+p.pending[c] < s.load[best]+p.pending[best] {
					best = c
				}
			}
			p.row[k] = s.num[best]
			p.pending[best] += uint64(weight[k]) * s.unit[best]
		}
	}
}

// lookAtTwins is look for a neighbour of twins: what comes to it divides over
// them, and of each the least loaded channel counts.
func (p *Placer) lookAtTwins(v fabric.NodeID, found *way) {
	s := p.s
	channels, unit := 0, uint64(0)
	for i := range p.job.sets {
		ports := p.channelsTo(v, p.job.sets[i].t)
		best := ports[0]
		for _, c := range ports {
			if s.load[c] < s.load[best] {
				best = c
			}
			unit = max(unit, s.unit[c])
		}
		channels += len(ports)
		if load := float64(s.load[best]); load >= found.near {
			found.near = load
			p.far[v] = s.cost[best]
		}
	}
	found.each = float64(unit) / float64(channels)
	found.next = p.job.t
}

// nextTwin returns which LID after k, by index in the job, is the first of
// another twin, for choose. The LIDs of one twin have the last channel in
// common, so that more of them on one side weigh more, and it takes back what
// those before weighed.
func (p *Placer) nextTwin(k int, sides []side, keys []uint64) int {
	if len(p.job.sets) == 0 {
		return -1
	}
	for i := range keys {
		at := i + p.began
		if at >= len(sides) {
			at -= len(sides)
		}
		if x := &sides[at]; x.same > 0 {
			x.same = 0
			keys[i] = x.key(i)
		}
	}
	for i := range p.job.sets {
		if h := p.job.sets[i].hosts.from; h > k && i > 0 {
			return h
		}
	}
	return len(p.job.lids)
}
