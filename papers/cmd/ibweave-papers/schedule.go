package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/papers/myrinet"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state/open"
)

type scheduling struct {
	source
	cli.OutputForm
	groups    string
	method    string
	check     string // a schedule to check; "" to make one
	output    string
	groupsOut string // file for the groups of phase 1
	force     bool
	opt       myrinet.Options
}

func (a *app) scheduleCommand() *cobra.Command {
	o := scheduling{method: myrinet.Tree.String(), opt: myrinet.Options{Classes: 2}}
	start := -1
	cmd := &cobra.Command{
		Use:   "schedule [DIR | -t TOPOLOGY --lfts FILE]",
		Short: "compile software multicast schedules over unicast tables",
		Long: `Compile schedules by which the hosts of a group pass messages on to each other in
software, over the unicast forwarding tables of DIR, which compile wrote, or of
FILE: who sends to whom, in which class of buffers. Groups are what compile takes.

Methods:
  circuit     each member sends to the one with the next higher LID, the highest to
              the lowest (Hamiltonian circuit)
  tree        originators send to the member with the lowest LID, which is the root
              of a tree that messages go down
  tree-flood  originators start, and members send to all neighbours in the tree but
              the one that the message came from
  unicast     originators send to each member themselves
  doubling    with each send of all that have a message twice as many have it; it
              starts at the only sender, else at the lowest LID
  two-phase   originators send one packet, which switches copy, to as many hosts in a
              row as there are members, and each of these sends to one member.
              --start says where the row begins, else it is drawn; --phase-1 writes
              the groups of these packets, as compile -g takes them

On banyan networks, hosts are processors by their addresses, which send by one port
and receive at the other: it has to be one with wrap-around (gen banyan --wrap-around).

A message keeps its buffer at a host until the next hosts have taken it in. Schedules
are checked: does every message come to every member once, and can buffers wait for
each other in a cycle? With errors nothing is written, unless --force says so. With
two classes of buffers, one for messages before the turn from high LIDs to low ones
and one after it, no cycle closes.

--check FILE looks at a schedule, and at the hosts and paths that it needs.`,
		Example: `  ibweave-papers schedule tables -g groups.yaml --method tree -o schedule.txt
  ibweave-papers schedule tables --check schedule.txt`,
		Args: a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && (o.Topology == "" || o.LFTs == "") {
				return usagef("schedule needs a directory that compile wrote, or -t TOPOLOGY and --lfts FILE")
			}
			if (o.groups == "") == (o.check == "") {
				return usagef("schedule needs groups to make a schedule for, -g FILE, or one to look at, --check FILE")
			}
			if o.IsJSON() && o.output == "-" && o.check == "" {
				return usagef("--format json is the form of the summary: want -o FILE for the schedule")
			}
			// The flag takes only valid names.
			o.opt.Method, _ = myrinet.ParseMethod(o.method)
			if start >= 0 {
				o.opt.Start = new(int32(start))
			}
			if len(args) == 1 && (o.Topology != "" || o.LFTs != "") {
				return usagef("schedule takes a directory or -t and --lfts, not both")
			}
			if err := cli.OneStdin(o.Topology, o.LFTs, o.groups, o.check, o.nameMap); err != nil {
				return err
			}
			o.dir = strings.Join(args, "")
			return a.schedule(&o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.Topology, "topology", "t", "", "topology `FILE`")
	flags.StringVar(&o.LFTs, "lfts", "", "`FILE` of forwarding tables")
	flags.StringVarP(&o.groups, "groups", "g", "", "`FILE` of multicast groups")
	cli.WordFlag(flags, &o.method, "method", "`METHOD`: "+strings.Join(myrinet.Methods(), ", "), myrinet.Methods()...)
	cli.NumberFlag(flags, &o.opt.Classes, "classes", 1, 2, "classes of buffers, 1 or 2")
	flags.BoolVar(&o.opt.Ordered, "ordered", false, "circuit: all messages start at the lowest LID, so that members get them in one order")
	flags.BoolVar(&o.opt.Return, "return", false, "circuit: messages come back to their originators")
	cli.NumberFlag(flags, &o.opt.MaxFanOut, "max-fan-out", 1, cli.MaxNumber, "trees: the most hosts that one sends to; by default any number")
	cli.NumberFlag(flags, &start, "start", -1, math.MaxInt32, "two-phase: the `HOST` at which all rows begin, by LID or address; -1 draws one by group and originator")
	flags.StringVar(&o.groupsOut, "phase-1", "", "two-phase: write the groups of the first phase to `FILE`")
	flags.StringVar(&o.check, "check", "", "look at the schedule in `FILE`")
	flags.StringVarP(&o.output, "output", "o", "-", "`FILE` to write; - is standard output")
	flags.StringVar(&o.nameMap, "node-name-map", "", "call nodes by the names in `FILE`, a node-name map as of infiniband-diags or what ibnodes prints")
	flags.BoolVar(&o.Lenient, "lenient", false, "leave out of the input what is broken, and list it")
	flags.BoolVar(&o.Strict, "strict", false, "refuse a topology with anything that its tool does not print, and impossible LIDs")
	cmd.MarkFlagsMutuallyExclusive("strict", "lenient")
	flags.BoolVar(&o.force, "force", false, "write schedules with errors, too")
	o.Define(flags, "summary")
	const why = "no schedule is made"
	cli.Scopes(flags,
		cli.Scope{Flags: "classes force method", Not: "check", Why: why, Note: true},
		cli.Scope{Flags: "output", Not: "check", Why: why},
		cli.Scope{Flags: "start phase-1", With: "method=two-phase"},
		cli.Scope{Flags: "ordered return", With: "method=circuit"},
		cli.Scope{Flags: "max-fan-out", With: "method=tree|tree-flood"})
	return cmd
}

// scheduled is the JSON document of schedule.
type scheduled struct {
	Output    string   `json:"output"` // "" when nothing was written
	Hosts     int      `json:"hosts"`
	Groups    int      `json:"groups"`
	Classes   int      `json:"classes"`
	Messages  int      `json:"messages"` // one for each group and sender
	Sends     int      `json:"sends"`    // of all messages
	Links     int      `json:"links"`    // links between switches that the sends cross
	MeanLinks float64  `json:"mean_links"`
	Steps     int      `json:"steps"` // the most sends of a message, one after another
	Faults    int      `json:"faults"`
	Deadlock  []string `json:"deadlock"` // the cycle, as host/class; empty without one
	Verdict   string   `json:"verdict"`
	lines     []string // what is wrong
}

func (a *app) schedule(o *scheduling) error {
	f, tables, err := a.readTables(&o.source)
	if err != nil {
		return err
	}
	s, err := a.makeSchedule(o, f, tables)
	if err != nil {
		return err
	}
	stage := cli.StartStage(a.Screen, "check")
	r := s.Check()
	stage.End()
	d := scheduled{
		Hosts: len(s.Hosts), Groups: len(s.Groups), Classes: s.Classes, Messages: r.Messages, Sends: r.Sends, Steps: r.Steps,
		Faults: len(r.Faults), Deadlock: []string{}, Verdict: "clean", lines: s.Explain(r),
	}
	for _, f := range r.Faults {
		d.Faults += f.Dependents
	}
	for _, w := range r.Deadlock {
		d.Deadlock = append(d.Deadlock, fmt.Sprintf("%d/%d", s.Hosts[w.At].ID, w.Held))
	}
	if !r.Clean() {
		d.Verdict = "errors"
	}
	cost, err := s.Cost(f, tables)
	if err != nil {
		if domain, ok := errors.AsType[*lft.DomainError](err); ok {
			return domain
		}
		if o.check != "" {
			return inputf("%s: %v", o.check, err)
		}
		return err
	}
	d.Links, d.MeanLinks = cost.Links, cost.MeanLinks
	write := o.check == "" && (r.Clean() || o.force)
	if write {
		if err := a.WriteFile(o.output, s.Append(nil)); err != nil {
			return err
		}
		d.Output = o.output
		if o.groupsOut != "" {
			if err := a.WriteFile(o.groupsOut, s.AppendPhaseOne(nil)); err != nil {
				return err
			}
		}
	}
	to := a.stdout
	if o.output == "-" && o.check == "" {
		to = a.stderr // the schedule is on standard output
	}
	err = o.Print(to, &d, d.text)
	if err == nil && !r.Clean() {
		err = cli.ErrFindings
	}
	return err
}

// makeSchedule reads or builds the schedule.
func (a *app) makeSchedule(o *scheduling, f *fabric.Fabric, tables *lft.Tables) (*myrinet.Schedule, error) {
	if o.check != "" {
		data, err := a.reader(&o.source).ReadFile(o.check)
		if err != nil {
			return nil, err
		}
		return myrinet.Read(o.check, data)
	}
	text, err := a.reader(&o.source).ReadFile(o.groups)
	if err != nil {
		return nil, err
	}
	groups, problems, err := open.ReadGroups(o.groups, text, f, dump.Options{Lenient: o.Lenient})
	a.tell(f, problems, o.Lenient)
	if err != nil {
		return nil, err
	}
	stage := cli.StartStage(a.Screen, "schedule")
	defer stage.End()
	s, err := myrinet.Build(f, tables, groups, o.opt)
	if domain, ok := errors.AsType[*lft.DomainError](err); ok {
		return nil, domain
	}
	if err != nil {
		return nil, cli.NewUsageError(err)
	}
	return s, nil
}

// text is the document for people.
func (d *scheduled) text(b *text.Sheet) {
	n := text.Grouped[int]
	b.Row("schedule", "%s, %s, %s of buffers",
		text.CountGrouped(d.Groups, "group", "groups"), text.CountGrouped(d.Hosts, "host", "hosts"), text.CountGrouped(d.Classes, "class", "classes"))
	b.Row("messages", "%s, %s sends, at most %s one after another", n(d.Messages), n(d.Sends), n(d.Steps))
	b.Row("links", "%s crossed between switches, %.2f by a send", n(d.Links), d.MeanLinks)
	for _, line := range d.lines {
		fmt.Fprintln(b, line)
	}
	if d.Output != "" && d.Output != "-" {
		b.Row("output", "%s", d.Output)
	}
	b.Row("verdict", "%s", d.Verdict)
}

// source is where a fabric and its forwarding tables come from: a directory that compile
// wrote, or two files.
type source struct {
	open.Input
	dir     string // "" for none
	nameMap string // file of --node-name-map
}

// reader returns the input of a source, set up with the program's messages.
func (a *app) reader(in *source) *open.Input {
	in.Read = a.readRaw
	in.Tell = func(f *fabric.Fabric, problems []fabric.Problem) { a.tell(f, problems, in.Lenient) }
	in.Rename = func(f *fabric.Fabric) (*fabric.Fabric, error) {
		if in.nameMap == "" {
			return f, nil
		}
		text, err := in.ReadFile(in.nameMap)
		if err != nil {
			return nil, err
		}
		names, problems, err := topology.ParseNames(in.nameMap, text)
		a.tell(f, problems, in.Lenient)
		return f.WithNames(names), err
	}
	return &in.Input
}

func (a *app) readTables(in *source) (*fabric.Fabric, *lft.Tables, error) {
	r := a.reader(in)
	if in.dir != "" {
		if err := r.Directory(in.dir); err != nil {
			return nil, nil, inputf("%w; else want -t FILE --lfts FILE", err)
		}
	}
	err := r.Tables()
	return r.State.Fabric, r.State.Tables, err
}

// tell prints what was odd in the input: a line for each rule about captures, and the
// first ten other problems and how many more there are. With all it prints all of them.
func (a *app) tell(f *fabric.Fabric, problems []fabric.Problem, all bool) {
	if f == nil {
		f = &fabric.Fabric{}
	}
	for _, x := range capture.Findings(f, problems) {
		fmt.Fprintln(a.stderr, x.Message)
	}
	problems = slices.DeleteFunc(slices.Clone(problems), func(p fabric.Problem) bool { return capture.RuleOf(p.Kind) != "" })
	const few = 10
	for i := range problems {
		if i == few && len(problems) > few+1 && !all {
			fmt.Fprintf(a.stderr, "and %d more of these\n", len(problems)-i)
			return
		}
		fmt.Fprintln(a.stderr, problems[i].String())
	}
}

// readRaw reads a whole file, or standard input for "-".
func (a *app) readRaw(name string) ([]byte, error) {
	from := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, inputf("%w", err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, inputf("%s is a directory, want a file", name)
		}
		from = f
	}
	raw, err := files.ReadAll(name, from, open.Limit, new(atomic.Int64))
	if err != nil {
		return nil, inputf("%w", err)
	}
	return raw, nil
}
