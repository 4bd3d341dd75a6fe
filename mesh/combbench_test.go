package mesh

import (
	"math/rand/v2"
	"strconv"
	"testing"

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
			f, err := Generate(Spec{Dims: size.dims, Hosts: 1})
			if err != nil {
				b.Fatal(err)
			}
			if f, err = lft.AssignLIDs(f, lft.LIDOptions{}); err != nil {
				b.Fatal(err)
			}
			r, err := XY{}.Route(b.Context(), f, lft.Options{})
			if err != nil {
				b.Fatal(err)
			}
			rnd := rand.New(rand.NewPCG(1, 1))
			groups := make([]mft.Group, 10000)
			for i := range groups {
				members := pick(rnd, f.CAPorts(), 64)
				groups[i] = mft.Group{Name: "group " + strconv.Itoa(i), Receivers: members, Senders: members}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (Comb{}).Build(b.Context(), r, groups, mft.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
