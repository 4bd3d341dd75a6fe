package mesh

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// LIDs returns the LID assignment of Zhou, Liu and Chung (section 3.1) for a
// grid: base LIDs by PortID that encode coordinates, 0 for ports that are no
// end ports. lmc is by PortID. It can be used as lft.LIDOptions.MeshBases.
//
// The paper prints x*m + y + 1 for the host of N(x,y) in a mesh of m columns
// and n rows. That is unique only for m >= n: in a mesh of 2x3, N(0,2) and
// N(1,0) would both have 3 (E-X1). So this is x*n + y + 1, which agrees with
// the paper's square examples: Grid.Position + 1, which counts row by row,
// the first dimension slowest, on a grid of any number of dimensions.
//
// The host on the lowest port of a switch has LID position+1, the next one
// positions+position+1, and so on. Switches follow after as many blocks as
// the switch with most hosts has hosts. The LIDs of missing switches and
// hosts stay unused, so that the rule holds for all others. With an LMC of k
// the LIDs of hosts start at (position+1) << k (X4). Those of switches, which
// usually have LMC 0, follow without gaps, and are spaced likewise if any
// switch has an LMC. Ports of CAs without a cable to a switch come last.
//
// It returns an error if the last LID would be too great, since switches
// differ too much in their number of hosts.
func (g *Grid) LIDs(lmc []uint8) ([]fabric.LID, error) {
	f := g.Fabric
	if len(lmc) != f.NumPorts() {
		return nil, fmt.Errorf("LMCs of %d ports, the fabric has %d", len(lmc), f.NumPorts())
	}
	hostLMC, switchLMC := uint8(0), uint8(0)
	block := make([]int, f.NumPorts()) // by CA port: how many hosts are on lower ports of its switch
	blocks := 0
	for _, s := range f.Switches() {
		switchLMC = max(switchLMC, lmc[f.PortBase(s)])
		for i, p := range f.EndPortsOn(s) {
			block[p] = i
		}
		blocks = max(blocks, len(f.EndPortsOn(s)))
	}
	for _, p := range f.CAPorts() {
		hostLMC = max(hostLMC, lmc[p])
	}
	slots := blocks * g.Positions()
	firstSwitch := (slots + 1) << hostLMC
	if switchLMC > 0 {
		firstSwitch = (firstSwitch + 1<<switchLMC - 1) >> switchLMC << switchLMC
	}
	next := firstSwitch + g.Positions()<<switchLMC // for CAs without a cable to a switch
	next = (next + 1<<hostLMC - 1) >> hostLMC << hostLMC

	base := make([]fabric.LID, f.NumPorts())
	var last int
	assign := func(p fabric.PortID, lid int) {
		if last = max(last, lid+1<<lmc[p]-1); lid <= int(fabric.MaxUnicastLID) {
			base[p] = fabric.LID(lid)
		}
	}
	for _, s := range f.Switches() {
		assign(f.PortBase(s), firstSwitch+g.Position(s)<<switchLMC)
	}
	for i, p := range f.CAPorts() {
		s := f.CASwitches()[i]
		if s == fabric.NoNode {
			assign(p, next)
			next += 1 << hostLMC
			continue
		}
		assign(p, (block[p]*g.Positions()+g.Position(s)+1)<<hostLMC)
	}
	if last > int(fabric.MaxUnicastLID) {
		return nil, fmt.Errorf("LIDs by place in the mesh: %d positions with up to %d hosts and LMC %d need LIDs up to %d, and a subnet has %d; use a smaller LMC, or renumber all (dense)",
			g.Positions(), blocks, hostLMC, last, fabric.MaxUnicastLID)
	}
	return base, nil
}
