package whatif

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/audit/groups"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// title returns in words which failures were tried.
func (r *Result) title() string {
	one, more := "cable", "cables"
	switch {
	case r.Fail == Switches:
		one, more = "switch", "switches"
	case r.Only == "isl":
		one, more = "cable between switches", "cables between switches"
	case r.Only == "hosts":
		one, more = "cable of a host", "cables of hosts"
	}
	said := "every " + one
	if r.Depth == 2 {
		said = "every two " + more
	}
	if r.Sample > 0 && r.Sample == r.Failures {
		said = fmt.Sprintf("a sample with seed %d of %s", r.Seed, said)
	}
	if len(r.At) > 0 {
		said += " at " + strings.Join(text.Each(r.At, fabric.GUID.String), " or ")
	}
	said += fmt.Sprintf(": %s", text.CountGrouped(len(r.Cases), "failure", "failures"))
	if r.Shard != "" {
		said += fmt.Sprintf(", shard %s of %s", r.Shard, text.Grouped(r.Failures))
	}
	return said
}

// Print writes a result for people: the first failures in an order, at most top.
func (r *Result) Print(b *text.Sheet, top int, order string) {
	b.Width = 15
	t := r.Totals()
	b.Row("failures", "%s", r.title())
	b.Row("engine", "%s", r.Engine)
	onFastest := func(load float64) string {
		if r.Before.Fastest == "" {
			return ""
		}
		return fmt.Sprintf(", in time as many as %s on %s", text.Grouped(int64(math.Round(load))), r.Before.Fastest)
	}
	b.Row("before", "%s pairs, %s unreachable; %s; at most %s routes on a link%s", text.Grouped(r.Before.Pairs), text.Grouped(r.Before.Unreachable),
		text.CountGrouped(r.Before.CreditLoops, "credit loop", "credit loops"), text.Grouped(r.Before.MaxRoutes), onFastest(r.Before.MaxRelative))
	b.Row("single points", "%s that still have a cable", text.CountGrouped(t.Lost, "failure separates ports", "failures separate ports"))
	b.Row("own cables", "%s", text.CountGrouped(t.Gone, "failure takes the only cable of a port", "failures take the only cable of a port"))
	b.Row("credit loops", "%s", text.CountGrouped(t.CreditLoops, "failure brings one", "failures bring one"))
	if r.Before.Hosts > 0 {
		b.Row("hosts at once", "%s of a host until tables are written, of at most %s; for good: %s, of at most %s", text.CountGrouped(t.Away, "failure takes all ports", "failures take all ports"),
			text.CountGrouped(t.MaxAway, "host", "hosts"), text.Grouped(t.CutOff), text.Grouped(t.MaxCutOff))
	}
	if t.Refused > 0 {
		b.Row("refused", "%s", text.CountGrouped(t.Refused, "failure leaves a fabric that the engine cannot do", "failures leave fabrics that the engine cannot do"))
	}
	b.Row("load", "at most %s routes on a link%s", text.Grouped(t.MaxRoutes), onFastest(t.MaxRelative))
	b.Row("to write", "%.1f blocks of 64 entries on average, at most %s", t.MeanBlocks, text.Grouped(t.MaxBlocks))
	if t.RoutedFromScratch < len(r.Cases) {
		b.Row("rebalanced", "at most %s routes on a link%s; %.1f blocks on average, at most %s",
			text.Grouped(t.Last.MaxRoutes), onFastest(t.Last.MaxRelative), t.Last.MeanBlocks, text.Grouped(t.Last.MaxBlocks))
	}
	if t.RoutedFromScratch > 0 {
		b.Row("", "%s routed from scratch, not mended", text.CountGrouped(t.RoutedFromScratch, "failure", "failures"))
	}
	groups.Print(b, groups.WorstTable(t.Groups))
	if len(r.Cases) == 0 || top == 0 {
		return
	}
	list := slices.Clone(r.Cases)
	folded := r.Only != "hosts" && order == "harm" && t.Trivial > 1
	if folded {
		list = slices.DeleteFunc(list, func(c Case) bool { return c.Trivial(&r.Before) })
	}
	fmt.Fprintln(b)
	if len(list) > 0 {
		printTable(b, list[:min(top, len(list))], r.Before.Fastest)
	}
	printHosts(b, list, top)
	if left := len(list) - top; left > 0 {
		less := "and %s, see --top and --format json\n"
		if order == "harm" {
			fmt.Fprintf(b, less, text.CountGrouped(left, "failure that does less harm", "failures that do less harm"))
		} else {
			fmt.Fprintf(b, less, text.CountGrouped(left, "more failure", "more failures"))
		}
	}
	if folded {
		what := "and %s of host cables: each cuts off its own hosts only, at most %s; --only hosts lists them\n"
		fmt.Fprintf(b, what, text.CountGrouped(t.Trivial, "failure", "failures"), text.CountGrouped(t.Cut, "pair", "pairs"))
	}
}

// printTable writes a line for each case; relative loads are routes on rate fastest, if any.
func printTable(b *text.Sheet, cases []Case, fastest string) {
	rows := [][]string{{"lost", "loops", "gone", "most", "blocks", "entries", "last", "blocks", "entries", ""}}
	if fastest != "" {
		rows[0] = slices.Insert(rows[0], 4, "on "+fastest)
	}
	n := func(n int64) string { return text.Grouped(n) }
	for i := range cases {
		c := &cases[i]
		cells := []string{n(c.Lost), strconv.Itoa(c.CreditLoops), n(c.Gone), n(c.MaxRoutes), n(int64(c.Blocks)), n(int64(c.Entries)), "-", "-", "-", c.Names()}
		if x := c.Last; x != nil {
			cells[6], cells[7], cells[8] = n(x.MaxRoutes), n(int64(x.Blocks)), n(int64(x.Entries))
		}
		relative := n(int64(math.Round(c.MaxRelative)))
		if c.Refused != "" {
			relative, cells = "-", append(slices.Repeat([]string{"-"}, 9), cells[9]+": "+c.Refused)
		}
		if fastest != "" {
			cells = slices.Insert(cells, 4, relative)
		}
		rows = append(rows, cells)
	}
	b.Columns(rows, len(rows[0])-1)
}

// printHosts writes the hosts that lose all their ports at once, for at most top failures.
func printHosts(b *text.Sheet, cases []Case, top int) {
	const most = 5
	cases = slices.DeleteFunc(slices.Clone(cases), func(c Case) bool { return c.Hosts == nil })
	b.Section("failures that take all ports of a host at once", len(cases), min(top, len(cases)), func(i int) string {
		var parts []string
		for _, x := range []struct {
			hosts []string
			until string
		}{{cases[i].Hosts.UntilWritten, "until tables are written"}, {cases[i].Hosts.CutOff, "for good"}} {
			if x.hosts != nil {
				parts = append(parts, fmt.Sprintf("%s %s: %s", text.CountGrouped(len(x.hosts), "host", "hosts"), x.until, text.Few(x.hosts, most)))
			}
		}
		return cases[i].Names() + ": " + strings.Join(parts, "; ")
	})
	if len(cases) > 0 {
		fmt.Fprintln(b)
	}
}
