package updown

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// score says how good an order is; less is better, field by field.
type score struct {
	longer   uint64  // routes between hosts that are longer than a shortest path
	greatest uint64  // most loaded channel, by unit
	squares  float64 // sum of the squares of all loads, in routes
}

func (a score) compare(b score) int {
	return cmp.Or(cmp.Compare(a.longer, b.longer), cmp.Compare(a.greatest, b.greatest), cmp.Compare(a.squares, b.squares))
}

const (
	// routeUnit is one route in score.greatest, so that routes can be
	// divided among equal ports.
	routeUnit = 1 << 16
	// allTops is the most switches that are all tried on top. trialWork
	// bounds the channels that all trials visit together, as far as minTrials
	// and minTargets allow.
	allTops    = 64
	trialWork  = 1 << 20
	minTrials  = 8
	minTargets = 32
	// trialParts is in how many parts the targets of a trial are tried.
	trialParts = 4
)

// ChooseOrder tries orders grown from single switches and takes the best:
// first, by the routes between hosts that are longer than a shortest path;
// then by the load of the most loaded channel when every destination's
// traffic divides evenly over equal ports; then by the sum of squared loads;
// then by the GUID on top.
//
// Why single switches: in an order that grows from one switch by distance,
// every switch has an upward link towards that switch, so that the order
// needs no root in common, and whatever lies between two switches at the same
// distance can be used in both directions. Which switch is on top decides the
// rest. In a fat tree with a spine on top every other spine lies below the
// leaves: all traffic between leaves squeezes through one spine, although its
// paths are as short as any. With a leaf on top all spines lie between it and
// the other leaves, every leaf-to-leaf path of minimal length is legal, and
// spine-to-spine traffic crosses the top leaf. On a mesh a corner on top
// makes the negative-first turn model, whose legal paths are all minimal.
// The load tells these apart where path lengths do not.
//
// All switches are tried when there are at most allTops; otherwise one of
// each kind, where kinds are told apart by the number of hosts, of links, and
// the sum of distances to all others. Where that is still too much work,
// destinations and kinds are sampled.
func ChooseOrder(ctx context.Context, f *fabric.Fabric) (*Order, error) {
	d, err := chooseDirections(ctx, f)
	if err != nil {
		return nil, err
	}
	return d.order, nil
}

// chooseDirections is ChooseOrder with the directions that the order gives links.
func chooseDirections(ctx context.Context, f *fabric.Fabric) (*directions, error) {
	n := f.NumSwitches()
	if n == 0 {
		return newDirections(f, NewOrder(f, nil)), nil
	}
	dist := f.Distances()
	hosts := make([]uint64, n)
	channels := 0
	for s := range fabric.NodeID(n) {
		hosts[s] = uint64(len(f.HostsOn(s)))
		channels += len(f.Neighbors(s))
	}
	tops := tops(f, dist, hosts)
	targets := targets(hosts)
	if most := trialWork / max(1, channels*min(len(tops), minTrials)); len(targets) > max(most, minTargets) {
		targets = sample(targets, max(most, minTargets))
	}
	if most := max(trialWork/max(1, channels*len(targets)), minTrials); len(tops) > most {
		kept := make([]fabric.NodeID, most)
		for i := range kept {
			kept[i] = tops[i*(len(tops)-1)/(most-1)]
		}
		tops = kept
	}
	// There may be fewer trials than CPUs.
	parts := slices.Collect(slices.Chunk(targets, (len(targets)+trialParts-1)/trialParts))
	trials := make([]trial, len(tops))
	newPart := func() *part { return &part{flow: make([]uint64, n)} }
	_, err := par.ForEachWith(ctx, 0, len(tops)*len(parts), newPart, func(scratch *part, i int) error {
		t := &trials[i/len(parts)]
		t.begin.Do(func() {
			t.directions = newDirections(f, NewOrder(f, tops[i/len(parts):][:1]))
		})
		t.try(f, dist, hosts, parts[i%len(parts)], scratch)
		t.add(scratch)
		if int(t.tried.Add(1)) == len(parts) {
			t.judge(f)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	best := 0
	for i := range trials {
		c := trials[i].score.compare(trials[best].score)
		if c < 0 || c == 0 && tops[i] < tops[best] {
			best = i
		}
	}
	return trials[best].directions, nil
}

// trial is an order, and what came of routing along it.
type trial struct {
	begin      sync.Once
	directions *directions
	tried      atomic.Int32 // parts of the targets
	mu         sync.Mutex
	sum        part
	score      score // once all parts are tried
}

// part is what came of routing to some targets.
type part struct {
	tooLong bool     // there is no such routing
	longer  uint64   // as in score
	load    []uint64 // by PortID of switches
	flow    []uint64 // by rank: scratch
}

// add adds the results of one part of the targets, whose load is then zero or not
// its own any more.
func (t *trial) add(p *part) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.tooLong = t.sum.tooLong || p.tooLong
	t.sum.longer += p.longer
	if t.sum.load == nil {
		t.sum.load, p.load = p.load, nil
		return
	}
	for c, l := range p.load {
		t.sum.load[c] += l
	}
	clear(p.load)
}

// tops lists the switches worth trying on top, the most central first: all of
// a small fabric, one of each kind of a large one.
func tops(f *fabric.Fabric, dist *fabric.HopMatrix, hosts []uint64) []fabric.NodeID {
	n := f.NumSwitches()
	type kind struct {
		sum          uint64
		hosts, links uint64
		s            fabric.NodeID
	}
	kinds := make([]kind, n)
	for s := range kinds {
		id := fabric.NodeID(s)
		k := kind{hosts: hosts[s], s: id}
		k.sum = sum(dist.To(id))
		k.links = uint64(len(f.Neighbors(id)))
		kinds[s] = k
	}
	same := func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.sum, b.sum), cmp.Compare(a.hosts, b.hosts), cmp.Compare(a.links, b.links))
	}
	slices.SortFunc(kinds, func(a, b kind) int { return cmp.Or(same(a, b), cmp.Compare(a.s, b.s)) })
	if n > allTops {
		kinds = slices.CompactFunc(kinds, func(a, b kind) bool { return same(a, b) == 0 })
	}
	list := make([]fabric.NodeID, len(kinds))
	for i, k := range kinds {
		list[i] = k.s
	}
	return list
}

// sum adds up distances, eight at a time.
func sum(dist []uint8) (s uint64) {
	const lanes = 0x00ff00ff00ff00ff // of 16 bits
	for len(dist) >= 8 {
		part := dist[:min(len(dist), 8*128)&^7] // so that no lane overflows
		dist = dist[len(part):]
		four := uint64(0)
		for ; len(part) > 0; part = part[8:] {
			x := binary.LittleEndian.Uint64(part)
			four += x&lanes + x>>8&lanes
		}
		for ; four > 0; four >>= 16 {
			s += four & 0xffff
		}
	}
	for _, d := range dist {
		s += uint64(d)
	}
	return s
}

// targets lists the destination switches of the trials: those with hosts, any
// when no switch has hosts.
func targets(hosts []uint64) []fabric.NodeID {
	var all []fabric.NodeID
	for s, h := range hosts {
		if h > 0 {
			all = append(all, fabric.NodeID(s))
		}
	}
	if len(all) == 0 {
		for s := range hosts {
			all = append(all, fabric.NodeID(s))
		}
	}
	return all
}

// sample takes n of list at random, but the same ones every time: a stride
// would pick one column of a mesh.
func sample(list []fabric.NodeID, n int) []fabric.NodeID {
	rnd := rand.New(rand.NewPCG(uint64(len(list)), uint64(n)))
	rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:n]
}

// try routes to targets along the order, all traffic divided evenly over equal
// ports, and fills in p.
func (t *trial) try(f *fabric.Fabric, dist *fabric.HopMatrix, hosts []uint64, targets []fabric.NodeID, p *part) {
	o := t.directions.order
	x := newTree(t.directions)
	p.tooLong, p.longer = false, 0
	if p.load == nil {
		p.load = make([]uint64, f.PortBase(fabric.NodeID(f.NumSwitches())))
	}
	flow, load := p.flow, p.load
	for _, t := range targets {
		if !x.grow(t) {
			p.tooLong = true
			return
		}
		minimal := dist.To(t)
		weight := max(1, hosts[t])
		for r, s := range o.Switch {
			flow[r] = hosts[s] * weight * routeUnit
			if h := x.hops[r]; h != fabric.Unreachable && h > minimal[s] {
				p.longer += hosts[s] * weight
			}
		}
		for _, s := range x.sort.FarthestFirst(x.hops) {
			r := int32(s) // hops are by rank
			if flow[r] == 0 {
				continue
			}
			c, which, hops := x.side(r)
			to, port := c.of(r)
			if !which.known {
				*which = x.choose(to, hops, x.hops[r]-1)
			}
			some := x.index[which.from:which.to]
			if len(some) == 0 { // all
				part := flow[r] / uint64(len(to))
				for i, v := range to {
					load[port[i]] += part
					flow[v] += part
				}
				continue
			}
			part := flow[r] / uint64(len(some))
			for _, i := range some {
				load[port[i]] += part
				flow[to[i]] += part
			}
		}
	}
}

// judge fills in the score of the whole trial.
func (t *trial) judge(f *fabric.Fabric) {
	load := t.sum.load
	t.sum.load = nil
	if t.sum.tooLong {
		t.score = score{longer: math.MaxUint64}
		return
	}
	t.score.longer = t.sum.longer
	fastest := 0
	for c := range load {
		if load[c] > 0 {
			fastest = max(fastest, f.Link(fabric.PortID(c)).Mbps())
		}
	}
	for c, l := range load {
		if l == 0 {
			continue
		}
		if mbps := f.Link(fabric.PortID(c)).Mbps(); mbps > 0 {
			l = l / uint64(mbps) * uint64(fastest)
		}
		t.score.greatest = max(t.score.greatest, l)
		routes := float64(l) / routeUnit
		t.score.squares += float64(routes * routes)
	}
}

var _ lft.Engine = Engine{}
