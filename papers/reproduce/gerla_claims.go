package reproduce

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/papers/myrinet"
	"github.com/ibweave/ibweave/papers/myrinet/lan"
	"github.com/ibweave/ibweave/report/chart"
)

var gerlaClaims = []Claim{
	on("M26-46", "10 % of the generated worms multicast become approximately 46 % of those transmitted (section 7.1)", "fig10", judgeShare),
	on("M26-tree", "the tree has lower latency than the circuit with full reassembly", "fig10", judgeTree),
	on("M26-light", "the circuit with cut-through has lower latency than the tree for light loads", "fig10", func(f *Figure) Finding { return judgeCut(f, true) }),
	on("M26-heavy", "and higher latency for heavier loads", "fig10", func(f *Figure) Finding { return judgeCut(f, false) }),
	on("M26-heavy, IDs by place", "and higher latency for heavier loads (with host IDs in the order of places)", "fig10-place", func(f *Figure) Finding { return judgeCut(f, false) }),
	on("M26-alike", "both circuits achieve the same throughput at heavy load", "fig10", judgeAlike),
	on("M26-unicast", "this saturation point is the same as for nonmulticast simulations", "fig10", judgeUnicast),
	on("M26-unicast, IDs by place", "this saturation point is the same as for nonmulticast simulations (with host IDs in the order of places)", "fig10-place", judgeUnicast),
	on("M26-throughput", "the tree achieves higher throughput, since its links are shorter than the mean of all pairs", "fig10", judgeThroughput),
	on("M26-root", "the saturation load is low due to up/down routing, which congests links around the root", "fig10", judgeRoot),
	on("M26-shufflenet", "on the shufflenet the circuit has in general higher latencies than the tree", "fig11", judgeShufflenet),
	on("M26-same", "the two schemes generate the same amount of traffic", "fig11", judgeSameTraffic),
	on("M26-grows", "as the proportion of multicast increases, the throughput increases", "fig11", judgeGrows),
	on("M28-curves", "the upper curve is one sender, the lower one all hosts sending (Fig. 12)", "fig12", judgeSenders),
	on("M28-none", "with one source no packets are lost", "fig13", judgeNoLoss),
	on("M28-loss", "with all sources considerable loss at the input buffer (Fig. 13)", "fig13", judgeLoss),
	on("M28-where", "loss is only significant where hosts originate as well as forward", "fig13", judgeWhere),
}

// highest returns the point with the greatest value.
func highest(points []chart.Point) chart.Point {
	return slices.MaxFunc(points, func(a, b chart.Point) int { return cmp.Compare(a.Y, b.Y) })
}

func carried(f *Figure, scheme gerlaScheme) chart.Point {
	return highest(f.Curve("carried: " + scheme.name))
}

// steady returns the greatest load at which all the schemes are steady, 0 if there is none.
func steady(f *Figure, schemes ...gerlaScheme) float64 {
	load := math.Inf(1)
	for _, s := range schemes {
		load = min(load, lastRate(f, s.name))
	}
	return load
}

// interval writes a value with its interval.
func interval(p chart.Point, digits int) string {
	return fmt.Sprintf("%.*f +- %.*f", digits, p.Y, digits, p.Half)
}

// compared counts n pairs of values: the first is above or below the second, beyond the error.
type compared struct{ above, below, n int }

func (c *compared) add(a, b chart.Point) {
	c.n++
	switch beyond(minus(a, b), 0) {
	case 1:
		c.above++
	case -1:
		c.below++
	}
}

// finding judges the claim that first values are above the second: it holds
// if more than half of the pairs are above, beyond the error, and none below.
func (c *compared) finding(why, measured string, args ...any) Finding {
	how := 0
	switch {
	case c.below > 0:
		how = -1
	case 2*c.above > c.n:
		how = 1
	}
	return decided(how, why, "%s; clearly so at %d of %d points, clearly not at %d", fmt.Sprintf(measured, args...), c.above, c.n, c.below)
}

// againstTrees compares the latency of a scheme with those of both trees. until is the
// greatest load or proportion at which all are steady; s has the ratios.
func againstTrees(f *Figure, scheme gerlaScheme, until float64, where string) (s span, c compared) {
	for _, tree := range []gerlaScheme{treeRoot, treeFlood} {
		for _, p := range f.Curve(tree.name) {
			if p.X <= until {
				at := f.At(scheme.name, p.X)
				s.add(at.Y/p.Y, where, tree.name, p.X)
				c.add(at, p)
			}
		}
	}
	return s, c
}

// meanPoint returns the mean of points, draw by draw.
func meanPoint(points []chart.Point) (p chart.Point) {
	var sums []float64
	for _, at := range points {
		p.Y += at.Y / float64(len(points))
		p.Half = max(p.Half, at.Half)
		if sums == nil {
			sums = make([]float64, len(at.Draws))
		}
		for i, v := range at.Draws {
			sums[i] += v / float64(len(points))
		}
	}
	if len(sums) > 1 {
		estimate(&p, sums)
	}
	return p
}

func judgeShare(f *Figure) Finding {
	nine, ten := meanPoint(f.steadyCurve("share: "+circuitSF.name)), meanPoint(f.steadyCurve("share: "+treeRoot.name))
	return decided(min(within(nine, 0.42, 0.49), within(ten, 0.42, 0.49)),
		"52 of the 64 hosts are in one of ten groups of ten on the mean, so 8.2 % of all worms are multicast; taken as: 42 to 49 % at all steady loads together (E-M7)",
		"%s with nine transmissions of a multicast worm (circuit), %s with ten, or nine from the root (tree from its root)", interval(nine, 3), interval(ten, 3))
}

func judgeTree(f *Figure) Finding {
	until := steady(f, circuitSF, treeRoot, treeFlood)
	s, c := againstTrees(f, circuitSF, until, "%s, load %v")
	return c.finding("a message is stored nine times in a row on the circuit, and as often as the tree is deep on the tree, over fewer links",
		"up to a load of %v, at which all are steady, the circuit takes %.2f (%s) to %.1f times as long (%s)", until, s.low, s.atLow, s.high, s.atHigh)
}

// judgeCut compares cut-through with both trees, at the lightest
// load or at the heaviest one at which both trees are steady.
func judgeCut(f *Figure, light bool) Finding {
	load := steady(f, treeRoot, treeFlood)
	if light {
		load = f.Curve(circuitCT.name)[0].X
	}
	root, flood := f.At(treeRoot.name, load), f.At(treeFlood.name, load)
	cut, ok := pointAt(f, circuitCT.name, load)
	full := !ok || cut.Unsteady
	out := Finding{Measured: fmt.Sprintf("at a load of %v the tree from its root takes %s µs, flooded %s, ", load, interval(root, 1), interval(flood, 1))}
	if full {
		out.Measured += fmt.Sprintf("and cut-through does not carry it: more comes than goes beyond %v", steady(f, circuitCT))
	} else {
		out.Measured += fmt.Sprintf("cut-through %s", interval(cut, 1))
	}
	less := !full && above(root, cut) && above(flood, cut)
	more := full || above(cut, root) && above(cut, flood)
	switch {
	case light && less || !light && more:
		out.Verdict = Holds
		out.Why = "at light load ports are free and a worm is sent on at once; at heavy load it is stored at nearly every host, and the circuit is longer"
	case light && more || !light && less:
		out.Verdict = Fails
		out.Why = "circuits go through the hosts by ID: where neighbours in the circuit are neighbours in the network, it saturates later than trees (E-M6)"
	case above(cut, root) || above(root, cut) || above(cut, flood) || above(flood, cut):
		out.Verdict = NotDecidable
		out.Why = "it depends on how the tree is started, from its root or flooded, which the paper does not say (E-M5)"
	default:
		out.decide(0)
	}
	return out
}

// judgeEqual judges whether two points are equal, within a share of the second.
func judgeEqual(a, b chart.Point, share float64, why, measured string, args ...any) Finding {
	r := ratio(a, b)
	return decided(within(r, 1-share, 1+share), why, "%s; the ratio is %s", fmt.Sprintf(measured, args...), interval(r, 3))
}

func judgeAlike(f *Figure) Finding {
	sf, ct := carried(f, circuitSF), carried(f, circuitCT)
	return judgeEqual(ct, sf, 0.05, "the worms and their ways are the same, and at heavy load nearly all are stored; taken as: within 5 %",
		"at most %s of a host's link is carried with store and forward, %s with cut-through", interval(sf, 3), interval(ct, 3))
}

func judgeUnicast(f *Figure) Finding {
	sf, ct, none := carried(f, circuitSF), carried(f, circuitCT), carried(f, unicastOnly)
	farther := sf
	if math.Abs(ct.Y-none.Y) > math.Abs(sf.Y-none.Y) {
		farther = ct
	}
	out := judgeEqual(farther, none, 0.07, "with random IDs each hop of a circuit leads to a random host, as unicast does; taken as: within 7 %",
		"at most %s and %s of a host's link is carried with circuits, %s without multicast", interval(sf, 3), interval(ct, 3), interval(none, 3))
	if out.Verdict == Fails {
		out.Why = "hops of circuits are not as long as those of unicast"
	}
	return out
}

func judgeThroughput(f *Figure) Finding {
	sf, root, flood := carried(f, circuitSF), carried(f, treeRoot), carried(f, treeFlood)
	mean := func(name string) float64 { return meanPoint(f.Curve("links: " + name)).Y }
	tree, all, circuit := mean(treeFlood.name), mean("all pairs"), mean(circuitSF.name)
	var c compared
	c.add(root, sf)
	c.add(flood, sf)
	out := c.finding("the fewer links a worm crosses, the more worms fit",
		"at most %s of a host's link with the tree from its root and %s flooded, %s with the circuit; a send of the tree crosses %.2f links, of the circuit %.2f, all pairs %.2f",
		interval(root, 3), interval(flood, 3), interval(sf, 3), tree, circuit, all)
	out.failIf(tree >= all)
	return out
}

func judgeRoot(f *Figure) Finding {
	none := carried(f, unicastOnly)
	hot, mean := f.At("load of the hottest link, of a host's", 0).Y, f.At("load of a link on the mean, of a host's", 0).Y
	how := beyond(chart.Point{Y: hot * none.Y, Half: hot * none.Half}, 0.5)
	if hot <= 2*mean {
		how = -1
	}
	return decided(how,
		"the links at the root are full long before the others, and worms that are blocked hold further links; taken as: they have twice the mean load, and more than half of them is used",
		"unicast saturates at %.3f of a host's link; the hottest link, out of the root, has %.1f times the load of a host's link, a link on the mean %.1f: at saturation %s and %s of them is used",
		none.Y, hot, mean, percent(hot*none.Y), percent(mean*none.Y))
}

func judgeShufflenet(f *Figure) Finding {
	until := steady(f, circuitSF, circuitCT, treeRoot, treeFlood)
	sf, c := againstTrees(f, circuitSF, until, "%s, %v")
	ct, _ := againstTrees(f, circuitCT, until, "%s, %v")
	return c.finding("cables of 1000 byte times are longer than worms, so what counts is how many sends follow each other, whether they are cut through or not",
		"the circuit takes %.2f (%s) to %.2f times as long (%s) with store and forward, %.2f to %.2f times with cut-through",
		sf.low, sf.atLow, sf.high, sf.atHigh, ct.low, ct.high)
}

func judgeSameTraffic(f *Figure) Finding {
	var flood tally
	var root span
	for _, p := range f.Curve("throughput: " + circuitSF.name) {
		r := ratio(f.At("throughput: "+treeFlood.name, p.X), p)
		flood.add(within(r, 0.97, 1.03), r.Y, "%v", p.X)
		root.add(ratio(f.At("throughput: "+treeRoot.name, p.X), p).Y, "%v", p.X)
	}
	return decided(flood.how(), "both take one send for each member but the originator; what starts at the root takes one more; taken as: the flooded tree within 3 %",
		"the flooded tree carries %.3f to %.3f times what the circuit does, the tree from its root %.3f to %.3f", flood.low, flood.high, root.low, root.high)
}

func judgeGrows(f *Figure) Finding {
	var says []string
	var c compared
	for _, s := range []gerlaScheme{circuitSF, treeRoot, treeFlood} {
		points := f.Curve("throughput: " + s.name)
		a, b := points[0], points[len(points)-1]
		c.add(b, a)
		says = append(says, fmt.Sprintf("%s: %s at %v, %s at %v", s.name, interval(a, 3), a.X, interval(b, 3), b.X))
	}
	return c.finding("each multicast worm that is generated is sent several times", "utilization of a host's link, %s", strings.Join(says, "; "))
}

// gerlaHosts ends the reasons about figures 12 and 13: the paper has no numbers of hosts.
const gerlaHosts = "; a window of 4 worms and hosts slower than links decide it, against the paper's premise (E-M15)"

func judgeSenders(f *Figure) Finding {
	var s span
	var c compared
	for _, p := range f.Curve(oneSender) {
		all := f.At(allSenders, p.X)
		s.add(p.Y/all.Y, "%v bytes", p.X)
		c.add(p, all)
	}
	out := Finding{Measured: fmt.Sprintf("one sender is received with %.2f (%s) to %.2f times the rate (%s) of all", s.low, s.atLow, s.high, s.atHigh)}
	switch {
	case c.above == c.n:
		out.Verdict, out.Why = Holds, "with all hosts sending most worms are lost or wait"+gerlaHosts
	case c.below == c.n:
		out.Verdict = Fails
		out.Why = "a host receives from seven others, and each of them originates as fast as one alone" + gerlaHosts
	case c.above > 0 && c.below > 0:
		out.Verdict = NotDecidable
		out.Why = "which curve is above depends on the size" + gerlaHosts
	default:
		out.decide(0)
	}
	return out
}

func judgeNoLoss(f *Figure) Finding {
	for _, p := range slices.Backward(f.Curve(oneSender)) {
		if p.Y > 0 {
			return Finding{Verdict: Fails, Measured: fmt.Sprintf("%s lost at %v bytes", percent(p.Y), p.X)}
		}
	}
	return Finding{Verdict: Holds, Measured: "nothing is lost at any size",
		Why: "adapters receive and pass on as fast as one takes worms from its host" + gerlaHosts}
}

func judgeLoss(f *Figure) Finding {
	var s span
	how := -1
	for _, p := range f.Curve(allSenders) {
		s.add(p.Y, "%v bytes", p.X)
		how = max(how, beyond(p, 0.05))
	}
	return decided(how,
		"seven worms come to a host for each that it originates, six of them to be passed on by the one output link; taken as: more than 5 % at some size"+gerlaHosts,
		"%s (%s) to %s (%s) of the worms that come to a host are lost", percent(s.low), s.atLow, percent(s.high), s.atHigh)
}

func judgeWhere(f *Figure) Finding {
	var of [2]span
	for i, name := range []string{halfSend, halfForward} {
		for _, p := range f.Curve(name) {
			of[i].add(p.Y, "%v bytes", p.X)
		}
	}
	both, only := of[0], of[1]
	return holdsIf(both.high > 0.02 && only.high < both.high/10,
		"what comes to a host is no faster than a link, and so is passed on as fast as it comes, unless the host's own worms take their turns"+gerlaHosts,
		"with every other host sending, %s to %s are lost at hosts that send, %s to %s at those that only pass on",
		percent(both.low), percent(both.high), percent(only.low), percent(only.high))
}

// Systems that the Myrinet paper mentions and does not
// measure, and parameters that its figures depend on.

var repeatedUnicast = gerlaScheme{name: "repeated unicast", method: myrinet.Repeated}

var (
	loadAxis     = linear("offered load, utilization of a host's link", "")
	latencyAxis  = chart.Axis{Label: "latency", Unit: "µs", Scale: chart.Log10}
	carriedAxis  = linear("utilization of a host's link", "")
	receivedAxis = linear("received by a host", "Mb/s")
)

var nacked = gerlaMetric{"refused: ", func(r *lan.Result) float64 { return float64(r.Nacks) / float64(r.Transmitted[1]) }, false}

// The routes of the figure routes.
const (
	byUpDown = "up-down"
	byXY     = "xy"
)

// The curves of figures 12 and 13, and of loss.
const (
	oneSender      = "one sender"
	allSenders     = "all hosts send"
	halfSend       = "4 of 8 hosts send: those that do"
	halfForward    = "4 of 8 hosts send: those that only pass on"
	lostAtHop      = "at a host"
	lostHostToHost = "from host to host"
)

// gerlaHostSettings names the three pairs of panels of the figure hosts.
var gerlaHostSettings = [...]string{"window", "hosts", "buffer"}

// gerlaSystemClaims are decided by the figures above.
// Claims marked (ours) are not the paper's.
var gerlaSystemClaims = []Claim{
	on("M6", "repeated unicast increases latency (abstract)", "unicast", judgeBaseline),
	on("M20 trees", "cut-through to the first successor alone leaves trees slower than the cut-through circuit under light load (section 6)", "cut-trees", judgeCutTrees),
	on("M9", "restricting all worms to the spanning tree reduces the bandwidth much (section 3)", "switching", judgeTreeBandwidth),
	on("M10", "interruption favours unicast, flushing multicast (section 3)", "switching", judgeFavours),
	on("M8-latency", "multicast in switches has the lowest latency (section 9)", "latency", judgeSwitchLatency),
	on("M15", "figure 10's order of the schemes, with ACK, NACK and buffers that end (ours; section 4 describes them)", "acks10", judgeAcks),
	on("M15 shufflenet", "figure 11's order of the schemes, with ACK, NACK and buffers that end (ours)", "acks11", judgeAcks),
	on("M26-root, routes", "up/down routing causes the low saturation load (ours: against XY, on a mesh)", "routes", judgeRoutes),
	on("M28-total", "since loss is at each hop, the total loss host-to-host would be unacceptable", "loss", judgeTotalLoss),
	on("M28-curves, hosts", "one sender is above all hosts sending, whatever hosts and adapters are (ours)", "hosts", judgeHosts),
}

func judgeBaseline(f *Figure) Finding {
	var circuit compared
	var t span
	until := steady(f, circuitSF, treeRoot, treeFlood, repeatedUnicast)
	s, trees := againstTrees(f, repeatedUnicast, until, "%s, load %v")
	for _, p := range f.Curve(repeatedUnicast.name) {
		if p.X > until {
			break
		}
		at := f.At(circuitSF.name, p.X)
		t.add(p.Y/at.Y, "load %v", p.X)
		circuit.add(p, at)
	}
	out := trees.finding("nine worms leave one host, one after the other",
		"up to a load of %v repeated unicast takes %.2f (%s) to %.2f times as long (%s) as trees, %.2f to %.2f times as long as the circuit with full reassembly",
		until, s.low, s.atLow, s.high, s.atHigh, t.low, t.high)
	if out.Verdict == Holds && 2*circuit.above <= circuit.n {
		out.Verdict, out.As = HoldsAs, "against trees"
		out.Why += "; on a circuit nine are stored one after the other, over as many links each"
	}
	return out
}

func judgeCutTrees(f *Figure) Finding {
	x := f.Curve(circuitCT.name)[0].X
	circuit := f.At(circuitCT.name, x)
	var c compared
	var gain span
	for _, pair := range [][2]gerlaScheme{{treeRootCT, treeRoot}, {treeFloodCT, treeFlood}} {
		cut := f.At(pair[0].name, x)
		c.add(cut, circuit)
		gain.add(ratio(cut, f.At(pair[1].name, x)).Y, "%s", pair[0].name)
	}
	return c.finding("a host with two children or more has all of a worm before it sends to the second",
		"at a load of %v cut-through takes %.2f to %.2f of the time of trees that store, and on the circuit %s µs", x, gain.low, gain.high, interval(circuit, 1))
}

// switchingEnds returns the last points of curves of the figure switching.
func switchingEnds(f *Figure, prefix string, schemes ...string) (points []chart.Point) {
	for _, scheme := range schemes {
		curve := f.Curve(prefix + scheme)
		points = append(points, curve[len(curve)-1])
	}
	return points
}

func judgeTreeBandwidth(f *Figure) Finding {
	p := switchingEnds(f, switchAll, "idle-tree", "interrupt", "flush")
	return decided(min(beyond(ratio(p[0], p[1]), 1.1), beyond(ratio(p[0], p[2]), 1.1)),
		"cross links are not used at all; taken as: more than 10 % longer than with either of the others",
		"among %v unicast worms all have arrived after %s cycles on the spanning tree, %s with interruption, %s with flushing",
		p[0].X, interval(p[0], 0), interval(p[1], 0), interval(p[2], 0))
}

func judgeFavours(f *Figure) Finding {
	m, u := switchingEnds(f, switchMulticast, "interrupt", "flush"), switchingEnds(f, switchUnicast, "interrupt", "flush")
	return decided(min(beyond(minus(m[0], m[1]), 0), beyond(minus(u[1], u[0]), 0)),
		"the one has a multicast give its ports up, the other a unicast worm",
		"among %v unicast worms multicast takes %s cycles with interruption and %s with flushing, unicast %s and %s",
		m[0].X, interval(m[0], 0), interval(m[1], 0), interval(u[0], 0), interval(u[1], 0))
}

func judgeSwitchLatency(f *Figure) Finding {
	own := f.Curve(switchMulticast + "idle-tree")[0]
	how, says := 1, []string{interval(own, 0) + " by switches"}
	for _, scheme := range []gerlaScheme{circuitCT, treeRoot, treeFlood} {
		p := f.Curve(scheme.name)[0]
		p.Y, p.Half, p.Draws = p.Y/byteTime, p.Half/byteTime, nil
		how, says = min(how, beyond(minus(p, own), 0)), append(says, interval(p, 0)+" by "+scheme.name)
	}
	return decided(how, "a copy goes on as soon as its header has come, by all ports at once", "byte times from the root: %s", strings.Join(says, ", "))
}

func judgeAcks(f *Figure) Finding {
	until := steady(f, circuitSF, treeRoot, treeFlood)
	s, order := againstTrees(f, circuitSF, until, "%s, %v")
	var refused span
	for _, scheme := range []gerlaScheme{circuitSF, circuitCT, treeRoot, treeFlood} {
		for _, p := range f.Curve(nacked.prefix + scheme.name) {
			if p.X <= until {
				refused.add(p.Y, "%s, %v", scheme.name, p.X)
			}
		}
	}
	return order.finding("buffers of 25,000 bytes have room for dozens of worms of 400, and an answer takes the time of 8 bytes",
		"up to %v the circuit takes %.2f (%s) to %.2f times as long (%s) as trees; of a worm at most %.4f are refused (%s)",
		until, s.low, s.atLow, s.high, s.atHigh, refused.high, refused.atHigh)
}

func judgeRoutes(f *Figure) Finding {
	up, xy := highest(f.Curve("carried: "+byUpDown)), highest(f.Curve("carried: "+byXY))
	hot, other := f.Curve(varied(hottestLink, byUpDown))[0].Y, f.Curve(varied(hottestLink, byXY))[0].Y
	return decided(beyond(minus(xy, up), 0), "up/down sends most paths by the root, XY spreads them; a torus, as the paper has it, deadlocks with XY alone",
		"on an 8x8 mesh unicast saturates at %s of a host's link with up/down and at %s with XY; the hottest link has the paths of %.1f and of %.1f hosts",
		interval(up, 3), interval(xy, 3), hot, other)
}

func judgeTotalLoss(f *Figure) Finding {
	const considerable, unacceptable = 0.05, 0.1
	var hop tally
	var whole span
	for _, p := range f.Curve(lostAtHop) {
		if p.Y < considerable {
			continue
		}
		all := f.At(lostHostToHost, p.X)
		hop.add(min(beyond(minus(all, p), 0), beyond(all, unacceptable)), p.Y, "%v bytes", p.X)
		whole.add(all.Y, "%v bytes", p.X)
	}
	if hop.n == 0 {
		return Finding{Verdict: NotDecidable, Measured: "no size has a loss of 5 % at a host"}
	}
	return decided(hop.how(), "a worm that is lost at a host lacks at all that follow; taken as: more than 10 %, where 5 % are lost at a host"+gerlaHosts,
		"where a host loses %s to %s of what comes, members lack %s to %s of what they should have",
		percent(hop.low), percent(hop.high), percent(whole.low), percent(whole.high))
}

func judgeHosts(f *Figure) Finding {
	out := Finding{Verdict: Holds}
	above, below, open := 0, 0, 0
	for i, s := range gerlaHostSettings {
		one := f.panel(2 * i)
		for _, p := range one.Curve(oneSender) {
			switch beyond(minus(p, one.At(allSenders, p.X)), 0) {
			case 1:
				above++
			case -1:
				below++
				if out.Measured != "" {
					out.Measured += ", "
				}
				out.Measured += fmt.Sprintf("%s %v", s, p.X)
			default:
				open++
			}
		}
	}
	if below > 0 {
		out.Measured = " (" + out.Measured + ")"
	}
	out.Measured = fmt.Sprintf("one sender is above at %d settings of %d, below at %d%s", above, above+below+open, below, out.Measured)
	switch {
	case below > 0:
		out.Verdict = NotDecidable
		out.Why = "the paper gives none of these numbers (E-M15)"
	case open > 0:
		out.decide(0)
	}
	return out
}
