package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/paths"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report/page"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

type pathOptions struct {
	audit
	cli.OutputForm
	allFrom  string
	allPorts bool
	traces   string // file of what ibtracert printed
}

func (a *app) pathCommand() *cobra.Command {
	var o pathOptions
	cmd := &cobra.Command{
		Use:   "path {DIR | TOPOLOGY --lfts FILE} {SRC DST | --ibtracert FILE}",
		Short: "the paths between two hosts, and who shares their cables",
		Args:  a.maxArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted := 2
			if o.allFrom != "" || o.traces != "" {
				wanted = 0
			}
			var dir []string
			if o.Topology == "" || isFolderAlone(&o.Files) && len(args) > wanted {
				dir, args = args[:min(1, len(args))], args[min(1, len(args)):]
			}
			if len(args) != wanted || o.Topology == "" && len(dir) == 0 {
				return usagef("path needs tables, DIR or TOPOLOGY and --lfts FILE, and behind them SRC and DST, or --all-from HOST or --ibtracert FILE in their place")
			}
			o.TakeAdaptive = true
			if err := a.resolveAudit("path", &o.audit, dir); err != nil {
				return err
			}
			return a.path(cmd.Context(), &o, args)
		},
	}
	flags := cmd.Flags()
	o.audit.fileFlags(flags)
	o.choiceFlags(flags)
	flags.StringVar(&o.allFrom, "all-from", "", "show the paths from `HOST` to all others, a line each")
	flags.StringVar(&o.traces, "ibtracert", "", "hold the paths in `FILE`, which ibtracert printed, against the tables")
	flags.BoolVar(&o.allPorts, "all-ports", false, "of hosts with several adapters, show the paths between all of them")
	o.OutputForm.Define(flags, "output")
	a.fabricFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("all-from", "ibtracert")
	cli.Scopes(cmd.Flags(), cli.Scope{Flags: "all-ports", Not: "all-from ibtracert", Why: "it says which ports send", Note: true})
	return cmd
}

// pathDocument is the JSON form of path.
type pathDocument struct {
	Paths  []sharedPath `json:"paths"`
	Lost   int          `json:"lost"`
	Differ int          `json:"differ,omitempty"` // traces that differ from the tables
}

// sharedPath is a path, and the hosts that share its busiest cable.
type sharedPath struct {
	paths.Path
	// Sources and Destinations are the hosts that send over the busiest hop, and whom
	// they send to, as names with brackets; "" without such a hop, and with --all-from.
	Sources      string `json:"busiest_sources,omitempty"`
	Destinations string `json:"busiest_destinations,omitempty"`

	// Choices lists all channels that packets may take with adaptive routing, hop
	// by hop; nil without it. LostShare is the share of packets that are lost.
	Choices   []pathChoice `json:"choices,omitempty"`
	LostShare float64      `json:"lost_share,omitempty"`

	// Differs says where ibtracert left the path of the tables; "" if nowhere.
	Differs string `json:"ibtracert_differs,omitempty"`

	hosts  [2]int // numbers of Sources and Destinations
	traced bool
}

// pathChoice is a channel with the share of packets on it if each switch takes all ports of
// its choice equally often.
type pathChoice struct {
	Hop   int             `json:"hop"` // 0 is the hop from the source
	From  verify.Endpoint `json:"from"`
	To    verify.Endpoint `json:"to"`
	VL    int             `json:"vl"`
	Share float64         `json:"share"`
}

// spread sets Choices to all choices of packets from src.
func (p *sharedPath) spread(in *page.Input, src fabric.PortID) {
	f := in.Fabric
	fan := in.Path(src, p.LID)
	for _, h := range fan.Merged() {
		p.Choices = append(p.Choices, pathChoice{h.Hop, verify.EndpointOf(f, h.Out), verify.EndpointOf(f, f.Peer(h.Out)), int(h.VL), h.Share})
	}
	if p.LostShare = fan.LostShare; fan.Lost != "" {
		p.Lost = fan.Lost
	}
}

func (a *app) path(ctx context.Context, o *pathOptions, args []string) error {
	r, err := a.readRouting(&o.audit)
	if err != nil {
		return err
	}
	f := r.Fabric
	if r.Tables == nil {
		return inputf("%s: no forwarding tables", cmp.Or(o.Topology, "DIR"))
	}
	var packets []paths.Packet
	var traces []dump.Trace
	switch {
	case o.traces != "":
		traces, err = readAs(a, &o.audit, o.traces, func(name string, data []byte) ([]dump.Trace, error) {
			traces, problems, err := dump.ReadTraces(name, data, f, dump.Options{Lenient: o.Lenient})
			a.dumpProblems(problems, o.Lenient)
			return traces, err
		})
		if err != nil {
			return err
		}
	case o.allFrom == "":
		packets, err = paths.PacketsBetween(f, args[0], args[1], o.allPorts)
	default:
		if packets, err = paths.PacketsFrom(f, o.allFrom); err != nil {
			err = fmt.Errorf("--all-from: %w", err)
		}
	}
	if err != nil {
		return cli.NewUsageError(err)
	}
	stage := a.startStage("follow")
	defer stage.End()
	finder, err := paths.New(ctx, &o.State)
	if err != nil {
		return err
	}
	d := &pathDocument{Paths: []sharedPath{}}
	drawn := &page.Input{State: &o.State}
	differs := make([]string, len(traces))
	for i, t := range traces {
		var p paths.Packet
		p, differs[i] = finder.Compare(t.Source, t.Destination, t.Out)
		packets = append(packets, p)
	}
	d.Differ = text.CountIf(differs, func(s string) bool { return s != "" })
	found := make([]paths.Path, len(packets))
	for i, p := range packets {
		if found[i] = finder.Find(p.Source, p.LID); found[i].Lost != "" {
			d.Lost++
		}
	}
	var shares map[fabric.PortID]*paths.Sharing
	if o.allFrom == "" {
		busy := text.Where(found, func(p paths.Path) bool { return p.Busiest >= 0 })
		shares = paths.Sharers(f, r.Tables, text.Each(busy, func(p paths.Path) fabric.PortID { return p.Channel }))
	}
	for i := range found {
		x := sharedPath{Path: found[i], traced: o.traces != ""}
		if x.traced {
			x.Differs = differs[i]
		}
		if src := packets[i].Source; o.State.Adaptive != nil && !f.IsSwitch(f.Owner(src)) {
			x.spread(drawn, src)
		}
		if s := shares[x.Channel]; s != nil {
			x.hosts[0], x.Sources = names.Fold(f, s.Sources)
			x.hosts[1], x.Destinations = names.Fold(f, s.Destinations)
		}
		d.Paths = append(d.Paths, x)
	}
	return cmp.Or(o.Print(a.stdout, d, func(b *text.Sheet) { d.print(b, o.allFrom != "") }), cli.FindingsIf(d.Lost+d.Differ > 0))
}

// print writes paths for people.
func (d *pathDocument) print(b *text.Sheet, lines bool) {
	w := b.Table()
	if lines {
		fmt.Fprintln(w, "DESTINATION\tLID\tHOPS\tBUSIEST CABLE\tROUTES\tRATE")
	}
	for i := range d.Paths {
		p := &d.Paths[i]
		if lines {
			p.printLine(w)
			continue
		}
		if i > 0 {
			fmt.Fprintln(b)
		}
		p.print(b)
	}
	_ = w.Flush() // a buffer never fails
}

func (p *sharedPath) printLine(w io.Writer) {
	busiest, routes, rate := "-", "-", "-"
	if p.Busiest >= 0 {
		h := &p.Hops[p.Busiest]
		busiest, routes, rate = h.From.Unquoted(), fmt.Sprint(h.Routes), gigabits(h.Rate)
	}
	if p.Lost != "" {
		busiest = "lost: " + p.Lost
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\n", p.Destination.Unquoted(), p.LID, len(p.Hops), busiest, routes, rate)
}

// print writes a path hop by hop.
func (p *sharedPath) print(b *text.Sheet) {
	fmt.Fprintf(b, "%s -> %s, LID %d\n", p.Source.Unquoted(), p.Destination.Unquoted(), p.LID)
	w := b.Table()
	for i, h := range p.Hops {
		var vls []string
		for _, l := range p.Lanes {
			if vl := fmt.Sprint(l.VLs[i]); !slices.Contains(vls, vl) {
				vls = append(vls, vl)
			}
		}
		mark := ""
		if i == p.Busiest {
			mark = "busiest"
		}
		fmt.Fprintf(w, "  %s\t-> %s\t%s\tVL %s\t%s\t%s\n",
			h.From.Unquoted(), h.To.Unquoted(), gigabits(h.Rate), cmp.Or(strings.Join(vls, ","), "-"), text.CountGrouped(h.Routes, "route", "routes"), mark)
	}
	_ = w.Flush() // a buffer never fails
	if p.Choices != nil {
		fmt.Fprintln(b, "  all choices, with their share of packets:")
	}
	for _, c := range p.Choices {
		fmt.Fprintf(w, "  %d\t%s\t-> %s\tVL %d\t%.1f %%\n", c.Hop, c.From.Unquoted(), c.To.Unquoted(), c.VL, 100*c.Share)
	}
	_ = w.Flush()
	switch {
	case p.Lost != "" && p.LostShare > 0 && p.LostShare < 0.9995:
		fmt.Fprintf(b, "  lost, %.1f %%: %s\n", 100*p.LostShare, p.Lost)
	case p.Lost != "":
		fmt.Fprintf(b, "  lost: %s\n", p.Lost)
	}
	if p.traced {
		fmt.Fprintf(b, "  ibtracert: %s\n", cmp.Or(p.Differs, "the same path"))
	}
	if p.Sources != "" {
		fmt.Fprintf(b, "  on the busiest cable: from %s, %s\n", text.Count(p.hosts[0], "host", "hosts"), hostlist.Shorten(p.Sources))
		fmt.Fprintf(b, "                        to %s, %s\n", text.Count(p.hosts[1], "host", "hosts"), hostlist.Shorten(p.Destinations))
	}
}

// gigabits writes a data rate in Gb/s, "?" for 0.
func gigabits(mbps int) string {
	if mbps == 0 {
		return "?"
	}
	return strconv.FormatFloat(float64(mbps)/1000, 'f', -1, 64) + " Gb/s"
}
