package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
)

// generator is the command gen; the kinds of fabrics are its subcommands.
type generator struct {
	*app
	cmd    *cobra.Command
	output string
	format string
	change gen.Options
}

func (a *app) genCommand() *cobra.Command {
	g := &generator{app: a}
	g.cmd = &cobra.Command{
		Use:   "gen KIND",
		Short: "make a fabric: a tree, mesh, torus, directors, ..",
		Args:  a.maxArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("gen needs a KIND: %s", strings.Join(kindNames(cmd), ", "))
		},
	}
	flags := g.cmd.PersistentFlags()
	flags.StringVarP(&g.output, "output", "o", "-", "`FILE` to write, a directory for ibdiagnet2; - is standard output")
	g.format = "ibnetdiscover"
	forms := append([]string{runFormat}, slices.Sorted(maps.Keys(genForms))...)
	cli.WordFlag(flags, &g.format, "format", "`FORM` of what is written: "+strings.Join(forms, ", "), forms...)
	o := &g.change
	cli.DefaultNumberFlag(flags, &o.Fill, "fill", 100, 1, 100, "take random hosts away, so that `PERCENT` of 100 stay and one on each switch that has hosts")
	cli.NumberFlag(flags, &o.ServiceHosts, "service-hosts", 0, cli.MaxNumber, "put `N` hosts on free ports of switches above those with hosts")
	cli.DefaultNumberFlag(flags, &o.Planes, "planes", 1, 1, cli.MaxNumber, "make `N` chips of each switch and N ports of each port of an adapter; a cable has a lane to each")
	cli.NumberFlag(flags, &o.DropLinks, "drop-links", 0, cli.MaxNumber, "take `N` random switch-to-switch links away, without disconnecting")
	cli.ListFlag(flags, &o.Speeds, "speed", "", "speeds of switches, `QDR..XDR`; of several each switch has one at random, a cable that of its slower end", parseSpeed)
	flags.BoolVar(&o.Labels, "labels", false, "write what is printed beside the ports, as ibdiagnet does; ibsim does not load that")
	flags.StringVar(&o.Names, "names", "", "how nodes describe themselves: `STYLE` site, factory or mixed; without it, where in the made fabric they are")
	flags.BoolVar(&o.AggregationNodes, "aggregation-nodes", false, "give each switch a port more, with the channel adapter of a SHARP aggregation node")
	cli.DefaultNumberFlag(flags, &g.change.Seed, "seed", 1, 0, math.MaxUint64, "seed of everything random")
	cli.Scopes(flags, cli.Scope{Flags: "seed", With: "drop-links fill names=mixed speed command=irregular|lattice", Why: cli.Random, Note: true})
	for i := range policy.Kinds {
		g.addKind(&policy.Kinds[i])
	}
	return g.cmd
}

// addKind adds the command of a kind of fabrics.
func (g *generator) addKind(k *policy.Kind) {
	c := &cobra.Command{
		Use:     k.Name,
		Short:   k.Short,
		Long:    k.About,
		Example: "  ibweave gen " + k.Name + " " + k.Example,
		Args:    g.maxArgs(0),
	}
	make := k.Define(c.Flags(), &g.change.Seed)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" || f.Value.Type() == "string" {
			return
		}
		whole, least := f.Value, 0
		if slices.Contains(strings.Fields("dim groups hosts-per-leaf radix stages switches"), f.Name) {
			least = 1 // 0, the default, stands for another number
		}
		f.Value = &cli.Value[string]{To: new(string), Text: f.DefValue, Kind: "N", Parse: func(text string) (string, error) {
			for item := range strings.SplitSeq(text, ",") {
				if _, err := cli.Within(least, cli.MaxNumber)(item); err != nil {
					return "", err
				}
			}
			return text, whole.Set(text)
		}}
	})
	if c.Flags().Lookup("rail-spines") != nil {
		cli.Scopes(c.Flags(), cli.Scope{Flags: "rail-spines", With: "rails"})
	}
	wrap := c.Flags().Lookup("wrap")
	if wrap != nil {
		c.Args = g.maxArgs(1)
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		form := genForms[g.format]
		if form == nil && g.output == "-" {
			return usagef("--format ibdiagnet2 is a directory: want -o DIR")
		}
		if len(args) == 1 { // --wrap x,y, which is --wrap=x,y
			if wrap.Value.String() != policy.WrapAll {
				return usagef("unexpected argument %q", args[0])
			}
			if err := wrap.Value.Set(args[0]); err != nil {
				return cli.NewUsageError(err)
			}
		}
		f, err := make()
		if err != nil {
			return cli.NewUsageError(err)
		}
		if f, err = g.change.Apply(f); err != nil {
			return cli.NewUsageError(err)
		}
		if g.change.Labels && g.format == "ibnetdiscover" {
			form = topology.AppendLabelled
		}
		if g.format == runFormat {
			err = writeRun(f, g.output)
		} else {
			err = g.WriteFile(g.output, form(nil, f))
		}
		if err == nil && g.output != "-" {
			fmt.Fprintf(g.stdout, "wrote %s: %s\n", g.output, fabricSize(f))
		}
		return err
	}
	g.require(c, strings.Fields(k.Required)...)
	g.cmd.AddCommand(c)
}

const runFormat = "ibdiagnet2"

// genForms has the forms of --format except runFormat.
var genForms = map[string]func([]byte, *fabric.Fabric) []byte{
	"ibnetdiscover": topology.Append,
	"lst": func(b []byte, f *fabric.Fabric) []byte {
		out := bytes.NewBuffer(b)
		_ = dump.WriteSubnetList(out, f) // a buffer never fails
		return out.Bytes()
	},
}

// parseSpeed reads an item of --speed.
func parseSpeed(name string) ([]fabric.Speed, error) {
	s, ok := fabric.ParseSpeed(strings.ToUpper(name))
	if !ok {
		return nil, errors.New("want QDR, FDR, EDR, HDR, NDR or XDR")
	}
	return []fabric.Speed{s}, nil
}

// writeRun writes a directory like that of a run of ibdiagnet.
func writeRun(f *fabric.Fabric, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	framed := func(body func(io.Writer) error) func(io.Writer) error {
		return func(w io.Writer) error {
			ibdiagnet.WriteHead(w)
			err := body(w)
			ibdiagnet.WriteTail(w)
			return err
		}
	}
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"ibdiagnet2.db_csv", func(w io.Writer) error { return ibdiagnet.Write(w, f) }},
		{"ibdiagnet2.ibnetdiscover", framed(func(w io.Writer) error {
			_, err := w.Write(topology.AppendLabelled(nil, f))
			return err
		})},
		{"ibdiagnet2.lst", framed(func(w io.Writer) error { return dump.WriteSubnetList(w, f) })},
	} {
		if err := files.Write(filepath.Join(dir, file.name), file.write); err != nil {
			return err
		}
	}
	return nil
}
