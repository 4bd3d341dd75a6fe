package verify

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
)

// MulticastTable is how full the fullest multicast table is, by its share.
type MulticastTable struct {
	SwitchRef
	MLIDs    int `json:"mlids"`    // with a port in the switch's mask
	Capacity int `json:"capacity"` // MLIDs
}

// nearlyFull is the share of a table, of 10 parts, from which on it is nearly full.
const nearlyFull = 9

// countUse counts how full multicast tables are. A subnet manager gives out MLIDs that all
// switches have room for, so the smallest table is the capacity of the fabric.
func (c *multicast) countUse() {
	if c.capacity == nil {
		return
	}
	used := make([]int, c.f.NumSwitches())
	for i := range c.Tables.MLIDs() {
		last := fabric.NoNode
		for _, p := range c.Tables.PortsAt(i) {
			if s := c.f.Owner(p); s != last {
				used[s]++
				last = s
			}
		}
	}
	n := &c.found.counts
	for s, capacity := range c.capacity {
		if capacity == 0 {
			continue
		}
		if n.Capacity == 0 || capacity < n.Capacity {
			n.Capacity = capacity
		}
		if t := n.Fullest; t == nil || used[s]*t.Capacity > t.MLIDs*capacity {
			node := fabric.NodeID(s)
			n.Fullest = &MulticastTable{SwitchOf(c.f, node), used[s], capacity}
		}
	}
}

// reportUse is about the use of multicast tables: MLIDs beyond their capacity, groups with
// one member, and trees without an end port.
func (c *multicast) reportUse(out *Collector) {
	if room := c.found.counts.Capacity; room > 0 {
		beyond := len(text.Where(c.mlids, func(l fabric.LID) bool { return int(l-mft.MinMLID) >= room }))
		if beyond > 0 {
			out.Add(MulticastBeyondCapacity, int64(beyond), func(f *Finding) {
				f.LID = c.mlids[len(c.mlids)-beyond]
				f.Message = fmt.Sprintf("the smallest multicast table has room for %d MLIDs, up to %#x: %s beyond, the first %#x",
					room, int(mft.MinMLID)+room-1, text.CountGrouped(beyond, "MLID is", "MLIDs are"), uint16(f.LID))
			})
		} else if used := len(c.mlids); used*10 >= room*nearlyFull {
			out.Add(MulticastNearlyFull, int64(used), func(f *Finding) {
				f.Message = fmt.Sprintf("%s of the %d that the smallest multicast table has room for", text.CountGrouped(used, "MLID is in use", "MLIDs are in use"), room)
			})
		}
	}
	c.reportNoEndPort(out)
	c.reportLone(out)
}

// reportNoEndPort reports MLIDs whose masks lead to no end port.
func (c *multicast) reportNoEndPort(out *Collector) {
	var empty []fabric.LID
	for i, mlid := range c.Tables.MLIDs() {
		ports := c.Tables.PortsAt(i)
		if len(ports) > 0 && !slices.ContainsFunc(ports, func(p fabric.PortID) bool {
			peer := c.f.Peer(p)
			return c.f.Num(p) == fabric.ManagementPort || peer != fabric.NoPort && !c.f.IsSwitch(c.f.Owner(peer))
		}) {
			empty = append(empty, mlid)
		}
	}
	if len(empty) == 0 {
		return
	}
	out.Add(MulticastNoEndPort, int64(len(empty)), func(f *Finding) {
		f.LID, f.Message = empty[0], fmt.Sprintf("the masks of MLID %#x lead to no end port", uint16(empty[0]))
		if n := len(empty); n > 1 {
			f.Message = fmt.Sprintf("the masks of %d MLIDs lead to no end port, the first those of %#x", n, uint16(empty[0]))
		}
	})
}

// reportLone reports groups with one member.
func (c *multicast) reportLone(out *Collector) {
	alone := map[int]fabric.PortID{} // by group; NoPort for several members
	for _, t := range c.trees {
		for _, list := range [][]fabric.PortID{t.Senders, t.Receivers} {
			for _, p := range list {
				if other, known := alone[t.Group]; known && other != p {
					p = fabric.NoPort
				}
				alone[t.Group] = p
			}
		}
	}
	var first *mft.Tree
	member, n := fabric.NoPort, int64(0)
	for _, t := range c.trees {
		if p, known := alone[t.Group]; known && p != fabric.NoPort {
			delete(alone, t.Group) // of several trees of a group the first counts
			if n++; n == 1 {
				first, member = t, p
			}
		}
	}
	if n == 0 {
		return
	}
	out.Add(MulticastLoneMember, n, func(f *Finding) {
		f.LID = first.MLID
		f.Message = fmt.Sprintf("%s has one member, %s", treeName(first), c.f.PortName(member))
		if n > 1 {
			f.Message = fmt.Sprintf("%s groups have one member, the first %s: %s", text.Grouped(n), treeName(first), c.f.PortName(member))
		}
	})
}
