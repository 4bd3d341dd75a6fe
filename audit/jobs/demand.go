package jobs

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify/bound"
)

// demandBits bounds the bits of the sum of a demand.
const demandBits = 46

// Summary holds the times of jobs under some tables, by static loads.
type Summary struct {
	Seconds float64      `json:"seconds"`      // of the busiest cable between switches, for all bytes
	Hosts   float64      `json:"host_seconds"` // of the busiest cable of a host, which no tables change
	Gap     float64      `json:"gap"`          // Seconds over Hosts, at least 1; 0 without a byte
	Lost    float64      `json:"lost_bytes"`   // that the tables do not deliver
	Jobs    []JobSummary `json:"jobs"`
}

// JobSummary holds the times of a job under some tables.
type JobSummary struct {
	Job string `json:"job"`
	// Alone and Together are the job's time alone and with all jobs, divided
	// by that on a crossbar; 0 without a byte. Blame is as in Times.
	Alone    float64 `json:"alone"`
	Together float64 `json:"together"`
	Blame    string  `json:"blame"`
}

// Summarize measures the traffic under tables. Its errors are those of Judge.
func (t *Traffic) Summarize(ctx context.Context, tables *lft.Tables) (*Summary, error) {
	all, err := t.Judge(ctx, tables, 0)
	if err != nil {
		return nil, err
	}
	s := &Summary{Jobs: []JobSummary{}}
	for i := range all.Jobs {
		j := &all.Jobs[i]
		s.Lost += j.Lost
		s.Jobs = append(s.Jobs, JobSummary{j.Job, j.Alone, j.Together, j.Blame})
	}
	d, err := t.Demand(ctx)
	if err != nil || d == nil {
		return s, err
	}
	times, err := bound.TimesUnder(ctx, t.f, tables, d)
	s.Seconds, s.Hosts, s.Gap = times.Switches, times.Hosts, max(1, times.Switches/times.Hosts)
	return s, err
}

// Demand returns what jobs and background send together, for the optimizer of tables; nil if they
// send nothing. Amounts are rounded down to about 1e-13 of the sum. Errors: ctx's, and jobs that
// send more than can be counted.
func (t *Traffic) Demand(ctx context.Context) (*lft.Demand, error) {
	f := t.f
	d := &lft.Demand{To: make([][]lft.Flow, int(f.MaxLID())+1)}
	host := make([]uint64, f.NumPorts()) // by PortID of both ends of the cables of hosts
	c := t.newCounter(f.NumSwitches())
	total := uint64(0)
	for _, j := range t.jobs {
		for dst, to := range j.ends {
			lids := uint64(t.lids(to))
			if err := c.count(ctx, j, dst, func(src int, amount int64) int32 {
				host[j.ends[src]] += uint64(amount) * lids
				host[f.Peer(to)] += uint64(amount) * lids
				total += uint64(amount) * lids
				return int32(f.PeerSwitch(j.ends[src]))
			}); err != nil {
				return nil, err
			}
			var flows []lft.Flow
			for _, s := range c.list {
				if s := fabric.NodeID(s); s != f.PeerSwitch(to) {
					flows = append(flows, lft.Flow{From: s, Amount: c.sum[s]})
				}
			}
			for lid := range f.LIDs(to) {
				d.To[lid] = append(d.To[lid], flows...)
			}
		}
	}
	if total == 0 {
		return nil, nil
	}
	// Leave room for the background in demandBits.
	shift := bits.Len64(total) - demandBits + bits.Len64(uint64(1/(1-t.background)))
	for lid, list := range d.To {
		d.To[lid] = mergeFlows(list, shift)
	}
	ends, pairs := t.ends()
	if pairs > 0 {
		all := float64(scaleBy(total, shift))
		d.Background = int64(float64(all*t.background) / (1 - t.background) / float64(pairs))
	}
	d.Host = t.hostLoads(host, ends, shift, d.Background)
	d.Bytes = math.Ldexp(1.0/scale, shift)
	return d, nil
}

// scaleBy divides n by 2 to the power of shift.
func scaleBy(n uint64, shift int) uint64 {
	if shift < 0 {
		return n << -shift
	}
	return n >> shift
}

// mergeFlows scales flows, and adds up those from one switch.
func mergeFlows(list []lft.Flow, shift int) (sum []lft.Flow) {
	slices.SortFunc(list, func(a, b lft.Flow) int { return cmp.Compare(a.From, b.From) })
	for i, x := range list {
		if x.Amount = int64(scaleBy(uint64(x.Amount), shift)); i > 0 && sum[len(sum)-1].From == x.From {
			sum[len(sum)-1].Amount += x.Amount
			continue
		}
		sum = append(sum, x)
	}
	return sum
}

// hostLoads returns lft.Demand.Host: what jobs send, by port, and the background between ends.
func (t *Traffic) hostLoads(jobs []uint64, ends []fabric.PortID, shift int, background int64) []int64 {
	load := make([]int64, len(jobs))
	for p, n := range jobs {
		load[p] = int64(scaleBy(n, shift))
	}
	lids := 0
	for _, p := range ends {
		lids += t.lids(p)
	}
	for _, p := range ends {
		own := t.lids(p)
		load[p] += background * int64(lids-own)
		load[t.f.Peer(p)] += background * int64(own*(len(ends)-1))
	}
	return load
}
