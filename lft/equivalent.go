package lft

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// Equivalent switches have their channels to the same neighbours, as the leaves of a pod
// have. All other switches except these neighbours reach them by the same ports. So a tree
// grown for one serves all, and one job places their LIDs together, which takes half of
// the time. A class is all switches that are equivalent to each other. A member sends to
// the other members by the neighbours, and a neighbour is one channel from each.
//
// Equivalence is used a second time for the switches that send: those of which the ports
// lead to the same switches, one by one, choose once for all of a run of them, see
// Placement.PlaceEquivalent.

// member is one of the destinations of a job: a switch of the class, and which of the
// job's LIDs are its own.
type member struct {
	t           fabric.NodeID
	mgmt, hosts span // of its LIDs without load, and of those of its hosts
}

// span is lids[from:end] of a job.
type span struct{ from, end int }

// Roles of switches in a job of several members.
const (
	roleNone uint8 = iota
	roleMember
	roleNeighbour
)

// EquivalentSwitches numbers the classes of switches of which the channels lead to the
// same switches, one by one: the class by NodeID.
func EquivalentSwitches(f *fabric.Fabric) []int32 {
	class, _, _ := graph.Equivalent(f.NumSwitches(), f.Neighbors)
	return class
}

// joinEquivalent makes one job of the destinations of one class that have hosts, as
// many as have 64 LIDs together, or more in fabrics so large that these are
// still few.
func (s *Balancer) joinEquivalent(class []int32) {
	most := min(max(64, int(s.fab.MaxLID())/joinedJobsAtLeast), maxJobLIDs)
	parts := make([]uint8, len(s.hosts)) // jobs of a destination, at most 2
	for _, j := range s.jobs {
		parts[j.t] = min(parts[j.t]+1, 2)
	}
	last := make(map[int32]int) // by class: the job that takes the next one
	jobs := s.jobs[:0]
	for _, j := range s.jobs {
		if j.isIdle() || parts[j.t] > 1 {
			jobs = append(jobs, j)
			continue
		}
		at, ok := last[class[j.t]]
		if !ok || len(jobs[at].lids)+len(j.lids) > most {
			last[class[j.t]] = len(jobs)
			j.members = []member{{t: j.t, mgmt: span{0, j.mgmt}, hosts: span{j.mgmt, len(j.lids)}}}
			jobs = append(jobs, j)
			continue
		}
		jobs[at].addDestination(j)
	}
	for i := range jobs {
		if len(jobs[i].members) == 1 {
			jobs[i].members = nil
		}
	}
	s.jobs = jobs
}

// addDestination adds the one destination of another job.
func (j *balancerJob) addDestination(other balancerJob) {
	for i := range j.members {
		j.members[i].hosts.from += other.mgmt
		j.members[i].hosts.end += other.mgmt
	}
	hosts := len(other.lids) - other.mgmt
	lids := make([]fabric.LID, 0, len(j.lids)+len(other.lids))
	lids = append(append(lids, j.lids[:j.mgmt]...), other.lids[:other.mgmt]...)
	lids = append(append(lids, j.lids[j.mgmt:]...), other.lids[other.mgmt:]...)
	j.members = append(j.members, member{t: other.t, mgmt: span{j.mgmt, j.mgmt + other.mgmt}, hosts: span{len(lids) - hosts, len(lids)}})
	j.lids = lids
	j.mgmt += other.mgmt
	j.findRuns()
}

// findRuns lists the runs of lids.
func (j *balancerJob) findRuns() {
	j.runs = nil
	for k, lid := range j.lids {
		if k == 0 || lid != j.lids[k-1]+1 {
			j.runs = append(j.runs, lidRun{lid: lid, at: int32(k)})
		}
		j.runs[len(j.runs)-1].n++
	}
}

// setRoles marks the members of the job and their neighbours, or none again.
func (p *Placement) setRoles(member, neighbour uint8) {
	if len(p.job.members) == 0 {
		return
	}
	_, to := p.s.fab.SwitchLinks(p.job.t)
	for _, v := range to {
		p.role[v] = neighbour
	}
	for i := range p.job.members {
		p.role[p.job.members[i].t] = member
	}
}

// placeMember chooses the entries of member i for the LIDs of the others.
func (p *Placement) placeMember(i int, ports []fabric.PortID) {
	s, own := p.s, &p.job.members[i]
	u := own.t
	weight := p.weight[int(u)*p.stride:][:len(p.job.lids)]
	for k := p.job.mgmt; k < len(weight); k++ {
		if h := s.hosts[u]; h > 0 && (k < own.hosts.from || k >= own.hosts.end) {
			weight[k] += h
			p.loaded[u].add(k)
			p.routes[u] += uint64(h)
		}
	}
	chosen := p.row
	if len(ports) == 1 {
		p.placeOnOnePort(u, ports[0], weight)
	} else {
		chosen = p.choosePorts(u, ports, p.startPort(ports), weight)
		p.chosen = 0 // others send to all members
	}
	row := s.tables.Row(u)
	for _, x := range [2]span{own.mgmt, own.hosts} {
		for k := x.from; k < x.end; k++ {
			chosen[k] = row[p.job.lids[k]]
		}
	}
	p.job.writeRow(row, chosen)
}

// placeFirstMember places the job's first destination, which the tree is grown for
// and which Place therefore never gets, by its channels to the switches that
// another member may send to.
func (p *Placement) placeFirstMember(ports []fabric.PortID) {
	mine, to := p.s.fab.SwitchLinks(p.job.t)
	same := make([]fabric.PortID, 0, len(ports))
	for i, c := range mine {
		if slices.ContainsFunc(ports, func(x fabric.PortID) bool { return p.s.to[x] == to[i] }) {
			same = append(same, c)
		}
	}
	p.placeMember(0, same)
}

// channelsTo lists the channels from v to its neighbour t.
func (p *Placement) channelsTo(v, t fabric.NodeID) []fabric.PortID {
	ports, to := p.s.fab.SwitchLinks(v)
	p.last = p.last[:0]
	for i, c := range ports {
		if to[i] == t {
			p.last = append(p.last, c)
		}
	}
	return p.last
}

// deliverToMembers sends the LIDs of each member from their neighbour v through the least
// loaded of its channels there.
func (p *Placement) deliverToMembers(v fabric.NodeID, weight []uint32) {
	s := p.s
	for i := range p.job.members {
		x := &p.job.members[i]
		ports := p.channelsTo(v, x.t)
		start := p.startPort(ports)
		s.dealPorts(p.row[x.mgmt.from:x.mgmt.end], ports, start)
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

// findNeighbourPath is findPath for a neighbour of the members: what comes to it divides
// over them, and of each the least loaded channel counts.
func (p *Placement) findNeighbourPath(v fabric.NodeID, found *onwardPath) {
	s := p.s
	channels, unit := 0, uint64(0)
	for i := range p.job.members {
		ports := p.channelsTo(v, p.job.members[i].t)
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
			p.pathCost[v] = s.cost[best]
		}
	}
	found.each = float64(unit) / float64(channels)
	found.next = p.job.t
}

// nextMember returns which LID after k, by index in the job, is the first of
// another member, for choosePorts. The LIDs of one member have the last channel in
// common, so that more of them on one side weigh more, and it takes back what
// those before weighed.
func (p *Placement) nextMember(k int, sides []side, keys []uint64) int {
	if len(p.job.members) == 0 {
		return -1
	}
	for i := range keys {
		at := i + p.began
		if at >= len(sides) {
			at -= len(sides)
		}
		if x := &sides[at]; x.same > 0 {
			x.same = 0
			keys[i] = x.costKey(i)
		}
	}
	for i := range p.job.members {
		if h := p.job.members[i].hosts.from; h > k && i > 0 {
			return h
		}
	}
	return len(p.job.lids)
}
