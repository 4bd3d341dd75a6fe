// Package rails finds the rails of a fabric: which port of each host is on which rail, which ports
// are in each other's places, which are missing, and the loads of routes and of collective
// operations. It makes no promise to other modules.
//
// In a cluster with rails each host has several ports, each cabled to another
// leaf: port k of hosts near each other to the same one. Ports of the same
// name, such as mlx5_3, are on one rail on all hosts. If hosts call their
// adapters differently, ports on the same leaves are one rail, else the k-th
// ports of all hosts are. A port belongs on the leaf where the hosts that share
// leaves with its host have their port of the rail.
package rails

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// maxRails bounds the rails. Hosts have a dozen adapters, with four ports each if there are planes.
const maxRails = 64

// The errors of Find.
var (
	ErrNoRails = errors.New("no host has several ports that are cabled to switches")
	ErrTooMany = fmt.Errorf("the names of adapters make more than %d rails", maxRails)
)

// Result is the rails of a fabric.
type Result struct {
	// By is the property that ports of one rail share: the names of adapters, or labels of their ports.
	By     string `json:"by"`
	Rails  []Rail `json:"rails"`  // in the order of the adapters of the most common kind of host
	Leaves []Leaf `json:"leaves"` // in natural order
	Hosts  []Host `json:"hosts"`  // in natural order
	// LeftOut lists adapters that are on no rail.
	LeftOut  []names.LeftOut  `json:"left_out"`
	Findings []verify.Finding `json:"findings"` // the gravest first

	f    *fabric.Fabric
	on   []uint64          // by switch: its rails, bit 0 for rail 1, see spread
	ends [][]fabric.PortID // by index in Rails: its ports, in the order of Hosts
}

// Rail is one port of each host.
type Rail struct {
	Rail     int      `json:"rail"`     // from 1
	Adapters []string `json:"adapters"` // names, in natural order; a port of several is name[2]
	Ports    int      `json:"ports"`
	Leaves   int      `json:"leaves"` // number of leaves where its ports belong
	Missing  int      `json:"missing"`
	// Misplaced counts ports that are on another leaf than they should be.
	Misplaced int `json:"misplaced"`
	// MeetsAt is the lowest level where the rail meets another: 0 for leaves, 1 for spines, -1 for
	// none.
	MeetsAt int `json:"meets_at"`
}

// Leaf is a switch with hosts.
type Leaf struct {
	verify.SwitchRef
	Rails []int `json:"rails"` // of ports that belong there, ascending
	Ports int   `json:"ports"` // on rails

	leaf fabric.NodeID
}

// Host is a host and its ports.
type Host struct {
	Host    string `json:"host"`
	Ports   []Port `json:"ports"`   // in natural order of their adapters
	Missing []int  `json:"missing"` // rails on which it lacks a port

	homes  []fabric.NodeID // by index in Missing: the leaf where the port belongs, or NoNode
	leaves []fabric.NodeID // ascending
	member bool            // it has more than half of the usual number of ports
}

// Port is a port of a host.
type Port struct {
	Rail    int             `json:"rail"`    // 0 for none
	Adapter string          `json:"adapter"` // "" if the description does not tell
	Port    verify.Endpoint `json:"port"`
	Leaf    verify.Endpoint `json:"leaf"` // what it is cabled to
	// Home is the leaf where hosts that share leaves with this one have their ports of the rail.
	Home fabric.GUID `json:"home"`

	end        fabric.PortID
	leaf, home fabric.NodeID
	key        string // name or label that ports of a rail share; "" if several of the host have it
}

// place is a rail, for the hosts on a leaf.
type place struct {
	leaf fabric.NodeID
	rail int
}

type finder struct {
	*Result
	pattern *regexp.Regexp // see Find
	leftOut map[string][]fabric.NodeID
	usual   int                             // usual number of ports of a host
	labels  bool                            // keys are labels, not names
	rail    map[string]int                  // by key
	onRail  map[place]int                   // number of members' ports
	votes   map[place]map[fabric.NodeID]int // members on the leaf, by the leaf of their port on the rail
	members []int                           // by leaf: number of members
}

// Find finds the rails of a fabric. pattern finds the names of a host and its
// adapter: see names.Split. If hosts count adapters in different orders, one
// name is on different rails. So if adapters have labels (PCI addresses), Find
// uses labels instead of names if fewer ports are misplaced then. It takes
// O(ports of hosts x ports of a host). Errors: ErrNoRails, ErrTooMany.
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

func (r *Result) misplaced() (n int) {
	for i := range r.Rails {
		n += r.Rails[i].Misplaced
	}
	return n
}

// IsRailed returns true if at least three quarters of the ports on rails are where they belong, and
// no rail has less than half the ports of another. Else only some hosts have several ports, or they
// are cabled by another rule.
func (r *Result) IsRailed() bool {
	ports, least, most := 0, math.MaxInt, 0
	for i := range r.Rails {
		n := r.Rails[i].Ports
		ports, least, most = ports+n, min(least, n), max(most, n)
	}
	return 4*r.misplaced() <= ports && 2*least >= most
}

func find(f *fabric.Fabric, pattern *regexp.Regexp, labels bool) (*Result, error) {
	x := &finder{Result: &Result{f: f, By: "names", Rails: []Rail{}, Leaves: []Leaf{}, Findings: []verify.Finding{}}, pattern: pattern, labels: labels}
	if labels {
		x.By = "labels"
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
	for i := range x.Hosts {
		x.reportHost(&x.Hosts[i])
	}
	x.reportMissing()
	if labels {
		x.reportNames()
	}
	level := levels.Of(f)
	x.findMeetings(level)
	x.sortFindings()
	x.spread(level)
	return x.Result, nil
}

// findHosts collects the ports of all hosts, and finds the members: those with more than half
// of the usual number of ports.
func (x *finder) findHosts() {
	found, leftOut := names.Hosts(x.f, x.pattern, fabric.HostKind)
	x.leftOut = leftOut
	var counts []int
	for _, h := range found {
		y := Host{Host: h.Name, Missing: []int{}}
		for _, n := range h.Nodes {
			cabled := len(y.Ports)
			y.Ports = append(y.Ports, x.portsOf(n)...)
			if len(y.Ports) == cabled {
				leftOut[names.NotCabled] = append(leftOut[names.NotCabled], n)
			}
		}
		if len(y.Ports) == 0 {
			continue
		}
		leaves := text.Each(y.Ports, func(p Port) fabric.NodeID { return p.leaf })
		slices.Sort(leaves)
		y.leaves = slices.Compact(leaves)
		x.sortPorts(&y)
		x.Hosts = append(x.Hosts, y)
		if len(y.Ports) > 1 {
			counts = append(counts, len(y.Ports))
		}
	}
	if len(counts) == 0 {
		return
	}
	slices.Sort(counts)
	x.usual = counts[len(counts)/2]
	for i := range x.Hosts {
		h := &x.Hosts[i]
		h.member = 2*len(h.Ports) > x.usual
		place := 0
		for k := range h.Ports {
			// A key that no adapter has: the port's place in the order of leaves.
			if p := &h.Ports[k]; len(h.Ports) == x.usual && p.key == "" {
				place++
				p.key = fmt.Sprintf("\x00%d", place)
			}
		}
	}
}

// portsOf lists the ports of an adapter that are cabled to switches.
func (x *finder) portsOf(n fabric.NodeID) (list []Port) {
	_, adapter := names.Split(x.f.Name(n).Text, x.pattern)
	for p := range x.f.Cabled(n) {
		s := x.f.PeerSwitch(p)
		if s == fabric.NoNode {
			continue
		}
		y := Port{Adapter: adapter, Port: verify.EndpointOf(x.f, p), Leaf: verify.EndpointOf(x.f, x.f.Peer(p)), end: p, leaf: s, home: s}
		if x.f.Node(n).NumPorts > 1 {
			y.Adapter += fmt.Sprintf("[%d]", x.f.Num(p))
		}
		if y.key = y.Adapter; x.labels {
			y.key = cmp.Or(x.f.Label(p), y.Adapter)
		}
		list = append(list, y)
	}
	return list
}

// sortPorts sorts the ports of a host in natural order of their names, ports with the same name in the order
// of their leaves, and clears keys that several ports have.
func (x *finder) sortPorts(h *Host) {
	slices.SortFunc(h.Ports, func(a, b Port) int {
		return cmp.Or(text.Natural(a.Adapter, b.Adapter), strings.Compare(a.Adapter, b.Adapter), x.byName(a.leaf, b.leaf), cmp.Compare(x.f.Peer(a.end), x.f.Peer(b.end)))
	})
	times := make(map[string]int)
	for _, p := range h.Ports {
		times[p.key]++
	}
	for i := range h.Ports {
		if p := &h.Ports[i]; times[p.key] > 1 {
			p.key = ""
		}
	}
}

// byName compares switches by their names.
func (x *finder) byName(a, b fabric.NodeID) int {
	p, q := x.f.Name(a).Text, x.f.Name(b).Text
	return cmp.Or(text.Natural(p, q), strings.Compare(p, q), cmp.Compare(a, b))
}
