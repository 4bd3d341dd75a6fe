package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/papers/myrinet/lan"
	"github.com/ibweave/ibweave/papers/reproduce"
)

// modelCommand has a command for each model.
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
		var format, output string
		var seed uint64
		var cpus int
		one := &cobra.Command{Use: m.Name, Short: m.Short, Long: m.Long, Example: "  ibweave-papers model " + m.Example, Args: a.maxArgs(0)}
		work := m.Define(one.Flags())
		one.RunE = func(cmd *cobra.Command, _ []string) error {
			if cpus < 0 {
				return wrongNumber("cpus", cpus)
			}
			figures, err := reproduce.Run(cmd.Context(), []reproduce.Work{work}, reproduce.Options{Seed: seed, Workers: cpus, Version: outdir.Version + cli.Revision()})
			var file *fs.PathError
			var deadlock *lan.DeadlockError
			switch {
			case err == nil:
			case errors.As(err, &deadlock):
				return &failure{cli.Findings, err}
			case exitStatus(err) == cli.Environment && !errors.As(err, &file) && cmd.Context().Err() == nil:
				return &failure{cli.Usage, err} // values that do not hold together
			default:
				return err
			}
			var b bytes.Buffer
			write := map[string]func(io.Writer) error{"text": figures[0].Text, "csv": figures[0].CSV, "json": figures[0].JSON, "svg": figures[0].SVG}[format]
			if write == nil {
				return usagef("--format %q: want text, csv, json or svg", format)
			}
			if err := write(&b); err != nil {
				return &failure{cli.Usage, err}
			}
			return a.writeOutput(output, b.Bytes())
		}
		flags := one.Flags()
		flags.Uint64Var(&seed, "seed", 1, "seed of everything random")
		flags.IntVar(&cpus, "cpus", 0, "points to measure at the same time; 0 is one for each CPU")
		flags.StringVar(&format, "format", "text", "`FORM` of the output: text, csv, json or svg")
		flags.StringVarP(&output, "output", "o", "-", "`FILE` to write; - is standard output")
		complete(one, "format", "text", "csv", "json", "svg")
		if flags.Lookup("topology") != nil {
			one.MarkFlagsMutuallyExclusive("network", "topology")
		}
		cmd.AddCommand(one)
	}
	return cmd
}
