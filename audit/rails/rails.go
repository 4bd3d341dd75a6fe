// Package rails finds the rails of a fabric: which port of each host is on which rail, which ports
// are in each other's places, what is missing, and what routes and collective operations load. It
// makes no promise to other modules.
//
// In a cluster with rails each host has several ports, and each of them is cabled to another leaf:
// port k of all hosts near each other to the same one. So a rail is told by two things. Ports of the
// same name, mlx5_3, are on one rail on all hosts; where hosts call their adapters differently, those
// on the same leaves are one rail, else those in the same place of their hosts' order. And a port
// belongs on the leaf where the hosts beside it, which share leaves with its host, have theirs.
package rails

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// maxRails bounds the rails. Hosts have a dozen adapters, and four ports for each with planes.
const maxRails = 64

// The errors of Find.
var (
	ErrNoRails = errors.New("no host has several ports that are cabled to switches")
	ErrTooMany = fmt.Errorf("the names of adapters make more than %d rails", maxRails)
)

// Result is the rails of a fabric.
type Result struct {
	// By is what ports of one rail have in common: names of adapters, or labels of their ports.
	By     string `json:"by"`
	Rails  []Rail `json:"rails"`  // in the order of the adapters of the commonest host
	Leaves []Leaf `json:"leaves"` // in natural order
	Hosts  []Host `json:"hosts"`  // in natural order
	// LeftOut is adapters that are on no rail.
	LeftOut  []names.LeftOut  `json:"left_out"`
	Findings []verify.Finding `json:"findings"` // the gravest first

	f    *fabric.Fabric
	on   []uint64          // by switch: a bit for each rail by its index in Rails, see belong
	ends [][]fabric.PortID // by index in Rails: its ports, in the order of Hosts
}

// Rail is one port of each host.
type Rail struct {
	Rail     int      `json:"rail"`     // from 1
	Adapters []string `json:"adapters"` // names, in natural order; a port of several is name[2]
	Ports    int      `json:"ports"`
	Leaves   int      `json:"leaves"` // where its ports belong
	Missing  int      `json:"missing"`
	// Misplaced is ports that are on another leaf than they should be.
	Misplaced int `json:"misplaced"`
	// MeetsAt is the level of switches at which the rail meets another one: 0 on leaves, 1 on spines,
	// -1 nowhere.
	MeetsAt int `json:"meets_at"`
}

// Leaf is a switch with hosts.
type Leaf struct {
	verify.SwitchRef
	Rails []int `json:"rails"` // of ports that belong there, ascending
	Ports int   `json:"ports"` // on rails
}

// Host is a host and its ports.
type Host struct {
	Host    string `json:"host"`
	Ports   []Port `json:"ports"`   // in natural order of their adapters
	Missing []int  `json:"missing"` // rails
}

// Port is a port of a host.
type Port struct {
	Rail    int             `json:"rail"`    // 0 for none
	Adapter string          `json:"adapter"` // "" where the description does not say
	Port    verify.Endpoint `json:"port"`
	Leaf    verify.Endpoint `json:"leaf"` // what it is cabled to
	// Home is the leaf where the hosts beside it have their ports of the rail.
	Home fabric.GUID `json:"home"`
}

// port is a Port as it is found.
type port struct {
	end  fabric.PortID
	leaf fabric.NodeID
	name string // of the adapter
	key  string // what ports of one rail have in common; "" where several ports of the host have it
	rail int32  // -1 for none
	home fabric.NodeID
}

// host is a Host as it is found.
type host struct {
	name    string
	ports   []port
	leaves  []fabric.NodeID // ascending
	member  bool            // it is among those that say where the rails are
	missing []gap
}

// gap is a rail that a host has no port on.
type gap struct {
	rail int32
	home fabric.NodeID // NoNode where no host beside it has one either
}

// finder finds rails.
type finder struct {
	f       *fabric.Fabric
	pattern *regexp.Regexp // see Find
	hosts   []host
	leftOut map[string][]fabric.NodeID
	usual   int                   // ports of a host
	labels  bool                  // keys are labels, else names
	rail    map[string]int32      // by key
	votes   map[place][]vote      // see vote
	members map[fabric.NodeID]int // by leaf: member hosts
	out     *Result
}

// Find finds the rails of a fabric. pattern finds the names of a host and its adapter: see
// names.Split. Hosts may count their adapters in different orders, so that one
// name is on different rails; where adapters have labels, which are their PCI addresses, rails are
// those of labels if fewer ports are misplaced then. It takes O(ports of hosts x ports of a host).
// Errors: ErrNoRails, ErrTooMany.
func Find(f *fabric.Fabric, pattern *regexp.Regexp) (*Result, error) {
	r, err := find(f, pattern, false)
	if f.Labelled() && (err == nil || errors.Is(err, ErrTooMany)) {
		other, otherErr := find(f, pattern, true)
		if otherErr == nil && (err != nil || other.misplaced() < r.misplaced()) {
			r, err = other, nil
		}
	}
	return r, err
}

// misplaced counts ports.
func (r *Result) misplaced() (n int) {
	for i := range r.Rails {
		n += r.Rails[i].Misplaced
	}
	return n
}

func find(f *fabric.Fabric, pattern *regexp.Regexp, labels bool) (*Result, error) {
	x := &finder{f: f, pattern: pattern, labels: labels, out: &Result{f: f, By: "names", Rails: []Rail{}, Leaves: []Leaf{}, Hosts: []Host{}}}
	if labels {
		x.out.By = "labels"
	}
	x.findHosts()
	switch {
	case x.usual < 2:
		return nil, ErrNoRails
	case x.usual > maxRails:
		return nil, ErrTooMany
	}
	if err := x.findRails(); err != nil {
		return nil, err
	}
	x.findHomes()
	x.findMissing()
	x.list()
	level := levels.Of(f)
	x.findMeetings(level)
	x.out.belong(level)
	x.out.sortFindings()
	return x.out, nil
}

// findHosts collects the ports of all hosts, and says which are members: those with more than half
// of the usual number of ports.
func (x *finder) findHosts() {
	found, leftOut := names.Hosts(x.f, x.pattern, fabric.HostKind)
	x.leftOut = leftOut
	var counts []int
	for _, h := range found {
		y := host{name: h.Name}
		for _, n := range h.Nodes {
			_, adapter := names.Split(x.f.Name(n).Text, x.pattern)
			cabled := len(y.ports)
			for p := range x.f.Cabled(n) {
				s := x.f.PeerSwitch(p)
				if s == fabric.NoNode {
					continue
				}
				name := adapter
				if x.f.Node(n).NumPorts > 1 {
					name += fmt.Sprintf("[%d]", x.f.Num(p))
				}
				key := name
				if x.labels {
					key = cmp.Or(x.f.Label(p), name)
				}
				y.ports = append(y.ports, port{end: p, leaf: s, name: name, key: key, rail: -1, home: s})
				y.leaves = append(y.leaves, s)
			}
			if len(y.ports) == cabled {
				leftOut[names.NotCabled] = append(leftOut[names.NotCabled], n)
			}
		}
		if len(y.ports) == 0 {
			continue
		}
		slices.Sort(y.leaves)
		y.leaves = slices.Compact(y.leaves)
		x.sortPorts(&y)
		x.hosts = append(x.hosts, y)
		if len(y.ports) > 1 {
			counts = append(counts, len(y.ports))
		}
	}
	if len(counts) == 0 {
		return
	}
	slices.Sort(counts)
	x.usual = counts[len(counts)/2]
	for i := range x.hosts {
		h := &x.hosts[i]
		if h.member = 2*len(h.ports) > x.usual; h.member && len(h.ports) == x.usual {
			x.nameByLeaf(h)
		}
	}
}

// sortPorts puts the ports of a host in natural order of their names, those of one name in the order
// of the leaves, and takes keys away that several have.
func (x *finder) sortPorts(h *host) {
	slices.SortFunc(h.ports, func(a, b port) int {
		return cmp.Or(text.Natural(a.name, b.name), strings.Compare(a.name, b.name), x.byName(a.leaf, b.leaf), cmp.Compare(x.f.Peer(a.end), x.f.Peer(b.end)))
	})
	times := make(map[string]int)
	for _, p := range h.ports {
		times[p.key]++
	}
	for i := range h.ports {
		if p := &h.ports[i]; times[p.key] > 1 {
			p.key = ""
		}
	}
}

// byName compares switches by their names.
func (x *finder) byName(a, b fabric.NodeID) int {
	p, q := x.f.Name(a).Text, x.f.Name(b).Text
	return cmp.Or(text.Natural(p, q), strings.Compare(p, q), cmp.Compare(a, b))
}

// nameByLeaf gives ports without a key one for their place in the order of the leaves, which no
// adapter has.
func (x *finder) nameByLeaf(h *host) {
	place := 0
	for i := range h.ports {
		if p := &h.ports[i]; p.key == "" {
			place++
			p.key = fmt.Sprintf("\x00%d", place)
		}
	}
}
