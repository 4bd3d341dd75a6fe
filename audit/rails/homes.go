package rails

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// place is a rail of the hosts on a leaf.
type place struct {
	leaf fabric.NodeID
	rail int32
}

// vote is where hosts on a leaf have their ports of a rail.
type vote struct {
	home  fabric.NodeID
	hosts int
	first int // index of the first of these hosts
}

// fewPorts and elsewhere are why a host is on no rail.
const (
	fewPorts  = "less than half of the usual number of ports"
	elsewhere = "half of the usual number of ports, and not on the leaves of their rails"
)

// findHomes says where the port of each host on each rail belongs. Hosts without more than half of
// the usual number of ports are left out unless they have half of them and these are where they
// belong.
func (x *finder) findHomes() {
	x.votes, x.members = make(map[place][]vote), make(map[fabric.NodeID]int)
	for i := range x.hosts {
		h := &x.hosts[i]
		if !h.member {
			continue
		}
		for _, leaf := range h.leaves {
			x.members[leaf]++
			for _, p := range h.ports {
				x.vote(place{leaf, p.rail}, p.leaf, i)
			}
		}
	}
	x.hosts = slices.DeleteFunc(x.hosts, func(h host) bool {
		right := 2*len(h.ports) >= x.usual
		for i := range h.ports {
			p := &h.ports[i]
			if p.rail < 0 {
				right = false
			} else if home, _ := x.homeOf(&h, p.rail); home.hosts > 0 {
				p.home = home.home
			} else {
				right = false
			}
			right = right && p.home == p.leaf
		}
		if h.member || right {
			return false
		}
		reason := fewPorts
		if 2*len(h.ports) >= x.usual {
			reason = elsewhere
		}
		for _, p := range h.ports {
			if n := x.f.Owner(p.end); !slices.Contains(x.leftOut[reason], n) {
				x.leftOut[reason] = append(x.leftOut[reason], n)
			}
		}
		return true
	})
}

// vote adds a vote of host i.
func (x *finder) vote(at place, home fabric.NodeID, i int) {
	list := x.votes[at]
	k := slices.IndexFunc(list, func(v vote) bool { return v.home == home })
	if k < 0 {
		list, k = append(list, vote{home: home, first: i}), len(list)
		x.votes[at] = list
	}
	list[k].hosts++
}

// homeOf is where the hosts on the leaves of h have their ports of a rail: the leaf with most votes,
// of those with the same the one of the first host. all counts their votes. Without any, home has
// no hosts.
func (x *finder) homeOf(h *host, rail int32) (home vote, all int) {
	var sum []vote
	for _, leaf := range h.leaves {
		for _, v := range x.votes[place{leaf, rail}] {
			all += v.hosts
			k := slices.IndexFunc(sum, func(s vote) bool { return s.home == v.home })
			if k < 0 {
				sum = append(sum, v)
				continue
			}
			sum[k].hosts += v.hosts
			sum[k].first = min(sum[k].first, v.first)
		}
	}
	if len(sum) == 0 {
		return vote{home: fabric.NoNode}, 0
	}
	return slices.MinFunc(sum, func(a, b vote) int {
		return cmp.Or(cmp.Compare(b.hosts, a.hosts), cmp.Compare(a.first, b.first), cmp.Compare(a.home, b.home))
	}), all
}

// findMissing finds the rails that hosts have no port on, and should: most hosts on their leaves
// have one, or most hosts of the fabric.
func (x *finder) findMissing() {
	ports := make([]int, len(x.out.Rails))
	for i := range x.hosts {
		for _, p := range x.hosts[i].ports {
			if p.rail >= 0 {
				ports[p.rail]++
			}
		}
	}
	for i := range x.hosts {
		h := &x.hosts[i]
		beside := 0
		for _, leaf := range h.leaves {
			beside += x.members[leaf]
			if h.member {
				beside--
			}
		}
		for r := range int32(len(ports)) {
			if slices.ContainsFunc(h.ports, func(p port) bool { return p.rail == r }) {
				continue
			}
			home, all := x.homeOf(h, r)
			if 2*all > beside || 2*ports[r] > len(x.hosts) {
				h.missing = append(h.missing, gap{r, home.home})
			}
		}
	}
}
