package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// base is the first line of what Encode makes, as JSON. After it come the forwarding tables, switch
// by switch, a byte for each LID.
type base struct {
	Engine string     `json:"engine"`
	Order  []int32    `json:"order"`
	MaxLID fabric.LID `json:"max_lid"`

	Nodes  []fabric.Node  `json:"nodes"`
	Ports  []basePort     `json:"ports"` // of all nodes, from port 0 on
	Cables []fabric.Cable `json:"cables"`
	// Names are those of nodes that are not called by their descriptions, Kinds those that these
	// do not give.
	Names map[fabric.GUID]string `json:"names,omitempty"`
	Kinds []fabric.KindRule      `json:"kinds,omitempty"`
}

type basePort struct {
	GUID  fabric.GUID `json:"g,omitempty"`
	LID   fabric.LID  `json:"l,omitempty"`
	LMC   uint8       `json:"m,omitempty"`
	Label string      `json:"t,omitempty"`
}

// Encode packs tables in force for Decode. Errors: tables on several virtual lanes.
func Encode(e *compile.Engine, r *lft.Routing) ([]byte, error) {
	if r.SL2VL != nil {
		return nil, fmt.Errorf("the tables use %s: want tables on one lane", text.Count(r.SL2VL.VLs(), "virtual lane", "virtual lanes"))
	}
	f := r.Fabric
	h := base{Engine: e.Name(), Order: r.Order, MaxLID: r.Tables.MaxLID(), Cables: f.Cables(), Names: make(map[fabric.GUID]string)}
	for n := range fabric.NodeID(f.NumNodes()) {
		node := f.Node(n)
		h.Nodes = append(h.Nodes, *node)
		if name := f.Name(n).Text; name != node.Description {
			h.Names[node.GUID] = name
		}
		if !f.IsSwitch(n) {
			h.Kinds = append(h.Kinds, fabric.KindRule{Kind: f.Kind(n), Pattern: node.GUID.String()})
		}
	}
	for p := range fabric.PortID(f.NumPorts()) {
		h.Ports = append(h.Ports, basePort{f.PortGUID(p), f.LID(p), f.LMC(p), f.Label(p)})
	}
	data, err := json.Marshal(&h)
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	for s := range fabric.NodeID(f.NumSwitches()) {
		for _, num := range r.Tables.Row(s) {
			data = append(data, byte(num))
		}
	}
	return data, nil
}

// build makes the fabric.
func (h *base) build() (*fabric.Fabric, error) {
	var b fabric.Builder
	at := 0
	for i := range h.Nodes {
		if _, err := b.AddNode(h.Nodes[i]); err != nil {
			return nil, err
		}
		for num := range h.Nodes[i].NumPorts + 1 {
			if at == len(h.Ports) {
				return nil, fmt.Errorf("%d ports, want more", at)
			}
			p := h.Ports[at]
			at++
			var err error
			if p.LID != 0 || p.GUID != 0 {
				err = b.SetPort(i, num, p.GUID, p.LID, p.LMC)
			}
			if err == nil && p.Label != "" {
				err = b.SetLabel(i, num, p.Label)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	f, err := b.Build()
	if err != nil {
		return nil, err
	}
	for _, c := range h.Cables {
		if min(c.A, c.B) < 0 || int(max(c.A, c.B)) >= f.NumPorts() {
			return nil, fmt.Errorf("a cable between ports %d and %d of %d", c.A, c.B, f.NumPorts())
		}
	}
	f, _ = f.WithNames(h.Names).WithKinds(h.Kinds)
	return f.WithCables(h.Cables)
}

// Decode begins a session with what Encode packed. Errors: data that it did not, and those of New.
func Decode(ctx context.Context, data []byte) (*Session, error) {
	line, rows, _ := bytes.Cut(data, []byte("\n"))
	var h base
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("packed tables: %w", err)
	}
	f, err := h.build()
	if err != nil {
		return nil, fmt.Errorf("packed tables: %w", err)
	}
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
	for s := range fabric.NodeID(f.NumSwitches()) {
		row := r.Tables.Row(s)
		for lid, num := range rows[int(s)*width : (int(s)+1)*width] {
			row[lid] = fabric.PortNum(num)
		}
	}
	return New(ctx, e, r)
}

// isOrder says whether each of n ranks is there once.
func isOrder(ranks []int32, n int) bool {
	sorted := slices.Sorted(slices.Values(ranks))
	for i, rank := range sorted {
		if int(rank) != i {
			return false
		}
	}
	return len(sorted) == n
}
