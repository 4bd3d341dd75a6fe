package quality

import "github.com/ibweave/ibweave/fabric"

// cuts counts, for terminals i > j, the paths between them that share no cable, at most most:
// it is list[i][j]. By Menger's theorem that is the least number of cables that part them.
//
// It takes one maximum flow for each terminal, as D. Gusfield (Very simple methods for all
// pairs network flow analysis, SIAM J. Comput. 19, 1990): a terminal is parted from its
// parent, and later children of the parent that are on its side become its own. Terminals with
// most or more paths need no cut, since any would do for both.
func cuts(f *fabric.Fabric, terminals []fabric.NodeID, most int) [][]uint8 {
	w := &flow{f: f, used: make([]bool, f.NumPorts()), by: make([]fabric.PortID, f.NumSwitches()), reached: make([]bool, f.NumSwitches())}
	parent := make([]int, len(terminals))
	list := make([][]uint8, len(terminals))
	for i := 1; i < len(terminals); i++ {
		n := w.between(terminals[i], terminals[parent[i]], most)
		if n < most {
			for j := i + 1; j < len(terminals); j++ {
				if parent[j] == parent[i] && w.reached[terminals[j]] {
					parent[j] = i
				}
			}
		}
		list[i] = make([]uint8, i)
		for j := range i {
			list[i][j] = uint8(n)
			if a, b := max(parent[i], j), min(parent[i], j); a != b {
				list[i][j] = min(uint8(n), list[a][b])
			}
		}
	}
	return list
}

// flow is paths that share no cable.
type flow struct {
	f       *fabric.Fabric
	used    []bool          // by PortID: a path leaves by it
	by      []fabric.PortID // by switch that is reached: the port that leads to it
	reached []bool          // by switch
	queue   []fabric.NodeID
}

// between counts the paths from one switch to another, at most most. When there are fewer,
// reached tells the side of the first of a least cut.
func (w *flow) between(from, to fabric.NodeID, most int) int {
	clear(w.used)
	for n := range most {
		if !w.search(from, to) {
			return n
		}
		for s := to; s != from; s = w.f.Owner(w.by[s]) {
			if back := w.f.Peer(w.by[s]); w.used[back] {
				w.used[back] = false // both ways are none
			} else {
				w.used[w.by[s]] = true
			}
		}
	}
	return most
}

// search looks for another path.
func (w *flow) search(from, to fabric.NodeID) bool {
	clear(w.reached)
	w.reached[from] = true
	w.queue = append(w.queue[:0], from)
	for i := 0; i < len(w.queue) && !w.reached[to]; i++ {
		ports, next := w.f.SwitchLinks(w.queue[i])
		for k, p := range ports {
			if !w.used[p] && !w.reached[next[k]] {
				w.reached[next[k]], w.by[next[k]] = true, p
				w.queue = append(w.queue, next[k])
			}
		}
	}
	return w.reached[to]
}
