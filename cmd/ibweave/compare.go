package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
)

// contest is what compare is asked to do.
type contest struct {
	routeFlags
	outputForm
	threshold
	engines []string
	lfts    []string
	against string // name of the contender that others are compared with
	damage  damage
	quality quality.Options
	traffic string     // file of jobs, "" for none
	fit     bool       // with the tables that compile --traffic makes, too
	jobs    *jobs.File // nil for none
}

// contender is one column: an engine's tables, or those of a file.
type contender struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"` // "" for an engine
	// Refused is why the engine cannot do this fabric; nothing follows then.
	Refused string           `json:"refused,omitempty"`
	Seconds *compile.Seconds `json:"seconds,omitempty"` // of an engine
	Verify  *verify.Result   `json:"verify,omitempty"`
	Quality *quality.Result  `json:"quality,omitempty"`
	// Difference is to the reference; nil for itself, and where there are no bisections.
	Difference *quality.Difference `json:"difference,omitempty"`
	// Fitted says that the tables are for the jobs of --traffic.
	Fitted bool `json:"fitted,omitempty"`
	// Groups is sums by groups of hosts; nil without --host-groups.
	Groups  []groups.State `json:"host_groups,omitempty"`
	Traffic *jobs.Summary  `json:"traffic,omitempty"` // with --traffic
}

// standings is the JSON document of compare.
type standings struct {
	Version    string              `json:"version"`
	Fabric     verify.FabricCounts `json:"fabric"`
	Against    string              `json:"against,omitempty"` // name of the reference
	Contenders []*contender        `json:"contenders"`
}

func (a *app) compareCommand() *cobra.Command {
	var c contest
	cmd := &cobra.Command{
		Use:   "compare TOPOLOGY [-e ENGINE,..] [--lfts FILE ..]",
		Short: "engines, OpenSM's too, and existing tables side by side",
		Args:  a.topologyArg,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt, err := c.parse(cmd)
			if err != nil {
				return err
			}
			if c.jobs, err = a.readJobFile(c.traffic); err != nil {
				return err
			}
			in := newAudit(c.lenient, false)
			in.Topology, in.LFTs = c.topology, c.topology // LFTs for what the topology leaves undecided
			f, err := a.contestFabric(&c, in, &opt)
			if err != nil {
				return err
			}
			if c.damage.kind != "" {
				return a.compareDamaged(cmd.Context(), &c, f, opt)
			}
			s, err := a.compare(cmd.Context(), &c, f, opt, in.listUndecided())
			if err != nil {
				return err
			}
			if err := c.print(a.stdout, s, s.text); err != nil {
				return err
			}
			return c.checkAll(s)
		},
	}
	flags := cmd.Flags()
	c.routeFlags.define(flags, "`POLICY` of the LIDs of engines: keep, dense or mesh, as in compile", "switches on top of the up*/down* order, highest first: `GUID,..` or a file with a GUID a line")
	c.outputForm.define(flags, "`FORM` of the output: text or json")
	c.threshold.define(flags, failOnUsage+"; what is undecided fails with all but never")
	flags.StringSliceVarP(&c.engines, "engines", "e", nil, "routing engines, `ENGINE,..`")
	flags.StringArrayVar(&c.lfts, "lfts", nil, "`FILE` of forwarding tables, or a directory that compile wrote; may be repeated")
	a.fabricFlags(cmd)
	a.hostGroupFlag(cmd)
	flags.StringVar(&c.traffic, "traffic", "", "measure the jobs of YAML `FILE`, too (docs/traffic.md)")
	flags.BoolVar(&c.fit, "fit", false, "compare with the tables that compile --traffic makes for the jobs, too")
	flags.StringVar(&c.against, "against", "", "compare bandwidths with those of `NAME`, by default the first column")
	c.quality.Bisections = quality.DefaultBisections
	numberFlag(flags, &c.quality.Bisections, "bisections", 0, maxNumber, "random bisections to try, `N`; 0 for none")
	c.quality.Permutations = quality.DefaultPermutations
	numberFlag(flags, &c.quality.Permutations, "permutations", 0, maxNumber, "random permutations to try, `N`; 0 for none")
	c.quality.Shifts = quality.DefaultShifts
	numberFlag(flags, &c.quality.Shifts, "shifts", 0, maxNumber, "shifts to try, at most `N`; 0 for none")
	c.quality.Seed = 1
	numberFlag(flags, &c.quality.Seed, "seed", 0, math.MaxUint64, "chooses bisections, permutations and, where there are too many, shifts")
	c.damage.flags(flags)
	c.quality.Hottest = 3
	numberFlag(flags, &c.quality.Hottest, "hottest", 0, maxNumber, "most loaded links to name, `N`; 0 for none")
	scopes(cmd.Flags(),
		scope{flags: "against", not: "bisections=0", why: "there is no bandwidth to compare"},
		scope{flags: "lids lmc roots", with: "engines", why: "tables of --lfts have their LIDs and paths", note: true},
		scope{flags: "percent samples svg", with: "damage"},
		scope{flags: "host-groups traffic", not: "damage", why: "figures are sums over damaged fabrics"},
		scope{flags: "fit", with: "traffic", why: "tables are fitted to its jobs"})
	return cmd
}

// parse sees that the flags make sense.
func (c *contest) parse(cmd *cobra.Command) (opt compile.Options, err error) {
	if c.topology == "" || len(c.engines)+len(c.lfts) == 0 {
		return opt, usagef("compare needs a topology, -t FILE, and engines, -e ENGINE,.., or tables, --lfts FILE")
	}
	if opt, err = c.routeFlags.parse(cmd); err != nil {
		return opt, err
	}
	if err := c.damage.parse(c); err != nil {
		return opt, err
	}
	if c.fit && len(c.engines) == 0 {
		return opt, usagef("--fit is about engines: want -e ENGINE,..")
	}
	return opt, oneStdin(append([]string{c.topology, c.traffic}, append(c.lfts, c.roots...)...)...)
}

// checkAll says whether a column fails.
func (c *contest) checkAll(s *standings) error {
	for _, x := range s.Contenders {
		if !c.never() && (x.Refused != "" || x.Verify.Fails(c.at())) {
			return errFindings
		}
	}
	return nil
}

// contestFabric reads the fabric of all columns, and gives our engines their own names.
func (a *app) contestFabric(c *contest, in *audit, opt *compile.Options) (*fabric.Fabric, error) {
	for i, name := range c.engines {
		if engine, is := strings.CutPrefix(name, openSMPrefix); is {
			if err := checkOpenSMEngine(engine); err != nil {
				return nil, err
			}
			continue
		}
		e, err := a.engine(name)
		if err != nil {
			return nil, err
		}
		c.engines[i] = e.Name()
	}
	f, err := a.reader(in).Fabric()
	if err != nil {
		return nil, err
	}
	if f.NumSwitches() == 0 {
		return nil, inputf("%s has no switch, so there are no tables to compare", c.topology)
	}
	opt.Route.Roots, err = a.switches(f, "--roots", c.roots)
	return f, err
}

// compare fills in all columns of f, whose topology leaves something undecided.
func (a *app) compare(ctx context.Context, c *contest, f *fabric.Fabric, opt compile.Options, undecided []verify.Undecided) (*standings, error) {
	s := &standings{Version: version}
	if err := a.contendByEngines(ctx, c, s, f, opt); err != nil {
		return nil, err
	}
	for _, name := range c.lfts {
		x, err := a.contendByFile(ctx, c, f, name, undecided)
		if err != nil {
			return nil, err
		}
		s.Contenders = append(s.Contenders, x)
	}
	names := make(map[string]int)
	for _, x := range s.Contenders {
		names[x.Name]++
	}
	for _, x := range s.Contenders {
		if names[x.Name] > 1 && x.File != "" {
			x.Name = x.File
		}
	}
	return s, s.compareWith(c.against)
}

// contendByEngines fills in the columns of the engines.
func (a *app) contendByEngines(ctx context.Context, c *contest, s *standings, f *fabric.Fabric, opt compile.Options) (err error) {
	for _, name := range c.engines {
		var x *contender
		if engine, is := strings.CutPrefix(name, openSMPrefix); is {
			x, err = a.contendByOpenSM(ctx, c, f, engine, opt)
		} else {
			x, err = a.contendByEngine(ctx, c, f, name, opt)
		}
		if err != nil {
			return err
		}
		if s.Contenders = append(s.Contenders, x); !c.fit || x.Refused != "" || strings.HasPrefix(name, openSMPrefix) {
			continue
		}
		fitted := opt
		fitted.Demand = (&fitting{name: c.traffic, file: c.jobs}).demandIn(a)
		if x, err = a.contendByEngine(ctx, c, f, name, fitted); err != nil {
			return err
		}
		if x != nil {
			s.Contenders = append(s.Contenders, x)
		}
	}
	return nil
}

// compareWith fills in the counts of the fabric, and the differences of bandwidth to a reference, "" for the first that
// routes the fabric.
func (s *standings) compareWith(name string) error {
	for _, x := range s.Contenders {
		if x.Verify != nil {
			s.Fabric = x.Verify.Fabric
		}
	}
	i := slices.IndexFunc(s.Contenders, func(x *contender) bool { return x.Name == name || name == "" && x.Quality != nil })
	if i < 0 && name != "" {
		return usagef("--against %q: want one of the columns, %s", name, text.List(each(s.Contenders, nameOf), "and"))
	}
	if i < 0 || s.Contenders[i].Quality == nil {
		return nil
	}
	reference := s.Contenders[i]
	for _, x := range s.Contenders {
		if x.Quality != nil && x != reference {
			if x.Difference = x.Quality.Bisection.Against(reference.Quality.Bisection); x.Difference != nil {
				s.Against = reference.Name
			}
		}
	}
	return nil
}

func nameOf(x *contender) string { return x.Name }

// contendByEngine routes f. It returns nil if the tables are not for the jobs that opt asks for.
func (a *app) contendByEngine(ctx context.Context, c *contest, f *fabric.Fabric, name string, opt compile.Options) (*contender, error) {
	e, err := compile.EngineByName(name)
	if err != nil {
		return nil, &usageError{err}
	}
	x := &contender{Name: e.Name()}
	r, err := a.runEngine(ctx, f, e, opt, func(stage string) string { return e.Name() + ": " + stage })
	if outside, ok := errors.AsType[*lft.DomainError](err); ok {
		x.Refused = outside.Reason
		return x, nil
	}
	if err != nil {
		return nil, lidInput(c.topology, err)
	}
	if opt.Demand != nil {
		if x.Name, x.Fitted = fittedName(x.Name), true; !a.isFitted(r, x.Name) {
			return nil, nil
		}
	}
	x.Verify, x.Seconds = r.Verify, &r.Seconds
	return x, a.measure(ctx, c, x, r.Routing)
}

// contendByFile reads a dump of tables of f, whose topology leaves something undecided,
// or a compiled directory.
func (a *app) contendByFile(ctx context.Context, c *contest, f *fabric.Fabric, name string, undecided []verify.Undecided) (*contender, error) {
	x := &contender{Name: filepath.Base(name), File: name}
	in := newAudit(c.lenient, false)
	in.Findings, in.Topology, in.LFTs = true, c.topology, name
	r := a.reader(in)
	if open.Folder(name) {
		in.Topology, in.LFTs, undecided = "", "", nil
		if err := r.FindIn(name, true); err != nil {
			return nil, err
		}
		own, err := r.Fabric()
		if err != nil {
			return nil, err
		}
		if err := sameCables(f, own); err != nil {
			return nil, inputf("%s is of another fabric than %s: %w", name, c.topology, err)
		}
		f = own
	}
	r.UseFabric(f)
	if err := r.Tables(); err != nil {
		return nil, err
	}
	err := r.Lanes()
	if err != nil {
		return nil, err
	}
	if x.Verify, err = a.checkTables(ctx, &r.State, verify.Options{}); err != nil {
		return nil, err
	}
	x.Verify.Add(in.findings...)
	x.Verify.Leave(undecided...)
	x.Verify.Leave(in.listUndecided()...)
	return x, a.measure(ctx, c, x, r.State.Routing())
}

// sameCables says where two fabrics differ in more than LIDs.
func sameCables(f, g *fabric.Fabric) error {
	if f.NumNodes() != g.NumNodes() || f.NumLinks() != g.NumLinks() {
		return fmt.Errorf("%s and %s, not %s and %s", text.CountGrouped(g.NumNodes(), "node", "nodes"), text.CountGrouped(g.NumLinks(), "link", "links"),
			text.CountGrouped(f.NumNodes(), "node", "nodes"), text.CountGrouped(f.NumLinks(), "link", "links"))
	}
	// Both are in the order of GUIDs.
	for n := range fabric.NodeID(f.NumNodes()) {
		x, y := f.Node(n), g.Node(n)
		if x.GUID != y.GUID || x.NumPorts != y.NumPorts {
			return fmt.Errorf("it has %q with GUID %s and %d ports", g.Name(n).Text, y.GUID, y.NumPorts)
		}
		for p := range x.NumPorts {
			i, j := f.Port(n, p+1), g.Port(n, p+1)
			if f.Peer(i) != g.Peer(j) {
				return fmt.Errorf("the cable of %s", g.PortName(j))
			}
		}
	}
	return nil
}

// measure fills in what is said of the tables of a column.
func (a *app) measure(ctx context.Context, c *contest, x *contender, r *lft.Routing) (err error) {
	s := a.startStage(x.Name + ": traffic")
	defer s.End()
	opt := c.quality
	opt.SL2VL, opt.PathSLs, opt.CAOrder = r.SL2VL, r.PathSLs, r.CAOrder
	if x.Quality, err = quality.Measure(ctx, r.Fabric, r.Tables, opt); err != nil {
		return err
	}
	if x.Groups, err = a.groupStates(ctx, r.Fabric, r.Tables, true); err != nil {
		return err
	}
	return a.measureTraffic(ctx, c, x, r)
}

// text is the table for people.
func (s *standings) text(b *text.Sheet) {
	if c := s.Fabric; c.Switches > 0 {
		fmt.Fprintf(b, "fabric: %s\n\n", counts(c.Switches, c.CAPorts, c.Links))
	}
	var shown []*contender
	for _, x := range s.Contenders {
		if x.Refused == "" {
			shown = append(shown, x)
		}
	}
	if len(shown) > 0 {
		writeColumns(b, s.rows(shown), 0)
		if shown[0].Groups != nil {
			fmt.Fprintln(b)
			writeColumns(b, groupRows(shown), 0)
		}
	}
	for _, x := range s.Contenders {
		x.explain(b)
	}
}

// rows are the lines of the table.
func (s *standings) rows(shown []*contender) [][]string {
	var rows [][]string
	row := func(name string, value func(x *contender) string) {
		rows = append(rows, append([]string{name}, each(shown, value)...))
	}
	row("", nameOf)
	count := func(name string, value func(x *contender) int64) {
		row(name, func(x *contender) string { return text.Grouped(value(x)) })
	}
	row("verdict", func(x *contender) string { return x.Verify.Verdict })
	count("pairs of ports not delivered", func(x *contender) int64 { return x.Verify.Unicast.Unreachable + x.Verify.Unicast.Loops })
	count("  the same with switches", func(x *contender) int64 { return x.Verify.Management.Unreachable + x.Verify.Management.Loops })
	count("credit loops", func(x *contender) int64 { return int64(x.Verify.CreditLoops.Count) })
	count("VLs in use", func(x *contender) int64 { return int64(x.Verify.CreditLoops.VLs) })
	row("switches on a path, mean", func(x *contender) string { // over delivered pairs
		pairs, sum := int64(0), int64(0)
		for hops, n := range x.Verify.Unicast.HopHistogram {
			pairs, sum = pairs+n, sum+int64(hops)*n
		}
		return fmt.Sprintf("%.3f", float64(sum)/float64(max(pairs, 1)))
	})
	count("  most", func(x *contender) int64 { return int64(x.Verify.Unicast.MaxHops) })
	count("pairs longer than shortest", func(x *contender) int64 { return x.Verify.Unicast.NonMinimal })
	row("routes on a link, mean", func(x *contender) string { return fmt.Sprintf("%.1f", x.Quality.Links.Mean) })
	count("  most", func(x *contender) int64 { return x.Quality.Links.Max })
	row("  Gini coefficient", func(x *contender) string { return fmt.Sprintf("%.3f", x.Quality.Links.Gini) })
	count("links without routes", func(x *contender) int64 { return int64(x.Quality.Links.Unused) })
	for vl := range fabric.VL(lft.NumSLs) {
		routes := func(x *contender) string {
			if i := slices.IndexFunc(x.Quality.VLs, func(l quality.VLLoads) bool { return l.VL == vl }); i >= 0 {
				return text.Grouped(x.Quality.VLs[i].Max)
			}
			return "-"
		}
		if slices.ContainsFunc(shown, func(x *contender) bool { return routes(x) != "-" }) {
			row(fmt.Sprintf("routes of a link on VL %d, most", vl), routes)
		}
	}
	row("ways between two switches, mean", func(x *contender) string { return fmt.Sprintf("%.2f", x.Quality.Diversity.Mean) })
	disjoint := func(x *contender) *quality.Disjoint { return x.Quality.Diversity.Disjoint }
	if slices.ContainsFunc(shown, func(x *contender) bool { return disjoint(x) != nil }) {
		row("disjoint paths to the LIDs of a port, mean", orDash(disjoint, func(d *quality.Disjoint) string { return fmt.Sprintf("%.2f", d.Cables.Mean) }))
		row("  least", orDash(disjoint, func(d *quality.Disjoint) string { return fmt.Sprint(d.Cables.Min) }))
		row("  by different switches, mean", orDash(disjoint, func(d *quality.Disjoint) string { return fmt.Sprintf("%.2f", d.Switches.Mean) }))
		row("  that cables allow, mean", orDash(disjoint, func(d *quality.Disjoint) string { return fmt.Sprintf("%.2f", d.Possible.Mean) }))
	}
	s.patternRows(row, shown)
	trafficRows(row, shown)
	row("seconds to route and verify", orDash(func(x *contender) *compile.Seconds { return x.Seconds }, func(t *compile.Seconds) string { return fmt.Sprintf("%.3f", t.Route+t.Verify) }))
	return rows
}

// orDash is a cell with a part of a column, - for a column without it.
func orDash[T any](part func(x *contender) *T, value func(*T) string) func(x *contender) string {
	return func(x *contender) string {
		if p := part(x); p != nil {
			return value(p)
		}
		return "-"
	}
}

// patternRows are the lines about patterns of traffic.
func (s *standings) patternRows(row func(name string, value func(x *contender) string), shown []*contender) {
	row("bisection bandwidth, mean", orDash(bisectionOf, func(q *quality.Bisection) string { return percent(q.Mean) }))
	row("  95 % interval, +-", orDash(bisectionOf, func(q *quality.Bisection) string { return percent((q.High - q.Low) / 2) }))
	row("  worst bisection", orDash(bisectionOf, func(q *quality.Bisection) string { return percent(q.Least) }))
	if s.Against != "" {
		difference := func(x *contender) *quality.Difference { return x.Difference }
		row("  points more than "+s.Against, orDash(difference, func(d *quality.Difference) string { return fmt.Sprintf("%+.2f", 100*d.Mean) }))
		row("    95 % interval, +-", orDash(difference, func(d *quality.Difference) string { return fmt.Sprintf("%.2f", 50*(d.High-d.Low)) }))
		row("    so it is", orDash(difference, func(d *quality.Difference) string { return d.Verdict }))
	}
	row("all-to-all, greatest load", func(x *contender) string { return load(x.Quality.AllToAll) })
	// Columns of whose tables no two ports talk have neither.
	if shown[0].Quality.Permutations != nil {
		row("random permutations, median load", orDash(permutationsOf, func(p *quality.Permutations) string { return load(p.Median) }))
		row("  load of the 99th percentile", orDash(permutationsOf, func(p *quality.Permutations) string { return load(p.P99) }))
		row("  bandwidth, mean", orDash(permutationsOf, func(p *quality.Permutations) string { return percent(p.Bandwidth) }))
	}
	if shown[0].Quality.Shifts != nil {
		row("shifts, mean load", orDash(shiftsOf, func(p *quality.Shifts) string { return fmt.Sprintf("%.2f", p.Contention) }))
		row("  greatest load", orDash(shiftsOf, func(p *quality.Shifts) string { return load(p.Most) }))
		row("  bandwidth, mean", orDash(shiftsOf, func(p *quality.Shifts) string { return percent(p.Bandwidth) }))
		row("  worst shift", orDash(shiftsOf, func(p *quality.Shifts) string { return percent(p.Least) }))
	}
}

// percent is a part of 1.
func percent(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }

// load is routes relative to rates: a whole number where all cables are alike.
func load(x float64) string {
	if n := int64(x); float64(n) == x {
		return text.Grouped(n)
	}
	return fmt.Sprintf("%.2f", x)
}

// withOptions limits a refusal to the options that an engine had: OpenSM runs with its defaults,
// and others, as roots for updn, might do.
func (x *contender) withOptions() string {
	if strings.HasPrefix(x.Name, openSMPrefix) {
		return " with these options"
	}
	return ""
}

// explain says what the table has no room for.
func (x *contender) explain(b *text.Sheet) {
	if x.Refused != "" {
		fmt.Fprintf(b, "\n%s cannot route this fabric%s: %s\n", x.Name, x.withOptions(), x.Refused)
		return
	}
	if len(x.Quality.Hottest) > 0 {
		fmt.Fprintf(b, "\nmost loaded links of %s\n", x.Name)
	}
	for _, h := range x.Quality.Hottest {
		fmt.Fprintf(b, "  %s  %s to %s\n", text.Grouped(h.Routes), h.Name.At(h.Port, h.Label), h.ToName.At(h.ToPort, h.ToLabel))
	}
	if len(x.Verify.Undecided) > 0 {
		fmt.Fprintf(b, "\nof %s", x.Name)
		report.WriteUndecided(b, x.Verify)
	}
	if len(x.Verify.CreditLoops.Cycles) > 0 {
		fmt.Fprintf(b, "\na credit loop of %s\n", x.Name)
		for _, h := range x.Verify.CreditLoops.Cycles[0] {
			fmt.Fprintf(b, "  %s\n", h)
		}
	}
}

// writeColumns writes rows with one column to the left and all others to the
// right.
func writeColumns(b *text.Sheet, rows [][]string, left int) {
	wide := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, text := range r {
			wide[i] = max(wide[i], utf8.RuneCountInString(text))
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, text := range r {
			pad := strings.Repeat(" ", wide[i]-utf8.RuneCountInString(text))
			if i > 0 {
				line.WriteString("  ")
			}
			if i == left {
				line.WriteString(text + pad)
			} else {
				line.WriteString(pad + text)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// measureTraffic fills in what the tables of a column do under the jobs, if there are some.
func (a *app) measureTraffic(ctx context.Context, c *contest, x *contender, r *lft.Routing) error {
	if c.jobs == nil {
		return nil
	}
	t, _, err := a.jobsIn(c.jobs, r.Fabric, true)
	if err != nil {
		return err
	}
	if x.Traffic, err = t.Summarize(ctx, r.Tables); err != nil {
		return inputUnlessDone(ctx, fmt.Errorf("%s: %w", c.traffic, err))
	}
	return nil
}

// trafficRows are the lines about jobs.
func trafficRows(row func(name string, value func(x *contender) string), shown []*contender) {
	if shown[0].Traffic == nil {
		return
	}
	row("jobs, busiest cable", func(x *contender) string { return seconds(x.Traffic.Seconds) })
	row("  over the busiest cable of a host", func(x *contender) string { return fmt.Sprintf("%.3f", x.Traffic.Gap) })
	if slices.ContainsFunc(shown, func(x *contender) bool { return x.Traffic.Lost > 0 }) {
		row("  bytes not delivered", func(x *contender) string { return bytesText(x.Traffic.Lost) })
	}
	slowest := func(value func(j *jobs.JobSummary) float64) func(x *contender) string {
		return func(x *contender) string {
			most := 0.0
			for i := range x.Traffic.Jobs {
				most = max(most, value(&x.Traffic.Jobs[i]))
			}
			return fmt.Sprintf("%.2f", most)
		}
	}
	n := text.Count(len(shown[0].Traffic.Jobs), "job", "jobs")
	row("  time over a crossbar's, most of "+n, slowest(func(j *jobs.JobSummary) float64 { return j.Together }))
	row("    each alone", slowest(func(j *jobs.JobSummary) float64 { return j.Alone }))
}
