package reproduce

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report/chart"
)

// stream returns the seed for the random numbers of a draw. It
// differs for each seed of a run, purpose and draw, so that runs
// with neighbouring seeds share nothing. All points of a figure
// take the same streams, so that they can be compared draw by draw.
func stream(seed uint64, purpose string, draw int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d", seed, purpose, draw)
	x := h.Sum64()
	// The last step of SplitMix64, since FNV gives similar sums for similar ends of texts.
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// student has the 97.5 % quantiles of Student's t by degrees of freedom, from 1 on.
var student = []float64{0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}

// studentOf returns the 97.5 % quantile of Student's t, to 0.001:
// from the table, beyond it by the expansion of Fisher and Cornish.
func studentOf(freedom int) float64 {
	if freedom < len(student) {
		return student[freedom]
	}
	const z = 1.959964
	const z3, z5, z7 = z * z * z, z * z * z * z * z, z * z * z * z * z * z * z
	v := float64(freedom)
	return z + (z3+z)/(4*v) + (5*z5+16*z3+3*z)/(96*v*v) + (3*z7+19*z5+17*z3-15*z)/(384*v*v*v)
}

// spreadOf returns the mean of independent values, and the standard deviation of that mean.
func spreadOf(values []float64) (mean, deviation float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	square := 0.0
	for _, v := range values {
		square += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(square / (n - 1) / n)
}

// estimate sets a point to the mean of independent values, one for each
// draw, with half of its 95 % confidence interval, 0 for one value.
func estimate(p *chart.Point, values []float64) {
	mean, deviation := spreadOf(values)
	p.N, p.Y, p.Half, p.Draws = len(values), mean, 0, nil
	if p.N > 1 {
		p.Half, p.Draws = studentOf(p.N-1)*deviation, values
	}
}

// combine returns a point with the value of(a.Y, b.Y). Its interval is
// that of the values by draw, or half if a and b have other draws.
func combine(a, b chart.Point, of func(a, b float64) float64, half float64) chart.Point {
	p := chart.Point{X: a.X, Y: of(a.Y, b.Y), Half: half}
	if len(a.Draws) > 1 && len(a.Draws) == len(b.Draws) {
		values := make([]float64, len(a.Draws))
		for i := range values {
			values[i] = of(a.Draws[i], b.Draws[i])
		}
		estimate(&p, values)
	}
	return p
}

func minus(a, b chart.Point) chart.Point {
	return combine(a, b, func(a, b float64) float64 { return a - b }, math.Hypot(a.Half, b.Half))
}

func ratio(a, b chart.Point) chart.Point {
	return combine(a, b, func(a, b float64) float64 { return a / b }, math.Abs(a.Y/b.Y)*math.Hypot(a.Half/a.Y, b.Half/b.Y))
}

// above returns true if a is greater than b beyond the error of the difference.
func above(a, b chart.Point) bool {
	return beyond(minus(a, b), 0) > 0
}

// beyond returns 1 if the interval of a point is above a bound, -1 if it is below, 0
// if the bound is inside. A point without an error at the bound is not above it: -1.
func beyond(p chart.Point, bound float64) int {
	switch {
	case p.Y-p.Half > bound:
		return 1
	case p.Y+p.Half < bound || p.Half == 0:
		return -1
	}
	return 0
}

// within returns 1 if the interval of a point is inside that from
// low to high, -1 if the two are apart, 0 if they overlap.
func within(p chart.Point, low, high float64) int {
	switch {
	case p.Y-p.Half >= low && p.Y+p.Half <= high:
		return 1
	case p.Y-p.Half > high || p.Y+p.Half < low:
		return -1
	}
	return 0
}

// decide sets the verdict of a claim: how is 1 if it holds, -1 if it
// fails, 0 within the error. Only a claim that holds keeps its reason.
func (f *Finding) decide(how int) {
	switch {
	case how > 0:
		f.Verdict = Holds
	case how < 0:
		f.Verdict, f.Why = Fails, ""
	default:
		f.Verdict, f.Why = WithinError, overlaps
	}
}

// decided returns a finding with text measured, and with the
// verdict and the reason that decide(how) makes of why.
func decided(how int, why, measured string, args ...any) Finding {
	out := Finding{Measured: fmt.Sprintf(measured, args...), Why: why}
	out.decide(how)
	return out
}

// holdsIf returns the finding of a claim that holds or fails by numbers without an error.
func holdsIf(holds bool, why, measured string, args ...any) Finding {
	out := Finding{Verdict: Holds, Measured: fmt.Sprintf(measured, args...), Why: why}
	out.failIf(!holds)
	return out
}

// tally has values at points, and the outcome of a claim about all of them.
type tally struct {
	span
	lost int // 0 if it holds everywhere, 1 if that is within the error somewhere, 2 if it fails
}

// add adds the value at a point, and the outcome there: how is as in decide.
func (t *tally) add(how int, v float64, format string, args ...any) {
	t.span.add(v, format, args...)
	t.lost = max(t.lost, 1-how)
}

// how returns the outcome as decide takes it.
func (t *tally) how() int { return 1 - t.lost }

// overlaps is the reason of WithinError.
const overlaps = "the 95 % interval has both outcomes in it"

// flow counts what came and went while a draw was measured, with the
// mean latencies of the first and of the second half of that time.
type flow struct {
	came, went  int64
	early, late float64
}

// A flow is steady if as much goes as comes, up to leastLeft messages or
// a share mostLeft, and if latency does not grow by more than mostGrowth.
const (
	mostLeft   = 0.02
	leastLeft  = 20
	mostGrowth = 1.5
)

// steady returns true if latencies are those of a network that
// carries its load, and do not depend on how long it was measured.
func (f flow) steady() bool {
	return float64(f.came-f.went) <= max(leastLeft, mostLeft*float64(f.came)) && !(f.late > mostGrowth*f.early)
}

// allSteady returns true if all draws carry their load, and the mean latency
// of all does not grow: a single draw may have too few messages to tell.
func allSteady(draws []flow) bool {
	var all flow
	for _, f := range draws {
		all.early += f.early
		all.late += f.late
		f.early, f.late = 0, 0
		if !f.steady() {
			return false
		}
	}
	return all.steady()
}

// endCurves cuts each curve off after its first unsteady point.
func (f *Figure) endCurves() {
	for i := range f.Panels {
		for k := range f.Panels[i].Curves {
			c := &f.Panels[i].Curves[k]
			for n, at := range c.Points {
				if at.Unsteady {
					c.Points = c.Points[:n+1]
					break
				}
			}
		}
	}
}

// steadyCurve returns the points of a curve before its first unsteady one.
func (f *Figure) steadyCurve(name string) []chart.Point {
	points := f.Curve(name)
	for i, at := range points {
		if at.Unsteady {
			return points[:i]
		}
	}
	return points
}

// batchMeans is a mean with an interval from the means of
// batches, since values that follow each other are alike.
type batchMeans struct {
	size  int
	n     int
	part  float64
	means []float64
}

func (b *batchMeans) add(v float64) {
	b.part += v
	if b.n++; b.n%b.size == 0 {
		b.means = append(b.means, b.part/float64(b.size))
		b.part = 0
	}
}

// interval returns the mean and half of its 95 % confidence
// interval, which is infinite without a whole batch.
func (b *batchMeans) interval() (mean, half float64) {
	if len(b.means) == 0 {
		return 0, math.Inf(1)
	}
	mean, deviation := spreadOf(b.means)
	return mean, studentOf(len(b.means)-1) * deviation
}

// JudgeSeeds judges the claims of p by runs with several seeds,
// each with its figures by name. If all runs decide a claim alike, the
// numbers are the first run's. If it holds in some and fails in
// others, it depends on the draw. Otherwise the draws of all runs
// are judged together; if that is within the error, the reason
// says how many such draws would decide the claim.
func (p *Paper) JudgeSeeds(seeds []uint64, runs []Figures) []Judgement {
	by := text.Each(runs, p.Judge)
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

// mostRepeats is the most repetitions of the draws that judgeTogether tries.
const mostRepeats = 1 << 10

func (c *Claim) judgeTogether(runs []Figures) Finding {
	judge := func(times int) (Finding, int) {
		figures, draws := Figures{}, 0
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

// together adds the draws of the other runs to at, a point of the
// first, and takes all draws `times` times. It returns false if a
// run lacks the point: curves end where a network is not steady.
// The point is unsteady if it is so in most of the runs.
func together(at *chart.Point, runs []Figures, figure string, panel int, curve string, times int) bool {
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
	if squares > 0 { // without an interval all runs have the same value
		at.Y = sum / n
	}
	at.Half = math.Sqrt(squares/float64(times)) / n
	return true
}
