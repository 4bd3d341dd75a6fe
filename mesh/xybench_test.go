package mesh

import (
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// BenchmarkXY routes the meshes that the documentation speaks of, tori, and
// grids whose parts are several or missing.
func BenchmarkXY(b *testing.B) {
	for _, bm := range []struct {
		name string
		plot plot
	}{
		{"mesh 30x30", plot{dims: []int{30, 30}}},
		{"mesh 128x128", plot{dims: []int{128, 128}}},
		{"torus 64x64", plot{dims: []int{64, 64}, wrap: []bool{true, true}}},
		{"torus 64x64, LMC 1", plot{dims: []int{64, 64}, wrap: []bool{true, true}, lmc: 1}},
		{"torus 64x64, 4 links", plot{dims: []int{64, 64}, wrap: []bool{true, true}, links: []int{4, 4}}},
		{"mesh 128x128, a cable missing", plot{dims: []int{128, 128}, missing: func(at, d int) bool { return at == 8000 && d == 0 }}},
		{"mesh 64x64, 5% of the cables missing", plot{dims: []int{64, 64}, missing: func(at, d int) bool { return (at*2+d)%20 == 13 }}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			g := grow(b, bm.plot)
			b.ReportAllocs()
			for b.Loop() {
				short.Must(routeXY(b.Context(), g, lft.Options{}))(b)
			}
		})
	}
}
