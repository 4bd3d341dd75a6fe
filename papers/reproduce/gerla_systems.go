package reproduce

import (
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/papers/myrinet"
	"github.com/ibweave/ibweave/papers/myrinet/lan"
	"github.com/ibweave/ibweave/report/chart"
)

// Systems that the Myrinet paper speaks of and does not measure, and what its figures depend
// on.

var repeatedUnicast = gerlaScheme{name: "repeated unicast", method: myrinet.Repeated}

var (
	loadAxis     = chart.Axis{Label: "offered load, utilization of a host's link", Scale: chart.Linear}
	latencyAxis  = chart.Axis{Label: "latency", Unit: "µs", Scale: chart.Log10}
	carriedAxis  = chart.Axis{Label: "utilization of a host's link", Scale: chart.Linear}
	receivedAxis = chart.Axis{Label: "received by a host", Unit: "Mb/s", Scale: chart.Linear}
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

// gerlaHostSettings is how the three pairs of panels of hosts are called.
var gerlaHostSettings = [...]string{"window", "hosts", "buffer"}

// gerlaSystemClaims are claims that these figures decide; those without the paper's words are
// ours.
var gerlaSystemClaims = []Claim{
	{"M6", "repeated unicast increases latency (abstract)", []string{"unicast"}, judgeBaseline},
	{"M20 trees", "cut-through to the first successor alone leaves trees slower than the cut-through circuit under light load (section 6)", []string{"cut-trees"}, judgeCutTrees},
	{"M9", "restricting all worms to the spanning tree reduces the bandwidth much (section 3)", []string{"switching"}, judgeTreeBandwidth},
	{"M10", "interruption favours unicast, flushing multicast (section 3)", []string{"switching"}, judgeFavours},
	{"M8-latency", "multicast in switches has the lowest latency (section 9)", []string{"latency"}, judgeSwitchLatency},
	{"M15", "figure 10's order of the schemes, with ACK, NACK and buffers that end (ours; section 4 describes them)", []string{"acks10"}, func(f map[string]*Figure) Finding { return judgeAcks(f["acks10"]) }},
	{"M15 shufflenet", "figure 11's order of the schemes, with ACK, NACK and buffers that end (ours)", []string{"acks11"}, func(f map[string]*Figure) Finding { return judgeAcks(f["acks11"]) }},
	{"M26-root, routes", "up/down routing causes the low saturation load (ours: against XY, on a mesh)", []string{"routes"}, judgeRoutes},
	{"M28-total", "since loss is at each hop, the total loss host-to-host would be unacceptable", []string{"loss"}, judgeTotalLoss},
	{"M28-curves, hosts", "one sender is above all hosts sending, whatever hosts and adapters are (ours)", []string{"hosts"}, judgeHosts},
}

func judgeBaseline(figures map[string]*Figure) Finding {
	f := figures["unicast"]
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

func judgeCutTrees(figures map[string]*Figure) Finding {
	f := figures["cut-trees"]
	x := f.Curve(circuitCT.name)[0].X
	circuit := f.At(circuitCT.name, x)
	var c compared
	var gain span
	for _, pair := range [][2]gerlaScheme{{treeRootCT, treeRoot}, {treeFloodCT, treeFlood}} {
		cut := f.At(pair[0].name, x)
		c.add(cut, circuit)
		gain.add(ratio(cut, f.At(pair[1].name, x)).Y, "%s", pair[0].name)
	}
	return c.finding("a host with two children or more has all of a worm before it sends to the second", "at a load of %v cut-through takes %.2f to %.2f of the time of trees that store, and on the circuit %s µs", x, gain.low, gain.high, interval(circuit, 1))
}

// ends are the last points of the curves of switching.
func switchingEnds(figures map[string]*Figure, prefix string, schemes ...string) (points []chart.Point) {
	for _, scheme := range schemes {
		curve := figures["switching"].Curve(prefix + scheme)
		points = append(points, curve[len(curve)-1])
	}
	return points
}

func judgeTreeBandwidth(figures map[string]*Figure) Finding {
	p := switchingEnds(figures, switchAll, "idle-tree", "interrupt", "flush")
	return decided(min(beyond(ratio(p[0], p[1]), 1.1), beyond(ratio(p[0], p[2]), 1.1)), "cross links are not used at all; taken as: more than 10 % longer than with either of the others",
		"among %v unicast worms all have arrived after %s cycles on the spanning tree, %s with interruption, %s with flushing", p[0].X, interval(p[0], 0), interval(p[1], 0), interval(p[2], 0))
}

func judgeFavours(figures map[string]*Figure) Finding {
	m, u := switchingEnds(figures, switchMulticast, "interrupt", "flush"), switchingEnds(figures, switchUnicast, "interrupt", "flush")
	return decided(min(beyond(minus(m[0], m[1]), 0), beyond(minus(u[1], u[0]), 0)), "the one has a multicast give its ports up, the other a unicast worm",
		"among %v unicast worms multicast takes %s cycles with interruption and %s with flushing, unicast %s and %s", m[0].X, interval(m[0], 0), interval(m[1], 0), interval(u[0], 0), interval(u[1], 0))
}

func judgeSwitchLatency(figures map[string]*Figure) Finding {
	f := figures["latency"]
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
		"up to %v the circuit takes %.2f (%s) to %.2f times as long (%s) as trees; of a worm at most %.4f are refused (%s)", until, s.low, s.atLow, s.high, s.atHigh, refused.high, refused.atHigh)
}

func judgeRoutes(figures map[string]*Figure) Finding {
	f := figures["routes"]
	up, xy := highest(f.Curve("carried: "+byUpDown)), highest(f.Curve("carried: "+byXY))
	hot, other := f.Curve(varied(hottestLink, byUpDown))[0].Y, f.Curve(varied(hottestLink, byXY))[0].Y
	return decided(beyond(minus(xy, up), 0), "up/down sends most paths by the root, XY spreads them; a torus, as the paper has it, deadlocks with XY alone",
		"on an 8x8 mesh unicast saturates at %s of a host's link with up/down and at %s with XY; the hottest link has the paths of %.1f and of %.1f hosts", interval(up, 3), interval(xy, 3), hot, other)
}

func judgeTotalLoss(figures map[string]*Figure) Finding {
	f := figures["loss"]
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
		"where a host loses %s to %s of what comes, members lack %s to %s of what they should have", percent(hop.low), percent(hop.high), percent(whole.low), percent(whole.high))
}

func judgeHosts(figures map[string]*Figure) Finding {
	f := figures["hosts"]
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
