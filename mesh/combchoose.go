package mesh

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// maxCombTries bounds how many trunks of one order of the dimensions are tried,
// for the grids of many dimensions on which none may be safe; and
// maxBridgedSwitches, of all trunks together, when cables are added one by one.
const (
	maxCombTries       = 1024
	maxBridgedSwitches = 8192
)

// combChooser finds trunks.
type combChooser struct {
	c      Comb
	g      *Grid
	r      *lft.Routing
	groups []mft.Group
	vls    *slVLs
	paths  *combWaits // the turns of unicast
	bridge bool       // whether gaps may be bridged
	tries  int
	why    error // why the trunk is none that was tried and came farthest
	served int   // groups that it joined
}

func (x *combChooser) refuse(group int, format string, args ...any) error {
	return &mft.RefusedError{Scheme: x.c.Name(), Group: x.groups[group].Name, Reason: fmt.Sprintf(format, args...),
		Suggest: []string{mft.UnionMerge{}.Name(), mft.UpdnTree{}.Name()}}
}

// layout chooses the trunks for groups, of which there must be one.
func (c Comb) layout(ctx context.Context, r *lft.Routing, groups []mft.Group) (*combLayout, error) {
	x := &combChooser{c: c, g: c.Grid, r: r, groups: groups}
	f := r.Fabric
	if x.g == nil {
		var err error
		if x.g, err = Detect(f, DetectOptions{}); err != nil {
			return nil, x.refuse(0, "%v", err)
		}
	} else if !fabric.SameTopology(x.g.Fabric, f) {
		return nil, fmt.Errorf("comb: a grid of another fabric than the routing's")
	} else if x.g.Fabric != f { // the same cables, but other LIDs
		g := *x.g
		g.Fabric = f
		x.g = &g
	}
	for i := range groups {
		for _, list := range [2][]fabric.PortID{groups[i].Receivers, groups[i].Senders} {
			for _, p := range list {
				if f.Attachment(p) == fabric.NoPort {
					return nil, x.refuse(i, "member %s has no cable to a switch", f.PortName(p))
				}
			}
		}
	}
	for _, t := range c.Trunks {
		if err := x.checkTrunk(t); err != nil {
			return nil, err
		}
	}
	x.vls = newSLVLs(x.g, r)
	var err error
	if x.paths, err = newCombWaits(ctx, x.vls); err != nil {
		return nil, err
	}
	if cycle := x.paths.cycle(); cycle != nil {
		return nil, x.refuse(0, "the unicast paths alone wait for each other in a cycle: %s", x.paths.describe(cycle))
	}
	lanes, err := x.lanes()
	if err != nil {
		return nil, err
	}
	l, err := x.trunks(ctx, lanes)
	if l == nil && err == nil {
		err = x.why
	}
	return l, err
}

// checkTrunk says what is wrong with a trunk's coordinates.
func (x *combChooser) checkTrunk(t Trunk) error {
	n := len(x.g.Dims)
	if len(t.At) != n {
		return fmt.Errorf("comb: a trunk with %d coordinates, the grid has %d dimensions", len(t.At), n)
	}
	if t.At[0] >= 0 && t.At[n-1] >= 0 {
		return fmt.Errorf("comb: trunk %v runs along neither the first nor the last dimension, where -1 should be", t)
	}
	along := 0
	if t.At[0] >= 0 {
		along = n - 1
	}
	for d, y := range t.At {
		if d != along && (y < 0 || y >= x.g.Dims[d]) {
			return fmt.Errorf("comb: trunk %v, and dimension %d has coordinates 0 to %d", t, d+1, x.g.Dims[d]-1)
		}
	}
	if t.SL >= lft.NumSLs {
		return fmt.Errorf("comb: a trunk for SL %d, want 0 to %d", t.SL, lft.NumSLs-1)
	}
	return nil
}

// lanes divides the SLs of the groups into those that meet on a VL.
func (x *combChooser) lanes() ([]combLane, error) {
	meets := x.vls.meets()
	inUse := uint16(0)
	for i := range x.groups {
		switch sl := x.groups[i].SL; {
		case sl >= lft.NumSLs:
			return nil, fmt.Errorf("comb: group %q has SL %d, want 0 to %d", x.groups[i].Name, sl, lft.NumSLs-1)
		case x.vls.drops>>sl&1 != 0:
			return nil, x.refuse(i, "the SL-to-VL tables drop packets of its SL %d", sl)
		default:
			inUse |= 1 << sl
		}
	}
	var lanes []combLane
	for rest := inUse; rest != 0; {
		// All that meet, one over the other.
		set, before := rest&-rest, uint16(0)
		for set != before {
			before = set
			for k := set; k != 0; k &= k - 1 {
				set |= meets[bits.TrailingZeros16(k)] & inUse
			}
		}
		rest &^= set
		var lane combLane
		for ; set != 0; set &= set - 1 {
			lane.sls = append(lane.sls, fabric.SL(bits.TrailingZeros16(set)))
		}
		lanes = append(lanes, lane)
	}
	return lanes, nil
}

// laneOf is the lane with an SL, -1 for none.
func laneOf(lanes []combLane, sl fabric.SL) int {
	return slices.IndexFunc(lanes, func(l combLane) bool { return slices.Contains(l.sls, sl) })
}

// trunks finds trunks for all lanes. When there are none, x.why says why.
func (x *combChooser) trunks(ctx context.Context, lanes []combLane) (*combLayout, error) {
	for _, x.bridge = range []bool{false, true} {
		if x.bridge && len(x.g.Missing) == 0 {
			break
		}
		x.why, x.served = nil, 0
		if l, err := x.anyOrder(ctx, lanes); l != nil || err != nil {
			return l, err
		}
	}
	return nil, nil
}

// combChoice is a layout and what it costs.
type combChoice struct {
	l        *combLayout
	load     int64 // of the busiest link, times the number of trunks
	distance int   // of the trunks to the middle, twice the sum
	first    bool  // nothing better was tried
}

// anyOrder is trunks with or without bridges, nil for none.
func (x *combChooser) anyOrder(ctx context.Context, lanes []combLane) (*combLayout, error) {
	if len(x.c.Trunks) > 0 {
		for k := range lanes {
			t, err := x.pinned(&lanes[k])
			if err != nil {
				return nil, err
			}
			order := combOrders(len(t.At))[0]
			if t.At[0] >= 0 {
				order = combOrders(len(t.At))[1]
			}
			t.SL = lanes[k].sls[0]
			lanes[k].tree = newCombTree(x.g, order, t)
		}
		l, _ := x.try(lanes)
		return l, nil
	}
	var best combChoice
	for _, order := range combOrders(len(x.g.Dims)) {
		loads, err := newCombLoads(ctx, x.g, order, x.groups)
		if err != nil {
			return nil, err
		}
		c, err := x.along(ctx, order, loads, lanes)
		if err != nil {
			return nil, err
		}
		if c.l != nil && (best.l == nil || cmp.Or(cmp.Compare(c.load, best.load), cmp.Compare(c.distance, best.distance)) < 0) {
			best = c
		}
		if best.first {
			break
		}
	}
	return best.l, nil
}

// pinned is the trunk that the caller wants a lane to have.
func (x *combChooser) pinned(lane *combLane) (Trunk, error) {
	meets := x.vls.meets()
	found := -1
	for i, t := range x.c.Trunks {
		met := slices.ContainsFunc(lane.sls, func(sl fabric.SL) bool { return sl == t.SL || meets[sl]>>t.SL&1 != 0 })
		switch {
		case !met:
		case found < 0:
			found = i
		case !slices.Equal(x.c.Trunks[found].At, t.At):
			return t, fmt.Errorf("comb: trunks %v of SL %d and %v of SL %d, and packets of these have a VL in common, or of SLs that have", x.c.Trunks[found], x.c.Trunks[found].SL, t, t.SL)
		}
	}
	return x.c.Trunks[max(found, 0)], nil
}

// along is trunks for one order of the dimensions.
func (x *combChooser) along(ctx context.Context, order []int, loads *combLoads, lanes []combLane) (c combChoice, err error) {
	n := len(order)
	if n == 1 {
		for k := range lanes {
			lanes[k].tree = newCombTree(x.g, order, Trunk{At: []int{-1}, SL: lanes[k].sls[0]})
		}
		l, _ := x.try(lanes)
		return combChoice{l: l, first: true}, nil
	}
	most := maxCombTries
	if x.bridge {
		most = max(2, maxBridgedSwitches/x.g.Fabric.NumSwitches())
	}
	x.tries = 0
	last := order[n-1]
	for _, at := range x.planes(order, loads) {
		// Trunks with different coordinates in the last dimension divide the
		// load of all others among them.
		least := loads.trunkLoad()
		for j := 1; j < n-1; j++ {
			least = max(least, loads.sideLoad(j, at[order[j]]))
		}
		least *= int64((len(lanes) + x.g.Dims[last] - 1) / x.g.Dims[last])
		choice := newRowChoice(loads, n-1, len(lanes), least)
		for {
			if err := ctx.Err(); err != nil {
				return c, err
			}
			rows, load := choice.rows()
			if rows == nil || x.tries == most {
				break
			}
			c = combChoice{load: load, first: x.tries == 0}
			for k := range lanes {
				t := Trunk{At: slices.Clone(at), SL: lanes[k].sls[0]}
				t.At[order[0]], t.At[last] = -1, rows[k]
				for _, d := range order[1:] {
					c.distance += abs(2*t.At[d] - x.g.Dims[d] + 1)
				}
				lanes[k].tree = newCombTree(x.g, order, t)
			}
			x.tries++
			l, failed := x.try(lanes)
			if l != nil {
				c.l = l
				return c, nil
			}
			choice.allowed[failed][rows[failed]] = false
		}
	}
	return combChoice{}, nil
}

// sideLoad is the load of the busiest link along dimension j of the order with
// the trunk at coordinate y.
func (l *combLoads) sideLoad(j, y int) int64 {
	most := int64(0)
	for link := range l.g.Dims[l.order[j]] - 1 {
		below := 0
		if y <= link {
			below = 1
		}
		most = max(most, l.greatest(j, link, below, 1))
	}
	return most
}

// planes lists the coordinates, of trunks, in all dimensions but the first and
// the last of the order, the best first. The others are 0.
func (x *combChooser) planes(order []int, loads *combLoads) [][]int {
	type plane struct {
		at       []int
		load     int64
		distance int
	}
	list := []plane{{at: make([]int, len(order)), load: loads.trunkLoad()}}
	for j := 1; j < len(order)-1; j++ {
		d := order[j]
		var next []plane
		for _, p := range list {
			for y := range x.g.Dims[d] {
				at := slices.Clone(p.at)
				at[d] = y
				next = append(next, plane{at, max(p.load, loads.sideLoad(j, y)), p.distance + abs(2*y-x.g.Dims[d]+1)})
			}
		}
		list = next
	}
	slices.SortStableFunc(list, func(a, b plane) int {
		return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.distance, b.distance))
	})
	planes := make([][]int, len(list))
	for i, p := range list {
		planes[i] = p.at
	}
	return planes
}

// try says whether the lanes' trees are safe and join all groups: then it is
// the layout. Else bad is a lane whose trunk is to blame.
func (x *combChooser) try(lanes []combLane) (l *combLayout, bad int) {
	w := x.paths
	for k := range lanes {
		sls := uint16(0)
		for _, sl := range lanes[k].sls {
			sls |= 1 << sl
		}
		t := lanes[k].tree
		with := w.with(t, sls)
		switch cycle := with.cycle(); {
		case cycle == nil && (t.whole || !x.bridge):
			w = with
		case cycle == nil:
			w = with.bridge(t, sls, t.joined)
		case x.bridge:
			wanted := t.joined
			t.joined = make([]uint32, len(wanted))
			w = w.bridge(t, sls, wanted)
		default:
			if x.why == nil {
				x.why = x.refuse(x.firstOn(lanes, k), "with the unicast paths of routing %s a comb on %v closes a cycle of cables that wait for each other: %s",
					x.r.Engine, t.trunk, with.describe(cycle))
			}
			return nil, k
		}
	}
	l = &combLayout{g: x.g, lanes: slices.Clone(lanes), lane: make([]int, len(x.groups))}
	whole := true
	for k := range lanes {
		whole = whole && lanes[k].tree.whole
	}
	walk := newCombWalk(x.g)
	for i := range x.groups {
		l.lane[i] = laneOf(lanes, x.groups[i].SL)
		if whole {
			continue
		}
		if stuck := walk.tree(lanes[l.lane[i]].tree, &x.groups[i]); stuck >= 0 {
			x.cut(i, lanes[l.lane[i]].tree, stuck)
			return nil, l.lane[i]
		}
	}
	return l, 0
}

// cut notes that a group is not joined.
func (x *combChooser) cut(group int, t *combTree, stuck int32) {
	if x.why != nil && group <= x.served {
		return
	}
	x.served = group
	s := t.node[stuck]
	name, place := nameOf(x.g.Fabric, s), x.g.coordinatesOf(s)
	if x.bridge {
		x.why = x.refuse(group, "of the cables that are left none joins %s at %s, or what is behind it, to the comb on %v without closing a cycle of cables that wait for each other",
			name, place, t.trunk)
		return
	}
	x.why = x.refuse(group, "the comb on %v needs a cable that is missing: %s at %s has no way on to the trunk, and members on both sides", t.trunk, name, place)
}

// firstOn is the first group on a lane.
func (x *combChooser) firstOn(lanes []combLane, lane int) int {
	for i := range x.groups {
		if laneOf(lanes, x.groups[i].SL) == lane {
			return i
		}
	}
	return 0
}
