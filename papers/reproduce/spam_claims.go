package reproduce

import (
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/report/chart"
)

func judgeSPAMDestinations(f map[string]*Figure) Finding {
	var whole, most chart.Point // the greatest
	var says []string
	a := f["fig2"].panel(0)
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

func judgeSPAMSize(f map[string]*Figure) Finding {
	a := f["fig2"].panel(0)
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

func judgeSPAMBroadcast(f map[string]*Figure, tree spamTree) Finding {
	c := f["fig2"].panel(2)
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

func judgeSPAMSoftware(f map[string]*Figure) Finding {
	b := f["fig2"].panel(1)
	bound, measured := b.At("software, startups alone", 255).Y, b.At("software, "+nodes(256), 255)
	out := holdsIf(bound == 90, "", "%.0f µs of startups for 255 destinations; %s µs in the simulation, with unicast worms", bound, interval(measured, 1))
	if out.Verdict == Fails {
		out.Why = "the bound is ceil(log2(d+1)) startups, which are 8 for the 255 destinations of a broadcast in 256 nodes, not 9 (E-S1)"
	}
	return out
}

func judgeSPAMFactor(f map[string]*Figure) Finding {
	spam := f["fig2"].panel(0).At(nodes(256), 255)
	b := f["fig2"].panel(1)
	bound, software := ratio(b.At("software, startups alone", 255), spam), ratio(b.At("software, "+nodes(256), 255), spam)
	out := decided(beyond(bound, 6), "with 80 µs in place of the printed 90, which would give 6.4 to 6.9 times",
		"the startups alone are %s times SPAM's latency, software multicast as simulated %s times", interval(bound, 2), interval(software, 2))
	if out.Verdict != Holds && beyond(software, 6) > 0 {
		out.Verdict, out.As, out.Why = HoldsAs, "against software multicast with its messages", "with 80 µs in place of the printed 90 the startups alone are not clearly six times as long"
	}
	return out
}

// pointAt is Figure.At where there may be no such point.
func pointAt(f *Figure, name string, x float64) (chart.Point, bool) {
	for _, at := range f.Curve(name) {
		if at.X == x {
			return at, true
		}
	}
	return chart.Point{}, false
}

// lastRate is the highest rate of a curve of figure 3, 0 if it has none.
func lastRate(f *Figure, name string) float64 {
	c := f.steadyCurve(name)
	if len(c) == 0 {
		return 0
	}
	return c[len(c)-1].X
}

// Traffic is relatively heavy up to where multicasts to the fewest take this much
// longer than at the lowest rate; beyond that the network is near its end.
const spamHeavy = 1.5

func judgeSPAMTraffic(f map[string]*Figure) Finding {
	b := f["fig3"].panel(1)
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
	return decided(-beyond(worst, 1.25), "a worm waits for the root's channels once, however many destinations it has; taken as: within 25 %, as long as multicasts to 8 take at most half as long again as in an idle network",
		"multicasts to 8 to 64 take %s messages per µs and node: factors of up to %s, and up to rate %v", strings.Join(says, ", "), interval(worst, 2), heaviest)
}

func judgeSPAMParts(f map[string]*Figure) Finding {
	b := f["fig3"].panel(1)
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
