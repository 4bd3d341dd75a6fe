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
}

// mostCentres bounds the units that families are around.
const mostCentres = 32

// families yields sets of hosts, with the name of the family. The first hosts in order are one. Others take
// the units with most free hosts, or the nearest ones: of the whole fabric, and of what is around a unit, as far as it takes to have
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
		return yield(p.take(list, nil), "fewest leaves"+where) && yield(p.take(list, distance), "nearest leaves"+where)
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

// take takes hosts of units: of the nearest ones by distance, unless it is nil, and of those with most free hosts. The last
// unit is the one with the fewest hosts that are enough.
func (p *placer) take(list, distance []int) (members []int) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b int) int {
		nearer := 0
		if distance != nil {
			nearer = cmp.Compare(distance[a], distance[b])
		}
		return cmp.Or(nearer, cmp.Compare(len(p.units[b].hosts), len(p.units[a].hosts)), cmp.Compare(a, b))
	})
	need := p.opt.Hosts
	for i := 0; need > 0; i++ {
		hosts := p.units[list[i]].hosts
		if len(hosts) > need {
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
