package diff

import (
	"cmp"
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// mostAffected bounds the list of the most affected destinations. All are counted.
const mostAffected = 10

func (t *PairCounts) add(u PairCounts, times int64) {
	t.Changed += u.Changed * times
	t.Rerouted += u.Rerouted * times
	t.Lost += u.Lost * times
	t.Gained += u.Gained * times
	t.Longer += u.Longer * times
	t.Shorter += u.Shorter * times
}

// sourceGroup is the CA and router ports whose packets take the same path to any destination: they
// share a switch in the old state and a switch in the new one.
type sourceGroup struct {
	old, new fabric.NodeID // switches of the ports; NoNode for a cable to another CA
	same     bool          // the cable to the switch is the same
	ports    int64
}

// pairCounter finds the pairs that changed, destination by destination.
type pairCounter struct {
	*comparison
	groups  []sourceGroup
	groupOf []int32 // by new PortID: the group of a source, -1 for none
}

// pairWorker has what one goroutine needs to count.
type pairWorker struct {
	old, new         *lft.Forest
	oldHops, newHops []int32 // by switch: switches that packets pass, with it; 0 if lost
	same             []bool  // by switch of the new fabric: packets take the same cables in both states, if they arrive
	sum              PairCounts
	affected         []Affected
}

// comparePairs counts the affected pairs. For each destination LID it compares the trees of old and
// new paths, where each switch stands for all sources on it.
func (c *comparison) comparePairs(ctx context.Context) error {
	p := &pairCounter{comparison: c}
	p.groupSources()
	var targets []target
	d := &PairChanges{Destinations: []Affected{}}
	sources := int64(0)
	for _, g := range p.groups {
		sources += g.ports
	}
	for _, t := range c.targets {
		if t.port != fabric.NoPort && !c.New.IsSwitch(c.New.Owner(t.port)) &&
			c.New.Peer(t.port) != fabric.NoPort && c.Old.Peer(c.BackPort[t.port]) != fabric.NoPort {
			targets = append(targets, t)
			d.Compared += sources
			if p.groupOf[t.port] >= 0 {
				d.Compared--
			}
		}
	}
	c.r.Pairs = d
	m, n := p.Old.NumSwitches(), p.New.NumSwitches()
	workers, err := par.ForEachWith(ctx, 0, len(targets), func() *pairWorker {
		return &pairWorker{old: lft.NewForest(p.Old), new: lft.NewForest(p.New), oldHops: make([]int32, m), newHops: make([]int32, n), same: make([]bool, n)}
	}, func(w *pairWorker, i int) error {
		p.countPairs(w, targets[i])
		return nil
	})
	if err != nil {
		return err
	}
	for _, w := range workers {
		d.PairCounts.add(w.sum, 1)
		d.Destinations = append(d.Destinations, w.affected...)
	}
	d.AllDestinations = len(d.Destinations)
	slices.SortFunc(d.Destinations, func(a, b Affected) int {
		return cmp.Or(
			-cmp.Compare(a.Lost, b.Lost),
			-cmp.Compare(a.Changed, b.Changed),
			-cmp.Compare(a.Longer, b.Longer),
			cmp.Compare(a.LID, b.LID),
		)
	})
	d.Destinations = slices.Clip(d.Destinations[:min(mostAffected, len(d.Destinations))])
	return nil
}

func (p *pairCounter) groupSources() {
	p.groupOf = slices.Repeat([]int32{-1}, p.New.NumPorts())
	known := map[sourceGroup]int32{}
	for i, x := range p.New.CAPorts() {
		was := p.BackPort[x]
		if was == fabric.NoPort || p.Old.Peer(was) == fabric.NoPort {
			continue
		}
		g := sourceGroup{old: fabric.NoNode, new: p.New.CASwitches()[i], same: p.SameCable(was, x)}
		if s := p.Old.Owner(p.Old.Peer(was)); p.Old.IsSwitch(s) {
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

func (p *pairCounter) countPairs(w *pairWorker, t target) {
	countHops(p.Old, p.a.Tables, t.old, w.old, w.oldHops)
	countHops(p.New, p.b.Tables, t.new, w.new, w.newHops)
	p.findSamePaths(w, t)
	var n PairCounts
	for k, g := range p.groups {
		if p.groupOf[t.port] == int32(k) {
			g.ports-- // a port sends nothing to itself
		}
		n.add(classifyPair(w, g), g.ports)
	}
	if n.Changed > 0 {
		w.sum.add(n, 1)
		w.affected = append(w.affected, Affected{portRef(p.New, t.port), t.new, n})
	}
}

// classifyPair returns what became of a pair of one port of g and the destination in w.
func classifyPair(w *pairWorker, g sourceGroup) (one PairCounts) {
	// As in verify, a CA that is cabled to another one reaches no other port.
	var old, new int32
	if g.old != fabric.NoNode {
		old = w.oldHops[g.old]
	}
	if g.new != fabric.NoNode {
		new = w.newHops[g.new]
	}
	switch {
	case old == 0 && new == 0 || old > 0 && new > 0 && g.same && w.same[g.new]:
		return one
	case old == 0:
		one.Gained = 1
	case new == 0:
		one.Lost = 1
	case new > old:
		one.Rerouted, one.Longer = 1, 1
	case new < old:
		one.Rerouted, one.Shorter = 1, 1
	default:
		one.Rerouted = 1
	}
	one.Changed = 1
	return one
}

// countHops sets hops for packets to LID l; see pairWorker.
func countHops(f *fabric.Fabric, t *lft.Tables, l fabric.LID, forest *lft.Forest, hops []int32) {
	clear(hops)
	forest.Order = forest.Order[:0]
	if l <= t.MaxLID() {
		forest.FindTree(t, l)
	}
	for i, s := range forest.Order {
		hops[s] = 1
		if i > 0 {
			hops[s] += hops[f.PeerSwitch(forest.Next[s])]
		}
	}
}

// findSamePaths sets w.same. This is right only for switches from which packets arrive in both
// states.
func (p *pairCounter) findSamePaths(w *pairWorker, t target) {
	for i, s := range w.new.Order {
		out := p.New.Peer(t.port)
		if i > 0 {
			out = w.new.Next[s]
		}
		before := p.Back[s]
		w.same[s] = before != fabric.NoNode && lft.Entry(p.a.Tables.Row(before), t.old) == p.New.Num(out) && p.SameCable(p.BackPort[out], out) &&
			(i == 0 || w.same[p.New.PeerSwitch(out)])
	}
}
