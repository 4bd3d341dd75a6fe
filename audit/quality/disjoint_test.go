package quality_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

// disjointByWalking is Disjoint as its comments say: it tries all sets of LIDs.
func disjointByWalking(f *fabric.Fabric, tables *lft.Tables) *quality.Disjoint {
	d := &quality.Disjoint{Cables: quality.Spread{Min: math.MaxInt}, Switches: quality.Spread{Min: math.MaxInt}, Possible: quality.Spread{Min: math.MaxInt}}
	for i, p := range f.CAPorts() {
		to := f.CASwitches()[i]
		lids := 1 << f.LMC(p)
		d.LIDs = max(d.LIDs, lids)
		for s := range fabric.NodeID(f.NumSwitches()) {
			if s == to || len(f.HostsOn(s)) == 0 {
				continue
			}
			d.Pairs++
			var meets [2][]uint // by LID: those that it meets
			var channels, switches []map[int]bool
			there := uint(0)
			for k := range lids {
				channels, switches = append(channels, map[int]bool{}), append(switches, map[int]bool{})
				path, err := tables.Path(f, f.HostsOn(s)[0], f.LID(p)+fabric.LID(k), nil)
				if err != nil {
					continue
				}
				there |= 1 << k
				for _, c := range path[1 : len(path)-1] {
					channels[k][int(c)] = true
					switches[k][int(f.Owner(f.Peer(c)))] = f.Owner(f.Peer(c)) != to
				}
			}
			for k := range lids {
				var m [2]uint
				for j := range lids {
					common := false
					for c := range channels[k] {
						common = common || channels[j][c]
					}
					if k != j && common {
						m[0] |= 1 << j
					}
					for c, is := range switches[k] {
						common = common || is && switches[j][c]
					}
					if k != j && common {
						m[1] |= 1 << j
					}
				}
				meets[0], meets[1] = append(meets[0], m[0]), append(meets[1], m[1])
			}
			for i, x := range []*quality.Spread{&d.Cables, &d.Switches} {
				best := 0
				for set := range uint(1) << lids {
					good := set&^there == 0
					for k := range lids {
						good = good && (set>>k&1 == 0 || set&meets[i][k] == 0)
					}
					if good {
						best = max(best, bits.OnesCount(set))
					}
				}
				x.Min, x.Mean = min(x.Min, best), x.Mean+float64(best)
			}
			n := min(lids, len(f.Neighbors(s)), len(f.Neighbors(to)))
			d.Possible.Min, d.Possible.Mean = min(d.Possible.Min, n), d.Possible.Mean+float64(n)
		}
	}
	for _, x := range []*quality.Spread{&d.Cables, &d.Switches, &d.Possible} {
		x.Mean /= float64(d.Pairs)
	}
	return d
}

func TestDisjoint(t *testing.T) {
	ok := must(t)
	parted := ok(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))
	for name, c := range map[string]struct {
		f      *fabric.Fabric
		engine string
		lmc    int
	}{
		"tree":      {ok(gen.DropLinks(ok(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2})), 3, 1)), "updn", 2},
		"irregular": {ok(gen.Irregular(gen.IrregularSpec{Switches: 10, Degree: 5, Hosts: 12, Seed: 5})), "minhop", 3},
		"sparse":    {ok(gen.Irregular(gen.IrregularSpec{Switches: 10, Degree: 3, Hosts: 12, Seed: 6})), "minhop", 3},
		"mesh":      {ok(mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Hosts: 1})), "updn", 2},
		"small":     {parted, "fattree", 1},
	} {
		r := compiled(t, c.f, c.engine, c.lmc)
		f, tables := r.Routing.Fabric, r.Routing.Tables
		rng := rand.New(rand.NewPCG(1, 1))
		for _, changes := range []int{0, 30, 300} {
			for range changes {
				s := fabric.NodeID(rng.IntN(f.NumSwitches()))
				tables.Row(s)[1+rng.IntN(int(f.MaxLID()))] = fabric.PortNum(1 + rng.IntN(int(f.Node(s).NumPorts)))
			}
			want := disjointByWalking(f, tables)
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
			for workers := 1; workers < 4; workers += 2 {
				cpus := runtime.GOMAXPROCS(workers)
				got, err := quality.Disjointness(t.Context(), f, tables)
				runtime.GOMAXPROCS(cpus)
				if d := cmp.Diff(want, got, near); d != "" || err != nil {
					t.Errorf("%s, %d changes, %d workers: %v (-want +got):\n%s", name, changes, workers, err, d)
				}
			}
		}
	}
	if d, err := quality.Disjointness(t.Context(), parted, lft.NewTables(parted.NumSwitches(), 1)); d != nil || err != nil {
		t.Errorf("no port has several LIDs: %+v, %v", d, err)
	}
}

// TestManyLIDs: 128 LIDs of a port between two switches with 40 cables, by turns, or all by
// the first.
func TestManyLIDs(t *testing.T) {
	p := short.Must(gen.NewPlan(2, 2))(t)
	for s := range 2 {
		p.Switch(41, fmt.Sprint("switch ", s))
	}
	for s := range 2 {
		p.Cable(p.CA(1, fmt.Sprint("host ", s)), 1, s, 41)
	}
	for c := range 40 {
		p.Cable(0, c+1, 1, c+1)
	}
	r := compiled(t, short.Must(p.Fabric())(t), "updn", 7).Routing
	for _, ports := range []int{40, 1} {
		for s := range fabric.NodeID(2) {
			to := r.Fabric.HostsOn(1 - s)[0]
			for k := range 128 {
				r.Tables.Row(s)[r.Fabric.LID(to)+fabric.LID(k)] = fabric.PortNum(1 + k%ports)
			}
		}
		d, err := quality.Disjointness(t.Context(), r.Fabric, r.Tables)
		if err != nil || d.LIDs != 128 || d.Pairs != 2 || d.Cables != (quality.Spread{Min: ports, Mean: float64(ports)}) ||
			d.Switches != d.Cables || d.Possible.Min != 40 {
			t.Errorf("%d ports: %+v, %v", ports, d, err)
		}
	}
}
