package reproduce

import (
	"context"
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/state"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"

	"github.com/ibweave/ibweave/report/chart"
	"github.com/ibweave/ibweave/sim"
)

// geoffray2008 is the paper on adaptive routing in a Clos network of 512 nodes.
var geoffray2008 = Paper{
	ID: "geoffray2008",
	Title: "Geoffray, Hoefler: Adaptive routing strategies for modern high performance networks, " +
		"16th IEEE Symposium on High Performance Interconnects, 2008",
	Notes: []string{
		"The paper is known here by its abstract, and by P. Geoffray's page on the measurement: Myri-10G with crossbars of 32 ports, a Clos network of diameter 3, MPI_Sendrecv of 1 MB between random pairs, 5000 patterns of 20 iterations, the mean over all pairs against the bandwidth of one pair alone.",
		"From that follow 32 leaves with 16 nodes each and 16 spines. Ours are links of 10 Gb/s, 100 ns in a switch, 10 ns for a cable and for a credit, packets of 4 KB, input buffers of one packet where a figure does not vary them, 6 patterns (4 with --quick) of 2 iterations (1, of 256 KB).",
		"Myrinet has source routes: a static route belongs to a pair, and is drawn here by a hash of it. Routes of InfiniBand's LFTs belong to a destination: those of -e fattree, for which no two nodes of a leaf share the cable down.",
		"The paper's adaptive routing is in the network interfaces, which probe paths. Ours is in the leaves, which see their own cables up, and choose for each packet. Packets out of order cost nothing, nor does MPI.",
		"Smaller node counts are the nodes of the first leaves, below all spines.",
	},
	Experiments: []Experiment{
		{Name: "nodes", Title: "Effective bisection bandwidth", Run: geoffrayNodes},
		{Name: "pairs", Title: "512 nodes: what pairs get", Run: geoffrayPairs},
		{Name: "buffers", Title: "512 nodes: room in switches", Run: geoffrayBuffers},
	},
	Claims: []Claim{
		{"AR-1", "with static routing the effective bisection bandwidth of a Clos network of 512 nodes is as low as 38 % (abstract)", []string{"nodes"}, judgeGeoffrayStatic},
		{"AR-2", "the best adaptive routing increases it to 77 % (abstract)", []string{"nodes", "buffers"}, judgeGeoffrayBest},
		{"AR-3", "adaptive routing improves the throughput significantly (abstract)", []string{"nodes"}, judgeGeoffrayGain},
		{"AR-4", "it increases it to 100 % for smaller node counts (abstract)", []string{"nodes"}, judgeGeoffraySmall},
	},
}

// The Clos network.
const (
	closLeaves = 32
	closHosts  = 16 // of each leaf
	closNodes  = closLeaves * closHosts
)

// The routings that are compared, by index in geoffrayWays.
const (
	byDestination = iota
	byPair
	leastQueued
	mostCredits
	choosingAgain
)

var geoffrayWays = [...]struct {
	name   string
	state  adaptive.State
	choice sim.Choice
	again  bool
}{
	byDestination: {"static, by destination", adaptive.Static, sim.LeastQueued, false},
	byPair:        {"static, by pair", adaptive.HBF, sim.LeastQueued, false},
	leastQueued:   {"adaptive, least queued", adaptive.Free, sim.LeastQueued, false},
	mostCredits:   {"adaptive, most credits", adaptive.Free, sim.MostCredits, false},
	choosingAgain: {"adaptive, choosing again", adaptive.Free, sim.LeastQueued, true},
}

// bisection is a run: pairs of nodes exchange messages both ways.
type bisection struct {
	nodes, bytes, iterations int
	way                      int // in geoffrayWays
	buffers                  int // packets; 0 for worms in buffers of 8 flits of 64 bytes
	draw                     uint64
	seed                     uint64
}

const geoffrayMTU = 4096 // bytes of a packet

// closTables is the network with choice sets of one state.
func closTables(lab *Lab, choice adaptive.State) (*sim.Network, error) {
	return Once(lab, fmt.Sprint("clos ", choice), func(ctx context.Context) (*sim.Network, error) {
		f, err := gen.Tree(gen.TreeSpec{Ports: 2 * closHosts, Pods: []int{closLeaves}, Hosts: closHosts, Spines: closHosts})
		if err != nil {
			return nil, err
		}
		engine, err := compile.EngineByName("fattree")
		if err != nil {
			return nil, err
		}
		r, err := compile.Run(ctx, f, engine, compile.Options{})
		if err != nil {
			return nil, err
		}
		f = r.Routing.Fabric
		net := &sim.Network{State: state.State{Fabric: f, Tables: r.Routing.Tables}}
		if choice != adaptive.Static {
			net.Adaptive, err = upwards(f, r.Routing.Tables, choice)
		}
		return net, err
	})
}

// upwards gives each leaf the group of all its spines, for all that is not below it.
func upwards(f *fabric.Fabric, static *lft.Tables, state adaptive.State) (*adaptive.Tables, error) {
	t := &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches()), PLFTs: []*adaptive.PLFT{adaptive.NewPLFT(static)}}
	for _, s := range f.Switches() {
		if len(f.HostsOn(s)) == 0 {
			continue
		}
		var up adaptive.Subgroup
		ports, _ := f.SwitchLinks(s)
		for _, p := range ports {
			up.Ports.Add(f.Num(p))
		}
		t.Groups[s] = []adaptive.Group{{Subgroups: []adaptive.Subgroup{up}}}
		for _, p := range f.CAPorts() {
			if f.PeerSwitch(p) != s {
				t.PLFTs[0].Set(s, f.LID(p), state, 0)
			}
		}
	}
	return t, nil
}

// config is the hardware.
func (b *bisection) config() sim.Config {
	cfg := sim.Config{
		Mbps: 10_000, MTU: geoffrayMTU,
		WireDelay: 10 * sim.Nanosecond, CreditDelay: 10 * sim.Nanosecond, RoutingDelay: 100 * sim.Nanosecond,
	}
	cfg.Choice, cfg.ChooseAgain = geoffrayWays[b.way].choice, geoffrayWays[b.way].again
	if b.buffers > 0 {
		cfg.PacketBuffers(b.buffers, geoffrayMTU)
	} else {
		cfg.Copying, cfg.FlitBytes, cfg.BufferFlits, cfg.ChooseAgain = sim.Wormhole, 64, 8, false
	}
	return cfg
}

// sendrecv is MPI_Sendrecv in a loop: a pair begins the next exchange when both messages of
// the last one have arrived.
type sendrecv struct {
	bisection
	hosts  []fabric.PortID
	lids   []fabric.LID
	to     []int32
	left   []int      // exchanges of a pair, by its lower node
	coming []int      // messages of the exchange, by the lower node
	done   []sim.Time // by the lower node
	err    error
}

// Deliver counts messages; a Tag is the lower node of the pair.
func (x *sendrecv) Deliver(s *sim.Sim, d *sim.Delivery) {
	if !d.Last {
		return
	}
	i := d.Tag
	if x.coming[i]--; x.coming[i] > 0 {
		return
	}
	if x.left[i]--; x.left[i] > 0 {
		x.begin(s, int32(i))
		return
	}
	x.done[i] = d.At
}

// Wake begins the first exchange of all pairs.
func (x *sendrecv) Wake(s *sim.Sim, _ int64) {
	for i, j := range x.to {
		if int32(i) < j {
			x.begin(s, int32(i))
		}
	}
}

// begin sends both messages of a pair.
func (x *sendrecv) begin(s *sim.Sim, i int32) {
	x.coming[i] = 2
	for _, p := range [2][2]int32{{i, x.to[i]}, {x.to[i], i}} {
		m := sim.Message{Src: x.hosts[p[0]], DLID: x.lids[p[1]], Bytes: x.bytes, Tag: int64(i)}
		if err := s.Send(m); err != nil && x.err == nil {
			x.err = err
		}
	}
}

// shares is by pair the bandwidth that it has, against that of a pair alone.
func (b bisection) shares(ctx context.Context, lab *Lab) (shares []float64, err error) {
	alone := b
	alone.draw, alone.way, alone.nodes = 0, 0, 0
	single, err := Once(lab, fmt.Sprintf("alone %+v", alone), func(context.Context) (sim.Time, error) {
		to := make([]int32, closNodes)
		for i := range to {
			to[i] = int32(i)
		}
		to[0], to[closNodes-1] = closNodes-1, 0
		x, err := alone.simulate(ctx, lab, to)
		if err != nil {
			return 0, err
		}
		return x.done[0], nil
	})
	if err != nil {
		return nil, err
	}
	partner, err := sim.Bisection.For(b.nodes, b.seed<<32+b.draw)
	if err != nil {
		return nil, err
	}
	to := make([]int32, b.nodes)
	for i := range to {
		to[i] = int32(partner(i, 0, nil))
	}
	x, err := b.simulate(ctx, lab, to)
	if err != nil {
		return nil, err
	}
	for i, j := range to {
		if int32(i) < j {
			shares = append(shares, float64(single)/float64(x.done[i]))
		}
	}
	return shares, nil
}

// simulate has nodes exchange messages with their partners.
func (b bisection) simulate(ctx context.Context, lab *Lab, to []int32) (*sendrecv, error) {
	net, err := closTables(lab, geoffrayWays[b.way].state)
	if err != nil {
		return nil, err
	}
	x := &sendrecv{bisection: b, to: to, left: make([]int, len(to)), coming: make([]int, len(to)), done: make([]sim.Time, len(to))}
	for _, s := range net.Fabric.Switches() {
		x.hosts = append(x.hosts, net.Fabric.HostsOn(s)...)
	}
	for _, p := range x.hosts {
		x.lids = append(x.lids, net.Fabric.LID(p))
	}
	for i := range x.left {
		x.left[i] = b.iterations
	}
	s, err := sim.New(*net, b.config(), x)
	if err != nil {
		return nil, err
	}
	s.Wake(0, 0)
	if err := s.Run(ctx, sim.Forever); err != nil {
		return nil, err
	}
	return x, x.err
}

// geoffrayDraws is how many patterns are drawn, their iterations and the bytes of a message.
func geoffrayDraws(lab *Lab) (draws, iterations, bytes int) {
	if lab.Quick {
		return 4, 1, 1 << 18
	}
	return 6, 2, 1 << 20
}

// geoffrayPoint is where the bandwidth of a run goes.
type geoffrayPoint struct {
	bisection
	to *chart.Point
}

// measureGeoffray draws patterns for all points: the mean of each is that of its pairs.
func measureGeoffray(lab *Lab, points []geoffrayPoint) error {
	draws, iterations, bytes := geoffrayDraws(lab)
	means := make([][]float64, len(points))
	for i := range means {
		means[i] = make([]float64, draws)
	}
	err := lab.Each(len(points)*draws, func(ctx context.Context, k int) error {
		b := points[k/draws].bisection
		b.draw, b.seed = uint64(k%draws), lab.Seed
		b.bytes, b.iterations = bytes, iterations
		if b.buffers == 0 { // worms take a hundred times as many events
			b.bytes, b.iterations = 1<<16, 1
		}
		shares, err := b.shares(ctx, lab)
		means[k/draws][k%draws], _ = spreadOf(shares)
		return err
	})
	for i := range points {
		estimate(points[i].to, means[i])
	}
	return err
}

// geoffrayParameters are those that no figure varies.
func geoffrayParameters(lab *Lab) []Parameter {
	draws, iterations, bytes := geoffrayDraws(lab)
	return []Parameter{
		{"leaves, spines, nodes of a leaf", fmt.Sprintf("%d, %d, %d", closLeaves, closHosts, closHosts)},
		{"message", fmt.Sprintf("%d KB; 64 KB of worms", bytes>>10)}, {"packet", fmt.Sprint(geoffrayMTU, " bytes")}, {"links", "10 Gb/s"},
		{"patterns", fmt.Sprint(draws)}, {"iterations", fmt.Sprint(iterations)},
	}
}

var geoffrayBandwidth = chart.Axis{Label: "effective bisection bandwidth", Unit: "of a pair alone", Scale: chart.Linear}

func geoffrayNodes(lab *Lab) (*Figure, error) {
	sizes := []int{32, 64, 128, 256, closNodes}
	if lab.Quick {
		sizes = []int{32, closNodes}
	}
	return geoffrayFigure(lab, chart.Axis{Label: "nodes", Scale: chart.Log2}, func(way int) (xs []int, runs []bisection) {
		for _, n := range sizes {
			runs = append(runs, bisection{nodes: n, way: way, buffers: 1})
		}
		return sizes, runs
	}, Parameter{"room of an input buffer", "1 packet"})
}

func geoffrayBuffers(lab *Lab) (*Figure, error) {
	room := chart.Axis{Label: "room of an input buffer", Unit: "bytes", Scale: chart.Log2}
	return geoffrayFigure(lab, room, func(way int) (xs []int, runs []bisection) {
		if way != choosingAgain && !lab.Quick { // worms choose once
			xs, runs = []int{512}, []bisection{{nodes: closNodes, way: way}}
		}
		for _, n := range []int{1, 2, 4, 16} {
			if n == 1 || n == 16 || !lab.Quick {
				xs, runs = append(xs, n*geoffrayMTU), append(runs, bisection{nodes: closNodes, way: way, buffers: n})
			}
		}
		return xs, runs
	}, Parameter{"nodes", fmt.Sprint(closNodes)}, Parameter{"512 bytes", "worms, flit by flit"})
}

// geoffrayFigure has the bandwidth of each routing at the runs that points gives.
func geoffrayFigure(lab *Lab, x chart.Axis, points func(way int) (xs []int, runs []bisection), parameters ...Parameter) (*Figure, error) {
	panel := chart.Panel{X: x, Y: geoffrayBandwidth}
	var all []geoffrayPoint
	for way := range geoffrayWays {
		xs, runs := points(way)
		c := newCurve(geoffrayWays[way].name, xs)
		for i, run := range runs {
			all = append(all, geoffrayPoint{run, &c.Points[i]})
		}
		panel.Curves = append(panel.Curves, c)
	}
	f := &Figure{Parameters: append(geoffrayParameters(lab), parameters...), Panels: []chart.Panel{panel}}
	return f, measureGeoffray(lab, all)
}

// geoffrayPairs is the distribution over pairs, of all patterns together.
func geoffrayPairs(lab *Lab) (*Figure, error) {
	draws, iterations, bytes := geoffrayDraws(lab)
	f := &Figure{Parameters: append(geoffrayParameters(lab), Parameter{"nodes", fmt.Sprint(closNodes)}, Parameter{"room of an input buffer", "1 packet"})}
	panel := chart.Panel{X: chart.Axis{Label: "bandwidth", Unit: "of a pair alone", Scale: chart.Linear}, Y: chart.Axis{Label: "share of pairs with less", Scale: chart.Linear}}
	shares := make([][]float64, len(geoffrayWays)*draws)
	err := lab.Each(len(shares), func(ctx context.Context, k int) (err error) {
		b := bisection{nodes: closNodes, bytes: bytes, iterations: iterations, way: k / draws, buffers: 1, draw: uint64(k % draws), seed: lab.Seed}
		shares[k], err = b.shares(ctx, lab)
		return err
	})
	for way := range geoffrayWays {
		c := chart.Curve{Name: geoffrayWays[way].name}
		for i := range 21 {
			at := chart.Point{X: float64(i) / 20}
			parts := make([]float64, draws)
			for d, all := range shares[way*draws : (way+1)*draws] {
				for _, s := range all {
					if s < at.X {
						parts[d] += 1 / float64(len(all))
					}
				}
			}
			estimate(&at, parts)
			c.Points = append(c.Points, at)
		}
		panel.Curves = append(panel.Curves, c)
	}
	f.Panels = []chart.Panel{panel}
	return f, err
}

// geoffrayShare is a point in percent, with its interval.
func geoffrayShare(p chart.Point) string { return fmt.Sprintf("%.1f +- %.1f %%", 100*p.Y, 100*p.Half) }

func judgeGeoffrayStatic(f map[string]*Figure) Finding {
	at := f["nodes"].At(geoffrayWays[byPair].name, closNodes)
	lft := f["nodes"].At(geoffrayWays[byDestination].name, closNodes)
	return decided(within(at, 0.34, 0.42), "routes of pairs meet on cables up and down; those of destinations only on cables up, since each node of a leaf has a spine of its own; taken as: within 4 points",
		"%s with a static route for each pair, as Myrinet has them; %s with InfiniBand's for each destination", geoffrayShare(at), geoffrayShare(lft))
}

// geoffrayBest is the adaptive routing with the greatest bandwidth in a figure.
func geoffrayBest(f *Figure, x float64) (best chart.Point, name string) {
	for way := leastQueued; way <= choosingAgain; way++ {
		for _, at := range f.Curve(geoffrayWays[way].name) {
			if (x == 0 || at.X == x) && at.Y > best.Y {
				best, name = at, geoffrayWays[way].name
			}
		}
	}
	return best, name
}

func judgeGeoffrayBest(f map[string]*Figure) Finding {
	at, name := geoffrayBest(f["nodes"], closNodes)
	best, most := geoffrayBest(f["buffers"], 0)
	out := Finding{Verdict: NotDecidable, Measured: fmt.Sprintf("%s (%s), and with other buffers up to %s (%s, %.0f bytes)", geoffrayShare(at), name, geoffrayShare(best), most, best.X),
		Why: "a leaf that chooses a spine does not see the cable down from it, on which packets of other leaves meet; the paper's interfaces probe the whole path"}
	switch within(best, 0.73, 0.81) {
	case 1:
		out.Verdict, out.Why = Holds, "taken as: within 4 points"
	case 0:
		out.decide(0)
	}
	return out
}

func judgeGeoffrayGain(f map[string]*Figure) Finding {
	best, name := geoffrayBest(f["nodes"], closNodes)
	how := 1
	var says []string
	for _, way := range []int{byPair, byDestination} {
		at := f["nodes"].At(geoffrayWays[way].name, closNodes)
		says = append(says, fmt.Sprintf("%+.0f %% over %s (%s)", 100*(best.Y/at.Y-1), geoffrayWays[way].name, geoffrayShare(at)))
		how = min(how, beyond(ratio(best, at), 1.1))
	}
	return decided(how, "a packet that would wait takes another spine; taken as: more than 10 % more, by pattern",
		"%s with 512 nodes (%s): %s", geoffrayShare(best), name, strings.Join(says, ", "))
}

func judgeGeoffraySmall(f map[string]*Figure) Finding {
	out := Finding{Verdict: Holds}
	full := 0.0 // nodes, at most, with all of it
	for _, at := range f["nodes"].Curve(geoffrayWays[leastQueued].name) {
		if at.X == closNodes {
			break
		}
		best, _ := geoffrayBest(f["nodes"], at.X)
		out.Measured += fmt.Sprintf("%.0f nodes %s; ", at.X, geoffrayShare(best))
		if beyond(best, 0.98) > 0 {
			full = at.X
		} else {
			out.Verdict, out.As = HoldsAs, fmt.Sprintf("up to %.0f nodes", full)
		}
	}
	out.failIf(full == 0)
	out.Measured += "the best adaptive routing of each"
	out.Why = "the fewer leaves there are below the same spines, the fewer packets of different leaves meet on a cable down"
	return out
}
