package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/audit/cause"
	"github.com/ibweave/ibweave/audit/drift"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// auditing is the flags of check.
type auditing struct {
	audit
	level   cli.Threshold
	format  string
	reports []string // FORM=FILE
	source  string
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

// runCheck sees that the flags make sense, and checks.
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

// resolveAudit finds the files of a directory for a command, or sees that all are named.
func (a *app) resolveAudit(command string, in *audit, args []string) error {
	if len(args) == 0 && isFolderAlone(&in.Files) {
		args, in.Topology = []string{in.Topology}, ""
	}
	argument := len(args) > 0 && in.Topology == "" && open.File(args[0])
	if argument { // as -t FILE
		args, in.Topology = nil, args[0]
	}
	if len(args) == 0 {
		asks := in.wanted() || in.partitioned() || in.bound != "" || in.bounding != (bounding{}) || in.SL2VL+in.PathSLs+in.MFTs+in.Groups+in.PLFT+in.Certificate+in.traffic != ""
		if argument && in.TakeCables && !in.HasTables() && !asks { // of -t FILE the tables may be forgotten
			in.wiring, in.cablesAlone = true, true
		}
		if in.Topology == "" || !in.HasTables() && !in.wanted() && !in.partitioned() && in.bound == "" {
			if command == "check" {
				return usagef("check needs a directory of tables, or -t TOPOLOGY and --lfts FILE or --far FILE; or a TOPOLOGY alone, or --wiring, --plan, --policy, --pkeys, --partitions or --bound, for what is to be said without tables")
			}
			return usagef("%s needs a directory of tables, or -t TOPOLOGY and --lfts FILE or --far FILE", command)
		}
		if !in.HasTables() && (in.SL2VL != "" || in.PathSLs != "" || in.MFTs != "" || in.Certificate != "") {
			return usagef("other tables and certificates say nothing without forwarding tables, --lfts FILE")
		}
		if in.PLFT != "" && in.FAR == "" {
			return usagef("--plft has no effect without adaptive routing, --far FILE")
		}
		if in.PathSLs != "" && in.SL2VL == "" {
			return usagef("--path-sl has no effect without SL-to-VL tables, --sl2vl FILE")
		}
		in.State.UnknownSLs = in.SL2VL != "" && in.PathSLs == ""
		if in.Groups != "" && in.MFTs == "" {
			return usagef("-g has no effect without multicast tables, --mfts FILE")
		}
		return cli.OneStdin(append([]string{in.Topology, in.LFTs, in.SL2VL, in.PathSLs, in.MFTs, in.FAR, in.PLFT, in.Groups, in.Certificate, in.bound, in.traffic, in.policy, in.PKeys, in.partitions}, in.plans...)...)
	}
	if in.Topology != "" || in.HasTables() || in.PLFT != "" || in.SL2VL != "" || in.PathSLs != "" || in.MFTs != "" || in.Groups != "" {
		return usagef("%s takes a directory or -t and --lfts, not both", command)
	}
	if err := cli.OneStdin(append([]string{in.policy, in.Certificate, in.bound, in.traffic, in.PKeys, in.partitions}, in.plans...)...); err != nil {
		return err
	}
	err := a.reader(in).FindIn(args[0], !in.wanted() && !in.partitioned())
	in.wiring = in.wiring || in.CablesOnly
	return err
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
		if source != "" && f.form.Located { // viewers see no other file
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

// auditResult is what an audit read and found.
type auditResult struct {
	*state.State
	options verify.Options
	result  *verify.Result
	demanded
}

// audit reads what an audit needs and verifies it.
func (a *app) audit(ctx context.Context, in *audit) (x *auditResult, err error) {
	defer func() {
		if err != nil { // maybe for what was changed
			for i := range in.findings {
				fmt.Fprintln(a.stderr, in.findings[i].Message)
			}
		}
	}()
	x = &auditResult{State: &in.State, options: verify.Options{Buffer: in.buffer, Copying: in.copying}}
	in.Findings = true
	read := a.reader(in)
	if err := read.Tables(); err != nil {
		return nil, err
	}
	if err := read.Order(); err != nil {
		return nil, err
	}
	var twice []verify.Finding
	x.Fabric, twice = capture.SettleLIDs(x.State)
	in.findings = append(in.findings, twice...)
	x.result = verify.Unverified(x.Fabric)
	if x.Tables != nil {
		if err := read.Lanes(); err != nil {
			return nil, err
		}
		if err := read.Multicast(); err != nil {
			return nil, err
		}
		if in.mftCapacity != 0 {
			x.MFTCapacity = slices.Repeat([]int{in.mftCapacity}, x.Fabric.NumSwitches())
		}
		if x.result, err = a.checkTables(ctx, x.State, x.options); err != nil {
			return nil, err
		}
		if in.namesLane {
			capture.NameLane(x.State, x.result)
		}
		if err := a.checkCertificate(in, x.result); err != nil {
			return nil, err
		}
	}
	if err := a.checkPartitions(in, x.Fabric, x.result); err != nil {
		return nil, err
	}
	if in.Compiled != nil {
		s := a.startStage("compare files with " + outdir.ManifestName)
		findings, undecided, err := in.Compiled.CheckRest(ctx)
		s.End()
		if err != nil {
			return nil, inputUnlessDone(ctx, err)
		}
		in.findings = append(in.findings, findings...)
		x.result.Leave(undecided...)
	}
	if in.jobs != nil {
		d, err := demandOf(in.jobs)(ctx, x.Fabric)
		if err != nil {
			return nil, err
		}
		if d != nil {
			in.jobs.Bound = bound.FindUnder(x.Fabric, d)
		}
	}
	if x.Tables != nil || in.bound != "" || in.write != "" {
		if err := a.checkBounds(ctx, in, x.Routing(), x.result); err != nil {
			return nil, err
		}
	}
	if in.worth, err = in.jobs.Worth(ctx, x.Fabric, x.Tables); err != nil {
		return nil, err
	}
	x.result.Add(in.findings...)
	x.result.Leave(in.listUndecided()...)
	if x.demanded, err = a.checkDemands(ctx, in, x.Fabric, x.Tables, x.result); err != nil {
		return nil, err
	}
	return x, cause.Group(ctx, x.result, x.State)
}

// checkTables verifies the tables of a state, with all choices of adaptive switches.
func (a *app) checkTables(ctx context.Context, s *state.State, opt verify.Options) (*verify.Result, error) {
	stage := a.startStage("verify")
	defer stage.End()
	opt.Progress = stage.Set
	return capture.CheckTables(ctx, s, opt)
}

// checkCertificate adds to r what is wrong with the certificate, if there is one.
func (a *app) checkCertificate(in *audit, r *verify.Result) error {
	if in.Certificate == "" {
		return nil
	}
	c, err := readAs(a, in, in.Certificate, verify.ReadCertificate)
	if err != nil {
		return err
	}
	if in.State.Adaptive != nil {
		err = c.CheckAdaptive(&in.State)
	} else {
		err = c.Check(&in.State, in.copying)
	}
	if err != nil {
		finding := verify.Finding{Rule: verify.CertificateRule, Severity: verify.Error, Message: err.Error(), Count: 1}
		if at, ok := errors.AsType[*verify.DependencyError](err); ok {
			finding.LID, finding.Switch = at.LID, at.Out.GUID
		}
		r.Add(finding)
	}
	return nil
}

func (a *app) explainRule(name string) error {
	r, ok := verify.FindRule(name, policy.AllRules(), drift.Rules)
	if !ok {
		return usagef("--explain %q: no such rule; --rules lists them", name)
	}
	_, err := fmt.Fprintf(a.stdout, "%s (%s): %s\n\n%s\n", r.Name, r.Severity, r.Summary, strings.TrimSpace(r.Explain))
	return err
}

// writeRounds is for how many rounds lengths are sought for a file, unless it is said.
const writeRounds = 200

// find looks for bounds of tables, of which r has the load, and writes them. Without tables,
// and where these do not keep to the legal ports of their order, there is no bound for legal
// ports. The bound of jobs, if there is one, is only written.
func (b *bounding) find(ctx context.Context, a *app, tables *lft.Routing, r *verify.Result, jobs *bound.Bound) ([]*bound.Bound, error) {
	s := a.startStage("bound")
	defer s.End()
	opt := bound.Options{Rounds: b.rounds, Load: r.GreatestLoad(), Order: tables.Order}
	if b.write != "" && b.rounds == 0 {
		opt.Rounds = writeRounds
	}
	found, err := bound.Find(ctx, tables.Fabric, opt)
	if err != nil {
		return nil, err
	}
	if found.Legal != nil && !bound.Keeps(tables.Fabric, tables.Tables, tables.Order) {
		found.Legal = nil
	}
	if b.write == "" {
		return found.List(), nil
	}
	var text []byte
	for _, x := range found.List() {
		text = x.Certificate.Append(text)
	}
	if jobs != nil {
		text = jobs.Certificate.Append(text)
	}
	if text == nil {
		return nil, inputf("--write-bound %s: there is no bound, since no cable between switches has routes", b.write)
	}
	return found.List(), a.WriteFile(b.write, text)
}

// checkBounds adds to r how far its load is above the bounds that are found, and those of a file
// that hold.
func (a *app) checkBounds(ctx context.Context, in *audit, tables *lft.Routing, r *verify.Result) (err error) {
	f := tables.Fabric
	var list []*bound.Bound
	if in.bound == "" || in.HasTables() || in.bounding != (bounding{}) {
		if list, err = in.bounding.find(ctx, a, tables, r, nil); err != nil {
			return err
		}
	}
	if in.bound != "" {
		proofs, err := readAs(a, in, in.bound, bound.Read)
		if err != nil {
			return err
		}
		var demand *lft.Demand
		if in.jobs != nil {
			demand = in.jobs.Demand
		}
		for _, c := range proofs {
			err := c.Check(f, demand)
			if err != nil {
				r.Add(verify.Finding{Rule: verify.BoundRule, Severity: verify.Error, Message: err.Error(), Count: 1})
				continue
			}
			if rank, err := c.Ranks(f); err == nil && tables.Tables != nil && !bound.Keeps(f, tables.Tables, rank) {
				continue // it is about other tables
			}
			load, _ := c.Bound.Float64()
			if c.Demand != ([sha256.Size]byte{}) {
				in.jobs.Proven = append(in.jobs.Proven, jobs.Proven{File: in.bound, Least: bound.Seconds(f, demand, load)})
				continue
			}
			list = append(list, &bound.Bound{Load: load, Exact: c.Bound, Unit: max(c.Unit, 1), Words: "proven by " + in.bound, Close: true, Certificate: c})
		}
	}
	r.CompareBounds(list...)
	return nil
}
