package page

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/verify/bound"
)

// measured is a mesh with groups, choices, a bound, and a counter.
func measured(t *testing.T) *Input {
	t.Helper()
	in := *withChoices(t, compiled(t, fabrictest.Grid(t, 1, false, 4, 3), "xy", compile.Options{Groups: withGroups}), 9)
	found := short.Must(bound.Find(context.Background(), in.Fabric, bound.Options{Load: in.Result.GreatestLoad()}))(t)
	in.Result.CompareBounds(found.List()...)
	bytes := make([]float64, in.Fabric.NumPorts())
	for p := range bytes {
		bytes[p] = float64(p)
	}
	in.Counters = []Counter{{Name: "job a", Unit: "bytes", Values: bytes}}
	return &in
}

// TestBrowserMeasures: the page has the measures of pictures, with the same values, and begins with
// the one that is asked for.
func TestBrowserMeasures(t *testing.T) {
	in := measured(t)
	in.Cables = "bound"
	s := short.Must(newScene(context.Background(), in))(t)
	p := open(t, in)
	want(p, "bound, % of the bound", "document.getElementById('colour').selectedOptions[0].textContent")
	type values struct {
		Name, Unit string
		Values     []float64
		Max, Mean  float64
	}
	got := eval[[]values](p, "ibweave.data.measures.map(m => ({Name: m.name, Unit: m.unit, Values: [...m.values], Max: m.max, Mean: m.mean}))")
	wanted := s.measures()
	var names []string
	for i, m := range wanted {
		names = append(names, m.Name)
		want := values{m.Name, m.Unit, m.Values, m.max, m.mean}
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a)) })
		if diff := cmp.Diff(want, got[i], near); diff != "" {
			t.Errorf("%s: %s", m.Name, diff)
		}
	}
	if !slices.Equal(names, []string{"routes", "bound", "trees", "choices", "job a"}) || len(got) != 5 {
		t.Errorf("measures %q, the page has %d", names, len(got))
	}
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#colour"), "t")))
	want(p, "trees", "ibweave.measure()")
}

// TestMeasures counts again what cables show: trees over a cable, choices of a switch, and the load
// of the busiest cable against the bound.
func TestMeasures(t *testing.T) {
	in := measured(t)
	f := in.Fabric
	s := short.Must(newScene(context.Background(), in))(t)
	by := map[string]measure{}
	for _, m := range s.measures() {
		by[m.Name] = m
	}
	b := in.Result.Bound
	if got, want := by["bound"].max, 100*b.Load/b.Bounds[0].Least; math.Abs(got-want) > 1e-9 {
		t.Errorf("the busiest cable has %g %% of the bound, want %g", got, want)
	}
	some := 0
	for p := range fabric.PortID(f.NumPorts()) {
		trees, choices := 0.0, 0.0
		for _, g := range in.groups() {
			if slices.Contains(in.Multicast.Tables.Ports(g.MLID), p) {
				trees++
			}
		}
		if sw := f.Owner(p); f.IsSwitch(sw) {
			for lid, end := range f.LIDPorts() {
				if end == fabric.NoPort {
					continue
				}
				one, other := in.Adaptive.Choices(0, sw, fabric.LID(lid)), in.Adaptive.Choices(1, sw, fabric.LID(lid))
				if one.Len() > 1 && one.Has(f.Num(p)) || other.Len() > 1 && other.Has(f.Num(p)) {
					choices++
				}
			}
		}
		if by["trees"].Values[p] != trees || by["choices"].Values[p] != choices {
			t.Errorf("%s: %g trees and %g choices, want %g and %g", f.PortName(p), by["trees"].Values[p], by["choices"].Values[p], trees, choices)
		}
		if trees > 0 && choices > 0 {
			some++
		}
	}
	if some < 5 {
		t.Errorf("%d ports with trees and choices: too few to tell", some)
	}
	view := short.Must(ParseView("fabric"))(t)
	in.Cables = "choices"
	picture, err := Draw(context.Background(), in, view)
	if err != nil || picture.shows.Name != "choices" {
		t.Error(err)
	}
	in.Cables = "absent"
	_, err = Draw(context.Background(), in, view)
	none := new(RequestError)
	if !errors.As(err, &none) || !strings.Contains(err.Error(), "want one of routes, bound, trees, choices, job a") {
		t.Error(err)
	}
	if err := Write(context.Background(), new(bytes.Buffer), in); !errors.As(err, &none) {
		t.Error(err)
	}
}
