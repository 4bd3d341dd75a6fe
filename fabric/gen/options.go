package gen

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// Options change a made fabric of any kind into one as operators have it. The zero value
// changes nothing. Options apply in the order of the fields, whatever the kind.
type Options struct {
	Seed uint64 // of everything random
	// Planes makes as many chips of each switch, which share its system image GUID, and a
	// port for each of them of each port of an adapter; a cable has a lane to each chip. XDR
	// has four. Nothing joins the planes but adapters. 0 and 1 change nothing.
	Planes    int
	DropLinks int // random cables between switches that are taken away, as DropLinks does
	// AggregationNodes gives each switch one port more, the last, and on it the channel
	// adapter by which a switch takes part in SHARP. It belongs to the system of its switch.
	AggregationNodes bool
}

// AggregationNode is how all adapters inside switches describe themselves.
const AggregationNode = "Mellanox Technologies Aggregation Node"

const (
	firstAggregation  fabric.GUID = 0x300000
	aggregationDevice             = 0xcf09 // device ID
)

// Apply makes the fabric that the options ask for. Errors say which option cannot be, and
// what could be. LIDs of f are lost if any option changes more than cables.
func (o Options) Apply(f *fabric.Fabric) (*fabric.Fabric, error) {
	if o.Planes < 0 || o.Planes > int(fabric.MaxPortNum) {
		return nil, fmt.Errorf("%d planes: want 1 to %d", o.Planes, fabric.MaxPortNum)
	}
	f, err := redraft(f, o.Planes > 1, func(d *draft) error { return d.split(o.Planes) })
	if err != nil {
		return nil, err
	}
	if f, err = DropLinks(f, o.DropLinks, o.Seed); err != nil {
		return nil, err
	}
	return redraft(f, o.AggregationNodes, (*draft).addAggregationNodes)
}

// split makes so many planes of the fabric. The chips of a switch take its place in the
// order of the nodes, and GUIDs are numbered again.
func (d *draft) split(planes int) error {
	old := *d
	*d = draft{}
	first := make([]int, len(old.nodes))          // by old node: its chip 0, or itself
	moved := make(map[fabric.GUID]fabric.GUID, 8) // by GUID of an old switch: that of its chip 0
	sw, ca := firstSwitch, firstCA
	for i, n := range old.nodes {
		first[i] = len(d.nodes)
		if n.Type != fabric.Switch {
			if ports := planes * int(n.NumPorts); ports > int(fabric.MaxPortNum) {
				return fmt.Errorf("%s with %d ports, %d on each of %d planes: want at most %d", n.Description, ports, n.NumPorts, planes, fabric.MaxPortNum)
			}
			n.NumPorts *= fabric.PortNum(planes)
			n.GUID, n.SystemGUID = ca, ca
			d.nodes = append(d.nodes, n)
			ca += fabric.GUID(n.NumPorts) + 1
			continue
		}
		moved[n.GUID] = sw
		for k := range planes {
			chip := n
			chip.GUID = sw
			chip.Description = fmt.Sprintf("chip %d %s", k, n.Description)
			d.nodes = append(d.nodes, chip)
			sw++
		}
	}
	for i := range d.nodes {
		n := &d.nodes[i]
		if chip, ok := moved[n.SystemGUID]; ok && n.Type == fabric.Switch {
			n.SystemGUID = chip
		}
	}
	at := func(e end, plane int) end {
		if old.isSwitch(e.node) {
			return end{first[e.node] + plane, e.port}
		}
		return end{first[e.node], (e.port-1)*fabric.PortNum(planes) + fabric.PortNum(plane) + 1}
	}
	for _, c := range old.cables {
		if lanes := int(c.link.Width); lanes%planes == 0 {
			c.link.Width = uint8(lanes / planes)
		}
		for k := range planes {
			d.cables = append(d.cables, cable{[2]end{at(c.ends[0], k), at(c.ends[1], k)}, c.link})
		}
	}
	return nil
}

// addAggregationNodes puts a channel adapter on a new last port of each switch. Its cable
// is as fast as the fastest of its switch.
func (d *draft) addAggregationNodes() error {
	fastest := make([]fabric.Link, len(d.nodes))
	for _, c := range d.cables {
		for _, e := range c.ends {
			if c.link.Mbps() > fastest[e.node].Mbps() {
				fastest[e.node] = c.link
			}
		}
	}
	for s := range len(d.nodes) {
		if !d.isSwitch(s) {
			continue
		}
		sw := &d.nodes[s]
		if sw.NumPorts == fabric.MaxPortNum {
			return fmt.Errorf("an aggregation node on %s, which has %d ports: want at most %d and one more", sw.Description, sw.NumPorts, fabric.MaxPortNum-1)
		}
		sw.NumPorts++
		d.cables = append(d.cables, cable{[2]end{{s, sw.NumPorts}, {len(d.nodes), 1}}, fastest[s]})
		d.nodes = append(d.nodes, fabric.Node{
			Type: fabric.CA, NumPorts: 1, Description: AggregationNode, VendorID: mellanox, DeviceID: aggregationDevice,
			GUID: firstAggregation + 2*fabric.GUID(s), SystemGUID: sw.SystemGUID,
		})
	}
	return nil
}
