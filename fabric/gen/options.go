package gen

import (
	"fmt"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
)

// Options make a generated fabric of any kind more like real ones. The
// zero value changes nothing. Options apply in the order of the fields.
type Options struct {
	Seed uint64 // for all random choices
	// Fill is the number of hosts in a hundred that stay; others are
	// removed at random, but a switch with hosts keeps one. 0 is 100.
	Fill int
	// ServiceHosts is the number of hosts to add on free ports of spines,
	// switches without hosts that are next to one with hosts. They take turns.
	ServiceHosts int
	// Planes makes that number of chips of each switch, with its ports and system
	// image GUID; as many ports of each port of an adapter; and as many cables of
	// each cable, which share its lanes. XDR has four. Only adapters join the
	// planes. 0 and 1 change nothing.
	Planes    int
	DropLinks int // number of random cables that DropLinks removes
	// Speeds are those of switches and their hosts, from QDR to XDR. If there are
	// several, each system has a random one, and a cable that of its slower end.
	// Nodes become hardware of their speed. An empty list changes nothing.
	Speeds []fabric.Speed
	// Labels gives each port the label that is printed beside it: 12 to the ports
	// of switches up to HDR, 1/6/2 (ASIC, cage and port) from NDR on, B40D0F0/0/0/1 (bus,
	// device, function, ..) to adapters.
	Labels bool
	// Names is the style of descriptions: "site" as at a careful
	// site, "factory" as delivered, "mixed" some of both. ""
	// keeps names that tell a node's place in the made fabric.
	Names string
	// AggregationNodes adds a last port to each switch, and on it the channel adapter by
	// which the switch takes part in SHARP. The adapter belongs to the system of its switch.
	AggregationNodes bool
}

// AggregationNode is the description of all adapters inside switches.
const AggregationNode = "Mellanox Technologies Aggregation Node"

const firstAggregation fabric.GUID = 0x300000

// aggregationDevice is the device ID of all adapters inside switches.
const aggregationDevice = 0xcf09

// Apply returns f changed by the options. If an option cannot be met, the error names
// it and possible values. The LIDs of f stay if only Fill and DropLinks are set.
func (o Options) Apply(f *fabric.Fabric) (*fabric.Fabric, error) {
	drafted := func(change func(*Plan) error) func(*fabric.Fabric) (*fabric.Fabric, error) {
		return func(f *fabric.Fabric) (*fabric.Fabric, error) { return replan(f, change) }
	}
	for _, step := range []struct {
		asked bool
		make  func(*fabric.Fabric) (*fabric.Fabric, error)
	}{
		{o.Fill != 0 && o.Fill != 100, func(f *fabric.Fabric) (*fabric.Fabric, error) { return fill(f, o.Fill, o.Seed) }},
		{o.ServiceHosts != 0, drafted(func(p *Plan) error { return p.addServiceHosts(o.ServiceHosts) })},
		{o.Planes != 0 && o.Planes != 1, drafted(func(p *Plan) error { return p.split(o.Planes) })},
		{o.DropLinks != 0, func(f *fabric.Fabric) (*fabric.Fabric, error) { return DropLinks(f, o.DropLinks, o.Seed) }},
		{len(o.Speeds) > 0, drafted(func(p *Plan) error { return p.setSpeeds(o.Speeds, o.Seed) })},
		{o.Labels, drafted(func(p *Plan) error { p.label(); return nil })},
		{o.Names != "", drafted(func(p *Plan) error { return p.rename(o.Names, o.Seed) })},
		{o.AggregationNodes, drafted((*Plan).addAggregationNodes)},
	} {
		if !step.asked {
			continue
		}
		var err error
		if f, err = step.make(f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// split makes the planes of the fabric. The chips of a switch take
// its place in the order of the nodes, and GUIDs are assigned again.
func (p *Plan) split(planes int) error {
	if planes < 1 || planes > int(fabric.MaxPortNum) {
		return fmt.Errorf("%d planes: want 1 to %d", planes, fabric.MaxPortNum)
	}
	old := *p
	*p = Plan{labels: map[end]string{}, nextCA: firstCA, nextSwitch: firstSwitch}
	first := make([]int, len(old.nodes))          // by old node: index of its chip 0, or itself
	moved := make(map[fabric.GUID]fabric.GUID, 8) // by GUID of an old switch: that of its chip 0
	for i, n := range old.nodes {
		first[i] = len(p.nodes)
		ports, system := int(n.NumPorts), n.SystemGUID
		if n.Type != fabric.Switch {
			if all := planes * ports; all > int(fabric.MaxPortNum) {
				return fmt.Errorf("%s with %d ports, %d on each of %d planes: want at most %d", n.Description, all, ports, planes, fabric.MaxPortNum)
			}
			p.node(n, planes*ports)
			continue
		}
		moved[n.GUID] = p.nextSwitch
		for k := range planes {
			chip := n
			chip.Description = fmt.Sprintf("chip %d %s", k, n.Description)
			p.nodes[p.node(chip, ports)].SystemGUID = system
		}
	}
	for i := range p.nodes {
		n := &p.nodes[i]
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
	for e, label := range old.labels {
		for k := range planes {
			p.labels[at(e, k)] = label
		}
	}
	for _, c := range old.cables {
		if lanes := int(c.link.Width); lanes%planes == 0 {
			c.link.Width = uint8(lanes / planes)
		}
		for k := range planes {
			p.cables = append(p.cables, cable{[2]end{at(c.ends[0], k), at(c.ends[1], k)}, c.link})
		}
	}
	return nil
}

// addAggregationNodes puts a channel adapter on a new last port of each switch. Its cable
// is as fast as the fastest of its switch, and has labels if any port has.
func (p *Plan) addAggregationNodes() error {
	fastest := make([]fabric.Link, len(p.nodes))
	labelled := len(p.labels) > 0
	for _, c := range p.cables {
		for _, e := range c.ends {
			if c.link.Mbps() > fastest[e.node].Mbps() {
				fastest[e.node] = c.link
			}
		}
	}
	for s := range len(p.nodes) {
		if !p.isSwitch(s) {
			continue
		}
		sw := &p.nodes[s]
		if sw.NumPorts == fabric.MaxPortNum {
			return fmt.Errorf("an aggregation node on %s, which has %d ports: want at most %d and one more", sw.Description, sw.NumPorts, fabric.MaxPortNum-1)
		}
		sw.NumPorts++
		ends := [2]end{{s, sw.NumPorts}, {len(p.nodes), 1}}
		if labelled {
			p.labels[ends[0]], p.labels[ends[1]] = strconv.Itoa(int(sw.NumPorts)), "1"
		}
		p.cables = append(p.cables, cable{ends, fastest[s]})
		p.nodes = append(p.nodes, fabric.Node{
			Type: fabric.CA, NumPorts: 1, Description: AggregationNode, VendorID: mellanox, DeviceID: aggregationDevice,
			GUID: firstAggregation + 2*fabric.GUID(s), SystemGUID: sw.SystemGUID,
		})
	}
	return nil
}
