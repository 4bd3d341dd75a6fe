package lft

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// AddVirtualLIDs gives LIDs of virtual ports the entries and path SLs of the ports that they
// are on, which have LIDs: packets to both take the same paths. Errors are those of
// fabric.WithVirtualLIDs.
func (r *Routing) AddVirtualLIDs(ports map[fabric.LID]fabric.PortID) error {
	f, err := r.Fabric.WithVirtualLIDs(ports)
	if err != nil || f == r.Fabric {
		return err
	}
	t := NewTables(r.Tables.Switches(), max(r.Tables.MaxLID(), f.MaxLID()))
	for s := range fabric.NodeID(t.Switches()) {
		row := t.Row(s)
		copy(row, r.Tables.Row(s))
		for l, p := range ports {
			row[l] = row[f.LID(p)]
		}
	}
	if r.PathSLs != nil {
		r.PathSLs = r.PathSLs.withVirtual(f, ports)
	}
	r.Fabric, r.Tables = f, t
	return nil
}

// withVirtual is p with the LIDs of virtual ports.
func (p *PathSLs) withVirtual(f *fabric.Fabric, ports map[fabric.LID]fabric.PortID) *PathSLs {
	q := *p
	q.maxLID, q.rows = max(p.maxLID, f.MaxLID()), nil
	for _, row := range p.rows {
		wide := slices.Concat(row.given, make([]fabric.SL, q.maxLID-p.maxLID))
		for l, at := range ports {
			wide[l] = wide[f.LID(at)]
		}
		q.add(wide)
	}
	return &q
}
