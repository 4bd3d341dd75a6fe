package reproduce

import (
	"context"
	"fmt"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/papers/myrinet"
	"github.com/ibweave/ibweave/papers/myrinet/lan"
	"github.com/ibweave/ibweave/report/chart"
)

// Systems that the Myrinet paper speaks of and does not measure, and what its figures depend
// on.

var repeatedUnicast = gerlaScheme{name: "repeated unicast", method: myrinet.Repeated}

// gerlaSystemDraws is how often groups and traffic are drawn for these figures.
const gerlaSystemDraws = 3

// gerlaFull is the adapters of the paper: 25,000 bytes for a class, answers of 8 bytes, and
// 12.5 µs at least until a worm that was refused is sent again.
func gerlaFull() lan.Adapters {
	return lan.Adapters{Buffer: 25_000, Acks: true, AckBytes: 8, Timeout: 1000}
}

// gerlaMostBytes cuts worms where buffers are finite: 9 KB at most (M2).
const gerlaMostBytes = 9000

var (
	loadAxis    = chart.Axis{Label: "offered load, utilization of a host's link", Scale: chart.Linear}
	latencyAxis = chart.Axis{Label: "latency", Unit: "µs", Scale: chart.Log10}
	carriedAxis = chart.Axis{Label: "utilization of a host's link", Scale: chart.Linear}
)

// gerlaBaseline is repeated unicast in the place of figure 10's schemes.
func gerlaBaseline(lab *Lab) (*Figure, error) {
	s, err := torusSetting(lab, gerlaSystemDraws, true)
	if err != nil {
		return nil, err
	}
	loads := []float64{0.01, 0.02, 0.05, 0.08, 0.1}
	if lab.Quick {
		loads = []float64{0.02, 0.05}
	}
	f := &Figure{
		Parameters: gerlaParameters(s, "8x8 torus", "10 % of the worms of hosts that are in a group"),
		Panels: []chart.Panel{
			{Title: "(a) latency to the last member", X: loadAxis, Y: latencyAxis},
			{Title: "(b) carried load", X: loadAxis, Y: carriedAxis},
		},
	}
	return f, s.curves(lab, f, []gerlaScheme{repeatedUnicast, circuitSF, treeRoot, treeFlood}, []gerlaMetric{lastLatency, carriedLoad}, loads,
		func(load float64) gerlaPoint { return gerlaPoint{load: load, share: 0.1} })
}

var nacked = gerlaMetric{"refused: ", func(r *lan.Result) float64 { return float64(r.Nacks) / float64(r.Transmitted[1]) }, false}

// gerlaAcks is figures 10 and 11 with adapters that answer, and whose buffers end.
func gerlaAcks(lab *Lab, shufflenet bool) (*Figure, error) {
	s, err := torusSetting(lab, gerlaSystemDraws, true)
	loads := []float64{0.02, 0.05, 0.08, 0.1}
	x, name, share := loadAxis, "8x8 torus", "10 % of the worms of hosts that are in a group"
	point := func(load float64) gerlaPoint { return gerlaPoint{load: load, share: 0.1} }
	if shufflenet {
		s, err = shufflenetSetting(lab, gerlaSystemDraws)
		loads = []float64{0.05, 0.15, 0.3}
		x.Label, name, share = "proportion of multicast in generated worms", "24-node bidirectional shufflenet", "as on the axis, at hosts that are in a group"
		point = func(share float64) gerlaPoint { return gerlaPoint{rate: gerlaGenerated / 400, share: share} }
	}
	if err != nil {
		return nil, err
	}
	if lab.Quick {
		loads = loads[:2]
	}
	s.adapters, s.maxBytes = gerlaFull(), gerlaMostBytes
	if shufflenet { // a round trip takes two crossings of the network
		s.adapters.Timeout = 10_000
	}
	f := &Figure{
		Parameters: append(gerlaParameters(s, name, share),
			Parameter{"adapters", fmt.Sprintf("%d bytes for a class; ACK and NACK of %d bytes; %d to %d byte times until a refused worm is sent again, then twice as many, up to 64 times",
				s.adapters.Buffer, s.adapters.AckBytes, s.adapters.Timeout, 2*s.adapters.Timeout)},
			Parameter{"longest worm", fmt.Sprint(s.maxBytes, " bytes")}),
		Panels: []chart.Panel{
			{Title: "(a) latency to the last member", X: x, Y: latencyAxis},
			{Title: "(b) carried load, without answers", X: x, Y: carriedAxis},
			{Title: "(c) NACKs", X: x, Y: chart.Axis{Label: "of a multicast worm", Scale: chart.Linear}},
		},
	}
	return f, s.curves(lab, f, []gerlaScheme{circuitSF, circuitCT, treeRoot, treeFlood}, []gerlaMetric{lastLatency, carriedLoad, nacked}, loads, point)
}

// The curves of gerlaRoutes.
const (
	byUpDown = "up/down from a corner"
	byXY     = "XY"
	hottest  = "hottest link: "
)

// gerlaRoutes has unicast alone on a mesh with up/down and with XY routes: on a torus XY
// deadlocks without virtual channels.
func gerlaRoutes(lab *Lab) (*Figure, error) {
	upDown, err := gerlaNetOf(lab, "mesh", func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: []int{8, 8}, Hosts: 1}) })
	if err != nil {
		return nil, err
	}
	xy, err := Once(lab, "gerla mesh xy", func(ctx context.Context) (*gerlaNet, error) {
		engine, err := compile.EngineByName("xy")
		if err != nil {
			return nil, err
		}
		r, err := compile.Run(ctx, upDown.f, engine, compile.Options{LIDs: lft.LIDOptions{Policy: lft.KeepLIDs}})
		if err != nil {
			return nil, err
		}
		return &gerlaNet{f: r.Routing.Fabric, tables: r.Routing.Tables}, nil
	})
	if err != nil {
		return nil, err
	}
	loads := []float64{0.05, 0.1, 0.15, 0.2, 0.25, 0.3}
	s, err := torusSetting(lab, gerlaSystemDraws, true)
	if err != nil {
		return nil, err
	}
	if lab.Quick {
		loads = []float64{0.1, 0.25}
	}
	f := &Figure{
		Parameters: gerlaParameters(s, "8x8 mesh", "none"),
		Panels: []chart.Panel{
			{Title: "(a) carried load, unicast alone", X: loadAxis, Y: carriedAxis},
			{Title: "(b) paths over the hottest link", X: loadAxis, Y: chart.Axis{Label: "of those of a host", Scale: chart.Linear}},
		},
	}
	f.Parameters[1].Value = "as on the curves"
	for i, net := range []*gerlaNet{upDown, xy} {
		name := []string{byUpDown, byXY}[i]
		s.net = net
		one := &Figure{Panels: make([]chart.Panel, 1)}
		metric := carriedLoad
		metric.prefix = ""
		if err := s.curves(lab, one, []gerlaScheme{{name: name}}, []gerlaMetric{metric}, loads, func(load float64) gerlaPoint { return gerlaPoint{load: load} }); err != nil {
			return nil, err
		}
		f.Panels[0].Curves = append(f.Panels[0].Curves, one.Panels[0].Curves...)
		_, hot, err := net.crossed()
		if err != nil {
			return nil, err
		}
		f.Panels[1].Curves = append(f.Panels[1].Curves, flatCurve(hottest+name, loads, hot/float64(len(net.f.CAPorts())-1)))
	}
	return f, nil
}

// gerlaMachine is hosts and adapters of figures 12 and 13.
type gerlaMachine struct {
	window      int
	prepareByte float64 // byte times for each byte of a worm that a host makes
	buffer      int     // bytes of an adapter
}

// machine1996 is that of figures 12 and 13.
var machine1996 = gerlaMachine{window: 4, prepareByte: 1, buffer: 25_000}

// gerlaHostSettings are what figures 12 and 13 depend on, at 4096 bytes.
var gerlaHostSettings = []struct {
	name   string
	axis   chart.Axis
	values []float64
	set    func(m *gerlaMachine, v float64)
}{
	{"window", chart.Axis{Label: "worms that a host is ahead of its adapter", Scale: chart.Log2}, []float64{1, 2, 4, 8, 16}, func(m *gerlaMachine, v float64) { m.window = int(v) }},
	{"hosts", chart.Axis{Label: "time of a host for a byte, adapters take 1", Unit: "byte times", Scale: chart.Log2}, []float64{0.25, 0.5, 1, 2, 4}, func(m *gerlaMachine, v float64) { m.prepareByte = v }},
	{"buffer", chart.Axis{Label: "buffer of an adapter", Unit: "bytes", Scale: chart.Log2}, []float64{8192, 16_384, 25_000, 65_536}, func(m *gerlaMachine, v float64) { m.buffer = int(v) }},
}

const gerlaHostBytes = 4096

// The curves of gerlaHosts' second panels and of gerlaLoss.
const (
	lostAtHop      = "at a host"
	lostHostToHost = "from host to host"
)

// gerlaHostsFigure varies hosts and adapters of figures 12 and 13.
func gerlaHostsFigure(lab *Lab) (*Figure, error) {
	time, draws := gerlaTestbedTime(lab)
	f := &Figure{Parameters: append(gerlaTestbedParameters(time, draws), Parameter{"packet size", fmt.Sprint(gerlaHostBytes, " bytes")})}
	var points []testbedPoint
	for i, s := range gerlaHostSettings {
		values := s.values
		if lab.Quick {
			values = []float64{s.values[0], s.values[len(s.values)-1]}
		}
		rate := chart.Panel{Title: fmt.Sprintf("(%c) received", 'a'+2*i), X: s.axis, Y: receivedAxis}
		loss := chart.Panel{Title: fmt.Sprintf("(%c) lost of the worms that come to a host", 'b'+2*i), X: s.axis, Y: chart.Axis{Label: "share", Scale: chart.Linear}}
		for _, senders := range []int{1, 8} {
			name := oneSender
			if senders > 1 {
				name = allSenders
			}
			a, b := newCurve(name, values), newCurve(name, values)
			for k, v := range values {
				m := machine1996
				s.set(&m, v)
				points = append(points, testbedPoint{m, senders, gerlaHostBytes, received, &a.Points[k]}, testbedPoint{m, senders, gerlaHostBytes, lost, &b.Points[k]})
			}
			rate.Curves, loss.Curves = append(rate.Curves, a), append(loss.Curves, b)
		}
		f.Panels = append(f.Panels, rate, loss)
	}
	return f, measureTestbed(lab, points)
}

// gerlaLoss is what is lost at a host, and of what each member should have.
func gerlaLoss(lab *Lab) (*Figure, error) {
	return testbedFigure(lab, chart.Axis{Label: "lost, all hosts send", Scale: chart.Linear},
		[]testbedCurve{{lostAtHop, 8, lost}, {lostHostToHost, 8, lostInAll}})
}

// testbed is what a run of the testbed gives.
type testbed struct {
	rate       float64    // Mb/s that a host receives
	loss       float64    // of the worms that come to a host
	at         [2]float64 // the same, of hosts that send, and of others
	hostToHost float64    // of what each member should have
}

// What points of the testbed show.
var (
	received        = func(r *testbed) float64 { return r.rate }
	lost            = func(r *testbed) float64 { return r.loss }
	lostWhereSent   = func(r *testbed) float64 { return r.at[0] }
	lostWherePassed = func(r *testbed) float64 { return r.at[1] }
	lostInAll       = func(r *testbed) float64 { return r.hostToHost }
)

// testbedOf sums up a run with some senders of eight, every (8/senders)th of them.
func testbedOf(r *lan.Result, senders int, time int64) *testbed {
	var came, lost [2]float64 // of hosts that send, and of others
	bits, receivers := 0.0, 0.0
	for h, host := range r.Hosts {
		kind := 0
		if h%(8/senders) != 0 {
			kind = 1
		}
		came[kind] += float64(host.Came)
		lost[kind] += float64(host.Lost)
		if senders > 1 || kind == 1 {
			bits += 8 * float64(host.Bytes)
			receivers++
		}
	}
	return &testbed{
		rate:       bits / receivers / (float64(time) * byteTime),
		loss:       (lost[0] + lost[1]) / (came[0] + came[1]),
		at:         [2]float64{lost[0] / came[0], lost[1] / came[1]},
		hostToHost: 1 - float64(r.Received)/float64(r.Expected),
	}
}

// gerlaSystemClaims are claims that these figures decide; those without the paper's words are
// ours.
var gerlaSystemClaims = []Claim{
	{"M6", "repeated unicast increases latency (abstract)", []string{"unicast"}, judgeBaseline},
	{"M15", "figure 10's order of the schemes, with ACK, NACK and buffers that end (ours; section 4 describes them)", []string{"acks10"}, func(f map[string]*Figure) Finding { return judgeAcks(f["acks10"]) }},
	{"M15 shufflenet", "figure 11's order of the schemes, with ACK, NACK and buffers that end (ours)", []string{"acks11"}, func(f map[string]*Figure) Finding { return judgeAcks(f["acks11"]) }},
	{"M26-root, routes", "up/down routing causes the low saturation load (ours: against XY, on a mesh)", []string{"routes"}, judgeRoutes},
	{"M28-total", "since loss is at each hop, the total loss host-to-host would be unacceptable", []string{"loss"}, judgeTotalLoss},
	{"M28-curves, hosts", "one sender is above all hosts sending, whatever hosts and adapters are (ours)", []string{"hosts"}, judgeHosts},
}

func judgeBaseline(figures map[string]*Figure) Finding {
	f := figures["unicast"]
	var circuit compared
	var t span
	until := steady(f, circuitSF, treeRoot, treeFlood, repeatedUnicast)
	s, trees := againstTrees(f, repeatedUnicast, until, "%s, load %v")
	for _, p := range f.Curve(repeatedUnicast.name) {
		if p.X > until {
			break
		}
		at := f.At(circuitSF.name, p.X)
		t.add(p.Y/at.Y, "load %v", p.X)
		circuit.add(p, at)
	}
	out := trees.finding("nine worms leave one host, one after the other",
		"up to a load of %v repeated unicast takes %.2f (%s) to %.2f times as long (%s) as trees, %.2f to %.2f times as long as the circuit with full reassembly",
		until, s.low, s.atLow, s.high, s.atHigh, t.low, t.high)
	if out.Verdict == Holds && 2*circuit.above <= circuit.n {
		out.Verdict, out.As = HoldsAs, "against trees"
		out.Why += "; on a circuit nine are stored one after the other, over as many links each"
	}
	return out
}

func judgeAcks(f *Figure) Finding {
	until := steady(f, circuitSF, treeRoot, treeFlood)
	s, order := againstTrees(f, circuitSF, until, "%s, %v")
	var refused span
	for _, scheme := range []gerlaScheme{circuitSF, circuitCT, treeRoot, treeFlood} {
		for _, p := range f.Curve(nacked.prefix + scheme.name) {
			if p.X <= until {
				refused.add(p.Y, "%s, %v", scheme.name, p.X)
			}
		}
	}
	return order.finding("buffers of 25,000 bytes have room for dozens of worms of 400, and an answer takes the time of 8 bytes",
		"up to %v the circuit takes %.2f (%s) to %.2f times as long (%s) as trees; of a worm at most %.4f are refused (%s)", until, s.low, s.atLow, s.high, s.atHigh, refused.high, refused.atHigh)
}

func judgeRoutes(figures map[string]*Figure) Finding {
	f := figures["routes"]
	up, xy := highest(f.Curve(byUpDown)), highest(f.Curve(byXY))
	hot, other := f.Curve(hottest + byUpDown)[0].Y, f.Curve(hottest + byXY)[0].Y
	return decided(beyond(minus(xy, up), 0), "up/down sends most paths by the root, XY spreads them; a torus, as the paper has it, deadlocks with XY alone",
		"on an 8x8 mesh unicast saturates at %s of a host's link with up/down and at %s with XY; the hottest link has the paths of %.1f and of %.1f hosts", interval(up, 3), interval(xy, 3), hot, other)
}

func judgeTotalLoss(figures map[string]*Figure) Finding {
	f := figures["loss"]
	const considerable, unacceptable = 0.05, 0.1
	var hop tally
	var whole span
	for _, p := range f.Curve(lostAtHop) {
		if p.Y < considerable {
			continue
		}
		all := f.At(lostHostToHost, p.X)
		hop.add(min(beyond(minus(all, p), 0), beyond(all, unacceptable)), p.Y, "%v bytes", p.X)
		whole.add(all.Y, "%v bytes", p.X)
	}
	if hop.n == 0 {
		return Finding{Verdict: NotDecidable, Measured: "no size has a loss of 5 % at a host"}
	}
	return decided(hop.how(), "a worm that is lost at a host lacks at all that follow; taken as: more than 10 %, where 5 % are lost at a host"+gerlaHosts,
		"where a host loses %s to %s of what comes, members lack %s to %s of what they should have", percent(hop.low), percent(hop.high), percent(whole.low), percent(whole.high))
}

func judgeHosts(figures map[string]*Figure) Finding {
	f := figures["hosts"]
	out := Finding{Verdict: Holds}
	above, below, open := 0, 0, 0
	for i, s := range gerlaHostSettings {
		one := f.panel(2 * i)
		for _, p := range one.Curve(oneSender) {
			switch beyond(minus(p, one.At(allSenders, p.X)), 0) {
			case 1:
				above++
			case -1:
				below++
				if out.Measured != "" {
					out.Measured += ", "
				}
				out.Measured += fmt.Sprintf("%s %v", s.name, p.X)
			default:
				open++
			}
		}
	}
	if below > 0 {
		out.Measured = " (" + out.Measured + ")"
	}
	out.Measured = fmt.Sprintf("one sender is above at %d settings of %d, below at %d%s", above, above+below+open, below, out.Measured)
	switch {
	case below > 0:
		out.Verdict = NotDecidable
		out.Why = "the paper gives none of these numbers (E-M15)"
	case open > 0:
		out.decide(0)
	}
	return out
}

// gerlaGroup is the group of all eight hosts of the testbed with some senders.
func gerlaGroup(hosts []fabric.PortID, senders int) mft.Group {
	g := mft.Group{Name: "all", Receivers: hosts}
	for i := range senders {
		g.Senders = append(g.Senders, hosts[i*len(hosts)/senders])
	}
	return g
}
