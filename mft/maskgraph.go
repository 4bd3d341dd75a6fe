package mft

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// maskGraph has the masks of one MLID as a graph of ports in which packets
// are followed. Each worker has one.
//
// A packet's state is the switch that it is in and the port where it came in. It leaves by all
// other ports of the mask.
//
// The masks are exact for a sender if at most one copy leaves by each port and every receiver
// except the sender gets a copy. A search through the states that stops at the first port seen
// twice takes O(ports in masks).
//
// A sender cannot get its own packet back unless two copies leave by some port. Where a
// packet comes back, the switch sends it on by all ports except the one where it came in.
// So it can have left before by this one only; the same holds at the next switch, without
// end.
type maskGraph struct {
	f        *fabric.Fabric
	ports    []fabric.PortID // in the masks, ascending
	edges    []edge          // by index in ports
	mask     []span          // by switch: its part of ports
	switches []fabric.NodeID // those with a mask

	seen   []bool // by index in ports: a copy left by it
	hops   []hop
	joined graph.UnionFind[int32] // by index in ports of each mask's first port, for isForest
}

// span is a part of ports.
type span struct{ from, to int32 }

// edge describes the other end of a port in the masks.
type edge struct {
	span       // the mask of the switch there; empty if it has none
	back int32 // index in ports of the port there; -1 if it is not in the mask
	host bool  // the port leads to an end port
}

// hop is a copy that has arrived at a switch or an end port.
type hop struct {
	edge
	out  int32 // index in ports of the port that it left by; -1 for the sender's packet
	prev int32 // index of the hop before
}

func newMaskGraph(f *fabric.Fabric) maskGraph {
	return maskGraph{f: f, mask: make([]span, f.NumSwitches())}
}

// load takes the masks of an MLID, as ports in ascending order, and keeps the
// list until the next load.
func (w *maskGraph) load(ports []fabric.PortID) {
	for _, s := range w.switches {
		w.mask[s] = span{}
	}
	w.ports, w.switches = ports, w.switches[:0]
	for i, p := range ports {
		s := w.f.Owner(p)
		if n := len(w.switches); n == 0 || w.switches[n-1] != s {
			w.switches = append(w.switches, s)
			w.mask[s].from = int32(i)
		}
		w.mask[s].to = int32(i + 1)
	}
	w.edges = w.edges[:0]
	for _, p := range ports {
		e := edge{back: -1, host: true}
		if w.f.PeerSwitch(p) != fabric.NoNode {
			e = w.enter(w.f.Peer(p))
		}
		w.edges = append(w.edges, e)
	}
}

// enter returns the mask by which a packet that came in by switch port in goes on.
func (w *maskGraph) enter(in fabric.PortID) edge {
	e := edge{span: w.mask[w.f.Owner(in)], back: -1}
	if i, is := slices.BinarySearch(w.ports[e.from:e.to], in); is {
		e.back = e.from + int32(i)
	}
	return e
}

// sendPacket follows a packet that comes in by port in of a switch; see follow.
func (w *maskGraph) sendPacket(in fabric.PortID) (twice, from int32) {
	return w.follow(w.enter(in), false)
}

// follow follows a packet from start on, and lists its hops in w.hops. It ends when two copies
// leave by one port. Then it returns the port, as an index in ports, in twice, and the hop of the
// second copy in from; else twice is -1. If all is set, it goes on without the second copies.
func (w *maskGraph) follow(start edge, all bool) (twice, from int32) {
	w.seen = resize(w.seen, len(w.ports))
	clear(w.seen)
	w.hops = append(w.hops[:0], hop{edge: start, out: -1})
	twice = -1
	for i := int32(0); int(i) < len(w.hops); i++ {
		h := w.hops[i]
		for k := h.from; k < h.to; k++ {
			switch {
			case k == h.back:
			case !w.seen[k]:
				w.seen[k] = true
				w.hops = append(w.hops, hop{edge: w.edges[k], out: k, prev: i})
			case twice < 0:
				if twice, from = k, i; !all {
					return twice, from
				}
			}
		}
	}
	return twice, from
}

// findFault follows a sender's packet. If two copies leave by one port, which is a loop or brings a
// receiver two copies, it returns a description, else "".
func (w *maskGraph) findFault(sender fabric.PortID) string {
	if twice, from := w.sendPacket(w.f.Attachment(sender)); twice >= 0 {
		return w.describeFault(sender, twice, from)
	}
	return ""
}

// FindFault describes a fault of the masks of one MLID, given as ports in ascending order: two
// copies of a packet of one of senders leave by one port, which is a loop or brings a receiver
// two copies. It returns "" if there is no fault; then masks with only some of these ports have
// none either. It takes O(ports), and O(ports x senders) if the links in the masks have a
// cycle.
func FindFault(f *fabric.Fabric, ports, senders []fabric.PortID) string {
	w := newMaskGraph(f)
	if w.load(ports); w.isForest() {
		return ""
	}
	for _, s := range senders {
		if f.Attachment(s) == fabric.NoPort {
			continue
		}
		if fault := w.findFault(s); fault != "" {
			return fault
		}
	}
	return ""
}

// explainInexact returns why the masks are not exact for a sender, or "" if
// they are. All ports in the masks that lead to no switch must lead to
// receivers.
func (w *maskGraph) explainInexact(sender fabric.PortID, receivers []fabric.PortID) string {
	if fault := w.findFault(sender); fault != "" {
		return fault
	}
	want := len(receivers)
	if _, is := slices.BinarySearch(receivers, sender); is {
		want--
	}
	delivered := text.CountIf(w.hops, func(h hop) bool { return h.host })
	if delivered == want {
		return ""
	}
	for _, d := range receivers {
		if i, is := slices.BinarySearch(w.ports, w.f.Attachment(d)); d != sender && !(is && w.seen[i]) {
			return fmt.Sprintf("packets of sender %s do not reach receiver %s", w.f.PortName(sender), w.f.PortName(d))
		}
	}
	return fmt.Sprintf("packets of sender %s reach %d end ports that are no receivers", w.f.PortName(sender), delivered-want)
}

// isForest returns true if the links in the masks, regardless of direction, have no cycle. Then
// there is at most one path from a sender to a receiver. Since copies never turn back, no packet of
// any sender loops or arrives twice, even if masks lack some ports.
func (w *maskGraph) isForest() bool {
	w.joined = resize(w.joined, len(w.ports))
	w.joined.Reset()
	for i, p := range w.ports {
		e := &w.edges[i]
		if e.from == e.to || e.back >= 0 && int(e.back) < i {
			continue // to an end port or an empty mask, or seen from its other end
		}
		if !w.joined.Join(w.mask[w.f.Owner(p)].from, e.from) {
			return false
		}
	}
	return true
}

// describeFault describes how two copies leave by port number twice, with the ports by which each
// left before. The second copy is in hop number from.
func (w *maskGraph) describeFault(sender fabric.PortID, twice, from int32) string {
	name, port := w.f.PortName(sender), w.ports[twice]
	second := w.pathTo(from)
	if i := slices.Index(second, port); i >= 0 {
		return fmt.Sprintf("packets of sender %s loop: %s and %s again", name, w.portNames(second[i:]), w.f.PortName(port))
	}
	i := slices.IndexFunc(w.hops, func(h hop) bool { return h.from <= twice && twice < h.to && h.back != twice })
	return fmt.Sprintf("two copies of a packet of sender %s go out by %s, after %s and after %s",
		name, w.f.PortName(port), w.portNames(w.pathTo(int32(i))), w.portNames(second))
}

// pathTo returns the ports on the way to hop i.
func (w *maskGraph) pathTo(i int32) []fabric.PortID {
	var list []fabric.PortID
	for ; w.hops[i].out >= 0; i = w.hops[i].prev {
		list = append(list, w.ports[w.hops[i].out])
	}
	slices.Reverse(list)
	return list
}

// portNames joins the names of ports; it leaves out the middle of many.
func (w *maskGraph) portNames(ports []fabric.PortID) string {
	const most = 12
	if len(ports) == 0 {
		return "nothing"
	}
	return text.Ends(text.Each(ports, w.f.PortName), most, ", ", "... %d more ...")
}

// resize returns a list of length n, whose elements are not cleared.
func resize[L ~[]T, T any](list L, n int) L { return slices.Grow(list[:0], n)[:n] }
