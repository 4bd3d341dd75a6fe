package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/cabling/plan"
	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/audit/cause"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// auditResult has what an audit read and found.
type auditResult struct {
	*state.State
	options verify.Options
	result  *verify.Result
	demanded
}

// resolveAudit finds the files of the directory in args, or checks those that flags name.
func (a *app) resolveAudit(command string, in *audit, args []string) error {
	if len(args) == 0 && isFolderAlone(&in.Files) {
		args, in.Topology = []string{in.Topology}, ""
	}
	argument := len(args) > 0 && in.Topology == "" && open.File(args[0])
	if argument { // a file means -t FILE
		args, in.Topology = nil, args[0]
	}
	if len(args) == 0 {
		asks := in.wanted() || in.partitioned() || in.bound != "" || in.bounding != (bounding{}) || in.SL2VL+in.PathSLs+in.MFTs+in.Groups+in.PLFT+in.Certificate+in.traffic != ""
		if argument && in.TakeCables && !in.HasTables() && !asks { // the user may have forgotten the tables
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
		return cli.OneStdin(append([]string{
			in.Topology, in.LFTs, in.SL2VL, in.PathSLs, in.MFTs, in.FAR, in.PLFT, in.Groups,
			in.Certificate, in.bound, in.traffic, in.policy, in.PKeys, in.partitions,
		}, in.plans...)...)
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

// audit reads the input of an audit and verifies it.
func (a *app) audit(ctx context.Context, in *audit) (x *auditResult, err error) {
	defer func() {
		if err != nil { // the findings may explain the error
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

// checkTables verifies the tables of a state, adaptive ones with all choices of ports.
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

// writeRounds is the number of rounds of --write-bound without --bound-iterations.
const writeRounds = 200

// find seeks lower bounds of the load and returns them. With --write-bound
// it writes their proofs and, if jobs is not nil, the proof of that bound.
// r has the load of the tables. Bounds for legal ports are left out
// unless the tables keep to the legal ports of their order.
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

// checkBounds compares the load in r with the bounds that it
// finds, and with those of the file of --bound whose proofs hold.
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
				continue // the proof is for tables of another order
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

// demanded has what checkDemands finds besides findings.
type demanded struct {
	shape *cabling.Shape // nil if not asked for
	plan  *plan.Verdict  // nil without a plan
}

// readPolicy reads the policy file of in, if it
// has one. Reading the fabric, which follows,
// needs the kinds of nodes that the policy gives.
func (a *app) readPolicy(in *audit) (err error) {
	in.held = &policy.Policy{}
	if in.policy == "" {
		return nil
	}
	if in.held, err = readAs(a, newAudit(false, false), in.policy, policy.Parse); err != nil {
		return err
	}
	a.policyKinds = in.held.Kinds
	return nil
}

// checkDemands adds findings to r: what is wrong with the cables, and
// where the fabric breaks the plan or the policy. t is nil without tables.
func (a *app) checkDemands(ctx context.Context, in *audit, f *fabric.Fabric, t *lft.Tables, r *verify.Result) (d demanded, err error) {
	today := in.today()
	if !in.wanted() {
		r.Add(cabling.SlowLinks(f)...)
		(*policy.Policy)(nil).Apply(r, f, today)
		return d, nil
	}
	p := in.held
	opt := cabling.Options{Meant: p.Meant, Between: p.Between, Hosts: p.Hosts}
	planned, err := a.expect(in, p, f, &opt)
	if err != nil {
		return d, err
	}
	s := a.startStage("wiring")
	w := cabling.Check(f, opt)
	s.End()
	r.Add(w.Findings...)
	if planned != nil {
		var findings []verify.Finding
		d.plan, findings = planned.Judge(w)
		r.Add(findings...)
		if n := len(planned.Problems); n > 0 {
			r.Leave(verify.Undecided{Rule: cabling.MissingCable, Reason: fmt.Sprintf("%s of the plan left out, the first %s:%d: %v",
				text.CountGrouped(n, "row", "rows"), planned.Problems[0].File, planned.Problems[0].Line, planned.Problems[0].Err)})
		}
	}
	d.shape = w.Shape
	s = a.startStage("policy")
	defer s.End()
	routing, err := p.Routing(ctx, f, t, r)
	if err != nil {
		return d, err
	}
	r.Add(routing...)
	p.Apply(r, f, today)
	return d, nil
}

// expect reads into opt the topology or the plan that the fabric
// should match. It returns the plan, nil if there is none.
func (a *app) expect(in *audit, p *policy.Policy, f *fabric.Fabric, opt *cabling.Options) (*plan.Expected, error) {
	if len(in.plans) > 0 {
		if p.Expected != "" || p.Meant != nil {
			return nil, inputf("%s: it has a topology: of its own beside --plan; want one of them", in.policy)
		}
		return a.expectPlan(in, in.plans, f, opt)
	}
	if p.Expected == "" {
		return nil, nil
	}
	name := p.Expected
	if !filepath.IsAbs(name) && in.policy != "-" {
		name = filepath.Join(filepath.Dir(in.policy), name)
	}
	var err error
	opt.Expected, err = a.readTopology(name, in.Lenient)
	return nil, err
}

// expectPlan reads plans, finds their nodes in f, and puts the fabric that they describe in opt.
func (a *app) expectPlan(in *audit, names []string, f *fabric.Fabric, opt *cabling.Options) (*plan.Expected, error) {
	s := a.startStage("plan")
	defer s.End()
	var plans []*plan.Plan
	for _, name := range names {
		data, err := a.readInput(name)
		if err != nil {
			return nil, err
		}
		if dump.Recognize(data).Info().Kind == state.Topology {
			return nil, inputf("%s: a topology, want a plan; the policy's topology: expected: takes topologies", name)
		}
		p, err := plan.Parse(name, data, in.Lenient)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	e, err := plan.Bind(f, plan.Join(plans...))
	if err != nil {
		return nil, err
	}
	a.listProblems(len(e.Problems), in.Lenient, func(i int) string { return e.Problems[i].Error() })
	opt.Expected, opt.Invented = e.Fabric, e.Invented
	return e, nil
}

func (in *audit) rulesOf() []verify.Rule {
	partitions := in.partitioned() || in.State.PKeys != nil
	return policy.RulesOf(in.HasTables() || in.bound != "", in.FAR != "", partitions, in.wanted(), in.policy != "")
}
