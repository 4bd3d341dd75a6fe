package mesh

import (
	"testing"

	"github.com/ibweave/ibweave/lft"
)

// The largest square mesh of one host a switch whose hosts and switches all
// have LIDs has 156x156 switches; 128x128 is what a board designer would take.
func BenchmarkXY(b *testing.B) {
	for _, bm := range []struct {
		name string
		plot plot
		lmc  int
	}{
		{"mesh 30x30", plot{dims: []int{30, 30}}, 0},
		{"mesh 128x128", plot{dims: []int{128, 128}}, 0},
		{"torus 64x64", plot{dims: []int{64, 64}, wrap: []bool{true, true}}, 0},
		{"torus 64x64, LMC 1", plot{dims: []int{64, 64}, wrap: []bool{true, true}, lmc: 1}, 0},
		{"torus 64x64, 4 links", plot{dims: []int{64, 64}, wrap: []bool{true, true}, links: []int{4, 4}}, 0},
		{"mesh 128x128, a cable missing", plot{dims: []int{128, 128}, missing: func(at, d int) bool { return at == 8000 && d == 0 }}, 0},
	} {
		b.Run(bm.name, func(b *testing.B) {
			g := grow(b, bm.plot)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := routeXY(b.Context(), g, lft.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
