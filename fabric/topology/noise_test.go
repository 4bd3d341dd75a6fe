package topology_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
)

// generated draws a fabric of any kind with any options, with LIDs or without.
func generated(t *rapid.T) *fabric.Fabric {
	seed := rapid.Uint64().Draw(t, "seed of the fabric")
	n := func(low, high int, what string) int { return rapid.IntRange(low, high).Draw(t, what) }
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	tree := func() gen.TreeSpec {
		pods := rapid.SliceOfN(rapid.IntRange(1, 3), 1, 3).Draw(t, "pods")
		groups, each := n(1, 2, "groups"), n(1, 2, "spines below a group")
		spec := gen.TreeSpec{
			Ports: 40, Pods: pods, Hosts: n(0, 3, "hosts"), Rails: n(1, 3, "rails"), Spines: groups * each, Parallel: n(1, 2, "parallel"), Groups: groups,
			Cores: n(min(len(pods)-1, 1), 2, "cores"),
		}
		if spec.Cores > 0 {
			spec.RailSpines = yes("spines of rails")
		}
		return spec
	}
	kinds := map[string]func() (*fabric.Fabric, error){
		"banyan": func() (*fabric.Fabric, error) { return banyan.Banyan(n(2, 3, "stages"), yes("wrap-around")) },
		"cube":   func() (*fabric.Fabric, error) { return mesh.Hypercube(n(1, 4, "dim"), n(0, 2, "hosts")) },
		"director": func() (*fabric.Fabric, error) {
			spec := tree()
			spec.Directors = true
			return gen.Tree(spec)
		},
		"fat tree": func() (*fabric.Fabric, error) {
			return gen.FatTree(gen.FatTreeSpec{Radix: 2 * n(2, 4, "radix"), Levels: n(2, 3, "levels")})
		},
		"grid": func() (*fabric.Fabric, error) {
			return mesh.Generate(mesh.Spec{Dims: []int{n(2, 5, "x"), n(2, 5, "y")}, Hosts: n(0, 3, "hosts")})
		},
		"irregular": func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 2 * n(2, 10, "switches"), Degree: 3, Hosts: n(0, 3, "hosts"), Seed: seed})
		},
		"lattice":    func() (*fabric.Fabric, error) { return gen.Lattice(n(2, 20, "switches"), seed) },
		"ring":       gen.Myrinet4,
		"shufflenet": func() (*fabric.Fabric, error) { return gen.Shufflenet(2, n(2, 3, "k")) },
		"tree":       func() (*fabric.Fabric, error) { return gen.Tree(tree()) },
	}
	f := short.Must(kinds[rapid.SampledFrom(slices.Sorted(maps.Keys(kinds))).Draw(t, "kind")]())(t)
	f = optional(t, f, seed)
	if n(0, 3, "LIDs") > 0 {
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: n(0, 2, "LMC")}))(t)
	}
	return f
}

// optional draws any options. Service hosts and cables to drop are fewer where the fabric
// lacks ports or cables for them.
func optional(t *rapid.T, f *fabric.Fabric, seed uint64) *fabric.Fabric {
	o := gen.Options{
		Seed:             seed,
		Fill:             rapid.IntRange(0, 100).Draw(t, "fill"),
		ServiceHosts:     rapid.IntRange(0, 3).Draw(t, "service hosts"),
		Planes:           rapid.SampledFrom([]int{0, 0, 0, 2, 4}).Draw(t, "planes"),
		DropLinks:        rapid.IntRange(0, 3).Draw(t, "cables to drop"),
		Labels:           rapid.Bool().Draw(t, "labels"),
		Names:            rapid.SampledFrom(append([]string{""}, gen.Styles...)).Draw(t, "names"),
		AggregationNodes: rapid.Bool().Draw(t, "aggregation nodes"),
		Speeds:           rapid.SliceOfN(rapid.SampledFrom([]fabric.Speed{fabric.QDR, fabric.FDR, fabric.EDR, fabric.HDR, fabric.NDR, fabric.XDR}), 0, 3).Draw(t, "speeds"),
	}
	for {
		g, err := o.Apply(f)
		switch {
		case err == nil:
			distinct(t, g)
			return g
		case o.ServiceHosts > 0 && strings.Contains(err.Error(), " service hosts: want "):
			o.ServiceHosts--
		case o.DropLinks > 0 && strings.Contains(err.Error(), " links to drop: want "):
			o.DropLinks--
		default:
			t.Fatalf("%+v: %v", o, err)
		}
	}
}

// distinct fails if two nodes or end ports have the same GUID. Port 0 of a switch has that
// of its node.
func distinct(t *rapid.T, f *fabric.Fabric) {
	seen := map[fabric.GUID]bool{}
	once := func(g fabric.GUID) {
		if seen[g] {
			t.Fatalf("two nodes or ports have GUID %s", g)
		}
		seen[g] = true
	}
	for n := range fabric.NodeID(f.NumNodes()) {
		once(f.Node(n).GUID)
	}
	f.EndPorts(func(p fabric.PortID) {
		if !f.IsSwitch(f.Owner(p)) {
			once(f.PortGUID(p))
		}
	})
}

// found is what a reader noticed, in the words of noisyText.
func found(t *rapid.T, f *fabric.Fabric, problems []fabric.Problem) (x noisyText) {
	for _, p := range problems {
		n, _ := f.NodeByGUID(p.Node)
		switch p.Kind {
		case fabric.ForeignLines:
			x.Foreign += p.Count
		case fabric.SweepTimeout:
			x.Timeouts += p.Count
		case fabric.SweepError:
			x.Errors += p.Count
		case fabric.InvalidLID:
			x.InvalidLIDs = append(x.InvalidLIDs, f.Port(n, p.Port))
		case fabric.Loopback:
			x.Loopbacks = append(x.Loopbacks, f.Port(n, p.Port))
		default:
			t.Errorf("nothing deserves %s", p.String())
		}
	}
	slices.Sort(x.InvalidLIDs)
	slices.Sort(x.Loopbacks)
	return x
}

// Any fabric of the generators with any noise is read back as the same fabric, with what
// the noise deserves and nothing else, leniently or not; a strict read takes it only where
// no noise can be seen.
func TestNoise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := generated(t)
		noisy := short.Must(makeNoise(f, rapid.Uint64().Draw(t, "seed")))(t)
		short.MustEqual(t, topology.Recognize(noisy.Data), topology.Stanzas, "not recognized")
		for _, lenient := range []bool{false, true} {
			g, problems, err := topology.Parse("in", noisy.Data, topology.Options{Lenient: lenient})
			if err != nil {
				t.Fatalf("%v\n%s", err, noisy.Data)
			}
			want, got := topology.AppendLabelled(nil, noisy.Fabric), topology.AppendLabelled(nil, g)
			short.EqualList(t, want, got, "(-want +got)", noisy.Data)
			x := found(t, g, problems)
			x.Data, x.Fabric = noisy.Data, noisy.Fabric
			if diff := cmp.Diff(*noisy, x, cmp.Comparer(func(a, b *fabric.Fabric) bool { return a == b })); diff != "" {
				t.Fatalf("(-want +got)\n%s\n%s", diff, noisy.Data)
			}
		}
		_, _, err := topology.Parse("in", noisy.Data, topology.Options{Strict: true})
		if err == nil && noisy.Foreign+noisy.Timeouts+noisy.Errors+len(noisy.InvalidLIDs)+len(noisy.Loopbacks) > 0 {
			t.Fatalf("a strict read takes noise\n%s", noisy.Data)
		}
	})
}

func TestSameSeedSameBytes(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2}))(t)
	for seed := range uint64(20) {
		a := short.Must(makeNoise(f, seed))(t)
		short.EqualList(t, a.Data, short.Must(makeNoise(f, seed))(t).Data, "seed", seed, "other bytes")
	}
}
