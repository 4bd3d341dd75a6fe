package drain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/audit/groups"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
)

// Print writes a plan for people; parts is how many were to be drained.
func (p *Plan) Print(b *text.Sheet, parts int) {
	drained := parts - len(p.Refused)
	b.Row("drain", "%d of %s in %s", drained, text.Count(parts, "part", "parts"), text.Count(len(p.Windows), "window", "windows"))
	loads := []Load{p.Before}
	for i := range p.Windows {
		for k := range p.Windows[i].Steps {
			loads = append(loads, p.Windows[i].Steps[k].Load)
		}
	}
	PrintBefore(b, loads)
	for i := range p.Windows {
		w := &p.Windows[i]
		fmt.Fprintf(b, "\nwindow %d\n", i+1)
		t := b.Table()
		fmt.Fprintln(t, "  STEP\tDRAIN\tBUSIEST\tFACTOR\tWRITE\tORDER\tVERDICT\tUNPLUGGED")
		for k := range w.Steps {
			s := &w.Steps[k]
			fmt.Fprintf(t, "  %d\t%s\t%d\t%.2f\t%s\t%s\t%s\t%s\n", k+1, strings.ReplaceAll(s.Part, `"`, ""), s.MaxRoutes, s.Factor, s.Drain.Writes(), s.Drain.OrderText(), s.Verdict, s.Unplugged)
		}
		for k := len(w.Steps) - 1; k >= 0; k-- {
			s := &w.Steps[k]
			fmt.Fprintf(t, "  back %d\t%s\t\t\t%s\t%s\t%s\t\n", k+1, strings.ReplaceAll(s.Part, `"`, ""), s.Back.Writes(), s.Back.OrderText(), s.Back.Verdict(""))
		}
		_ = t.Flush() // never fails
		if w.Gone > 0 {
			fmt.Fprintf(b, "  without a cable meanwhile: %s, %s\n", text.Count(w.Gone, "adapter", "adapters"), hostlist.Shorten(p.GoneHosts[i]))
		}
		groups.Print(b, groups.Changes(p.Before.Groups, w.Steps[len(w.Steps)-1].Groups, false))
	}
	for _, r := range p.Refused {
		fmt.Fprintf(b, "\nerror: %s cannot be drained: %s\n", r.Part, r.Reason)
	}
}

// PrintBefore writes the first load of a plan and, if loads are not routes, what FACTOR is relative
// to.
func PrintBefore(b *text.Sheet, loads []Load) {
	b.Row("before", "%s on the busiest cable", text.CountGrouped(loads[0].MaxRoutes, "route", "routes"))
	fastest := loads[0].Scale.Fastest.String()
	if fastest != "" && slices.ContainsFunc(loads, func(l Load) bool { return l.MaxRelative != float64(l.MaxRoutes) }) {
		b.Row("factor", "of loads by rate: the routes on a cable, times the rate of %s over its own", fastest)
	}
}

// Writes says what a subnet manager writes.
func (c *Change) Writes() string {
	return fmt.Sprintf("%s on %s", text.CountGrouped(c.Blocks, "block", "blocks"), text.Count(c.Switches, "switch", "switches"))
}

// OrderText returns the order of writes in words.
func (c *Change) OrderText() string {
	switch {
	case c.CreditLoops > 0:
		return text.Count(c.CreditLoops, "credit loop on the way", "credit loops on the way")
	case c.Order.Kind == diff.OrderNone || c.Order.Kind == diff.OrderAny:
		return c.Order.Kind
	}
	return fmt.Sprintf("by %s, in %s", c.Order.Kind, text.Count(max(len(c.Order.Stages), 1), "stage", "stages"))
}
