package reproduce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/papers/drawing"
	"github.com/ibweave/ibweave/sim"
)

// Row is a line of an exhibit: what the paper says, and what our code computes.
type Row struct {
	What     string `json:"what"`
	Paper    string `json:"paper,omitempty"` // "" if it does not say
	Computed string `json:"computed"`
}

func (f *Figure) add(what, paper string, computed any) {
	f.Rows = append(f.Rows, Row{what, paper, fmt.Sprint(computed)})
}

// yes returns "yes" or "no", as rows say it.
func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// rowsClaim is the claim that the rows of an exhibit are as in the paper.
type rowsClaim struct {
	spec, words, exhibit string
	why                  string // why it holds
	// Rows that may differ from the paper: if only these do, the claim holds as what `as` says.
	differ  []string
	differs func(what string) bool // if not nil, finds further such rows
	as      string
	fails   string // why it fails
}

// judge compares the rows for which the paper has a value.
func (c *rowsClaim) judge(f *Figure) Finding {
	rows, same, expected := 0, 0, 0
	var says []string
	for _, r := range f.Rows {
		if r.Paper == "" {
			continue
		}
		rows++
		if r.Computed == r.Paper {
			same++
			continue
		}
		if slices.Contains(c.differ, r.What) || c.differs != nil && c.differs(r.What) {
			expected++
		}
		says = append(says, fmt.Sprintf("%s: %s, not %s", r.What, r.Computed, r.Paper))
	}
	out := Finding{Verdict: Holds, Measured: fmt.Sprintf("%d of %d rows are as the paper has them", same, rows), Why: c.why}
	if says != nil {
		out.Measured += "; " + strings.Join(says, "; ")
	}
	switch {
	case rows == 0:
		return Finding{Verdict: NotDecidable, Measured: "the paper has no rows"}
	case same == rows:
	case same+expected == rows && c.as != "":
		out.Verdict, out.As = HoldsAs, c.as
	default:
		out.Verdict, out.Why = Fails, c.fails
	}
	return out
}

func claimsOf(list ...rowsClaim) []Claim {
	return text.Each(list, func(c rowsClaim) Claim { return on(c.spec, c.words, c.exhibit, c.judge) })
}

// Text writes a figure for a terminal: calls, drawings, and rows or points in columns.
func (f *Figure) Text(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n", f.ID, f.Title)
	for _, call := range f.Calls {
		fmt.Fprintf(&b, "  %s\n", call)
	}
	for i := range f.Drawings {
		b.WriteByte('\n')
		if err := f.Drawings[i].Text(&b); err != nil {
			return err
		}
	}
	b.WriteByte('\n')
	columns := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if f.Rows != nil {
		fmt.Fprintf(columns, "\tthe paper\tcomputed\n")
	}
	for _, p := range f.Panels {
		for _, c := range p.Curves {
			for _, at := range c.Points {
				fmt.Fprintf(columns, "%s\t%s\t%s %v\t%s %s\n", p.Title, c.Name, p.X.Label, at.X, p.Y.Label, interval(at, 4))
			}
		}
	}
	for _, r := range f.Rows {
		paper := r.Paper
		if paper == "" {
			paper = "-"
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\n", r.What, paper, r.Computed)
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}

// place returns where a node of a fabric is in a drawing; false leaves it out.
type place func(n fabric.NodeID) (drawing.Spot, bool)

// plan is a drawing of a fabric; spot has the index of each node in Spots.
type plan struct {
	drawing.Network
	f    *fabric.Fabric
	spot map[fabric.NodeID]int
}

// drawFabric draws the nodes of a fabric for which at has a place, and their cables.
func drawFabric(title string, f *fabric.Fabric, at place) *plan {
	d := &plan{Network: drawing.Network{Title: title, Cables: [][2]int{}, Arrows: []drawing.Arrow{}}, f: f, spot: map[fabric.NodeID]int{}}
	for n := range fabric.NodeID(f.NumNodes()) {
		if s, ok := at(n); ok {
			d.spot[n] = len(d.Spots)
			d.Spots = append(d.Spots, s)
		}
	}
	for p := range fabric.PortID(f.NumPorts()) {
		q := f.Peer(p)
		if q == fabric.NoPort || q < p {
			continue
		}
		a, ok := d.spot[f.Owner(p)]
		b, too := d.spot[f.Owner(q)]
		if ok && too {
			d.Cables = append(d.Cables, [2]int{a, b})
		}
	}
	return d
}

// arrow draws packet who on the cable that leaves port out, or waiting
// for that cable. A cable that is not in the drawing gets nothing.
func (d *plan) arrow(out fabric.PortID, who string, waits bool) {
	from, ok := d.spot[d.f.Owner(out)]
	to, too := d.spot[d.f.Owner(d.f.Peer(out))]
	a := drawing.Arrow{From: from, To: to, Who: who, Waits: waits}
	if ok && too && !slices.Contains(d.Arrows, a) {
		d.Arrows = append(d.Arrows, a)
	}
}

// deadlock draws packets that wait for each other in a cycle: each
// holds the cable that the one before it waits for. who names packets.
func (d *plan) deadlock(e *sim.DeadlockError, who func(w *sim.Wait) string) {
	for i := range e.Waits {
		w, next := &e.Waits[i], &e.Waits[(i+1)%len(e.Waits)]
		s, _ := d.f.NodeByGUID(w.For.Switch)
		out := d.f.Port(s, w.For.Port)
		d.arrow(out, who(next), false)
		if who(w) != who(next) {
			d.arrow(out, who(w), true)
		}
	}
}

// lock sends messages at time 0. It returns the deadlock that they
// end in, nil if all arrive; other errors are the simulator's.
func lock(ctx context.Context, net sim.Network, cfg sim.Config, messages []sim.Message) (*sim.DeadlockError, error) {
	s, err := sim.New(net, cfg, nil)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		if err := s.Send(m); err != nil {
			return nil, err
		}
	}
	err = s.Run(ctx, sim.Forever)
	if dead, ok := errors.AsType[*sim.DeadlockError](err); ok {
		return dead, nil
	}
	if c := s.Counts(); err == nil && (c.Copies != 0 || c.Dropped != 0) {
		err = fmt.Errorf("packets are lost: %+v", c)
	}
	return nil, err
}

// outcome puts a result of lock into words.
func outcome(dead bool) string {
	if dead {
		return "deadlock"
	}
	return "all arrive"
}

// exhibit returns an experiment that is one piece of work.
func exhibit(name, title string, fill func(ctx context.Context, lab *Lab, f *Figure) error) Experiment {
	return Experiment{Name: name, Title: title, Run: func(lab *Lab) (*Figure, error) {
		f := &Figure{}
		err := lab.Each(1, func(ctx context.Context, _ int) error { return fill(ctx, lab, f) })
		return f, err
	}}
}
