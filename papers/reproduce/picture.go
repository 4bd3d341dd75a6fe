package reproduce

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/papers/drawing"
	"github.com/ibweave/ibweave/report/chart"
)

// picture is a chart or drawings.
type picture interface {
	SVG(w io.Writer) error
	PNG(w io.Writer) error
}

// levels are the values that papers claim in figures, as lines, by figure and panel.
var levels = map[string]map[int][]chart.Level{
	"spam/fig2":       {1: {{Name: "90 µs, as printed (section 4)", Y: 90}}, 2: {{Name: "14 µs (section 4)", Y: 14}}},
	"gerla1996/fig10": {2: {{Name: "46 % (section 7.1)", Y: 0.46}}},
}

// prefixes of curves that several metrics have, which titles of panels and axes say.
var prefixes = []string{"carried: ", "share: ", "throughput: ", "links: ", "refused: "}

// schemes are what looks the same in all pictures of a paper: curves of these names, or that
// begin so where a blank ends one.
var schemes = map[string][]string{
	"zhou2010":  meshSchemes,
	"zhou-conf": meshSchemes,
	"min":       {"f = 1", "f = 2", "f = 4", "f = 8", "f = 16", "f = 32"},
	"gerla1996": {"circuit, store and forward", "circuit, cut-through", "tree from its root", "tree, flooded"},
}

var meshSchemes = []string{"unicast, 1 VL", "multicast, 1 VL", "unicast, NESW: ", "multicast, NESW: ", "unicast, ", "multicast, "}

// look is the scheme of a curve, or else its name.
func look(paper, name string) string {
	i := slices.IndexFunc(schemes[paper], func(s string) bool {
		return name == s || strings.HasSuffix(s, " ") && strings.HasPrefix(name, s)
	})
	if i < 0 {
		return name
	}
	return schemes[paper][i]
}

// simulated ends the name of a curve that a model has, too.
const simulated = ", simulated"

// picture is a figure's chart or its drawings; nil if it has neither.
func (f *Figure) picture() picture {
	caption := f.caption()
	switch {
	case f.Drawings != nil:
		return &drawing.Sheet{Title: f.Title, Drawings: f.Drawings, Caption: caption}
	case f.Panels == nil:
		return nil
	}
	paper, _, _ := strings.Cut(f.ID, "/")
	c := &chart.Chart{Title: f.Title, Caption: caption}
	for i, p := range f.Panels {
		curves := make([]chart.Curve, len(p.Curves))
		models := map[string]bool{} // names of curves that are simulated, too
		for k, curve := range p.Curves {
			if model, ok := strings.CutSuffix(curve.Name, simulated); ok && hasCurve(p, model) {
				models[model] = true
			}
			curves[k] = curve
		}
		for k := range curves {
			curve := &curves[k]
			for _, prefix := range prefixes {
				curve.Name = strings.TrimPrefix(curve.Name, prefix)
			}
			curve.Look = look(paper, strings.TrimSuffix(curve.Name, simulated))
			if slices.Contains(schemes[paper], curve.Look) {
				c.Looks = schemes[paper]
			}
			switch {
			case models[p.Curves[k].Name] || curve.Name == minModelled:
				curve.Form = chart.LineOnly
			case models[strings.TrimSuffix(p.Curves[k].Name, simulated)]:
				curve.Form, curve.Name = chart.PointsOnly, ""
			case strings.HasSuffix(curve.Name, simulated):
				curve.Form = chart.PointsOnly
			}
		}
		p.Curves = curves
		p.Levels = levels[f.ID][i]
		if p.Y.Label == "share" {
			p.Most = 1
		}
		if p.X.Label == "draw" {
			numberDraws(&p)
		}
		c.Panels = append(c.Panels, p)
	}
	return c
}

// numberDraws has draws, which are numbered from 0, as categories.
func numberDraws(p *chart.Panel) {
	for i := range p.Curves {
		points := slices.Clone(p.Curves[i].Points)
		for k := range points {
			points[k].X++
			if n := int(points[k].X); n > len(p.X.Categories) {
				p.X.Categories = append(p.X.Categories, strconv.Itoa(n))
			}
		}
		p.Curves[i].Points = points
	}
}

func hasCurve(p chart.Panel, name string) bool {
	return slices.ContainsFunc(p.Curves, func(c chart.Curve) bool { return c.Name == name })
}

// caption has all parameters.
func (f *Figure) caption() string {
	var says []string
	for _, p := range f.Parameters {
		says = append(says, p.Name+": "+p.Value)
	}
	caption := strings.Join(says, "; ")
	if caption != "" {
		caption += "."
	}
	intervals, open, model := false, false, false
	for _, p := range f.Panels {
		for _, c := range p.Curves {
			model = model || strings.HasSuffix(c.Name, simulated)
			for _, at := range c.Points {
				intervals = intervals || at.Half > 0
				open = open || at.Half >= at.Y && at.Half > 0 && p.Y.Scale != chart.Linear
			}
		}
	}
	if model {
		caption += " Lines are the model, points the simulation."
	}
	if intervals {
		caption += " Bars are 95 % intervals."
	}
	if open {
		caption += " Of those that reach below 0 the logarithmic axis shows the upper half."
	}
	return strings.TrimSpace(caption)
}
