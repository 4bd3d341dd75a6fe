package mft

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// Tables is the multicast forwarding tables of all switches: for each MLID the
// ports of switches that are in its masks. Only masks with a port take memory.
type Tables struct {
	fab   *fabric.Fabric
	mlids []fabric.LID // ascending
	start []int64      // by index in mlids, one more: its part of ports
	ports []fabric.PortID
}

// NewTables makes empty tables.
func NewTables(f *fabric.Fabric) *Tables { return &Tables{fab: f, start: []int64{0}} }

// Add appends the masks of an MLID, which must be above those added before:
// ports are ports of switches, ascending and without repetition, port 0 where
// the switch itself is a member. It keeps no reference to ports.
func (t *Tables) Add(mlid fabric.LID, ports []fabric.PortID) {
	if mlid < MinMLID || mlid > MaxMLID {
		panic(fmt.Sprintf("mft: MLID %#x", uint16(mlid)))
	}
	if n := len(t.mlids); n > 0 && t.mlids[n-1] >= mlid {
		panic(fmt.Sprintf("mft: MLID %#x after %#x", uint16(mlid), uint16(t.mlids[n-1])))
	}
	t.mlids = append(t.mlids, mlid)
	t.ports = append(t.ports, ports...)
	t.start = append(t.start, int64(len(t.ports)))
}

// Fabric is the fabric whose ports are in the masks.
func (t *Tables) Fabric() *fabric.Fabric { return t.fab }

// MLIDs is the MLIDs that were added, ascending, those with empty masks too.
func (t *Tables) MLIDs() []fabric.LID { return t.mlids }

// Ports is all ports in the masks of an MLID, ascending, and therefore switch
// by switch. It must not be changed.
func (t *Tables) Ports(mlid fabric.LID) []fabric.PortID {
	i, ok := slices.BinarySearch(t.mlids, mlid)
	if !ok {
		return nil
	}
	return t.PortsAt(i)
}

// PortsAt is Ports of the MLID with index i in MLIDs.
func (t *Tables) PortsAt(i int) []fabric.PortID {
	return t.ports[t.start[i]:t.start[i+1]:t.start[i+1]]
}

// Mask is the ports of switch s in the mask of an MLID, ascending.
func (t *Tables) Mask(s fabric.NodeID, mlid fabric.LID) []fabric.PortID {
	ports := t.Ports(mlid)
	base := t.fab.PortBase(s)
	from, _ := slices.BinarySearch(ports, base)
	to, _ := slices.BinarySearch(ports, base+fabric.PortID(t.fab.Node(s).NumPorts)+1)
	return ports[from:to]
}

// EndPorts lists the end ports behind the ports of an MLID, ascending: CAs and routers, and ports 0 of
// switches.
func (t *Tables) EndPorts(m fabric.LID) (list []fabric.PortID) {
	f := t.Fabric()
	for _, p := range t.Ports(m) {
		if q := f.Peer(p); f.Num(p) == fabric.ManagementPort {
			list = append(list, p)
		} else if q != fabric.NoPort && !f.IsSwitch(f.Owner(q)) {
			list = append(list, q)
		}
	}
	slices.Sort(list)
	return list
}
