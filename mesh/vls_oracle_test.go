package mesh

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// delivery is the switch that has an end port, or a cable to it, and the port
// by which the switch delivers; NoNode when no switch does.
func delivery(f *fabric.Fabric, port fabric.PortID) (fabric.NodeID, fabric.PortNum) {
	exit := f.Attachment(port)
	if exit == fabric.NoPort {
		return fabric.NoNode, 0
	}
	return f.Owner(exit), f.Num(exit)
}

// AddVLs is r with tables for vls data VLs, for combs with a trunk on each (see
// Comb.VLs). Where all paths may use any SL, so they may afterwards, and SL k is
// VL k modulo vls everywhere. Where paths have SLs, these stay, with their VLs,
// and between switches the SLs that follow the highest one of any path are the
// VLs that are left, each the same VL everywhere: no unicast packets are on
// those. r does not change. A routing on one VL gets such VLs when it has path
// SLs, as those of lft.NewPathSLs, which are all 0.
//
// Errors are lft.CheckVLCount's, or say that the paths leave no VL or SL.
func AddVLs(r *lft.Routing, vls int) (*lft.Routing, error) {
	if err := lft.CheckVLCount(vls); err != nil {
		return nil, err
	}
	x, f := *r, r.Fabric
	switch {
	case r.SL2VL == nil && r.PathSLs == nil:
		x.SL2VL = lft.NewSL2VL(f, lft.IdentityVLs(vls))
		return &x, nil
	case r.SL2VL == nil:
		x.SL2VL = lft.NewSL2VL(f, lft.ConstantVL(0))
	case r.PathSLs == nil:
		return nil, fmt.Errorf("routing %s has SL-to-VL tables, and its paths may use any SL: none is left for more VLs", r.Engine)
	default:
		x.SL2VL = r.SL2VL.Clone()
	}
	inUse, sl := x.SL2VL.VLs(), firstFreeSL(r.PathSLs)
	switch {
	case vls <= inUse:
		return nil, fmt.Errorf("routing %s has %d VLs, which leaves none of %d", r.Engine, inUse, vls)
	case sl+vls-inUse > lft.NumSLs:
		return nil, fmt.Errorf("routing %s has %d SLs, of %d, which is too many for %d VLs more", r.Engine, sl, lft.NumSLs, vls-inUse)
	}
	for in, out := range x.SL2VL.PortPairs() {
		if peer := f.Peer(out); !f.IsSwitch(f.Owner(out)) || !f.IsSwitch(f.Owner(peer)) {
			continue
		}
		m := *x.SL2VL.At(in, out)
		for vl := inUse; vl < vls; vl++ {
			m[sl+vl-inUse] = fabric.VL(vl)
		}
		x.SL2VL.Set(in, out, m)
	}
	return &x, nil
}
