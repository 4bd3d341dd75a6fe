package move

import (
	"fmt"

	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
)

// Print writes a plan for people.
func (p *Plan) Print(b *text.Sheet) {
	out, in := 0, 0
	for i := range p.Steps {
		out, in = out+len(p.Steps[i].Unplug), in+len(p.Steps[i].Plug)
	}
	b.Row("move", "%s unplugged and %d plugged in, in %s", text.Count(out, "cable is", "cables are"), in, text.Count(len(p.Steps), "step", "steps"))
	loads := []drain.Load{p.Before}
	for i := range p.Steps {
		if x := p.Steps[i].Drained; x != nil {
			loads = append(loads, x.Load)
		}
		loads = append(loads, p.Steps[i].After.Load)
	}
	drain.PrintBefore(b, loads)
	for i := range p.Steps {
		p.Steps[i].print(b, i+1)
	}
	for _, r := range p.Refused {
		fmt.Fprintf(b, "\nerror: not moved, %s\n", r.Reason)
		printLinks(b, "unplug", r.Unplug)
		printLinks(b, "plug", r.Plug)
	}
}

func (s *Step) print(b *text.Sheet, number int) {
	fmt.Fprintf(b, "\nstep %d\n", number)
	printLinks(b, "unplug", s.Unplug)
	printLinks(b, "plug", s.Plug)
	for _, x := range []struct {
		what      string
		of        Nodes
		one, many string
	}{
		{"down meanwhile: adapters of", s.Down, "host", "hosts"},
		{"gone for good: adapters of", s.Gone, "host", "hosts"},
		{"gone for good:", s.GoneSwitches, "switch", "switches"},
		{"new:", s.NewSwitches, "switch", "switches"},
		{"new: adapters of", s.Come, "host", "hosts"},
	} {
		if x.of.hosts > 0 {
			fmt.Fprintf(b, "  %s %s, %s\n", x.what, text.Count(x.of.hosts, x.one, x.many), hostlist.Shorten(x.of.names))
		}
	}
	t := b.Table()
	fmt.Fprintln(t, "  TABLES\tBUSIEST\tFACTOR\tWRITE\tORDER\tVERDICT\tUNPLUGGED")
	row := func(name string, x *State) {
		fmt.Fprintf(t, "  %s\t%d\t%.2f\t%s\t%s\t%s\t%s\n", name, x.MaxRoutes, x.Factor, x.Write.Writes(), newFirst(x.WriteFirst)+x.Write.OrderText(), x.Verdict, x.Unplugged)
	}
	if s.Drained != nil {
		row("drained", s.Drained)
	}
	row("after", &s.After)
	if len(s.Plug) > 0 {
		fmt.Fprintf(t, "  back 2\t\t\t%s\t%s\t%s\t\n", s.After.Back.Writes(), s.After.Back.OrderText(), s.After.Back.Verdict(""))
	}
	if d := s.Drained; d != nil {
		fmt.Fprintf(t, "  back 1\t\t\t%s\t%s\t%s\t\n", d.Back.Writes(), newFirst(d.BackFirst)+d.Back.OrderText(), d.Back.Verdict(""))
	}
	_ = t.Flush() // never fails
	if s.Drained != nil && s.Drained.Cuts {
		fmt.Fprintln(b, "  some of those that are unplugged are cut off once the drained tables are written")
	}
	if s.After.BackCuts {
		fmt.Fprintln(b, "  some of those that are plugged in are cut off once the tables of back 2 are written")
	}
}

// newFirst returns in words how many switches are written before the others.
func newFirst(list []fabric.GUID) string {
	if len(list) == 0 {
		return ""
	}
	return text.Count(len(list), "new switch first, ", "new switches first, ")
}

// printLinks lists cables, only the first of many.
func printLinks(b *text.Sheet, verb string, links []Link) {
	const most = 8
	for i, l := range links {
		if i == most && len(links) > most+1 {
			fmt.Fprintf(b, "  %-7s and %d more\n", "", len(links)-most)
			return
		}
		fmt.Fprintf(b, "  %-7s %s -- %s  %s\n", verb, l.A.Unquoted(), l.B.Unquoted(), l.Rate)
		verb = ""
	}
}
