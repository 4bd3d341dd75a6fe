package mesh

import (
	"context"
	"fmt"
	"math/bits"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// slVLs gives the VLs that packets of each SL may use.
type slVLs struct {
	arcs *arcs
	g    *Grid
	r    *lft.Routing
	vls  int // the highest VL between switches + 1
	// on has, by arc and SL, the VLs (as bits) of the SL's packets on the arc,
	// whatever port they came in by.
	on [][lft.NumSLs]uint16
	// drops has the SLs, as bits, that are dropped on some way through a switch.
	drops uint16
}

func newSLVLs(g *Grid, r *lft.Routing) *slVLs {
	l := &slVLs{arcs: newArcs(g, false), g: g, r: r, vls: 1}
	l.on = make([][lft.NumSLs]uint16, len(l.arcs.head))
	if r.SL2VL == nil {
		for a := range l.on {
			for sl := range l.on[a] {
				l.on[a][sl] = 1
			}
		}
		return l
	}
	f := g.Fabric
	for in, out := range r.SL2VL.PortPairs() {
		s := f.Owner(out)
		between := f.IsSwitch(s) && g.Dir(out) != NoDir
		for sl, vl := range r.SL2VL.At(in, out) {
			switch {
			case vl == lft.DropVL:
				l.drops |= 1 << sl
			case between:
				l.on[l.arcs.arc(l.arcs.index[s], g.Dir(out))][sl] |= 1 << vl
				l.vls = max(l.vls, int(vl)+1)
			}
		}
	}
	return l
}

// meets returns for each SL the SLs, as bits, whose packets share a VL with
// its packets on some arc.
func (l *slVLs) meets() [lft.NumSLs]uint16 {
	var list [lft.NumSLs]uint16
	for a := range l.on {
		for v := range l.vls {
			set := uint16(0)
			for sl, on := range l.on[a] {
				set |= on >> v & 1 << sl
			}
			for rest := set; rest != 0; rest &= rest - 1 {
				list[bits.TrailingZeros16(rest)] |= set
			}
		}
	}
	return list
}

// combWaits is the dependency graph of unicast packets and combs.
type combWaits struct {
	*waits
	sl *slVLs
}

// newCombWaits starts with the turns of unicast paths from all switches.
func newCombWaits(ctx context.Context, l *slVLs) (*combWaits, error) {
	w := &combWaits{waits: newWaits(l.arcs, l.vls), sl: l}
	turns, err := l.unicastTurns(ctx)
	if err != nil {
		return nil, err
	}
	for i, sls := range turns {
		if sls != 0 {
			w.addTurn(int32(i)/w.dirs, Dir(int32(i)%w.dirs), sls)
		}
	}
	return w, nil
}

// unicastTurns returns, by arc and direction, the SLs (as bits) of packets
// that make that turn. Without path SLs packets may have any SL. At a switch,
// packets to a LID have the SLs of those that arrive there and those that
// start there.
func (l *slVLs) unicastTurns(ctx context.Context) ([]uint16, error) {
	f, a := l.g.Fabric, l.arcs
	type work struct {
		forest *lft.Forest
		sls    []uint16 // by NodeID: of packets that arrive there; all 0 before each LID
		turns  []uint16
	}
	start := func() work {
		return work{lft.NewForest(f), make([]uint16, f.NumSwitches()), make([]uint16, len(a.head)*int(a.dirs))}
	}
	list, err := par.ForEachWith(ctx, 0, len(f.LIDPorts()), start, func(w work, lid int) error {
		w.forest.FindTree(l.r.Tables, fabric.LID(lid))
		order := w.forest.Order
		for i := len(order) - 1; i > 0; i-- {
			s := order[i]
			sls := uint16(1<<lft.NumSLs - 1)
			if l.r.PathSLs != nil {
				sls = w.sls[s] | 1<<l.r.PathSLs.Row(s)[lid]
			}
			w.sls[s] = 0
			out := w.forest.Next[s]
			to := f.PeerSwitch(out)
			if to == order[0] {
				continue
			}
			w.sls[to] |= sls
			arc := a.arc(a.index[s], l.g.Dir(out))
			w.turns[arc*a.dirs+int32(l.g.Dir(w.forest.Next[to]))] |= sls
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	turns := list[0].turns
	for _, w := range list[1:] {
		for i, sls := range w.turns {
			turns[i] |= sls
		}
	}
	return turns, nil
}

// addTurn adds the dependencies of packets of some SLs, as bits, on a turn. It
// returns false as add does.
func (w *combWaits) addTurn(arc int32, way Dir, sls uint16) bool {
	g, r := w.sl.g, w.sl.r
	for _, out := range g.Ports(w.node[w.head[arc]], way) {
		for _, port := range g.Ports(w.node[arc/w.dirs], Dir(arc%w.dirs)) {
			var m lft.VLMap // all on VL 0
			if r.SL2VL != nil {
				m = *r.SL2VL.At(g.Fabric.Num(g.Fabric.Peer(port)), out)
			}
			for rest := sls; rest != 0; rest &= rest - 1 {
				sl := bits.TrailingZeros16(rest)
				if m[sl] == lft.DropVL {
					continue
				}
				for held := w.sl.on[arc][sl]; held != 0; held &= held - 1 {
					if !w.add(w.channel(arc, bits.TrailingZeros16(held)), way, int(m[sl])) {
						return false
					}
				}
			}
			if r.SL2VL == nil {
				return true
			}
		}
	}
	return true
}

// with returns a copy of w with all turns of comb t for some SLs, as bits.
func (w *combWaits) with(t *combTree, sls uint16) *combWaits {
	x := &combWaits{w.clone(), w.sl}
	for s := range fabric.NodeID(len(w.node)) {
		x.addTurns(t, s, sls)
	}
	return x
}

// addTurns adds the turns of a comb at switch s, from each of its cables into
// each other. It returns false as add does.
func (w *combWaits) addTurns(t *combTree, s fabric.NodeID, sls uint16) bool {
	for from := t.joined[s]; from != 0; from &= from - 1 {
		way := Dir(bits.TrailingZeros32(from))
		arc := w.into(w.index[s], way.Opposite())
		for to := t.joined[s] &^ (1 << way); to != 0; to &= to - 1 {
			if !w.addTurn(arc, Dir(bits.TrailingZeros32(to)), sls) {
				return false
			}
		}
	}
	return true
}

// bridge joins the components of a comb by cables that close no cycle, as far
// as there are any: first those in wanted (directions as bits, by NodeID),
// then those that close no ring, then the others; within each kind, those
// nearest to the middle of the trunk. It returns a copy of w with their turns.
func (w *combWaits) bridge(t *combTree, sls uint16, wanted []uint32) *combWaits {
	g := w.sl.g
	x := &combWaits{w.clone(), w.sl}
	x.keepAcyclic(x.sorted())
	joined := graph.NewUnionFind[fabric.NodeID](len(t.Switch))
	for s, dirs := range t.joined {
		for ; dirs != 0; dirs &= dirs - 1 {
			joined.Join(fabric.NodeID(s), g.Neighbor(fabric.NodeID(s), Dir(bits.TrailingZeros32(dirs))))
		}
	}
	for kind := range 3 {
		for _, s := range t.near {
			for way := range Dir(w.dirs) {
				ports := g.Ports(s, way)
				if len(ports) == 0 || kind == 0 && wanted[s]>>way&1 == 0 || kind > 0 && g.Wraps(ports[0]) != (kind == 2) {
					continue
				}
				u := g.Neighbor(s, way)
				if joined.Find(s) == joined.Find(u) {
					continue
				}
				before := [2]uint32{t.joined[s], t.joined[u]}
				t.join(s, way)
				if !x.addTurns(t, s, sls) || !x.addTurns(t, u, sls) {
					x.acyclic.Undo()
					t.joined[s], t.joined[u] = before[0], before[1]
					continue
				}
				x.acyclic.Keep()
				joined.Join(s, u)
			}
		}
	}
	t.climb()
	return x
}

// describe lists the switches of a cycle.
func (w *combWaits) describe(cycle []int32) string {
	const most = 12
	name := func(ch int32) fabric.Name { return w.sl.g.Fabric.Name(w.node[ch/int32(w.vls)/w.dirs]) }
	var b strings.Builder
	for i, ch := range cycle {
		if i == most {
			fmt.Fprintf(&b, " ... (%d cables)", len(cycle))
			return b.String()
		}
		fmt.Fprintf(&b, "%s VL %d > ", name(ch), int(ch)%w.vls)
	}
	return b.String() + name(cycle[0]).String()
}
