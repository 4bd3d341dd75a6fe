package reproduce

import "testing"

// TestGeoffray runs the experiment on adaptive routing quickly, and has its verdicts.
func TestGeoffray(t *testing.T) {
	_, verdicts := quick(t, &geoffray2008, "nodes")
	want := map[string]Verdict{"AR-1": Holds, "AR-2": NotDecidable, "AR-3": Holds, "AR-4": Holds}
	for spec, got := range verdicts {
		if got.Verdict != want[spec] {
			t.Errorf("%s: %s, want %s: %s", spec, &got, want[spec], got.Measured)
		}
	}
}
