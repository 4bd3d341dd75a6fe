package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/report/chart"
	"github.com/ibweave/ibweave/sim"
)

// jobTraffic is what sim is asked about jobs.
type jobTraffic struct {
	file  string   // "" for other traffic
	scale float64  // part of the bytes; 0 chooses
	mcast []string // schemes; nil for none
	top   int      // cables that text lists
	fit   bool     // with the tables that compile --traffic makes, too
	jobs  *jobs.File
}

func (in *simulation) defineJobs() {
	flags, j := in.flags, &in.jobTraffic
	flags.StringVar(&j.file, "traffic", "", "simulate the jobs of YAML `FILE` (docs/traffic.md)")
	in.share(&j.scale, "scale", 0, 1, "`PART` of the bytes of --traffic, up to 1; 0 takes as many halves of it as leave a million packets, or four a message")
	listFlag(flags, &j.mcast, "mcast", "", "compare with broadcasts and all-gathers by multicast, on trees of `LIST`: union, updn-tree", func(s string) ([]string, error) {
		if s != "union" && s != "updn-tree" {
			return nil, errors.New("want union or updn-tree")
		}
		return []string{s}, nil
	})
	flags.BoolVar(&j.fit, "fit", false, "compare with the tables that compile --traffic makes for these jobs")
	numberFlag(flags, &j.top, "top", 0, 1<<20, "of --traffic: list the `N` cables that are waited for most")
}

// jobsRun is a simulation of jobs that is ready to run.
type jobsRun struct {
	in         *simulation
	routings   []simRouting
	works      []jobs.Work // by unicast alone
	jobs       [][]sim.Job // by routing, and in the order of works
	scale      float64
	background float64
	longest    int // bytes of a message
	points     []jobsPoint
	results    []jobsResult
}

// jobsPoint is a routing with all jobs, or with one of them alone.
type jobsPoint struct {
	routing int
	job     int // all of them if below 0
}

// jobsResult is the result of a point.
type jobsResult struct {
	sim.Result
	*sim.JobsDone // nil after a deadlock
}

// prepareJobs reads the jobs, and makes what all points have in common.
func (a *app) prepareJobs(ctx context.Context, in *simulation, routings []simRouting) (*jobsRun, error) {
	r := &jobsRun{in: in, routings: routings}
	f := routings[0].net.Fabric
	file, err := a.readSimulatedJobs(in)
	if err != nil {
		return nil, err
	}
	t, _, err := a.jobsIn(file, f, true)
	if err != nil {
		return nil, err
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if in.cfg.Mbps == 0 && f.Peer(p) != fabric.NoPort && f.Link(p).Mbps() == 0 {
			return nil, in.wrong("mbps", "the fabric does not say how fast the link of %s is: want megabits a second for all", f.PortName(p))
		}
	}
	vls, err := in.mostLanes(routings)
	if err != nil {
		return nil, err
	}
	opt := jobs.WorkOptions{Scale: in.jobTraffic.scale, MTU: in.cfg.MTU}
	if r.works, r.scale, r.background, err = t.Works(opt); err != nil {
		return nil, inputf("%s: %w", in.jobTraffic.file, err)
	}
	for _, p := range jobs.PartsOf(r.works) {
		for _, port := range p.Ports {
			if f.LID(port) == 0 {
				return nil, inputf("%s has no LID for %s", cmp.Or(in.Topology, "the fabric"), f.PortName(port))
			}
		}
		for _, m := range p.Program.Messages {
			r.longest = max(r.longest, int(m.Bytes))
		}
	}
	if err := in.fits(max(r.longest, 1), vls); err != nil {
		return nil, in.wrong("traffic", "%w", err)
	}
	r.jobs = slices.Repeat([][]sim.Job{jobsOf(r.works, nil)}, len(routings))
	if in.jobTraffic.mcast != nil {
		if err := a.addTrees(ctx, r, t); err != nil {
			return nil, err
		}
	}
	if err := in.checkPictures(len(r.routings)); err != nil {
		return nil, err
	}
	a.noteLanes(in, vls)
	if in.given("seed") && r.background == 0 {
		fmt.Fprintln(a.stderr, "ibweave: --seed has no effect here: there is no background, and nothing else is drawn at random")
	}
	all := len(r.works) > 1 || r.background > 0
	for i := range r.routings {
		for job := range r.works {
			if all {
				r.points = append(r.points, jobsPoint{i, job})
			}
		}
	}
	for i := range r.routings { // sweep begins with the last ones, which take longest
		r.points = append(r.points, jobsPoint{i, -1})
	}
	return r, nil
}

// readSimulatedJobs reads the file of jobs, once.
func (a *app) readSimulatedJobs(in *simulation) (*jobs.File, error) {
	if in.jobTraffic.jobs != nil {
		return in.jobTraffic.jobs, nil
	}
	err := a.readHostGroups()
	if err == nil {
		in.jobTraffic.jobs, err = jobs.Read(in.jobTraffic.file, a.readInput)
	}
	return in.jobTraffic.jobs, err
}

// addTrees adds to each routing those with multicast trees. What a scheme cannot do is left out with a
// line on standard error.
func (a *app) addTrees(ctx context.Context, r *jobsRun, t *jobs.Traffic) error {
	opt := jobs.WorkOptions{Scale: r.scale, MTU: r.in.cfg.MTU, Multicast: true}
	works, _, _, err := t.Works(opt)
	if err != nil {
		return inputf("%s: %w", r.in.jobTraffic.file, err)
	}
	groups := jobs.MulticastGroups(works)
	if len(groups) == 0 {
		return r.in.wrong("mcast", "no job has a broadcast or an all-gather of several hosts")
	}
	var list []simRouting
	var all [][]sim.Job
	var said []string
	for i, x := range r.routings {
		list, all = append(list, x), append(all, r.jobs[i])
		for _, name := range r.in.jobTraffic.mcast {
			x.mcast = name
			s := a.startStage("make " + name + " trees")
			var plan *mft.Plan
			scheme, err := compile.NewScheme(ctx, name, x.routes)
			if err == nil {
				plan, err = scheme.Build(ctx, x.routes, groups, mft.Options{Balance: name == "updn-tree"})
			}
			s.End()
			if isRefused(err) {
				if !slices.Contains(said, err.Error()) { // of other lanes and choices
					said = append(said, err.Error())
					fmt.Fprintf(a.stderr, "ibweave: left out %s: %v\n", x.name(), err)
				}
				continue
			}
			if err != nil {
				return err
			}
			x.net.Multicast = plan.Tables
			list, all = append(list, x), append(all, jobsOf(works, plan))
		}
	}
	r.routings, r.jobs = list, all
	return r.in.onlyOnce(list)
}

// jobsOf returns the jobs for the simulator, whose multicasts are unicasts without a plan and use its trees with one.
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
			part := sim.Part{Program: w.Program, Ports: w.Ports, Hosts: w.Hosts}
			if plan != nil {
				part.Multicast = each(w.Ports, func(p fabric.PortID) (to sim.MulticastTo) {
					if t := trees[sender{fmt.Sprintf("part %d", number), p}]; t != nil {
						to = sim.MulticastTo{MLID: t.MLID, SL: t.SL, Receivers: t.Receivers}
					}
					return to
				})
			}
			number++
			list[i].Parts = append(list[i].Parts, part)
		}
	}
	return list
}

// simulate runs a point. Jobs alone have no background.
func (r *jobsRun) simulate(ctx context.Context, i int) (jobsResult, error) {
	p := r.points[i]
	x := &r.routings[p.routing]
	all := sim.Jobs{Jobs: r.jobs[p.routing], SLs: x.sls, Seed: r.in.seeds[0], Background: r.background}
	if p.job >= 0 {
		all.Jobs, all.Background = all.Jobs[p.job:p.job+1], 0
	}
	m, err := sim.RunJobs(ctx, x.net, r.in.config(max(r.longest, 1), x.net.VLs()), all, r.in.stop.MaxTime)
	deadlock, isDeadlock := errors.AsType[*sim.DeadlockError](err)
	switch {
	case isDeadlock:
		return jobsResult{deadlock.Result(), nil}, nil
	case is[*sim.ConservationError](err), ctx.Err() != nil:
		return jobsResult{}, err
	case err != nil:
		return jobsResult{}, &usageError{err}
	}
	return jobsResult{m.Result(), m}, nil
}

// result finds the result of a routing with one job alone, or with all.
func (r *jobsRun) result(routing, job int) *jobsResult {
	i := slices.Index(r.points, jobsPoint{routing, job})
	if i < 0 { // the only job
		i = slices.Index(r.points, jobsPoint{routing, -1})
	}
	return &r.results[i]
}

// routingCompared is a routing with all jobs.
type routingCompared struct {
	Routing   string  `json:"routing"` // "" where there is one
	Engine    string  `json:"engine,omitempty"`
	Fitted    bool    `json:"fitted,omitempty"` // to the jobs
	VLs       int     `json:"vls,omitempty"`
	Adaptive  string  `json:"adaptive,omitempty"`
	Multicast string  `json:"multicast,omitempty"`
	State     string  `json:"state"`
	Time      float64 `json:"time_ns"` // until the last job was done
	// Slowdown is the geometric mean of those of jobs, 0 where one was not done; Gain is that of their
	// gains, null for the first routing.
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

// compare joins the points of each routing.
func (r *jobsRun) compare() (list []routingCompared) {
	names := append(each(r.works, func(w jobs.Work) string { return w.Job }), jobs.Background)
	for i := range r.routings {
		x, all := &r.routings[i], r.result(i, -1)
		c := routingCompared{
			Routing: x.name(), Engine: x.engine, Fitted: x.fitted, VLs: x.vls, Adaptive: x.choice, Multicast: x.mcast,
			State: all.State, Time: all.Result.Time, Jobs: []sim.JobResult{}, Limits: all.Result.Limits, Reordering: all.Result.Reordering,
			Dropped: all.Dropped, Strayed: all.Strayed, Packets: all.Packets, Deadlock: all.Deadlock,
		}
		first := []sim.JobResult(nil)
		if i > 0 {
			first = list[0].Jobs
		}
		for k := range r.works {
			c.Jobs = append(c.Jobs, all.JobsDone.JobResult(x.net.Fabric, names, k, r.result(i, k).JobsDone, first))
		}
		slowdown, gain := sim.MeanOfJobs(c.Jobs, first)
		if c.Slowdown = slowdown; slowdown > 0 && i > 0 && list[0].Slowdown > 0 {
			c.Gain = &gain
		}
		if c.Cables = []sim.WaitedCable{}; all.JobsDone != nil {
			c.Cables = append(c.Cables, all.Cables(x.net.Fabric, names)...)
		}
		list = append(list, c)
	}
	return list
}

// writeJobs writes what became of jobs, and says on standard error what is wrong with the tables.
func (a *app) writeJobs(r *jobsRun) error {
	// As a run of other traffic: all jobs together, and then each alone.
	base := simRun{in: r.in, routings: r.routings, net: r.routings[0].net}
	for _, alone := range []bool{false, true} {
		for i, p := range r.points {
			if alone != (p.job >= 0) {
				continue
			}
			point := r.routings[p.routing].parameters()
			if point.what = "all jobs"; alone {
				point.what = r.works[p.job].Job + " alone"
			}
			base.points, base.results = append(base.points, point), append(base.results, r.results[i].Result)
		}
	}
	base.nameWitnesses()
	list := r.compare()
	if err := a.drawJobs(r, list); err != nil {
		return err
	}
	err := a.writeResults(r.in, text.CountGrouped(len(list), "routing", "routings"), r.document(&base, list),
		func(w io.Writer) error { return writeJobsCSV(w, list) }, func(b *text.Sheet) { r.writeText(b, &base, list) })
	if err != nil {
		return err
	}
	return a.judgeSimulated(&base)
}

// jobsText says what is simulated.
func (r *jobsRun) jobsText() string {
	messages, bytes := 0, int64(0)
	if done := r.result(0, -1).JobsDone; done != nil {
		for i := range done.Jobs {
			messages += int(done.Jobs[i].Messages)
			bytes += done.Jobs[i].Bytes
		}
	}
	said := fmt.Sprintf("%s of %s, %s, %s", text.CountGrouped(len(r.works), "job", "jobs"), r.in.jobTraffic.file,
		text.CountGrouped(messages, "message", "messages"), bytesText(float64(bytes)))
	if r.background > 0 {
		said += " and " + bytesText(r.background) + " of background"
	}
	if r.scale < 1 {
		part := strconv.FormatFloat(r.scale, 'g', -1, 64)
		if n := 1 / r.scale; n == float64(int64(n)) {
			part = fmt.Sprintf("1/%d", int64(n))
		}
		said += fmt.Sprintf("; %s of the bytes of the file", part)
	}
	return said
}

// writeText writes results for people.
func (r *jobsRun) writeText(w *text.Sheet, base *simRun, list []routingCompared) {
	f := base.net.Fabric
	fmt.Fprintf(w, "fabric       %s, %s\n", fabricSize(f), text.CountGrouped(base.net.VLs(), "VL", "VLs"))
	fmt.Fprintf(w, "traffic      %s\n", r.jobsText())
	fmt.Fprintf(w, "hardware     %s\n\n", r.in.hardwareText())
	t := w.Table()
	several := len(list) > 1
	head := []string{"JOB", "HOSTS", "CROSSBAR us", "ALONE us", "TOGETHER us", "SLOWDOWN", "WAITS FOR", "MOST AT"}
	if several {
		head = []string{"ROUTING", "JOB", "HOSTS", "CROSSBAR us", "ALONE us", "TOGETHER us", "SLOWDOWN", "GAIN", "WAITS FOR", "MOST AT"}
	}
	fmt.Fprintln(t, strings.Join(head, "\t"))
	row := func(routing string, gain *float64, cells ...string) {
		if several {
			cells = append(append([]string{routing}, cells[:6]...), append([]string{gainText(gain)}, cells[6:]...)...)
		}
		fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	for i := range list {
		c := &list[i]
		for k := range c.Jobs {
			j := &c.Jobs[k]
			waits, at := waitsText(j)
			name := c.Routing
			if k > 0 {
				name = ""
			}
			row(name, j.Gain, j.Job, strconv.Itoa(r.works[k].Hosts), microseconds(j.Crossbar), microseconds(j.Alone), microseconds(j.Together), ratioText(j.Slowdown), waits, at)
		}
		limit := ""
		if c.Limits != nil {
			limit = "limit " + c.Limits.Limit.String()
		}
		row("", c.Gain, "all", "", "", "", microseconds(c.Time), ratioText(c.Slowdown), limit, strings.Replace(c.State, "done", "", 1))
	}
	_ = t.Flush() // a buffer takes all
	if several {
		r.writeBest(w, list)
	}
	best := &list[bestOf(list)]
	if top := min(r.in.jobTraffic.top, len(best.Cables)); top > 0 {
		name := ""
		if several {
			name = " WITH " + best.Routing
		}
		t := w.Table()
		fmt.Fprintf(t, "\nMOST WAITED FOR%s\tPACKETS\tBUSY\tWHO WAITS FOR WHOM\n", name)
		for _, c := range best.Cables[:top] {
			who := each(c.Jobs, func(x sim.JobWaits) string { return fmt.Sprintf("%s for %s %.1f", x.Job, x.By, x.Packets) })
			fmt.Fprintf(t, "%s\t%.1f\t%.0f %%\t%s\n", c.Text, c.Packets, 100*c.Busy, text.Few(who, 3))
		}
		_ = t.Flush()
	}
	if best.Limits != nil {
		fmt.Fprintf(w, "\nlimit: %s\n", strings.TrimPrefix(best.Routing+": "+limitText(best.Limits), ": "))
	}
	base.writeDeadlocks(w)
}

// waitsText says whom a job waits for most, and where.
func waitsText(j *sim.JobResult) (who, at string) {
	var parts []string
	for i, x := range j.By {
		if i > 0 && x.Share < 0.05 {
			break
		}
		name := x.Job
		if name == j.Job {
			name = "itself"
		}
		parts = append(parts, fmt.Sprintf("%s %.0f %%", name, 100*x.Share))
	}
	if parts == nil {
		return "-", ""
	}
	return text.Few(parts, 3), j.By[0].Cable.Text
}

func microseconds(ns float64) string { return cmp.Or(decimals(ns/1000, 1, ns != 0), "-") }

func ratioText(x float64) string { return cmp.Or(decimals(x, 2, x != 0), "-") }

func gainText(x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100**x)
}

// bestOf is the routing with the greatest gain, the first of several.
func bestOf(list []routingCompared) (best int) {
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

// writeBest says which routing is best, and what each change by itself buys.
func (r *jobsRun) writeBest(w *text.Sheet, list []routingCompared) {
	first, best := &list[0], bestOf(list)
	name := cmp.Or(first.Routing, "unicast alone") // --mcast is the only choice
	fmt.Fprintf(w, "\ngain is how much faster jobs are done than with %s; of all, the geometric mean\n", name)
	if best == 0 {
		fmt.Fprintf(w, "best for these jobs: %s\n", name)
	} else {
		fmt.Fprintf(w, "best for these jobs: %s, %s\n", list[best].Routing, gainText(list[best].Gain))
	}
	var alone []string
	for i := range list {
		c := &list[i]
		var changes []string
		fitted := ""
		if c.Fitted {
			fitted = "tables for the jobs"
		}
		for _, x := range []struct{ from, to string }{
			{first.Engine, c.Engine}, {"", fitted}, {text.Count(first.VLs, "VL", "VLs"), text.Count(c.VLs, "VL", "VLs")},
			{first.Adaptive, c.Adaptive}, {first.Multicast, c.Multicast},
		} {
			if x.from != x.to {
				changes = append(changes, x.to)
			}
		}
		if len(changes) == 1 && c.Gain != nil {
			alone = append(alone, changes[0]+" "+gainText(c.Gain))
		}
	}
	if len(alone) > 1 {
		fmt.Fprintf(w, "each change by itself: %s\n", text.List(alone, "and"))
	}
}

// document is the JSON form.
func (r *jobsRun) document(base *simRun, list []routingCompared) any {
	type job struct {
		Job   string `json:"job"`
		Hosts int    `json:"hosts"`
		Ranks int    `json:"ranks"`
	}
	doc := struct {
		Fabric     simFabric         `json:"fabric"`
		Parameters map[string]string `json:"parameters"`
		Scale      float64           `json:"scale"`
		Background float64           `json:"background_bytes"`
		Jobs       []job             `json:"jobs"`
		Routings   []routingCompared `json:"routings"`
		Best       string            `json:"best,omitempty"`
	}{Fabric: fabricDocument(base.net.Fabric), Parameters: base.parameters(), Scale: r.scale, Background: r.background, Jobs: []job{}, Routings: list, Best: list[bestOf(list)].Routing}
	for i := range r.works {
		doc.Jobs = append(doc.Jobs, job{r.works[i].Job, r.works[i].Hosts, r.works[i].Ranks})
	}
	return &doc
}

func writeJobsCSV(w io.Writer, list []routingCompared) error {
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

// drawJobs writes the picture that is asked for: times of jobs by routing.
func (a *app) drawJobs(r *jobsRun, list []routingCompared) error {
	if r.in.svg == "" && r.in.png == "" {
		return nil
	}
	y := chart.Axis{Scale: chart.Linear, Names: each(list, func(c routingCompared) string { return c.Routing })}
	c := &chart.Chart{Title: r.jobsText()}
	for _, panel := range []struct {
		title, label string
		x            func(j, first *sim.JobResult) float64
	}{
		{"time with all jobs", "over that alone with " + list[0].Routing, func(j, first *sim.JobResult) float64 { return j.Together / first.Alone }},
		{"slowdown by other jobs", "time with all jobs over that alone", func(j, _ *sim.JobResult) float64 { return j.Slowdown }},
	} {
		p := chart.Panel{Title: panel.title, X: chart.Axis{Label: panel.label, Scale: chart.Linear}, Y: y}
		for k := range r.works {
			curve := chart.Curve{Name: r.works[k].Job}
			for i := range list {
				if j := &list[i].Jobs[k]; j.Together > 0 && j.Slowdown > 0 && list[0].Jobs[k].Alone > 0 {
					curve.Points = append(curve.Points, chart.Point{X: panel.x(j, &list[0].Jobs[k]), Y: float64(len(list) - i)})
				}
			}
			p.Curves = append(p.Curves, curve)
		}
		c.Panels = append(c.Panels, p)
	}
	return a.writePictures(r.in.svg, r.in.png, c.SVG, c.PNG)
}
