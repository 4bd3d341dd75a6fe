package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// few bounds the lines of a list, unless all are wanted.
const few = 5

// Print writes a result for people: figures first, then details. verbose prints whole lists, and
// every entry that changed.
func (r *Result) Print(b *text.Sheet, verbose bool) {
	t := &printer{b, verbose}
	t.printFigures(r)
	t.printFindings(r)
	t.printTransition(r)
	t.printChanges(r)
	t.printTables(r)
	t.printAffected(r)
	groups.Print(b, groups.Changes(r.Old.Groups, r.New.Groups, verbose))
	t.printMulticast(r)
	t.printVerdict(r)
}

type printer struct {
	*text.Sheet
	verbose bool
}

// section prints a title and a line for each item of a list, or for the first of them.
func section[T any](t *printer, title string, list []T, line func(x *T) string) {
	shown := len(list)
	if shown > few+1 && !t.verbose {
		shown = few
	}
	t.Section(title, len(list), shown, func(i int) string { return line(&list[i]) })
}

// printFigures prints a line for each kind of difference, and one for the kinds without any.
func (t *printer) printFigures(r *Result) {
	side := func(name string, s *Side) {
		lids := "no LIDs"
		if s.MaxLID > 0 {
			lids = fmt.Sprintf("LIDs up to %d", s.MaxLID)
		}
		t.Row(name, "%s: %s, %s, %s, %s", s.Name, text.CountGrouped(s.Switches, "switch", "switches"),
			text.CountGrouped(s.CAPorts, "CA port", "CA ports"), text.CountGrouped(s.Links, "link", "links"), lids)
	}
	side("old", &r.Old)
	side("new", &r.New)
	var equal []string
	for _, d := range r.differences() {
		if d.count == 0 {
			equal = append(equal, d.name)
		} else {
			t.Row(d.name, "%s", d.line)
		}
	}
	if len(equal) > 0 {
		t.Row("equal", "%s", strings.Join(equal, ", "))
	}
	if single := text.Where(r.Findings, func(x Finding) bool { return x.Rule == NotCompared }); len(single) > 0 {
		t.Row("not compared", "%s", strings.Join(text.Each(single, func(x Finding) string { return x.Message }), ", "))
	}
	if c := r.Transition; c != nil && c.Order.Kind != OrderNone {
		loops := "no forwarding loop"
		if c.Loops > 0 {
			loops = "forwarding loops for " + text.CountGrouped(c.Loops, "LID", "LIDs")
		}
		credit := "no credit loop"
		switch d := &c.CreditLoops; {
		case r.undecided():
			credit = "undecided credit loops"
		case d.Count > 0:
			credit = fmt.Sprintf("%s (old alone %d, new alone %d)", text.CountGrouped(d.Count, "credit loop", "credit loops"), d.Old, d.New)
		}
		t.Row("meanwhile", "%s, %s of old and new entries together", loops, credit)
		order := orderText(&c.Order)
		if c.Unordered > 0 {
			order = "of the other LIDs: " + order
		}
		t.Row("order", "%s", order)
	}
}

// orderText writes an order on one line.
func orderText(o *Order) string {
	switch o.Kind {
	case OrderAny:
		return "any order of switches is free of loops"
	case OrderSwitches:
		sizes := text.Each(o.Stages, func(stage []fabric.GUID) string { return text.Grouped(len(stage)) })
		return fmt.Sprintf("free of loops in %s of switches: %s; --format json lists them", text.CountGrouped(len(sizes), "stage", "stages"), text.Few(sizes, few))
	}
	return "blocks need opposite orders of switches: " + text.CountGrouped(len(o.Blocks), "block", "blocks") + " with an order each, which --format json lists"
}

// printFindings prints errors and warnings.
func (t *printer) printFindings(r *Result) {
	for i, f := range r.Findings { // the gravest first
		if f.Severity <= verify.Note {
			break
		}
		if i == 0 {
			fmt.Fprintln(t)
		}
		fmt.Fprintf(t, "%s: %s: %s\n", f.Severity, f.Rule, f.Message)
	}
}

// printChanges prints nodes, cables and LIDs.
func (t *printer) printChanges(r *Result) {
	node := func(n *NodeRef) string { return fmt.Sprintf("%s %s %q", n.Type, n.GUID, n.Name.Text) }
	section(t, "nodes that went", r.Nodes.Gone, node)
	section(t, "new nodes", r.Nodes.New, node)
	section(t, "nodes that were replaced", r.Nodes.Replaced, func(x *Replacement) string {
		return fmt.Sprintf("%s is now %s %q", node(&x.Old), x.New.GUID, x.New.Name.Text)
	})
	section(t, "nodes that changed", r.Nodes.Changed, func(x *NodeChange) string {
		s := node(&x.Node)
		for _, f := range x.Fields {
			s += fmt.Sprintf("  %s %s -> %s", f.Name, f.Old, f.New)
		}
		return s
	})
	link := func(l *LinkRef) string { return strings.TrimRight(fmt.Sprintf("%s -- %s  %s", l.A, l.B, l.Link), " ") }
	section(t, "links that went", r.Links.Gone, link)
	section(t, "new links", r.Links.New, link)
	section(t, "links that moved", r.Links.Moved, func(x *LinkMove) string {
		return fmt.Sprintf("%s: from %s to %s", x.End, x.Old, x.New)
	})
	section(t, "links with another width or speed", r.Links.Changed, func(x *LinkChange) string {
		return fmt.Sprintf("%s -- %s: %s -> %s", x.Link.A, x.Link.B, x.Old, x.New)
	})
	lid := func(l fabric.LID, lmc uint8) string {
		switch {
		case l == 0:
			return "none"
		case lmc > 0:
			return fmt.Sprintf("%d to %d", l, int(l)+1<<lmc-1)
		}
		return fmt.Sprint(l)
	}
	if r.LIDs == nil {
		return
	}
	section(t, "ports with other LIDs", r.LIDs.Changed, func(x *LIDChange) string {
		return fmt.Sprintf("%s: %s -> %s", x.Port, lid(x.Old, x.OldLMC), lid(x.New, x.NewLMC))
	})
}

func entryText(p fabric.PortNum, labels fabric.PortLabels) string {
	if p == fabric.NoPath {
		return "none"
	}
	return labels.Text(p)
}

func (t *printer) printTables(r *Result) {
	if d := r.LFTs; d != nil {
		most := slices.DeleteFunc(slices.Clone(d.Switches), func(x SwitchChange) bool { return x.Changed == 0 })
		title := "switches with entries that changed"
		if !t.verbose && len(most) > 1 {
			slices.SortStableFunc(most, func(a, b SwitchChange) int {
				return cmp.Or(-cmp.Compare(a.Changed, b.Changed), -cmp.Compare(a.Blocks, b.Blocks))
			})
			title += ", the most first"
		}
		section(t, title, most, func(x *SwitchChange) string {
			s := fmt.Sprintf("%q  %s  %s in %s", x.Name.Text, x.Switch, text.CountGrouped(x.Changed, "entry", "entries"), text.CountGrouped(x.Blocks, "block", "blocks"))
			if !t.verbose && d.Changed > few {
				return s
			}
			for _, e := range x.Entries {
				was := ""
				if e.OldLID != 0 {
					was = fmt.Sprintf(" (was %d)", e.OldLID)
				}
				s += fmt.Sprintf("\n        LID %d%s: port %s -> %s", e.LID, was, entryText(e.Old, x.Labels), entryText(e.New, x.Labels))
			}
			return s
		})
	}
	if d := r.SL2VL; d != nil {
		section(t, "SL-to-VL maps that changed", d.Ports, func(x *MapChange) string {
			return fmt.Sprintf("%s in by port %s: %v -> %v", x.Out, fabric.PortLabels{x.In: x.InLabel}.Text(x.In), x.Old, x.New)
		})
	}
	if d := r.Adaptive; d != nil {
		section(t, "choices of adaptive switches that changed", d.Switches, func(x *ChoiceChange) string {
			return fmt.Sprintf("%s: %s", x.Name, text.CountGrouped(x.Changed, "entry", "entries"))
		})
	}
}

// printAffected prints the destinations with the most affected pairs.
func (t *printer) printAffected(r *Result) {
	p := r.Pairs
	if p == nil {
		return
	}
	list := p.Destinations
	if !t.verbose {
		list = list[:min(few, len(list))]
	}
	t.Section("destinations with pairs that are affected, the worst first", p.AllDestinations, len(list), func(i int) string {
		x := &list[i]
		return fmt.Sprintf("%s  LID %d  %s", x.Port, x.LID, join(counted(x.Lost, "lost"), counted(x.Gained, "gained"),
			counted(x.Rerouted, "rerouted"), counted(x.Longer, "longer"), counted(x.Shorter, "shorter")))
	})
}

// printTransition prints the loops that mixtures of old and new entries can have.
func (t *printer) printTransition(r *Result) {
	c := r.Transition
	if c == nil {
		return
	}
	cycles := func(title string, list [][]MixedHop, all int, lane bool) {
		for i, cycle := range list {
			if i == 1 && !t.verbose {
				break
			}
			what := title
			if i == 0 && all > 1 && !t.verbose {
				what += fmt.Sprintf(", the first of %s", text.Grouped(all))
			}
			fmt.Fprintf(t, "\n%s:\n", what)
			w := t.Table()
			for _, h := range cycle {
				vl := ""
				if lane {
					vl = fmt.Sprintf(" VL %d", h.VL)
				}
				fmt.Fprintf(w, "    %s\t%s%s\tto LID %d by its %s\n", h, h.Switch, vl, h.LID, map[string]string{"old": "old entry", "new": "new entry", "both": "entry"}[h.Table])
			}
			_ = w.Flush()
		}
	}
	cycles("a forwarding loop of old and new entries", c.Cycles, c.Loops, false)
	cycles("a credit loop of old and new paths", c.CreditLoops.Cycles, c.CreditLoops.Count, true)
	cycles("a credit loop of old and new paths, those of switches among them", c.CreditLoops.ManagementCycles, c.CreditLoops.Management, true)
}

func (t *printer) printMulticast(r *Result) {
	d := r.Multicast
	if d == nil {
		return
	}
	section(t, "multicast masks that changed", d.Changed, func(x *MLIDChange) string {
		s := fmt.Sprintf("MLID %#04x: %s", uint16(x.MLID), text.CountGrouped(len(x.Masks), "switch", "switches"))
		if x.Transient != "" {
			s += "; by old and new masks together " + x.Transient
		}
		if !t.verbose && len(x.Masks) > few {
			return s
		}
		for _, m := range x.Masks {
			s += fmt.Sprintf("\n        %s: ports %v -> %v", m.Name, m.Labels.Texts(m.Old), m.Labels.Texts(m.New))
		}
		return s
	})
}

// printVerdict prints the last line.
func (t *printer) printVerdict(r *Result) {
	var count verify.Tally
	for _, f := range r.Findings {
		count[f.Severity]++
	}
	verdict := "different"
	if r.Equal {
		verdict = "equal"
	}
	if words := count.Words(verify.Warning); words != nil {
		verdict += " (" + strings.Join(words, ", ") + ")"
	}
	fmt.Fprintf(t, "\nverdict      %s\n", verdict)
}
