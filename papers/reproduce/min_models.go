package reproduce

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/papers/multistage"
	"github.com/ibweave/ibweave/report/chart"
)

var minModel = Model{
	Name: "min", Short: "throughput of a banyan network, by the model and by slots",
	Long: `The nodes of a banyan network of 2x2 elements without buffers send packets in time slots,
of which a part is multicast with some fanout; what is blocked is lost. Lines are the
paper's analytic model, points a simulation that follows each header. There is a panel for
each part of multicast, and a curve for each combination of the other values.`,
	Example: "min --x fanout --fanout 2,3,5,8 --stages 6 --load 0.5 --multicast 0.2 --count parts,whole",
	define: func(flags *pflag.FlagSet) func(lab *Lab) (*Figure, error) {
		var o minSweep
		flags.StringVar(&o.x, "x", "load", "what is on the axis, `NAME`: load, stages or fanout")
		flags.IntSliceVar(&o.stages, "stages", []int{minStages}, "stages of the network, for 2^n nodes")
		flags.Float64SliceVar(&o.load, "load", []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}, "copies that a node offers in a slot")
		flags.Float64SliceVar(&o.multicast, "multicast", []float64{0.5}, "part of the packets that is multicast")
		flags.IntSliceVar(&o.fanout, "fanout", []int{4}, "destinations of a multicast packet")
		flags.StringSliceVar(&o.start, "start", []string{"random"}, "where copies are placed, `LIST` of random, early and aligned")
		flags.StringSliceVar(&o.count, "count", []string{"parts"},
			"what is counted, `LIST`: copies as parts of a packet (parts), packets that all copies of arrive (whole), or copies behind phase 2 (final)")
		flags.IntVar(&o.slots, "slots", 12_800, "slots simulated, of more than 7 stages half for each more; 0 has the model only")
		flags.Float64SliceVar(&o.simulate, "simulate", nil, "values on the axis that are simulated, by default all")
		return o.figure
	},
}

// minSweep has the flags of the model min; x names the flag that varies along the axis.
type minSweep struct {
	x                         string
	stages, fanout            []int
	load, multicast, simulate []float64
	start, count              []string
	slots                     int
}

// minCounts has, by value of --count, the name of a curve that no
// other parameter names, and the end of the name of any other.
var minCounts = map[string][2]string{
	"parts": {minParted, "simulated"}, "whole": {minArrived, minArrived},
	"final": {"with phase 2" + simulated, "with phase 2" + simulated},
}

// The curves if only the axis varies.
const (
	minModelled = "model"
	minParted   = "copies as parts of a packet, simulated"
	minArrived  = "all copies arrive, simulated"
)

func (o *minSweep) axis() (chart.Axis, []float64, error) {
	floats := func(list []int) (out []float64) {
		for _, v := range list {
			out = append(out, float64(v))
		}
		return out
	}
	switch o.x {
	case "load":
		return linear("offered load", "copies per node and slot"), o.load, nil
	case "stages":
		return linear("stages n of a network for 2^n nodes", ""), floats(o.stages), nil
	case "fanout":
		return chart.Axis{Label: "fanout", Scale: chart.Log2}, floats(o.fanout), nil
	}
	return chart.Axis{}, nil, fmt.Errorf("--x %q: want load, stages or fanout", o.x)
}

func (o *minSweep) figure(lab *Lab) (*Figure, error) {
	axis, xs, err := o.axis()
	if err != nil {
		return nil, err
	}
	f := &Figure{}
	// A single 0 stands for the values on the axis.
	stages, fanouts, loads := o.stages, o.fanout, o.load
	switch o.x {
	case "stages":
		stages = []int{0}
	case "fanout":
		fanouts = []int{0}
	case "load":
		loads = []float64{0}
	}
	some := slices.DeleteFunc(slices.Clone(xs), func(x float64) bool {
		return o.slots == 0 || o.simulate != nil && !slices.ContainsFunc(o.simulate, func(v float64) bool { return math.Abs(v-x) < 1e-9 })
	})
	var points []minPoint
	for _, m := range o.multicast {
		panel := chart.Panel{Title: fmt.Sprintf("%.4g %% multicast", 100*m), X: axis, Y: minThroughput}
		for k := range len(fanouts) * len(o.start) * len(stages) * len(loads) {
			fanout, word := fanouts[k/len(loads)/len(stages)/len(o.start)], o.start[k/len(loads)/len(stages)%len(o.start)]
			n, load := stages[k/len(loads)%len(stages)], loads[k%len(loads)]
			start, err := multistage.ParsePlacement(word)
			if err != nil {
				return nil, err
			}
			base := varied(ifSeveral(fanouts, "f = %v", fanout), ifSeveral(o.start, "%v", minCase(start)), ifSeveral(stages, "n = %v", n), ifSeveral(loads, "load %v", load))
			at := func(x float64) minPoint {
				p := minPoint{n, multistage.Traffic{Load: load, Multicast: m, Fanout: fanout}, start, nil}
				switch o.x {
				case "stages":
					p.stages = int(x)
				case "fanout":
					p.traffic.Fanout = int(x)
				default:
					p.traffic.Load = x
				}
				return p
			}
			model := newCurve(base, xs)
			if base == "" {
				model.Name = minModelled
			}
			for i, x := range xs {
				p := at(x)
				if model.Points[i].Y, err = modelMIN(p.stages, p.traffic, start); err != nil {
					return nil, err
				}
			}
			panel.Curves = append(panel.Curves, model)
			counted := make([]minPoint, len(some))
			for i, x := range some {
				counted[i] = at(x)
				counted[i].to = map[string]*chart.Point{}
			}
			for _, count := range o.count {
				names, ok := minCounts[count]
				if !ok {
					return nil, fmt.Errorf("--count %q: want parts, whole or final", count)
				}
				curve := newCurve(varied(base, names[1]), some)
				if base == "" {
					curve.Name = names[0]
				}
				for i := range some {
					counted[i].to[count] = &curve.Points[i]
				}
				if some != nil {
					panel.Curves = append(panel.Curves, curve)
				}
			}
			points = append(points, counted...)
		}
		f.Panels = append(f.Panels, panel)
	}
	return f, o.simulatePoints(lab, points)
}

// minPoint is a point to simulate, and the points that get its results, by what is counted.
type minPoint struct {
	stages  int
	traffic multistage.Traffic
	start   multistage.Placement
	to      map[string]*chart.Point
}

// simulatePoints simulates points. What "final" counts takes a simulation of its own.
func (o *minSweep) simulatePoints(lab *Lab, points []minPoint) error {
	return lab.Each(len(points), func(ctx context.Context, i int) error {
		p := &points[i]
		for _, recycle := range []bool{false, true} {
			if final := p.to["final"] != nil; recycle && !final || !recycle && final && len(p.to) == 1 {
				continue
			}
			r, err := multistage.SimulateSlots(ctx, multistage.SlotOptions{
				Stages: p.stages, Traffic: p.traffic, Placement: p.start, Recycle: recycle,
				Slots: o.slots >> max(0, p.stages-minStages), Seed: stream(lab.Seed, "min", 0),
			})
			if err != nil {
				return err
			}
			for count, e := range map[string]multistage.Estimate{"parts": r.Throughput, "whole": r.Whole, "final": r.Final} {
				if to := p.to[count]; to != nil && (count == "final") == recycle {
					to.Y, to.Half, to.N = e.Mean, e.Half, r.Slots/multistage.SlotBlock
				}
			}
		}
		return nil
	})
}

// modelMIN returns the throughput by the paper's model.
func modelMIN(stages int, t multistage.Traffic, start multistage.Placement) (float64, error) {
	c, err := multistage.CopyRates(stages, t.Fanout, start)
	if err != nil {
		return 0, err
	}
	p, err := multistage.Predict(c, t)
	if err != nil {
		return 0, err
	}
	return p.Throughput, nil
}

var minThroughput = linear("throughput", "packets per node and slot")

// minCase names the ways to place copies as the paper does.
func minCase(p multistage.Placement) string {
	return [...]string{"(A) random start", "aligned start, not in the paper", "(B) first stages"}[p]
}

var copyModel = Model{
	Name: "copy-rates", Short: "probability that a copy is split, by stage of a banyan network",
	Long:    "The analytic model's copy rates in closed form; there is a panel for each way to place copies.",
	Example: "copy-rates --stages 5 --fanout 3,6 --start early",
	define: func(flags *pflag.FlagSet) func(lab *Lab) (*Figure, error) {
		n := flags.Int("stages", minStages, "stages of the network, for 2^n nodes")
		fanouts := flags.IntSlice("fanout", minFanouts, "destinations of a multicast packet")
		starts := flags.StringSlice("start", []string{"random", "aligned"}, "where copies are placed, `LIST` of random, early and aligned")
		return func(*Lab) (*Figure, error) {
			f := &Figure{}
			for _, word := range *starts {
				start, err := multistage.ParsePlacement(word)
				if err != nil {
					return nil, err
				}
				panel := chart.Panel{
					Title: minCase(start), X: linear(fmt.Sprintf("stage, %d is the first", *n-1), ""), Y: linear("copy rate", ""),
				}
				for _, fanout := range *fanouts {
					c, err := multistage.CopyRates(*n, fanout, start)
					if err != nil {
						return nil, err
					}
					curve := chart.Curve{Name: fmt.Sprint("f = ", fanout)}
					for stage, rate := range c {
						curve.Points = append(curve.Points, chart.Point{X: float64(stage), Y: rate})
					}
					panel.Curves = append(panel.Curves, curve)
				}
				f.Panels = append(f.Panels, panel)
			}
			return f, nil
		}
	},
}
