package reproduce

import (
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/report/chart"
)

func judgeSPAMDestinations(f map[string]*Figure) Finding {
	var whole, most float64
	var says []string
	a := f["fig2"].panel(0)
	for _, n := range spamSizes {
		curve := a.Curve(nodes(n))
		last := curve[len(curve)-1].Y
		four := a.At(nodes(n), 4).Y
		whole, most = max(whole, last/curve[0].Y-1), max(most, last/four-1)
		says = append(says, fmt.Sprintf("%s: %.2f µs to 1, %.2f to 4, %.2f to %.0f", nodes(n), curve[0].Y, four, last, curve[len(curve)-1].X))
	}
	out := Finding{
		Measured: fmt.Sprintf("%s; %s more from 1 to all, %s from 4 on", strings.Join(says, "; "), percent(whole), percent(most)),
		Why:      "the way to the farthest destination is what counts, and that of a few is nearly as long as that of all; 11.3 µs of it are the startup and the message itself",
	}
	switch {
	case whole < 0.05:
		out.Verdict = Holds
	case most < 0.1:
		out.Verdict, out.As = HoldsAs, "independent from 4 destinations on"
	default:
		out.Verdict, out.Why = Fails, ""
	}
	return out
}

func judgeSPAMSize(f map[string]*Figure) Finding {
	a := f["fig2"].panel(0)
	var s span
	for _, at := range a.Curve(nodes(128)) {
		if at.X < 127 {
			s.add(a.At(nodes(256), at.X).Y/at.Y-1, "%v destinations", at.X)
		}
	}
	out := Finding{
		Verdict:  Holds,
		Measured: fmt.Sprintf("256 nodes take %s (%s) to %s (%s) longer than 128", percent(s.low), s.atLow, percent(s.high), s.atHigh),
		Why:      "ways grow with the square root of the number of nodes, and each router more takes 50 ns; taken as: within 10 %",
	}
	out.failIf(s.high > 0.1)
	return out
}

func judgeSPAMBroadcast(f map[string]*Figure, tree spamTree) Finding {
	c := f["fig2"].panel(2)
	mean, most := c.At(tree.name, 255), c.At(tree.name+longestBroadcast, 255).Y
	out := Finding{Verdict: Holds, Measured: fmt.Sprintf("%.2f µs on average, %.2f at most", mean.Y, most)}
	switch {
	case mean.Y-mean.Half > 14:
		out.Verdict = Fails
		out.Why = "ways in this tree are long: it takes 55 routers to be above 14 µs"
	case mean.Y+mean.Half > 14:
		out.Verdict = NotDecidable
	case most > 14:
		out.Verdict, out.As = HoldsAs, "a mean"
		out.Why = "in some networks the farthest processor is more than 54 routers away"
	default:
		out.Why = "no processor is more than 54 routers away"
	}
	return out
}

func judgeSPAMSoftware(f map[string]*Figure) Finding {
	b := f["fig2"].panel(1)
	bound, measured := b.At("software, startups alone", 255).Y, b.At("software, "+nodes(256), 255)
	out := Finding{
		Verdict:  Holds,
		Measured: fmt.Sprintf("%.0f µs of startups for 255 destinations; %.1f µs in the simulation, with unicast worms", bound, measured.Y),
	}
	if bound != 90 {
		out.Verdict = Fails
		out.Why = "the bound is ceil(log2(d+1)) startups, which are 8 for the 255 destinations of a broadcast in 256 nodes, not 9 (E-S1)"
	}
	return out
}

func judgeSPAMFactor(f map[string]*Figure) Finding {
	spam := f["fig2"].panel(0).At(nodes(256), 255)
	b := f["fig2"].panel(1)
	bound, software := b.At("software, startups alone", 255).Y/spam.Y, b.At("software, "+nodes(256), 255).Y/spam.Y
	out := Finding{
		Verdict:  Holds,
		Measured: fmt.Sprintf("the startups alone are %.2f times SPAM's latency, software multicast as simulated %.2f times", bound, software),
		Why:      "with 80 µs in place of the printed 90, which would give 6.4 to 6.9 times",
	}
	switch {
	case bound > 6:
	case software > 6:
		out.Verdict, out.As = HoldsAs, "against software multicast with its messages"
	default:
		out.Verdict = Fails
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
	c := f.Curve(name)
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
	var worst, heaviest, beyond float64
	for _, few := range b.Curve(loads[0].name) {
		low, high, all := few.Y, few.Y, true
		for _, load := range loads {
			at, ok := pointAt(b, load.name, few.X)
			if all = all && ok; ok {
				low, high = min(low, at.Y), max(high, at.Y)
			}
		}
		if !all {
			break
		}
		says = append(says, fmt.Sprintf("%.1f to %.1f µs at %v", low, high, few.X))
		if few.Y <= spamHeavy*b.Curve(loads[0].name)[0].Y {
			worst, heaviest = max(worst, high/low), few.X
		} else {
			beyond = max(beyond, high/low)
		}
	}
	out := Finding{
		Measured: fmt.Sprintf("multicasts to 8 to 64 take %s messages per µs and node: factors of up to %.2f up to rate %v", strings.Join(says, ", "), worst, heaviest),
		Why:      "a worm waits for the root's channels once, however many destinations it has; taken as: within 25 %, as long as multicasts to 8 take at most half as long again as in an idle network",
	}
	if beyond > 0 {
		out.Measured += fmt.Sprintf(", %.2f beyond", beyond)
	}
	switch {
	case len(says) == 0:
		out.Verdict, out.Why = NotDecidable, "no rate is steady for all"
	case worst <= 1.25:
		out.Verdict = Holds
	default:
		out.Verdict, out.Why = Fails, ""
	}
	return out
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
	out := Finding{Measured: fmt.Sprintf("64 destinations: one worm %.2f µs and 4 worms %.2f at rate %v, %.2f and %.2f at rate %v; the last steady rates are %v and %v",
		idle.Y, idleParts.Y, idle.X, x.Y, y.Y, last, lastRate(b, one), lastRate(b, parts))}
	switch {
	case lastRate(b, parts) > lastRate(b, one) || lastRate(b, parts) == lastRate(b, one) && y.Y+y.Half < x.Y-x.Half:
		out.Verdict = Holds
	case y.Y-y.Half > x.Y+x.Half || lastRate(b, parts) < lastRate(b, one):
		out.Verdict = Fails
		out.Why = "parts leave the sender one after the other: with buffers of one flit a worm stands still while each router on its way reads the header, " +
			"so that each part takes some 2 µs; and all of them take unicast's channels up from there"
	default:
		out.Verdict, out.Why = NotDecidable, "within the intervals"
	}
	return out
}
