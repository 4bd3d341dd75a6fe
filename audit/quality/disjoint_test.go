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

// disjointByWalking is Disjoint as its comments say: it tries all sets of LIDs and all cuts.
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
			n := min(lids, leastCut(f, s, to))
			d.Possible.Min, d.Possible.Mean = min(d.Possible.Min, n), d.Possible.Mean+float64(n)
		}
	}
	for _, x := range []*quality.Spread{&d.Cables, &d.Switches, &d.Possible} {
		x.Mean /= float64(d.Pairs)
	}
	return d
}

// leastCut is the fewest cables between two parts of the switches, one with s, one with t.
func leastCut(f *fabric.Fabric, s, t fabric.NodeID) int {
	best := math.MaxInt
	for side := range uint(1) << f.NumSwitches() {
		if side>>s&1 == 0 || side>>t&1 != 0 {
			continue
		}
		n := 0
		for a := range fabric.NodeID(f.NumSwitches()) {
			for _, b := range f.Neighbors(a) {
				if side>>a&1 != 0 && side>>b&1 == 0 {
					n++
				}
			}
		}
		best = min(best, n)
	}
	return best
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
	p, err := gen.NewPlan(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	for s := range 2 {
		p.Switch(41, fmt.Sprint("switch ", s))
	}
	for s := range 2 {
		p.Cable(p.CA(1, fmt.Sprint("host ", s)), 1, s, 41)
	}
	for c := range 40 {
		p.Cable(0, c+1, 1, c+1)
	}
	r := compiled(t, must(t)(p.Fabric()), "updn", 7).Routing
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

// TestPossible compares what cables allow with all cuts, where a path has to give way to others.
func TestPossible(t *testing.T) {
	for seed := range uint64(short.Of(20, 8)) {
		r := compiled(t, must(t)(gen.Irregular(gen.IrregularSpec{Switches: 10, Degree: 3 + int(seed%2), Hosts: 9, Seed: seed})), "minhop", 3).Routing
		sum, n := 0, 0
		for a := range fabric.NodeID(10) {
			for b := range fabric.NodeID(10) {
				if hosts := len(r.Fabric.HostsOn(b)); a != b && len(r.Fabric.HostsOn(a)) > 0 {
					sum += hosts * min(8, leastCut(r.Fabric, a, b))
					n += hosts
				}
			}
		}
		d, err := quality.Disjointness(t.Context(), r.Fabric, r.Tables)
		if err != nil || math.Abs(d.Possible.Mean-float64(sum)/float64(n)) > 1e-9 {
			t.Errorf("seed %d: %+v, %v; all cuts have %d of %d", seed, d, err, sum, n)
		}
	}
}

// TestPathsGiveWay: the shortest path s-a-d-t has to be taken back for s-a-x-y-t and
// s-b-w-d-t, and then the cable d-a serves one path more, but not two. s-a, d-a and d-t
// part s from t.
func TestPathsGiveWay(t *testing.T) {
	cables := []string{
		"sa", "ad", "dt", "ax", "xy", "yt", "sb", "bw", "wd", // as above
		"se", "ev", "vd", "az", "zi", "it", // e-v-d-a-z-i
		"sg", "gh", "hd", "aq", "qj", "jt", // g-h-d, and from a another way on
	}
	number := map[byte]int{}
	for _, c := range cables {
		for i := range c {
			if _, is := number[c[i]]; !is {
				number[c[i]] = len(number)
			}
		}
	}
	p, err := gen.NewPlan(len(number), 2)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(number) {
		p.Switch(8, fmt.Sprint("switch ", n))
	}
	next := make([]int, len(number))
	port := func(n int) int { next[n]++; return next[n] }
	for _, end := range []byte("st") {
		p.Cable(p.CA(1, "host "+string(end)), 1, number[end], port(number[end]))
	}
	for _, c := range cables {
		a, b := number[c[0]], number[c[1]]
		p.Cable(a, port(a), b, port(b))
	}
	r := compiled(t, must(t)(p.Fabric()), "updn", 2).Routing
	d, err := quality.Disjointness(t.Context(), r.Fabric, r.Tables)
	if err != nil || d.Pairs != 2 || d.Possible != (quality.Spread{Min: 3, Mean: 3}) {
		t.Errorf("%+v, %v; want 3 possible", d, err)
	}
}
