package reproduce

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/papers/myrinet"
	"github.com/ibweave/ibweave/papers/myrinet/lan"
)

// idByPlace numbers hosts from 1 on in the order of places.
func (n *gerlaNet) idByPlace(p fabric.PortID) int32 {
	i, _ := slices.BinarySearch(n.f.CAPorts(), p)
	return int32(i) + 1
}

func gerlaBackpressure(ctx context.Context, _ *Lab, f *Figure) error {
	const cable, bytes = 20, 5000
	// Two hosts send to a third at the same time, so that one of them is stopped.
	n, err := withRoutes(mesh.Generate(mesh.Spec{Dims: []int{1, 1}, Hosts: 3}))
	if err != nil {
		return err
	}
	h := n.f.CAPorts()
	groups := []mft.Group{{Name: "a", Receivers: h[1:], Senders: h[1:2]}, {Name: "b", Receivers: []fabric.PortID{h[0], h[2]}, Senders: h[:1]}}
	s, err := myrinet.Build(n.f, n.tables, groups, myrinet.Options{ID: n.idByPlace})
	if err != nil {
		return err
	}
	least := 0.0
	for _, w := range []lan.Wires{
		{Delay: cable, Switch: 8, Stop: 90, Go: 2 * cable}, {Delay: cable, Switch: 8, Stop: 60, Go: 50},
		{Delay: cable, Switch: 8, Stop: 90, Go: cable}, {Delay: cable, Switch: 8, Stop: 90},
	} {
		r, err := lan.Run(ctx, lan.Options{
			Fabric: n.f, Tables: n.tables, Schedule: s, Wires: w, Traffic: lan.Traffic{Window: 1, Multicast: 1, Bytes: bytes}, Messages: 2, Time: 1 << 20,
		})
		if err != nil {
			return err
		}
		if least == 0 {
			least = r.Last.Sum
		}
		what := fmt.Sprintf("STOP at %d bytes, GO at %d, cables of %d byte times: ", w.Stop, w.Go, cable)
		f.add(what+"most bytes in a slack buffer", fmt.Sprint(w.Stop+2*cable), r.MostFill)
		f.add(what+"byte times that the stopped worm loses", fmt.Sprint(max(0, 2*cable-w.Go)), r.Last.Sum-least)
	}
	return nil
}

func gerlaReservation(ctx context.Context, lab *Lab, f *Figure) error {
	const bytes = 2000
	n, err := withRoutes(mesh.Generate(mesh.Spec{Dims: []int{1, 1}, Hosts: 4}))
	if err != nil {
		return err
	}
	h := n.f.CAPorts()[:3]
	s, err := myrinet.Build(n.f, n.tables, []mft.Group{{Name: "all", Receivers: h, Senders: h}}, myrinet.Options{ID: n.idByPlace})
	if err != nil {
		return err
	}
	for _, room := range []int{2 * bytes, bytes} {
		r, err := lan.Run(ctx, lan.Options{
			Fabric: n.f, Tables: n.tables, Schedule: s, Wires: lan.DefaultWires(), Seed: lab.Seed, Messages: 60, Time: 1 << 24, Drain: true,
			Adapters: lan.Adapters{Buffer: room, Acks: true, AckBytes: 8, Timeout: 500}, Traffic: lan.Traffic{Window: 2, Multicast: 1, Bytes: bytes},
		})
		if err != nil {
			return err
		}
		what := fmt.Sprintf("worms of %d bytes, room for %d in a class: ", bytes, room)
		f.add(what+"worms are refused", "", yes(r.Nacks > 0))
		f.add(what+"sends for each that is taken in, beyond those that are refused", "1", float64(r.Transmitted[1]-r.Nacks)/float64(2*r.Born))
		f.add(what+"messages that all members get, of 60", "60", r.Completed)
	}
	return nil
}

func gerlaTree(_ context.Context, _ *Lab, f *Figure) error {
	n, err := withRoutes(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Wrap: []bool{true, true}, Hosts: 1}))
	if err != nil {
		return err
	}
	h := n.f.CAPorts()[:9]
	for _, m := range []myrinet.Method{myrinet.Tree, myrinet.TreeFlood} {
		s, err := myrinet.Build(n.f, n.tables, []mft.Group{{Name: "nine", Receivers: h, Senders: h}}, myrinet.Options{Method: m, ID: n.idByPlace})
		if err != nil {
			return err
		}
		down, turns := true, 0
		passes := map[int32][]string{} // by host
		busy := int32(1)
		for _, x := range s.Groups[0].Sends {
			climbs := x.To < x.At
			down = down && (m == myrinet.TreeFlood || !climbs || x.Held == myrinet.SendBuffer && x.To == 0)
			if x.Held != myrinet.SendBuffer && climbs && x.From != myrinet.Anyone && x.From < x.At {
				turns++ // up again
			}
			if x.At > 0 && x.From != myrinet.Anyone {
				passes[x.At] = append(passes[x.At], fmt.Sprintf("from %d to %d", x.From+1, x.To+1))
				if len(passes[x.At]) > len(passes[busy]) {
					busy = x.At
				}
			}
		}
		if m == myrinet.Tree {
			f.add("from the root: messages go to higher IDs only", "yes", yes(down))
			continue
		}
		f.add("flooded: sends that climb what has come down", "0", turns)
		f.add(fmt.Sprintf("flooded: what host %d passes on", busy+1), "", strings.Join(passes[busy], ", "))
	}
	return nil
}

func gerlaOrder(ctx context.Context, lab *Lab, f *Figure) error {
	const messages = 200
	n, err := withRoutes(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Wrap: []bool{true, true}, Hosts: 1}))
	if err != nil {
		return err
	}
	h := n.f.CAPorts()[:6]
	for _, tt := range []struct {
		what, paper string
		opt         myrinet.Options
	}{
		{"circuit from the originator on", "no", myrinet.Options{}},
		{"circuit from the lowest ID on", "yes", myrinet.Options{Ordered: true}},
		{"tree from its root", "yes", myrinet.Options{Method: myrinet.Tree}},
		{"tree, flooded", "no", myrinet.Options{Method: myrinet.TreeFlood}},
		{"repeated unicast", "no", myrinet.Options{Method: myrinet.Repeated}},
	} {
		tt.opt.ID = n.idByPlace
		s, err := myrinet.Build(n.f, n.tables, []mft.Group{{Name: "six", Receivers: h, Senders: h}}, tt.opt)
		if err != nil {
			return err
		}
		got := map[int32][]int64{}
		_, err = lan.Run(ctx, lan.Options{
			Fabric: n.f, Tables: n.tables, Schedule: s, Wires: lan.DefaultWires(), Seed: lab.Seed, Messages: messages, Time: 1 << 30, Drain: true,
			Traffic:   lan.Traffic{Window: 2, Multicast: 1, MeanBytes: 400},
			Delivered: func(_ int, host int32, serial int64) { got[host] = append(got[host], serial) },
		})
		if err != nil {
			return err
		}
		same := true
		for _, a := range got {
			for _, b := range got { // an originator may lack its own messages
				common := func(list, other []int64) []int64 {
					return slices.DeleteFunc(slices.Clone(list), func(x int64) bool { return !slices.Contains(other, x) })
				}
				same = same && slices.Equal(common(a, b), common(b, a))
			}
		}
		f.add(fmt.Sprintf("%s: all members get %d messages of six senders in one order", tt.what, messages), tt.paper, yes(same))
	}
	return nil
}

// gerlaShapes are the networks of the paper's simulations, a mesh, and a random one.
var gerlaShapes = []struct {
	name string
	make func(seed uint64) (*fabric.Fabric, error)
}{
	{"8x8 torus", func(uint64) (*fabric.Fabric, error) { return (&lanNetwork{name: "torus"}).make() }},
	{"24-node shufflenet", func(uint64) (*fabric.Fabric, error) { return (&lanNetwork{name: "shufflenet"}).make() }},
	{"8x8 mesh", func(uint64) (*fabric.Fabric, error) { return (&lanNetwork{name: "mesh"}).make() }},
	{"random network of 64 switches", func(seed uint64) (*fabric.Fabric, error) {
		return gen.Irregular(gen.IrregularSpec{Switches: 64, Degree: 4, Hosts: 64, Seed: seed})
	}},
}

// hops returns the links between switches from one to all others, by breadth-first search.
func hops(f *fabric.Fabric, from fabric.NodeID) []int32 {
	s := graph.NewSearch[fabric.NodeID](f.NumSwitches())
	s.Run(func(n fabric.NodeID) []fabric.NodeID { _, to := f.SwitchLinks(n); return to }, from)
	return s.Distance
}

func gerlaPaths(_ context.Context, lab *Lab, f *Figure) error {
	for _, shape := range gerlaShapes {
		n, err := withRoutes(shape.make(lab.Seed))
		if err != nil {
			return err
		}
		var pairs, longer, sum, least, most int
		for _, a := range n.f.CAPorts() {
			shortest := hops(n.f, n.f.Owner(n.f.Peer(a)))
			for _, b := range n.f.CAPorts() {
				if a == b {
					continue
				}
				links, err := myrinet.Links(n.f, n.tables, a, n.f.LID(b))
				if err != nil {
					return err
				}
				short := int(shortest[n.f.Owner(n.f.Peer(b))])
				pairs, sum, least = pairs+1, sum+links, least+short
				if most = max(most, links-short); links > short {
					longer++
				}
			}
		}
		f.add(shape.name+": some paths are longer than shortest ones", "yes", yes(longer > 0))
		f.add(shape.name+": longer paths, mean links, links too many at most", "",
			fmt.Sprintf("%d of %d, %.3f instead of %.3f, %d", longer, pairs, float64(sum)/float64(pairs), float64(least)/float64(pairs), most))
	}
	return nil
}

func gerlaBroadcast(_ context.Context, lab *Lab, f *Figure) error {
	for _, shape := range gerlaShapes {
		n, err := withRoutes(shape.make(lab.Seed))
		if err != nil {
			return err
		}
		h := n.f.CAPorts()
		// The worm from the root crosses each link of the spanning
		// tree once, and so does a worm from any other switch.
		worms, err := n.worms(n.tree, wormFlits, h)
		if err != nil {
			return err
		}
		tree := text.CountIf(treeMask(n.f, worms[0]), func(p fabric.PortID) bool { return n.f.IsSwitch(n.f.Owner(n.f.Peer(p))) })
		way, depth, direct := 0, 0, 0
		for _, a := range h {
			up, err := myrinet.Links(n.f, n.tables, a, n.f.LID(h[0]))
			if err != nil {
				return err
			}
			far := 0
			for _, b := range h {
				down, err := myrinet.Links(n.f, n.tree, h[0], n.f.LID(b))
				if err != nil {
					return err
				}
				own, err := myrinet.Links(n.f, n.tree, a, n.f.LID(b))
				if err != nil {
					return err
				}
				depth, far = max(depth, down), max(far, own)
			}
			way, direct = way+up, direct+far
		}
		mean := float64(way) / float64(len(h))
		f.add(shape.name+": the way to the root makes broadcasts longer by less than 10 %", "yes", yes(mean < 0.1*float64(tree)))
		f.add(shape.name+": links of the tree, mean way to the root", "", fmt.Sprintf("%d, %.2f: %+.1f %%", tree, mean, 100*mean/float64(tree)))
		f.add(shape.name+": links to the farthest host, by the root and along the tree from the source", "",
			fmt.Sprintf("%.2f and %.2f", mean+float64(depth), float64(direct)/float64(len(h))))
	}
	return nil
}
