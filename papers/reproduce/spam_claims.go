package reproduce

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/report/chart"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/updown"
)

func judgeSPAMDestinations(f *Figure) Finding {
	var whole, most chart.Point // with the greatest Y
	var says []string
	a := f.panel(0)
	greater := func(p *chart.Point, q chart.Point) {
		if p.Y == 0 || q.Y > p.Y {
			*p = q
		}
	}
	for _, n := range spamSizes {
		curve := a.Curve(nodes(n))
		one, four, last := curve[0], a.At(nodes(n), 4), curve[len(curve)-1]
		greater(&whole, ratio(last, one))
		greater(&most, ratio(last, four))
		says = append(says, fmt.Sprintf("%s: %.2f µs to 1, %.2f to 4, %.2f to %.0f", nodes(n), one.Y, four.Y, last.Y, last.X))
	}
	out := Finding{
		Measured: fmt.Sprintf("%s; from 1 to all %s times as long, from 4 on %s", strings.Join(says, "; "), interval(whole, 3), interval(most, 3)),
		Why: "the way to the farthest destination is what counts, and that of a few is nearly as long as that of all; 11.3 µs of it are the startup and the message itself; " +
			"taken as: within 5 %, and from 4 on within 10 %",
	}
	switch how, then := -beyond(whole, 1.05), -beyond(most, 1.1); {
	case how >= 0:
		out.decide(how)
	case then > 0:
		out.Verdict, out.As = HoldsAs, "independent from 4 destinations on"
	default:
		out.decide(then)
	}
	return out
}

func judgeSPAMSize(f *Figure) Finding {
	a := f.panel(0)
	var s tally
	for _, at := range a.Curve(nodes(128)) {
		if at.X < 127 {
			r := ratio(a.At(nodes(256), at.X), at)
			s.add(-beyond(r, 1.1), r.Y-1, "%v destinations", at.X)
		}
	}
	return decided(s.how(), "ways grow with the square root of the number of nodes, and each router more takes 50 ns; taken as: within 10 %",
		"256 nodes take %s (%s) to %s (%s) longer than 128", percent(s.low), s.atLow, percent(s.high), s.atHigh)
}

func judgeSPAMBroadcast(f *Figure, tree spamTree) Finding {
	c := f.panel(2)
	mean, most := c.At(tree.name, 255), c.At(tree.name+longestBroadcast, 255)
	out := decided(-beyond(mean, 14), "no processor is more than 54 routers away",
		"%s µs on average, %.2f at most in %d networks", interval(mean, 2), most.Y, most.N)
	switch {
	case out.Verdict == Fails:
		out.Why = "ways in this tree are long: it takes 55 routers to be above 14 µs"
	case out.Verdict == Holds && most.Y > 14:
		out.Verdict, out.As = HoldsAs, "a mean"
		out.Why = "in some networks the farthest processor is more than 54 routers away"
	}
	return out
}

func judgeSPAMSoftware(f *Figure) Finding {
	b := f.panel(1)
	bound, measured := b.At("software, startups alone", 255).Y, b.At("software, "+nodes(256), 255)
	out := holdsIf(bound == 90, "", "%.0f µs of startups for 255 destinations; %s µs in the simulation, with unicast worms", bound, interval(measured, 1))
	if out.Verdict == Fails {
		out.Why = "the bound is ceil(log2(d+1)) startups, which are 8 for the 255 destinations of a broadcast in 256 nodes, not 9 (E-S1)"
	}
	return out
}

func judgeSPAMFactor(f *Figure) Finding {
	spam := f.panel(0).At(nodes(256), 255)
	b := f.panel(1)
	bound, software := ratio(b.At("software, startups alone", 255), spam), ratio(b.At("software, "+nodes(256), 255), spam)
	out := decided(beyond(bound, 6), "with 80 µs in place of the printed 90, which would give 6.4 to 6.9 times",
		"the startups alone are %s times SPAM's latency, software multicast as simulated %s times", interval(bound, 2), interval(software, 2))
	if out.Verdict != Holds && beyond(software, 6) > 0 {
		out.Verdict, out.As, out.Why = HoldsAs, "against software multicast with its messages", "with 80 µs in place of the printed 90 the startups alone are not clearly six times as long"
	}
	return out
}

// pointAt is Figure.At, and returns false if there is no such point.
func pointAt(f *Figure, name string, x float64) (chart.Point, bool) {
	for _, at := range f.Curve(name) {
		if at.X == x {
			return at, true
		}
	}
	return chart.Point{}, false
}

// lastRate is the highest rate or load of a curve at which it is steady, 0 if it has none.
func lastRate(f *Figure, name string) float64 {
	c := f.steadyCurve(name)
	if len(c) == 0 {
		return 0
	}
	return c[len(c)-1].X
}

// spamHeavy bounds relatively heavy traffic: a multicast to the fewest
// destinations takes that many times as long as at the lowest rate.
// Beyond that the network is near its limit.
const spamHeavy = 1.5

func judgeSPAMTraffic(f *Figure) Finding {
	b := f.panel(1)
	loads := spamLoads[:4]
	var says []string
	var heaviest float64
	var worst chart.Point
	for _, few := range b.steadyCurve(loads[0].name) {
		low, high, all := few, few, true
		for _, load := range loads {
			at, ok := pointAt(b, load.name, few.X)
			if all = all && ok; !ok {
				continue
			}
			if at.Y < low.Y {
				low = at
			}
			if at.Y > high.Y {
				high = at
			}
		}
		if !all || few.Y > spamHeavy*b.Curve(loads[0].name)[0].Y {
			break
		}
		says = append(says, fmt.Sprintf("%.1f to %.1f µs at %v", low.Y, high.Y, few.X))
		heaviest = few.X
		if r := ratio(high, low); r.Y > worst.Y {
			worst = r
		}
	}
	if len(says) == 0 {
		return Finding{Verdict: NotDecidable, Measured: "no rate is steady for all"}
	}
	return decided(-beyond(worst, 1.25),
		"a worm waits for the root's channels once, however many destinations it has; taken as: within 25 %, as long as multicasts to 8 take at most half as long again as in an idle network",
		"multicasts to 8 to 64 take %s messages per µs and node: factors of up to %s, and up to rate %v", strings.Join(says, ", "), interval(worst, 2), heaviest)
}

func judgeSPAMParts(f *Figure) Finding {
	b := f.panel(1)
	one, parts := spamLoads[3].name, spamLoads[4].name
	last := min(lastRate(b, one), lastRate(b, parts))
	if last == 0 {
		return Finding{Verdict: NotDecidable, Measured: "no rate is steady for both"}
	}
	x, y := b.At(one, last), b.At(parts, last)
	idle, idleParts := b.Curve(one)[0], b.Curve(parts)[0]
	out := Finding{Measured: fmt.Sprintf("64 destinations: one worm %.2f µs and 4 worms %.2f at rate %v, %s and %s at rate %v; the last steady rates are %v and %v",
		idle.Y, idleParts.Y, idle.X, interval(x, 2), interval(y, 2), last, lastRate(b, one), lastRate(b, parts))}
	switch {
	case above(x, y) && lastRate(b, parts) >= lastRate(b, one):
		out.Verdict = Holds
	case above(y, x) || lastRate(b, parts) < lastRate(b, one):
		out.Verdict = Fails
		out.Why = "parts leave the sender one after the other: with buffers of one flit a worm stands still while each router on its way reads the header, " +
			"so that each part takes some 2 µs; and all of them take unicast's channels up from there"
	default:
		out.decide(0)
	}
	return out
}

// What the SPAM paper mentions and does not show.

const spamSystemDraws = 3

// spamMulticasts measures the paper's second set of simulations, for which it has no figure.
func spamMulticasts(lab *Lab) (*Figure, error) {
	w := &spamSweep{rates: []float64{0.0005, 0.001, 0.002, 0.003, 0.004}, draws: spamSystemDraws, least: 300, most: 2000}
	if lab.Quick {
		w.rates, w.least, w.most = []float64{0.0005, 0.002}, 150, 150
	}
	loads := spamLoads[:4]
	if lab.Quick {
		loads = []spamLoad{loads[0], loads[3]}
	}
	for _, load := range loads {
		load.multicast = true
		w.loads = append(w.loads, load)
	}
	f := &Figure{Parameters: w.parameters(lab, "all messages"), Panels: []chart.Panel{{X: rateAxis, Y: spamLatencyAxis}}}
	return f, w.curves(lab, f.Panels)
}

var spamLargeSizes = []int{128, 256, 512, 1024}

// The curves of spamLarge.
const (
	spamOne       = "1 destination"
	spamBroadcast = "broadcast"
	spamBound     = "software broadcast, startups alone"
)

func spamLarge(lab *Lab) (*Figure, error) {
	sizes := spamLargeSizes
	if lab.Quick {
		sizes = []int{128, 512}
	}
	x := chart.Axis{Label: "nodes", Scale: chart.Log2}
	wide := spamLatencyAxis
	wide.Scale = chart.Log10
	one, all, bound := newCurve(spamOne, sizes), newCurve(spamBroadcast, sizes), newCurve(spamBound, sizes)
	var points []spamPoint
	for i, n := range sizes {
		points = append(points,
			spamPoint{tree: spamTrees[0], switches: n, d: 1, way: (*spamRouters).alone, to: &one.Points[i]},
			spamPoint{tree: spamTrees[0], switches: n, d: n - 1, way: (*spamRouters).alone, to: &all.Points[i]})
		bound.Points[i].Y = softwareBound(n - 1)
	}
	f := &Figure{
		Parameters: []Parameter{{"message", fmt.Sprint(spamFlits, " flits")}, {"startup", spamStartup.String()}},
		Panels:     []chart.Panel{{X: x, Y: wide, Curves: []chart.Curve{one, all, bound}}},
	}
	return f, measureSPAM(lab, points)
}

// pathWorms makes worms for path-based multicast on SPAM's tree:
// each goes down one path of the tree and leaves a copy at each
// destination on it. So a worm has two outputs at most, one of
// them to a processor. A path leads up from the deepest destination
// that is left, and takes all that are left on its way.
func (r *spamRouters) pathWorms(to []int) ([]*updown.Worm, error) {
	f := r.net.Fabric()
	left := map[fabric.NodeID]fabric.PortID{} // destinations by switch
	var order []fabric.NodeID
	for _, p := range r.hosts(to) {
		s := f.PeerSwitch(p)
		left[s] = p
		order = append(order, s)
	}
	slices.SortFunc(order, func(a, b fabric.NodeID) int {
		if d := r.net.Level(b) - r.net.Level(a); d != 0 {
			return d
		}
		return int(a - b)
	})
	var worms []*updown.Worm
	for _, s := range order {
		if _, ok := left[s]; !ok {
			continue
		}
		var path []fabric.PortID
		for ; s != fabric.NoNode; s = r.net.Parent(s) {
			if p, ok := left[s]; ok {
				path = append(path, p)
				delete(left, s)
			}
		}
		x, err := r.net.NewWorm(path)
		if err != nil {
			return nil, err
		}
		worms = append(worms, x)
	}
	return worms, nil
}

// lockStep returns the latency of one multicast without output buffers.
func (r *spamRouters) lockStep(ctx context.Context, src int, to []int) (sim.Time, error) {
	x, err := r.net.NewWorm(r.hosts(to))
	if err != nil {
		return 0, err
	}
	cfg := spamHardware()
	cfg.OutputFlits = 0
	return r.sendAll(ctx, cfg, src, []*updown.Worm{x})
}

// byPaths returns the latency of one multicast by pathWorms.
func (r *spamRouters) byPaths(ctx context.Context, src int, to []int) (sim.Time, error) {
	worms, err := r.pathWorms(to)
	if err != nil {
		return 0, err
	}
	return r.sendAll(ctx, spamHardware(), src, worms)
}

var spamWays = []struct {
	name string
	way  spamWay
}{
	{"SPAM", (*spamRouters).alone}, {"lock-step", (*spamRouters).lockStep},
	{"path-based", (*spamRouters).byPaths}, {"unicast-based", (*spamRouters).bySoftware},
}

const spamSchemeNodes = 128

func spamSchemes(lab *Lab) (*Figure, error) {
	wide := spamLatencyAxis
	wide.Scale = chart.Log10
	f := &Figure{
		Parameters: []Parameter{
			{"nodes", fmt.Sprint(spamSchemeNodes)}, {"message", fmt.Sprint(spamFlits, " flits")}, {"startup", spamStartup.String() + " for each worm"},
			{"lock-step", "no output buffers: branches of a worm are a flit apart at most"},
			{"path-based", "a worm for each path down the tree, with a copy at each destination on it"},
			{"unicast-based", "recursive doubling"},
		},
		Panels: []chart.Panel{{X: chart.Axis{Label: "destinations", Scale: chart.Log2}, Y: wide}},
	}
	list := spamDestinations(spamSchemeNodes, lab.Quick)
	var points []spamPoint
	for _, w := range spamWays {
		c := newCurve(w.name, list)
		for i, d := range list {
			points = append(points, spamPoint{tree: spamTrees[0], switches: spamSchemeNodes, d: d, to: &c.Points[i], way: w.way})
		}
		f.Panels[0].Curves = append(f.Panels[0].Curves, c)
	}
	return f, measureSPAM(lab, points)
}

var spamBufferRates = []float64{0.004, 0.008}

func spamBuffers(lab *Lab) (*Figure, error) {
	sizes := []int{1, 2, 8, 32, 128}
	w := &spamSweep{rates: spamBufferRates, draws: spamSystemDraws, least: 1000, most: 4000}
	if lab.Quick {
		sizes = []int{1, 128}
		w.least, w.most = 300, 300
	}
	for _, n := range sizes {
		load := spamLoads[1]
		load.buffer, load.name = n, fmt.Sprint(n)
		w.loads = append(w.loads, load)
	}
	f := &Figure{Parameters: append(w.parameters(lab, "10 % of the messages"), Parameter{"destinations", fmt.Sprint(spamLoads[1].d)})}
	by := []chart.Panel{{}, {}}
	if err := w.curves(lab, by); err != nil {
		return nil, err
	}
	x := chart.Axis{Label: "input buffer", Unit: "flits", Scale: chart.Log2}
	for i, title := range []string{"(a) all messages", "(b) multicasts"} {
		panel := chart.Panel{Title: title, X: x, Y: spamLatencyAxis}
		for _, rate := range w.rates {
			c := chart.Curve{Name: spamRateName(rate)}
			for k, n := range sizes {
				for _, at := range by[i].Curves[k].Points {
					if at.X == rate {
						at.X = float64(n)
						c.Points = append(c.Points, at)
					}
				}
			}
			panel.Curves = append(panel.Curves, c)
		}
		f.Panels = append(f.Panels, panel)
	}
	return f, nil
}

func spamRateName(rate float64) string { return fmt.Sprint(rate, " messages per µs and node") }

// The curves of spamRoot.
const (
	throughRoot = "worms whose destinations meet at the root"
	inParts     = "worms of 4 parts that do"
)

// spamRoot measures the share of multicasts whose least common ancestor is the root.
func spamRoot(lab *Lab) (*Figure, error) {
	list := []int{1, 2, 4, 8, 16, 32, 64, 127}
	draws, worms := spamNetworks, 2000
	if lab.Quick {
		list, worms = []int{2, 8, 64}, 200
	}
	whole, parts := newCurve(throughRoot, list), newCurve(inParts, list)
	shares := make([][2]float64, len(list)*draws)
	err := lab.Each(len(shares), func(ctx context.Context, i int) error {
		d, draw := list[i/draws], i%draws
		r, err := spamTrees[0].network(spamSchemeNodes, stream(lab.Seed, "spam network", draw))
		if err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(stream(lab.Seed, "spam root", draw), uint64(d)))
		root := lowestSwitch(r.net.Fabric())
		for range worms {
			to := someOf(rng, spamSchemeNodes, d, rng.IntN(spamSchemeNodes))
			for k, n := range [2]int{1, 4} {
				list, err := r.partition(to, n)
				if err != nil {
					return err
				}
				for _, x := range list {
					if x.At == root {
						shares[i][k] += 1 / float64(worms) / float64(len(list))
					}
				}
			}
		}
		return nil
	})
	for i := range list {
		for k, c := range []chart.Curve{whole, parts} {
			values := make([]float64, draws)
			for d := range values {
				values[d] = shares[i*draws+d][k]
			}
			estimate(&c.Points[i], values)
		}
	}
	return &Figure{
		Parameters: []Parameter{{"nodes", fmt.Sprint(spamSchemeNodes)}, {"networks", fmt.Sprint(draws)}, {"multicasts of each", fmt.Sprint(worms)}},
		Panels: []chart.Panel{{
			X: chart.Axis{Label: "destinations", Scale: chart.Log2}, Y: linear("share", ""), Curves: []chart.Curve{whole, parts},
		}},
	}, err
}

// spamSystemClaims are decided by the figures above.
// Claims marked (ours) are not the paper's.
var spamSystemClaims = []Claim{
	on("S15-6", "the factor becomes even more dramatic for larger networks (section 4)", "large", judgeSPAMLarge),
	on("S16 multicast", "latency remains largely independent of the number of destinations, with multicast alone (ours)", "multicast", judgeSPAMAlone),
	on("S18 schemes", "one worm is faster than worms by paths and than unicast (ours)", "schemes", judgeSPAMSchemes),
	on("S18 lock-step", "asynchronous replication is no slower than lock-step in an idle network (ours)", "schemes", judgeSPAMLockStep),
	on("S18 buffers", "larger input buffers could further reduce latency (section 5)", "buffers", judgeSPAMBuffers),
	on("S18 root", "the more destinations, the more probably a worm passes through the root (section 5)", "root", judgeSPAMRoot),
}

func judgeSPAMLarge(f *Figure) Finding {
	how := 1
	var last chart.Point
	var says []string
	for i, at := range f.Curve(spamBroadcast) {
		factor := ratio(f.At(spamBound, at.X), at)
		if i > 0 {
			how = min(how, beyond(minus(factor, last), 0))
		}
		says = append(says, fmt.Sprintf("%s with %v nodes", interval(factor, 2), at.X))
		last = factor
	}
	return decided(how, "a startup more for twice the nodes, and ways that grow with the root of their number", "%s", strings.Join(says, ", "))
}

func judgeSPAMAlone(f *Figure) Finding {
	few, many := spamLoads[0].name, spamLoads[3].name
	last := min(lastRate(f, few), lastRate(f, many))
	if last == 0 {
		return Finding{Verdict: NotDecidable, Measured: "no rate is steady for both"}
	}
	r := ratio(f.At(many, last), f.At(few, last))
	return decided(-beyond(r, 1.25), "a worm waits for the root's channels once, however many destinations it has; taken as: within 25 %",
		"at rate %v, the last that is steady for both, multicasts to 64 take %s times as long as those to 8; curves end at %v and %v",
		last, interval(r, 2), lastRate(f, many), lastRate(f, few))
}

func judgeSPAMSchemes(f *Figure) Finding {
	var s [2]tally
	for i, name := range []string{"path-based", "unicast-based"} {
		for _, at := range f.Curve(name) {
			if at.X > 1 {
				r := ratio(at, f.At("SPAM", at.X))
				s[i].add(beyond(r, 1), r.Y, "%v destinations", at.X)
			}
		}
	}
	return decided(min(s[0].how(), s[1].how()), "each further worm of a host takes a startup",
		"worms by paths take %.2f (%s) to %.2f times as long (%s), recursive doubling %.2f to %.2f times", s[0].low, s[0].atLow, s[0].high, s[0].atHigh, s[1].low, s[1].high)
}

func judgeSPAMLockStep(f *Figure) Finding {
	var s tally
	for _, at := range f.Curve("lock-step") {
		r := ratio(at, f.At("SPAM", at.X))
		s.add(beyond(r, 0.99), r.Y, "%v destinations", at.X)
	}
	return decided(s.how(), "a flit waits in the only buffer of an input until all branches have it",
		"without output buffers a multicast takes %.3f (%s) to %.3f times as long (%s)", s.low, s.atLow, s.high, s.atHigh)
}

func judgeSPAMBuffers(f *Figure) Finding {
	a := f.panel(0)
	how := 1
	var says []string
	for _, rate := range spamBufferRates {
		c := a.Curve(spamRateName(rate))
		if len(c) < 2 {
			return Finding{Verdict: NotDecidable, Measured: fmt.Sprintf("fewer than two sizes are steady at %v", rate)}
		}
		first, last := c[0], c[len(c)-1]
		r := ratio(last, first)
		says = append(says, fmt.Sprintf("at rate %v %.2f µs with %v flit and %.2f with %v, %s times", rate, first.Y, first.X, last.Y, last.X, interval(r, 3)))
		how = min(how, -beyond(r, 1))
	}
	return decided(how, "a worm that is blocked holds fewer channels", "%s", strings.Join(says, "; "))
}

func judgeSPAMRoot(f *Figure) Finding {
	c := f.Curve(throughRoot)
	first, last := c[0], c[len(c)-1]
	how := beyond(minus(last, first), 0)
	for i := range c[1:] {
		if above(c[i], c[i+1]) {
			how = -1
		}
	}
	return decided(how, "destinations that lie in two subtrees of the root meet at it only",
		"%s of worms to %v and %s of those to %v have the root as the least common ancestor of their destinations; of 4 parts to %v %s do",
		percent(first.Y), first.X, percent(last.Y), last.X, last.X, percent(f.At(inParts, last.X).Y))
}
