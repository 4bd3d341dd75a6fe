package topology

import "github.com/ibweave/ibweave/fabric"

// agreed makes the fabric of lines that leave nothing to be settled, as those that
// ibnetdiscover prints: every cable is there at both ends, with one width and speed,
// CA ports state their GUIDs, and what lines say of their neighbours is what those
// say themselves. It changes nothing, and gives nil for all else, which match and
// the others then settle, and for what they refuse.
func (p *parser) agreed() *fabric.Fabric {
	slots := len(p.slots)
	x := fabric.Parts{
		Nodes: make([]fabric.Node, len(p.nodes)), Peer: make([]fabric.PortID, slots), GUID: make([]fabric.GUID, slots),
		LID: make([]fabric.LID, slots), LMC: make([]uint8, slots), Link: make([]fabric.Link, slots),
	}
	for i := range x.Peer {
		x.Peer[i] = fabric.NoPort
	}
	text := string(p.desc)
	for i := range p.nodes {
		n, to := &p.nodes[i], &x.Nodes[i]
		to.GUID, to.SystemGUID, to.Type, to.NumPorts = n.guid, n.system, n.kind, n.ports
		to.EnhancedPort0, to.VendorID, to.DeviceID = n.enhanced0, n.vendor, n.device
		to.Description = text[n.descFrom:n.descTo]
		if n.kind == fabric.Switch {
			x.GUID[n.base], x.LID[n.base], x.LMC[n.base] = n.portGUID, n.lid, n.lmc
			if n.portGUID == 0 {
				x.GUID[n.base] = n.guid
			}
			continue
		}
		for num := range int(n.ports) + 1 { // ports without a line
			if num > 0 {
				x.GUID[n.base+num] = n.guid + fabric.GUID(num)
			}
		}
	}
	peer := int32(0) // node at the other end of the last cable
	for i := range p.ports {
		l := &p.ports[i]
		n := &p.nodes[l.node]
		here := n.base + int(l.num)
		if x.Peer[here] != fabric.NoPort {
			continue // the other end found it
		}
		// Cables often lead from one node to the next, or to several in a row.
		id := l.peer()
		if next := peer + 1; int(next) < len(p.nodes) && p.nodes[next].id == id {
			peer = next
		} else if p.nodes[peer].id != id {
			if peer = p.find(id); peer < 0 {
				return nil
			}
		}
		m := &p.nodes[peer]
		if l.peerNum > m.ports {
			return nil
		}
		there := m.base + int(l.peerNum)
		at := p.slots[there] - 1
		if at < 0 || here == there {
			return nil
		}
		b := &p.ports[at]
		if b.peerID != n.id.value || b.peerKind != n.id.kind || b.peerNum != l.num || b.link != l.link {
			return nil
		}
		if !agrees(n, l, b) || !agrees(m, b, l) {
			return nil
		}
		if n.kind != fabric.Switch {
			x.GUID[here], x.LID[here], x.LMC[here] = l.guid, l.lid, l.lmc
		}
		if m.kind != fabric.Switch {
			x.GUID[there], x.LID[there], x.LMC[there] = b.guid, b.lid, b.lmc
		}
		x.Peer[here], x.Peer[there] = fabric.PortID(there), fabric.PortID(here)
		x.Link[here], x.Link[there] = l.link, l.link
	}
	if !p.distinct(x.GUID, x.Peer) {
		return nil
	}
	f, err := x.Build()
	if err != nil {
		return nil
	}
	return f
}

// agrees says whether nothing is to be settled of the end port that line l of node n
// speaks of, b being the line of the other end.
func agrees(n *node, l, b *portLine) bool {
	if n.kind == fabric.Switch {
		return b.peerLID == 0 || b.peerLID == n.lid
	}
	return l.guid != 0 && (b.peerGUID == 0 || b.peerGUID == l.guid) && (b.peerLID == 0 || b.peerLID == l.lid)
}

// distinct says whether no two switches and CA ports with cables have one GUID.
func (p *parser) distinct(guid []fabric.GUID, peer []fabric.PortID) bool {
	var seen fabric.GUIDIndex
	seen.Grow(len(p.nodes))
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.kind == fabric.Switch {
			if seen.Add(guid[n.base], 0) >= 0 {
				return false
			}
			continue
		}
		for s := n.base + 1; s <= n.base+int(n.ports); s++ {
			if peer[s] != fabric.NoPort && seen.Add(guid[s], 0) >= 0 {
				return false
			}
		}
	}
	return true
}
