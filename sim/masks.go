package sim

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// denseMasks is up to how many pairs of a switch and an MLID the place of the
// mask is kept for each: 128 MB.
const denseMasks = 1 << 25

// masks finds the multicast mask of a switch fast.
type masks struct {
	tables   *mft.Tables
	switches int
	mlids    []fabric.LID
	first    fabric.LID
	index    []int32           // by MLID from first on: its row, or none
	ports    [][]fabric.PortID // by row
	start    []int32           // by row and switch, a switch more: its part of ports; nil when that is too much
}

func newMasks(f *fabric.Fabric, t *mft.Tables) masks {
	m := masks{tables: t, switches: f.NumSwitches()}
	if t == nil || len(t.MLIDs()) == 0 {
		return m
	}
	m.mlids = t.MLIDs()
	m.first = m.mlids[0]
	m.index = make([]int32, int(m.mlids[len(m.mlids)-1]-m.first)+1)
	for i := range m.index {
		m.index[i] = none
	}
	m.ports = make([][]fabric.PortID, len(m.mlids))
	for i, l := range m.mlids {
		m.index[l-m.first] = int32(i)
		m.ports[i] = t.Ports(l)
	}
	width := m.switches + 1
	if len(m.mlids)*width > denseMasks {
		return m
	}
	m.start = make([]int32, len(m.mlids)*width)
	for i, ports := range m.ports {
		row := m.start[i*width : (i+1)*width]
		at := 0
		for sw := range m.switches {
			for at < len(ports) && int(f.Owner(ports[at])) < sw {
				at++
			}
			row[sw] = int32(at)
		}
		row[m.switches] = int32(len(ports))
	}
	return m
}

// of is the ports of switch s in the mask of an MLID, ascending.
func (m *masks) of(s fabric.NodeID, mlid fabric.LID) []fabric.PortID {
	if mlid < m.first || int(mlid-m.first) >= len(m.index) {
		return nil
	}
	i := m.index[mlid-m.first]
	if i == none {
		return nil
	}
	if m.start == nil {
		return m.tables.Mask(s, mlid)
	}
	at := int(i)*(m.switches+1) + int(s)
	return m.ports[i][m.start[at]:m.start[at+1]]
}
