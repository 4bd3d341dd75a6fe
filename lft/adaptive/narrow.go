package adaptive

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
)

// DefaultGroups is how many groups the group table of a switch has by default: NVIDIA's NVOS
// manual gives 1792 as default and limit (25.02.4002, "nv action change system profile
// adaptive-routing-groups", 128 to 1792).
const DefaultGroups = 1792

// Narrow leaves each switch at most limit groups. It takes tables as Widen makes them: one PLFT,
// and groups of one subgroup. Choices only become fewer, so that what was proven holds.
//
// An entry with k ports is worth 1-1/k: the share of its packets that leave by another port than the
// static one when all ports are taken alike. A switch keeps the groups whose entries
// are worth most. Each further group, in the order of their worth, joins the one with which
// the least is lost. What both have in common takes the place of both, and entries
// whose static port is not in it become Static; all entries of the further group do if less is
// lost so. It takes O(groups x limit) for a switch with more groups than limit, and is the same
// on any number of CPUs.
func Narrow(t *Tables, limit int) {
	par.Each(len(t.Groups), func(s int) {
		if len(t.Groups[s]) > limit {
			t.narrow(fabric.NodeID(s), limit)
		}
	})
}

// candidate is a group with its entries.
type candidate struct {
	set     PortSet
	entries [256]int32 // by static port: entries that use the group
	into    int        // the candidate that it is part of, -1 for none
}

// worth is that of all entries whose static ports are in a set.
func (c *candidate) worth(set PortSet) float64 {
	n := set.Len()
	if n < 2 {
		return 0
	}
	entries := int32(0)
	set.Each(func(p fabric.PortNum) { entries += c.entries[p] })
	return float64(float64(entries) * (1 - 1/float64(n)))
}

// intersect is the ports of both sets.
func intersect(a, b PortSet) PortSet {
	for i := range a {
		a[i] &= b[i]
	}
	return a
}

// narrow leaves a switch at most limit groups.
func (t *Tables) narrow(s fabric.NodeID, limit int) {
	plft := t.PLFTs[0]
	all := make([]candidate, len(t.Groups[s]))
	for i := range all {
		all[i].set, all[i].into = t.Groups[s][i].Ports(), i
	}
	static := plft.Ports.Row(s)
	for lid := range plft.Row(s) {
		if _, group := plft.At(s, fabric.LID(lid)); group >= 0 {
			all[group].entries[static[lid]]++
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].worth(all[b].set), all[a].worth(all[a].set)) })
	for _, i := range order[limit:] {
		c := &all[i]
		loss := c.worth(c.set)
		c.into = -1
		for _, k := range order[:limit] {
			kept := &all[k]
			both := intersect(kept.set, c.set)
			if l := kept.worth(kept.set) + c.worth(c.set) - kept.worth(both) - c.worth(both); l < loss {
				loss, c.into = l, k
			}
		}
		if c.into >= 0 {
			kept := &all[c.into]
			kept.set = intersect(kept.set, c.set)
			for p, n := range c.entries {
				kept.entries[p] += n
			}
		}
	}
	number := make([]int, len(all))
	var groups []Group
	for i := range all {
		number[i] = -1
		if all[i].into == i && all[i].set.Len() > 1 {
			number[i] = len(groups)
			groups = append(groups, Group{Number: len(groups), Subgroups: []Subgroup{{Ports: all[i].set}}})
		}
	}
	t.Groups[s] = groups
	for lid := range plft.Row(s) {
		_, group := plft.At(s, fabric.LID(lid))
		if group < 0 {
			continue
		}
		if into := all[group].into; into >= 0 && number[into] >= 0 && all[into].set.Has(static[lid]) {
			plft.Set(s, fabric.LID(lid), Free, number[into])
		} else {
			plft.Set(s, fabric.LID(lid), Static, -1)
		}
	}
}
