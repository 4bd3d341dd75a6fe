package whatif

import (
	"math"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
)

// TestOutage compares what failures lose with packets that are followed one by one.
func TestOutage(t *testing.T) {
	tree, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})
	if err != nil {
		t.Fatal(err)
	}
	irregular, err := gen.Irregular(gen.IrregularSpec{Switches: 9, Degree: 4, Hosts: 14, Seed: 6})
	if err != nil {
		t.Fatal(err)
	}
	torus, err := mesh.Generate(mesh.Spec{Dims: []int{4, 3}, Wrap: []bool{true, true}, Hosts: 1})
	if err != nil {
		t.Fatal(err)
	}
	line, err := mesh.Generate(mesh.Spec{Dims: []int{5, 1}, Hosts: 2}) // every cable is a single point of failure
	if err != nil {
		t.Fatal(err)
	}
	loss := 0
	for _, c := range []struct {
		f      *fabric.Fabric
		engine string
	}{{tree, "updn"}, {irregular, "updn"}, {torus, "xy"}, {line, "updn"}} {
		base := routed(t, c.f, c.engine, compile.Options{})
		if err := base.AddChoices(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{Links, Switches} {
			opt := Options{Kind: kind, Depth: 1, Sample: short.Of(0, 8)}
			r := run(t, base, compile.Options{}, opt)
			list, _ := listFailures(base.Routing.Fabric, &opt)
			for i := range r.Cases {
				for k := range list {
					if list[k].number != r.Cases[i].Number {
						continue
					}
					want, got := followOutage(base, &list[k]), *r.Cases[i].Outage
					if math.Abs(want.Loss-got.Loss) > 1e-6 {
						t.Errorf("%s, %s: loss %g, want %g", c.engine, list[k].parts, got.Loss, want.Loss)
					}
					if want.Loss = got.Loss; want != got {
						t.Errorf("%s, %s: %+v, want %+v", c.engine, list[k].parts, got, want)
					}
					if got.Loss > 0 && got.CanLose > got.Cut && got.Last > 0 {
						loss++
					}
				}
			}
		}
	}
	if loss == 0 {
		t.Error("no failure loses part of the packets of a pair and a last choice")
	}
}

// followOutage is what find does, slowly.
func followOutage(base *compile.Result, x *failure) (o Outage) {
	f, tables := base.Routing.Fabric, base.Adaptive.Tables
	g := f.Without(x.cut...)
	live := func(s fabric.NodeID, lid fabric.LID) (list []fabric.NodeID, all int) {
		set := tables.Choices(0, s, lid)
		links, to := g.SwitchLinks(s)
		for i, p := range links {
			if set.Has(g.Num(p)) {
				list = append(list, to[i])
			}
		}
		return list, set.Len()
	}
	var lost func(s fabric.NodeID, lid fabric.LID, share float64) float64
	lost = func(s fabric.NodeID, lid fabric.LID, share float64) (sum float64) {
		if s == g.Owner(g.Attachment(g.LIDPort(lid))) {
			return 0
		}
		list, _ := live(s, lid)
		if len(list) == 0 {
			return share
		}
		for _, next := range list {
			sum += lost(next, lid, share/float64(len(list)))
		}
		return sum
	}
	for _, source := range g.CAPorts() {
		from := g.Owner(g.Attachment(source))
		for _, dest := range g.CAPorts() {
			if source == dest || g.Distances().To(g.Owner(g.Attachment(dest)))[from] == fabric.Unreachable {
				continue
			}
			for lid := range g.LIDs(dest) {
				if _, err := base.Routing.Tables.Path(g, source, lid, nil); err != nil {
					o.Static++
				}
				share := lost(from, lid, 1)
				o.Loss += share
				if share > 0 {
					o.CanLose++
				}
				if share > 1-1e-9 {
					o.Cut++
				}
			}
		}
	}
	for s := range fabric.NodeID(g.NumSwitches()) {
		if len(g.Neighbors(s)) == 0 {
			continue
		}
		for lid := range tables.PLFTs[0].Row(s) {
			if _, group := tables.PLFTs[0].At(s, fabric.LID(lid)); group < 0 {
				continue
			}
			list, all := live(s, fabric.LID(lid))
			if len(list) < all {
				o.Shrunk++
			}
			if len(list) < all && len(list) < 2 {
				o.Last++
			}
		}
	}
	return o
}
