package subnet

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// target returns how to reach an end port. Each port of a CA answers for itself.
func (d *Discovery) target(port fabric.PortID) Target {
	f := d.Fabric
	if s := f.PeerSwitch(port); !f.IsSwitch(f.Owner(port)) && port != d.Local && s != fabric.NoNode {
		return Target{Route: append(slices.Clone(d.Routes[s]), f.Num(f.Peer(port)))}
	}
	return Target{Route: d.Routes[f.Owner(port)]}
}

// PKeys reads the P_Key tables of all end ports that d has: of CA and router ports with a
// cable, and of ports 0 of switches. They are by fabric.PortID and have the entries in use;
// nil for a port that could not be read, which is a Problem, and for other ports of
// switches. Errors: ErrClosed, and ctx's.
func (c *Client) PKeys(ctx context.Context, d *Discovery) (tables [][]fabric.PKey, problems []fabric.Problem, requests int, err error) {
	f := d.Fabric
	blocks := make(map[fabric.PortID][]mad.PKeyTable)
	failed := make(map[fabric.PortID]bool)
	var all *batch
	requests, err = c.run(ctx, func(b *batch) {
		all = b
		f.EndPorts(func(p fabric.PortID) {
			to := d.target(p)
			lost := func(err error) {
				if !failed[p] {
					failed[p] = true
					b.note(d.name(f.Owner(p)), "P_Keys of port %d: %v", f.Num(p), err)
				}
			}
			b.ask(to, mad.AttrNodeInfo, 0, func(data *mad.Data) {
				n := (int(mad.Of[mad.NodeInfo](data).PKeys) + mad.PKeyBlock - 1) / mad.PKeyBlock
				blocks[p] = make([]mad.PKeyTable, n)
				for block := range n {
					b.ask(to, mad.AttrPKeyTable, uint32(block), func(data *mad.Data) { blocks[p][block].Unmarshal(data) }, lost)
				}
			}, lost)
		})
	})
	if err != nil {
		return nil, nil, requests, err
	}
	tables = make([][]fabric.PKey, f.NumPorts())
	for p, list := range blocks {
		if failed[p] {
			continue
		}
		tables[p] = []fabric.PKey{}
		for i := range list {
			for _, key := range list[i] {
				if key.Partition() != 0 {
					tables[p] = append(tables[p], key)
				}
			}
		}
	}
	return tables, all.problems(), requests, nil
}
