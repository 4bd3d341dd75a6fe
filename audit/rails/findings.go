package rails

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// The names of the rules.
const (
	Lost      = "rail-lost"
	Swapped   = "rail-swapped"
	Crossed   = "rail-crossed-leaf"
	Moved     = "rail-moved"
	OtherLeaf = "rail-other-leaf"
	Missing   = "rail-missing"
	Misnamed  = "rail-misnamed"
	Left      = "rail-left"
)

// Rules lists the rules about rails, the gravest first.
var Rules = []verify.Rule{
	{Name: Lost, Severity: verify.Error, Count: "pairs", Summary: "the tables do not deliver packets within a rail"},
	{Name: Swapped, Severity: verify.Error, Count: "ports", Summary: "ports of a host are in each other's places"},
	{Name: Crossed, Severity: verify.Error, Count: "ports", Summary: "a leaf of one rail is cabled to the spines of another"},
	{Name: Moved, Severity: verify.Error, Count: "ports", Summary: "a port is on the leaf of another rail"},
	{Name: OtherLeaf, Severity: verify.Warning, Count: "ports", Summary: "a port is on its rail, on a leaf of other hosts"},
	{Name: Missing, Severity: verify.Warning, Count: "ports", Summary: "hosts have no port on a rail"},
	{Name: Misnamed, Severity: verify.Warning, Count: "ports", Summary: "a host has the names of its adapters on other rails than most hosts"},
	{Name: Left, Severity: verify.Warning, Count: "routes", Summary: "routes within a rail pass switches of others"},
}

// add adds a finding of a rule.
func (r *Result) add(rule string, count int64, ports []fabric.PortID, format string, args ...any) {
	x := verify.NewFinding(Rules, rule, int(count), format, args...)
	if ports != nil {
		x.Ports = verify.EndpointsOf(r.f, ports...)
	}
	r.Findings = append(r.Findings, x)
}

// sortFindings puts findings in the order of Rules. Those of a rule keep theirs.
func (r *Result) sortFindings() {
	place := func(f verify.Finding) int {
		return slices.IndexFunc(Rules, func(rule verify.Rule) bool { return rule.Name == f.Rule })
	}
	slices.SortStableFunc(r.Findings, func(a, b verify.Finding) int { return cmp.Compare(place(a), place(b)) })
}

// Worst is the severity of the gravest finding.
func (r *Result) Worst() verify.Severity {
	return (&verify.Result{Findings: r.Findings}).Worst()
}

// list fills in hosts, leaves and rails, and the findings about hosts.
func (x *finder) list() {
	r := x.out
	r.Findings = []verify.Finding{}
	r.ends = make([][]fabric.PortID, len(r.Rails))
	r.on = make([]uint64, x.f.NumSwitches())
	ports := make(map[fabric.NodeID]int)
	for i := range x.hosts {
		h := &x.hosts[i]
		y := Host{Host: h.name, Ports: []Port{}, Missing: []int{}}
		for _, p := range h.ports {
			y.Ports = append(y.Ports, Port{Rail: int(p.rail) + 1, Adapter: p.name, Port: verify.EndpointOf(x.f, p.end), Leaf: verify.EndpointOf(x.f, x.f.Peer(p.end)), Home: x.f.Node(p.home).GUID})
			if p.rail < 0 {
				continue
			}
			r.ends[p.rail] = append(r.ends[p.rail], p.end)
			rail := &r.Rails[p.rail]
			rail.Ports++
			ports[p.leaf]++
			if p.home != p.leaf {
				rail.Misplaced++
			} else {
				r.on[p.leaf] |= 1 << p.rail
			}
		}
		for _, m := range h.missing {
			y.Missing = append(y.Missing, int(m.rail)+1)
			r.Rails[m.rail].Missing++
		}
		r.Hosts = append(r.Hosts, y)
	}
	for _, leaf := range slices.SortedFunc(maps.Keys(ports), x.byName) {
		l := Leaf{SwitchRef: verify.SwitchOf(x.f, leaf), Rails: []int{}, Ports: ports[leaf]}
		for rail := range r.Rails {
			if r.on[leaf]>>rail&1 != 0 {
				l.Rails = append(l.Rails, rail+1)
				r.Rails[rail].Leaves++
			}
		}
		r.Leaves = append(r.Leaves, l)
	}
	for i := range x.hosts {
		x.reportHost(&x.hosts[i])
	}
	x.reportMissing()
	if x.labels {
		x.reportMisnamed()
	}
	r.LeftOut = names.ListLeftOut(x.f, x.leftOut)
}

// reportHost makes findings of the ports of a host that are misplaced: those that are in each
// other's places as one.
func (x *finder) reportHost(h *host) {
	var swapped []port
	for _, p := range h.ports {
		if p.home == p.leaf {
			continue
		}
		from := slices.ContainsFunc(h.ports, func(q port) bool { return q.home != q.leaf && q.leaf == p.home })
		to := slices.ContainsFunc(h.ports, func(q port) bool { return q.home != q.leaf && q.home == p.leaf })
		switch {
		case from && to:
			swapped = append(swapped, p)
		case x.out.on[p.leaf]>>p.rail&1 != 0:
			x.out.add(OtherLeaf, 1, x.both(p), "%s is on %s, and the hosts beside %s have rail %d on %s", x.f.PortName(p.end), x.f.PortName(x.f.Peer(p.end)), h.name, p.rail+1, x.f.Name(p.home))
		default:
			x.out.add(Moved, 1, x.both(p), "%s is on %s, which has %s; the hosts beside %s have rail %d on %s", x.f.PortName(p.end), x.f.PortName(x.f.Peer(p.end)), x.out.words(x.out.on[p.leaf]), h.name, p.rail+1, x.f.Name(p.home))
		}
	}
	if len(swapped) == 0 {
		return
	}
	var where []string
	var ports []fabric.PortID
	for _, p := range swapped {
		where = append(where, fmt.Sprintf("%s on %s instead of %s", cmp.Or(p.name, x.f.PortName(p.end)), x.f.PortName(x.f.Peer(p.end)), x.f.Name(p.home)))
		ports = append(ports, x.both(p)...)
	}
	doubt := ""
	if len(swapped) > 2 {
		doubt = "; or the host counts its adapters in another order"
	}
	if home, all := x.homeOf(h, swapped[0].rail); 4*home.hosts < 3*all {
		doubt += "; the hosts beside it do not all agree"
	}
	x.out.add(Swapped, int64(len(swapped)), ports, "%s has %d ports in each other's places: %s%s", h.name, len(swapped), text.List(where, "and"), doubt)
}

// both is a port and the one that it is cabled to.
func (x *finder) both(p port) []fabric.PortID { return []fabric.PortID{p.end, x.f.Peer(p.end)} }

// words names rails of a set.
func (r *Result) words(set uint64) string {
	var list []string
	for rail := range r.Rails {
		if set>>rail&1 != 0 {
			list = append(list, fmt.Sprint(rail+1))
		}
	}
	switch len(list) {
	case 0:
		return "no rail"
	case 1:
		return "rail " + list[0]
	}
	return "rails " + text.List(list, "and")
}

// reportMissing makes a finding of all hosts that lack a rail and the same leaf, or share leaves and
// have none beside them with the rail.
func (x *finder) reportMissing() {
	type lack struct {
		rail   int32
		home   fabric.NodeID
		leaves string // without home
	}
	hosts := make(map[lack][]*host)
	var order []lack
	for i := range x.hosts {
		h := &x.hosts[i]
		for _, m := range h.missing {
			k := lack{rail: m.rail, home: m.home}
			if m.home == fabric.NoNode {
				k.leaves = fmt.Sprint(h.leaves)
			}
			if hosts[k] == nil {
				order = append(order, k)
			}
			hosts[k] = append(hosts[k], h)
		}
	}
	slices.SortStableFunc(order, func(a, b lack) int { return cmp.Compare(a.rail, b.rail) })
	for _, k := range order {
		var list []string
		for _, h := range hosts[k] {
			list = append(list, h.name)
		}
		without := text.Count(len(list), "host has no port", "hosts have no port")
		if k.home == fabric.NoNode {
			x.out.add(Missing, int64(len(list)), nil, "%s on rail %d, nor has any host beside them: %s", without, k.rail+1, hostlist.Fold(list))
			continue
		}
		ports, words := x.atPlaces(hosts[k], k.home)
		x.out.add(Missing, int64(len(list)), ports, "%s on rail %d, which is on %s: %s%s", without, k.rail+1, x.f.Name(k.home), hostlist.Fold(list), words)
	}
}

// reportMisnamed makes a finding of each host that has names of adapters on other rails than most
// hosts of all have them.
func (x *finder) reportMisnamed() {
	hosts := make(map[string]map[int32]int) // by name and rail
	for i := range x.hosts {
		for _, p := range x.hosts[i].ports {
			if hosts[p.name] == nil {
				hosts[p.name] = make(map[int32]int)
			}
			hosts[p.name][p.rail]++
		}
	}
	usual := make(map[string]int32)
	for name, rails := range hosts {
		for r, n := range rails {
			if 2*n > len(x.hosts) && r >= 0 && name != "" {
				usual[name] = r
			}
		}
	}
	for i := range x.hosts {
		var where []string
		var ports []fabric.PortID
		for _, p := range x.hosts[i].ports {
			if r, known := usual[p.name]; known && p.rail >= 0 && r != p.rail {
				where = append(where, fmt.Sprintf("%s is on rail %d, not %d", p.name, p.rail+1, r+1))
				ports = append(ports, p.end)
			}
		}
		if len(where) > 0 {
			x.out.add(Misnamed, int64(len(where)), ports, "%s counts its adapters in another order than most hosts, by their labels: %s", x.hosts[i].name, text.List(where, "and"))
		}
	}
}

// atPlaces looks at the ports of a leaf where hosts should be: those with the number that all other
// ports of the host have on their leaves. It lists those that have no cable, or an adapter that is no
// host.
func (x *finder) atPlaces(hosts []*host, leaf fabric.NodeID) (ports []fabric.PortID, words string) {
	empty, foreign := 0, 0
	described := make(map[string]bool)
	outside := make(map[fabric.NodeID]bool)
	for _, nodes := range x.leftOut {
		for _, n := range nodes {
			outside[n] = true
		}
	}
	for _, h := range hosts {
		num := x.f.Num(x.f.Peer(h.ports[0].end))
		same := !slices.ContainsFunc(h.ports, func(p port) bool { return x.f.Num(x.f.Peer(p.end)) != num })
		if !same || num > x.f.Node(leaf).NumPorts {
			continue
		}
		at := x.f.Port(leaf, num)
		peer := x.f.Peer(at)
		switch {
		case peer == fabric.NoPort:
			empty++
		case outside[x.f.Owner(peer)]:
			foreign++
			described[x.f.Name(x.f.Owner(peer)).Text] = true
		default:
			continue
		}
		ports = append(ports, at)
	}
	all := make([]string, 0, len(described))
	for d := range described {
		all = append(all, strconv.Quote(d))
	}
	if empty > 0 {
		words = "; in their place " + text.Count(empty, "port without a cable", "ports without a cable")
	}
	if foreign > 0 {
		words += "; in their place " + text.Count(foreign, "adapter that is no host", "adapters that are no hosts") + ": " + text.Few(text.SortNatural(all), 3)
	}
	return ports, words
}
