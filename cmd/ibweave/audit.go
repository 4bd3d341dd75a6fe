package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/cabling/plan"
	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
)

// demanded has the results of checkDemands other than findings.
type demanded struct {
	shape *cabling.Shape // nil when it was not asked for
	plan  *plan.Verdict  // nil without a plan
}

// readPolicy reads the policy, whose kinds of nodes the fabric has from the beginning.
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

// checkDemands adds to r what is wrong with the wiring, and holds everything to the plan and
// the policy. t is nil without tables.
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

// expect reads the topology or the plan that the fabric should be into opt. The plan is nil
// when there is none.
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

// rulesOf lists the rules of what an audit looks at.
func (in *audit) rulesOf() []verify.Rule {
	partitions := in.partitioned() || in.State.PKeys != nil
	return policy.RulesOf(in.HasTables() || in.bound != "", in.FAR != "", partitions, in.wanted(), in.policy != "")
}

// reportOptions returns the options for the report of an audit.
func (in *audit) reportOptions(d demanded) report.Options {
	opt := report.Options{Version: version, Topology: in.Topology, Tables: cmp.Or(in.LFTs, in.FAR), Certificate: in.Certificate, Bound: in.bound, Verbose: in.verbose, Compiled: in.Compiled != nil, Rules: in.rulesOf()}
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

// reportFile is one --report of check.
type reportFile struct {
	form *report.Form
	name string
}

// parseReports reads --report FORM=FILE.
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

// readSource takes the lines of --source, so that findings are located there only.
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
