package fabric

import "slices"

// Without is the same subnet after the cables at some ports are gone; either end
// of a cable names it, and ports without one are no error. Nodes and their indices
// stay as they are, those that are cut off too. A CA or router port without a
// cable has no LID any more, nor has a switch without any.
func (f *Fabric) Without(cables ...PortID) *Fabric {
	g := *f
	g.ports = &ports{owner: f.owner, guid: f.guid, labels: f.labels, peer: slices.Clone(f.peer), link: slices.Clone(f.link)}
	base, lmc := slices.Clone(f.lid), slices.Clone(f.lmc)
	var cut []NodeID // switches that lost a cable
	for _, p := range cables {
		q := g.peer[p]
		if q == NoPort {
			continue
		}
		for _, end := range [...]PortID{p, q} {
			g.peer[end], g.link[end] = NoPort, Link{}
			if n := f.owner[end]; f.IsSwitch(n) {
				cut = append(cut, n)
			} else {
				base[end], lmc[end] = 0, 0
			}
		}
	}
	for _, s := range cut {
		if alone(g.peer[f.base[s]+1 : f.base[s+1]]) {
			base[f.base[s]], lmc[f.base[s]] = 0, 0
		}
	}
	g.indexCables()
	g.indexHosts(f.kinds)
	with, err := g.WithLIDs(base, lmc)
	if err != nil {
		panic(err) // fewer LIDs than f has cannot overlap
	}
	return with
}

// WithLinks is the same subnet with other widths and speeds at some ports.
func (f *Fabric) WithLinks(links map[PortID]Link) *Fabric {
	g := *f
	g.ports = &ports{
		owner: f.owner, peer: f.peer, guid: f.guid, link: slices.Clone(f.link), labels: f.labels,
		caPorts: f.caPorts, attached: f.attached, firstEnd: f.firstEnd, ends: f.ends, first: f.first, chans: f.chans, to: f.to, links: f.links,
	}
	for p, link := range links {
		g.link[p] = link
	}
	return &g
}

func alone(peers []PortID) bool {
	return !slices.ContainsFunc(peers, func(p PortID) bool { return p != NoPort })
}
