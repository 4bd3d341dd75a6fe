package reproduce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/report/chart"
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
