package mesh

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// LIDs returns the LID assignment of Zhou, Liu and Chung (section 3.1) for a grid:
// base LIDs by PortID, from which coordinates can be read; 0 for ports that are
// not end ports. lmc is by PortID. LIDs can be used as lft.LIDOptions.MeshBases.
//
// The paper prints x*m + y + 1 for the host of N(x,y) in a mesh of m columns
// and n rows. That is unique for m >= n only: in a mesh of 2x3, N(0,2) and
// N(1,0) would both have 3 (E-X1). So this is x*n + y + 1, the same on the
// paper's square examples: one more than Grid.Position, which counts row by
// row, the first dimension slowest, on a grid of any number of dimensions.
//
// The host by the lowest port of a switch has the LID position+1, the next one
// positions+position+1, and so on. Switches follow after as many blocks as the
// switch with the most hosts has hosts. Where a switch or a host is missing its
// LID stays unused, so that the rule holds for all others. With an LMC of k the
// blocks of LIDs of hosts begin at (position+1) << k (X4). Those of switches,
// which have LMC 0 as a rule, follow closely, and are spaced likewise when any
// of them has an LMC. Ports of CAs that are cabled to no switch come last.
//
// It returns an error when the last LID would be greater than a LID can be,
// since switches differ too much in how many hosts they have.
func (g *Grid) LIDs(lmc []uint8) ([]fabric.LID, error) {
	f := g.Fabric
	if len(lmc) != f.NumPorts() {
		return nil, fmt.Errorf("LMCs of %d ports, the fabric has %d", len(lmc), f.NumPorts())
	}
	hostLMC, switchLMC := uint8(0), uint8(0)
	block := make([]int, f.NumPorts()) // by port of a CA on a switch: how many hosts are on lower ports
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
	next := firstSwitch + g.Positions()<<switchLMC // for CAs on no switch
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
