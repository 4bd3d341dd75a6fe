package place

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/fabric"
)

// unit is free hosts with the same switches: of a leaf, or of the leaves of all rails.
type unit struct {
	switches []fabric.NodeID // ascending
	hosts    []int           // free ones, ascending
	size     int             // with the busy ones
	quiet    float64         // seconds: of the jobs that run on the busiest cable of its switches
}

// findUnits groups the hosts.
func (p *placer) findUnits(all []jobs.Host) {
	index := make(map[string]int)
	switches := func(h *jobs.Host) (list []fabric.NodeID) {
		for _, port := range h.Ports {
			list = append(list, p.f.PeerSwitch(port))
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	p.unit = make([]int, len(p.hosts))
	for i := range p.hosts {
		list := switches(&p.hosts[i])
		key := fmt.Sprint(list)
		at, known := index[key]
		if !known {
			at = len(p.units)
			index[key] = at
			p.units = append(p.units, unit{switches: list})
		}
		p.unit[i] = at
		p.units[at].hosts = append(p.units[at].hosts, i)
	}
	for i := range all {
		if at, known := index[fmt.Sprint(switches(&all[i]))]; known {
			p.units[at].size++
		}
	}
	load := make([]float64, p.f.NumSwitches())
	for _, port := range p.between {
		sum := 0.0
		for _, l := range p.running[port] {
			sum += l.Bytes
		}
		for _, s := range []fabric.NodeID{p.f.Owner(port), p.f.PeerSwitch(port)} {
			load[s] = max(load[s], sum/p.rate[port])
		}
	}
	for i := range p.units {
		for _, s := range p.units[i].switches {
			p.units[i].quiet = max(p.units[i].quiet, load[s])
		}
	}
}

// order is an order in which a family takes units.
type order struct {
	name string
	// compare has the better unit first; distances are from the centre of a family, by unit.
	compare func(a, b *unit, distanceA, distanceB int) int
	// fit has the last unit be the one with the fewest hosts that are enough.
	fit bool
}

func mostFree(a, b *unit) int { return cmp.Compare(len(b.hosts), len(a.hosts)) }

// orders are those that families are made of.
var orders = []order{
	{"fewest leaves", func(a, b *unit, _, _ int) int { return mostFree(a, b) }, true},
	{"whole leaves", func(a, b *unit, _, _ int) int {
		return cmp.Or(cmp.Compare(min(a.size-len(a.hosts), 1), min(b.size-len(b.hosts), 1)), mostFree(a, b))
	}, true},
	{"quiet leaves", func(a, b *unit, _, _ int) int { return cmp.Or(cmp.Compare(a.quiet, b.quiet), mostFree(a, b)) }, false},
	{"nearest leaves", func(a, b *unit, m, n int) int { return cmp.Or(cmp.Compare(m, n), mostFree(a, b)) }, true},
}

// mostCentres bounds the units that families are around.
const mostCentres = 32

// families yields sets of hosts, with the name of the family. The first hosts in order are one. Others take
// units in each of the orders: of the whole fabric, and of what is around a unit, as far as it takes to have
// enough free hosts. That is a leaf or a pod of a tree, a group of a dragonfly, or a part of a torus.
func (p *placer) families(yield func(members []int, family string) bool) {
	n := p.opt.Hosts
	first := make([]int, n)
	for i := range first {
		first[i] = i
	}
	if !yield(first, "first fit") {
		return
	}
	distance := make([]int, len(p.units))
	list := make([]int, len(p.units))
	for u := range list {
		list[u] = u
	}
	try := func(list []int, where string) bool {
		for i := range orders {
			if !yield(p.take(&orders[i], list, distance), orders[i].name+where) {
				return false
			}
		}
		return true
	}
	if !try(list, "") {
		return
	}
	centres := min(len(p.units), mostCentres)
	for k := range centres {
		centre := k * len(p.units) / centres
		p.distances(centre, distance)
		slices.SortFunc(list, func(a, b int) int { return cmp.Or(cmp.Compare(distance[a], distance[b]), cmp.Compare(a, b)) })
		enough, free := 0, 0
		for enough < len(list) && (free < n || distance[list[enough]] == distance[list[enough-1]]) {
			free += len(p.units[list[enough]].hosts)
			enough++
		}
		where := " of one leaf"
		if far := distance[list[enough-1]]; far > 0 {
			where = fmt.Sprintf(" within %d hops", far+1)
		}
		if !try(list[:enough], where) {
			return
		}
	}
}

// take takes hosts of units in an order.
func (p *placer) take(o *order, list, distance []int) (members []int) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b int) int {
		return cmp.Or(o.compare(&p.units[a], &p.units[b], distance[a], distance[b]), cmp.Compare(a, b))
	})
	need := p.opt.Hosts
	for i := 0; need > 0; i++ {
		hosts := p.units[list[i]].hosts
		if len(hosts) > need && o.fit {
			for _, u := range list[i+1:] {
				if n := len(p.units[u].hosts); n >= need && n < len(hosts) {
					hosts = p.units[u].hosts
				}
			}
		}
		take := min(need, len(hosts))
		members, need = append(members, hosts[:take]...), need-take
	}
	return members
}

// distances fills in how many cables units are from a centre, by their first switches.
func (p *placer) distances(centre int, distance []int) {
	p.steps.Run(func(s fabric.NodeID) []fabric.NodeID { _, to := p.f.SwitchLinks(s); return to }, p.units[centre].switches[0])
	for u := range distance {
		if distance[u] = int(p.steps.Distance[p.units[u].switches[0]]); distance[u] < 0 {
			distance[u] = p.f.NumSwitches() // no cables join them
		}
	}
}
