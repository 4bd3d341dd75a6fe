// Package gen makes fabrics that belong to no routing engine: fat trees,
// random irregular networks and the lattice networks of the SPAM paper. It
// takes links away from any fabric, and it holds what the generators of
// other packages (mesh, myrinet, banyan) share, so that all made fabrics are
// numbered and labelled alike. It makes no promise to other modules.
//
// A made fabric looks to the tools like QDR hardware, since that is what any
// ibsim makes of a cable: every one is 4xQDR, switches are InfiniScale IV and
// channel adapters ConnectX-2 by vendor and device ID. No port has a LID.
//
// GUIDs are those that ibsim gives to nodes that have none: channel adapters
// from 0x100000, each taking its port count + 1, so that port p has the
// adapter's GUID + p; switches from 0x200000, one each; both in the order in
// which they were made. Aggregation nodes (Options) have GUIDs from 0x300000.
// The ranges cannot meet: there are at most MaxUnicastLID adapter ports, which
// take at most twice as many GUIDs.
//
// All numbers in node descriptions count from 0. Made fabrics depend on
// their parameters and seed only, and the same ones give the same fabric in
// every release.
package gen

import (
	"fmt"
	"math/rand/v2"

	"github.com/ibweave/ibweave/fabric"
)

const (
	firstCA     fabric.GUID = 0x100000
	firstSwitch fabric.GUID = 0x200000

	mellanox      = 0x2c9  // vendor ID
	infiniScaleIV = 0xbd36 // device ID of the 36-port QDR switch
	connectX2     = 0x673c // device ID of the QDR adapter
)

// link is every cable's: ibsim's default, and what versions that do not read
// widths and speeds from the text make of every cable.
var link = fabric.Link{Width: 4, Speed: fabric.QDR}

// Plan is a fabric in the making. The first thing that goes wrong is kept,
// and Fabric returns it.
type Plan struct {
	b          fabric.Builder
	nextCA     fabric.GUID
	nextSwitch fabric.GUID
	err        error
}

// NewPlan starts a fabric with the given numbers of switches and ports of channel adapters
// and returns an error that wraps fabric.ErrTooLarge when there are not
// enough LIDs for them.
func NewPlan(switches, caPorts int) (*Plan, error) {
	if most := int(fabric.MaxUnicastLID); switches > most || caPorts > most || switches+caPorts > most {
		return nil, fmt.Errorf("%d switches and %d ports of channel adapters: want at most %d together, one LID each: %w",
			switches, caPorts, most, fabric.ErrTooLarge)
	}
	return &Plan{nextCA: firstCA, nextSwitch: firstSwitch}, nil
}

// Switch adds a switch and returns its index for Cable.
func (p *Plan) Switch(ports int, description string) int {
	n := p.node(fabric.Node{Type: fabric.Switch, GUID: p.nextSwitch, DeviceID: infiniScaleIV, Description: description}, ports)
	p.nextSwitch++
	return n
}

// CA adds a channel adapter and returns its index for Cable.
func (p *Plan) CA(ports int, description string) int {
	n := p.node(fabric.Node{Type: fabric.CA, GUID: p.nextCA, DeviceID: connectX2, Description: description}, ports)
	p.nextCA += fabric.GUID(ports) + 1
	return n
}

func (p *Plan) node(n fabric.Node, ports int) int {
	if p.err != nil {
		return -1
	}
	if ports < 1 || ports > int(fabric.MaxPortNum) {
		p.err = fmt.Errorf("%s with %d ports: want 1 to %d", n.Description, ports, fabric.MaxPortNum)
		return -1
	}
	n.NumPorts = fabric.PortNum(ports)
	n.SystemGUID = n.GUID
	n.VendorID = mellanox
	i, err := p.b.AddNode(n)
	p.err = err
	return i
}

// System makes one system of nodes: they share the system image GUID of the first.
func (p *Plan) System(nodes []int) {
	if p.err != nil {
		return
	}
	for _, n := range nodes {
		p.b.Node(n).SystemGUID = p.b.Node(nodes[0]).GUID
	}
}

// Cable connects two ports, which must be free.
func (p *Plan) Cable(node1, port1, node2, port2 int) {
	if p.err != nil {
		return
	}
	if most := int(fabric.MaxPortNum); port1 < 1 || port1 > most || port2 < 1 || port2 > most {
		p.err = fmt.Errorf("a cable between ports %d and %d: want 1 to %d", port1, port2, most)
		return
	}
	p.err = p.b.Connect(node1, fabric.PortNum(port1), node2, fabric.PortNum(port2), link)
}

// Fabric is what was planned.
func (p *Plan) Fabric() (*fabric.Fabric, error) {
	if p.err != nil {
		return nil, p.err
	}
	return p.b.Build()
}

// newRand is the source of randomness for a seed. Its algorithm and stream
// are part of what "same seed, same fabric" promises.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
