package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// Text prints a result for people: the size of the fabric, the causes of errors and warnings,
// undecided rules, the figures, notes and waived causes, and the verdict.
func Text(w io.Writer, r *verify.Result, opt Options) error {
	b := new(text.Sheet)
	size(b, r)
	acute := func(c *verify.Cause) bool { return c.Waiver == nil && c.Severity >= verify.Warning }
	from := b.Len()
	writeCauses(b, r, &opt, acute)
	WriteUndecided(b, r)
	var counted text.Sheet
	figures(&counted, r, &opt)
	if b.Len() > from && counted.Len() > 0 {
		fmt.Fprintln(b)
	}
	b.Write(counted.Bytes())
	if opt.Compiled && r.Verdict == verify.VerdictClean {
		b.Row("files", "judged as they are; ibweave drift tells what switches have")
	}
	for _, proof := range [][3]string{{"certificate", opt.Certificate, verify.CertificateRule}, {"bound", opt.Bound, verify.BoundRule}} {
		if proof[1] == "" {
			continue
		}
		holds := "holds"
		if slices.ContainsFunc(r.Findings, func(f verify.Finding) bool { return f.Rule == proof[2] }) {
			holds = "does not hold"
		}
		b.Row(proof[0], "%s %s", proof[1], holds)
	}
	writeCauses(b, r, &opt, func(c *verify.Cause) bool { return !acute(c) })
	if opt.Groups != nil {
		fmt.Fprintf(b, "\n%s", opt.Groups)
	}
	verdict(b, r)
	_, err := w.Write(b.Bytes())
	return err
}

// WriteUndecided prints each reason with the rules that are undecided for it.
func WriteUndecided(w io.Writer, r *verify.Result) {
	for i, u := range r.Undecided {
		same := func(v verify.Undecided) bool { return v.Reason == u.Reason }
		if slices.ContainsFunc(r.Undecided[:i], same) {
			continue
		}
		rules := u.Rule
		for _, v := range r.Undecided[i+1:] {
			if same(v) {
				rules += ", " + v.Rule
			}
		}
		fmt.Fprintf(w, "\n%s: %s\n    %s\n", verify.VerdictUndecided, u.Reason, rules)
	}
}

// size prints the size of the fabric.
func size(b *text.Sheet, r *verify.Result) {
	f := &r.Fabric
	switches := text.CountGrouped(f.Switches, "switch", "switches")
	if f.Systems > 0 {
		switches += " in " + text.CountGrouped(f.Systems, "system", "systems")
	}
	b.Row("fabric", "%s, %s, %s, LIDs up to %d",
		switches, text.CountGrouped(f.CAPorts, "CA port", "CA ports"),
		text.CountGrouped(f.Links, "link", "links"), f.MaxLID)
}

// figures prints a line for each kind of figure.
func figures(b *text.Sheet, r *verify.Result, opt *Options) {
	u, m := &r.Unicast, &r.Management
	lines := func(name string, what fmt.Stringer) {
		if what == nil {
			return
		}
		for line := range strings.Lines(what.String()) {
			b.Row(name, "%s", strings.TrimSuffix(line, "\n"))
			name = ""
		}
	}
	lines("shape", opt.Shape)
	lines("plan", opt.Plan)
	partitions(r, opt.Verbose, b)
	if opt.Tables == "" && (opt.Shape != nil || opt.Bound != "" || r.Partitions != nil) {
		bounds(r, b)
		return // without tables there are no routes
	}
	by := ""
	if u.MaxDetour > 0 {
		by = fmt.Sprintf(", by %s at most", text.Count(u.MaxDetour, "switch", "switches"))
	}
	unreachable := text.Grouped(u.Unreachable-u.Aggregation) + " unreachable"
	if u.Aggregation > 0 {
		unreachable += fmt.Sprintf(" and %s with an aggregation node at an end", text.Grouped(u.Aggregation))
	}
	// decided returns a remark to add to figures if one of their rules is undecided: there may
	// be more.
	decided := func(rules ...string) string {
		if slices.ContainsFunc(r.Undecided, func(u verify.Undecided) bool { return slices.Contains(rules, u.Rule) }) {
			return "; at least, as a rule is undecided"
		}
		return ""
	}
	b.Row("unicast", "%s of a CA port and a LID: %s, %s looping, %s longer than the shortest path%s%s",
		text.CountGrouped(u.Pairs, "pair", "pairs"), unreachable, text.Grouped(u.Loops), text.Grouped(u.NonMinimal), by,
		decided(verify.UnicastUnreachable, verify.Misdelivered, verify.SLDropped, verify.UnicastLoop))
	delivered := u.Pairs - u.Unreachable - u.Loops
	name := "hops"
	for hops, n := range u.HopHistogram {
		if n == 0 {
			continue
		}
		b.Row(name, "%-12s %12s pairs %5.1f %%", text.CountGrouped(hops, "switch", "switches"), text.Grouped(n), 100*float64(n)/float64(delivered))
		name = ""
	}
	if l := r.Balance.MaxLink; l != nil {
		b.Row("balance", "%s on the most loaded link, %s, and %.1f on average",
			text.CountGrouped(r.Balance.MaxRoutes, "route", "routes"), l, r.Balance.MeanRoutes)
	}
	if m := r.Balance.MaxRelative; m != nil && m.Rate != m.Fastest { // else the line above tells it
		b.Row("", "%s on %s, %s, take the most time, as %s on %s",
			text.CountGrouped(m.Routes, "route", "routes"), m.Link, m.Rate, text.Grouped(int64(math.Round(m.Load))), m.Fastest)
	}
	idle(r, opt, b)
	bounds(r, b)
	for _, line := range opt.Lines {
		b.Row(line[0], "%s", line[1])
	}
	c := &r.CreditLoops
	b.Row("credit loops", "%s on %s; %s between %s%s",
		text.Grouped(c.Count), text.CountGrouped(c.VLs, "VL", "VLs"),
		text.CountGrouped(c.Dependencies, "dependency", "dependencies"), text.CountGrouped(c.Channels, "channel", "channels"), decided(verify.CreditLoop))
	if n := r.Adaptive; n != nil {
		b.Row("adaptive", "%s Free, %s HBF, %s in %s; by some choice %s lost, %s looping",
			text.CountGrouped(n.Free, "entry", "entries"), text.Grouped(n.HBF), text.CountGrouped(n.Groups, "group", "groups"), text.CountGrouped(n.PLFTs, "PLFT", "PLFTs"),
			text.CountGrouped(n.DeadEnds, "pair", "pairs"), text.Grouped(n.Loops))
		b.Row("", "%s of all choices on %s, %s without an escape; %s between %s",
			text.CountGrouped(n.CreditLoops, "credit loop", "credit loops"), text.CountGrouped(n.VLs, "VL", "VLs"), text.Grouped(n.NoEscape),
			text.CountGrouped(n.Dependencies, "dependency", "dependencies"), text.CountGrouped(n.Channels, "channel", "channels"))
	}
	b.Row("management", "%s with a switch: %s unreachable, %s looping, %s with CA traffic%s",
		text.CountGrouped(m.Pairs, "pair", "pairs"), text.Grouped(m.Unreachable), text.Grouped(m.Loops),
		text.CountGrouped(m.CreditLoops, "credit loop", "credit loops"),
		decided(verify.ManagementUnreachable, verify.ManagementSLDropped, verify.ManagementLoop, verify.ManagementCreditLoop))
	if g := &r.Multicast; g.Groups > 0 {
		b.Row("multicast", "%s on %s, %s of a sender and a receiver: %s missing, %s duplicate; %s looping, %s stray%s",
			text.CountGrouped(g.Groups, "group", "groups"), text.CountGrouped(g.MLIDs, "MLID", "MLIDs"), text.CountGrouped(g.Pairs, "pair", "pairs"),
			text.Grouped(g.Missing), text.Grouped(g.Duplicates), text.CountGrouped(g.Loops, "sender", "senders"), text.Grouped(g.Stray), decided(verify.MulticastRules...))
		b.Row("", "%s of unicast and multicast together; %s", text.CountGrouped(g.CreditLoops, "credit loop", "credit loops"),
			text.CountGrouped(g.Dependencies, "dependency", "dependencies"))
		if t := g.Fullest; t != nil {
			b.Row("", "%s of the %s that the smallest table has room for; the fullest is %s, %s of %s", text.CountGrouped(g.MLIDs, "MLID", "MLIDs"), text.Grouped(g.Capacity),
				t.Name, text.Grouped(t.MLIDs), text.Grouped(t.Capacity))
		}
	}
}

// partitions prints the members of each partition.
func partitions(r *verify.Result, verbose bool, b *text.Sheet) {
	if r.Partitions == nil {
		return
	}
	b.Row("partitions", "%s of %s", text.CountGrouped(r.Partitions.Partitions, "partition", "partitions"), text.CountGrouped(r.Partitions.Ports, "end port", "end ports"))
	const most = 50
	for i := range r.Partitions.List {
		if i == most && !verbose {
			b.Row("", "and %s more, which -v lists", text.Grouped(len(r.Partitions.List)-most))
			return
		}
		p := &r.Partitions.List[i]
		line := p.PKey.String()
		if p.Name != "" {
			line += " " + p.Name
		}
		parts := []string{}
		for _, m := range []struct {
			n           int
			word, hosts string
		}{{p.Full, "full", p.FullHosts}, {p.Limited, "limited", p.LimitedHosts}} {
			part := text.Grouped(m.n) + " " + m.word
			if m.hosts != "" {
				part += " (" + hostlist.Shorten(m.hosts) + ")"
			}
			if m.n > 0 {
				parts = append(parts, part)
			}
		}
		if len(parts) == 0 {
			parts = []string{"no member"}
		}
		b.Row("", "%s: %s", line, strings.Join(parts, ", "))
	}
}

// idleWords explains the reasons of idle channels.
var idleWords = map[string]string{
	verify.IdleNoHosts:     "to or from a switch that no host needs",
	verify.IdleNotShortest: "on no shortest path",
	verify.IdleNotLegal:    "not legal for the engine's order",
	verify.IdleSlow:        "slower than others of their switch",
	verify.IdleFewLIDs:     "to fewer LIDs than cables",
	verify.IdleUnused:      "that the tables could use",
}

// idle prints the number of channels without routes, by reason; with Verbose also each of them.
func idle(r *verify.Result, opt *Options, b *text.Sheet) {
	list := r.Balance.Idle
	if len(list) == 0 {
		return
	}
	var parts []string
	for _, reason := range verify.IdleReasons {
		if n := text.CountIf(list, func(x verify.IdleChannel) bool { return x.Reason == reason }); n > 0 {
			parts = append(parts, text.Grouped(n)+" "+idleWords[reason])
		}
	}
	b.Row("idle", "%s between switches: %s", text.CountGrouped(len(list), "channel", "channels"), strings.Join(parts, ", "))
	if opt.Verbose {
		for i := range list {
			b.Row("", "%s %s", list[i], list[i].Reason)
		}
	}
}

// bounds prints lower bounds of the load, and how much the load exceeds them. It leaves out the
// bound for shortest paths if the tables have longer paths.
func bounds(r *verify.Result, b *text.Sheet) {
	if r.Bound == nil {
		return
	}
	load, time, that, on := r.Bound.LoadText(), "", "", ""
	if fastest := r.Bound.Fastest; fastest != "" {
		time, that, on = "the time of ", "that of ", " routes on "+fastest
	}
	name := "bound"
	if lost := r.Unicast.Unreachable + r.Unicast.Loops; lost > 0 && r.Balance.MaxLink != nil {
		b.Row(name, "none to compare with, as lost pairs load no link")
		return
	}
	for _, x := range r.Bound.Bounds {
		who := "no tables"
		switch {
		case x.Paths == bound.ShortestPaths.String() && r.Unicast.NonMinimal > 0:
			continue
		case x.Paths == bound.ShortestPaths.String():
			who = "no tables of shortest paths"
		case x.Paths == bound.LegalPaths.String():
			who = "no tables by legal ports of this order"
		}
		least, why := verify.LoadText(x.Exact), x.Witness
		if !x.Close {
			why += "; --bound-iterations seeks a better bound"
		}
		switch {
		case r.Bound.Load == 0:
			b.Row(name, "%s have less than %s%s%s on the most loaded link: %s", who, time, least, on, x.Witness)
		case x.Above < 0.0005:
			b.Row(name, "%s%s, and %s have less: %s", time, load, who, x.Witness)
		default:
			b.Row(name, "%s%s is %s %s%s, and %s have less than %s%s: %s", time, load, x.AboveText(), that, least, who, that, least, why)
		}
		name = ""
	}
}

// WriteFinding prints a finding and its witness, a line for each channel, as Text does. It cuts
// a message that ends with the witness's channels before them.
func WriteFinding(w io.Writer, f *verify.Finding) {
	writeFinding(w, f, len(f.Witness))
}

// writeFinding is WriteFinding with only the first most channels of the witness.
func writeFinding(w io.Writer, f *verify.Finding, most int) {
	message := f.Message
	if len(f.Witness) > 0 {
		message, _, _ = strings.Cut(message, ": "+f.Witness[0].String())
	}
	writeHead(w, f.Severity, f.Waiver, f.Rule, message)
	shown := f.Witness[:min(len(f.Witness), most)]
	wide := 0
	for _, h := range shown {
		wide = max(wide, len(h.String()))
	}
	for _, h := range shown {
		fmt.Fprintf(w, "    %-*s  %s", wide, h, h.Switch)
		if h.Port != fabric.NoPath {
			fmt.Fprintf(w, " port %d VL %d", h.Port, h.VL)
		}
		if h.LID != 0 {
			fmt.Fprintf(w, "  to %s", h.Target())
		}
		fmt.Fprintln(w)
	}
	if n := len(f.Witness) - len(shown); n > 0 {
		fmt.Fprintf(w, "    and %s, which -v lists\n", text.CountGrouped(n, "more channel", "more channels"))
	}
}

// verdict prints the last line: the verdict, and the numbers of causes and of undecided rules.
func verdict(b *text.Sheet, r *verify.Result) {
	var count verify.Tally
	waived := int64(0)
	causes := causesOf(r)
	for i := range causes {
		if causes[i].Waiver != nil {
			waived++
			continue
		}
		count[causes[i].Severity]++
	}
	parts := count.Words(verify.Note)
	if n := len(r.Undecided); n > 0 {
		parts = append(parts, text.Grouped(n)+" undecided")
	}
	if waived > 0 {
		parts = append(parts, text.Grouped(waived)+" waived")
	}
	verdict := r.Verdict
	if len(parts) > 0 {
		verdict += " (" + strings.Join(parts, ", ")
		if len(causes) != len(r.Findings) {
			verdict += "; " + text.CountGrouped(len(r.Findings), "finding", "findings") + " in all"
		}
		verdict += ")"
	}
	fmt.Fprintln(b)
	b.Row("verdict", "%s", verdict)
}
