package gen

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// Failure is a thing that fails, for benchmarks.
type Failure struct {
	Name   string
	Cables []fabric.PortID // that are gone then
}

// FatTreeFailures is one failure of each kind in the middle of a fat tree of three
// levels and full (FatTree): a cable between a leaf and a spine, one between a spine and a
// core switch, a leaf with its hosts, a spine, and a core switch.
func FatTreeFailures(f *fabric.Fabric, radix int) []Failure {
	half := radix / 2
	pods := radix
	// In the order of GUIDs: all leaves, all spines, then the core switches.
	leaf := fabric.NodeID(pods/2*half + half/2)
	spine := fabric.NodeID(pods*half + pods/2*half + half/2)
	core := fabric.NodeID(2*pods*half + half/2*half + half/2)
	between := func(s, t fabric.NodeID) []fabric.PortID {
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			if to[i] == t {
				return []fabric.PortID{p}
			}
		}
		return nil
	}
	all := func(s fabric.NodeID) []fabric.PortID { return slices.Collect(f.Cabled(s)) }
	return []Failure{
		{"leaf-spine", between(leaf, spine)},
		{"spine-core", between(spine, core)},
		{"leaf", all(leaf)},
		{"spine", all(spine)},
		{"core", all(core)},
	}
}
