package experiment

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/report/chart"
)

// Compared is a routing at one load and size, with means over all seeds.
type Compared struct {
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
	// OutOfOrder is the share of packets that arrive out of order.
	OutOfOrder float64        `json:"out_of_order"`
	States     map[string]int `json:"states"`
	Limits     map[string]int `json:"limits"`  // seeds, by what limits them
	Blocked    float64        `json:"blocked"` // share of time that hosts are blocked
	// Gain is how much more is accepted than with the first routing, seed by seed: 0.1 is a tenth
	// more. It is nil for the first routing, and if a seed deadlocks.
	Gain *Gain `json:"gain,omitempty"`

	accepted []float64
}

// Gain is a mean with its 95 % confidence interval over seeds by Student's t; Low and High are nil
// for one seed.
type Gain struct {
	Mean float64  `json:"mean"`
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// Compare joins the points of all seeds, by load, size and routing; nil for one routing.
func (r *Run) Compare() []Compared {
	if len(r.Routings) == 1 {
		return nil
	}
	var list []Compared
	for i := range r.Points {
		p, x := &r.Points[i], &r.Results[i]
		at := slices.IndexFunc(list, func(c Compared) bool { return c.Load == p.Load && c.Bytes == p.Bytes && c.Routing == p.Routing })
		if at < 0 {
			at = len(list)
			list = append(list, Compared{
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
		c.accepted = append(c.accepted, x.Accepted)
		if x.Latency != nil {
			c.P50 += x.Latency.P50
			c.P99 += x.Latency.P99
		}
		if x.Reordering != nil {
			c.OutOfOrder += x.Reordering.Share
		}
		if x.Limits != nil {
			c.Limits[Limit(x)]++
			c.Blocked += x.Limits.Blocked
		}
	}
	first := r.Routings[0].Name()
	for i := range list {
		c := &list[i]
		n := float64(max(c.Seeds, 1))
		for _, sum := range []*float64{&c.Accepted, &c.Time, &c.P50, &c.P99, &c.OutOfOrder, &c.Blocked} {
			*sum /= n
		}
		if c.Routing != first {
			base := slices.IndexFunc(list, func(d Compared) bool { return d.Load == c.Load && d.Bytes == c.Bytes && d.Routing == first })
			c.Gain = gain(c.accepted, list[base].accepted)
		}
	}
	return list
}

// gain compares the shares accepted by two routings, seed by seed; nil if seeds are missing.
func gain(with, static []float64) *Gain {
	if len(with) != len(static) || len(with) == 0 || slices.Contains(static, 0) {
		return nil
	}
	ratios := make([]float64, len(with))
	for i := range with {
		ratios[i] = with[i]/static[i] - 1
	}
	mean, low, high := quality.Interval(ratios)
	g := &Gain{Mean: mean}
	if len(ratios) > 1 {
		g.Low, g.High = &low, &high
	}
	return g
}

// String is the gain in percent.
func (g *Gain) String() string {
	switch {
	case g == nil:
		return ""
	case g.Low == nil:
		return fmt.Sprintf("%+.1f %%", 100*g.Mean)
	}
	return fmt.Sprintf("%+.1f %% (%+.1f to %+.1f)", 100*g.Mean, 100**g.Low, 100**g.High)
}

// Choosing returns true if switches choose among ports in one of the routings.
func (r *Run) Choosing() bool {
	return slices.ContainsFunc(r.Routings, func(x Routing) bool { return x.Choice != "" })
}

// panel is a panel of the picture of a comparison.
type panel struct {
	title, label, unit string
	scale              chart.Scale
	y                  func(c *Compared) float64
}

// panels are the panels of the picture; the last, the order of packets, only if switches choose.
var panels = []panel{
	{"throughput", "accepted", "of the hosts' links", chart.Linear, func(c *Compared) float64 { return c.Accepted }},
	{"latency, median", "latency", "us", chart.Log10, func(c *Compared) float64 { return c.P50 / 1000 }},
	{"latency, 99th percentile", "latency", "us", chart.Log10, func(c *Compared) float64 { return c.P99 / 1000 }},
	{"hosts that wait for the network", "blocked", "% of the time", chart.Linear, func(c *Compared) float64 { return 100 * c.Blocked }},
	{"order", "packets out of order", "%", chart.Linear, func(c *Compared) float64 { return 100 * c.OutOfOrder }},
}

// Chart draws a comparison against the load; if there is only one load, against the number of lanes
// or the message size.
func (r *Run) Chart(title string) *chart.Chart {
	axis := chart.Axis{Label: "offered load", Unit: "of the link", Scale: chart.Linear}
	x := func(c *Compared) float64 { return c.Load }
	curveOf := (*Routing).Name
	switch {
	case len(r.Loads) > 1:
	case len(r.Bytes) == 1 && slices.ContainsFunc(r.Routings, func(x Routing) bool { return x.VLs != r.Routings[0].VLs }):
		axis = chart.Axis{Label: "virtual lanes", Scale: chart.Log2}
		x = func(c *Compared) float64 { return float64(c.VLs) }
		curveOf = func(x *Routing) string {
			all := *x
			all.VLs = 0
			return cmp.Or(all.Name(), "tables")
		}
	default:
		axis = chart.Axis{Label: "message", Unit: "bytes", Scale: chart.Log2}
		x = func(c *Compared) float64 { return float64(c.Bytes) }
	}
	out := &chart.Chart{Title: title}
	sizes := []int{0} // with curves of their own; 0 if all are on one curve
	if len(r.Loads) > 1 && len(r.Bytes) > 1 {
		sizes = r.Bytes
	}
	panels := panels
	if !r.Choosing() {
		panels = panels[:len(panels)-1]
	}
	for _, p := range panels {
		panel := chart.Panel{Title: p.title, X: axis, Y: chart.Axis{Label: p.label, Unit: p.unit, Scale: p.scale}}
		for _, bytes := range sizes {
			for i := range r.Compared {
				c := &r.Compared[i]
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
				if p.title == panels[0].title {
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
