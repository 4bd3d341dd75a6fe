package myrinet

import (
	"fmt"
	"net/netip"
	"slices"
)

// GroupID is a Myrinet multicast group, 0 to 254, or Broadcast.
type GroupID uint8

// Broadcast is the group of all hosts. An IP group whose address ends in 255 is
// delivered by it and left to the filter of the receivers' IP (E-M11).
const Broadcast GroupID = 255

// GroupOf maps an IPv4 multicast address, of class D, to a Myrinet group: its last
// eight bits (section 8.1 of the paper, M27).
func GroupOf(a netip.Addr) (GroupID, error) {
	if !a.Is4() || !a.IsMulticast() {
		return 0, fmt.Errorf("%s is no IPv4 multicast address: want 224.0.0.0 to 239.255.255.255", a)
	}
	b := a.As4()
	return GroupID(b[3]), nil
}

// Membership is an IP group and the hosts in it, by any numbers.
type Membership struct {
	Group netip.Addr
	Hosts []int32
}

// MyrinetGroups unites the hosts of all IP groups that share a Myrinet group, by
// GroupID; hosts ascend and come once. Receivers filter what their IP groups do
// not want. What maps to Broadcast is not in the result. Errors are GroupOf's.
func MyrinetGroups(members []Membership) (groups [Broadcast][]int32, err error) {
	for _, m := range members {
		g, err := GroupOf(m.Group)
		if err != nil {
			return [Broadcast][]int32{}, err
		}
		if g != Broadcast {
			groups[g] = append(groups[g], m.Hosts...)
		}
	}
	for g := range groups {
		slices.Sort(groups[g])
		groups[g] = slices.Compact(groups[g])
	}
	return groups, nil
}
