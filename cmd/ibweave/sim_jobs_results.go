package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report/chart"
)

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
			base.points, base.results = append(base.points, point), append(base.results, r.results[i].simResult)
		}
	}
	base.nameWitnesses()
	list := r.compare()
	if err := a.drawJobs(r, list); err != nil {
		return err
	}
	err := a.writeResults(r.in, text.CountGrouped(len(list), "routing", "routings"), r.document(&base, list),
		func(w io.Writer) error { return writeJobsCSV(w, list) }, func(b *facts) { r.writeText(b, &base, list) })
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
func (r *jobsRun) writeText(w *facts, base *simRun, list []routingCompared) {
	f := base.net.Fabric
	fmt.Fprintf(w, "fabric       %s, %s\n", fabricSize(f), text.CountGrouped(vlCount(base.net), "VL", "VLs"))
	fmt.Fprintf(w, "traffic      %s\n", r.jobsText())
	fmt.Fprintf(w, "hardware     %s\n\n", r.in.hardwareText())
	t := w.table()
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
			waits, at := j.waitsText()
			name := c.Routing
			if k > 0 {
				name = ""
			}
			row(name, j.Gain, j.Job, strconv.Itoa(r.works[k].Hosts), microseconds(j.Crossbar), microseconds(j.Alone), microseconds(j.Together), ratioText(j.Slowdown), waits, at)
		}
		limit := ""
		if c.Limits != nil {
			limit = "limit " + c.Limits.Resource.String()
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
		t := w.table()
		fmt.Fprintf(t, "\nMOST WAITED FOR%s\tPACKETS\tBUSY\tWHO WAITS FOR WHOM\n", name)
		for _, c := range best.Cables[:top] {
			who := each(c.Jobs, func(x jobWaits) string { return fmt.Sprintf("%s for %s %.1f", x.Job, x.By, x.Packets) })
			fmt.Fprintf(t, "%s\t%.1f\t%.0f %%\t%s\n", c.Text, c.Packets, 100*c.Busy, text.Few(who, 3))
		}
		_ = t.Flush()
	}
	if best.Limits != nil {
		fmt.Fprintf(w, "\nlimit: %s\n", strings.TrimPrefix(best.Routing+": "+best.Limits.String(), ": "))
	}
	base.writeDeadlocks(w)
}

// waitsText says whom a job waits for most, and where.
func (j *jobCompared) waitsText() (who, at string) {
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

func microseconds(ns float64) string {
	if ns == 0 {
		return "-"
	}
	return strconv.FormatFloat(ns/1000, 'f', 1, 64)
}

func ratioText(x float64) string {
	if x == 0 {
		return "-"
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

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
func (r *jobsRun) writeBest(w *facts, list []routingCompared) {
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
			gain := ""
			if j.Gain != nil {
				gain = number(*j.Gain, true)
			}
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
		x            func(j, first *jobCompared) float64
	}{
		{"time with all jobs", "over that alone with " + list[0].Routing, func(j, first *jobCompared) float64 { return j.Together / first.Alone }},
		{"slowdown by other jobs", "time with all jobs over that alone", func(j, _ *jobCompared) float64 { return j.Slowdown }},
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
