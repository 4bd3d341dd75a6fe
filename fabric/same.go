package fabric

import "slices"

// SameNodes says whether two fabrics have the same nodes with the same ports, so that
// a PortID means the same port in both. Cables, LIDs and descriptions may differ.
func SameNodes(a, b *Fabric) bool {
	if a == b {
		return true
	}
	return a.switches == b.switches && slices.EqualFunc(a.nodes, b.nodes, func(x, y Node) bool {
		return x.GUID == y.GUID && x.Type == y.Type && x.NumPorts == y.NumPorts
	})
}

// SameTopology says whether two fabrics have the same nodes and the same cables. LIDs,
// descriptions, labels, widths and speeds may differ.
func SameTopology(a, b *Fabric) bool {
	return a == b || SameNodes(a, b) && slices.Equal(a.peer, b.peer)
}
