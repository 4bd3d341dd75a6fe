package reproduce

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/papers/multistage"
	"github.com/ibweave/ibweave/report/chart"
)

// What the paper on banyan networks speaks of and does not show.

// The curves of phase2.
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

// minPassDraws is how many multicasts are drawn for a point.
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
			X: chart.Axis{Label: "destinations", Scale: chart.Log2}, Y: chart.Axis{Label: "passes through the network", Scale: chart.Linear}, Curves: curves,
		}},
	}, nil
}

// doublingIn is the passes of recursive doubling from source: in each, all that have the packet
// and have not served all of their part send it to the next one, and of those that want one
// link the first one goes.
func doublingIn(stages, source int, to []int) (passes int) {
	type part struct{ lo, hi int } // of the hosts: its first has the packet, and sees to the others
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

// minSystemClaims are claims that these figures decide.
var minSystemClaims = []Claim{
	{"N12 phase 2", "throughput against the offered load (figure 6) is that of the two-phase algorithm (E-N8)", []string{"phase2"}, judgeMINPhaseTwo},
	{"N17", "software multicast takes log2 f passes at least, the two-phase algorithm two (sections 1 and 3.1)", []string{"passes"}, judgeMINPasses},
}

func judgeMINPhaseTwo(f map[string]*Figure) Finding {
	var s tally
	for _, fanout := range minFanouts7 {
		for _, at := range f["phase2"].Curve(fmt.Sprintf(minTwoPhases, fanout)) {
			r := ratio(at, f["phase2"].At(fmt.Sprintf(minPhaseOne, fanout), at.X))
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

func judgeMINPasses(f map[string]*Figure) Finding {
	p := f["passes"]
	var two, more span
	how := 1
	for _, at := range p.Curve(doublingPasses) {
		t := p.At(twoPhasePasses, at.X)
		two.add(t.Y, "%v destinations", at.X)
		more.add(at.Y/p.At(doublingBound, at.X).Y, "%v destinations", at.X)
		if t.Y > 2+1e-9 || at.Y+at.Half < p.At(doublingBound, at.X).Y-1e-9 {
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
