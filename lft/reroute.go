package lft

import (
	"cmp"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// Rerouter is an engine that can mend tables after cables are gone, so that what
// they did not carry stays as it is.
type Rerouter interface {
	Engine
	// Mender prepares to mend the tables of r for f, which is r.Fabric.Without
	// some cables. Nil means that what is left is not to be mended within the
	// engine's guarantee, but is to be routed anew.
	Mender(f *fabric.Fabric, r *Routing) Mender
}

// Mender says where packets may go in a fabric that lost cables.
type Mender interface {
	// To turns to a destination switch and gives by NodeID how many links the
	// switches have to go, fabric.Unreachable for those that cannot reach it. It
	// is false when that is more than can be counted.
	To(t fabric.NodeID) (hops []uint8, ok bool)
	// Ports lists the ports by which u may send to the destination at hand. All
	// lead to switches with one link less to go, and any choice at every switch is
	// within the engine's guarantee, together with the old entries for other LIDs.
	// The list is good until the next call.
	Ports(u fabric.NodeID) []fabric.PortID
}

// Edit is an entry that Mend changed.
type Edit struct {
	Switch   fabric.NodeID
	LID      fabric.LID
	Old, New fabric.PortNum
}

// Repair mends tables after failures, one at a time: Mend, and Undo before the
// next. It holds the scratch for that and the loads of channels.
type Repair struct {
	f       *fabric.Fabric // before the failure
	tables  *Tables
	sources []int64 // by switch: CA and router ports on it
	load    []int64 // by PortID: routes that cross it
	saved   []int64 // load before Mend
	unit    []uint64
	old     *Forest // in f
	order   *ByDistance
	flow    []int64
	edits   []Edit

	// The ways from switches to the destination at hand, see onward.
	ways  []onwardWay // by switch
	lid   int         // a number of the LID at hand
	stack []fabric.PortID
	one   [1]fabric.PortID
}

// onwardWay is the least that a way from a switch to the destination costs: the sum of
// the cubes of the loads, as Spread counts.
type onwardWay struct {
	lid  int // the number that it is known for
	cost float64
}

// NewRepair is for tables t of fabric f, whose routes it counts:
// O(switches x LIDs).
func NewRepair(f *fabric.Fabric, t *Tables) *Repair {
	n := f.NumSwitches()
	all := make([]fabric.NodeID, n)
	for i := range all {
		all[i] = fabric.NodeID(i)
	}
	r := &Repair{
		f: f, tables: t, sources: sourcesOf(f), load: make([]int64, f.NumPorts()), unit: units(f),
		old: NewForest(f), order: NewByDistance(all), flow: make([]int64, n), ways: make([]onwardWay, n),
	}
	for lid, p := range f.LIDPorts() {
		if p != fabric.NoPort && !f.IsSwitch(f.Owner(p)) {
			r.old.Grow(t, fabric.LID(lid))
			r.old.Flow(r.sources, func(out fabric.PortID, routes int64) { r.load[out] += routes })
		}
	}
	r.saved = slices.Clone(r.load)
	return r
}

// Clone is one for another goroutine, with tables of its own.
func (r *Repair) Clone() *Repair {
	c := *r
	c.tables = r.tables.Clone()
	c.load = slices.Clone(r.load)
	c.old = NewForest(r.f)
	c.order = NewByDistance(r.order.list)
	c.flow, c.edits = make([]int64, len(r.flow)), nil
	c.ways, c.lid, c.stack = make([]onwardWay, len(r.ways)), 0, nil
	return &c
}

// Tables is the tables with what Mend changed.
func (r *Repair) Tables() *Tables { return r.tables }

// Loads is by PortID how many routes cross each channel between switches, with
// what Mend changed; not to be changed.
func (r *Repair) Loads() []int64 { return r.load }

// sourcesOf counts the CA and router ports on each switch.
func sourcesOf(f *fabric.Fabric) []int64 {
	n := make([]int64, f.NumSwitches())
	for _, s := range f.CASwitches() {
		if s != fabric.NoNode {
			n[s]++
		}
	}
	return n
}

// Mend changes the tables for g, which is the fabric of NewRepair without some
// cables. An entry that packets to its LID may still use stays as it is; others go
// to the port with the least load, the lowest of several. For LIDs that are nobody's
// any more, and on switches that cannot reach a LID, the entry is
// fabric.NoPath. Only LIDs whose packets crossed a missing cable, on any switch, are
// looked at, each in O(switches + channels).
//
// It returns the entries that changed, good until the next call, and false when
// a path has too many links; Undo takes back what has changed even then.
func (r *Repair) Mend(g *fabric.Fabric, m Mender) (edits []Edit, ok bool) {
	lids := r.touched(g)
	sources := sourcesOf(g)
	var (
		at   = fabric.NoNode
		hops []uint8
	)
	for _, lid := range lids {
		ca := !r.f.IsSwitch(r.f.Owner(r.f.LIDPort(lid)))
		if ca {
			r.old.Grow(r.tables, lid)
			r.old.Flow(r.sources, func(out fabric.PortID, routes int64) { r.load[out] -= routes })
		}
		t := destination(g, lid)
		if t == fabric.NoNode {
			for s := range fabric.NodeID(g.NumSwitches()) {
				r.edit(s, lid, fabric.NoPath)
			}
			continue
		}
		if t != at {
			if hops, ok = m.To(t); !ok {
				return r.edits, false
			}
			at = t
		}
		r.place(g, m, lid, t, hops, sources, ca)
	}
	r.forget(g, lids)
	return r.edits, true
}

// destination is the switch that has a LID or the port that has it, NoNode for none.
func destination(f *fabric.Fabric, lid fabric.LID) fabric.NodeID {
	p := f.LIDPort(lid)
	if p == fabric.NoPort {
		return fabric.NoNode
	}
	if n := f.Owner(p); f.IsSwitch(n) {
		return n
	}
	if peer := f.Peer(p); peer != fabric.NoPort && f.IsSwitch(f.Owner(peer)) {
		return f.Owner(peer)
	}
	return fabric.NoNode
}

// touched lists the LIDs that g does not have any more, and those for which some
// switch uses a port whose cable it does not have; by destination switch in g,
// then by LID.
func (r *Repair) touched(g *fabric.Fabric) []fabric.LID {
	hit := make([]bool, len(r.f.LIDPorts()))
	for s := range fabric.NodeID(g.NumSwitches()) {
		var gone [256]bool
		any := false
		for p := range g.Node(s).NumPorts {
			if at := g.Port(s, p+1); g.Peer(at) != r.f.Peer(at) {
				gone[p+1], any = true, true
			}
		}
		if !any {
			continue
		}
		for lid, num := range r.tables.Row(s)[:len(hit)] {
			if gone[num] {
				hit[lid] = true
			}
		}
	}
	var lids []fabric.LID
	for lid, p := range r.f.LIDPorts() {
		if p != fabric.NoPort && (hit[lid] || g.LIDPort(fabric.LID(lid)) == fabric.NoPort) {
			lids = append(lids, fabric.LID(lid))
		}
	}
	byDestination(g, lids)
	return lids
}

// byDestination sorts LIDs by their switch, so that an engine turns to each once.
func byDestination(f *fabric.Fabric, lids []fabric.LID) {
	slices.SortFunc(lids, func(a, b fabric.LID) int {
		return cmp.Or(cmp.Compare(destination(f, a), destination(f, b)), cmp.Compare(a, b))
	})
}

// place mends the entries of one LID.
func (r *Repair) place(g *fabric.Fabric, m Mender, lid fabric.LID, t fabric.NodeID, hops []uint8, sources []int64, ca bool) {
	clear(r.flow)
	for s, h := range hops {
		if h == fabric.Unreachable {
			r.edit(fabric.NodeID(s), lid, fabric.NoPath)
		} else if ca {
			r.flow[s] = sources[s]
		}
	}
	r.lid++
	r.ways[t] = onwardWay{lid: r.lid}
	for _, u := range r.order.FarthestFirst(hops) {
		now := g.PortBase(u) + fabric.PortID(r.tables.Row(u)[lid])
		out := now
		ports := m.Ports(u)
		if !slices.Contains(ports, now) {
			out, _ = r.least(g, m, lid, ports, r.flow[u])
		}
		r.edit(u, lid, g.Num(out))
		if ca {
			r.load[out] += r.flow[u]
			r.flow[g.Owner(g.Peer(out))] += r.flow[u]
		}
	}
}

// cost is what a channel costs with more routes.
func (r *Repair) cost(p fabric.PortID, more int64) float64 {
	return cube(float64(uint64(r.load[p]+more) * r.unit[p]))
}

// least finds the port with the least costly way, with more routes on its first
// channel; the lowest of several.
func (r *Repair) least(g *fabric.Fabric, m Mender, lid fabric.LID, ports []fabric.PortID, more int64) (best fabric.PortID, cost float64) {
	from := len(r.stack)
	r.stack = append(r.stack, ports...)
	best, cost = fabric.NoPort, math.Inf(1)
	for i := range len(ports) {
		p := r.stack[from+i]
		if c := r.cost(p, more) + r.onward(g, m, lid, g.Owner(g.Peer(p))); c < cost {
			best, cost = p, c
		}
	}
	r.stack = r.stack[:from]
	return best, cost
}

// onward is what the way from v costs for the LID at hand: by its entry as long as
// that is legal.
func (r *Repair) onward(g *fabric.Fabric, m Mender, lid fabric.LID, v fabric.NodeID) float64 {
	w := &r.ways[v]
	if w.lid != r.lid {
		ports := m.Ports(v)
		if now := g.PortBase(v) + fabric.PortID(r.tables.Row(v)[lid]); slices.Contains(ports, now) {
			ports = append(r.one[:0], now)
		}
		_, w.cost = r.least(g, m, lid, ports, 0)
		w.lid = r.lid
	}
	return w.cost
}

func (r *Repair) edit(s fabric.NodeID, lid fabric.LID, to fabric.PortNum) {
	if at := &r.tables.Row(s)[lid]; *at != to {
		r.edits = append(r.edits, Edit{s, lid, *at, to})
		*at = to
	}
}

// forget takes the routes of CA and router ports that lost their cable off the
// channels, but for those to the LIDs given, which are counted anew.
func (r *Repair) forget(g *fabric.Fabric, mended []fabric.LID) {
	counted := make(map[fabric.LID]bool, len(mended))
	for _, lid := range mended {
		counted[lid] = true
	}
	attached := r.f.CASwitches()
	for i, p := range r.f.CAPorts() {
		if g.Peer(p) != fabric.NoPort || attached[i] == fabric.NoNode {
			continue
		}
		for lid, q := range r.f.LIDPorts() {
			if q == fabric.NoPort || r.f.IsSwitch(r.f.Owner(q)) || counted[fabric.LID(lid)] {
				continue
			}
			r.walk(attached[i], fabric.LID(lid), func(out fabric.PortID) { r.load[out]-- })
		}
	}
}

// walk visits the channels between switches from s to a LID, if it is delivered.
func (r *Repair) walk(s fabric.NodeID, lid fabric.LID, visit func(fabric.PortID)) {
	var way [fabric.MaxHops]fabric.PortID
	n := 0
	for {
		out, peer := r.tables.Step(r.f, s, lid)
		if peer == fabric.NoPort {
			return
		}
		if peer == r.f.LIDPort(lid) {
			break
		}
		if s = r.f.Owner(peer); !r.f.IsSwitch(s) || n == len(way) {
			return
		}
		way[n] = out
		n++
	}
	for _, out := range way[:n] {
		visit(out)
	}
}

// Undo takes back what Mend did.
func (r *Repair) Undo() {
	for _, e := range slices.Backward(r.edits) {
		r.tables.Row(e.Switch)[e.LID] = e.Old
	}
	r.edits = r.edits[:0]
	copy(r.load, r.saved)
}
