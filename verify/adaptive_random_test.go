package verify_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
)

// randomFabric has switches in a tree, so that switch 0 is on top and each has one of a
// lower index above it, with more cables at random, and CAs, routers and aggregation nodes.
// Now and then a cable of the tree is missing. LIDs are in any order, with gaps and LMCs.
func randomFabric(t testing.TB, r *rand.Rand, switches, cables, hosts int) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	guid := fabric.GUID(0)
	ports := make([]fabric.PortNum, switches+hosts+2)
	add := func(typ fabric.NodeType, ports fabric.PortNum) int {
		guid++
		return short.Must(b.AddNode(fabric.Node{GUID: guid, Type: typ, NumPorts: ports}))(t)
	}
	cable := func(x, y int) {
		ports[x]++
		from := ports[x]
		ports[y]++
		short.Check(t, b.Connect(x, from, y, ports[y], fabric.Link{}))
	}
	high := fabric.PortNum(r.IntN(2) * 61) // ports of the second word of a set are in use
	for s := range switches {
		add(fabric.Switch, 100)
		ports[s] = high
		if s > 0 && r.IntN(20) > 0 {
			cable(s, r.IntN(s))
		}
	}
	for range cables {
		cable(r.IntN(switches), r.IntN(switches))
	}
	for range hosts {
		typ := fabric.CA
		if r.IntN(8) == 0 {
			typ = fabric.Router
		}
		h := add(typ, 2)
		if r.IntN(10) == 0 {
			b.Node(h).Description = gen.AggregationNode
		}
		for range 1 + r.IntN(2) {
			cable(h, r.IntN(switches))
		}
	}
	if r.IntN(10) == 0 {
		cable(add(fabric.CA, 1), add(fabric.CA, 1))
	}
	f := short.Must(b.Build())(t)
	base, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
	var ends []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { ends = append(ends, p) })
	r.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
	lid := fabric.LID(1)
	for _, p := range ends {
		if r.IntN(30) == 0 {
			continue
		}
		if r.IntN(8) == 0 && !f.IsSwitch(f.Owner(p)) {
			lmc[p] = 1
			lid = (lid + 1) &^ 1
		}
		base[p] = lid
		lid += 1<<lmc[p] + fabric.LID(r.IntN(8)/7)
	}
	return short.Must(f.WithLIDs(base, lmc))(t)
}

// styles of random tables: how the ports of an entry are chosen.
const (
	shortest = iota // all ports that lead nearer
	upDown          // up*/down* by the indices of the switches
	duato           // ports that lead nearer, and a static port by up*/down*
	parallel        // ports that lead nearer, and a static port by up*/down* on a cable for it alone
	anyPorts
	numStyles
)

// tables makes adaptive tables at random, of several PLFTs now and then.
func randomTables(f *fabric.Fabric, r *rand.Rand) *adaptive.Tables {
	t := &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches())}
	style := r.IntN(numStyles)
	states := [][]adaptive.State{
		{adaptive.Free}, {adaptive.Free}, {adaptive.Free, adaptive.Free, adaptive.HBF, adaptive.Static}, {adaptive.HBF}, {adaptive.Static},
	}[r.IntN(5)]
	for range 1 + max(0, r.IntN(5)-2) {
		if r.IntN(2) == 0 {
			style = r.IntN(numStyles)
		}
		t.PLFTs = append(t.PLFTs, randomPLFT(f, t, r, style, []int{0, 0, 60, 10}[r.IntN(4)], states))
	}
	if len(t.PLFTs) > 1 && r.IntN(3) == 0 { // not all switches have the last
		p := t.PLFTs[len(t.PLFTs)-1]
		p.Lacking = make([]bool, f.NumSwitches())
		for s := range p.Lacking {
			if p.Lacking[s] = r.IntN(2) == 0; p.Lacking[s] {
				for l := range p.Ports.Row(fabric.NodeID(s)) {
					p.Ports.Row(fabric.NodeID(s))[l] = fabric.NoPath
					p.Set(fabric.NodeID(s), fabric.LID(l), adaptive.Static, -1)
				}
			}
		}
	}
	if r.IntN(3) > 0 {
		t.Select = adaptive.NewSelector(f)
		some := len(t.PLFTs)
		if r.IntN(40) == 0 {
			some++ // one that there is not
		}
		bySL, byPort := r.IntN(2) == 0, r.IntN(2) == 0
		for _, s := range f.Switches() {
			for in := range int(f.Node(s).NumPorts) + 1 {
				row := t.Select.Row(s, fabric.PortNum(in))
				for sl := range row {
					switch {
					case byPort:
						row[sl] = uint8(r.IntN(some))
					case bySL:
						row[sl] = uint8(sl % some)
					}
				}
			}
		}
	}
	return t
}

// randomPLFT makes a PLFT of a style. One in spoil entries is anything.
func randomPLFT(f *fabric.Fabric, t *adaptive.Tables, r *rand.Rand, style, spoil int, states []adaptive.State) *adaptive.PLFT {
	ports := lft.NewTables(f.NumSwitches(), f.MaxLID()-fabric.LID(r.IntN(20)/19))
	p := adaptive.NewPLFT(ports)
	hops := f.Distances()
	for lid := fabric.LID(1); lid <= ports.MaxLID(); lid++ {
		at := f.Attachment(f.LIDPort(lid))
		if at == fabric.NoPort {
			continue
		}
		root := f.Owner(at)
		down := make([]bool, f.NumSwitches()) // has a way down to the root
		for s := f.NumSwitches() - 1; s >= 0; s-- {
			down[s] = fabric.NodeID(s) == root
			for _, to := range f.Neighbors(fabric.NodeID(s)) {
				down[s] = down[s] || int(to) > s && down[to]
			}
		}
		for _, s := range f.Switches() {
			var near, legal adaptive.PortSet
			links, to := f.SwitchLinks(s)
			for i, out := range links {
				if hops.To(root)[to[i]] < hops.To(root)[s] {
					near.Add(f.Num(out))
				}
				if down[s] && to[i] > s && down[to[i]] || !down[s] && to[i] < s {
					legal.Add(f.Num(out))
				}
			}
			set := near
			switch {
			case s == root:
				set, legal = adaptive.PortSet{}, adaptive.PortSet{}
				set.Add(f.Num(at))
				legal.Add(f.Num(at))
			case style == upDown:
				set = legal
			case style == duato:
				if r.IntN(2) == 0 {
					set.Union(legal)
				}
			case style == parallel:
				set, legal = apart(f, s, near, legal)
			case style == anyPorts:
				set = somePorts(f, r, s)
				legal = set
			default:
				legal = near
			}
			if spoil > 0 && r.IntN(spoil) == 0 {
				set = somePorts(f, r, s)
				legal = set
			}
			setEntry(t, p, s, lid, states[r.IntN(len(states))], set, legal, r)
		}
	}
	return p
}

// apart takes the last of several cables to a switch out of near, and all others out of legal.
func apart(f *fabric.Fabric, s fabric.NodeID, near, legal adaptive.PortSet) (set, static adaptive.PortSet) {
	links, to := f.SwitchLinks(s)
	for i, out := range links {
		num, last := f.Num(out), true
		for _, other := range to[i+1:] {
			last = last && other != to[i]
		}
		if near.Has(num) && (!last || slices.Index(to, to[i]) == i) {
			set.Add(num)
		}
		if legal.Has(num) && last {
			static.Add(num)
		}
	}
	return set, static
}

// somePorts is a few ports of a switch, mostly with cables to switches.
func somePorts(f *fabric.Fabric, r *rand.Rand, s fabric.NodeID) (set adaptive.PortSet) {
	links, _ := f.SwitchLinks(s)
	ends := f.EndPortsOn(s)
	for range r.IntN(3) {
		switch i := r.IntN(10); {
		case i == 0:
			set.Add(fabric.PortNum(r.IntN(256)))
		case i == 1 && len(ends) > 0:
			set.Add(f.Num(f.Peer(ends[r.IntN(len(ends))])))
		case len(links) > 0:
			set.Add(f.Num(links[r.IntN(len(links))]))
		}
	}
	return set
}

// setEntry makes an entry with some ports, and a static port of some.
func setEntry(t *adaptive.Tables, p *adaptive.PLFT, s fabric.NodeID, lid fabric.LID, state adaptive.State, set, static adaptive.PortSet, r *rand.Rand) {
	list := func(set adaptive.PortSet) (list []fabric.PortNum) {
		set.Each(func(num fabric.PortNum) { list = append(list, num) })
		return list
	}
	if ports := list(static); len(ports) > 0 && r.IntN(50) > 0 {
		p.Ports.Row(s)[lid] = ports[r.IntN(len(ports))]
	}
	group := -1
	if ports := list(set); len(ports) > 1 || r.IntN(3) == 0 {
		g := adaptive.Group{Number: len(t.Groups[s]) + 1, Subgroups: make([]adaptive.Subgroup, 1+r.IntN(2))}
		for _, num := range ports {
			g.Subgroups[r.IntN(len(g.Subgroups))].Ports.Add(num)
		}
		for i := range t.Groups[s] {
			if t.Groups[s][i].Ports() == g.Ports() {
				group = i
			}
		}
		if group < 0 {
			group = len(t.Groups[s])
			t.Groups[s] = append(t.Groups[s], g)
		}
	}
	p.Set(s, lid, state, group)
}

// randomLanes makes SL-to-VL tables and path SLs at random, or leaves them away.
func randomLanes(f *fabric.Fabric, r *rand.Rand) (opt state.State) {
	if r.IntN(2) == 0 {
		maps := make([]lft.VLMap, 1+r.IntN(3))
		drops, vls := r.IntN(3) == 0, 1+r.IntN(3)
		for i := range maps {
			for sl := range maps[i] {
				if maps[i][sl] = fabric.VL(r.IntN(vls)); drops && r.IntN(8) == 0 {
					maps[i][sl] = lft.DropVL
				}
			}
		}
		opt.SL2VL = lft.NewSL2VL(f, maps[0])
		byInput := r.IntN(2) == 0
		for p := range fabric.PortID(f.NumPorts()) {
			opt.SL2VL.SetOut(p, maps[r.IntN(len(maps))])
		}
		for in, out := range opt.SL2VL.PortPairs() {
			if byInput {
				opt.SL2VL.Set(in, out, maps[r.IntN(len(maps))])
			}
		}
	}
	some := 1 + r.IntN(4)
	if r.IntN(4) > 0 {
		row := func() []fabric.SL {
			row := make([]fabric.SL, int(f.MaxLID())+1)
			for lid := range row {
				row[lid] = fabric.SL(r.IntN(some))
			}
			return row
		}
		opt.PathSLs = lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
		for _, s := range f.Switches() {
			opt.PathSLs.SetRow(row(), s)
		}
		f.EndPorts(func(port fabric.PortID) {
			if r.IntN(6) == 0 {
				opt.PathSLs.SetPorts(row(), port)
			}
		})
	}
	return opt
}

// withTables is a state of adaptive tables with what else another state has.
func withTables(f *fabric.Fabric, t *adaptive.Tables, s state.State) *state.State {
	s.Fabric, s.Adaptive = f, t
	return &s
}

// channel is a VL of the cable that leaves a port of a switch.
type channel struct {
	port fabric.PortID
	vl   fabric.VL
}

// slow is a checker that is too plain to be wrong: it follows the packets of each port to each
// LID with each SL by every choice, port by port, and keeps dependencies in maps.
type slow struct {
	f   *fabric.Fabric
	t   *adaptive.Tables
	opt state.State

	deadEnds, loops, mgmtDeadEnds, mgmtLoops int64
	// All choices, and those to escapes: of pairs of CA ports, and of all.
	unicast, all, unicastEscape, allEscape dependencies
	channels                               map[channel]bool // of pairs of CA ports
}

type dependencies map[channel]map[channel]bool

func (d dependencies) add(a, b channel) {
	if d[a] == nil {
		d[a] = map[channel]bool{}
	}
	d[a][b] = true
}

func (d dependencies) size() (n int) {
	for _, next := range d {
		n += len(next)
	}
	return n
}

// components counts the sets of channels that all lead to each other.
func (d dependencies) components() (n int) {
	reach := map[channel]map[channel]bool{}
	for start := range d {
		seen := map[channel]bool{}
		var visit func(channel)
		visit = func(c channel) {
			for next := range d[c] {
				if !seen[next] {
					seen[next] = true
					visit(next)
				}
			}
		}
		visit(start)
		reach[start] = seen
	}
	done := map[channel]bool{}
	for start := range d {
		if done[start] || !reach[start][start] {
			continue
		}
		n++
		for other := range d {
			if reach[start][other] && reach[other][start] {
				done[other] = true
			}
		}
	}
	return n
}

// hop is what may become of a packet that has come into a switch by a port.
type hop struct {
	good   map[fabric.PortID]fabric.VL // choices that lead on, or to the owner
	offers []fabric.PortID             // of these, what a blocked packet is offered
	bad    bool                        // a choice loses it, or there is none
}

// look gives the choices of a packet that is in a switch, from port in.
func (s *slow) look(in fabric.PortID, lid fabric.LID, sl fabric.SL) (h hop) {
	f := s.f
	at, owner := f.Owner(in), f.LIDPort(lid)
	h.good = map[fabric.PortID]fabric.VL{}
	own := f.Num(in) == 0 && s.opt.PathSLs == nil
	plfts := []int{}
	for k := range s.t.PLFTs {
		switch p := s.t.PLFTs[k]; {
		case s.t.Select != nil && s.t.Select.PLFT(at, f.Num(in), sl) != k:
		case s.t.Select == nil && len(s.t.PLFTs) > 1 && p.Lacking != nil && p.Lacking[at]:
		default:
			plfts = append(plfts, k)
		}
	}
	h.bad = len(plfts) == 0
	offers := map[fabric.PortID]bool{}
	for _, k := range plfts {
		t := s.t.PLFTs[k]
		if lid > t.Ports.MaxLID() {
			h.bad = true
			continue
		}
		state, _ := t.At(at, lid)
		static := t.Ports.Row(at)[lid]
		choices := s.t.Choices(k, at, lid)
		h.bad = h.bad || choices.Len() == 0
		for num := range 256 {
			if !choices.Has(fabric.PortNum(num)) {
				continue
			}
			if num > int(f.Node(at).NumPorts) {
				h.bad = true
				continue
			}
			out := f.Port(at, fabric.PortNum(num))
			vl := fabric.VL(0)
			if s.opt.SL2VL != nil && num > 0 {
				vl = s.opt.SL2VL.At(f.Num(in), out)[sl]
			}
			switch peer := f.Peer(out); {
			case num > 0 && peer == fabric.NoPort, num == 0 && out != owner:
				h.bad = true
			case vl == lft.DropVL:
				h.bad = h.bad || !own
			case num > 0 && !f.IsSwitch(f.Owner(peer)) && peer != owner:
				h.bad = true
			default:
				h.good[out] = vl
				if state != adaptive.Free || static == fabric.NoPath || int(static) == num || len(plfts) > 1 {
					offers[out] = true
				}
			}
		}
	}
	h.offers = slices.Sorted(maps.Keys(offers))
	return h
}

func (s *slow) joined(a, b fabric.PortID) bool {
	at := func(p fabric.PortID) fabric.PortID { return s.f.Attachment(p) }
	if at(a) == fabric.NoPort || at(b) == fabric.NoPort {
		return false
	}
	of := s.f.Components().Of
	return of[s.f.Owner(at(a))] == of[s.f.Owner(at(b))]
}

// pair follows packets of one port to a LID with one SL.
func (s *slow) pair(from, to fabric.PortID, lid fabric.LID, sl fabric.SL) (dead, loop bool) {
	f := s.f
	management := f.IsSwitch(f.Owner(from)) || f.IsSwitch(f.Owner(to))
	start := f.Attachment(from)
	hops := map[fabric.PortID]hop{}
	next := func(in fabric.PortID) (list []fabric.PortID) {
		for out := range hops[in].good {
			if peer := f.Peer(out); peer != fabric.NoPort && peer != to {
				list = append(list, peer)
			}
		}
		return list
	}
	// All places that the packet can come to; an open place again is a loop.
	open := map[fabric.PortID]bool{}
	var follow func(in fabric.PortID)
	follow = func(in fabric.PortID) {
		if _, ok := hops[in]; ok {
			loop = loop || open[in]
			return
		}
		hops[in] = s.look(in, lid, sl)
		dead = dead || hops[in].bad
		open[in] = true
		for _, peer := range next(in) {
			follow(peer)
		}
		open[in] = false
	}
	follow(start)
	// From which of them it can arrive.
	live := map[fabric.PortID]bool{}
	for more := true; more; {
		more = false
		for in, h := range hops {
			for out := range h.good {
				peer := f.Peer(out)
				if !live[in] && (out == to || peer == to || live[peer]) {
					live[in], more = true, true
				}
			}
		}
	}
	useful := func(out fabric.PortID) bool {
		return out == to || f.Peer(out) == to || live[f.Peer(out)]
	}
	for in, h := range hops {
		for out, vl := range h.good {
			if !live[in] || !useful(out) || out == to {
				continue
			}
			a := channel{out, vl}
			if !management {
				s.channels[a] = true
			}
			after, ok := hops[f.Peer(out)]
			if f.Peer(out) == to || !ok {
				continue
			}
			escaped := slices.ContainsFunc(after.offers, useful)
			for wait, vl := range after.good {
				if wait == to || !useful(wait) {
					continue
				}
				b := channel{wait, vl}
				s.all.add(a, b)
				if !management {
					s.unicast.add(a, b)
				}
				if !escaped || slices.Contains(after.offers, wait) {
					s.allEscape.add(a, b)
					if !management {
						s.unicastEscape.add(a, b)
					}
				}
			}
		}
	}
	return dead && s.joined(from, to), loop
}

// sls lists the SLs that packets from a port to a LID may have.
func (s *slow) sls(from fabric.PortID, lid fabric.LID) (list []fabric.SL) {
	for sl := range fabric.SL(lft.NumSLs) {
		if !s.f.IsSwitch(s.f.Owner(from)) && s.opt.SL2VL != nil && s.opt.SL2VL.At(0, from)[sl] == lft.DropVL {
			continue
		}
		if s.opt.PathSLs == nil {
			list = append(list, sl)
			continue
		}
		row := s.opt.PathSLs.PortRow(from)
		if row == nil {
			row = s.opt.PathSLs.Given(s.f.Owner(s.f.Attachment(from)))
		}
		if row[lid] == sl || row[lid] == lft.UnknownSL {
			list = append(list, sl)
		}
	}
	return list
}

func newSlow(f *fabric.Fabric, t *adaptive.Tables, opt state.State) *slow {
	s := &slow{f: f, t: t, opt: opt, unicast: dependencies{}, all: dependencies{},
		unicastEscape: dependencies{}, allEscape: dependencies{}, channels: map[channel]bool{}}
	var ends []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { ends = append(ends, p) })
	for _, from := range ends {
		for _, to := range ends {
			if from == to || f.Attachment(from) == fabric.NoPort {
				continue
			}
			for lid := range f.LIDs(to) {
				dead, loop := false, false
				for _, sl := range s.sls(from, lid) {
					d, l := s.pair(from, to, lid, sl)
					dead, loop = dead || d, loop || l
				}
				management := f.IsSwitch(f.Owner(from)) || f.IsSwitch(f.Owner(to))
				for _, x := range []struct {
					is         bool
					pairs, own *int64
				}{{dead, &s.deadEnds, &s.mgmtDeadEnds}, {loop, &s.loops, &s.mgmtLoops}} {
					switch {
					case !x.is:
					case management:
						*x.own++
					default:
						*x.pairs++
					}
				}
			}
		}
	}
	return s
}
