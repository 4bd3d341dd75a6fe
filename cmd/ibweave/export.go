package main

import (
	"cmp"
	"io"
	"os"
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/cabling/plan"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/report/scheduler"
)

func (a *app) planCommand() *cobra.Command {
	var in audit
	var output string
	form := plan.Forms[0]
	cmd := &cobra.Command{
		Use:   "plan DIR|FILE",
		Short: "write a cabling plan from a fabric",
		Args:  a.maxArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("plan needs a topology: DIR or FILE")
			}
			return a.writePlan(&in, args[0], form, output)
		},
	}
	cli.WordFlag(cmd.Flags(), &form, "format", "`FORM` of the plan: ndt, csv or topo", plan.Forms...)
	cmd.Flags().StringVarP(&output, "output", "o", "-", "`FILE` to write; - is standard output")
	lenientFlag(cmd.Flags(), &in.Lenient)
	a.nameFlag(cmd)
	a.kindFlag(cmd)
	return cmd
}

func (a *app) writePlan(in *audit, from, form, output string) error {
	in.Topology = from
	if info, err := os.Stat(from); from != "-" && err == nil && info.IsDir() {
		in.Topology = ""
		if err := a.reader(in).FindIn(from, false); err != nil {
			return err
		}
	}
	in.LFTs = ""
	f, _, err := a.readTables(in)
	if err != nil {
		return err
	}
	return a.writeComplete(output, func(w io.Writer) error { return plan.Write(w, f, form) })
}

type slurmOptions struct {
	topology  string
	lenient   bool
	format    string
	output    string
	host      hostPattern
	switches  string
	blockSize int
}

// hostPattern is the flag --host-regexp.
type hostPattern string

func (h *hostPattern) define(flags *pflag.FlagSet) {
	flags.StringVar((*string)(h), "host-regexp", "", "`REGEXP` that finds the name of a host in the description of its adapter, by its first group or the one called host; by default n001 in \"n001 HCA-1\", \"n001 mlx5_0\" and \"n001\"")
}

// parse returns the pattern, nil for none.
func (h *hostPattern) parse() (*regexp.Regexp, error) {
	if *h == "" {
		return nil, nil
	}
	pattern, err := regexp.Compile(string(*h))
	if err != nil {
		return nil, usagef("--host-regexp: %w", err)
	}
	return pattern, nil
}

func (a *app) slurmCommand() *cobra.Command {
	o := slurmOptions{format: "conf", switches: "fabric"}
	cmd := &cobra.Command{
		Use:   "slurm -t TOPOLOGY",
		Short: "write Slurm's topology files from a fabric",
		Args:  a.maxArgs(0),
		RunE:  func(*cobra.Command, []string) error { return a.slurm(&o) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.topology, "topology", "t", "", "topology `FILE`; - is standard input")
	cli.WordFlag(flags, &o.format, "format", "`FORM` of the output: conf, yaml or json", "conf", "yaml", "json")
	flags.StringVarP(&o.output, "output", "o", "-", "`FILE` to write; - is standard output")
	o.host.define(flags)
	cli.WordFlag(flags, &o.switches, "switch-names", "`NAMES` of leaves: those of their switches in the fabric, or numbers: leaf1, leaf2", "fabric", "numbers")
	cli.NumberFlag(flags, &o.blockSize, "block-size", 1, cli.MaxNumber, "a block has `N` hosts at least; by default as many as the smallest leaf")
	lenientFlag(flags, &o.lenient)
	a.fabricFlags(cmd)
	a.require(cmd, "topology")
	cli.Scopes(cmd.Flags(), cli.Scope{Flags: "block-size", With: "format=yaml|json", Why: "topology.conf has no blocks", Note: true})
	return cmd
}

// slurm reads a fabric and writes its leaves as Slurm's topology.
func (a *app) slurm(o *slurmOptions) (err error) {
	opt := scheduler.Options{Numbered: o.switches == "numbers"}
	if opt.Host, err = o.host.parse(); err != nil {
		return err
	}
	f, err := a.readTopology(o.topology, o.lenient)
	if err != nil {
		return err
	}
	t, err := scheduler.Of(f, opt)
	if err != nil {
		return inputf("%s: %w; want descriptions like \"n001 HCA-1\", a --host-regexp, or a --node-name-map", o.topology, err)
	}
	o.blockSize = cmp.Or(o.blockSize, t.SmallestLeaf())
	if blocks, _ := t.Blocks(o.blockSize); len(blocks) == 0 && o.format != "conf" {
		return usagef("--block-size %d: every leaf has fewer hosts", o.blockSize)
	}
	return a.writeComplete(o.output, cli.Printed(func(w io.Writer) error {
		switch o.format {
		case "yaml":
			return t.WriteYAML(w, o.blockSize)
		case "json":
			name := func(g scheduler.Group) string { return g.Name }
			blocks, tooFew := t.Blocks(o.blockSize)
			return report.JSON(w, schedulerDocument{t, o.blockSize, text.Each(blocks, name), text.Each(tooFew, name)})
		}
		return t.WriteConf(w)
	}))
}

// schedulerDocument is the JSON document of slurm.
type schedulerDocument struct {
	*scheduler.Topology
	BlockSize int      `json:"block_size"`
	Blocks    []string `json:"blocks"`   // names of leaves
	NoBlock   []string `json:"no_block"` // names of leaves with too few hosts
}
