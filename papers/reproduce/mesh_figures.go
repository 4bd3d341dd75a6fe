package reproduce

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/ibweave/ibweave/report/chart"
)

// meshCase has the sources and the group of three figures, for 1, 2 and 4 VLs (X21).
type meshCase struct {
	name           string // in the text
	caption        string
	sources, group int
	figures        [3]string
}

// Sizes of messages of panels (a) and (b). The papers give the
// ends, 32 bytes and 8 KB (X18), and not where the panels divide.
var (
	smallBytes = []int{32, 64, 128, 256, 512}
	largeBytes = []int{1024, 2048, 4096, 8192}
)

// mostSmall is the greatest size of panel (a).
const mostSmall = 512

// meshDraws returns how often sources and groups are drawn for a point.
func meshDraws(quick bool, sources, group int) int {
	if quick || (sources == meshHosts && group == meshHosts) {
		return 1 // everybody: nothing to draw
	}
	return 5
}

// configurations returns the lanes of the i-th figure of a case, and their VLs in words.
func configurations(i int) ([]lanes, string) {
	switch i {
	case 0:
		return []lanes{oneVL}, "1 virtual lane"
	case 1:
		return []lanes{twoBySL, twoByDir}, "2 virtual lanes"
	}
	return []lanes{fourBySL, fourByDir}, "4 virtual lanes"
}

func curveOf(unicast bool, l lanes) string {
	if unicast {
		return "unicast, " + l.label
	}
	return "multicast, " + l.label
}

func meshExperiments(cases []meshCase) []Experiment {
	var list []Experiment
	for _, c := range cases {
		for i, name := range c.figures {
			configs, vls := configurations(i)
			list = append(list, Experiment{
				Name:  name,
				Title: fmt.Sprintf("Fig. %s: %s with %s (%s)", name[len("fig"):], c.name, vls, c.caption),
				Run:   func(lab *Lab) (*Figure, error) { return meshFigure(lab, &c, configs) },
			})
		}
	}
	return list
}

// meshSizes returns the message sizes of both panels.
func meshSizes(quick bool) [2][]int {
	if quick {
		return [2][]int{{32, 512}, {8192}}
	}
	return [2][]int{smallBytes, largeBytes}
}

func meshFigure(lab *Lab, c *meshCase, configs []lanes) (*Figure, error) {
	f, points := layMesh(c, configs, lab.Quick, lab.Seed)
	return f, measureMesh(lab, points, meshDraws(lab.Quick, c.sources, c.group))
}

// layMesh returns the figure without its times, and the points that get them.
func layMesh(c *meshCase, configs []lanes, quick bool, seed uint64) (*Figure, []meshPoint) {
	bytes := chart.Axis{Label: "data size", Unit: "bytes", Scale: chart.Log2}
	f := &Figure{Parameters: meshParameters(c, meshDraws(quick, c.sources, c.group))}
	var points []meshPoint
	for i, sizes := range meshSizes(quick) {
		p := chart.Panel{Title: []string{"(a) small data sizes", "(b) large data sizes"}[i], X: bytes, Y: makespanAxis}
		points = append(points, addMeshCurves(&p, configs, sizes, func(bytes int, unicast bool, l lanes) exchange {
			return newExchange(c.sources, c.group, bytes, unicast, l, seed, 0)
		})...)
		f.Panels = append(f.Panels, p)
	}
	return f, points
}

// addMeshCurves adds a curve of unicast and one of multicast for each configuration to
// a panel, and returns the points, which are yet to be measured.
func addMeshCurves[N int | float64](p *chart.Panel, configs []lanes, xs []N, at func(x N, unicast bool, l lanes) exchange) []meshPoint {
	var points []meshPoint
	for _, unicast := range []bool{true, false} {
		for _, l := range configs {
			curve := newCurve(curveOf(unicast, l), xs)
			for i, x := range xs {
				points = append(points, meshPoint{at(x, unicast, l), &curve.Points[i]})
			}
			p.Curves = append(p.Curves, curve)
		}
	}
	return points
}

var makespanAxis = chart.Axis{Label: "time to the last destination", Unit: "µs", Scale: chart.Log10}

// meshPoint is an exchange and the point that gets its time.
type meshPoint struct {
	exchange
	to *chart.Point
}

// fixed returns true if there is nothing to draw.
func (x *exchange) fixed() bool {
	return x.sources == meshHosts && x.group == meshHosts && x.order != orderRandom && x.choice != slRandom
}

// measureMesh puts the mean makespan over the given draws into each point, in µs.
func measureMesh(lab *Lab, points []meshPoint, draws int) error {
	type one struct {
		exchange
		point int
	}
	var all []one
	for i, p := range points {
		n := draws
		if p.fixed() {
			n = 1
		}
		for d := range n {
			x := p.exchange
			x.draw = uint64(d)
			all = append(all, one{x, i})
		}
	}
	times := make([]float64, len(all))
	err := lab.Each(len(all), func(ctx context.Context, i int) error {
		at, err := all[i].makespan(ctx, lab)
		times[i] = at.Nanoseconds() / 1000
		return err
	})
	if err != nil {
		return err
	}
	by := make([][]float64, len(points))
	for i, x := range all {
		by[x.point] = append(by[x.point], times[i])
	}
	for i, p := range points {
		estimate(p.to, by[i])
		if p.fixed() {
			p.to.N = 0
		}
	}
	return nil
}

// meshParameters returns the defaults of X19, with sources and group
// if c has them. Panels name what a figure varies.
func meshParameters(c *meshCase, draws int) []Parameter {
	x := newExchange(c.sources, c.group, 32, false, oneVL, 0, 0)
	list := []Parameter{{"fabric", fmt.Sprintf("%dx%d mesh, a host on each switch", meshSide, meshSide)}}
	if c.sources > 0 {
		list = append(list, Parameter{"sources", fmt.Sprint(c.sources)}, Parameter{"group", fmt.Sprint(c.group)})
	}
	return append(list, []Parameter{
		{"draws of sources and group", fmt.Sprint(draws)},
		{"link", "1X SDR, 4 ns a byte"},
		{"routing delay", x.routing.String()},
		{"wire delay", x.wire.String()},
		{"credit delay", x.credit.String()},
		{"buffer of a port and VL", fmt.Sprintf("%d packet", x.buffers)},
		{"headers", fmt.Sprintf("%d bytes", x.header)},
		{"packets", "one for each message"},
		{"order of unicast destinations", string(x.order)},
		{"SL of a packet", string(x.choice) + ", modulo the number of VLs"},
	}...)
}

func figuresOf(cases ...meshCase) []string {
	var names []string
	for _, c := range cases {
		names = append(names, c.figures[:]...)
	}
	return names
}

// result looks up a time in the figures, in µs.
func (c *meshCase) result(figures Figures, unicast bool, l lanes, bytes float64) chart.Point {
	i := slices.IndexFunc(c.figures[:], func(name string) bool {
		return figures[name] != nil && figures[name].Curve(curveOf(unicast, l)) != nil
	})
	return figures[c.figures[i]].At(curveOf(unicast, l), bytes)
}

// speedup returns unicast's time divided by multicast's.
func (c *meshCase) speedup(figures Figures, l lanes, bytes float64) chart.Point {
	return ratio(c.result(figures, true, l, bytes), c.result(figures, false, l, bytes))
}

// gain returns the share of the time on lanes other that lanes l save.
func (c *meshCase) gain(figures Figures, unicast bool, l, other lanes, bytes float64) chart.Point {
	return saving(c.result(figures, unicast, l, bytes), c.result(figures, unicast, other, bytes))
}

// saving returns 1 - time/other, the share of time other that is saved.
func saving(time, other chart.Point) chart.Point {
	return minus(chart.Point{Y: 1, Draws: slices.Repeat([]float64{1}, len(time.Draws))}, ratio(time, other))
}

// measured yields each case with each size that it was measured at.
func measured(figures Figures, cases []meshCase) iter.Seq2[*meshCase, float64] {
	return func(yield func(*meshCase, float64) bool) {
		for i := range cases {
			for _, bytes := range cases[i].sizesOf(figures) {
				if !yield(&cases[i], bytes) {
					return
				}
			}
		}
	}
}

// sizesOf returns the sizes that a case was measured at, ascending; a quick run has fewer.
func (c *meshCase) sizesOf(figures Figures) (sizes []float64) {
	for _, at := range figures[c.figures[0]].Curve(curveOf(true, oneVL)) {
		sizes = append(sizes, at.X)
	}
	return sizes
}
