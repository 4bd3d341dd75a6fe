package move

import (
	"fmt"

	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
)

// Document is the JSON form of a plan.
type Document struct {
	*Plan
	Steps []stepText `json:"steps"`
}

// stepText is a step with its nodes as lists of names with brackets.
type stepText struct {
	*Step
	DownHosts   string `json:"down_hosts"`
	GoneHosts   string `json:"gone_hosts"`
	NewHosts    string `json:"new_hosts"`
	NewNames    string `json:"new_switches"`
	GoneNames   string `json:"gone_switches"`
	hosts       [3]int // how many are down, gone and new
	newS, goneS int
}

// NewDocument names the hosts and switches of a plan.
func NewDocument(p *Plan, nodes *fabric.Fabric) *Document {
	d := &Document{Plan: p, Steps: []stepText{}}
	for i := range p.Steps {
		s := stepText{Step: &p.Steps[i]}
		s.hosts[0], s.DownHosts = names.Fold(nodes, s.Down)
		s.hosts[1], s.GoneHosts = names.Fold(nodes, s.Gone)
		s.hosts[2], s.NewHosts = names.Fold(nodes, s.Come)
		s.newS, s.NewNames = names.Fold(nodes, s.NewSwitches)
		s.goneS, s.GoneNames = names.Fold(nodes, s.GoneSwitches)
		d.Steps = append(d.Steps, s)
	}
	return d
}

// Print writes a plan for people.
func (d *Document) Print(b *text.Sheet) {
	out, in := 0, 0
	for i := range d.Steps {
		out, in = out+len(d.Steps[i].Unplug), in+len(d.Steps[i].Plug)
	}
	b.Row("move", "%s unplugged and %d plugged in, in %s", text.Count(out, "cable is", "cables are"), in, text.Count(len(d.Steps), "step", "steps"))
	loads := []drain.Load{d.Before}
	for i := range d.Steps {
		if x := d.Steps[i].Drained; x != nil {
			loads = append(loads, x.Load)
		}
		loads = append(loads, d.Steps[i].After.Load)
	}
	drain.PrintBefore(b, loads)
	for i := range d.Steps {
		d.Steps[i].print(b, i+1)
	}
	for _, r := range d.Refused {
		fmt.Fprintf(b, "\nerror: not moved, %s\n", r.Reason)
		printLinks(b, "unplug", r.Unplug)
		printLinks(b, "plug", r.Plug)
	}
}

// print writes a step.
func (s *stepText) print(b *text.Sheet, number int) {
	fmt.Fprintf(b, "\nstep %d\n", number)
	printLinks(b, "unplug", s.Unplug)
	printLinks(b, "plug", s.Plug)
	for _, x := range []struct {
		what             string
		n                int
		one, many, names string
	}{
		{"down meanwhile: adapters of", s.hosts[0], "host", "hosts", s.DownHosts},
		{"gone for good: adapters of", s.hosts[1], "host", "hosts", s.GoneHosts},
		{"gone for good:", s.goneS, "switch", "switches", s.GoneNames},
		{"new:", s.newS, "switch", "switches", s.NewNames},
		{"new: adapters of", s.hosts[2], "host", "hosts", s.NewHosts},
	} {
		if x.n > 0 {
			fmt.Fprintf(b, "  %s %s, %s\n", x.what, text.Count(x.n, x.one, x.many), hostlist.Shorten(x.names))
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
	_ = t.Flush() // a buffer takes all
	if s.Drained != nil && s.Drained.Cuts {
		fmt.Fprintln(b, "  some of those that are unplugged are cut off once the drained tables are written")
	}
	if s.After.BackCuts {
		fmt.Fprintln(b, "  some of those that are plugged in are cut off once the tables of back 2 are written")
	}
}

// newFirst says how many switches are written before the others.
func newFirst(list []fabric.GUID) string {
	if len(list) == 0 {
		return ""
	}
	return text.Count(len(list), "new switch first, ", "new switches first, ")
}

// printLinks lists cables, the first of many.
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
