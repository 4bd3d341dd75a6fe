package lft

import (
	"context"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
)

// HostPorts lists, by host, the CA ports that have a LID and a cable to a switch, for hosts
// with several such ports. A host is one adapter, adapters with one system image GUID, or
// adapters whose descriptions name one host.
func HostPorts(f *fabric.Fabric) [][]fabric.PortID {
	named, others := names.Hosts(f, nil, fabric.HostKind, fabric.ServiceKind, fabric.GatewayKind)
	hosts := make([][]fabric.NodeID, 0, len(named))
	for _, h := range named {
		hosts = append(hosts, h.Nodes)
	}
	systems := map[fabric.GUID][]fabric.NodeID{}
	for _, nodes := range others {
		for _, n := range nodes {
			if f.Kind(n).Counts(fabric.ForLoad) {
				system := f.Node(n).SystemGUID
				if system == 0 {
					system = f.Node(n).GUID
				}
				systems[system] = append(systems[system], n)
			}
		}
	}
	for _, nodes := range systems {
		hosts = append(hosts, nodes)
	}
	var list [][]fabric.PortID
	for _, nodes := range hosts {
		var ports []fabric.PortID
		for _, n := range nodes {
			for num := range f.Node(n).NumPorts {
				if p := f.Port(n, num+1); f.LID(p) != 0 && f.Peer(p) != fabric.NoPort && f.IsSwitch(f.Owner(f.Peer(p))) {
					ports = append(ports, p)
				}
			}
		}
		if len(ports) > 1 {
			list = append(list, ports)
		}
	}
	slices.SortFunc(list, slices.Compare)
	return list
}

const (
	// SeparateHosts looks at paths from up to hostSources switches with hosts, spread evenly.
	hostSources = 32
	// hostPasses bounds how often SeparateHosts looks at each port, hostWork how many paths
	// it follows.
	hostPasses = 20
	hostWork   = 1 << 20
	// A route that meets another on a channel costs 1; costBusier if the channel is then above
	// the shift's busiest.
	costBusier = 1000
	// Exchanges may cost 1/hostSpare of the routes of all shifts: about 1/100 of the bandwidth.
	hostSpare = 84
	// The last exchanges may raise the sum of the shifts' greatest loads by 1/100 of that before
	// all exchanges, or by hostBusier routes, whichever allows more.
	hostBusier = 24
	// shiftCounts bounds how many numbers (of routes, by channel and shift) are kept.
	shiftCounts = 1 << 24
)

// hostSeparator exchanges paths so that the paths to a host's ports do not meet.
type hostSeparator struct {
	f       *fabric.Fabric
	r       *Routing
	leaves  []fabric.NodeID                   // switches with hosts
	sources []fabric.NodeID                   // those whose paths are looked at
	others  map[fabric.PortID][]fabric.PortID // by port of a host: the host's other ports
	seen    []int                             // by switch: the last search that marked it
	search  int
	work    int
	list    []fabric.PortID // result of path
	next    int             // index in leaves: where exchangeOnce continues

	loads    []int64   // routes by channel
	units    []uint64  // see LoadUnits
	greatest uint64    // the greatest load of a channel
	places   []int     // by port: its number in the order of hosts, from 1; 0 for none
	shifts   [][]int32 // routes by channel and shift; nil if they are not counted
	busiest  []uint64  // by shift: the greatest load of a channel, set by countShifts
}

// newHostSeparator is for the tables of r; hosts are the HostPorts of its fabric.
func newHostSeparator(r *Routing, hosts [][]fabric.PortID) *hostSeparator {
	f := r.Fabric
	x := &hostSeparator{f: f, r: r, others: map[fabric.PortID][]fabric.PortID{}, seen: make([]int, f.NumSwitches())}
	for _, ports := range hosts {
		for i, p := range ports {
			x.others[p] = slices.Concat(ports[:i], ports[i+1:])
		}
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		if len(f.HostsOn(s)) > 0 {
			x.leaves = append(x.leaves, s)
		}
	}
	return x
}

// SeparateHosts makes paths to the ports of one host pass different switches. hosts
// are the HostPorts of the fabric. It exchanges paths between ports on one switch:
// all other switches then send to one port as they sent to the other. So loads,
// dependencies of channels, paths and their SLs stay as a whole. It exchanges the
// places in CAOrder too. If paths still meet, and the routing has an order and one
// VL, single switches with hosts exchange entries, without a greater load. Errors:
// ctx's.
func (r *Routing) SeparateHosts(ctx context.Context, hosts [][]fabric.PortID) error {
	if len(hosts) == 0 {
		return nil
	}
	x, f := newHostSeparator(r, hosts), r.Fabric
	work := 0
	for p, others := range x.others {
		work += len(others) + len(f.HostsOn(f.PeerSwitch(p)))
	}
	n := min(hostSources, len(x.leaves), max(2, hostWork/max(1, 2*work)))
	for i := range n {
		x.sources = append(x.sources, x.leaves[i*len(x.leaves)/n])
	}
	before := r.Tables
	if r.CAOrder == nil {
		before = before.Clone()
	}
	placed := make([]bool, f.NumSwitches())
	for _, s := range x.leaves {
		x.place(s, placed)
		placed[s] = true
	}
	for pass, moved := 0, true; moved && pass < hostPasses; pass++ {
		moved = false
		for _, s := range x.leaves {
			moved = x.place(s, placed) || moved
		}
	}
	for p := range x.others {
		if r.Order != nil && r.PathSLs == nil && slices.ContainsFunc(x.leaves, func(from fabric.NodeID) bool { return x.meets(from, p) }) {
			return x.exchangeAll(ctx, before)
		}
	}
	return nil
}

// exchangeAll exchanges entries of switches with hosts, in passes: first exchanges
// that cost the shifts nothing, then costlier ones. Last come those that make shifts
// busier: by up to 1/100 of the load with the tables before, or by hostBusier routes.
// A negative limit is for exchanges by which shifts gain.
func (x *hostSeparator) exchangeAll(ctx context.Context, before *Tables) (err error) {
	now := x.r.Tables
	x.units, x.r.Tables = LoadUnits(x.f), before
	x.countShifts()
	busiest, most := x.busiest, x.sumBusiest()*101/100
	if x.r.Tables = now; before != now {
		x.countShifts()
		x.busiest = busiest
	}
	if x.loads, err = ChannelLoads(ctx, x.f, now); err != nil {
		return err
	}
	for _, c := range x.f.Channels() {
		x.greatest = max(x.greatest, uint64(x.loads[c])*x.units[c])
	}
	limits := []int{0, -1, 16, 64, -1, 256, costBusier - 1}
	if x.shifts == nil {
		limits = []int{0, 0}
	}
	spare := len(busiest) * len(busiest) / hostSpare
	for _, limit := range limits {
		spare -= x.exchangeOnce(ctx, limit, spare)
	}
	if loads := x.loads; x.shifts != nil {
		x.countShifts()
		x.loads, spare = loads, costBusier*max(most-x.sumBusiest(), hostBusier*capacityUnits)/capacityUnits
		x.exchangeOnce(ctx, math.MaxInt, spare)
		x.exchangeOnce(ctx, -1, 0)
	}
	return ctx.Err()
}

// sumBusiest returns the sum of the greatest loads of all shifts.
func (x *hostSeparator) sumBusiest() (sum int) {
	for _, n := range x.busiest {
		sum += int(n)
	}
	return sum
}

// exchangeOnce tries an exchange for each path of switches with hosts. One may cost up to
// limit, all together up to spare. It returns their cost. If it runs out of work, the next call
// continues where it stopped.
func (x *hostSeparator) exchangeOnce(ctx context.Context, limit, spare int) (cost int) {
	x.work = 0
	for range x.leaves {
		if x.work > hostWork || ctx.Err() != nil {
			break
		}
		from := x.leaves[x.next]
		x.next = (x.next + 1) % len(x.leaves)
		ports := x.endsBehind(from)
		for _, p := range ports {
			cost += max(0, x.exchange(from, p, ports, min(limit, spare-cost)))
		}
	}
	return cost
}

// endsBehind lists the ports on other switches to which no neighbour of switch from
// sends through it: only its own hosts do.
func (x *hostSeparator) endsBehind(from fabric.NodeID) (list []fabric.PortID) {
	_, near := x.f.SwitchLinks(from)
	for _, s := range x.leaves {
		for _, p := range x.f.HostsOn(s) {
			lid := x.f.LID(p)
			if s != from && lid != 0 && !slices.ContainsFunc(near, func(s fabric.NodeID) bool {
				_, peer := x.r.Tables.Step(x.f, s, lid)
				return peer != fabric.NoPort && x.f.Owner(peer) == from
			}) {
				list = append(list, p)
			}
		}
	}
	return list
}

// alike lists the ports on a switch with the LMC of the first one: they can exchange their
// paths.
func (x *hostSeparator) alike(s fabric.NodeID) (list []fabric.PortID) {
	for _, p := range x.f.HostsOn(s) {
		if x.f.LID(p) != 0 && (list == nil || x.f.LMC(p) == x.f.LMC(list[0])) {
			list = append(list, p)
		}
	}
	return list
}

// place permutes the paths of other switches to the ports on s among these ports, so that
// as few as possible meet paths to other ports of the same hosts on placed switches. It
// starts with the best rotation, and swaps two as long as that is better. It returns
// false, and changes nothing, if that does not lower the number.
func (x *hostSeparator) place(s fabric.NodeID, placed []bool) bool {
	ports := x.alike(s)
	n := len(ports)
	others, had := make([][]fabric.PortID, n), 0
	for i, p := range ports {
		for _, q := range x.others[p] {
			if placed[x.f.PeerSwitch(q)] && x.f.PeerSwitch(q) != s {
				others[i] = append(others[i], q)
			}
		}
		x.addShared(others[i], ports[i:i+1], func(int) { had++ })
	}
	if had == 0 {
		return false
	}
	costs, turns := make([][]int, n), make([]int, n) // of port i with port k's paths; sums by k-i
	for i := range ports {
		costs[i] = make([]int, n)
		x.addShared(others[i], ports, func(k int) { costs[i][k]++ })
		for k := range ports {
			turns[(k-i+n)%n] += costs[i][k]
			costs[i][k] = costs[i][k]*n*n + max(k-i, i-k) // among equal ones near LIDs stay near
		}
	}
	if x.work > hostWork {
		return false // the work ran out: costs lack some sources
	}
	turn := slices.Index(turns, slices.Min(turns))
	by, least := make([]int, n), 0 // by port: the index of the port whose paths it gets
	for i := range by {
		by[i] = (i + turn) % n
	}
	for swapped := true; swapped; {
		swapped = false
		for i := range by {
			for k := range i {
				if costs[i][by[k]]+costs[k][by[i]] < costs[i][by[i]]+costs[k][by[k]] {
					by[i], by[k], swapped = by[k], by[i], true
				}
			}
		}
	}
	from := make([]fabric.PortID, n)
	for i, k := range by {
		least += costs[i][k] / (n * n)
		from[i] = ports[k]
	}
	if least >= had {
		return false
	}
	x.take(s, ports, from)
	return true
}

// addShared calls meets(i) for each of x.sources from which the path to ports[i]
// meets a path to a port in others.
func (x *hostSeparator) addShared(others, ports []fabric.PortID, meets func(i int)) {
	for _, from := range x.sources {
		if x.work += len(ports) + len(others); len(others) == 0 || x.work > hostWork {
			return
		}
		x.mark(from, others...)
		for i, p := range ports {
			if x.meeting(x.path(from, p), others[0]) != fabric.NoNode {
				meets(i)
			}
		}
	}
}

// mark begins a search. It marks the switches on the paths from a switch to ports,
// without that switch itself.
func (x *hostSeparator) mark(from fabric.NodeID, ports ...fabric.PortID) {
	x.search++
	for _, p := range ports {
		for i, out := range x.path(from, p) {
			if i > 0 {
				x.seen[x.f.Owner(out)] = x.search
			}
		}
	}
}

// meeting returns the first marked switch of a path, ignoring its first switch and that of p;
// NoNode if there is none.
func (x *hostSeparator) meeting(path []fabric.PortID, p fabric.PortID) fabric.NodeID {
	for i, out := range path {
		if s := x.f.Owner(out); i > 0 && x.seen[s] == x.search && s != x.f.PeerSwitch(p) {
			return s
		}
	}
	return fabric.NoNode
}

// path lists the ports by which the path from a switch to p leaves switches, without the last
// one. It begins with first, then follows the tables. The next call overwrites the list.
func (x *hostSeparator) path(from fabric.NodeID, p fabric.PortID, first ...fabric.PortID) []fabric.PortID {
	x.list = append(x.list[:0], first...)
	for _, out := range first {
		from = x.f.Owner(x.f.Peer(out))
	}
	for len(x.list) < x.f.NumSwitches() {
		out, peer := x.r.Tables.Step(x.f, from, x.f.LID(p))
		if peer == fabric.NoPort || !x.f.IsSwitch(x.f.Owner(peer)) {
			break
		}
		x.list, from = append(x.list, out), x.f.Owner(peer)
	}
	return x.list
}

// findFree returns a port by which the path from a switch to p has at most long hops and meets
// no marked switch; NoPort if there is none.
func (x *hostSeparator) findFree(from fabric.NodeID, p fabric.PortID, long int) fabric.PortID {
	ports, _ := x.f.SwitchLinks(from)
	for _, out := range ports {
		path := x.path(from, p, out)
		if x.meeting(path, x.others[p][0]) == fabric.NoNode && len(path) <= long && x.f.Owner(x.f.Peer(path[len(path)-1])) == x.f.PeerSwitch(p) {
			return out
		}
	}
	return fabric.NoPort
}

// exchange acts if the path from a switch with hosts to p meets paths to other ports of p's
// host. It sends p by another switch, on a path that meets none and is no longer. If need be,
// another of ports, which went by that switch, takes p's old way. No channel gets more than the
// greatest load. Of the exchanges that cost up to limit (see add) it takes the cheapest; if
// limit is 0, the first that costs nothing. With a negative limit it acts on paths that meet
// none, if shifts gain by the exchange. It returns the cost.
func (x *hostSeparator) exchange(from fabric.NodeID, p fabric.PortID, ports []fabric.PortID, limit int) (cost int) {
	path := x.path(from, p)
	hops := len(path)
	if x.work += len(x.others[p]) + 1; x.work > hostWork || limit < 0 && x.add(from, p, path, -1)-x.add(from, p, path, 1) == 0 || x.meets(from, p) == (limit < 0) {
		return 0
	}
	row := x.r.Tables.Row(from)
	outs, _ := x.f.SwitchLinks(from)
	was := row[x.f.LID(p)]
	by, other, least := was, fabric.NoPort, limit+1
	enough := func() bool { return (limit <= 0 || x.shifts == nil) && least <= min(limit, 0) }
	for i := 0; i < len(outs) && !enough(); i++ {
		out := x.f.Num(outs[i])
		if out == was {
			continue
		}
		one := x.send(from, p, out)
		if x.fits(from, p, hops) && !x.meets(from, p) {
			if one < least && x.hasRoom(from, p) {
				by, other, least = out, fabric.NoPort, one
			}
			for _, q := range ports {
				if q == p || row[x.f.LID(q)] != out || enough() {
					continue
				}
				x.work += 8
				hops := len(x.path(from, q))
				if both := one + x.send(from, q, was); both < least && x.fits(from, q, hops) && x.hasRoom(from, p) && x.hasRoom(from, q) && !x.meets(from, q) {
					by, other, least = out, q, both
				}
				x.send(from, q, out)
			}
		}
		x.send(from, p, was)
	}
	if other != fabric.NoPort {
		cost = x.send(from, other, was)
	}
	return cost + x.send(from, p, by)
}

// send makes a switch send to p by port out. It returns the cost, see add.
func (x *hostSeparator) send(from fabric.NodeID, p fabric.PortID, out fabric.PortNum) int {
	cost := x.add(from, p, x.path(from, p), -1)
	x.r.Tables.Row(from)[x.f.LID(p)] = out
	return cost + x.add(from, p, x.path(from, p), 1)
}

// meets returns true if the path from a switch to p meets a path to another port of p's host.
func (x *hostSeparator) meets(from fabric.NodeID, p fabric.PortID) bool {
	x.mark(from, x.others[p]...)
	return len(x.others[p]) > 0 && x.meeting(x.path(from, p), p) != fabric.NoNode
}

// fits returns true if the path from a switch to p goes up and then down, and reaches p's
// switch within hops.
func (x *hostSeparator) fits(from fabric.NodeID, p fabric.PortID, hops int) bool {
	path := x.path(from, p)
	downs, at := 0, from
	for _, out := range path {
		to := x.f.PeerSwitch(out)
		if x.r.Order[at] < x.r.Order[to] {
			downs++
		} else if downs > 0 {
			return false
		}
		at = to
	}
	return len(path) <= hops && at == x.f.PeerSwitch(p)
}

// hasRoom returns true if no channel on the path from a switch to p is above the greatest load.
func (x *hostSeparator) hasRoom(from fabric.NodeID, p fabric.PortID) bool {
	return !slices.ContainsFunc(x.path(from, p), func(c fabric.PortID) bool { return uint64(x.loads[c])*x.units[c] > x.greatest })
}

// add adds the routes from a switch to p on a path to loads and shifts, or takes them off if by
// is -1. It returns what that costs the shifts: on each channel 1 for each other route of the
// shift, and costBusier if the channel is then above the shift's busiest.
func (x *hostSeparator) add(from fabric.NodeID, p fabric.PortID, path []fabric.PortID, by int) (cost int) {
	hosts := x.f.HostsOn(from)
	for _, c := range path {
		x.loads[c] += int64(by * len(hosts))
		if x.shifts == nil || x.shifts[c] == nil || x.places[p] == 0 { // nil for a cable to itself
			continue
		}
		shifts, unit := x.shifts[c], x.units[c]
		for _, h := range hosts {
			k := x.places[p] - x.places[h]
			if k < 0 {
				k += len(shifts)
			}
			if x.places[h] == 0 {
				continue
			}
			less := min(shifts[k], shifts[k]+int32(by))
			shifts[k] += int32(by)
			if cost += by * int(less); uint64(less+1)*unit > x.busiest[k] {
				cost += by * costBusier
			}
		}
	}
	return cost
}

// countShifts counts the routes of each shift on each channel, if these are at most shiftCounts
// numbers. In shift k each host sends to the one k places further in CAOrder, or in the order
// of LIDs.
func (x *hostSeparator) countShifts() {
	order := x.r.CAOrder
	if order == nil {
		order = slices.Clone(x.f.CAPorts())
		slices.SortStableFunc(order, func(a, b fabric.PortID) int { return int(x.f.LID(a)) - int(x.f.LID(b)) })
	}
	x.places, x.busiest, x.shifts = make([]int, x.f.NumPorts()), make([]uint64, len(order)), nil
	x.loads = make([]int64, x.f.NumPorts())
	channels := x.f.Channels()
	if len(order)*len(channels) > shiftCounts {
		return
	}
	x.shifts = make([][]int32, x.f.NumPorts())
	for i, p := range order {
		if p != fabric.NoPort && x.f.LID(p) != 0 {
			x.places[p] = i + 1
		}
	}
	for _, c := range channels {
		x.shifts[c] = make([]int32, len(order))
	}
	for _, from := range x.leaves {
		for _, p := range order {
			if p != fabric.NoPort && x.f.LID(p) != 0 {
				x.add(from, p, x.path(from, p), 1)
			}
		}
	}
	for _, c := range channels {
		for k, n := range x.shifts[c] {
			x.busiest[k] = max(x.busiest[k], uint64(n)*x.units[c])
		}
	}
}

// Meeting means that paths to several ports of a host meet, though another path is free.
type Meeting struct {
	Port     fabric.PortID // one of the host's ports
	From, At fabric.NodeID // the first switch with hosts whose paths meet, and where
	Sources  int           // how many switches with hosts have paths that meet
}

// Meetings lists the first meeting of each host, in the order of HostPorts. Paths from a switch
// with hosts meet if the path to one port of a host passes a switch that the path to another
// port passes, and neither port is on it. It counts only if another cable leads to a path to
// the port that is no longer and meets none.
func Meetings(f *fabric.Fabric, t *Tables) (list []Meeting) {
	hosts := HostPorts(f)
	x := newHostSeparator(&Routing{Fabric: f, Tables: t}, hosts)
	for _, ports := range hosts {
		m := Meeting{Port: fabric.NoPort}
		for _, from := range x.leaves {
			for _, p := range ports {
				x.mark(from, x.others[p]...)
				path := x.path(from, p)
				at, long := x.meeting(path, x.others[p][0]), len(path)
				if at == fabric.NoNode || x.findFree(from, p, long) == fabric.NoPort {
					continue
				}
				if m.Sources++; m.Sources == 1 {
					m.Port, m.From, m.At = p, from, at
				}
				break
			}
		}
		if m.Sources > 0 {
			list = append(list, m)
		}
	}
	return list
}

// take makes all switches except s send to ports[i], on s, as to by[i], a permutation of ports.
func (x *hostSeparator) take(s fabric.NodeID, ports, by []fabric.PortID) {
	lids := func(list []fabric.PortID) (all []fabric.LID) {
		for _, p := range list {
			all = slices.AppendSeq(all, x.f.LIDs(p))
		}
		return all
	}
	to, from := lids(ports), lids(by)
	for other := range fabric.NodeID(x.f.NumSwitches()) {
		if other != s {
			permute(x.r.Tables.Row(other), to, from)
		}
	}
	if sls := x.r.PathSLs; sls != nil {
		for i := range sls.rows {
			row := &sls.rows[i]
			if permute(row.given, to, from); &row.given[0] != &row.plain[0] {
				permute(row.plain, to, from)
			}
		}
	}
	places := make([]int, len(ports))
	for i := range places {
		places[i] = slices.Index(x.r.CAOrder, by[i])
	}
	for i, place := range places {
		if place >= 0 {
			x.r.CAOrder[place] = ports[i]
		}
	}
}

// permute moves the values at index from[i] to index to[i].
func permute[T any](row []T, to, from []fabric.LID) {
	was := make([]T, len(from))
	for i, l := range from {
		was[i] = row[l]
	}
	for i, l := range to {
		row[l] = was[i]
	}
}
