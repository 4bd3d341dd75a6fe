package reproduce

import (
	"testing"
)

// TestGerla runs the Myrinet paper quickly, and has the outcome of its claims.
func TestGerla(t *testing.T) {
	work, err := Find([]string{"gerla1996"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := Run(t.Context(), work, Options{Quick: true, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	figures := map[string]*Figure{}
	for i, f := range list {
		figures[work[i].Name] = f
	}
	fails := map[string]Verdict{
		// Circuits are short then (E-M6), and cut-through is between the trees.
		"M26-heavy, IDs by place":   NotDecidable,
		"M26-unicast, IDs by place": Fails,
	}
	for _, j := range gerla1996.Judge(figures) {
		t.Logf("%s: %s\n  %s\n  %s\n  %s", j.Spec, j.Claim, j.Finding.String(), j.Measured, j.Why)
		want, ok := fails[j.Spec]
		if !ok {
			want = Holds
		}
		if j.Verdict != want {
			t.Errorf("%s: %s, want %s: %s", j.Spec, j.Verdict, want, j.Measured)
		}
	}
}
