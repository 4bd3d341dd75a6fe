package reproduce

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/papers/multistage"
	"github.com/ibweave/ibweave/report/chart"
)

// recursiveMIN is the paper on multicast in wrap-around banyan networks (N15, N16).
var recursiveMIN = Paper{
	ID:    "min",
	Title: "Recursive multicast algorithm in wrap-around MINs (so section 3; the text at hand has no title page)",
	Notes: []string{
		"The lists of fanouts f and of multicast parts m are lost with the figures; f is 2 to 32 and m is 0.1, 0.5 and 1 here (E-N9).",
		"Curves are the paper's analytic model; points with intervals are a simulation by slots, which follows every header.",
		"A random start address is one of 0 to N-f: beyond that there is no region (E-N3).",
		"Equation (1) of the model is lost in the text and restored from the printed equation (2) (E-N4).",
		"The offered load counts the first phase only (E-N8), and throughput counts f copies as one packet, whether or not all of them arrived; min/whole counts those of which all did (E-N5).",
	},
	Experiments: []Experiment{
		modelled("fig5", "Fig. 5: copy rates by stage, 128 nodes", "", "copy-rates"),
		modelled("fig6", "Fig. 6: throughput against the offered load, 128 nodes", "--simulate 1 --slots 1280",
			"min --fanout 1,2,4,8,16,32 --multicast 0.1,0.5,1 --simulate 0.2,0.4,0.6,0.8,1"),
		modelled("fig7", "Fig. 7: throughput against the size of the network, offered load 1", "--simulate 7 --slots 1280",
			"min --x stages --stages 5,6,7,8,9,10 --load 1 --fanout 4,16 --multicast 0.1,0.5,1 --start random,early,aligned"),
		modelled("whole", "Packets of which all copies arrive, 128 nodes, offered load 1", "--slots 1280",
			"min --x fanout --fanout 2,4,8,16,32 --load 1 --multicast 0.1,0.5,1 --count parts,whole"),
		modelled("phase2", "Throughput with phase 2 in the load, 128 nodes", "--load 0.2,1 --slots 1280",
			"min --load 0.1,0.2,0.4,0.6,0.8,1 --fanout 4,16 --multicast 0.5 --count parts,final"),
		{Name: "passes", Title: "Passes through the network of a multicast, 128 nodes", Run: minPasses},
	},
	Exhibits: minExhibits,
	Ours:     []string{"N16-3", "N15-6", "N15-7", "N12 phase 2"},
	Claims: slices.Concat(claimsOf(minRows...), minSystemClaims, []Claim{
		on("N13", "copy rates with a random start address are computed stage by stage (figure 5)", "fig5", judgeMINRates),
		on("N16-1", "with fanout 1 the throughput is that of the classic unbuffered banyan network (section 4.2)", "fig6", judgeMINClassic),
		on("N15-6", "throughput against the offered load, with f or m varying (figure 6)", "fig6", judgeMINLoad),
		on("N16-2", "the random start address, (A), outperforms copies made in the first stages, (B) (figure 7)", "fig7", judgeMINCases),
		on("N15-7", "throughput falls with the size of the network (figure 7)", "fig7", judgeMINSize),
		on("N16-3", "the random start address outperforms an aligned one (so figure 7 could be read, though its (B) is something else)", "fig7", judgeMINAligned),
		{"N12", "the analytic model gives the throughput of the network (section 4.1)", []string{"fig6", "fig7"}, judgeMINModel},
		on("N12 whole", "it counts packets that are delivered to all outputs that they ask for (section 4.1)", "whole", judgeMINWhole),
	}),
}

// minStages is the number of stages in figures 5 and 6.
const minStages = 7

var (
	minFanouts  = []int{2, 4, 8, 16, 32}
	minParts    = []float64{0.1, 0.5, 1}
	minFanouts7 = []int{4, 16} // of figure 7
)

func judgeMINRates(f *Figure) Finding {
	random := f.panel(0)
	out := Finding{Verdict: Holds, Why: "a copy is split where the addresses of its region first differ, which in a small region are the last bits; " +
		"the product of 1 + c over all stages is f"}
	var says []string
	for _, fanout := range minFanouts {
		curve := random.Curve(fmt.Sprint("f = ", fanout))
		product := 1.0
		for i, at := range curve {
			product *= 1 + at.Y
			if i > 0 && at.Y >= curve[i-1].Y {
				out.Verdict, out.Why = Fails, "the rates do not rise towards the last stages"
			}
		}
		if math.Abs(product-float64(fanout)) > 1e-9 {
			out.Verdict, out.Why = Fails, "the rates do not make f copies"
		}
		says = append(says, fmt.Sprintf("f = %d: %.4f at stage 6, %.4f at stage 0", fanout, curve[len(curve)-1].Y, curve[0].Y))
	}
	out.Measured = strings.Join(says, "; ")
	return out
}

// classic returns the throughput of an unbuffered banyan network
// with unicast packets: each stage reduces p to p - p^2/4.
func classic(stages int, p float64) float64 {
	for range stages {
		p -= p * p / 4
	}
	return p
}

func judgeMINClassic(f *Figure) Finding {
	worst := 0.0
	for i := range f.Panels {
		for _, at := range f.panel(i).Curve("f = 1") {
			worst = max(worst, math.Abs(at.Y-classic(minStages, at.X)))
		}
	}
	return holdsIf(worst <= 1e-12, "a packet with one destination is never copied",
		"%.6f at load 1 with every m; off the recursion p - p^2/4 by less than %.0e", f.At("f = 1", 1).Y, max(1e-12, worst))
}

func judgeMINLoad(f *Figure) Finding {
	rising, less := true, true
	var says []string
	for i, p := range f.Panels {
		one := f.panel(i)
		var ends []string
		for i, fanout := range minFanouts {
			curve := one.Curve(fmt.Sprint("f = ", fanout))
			for k := range curve {
				rising = rising && (k == 0 || curve[k].Y > curve[k-1].Y)
			}
			if i > 0 {
				less = less && curve[len(curve)-1].Y < one.At(fmt.Sprint("f = ", minFanouts[i-1]), 1).Y
			}
			ends = append(ends, fmt.Sprintf("%.4f", curve[len(curve)-1].Y))
		}
		says = append(says, fmt.Sprintf("%s %s", p.Title, strings.Join(ends, " ")))
	}
	return holdsIf(rising && less, "throughput rises with the load, and falls with f and m: the load counts copies, throughput packets, so that it is below load/f for m = 1",
		"at load 1, f = 2 to 32: %s", strings.Join(says, "; "))
}

// minComparison compares two ways to place copies, a and b, at all points
// of figure 7: by the model and by simulation. It counts simulated points
// at which a is better beyond the error (clear), or b (against).
func minComparison(f *Figure, a, b multistage.Placement, nameA, nameB string) (model span, clear, against int, measured string) {
	var slots span
	for i := range f.Panels {
		one := f.panel(i)
		for _, fanout := range minFanouts7 {
			name := func(start multistage.Placement) string { return fmt.Sprintf("f = %d, %s", fanout, minCase(start)) }
			for _, at := range one.Curve(name(a)) {
				model.add(at.Y/one.At(name(b), at.X).Y, "f = %d, m = %v, n = %v", fanout, minParts[i], at.X)
			}
			for _, at := range one.Curve(name(a) + simulated) {
				other := one.At(name(b)+simulated, at.X)
				slots.add(at.Y/other.Y, "f = %d, m = %v, n = %v", fanout, minParts[i], at.X)
				switch {
				case above(at, other):
					clear++
				case above(other, at):
					against++
				}
			}
		}
	}
	return model, clear, against, fmt.Sprintf(
		"%s has %.3f (%s) to %.3f (%s) times the throughput of %s by the model; simulated %.3f to %.3f, clearly more at %d of %d points, clearly less at %d",
		nameA, model.low, model.atLow, model.high, model.atHigh, nameB, slots.low, slots.high, clear, slots.n, against)
}

func judgeMINCases(f *Figure) Finding {
	model, _, against, measured := minComparison(f, multistage.RandomStart, multistage.EarlyCopies, "(A)", "(B)")
	return holdsIf(model.low > 1 && against == 0, "copies that are made late block others at fewer stages", "%s", measured)
}

func judgeMINSize(f *Figure) Finding {
	out := Finding{Verdict: Holds, Why: "each stage blocks a part of what comes to it"}
	var says []string
	for i, p := range f.Panels {
		one := f.panel(i)
		for _, fanout := range minFanouts7 {
			curve := one.Curve(fmt.Sprintf("f = %d, %s", fanout, minCase(multistage.RandomStart)))
			for i := range curve {
				out.failIf(i > 0 && curve[i].Y >= curve[i-1].Y)
			}
			says = append(says, fmt.Sprintf("%s f = %d: %.4f with 32 nodes, %.4f with 1,024", p.Title, fanout, curve[0].Y, curve[len(curve)-1].Y))
		}
	}
	out.Measured = strings.Join(says, "; ")
	return out
}

// judgeMINAligned compares random with aligned start addresses.
func judgeMINAligned(f *Figure) Finding {
	model, clear, against, measured := minComparison(f, multistage.RandomStart, multistage.AlignedStart, "random start", "an aligned one")
	out := Finding{Verdict: Holds, Measured: measured}
	switch {
	case model.high < 1 && clear == 0:
		out.Verdict = Fails
		out.Why = "the reason for which (A) is above (B) goes further: an aligned region of 2^k nodes is split at the last k stages only, later than any other"
	case model.low <= 1 || against > 0:
		out.Verdict = NotDecidable
	}
	return out
}

// judgeMINModel compares the model with the simulation.
func judgeMINModel(f Figures) Finding {
	var s tally
	inside := 0
	for _, name := range []string{"fig6", "fig7"} {
		for i, p := range f[name].Panels {
			one := f[name].panel(i)
			for _, c := range p.Curves {
				base, ok := strings.CutSuffix(c.Name, simulated)
				if !ok {
					continue
				}
				for _, at := range c.Points {
					model := one.At(base, at.X)
					r := ratio(at, model)
					s.add(within(r, 0.9, 1.1), r.Y-1, "%s, %s, %s, x = %v", name, p.Title, base, at.X)
					if beyond(at, model.Y) == 0 {
						inside++
					}
				}
			}
		}
	}
	out := Finding{Verdict: Holds, Measured: fmt.Sprintf("simulation and model differ by %s (%s) to %s (%s); the model is in the interval at %d of %d points",
		percent(s.low), s.atLow, percent(s.high), s.atHigh, inside, s.n)}
	switch {
	case s.how() < 1:
		out.decide(s.how())
	case inside < s.n*9/10:
		out.Verdict, out.As = HoldsAs, "an approximation"
		out.Why = "the model forgets what a header has been through, and copies of a region, whose addresses follow each other, meet more often than " +
			"copies that are spread at random; of aligned regions and of copies in the first stages it is exact"
	}
	return out
}

// judgeMINWhole compares the model with packets of which all copies arrive.
func judgeMINWhole(f *Figure) Finding {
	var s tally
	for i, p := range f.Panels {
		one := f.panel(i)
		for _, at := range one.Curve(minArrived) {
			r := ratio(at, one.At(minModelled, at.X))
			s.add(within(r, 0.9, 1.1), r.Y, "%s, f = %v", p.Title, at.X)
		}
	}
	all := f.panel(len(minParts) - 1)
	out := decided(s.how(), "", "packets of which all copies arrive are %.2f (%s) to %.2f (%s) times what the model has; for f = 16 and m = 1 %s by simulation, %.4f by the model",
		s.low, s.atLow, s.high, s.atHigh, interval(all.At(minArrived, 16), 4), all.At(minModelled, 16).Y)
	if out.Verdict == Fails {
		out.Why = "its formula counts each copy that arrives as a part 1/f of a packet, and of many copies one is lost nearly always (E-N5); taken as: within 10 %"
	}
	return out
}

// What the paper on banyan networks mentions and does not show.

// The curves of the figure phase2.
const (
	minPhaseOne  = "f = %d" + simulated
	minTwoPhases = "f = %d, with phase 2" + simulated
)

// The curves of minPasses.
const (
	twoPhasePasses = "two phases"
	doublingPasses = "recursive doubling"
	doublingBound  = "recursive doubling, without conflicts"
)

// minPassDraws is the number of multicasts that are drawn for a point.
const minPassDraws = 300

// minPasses counts passes through an idle network until all destinations have a packet.
func minPasses(lab *Lab) (*Figure, error) {
	list := []int{2, 3, 4, 8, 16, 32, 64, 127}
	draws := minPassDraws
	if lab.Quick {
		list, draws = []int{2, 16, 127}, 50
	}
	curves := []chart.Curve{newCurve(twoPhasePasses, list), newCurve(doublingPasses, list), newCurve(doublingBound, list)}
	for i, f := range list {
		rng := rand.New(rand.NewPCG(stream(lab.Seed, "min passes", 0), uint64(f)))
		values := [2][]float64{}
		for range draws {
			perm := rng.Perm(1 << minStages)
			to := slices.Sorted(slices.Values(perm[1 : f+1]))
			s, err := multistage.TwoPhase(minStages, perm[0], to, rng.IntN(1<<minStages-f+1))
			if err != nil {
				return nil, err
			}
			two := 2.0
			if len(s.Sends) == 0 {
				two = 1
			} else if _, ok := multistage.FirstConflict(minStages, s.Sends); ok {
				return nil, fmt.Errorf("copies from %d to %v block each other in phase 2", perm[0], to)
			}
			values[0] = append(values[0], two)
			values[1] = append(values[1], float64(doublingIn(minStages, perm[0], to)))
		}
		estimate(&curves[0].Points[i], values[0])
		estimate(&curves[1].Points[i], values[1])
		for k := range 2 {
			curves[k].Points[i].Draws = nil
		}
		curves[2].Points[i].Y = float64(bits.Len(uint(f)))
	}
	return &Figure{
		Parameters: []Parameter{{"stages", fmt.Sprint(minStages)}, {"multicasts", fmt.Sprint(draws)}, {"doubling", "a packet that is blocked is sent again in the next pass"}},
		Panels: []chart.Panel{{
			X: chart.Axis{Label: "destinations", Scale: chart.Log2}, Y: linear("passes through the network", ""), Curves: curves,
		}},
	}, nil
}

// doublingIn returns the passes of recursive doubling from source. In each
// pass, every host that has the packet and has not served all of its part
// sends it to one more; of those that want the same link, the first goes.
func doublingIn(stages, source int, to []int) (passes int) {
	// A part of the hosts: the first has the packet, and serves the others.
	type part struct{ lo, hi int }
	hosts := append([]int{source}, to...)
	parts := []part{{0, len(hosts)}}
	for len(parts) > 0 {
		passes++
		var sends []multistage.Send
		var next []part
		for _, p := range parts {
			mid := (p.lo + p.hi + 1) / 2
			send := multistage.Send{From: hosts[p.lo], To: hosts[mid]}
			if _, blocked := multistage.FirstConflict(stages, append(sends, send)); blocked {
				next = append(next, p)
				continue
			}
			sends = append(sends, send)
			next = append(next, part{p.lo, mid}, part{mid, p.hi})
		}
		parts = slices.DeleteFunc(next, func(p part) bool { return p.hi-p.lo < 2 })
	}
	return passes
}

// minSystemClaims are decided by the figures phase2 and passes.
var minSystemClaims = []Claim{
	on("N12 phase 2", "throughput against the offered load (figure 6) is that of the two-phase algorithm (E-N8)", "phase2", judgeMINPhaseTwo),
	on("N17", "software multicast takes log2 f passes at least, the two-phase algorithm two (sections 1 and 3.1)", "passes", judgeMINPasses),
}

func judgeMINPhaseTwo(f *Figure) Finding {
	var s tally
	for _, fanout := range minFanouts7 {
		for _, at := range f.Curve(fmt.Sprintf(minTwoPhases, fanout)) {
			r := ratio(at, f.At(fmt.Sprintf(minPhaseOne, fanout), at.X))
			s.add(within(r, 0.95, 1.05), r.Y, "f = %d, load %v", fanout, at.X)
		}
	}
	out := decided(s.how(), "taken as: within 5 %",
		"packets that come to their destinations are %.2f (%s) to %.2f (%s) times those of phase 1", s.low, s.atLow, s.high, s.atHigh)
	if out.Verdict == Fails {
		out.Why = "copies pass the network once more, in place of new packets, and are blocked once more; taken as: within 5 %"
	}
	return out
}

func judgeMINPasses(f *Figure) Finding {
	var two, more span
	how := 1
	for _, at := range f.Curve(doublingPasses) {
		t := f.At(twoPhasePasses, at.X)
		two.add(t.Y, "%v destinations", at.X)
		more.add(at.Y/f.At(doublingBound, at.X).Y, "%v destinations", at.X)
		if t.Y > 2+1e-9 || at.Y+at.Half < f.At(doublingBound, at.X).Y-1e-9 {
			how = -1
		}
		if at.X > 3 {
			how = min(how, beyond(minus(at, t), 0))
		}
	}
	return decided(how, "destinations that are a region take one pass; unicast packets of one step want the same links",
		"two phases take %.2f (%s) to %.2f passes (%s); recursive doubling takes %.2f (%s) to %.2f times (%s) the ceil(log2(f + 1)) that it takes without conflicts",
		two.low, two.atLow, two.high, two.atHigh, more.low, more.atLow, more.high, more.atHigh)
}
