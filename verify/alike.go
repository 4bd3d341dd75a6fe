package verify

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Switches with the same cables, port by port, do the same with a packet when
// their entries are the same: the leaves of a pod, for all LIDs but those of
// their own hosts. Where nothing comes to them but from their hosts, one of them
// is taken through the tables, the leader, for all: what it sends to the next
// switch counts for each of them, and what its channels carry and depend on,
// theirs do as well.

// alike is the switches that have the same cables.
type alike struct {
	groups [][]int32 // ascending, of two switches or more
	group  []int32   // by switch: its group, -1 for none
}

// findAlike groups the switches by their parts of next, and by their sources.
func (p *plan) findAlike() alike {
	part := func(s int32) []uint32 { return p.next[p.nextAt[s]:p.nextAt[s+1]] }
	compare := func(s, t int32) int {
		return cmp.Or(cmp.Compare(p.sources[s], p.sources[t]), slices.Compare(part(s), part(t)))
	}
	list := make([]int32, p.n)
	for s := range list {
		list[s] = int32(s)
	}
	slices.SortStableFunc(list, compare)
	a := alike{group: make([]int32, p.n)}
	for len(list) > 0 {
		n := 1
		for n < len(list) && compare(list[0], list[n]) == 0 {
			n++
		}
		at := int32(-1)
		if n > 1 {
			at = int32(len(a.groups))
			a.groups = append(a.groups, list[:n:n])
		}
		for _, s := range list[:n] {
			a.group[s] = at
		}
		list = list[n:]
	}
	return a
}

// findPure says of each group whether all minimal paths to the switch that dist
// are the distances to only begin there: whether no neighbour is farther. The
// group of that switch is not taken together.
func (w *worker) findPure() {
	for i, g := range w.groups {
		_, to := w.f.SwitchLinks(fabric.NodeID(g[0]))
		w.pure[i] = !slices.Contains(g, w.at) &&
			!slices.ContainsFunc(to, func(u fabric.NodeID) bool { return w.dist[u] > w.dist[g[0]] })
	}
}

// together is what a worker knows of groups in a unit of LIDs. Nil slices where
// there are none.
type together struct {
	leader []int32  // by switch: whose entries it has, -1 for itself
	shares []*share // by group, of its leader
	joint  bool     // cells are those of destinations for which leaders stand for all
}

// share is what the channels of a group's leader carry in a unit.
type share struct {
	leader  int32
	copies  uint32   // switches it stands for, with itself
	touched bool     // records or idle are not all zero
	records []uint64 // as worker.records, of one switch
	idle    []uint64 // as worker.idle
}

func newTogether(p *plan) (t together) {
	if len(p.groups) == 0 {
		return t
	}
	t.leader = make([]int32, p.n)
	for i := range t.leader {
		t.leader[i] = -1
	}
	for range p.groups {
		t.shares = append(t.shares, &share{records: make([]uint64, 256*(1+p.words)), idle: make([]uint64, 256*p.words)})
	}
	return t
}

// findLeaders compares the entries of the unit, which are staged, in each
// group. The leader is the first with entries that another has.
func (w *worker) findLeaders() {
	row := func(s int32) *[lft.BlockSize]fabric.PortNum {
		return (*[lft.BlockSize]fabric.PortNum)(w.stage[int(s)*lft.BlockSize:])
	}
	for i, x := range w.shares {
		x.leader, x.copies = w.groups[i][0], 1
		w.leader[x.leader] = -1
		for _, s := range w.groups[i][1:] {
			w.leader[s] = -1
			switch {
			case *row(s) == *row(x.leader):
				w.leader[s] = x.leader
				x.copies++
			case x.copies == 1:
				x.leader = s
			}
		}
	}
}

// led says whether another switch stands for s, for destinations at the root.
func (w *worker) led(s int32) bool { return w.leader[s] >= 0 && w.pure[w.group[s]] }

// sharing is the share of switch s if it stands for others, else nil.
func (w *worker) sharing(s int32) *share {
	g := w.group[s]
	if g < 0 || !w.pure[g] {
		return nil
	}
	if x := w.shares[g]; x.leader == s && x.copies > 1 {
		return x
	}
	return nil
}

// loadRows is loadWideRow for a leader, to whom nothing comes.
func loadRows(row, cells []uint32, next *[256]uint32, x *share, words int) {
	x.touched = true
	for i, cell := range row {
		p := int(cell >> cellBits)
		n := cell & maxSources
		u := int(next[uint8(p)])*len(row) + i
		after := cells[u] + n*x.copies
		cells[u] = after
		bit := after>>cellBits - 1
		set := &x.idle[p*words+int(bit>>6)]
		if n != 0 {
			x.records[p*(1+words)] += uint64(n)
			set = &x.records[p*(1+words)+1+int(bit>>6)]
		}
		*set |= 1 << (bit & 63)
	}
}

// shareOut gives all of each group what the leader found in the unit.
func (w *worker) shareOut() {
	for i, x := range w.shares {
		if !x.touched {
			continue
		}
		for _, s := range w.groups[i] {
			if s != x.leader && w.leader[s] != x.leader {
				continue
			}
			node := w.f.Node(fabric.NodeID(s))
			base := int(w.f.PortBase(fabric.NodeID(s)))
			records := w.records[base*w.stride : (base+int(node.NumPorts)+1)*w.stride]
			for at := 0; at < len(records); at += w.stride {
				records[at] += x.records[at]
				for j := at + 1; j < at+w.stride; j++ {
					records[j] |= x.records[j]
				}
			}
			idle := w.idle[base*w.words : (base+int(node.NumPorts)+1)*w.words]
			for j := range idle {
				idle[j] |= x.idle[j]
			}
		}
		clear(x.records)
		clear(x.idle)
		x.touched = false
	}
}
