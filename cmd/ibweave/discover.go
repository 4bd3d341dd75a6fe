package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
	"github.com/ibweave/ibweave/sminterface/umad"
	"github.com/ibweave/ibweave/state/open"
)

// reach has the flags that say how to reach a subnet.
type reach struct {
	ibsim, umad, node string
	timeout           time.Duration
	retries, window   int
	mkey              uint64
	viaIbsim          bool
}

// environment is the value of --ibsim without NAME, for the ibsim that IBSIM_SOCKNAME names.
const environment = "environment"

func (r *reach) flags(f *pflag.FlagSet) {
	f.StringVar(&r.ibsim, "ibsim", "", "the ibsim whose sockets are called `NAME` (IBSIM_SOCKNAME, else sim)")
	f.Lookup("ibsim").NoOptDefVal = environment
	f.StringVar(&r.umad, "umad", "", "the port `DEVICE[:PORT]` of this machine, or its port GUID, or its network interface")
	f.StringVar(&r.node, "node", "", "the `NODE` that ibsim attaches us to, by id or description (SIM_HOST, else its first)")
	r.timeout = time.Second
	cli.ParsedFlag(f, &r.timeout, "timeout", "1s", "wait this `TIME` for an answer", func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 || d > 24*time.Hour {
			return 0, errors.New("want more than 0s, and at most 24h")
		}
		return d, nil
	})
	cli.DefaultNumberFlag(f, &r.retries, "retries", 3, 0, cli.MaxNumber, "then ask again, so often")
	cli.DefaultNumberFlag(f, &r.window, "window", 8, 1, 1024, "requests in flight at most")
	cli.NumberFlag(f, &r.mkey, "mkey", 0, math.MaxUint64, "M_Key of the subnet, where its ports are protected")
}

// mlidFlag defines a flag whose value is an MLID; *to has the default, 0 for none.
func mlidFlag(flags *pflag.FlagSet, to *uint16, name, usage string) {
	cli.ParsedFlag(flags, to, name, fmt.Sprint(*to), usage, func(text string) (uint16, error) {
		n, ok := cli.ParseNumber[uint16](text)
		if lid := fabric.LID(n); !ok || lid < mft.MinMLID || lid > mft.MaxMLID {
			return 0, fmt.Errorf("want %#x to %#x", uint16(mft.MinMLID), uint16(mft.MaxMLID))
		}
		return n, nil
	})
}

// args takes NAME of --ibsim NAME from the arguments, and checks the flags.
func (r *reach) args(cmd *cobra.Command, args []string) error {
	r.viaIbsim = cmd.Flags().Changed("ibsim")
	if len(args) == 1 && r.ibsim == environment {
		r.ibsim, args = args[0], nil
	}
	switch {
	case len(args) > 0:
		return usagef("unexpected argument %q", args[0])
	case r.viaIbsim == (r.umad != ""):
		return usagef("%s needs either --ibsim [NAME] or --umad DEVICE[:PORT]", cmd.CommandPath())
	case r.node != "" && !r.viaIbsim:
		return usagef("--node goes with --ibsim only")
	}
	return nil
}

func (a *app) open(ctx context.Context, r *reach) (*subnet.Client, error) {
	d := open.Device{Umad: r.umad, Node: r.node, Options: subnet.Options{Window: r.window, Timeout: r.timeout, Retries: r.retries, MKey: r.mkey}}
	if r.retries == 0 {
		d.Retries = -1
	}
	if r.ibsim != environment {
		d.Socket = r.ibsim
	}
	c, to, err := open.Dial(ctx, d)
	if cli.Is[*open.NoDeviceError](err) {
		return nil, cli.NewUsageError(err)
	}
	if err == nil {
		a.Log.Info("attached to " + to)
	}
	return c, err
}

func (a *app) readLive(ctx context.Context, r *reach, opt open.LiveOptions) (*open.Swept, error) {
	c, err := a.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // its error no longer matters
	opt.Host = a.reader(new(audit)).Host
	return open.Live(ctx, c, opt)
}

// subnetProblems prints what a sweep left out; it returns ErrFindings if there is anything.
func (a *app) subnetProblems(problems []fabric.Problem) error {
	a.listProblems(len(problems), true, func(i int) string { return problems[i].String() })
	return cli.FindingsIf(len(problems) > 0)
}

// refused prints an error by which the subnet says no, and returns ErrFindings for it.
func (a *app) refused(err error) error {
	if cli.Is[*mad.StatusError](err) || cli.Is[*subnet.MLIDError](err) || cli.Is[*subnet.NoGroupError](err) {
		fmt.Fprintf(a.stderr, "ibweave: %v\n", err)
		return cli.ErrFindings
	}
	return err
}

func (a *app) discoverCommand() *cobra.Command {
	var (
		r   reach
		out string
	)
	cmd := &cobra.Command{
		Use:   "discover --ibsim [NAME] | --umad DEVICE[:PORT]",
		Short: "find out what a live fabric consists of, as ibnetdiscover text",
		Args:  a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.args(cmd, args); err != nil {
				return err
			}
			c, err := a.open(cmd.Context(), &r)
			if err != nil {
				return err
			}
			// Its error no longer matters.
			defer func() { _ = c.Close() }()
			s := a.startStage("discover")
			d, err := c.Discover(cmd.Context())
			s.End()
			if err == nil {
				d.Fabric, err = a.named(d.Fabric)
			}
			if err != nil {
				return err
			}
			a.Log.Info(fmt.Sprintf("discovered %d nodes by %d requests", d.Fabric.NumNodes(), d.Requests))
			if err := a.WriteFile(out, topology.Append(nil, d.Fabric.Renamed())); err != nil {
				return err
			}
			return a.subnetProblems(d.Problems)
		},
	}
	r.flags(cmd.Flags())
	a.nameFlag(cmd)
	cmd.Flags().StringVarP(&out, "output", "o", "-", "`FILE` for the text, - for standard output")
	return cmd
}

func (a *app) devicesCommand() *cobra.Command {
	var form cli.OutputForm
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "list the RDMA ports of this machine",
		Args:  a.maxArgs(0),
		RunE: func(*cobra.Command, []string) error {
			list, err := umad.List()
			if err != nil {
				return err
			}
			return form.Print(a.stdout, deviceDocument(list), func(b *text.Sheet) { deviceTable(b, list) })
		},
	}
	form.Define(cmd.Flags(), "output")
	return cmd
}

func deviceDocument(list []umad.PortInfo) map[string]any {
	return map[string]any{"ports": text.Each(list, func(p umad.PortInfo) umad.PortInfo {
		p.Netdevs = append([]string{}, p.Netdevs...) // an empty list, not null
		return p
	})}
}

func deviceTable(b *text.Sheet, list []umad.PortInfo) {
	w := b.Table()
	fmt.Fprintln(w, "PORT\tGUID\tLID\tSM LID\tSTATE\tLINK\tRATE\tUMAD\tNETDEV")
	or := func(s string) string { return cmp.Or(s, "-") }
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", p, p.GUID, p.LID, p.SMLID, or(p.State), p.LinkLayer, or(p.Rate), or(p.Umad), or(strings.Join(p.Netdevs, ",")))
	}
	_ = w.Flush() // a buffer never fails
}
