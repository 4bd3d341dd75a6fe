package diff_test

import (
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
)

// TestChoices compares random choices, and counts again by each entry.
func TestChoices(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		a, b := someChoices(f, r), someChoices(f, r)
		if seed == 0 {
			b = a
		}
		got := short.Must(diff.Compare(t.Context(),
			&state.State{Name: "a", Fabric: f, Adaptive: a}, &state.State{Name: "b", Fabric: f, Adaptive: b}))(t)
		var changed, wider, narrower, listed int64
		for i := range f.NumSwitches() * 2 {
			s, plft := fabric.NodeID(i/2), i%2
			for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
				x, y := a.Choices(plft, s, lid), b.Choices(plft, s, lid)
				stateX, _ := a.PLFTs[plft].At(s, lid)
				stateY, _ := b.PLFTs[plft].At(s, lid)
				none := x.Len() < 2 && y.Len() < 2 // a choice
				if none && plft == 0 || x == y && (none || stateX == stateY) {
					continue
				}
				changed++
				more, less := 0, 0
				for p := range 256 {
					switch has, had := y.Has(fabric.PortNum(p)), x.Has(fabric.PortNum(p)); {
					case has && !had:
						more++
					case had && !has:
						less++
					}
				}
				if more > 0 && less == 0 {
					wider++
				}
				if less > 0 && more == 0 {
					narrower++
				}
			}
		}
		for _, x := range got.Adaptive.Switches {
			listed += x.Changed
		}
		d := got.Adaptive
		if d.Changed != changed || d.Wider != wider || d.Narrower != narrower || listed != changed || got.Equal != (changed == 0) {
			t.Errorf("seed %d: %d changed, %d listed, %d wider, %d narrower, equal %v; want %d, %d, %d", seed, d.Changed, listed, d.Wider, d.Narrower, got.Equal, changed, wider, narrower)
		}
	}
}

// someChoices has two groups in each switch, and in two private LFTs entries of all states, of
// which some have no port.
func someChoices(f *fabric.Fabric, r *rand.Rand) *adaptive.Tables {
	t := &adaptive.Tables{}
	for range 2 {
		t.PLFTs = append(t.PLFTs, adaptive.NewPLFT(lft.NewTables(f.NumSwitches(), f.MaxLID())))
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		groups := make([]adaptive.Group, 2)
		for i := range groups {
			groups[i] = adaptive.Group{Number: i, Subgroups: make([]adaptive.Subgroup, 1)}
			for range r.IntN(4) {
				groups[i].Subgroups[0].Ports.Add(fabric.PortNum(1 + r.IntN(4)))
			}
		}
		t.Groups = append(t.Groups, groups)
		for _, p := range t.PLFTs {
			for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
				if r.IntN(5) > 0 {
					p.Ports.Row(s)[lid] = fabric.PortNum(1 + r.IntN(4))
				}
				p.Set(s, lid, adaptive.State(r.IntN(3)), r.IntN(2))
			}
		}
	}
	return t
}
