package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/audit/experiment"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/verify"
)

// writeResults writes results in the form of --format. If they go to
// a file, it prints a line with the file and what, a summary.
func (a *app) writeResults(in *simulation, what string, document any, csv func(io.Writer) error, text func(*text.Sheet)) error {
	write := csv
	if in.format != "csv" {
		write = func(w io.Writer) error { return (&cli.OutputForm{Format: in.format}).Print(w, document, text) }
	}
	if in.output == "-" {
		return write(a.stdout)
	}
	err := a.writeComplete(in.output, cli.Printed(write))
	if err == nil {
		fmt.Fprintf(a.stdout, "wrote %s: %s\n", in.output, what)
	}
	return err
}

// judgeSimulated prints deadlocks and lost packets, and returns ErrFindings if there are any.
func (a *app) judgeSimulated(r *experiment.Run) error {
	var dropped, strayed int64
	for i := range r.Results {
		dropped += r.Results[i].Dropped
		strayed += r.Results[i].Strayed
	}
	deadlocks := text.CountIf(r.Results, func(x sim.Result) bool { return x.Deadlock != nil })
	if deadlocks > 0 {
		fmt.Fprintf(a.stderr, "ibweave: deadlock at %d of %s\n", deadlocks, text.CountGrouped(len(r.Results), "point", "points"))
	}
	if dropped > 0 || strayed > 0 {
		fmt.Fprintf(a.stderr, "ibweave: the tables lose packets: %s dropped, %s at the wrong port; check says which\n",
			text.Grouped(dropped), text.Grouped(strayed))
	}
	return cli.FindingsIf(deadlocks > 0 || dropped > 0 || strayed > 0)
}

func (in *simulation) writeText(w *text.Sheet, r *experiment.Run) {
	f := r.Net.Fabric
	fmt.Fprintf(w, "fabric       %s, %s\n", fabricSize(f), text.CountGrouped(r.Net.VLs(), "VL", "VLs"))
	fmt.Fprintf(w, "traffic      %s\n", in.trafficText(r))
	fmt.Fprintf(w, "hardware     %s\n\n", in.hardwareText())
	if r.Compared != nil {
		writeCompared(w, r)
		writeLimits(w, r)
		writeDeadlocks(w, r)
		return
	}
	t := w.Numbers()
	multi := in.Setup.Traffic.Multicast > 0
	open := in.Loads != nil
	head := []string{"bytes", "seed", "messages", "latency ns"}
	if open {
		head = []string{"load", "bytes", "seed", "messages", "latency ns", "+-"}
	}
	head = append(head, "p99", "max")
	if multi {
		head = append(head, "multicast")
		if open {
			head = append(head, "+-")
		}
		head = append(head, "receiver")
	}
	head = append(head, "offered", "accepted", "time us", "limit", "state")
	fmt.Fprintf(t, "%s\t\n", strings.Join(head, "\t"))
	columns := 1
	if open {
		columns = 2
	}
	mean := func(l *sim.Summary) []string { return experiment.MeanAndError(l, 1)[:columns] }
	for i := range r.Results {
		p, x := &r.Points[i], &r.Results[i]
		row := []string{text.Decimals(p.Load, text.Exact, true)}
		if !open {
			row = row[:0]
		}
		row = append(row, strconv.Itoa(p.Bytes), strconv.FormatUint(p.Seed, 10), strconv.FormatInt(x.Messages, 10))
		row = append(row, mean(x.Latency)...)
		l, known := cmp.Or(x.Latency, &sim.Summary{}), x.Latency != nil
		row = append(row, text.Decimals(l.P99, 0, known), text.Decimals(l.Max, 0, known))
		if multi {
			row = append(row, mean(x.Multicast)...)
			row = append(row, mean(x.Receiver)[0])
		}
		known = x.Deadlock == nil
		row = append(row, text.Decimals(x.Offered, 4, known), text.Decimals(x.Accepted, 4, known), text.Decimals(x.Time/1000, 3, true), experiment.Limit(x), x.State)
		fmt.Fprintf(t, "%s\t\n", strings.Join(row, "\t"))
	}
	_ = t.Flush() // a buffer never fails
	if n := text.CountIf(r.Results, func(x sim.Result) bool { return x.State == sim.StateMaxTime }); n > 0 {
		why := "--min-messages had not arrived by then, or the mean latency was not known to --error"
		if !open {
			why = "packets were still under way"
		}
		fmt.Fprintf(w, "\n%s stopped at --max-time: %s\n", text.CountGrouped(n, "point", "points"), why)
	}
	writeLimits(w, r)
	writeDeadlocks(w, r)
}

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
	_ = t.Flush() // a buffer never fails
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

// counted lists states or limits; if there are
// several, each with the number of seeds that have it.
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

// writeDeadlocks prints the deadlocks as findings.
func writeDeadlocks(w *text.Sheet, r *experiment.Run) {
	for i := range r.Results {
		x := &r.Results[i]
		if d := x.Deadlock; d != nil {
			report.WriteFinding(w, &verify.Finding{
				Rule: verify.CreditLoop, Severity: verify.Error, Message: r.Points[i].String() + d.Message, Witness: d.Witness, Count: 1,
			})
		}
	}
}

// trafficText returns in words what hosts send.
func (in *simulation) trafficText(r *experiment.Run) string {
	t := &in.Setup.Traffic
	var parts []string
	if t.Multicast < 1 {
		parts = append(parts, in.Pattern.String()+" unicast")
		if in.ranks.hosts+in.ranks.file != "" {
			parts[0] += " of " + text.CountGrouped(len(t.Hosts), "rank", "ranks")
		}
	}
	if t.Multicast > 0 {
		n := cmp.Or(t.Sources, sim.CountSenders(r.Trees))
		said := fmt.Sprintf("%g %% of messages to %s of groups from %s",
			100*t.Multicast, text.CountGrouped(len(r.Trees), "tree", "trees"), text.CountGrouped(n, "source", "sources"))
		if t.Repeat {
			said = fmt.Sprintf("%g %% of messages to groups from %s, as unicast", 100*t.Multicast, text.CountGrouped(n, "source", "sources"))
		}
		parts = append(parts, said)
	}
	if in.Burst > 0 {
		parts = append(parts, "closed loop, "+text.CountGrouped(in.Burst, "message", "messages")+" of each host")
	} else {
		parts = append(parts, "open loop, "+t.Arrivals.String())
	}
	if t.SLs > 0 {
		parts = append(parts, text.CountGrouped(t.SLs, "SL", "SLs"))
	}
	return strings.Join(parts, "; ")
}

// hardwareText describes switches and links.
func (in *simulation) hardwareText() string {
	c := &in.Config
	rate := "links at their own rate"
	if c.Mbps > 0 {
		rate = fmt.Sprintf("%s Mb/s", text.Grouped(c.Mbps))
	}
	buffer := fmt.Sprintf("buffers of %s bytes for each port", text.Grouped(in.Buffer))
	switch {
	case in.Packets > 0:
		buffer = "buffers of " + text.CountGrouped(in.Packets, "packet", "packets") + " for each VL"
	case in.Flits > 0:
		buffer = fmt.Sprintf("buffers of %d flits of %d bytes for each VL", in.Flits, c.FlitBytes)
	}
	mtu := "no MTU"
	if c.MTU > 0 {
		mtu = fmt.Sprintf("MTU %d", c.MTU)
	}
	said := fmt.Sprintf("%s, wire %s, credit %s, routing %s; %s, %s, %s copying, %s",
		rate, c.WireDelay, c.CreditDelay, c.RoutingDelay, buffer, mtu, c.Copying, c.Arbitration)
	if in.router != "" {
		said += ", routers of SPAM in place of tables"
	}
	if in.TakeAdaptive || in.adaptive != "" {
		said += fmt.Sprintf(", choice %s", c.Choice)
		if c.ChooseAgain {
			said += " and again"
		}
	}
	return said
}

// limitText says what limits the traffic.
func limitText(l *sim.Limits) string {
	var b strings.Builder
	at := fmt.Sprintf("%s, busy %.0f %% of the time", l.Link.Text, 100*l.Link.Busy)
	switch l.Limit {
	case sim.HostLink:
		fmt.Fprintf(&b, "links of hosts are full (%s), most of all %s", directions(l.FullHostLinks), at)
	case sim.Cable:
		fmt.Fprintf(&b, "cables are full (%s), most of all %s", directions(l.FullCables), at)
	case sim.Buffer:
		fmt.Fprintf(&b, "no link is full, and packets wait in buffers behind the first one of their lane, most of all for %s", at)
	case sim.Credit:
		fmt.Fprintf(&b, "buffers are too small for the length of cables and the delays of switches and credits, most of all behind %s", at)
	default:
		fmt.Fprintf(&b, "hosts offer no more; the busiest link is %s", at)
	}
	if l.Blocked > 0 {
		var parts []string
		for _, p := range []struct {
			share float64
			what  string
		}{{l.HostLink, "links of hosts"}, {l.Cable, "cables"}, {l.Buffer, "buffers"}, {l.Credit, "credits"}} {
			if p.share >= 0.005 {
				parts = append(parts, fmt.Sprintf("%s %.0f %%", p.what, 100*p.share))
			}
		}
		fmt.Fprintf(&b, "; hosts are blocked %.0f %% of the time, by %s", 100*l.Blocked, text.List(parts, "and"))
	}
	return b.String()
}

func directions(n int) string { return text.CountGrouped(n, "direction", "directions") }

// writeLimits prints, for each routing and size, the limit at the first point that has one.
func writeLimits(w *text.Sheet, r *experiment.Run) {
	said := map[string]bool{}
	for i := range r.Results {
		p, x := &r.Points[i], &r.Results[i]
		at := fmt.Sprint(p.Bytes, " ", p.Routing)
		if x.Limits == nil || x.Limits.Limit == sim.Offered || said[at] {
			continue
		}
		if len(said) == 0 {
			fmt.Fprintln(w)
		}
		said[at] = true
		fmt.Fprintf(w, "limit: %s%s\n", p.String(), limitText(x.Limits))
	}
}
