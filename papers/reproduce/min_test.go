package reproduce

import (
	"fmt"
	"math"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

// quick runs all experiments of a paper with few points, under -short those of few if
// there are any, and gives the figures by name and the verdicts by number.
func quick(t *testing.T, p *Paper, few ...string) (figures map[string]*Figure, verdicts map[string]Finding) {
	t.Helper()
	names := []string{p.ID}
	if testing.Short() && few != nil {
		names = nil
		for _, name := range few {
			names = append(names, p.ID+"/"+name)
		}
	}
	work := short.Must(Find(names))(t)
	list := short.Must(Run(t.Context(), work, Options{Quick: true, Seed: 1}))(t)
	figures, verdicts = map[string]*Figure{}, map[string]Finding{}
	for i, f := range list {
		figures[work[i].Name] = f
	}
	for _, j := range p.Judge(figures) {
		if j.Verdict != NotMeasured || !testing.Short() {
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
