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
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/report/chart"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/updown"
)

// spam1998 is the paper on SPAM; its figures 2 and 3 (S13 to S18).
var spam1998 = Paper{
	ID: "spam",
	Title: "Libeskind-Hadas, Mazzoni, Rajagopalan: Tree-based multicasting in wormhole-routed irregular topologies, " +
		"IPPS/SPDP 1998",
	Notes: []string{
		"Networks grow on the integer lattice from a random point; a network of N nodes has N switches with a processor each (E-S3).",
		"The spanning tree is breadth-first from the switch with the lowest number, where nothing else is said (E-S2).",
		"The distance by which channels are preferred is in hops; a worm takes the best one that is free, else it waits for the best (E-S4).",
		"In figure 3 hosts draw geometric times between messages, the negative binomial distribution of order 1, in cycles of 10 ns (E-S4). " +
			"Latency is from when the startup of a message begins; a host that starts another message has it wait, which does not count.",
		"A point where more and more messages wait is left out.",
	},
	Experiments: []Experiment{
		{Name: "fig2", Title: "Fig. 2: latency of a single multicast against the number of destinations", Run: spamFigure2},
		{Name: "fig3", Title: "Fig. 3: latency against the arrival rate, 90 % unicast and 10 % multicast, 128 nodes", Run: spamFigure3},
	},
	Claims: []Claim{
		{
			Spec: "S15-1", Paper: "latency is essentially independent of the number of destinations (figure 2)",
			Figures: []string{"fig2"}, Judge: judgeSPAMDestinations,
		},
		{
			Spec: "S15-2", Paper: "latency is largely independent of the size of the network (figure 2)",
			Figures: []string{"fig2"}, Judge: judgeSPAMSize,
		},
		{
			Spec: "S15-3", Paper: "a broadcast in 256 nodes takes under 14 µs (section 4)",
			Figures: []string{"fig2"}, Judge: func(f map[string]*Figure) Finding { return judgeSPAMBroadcast(f, spamTrees[0]) },
		},
		{
			Spec: "S15-3 deep", Paper: "the same with any spanning tree: the paper asks for no kind of tree (section 3)",
			Figures: []string{"fig2"}, Judge: func(f map[string]*Figure) Finding { return judgeSPAMBroadcast(f, spamTrees[2]) },
		},
		{
			Spec: "S15-4", Paper: "for software multicast the startups alone take 90 µs then (section 4)",
			Figures: []string{"fig2"}, Judge: judgeSPAMSoftware,
		},
		{
			Spec: "S15-5", Paper: "a more than six-fold difference (section 4)",
			Figures: []string{"fig2"}, Judge: judgeSPAMFactor,
		},
		{
			Spec: "S16", Paper: "even in relatively heavy traffic latency remains largely independent of the number of destinations (figure 3)",
			Figures: []string{"fig3"}, Judge: judgeSPAMTraffic,
		},
		{
			Spec: "S18", Paper: "destinations in contiguous parts relieve the root (section 5, future work)",
			Figures: []string{"fig3"}, Judge: judgeSPAMParts,
		},
	},
}

// The messages and times of the paper (S13).
const (
	spamFlits   = 128
	spamStartup = 10 * sim.Microsecond
	spamCycle   = 10 * sim.Nanosecond // of a flit on a channel
)

// spamHardware is the paper's: buffers of one flit at inputs and outputs, 40 ns in
// each router for a header. Startups are the drivers'.
func spamHardware() sim.Config {
	return sim.Config{
		Mbps: 800, FlitBytes: 1, RoutingDelay: 40 * sim.Nanosecond,
		BufferFlits: 1, OutputFlits: 1, Copying: sim.Wormhole,
	}
}

// spamRouters has SPAM's routers in a simulation. Tags of messages number the
// worms that are under way.
type spamRouters struct {
	net   *updown.SPAMNetwork
	worms []*updown.Worm
	free  []int64
}

func (r *spamRouters) Route(s *sim.Sim, at fabric.NodeID, in fabric.PortID, m *sim.Message, to []fabric.PortID) []fabric.PortID {
	return r.net.Route(s, at, in, r.worms[m.Tag], to)
}

// send has a host send a worm now, and gives its number.
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

// network grows a lattice with its routers.
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

// someOf draws d of n, but not one of them.
func someOf(rng *rand.Rand, n, d, but int) []int {
	list := rng.Perm(n)
	list = slices.DeleteFunc(list, func(i int) bool { return i == but })
	return list[:d]
}

// hosts gives the processors of a list of numbers.
func (r *spamRouters) hosts(list []int) []fabric.PortID {
	ports := make([]fabric.PortID, len(list))
	for i, k := range list {
		ports[i] = r.net.Fabric().CAPorts()[k]
	}
	return ports
}

// alone is the latency of one multicast in an idle network.
func (r *spamRouters) alone(ctx context.Context, src int, to []int) (sim.Time, error) {
	cfg := spamHardware()
	cfg.Startup = spamStartup
	s, err := sim.New(sim.Network{Fabric: r.net.Fabric(), Router: r}, cfg, nil)
	if err != nil {
		return 0, err
	}
	x, err := r.net.NewWorm(r.hosts(to))
	if err != nil {
		return 0, err
	}
	if _, err := r.send(s, r.net.Fabric().CAPorts()[src], x); err != nil {
		return 0, err
	}
	err = s.Run(ctx, sim.Forever)
	return s.Counts().LastAt, err
}

// doubling is software multicast (S17): each host that has the message sends it to one
// more with each startup, so that in each phase twice as many have it. Those that
// a host serves follow each other in the spanning tree, so that messages of one
// phase are not all on the same channels.
type doubling struct {
	r     *spamRouters
	hosts []fabric.PortID // the sender first
	parts [][2]int        // by worm: its receiver, and the end of the part of hosts that this one serves
	err   error
}

func (x *doubling) Wake(*sim.Sim, int64) {}

func (x *doubling) Deliver(s *sim.Sim, d *sim.Delivery) {
	p := x.parts[d.Tag]
	x.serve(s, p[0], p[1])
}

// serve has the host at lo see to those before hi: it passes the upper half of them
// on to the first of that half, and so on. The simulator has its startups one after
// the other.
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

// bySoftware is the latency of one software multicast in an idle network.
func (r *spamRouters) bySoftware(ctx context.Context, src int, to []int) (sim.Time, error) {
	cfg := spamHardware()
	cfg.Startup = spamStartup
	all, err := r.net.NewWorm(r.hosts(to))
	if err != nil {
		return 0, err
	}
	x := &doubling{r: &spamRouters{net: r.net}, hosts: append(r.hosts([]int{src}), all.Destinations(r.net.Fabric())...)}
	s, err := sim.New(sim.Network{Fabric: r.net.Fabric(), Router: x.r}, cfg, x)
	if err != nil {
		return 0, err
	}
	x.serve(s, 0, len(x.hosts))
	if err := s.Run(ctx, sim.Forever); err != nil {
		return 0, err
	}
	return s.Counts().LastAt, x.err
}

// softwareBound is the time of a software multicast's startups alone, in µs.
func softwareBound(destinations int) float64 {
	return float64(bits.Len(uint(destinations))) * float64(spamStartup) / float64(sim.Microsecond)
}

// spamPoint is a point of figure 2, and where it goes. Most is the longest latency of
// all, nil if not asked for.
type spamPoint struct {
	tree     spamTree
	switches int
	d        int
	software bool
	to, most *chart.Point
}

// measure draws networks, senders and destinations until the mean latency is known
// to 1 %, as the paper does, with 10 draws at least.
func (p *spamPoint) measure(ctx context.Context, seed uint64, quick bool) error {
	var sum, square, most float64
	for n := 1; ; n++ {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		r, err := p.tree.network(p.switches, seed<<20+uint64(n))
		if err != nil {
			return err
		}
		src := rng.IntN(p.switches)
		to := someOf(rng, p.switches, p.d, src)
		alone := r.alone
		if p.software {
			alone = r.bySoftware
		}
		at, err := alone(ctx, src, to)
		if err != nil {
			return err
		}
		us := float64(at) / float64(sim.Microsecond)
		sum += us
		square += us * us
		most = max(most, us)
		mean := sum / float64(n)
		half := normal95 * math.Sqrt(max(0, square/float64(n)-mean*mean)/float64(n-1))
		if n >= 10 && (half <= mean/100 || quick) {
			p.to.Y, p.to.Half = mean, half
			if p.most != nil {
				p.most.Y = most
			}
			return nil
		}
	}
}

// normal95 is the 97.5 % quantile of the normal distribution.
const normal95 = 1.96

// spamDestinations are the numbers of destinations in a network.
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
	y := chart.Axis{Label: "latency", Unit: "µs", Scale: chart.Linear}
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
	curve := func(panel int, name string, tree spamTree, switches int, software, most bool) {
		list := spamDestinations(switches, lab.Quick)
		c, long := newCurve(name, list), newCurve(name+longestBroadcast, list)
		for i, d := range list {
			p := spamPoint{tree, switches, d, software, &c.Points[i], nil}
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
		curve(0, nodes(n), spamTrees[0], n, false, false)
	}
	for _, n := range spamSizes {
		curve(1, "software, "+nodes(n), spamTrees[0], n, true, false)
	}
	bound := chart.Curve{Name: "software, startups alone"}
	for _, d := range spamDestinations(256, lab.Quick) {
		bound.Points = append(bound.Points, chart.Point{X: float64(d), Y: softwareBound(d)})
	}
	f.Panels[1].Curves = append(f.Panels[1].Curves, bound)
	for _, t := range spamTrees {
		curve(2, t.name, t, 256, false, true)
	}
	err := lab.Each(len(points), func(ctx context.Context, i int) error { return points[i].measure(ctx, lab.Seed, lab.Quick) })
	// SPAM in the panel of software, too.
	f.Panels[1].Curves = slices.Concat(f.Panels[0].Curves, f.Panels[1].Curves)
	return f, err
}

// mixture is the traffic of figure 3: hosts draw times between messages, and each
// message is a multicast to d destinations once in ten times.
type mixture struct {
	r     *spamRouters
	hosts []fabric.PortID
	d     int
	parts int // of the destinations of a multicast
	gap   float64
	rng   *rand.Rand
	next  []sim.Time // by host: its next message
	ready []sim.Time // by host: the end of its last startup

	messages  []mixed
	unused    []int64
	of        []int64 // by worm: its message
	done      int
	warm      int // messages that are not measured
	all, many batchMeans
	err       error
}

// mixed is a message under way.
type mixed struct {
	src   int
	worms []*updown.Worm
	start sim.Time
	left  int
	multi bool
}

// newMixture makes traffic of rate messages a µs from each host.
func newMixture(r *spamRouters, d, parts int, rate float64, seed uint64) *mixture {
	hosts := r.net.Fabric().CAPorts()
	return &mixture{
		r: r, hosts: hosts, d: d, parts: parts, gap: float64(sim.Microsecond) / float64(spamCycle) / rate, rng: rand.New(rand.NewPCG(seed, 3)),
		next: make([]sim.Time, len(hosts)), ready: make([]sim.Time, len(hosts)), warm: 1000,
		all: batchMeans{size: 100}, many: batchMeans{size: 10},
	}
}

// draw sets the time of a host's next message.
func (x *mixture) draw(s *sim.Sim, host int) {
	cycles := 1 + math.Floor(math.Log(1-x.rng.Float64())/math.Log1p(-1/x.gap))
	x.next[host] += sim.Time(cycles) * spamCycle
	s.Wake(x.next[host], int64(host))
}

// Wake begins a message of a host, and ends its startup.
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
	m := mixed{src: host, start: max(s.Now(), x.ready[host])}
	x.ready[host] = m.start + spamStartup
	d, parts := 1, 1
	if m.multi = x.rng.IntN(10) == 0; m.multi {
		d, parts = x.d, x.parts
	}
	if m.worms, x.err = x.r.net.Partition(x.r.hosts(someOf(x.rng, len(x.hosts), d, host)), parts); x.err != nil {
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

// Deliver counts a copy, and with the last one the message.
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
	x.all.add(us)
	if m.multi {
		x.many.add(us)
	}
}

// batchMeans is a mean with an interval from the means of batches, since what
// follows each other is alike.
type batchMeans struct {
	size  int
	n     int
	part  float64
	means []float64
}

func (b *batchMeans) add(v float64) {
	b.part += v
	if b.n++; b.n%b.size == 0 {
		b.means = append(b.means, b.part/float64(b.size))
		b.part = 0
	}
}

// interval is the mean and half of its 95 % confidence interval.
func (b *batchMeans) interval() (mean, half float64) {
	mean, deviation := spreadOf(b.means)
	return mean, normal95 * deviation
}

// run measures until both latencies are known to 1 %, at most 12,000 messages. It
// says false when more worms wait at hosts than there are hosts.
func (x *mixture) run(ctx context.Context, quick bool) (steady bool, err error) {
	s, err := sim.New(sim.Network{Fabric: x.r.net.Fabric(), Router: x.r}, spamHardware(), x)
	if err != nil {
		return false, err
	}
	for i := range x.hosts {
		x.draw(s, i)
	}
	least, most := 4000, 12_000
	if quick {
		least, most, x.warm = 800, 800, 300
	}
	for {
		if err := s.Run(ctx, s.Now()+100*sim.Microsecond); err != nil {
			return false, err
		}
		if x.err != nil {
			return false, x.err
		}
		if s.Counts().Queued > int64(len(x.hosts)) {
			return false, nil
		}
		if x.all.n < least {
			continue
		}
		all, allHalf := x.all.interval()
		many, manyHalf := x.many.interval()
		if x.all.n >= most || allHalf <= all/100 && manyHalf <= many/100 {
			return true, nil
		}
	}
}

// spamLoad is a curve of figure 3.
type spamLoad struct {
	name     string
	d, parts int
}

var spamLoads = []spamLoad{
	{"8 destinations", 8, 1}, {"16 destinations", 16, 1}, {"32 destinations", 32, 1}, {"64 destinations", 64, 1},
	{"64 destinations in 4 parts", 64, 4},
}

// spamRates are arrival rates, messages a µs from each host.
func spamRates(quick bool) []float64 {
	if quick {
		return []float64{0.002, 0.008}
	}
	return []float64{0.001, 0.002, 0.004, 0.006, 0.007, 0.008, 0.009, 0.01, 0.011, 0.012}
}

func spamFigure3(lab *Lab) (*Figure, error) {
	const switches, networks = 128, 1
	x := chart.Axis{Label: "arrival rate", Unit: "messages per µs and node", Scale: chart.Linear}
	y := chart.Axis{Label: "latency", Unit: "µs", Scale: chart.Linear}
	draws := networks
	if lab.Quick {
		draws = 1
	}
	f := &Figure{
		Parameters: []Parameter{
			{"nodes", fmt.Sprint(switches)}, {"networks", fmt.Sprint(draws)}, {"message", fmt.Sprint(spamFlits, " flits")},
			{"multicast", "10 % of the messages"}, {"times between messages", "geometric, in cycles of " + spamCycle.String()},
		},
		Panels: []chart.Panel{{Title: "(a) all messages", X: x, Y: y}, {Title: "(b) multicasts", X: x, Y: y}},
	}
	rates := spamRates(lab.Quick)
	type point struct {
		all, many, allHalf, manyHalf float64
		steady                       bool
	}
	points := make([]point, len(spamLoads)*len(rates)*draws)
	err := lab.Each(len(points), func(ctx context.Context, i int) error {
		p := &points[i]
		load, rate, draw := spamLoads[i/draws/len(rates)], rates[i/draws%len(rates)], uint64(i%draws)
		r, err := spamTrees[0].network(switches, lab.Seed<<20+draw)
		if err != nil {
			return err
		}
		m := newMixture(r, load.d, load.parts, rate, lab.Seed<<20+draw)
		if p.steady, err = m.run(ctx, lab.Quick); err != nil || !p.steady {
			return err
		}
		p.all, p.allHalf = m.all.interval()
		p.many, p.manyHalf = m.many.interval()
		return nil
	})
	for c, load := range spamLoads {
		all, many := chart.Curve{Name: load.name}, chart.Curve{Name: load.name}
		for k, rate := range rates {
			a, b, steady := chart.Point{X: rate}, chart.Point{X: rate}, true
			for _, p := range points[(c*len(rates)+k)*draws : (c*len(rates)+k+1)*draws] {
				a.Y += p.all / float64(draws)
				b.Y += p.many / float64(draws)
				a.Half = math.Hypot(a.Half, p.allHalf/float64(draws))
				b.Half = math.Hypot(b.Half, p.manyHalf/float64(draws))
				steady = steady && p.steady
			}
			if !steady {
				break
			}
			all.Points = append(all.Points, a)
			many.Points = append(many.Points, b)
		}
		f.Panels[0].Curves = append(f.Panels[0].Curves, all)
		f.Panels[1].Curves = append(f.Panels[1].Curves, many)
	}
	return f, err
}
