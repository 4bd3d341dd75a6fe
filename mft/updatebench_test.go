package mft_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/updown"
)

// BenchmarkUpdate is 10,000 groups of 64 on a fat tree of 3,456 hosts: in a
// tenth of them one host joins or leaves, and a hundredth gets another tree.
func BenchmarkUpdate(b *testing.B) {
	r := routed(b, updown.Engine{})(gen.FatTree(gen.FatTreeSpec{Radix: 24, Levels: 3}))
	groups := randomGroups(r.Fabric, 10_000, 64, 1)
	old := mustBuild(b, mft.UpdnTree{}, r, groups, mft.Options{})
	other := mustBuild(b, mft.UpdnTree{}, r, groups, mft.Options{Balance: true})

	rnd := rand.New(rand.NewPCG(2, 0))
	hosts := r.Fabric.CAPorts()
	after := slices.Clone(groups)
	for i := range after {
		if i%10 != 0 {
			continue
		}
		list := slices.Clone(after[i].Receivers)
		if i%20 == 0 {
			k := rnd.IntN(len(list))
			list = slices.Delete(list, k, k+1)
		} else {
			for len(list) == 64 {
				if p := hosts[rnd.IntN(len(hosts))]; !slices.Contains(list, p) {
					list = append(list, p)
				}
			}
			slices.Sort(list)
		}
		after[i].Receivers, after[i].Senders = list, list
	}
	new := mustBuild(b, mft.UpdnTree{}, r, after, mft.Options{})
	tables := mft.NewTables(r.Fabric)
	for i, m := range new.Tables.MLIDs() {
		ports := new.Tables.Ports(m)
		if i%100 == 1 {
			ports = other.Tables.Ports(m)
		}
		tables.Add(m, ports)
	}
	new.Tables = tables
	b.Run("plan", func(b *testing.B) {
		b.ReportAllocs()
		var u *mft.Update
		for b.Loop() {
			var err error
			if u, err = mft.PlanUpdate(b.Context(), old, new); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(u.Stages)), "stages")
		b.ReportMetric(float64(writes(u)), "writes")
		b.ReportMetric(float64(len(u.Interrupted)), "interrupted")
	})
	u := mustPlan(b, old, new)
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if err := mft.CheckUpdate(b.Context(), old, new, u); err != nil {
				b.Fatal(err)
			}
		}
	})
}
