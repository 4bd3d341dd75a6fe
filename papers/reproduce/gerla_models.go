package reproduce

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/papers/myrinet"
	"github.com/ibweave/ibweave/papers/myrinet/lan"
	"github.com/ibweave/ibweave/report/chart"
)

// lanNetwork names the network of a model of Myrinet: one of the paper's, or a topology file.
type lanNetwork struct{ name, file string }

func (o *lanNetwork) define(flags *pflag.FlagSet, name string) {
	flags.StringVar(&o.name, "network", name, "`NAME` of a network of the paper: torus or mesh of 8x8, shufflenet, myrinet4 of four switches")
	flags.StringVarP(&o.file, "topology", "t", "", "topology `FILE` in its place")
}

func (o *lanNetwork) make() (*fabric.Fabric, error) {
	switch {
	case o.file != "":
		text, err := files.ReadRegular(o.file, 1<<30)
		if err != nil {
			return nil, err
		}
		f, _, err := topology.Parse(o.file, text, topology.Options{})
		if err == nil && len(f.CAPorts()) < 2 {
			err = &fabric.ParseError{File: o.file, Err: fmt.Errorf("it has fewer than two hosts")}
		}
		return f, err
	case o.name == "torus", o.name == "mesh":
		wrap := o.name == "torus"
		return mesh.Generate(mesh.Spec{Dims: []int{8, 8}, Wrap: []bool{wrap, wrap}, Hosts: 1})
	case o.name == "shufflenet":
		return gen.Shufflenet(2, 3)
	case o.name == "myrinet4":
		return gen.Myrinet4()
	}
	return nil, fmt.Errorf("--network %q: want torus, mesh, shufflenet or myrinet4", o.name)
}

// net returns the network with its routes: up-down, up-down on its tree, or xy of compile.
func (o *lanNetwork) net(lab *Lab, routes string) (*gerlaNet, error) {
	return Once(lab, fmt.Sprint("gerla ", *o, routes), func(ctx context.Context) (*gerlaNet, error) {
		n, err := withRoutes(o.make())
		if err != nil {
			return nil, err
		}
		switch routes {
		case "up-down":
		case "tree":
			n.tables = n.tree
		case "xy":
			engine, err := compile.EngineByName("xy")
			if err != nil {
				return nil, err
			}
			r, err := compile.Run(ctx, n.f, engine, compile.Options{LIDs: lft.LIDOptions{Policy: lft.KeepLIDs}})
			if err != nil {
				return nil, err
			}
			n.f, n.tables = r.Routing.Fabric, r.Routing.Tables
		default:
			return nil, fmt.Errorf("--routes %q: want up-down, tree or xy", routes)
		}
		return n, nil
	})
}

var lanSchemes = map[string]gerlaScheme{
	"circuit": circuitSF, "circuit-ct": circuitCT, "tree": treeRoot, "tree-flood": treeFlood, "unicast": repeatedUnicast, "none": unicastOnly,
	"tree-ct": treeRootCT, "tree-flood-ct": treeFloodCT,
}

// lanMeasures has the values of --measure, each with the panel that it is shown in.
var lanMeasures = map[string]struct {
	gerlaMetric
	panel chart.Panel
}{
	"latency":    {lastLatency, chart.Panel{Title: "latency to the last member", Y: latencyAxis}},
	"carried":    {carriedLoad, chart.Panel{Title: "carried load, without answers", Y: carriedAxis}},
	"share":      {multicastShare, chart.Panel{Title: "multicast in transmitted worms", Y: linear("share", "")}},
	"throughput": {throughput, chart.Panel{Title: "throughput", Y: carriedAxis}},
	"refused":    {nacked, chart.Panel{Title: "NACKs", Y: linear("of a multicast worm", "")}},
	"links":      {panel: chart.Panel{Title: "links of a send, by draw of groups", X: linear("draw", ""), Y: linear("links between switches", "")}},
}

var lanModel = Model{
	Name: "lan", Short: "multicast by host adapters on a Myrinet: latency, load, refusals",
	Long: `Hosts of a network with STOP and GO originate worms, unicast and multicast to random groups,
which host adapters pass on along circuits or trees. There is a curve for each scheme and
routes. Times are in byte times of 12.5 ns.`,
	Example: "lan --network shufflenet --scheme circuit-ct,tree-flood --groups 3 --members 5 --load 0.02,0.04 --draws 2 --time 200000",
	define: func(flags *pflag.FlagSet) func(lab *Lab) (*Figure, error) {
		var o lanSweep
		o.network.define(flags, "torus")
		flags.StringSliceVar(&o.routes, "routes", []string{"up-down"}, "routes, `LIST` of up-down, tree (the spanning tree of up-down) and xy")
		flags.StringVar(&o.ids, "ids", "random", "host IDs, `HOW`: random, or in the order of places (place)")
		flags.StringSliceVar(&o.scheme, "scheme", []string{"circuit", "tree"}, "`LIST` of circuit, tree, tree-flood, the same cut through (circuit-ct, ..), unicast, none")
		flags.StringSliceVar(&o.measure, "measure", []string{"latency", "carried"}, "panels, `LIST` of latency, carried, share, throughput, refused, links")
		flags.StringVar(&o.x, "x", "load", "what is on the axis, `NAME`: load or share")
		flags.Float64SliceVar(&o.load, "load", []float64{0.05}, "offered load of a host's link, with what it passes on")
		flags.Float64Var(&o.generated, "generated", 0, "in its place the load of what hosts originate")
		flags.Float64SliceVar(&o.share, "share", []float64{0.1}, "part of multicast in worms of hosts in a group")
		flags.IntVar(&o.groups, "groups", 10, "groups")
		flags.IntVar(&o.members, "members", 10, "random members of each")
		flags.Float64Var(&o.meanBytes, "mean-bytes", 400, "mean length of worms, which is geometric")
		flags.IntVar(&o.maxBytes, "max-bytes", 0, "most bytes of a worm; 0 does not cut")
		flags.IntVar(&o.cable, "cable", 5, "byte times along a cable")
		flags.IntVar(&o.wires.Switch, "switch", 8, "byte times in a switch")
		flags.IntVar(&o.wires.Stop, "stop", 0, "bytes in a slack buffer at which it sends STOP; 0 takes 32 and two cables")
		flags.IntVar(&o.wires.Go, "go", 0, "bytes at which it sends GO; 0 takes 8 and two cables")
		flags.BoolVar(&o.adapters.Acks, "acks", false, "adapters answer with ACK or NACK, and send again")
		flags.IntVar(&o.adapters.AckBytes, "ack-bytes", 8, "bytes of an answer")
		flags.IntVar(&o.adapters.Timeout, "timeout", 1000, "least byte times until a refused worm is sent again")
		flags.IntVar(&o.adapters.Buffer, "buffer", 0, "bytes of a class of an adapter's buffers; 0 takes any number")
		flags.Int64Var(&o.warmup, "warmup", 300_000, "byte times before the measurement")
		flags.Int64Var(&o.time, "time", 1_500_000, "byte times of it")
		flags.IntVar(&o.draws, "draws", 5, "draws of groups and traffic")
		return o.figure
	},
}

// lanSweep has the flags of the model lan; x names the flag that varies along the axis.
type lanSweep struct {
	gerlaSetting
	network                 lanNetwork
	ids, x                  string
	routes, scheme, measure []string
	load, share             []float64
	generated               float64
	cable                   int
}

func (o *lanSweep) figure(lab *Lab) (*Figure, error) {
	s := o.gerlaSetting
	if s.random = o.ids == "random"; !s.random && o.ids != "place" {
		return nil, fmt.Errorf("--ids %q: want random or place", o.ids)
	}
	if o.x != "load" && o.x != "share" || s.draws < 1 || len(o.load) == 0 || len(o.share) == 0 {
		return nil, fmt.Errorf("--x %q, %d draws: want load or share, values for it, and 1 or more", o.x, s.draws)
	}
	wires := lan.LongWires(o.cable)
	wires.Switch = s.wires.Switch
	if s.wires.Stop > 0 {
		wires.Stop = s.wires.Stop
	}
	if s.wires.Go > 0 {
		wires.Go = s.wires.Go
	}
	s.wires = wires
	var schemes []gerlaScheme
	for _, word := range o.scheme {
		scheme, ok := lanSchemes[word]
		if !ok {
			return nil, fmt.Errorf("--scheme %q: want circuit, tree, tree-flood, with -ct behind them, unicast or none", word)
		}
		schemes = append(schemes, scheme)
	}
	xs, axis := o.load, loadAxis
	point := func(x float64) gerlaPoint { return gerlaPoint{load: x, share: o.share[0]} }
	if o.x == "share" {
		xs, axis.Label = o.share, "proportion of multicast in generated worms"
		point = func(x float64) gerlaPoint { return gerlaPoint{load: o.load[0], share: x} }
	}
	f := &Figure{}
	var metrics []gerlaMetric
	links := -1
	for _, word := range o.measure {
		m, ok := lanMeasures[word]
		if !ok {
			return nil, fmt.Errorf("--measure %q: want latency, carried, share, throughput, refused or links", word)
		}
		if word == "links" {
			links = len(f.Panels)
			f.Panels = append(f.Panels, m.panel)
			continue
		}
		if links >= 0 {
			return nil, fmt.Errorf("--measure %s: want links last", strings.Join(o.measure, ","))
		}
		m.panel.X = axis
		f.Panels, metrics = append(f.Panels, m.panel), append(metrics, m.gerlaMetric)
	}
	lab.calls = max(1, lab.calls) * len(o.routes)
	for _, routes := range o.routes {
		var err error
		if s.net, err = o.network.net(lab, routes); err != nil {
			return nil, err
		}
		if n := len(s.net.f.CAPorts()); s.members < 2 || s.members > n || s.groups < 1 {
			return nil, fmt.Errorf("%d groups of %d members: want 1 or more of 2 to the %d hosts", s.groups, s.members, n)
		}
		what := ifSeveral(o.routes, "%v", routes)
		if links >= 0 {
			if err := s.links(lab, &f.Panels[links], schemes, what); err != nil {
				return nil, err
			}
		}
		if err := s.curves(lab, f, schemes, metrics, xs, func(x float64) gerlaPoint {
			p := point(x)
			if o.generated > 0 {
				p.load, p.rate = 0, o.generated/s.meanBytes
			}
			return p
		}, what); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// testbedMeasures has the values of testbed's --measure: the panel, the curve's name for a single
// number of senders, and the value of a run for a kind of hosts: all (0), senders (1), others (2).
var testbedMeasures = map[string]struct {
	panel chart.Panel
	name  string
	value func(r *lan.Result, sends []bool, kind int, time int64) float64
}{
	"received": {chart.Panel{Title: "received", Y: receivedAxis}, "received", func(r *lan.Result, sends []bool, _ int, time int64) float64 {
		bits, receivers, one := 0.0, 0.0, false
		for h, host := range r.Hosts { // the only sender receives nothing
			if alone := sends[h] && !slices.Contains(sends[h+1:], true) && !one; !alone {
				bits, receivers = bits+8*float64(host.Bytes), receivers+1
			}
			one = one || sends[h]
		}
		return bits / receivers / (float64(time) * byteTime)
	}},
	"lost": {chart.Panel{Title: "lost of the worms that come to a host", Y: linear("share", "")}, lostAtHop, func(r *lan.Result, sends []bool, kind int, _ int64) float64 {
		came, lost := 0.0, 0.0
		for h, host := range r.Hosts {
			if kind == 0 || sends[h] == (kind == 1) {
				came, lost = came+float64(host.Came), lost+float64(host.Lost)
			}
		}
		return lost / came
	}},
	"in-all": {chart.Panel{Title: "lost of what members should have", Y: linear("share", "")}, lostHostToHost, func(r *lan.Result, _ []bool, _ int, _ int64) float64 {
		return 1 - float64(r.Received)/float64(r.Expected)
	}},
}

var testbedModel = Model{
	Name: "testbed", Short: "throughput and loss of hosts that multicast without end",
	Long: `All hosts of a network are one group, and some of them send without end, with a window,
through adapters without answers whose buffers overflow.`,
	Example: "testbed --senders 1,2 --measure received,lost --bytes 1024 --window 8 --method tree-flood --time 200000 --draws 2",
	define: func(flags *pflag.FlagSet) func(lab *Lab) (*Figure, error) {
		var o testbedSweep
		o.network.define(flags, "myrinet4")
		flags.IntSliceVar(&o.senders, "senders", []int{1, 8}, "hosts that send")
		flags.StringVar(&o.method, "method", "circuit", "`METHOD`: circuit, tree, tree-flood or unicast")
		flags.StringSliceVar(&o.measure, "measure", []string{"received"}, "panels, `LIST` of received, lost, in-all")
		flags.StringVar(&o.x, "x", "bytes", "what is on the axis, `NAME`: bytes, window, prepare-byte or buffer")
		flags.Float64SliceVar(&o.bytes, "bytes", []float64{4096}, "bytes of a worm")
		flags.Float64SliceVar(&o.window, "window", []float64{4}, "worms that a host is ahead of its adapter")
		flags.Float64SliceVar(&o.prepareByte, "prepare-byte", []float64{1}, "byte times of a host for each byte of a worm")
		flags.Float64SliceVar(&o.buffer, "buffer", []float64{25_000}, "bytes of an adapter's buffer")
		flags.IntVar(&o.handle, "handle", 800, "byte times of an adapter's processor for a worm, and one for each byte")
		flags.Int64Var(&o.time, "time", 4_000_000, "byte times of the measurement")
		flags.IntVar(&o.draws, "draws", 5, "draws of when hosts begin")
		return o.figure
	},
}

// testbedSweep has the flags of the model testbed; x names the flag that varies along the axis.
type testbedSweep struct {
	network                            lanNetwork
	senders                            []int
	method, x                          string
	measure                            []string
	bytes, window, prepareByte, buffer []float64
	handle, draws                      int
	time                               int64
}

func (o *testbedSweep) figure(lab *Lab) (*Figure, error) {
	net, err := o.network.net(lab, "up-down")
	if err != nil {
		return nil, err
	}
	method, err := myrinet.ParseMethod(o.method)
	if err != nil {
		return nil, err
	}
	axes := map[string]struct {
		axis chart.Axis
		list *[]float64
	}{
		"bytes":        {linear("packet size", "bytes"), &o.bytes},
		"window":       {chart.Axis{Label: "worms that a host is ahead of its adapter", Scale: chart.Log2}, &o.window},
		"prepare-byte": {chart.Axis{Label: "time of a host for a byte, adapters take 1", Unit: "byte times", Scale: chart.Log2}, &o.prepareByte},
		"buffer":       {chart.Axis{Label: "buffer of an adapter", Unit: "bytes", Scale: chart.Log2}, &o.buffer},
	}
	x, ok := axes[o.x]
	hosts := net.f.CAPorts()
	if !ok || o.draws < 1 || slices.Max(o.senders) > len(hosts) || slices.Min(o.senders) < 1 {
		return nil, fmt.Errorf("--x %q, %d draws, senders %v: want bytes, window, prepare-byte or buffer, 1 or more, and 1 to the %d hosts",
			o.x, o.draws, o.senders, len(hosts))
	}
	xs := slices.Clone(*x.list)
	f := &Figure{}
	type point struct {
		senders int
		x       float64
		values  []func(r *lan.Result)
	}
	points := make([]point, len(o.senders)*len(xs)*o.draws)
	var ends []func()
	for _, word := range o.measure {
		m, ok := testbedMeasures[word]
		if !ok {
			return nil, fmt.Errorf("--measure %q: want received, lost or in-all", word)
		}
		m.panel.X = x.axis
		for i, n := range o.senders {
			sends := senders(len(hosts), n)
			name, kinds := fmt.Sprintf("%d of %d hosts send", n, len(hosts)), []int{0}
			switch {
			case len(o.senders) == 1:
				name = m.name
			case n == 1:
				name = oneSender
			case n == len(hosts):
				name = allSenders
			case word == "lost":
				kinds = []int{1, 2}
			}
			for _, kind := range kinds {
				curve := newCurve(name+[...]string{"", ": those that do", ": those that only pass on"}[kind], xs)
				for k := range xs {
					values := make([]float64, o.draws)
					for d := range values {
						p := &points[(i*len(xs)+k)*o.draws+d]
						p.senders, p.x = n, xs[k]
						p.values = append(p.values, func(r *lan.Result) { values[d] = m.value(r, sends, kind, o.time) })
					}
					ends = append(ends, func() { estimate(&curve.Points[k], values) })
				}
				m.panel.Curves = append(m.panel.Curves, curve)
			}
		}
		f.Panels = append(f.Panels, m.panel)
	}
	err = lab.Each(len(points), func(ctx context.Context, i int) error {
		p, draw := &points[i], i%o.draws
		v := map[string]float64{"bytes": o.bytes[0], "window": o.window[0], "prepare-byte": o.prepareByte[0], "buffer": o.buffer[0]}
		v[o.x] = p.x
		group := mft.Group{Name: "all", Receivers: hosts}
		for h, sends := range senders(len(hosts), p.senders) {
			if sends {
				group.Senders = append(group.Senders, hosts[h])
			}
		}
		s, err := myrinet.Build(net.f, net.tables, []mft.Group{group}, myrinet.Options{Method: method, Classes: 1})
		if err != nil {
			return err
		}
		r, err := lan.Run(ctx, lan.Options{
			Fabric: net.f, Tables: net.tables, Schedule: s, Wires: lan.DefaultWires(), Seed: stream(lab.Seed, "gerla testbed", draw),
			Adapters: lan.Adapters{Buffer: int(v["buffer"]), Handle: o.handle, HandleByte: 1},
			Traffic:  lan.Traffic{Multicast: 1, Bytes: int(v["bytes"]), Window: int(v["window"]), Prepare: 400, PrepareByte: v["prepare-byte"]},
			Warmup:   o.time / 10, Time: o.time,
		})
		if err != nil {
			return err
		}
		for _, take := range p.values {
			take(r)
		}
		return nil
	})
	for _, end := range ends {
		end()
	}
	return f, err
}

// senders marks n of some hosts, as far apart as they can be.
func senders(hosts, n int) []bool {
	list := make([]bool, hosts)
	for i := range n {
		list[i*hosts/n] = true
	}
	return list
}
