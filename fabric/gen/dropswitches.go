package gen

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// DropSwitches takes n random switches without hosts away, as Remaining does, such that all
// hosts can still reach each other: one after the other goes, those excepted that hosts need
// then. With the same seed a larger n takes away the same switches and more. Fewer than n such
// switches: an error that says how many can go. It takes O(switches x channels).
func DropSwitches(f *fabric.Fabric, n int, seed uint64) (*fabric.Fabric, error) {
	if n < 0 {
		return nil, fmt.Errorf("%d switches to drop: want 0 or more", n)
	}
	if n == 0 {
		return f, nil
	}
	list := WithoutHosts(f)
	newRand(seed).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	gone := make([]bool, f.NumSwitches())
	var cables []fabric.PortID
	left := n
	for _, s := range list {
		if left == 0 {
			break
		}
		if gone[s] = true; !hostsJoined(f, gone) {
			gone[s] = false
			continue
		}
		left--
		for p := f.PortBase(s); p < f.PortBase(s+1); p++ {
			if f.Peer(p) != fabric.NoPort {
				cables = append(cables, p)
			}
		}
	}
	if left > 0 {
		return nil, fmt.Errorf("%d switches to drop: want at most %d, since hosts need the others", n, n-left)
	}
	return Remaining(f, cables...)
}

// WithoutHosts lists the switches without CA and router ports, aggregation nodes excepted,
// ascending.
func WithoutHosts(f *fabric.Fabric) []fabric.NodeID {
	var list []fabric.NodeID
	for s := range fabric.NodeID(f.NumSwitches()) {
		if len(f.HostsOn(s)) == 0 {
			list = append(list, s)
		}
	}
	return list
}

// hostsJoined says whether all switches with hosts are joined by switches that are not gone.
func hostsJoined(f *fabric.Fabric, gone []bool) bool {
	var neighbors []fabric.NodeID
	of, _ := graph.Components(f.NumSwitches(), func(s fabric.NodeID) []fabric.NodeID {
		neighbors = neighbors[:0]
		if gone[s] {
			return neighbors
		}
		for _, t := range f.Neighbors(s) {
			if !gone[t] {
				neighbors = append(neighbors, t)
			}
		}
		return neighbors
	})
	first := int32(-1)
	return !slices.ContainsFunc(f.Switches(), func(s fabric.NodeID) bool {
		if len(f.HostsOn(s)) == 0 {
			return false
		}
		if first < 0 {
			first = of[s]
		}
		return of[s] != first
	})
}
