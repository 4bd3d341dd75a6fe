package cause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// fate is how a switch loses packets.
type fate uint8

// The fates.
const (
	noEntry    fate = iota // it has no entry for the LID
	noPort                 // the entry is a port that it lacks
	ownPort                // the entry is port 0, which has another LID
	noCable                // the entry is a port without a cable
	otherPort              // the entry leads to another end port; the entry for that port does not
	wrongEntry             // the entry leads to another end port; so does the entry for that port
	loops                  // the entry leads away from the LID, so packets come back
)

// spot is where and how packets are lost: the switch, and the port of its entry, NoPath if it has none.
type spot struct {
	s    fabric.NodeID
	port fabric.PortNum
	fate fate
}

// loss counts the packets that are lost at a spot.
type loss struct {
	spot
	lids    []fabric.LID // of these packets, ascending
	from    []bool       // by switch: its ports, or its port 0, send packets that are lost here
	pairs   verify.Pairs
	transit bool // some are neither from this switch nor to a port on it
}

// findLosses follows packets from all switches to all LIDs, and returns where they are lost, in the
// order of switches, ports and fates. Pairs in different components do not count. It takes
// O(switches x LIDs).
func (w *walker) findLosses() []*loss {
	f, n := w.f, len(w.end)
	part := f.Components().Of
	sends := make([]verify.Pairs, n) // by switch: senders there, by class
	for s := range sends {
		sends[s][verify.LostManagement] = 1
		for _, p := range f.EndPortsOn(fabric.NodeID(s)) {
			sends[s][class(f, p)]++
		}
	}
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		to := f.LIDPort(lid)
		if to == fabric.NoPort || f.Attachment(to) == fabric.NoPort {
			continue
		}
		root := f.Owner(f.Attachment(to))
		w.follow(lid, to)
		for s, at := range w.end {
			if at == nil || part[s] != part[root] {
				continue
			}
			from := sends[s]
			if fabric.NodeID(s) == root {
				from[class(f, to)]-- // not to itself
			}
			at.add(s, n, lid, class(f, to), from)
			at.transit = at.transit || fabric.NodeID(s) != at.s && root != at.s
		}
	}
	list := make([]*loss, 0, len(w.found))
	for _, x := range w.found {
		if x.lids != nil {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(a, b *loss) int {
		return cmp.Or(cmp.Compare(a.s, b.s), cmp.Compare(a.port, b.port), cmp.Compare(a.fate, b.fate))
	})
	return list
}

// class returns the kind of an end port's pairs, verify.LostHosts or another.
func class(f *fabric.Fabric, p fabric.PortID) int {
	switch f.Kind(f.Owner(p)) {
	case fabric.SwitchKind:
		return verify.LostManagement
	case fabric.AggregationKind:
		return verify.LostAggregation
	}
	return verify.LostHosts
}

// add counts the pairs of a LID with the senders at switch s, which from counts by class. class is
// that of the LID's port; switches counts all switches.
func (x *loss) add(s, switches int, lid fabric.LID, class int, from verify.Pairs) {
	if from == (verify.Pairs{}) {
		return
	}
	if x.from == nil {
		x.from = make([]bool, switches)
	}
	x.from[s] = true
	if len(x.lids) == 0 || x.lids[len(x.lids)-1] != lid {
		x.lids = append(x.lids, lid)
	}
	for k, n := range from {
		x.pairs[max(k, class)] += n
	}
}

// walker follows packets to where they end.
type walker struct {
	f     *fabric.Fabric
	t     *lft.Tables
	end   []*loss // by switch: where packets from there are lost; nil if they arrive
	state []uint8 // by switch: 0 not yet followed, 1 on the way, 2 done
	found map[spot]*loss
	way   []fabric.NodeID
	near  *graph.Search[fabric.NodeID] // distances to switch root
	root  fabric.NodeID
}

// follow sets end for packets to a LID; to is the port that has it.
func (w *walker) follow(lid fabric.LID, to fabric.PortID) {
	clear(w.state)
	for first := range fabric.NodeID(len(w.state)) {
		w.way = w.way[:0]
		var end *loss
		for s := first; ; {
			if w.state[s] == 2 {
				end = w.end[s]
				break
			}
			if w.state[s] == 1 {
				i := slices.Index(w.way, s)
				end = w.at(w.wrongTurn(w.way[i:], lid, to))
				break
			}
			w.state[s] = 1
			w.way = append(w.way, s)
			next, lost, fate := w.step(s, lid, to)
			if next == fabric.NoNode {
				if lost {
					end = w.at(spot{s, w.entry(s, lid), fate})
				}
				break
			}
			s = next
		}
		for _, s := range w.way {
			w.state[s], w.end[s] = 2, end
		}
	}
}

func (w *walker) at(x spot) *loss {
	if w.found[x] == nil {
		w.found[x] = &loss{spot: x}
	}
	return w.found[x]
}

func (w *walker) entry(s fabric.NodeID, lid fabric.LID) fabric.PortNum {
	return lft.Entry(w.t.Row(s), lid)
}

// step returns the switch to which s sends packets for a LID. It is NoNode if they end at s: then
// port to gets them, or lost is true and how is their fate.
func (w *walker) step(s fabric.NodeID, lid fabric.LID, to fabric.PortID) (next fabric.NodeID, lost bool, how fate) {
	f := w.f
	e := w.entry(s, lid)
	switch {
	case e == fabric.NoPath:
		return fabric.NoNode, true, noEntry
	case e == fabric.ManagementPort:
		return fabric.NoNode, to != f.PortBase(s), ownPort
	case e > f.Node(s).NumPorts:
		return fabric.NoNode, true, noPort
	}
	switch peer := f.Peer(f.Port(s, e)); {
	case peer == fabric.NoPort:
		return fabric.NoNode, true, noCable
	case f.IsSwitch(f.Owner(peer)):
		return f.Owner(peer), false, loops
	case w.entry(s, f.LID(peer)) == e:
		return fabric.NoNode, peer != to, wrongEntry
	default:
		return fabric.NoNode, peer != to, otherPort
	}
}

// wrongTurn returns the entry in a cycle that does not lead packets for a LID nearer to port to;
// each cycle has one. Of several it takes that of the first switch.
func (w *walker) wrongTurn(cycle []fabric.NodeID, lid fabric.LID, to fabric.PortID) spot {
	root := w.f.Owner(w.f.Attachment(to))
	if w.near == nil || w.root != root {
		w.near = graph.NewSearch[fabric.NodeID](w.f.NumSwitches())
		w.near.Run(w.f.Neighbors, root)
		w.root = root
	}
	search := w.near
	first := spot{s: fabric.NoNode}
	for i, s := range cycle {
		next := cycle[(i+1)%len(cycle)]
		if search.Distance[next] >= search.Distance[s] && (first.s == fabric.NoNode || s < first.s) {
			first = spot{s, w.entry(s, lid), loops}
		}
	}
	return first
}

// headline returns what is wrong at the spot; not for the fate noEntry.
func (x *loss) headline(f *fabric.Fabric, t *lft.Tables) string {
	name := f.Name(x.s)
	port := name.At(x.port, "")
	if x.port <= f.Node(x.s).NumPorts {
		port = f.PortName(f.Port(x.s, x.port))
	}
	switch x.fate {
	case noPort:
		return fmt.Sprintf("%s sends %s to port %d, and has ports 1 to %d", name, lidNames(f, x.lids), x.port, f.Node(x.s).NumPorts)
	case ownPort:
		return fmt.Sprintf("%s takes %s for its own", name, lidNames(f, x.lids))
	case noCable:
		return "no cable at " + port + ", and the tables use it"
	case wrongEntry:
		other := f.Peer(f.Port(x.s, x.port))
		return fmt.Sprintf("%s has a wrong entry for %s: port %d, which leads to %s (LID %d)", name, lidNames(f, x.lids), x.port, f.PortName(other), f.LID(other))
	case otherPort:
		other := f.Peer(f.Port(x.s, x.port))
		return fmt.Sprintf("%s leads to %s (LID %d), and not to %s as the tables have it", port, f.PortName(other), f.LID(other), lidNames(f, x.lids))
	}
	back := f.Name(f.Owner(f.Peer(f.Port(x.s, x.port))))
	wrong := fmt.Sprintf("%s has a wrong entry for %s: port %d, which leads to %s", name, lidNames(f, x.lids), x.port, back)
	if right := x.usualPort(f, t); right != x.port && right != fabric.NoPath {
		wrong += fmt.Sprintf(", and other LIDs of %s go by port %d", f.Name(f.Owner(f.Attachment(f.LIDPort(x.lids[0])))), right)
	}
	return wrong + ": packets loop"
}

// usualPort returns the port that x.s uses for all other LIDs of the switch
// that the lost LIDs are on; NoPath if the lost LIDs are on several switches,
// or the others use several ports.
func (x *loss) usualPort(f *fabric.Fabric, t *lft.Tables) fabric.PortNum {
	switchOf := func(lid fabric.LID) fabric.NodeID {
		if p := f.LIDPort(lid); p != fabric.NoPort && f.Attachment(p) != fabric.NoPort {
			return f.Owner(f.Attachment(p))
		}
		return fabric.NoNode
	}
	root, usual := switchOf(x.lids[0]), fabric.NoPath
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		e := lft.Entry(t.Row(x.s), lid)
		switch _, lost := slices.BinarySearch(x.lids, lid); {
		case lost && switchOf(lid) != root, !lost && switchOf(lid) == root && usual != fabric.NoPath && e != usual:
			return fabric.NoPath
		case !lost && switchOf(lid) == root:
			usual = e
		}
	}
	return usual
}

// named bounds the LIDs and names on a line.
const named = 3

// shownSwitches bounds the switches that a line names for one cause.
const shownSwitches = 8

// lidNames lists LIDs with their ports; if there are too many, only some, hosts first.
func lidNames(f *fabric.Fabric, lids []fabric.LID) string {
	few := lids
	if len(lids) > named {
		few = slices.Clone(lids)
		slices.SortStableFunc(few, func(a, b fabric.LID) int { return cmp.Compare(class(f, f.LIDPort(a)), class(f, f.LIDPort(b))) })
		few = few[:named]
	}
	words := text.Each(few, func(lid fabric.LID) string { return fmt.Sprintf("%s (LID %d)", f.PortName(f.LIDPort(lid)), lid) })
	if len(lids) > named {
		return fmt.Sprintf("%s LIDs, such as %s", text.Grouped(len(lids)), text.List(words, "and"))
	}
	return text.List(words, "and")
}

// ranges writes ascending numbers as ranges: 5-9,12; if that is long, only first and last: 5..99.
func ranges[N text.Integer](list []N) string {
	folded := hostlist.Fold(text.Each(list, func(n N) string { return fmt.Sprint(n) }))
	if folded = strings.Trim(folded, "[]"); len(folded) > 40 {
		return fmt.Sprintf("%d..%d", list[0], list[len(list)-1])
	}
	return folded
}
