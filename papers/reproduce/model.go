package reproduce

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/report/chart"
)

// Model measures a network of a paper with parameters. Figures are calls of models.
type Model struct {
	Name, Short, Long, Example string
	// define adds the parameters to flags; defaults are mostly the paper's. It returns
	// a function that measures with the values that the flags have when it is called.
	define func(flags *pflag.FlagSet) func(lab *Lab) (*Figure, error)
}

// Models lists the models that measure figures, in the order of the help text.
var Models []*Model

func init() { // else a cycle: figures refer to models, and these to figures
	Models = []*Model{&minModel, &copyModel, &wormModel, &multicastModel, &lanModel, &testbedModel, &switchModel, &headerModel}
}

// Define adds the parameters of m to flags, and returns the experiment,
// which takes their values when it runs. The figure lists parameters that are
// not empty, 0 or false, and leaves out points at which nothing was measured.
func (m *Model) Define(flags *pflag.FlagSet) Work {
	measure := m.define(flags)
	var own []*pflag.Flag
	flags.VisitAll(func(f *pflag.Flag) { own = append(own, f) })
	return Work{Paper: &Paper{ID: "model"}, Experiment: &Experiment{Name: m.Name, Title: m.Short, Run: func(lab *Lab) (*Figure, error) {
		f, err := measure(lab)
		if err != nil {
			return nil, err
		}
		for _, flag := range own {
			if v := strings.Trim(flag.Value.String(), "[]"); v != "" && v != "0" && v != "false" {
				f.Parameters = append(f.Parameters, Parameter{flag.Name, v})
			}
		}
		for _, p := range f.Panels {
			for i := range p.Curves {
				p.Curves[i].Points = slices.DeleteFunc(p.Curves[i].Points, func(at chart.Point) bool { return math.IsNaN(at.Y) })
			}
		}
		return f, nil
	}}}
}

// callModel measures with a model by a line such as "min --stages 7".
func callModel(lab *Lab, line string) (*Figure, error) {
	words := strings.Fields(line)
	i := slices.IndexFunc(Models, func(m *Model) bool { return m.Name == words[0] })
	if i < 0 {
		return nil, fmt.Errorf("no model is called %q", words[0])
	}
	flags := pflag.NewFlagSet(words[0], pflag.ContinueOnError)
	work := Models[i].Define(flags)
	if err := flags.Parse(words[1:]); err != nil {
		return nil, fmt.Errorf("model %s: %w", line, err)
	}
	f, err := work.Run(lab)
	if err == nil {
		f.Calls = []string{"ibweave-papers model " + line}
	}
	return f, err
}

// override replaces values of flags in a line: a second flag would extend a list.
func override(line string, flags []string) string {
	words := strings.Fields(line)
	for pair := range slices.Chunk(flags, 2) {
		if i := slices.Index(words, pair[0]); i >= 0 {
			words[i+1] = pair[1]
		} else {
			words = append(words, pair...)
		}
	}
	return strings.Join(words, " ")
}

// modelled makes an experiment of calls of models, whose panels follow each other.
// In a quick run, each call gets the flags in quick, pairs of a flag and a value.
func modelled(name, title, quick string, lines ...string) Experiment {
	return Experiment{Name: name, Title: title, Run: func(lab *Lab) (*Figure, error) {
		f := &Figure{}
		lab.calls = len(lines)
		for _, line := range lines {
			if lab.Quick {
				line = override(line, strings.Fields(quick))
			}
			one, err := callModel(lab, line)
			if err != nil {
				return nil, err
			}
			f.Calls = append(f.Calls, one.Calls...)
			f.Panels = append(f.Panels, one.Panels...)
			for _, p := range one.Parameters {
				if !slices.Contains(f.Parameters, p) {
					f.Parameters = append(f.Parameters, p)
				}
			}
		}
		for i := range f.Panels {
			if len(f.Panels) > 1 {
				f.Panels[i].Title = strings.TrimSpace(fmt.Sprintf("(%c) %s", 'a'+i, f.Panels[i].Title))
			}
		}
		return f, nil
	}}
}

// addCall adds the rows and drawings of a model to an exhibit. paper has
// the paper's values for the first rows; for others the paper has none.
func (f *Figure) addCall(lab *Lab, what, line string, paper ...string) error {
	one, err := callModel(lab, line)
	if err != nil {
		return err
	}
	for i, r := range one.Rows {
		if i < len(paper) {
			r.Paper = paper[i]
		}
		f.add(strings.Trim(what+", "+r.What, ", "), r.Paper, r.Computed)
	}
	f.Drawings = append(f.Drawings, one.Drawings...)
	f.Calls = append(f.Calls, one.Calls...)
	return nil
}

// varied joins the parts of a name that are not empty. Names have the value of
// each parameter that has several values and is not on the axis (ifSeveral).
func varied(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// ifSeveral formats value if the list of its parameter has several values, else "".
func ifSeveral[T any](list []T, format string, value any) string {
	if len(list) < 2 {
		return ""
	}
	return fmt.Sprintf(format, value)
}
