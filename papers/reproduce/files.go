package reproduce

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/papers/drawing"
	"github.com/ibweave/ibweave/report/chart"
)

// part is one of a figure's files, in DIR/PAPER/FIGURE.*.
type part struct {
	suffix string
	write  func(io.Writer) error
}

// parts lists the data for programs and for people, and the
// pictures. The JSON file comes last: if it exists, the others do.
func (f *Figure) parts() []part {
	list := []part{{".csv", f.CSV}}
	if f.Rows != nil {
		list = append(list, part{".txt", f.Text})
	}
	if p := f.picture(); p != nil {
		list = append(list, part{".svg", p.SVG}, part{".png", p.PNG})
	}
	return append(list, part{".json", f.JSON})
}

// Save writes a figure's files below dir.
func (f *Figure) Save(dir string) error {
	base := filepath.Join(dir, filepath.FromSlash(f.ID))
	if err := os.MkdirAll(filepath.Dir(base), 0o777); err != nil {
		return err
	}
	for _, p := range f.parts() {
		if err := files.Write(base+p.suffix, p.write); err != nil {
			return fmt.Errorf("%s: %w", f.ID, err)
		}
	}
	return nil
}

// CSV writes the points of f, one a line. Numbers have enough
// digits to be read exactly; draws are separated by blanks.
func (f *Figure) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if f.Rows != nil {
		return f.rowsCSV(out)
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	line := []string{"panel", "curve", "x", "x_axis", "y", "half_of_95_percent_interval", "y_axis", "n", "steady", "draws"}
	if err := out.Write(line); err != nil {
		return err
	}
	for _, p := range f.Panels {
		for _, c := range p.Curves {
			for _, at := range c.Points {
				line = append(line[:0], p.Title, c.Name, number(at.X), p.X.String(), number(at.Y), number(at.Half), p.Y.String(),
					strconv.Itoa(at.N), strconv.FormatBool(!at.Unsteady), strings.Join(text.Each(at.Draws, number), " "))
				if err := out.Write(line); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

func (f *Figure) rowsCSV(out *csv.Writer) error {
	// Error returns what Write reports.
	_ = out.Write([]string{"what", "paper", "computed"})
	for _, r := range f.Rows {
		_ = out.Write([]string{r.What, r.Paper, r.Computed})
	}
	out.Flush()
	return out.Error()
}

// JSON writes f as a document.
func (f *Figure) JSON(w io.Writer) error { return encode(w, f) }

// SVG draws f; it is an error if f has neither curves nor drawings.
func (f *Figure) SVG(w io.Writer) error {
	if p := f.picture(); p != nil {
		return p.SVG(w)
	}
	return errors.New("there is nothing to draw: want another form")
}

func encode(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// maxFigure bounds the file of a figure, in bytes.
const maxFigure = 256 << 20

// Load reads a figure that Save wrote below dir. It returns nil unless all
// files of the figure are there, made with the same options. A file that is
// no figure counts as missing: it is made again. Errors are those of reading.
func Load(dir string, w Work, opt Options) (*Figure, error) {
	base := filepath.Join(dir, filepath.FromSlash(w.ID()))
	data, err := files.ReadRegular(base+".json", maxFigure)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &Figure{}
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if in.Decode(f) != nil || f.ID != w.ID() || f.Title != w.Title ||
		f.Version != opt.Version || f.Quick != opt.Quick || f.Seed != opt.Seed || f.Order != opt.Order {
		return nil, nil
	}
	for _, p := range f.parts() {
		if _, err := os.Stat(base + p.suffix); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// SaveVerdicts writes the table of judgements of a paper below dir, as
// PAPER/verdicts in text, Markdown and JSON.
func SaveVerdicts(dir string, p *Paper, list []Judgement) error {
	base := filepath.Join(dir, p.ID, "verdicts")
	if err := os.MkdirAll(filepath.Dir(base), 0o777); err != nil {
		return err
	}
	for suffix, write := range map[string]func(io.Writer) error{
		".txt":  func(w io.Writer) error { return VerdictText(w, list) },
		".md":   func(w io.Writer) error { return VerdictMarkdown(w, p, list) },
		".json": func(w io.Writer) error { return encode(w, list) },
	} {
		if err := files.Write(base+suffix, write); err != nil {
			return err
		}
	}
	return nil
}

// VerdictText writes judgements for a terminal.
func VerdictText(w io.Writer, list []Judgement) error {
	var b bytes.Buffer
	for _, j := range list {
		fmt.Fprintf(&b, "%s %s: %s\n", j.Paper, j.Spec, &j.Finding)
		fmt.Fprintf(&b, "    claim     %s\n", j.Claim)
		fmt.Fprintf(&b, "    measured  %s\n", j.Measured)
		if j.Why != "" {
			fmt.Fprintf(&b, "    why       %s\n", j.Why)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// VerdictMarkdown writes the judgements of a paper as a table.
func VerdictMarkdown(w io.Writer, p *Paper, list []Judgement) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "| %s | the paper says | measured | verdict | why |\n|---|---|---|---|---|\n", p.ID)
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace
	for _, j := range list {
		fmt.Fprintf(&b, "| %s | %s | %s | **%s** | %s |\n", j.Spec, cell(j.Claim), cell(j.Measured), cell(j.Finding.String()), cell(j.Why))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// SeedDir returns where the figures of the i-th seed of a run are: for the first in dir itself.
func SeedDir(dir string, i int, seed uint64) string {
	if i == 0 {
		return dir
	}
	return filepath.Join(dir, fmt.Sprint("seed-", seed))
}

// JudgeSaved judges the claims of p by the figures below dir
// that were made with opt and each of the seeds, and saves the
// verdicts there. Errors are those of reading and writing.
func JudgeSaved(dir string, p *Paper, opt Options, seeds []uint64) ([]Judgement, error) {
	runs := make([]Figures, len(seeds))
	for i, seed := range seeds {
		opt.Seed = seed
		figures := Figures{}
		for w := range p.works() {
			f, err := Load(SeedDir(dir, i, seed), w, opt)
			if err != nil {
				return nil, err
			}
			if f != nil {
				figures[w.Name] = f
			}
		}
		runs[i] = figures
	}
	list := p.JudgeSeeds(seeds, runs)
	return list, SaveVerdicts(dir, p, list)
}

// picture is a chart or drawings.
type picture interface {
	SVG(w io.Writer) error
	PNG(w io.Writer) error
}

// levels has values that papers claim, drawn as lines, by figure and panel.
var levels = map[string]map[int][]chart.Level{
	"spam/fig2":       {1: {{Name: "90 µs, as printed (section 4)", Y: 90}}, 2: {{Name: "14 µs (section 4)", Y: 14}}},
	"gerla1996/fig10": {2: {{Name: "46 % (section 7.1)", Y: 0.46}}},
}

// prefixes of curves' names that pictures omit, since titles of panels and axes say them.
var prefixes = []string{"carried: ", "share: ", "throughput: ", "links: ", "refused: "}

// schemes lists, by paper, names of curves that have one style in all pictures
// of the paper. A name that ends in a blank stands for all that begin with it.
var schemes = map[string][]string{
	"zhou2010":  meshSchemes,
	"zhou-conf": meshSchemes,
	"min":       {"f = 1", "f = 2", "f = 4", "f = 8", "f = 16", "f = 32"},
	"gerla1996": {"circuit, store and forward", "circuit, cut-through", "tree from its root", "tree, flooded"},
}

var meshSchemes = []string{"unicast, 1 VL", "multicast, 1 VL", "unicast, NESW: ", "multicast, NESW: ", "unicast, ", "multicast, "}

// look returns the scheme of a curve, or else its name.
func look(paper, name string) string {
	i := slices.IndexFunc(schemes[paper], func(s string) bool {
		return name == s || strings.HasSuffix(s, " ") && strings.HasPrefix(name, s)
	})
	if i < 0 {
		return name
	}
	return schemes[paper][i]
}

// simulated ends the name of a simulated curve if a model has that curve, too.
const simulated = ", simulated"

// picture returns a figure's chart or its drawings; nil if it has neither.
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

// numberDraws makes categories 1, 2, .. of draws, which are numbered from 0.
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

// caption lists all parameters, and says what marks mean.
func (f *Figure) caption() string {
	caption := strings.Join(text.Each(f.Parameters, func(p Parameter) string { return p.Name + ": " + p.Value }), "; ")
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
