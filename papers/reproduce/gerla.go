package reproduce

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/papers/myrinet"
	"github.com/ibweave/ibweave/papers/myrinet/lan"
	"github.com/ibweave/ibweave/report/chart"
)

// gerla1996 is the Myrinet paper; its figures 10 to 13 (M21 to M28).
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
		{"fig10", "Fig. 10: multicast latency on an 8x8 torus, ten groups of ten, 10 % multicast", func(lab *Lab) (*Figure, error) { return gerlaTorus(lab, true) }},
		{"fig10-place", "Fig. 10 with host IDs in the order of places", func(lab *Lab) (*Figure, error) { return gerlaTorus(lab, false) }},
		{"fig11", "Fig. 11: delay for varying proportions of multicast on a 24-node bidirectional shufflenet", gerlaShufflenet},
		{"fig12", "Fig. 12: throughput of host adapter multicast, four switches and eight hosts", func(lab *Lab) (*Figure, error) { return gerlaTestbed(lab, false) }},
		{"fig13", "Fig. 13: packet loss per host, four switches and eight hosts", func(lab *Lab) (*Figure, error) { return gerlaTestbed(lab, true) }},
		{"unicast", "Repeated unicast beside figure 10's schemes", gerlaBaseline},
		{"acks10", "Fig. 10 with ACK, NACK and buffers that end", func(lab *Lab) (*Figure, error) { return gerlaAcks(lab, false) }},
		{"acks11", "Fig. 11 with ACK, NACK and buffers that end", func(lab *Lab) (*Figure, error) { return gerlaAcks(lab, true) }},
		{"routes", "Up/down and XY routes on an 8x8 mesh", gerlaRoutes},
		{"loss", "Loss at a host and from host to host", gerlaLoss},
		{"hosts", "Figures 12 and 13 by window, hosts and buffers", gerlaHostsFigure},
	},
	Exhibits: gerlaExhibits,
	Claims:   slices.Concat(claimsOf(gerlaRows...), gerlaClaims, gerlaSystemClaims),
	Ours: []string{
		"M26-heavy, IDs by place", "M26-unicast, IDs by place", "M15", "M15 shufflenet", "M26-root, routes", "M28-curves, hosts",
	},
}

// microseconds of a byte time at 640 Mb/s (M2).
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
	unicastOnly = gerlaScheme{name: "no multicast", quiet: true}
)

// gerlaNet is a network with LIDs, up/down routes from the switch of its first host, and
// such routes on the spanning tree alone.
type gerlaNet struct {
	f            *fabric.Fabric
	tables, tree *lft.Tables
}

// withLIDs gives a fabric LIDs.
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

func gerlaNetOf(lab *Lab, name string, make func() (*fabric.Fabric, error)) (*gerlaNet, error) {
	return Once(lab, "gerla "+name, func(context.Context) (*gerlaNet, error) { return withRoutes(make()) })
}

// gerlaTestbedNet is the four switches and eight hosts of figures 12 and 13.
func gerlaTestbedNet(lab *Lab) (*gerlaNet, error) { return gerlaNetOf(lab, "four", gen.Myrinet4) }

// torusSetting is that of figure 10.
func torusSetting(lab *Lab, draws int, random bool) (*gerlaSetting, error) {
	net, err := gerlaNetOf(lab, "torus", func() (*fabric.Fabric, error) {
		return mesh.Generate(mesh.Spec{Dims: []int{8, 8}, Wrap: []bool{true, true}, Hosts: 1})
	})
	s := &gerlaSetting{net: net, groups: 10, members: 10, random: random, wires: lan.DefaultWires(), warmup: 300_000, time: 1_500_000, draws: draws}
	if lab.Quick {
		s.warmup, s.time = 100_000, 200_000
	}
	return s, err
}

// shufflenetSetting is that of figure 11.
func shufflenetSetting(lab *Lab, draws int) (*gerlaSetting, error) {
	net, err := gerlaNetOf(lab, "shufflenet", func() (*fabric.Fabric, error) { return gen.Shufflenet(2, 3) })
	s := &gerlaSetting{net: net, groups: 4, members: 6, random: true, wires: lan.LongWires(1000), warmup: 300_000, time: 4_000_000, draws: draws}
	if lab.Quick {
		s.time = 600_000
	}
	return s, err
}

// schedule draws groups of members, and IDs unless they go by place.
func (n *gerlaNet) schedule(opt myrinet.Options, groups, members int, seed uint64, random bool) (*myrinet.Schedule, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	hosts := n.f.CAPorts()
	ids := rng.Perm(len(hosts))
	if !random {
		slices.Sort(ids)
	}
	opt.ID = func(p fabric.PortID) int32 {
		i, _ := slices.BinarySearch(hosts, p)
		return int32(ids[i]) + 1
	}
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

// gerlaPoint is a measurement, repeated with several draws, and where it goes.
type gerlaPoint struct {
	scheme gerlaScheme
	load   float64        // offered, of a host's link; 0 takes rate
	rate   float64        // worms of a host in a byte time
	share  float64        // multicast in what is originated
	to     []*chart.Point // by metric
}

// gerlaMetric is what a panel shows of all schemes.
type gerlaMetric struct {
	prefix string // of its curves' names
	value  func(r *lan.Result) float64
	ends   bool // where more comes than goes
}

var (
	lastLatency    = gerlaMetric{"", func(r *lan.Result) float64 { return r.Last.Value() * byteTime }, true}
	carriedLoad    = gerlaMetric{"carried: ", func(r *lan.Result) float64 { return r.Utilization }, false}
	multicastShare = gerlaMetric{"share: ", (*lan.Result).MulticastShare, true}
	throughput     = gerlaMetric{"throughput: ", func(r *lan.Result) float64 { return r.Utilization }, false}
)

// gerlaSetting is what all points of a figure share.
type gerlaSetting struct {
	net             *gerlaNet
	groups, members int
	random          bool
	wires           lan.Wires
	warmup, time    int64
	draws           int
	adapters        lan.Adapters // except CutThrough
	maxBytes        int          // of a worm; 0 does not cut
}

// curves adds to the panels of f, one for each metric, a curve for each scheme: at
// each x the means of what draws of point(x) give. Without multicast there is the
// carried load alone.
func (s *gerlaSetting) curves(lab *Lab, f *Figure, schemes []gerlaScheme, metrics []gerlaMetric, xs []float64, point func(x float64) gerlaPoint) error {
	var points []gerlaPoint
	for _, scheme := range schemes {
		first := len(points)
		for _, x := range xs {
			p := point(x)
			p.scheme = scheme
			points = append(points, p)
		}
		for k, m := range metrics {
			curve := newCurve(m.prefix+scheme.name, xs)
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

// measure gives each point its means.
func (s *gerlaSetting) measure(lab *Lab, points []gerlaPoint, metrics []gerlaMetric) error {
	results := make([]*lan.Result, len(points)*s.draws)
	err := lab.Each(len(results), func(ctx context.Context, i int) error {
		p, draw := &points[i/s.draws], i%s.draws
		sched, err := s.net.schedule(myrinet.Options{Method: p.scheme.method}, s.groups, s.members, stream(lab.Seed, "gerla groups", draw), s.random)
		if err != nil {
			return err
		}
		o := lan.Options{
			Fabric: s.net.f, Tables: s.net.tables, Schedule: sched, Wires: s.wires, Adapters: s.adapters,
			Traffic: lan.Traffic{Multicast: p.share, MeanBytes: 400, MaxBytes: s.maxBytes, Rate: p.rate}, Seed: stream(lab.Seed, "gerla traffic", draw), Warmup: s.warmup, Time: s.time,
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

func gerlaTorus(lab *Lab, random bool) (*Figure, error) {
	s, err := torusSetting(lab, 5, random)
	if err != nil {
		return nil, err
	}
	loads := []float64{0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.11, 0.12}
	if lab.Quick || !random {
		loads = []float64{0.02, 0.05, 0.08, 0.1, 0.12}
	}
	f := &Figure{
		Parameters: gerlaParameters(s, "8x8 torus", "10 % of the worms of hosts that are in a group"),
		Panels: []chart.Panel{
			{Title: "(a) latency to the last member", X: loadAxis, Y: latencyAxis},
			{Title: "(b) carried load", X: loadAxis, Y: carriedAxis},
			{Title: "(c) multicast in transmitted worms", X: loadAxis, Y: chart.Axis{Label: "share", Scale: chart.Linear}},
			{Title: "(d) links of a send, by draw of groups", X: chart.Axis{Label: "draw", Scale: chart.Linear}, Y: chart.Axis{Label: "links between switches", Scale: chart.Linear}},
		},
	}
	if err := s.links(lab, &f.Panels[3]); err != nil {
		return nil, err
	}
	schemes := []gerlaScheme{circuitSF, circuitCT, treeRoot, treeFlood, unicastOnly}
	return f, s.curves(lab, f, schemes, []gerlaMetric{lastLatency, carriedLoad, multicastShare}, loads,
		func(load float64) gerlaPoint { return gerlaPoint{load: load, share: 0.1} })
}

// links fills a panel with the mean links of sends, by draw, and how many paths go
// over the hottest link and over a link on the mean.
func (s *gerlaSetting) links(lab *Lab, p *chart.Panel) error {
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
	draws := make([]int, s.draws)
	for d := range draws {
		draws[d] = d
	}
	for _, scheme := range []gerlaScheme{circuitSF, treeFlood} {
		curve := newCurve("links: "+scheme.name, draws)
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
	p.Curves = append(p.Curves, flatCurve("links: all pairs", draws, sum/(hosts*(hosts-1))),
		flatCurve("load of the hottest link, of a host's", draws, hottest/(hosts-1)),
		flatCurve("load of a link on the mean, of a host's", draws, sum/channels/(hosts-1)))
	return nil
}

// flatCurve has one value at all xs.
func flatCurve[N int | float64](name string, xs []N, y float64) chart.Curve {
	c := newCurve(name, xs)
	for i := range c.Points {
		c.Points[i].Y = y
	}
	return c
}

// crossed counts the links between switches that the paths of all pairs cross, and how many
// paths go over the hottest one.
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

func gerlaParameters(s *gerlaSetting, net, share string) []Parameter {
	ids := "random"
	if !s.random {
		ids = "in the order of places"
	}
	return []Parameter{
		{"network", net},
		{"routes", "up/down from switch 0, one path for each pair"},
		{"groups", fmt.Sprintf("%d of %d random members", s.groups, s.members)},
		{"host IDs", ids},
		{"multicast", share},
		{"worms", "Poisson, geometric of 400 bytes on the mean"},
		{"cable", fmt.Sprintf("%d byte times", s.wires.Delay)},
		{"switch", fmt.Sprintf("%d byte times", s.wires.Switch)},
		{"slack buffer", fmt.Sprintf("%d bytes, STOP at %d, GO at %d", s.wires.Slack(), s.wires.Stop, s.wires.Go)},
		{"measured", fmt.Sprintf("%d byte times after %d", s.time, s.warmup)},
		{"draws", fmt.Sprint(s.draws)},
	}
}

// gerlaGenerated is the load that the shufflenet's hosts generate.
const gerlaGenerated = 0.05

func gerlaShufflenet(lab *Lab) (*Figure, error) {
	s, err := shufflenetSetting(lab, 5)
	if err != nil {
		return nil, err
	}
	shares := []float64{0.05, 0.1, 0.15, 0.2, 0.25, 0.3}
	if lab.Quick {
		shares = []float64{0.05, 0.15, 0.3}
	}
	x := chart.Axis{Label: "proportion of multicast in generated worms", Scale: chart.Linear}
	f := &Figure{
		Parameters: append(gerlaParameters(s, "24-node bidirectional shufflenet", "as on the axis, at hosts that are in a group"),
			Parameter{"generated", fmt.Sprintf("%v of a host's link, passing on not included", gerlaGenerated)}),
		Panels: []chart.Panel{
			{Title: "(a) latency to the last member", X: x, Y: chart.Axis{Label: "latency", Unit: "µs", Scale: chart.Linear}},
			{Title: "(b) throughput", X: x, Y: carriedAxis},
		},
	}
	return f, s.curves(lab, f, []gerlaScheme{circuitSF, circuitCT, treeRoot, treeFlood}, []gerlaMetric{lastLatency, throughput}, shares,
		func(share float64) gerlaPoint { return gerlaPoint{rate: gerlaGenerated / 400, share: share} })
}

// The curves of figures 12 and 13.
const (
	oneSender   = "one sender"
	allSenders  = "all hosts send"
	halfSend    = "half of the hosts send: those that do"
	halfForward = "half of the hosts send: those that only pass on"
)

// gerlaRun is a draw of the testbed with some senders of eight, every other one
// where it is half of them. What is drawn is when hosts begin.
func gerlaRun(ctx context.Context, lab *Lab, net *gerlaNet, m gerlaMachine, senders, bytes int, time int64, draw int) (*lan.Result, error) {
	s, err := myrinet.Build(net.f, net.tables, []mft.Group{gerlaGroup(net.f.CAPorts(), senders)}, myrinet.Options{Classes: 1})
	if err != nil {
		return nil, err
	}
	return lan.Run(ctx, lan.Options{
		Fabric: net.f, Tables: net.tables, Schedule: s, Wires: lan.DefaultWires(), Seed: stream(lab.Seed, "gerla testbed", draw),
		Adapters: lan.Adapters{Buffer: m.buffer, Handle: 800, HandleByte: 1},
		Traffic:  lan.Traffic{Multicast: 1, Bytes: bytes, Window: m.window, Prepare: 400, PrepareByte: m.prepareByte},
		Warmup:   time / 10, Time: time,
	})
}

// gerlaTestbedTime is how long the testbed is measured, in byte times, and how often.
func gerlaTestbedTime(lab *Lab) (time int64, draws int) {
	if lab.Quick {
		return 1_300_000, 3
	}
	return 4_000_000, 5
}

// gerlaSizes are the packet sizes of figures 12 and 13.
func gerlaSizes(lab *Lab) []int {
	if lab.Quick {
		return []int{512, 2048, 8192}
	}
	return []int{512, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192}
}

var (
	packetAxis   = chart.Axis{Label: "packet size", Unit: "bytes", Scale: chart.Linear}
	receivedAxis = chart.Axis{Label: "received by a host", Unit: "Mb/s", Scale: chart.Linear}
)

func gerlaTestbedParameters(time int64, draws int) []Parameter {
	return []Parameter{
		{"network", "four switches in a ring, eight hosts in one group, a circuit without the last hop"},
		{"adapters", "store and forward, 25000 bytes of input buffer, no ACKs; the processor takes 10 µs and 12.5 ns a byte for each worm, its own host's too"},
		{"hosts", "5 µs and 12.5 ns a byte to make a worm, four at most ahead of the adapter"},
		{"measured", fmt.Sprintf("%d byte times after %d", time, time/10)},
		{"draws", fmt.Sprint(draws)},
	}
}

func gerlaTestbed(lab *Lab, loss bool) (*Figure, error) {
	y := receivedAxis
	list := []testbedCurve{{oneSender, 1, received}, {allSenders, 8, received}}
	if loss {
		y = chart.Axis{Label: "lost of the worms that come to a host", Scale: chart.Linear}
		list = []testbedCurve{{oneSender, 1, lost}, {allSenders, 8, lost}, {halfSend, 4, lostWhereSent}, {halfForward, 4, lostWherePassed}}
	}
	return testbedFigure(lab, y, list)
}

// testbedCurve is a curve of figures 12 and 13, over packet sizes.
type testbedCurve struct {
	name    string
	senders int
	value   func(r *testbed) float64
}

// testbedFigure measures curves of one panel.
func testbedFigure(lab *Lab, y chart.Axis, list []testbedCurve) (*Figure, error) {
	panel := chart.Panel{X: packetAxis, Y: y}
	sizes := gerlaSizes(lab)
	var points []testbedPoint
	for _, c := range list {
		curve := newCurve(c.name, sizes)
		for k, bytes := range sizes {
			points = append(points, testbedPoint{machine1996, c.senders, bytes, c.value, &curve.Points[k]})
		}
		panel.Curves = append(panel.Curves, curve)
	}
	time, draws := gerlaTestbedTime(lab)
	f := &Figure{Parameters: gerlaTestbedParameters(time, draws), Panels: []chart.Panel{panel}}
	return f, measureTestbed(lab, points)
}

// testbedPoint is a setting of the testbed, what is measured, and where it goes.
type testbedPoint struct {
	machine        gerlaMachine
	senders, bytes int
	value          func(r *testbed) float64
	to             *chart.Point
}

// measureTestbed gives each point the mean of several draws. Points of one setting share
// their runs.
func measureTestbed(lab *Lab, points []testbedPoint) error {
	net, err := gerlaTestbedNet(lab)
	if err != nil {
		return err
	}
	time, draws := gerlaTestbedTime(lab)
	values := make([]float64, len(points)*draws)
	err = lab.Each(len(values), func(ctx context.Context, i int) error {
		p, draw := &points[i/draws], i%draws
		key := fmt.Sprintf("gerla testbed %+v %d %d %d", p.machine, p.senders, p.bytes, draw)
		r, err := Once(lab, key, func(context.Context) (*testbed, error) {
			r, err := gerlaRun(ctx, lab, net, p.machine, p.senders, p.bytes, time, draw)
			if err != nil {
				return nil, err
			}
			return testbedOf(r, p.senders, time), nil
		})
		if err == nil {
			values[i] = p.value(r)
		}
		return err
	})
	for i, p := range points {
		estimate(p.to, values[i*draws:(i+1)*draws])
	}
	return err
}
