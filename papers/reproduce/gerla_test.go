package reproduce

import (
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

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
