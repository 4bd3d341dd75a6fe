package verify

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// find sets all fields except next. It follows packets from each switch up to one of known depth.
// They arrive at root, or nowhere if that is below 0.
func (w *forest) find(root int32) {
	text.Fill(w.depth, depthUnknown)
	if root >= 0 {
		w.depth[root] = 0
	}
	free := len(w.room)
	for s, depth := range w.depth {
		if depth == depthUnknown {
			free = w.findFrom(int32(s), free)
		}
	}
	w.order = w.room[free:]
}

// findFrom follows packets from switch s up to a known one. Switches from which they arrive take
// the end of room[:free]; it returns the free part's new length.
func (w *forest) findFrom(s int32, free int) int {
	n, at, end := int32(0), s, s
	for ; at >= 0 && w.depth[at] == depthUnknown; n++ {
		w.depth[at] = depthFollowed
		end, at = at, w.next[at]
	}
	depth := int32(depthDead)
	if at >= 0 {
		depth, end = w.depth[at], w.end[at]
	}
	if depth >= 0 {
		free -= int(n)
		for i := range n {
			w.room[free+int(i)], w.depth[s] = s, depth+n-i
			s = w.next[s]
		}
		return free
	}
	if depth == depthFollowed {
		depth = depthLoop
	}
	for ; n > 0; n-- {
		w.depth[s], w.end[s] = depth, end
		s = w.next[s]
	}
	return free
}

// walk checks a destination without assumptions about the tables: packets may
// be dropped, loop, or take long paths.
func (w *worker) walk(d *dest) {
	for s := range w.n {
		p := w.stage[s*lft.BlockSize+d.column]
		w.paths.next[s] = w.leadsTo(int32(s), p)
		w.cells[s] = uint32(p) << cellBits
		if d.ca {
			w.cells[s] |= w.weigh(int32(s), d)
		}
	}
	root := int32(-1)
	if d.root >= 0 && w.cells[d.root]>>cellBits == uint32(d.last) {
		root = d.root
	}
	arrive := root >= 0
	w.paths.find(root)
	if arrive && w.flow != nil {
		w.followLanes(&tree{d, 1, 0}, false)
	}
	if d.ca || w.flow != nil || !arrive || len(w.paths.order) < w.n-1 {
		w.tallyUp(d)
	}
	switch {
	case arrive && d.ca:
		w.load([]dest{*d}, w.paths.order)
	case arrive && w.flow == nil:
		w.loadManagement(d.root)
	}
}

// loadManagement adds the dependencies of packets for port 0 of switch root,
// from all switches from which they arrive.
func (w *worker) loadManagement(root int32) {
	for s, depth := range w.paths.depth {
		if depth <= 0 {
			continue
		}
		ch := int(w.ports[s]) + int(w.cells[s]>>cellBits)
		if w.paths.next[s] == root {
			w.own.idleEnds[ch] = true
			continue
		}
		out := w.cells[w.paths.next[s]]>>cellBits - 1
		_, idle := w.own.deps(ch)
		if at := &idle[out>>6]; *at>>(out&63)&1 == 0 {
			*at |= 1 << (out & 63)
		}
	}
}

// tallyUp counts the pairs of a destination by what walk found, and subtracts
// from its cells those that SL-to-VL tables drop.
func (w *worker) tallyUp(d *dest) {
	bad := trouble{lid: d.lid}
	for s, depth := range w.paths.depth {
		pairs, management := int64(w.sources[s]), int64(1)
		switch {
		case d.ca && int32(s) == d.root:
			pairs-- // the owner itself
		case int32(s) == d.root:
			management = 0
		}
		if !d.ca {
			pairs, management = 0, pairs+management
		}
		switch {
		case depth >= 0:
			if w.flow != nil && w.flow.drops {
				lost, own := int64(w.flow.lost[s]), int64(w.flow.lostOwn[s])
				if d.ca {
					bad.add(tallyDropped, lost, s)
					bad.add(tallyManagementDropped, own, s)
					pairs -= lost
					if d.loads {
						w.cells[s] -= w.flow.lostHosts[s]
					}
				} else {
					bad.add(tallyManagementDropped, lost+own, s)
				}
			}
			if d.ca {
				w.arrive(d, s, pairs)
			}
		case depth == depthLoop:
			bad.add(tallyLoops, pairs, s)
			bad.add(tallyManagementLoops, management, s)
		default:
			w.fail(d, &bad, s, pairs, management)
		}
	}
	if bad != (trouble{lid: d.lid}) {
		w.troubles = append(w.troubles, bad)
	}
}

// arrive counts delivered pairs of sources at switch s, whose cell has the number of those that
// count for load.
func (w *worker) arrive(d *dest, s int, pairs int64) {
	w.delivered[w.paths.depth[s]+1] += pairs
	hosts := int64(w.cells[s] & maxSources)
	if extra := w.paths.depth[s] - w.distance(s); extra > 0 && hosts > 0 {
		w.nonMinimal += hosts
		w.stretch.consider(detour{extra, d.lid, int32(s)})
	}
}

// fail counts the pairs of switch s, whose packets end elsewhere.
func (w *worker) fail(d *dest, bad *trouble, s int, pairs, management int64) {
	end := w.paths.end[s]
	apart := d.root < 0 || w.parts.Of[s] != w.parts.Of[d.root]
	switch {
	case d.ca && w.paths.next[end] == toCA:
		bad.add(tallyMisdelivered, pairs, s)
	case apart:
		w.apart[0] += pairs
	default:
		bad.add(tallyUnreachable, pairs, s)
	}
	if apart {
		w.apart[1] += management
	} else {
		bad.add(tallyManagementUnreachable, management, s)
	}
	switch entry := fabric.PortNum(w.cells[end] >> cellBits); {
	case end == int32(s):
		w.noteDead(end, entry, d.lid)
	case entry == fabric.NoPath:
		w.gap.consider(gap{d.lid, end})
	}
}

// failAlone is fail for the switches without a cable, if all other switches' packets arrive.
func (w *worker) failAlone(d *dest) {
	for _, s := range w.alone {
		if s != d.root {
			w.apart[1]++
			w.noteDead(s, w.stage[int(s)*lft.BlockSize+d.column], d.lid)
		}
	}
}

// noteDead counts an entry that leads nowhere. Missing entries, and entries
// that lead to a wrong CA, do not count.
func (w *worker) noteDead(s int32, port fabric.PortNum, lid fabric.LID) {
	if port == fabric.NoPath || w.paths.next[s] == toCA {
		return
	}
	key := deadKey{s, port}
	n := w.dead[key]
	if n.lids == 0 || lid < n.first {
		n.first = lid
	}
	n.lids++
	w.dead[key] = n
}
