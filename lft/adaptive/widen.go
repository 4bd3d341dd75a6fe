package adaptive

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// Widen adds choices to static tables without credit loop: groups of ports for all LIDs, in one
// PLFT for all packets. A port is a candidate for a LID if it leads to a switch with a shorter
// static path to the LID, so packets arrive whatever ports they take. A candidate is added if
// its dependencies between channels, (port, VL), close no cycle with those of all other
// choices, static ports and management packets included. So the result is free of credit loops
// without escape paths.
//
// First, channels are numbered, and ports are added whose dependencies go from lower to higher
// numbers: they climb. If the static dependencies climb in the numbers of up*/down* with the
// routing's order, these are taken; they permit all ports that updn or fattree allow. If not,
// the numbers are a topological order of the static dependencies close to these numbers. Then
// the other ports are tried one by one, by LID, and the numbers change as needed. After that no
// single port can be added, unless the search has used up searchWork steps. This search leaves
// out LIDs of switches without hosts, and switches that no host's packets to a LID pass.
//
// A packet keeps its SL. So with several lanes, a port must close no cycle on any lane that
// packets to the LID take there.
//
// On one lane it takes O(switches x ports) for all LIDs of a leaf together; with several lanes,
// or if their static paths do not fit together, for each LID. The tables do not depend on the
// number of CPUs, and share the routing's static tables. Errors: a *lft.DomainError for tables
// with a credit loop and for a switch with more than MaxGroups different sets of ports; ctx's.
func Widen(ctx context.Context, r *lft.Routing) (*Tables, error) {
	w := newWidener(r)
	ok := false
	var err error
	if !w.several && r.Order != nil {
		w.setOrder(graph.TopologicalByKey(w.numNodes(), func(int32) []int32 { return nil }, w.upDownKeys()))
		if ok, err = w.widenAll(ctx); err != nil {
			return nil, err
		}
	}
	if !ok {
		w.reset()
		if err := w.collect(ctx); err != nil {
			return nil, err
		}
		order := graph.TopologicalByKey(w.numNodes(), w.turns.Next(), w.upDownKeys())
		if len(order) < w.numNodes() {
			return nil, &lft.DomainError{Engine: r.Engine, Reason: "the static tables have a credit loop, so no choice of ports can be proven"}
		}
		w.setOrder(order)
		if _, err := w.widenAll(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.widenRest(ctx); err != nil {
		return nil, err
	}
	for s := range w.sets {
		if len(w.sets[s].list) > MaxGroups {
			return nil, &lft.DomainError{Engine: r.Engine, Reason: fmt.Sprintf("%s needs more than %d groups of ports", r.Fabric.Name(fabric.NodeID(s)), MaxGroups)}
		}
	}
	return w.tables(), nil
}

// searchWork bounds the steps of the search for ports that do not climb.
const searchWork = 1 << 26

// widener holds what workers share. A node of its graphs is a channel on a VL: channel x VLs +
// VL.
type widener struct {
	*lft.Routing
	*lanes
	channels
	roots []root
	// number is the place of each node in order. Static dependencies climb in it.
	number []int32
	order  *graph.Order[int32]
	turns  turns
	plft   *PLFT
	sets   []portSets // by switch
}

// channels is the cables between switches, each as two channels.
type channels struct {
	first []int32          // by switch: its first channel; one more at the end
	port  []fabric.PortID  // by channel
	from  []fabric.NodeID  // by channel
	to    []fabric.NodeID  // by channel
	back  []int32          // by channel: the same cable in the other direction
	at    []int32          // by PortID of a switch: its channel, or -1
	nums  []fabric.PortNum // by channel: the port's number
}

// root is a switch with the LIDs that it delivers.
type root struct {
	s    fabric.NodeID
	lids []fabric.LID
	// With split, LIDs are widened one by one; left means that candidates remain for the
	// search.
	split, left bool
}

// portSets numbers the different sets of ports of a switch in the order of first use.
type portSets struct {
	sync.Mutex
	index map[PortSet]int
	list  []PortSet
}

func newWidener(r *lft.Routing) *widener {
	f := r.Fabric
	w := &widener{Routing: r, lanes: newLanes(r), plft: NewPLFT(r.Tables), sets: make([]portSets, f.NumSwitches())}
	w.at = slices.Repeat([]int32{-1}, int(f.PortBase(fabric.NodeID(f.NumSwitches()))))
	for _, s := range f.Switches() {
		w.first = append(w.first, int32(len(w.to)))
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			w.at[p] = int32(len(w.to))
			w.port, w.from, w.to, w.nums = append(w.port, p), append(w.from, s), append(w.to, to[i]), append(w.nums, f.Num(p))
		}
		w.sets[s].index = map[PortSet]int{}
	}
	w.first = append(w.first, int32(len(w.to)))
	for _, p := range w.port {
		w.back = append(w.back, w.at[f.Peer(p)])
	}
	lids := make([][]fabric.LID, f.NumSwitches())
	for lid, end := range f.LIDPorts() {
		last := f.Attachment(end)
		if last == fabric.NoPort {
			continue
		}
		if s := f.Owner(last); r.Tables.Row(s)[lid] == f.Num(last) {
			lids[s] = append(lids[s], fabric.LID(lid))
		}
	}
	for s, list := range lids {
		if len(list) > 0 {
			w.roots = append(w.roots, root{s: fabric.NodeID(s), lids: list, split: w.several})
		}
	}
	w.turns = newTurns(&w.channels, w.lanes.vls)
	w.number = make([]int32, w.numNodes())
	return w
}

func (w *widener) numNodes() int { return len(w.to) * w.lanes.vls }

// upDownKeys returns keys by node that climb along up*/down* paths: those of channels that go
// up, the highest switches last, then those of channels that go down. Without an order all keys
// are 0.
func (w *widener) upDownKeys() []int32 {
	keys := make([]int32, w.numNodes())
	if w.Order == nil {
		return keys
	}
	n := int32(w.Fabric.NumSwitches())
	for node := range keys {
		c := node / w.lanes.vls
		if to := w.Order[w.to[c]]; to < w.Order[w.from[c]] {
			keys[node] = n - 1 - to
		} else {
			keys[node] = n + to
		}
	}
	return keys
}

// setOrder numbers the nodes by their place in order.
func (w *widener) setOrder(order []int32) {
	for i, node := range order {
		w.number[node] = int32(i)
	}
	w.order = graph.NewOrder(order)
}

// reset removes all groups, and marks the LIDs of each root to be taken one by one.
func (w *widener) reset() {
	for i := range w.plft.choice {
		w.plft.choice[i] = noGroup
	}
	for i := range w.roots {
		w.roots[i].split = true
	}
}

// widenAll adds the ports whose dependencies climb. It stops and returns false if static
// dependencies of one LID do not climb.
func (w *widener) widenAll(ctx context.Context) (bool, error) {
	var wrong atomic.Bool
	_, err := par.ForEachWith(ctx, 0, len(w.roots), w.newPaths, func(p *paths, i int) error {
		r := &w.roots[i]
		if wrong.Load() {
			return nil
		}
		if !w.several {
			r.left, r.split = false, true
			if p.load(r.s, r.lids) {
				left, ok := p.widenOneLane()
				r.left, r.split = left && ok, !ok
			}
		}
		if r.split {
			for i := range r.lids {
				p.load(r.s, r.lids[i:i+1])
				left, ok := p.widenOne()
				if r.left = r.left || left; !ok {
					wrong.Store(true)
				}
			}
		}
		r.left = r.left && len(w.Fabric.HostsOn(r.s)) > 0
		return nil
	})
	return !wrong.Load(), err
}

// widenOne widens a single LID; see widenOneLane.
func (p *paths) widenOne() (left, ok bool) {
	w := p.w
	if !w.several {
		return p.widenOneLane()
	}
	p.follow(func(int32, int32) {})
	left = p.tryAll(func(a, b int32) bool { return w.number[a] < w.number[b] })
	p.storeAll()
	return left, true
}

// collect fills in turns with all dependencies of the static ports and of the groups in the
// PLFT.
func (w *widener) collect(ctx context.Context) error {
	type collector struct {
		*paths
		turns turns
	}
	list, err := par.ForEachWith(ctx, 0, len(w.roots), func() collector {
		return collector{w.newPaths(), newTurns(&w.channels, w.lanes.vls)}
	}, func(c collector, i int) error {
		w.roots[i].each(func(lids []fabric.LID) {
			c.loadChoices(w.roots[i].s, lids)
			c.follow(c.turns.Add)
		})
		return nil
	})
	w.turns = newTurns(&w.channels, w.lanes.vls)
	for _, c := range list {
		w.turns.Union(&c.turns.Rows)
	}
	return err
}

// each calls visit with the LIDs that are widened together: all of them, or one at a time.
func (r *root) each(visit func(lids []fabric.LID)) {
	if !r.split {
		visit(r.lids)
		return
	}
	for i := range r.lids {
		visit(r.lids[i : i+1])
	}
}

// widenRest tries the remaining ports, which do not climb, one after the other.
func (w *widener) widenRest(ctx context.Context) error {
	if !slices.ContainsFunc(w.roots, func(r root) bool { return r.left }) {
		return nil
	}
	if err := w.collect(ctx); err != nil {
		return err
	}
	p, search := w.newPaths(), graph.NewAcyclic(&w.turns.Rows, w.order, w.turns.listBefore, searchWork)
	for i := range w.roots {
		if !w.roots[i].left {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.roots[i].each(func(lids []fabric.LID) {
			p.loadChoices(w.roots[i].s, lids)
			p.follow(func(int32, int32) {})
			p.search = search
			p.tryAll(search.Try)
			p.storeAll()
		})
	}
	return nil
}

// tables returns the tables. Groups are numbered in the order of the first LIDs that use them.
func (w *widener) tables() *Tables {
	t := &Tables{Groups: make([][]Group, w.Fabric.NumSwitches()), PLFTs: []*PLFT{w.plft}}
	par.Each(len(t.Groups), func(s int) {
		number := slices.Repeat([]int{-1}, len(w.sets[s].list))
		for lid := range w.plft.stride {
			state, group := w.plft.At(fabric.NodeID(s), fabric.LID(lid))
			if state == Static {
				continue
			}
			if number[group] < 0 {
				n := len(t.Groups[s])
				number[group] = n
				t.Groups[s] = append(t.Groups[s], Group{Number: n, Subgroups: []Subgroup{{Ports: w.sets[s].list[group]}}})
			}
			w.plft.Set(fabric.NodeID(s), fabric.LID(lid), state, number[group])
		}
	})
	return t
}

// paths is the scratch memory of a worker: the choices for some LIDs of one root.
type paths struct {
	w      *widener
	root   fabric.NodeID
	lids   []fabric.LID
	forest *lft.Forest
	// chosen marks the channels that packets may take.
	chosen []bool
	queue  []fabric.NodeID // the switches that deliver, the root first, by depth
	depth  []int32         // by switch: hops of the static path to the root, -1 for none
	low    []int32         // by switch: the lowest number of its chosen channels
	high   []int32         // by switch: the highest number of the chosen channels to it
	last   []stored        // by switch
	// carries is by switch: packets from hosts come there.
	carries []bool
	arrive  *arrivals
	search  *graph.Acyclic // tries turns that do not climb
}

// stored is a set of ports and its number.
type stored struct {
	set   PortSet
	group int
}

func (w *widener) newPaths() *paths {
	n := w.Fabric.NumSwitches()
	return &paths{
		w: w, forest: lft.NewForest(w.Fabric), chosen: make([]bool, len(w.to)), depth: make([]int32, n), low: make([]int32, n), high: make([]int32, n),
		last: make([]stored, n), carries: make([]bool, n),
	}
}

// out returns the channels of a switch: first, and one more than the last.
func (w *widener) out(s fabric.NodeID) (first, last int32) { return w.first[s], w.first[s+1] }

// load takes the static ports for LIDs of a root as the choices. It returns false if a
// switch has no path for some of them.
func (p *paths) load(root fabric.NodeID, lids []fabric.LID) bool {
	w, f := p.w, p.w.Fabric
	p.root, p.lids = root, lids
	p.forest.FindTree(w.Tables, lids[0])
	p.queue = p.forest.Order
	clear(p.chosen)
	for s := range p.depth {
		p.depth[s], p.low[s], p.high[s] = -1, math.MaxInt32, -1
	}
	p.depth[root] = 0
	for _, s := range p.queue[1:] {
		p.depth[s] = p.depth[f.PeerSwitch(p.forest.Next[s])] + 1
		row, base, ports, was := w.Tables.Row(s), f.PortBase(s), f.Node(s).NumPorts, fabric.ManagementPort
		for _, lid := range lids {
			num := row[lid]
			if num == was {
				continue
			}
			if was = num; num > ports || w.at[base+fabric.PortID(num)] < 0 {
				return false
			}
			c := w.at[base+fabric.PortID(num)]
			p.chosen[c] = true
			p.low[s] = min(p.low[s], w.number[c])
		}
	}
	return true
}

// loadChoices is load, plus the groups of the PLFT.
func (p *paths) loadChoices(root fabric.NodeID, lids []fabric.LID) {
	p.load(root, lids)
	for _, s := range p.queue[1:] {
		if _, group := p.w.plft.At(s, lids[0]); group >= 0 {
			set := p.w.sets[s].list[group]
			for c, end := p.w.out(s); c < end; c++ {
				p.chosen[c] = set.Has(p.w.nums[c])
			}
		}
	}
}

// isCandidate returns true if channel c is not chosen yet and leads nearer to the root.
func (p *paths) isCandidate(c int32) bool {
	to := p.depth[p.w.to[c]]
	return !p.chosen[c] && to >= 0 && to < p.depth[p.w.from[c]]
}

// widenOneLane adds the channels whose dependencies climb, at the farthest switches first, and
// stores the choices. left is true if candidates remain. It returns false early if static ports
// of the LIDs do not climb together, or their paths differ in length.
func (p *paths) widenOneLane() (left, ok bool) {
	w := p.w
	for i := len(p.queue) - 1; i > 0; i-- {
		s := p.queue[i]
		high, depth := p.high[s], p.depth[s]
		var set PortSet
		for c, end := w.out(s); c < end; c++ {
			to, number := w.to[c], w.number[c]
			switch nearer, climbs := uint32(p.depth[to]) < uint32(depth), number < p.low[to]; {
			case p.chosen[c]:
				if !climbs || p.depth[to] != depth-1 {
					return left, false
				}
			case !nearer:
				continue
			case !climbs || number <= high:
				left = true
				continue
			}
			set.Add(w.nums[c])
			p.high[to] = max(p.high[to], number)
		}
		p.store(s, set)
	}
	return left, true
}

// follow sends packets from all switches by the choices, and calls visit for each dependency.
func (p *paths) follow(visit func(a, b int32)) {
	p.arrive = newArrivals(p.arrive, p)
	p.arrive.seed(func(a, b int32) bool {
		visit(a, b)
		return true
	})
}

// tryAll tries all candidates, those of the farthest switches first. turn returns true if a
// dependency is allowed. left is true if candidates remain.
func (p *paths) tryAll(turn func(a, b int32) bool) (left bool) {
	w := p.w
	for _, s := range p.queue {
		p.carries[s] = len(w.Fabric.HostsOn(s)) > 0
	}
	for i := len(p.queue) - 1; i > 0; i-- {
		s := p.queue[i]
		for c, end := w.out(s); c < end; c++ {
			if p.chosen[c] {
				p.carries[w.to[c]] = p.carries[w.to[c]] || p.carries[s]
			}
			if !p.isCandidate(c) || p.search != nil && !p.carries[s] {
				continue
			}
			fits := p.arrive.offer(c, turn)
			p.chosen[c] = fits
			p.carries[w.to[c]] = p.carries[w.to[c]] || fits && p.carries[s]
			if p.search != nil && !fits {
				p.search.Undo()
			} else if p.search != nil {
				p.search.Keep()
			}
			left = left || !fits
		}
	}
	return left
}

// storeAll writes the choices into the PLFT.
func (p *paths) storeAll() {
	for _, s := range p.queue[1:] {
		var set PortSet
		for c, end := p.w.out(s); c < end; c++ {
			if p.chosen[c] {
				set.Add(p.w.nums[c])
			}
		}
		p.store(s, set)
	}
}

// store writes the choices of a switch into the PLFT. A single port gets no group.
func (p *paths) store(s fabric.NodeID, set PortSet) {
	entry := pack(Static, -1)
	if set.Len() > 1 {
		x := &p.last[s]
		if x.set != set {
			x.set, x.group = set, p.w.sets[s].find(set)
		}
		entry = pack(Free, x.group)
	}
	row := p.w.plft.Row(s)
	for _, lid := range p.lids {
		row[lid] = entry
	}
}

// find returns the number of a set. A new set gets the next number.
func (x *portSets) find(set PortSet) int {
	x.Lock()
	defer x.Unlock()
	i, ok := x.index[set]
	if !ok {
		i = len(x.list)
		x.index[set] = i
		x.list = append(x.list, set)
	}
	return i
}
