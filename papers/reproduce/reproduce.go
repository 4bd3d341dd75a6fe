// Package reproduce has the experiments of the papers whose
// methods ibweave has: it measures their figures with the
// simulator and on the tables that compile makes, and judges what
// the papers say about them. It makes no promise to other modules.
//
// An Experiment is a figure of a Paper. Running it gives a
// Figure: panels with curves, and the parameters. What a paper
// says about its figures is a Claim, judged by the numbers of the
// figures alone, so that a verdict can be checked with the CSV
// files in hand. A claim that fails is a result, not an error.
//
// Numbers such as X22, S13, M7, N12 and E-N7 are explained in docs/papers,
// numbers.md and errata.md.
//
// To add a paper: a file with a variable of type Paper, and its name in Papers.
package reproduce

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/papers/drawing"
	"github.com/ibweave/ibweave/report/chart"
)

// Papers lists what can be reproduced, in the order of the help text.
var Papers = []*Paper{
	&zhou2010,
	&zhouConference,
	&spam1998,
	&recursiveMIN,
	&gerla1996,
}

// Paper is the evaluation of a paper.
type Paper struct {
	ID    string // the first part of the IDs of its figures, as in "zhou2010"
	Title string // authors, title, where and when
	// Notes say what our experiments assume where the paper is silent, a sentence each.
	Notes       []string
	Experiments []Experiment
	// Exhibits are worked examples, theorems and rules: figures of rows and drawings,
	// which take seconds and are printed, too.
	Exhibits []Experiment
	Claims   []Claim
	Ours     []string // Spec of the claims that we added to the paper's
}

// All returns the experiments and the exhibits.
func (p *Paper) All() []Experiment { return slices.Concat(p.Experiments, p.Exhibits) }

// Experiment is one figure.
type Experiment struct {
	Name  string // the second part of its ID, as in "fig10"
	Title string // the paper's caption, or what it should say
	// Run measures. It calls Lab.Each once, for everything that takes long.
	// The figure's ID, Title and conditions are filled in by the caller.
	Run func(lab *Lab) (*Figure, error)
}

// Parameter is a setting of an experiment.
type Parameter struct {
	Name  string `json:"name"`
	Value string `json:"value"` // with its unit
}

// Figure is the result of an experiment. Its JSON form is the file that keeps it.
type Figure struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Version, Quick, Seed and Order are conditions. Only figures
	// with the same ones may be compared.
	Version string `json:"version"`
	Quick   bool   `json:"quick"`
	Seed    uint64 `json:"seed"`
	Order   int    `json:"negative_binomial,omitempty"` // Options.Order
	// Calls are the commands of models that give the panels, or some of the rows.
	Calls      []string      `json:"calls,omitempty"`
	Parameters []Parameter   `json:"parameters"`
	Panels     []chart.Panel `json:"panels"`
	// Rows and Drawings are those of an exhibit.
	Rows     []Row             `json:"rows,omitempty"`
	Drawings []drawing.Network `json:"drawings,omitempty"`
}

func linear(label, unit string) chart.Axis {
	return chart.Axis{Label: label, Unit: unit, Scale: chart.Linear}
}

// Curve returns the points of a curve in all panels, by ascending X. If panels share
// an X, the first panel's point counts. Nil means that there is no such curve.
func (f *Figure) Curve(name string) []chart.Point {
	var points []chart.Point
	for _, p := range f.Panels {
		for _, c := range p.Curves {
			if c.Name != name {
				continue
			}
			for _, at := range c.Points {
				if !slices.ContainsFunc(points, func(q chart.Point) bool { return q.X == at.X }) {
					points = append(points, at)
				}
			}
		}
	}
	slices.SortFunc(points, func(a, b chart.Point) int {
		if a.X < b.X {
			return -1
		}
		return 1
	})
	return points
}

// panel returns f with one panel only: curves of several panels have the same names.
func (f *Figure) panel(i int) *Figure {
	one := *f
	one.Panels = f.Panels[i : i+1]
	return &one
}

// newCurve returns a curve with points at xs that are yet to be measured.
func newCurve[N int | float64](name string, xs []N) chart.Curve {
	c := chart.Curve{Name: name, Points: make([]chart.Point, len(xs))}
	for i, x := range xs {
		c.Points[i].X = float64(x)
	}
	return c
}

// At returns the point of a curve at x. It panics if there is
// none: a claim may ask only for what its figures have.
func (f *Figure) At(name string, x float64) chart.Point {
	if at, ok := pointAt(f, name, x); ok {
		return at
	}
	panic(fmt.Sprintf("%s has no point at %v of curve %q", f.ID, x, name))
}

// Verdict is the outcome for a claim.
type Verdict string

// The verdicts.
const (
	Holds Verdict = "holds"
	Fails Verdict = "fails"
	// HoldsAs is a claim that fails as printed and holds when it
	// is read in another way, which Finding.As tells.
	HoldsAs Verdict = "holds as"
	// WithinError is a claim whose intervals have both outcomes in them.
	WithinError Verdict = "within the error"
	// OnDraw is a claim that holds with some seeds and fails with others.
	OnDraw Verdict = "depends on the draw"
	// NotDecidable is a claim that depends on something that the
	// paper leaves open, so that measurements cannot decide it.
	NotDecidable Verdict = "not decidable"
	// NotMeasured is a claim that lacks some of its figures.
	NotMeasured Verdict = "not measured"
)

// Figures has figures by name.
type Figures = map[string]*Figure

// Claim is something that a paper says about its results.
type Claim struct {
	Spec  string // its number, as in "X22-2a", unique within a paper
	Paper string // the paper's words, shortly, and where they are
	// Figures are the names of the experiments that decide it.
	Figures []string
	// Judge gets these figures by name, all of them, made under the same
	// conditions. A quick run has fewer points.
	Judge func(figures Figures) Finding
}

// on returns a claim that one figure decides.
func on(spec, paper, figure string, judge func(f *Figure) Finding) Claim {
	return Claim{spec, paper, []string{figure}, func(figures Figures) Finding { return judge(figures[figure]) }}
}

// Finding is the judgement of a claim.
type Finding struct {
	Verdict  Verdict `json:"verdict"`
	As       string  `json:"as,omitempty"` // with HoldsAs
	Measured string  `json:"measured"`     // numbers
	Why      string  `json:"why"`          // what explains them, above all if the claim fails
}

// String returns the verdict in words: "holds as time saved".
func (f *Finding) String() string {
	if f.Verdict == HoldsAs {
		return string(f.Verdict) + " " + f.As
	}
	return string(f.Verdict)
}

// failIf makes a claim fail, without a reason, if wrong is true.
func (f *Finding) failIf(wrong bool) {
	if wrong {
		f.Verdict, f.Why = Fails, ""
	}
}

// Judgement is a claim with its finding.
type Judgement struct {
	Paper   string   `json:"paper"` // ID
	Spec    string   `json:"spec"`
	Claim   string   `json:"claim"`
	Figures []string `json:"figures"`
	Ours    bool     `json:"ours,omitempty"` // our addition, no claim of the paper
	Finding
}

// Judge judges the claims of p by the figures that there are, by name.
func (p *Paper) Judge(figures Figures) []Judgement {
	list := make([]Judgement, 0, len(p.Claims))
	for _, c := range p.Claims {
		j := Judgement{Paper: p.ID, Spec: c.Spec, Claim: c.Paper, Figures: c.Figures, Ours: slices.Contains(p.Ours, c.Spec)}
		if missing := text.Where(c.Figures, func(name string) bool { return figures[name] == nil }); missing != nil {
			j.Finding = Finding{Verdict: NotMeasured, Measured: "without " + strings.Join(missing, ", ")}
		} else {
			j.Finding = c.Judge(figures)
		}
		list = append(list, j)
	}
	return list
}

// Work is an experiment of a paper.
type Work struct {
	Paper *Paper
	*Experiment
}

// works yields the experiments and the exhibits of p.
func (p *Paper) works() iter.Seq[Work] {
	return func(yield func(Work) bool) {
		for _, list := range [][]Experiment{p.Experiments, p.Exhibits} {
			for i := range list {
				if !yield(Work{p, &list[i]}) {
					return
				}
			}
		}
	}
}

// Prints returns true for an exhibit.
func (w Work) Prints() bool {
	return slices.ContainsFunc(w.Paper.Exhibits, func(x Experiment) bool { return x.Name == w.Name })
}

// ID returns the paper's ID and the name: "zhou2010/fig10".
func (w Work) ID() string { return w.Paper.ID + "/" + w.Name }

// UnknownError is a name that no paper or figure has.
type UnknownError struct {
	Name string
	Want []string // valid names
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("nothing to reproduce is called %q: want all, or some of %s", e.Name, strings.Join(e.Want, ", "))
}

// Find returns the experiments that names mean, each once and in the order of Papers.
// Names are IDs of papers and of figures, or "all". Errors are *UnknownError.
func Find(names []string) ([]Work, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	used := map[string]bool{"all": true}
	var work []Work
	for _, p := range Papers {
		used[p.ID] = true
		for w := range p.works() {
			used[w.ID()] = true
			if wanted["all"] || wanted[p.ID] || wanted[w.ID()] {
				work = append(work, w)
			}
		}
	}
	for _, name := range names {
		if used[name] {
			continue
		}
		e := &UnknownError{Name: name}
		paper, _, isFigure := strings.Cut(name, "/")
		for _, p := range Papers {
			if isFigure && p.ID == paper {
				e.Want = e.Want[:0]
				for _, x := range p.All() {
					e.Want = append(e.Want, p.ID+"/"+x.Name)
				}
				break
			}
			e.Want = append(e.Want, p.ID)
		}
		return nil, e
	}
	return work, nil
}
