package mesh

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// The turn models of Glass and Ni (The turn model for adaptive routing, JACM
// 1994) forbid just enough turns that no cycle of channels is left on an open
// mesh: a path first takes directions of one set, in any order, then directions
// of another, and never returns to the first.
//
// Zhou, Liu and Chung argue with negative-first (Fig. 4), whose adaptive form
// gives multicast trees that deliver twice; but forwarding tables are not
// adaptive. Here each engine has a deterministic form: a list of directions; a
// path makes all hops in one direction before the next. Negative-first has W, S,
// E, N (X7); with it the paths from one source are a tree, as with XY (E-X9).
//
// If a cable or a switch on that path is missing, the freedom of the adaptive
// form serves to find another. A table has no history. So a switch takes the
// second set, for any sender, if that alone leads to the destination, else the
// first set. It takes a shortest way, of several the one whose direction is
// first in the list. Whole paths are such ways, and stay. A switch without
// such a way has NoPath.
//
// These engines are for open grids. They refuse tori unless Options.NoWrap
// leaves the cables that close rings unused.

// TurnModel is an engine that routes by a turn model.
type TurnModel uint8

const (
	// NegativeFirst takes negative directions first: in two dimensions west and
	// south, then east and north. Its deterministic form has the negative
	// directions by dimension, then the positive ones.
	NegativeFirst TurnModel = iota
	// WestFirst goes west first, then in all other directions. In n dimensions
	// it is all-but-one-negative-first: the negative directions of all
	// dimensions but the last come first. Its deterministic form is west, then
	// north or south, then east: these negative directions by dimension, then
	// the last dimension, then the positive directions of the others, from the
	// last to the first.
	WestFirst
	// NorthLast goes north last, after all other directions. In n dimensions it
	// is all-but-one-positive-last: the positive directions of all dimensions
	// but the first come last. Its deterministic form is south, then east or
	// west, then north: the negative directions of these dimensions from the
	// last to the second, then the first dimension, then the positive directions
	// by dimension.
	NorthLast
)

// Name is "negative-first", "west-first" or "north-last".
func (m TurnModel) Name() string {
	return [...]string{"negative-first", "west-first", "north-last"}[m]
}

// Guarantee is NoCreditLoop. On grids without missing cables or switches all
// pairs also reach each other, by shortest paths of an open mesh.
func (TurnModel) Guarantee() lft.Guarantee { return lft.NoCreditLoop }

// Route takes as long as XY on a whole grid; if parts are missing also
// O(switches x (switches x directions + LIDs)).
func (m TurnModel) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	g, err := detectFor(m.Name(), f, opt)
	if err != nil {
		return nil, err
	}
	r, err := routeTurns(ctx, m, g, opt)
	if err != nil {
		return nil, err
	}
	r.Notes = g.notes()
	return r, nil
}

// turns is the deterministic form of a turn model.
type turns struct {
	order []Dir // of a path
	// first is how many directions of order are the first set; the others are
	// the second.
	first int
}

// turns returns the deterministic form for dims dimensions.
func (m TurnModel) turns(dims int) turns {
	var negative, positive []Dir // by dimension
	for d := range dims {
		negative, positive = append(negative, Minus(d)), append(positive, Plus(d))
	}
	last := dims - 1
	switch m {
	case WestFirst:
		slices.Reverse(positive)
		return turns{slices.Concat(negative[:last], []Dir{Plus(last), Minus(last)}, positive[1:]), last}
	case NorthLast:
		slices.Reverse(negative)
		return turns{slices.Concat(negative, positive), dims + 1}
	}
	return turns{slices.Concat(negative, positive), dims}
}

// routeTurns is Route of the turn models on a grid.
func routeTurns(ctx context.Context, m TurnModel, g *Grid, opt lft.Options) (*lft.Routing, error) {
	for d, wrap := range g.Wrap {
		if wrap && !opt.NoWrap {
			return nil, &lft.DomainError{Engine: m.Name(), Reason: fmt.Sprintf(
				"dimension %d is a ring of %d switches, and this turn model is for open meshes; without the cables that close rings (no-wrap) it can", d+1, g.Dims[d])}
		}
	}
	model := m.turns(len(g.Dims))
	p := newPaths(g, opt.NoWrap, model.order)
	tables, broken, err := p.tables(ctx)
	if err != nil {
		return nil, err
	}
	if broken > 0 { // replace NoPath where the model has a way to the destination
		if err := eachSwitch(ctx, g.Fabric.NumSwitches(), func() func(fabric.NodeID) {
			b := &bypasses{paths: p, turns: model, hops: make([]int32, g.Fabric.NumSwitches())}
			return func(t fabric.NodeID) { b.to(t, tables) }
		}); err != nil {
			return nil, err
		}
	}
	return &lft.Routing{Engine: m.Name(), Fabric: g.Fabric, Tables: tables}, nil
}

// bypasses finds paths to one destination after the other. It is the scratch
// memory of a worker.
type bypasses struct {
	*paths
	turns  turns
	hops   []int32         // by switch: hops to the destination, -1 without a way
	second []fabric.NodeID // switches that reach it by the second set alone, nearest first
	first  []fabric.NodeID // other switches that reach it, nearest first
}

// to fills in those entries for the LIDs of switch t that are NoPath.
func (b *bypasses) to(t fabric.NodeID, tables *lft.Tables) {
	lids := b.lids[b.g.Position(t)]
	if len(lids) == 0 {
		return
	}
	for s := range b.hops {
		b.hops[s] = -1
	}
	b.hops[t] = 0
	b.second = append(b.second[:0], t)
	for i := 0; i < len(b.second); i++ {
		b.second = b.behind(b.second[i], b.turns.order[b.turns.first:], b.second)
	}
	// Visit the switches of both lists, those nearest to t first.
	b.first = b.first[:0]
	for i, j := 0, 0; i < len(b.second) || j < len(b.first); {
		var u fabric.NodeID
		if j == len(b.first) || i < len(b.second) && b.hops[b.second[i]] <= b.hops[b.first[j]] {
			u = b.second[i]
			i++
		} else {
			u = b.first[j]
			j++
		}
		b.first = b.behind(u, b.turns.order[:b.turns.first], b.first)
	}
	for _, s := range b.second[1:] {
		b.enter(s, b.turns.order[b.turns.first:], lids, tables.Row(s))
	}
	for _, s := range b.first {
		b.enter(s, b.turns.order[:b.turns.first], lids, tables.Row(s))
	}
}

// behind appends to list the switches without a way that reach u by a hop in one
// of the directions.
func (b *bypasses) behind(u fabric.NodeID, dirs []Dir, list []fabric.NodeID) []fabric.NodeID {
	for _, way := range dirs {
		s := b.next(u, way.Opposite())
		if s != fabric.NoNode && b.hops[s] < 0 && b.next(s, way) == u {
			b.hops[s] = b.hops[u] + 1
			list = append(list, s)
		}
	}
	return list
}

// enter sets the NoPath entries of switch s to the first of the directions that
// leads nearer to the destination. Parallel links take turns.
func (b *bypasses) enter(s fabric.NodeID, dirs []Dir, lids []fabric.LID, row []fabric.PortNum) {
	if row[lids[0]] != fabric.NoPath {
		return
	}
	for _, way := range dirs {
		if u := b.next(s, way); u != fabric.NoNode && b.hops[u] == b.hops[s]-1 {
			ports := b.g.Ports(s, way)
			for i, lid := range lids {
				row[lid] = b.g.Fabric.Num(ports[i%len(ports)])
			}
			return
		}
	}
}
