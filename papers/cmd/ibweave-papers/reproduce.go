package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/papers/reproduce"
)

// evaluation has the flags of reproduce.
type evaluation struct {
	names []string
	dir   string
	quick bool
	again bool
	seeds []uint64
	cpus  int
	order int // of the negative binomial distribution
	cli.OutputForm
}

func (a *app) reproduceCommand() *cobra.Command {
	o := evaluation{order: 1, seeds: []uint64{1}}
	cmd := &cobra.Command{
		Use:   "reproduce [PAPER|PAPER/FIGURE|all ...]",
		Short: "measure the figures of the papers again, and judge what the papers say",
		Long: `Measure figures of the papers with the simulator, on the tables that compile makes,
and judge the claims of the papers' text by them. Without arguments, list what there
is. Several names are separated by blanks or commas.

Exhibits are worked examples, theorems and rules of the papers. They take seconds, and
without -o they are printed: what packets wait for, what the paper has beside what the code
computes, and the verdict. -o adds them to DIR as PAPER/EXHIBIT.txt, .csv, .json and,
with a drawing, .svg and .png.

DIR gets for each figure PAPER/FIGURE.csv, .svg, .png and .json, the last one with
all parameters, and for each paper PAPER/verdicts.txt, .md and .json: each claim, what
was measured, and the verdict: holds, fails, holds as something else than what is
printed, within the error, not decidable, or not measured when some of its figures
are not in DIR. A claim that fails is a result and no error.

With several seeds the figures of the first one are in DIR, those of the others in
DIR/seed-N. A claim on which they do not agree is judged by the draws of all, and depends
on the draw where some hold and some fail.

Figures that are calls of models name these, and "ibweave-papers model" takes others.

Figures that the same program wrote into DIR, with the same seed and all of --quick or
not, are kept, so an interrupted run goes on where it was; --again makes them again.
The same seed gives the same bytes, on any number of CPUs.`,
		Example: `  ibweave-papers reproduce
  ibweave-papers reproduce zhou2010 -o figures
  ibweave-papers reproduce zhou2010/fig10 zhou2010/fig13 --quick -o figures`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listPapers(cmd.LocalFlags(), &o.OutputForm)
			}
			for _, arg := range args {
				o.names = append(o.names, strings.Split(arg, ",")...)
			}
			return a.reproduce(cmd.Context(), &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.dir, "output", "o", "", "`DIR` for the figures; what else is in it stays")
	flags.BoolVar(&o.quick, "quick", false, "fewer points and shorter measurements, for a first look")
	flags.BoolVar(&o.again, "again", false, "make figures again that DIR has already")
	cli.NumberFlag(flags, &o.order, "negative-binomial", 1, 100, "spam: times between messages are negative binomial of order `R`; 1 is geometric")
	cli.ParsedFlag(flags, &o.seeds, "seed", "1", "seeds of everything random, a `LIST`", parseSeeds)
	cli.NumberFlag(flags, &o.cpus, "cpus", 0, cli.MaxNumber, "points to measure at the same time; 0 is one for each CPU")
	o.Define(flags, "output")
	return cmd
}

// parseSeeds reads a list of different numbers.
func parseSeeds(list string) (seeds []uint64, err error) {
	for item := range strings.SplitSeq(list, ",") {
		seed, ok := cli.ParseNumber[uint64](item)
		if !ok || slices.Contains(seeds, seed) {
			return nil, errors.New("want different numbers from 0 to 2^64-1, as in 1,2,3")
		}
		seeds = append(seeds, seed)
	}
	return seeds, nil
}

// paperEntry is a paper in the list of reproduce.
type paperEntry struct {
	ID      string        `json:"id"`
	Title   string        `json:"title"`
	Notes   []string      `json:"notes"`
	Claims  int           `json:"claims"`
	Figures []figureEntry `json:"figures"`
	// Exhibits are printed if there is no -o.
	Exhibits []figureEntry `json:"exhibits"`
}

type figureEntry struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// listPapers prints what can be reproduced. Flags about figures have no effect then.
func (a *app) listPapers(flags *pflag.FlagSet, form *cli.OutputForm) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		reason := "--" + f.Name + " has no effect without arguments: without the names of figures they are listed"
		switch {
		case !cli.GivenFlag(f) || f.Name == "format":
		case f.Name == "again" || f.Name == "output":
			err = usagef("%s", reason)
		default:
			fmt.Fprintf(a.stderr, "ibweave-papers: %s\n", reason)
		}
	})
	if err != nil {
		return err
	}
	list := make([]paperEntry, 0, len(reproduce.Papers))
	for _, p := range reproduce.Papers {
		e := paperEntry{ID: p.ID, Title: p.Title, Notes: append([]string{}, p.Notes...), Claims: len(p.Claims), Exhibits: []figureEntry{}}
		for _, x := range p.Experiments {
			e.Figures = append(e.Figures, figureEntry{p.ID + "/" + x.Name, x.Title})
		}
		for _, x := range p.Exhibits {
			e.Exhibits = append(e.Exhibits, figureEntry{p.ID + "/" + x.Name, x.Title})
		}
		list = append(list, e)
	}
	return form.Print(a.stdout, list, func(b *text.Sheet) {
		for _, p := range list {
			fmt.Fprintf(b, "%s: %s\n", p.ID, p.Title)
			for _, f := range slices.Concat(p.Figures, p.Exhibits) {
				fmt.Fprintf(b, "  %-24s %s\n", f.ID, f.Title)
			}
			fmt.Fprintf(b, "  and %d claims\n", p.Claims)
		}
		b.WriteString("ibweave-papers reproduce all -o DIR makes all of these\n")
	})
}

// evaluated is the JSON document of reproduce.
type evaluated struct {
	Output   string                `json:"output"`
	Made     []string              `json:"made"` // IDs of figures
	Kept     []string              `json:"kept"`
	Verdicts []reproduce.Judgement `json:"verdicts"`
	// Exhibits are those that were printed, not written.
	Exhibits []*reproduce.Figure `json:"exhibits,omitempty"`
}

func (a *app) reproduce(ctx context.Context, o *evaluation) error {
	work, err := reproduce.Find(o.names)
	if unknown, ok := errors.AsType[*reproduce.UnknownError](err); ok {
		return usagef("%w%s", err, cli.Near(unknown.Name, unknown.Want))
	}
	if err != nil {
		return err
	}
	opt := reproduce.Options{Quick: o.quick, Workers: o.cpus, Version: outdir.Version + cli.Revision()}
	if o.order > 1 {
		opt.Order = o.order
	}
	if o.dir == "" {
		opt.Seed = o.seeds[0]
		return a.printExhibits(ctx, o, work, opt)
	}
	result := evaluated{Output: o.dir, Made: []string{}, Kept: []string{}, Verdicts: []reproduce.Judgement{}}
	for i, seed := range o.seeds {
		if err := a.measureFigures(ctx, o, work, opt, i, seed, &result); err != nil {
			return err
		}
	}
	for _, p := range reproduce.Papers {
		if !slices.ContainsFunc(work, func(w reproduce.Work) bool { return w.Paper == p }) {
			continue
		}
		// Judge by all figures in DIR, those of earlier runs, too.
		list, err := reproduce.JudgeSaved(o.dir, p, opt, o.seeds)
		if err != nil {
			return err
		}
		result.Verdicts = append(result.Verdicts, list...)
	}
	return o.Print(a.stdout, &result, result.text)
}

// measureFigures makes and saves the figures of the i-th seed that are missing, or all.
func (a *app) measureFigures(ctx context.Context, o *evaluation, work []reproduce.Work, opt reproduce.Options, i int, seed uint64, result *evaluated) error {
	opt.Seed = seed
	dir := reproduce.SeedDir(o.dir, i, seed)
	name := func(w reproduce.Work) string {
		if i == 0 {
			return w.ID()
		}
		return fmt.Sprintf("seed-%d/%s", seed, w.ID())
	}
	left := work[:0:0]
	for _, w := range work {
		f, err := reproduce.Load(dir, w, opt)
		if err != nil {
			return err
		}
		if f != nil && !o.again {
			result.Kept = append(result.Kept, name(w))
			continue
		}
		result.Made = append(result.Made, name(w))
		left = append(left, w)
	}
	stage := cli.StartStage(a.Screen, fmt.Sprintf("%d figures", len(left)))
	opt.Progress = stage.Set
	opt.Done = func(w reproduce.Work, f *reproduce.Figure) error {
		a.Log.Info("measured " + name(w))
		return f.Save(dir)
	}
	_, err := reproduce.Run(ctx, left, opt)
	stage.End()
	return err
}

// printExhibits makes exhibits and prints them with the claims that they decide.
func (a *app) printExhibits(ctx context.Context, o *evaluation, work []reproduce.Work, opt reproduce.Options) error {
	for _, w := range work {
		if !w.Prints() {
			return usagef("reproduce needs a directory for the figures, -o DIR: %s is one; without it exhibits are printed", w.ID())
		}
	}
	figures, err := reproduce.Run(ctx, work, opt)
	if err != nil {
		return err
	}
	result := evaluated{Made: []string{}, Kept: []string{}, Verdicts: []reproduce.Judgement{}, Exhibits: figures}
	for _, p := range reproduce.Papers {
		named := map[string]*reproduce.Figure{}
		for i, w := range work {
			if w.Paper == p {
				named[w.Name] = figures[i]
				result.Made = append(result.Made, w.ID())
			}
		}
		for _, j := range p.Judge(named) {
			if j.Verdict != reproduce.NotMeasured {
				result.Verdicts = append(result.Verdicts, j)
			}
		}
	}
	return o.Print(a.stdout, &result, func(b *text.Sheet) {
		for _, f := range result.Exhibits {
			_ = f.Text(b) // a buffer never fails
		}
		_ = reproduce.VerdictText(b, result.Verdicts)
	})
}

// text writes the result for people.
func (r *evaluated) text(b *text.Sheet) {
	_ = reproduce.VerdictText(b, r.Verdicts) // a buffer never fails
	counts := map[reproduce.Verdict]int{}
	for _, j := range r.Verdicts {
		counts[j.Verdict]++
	}
	fmt.Fprintf(b, "%d claims: %d hold, %d hold as something else, %d fail, %d within the error, %d depend on the draw, %d not decidable, %d not measured\n",
		len(r.Verdicts), counts[reproduce.Holds], counts[reproduce.HoldsAs], counts[reproduce.Fails], counts[reproduce.WithinError],
		counts[reproduce.OnDraw], counts[reproduce.NotDecidable], counts[reproduce.NotMeasured])
	fmt.Fprintf(b, "wrote %s: figures made %d, kept %d\n", r.Output, len(r.Made), len(r.Kept))
}

func (a *app) modelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model NAME",
		Short: "measure with a model of a paper, with parameters of your own",
		Long: `Measure with the models that the figures of reproduce are calls of, with parameters of
your own. reproduce prints the calls of each figure, and so do docs/papers.`,
		Example: "  ibweave-papers model min --stages 5 --fanout 3 --multicast 0.2 --format csv",
		Args:    a.maxArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("a model is needed: %s", strings.Join(commandNames(cmd), ", "))
		},
	}
	for _, m := range reproduce.Models {
		format, output := "text", ""
		var seed uint64
		var cpus int
		one := &cobra.Command{Use: m.Name, Short: m.Short, Long: m.Long, Example: "  ibweave-papers model " + m.Example, Args: a.maxArgs(0)}
		work := m.Define(one.Flags())
		one.RunE = func(cmd *cobra.Command, _ []string) error {
			figures, err := reproduce.Run(cmd.Context(), []reproduce.Work{work}, reproduce.Options{Seed: seed, Workers: cpus, Version: outdir.Version + cli.Revision()})
			var file *fs.PathError
			switch {
			case err == nil:
			case exitStatus(err) == cli.Environment && !errors.As(err, &file) && cmd.Context().Err() == nil:
				// The values do not fit together.
				return cli.NewUsageError(err)
			default:
				return err
			}
			var b bytes.Buffer
			write := map[string]func(io.Writer) error{"text": figures[0].Text, "csv": figures[0].CSV, "json": figures[0].JSON, "svg": figures[0].SVG}[format]
			if err := write(&b); err != nil {
				return cli.NewUsageError(err)
			}
			return a.WriteFile(output, b.Bytes())
		}
		flags := one.Flags()
		flags.Uint64Var(&seed, "seed", 1, "seed of everything random")
		cli.NumberFlag(flags, &cpus, "cpus", 0, cli.MaxNumber, "points to measure at the same time; 0 is one for each CPU")
		cli.WordFlag(flags, &format, "format", "`FORM` of the output: text, csv, json or svg", "text", "csv", "json", "svg")
		flags.StringVarP(&output, "output", "o", "-", "`FILE` to write; - is standard output")
		if flags.Lookup("topology") != nil {
			one.MarkFlagsMutuallyExclusive("network", "topology")
		}
		cmd.AddCommand(one)
	}
	return cmd
}
