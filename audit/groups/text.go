package groups

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// mostRows bounds the groups of a table, unless all are wanted.
const mostRows = 20

// States are the groups of a state. String prints them as a table: a line for each group or, if
// there are too many, for each group with a problem.
type States []State

// String returns the table.
func (list States) String() string {
	rows, rest := list, ""
	if len(rows) > mostRows {
		rows = slices.DeleteFunc(slices.Clone(rows), func(x State) bool { return !x.isBad() })
		if n := len(list) - len(rows); n > 0 {
			rest = fmt.Sprintf("  and %s that nothing is wrong with\n", text.CountGrouped(n, "group", "groups"))
		}
		if len(rows) > mostRows {
			rest = fmt.Sprintf("  and %s, see --format json\n", text.CountGrouped(len(list)-mostRows, "more group", "more groups"))
		}
	}
	return table("HOST GROUP\tHOSTS\tUPLINKS\tBUSIEST\tLOST PAIRS\tFINDINGS", rows[:min(len(rows), mostRows)], func(x State) []string {
		hosts := fmt.Sprint(x.Hosts)
		if x.Absent > 0 {
			hosts += fmt.Sprintf(" of %d", x.Hosts+x.Absent)
		}
		if x.CutOff > 0 {
			hosts += fmt.Sprintf(", %d cut off", x.CutOff)
		}
		var count verify.Tally
		for _, f := range x.Findings {
			count[f.Severity] += int64(f.Count)
		}
		busiest, lost := x.traffic()
		return []string{x.Name.String(), hosts, fmt.Sprint(x.Uplinks), busiest, lost, cmp.Or(strings.Join(count.Words(verify.Note), ", "), "-")}
	}) + rest
}

// isBad returns true if a group has a problem.
func (x *State) isBad() bool {
	return x.Absent > 0 || x.CutOff > 0 || x.Traffic != nil && x.Lost > 0 ||
		slices.ContainsFunc(x.Findings, func(f Findings) bool { return f.Severity > verify.Note })
}

// traffic returns the cells of the busiest uplink and of lost pairs, "-" without tables.
func (x *State) traffic() (busiest, lost string) {
	if x.Traffic == nil {
		return "-", "-"
	}
	return text.Grouped(x.MaxRoutes), text.Grouped(x.Lost)
}

// table aligns rows under a head, and leaves out columns that have only "-".
func table[T any](head string, rows []T, cells func(T) []string) string {
	if len(rows) == 0 {
		return ""
	}
	lines := append([][]string{strings.Split(head, "\t")}, text.Each(rows, cells)...)
	var b text.Sheet
	w := b.Table()
	for _, line := range lines {
		var shown []string
		for i, cell := range line {
			if slices.ContainsFunc(lines[1:], func(l []string) bool { return l[i] != "-" }) {
				shown = append(shown, cell)
			}
		}
		fmt.Fprintf(w, "  %s\n", strings.Join(shown, "\t"))
	}
	_ = w.Flush() // never fails
	return b.String()
}

// change is a group before and after.
type change struct{ old, now *State }

// Changes returns a table of the groups that lose or gain hosts, uplinks or pairs, or whose busiest
// uplink has more routes; "" for none. The greatest lost parts of uplinks come first. all lists any
// number of groups.
func Changes(old, now []State, all bool) string {
	var rows []change
	for i := range now {
		rows = append(rows, change{now[i].In(old), &now[i]})
	}
	for i := range old {
		if old[i].index(now) < 0 {
			rows = append(rows, change{&old[i], old[i].In(now)})
		}
	}
	unchanged := len(rows)
	rows = slices.DeleteFunc(rows, func(x change) bool { return !x.isChanged() })
	unchanged -= len(rows)
	slices.SortStableFunc(rows, func(a, b change) int { return cmp.Compare(b.lostShare(), a.lostShare()) })
	rest := ""
	if unchanged > 0 && len(rows) > 0 {
		rest = fmt.Sprintf("  and %s as before\n", text.CountGrouped(unchanged, "group", "groups"))
	}
	if n := len(rows) - mostRows; n > 0 && !all {
		rows, rest = rows[:mostRows], fmt.Sprintf("  and %s, see --format json\n", text.CountGrouped(n, "more group that changes", "more groups that change"))
	}
	return table("HOST GROUP\tHOSTS\tUPLINKS\tBUSIEST\tLOST PAIRS", rows, func(x change) []string {
		// Each cell is "8 -> 4", or "8" for no change.
		arrow := func(old, now string) string {
			if old == now {
				return now
			}
			return old + " -> " + now
		}
		uplinks := arrow(fmt.Sprint(x.old.Uplinks), fmt.Sprint(x.now.Uplinks))
		if x.lostShare() > 0 {
			uplinks += fmt.Sprintf(", loses %s", percent(x.old.Uplinks-x.now.Uplinks, x.old.Uplinks))
		}
		busiest, lost := x.old.traffic()
		busiestNow, lostNow := x.now.traffic()
		return []string{x.now.Name.String(), arrow(fmt.Sprint(x.old.connected()), fmt.Sprint(x.now.connected())), uplinks, arrow(busiest, busiestNow), arrow(lost, lostNow)}
	}) + rest
}

// index returns the index of a group in another list, -1 if it is not there.
func (x *State) index(list []State) int {
	return slices.IndexFunc(list, func(y State) bool { return x.Name == y.Name })
}

// In returns the state of a group in another list; one without hosts if it is not there.
func (x *State) In(list []State) *State {
	if i := x.index(list); i >= 0 {
		return &list[i]
	}
	none := &State{Name: x.Name}
	if x.Traffic != nil {
		none.Traffic = &Traffic{}
	}
	return none
}

// connected counts the hosts that are not cut off.
func (x *State) connected() int { return x.Hosts - x.CutOff }

func (x *change) isChanged() bool {
	a, b := x.old, x.now
	traffic := a.Traffic != nil && b.Traffic != nil && (a.Lost != b.Lost || b.MaxRoutes > a.MaxRoutes)
	return a.connected() != b.connected() || a.Uplinks != b.Uplinks || (a.Traffic == nil) != (b.Traffic == nil) || traffic
}

// lostShare returns the part of its uplinks that a group loses.
func (x *change) lostShare() float64 {
	return max(0, float64(x.old.Uplinks-x.now.Uplinks)/float64(max(1, x.old.Uplinks)))
}

// percent writes a part in whole percent; less than half a percent is not written as 0.
func percent(part, all int) string {
	share := 100 * float64(part) / float64(all)
	if share < 0.5 {
		return "less than 1 %"
	}
	return fmt.Sprintf("%.0f %%", share)
}

// WorstTable returns a table of the losses of groups, those that lose most first.
func WorstTable(list []Worst) string {
	share := func(w Worst) float64 { return float64(w.Uplinks) / float64(max(w.AllLinks, 1)) }
	rows := slices.Clone(list)
	slices.SortStableFunc(rows, func(a, b Worst) int {
		return cmp.Or(cmp.Compare(share(b), share(a)), cmp.Compare(b.CutOff, a.CutOff))
	})
	rest := ""
	if n := len(rows) - mostRows; n > 0 {
		rows, rest = rows[:mostRows], fmt.Sprintf("  and %s that lose no more, see --format json\n", text.CountGrouped(n, "group", "groups"))
	}
	return table("HOST GROUP\tHOSTS\tCUT OFF\tUPLINKS\tLOSES\tFAILURES\tTHE WORST", rows, func(w Worst) []string {
		loses := "0"
		if w.Uplinks > 0 {
			loses = fmt.Sprintf("%d, %s", w.Uplinks, percent(w.Uplinks, w.AllLinks))
		}
		return []string{w.Name.String(), fmt.Sprint(w.Hosts), fmt.Sprint(w.CutOff), fmt.Sprint(w.AllLinks), loses, fmt.Sprint(w.Failures), cmp.Or(strings.ReplaceAll(w.by, `"`, ""), "-")}
	}) + rest
}

// Print writes a table of groups behind an empty line; nothing for "".
func Print(b *text.Sheet, table string) {
	if table != "" {
		fmt.Fprintf(b, "\n%s", table)
	}
}
