package jobs_test

import (
	"bytes"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

// mixFabrics are fabrics of many shapes, with LIDs.
func mixFabrics(t *testing.T) map[string]*fabric.Fabric {
	t.Helper()
	all := make(map[string]*fabric.Fabric)
	add := func(name string, o gen.Options, f *fabric.Fabric, err error) {
		if err == nil {
			o.Seed = 1
			f, err = o.Apply(f)
		}
		if err == nil {
			f, err = lft.AssignLIDs(f, lft.LIDOptions{})
		}
		if err != nil {
			t.Fatal(name, err)
		}
		all[name] = f
	}
	tree := func(leaves, rails, hosts, spines int) (*fabric.Fabric, error) {
		return gen.Tree(gen.TreeSpec{Pods: []int{leaves}, Ports: 40, Rails: rails, Hosts: hosts, Spines: spines, Parallel: 1})
	}
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 3})
	add("tree", gen.Options{Names: "site"}, f, err)
	f, err = tree(4, 4, 16, 8)
	add("rails", gen.Options{Names: "site"}, f, err)
	f, err = tree(4, 2, 16, 8)
	add("planes", gen.Options{Names: "site", Planes: 2}, f, err)
	f, err = tree(6, 1, 8, 4)
	add("storage", gen.Options{Names: "site", ServiceHosts: 3}, f, err)
	f, err = tree(6, 1, 8, 4)
	add("mixed names", gen.Options{Names: "mixed"}, f, err)
	f, err = gen.Irregular(gen.IrregularSpec{Switches: 20, Degree: 4, Hosts: 50, Seed: 1})
	add("irregular", gen.Options{}, f, err)
	f, err = mesh.Generate(mesh.Spec{Dims: []int{4, 4, 3}, Hosts: 2})
	add("mesh", gen.Options{}, f, err)
	f, err = gen.Myrinet4()
	add("small", gen.Options{}, f, err)
	return all
}

var (
	mixHead  = regexp.MustCompile(`(\d+) jobs? on (\d+) of (\d+) hosts, (\d+) more for storage`)
	mixJob   = regexp.MustCompile(`- name: ([a-z]+)-\d+ # (\d+) hosts, (.*)`)
	mixStore = regexp.MustCompile(`to-storage, size: (\d+)([MK])`)
)

// TestMix has mixes of jobs on fabrics of many shapes: each is a file of traffic for its fabric, no host
// has two jobs, all bytes arrive and no port gets more than 4G.
func TestMix(t *testing.T) {
	const unit = 4 << 30
	for name, f := range mixFabrics(t) {
		r, err := lft.Minhop{}.Route(t.Context(), f, lft.Options{})
		if err != nil {
			t.Fatal(err)
		}
		last := []byte(nil)
		for seed := range uint64(short.Of(12, 3)) {
			mix, err := jobs.Mix(f, seed)
			if err != nil {
				t.Fatal(name, err)
			}
			again, _ := jobs.Mix(f, seed)
			if !bytes.Equal(mix, again) || bytes.Equal(mix, last) {
				t.Errorf("%s: seed %d makes other jobs, or those of the seed before", name, seed)
			}
			last = mix
			file, err := jobs.Read("mix.yaml", folder{"mix.yaml": string(mix)}.open)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, mix)
			}
			x, err := file.In(f, nil)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, mix)
			}
			result, err := x.Judge(t.Context(), r.Tables, nil, 1)
			if err != nil {
				t.Fatal(err)
			}
			head := numbers(t, mixHead, string(mix))
			if len(result.Jobs) != head[0] || head[1] > head[2]*95/100 || head[2] > 20 && head[1] < head[2]*65/100 || len(result.Overlaps) > 0 || (head[3] == 0) != (name == "planes") || name == "storage" && head[3] != 3 {
				t.Errorf("%s: %d jobs, overlaps %v, of %v", name, len(result.Jobs), result.Overlaps, head)
			}
			hosts, stored, scale := 0, 0.0, 0
			for _, j := range result.Jobs {
				hosts += j.Hosts
				if rate := float64(j.Cable.Rate) * 1e6 / 8; j.Lost > 0 || j.Hosts < 2 || j.Hosts > max(2, head[2]/4) || j.Ideal*rate > unit*1.001 || j.Ideal == 0 {
					t.Errorf("%s: %s on %d of %d hosts: %v bytes are lost, a port has %v", name, j.Job, j.Hosts, head[2], j.Lost, j.Ideal*rate)
				}
			}
			for _, part := range strings.Split(string(mix), "  - name:")[1:] {
				scale = numbers(t, regexp.MustCompile(`# (\d+) hosts`), part)[0]
				if m := regexp.MustCompile(`ranks-per-host: (\d+)`).FindStringSubmatch(part); m != nil {
					n, _ := strconv.Atoi(m[1])
					scale *= n
				}
				if m := mixStore.FindStringSubmatch(part); m != nil {
					n, _ := strconv.Atoi(m[1])
					stored += float64(scale) * float64(n<<map[string]int{"M": 20, "K": 10}[m[2]])
				}
			}
			if ports := map[string]int{"rails": 4}[name]; hosts != head[1] || stored > float64(unit*head[3]*max(1, ports)) {
				t.Errorf("%s: jobs on %d hosts, %v says its head; %v bytes to storage", name, hosts, head, stored)
			}
		}
	}
	pair, err := gen.Irregular(gen.IrregularSpec{Switches: 4, Degree: 2, Hosts: 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.Mix(pair, 1); err == nil || err.Error() != "3 hosts have a cable to a switch that joins them; want 4 at least for a mix of jobs" {
		t.Error(err)
	}
}

// numbers is the numbers that a pattern finds.
func numbers(t *testing.T, pattern *regexp.Regexp, text string) (list []int) {
	t.Helper()
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in %s", pattern, text)
	}
	for _, s := range m[1:] {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// TestMixes has what mixes are made of, over many seeds: all kinds of jobs, ways to place them and sizes.
func TestMixes(t *testing.T) {
	f := mixFabrics(t)["tree"] // 128 hosts, 4 on a leaf
	count := make(map[string]int)
	all, powers := 0, 0
	for seed := range uint64(100) {
		mix, err := jobs.Mix(f, seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mixJob.FindAllStringSubmatch(string(mix), -1) {
			n, _ := strconv.Atoi(m[2])
			all++
			if bits.OnesCount(uint(n)) == 1 {
				powers++
			}
			count[m[1]]++
			count[m[3]]++
			count["size "+strconv.Itoa(bits.Len(uint(n)))]++
		}
	}
	for what, share := range map[string]float64{
		"train": 0.45, "halo": 0.2, "spectral": 0.15, "graph": 0.1, "write": 0.1,
		"by leaf": 0.5, "in order": 0.3, "scattered": 0.2,
		"size 2": 0.22, "size 3": 0.25, "size 4": 0.25, "size 5": 0.25,
	} {
		if got := float64(count[what]) / float64(all); got < share-0.07 || got > share+0.07 {
			t.Errorf("%s: %.3f of %d jobs, want %.2f", what, got, all, share)
		}
	}
	if share := float64(powers) / float64(all); all < 1000 || share < 0.75 || share > 0.95 {
		t.Errorf("%d jobs, %.3f have a power of two", all, share)
	}
}
