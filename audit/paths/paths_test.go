package paths_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/audit/paths"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
)

// TestPaths follows all pairs of a torus with two lanes and of a damaged tree with two LIDs a
// port. Routes, sharers and lanes are what following every pair by itself gives.
func TestPaths(t *testing.T) {
	tree := short.Must(gen.DropLinks(fabrictest.FatTree(t, 4, 3), 3, 1))(t)
	for name, r := range map[string]*compile.Result{
		"torus": fabrictest.Compile(t, fabrictest.Grid(t, 1, true, 3, 4), "xy", compile.Options{}),
		"tree":  fabrictest.Compile(t, tree, "updn", compile.Options{LIDs: lft.LIDOptions{LMC: 1}}),
	} {
		t.Run(name, func(t *testing.T) {
			f := r.Routing.Fabric
			x := short.Must(paths.New(context.Background(), state.Of(r.Routing)))(t)
			routes := make(map[fabric.PortID]int64)
			from, to := make(map[fabric.PortID][]fabric.NodeID), make(map[fabric.PortID][]fabric.NodeID)
			next := make(map[fabric.PortID][]fabric.PortID)
			var all []paths.Path
			for _, src := range f.CAPorts() {
				for _, dst := range f.CAPorts() {
					if src == dst {
						continue
					}
					for lid := range f.LIDs(dst) {
						p := x.Find(src, lid)
						if p.Lost != "" {
							t.Fatalf("%v to %d: %s", p.Source, lid, p.Lost)
						}
						all = append(all, p)
						channels, _ := r.Routing.Tables.Path(f, src, lid, nil)
						for i, c := range channels {
							if i+1 < len(channels) {
								next[c] = append(next[c], channels[i+1])
							}
							routes[c]++
							from[c] = append(from[c], f.Owner(src))
							to[c] = append(to[c], f.Owner(dst))
						}
						checkLanes(t, r, &p, src, lid, channels)
					}
				}
			}
			var busiest int64
			var channels []fabric.PortID
			for i := range all {
				if all[i].Busiest >= 0 {
					channels = append(channels, all[i].Channel)
				}
			}
			shares := paths.Sharers(f, r.Routing.Tables, channels)
			for i := range all {
				p := &all[i]
				for k, h := range p.Hops {
					n, _ := f.NodeByGUID(h.From.Node)
					c := f.Port(n, h.From.Port)
					if h.Routes != routes[c] {
						t.Fatalf("%s: %d routes, followed %d", h.From, h.Routes, routes[c])
					}
					if k != p.Busiest {
						continue
					}
					busiest = max(busiest, h.Routes)
					got := shares[p.Channel]
					want := &paths.Sharing{Sources: distinct(from[c]), Destinations: distinct(to[c]), Next: distinct(next[c])}
					if d := gocmp.Diff(want, got); d != "" {
						t.Fatalf("%s is shared (-followed +found): %s", h.From, d)
					}
				}
			}
			if busiest == 0 || busiest != r.Verify.Balance.MaxRoutes {
				t.Errorf("busiest cable of all paths has %d routes, the checker says %d", busiest, r.Verify.Balance.MaxRoutes)
			}
		})
	}
}

// checkLanes follows one packet of each SL of a path.
func checkLanes(t *testing.T, r *compile.Result, p *paths.Path, src fabric.PortID, lid fabric.LID, channels []fabric.PortID) {
	t.Helper()
	seen := 0
	for _, l := range p.Lanes {
		for _, sl := range l.SLs {
			seen++
			for i, c := range channels {
				want := fabric.VL(0)
				if r.Routing.SL2VL != nil {
					in := fabric.PortNum(0)
					if i > 0 {
						in = r.Routing.Fabric.Num(r.Routing.Fabric.Peer(channels[i-1]))
					}
					want = r.Routing.SL2VL.At(in, c)[sl]
				}
				if l.VLs[i] != int(want) {
					t.Fatalf("LID %d, SL %d, hop %d: VL %d, want %d", lid, sl, i, l.VLs[i], want)
				}
			}
		}
	}
	want := 16
	if r.Routing.PathSLs != nil {
		want = 1
		if s := r.Routing.Fabric.PeerSwitch(src); p.Lanes[0].SLs[0] != int(r.Routing.PathSLs.SL(src, s, lid)) {
			t.Fatalf("LID %d: SL %d", lid, p.Lanes[0].SLs[0])
		}
	}
	short.MustEqual(t, seen, want, "LID", lid, "SLs")
}

func distinct[T cmp.Ordered](list []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
