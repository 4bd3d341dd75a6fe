package bound

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// LegalPorts returns, by PortID, whether packets to hosts of switch t may take a channel between
// switches. rank has the place of each switch in an up*/down* order, see lft.SwitchesByRank and the
// head of the package. It takes O(channels).
func LegalPorts(f *fabric.Fabric, rank []int32, t fabric.NodeID) []bool {
	hops, climbs := make([]int32, len(rank)), make([]bool, len(rank)) // by switch: channels on its paths, -1 for none; whether it may send up
	for s := range hops {
		hops[s], climbs[s] = -1, true
	}
	hops[t], climbs[t] = 0, false
	for level := []fabric.NodeID{t}; len(level) > 0; {
		var next []fabric.NodeID
		for _, v := range level {
			for _, s := range f.Neighbors(v) {
				if hops[s] < 0 && (rank[v] < rank[s] || !climbs[v]) {
					hops[s] = hops[v] + 1
					next = append(next, s)
				}
			}
		}
		for _, s := range next {
			up, down, wanted := false, false, false
			for _, v := range f.Neighbors(s) {
				above, nearer := rank[v] < rank[s], hops[v] == hops[s]-1
				up = up || above && nearer
				down = down || !above && nearer && !climbs[v]
				wanted = wanted || above && (hops[v] < 0 || hops[v] > hops[s])
			}
			climbs[s] = !down || up && !wanted
		}
		level = next
	}
	legal := make([]bool, f.NumPorts())
	for s := range fabric.NodeID(len(rank)) {
		ports, to := f.SwitchLinks(s)
		for k, p := range ports {
			up := rank[to[k]] < rank[s]
			legal[p] = hops[s] > 0 && hops[to[k]] == hops[s]-1 && (up && climbs[s] || !up && !climbs[to[k]])
		}
	}
	return legal
}

// Keeps returns true if all entries for LIDs of hosts use legal ports of an order, so that a bound
// for legal paths applies. It takes O(switches with hosts x channels + switches x LIDs).
func Keeps(f *fabric.Fabric, t *lft.Tables, rank []int32) bool {
	for _, d := range f.Switches() {
		if len(f.HostsOn(d)) > 0 && !KeepsTo(f, t, LegalPorts(f, rank, d), d) {
			return false
		}
	}
	return true
}

// KeepsTo returns true if all entries for hosts of switch d use its LegalPorts, legal.
func KeepsTo(f *fabric.Fabric, t *lft.Tables, legal []bool, d fabric.NodeID) bool {
	hosts := f.HostsOn(d)
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
	return true
}

// Ranks returns the place of each switch in the order of a certificate for legal paths.
func (c *Certificate) Ranks(f *fabric.Fabric) ([]int32, error) {
	if len(c.Order) != f.NumSwitches() {
		return nil, fmt.Errorf("the order has %d of %d switches", len(c.Order), f.NumSwitches())
	}
	rank := slices.Repeat([]int32{-1}, len(c.Order))
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
