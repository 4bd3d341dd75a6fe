package place_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/audit/place"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/traffic"
)

var (
	trials = flag.Int("trials", 0, "random clusters; 0 for a few")
	mixes  = flag.Int("mixes", 1, "mixes of jobs on each fabric")
)

// cluster is a fabric with jobs that run.
type cluster struct {
	f       *fabric.Fabric
	tables  *lft.Tables
	hosts   []jobs.Host
	running *jobs.Traffic
	busy    map[fabric.NodeID]string
	loads   map[string]map[fabric.PortID]float64 // by job: bytes by channel, counted slowly
}

func (c *cluster) isFree(h *jobs.Host) bool { return c.busy[h.Nodes[0]] == "" }

func (c *cluster) free() (list []jobs.Host) {
	for i := range c.hosts {
		if c.isFree(&c.hosts[i]) {
			list = append(list, c.hosts[i])
		}
	}
	return list
}

// draw draws a cluster: a tree, one with rails, a torus or an irregular network.
func draw(t *testing.T, random *rand.Rand) *cluster {
	t.Helper()
	var f *fabric.Fabric
	var err error
	o := gen.Options{Names: "site", Seed: random.Uint64()}
	switch random.IntN(4) {
	case 0:
		f, err = gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})
	case 1:
		f, err = gen.Tree(gen.TreeSpec{Pods: []int{3}, Ports: 40, Rails: 2, Hosts: 5, Spines: 2, Parallel: 1})
	case 2:
		f, err = mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Wrap: []bool{true, true}, Hosts: 2})
	default:
		o.Names = ""
		o.Speeds = []fabric.Speed{fabric.HDR, fabric.NDR}
		f, err = gen.Irregular(gen.IrregularSpec{Switches: 6 + 2*random.IntN(3), Degree: 3, Hosts: 14 + random.IntN(8), Seed: random.Uint64()})
	}
	if err == nil {
		f, err = o.Apply(f)
	}
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{LMC: random.IntN(2)})
	}
	short.Check(t, err)
	r := short.Must(lft.Minhop{}.Route(t.Context(), f, lft.Options{}))(t)
	c := &cluster{f: f, tables: r.Tables, hosts: jobs.Hosts(f, fabric.HostKind), running: jobs.New(f), loads: make(map[string]map[fabric.PortID]float64)}
	order := random.Perm(len(c.hosts))
	for i := range 1 + random.IntN(3) {
		n := min(len(order)/2, 2+random.IntN(4))
		var hosts []jobs.Host
		for _, h := range order[:n] {
			hosts = append(hosts, c.hosts[h])
		}
		order = order[n:]
		name, pattern, bytes := fmt.Sprintf("job%d", i), patterns[random.IntN(len(patterns))], float64((1+random.IntN(64))<<20)
		short.Check(t, c.running.Add(name, hosts, pattern, bytes, 0))
		c.loads[name], _ = c.count(t, hosts, pattern, bytes, 0)
	}
	c.busy = c.running.Busy()
	return c
}

var patterns = []string{"alltoall", "allreduce-ring", "allreduce-tree", "broadcast", "halo", "permutation:5", "shift:2"}

// count follows each pair of ranks through the tables by itself: bytes by channel, and those that do not
// arrive.
func (c *cluster) count(t *testing.T, hosts []jobs.Host, name string, size float64, perHost int) (loads map[fabric.PortID]float64, lost float64) {
	t.Helper()
	o := short.Must(traffic.Parse(name))(t)
	var sets [][]fabric.PortID
	for k := 0; perHost == 0 && k < 2; k++ {
		var set []fabric.PortID
		for _, h := range hosts {
			if k < len(h.Ports) {
				set = append(set, h.Ports[k])
			}
		}
		if set != nil {
			sets = append(sets, set)
		}
	}
	if perHost > 0 {
		sets = [][]fabric.PortID{nil}
		for _, h := range hosts {
			for k := range perHost {
				sets[0] = append(sets[0], h.Ports[k*len(h.Ports)/perHost])
			}
		}
	}
	host := make(map[fabric.PortID]string)
	for _, h := range hosts {
		for _, p := range h.Ports {
			host[p] = h.Name
		}
	}
	loads = make(map[fabric.PortID]float64)
	for _, set := range sets {
		p := short.Must(o.Pattern(len(set)))(t)
		for dst, to := range set {
			for src, units := range p.Senders(len(set), dst) {
				from := set[src]
				if host[from] == host[to] {
					continue
				}
				bytes := float64(units) * o.Share(len(set)) * size / float64(len(sets))
				lids := slices.Collect(c.f.LIDs(to))
				for _, lid := range lids {
					path := c.follow(from, to, lid)
					if path == nil {
						lost += bytes / float64(len(lids))
					}
					for _, channel := range path {
						loads[channel] += bytes / float64(len(lids))
					}
				}
			}
		}
	}
	return loads, lost
}

// follow lists the channels from a port to a LID of another one; nil if packets do not arrive.
func (c *cluster) follow(from, to fabric.PortID, lid fabric.LID) (path []fabric.PortID) {
	path = []fabric.PortID{from}
	for at := c.f.PeerSwitch(from); len(path) < 100; at = c.f.PeerSwitch(path[len(path)-1]) {
		out := c.f.Port(at, c.tables.Row(at)[lid])
		if path = append(path, out); c.f.Peer(out) == to {
			return path
		}
		if c.f.PeerSwitch(out) == fabric.NoNode {
			return nil
		}
	}
	return nil
}

// figures recounts a set.
func (c *cluster) figures(t *testing.T, hosts []jobs.Host, opt place.Options) (s place.Set) {
	t.Helper()
	loads, lost := c.count(t, hosts, opt.Pattern, opt.Bytes, opt.PerHost)
	rate := func(p fabric.PortID) float64 { return float64(c.f.Link(p).Mbps()) * 1e6 / 8 }
	s.Lost = lost
	sent, passed := 0.0, 0.0
	for p, bytes := range loads {
		time := bytes / rate(p)
		s.Alone = max(s.Alone, time)
		switch {
		case !c.f.IsSwitch(c.f.Owner(p)):
			s.Ideal, sent = max(s.Ideal, time), sent+bytes
		case c.f.PeerSwitch(p) == fabric.NoNode:
			s.Ideal, passed = max(s.Ideal, time), passed+bytes
		default:
			passed += bytes
			shared := false
			for _, other := range c.loads {
				if both := min(bytes, other[p]); both > 0 {
					shared = true
					time += both / rate(p)
					s.Delay = max(s.Delay, both/rate(p))
				}
			}
			if shared {
				s.Shared++
			}
		}
		s.Seconds = max(s.Seconds, time)
	}
	if sent > 0 {
		s.Hops = passed / sent
	}
	s.Cost = s.Seconds + s.Delay
	return s
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b))+1e-9 }

// TestMake recounts all sets of random clusters by following each pair, and compares them with first fit.
func TestMake(t *testing.T) {
	random := rand.New(rand.NewPCG(22, 4))
	for trial := range max(*trials, short.Of(60, 10)) {
		c := draw(t, random)
		free := c.free()
		opt := place.Options{Hosts: 1 + random.IntN(len(free)), Pattern: patterns[random.IntN(len(patterns))], Bytes: float64((1 + random.IntN(64)) << 20), PerHost: random.IntN(3), Sets: 100, Tries: 30}
		r := short.Must(place.Make(t.Context(), c.f, c.tables, c.running, c.hosts, c.isFree, opt))(t)
		again, _ := place.Make(t.Context(), c.f, c.tables, c.running, c.hosts, c.isFree, opt)
		short.MustEqual(t, text(t, r), text(t, again), "trial", trial, "two calls")
		if r.Free != len(free) || r.All != len(c.hosts) || len(r.Sets) == 0 || r.Tried < len(r.Sets) {
			t.Fatalf("trial %d: %d of %d hosts are free, want %d of %d; %d sets of %d", trial, r.Free, r.All, len(free), len(c.hosts), len(r.Sets), r.Tried)
		}
		var last *place.Set
		firstFit := false
		for i := range r.Sets {
			s := &r.Sets[i]
			var hosts []jobs.Host
			for _, h := range free {
				if slices.Contains(s.Names, h.Name) {
					hosts = append(hosts, h)
				}
			}
			if len(hosts) != opt.Hosts || len(s.Names) != opt.Hosts || s.Hosts != jobs.List(hosts) || s.Rank != i+1 {
				t.Fatalf("trial %d: set %d of %d hosts is %v, %s", trial, i, opt.Hosts, s.Names, s.Hosts)
			}
			want := c.figures(t, hosts, opt)
			if !near(s.Cost, want.Cost) || !near(s.Seconds, want.Seconds) || !near(s.Alone, want.Alone) || !near(s.Ideal, want.Ideal) || !near(s.Delay, want.Delay) ||
				!near(s.Hops, want.Hops) || s.Shared != want.Shared || !near(s.Lost, want.Lost) {
				t.Fatalf("trial %d: %v, %+v is %+v, want %+v", trial, opt, s.Names, *s, want)
			}
			if (s.Busiest == nil) != (s.Shared == 0) || s.Busiest != nil && (s.Busiest.Added <= 0 || s.Busiest.Running <= 0) || (s.Delayed == "") != (s.Delay == 0) {
				t.Errorf("trial %d: %d cables are shared, the busiest is %v; %v of %q", trial, s.Shared, s.Busiest, s.Delay, s.Delayed)
			}
			if last != nil && (last.Cost > s.Cost*(1+1e-6) || slices.Equal(last.Names, s.Names)) {
				t.Errorf("trial %d: set %d costs %v, that before %v", trial, i, s.Cost, last.Cost)
			}
			firstFit = firstFit || slices.Contains(s.Families, "first fit")
			last = s
		}
		first := c.figures(t, free[:opt.Hosts], opt)
		if !firstFit || r.Sets[0].Cost > first.Cost*(1+1e-6) {
			t.Errorf("trial %d: cost %v, first fit %v, is among the sets: %v", trial, r.Sets[0].Cost, first.Cost, firstFit)
		}
	}
}

func text(t *testing.T, r *place.Result) string {
	t.Helper()
	b := short.Must(json.Marshal(r))(t)
	return string(b)
}

// TestAgainstAll compares the advice with all sets of hosts there are, where these are few.
func TestAgainstAll(t *testing.T) {
	random := rand.New(rand.NewPCG(22, 7))
	best, cases, sum, firsts := 0, 0, 0.0, 0.0
	for range max(*trials, 40) {
		c := draw(t, random)
		free := c.free()
		free = free[:min(len(free), 10)]
		isFree := func(h *jobs.Host) bool {
			return slices.ContainsFunc(free, func(x jobs.Host) bool { return x.Name == h.Name })
		}
		opt := place.Options{Hosts: 2 + random.IntN(min(4, len(free)-2)), Pattern: patterns[random.IntN(len(patterns))], Bytes: 64 << 20, Sets: 1, Tries: 200}
		r := short.Must(place.Make(t.Context(), c.f, c.tables, c.running, c.hosts, isFree, opt))(t)
		least := math.Inf(1)
		for members := uint(0); members < 1<<len(free); members++ {
			var hosts []jobs.Host
			for i := range free {
				if members>>i&1 == 1 {
					hosts = append(hosts, free[i])
				}
			}
			if len(hosts) == opt.Hosts {
				least = min(least, c.figures(t, hosts, opt).Cost)
			}
		}
		got := r.Sets[0].Cost
		if least == 0 { // 2 hosts that shift by 2
			if got > 0 {
				t.Errorf("cost %v, and a set costs nothing", got)
			}
			continue
		}
		if got < least*(1-1e-6) {
			t.Fatalf("cost %v, and the least of all sets is %v", got, least)
		}
		cases++
		if near(got, least) {
			best++
		}
		sum += got / least
		firsts += c.figures(t, free[:opt.Hosts], opt).Cost / least
	}
	t.Logf("%d of %d are best; mean %.3f times the least cost, first fit %.3f", best, cases, sum/float64(cases), firsts/float64(cases))
	if best < cases*9/10 || sum > 1.05*float64(cases) {
		t.Errorf("%d of %d are best, and the mean is %.3f times the least cost", best, cases, sum/float64(cases))
	}
}

// TestMixes has what families and the search are worth beside mixes of jobs on larger fabrics.
func TestMixes(t *testing.T) {
	random := rand.New(rand.NewPCG(22, 9))
	tree := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 3}))(t)
	half := short.Must(gen.Tree(gen.TreeSpec{Pods: []int{16}, Ports: 40, Rails: 1, Hosts: 24, Spines: 12, Parallel: 1}))(t)
	rails := short.Must(gen.Tree(gen.TreeSpec{Pods: []int{8}, Ports: 64, Rails: 4, Hosts: 32, Spines: 16, Parallel: 2}))(t)
	torus := short.Must(mesh.Generate(mesh.Spec{Dims: []int{8, 8}, Wrap: []bool{true, true}, Hosts: 4}))(t)
	irregular := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 40, Degree: 6, Hosts: 200, Seed: 1}))(t)
	type fabricOf struct {
		name string
		f    *fabric.Fabric
	}
	for _, x := range short.Part(2, []fabricOf{{"tree of radix 12", tree}, {"tree, 2 to 1", half}, {"4 rails", rails}, {"8x8 torus", torus}, {"irregular", irregular}}) {
		f := short.Must(gen.Options{Names: "site", Seed: 1}.Apply(x.f))(t)
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
		r := short.Must(lft.Minhop{}.Route(t.Context(), f, lft.Options{}))(t)
		all := jobs.Hosts(f, fabric.HostKind)
		families, searched, cases := 0.0, 0.0, 0
		for range max(*mixes, 1) {
			running := jobs.New(f)
			rest := slices.Clone(all)
			random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
			for rest = rest[:len(rest)*(15+random.IntN(4))/20]; len(rest) > 1; {
				n := min(len(rest), 2<<random.IntN(6))
				short.Check(t, running.Add(fmt.Sprintf("job of %d at %d", n, len(rest)), rest[:n], patterns[random.IntN(len(patterns))], 1<<30, 0))
				rest = rest[n:]
			}
			c := &cluster{hosts: all, running: running, busy: running.Busy()}
			free := len(c.free())
			for range 4 {
				opt := place.Options{Hosts: 2 + random.IntN(min(free-2, len(all)/4)), Pattern: patterns[random.IntN(len(patterns))], Bytes: 1 << 30, Sets: 1 << 10}
				with := opt
				with.Tries = 200
				a := short.Must(place.Make(t.Context(), f, r.Tables, running, all, c.isFree, opt))(t)
				b := short.Must(place.Make(t.Context(), f, r.Tables, running, all, c.isFree, with))(t)
				first := slices.IndexFunc(a.Sets, func(s place.Set) bool { return slices.Contains(s.Families, "first fit") })
				if a.Sets[first].Cost == 0 {
					continue
				}
				if b.Sets[0].Cost > a.Sets[0].Cost {
					t.Errorf("%s: the search makes %v of %v", x.name, b.Sets[0].Cost, a.Sets[0].Cost)
				}
				cases++
				families += a.Sets[0].Cost / a.Sets[first].Cost
				searched += b.Sets[0].Cost / a.Sets[first].Cost
			}
		}
		families, searched = families/float64(cases), searched/float64(cases)
		t.Logf("%s: %d jobs, families cost %.3f of first fit, with a search %.3f", x.name, cases, families, searched)
		if searched > 0.95 || searched > 0.95*0.95 && *mixes > 1 {
			t.Errorf("%s: families cost %.3f of first fit, with a search %.3f", x.name, families, searched)
		}
	}
}

// TestTooMany has fewer hosts than wanted, and a grid of other sides.
func TestTooMany(t *testing.T) {
	c := draw(t, rand.New(rand.NewPCG(1, 1)))
	r, err := place.Make(t.Context(), c.f, c.tables, c.running, c.hosts, c.isFree, place.Options{Hosts: len(c.free()) + 1, Pattern: "alltoall", Bytes: 1, Sets: 1})
	if err != nil || len(r.Sets) != 0 || r.Sets == nil {
		t.Errorf("%v, %v", r, err)
	}
	_, err = place.Make(t.Context(), c.f, c.tables, c.running, c.hosts, c.isFree, place.Options{Hosts: 3, Pattern: "halo:2x2", Bytes: 1, Sets: 1})
	if err == nil || cmp.Compare(err.Error(), "job: a grid of 4 for 3 ranks") != 0 {
		t.Error(err)
	}
}
