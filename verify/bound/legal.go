package bound

import (
	"errors"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// LegalPorts says by PortID which channels between switches packets to the hosts of switch t may
// take, by the rank of each switch in an up*/down* order, see IsOrder and the head of the package.
// It takes O(channels).
func LegalPorts(f *fabric.Fabric, rank []int32, t fabric.NodeID) []bool {
	legal := make([]bool, f.NumPorts())
	switches := switchesByRank(rank)
	const none = int32(1 << 30)
	hops := make([]int32, len(rank))
	for s := range hops {
		hops[s] = none
	}
	hops[t] = 0
	// take makes legal the channels of s in one direction that lead nearest, if any leads to t.
	take := func(s fabric.NodeID, up bool) {
		ports, to := f.SwitchLinks(s)
		for k := range ports {
			if up == (rank[to[k]] < rank[s]) {
				hops[s] = min(hops[s], hops[to[k]]+1)
			}
		}
		for k, p := range ports {
			legal[p] = hops[s] < none && up == (rank[to[k]] < rank[s]) && hops[to[k]] == hops[s]-1
		}
	}
	// From the bottom up only what is below s has hops, and is reached downward.
	for r := rank[t] - 1; r >= 0; r-- {
		take(switches[r], false)
	}
	for _, s := range switches {
		if hops[s] == none {
			take(s, true)
		}
	}
	return legal
}

// IsOrder says whether ranks are those of an order of the switches of f: each from 0 on once.
func IsOrder(f *fabric.Fabric, rank []int32) bool {
	seen := make([]bool, f.NumSwitches())
	for _, r := range rank {
		if r < 0 || int(r) >= len(seen) || seen[r] {
			return false
		}
		seen[r] = true
	}
	return len(rank) == len(seen)
}

// switchesByRank is the switches in their order.
func switchesByRank(rank []int32) []fabric.NodeID {
	list := make([]fabric.NodeID, len(rank))
	for s, r := range rank {
		list[r] = fabric.NodeID(s)
	}
	return list
}

// Keeps says whether all entries of tables keep to the legal ports of an order, so that a bound for
// these is about the tables. It takes O(switches with hosts x channels), and O(switches x LIDs).
func Keeps(f *fabric.Fabric, t *lft.Tables, rank []int32) bool {
	for d := range fabric.NodeID(f.NumSwitches()) {
		hosts := f.HostsOn(d)
		if len(hosts) == 0 {
			continue
		}
		legal := LegalPorts(f, rank, d)
		for s := range fabric.NodeID(f.NumSwitches()) {
			if s == d {
				continue
			}
			row := t.Row(s)
			for _, p := range hosts {
				first := f.LID(p)
				if first == 0 {
					continue
				}
				for lid := first; lid < first+1<<f.LMC(p) && int(lid) < len(row); lid++ {
					out := row[lid]
					if out != fabric.NoPath && (out > f.Node(s).NumPorts || !legal[f.Port(s, out)]) {
						return false
					}
				}
			}
		}
	}
	return true
}

// Ranks is the place of each switch in the order of a certificate for legal paths.
func (c *Certificate) Ranks(f *fabric.Fabric) ([]int32, error) {
	if len(c.Order) != f.NumSwitches() {
		return nil, fmt.Errorf("the order has %d of %d switches", len(c.Order), f.NumSwitches())
	}
	rank := make([]int32, len(c.Order))
	for s := range rank {
		rank[s] = -1
	}
	for i, g := range c.Order {
		s, ok := f.SwitchByGUID(g)
		if !ok {
			return nil, fmt.Errorf("the order has %s: want a switch", g)
		}
		if rank[s] >= 0 {
			return nil, errors.New("the order has a switch twice")
		}
		rank[s] = int32(i)
	}
	return rank, nil
}
