package mesh

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// maxCombTries bounds how many trunks are tried for one order of the
// dimensions: on grids of many dimensions perhaps none is safe.
// maxBridgedSwitches bounds the switches of all trunks that are tried with
// cables added one by one.
const (
	maxCombTries       = 1024
	maxBridgedSwitches = 8192
)

// combChooser chooses trunks for groups.
type combChooser struct {
	c      Comb
	g      *Grid
	r      *lft.Routing
	groups []mft.Group
	vls    *slVLs
	paths  *combWaits // with the turns of unicast
	bridge bool       // gaps may be bridged
	why    error      // why the trunk that joined most groups was refused
	served int        // how many groups it joined
}

func (x *combChooser) refuse(group int, format string, args ...any) error {
	return &mft.RefusedError{Scheme: x.c.Name(), Group: x.groups[group].Name, Reason: fmt.Sprintf(format, args...),
		Suggest: []string{mft.UnionMerge{}.Name(), mft.UpdnTree{}.Name()}}
}

// layout chooses the trunks for groups, at least one.
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
	} else if x.g.Fabric != f { // same cables, other LIDs
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
	if c.lanes != nil {
		l, _ := x.assign(c.lanes)
		return l, x.why
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
	for {
		l, bad, err := x.trunks(ctx, lanes)
		if l != nil || err != nil {
			return l, err
		}
		// If no group has an SL of the failed lane, try another one instead.
		if bad < 0 || lanes[bad].pinned {
			return nil, x.why
		}
		if lanes = x.addLane(slices.Delete(slices.Clone(lanes), bad, bad+1), lanes[bad].sls[0]+1); lanes == nil {
			return nil, x.refuse(x.free(), "%d trunks on VLs of their own are wanted; its SLs have no room for another safe one, after: %v", c.VLs, x.why)
		}
	}
}

// spreads returns true if group i may be on any lane.
func (x *combChooser) spreads(i int) bool { return x.c.VLs > 1 && x.groups[i].SL == 0 }

// free returns the first group that may be on any lane, 0 if there is none.
func (x *combChooser) free() int {
	for i := range x.groups {
		if x.spreads(i) {
			return i
		}
	}
	return 0
}

// lanes divides the SLs of the groups into lanes: SLs that share a VL are on
// one lane. Then it adds lanes of SLs that share no VL with others, up to
// c.VLs.
func (x *combChooser) lanes() ([]combLane, error) {
	meets := x.vls.meets()
	inUse, free := uint16(0), false
	for i := range x.groups {
		switch sl := x.groups[i].SL; {
		case sl >= lft.NumSLs:
			return nil, fmt.Errorf("comb: group %q has SL %d, want 0 to %d", x.groups[i].Name, sl, lft.NumSLs-1)
		case x.spreads(i):
			free = true
		case x.vls.drops>>sl&1 != 0:
			return nil, x.refuse(i, "the SL-to-VL tables drop packets of its SL %d", sl)
		default:
			inUse |= 1 << sl
		}
	}
	var lanes []combLane
	for rest := inUse; rest != 0; {
		// Add all SLs that share a VL with one in the set.
		set, before := rest&-rest, uint16(0)
		for set != before {
			before = set
			for k := set; k != 0; k &= k - 1 {
				set |= meets[bits.TrailingZeros16(k)] & inUse
			}
		}
		rest &^= set
		lane := combLane{pinned: true}
		for ; set != 0; set &= set - 1 {
			lane.sls = append(lane.sls, fabric.SL(bits.TrailingZeros16(set)))
		}
		lanes = append(lanes, lane)
	}
	if !free {
		return lanes, nil
	}
	for len(lanes) < x.c.VLs {
		if more := x.addLane(lanes, 0); more != nil {
			lanes = more
			continue
		}
		if x.r.SL2VL == nil {
			return nil, x.refuse(x.free(), "%d trunks take %d VLs, and routing %s has one VL", x.c.VLs, x.c.VLs, x.r.Engine)
		}
		return nil, x.refuse(x.free(), "%d trunks are wanted, and only %d SLs have no VL in common", x.c.VLs, len(lanes))
	}
	return lanes, nil
}

// laneOf returns the lane with an SL, -1 if there is none.
func laneOf(lanes []combLane, sl fabric.SL) int {
	return slices.IndexFunc(lanes, func(l combLane) bool { return slices.Contains(l.sls, sl) })
}

// addLane adds a lane with the lowest SL, from or higher, whose packets are
// never dropped and share no VL with other lanes. It returns nil if there is
// none.
func (x *combChooser) addLane(lanes []combLane, from fabric.SL) []combLane {
	meets := x.vls.meets()
	taken := x.vls.drops
	for _, l := range lanes {
		for _, sl := range l.sls {
			taken |= meets[sl]
		}
	}
	for sl := from; sl < lft.NumSLs; sl++ {
		if taken>>sl&1 == 0 {
			return append(lanes, combLane{sls: []fabric.SL{sl}})
		}
	}
	return nil
}

// trunks finds trunks for all lanes. If there are none, l is nil, x.why is
// the reason, and bad is the lane whose trunk failed in the first try, or -1.
func (x *combChooser) trunks(ctx context.Context, lanes []combLane) (l *combLayout, bad int, err error) {
	for _, x.bridge = range []bool{false, true} {
		if x.bridge && len(x.g.Missing) == 0 {
			break
		}
		x.why, x.served = nil, 0
		l, failed, err := x.anyOrder(ctx, lanes)
		if l != nil || err != nil {
			return l, 0, err
		}
		if !x.bridge {
			bad = failed
		}
	}
	return nil, bad, nil
}

// combChoice is a layout and its cost.
type combChoice struct {
	l        *combLayout
	load     int64 // of the busiest of its lines
	distance int   // sum of those of its lines
	first    bool  // no earlier try failed
}

// anyOrder does what trunks does, for one value of x.bridge.
func (x *combChooser) anyOrder(ctx context.Context, lanes []combLane) (l *combLayout, bad int, err error) {
	var best combChoice
	for _, order := range combOrders(len(x.g.Dims)) {
		lines, err := x.lines(ctx, order)
		if err != nil {
			return nil, 0, err
		}
		c, failed, err := x.along(ctx, order, lines, lanes)
		switch {
		case err != nil:
			return nil, 0, err
		case c.l == nil && best.l == nil:
			bad = failed
		case c.l != nil && (best.l == nil || cmp.Or(cmp.Compare(c.load, best.load), cmp.Compare(c.distance, best.distance)) < 0):
			best = c
		}
		if best.first {
			break
		}
	}
	return best.l, bad, nil
}

// combLine is a line that may be a trunk.
type combLine struct {
	at       []int   // as in Trunk
	loads    []int64 // by arc: packets if each sender sends one and this is the only trunk
	load     int64   // the greatest of loads
	distance int     // to the middle, twice the sum over dimensions
}

// lines lists the lines along the first dimension of an order, the best
// first. It takes O(members + links) for each line and group.
func (x *combChooser) lines(ctx context.Context, order []int) ([]combLine, error) {
	first := order[0]
	var list []combLine
	for position := range x.g.Positions() {
		if at := x.g.Shape.coords(position); at[first] == 0 {
			l := combLine{at: at, loads: make([]int64, len(x.vls.arcs.head))}
			for d, y := range at {
				if d != first {
					l.distance += abs(2*y - x.g.Dims[d] + 1)
				}
			}
			at[first] = -1
			list = append(list, l)
		}
	}
	walk := func() *mft.TreeWalk { return mft.NewTreeWalk(x.g.Fabric.NumSwitches()) }
	_, err := par.ForEachWith(ctx, 0, len(list), walk, func(w *mft.TreeWalk, i int) error {
		l := &list[i]
		t := newCombTree(x.g, order, Trunk{At: l.at})
		for k := range x.groups {
			w.Join(&t.SpanningTree, &x.groups[k])
			x.addLoads(l.loads, t, w.Links)
		}
		l.load = slices.Max(append(l.loads, 0))
		return nil
	})
	slices.SortFunc(list, func(a, b combLine) int {
		return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.distance, b.distance), slices.Compare(a.at, b.at))
	})
	return list, err
}

func (x *combChooser) arcsOf(t *combTree, link mft.TreeLink) (up, down int32) {
	a := x.vls.arcs
	up = a.arc(a.index[t.Switch[link.Below]], t.up[link.Below])
	return up, a.arc(a.head[up], t.up[link.Below].Opposite())
}

// addLoads adds the copies on links of a tree to loads, which is by arc.
func (x *combChooser) addLoads(loads []int64, t *combTree, links []mft.TreeLink) {
	for _, l := range links {
		up, down := x.arcsOf(t, l)
		loads[up] += int64(l.Up)
		loads[down] += int64(l.Down)
	}
}

// spread moves trunks, indices in lines, to lines that no other trunk has. It
// goes on as long as a move lowers the load of the busiest link, divided
// equally among the trunks, or keeps it and brings a trunk nearer to the
// middle.
func spread(lines []*combLine, trunks []int) {
	sum := make([]int64, len(lines[0].loads))
	most := func(from, to *combLine) (most int64) { // after moving a trunk
		for a, n := range sum {
			most = max(most, n-from.loads[a]+to.loads[a])
		}
		return most
	}
	none := &combLine{loads: make([]int64, len(sum))}
	put := func(from, to *combLine) {
		for a := range sum {
			sum[a] += to.loads[a] - from.loads[a]
		}
	}
	for _, k := range trunks {
		put(none, lines[k])
	}
	best := most(none, none)
	for moved := true; moved; {
		moved = false
		for i := range trunks {
			for k, to := range lines {
				from := lines[trunks[i]]
				if slices.Contains(trunks, k) {
					continue
				}
				if load := most(from, to); load < best || load == best && to.distance < from.distance {
					put(from, to)
					trunks[i], best, moved = k, load, true
				}
			}
		}
	}
	slices.Sort(trunks)
}

// along does what trunks does, for one order of the dimensions. It starts
// with the best lines. If a trunk fails, it takes the next line that no
// other lane has.
func (x *combChooser) along(ctx context.Context, order []int, list []combLine, lanes []combLane) (c combChoice, bad int, err error) {
	most := maxCombTries
	if x.bridge {
		most = max(2, maxBridgedSwitches/x.g.Fabric.NumSwitches())
	}
	next := make([]int, len(lanes)) // by lane: index of its line
	for k := range next {
		next[k] = k % len(list)
	}
	if last := order[len(order)-1]; len(lanes) > 1 && len(lanes) <= x.g.Dims[last] && len(order) > 1 {
		column := make([]*combLine, x.g.Dims[last]) // by last coordinate: the line that else equals the best one
		index := make([]int, len(column))           // in list
		for i := range list {
			at := slices.Clone(list[i].at)
			if at[last] = list[0].at[last]; slices.Equal(at, list[0].at) {
				column[list[i].at[last]], index[list[i].at[last]] = &list[i], i
			}
		}
		rows := make([]int, len(lanes))
		for k := range rows {
			rows[k] = k + (len(column)-len(rows))/2
		}
		spread(column, rows)
		for k, y := range rows {
			next[k] = index[y]
		}
	}
	bad = -1
	for range most {
		if err := ctx.Err(); err != nil {
			return c, 0, err
		}
		c = combChoice{first: bad < 0}
		for k := range lanes {
			line := list[next[k]]
			c.load, c.distance = max(c.load, line.load), c.distance+line.distance
			lanes[k].tree = newCombTree(x.g, order, Trunk{At: line.at, SL: lanes[k].sls[0]})
		}
		l, failed := x.try(lanes)
		if l != nil {
			c.l = l
			return c, 0, nil
		}
		if bad < 0 {
			bad = failed
		}
		others := slices.Delete(slices.Clone(next), failed, failed+1)
		for next[failed]++; len(lanes) <= len(list) && slices.Contains(others, next[failed]); {
			next[failed]++
		}
		if next[failed] >= len(list) {
			break
		}
	}
	return combChoice{}, bad, nil
}

// try returns the layout if the lanes' trees are safe and connect all groups.
// Otherwise l is nil, and bad is the lane whose trunk fails.
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
	return x.assign(lanes)
}

// assign puts each group with an SL on that SL's lane, the others where they
// add the least load. If a group cannot be joined, it returns nil and the lane
// that fails, and sets why.
func (x *combChooser) assign(lanes []combLane) (l *combLayout, bad int) {
	l = &combLayout{g: x.g, lanes: slices.Clone(lanes), lane: make([]int, len(x.groups)), sl: make([]fabric.SL, len(x.groups))}
	whole, free := true, false
	for k := range lanes {
		whole = whole && lanes[k].tree.whole
	}
	walk := mft.NewTreeWalk(x.g.Fabric.NumSwitches())
	for i := range x.groups {
		if x.spreads(i) {
			free = true
			continue
		}
		l.sl[i] = x.groups[i].SL
		if l.lane[i] = laneOf(lanes, l.sl[i]); l.lane[i] < 0 {
			x.why = x.refuse(i, "no trunk was chosen for SL %d", l.sl[i])
			return nil, 0
		}
		if whole {
			continue
		}
		if stuck := walk.Join(&lanes[l.lane[i]].tree.SpanningTree, &x.groups[i]); stuck >= 0 {
			x.cut(i, lanes[l.lane[i]].tree, stuck)
			return nil, l.lane[i]
		}
	}
	if free {
		if bad := x.divide(l, walk); bad >= 0 {
			return nil, bad
		}
	}
	return l, 0
}

// cut sets why a group is not joined, unless another trunk joined more groups.
func (x *combChooser) cut(group int, t *combTree, stuck int32) {
	if x.why != nil && group <= x.served {
		return
	}
	x.served = group
	s := t.Switch[stuck]
	name, place := nameOf(x.g.Fabric, s), x.g.coordinatesOf(s)
	if x.bridge {
		x.why = x.refuse(group, "of the cables that are left none joins %s at %s, or what is behind it, to the comb on %v without closing a cycle of cables that wait for each other",
			name, place, t.trunk)
		return
	}
	x.why = x.refuse(group, "the comb on %v needs a cable that is missing: %s at %s has no way on to the trunk, and members on both sides", t.trunk, name, place)
}

// firstOn returns the first group that is, or may be, on a lane.
func (x *combChooser) firstOn(lanes []combLane, lane int) int {
	for i := range x.groups {
		if x.spreads(i) || laneOf(lanes, x.groups[i].SL) == lane {
			return i
		}
	}
	return 0
}

// divide puts each group that may be on any lane on the lane where the links
// of its tree have the least load so far, groups with most copies first. It
// returns -1, or a lane that cannot join a group.
func (x *combChooser) divide(l *combLayout, walk *mft.TreeWalk) int {
	load := make([]int64, len(x.vls.arcs.head)) // by arc
	links := make([][]mft.TreeLink, len(l.lanes))
	cost := func(t *combTree, links []mft.TreeLink) int64 {
		sum := int64(0)
		for _, k := range links {
			a, b := x.arcsOf(t, k)
			up, down := int64(k.Up), int64(k.Down)
			sum += up*(2*load[a]+up) + down*(2*load[b]+down)
		}
		return sum
	}
	var free []int
	for i := range x.groups {
		if x.spreads(i) {
			free = append(free, i)
			continue
		}
		t := l.lanes[l.lane[i]].tree
		walk.Join(&t.SpanningTree, &x.groups[i])
		x.addLoads(load, t, walk.Links)
	}
	slices.SortStableFunc(free, func(i, j int) int {
		a, b := &x.groups[i], &x.groups[j]
		return cmp.Compare(len(b.Senders)*len(b.Receivers), len(a.Senders)*len(a.Receivers))
	})
	on := make([]int, len(l.lanes))
	for _, i := range free {
		best, least := -1, int64(0)
		for k := range l.lanes {
			t := l.lanes[k].tree
			if walk.Join(&t.SpanningTree, &x.groups[i]) >= 0 {
				continue
			}
			links[k] = append(links[k][:0], walk.Links...)
			if c := cost(t, links[k]); best < 0 || c < least || c == least && on[k] < on[best] {
				best, least = k, c
			}
		}
		if best < 0 {
			t := l.lanes[0].tree
			x.cut(i, t, walk.Join(&t.SpanningTree, &x.groups[i]))
			return 0
		}
		on[best]++
		x.addLoads(load, l.lanes[best].tree, links[best])
		l.lane[i], l.sl[i] = best, l.lanes[best].sls[0]
	}
	return -1
}
