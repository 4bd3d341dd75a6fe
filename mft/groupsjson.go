package mft

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// Entry is a tree in groups.json and in the JSON document of compile.
type Entry struct {
	Name      string       `json:"name"`
	MGID      MGID         `json:"mgid"`
	MLID      fabric.LID   `json:"mlid"`
	Senders   []fabric.LID `json:"senders"`   // base LIDs, ascending
	Receivers []fabric.LID `json:"receivers"` // base LIDs, ascending
	Scheme    string       `json:"scheme"`
	// Why is what the schemes said that come before this one by default, in the first
	// Entry of a group.
	Why string    `json:"why,omitempty"`
	SL  fabric.SL `json:"sl,omitempty"`
	// Shared says that another MGID has the same MLID, which OpenSM never
	// does: only a program that writes the switches' tables can install it.
	Shared bool `json:"shared_mlid,omitempty"`
}

// Entries is one Entry for each tree, in the order of the trees. An end port
// without a LID is an error.
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
