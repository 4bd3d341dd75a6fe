package reproduce

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/papers/myrinet"
	"github.com/ibweave/ibweave/papers/myrinet/lan"
	"github.com/ibweave/ibweave/report/chart"
)

// gerla1996 is the Myrinet paper, with figures 10 to 13 (M21 to M28).
var gerla1996 = Paper{
	ID: "gerla1996",
	Title: "Gerla, Palnati, Walton: Multicasting protocols for high-speed, wormhole-routing local area networks, " +
		"SIGCOMM 1996",
	Notes: []string{
		"The curves are lost in the text at hand, so claims are compared and not values.",
		"Latency is that to the last member, and the offered load has the worms that hosts pass on in it (E-M8).",
		"Host IDs are random; gerla1996/fig10-place has them in the order of places, where circuits are short (E-M6).",
		"The tree is run both ways, from the root and flooded (E-M5); adapters have room for any number of worms, and no ACKs, in figures 10 and 11.",
		"Figures 12 and 13 depend on the hosts of 1996, of which the paper has no numbers (E-M15): the processors of adapters take 10 µs and 12.5 ns a byte for each worm, hosts 5 µs and 12.5 ns a byte to make one. With hosts that take longer than adapters one sender is below all hosts sending.",
	},
	Experiments: []Experiment{
		modelled("fig10", "Fig. 10: multicast latency on an 8x8 torus, ten groups of ten, 10 % multicast", quickTorus,
			"lan --scheme circuit,circuit-ct,tree,tree-flood,none --measure latency,carried,share,links --load 0.01,0.02,0.03,0.04,0.05,0.06,0.07,0.08,0.09,0.1,0.11,0.12"),
		modelled("fig10-place", "Fig. 10 with host IDs in the order of places", quickTorus,
			"lan --ids place --scheme circuit,circuit-ct,tree,tree-flood,none --measure latency,carried,share,links --load 0.02,0.05,0.08,0.1,0.12"),
		modelled("fig11", "Fig. 11: delay for varying proportions of multicast on a 24-node bidirectional shufflenet", "--share 0.05,0.15,0.3 --time 600000",
			shufflenetCall+" --measure latency,throughput --share 0.05,0.1,0.15,0.2,0.25,0.3"),
		modelled("fig12", "Fig. 12: throughput of host adapter multicast, four switches and eight hosts", quickTestbed, "testbed --measure received --bytes "+testbedBytes),
		modelled("fig13", "Fig. 13: packet loss per host, four switches and eight hosts", quickTestbed, "testbed --senders 1,8,4 --measure lost --bytes "+testbedBytes),
		modelled("unicast", "Repeated unicast beside figure 10's schemes", quickTime+" --load 0.02,0.05",
			"lan --scheme unicast,circuit,tree,tree-flood --load 0.01,0.02,0.05,0.08,0.1 --draws 3"),
		modelled("acks10", "Fig. 10 with ACK, NACK and buffers that end", quickTime+" --load 0.02,0.05",
			"lan --scheme circuit,circuit-ct,tree,tree-flood --measure latency,carried,refused --load 0.02,0.05,0.08,0.1 --draws 3 --acks --buffer 25000 --max-bytes 9000"),
		modelled("acks11", "Fig. 11 with ACK, NACK and buffers that end", "--share 0.05,0.15 --time 600000",
			shufflenetCall+" --measure latency,carried,refused --share 0.05,0.15,0.3 --draws 3 --acks --buffer 25000 --max-bytes 9000 --timeout 10000"),
		modelled("cut-trees", "Cut-through on trees and on the circuit", quickTime+" --load 0.01,0.05",
			"lan --scheme circuit-ct,tree,tree-ct,tree-flood,tree-flood-ct --measure latency --load 0.01,0.02,0.05,0.08"),
		modelled("routes", "Up/down and XY routes on an 8x8 mesh", quickTime+" --load 0.1,0.25",
			"lan --network mesh --routes up-down,xy --scheme none --measure carried,links --load 0.05,0.1,0.15,0.2,0.25,0.3 --draws 3"),
		modelled("loss", "Loss at a host and from host to host", quickTestbed, "testbed --senders 8 --measure lost,in-all --bytes "+testbedBytes),
		modelled("hosts", "Figures 12 and 13 by window, hosts and buffers", "--time 1300000 --draws 3",
			"testbed --measure received,lost --x window --window 1,2,4,8,16",
			"testbed --measure received,lost --x prepare-byte --prepare-byte 0.25,0.5,1,2,4",
			"testbed --measure received,lost --x buffer --buffer 8192,16384,25000,65536"),
		modelled("latency", "Multicasts of 400 bytes to nine hosts of an idle 8x8 torus, a byte time for each link", "",
			"switches --network torus --scheme idle-tree --unicasts 0 --multicasts 1 --members 9 --flits 400 --buffer 2 --draws 20",
			"lan --scheme circuit-ct,tree,tree-flood --measure latency --load 0.002 --cable 0 --switch 1 --stop 32 --go 8"),
		modelled("switching", "Ways to multicast in switches, and unicast beside it, in random networks", "--draws 12 --unicasts 0,20", "switches --unicasts 0,10,20,40,80"),
	},
	Exhibits: gerlaExhibits,
	Claims:   slices.Concat(claimsOf(gerlaRows...), gerlaClaims, gerlaSystemClaims),
	Ours: []string{
		"M20 trees", "M26-heavy, IDs by place", "M26-unicast, IDs by place", "M15", "M15 shufflenet", "M26-root, routes", "M28-curves, hosts",
	},
}

// byteTime is a byte time at 640 Mb/s (M2), in microseconds.
const byteTime = 0.0125

// gerlaScheme is a way to multicast by host adapters.
type gerlaScheme struct {
	name   string
	method myrinet.Method
	cut    bool
	quiet  bool // unicast alone
}

var (
	circuitSF   = gerlaScheme{name: "circuit, store and forward", method: myrinet.Circuit}
	circuitCT   = gerlaScheme{name: "circuit, cut-through", method: myrinet.Circuit, cut: true}
	treeRoot    = gerlaScheme{name: "tree from its root", method: myrinet.Tree}
	treeFlood   = gerlaScheme{name: "tree, flooded", method: myrinet.TreeFlood}
	treeRootCT  = gerlaScheme{name: "tree from its root, cut-through", method: myrinet.Tree, cut: true}
	treeFloodCT = gerlaScheme{name: "tree, flooded, cut-through", method: myrinet.TreeFlood, cut: true}
	unicastOnly = gerlaScheme{name: "no multicast", quiet: true}
)

// gerlaNet is a network with LIDs. tables has up/down routes from the
// switch of its first host, tree such routes on the spanning tree alone.
type gerlaNet struct {
	f            *fabric.Fabric
	tables, tree *lft.Tables
}

func withLIDs(f *fabric.Fabric, err error) (*fabric.Fabric, error) {
	if err != nil {
		return nil, err
	}
	return lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs})
}

// withRoutes gives a network LIDs and routes.
func withRoutes(f *fabric.Fabric, err error) (*gerlaNet, error) {
	if f, err = withLIDs(f, err); err != nil {
		return nil, err
	}
	u, err := myrinet.NewUpDown(f, f.Owner(f.Peer(f.CAPorts()[0])))
	if err != nil {
		return nil, err
	}
	n := &gerlaNet{f: f}
	if n.tables, err = u.Tables(); err == nil {
		n.tree, err = u.TreeTables()
	}
	return n, err
}

// Calls, and parts of calls, that figures share; quick ones are for quick runs.
const (
	shufflenetCall = "lan --network shufflenet --scheme circuit,circuit-ct,tree,tree-flood --x share --groups 4 --members 6 --generated 0.05 --cable 1000 --time 4000000"
	testbedBytes   = "512,1024,2048,3072,4096,5120,6144,7168,8192"
	quickTime      = "--warmup 100000 --time 200000"
	quickTorus     = "--load 0.02,0.05,0.08,0.1,0.12 " + quickTime
	quickTestbed   = "--bytes 512,2048,8192 --time 1300000 --draws 3"
)

// schedule draws groups of members, and IDs if random; else IDs go by place.
func (n *gerlaNet) schedule(opt myrinet.Options, groups, members int, seed uint64, random bool) (*myrinet.Schedule, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	hosts := n.f.CAPorts()
	ids := rng.Perm(len(hosts))
	if !random {
		slices.Sort(ids)
	}
	opt.ID = func(p fabric.PortID) int32 { return int32(ids[n.idByPlace(p)-1]) + 1 }
	list := make([]mft.Group, groups)
	for g := range list {
		list[g].Name = fmt.Sprintf("group %d", g)
		for _, h := range rng.Perm(len(hosts))[:members] {
			list[g].Receivers = append(list[g].Receivers, hosts[h])
		}
		slices.Sort(list[g].Receivers)
		list[g].Senders = list[g].Receivers
	}
	return myrinet.Build(n.f, n.tables, list, opt)
}

// gerlaPoint is a measurement, repeated with several draws, and the points that get its results.
type gerlaPoint struct {
	scheme gerlaScheme
	load   float64        // offered load of a host's link; 0 takes rate
	rate   float64        // worms that a host originates in a byte time
	share  float64        // multicast part of originated worms
	to     []*chart.Point // by metric
}

// gerlaMetric is the value that a panel shows of each scheme.
type gerlaMetric struct {
	prefix string // of its curves' names
	value  func(r *lan.Result) float64
	ends   bool // its points are unsteady if more comes than goes
}

var (
	lastLatency    = gerlaMetric{"", func(r *lan.Result) float64 { return r.Last.Value() * byteTime }, true}
	carriedLoad    = gerlaMetric{"carried: ", func(r *lan.Result) float64 { return r.Utilization }, false}
	multicastShare = gerlaMetric{"share: ", (*lan.Result).MulticastShare, true}
	throughput     = gerlaMetric{"throughput: ", func(r *lan.Result) float64 { return r.Utilization }, false}
)

// gerlaSetting has the settings of all points of a figure.
type gerlaSetting struct {
	net             *gerlaNet
	groups, members int
	random          bool
	wires           lan.Wires
	warmup, time    int64
	draws           int
	adapters        lan.Adapters // except CutThrough
	maxBytes        int          // of a worm; 0 does not cut
	meanBytes       float64
}

// curves adds to the panels of f, one for each metric, a curve for each scheme,
// with the means of point(x) over draws at each x. A scheme without multicast
// gets only the carried load. what names the setting in the names of curves.
func (s *gerlaSetting) curves(lab *Lab, f *Figure, schemes []gerlaScheme, metrics []gerlaMetric, xs []float64, point func(x float64) gerlaPoint, what string) error {
	var points []gerlaPoint
	for _, scheme := range schemes {
		first := len(points)
		for _, x := range xs {
			p := point(x)
			p.scheme = scheme
			points = append(points, p)
		}
		for k, m := range metrics {
			name := varied(ifSeveral(schemes, "%v", scheme.name), what)
			if name == "" {
				name = scheme.name
			}
			curve := newCurve(m.prefix+name, xs)
			for i := range xs {
				points[first+i].to = append(points[first+i].to, &curve.Points[i])
			}
			if !scheme.quiet || m.prefix == carriedLoad.prefix {
				f.Panels[k].Curves = append(f.Panels[k].Curves, curve)
			}
		}
	}
	return s.measure(lab, points, metrics)
}

// measure simulates the points, and gives each its means over draws.
func (s *gerlaSetting) measure(lab *Lab, points []gerlaPoint, metrics []gerlaMetric) error {
	results := make([]*lan.Result, len(points)*s.draws)
	err := lab.Each(len(results), func(ctx context.Context, i int) error {
		p, draw := &points[i/s.draws], i%s.draws
		sched, err := s.net.schedule(myrinet.Options{Method: p.scheme.method}, s.groups, s.members, stream(lab.Seed, "gerla groups", draw), s.random)
		if err != nil {
			return err
		}
		o := lan.Options{ // points share draws, to compare them draw by draw
			Fabric: s.net.f, Tables: s.net.tables, Schedule: sched, Wires: s.wires, Adapters: s.adapters,
			Traffic: lan.Traffic{Multicast: p.share, MeanBytes: s.meanBytes, MaxBytes: s.maxBytes, Rate: p.rate}, Seed: stream(lab.Seed, "gerla traffic", draw), Warmup: s.warmup, Time: s.time,
		}
		o.Adapters.CutThrough = p.scheme.cut
		if p.scheme.quiet {
			o.Traffic.Multicast = 0
		}
		if p.load > 0 {
			o.Traffic.Rate = p.load / o.Traffic.MeanBytes / o.Sends()
		}
		results[i], err = lan.Run(ctx, o)
		return err
	})
	if err != nil {
		return err
	}
	for i := range points {
		for k, to := range points[i].to {
			values, flows := make([]float64, s.draws), make([]flow, s.draws)
			for d := range values {
				r := results[i*s.draws+d]
				values[d] = metrics[k].value(r)
				flows[d] = flow{r.Came, r.Went, r.Early.Value(), r.Late.Value()}
			}
			estimate(to, values)
			to.Unsteady = metrics[k].ends && !allSteady(flows)
		}
	}
	return nil
}

// links adds curves over draws to a panel: the mean links of a
// send in each scheme and of a path between two hosts, and the
// loads of the hottest and of a mean link. what names the setting.
func (s *gerlaSetting) links(lab *Lab, p *chart.Panel, schemes []gerlaScheme, what string) error {
	sum, hottest, err := s.net.crossed()
	if err != nil {
		return err
	}
	channels := 0.0
	for sw := range fabric.NodeID(s.net.f.NumSwitches()) {
		ports, _ := s.net.f.SwitchLinks(sw)
		channels += float64(len(ports))
	}
	hosts := float64(len(s.net.f.CAPorts()))
	draws := text.Numbers[int](s.draws)
	for _, scheme := range schemes {
		if scheme.quiet || scheme.cut {
			continue
		}
		curve := newCurve(varied("links: "+scheme.name, what), draws)
		for d := range draws {
			sched, err := s.net.schedule(myrinet.Options{Method: scheme.method, Return: scheme.method == myrinet.Circuit}, s.groups, s.members, stream(lab.Seed, "gerla groups", d), s.random)
			if err != nil {
				return err
			}
			c, err := sched.Cost(s.net.f, s.net.tables)
			if err != nil {
				return err
			}
			curve.Points[d].Y = c.MeanLinks
		}
		p.Curves = append(p.Curves, curve)
	}
	p.Curves = append(p.Curves, flatCurve(varied("links: all pairs", what), draws, sum/(hosts*(hosts-1))),
		flatCurve(varied(hottestLink, what), draws, hottest/(hosts-1)), flatCurve(varied(meanLink, what), draws, sum/channels/(hosts-1)))
	return nil
}

const (
	hottestLink = "load of the hottest link, of a host's"
	meanLink    = "load of a link on the mean, of a host's"
)

func flatCurve[N int | float64](name string, xs []N, y float64) chart.Curve {
	c := newCurve(name, xs)
	for i := range c.Points {
		c.Points[i].Y = y
	}
	return c
}

// crossed counts the links between switches that the paths of
// all pairs cross, and the paths over the hottest link.
func (n *gerlaNet) crossed() (sum, hottest float64, err error) {
	load := make([]float64, n.f.NumPorts())
	for _, a := range n.f.CAPorts() {
		for _, b := range n.f.CAPorts() {
			if a == b {
				continue
			}
			path, err := n.tables.Path(n.f, a, n.f.LID(b), nil)
			if err != nil {
				return 0, 0, err
			}
			for _, out := range path[1 : len(path)-1] {
				load[out]++
				hottest = max(hottest, load[out])
			}
			sum += float64(len(path) - 2)
		}
	}
	return sum, hottest, nil
}
