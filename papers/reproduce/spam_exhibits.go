package reproduce

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/papers/drawing"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
)

// The worked example and the theorems of the SPAM paper (S2 to S12).
var spamExhibits = []Experiment{
	exhibit("example", "Fig. 1 and section 3.2: a multicast from 5 to 8, 9, 10 and 11", spamExample),
	exhibit("theorem1", "Theorem 1: SPAM is deadlock-free", spamTheorem1),
	exhibit("theorem2", "Theorem 2: SPAM is livelock-free", spamTheorem2),
}

var spamRows = []rowsClaim{
	{
		spec: "S12", words: "the worked example of section 3.2, with the channel from 6 to 8 busy", exhibit: "example",
		why: "a head waits for all its channels, and bubbles fill the branches that could go on",
	},
	{
		spec: "S11-1", words: "SPAM is deadlock-free (theorem 1)", exhibit: "theorem1",
		why: "a worm goes up, then down, and takes all its branches of a router at once, so that no two worms hold branches of one subtree that the other wants",
	},
	{
		spec: "S11-2", words: "SPAM is livelock-free (theorem 2)", exhibit: "theorem2",
		why: "channels up lead to a lower level or number, channels down to a higher one, so that no route is endless",
	},
}

// spamFigure1 returns the network of figure 1. GUIDs are the figure's numbers; 5 and 8
// to 11 are processors. The figure leaves the parent of 4 open: here it is 1.
func spamFigure1() (*fabric.Fabric, error) {
	var b fabric.Builder
	for v := 1; v <= 11; v++ {
		n := fabric.Node{GUID: fabric.GUID(v), Type: fabric.Switch, NumPorts: 8, Description: fmt.Sprint(v)}
		if v == 5 || v >= 8 {
			n.Type, n.NumPorts = fabric.CA, 1
		}
		if _, err := b.AddNode(n); err != nil {
			return nil, err
		}
	}
	used := make([]fabric.PortNum, 12)
	for _, e := range [][2]int{{1, 2}, {1, 3}, {1, 4}, {2, 5}, {4, 6}, {4, 7}, {6, 8}, {6, 9}, {6, 10}, {7, 11}, {2, 3}, {3, 4}} {
		used[e[0]]++
		used[e[1]]++
		if err := b.Connect(e[0]-1, used[e[0]], e[1]-1, used[e[1]], fabric.Link{}); err != nil {
			return nil, err
		}
	}
	return b.Build()
}

// portTo returns the port of a vertex that leads to another one.
func portTo(f *fabric.Fabric, from, to int) fabric.PortID {
	for p := range fabric.PortID(f.NumPorts()) {
		if q := f.Peer(p); q != fabric.NoPort && f.Node(f.Owner(p)).GUID == fabric.GUID(from) && f.Node(f.Owner(q)).GUID == fabric.GUID(to) {
			return p
		}
	}
	return fabric.NoPort
}

func vertices(f *fabric.Fabric, ports []fabric.PortID) string {
	list := text.Each(ports, func(p fabric.PortID) int { return int(f.Node(f.Owner(f.Peer(p))).GUID) })
	slices.Sort(list)
	return strings.Trim(fmt.Sprint(list), "[]")
}

func spamExample(ctx context.Context, _ *Lab, f *Figure) error {
	fab, err := spamFigure1()
	if err != nil {
		return err
	}
	port := func(from, to int) fabric.PortID { return portTo(fab, from, to) }
	net, err := updown.NewSPAMNetwork(fab, fab.Owner(port(1, 2)), updown.BreadthFirst)
	if err != nil {
		return err
	}
	x, err := net.NewWorm([]fabric.PortID{port(8, 6), port(9, 6), port(10, 6), port(11, 7)})
	if err != nil {
		return err
	}
	f.add("channels 5-2, 2-3 and 3-4", "up, down cross, down cross", fmt.Sprintf("%s, %s, %s", net.Channel(port(5, 2)), net.Channel(port(2, 3)), net.Channel(port(3, 4))))
	f.add("least common ancestor of 8, 9, 10 and 11", "4", int(fab.Node(x.At).GUID))
	allowed := func(from, at, to int) bool {
		return slices.Contains(net.Allowed(fab.Owner(port(at, to)), fab.Peer(port(from, at)), x, nil), port(at, to))
	}
	f.add("5, 2, 3, 4 is a path of the header", "yes", yes(allowed(5, 2, 3) && allowed(2, 3, 4)))
	split := func(from, at int) string {
		return vertices(fab, net.Route(allFree{}, fab.Owner(port(at, from)), fab.Peer(port(from, at)), x, nil))
	}
	f.add("requests at 4", "6 7", split(3, 4))
	f.add("requests at 6", "8 9 10", split(4, 6))
	f.add("requests at 7", "11", split(4, 7))

	// A long worm from 9 holds the channel from 6 to 8.
	r := &spamRouters{net: net}
	cfg := spamHardware()
	s, err := sim.New(sim.Network{State: state.State{Fabric: fab}, Router: r}, cfg, nil)
	if err != nil {
		return err
	}
	for _, w := range []struct {
		src fabric.PortID
		to  []fabric.PortID
	}{{port(9, 6), []fabric.PortID{port(8, 6)}}, {port(5, 2), nil}} {
		worm := x
		if w.to != nil {
			if worm, err = net.NewWorm(w.to); err != nil {
				return err
			}
		}
		if _, err := r.send(s, w.src, worm); err != nil {
			return err
		}
	}
	if err := s.Run(ctx, 1200*sim.Nanosecond); err != nil {
		return err
	}
	flits := func(from, to int) string { return fmt.Sprint(s.Load(port(from, to)).Bytes) }
	f.add("flits that 6 has, while its channel to 8 is busy", "1", flits(4, 6))
	f.add("flits that 7 and 11 have", "2, 2", flits(4, 7)+", "+flits(7, 11))
	f.add("flits that 9 and 10 have", "0, 0", flits(6, 9)+", "+flits(6, 10))
	if err := s.Run(ctx, sim.Forever); err != nil {
		return err
	}
	f.add("flits that 9, 10 and 11 have in the end, of 128", "128, 128, 128", flits(6, 9)+", "+flits(6, 10)+", "+flits(7, 11))
	d := drawFabric("Fig. 1: the worm M by 5, 2, 3, 4", fab, named(fab, map[string][2]float64{
		"1": {2, 4}, "2": {0, 3}, "3": {2, 3}, "4": {4, 3}, "5": {0, 2}, "6": {3, 2}, "7": {5, 2}, "8": {2, 1}, "9": {3, 1}, "10": {4, 1}, "11": {5, 1},
	}))
	for _, p := range [][2]int{{5, 2}, {2, 3}, {3, 4}, {4, 6}, {4, 7}, {7, 11}} {
		d.arrow(port(p[0], p[1]), "M", false)
	}
	d.arrow(port(6, 8), "M", true)
	d.arrow(port(6, 8), "busy", false)
	f.Drawings = []drawing.Network{d.Network}
	return nil
}

// allFree tells routers that all channels are free.
type allFree struct{}

func (allFree) Free(fabric.PortID, fabric.VL) bool { return true }

// spamRandom returns a random network with SPAM's routers, grown on a lattice or irregular.
func spamRandom(rng *rand.Rand, seed uint64) (*spamRouters, error) {
	n := 6 + rng.IntN(14)
	f, err := gen.Lattice(n, seed)
	if seed%2 == 1 {
		f, err = gen.Irregular(gen.IrregularSpec{Switches: n, Degree: 3 + n%2, Hosts: n + rng.IntN(n), Seed: seed})
	}
	if err != nil {
		return nil, err
	}
	net, err := updown.NewSPAMNetwork(f, fabric.NodeID(rng.IntN(n)), updown.BreadthFirst)
	return &spamRouters{net: net}, err
}

// theoremNetworks returns how many networks the theorems are tried on.
func theoremNetworks(quick bool) int {
	if quick {
		return 30
	}
	return 300
}

func spamTheorem1(ctx context.Context, lab *Lab, f *Figure) error {
	networks, multicasts := theoremNetworks(lab.Quick), 0
	dead := map[sim.Copying]int{}
	for n := range networks {
		seed := lab.Seed<<32 + uint64(n)
		for _, copying := range []sim.Copying{sim.Wormhole, sim.GreedyWormhole} {
			rng := rand.New(rand.NewPCG(seed, 4))
			r, err := spamRandom(rng, seed)
			if err != nil {
				return err
			}
			cfg := spamHardware()
			cfg.Copying = copying
			hosts := r.net.Fabric().CAPorts()
			var messages []sim.Message
			for range 6 {
				for i, src := range hosts {
					d := 1
					if rng.IntN(2) == 0 {
						d = 2 + rng.IntN(len(hosts)-2)
					}
					x, err := r.net.NewWorm(r.hosts(someOf(rng, len(hosts), d, i)))
					if err != nil {
						return err
					}
					if d > 1 && copying == sim.Wormhole {
						multicasts++
					}
					r.worms = append(r.worms, x)
					messages = append(messages, sim.Message{Src: src, DLID: mft.MinMLID, Bytes: 2 * len(hosts), Tag: int64(len(r.worms) - 1)})
				}
			}
			locked, err := lock(ctx, sim.Network{State: state.State{Fabric: r.net.Fabric()}, Router: r}, cfg, messages)
			if err != nil {
				return err
			}
			if locked != nil {
				dead[copying]++
			}
		}
	}
	f.add(fmt.Sprintf("of %d random networks at saturation deadlock, with %d multicasts", networks, multicasts), "0", dead[sim.Wormhole])
	f.add("the same, when worms ask for their channels one by one", "", dead[sim.GreedyWormhole])
	f.Parameters = []Parameter{{"networks", "6 to 19 switches, half on a lattice, half irregular"},
		{"worms", "six of each host at time 0, half of them multicasts"}, {"buffers", "1 flit at each input and output"}}
	return nil
}

func spamTheorem2(_ context.Context, lab *Lab, f *Figure) error {
	networks, targets, cycles, ends := theoremNetworks(lab.Quick), 0, 0, 0
	longest := 0
	for n := range networks {
		seed := lab.Seed<<32 + uint64(n)
		r, err := spamRandom(rand.New(rand.NewPCG(seed, 5)), seed)
		if err != nil {
			return err
		}
		fab := r.net.Fabric()
		for _, to := range fab.CAPorts() {
			x, err := r.net.NewWorm([]fabric.PortID{to})
			if err != nil {
				return err
			}
			targets++
			next := func(out int32) []int32 {
				in := fab.Peer(fabric.PortID(out))
				if in == fabric.NoPort || !fab.IsSwitch(fab.Owner(in)) {
					return nil
				}
				return text.Each(r.net.Allowed(fab.Owner(in), in, x, nil), func(p fabric.PortID) int32 { return int32(p) })
			}
			reach := map[int32]int{} // by port: the longest route from there
			var walk func(out int32) int
			walk = func(out int32) int {
				if l, ok := reach[out]; ok {
					return l
				}
				reach[out] = 0
				most := 0
				list := next(out)
				for _, p := range list {
					most = max(most, walk(p)+1)
				}
				if list == nil && fab.Peer(fabric.PortID(out)) != to {
					ends++
				}
				reach[out] = most
				return most
			}
			for _, src := range fab.CAPorts() {
				if src != to {
					longest = max(longest, walk(int32(src)))
				}
			}
			if graph.FirstCycle(fab.NumPorts(), func(out int32) []int32 {
				if _, seen := reach[out]; !seen {
					return nil
				}
				return next(out)
			}) != nil {
				cycles++
			}
		}
	}
	f.add(fmt.Sprintf("of %d destinations in %d random networks have a route that comes back to a channel", targets, networks), "0", cycles)
	f.add("routers from which no allowed channel leads on to the destination", "0", ends)
	f.add("channels of the longest route behind the first one", "", longest)
	f.Parameters = []Parameter{{"networks", "6 to 19 switches, half on a lattice, half irregular"},
		{"routes", "all that the routing function allows, from each processor to each other one"}}
	return nil
}
