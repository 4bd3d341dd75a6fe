package compile

import (
	"errors"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/verify"
)

func TestEngines(t *testing.T) {
	seen := map[string]bool{}
	for i := range Engines {
		e := &Engines[i]
		if e.Domain == "" || e.Summary == "" || e.Promise() == "" {
			t.Errorf("%s lacks its domain, summary or guarantee", e.Name())
		}
		for _, name := range slices.Concat(e.Aliases, e.Counterparts, []string{e.Name()}) {
			if seen[name] {
				t.Errorf("two engines are called %s", name)
			}
			seen[name] = true
			short.Equal(t, short.Must(EngineByName(name))(t), e, "EngineByName", name)
		}
	}
	_, err := EngineByName("torus-2QoS")
	if want := `no engine "torus-2QoS": want one of updn, minhop, layered, fattree, spam, xy, negative-first, west-first, north-last, banyan`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func torus(t *testing.T) *fabric.Fabric {
	t.Helper()
	return short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Wrap: []bool{true, true}, Hosts: 1}))(t)
}

// A credit loop is a warning where the engine does not rule it out.
func TestRunGradesCreditLoops(t *testing.T) {
	for _, tc := range []struct {
		engine string
		want   verify.Severity
	}{{"minhop", verify.Warning}, {"updn", verify.Note}} {
		e := short.Must(EngineByName(tc.engine))(t)
		var stages []string
		r := short.Must(Run(t.Context(), torus(t), e, Options{Stage: func(s string) { stages = append(stages, s) }}))(t)
		if got := r.Verify.Worst(); got > tc.want || (tc.engine == "minhop" && got != tc.want) {
			t.Errorf("%s on a torus: %v, want %v", tc.engine, got, tc.want)
		}
		if (r.Verify.Certificate() == nil) != (tc.engine == "minhop") {
			t.Errorf("%s on a torus: certificate %v", tc.engine, r.Verify.Certificate())
		}
		short.Diff(t, stages, []string{"route", "verify"})
	}
}

func TestRunErrors(t *testing.T) {
	f := torus(t)
	e := &Engines[0]
	_, err := Run(t.Context(), f, e, Options{LIDs: lft.LIDOptions{GUID2LID: []lft.LIDRange{{Port: 1, Min: 3, Max: 2}}}})
	var lids *LIDError
	if !errors.As(err, &lids) {
		t.Errorf("got %v, want a LIDError", err)
	}
}
