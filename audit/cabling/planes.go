package cabling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/verify"
)

// A switch of several planes is several chips with one system image GUID and no cable
// between them; XDR switches have four. A cable has a lane for each chip, so that the
// chips, the planes, are cabled alike. Nothing but the cables says that a system is one:
// its chips are of one model, and at least three quarters of the systems and adapters that
// it is cabled to are cabled to every chip.

// planes finds what planes lack that their sisters have.
type planes struct {
	*checker
	system  []int32    // by node: which system it is of, of which each other node is one too
	all     []planeSet // by system: those of several planes; others have no chips
	lanes   map[pair][]fabric.PortID
	missing map[lack]bool // what other rules have reported
}

// lack is a node that lacks a cable, and the system that it should lead to.
type lack struct {
	node   fabric.NodeID
	system int32
}

// planeSet is a system of several planes.
type planeSet struct {
	chips []fabric.NodeID
	short bool // systems like it have more chips
}

// pair is two systems, seen from the first.
type pair struct{ from, to int32 }

// checkPlanes looks at all systems of several planes. It returns false where there are none.
func (c *checker) checkPlanes() bool {
	p := &planes{checker: c, system: slices.Repeat([]int32{-1}, c.f.NumNodes()), lanes: map[pair][]fabric.PortID{}}
	if !p.findPlanes() {
		return false
	}
	p.takeReported()
	p.findShort()
	pairs := slices.SortedFunc(maps.Keys(p.lanes), func(a, b pair) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	for _, k := range pairs {
		back := pair{k.to, k.from}
		both := len(p.all[k.to].chips) > 0
		if len(p.all[k.from].chips) == 0 || both && k.to < k.from {
			continue // seen from the other side
		}
		if !p.all[k.from].short && !p.all[k.to].short {
			near, far := p.lacking(k), []fabric.PortID(nil)
			if both {
				far = p.lacking(back)
			}
			p.reportMissing(k, near, far)
		}
	}
	return true
}

// findPlanes finds the systems of several planes and the lanes between systems. It returns
// false where there are none.
func (p *planes) findPlanes() bool {
	f := p.f
	candidates := f.Systems()
	if len(candidates) == 0 {
		return false
	}
	p.all = make([]planeSet, len(candidates), f.NumNodes())
	for i, chips := range candidates {
		p.all[i].chips = chips
		for _, s := range chips {
			p.system[s] = int32(i)
		}
	}
	for n := range p.system { // an adapter, or a switch of one chip
		if p.system[n] < 0 {
			p.system[n] = int32(len(p.all))
			p.all = append(p.all, planeSet{})
		}
	}
	for at := range fabric.PortID(f.NumPorts()) {
		if peer := f.Peer(at); peer != fabric.NoPort && f.Kind(f.Owner(at)) != fabric.AggregationKind && f.Kind(f.Owner(peer)) != fabric.AggregationKind {
			k := pair{p.system[f.Owner(at)], p.system[f.Owner(peer)]}
			p.lanes[k] = append(p.lanes[k], at)
		}
	}
	peers, whole := make([]int, len(candidates)), make([]int, len(candidates))
	for k := range p.lanes {
		if int(k.from) < len(candidates) {
			peers[k.from]++
			if !slices.Contains(p.count(k), 0) {
				whole[k.from]++
			}
		}
	}
	some := false
	for i, chips := range candidates {
		joined := p.lanes[pair{int32(i), int32(i)}] != nil
		if joined || peers[i] < 4 || 4*whole[i] < 3*peers[i] || !p.alike(chips) {
			p.all[i].chips = nil
			continue
		}
		some = true
	}
	return some
}

// alike says whether chips are of one model.
func (p *planes) alike(chips []fabric.NodeID) bool {
	first := p.modelOf(chips[0])
	return !slices.ContainsFunc(chips, func(s fabric.NodeID) bool { return p.modelOf(s) != first })
}

// count counts the lanes from each chip of a system to another system.
func (p *planes) count(k pair) []int {
	chips := p.all[k.from].chips
	n := make([]int, len(chips))
	for _, at := range p.lanes[k] {
		i, _ := slices.BinarySearch(chips, p.f.Owner(at))
		n[i]++
	}
	return n
}

// findShort reports systems with fewer chips than at least three quarters of the systems
// of their model have.
func (p *planes) findShort() {
	chips := map[model][]int{}
	for i := range p.all {
		if s := p.all[i].chips; len(s) > 0 {
			chips[p.modelOf(s[0])] = append(chips[p.modelOf(s[0])], len(s))
		}
	}
	for i := range p.all {
		s := p.all[i].chips
		if len(s) == 0 {
			continue
		}
		like := chips[p.modelOf(s[0])]
		usual, n := mode(like), 0
		for _, k := range like {
			if k == usual {
				n++
			}
		}
		if len(s) >= usual || 4*n < 3*len(like) {
			continue
		}
		p.all[i].short = true
		p.add(UnevenPlanes, usual-len(s), nodeEndpoints(p.f, s), "%s has %d planes, and %d of the %d systems like it have %d", p.systemName(s), len(s), n, len(like), usual)
	}
}

// systemName is what the names of chips begin with, "MF0;spine-1:Q3400_RA" for
// "MF0;spine-1:Q3400_RA/U2", or the system image GUID.
func (c *checker) systemName(chips []fabric.NodeID) string {
	name := ""
	for i, s := range chips {
		text := c.f.Name(s).Text
		cut := strings.LastIndexByte(text, '/')
		if cut <= 0 || i > 0 && text[:cut] != name {
			return "system " + c.f.Node(chips[0]).SystemGUID.String()
		}
		name = text[:cut]
	}
	return fmt.Sprintf("system %q", name)
}

// lacking lists, for each lane that a chip of the first system has less to the second than
// most of its sisters, the port that should have it: one by which sisters lead there, and
// NoPort plus the chip's port 0 where no such port is free.
func (p *planes) lacking(k pair) []fabric.PortID {
	f, chips, counts := p.f, p.all[k.from].chips, p.count(k)
	usual := mode(counts)
	users := map[fabric.PortNum]int{} // by port: how many chips use it to get there
	for _, at := range p.lanes[k] {
		users[f.Num(at)]++
	}
	nums := slices.SortedFunc(maps.Keys(users), func(a, b fabric.PortNum) int {
		return cmp.Or(-cmp.Compare(users[a], users[b]), cmp.Compare(a, b))
	})
	var list []fabric.PortID
	for i, s := range chips {
		need := usual - counts[i]
		for _, num := range nums {
			if at := f.Port(s, num); need > 0 && f.Peer(at) == fabric.NoPort {
				list = append(list, at)
				need--
			}
		}
		for range need {
			list = append(list, f.PortBase(s)) // port 0: which one is not known
		}
	}
	return list
}

// reportMissing reports the lanes that are missing between two systems, unless a finding
// says already that a cable is missing there. near and far are of lacking; where only one
// side is of several planes the other one has no chips.
func (p *planes) reportMissing(k pair, near, far []fabric.PortID) {
	f := p.f
	for i := range max(len(near), len(far)) {
		var ends []fabric.PortID
		if i < len(near) {
			ends = append(ends, near[i])
		}
		if i < len(far) {
			ends = append(ends, far[i])
		}
		other := k.to
		if i >= len(near) {
			other = k.from
		}
		if p.missing[lack{f.Owner(ends[0]), other}] {
			continue
		}
		text := fmt.Sprintf("%s has no lane to %s, where its sister planes have one", p.chipPort(ends[0]), p.nameOf(other))
		if len(ends) == 2 {
			text += "; it should lead to " + p.chipPort(ends[1])
		} else if at := p.freePort(other); at != fabric.NoPort {
			ends = append(ends, at)
			text += "; it should lead to " + f.PortName(at)
		}
		p.markNamed(ends...)
		p.add(UnevenPlanes, 1, verify.EndpointsOf(f, ends...), "%s", text)
	}
}

// chipPort names a port, or only its chip where the port is not known.
func (p *planes) chipPort(at fabric.PortID) string {
	if p.f.Num(at) == 0 {
		return p.f.Name(p.f.Owner(at)).String()
	}
	return p.f.PortName(at)
}

// nameOf names a system, or the adapter or switch that is one by itself.
func (p *planes) nameOf(system int32) string {
	if chips := p.all[system].chips; len(chips) > 0 {
		return p.systemName(chips)
	}
	return p.f.Name(p.first(system)).String()
}

// first is the first node of a system.
func (p *planes) first(system int32) fabric.NodeID {
	return fabric.NodeID(slices.Index(p.system, system))
}

// freePort is the only port without a cable of an adapter, NoPort for none or several.
func (p *planes) freePort(system int32) fabric.PortID {
	n, free := p.first(system), fabric.NoPort
	if p.f.IsSwitch(n) {
		return fabric.NoPort
	}
	for num := fabric.PortNum(1); num <= p.f.Node(n).NumPorts; num++ {
		if at := p.f.Port(n, num); p.f.Peer(at) == fabric.NoPort {
			if free != fabric.NoPort {
				return fabric.NoPort
			}
			free = at
		}
	}
	return free
}

// takeReported notes which missing cables other rules have reported.
func (p *planes) takeReported() {
	p.missing = map[lack]bool{}
	for i := range p.findings {
		x := &p.findings[i]
		if x.Rule != MissingCable && x.Rule != MissingSwitch || x.Severity < verify.Warning {
			continue // a note stands for many that are guesses
		}
		for _, a := range x.Ports {
			n, _ := p.f.NodeByGUID(a.Node)
			for _, b := range x.Ports {
				if m, ok := p.f.NodeByGUID(b.Node); ok {
					p.missing[lack{n, p.system[m]}] = true
				}
			}
		}
	}
}
