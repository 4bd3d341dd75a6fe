package counters_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/audit/counters"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
	"github.com/ibweave/ibweave/verify"
)

// route compiles a fabric.
func route(t rapid.TB, f *fabric.Fabric, err error, engine string) (*fabric.Fabric, *lft.Tables) {
	t.Helper()
	r := fabrictest.Compile(t, short.Must(f, err)(t), engine, compile.Options{}).Routing
	return r.Fabric, r.Tables
}

// damaged is a tree of three levels without some cables, on which routes are uneven.
func damaged(t *testing.T) (*fabric.Fabric, *lft.Tables) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})
	if err == nil {
		f, err = gen.DropLinks(f, 8, 3)
	}
	return route(t, f, err, "updn")
}

// traffic counts what each pair of ports sends, path by path: the bytes of pair(src, dst) on every
// channel, sent and received.
func traffic(t rapid.TB, f *fabric.Fabric, tables *lft.Tables, pair func(src, dst fabric.PortID) float64) *dump.Counters {
	sent := make([]float64, f.NumPorts())
	for _, src := range f.CAPorts() {
		for _, dst := range f.CAPorts() {
			if src == dst {
				continue
			}
			channels := short.Must(tables.Path(f, src, f.LID(dst), nil))(t)
			for _, c := range channels {
				sent[c] += pair(src, dst)
			}
		}
	}
	c := &dump.Counters{}
	for p, n := range sent {
		if q := f.Peer(fabric.PortID(p)); q != fabric.NoPort {
			c.Set(f, dump.XmitData, fabric.PortID(p), dump.CounterValue{N: n, Known: true})
			c.Set(f, dump.RcvData, q, dump.CounterValue{N: n, Known: true})
		}
	}
	return c
}

func explain(t rapid.TB, f *fabric.Fabric, tables *lft.Tables, c *dump.Counters, opt counters.Options) *counters.Report {
	return short.Must(counters.Explain(context.Background(), f, tables, c, opt))(t)
}

// Where all pairs send alike, all that is hot is so by routing, wholly.
func TestByRouting(t *testing.T) {
	f, tables := damaged(t)
	r := explain(t, f, tables, traffic(t, f, tables, func(_, _ fabric.PortID) float64 { return 1e6 }), counters.Options{Hot: 1.5, Top: 100})
	if len(r.Hot) == 0 || r.Measured != r.Channels || r.Ports != r.Cabled {
		t.Fatalf("%+v", r)
	}
	for _, h := range r.Hot {
		if h.Cause != counters.Routing || math.Abs(h.ByRouting-1) > 1e-9 || math.Abs(h.PerRoute-1) > 1e-9 || h.Load < 1.5 {
			t.Errorf("%+v", h)
		}
		short.Equal(t, h.Routes, int64(math.Round(h.Bytes.N/1e6)), h.From, "routes and", h.Bytes.N, "bytes")
	}
}

// One pair that sends much among many that send little makes its own path hot, by traffic. Where it goes over a cable with many routes, both are to blame.
func TestByTraffic(t *testing.T) {
	whole, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	f, tables := route(t, whole, err, "updn")
	hosts := f.CAPorts()
	src, dst := hosts[0], hosts[len(hosts)-1]
	c := traffic(t, f, tables, func(a, b fabric.PortID) float64 {
		if a == src && b == dst {
			return 1e9
		}
		return 1e6
	})
	r := explain(t, f, tables, c, counters.Options{Hot: 1.5, Top: 100})
	channels := short.Must(tables.Path(f, src, f.LID(dst), nil))(t)
	var want, got []verify.Endpoint
	for _, c := range channels[1 : len(channels)-1] {
		want = append(want, verify.EndpointOf(f, c))
	}
	for _, h := range r.Hot {
		got = append(got, h.From)
		if h.Cause != counters.Traffic || math.Abs(h.ByRouting) > 0.1 {
			t.Errorf("%+v", h)
		}
		if !slices.Contains(h.Sharing.Sources, f.Owner(src)) || !slices.Contains(h.Sharing.Destinations, f.Owner(dst)) {
			t.Errorf("%s is shared by %+v", h.From, h.Sharing)
		}
	}
	if !sameEnds(got, want) {
		t.Errorf("hot are %v, the pair uses %v", got, want)
	}

	f, tables = damaged(t)
	alike := traffic(t, f, tables, func(_, _ fabric.PortID) float64 { return 1e6 })
	worst := explain(t, f, tables, alike, counters.Options{Hot: 1.5}).Hot[0]
	n, _ := f.NodeByGUID(worst.From.Node)
	p := f.Port(n, worst.From.Port)
	for k, q := range map[dump.Counter]fabric.PortID{dump.XmitData: p, dump.RcvData: f.Peer(p)} {
		v := alike.Get(k, q)
		v.N *= worst.RouteLoad
		alike.Set(f, k, q, v)
	}
	both := explain(t, f, tables, alike, counters.Options{Hot: 1.5}).Hot[0]
	if both.From != worst.From || both.Cause != counters.Both || math.Abs(both.ByRouting-0.5) > 0.1 {
		t.Errorf("%+v", both)
	}
}

func sameEnds(a, b []verify.Endpoint) bool {
	for _, e := range a {
		if !slices.Contains(b, e) {
			return false
		}
	}
	return len(a) == len(b)
}

// On random trees with random traffic each figure is that of following every pair, and the cause is
// what the rule says of it.
func TestRule(t *testing.T) {
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		if checks++; checks > short.Of(60, 15) {
			return
		}
		f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: rapid.IntRange(2, 3).Draw(t, "levels")})
		if err == nil {
			f, err = gen.DropLinks(f, rapid.IntRange(0, 3).Draw(t, "drop"), rapid.Uint64().Draw(t, "seed"))
		}
		f, tables := route(t, f, err, "updn")
		heavy, weight := map[fabric.PortID]bool{}, rapid.Float64Range(1.5, 20).Draw(t, "weight")
		for _, p := range rapid.SliceOfN(rapid.SampledFrom(f.CAPorts()), 0, 4).Draw(t, "talkative") {
			heavy[p] = true
		}
		c := traffic(t, f, tables, func(src, dst fabric.PortID) float64 {
			if heavy[src] || heavy[dst] {
				return weight
			}
			return 1
		})
		routes := traffic(t, f, tables, func(_, _ fabric.PortID) float64 { return 1 })
		hot := rapid.Float64Range(1.05, 3).Draw(t, "hot")
		var bytesAll, routesAll, n float64
		for s := range fabric.NodeID(f.NumSwitches()) {
			ports, _ := f.SwitchLinks(s)
			for _, p := range ports {
				bytesAll += c.Get(dump.XmitData, p).N
				routesAll += routes.Get(dump.XmitData, p).N
				n++
			}
		}
		want := map[verify.Endpoint]counters.Cause{}
		for s := range fabric.NodeID(f.NumSwitches()) {
			ports, _ := f.SwitchLinks(s)
			for _, p := range ports {
				b, r := c.Get(dump.XmitData, p).N*n/bytesAll, routes.Get(dump.XmitData, p).N*n/routesAll
				if math.Abs(b-hot) < 1e-6 {
					return // rounding decides
				}
				if b < hot {
					continue
				}
				share := math.Log(r) / math.Log(b)
				switch {
				case math.Abs(share-1./3) < 1e-6 || math.Abs(share-2./3) < 1e-6:
					return
				case share > 2./3:
					want[verify.EndpointOf(f, p)] = counters.Routing
				case share < 1./3:
					want[verify.EndpointOf(f, p)] = counters.Traffic
				default:
					want[verify.EndpointOf(f, p)] = counters.Both
				}
			}
		}
		r := explain(t, f, tables, c, counters.Options{Hot: hot, Top: 2})
		short.MustEqual(t, len(r.Hot), len(want), "hot channels")
		for i, h := range r.Hot {
			if h.Cause != want[h.From] || math.Abs(h.Load-h.RouteLoad*h.PerRoute) > 1e-9*h.Load || i > 0 && h.Load > r.Hot[i-1].Load || (i < 2) != (h.Sharing != nil) {
				t.Fatalf("%d: %+v, want %s", i, h, want[h.From])
			}
		}
	})
}

// Ports that wait for credits: a host that takes packets slowly, and the cables in front of it.
// Counters that stand still say nothing, and the other end is asked instead.
func TestWaitsAndGaps(t *testing.T) {
	whole, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	f, tables := route(t, whole, err, "updn")
	c := traffic(t, f, tables, func(_, _ fabric.PortID) float64 { return 1e6 })
	hosts := f.CAPorts()
	channels := short.Must(tables.Path(f, hosts[0], f.LID(hosts[len(hosts)-1]), nil))(t)
	for p := range fabric.PortID(f.NumPorts()) {
		c.Set(f, dump.XmitWait, p, dump.CounterValue{N: 1, Known: true})
	}
	spine, last := channels[2], channels[3]
	c.Set(f, dump.XmitWait, spine, dump.CounterValue{N: 900, Known: true})
	c.Set(f, dump.XmitWait, last, dump.CounterValue{N: 1000, Known: true})
	stopped := dump.CounterValue{N: 1 << 34, Known: true, Full: true}
	c.Set(f, dump.XmitData, spine, stopped) // the leaf has what it received
	c.Set(f, dump.XmitData, channels[1], stopped)
	c.Set(f, dump.RcvData, f.Peer(channels[1]), stopped)
	r := explain(t, f, tables, c, counters.Options{Hot: 1.5, Top: 10, Seconds: 1})
	if len(r.Hot) != 2 || r.Hot[0].Cause != counters.Receiver || r.Hot[0].From != verify.EndpointOf(f, last) || r.Hot[1].Cause != counters.Backpressure ||
		r.Hot[1].From != verify.EndpointOf(f, spine) || *r.Hot[1].WaitsFor != verify.EndpointOf(f, last) || r.Hot[1].Bytes.N == 0 {
		t.Errorf("%+v", r.Hot)
	}
	none := dump.CounterValue{Known: true}
	for p := range fabric.PortID(f.NumPorts()) {
		if p != spine {
			c.Set(f, dump.XmitWait, p, none)
		}
	}
	if alone := explain(t, f, tables, c, counters.Options{Hot: 1.5, Top: 10}); len(alone.Hot) != 1 || alone.Hot[0].WaitsFor != nil {
		t.Errorf("nothing behind it waits: %+v", alone.Hot)
	}
	if r.Stopped != 1 || r.Measured != r.Channels-1 {
		t.Errorf("%d stopped, %d of %d measured", r.Stopped, r.Measured, r.Channels)
	}
	load, mbps := r.Hot[1].Bytes.N, float64(f.Link(spine).Mbps())
	if want := load * 8 / (mbps * 1e6); math.Abs(r.MaxUse-want) > 1e-9 {
		t.Errorf("greatest use %g, want %g", r.MaxUse, want)
	}

	// At rest nothing is hot, whatever the proportions.
	quiet := traffic(t, f, tables, func(src, _ fabric.PortID) float64 {
		if src < hosts[4] {
			return 1000
		}
		return 1
	})
	if r := explain(t, f, tables, quiet, counters.Options{Hot: 1.01, Seconds: 60}); len(r.Hot) > 0 {
		t.Errorf("%+v", r.Hot[0])
	}
	if r := explain(t, f, tables, quiet, counters.Options{Hot: 1.01}); len(r.Hot) == 0 {
		t.Error("nothing is hot")
	}
}

// Of a counter in two widths the greater value counts, and errors that cannot be told are listed as
// such: a counter at its end in both readings, and one that wrapped.
func TestErrorsOfTwoWidths(t *testing.T) {
	whole, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	f, tables := route(t, whole, err, "updn")
	p := f.CAPorts()[0]
	read := func(symbols, wide, downs uint64) *dump.Counters {
		c := &dump.Counters{}
		c.Set(f, dump.SymbolErrors, p, dump.SymbolErrors.Value(symbols, 16))
		c.Set(f, dump.SymbolErrors, p, dump.SymbolErrors.Value(wide, 64))
		c.Set(f, dump.LinkDowned, p, dump.LinkDowned.Value(downs, 8))
		c.Set(f, dump.RcvErrors, p, dump.RcvErrors.Value(18446744073709551576, 64))
		c.Set(f, dump.LocalIntegrityErrors, p, dump.LocalIntegrityErrors.Value(1<<53+1, 64))
		return c
	}
	now, before := read(65535, 0, 255), read(65535, 0, 255)
	since, _ := now.Since(f, before)
	const wrapped = `{"counter":"PortRcvErrors","n":0,"wrapped":true}`
	for c, want := range map[*dump.Counters]string{
		now: `[{"counter":"SymbolErrorCounter","n":65535,"at_least":true},` + wrapped +
			`,{"counter":"LocalLinkIntegrityErrors","n":9007199254740993},{"counter":"LinkDownedCounter","n":255,"at_least":true}]`,
		since: `[{"counter":"SymbolErrorCounter","n":0,"at_least":true},` + wrapped + `,{"counter":"LinkDownedCounter","n":0,"at_least":true}]`,
	} {
		r := explain(t, f, tables, c, counters.Options{Hot: 1.5})
		short.MustEqual(t, len(r.Errors), 1, r.Errors, "want", want)
		for _, end := range r.Errors[0].Ends {
			if end.Port != verify.EndpointOf(f, p) {
				continue
			}
			short.Equal(t, string(short.Must(json.Marshal(end.Errors))(t)), want)
		}
	}
}

// Whatever the numbers that readers let through, all figures are finite.
func TestFinite(t *testing.T) {
	whole, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	f, tables := route(t, whole, err, "updn")
	number := rapid.OneOf(rapid.Float64Range(0, 1e18), rapid.Float64Range(0, 1e-300), rapid.SampledFrom([]float64{0, 5e-324, 1, 1e18}))
	rapid.Check(t, func(t *rapid.T) {
		c := &dump.Counters{}
		few := rapid.SliceOfN(number, 1, 3).Draw(t, "numbers")
		for p := range fabric.PortID(f.NumPorts()) {
			for _, k := range append([]dump.Counter{dump.XmitData, dump.RcvData, dump.XmitWait}, counters.ErrorCounters...) {
				c.Set(f, k, p, dump.CounterValue{N: rapid.SampledFrom(few).Draw(t, "n"), Known: true})
			}
		}
		opt := counters.Options{Hot: 1 + rapid.Float64Range(1e-15, 1).Draw(t, "hot"), Top: 3, Seconds: rapid.SampledFrom([]float64{0, 0.001, 1, 1e9}).Draw(t, "seconds")}
		short.Must(json.Marshal(explain(t, f, tables, c, opt)))(t)
	})
}

// Cables come in the order of what their errors say: errors on the wire, link downs that no restart
// explains, counters that wrapped. Downs of all links of a host or a switch are restarts, unless
// the only link of a host went down far more often than those of others.
func TestErrors(t *testing.T) {
	whole, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	f, tables := route(t, whole, err, "updn")
	ports := f.CAPorts()
	c := &dump.Counters{}
	set := func(k dump.Counter, p fabric.PortID, n uint64, bits uint8) { c.Set(f, k, p, k.Value(n, bits)) }
	set(dump.SymbolErrors, ports[0], 65535, 16)
	set(dump.SymbolErrors, f.Peer(ports[1]), 4, 16)
	set(dump.LinkDowned, ports[1], 200, 8)
	set(dump.XmitDiscards, ports[2], 9, 16)
	set(dump.LinkDowned, ports[2], 0, 8)
	set(dump.RcvErrors, ports[3], 1<<64-40, 64)
	set(dump.LinkDowned, f.Peer(ports[4]), 2, 8) // a restart
	set(dump.LinkDowned, ports[5], 60, 8)        // a flapping cable
	set(dump.LinkDowned, f.Peer(ports[5]), 60, 8)
	set(dump.LinkDowned, ports[6], 1, 8) // restarts, which set the counter of the host to 0
	set(dump.LinkDowned, f.Peer(ports[6]), 70, 8)
	last := fabric.NodeID(f.NumSwitches() - 1)
	for p := range f.Cabled(last) { // a restart of a switch, and one more down of its first link
		set(dump.LinkDowned, f.Peer(p), 2, 8)
	}
	set(dump.LinkDowned, f.Peer(f.Port(last, 1)), 3, 8)
	r := explain(t, f, tables, c, counters.Options{Hot: 1.5})
	type row struct {
		evidence counters.Evidence
		port     verify.Endpoint
		n        float64
	}
	var got []row
	for _, cable := range r.Errors {
		for _, e := range cable.Ends {
			for _, v := range e.Errors {
				got = append(got, row{cable.Evidence, e.Port, v.N.N})
			}
		}
		if cable.Routes == 0 {
			t.Errorf("no routes over %s", cable.Ends[0].Port)
		}
	}
	end := func(p fabric.PortID) verify.Endpoint { return verify.EndpointOf(f, p) }
	want := []row{
		{counters.Wire, end(ports[0]), 65535},
		{counters.Wire, end(f.Peer(ports[1])), 4}, {counters.Wire, end(ports[1]), 200},
		{counters.Downs, end(f.Peer(ports[5])), 60}, {counters.Downs, end(ports[5]), 60},
		{counters.Downs, end(f.Peer(f.Port(last, 1))), 3},
		{counters.Unknown, end(ports[3]), 0},
	}
	short.EqualList(t, got, want)
	restarts := []counters.Restart{{Name: "host 0 leaf 1", Links: 1, Times: 2}, {Name: "host 2 leaf 1", Links: 1, Times: 70}, {Name: f.Name(last).Label(), Switch: true, Links: 8, Times: 2}}
	short.EqualList(t, r.Restarts, restarts)
}

// counted has counters of ports as a port sends them: in PortCounters, and in 64 bits.
type counted map[fabric.PortID]map[dump.Counter][2]uint64

func (c counted) set(p fabric.PortID, k dump.Counter, short, wide uint64) {
	if c[p] == nil {
		c[p] = map[dump.Counter][2]uint64{}
	}
	c[p][k] = [2]uint64{short, wide}
}

// shown are the counters that the texts below have.
var shown = []dump.Counter{dump.SymbolErrors, dump.LinkRecovers, dump.LinkDowned, dump.RcvErrors, dump.LocalIntegrityErrors}

// perfquery writes counters as perfquery -x and perfquery print them, of all ports with a cable
// (see TestReadRealPerfQuery in package dump).
func (c counted) perfquery(f *fabric.Fabric) []byte {
	var b []byte
	for n := range fabric.NodeID(f.NumNodes()) {
		for p := range f.Cabled(n) {
			lid := f.LID(p)
			if f.IsSwitch(n) {
				lid = f.LID(f.PortBase(n))
			}
			for i, head := range []string{"# Port counters: ", "# Port extended counters: "} {
				b = fmt.Appendf(b, "%sLid %d port %d (CapMask: 0x5300)\nPortSelect:......................%d\n", head, lid, f.Num(p), f.Num(p))
				for _, k := range shown {
					b = fmt.Appendf(b, "%s%d\n", k.Info().Name+":"+strings.Repeat(".", 32-len(k.Info().Name)), c[p][k][i])
				}
			}
		}
	}
	return b
}

// ibqueryerrors writes the same as ibqueryerrors prints it (see TestReadRealQueryErrors there), which has no more
// than PortCounters.
func (c counted) ibqueryerrors(f *fabric.Fabric) []byte {
	var b []byte
	for n := range fabric.NodeID(f.NumNodes()) {
		if f.IsSwitch(n) {
			b = fmt.Appendf(b, "Errors for %#x %q\n", uint64(f.Node(n).GUID), f.Name(n).Text)
		} else {
			b = fmt.Appendf(b, "Errors for %q\n", f.Name(n).Text)
		}
		for p := range f.Cabled(n) {
			line := ""
			for _, k := range shown {
				if v := c[p][k][0]; v > 0 {
					line += fmt.Sprintf(" [%s == %d]", k.Info().Name, v)
				}
			}
			guid := f.PortGUID(p)
			if f.IsSwitch(n) {
				guid = f.Node(n).GUID
			}
			if line != "" {
				b = fmt.Appendf(b, "   GUID %#x port %d:%s\n", uint64(guid), f.Num(p), line)
			}
		}
	}
	return append(b, "\n## Summary: 312 nodes checked, 214 bad nodes found\n"...)
}

// ibdiagnet writes a run's db_csv with a section PM_INFO.
func (c counted) ibdiagnet(t *testing.T, f *fabric.Fabric) []byte {
	var b bytes.Buffer
	short.Check(t, ibdiagnet.Write(&b, f))
	b.WriteString("\nSTART_PM_INFO\nNodeGUID,PortGUID,PortNumber")
	for _, k := range shown {
		fmt.Fprintf(&b, ",%s,%sExt", k.Info().Name, k.Info().Name)
	}
	b.WriteString("\n")
	for n := range fabric.NodeID(f.NumNodes()) {
		for p := range f.Cabled(n) {
			fmt.Fprintf(&b, "%s,%s,%d", f.Node(n).GUID, f.Node(n).GUID, f.Num(p))
			for _, k := range shown {
				fmt.Fprintf(&b, ",%d,0x%016x", c[p][k][0], c[p][k][1])
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("END_PM_INFO\n")
	return b.Bytes()
}

// On a fabric with 14 ports of symbol errors, 3 counters that wrapped or stand at their end, and 200 restarted
// hosts, the first rows that counters prints are those 14 ports, in whatever form the counters come.
func TestFirstRows(t *testing.T) {
	whole, err := gen.FatTree(gen.FatTreeSpec{Radix: 24, Levels: 2})
	f, tables := route(t, whole, err, "updn")
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 46))
		hosts := slices.Clone(f.CAPorts())
		r.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		c := counted{}
		for _, p := range hosts[:200] { // a restart sets the counters of the host to 0
			n := 1 + r.Uint64N(3)
			c.set(f.Peer(p), dump.LinkDowned, n, n)
			c.set(f.Peer(p), dump.LinkRecovers, n, n)
			if r.IntN(2) == 0 {
				c.set(p, dump.LinkDowned, n, n)
			}
		}
		bad := slices.Clone(hosts[200:207])
		for i := range 7 { // and as many between switches
			bad = append(bad, f.Channels()[80*i+r.IntN(80)])
		}
		want := map[string]bool{}
		for _, p := range bad {
			n := 1 + r.Uint64N(1e5)
			c.set(p, dump.SymbolErrors, min(n, 65535), n)
			if r.IntN(2) == 0 { // a version that leaves the counter of 64 bits at 0
				c.set(p, dump.SymbolErrors, min(n, 65535), 0)
			}
			want[verify.EndpointOf(f, p).Unquoted()] = true
		}
		for i, p := range hosts[207:210] {
			c.set(p, []dump.Counter{dump.SymbolErrors, dump.RcvErrors, dump.LocalIntegrityErrors}[i], 0, 1<<64-40)
			c.set(p, dump.LinkDowned, 255, 0)
		}
		for form, data := range map[string][]byte{"perfquery": c.perfquery(f), "ibqueryerrors": c.ibqueryerrors(f), "ibdiagnet": nil} {
			var read *dump.Counters
			if data == nil {
				got := short.Must(ibdiagnet.ReadCounters(form, bytes.NewReader(c.ibdiagnet(t, f)), f, ibdiagnet.Options{}))(t)
				read = got.Counters
			} else if read, _, err = dump.ReadCounters(form, data, f, dump.Options{}); err != nil {
				t.Fatal(err)
			}
			d := counters.NewDocument(f, explain(t, f, tables, read, counters.Options{Hot: 1.5, Top: 20}), nil)
			d.Reading, d.Tables, d.Asked.Top = "counts", true, 20
			var b text.Sheet
			d.Print(&b)
			lines := strings.Split(b.String(), "\n")
			got := map[string]bool{}
			for _, line := range lines[4:18] {
				cells := strings.Split(strings.TrimSpace(line), "  ")
				got[cells[0]] = true
			}
			if !maps.Equal(got, want) || !strings.HasPrefix(lines[2], "14 cables have errors on the wire") {
				t.Fatalf("seed %d, %s: want %v, got\n%s", seed, form, slices.Sorted(maps.Keys(want)), strings.Join(lines[:25], "\n"))
			}
			if !strings.Contains(b.String(), "\n200 hosts were restarted") || !strings.Contains(b.String(), "at least 255") {
				t.Errorf("seed %d, %s:\n%s", seed, form, b.String())
			}
			if form != "ibqueryerrors" && strings.Count(b.String(), "wrapped  ") != 3 {
				t.Errorf("seed %d, %s: want 3 values that wrapped:\n%s", seed, form, b.String())
			}
		}
	}
}
