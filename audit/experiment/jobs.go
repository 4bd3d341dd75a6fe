package experiment

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/report/chart"
	"github.com/ibweave/ibweave/sim"
)

// JobsRun simulates each routing with all jobs, and with each job alone.
type JobsRun struct {
	*Setup
	Routings   []Routing
	Works      []jobs.Work // the jobs with unicasts only
	Scale      float64     // part of the bytes in the file
	Background float64     // bytes
	Points     []JobsPoint
	// Results are those of the points, in their order, once they are simulated.
	Results []JobsResult
	traffic *jobs.Traffic
	jobs    [][]sim.Job // by routing, then as Works
	longest int         // longest message, bytes
}

// JobsPoint is a routing with all jobs, or with one of them alone.
type JobsPoint struct {
	Routing int
	Job     int // index in Works; below 0 for all jobs
}

// JobsResult is the result of a point.
type JobsResult struct {
	sim.Result
	*sim.JobsDone // nil after a deadlock
}

// NewJobsRun makes the messages of the jobs of t, whose hosts are bound to the fabric of the
// routings. scale is the part of the file's bytes that they have; 0 chooses one. Errors of a flag
// are *SettingError, others are of the input.
func NewJobsRun(s *Setup, routings []Routing, t *jobs.Traffic, scale float64) (r *JobsRun, err error) {
	r = &JobsRun{Setup: s, Routings: routings, traffic: t}
	f := routings[0].Net.Fabric
	for p := range fabric.PortID(f.NumPorts()) {
		if s.Config.Mbps == 0 && f.Peer(p) != fabric.NoPort && f.Link(p).Mbps() == 0 {
			return nil, noRate(f, p)
		}
	}
	vls := lanes(routings)
	if r.Works, r.Scale, r.Background, err = t.Works(jobs.WorkOptions{Scale: scale, MTU: s.Config.MTU}); err != nil {
		return nil, err
	}
	for _, p := range jobs.PartsOf(r.Works) {
		for _, port := range p.Ports {
			if f.LID(port) == 0 {
				return nil, fmt.Errorf("%s has no LID in the fabric", f.PortName(port))
			}
		}
		for _, m := range p.Program.Messages {
			r.longest = max(r.longest, int(m.Bytes))
		}
	}
	r.longest = max(r.longest, 1)
	if err := s.fits(r.longest, vls); err != nil {
		return nil, &SettingError{"traffic", err}
	}
	r.jobs = slices.Repeat([][]sim.Job{jobsOf(r.Works, nil)}, len(routings))
	r.makePoints()
	return r, nil
}

// makePoints lists points with all jobs last: they take longest, and a sweep begins at the end.
func (r *JobsRun) makePoints() {
	r.Points = nil
	for i := range r.Routings {
		for job := range r.Works {
			if len(r.Works) > 1 || r.Background > 0 {
				r.Points = append(r.Points, JobsPoint{i, job})
			}
		}
	}
	for i := range r.Routings {
		r.Points = append(r.Points, JobsPoint{i, -1})
	}
}

// sharp is, in Routing.Multicast, the scheme of all-reduces by trees of switches.
const sharp = "sharp"

// AddTrees adds for each routing one with each scheme's multicast trees and, if radix is above 0,
// one with trees of switches. It calls leftOut for those that cannot be made.
func (r *JobsRun) AddTrees(ctx context.Context, schemes []string, radix int, leftOut func(error)) error {
	cast, _, _, err := r.traffic.Works(jobs.WorkOptions{Scale: r.Scale, MTU: r.Config.MTU, Multicast: true})
	if err != nil {
		return err
	}
	groups := jobs.MulticastGroups(cast)
	if len(schemes) > 0 && len(groups) == 0 {
		return wrong("mcast", "no job has a broadcast or an all-gather of several hosts")
	}
	if radix > 0 {
		schemes = append(slices.Clone(schemes), sharp)
	}
	var list []Routing
	var all [][]sim.Job
	var said []string
	for i, x := range r.Routings {
		list, all = append(list, x), append(all, r.jobs[i])
		for _, name := range schemes {
			x.Multicast = name
			var plan *mft.Plan
			var scheme mft.Scheme
			works, err := cast, error(nil)
			if name == sharp {
				works, plan, err = r.reduce(x.Routes, radix)
			} else if scheme, err = compile.NewScheme(ctx, name, x.Routes); err == nil {
				plan, err = scheme.Build(ctx, x.Routes, groups, mft.Options{Balance: true})
			}
			_, refused := errors.AsType[*mft.RefusedError](err)
			if _, short := errors.AsType[*mft.BudgetError](err); refused || short {
				if !slices.Contains(said, err.Error()) { // of other lanes or choices
					said = append(said, err.Error())
					leftOut(fmt.Errorf("left out %s: %w", x.Name(), err))
				}
				continue
			}
			if err != nil {
				return err
			}
			x.Net.Multicast = plan
			list, all = append(list, x), append(all, jobsOf(works, plan))
		}
	}
	r.Routings, r.jobs = list, all
	r.makePoints()
	return nil
}

// reduce returns the messages of jobs with trees of switches, and multicast tables for the sums.
func (r *JobsRun) reduce(routes *lft.Routing, radix int) ([]jobs.Work, *mft.Plan, error) {
	trees := r.traffic.Reductions(routes.Tables, radix)
	plan, err := jobs.Down(routes.Fabric, trees)
	if err != nil {
		return nil, nil, err
	}
	if len(plan.Trees) == 0 {
		return nil, nil, wrong("sharp", "no job has an all-reduce of several hosts")
	}
	works, _, _, err := r.traffic.Works(jobs.WorkOptions{Scale: r.Scale, MTU: r.Config.MTU, Reductions: trees})
	return works, plan, err
}

// jobsOf returns the jobs for the simulator: multicasts use trees of plan; without it, unicasts.
func jobsOf(works []jobs.Work, plan *mft.Plan) []sim.Job {
	type sender struct {
		group string
		port  fabric.PortID
	}
	trees := make(map[sender]*mft.Tree)
	if plan != nil {
		for i := range plan.Trees {
			for _, p := range plan.Trees[i].Senders {
				trees[sender{plan.Trees[i].Name, p}] = &plan.Trees[i]
			}
		}
	}
	list := make([]sim.Job, len(works))
	number := 0
	for i := range works {
		for _, w := range works[i].Parts {
			part := sim.Part{Program: w.Program, Ports: w.Ports, Hosts: w.Hosts, Nodes: w.Nodes}
			if plan != nil {
				part.Multicast = make([]sim.MulticastTo, len(w.Ports))
				for k, p := range w.Ports {
					if t := trees[sender{fmt.Sprintf("part %d", number), p}]; t != nil {
						part.Multicast[k] = sim.MulticastTo{MLID: t.MLID, SL: t.SL, Receivers: t.Receivers}
					}
				}
			}
			number++
			list[i].Parts = append(list[i].Parts, part)
		}
	}
	return list
}

// Simulate runs point i; see Run.Simulate. Jobs alone have no background.
func (r *JobsRun) Simulate(ctx context.Context, i int) (JobsResult, error) {
	p := r.Points[i]
	x := &r.Routings[p.Routing]
	all := sim.Jobs{Jobs: r.jobs[p.Routing], SLs: x.SLs, Seed: r.Seeds[0], Background: r.Background}
	if p.Job >= 0 {
		all.Jobs, all.Background = all.Jobs[p.Job:p.Job+1], 0
	}
	m, err := sim.RunJobs(ctx, x.Net, r.config(r.longest, x.Net.VLs()), all, r.Stop.MaxTime)
	if deadlock, ok := errors.AsType[*sim.DeadlockError](err); ok {
		return JobsResult{deadlock.Result(), nil}, nil
	}
	if err != nil {
		return JobsResult{}, err
	}
	return JobsResult{m.Result(), m}, nil
}

// Result returns the result of a routing with one job alone, or with all if job is below 0.
func (r *JobsRun) Result(routing, job int) *JobsResult {
	i := slices.Index(r.Points, JobsPoint{routing, job})
	if i < 0 { // there is only one job
		i = slices.Index(r.Points, JobsPoint{routing, -1})
	}
	return &r.Results[i]
}

// Sweep returns the points and results in the form of a Run: first those of all jobs, then
// those of single jobs.
func (r *JobsRun) Sweep() *Run {
	base := &Run{Setup: r.Setup, Routings: r.Routings, Net: r.Routings[0].Net}
	for _, alone := range []bool{false, true} {
		for i, p := range r.Points {
			if alone != (p.Job >= 0) {
				continue
			}
			point := r.Routings[p.Routing].point()
			if point.What = "all jobs"; alone {
				point.What = r.Works[p.Job].Job + " alone"
			}
			base.Points, base.Results = append(base.Points, point), append(base.Results, r.Results[i].Result)
		}
	}
	return base
}

// JobsCompared is the result of a routing with all jobs.
type JobsCompared struct {
	Routing   string  `json:"routing"` // "" where there is one
	Engine    string  `json:"engine,omitempty"`
	Fitted    bool    `json:"fitted,omitempty"` // tables are made for the jobs
	VLs       int     `json:"vls,omitempty"`
	Adaptive  string  `json:"adaptive,omitempty"`
	Multicast string  `json:"multicast,omitempty"`
	State     string  `json:"state"`
	Time      float64 `json:"time_ns"` // until the last job was done
	// Slowdown is the geometric mean of the jobs' slowdowns, 0 if a job was not done; Gain is that
	// of their gains, null for the first routing.
	Slowdown   float64           `json:"slowdown"`
	Gain       *float64          `json:"gain"`
	Jobs       []sim.JobResult   `json:"jobs"`
	Cables     []sim.WaitedCable `json:"cables"`
	Limits     *sim.Limits       `json:"limits,omitempty"`
	Reordering *sim.Reordering   `json:"reordering,omitempty"`
	Dropped    int64             `json:"dropped"`
	Strayed    int64             `json:"strayed"`
	Packets    int64             `json:"packets"`
	Deadlock   *sim.Deadlock     `json:"deadlock,omitempty"`
}

// Compare returns for each routing the results with all jobs and with each alone.
func (r *JobsRun) Compare() (list []JobsCompared) {
	names := append(text.Each(r.Works, func(w jobs.Work) string { return w.Job }), jobs.Background)
	for i := range r.Routings {
		x, all := &r.Routings[i], r.Result(i, -1)
		c := JobsCompared{
			Routing: x.Name(), Engine: x.Engine, Fitted: x.Fitted, VLs: x.VLs, Adaptive: x.Choice, Multicast: x.Multicast,
			State: all.State, Time: all.Result.Time, Jobs: []sim.JobResult{}, Limits: all.Result.Limits, Reordering: all.Result.Reordering,
			Dropped: all.Dropped, Strayed: all.Strayed, Packets: all.Packets, Deadlock: all.Deadlock,
		}
		first := []sim.JobResult(nil)
		if i > 0 {
			first = list[0].Jobs
		}
		for k := range r.Works {
			c.Jobs = append(c.Jobs, all.JobResult(x.Net.Fabric, names, k, r.Result(i, k).JobsDone, first))
		}
		slowdown, gain := sim.MeanOfJobs(c.Jobs, first)
		if c.Slowdown = slowdown; slowdown > 0 && i > 0 && list[0].Slowdown > 0 {
			c.Gain = &gain
		}
		if c.Cables = []sim.WaitedCable{}; all.JobsDone != nil {
			c.Cables = append(c.Cables, all.Cables(x.Net.Fabric, names)...)
		}
		list = append(list, c)
	}
	return list
}

// Best returns the index of the routing with the greatest gain, the first of several.
func Best(list []JobsCompared) (best int) {
	most := 0.0
	if list[0].Slowdown == 0 {
		most = -2 // anything that delivers is better
	}
	for i := range list {
		if g := list[i].Gain; g != nil && *g > most {
			best, most = i, *g
		}
	}
	return best
}

// Document returns the JSON form, with the parameters that the results depend on.
func (r *JobsRun) Document(parameters map[string]string, list []JobsCompared) any {
	type job struct {
		Job   string `json:"job"`
		Hosts int    `json:"hosts"`
		Ranks int    `json:"ranks"`
	}
	doc := struct {
		Fabric     fabricSize        `json:"fabric"`
		Parameters map[string]string `json:"parameters"`
		Scale      float64           `json:"scale"`
		Background float64           `json:"background_bytes"`
		Jobs       []job             `json:"jobs"`
		Routings   []JobsCompared    `json:"routings"`
		Best       string            `json:"best,omitempty"`
	}{Fabric: sizeOf(r.Routings[0].Net.Fabric), Parameters: parameters, Scale: r.Scale, Background: r.Background, Routings: list, Best: list[Best(list)].Routing}
	doc.Jobs = text.Each(r.Works, func(w jobs.Work) job { return job{w.Job, w.Hosts, w.Ranks} })
	return &doc
}

// WriteJobsCSV writes a line for each job with each routing.
func WriteJobsCSV(w io.Writer, list []JobsCompared) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"routing", "job", "messages", "bytes", "crossbar_ns", "alone_ns", "together_ns", "slowdown", "gain", "left", "state"}) // an error stays until Flush
	for i := range list {
		for _, j := range list[i].Jobs {
			gain := number(*cmp.Or(j.Gain, new(float64)), j.Gain != nil)
			_ = c.Write([]string{
				list[i].Routing, j.Job, strconv.FormatInt(j.Messages, 10), strconv.FormatInt(j.Bytes, 10), number(j.Crossbar, true), number(j.Alone, j.Alone > 0),
				number(j.Together, j.Together > 0), number(j.Slowdown, j.Slowdown > 0), gain, strconv.FormatInt(j.Left, 10), list[i].State,
			})
		}
	}
	c.Flush()
	return c.Error()
}

// JobsChart draws the times of jobs by routing.
func JobsChart(title string, list []JobsCompared) *chart.Chart {
	y := chart.Axis{Scale: chart.Linear, Names: text.Each(list, func(c JobsCompared) string { return c.Routing })}
	c := &chart.Chart{Title: title}
	for _, panel := range []struct {
		title, label string
		x            func(j, first *sim.JobResult) float64
	}{
		{"time with all jobs", "over that alone with " + list[0].Routing, func(j, first *sim.JobResult) float64 { return j.Together / first.Alone }},
		{"slowdown by other jobs", "time with all jobs over that alone", func(j, _ *sim.JobResult) float64 { return j.Slowdown }},
	} {
		p := chart.Panel{Title: panel.title, X: chart.Axis{Label: panel.label, Scale: chart.Linear}, Y: y}
		for k := range list[0].Jobs {
			curve := chart.Curve{Name: list[0].Jobs[k].Job}
			for i := range list {
				if j := &list[i].Jobs[k]; j.Together > 0 && j.Slowdown > 0 && list[0].Jobs[k].Alone > 0 {
					curve.Points = append(curve.Points, chart.Point{X: panel.x(j, &list[0].Jobs[k]), Y: float64(len(list) - i)})
				}
			}
			p.Curves = append(p.Curves, curve)
		}
		c.Panels = append(c.Panels, p)
	}
	return c
}
