package lft_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/traffic"
)

// TestLoads counts what patterns of traffic put on each channel, in tables of which entries are lost
// or changed, and follows each packet by itself.
func TestLoads(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{LMC: 1}))(t)
	r := short.Must(lft.Minhop{}.Route(t.Context(), f, lft.Options{}))(t)
	random := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		row := r.Tables.Row(fabric.NodeID(random.IntN(f.NumSwitches())))
		row[random.IntN(len(row))] = fabric.PortNum(random.IntN(8))
	}
	ends := slices.Clone(f.CAPorts())
	random.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
	ends = ends[:30]
	for _, p := range traffic.Patterns {
		loads, lost, err := lft.DemandLoads(t.Context(), f, r.Tables, ends, p.On(len(ends)))
		if err != nil {
			t.Fatal(err)
		}
		want, wantLost := make([]int64, f.NumPorts()), int64(0)
		for i, dst := range ends {
			for from, amount := range p.Senders(len(ends), i) {
				for lid := range f.LIDs(dst) {
					channels, err := r.Tables.Path(f, ends[from], lid, nil)
					if err != nil {
						wantLost += amount
						continue
					}
					for _, c := range channels {
						want[c] += amount
					}
				}
			}
		}
		if !slices.Equal(loads, want) || lost != wantLost || lost == 0 {
			t.Errorf("%s: %d lost, want %d; loads %v, want %v", p.Name, lost, wantLost, loads, want)
		}
		if p.Name != traffic.AllToAll.Name {
			continue
		}
		if loads, err = lft.LoadsAmong(t.Context(), f, r.Tables, ends); err != nil || !slices.Equal(loads, want) {
			t.Errorf("%v, loads among ports %v, want %v", err, loads, want)
		}
	}
	if loads, lost, err := lft.DemandLoads(t.Context(), f, r.Tables, nil, traffic.Ring.On(0)); err != nil || lost != 0 || slices.Max(loads) != 0 {
		t.Errorf("of no ports: %v, %d lost, %v", loads, lost, err)
	}
}
