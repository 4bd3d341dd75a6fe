package reproduce

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/report/chart"
)

// turns are the values that TestJudges gives to curves in place of those that were measured.
var turns = []func(p chart.Point) func(y float64) float64{
	scaled(0.01), scaled(0.1), scaled(0.5), scaled(0.8), scaled(0.9), scaled(0.97), scaled(1), scaled(1.03), scaled(1.125), scaled(1.25), scaled(2), scaled(10), scaled(100),
	func(chart.Point) func(float64) float64 { return func(float64) float64 { return 1 } },
	func(p chart.Point) func(float64) float64 { return func(y float64) float64 { return 1 + y - p.Y } },
	func(p chart.Point) func(float64) float64 { return func(float64) float64 { return p.X } },
	func(p chart.Point) func(float64) float64 { return func(float64) float64 { return 1 / (1 + p.X) } },
	func(chart.Point) func(float64) float64 { return func(y float64) float64 { return 1 / y } },
	func(chart.Point) func(float64) float64 { return func(y float64) float64 { return 1 - y } },
	func(p chart.Point) func(float64) float64 { return func(y float64) float64 { return y + p.X } },
	func(p chart.Point) func(float64) float64 { return func(y float64) float64 { return y * p.X } },
}

func scaled(by float64) func(chart.Point) func(float64) float64 {
	return func(chart.Point) func(float64) float64 { return func(y float64) float64 { return by * y } }
}

// turned is a figure with other values in the curves for which turn has a function. Half of the
// interval grows as the value does. steady, if not nil, gives how many points of a curve are steady.
func turned(f *Figure, turn func(curve string) func(chart.Point) func(float64) float64, steady func(points int) int) *Figure {
	g := *f
	g.Panels = slices.Clone(f.Panels)
	for i := range g.Panels {
		g.Panels[i].Curves = slices.Clone(g.Panels[i].Curves)
		for k := range g.Panels[i].Curves {
			c := &g.Panels[i].Curves[k]
			change := turn(c.Name)
			if change == nil {
				continue
			}
			c.Points = slices.Clone(c.Points)
			last := len(c.Points)
			if steady != nil {
				last = steady(last)
			}
			for n := range c.Points {
				p := &c.Points[n]
				of, was := change(*p), p.Y
				p.Y, p.Unsteady = of(was), n >= last || p.Unsteady && steady == nil
				p.Half = max(of(was+p.Half)-p.Y, p.Y-of(was+p.Half))
				p.Draws = slices.Clone(p.Draws)
				for d := range p.Draws {
					p.Draws[d] = of(p.Draws[d])
				}
			}
		}
	}
	return &g
}

// otherRows are an exhibit as the paper has it, the same with each row changed in turn, and one
// with nothing in it.
func otherRows(f *Figure) (list []*Figure) {
	with := func(rows []Row) {
		g := *f
		g.Rows = rows
		list = append(list, &g)
	}
	told := slices.Clone(f.Rows)
	for i, r := range told {
		if r.Paper != "" {
			told[i].Computed = r.Paper
		}
	}
	with(told)
	for i := range told {
		other := slices.Clone(told)
		other[i].Computed += "?"
		with(other)
	}
	with([]Row{{What: "nothing", Computed: "1"}})
	return list
}

// TestJudges has the verdicts of all claims where the committed figures were others: with each
// curve changed by each of turns, and each row of an exhibit. The file has a letter for each of
// them: h of one that holds, f, w within the error, n not decidable, and a number of one that
// holds as something else. Each claim holds of some of these figures and of others it does not.
func TestJudges(t *testing.T) {
	var all strings.Builder
	for _, p := range Papers {
		figures, known := pageData(t, p)[0], map[string]*Figure{}
		for _, c := range p.Claims {
			var as []string
			seen := map[byte]bool{}
			judge := func(change func(name string, f *Figure) *Figure) byte {
				changed := map[string]*Figure{}
				for _, name := range c.Figures {
					changed[name] = change(name, figures[name])
				}
				found := c.Judge(changed)
				letter := map[Verdict]byte{Holds: 'h', Fails: 'f', WithinError: 'w', NotDecidable: 'n'}[found.Verdict]
				if found.Verdict == HoldsAs {
					if !slices.Contains(as, found.As) {
						as = append(as, found.As)
					}
					letter = byte('1' + slices.Index(as, found.As))
				}
				seen[letter] = true
				return letter
			}
			fmt.Fprintf(&all, "%s %s\n", p.ID, c.Spec)
			names := []string{""}
			for _, figure := range c.Figures {
				if f := figures[figure]; len(f.Rows) > 0 && len(c.Figures) == 1 {
					for _, other := range otherRows(f) {
						all.WriteByte(judge(func(string, *Figure) *Figure { return other }))
					}
					all.WriteByte('\n')
				}
				for _, panel := range figures[figure].Panels {
					for _, curve := range panel.Curves {
						names = append(names, curve.Name)
					}
				}
			}
			if len(names) == 1 {
				names = nil
			}
			slices.Sort(names)
			for _, curve := range slices.Compact(names) {
				for i, turn := range turns {
					all.WriteByte(judge(func(name string, f *Figure) *Figure {
						key := fmt.Sprint(name, ", ", curve, ", ", i)
						if known[key] == nil {
							known[key] = turned(f, func(name string) func(chart.Point) func(float64) float64 {
								if curve == "" || curve == name {
									return turn
								}
								return nil
							}, nil)
						}
						return known[key]
					}))
				}
				fmt.Fprintf(&all, " %s\n", curve)
			}
			random := rand.New(rand.NewPCG(1, 1))
			for i := range min(100, 100*len(names)) {
				all.WriteByte(judge(func(_ string, f *Figure) *Figure {
					return turned(f, func(string) func(chart.Point) func(float64) float64 {
						if i < len(turns) {
							return turns[i]
						}
						return turns[random.IntN(len(turns))]
					}, func(points int) int { return 1 + random.IntN(points) })
				}))
			}
			all.WriteString("\n")
			for i, text := range as {
				fmt.Fprintf(&all, "%d: %s\n", i+1, text)
			}
			if len(seen) < 2 || len(as) == 0 && !seen['h'] {
				t.Errorf("%s %s: the verdict does not turn: %v", p.ID, c.Spec, seen)
			}
		}
	}
	file := filepath.Join("testdata", "verdicts.txt")
	if *updatePages {
		short.Check(t, os.WriteFile(file, []byte(all.String()), 0o666))
	}
	short.Diff(t, strings.Split(all.String(), "\n"), strings.Split(string(short.Must(os.ReadFile(file))(t)), "\n"), "run make pages, and read the diff")
}

// TestStreams has no draw of any purpose and seed twice: neighbouring seeds share nothing.
func TestStreams(t *testing.T) {
	seen := map[uint64]bool{}
	n := 0
	for seed := range uint64(100) {
		for _, purpose := range []string{"mesh hosts", "mesh order", "gerla groups"} {
			for draw := range 50 {
				seen[stream(seed, purpose, draw)] = true
				n++
			}
		}
	}
	short.Equal(t, len(seen), n, "streams")
}

// TestStudent has quantiles from a table.
func TestStudent(t *testing.T) {
	for freedom, want := range map[int]float64{1: 12.706, 4: 2.776, 9: 2.262, 10: 2.228, 15: 2.131, 29: 2.045, 100: 1.984, 10000: 1.960} {
		if got := studentOf(freedom); math.Abs(got-want) > 0.001 {
			t.Errorf("%d degrees of freedom: %v, want %v", freedom, got, want)
		}
	}
}

// TestPaired has a difference that is clear by draw and hidden by what draws have in common,
// and none where the draws say so.
func TestPaired(t *testing.T) {
	var a, b, c chart.Point
	estimate(&a, []float64{10, 20, 30, 40})
	estimate(&b, []float64{11, 21.2, 31, 41.1})
	estimate(&c, []float64{12, 19, 31, 39})
	if !above(b, a) || above(a, b) || above(c, a) || above(a, c) {
		t.Errorf("differences %+v, %+v", minus(b, a), minus(c, a))
	}
	if d := minus(b, chart.Point{Y: 25, Half: 1}); d.Draws != nil || d.Half <= b.Half {
		t.Errorf("without the same draws %+v", d)
	}
	if r := ratio(b, a); r.N != 4 || math.Abs(r.Y-(1.1+1.06+31./30+41.1/40)/4) > 1e-12 {
		t.Errorf("the ratio is %+v", r)
	}
	if r := ratio(chart.Point{Y: 30, Half: 3}, chart.Point{Y: 10, Half: 1}); r.Y != 3 || math.Abs(r.Half-3*math.Sqrt2/10) > 1e-12 {
		t.Errorf("without draws the ratio is %+v", r)
	}
}

// TestDecided has the outcomes of an interval and a bound, or an interval of bounds.
func TestDecided(t *testing.T) {
	for _, tt := range []struct {
		y, half         float64
		beyond1, within int // 1, and 0.9 to 1.1
	}{{1.05, 0.04, 1, 1}, {1.05, 0.06, 0, 0}, {1, 0, -1, 1}, {0.9, 0.05, -1, 0}, {2, 0.1, 1, -1}, {0.5, 0.1, -1, -1}} {
		p := chart.Point{Y: tt.y, Half: tt.half}
		if got, in := beyond(p, 1), within(p, 0.9, 1.1); got != tt.beyond1 || in != tt.within {
			t.Errorf("%v +- %v: %d and %d, want %d and %d", tt.y, tt.half, got, in, tt.beyond1, tt.within)
		}
	}
}

// TestSteady has curves that end where more comes than goes, or latency grows.
func TestSteady(t *testing.T) {
	for _, tt := range []struct {
		flow flow
		want bool
	}{
		{flow{1000, 995, 10, 11}, true}, {flow{1000, 1010, 10, 9}, true}, {flow{2000, 1959, 10, 10}, false},
		{flow{200, 181, 10, 10}, true},
		{flow{1000, 1000, 10, 16}, false}, {flow{1000, 1000, math.NaN(), math.NaN()}, true},
	} {
		short.Equal(t, tt.flow.steady(), tt.want, tt.flow)
	}
	draws := []flow{{1000, 1000, 10, 20}, {1000, 1000, 10, 8}}
	if draws[0].steady() || !allSteady(draws) || allSteady(append(draws, flow{2000, 1900, 10, 10})) || allSteady(draws[:1]) {
		t.Error("draws together")
	}
	f := &Figure{Panels: []chart.Panel{{Curves: []chart.Curve{
		{Name: "a", Points: []chart.Point{{X: 1}, {X: 2, Unsteady: true}, {X: 3}}}, {Name: "b", Points: []chart.Point{{X: 1}, {X: 2}}},
	}}}}
	f.endCurves()
	if a, b := f.Curve("a"), f.Curve("b"); len(a) != 2 || len(b) != 2 || len(f.steadyCurve("a")) != 1 || len(f.steadyCurve("b")) != 2 {
		t.Errorf("%v, %v", a, b)
	}
}

// TestBatchMeans has the interval of a mean.
func TestBatchMeans(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	covers := 0
	for range 400 {
		b := batchMeans{size: 5}
		for range 200 {
			b.add(3 + rng.NormFloat64())
		}
		if mean, half := b.interval(); math.Abs(mean-3) <= half {
			covers++
		}
	}
	if covers < 360 || covers > 396 {
		t.Errorf("%d of 400 intervals of 95 %% have the mean", covers)
	}
}
