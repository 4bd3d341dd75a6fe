package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// base is the JSON on the first line of Encode's output. After it come the forwarding tables,
// switch by switch, a byte for each LID.
type base struct {
	Engine string     `json:"engine"`
	Order  []int32    `json:"order"`
	MaxLID fabric.LID `json:"max_lid"`

	Fabric string `json:"fabric"` // as package topology writes it, with labels
	// Names has the names of all nodes, and Kinds the kinds of all but switches.
	Names map[fabric.GUID]string `json:"names,omitempty"`
	Kinds []fabric.KindRule      `json:"kinds,omitempty"`
}

// Encode packs tables in force for Decode. Errors: tables on several virtual lanes.
func Encode(e *compile.Engine, r *lft.Routing) ([]byte, error) {
	if r.SL2VL != nil {
		return nil, fmt.Errorf("the tables use %s: want tables on one lane", text.Count(r.SL2VL.VLs(), "virtual lane", "virtual lanes"))
	}
	f := r.Fabric
	h := base{Engine: e.Name(), Order: r.Order, MaxLID: r.Tables.MaxLID(), Fabric: string(topology.AppendLabelled(nil, f)), Names: make(map[fabric.GUID]string)}
	for _, n := range f.Nodes() {
		guid := f.Node(n).GUID
		h.Names[guid] = f.Name(n).Text
		if !f.IsSwitch(n) {
			h.Kinds = append(h.Kinds, fabric.KindRule{Kind: f.Kind(n), Pattern: guid.String()})
		}
	}
	data, err := json.Marshal(&h)
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	for _, s := range f.Switches() {
		for _, num := range r.Tables.Row(s) {
			data = append(data, byte(num))
		}
	}
	return data, nil
}

// Decode begins a session from the output of Encode. Errors: other data, and those of New.
func Decode(ctx context.Context, data []byte) (*Session, error) {
	line, rows, _ := bytes.Cut(data, []byte("\n"))
	var h base
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("packed tables: %w", err)
	}
	f, err := topology.ParseWritten("packed tables", []byte(h.Fabric))
	if err != nil {
		return nil, err
	}
	f, _ = f.WithNames(h.Names).WithKinds(h.Kinds)
	width := int(h.MaxLID) + 1
	switch {
	case h.MaxLID < f.MaxLID() || len(rows) != f.NumSwitches()*width:
		return nil, fmt.Errorf("packed tables: %d entries for %d switches and LIDs up to %d", len(rows), f.NumSwitches(), h.MaxLID)
	case h.Order != nil && !isOrder(h.Order, f.NumSwitches()):
		return nil, fmt.Errorf("packed tables: want the ranks 0 to %d, each of one switch", f.NumSwitches()-1)
	}
	e, err := compile.EngineByName(h.Engine)
	if err != nil {
		return nil, fmt.Errorf("packed tables: %w", err)
	}
	r := &lft.Routing{Engine: h.Engine, Fabric: f, Tables: lft.NewTables(f.NumSwitches(), h.MaxLID), Order: h.Order}
	for _, s := range f.Switches() {
		row := r.Tables.Row(s)
		for lid, num := range rows[int(s)*width : (int(s)+1)*width] {
			row[lid] = fabric.PortNum(num)
		}
	}
	return New(ctx, e, r)
}

// isOrder returns true if ranks has each number below n once.
func isOrder(ranks []int32, n int) bool {
	sorted := slices.Sorted(slices.Values(ranks))
	for i, rank := range sorted {
		if int(rank) != i {
			return false
		}
	}
	return len(sorted) == n
}
