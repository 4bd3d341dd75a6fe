package mft_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/updown"
)

// routed gives a fabric dense LIDs and routes it.
func routed(t testing.TB, e lft.Engine) func(*fabric.Fabric, error) *lft.Routing {
	return func(f *fabric.Fabric, err error) *lft.Routing {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
		return short.Must(e.Route(context.Background(), f, lft.Options{}))(t)
	}
}

// randomGroups is n groups of members hosts that all send and receive.
func randomGroups(f *fabric.Fabric, n, members int, seed uint64) []mft.Group {
	rnd := rand.New(rand.NewPCG(seed, 0))
	groups := make([]mft.Group, n)
	for i := range groups {
		ports := slices.Clone(f.CAPorts())
		rnd.Shuffle(len(ports), func(i, j int) { ports[i], ports[j] = ports[j], ports[i] })
		ports = ports[:min(members, len(ports))]
		slices.Sort(ports)
		groups[i] = mft.Group{Name: fmt.Sprintf("group %d", i), Receivers: ports, Senders: ports}
	}
	return groups
}

// BenchmarkTrees is 10,000 groups of 64 on a fat tree of 3,456 hosts.
func BenchmarkTrees(b *testing.B) {
	r := routed(b, updown.Engine{})(gen.FatTree(gen.FatTreeSpec{Radix: 24, Levels: 3}))
	groups := randomGroups(r.Fabric, 10_000, 64, 1)
	for _, bm := range []struct {
		name   string
		scheme mft.Scheme
		opt    mft.Options
	}{
		{"updn-tree", mft.UpdnTree{}, mft.Options{}},
		{"updn-tree/balance", mft.UpdnTree{}, mft.Options{Balance: true}},
		{"opensm", mft.OpenSM{}, mft.Options{}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			var p *mft.Plan
			for b.Loop() {
				p = mustBuild(b, bm.scheme, r, groups, bm.opt)
			}
			c := short.Must(mft.Measure(b.Context(), r, p))(b)
			b.ReportMetric(float64(c.Links)/float64(len(p.Trees)), "links/tree")
			b.ReportMetric(float64(c.MaxLink), "max/link")
		})
	}
	p := mustBuild(b, mft.UpdnTree{}, r, groups, mft.Options{})
	b.Run("measure", func(b *testing.B) {
		for b.Loop() {
			short.Must(mft.Measure(b.Context(), r, p))(b)
		}
	})
}

// BenchmarkMerge is 256 senders, all in one group.
func BenchmarkMerge(b *testing.B) {
	g := newGrid(b, 16, 16)
	groups := []mft.Group{{Name: "all", Receivers: g.r.Fabric.CAPorts(), Senders: g.r.Fabric.CAPorts()}}
	for _, s := range []mft.Scheme{mft.Union{}, mft.UnionRow{Class: g.rows}, mft.UnionMerge{}} {
		b.Run(s.Name(), func(b *testing.B) {
			var p *mft.Plan
			for b.Loop() {
				p = mustBuild(b, s, g.r, groups, mft.Options{})
			}
			b.ReportMetric(float64(len(p.Trees)), "MLIDs")
		})
	}
}

// BenchmarkShare is 20,000 groups of 64 for 16,382 MLIDs.
func BenchmarkShare(b *testing.B) {
	r := routed(b, updown.Engine{})(gen.FatTree(gen.FatTreeSpec{Radix: 24, Levels: 3}))
	groups := randomGroups(r.Fabric, 15_000, 64, 1)
	for i := range 5_000 {
		g := groups[i]
		g.Name += " again"
		g.Receivers = g.Receivers[:64-i%4]
		groups = append(groups, g)
	}
	b.ReportAllocs()
	for b.Loop() {
		short.Must(mft.Fit(b.Context(), r, groups, mft.Options{}, mft.UpdnTree{}))(b)
	}
}
