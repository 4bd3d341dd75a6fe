package updown_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
)

// TestRecoverOrder wants an order by which all paths of updn's tables go up and then down, whatever
// the order that it was made with, and that order itself where it is the one to be like.
func TestRecoverOrder(t *testing.T) {
	for seed := range uint64(20) {
		f := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 6 + int(seed), Degree: 4, Hosts: 30, Seed: seed}))(t)
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
		rnd := rand.New(rand.NewPCG(seed, 1))
		roots := []fabric.NodeID{fabric.NodeID(rnd.IntN(f.NumSwitches()))}
		r := short.Must(updown.Engine{}.Route(t.Context(), f, lft.Options{Roots: roots}))(t)
		made := short.Must(updown.OrderOf(r))(t)
		if o := updown.RecoverOrder(f, r.Tables, made); !slices.Equal(o.Rank, r.Order) {
			t.Errorf("seed %d: the order is %v, want that of the tables, %v", seed, o.Rank, r.Order)
		}
		other := short.Must(updown.ChooseOrder(t.Context(), f, nil))(t)
		rank := updown.RecoverOrder(f, r.Tables, other).Rank
		for lid, port := range f.LIDPorts() {
			if port == fabric.NoPort {
				continue
			}
			for s := range fabric.NodeID(f.NumSwitches()) {
				down := false
				for s != f.Owner(f.Attachment(port)) {
					next := f.PeerSwitch(f.Port(s, r.Tables.Row(s)[lid]))
					if rank[next] < rank[s] && down {
						t.Fatalf("seed %d: LID %d goes down and up by order %v", seed, lid, rank)
					}
					down = rank[next] > rank[s]
					s = next
				}
			}
		}
	}
}
