// Package place finds hosts for a job where it and the running jobs disturb each other least. It
// makes no promise to other modules.
//
// Candidates are sets of free hosts: two, and what a search finds from each of
// these; see firstSets and search. Each is judged by the loads that the job's
// pattern puts on cables under the tables, as package jobs counts them: jobs
// that have bytes left for a cable share its rate evenly. The cost of a set is
// the time of the job there, plus the most that a running job is delayed on
// one cable. Fewest lost bytes, then least cost is first; among equals fewer
// shared cables, hops, leaves, and leaves that are no longer free as a whole.
package place

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// Options is the job to place.
type Options struct {
	Hosts   int     // 1 or more
	Pattern string  // as traffic.Parse reads it
	Bytes   float64 // its size
	PerHost int     // ranks; 0 for one on each port
	Sets    int     // to list
	Tries   int     // of the search
}

// Result is the advice.
type Result struct {
	Hosts   int     `json:"hosts"`
	Pattern string  `json:"pattern"`
	Bytes   float64 `json:"size_bytes"`
	PerHost int     `json:"ranks_per_host"` // 0: one on each port
	Free    int     `json:"free_hosts"`
	All     int     `json:"all_hosts"`
	Tried   int     `json:"sets_tried"`
	Sets    []Set   `json:"sets"` // the best first
}

// Set is hosts for the job.
type Set struct {
	Rank     int      `json:"rank"`     // from 1
	Families []string `json:"families"` // that found it
	Hosts    string   `json:"hosts"`    // a list with numbers in brackets
	Names    []string `json:"names"`    // in the order of ranks
	// Cost is Seconds plus Delay; sets are ranked by it.
	Cost    float64 `json:"cost_seconds"`
	Seconds float64 `json:"seconds"`       // of the job, together with running ones
	Alone   float64 `json:"alone_seconds"` // of the job without them
	Ideal   float64 `json:"ideal_seconds"` // on a crossbar: for the busiest cable of a host
	// Delay is the longest additional time that a running job waits, on one cable; Delayed is
	// its name, "" for none.
	Delay   float64 `json:"delay_seconds"`
	Delayed string  `json:"delayed_job"`
	// Shared counts directions of cables between switches shared with a running job.
	Shared  int      `json:"shared_cables"`
	Busiest *Busiest `json:"busiest_shared_cable"` // nil for none
	Hops    float64  `json:"mean_hops"`            // mean number of switches that a byte passes
	Leaves  int      `json:"leaves"`
	Whole   int      `json:"whole_leaves"`  // leaves all of whose hosts the job has
	Broken  int      `json:"broken_leaves"` // leaves that were free as a whole, and are in part
	Lost    float64  `json:"lost_bytes"`    // bytes that the tables do not deliver

	members []int // indices of hosts, ascending
}

// Busiest is the slowest cable that the job shares with running ones.
type Busiest struct {
	verify.Cable
	Added   float64 `json:"added_bytes"`
	Running float64 `json:"running_bytes"`
	Seconds float64 `json:"seconds"` // for the bytes of both
}

// placer finds hosts.
type placer struct {
	f       *fabric.Fabric
	tables  *lft.Tables
	opt     Options
	hosts   []jobs.Host // free, in the order of ranks
	units   []unit
	unit    []int              // by host: its unit
	running [][]jobs.Load      // by PortID
	rate    []float64          // by PortID: bytes per second
	between []fabric.PortID    // channels between switches
	empty   *jobs.Traffic      // without jobs
	names   func(int32) string // names of running jobs, by index
	tried   int
}

// Make finds sets of hosts for a job beside the running ones. hosts are those of jobs.Hosts, and
// free returns true for a free one. If too few are free, there is no set. It takes O(switches x
// LIDs of the job + pairs that send) for each set. Errors: ctx's, and a pattern that does not allow
// that number of ranks.
func Make(ctx context.Context, f *fabric.Fabric, tables *lft.Tables, running *jobs.Traffic, hosts []jobs.Host, free func(h *jobs.Host) bool, opt Options) (*Result, error) {
	p := &placer{f: f, tables: tables, opt: opt, rate: jobs.Rates(f), between: f.Channels(), empty: running.Clear(), names: running.Name}
	p.hosts = text.Where(hosts, func(h jobs.Host) bool { return free(&h) })
	r := &Result{Hosts: opt.Hosts, Pattern: opt.Pattern, Bytes: opt.Bytes, PerHost: opt.PerHost, Free: len(p.hosts), All: len(hosts), Sets: []Set{}}
	if len(p.hosts) < opt.Hosts {
		return r, nil
	}
	var err error
	if p.running, _, err = running.Loads(ctx, tables); err != nil {
		return nil, err
	}
	p.findUnits(hosts)
	sets, err := p.firstSets(ctx)
	if err != nil {
		return nil, err
	}
	for _, from := range slices.Clone(sets) {
		if better, ok, err := p.search(ctx, from, opt.Tries); err != nil {
			return nil, err
		} else if ok {
			sets = append(sets, better)
		}
	}
	slices.SortFunc(sets, compare)
	sets = slices.CompactFunc(sets, func(a, b Set) bool { return slices.Equal(a.members, b.members) })
	r.Tried = p.tried
	for i := range sets[:min(opt.Sets, len(sets))] {
		s := &sets[i]
		s.Rank = i + 1
		s.Hosts = jobs.List(p.pick(s.members))
		s.Names = text.Each(p.pick(s.members), func(h jobs.Host) string { return h.Name })
		r.Sets = append(r.Sets, *s)
	}
	return r, nil
}

// compare puts the better set first. Times are rounded to nanoseconds, as sums are not exact.
func compare(a, b Set) int {
	ns := func(s float64) int64 { return int64(math.Round(s * 1e9)) }
	return cmp.Or(
		cmp.Compare(a.Lost, b.Lost),
		cmp.Compare(ns(a.Cost), ns(b.Cost)),
		cmp.Compare(a.Shared, b.Shared),
		cmp.Compare(ns(a.Hops), ns(b.Hops)),
		cmp.Compare(a.Leaves, b.Leaves),
		cmp.Compare(a.Broken, b.Broken),
		slices.Compare(a.members, b.members))
}

func (p *placer) pick(members []int) []jobs.Host {
	return text.Each(members, func(h int) jobs.Host { return p.hosts[h] })
}

// judge sets the figures of a set.
func (p *placer) judge(ctx context.Context, s *Set) error {
	t := p.empty.Clear()
	if err := t.Add("job", p.pick(s.members), p.opt.Pattern, p.opt.Bytes, p.opt.PerHost); err != nil {
		return err
	}
	by, lost, err := t.Loads(ctx, p.tables)
	if err != nil {
		return err
	}
	p.tried++
	s.Lost = lost[0]
	own := func(port fabric.PortID) float64 {
		if len(by[port]) == 0 {
			return 0
		}
		return by[port][0].Bytes
	}
	sent, passed := 0.0, 0.0
	for _, h := range s.members {
		for _, port := range p.hosts[h].Ports {
			out, in := own(port), own(p.f.Peer(port))
			s.Ideal = max(s.Ideal, out/p.rate[port], in/p.rate[p.f.Peer(port)])
			sent, passed = sent+out, passed+in
		}
	}
	s.Alone, s.Seconds = s.Ideal, s.Ideal
	slowest := fabric.NoPort
	busiest := 0.0
	for _, port := range p.between {
		bytes := own(port)
		if bytes == 0 {
			continue
		}
		passed += bytes
		s.Alone = max(s.Alone, bytes/p.rate[port])
		with, all := bytes, bytes
		for _, l := range p.running[port] {
			both := min(bytes, l.Bytes)
			with, all = with+both, all+l.Bytes
			if d := both / p.rate[port]; d > s.Delay {
				s.Delay, s.Delayed = d, p.names(l.Job)
			}
		}
		s.Seconds = max(s.Seconds, with/p.rate[port])
		if len(p.running[port]) > 0 {
			s.Shared++
			if time := all / p.rate[port]; time > busiest {
				busiest, slowest = time, port
			}
		}
	}
	if slowest != fabric.NoPort {
		s.Busiest = &Busiest{verify.CableOf(p.f, slowest), own(slowest), 0, busiest}
		for _, l := range p.running[slowest] {
			s.Busiest.Running += l.Bytes
		}
	}
	if sent > 0 {
		s.Hops = passed / sent
	}
	s.Cost = s.Seconds + s.Delay
	p.countLeaves(s)
	return nil
}

func (p *placer) countLeaves(s *Set) {
	taken := make(map[int]int)
	for _, h := range s.members {
		taken[p.unit[h]]++
	}
	s.Leaves = len(taken)
	for u, n := range taken {
		switch x := &p.units[u]; {
		case n == x.size:
			s.Whole++
		case len(x.hosts) == x.size:
			s.Broken++
		}
	}
}
