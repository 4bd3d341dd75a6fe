package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/verify"
)

// nameWitnesses gives the switches of deadlocks their names: those of results that come
// from a state file lack GUIDs.
func (r *simRun) nameWitnesses() {
	f := r.net.Fabric
	rename := func(guid fabric.GUID, name *fabric.Name) {
		if s, ok := f.SwitchByGUID(guid); ok {
			*name = f.Name(s)
		}
	}
	for i := range r.results {
		d := r.results[i].Deadlock
		if d == nil {
			continue
		}
		for k := range d.Witness {
			rename(d.Witness[k].Switch, &d.Witness[k].Name)
		}
		for k := range d.Waits {
			rename(d.Waits[k].For.Switch, &d.Waits[k].For.Name)
		}
	}
}

// writeResults writes results in the form that is asked for; of a file, standard output says what
// is in it.
func (a *app) writeResults(in *simulation, what string, document any, csv func(io.Writer) error, text func(*text.Sheet)) error {
	write := csv
	if in.format != "csv" {
		write = func(w io.Writer) error { return (&outputForm{format: in.format}).print(w, document, text) }
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

// judgeSimulated says what is wrong with the tables.
func (a *app) judgeSimulated(r *simRun) error {
	var dropped, strayed int64
	for i := range r.results {
		dropped += r.results[i].Dropped
		strayed += r.results[i].Strayed
	}
	deadlocks := count(r.results, func(x sim.Result) bool { return x.Deadlock != nil })
	if deadlocks > 0 {
		fmt.Fprintf(a.stderr, "ibweave: deadlock at %d of %s\n", deadlocks, text.CountGrouped(len(r.results), "point", "points"))
	}
	if dropped > 0 || strayed > 0 {
		fmt.Fprintf(a.stderr, "ibweave: the tables lose packets: %s dropped, %s at the wrong port; check says which\n",
			text.Grouped(dropped), text.Grouped(strayed))
	}
	return findingsIf(deadlocks > 0 || dropped > 0 || strayed > 0)
}

// simFabric is the fabric in JSON.
type simFabric struct {
	Switches int `json:"switches"`
	CAPorts  int `json:"ca_ports"`
	Links    int `json:"links"`
	VLs      int `json:"vls,omitempty"` // that the tables have; not with jobs
}

func fabricDocument(f *fabric.Fabric) simFabric {
	return simFabric{Switches: f.NumSwitches(), CAPorts: len(f.CAPorts()), Links: f.NumLinks()}
}

// document is the JSON form.
func (r *simRun) document() any {
	type point struct {
		simParameters
		sim.Result
	}
	doc := struct {
		Fabric     simFabric         `json:"fabric"`
		Parameters map[string]string `json:"parameters"`
		Points     []point           `json:"points"`
		Compared   []simCompared     `json:"comparison,omitempty"`
	}{Fabric: fabricDocument(r.net.Fabric), Parameters: r.parameters(), Compared: r.compared}
	doc.Fabric.VLs = r.net.VLs()
	for i := range r.results {
		doc.Points = append(doc.Points, point{r.points[i], r.results[i]})
	}
	return &doc
}

// simColumns are those of CSV. A value that there is none of is empty.
var simColumns = []string{
	"load", "bytes", "seed", "state", "messages", "latency_ns", "latency_error_ns", "latency_min_ns", "latency_p50_ns", "latency_p99_ns", "latency_max_ns",
	"unicast_ns", "unicast_error_ns", "multicast_ns", "multicast_error_ns", "receiver_ns", "receiver_error_ns",
	"offered", "accepted", "time_ns", "incomplete", "dropped", "strayed", "packets", "flit_hops", "events", "routing", "out_of_order", "limit",
}

func (r *simRun) writeCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	_ = c.Write(simColumns) // an error stays until Flush
	for i := range r.results {
		p, x := &r.points[i], &r.results[i]
		row := []string{number(p.Load, p.Load > 0), strconv.Itoa(p.Bytes), seedText(r, p), x.State, strconv.FormatInt(x.Messages, 10)}
		row = append(row, meanAndError(x.Latency, exact)...)
		l, known := cmp.Or(x.Latency, &sim.Summary{}), x.Latency != nil
		row = append(row, number(l.Min, known), number(l.P50, known), number(l.P99, known), number(l.Max, known))
		for _, l := range []*sim.Summary{x.Unicast, x.Multicast, x.Receiver} {
			row = append(row, meanAndError(l, exact)...)
		}
		row = append(row, number(x.Offered, r.trace == nil), number(x.Accepted, r.trace == nil), number(x.Time, true))
		for _, n := range []int64{x.Incomplete, x.Dropped, x.Strayed, x.Packets, x.FlitHops, x.Events} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		outOfOrder := ""
		if x.Reordering != nil {
			outOfOrder = strconv.FormatInt(x.Reordering.OutOfOrder, 10)
		}
		row = append(row, p.Routing, outOfOrder, limit(x))
		_ = c.Write(row)
	}
	c.Flush()
	return c.Error()
}

// seedText is the seed of a point; a trace has none.
func seedText(r *simRun, p *simParameters) string {
	if r.trace != nil {
		return ""
	}
	return strconv.FormatUint(p.Seed, 10)
}

// exact is as many decimals as tell a number from all others.
const exact = -1

// number is a number in CSV, "" where there is none.
func number(x float64, there bool) string { return decimals(x, exact, there) }

func decimals(x float64, n int, there bool) string {
	if !there {
		return ""
	}
	return strconv.FormatFloat(x, 'f', n, 64)
}

// meanAndError is the mean and the half of its interval, each "" where there is none.
func meanAndError(l *sim.Summary, n int) []string {
	if l == nil {
		return []string{"", ""}
	}
	half := cmp.Or(l.Error, new(float64))
	return []string{decimals(l.Mean, n, true), decimals(*half, n, l.Error != nil)}
}

func (r *simRun) writeText(w *text.Sheet) {
	f, in := r.net.Fabric, r.in
	fmt.Fprintf(w, "fabric       %s, %s\n", fabricSize(f), text.CountGrouped(r.net.VLs(), "VL", "VLs"))
	fmt.Fprintf(w, "traffic      %s\n", in.trafficText(r))
	fmt.Fprintf(w, "hardware     %s\n\n", in.hardwareText())
	if r.compared != nil {
		r.writeCompared(w)
		r.writeLimits(w)
		r.writeDeadlocks(w)
		return
	}
	t := w.Numbers()
	multi := in.traffic.Multicast > 0
	open := in.loads != nil
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
	mean := func(l *sim.Summary) []string {
		if !open {
			return meanAndError(l, 1)[:1]
		}
		return meanAndError(l, 1)
	}
	for i := range r.results {
		p, x := &r.points[i], &r.results[i]
		row := []string{number(p.Load, true)}
		if !open {
			row = row[:0]
		}
		row = append(row, strconv.Itoa(p.Bytes), seedText(r, p), strconv.FormatInt(x.Messages, 10))
		row = append(row, mean(x.Latency)...)
		l, known := cmp.Or(x.Latency, &sim.Summary{}), x.Latency != nil
		row = append(row, decimals(l.P99, 0, known), decimals(l.Max, 0, known))
		if multi {
			row = append(row, mean(x.Multicast)...)
			row = append(row, mean(x.Receiver)[0])
		}
		known = r.trace == nil && x.Deadlock == nil
		row = append(row, decimals(x.Offered, 4, known), decimals(x.Accepted, 4, known), decimals(x.Time/1000, 3, true), limit(x), x.State)
		fmt.Fprintf(t, "%s\t\n", strings.Join(row, "\t"))
	}
	_ = t.Flush() // a buffer takes all
	if n := count(r.results, func(x sim.Result) bool { return x.State == sim.StateMaxTime }); n > 0 {
		why := "--min-messages had not arrived by then, or the mean latency was not known to --error"
		if !open {
			why = "packets were still under way"
		}
		fmt.Fprintf(w, "\n%s stopped at --max-time: %s\n", text.CountGrouped(n, "point", "points"), why)
	}
	r.writeLimits(w)
	r.writeDeadlocks(w)
}

// writeDeadlocks prints the deadlocks as findings.
func (r *simRun) writeDeadlocks(w *text.Sheet) {
	for i := range r.results {
		x := &r.results[i]
		if d := x.Deadlock; d != nil {
			report.WriteFinding(w, &verify.Finding{
				Rule: verify.CreditLoop, Severity: verify.Error, Message: r.points[i].text() + d.Message, Witness: d.Witness, Count: 1,
			})
		}
	}
}

// text says which point it is, before a message.
func (p *simParameters) text() string {
	if p.what != "" {
		return strings.TrimPrefix(p.Routing+", "+p.what+": ", ", ")
	}
	said := fmt.Sprintf("%d bytes, seed %d: ", p.Bytes, p.Seed)
	if p.Load > 0 {
		said = fmt.Sprintf("load %g, ", p.Load) + said
	}
	if p.Routing != "" {
		said = p.Routing + ", " + said
	}
	return said
}

// trafficText is what hosts send.
func (in *simulation) trafficText(r *simRun) string {
	if r.trace != nil {
		return text.CountGrouped(len(r.trace), "message", "messages") + " of " + in.trace
	}
	t := &in.traffic
	var parts []string
	if t.Multicast < 1 {
		parts = append(parts, in.pattern.String()+" unicast"+in.ranks.text(r.hosts))
	}
	if t.Multicast > 0 {
		n := t.Sources
		if n == 0 {
			n = sim.CountSenders(r.trees)
		}
		said := fmt.Sprintf("%g %% of messages to %s of groups from %s", 100*t.Multicast, text.CountGrouped(len(r.trees), "tree", "trees"), text.CountGrouped(n, "source", "sources"))
		if t.Repeat {
			said = fmt.Sprintf("%g %% of messages to groups from %s, as unicast in the order %s", 100*t.Multicast, text.CountGrouped(n, "source", "sources"), t.Order)
		}
		parts = append(parts, said)
	}
	if in.burst > 0 {
		parts = append(parts, "closed loop, "+text.CountGrouped(in.burst, "message", "messages")+" of each host")
	} else {
		parts = append(parts, "open loop, "+t.Arrivals.String())
	}
	parts = append(parts, t.Lengths.String()+" lengths")
	if t.SLs > 0 {
		parts = append(parts, text.CountGrouped(t.SLs, "SL", "SLs"))
	}
	return strings.Join(parts, "; ")
}

// hardwareText is what switches and links are.
func (in *simulation) hardwareText() string {
	c := &in.cfg
	rate := "links at their own rate"
	if c.Mbps > 0 {
		rate = fmt.Sprintf("%s Mb/s", text.Grouped(c.Mbps))
	}
	buffer := fmt.Sprintf("buffers of %s bytes for each port", text.Grouped(in.buffer))
	switch {
	case in.packets > 0:
		buffer = "buffers of " + text.CountGrouped(in.packets, "packet", "packets") + " for each VL"
	case in.flits > 0:
		buffer = fmt.Sprintf("buffers of %d flits of %d bytes for each VL", in.flits, c.FlitBytes)
	}
	mtu := "no MTU"
	if c.MTU > 0 {
		mtu = fmt.Sprintf("MTU %d", c.MTU)
	}
	said := fmt.Sprintf("%s, wire %s, credit %s, routing %s; %s, %s, %s copying, %s", rate, c.WireDelay, c.CreditDelay, c.RoutingDelay, buffer, mtu, c.Copying, c.Arbitration)
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

// limit is the resource in a table, "" where nothing was measured.
func limit(x *sim.Result) string {
	if x.Limits == nil {
		return ""
	}
	return x.Limits.Limit.String()
}

// limitText says in words what limits.
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

// writeLimits says what limits the first point of each routing and size that something limits.
func (r *simRun) writeLimits(w *text.Sheet) {
	type curve struct {
		routing string
		bytes   int
	}
	said := map[curve]bool{}
	for i := range r.results {
		p, x := &r.points[i], &r.results[i]
		at := curve{p.Routing, p.Bytes}
		if x.Limits == nil || x.Limits.Limit == sim.Offered || said[at] {
			continue
		}
		if len(said) == 0 {
			fmt.Fprintln(w)
		}
		said[at] = true
		fmt.Fprintf(w, "limit: %s%s\n", p.text(), limitText(x.Limits))
	}
}
