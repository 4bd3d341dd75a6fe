// Package counters compares what ports have counted with the routes of
// forwarding tables. It finds the channels between switches that carry more
// than others, and tells whether many routes cross them or few routes carry
// much. It makes no promise to other modules.
//
// Bytes and routes of a channel are taken relative to its data rate; if the
// rate of a cable is unknown, all rates count as equal. Let R be the routes of
// a channel divided by the mean of all channels between switches whose bytes
// are known, and B its bytes likewise. Then B = R x T, where T is the bytes of
// one of its routes divided by the mean of all routes. A channel is hot if B
// is at least Options.Hot and, if that is known, it uses at least a hundredth
// of its data rate. The share of routing in it is ln R / ln B: 1 if all routes
// carry alike, and 0 if the channel has as many routes as the mean. From 2/3
// on it is hot by routing, up to 1/3 by traffic, and between these by both.
package counters

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/ibweave/ibweave/audit/paths"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

// Options are the settings of Explain.
type Options struct {
	// Hot is the multiple of the mean from which a channel is hot, or congested; more than 1.
	Hot float64
	// Top is the number of channels for which Explain finds who shares them.
	Top int
	// Seconds is the time between the two readings whose difference the counters are; 0 if unknown,
	// or for counts since a reset.
	Seconds float64
}

// Cause is why a channel is hot or congested.
type Cause string

// The causes.
const (
	Routing      Cause = "routing"      // many routes
	Traffic      Cause = "traffic"      // much on each route
	Both         Cause = "both"         // each of these
	Unrouted     Cause = "unrouted"     // bytes, and no routes: multicast, adaptive routing, or tables that are not in force
	Backpressure Cause = "backpressure" // congested, not hot: the next port takes packets too slowly
	Receiver     Cause = "receiver"     // congested at its end: the host takes packets too slowly
)

// Causes lists the causes, those of hot channels first.
var Causes = []Cause{Routing, Traffic, Both, Unrouted, Backpressure, Receiver}

// Report has the findings of Explain.
type Report struct {
	Seconds float64 `json:"seconds,omitempty"`
	// Ports counts the Cabled ports that have counters. Channels counts those
	// between switches, Measured those of them with known bytes. Stopped
	// counts those with a counter of 32 bits that tells nothing: it stands at
	// its end, wrapped, or was reset between two readings.
	Ports    int `json:"ports"`
	Cabled   int `json:"cabled_ports"`
	Channels int `json:"channels"`
	Measured int `json:"measured_channels"`
	Stopped  int `json:"stopped_channels"`
	// ErrorPorts counts the ports that have a counter of cable errors.
	ErrorPorts int `json:"error_ports"`
	// MeanUse and MaxUse are shares of the data rate of channels between switches; they are set
	// only with Seconds and known rates.
	MeanUse float64 `json:"mean_use,omitempty"`
	MaxUse  float64 `json:"max_use,omitempty"`
	// Hot lists hot channels by falling load, then others that are congested by falling wait.
	Hot    []Channel `json:"hot"`
	Errors []Cable   `json:"errors"` // in the order of Evidence, then by errors
	// Restarts lists hosts and switches whose links all went down, in natural order.
	Restarts []Restart `json:"restarts"`
}

// Channel is a channel that is hot or congested.
type Channel struct {
	Cause Cause `json:"cause"`
	verify.Cable
	Bytes  dump.CounterValue `json:"bytes"` // as counted
	Use    float64           `json:"use,omitempty"`
	Load   float64           `json:"load"` // B of the package comment
	Routes int64             `json:"routes"`
	// RouteLoad is R of the package comment, PerRoute T, ByRouting the share of routing. The
	// last two are 0 without routes or bytes.
	RouteLoad float64 `json:"route_load"`
	PerRoute  float64 `json:"per_route"`
	ByRouting float64 `json:"by_routing"`
	// Wait counts the ticks in which the port had a packet and no credit.
	// WaitLoad is Wait divided by the mean of all ports of switches. The
	// length of a tick differs between chips.
	Wait     dump.CounterValue `json:"wait_ticks"`
	WaitLoad float64           `json:"wait_load"`
	// WaitsFor is, for backpressure, the next channel that waits longest; nil if none waits.
	WaitsFor *verify.Endpoint `json:"waits_for,omitempty"`
	// Sharing is nil beyond Options.Top, and for channels to hosts.
	Sharing *paths.Sharing `json:"-"`

	channel fabric.PortID
}

// leastUse is the share of its data rate below which no channel is hot: in an idle fabric a few
// packets of the subnet manager are a multiple of the mean.
const leastUse = 0.01

// explainer holds the state of Explain.
type explainer struct {
	f      *fabric.Fabric
	c      *dump.Counters
	opt    Options
	routes []int64   // by PortID
	byRate bool      // all rates between switches are known
	bytes  []float64 // by PortID, of channels between switches; NaN unknown
	// The means over measured channels between switches, of bytes and routes by rate.
	meanBytes, meanRoutes, meanWait float64
	*Report
}

// Explain finds why channels are hot or congested under tables t, and which cables have errors; if
// t is nil, only the latter. Errors are those of ctx.
func Explain(ctx context.Context, f *fabric.Fabric, t *lft.Tables, c *dump.Counters, opt Options) (*Report, error) {
	x := &explainer{f: f, c: c, opt: opt, routes: make([]int64, f.NumPorts()), Report: &Report{Seconds: opt.Seconds, Hot: []Channel{}, Errors: []Cable{}, Restarts: []Restart{}}}
	if t != nil {
		var err error
		if x.routes, err = lft.ChannelLoads(ctx, f, t); err != nil {
			return nil, err
		}
	}
	x.measure()
	x.findErrors()
	if t == nil {
		return x.Report, nil
	}
	for _, s := range f.Switches() {
		for p := range f.Cabled(s) {
			x.judge(p)
		}
	}
	slices.SortStableFunc(x.Hot, func(a, b Channel) int {
		return cmp.Or(cmp.Compare(b.heat(), a.heat()), cmp.Compare(b.WaitLoad, a.WaitLoad))
	})
	x.findSharers(t)
	return x.Report, nil
}

// heat returns the load of a hot channel, 0 for others.
func (h *Channel) heat() float64 {
	if h.Cause == Backpressure || h.Cause == Receiver {
		return 0
	}
	return h.Load
}

// measure finds the bytes of channels between switches, and the means.
func (x *explainer) measure() {
	f := x.f
	x.byRate = true
	for _, c := range f.Channels() {
		x.byRate = x.byRate && f.Link(c).Mbps() > 0
	}
	x.bytes = make([]float64, f.NumPorts())
	ports, wait := 0, 0.0
	for p := range fabric.PortID(f.NumPorts()) {
		x.bytes[p] = math.NaN()
		if f.Peer(p) == fabric.NoPort {
			continue
		}
		x.Cabled++
		if x.c.Has(p) {
			x.Ports++
		}
		if w := x.c.Get(dump.XmitWait, p); w.Known && f.IsSwitch(f.Owner(p)) {
			wait += w.N
			ports++
		}
	}
	x.meanWait = wait / float64(max(ports, 1))
	var bytes, routes, use float64
	rated := 0 // channels of known rate
	for _, c := range f.Channels() {
		v, stopped := x.sent(c)
		x.Channels++
		if stopped {
			x.Stopped++
		}
		if !v.Known {
			continue
		}
		x.Measured++
		x.bytes[c] = v.N
		bytes += x.relative(v.N, c)
		routes += x.relative(float64(x.routes[c]), c)
		use += x.use(v.N, c)
		if x.f.Link(c).Mbps() > 0 {
			rated++
		}
		x.MaxUse = max(x.MaxUse, x.use(v.N, c))
	}
	n := float64(max(x.Measured, 1))
	x.meanBytes, x.meanRoutes, x.MeanUse = bytes/n, routes/n, use/float64(max(rated, 1))
}

// sent returns what went over a channel: what the port sent, else what the
// other end received. stopped is true if counters tell nothing: they stand
// still, wrapped or were reset.
func (x *explainer) sent(c fabric.PortID) (v dump.CounterValue, stopped bool) {
	for _, v := range []dump.CounterValue{x.c.Get(dump.XmitData, c), x.c.Get(dump.RcvData, x.f.Peer(c))} {
		if v.Known && !v.Full {
			return v, false
		}
		stopped = stopped || v.Full || v.Wrapped
	}
	return dump.CounterValue{}, stopped
}

// relative divides a number on a channel by the data rate, if all rates are known.
func (x *explainer) relative(n float64, c fabric.PortID) float64 {
	if !x.byRate {
		return n
	}
	return n / float64(x.f.Link(c).Mbps())
}

// use returns the share of the data rate that bytes take; 0 if unknown.
func (x *explainer) use(bytes float64, c fabric.PortID) float64 {
	mbps := x.f.Link(c).Mbps()
	if mbps == 0 || x.opt.Seconds == 0 {
		return 0
	}
	return bytes * 8 / x.opt.Seconds / (float64(mbps) * 1e6)
}

// judge lists a channel if it is hot or congested. One to a host can only be congested: there is no
// other route to it.
func (x *explainer) judge(c fabric.PortID) {
	f := x.f
	h := Channel{channel: c, Cable: verify.CableOf(f, c), Routes: x.routes[c], Wait: x.c.Get(dump.XmitWait, c)}
	if x.meanWait > 0 {
		h.WaitLoad = h.Wait.N / x.meanWait
	}
	congested := h.WaitLoad >= x.opt.Hot
	if v, _ := x.sent(c); v.Known {
		h.Bytes, h.Use = v, x.use(v.N, c)
	}
	if b := x.bytes[c]; !math.IsNaN(b) && x.meanBytes > 0 {
		h.Load = x.relative(b, c) / x.meanBytes
		if x.meanRoutes > 0 {
			h.RouteLoad = x.relative(float64(h.Routes), c) / x.meanRoutes
		}
		if h.RouteLoad > 0 && h.Load > 0 {
			h.PerRoute = h.Load / h.RouteLoad
		}
	}
	switch {
	case h.Load >= x.opt.Hot && (h.Use == 0 || h.Use >= leastUse):
		h.Cause = h.why()
	case congested && f.PeerSwitch(c) == fabric.NoNode:
		h.Cause = Receiver
	case congested:
		h.Cause = Backpressure
	default:
		return
	}
	x.Hot = append(x.Hot, h)
}

func (h *Channel) why() Cause {
	if h.Routes == 0 {
		return Unrouted
	}
	h.ByRouting = math.Log(h.RouteLoad) / math.Log(h.Load)
	switch {
	case h.ByRouting >= 2./3:
		return Routing
	case h.ByRouting <= 1./3:
		return Traffic
	}
	return Both
}

// findSharers finds who shares the first channels between switches, and what these wait for.
func (x *explainer) findSharers(t *lft.Tables) {
	channels := text.Each(x.Hot[:min(x.opt.Top, len(x.Hot))], func(h Channel) fabric.PortID { return h.channel })
	between := func(c fabric.PortID) bool { return x.f.PeerSwitch(c) != fabric.NoNode }
	shares := paths.Sharers(x.f, t, text.Where(channels, between))
	for i := range x.Hot[:min(x.opt.Top, len(x.Hot))] {
		h := &x.Hot[i]
		share := shares[h.channel]
		if share == nil {
			continue
		}
		h.Sharing = share
		if h.Cause == Backpressure && len(share.Next) > 0 {
			next := slices.MaxFunc(share.Next, func(a, b fabric.PortID) int {
				return cmp.Or(cmp.Compare(x.c.Get(dump.XmitWait, a).N, x.c.Get(dump.XmitWait, b).N), cmp.Compare(b, a))
			})
			if x.c.Get(dump.XmitWait, next).N > 0 {
				end := verify.EndpointOf(x.f, next)
				h.WaitsFor = &end
			}
		}
	}
}
