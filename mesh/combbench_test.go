package mesh

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// BenchmarkComb makes trees for 10,000 groups of 64 hosts, all of which send.
func BenchmarkComb(b *testing.B) {
	for _, size := range []struct {
		name string
		dims []int
	}{{"48x48", []int{48, 48}}, {"13x13x13", []int{13, 13, 13}}} {
		b.Run(size.name, func(b *testing.B) {
			f := short.Must(Generate(Spec{Dims: size.dims, Hosts: 1}))(b)
			f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(b)
			r := short.Must(XY{}.Route(b.Context(), f, lft.Options{}))(b)
			rnd := rand.New(rand.NewPCG(1, 1))
			groups := make([]mft.Group, 10000)
			for i := range groups {
				members := pick(rnd, f.CAPorts(), 64)
				groups[i] = mft.Group{Name: "group " + strconv.Itoa(i), Receivers: members, Senders: members}
			}
			b.ReportAllocs()
			for b.Loop() {
				short.Must((Comb{}).Build(b.Context(), r, groups, mft.Options{}))(b)
			}
		})
	}
}
