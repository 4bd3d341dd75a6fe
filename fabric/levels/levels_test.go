package levels_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/internal/short"
)

// sketch is switches by name, with hosts, and cables between them.
type sketch struct {
	hosts  map[string]int
	cables [][2]string
}

// join joins all of some switches to all of others, by n cables each.
func (k *sketch) join(some, others []string, n int) {
	for _, a := range some {
		for _, b := range others {
			for range n {
				k.cables = append(k.cables, [2]string{a, b})
			}
		}
	}
}

// add adds n switches with hosts each, and gives their names: the prefix and a number.
func (k *sketch) add(n, hosts int, prefix string) (names []string) {
	if k.hosts == nil {
		k.hosts = make(map[string]int)
	}
	for i := range n {
		name := prefix + strconv.Itoa(i)
		k.hosts[name] = hosts
		names = append(names, name)
	}
	return names
}

// tree adds pods of leaves l and spines s, and core switches c that each spine is joined to
// in its place in the pod. Names end in the pod and the number.
func (k *sketch) tree(pods, leaves, hosts, spines, cores int) {
	for p := range pods {
		up := k.add(spines, 0, fmt.Sprint("s", p, "."))
		k.join(k.add(leaves, hosts, fmt.Sprint("l", p, ".")), up, 1)
		for i, s := range up {
			k.join([]string{s}, k.add(cores, 0, fmt.Sprint("c", i, ".")), 1)
		}
	}
}

// fabric builds it, with its switches in the order of a seed.
func (k *sketch) fabric(t *testing.T, seed uint64) *fabric.Fabric {
	t.Helper()
	names := make([]string, 0, len(k.hosts))
	all := 0
	for name, n := range k.hosts {
		names = append(names, name)
		all += n
	}
	slices.Sort(names)
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	p := short.Must(gen.NewPlan(len(names), all))(t)
	at, used := make(map[string]int), make(map[string]int)
	for _, name := range names {
		at[name] = p.Switch(64, name)
	}
	for _, name := range names {
		for range k.hosts[name] {
			used[name]++
			p.Cable(p.CA(1, "host"), 1, at[name], used[name])
		}
	}
	for _, c := range k.cables {
		used[c[0]]++
		used[c[1]]++
		p.Cable(at[c[0]], used[c[0]], at[c[1]], used[c[1]])
	}
	return short.Must(p.Fabric())(t)
}

// Names begin with the letter of their level: x and l for leaves, s for spines, c for core
// switches. The order of the switches does not matter.
func TestLevels(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(k *sketch)
	}{
		{"two levels", func(k *sketch) { k.tree(1, 6, 4, 3, 0) }},
		{"one spine", func(k *sketch) { k.tree(1, 6, 4, 1, 0) }},
		{"three levels", func(k *sketch) { k.tree(3, 4, 4, 3, 2) }},
		{"leaves with few hosts and none", func(k *sketch) {
			k.tree(3, 4, 8, 3, 2)
			k.hosts["l0.0"], k.hosts["l1.0"], k.hosts["l1.1"], k.hosts["l1.2"], k.hosts["l2.0"] = 0, 0, 1, 0, 3
		}},
		{"one host of all leaves", func(k *sketch) {
			k.tree(3, 4, 0, 3, 2)
			k.hosts["l1.2"] = 1
		}},
		{"hosts on all switches above", func(k *sketch) {
			k.tree(3, 4, 8, 3, 2)
			for name := range k.hosts {
				if name[0] != 'l' {
					k.hosts[name] = 3
				}
			}
		}},
		{"spines with most hosts of a leaf", func(k *sketch) {
			k.tree(1, 6, 8, 3, 0)
			k.hosts["s0.0"], k.hosts["s0.1"], k.hosts["s0.2"] = 6, 7, 5
		}},
		{"a core switch that a cable is missing at, of two pods", func(k *sketch) {
			k.tree(2, 4, 4, 4, 4)
			k.cables = slices.DeleteFunc(k.cables, func(c [2]string) bool { return c == [2]string{"s1.2", "c2.3"} })
		}},
		{"planes", func(k *sketch) {
			k.tree(1, 4, 4, 2, 0)
			k.join(k.add(5, 6, "l1."), k.add(3, 0, "s1."), 2)
		}},
		{"trees joined at spines", func(k *sketch) {
			k.tree(1, 4, 4, 2, 0)
			k.join(k.add(5, 6, "l1."), k.add(3, 0, "s1."), 2)
			k.join([]string{"s0.0"}, []string{"s1.1"}, 3)
		}},
		{"leaves joined", func(k *sketch) {
			k.tree(1, 6, 8, 3, 0)
			k.join([]string{"l0.1"}, []string{"l0.2"}, 1)
		}},
		{"a switch below a leaf", func(k *sketch) {
			k.tree(1, 6, 8, 3, 0)
			k.join(k.add(1, 6, "x"), []string{"l0.2"}, 2)
		}},
		{"a switch below a bare leaf", func(k *sketch) {
			k.tree(4, 3, 0, 2, 2)
			k.hosts["l0.1"], k.hosts["l1.1"] = 1, 1
			k.join(k.add(1, 1, "x"), []string{"l3.2"}, 1)
		}},
		{"one host, on a leaf that a cable is missing at", func(k *sketch) {
			k.tree(3, 4, 0, 3, 2)
			k.hosts["l1.2"] = 1
			k.cables = slices.DeleteFunc(k.cables, func(c [2]string) bool { return c == [2]string{"l1.2", "s1.1"} })
		}},
		{"hosts in one pod, and a cable to a core switch missing there", func(k *sketch) {
			k.tree(4, 3, 0, 3, 3)
			k.hosts["l1.2"], k.hosts["l1.1"] = 1, 1
			k.cables = slices.DeleteFunc(k.cables, func(c [2]string) bool { return c == [2]string{"s1.1", "c1.2"} })
		}},
		{"a leaf on core switches, on the level of spines", func(k *sketch) {
			k.tree(3, 4, 8, 3, 4)
			k.join(k.add(1, 8, "sx"), []string{"c0.0", "c0.1", "c1.0", "c2.0"}, 2)
		}},
		{"a tree upside down, joined by cores", func(k *sketch) {
			k.tree(2, 3, 8, 2, 3)
			k.join(k.add(2, 0, "cj"), append(k.add(4, 0, "sj"), "s0.0", "s1.1"), 1)
			k.join(k.add(3, 8, "lj"), []string{"sj0", "sj1", "sj2", "sj3"}, 1)
		}},
		{"leaves of management", func(k *sketch) {
			k.tree(3, 4, 8, 3, 4)
			k.join(k.add(2, 2, "lm"), []string{"s0.1"}, 2)
			k.join(k.add(1, 0, "lb"), []string{"s1.0", "s1.2"}, 1)
			k.join(k.add(1, 0, "sm"), []string{"c1.0", "c1.2"}, 2)
			k.join(k.add(1, 0, "lx"), []string{"sm0"}, 8)
		}},
		{"leaves of management below a spine of their own", func(k *sketch) {
			k.tree(3, 4, 8, 3, 4)
			k.join(k.add(1, 0, "sm"), []string{"c0.0", "c1.0", "c2.0"}, 1)
			k.join(k.add(2, 3, "lm"), []string{"sm0"}, 2)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := &sketch{}
			tc.make(k)
			for seed := range uint64(5) {
				f := k.fabric(t, seed)
				for s, l := range levels.Of(f) {
					name := f.Node(fabric.NodeID(s)).Description
					if want := int32(strings.IndexByte("lsc", name[0])); l != max(want, 0) {
						t.Errorf("seed %d: %s is on level %d", seed, name, l)
					}
				}
			}
		})
	}
}

// Aggregation nodes are no hosts, and chips without any cable are on some level.
func TestHosts(t *testing.T) {
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 12, Pods: []int{2, 2}, Hosts: 3, Spines: 2, Cores: 2}))(t)
	f = short.Must(gen.Options{AggregationNodes: true}.Apply(f))(t)
	level := levels.Of(f)
	for s, n := range levels.Hosts(f) {
		short.Equal(t, n, map[bool]int{true: 3, false: 0}[level[s] == 0], f.Node(fabric.NodeID(s)).Description, "hosts")
	}
	k := &sketch{}
	k.tree(1, 3, 2, 2, 0)
	k.add(1, 0, "lone")
	if got := levels.Of(k.fabric(t, 1)); slices.Max(got) != 1 {
		t.Errorf("levels %d", got)
	}
	if got := levels.Of(new(sketch).fabric(t, 1)); got != nil {
		t.Errorf("levels %d of no switch", got)
	}
}

// How many cables levels explain tells a tree from what is none.
func TestShare(t *testing.T) {
	k := &sketch{}
	k.tree(1, 4, 2, 2, 0)
	k.join([]string{"s0.0"}, []string{"s0.1"}, 2)
	f := k.fabric(t, 1)
	short.Equal(t, levels.Share(f, levels.Of(f)), 0.8, "of a tree with two of ten cables between spines")
	ring := &sketch{}
	names := ring.add(6, 2, "l")
	for i, name := range names {
		ring.join([]string{name}, []string{names[(i+1)%len(names)]}, 1)
	}
	if f := ring.fabric(t, 1); levels.Share(f, levels.Of(f)) != 0 {
		t.Error("a ring has levels")
	}
	if f := new(sketch).fabric(t, 1); levels.Share(f, nil) != 1 {
		t.Error("cables are missing where there is no switch")
	}
}
