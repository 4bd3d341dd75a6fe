package reproduce

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/report/chart"
)

// JudgeSeeds judges the claims of p by runs with several seeds, each its figures by name. Where
// all agree and decide a claim, numbers are those of the first. Else the draws of all runs are
// taken together, unless some hold and some fail: then the claim depends on the draw. Of what is
// within the error then, the draws are named that would decide it if they were like those.
func (p *Paper) JudgeSeeds(seeds []uint64, runs []map[string]*Figure) []Judgement {
	by := make([][]Judgement, len(runs))
	for r, figures := range runs {
		by[r] = p.Judge(figures)
	}
	list := slices.Clone(by[0])
	for i := range list {
		j := &list[i]
		says, count := make([]string, len(runs)), map[Verdict]int{}
		same := true
		for r := range runs {
			f := &by[r][i].Finding
			says[r] = fmt.Sprintf("seed %d: %s", seeds[r], f)
			same = same && f.String() == j.Finding.String()
			count[f.Verdict]++
		}
		switch {
		case count[NotMeasured] == len(runs) || same && j.Verdict != WithinError:
		case count[NotMeasured] > 0:
			j.Finding = Finding{Verdict: NotMeasured, Measured: strings.Join(says, "; ")}
		case count[Fails] > 0 && count[Holds]+count[HoldsAs] > 0:
			j.Verdict, j.As, j.Why = OnDraw, "", strings.Join(says, "; ")
		default:
			j.Finding = p.Claims[i].judgeTogether(runs)
			if !same {
				j.Why = strings.TrimPrefix(fmt.Sprintf("%s; by all draws together (%s)", j.Why, strings.Join(says, "; ")), "; ")
			}
		}
	}
	return list
}

// mostRepeats bounds the draws that judgeTogether looks for.
const mostRepeats = 1 << 10

// judgeTogether judges a claim by the draws of all runs.
func (c *Claim) judgeTogether(runs []map[string]*Figure) Finding {
	judge := func(times int) (Finding, int) {
		figures, draws := map[string]*Figure{}, 0
		for _, name := range c.Figures {
			f := *runs[0][name]
			f.Panels = slices.Clone(f.Panels)
			for k := range f.Panels {
				p := &f.Panels[k]
				p.Curves = slices.Clone(p.Curves)
				for i := range p.Curves {
					var points []chart.Point
					for _, at := range p.Curves[i].Points {
						at.Draws = slices.Clone(at.Draws)
						if together(&at, runs, name, k, p.Curves[i].Name, times) {
							points = append(points, at)
						}
						draws = max(draws, len(at.Draws))
					}
					p.Curves[i].Points = points
				}
			}
			figures[name] = &f
		}
		return c.Judge(figures), draws
	}
	first, draws := judge(1)
	if first.Verdict != WithinError {
		return first
	}
	for times := 2; times <= mostRepeats; times *= 2 {
		if f, more := judge(times); f.Verdict != WithinError {
			if more == 0 {
				first.Why += fmt.Sprintf("; about %d times the measurements would decide it", times)
			} else {
				first.Why += fmt.Sprintf("; about %d draws instead of %d would decide it", more, draws)
			}
			return first
		}
	}
	first.Why += fmt.Sprintf("; %d times the draws would not decide it", mostRepeats)
	return first
}

// together adds to a point of the first run those of the others, and repeats all of them, and
// tells whether each run has it: curves end where a network is not steady. It is not steady where
// it is not in most of the runs.
func together(at *chart.Point, runs []map[string]*Figure, figure string, panel int, curve string, times int) bool {
	sum, squares, unsteady := at.Y, at.Half*at.Half, 0
	if at.Unsteady {
		unsteady++
	}
	for _, run := range runs[1:] {
		p, ok := pointAt(run[figure].panel(panel), curve, at.X)
		if !ok {
			return false
		}
		sum, squares = sum+p.Y, squares+p.Half*p.Half
		if at.Draws = append(at.Draws, p.Draws...); p.Unsteady {
			unsteady++
		}
	}
	at.Unsteady = 2*unsteady > len(runs)
	if len(at.Draws) > 1 {
		estimate(at, slices.Repeat(at.Draws, times))
		return true
	}
	n := float64(len(runs))
	if squares > 0 { // without an interval runs have the same
		at.Y = sum / n
	}
	at.Half = math.Sqrt(squares/float64(times)) / n
	return true
}
