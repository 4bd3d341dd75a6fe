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
				return cli.NewUsageError(err) // values that do not hold together
			default:
				return err
			}
			var b bytes.Buffer
			write := map[string]func(io.Writer) error{"text": figures[0].Text, "csv": figures[0].CSV, "json": figures[0].JSON, "svg": figures[0].SVG}[format]
			if err := write(&b); err != nil {
				return cli.NewUsageError(err)
			}
			return a.writeOutput(output, b.Bytes())
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
