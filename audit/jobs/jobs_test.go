package jobs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/traffic"
	"github.com/ibweave/ibweave/verify/bound"
)

// folder is files by name.
type folder map[string]string

func (d folder) open(name string) ([]byte, error) {
	text, ok := d[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

// cluster is a random fabric with hosts of one or two adapters.
type cluster struct {
	f      *fabric.Fabric
	tables *lft.Tables
	hosts  []string
	ports  map[string][]fabric.PortID // by host
	host   map[fabric.PortID]string
}

func newCluster(t *testing.T, random *rand.Rand) *cluster {
	t.Helper()
	f := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 4 + 2*random.IntN(3), Degree: 3, Hosts: 8 + random.IntN(12), Seed: random.Uint64()}))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{LMC: random.IntN(2)}))(t)
	c := &cluster{ports: map[string][]fabric.PortID{}, host: map[fabric.PortID]string{}}
	given := make(map[fabric.GUID]string)
	adapters := random.Perm(f.NumNodes() - f.NumSwitches())
	for len(adapters) > 0 {
		name := fmt.Sprintf("n%d", len(c.hosts)+1)
		for k := range min(1+random.IntN(2), len(adapters)) {
			n := fabric.NodeID(f.NumSwitches() + adapters[0])
			adapters = adapters[1:]
			given[f.Node(n).GUID] = fmt.Sprintf("%s mlx5_%d", name, k)
			p := f.Port(n, 1)
			c.ports[name], c.host[p] = append(c.ports[name], p), name
		}
		c.hosts = append(c.hosts, name)
	}
	c.f = f.WithNames(given)
	r := short.Must(lft.Minhop{}.Route(t.Context(), c.f, lft.Options{}))(t)
	c.tables = r.Tables
	for range 4 * random.IntN(2) { // some entries are wrong
		row := c.tables.Row(fabric.NodeID(random.IntN(f.NumSwitches())))
		row[random.IntN(len(row))] = fabric.PortNum(random.IntN(4))
	}
	return c
}

// flow is a sender and a receiver.
type flow [2]fabric.PortID

// demand is a job and what it sends, counted plainly.
type demand struct {
	name  string
	text  string
	bytes map[flow]float64
}

// draw draws a job: its text in a file, and its bytes.
func (c *cluster) draw(random *rand.Rand, name string, files folder) demand {
	var hosts []string
	for _, i := range random.Perm(len(c.hosts))[:2+random.IntN(len(c.hosts)-2)] {
		hosts = append(hosts, c.hosts[i])
	}
	d := demand{name: name, bytes: map[flow]float64{}, text: fmt.Sprintf("  - name: %s\n    hosts: [%s]\n", name, strings.Join(hosts, ", "))}
	var sets [][]fabric.PortID
	switch perHost := random.IntN(4); {
	case perHost == 0:
		for k := range 2 {
			var set []fabric.PortID
			for _, h := range hosts {
				if k < len(c.ports[h]) {
					set = append(set, c.ports[h][k])
				}
			}
			if set != nil {
				sets = append(sets, set)
			}
		}
	case random.IntN(2) == 0:
		d.text += fmt.Sprintf("    ranks-per-host: %d\n", perHost)
		sets = [][]fabric.PortID{nil}
		for _, h := range hosts {
			for k := range perHost {
				sets[0] = append(sets[0], c.ports[h][k*len(c.ports[h])/perHost])
			}
		}
	default:
		d.text += fmt.Sprintf("    ranks-per-host: %d\n    order: cyclic\n", perHost)
		sets = [][]fabric.PortID{nil}
		for k := range perHost {
			for _, h := range hosts {
				sets[0] = append(sets[0], c.ports[h][k*len(c.ports[h])/perHost])
			}
		}
	}
	d.text += "    patterns:\n"
	for range 1 + random.IntN(2) {
		c.drawPattern(random, &d, sets, files)
	}
	return d
}

// drawPattern adds a pattern among sets of ranks.
func (c *cluster) drawPattern(random *rand.Rand, d *demand, sets [][]fabric.PortID, files folder) {
	size, weight := float64((1+random.IntN(64))<<16), float64(1+random.IntN(3))
	names := []string{"allreduce-ring", "reduce-scatter", "all-gather", "allreduce-tree", "alltoall", "broadcast", "halo", "shift:-2", "permutation:7", "to-storage"}
	if len(sets) == 1 {
		names = append(names, "matrix")
	}
	name := names[random.IntN(len(names))]
	more := ""
	storage := c.hosts[random.IntN(len(c.hosts))]
	var recorded [][]int64
	switch name {
	case "to-storage":
		more = ", to: " + storage
	case "matrix":
		file := fmt.Sprintf("%d.csv", len(files))
		more = ", file: " + file
		for range sets[0] {
			row := make([]int64, len(sets[0]))
			for k := range row {
				row[k] = int64(random.IntN(3) * random.IntN(1000))
			}
			recorded = append(recorded, row)
			files[file] += strings.Trim(strings.Join(strings.Fields(fmt.Sprint(row)), ";"), "[]") + "\n"
		}
	}
	d.text += fmt.Sprintf("      - {pattern: %q, size: %.0f, weight: %g%s}\n", name, size, weight, more)
	for _, set := range sets {
		n := len(set)
		data := size * weight / float64(len(sets))
		send := func(i, k int, bytes float64) {
			if c.host[set[i]] != c.host[set[k]] {
				d.bytes[flow{set[i], set[k]}] += bytes
			}
		}
		of := func(p traffic.Pattern, unit float64) {
			for k := range n {
				for i, units := range p.Senders(n, k) {
					send(i, k, float64(units)*unit)
				}
			}
		}
		for i := range n {
			switch name {
			case "allreduce-ring":
				send(i, (i+1)%n, data*2*float64(n-1)/float64(n))
			case "reduce-scatter", "all-gather":
				send(i, (i+1)%n, data*float64(n-1)/float64(n))
			case "alltoall":
				for k := range n {
					send(i, k, data/float64(n))
				}
			case "broadcast":
				if i > 0 {
					send(i&(i-1), i, data)
				}
			case "shift:-2":
				send(i, ((i-2)%n+n)%n, data)
			case "to-storage":
				for _, p := range c.ports[storage] {
					if c.host[set[i]] != storage {
						d.bytes[flow{set[i], p}] += data / float64(len(c.ports[storage]))
					}
				}
			case "matrix":
				for k := range n {
					send(i, k, float64(recorded[i][k])*data)
				}
			}
		}
		switch name { // the room traffic has tests of these
		case "allreduce-tree":
			of(traffic.Tree, data/2)
		case "halo":
			of(traffic.Halo(traffic.Dims(n, 3)), data)
		case "permutation:7":
			o, _ := traffic.Parse(name)
			p, _ := o.Pattern(n)
			of(p, data)
		}
	}
}

// about returns true if two amounts are the same up to the rounding of bytes, same if two times are.
func about(a, b float64) bool { return same(a, b) || math.Abs(a-b) < 0.1 }
func same(a, b float64) bool  { return math.Abs(a-b) <= 1e-5*math.Max(a, b) }

// TestJudge compares loads, times and matrices with a plain count, on random fabrics with random jobs, in
// tables of which some lose packets. The order of jobs in the file changes nothing.
func TestJudge(t *testing.T) {
	for seed := range uint64(short.Of(60, 12)) {
		random := rand.New(rand.NewPCG(seed, 0))
		c := newCluster(t, random)
		files := folder{}
		var list []demand
		for i := range 1 + random.IntN(4) {
			list = append(list, c.draw(random, fmt.Sprintf("j%d", i), files))
		}
		background := float64(random.IntN(2)) * 0.25
		var sum *lft.Demand
		judge := func() *jobs.Result {
			files["traffic"] = fmt.Sprintf("background: %g\njobs:\n", background)
			for _, d := range list {
				files["traffic"] += d.text
			}
			x, err := jobs.Read("traffic", files.open)
			if err != nil {
				t.Fatalf("%v in\n%s", err, files["traffic"])
			}
			in, err := x.In(c.f, nil)
			if err != nil {
				t.Fatalf("%v in\n%s", err, files["traffic"])
			}
			r := short.Must(in.Judge(t.Context(), c.tables, math.MaxInt))(t)
			sum = short.Must(in.Demand(t.Context()))(t)
			return r
		}
		got := judge()
		c.check(t, list, background, got)
		c.checkDemand(t, list, background, got, sum)
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, files["traffic"])
		}
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		before := sum
		if a, b := mustJSON(t, got), mustJSON(t, judge()); a != b {
			t.Fatalf("seed %d: in another order\n%s\nwas\n%s", seed, b, a)
		}
		if !reflect.DeepEqual(before, sum) {
			t.Fatalf("seed %d: another demand in another order", seed)
		}
	}
}

// checkDemand compares the times of a demand, which jobs and background are together, with those of the
// cables, which are of each by itself.
func (c *cluster) checkDemand(t *testing.T, list []demand, background float64, got *jobs.Result, d *lft.Demand) {
	t.Helper()
	if (d == nil) != (got.Bytes == 0) {
		t.Fatalf("demand %v of %v bytes", d, got.Bytes)
	}
	if d == nil {
		return
	}
	times, err := bound.TimesUnder(t.Context(), c.f, c.tables, d)
	want := 0.0
	for _, x := range got.Loads.Cables {
		want = max(want, x.Seconds)
	}
	if err != nil || !same(times.Switches, want) {
		t.Errorf("%v, the busiest cable takes %v, want %v", err, times.Switches, want)
	}
	sent, received := map[fabric.PortID]float64{}, map[fabric.PortID]float64{}
	ends, total := c.f.CAPorts(), 0.0
	for _, x := range list {
		for at, bytes := range x.bytes {
			sent[at[0]] += bytes
			received[at[1]] += bytes
			total += bytes
		}
	}
	most := 0.0
	for _, p := range ends {
		// The background is as much to each port.
		rest := total * background / (1 - background) / float64(len(ends))
		most = max(most, (max(sent[p], received[p])+rest)*8/float64(c.f.Link(p).Mbps())/1e6)
	}
	if !same(times.Hosts, most) {
		t.Errorf("the busiest cable of a host takes %v, want %v", times.Hosts, most)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data := short.Must(json.Marshal(v))(t)
	return string(data)
}

// check counts all that a result has.
func (c *cluster) check(t *testing.T, list []demand, background float64, got *jobs.Result) {
	t.Helper()
	total := 0.0
	for _, d := range list {
		for _, n := range d.bytes {
			total += n
		}
	}
	ends := c.f.CAPorts()
	if background > 0 {
		d := demand{name: jobs.Background, bytes: map[flow]float64{}}
		for _, p := range ends {
			for _, q := range ends {
				if p != q {
					d.bytes[flow{p, q}] = total * background / (1 - background) / float64(len(ends)*(len(ends)-1))
				}
			}
		}
		total /= 1 - background
		list = append(slices.Clone(list), d)
	}
	if !about(got.Bytes, total) || !about(got.Background, total*background) {
		t.Errorf("%v bytes, %v in the background, want %v", got.Bytes, got.Background, total)
	}
	loads := make(map[string]map[fabric.PortID]float64) // by job
	lost := make(map[string]float64)
	for _, d := range list {
		loads[d.name] = map[fabric.PortID]float64{}
		for at, bytes := range d.bytes {
			lids := slices.Collect(c.f.LIDs(at[1]))
			for _, lid := range lids {
				path, err := c.tables.Path(c.f, at[0], lid, nil)
				if err != nil {
					lost[d.name] += bytes / float64(len(lids))
					continue
				}
				for _, p := range path {
					loads[d.name][p] += bytes / float64(len(lids))
				}
			}
		}
	}
	rate := func(p fabric.PortID) float64 { return float64(c.f.Link(p).Mbps()) * 1e6 / 8 }
	for i, j := range got.Jobs {
		want := jobs.Job{Job: j.Job, Lost: lost[j.Job], Times: &jobs.Times{}}
		for p, own := range loads[j.Job] {
			sum := 0.0
			for _, other := range loads {
				sum += min(own, other[p])
			}
			if !c.f.IsSwitch(c.f.Owner(p)) || c.f.PeerSwitch(p) == fabric.NoNode {
				want.Ideal = max(want.Ideal, own/rate(p))
			}
			want.Alone, want.Together = max(want.Alone, own/rate(p)), max(want.Together, sum/rate(p))
		}
		if want.Ideal > 0 {
			want.Alone, want.Together = want.Alone/want.Ideal, want.Together/want.Ideal
		}
		if !about(j.Lost, want.Lost) || !same(j.Ideal, want.Ideal) || !same(j.Alone, want.Alone) || !same(j.Together, want.Together) {
			t.Errorf("job %d: %s, want %s", i, mustJSON(t, j), mustJSON(t, want))
		}
		if blamed := j.Blame != ""; blamed != (j.Together > 1.000001) {
			t.Errorf("%s together %v times as long, by %q", j.Job, j.Together, j.Blame)
		} else if blamed && loads[j.Blame][c.port(j.Cable)] == 0 {
			t.Errorf("%s is slowed down by %s on a cable that it does not use", j.Job, j.Blame)
		}
	}
	c.checkCables(t, loads, got.Loads)
}

func (c *cluster) port(x *jobs.Cable) fabric.PortID {
	n, _ := c.f.NodeByGUID(x.From.Node)
	return c.f.Port(n, x.From.Port)
}

// checkCables compares the cables between switches with loads by job.
func (c *cluster) checkCables(t *testing.T, loads map[string]map[fabric.PortID]float64, got *jobs.LoadsOf) {
	t.Helper()
	listed := make(map[fabric.PortID]bool)
	last := math.Inf(1)
	for i := range got.Cables {
		x := &got.Cables[i]
		p := c.port(x)
		sum := 0.0
		for _, part := range x.Jobs {
			sum += part.Bytes
			if !about(part.Bytes, loads[part.Job][p]) {
				t.Errorf("%v of %s: %v bytes, want %v", x.From, part.Job, part.Bytes, loads[part.Job][p])
			}
		}
		if listed[p] || x.Seconds > last || !about(sum, x.Bytes) {
			t.Errorf("cable %d: %+v", i, x)
		}
		listed[p], last = true, x.Seconds
	}
	shared := make(map[[2]string]int)
	for a, of := range loads {
		for p, bytes := range of {
			if !c.f.IsSwitch(c.f.Owner(p)) || c.f.PeerSwitch(p) == fabric.NoNode || bytes < 1e-2 {
				continue
			}
			if !listed[p] {
				t.Errorf("port %d carries %v bytes of %s and is not listed", p, bytes, a)
			}
			for b, other := range loads {
				if a < b && b != jobs.Background && a != jobs.Background && other[p] >= 1e-2 {
					shared[[2]string{a, b}]++
				}
			}
		}
	}
	for _, s := range got.Shared {
		short.Equal(t, shared[s.Jobs], s.Cables, s.Jobs, "share cables")
		// The two alone: with all jobs of the cable, many jobs on the same hosts had the cube of their number.
		short.Equal(t, len(s.Worst.Jobs), 2, s.Jobs, "jobs on the worst cable that they share")
		for _, part := range s.Worst.Jobs {
			if !slices.Contains(s.Jobs[:], part.Job) || !about(part.Bytes, loads[part.Job][c.port(&s.Worst)]) {
				t.Errorf("%v: %+v", s.Jobs, s.Worst)
			}
		}
		delete(shared, s.Jobs)
	}
	if len(shared) > 0 {
		t.Errorf("not listed: jobs that share cables, %v", shared)
	}
}

const oneJob = "jobs:\n  - name: a\n    "

// TestErrors has what is wrong in a file, with its place.
func TestErrors(t *testing.T) {
	c := newCluster(t, rand.New(rand.NewPCG(1, 1)))
	const patterns = "\n    patterns: [{pattern: alltoall, size: 1M}]\n"
	for text, want := range map[string]string{
		"":                             "the file is empty",
		"jobs: []\n":                   "traffic:1:no jobs",
		"jobs: [{name: a}]\nx: 1\n":    `traffic:2:unknown key "x"; want background, jobs, slurm`,
		"background: 1\njobs: []\n":    "traffic:1:\"1\"; want the part of all bytes",
		"background: .nan\njobs: []\n": "traffic:1:",
		oneJob + "hosts: n1" + patterns + "  - name: a\n    hosts: n2" + patterns: "traffic:5:a job \"a\" is in line 2 already",
		oneJob + "hosts: n1\n":                                                                             "traffic:2:job a has no patterns",
		oneJob + "group: x\n    hosts: n1" + patterns:                                                      "traffic:2:job a has 2 of hosts, slurm and group",
		"jobs:\n  - name: background\n    hosts: n1" + patterns:                                            "a job called \"background\"",
		oneJob + "hosts: 'n[1-'" + patterns:                                                                "traffic:3:",
		oneJob + "hosts: n999" + patterns:                                                                  "traffic:3:no node is called",
		oneJob + "hosts: n[1-2],N2" + patterns:                                                             "traffic:3:\"N2\" is named twice",
		oneJob + "hosts: " + c.f.Name(0).Text + patterns:                                                   "is a switch: want hosts",
		oneJob + "group: x" + patterns:                                                                     "traffic:3:group \"x\"; want the file of groups",
		oneJob + "slurm: 5" + patterns:                                                                     "traffic:3:a Slurm job without a file",
		"slurm: s\n" + oneJob + "slurm: 5" + patterns:                                                      "traffic:4:no Slurm job 5 in the file",
		"slurm: s\n" + oneJob + "slurm: 2" + patterns:                                                      "traffic:4:Slurm job 2 has no hosts",
		"slurm: bad\n" + oneJob + "slurm: 2" + patterns:                                                    "bad:2:",
		"slurm: none\n" + oneJob + "slurm: 2" + patterns:                                                   "none:0:no JobId; want",
		oneJob + "hosts: n1\n    order: cyclic" + patterns:                                                 "want ranks-per-host beside it",
		oneJob + "hosts: n1\n    ranks-per-host: 0" + patterns:                                             "traffic:4:\"0\"; want a number from 1",
		oneJob + "hosts: n1\n    patterns: [{pattern: gossip, size: 1}]":                                   "traffic:4:pattern \"gossip\": want allreduce-ring, ",
		oneJob + "hosts: n1\n    patterns: [{pattern: alltoall}]":                                          "traffic:4:pattern alltoall has no size",
		oneJob + "hosts: n1\n    patterns: [{pattern: alltoall, size: 3X}]":                                "traffic:4:\"3X\"; want bytes",
		oneJob + "hosts: n1\n    patterns: [{pattern: alltoall, size: 3M, weight: -1}]":                    "want a weight from 1e-06 to 1e+06",
		oneJob + "hosts: n1\n    patterns: [{pattern: to-storage, size: 3M}]":                              "want the hosts of storage",
		oneJob + "hosts: n1\n    patterns: [{pattern: alltoall, size: 3M, file: m}]":                       "want a file beside matrix",
		oneJob + "hosts: 'n[1-4]'\n    ranks-per-host: 1\n    patterns: [{pattern: 'halo:2x3', size: 3M}]": "traffic:5:a: a grid of 6 for 4 ranks",
		oneJob + "hosts: 'n[1-2]'\n    ranks-per-host: 1\n    patterns: [{pattern: matrix, file: m}]":      "a matrix of 4 ranks, and the job has 2 ranks on 2 hosts; want ranks-per-host: 2",
	} {
		files := folder{"traffic": text, "m": "1 2 3 4\n1 2 3 4\n1 2 3 4\n1 2 3 4\n", "none": "x",
			"s": "JobId=1 NodeList=n1\nJobId=2\n NodeList=(null)\n", "bad": "{\"jobs\":\n[}"}
		x, err := jobs.Read("traffic", files.open)
		if err == nil {
			_, err = x.In(c.f, nil)
		}
		var parse *fabric.ParseError
		if err == nil || !errors.As(err, &parse) || !strings.Contains(fmt.Sprintf("%s:%d:%v", parse.File, parse.Line, parse.Err), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// oneOnFour is a job with one pattern on four hosts of a cluster.
func oneOnFour(t *testing.T, pattern string) (*cluster, *jobs.Traffic) {
	t.Helper()
	c := newCluster(t, rand.New(rand.NewPCG(1, 1)))
	files := folder{"traffic": oneJob + "hosts: 'n[1-4]'\n    patterns: [{pattern: " + pattern + "}]\n"}
	x := short.Must(jobs.Read("traffic", files.open))(t)
	in := short.Must(x.In(c.f, nil))(t)
	return c, in
}

// TestTooMuch refuses more bytes than can be counted.
func TestTooMuch(t *testing.T) {
	c, in := oneOnFour(t, "alltoall, size: 1024T, weight: 1000000")
	if _, err := in.Judge(t.Context(), c.tables, 0); err == nil || !strings.Contains(err.Error(), "a and the jobs before it send more than") {
		t.Error(err)
	}
}

// TestFewRanks: much data of few ranks goes in more pieces than there may be, and less of it in fewer.
func TestFewRanks(t *testing.T) {
	_, in := oneOnFour(t, "allreduce-ring, size: "+short.Of(short.Usual("1024T", "1T"), "1T"))
	if works, scale, _, err := in.Works(jobs.WorkOptions{}); err != nil || len(works) != 1 || scale >= 1 {
		t.Errorf("%d works, scale %g, %v", len(works), scale, err)
	}
}

// TestSources finds hosts by Slurm's files and by groups.
func TestSources(t *testing.T) {
	c := newCluster(t, rand.New(rand.NewPCG(1, 1)))
	files := folder{
		"d/traffic": "slurm: s\njobs:\n  - {name: a, slurm: 7, patterns: [{pattern: alltoall, size: 1K}]}\n  - {name: b, group: 'rack:r', patterns: [{pattern: alltoall, size: 1K}]}\n",
		"groups":    "rack: {r: 'n[2-4]'}\n",
	}
	g := short.Must(groups.Read("groups", files.open))(t)
	set := short.Must(g.In(c.f))(t)
	for _, text := range []string{
		`{"jobs": [{"job_id": 6, "nodes": ""}, {"job_id": 7, "job_state": ["RUNNING"], "nodes": "n[1-3]"}]}`,
		"JobId=6 JobName=x\n   NodeList=\n\nJobId=7 ArrayJobId=5\n   ReqNodeList=n9 ExcNodeList=(null)\n   NodeList=n[1-3]\n   BatchHost=n1\n",
		"JobId=7 JobName=x ReqNodeList=(null) NodeList=n[1-3] BatchHost=n1\n", // --oneliner
	} {
		files["d/s"] = text
		x := short.Must(jobs.Read("d/traffic", files.open))(t)
		in := short.Must(x.In(c.f, set))(t)
		r := short.Must(in.Judge(t.Context(), nil, 0))(t)
		if r.Jobs[0].Hosts != 3 || r.Jobs[1].Hosts != 3 || r.Loads != nil || len(r.Overlaps) != 1 || r.Overlaps[0].Hosts != "n[2-3]" {
			t.Errorf("%s: %s", text, mustJSON(t, r))
		}
	}
}

// TestAddSlurm has the jobs of Slurm that hold hosts, and not those that wait or have ended.
func TestAddSlurm(t *testing.T) {
	f := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 4, Degree: 3, Hosts: 12, Seed: 1}))(t)
	given := make(map[fabric.GUID]string)
	for i, p := range f.CAPorts() {
		given[f.Node(f.Owner(p)).GUID] = fmt.Sprintf("n%02d", i+1)
	}
	f = f.WithNames(given)
	for name, text := range map[string]string{
		"json": `{"jobs": [{"job_id": 1, "nodes": "n[01-02]", "job_state": ["RUNNING"]}, {"job_id": 2, "nodes": "n03", "job_state": "SUSPENDED"},
			{"job_id": 3, "nodes": "n[04-05]", "job_state": ["TIMEOUT"]}, {"job_id": 4, "nodes": "n06,x1", "job_state": ["CANCELLED", "COMPLETING"]},
			{"job_id": 5, "nodes": "", "job_state": ["PENDING"]}, {"job_id": 6, "nodes": "n[11-12]"}, {"job_id": 7, "nodes": "x2", "job_state": ["RUNNING"]}]}`,
		"text": "JobId=1 A=\n JobState=RUNNING\n NodeList=n[01-02]\nJobId=2\n JobState=SUSPENDED NodeList=n03\nJobId=3 JobState=TIMEOUT\n NodeList=n[04-05]\n" +
			"JobId=4 JobState=COMPLETING NodeList=n06,x1\nJobId=5 JobState=PENDING NodeList=(null)\nJobId=6 NodeList=n[11-12]\nJobId=7 JobState=RUNNING NodeList=x2\n",
	} {
		x := jobs.New(f)
		hosts := jobs.Hosts(f, fabric.HostKind)
		if err := x.Add("mine", hosts[11:], "alltoall", 1, 0); err != nil { // n12
			t.Fatal(err)
		}
		unknown, err := x.AddSlurm(name, []byte(text), 1<<20)
		if err != nil {
			t.Fatal(name, err)
		}
		got := map[string][]string{}
		for n, job := range x.Busy() {
			got[job] = append(got[job], f.Name(n).Text)
		}
		for _, list := range got {
			slices.Sort(list)
		}
		want := map[string][]string{"mine": {"n12"}, "slurm 1": {"n01", "n02"}, "slurm 2": {"n03"}, "slurm 4": {"n06"}, "slurm 6": {"n11"}}
		if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(unknown) != "[x1 x2]" {
			t.Errorf("%s: %v, want %v; unknown %v", name, got, want, unknown)
		}
	}
	for text, want := range map[string]string{
		"":                    "file: no JobId; want what squeue --json",
		"JobId=4 NodeList=n[": "file: job 4: ",
	} {
		if _, err := jobs.New(f).AddSlurm("file", []byte(text), 1); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestMatrix reads matrices in all their forms.
func TestMatrix(t *testing.T) {
	for text, want := range map[string]string{
		"0,1.4,2\r\n# x\r\n3,9,4\r\n5,6,0": "0>1:1.4 0>2:2 1>0:3 1>2:4 2>0:5 2>1:6",
		"\ufeff0;1\n2;0\n":                 "0>1:1 1>0:2",
		"0\t1\n1e3\t0\n":                   "0>1:1 1>0:1000",
		" 0   1 \n 2 0\n\n":                "0>1:1 1>0:2",
		"from,to,count,bytes\n2,0,9,5\n0,2,9,7\n2,0,1,1\n1,1,1,1\n": "0>2:7 2>0:6",
		"\"src\" \"dst\" \"bytes\"\n0 1 8\n":                        "0>1:8",
		"0":                                                         "",
		"1,2\n3":                                                    "m:2: 1 cells; want 2 as in the first line",
		"1,2\n3,4\n5,6\n":                                           "m:3: more than 2 ranks",
		"1,2\n":                                                     "m:1: a matrix of 1 rows and 2 columns",
		"1,,2\n":                                                    "m:1: \"\"; want a number",
		"1,-2\n":                                                    "m:1: \"-2\"; want a number",
		"NaN\n":                                                     "m:1: \"NaN\"; want a number",
		"":                                                          "m: no numbers",
		"src,dst,bytes\n":                                           "m: no numbers",
		"src,dst,bytes\n1,99999999,1\n":                             "m:2: \"99999999\"; want the number of a rank, a whole number from 0 to 65535",
		"src,dst,bytes\n0,1,0.25\n0.0,1,5e-1\n1,0,1e15\n": "0>1:0.75 1>0:1e+15",
		"src,dst,bytes\n0,1,1e-9\n1.0,0,3e-9\n":           "0>1:1e-09 1>0:3e-09",
		"src,dst,bytes\n0,1,1\n1.9,2,1\n":                 "m:3: \"1.9\"; want the number of a rank, a whole number from 0 to 65535",
		"src,dst,bytes\n0,2.5,1\n":                        "m:2: \"2.5\"; want the number of a rank",
		"src,dst,bytes\n1,1\n":                            "m:2: 2 cells; want 3 as in the first line",
	} {
		m, err := jobs.ReadMatrix("m", []byte(text))
		var got []string
		if err != nil {
			if !strings.HasPrefix(err.Error(), want) || want == "" {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
			continue
		}
		p := short.Must(m.Operation().Pattern(m.Ranks()))(t)
		for dst := range m.Ranks() {
			for src, n := range p.Senders(m.Ranks(), dst) {
				got = append(got, fmt.Sprintf("%d>%d:%.9g", src, dst, float64(n)*m.Operation().Share(m.Ranks())))
			}
		}
		slices.Sort(got)
		short.Equal(t, strings.Join(got, " "), want, text, got)
	}
}

// TestMatrixTimesSize: what a matrix sends is its numbers times the size, whatever the one is divided and the
// other multiplied by.
func TestMatrixTimesSize(t *testing.T) {
	c, _ := oneOnFour(t, "alltoall, size: 1M")
	rng := rand.New(rand.NewPCG(13, 1))
	for range 200 {
		scale := math.Pow(10, 18*rng.Float64()-12)
		rows, want := "", 0.0
		for i := range 4 {
			for k := range 4 {
				amount := scale * rng.Float64()
				rows += fmt.Sprintf("%v ", amount)
				if i != k {
					want += amount
				}
			}
			rows += "\n"
		}
		size := math.Min(1e9/scale, 1e14)
		x := short.Must(jobs.Read("f", folder{"f": oneJob + fmt.Sprintf("hosts: 'n[1-4]'\n    ranks-per-host: 1\n    patterns: [{pattern: matrix, file: m, size: %.3f}]\n", size), "m": rows}.open))(t)
		traffic := short.Must(x.In(c.f, nil))(t)
		r := short.Must(traffic.Judge(t.Context(), nil, 1))(t)
		if size, _ = strconv.ParseFloat(fmt.Sprintf("%.3f", size), 64); !about(r.Bytes, want*size) {
			t.Errorf("amounts up to %g of %g bytes: %v bytes, want %v", scale, size, r.Bytes, want*size)
		}
	}
}

// FuzzMatrix reads anything as a matrix: an error has no result.
func FuzzMatrix(f *testing.F) {
	for _, text := range []string{"0,1\n2,0\n", "src dst bytes\n0 1 5\n", "1;2\n", "#\n\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := jobs.ReadMatrix("m", []byte(text))
		if (m == nil) == (err == nil) {
			t.Fatalf("%v, %v", m, err)
		}
		if err != nil {
			return
		}
		p := short.Must(m.Operation().Pattern(m.Ranks()))(t)
		for dst := range m.Ranks() {
			last := -1
			for src, n := range p.Senders(m.Ranks(), dst) {
				if src <= last || src >= m.Ranks() || src == dst || n <= 0 {
					t.Fatalf("%d sends %d to %d after %d", src, n, dst, last)
				}
				last = src
			}
		}
	})
}

// FuzzRead reads anything as traffic and as the file that it names: an error has no result, and what was
// read has finite loads.
func FuzzRead(f *testing.F) {
	for _, text := range [][2]string{
		{oneJob + "hosts: 'H-0000000000100000, H-0000000000100002'\n    patterns: [{pattern: alltoall, size: 1M}]\n", ""},
		{"background: 0.5\n" + oneJob + "hosts: [H-0000000000100000, H-0000000000100002]\n    patterns: [{pattern: matrix, file: x, weight: 1e3}]\n", "0,1\n2,3"},
		{"slurm: x\n" + oneJob + "slurm: 4\n    ranks-per-host: 3\n    patterns: [{pattern: 'halo:3', size: 1k}]\n", "JobId=4 NodeList=H-0000000000100000"},
		{"slurm: x\n" + oneJob + "slurm: 4\n    patterns: [{pattern: to-storage, to: H-0000000000100002, size: 9T}]\n", `{"jobs":[{"job_id":4,"nodes":"H-0000000000100000"}]}`},
	} {
		f.Add(text[0], text[1])
	}
	tree := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))(f)
	tree = short.Must(lft.AssignLIDs(tree, lft.LIDOptions{}))(f)
	routing := short.Must(lft.Minhop{}.Route(f.Context(), tree, lft.Options{}))(f)
	f.Fuzz(func(t *testing.T, text, other string) {
		x, err := jobs.Read("traffic", func(name string) ([]byte, error) {
			if name == "traffic" {
				return []byte(text), nil
			}
			return []byte(other), nil
		})
		if (x == nil) == (err == nil) {
			t.Fatalf("%v, %v", x, err)
		}
		if unknown, err := jobs.New(tree).AddSlurm("slurm", []byte(other), 1); err != nil && unknown != nil {
			t.Fatalf("%v, %v", unknown, err)
		}
		if err != nil {
			return
		}
		in, err := x.In(tree, nil)
		if (in == nil) == (err == nil) {
			t.Fatalf("%v, %v", in, err)
		}
		if err != nil {
			return
		}
		if r, err := in.Judge(t.Context(), routing.Tables, math.MaxInt); err == nil {
			mustJSON(t, r) // which has no number that is not finite
		}
	})
}
