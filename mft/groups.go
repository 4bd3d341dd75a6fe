// Package mft holds what a subnet manager computes for multicast: groups,
// the MLIDs that stand for them in the switches, multicast forwarding tables,
// and the schemes that make them from a unicast routing. It is supported.
//
// A switch forwards a multicast packet by its MLID alone, to all ports in the
// MLID's mask except the one where it came in (IBA 18.2.4.3.3). So a mask
// that suits one sender may loop or duplicate the packets of another.
package mft

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

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
	MGID MGID       // not valid: NewIDs chooses one
	MLID fabric.LID // 0: a free one is taken
	// Receivers and Senders are end ports, ascending and without repetition:
	// ports of CAs and routers, and ports 0 of switches. A sender need not be
	// a receiver.
	Receivers []fabric.PortID
	Senders   []fabric.PortID
	SL        fabric.SL
}

// Tree is the use of one MLID: some senders of a group, and all its
// receivers. A group has several trees if its senders cannot share a mask.
type Tree struct {
	Group     int // index of the group
	Name      string
	MGID      MGID
	MLID      fabric.LID
	Senders   []fabric.PortID // ascending
	Receivers []fabric.PortID // ascending
	SL        fabric.SL
	Scheme    string // by its name on the command line
	// Why has the reasons of the schemes that refused the group before, as
	// "union-row: reason"; empty if this scheme was the first.
	Why []string
}

// Plan is the result of a scheme.
type Plan struct {
	Trees  []Tree // by MLID, ascending
	Tables *Tables
	// Unserved has the indices, ascending, of groups that got no MLID and are
	// left to repeated unicast.
	Unserved []int
	// Notes tell what did not fit: groups that step down to another scheme or
	// share an MLID, and stray copies.
	Notes []string
}

// NewPlan makes a plan of one scheme with one MLID for each group, which is set; masks has the
// ports in each group's masks, ascending.
func NewPlan(f *fabric.Fabric, scheme string, groups []Group, masks [][]fabric.PortID) *Plan {
	a := newAssembly(f, groups, nil)
	for i := range groups {
		g := &groups[i]
		a.masks[g.MLID] = masks[i]
		a.addTree(i, g.MGID, scheme, nil, g.Senders, g.MLID)
	}
	return a.plan()
}

// Entry is a tree in groups.json and in the JSON document of compile.
type Entry struct {
	Name      string       `json:"name"`
	MGID      MGID         `json:"mgid"`
	MLID      fabric.LID   `json:"mlid"`
	Senders   []fabric.LID `json:"senders"`   // base LIDs, ascending
	Receivers []fabric.LID `json:"receivers"` // base LIDs, ascending
	Scheme    string       `json:"scheme"`
	// Why has the reasons of the schemes that refused the group before; only the first Entry of a
	// group has it.
	Why string    `json:"why,omitempty"`
	SL  fabric.SL `json:"sl,omitempty"`
	// Shared is true if another MGID has the same MLID. OpenSM never shares
	// MLIDs: only a program that writes the switches' tables can install it.
	Shared bool `json:"shared_mlid,omitempty"`
}

// Entries returns an Entry for each tree, in the order of the trees, or an
// error for an end port without a LID.
func Entries(f *fabric.Fabric, trees []Tree) ([]Entry, error) {
	mgid := make(map[fabric.LID]MGID, len(trees))
	shared := make(map[fabric.LID]bool)
	told := make(map[int]bool)
	ports := 0
	for i := range trees {
		t := &trees[i]
		if first, ok := mgid[t.MLID]; !ok {
			mgid[t.MLID] = t.MGID
		} else if first != t.MGID {
			shared[t.MLID] = true
		}
		ports += len(t.Senders) + len(t.Receivers)
	}
	lids := make([]fabric.LID, 0, ports)
	take := func(list []fabric.PortID) ([]fabric.LID, error) {
		from := len(lids)
		for _, p := range list {
			l := f.LID(p)
			if l == 0 {
				return nil, fmt.Errorf("%s has no LID", f.PortName(p))
			}
			lids = append(lids, l)
		}
		return lids[from:len(lids):len(lids)], nil
	}
	entries := make([]Entry, len(trees))
	for i := range trees {
		t := &trees[i]
		e := Entry{Name: t.Name, MGID: t.MGID, MLID: t.MLID, Scheme: t.Scheme, SL: t.SL, Shared: shared[t.MLID]}
		if !told[t.Group] {
			e.Why, told[t.Group] = strings.Join(t.Why, "; "), true
		}
		var err error
		if e.Senders, err = take(t.Senders); err == nil {
			e.Receivers, err = take(t.Receivers)
		}
		if err != nil {
			return nil, fmt.Errorf("group %q: %w", t.Name, err)
		}
		slices.Sort(e.Senders)
		slices.Sort(e.Receivers)
		entries[i] = e
	}
	return entries, nil
}

// AppendGroupsJSON appends groups.json: a JSON list with an Entry on each
// line. Errors are those of Entries.
func AppendGroupsJSON(b []byte, f *fabric.Fabric, trees []Tree) ([]byte, error) {
	entries, err := Entries(f, trees)
	if err != nil {
		return nil, err
	}
	b = append(b, '[')
	for i := range entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '\n')
		line, err := json.Marshal(&entries[i])
		if err != nil {
			return nil, err
		}
		b = append(b, line...)
	}
	return append(b, "\n]\n"...), nil
}
