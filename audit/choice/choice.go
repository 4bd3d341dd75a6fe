// Package choice picks the engine for a fabric, and tells which engine would
// be clearly better with more virtual lanes. It routes the fabric with each
// candidate, and compares the tables by the results of the checker and of
// random bisections. It makes no promise to other modules.
//
// # The rule
//
// Candidates are fattree, xy, banyan, updn and layered. Excluded are engines that do not support
// the fabric, those whose tables have errors while others have none, and those that need more
// virtual lanes than there are: one lane unless a caller allows more, since OpenSM's files carry
// one. Each other engine has two losses: the parts by which its greatest relative load exceeds the
// least one, and by which the greatest effective bisection bandwidth, over the same random
// bisections, exceeds its own. The greater is its loss. The engine with the least loss wins;
// losses that differ by half a hundredth count as equal, and of equal engines the first in the list
// wins, since the structure of its paths is simpler.
//
// With a demand all tables are made for the jobs, and the load of the jobs comes first: an
// engine is excluded if its busiest cable takes more than half a hundredth longer for all bytes
// than that of the best engine.
//
// layered takes the most time. On fabrics of more than a million forwarding entries it is tried
// only if no load of the others is within a hundredth of a proven bound, and on more than 32
// million never.
package choice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// engines are the names of the candidates. Those that share an order or structure with
// multicast schemes and OpenSM's own engines come first.
var engines = []string{"fattree", "xy", "banyan", "updn"}

// slow is the last candidate, which takes seconds on large fabrics.
const slow = "layered"

const (
	// equal is the difference of losses that does not count: bisections are a sample, and a
	// greedy search ends anywhere near its goal.
	equal = 0.005
	// near is the part by which a load may exceed a bound and still count as equal to it, and by
	// which a better engine may be worse in its other figures.
	near = 0.01
	// clear is the part by which a load or bandwidth must be better to count as clearly better.
	clear = 0.05
	// Bounds of forwarding entries: up to slowEntries the slow engine is
	// always tried, and beyond maxEntries never. Up to maxMeasured the tables
	// of a given engine are measured.
	slowEntries, maxEntries, maxMeasured = 1 << 20, 32 << 20, 4 << 20
	// samples is the number of routes in all bisections, mostBisections bounds the bisections: the
	// mean is then right to about a tenth of a point.
	samples, mostBisections = 1 << 17, 10000
)

// Candidate is an engine and what its tables are worth.
type Candidate struct {
	Engine string `json:"engine"`
	// Refused is why the engine has no tables; the fields after it are then empty.
	Refused string  `json:"refused,omitempty"`
	VLs     int     `json:"vls"`  // data VLs that its tables need
	Load    float64 `json:"load"` // greatest relative load, see verify.LoadBound
	// Bandwidth is the mean effective bisection bandwidth, 0 to 1; 0 if no two ports can send.
	Bandwidth float64 `json:"bandwidth"`
	// Jobs is how many seconds the busiest cable takes for the bytes of a demand, 0 without one.
	Jobs float64 `json:"job_seconds,omitempty"`
	// Loss is the greater of two parts: by which Load exceeds the least load, and by which the
	// greatest bandwidth exceeds Bandwidth, of the candidates in the running.
	Loss float64 `json:"loss"`

	Result    *compile.Result    `json:"-"` // without multicast
	Bisection *quality.Bisection `json:"-"` // nil if no two ports can send
}

// Choice is the engine that was chosen, and all candidates. Its JSON form is the member choice of the
// document of `ibweave compile --format json`.
type Choice struct {
	Engine     string      `json:"engine"`
	Why        string      `json:"why"` // it was chosen
	Candidates []Candidate `json:"candidates"`
	// Better is the engine that would be clearly better with more lanes; "" for none.
	Better string `json:"better"`
}

// Find returns the candidate with this name, nil if there is none.
func (c *Choice) Find(engine string) *Candidate {
	for i := range c.Candidates {
		if c.Candidates[i].Engine == engine {
			return &c.Candidates[i]
		}
	}
	return nil
}

// Choose picks an engine. The result has no multicast groups: Choose ignores those
// in opt. Errors: a *RefusedError, and those of compile.Run except lft.DomainErrors.
func Choose(ctx context.Context, f *fabric.Fabric, opt compile.Options) (*Choice, *compile.Result, error) {
	order, err := updown.ChooseOrder(ctx, f, opt.Route.Roots)
	if err != nil {
		return nil, nil, err
	}
	opt.Route.Order = order.Rank // for all candidates
	list, err := tryAll(ctx, f, opt)
	if err != nil {
		return nil, nil, err
	}
	lanes := max(1, opt.Route.VLs)
	running := listRunning(list, lanes)
	if len(running) == 0 {
		return nil, nil, &RefusedError{list, lanes}
	}
	fastest := slices.MinFunc(running, func(x, y *Candidate) int { return cmp.Compare(x.Jobs, y.Jobs) }).Jobs // time of jobs
	soonest := text.Where(running, func(c *Candidate) bool { return !(part(c.Jobs, fastest) > equal) })       // all if fastest is infinite
	best := least(soonest)
	c := &Choice{Engine: best.Engine, Candidates: list, Better: better(best, list)}
	among := fmt.Sprintf("of %d engines", len(running))
	if best.Jobs > 0 {
		among = fmt.Sprintf("of the %d engines with the least load of the jobs", len(soonest))
	}
	switch {
	case len(running) == 1:
		c.Why = fmt.Sprintf("no other engine suits this fabric on %s", text.Count(lanes, "VL", "VLs"))
	case len(soonest) == 1:
		c.Why = fmt.Sprintf("of %d engines it has the least load of the jobs", len(running))
	case best.Loss <= equal:
		c.Why = fmt.Sprintf("%s none has %.1f %% less load or more bandwidth", among, 100*equal)
	default:
		c.Why = fmt.Sprintf("%s it is closest to the least load and the most bandwidth, %.1f %% off at most", among, 100*best.Loss)
	}
	return c, best.Result, nil
}

// RefusedError says why no engine is in the running.
type RefusedError struct {
	Candidates []Candidate
	VLs        int // that are allowed
}

func (e *RefusedError) Error() string {
	why := text.Each(e.Candidates, func(c Candidate) string {
		return c.Engine + ": " + cmp.Or(c.Refused, "needs "+text.Count(c.VLs, "VL", "VLs"))
	})
	return fmt.Sprintf("no engine routes this fabric on %s: %s", text.Count(e.VLs, "VL", "VLs"), strings.Join(why, "; "))
}

func tryAll(ctx context.Context, f *fabric.Fabric, opt compile.Options) ([]Candidate, error) {
	list, err := try(ctx, f, opt, engines)
	if err != nil {
		return nil, err
	}
	settled, err := isSettled(ctx, f, list, max(1, opt.Route.VLs))
	if err != nil || settled {
		return list, err
	}
	more, err := try(ctx, f, opt, []string{slow})
	return append(list, more...), err
}

// isSettled returns true if the slow engine is not tried: the fabric is too
// large for it, or is large and some candidate's load, on the lanes that there
// are, is within a hundredth of the bound.
func isSettled(ctx context.Context, f *fabric.Fabric, list []Candidate, lanes int) (bool, error) {
	running := listRunning(list, lanes)
	if n := entries(f); n <= slowEntries || n > maxEntries || len(running) == 0 || running[0].hasErrors() {
		return n > maxEntries, nil
	}
	b, err := bound.Find(ctx, running[0].Result.Routing.Fabric, bound.Options{Rounds: -1})
	if err != nil || b.Any == nil {
		return false, err
	}
	return slices.ContainsFunc(running, func(x *Candidate) bool { return x.Load <= b.Any.Load*(1+near) }), nil
}

func entries(f *fabric.Fabric) int { return f.NumSwitches() * max(int(f.MaxLID()), f.NumNodes()) }

// bandwidth measures tables on random bisections, the same for all tables of a fabric. It returns
// nil if no two ports can send.
func bandwidth(ctx context.Context, r *lft.Routing) (*quality.Bisection, error) {
	n := max(1, min(mostBisections, 2*samples/max(1, len(r.Fabric.CAPorts()))))
	q, err := quality.Measure(ctx, r.Fabric, r.Tables, quality.Options{Bisections: n, Seed: 1})
	if err != nil {
		return nil, err
	}
	return q.Bisection, nil
}

// try routes f with the named engines in parallel.
func try(ctx context.Context, f *fabric.Fabric, opt compile.Options, names []string) ([]Candidate, error) {
	opt.Groups, opt.Stage, opt.Progress, opt.Route.Previous = nil, nil, nil, nil
	list := make([]Candidate, len(names))
	return list, par.ForEach(ctx, 0, len(names), func(i int) error {
		e, err := compile.EngineByName(names[i])
		if err != nil {
			return err
		}
		r, err := compile.Run(ctx, f, e, opt)
		if outside, ok := errors.AsType[*lft.DomainError](err); ok {
			list[i] = Candidate{Engine: e.Name(), Refused: outside.Reason}
			return nil
		} else if err != nil {
			return err
		}
		list[i] = Candidate{Engine: r.Engine.Name(), VLs: r.Verify.CreditLoops.VLs, Load: r.Verify.GreatestLoad(), Result: r}
		return list[i].measure(ctx, opt.Demand)
	})
}

// measure fills in the bandwidth, and the time of jobs if any.
func (c *Candidate) measure(ctx context.Context, demand func(context.Context, *fabric.Fabric) (*lft.Demand, error)) (err error) {
	r := c.Result.Routing
	if c.Bisection, err = bandwidth(ctx, r); c.Bisection != nil {
		c.Bandwidth = c.Bisection.Mean
	}
	if err != nil || demand == nil {
		return err
	}
	d, err := demand(ctx, r.Fabric)
	if err != nil || d == nil {
		return err
	}
	t, err := bound.TimesUnder(ctx, r.Fabric, r.Tables, d)
	c.Jobs = max(t.Switches, t.Hosts)
	return err
}

func (c *Candidate) hasErrors() bool { return c.Result.Verify.Worst() == verify.Error }

// listRunning returns the candidates that have tables for this number of lanes; if some of them
// have no errors, only these.
func listRunning(list []Candidate, lanes int) (running []*Candidate) {
	flawless := false
	for i := range list {
		if c := &list[i]; c.Refused == "" && c.VLs <= lanes {
			running = append(running, c)
			flawless = flawless || !c.hasErrors()
		}
	}
	return slices.DeleteFunc(running, func(c *Candidate) bool { return flawless && c.hasErrors() })
}

// least sets the losses of candidates, and returns the first one whose loss counts as least.
func least(list []*Candidate) *Candidate {
	load, bandwidth := math.Inf(1), 0.0
	for _, c := range list {
		load, bandwidth = min(load, c.Load), max(bandwidth, c.Bandwidth)
	}
	least := math.Inf(1)
	for _, c := range list {
		c.Loss = max(part(c.Load, load), part(bandwidth, c.Bandwidth))
		least = min(least, c.Loss)
	}
	return list[slices.IndexFunc(list, func(c *Candidate) bool { return c.Loss <= least+equal })]
}

// part returns the part of y by which x exceeds y, x/y - 1; 0 if y is 0.
func part(x, y float64) float64 {
	if y == 0 {
		return 0
	}
	return x/y - 1
}

// better returns the candidate that is clearly better in load or bandwidth,
// and not worse in the other or for jobs. Of several it is the one with the
// least loss among them; "" for none.
func better(than *Candidate, list []Candidate) string {
	var found []*Candidate
	for i := range list {
		c := list[i] // a copy, since least sets other losses here
		if c.Refused != "" || c.hasErrors() || part(c.Jobs, than.Jobs) > near {
			continue
		}
		load, bandwidth := part(than.Load, c.Load), part(c.Bandwidth, than.Bandwidth)
		if load >= clear && bandwidth >= -near || bandwidth >= clear && load >= -near {
			found = append(found, &c)
		}
	}
	if found == nil {
		return ""
	}
	return least(found).Engine
}

// Judgement has the figures of a routing that the checker lacks.
type Judgement struct {
	Shape *cabling.Shape `json:"shape"`
	// Bandwidth is measured if that takes little time, or an engine was chosen.
	Bandwidth *quality.Bisection `json:"bandwidth,omitempty"`
	// Diversity is measured when Bandwidth is; nil if no port has several LIDs.
	Diversity *quality.Disjoint `json:"path_diversity,omitempty"`
	// Choice is nil if the engine was given.
	Choice *Choice `json:"choice,omitempty"`
}

// Judge judges the routing r. chosen is how its engine was chosen, nil if it was given. Errors:
// ctx's.
func Judge(ctx context.Context, r *compile.Result, chosen *Choice) (j Judgement, err error) {
	g := r.Routing.Fabric
	j.Shape, j.Choice = cabling.Recognize(g), chosen
	if chosen == nil && entries(g) > maxMeasured { // else measuring takes tenths of a second at most
		return j, nil
	}
	if j.Diversity, err = quality.Disjointness(ctx, g, r.Routing.Tables); err != nil {
		return j, err
	}
	if chosen != nil {
		j.Bandwidth = chosen.Find(chosen.Engine).Bisection
		return j, nil
	}
	j.Bandwidth, err = bandwidth(ctx, r.Routing)
	return j, err
}
