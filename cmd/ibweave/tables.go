package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/multipath"
)

// fileFlags defines the flags that name the files of an audit.
func (in *audit) fileFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&in.topology, "topology", "t", "", "topology `FILE`")
	flags.StringVar(&in.lfts, "lfts", "", "`FILE` of forwarding tables")
	flags.StringVar(&in.sl2vl, "sl2vl", "", "`FILE` of SL-to-VL tables")
	flags.StringVar(&in.pathSL, "path-sl", "", "`FILE` with the SLs of paths")
	flags.StringVar(&in.mfts, "mfts", "", "`FILE` of multicast forwarding tables")
	lenientFlag(flags, &in.lenient)
}

// readAudited is readInput for a file that may be of a compiled directory: it says
// when the file is not as compile wrote it, with a finding if these are wanted.
func (a *app) readAudited(in *audit, name string) ([]byte, error) {
	if data, ok := in.loaded[name]; ok {
		return data, a.checkEnd(in, name, data)
	}
	raw, err := a.readRaw(name)
	if err != nil {
		return nil, err
	}
	data, err := a.decompressed(name, raw)
	if err != nil {
		return nil, err
	}
	if err := a.checkEnd(in, name, data); err != nil {
		return nil, err
	}
	hash := func() string { return textSum(raw) }
	if in.sums != nil {
		in.sums[name] = hash()
	}
	switch {
	case in.compiled == nil || !in.compiled.Read(name, hash):
	case in.asFindings:
		in.findings = append(in.findings, outdir.Changed(verify.Warning, "%s was changed since it was compiled; the verdict is about what it is now", name))
	default:
		fmt.Fprintf(a.stderr, "%s: warning: changed since it was compiled (%s has another SHA-256)\n", name, outdir.ManifestName)
	}
	return data, nil
}

// readAs is readAudited for a file that parse reads.
func readAs[T any](a *app, in *audit, name string, parse func(name string, data []byte) (T, error)) (t T, err error) {
	data, err := a.readAudited(in, name)
	if err != nil {
		return t, err
	}
	return parse(name, data)
}

// textSum is the SHA-256 of a text.
func textSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// readTables reads a fabric and its tables, which are nil when there are none.
func (a *app) readTables(in *audit) (*fabric.Fabric, *lft.Tables, error) {
	f, err := a.fabricOf(in)
	if err != nil {
		return nil, nil, err
	}
	tables, err := a.tablesOf(in, f)
	return f, tables, err
}

// tablesOf reads the tables of f, which are nil when there are none, and adaptive routing.
func (a *app) tablesOf(in *audit, f *fabric.Fabric) (*lft.Tables, error) {
	err := a.readChoices(in, f)
	switch {
	case err != nil:
		return nil, err
	case in.lfts != "":
		return a.readLFTs(in, f)
	case in.adaptive != nil:
		return in.adaptive.PLFTs[0].Ports, nil
	}
	return nil, nil
}

// readRouting reads a fabric, its tables, which are nil when there are none, and its lanes.
func (a *app) readRouting(in *audit) (*lft.Routing, error) {
	f, tables, err := a.readTables(in)
	if err != nil {
		return nil, err
	}
	var lanes verify.Options
	err = a.readLanes(in, f, &lanes)
	return &lft.Routing{Fabric: f, Tables: tables, SL2VL: lanes.SL2VL, PathSLs: lanes.PathSLs}, err
}

// readLFTs reads the forwarding tables of f.
func (a *app) readLFTs(in *audit, f *fabric.Fabric) (*lft.Tables, error) {
	text, err := a.readAudited(in, in.lfts)
	if err != nil {
		return nil, err
	}
	if in.places != nil {
		in.places.readTables(text)
	}
	s := a.startStage("parse " + in.lfts)
	defer s.End()
	tables, problems, err := dump.ReadLFTs(in.lfts, text, f, dump.Options{Lenient: in.lenient, AnyPort: in.asFindings})
	if err != nil {
		return nil, err
	}
	problems = slices.DeleteFunc(problems, func(p fabric.Problem) bool { // of private LFTs that are all known
		private, ok := p.Err.(dump.PrivateTablesError)
		return ok && in.adaptive != nil && private.In(in.adaptive)
	})
	a.dumpProblems(problems, in.lenient)
	in.addUndecided(problems, verify.UnicastRules, nil)
	in.lostRows = dump.Recognize(text) == dump.LFTs
	for i := range problems {
		if p := &problems[i]; p.Kind == fabric.PrivateTables {
			rule, _ := verify.RuleByName(verify.AdaptiveRouting)
			in.findings = append(in.findings, verify.Finding{Rule: rule.Name, Severity: rule.Severity, Message: fmt.Sprintf("%s:%d: %v", p.File, p.Line, p.Err), Count: 1})
		}
	}
	return tables, nil
}

// readTablesBeside reads SL-to-VL tables, path SLs and multicast tables into opt.
func (a *app) readTablesBeside(in *audit, f *fabric.Fabric, opt *verify.Options) (err error) {
	if err := a.readLanes(in, f, opt); err != nil {
		return err
	}
	opt.Multicast, err = a.readMulticast(in, f)
	return err
}

// readDump reads a file of tables of f. What its problems leave undecided goes into in:
// rules, and ends where it lacks CA and router ports only.
func readDump[T any](a *app, in *audit, name string, f *fabric.Fabric, rules, ends []string,
	read func(name string, data []byte, f *fabric.Fabric, opt dump.Options) (T, []fabric.Problem, error),
) (t T, err error) {
	data, err := a.readAudited(in, name)
	if err != nil {
		return t, err
	}
	if in.places != nil && name == in.places.tables {
		in.places.readTables(data)
	}
	s := a.startStage("parse " + name)
	defer s.End()
	t, problems, err := read(name, data, f, dump.Options{Lenient: in.lenient})
	if err == nil {
		a.dumpProblems(problems, in.lenient)
		in.addUndecided(problems, rules, ends)
	}
	return t, err
}

// readLanes reads SL-to-VL tables and path SLs into opt.
func (a *app) readLanes(in *audit, f *fabric.Fabric, opt *verify.Options) (err error) {
	all, ends := in.laneRules()
	if in.sl2vl != "" {
		if opt.SL2VL, err = readDump(a, in, in.sl2vl, f, all, ends, dump.ReadSL2VL); err != nil {
			return err
		}
	}
	if in.pathSL != "" {
		opt.PathSLs, err = readDump(a, in, in.pathSL, f, all, nil, readPathSLs)
	}
	return err
}

// readPathSLs is dump.ReadPathSLs. Missing SLs get the kind MissingEnds: the checker finds out itself which
// rules unknown SLs leave undecided.
func readPathSLs(name string, data []byte, f *fabric.Fabric, opt dump.Options) (*lft.PathSLs, []fabric.Problem, error) {
	sls, problems, err := dump.ReadPathSLs(name, data, f, opt)
	for i := range problems {
		if problems[i].Kind == fabric.Missing {
			problems[i].Kind = fabric.MissingEnds
		}
	}
	return sls, problems, err
}

// readMulticast reads multicast tables and groups, nil without tables.
func (a *app) readMulticast(in *audit, f *fabric.Fabric) (m *verify.Multicast, err error) {
	if in.mfts == "" {
		return nil, nil
	}
	m = &verify.Multicast{Copying: in.copying, Capacity: in.mftCapacities(f)}
	if m.Tables, err = readDump(a, in, in.mfts, f, verify.MulticastRules, nil, dump.ReadMFTs); err != nil {
		return nil, err
	}
	if in.groups == "" {
		return m, nil
	}
	data, err := a.readAudited(in, in.groups)
	if err != nil {
		return nil, err
	}
	groups, problems, err := a.parseGroups(in.groups, data, f, dump.Options{Lenient: in.lenient, GoneMembers: in.asFindings})
	if err != nil {
		return nil, err
	}
	in.addGone(problems)
	in.addUndecided(problems, verify.MulticastRules, nil)
	m.Trees = []mft.Tree{}
	number := make(map[string]int) // a group with several MLIDs has one name
	for i := range groups {
		g := &groups[i]
		if g.MLID == 0 {
			return nil, inputf("%s: group %q has no mlid, so that its masks are unknown; groups.json of a compiled directory has them", in.groups, g.Name)
		}
		if _, ok := number[g.Name]; !ok {
			number[g.Name] = i
		}
		m.Trees = append(m.Trees, mft.Tree{
			Group: number[g.Name], Name: g.Name, MGID: g.MGID, MLID: g.MLID, Senders: g.Senders, Receivers: g.Receivers, SL: g.SL,
		})
	}
	return m, nil
}

// addGone makes a finding of members of groups that the fabric lacks.
func (in *audit) addGone(problems []fabric.Problem) {
	n := count(problems, isGone)
	if n == 0 {
		return
	}
	first := &problems[slices.IndexFunc(problems, isGone)]
	message := first.Err.Error()
	if n > 1 {
		message = fmt.Sprintf("%d members of groups are no end ports of the fabric; the first: %s", n, message)
	}
	rule, _ := verify.RuleByName(verify.MulticastMemberGone)
	in.findings = append(in.findings, verify.Finding{Rule: rule.Name, Severity: rule.Severity, Message: message, Count: int64(n), Witness: []verify.Hop{}, File: first.File, Line: first.Line})
}

// mftCapacities is how many MLIDs each multicast table has room for, as --mft-capacity or
// ibdiagnet says; nil when neither does.
func (in *audit) mftCapacities(f *fabric.Fabric) (list []int) {
	if in.mftCapacity == 0 && in.database == nil {
		return nil
	}
	if in.mftCapacity != 0 {
		return slices.Repeat([]int{in.mftCapacity}, f.NumSwitches())
	}
	for s := range f.NumSwitches() {
		list = append(list, in.database.Switches[s].MCastFDBCap)
	}
	return list
}

// choosing holds the files of adaptive routing that an audit reads, and what is in them.
type choosing struct {
	far         string // "" for none
	plft        string // "" for none
	adaptiveToo bool   // the command looks at it
	adaptive    *adaptive.Tables
}

func (c *choosing) flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.far, "far", "", "`FILE` of adaptive routing, ibdiagnet's far; its static ports do without --lfts")
	flags.StringVar(&c.plft, "plft", "", "`FILE` that says which private LFT a packet takes, for --far")
}

// hasTables returns true if there are forwarding tables, static or adaptive.
func (in *audit) hasTables() bool { return in.lfts != "" || in.far != "" }

// choiceRules are those that rest on adaptive routing.
func choiceRules() []string {
	return slices.Concat(verify.UnicastRules, each(multipath.Rules, func(r verify.Rule) string { return r.Name }))
}

// readChoices reads adaptive routing, and what selects its private LFTs.
func (a *app) readChoices(in *audit, f *fabric.Fabric) (err error) {
	if in.far == "" {
		return nil
	}
	if in.adaptive, err = readDump(a, in, in.far, f, choiceRules(), nil, dump.ReadFAR); err != nil || in.plft == "" {
		return err
	}
	in.adaptive.Select, err = readDump(a, in, in.plft, f, choiceRules(), nil, dump.ReadPLFTMap)
	return err
}

// checkChoices adds to the result of static tables what packets can come to by any choice.
// With several private LFTs no packet needs to take number 0 all the way: what is
// wrong with it alone is not said then.
func (a *app) checkChoices(ctx context.Context, in *audit, x *auditResult) error {
	t := in.adaptive
	if t == nil {
		return nil
	}
	s := a.startStage("verify choices")
	defer s.End()
	if in.lfts != "" {
		x.result.Add(multipath.CompareStatic(x.fabric, t, x.tables, 0)...)
	}
	if len(t.PLFTs) > 1 {
		alone := append(slices.Clone(verify.UnicastRules), verify.LaneRules...)
		x.result.Edit(func(list []verify.Finding) []verify.Finding {
			return slices.DeleteFunc(list, func(f verify.Finding) bool { return slices.Contains(alone, f.Rule) })
		})
	}
	r, err := multipath.Check(ctx, x.fabric, t, multipath.Options{SL2VL: x.options.SL2VL, PathSLs: x.options.PathSLs, UnknownSLs: in.unknownSLs})
	if err != nil {
		return err
	}
	r.AddTo(x.result)
	x.result.Add(multipath.CheckTables(x.fabric, t, 0)...)
	return nil
}

// addUndecided notes which rules the problems of a file leave undecided: some where the file
// lacks CA and router ports only.
func (in *audit) addUndecided(problems []fabric.Problem, rules, ends []string) {
	reason := map[string]*omission{}
	for i := range problems {
		p := &problems[i]
		key, what, of := "", p.File+": "+p.Err.Error(), rules
		switch p.Kind {
		case fabric.Dropped, fabric.Truncated:
			key, what = "lenient", p.File+": --lenient left something out: "+p.Err.Error()
			if p.Line > 0 {
				what = fmt.Sprintf("%s:%d: --lenient left this out: %v", p.File, p.Line, p.Err)
			}
		case fabric.Missing:
			key = "missing"
		case fabric.MissingEnds:
			key, of = "ends", ends
		case fabric.PrivateTables:
			key = "private"
		default:
			continue
		}
		if reason[key] == nil {
			reason[key] = &omission{what: what, rules: of}
		}
		reason[key].n++
	}
	for _, key := range slices.Sorted(maps.Keys(reason)) {
		in.addOmission(reason[key])
	}
}

// omission counts the records that a reader skipped or did not find, and describes the first.
type omission struct {
	what  string
	n     int
	rules []string
}

func (in *audit) addOmission(l *omission) {
	if l.n > 1 {
		l.what += fmt.Sprintf("; and %d more like that", l.n-1)
	}
	for _, rule := range l.rules {
		in.undecided = append(in.undecided, verify.Undecided{Rule: rule, Reason: l.what})
	}
}

// addUndecidedTopology is addUndecided for ibnetdiscover text.
func (in *audit) addUndecidedTopology(name string, problems []fabric.Problem) {
	l := omission{rules: in.topologyRules()}
	for i := range problems {
		if p := &problems[i]; p.Kind == fabric.Dropped {
			if l.n += p.Count; l.what == "" {
				l.what = fmt.Sprintf("%s:%d: --lenient left something out: %s", name, p.Line, p.Message)
			}
		}
	}
	if l.n > 0 {
		in.addOmission(&l)
	}
}

// topologyRules are those that rest on the topology.
func (in *audit) topologyRules() (rules []string) {
	if in.hasTables() {
		rules = append(rules, verify.UnicastRules...)
	}
	if in.mfts != "" {
		rules = append(rules, verify.MulticastRules...)
	}
	if in.wanted() {
		rules = append(rules, cabling.MissingCable)
	}
	return rules
}

// laneRules are those that rest on SL-to-VL tables and path SLs, and those of them that
// rest on the tables of CAs and routers.
func (in *audit) laneRules() (all, ends []string) {
	all = append(all, verify.LaneRules...)
	ends = append(ends, verify.SLDropped, verify.ManagementSLDropped)
	if in.mfts != "" {
		all = append(all, verify.MulticastMissing, verify.MulticastCreditLoop)
		ends = append(ends, verify.MulticastMissing)
	}
	return all, ends
}
