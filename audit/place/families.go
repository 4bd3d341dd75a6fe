package place

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/internal/text"
)

// unit is the free hosts that are cabled to the same switches: a leaf, or the leaves of all rails.
type unit struct {
	hosts []int // free ones, ascending
	size  int   // number of hosts, busy ones too
}

// findUnits groups the free hosts into units; all has the busy ones too.
func (p *placer) findUnits(all []jobs.Host) {
	index := make(map[string]int)
	switches := func(h *jobs.Host) string {
		list := text.Each(h.Ports, p.f.PeerSwitch)
		slices.Sort(list)
		return fmt.Sprint(slices.Compact(list))
	}
	p.unit = make([]int, len(p.hosts))
	for i := range p.hosts {
		key := switches(&p.hosts[i])
		at, known := index[key]
		if !known {
			at = len(p.units)
			index[key] = at
			p.units = append(p.units, unit{})
		}
		p.unit[i] = at
		p.units[at].hosts = append(p.units[at].hosts, i)
	}
	for i := range all {
		if at, known := index[switches(&all[i])]; known {
			p.units[at].size++
		}
	}
}

// firstSets judges two sets: the first free hosts in order, and hosts of the units with most free
// hosts. It returns one set if both are the same.
func (p *placer) firstSets(ctx context.Context) ([]Set, error) {
	first, fewest := text.Numbers[int](p.opt.Hosts), p.fewestUnits()
	slices.Sort(fewest)
	sets := []Set{{Families: []string{"first fit"}, members: first}, {Families: []string{"fewest leaves"}, members: fewest}}
	if slices.Equal(first, fewest) {
		sets = []Set{{Families: []string{"first fit", "fewest leaves"}, members: first}}
	}
	for i := range sets {
		if err := p.judge(ctx, &sets[i]); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// fewestUnits takes hosts of the units with most free hosts; the last hosts are of the smallest
// unit that has enough.
func (p *placer) fewestUnits() (members []int) {
	list := slices.Clone(p.units)
	slices.SortStableFunc(list, func(a, b unit) int { return cmp.Compare(len(b.hosts), len(a.hosts)) })
	need := p.opt.Hosts
	for i := 0; need > 0; i++ {
		hosts := list[i].hosts
		for _, u := range list[i+1:] {
			if n := len(u.hosts); n >= need && n < len(hosts) {
				hosts = u.hosts
			}
		}
		take := min(need, len(hosts))
		members, need = append(members, hosts[:take]...), need-take
	}
	return members
}
