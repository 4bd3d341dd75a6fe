package experiment

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sim"
)

// Run is a sweep: each routing with each load, size and seed.
type Run struct {
	*Setup
	Routings []Routing
	Net      sim.Network // of the first routing
	Trees    []mft.Tree
	Points   []Point
	// Results has the result of each point, in the order of Points, once it is simulated.
	Results  []sim.Result
	Compared []Compared // see Compare; nil for one routing
	mbps     int        // rate of the slowest link of a host
}

// Point has the parameters of a simulation.
type Point struct {
	Load    float64 `json:"load,omitempty"` // 0 in closed loop
	Bytes   int     `json:"bytes,omitempty"`
	Seed    uint64  `json:"seed,omitempty"`
	Routing string  `json:"routing,omitempty"` // if there are several
	Engine  string  `json:"engine,omitempty"`
	VLs     int     `json:"vls,omitempty"`
	What    string  `json:"-"` // which jobs; "" for other traffic
}

// String names the point, to stand before a message.
func (p *Point) String() string {
	if p.What != "" {
		return strings.TrimPrefix(p.Routing+", "+p.What+": ", ", ")
	}
	said := fmt.Sprintf("%d bytes, seed %d: ", p.Bytes, p.Seed)
	if p.Load > 0 {
		said = fmt.Sprintf("load %g, ", p.Load) + said
	}
	if p.Routing != "" {
		said = p.Routing + ", " + said
	}
	return said
}

// NewRun makes the points of routings, on the fabric of the first one. The ports that send are
// s.Traffic.Hosts: at least two. Errors are *SettingError.
func NewRun(s *Setup, routings []Routing, trees []mft.Tree) (*Run, error) {
	r := &Run{Setup: s, Routings: routings, Net: routings[0].Net, Trees: trees, mbps: s.Config.Mbps}
	f := r.Net.Fabric
	for _, p := range s.Traffic.Hosts {
		if s.Config.Mbps > 0 {
			break
		}
		mbps := f.Link(p).Mbps()
		if mbps == 0 {
			return nil, noRate(f, p)
		}
		if r.mbps == 0 || mbps < r.mbps {
			r.mbps = mbps
		}
	}
	vls := lanes(routings)
	if _, err := s.Pattern.For(len(s.Traffic.Hosts), 0); err != nil {
		return nil, &SettingError{"pattern", err}
	}
	if s.Traffic.Multicast > 0 {
		sources, err := s.Sources.Of(sim.CountSenders(trees))
		if err != nil {
			return nil, &SettingError{"sources", err}
		}
		s.Traffic.Sources = sources
	}
	loads := s.Loads
	if s.Burst > 0 {
		loads = []float64{0}
	}
	for _, bytes := range s.Bytes {
		if err := s.fits(bytes, vls); err != nil {
			return nil, &SettingError{"bytes", err}
		}
		for _, load := range loads {
			for i := range routings {
				for _, seed := range s.Seeds {
					p := routings[i].point()
					p.Load, p.Bytes, p.Seed = load, bytes, seed
					r.Points = append(r.Points, p)
				}
			}
		}
	}
	return r, nil
}

func noRate(f *fabric.Fabric, p fabric.PortID) error {
	return wrong("mbps", "the fabric does not say how fast the link of %s is: want megabits a second for all", f.PortName(p))
}

// Simulate runs point i. A deadlock is a result, not an error. Errors are *SettingError,
// *sim.ConservationError, ctx's, and those about impossible hardware.
func (r *Run) Simulate(ctx context.Context, i int) (sim.Result, error) {
	p := r.Points[i]
	traffic, stop := r.Traffic, r.Stop
	traffic.Pattern, traffic.Trees = r.Pattern, r.Trees
	traffic.Load, traffic.Bytes, traffic.Seed = p.Load, p.Bytes, p.Seed
	x := r.routing(p.Routing)
	traffic.SLs = x.SLs
	cfg := r.config(p.Bytes, x.Net.VLs())
	var m *sim.Measured
	var err error
	switch {
	case r.Burst > 0:
		m, err = sim.Burst(ctx, x.Net, cfg, traffic, r.Burst, stop.MaxTime)
	default:
		gap := traffic.Gap(r.mbps)
		stop.WarmUp = cmp.Or(stop.WarmUp, 20*gap)
		if stop.MaxTime == 0 {
			stop.MaxTime = stop.WarmUp + max(2000, 20*sim.Time(stop.MinMessages)/sim.Time(len(traffic.Hosts)))*gap
		}
		if stop.MaxTime <= stop.WarmUp {
			return sim.Result{}, wrong("max-time", "%s is not after the warm-up, which takes %s", stop.MaxTime, stop.WarmUp)
		}
		m, err = sim.Measure(ctx, x.Net, cfg, traffic, stop)
	}
	if deadlock, ok := errors.AsType[*sim.DeadlockError](err); ok {
		return deadlock.Result(), nil
	}
	if err != nil {
		return sim.Result{}, err
	}
	return m.Result(r.Loads == nil), nil
}

// fabricSize is the fabric in JSON.
type fabricSize struct {
	Switches int `json:"switches"`
	CAPorts  int `json:"ca_ports"`
	Links    int `json:"links"`
	VLs      int `json:"vls,omitempty"` // of the tables; not with jobs
}

func sizeOf(f *fabric.Fabric) fabricSize {
	return fabricSize{Switches: f.NumSwitches(), CAPorts: len(f.CAPorts()), Links: f.NumLinks()}
}

// Document returns the JSON form, with the parameters that the results depend on.
func (r *Run) Document(parameters map[string]string) any {
	type point struct {
		Point
		sim.Result
	}
	doc := struct {
		Fabric     fabricSize        `json:"fabric"`
		Parameters map[string]string `json:"parameters"`
		Points     []point           `json:"points"`
		Compared   []Compared        `json:"comparison,omitempty"`
	}{Fabric: sizeOf(r.Net.Fabric), Parameters: parameters, Compared: r.Compared}
	doc.Fabric.VLs = r.Net.VLs()
	for i := range r.Results {
		doc.Points = append(doc.Points, point{r.Points[i], r.Results[i]})
	}
	return &doc
}

// columns are the columns of CSV. A value that does not exist is empty.
var columns = []string{
	"load", "bytes", "seed", "state", "messages", "latency_ns", "latency_error_ns", "latency_min_ns", "latency_p50_ns", "latency_p99_ns", "latency_max_ns",
	"unicast_ns", "unicast_error_ns", "multicast_ns", "multicast_error_ns", "receiver_ns", "receiver_error_ns",
	"offered", "accepted", "time_ns", "incomplete", "dropped", "strayed", "packets", "flit_hops", "events", "routing", "out_of_order", "limit",
}

// WriteCSV writes a line for each point.
func (r *Run) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	_ = c.Write(columns) // an error stays until Flush
	for i := range r.Results {
		p, x := &r.Points[i], &r.Results[i]
		row := []string{number(p.Load, p.Load > 0), strconv.Itoa(p.Bytes), strconv.FormatUint(p.Seed, 10), x.State, strconv.FormatInt(x.Messages, 10)}
		row = append(row, MeanAndError(x.Latency, text.Exact)...)
		l, known := cmp.Or(x.Latency, &sim.Summary{}), x.Latency != nil
		row = append(row, number(l.Min, known), number(l.P50, known), number(l.P99, known), number(l.Max, known))
		for _, l := range []*sim.Summary{x.Unicast, x.Multicast, x.Receiver} {
			row = append(row, MeanAndError(l, text.Exact)...)
		}
		row = append(row, number(x.Offered, true), number(x.Accepted, true), number(x.Time, true))
		for _, n := range []int64{x.Incomplete, x.Dropped, x.Strayed, x.Packets, x.FlitHops, x.Events} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		outOfOrder := ""
		if x.Reordering != nil {
			outOfOrder = strconv.FormatInt(x.Reordering.OutOfOrder, 10)
		}
		row = append(row, p.Routing, outOfOrder, Limit(x))
		_ = c.Write(row)
	}
	c.Flush()
	return c.Error()
}

func number(x float64, known bool) string { return text.Decimals(x, text.Exact, known) }

// Limit names the resource that limits a result; "" if nothing was measured.
func Limit(x *sim.Result) string {
	if x.Limits == nil {
		return ""
	}
	return x.Limits.Limit.String()
}

// MeanAndError returns the mean and half of its confidence interval, with n decimals, or "".
func MeanAndError(l *sim.Summary, n int) []string {
	if l == nil {
		return []string{"", ""}
	}
	half := cmp.Or(l.Error, new(float64))
	return []string{text.Decimals(l.Mean, n, true), text.Decimals(*half, n, l.Error != nil)}
}
