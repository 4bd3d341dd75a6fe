package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/drift"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/report/metrics"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
)

type drifting struct {
	reach
	cli.OutputForm
	cli.Threshold
	live            []string
	lenient         bool
	samples         int
	mlid            uint16
	verbose, single bool
	parts           []state.Undecided // what the live dumps lack
}

func (a *app) driftCommand() *cobra.Command {
	var d drifting
	cmd := &cobra.Command{
		Use:   "drift DIR --live FILE.. | --ibsim [NAME] | --umad DEVICE[:PORT]",
		Short: "has the fabric drifted from the tables that were compiled",
		Args:  a.maxArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("drift needs a directory that compile wrote")
			}
			if err := d.check(cmd, args[1:]); err != nil {
				return err
			}
			r, err := a.drift(cmd.Context(), &d, args[0])
			if err != nil {
				return err
			}
			if d.IsMetrics() {
				err = metrics.Write(a.stdout, d.Metrics, struct {
					*drift.Report
					Equal bool `json:"equal"`
				}{r, r.Equal()})
			} else {
				err = d.Print(a.stdout, r, func(b *text.Sheet) { r.Print(b, args[0], d.single, d.verbose) })
			}
			return cmp.Or(err, d.CheckWorst(r.Worst()))
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&d.live, "live", nil, "a dump in `FILE`, or a folder that pull wrote; once for each dump")
	d.reach.flags(flags)
	d.mlid = uint16(mft.MaxMLID)
	mlidFlag(flags, &d.mlid, "max-mlid", "read multicast tables up to this `MLID`, by default up to those in use, with --ibsim and --umad")
	a.nameFlag(cmd)
	lenientFlag(flags, &d.lenient)
	a.strictFlag(cmd)
	cli.DefaultNumberFlag(flags, &d.samples, "samples", drift.DefaultSamples, 1, cli.MaxNumber, "list at most `N` entries of a switch and table")
	d.OutputForm.DefineMetrics(flags, "drift")
	d.Threshold.Define(flags, "")
	flags.BoolVarP(&d.verbose, "verbose", "v", false, "print a line when there is nothing to say, notes, and all switches that differ")
	flags.BoolVar(&d.single, "summary", false, "print one line only")
	cli.Scopes(cmd.Flags(),
		cli.Scope{Flags: "mkey retries timeout window", Not: "live", Why: "files are not asked", Note: true},
		cli.Scope{Flags: "summary verbose", Not: "format=json", Why: cli.Unsaid, Note: true},
		cli.Scope{Flags: "samples", Not: "summary", Why: "a line has no list", Note: true})
	return cmd
}

// check validates the flags; rest has the arguments after DIR.
func (d *drifting) check(cmd *cobra.Command, rest []string) error {
	if len(d.live) == 0 {
		if !cmd.Flags().Changed("max-mlid") {
			d.mlid = 0
		}
		if !cmd.Flags().Changed("ibsim") && d.umad == "" {
			return usagef("drift needs what is live: --live FILE, --ibsim [NAME] or --umad DEVICE[:PORT]")
		}
		return d.args(cmd, rest)
	}
	if len(rest) > 0 {
		return usagef("unexpected argument %q", rest[0])
	}
	for _, flag := range []string{"ibsim", "umad", "node", "max-mlid"} {
		if cmd.Flags().Changed(flag) {
			return usagef("--%s and --live: want one of them", flag)
		}
	}
	return cli.OneStdin(d.live...)
}

func (a *app) drift(ctx context.Context, d *drifting, dir string) (*drift.Report, error) {
	meant, err := a.readFolder(dir, d.lenient)
	if err != nil {
		return nil, err
	}
	var live *state.State
	if len(d.live) > 0 {
		live, err = a.readDumps(d, meant.Fabric)
	} else {
		live, err = a.pullLive(ctx, d)
	}
	if err != nil {
		return nil, err
	}
	if (meant.Tables == nil || live.Tables == nil) && (meant.Multicast == nil || live.Multicast == nil) && (meant.SL2VL == nil || live.SL2VL == nil) {
		return nil, inputf("%s and %s have no table in common: nothing to compare", dir, strings.Join(d.live, ", "))
	}
	s := a.startStage("compare")
	defer s.End()
	r, err := drift.Compare(ctx, meant, live, d.samples)
	if err != nil {
		return nil, err
	}
	for _, u := range d.parts {
		r.Findings = append(r.Findings, verify.Finding{Rule: drift.Unread, Severity: verify.Error, Message: u.Reason, Count: 1, Witness: []verify.Hop{}})
	}
	return r, nil
}

// readFolder reads a compiled directory, or a folder of dumps by pull or OpenSM.
func (a *app) readFolder(dir string, lenient bool) (*state.State, error) {
	in := newAudit(lenient, true)
	r := a.reader(in)
	if err := r.FindIn(dir, false); err != nil {
		return nil, err
	}
	return a.readState(&side{name: dir, audit: *in})
}

// readDumps reads the live dumps. They belong to the cables of
// f, unless a folder has its own topology.
func (a *app) readDumps(d *drifting, f *fabric.Fabric) (*state.State, error) {
	if len(d.live) == 1 && open.Folder(d.live[0]) {
		return a.readFolder(d.live[0], d.lenient)
	}
	in := newAudit(d.lenient, true)
	for _, name := range d.live {
		data, err := a.readInput(name)
		if err != nil {
			return nil, err
		}
		form := dump.Recognize(data)
		switch kind := form.Info().Kind; kind {
		case state.ForwardingTables, state.AdaptiveTables, state.SL2VLTables, state.MulticastTables:
			if in.Name(kind, name) != "" {
				return nil, usagef("--live %s: there was a dump of such tables before; want one of each kind", name)
			}
			in.Load(name, data)
		case "":
			return nil, &fabric.ParseError{File: name, Err: fmt.Errorf("no dump of tables; want what dump_lfts or dump_mfts print, opensm-lfts.dump, opensm.mcfdbs, opensm-sl2vl.dump or far of ibdiagnet")}
		default:
			return nil, &fabric.ParseError{File: name, Err: fmt.Errorf("this is %s; want a dump of forwarding, multicast or SL-to-VL tables, or of adaptive routing", form)}
		}
	}
	in.UseFabric(f)
	live, err := a.readState(&side{name: "live", audit: *in})
	if err == nil { // a missing forwarding table is a difference already
		d.parts = slices.DeleteFunc(live.Undecided, func(u state.Undecided) bool { return u.Part == state.ForwardingTables && u.Kind == fabric.Missing })
	}
	return live, err
}

// pullLive reads the tables of a live subnet. It prints to standard
// error what could not be read; an unread switch is a finding.
func (a *app) pullLive(ctx context.Context, d *drifting) (*state.State, error) {
	s, err := a.readLive(ctx, &d.reach, open.LiveOptions{MaxMLID: fabric.LID(d.mlid)})
	if err != nil {
		return nil, err
	}
	a.listProblems(len(s.Problems), true, func(i int) string { return s.Problems[i].String() })
	return s.State, nil
}
