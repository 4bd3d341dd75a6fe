package rails

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
)

// Document is the JSON form.
type Document struct {
	*Result
	Loads   *Loads `json:"loads,omitempty"` // nil without tables
	Verdict string `json:"verdict"`         // errors, warnings or clean
}

// Print writes rails for people, and the ports of some hosts.
func (d *Document) Print(b *text.Sheet, hosts []*Host) {
	b.Row("rails", "%d by %s of adapters, %s on %s", len(d.Rails), d.By, text.CountGrouped(len(d.Hosts), "host", "hosts"), text.Count(len(d.Leaves), "leaf", "leaves"))
	for _, l := range d.LeftOut {
		b.Row("left out", "%s: %s, %s", l.Reason, text.Count(len(l.Nodes), "adapter", "adapters"), text.Few(slices.Compact(slices.Clone(l.Nodes)), 3))
	}
	t := b.Table()
	fmt.Fprintln(t, "\nRAIL\tADAPTERS\tPORTS\tLEAVES\tMISSING\tMISPLACED\tMEETS OTHERS")
	for _, r := range d.Rails {
		meets := cmp.Or(map[int]string{-1: "nowhere", 0: "on leaves", 1: "on spines"}[r.MeetsAt], fmt.Sprintf("on level %d", r.MeetsAt))
		fmt.Fprintf(t, "%d\t%s\t%d\t%d\t%d\t%d\t%s\n", r.Rail, cmp.Or(text.Few(r.Adapters, 4), "-"), r.Ports, r.Leaves, r.Missing, r.Misplaced, meets)
	}
	if len(hosts) > 0 {
		fmt.Fprintln(t, "\nHOST\tADAPTER\tRAIL\tLEAF")
	}
	for _, h := range hosts {
		for _, p := range h.Ports {
			rail := "-"
			if p.Rail > 0 {
				rail = fmt.Sprint(p.Rail)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", h.Host, cmp.Or(p.Adapter, "-"), rail, p.Leaf.Unquoted())
		}
	}
	_ = t.Flush() // never fails
	d.printLoads(b)
	d.printFindings(b)
}

// printLoads writes the loads of all patterns.
func (d *Document) printLoads(b *text.Sheet) {
	l := d.Loads
	if l == nil {
		return
	}
	t := b.Table()
	fmt.Fprintln(t)
	row := func(name string, cell func(p *PatternLoads) string) {
		fmt.Fprint(t, name)
		for i := range l.Patterns {
			fmt.Fprint(t, "\t", cell(&l.Patterns[i]))
		}
		fmt.Fprintln(t)
	}
	slowdown := func(l Load) string { return fmt.Sprintf("%.2f", l.Slowdown) }
	row("SLOWDOWN", func(p *PatternLoads) string { return strings.ToUpper(p.Pattern) })
	for i, r := range d.Rails {
		row(fmt.Sprintf("rail %d", r.Rail), func(p *PatternLoads) string { return slowdown(p.Rails[i]) })
	}
	row("all at once", func(p *PatternLoads) string { return slowdown(p.Together) })
	fmt.Fprintln(t)
	for _, p := range l.Patterns {
		printBusiest(t, p.Pattern, p.Together)
	}
	printBusiest(t, "between rails", l.Between)
	fmt.Fprint(t, "\n")
	_ = t.Flush() // never fails
	b.Row("inside rails", "%s, %s leave their rail", text.CountGrouped(l.Routes, "route", "routes"), text.Grouped(l.Leaving))
	const most = 10
	for i, e := range l.Exits {
		if i == most {
			b.Row("", "and %d more cables", len(l.Exits)-most)
			break
		}
		b.Row("", "rail %d by %s -> %s, %s", e.Rail, e.From.Unquoted(), e.To.Unquoted(), text.CountGrouped(e.Flows, "route", "routes"))
	}
}

func printBusiest(t io.Writer, name string, l Load) {
	if c := l.Busiest; c != nil {
		fmt.Fprintf(t, "%s\t%s of %s\t%s\t-> %s\n", name, text.Grouped(c.Flows), text.CountGrouped(l.Flows, "flow", "flows"), c.From.Unquoted(), c.To.Unquoted())
		return
	}
	fmt.Fprintf(t, "%s\t0 of %s\tno cable between switches\n", name, text.CountGrouped(l.Flows, "flow", "flows"))
}

// printFindings writes the first findings of each rule.
func (d *Document) printFindings(b *text.Sheet) {
	const most = 20
	all, told := map[string]int{}, map[string]int{}
	for i := range d.Findings {
		all[d.Findings[i].Rule]++
	}
	fmt.Fprintln(b)
	for i := range d.Findings {
		f := &d.Findings[i]
		if told[f.Rule]++; told[f.Rule] <= most {
			fmt.Fprintf(b, "%s: %s [%s]\n", f.Severity, f.Message, f.Rule)
		} else if told[f.Rule] == most+1 {
			fmt.Fprintf(b, "%s: and %s, which --format json lists [%s]\n", f.Severity, text.Count(all[f.Rule]-most, "more finding", "more findings"), f.Rule)
		}
	}
	b.Row("verdict", "%s", d.Verdict)
}
