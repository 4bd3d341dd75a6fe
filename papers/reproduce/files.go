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
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/internal/files"
)

// part is one of a figure's files, in DIR/PAPER/FIGURE.*.
type part struct {
	suffix string
	write  func(io.Writer) error
}

// parts are the data for programs and for people, and the pictures. The JSON file comes
// last: where it is, the others are.
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

// CSV writes the points of f, one a line. Numbers have as many digits as it takes
// to read the same number; draws are separated by blanks.
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
				draws := make([]string, len(at.Draws))
				for i, v := range at.Draws {
					draws[i] = number(v)
				}
				line = append(line[:0], p.Title, c.Name, number(at.X), p.X.String(), number(at.Y), number(at.Half), p.Y.String(),
					strconv.Itoa(at.N), strconv.FormatBool(!at.Unsteady), strings.Join(draws, " "))
				if err := out.Write(line); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

// rowsCSV writes the rows of an exhibit.
func (f *Figure) rowsCSV(out *csv.Writer) error {
	_ = out.Write([]string{"what", "paper", "computed"}) // Error has what Write says
	for _, r := range f.Rows {
		_ = out.Write([]string{r.What, r.Paper, r.Computed})
	}
	out.Flush()
	return out.Error()
}

// JSON writes f as a document.
func (f *Figure) JSON(w io.Writer) error { return encode(w, f) }

// SVG draws f. What has neither curves nor drawings is an error.
func (f *Figure) SVG(w io.Writer) error {
	if p := f.picture(); p != nil {
		return p.SVG(w)
	}
	return errors.New("there is nothing to draw: want another form")
}

// encode writes v as indented JSON.
func encode(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// maxFigure bounds the file of a figure, in bytes.
const maxFigure = 256 << 20

// Load reads a figure that Save wrote below dir, if it is there, whole, and made
// under these conditions; else it gives nil. Errors are those of reading. A file
// that is no figure counts as none: it is made again.
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

// SeedDir is where the figures of the i-th seed of a run are: dir itself for the first one.
func SeedDir(dir string, i int, seed uint64) string {
	if i == 0 {
		return dir
	}
	return filepath.Join(dir, fmt.Sprint("seed-", seed))
}

// JudgeSaved judges the claims of p by the figures below dir that were made under
// these conditions with each of some seeds, and saves the verdicts there. Errors are
// those of reading and writing.
func JudgeSaved(dir string, p *Paper, opt Options, seeds []uint64) ([]Judgement, error) {
	runs := make([]map[string]*Figure, len(seeds))
	for i, seed := range seeds {
		opt.Seed = seed
		figures := map[string]*Figure{}
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
