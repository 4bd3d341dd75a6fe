package mesh

import (
	"context"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/internal/text"
)

const (
	// newTurn is how many hops longer a path may be to save a new turn, otherTurn
	// how many more if the turn is not a preferred one.
	newTurn   = 2
	otherTurn = 4
	// rounds is how many times the search is repeated for each preference and
	// number of VLs.
	rounds = 8
	// roundsWork bounds the broken entries that all searches for a number of VLs
	// visit. If so much is broken that this is less than wholeRounds whole
	// searches, these are the bound.
	roundsWork  = 1 << 19
	wholeRounds = 4
)

// detours is the result of a search.
type detours struct {
	hops [][]hop // by column
	vls  []*waits
}

// hop is the first hop of a detour: from a switch in a direction, and the VL of
// the whole path, counted from the first VL for detours.
type hop struct {
	from int32
	way  Dir
	vl   uint8
}

// search finds detours on as few VLs as it can; nil if r.limit VLs are not enough.
func (r *repairer) search(ctx context.Context) (*detours, error) {
	order := text.Indices[int32](r.columns, func(c column) bool { return len(c.broken) > 0 })
	best, _, err := r.try(ctx, order, NoDir, r.limit)
	if err != nil {
		return nil, err
	}
	most := r.limit
	if best != nil {
		most = len(best.vls) - 1
	}
	for vls := 1; vls <= most; vls++ {
		found, err := r.repeat(ctx, order, vls)
		if err != nil {
			return nil, err
		}
		if found != nil {
			best = found
			break
		}
	}
	if best == nil {
		return nil, nil
	}
	return best, r.shorten(ctx, best)
}

// repeat calls try with each of the preferences in turn.
func (r *repairer) repeat(ctx context.Context, order []int32, vls int) (*detours, error) {
	r.work = 0
	orders := make([][]int32, r.dirs+1) // by preferred direction, NoDir first
	for i := range orders {
		orders[i] = slices.Clone(order)
	}
	for range rounds {
		for i, order := range orders {
			found, failed, err := r.try(ctx, order, Dir(i)-1, vls)
			if found != nil || err != nil {
				return found, err
			}
			copy(order[1:failed+1], order[:failed])
			order[0] = r.failed
			if r.work > max(roundsWork, wholeRounds*r.broken) {
				return nil, nil
			}
		}
	}
	return nil, nil
}

// try grows the detours of the columns in an order, on up to vls VLs. If it
// fails at a column, it returns nil and the column's index in order.
func (r *repairer) try(ctx context.Context, order []int32, prefer Dir, vls int) (*detours, int, error) {
	r.prefer, r.newTurn, r.otherTurn = prefer, newTurn, otherTurn
	r.vls = []*waits{r.newVL()}
	copy(r.vls[0].Bits, r.turns.Bits)
	found := &detours{hops: make([][]hop, len(r.columns))}
	for i, c := range order {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		for !r.growDetours(&r.columns[c]) {
			if len(r.vls) == vls {
				r.failed = c
				return nil, i, nil
			}
			r.vls = append(r.vls, r.newVL())
		}
		found.hops[c] = slices.Clone(r.hops)
	}
	found.vls = r.vls
	return found, 0, nil
}

// newVL returns the dependency graph of a new VL, which is empty.
func (r *repairer) newVL() *waits {
	w := newWaits(r.arcs, 1)
	w.keepAcyclic(r.order)
	return w
}

// shorten grows all columns again. It may use all turns made so far, and new ones
// that make paths shorter. A column that fails keeps its detours.
func (r *repairer) shorten(ctx context.Context, found *detours) error {
	r.vls = found.vls
	r.prefer, r.newTurn, r.otherTurn = NoDir, 0, 0
	for i, hops := range found.hops {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(hops) > 0 && r.growDetours(&r.columns[i]) {
			copy(hops, r.hops)
		}
	}
	return nil
}

// tree grows the detours to one destination.
type tree struct {
	vls       []*waits
	prefer    Dir // prefer turns with this direction
	newTurn   int
	otherTurn int
	work      int   // how many broken entries were visited
	failed    int32 // the column that try failed at

	c      *column
	way    []Dir     // by switch: direction of its path
	length []int32   // by switch: hops to the destination, -1 if not known yet
	clear  []uint16  // by switch with a length: the VLs on which its path has no new turn
	queue  [][]int32 // by cost: arcs from switches without a way
	cost   int       // the cost that is being looked at
	hops   []hop
	path   []int32
}

// all returns the set of all VLs.
func (r *repairer) all() uint16 { return 1<<len(r.vls) - 1 }

// allowed returns the VLs that already have the turn from arc into direction d.
func (r *repairer) allowed(arc int32, d Dir) uint16 {
	set := uint16(0)
	for vl, w := range r.vls {
		if w.Has(arc, w.next(arc, d)) {
			set |= 1 << vl
		}
	}
	return set
}

// growDetours finds the hops of all broken entries of a column. It returns false
// if one finds none.
func (r *repairer) growDetours(c *column) bool {
	r.c = c
	copy(r.way, c.xy)
	text.Fill(r.length, -1)
	r.length[c.to], r.clear[c.to] = 0, r.all()
	r.hops = r.hops[:0]
	r.cost = 0
	for i := range r.queue {
		r.queue[i] = r.queue[i][:0]
	}
	for _, u := range c.broken {
		for d := range Dir(r.dirs) {
			if v := r.head[r.arc(u, d)]; v >= 0 && (v == c.to || c.xy[v] != NoDir) {
				r.measure(v)
				r.offer(r.arc(u, d))
			}
		}
	}
	for ; r.cost < len(r.queue); r.cost++ {
		for i := 0; i < len(r.queue[r.cost]); i++ {
			arc := r.queue[r.cost][i]
			u := arc / r.dirs
			if r.length[u] < 0 {
				r.addDetour(arc)
			}
		}
	}
	r.work += len(c.broken)
	if len(r.hops) == len(c.broken) {
		return true
	}
	for _, u := range c.broken {
		if r.length[u] < 0 {
			r.stuckFrom, r.stuckTo = u, c.to
			break
		}
	}
	return false
}

// measure sets length and clear of the switches on XY's path from s.
func (r *repairer) measure(s int32) {
	r.path = r.path[:0]
	for ; r.length[s] < 0; s = r.head[r.arc(s, r.way[s])] {
		r.path = append(r.path, s)
	}
	for i := len(r.path) - 1; i >= 0; i-- {
		u := r.path[i]
		r.length[u] = r.length[s] + 1
		r.clear[u] = r.clearFrom(r.arc(u, r.way[u]))
		s = u
	}
}

// clearFrom returns the VLs on which a path that begins with arc has no new turn.
func (r *repairer) clearFrom(arc int32) uint16 {
	v := r.head[arc]
	if v == r.c.to {
		return r.all()
	}
	return r.clear[v] & r.allowed(arc, r.way[v])
}

// offer queues an arc to a switch that has a way.
func (r *repairer) offer(arc int32) {
	v := r.head[arc]
	cost := int(r.length[v]) + 1
	if r.clearFrom(arc) == 0 {
		cost += r.newTurn
		if r.prefer != NoDir && r.prefer != Dir(arc%r.dirs) && r.prefer != r.way[v] {
			cost += r.otherTurn
		}
	}
	cost = max(cost, r.cost)
	for len(r.queue) <= cost {
		r.queue = append(r.queue, nil)
	}
	r.queue[cost] = append(r.queue[cost], arc)
}

// addDetour makes an arc the first hop of a detour, if its turns are allowed.
func (r *repairer) addDetour(arc int32) {
	clear := r.clearFrom(arc)
	if clear == 0 {
		if clear = r.allow(arc); clear == 0 {
			return
		}
	}
	u, d := arc/r.dirs, Dir(arc%r.dirs)
	r.way[u] = d
	r.length[u] = r.length[r.head[arc]] + 1
	r.clear[u] = clear
	r.hops = append(r.hops, hop{from: u, way: d, vl: uint8(bits.TrailingZeros16(clear))})
	for d := range Dir(r.dirs) {
		if w := r.head[r.arc(u, d)]; w >= 0 && r.length[w] < 0 && w != r.c.to && r.c.xy[w] == NoDir {
			r.offer(r.arc(w, d.Opposite()))
		}
	}
}

// allow adds the turns of a path that begins with arc to one VL, and returns that
// as a set. It tries first the VLs on which the rest of the path has no new turn.
// The set is empty if all VLs would get a cycle.
func (r *repairer) allow(arc int32) uint16 {
	clear := r.clear[r.head[arc]]
	for _, rest := range []uint16{clear, r.all() &^ clear} {
		for ; rest != 0; rest &= rest - 1 {
			if vl := bits.TrailingZeros16(rest); r.allowOn(r.vls[vl], arc) {
				return 1 << vl
			}
		}
	}
	return 0
}

func (r *repairer) allowOn(w *waits, arc int32) bool {
	for v := r.head[arc]; v != r.c.to; v = r.head[arc] {
		if !w.add(arc, r.way[v], 0) {
			w.acyclic.Undo()
			return false
		}
		arc = r.arc(v, r.way[v])
	}
	w.acyclic.Keep()
	return true
}
