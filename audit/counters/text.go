package counters

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
)

// Document is the JSON form of a report.
type Document struct {
	Reading string `json:"reading"`     // counts or difference
	Resets  int    `json:"reset_ports"` // ports that were reset between two readings
	*Report
	Hot []sharedChannel `json:"hot"`

	// For Print: there are tables; they are adaptive; the options of Explain.
	Tables   bool    `json:"-"`
	Adaptive bool    `json:"-"`
	Asked    Options `json:"-"`
}

// NewDocument adds to r the hosts that share hot channels, and their groups of set if not nil.
func NewDocument(f *fabric.Fabric, r *Report, set *groups.Set) *Document {
	d := &Document{Report: r, Hot: []sharedChannel{}}
	for _, h := range r.Hot {
		x := sharedChannel{Channel: h}
		if s := h.Sharing; s != nil {
			x.hosts[0], x.Sources = names.Fold(f, s.Sources)
			x.hosts[1], x.Destinations = names.Fold(f, s.Destinations)
			if set != nil {
				x.SourceGroups, x.DestinationGroups = set.Parts(s.Sources), set.Parts(s.Destinations)
			}
		}
		d.Hot = append(d.Hot, x)
	}
	return d
}

// sharedChannel is a channel and the hosts on both sides, as names with brackets.
type sharedChannel struct {
	Channel
	Sources      string `json:"sources,omitempty"`
	Destinations string `json:"destinations,omitempty"`
	// The groups of --host-groups that these are in.
	SourceGroups      []groups.Part `json:"source_groups,omitempty"`
	DestinationGroups []groups.Part `json:"destination_groups,omitempty"`

	hosts [2]int // how many these are
}

// Print writes what counters says for people.
func (d *Document) Print(b *text.Sheet) {
	what := map[string]string{"counts": "counted since their last reset", "difference": "counted between two readings"}[d.Reading]
	if d.Seconds > 0 {
		what += ", in " + strconv.FormatFloat(d.Seconds, 'f', -1, 64) + " s"
	}
	fmt.Fprintf(b, "%d of %d ports with a cable have counters: %s\n", d.Ports, d.Cabled, what)
	if d.Resets > 0 {
		fmt.Fprintf(b, "%s reset between the readings: their errors are lower bounds\n", text.CountGrouped(d.Resets, "port was", "ports were"))
	}
	d.printErrors(b)
	d.printRestarts(b)
	if d.Tables {
		d.printHot(b)
	} else {
		fmt.Fprintln(b, "\nno forwarding tables: no routes to compare with")
	}
}

func (d *Document) printHot(b *text.Sheet) {
	fmt.Fprintf(b, "\n%d of %d channels between switches have known bytes", d.Measured, d.Channels)
	if d.MaxUse > 0 {
		fmt.Fprintf(b, ", and use %s of their rate on average, %s at most", text.Percent(d.MeanUse), text.Percent(d.MaxUse))
	}
	fmt.Fprintln(b)
	if d.Adaptive {
		fmt.Fprintln(b, "routing is adaptive: routes are those of the static ports")
	}
	if d.Stopped > 0 {
		fmt.Fprintf(b, "%s not known: a counter of 32 bits stands still at its end, 17 GB (perfquery -x has 64 bits), wrapped, or was reset\n",
			text.CountGrouped(d.Stopped, "channel's bytes are", "channels' bytes are"))
	}
	if len(d.Hot) == 0 {
		fmt.Fprintf(b, "no channel is hot or congested, with %g times the mean\n", d.Asked.Hot)
		return
	}
	var causes []string
	for _, c := range Causes {
		if n := text.CountIf(d.Hot, func(h sharedChannel) bool { return h.Cause == c }); n > 0 {
			causes = append(causes, text.Grouped(n)+" "+string(c))
		}
	}
	fmt.Fprintf(b, "%s hot or congested, with %g times the mean or more: %s\n",
		text.CountGrouped(len(d.Hot), "channel is", "channels are"), d.Asked.Hot, strings.Join(causes, ", "))
	w := b.Table()
	shown := d.Hot[:min(d.Asked.Top, len(d.Hot))]
	if len(shown) > 0 {
		fmt.Fprintln(w, "  #\tCAUSE\tFROM\tTO\tLOAD\tROUTES\tPER ROUTE\tUSE\tWAIT")
	}
	for i := range shown {
		h := &shown[i]
		use := "-"
		if h.Use > 0 {
			use = text.Percent(h.Use)
		}
		fmt.Fprintf(w, "  %d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			i+1, h.Cause, h.From.Unquoted(), h.To.Unquoted(), times(h.Load), times(h.RouteLoad), times(h.PerRoute), use, times(h.WaitLoad))
	}
	_ = w.Flush() // never fails
	if n := len(d.Hot) - len(shown); n > 0 {
		fmt.Fprintf(b, "  and %s more: --top, or --format json\n", text.Grouped(n))
	}
	if len(shown) == 0 {
		return
	}
	fmt.Fprintln(b, "  in proportion to the mean: bytes and routes for the rate of the cable, bytes of a route, ticks of waiting")
	for i := range shown {
		if shown[i].Sources != "" {
			shown[i].printSharers(b, i+1)
		}
	}
}

// printSharers writes who shares a channel.
func (h *sharedChannel) printSharers(b *text.Sheet, number int) {
	indent := strings.Repeat(" ", len(strconv.Itoa(number)))
	side := func(before, way string, hosts int, list string, parts []groups.Part) {
		fmt.Fprintf(b, "%s %s %s, %s\n", before, way, text.CountGrouped(hosts, "host", "hosts"), hostlist.Shorten(list))
		if len(parts) > 0 {
			all := text.Each(parts, func(p groups.Part) string { return fmt.Sprintf("%s %s %d of %d", p.Grouping, p.Group, p.Hosts, p.Of) })
			fmt.Fprintf(b, "  %s       %s\n", indent, hostlist.Shorten(strings.Join(all, ", ")))
		}
	}
	side(fmt.Sprintf("\n  %d:", number), "from", h.hosts[0], h.Sources, h.SourceGroups)
	side("  "+indent+" ", "  to", h.hosts[1], h.Destinations, h.DestinationGroups)
	if h.WaitsFor != nil {
		fmt.Fprintf(b, "  %s  waits for %s\n", indent, h.WaitsFor.Unquoted())
	}
}

// columns are the columns of printErrors: counters and headings.
var columns = []struct{ counter, heading string }{
	{"SymbolErrorCounter", "SYMBOL ERRORS"},
	{"PortRcvErrors", "RECEIVE ERRORS"},
	{"LocalLinkIntegrityErrors", "INTEGRITY ERRORS"},
	{"PortFECUncorrectableBlockCounter", "UNCORRECTED FEC"},
	{"SymbolBER", "BER"},
	{"RxPowerSpread", "LIGHT dB APART"},
	{"ModuleCelsius", "MODULE C"},
	{"ModuleAlarms", "MODULE ALARMS"},
	{"LinkErrorRecoveryCounter", "RECOVERIES"},
	{"LinkDownedCounter", "LINK DOWNS"},
}

// titles head the cables with each evidence, one and many.
var titles = [][2]string{
	{"cable has errors on the wire: replace or clean it, or the port", "cables have errors on the wire: replace or clean them, or the ports"},
	{"cable went down or recovered, and not by restarts", "cables went down or recovered, and not by restarts"},
	{"cable has counters that say nothing: they wrapped, or stood still at their end", "cables have counters that say nothing: they wrapped, or stood still at their end"},
}

// printErrors writes the cables with errors, those to replace first: a row for
// each end that counted errors on the wire, else for each end that counted
// anything, with the counters that any row has.
func (d *Document) printErrors(b *text.Sheet) {
	if len(d.Errors) == 0 {
		fmt.Fprintf(b, "\nno errors of cables: %s counters of them\n", text.CountGrouped(d.ErrorPorts, "port has", "ports have"))
		return
	}
	shown := d.Errors[:min(d.Asked.Top, len(d.Errors))]
	used := make([]bool, len(columns))
	for _, c := range shown {
		for k, column := range columns {
			used[k] = used[k] || cellOf(c.Ends[0].Errors, column.counter)+cellOf(c.Ends[1].Errors, column.counter) != "--"
		}
	}
	for at := 0; at < len(d.Errors); {
		evidence, end := d.Errors[at].Evidence, at
		for end < len(d.Errors) && d.Errors[end].Evidence == evidence {
			end++
		}
		title := titles[order(evidence)]
		fmt.Fprintf(b, "\n%s\n", text.CountGrouped(end-at, title[0], title[1]))
		if at < len(shown) {
			d.printCables(b, shown[at:min(end, len(shown))], used)
		}
		at = end
	}
	if n := len(d.Errors) - len(shown); n > 0 {
		fmt.Fprintf(b, "  and %s more: --top, or --format json\n", text.Grouped(n))
	}
}

// printCables writes cables of the same evidence, with the columns that are used.
func (d *Document) printCables(b *text.Sheet, cables []Cable, used []bool) {
	w := b.Table()
	fmt.Fprint(w, "  COUNTED BY\tAT THE OTHER END")
	for k, column := range columns {
		if used[k] {
			fmt.Fprint(w, "\t"+column.heading)
		}
	}
	if d.Tables {
		fmt.Fprint(w, "\tROUTES")
	}
	fmt.Fprintln(w)
	for _, c := range cables {
		for i, e := range c.Ends {
			onWire := slices.ContainsFunc(e.Errors, func(r Error) bool { return r.N.N > 0 && !isEvent(r.Counter) })
			if len(e.Errors) == 0 || c.Evidence == Wire && !onWire {
				continue
			}
			fmt.Fprintf(w, "  %s\t%s", e.Port.Unquoted(), c.Ends[1-i].Port.Unquoted())
			for k, column := range columns {
				if used[k] {
					fmt.Fprint(w, "\t"+cellOf(e.Errors, column.counter))
				}
			}
			if d.Tables {
				fmt.Fprint(w, "\t"+text.Grouped(c.Routes))
			}
			fmt.Fprintln(w)
		}
	}
	_ = w.Flush() // never fails
}

// cellOf returns the count of an error at a port, - for none.
func cellOf(list []Error, counter string) string {
	for _, e := range list {
		if e.Counter != counter {
			continue
		}
		n := strconv.FormatFloat(e.N.N, 'g', 3, 64) // a figure of the line
		if e.N.Count > 0 {
			n = text.Grouped(int64(e.N.Count))
		}
		if e.AtLeast {
			n = "at least " + n
		}
		if e.Wrapped {
			n = strings.TrimPrefix(n+" ", "0 ") + "wrapped"
		}
		return n
	}
	return "-"
}

// printRestarts writes how many hosts and switches were restarted.
func (d *Document) printRestarts(b *text.Sheet) {
	for _, x := range []struct {
		one, many string
		isSwitch  bool
	}{{"host was", "hosts were", false}, {"switch was", "switches were", true}} {
		list := text.Where(d.Restarts, func(r Restart) bool { return r.Switch == x.isSwitch })
		if names := text.Each(list, func(r Restart) string { return r.Name }); len(names) > 0 {
			fmt.Fprintf(b, "\n%s restarted, since all links went down: %s\n", text.CountGrouped(len(names), x.one, x.many), hostlist.Shorten(hostlist.Fold(names)))
		}
	}
}

// times writes a multiple of a mean.
func times(x float64) string {
	switch {
	case x == 0:
		return "-"
	case x < 0.001:
		return "<0.001"
	case x >= 999.5: // beyond, there would be an exponent
		return text.Grouped(int64(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
