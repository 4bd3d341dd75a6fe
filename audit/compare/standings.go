// Package compare puts the tables of engines and of files side by side. It makes no promise to
// other modules.
package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/verify"
)

// Contender is one column: an engine's tables, or those of a file.
type Contender struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"` // "" for an engine
	// Refused is why the engine cannot route this fabric; the fields after it are then empty.
	Refused string           `json:"refused,omitempty"`
	Seconds *compile.Seconds `json:"seconds,omitempty"` // of an engine
	Verify  *verify.Result   `json:"verify,omitempty"`
	Quality *quality.Result  `json:"quality,omitempty"`
	// Difference is from the reference; nil for the reference, and without bisections.
	Difference *quality.Difference `json:"difference,omitempty"`
	// Fitted is set if the tables are made for the jobs of --traffic.
	Fitted bool `json:"fitted,omitempty"`
	// Groups has sums by groups of hosts; nil without --host-groups.
	Groups  []groups.State `json:"host_groups,omitempty"`
	Traffic *jobs.Summary  `json:"traffic,omitempty"` // with --traffic
}

// Standings is the JSON document of compare.
type Standings struct {
	Version    string              `json:"version"`
	Fabric     verify.FabricCounts `json:"fabric"`
	Against    string              `json:"against,omitempty"` // name of the reference
	Contenders []*Contender        `json:"contenders"`
}

// OpenSM begins the name of an engine of OpenSM: "opensm:ftree".
const OpenSM = "opensm:"

// With sets the counts of the fabric, and the differences of bandwidth from
// the column called name; from the first that routes the fabric if name is "".
// It fails if no column has this name.
func (s *Standings) With(name string) error {
	for _, x := range s.Contenders {
		if x.Verify != nil {
			s.Fabric = x.Verify.Fabric
		}
	}
	i := slices.IndexFunc(s.Contenders, func(x *Contender) bool { return x.Name == name || name == "" && x.Quality != nil })
	if i < 0 && name != "" {
		return fmt.Errorf("--against %q: want one of the columns, %s", name, text.List(text.Each(s.Contenders, nameOf), "and"))
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

func nameOf(x *Contender) string { return x.Name }

func bisectionOf(x *Contender) *quality.Bisection       { return x.Quality.Bisection }
func permutationsOf(x *Contender) *quality.Permutations { return x.Quality.Permutations }
func shiftsOf(x *Contender) *quality.Shifts             { return x.Quality.Shifts }

// Text writes the table for people.
func (s *Standings) Text(b *text.Sheet) {
	if c := s.Fabric; c.Switches > 0 {
		fmt.Fprintf(b, "fabric: %s\n\n", c)
	}
	shown := text.Where(s.Contenders, func(x *Contender) bool { return x.Refused == "" })
	if len(shown) > 0 {
		b.Columns(s.rows(shown), 0)
		if shown[0].Groups != nil {
			fmt.Fprintln(b)
			b.Columns(groupRows(shown), 0)
		}
	}
	for _, x := range s.Contenders {
		x.explain(b)
	}
}

func (s *Standings) rows(shown []*Contender) [][]string {
	var rows [][]string
	row := func(name string, value func(x *Contender) string) {
		rows = append(rows, append([]string{name}, text.Each(shown, value)...))
	}
	row("", nameOf)
	count := func(name string, value func(x *Contender) int64) {
		row(name, func(x *Contender) string { return text.Grouped(value(x)) })
	}
	row("verdict", func(x *Contender) string { return x.Verify.Verdict })
	count("pairs of ports not delivered", func(x *Contender) int64 { return x.Verify.Unicast.Unreachable + x.Verify.Unicast.Loops })
	count("  the same with switches", func(x *Contender) int64 { return x.Verify.Management.Unreachable + x.Verify.Management.Loops })
	count("credit loops", func(x *Contender) int64 { return int64(x.Verify.CreditLoops.Count) })
	count("VLs in use", func(x *Contender) int64 { return int64(x.Verify.CreditLoops.VLs) })
	row("switches on a path, mean", func(x *Contender) string { // over delivered pairs
		pairs, sum := int64(0), int64(0)
		for hops, n := range x.Verify.Unicast.HopHistogram {
			pairs, sum = pairs+n, sum+int64(hops)*n
		}
		return fmt.Sprintf("%.3f", float64(sum)/float64(max(pairs, 1)))
	})
	count("  most", func(x *Contender) int64 { return int64(x.Verify.Unicast.MaxHops) })
	count("pairs longer than shortest", func(x *Contender) int64 { return x.Verify.Unicast.NonMinimal })
	row("routes on a link, mean", func(x *Contender) string { return fmt.Sprintf("%.1f", x.Quality.Links.Mean) })
	count("  most", func(x *Contender) int64 { return x.Quality.Links.Max })
	row("  Gini coefficient", func(x *Contender) string { return fmt.Sprintf("%.3f", x.Quality.Links.Gini) })
	count("links without routes", func(x *Contender) int64 { return int64(x.Quality.Links.Unused) })
	disjoint := func(x *Contender) *quality.Disjoint { return x.Quality.Disjoint }
	if slices.ContainsFunc(shown, func(x *Contender) bool { return disjoint(x) != nil }) {
		row("disjoint paths to the LIDs of a port, mean", orDash(disjoint, func(d *quality.Disjoint) string { return fmt.Sprintf("%.2f", d.Cables.Mean) }))
		row("  least", orDash(disjoint, func(d *quality.Disjoint) string { return fmt.Sprint(d.Cables.Min) }))
		row("  by different switches, mean", orDash(disjoint, func(d *quality.Disjoint) string { return fmt.Sprintf("%.2f", d.Switches.Mean) }))
		row("  that cables allow, mean", orDash(disjoint, func(d *quality.Disjoint) string { return fmt.Sprintf("%.2f", d.Possible.Mean) }))
	}
	s.patternRows(row, shown)
	trafficRows(row, shown)
	row("seconds to route and verify", orDash(func(x *Contender) *compile.Seconds { return x.Seconds }, func(t *compile.Seconds) string { return fmt.Sprintf("%.3f", t.Route+t.Verify) }))
	return rows
}

// orDash returns a function for a cell: the value of a part of a column, - if it lacks the part.
func orDash[T any](part func(x *Contender) *T, value func(*T) string) func(x *Contender) string {
	return func(x *Contender) string {
		if p := part(x); p != nil {
			return value(p)
		}
		return "-"
	}
}

// patternRows adds the lines about patterns of traffic.
func (s *Standings) patternRows(row func(name string, value func(x *Contender) string), shown []*Contender) {
	row("bisection bandwidth, mean", orDash(bisectionOf, func(q *quality.Bisection) string { return text.Percent(q.Mean) }))
	row("  95 % interval, +-", orDash(bisectionOf, func(q *quality.Bisection) string { return text.Percent((q.High - q.Low) / 2) }))
	row("  worst bisection", orDash(bisectionOf, func(q *quality.Bisection) string { return text.Percent(q.Least) }))
	if s.Against != "" {
		difference := func(x *Contender) *quality.Difference { return x.Difference }
		row("  points more than "+s.Against, orDash(difference, func(d *quality.Difference) string { return fmt.Sprintf("%+.2f", 100*d.Mean) }))
		row("    95 % interval, +-", orDash(difference, func(d *quality.Difference) string { return fmt.Sprintf("%.2f", 50*(d.High-d.Low)) }))
		row("    so it is", orDash(difference, func(d *quality.Difference) string { return d.Verdict }))
	}
	row("all-to-all, greatest load", func(x *Contender) string { return load(x.Quality.AllToAll) })
	// Both are nil if no two ports talk.
	if shown[0].Quality.Permutations != nil {
		row("random permutations, median load", orDash(permutationsOf, func(p *quality.Permutations) string { return load(p.Median) }))
		row("  load of the 99th percentile", orDash(permutationsOf, func(p *quality.Permutations) string { return load(p.P99) }))
		row("  bandwidth, mean", orDash(permutationsOf, func(p *quality.Permutations) string { return text.Percent(p.Bandwidth) }))
	}
	if shown[0].Quality.Shifts != nil {
		row("shifts, mean load", orDash(shiftsOf, func(p *quality.Shifts) string { return fmt.Sprintf("%.2f", p.Contention) }))
		row("  greatest load", orDash(shiftsOf, func(p *quality.Shifts) string { return load(p.Most) }))
		row("  bandwidth, mean", orDash(shiftsOf, func(p *quality.Shifts) string { return text.Percent(p.Bandwidth) }))
		row("  worst shift", orDash(shiftsOf, func(p *quality.Shifts) string { return text.Percent(p.Least) }))
	}
}

// load writes routes relative to data rates: a whole number if all cables are alike.
func load(x float64) string {
	if n := int64(x); float64(n) == x {
		return text.Grouped(n)
	}
	return fmt.Sprintf("%.2f", x)
}

// explain writes what does not fit into the table.
func (x *Contender) explain(b *text.Sheet) {
	if x.Refused != "" {
		options := ""
		if strings.HasPrefix(x.Name, OpenSM) { // with its defaults; other options may work
			options = " with these options"
		}
		fmt.Fprintf(b, "\n%s cannot route this fabric%s: %s\n", x.Name, options, x.Refused)
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

// trafficRows adds the lines about jobs.
func trafficRows(row func(name string, value func(x *Contender) string), shown []*Contender) {
	if shown[0].Traffic == nil {
		return
	}
	row("jobs, busiest cable", func(x *Contender) string { return text.Seconds(x.Traffic.Seconds) })
	row("  over the busiest cable of a host", func(x *Contender) string { return fmt.Sprintf("%.3f", x.Traffic.Gap) })
	if slices.ContainsFunc(shown, func(x *Contender) bool { return x.Traffic.Lost > 0 }) {
		row("  bytes not delivered", func(x *Contender) string { return text.Bytes(x.Traffic.Lost) })
	}
	slowest := func(value func(j *jobs.JobSummary) float64) func(x *Contender) string {
		return func(x *Contender) string {
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

// groupRows returns the lines about groups: for each the routes on its busiest uplink, and its lost
// pairs.
func groupRows(shown []*Contender) [][]string {
	rows := [][]string{append([]string{"busiest uplink of"}, text.Each(shown, nameOf)...)}
	for _, g := range shown[0].Groups {
		rows = append(rows, append([]string{"  " + g.Grouping + " " + g.Group}, text.Each(shown, func(x *Contender) string {
			own := g.In(x.Groups)
			cell := text.Grouped(own.MaxRoutes)
			if n := own.Lost; n > 0 {
				cell += fmt.Sprintf(", %s lost", text.CountGrouped(n, "pair", "pairs"))
			}
			return cell
		})...))
	}
	return rows
}
