package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/audit/drift"
	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
)

// auditing has the flags of check.
type auditing struct {
	audit
	level   cli.Threshold
	format  string
	reports []string // FORM=FILE
	source  string
}

type reportFile struct {
	form *report.Form
	name string
}

func (a *app) checkCommand() *cobra.Command {
	var o auditing
	var rules bool
	var explain string
	cmd := &cobra.Command{
		Use:   "check DIR | TOPOLOGY [--lfts FILE]",
		Short: "find what is wrong with tables and cables, wherever they come from",
		Args:  a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case rules:
				w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
				for _, r := range append(policy.AllRules(), drift.Rules...) {
					fmt.Fprintf(w, "%s\t%s\t%s\n", r.Name, r.Severity, r.Summary)
				}
				return w.Flush()
			case explain != "":
				return a.explainRule(explain)
			}
			return a.runCheck(cmd, &o, args)
		},
	}
	o.flags(cmd.Flags())
	a.fabricFlags(cmd)
	a.hostGroupFlag(cmd)
	cmd.Flags().BoolVar(&rules, "rules", false, "list the rules")
	cmd.Flags().StringVar(&explain, "explain", "", "explain one `RULE`")
	cli.Scopes(cmd.Flags(),
		cli.Scope{Flags: "mtu", With: "vl-credits"},
		cli.Scope{Flags: "verbose", Not: "format=json", Why: cli.Unsaid, Note: true},
		cli.Scope{Flags: "source", With: "format=sarif report", Why: "other forms do not locate findings", Note: true})
	return cmd
}

func (o *auditing) flags(flags *pflag.FlagSet) {
	o.fileFlags(flags)
	o.choiceFlags(flags)
	flags.StringVar(&o.PKeys, "pkeys", "", "`FILE` of P_Key tables; does without other tables, too")
	flags.StringVar(&o.partitions, "partitions", "", "hold the P_Key tables to the partitions.conf in `FILE`; without P_Key tables, look at the file alone")
	flags.StringVar(&o.manager, "sm", "", "`NODE`, port GUID or LID of the master subnet manager, which is SELF in partitions.conf")
	flags.StringVarP(&o.Groups, "groups", "g", "", "`FILE` of multicast groups, with their MLIDs")
	flags.TextVar(&o.copying, "copying", verify.Independent, "`HOW` switches copy packets: independent as InfiniBand does, reserving, lock-step or wormhole")
	cli.NumberFlag(flags, &o.mftCapacity, "mft-capacity", 1, mft.NumMLIDs,
		"MLIDs that the smallest multicast table has room for, `N` from 0xc000 on (MulticastFDBCap); by default as db_csv of ibdiagnet says")
	cli.NumberFlag(flags, &o.buffer.Credits, "vl-credits", 1, cli.MaxNumber,
		"credits of 64 bytes that each VL of a port has, `N`, to see whether a packet fits; by default not known")
	cli.DefaultNumberFlag(flags, &o.buffer.MTU, "mtu", 4096, 256, 4096, "greatest payload of packets in `BYTES`, for --vl-credits")
	flags.StringVar(&o.Certificate, "certificate", "", "also check the proof in `FILE` that there is no credit loop")
	flags.StringVar(&o.traffic, "traffic", "", "also say what the tables are worth for the jobs of a YAML `FILE` (docs/traffic.md), for which --bound may have a proof")
	flags.StringVar(&o.bound, "bound", "", "also check the proof in `FILE` that no tables have less load; does without tables, too")
	o.bounding.flags(flags)
	flags.BoolVarP(&o.verbose, "verbose", "v", false,
		"list every finding with its witness, the channels between switches that carry nothing, with reasons, and all partitions")
	flags.BoolVar(&o.wiring, "wiring", false, "also look at the cables, and say what the fabric looks like")
	o.demands.flags(flags)
	flags.StringVar(&o.format, "format", "text", "`FORM` of the output: text, json, sarif, junit, markdown or prometheus")
	flags.StringArrayVar(&o.reports, "report", nil, "write the result into a file as well, `FORM=FILE`; once for each file")
	flags.StringVar(&o.source, "source", "", "in sarif, locate findings in the topology `FILE` instead of the files that were checked")
	o.level.Define(flags, "; what is undecided fails with all but never")
}

// runCheck validates the flags, and checks.
func (a *app) runCheck(cmd *cobra.Command, o *auditing, args []string) error {
	in := &o.audit
	form, err := report.FormByName(o.format)
	if err != nil {
		return usagef("--format: %w", err)
	}
	in.TakeCables, in.TakeAdaptive, in.TakePKeys, in.namesLane = true, true, true, true
	if err := a.resolveAudit("check", in, args); err != nil {
		return err
	}
	if err := a.readPolicy(in); err != nil {
		return err
	}
	for _, name := range []string{"copying", "mft-capacity"} {
		if in.MFTs == "" && cmd.Flags().Changed(name) {
			return usagef("--%s has no effect without multicast tables", name)
		}
	}
	also, err := parseReports(o.reports)
	if err != nil {
		return err
	}
	return a.check(cmd.Context(), in, &o.level, append([]reportFile{{form: form}}, also...), o.source)
}

func parseReports(list []string) ([]reportFile, error) {
	var files []reportFile
	for _, s := range list {
		form, name, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, usagef("--report %q: want FORM=FILE, like sarif=ibweave.sarif", s)
		}
		f, err := report.FormByName(form)
		if err != nil {
			return nil, usagef("--report %q: %w", s, err)
		}
		if slices.ContainsFunc(files, func(o reportFile) bool { return o.name == name }) {
			return nil, usagef("--report %q: the file comes twice", s)
		}
		files = append(files, reportFile{f, name})
	}
	return files, nil
}

// readSource reads the lines of --source, so that findings are located in that file only.
func (a *app) readSource(in *audit, source string) error {
	if source == "" || !in.TakeLines {
		return nil
	}
	data, err := a.readInput(source)
	if err != nil {
		return err
	}
	if form := dump.Recognize(data); form == dump.Database || form.Info().Kind != state.Topology {
		return inputf("%s: no topology; --source wants ibnetdiscover text, opensm-subnet.lst or another form that ibweave help forms lists, and not db_csv", source)
	}
	in.place, in.TakeLines = capture.Place(open.TopologyLines(source, data), true), false
	return nil
}

// check audits, and writes the reports; the first one is for standard output.
func (a *app) check(ctx context.Context, in *audit, level *cli.Threshold, reports []reportFile, source string) (err error) {
	in.TakeLines = slices.ContainsFunc(reports, func(f reportFile) bool { return f.form.Located })
	if err := a.readSource(in, source); err != nil {
		return err
	}
	file, err := a.readJobFile(in.traffic)
	if err != nil {
		return err
	}
	in.jobs = a.fitting(file)
	x, err := a.audit(ctx, in)
	if err != nil {
		return err
	}
	if in.cablesAlone {
		fmt.Fprintf(a.stderr, "%s: no forwarding tables, so that only the cables are looked at\n", in.Topology)
	}
	opt := in.reportOptions(x.demanded)
	opt.FailOn, opt.Never = level.At(), level.Never()
	if opt.Groups, err = a.auditedGroups(ctx, x); err != nil {
		return err
	}
	for _, f := range reports {
		placed := opt
		if source != "" && f.form.Located { // a viewer shows only the source
			placed.Topology, placed.Tables = source, ""
			if opt.Rules == nil {
				placed.Rules = verify.Rules
			}
		}
		if f.name == "" {
			err = f.form.Write(a.stdout, x.result, placed)
		} else {
			err = files.Write(f.name, cli.Printed(func(w io.Writer) error { return f.form.Write(w, x.result, placed) }))
		}
		if err != nil {
			return err
		}
	}
	return cli.FindingsIf(opt.Fails(x.result))
}

// auditedGroups sums up an audit by groups of hosts; nil without --host-groups.
func (a *app) auditedGroups(ctx context.Context, x *auditResult) (fmt.Stringer, error) {
	s, err := a.groupsOf(x.Fabric, true)
	if s == nil || err != nil {
		return nil, err
	}
	states, err := s.Measure(ctx, x.Fabric, x.Tables)
	return groups.States(s.AddFindings(states, x.result.Findings)), err
}

func (in *audit) reportOptions(d demanded) report.Options {
	opt := report.Options{
		Version: version, Verbose: in.verbose, Rules: in.rulesOf(), Compiled: in.Compiled != nil,
		Topology: in.Topology, Tables: cmp.Or(in.LFTs, in.FAR), Certificate: in.Certificate, Bound: in.bound,
	}
	if in.worth != nil {
		opt.Traffic, opt.Lines = in.worth, in.worth.Lines()
	}
	if d.shape != nil {
		opt.Shape = d.shape
	}
	if d.plan != nil {
		opt.Plan = d.plan
	}
	opt.Place = in.place
	if opt.Place == nil && in.State.Lines != nil {
		opt.Place = capture.Place(in.State.Lines, false)
	}
	return opt
}

func (a *app) explainRule(name string) error {
	r, ok := verify.FindRule(name, policy.AllRules(), drift.Rules)
	if !ok {
		return usagef("--explain %q: no such rule; --rules lists them", name)
	}
	_, err := fmt.Fprintf(a.stdout, "%s (%s): %s\n\n%s\n", r.Name, r.Severity, r.Summary, strings.TrimSpace(r.Explain))
	return err
}
