package subnet

import (
	"io"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
)

// BenchmarkDiscover runs our sweep and the real ibnetdiscover on one ibsim, one
// after the other. ibnetdiscover has besides to start and to print.
func BenchmarkDiscover(b *testing.B) {
	for _, size := range []struct {
		name string
		make func() (*fabric.Fabric, error)
	}{
		{"mesh16x16", func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: []int{16, 16}, Hosts: 1}) }},
		{"fattree24", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 24, Levels: 2}) }},
	} {
		b.Run(size.name, func(b *testing.B) {
			f := short.Must(size.make())(b)
			f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(b)
			s, _ := ibsimtest.Start(b, f)
			b.Run("ibweave", func(b *testing.B) {
				b.ReportAllocs()
				requests := 0
				for b.Loop() {
					c := dial(b, s, "")
					d := short.Must(c.Discover(b.Context()))(b)
					requests = d.Requests
					short.Check(b, c.Close())
				}
				b.ReportMetric(float64(requests), "SMPs/op")
			})
			b.Run("ibnetdiscover", func(b *testing.B) {
				for b.Loop() {
					cmd := s.Command(b.Context(), "ibnetdiscover", "-t", "10000")
					cmd.Stdout = io.Discard
					short.Check(b, s.Run(b.Context(), cmd))
				}
			})
		})
	}
}
