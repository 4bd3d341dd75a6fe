package jobs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
)

// Host is a host that can run jobs.
type Host struct {
	// Name is how a file of traffic names it: its name, or the GUID of its adapter.
	Name  string
	Nodes []fabric.NodeID // its adapters, in natural order of their names
	Ports []fabric.PortID // with a cable to a switch, in the order of Nodes; one at least
	guid  bool            // Name is a GUID
}

// Hosts lists the hosts of a fabric that have adapters of these kinds and a name, in natural order.
// If none has a name, each adapter is a host, by NodeID.
func Hosts(f *fabric.Fabric, kinds ...fabric.Kind) (list []Host) {
	b := &binder{f: f}
	add := func(h names.Host, guid bool) {
		if x := b.host(h); len(x.Ports) > 0 {
			x.guid = guid
			list = append(list, x)
		}
	}
	named, _ := names.Hosts(f, nil, kinds...)
	finder := names.NewFinder(f)
	for _, h := range named {
		h.Nodes = names.InOrder(f, h.Nodes)
		if found, err := finder.Hosts(h.Name); err == nil && len(found) == 1 && slices.Equal(found[0].Nodes, h.Nodes) {
			add(h, false)
		}
	}
	if len(list) > 0 {
		return list
	}
	for n := fabric.NodeID(f.NumSwitches()); n < fabric.NodeID(f.NumNodes()); n++ {
		if slices.Contains(kinds, f.Kind(n)) {
			add(names.Host{Name: fmt.Sprintf("%#x", uint64(f.Node(n).GUID)), Nodes: []fabric.NodeID{n}}, true)
		}
	}
	return list
}

// List names hosts as a file of traffic does: names with numbers in brackets, in natural order, or GUIDs.
func List(hosts []Host) string {
	list := text.Each(hosts, func(h Host) string { return h.Name })
	if len(hosts) > 0 && hosts[0].guid {
		return strings.Join(list, ",")
	}
	return hostlist.Fold(list)
}
