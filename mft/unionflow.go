package mft

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// flow follows packets through the masks of one MLID: scratch of one worker.
//
// A packet's state is the switch it is in and the port that it came in by. It
// goes out by every port of the mask but that one. The masks are exact for a
// sender when no port is gone out by twice and every receiver but the sender
// gets a copy. A search through the states that stops at the first port seen
// twice takes O(ports in masks).
//
// A sender cannot get a copy of its own unless some port is gone out by twice: a
// switch that it comes back to sends it on by all ports but one, so that one
// must be the only port that it went out by, and so on to the next switch
// without end.
type flow struct {
	f      *fabric.Fabric
	ports  []fabric.PortID // of the MLID, ascending
	edges  []edge          // by index in ports
	mask   []span          // by switch: its part of ports
	loaded uint32          // which masks are in use

	seen []uint32 // by index in ports: now when a copy went out by it
	now  uint32
	hops []hop

	root []fabric.NodeID // by switch: union-find, for forest
}

// edge is what a port of a mask leads to.
type edge struct {
	from, to int32 // the mask of the switch there, a part of ports
	back     int32 // the index in ports of the port there, -1 when it is not in the mask
	host     bool  // no switch is there
}

// span is a part of ports, good while loaded is at.
type span struct {
	from, to int32
	at       uint32
}

// hop is a packet in a switch.
type hop struct {
	from, to int32 // the switch's mask
	back     int32 // index in ports of the port that it came in by, -1 when that is not in the mask
	out      int32 // index in ports of the port that it went out by before, -1 for the sender's
	prev     int32 // index of the hop before
}

func newFlow(f *fabric.Fabric) *flow {
	return &flow{
		f:    f,
		mask: make([]span, f.NumSwitches()),
		root: make([]fabric.NodeID, f.NumSwitches()),
	}
}

// load takes the masks of an MLID, ascending, and keeps the list until the
// next load.
func (w *flow) load(ports []fabric.PortID) {
	if w.loaded++; w.loaded == 0 {
		clear(w.mask)
		w.loaded = 1
	}
	w.ports = ports
	for i := 0; i < len(ports); {
		s := w.f.Owner(ports[i])
		end := w.f.PortBase(s) + fabric.PortID(w.f.Node(s).NumPorts)
		from := i
		for i < len(ports) && ports[i] <= end {
			i++
		}
		w.mask[s] = span{from: int32(from), to: int32(i), at: w.loaded}
	}
	w.edges = w.edges[:0]
	for _, p := range ports {
		e := edge{back: -1, host: true}
		if q := w.next(p); q != fabric.NoPort {
			e = w.enter(q)
		}
		w.edges = append(w.edges, e)
	}
	for len(w.seen) < len(ports) {
		w.seen = append(w.seen, 0)
	}
}

// enter is where a packet is that came in by port in of a switch.
func (w *flow) enter(in fabric.PortID) edge {
	m := w.mask[w.f.Owner(in)]
	if m.at != w.loaded {
		return edge{back: -1}
	}
	e := edge{from: m.from, to: m.to, back: -1}
	if i, is := slices.BinarySearch(w.ports[m.from:m.to], in); is {
		e.back = m.from + int32(i)
	}
	return e
}

// next is the port of a switch that a packet comes in by which goes out by p;
// NoPort when p leads to an end port, or nowhere.
func (w *flow) next(p fabric.PortID) fabric.PortID {
	q := w.f.Peer(p)
	if q == fabric.NoPort || !w.f.IsSwitch(w.f.Owner(q)) {
		return fabric.NoPort
	}
	return q
}

// begin puts a packet that comes in by port in of a switch before the hops.
func (w *flow) begin(in fabric.PortID) {
	if w.now++; w.now == 0 {
		clear(w.seen)
		w.now = 1
	}
	e := w.enter(in)
	w.hops = append(w.hops[:0], hop{from: e.from, to: e.to, back: e.back, out: -1})
}

// trace is what became of a packet.
type trace struct {
	delivered int   // copies that went out to end ports
	twice     int32 // index in ports of the first that two copies went out by, or -1
	hop       int32 // that the second copy comes from
}

// run follows a packet that comes in by port in, until two copies go out by one
// port.
func (w *flow) run(in fabric.PortID) trace {
	w.begin(in)
	t := trace{twice: -1}
	for i := int32(0); int(i) < len(w.hops); i++ {
		h := w.hops[i]
		for k := h.from; k < h.to; k++ {
			if k == h.back {
				continue
			}
			if w.seen[k] == w.now {
				t.twice, t.hop = k, i
				return t
			}
			w.seen[k] = w.now
			if e := &w.edges[k]; e.host {
				t.delivered++
			} else {
				w.hops = append(w.hops, hop{from: e.from, to: e.to, back: e.back, out: k, prev: i})
			}
		}
	}
	return t
}

// check says in words why the masks just loaded are not exact for a sender, ""
// when they are. All ports in the masks that lead to no switch must be those of
// receivers.
func (w *flow) check(sender fabric.PortID, receivers []fabric.PortID) string {
	t := w.run(terminal(w.f, sender))
	if t.twice >= 0 {
		return w.witness(sender, t)
	}
	want := len(receivers)
	if _, is := slices.BinarySearch(receivers, sender); is {
		want--
	}
	if t.delivered == want {
		return ""
	}
	for _, d := range receivers {
		i, is := slices.BinarySearch(w.ports, terminal(w.f, d))
		if d != sender && (!is || w.seen[i] != w.now) {
			return fmt.Sprintf("packets of sender %s do not reach receiver %s", w.f.PortName(sender), w.f.PortName(d))
		}
	}
	return fmt.Sprintf("packets of sender %s reach %d end ports that are no receivers", w.f.PortName(sender), t.delivered-want)
}

// forest says whether the links in the masks, whichever their direction, close
// no circle.
func (w *flow) forest() bool {
	for _, p := range w.ports {
		w.root[w.f.Owner(p)] = w.f.Owner(p)
		if q := w.next(p); q != fabric.NoPort {
			w.root[w.f.Owner(q)] = w.f.Owner(q)
		}
	}
	for i, p := range w.ports {
		e := &w.edges[i]
		if e.host || e.back >= 0 && int(e.back) < i {
			continue // counted at the other end
		}
		a, b := w.find(w.f.Owner(p)), w.find(w.f.Owner(w.f.Peer(p)))
		if a == b {
			return false
		}
		w.root[a] = b
	}
	return true
}

func (w *flow) find(s fabric.NodeID) fabric.NodeID {
	for w.root[s] != s {
		w.root[s] = w.root[w.root[s]]
		s = w.root[s]
	}
	return s
}

// witness is the fault of a trace in words, with the ports that the copies went
// out by.
func (w *flow) witness(sender fabric.PortID, t trace) string {
	name, twice := w.f.PortName(sender), w.ports[t.twice]
	second := w.path(t.hop)
	if i := slices.Index(second, twice); i >= 0 {
		return fmt.Sprintf("packets of sender %s loop: %s and %s again", name, w.names(second[i:]), w.f.PortName(twice))
	}
	var first []fabric.PortID
	for i, h := range w.hops {
		if h.from <= t.twice && t.twice < h.to && h.back != t.twice {
			first = w.path(int32(i))
			break
		}
	}
	return fmt.Sprintf("two copies of a packet of sender %s go out by %s, after %s and after %s",
		name, w.f.PortName(twice), w.names(first), w.names(second))
}

// path is the ports that led to a hop.
func (w *flow) path(i int32) []fabric.PortID {
	var list []fabric.PortID
	for ; w.hops[i].out >= 0; i = w.hops[i].prev {
		list = append(list, w.ports[w.hops[i].out])
	}
	slices.Reverse(list)
	return list
}

// names joins the names of ports, with the middle left out where they are many.
func (w *flow) names(ports []fabric.PortID) string {
	const most = 12
	if len(ports) == 0 {
		return "nothing"
	}
	var s []string
	for i, p := range ports {
		switch {
		case len(ports) <= most || i < most/2 || i >= len(ports)-most/2:
			s = append(s, w.f.PortName(p))
		case i == most/2:
			s = append(s, fmt.Sprintf("... %d more ...", len(ports)-most))
		}
	}
	return strings.Join(s, ", ")
}
