package banyan

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// RegionTree gives each group one MLID for all its senders, with masks that send packets
// where a region header would. Senders must be outputs of processors of a banyan network,
// receivers inputs.
//
// What a header does at an element depends only on the address bits above its stage, which
// are the same wherever the packet comes from. So the masks suit every sender; they have
// no input port, so no packet goes back. Masks can do more than a header: the receivers
// need not be a region.
//
// All copies go forward, stage by stage. They close no credit loop with packets of Engine
// on SL 0 if switches copy as in InfiniBand, each copy by itself out of a buffer with room
// for the whole packet. With smaller buffers they may deadlock, see RunWorms.
type RegionTree struct{}

// Name is "region".
func (RegionTree) Name() string { return "region" }

// Build takes O(ports) once, and for each group a sort of its members and O(elements with
// masks).
func (t RegionTree) Build(ctx context.Context, r *lft.Routing, groups []mft.Group, opt mft.Options) (*mft.Plan, error) {
	named, err := mft.AssignIDs(groups, opt)
	if err != nil {
		return nil, err
	}
	if len(groups) == 0 {
		return mft.NewPlan(r.Fabric, t.Name(), nil, nil), nil
	}
	w, err := Detect(r.Fabric)
	if err != nil {
		return nil, t.refuse(&groups[0], "this is no banyan network: "+err.Error())
	}
	masks := make([][]fabric.PortID, len(groups))
	for i := range named {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g := &named[i]
		from, err := t.findAddresses(w, g, g.Senders, true)
		if err != nil {
			return nil, err
		}
		to, err := t.findAddresses(w, g, g.Receivers, false)
		if err != nil {
			return nil, err
		}
		masks[i] = w.listMaskPorts(from, to)
	}
	return mft.NewPlan(r.Fabric, t.Name(), named, masks), nil
}

func (t RegionTree) refuse(g *mft.Group, reason string) error {
	return &mft.RefusedError{Scheme: t.Name(), Group: g.Name, Reason: reason, Suggest: []string{mft.UpdnTree{}.Name()}}
}

// findAddresses lists, ascending, the addresses of the processors that send (or, if sends
// is false, receive) by these ports.
func (t RegionTree) findAddresses(w *Network, g *mft.Group, ports []fabric.PortID, sends bool) ([]int, error) {
	list := make([]int, len(ports))
	for i, p := range ports {
		a, out := w.Address(p)
		switch {
		case a < 0:
			return nil, t.refuse(g, fmt.Sprintf("%s is no port of a processor", w.Fabric.PortName(p)))
		case sends && !out:
			return nil, t.refuse(g, fmt.Sprintf("sender %s is where a processor receives", w.Fabric.PortName(p)))
		case !sends && out:
			return nil, t.refuse(g, fmt.Sprintf("receiver %s is where a processor sends", w.Fabric.PortName(p)))
		}
		list[i] = a
	}
	slices.Sort(list)
	return list, nil
}

// listMaskPorts lists the ports in the masks for packets between these addresses, both
// ascending. At stage i these are the output ports for bit i of the receivers, in all
// elements that the packets pass (InLink).
func (w *Network) listMaskPorts(from, to []int) []fabric.PortID {
	var ports []fabric.PortID
	var low, high []int
	for stage := range w.Stages {
		low, high = low[:0], high[:0]
		for _, a := range from {
			low = append(low, a&(1<<stage-1))
		}
		slices.Sort(low)
		low = slices.Compact(low)
		for _, d := range to {
			high = append(high, d>>stage)
		}
		high = slices.Compact(high)
		for _, h := range high {
			for _, l := range low {
				ports = append(ports, w.Fabric.Port(w.Element(stage, h>>1<<stage|l), fabric.PortNum(outputPort+h&1)))
			}
		}
	}
	slices.Sort(ports)
	return ports
}

var (
	_ lft.Engine = Engine{}
	_ mft.Scheme = RegionTree{}
)
