package plugin

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// NeedsQoS returns true if OpenSM should ask for SL-to-VL tables.
func (t *Tables) NeedsQoS() bool { return t.Routing.SL2VL != nil }

// HasPathSLs returns true if OpenSM should ask for the SLs of paths.
func (t *Tables) HasPathSLs() bool { return t.Routing.PathSLs != nil }

// SL2VL returns the SL-to-VL table of a node from its port in, 0 for a
// CA or router, to its port out. It is packed as on the wire: SL 0 in
// the upper half of the first byte (IBA 14.2.5.8). ok is false if the
// routing has no tables or lacks the node: OpenSM's own then stays.
func (t *Tables) SL2VL(node fabric.GUID, in, out fabric.PortNum) (table [lft.NumSLs / 2]uint8, ok bool) {
	if t == nil || t.Routing.SL2VL == nil {
		return table, false
	}
	n, ok := t.Fabric.NodeByGUID(node)
	if !ok {
		return table, false
	}
	if ports := t.Fabric.Node(n).NumPorts; in > ports || out > ports || !t.Fabric.IsSwitch(n) && out == 0 {
		return table, false
	}
	m := t.Routing.SL2VL.At(in, t.Fabric.Port(n, out))
	for i := range table {
		table[i] = uint8(m[2*i])<<4 | uint8(m[2*i+1])&15
	}
	return table, true
}

// PathSL returns the SL of the path from one end port to
// another, for OpenSM's answers to path record queries. ok is
// false if the routing leaves it open or does not know the LIDs.
func (t *Tables) PathSL(from, to fabric.LID) (sl fabric.SL, ok bool) {
	if t == nil || t.Routing.PathSLs == nil {
		return 0, false
	}
	at := t.Fabric.Attachment(t.Fabric.LIDPort(from))
	if at == fabric.NoPort || int(to) > int(t.Routing.PathSLs.MaxLID()) || t.Fabric.LIDPort(to) == fabric.NoPort {
		return 0, false
	}
	return t.Routing.PathSLs.Row(t.Fabric.Owner(at))[to], true
}

// arbitrationWeight is the weight of every VL, in units of 64 bytes (IBA 7.6.9.2): a
// packet of the largest MTU, 4096 bytes. Compiled directories have the same weight.
const arbitrationWeight = 64

// Arbitration is an entry of a VL arbitration table (IBA 14.2.5.9).
type Arbitration struct {
	VL     fabric.VL
	Weight uint8
}

// ArbitratesVLs returns true if OpenSM should ask for VL arbitration tables.
func (p *Plugin) ArbitratesVLs(t *Tables) bool {
	return t != nil && p.config != nil && p.config.VLArb == ArbitrationEqual && t.Routing.SL2VL != nil
}

// VLArb fills a block of the VL arbitration tables of all
// ports: blocks 0 and 1 have low priority, 2 and 3 high,
// as OpenSM counts them. It returns false if OpenSM's own
// tables stay: with vlarb: opensm, or a routing on one VL.
//
// All VLs that SLs map to have equal weights in the table of low priority. That of high priority is
// empty: OpenSM's default has VL 0 alone there, which would starve the others.
func (p *Plugin) VLArb(t *Tables, block int, entries []Arbitration) bool {
	if !p.ArbitratesVLs(t) {
		return false
	}
	clear(entries)
	if block != 0 {
		return true
	}
	for v := range min(t.Routing.SL2VL.VLs(), len(entries)) {
		entries[v] = Arbitration{VL: fabric.VL(v), Weight: arbitrationWeight}
	}
	return true
}

// Current returns the tables of the last successful Route, nil if there was none.
func (p *Plugin) Current() *Tables {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}
