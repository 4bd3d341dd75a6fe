package session_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/audit/move"
	"github.com/ibweave/ibweave/audit/session"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// drawRates makes a small tree whose cables between switches have rates of their own, some unknown, and
// routes it. It also returns the rate that unknown ones count as in all that becomes of it: the
// commonest, or 0 where none is known.
func drawRates(t *testing.T, rnd *rand.Rand, engine string) (base *compile.Result, unknown int) {
	t.Helper()
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 12, Pods: []int{2 + rnd.IntN(3)}, Hosts: 1 + rnd.IntN(2), Spines: 2 + rnd.IntN(2), Parallel: 1 + rnd.IntN(2)}))(t)
	rates := []string{"4xSDR", "4xDDR", "4xQDR", "4xFDR", "4xEDR", "4xHDR", "1xHDR", ""}
	rnd.Shuffle(len(rates), func(i, j int) { rates[i], rates[j] = rates[j], rates[i] })
	rates = rates[:1+rnd.IntN(3)]
	links, count := make(map[fabric.PortID]fabric.Link), make(map[int]int)
	for _, c := range f.Cables() {
		if f.IsSwitch(f.Owner(c.A)) && f.IsSwitch(f.Owner(c.B)) {
			l, _ := fabric.ParseLink(rates[rnd.IntN(len(rates))])
			links[c.A], links[c.B] = l, l
			count[l.Mbps()]++
		}
	}
	for rate, n := range count {
		if rate > 0 && (unknown == 0 || n > count[unknown] || n == count[unknown] && rate > unknown) {
			unknown = rate
		}
	}
	return fabrictest.Compile(t, f.WithLinks(links), engine, compile.Options{}), unknown
}

// busiest follows every pair of hosts of rest, and finds the most time of a cable: its routes over its
// rate in Gbit/s.
func busiest(f, rest *fabric.Fabric, tables *lft.Tables, unknown int) (most float64) {
	routes := make(map[fabric.PortID]int)
	for _, src := range rest.CAPorts() {
		for _, dst := range rest.CAPorts() {
			path, err := tables.Path(f, src, rest.LID(dst), nil)
			if src == dst || err != nil {
				continue
			}
			for _, p := range path {
				if f.IsSwitch(f.Owner(p)) && f.PeerSwitch(p) != fabric.NoNode {
					routes[p]++
				}
			}
		}
	}
	for p, n := range routes {
		rate := f.Link(p).Mbps()
		if rate == 0 {
			rate = unknown
		}
		most = max(most, float64(n)/(float64(rate)/1000))
	}
	return most
}

// fastestOf is the rate of the fastest cable between switches in Gbit/s.
func fastestOf(f *fabric.Fabric) (fastest float64) {
	for _, c := range f.Cables() {
		if f.IsSwitch(f.Owner(c.A)) && f.IsSwitch(f.Owner(c.B)) {
			fastest = max(fastest, float64(c.Link.Mbps())/1000)
		}
	}
	return fastest
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(a, b) }

// TestLoadsHaveOneScale: where cables have several rates, the factors of drain and move are the ratios of
// times on the busiest cables, limits hold for them, and all relative loads of a plan, of a session's
// answers and of whatif in them are routes on the fastest cable that there was at first.
func TestLoadsHaveOneScale(t *testing.T) {
	engines := []string{"updn", "minhop", "layered", "fattree"}
	var drains, refused, moves, steps, whatifs int
	for seed := range uint64(short.Of(1000, 60)) {
		rnd := rand.New(rand.NewPCG(seed, 77))
		base, unknown := drawRates(t, rnd, engines[seed%4])
		if unknown == 0 {
			continue
		}
		f := base.Routing.Fabric
		x := &scaled{t: t, seed: seed, rnd: rnd, base: base, unknown: unknown, fastest: fastestOf(f), before: busiest(f, f, base.Routing.Tables, unknown)}
		did, no := x.drain()
		drains, refused = drains+did, refused+no
		moves += x.move()
		did, no = x.session()
		steps, whatifs = steps+did, whatifs+no
	}
	if n := short.Of(1000, 60); drains < n/4 || refused < n/10 || moves < n/4 || steps < n || whatifs < n/10 {
		t.Errorf("%d drained and %d refused for their limits, %d moves, %d steps, %d of whatif: the draw is too narrow", drains, refused, moves, steps, whatifs)
	}
}

// scaled holds loads of what becomes of base to walks.
type scaled struct {
	t               *testing.T
	seed            uint64
	rnd             *rand.Rand
	base            *compile.Result
	unknown         int     // Mbit/s
	fastest, before float64 // Gbit/s, and routes over them
}

// load compares a relative load, and a factor unless it is below 0, with a time on the busiest cable.
func (x *scaled) load(what string, load, factor, time float64) {
	x.t.Helper()
	if !near(load, time*x.fastest) || factor >= 0 && !near(factor, time/x.before) {
		x.t.Errorf("seed %d, %s: load %v, factor %v; followed: %v, %v", x.seed, what, load, factor, time*x.fastest, time/x.before)
	}
}

// drain drains a switch or a cable, and again with limits just below and above what that takes.
func (x *scaled) drain() (drained, refused int) {
	f := x.base.Routing.Fabric
	s := f.Switches()[x.rnd.IntN(f.NumSwitches())]
	ports, _ := f.SwitchLinks(s)
	part := drain.CablePart(f, ports[x.rnd.IntN(len(ports))])
	if x.rnd.IntN(3) > 0 {
		part = drain.SwitchPart(f, []fabric.NodeID{s})
	}
	limited := func(limit float64) *drain.Plan {
		plan := short.Must(drain.Make(context.Background(), x.base, compile.Options{}, []drain.Part{part}, drain.Options{Limit: limit}))(x.t)
		return plan
	}
	plan := limited(0)
	x.load("before", plan.Before.MaxRelative, -1, x.before)
	if len(plan.Windows) == 0 {
		return 0, 0
	}
	step := &plan.Windows[0].Steps[0]
	time := busiest(f, f.Without(part.Cables...), step.Compiled.Routing.Tables, x.unknown)
	x.load("drained", step.MaxRelative, step.Factor, time)
	if time == 0 {
		return 1, 0
	}
	if len(limited(1.001*time/x.before).Refused) > 0 || len(limited(0.999*time/x.before).Windows) > 0 {
		x.t.Errorf("seed %d: limits about %v: not held to", x.seed, time/x.before)
	}
	return 1, 1
}

// move plugs a cable of any rate into free ports, mostly instead of another.
func (x *scaled) move() int {
	f := x.base.Routing.Fabric
	free := func(n fabric.NodeID) string {
		for num := f.Node(n).NumPorts; ; num-- {
			if f.Peer(f.Port(n, num)) == fabric.NoPort {
				return fmt.Sprintf("%s:%d", f.Name(n), num)
			}
		}
	}
	s := f.Switches()[x.rnd.IntN(f.NumSwitches())]
	ports, to := f.SwitchLinks(s)
	k := x.rnd.IntN(len(ports))
	edits := fmt.Sprintf("edits:\n- plug %s %s 4x%s\n", free(s), free(to[k]), []string{"SDR", "QDR", "NDR"}[x.rnd.IntN(3)])
	if x.rnd.IntN(3) > 0 {
		edits += fmt.Sprintf("- unplug %s:%d\n", f.Name(s), f.Num(ports[k]))
	}
	job, err := move.Parse("edits", []byte(edits), f)
	if err != nil {
		x.t.Fatalf("seed %d: %s%v", x.seed, edits, err)
	}
	plan := short.Must(move.Make(context.Background(), x.base, job, compile.Options{}, move.Options{}))(x.t)
	x.load("before", plan.Before.MaxRelative, -1, x.before)
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if s.Drained != nil {
			was := s.Drained.Compiled.Routing
			var out []fabric.PortID
			for _, c := range s.Batch.Unplug {
				out = append(out, c.A)
			}
			x.load("moved, drained", s.Drained.MaxRelative, s.Drained.Factor, busiest(was.Fabric, was.Fabric.Without(out...), was.Tables, x.unknown))
		}
		now := s.After.Compiled.Routing
		x.load("moved", s.After.MaxRelative, s.After.Factor, busiest(now.Fabric, now.Fabric, now.Tables, x.unknown))
	}
	return len(plan.Steps)
}

// session takes some steps.
func (x *scaled) session() (steps, whatifs int) {
	s := begin(x.t, x.base)
	f := x.base.Routing.Fabric
	was := x.before
	for range 6 {
		step := draw(x.rnd, f)
		if step.Kind == session.Drain || step.Kind == session.Restore {
			continue
		}
		if step.Kind == session.Slow {
			step.Rate, _ = fabric.ParseLink([]string{"1xSDR", "4xNDR"}[x.rnd.IntN(2)])
		}
		a := short.Must(s.Do(context.Background(), step))(x.t)
		if a.Refused != "" {
			continue
		}
		r := s.Result().Routing
		now := busiest(r.Fabric, r.Fabric, r.Tables, x.unknown)
		what := fmt.Sprint(s.Steps())
		x.load(what, a.Before.MaxRelative, -1, was)
		x.load(what, a.After.MaxRelative, -1, now)
		if w := a.WhatIf; w != nil && w.Refused == "" && w.Last != nil && a.Kept && w.Last.MaxRelative > 0 {
			x.load(what+", whatif", w.Last.MaxRelative, -1, now)
			whatifs++
		}
		was = now
		steps++
	}
	return steps, whatifs
}
