package gen

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// Options change a made fabric of any kind into one as operators have it. The zero value
// changes nothing. Options apply in the order of the fields, whatever the kind.
type Options struct {
	Seed      uint64 // of everything random
	DropLinks int    // random cables between switches that are taken away, as DropLinks does
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
	f, err := DropLinks(f, o.DropLinks, o.Seed)
	if err != nil || !o.AggregationNodes {
		return f, err
	}
	d := newDraft(f)
	if err := d.addAggregationNodes(); err != nil {
		return nil, err
	}
	if err := d.checkLIDs(); err != nil {
		return nil, err
	}
	return d.fabric()
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
