// Package mft holds what a subnet manager computes for multicast: groups,
// the MLIDs that stand for them in the switches, multicast forwarding tables,
// and the schemes that make them from a unicast routing.
// It makes no promise to other modules.
//
// A switch forwards a multicast packet by its MLID alone: to every port of the
// MLID's mask but the one that it came in by (IBA 18.2.4.3.3). So a mask that
// suits one sender may loop or duplicate the packets of another.
package mft

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

const (
	// MinMLID and MaxMLID are the first and the last multicast LID (IBA 4.1.3);
	// 0xFFFF is the permissive LID.
	MinMLID fabric.LID = 0xC000
	MaxMLID fabric.LID = 0xFFFE
)

// MGID is a multicast GID, an IPv6 multicast address (IBA 4.1.1). The zero
// value means none yet.
type MGID = netip.Addr

// Group is a multicast group as an operator asks for it.
type Group struct {
	Name string
	MGID MGID       // not valid: to be given out
	MLID fabric.LID // 0: to be given out
	// Receivers and Senders are end ports, ascending and without repetition:
	// ports of CAs and routers, and ports 0 of switches. A sender need not be
	// a receiver.
	Receivers []fabric.PortID
	Senders   []fabric.PortID
	SL        fabric.SL
}

// Tree is what one MLID is for: some senders of a group, and all its
// receivers. A group whose senders cannot share a mask has several.
type Tree struct {
	Group     int // index of the group
	Name      string
	MGID      MGID
	MLID      fabric.LID
	Senders   []fabric.PortID // ascending
	Receivers []fabric.PortID // ascending
	SL        fabric.SL
	Scheme    string // by its name on the command line
	// Why is what the schemes said that come before this one and did not serve the
	// group, "union-row: reason"; empty when this is the first.
	Why []string
}

// Plan is what a scheme made.
type Plan struct {
	Trees  []Tree // by MLID, ascending
	Tables *Tables
	// Unserved is the groups, by index, that got no MLID and are left to repeated
	// unicast; ascending.
	Unserved []int
	// Notes say in words what was given up where a scheme did not fit: steps
	// down to another scheme, groups that share an MLID, stray copies.
	Notes []string
}

// NewPlan is the plan of a scheme that gives each group an MLID of its own. The groups
// have their MLIDs; masks is by group the ports in its masks, ascending.
func NewPlan(f *fabric.Fabric, scheme string, groups []Group, masks [][]fabric.PortID) *Plan {
	plan := &Plan{Tables: NewTables(f)}
	ports := 0
	for i := range groups {
		g := &groups[i]
		plan.Trees = append(plan.Trees, Tree{Group: i, Name: g.Name, MGID: g.MGID, MLID: g.MLID,
			Senders: g.Senders, Receivers: g.Receivers, SL: g.SL, Scheme: scheme})
		ports += len(masks[i])
	}
	slices.SortFunc(plan.Trees, func(a, b Tree) int { return cmp.Compare(a.MLID, b.MLID) })
	plan.Tables.Grow(len(masks), ports)
	for i := range plan.Trees {
		plan.Tables.Add(plan.Trees[i].MLID, masks[plan.Trees[i].Group])
	}
	return plan
}
