package counters

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

// Evidence is the kind of errors that a cable has.
type Evidence string

// The kinds of evidence, that of a bad cable first.
const (
	Wire    Evidence = "wire"    // bits that arrived wrong: the cable, or the port at either end, is bad
	Downs   Evidence = "downs"   // the link failed more often than its ends were restarted
	Unknown Evidence = "unknown" // counters that wrapped, or that stood at their end in both readings
)

// Cable is a cable with errors.
type Cable struct {
	Evidence Evidence `json:"evidence"`
	Ends     [2]End   `json:"ends"`   // that of the lower port first
	Routes   int64    `json:"routes"` // that cross it in both directions; 0 without tables

	errors float64 // number of errors of its evidence
}

// End has the counters of one port of a cable.
type End struct {
	Port   verify.Endpoint `json:"port"`
	Errors []Error         `json:"errors"` // those that may be above 0, in the order of ErrorCounters; then what is wrong with its Line
}

// Error is a counter of errors.
type Error struct {
	Counter string            `json:"counter"`
	N       dump.CounterValue `json:"n"`
	AtLeast bool              `json:"at_least,omitempty"` // the counter stands at its end, or was reset
	Wrapped bool              `json:"wrapped,omitempty"`  // its 64 bits hold a difference below zero, so N may be too low
}

// Restart is a host or a switch whose links all went down.
type Restart struct {
	Name   string `json:"name"`
	Switch bool   `json:"switch"`
	Links  int    `json:"links"`
	Times  int    `json:"times"` // least downs of a link, minus restarts of its switch
}

// ErrorCounters count errors that cables make, errors on the wire first. A port counts what comes
// in, so the cable or the port at its other end may be the cause.
var ErrorCounters = []dump.Counter{dump.SymbolErrors, dump.RcvErrors, dump.LocalIntegrityErrors, dump.FECUncorrectable, dump.LinkRecovers, dump.LinkDowned}

// Limits of a healthy line.
const (
	// maxBER is ten times the 1e-15 that IBA has for symbols behind FEC.
	maxBER = 1e-14
	// maxCelsius is the temperature of its case up to which a module is specified.
	maxCelsius = 70
	// maxSpread bounds how far the light of a module's lanes is apart, in dB: a tenth of the power.
	maxSpread = 10
)

// lineErrors lists what is wrong with the line of a port, under names that are shown like those
// of counters.
func (x *explainer) lineErrors(p fabric.PortID) (list []Error) {
	if x.c.Lines == nil {
		return nil
	}
	line := x.c.Lines[p]
	for _, v := range []struct {
		name     string
		n, limit float64
	}{{"SymbolBER", line.SymbolBER, maxBER}, {"RxPowerSpread", line.Spread, maxSpread}, {"ModuleCelsius", line.Celsius, maxCelsius}, {"ModuleAlarms", float64(line.Alarms), 0}} {
		if v.n > v.limit {
			list = append(list, Error{Counter: v.name, N: dump.CounterValue{N: v.n, Known: true}})
		}
	}
	return list
}

// isEvent reports whether a counter of errors also counts restarts of an end of the link.
func isEvent(name string) bool {
	return name == dump.LinkRecovers.Info().Name || name == dump.LinkDowned.Info().Name
}

// findErrors lists the cables with errors that restarts do not explain.
func (x *explainer) findErrors() {
	restarts := x.findRestarts()
	for _, c := range x.f.Cables() {
		cable := Cable{Evidence: Unknown, Routes: x.routes[c.A] + x.routes[c.B]}
		restarted := restarts[x.f.Owner(c.A)] + restarts[x.f.Owner(c.B)]
		listed := false
		for i, port := range []fabric.PortID{c.A, c.B} {
			end := End{Port: verify.EndpointOf(x.f, port), Errors: []Error{}}
			counts := false
			for _, k := range ErrorCounters {
				v := x.c.Get(k, port)
				counts = counts || v.Known
				if v.N == 0 && !v.Full && !v.Wrapped {
					continue
				}
				end.Errors = append(end.Errors, Error{k.Info().Name, v, v.Full, v.Wrapped})
				n, found := v.N, Wire
				if isEvent(k.Info().Name) {
					n, found = max(n-restarted, 0), Downs
				}
				if n == 0 {
					listed = listed || v.Wrapped || v.Full && restarted == 0
					continue
				}
				listed = true
				switch order(found) - order(cable.Evidence) {
				case 0:
					cable.errors += n
				case -1, -2:
					cable.Evidence, cable.errors = found, n
				}
			}
			if odd := x.lineErrors(port); len(odd) > 0 {
				end.Errors = append(end.Errors, odd...)
				if listed = true; cable.Evidence != Wire {
					cable.Evidence, cable.errors = Wire, 0
				}
			}
			if counts {
				x.ErrorPorts++
			}
			cable.Ends[i] = end
		}
		if listed {
			x.Errors = append(x.Errors, cable)
		}
	}
	slices.SortStableFunc(x.Errors, func(a, b Cable) int {
		return cmp.Or(order(a.Evidence)-order(b.Evidence), cmp.Compare(b.errors, a.errors), cmp.Compare(b.Routes, a.Routes))
	})
}

// order returns the rank of some evidence, 0 for that of a bad cable.
func order(e Evidence) int { return slices.Index([]Evidence{Wire, Downs, Unknown}, e) }

// fewDowns is how many downs of a node's only link count as restarts, without errors on the wire.
const fewDowns = 3

// findRestarts lists hosts and switches whose links all went down, and returns
// by NodeID how often they were restarted. Restarts of a switch are taken off
// the downs of its hosts' links. The only link of a node may have a bad cable
// instead. Without errors on the wire its downs are restarts if the node
// itself counted fewer, since its counter then started at 0, or if they are no
// more than fewDowns or twice the median of all hosts' links.
func (x *explainer) findRestarts() []float64 {
	f := x.f
	var downs []float64
	for _, p := range f.CAPorts() {
		v, _ := x.downs(p)
		downs = append(downs, v.N)
	}
	slices.Sort(downs)
	most := float64(fewDowns)
	if n := len(downs); n > 0 {
		most = max(most, 2*downs[n/2])
	}
	times := make([]float64, f.NumNodes())
	find := func(h names.Host) {
		isSwitch := f.IsSwitch(h.Nodes[0])
		links, least, most := 0, 0.0, most
		for _, n := range h.Nodes {
			for p := range f.Cabled(n) {
				v, reset := x.downs(p)
				if !v.Known {
					return
				}
				d := v.N
				if !isSwitch {
					d = max(d-times[f.Owner(f.Peer(p))], 0)
				}
				if links++; links == 1 || d < least {
					least = d
				}
				switch {
				case x.onWire(p):
					most = 0
				case reset:
					most = least
				}
			}
		}
		if least < 1 || links == 1 && least > most {
			return
		}
		for _, n := range h.Nodes {
			times[n] = least
		}
		x.Restarts = append(x.Restarts, Restart{h.Name, isSwitch, links, int(least)})
	}
	for _, s := range f.Switches() {
		find(names.Host{Name: f.Name(s).Label(), Nodes: []fabric.NodeID{s}})
	}
	hosts, others := names.Hosts(f, nil, fabric.HostKind, fabric.ServiceKind, fabric.GatewayKind, fabric.AggregationKind)
	for _, nodes := range others {
		for _, n := range nodes {
			hosts = append(hosts, names.Host{Name: f.Name(n).Label(), Nodes: []fabric.NodeID{n}})
		}
	}
	for _, h := range hosts {
		find(h)
	}
	slices.SortStableFunc(x.Restarts, func(a, b Restart) int { return text.Natural(a.Name, b.Name) })
	return times
}

// onWire reports whether an end of the cable at a port counted errors on the wire.
func (x *explainer) onWire(p fabric.PortID) bool {
	return slices.ContainsFunc(ErrorCounters, func(k dump.Counter) bool {
		return !isEvent(k.Info().Name) && (x.c.Get(k, p).N > 0 || x.c.Get(k, x.f.Peer(p)).N > 0)
	})
}

// downs returns how often the link of a port went down, by the greater count
// of its two ends. reset is true if the port itself counted fewer: a restart
// has set its counter to 0.
func (x *explainer) downs(p fabric.PortID) (v dump.CounterValue, reset bool) {
	v, far := x.c.Get(dump.LinkDowned, p), x.c.Get(dump.LinkDowned, x.f.Peer(p))
	if far.Known && (!v.Known || far.N > v.N) {
		return far, v.Known
	}
	return v, false
}
