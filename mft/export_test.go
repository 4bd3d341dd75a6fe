package mft

import "github.com/ibweave/ibweave/fabric"

// Inexact says why masks are not exact for a sender, "" when they are.
func Inexact(f *fabric.Fabric, ports []fabric.PortID, sender fabric.PortID, receivers []fabric.PortID) string {
	w := newMaskGraph(f)
	w.load(ports)
	return w.explainInexact(sender, receivers)
}
