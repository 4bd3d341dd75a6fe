package rails

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// naming finds which keys of ports are one rail.
type naming struct {
	*finder
	usual   []string // the keys of the commonest host with the usual number of ports
	rails   int
	on      map[string]map[fabric.NodeID]int // by key: ports on each leaf
	onRail  map[fabric.NodeID]map[int32]int  // by leaf: ports of each rail
	profile map[string][]string              // by key: those of the commonest host that has it
	beside  map[string][]string              // by key: keys on the same host, sorted, each once
}

// findRails gives a rail to each key of a member's port, then to ports without keys. The first rails
// are those of the commonest host with the usual number of ports, in its order.
func (x *finder) findRails() error {
	n := &naming{finder: x, on: make(map[string]map[fabric.NodeID]int), onRail: make(map[fabric.NodeID]map[int32]int)}
	x.rail = make(map[string]int32)
	n.findProfiles()
	for _, key := range n.usual {
		n.join(key, n.newRail())
	}
	rest := slices.DeleteFunc(slices.Collect(maps.Keys(n.on)), func(key string) bool { _, has := x.rail[key]; return has })
	ports := make(map[string]int)
	for _, key := range rest {
		for _, c := range n.on[key] {
			ports[key] += c
		}
	}
	slices.SortFunc(rest, func(a, b string) int {
		return cmp.Or(ports[b]-ports[a], text.Natural(a, b), strings.Compare(a, b))
	})
	for _, key := range rest {
		r := n.find(key, ports[key])
		if r < 0 {
			if r = n.newRail(); n.rails > maxRails {
				return ErrTooMany
			}
		}
		n.join(key, r)
	}
	n.listNames()
	for i := range x.hosts {
		n.assign(&x.hosts[i])
	}
	return nil
}

// findProfiles counts the keys of members' ports by leaf, and finds the commonest hosts.
func (n *naming) findProfiles() {
	type kind struct {
		keys  []string
		hosts int
		whole bool // as many ports as usual
	}
	var kinds []*kind // in the order of their first hosts
	byKeys := make(map[string]*kind)
	for i := range n.hosts {
		h := &n.hosts[i]
		if !h.member {
			continue
		}
		var list []string
		for _, p := range h.ports {
			if p.key == "" {
				continue
			}
			list = append(list, p.key)
			if n.on[p.key] == nil {
				n.on[p.key] = make(map[fabric.NodeID]int)
			}
			n.on[p.key][p.leaf]++
		}
		all := strings.Join(list, "\n")
		k := byKeys[all]
		if k == nil {
			k = &kind{keys: list, whole: len(list) == n.finder.usual}
			kinds, byKeys[all] = append(kinds, k), k
		}
		k.hosts++
	}
	slices.SortStableFunc(kinds, func(a, b *kind) int { return b.hosts - a.hosts })
	n.profile, n.beside = make(map[string][]string), make(map[string][]string)
	for _, k := range kinds {
		if n.usual == nil && k.whole {
			n.usual = k.keys
		}
		for _, key := range k.keys {
			if n.profile[key] == nil {
				n.profile[key] = k.keys
			}
			n.beside[key] = append(n.beside[key], k.keys...)
		}
	}
	for key, list := range n.beside {
		slices.Sort(list)
		n.beside[key] = slices.Compact(list)
	}
}

func (n *naming) newRail() int32 {
	n.rails++
	return int32(n.rails - 1)
}

// join puts a key on a rail.
func (n *naming) join(key string, r int32) {
	n.rail[key] = r
	for leaf, c := range n.on[key] {
		if n.onRail[leaf] == nil {
			n.onRail[leaf] = make(map[int32]int)
		}
		n.onRail[leaf][r] += c
	}
}

// find is the rail of a key: none of another port of a host with that key. It is the rail with
// which half of the ports share their leaves, else that of the same place in the order of the host
// if that has as many ports as usual, else the one with which most ports share their leaves, else
// that of the same place; -1 for none. Rails that share as many are no choice between them.
func (n *naming) find(key string, ports int) int32 {
	taken := make(map[int32]bool)
	for _, other := range n.beside[key] {
		if r, has := n.rail[other]; has {
			taken[r] = true
		}
	}
	shared := make(map[int32]int)
	for leaf, c := range n.on[key] {
		for r, others := range n.onRail[leaf] {
			if !taken[r] {
				shared[r] += min(c, others)
			}
		}
	}
	best, alone := int32(-1), false
	for _, r := range slices.Sorted(maps.Keys(shared)) {
		switch {
		case best < 0 || shared[r] > shared[best]:
			best, alone = r, true
		case shared[r] == shared[best]:
			alone = false
		}
	}
	list := n.profile[key]
	place := int32(slices.Index(list, key)) // the first rails are in this order
	free := int(place) < len(n.usual) && !taken[place]
	switch {
	case alone && 2*shared[best] >= ports:
		return best
	case free && len(list) == len(n.usual):
		return place
	case alone:
		return best
	case free:
		return place
	}
	return -1
}

// listNames lists the names of adapters of each rail.
func (n *naming) listNames() {
	names := make([]map[string]bool, n.rails)
	for r := range names {
		names[r] = make(map[string]bool)
	}
	for i := range n.hosts {
		for _, p := range n.hosts[i].ports {
			if r, known := n.rail[p.key]; known && n.hosts[i].member && p.name != "" {
				names[r][p.name] = true
			}
		}
	}
	for r, set := range names {
		n.out.Rails = append(n.out.Rails, Rail{Rail: r + 1, Adapters: text.SortNatural(slices.AppendSeq([]string{}, maps.Keys(set))), MeetsAt: -1})
	}
}

// assign gives rails to the ports of a host. One without a key has the rail with most ports on its
// leaf that the host has not.
func (n *naming) assign(h *host) {
	has := make(map[int32]bool)
	for i := range h.ports {
		p := &h.ports[i]
		if r, known := n.rail[p.key]; known && p.key != "" {
			p.rail, has[r] = r, true
		}
	}
	for i := range h.ports {
		p := &h.ports[i]
		if p.key != "" {
			continue
		}
		rails := n.onRail[p.leaf]
		for _, r := range slices.Sorted(maps.Keys(rails)) {
			if !has[r] && (p.rail < 0 || rails[r] > rails[p.rail]) {
				p.rail = r
			}
		}
		if p.rail >= 0 {
			has[p.rail] = true
		}
	}
}
