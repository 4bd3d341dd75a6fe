package rails

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/verify"
)

// fewPorts and elsewhere are reasons why a host is on no rail.
const (
	fewPorts  = "less than half of the usual number of ports"
	elsewhere = "half of the usual number of ports, and not on the leaves of their rails"
)

// findHomes finds for each host and rail the leaf where its port belongs. It leaves out hosts with
// half of the usual number of ports or less, except those with exactly half, all where they belong.
func (x *finder) findHomes() {
	x.votes, x.members = make(map[place]map[fabric.NodeID]int), make([]int, x.f.NumSwitches())
	for i := range x.Hosts {
		h := &x.Hosts[i]
		if !h.member {
			continue
		}
		for _, leaf := range h.leaves {
			x.members[leaf]++
			for _, p := range h.Ports {
				at := place{leaf, p.Rail}
				if x.votes[at] == nil {
					x.votes[at] = make(map[fabric.NodeID]int)
				}
				x.votes[at][p.leaf]++
			}
		}
	}
	x.Hosts = slices.DeleteFunc(x.Hosts, func(h Host) bool {
		reason := elsewhere
		if 2*len(h.Ports) < x.usual {
			reason = fewPorts
		}
		right := reason == elsewhere
		for i := range h.Ports {
			p := &h.Ports[i]
			home, hosts, _ := x.homeOf(&h, p.Rail)
			if p.Rail > 0 && hosts > 0 {
				p.home = home
			} else {
				right = false
			}
			right = right && p.home == p.leaf
		}
		if h.member || right {
			return false
		}
		for _, p := range h.Ports {
			if n := x.f.Owner(p.end); !slices.Contains(x.leftOut[reason], n) {
				x.leftOut[reason] = append(x.leftOut[reason], n)
			}
		}
		return true
	})
}

// homeOf returns the leaf where most hosts on the leaves of h have their port
// of a rail, the first of equal ones; NoNode for none. hosts counts their ports
// of the rail on this leaf, and all those on any leaf.
func (x *finder) homeOf(h *Host, rail int) (home fabric.NodeID, hosts, all int) {
	home = fabric.NoNode
	sum := make(map[fabric.NodeID]int)
	for _, leaf := range h.leaves {
		for to, n := range x.votes[place{leaf, rail}] {
			sum[to] += n
			all += n
		}
	}
	for to, n := range sum {
		if n > hosts || n == hosts && to < home {
			home, hosts = to, n
		}
	}
	return home, hosts, all
}

// findMissing finds the rails where a host lacks a port, but most hosts on its leaves, or most
// hosts of the fabric, have one.
func (x *finder) findMissing() {
	ports := make([]int, len(x.Rails)+1)
	for i := range x.Hosts {
		for _, p := range x.Hosts[i].Ports {
			ports[p.Rail]++
		}
	}
	for i := range x.Hosts {
		h := &x.Hosts[i]
		beside := 0
		for _, leaf := range h.leaves {
			beside += x.members[leaf]
			if h.member {
				beside--
			}
		}
		for r := 1; r < len(ports); r++ {
			if slices.ContainsFunc(h.Ports, func(p Port) bool { return p.Rail == r }) {
				continue
			}
			if home, _, all := x.homeOf(h, r); 2*all > beside || 2*ports[r] > len(x.Hosts) {
				h.Missing, h.homes = append(h.Missing, r), append(h.homes, home)
			}
		}
	}
}

// list fills in the reported fields of Hosts and Rails, and makes the list of Leaves.
func (x *finder) list() {
	x.ends = make([][]fabric.PortID, len(x.Rails))
	x.on = make([]uint64, x.f.NumSwitches())
	ports := make([]int, x.f.NumSwitches()) // by leaf: ports on rails
	for i := range x.Hosts {
		h := &x.Hosts[i]
		for k := range h.Ports {
			p := &h.Ports[k]
			p.Home = x.f.Node(p.home).GUID
			if p.Rail == 0 {
				continue
			}
			x.ends[p.Rail-1] = append(x.ends[p.Rail-1], p.end)
			rail := &x.Rails[p.Rail-1]
			rail.Ports++
			ports[p.leaf]++
			if p.home != p.leaf {
				rail.Misplaced++
			} else {
				x.on[p.leaf] |= 1 << (p.Rail - 1)
			}
		}
		for _, r := range h.Missing {
			x.Rails[r-1].Missing++
		}
	}
	for s, n := range ports {
		if n == 0 {
			continue
		}
		l := Leaf{SwitchRef: verify.SwitchOf(x.f, fabric.NodeID(s)), Rails: []int{}, Ports: n, leaf: fabric.NodeID(s)}
		for rail := range x.Rails {
			if x.on[s]>>rail&1 != 0 {
				l.Rails = append(l.Rails, rail+1)
				x.Rails[rail].Leaves++
			}
		}
		x.Leaves = append(x.Leaves, l)
	}
	slices.SortFunc(x.Leaves, func(a, b Leaf) int { return x.byName(a.leaf, b.leaf) })
	x.LeftOut = names.ListLeftOut(x.f, x.leftOut)
}
