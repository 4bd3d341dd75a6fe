package jobs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// Result has what jobs send and, with tables, the loads.
type Result struct {
	Bytes      float64   `json:"bytes"` // of all jobs and the background, between hosts
	Background float64   `json:"background_bytes"`
	Jobs       []Job     `json:"jobs"` // in natural order of their names
	Overlaps   []Overlap `json:"overlaps"`
	Loads      *LoadsOf  `json:"loads,omitempty"` // nil without tables
	// Trees of switches add up all-reduces; nil if not asked for. Meetings are pairs that meet.
	Trees    []*Reduction `json:"trees,omitempty"`
	Meetings []*Meeting   `json:"meetings,omitempty"`
}

// Job is one job.
type Job struct {
	Job   string  `json:"job"`
	Hosts int     `json:"hosts"`
	Ranks int     `json:"ranks"`
	Bytes float64 `json:"bytes"`      // that leave its hosts
	Lost  float64 `json:"lost_bytes"` // of these, what the tables do not deliver; 0 without tables
	*Times
}

// Times is how long the bytes of a job take, by static loads. All jobs begin
// at once, and those that have bytes left for a cable share its rate evenly.
// So a job with b bytes is done when each job has sent b bytes, or all its
// bytes if they are fewer.
type Times struct {
	// Ideal is the time of the job's busiest host cable for the job's bytes alone, as on a
	// crossbar; seconds.
	Ideal float64 `json:"ideal_seconds"`
	// Alone and Together are the times that the slowest cable takes, with the job alone and with
	// all jobs, divided by Ideal: 1 or more; 0 for a job without bytes.
	Alone    float64 `json:"alone"`
	Together float64 `json:"together"`
	// Cable is the slowest cable with all jobs; nil for a job without bytes.
	Cable *Cable `json:"cable"`
	// Blame is the job that takes longest on that cable: another job or Background, or its own name
	// if its own routes slow it down. It is "" if no cable does.
	Blame string `json:"blame"`
}

// LoadsOf has the loads of cables by jobs.
type LoadsOf struct {
	Cables []Cable  `json:"cables"` // between switches, the slowest first
	Shared []Shared `json:"shared"`
}

// Cable is one direction of a cable, with its load.
type Cable struct {
	verify.Cable
	Bytes   float64 `json:"bytes"`
	Seconds float64 `json:"seconds"` // for all bytes; unknown rates count as the commonest
	Jobs    []Part  `json:"jobs"`    // those with most bytes first
}

// Part is the share of a job in the bytes of a cable.
type Part struct {
	Job   string  `json:"job"`
	Bytes float64 `json:"bytes"`
}

// Shared is cables between switches that two jobs share.
type Shared struct {
	Jobs   [2]string `json:"jobs"`
	Cables int       `json:"cables"` // each direction counts
	// Seconds is the longest time of a cable for the bytes of the job that has
	// fewer on it. Worst is that cable; its Jobs are these two alone, as pairs
	// may be as many as the square of the jobs.
	Seconds float64 `json:"seconds"`
	Worst   Cable   `json:"worst"`
}

// Overlap is hosts that run several jobs.
type Overlap struct {
	Jobs  [2]string `json:"jobs"`
	Hosts string    `json:"hosts"` // a list with numbers in brackets
}

// Load is the share of a job in the bytes of a channel.
type Load struct {
	Job   int32 // its index, in natural order of names
	Bytes float64
}

// Judge counts what jobs send and, unless tables is nil, what they load. cables bounds the list of
// cables. It takes O(switches x LIDs of the jobs), and the pairs of ranks that send. Errors: ctx's,
// and jobs that send more than can be counted.
func (t *Traffic) Judge(ctx context.Context, tables *lft.Tables, cables int) (*Result, error) {
	r := &Result{Jobs: []Job{}, Overlaps: t.overlaps()}
	if err := t.countBytes(ctx, r); err != nil {
		return nil, err
	}
	if tables == nil {
		return r, nil
	}
	by, lost, err := t.Loads(ctx, tables)
	if err != nil {
		return nil, err
	}
	for i := range r.Jobs {
		r.Jobs[i].Lost = lost[i]
	}
	if r.Background > 0 {
		routes, err := lft.ChannelLoads(ctx, t.f, tables)
		if err != nil {
			return nil, err
		}
		_, pairs := t.ends()
		for p, n := range routes {
			if n > 0 {
				by[p] = append(by[p], Load{int32(len(t.jobs)), float64(float64(r.Background*float64(n)) / float64(pairs))})
			}
		}
	}
	m := t.newMeter(by)
	for i := range r.Jobs {
		r.Jobs[i].Times = m.times(int32(i), t.jobs[i])
	}
	r.Loads = m.loads(cables)
	return r, nil
}

// Loads returns the loads of jobs under tables, by PortID and ascending job,
// and by job the bytes that the tables do not deliver, both without the
// background. Errors: ctx's.
func (t *Traffic) Loads(ctx context.Context, tables *lft.Tables) (by [][]Load, lost []float64, err error) {
	by = make([][]Load, t.f.NumPorts())
	for i, j := range t.jobs {
		units, missing, err := lft.DemandLoads(ctx, t.f, tables, j.ends, t.senders(j))
		if err != nil {
			return nil, nil, err
		}
		for p, n := range units {
			if n > 0 {
				by[p] = append(by[p], Load{int32(i), float64(n) / scale})
			}
		}
		lost = append(lost, float64(missing)/scale)
	}
	return by, lost, nil
}

// ends lists the ports of background traffic. pairs counts their pairs with a LID of another port.
func (t *Traffic) ends() (ends []fabric.PortID, pairs int64) {
	lids := int64(0)
	for _, s := range t.f.Switches() {
		for _, p := range t.f.HostsOn(s) {
			ends = append(ends, p)
			lids += int64(t.lids(p))
		}
	}
	return ends, lids * int64(len(ends)-1)
}

// lids counts the LIDs of a port; 1 if it has none.
func (t *Traffic) lids(p fabric.PortID) int {
	if t.f.LID(p) == 0 {
		return 1
	}
	return 1 << t.f.LMC(p)
}

// overlaps lists the pairs of jobs that have hosts in common.
func (t *Traffic) overlaps() []Overlap {
	on := make(map[int32][]int32) // by host: jobs
	name := make(map[int32]string)
	for i, j := range t.jobs {
		for _, h := range j.hosts {
			n := t.host[t.f.Owner(h.Ports[0])]
			name[n] = h.Name
			if list := on[n]; len(list) == 0 || list[len(list)-1] != int32(i) {
				on[n] = append(list, int32(i))
			}
		}
	}
	// Hosts with the same jobs are a class. Pairs of jobs on the same classes share a text.
	classes := make(map[string][]int32) // by the text of a list of jobs: hosts
	for _, n := range slices.Sorted(maps.Keys(on)) {
		key := fmt.Sprint(on[n])
		classes[key] = append(classes[key], n)
	}
	shared := make(map[[2]int32][]int32) // by pair of jobs: the first host of each class
	for _, hosts := range classes {
		jobs := on[hosts[0]]
		for i, a := range jobs {
			for _, b := range jobs[i+1:] {
				shared[[2]int32{a, b}] = append(shared[[2]int32{a, b}], hosts[0])
			}
		}
	}
	folded := make(map[string]string) // by the text of a list of first hosts
	list := []Overlap{}
	for _, pair := range sortedPairs(shared) {
		slices.Sort(shared[pair])
		key := fmt.Sprint(shared[pair])
		if _, known := folded[key]; !known {
			var names []string
			for _, first := range shared[pair] {
				for _, n := range classes[fmt.Sprint(on[first])] {
					names = append(names, name[n])
				}
			}
			folded[key] = hostlist.Fold(names)
		}
		list = append(list, Overlap{[2]string{t.jobs[pair[0]].name, t.jobs[pair[1]].name}, folded[key]})
	}
	return list
}

// sortedPairs returns the keys of a map, ascending.
func sortedPairs[V any](m map[[2]int32]V) [][2]int32 {
	return slices.SortedFunc(maps.Keys(m), func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
}

// meter computes times from loads and the rates of cables.
type meter struct {
	t       *Traffic
	by      [][]Load        // by PortID: the loads that leave it, by job
	rate    []float64       // see Rates
	bytes   []float64       // by PortID: the sum of by
	between []fabric.PortID // channels between switches with a load
}

func (t *Traffic) newMeter(by [][]Load) *meter {
	m := &meter{t: t, by: by, rate: Rates(t.f), bytes: make([]float64, len(by))}
	for p, loads := range by {
		for _, l := range loads {
			m.bytes[p] += l.Bytes
		}
	}
	m.between = slices.DeleteFunc(slices.Clone(t.f.Channels()), func(p fabric.PortID) bool { return len(by[p]) == 0 })
	return m
}

// Rates returns by PortID the bytes per second of a port's cable; 0 without one. An unknown rate
// counts as the most common one.
func Rates(f *fabric.Fabric) []float64 {
	var cabled []fabric.PortID
	for _, n := range f.Nodes() {
		cabled = slices.AppendSeq(cabled, f.Cabled(n))
	}
	rate := make([]float64, f.NumPorts())
	for i, mbps := range bound.Rates(f, cabled) {
		rate[cabled[i]] = float64(mbps) * 1e6 / 8
	}
	return rate
}

func (m *meter) times(job int32, j *flows) *Times {
	x := &Times{}
	alone, together, own := 0.0, 0.0, 0.0
	slowest := fabric.NoPort
	visit := func(p fabric.PortID, isHost bool) {
		i := slices.IndexFunc(m.by[p], func(l Load) bool { return l.Job == job })
		if i < 0 {
			return
		}
		bytes, sum := m.by[p][i].Bytes, 0.0
		for _, l := range m.by[p] {
			sum += min(l.Bytes, bytes)
		}
		alone = max(alone, bytes/m.rate[p])
		if isHost {
			x.Ideal = max(x.Ideal, bytes/m.rate[p])
		}
		if time := sum / m.rate[p]; time > together {
			together, slowest, own = time, p, bytes
		}
	}
	for _, p := range m.between {
		visit(p, false)
	}
	for _, p := range j.ends {
		visit(p, true)
		visit(m.t.f.Peer(p), true)
	}
	if slowest == fabric.NoPort {
		return x
	}
	x.Alone, x.Together = alone/x.Ideal, together/x.Ideal
	c := m.cable(slowest, m.by[slowest])
	x.Cable = &c
	const least = 1.000001 // a smaller excess is rounding
	switch {
	case x.Together > x.Alone*least:
		most := 0.0
		for _, l := range m.by[slowest] {
			if bytes := min(l.Bytes, own); l.Job != job && bytes > most {
				most, x.Blame = bytes, m.t.Name(l.Job)
			}
		}
	case x.Alone > least:
		x.Blame = m.t.Name(job)
	}
	return x
}

// Name returns the name of a job by its index; the index after the last is the background.
func (t *Traffic) Name(job int32) string {
	if int(job) == len(t.jobs) {
		return Background
	}
	return t.jobs[job].name
}

// loads lists the slowest cables, up to the bound most, and those that jobs share.
func (m *meter) loads(most int) *LoadsOf {
	l := &LoadsOf{Cables: []Cable{}, Shared: []Shared{}}
	seconds := make(map[fabric.PortID]float64, len(m.between))
	for _, p := range m.between {
		seconds[p] = m.bytes[p] / m.rate[p]
	}
	slices.SortFunc(m.between, func(a, b fabric.PortID) int { return cmp.Or(cmp.Compare(seconds[b], seconds[a]), cmp.Compare(a, b)) })
	for _, p := range m.between[:min(most, len(m.between))] {
		l.Cables = append(l.Cables, m.cable(p, m.by[p]))
	}
	type sharing struct {
		cables  int
		seconds float64
		worst   fabric.PortID
		parts   [2]Load
	}
	pairs := make(map[[2]int32]*sharing)
	for _, p := range m.between {
		for i, a := range m.by[p] {
			for _, b := range m.by[p][i+1:] {
				pair := [2]int32{a.Job, b.Job}
				if int(b.Job) == len(m.t.jobs) {
					continue // background is everywhere
				}
				s := pairs[pair]
				if s == nil {
					s = &sharing{}
					pairs[pair] = s
				}
				s.cables++
				if time := min(a.Bytes, b.Bytes) / m.rate[p]; time > s.seconds {
					s.seconds, s.worst, s.parts = time, p, [2]Load{a, b}
				}
			}
		}
	}
	for _, pair := range sortedPairs(pairs) {
		s := pairs[pair]
		l.Shared = append(l.Shared, Shared{[2]string{m.t.Name(pair[0]), m.t.Name(pair[1])}, s.cables, s.seconds, m.cable(s.worst, s.parts[:])})
	}
	slices.SortStableFunc(l.Shared, func(a, b Shared) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return l
}

// cable returns a channel with some of its loads.
func (m *meter) cable(p fabric.PortID, loads []Load) Cable {
	parts := text.Each(loads, func(l Load) Part { return Part{m.t.Name(l.Job), l.Bytes} })
	c := Cable{verify.CableOf(m.t.f, p), m.bytes[p], m.bytes[p] / m.rate[p], parts}
	slices.SortStableFunc(c.Jobs, func(a, b Part) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return c
}

// countBytes counts what jobs and the background send.
func (t *Traffic) countBytes(ctx context.Context, r *Result) error {
	c := t.newCounter(1)
	units := int64(0)
	for _, j := range t.jobs {
		sum := int64(0)
		for dst, to := range j.ends {
			if err := c.count(ctx, j, dst, func(int, int64) int32 { return 0 }); err != nil {
				return err
			}
			for _, from := range c.list {
				sum += c.sum[from] * int64(t.lids(to))
			}
		}
		r.Jobs = append(r.Jobs, Job{Job: j.name, Hosts: len(j.hosts), Ranks: j.ranks, Bytes: float64(sum) / scale})
		units += sum
	}
	r.Bytes = float64(units) / scale
	if _, pairs := t.ends(); pairs > 0 {
		r.Background = float64(r.Bytes*t.background) / (1 - t.background)
		r.Bytes += r.Background
	}
	return nil
}

// counter adds up what one port gets, by a number of each sender, such as its switch.
type counter struct {
	t     *Traffic
	sum   []int64 // by number: units for each LID of the port
	list  []int32 // the numbers with a sum
	bytes float64 // of all that was counted
}

func (t *Traffic) newCounter(numbers int) *counter {
	return &counter{t: t, sum: make([]int64, numbers)}
}

// count adds up what a job sends to its port with index dst. of returns the number of a sender.
// Errors: ctx's, and a sum that is too great.
func (c *counter) count(ctx context.Context, j *flows, dst int, of func(src int, amount int64) int32) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, k := range c.list {
		c.sum[k] = 0
	}
	c.list = c.list[:0]
	lids := float64(c.t.lids(j.ends[dst]))
	for src, amount := range c.t.senders(j)(dst) {
		if c.bytes += float64(float64(amount)*lids) / scale; c.bytes > mostBytes {
			return fmt.Errorf("%s and the jobs before it send more than %d bytes; want smaller sizes or weights", j.name, int64(mostBytes))
		}
		k := of(src, amount)
		if c.sum[k] == 0 {
			c.list = append(c.list, k)
		}
		c.sum[k] += amount
	}
	return nil
}
