package mft

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// Tables has the multicast forwarding tables of all switches: for each MLID,
// the switch ports in its masks. Empty masks take no memory.
type Tables struct {
	fab   *fabric.Fabric
	mlids []fabric.LID // ascending
	start []int64      // by index in mlids, and one more: where its ports begin
	ports []fabric.PortID
}

// NewTables makes empty tables.
func NewTables(f *fabric.Fabric) *Tables { return &Tables{fab: f, start: []int64{0}} }

// Add appends the masks of an MLID, which must be above all added before.
// ports are ports of switches, ascending and without repetition, and port 0
// of switches that are members themselves. Add copies ports.
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

// Fabric returns the fabric of the ports.
func (t *Tables) Fabric() *fabric.Fabric { return t.fab }

// MLIDs lists the MLIDs that were added, ascending, those with empty masks too.
func (t *Tables) MLIDs() []fabric.LID { return t.mlids }

// Ports lists all ports in the masks of an MLID, ascending, so switch by
// switch. It must not be changed.
func (t *Tables) Ports(mlid fabric.LID) []fabric.PortID {
	i, ok := slices.BinarySearch(t.mlids, mlid)
	if !ok {
		return nil
	}
	return t.PortsAt(i)
}

// PortsAt returns Ports of MLIDs()[i].
func (t *Tables) PortsAt(i int) []fabric.PortID {
	return t.ports[t.start[i]:t.start[i+1]:t.start[i+1]]
}

// Mask lists the ports of switch s in the mask of an MLID, ascending.
func (t *Tables) Mask(s fabric.NodeID, mlid fabric.LID) []fabric.PortID {
	ports := t.Ports(mlid)
	base := t.fab.PortBase(s)
	from, _ := slices.BinarySearch(ports, base)
	to, _ := slices.BinarySearch(ports, base+fabric.PortID(t.fab.Node(s).NumPorts)+1)
	return ports[from:to]
}

// EndPorts lists the end ports to which an MLID's masks lead, ascending: ports of CAs and routers,
// and ports 0 of switches.
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
