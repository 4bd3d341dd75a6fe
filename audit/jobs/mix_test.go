package jobs_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// What a mix is drawn from.
const (
	mixUnit      = 4 << 30 // bytes: no job and no storage has more on a port of a host
	mixLeast     = 4       // hosts of a fabric
	mixTurnovers = 5       // how often jobs have come and gone on a host in the mean
	hostsPerDisk = 32      // hosts to one of storage
	mostExperts  = 64      // hosts of a training with an all-to-all
	mostAll      = 1 << 10 // hosts of an all-to-all of all
	haloRanks    = 8       // per host
	mostRanks    = 1 << 17 // of a job, as files of traffic have them
)

// drawMix draws a file of traffic for a fabric, the same bytes for one seed. Jobs come and go as on
// a cluster, so that those that are there at last have the hosts that others left them:
//
//   - 65 to 95 percent of the hosts are busy. A job has 2 hosts to a quarter of all, by the
//     logarithm, and of four jobs three have a power of two.
//   - Half of the jobs get the leaf with the fewest free hosts that are enough, or leaves with most free hosts, as
//     Slurm's topology/tree does; three in ten the first free hosts in the order of names; the others
//     random ones.
//   - Of twenty jobs nine train (an all-reduce by ring or trees, up to 64 hosts an all-to-all of experts
//     as well, and checkpoints), four exchange halos, three are an all-to-all, two send along permutations and two
//     write to storage.
//   - Storage is the hosts of that kind, or one in 32 hosts; there is none where a host has ports that no
//     cables join. Background is 1 to 20 percent.
//
// Sizes are such that a port of a host sends and receives 4G at most. Hosts are those of
// Hosts in the largest part of the fabric. An error
// says that it has too few hosts.
func drawMix(f *fabric.Fabric, seed uint64) ([]byte, error) {
	m := &mixer{f: f, random: rand.New(rand.NewPCG(seed, 0x6d6978)), joined: true}
	m.findHosts()
	if len(m.hosts) < mixLeast {
		return nil, fmt.Errorf("%s; want %d at least for a mix of jobs", text.Count(len(m.hosts), "host has a cable to a switch", "hosts have a cable to a switch that joins them"), mixLeast)
	}
	if m.joined {
		m.findStorage()
	}
	m.turnOver()
	return m.write(seed), nil
}

// mixer draws a mix.
type mixer struct {
	f       *fabric.Fabric
	random  *rand.Rand
	hosts   []jobs.Host // that run jobs
	storage []jobs.Host
	joined  bool   // cables join all ports of each host
	busy    []bool // by index in hosts
	jobs    []mixJob
}

// mixJob is a job of a mix.
type mixJob struct {
	hosts   []int // ascending
	how     string
	most    int // ports of a host
	least   int
	kind    string
	perHost int      // 0 for a rank on each port
	lines   []string // patterns
	store   float64  // its part of what goes to storage, by host; 0 for none
}

// findHosts finds the hosts of which the first port is in the largest part of the fabric.
func (m *mixer) findHosts() {
	f := m.f
	part, parts := graph.Components(f.NumSwitches(), func(s fabric.NodeID) []fabric.NodeID { _, to := f.SwitchLinks(s); return to })
	size := make([]int, parts)
	for s := range fabric.NodeID(f.NumSwitches()) {
		size[part[s]] += len(f.HostsOn(s))
	}
	for _, h := range jobs.Hosts(f, fabric.HostKind, fabric.ServiceKind) {
		at := part[f.PeerSwitch(h.Ports[0])]
		if int(at) != slices.Index(size, slices.Max(size)) {
			continue
		}
		for _, p := range h.Ports {
			m.joined = m.joined && part[f.PeerSwitch(p)] == at
		}
		if f.Kind(h.Nodes[0]) == fabric.ServiceKind {
			m.storage = append(m.storage, h)
		} else {
			m.hosts = append(m.hosts, h)
		}
	}
}

// findStorage takes hosts for storage if none are of that kind: next to each other or apart.
func (m *mixer) findStorage() {
	if len(m.storage) > 0 {
		return
	}
	n := max(1, len(m.hosts)/hostsPerDisk)
	step := 1
	if m.random.IntN(2) == 0 {
		step = len(m.hosts) / n
	}
	for k := range n {
		at := len(m.hosts) + k - 1 - k*step // k are gone
		m.storage = append(m.storage, m.hosts[at])
		m.hosts = slices.Delete(m.hosts, at, at+1)
	}
	slices.Reverse(m.storage)
}

// turnOver has jobs come and go.
func (m *mixer) turnOver() {
	all := len(m.hosts)
	m.busy = make([]bool, all)
	most := float64(max(2, all/4))
	room := int(float64(all) * (0.75 + 0.2*m.random.Float64())) // for more jobs
	for placed := 0; placed < mixTurnovers*all || room > all/10 && placed < 2*mixTurnovers*all; {
		n := int(2 * math.Pow(most/2, m.random.Float64()))
		if m.random.IntN(4) > 0 {
			n = 1 << int(math.Log2(float64(n)))
		}
		for n > room {
			i := m.random.IntN(len(m.jobs))
			room += m.setBusy(&m.jobs[i], false)
			m.jobs = slices.Delete(m.jobs, i, i+1)
		}
		j := m.place(n)
		room -= m.setBusy(&j, true)
		m.jobs = append(m.jobs, j)
		placed += n
	}
}

// setBusy gives the hosts of a job away or takes them back; it says how many they are.
func (m *mixer) setBusy(j *mixJob, busy bool) int {
	for _, h := range j.hosts {
		m.busy[h] = busy
	}
	return len(j.hosts)
}

// place finds hosts for a job of n.
func (m *mixer) place(n int) (j mixJob) {
	var free []int
	for h := range m.hosts {
		if !m.busy[h] {
			free = append(free, h)
		}
	}
	switch at := m.random.IntN(10); {
	case at < 5:
		j.hosts, j.how = m.byLeaf(free, n), "by leaf"
	case at < 8:
		j.hosts, j.how = free[:n], "in order"
	default:
		m.random.Shuffle(len(free), func(i, k int) { free[i], free[k] = free[k], free[i] })
		j.hosts, j.how = free[:n], "scattered"
	}
	slices.Sort(j.hosts)
	j.least = len(m.hosts[j.hosts[0]].Ports)
	for _, h := range j.hosts {
		j.most, j.least = max(j.most, len(m.hosts[h].Ports)), min(j.least, len(m.hosts[h].Ports))
	}
	return j
}

// byLeaf takes n free hosts: of the leaf with the fewest that are enough, else all of the leaf with
// most and so on. The first leaf of several alike counts, by its first free host.
func (m *mixer) byLeaf(free []int, n int) (hosts []int) {
	on := make(map[fabric.NodeID][]int)
	var leaves []fabric.NodeID
	for _, h := range free {
		leaf := m.f.PeerSwitch(m.hosts[h].Ports[0])
		if on[leaf] == nil {
			leaves = append(leaves, leaf)
		}
		on[leaf] = append(on[leaf], h)
	}
	for n > 0 {
		best := leaves[0]
		for _, l := range leaves[1:] {
			have, had := len(on[l]), len(on[best])
			if min(have, had) >= n && have < had || min(have, had) < n && have > had {
				best = l
			}
		}
		take := min(n, len(on[best]))
		hosts, n = append(hosts, on[best][:take]...), n-take
		on[best] = on[best][take:]
	}
	return hosts
}

// write draws what jobs send, and writes the file.
func (m *mixer) write(seed uint64) []byte {
	busy, writers := 0, 0.0
	count := make(map[string]int)
	for i := range m.jobs {
		j := &m.jobs[i]
		m.fill(j)
		busy += len(j.hosts)
		writers += j.store * float64(len(j.hosts))
	}
	stores := 0
	for _, h := range m.storage {
		stores += len(h.Ports)
	}
	// A host's part of what storage takes.
	part := mixUnit * float64(stores) * (0.5 + 0.5*m.random.Float64()) / max(writers, 1)
	b := fmt.Appendf(nil, "# mix %d: %s on %d of %s, %d more for storage\n", seed, text.Count(len(m.jobs), "job", "jobs"), busy, text.Count(len(m.hosts), "host", "hosts"), len(m.storage))
	b = fmt.Appendf(b, "background: %.2f\njobs:\n", 0.01*float64(1+m.random.IntN(20)))
	storage := jobs.List(m.storage)
	for i := range m.jobs {
		j := &m.jobs[i]
		count[j.kind]++
		var hosts []jobs.Host
		for _, h := range j.hosts {
			hosts = append(hosts, m.hosts[h])
		}
		b = fmt.Appendf(b, "  - name: %s-%d # %d hosts, %s\n    hosts: %q\n", j.kind, count[j.kind], len(j.hosts), j.how, jobs.List(hosts))
		if j.perHost > 0 {
			b = fmt.Appendf(b, "    ranks-per-host: %d\n", j.perHost)
		}
		b = append(b, "    patterns:\n"...)
		for _, line := range j.lines {
			b = fmt.Appendf(b, "      - %s\n", line)
		}
		if j.store > 0 {
			size := min(part*j.store, float64(mixUnit)/4) / float64(max(j.perHost, 1))
			b = fmt.Appendf(b, "      - {pattern: to-storage, size: %s, to: %q}\n", sizeText(size), storage)
		}
	}
	return b
}

// fill draws the patterns of a job.
func (m *mixer) fill(j *mixJob) {
	n := len(j.hosts)
	budget := mixUnit * (0.25 + 0.5*m.random.Float64()) // of a port
	kind := m.random.IntN(20)
	if kind >= 13 && kind < 16 && n > mostAll || kind >= 18 && !m.joined {
		kind = 0
	}
	switch {
	case kind < 9:
		j.kind, j.store = "train", 1
		if j.most > 1 && m.joined && m.random.IntN(4) == 0 {
			j.perHost = j.most
		}
		reduce := []string{"allreduce-ring", "allreduce-tree"}[m.random.IntN(2)]
		if n <= mostExperts {
			experts := budget * (0.2 + 0.4*m.random.Float64())
			m.add(j, "alltoall", experts)
			budget -= experts
		}
		m.add(j, reduce, budget)
	case kind < 13:
		j.kind, j.store = "halo", 0.5*float64(m.random.IntN(2))
		if m.joined && haloRanks*n <= mostRanks {
			j.perHost = haloRanks
		}
		m.add(j, "halo", 0.9*budget)
		m.add(j, "allreduce-tree", 0.1*budget)
	case kind < 16:
		j.kind = "spectral"
		m.add(j, "alltoall", budget)
	case kind < 18:
		j.kind = "graph"
		m.add(j, fmt.Sprintf("permutation:%d", 1+m.random.IntN(1000)), budget)
	default:
		j.kind, j.store = "write", 8
	}
	if !m.joined {
		j.store = 0 // ports send to all of storage
	}
}

// add adds a pattern with at most the given bytes on a port of a host.
func (m *mixer) add(j *mixJob, pattern string, bytes float64) {
	most := map[string]float64{"halo": 6, "allreduce-ring": 2, "allreduce-tree": 2}[pattern] // of a rank, by its size
	if j.perHost > 0 {
		bytes /= math.Ceil(float64(j.perHost) / float64(j.least))
	} else {
		bytes *= float64(j.most) // of a size each port has its part
	}
	weight := 1 << m.random.IntN(3)
	j.lines = append(j.lines, fmt.Sprintf("{pattern: %q, size: %s, weight: %d}", pattern, sizeText(bytes/max(most, 1)/float64(weight)), weight))
}

// sizeText is a size in a file, rounded down.
func sizeText(bytes float64) string {
	if bytes >= 16<<20 {
		return fmt.Sprintf("%dM", int(bytes)>>20)
	}
	return fmt.Sprintf("%dK", max(1, int(bytes)>>10))
}

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
	mixStore = regexp.MustCompile(`to-storage, size: (\d+)([MK])`)
)

// TestMix has mixes of jobs on fabrics of many shapes: each is a file of traffic for its fabric, no host
// has two jobs, all bytes arrive and no port gets more than 4G.
func TestMix(t *testing.T) {
	const unit = 4 << 30
	for name, f := range mixFabrics(t) {
		r := short.Must(lft.Minhop{}.Route(t.Context(), f, lft.Options{}))(t)
		last := []byte(nil)
		for seed := range uint64(short.Of(12, 3)) {
			mix, err := drawMix(f, seed)
			if err != nil {
				t.Fatal(name, err)
			}
			again, _ := drawMix(f, seed)
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
			result := short.Must(x.Judge(t.Context(), r.Tables, 1))(t)
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
	pair := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 4, Degree: 2, Hosts: 3}))(t)
	if _, err := drawMix(pair, 1); err == nil || err.Error() != "3 hosts have a cable to a switch that joins them; want 4 at least for a mix of jobs" {
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
		n := short.Must(strconv.Atoi(s))(t)
		list = append(list, n)
	}
	return list
}

var (
	mixes   = flag.Int("mixes", 0, "seeds of mixes for each fabric of TestGap and TestTimes; 0 for two and one")
	first   = flag.Uint64("first", 1, "the first of these seeds")
	fast    = flag.Bool("fast", false, "TestTimes also has cables between switches that never limit")
	fabrics = flag.String("fabrics", "rails", "fabrics of TestTimes, with commas: rails, radix 24, like Selene")
)

// gapFabrics have names of sites, so that hosts with several adapters are one host each.
var gapFabrics = map[string]func() (*fabric.Fabric, error){
	"rails": func() (*fabric.Fabric, error) {
		return gen.Tree(gen.TreeSpec{Ports: 64, Pods: []int{4}, Rails: short.Of(8, 4), Hosts: 32, Spines: 16, Parallel: 2})
	},
	"radix 24": func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 24, Levels: 3}) },
	// As Selene's compute fabric: 450 hosts with eight rails, which meet in core switches only.
	"like Selene": func() (*fabric.Fabric, error) {
		return gen.Tree(gen.TreeSpec{Ports: 40, Pods: []int{7, 6, 6, 6}, Rails: 8, RailSpines: true, Hosts: 18, Spines: 10, Parallel: 2, Groups: 10, Cores: 14})
	},
}

// gapFabric makes one of gapFabrics, and its tables without jobs.
func gapFabric(t testing.TB, name string) *compile.Result {
	t.Helper()
	if gapFabrics[name] == nil {
		t.Fatalf("no fabric %q", name)
	}
	f := short.Must(gapFabrics[name]())(t)
	f = short.Must(gen.Options{Names: "site", Seed: 1}.Apply(f))(t)
	engine := short.Must(compile.EngineByName("updn"))(t)
	return short.Must(compile.Run(t.Context(), f, engine, compile.Options{}))(t)
}

// fitMix makes the tables for a mix, and finds the time of the busiest cable with those and without them.
func fitMix(t *testing.T, plain *compile.Result, seed uint64) (r *compile.Result, before, after bound.Times) {
	t.Helper()
	opt := compile.Options{Demand: func(ctx context.Context, f *fabric.Fabric) (*lft.Demand, error) {
		return readMix(t, f, seed).Demand(ctx)
	}}
	r = short.Must(compile.Run(t.Context(), plain.Routing.Fabric, plain.Engine, opt))(t)
	g := r.Routing.Fabric
	d := short.Must(opt.Demand(t.Context(), g))(t)
	for _, x := range []struct {
		to     *bound.Times
		tables *lft.Tables
	}{{&before, plain.Routing.Tables}, {&after, r.Routing.Tables}} {
		*x.to = short.Must(bound.TimesUnder(t.Context(), g, x.tables, d))(t)
	}
	return r, before, after
}

// readMix is the jobs of a mix in a fabric.
func readMix(t *testing.T, f *fabric.Fabric, seed uint64) *jobs.Traffic {
	t.Helper()
	mix := short.Must(drawMix(f, seed))(t)
	file := short.Must(jobs.Read("mix.yaml", folder{"mix.yaml": string(mix)}.open))(t)
	return short.Must(file.In(f, nil))(t)
}

// median of numbers, which it sorts.
func median(list []float64) float64 {
	slices.Sort(list)
	return (list[len(list)/2] + list[(len(list)-1)/2]) / 2
}

// BenchmarkChanges finds tables for other jobs, with those for a mix of jobs in memory, at radix 24: a job ends, one
// starts, or all jobs change. What jobs send is added up, bounded and fitted; nothing is verified. Loads are for the
// least that any tables have.
func BenchmarkChanges(b *testing.B) {
	const changes = 6
	plain := gapFabric(b, "radix 24")
	draw := func(seed uint64) string {
		mix := short.Must(drawMix(plain.Routing.Fabric, seed))(b)
		return string(mix)
	}
	demandOf := func(mix string) func(context.Context, *fabric.Fabric) (*lft.Demand, error) {
		return func(ctx context.Context, f *fabric.Fabric) (*lft.Demand, error) {
			file, err := jobs.Read("mix.yaml", folder{"mix.yaml": mix}.open)
			if err != nil {
				return nil, err
			}
			t, err := file.In(f, nil)
			if err != nil {
				return nil, err
			}
			return t.Demand(ctx)
		}
	}
	for seed := uint64(1); seed <= changes; seed++ {
		all, other := draw(seed), draw(seed+changes)
		const name = "\n  - name: "
		one := strings.Index(all, name) + 1
		without := all[:one] + all[one+strings.Index(all[one:], name)+1:]
		for _, x := range []struct{ what, from, to string }{{"ends", all, without}, {"starts", without, all}, {"all", all, other}} {
			b.Run(fmt.Sprintf("mix%d/%s", seed, x.what), func(b *testing.B) {
				from := short.Must(compile.Run(b.Context(), plain.Routing.Fabric, plain.Engine, compile.Options{Demand: demandOf(x.from)}))(b)
				f := from.Routing.Fabric
				var changed compile.Changes
				var fit *lft.Fit
				for b.Loop() {
					b.StopTimer()
					l, ok := lft.NewIncremental(plain.Engine.Engine.(lft.IncrementalEngine), fabric.NewStableIndex(f), from.Routing)
					if !ok {
						b.Fatal("the tables cannot be kept")
					}
					b.StartTimer()
					d := short.Must(demandOf(x.to)(b.Context(), f))(b)
					opt := lft.FitOptions{Most: uint64(lft.DefaultUniformFloor * float64(max(l.MaxLoad(), l.LoadBound()))), Slack: new(lft.Options).RebalanceFactor(), Blocks: math.MaxInt}
					if least := bound.FindUnder(f, d); least != nil {
						opt.Least = least.Load
					}
					fit = short.Must(l.Fit(b.Context(), d, opt))(b)
					b.StopTimer()
					changed = compile.ChangesSince(from.Routing, l.Routing())
					b.StartTimer()
				}
				b.ReportMetric(float64(changed.Entries), "entries")
				b.ReportMetric(float64(changed.Blocks), "blocks")
				b.ReportMetric(float64(fit.After)/float64(fit.Least), "load")
				b.ReportMetric(float64(fit.Before)/float64(fit.Least), "load-before")
			})
		}
	}
}

// TestGap has tables for mixes of jobs on larger fabrics: how much they close of the gap between tables that
// are balanced for all to all and the time of the busiest cable of a host, which no tables are below.
func TestGap(t *testing.T) {
	for _, name := range short.Of(short.Usual([]string{"rails", "radix 24", "like Selene"}, []string{"rails"}), []string{"rails"}) {
		plain := gapFabric(t, name)
		all := lft.GreatestLoad(plain.Routing.Fabric, plain.Routing.Tables)
		var closed []float64
		worst := 0.0 // load of all to all
		for i := range uint64(max(*mixes, short.Of(2, 1))) {
			seed := *first + i
			r, before, after := fitMix(t, plain, seed)
			uniform := float64(lft.GreatestLoad(r.Routing.Fabric, r.Routing.Tables)) / float64(all)
			worst = max(worst, uniform)
			if r.Verify.Verdict != verify.VerdictClean || uniform > lft.DefaultUniformFloor || after.Switches > before.Switches {
				t.Errorf("%s, seed %d: verdict %s, all to all %.3f times its load, %v seconds, %v before", name, seed, r.Verify.Verdict, uniform, after, before)
			}
			gap := before.Switches - before.Hosts
			if gap <= 0 {
				t.Logf("%s, seed %d: %.3f seconds, %.3f of a host", name, seed, before.Switches, before.Hosts)
				continue
			}
			closed = append(closed, (before.Switches-max(after.Switches, after.Hosts))/gap)
			t.Logf("%s, seed %d: %.3f seconds of %.3f, %.3f of a host: %.3f of the gap; all to all %.3f", name, seed, after.Switches, before.Switches, before.Hosts, closed[len(closed)-1], uniform)
		}
		if len(closed) == 0 {
			continue
		}
		middle := median(closed)
		t.Logf("%s: %d mixes with a gap, of which tables for them close %.3f in the median, %.3f to %.3f; all to all %.3f at most", name, len(closed), middle, closed[0], closed[len(closed)-1], worst)
		if middle < 2./3 {
			t.Errorf("%s: %.3f of the gap in the median, want 2/3", name, middle)
		}
	}
}

// timesScale is the part of the bytes of mixes that TestTimes simulates. With 1/16384 latency outweighs the gap.
func timesScale() float64 { return short.Of(1./1024, 1./4096) }

// TestTimes simulates mixes of jobs that have a gap, with tables for all to all and with those for the jobs: how much
// sooner jobs are done. With -fast it also has all cables between switches so fast that those of hosts alone
// limit, and says how much of what cables between switches cost is gone.
func TestTimes(t *testing.T) {
	for name := range strings.SplitSeq(*fabrics, ",") {
		plain := gapFabric(t, name)
		var loads, ends, means, gone []float64
		for i := range uint64(max(*mixes, 1)) {
			seed := *first + i
			r, before, after := fitMix(t, plain, seed)
			if before.Switches <= before.Hosts {
				continue
			}
			g := r.Routing.Fabric
			uniform, fitted := runMix(t, g, plain.Routing.Tables, seed), runMix(t, g, r.Routing.Tables, seed)
			logs, jobs := 0.0, 0
			for k, was := range uniform.Jobs {
				if was.At > 0 {
					logs, jobs = logs+math.Log(float64(fitted.Jobs[k].At)/float64(was.At)), jobs+1
				}
			}
			ends, means = append(ends, float64(fitted.Time)/float64(uniform.Time)), append(means, math.Exp(logs/float64(jobs)))
			loads = append(loads, max(after.Switches, after.Hosts)/before.Switches)
			t.Logf("%s, seed %d: %.3f of the load; the last job is done after %.3f of its time, a job after %.3f in the mean; limits %s, %s before",
				name, seed, loads[len(loads)-1], ends[len(ends)-1], means[len(means)-1], fitted.Limits.Limit, uniform.Limits.Limit)
			if !*fast {
				continue
			}
			least := float64(runMix(t, fastInside(g), plain.Routing.Tables, seed).Time) / float64(uniform.Time)
			t.Logf("%s, seed %d: after %.3f with fast cables", name, seed, least)
			if least < 0.98 {
				gone = append(gone, (1-ends[len(ends)-1])/(1-least))
			}
		}
		if len(ends) == 0 {
			continue
		}
		load, end, mean := median(loads), median(ends), median(means)
		t.Logf("%s: %d mixes with a gap: %.3f of the load in the median, %.3f to %.3f; the last job is done after %.3f of its time in the median, %.3f to %.3f; a job after %.3f in the mean, %.3f to %.3f", name, len(ends), load, loads[0], loads[len(loads)-1], end, ends[0], ends[len(ends)-1], mean, means[0], means[len(means)-1])
		if len(gone) > 0 {
			t.Logf("%s: in %d mixes cables between switches cost 2 %% or more, of which %.3f are gone in the median", name, len(gone), median(gone))
		}
		if end > 1 || mean > 1 {
			t.Errorf("%s: the last job is done after %.3f of its time, a job after %.3f in the mean: want less", name, end, mean)
		}
	}
}

// runMix simulates a mix.
func runMix(t *testing.T, f *fabric.Fabric, tables *lft.Tables, seed uint64) *sim.JobsDone {
	t.Helper()
	cfg := sim.Defaults()
	works, _, background, err := readMix(t, f, seed).Works(jobs.WorkOptions{Scale: timesScale(), MTU: cfg.MTU})
	short.Check(t, err)
	all := sim.Jobs{Background: background, Seed: 1}
	for _, w := range works {
		var job sim.Job
		for _, p := range w.Parts {
			job.Parts = append(job.Parts, sim.Part{Program: p.Program, Ports: p.Ports, Hosts: p.Hosts})
		}
		all.Jobs = append(all.Jobs, job)
	}
	return short.Must(sim.RunJobs(t.Context(), sim.Network{State: state.State{Fabric: f, Tables: tables}}, cfg, all, 0))(t)
}

// fastInside has cables of 2.4 Tb/s between switches.
func fastInside(f *fabric.Fabric) *fabric.Fabric {
	links := make(map[fabric.PortID]fabric.Link)
	for p := range fabric.PortID(f.NumPorts()) {
		if peer := f.Peer(p); peer != fabric.NoPort && f.IsSwitch(f.Owner(p)) && f.IsSwitch(f.Owner(peer)) {
			links[p] = fabric.Link{Width: 12, Speed: fabric.XDR}
		}
	}
	return f.WithLinks(links)
}
