package cabling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/verify"
)

// network is a fabric in the making: hosts by switch, and cables between switches.
type network struct {
	hosts  []int
	cables [][2]int
}

// switches adds n switches with some hosts each, and gives the index of the first.
func (w *network) switches(n, hosts int) int {
	first := len(w.hosts)
	for range n {
		w.hosts = append(w.hosts, hosts)
	}
	return first
}

func (w *network) join(a, b, cables int) {
	for range cables {
		w.cables = append(w.cables, [2]int{a, b})
	}
}

// tree joins leaves to spines.
func (w *network) tree(leaves, hosts, spines, parallel int) {
	first := w.switches(leaves, hosts)
	top := w.switches(spines, 0)
	for l := range leaves {
		for s := range spines {
			w.join(first+l, top+s, parallel)
		}
	}
}

// fabric builds it. Ports are given out in the order of the cables, hosts first.
func (w *network) fabric(t testing.TB) *fabric.Fabric {
	t.Helper()
	hosts := 0
	for _, n := range w.hosts {
		hosts += n
	}
	p := short.Must(gen.NewPlan(len(w.hosts), hosts))(t)
	at, used := make([]int, len(w.hosts)), make([]int, len(w.hosts))
	node := 0
	for s, n := range w.hosts {
		at[s] = node
		p.Switch(64, fmt.Sprint("s", s))
		for h := range n {
			p.CA(1, fmt.Sprint("h", s, "-", h))
			p.Cable(at[s], h+1, node+h+1, 1)
		}
		used[s], node = n, node+n+1
	}
	for _, c := range w.cables {
		used[c[0]]++
		used[c[1]]++
		p.Cable(at[c[0]], used[c[0]], at[c[1]], used[c[1]])
	}
	return short.Must(p.Fabric())(t)
}

// odd are networks that operators run and that are no tree and no grid, or are one
// only in part. Nothing is missing in any of them.
func odd() map[string]*network {
	list := make(map[string]*network)
	made := func(name string, build func(w *network)) {
		w := &network{}
		build(w)
		list[name] = w
	}
	for _, n := range [][3]int{{9, 4, 2}, {5, 8, 4}, {3, 4, 1}, {4, 6, 2}, {7, 3, 2}} {
		made(fmt.Sprintf("dragonfly %v", n), func(w *network) {
			groups, size, global := n[0], n[1], n[2]
			w.switches(groups*size, 2)
			next := make([]int, groups)
			for g := range groups {
				for a := range size {
					for b := range a {
						w.join(g*size+a, g*size+b, 1)
					}
				}
			}
			for range max(1, size*global/(groups-1)) {
				for g := range groups {
					for o := range g {
						w.join(g*size+next[g]/global%size, o*size+next[o]/global%size, 1)
						next[g]++
						next[o]++
					}
				}
			}
		})
	}
	for _, n := range [][2]int{{3, 3}, {4, 4}, {3, 5}, {5, 5}} {
		made(fmt.Sprintf("HyperX %v", n), func(w *network) {
			w.switches(n[0]*n[1], 3)
			for a := range n[0] * n[1] {
				for b := range a {
					if a/n[1] == b/n[1] || a%n[1] == b%n[1] {
						w.join(a, b, 1)
					}
				}
			}
		})
	}
	for _, hosts := range []int{0, 1, 4, 8, 12, 16} {
		made(fmt.Sprintf("a switch with %d hosts below a leaf", hosts), func(w *network) {
			w.tree(8, 16, 4, 4)
			w.join(0, w.switches(1, hosts), 2)
		})
		made(fmt.Sprintf("three leaves with %d hosts", hosts), func(w *network) {
			w.tree(8, 16, 4, 4)
			w.hosts[1], w.hosts[2], w.hosts[5] = hosts, hosts, hosts
		})
		made(fmt.Sprintf("a switch with %d hosts on two spines", hosts), func(w *network) {
			w.tree(12, 16, 8, 2)
			s := w.switches(1, hosts)
			w.join(s, 12, 2)
			w.join(s, 13, 2)
		})
		made(fmt.Sprintf("leaves with %d hosts and half the uplinks", hosts), func(w *network) {
			w.tree(12, 16, 4, 4)
			for range 2 {
				s := w.switches(1, hosts)
				for spine := 12; spine < 16; spine++ {
					w.join(s, spine, 2)
				}
			}
		})
	}
	made("two trees joined by a switch", func(w *network) {
		w.tree(6, 18, 6, 3)
		w.tree(8, 32, 8, 4)
		s := w.switches(2, 0)
		for i := range 2 {
			for spine := range 6 {
				w.join(s+i, 6+spine, 1)
			}
			for spine := range 8 {
				w.join(s+i, 20+spine, 1)
			}
		}
	})
	made("two trees joined by a cable", func(w *network) {
		w.tree(6, 12, 3, 4)
		w.tree(6, 12, 3, 4)
		w.join(6, 15, 1)
	})
	return list
}

// Networks of which nothing is missing have no finding of severity error, nor of a missing cable: a shape that
// does not explain them is a guess. Random networks are not certain of any shape with
// something missing.
func TestNoErrorsByGuess(t *testing.T) {
	check := func(t *testing.T, f *fabric.Fabric) {
		t.Helper()
		r := Check(f, Options{})
		for _, x := range r.Findings {
			if x.Severity == verify.Error {
				t.Errorf("%s: %s: %s", r.Shape, x.Rule, x.Message)
			}
			if slices.Contains([]string{MissingCable, MissingSwitch, MovedCable, CrossedCables}, x.Rule) {
				t.Errorf("%s: %s", r.Shape, x.Message)
			}
		}
	}
	for name, w := range odd() {
		t.Run(name, func(t *testing.T) { check(t, w.fabric(t)) })
	}
	t.Run("random", func(t *testing.T) {
		for trial := range 20 * short.Of(*trials, 1) {
			r := rand.New(rand.NewPCG(3, uint64(trial)))
			w := &network{}
			n := 5 + r.IntN(36)
			for s := range n {
				w.switches(1, r.IntN(4)*r.IntN(4))
				if s > 0 {
					w.join(s, r.IntN(s), 1+r.IntN(2))
				}
			}
			for range r.IntN(2 * n) {
				if a, b := r.IntN(n), r.IntN(n); a != b {
					w.join(a, b, 1+r.IntN(2))
				}
			}
			check(t, w.fabric(t))
		}
	})
}

// A certain shape with a few cables missing keeps its errors, and they are those cables.
func TestErrorsOfCertainShapes(t *testing.T) {
	large := fabrics(t)
	delete(large, "banyan-3")
	delete(large, "irregular-20")
	delete(large, "file")
	large["fattree-12"] = must(gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 2}))
	large["torus-8x8"] = torus(8, 8)
	large["mesh-6x4x3"] = must(mesh.Generate(mesh.Spec{Dims: []int{6, 4, 3}, Hosts: 2}))
	for name, whole := range large {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(short.Of(*trials, 2)) {
				lost := 1 + int(seed)%2
				r := Check(must(gen.DropLinks(whole, lost, seed)), Options{})
				if !r.Shape.Certain || r.Shape.MissingCables != lost {
					t.Fatalf("seed %d: %s", seed, r.Shape)
				}
				missing := int64(0)
				for _, x := range r.Findings {
					if x.Rule == MissingCable && x.Severity == verify.Error {
						missing += x.Count
					}
				}
				short.MustEqual(t, missing, int64(lost), "seed", seed, "of", lost, "cables are errors", r.Findings)
			}
		})
	}
}
