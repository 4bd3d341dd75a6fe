package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/audit/experiment"
	"github.com/ibweave/ibweave/internal/text"
)

// writeCompared prints the table of a comparison.
func writeCompared(w *text.Sheet, r *experiment.Run) {
	order := r.Choosing()
	t := w.Numbers()
	head := "load\tbytes\trouting\taccepted\tgain\tp50 ns\tp99 ns\ttime us\t"
	if order {
		head += "out of order\t"
	}
	fmt.Fprintln(t, head+"limit\tstate\t")
	for i := range r.Compared {
		c := &r.Compared[i]
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%.0f\t%.0f\t%.3f\t",
			text.Decimals(c.Load, text.Exact, c.Load > 0), c.Bytes, c.Routing, text.Decimals(c.Accepted, 4, true), c.Gain, c.P50, c.P99, c.Time/1000)
		if order {
			fmt.Fprintf(t, "%.2f %%\t", 100*c.OutOfOrder)
		}
		fmt.Fprintf(t, "%s\t%s\t\n", counted(c.Limits), counted(c.States))
	}
	_ = t.Flush() // a buffer takes all
	first := r.Routings[0].Name()
	if first == experiment.Static {
		first = "the static tables"
	}
	said := "gain is how much more is accepted than with " + first
	if n := len(r.Seeds); n > 1 {
		said += fmt.Sprintf(", with the 95 %% interval over %s", text.CountGrouped(n, "seed", "seeds"))
	} else {
		said += "; more seeds give it an interval, --seed 1,2,3"
	}
	fmt.Fprintf(w, "\n%s\n", said)
}

// counted lists the states or limits of seeds: how many have each, where they differ.
func counted(seeds map[string]int) string {
	names := slices.Sorted(maps.Keys(seeds))
	if len(names) == 1 {
		return names[0]
	}
	for i, s := range names {
		names[i] = fmt.Sprintf("%d %s", seeds[s], s)
	}
	return strings.Join(names, ", ")
}
