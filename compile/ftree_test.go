package compile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
)

// TestAgainstOpenSMsFtree routes fat trees with OpenSM's ftree: the order of the hosts must
// be the same, byte by byte, and no shift of it may have more flows on a link than with
// OpenSM's tables.
func TestAgainstOpenSMsFtree(t *testing.T) {
	tree := func(spec gen.FatTreeSpec) *fabric.Fabric {
		return short.Must(gen.FatTree(spec))(t)
	}
	large := tree(gen.FatTreeSpec{Radix: 12, Levels: 3})
	without := func(cables int) *fabric.Fabric {
		return short.Must(gen.DropLinks(large, cables, 1))(t)
	}
	whole := tree(gen.FatTreeSpec{Radix: 6, Levels: 3})
	for _, tc := range []struct {
		name string
		f    *fabric.Fabric
		want int // flows on the busiest link of all shifts, in our tables
		// givesUp says that OpenSM's ftree finds no fat tree, and minhop routes instead.
		givesUp bool
	}{
		{"2 levels, radix 8", tree(gen.FatTreeSpec{Radix: 8, Levels: 2}), 1, false},
		{"2 levels, radix 12, 8 hosts to 4 ways up", tree(gen.FatTreeSpec{Radix: 12, Levels: 2, HostsPerLeaf: 8}), 2, false},
		{"3 levels, radix 6", whole, 1, false},
		{"3 levels, radix 8", tree(gen.FatTreeSpec{Radix: 8, Levels: 3}), 1, false},
		{"3 levels, radix 6, hosts missing", whole.Without(whole.CAPorts()[5], whole.CAPorts()[23], whole.CAPorts()[22]), 1, false},
		{"3 levels, radix 12", large, 1, false},
		{"3 levels, radix 12, 1 cable missing", without(1), 2, true},
		{"3 levels, radix 12, 40 cables missing", without(40), 5, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := short.Must(lft.AssignLIDs(tc.f, lft.LIDOptions{}))(t)
			r := short.Must(compile.Run(t.Context(), f, engine(t, "fattree"), compile.Options{}))(t)
			dir := filepath.Join(t.TempDir(), "tables")
			short.Must(outdir.Write(t.Context(), dir, r, outdir.Options{InstallDir: dir}))(t)
			ours := short.Must(os.ReadFile(filepath.Join(dir, outdir.CAOrderName)))(t)
			tables, run := ibsimtest.Route(t, f, "ftree")
			theirs, err := os.ReadFile(filepath.Join(run.Dir, outdir.CAOrderName))
			if (err != nil) != tc.givesUp {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(theirs), string(ours)); d != "" && !tc.givesUp {
				t.Errorf("order of hosts, OpenSM - and ours +:\n%s", d)
			}
			got, peer := shifts(t, r.Routing, r.Routing.Tables), shifts(t, r.Routing, tables)
			if got != tc.want || got > peer {
				t.Errorf("%d flows on the busiest link of all shifts, want %d; OpenSM %d", got, tc.want, peer)
			}
			updn := shifts(t, r.Routing, route(t, engine(t, "updn"), f).Tables)
			minhop := shifts(t, r.Routing, route(t, engine(t, "minhop"), f).Tables)
			t.Logf("flows on the busiest link of all shifts: %d, updn %d, minhop %d, OpenSM %d", got, updn, minhop, peer)
		})
	}
}

// shifts is the most flows on a channel between switches of all shift permutations of
// r.CAOrder.
func shifts(t *testing.T, r *lft.Routing, tables *lft.Tables) int {
	t.Helper()
	f, worst := r.Fabric, 0
	flows := make([]int, f.NumPorts())
	for shift := 1; shift < len(r.CAOrder); shift++ {
		clear(flows)
		for i, src := range r.CAOrder {
			dst := r.CAOrder[(i+shift)%len(r.CAOrder)]
			if src == fabric.NoPort || dst == fabric.NoPort {
				continue
			}
			for at, hops := f.Owner(f.Peer(src)), 0; ; hops++ {
				out, peer := tables.Step(f, at, f.LID(dst))
				if peer == dst {
					break
				}
				if peer == fabric.NoPort || hops > 64 {
					t.Fatalf("LID %d is not delivered", f.LID(dst))
				}
				flows[out]++
				worst = max(worst, flows[out])
				at = f.Owner(peer)
			}
		}
	}
	return worst
}
