package verify_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// reportCPU reports the CPU time of each operation, which other programs disturb less than time.
func reportCPU(b *testing.B) func() {
	cpu := func() float64 {
		var u syscall.Rusage
		short.Check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return float64(u.Utime.Nano() + u.Stime.Nano())
	}
	start := cpu()
	return func() { b.ReportMetric((cpu()-start)/1e6/float64(b.N), "cpu-ms/op") }
}

// BenchmarkCheck puts the checker of all choices beside that of static tables.
func BenchmarkAdaptiveCheck(b *testing.B) {
	for _, radix := range []int{24, 36, 56} {
		b.Run(fmt.Sprintf("radix=%d", radix), func(b *testing.B) {
			f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: 3}))(b)
			f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(b)
			routing := short.Must(updown.Engine{}.Route(b.Context(), f, lft.Options{}))(b)
			tables := short.Must(adaptive.Widen(b.Context(), routing))(b)
			b.Run("static", func(b *testing.B) {
				defer reportCPU(b)()
				for b.Loop() {
					if r, err := verify.Check(b.Context(), &state.State{Fabric: f, Tables: routing.Tables}, verify.Options{}); err != nil || r.Verdict != verify.VerdictClean {
						b.Fatal(err)
					}
				}
			})
			b.Run("adaptive", func(b *testing.B) {
				defer reportCPU(b)()
				for b.Loop() {
					if r, err := verify.CheckAdaptive(b.Context(), withTables(f, tables, state.State{}), verify.Options{}); err != nil || len(r.Findings) > 0 || r.Certificate() == nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
