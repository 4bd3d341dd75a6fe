package noise_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/gen/noise"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
)

// generated draws a fabric of any generator, with LIDs or without, and with labels or
// without.
func generated(t *rapid.T) *fabric.Fabric {
	seed := rapid.Uint64().Draw(t, "seed of the fabric")
	n := func(low, high int, what string) int { return rapid.IntRange(low, high).Draw(t, what) }
	kinds := map[string]func() (*fabric.Fabric, error){
		"banyan": func() (*fabric.Fabric, error) { return banyan.Banyan(n(2, 3, "stages"), false) },
		"cube":   func() (*fabric.Fabric, error) { return mesh.Hypercube(n(1, 4, "dim"), n(0, 2, "hosts")) },
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
	}
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	f, err := kinds[rapid.SampledFrom(names).Draw(t, "kind")]()
	if err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "labels") {
		f = labelled(t, f)
	}
	if rapid.IntRange(0, 3).Draw(t, "LIDs") > 0 {
		if f, err = lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: rapid.IntRange(0, 2).Draw(t, "LMC")}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// labelled gives the ports labels as switches of Quantum-2 and HCAs have them, and the
// nodes systems of their own.
func labelled(t *rapid.T, f *fabric.Fabric) *fabric.Fabric {
	var b fabric.Builder
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range fabric.NodeID(f.NumNodes()) {
		node := *f.Node(n)
		node.SystemGUID = node.GUID&^1 + 0x5000000 // two chips in a box
		_, err := b.AddNode(node)
		must(err)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		n, num := f.Owner(p), f.Num(p)
		if f.PortGUID(p) != 0 {
			must(b.SetPort(int(n), num, f.PortGUID(p), 0, 0))
		}
		peer := f.Peer(p)
		if peer == fabric.NoPort {
			continue
		}
		label := fmt.Sprintf("1/%d/%d", (num+1)/2, 2-num%2)
		if !f.IsSwitch(n) {
			label = fmt.Sprintf("B%dD0F0/0/0/%d", n%64, num)
		}
		must(b.SetLabel(int(n), num, label))
		if peer > p {
			must(b.Connect(int(n), num, int(f.Owner(peer)), f.Num(peer), f.Link(p)))
		}
	}
	g, err := b.Build()
	must(err)
	return g
}

// found is what a reader noticed, in the words of noise.Text.
func found(t *rapid.T, f *fabric.Fabric, problems []topology.Problem) (x noise.Text) {
	for _, p := range problems {
		n, _ := f.NodeByGUID(p.Node)
		switch p.Kind {
		case topology.ForeignLines:
			x.Foreign += p.Count
		case topology.SweepTimeout:
			x.Timeouts += p.Count
		case topology.SweepError:
			x.Errors += p.Count
		case topology.InvalidLID:
			x.InvalidLIDs = append(x.InvalidLIDs, f.Port(n, p.Port))
		case topology.Loopback:
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
		noisy, err := noise.Make(f, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		if !topology.Recognize(noisy.Data) {
			t.Fatal("not recognized")
		}
		for _, lenient := range []bool{false, true} {
			g, problems, err := topology.Parse("in", noisy.Data, topology.Options{Lenient: lenient})
			if err != nil {
				t.Fatalf("%v\n%s", err, noisy.Data)
			}
			want, got := topology.AppendLabelled(nil, noisy.Fabric), topology.AppendLabelled(nil, g)
			if !bytes.Equal(want, got) {
				t.Fatalf("(-want +got)\n%s\n%s", cmp.Diff(string(want), string(got)), noisy.Data)
			}
			x := found(t, g, problems)
			x.Data, x.Fabric = noisy.Data, noisy.Fabric
			if diff := cmp.Diff(*noisy, x, cmp.Comparer(func(a, b *fabric.Fabric) bool { return a == b })); diff != "" {
				t.Fatalf("(-want +got)\n%s\n%s", diff, noisy.Data)
			}
		}
		_, _, err = topology.Parse("in", noisy.Data, topology.Options{Strict: true})
		if err == nil && noisy.Foreign+noisy.Timeouts+noisy.Errors+len(noisy.InvalidLIDs)+len(noisy.Loopbacks) > 0 {
			t.Fatalf("a strict read takes noise\n%s", noisy.Data)
		}
	})
}

func TestSameSeedSameBytes(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		a, err := noise.Make(f, seed)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := noise.Make(f, seed); err != nil || !bytes.Equal(a.Data, b.Data) {
			t.Fatalf("seed %d: other bytes, %v", seed, err)
		}
	}
}
