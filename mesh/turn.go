package mesh

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// The turn models of Glass and Ni (The turn model for adaptive routing, JACM
// 1994) forbid just the turns that every cycle of channels on an open mesh
// needs: a path takes directions of one set first, in any order, then
// directions of another, and never returns to the first.
//
// Zhou, Liu and Chung argue with negative-first (Fig. 4), whose adaptive form
// gives multicast trees that deliver twice; the tables of a switch are not
// adaptive, though. Here each engine has a deterministic form, a list of
// directions each of which a path uses up before it takes the next: negative-first
// W, S, E, N (X7), under which the paths from one source are a tree as they
// are under XY (E-X9).
//
// Where a cable or a switch on that path is missing, there is no path, as with XY, which Options.Repair
// gives detours.
//
// They are engines for open grids. On tori they refuse unless Options.NoWrap
// leaves the cables that close rings unused.

// TurnModel is an engine that routes by one of them.
type TurnModel uint8

const (
	// NegativeFirst takes negative directions first: in two dimensions west and
	// south, then east and north. Its deterministic form takes the negative
	// directions by dimension, then the positive ones.
	NegativeFirst TurnModel = iota
	// WestFirst goes west first, then to any other direction. In n dimensions it
	// is all-but-one-negative-first: the negative directions of all dimensions but
	// the last come first. Its deterministic form is west, then north or south,
	// then east: those negative directions by dimension, then the last dimension,
	// then the positive directions of the others, from the last to the first.
	WestFirst
	// NorthLast goes north last, after all other directions. In n dimensions it is
	// all-but-one-positive-last: the positive directions of all dimensions but the
	// first come last. Its deterministic form is south, then east or west, then
	// north: the negative directions of those dimensions from the last to the
	// second, then the first dimension, then the positive directions by
	// dimension.
	NorthLast
)

// Name is "negative-first", "west-first" or "north-last".
func (m TurnModel) Name() string {
	return [...]string{"negative-first", "west-first", "north-last"}[m]
}

// Guarantee is NoCreditLoop; on grids without missing cables or switches all
// pairs reach each other as well, by shortest paths of an open mesh.
func (TurnModel) Guarantee() lft.Guarantee { return lft.NoCreditLoop }

// Route takes what XY takes.
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
	if len(g.Missing) > 0 {
		r.Notes = append(r.Notes, broken(g.Fabric, r.Tables)...)
	}
	return r, nil
}

// order is that of the directions on a grid with dims dimensions.
func (m TurnModel) order(dims int) []Dir {
	var negative, positive []Dir // by dimension
	for d := range dims {
		negative, positive = append(negative, Minus(d)), append(positive, Plus(d))
	}
	last := dims - 1
	switch m {
	case WestFirst:
		slices.Reverse(positive)
		return slices.Concat(negative[:last], []Dir{Plus(last), Minus(last)}, positive[1:])
	case NorthLast:
		slices.Reverse(negative)
	}
	return slices.Concat(negative, positive)
}

// routeTurns is Route of the turn models on a grid.
func routeTurns(ctx context.Context, m TurnModel, g *Grid, opt lft.Options) (*lft.Routing, error) {
	for d, wrap := range g.Wrap {
		if wrap && !opt.NoWrap {
			return nil, &lft.DomainError{Engine: m.Name(), Reason: fmt.Sprintf(
				"dimension %d is a ring of %d switches, and this turn model is for open meshes; without the cables that close rings (no-wrap) it can", d+1, g.Dims[d])}
		}
	}
	tables, _, err := newPaths(g, opt.NoWrap, m.order(len(g.Dims))).tables(ctx)
	if err != nil {
		return nil, err
	}
	return &lft.Routing{Engine: m.Name(), Fabric: g.Fabric, Tables: tables}, nil
}
