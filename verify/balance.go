package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify/bound"
)

// maxIdleNamed bounds the cables and the switches that a finding of idle cables names.
const maxIdleNamed = 4

// countBalance sets r.Balance by the routes on each channel between switches. It returns the
// channels without routes, in the order of ports; none if no channel has routes.
func countBalance(r *Result, f *fabric.Fabric, routes func(fabric.PortID) int64) (idle []fabric.PortID) {
	b := &r.Balance
	var sum int64
	most := fabric.NoPort
	kind := 0
	for i, p := range f.Channels() {
		n, link := routes(p), f.Link(p)
		sum += n
		if n == 0 {
			idle = append(idle, p)
		}
		if n > b.MaxRoutes {
			b.MaxRoutes, most = n, p
		}
		if i == 0 || r.busiest[kind].Link != link {
			if kind = slices.IndexFunc(r.busiest, func(x linkLoad) bool { return x.Link == link }); kind < 0 {
				kind, r.busiest = len(r.busiest), append(r.busiest, linkLoad{Link: link})
			}
		}
		r.busiest[kind].Routes = max(r.busiest[kind].Routes, n)
	}
	if most == fabric.NoPort {
		return nil
	}
	b.MeanRoutes = float64(sum) / float64(len(f.Channels()))
	at := HopOf(f, most)
	b.MaxLink = &at
	b.IdleLinks = len(idle)
	if !r.scale.Differ {
		return idle
	}
	x := RelativeLoad{Fastest: r.scale.Fastest.String()}
	for _, p := range f.Channels() {
		if load := r.scale.Load(routes(p), f.Link(p)); load > x.Load {
			x.Load, x.Routes, x.Link, x.Rate = load, routes(p), HopOf(f, p), f.Link(p).String()
		}
	}
	if x.Rate == "" {
		x.Rate = UnknownRate
	}
	b.MaxRelative = &x
	return idle
}

// reportIdle adds a finding of the channels between switches that carry no route
// though a shortest path between hosts takes them. It is a note, or a warning if the
// tables use less than three fifths of the channels that they could. So it is a
// warning if half of the cables are idle, as they are behind one slow cable. There
// is no finding for tables that do not deliver all pairs, and no note if notes is
// false.
//
// Forwarding tables lead all packets for a LID through one port of a switch. So
// a switch uses at most as many ports as there are LIDs beyond, and channels
// into a leaf with fewer LIDs than cables count in part. It takes O(switches x
// channels) if channels between switches without hosts are idle, else
// O(channels).
//
// order is the up*/down* order of tables t, or nil. Finding channels that shortest paths take, but
// no legal path, takes O(switches with hosts x channels).
func reportIdle(r *Result, f *fabric.Fabric, t *lft.Tables, idle []fabric.PortID, order []int32, notes bool) {
	if len(idle) == 0 || r.Unicast.Unreachable+r.Unicast.Loops > 0 {
		return
	}
	channels := len(f.Channels())
	gross := 5*len(idle) > 2*channels
	if !gross && !notes {
		return
	}
	u := newUsable(f)
	if gross {
		u.search(nil)
	} else {
		u.search(idle)
	}
	isIdle := make([]bool, f.NumPorts())
	var list []fabric.PortID
	for _, p := range idle {
		isIdle[p] = true
		if u.takes[p] {
			list = append(list, p)
		}
	}
	if notes {
		r.Balance.Idle = u.explain(idle, isIdle, u.illegal(t, list, order))
	}
	if len(list) == 0 {
		return
	}
	both := 0
	x := Finding{Rule: IdleLinks, Severity: Note, Count: int64(len(list)), Witness: []Hop{}}
	var named []string
	for _, p := range list {
		peer := f.Peer(p)
		twin := isIdle[peer] && u.takes[peer]
		if twin {
			if both++; peer < p {
				continue // it is named at the other end
			}
		}
		if len(named) == maxIdleNamed {
			continue
		}
		x.Ports = append(x.Ports, EndpointOf(f, p))
		arrow := " to "
		if twin {
			arrow = " and back from "
		}
		named = append(named, f.PortName(p)+arrow+f.PortName(peer))
	}
	x.Switch = x.Ports[0].Node
	x.Message = fmt.Sprintf("%d of %d channels between switches carry no route though shortest paths could take them", len(list), len(f.Channels()))
	if both > 0 {
		x.Message += fmt.Sprintf(", both directions of %s among them", text.Count(both/2, "cable", "cables"))
	}
	rest := named
	if unused := u.unused(isIdle); len(unused) > 0 {
		of := func(p fabric.PortID) bool {
			return slices.Contains(unused, f.Owner(p)) || slices.Contains(unused, f.Owner(f.Peer(p)))
		}
		if !slices.ContainsFunc(list, func(p fabric.PortID) bool { return !of(p) }) {
			rest = nil // the names of switches are enough
		}
		names := text.Each(unused, func(s fabric.NodeID) string { return f.Name(s).String() })
		x.Message += ", and everything to and from " + text.Few(names, maxIdleNamed)
	}
	if gross {
		could, used := u.could(), 0
		for p := range u.takes {
			if u.takes[p] && !isIdle[p] {
				used++
			}
		}
		if 5*float64(used) < 3*could {
			x.Severity = Warning
			x.Message += fmt.Sprintf("; the tables use %d channels and could use about %.0f", used, could)
		}
	}
	if x.Severity == Note && !notes {
		return
	}
	if len(rest) > 0 {
		x.Message += ": " + strings.Join(rest, ", ")
		if more := len(list) - both/2 - len(rest); more > 0 {
			x.Message += fmt.Sprintf(" and %d more", more)
		}
	}
	r.Findings = append(r.Findings, x)
}

// illegal returns the given channels that no legal path between hosts takes, in the order of ports;
// nil if order is not valid, or tables t use illegal ports.
func (u *usable) illegal(t *lft.Tables, channels []fabric.PortID, order []int32) []fabric.PortID {
	if _, err := lft.SwitchesByRank(u.f, order); err != nil {
		return nil
	}
	open := slices.Clone(channels)
	for _, d := range u.f.Switches() {
		if u.lids[d] == 0 || len(open) == 0 {
			continue
		}
		legal := bound.LegalPorts(u.f, order, d)
		if !bound.KeepsTo(u.f, t, legal, d) {
			return nil
		}
		if !slices.ContainsFunc(open, func(p fabric.PortID) bool { return legal[p] }) {
			continue
		}
		var queue []fabric.NodeID
		for s := range u.reached {
			if u.reached[s] = u.hasHosts(fabric.NodeID(s)); u.reached[s] {
				queue = append(queue, fabric.NodeID(s))
			}
		}
		for i := 0; i < len(queue); i++ {
			ports, to := u.f.SwitchLinks(queue[i])
			for k, p := range ports {
				if legal[p] && !u.reached[to[k]] {
					u.reached[to[k]] = true
					queue = append(queue, to[k])
				}
			}
		}
		open = slices.DeleteFunc(open, func(p fabric.PortID) bool { return legal[p] && u.reached[u.f.Owner(p)] })
	}
	return open
}

// explain lists the idle channels with their reasons.
func (u *usable) explain(idle []fabric.PortID, isIdle []bool, illegal []fabric.PortID) (list []IdleChannel) {
	channels := u.f.Channels()
	rate, fastest := make([]int64, u.f.NumPorts()), make([]int64, u.f.NumSwitches())
	for i, x := range bound.Rates(u.f, channels) {
		s := u.f.Owner(channels[i])
		rate[channels[i]], fastest[s] = x, max(fastest[s], x)
	}
	for _, p := range idle {
		from, to := u.f.Owner(p), u.f.Owner(u.f.Peer(p))
		parallel := int64(text.CountIf(u.f.Neighbors(from), func(o fabric.NodeID) bool { return o == to }))
		x := IdleChannel{EndpointOf(u.f, p), IdleUnused}
		switch {
		case u.isSpare(from, isIdle) || u.isSpare(to, isIdle):
			x.Reason = IdleNoHosts
		case !u.takes[p]:
			x.Reason = IdleNotShortest
		case slices.Contains(illegal, p):
			x.Reason = IdleNotLegal
		case rate[p] < fastest[from]:
			x.Reason = IdleSlow
		case u.lids[to] > 0 && u.lids[to] < parallel:
			x.Reason = IdleFewLIDs
		}
		list = append(list, x)
	}
	return list
}

// isSpare returns true if s has no hosts, and all its channels are idle and on no shortest path.
func (u *usable) isSpare(s fabric.NodeID, isIdle []bool) bool {
	ports, _ := u.f.SwitchLinks(s)
	return !u.hasHosts(s) && !slices.ContainsFunc(ports, func(p fabric.PortID) bool {
		q := u.f.Peer(p)
		return !isIdle[p] || !isIdle[q] || u.takes[p] || u.takes[q]
	})
}

// unused lists the switches whose channels are all idle, in both directions, though a shortest path
// takes one of them.
func (u *usable) unused(idle []bool) []fabric.NodeID {
	var list []fabric.NodeID
	for _, s := range u.f.Switches() {
		ports, _ := u.f.SwitchLinks(s)
		some, all := false, true
		for _, p := range ports {
			for _, q := range [2]fabric.PortID{p, u.f.Peer(p)} {
				some = some || u.takes[q]
				all = all && idle[q]
			}
		}
		if some && all {
			list = append(list, s)
		}
	}
	return list
}

// usable finds the channels that are on a shortest path from a host to the
// LID of a host on another switch.
type usable struct {
	f     *fabric.Fabric
	lids  []int64 // by switch: number of LIDs of its hosts
	takes []bool  // by PortID: some shortest path takes the channel
	// beyond and into count, by switch, the LIDs whose shortest paths leave it for, or enter it from,
	// other switches. They are complete after search(nil).
	beyond, into []int64

	distances *graph.Search[fabric.NodeID]
	reached   []bool
}

func newUsable(f *fabric.Fabric) *usable {
	n := f.NumSwitches()
	u := &usable{
		f: f, lids: make([]int64, n), takes: make([]bool, f.NumPorts()), beyond: make([]int64, n), into: make([]int64, n),
		distances: graph.NewSearch[fabric.NodeID](n), reached: make([]bool, n),
	}
	for s := range u.lids {
		for _, p := range f.HostsOn(fabric.NodeID(s)) {
			u.lids[s] += lidsOf(f, p)
		}
	}
	return u
}

// hasHosts returns true if a CA or router port is cabled to switch s.
func (u *usable) hasHosts(s fabric.NodeID) bool { return len(u.f.HostsOn(s)) > 0 }

// search marks channels on shortest paths to one destination after another, until all of the given
// channels are marked; nil stands for all channels.
func (u *usable) search(channels []fabric.PortID) {
	var open []fabric.PortID
	for _, p := range channels {
		a, b := u.f.Owner(p), u.f.Owner(u.f.Peer(p))
		if u.takes[p] = u.hasHosts(a) && u.lids[b] > 0; !u.takes[p] {
			open = append(open, p)
		}
	}
	for _, t := range u.f.Switches() {
		for len(open) > 0 && u.takes[open[len(open)-1]] {
			open = open[:len(open)-1]
		}
		if channels != nil && len(open) == 0 {
			return
		}
		if u.lids[t] > 0 {
			u.toward(t)
		}
	}
}

// toward marks the channels on shortest paths to switch t.
func (u *usable) toward(t fabric.NodeID) {
	for s := range u.reached {
		u.reached[s] = u.hasHosts(fabric.NodeID(s))
	}
	u.distances.Run(u.f.Neighbors, t)
	dist, lids := u.distances.Distance, u.lids[t]
	u.reached[t] = false // its own hosts need no channel
	for _, s := range slices.Backward(u.distances.Order) {
		if !u.reached[s] {
			continue
		}
		if s == t {
			u.into[s] += lids
			continue
		}
		u.beyond[s] += lids
		if !u.hasHosts(s) || u.isFed(s) {
			u.into[s] += lids
		}
		ports, to := u.f.SwitchLinks(s)
		for k, p := range ports {
			if dist[to[k]] == dist[s]-1 {
				u.takes[p] = true
				u.reached[to[k]] = true
			}
		}
	}
}

// isFed returns true if packets come to s from a switch that is farther from the destination.
func (u *usable) isFed(s fabric.NodeID) bool {
	dist := u.distances.Distance
	return slices.ContainsFunc(u.f.Neighbors(s), func(o fabric.NodeID) bool { return dist[o] == dist[s]+1 && u.reached[o] })
}

// could estimates the least number of channels that tables use if they
// spread the LIDs: each switch sends to a LID by one port, and all may
// reach it by one port of the last switch.
func (u *usable) could() float64 {
	n := u.f.NumSwitches()
	out, in := make([]int64, n), make([]int64, n)
	for p, takes := range u.takes {
		if takes {
			out[u.f.Owner(fabric.PortID(p))]++
			in[u.f.Owner(u.f.Peer(fabric.PortID(p)))]++
		}
	}
	sum := 0.0
	for p, takes := range u.takes {
		if takes {
			a, b := u.f.Owner(fabric.PortID(p)), u.f.Owner(u.f.Peer(fabric.PortID(p)))
			sum += min(1, float64(u.beyond[a])/float64(out[a]), float64(u.into[b])/float64(in[b]))
		}
	}
	return sum
}

// CheckHosts returns a note on hosts with several ports, to which paths meet though other paths are
// free, see lft.Meetings; nil if there are none.
func CheckHosts(f *fabric.Fabric, t *lft.Tables) []Finding {
	list := lft.Meetings(f, t)
	if len(list) == 0 {
		return nil
	}
	m := &list[0]
	return []Finding{{Rule: HostSharedPath, Severity: Note, Count: int64(len(list)), Witness: []Hop{},
		Message: fmt.Sprintf("paths to ports of %s meet in a switch though others are free, those to %s and another port of its host in %s the first, from %s",
			text.Count(len(list), "host", "hosts"), f.PortName(m.Port), f.Name(m.At), text.Count(m.Sources, "switch", "switches"))}}
}
