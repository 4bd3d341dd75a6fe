package reproduce

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/report/chart"
	"github.com/ibweave/ibweave/sim"
)

// squares is a paper whose figures have n points, i and i*i.
func squares(sizes ...int) (*Paper, []Work) {
	p := &Paper{ID: "squares"}
	for i, n := range sizes {
		p.Experiments = append(p.Experiments, Experiment{
			Name: fmt.Sprintf("fig%d", i), Title: fmt.Sprintf("%d squares", n),
			Run: func(lab *Lab) (*Figure, error) {
				curve := chart.Curve{Name: "i*i", Points: make([]chart.Point, n)}
				err := lab.Each(n, func(_ context.Context, i int) error {
					curve.Points[i] = chart.Point{X: float64(i), Y: float64(i * i)}
					return nil
				})
				axis := chart.Axis{Label: "i", Scale: chart.Linear}
				return &Figure{
					Parameters: []Parameter{{"points", fmt.Sprint(n)}},
					Panels:     []chart.Panel{{Title: "(a)", X: axis, Y: axis, Curves: []chart.Curve{curve}}},
				}, err
			},
		})
	}
	var work []Work
	for i := range p.Experiments {
		work = append(work, Work{p, &p.Experiments[i]})
	}
	return p, work
}

// TestRunWorkers has the same figures on any number of workers, in order, and a
// progress that ends at all.
func TestRunWorkers(t *testing.T) {
	_, work := squares(3, 0, 50, 7, 1, 20)
	var want []*Figure
	for _, workers := range []int{1, 2, 7} {
		var last, total atomic.Int64
		figures := short.Must(Run(t.Context(), work, Options{Seed: 3, Workers: workers, Version: "v", Progress: func(d, n int) {
			last.Store(int64(d))
			total.Store(int64(n))
		}}))(t)
		if last.Load() != total.Load() || total.Load() != int64(share*len(work)) {
			t.Errorf("%d workers: progress ends at %d of %d", workers, last.Load(), total.Load())
		}
		for i, f := range figures {
			if f.ID != work[i].ID() || f.Seed != 3 || f.Version != "v" {
				t.Errorf("figure %d is %+v", i, f)
			}
		}
		if want == nil {
			want = figures
		}
		short.Diff(t, figures, want, workers, "workers")
	}
}

// TestRunErrors has errors of points, of Done and of the context, and none is lost.
func TestRunErrors(t *testing.T) {
	boom := errors.New("boom")
	p, work := squares(4, 4, 4)
	if _, err := Run(t.Context(), work, Options{Done: func(Work, *Figure) error { return boom }}); !errors.Is(err, boom) {
		t.Errorf("Done: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.Experiments[1].Run = func(lab *Lab) (*Figure, error) {
		err := lab.Each(100, func(_ context.Context, i int) error {
			if i == 3 {
				cancel()
			}
			return nil
		})
		if err == nil {
			t.Error("Each of a canceled run is complete")
		}
		return nil, err
	}
	if _, err := Run(ctx, work, Options{Workers: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	p.Experiments[1].Run = func(lab *Lab) (*Figure, error) {
		return nil, lab.Each(100, func(_ context.Context, i int) error {
			if i == 3 {
				return boom
			}
			return nil
		})
	}
	if _, err := Run(t.Context(), work, Options{}); !errors.Is(err, boom) || err.Error() != "squares/fig1: boom" {
		t.Errorf("a point: %v", err)
	}
}

// TestOnce has a value made once for all who ask at the same time.
func TestOnce(t *testing.T) {
	var made atomic.Int64
	p := &Paper{ID: "p", Experiments: []Experiment{{Name: "x", Run: func(lab *Lab) (*Figure, error) {
		return &Figure{}, lab.Each(100, func(context.Context, int) error {
			v, err := Once(lab, "key", func(context.Context) (int, error) {
				made.Add(1)
				return 42, nil
			})
			if v != 42 {
				return fmt.Errorf("got %d", v)
			}
			return err
		})
	}}}}
	if _, err := Run(t.Context(), []Work{{p, &p.Experiments[0]}}, Options{Workers: 8}); err != nil || made.Load() != 1 {
		t.Errorf("made %d times, %v", made.Load(), err)
	}
}

// TestSaved has figures that come back from files, under the same conditions only
// and with all files there, and verdicts by what is there.
func TestSaved(t *testing.T) {
	dir := t.TempDir()
	p, work := squares(3, 4)
	p.Claims = []Claim{
		{Spec: "A", Paper: "squares grow", Figures: []string{"fig0"}, Judge: func(f map[string]*Figure) Finding {
			return Finding{Verdict: Holds, Measured: fmt.Sprint(f["fig0"].At("i*i", 2).Y)}
		}},
		{Spec: "B", Paper: "both | do", Figures: []string{"fig0", "fig1"}, Judge: func(map[string]*Figure) Finding {
			return Finding{Verdict: HoldsAs, As: "printed", Measured: "1 < 2"}
		}},
	}
	opt := Options{Seed: 1, Version: "v"}
	figures := short.Must(Run(t.Context(), work, opt))(t)
	short.Check(t, figures[0].Save(dir))
	got, err := Load(dir, work[0], opt)
	if d := cmp.Diff(figures[0], got); d != "" || err != nil {
		t.Errorf("%v, %s", err, d)
	}
	for name, other := range map[string]Options{
		"quick": {Quick: true, Seed: 1, Version: "v"}, "seed": {Seed: 2, Version: "v"}, "version": {Seed: 1, Version: "w"},
	} {
		if got, err := Load(dir, work[0], other); got != nil || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := Load(dir, work[1], opt); got != nil || err != nil {
		t.Errorf("never saved: %v, %v", got, err)
	}
	list, err := JudgeSaved(dir, p, opt, []uint64{1})
	if err != nil || list[0].Verdict != Holds || list[0].Measured != "4" || list[1].Verdict != NotMeasured || list[1].Measured != "without fig1" {
		t.Errorf("%v, %+v", err, list)
	}
	short.Check(t, figures[1].Save(dir))
	if list, err = JudgeSaved(dir, p, opt, []uint64{1}); err != nil || list[1].Verdict != HoldsAs {
		t.Errorf("%v, %+v", err, list)
	}
	table, err := os.ReadFile(filepath.Join(dir, "squares", "verdicts.md"))
	want := "| squares | the paper says | measured | verdict | why |\n|---|---|---|---|---|\n" +
		"| A | squares grow | 4 | **holds** |  |\n| B | both \\| do | 1 &lt; 2 | **holds as printed** |  |\n"
	if err != nil || string(table) != want {
		t.Errorf("%v\n%s", err, table)
	}
	csv, err := os.ReadFile(filepath.Join(dir, "squares", "fig0.csv"))
	want = "panel,curve,x,x_axis,y,half_of_95_percent_interval,y_axis,n,steady,draws\n(a),i*i,0,i,0,0,i,0,true,\n(a),i*i,1,i,1,0,i,0,true,\n(a),i*i,2,i,4,0,i,0,true,\n"
	if err != nil || string(csv) != want {
		t.Errorf("%v\n%s", err, csv)
	}
	short.Check(t, os.Remove(filepath.Join(dir, "squares", "fig0.png")))
	if got, err := Load(dir, work[0], opt); got != nil || err != nil {
		t.Errorf("without its picture: %v, %v", got, err)
	}
	short.Check(t, os.WriteFile(filepath.Join(dir, "squares", "fig1.json"), []byte("{"), 0o666))
	if got, err := Load(dir, work[1], opt); got != nil || err != nil {
		t.Errorf("half a file: %v, %v", got, err)
	}
}

// TestSeeds has claims by runs with three seeds: that the mean of some draws is above 1. What they
// do not agree on is judged by all draws, unless some hold and some fail, and what is within the
// error has the draws that would decide it.
func TestSeeds(t *testing.T) {
	p := &Paper{ID: "p", Claims: []Claim{{Spec: "1", Figures: []string{"f"}, Judge: func(f map[string]*Figure) Finding {
		at := f["f"].At("c", 1)
		return decided(beyond(at, 1), "", "%d draws", at.N)
	}}}}
	run := func(draws ...float64) map[string]*Figure {
		c := newCurve("c", []int{1})
		estimate(&c.Points[0], draws)
		return map[string]*Figure{"f": {Panels: []chart.Panel{{Curves: []chart.Curve{c}}}}}
	}
	above, below := run(2, 2.1, 2), run(0.1, 0.2, 0.1)
	open := run(1, 1.1, 1.2)
	for name, tt := range map[string]struct {
		runs []map[string]*Figure
		want Finding
	}{
		"all hold":         {[]map[string]*Figure{above, above, above}, Finding{Verdict: Holds, Measured: "3 draws"}},
		"some hold":        {[]map[string]*Figure{above, above, open}, Finding{Verdict: Holds, Measured: "9 draws", Why: "by all draws together (seed 1: holds; seed 2: holds; seed 7: within the error)"}},
		"some fail":        {[]map[string]*Figure{above, below, open}, Finding{Verdict: OnDraw, Measured: "3 draws", Why: "seed 1: holds; seed 2: fails; seed 7: within the error"}},
		"all open":         {[]map[string]*Figure{open, open, open}, Finding{Verdict: Holds, Measured: "9 draws"}},
		"still open":       {[]map[string]*Figure{run(1, 1.4), run(0.9, 1.1), run(0.8, 1.1)}, Finding{Verdict: WithinError, Measured: "6 draws", Why: overlaps + "; about 96 draws instead of 6 would decide it"}},
		"never":            {[]map[string]*Figure{run(0.5, 1.5), run(0.5, 1.5), run(0.5, 1.5)}, Finding{Verdict: WithinError, Measured: "6 draws", Why: overlaps + "; 1024 times the draws would not decide it"}},
		"without a figure": {[]map[string]*Figure{above, {}, above}, Finding{Verdict: NotMeasured, Measured: "seed 1: holds; seed 2: not measured; seed 7: holds"}},
	} {
		short.Equal(t, p.JudgeSeeds([]uint64{1, 2, 7}, tt.runs)[0].Finding, tt.want, name)
	}
	for unsteady := range 4 {
		var runs []map[string]*Figure
		for i := range 3 {
			runs = append(runs, run(1, 2))
			runs[i]["f"].Panels[0].Curves[0].Points[0].Unsteady = i < unsteady
		}
		at := runs[0]["f"].At("c", 1)
		if !together(&at, runs, "f", 0, "c", 2) || at.Unsteady != (unsteady > 1) || at.N != 12 {
			t.Errorf("%d of 3 runs are not steady: %+v", unsteady, at)
		}
	}
	if got := p.JudgeSeeds([]uint64{1}, []map[string]*Figure{run(1, 1.1, 1.4)})[0].Finding; got.Verdict != WithinError || !strings.Contains(got.Why, "about 12 draws instead of 3") {
		t.Errorf("one seed: %+v", got)
	}
}

// TestRegistry has every figure and claim of every paper named once, and claims
// that speak of figures that there are.
func TestRegistry(t *testing.T) {
	all := short.Must(Find([]string{"all"}))(t)
	seen := map[string]bool{}
	for _, w := range all {
		if seen[w.ID()] {
			t.Errorf("%s twice", w.ID())
		}
		seen[w.ID()] = true
		if one, err := Find([]string{w.ID()}); err != nil || len(one) != 1 || one[0] != w {
			t.Errorf("%s: %v, %v", w.ID(), one, err)
		}
	}
	for _, p := range Papers {
		if work, err := Find([]string{p.ID, p.ID + "/" + p.Experiments[0].Name}); err != nil || len(work) != len(p.All()) {
			t.Errorf("%s: %d experiments, %v", p.ID, len(work), err)
		}
		for _, c := range p.Claims {
			if seen[p.ID+" "+c.Spec] {
				t.Errorf("%s %s twice", p.ID, c.Spec)
			}
			seen[p.ID+" "+c.Spec] = true
			if len(c.Figures) == 0 {
				t.Errorf("%s %s: no figures", p.ID, c.Spec)
			}
			for _, name := range c.Figures {
				if !seen[p.ID+"/"+name] {
					t.Errorf("%s %s: no figure %s", p.ID, c.Spec, name)
				}
			}
		}
	}
	for name, want := range map[string]string{
		"zhou":            `nothing to reproduce is called "zhou": want all, or some of zhou2010, zhou-conf, spam, `,
		"zhou-conf/fig99": `nothing to reproduce is called "zhou-conf/fig99": want all, or some of zhou-conf/fig8, `,
	} {
		_, err := Find([]string{name})
		var unknown *UnknownError
		if !errors.As(err, &unknown) || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Times between messages are negative binomial: by their parameters r and p, the mean is r/p cycles
// whatever the order is, the variance r(1-p)/p^2, and there are r cycles at least.
func TestNegativeBinomial(t *testing.T) {
	const n, mean = 200_000, 60.0
	for _, r := range []int{1, 2, 7} {
		x := newMixture(lineNetwork(t), spamLoad{}, 100/mean, r, 5)
		x.rng = rand.New(rand.NewPCG(uint64(r), 1))
		sum, square, least := 0.0, 0.0, math.Inf(1)
		for range n {
			c := x.drawCycles()
			sum, square, least = sum+c, square+c*c, min(least, c)
		}
		p := float64(r) / mean
		got, variance := sum/n, square/n-sum/n*sum/n
		if want := float64(r) * (1 - p) / p / p; math.Abs(got-mean) > 0.5 || math.Abs(variance/want-1) > 0.03 || least < float64(r) {
			t.Errorf("order %d: mean %.2f, variance %.1f, at least %g; want %g, %.1f, %d", r, got, variance, least, mean, want, r)
		}
	}
}

func lineNetwork(t *testing.T) *spamRouters {
	t.Helper()
	return short.Must(spamTrees[0].network(4, 1))(t)
}

// TestGerla runs the Myrinet paper quickly, and has the outcome of its claims.
func TestGerla(t *testing.T) {
	_, verdicts := quick(t, &gerla1996, "fig12")
	others := map[string]Verdict{
		// Circuits are short then (E-M6), and cut-through is between the trees.
		"M26-heavy, IDs by place":   WithinError,
		"M26-unicast":               WithinError,
		"M6":                        HoldsAs,      // against trees, not against the circuit
		"M28-curves, hosts":         NotDecidable, // it depends on them
		"M8":                        HoldsAs,      // for one multicast at a time
		"M20 trees":                 WithinError,
		"M3":                        HoldsAs, // not on a mesh
		"M12":                       HoldsAs,
		"M26-unicast, IDs by place": Fails,
	}
	for spec, got := range verdicts {
		want, ok := others[spec]
		if !ok {
			want = Holds
		}
		short.Equal(t, got.Verdict, want, spec, &got, got.Measured)
	}
}

// long are experiments that make test leaves to make test-all: others run their code, too.
var long = []string{"fig10", "fig10-place", "multicast", "fig3"}

// quick runs all experiments of a paper with few points, those of make test without long ones, under -short those
// of few if there are any, and gives the figures by name and the verdicts by number.
func quick(t *testing.T, p *Paper, few ...string) (figures map[string]*Figure, verdicts map[string]Finding) {
	t.Helper()
	names := []string{p.ID}
	if testing.Short() && few != nil {
		names = nil
		for _, name := range few {
			names = append(names, p.ID+"/"+name)
		}
	}
	work := slices.DeleteFunc(short.Must(Find(names))(t), func(w Work) bool { return !short.All() && slices.Contains(long, w.Name) })
	list := short.Must(Run(t.Context(), work, Options{Quick: true, Seed: 1}))(t)
	figures, verdicts = map[string]*Figure{}, map[string]Finding{}
	for i, f := range list {
		figures[work[i].Name] = f
	}
	for _, j := range p.Judge(figures) {
		if j.Verdict != NotMeasured || short.All() {
			verdicts[j.Spec] = j.Finding
		}
	}
	return figures, verdicts
}

// TestMIN has the figures of the paper on banyan networks: the values of G-N5 and
// G-N6, the simulation near them, and the verdicts.
func TestMIN(t *testing.T) {
	figures, verdicts := quick(t, &recursiveMIN)
	near := func(figure string, panel int, curve string, x, want float64) {
		t.Helper()
		if got := figures[figure].panel(panel).At(curve, x).Y; math.Abs(got-want) > 0.00006 {
			t.Errorf("%s panel %d, %s at %v: %v, want %v", figure, panel, curve, x, got, want)
		}
	}
	for x, want := range []float64{.602564, .431193, .282353, .164384, .089552, .046875, .024} {
		near("fig5", 0, "f = 4", float64(x), want)
	}
	for panel, list := range [][]float64{
		{0.312984, 0.287371, 0.245713, 0.189145, 0.128657},
		{0.265252, 0.189398, 0.119273, 0.068200, 0.036667},
		{0.221448, 0.131617, 0.072132, 0.037792, 0.019341},
	} {
		near("fig6", panel, "f = 1", 1, 0.327107)
		for i, want := range list {
			near("fig6", panel, fmt.Sprint("f = ", minFanouts[i]), 1, want)
		}
	}
	for i, want := range []float64{.0363, .0664, .0915, .1127, .1307, .1460, .1593, .1707, .1807, .1894} {
		near("fig6", 1, "f = 4", float64(i+1)/10, want)
	}
	for i, want := range []float64{.2111, .1995, .1894, .1804, .1723, .1650} {
		near("fig7", 1, "f = 4, (A) random start", float64(5+i), want)
	}
	for i, want := range []float64{.1689, .1510, .1368, .1251, .1153, .1070} {
		near("fig7", 1, "f = 4, (B) first stages", float64(5+i), want)
	}
	// Another simulator's, with all copies or none (E-N5).
	if got := figures["whole"].panel(2).At(minArrived, 16); math.Abs(got.Y-0.0107) > 0.0005 {
		t.Errorf("all 16 copies arrive of %v, want 0.0107", got)
	}
	for spec, want := range map[string]Verdict{
		"N13": Holds, "N16-1": Holds, "N15-6": Holds, "N16-2": Holds, "N15-7": Holds, "N16-3": Fails, "N12 whole": Fails,
		"N12 phase 2": Fails, "N17": Holds,
	} {
		if got := verdicts[spec]; got.Verdict != want || got.Measured == "" || got.Why == "" {
			t.Errorf("%s: %+v, want %s", spec, got, want)
		}
	}
	if got := verdicts["N12"].Verdict; got != Holds && got != HoldsAs {
		t.Errorf("N12: %s", got)
	}
}

// TestSPAM has the figures of the SPAM paper: latencies in the bands of G-S3, and
// the verdicts.
func TestSPAM(t *testing.T) {
	figures, verdicts := quick(t, &spam1998, "fig2")
	for _, tt := range []struct {
		panel     int
		curve     string
		d         float64
		want, off float64
	}{
		{0, "128 nodes", 1, 11.793, 0.3}, {0, "128 nodes", 127, 12.691, 0.4},
		{0, "256 nodes", 1, 11.907, 0.4}, {0, "256 nodes", 255, 13.283, 0.3},
		{1, "software, startups alone", 255, 80, 0}, {1, "software, startups alone", 1, 10, 0}, {1, "software, 128 nodes", 1, 11.8, 0.3},
		{2, "breadth-first tree from the centre", 255, 12.566, 0.3}, {2, "depth-first tree", 255, 18.5, 3.5},
	} {
		if got := figures["fig2"].panel(tt.panel).At(tt.curve, tt.d).Y; math.Abs(got-tt.want) > tt.off {
			t.Errorf("%s, %v destinations: %.3f us, want %.3f +- %.1f", tt.curve, tt.d, got, tt.want, tt.off)
		}
	}
	for spec, want := range map[string]Verdict{
		"S15-1": HoldsAs, "S15-2": Holds, "S15-3 deep": Fails, "S15-4": Fails, "S15-5": Holds, "S16": Holds, "S18": Fails,
		"S15-6": Holds, "S16 multicast": Holds, "S18 schemes": Holds, "S18 lock-step": Holds, "S18 buffers": Holds, "S18 root": Holds,
	} {
		got, ok := verdicts[spec]
		if !ok && !short.All() {
			continue
		}
		if got.Verdict != want || got.Measured == "" || got.Why == "" {
			t.Errorf("%s: %+v, want %s", spec, got, want)
		}
	}
	if got := verdicts["S15-3"].Verdict; got != "" && got != Holds && got != HoldsAs {
		t.Errorf("S15-3: %s", got)
	}
}

// TestSoftwareBound has startups of recursive doubling (E-S1).
func TestSoftwareBound(t *testing.T) {
	for d, want := range map[int]float64{1: 10, 2: 20, 3: 20, 4: 30, 127: 70, 128: 80, 255: 80, 256: 90} {
		short.Equal(t, softwareBound(d), want, d, "destinations", "us")
	}
}

// TestDoubling has every host reached once, in as many phases as the bound has.
func TestDoubling(t *testing.T) {
	r := short.Must(spamTrees[0].network(40, 3))(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, d := range []int{1, 2, 3, 7, 8, 39} {
		src := rng.IntN(40)
		at := short.Must(r.bySoftware(t.Context(), src, someOf(rng, 40, d, src)))(t)
		low := sim.Time(softwareBound(d)) * sim.Microsecond
		if at < low || at > low*5/4 {
			t.Errorf("%d destinations: %s, want a little more than %s", d, at, low)
		}
	}
}

// TestPathWorms has each destination on one path, and paths down the tree that do not branch.
func TestPathWorms(t *testing.T) {
	r := short.Must(spamTrees[0].network(64, 5))(t)
	f := r.net.Fabric()
	rng := rand.New(rand.NewPCG(2, 1))
	for range 50 {
		to := someOf(rng, 64, 1+rng.IntN(63), 0)
		worms := short.Must(r.pathWorms(to))(t)
		var got []fabric.PortID
		for _, x := range worms {
			list := x.Destinations(f)
			got = append(got, list...)
			for i := range list[1:] {
				if !r.net.IsAncestor(f.PeerSwitch(list[i]), f.PeerSwitch(list[i+1])) {
					t.Fatalf("%v is no path", list)
				}
			}
		}
		want := r.hosts(to)
		slices.Sort(got)
		slices.Sort(want)
		short.EqualList(t, got, want, "worms")
	}
}

// TestPartition has the parts of a multicast: contiguous, even, all of it.
func TestPartition(t *testing.T) {
	r := short.Must(spamTrees[1].network(40, 5))(t)
	list := make([]int, 40)
	for i := range list {
		list[i] = i
	}
	whole := short.Must(r.net.NewWorm(r.hosts(list)))(t)
	all := whole.Destinations(r.net.Fabric())
	for _, k := range []int{0, 1, 3, 7, 40, 100} {
		parts := short.Must(r.partition(list, k))(t)
		var joined []fabric.PortID
		for _, x := range parts {
			d := x.Destinations(r.net.Fabric())
			joined = append(joined, d...)
			if len(d) < 40/len(parts) || len(d) > (39+len(parts))/len(parts) {
				t.Errorf("%d parts: one of %d", k, len(d))
			}
		}
		if len(parts) != max(1, min(k, 40)) || !slices.Equal(joined, all) {
			t.Errorf("%d parts: %d worms to %v, want %v", k, len(parts), joined, all)
		}
	}
}
