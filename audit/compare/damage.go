package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/text"
)

// kinds are the kinds of damage: what may be gone, and the fabric without n of them.
var kinds = map[string]struct {
	of   string
	all  func(f *fabric.Fabric) int
	drop func(f *fabric.Fabric, n int, seed uint64) (*fabric.Fabric, error)
}{
	"cables":   {"cables between switches", func(f *fabric.Fabric) int { return len(f.Channels()) / 2 }, gen.DropLinks},
	"switches": {"switches without hosts", func(f *fabric.Fabric) int { return len(gen.WithoutHosts(f)) }, gen.DropSwitches},
}

// Damaged is the JSON document of compare --damage.
type Damaged struct {
	Version string `json:"version"`
	Damage  string `json:"damage"` // cables or switches
	Of      int    `json:"of"`     // how many of them there are
	// Levels begin with the whole fabric, of one sample.
	Levels []Level `json:"levels"`
}

// Level is samples with the same damage.
type Level struct {
	Percent float64  `json:"percent"`
	Gone    int      `json:"gone"`
	Samples []Sample `json:"samples"`
}

// Sample is a fabric with its columns.
type Sample struct {
	Seed uint64 `json:"seed"` // of the damage
	*Standings
}

// Damage measures the columns on the whole fabric, and on samples of fabrics without some percent of
// their cables or switches, drawn at random; seeds begin with the given one. Errors are those of measure, and
// of a damage that cannot be.
func Damage(version, what string, f *fabric.Fabric, percents []float64, samples int, seed uint64, measure func(*fabric.Fabric) (*Standings, error)) (*Damaged, error) {
	kind := kinds[what]
	d := &Damaged{Version: version, Damage: what, Of: kind.all(f)}
	for _, percent := range append([]float64{0}, percents...) {
		l := Level{Percent: percent, Gone: int(math.Round(float64(d.Of) * percent / 100))}
		n := 1
		if percent > 0 {
			n, l.Gone = samples, max(l.Gone, 1)
		}
		for i := range n {
			seed := seed + uint64(i)
			g, err := kind.drop(f, l.Gone, seed)
			if err != nil {
				return nil, &DamageError{percent, err}
			}
			s, err := measure(g)
			if err != nil {
				return nil, err
			}
			l.Samples = append(l.Samples, Sample{seed, s})
		}
		d.Levels = append(d.Levels, l)
	}
	return d, nil
}

// DamageError is a damage that the fabric cannot have.
type DamageError struct {
	Percent float64
	Err     error
}

func (e *DamageError) Error() string { return fmt.Sprintf("%g %%: %v", e.Percent, e.Err) }

func (e *DamageError) Unwrap() error { return e.Err }

// figureOf is a figure that is shown by damage.
type figureOf struct {
	name   string
	value  func(x *Contender) (value float64, known bool)
	digits int
	most   bool // the worst is the most
}

var figures = []figureOf{
	{"bisection bandwidth, %", partOf(bisectionOf, func(b *quality.Bisection) float64 { return 100 * b.Mean }), 1, false},
	{"all-to-all, greatest load", func(x *Contender) (float64, bool) { return x.Quality.AllToAll, true }, 0, true},
	{"random permutations, median load", partOf(permutationsOf, func(p *quality.Permutations) float64 { return p.Median }), 1, true},
	{"random permutations, 99th percentile", partOf(permutationsOf, func(p *quality.Permutations) float64 { return p.P99 }), 1, true},
	{"shifts, mean load", partOf(shiftsOf, func(s *quality.Shifts) float64 { return s.Contention }), 2, true},
	{"shifts, greatest load", partOf(shiftsOf, func(s *quality.Shifts) float64 { return s.Most }), 1, true},
}

func bisectionOf(x *Contender) *quality.Bisection       { return x.Quality.Bisection }
func permutationsOf(x *Contender) *quality.Permutations { return x.Quality.Permutations }
func shiftsOf(x *Contender) *quality.Shifts             { return x.Quality.Shifts }

// partOf is a figure that is known where a part of the result is there.
func partOf[T any](part func(x *Contender) *T, value func(*T) float64) func(x *Contender) (float64, bool) {
	return func(x *Contender) (float64, bool) {
		if p := part(x); p != nil {
			return value(p), true
		}
		return 0, false
	}
}

// summary is a figure of a column over the samples of a level.
type summary struct {
	samples     int
	mean, worst float64
}

// sum sums up column i of a level.
func (l *Level) sum(i int, figure *figureOf) (s summary) {
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
	s.mean, _, _ = quality.Interval(values)
	return s
}

// Text writes the tables for people: one for each figure.
func (d *Damaged) Text(b *text.Sheet) {
	whole := d.Levels[0].Samples[0]
	fmt.Fprintf(b, "fabric: %s\n", whole.Fabric)
	fmt.Fprintf(b, "gone: %s of %s; mean of %s, and the worst\n", d.percents(), text.CountGrouped(d.Of, d.noun(), d.noun()),
		text.CountGrouped(len(d.Levels[len(d.Levels)-1].Samples), "sample", "samples"))
	for i := range figures {
		figure := &figures[i]
		rows := [][]string{append([]string{figure.name}, text.Each(whole.Contenders, nameOf)...)}
		for l := range d.Levels {
			level := &d.Levels[l]
			row := []string{level.name()}
			for k := range whole.Contenders {
				row = append(row, level.sum(k, figure).text(figure, l == 0))
			}
			rows = append(rows, row)
		}
		b.WriteByte('\n')
		b.Columns(rows, 0)
	}
	d.writeFailures(b)
}

func (d *Damaged) noun() string { return kinds[d.Damage].of }

// percents is all levels but the whole fabric.
func (d *Damaged) percents() string {
	list := text.Each(d.Levels[1:], func(l Level) string { return strconv.FormatFloat(l.Percent, 'g', -1, 64) })
	return text.List(list, "and") + " %"
}

func (l *Level) name() string {
	if l.Percent == 0 {
		return "whole"
	}
	return fmt.Sprintf("%g %% (%s)", l.Percent, text.Grouped(l.Gone))
}

func (s summary) text(figure *figureOf, single bool) string {
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
func (d *Damaged) writeFailures(b *text.Sheet) {
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
