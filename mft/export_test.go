package mft

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// Verdict is what the flood of mixtures says of masks that do not change:
// loop, lose, duplicate or ok, the first of them that happens to a packet from
// sender.
func Verdict(f *fabric.Fabric, ports []fabric.PortID, sender fabric.PortID, receivers []fabric.PortID) string {
	w := newMixtures(f)
	w.load(MinMLID, ports, ports)
	what, _ := w.flood(f.Attachment(sender), true)
	lost := 0
	for _, p := range receivers {
		if i, in := slices.BinarySearch(w.ports, f.Attachment(p)); p != sender && (!in || w.cover[i] == 0) {
			lost++
		}
	}
	switch {
	case what == loop:
		return "loop"
	case lost > 0:
		return "lose"
	case what == duplicate:
		return "duplicate"
	}
	return "ok"
}

// Inexact says why masks are not exact for a sender, "" when they are.
func Inexact(f *fabric.Fabric, ports []fabric.PortID, sender fabric.PortID, receivers []fabric.PortID) string {
	w := newMaskGraph(f)
	w.load(ports)
	return w.explainInexact(sender, receivers)
}
