package rails

import (
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

// A few hosts with two ports among many with one are no rails.
func TestIsRailed(t *testing.T) {
	for _, tc := range []struct {
		ports [2]int
		want  bool
	}{{[2]int{62, 2}, false}, {[2]int{62, 52}, true}} {
		r := &Result{Rails: []Rail{{Rail: 1, Ports: tc.ports[0]}, {Rail: 2, Ports: tc.ports[1]}}}
		short.Equal(t, r.IsRailed(), tc.want, "rails of", tc.ports, "ports")
	}
}
