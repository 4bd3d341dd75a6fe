package main

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/counters"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/report/page"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state/open"
)

// readings names the files of counters that a command reads.
type readings struct {
	now     string // "" for none
	before  string // an earlier reading, "" for none
	seconds float64
}

func (r *readings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&r.before, "before", "", "`FILE` of an earlier reading: what was counted since counts")
	cli.NumberFlag(flags, &r.seconds, "seconds", 0.001, 1e9, "the counters counted for `N` seconds; by default what two runs of ibdiagnet say, else not known")
}

type countersOptions struct {
	audit
	cli.OutputForm
	readings
	asked counters.Options
}

func (a *app) countersCommand() *cobra.Command {
	var o countersOptions
	cmd := &cobra.Command{
		Use:   "counters [DIR | -t TOPOLOGY [--lfts FILE]] [FILE]",
		Short: "which cables have errors, and which are hot by routing or traffic",
		Args:  a.maxArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := o.arguments(args)
			if err != nil {
				return err
			}
			// Tables may be missing. Of adaptive tables, the static ports will do.
			o.wiring, o.TakeAdaptive = true, true
			if err := a.resolveAudit("counters", &o.audit, dir); err != nil {
				return err
			}
			return a.counters(cmd.Context(), &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.Topology, "topology", "t", "", "topology `FILE`")
	flags.StringVar(&o.LFTs, "lfts", "", "`FILE` of forwarding tables")
	lenientFlag(flags, &o.audit.Lenient)
	o.readings.flags(flags)
	o.asked.Hot = 1.5
	cli.ParsedFlag(flags, &o.asked.Hot, "hot", "1.5", "a cable is hot from `F` times the mean on, F above 1", func(text string) (float64, error) {
		hot, ok := cli.ParseNumber[float64](text)
		if !ok || !(hot > 1 && hot <= cli.MaxFactor) {
			return 0, errors.New("want more than 1, and at most 1000000")
		}
		return hot, nil
	})
	cli.DefaultNumberFlag(flags, &o.asked.Top, "top", 20, 0, cli.MaxNumber, "list `N` cables with errors, and N hot ones with who shares them")
	o.OutputForm.Define(flags, "output")
	a.fabricFlags(cmd)
	a.hostGroupFlag(cmd)
	return cmd
}

// arguments returns DIR, nil with -t, and sets o.now: to FILE, or else to the topology or DIR.
func (o *countersOptions) arguments(args []string) (dir []string, err error) {
	switch {
	case o.Topology == "" && len(args) == 0:
		return nil, usagef("counters needs tables, DIR or -t TOPOLOGY, and FILE behind them")
	case o.Topology != "" && len(args) > 1:
		return nil, usagef("counters takes a directory or -t TOPOLOGY, not both")
	case o.Topology == "":
		dir, args = args[:1], args[1:]
	}
	o.now = cmp.Or(strings.Join(args, ""), o.Topology, strings.Join(dir, ""))
	return dir, cli.OneStdin(o.now, o.before)
}

func (a *app) readCounters(r *readings, in *audit, f *fabric.Fabric) (*open.Reading, error) {
	in.Findings = false // problems of the counters are no findings
	return a.reader(in).Counters(f, r.now, r.before, r.seconds)
}

func (a *app) counters(ctx context.Context, o *countersOptions) error {
	f, tables, err := a.readTables(&o.audit)
	if err != nil {
		return err
	}
	c, err := a.readCounters(&o.readings, &o.audit, f)
	if err != nil {
		return err
	}
	stage := a.startStage("compare")
	o.asked.Seconds = c.Seconds
	r, err := counters.Explain(ctx, f, tables, c.Counters, o.asked)
	stage.End()
	if err != nil {
		return err
	}
	set, err := a.groupsOf(f, true)
	if err != nil {
		return err
	}
	d := counters.NewDocument(f, r, set)
	d.Reading, d.Resets, d.Tables, d.Adaptive, d.Asked = c.Kind, c.Resets, tables != nil, o.State.Adaptive != nil, o.asked
	return o.Print(a.stdout, d, d.Print)
}

// colours returns the counters by which the page can colour links; -1 is an unknown value.
func colours(c *open.Reading, f *fabric.Fabric) (list []page.Counter) {
	for k := range dump.CounterCount {
		if !c.Counts(k) {
			continue
		}
		info := k.Info()
		x := page.Counter{Name: info.Name, Unit: info.Unit, Values: make([]float64, f.NumPorts())}
		per := 1.0
		if c.Seconds > 0 {
			x.Unit, per = info.Unit+" per second", c.Seconds
		}
		for p := range x.Values {
			x.Values[p] = -1
			if v := c.Get(k, fabric.PortID(p)); v.Known {
				x.Values[p] = v.N / per
			}
		}
		list = append(list, x)
	}
	return list
}
