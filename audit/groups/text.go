package groups

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// mostRows is how many groups a table has at most, unless all are wanted.
const mostRows = 20

// States is the groups of a state, as a table by String: one line for each group, and where
// there are many, for those that something is wrong with.
type States []State

// String is the table.
func (list States) String() string {
	rows := list
	rest := ""
	if len(rows) > mostRows {
		rows = slices.DeleteFunc(slices.Clone(rows), func(x State) bool { return !x.isBad() })
		if n := len(list) - len(rows); n > 0 {
			rest = fmt.Sprintf("  and %s that nothing is wrong with\n", text.CountGrouped(n, "group", "groups"))
		}
		if n := len(rows) - mostRows; n > 0 {
			rows, rest = rows[:mostRows], fmt.Sprintf("  and %s, see --format json\n", text.CountGrouped(len(list)-mostRows, "more group", "more groups"))
		}
	}
	return table("HOST GROUP\tHOSTS\tUPLINKS\tBUSIEST\tLOST PAIRS\tFINDINGS", rows, func(x State) []string {
		hosts := fmt.Sprint(x.Hosts)
		if x.Absent > 0 {
			hosts += fmt.Sprintf(" of %d", x.Hosts+x.Absent)
		}
		if x.CutOff > 0 {
			hosts += fmt.Sprintf(", %d cut off", x.CutOff)
		}
		return []string{x.name(), hosts, fmt.Sprint(x.Uplinks), x.busiest(), x.lost(), x.findings()}
	}) + rest
}

// isBad says whether something is wrong with a group.
func (x *State) isBad() bool {
	return x.Absent > 0 || x.CutOff > 0 || x.Traffic != nil && x.Lost > 0 ||
		slices.ContainsFunc(x.Findings, func(f Findings) bool { return f.Severity > verify.Note })
}

func (x *State) name() string { return x.Grouping + " " + x.Group }

func (x *State) busiest() string {
	if x.Traffic == nil {
		return "-"
	}
	return text.Grouped(x.MaxRoutes)
}

func (x *State) lost() string {
	if x.Traffic == nil {
		return "-"
	}
	return text.Grouped(x.Lost)
}

// findings counts the findings of each severity.
func (x *State) findings() string {
	var count verify.Tally
	for _, f := range x.Findings {
		count[f.Severity] += int64(f.Count)
	}
	return cmp.Or(strings.Join(count.Words(verify.Note), ", "), "-")
}

// table aligns rows under a head, and leaves columns out in which nothing is said.
func table[T any](head string, rows []T, cells func(T) []string) string {
	lines := [][]string{strings.Split(head, "\t")}
	for _, x := range rows {
		lines = append(lines, cells(x))
	}
	if len(rows) == 0 {
		return ""
	}
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
	_ = w.Flush() // a buffer takes all
	return b.String()
}

// change is a group before and after.
type change struct{ old, now *State }

// Changes is a table of the groups that lose or win hosts, uplinks or pairs, or whose busiest
// uplink has more routes, those that lose the greatest part of their uplinks first. It is "" without
// any.
func Changes(old, now []State, all bool) string {
	var rows []change
	unchanged := 0
	for i := range now {
		rows = append(rows, change{now[i].In(old), &now[i]})
	}
	for i := range old {
		if !slices.ContainsFunc(now, old[i].isSame) {
			rows = append(rows, change{&old[i], old[i].In(now)})
		}
	}
	unchanged = len(rows)
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
		uplinks := arrow(fmt.Sprint(x.old.Uplinks), fmt.Sprint(x.now.Uplinks))
		if share := x.lostShare(); share > 0 {
			uplinks += fmt.Sprintf(", loses %s", percent(x.old.Uplinks-x.now.Uplinks, x.old.Uplinks))
		}
		return []string{x.now.name(), arrow(fmt.Sprint(x.old.connected()), fmt.Sprint(x.now.connected())), uplinks, arrow(x.old.busiest(), x.now.busiest()), arrow(x.old.lost(), x.now.lost())}
	}) + rest
}

// isSame says whether two states are of one group.
func (x *State) isSame(y State) bool { return x.Grouping == y.Grouping && x.Group == y.Group }

// In is the group of a state in another list; without hosts where it is not there.
func (x *State) In(list []State) *State {
	if i := slices.IndexFunc(list, x.isSame); i >= 0 {
		return &list[i]
	}
	none := &State{Grouping: x.Grouping, Group: x.Group}
	if x.Traffic != nil {
		none.Traffic = &Traffic{}
	}
	return none
}

// connected is the hosts that are not cut off.
func (x *State) connected() int { return x.Hosts - x.CutOff }

func (x *change) isChanged() bool {
	a, b := x.old, x.now
	return a.connected() != b.connected() || a.Uplinks != b.Uplinks || a.lost() != b.lost() ||
		a.Traffic != nil && b.Traffic != nil && b.MaxRoutes > a.MaxRoutes
}

// lostShare is the part of its uplinks that a group loses.
func (x *change) lostShare() float64 {
	if x.now.Uplinks >= x.old.Uplinks {
		return 0
	}
	return float64(x.old.Uplinks-x.now.Uplinks) / float64(x.old.Uplinks)
}

// arrow is "8 -> 4", or "8" for no change.
func arrow(old, now string) string {
	if old == now {
		return now
	}
	return old + " -> " + now
}

// percent is a part in whole percent; less than half a percent is not 0.
func percent(part, all int) string {
	share := 100 * float64(part) / float64(all)
	if share < 0.5 {
		return "less than 1 %"
	}
	return fmt.Sprintf("%.0f %%", share)
}

// WorstTable is a table of what groups lose, those that lose most first.
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
		return []string{w.Grouping + " " + w.Group, fmt.Sprint(w.Hosts), fmt.Sprint(w.CutOff), fmt.Sprint(w.AllLinks), loses, fmt.Sprint(w.Failures), cmp.Or(strings.ReplaceAll(w.by, `"`, ""), "-")}
	}) + rest
}
