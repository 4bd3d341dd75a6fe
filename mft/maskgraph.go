package mft

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// maskGraph is the masks of one MLID as a graph of ports, in which packets are
// followed: scratch of one worker.
//
// A packet's state is the switch it is in and the port that it came in by. It
// leaves by every port of the mask except that one. The masks are exact for a
// sender when no two copies leave by one port and every receiver but the sender
// gets a copy. A search through the states that stops at the first port seen
// twice takes O(ports in masks).
//
// A sender cannot get a copy of its own unless two copies leave by some port: a
// switch that it comes back to sends it on by all ports but one, so that one
// must be the only port that it left by, and so on to the next switch without
// end.
type maskGraph struct {
	f        *fabric.Fabric
	ports    []fabric.PortID // of the MLID, ascending
	edges    []edge          // by index in ports
	mask     []span          // by switch: its part of ports
	switches []fabric.NodeID // those with a mask

	seen   []bool // by index in ports: a copy of the packet left by it
	hops   []hop
	joined graph.UnionFind[int32] // by index in ports of the start of a mask, for isForest
}

// span is a part of ports.
type span struct{ from, to int32 }

// edge tells where a port of a mask leads.
type edge struct {
	span       // the mask of the switch there, empty for none
	back int32 // the index in ports of the port there, -1 when it is not in the mask
	host bool  // no switch is there
}

// hop is a copy that has come to a switch or an end port.
type hop struct {
	edge
	out  int32 // index in ports of the port that it left by before, -1 for the sender's
	prev int32 // index of the hop before
}

func newMaskGraph(f *fabric.Fabric) maskGraph {
	return maskGraph{f: f, mask: make([]span, f.NumSwitches())}
}

// load takes the masks of an MLID, ascending, and keeps the list until the
// next load.
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

// enter is where a packet is that came in by port in of a switch.
func (w *maskGraph) enter(in fabric.PortID) edge {
	e := edge{span: w.mask[w.f.Owner(in)], back: -1}
	if i, is := slices.BinarySearch(w.ports[e.from:e.to], in); is {
		e.back = e.from + int32(i)
	}
	return e
}

// sendPacket lets a packet come in by port in of a switch; see follow.
func (w *maskGraph) sendPacket(in fabric.PortID) (twice, from int32) {
	return w.follow(w.enter(in), false)
}

// follow follows a packet from an edge on in w.hops, until two copies leave by one
// port: twice is that port, as an index in ports, and from the hop of the second
// copy; twice is -1 for none. With all set it goes on without the second copies.
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

// findFault sends a packet of a sender, and describes that two copies of it leave by one port, which is
// a loop or brings somebody two copies; "" if none do.
func (w *maskGraph) findFault(sender fabric.PortID) string {
	if twice, from := w.sendPacket(w.f.Attachment(sender)); twice >= 0 {
		return w.describeFault(sender, twice, from)
	}
	return ""
}

// FindFault describes what packets of some senders do in the masks of one MLID, given as ports
// in ascending order, that packets must not: two copies leave by one port, which is a loop or
// brings somebody two copies. It is "" if none do so, and then none do in masks that have a
// part of these ports either. It takes O(ports), times the senders if the links in the masks
// have a cycle.
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

// explainInexact explains why the masks are not exact for a sender; it returns "" if
// they are exact. All ports in the masks that lead to no switch must lead to
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

// isForest returns true if the links in the masks, regardless of direction, have
// no cycle. Then no packet can loop or arrive twice, whichever sender sends it and whichever
// of the ports are in the masks, since a copy never turns back; and there is only one path
// from a sender to a receiver.
func (w *maskGraph) isForest() bool {
	w.joined = resize(w.joined, len(w.ports))
	w.joined.Reset()
	for i, p := range w.ports {
		e := &w.edges[i]
		if e.from == e.to || e.back >= 0 && int(e.back) < i {
			continue // a leaf, or a link that was seen from its other end
		}
		if !w.joined.Join(w.mask[w.f.Owner(p)].from, e.from) {
			return false
		}
	}
	return true
}

// describeFault is in words that two copies leave by port twice, with the ports
// that they left by before; the second is in hop from.
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

// pathTo is the ports that led to a hop.
func (w *maskGraph) pathTo(i int32) []fabric.PortID {
	var list []fabric.PortID
	for ; w.hops[i].out >= 0; i = w.hops[i].prev {
		list = append(list, w.ports[w.hops[i].out])
	}
	slices.Reverse(list)
	return list
}

// portNames joins the names of ports, with the middle left out where they are
// many.
func (w *maskGraph) portNames(ports []fabric.PortID) string {
	const most = 12
	if len(ports) == 0 {
		return "nothing"
	}
	return text.Ends(text.Each(ports, w.f.PortName), most, ", ", "... %d more ...")
}

// resize makes a list of length n, whose elements may be any.
func resize[L ~[]T, T any](list L, n int) L { return slices.Grow(list[:0], n)[:n] }
