package verify

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// follow counts what differs for one LID, and takes over its entries. all says that
// the LID is where it was not before. It is false when not everything is delivered.
func (w *Watch) follow(v *fabric.View, t *lft.Tables, lid int32, marks []mark, all bool) bool {
	old := w.view
	before, after := old.To(int(lid)), v.To(int(lid))
	if before != fabric.Nowhere || after != fabric.Nowhere {
		w.gather(lid, before, marks, all)
	} else {
		w.touched = w.touched[:0]
	}
	if before != fabric.Nowhere {
		for _, s := range w.touched {
			if old.Node[s] != fabric.NoNode {
				w.count(old, s, lid, before, -1)
			}
		}
	}
	for _, m := range marks {
		new := fabric.NoPath
		if s := v.Node[m.slot]; s != fabric.NoNode {
			if row := t.Row(s); int(lid) < len(row) {
				new = row[lid]
			}
		}
		w.row(m.slot)[lid] = new
	}
	if after != fabric.Nowhere {
		for _, s := range w.touched {
			if v.Node[s] != fabric.NoNode && !w.count(v, s, lid, after, 1) {
				return false
			}
		}
	}
	return true
}

// gather finds the slots whose way for a LID, which had destination before, is to be
// counted anew: those marked, and those whose packets passed through one with another
// entry.
func (w *Watch) gather(lid, before int32, marks []mark, all bool) {
	w.touched = w.touched[:0]
	if all {
		for s := range int32(w.frame.Slots()) {
			w.touched = append(w.touched, s)
		}
		return
	}
	w.serial++
	add := func(s int32) {
		if w.isIn[s] != w.serial {
			w.isIn[s] = w.serial
			w.touched = append(w.touched, s)
		}
	}
	x, old := w.frame, w.view
	for _, m := range marks {
		if m.entry {
			add(m.slot)
		}
	}
	root := x.Owner[before]
	for i := 0; i < len(w.touched); i++ {
		s := w.touched[i]
		for p := x.Base[s]; p < x.Base[s+1]; p++ {
			peer := old.Peer[p]
			if peer < 0 {
				continue
			}
			from := x.Owner[peer]
			if from != root && int32(w.row(from)[lid]) == peer-x.Base[from] {
				add(from)
			}
		}
	}
	for _, m := range marks {
		add(m.slot)
	}
}

// count adds the way from a slot to a LID with destination dest, or takes it off. It is
// false when the way does not lead there.
func (w *Watch) count(v *fabric.View, from, lid, dest int32, sign int64) bool {
	x := w.frame
	root := x.Owner[dest]
	ca := dest != x.Base[root]
	sources := int64(0)
	if ca {
		sources = int64(v.Sources[from])
		if from == root {
			sources--
		}
	}
	sources *= sign
	in := int32(-1) // the port that packets came in by
	passed := 1
	for s := from; ; passed++ {
		num := int32(w.row(s)[lid])
		out := x.Base[s] + num
		if s == root {
			if out != dest {
				return false
			}
			if ca {
				w.routes[out] += sources
				w.depend(in, out, passed == 2, sources, sign)
			}
			break
		}
		if num == 0 || out >= x.Base[s+1] || passed > len(v.Node) {
			return false
		}
		peer := v.Peer[out]
		if peer < 0 {
			return false
		}
		w.routes[out] += sources
		w.depend(in, out, passed == 2, sources, sign)
		in, s = peer, x.Owner[peer]
	}
	if ca {
		w.hops[passed] += sources
		dist := w.dist[int(root)*len(v.Node)+int(from)]
		if fresh := w.fresh[root]; sign > 0 && fresh != nil {
			dist = fresh[from]
		}
		if int(dist)+1 < passed {
			w.nonMinimal += sources
		}
	}
	return true
}

// depend counts a dependency of packets from in to out; first says that they began at
// the other end of in.
func (w *Watch) depend(in, out int32, first bool, sources, sign int64) {
	if in < 0 {
		return
	}
	i := w.pair(in, out)
	if first {
		if w.lids[i] == 0 {
			w.rose = append(w.rose, i)
		}
		w.lids[i] += uint16(sign)
	}
	if sources != 0 {
		was := w.flows[i]
		w.flows[i] += uint32(sources)
		if (was == 0) != (w.flows[i] == 0) {
			w.dependencies += int(sign)
		}
	}
}

// result is what Check would have said, but for notes.
func (w *Watch) result(opt Options) *Result {
	f := w.view.Fabric
	r := Untested(f)
	var caLIDs, switchLIDs int64
	for _, dest := range w.view.Dest {
		switch {
		case dest == fabric.Nowhere:
		case dest == w.frame.Base[w.frame.Owner[dest]]:
			switchLIDs++
		default:
			caLIDs++
		}
	}
	caPorts, switches := int64(len(f.CAPorts())), int64(f.NumSwitches())
	r.Unicast.Pairs = (caPorts - 1) * caLIDs
	r.Management.Pairs = switches*caLIDs + caPorts*switchLIDs + (switches-1)*switchLIDs
	for passed, n := range w.hops {
		if n > 0 {
			r.Unicast.MaxHops = passed
		}
	}
	r.Unicast.HopHistogram = append(Histogram{}, w.hops[:r.Unicast.MaxHops+1]...)
	r.Unicast.NonMinimal = w.nonMinimal
	r.CreditLoops.Dependencies = w.dependencies
	for _, routes := range w.routes {
		if routes > 0 {
			r.CreditLoops.Channels++
		}
	}
	idle := balance(r, f, func(p fabric.PortID) int64 {
		return w.routes[w.frame.Base[w.view.Slot[f.Owner(p)]]+int32(f.Num(p))]
	})
	reportIdle(r, f, idle, false)
	opt.Buffer.report(r)
	r.settle()
	return r
}
