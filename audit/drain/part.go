package drain

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
)

// SwitchPart is chips of one system with all their cables and the hosts on them.
func SwitchPart(f *fabric.Fabric, chips []fabric.NodeID) Part {
	p := Part{Name: f.Name(chips[0]).String()}
	if len(chips) > 1 {
		p.Name = fmt.Sprintf("%q, %d chips", names.ChipOf(f.Name(chips[0]).Text).System, len(chips))
	}
	for _, s := range chips {
		p.AddSwitch(f, s)
	}
	return p
}

// CablePart is the cable at a port, with the hosts at its ends.
func CablePart(f *fabric.Fabric, p fabric.PortID) Part {
	part := Part{Name: f.PortName(p), Cables: []fabric.PortID{p}}
	for _, end := range [...]fabric.PortID{p, f.Peer(p)} {
		if n := f.Owner(end); !f.IsSwitch(n) {
			part.Nodes = append(part.Nodes, n)
		}
	}
	return part
}

// AddSwitch adds a switch with all of its cables, and the hosts on it.
func (p *Part) AddSwitch(f *fabric.Fabric, s fabric.NodeID) {
	p.Nodes = append(p.Nodes, s)
	p.Cables = slices.AppendSeq(p.Cables, f.Cabled(s))
	for _, host := range f.EndPortsOn(s) {
		if n := f.Owner(host); !f.IsSwitch(n) {
			p.Nodes = append(p.Nodes, n)
		}
	}
}

// Document is the JSON form of a plan.
type Document struct {
	*Plan
	GoneHosts []string `json:"gone_hosts"` // by window, names with brackets
}

// Document is the JSON form of a plan for f.
func (p *Plan) Document(f *fabric.Fabric) *Document {
	d := &Document{p, []string{}}
	for i := range p.Windows {
		_, hosts := names.Fold(f, p.Windows[i].GoneHosts)
		d.GoneHosts = append(d.GoneHosts, hosts)
	}
	return d
}
