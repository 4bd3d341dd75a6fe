package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report/chart"
)

// damage is what compare --damage takes away.
type damage struct {
	kind     string // of damages, "" for none
	percents []float64
	samples  int
	svg      string // file; "" for none
}

// damages are the kinds of damage: what may be gone, and the fabric without n of them.
var damages = map[string]struct {
	of   string
	all  func(f *fabric.Fabric) int
	drop func(f *fabric.Fabric, n int, seed uint64) (*fabric.Fabric, error)
}{
	"cables":   {"cables between switches", func(f *fabric.Fabric) int { return len(f.Channels()) / 2 }, gen.DropLinks},
	"switches": {"switches without hosts", func(f *fabric.Fabric) int { return len(gen.WithoutHosts(f)) }, gen.DropSwitches},
}

// damaged is the JSON document of compare --damage.
type damaged struct {
	Version string `json:"version"`
	Damage  string `json:"damage"` // cables or switches
	Of      int    `json:"of"`     // how many of them there are
	// Levels begin with the whole fabric, of one sample.
	Levels []damageLevel `json:"levels"`
}

// damageLevel is samples with the same damage.
type damageLevel struct {
	Percent float64        `json:"percent"`
	Gone    int            `json:"gone"`
	Samples []damageSample `json:"samples"`
}

// damageSample is a fabric with its columns.
type damageSample struct {
	Seed uint64 `json:"seed"` // of the damage
	*standings
}

// flags defines the flags of --damage.
func (d *damage) flags(flags *pflag.FlagSet) {
	wordFlag(flags, &d.kind, "damage", "compare on fabrics of which random `PARTS` are gone: cables or switches", "cables", "switches")
	d.percents = []float64{1, 3, 5, 10}
	listFlag(flags, &d.percents, "percent", "1,3,5,10", "how many are gone, in percent, `P,..`", func(item string) ([]float64, error) {
		percent, ok := parseNumber[float64](item)
		if !ok || !(percent > 0 && percent <= 100) {
			return nil, errors.New("want more than 0, and at most 100")
		}
		return []float64{percent}, nil
	})
	d.samples = 10
	numberFlag(flags, &d.samples, "samples", 1, maxNumber, "fabrics for each percentage, `N`")
	flags.StringVar(&d.svg, "svg", "", "write a picture of the figures by damage, `FILE`")
}

// parse sees that the flags make sense.
func (d *damage) parse(c *contest) error {
	switch {
	case d.kind == "":
		return nil
	case len(c.lfts) > 0:
		return usagef("--lfts has tables of the whole fabric: --damage is for engines only")
	case len(c.roots) > 0:
		return usagef("--roots: they may be gone with --damage")
	}
	return nil
}

// damage measures the columns on the whole fabric and on damaged ones.
func (a *app) damage(ctx context.Context, c *contest, f *fabric.Fabric, opt compile.Options) (*damaged, error) {
	kind := damages[c.damage.kind]
	c.quality.Whole = f
	d := &damaged{Version: version, Damage: c.damage.kind, Of: kind.all(f)}
	for _, percent := range append([]float64{0}, c.damage.percents...) {
		l := damageLevel{Percent: percent, Gone: int(math.Round(float64(d.Of) * percent / 100))}
		samples := c.damage.samples
		if percent == 0 {
			samples = 1
		} else {
			l.Gone = max(l.Gone, 1)
		}
		for i := range samples {
			seed := c.quality.Seed + uint64(i)
			g, err := kind.drop(f, l.Gone, seed)
			if err != nil {
				return nil, inputf("%s: %g %%: %w", c.topology, percent, err)
			}
			s := &standings{Version: version}
			if err := a.contendByEngines(ctx, c, s, g, opt); err != nil {
				return nil, err
			}
			if err := s.compareWith(c.against); err != nil {
				return nil, err
			}
			l.Samples = append(l.Samples, damageSample{seed, s})
		}
		d.Levels = append(d.Levels, l)
	}
	return d, nil
}

// damageFigure is a figure that is shown by damage.
type damageFigure struct {
	name, unit string
	value      func(x *contender) (value float64, known bool)
	digits     int
	most       bool // the worst is the most
}

var damageFigures = []damageFigure{
	{"bisection bandwidth", "%", partOf(bisectionOf, func(b *quality.Bisection) float64 { return 100 * b.Mean }), 1, false},
	{"all-to-all, greatest load", "routes", func(x *contender) (float64, bool) { return x.Quality.AllToAll, true }, 0, true},
	{"random permutations, median load", "routes", partOf(permutationsOf, func(p *quality.Permutations) float64 { return p.Median }), 1, true},
	{"random permutations, 99th percentile", "routes", partOf(permutationsOf, func(p *quality.Permutations) float64 { return p.P99 }), 1, true},
	{"shifts, mean load", "routes", partOf(shiftsOf, func(s *quality.Shifts) float64 { return s.Contention }), 2, true},
	{"shifts, greatest load", "routes", partOf(shiftsOf, func(s *quality.Shifts) float64 { return s.Most }), 1, true},
}

func bisectionOf(x *contender) *quality.Bisection       { return x.Quality.Bisection }
func permutationsOf(x *contender) *quality.Permutations { return x.Quality.Permutations }
func shiftsOf(x *contender) *quality.Shifts             { return x.Quality.Shifts }

// partOf is a figure that is known where a part of the result is there.
func partOf[T any](part func(x *contender) *T, value func(*T) float64) func(x *contender) (float64, bool) {
	return func(x *contender) (float64, bool) {
		if p := part(x); p != nil {
			return value(p), true
		}
		return 0, false
	}
}

// summary is a figure of a column over the samples of a level.
type damageSummary struct {
	samples           int
	mean, half, worst float64 // half of the 95 % interval of the mean
}

// sum sums up column i of a level.
func (l *damageLevel) sum(i int, figure *damageFigure) (s damageSummary) {
	var values []float64
	for _, sample := range l.Samples {
		if x := sample.Contenders[i]; x.Quality != nil {
			if value, known := figure.value(x); known {
				values = append(values, value)
			}
		}
	}
	s.samples = len(values)
	if s.samples == 0 {
		return s
	}
	if s.worst = slices.Min(values); figure.most {
		s.worst = slices.Max(values)
	}
	mean, _, high := quality.Interval(values)
	s.mean, s.half = mean, high-mean
	return s
}

// text is the tables for people: one for each figure.
func (d *damaged) text(b *text.Sheet) {
	whole := d.Levels[0].Samples[0]
	fmt.Fprintf(b, "fabric: %s\n", counts(whole.Fabric.Switches, whole.Fabric.CAPorts, whole.Fabric.Links))
	fmt.Fprintf(b, "gone: %s of %s; mean of %s, and the worst\n", d.percents(), text.CountGrouped(d.Of, d.noun(), d.noun()),
		text.CountGrouped(len(d.Levels[len(d.Levels)-1].Samples), "sample", "samples"))
	for i := range damageFigures {
		figure := &damageFigures[i]
		title := figure.name
		if figure.unit == "%" {
			title += ", %"
		}
		rows := [][]string{append([]string{title}, each(whole.Contenders, nameOf)...)}
		for l := range d.Levels {
			level := &d.Levels[l]
			row := []string{level.name()}
			for k := range whole.Contenders {
				row = append(row, level.sum(k, figure).text(figure, l == 0))
			}
			rows = append(rows, row)
		}
		b.WriteByte('\n')
		writeColumns(b, rows, 0)
	}
	d.writeFailures(b)
}

func (d *damaged) noun() string { return damages[d.Damage].of }

// percents is all levels but the whole fabric.
func (d *damaged) percents() string {
	list := each(d.Levels[1:], func(l damageLevel) string { return strconv.FormatFloat(l.Percent, 'g', -1, 64) })
	return text.List(list, "and") + " %"
}

func (l *damageLevel) name() string {
	if l.Percent == 0 {
		return "whole"
	}
	return fmt.Sprintf("%g %% (%s)", l.Percent, text.Grouped(l.Gone))
}

func (s damageSummary) text(figure *damageFigure, single bool) string {
	if s.samples == 0 {
		return "-"
	}
	mean := strconv.FormatFloat(s.mean, 'f', figure.digits, 64)
	if single {
		return mean
	}
	return mean + " / " + strconv.FormatFloat(s.worst, 'f', figure.digits, 64)
}

// writeFailures says which columns have no tables for some samples, or lost pairs.
func (d *damaged) writeFailures(b *text.Sheet) {
	for i, column := range d.Levels[0].Samples[0].Contenders {
		all, refused, lost := 0, 0, 0
		reason := ""
		for _, l := range d.Levels {
			for _, s := range l.Samples {
				all++
				switch x := s.Contenders[i]; {
				case x.Refused != "":
					refused++
					reason = x.Refused
				case x.Quality.Lost > 0:
					lost++
				}
			}
		}
		if refused > 0 {
			fmt.Fprintf(b, "\n%s cannot route %d of %d fabrics%s, which its means leave out: %s\n", column.Name, refused, all, column.withOptions(), reason)
		}
		if lost > 0 {
			fmt.Fprintf(b, "\n%s loses pairs on %d of %d fabrics\n", column.Name, lost, all)
		}
	}
}

// chart is the picture: a panel for each figure.
func (d *damaged) chart() *chart.Chart {
	whole := d.Levels[0].Samples[0]
	c := &chart.Chart{Title: fmt.Sprintf("%s, %s gone at random", counts(whole.Fabric.Switches, whole.Fabric.CAPorts, whole.Fabric.Links), d.noun())}
	for i := range damageFigures {
		figure := &damageFigures[i]
		p := chart.Panel{
			Title: figure.name, X: chart.Axis{Label: d.noun() + " gone", Unit: "%", Scale: chart.Linear}, Y: chart.Axis{Label: "mean", Unit: figure.unit, Scale: chart.Linear},
		}
		for k, column := range whole.Contenders {
			curve := chart.Curve{Name: column.Name}
			for l := range d.Levels {
				if s := d.Levels[l].sum(k, figure); s.samples > 0 {
					curve.Points = append(curve.Points, chart.Point{X: d.Levels[l].Percent, Y: s.mean, Half: s.half})
				}
			}
			if curve.Points != nil {
				p.Curves = append(p.Curves, curve)
			}
		}
		if p.Curves != nil {
			if figure.unit != "%" {
				p.Y.Scale = scaleOf(p.Curves)
			}
			c.Panels = append(c.Panels, p)
		}
	}
	return c
}

// scaleOf is a logarithm where the values differ much.
func scaleOf(curves []chart.Curve) chart.Scale {
	least, most := math.Inf(1), 0.0
	for _, c := range curves {
		for _, p := range c.Points {
			least, most = min(least, p.Y), max(most, p.Y)
		}
	}
	if least > 0 && most > 8*least {
		return chart.Log2
	}
	return chart.Linear
}

// compareDamaged runs compare --damage.
func (a *app) compareDamaged(ctx context.Context, c *contest, f *fabric.Fabric, opt compile.Options) error {
	d, err := a.damage(ctx, c, f, opt)
	if err != nil {
		return err
	}
	if err := a.writePictures(c.damage.svg, "", func(w io.Writer) error { return d.chart().SVG(w) }, nil); err != nil {
		return err
	}
	if err := c.print(a.stdout, d, d.text); err != nil {
		return err
	}
	for _, l := range d.Levels {
		for _, s := range l.Samples {
			if err := c.checkAll(s.standings); err != nil {
				return err
			}
		}
	}
	return nil
}
