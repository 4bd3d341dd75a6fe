package reproduce

import (
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report/chart"
	"github.com/ibweave/ibweave/sim"
)

// setting is something that the mesh papers do not
// give (X19, X16, E-X15), and the values to try.
type setting struct {
	name   string
	axis   chart.Axis
	values []float64
	quick  []float64 // those of quick runs
	set    func(x *exchange, value float64)
	// cases are numbers of sources and of the group: by default 1, or 40 % of hosts, send to 40 %.
	cases [][2]int
	// bytes are the sizes, by default the least and the greatest.
	bytes [2]int
}

var meshSettings = []setting{
	{
		name: "routing-delay", axis: linear("routing delay of a switch", "ns"),
		values: []float64{0, 50, 100, 200, 400}, quick: []float64{0, 100, 400},
		set: func(x *exchange, v float64) { x.routing = sim.Time(v) * sim.Nanosecond },
	},
	{
		name: "wire-delay", axis: linear("delay of a wire", "ns"),
		values: []float64{0, 10, 50, 100, 200}, quick: []float64{0, 10, 200},
		set: func(x *exchange, v float64) { x.wire = sim.Time(v) * sim.Nanosecond },
	},
	{
		name: "credit-delay", axis: linear("delay of a credit", "ns"),
		values: []float64{0, 10, 50, 100, 200}, quick: []float64{0, 10, 200},
		set: func(x *exchange, v float64) { x.credit = sim.Time(v) * sim.Nanosecond },
	},
	{
		name: "buffers", axis: chart.Axis{Label: "buffer of a port and VL", Unit: "packets", Scale: chart.Log2},
		values: []float64{1, 2, 4, 8}, quick: []float64{1, 2, 8},
		set: func(x *exchange, v float64) { x.buffers = int(v) },
	},
	{
		name: "headers", axis: linear("headers of a packet", "bytes"),
		values: []float64{0, 26, 74}, quick: []float64{0, 74},
		set: func(x *exchange, v float64) { x.header = int(v) },
	},
	{
		name: "mtu", axis: chart.Axis{Label: "MTU", Unit: "bytes", Scale: chart.Log2},
		values: []float64{256, 1024, 2048, 4096, 8192}, quick: []float64{2048, 8192},
		set: func(x *exchange, v float64) { x.mtu = int(v) }, bytes: [2]int{2048, 8192},
	},
	{
		name: "unicast-order", axis: chart.Axis{Label: "order of unicast destinations", Scale: chart.Linear, Categories: []string{"by LID", "by LID from the source on", "random"}},
		values: []float64{1, 2, 3}, quick: []float64{1, 3},
		set: func(x *exchange, v float64) {
			x.order = []unicastOrder{orderLID, orderRotate, orderRandom}[int(v)-1]
		},
		cases: [][2]int{{meshPart, meshPart}, {meshHosts, meshHosts}},
	},
	{
		name: "service-levels", axis: chart.Axis{Label: "SL of a packet", Scale: chart.Linear, Categories: []string{"by sequence", "by destination", "random"}},
		values: []float64{1, 2, 3}, quick: []float64{1, 3},
		set: func(x *exchange, v float64) {
			x.choice = []slChoice{slBySequence, slByPair, slRandom}[int(v)-1]
		},
	},
}

// meshSensitivity returns figures of times over what the papers do not give.
func meshSensitivity() []Experiment {
	var list []Experiment
	for _, s := range meshSettings {
		list = append(list, Experiment{
			Name: "x19-" + s.name, Title: "What the paper does not give: " + s.axis.Label,
			Run: func(lab *Lab) (*Figure, error) { return s.figure(lab) },
		})
	}
	return list
}

// sensitivityDraws is the number of draws of these figures.
const sensitivityDraws = 3

// sensitivityLanes are the configurations of these figures.
var sensitivityLanes = []lanes{oneVL, fourBySL}

func (s *setting) figure(lab *Lab) (*Figure, error) {
	values, draws := s.values, sensitivityDraws
	if lab.Quick {
		values, draws = s.quick, 1
	}
	f, points := s.lay(values, draws, lab.Seed)
	return f, measureMesh(lab, points, draws)
}

// lay returns the figure without its times, and the points that get them.
func (s *setting) lay(values []float64, draws int, seed uint64) (*Figure, []meshPoint) {
	cases, sizes := s.cases, s.bytes
	if cases == nil {
		cases = [][2]int{{1, meshPart}, {meshPart, meshPart}}
	}
	if sizes[0] == 0 {
		sizes = [2]int{smallBytes[0], largeBytes[len(largeBytes)-1]}
	}
	f := &Figure{Parameters: meshParameters(&meshCase{}, draws)}
	var points []meshPoint
	for _, c := range cases {
		for _, bytes := range sizes {
			p := chart.Panel{Title: panelOf(c, bytes), X: s.axis, Y: makespanAxis}
			points = append(points, addMeshCurves(&p, sensitivityLanes, values, func(v float64, unicast bool, l lanes) exchange {
				x := newExchange(c[0], c[1], bytes, unicast, l, seed, 0)
				s.set(&x, v)
				return x
			})...)
			f.Panels = append(f.Panels, p)
		}
	}
	return f, points
}

func panelOf(c [2]int, bytes int) string {
	mc := meshCase{sources: c[0], group: c[1]}
	return fmt.Sprintf("%s, %d bytes", mc.short(), bytes)
}

func (s *setting) in(figures Figures, panel string, unicast bool, l lanes, x float64) chart.Point {
	f := figures["x19-"+s.name]
	for i := range f.Panels {
		if f.Panels[i].Title == panel {
			return f.panel(i).At(curveOf(unicast, l), x)
		}
	}
	panic(fmt.Sprintf("%s has no panel %q", f.ID, panel))
}

// sensitivityClaims are decided by the figures of meshSensitivity.
func sensitivityClaims() []Claim {
	all := text.Each(meshSettings, func(s setting) string { return "x19-" + s.name })
	return []Claim{
		{
			Spec: "X22-5", Paper: "with one source, two packets never contend for a buffer (case 1)", Figures: []string{"x19-buffers"},
			Judge: func(f Figures) Finding {
				buffers := settingNamed("buffers")
				panel := panelOf([2]int{1, meshPart}, smallBytes[0])
				at := func(l lanes, packets float64) chart.Point { return buffers.in(f, panel, true, l, packets) }
				out := Finding{
					Measured: fmt.Sprintf("repeated unicast, %s: with a buffer of 1 packet %.2f µs on 1 VL and %.2f on 4, of 2 packets %.2f and %.2f",
						panel, at(oneVL, 1).Y, at(fourBySL, 1).Y, at(oneVL, 2).Y, at(fourBySL, 2).Y),
				}
				alone := func(packets float64) bool {
					return beyond(saving(at(fourBySL, packets), at(oneVL, packets)), meshNoise) < 0
				}
				switch {
				case alone(1):
					out.Verdict = Holds
				case alone(2):
					out.Verdict, out.As = HoldsAs, "with buffers of two packets"
					out.Why = "with room for one packet the next one waits until the credit is back, and other lanes help; with that the paper's " +
						"gain by more lanes for one source would be none, so its buffers must be of one packet (E-X12)"
				default:
					out.Verdict = Fails
				}
				return out
			},
		},
		{
			Spec: "X19", Paper: "multicast outperforms unicast in all cases: whatever the paper does not give", Figures: all,
			Judge: func(f Figures) Finding {
				var s tally
				for _, name := range all {
					for i, p := range f[name].Panels {
						one := f[name].panel(i)
						for _, l := range sensitivityLanes {
							for _, at := range one.Curve(curveOf(true, l)) {
								speedup := ratio(at, one.At(curveOf(false, l), at.X))
								s.add(beyond(speedup, 1), speedup.Y, "%s %v, %s, %s", strings.TrimPrefix(name, "x19-"), at.X, p.Title, l.label)
							}
						}
					}
				}
				return decided(s.how(), "", "unicast takes %.1f (%s) to %.0f times as long (%s), in %d cases", s.low, s.atLow, s.high, s.atHigh, s.n)
			},
		},
		{
			Spec: "X19 order", Paper: "speedups, in whatever order repeated unicast serves its destinations (not said)", Figures: []string{"x19-unicast-order"},
			Judge: func(f Figures) Finding {
				order := settingNamed("unicast-order")
				panel := panelOf([2]int{meshHosts, meshHosts}, smallBytes[0])
				lid, random := order.in(f, panel, true, oneVL, 1), order.in(f, panel, true, oneVL, 3)
				multicast := order.in(f, panel, false, oneVL, 1)
				out := Finding{
					Verdict:  NotDecidable,
					Measured: fmt.Sprintf("%s, 1 VL: by LID %.0f µs, random %.0f µs; speedup %.1f and %.1f", panel, lid.Y, random.Y, lid.Y/multicast.Y, random.Y/multicast.Y),
					Why: "with one order for all sources they serve the same receiver at the same time and wait at its link; " +
						"the paper does not say which order it has, and half of its speedups may be due to it",
				}
				switch within(saving(random, lid), -meshUnclear, meshUnclear) {
				case 1:
					out.Verdict, out.Why = Holds, "taken as: times differ by at most 5 %"
				case 0:
					out.decide(0)
				}
				return out
			},
		},
	}
}

func settingNamed(name string) *setting {
	for i := range meshSettings {
		if meshSettings[i].name == name {
			return &meshSettings[i]
		}
	}
	panic("no setting " + name)
}
