package diff

import (
	"cmp"
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// tally counts pairs by what became of them.
type tally struct{ rerouted, lost, gained, longer, shorter int64 }

func (t *tally) add(u tally, times int64) {
	t.rerouted += u.rerouted * times
	t.lost += u.lost * times
	t.gained += u.gained * times
	t.longer += u.longer * times
	t.shorter += u.shorter * times
}

func (t *tally) changed() int64 { return t.rerouted + t.lost + t.gained }

// sourceGroup is CA and router ports whose packets take the same path to any
// destination: those of one switch, before and after.
type sourceGroup struct {
	old, new fabric.NodeID // switches; NoNode for a cable to another CA
	same     bool          // the cable to the switch is the same
	ports    int64
}

// pairCounter finds the pairs that changed, destination by destination.
type pairCounter struct {
	*comparison
	cable   []bool // by PortID of a switch of the new fabric: the cable is the same as in the old one
	still   bool   // nothing but entries can have changed: same switches, same cables
	groups  []sourceGroup
	groupOf []int32 // by new PortID: the group of a source, -1 for none
}

// pairWorker is what one goroutine counts with.
type pairWorker struct {
	old, new         []fabric.PortNum // a block of targets: columns by switch
	oldHops, newHops []int32
	same             []int8
	stack            []int32
	total            tally
	byGroup          []tally         // of each port of a group, its own LIDs included
	own              map[int32]tally // by new PortID of a source: what is about its own LIDs
	destinations     []destinationTally
}

type destinationTally struct {
	target
	tally
}

// pairs counts the pairs that are affected: for each destination LID the tree
// of paths is compared from the leaves on, and each switch stands for all
// sources that hang on it.
func (c *comparison) pairs(ctx context.Context) error {
	p := &pairCounter{comparison: c}
	p.prepare()
	var targets []target
	d := &PairChanges{Destinations: []Affected{}, Sources: []Affected{}}
	sources := int64(0)
	for _, g := range p.groups {
		sources += g.ports
	}
	for _, t := range c.targets {
		if t.port != fabric.NoPort && !c.new.IsSwitch(c.new.Owner(t.port)) &&
			c.new.Peer(t.port) != fabric.NoPort && c.old.Peer(c.backPort[t.port]) != fabric.NoPort {
			targets = append(targets, t)
			d.Compared += sources
			if p.groupOf[t.port] >= 0 {
				d.Compared--
			}
		}
	}
	d.Gone, d.New = allPairs(c.old)-d.Compared, allPairs(c.new)-d.Compared
	c.r.Pairs = d
	blocks := (len(targets) + lft.BlockSize - 1) / lft.BlockSize
	workers, err := parallel(ctx, c.opt.Workers, blocks, p.newWorker, func(w *pairWorker, b int) {
		p.block(w, targets[b*lft.BlockSize:min(len(targets), (b+1)*lft.BlockSize)])
	})
	if err != nil {
		return err
	}
	w := workers[0]
	for _, o := range workers[1:] {
		w.total.add(o.total, 1)
		for g := range w.byGroup {
			w.byGroup[g].add(o.byGroup[g], 1)
		}
		for x, t := range o.own {
			sum := w.own[x]
			sum.add(t, 1)
			w.own[x] = sum
		}
		w.destinations = append(w.destinations, o.destinations...)
	}
	t := w.total
	d.Changed, d.Rerouted, d.Lost, d.Gained, d.Longer, d.Shorter = t.changed(), t.rerouted, t.lost, t.gained, t.longer, t.shorter
	for _, t := range w.destinations {
		d.Destinations = append(d.Destinations, affected(c.new, t.port, t.new, t.tally))
	}
	for _, x := range c.new.CAPorts() {
		if g := p.groupOf[x]; g >= 0 {
			t := w.byGroup[g]
			t.add(w.own[int32(x)], -1)
			if t.changed() > 0 {
				d.Sources = append(d.Sources, affected(c.new, x, c.new.LID(x), t))
			}
		}
	}
	d.AllDestinations, d.AllSources = len(d.Destinations), len(d.Sources)
	d.Destinations = worst(d.Destinations, c.opt.Worst)
	d.Sources = worst(d.Sources, c.opt.Worst)
	return nil
}

// allPairs counts the pairs of a fabric.
func allPairs(f *fabric.Fabric) (n int64) {
	for _, x := range f.CAPorts() {
		if f.LID(x) != 0 {
			n += int64(len(f.CAPorts())-1) << f.LMC(x)
		}
	}
	return n
}

func affected(f *fabric.Fabric, x fabric.PortID, l fabric.LID, t tally) Affected {
	return Affected{
		Port: portRef(f, x), LID: l, Changed: t.changed(),
		Rerouted: t.rerouted, Lost: t.lost, Gained: t.gained, Longer: t.longer, Shorter: t.shorter,
	}
}

// worst is the first n of a list, the most affected first.
func worst(list []Affected, n int) []Affected {
	slices.SortFunc(list, func(a, b Affected) int {
		return cmp.Or(
			-cmp.Compare(a.Lost, b.Lost),
			-cmp.Compare(a.Changed, b.Changed),
			-cmp.Compare(a.Longer, b.Longer),
			cmp.Compare(a.LID, b.LID),
			cmp.Compare(a.Port.GUID, b.Port.GUID),
			cmp.Compare(a.Port.Port, b.Port.Port),
		)
	})
	return list[:min(n, len(list)):min(n, len(list))]
}

// prepare compares cables and groups the sources.
func (p *pairCounter) prepare() {
	p.cable = make([]bool, p.new.PortBase(fabric.NodeID(p.new.NumSwitches())))
	p.still = p.old.NumSwitches() == p.new.NumSwitches() && p.old.PortBase(fabric.NodeID(p.old.NumSwitches())) == fabric.PortID(len(p.cable))
	for x := range p.cable {
		was := p.backPort[x]
		p.cable[x] = was != fabric.NoPort && p.sameCable(was, fabric.PortID(x))
		p.still = p.still && p.cable[x] && was == fabric.PortID(x)
	}
	p.groupOf = make([]int32, p.new.NumPorts())
	for x := range p.groupOf {
		p.groupOf[x] = -1
	}
	known := map[sourceGroup]int32{}
	for i, x := range p.new.CAPorts() {
		was := p.backPort[x]
		if was == fabric.NoPort || p.old.Peer(was) == fabric.NoPort {
			continue
		}
		g := sourceGroup{old: fabric.NoNode, new: p.new.CASwitches()[i], same: p.sameCable(was, x)}
		if s := p.old.Owner(p.old.Peer(was)); p.old.IsSwitch(s) {
			g.old = s
		}
		k, ok := known[g]
		if !ok {
			k = int32(len(p.groups))
			known[g] = k
			p.groups = append(p.groups, g)
		}
		p.groups[k].ports++
		p.groupOf[x] = k
	}
}

func (p *pairCounter) newWorker() *pairWorker {
	m, n := p.old.NumSwitches(), p.new.NumSwitches()
	return &pairWorker{
		old: make([]fabric.PortNum, lft.BlockSize*m), new: make([]fabric.PortNum, lft.BlockSize*n),
		oldHops: make([]int32, m), newHops: make([]int32, n), same: make([]int8, n),
		byGroup: make([]tally, len(p.groups)), own: map[int32]tally{},
	}
}

// block counts the pairs of some destinations.
func (p *pairCounter) block(w *pairWorker, targets []target) {
	m, n := p.old.NumSwitches(), p.new.NumSwitches()
	for s := range m {
		row := p.a.Tables.Row(fabric.NodeID(s))
		for i := range targets {
			w.old[i*m+s] = entry(row, targets[i].old)
		}
	}
	for s := range n {
		row := p.b.Tables.Row(fabric.NodeID(s))
		for i := range targets {
			w.new[i*n+s] = entry(row, targets[i].new)
		}
	}
	for i, t := range targets {
		was, now := w.old[i*m:(i+1)*m], w.new[i*n:(i+1)*n]
		if p.still && slices.Equal(was, now) {
			continue
		}
		w.stack = hopsTo(p.old, p.backPort[t.port], was, w.oldHops, w.stack)
		w.stack = hopsTo(p.new, t.port, now, w.newHops, w.stack)
		p.samePaths(w, was, now)
		d := destinationTally{target: t}
		for k, g := range p.groups {
			one := judge(w, g)
			if one == (tally{}) {
				continue
			}
			ports := g.ports
			w.byGroup[k].add(one, 1)
			if p.groupOf[t.port] == int32(k) {
				ports--
				sum := w.own[int32(t.port)]
				sum.add(one, 1)
				w.own[int32(t.port)] = sum
			}
			d.add(one, ports)
		}
		if d.changed() > 0 {
			w.total.add(d.tally, 1)
			w.destinations = append(w.destinations, d)
		}
	}
}

// judge says what became of the pair of a port of a group and a destination.
func judge(w *pairWorker, g sourceGroup) (one tally) {
	// As in verify, a CA that is cabled to another one reaches nobody.
	var old, new int32
	if g.old != fabric.NoNode {
		old = w.oldHops[g.old]
	}
	if g.new != fabric.NoNode {
		new = w.newHops[g.new]
	}
	before, after := old > 0, new > 0
	switch {
	case !before && !after:
	case !before:
		one.gained = 1
	case !after:
		one.lost = 1
	case !g.same || w.same[g.new] != sameYes:
		one.rerouted = 1
		if new > old {
			one.longer = 1
		} else if new < old {
			one.shorter = 1
		}
	}
	return one
}

// The values of pairWorker.same.
const (
	sameUnknown int8 = iota
	samePending
	sameYes
	sameNo
)

// What hopsTo says of a switch that it has not come to yet, of one whose packets
// do not arrive, or that it is walking from, and of the destination itself.
const (
	hopsUnknown = 0
	hopsNever   = -1
	hopsDone    = -2
)

// hopsTo fills in how many switches packets pass from each switch to port dst,
// that one included, hopsNever where they do not arrive.
func hopsTo(f *fabric.Fabric, dst fabric.PortID, column []fabric.PortNum, hops, stack []int32) []int32 {
	clear(hops)
	for start := range hops {
		s := int32(start)
		h := hops[s]
		stack = stack[:0]
		for h == hopsUnknown {
			hops[s] = hopsNever // should the walk come here again
			stack = append(stack, s)
			out := way(f, fabric.NodeID(s), column[s])
			switch {
			case out == fabric.NoPort:
				h = hopsNever
			case f.Peer(out) == dst:
				h = hopsDone
			default:
				if next := f.Owner(f.Peer(out)); f.IsSwitch(next) {
					s = int32(next)
					h = hops[s]
				} else {
					h = hopsNever
				}
			}
		}
		if h == hopsDone {
			h = 0
		}
		for i := len(stack) - 1; i >= 0; i-- {
			if h >= 0 {
				h++
			}
			hops[stack[i]] = h
		}
	}
	return stack
}

// way is the port that an entry of switch s leads out by, NoPort when the
// packet is dropped or is for the switch itself.
func way(f *fabric.Fabric, s fabric.NodeID, p fabric.PortNum) fabric.PortID {
	if p == fabric.ManagementPort || p > f.Node(s).NumPorts {
		return fabric.NoPort
	}
	out := f.PortBase(s) + fabric.PortID(p)
	if f.Peer(out) == fabric.NoPort {
		return fabric.NoPort
	}
	return out
}

// samePaths finds the switches from which packets take the same cables in both
// states.
func (p *pairCounter) samePaths(w *pairWorker, was, now []fabric.PortNum) {
	clear(w.same)
	for start := range w.same {
		s := int32(start)
		v := w.same[s]
		w.stack = w.stack[:0]
		for v == sameUnknown {
			w.same[s] = samePending
			w.stack = append(w.stack, s)
			before := p.back[s]
			if before == fabric.NoNode || was[before] != now[s] {
				v = sameNo
				break
			}
			x := way(p.new, fabric.NodeID(s), now[s])
			if x == fabric.NoPort {
				v = sameYes
				if now[s] != fabric.ManagementPort && way(p.old, before, was[before]) != fabric.NoPort {
					v = sameNo
				}
				break
			}
			if !p.cable[x] {
				v = sameNo
				break
			}
			next := p.new.Owner(p.new.Peer(x))
			if !p.new.IsSwitch(next) {
				v = sameYes
				break
			}
			s = int32(next)
			v = w.same[s]
		}
		if v == samePending {
			v = sameYes
		}
		for _, s := range w.stack {
			w.same[s] = v
		}
	}
}
