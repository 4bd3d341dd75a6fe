package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/counters"
	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report/page"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"
)

// readings are the files of counters that a command reads.
type readings struct {
	now     string // "" for none
	before  string // an earlier reading, "" for none
	seconds float64
}

func (r *readings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&r.before, "before", "", "`FILE` of an earlier reading: what was counted since counts")
	numberFlag(flags, &r.seconds, "seconds", 0.001, 1e9, "the counters counted for `N` seconds; by default what two runs of ibdiagnet say, else not known")
}

// reading is counters, and what they count.
type reading struct {
	*dump.Counters
	kind    string  // counts, difference or rates
	seconds float64 // that they counted, 1 for rates; 0 unknown
	resets  int     // ports that were reset between two readings
}

// countersOptions is what counters is asked to do.
type countersOptions struct {
	audit
	outputForm
	readings
	hot float64
	top int
}

// countersCommand explains what ports have counted.
func (a *app) countersCommand() *cobra.Command {
	var o countersOptions
	cmd := &cobra.Command{
		Use:   "counters [DIR | -t TOPOLOGY [--lfts FILE]] [FILE]",
		Short: "which cables have errors, and which are hot by routing or traffic",
		Args:  a.maxArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := o.arguments(args)
			if err != nil {
				return err
			}
			o.wiring, o.TakeAdaptive = true, true // tables are not needed, and static ports will do
			if err := a.resolveAudit("counters", &o.audit, dir); err != nil {
				return err
			}
			return a.counters(cmd.Context(), &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.Topology, "topology", "t", "", "topology `FILE`")
	flags.StringVar(&o.LFTs, "lfts", "", "`FILE` of forwarding tables")
	lenientFlag(flags, &o.audit.Lenient)
	o.readings.flags(flags)
	o.hot = 1.5
	parsedFlag(flags, &o.hot, "hot", "1.5", "a cable is hot from `F` times the mean on, F above 1", func(text string) (float64, error) {
		hot, ok := parseNumber[float64](text)
		if !ok || !(hot > 1 && hot <= maxFactor) {
			return 0, errors.New("want more than 1, and at most 1000000")
		}
		return hot, nil
	})
	o.top = 10
	numberFlag(flags, &o.top, "top", 0, maxNumber, "list `N` hot cables with who shares them, and N with errors")
	o.outputForm.define(flags, "`FORM` of the output: text or json")
	a.fabricFlags(cmd)
	a.hostGroupFlag(cmd)
	return cmd
}

// arguments finds DIR and FILE.
func (o *countersOptions) arguments(args []string) (dir []string, err error) {
	switch {
	case o.Topology == "" && len(args) == 0:
		return nil, usagef("counters needs tables, DIR or -t TOPOLOGY, and FILE behind them")
	case o.Topology != "" && len(args) > 1:
		return nil, usagef("counters takes a directory or -t TOPOLOGY, not both")
	case o.Topology == "":
		dir, args = args[:1], args[1:]
	}
	o.now = cmp.Or(strings.Join(args, ""), o.Topology, strings.Join(dir, ""))
	return dir, oneStdin(o.now, o.before)
}

// readCounters reads the counters of the ports of f.
func (a *app) readCounters(r *readings, in *audit, f *fabric.Fabric) (*reading, error) {
	c, date, err := a.readReading(in, r.now, f)
	if err != nil {
		return nil, err
	}
	x := &reading{c, "counts", r.seconds, 0}
	if c.Rates && (r.before != "" || r.seconds != 0) {
		return nil, usagef("%s has rates: --before and --seconds say nothing", r.now)
	}
	if c.Rates {
		x.kind, x.seconds = "rates", 1
	}
	if r.before == "" {
		return x, nil
	}
	before, begun, err := a.readReading(in, r.before, f)
	if err != nil {
		return nil, err
	}
	if before.Rates {
		return nil, inputf("%s has rates; want counts, as %s has them", r.before, r.now)
	}
	x.kind = "difference"
	x.Counters, x.resets = c.Since(f, before)
	if apart := date.Sub(begun).Seconds(); r.seconds == 0 && !begun.IsZero() && !date.IsZero() {
		if apart <= 0 {
			return nil, inputf("%s is of %s, and not before %s, which is of %s", r.before, begun.Format(runDate), r.now, date.Format(runDate))
		}
		x.seconds = apart
	}
	return x, nil
}

// runDate is how ibdiagnet says when it ran.
const runDate = "2006-01-02 15:04:05 MST -0700"

// readReading reads a file of counters, the one of a folder, or the one of an archive. date is zero
// where the file does not say when it was made.
func (a *app) readReading(in *audit, name string, f *fabric.Fabric) (c *dump.Counters, date time.Time, err error) {
	read := func(name string, form dump.Form, from io.Reader) error {
		s := a.startStage("read counters of " + name)
		defer s.End()
		if form == dump.Database {
			r, err := ibdiagnet.ReadCounters(name, from, f, ibdiagnet.Options{Lenient: in.Lenient, Strict: a.strict})
			if err != nil {
				return parseOrInput(err)
			}
			a.listProblems(len(r.Problems), in.Lenient, func(i int) string { return r.Problems[i].String() })
			c = r.Counters
			date, _ = time.Parse(runDate, r.Run.Date) // zero where there is none
			return nil
		}
		data, err := files.ReadAll(name, from, open.Limit, new(atomic.Int64))
		if err != nil {
			return open.NewError(err)
		}
		var problems []fabric.Problem
		if c, problems, err = dump.ReadCounters(name, data, f, dump.Options{Lenient: in.Lenient}); err == nil {
			a.dumpProblems(problems, in.Lenient)
		}
		return err
	}
	switch {
	case !open.Folder(name):
		err = a.eachReading(name, read)
	case files.Archive(name):
		taken, failed := "", error(nil)
		err = files.EachMember(name, func(m files.Member) error {
			if m.Name == taken { // of two with one name, as tar -r makes them, the last counts
				taken, failed, c, date = "", nil, nil, time.Time{}
			}
			if taken != "" {
				return nil
			}
			from := bufio.NewReaderSize(m.From, 64<<10)
			head, err := from.Peek(64 << 10)
			if err != nil && err != io.EOF {
				return err
			}
			if form := dump.Recognize(head); (form == dump.Database || form.Info().Kind == state.PortCounters) && !files.IsArchive(head) {
				taken, failed = m.Name, read(filepath.Join(name, m.Name), form, from)
			}
			return nil
		})
		if err != nil {
			err = open.NewError(err)
		} else {
			err = failed
		}
	default:
		for _, form := range append([]dump.Form{dump.Database}, dump.Forms(state.PortCounters)...) {
			var path string
			if path, err = open.Find(name, form); path != "" && c == nil && err == nil {
				err = a.eachReading(path, read)
			}
			if err != nil {
				return nil, date, err
			}
		}
	}
	if err == nil && c == nil {
		err = inputf("%s has no counters; want FILE, or a folder with db_csv of ibdiagnet, what perfquery prints, or a CSV of rates", name)
	}
	return c, date, err
}

// eachReading gives read the text of a file, or of standard input.
func (a *app) eachReading(name string, read func(name string, form dump.Form, from io.Reader) error) error {
	if open.Database(name) {
		t, err := files.OpenText(name)
		if err != nil {
			return open.NewError(err)
		}
		defer func() { _ = t.Close() }()
		return read(name, dump.Database, t.From)
	}
	data, err := a.readInput(name)
	if err != nil {
		return err
	}
	return read(name, dump.Recognize(data), bytes.NewReader(data))
}

// countersDocument is the JSON form of counters.
type countersDocument struct {
	Reading string `json:"reading"`
	Resets  int    `json:"reset_ports"`
	*counters.Report
	Hot []sharedChannel `json:"hot"`

	tables bool
	asked  *countersOptions
}

// sharedChannel is a channel, and the hosts on both sides as names with brackets.
type sharedChannel struct {
	counters.Channel
	Sources      string `json:"sources,omitempty"`
	Destinations string `json:"destinations,omitempty"`
	// The groups of --host-groups that these are in.
	SourceGroups      []groups.Part `json:"source_groups,omitempty"`
	DestinationGroups []groups.Part `json:"destination_groups,omitempty"`

	hosts [2]int // how many these are
}

func (a *app) counters(ctx context.Context, o *countersOptions) error {
	f, tables, err := a.readTables(&o.audit)
	if err != nil {
		return err
	}
	c, err := a.readCounters(&o.readings, &o.audit, f)
	if err != nil {
		return err
	}
	stage := a.startStage("compare")
	r, err := counters.Explain(ctx, f, tables, c.Counters, counters.Options{Hot: o.hot, Top: o.top, Seconds: c.seconds})
	stage.End()
	if err != nil {
		return err
	}
	set, err := a.groupsOf(f, true)
	if err != nil {
		return err
	}
	d := &countersDocument{c.kind, c.resets, r, []sharedChannel{}, tables != nil, o}
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
	return o.print(a.stdout, d, d.print)
}

// print writes what counters says for people.
func (d *countersDocument) print(b *text.Sheet) {
	what := map[string]string{"counts": "counted since their last reset", "difference": "counted between two readings", "rates": "per second"}[d.Reading]
	if d.Reading != "rates" && d.Seconds > 0 {
		what += ", in " + strconv.FormatFloat(d.Seconds, 'f', -1, 64) + " s"
	}
	fmt.Fprintf(b, "%d of %d ports with a cable have counters: %s\n", d.Ports, d.Cabled, what)
	if d.Resets > 0 {
		fmt.Fprintf(b, "%s reset between the readings: their errors are lower bounds\n", text.CountGrouped(d.Resets, "port was", "ports were"))
	}
	if d.tables {
		d.printHot(b)
	} else {
		fmt.Fprintln(b, "no forwarding tables: no routes to compare with")
	}
	d.printErrors(b)
}

// printHot writes the hot channels.
func (d *countersDocument) printHot(b *text.Sheet) {
	fmt.Fprintf(b, "%d of %d channels between switches have known bytes", d.Measured, d.Channels)
	if d.MaxUse > 0 {
		fmt.Fprintf(b, ", and use %s of their rate on average, %s at most", text.Percent(d.MeanUse), text.Percent(d.MaxUse))
	}
	fmt.Fprintln(b)
	if d.asked.State.Adaptive != nil {
		fmt.Fprintln(b, "routing is adaptive: routes are those of the static ports")
	}
	if d.Stopped > 0 {
		fmt.Fprintf(b, "%s not known: a counter of 32 bits stands still at its end, 17 GB (perfquery -x has 64 bits), wrapped, or was reset\n", text.CountGrouped(d.Stopped, "channel's bytes are", "channels' bytes are"))
	}
	if len(d.Hot) == 0 {
		fmt.Fprintf(b, "\nno channel is hot or congested, with %g times the mean\n", d.asked.hot)
		return
	}
	fmt.Fprintf(b, "\n%s hot or congested, with %g times the mean or more: %s\n", text.CountGrouped(len(d.Hot), "channel is", "channels are"), d.asked.hot, d.causes())
	w := b.Table()
	shown := d.Hot[:min(d.asked.top, len(d.Hot))]
	if len(shown) > 0 {
		fmt.Fprintln(w, "  #\tCAUSE\tFROM\tTO\tLOAD\tROUTES\tPER ROUTE\tUSE\tWAIT")
	}
	for i := range shown {
		h := &shown[i]
		use := "-"
		if h.Use > 0 {
			use = text.Percent(h.Use)
		}
		fmt.Fprintf(w, "  %d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i+1, h.Cause, label(h.From), label(h.To), times(h.Load), times(h.RouteLoad), times(h.PerRoute), use, times(h.WaitLoad))
	}
	_ = w.Flush() // a buffer takes all
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

// causes counts the hot channels by cause.
func (d *countersDocument) causes() string {
	var list []string
	for _, c := range counters.Causes {
		if n := count(d.Hot, func(x sharedChannel) bool { return x.Cause == c }); n > 0 {
			list = append(list, text.Grouped(n)+" "+string(c))
		}
	}
	return strings.Join(list, ", ")
}

// printSharers writes who shares a channel.
func (h *sharedChannel) printSharers(b *text.Sheet, number int) {
	indent := strings.Repeat(" ", len(strconv.Itoa(number)))
	side := func(before, way, verb string, hosts int, list string, parts []groups.Part, talkers []counters.Talker) {
		fmt.Fprintf(b, "%s %s %s, %s", before, way, text.CountGrouped(hosts, "host", "hosts"), hostlist.Shorten(list))
		if n := len(talkers); n > 1 && (h.Cause == counters.Traffic || h.Cause == counters.Both) && talkers[0].Share > 1.5*talkers[n-1].Share {
			fmt.Fprintf(b, "; %s %s %s of their bytes", label(talkers[0].Port), verb, text.Percent(talkers[0].Share))
		}
		fmt.Fprintln(b)
		if len(parts) > 0 {
			all := text.Each(parts, func(p groups.Part) string { return fmt.Sprintf("%s %s %d of %d", p.Grouping, p.Group, p.Hosts, p.Of) })
			fmt.Fprintf(b, "  %s       %s\n", indent, hostlist.Shorten(strings.Join(all, ", ")))
		}
	}
	side(fmt.Sprintf("\n  %d:", number), "from", "sent", h.hosts[0], h.Sources, h.SourceGroups, h.Senders)
	side("  "+indent+" ", "  to", "received", h.hosts[1], h.Destinations, h.DestinationGroups, h.Receivers)
	if h.WaitsFor != nil {
		fmt.Fprintf(b, "  %s  waits for %s\n", indent, label(*h.WaitsFor))
	}
}

// printErrors writes the cables with errors: a row for each end that has counted some.
func (d *countersDocument) printErrors(b *text.Sheet) {
	if len(d.Errors) == 0 {
		fmt.Fprintf(b, "\nno errors of cables: %s counters of them\n", text.CountGrouped(d.ErrorPorts, "port has", "ports have"))
		return
	}
	fmt.Fprintf(b, "\n%s errors:\n", text.CountGrouped(len(d.Errors), "cable has", "cables have"))
	w := b.Table()
	if d.asked.top > 0 {
		fmt.Fprintln(w, "  COUNTED BY\tAT THE OTHER END\tLINK DOWNS\tRECOVERIES\tSYMBOL ERRORS\tRECEIVE ERRORS\tINTEGRITY ERRORS")
	}
	cells := "" // all of the table
	for _, c := range d.Errors[:min(d.asked.top, len(d.Errors))] {
		for i, e := range c.Ends {
			if len(e.Errors) == 0 {
				continue
			}
			fmt.Fprintf(w, "  %s\t%s", label(e.Port), label(c.Ends[1-i].Port))
			for _, k := range counters.ErrorCounters {
				cell := countOf(e.Errors, k)
				cells += cell
				fmt.Fprintf(w, "\t%s", cell)
			}
			fmt.Fprintln(w)
		}
	}
	_ = w.Flush() // a buffer takes all
	for _, m := range marks {
		if strings.Contains(cells, m.mark) {
			fmt.Fprintf(b, "  %s: %s\n", m.mark, m.meaning)
		}
	}
	if n := len(d.Errors) - d.asked.top; n > 0 {
		fmt.Fprintf(b, "  and %s more: --top, or --format json\n", text.Grouped(n))
	}
}

// marks are those of countOf, and what they mean.
var marks = []struct{ mark, meaning string }{
	{"+", "or more: the counter stands still at its end, or was reset; perfquery -R resets it"},
	{"wrapped", "a number just below 2^64, a difference that went below zero: what was counted is not known"},
}

// countOf returns what a port counted of an error, with its marks, and - for none.
func countOf(list []counters.Error, k dump.Counter) string {
	for _, e := range list {
		if e.Counter != k.Info().Name {
			continue
		}
		n := strconv.FormatFloat(e.N.N, 'g', 6, 64) // a rate
		if e.N.Count > 0 {
			n = strconv.FormatUint(e.N.Count, 10)
		}
		if e.AtLeast {
			n += marks[0].mark
		}
		if e.Wrapped {
			n = strings.TrimPrefix(n+" ", "0 ") + marks[1].mark
		}
		return n
	}
	return "-"
}

// times is a multiple of a mean.
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

// colours are the counters that the page may colour links by.
func (c *reading) colours(f *fabric.Fabric) (list []page.Counter) {
	for k := range dump.CounterCount {
		if !c.Counts(k) {
			continue
		}
		info := k.Info()
		x := page.Counter{Name: info.Name, Unit: info.Unit, Values: make([]float64, f.NumPorts())}
		per := 1.0
		if c.seconds > 0 {
			x.Unit, per = info.Unit+" per second", c.seconds
		}
		for p := range x.Values {
			x.Values[p] = -1
			if v := c.Get(k, fabric.PortID(p)); v.Known {
				x.Values[p] = v.N / per
			}
		}
		list = append(list, x)
	}
	return list
}
