package jobs

import (
	"context"
	"fmt"
	"sync"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify/bound"
)

// Fitting is for making tables for the jobs of a file, and for judging tables by these jobs.
type Fitting struct {
	*File
	// Groups finds the groups of hosts in a fabric that jobs may name; nil for none.
	Groups func(*fabric.Fabric) (*groups.Set, error)
	// Silent, unless it is nil, is called once if the jobs send nothing between hosts.
	Silent func()
	Demand *lft.Demand  // result of the last Find; nil without a byte between hosts
	Bound  *bound.Bound // of the demand; nil if nothing crosses a cut
	Proven []Proven     // bounds in files of proofs
	one    sync.Mutex
	said   bool
}

// Proven is a lower bound of the load of any tables, proven by a file.
type Proven struct {
	File  string  `json:"file"`
	Least float64 `json:"least_seconds"`
}

// Find returns what the jobs send in a fabric, for compile.Options.Demand. It may be called
// concurrently, since engines are tried in parallel.
func (x *Fitting) Find(ctx context.Context, f *fabric.Fabric) (*lft.Demand, error) {
	x.one.Lock()
	defer x.one.Unlock()
	var set *groups.Set
	var err error
	if x.Groups != nil {
		if set, err = x.Groups(f); err != nil {
			return nil, err
		}
	}
	t, err := x.In(f, set)
	if err != nil {
		return nil, err
	}
	if x.Demand, err = t.Demand(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", x.File.Name(), err)
	}
	if x.Demand == nil && !x.said && x.Silent != nil {
		x.said = true
		x.Silent()
	}
	return x.Demand, nil
}

// TablesLoad is the load of tables by the jobs.
type TablesLoad struct {
	// Seconds is how long the busiest cable takes for all bytes. Hosts is that time of the busiest
	// cable of a host, which no tables change.
	Seconds float64 `json:"seconds"`
	Hosts   float64 `json:"host_seconds"`
	// Least is a lower bound of Seconds with any tables: Hosts, or the bound that Words explains.
	Least float64 `json:"least_seconds"`
	Words string  `json:"witness"`
}

// String writes the load and its bound in words.
func (s *TablesLoad) String() string {
	return fmt.Sprintf("load of the jobs %s, no routing can have less than %s: %s", text.Seconds(s.Seconds), text.Seconds(s.Least), s.Words)
}

func (x *Fitting) load(ctx context.Context, f *fabric.Fabric, tables *lft.Tables) (s TablesLoad, err error) {
	t, err := bound.TimesUnder(ctx, f, tables, x.Demand)
	if err != nil {
		return s, err
	}
	s = TablesLoad{Seconds: max(t.Switches, t.Hosts), Hosts: t.Hosts, Least: t.Hosts, Words: "the busiest cable of a host"}
	if x.Bound != nil {
		if least := bound.Seconds(f, x.Demand, x.Bound.Load); least > s.Least {
			s.Least, s.Words = least, x.Bound.Words
		}
	}
	return s, nil
}

// Worth has the load of tables under the jobs, and lower bounds of the load of any tables.
type Worth struct {
	*TablesLoad          // nil without tables
	Proven      []Proven `json:"proven,omitempty"`
}

// Worth judges tables, which may be nil; it returns nil without jobs, or if there is no figure.
func (x *Fitting) Worth(ctx context.Context, f *fabric.Fabric, tables *lft.Tables) (*Worth, error) {
	if x == nil || x.Demand == nil || tables == nil && x.Proven == nil {
		return nil, nil
	}
	worth := &Worth{Proven: x.Proven}
	if tables == nil {
		return worth, nil
	}
	load, err := x.load(ctx, f, tables)
	worth.TablesLoad = &load
	return worth, err
}

// Lines returns the same for people, as pairs of a name and a text.
func (x *Worth) Lines() (list [][2]string) {
	if x.TablesLoad != nil {
		list = append(list, [2]string{"traffic", x.TablesLoad.String()})
	}
	for _, p := range x.Proven {
		list = append(list, [2]string{"", fmt.Sprintf("no routing can have less than %s, proven by %s", text.Seconds(p.Least), p.File)})
	}
	return list
}

// FitSummary has the load of tables that were made for the jobs, and the load before.
type FitSummary struct {
	TablesLoad
	// Before is Seconds with tables that are not for jobs, or with earlier ones that were kept.
	Before float64 `json:"seconds_before"`
	// Uniform is the greatest load if all hosts send to all LIDs, over that with the former tables.
	Uniform float64 `json:"uniform"`
	Why     string  `json:"why,omitempty"` // the tables are not made for the jobs
}

// Summarize measures tables that compile made for the jobs; nil if these send nothing.
func (x *Fitting) Summarize(ctx context.Context, r *compile.Result) (*FitSummary, error) {
	if r.Fit == nil {
		return nil, nil
	}
	f := r.Routing.Fabric
	s := &FitSummary{Uniform: 1, Why: r.Fit.Why}
	if r.Fit.UniformBefore > 0 {
		s.Uniform = float64(r.Fit.Uniform) / float64(r.Fit.UniformBefore)
	}
	before, err := x.load(ctx, f, r.Fit.Original)
	if err != nil {
		return nil, err
	}
	s.Before = before.Seconds
	s.TablesLoad, err = x.load(ctx, f, r.Routing.Tables)
	return s, err
}

// Print writes the lines of a summary.
func (s *FitSummary) Print(b *text.Sheet) {
	b.Row("traffic", "%s", &s.TablesLoad)
	if s.Why != "" {
		b.Row("", "the tables are those without --traffic: %s", s.Why)
		return
	}
	b.Row("", "%s before; routes of all hosts to all: %.3f times the greatest load before", text.Seconds(s.Before), s.Uniform)
}
