package subnet

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// target is how to ask an end port. Each port of a CA answers for itself.
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
func (c *Client) PKeys(ctx context.Context, d *Discovery) (tables [][]fabric.PKey, problems []Problem, requests int, err error) {
	f := d.Fabric
	blocks := make(map[fabric.PortID][]mad.PKeyTable)
	failed := make(map[fabric.PortID]bool)
	requests, err = c.run(ctx, func(b *batch) {
		f.EndPorts(func(p fabric.PortID) {
			to, node := d.target(p), f.Owner(p)
			lost := func(err error) {
				if !failed[p] {
					failed[p] = true
					problems = append(problems, Problem{Where: fmt.Sprintf("%s %s %q", f.Node(node).Type, f.Node(node).GUID, f.Name(node).Text), Text: fmt.Sprintf("P_Keys of port %d: %v", f.Num(p), err)})
				}
			}
			b.ask(to, mad.AttrNodeInfo, 0, func(data *mad.Data) {
				var info mad.NodeInfo
				info.Unmarshal(data)
				n := (int(info.PKeys) + mad.PKeyBlock - 1) / mad.PKeyBlock
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
	sortProblems(problems)
	return tables, problems, requests, nil
}
