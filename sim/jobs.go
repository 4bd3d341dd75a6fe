package sim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/traffic"
)

// Job is the programs of a job, which run at the same time.
type Job struct{ Parts []Part }

// Part is a program, with the ports of its ranks.
type Part struct {
	Program *traffic.Program
	Ports   []fabric.PortID // by rank; ranks may share a port
	Hosts   []int32         // by rank: its host; ranks of one host exchange messages in no time, without the fabric
	// Nodes is how many ranks, the last ones, are switches. Such a rank sends by its port, among the
	// packets that the switch forwards, and receives at port 0, at any rate.
	Nodes int
	// Multicast has, by rank, where messages to all others go; nil if there are none.
	Multicast []MulticastTo
}

// MulticastTo tells where a rank's messages to all others go. Each port in Receivers gets a copy,
// except the sender's own.
type MulticastTo struct {
	MLID      fabric.LID
	SL        fabric.SL
	Receivers []fabric.PortID
}

// Jobs are the jobs of a simulation, which all begin at time 0.
type Jobs struct {
	Jobs []Job
	// Background is the bytes that all ports of CAs and routers with a LID send to each other, in
	// packets of an MTU at random times. The rate is such that the bytes take as long as the slowest
	// job on a crossbar, but at most the rate of links. It lasts until all jobs are done.
	Background float64
	Seed       uint64 // of Background
	SLs        int    // as in Traffic
}

// JobsDone is the result of RunJobs.
type JobsDone struct {
	Jobs []JobDone // in the order given
	// Waits tells how long packets of jobs waited and for what, from samples at many moments, in the
	// order of job, port and By. It is nil with flits.
	Waits []Waited
	Loads []Load // by PortID: what it sent
	Time  Time   // when the last job was done
	// TimeUp is true if maxTime ended the simulation.
	TimeUp     bool
	Counts     Counts
	Reordering *Reordering // nil without adaptive tables
	Limits     *Limits     // nil with flits
}

// JobDone is the result of one job.
type JobDone struct {
	At       Time  // when it was done; 0 if it was not, or sends nothing
	Messages int64 // over the fabric
	Bytes    int64 // sent over the fabric
	Left     int64 // messages not yet arrived everywhere
	// Crossbar is how long the busiest host port takes to send or receive its bytes of the job.
	Crossbar Time
}

// RunJobs simulates jobs until all are done, or until maxTime if that is not 0. Errors are those of
// New and Run, and about ports that cannot send or have no LID.
func RunJobs(ctx context.Context, net Network, cfg Config, jobs Jobs, maxTime Time) (*JobsDone, error) {
	d := &jobsDriver{Jobs: jobs, out: &JobsDone{Jobs: make([]JobDone, len(jobs.Jobs))}}
	s, err := New(net, cfg, d)
	if err != nil {
		return nil, err
	}
	senders, err := d.prepare(s)
	if err != nil {
		return nil, err
	}
	l := newLimits(s, senders, firstStep)
	if l != nil {
		s.sent = slices.Repeat([]int64{neverSent}, len(s.ports))
		l.waits = &waitCounter{s: s, jobOf: d.jobOf, count: make([]Time, len(jobs.Jobs)+1), of: make(map[Waited]Time)}
	}
	s.Wake(0, beginJobs)
	if err := l.runAll(ctx, s, maxTime, &d.err); err != nil {
		return nil, err
	}
	m := d.out
	for i := range m.Jobs {
		m.Time = max(m.Time, m.Jobs[i].At)
	}
	if m.TimeUp = d.running > 0 && s.events.len() > 0; m.TimeUp {
		m.Time = s.Now()
	}
	m.Counts, m.Reordering, m.Limits = s.Counts(), s.Reordering(), l.result(m.Time, true)
	m.Loads = text.Each(s.ports, func(p port) Load { return p.load })
	if l != nil {
		m.Waits = l.waits.list()
	}
	return m, nil
}

// jobsDriver sends the messages of jobs.
type jobsDriver struct {
	Jobs
	out     *JobsDone
	parts   []jobPart
	running int             // jobs that are not done
	sent    []int64         // by port: messages
	copies  map[int64]int32 // by tag of a multicast message: copies under way
	arrived []int64         // scratch
	noise   noise
	err     error
}

// jobPart is a running part.
type jobPart struct {
	*Part
	job   int
	lids  []fabric.LID // by rank
	waits []int32      // by message: how many messages it still waits for
	next  *graph.CSR[int32]
}

// noise is the background traffic.
type noise struct {
	hosts []fabric.PortID
	rngs  []*rand.Rand // by host
	gap   float64      // mean ps between messages of a host, 0 without background
	bytes int          // of each message
	// By host: messages under way, and whether the next waits for these.
	sent   []int
	stands []bool
}

// maxNoise bounds a host's background messages under way. Without it queues would grow for ever if
// the network cannot carry the background.
const maxNoise = 8

// The ids of wakes: beginJobs starts the jobs; wakeHosts+i is for host i of the background.
const (
	beginJobs = iota
	wakeHosts
)

// The tag of a job's message is the index of its part, and in the lower messageBits bits its index
// in the part. Background messages of host i have the tag noiseTag-i.
const (
	messageBits = 32
	noiseTag    = -1
)

// prepare checks all parts, counts what they send, and returns the ports that send.
func (d *jobsDriver) prepare(s *Sim) (senders []fabric.PortID, err error) {
	d.sent = make([]int64, len(s.ports))
	d.copies = make(map[int64]int32)
	slowest := Time(0)
	for job := range d.Jobs.Jobs {
		out := &d.out.Jobs[job]
		bytes := make(map[fabric.PortID]*[2]int64) // sent and received
		for i := range d.Jobs.Jobs[job].Parts {
			p, err := newPart(s, &d.Jobs.Jobs[job].Parts[i], job)
			if err != nil {
				return nil, err
			}
			p.count(out, bytes)
			d.parts = append(d.parts, p)
		}
		for port, b := range bytes {
			if !s.ports[port].isHost {
				continue
			}
			out.Crossbar = max(out.Crossbar, Time(math.Ceil(float64(max(b[0], b[1]))*float64(s.ports[port].rate)/1024)))
			if b[0] > 0 {
				senders = append(senders, port)
			}
		}
		if out.Left = out.Messages; out.Left > 0 {
			d.running++
		}
		slowest = max(slowest, out.Crossbar)
	}
	slices.Sort(senders)
	d.prepareNoise(s, slowest)
	return slices.Compact(senders), nil
}

// newPart checks and prepares a part.
func newPart(s *Sim, part *Part, job int) (p jobPart, err error) {
	f := s.net.Fabric
	p = jobPart{Part: part, job: job}
	for rank, port := range p.Ports {
		if rank >= len(p.Ports)-p.Nodes {
			p.lids = append(p.lids, f.LID(f.PortBase(f.Owner(port))))
			continue
		}
		if port < 0 || int(port) >= len(s.ports) || !s.ports[port].isHost || f.LID(port) == 0 {
			return p, fmt.Errorf("port %d cannot send: want one of a CA or router, with a cable and a LID", port)
		}
		p.lids = append(p.lids, f.LID(port))
	}
	n := len(p.Program.Messages)
	p.waits = make([]int32, n)
	p.next = graph.NewCSR(n, func(m int32) []int32 {
		after := p.Program.After(int(m))
		p.waits[m] = int32(len(after))
		return after
	}).Reverse()
	return p, nil
}

// count adds a part's messages and their bytes to out, and to bytes what each port sends and
// receives.
func (p *jobPart) count(out *JobDone, bytes map[fabric.PortID]*[2]int64) {
	add := func(port fabric.PortID, way int, n int64) {
		if bytes[port] == nil {
			bytes[port] = new([2]int64)
		}
		bytes[port][way] += n
	}
	for i, m := range p.Program.Messages {
		if !p.crosses(i) {
			continue
		}
		out.Messages++
		out.Bytes += m.Bytes
		from := p.Ports[m.Src]
		add(from, 0, m.Bytes)
		if m.Dst != traffic.All {
			add(p.Ports[m.Dst], 1, m.Bytes)
			continue
		}
		for _, to := range p.Multicast[m.Src].Receivers {
			if to != from {
				add(to, 1, m.Bytes)
			}
		}
	}
}

// crosses returns true if message i goes over the fabric.
func (p *jobPart) crosses(i int) bool {
	m := &p.Program.Messages[i]
	if m.Dst == traffic.All {
		return m.Bytes > 0 && p.copiesOf(m.Src) > 0
	}
	return m.Bytes > 0 && p.Hosts[m.Src] != p.Hosts[m.Dst]
}

// copiesOf returns how many ports receive a message that rank sends to all.
func (p *jobPart) copiesOf(rank int32) int32 {
	return int32(text.CountIf(p.Multicast[rank].Receivers, func(to fabric.PortID) bool { return to != p.Ports[rank] }))
}

// prepareNoise sets the gap so that the background lasts as long as the slowest job.
func (d *jobsDriver) prepareNoise(s *Sim, slowest Time) {
	f := s.net.Fabric
	for _, p := range f.CAPorts() {
		if f.LID(p) != 0 && s.ports[p].isHost && f.PortCounts(p, fabric.ForLoad) {
			d.noise.hosts = append(d.noise.hosts, p)
			d.noise.rngs = append(d.noise.rngs, rand.New(rand.NewPCG(d.Seed, uint64(p))))
		}
	}
	d.noise.bytes = cmp.Or(s.cfg.MTU, min(4096, s.cfg.FlitBytes*s.cfg.BufferFlits-s.cfg.HeaderBytes))
	n := len(d.noise.hosts)
	d.noise.sent, d.noise.stands = make([]int, n), make([]bool, n)
	if d.Background > 0 && n > 1 {
		least := Time(0) // time of a message on the slowest link
		for _, p := range d.noise.hosts {
			least = max(least, takes(int32(d.noise.bytes+s.cfg.HeaderBytes), s.ports[p].rate))
		}
		d.noise.gap = max(float64(least), float64(d.noise.bytes)*float64(n)*float64(slowest)/d.Background)
	}
}

// Wake begins the jobs, or lets a host send a background packet.
func (d *jobsDriver) Wake(s *Sim, id int64) {
	if id >= wakeHosts {
		d.send(s, int(id-wakeHosts))
		return
	}
	for i := range d.parts {
		for m, waits := range d.parts[i].waits {
			if waits == 0 {
				d.begin(s, i, int32(m))
			}
		}
	}
	d.finish(s)
	if d.noise.gap > 0 {
		for i := range d.noise.hosts {
			d.next(s, i)
		}
	}
}

// next lets a host send its next background packet after a random time.
func (d *jobsDriver) next(s *Sim, host int) {
	gap := -math.Log(1-d.noise.rngs[host].Float64()) * d.noise.gap
	s.Wake(s.Now()+Time(math.Round(gap)), int64(host)+wakeHosts)
}

// send lets a host send a background packet if a job still runs.
func (d *jobsDriver) send(s *Sim, host int) {
	if d.running == 0 {
		return
	}
	if d.noise.stands[host] = d.noise.sent[host] == maxNoise; d.noise.stands[host] {
		return
	}
	d.noise.sent[host]++
	hosts := d.noise.hosts
	to := drawOther(host, len(hosts), d.noise.rngs[host])
	d.give(s, Message{Src: hosts[host], DLID: s.net.Fabric.LID(hosts[to]), SL: d.sl(hosts[host], host), Bytes: d.noise.bytes, Tag: noiseTag - int64(host)})
	d.next(s, host)
}

// sl returns the SL of the next message of a rank at port p.
func (d *jobsDriver) sl(p fabric.PortID, rank int) fabric.SL {
	if d.SLs == 0 {
		return PathSL
	}
	d.sent[p]++
	return fabric.SL((int64(rank) + d.sent[p] - 1) % int64(d.SLs))
}

func (d *jobsDriver) give(s *Sim, m Message) {
	if err := s.sendFrom(m); err != nil && d.err == nil {
		d.err = err
	}
}

// begin sends message i, or takes it as arrived if it does not cross the fabric.
func (d *jobsDriver) begin(s *Sim, part int, i int32) {
	p := &d.parts[part]
	tag := int64(part)<<messageBits | int64(i)
	if !p.crosses(int(i)) {
		d.arrived = append(d.arrived, tag)
		return
	}
	m := &p.Program.Messages[i]
	out := Message{Src: p.Ports[m.Src], Bytes: int(m.Bytes), Tag: tag}
	if m.Dst == traffic.All {
		to := &p.Multicast[m.Src]
		out.DLID, out.SL = to.MLID, to.SL
		d.copies[tag] = p.copiesOf(m.Src)
	} else {
		// Messages use the LIDs of a port in turn.
		out.DLID = p.lids[m.Dst] + fabric.LID(int(i)%(1<<s.net.Fabric.LMC(p.Ports[m.Dst])))
		out.SL = d.sl(out.Src, int(m.Src))
	}
	d.give(s, out)
}

// Deliver counts arrivals, and goes on with what waited for a message that is complete.
func (d *jobsDriver) Deliver(s *Sim, x *Delivery) {
	switch {
	case !x.Last:
		return
	case x.Tag <= noiseTag:
		host := int(noiseTag - x.Tag)
		if d.noise.sent[host]--; d.noise.stands[host] {
			d.send(s, host)
		}
		return
	}
	if left, multi := d.copies[x.Tag]; multi {
		if d.copies[x.Tag] = left - 1; left > 1 {
			return
		}
		delete(d.copies, x.Tag)
	}
	out := &d.out.Jobs[d.parts[x.Tag>>messageBits].job]
	if out.Left--; out.Left == 0 {
		out.At = x.At
		d.running--
	}
	d.arrived = append(d.arrived, x.Tag)
	d.finish(s)
}

// finish begins all messages that waited only for those in d.arrived.
func (d *jobsDriver) finish(s *Sim) {
	for k := 0; k < len(d.arrived); k++ {
		part := int(d.arrived[k] >> messageBits)
		p := &d.parts[part]
		for _, next := range p.next.Next(int32(d.arrived[k])) {
			if p.waits[next]--; p.waits[next] == 0 {
				d.begin(s, part, next)
			}
		}
	}
	d.arrived = d.arrived[:0]
}

// jobOf returns the index of a message's job; the background counts as one more job.
func (d *jobsDriver) jobOf(tag int64) int {
	if tag <= noiseTag {
		return len(d.out.Jobs)
	}
	return d.parts[tag>>messageBits].job
}
