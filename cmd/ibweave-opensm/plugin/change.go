package plugin

import (
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// maxChanged is the most things of a kind that a line about a change names.
const maxChanged = 3

// change names what a subnet lost and what came: nodes, each with all its cables,
// and cables between other nodes, such as: cable "leaf 1"[3] to "spine 2"[1].
type change struct {
	lost, came []string
	moved      int // end ports that have another LID
}

// changeBetween compares the fabrics of two routings.
func changeBetween(old, now *fabric.Fabric) change {
	c := change{lost: missing(old, now), came: missing(now, old)}
	for lid, p := range old.LIDPorts() {
		if p == fabric.NoPort || old.LID(p) != fabric.LID(lid) {
			continue
		}
		if q, ok := samePort(old, now, p); ok && now.LID(q) != old.LID(p) {
			c.moved++
		}
	}
	return c
}

// samePort returns the port of g with the node GUID and
// number of port p of f; false if none.
func samePort(f, g *fabric.Fabric, p fabric.PortID) (fabric.PortID, bool) {
	n, ok := g.NodeByGUID(f.Node(f.Owner(p)).GUID)
	if !ok || f.Num(p) > g.Node(n).NumPorts {
		return fabric.NoPort, false
	}
	return g.Port(n, f.Num(p)), true
}

// missing names the nodes of f that g lacks, switches first,
// then cables that eachLostCable yields.
func missing(f, g *fabric.Fabric) (list []string) {
	kinds := map[fabric.NodeType]string{fabric.Switch: "switch", fabric.CA: "host", fabric.Router: "router"}
	for n := range fabric.NodeID(f.NumNodes()) {
		if _, ok := g.NodeByGUID(f.Node(n).GUID); !ok {
			list = append(list, fmt.Sprintf("%s %s", kinds[f.Node(n).Type], f.Name(n)))
		}
	}
	eachLostCable(f, g, func(p fabric.PortID) {
		list = append(list, fmt.Sprintf("cable %s to %s", f.PortName(p), f.PortName(f.Peer(p))))
	})
	return list
}

// eachLostCable yields one port of each cable of f that g lacks, though it has both nodes.
func eachLostCable(f, g *fabric.Fabric, yield func(fabric.PortID)) {
	there := make([]bool, f.NumNodes())
	for n := range fabric.NodeID(f.NumNodes()) {
		_, there[n] = g.NodeByGUID(f.Node(n).GUID)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		peer := f.Peer(p)
		if peer == fabric.NoPort || peer < p || !there[f.Owner(p)] || !there[f.Owner(peer)] {
			continue
		}
		a, ok := samePort(f, g, p)
		b, too := samePort(f, g, peer)
		if !ok || !too || g.Peer(a) != b {
			yield(p)
		}
	}
}

// String names what changed, the first few of each kind; "" for nothing.
func (c change) String() string {
	var parts []string
	if len(c.lost) > 0 {
		parts = append(parts, "lost "+text.Few(c.lost, maxChanged))
	}
	if len(c.came) > 0 {
		parts = append(parts, "new "+text.Few(c.came, maxChanged))
	}
	if c.moved > 0 {
		parts = append(parts, text.CountGrouped(c.moved, "port has another LID", "ports have other LIDs"))
	}
	return strings.Join(parts, "; ")
}
