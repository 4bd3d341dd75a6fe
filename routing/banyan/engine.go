package banyan

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
)

// Engine routes banyan networks by destination tags: a packet to the input of a
// processor leaves the element of stage i by the output numbered as bit i of its
// address.
//
// An element routes forward to an address if forward paths lead from
// outputs of processors to the element and on to the address; all elements
// of the first stage do. Other elements send packets back towards the first
// stage, and the first element with a forward path turns them round. So the
// tags also give the shortest path between any two ports on the side of the
// inputs. An element sends back by one of its two input ports, chosen by
// the address and, with LMC, the number of the LID, so that return paths
// divide.
//
// The other LIDs, of the processors' outputs and of switches, are for management. They
// have the up*/down* routes of updown.Engine on SL 1 and VL 1. Packets by tags have SL 0
// and VL 0; they first go back, then only forward. So neither VL has a credit loop.
//
// Multicast trees of RegionTree only go forward, and are safe on SL 0.
type Engine struct{}

// The service levels of Engine.
const (
	tagSL        fabric.SL = 0
	managementSL fabric.SL = 1
)

// Name is "banyan".
func (Engine) Name() string { return "banyan" }

// Guarantee is Reachable and NoCreditLoop. Packets by tags take shortest paths.
func (Engine) Guarantee() lft.Guarantee { return lft.Reachable | lft.NoCreditLoop }

// Route takes O(switches x processors) on top of updown.Engine.
func (e Engine) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	w, err := Detect(f)
	if err != nil {
		return nil, &lft.DomainError{Engine: e.Name(), Reason: "it is no banyan network: " + err.Error()}
	}
	if opt.VLs == 1 {
		return nil, &lft.DomainError{Engine: e.Name(), Reason: "it takes 2 VLs, one for management packets, and may use 1"}
	}
	sl2vl, err := lft.IdentitySL2VL(f, max(2, opt.VLs))
	if err != nil {
		return nil, &lft.DomainError{Engine: e.Name(), Reason: err.Error()}
	}
	r, err := updown.Engine{}.Route(ctx, f, opt)
	if err != nil {
		return nil, err
	}
	for _, s := range f.Switches() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w.fillRow(s, r.Tables.Row(s))
	}
	sls := slices.Repeat([]fabric.SL{managementSL}, int(f.MaxLID())+1)
	for _, p := range w.Inputs {
		for lid := range f.LIDs(p) {
			sls[lid] = tagSL
		}
	}
	paths := lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
	paths.SetRow(sls, f.Switches()...)
	return &lft.Routing{
		Engine: e.Name(), Fabric: f, Tables: r.Tables, SL2VL: sl2vl, PathSLs: paths,
		Notes: []string{fmt.Sprintf("banyan network of %d stages, %d processors", w.Stages, w.Size())},
	}, nil
}

// fillRow fills the row of switch s for the LIDs of all inputs of processors.
func (w *Network) fillRow(s fabric.NodeID, row []fabric.PortNum) {
	f := w.Fabric
	stage, number := w.Position(s)
	for a, p := range w.Inputs {
		forward := number>>stage == a>>(stage+1)
		for lid := range f.LIDs(p) {
			if forward {
				row[lid] = fabric.PortNum(outputPort + a>>stage&1)
			} else {
				row[lid] = fabric.PortNum(inputPort + (a^int(lid-f.LID(p)))>>stage&1)
			}
		}
	}
}
