package lft

import (
	"context"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
)

// HostPorts lists, by host, the CA ports that have a LID and a cable to a switch, of hosts with several of them: ports of one
// adapter, of adapters with one system image GUID, and of adapters that name one host in their descriptions.
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
	// At most hostSources switches with hosts, spread evenly over all, stand for all in SeparateHosts.
	hostSources = 32
	// hostPasses bounds how often it looks at each port, and hostWork how many paths it follows.
	hostPasses = 20
	hostWork   = 1 << 20
)

// hostSeparator exchanges the paths to ports on one switch.
type hostSeparator struct {
	f       *fabric.Fabric
	r       *Routing
	leaves  []fabric.NodeID                   // switches with hosts
	sources []fabric.NodeID                   // of them, those that stand for all
	others  map[fabric.PortID][]fabric.PortID // by port of a host: its other ports
	seen    []int                             // by switch: the last search that came there
	search  int
	work    int
	list    []fabric.PortID // of path

	loads    []int64  // routes, by channel
	units    []uint64 // see LoadUnits
	greatest uint64   // load of a channel
}

// newHostSeparator is for tables; hosts are HostPorts.
func newHostSeparator(r *Routing) (x *hostSeparator, hosts [][]fabric.PortID) {
	f := r.Fabric
	x = &hostSeparator{f: f, r: r, others: map[fabric.PortID][]fabric.PortID{}, seen: make([]int, f.NumSwitches())}
	hosts = HostPorts(f)
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
	return x, hosts
}

// SeparateHosts has the switches lead to the ports of a host by different switches. It exchanges paths to ports on one
// switch: all switches then send to the one port as they did to the other. So loads stay as they are, and so do
// dependencies of channels, paths and their SLs. It exchanges the places in CAOrder, too. Where paths still meet
// that have an order and one VL, switches with hosts send by other switches, as far as the greatest load stays. It returns ctx's error.
func (r *Routing) SeparateHosts(ctx context.Context) error {
	x, hosts := newHostSeparator(r)
	if len(hosts) == 0 {
		return nil
	}
	f := r.Fabric
	work := 0
	for p, others := range x.others {
		work += len(others) * len(f.HostsOn(f.PeerSwitch(p)))
	}
	n := min(hostSources, len(x.leaves), max(2, hostWork/max(1, 2*work)))
	for i := range n {
		x.sources = append(x.sources, x.leaves[i*len(x.leaves)/n])
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
	if r.Order == nil || r.PathSLs != nil {
		return nil
	}
	x.work = 0
	var err error
	if x.loads, err = ChannelLoads(ctx, f, r.Tables); err != nil {
		return err
	}
	x.units = LoadUnits(f)
	for _, c := range f.Channels() {
		x.greatest = max(x.greatest, uint64(x.loads[c])*x.units[c])
	}
	for pass, moved := 0, true; moved && pass < hostPasses; pass++ {
		moved = false
		for _, from := range x.leaves {
			for _, ports := range hosts {
				for _, p := range ports {
					moved = x.detour(from, p) || moved
				}
			}
		}
	}
	return nil
}

// alike lists the ports on a switch whose paths can be exchanged with those to the first one.
func (x *hostSeparator) alike(s fabric.NodeID) (list []fabric.PortID) {
	for _, p := range x.f.HostsOn(s) {
		if x.f.LID(p) != 0 && (list == nil || x.f.LMC(p) == x.f.LMC(list[0])) {
			list = append(list, p)
		}
	}
	return list
}

// place exchanges the paths to the ports on s so that the fewest share switches with those to the hosts' ports on other
// switches that are placed. Where that is as good, each port takes the paths to the one that is a number of places further. It
// returns true if fewer share switches than before.
func (x *hostSeparator) place(s fabric.NodeID, placed []bool) bool {
	ports := x.alike(s)
	n := len(ports)
	others, had := make([][]fabric.PortID, n), 0
	for i, p := range ports {
		for _, q := range x.others[p] {
			if placed[x.f.PeerSwitch(q)] && x.f.PeerSwitch(q) != s {
				others[i] = append(others[i], q)
				x.addShared(q, ports[i:i+1], func(int) { had++ })
			}
		}
	}
	if had == 0 {
		return false
	}
	costs, turns := make([][]int, n), make([]int, n) // of port i with the paths to port k, and of k-i
	for i := range ports {
		costs[i] = make([]int, n)
		for _, q := range others[i] {
			x.addShared(q, ports, func(k int) { costs[i][k]++ })
		}
		for k := range ports {
			turns[(k-i+n)%n] += costs[i][k]
			costs[i][k] = costs[i][k]*n*n + max(k-i, i-k) // of equal ones near LIDs stay near
		}
	}
	turn := slices.Index(turns, slices.Min(turns))
	least, by := turns[turn], slices.Concat(ports[turn:], ports[:turn])
	if best, sum := assign(costs); sum/(n*n) < least {
		least = sum / (n * n)
		for i, k := range best {
			by[i] = ports[k]
		}
	}
	if least >= had {
		return false
	}
	x.take(s, ports, by)
	return true
}

// assign gives each row a column of its own so that the sum of their costs is least (Kuhn and Munkres, by shortest
// augmenting paths).
func assign(costs [][]int) (columns []int, sum int) {
	n := len(costs)
	rows, from := slices.Repeat([]int{-1}, n+1), make([]int, n+1) // by column: its row, and the column before on the path; n is none
	u, v := make([]int, n), make([]int, n+1)                      // potentials
	for row := range n {
		k := n
		rows[k] = row
		least, used := slices.Repeat([]int{math.MaxInt}, n), make([]bool, n+1)
		for rows[k] >= 0 {
			used[k] = true
			next, step := -1, math.MaxInt
			for c := range n {
				if used[c] {
					continue
				}
				if d := costs[rows[k]][c] - u[rows[k]] - v[c]; d < least[c] {
					least[c], from[c] = d, k
				}
				if least[c] < step {
					next, step = c, least[c]
				}
			}
			for c := range n + 1 {
				if used[c] {
					u[rows[c]], v[c] = u[rows[c]]+step, v[c]-step
				} else if c < n {
					least[c] -= step
				}
			}
			k = next
		}
		for k != n {
			rows[k], k = rows[from[k]], from[k]
		}
	}
	columns = make([]int, n)
	for k, row := range rows[:n] {
		columns[row] = k
		sum += costs[row][k]
	}
	return columns, sum
}

// addShared calls meets with the index of each port for each of the sources from which the paths to it and q meet.
func (x *hostSeparator) addShared(q fabric.PortID, ports []fabric.PortID, meets func(i int)) {
	for _, from := range x.sources {
		if x.work += len(ports); x.work > hostWork {
			return
		}
		x.mark(from, q)
		for i, p := range ports {
			if x.meeting(x.path(from, p), q) != fabric.NoNode {
				meets(i)
			}
		}
	}
}

// mark begins a search, and marks the switches between one and those that ports are on.
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

// meeting finds the first marked switch of a path behind its first one, that which p is on excepted; NoNode for none.
func (x *hostSeparator) meeting(path []fabric.PortID, p fabric.PortID) fabric.NodeID {
	for i, out := range path {
		if s := x.f.Owner(out); i > 0 && x.seen[s] == x.search && s != x.f.PeerSwitch(p) {
			return s
		}
	}
	return fabric.NoNode
}

// path lists the ports by which the path from a switch to p leaves switches, without the last one: the first ones
// as given, the others by the tables. The next call overwrites it.
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

// findFree finds a port by which the path from a switch to p, which is long hops long, is no longer and meets no marked
// switch, and which fits; NoPort for none.
func (x *hostSeparator) findFree(from fabric.NodeID, p fabric.PortID, long int, fits func(path []fabric.PortID) bool) fabric.PortID {
	ports, _ := x.f.SwitchLinks(from)
	for _, out := range ports {
		path := x.path(from, p, out)
		if x.meeting(path, x.others[p][0]) == fabric.NoNode && len(path) <= long && x.f.Owner(x.f.Peer(path[len(path)-1])) == x.f.PeerSwitch(p) && fits(path) {
			return out
		}
	}
	return fabric.NoPort
}

// detour has a switch with hosts send to p by another switch, where the path meets those to other ports of p's host, and one that
// is no longer meets none and does not get more than the greatest load. It returns true if it found one.
func (x *hostSeparator) detour(from fabric.NodeID, p fabric.PortID) bool {
	if x.work += len(x.others[p]); x.work > hostWork {
		return false
	}
	x.mark(from, x.others[p]...)
	path := slices.Clone(x.path(from, p))
	if x.meeting(path, x.others[p][0]) == fabric.NoNode {
		return false
	}
	lid, routes := x.f.LID(p), int64(len(x.f.HostsOn(from)))
	_, to := x.f.SwitchLinks(from)
	for _, s := range to { // others that send by this switch would have other paths, too
		if _, peer := x.r.Tables.Step(x.f, s, lid); peer != fabric.NoPort && x.f.Owner(peer) == from {
			return false
		}
	}
	add := func(path []fabric.PortID, routes int64) {
		for _, c := range path {
			x.loads[c] += routes
		}
	}
	add(path, -routes)
	out := x.findFree(from, p, len(path), func(path []fabric.PortID) bool {
		return x.climbsFirst(path) && !slices.ContainsFunc(path, func(c fabric.PortID) bool { return uint64(x.loads[c]+routes)*x.units[c] > x.greatest })
	})
	if out == fabric.NoPort {
		add(path, routes)
		return false
	}
	x.r.Tables.Row(from)[lid] = x.f.Num(out)
	add(x.path(from, p), routes)
	return true
}

// climbsFirst returns true for a path up and then down.
func (x *hostSeparator) climbsFirst(path []fabric.PortID) bool {
	downs := 0
	for _, out := range path {
		if x.r.Order[x.f.Owner(out)] < x.r.Order[x.f.Owner(x.f.Peer(out))] {
			downs++
		} else if downs > 0 {
			return false
		}
	}
	return true
}

// Meeting is that paths to ports of a host meet, though another path is free.
type Meeting struct {
	Port     fabric.PortID // one of the host
	From, At fabric.NodeID // the first switch with hosts from which that is so, and the switch that the path shares with one to another port
	Sources  int           // how many switches with hosts there are from which that is so
}

// Meetings lists the first meeting of each host with several ports, in the order of HostPorts, where from a switch with hosts the
// path of the tables to a port meets one to another port in a switch that neither is on, and another cable leads to a
// path that is no longer and meets none.
func Meetings(f *fabric.Fabric, t *Tables) (list []Meeting) {
	x, hosts := newHostSeparator(&Routing{Fabric: f, Tables: t})
	for _, ports := range hosts {
		m := Meeting{Port: fabric.NoPort}
		for _, from := range x.leaves {
			for _, p := range ports {
				x.mark(from, x.others[p]...)
				path := x.path(from, p)
				at, long := x.meeting(path, x.others[p][0]), len(path)
				if at == fabric.NoNode || x.findFree(from, p, long, func([]fabric.PortID) bool { return true }) == fabric.NoPort {
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

// take has all other switches than s send to ports[i], on s, as they did to by[i]: a permutation of ports.
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

// permute has places to get what places from have.
func permute[T any](row []T, to, from []fabric.LID) {
	was := make([]T, len(from))
	for i, l := range from {
		was[i] = row[l]
	}
	for i, l := range to {
		row[l] = was[i]
	}
}
