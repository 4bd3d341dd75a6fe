package rails

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// add adds a finding of a rule, and returns it for changes.
func (r *Result) add(rule string, count int64, ports []fabric.PortID, format string, args ...any) *verify.Finding {
	x := verify.NewFinding(allRules, rule, int(count), format, args...)
	if ports != nil {
		x.Ports = verify.EndpointsOf(r.f, ports...)
	}
	r.Findings = append(r.Findings, x)
	return &r.Findings[len(r.Findings)-1]
}

// sortFindings sorts findings by severity, the gravest first, then by the order of rules.
// Findings of the same rule keep their order.
func (r *Result) sortFindings() {
	place := func(f verify.Finding) int {
		return slices.IndexFunc(allRules, func(rule verify.Rule) bool { return rule.Name == f.Rule })
	}
	slices.SortStableFunc(r.Findings, func(a, b verify.Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(place(a), place(b)))
	})
}

// Worst is the severity of the gravest finding.
func (r *Result) Worst() verify.Severity {
	return (&verify.Result{Findings: r.Findings}).Worst()
}

// reportHost makes findings of the misplaced ports of a host; ports that are in each
// other's places make one finding.
func (x *finder) reportHost(h *Host) {
	var misplaced []*Port
	for i := range h.Ports {
		if p := &h.Ports[i]; p.home != p.leaf {
			misplaced = append(misplaced, p)
		}
	}
	var swapped []*Port
	for _, p := range misplaced {
		ends := []fabric.PortID{p.end, x.f.Peer(p.end)}
		name, at, home := x.f.PortName(p.end), x.f.PortName(ends[1]), x.f.Name(p.home)
		switch {
		case slices.ContainsFunc(misplaced, func(q *Port) bool { return q.leaf == p.home }) && slices.ContainsFunc(misplaced, func(q *Port) bool { return q.home == p.leaf }):
			swapped = append(swapped, p)
		case x.isOn(p.leaf, p.Rail):
			x.add(Mixed, 1, ends, "%s is on %s, and the hosts beside %s have rail %d on %s%s", name, at, h.Host, p.Rail, home, x.cureOther(p)).Severity = verify.Warning
		default:
			x.add(Mixed, 1, ends, "%s is on %s, which has %s; the hosts beside %s have rail %d on %s%s", name, at, railNames(x.on[p.leaf]), h.Host, p.Rail, home, x.cureOther(p))
		}
	}
	if len(swapped) == 0 {
		return
	}
	where := text.Each(swapped, func(p *Port) string {
		return fmt.Sprintf("%s on %s instead of %s", cmp.Or(p.Adapter, x.f.PortName(p.end)), x.f.PortName(x.f.Peer(p.end)), x.f.Name(p.home))
	})
	var ports []fabric.PortID
	for _, p := range swapped {
		ports = append(ports, p.end, x.f.Peer(p.end))
	}
	words := x.cure(swapped)
	if len(where) > 2 {
		words += "; or the host counts its adapters in another order"
	}
	if _, hosts, all := x.homeOf(h, swapped[0].Rail); 4*hosts < 3*all {
		words += "; the hosts beside it do not all agree"
	}
	x.add(Swapped, int64(len(where)), ports, "%s has %d ports in each other's places: %s%s", h.Host, len(where), text.List(where, "and"), words)
}

// cure says which cables to exchange, one pair after another, so that ports come to the leaves
// where they belong; "" if no exchange helps.
func (x *finder) cure(ports []*Port) string {
	at := text.Each(ports, func(p *Port) fabric.PortID { return x.f.Peer(p.end) }) // the switch port of each
	isOn := func(i int, leaf fabric.NodeID) bool { return x.f.Owner(at[i]) == leaf }
	var steps []string
	for i, p := range ports {
		for k, q := range ports {
			if !isOn(i, p.home) && isOn(k, p.home) && !isOn(k, q.home) {
				steps = append(steps, fmt.Sprintf("at %s and %s", x.f.PortName(at[i]), x.f.PortName(at[k])))
				at[i], at[k] = at[k], at[i]
			}
		}
	}
	if len(steps) == 0 {
		return ""
	}
	return "; exchange the cables " + strings.Join(steps, ", then ")
}

// cureOther is cure for p and the first port that belongs where p is, and is where p belongs.
func (x *finder) cureOther(p *Port) string {
	for i := range x.Hosts {
		for k := range x.Hosts[i].Ports {
			if q := &x.Hosts[i].Ports[k]; q.leaf == p.home && q.home == p.leaf {
				return x.cure([]*Port{p, q})
			}
		}
	}
	return ""
}

func (r *Result) isOn(s fabric.NodeID, rail int) bool { return r.on[s]>>(rail-1)&1 != 0 }

func railNames(set uint64) string {
	var list []string
	for ; set != 0; set &= set - 1 {
		list = append(list, fmt.Sprint(bits.TrailingZeros64(set)+1))
	}
	switch len(list) {
	case 0:
		return "no rail"
	case 1:
		return "rail " + list[0]
	}
	return "rails " + text.List(list, "and")
}

// reportMissing makes one finding of all hosts that lack a port on the same rail and leaf; if the
// leaf is unknown, of those on the same leaves.
func (x *finder) reportMissing() {
	type lack struct {
		rail   int
		home   fabric.NodeID
		leaves string // of the hosts; "" if home is known
	}
	hosts := make(map[lack][]*Host)
	var order []lack
	for i := range x.Hosts {
		h := &x.Hosts[i]
		for k, rail := range h.Missing {
			l := lack{rail: rail, home: h.homes[k]}
			if l.home == fabric.NoNode {
				l.leaves = fmt.Sprint(h.leaves)
			}
			if hosts[l] == nil {
				order = append(order, l)
			}
			hosts[l] = append(hosts[l], h)
		}
	}
	slices.SortStableFunc(order, func(a, b lack) int { return cmp.Compare(a.rail, b.rail) })
	for _, k := range order {
		list := text.Each(hosts[k], func(h *Host) string { return h.Host })
		where, words := ", nor has any host beside them", ""
		few := hosts[k][:min(len(hosts[k]), 100)]
		ports := text.Each(few, func(h *Host) fabric.PortID { return h.Ports[0].end })
		if k.home != fabric.NoNode {
			where = ", which is on " + x.f.Name(k.home).String()
			var at []fabric.PortID
			if at, words = x.atPlaces(hosts[k], k.home); len(at) > 0 {
				ports = at
			}
		}
		x.add(Missing, int64(len(list)), ports, "%s on rail %d%s: %s%s",
			text.Count(len(list), "host has no port", "hosts have no port"), k.rail, where, hostlist.Fold(list), words)
	}
}

// atPlaces finds ports of a leaf where hosts should have a cable: a host's place is the port number
// that all its other ports have on their leaves. It returns places without a cable, or with an
// adapter on no rail, and words about them.
func (x *finder) atPlaces(hosts []*Host, leaf fabric.NodeID) (ports []fabric.PortID, words string) {
	empty := 0
	var foreign []string // adapters on no rail, by description
	leftOut := slices.Concat(slices.Collect(maps.Values(x.leftOut))...)
	for _, h := range hosts {
		num := x.f.Num(x.f.Peer(h.Ports[0].end))
		if num > x.f.Node(leaf).NumPorts || slices.ContainsFunc(h.Ports, func(p Port) bool { return x.f.Num(x.f.Peer(p.end)) != num }) {
			continue
		}
		at := x.f.Port(leaf, num)
		if peer := x.f.Peer(at); peer == fabric.NoPort {
			empty++
		} else if n := x.f.Owner(peer); slices.Contains(leftOut, n) {
			foreign = append(foreign, strconv.Quote(x.f.Name(n).Text))
		} else {
			continue
		}
		ports = append(ports, at)
	}
	if empty > 0 {
		words = "; in their place " + text.Count(empty, "port without a cable", "ports without a cable")
	}
	if n := len(foreign); n > 0 {
		words += "; in their place " + text.Count(n, "adapter that is no host", "adapters that are no hosts") + ": " + text.Few(slices.Compact(text.SortNatural(foreign)), 3)
	}
	return ports, words
}

// reportNames makes a finding of each host whose adapters' names are on other rails than most
// hosts'.
func (x *finder) reportNames() {
	hosts := make(map[string]map[int]int) // by name and rail
	for i := range x.Hosts {
		for _, p := range x.Hosts[i].Ports {
			if hosts[p.Adapter] == nil {
				hosts[p.Adapter] = make(map[int]int)
			}
			hosts[p.Adapter][p.Rail]++
		}
	}
	for i := range x.Hosts {
		var where []string
		var ports []fabric.PortID
		for _, p := range x.Hosts[i].Ports {
			for usual := range x.Rails {
				if r := usual + 1; p.Adapter != "" && p.Rail > 0 && r != p.Rail && 2*hosts[p.Adapter][r] > len(x.Hosts) {
					where = append(where, fmt.Sprintf("%s is on rail %d, not %d", p.Adapter, p.Rail, r))
					ports = append(ports, p.end)
				}
			}
		}
		if len(where) > 0 {
			x.add(Swapped, int64(len(where)), ports, "%s counts its adapters in another order than most hosts, by their labels: %s", x.Hosts[i].Host, text.List(where, "and")).Severity = verify.Warning
		}
	}
}

// findMeetings finds where rails meet. It adds cables level by level, from below.
func (x *finder) findMeetings(level []int32) {
	joins := graph.NewUnionFind[fabric.NodeID](x.f.NumSwitches())
	for k := range slices.Max(level) + 1 {
		for s := range fabric.NodeID(x.f.NumSwitches()) {
			for _, to := range x.f.Neighbors(s) {
				if max(level[s], level[to]) <= k {
					joins.Join(s, to)
				}
			}
		}
		together := make([]uint64, x.f.NumSwitches()) // rails of a part's leaves, by its root
		for _, l := range x.Leaves {
			together[joins.Find(l.leaf)] |= x.on[l.leaf]
		}
		for i := range x.Rails {
			if x.Rails[i].MeetsAt < 0 && slices.ContainsFunc(together, func(set uint64) bool { return set>>i&1 != 0 && bits.OnesCount64(set) > 1 }) {
				x.Rails[i].MeetsAt = int(k)
			}
		}
	}
}

// spread sets the rails of switches above the leaves: those of lower switches that they are cabled
// to.
func (r *Result) spread(level []int32) {
	for k := int32(1); k <= slices.Max(level); k++ {
		for s := range fabric.NodeID(len(level)) {
			if level[s] != k {
				continue
			}
			for _, to := range r.f.Neighbors(s) {
				if level[to] < k {
					r.on[s] |= r.on[to]
				}
			}
		}
	}
}
