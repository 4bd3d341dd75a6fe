package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report/chart"
	"github.com/ibweave/ibweave/sim"
)

// simCompared is a routing at one load and size, over all seeds: means of what the points
// have.
type simCompared struct {
	Load     float64 `json:"load,omitempty"`
	Bytes    int     `json:"bytes,omitempty"`
	Routing  string  `json:"routing"`
	Engine   string  `json:"engine,omitempty"` // of the routing, with --engines
	VLs      int     `json:"vls,omitempty"`    // with --vls
	Seeds    int     `json:"seeds"`            // without those that deadlock
	Accepted float64 `json:"accepted"`
	Time     float64 `json:"time_ns"`
	P50      float64 `json:"p50_ns"`
	P99      float64 `json:"p99_ns"`
	// OutOfOrder is the share of packets.
	OutOfOrder float64        `json:"out_of_order"`
	States     map[string]int `json:"states"`
	Limits     map[string]int `json:"limits"`  // seeds by what limits
	Blocked    float64        `json:"blocked"` // share of the time of hosts
	// Gain is how much more is accepted than with the first routing, seed by seed: 0.1 is a tenth
	// more. Nil for the first one, and where a seed deadlocks.
	Gain *simGain `json:"gain,omitempty"`

	accepted []float64
}

// simGain is a mean with its 95 % confidence interval over seeds by Student's t, which one seed
// has not.
type simGain struct {
	Mean float64  `json:"mean"`
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// compare joins the points of all seeds, in the order of loads and sizes, and of the routings.
func (r *simRun) compare() []simCompared {
	if len(r.routings) == 1 {
		return nil
	}
	var list []simCompared
	for i := range r.points {
		p, x := &r.points[i], &r.results[i]
		at := slices.IndexFunc(list, func(c simCompared) bool { return c.Load == p.Load && c.Bytes == p.Bytes && c.Routing == p.Routing })
		if at < 0 {
			at = len(list)
			list = append(list, simCompared{
				Load: p.Load, Bytes: p.Bytes, Routing: p.Routing, Engine: p.Engine, VLs: p.VLs, States: map[string]int{}, Limits: map[string]int{},
			})
		}
		c := &list[at]
		c.States[x.State]++
		if x.Deadlock != nil {
			continue
		}
		c.Seeds++
		c.Accepted += x.Accepted
		c.Time += x.Time
		c.accepted = append(c.accepted, throughput(x))
		if x.Latency != nil {
			c.P50 += x.Latency.P50
			c.P99 += x.Latency.P99
		}
		if x.Reordering != nil {
			c.OutOfOrder += x.Reordering.Share
		}
		if x.Limits != nil {
			c.Limits[limit(x)]++
			c.Blocked += x.Limits.Blocked
		}
	}
	first := r.routings[0].name()
	for i := range list {
		c := &list[i]
		n := float64(max(c.Seeds, 1))
		for _, sum := range []*float64{&c.Accepted, &c.Time, &c.P50, &c.P99, &c.OutOfOrder, &c.Blocked} {
			*sum /= n
		}
		if c.Routing != first {
			base := slices.IndexFunc(list, func(d simCompared) bool { return d.Load == c.Load && d.Bytes == c.Bytes && d.Routing == first })
			c.Gain = gain(c.accepted, list[base].accepted)
		}
	}
	return list
}

// throughput is what the gain compares: what was accepted, and of a trace how fast it was over.
func throughput(x *sim.Result) float64 {
	if x.Accepted > 0 || x.Time == 0 {
		return x.Accepted
	}
	return 1 / x.Time
}

// gain compares what was accepted, seed by seed; nil where seeds lack.
func gain(with, static []float64) *simGain {
	if len(with) != len(static) || len(with) == 0 || slices.Contains(static, 0) {
		return nil
	}
	ratios := make([]float64, len(with))
	for i := range with {
		ratios[i] = with[i]/static[i] - 1
	}
	mean, low, high := quality.Interval(ratios)
	g := &simGain{Mean: mean}
	if len(ratios) > 1 {
		g.Low, g.High = &low, &high
	}
	return g
}

// String is the gain in percent.
func (g *simGain) String() string {
	switch {
	case g == nil:
		return ""
	case g.Low == nil:
		return fmt.Sprintf("%+.1f %%", 100*g.Mean)
	}
	return fmt.Sprintf("%+.1f %% (%+.1f to %+.1f)", 100*g.Mean, 100**g.Low, 100**g.High)
}

// writeCompared prints the table of a comparison.
func (r *simRun) writeCompared(w *text.Sheet) {
	order := r.choosing()
	t := w.Numbers()
	head := "load\tbytes\trouting\taccepted\tgain\tp50 ns\tp99 ns\ttime us\t"
	if order {
		head += "out of order\t"
	}
	fmt.Fprintln(t, head+"limit\tstate\t")
	for i := range r.compared {
		c := &r.compared[i]
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%.0f\t%.0f\t%.3f\t", number(c.Load, c.Load > 0), c.Bytes, c.Routing, decimals(c.Accepted, 4, r.trace == nil), c.Gain, c.P50, c.P99, c.Time/1000)
		if order {
			fmt.Fprintf(t, "%.2f %%\t", 100*c.OutOfOrder)
		}
		fmt.Fprintf(t, "%s\t%s\t\n", counted(c.Limits), counted(c.States))
	}
	_ = t.Flush() // a buffer takes all
	first := r.routings[0].name()
	if first == routedStatic {
		first = "the static tables"
	}
	said := "gain is how much more is accepted than with " + first
	if r.trace != nil {
		said = "gain is how much faster the trace is over than with " + first
	}
	if n := len(r.in.seeds); n > 1 && r.trace == nil {
		said += fmt.Sprintf(", with the 95 %% interval over %s", text.CountGrouped(n, "seed", "seeds"))
	} else if r.trace == nil {
		said += "; more seeds give it an interval, --seed 1,2,3"
	}
	fmt.Fprintf(w, "\n%s\n", said)
}

// choosing says whether switches choose among ports with one of the routings.
func (r *simRun) choosing() bool {
	return slices.ContainsFunc(r.routings, func(x simRouting) bool { return x.choice != "" })
}

// counted lists the states or limits of seeds: how many have each, where they differ.
func counted(seeds map[string]int) string {
	names := slices.Sorted(maps.Keys(seeds))
	if len(names) == 1 {
		return names[0]
	}
	for i, s := range names {
		names[i] = fmt.Sprintf("%d %s", seeds[s], s)
	}
	return strings.Join(names, ", ")
}

// simPanel is a panel of the picture of a comparison.
type simPanel struct {
	title, label, unit string
	scale              chart.Scale
	y                  func(c *simCompared) float64
}

// simPanels are the panels: the last one is the order of packets where switches choose.
var simPanels = []simPanel{
	{"throughput", "accepted", "of the hosts' links", chart.Linear, func(c *simCompared) float64 { return c.Accepted }},
	{"latency, median", "latency", "us", chart.Log10, func(c *simCompared) float64 { return c.P50 / 1000 }},
	{"latency, 99th percentile", "latency", "us", chart.Log10, func(c *simCompared) float64 { return c.P99 / 1000 }},
	{"hosts that wait for the network", "blocked", "% of the time", chart.Linear, func(c *simCompared) float64 { return 100 * c.Blocked }},
	{"order", "packets out of order", "%", chart.Linear, func(c *simCompared) float64 { return 100 * c.OutOfOrder }},
}

// chart draws a comparison against the load; where there is one load, against the lanes or the
// size.
func (r *simRun) chart() *chart.Chart {
	axis := chart.Axis{Label: "offered load", Unit: "of the link", Scale: chart.Linear}
	x := func(c *simCompared) float64 { return c.Load }
	curveOf := (*simRouting).name
	switch {
	case len(r.in.loads) > 1:
	case len(r.in.vls) > 1 && len(r.in.bytes) == 1:
		axis = chart.Axis{Label: "virtual lanes", Scale: chart.Log2}
		x = func(c *simCompared) float64 { return float64(c.VLs) }
		curveOf = func(x *simRouting) string {
			all := *x
			all.vls = 0
			return cmp.Or(all.name(), "tables")
		}
	default:
		axis = chart.Axis{Label: "message", Unit: "bytes", Scale: chart.Log2}
		x = func(c *simCompared) float64 { return float64(c.Bytes) }
	}
	out := &chart.Chart{Title: r.in.trafficText(r)}
	sizes := []int{0} // that have curves of their own, 0 where all are on one
	if len(r.in.loads) > 1 && len(r.in.bytes) > 1 {
		sizes = r.in.bytes
	}
	panels := simPanels
	if !r.choosing() {
		panels = panels[:len(panels)-1]
	}
	for _, p := range panels {
		panel := chart.Panel{Title: p.title, X: axis, Y: chart.Axis{Label: p.label, Unit: p.unit, Scale: p.scale}}
		for _, bytes := range sizes {
			for i := range r.compared {
				c := &r.compared[i]
				if bytes > 0 && c.Bytes != bytes || c.Seeds == 0 {
					continue
				}
				name := curveOf(r.routing(c.Routing))
				if bytes > 0 {
					name += fmt.Sprintf(", %d bytes", bytes)
				}
				at := slices.IndexFunc(panel.Curves, func(c chart.Curve) bool { return c.Name == name })
				if at < 0 {
					at = len(panel.Curves)
					panel.Curves = append(panel.Curves, chart.Curve{Name: name})
				}
				point := chart.Point{X: x(c), Y: p.y(c)}
				if p.title == simPanels[0].title && r.trace == nil {
					mean, low, _ := quality.Interval(c.accepted)
					point.Half = mean - low
				}
				if point.Y > 0 || p.scale == chart.Linear {
					panel.Curves[at].Points = append(panel.Curves[at].Points, point)
				}
			}
		}
		for _, c := range panel.Curves {
			slices.SortFunc(c.Points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
		}
		out.Panels = append(out.Panels, panel)
	}
	return out
}

// writePictures writes pictures as SVG and PNG into files, "" for none.
func (a *app) writePictures(svg, png string, writeSVG, writePNG func(io.Writer) error) error {
	if svg != "" {
		if err := a.writeComplete(svg, writeSVG); err != nil {
			return err
		}
	}
	if png != "" {
		return a.writeComplete(png, writePNG)
	}
	return nil
}
