package updown

import (
	"context"
	"fmt"
	"testing"

	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// BenchmarkRoute routes 3-level fat trees: radix 24 has 720 switches and 3,456
// hosts, radix 36 1,620 and 11,664.
func BenchmarkRoute(b *testing.B) {
	for _, radix := range []int{16, 24, 36} {
		f, err := gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: 3})
		f = routable(b, f, err)
		for _, e := range []lft.Engine{Engine{}, lft.Minhop{}} {
			b.Run(fmt.Sprintf("%s/radix=%d", e.Name(), radix), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					short.Must(e.Route(context.Background(), f, lft.Options{}))(b)
				}
			})
		}
		b.Run(fmt.Sprintf("order/radix=%d", radix), func(b *testing.B) {
			for b.Loop() {
				short.Must(ChooseOrder(context.Background(), f, nil))(b)
			}
		})
	}
}
