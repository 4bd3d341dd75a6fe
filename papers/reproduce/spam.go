package reproduce

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/report/chart"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
)

// spam1998 is the paper on SPAM, with figures 2 and 3 (S13 to S18).
var spam1998 = Paper{
	ID: "spam",
	Title: "Libeskind-Hadas, Mazzoni, Rajagopalan: Tree-based multicasting in wormhole-routed irregular topologies, " +
		"IPPS/SPDP 1998",
	Notes: []string{
		"Networks grow on the integer lattice from a random point; a network of N nodes has N switches with a processor each (E-S3).",
		"The spanning tree is breadth-first from the switch with the lowest number, where nothing else is said (E-S2).",
		"The distance by which channels are preferred is in hops; a worm takes the best one that is free, else it waits for the best (E-S4).",
		"In figure 3 hosts draw geometric times between messages, the negative binomial distribution of order 1, in cycles of 10 ns; --negative-binomial has another order (E-S4). " +
			"Latency is from when the startup of a message begins; a host that starts another message has it wait, which does not count.",
		"A point where more and more messages wait is left out.",
	},
	Experiments: []Experiment{
		{Name: "fig2", Title: "Fig. 2: latency of a single multicast against the number of destinations", Run: spamFigure2},
		{Name: "fig3", Title: "Fig. 3: latency against the arrival rate, 90 % unicast and 10 % multicast, 128 nodes", Run: spamFigure3},
		{Name: "multicast", Title: "Latency against the arrival rate, multicast alone, 128 nodes", Run: spamMulticasts},
		{Name: "large", Title: "Networks of up to 1,024 nodes, one multicast", Run: spamLarge},
		{Name: "schemes", Title: "Ways to multicast in an idle network of 128 nodes", Run: spamSchemes},
		{Name: "buffers", Title: "Latency against the size of input buffers, figure 3's traffic", Run: spamBuffers},
		{Name: "root", Title: "Multicasts that pass through the root", Run: spamRoot},
	},
	Exhibits: spamExhibits,
	Ours:     []string{"S15-3 deep", "S16 multicast", "S18 schemes", "S18 lock-step"},
	Claims: slices.Concat(claimsOf(spamRows...), spamSystemClaims, []Claim{
		on("S15-1", "latency is essentially independent of the number of destinations (figure 2)", "fig2", judgeSPAMDestinations),
		on("S15-2", "latency is largely independent of the size of the network (figure 2)", "fig2", judgeSPAMSize),
		on("S15-3", "a broadcast in 256 nodes takes under 14 µs (section 4)", "fig2", func(f *Figure) Finding { return judgeSPAMBroadcast(f, spamTrees[0]) }),
		on("S15-3 deep", "the same with any spanning tree: the paper asks for no kind of tree (section 3)", "fig2", func(f *Figure) Finding { return judgeSPAMBroadcast(f, spamTrees[2]) }),
		on("S15-4", "for software multicast the startups alone take 90 µs then (section 4)", "fig2", judgeSPAMSoftware),
		on("S15-5", "a more than six-fold difference (section 4)", "fig2", judgeSPAMFactor),
		on("S16", "even in relatively heavy traffic latency remains largely independent of the number of destinations (figure 3)", "fig3", judgeSPAMTraffic),
		on("S18", "destinations in contiguous parts relieve the root (section 5, future work)", "fig3", judgeSPAMParts),
	}),
}

// The messages and times of the paper (S13).
const (
	spamFlits   = 128
	spamStartup = 10 * sim.Microsecond
	spamCycle   = 10 * sim.Nanosecond // of a flit on a channel
)

// spamHardware returns the paper's hardware: buffers of one flit at inputs
// and outputs, 40 ns in each router for a header. Callers add startups.
func spamHardware() sim.Config {
	return sim.Config{
		Mbps: 800, FlitBytes: 1, RoutingDelay: 40 * sim.Nanosecond,
		BufferFlits: 1, OutputFlits: 1, Copying: sim.Wormhole,
	}
}

// spamRouters gives a simulation SPAM's routers.
// The tag of a message is the number of its worm.
type spamRouters struct {
	net   *updown.SPAMNetwork
	worms []*updown.Worm
	free  []int64
}

func (r *spamRouters) Route(s *sim.Sim, at fabric.NodeID, in fabric.PortID, m *sim.Message, to []fabric.PortID) []fabric.PortID {
	return r.net.Route(s, at, in, r.worms[m.Tag], to)
}

// send makes a host send a worm now, and returns its number.
func (r *spamRouters) send(s *sim.Sim, src fabric.PortID, x *updown.Worm) (tag int64, err error) {
	if n := len(r.free); n > 0 {
		tag = r.free[n-1]
		r.free = r.free[:n-1]
		r.worms[tag] = x
	} else {
		tag = int64(len(r.worms))
		r.worms = append(r.worms, x)
	}
	return tag, s.Send(sim.Message{Src: src, DLID: mft.MinMLID, Bytes: spamFlits, Tag: tag})
}

// spamTree is a kind of spanning tree, by its name in the figure.
type spamTree struct {
	name string
	tree updown.SpanningTree
	root func(*fabric.Fabric) fabric.NodeID
}

func lowestSwitch(*fabric.Fabric) fabric.NodeID { return 0 }

var spamTrees = []spamTree{
	{"breadth-first tree", updown.BreadthFirst, lowestSwitch},
	{"breadth-first tree from the centre", updown.BreadthFirst, updown.Centre},
	{"depth-first tree", updown.DepthFirst, lowestSwitch},
}

// network returns a random lattice with SPAM's routers.
func (k *spamTree) network(switches int, seed uint64) (*spamRouters, error) {
	f, err := gen.Lattice(switches, seed)
	if err != nil {
		return nil, err
	}
	net, err := updown.NewSPAMNetwork(f, k.root(f), k.tree)
	if err != nil {
		return nil, err
	}
	return &spamRouters{net: net}, nil
}

// someOf draws d different numbers from 0 to n-1, without the number but.
func someOf(rng *rand.Rand, n, d, but int) []int {
	list := rng.Perm(n)
	list = slices.DeleteFunc(list, func(i int) bool { return i == but })
	return list[:d]
}

func (r *spamRouters) hosts(list []int) []fabric.PortID {
	return text.Each(list, func(k int) fabric.PortID { return r.net.Fabric().CAPorts()[k] })
}

// partition makes k worms to the processors in a list, or
// one for each processor if these are fewer. Each goes to a
// contiguous part of the tree's order; parts differ by one
// destination at most. The paper proposes it as future work, so that
// not every multicast has the root as its least common ancestor.
func (r *spamRouters) partition(list []int, k int) ([]*updown.Worm, error) {
	all, err := r.net.NewWorm(r.hosts(list))
	if err != nil {
		return nil, err
	}
	sorted := all.Destinations(r.net.Fabric())
	worms := make([]*updown.Worm, max(1, min(k, len(sorted))))
	for i := range worms {
		part := sorted[i*len(sorted)/len(worms) : (i+1)*len(sorted)/len(worms)]
		if worms[i], err = r.net.NewWorm(part); err != nil {
			return nil, err
		}
	}
	return worms, nil
}

// alone returns the latency of one multicast in an idle network.
func (r *spamRouters) alone(ctx context.Context, src int, to []int) (sim.Time, error) {
	x, err := r.net.NewWorm(r.hosts(to))
	if err != nil {
		return 0, err
	}
	return r.sendAll(ctx, spamHardware(), src, []*updown.Worm{x})
}

// sendAll returns the time until all of a host's worms have arrived,
// in an idle network with a startup for each worm.
func (r *spamRouters) sendAll(ctx context.Context, cfg sim.Config, src int, worms []*updown.Worm) (sim.Time, error) {
	cfg.Startup = spamStartup
	s, err := sim.New(sim.Network{State: state.State{Fabric: r.net.Fabric()}, Router: r}, cfg, nil)
	if err != nil {
		return 0, err
	}
	for _, x := range worms {
		if _, err := r.send(s, r.net.Fabric().CAPorts()[src], x); err != nil {
			return 0, err
		}
	}
	err = s.Run(ctx, sim.Forever)
	return s.Counts().LastAt, err
}

// doubling is software multicast (S17): each host that has
// the message sends it to one more with each startup, so
// that each phase doubles the hosts that have it. Those that
// one host serves follow each other in the spanning tree: then
// messages of one phase are not all on the same channels.
type doubling struct {
	r     *spamRouters
	hosts []fabric.PortID // the sender first
	parts [][2]int        // by worm: index of its receiver, and the end of the part that this one serves
	err   error
}

func (x *doubling) Wake(*sim.Sim, int64) {}

func (x *doubling) Deliver(s *sim.Sim, d *sim.Delivery) {
	p := x.parts[d.Tag]
	x.serve(s, p[0], p[1])
}

// serve makes the host at lo serve those before hi: it sends to
// the first of their upper half, which serves that half, and so
// on. The simulator makes its startups follow each other.
func (x *doubling) serve(s *sim.Sim, lo, hi int) {
	for hi-lo > 1 && x.err == nil {
		mid := (lo + hi + 1) / 2
		w, err := x.r.net.NewWorm(x.hosts[mid : mid+1])
		if err == nil {
			_, err = x.r.send(s, x.hosts[lo], w)
		}
		x.err = err
		x.parts = append(x.parts, [2]int{mid, hi})
		hi = mid
	}
}

// bySoftware returns the latency of one software multicast in an idle network.
func (r *spamRouters) bySoftware(ctx context.Context, src int, to []int) (sim.Time, error) {
	cfg := spamHardware()
	cfg.Startup = spamStartup
	all, err := r.net.NewWorm(r.hosts(to))
	if err != nil {
		return 0, err
	}
	x := &doubling{r: &spamRouters{net: r.net}, hosts: append(r.hosts([]int{src}), all.Destinations(r.net.Fabric())...)}
	s, err := sim.New(sim.Network{State: state.State{Fabric: r.net.Fabric()}, Router: x.r}, cfg, x)
	if err != nil {
		return 0, err
	}
	x.serve(s, 0, len(x.hosts))
	if err := s.Run(ctx, sim.Forever); err != nil {
		return 0, err
	}
	return s.Counts().LastAt, x.err
}

// softwareBound returns the time of a software multicast's startups alone, in µs.
func softwareBound(destinations int) float64 {
	return float64(bits.Len(uint(destinations))) * float64(spamStartup) / float64(sim.Microsecond)
}

// spamPoint is a point of figure 2, and the points that get its results:
// to gets the mean latency, most the longest of all; nil if not asked for.
type spamPoint struct {
	tree     spamTree
	switches int
	d        int
	way      spamWay
	to, most *chart.Point
}

// spamWay multicasts in an idle network, and returns the latency to the last destination.
type spamWay func(r *spamRouters, ctx context.Context, src int, to []int) (sim.Time, error)

// The least draws of a point of figure 2, and of one that asks for the longest latency.
const (
	spamDraws     = 30
	spamMostDraws = 200
)

// measure draws networks, senders and destinations until the mean latency is known
// to 1 %, as the paper does.
func (p *spamPoint) measure(ctx context.Context, seed uint64, quick bool) error {
	least := spamDraws
	switch {
	case quick:
		least = 10
	case p.most != nil:
		least = spamMostDraws
	}
	var draws []float64
	for n := 0; ; n++ {
		r, err := p.tree.network(p.switches, stream(seed, "spam network", n))
		if err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(stream(seed, "spam destinations", n), 0))
		src := rng.IntN(p.switches)
		to := someOf(rng, p.switches, p.d, src)
		at, err := p.way(r, ctx, src, to)
		if err != nil {
			return err
		}
		draws = append(draws, float64(at)/float64(sim.Microsecond))
		if n+1 < least {
			continue
		}
		if estimate(p.to, draws); p.to.Half <= spamPrecision*p.to.Y || quick {
			if p.most != nil {
				p.most.Y, p.most.N = slices.Max(draws), len(draws)
			}
			return nil
		}
	}
}

func measureSPAM(lab *Lab, points []spamPoint) error {
	return lab.Each(len(points), func(ctx context.Context, i int) error { return points[i].measure(ctx, lab.Seed, lab.Quick) })
}

// spamPrecision is the share of a mean to which points are measured, as in the paper.
const spamPrecision = 0.01

// spamDestinations returns numbers of destinations in a network.
func spamDestinations(switches int, quick bool) []int {
	list := []int{1, 4}
	if !quick {
		list = []int{1, 2, 4, 8, 16, 32, 64}
		if switches > 128 {
			list = append(list, 128)
		}
	}
	return append(list, switches-1)
}

var spamSizes = []int{128, 256}

func nodes(switches int) string { return fmt.Sprint(switches, " nodes") }

const longestBroadcast = ", longest of all"

func spamFigure2(lab *Lab) (*Figure, error) {
	x := chart.Axis{Label: "destinations", Scale: chart.Log2}
	y := linear("latency", "µs")
	wide := y
	wide.Scale = chart.Log10
	f := &Figure{
		Parameters: []Parameter{
			{"message", fmt.Sprint(spamFlits, " flits")}, {"startup", spamStartup.String()}, {"router", "40ns for the header"},
			{"channel", spamCycle.String() + " a flit"}, {"buffers", "1 flit at each input and output"},
		},
		Panels: []chart.Panel{
			{Title: "(a) SPAM", X: x, Y: y}, {Title: "(b) SPAM and software", X: x, Y: wide}, {Title: "(c) spanning trees, 256 nodes", X: x, Y: y},
		},
	}
	var points []spamPoint
	curve := func(panel int, name string, tree spamTree, switches int, way spamWay, most bool) {
		list := spamDestinations(switches, lab.Quick)
		c, long := newCurve(name, list), newCurve(name+longestBroadcast, list)
		for i, d := range list {
			p := spamPoint{tree: tree, switches: switches, d: d, way: way, to: &c.Points[i]}
			if most {
				p.most = &long.Points[i]
			}
			points = append(points, p)
		}
		f.Panels[panel].Curves = append(f.Panels[panel].Curves, c)
		if most {
			f.Panels[panel].Curves = append(f.Panels[panel].Curves, long)
		}
	}
	for _, n := range spamSizes {
		curve(0, nodes(n), spamTrees[0], n, (*spamRouters).alone, false)
	}
	for _, n := range spamSizes {
		curve(1, "software, "+nodes(n), spamTrees[0], n, (*spamRouters).bySoftware, false)
	}
	bound := chart.Curve{Name: "software, startups alone"}
	for _, d := range spamDestinations(256, lab.Quick) {
		bound.Points = append(bound.Points, chart.Point{X: float64(d), Y: softwareBound(d)})
	}
	f.Panels[1].Curves = append(f.Panels[1].Curves, bound)
	for _, t := range spamTrees {
		curve(2, t.name, t, 256, (*spamRouters).alone, true)
	}
	err := measureSPAM(lab, points)
	// SPAM in the panel of software, too.
	f.Panels[1].Curves = slices.Concat(f.Panels[0].Curves, f.Panels[1].Curves)
	return f, err
}

// mixture is the traffic of figure 3: hosts draw times between
// messages, and one message in ten is a multicast to d destinations.
type mixture struct {
	spamLoad
	r     *spamRouters
	hosts []fabric.PortID
	gap   float64
	rng   *rand.Rand
	next  []sim.Time // by host: its next message
	ready []sim.Time // by host: the end of its last startup

	messages  []mixed
	unused    []int64
	of        []int64 // by worm: its message
	done      int
	warm      int // messages that are not measured
	flow      flow
	latencies []float64 // of all messages, as they end
	all, many batchMeans
	err       error
	order     int // geometric times in a time between messages
}

// mixed is a message under way.
type mixed struct {
	src   int
	worms []*updown.Worm
	start sim.Time
	left  int
	multi bool
}

// newMixture makes traffic of rate messages a µs from each host. The times
// between them have the negative binomial distribution of that order,
// which must be less than the mean time in cycles.
func newMixture(r *spamRouters, load spamLoad, rate float64, order int, seed uint64) *mixture {
	hosts := r.net.Fabric().CAPorts()
	return &mixture{
		spamLoad: load, r: r, hosts: hosts, gap: float64(sim.Microsecond) / float64(spamCycle) / rate / float64(order), order: order, rng: rand.New(rand.NewPCG(seed, 0)),
		next: make([]sim.Time, len(hosts)), ready: make([]sim.Time, len(hosts)), warm: 1000,
		all: batchMeans{size: 100}, many: batchMeans{size: 10},
	}
}

// draw sets the time of a host's next message.
func (x *mixture) draw(s *sim.Sim, host int) {
	x.next[host] += sim.Time(x.drawCycles()) * spamCycle
	s.Wake(x.next[host], int64(host))
}

// drawCycles draws the cycles from one message of a host to its next.
func (x *mixture) drawCycles() (cycles float64) {
	for range x.order {
		cycles += 1 + math.Floor(math.Log(1-x.rng.Float64())/math.Log1p(-1/x.gap))
	}
	return cycles
}

// Wake begins a message of a host, or sends one whose startup has ended.
func (x *mixture) Wake(s *sim.Sim, id int64) {
	if x.err != nil {
		return
	}
	if id >= int64(len(x.hosts)) {
		x.err = x.send(s, id-int64(len(x.hosts)))
		return
	}
	host := int(id)
	x.draw(s, host)
	if x.done > x.warm {
		x.flow.came++
	}
	m := mixed{src: host, start: max(s.Now(), x.ready[host])}
	x.ready[host] = m.start + spamStartup
	d, parts := 1, 1
	if m.multi = x.rng.IntN(10) == 0 || x.multicast; m.multi {
		d, parts = x.d, x.parts
	}
	if m.worms, x.err = x.r.partition(someOf(x.rng, len(x.hosts), d, host), parts); x.err != nil {
		return
	}
	m.left = d
	i := int64(len(x.messages))
	if n := len(x.unused); n > 0 {
		i, x.unused = x.unused[n-1], x.unused[:n-1]
		x.messages[i] = m
	} else {
		x.messages = append(x.messages, m)
	}
	s.Wake(x.ready[host], int64(len(x.hosts))+i)
}

func (x *mixture) send(s *sim.Sim, message int64) error {
	m := &x.messages[message]
	for _, w := range m.worms {
		tag, err := x.r.send(s, x.hosts[m.src], w)
		if err != nil {
			return err
		}
		if int(tag) == len(x.of) {
			x.of = append(x.of, 0)
		}
		x.of[tag] = message
	}
	return nil
}

// Deliver counts a copy, and with the last copy the message.
func (x *mixture) Deliver(s *sim.Sim, d *sim.Delivery) {
	i := x.of[d.Tag]
	m := &x.messages[i]
	if m.left--; m.left > 0 {
		return
	}
	for _, w := range m.worms {
		x.r.free = append(x.r.free, int64(slices.Index(x.r.worms, w)))
	}
	x.unused = append(x.unused, i)
	if x.done++; x.done <= x.warm {
		return
	}
	us := float64(s.Now()-m.start) / float64(sim.Microsecond)
	x.flow.went++
	x.latencies = append(x.latencies, us)
	x.all.add(us)
	if m.multi {
		x.many.add(us)
	}
}

// run measures least to most messages: until the
// latencies of all and of multicasts are known to a share
// of their means. It returns true if they are steady.
func (x *mixture) run(ctx context.Context, share float64, least, most int) (steady bool, err error) {
	cfg := spamHardware()
	if x.buffer > 0 {
		cfg.BufferFlits = x.buffer
	}
	s, err := sim.New(sim.Network{State: state.State{Fabric: x.r.net.Fabric()}, Router: x.r}, cfg, x)
	if err != nil {
		return false, err
	}
	for i := range x.hosts {
		x.draw(s, i)
	}
	for {
		if err := s.Run(ctx, s.Now()+100*sim.Microsecond); err != nil {
			return false, err
		}
		if x.err != nil {
			return false, x.err
		}
		if s.Counts().Queued > 2*int64(len(x.hosts)) {
			return false, nil
		}
		if x.all.n < least {
			continue
		}
		all, allHalf := x.all.interval()
		many, manyHalf := x.many.interval()
		if x.all.n >= most || allHalf <= share*all && manyHalf <= share*many {
			half := len(x.latencies) / 2
			x.flow.early, _ = spreadOf(x.latencies[:half])
			x.flow.late, _ = spreadOf(x.latencies[half:])
			return x.flow.steady(), nil
		}
	}
}

// spamLoad is the traffic of a curve of figure 3.
type spamLoad struct {
	name      string
	d         int
	parts     int  // worms that share its destinations
	multicast bool // no unicast
	buffer    int  // flits of an input; 0 is 1
}

var spamLoads = []spamLoad{
	{name: "8 destinations", d: 8, parts: 1}, {name: "16 destinations", d: 16, parts: 1},
	{name: "32 destinations", d: 32, parts: 1}, {name: "64 destinations", d: 64, parts: 1},
	{name: "64 destinations in 4 parts", d: 64, parts: 4},
}

// spamRates returns arrival rates, messages a µs from each host.
func spamRates(quick bool) []float64 {
	if quick {
		return []float64{0.002, 0.008}
	}
	return []float64{0.001, 0.002, 0.004, 0.006, 0.007, 0.008, 0.009, 0.01, 0.011, 0.012}
}

// The networks of figure 3, and the messages of each, at least and at most.
const (
	spamNetworks = 5
	spamLeast    = 1000
	spamMost     = 12_000
)

// mixedRun is the result of one network at one rate: the
// latency of all messages, and that of multicasts.
type mixedRun struct {
	mean, half [2]float64
	ok         bool // steady, and known well enough
}

// sweepRates measures a network at ascending rates, up to the first one at which
// it is not steady or its latencies are not known to a share of their means.
func (l *spamLoad) sweepRates(ctx context.Context, lab *Lab, rates []float64, draw int, share float64, least, most int) ([]mixedRun, error) {
	runs := make([]mixedRun, len(rates))
	for k, rate := range rates {
		r, err := spamTrees[0].network(spamFigure3Nodes, stream(lab.Seed, "spam network", draw))
		if err != nil {
			return nil, err
		}
		m := newMixture(r, *l, rate, lab.Order, stream(lab.Seed, "spam traffic", draw))
		if lab.Quick {
			m.warm = 100
		}
		steady, err := m.run(ctx, share, least, most)
		if err != nil {
			return nil, err
		}
		p := &runs[k]
		p.ok = steady
		for i, b := range [2]*batchMeans{&m.all, &m.many} {
			p.mean[i], p.half[i] = b.interval()
			p.ok = p.ok && !math.IsInf(p.half[i], 1) && (p.half[i] <= share*p.mean[i] || lab.Quick)
		}
		if !p.ok {
			break
		}
	}
	return runs, nil
}

const spamFigure3Nodes = 128

// spamSweep has loads and rates, and how much of each network is measured.
type spamSweep struct {
	loads              []spamLoad
	rates              []float64
	draws, least, most int
}

// curves measures the loads, and adds a curve for each to each panel. The first of
// two panels shows the latency of all messages, the last that of multicasts.
func (w *spamSweep) curves(lab *Lab, panels []chart.Panel) error {
	runs := make([][]mixedRun, len(w.loads)*w.draws)
	err := lab.Each(len(runs), func(ctx context.Context, i int) (err error) {
		runs[i], err = w.loads[i/w.draws].sweepRates(ctx, lab, w.rates, i%w.draws, spamPrecision*math.Sqrt(float64(w.draws)), w.least, w.most)
		return err
	})
	if err != nil {
		return err
	}
	for c, load := range w.loads {
		curves := [2]chart.Curve{{Name: load.name}, {Name: load.name}}
		for k, rate := range w.rates {
			at := [2]chart.Point{{X: rate, N: w.draws}, {X: rate, N: w.draws}}
			ok := true
			for _, run := range runs[c*w.draws : (c+1)*w.draws] {
				p := run[k]
				ok = ok && p.ok
				for i := range at {
					at[i].Y += p.mean[i] / float64(w.draws)
					// Half is the error for these networks alone; Draws shows how they differ.
					at[i].Half = math.Hypot(at[i].Half, p.half[i]/float64(w.draws))
					at[i].Draws = append(at[i].Draws, p.mean[i])
				}
			}
			if !ok {
				break
			}
			for i := range curves {
				curves[i].Points = append(curves[i].Points, at[i])
			}
		}
		for i := range panels {
			panels[i].Curves = append(panels[i].Curves, curves[len(curves)-len(panels)+i])
		}
	}
	return nil
}

var (
	rateAxis        = linear("arrival rate", "messages per µs and node")
	spamLatencyAxis = linear("latency", "µs")
)

func (w *spamSweep) parameters(lab *Lab, multicast string) []Parameter {
	times := "geometric"
	if lab.Order > 1 {
		times = fmt.Sprint("negative binomial of order ", lab.Order)
	}
	return []Parameter{
		{"nodes", fmt.Sprint(spamFigure3Nodes)}, {"networks", fmt.Sprint(w.draws)}, {"message", fmt.Sprint(spamFlits, " flits")},
		{"multicast", multicast}, {"times between messages", times + ", in cycles of " + spamCycle.String()},
		{"measured", fmt.Sprintf("%d to %d messages of each network, until the mean over these networks is known to 1 %%", w.least, w.most)},
		{"curves end", "before the first rate at which a network is not steady, or not known so well"},
	}
}

func spamFigure3(lab *Lab) (*Figure, error) {
	w := &spamSweep{spamLoads, spamRates(lab.Quick), spamNetworks, spamLeast, spamMost}
	if lab.Quick {
		w.draws, w.least, w.most = 3, 300, 300
	}
	f := &Figure{
		Parameters: w.parameters(lab, "10 % of the messages"),
		Panels:     []chart.Panel{{Title: "(a) all messages", X: rateAxis, Y: spamLatencyAxis}, {Title: "(b) multicasts", X: rateAxis, Y: spamLatencyAxis}},
	}
	return f, w.curves(lab, f.Panels)
}
