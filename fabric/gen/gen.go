// Package gen makes fabrics that belong to no routing engine: fat trees,
// random irregular networks and the lattice networks of the SPAM paper.
// It removes links from any fabric, and has what the generators of other
// packages (mesh, myrinet, banyan) share, so that all made fabrics are
// numbered and labelled alike. It makes no promise to other modules.
//
// A made fabric looks to the tools like QDR hardware, which every ibsim
// can simulate: cables are 4xQDR, switches are InfiniScale IV and
// channel adapters ConnectX-2 by vendor and device ID. No port has a
// LID.
//
// GUIDs are those that ibsim gives to nodes that have none: channel
// adapters from 0x100000, each taking its port count + 1, so that port p
// has the adapter's GUID + p; switches from 0x200000, one each; both in
// the order in which they were made. Aggregation nodes (Options) have
// GUIDs from 0x300000. The ranges cannot meet: there are at most
// MaxUnicastLID adapter ports, which take at most twice as many GUIDs.
//
// All numbers in node descriptions count from 0. The same parameters and
// seed give the same fabric in every release.
package gen

import (
	"cmp"
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

// link is the link of every cable: ibsim's default, also in
// versions that do not read widths and speeds.
var link = fabric.Link{Width: 4, Speed: fabric.QDR}

// Plan is a fabric being built. It keeps the first error, which Fabric returns.
type Plan struct {
	of         *fabric.Fabric // fabric to change, without its LIDs; nil for a new one
	nodes      []fabric.Node  // in the order in which they were made
	cables     []cable
	labels     map[end]string
	nextCA     fabric.GUID
	nextSwitch fabric.GUID
	err        error
}

// cable joins two ports.
type cable struct {
	ends [2]end
	link fabric.Link
}

// end is a port, where a cable can end.
type end struct {
	node int // index in Plan.nodes
	port fabric.PortNum
}

// NewPlan starts a fabric with the given numbers of switches and ports of channel adapters
// and returns an error that wraps fabric.ErrTooLarge when there are not
// enough LIDs for them.
func NewPlan(switches, caPorts int) (*Plan, error) {
	if most := int(fabric.MaxUnicastLID); switches > most || caPorts > most || switches+caPorts > most {
		return nil, fmt.Errorf("%d switches and %d ports of channel adapters: want at most %d together, one LID each: %w",
			switches, caPorts, most, fabric.ErrTooLarge)
	}
	return &Plan{labels: map[end]string{}, nextCA: firstCA, nextSwitch: firstSwitch}, nil
}

// replan returns f after edit has changed its plan.
func replan(f *fabric.Fabric, edit func(*Plan) error) (*fabric.Fabric, error) {
	p := &Plan{of: f, nodes: make([]fabric.Node, f.NumNodes()), cables: make([]cable, 0, f.NumLinks()), labels: map[end]string{}, nextCA: firstCA, nextSwitch: firstSwitch}
	for i := range fabric.NodeID(f.NumNodes()) {
		n := f.Node(i)
		p.nodes[n.Order] = *n
		if f.IsSwitch(i) {
			p.nextSwitch = max(p.nextSwitch, n.GUID+1)
		} else {
			p.nextCA = max(p.nextCA, n.GUID+fabric.GUID(n.NumPorts)+1)
		}
	}
	for at := range fabric.PortID(f.NumPorts()) {
		if label := f.Label(at); label != "" {
			p.labels[p.end(at)] = label
		}
	}
	for _, c := range f.Cables() {
		p.cables = append(p.cables, cable{[2]end{p.end(c.A), p.end(c.B)}, c.Link})
	}
	if err := edit(p); err != nil {
		return nil, err
	}
	return p.Fabric()
}

func (p *Plan) end(at fabric.PortID) end {
	return end{int(p.of.Node(p.of.Owner(at)).Order), p.of.Num(at)}
}

func (p *Plan) isSwitch(n int) bool { return p.nodes[n].Type == fabric.Switch }

// Switch adds a switch and returns its index for Cable.
func (p *Plan) Switch(ports int, description string) int {
	return p.node(fabric.Node{Type: fabric.Switch, VendorID: mellanox, DeviceID: infiniScaleIV, Description: description}, ports)
}

// CA adds a channel adapter and returns its index for Cable.
func (p *Plan) CA(ports int, description string) int {
	return p.node(fabric.Node{Type: fabric.CA, VendorID: mellanox, DeviceID: connectX2, Description: description}, ports)
}

// node adds a node with the next GUID, a system by itself.
func (p *Plan) node(n fabric.Node, ports int) int {
	if p.err == nil && (ports < 1 || ports > int(fabric.MaxPortNum)) {
		p.err = fmt.Errorf("%s with %d ports: want 1 to %d", n.Description, ports, fabric.MaxPortNum)
	}
	next, taken := &p.nextCA, fabric.GUID(ports)+1
	if n.Type == fabric.Switch {
		next, taken = &p.nextSwitch, 1
	}
	n.NumPorts, n.GUID, n.SystemGUID = fabric.PortNum(ports), *next, *next
	*next += taken
	p.nodes = append(p.nodes, n)
	return len(p.nodes) - 1
}

// System makes nodes one system: they share the system image GUID of the first.
func (p *Plan) System(nodes []int) {
	for _, n := range nodes {
		p.nodes[n].SystemGUID = p.nodes[nodes[0]].GUID
	}
}

// Cable connects two ports, which must be free.
func (p *Plan) Cable(node1, port1, node2, port2 int) {
	switch most := int(fabric.MaxPortNum); {
	case p.err != nil:
	case port1 < 1 || port1 > most || port2 < 1 || port2 > most:
		p.err = fmt.Errorf("a cable between ports %d and %d: want 1 to %d", port1, port2, most)
	default:
		p.cables = append(p.cables, cable{[2]end{{node1, fabric.PortNum(port1)}, {node2, fabric.PortNum(port2)}}, link})
	}
}

// Fabric builds the planned fabric.
func (p *Plan) Fabric() (*fabric.Fabric, error) {
	switches, ports := 0, 0
	for i := range p.nodes {
		if p.isSwitch(i) {
			switches++
		} else {
			ports += int(p.nodes[i].NumPorts)
		}
	}
	if _, err := NewPlan(switches, ports); p.err != nil || err != nil {
		return nil, cmp.Or(p.err, err)
	}
	var b fabric.Builder
	for _, n := range p.nodes {
		if _, err := b.AddNode(n); err != nil {
			return nil, fmt.Errorf("%s: %w", n.Description, err)
		}
	}
	for _, c := range p.cables {
		x, y := c.ends[0], c.ends[1]
		if err := b.Connect(x.node, x.port, y.node, y.port, c.link); err != nil {
			return nil, err
		}
	}
	for e, label := range p.labels {
		if err := b.SetLabel(e.node, e.port, label); err != nil {
			return nil, err
		}
	}
	return b.Build()
}

// newRand returns the source of randomness for a seed. Its algorithm
// and stream must never change: the same seed gives the same fabric.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
