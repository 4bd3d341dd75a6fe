package sim

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// region is a multicast on a banyan network to the processors from first to last.
type region struct{ from, first, last int }

// onBanyan is a network of n stages with destination tags, and the masks of a
// group for each multicast.
func onBanyan(t *testing.T, n int, list []region) (*banyan.Network, *lft.Routing, *mft.Plan) {
	t.Helper()
	f := short.Must(banyan.Banyan(n, false))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	r := short.Must(banyan.Engine{}.Route(t.Context(), f, lft.Options{}))(t)
	w := short.Must(banyan.Detect(f))(t)
	var groups []mft.Group
	for _, x := range list {
		g := mft.Group{Name: fmt.Sprint(x), Senders: w.Outputs[x.from : x.from+1]}
		for a := x.first; a <= x.last; a++ {
			g.Receivers = append(g.Receivers, w.Inputs[a])
		}
		slices.Sort(g.Receivers)
		groups = append(groups, g)
	}
	p := short.Must(banyan.RegionTree{}.Build(t.Context(), r, groups, mft.Options{}))(t)
	return w, r, p
}

// unsafeCopying are the ways to copy for which verify has an error.
func unsafeCopying(t *testing.T, r *lft.Routing, p *mft.Plan) (list []Copying) {
	t.Helper()
	for sims, c := range map[Copying]verify.Copying{Independent: verify.Independent, Wormhole: verify.Wormhole, LockStep: verify.LockStep} {
		v, err := verify.Check(t.Context(), &state.State{Fabric: r.Fabric, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs, Multicast: &mft.Plan{Tables: p.Tables, Trees: p.Trees}}, verify.Options{Copying: c})
		if err != nil {
			t.Fatal(err)
		}
		if v.Verdict == verify.VerdictErrors {
			list = append(list, sims)
		}
	}
	slices.Sort(list)
	return list
}

// runBanyan sends packets of 6 flits, all at once.
func runBanyan(t *testing.T, w *banyan.Network, p *mft.Plan, cfg Config) (*log, error) {
	t.Helper()
	l := &log{}
	s := mustNew(t, Network{State: state.State{Fabric: w.Fabric, Multicast: p}}, cfg, l)
	for _, tree := range p.Trees {
		mustSend(t, s, Message{Src: tree.Senders[0], DLID: tree.MLID, Bytes: 6})
	}
	return l, s.Run(t.Context(), Forever)
}

// TestBanyanWorms has figure 4 of the paper on recursive multicast, worms from 1 to
// 5..8 and from 15 to 7..12, and its remedy, the upper input first. The two of them
// arrive. With two more worms they deadlock all the same (E-N7), unless buffers have
// room for whole packets. verify has it of worms that may wait for each other in
// both cases, and in that of three worms in a network of four, and that InfiniBand's
// copying is safe. RunWorms of papers/multistage has the elements of the paper, which begin to
// send by one output before they have the other; there three worms are enough
// (G-N7), and two if elements differ in who goes first.
func TestBanyanWorms(t *testing.T) {
	for _, tt := range []struct {
		stages int
		worms  []region
		dead   bool
	}{
		{4, []region{{1, 5, 8}, {15, 7, 12}}, false},
		{4, []region{{1, 5, 8}, {15, 7, 12}, {0, 8, 14}, {8, 7, 13}}, true},
		{2, []region{{1, 1, 2}, {2, 1, 2}, {0, 0, 0}}, false},
	} {
		w, r, p := onBanyan(t, tt.stages, tt.worms)
		if got := unsafeCopying(t, r, p); !slices.Contains(got, Wormhole) || slices.Contains(got, Independent) {
			t.Errorf("%v: verify has unsafe %v", tt.worms, got)
		}
		for _, run := range []struct {
			copying Copying
			buffer  int
			dead    bool
		}{
			{GreedyWormhole, 1, tt.dead}, {GreedyWormhole, 6, false}, {Independent, 6, false},
		} {
			cfg := cycles(run.copying, run.buffer)
			cfg.Arbitration = LowestPort
			l, err := runBanyan(t, w, p, cfg)
			if _, dead := errors.AsType[*DeadlockError](err); dead != run.dead {
				t.Errorf("%v, %s, buffers of %d: %v", tt.worms, run.copying, run.buffer, err)
			}
			want := 0
			for _, x := range tt.worms {
				want += x.last - x.first + 1
			}
			if !run.dead && (err != nil || len(l.deliveries) != want) {
				t.Errorf("%v, %s, buffers of %d: %v, %d deliveries of %d", tt.worms, run.copying, run.buffer, err, len(l.deliveries), want)
			}
		}
	}
}
