package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/report/chart"
	"github.com/ibweave/ibweave/sim"
)

// The names of routings.
const (
	routedStatic = "static"
	routedFree   = "free"
	routedHBF    = "hbf"
	routedAsRead = "far" // as a file says
)

// simRouting is a routing that points are simulated with.
type simRouting struct {
	name string // "" where there is one only, the static one
	net  sim.Network
}

// compared lists the routings that are compared with the static one.
func (in *simulation) compared() ([]string, error) {
	switch in.adaptive {
	case "":
		if in.far != "" {
			return []string{routedAsRead}, nil
		}
		return nil, nil
	case routedFree, routedHBF, routedAsRead:
		return []string{in.adaptive}, nil
	case "all":
		return []string{routedFree, routedHBF}, nil
	}
	return nil, usagef("--adaptive %q: want free, hbf, all or far", in.adaptive)
}

// routed says whether the tables are to be made: -t FILE without tables.
func (in *simulation) routed(args []string) bool {
	return len(args) == 0 && in.topology != "" && !in.hasTables() && (in.engine != "" || in.adaptive != "")
}

// routeSimulated makes the tables of -t with an engine, or with the one that suits the fabric
// best.
func (a *app) routeSimulated(ctx context.Context, in *simulation) (*lft.Routing, error) {
	f, err := a.readTopology(in.topology, in.lenient)
	if err != nil {
		return nil, err
	}
	in.sums = map[string]string{in.topology: textSum(topology.Append(nil, f))}
	return a.routeBy(ctx, f, in.topology, in.engine)
}

// findRoutings are the static tables and the adaptive ones that they are compared with. Both have
// the same static ports and lanes.
func (a *app) findRoutings(ctx context.Context, in *simulation, net sim.Network, r *lft.Routing) ([]simRouting, error) {
	names, err := in.compared()
	if err != nil || names == nil {
		return []simRouting{{net: net}}, err
	}
	tables := in.choosing.adaptive
	if tables == nil && in.adaptive == routedAsRead {
		return nil, in.wrong("adaptive", "far: there is none: want --far FILE, or a directory with adaptive routing")
	}
	if tables == nil {
		s := a.startStage("find choices")
		tables, err = adaptive.Widen(ctx, r)
		s.end()
		if err != nil {
			return nil, err
		}
	}
	list := []simRouting{{routedStatic, net}}
	if len(tables.PLFTs) > 1 { // each with static ports of its own
		list[0].net.Adaptive = withState(tables, adaptive.Static)
	}
	for _, name := range names {
		more := net
		switch name {
		case routedFree:
			more.Adaptive = withState(tables, adaptive.Free)
		case routedHBF:
			more.Adaptive = withState(tables, adaptive.HBF)
		default:
			more.Adaptive = tables
		}
		list = append(list, simRouting{name, more})
	}
	return list, nil
}

// withState is tables of which all entries with a choice have one state.
func withState(t *adaptive.Tables, state adaptive.State) *adaptive.Tables {
	out := *t
	out.PLFTs = nil
	for _, p := range t.PLFTs {
		q := adaptive.NewPLFT(p.Ports)
		for s := range fabric.NodeID(p.Ports.Switches()) {
			for lid := range p.Row(s) {
				if was, group := p.At(s, fabric.LID(lid)); was != adaptive.Static && group >= 0 {
					q.Set(s, fabric.LID(lid), state, group)
				}
			}
		}
		out.PLFTs = append(out.PLFTs, q)
	}
	return &out
}

// simReordering is what became of the order of packets.
type simReordering struct {
	Packets         int64   `json:"packets"`
	OutOfOrder      int64   `json:"out_of_order"`
	Share           float64 `json:"share"` // of packets that are out of order
	Flows           int64   `json:"flows"`
	OutOfOrderFlows int64   `json:"out_of_order_flows"`
	Behind          int64   `json:"max_behind"` // packets
	Late            *simNs  `json:"late_ns,omitempty"`
}

func reordered(r *sim.Reordering) *simReordering {
	if r == nil {
		return nil
	}
	return &simReordering{
		Packets: r.Packets, OutOfOrder: r.OutOfOrder, Share: float64(r.OutOfOrder) / float64(max(r.Packets, 1)),
		Flows: r.Flows, OutOfOrderFlows: r.OutOfOrderFlows, Behind: r.Behind, Late: nanoseconds(&r.Late, true),
	}
}

// simCompared is a routing at one load and size, over all seeds: means of what the points
// have.
type simCompared struct {
	Load     float64 `json:"load,omitempty"`
	Bytes    int     `json:"bytes,omitempty"`
	Routing  string  `json:"routing"`
	Seeds    int     `json:"seeds"` // without those that deadlock
	Accepted float64 `json:"accepted"`
	P50      float64 `json:"p50_ns"`
	P99      float64 `json:"p99_ns"`
	// OutOfOrder is the share of packets.
	OutOfOrder float64        `json:"out_of_order"`
	States     map[string]int `json:"states"`
	// Gain is how much more is accepted than with static tables, seed by seed: 0.1 is a tenth
	// more. Nil for these, and where a seed deadlocks.
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
			list = append(list, simCompared{Load: p.Load, Bytes: p.Bytes, Routing: p.Routing, States: map[string]int{}})
		}
		c := &list[at]
		c.States[x.State]++
		if x.Deadlock != nil {
			continue
		}
		c.Seeds++
		c.Accepted += x.Accepted
		c.accepted = append(c.accepted, x.throughput())
		if x.Latency != nil {
			c.P50 += x.Latency.P50
			c.P99 += x.Latency.P99
		}
		if x.Reordering != nil {
			c.OutOfOrder += x.Reordering.Share
		}
	}
	for i := range list {
		c := &list[i]
		n := float64(max(c.Seeds, 1))
		c.Accepted, c.P50, c.P99, c.OutOfOrder = c.Accepted/n, c.P50/n, c.P99/n, c.OutOfOrder/n
		if c.Routing != routedStatic {
			base := slices.IndexFunc(list, func(d simCompared) bool { return d.Load == c.Load && d.Bytes == c.Bytes && d.Routing == routedStatic })
			c.Gain = gain(c.accepted, list[base].accepted)
		}
	}
	return list
}

// throughput is what the gain compares: what was accepted, and of a trace how fast it was over.
func (x *simResult) throughput() float64 {
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
func (r *simRun) writeCompared(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "load\tbytes\trouting\taccepted\tgain\tp50 ns\tp99 ns\tout of order\tstate\t")
	for _, c := range r.compared {
		accepted := ""
		if r.trace == nil {
			accepted = strconv.FormatFloat(c.Accepted, 'f', 4, 64)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%.0f\t%.0f\t%.2f %%\t%s\t\n", number(c.Load, c.Load > 0), c.Bytes, c.Routing,
			accepted, c.Gain, c.P50, c.P99, 100*c.OutOfOrder, c.stateText())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	said := "gain is how much more is accepted than with the static tables"
	if r.trace != nil {
		said = "gain is how much faster the trace is over than with the static tables"
	}
	if n := len(r.in.seeds); n > 1 && r.trace == nil {
		said += fmt.Sprintf(", with the 95 %% interval over %s", text.CountGrouped(n, "seed", "seeds"))
	} else if r.trace == nil {
		said += "; more seeds give it an interval, --seed 1,2,3"
	}
	_, err := fmt.Fprintf(w, "\n%s\n", said)
	return err
}

// stateText is the states of a comparison's points: how many, where they differ.
func (c *simCompared) stateText() string {
	var states []string
	for s := range c.States {
		states = append(states, s)
	}
	slices.Sort(states)
	if len(states) == 1 {
		return states[0]
	}
	for i, s := range states {
		states[i] = fmt.Sprintf("%d %s", c.States[s], s)
	}
	return strings.Join(states, ", ")
}

// chart draws a comparison: what is accepted and the latency, against the load, or the size
// where there is one load.
func (r *simRun) chart() *chart.Chart {
	x := chart.Axis{Label: "offered load", Unit: "of the link", Scale: chart.Linear}
	at := func(c *simCompared) float64 { return c.Load }
	if len(r.in.loads) < 2 {
		x = chart.Axis{Label: "message", Unit: "bytes", Scale: chart.Log2}
		at = func(c *simCompared) float64 { return float64(c.Bytes) }
	}
	panels := []chart.Panel{
		{Title: "throughput", Y: chart.Axis{Label: "accepted", Unit: "of the hosts' links", Scale: chart.Linear}},
		{Title: "order", Y: chart.Axis{Label: "packets out of order", Unit: "%", Scale: chart.Linear}},
		{Title: "latency, median", Y: chart.Axis{Label: "latency", Unit: "us", Scale: chart.Log10}},
		{Title: "latency, 99th percentile", Y: chart.Axis{Label: "latency", Unit: "us", Scale: chart.Log10}},
	}
	for k := range panels {
		panels[k].X = x
		for _, routing := range r.routings {
			for _, bytes := range r.sizesOfCurves() {
				curve := chart.Curve{Name: routing.name}
				if bytes > 0 {
					curve.Name += fmt.Sprintf(", %d bytes", bytes)
				}
				for i := range r.compared {
					c := &r.compared[i]
					if c.Routing != routing.name || bytes > 0 && c.Bytes != bytes || c.Seeds == 0 {
						continue
					}
					p := chart.Point{X: at(c), Y: [4]float64{c.Accepted, 100 * c.OutOfOrder, c.P50 / 1000, c.P99 / 1000}[k]}
					if k == 0 {
						mean, low, _ := quality.Interval(c.accepted)
						p.Half = mean - low
					}
					if p.Y > 0 || panels[k].Y.Scale == chart.Linear {
						curve.Points = append(curve.Points, p)
					}
				}
				slices.SortFunc(curve.Points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
				panels[k].Curves = append(panels[k].Curves, curve)
			}
		}
	}
	return &chart.Chart{Title: "static and adaptive routing: " + r.in.trafficText(r), Panels: panels}
}

// sizesOfCurves are the sizes that have curves of their own, 0 where all are on one.
func (r *simRun) sizesOfCurves() []int {
	if len(r.in.loads) > 1 && len(r.in.bytes) > 1 {
		return r.in.bytes
	}
	return []int{0}
}

// drawCompared writes the pictures that are asked for.
func (a *app) drawCompared(r *simRun) error {
	c := r.chart()
	if r.in.svg != "" {
		if err := a.writeComplete(r.in.svg, c.SVG); err != nil {
			return err
		}
	}
	if r.in.png != "" {
		return a.writeComplete(r.in.png, c.PNG)
	}
	return nil
}
