package rails

import (
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// kind is a group of members (see Host.member) whose ports have the same keys.
type kind struct {
	keys  []string
	hosts int
}

// findRails assigns a rail to each key of members' ports, then to ports
// without a key. The first rails are those of the most common kind of host
// with the usual number of ports, in its order. Keys of other kinds follow,
// the most common kinds first.
func (x *finder) findRails() error {
	x.rail = make(map[string]int)
	x.onRail = make(map[place]int)
	on := make(map[string]map[fabric.NodeID]int) // by key: ports on each leaf
	kinds := x.findKinds(on)
	rails := 0
	var first []string // keys of the first rails
	if i := slices.IndexFunc(kinds, func(k *kind) bool { return len(k.keys) == x.usual }); i >= 0 {
		first = kinds[i].keys
		kinds = slices.Insert(kinds, 0, kinds[i])
	}
	for _, k := range kinds {
		for i, key := range k.keys {
			if _, has := x.rail[key]; has {
				continue
			}
			r := 0
			if rails >= len(first) {
				r = x.railLike(k, i, on[key], len(first), rails)
			}
			if r == 0 {
				if rails++; rails > maxRails {
					return ErrTooMany
				}
				r = rails
			}
			x.rail[key] = r
			for leaf, c := range on[key] {
				x.onRail[place{leaf, r}] += c
			}
		}
	}
	x.listNames(rails)
	for i := range x.Hosts {
		x.assign(&x.Hosts[i])
	}
	return nil
}

// findKinds lists the kinds of members, those with most hosts first, and counts the ports of each key by leaf.
func (x *finder) findKinds(on map[string]map[fabric.NodeID]int) (kinds []*kind) {
	byKeys := make(map[string]*kind)
	for i := range x.Hosts {
		if !x.Hosts[i].member {
			continue
		}
		var list []string
		for _, p := range x.Hosts[i].Ports {
			if p.key == "" {
				continue
			}
			list = append(list, p.key)
			if on[p.key] == nil {
				on[p.key] = make(map[fabric.NodeID]int)
			}
			on[p.key][p.leaf]++
		}
		all := strings.Join(list, "\n")
		if byKeys[all] == nil {
			byKeys[all] = &kind{keys: list}
			kinds = append(kinds, byKeys[all])
		}
		byKeys[all].hosts++
	}
	slices.SortStableFunc(kinds, func(a, b *kind) int { return b.hosts - a.hosts })
	return kinds
}

// railLike finds a rail for the i-th key of a kind, other than the rails of the kind's other keys.
// on counts the key's ports by leaf. It returns the rail that has ports on the same leaves as most
// of these, else the i-th of the first rails; 0 for none.
func (x *finder) railLike(k *kind, i int, on map[fabric.NodeID]int, first, rails int) int {
	isTaken := func(r int) bool {
		return slices.ContainsFunc(k.keys, func(key string) bool { return x.rail[key] == r })
	}
	best, most := 0, 0
	for r := 1; r <= rails; r++ {
		shared := 0
		for leaf, c := range on {
			shared += min(c, x.onRail[place{leaf, r}])
		}
		if shared > most && !isTaken(r) {
			best, most = r, shared
		}
	}
	if best == 0 && i < first && !isTaken(i+1) {
		return i + 1
	}
	return best
}

// listNames lists the rails with the names of their adapters.
func (x *finder) listNames(rails int) {
	for r := range rails {
		adapters := []string{}
		for i := range x.Hosts {
			for _, p := range x.Hosts[i].Ports {
				if x.rail[p.key] == r+1 && x.Hosts[i].member && p.Adapter != "" {
					adapters = append(adapters, p.Adapter)
				}
			}
		}
		x.Rails = append(x.Rails, Rail{Rail: r + 1, Adapters: slices.Compact(text.SortNatural(adapters)), MeetsAt: -1})
	}
}

// assign gives rails to the ports of a host. A port without a key gets the rail with most ports on
// its leaf, among those that the host lacks.
func (x *finder) assign(h *Host) {
	has := make(map[int]bool)
	for i := range h.Ports {
		p := &h.Ports[i]
		p.Rail = x.rail[p.key]
		has[p.Rail] = true
	}
	for i := range h.Ports {
		p := &h.Ports[i]
		if p.key != "" {
			continue
		}
		most := 0
		for r := 1; r <= len(x.Rails); r++ {
			if n := x.onRail[place{p.leaf, r}]; n > most && !has[r] {
				p.Rail, most = r, n
			}
		}
		has[p.Rail] = true
	}
}
