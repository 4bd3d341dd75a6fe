package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/audit/move"
	"github.com/ibweave/ibweave/audit/session"
	"github.com/ibweave/ibweave/audit/whatif"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// begin opens a session on tables as the page does.
func begin(t *testing.T, r *compile.Result) *session.Session {
	t.Helper()
	data := short.Must(session.Encode(r.Engine, r.Routing))(t)
	return short.Must(session.Decode(context.Background(), data))(t)
}

// do takes a step that has to be possible.
func do(t *testing.T, s *session.Session, text string) *session.Answer {
	t.Helper()
	step := short.Must(session.ParseStep(text))(t)
	short.MustEqual(t, step.String(), text, "is written as", step)
	a := short.Must(s.Do(context.Background(), step))(t)
	short.MustEqual(t, a.Refused, "", text)
	return a
}

// same compares what two documents are as JSON.
func same(t *testing.T, what string, want, got any) {
	t.Helper()
	var list [2]any
	for i, x := range []any{want, got} {
		data := short.Must(json.Marshal(x))(t)
		short.Check(t, json.Unmarshal(data, &list[i]))
	}
	short.Diff(t, list[1], list[0], what)
}

// sameTables compares the entries of all LIDs.
func sameTables(t *testing.T, what string, want, got *lft.Routing) {
	t.Helper()
	if c := compile.ChangesSince(want, got); c.Entries > 0 {
		t.Errorf("%s: %+v entries differ", what, c)
	}
}

// TestCommands: steps give what compile --previous, whatif and drain give.
func TestCommands(t *testing.T) {
	ctx := context.Background()
	base := fabrictest.Compile(t, short.Must(gen.Tree(gen.TreeSpec{Ports: 24, Pods: []int{8}, Spines: 4, Parallel: 2, Hosts: 6}))(t), "updn", compile.Options{})
	f := base.Routing.Fabric
	s := begin(t, base)
	_, above := f.SwitchLinks(0)
	leaf, spine := fabric.NodeID(0), above[len(above)-1] // not the one of firstUp
	cable := fmt.Sprintf("%s:%d", f.Node(leaf).GUID, f.Num(firstUp(f)))

	keep := func(f *fabric.Fabric, previous *lft.Routing) *compile.Result {
		t.Helper()
		opt := compile.Options{}
		opt.Route.Previous = previous
		return short.Must(compile.Run(ctx, f, base.Engine, opt))(t)
	}
	// A cable, as compile --previous and as whatif.
	a := do(t, s, "fail "+cable)
	one := keep(f.Without(firstUp(f)), base.Routing)
	sameTables(t, "cable", one.Routing, s.Result().Routing)
	same(t, "cable", one.Verify, a.Verify)
	same(t, "cable", compile.ChangesSince(base.Routing, one.Routing), a.Changes)
	cases := short.Must(whatif.Run(ctx, base, compile.Options{}, whatif.Options{Kind: whatif.Links, Depth: 1}))(t)
	found := false
	for i := range cases.Cases {
		if cases.Cases[i].Number == a.WhatIf.Number {
			found = true
			same(t, "whatif", &cases.Cases[i], a.WhatIf)
		}
	}
	if !found || a.Moved == 0 || !a.Kept || len(a.Writes) != a.Changes.Switches {
		t.Errorf("%+v", a)
	}
	// A spine, then both come back.
	spineGUID := f.Node(spine).GUID.String()
	do(t, s, "fail "+spineGUID)
	two := keep(f.Without(append(slices.Collect(f.Cabled(spine)), firstUp(f))...), one.Routing)
	sameTables(t, "spine", two.Routing, s.Result().Routing)
	do(t, s, "restore "+cable)
	three := keep(f.Without(slices.Collect(f.Cabled(spine))...), two.Routing)
	sameTables(t, "cable again", three.Routing, s.Result().Routing)
	a = do(t, s, "restore "+spineGUID)
	four := keep(f, three.Routing)
	sameTables(t, "spine again", four.Routing, s.Result().Routing)
	same(t, "spine again", four.Verify, a.Verify)
	// Two drains in a row are a plan with one window; the last one goes back to what was.
	parts := []drain.Part{drain.SwitchPart(f, []fabric.NodeID{leaf}), drain.CablePart(f, firstUp(f))}
	for i := range parts {
		a = do(t, s, "drain "+[]string{f.Node(leaf).GUID.String(), cable}[i])
		plan := short.Must(drain.Make(ctx, four, compile.Options{}, parts[:i+1], drain.Options{}))(t)
		same(t, "drain", plan, a.Drain)
		sameTables(t, "drain", plan.Windows[0].Steps[i].Compiled.Routing, s.Result().Routing)
	}
	do(t, s, "restore "+cable)
	do(t, s, "restore "+f.Node(leaf).GUID.String())
	sameTables(t, "put back", four.Routing, s.Result().Routing)
	for range s.Steps() {
		s.Undo()
	}
	s.Undo()
	sameTables(t, "undone", base.Routing, s.Result().Routing)
}

// TestExport: a plan of move that is written for some steps gives their tables.
func TestExport(t *testing.T) {
	base := fabrictest.Compile(t, short.Must(gen.Tree(gen.TreeSpec{Ports: 24, Pods: []int{6}, Spines: 3, Parallel: 2, Hosts: 4}))(t), "updn", compile.Options{})
	f := base.Routing.Fabric
	s := begin(t, base)
	if _, err := s.Export(); err == nil {
		t.Error("there is a plan without steps")
	}
	up, _ := f.SwitchLinks(0)
	other, _ := f.SwitchLinks(1)
	end := func(p fabric.PortID) string { return fmt.Sprintf("%s:%d", f.Node(f.Owner(p)).GUID, f.Num(p)) }
	for _, step := range []string{"fail " + end(up[0]), "recable " + end(up[2]) + " " + end(f.Peer(other[3])), "restore " + end(up[0])} {
		do(t, s, step)
	}
	x := short.Must(s.Export())(t)
	job, err := move.Parse(x.File, []byte(x.Text), f)
	if err != nil {
		t.Fatalf("%v\n%s", err, x.Text)
	}
	plan := short.Must(move.Make(context.Background(), base, job, compile.Options{}, move.Options{}))(t)
	short.MustEqual(t, len(plan.Steps), 3, plan.Refused, x.Text)
	sameTables(t, "move", plan.Steps[2].After.Compiled.Routing, s.Result().Routing)
	do(t, s, "slow "+end(up[0])+" 1xSDR")
	if _, err := s.Export(); err == nil {
		t.Error("a plan slows a cable down")
	}
	d := begin(t, base)
	do(t, d, "drain "+end(up[0]))
	do(t, d, "drain "+f.Node(1).GUID.String())
	x, err = d.Export()
	if want := "ibweave drain DIR --cable " + end(up[0]) + " --switch " + f.Node(1).GUID.String(); err != nil || x.Command != want {
		t.Errorf("%+v, %v; want %s", x, err, want)
	}
}

// TestDrainedSwitchGetsCables: a drained switch that gets cables back carries no packets of others
// over them.
func TestDrainedSwitchGetsCables(t *testing.T) {
	base := fabrictest.Compile(t, short.Must(gen.Tree(gen.TreeSpec{Ports: 24, Pods: []int{6}, Spines: 3, Parallel: 2, Hosts: 4}))(t), "minhop", compile.Options{})
	f := base.Routing.Fabric
	s := begin(t, base)
	spine := f.PeerSwitch(firstUp(f))
	down, _ := f.SwitchLinks(spine)
	var cables []string // to different leaves
	for _, p := range []fabric.PortID{down[0], down[len(down)-1]} {
		cables = append(cables, fmt.Sprintf("%s:%d", f.Node(spine).GUID, f.Num(p)))
	}
	for _, step := range []string{"fail " + cables[0], "fail " + cables[1], "drain " + f.Node(spine).GUID.String(), "restore " + cables[0], "restore " + cables[1]} {
		do(t, s, step)
	}
	r := s.Result().Routing
	if got, _ := r.Fabric.SwitchLinks(spine); len(got) != len(down) {
		t.Fatalf("the spine has %d cables, want %d", len(got), len(down))
	}
	for n := range fabric.NodeID(f.NumSwitches()) {
		for lid, p := range r.Fabric.LIDPorts() {
			if p == fabric.NoPort || f.Owner(f.Attachment(p)) == spine || n == spine {
				continue
			}
			if _, to := r.Tables.Step(r.Fabric, n, fabric.LID(lid)); to != fabric.NoPort && f.Owner(to) == spine {
				t.Errorf("%s sends LID %d to the drained %s", f.Name(n), lid, f.Name(spine))
			}
		}
	}
}

// firstUp is a port of the first switch that leads to another.
func firstUp(f *fabric.Fabric) fabric.PortID {
	ports, _ := f.SwitchLinks(0)
	return ports[0]
}

// TestSteps: after any steps the tables are those that a whole check proves, paths that moved are
// those that differ when every pair is followed, and undoing gives what was before.
func TestSteps(t *testing.T) {
	for seed := range uint64(short.Of(30, 8)) {
		rnd := rand.New(rand.NewPCG(seed, 24))
		f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2 + int(seed%2)})
		engine := []string{"updn", "fattree", "minhop"}[seed%3]
		if seed%5 == 4 {
			f, err = gen.Irregular(gen.IrregularSpec{Switches: 8, Degree: 3, Hosts: 12, Seed: seed})
			engine = "layered"
		}
		base := fabrictest.Compile(t, short.Must(f, err)(t), engine, compile.Options{})
		if base.Routing.SL2VL != nil {
			continue // several lanes
		}
		s := begin(t, base)
		f = base.Routing.Fabric
		taken := map[session.Kind]int{}
		for range 12 {
			before, drained := s.Result().Routing, s.Drained()
			step := draw(rnd, f)
			if rnd.IntN(2) == 0 {
				s.Prepare()
			}
			a, err := s.Do(context.Background(), step)
			if err != nil {
				t.Fatalf("seed %d, %v, %s: %v", seed, s.Steps(), step, err)
			}
			if a.Refused != "" {
				sameTables(t, "refused", before, s.Result().Routing)
				continue
			}
			taken[step.Kind]++
			r := s.Result().Routing
			v := short.Must(verify.Check(context.Background(), &state.State{Fabric: r.Fabric, Tables: r.Tables, Order: r.Order}, verify.Options{Complete: true}))(t)
			if len(s.Drained()) == 0 {
				same(t, fmt.Sprintf("seed %d, %v", seed, s.Steps()), v, a.Verify)
			} else if !reflect.DeepEqual(v.Unicast, a.Verify.Unicast) {
				t.Errorf("seed %d, %v: %+v, a check of all says %+v", seed, s.Steps(), a.Verify.Unicast, v.Unicast)
			}
			if len(drained)+len(s.Drained()) == 0 && step.Kind != session.Recable { // which takes two steps
				opt := compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}}
				opt.Route.Previous = before
				again := short.Must(compile.Run(context.Background(), r.Fabric, base.Engine, opt))(t)
				sameTables(t, fmt.Sprintf("seed %d, %v", seed, s.Steps()), again.Routing, r)
			}
			loads := short.Must(s.Loads(context.Background()))(t)
			counted := short.Must(lft.ChannelLoads(context.Background(), r.Fabric, r.Tables))(t)
			short.EqualList(t, loads, counted, "seed", seed, s.Steps(), "loads", "counted")
			short.Equal(t, slowMoved(before, r), a.Moved, "seed", seed, s.Steps(), "paths moved")
			short.Equal(t, a.Changes, compile.ChangesSince(before, r), "seed", seed, s.Steps())
			if rnd.IntN(6) == 0 {
				s.Undo()
				sameTables(t, "undone", before, s.Result().Routing)
			}
		}
	}
}

// draw is a step that may be impossible.
func draw(rnd *rand.Rand, f *fabric.Fabric) session.Step {
	end := func(port bool) session.End {
		n := fabric.NodeID(rnd.IntN(f.NumSwitches()))
		e := session.End{Node: f.Node(n).GUID}
		if port {
			e.Port = fabric.PortNum(1 + rnd.IntN(int(f.Node(n).NumPorts)))
		}
		return e
	}
	kind := []session.Kind{session.Fail, session.Restore, session.Drain, session.Slow, session.Recable}[rnd.IntN(5)]
	step := session.Step{Kind: kind, At: end(kind == session.Slow || kind == session.Recable || rnd.IntN(3) > 0)}
	switch kind {
	case session.Slow:
		step.Rate, _ = fabric.ParseLink("1xSDR")
	case session.Recable:
		step.To = end(true)
	}
	return step
}

// slowMoved follows each pair of ports in both routings.
func slowMoved(old, r *lft.Routing) (moved int64) {
	follow := func(r *lft.Routing, from fabric.PortID, lid fabric.LID) (path []fabric.PortID, ok bool) {
		f := r.Fabric
		at := f.Peer(from)
		if at != fabric.NoPort && !f.IsSwitch(f.Owner(at)) {
			return nil, false // as in the checker, no path passes a cable between two hosts
		}
		for at != fabric.NoPort && len(path) <= 2*f.NumSwitches() {
			if f.LIDPort(lid) == at {
				return path, true
			}
			n := f.Owner(at)
			if !f.IsSwitch(n) {
				return nil, false
			}
			out, peer := r.Tables.Step(f, n, lid)
			path = append(path, at, out)
			at = peer
		}
		return nil, false
	}
	for _, from := range r.Fabric.CAPorts() {
		for lid, p := range r.Fabric.LIDPorts() {
			if p == fabric.NoPort || p == from || r.Fabric.IsSwitch(r.Fabric.Owner(p)) || old.Fabric.LIDPort(fabric.LID(lid)) != p {
				continue
			}
			was, ok1 := follow(old, from, fabric.LID(lid))
			is, ok2 := follow(r, from, fabric.LID(lid))
			if ok1 && ok2 && !reflect.DeepEqual(was, is) {
				moved++
			}
		}
	}
	return moved
}

// TestRefusals: what cannot be done changes nothing and says why.
func TestRefusals(t *testing.T) {
	base := fabrictest.Compile(t, short.Must(gen.Tree(gen.TreeSpec{Ports: 8, Pods: []int{2}, Spines: 1, Hosts: 2}))(t), "updn", compile.Options{})
	f := base.Routing.Fabric
	s := begin(t, base)
	host := f.Node(fabric.NodeID(f.NumSwitches())).GUID
	up := f.Num(firstUp(f))
	for text, want := range map[string]string{
		"fail 0x1":                                                   "the fabric has no node with GUID 0x0000000000000001",
		fmt.Sprintf("drain %s", host):                                f.Name(fabric.NodeID(f.NumSwitches())).String() + " is no switch: want one of its cables, GUID:PORT",
		fmt.Sprintf("fail %s:200", f.Node(0).GUID):                   f.Name(0).String() + " has no port 200",
		fmt.Sprintf("restore %s:%d", f.Node(0).GUID, up):             fmt.Sprintf("%s:%d is as it was, or its ports have other cables", f.Node(0).GUID, up),
		fmt.Sprintf("recable %s:%d %s:1", f.Node(0).GUID, up, "0x1"): "the fabric has no node with GUID 0x0000000000000001",
	} {
		step := short.Must(session.ParseStep(text))(t)
		a, err := s.Do(context.Background(), step)
		if err != nil || a.Refused != want || len(s.Steps()) != 0 {
			t.Errorf("%s: %v, %q; want %q", text, err, a.Refused, want)
		}
	}
	torus := fabrictest.Compile(t, f, "updn", compile.Options{})
	torus.Routing.SL2VL = lft.NewSL2VL(f, lft.VLMap{})
	if _, err := session.Encode(torus.Engine, torus.Routing); err == nil {
		t.Error("tables with lanes are packed")
	}
}

// TestDecode: tables that were packed have the nodes, ports, LIDs, names, kinds and cables that they had.
func TestDecode(t *testing.T) {
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 24, Pods: []int{3}, Spines: 2, Hosts: 4}))(t)
	f = short.Must(gen.DropLinks(f, 2, 1))(t)
	host := fabric.NodeID(f.NumSwitches())
	f, _ = f.WithNames(map[fabric.GUID]string{f.Node(0).GUID: "a \"leaf\"", f.Node(1).GUID: "tab\tand\nline", f.Node(host).GUID: f.Name(host + 1).Text}).
		WithKinds([]fabric.KindRule{{Kind: fabric.ServiceKind, Pattern: f.Node(host + 2).GUID.String()}})
	r := fabrictest.Compile(t, f, "updn", compile.Options{LIDs: lft.LIDOptions{LMC: 1}})
	f = r.Routing.Fabric
	g := begin(t, r).Result().Routing
	sameTables(t, "packed", r.Routing, g)
	if !fabric.SameTopology(f, g.Fabric) || !slices.Equal(r.Routing.Order, g.Order) {
		t.Fatal("another topology, or another order")
	}
	for n := range fabric.NodeID(f.NumNodes()) {
		if f.Name(n) != g.Fabric.Name(n) || f.Kind(n) != g.Fabric.Kind(n) {
			t.Errorf("%s, a %s, was %s, a %s", g.Fabric.Name(n), g.Fabric.Kind(n), f.Name(n), f.Kind(n))
		}
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if h := g.Fabric; f.LID(p) != h.LID(p) || f.LMC(p) != h.LMC(p) || f.Label(p) != h.Label(p) || f.Link(p) != h.Link(p) || f.PortGUID(p) != h.PortGUID(p) && f.Peer(p) != fabric.NoPort {
			t.Errorf("%s has LID %d, and had %d", f.PortName(p), h.LID(p), f.LID(p))
		}
	}
}

// FuzzParseStep: a step that is read is written as text that gives it again.
func FuzzParseStep(f *testing.F) {
	for _, text := range []string{"fail 0x1", "drain 1:2", "restore 0xffffffffffffffff:254", "slow 0x1:1 4xHDR", "recable 1:2 3:4", "slow 1 4x", "recable 1:1 2", "fail 0x1:255", "x y", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		step, err := session.ParseStep(text)
		if err != nil {
			return
		}
		again := short.Must(session.ParseStep(step.String()))(t)
		short.MustEqual(t, again, step, text)
	})
}

// FuzzDecode: data that is read makes a session, and other data an error.
func FuzzDecode(f *testing.F) {
	made := fabrictest.FatTree(f, 2, 2)
	e := short.Must(compile.EngineByName("updn"))(f)
	r := short.Must(compile.Run(context.Background(), made, e, compile.Options{}))(f)
	data := short.Must(session.Encode(e, r.Routing))(f)
	f.Add(data)
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := session.Decode(context.Background(), data); (s == nil) != (err != nil) {
			t.Fatalf("%v, %v", s, err)
		}
	})
}

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
	for seed := range uint64(short.Of(short.Usual(1000, 330), 60)) {
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
	if n := short.Of(short.Usual(1000, 330), 60); drains < n/4 || refused < n/10 || moves < n/4 || steps < n || whatifs < n/10 {
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
