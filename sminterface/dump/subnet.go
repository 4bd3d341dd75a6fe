package dump

import (
	"io"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
)

// nodeWords are the types of nodes in records.
var nodeWords = [...]string{fabric.CA: "CA", fabric.Switch: "SW", fabric.Router: "Rt"}

// revision is the Rev of every record: NodeInfo's Revision
// in ibsim, since the fabric does not keep it.
const revision = "000000A1"

// WriteSubnetList writes opensm-subnet.lst, as osm_dump.c does: a line for each port with a
// cable, with the port and its neighbour. The two records of a line differ: the second has eight
// digits for VenID, and in DevID OpenSM shifts the device ID up by 16 bits.
//
// Where the fabric knows no width or speed, and for 2x links, OpenSM's ?? is printed; NDR and
// XDR links have ibdiagnet's 100 and 200. All links are active. Rev is constant. FDR10 is
// printed for both ends, while OpenSM sees it only on ports of devices that it knows to support
// it. OpenSM's mark -SM for the node of the master subnet manager is left out. The only errors
// are those of w.
func WriteSubnetList(w io.Writer, f *fabric.Fabric) error {
	nodes := f.Nodes()
	inOpenSMOrder(f, nodes)
	return writeBatches(w, nodes, func(b []byte, n fabric.NodeID) []byte {
		for p := fabric.PortNum(1); p <= f.Node(n).NumPorts; p++ {
			port := f.Port(n, p)
			peer := f.Peer(port)
			if peer == fabric.NoPort {
				continue
			}
			link := f.Link(port)
			b = appendRecord(b, f, port, false)
			b = append(b, ' ')
			b = appendRecord(b, f, peer, true)
			b = append(b, " PHY="...)
			switch link.Width {
			case 1, 4, 8, 12:
				b = append(strconv.AppendUint(b, uint64(link.Width), 10), 'x')
			default: // 2x, which OpenSM does not know either
				b = append(b, "??"...)
			}
			b = append(append(b, " LOG=ACT SPD="...), topology.SubnetSpeeds[link.Speed]...)
			b = append(b, '\n')
		}
		return b
	})
}

// appendRecord appends the record of a port, in braces; second is true for the neighbour's.
func appendRecord(b []byte, f *fabric.Fabric, p fabric.PortID, second bool) []byte {
	n := f.Owner(p)
	node := f.Node(n)
	end := p // port with the GUID and the LID
	if f.IsSwitch(n) {
		end = f.PortBase(n)
	}
	b = append(append(b, "{ "...), nodeWords[node.Type]...)
	b = appendHex(append(b, " Ports:"...), uint64(node.NumPorts), 2, upperHex)
	b = node.SystemGUID.AppendDigits(append(b, " SystemGUID:"...))
	b = node.GUID.AppendDigits(append(b, " NodeGUID:"...))
	b = f.PortGUID(end).AppendDigits(append(b, " PortGUID:"...))
	vendorDigits, device := 6, uint64(node.DeviceID)
	if second {
		vendorDigits, device = 8, device<<16
	}
	b = appendHex(append(b, " VenID:"...), uint64(node.VendorID), vendorDigits, upperHex)
	b = appendHex(append(b, " DevID:"...), device, 4, upperHex)
	b = append(b, " Rev:"+revision+" {"...)
	b = appendDescription(b, node.Description)
	b = appendHex(append(b, "} LID:"...), uint64(f.LID(end)), 4, upperHex)
	b = appendHex(append(b, " PN:"...), uint64(f.Num(p)), 2, upperHex)
	return append(b, " }"...)
}
