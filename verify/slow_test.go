package verify

import (
	"maps"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// slow is a checker that is too plain to be wrong: it walks every pair, port
// by port, and keeps dependencies in a map. Channels are named by the PortID
// of the port they leave.
type slow struct {
	f *fabric.Fabric
	t *lft.Tables

	pairs, unreachable, misdelivered, loops, nonMinimal int64
	mgmtPairs, mgmtUnreachable, mgmtLoops               int64
	hist                                                map[int]int64
	routes                                              map[fabric.PortID]int64 // unicast pairs on a channel
	unicast, all                                        dependencies
}

// dependencies has for each channel the channels waited for, and a LID of a
// packet that waits.
type dependencies map[fabric.PortID]map[fabric.PortID]map[fabric.LID]bool

func (d dependencies) add(path []fabric.PortID, lid fabric.LID) {
	for i := 1; i < len(path); i++ {
		if d[path[i-1]] == nil {
			d[path[i-1]] = map[fabric.PortID]map[fabric.LID]bool{}
		}
		if d[path[i-1]][path[i]] == nil {
			d[path[i-1]][path[i]] = map[fabric.LID]bool{}
		}
		d[path[i-1]][path[i]][lid] = true
	}
}

type outcome int

const (
	delivered outcome = iota
	dropped
	astray // handed to a CA that is not the LID's
	circling
)

// walk follows a packet from an end port to a LID: the channels it takes, and
// the number of switches it passes.
func (s *slow) walk(from fabric.PortID, lid fabric.LID) (path []fabric.PortID, hops int, end outcome) {
	f := s.f
	owner := f.LIDPort(lid)
	at := f.Owner(from) // the switch that has the packet
	if !f.IsSwitch(at) {
		path = append(path, from)
		peer := f.Peer(from)
		if peer == owner {
			return path, 0, delivered
		}
		if at = f.Owner(peer); !f.IsSwitch(at) {
			return path, 0, dropped
		}
	}
	for hops = 1; hops <= f.NumSwitches(); hops++ {
		row := s.t.Row(at)
		if int(lid) >= len(row) || row[lid] > f.Node(at).NumPorts {
			return path, hops, dropped
		}
		out := f.Port(at, row[lid])
		if row[lid] == 0 {
			if out == owner {
				return path, hops, delivered
			}
			return path, hops, dropped
		}
		peer := f.Peer(out)
		if peer == fabric.NoPort {
			return path, hops, dropped
		}
		path = append(path, out)
		if at = f.Owner(peer); !f.IsSwitch(at) {
			if peer == owner {
				return path, hops, delivered
			}
			return path, hops, astray
		}
	}
	return path, hops, circling
}

// distance is the least number of switches between an end port and another.
func (s *slow) distance(from, to fabric.PortID) int {
	f := s.f
	if f.Peer(from) == to {
		return 0
	}
	start, goal := f.Owner(f.Peer(from)), f.Owner(f.Peer(to))
	if !f.IsSwitch(start) || !f.IsSwitch(goal) {
		return -1
	}
	dist := map[fabric.NodeID]int{start: 1}
	for queue := []fabric.NodeID{start}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for p := fabric.PortNum(1); p <= f.Node(n).NumPorts; p++ {
			peer := f.Peer(f.Port(n, p))
			if peer == fabric.NoPort || !f.IsSwitch(f.Owner(peer)) || dist[f.Owner(peer)] != 0 {
				continue
			}
			dist[f.Owner(peer)] = dist[n] + 1
			queue = append(queue, f.Owner(peer))
		}
	}
	return dist[goal]
}

func newSlow(f *fabric.Fabric, t *lft.Tables) *slow {
	s := &slow{f: f, t: t, hist: map[int]int64{}, routes: map[fabric.PortID]int64{}, unicast: dependencies{}, all: dependencies{}}
	var ends []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { ends = append(ends, p) })
	for _, from := range ends {
		for _, to := range ends {
			if from == to || f.LID(to) == 0 {
				continue
			}
			for k := range 1 << f.LMC(to) {
				s.pair(from, to, f.LID(to)+fabric.LID(k))
			}
		}
	}
	return s
}

func (s *slow) pair(from, to fabric.PortID, lid fabric.LID) {
	path, hops, end := s.walk(from, lid)
	if end == delivered {
		s.all.add(path, lid)
	}
	if s.f.IsSwitch(s.f.Owner(from)) || s.f.IsSwitch(s.f.Owner(to)) {
		s.mgmtPairs++
		switch end {
		case dropped, astray:
			s.mgmtUnreachable++
		case circling:
			s.mgmtLoops++
		}
		return
	}
	s.pairs++
	switch end {
	case delivered:
		s.hist[hops]++
		if hops > s.distance(from, to) {
			s.nonMinimal++
		}
		s.unicast.add(path, lid)
		for _, p := range path {
			s.routes[p]++
		}
	case astray:
		s.misdelivered++
		s.unreachable++
	case dropped:
		s.unreachable++
	case circling:
		s.loops++
	}
}

// reach is the set of channels that a chain of one or more dependencies leads
// to from a channel.
func (d dependencies) reach(from fabric.PortID) map[fabric.PortID]bool {
	seen := map[fabric.PortID]bool{}
	var visit func(fabric.PortID)
	visit = func(p fabric.PortID) {
		for q := range d[p] {
			if !seen[q] {
				seen[q] = true
				visit(q)
			}
		}
	}
	visit(from)
	return seen
}

// components lists the sets of channels that all lead to each other, lowest
// channel first, each with the length of its shortest cycle.
func (d dependencies) components() (sets [][]fabric.PortID, shortest []int) {
	reach := map[fabric.PortID]map[fabric.PortID]bool{}
	for p := range d {
		reach[p] = d.reach(p)
	}
	done := map[fabric.PortID]bool{}
	for _, p := range slices.Sorted(maps.Keys(d)) {
		if done[p] || !reach[p][p] {
			continue
		}
		var set []fabric.PortID
		best := -1
		for _, q := range slices.Sorted(maps.Keys(d)) {
			if reach[p][q] && reach[q][p] {
				set = append(set, q)
				done[q] = true
				if n := d.cycle(q); best < 0 || n < best {
					best = n
				}
			}
		}
		sets = append(sets, set)
		shortest = append(shortest, best)
	}
	return sets, shortest
}

// cycle is the length of the shortest cycle through a channel that is on one.
func (d dependencies) cycle(start fabric.PortID) int {
	dist := map[fabric.PortID]int{}
	for queue := []fabric.PortID{start}; len(queue) > 0; queue = queue[1:] {
		for q := range d[queue[0]] {
			if q == start {
				return dist[queue[0]] + 1
			}
			if _, seen := dist[q]; !seen {
				dist[q] = dist[queue[0]] + 1
				queue = append(queue, q)
			}
		}
	}
	return -1
}

// fromSwitches counts the dependencies between channels that leave switches,
// and the channels of switches that carry routes.
func (s *slow) fromSwitches() (channels, deps int) {
	for p := range s.routes {
		if s.f.IsSwitch(s.f.Owner(p)) {
			channels++
		}
	}
	for p, next := range s.unicast {
		if s.f.IsSwitch(s.f.Owner(p)) {
			deps += len(next)
		}
	}
	return channels, deps
}
