package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// Result is the result of a simulation as it is written and read: of a Measured, of JobsDone or of
// a deadlock. Times are in nanoseconds.
type Result struct {
	// State is done; saturated, if ever more packets waited at hosts; StateMaxTime, if that ended it
	// before the wanted precision; or deadlock.
	State    string   `json:"state"`
	Messages int64    `json:"messages"` // complete; without the warm-up's
	Latency  *Summary `json:"latency_ns,omitempty"`
	Offered  float64  `json:"offered"`  // share of what the hosts' links carry
	Accepted float64  `json:"accepted"` // the same
	// Latency of unicast messages, of multicast messages until the last receiver
	// has them, and of multicast messages for each receiver.
	Unicast    *Summary    `json:"unicast_ns,omitempty"`
	Multicast  *Summary    `json:"multicast_ns,omitempty"`
	Receiver   *Summary    `json:"receiver_ns,omitempty"`
	Time       float64     `json:"time_ns"` // simulated time; in closed loop the makespan
	Incomplete int64       `json:"incomplete"`
	Dropped    int64       `json:"dropped"`
	Strayed    int64       `json:"strayed"`
	Packets    int64       `json:"packets"`
	FlitHops   int64       `json:"flit_hops"`
	Events     int64       `json:"events"`
	Reordering *Reordering `json:"reordering,omitempty"` // with adaptive tables
	Deadlock   *Deadlock   `json:"deadlock,omitempty"`
	Limits     *Limits     `json:"limits,omitempty"` // without flits
}

// StateMaxTime is the state of a Result that Stop.MaxTime ended.
const StateMaxTime = "max-time"

// JobResult is a job that ran with others. Times are in nanoseconds, 0 for a job that was not done.
type JobResult struct {
	Job      string  `json:"job"`
	Messages int64   `json:"messages"`
	Bytes    int64   `json:"bytes"`
	Crossbar float64 `json:"crossbar_ns"` // time of the busiest host port for the job's bytes
	Alone    float64 `json:"alone_ns"`
	Together float64 `json:"together_ns"`
	Slowdown float64 `json:"slowdown"` // Together / Alone
	// Gain is how much more the job does in the same time than with the first routing: 0.1 is 10 %;
	// nil for the first routing.
	Gain *float64   `json:"gain"`
	Left int64      `json:"left"` // messages not yet arrived
	By   []WaitedBy `json:"waits_for"`
}

// WaitedBy tells how long the packets of one job waited for packets of job Job.
type WaitedBy struct {
	Job     string  `json:"job"`     // whose packets are in the way; may be the waiting job itself
	Share   float64 `json:"share"`   // of the time that the job's packets wait
	Packets float64 `json:"packets"` // that wait for it, on average over the time of all jobs
	Cable   Sender  `json:"cable"`   // where most of them wait
}

// WaitedCable is a cable that packets wait for.
type WaitedCable struct {
	Sender
	Busy    float64    `json:"busy"`    // share of the time that it sends
	Packets float64    `json:"packets"` // that wait for it, on average
	Share   float64    `json:"share"`   // of the time that all packets wait
	Jobs    []JobWaits `json:"jobs"`    // most first
}

// JobWaits is the average number of packets of a job that wait for packets of job By.
type JobWaits struct {
	Job     string  `json:"job"`
	By      string  `json:"waits_for"`
	Packets float64 `json:"packets"`
}

// JobResult returns the result of job k, compared with the job alone and with the first routing;
// alone and first are nil without these. m and alone are nil if the run ended with a deadlock.
// names are as for WaitsOf.
func (m *JobsDone) JobResult(f *fabric.Fabric, names []string, k int, alone *JobsDone, first []JobResult) JobResult {
	j := JobResult{Job: names[k], By: []WaitedBy{}}
	if m != nil {
		t := &m.Jobs[k]
		j.Messages, j.Bytes, j.Crossbar, j.Together, j.Left = t.Messages, t.Bytes, t.Crossbar.Nanoseconds(), t.At.Nanoseconds(), t.Left
		j.By = append(j.By, m.WaitsOf(f, names, k)...)
	}
	if alone != nil {
		j.Alone = alone.Jobs[min(k, len(alone.Jobs)-1)].At.Nanoseconds()
	}
	if j.Alone > 0 && j.Together > 0 {
		j.Slowdown = j.Together / j.Alone
	}
	if first != nil && j.Together > 0 && first[k].Together > 0 {
		more := first[k].Together/j.Together - 1
		j.Gain = &more
	}
	return j
}

// MeanOfJobs returns the geometric means of the slowdowns and of the gains over the first routing;
// both are 0 if some job was not done.
func MeanOfJobs(list, first []JobResult) (slowdown, gain float64) {
	for k := range list {
		j := &list[k]
		if j.Slowdown == 0 {
			return 0, 0
		}
		slowdown += math.Log(j.Slowdown)
		if j.Gain != nil {
			gain += math.Log(first[k].Together / j.Together)
		}
	}
	if len(list) == 0 {
		return 0, 0
	}
	n := float64(len(list))
	return math.Exp(slowdown / n), math.Exp(gain/n) - 1
}

// WaitsOf lists the jobs that packets of a job waited for, the longest waits first. names are
// those of all jobs, then of the background.
func (m *JobsDone) WaitsOf(f *fabric.Fabric, names []string, job int) (list []WaitedBy) {
	total := Time(0)
	by, most, at := make([]Time, len(names)), make([]Time, len(names)), make([]fabric.PortID, len(names))
	for _, w := range m.Waits {
		if w.Job != job {
			continue
		}
		total += w.Time
		by[w.By] += w.Time
		if w.Time > most[w.By] {
			most[w.By], at[w.By] = w.Time, w.Port
		}
	}
	for k, t := range by {
		if t > 0 {
			list = append(list, WaitedBy{names[k], float64(t) / float64(total), m.mean(t), NewSender(f, at[k])})
		}
	}
	slices.SortStableFunc(list, func(x, y WaitedBy) int { return cmp.Compare(y.Share, x.Share) })
	return list
}

// Cables lists the cables that packets waited for, most first. names are as for WaitsOf.
func (m *JobsDone) Cables(f *fabric.Fabric, names []string) (list []WaitedCable) {
	total := Time(0)
	of := make(map[fabric.PortID][]Waited)
	for _, w := range m.Waits {
		total += w.Time
		of[w.Port] = append(of[w.Port], w)
	}
	for _, p := range slices.Sorted(maps.Keys(of)) {
		slices.SortStableFunc(of[p], func(x, y Waited) int { return cmp.Compare(y.Time, x.Time) })
		sum := Time(0)
		c := WaitedCable{Sender: NewSender(f, p), Busy: m.mean(m.Loads[p].Busy)}
		for _, w := range of[p] {
			sum += w.Time
			c.Jobs = append(c.Jobs, JobWaits{names[w.Job], names[w.By], m.mean(w.Time)})
		}
		c.Packets, c.Share = m.mean(sum), float64(sum)/float64(total)
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(x, y WaitedCable) int { return cmp.Compare(y.Packets, x.Packets) })
	return list
}

// mean returns a time as a multiple of the time of all jobs.
func (m *JobsDone) mean(t Time) float64 { return float64(t) / 1000 / m.Time.Nanoseconds() }

// Result sums up a measurement. In closed loop, closed leaves out confidence intervals.
func (m *Measured) Result(closed bool) Result {
	r := Result{
		State: "done", Messages: m.All.Count, Latency: m.All.summary(closed), Offered: m.Offered, Accepted: m.Accepted,
		Unicast: m.Unicast.summary(closed), Multicast: m.Multicast.summary(closed), Receiver: m.Receiver.summary(closed),
		Time: m.Time.Nanoseconds(), Incomplete: m.Incomplete, Reordering: m.Reordering, Limits: m.Limits,
	}
	switch {
	case m.Saturated:
		r.State = "saturated"
	case m.TimeUp:
		r.State = StateMaxTime
	}
	r.count(m.Counts)
	return r
}

// Result sums up all jobs together.
func (m *JobsDone) Result() Result {
	r := Result{State: "done", Time: m.Time.Nanoseconds(), Reordering: m.Reordering, Limits: m.Limits}
	r.count(m.Counts)
	if m.TimeUp {
		r.State = StateMaxTime
	}
	for i := range m.Jobs {
		r.Messages += m.Jobs[i].Messages - m.Jobs[i].Left
		r.Incomplete += m.Jobs[i].Left
	}
	return r
}

// Result returns the deadlock as the result of the simulation.
func (e *DeadlockError) Result() Result {
	d := &Deadlock{At: e.At.Nanoseconds(), Waits: e.Waits, Witness: e.Channels()}
	d.Message = fmt.Sprintf("deadlock, found at %s: %s wait for each other; cycle, %s",
		e.At, text.CountGrouped(len(e.Waits), "packet", "packets"), text.CountGrouped(len(d.Witness), "channel", "channels"))
	return Result{State: "deadlock", Time: d.At, Deadlock: d}
}

func (r *Result) count(c Counts) {
	r.Dropped, r.Strayed, r.Packets, r.FlitHops, r.Events = c.Dropped, c.Strayed, c.Packets, c.FlitHops, c.Events
}
