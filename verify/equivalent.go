package verify

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Equivalent switches have the same cables, port by port, and as many sources: the
// leaves of a pod. They do the same with a packet when their entries are the same, as
// they mostly are for all LIDs but those of their own hosts. Where in addition nothing
// comes to them but from their hosts, the first of them is taken through the tables for
// all: what it sends to the next switch counts for each of them, and what its channels
// carry and depend on, theirs do as well. In a full fat tree of three levels that is two
// fifths of the switches.

// equivalence is the classes of equivalent switches, of two or more.
type equivalence struct {
	of   []int32   // by switch: its class, -1 for none
	list [][]int32 // by class: its switches, ascending
}

// findEquivalent compares the switches by where their ports lead and by their sources.
func (p *plan) findEquivalent() equivalence {
	compare := func(s, t int32) int {
		return cmp.Or(cmp.Compare(p.sources[s], p.sources[t]), cmp.Compare(p.hosts[s], p.hosts[t]),
			slices.Compare(p.to[p.ports[s]:p.ports[s+1]], p.to[p.ports[t]:p.ports[t+1]]))
	}
	list, e := make([]int32, p.n), equivalence{of: make([]int32, p.n)}
	for s := range list {
		list[s], e.of[s] = int32(s), -1
	}
	slices.SortStableFunc(list, compare)
	for len(list) > 0 {
		n := 1
		for n < len(list) && compare(list[0], list[n]) == 0 {
			n++
		}
		if n > 1 {
			for _, s := range list[:n] {
				e.of[s] = int32(len(e.list))
			}
			e.list = append(e.list, list[:n])
		}
		list = list[n:]
	}
	return e
}

// usesEquivalence says whether classes may be taken together: not where VLs count.
func (w *worker) usesEquivalence() bool { return w.shared != nil }

// findSame compares the entries of the unit, which are staged, in each class.
func (w *worker) findSame() {
	row := func(s int32) *[lft.BlockSize]fabric.PortNum {
		return (*[lft.BlockSize]fabric.PortNum)(w.stage[int(s)*lft.BlockSize:])
	}
	for c, list := range w.equivalent.list {
		w.same[c] = !slices.ContainsFunc(list, func(s int32) bool { return *row(s) != *row(list[0]) })
	}
}

// findPure says of each class whether all minimal paths to the root only begin there:
// whether no neighbour is farther. The class of the root is not taken together.
func (w *worker) findPure(dist []uint8) {
	for c, list := range w.equivalent.list {
		first := list[0]
		w.pure[c] = w.equivalent.of[w.at] != int32(c) &&
			!slices.ContainsFunc(w.f.Neighbors(fabric.NodeID(first)), func(u fabric.NodeID) bool { return dist[u] > dist[first] })
	}
}

// classSize is how many switches s is taken for as the first of its class; 1 when it is
// not the first, or the class is not taken together.
func (w *worker) classSize(s int32) uint32 {
	c := w.equivalent.of[s]
	if c < 0 || !w.same[c] || !w.pure[c] || w.equivalent.list[c][0] != s {
		return 1
	}
	return uint32(len(w.equivalent.list[c]))
}

// isFollower says whether s is in a class that is taken together, and not the first.
func (w *worker) isFollower(s int32) bool {
	c := w.equivalent.of[s]
	return c >= 0 && w.same[c] && w.pure[c] && w.equivalent.list[c][0] != s
}

// shareOut gives all switches of each class what its first one carried for them.
func (w *worker) shareOut() {
	if !w.usesEquivalence() {
		return
	}
	for _, list := range w.equivalent.list {
		first := list[0]
		for ch := w.ports[first]; ch < w.ports[first+1]; ch++ {
			*w.shared.routes(int(ch)) /= uint64(len(list))
		}
		for _, s := range list {
			w.own.add(w.shared, int(w.ports[s]), int(w.ports[first]), int(w.ports[first+1]-w.ports[first]))
		}
	}
}
