package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report/metrics"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// comparison has the flags of diff.
type comparison struct {
	cli.OutputForm
	cli.Threshold
	topology string
	lenient  bool
}

func (a *app) diffCommand() *cobra.Command {
	var c comparison
	var verbose bool
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "what a change does, whom it affects, and what to write first",
		Args:  a.maxArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("diff needs two states, OLD and NEW")
			}
			if err := cli.OneStdin(args[0], args[1], c.topology); err != nil {
				return err
			}
			r, err := a.diff(cmd.Context(), &c, args[0], args[1])
			if err != nil {
				return err
			}
			if c.IsMetrics() {
				err = metrics.Write(a.stdout, c.Metrics, r)
			} else {
				err = c.Print(a.stdout, r, func(b *text.Sheet) { r.Print(b, verbose) })
			}
			return cmp.Or(err, c.CheckWorst(r.Worst()))
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&c.topology, "topology", "t", "", "topology `FILE` of dumps")
	a.nameFlag(cmd)
	a.hostGroupFlag(cmd)
	lenientFlag(flags, &c.lenient)
	a.strictFlag(cmd)
	c.OutputForm.DefineMetrics(flags, "diff")
	c.Threshold.Define(flags, "")
	flags.BoolVarP(&verbose, "verbose", "v", false, "print lists as long as they are, and every entry that changed")
	cli.Scopes(cmd.Flags(), cli.Scope{Flags: "verbose", Not: "format=json", Why: cli.Unsaid, Note: true})
	return cmd
}

// side is OLD or NEW before it is read.
type side struct {
	name string
	audit
	kind state.Part // "" for a directory
}

// is returns what kind of state a side is, for messages.
func (s *side) is() string { return cmp.Or(string(s.kind), "directory") }

// isDump returns true for a dump of tables, which has no cables.
func (s *side) isDump() bool { return s.kind != "" && s.kind != state.Topology }

func (a *app) diff(ctx context.Context, c *comparison, old, new string) (r *diff.Result, err error) {
	var states [2]*side
	for i, name := range []string{old, new} {
		s, err := a.openState(name, c.lenient)
		if err != nil {
			return nil, err
		}
		states[i] = s
	}
	if x, y := states[0].kind, states[1].kind; x != "" && y != "" && x != y {
		return nil, inputf("%s is %s and %s is %s: nothing to compare", old, x, new, y)
	}
	if c.topology != "" && !states[0].isDump() && !states[1].isDump() {
		return nil, usagef("-t is for dumps of tables, which do not tell the cables: %s is %s and %s is %s, so leave it out", old, states[0].is(), new, states[1].is())
	}
	// A topology of both sides is read once, so that they have the same fabric.
	fabrics := map[string]*fabric.Fabric{}
	var snapshots [2]*state.State
	for i, s := range states {
		other := states[1-i]
		if s.isDump() {
			s.Topology = cmp.Or(c.topology, other.Topology)
			if s.Topology == "" {
				return nil, usagef("%s is %s, which does not tell the cables: name the topology, -t FILE", s.name, s.kind)
			}
		}
		f, ok := fabrics[s.Topology]
		if !ok {
			from := s // the side that has the topology
			if s.isDump() && s.Topology == other.Topology {
				from = other
			}
			name := s.Topology
			if f, err = a.reader(&from.audit).Fabric(); err != nil {
				return nil, err
			}
			fabrics[name], fabrics[from.Topology] = f, f
		}
		if s.State.Fabric == nil {
			s.UseFabric(f)
		}
		if snapshots[i], err = a.readState(s); err != nil {
			return nil, err
		}
	}
	told := [2]bool{snapshots[0].PathSLs != nil, snapshots[1].PathSLs != nil}
	for i, s := range states {
		// Compare a file with a directory only in the parts that
		// the file has. On the same fabric, take the parts that a
		// dump does not have from the directory: the VLs still
		// tell whether there are credit loops.
		switch mine, other := snapshots[i], snapshots[1-i]; {
		case s.kind == "":
		case s.isDump() && mine.Fabric == other.Fabric:
			mine.TakeFrom(other)
		default:
			other.LimitTo(mine)
		}
	}
	for i, s := range snapshots {
		s.UnknownSLs = s.UnknownSLs || told[i] && s.PathSLs == nil
	}
	// A compiled directory without multicast tables means that there are no groups.
	for i, s := range snapshots {
		if s.Multicast == nil && snapshots[1-i].Multicast != nil && states[i].Compiled != nil {
			s.Multicast = &mft.Plan{Tables: mft.NewTables(s.Fabric)}
		}
	}
	stage := a.startStage("compare")
	defer stage.End()
	r, err = diff.Compare(ctx, snapshots[0], snapshots[1])
	if err != nil {
		return nil, err
	}
	if r.Old.Groups, err = a.groupStates(ctx, snapshots[0].Fabric, snapshots[0].Tables, false); err != nil {
		return nil, err
	}
	r.New.Groups, err = a.groupStates(ctx, snapshots[1].Fabric, snapshots[1].Tables, true)
	return r, err
}

// openFile reads a file. Of a folder or a db_csv it only
// keeps the names, to read them later. Without adaptive,
// messages about a folder leave its adaptive routing out.
func (a *app) openFile(name string, lenient, adaptive bool) (*audit, error) {
	in := newAudit(lenient, adaptive)
	switch {
	case open.Folder(name):
		return in, a.reader(in).FindIn(name, false)
	case open.Database(name):
		in.Topology = name
		return in, nil
	}
	data, err := a.readInput(name)
	in.Topology = name
	in.Load(name, data)
	return in, err
}

// openState finds out whether a state is a directory, a topology or a dump of tables.
func (a *app) openState(name string, lenient bool) (*side, error) {
	in, err := a.openFile(name, lenient, true)
	if err != nil {
		return nil, err
	}
	s := &side{name: name, audit: *in}
	data, read := s.Loaded(name)
	switch {
	case open.Folder(name):
		return s, nil
	case !read:
		s.kind = state.Topology
		return s, nil
	}
	s.Topology = ""
	form := dump.Recognize(data)
	switch s.kind = form.Info().Kind; s.kind {
	case state.Topology, state.ForwardingTables, state.AdaptiveTables, state.MulticastTables, state.SL2VLTables, state.SLsOfPaths:
		s.Name(s.kind, name)
	case "":
		return nil, &fabric.ParseError{File: name, Err: errors.New("neither a topology nor tables; want ibnetdiscover text, opensm-subnet.lst, or a dump of tables")}
	default:
		return nil, &fabric.ParseError{File: name, Err: errors.New("this is " + form.String() + "; want a topology or a dump of tables")}
	}
	return s, nil
}

func (a *app) readState(s *side) (*state.State, error) {
	r := a.reader(&s.audit)
	for _, read := range []func() error{r.Tables, r.Lanes, r.Multicast} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	x := r.State
	x.Name = s.name
	return &x, nil
}
