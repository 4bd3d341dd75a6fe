package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/traffic"
)

// partOf is an operation among ports, each a host of its own, several times.
func partOf(t testing.TB, name string, size int64, times int, ports ...fabric.PortID) Part {
	t.Helper()
	o := short.Must(traffic.Parse(name))(t)
	w := traffic.NewWriter(len(ports), 1<<20)
	p := Part{Ports: ports}
	for i := range ports {
		p.Hosts = append(p.Hosts, int32(i))
	}
	for range times {
		short.Check(t, w.Add(o, p.Hosts, float64(size)))
	}
	p.Program = w.Program()
	return p
}

// fast is links of 100 Gb/s: 80 ps a byte.
func fast() Config {
	cfg := Defaults()
	cfg.Mbps = 100_000
	return cfg
}

func runJobs(t testing.TB, net Network, cfg Config, jobs Jobs) *JobsDone {
	t.Helper()
	m := short.Must(RunJobs(t.Context(), net, cfg, jobs, Second))(t)
	for i := range m.Jobs {
		if m.Jobs[i].Left != 0 || m.TimeUp {
			t.Fatalf("job %d: %+v", i, m.Jobs[i])
		}
	}
	return m
}

// TestAlphaBeta has collectives on the hosts of one switch, which nothing else loads: their time is that of the
// model of Hockney, in which a message of m bytes takes alpha + m beta, exactly. Alpha is that of
// two cables and a switch.
func TestAlphaBeta(t *testing.T) {
	t.Parallel()
	const n, beta, alpha = 16, 80, 2*10_000 + 100_000 // ps
	f, tables := newTree(t, n)
	net := Network{State: state.State{Fabric: f, Tables: tables}}
	for _, tt := range []struct {
		name string
		time func(size float64) float64
	}{
		{"allreduce-ring", func(s float64) float64 { return 2 * (n - 1) * (alpha + s/n*beta) }},
		{"reduce-scatter", func(s float64) float64 { return (n - 1) * (alpha + s/n*beta) }},
		{"all-gather", func(s float64) float64 { return (n - 1) * (alpha + s/n*beta) }},
		{"alltoall", func(s float64) float64 { return (n - 1) * (alpha + s/n*beta) }},
		{"alltoall-bruck", func(s float64) float64 { return 4 * (alpha + s/2*beta) }},
		{"broadcast", func(s float64) float64 { return 4 * (alpha + s*beta) }},
		{"broadcast-ring", func(s float64) float64 {
			pieces := math.Ceil(s / (512 << 10))
			return (n-1)*(alpha+s/pieces*beta) + (pieces-1)*s/pieces*beta
		}},
		{"shift:3", func(s float64) float64 { return alpha + s*beta }},
	} {
		for _, size := range short.Part(2, []int64{4096, 1 << 20, 4 << 20}) {
			for _, times := range []int{1, 3} {
				m := runJobs(t, net, fast(), Jobs{Jobs: []Job{{[]Part{partOf(t, tt.name, size, times, f.CAPorts()[:n]...)}}}})
				want := float64(times) * tt.time(float64(size))
				if tt.name == "broadcast" || tt.name == "broadcast-ring" {
					if times > 1 { // ranks that are done early begin again
						if float64(m.Time) > want {
							t.Errorf("%s of %d bytes, %d times: %s, want at most %g", tt.name, size, times, m.Time, want)
						}
						continue
					}
				}
				if got := float64(m.Time); math.Abs(got-want) > 1e-6*want {
					t.Errorf("%s of %d bytes, %d times: %s, want %g ns", tt.name, size, times, m.Time, want/1000)
				}
			}
		}
	}
}

// TestTreeTime bounds the all-reduce by trees, which has no closed formula: from below by what the busiest
// rank sends, and from above by twice that and the time of a piece on all levels, up and down. Children
// that send to one rank together take turns, and so do the two trees.
func TestTreeTime(t *testing.T) {
	t.Parallel()
	const n = 16
	f, tables := newTree(t, n)
	for _, size := range []int64{4096, 1 << 20, 16 << 20} {
		m := runJobs(t, Network{State: state.State{Fabric: f, Tables: tables}}, fast(), Jobs{Jobs: []Job{{[]Part{partOf(t, "allreduce-tree", size, 1, f.CAPorts()[:n]...)}}}})
		least := 2 * 80 * float64(size) // half to a parent and to two children in a tree, and to a parent in the other
		most := 2*least + 2*5*(120_000+3*80*math.Min(float64(size)/2, 128<<10))
		if m.Jobs[0].Crossbar != Time(least) {
			t.Errorf("%d bytes: %s on a crossbar, want %g ns", size, m.Jobs[0].Crossbar, least/1000)
		}
		if got := float64(m.Time); got < least || got > most {
			t.Errorf("%d bytes: %s, want %g to %g ns", size, m.Time, least/1000, most/1000)
		}
	}
}

// jobsSpy notes when messages are sent and arrive.
type jobsSpy struct {
	*jobsDriver
	born, at map[int64]Time
}

func (d *jobsSpy) Deliver(s *Sim, x *Delivery) {
	if x.Tag > noiseTag {
		d.born[x.Tag] = x.Born
		if x.Last {
			d.at[x.Tag] = x.At
		}
	}
	d.jobsDriver.Deliver(s, x)
}

// TestDependencies holds random jobs to a slow oracle: each message is sent when the last one that it waits for arrives,
// and not before or after. Messages inside a host arrive at once.
func TestDependencies(t *testing.T) {
	t.Parallel()
	names := []string{"allreduce-ring", "allreduce-tree", "reduce-scatter", "all-gather", "alltoall", "alltoall-bruck", "broadcast", "broadcast-ring", "halo", "shift:2", "permutation"}
	f, tables := newTree(t, 4)
	hosts := f.CAPorts()
	for seed := range uint64(short.Of(60, 15)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		jobs := Jobs{Seed: seed, Background: float64(rng.IntN(2) * 1_000_000)}
		var said []string
		for range 1 + rng.IntN(3) {
			var job Job
			for range 1 + rng.IntN(2) {
				perm := rng.Perm(len(hosts))[:2+rng.IntN(12)]
				ports := make([]fabric.PortID, len(perm))
				for i, k := range perm {
					ports[i] = hosts[k]
				}
				name := names[rng.IntN(len(names))]
				p := partOf(t, name, 1+rng.Int64N(200_000), 1+rng.IntN(2), ports...)
				for i := range p.Hosts { // some hosts have two ranks
					p.Hosts[i] /= 1 + int32(seed%2)
				}
				said = append(said, fmt.Sprintf("%s of %d", name, len(ports)))
				job.Parts = append(job.Parts, p)
			}
			jobs.Jobs = append(jobs.Jobs, job)
		}
		checkDependencies(t, Network{State: state.State{Fabric: f, Tables: tables}}, jobs, strings.Join(said, ", "))
	}
}

func checkDependencies(t *testing.T, net Network, jobs Jobs, said string) {
	t.Helper()
	spy := &jobsSpy{&jobsDriver{Jobs: jobs, out: &JobsDone{Jobs: make([]JobDone, len(jobs.Jobs))}}, map[int64]Time{}, map[int64]Time{}}
	s := short.Must(New(net, fast(), spy))(t)
	short.Must(spy.prepare(s))(t)
	s.Wake(0, beginJobs)
	short.Check(t, s.Run(t.Context(), Forever))
	part := int64(0)
	for job := range jobs.Jobs {
		last, bytes := Time(0), int64(0)
		for _, p := range jobs.Jobs[job].Parts {
			at := make([]Time, len(p.Program.Messages))
			for i, m := range p.Program.Messages {
				want := Time(0)
				for _, k := range p.Program.After(i) {
					want = max(want, at[k])
				}
				tag := part<<messageBits | int64(i)
				born, sent := spy.born[tag]
				over := m.Bytes > 0 && p.Hosts[m.Src] != p.Hosts[m.Dst]
				if sent != over || sent && born != want {
					t.Fatalf("%s: message %d of job %d is sent at %s (%v), want %s", said, i, job, born, sent, want)
				}
				if at[i] = want; over {
					at[i] = spy.at[tag]
					bytes += m.Bytes
				}
				last = max(last, at[i])
			}
			part++
		}
		if out := spy.out.Jobs[job]; out.Left != 0 || out.Messages > 0 && out.At != last || out.Bytes != bytes {
			t.Errorf("%s: job %d: %+v, want all at %s", said, job, out, last)
		}
	}
}

// TestInterference has two jobs that share the cable to a spine, and one that shares none.
func TestInterference(t *testing.T) {
	t.Parallel()
	f, tables := newTree(t, 4)
	net := Network{State: state.State{Fabric: f, Tables: tables}}
	h := f.CAPorts() // four of each leaf; static tables have one cable for all that goes from a leaf to another one
	job := func(size int64, ports ...fabric.PortID) Job {
		return Job{[]Part{partOf(t, "shift:1", size, 1, ports...)}}
	}
	// Of two hosts, each sends to the other one.
	a, b, c := job(1<<20, h[0], h[4]), job(1<<21, h[1], h[5]), job(1<<20, h[8], h[12])
	all := runJobs(t, net, fast(), Jobs{Jobs: []Job{a, b, c}})
	for i, want := range []float64{2, 1.5, 1} { // a shares the cable all the time, b half of it
		alone := runJobs(t, net, fast(), Jobs{Jobs: []Job{[]Job{a, b, c}[i]}})
		if slowdown := float64(all.Jobs[i].At) / float64(alone.Jobs[0].At); math.Abs(slowdown-want) > 0.02 {
			t.Errorf("job %d: %s alone, %s together, want %g", i, alone.Jobs[0].At, all.Jobs[i].At, want)
		}
		if len(alone.Waits) > 0 {
			t.Errorf("job %d alone waits: %+v", i, alone.Waits)
		}
	}
	by := make(map[[2]int]Time)
	for _, w := range all.Waits {
		by[[2]int{w.Job, w.By}] += w.Time
		leaf := f.Owner(f.Peer(h[0]))
		if f.Owner(w.Port) != leaf && f.Owner(w.Port) != f.Owner(f.Peer(h[4])) || !f.IsSwitch(f.Owner(f.Peer(w.Port))) {
			t.Errorf("%+v at %s, want the cables of two leaves", w, f.PortName(w.Port))
		}
	}
	if by[[2]int{0, 1}] == 0 || by[[2]int{1, 0}] == 0 || by[[2]int{0, 2}]+by[[2]int{2, 0}]+by[[2]int{2, 2}]+by[[2]int{1, 2}] > 0 {
		t.Errorf("%v", by)
	}
	if by[[2]int{0, 1}] < by[[2]int{0, 0}] {
		t.Errorf("the first job waits for itself rather than for the second one: %v", by)
	}
	again := runJobs(t, net, fast(), Jobs{Jobs: []Job{a, b, c}})
	if !reflect.DeepEqual(all, again) {
		t.Error("two runs differ")
	}
}

// TestBackground sends as many bytes as it should, and slows jobs down.
func TestBackground(t *testing.T) {
	t.Parallel()
	f, tables := newTree(t, 4)
	net := Network{State: state.State{Fabric: f, Tables: tables}}
	job := Job{[]Part{partOf(t, "alltoall", 1<<20, 4, f.CAPorts()...)}}
	quiet := runJobs(t, net, fast(), Jobs{Jobs: []Job{job}})
	loud := runJobs(t, net, fast(), Jobs{Jobs: []Job{job}, Background: 1 << 20, Seed: 1})
	if loud.Time <= quiet.Time || !slices.ContainsFunc(loud.Waits, func(w Waited) bool { return w.Job == 0 && w.By == 1 }) {
		t.Errorf("%s with background, %s without; %+v", loud.Time, quiet.Time, loud.Waits)
	}
	// At this rate, until the job is done.
	want := float64(1<<20) * float64(loud.Time) / float64(loud.Jobs[0].Crossbar)
	if got := float64(loud.Counts.Packets-quiet.Counts.Packets) * 4096; math.Abs(got/want-1) > 0.1 {
		t.Errorf("%g bytes of background, want %g", got, want)
	}
}

// TestLIDsInTurn has the LIDs of a port get messages in turn, and messages go over all SLs.
func TestLIDsInTurn(t *testing.T) {
	t.Parallel()
	f, _ := newTree(t, 2)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: 2}))(t)
	r := short.Must(lft.Minhop{}.Route(t.Context(), f, lft.Options{}))(t)
	net := Network{State: state.State{Fabric: f, Tables: r.Tables, SL2VL: lft.NewSL2VL(f, lft.IdentityVLs(4))}}
	d := &lidSpy{jobsDriver: &jobsDriver{Jobs: Jobs{Jobs: []Job{{[]Part{partOf(t, "alltoall", 400, 40, f.CAPorts()...)}}}, SLs: 4}, out: &JobsDone{Jobs: make([]JobDone, 1)}}}
	s := short.Must(New(net, fast(), d))(t)
	short.Must(d.prepare(s))(t)
	s.Wake(0, beginJobs)
	short.Check(t, s.Run(t.Context(), Forever))
	for k := range 4 {
		if d.lids[k] < 40 || d.sls[k] != 120 {
			t.Errorf("LIDs %v, SLs %v", d.lids, d.sls)
		}
	}
}

type lidSpy struct {
	*jobsDriver
	lids, sls [4]int
}

func (d *lidSpy) Deliver(s *Sim, x *Delivery) {
	d.lids[x.DLID-s.net.Fabric.LID(x.Port)]++
	d.sls[x.SL]++
	d.jobsDriver.Deliver(s, x)
}

// TestMulticastJob has a broadcast by multicast take one message's time.
func TestMulticastJob(t *testing.T) {
	t.Parallel()
	f, tables := newTree(t, 4)
	hosts := f.CAPorts()
	r := &lft.Routing{Fabric: f, Tables: tables}
	plan := short.Must(mft.Union{}.Build(t.Context(), r, []mft.Group{{Name: "a", Receivers: slices.Sorted(slices.Values(hosts)), Senders: hosts[:1]}}, mft.Options{}))(t)
	o, _ := traffic.Parse("broadcast")
	w := traffic.NewWriter(len(hosts), 1000)
	w.Multicast = true
	p := Part{Ports: hosts, Multicast: make([]MulticastTo, len(hosts))}
	for i := range hosts {
		p.Hosts = append(p.Hosts, int32(i))
	}
	short.Check(t, w.Add(o, p.Hosts, 1<<20))
	p.Program = w.Program()
	p.Multicast[0] = MulticastTo{MLID: plan.Trees[0].MLID, Receivers: plan.Trees[0].Receivers}
	m := runJobs(t, Network{State: state.State{Fabric: f, Tables: tables, Multicast: plan}}, fast(), Jobs{Jobs: []Job{{[]Part{p}}}})
	if want := Time(1<<20*80 + 4*10_000 + 3*100_000); m.Time != want || m.Jobs[0].Messages != 1 || m.Counts.Delivered != 15*256 || m.Jobs[0].Crossbar != 1<<20*80 {
		t.Errorf("%s, want %s: %+v", m.Time, want, m)
	}
}

// TestJobErrors refuses ports that cannot send, and says what the tables lose.
func TestJobErrors(t *testing.T) {
	t.Parallel()
	f, tables := newTree(t, 2)
	hosts := f.CAPorts()
	leaf := f.Peer(hosts[0])
	for _, ports := range [][]fabric.PortID{{hosts[0], leaf}, {hosts[0], -1}, {hosts[0], fabric.PortID(f.NumPorts())}} {
		_, err := RunJobs(t.Context(), Network{State: state.State{Fabric: f, Tables: tables}}, fast(), Jobs{Jobs: []Job{{[]Part{partOf(t, "shift:1", 1, 1, ports...)}}}}, 0)
		if err == nil || !strings.HasSuffix(err.Error(), "cannot send: want one of a CA or router, with a cable and a LID") {
			t.Errorf("%v: %v", ports, err)
		}
	}
	m, err := RunJobs(t.Context(), Network{State: state.State{Fabric: f}}, fast(), Jobs{Jobs: []Job{{[]Part{partOf(t, "shift:1", 1, 1, hosts...)}}, {}}}, 0)
	if err != nil || m.Jobs[0].Left != 4 || m.Jobs[0].At != 0 || m.Counts.Dropped != 4 || m.TimeUp {
		t.Errorf("%v: %+v", err, m)
	}
	m, err = RunJobs(t.Context(), Network{State: state.State{Fabric: f, Tables: tables}}, fast(), Jobs{Jobs: []Job{{[]Part{partOf(t, "shift:1", 1<<20, 1, hosts...)}}}}, Microsecond)
	if err != nil || !m.TimeUp || m.Time != Microsecond || m.Jobs[0].Left != 4 {
		t.Errorf("%v: %+v", err, m)
	}
}
