package bound

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// candidate has all that proves a bound: lengths, sources and a unit.
type candidate struct {
	value   *big.Rat // nil for none
	paths   Paths
	unit    int64
	sources []bool  // by switch
	gate    bool    // the only source is a gate
	rank    []int32 // by switch: its place in the order, for legal paths
	length  []int64 // by channel
	words   string  // description for people
}

// improve replaces x by y if y has the greater bound.
func (x *candidate) improve(y candidate) {
	if y.value != nil && (x.value == nil || y.value.Cmp(x.value) > 0) {
		*x = y
	}
}

// maxUnits bounds the units tried for a cut, which are numbers of hosts on a switch.
const maxUnits = 16

// partitions returns the partitions whose classes' cuts are tried. A class
// is a single switch; or a part joined by channels below a level, at or
// above it, or between levels, where the level is the number of channels to
// the nearest switch with hosts; or a part joined inside a level by
// channels whose ends have at least some number of neighbors in common, as
// groups of a dragonfly or rows of a HyperX.
func (w *network) partitions() []*partition {
	n := w.f.NumSwitches()
	list := []*partition{{of: text.Numbers[int32](n), n: n}}
	level := w.levels()
	top := slices.Max(append(slices.Clip(level), 0))
	add := func(name string, joined func(a, b fabric.NodeID) bool) {
		sets := graph.NewUnionFind[fabric.NodeID](n)
		for c, a := range w.from {
			if b := w.to[c]; joined(a, b) {
				sets.Join(a, b)
			}
		}
		p := &partition{name: name, of: make([]int32, n)}
		class := make([]int32, n)
		for s := range p.of {
			root := sets.Find(fabric.NodeID(s))
			if class[root] == 0 {
				p.n++
				class[root] = int32(p.n)
			}
			p.of[s] = class[root] - 1
		}
		same := func(q *partition) bool { return slices.Equal(q.of, p.of) }
		if p.n > 1 && !slices.ContainsFunc(list, same) {
			list = append(list, p)
		}
	}
	for k := int32(1); k <= top; k++ {
		add("a pod", func(a, b fabric.NodeID) bool { return level[a] < k && level[b] < k })
		add("a plane", func(a, b fabric.NodeID) bool { return level[a] >= k && level[b] >= k })
	}
	add("an island", func(a, b fabric.NodeID) bool { return level[a] != level[b] })
	common, numbers := w.commonNeighbors(level)
	for _, n := range numbers {
		add("a group", func(a, b fabric.NodeID) bool { return common[[2]fabric.NodeID{min(a, b), max(a, b)}] >= n })
	}
	for _, p := range list {
		p.sums = w.sums(p)
	}
	return list
}

// maxGroups bounds the partitions into groups that are tried.
const maxGroups = 8

// commonNeighbors counts, for each pair of neighbors on one level, lower NodeID first, the
// neighbors that they share. numbers has the maxGroups least counts, without 0, ascending.
func (w *network) commonNeighbors(level []int32) (common map[[2]fabric.NodeID]int, numbers []int) {
	common = make(map[[2]fabric.NodeID]int)
	near := make([][2]fabric.NodeID, w.f.NumSwitches()) // by switch: the last pair of whose first switch it is a neighbor
	for c, a := range w.from {
		pair := [2]fabric.NodeID{a, w.to[c]}
		if pair[0] >= pair[1] || level[pair[0]] != level[pair[1]] {
			continue
		}
		if _, known := common[pair]; known {
			continue
		}
		for _, o := range w.f.Neighbors(pair[0]) {
			near[o] = pair
		}
		n := 0
		for _, o := range w.f.Neighbors(pair[1]) {
			if near[o] == pair {
				near[o], n = [2]fabric.NodeID{}, n+1 // parallel cables count once
			}
		}
		common[pair] = n
		if i, known := slices.BinarySearch(numbers, n); !known && n > 0 {
			numbers = slices.Insert(numbers, i, n)
		}
	}
	return common, numbers[:min(len(numbers), maxGroups)]
}

// levels returns, by switch, the number of channels to the nearest switch with hosts, or -1 if
// there is none.
func (w *network) levels() []int32 {
	leaves := text.Indices[fabric.NodeID](w.hosts, func(h int64) bool { return h > 0 })
	search := graph.NewSearch[fabric.NodeID](len(w.hosts))
	search.Run(w.f.Neighbors, leaves...)
	return search.Distance
}

// isTree returns true if at least nine of ten channels join different levels.
func (w *network) isTree() bool {
	level, inside := w.levels(), 0
	for c, s := range w.from {
		if level[s] == level[w.to[c]] {
			inside++
		}
	}
	return 10*inside <= len(w.from)
}

// cut is a set of channels that some routes must cross: those that leave a class of a partition or
// those that enter it, either all or only those from one switch. The routes lead from some switches
// to some LIDs.
type cut struct {
	hosts []count // on switches that send
	lids  int64   // to which they send
	rates []int64 // by rate: number of channels

	*partition               // nil for two classes: the first switches by NodeID, and the others
	class      int32         // or, if partition is nil, the last of the first switches
	in         bool          // the channels enter the class
	from       fabric.NodeID // the switch they all leave, NoNode for any
	gate       bool          // from is the only source, a gate
	paths      Paths
	apart      bool // the class is not connected: routes inside of it may take the channels, too
}

// edges returns three cuts of a class: the channels that leave it, those that enter it, and these
// again with a gate. The gate is set if all channels come from one switch and hosts beyond send.
// Only hosts and LIDs of the class's component count.
func (w *network) edges(p *partition, class int) [3]cut {
	x := &p.sums[class]
	all := &w.whole[x.part]
	out := cut{hosts: x.hosts, lids: all.lids - x.lids, rates: x.out, partition: p, class: int32(class), from: fabric.NoNode}
	in := cut{hosts: subtract(all.hosts, x.hosts), lids: x.lids, rates: x.in, partition: p, class: int32(class), in: true, from: fabric.NoNode}
	gate := in
	gate.hosts, gate.gate, gate.from = []count{{sumHosts(in.hosts), 1}}, x.gate != fabric.NoNode && len(in.hosts) > 0, x.gate
	return [3]cut{out, in, gate}
}

// greatest keeps the cut with the greatest bound of those it sees, the first among equals.
type greatest struct {
	*network
	cut   cut
	value *big.Rat // nil for none
	unit  int64
	limit float64 // value as a float
}

// see takes x if it is better; x may change afterwards.
func (g *greatest) see(x *cut) {
	if value, unit := g.bestUnit(x, &g.limit); value != nil {
		g.cut, g.value, g.unit = *x, value, unit
		g.cut.hosts, g.cut.rates = slices.Clone(x.hosts), slices.Clone(x.rates)
	}
}

// cuts calls see for the edges of all classes: those with a gate, or all others. It takes
// O(channels x partitions).
func (w *network) cuts(partitions []*partition, gates bool, see func(*cut)) {
	for _, p := range partitions {
		for class := range p.sums {
			for i, x := range w.edges(p, class) {
				if gates == x.gate && (i == 2) == gates {
					see(&x)
				}
			}
		}
	}
}

// sweep calls see for the cuts between the first switches by NodeID and the others. NodeIDs are in
// the order of GUIDs, often that of a plan. It takes O(channels), and skips fabrics of several
// components.
func (w *network) sweep(see func(*cut)) {
	if len(w.whole) != 1 {
		return
	}
	x := cut{lids: w.whole[0].lids, rates: make([]int64, len(w.rates)), from: fabric.NoNode}
	joined, parts := graph.NewUnionFind[fabric.NodeID](len(w.hosts)), 0
	for s := range len(w.hosts) - 1 {
		parts++
		if w.hosts[s] > 0 {
			x.hosts = addCount(x.hosts, count{w.hosts[s], 1})
		}
		x.class, x.lids = int32(s), x.lids-w.lids[s]
		for c := w.first[s]; c < w.first[s+1]; c++ {
			if w.to[c] < fabric.NodeID(s) { // so far it led to the others
				x.rates[w.rateOf(w.back[c])]--
				if joined.Join(w.to[c], fabric.NodeID(s)) {
					parts--
				}
			} else {
				x.rates[w.rateOf(c)]++
			}
		}
		x.apart = parts > 1
		see(&x)
	}
}

// neighbors calls see, for shortest paths, with the channels from each switch with hosts to each
// neighbor: routes between the two take no others. single is the partition into switches. It takes
// O(channels).
func (w *network) neighbors(single *partition, see func(*cut)) {
	rates := make([]int64, len(w.rates))
	for c, s := range w.from {
		t := w.to[c]
		if w.hosts[s] == 0 || w.lids[t] == 0 || slices.Contains(w.to[w.first[s]:c], t) {
			continue
		}
		clear(rates)
		for k := int32(c); k < w.first[s+1]; k++ {
			if w.to[k] == t {
				rates[w.rateOf(k)]++
			}
		}
		see(&cut{hosts: []count{{w.hosts[s], 1}}, lids: w.lids[t], rates: rates, partition: single, class: int32(t), in: true, from: s, paths: ShortestPaths})
	}
}

// bestUnit returns the greatest bound of a cut, if above limit, and the least unit that gives it,
// and raises limit to the bound. Otherwise it returns nil.
func (w *network) bestUnit(x *cut, limit *float64) (value *big.Rat, unit int64) {
	total := int64(0)
	for _, c := range x.rates {
		total += c
	}
	if x.lids == 0 || total == 0 {
		return nil, 0
	}
	for _, u := range units(x.hosts) {
		sources := int64(0)
		for _, c := range x.hosts {
			sources += c.switches * (c.hosts - c.hosts%u)
		}
		if w.carries(*limit*(1+1e-9), x.rates, u) < float64(sources*x.lids) {
			value, unit = w.least(big.NewInt(sources*x.lids), x.rates, u), u
			*limit, _ = value.Float64()
		}
	}
	return value, unit
}

// candidate returns the proof of the greatest cut, with its unit; 0 means that routes may be
// divided.
func (w *greatest) candidate() candidate {
	x, unit := &w.cut, w.unit
	if w.value == nil {
		return candidate{}
	}
	p, class := x.partition, x.class
	if p == nil {
		p, class = &partition{name: "a part", of: make([]int32, len(w.hosts))}, 0
		for s := x.class + 1; int(s) < len(p.of); s++ {
			p.of[s] = 1
		}
	}
	y := candidate{value: w.value, unit: unit, paths: x.paths, gate: x.gate, sources: make([]bool, len(w.hosts)), length: make([]int64, len(w.port))}
	part := w.part[slices.Index(p.of, class)]
	for s, h := range w.hosts {
		y.sources[s] = h >= max(1, unit) && w.part[s] == part && (p.of[s] == class) != x.in
		if x.from != fabric.NoNode {
			y.sources[s] = fabric.NodeID(s) == x.from
		}
	}
	for c, a := range w.from {
		from, to := p.of[a], p.of[w.to[c]]
		if from != to && (from == class && !x.in || to == class && x.in) && (x.from == fabric.NoNode || x.from == a) {
			y.length[c] = 1
		}
	}
	hosts := int64(0)
	for _, c := range x.hosts {
		if c.hosts >= unit {
			hosts += c.hosts * c.switches
		}
	}
	lids, cables := text.CountGrouped(x.lids, "LID", "LIDs"), w.cables(x.rates)
	switch send := text.CountGrouped(hosts, "host sends", "hosts send"); {
	case x.paths == ShortestPaths:
		y.words = fmt.Sprintf("%s: %s to the %s of its neighbor %s over %s", w.f.Name(x.from), send, lids, w.f.Name(fabric.NodeID(class)), cables)
	case x.in:
		y.words = fmt.Sprintf("%s: %s to %s over %s", w.className(p, class), text.CountGrouped(hosts, "host beyond sends", "hosts beyond send"), lids, cables)
	default:
		y.words = fmt.Sprintf("%s: %s to %s beyond over %s", w.className(p, class), send, lids, cables)
	}
	if x.gate {
		y.words += fmt.Sprintf(" from %s alone", w.f.Name(x.from))
	}
	y.words += w.lumps(&y, x.rates, hosts*x.lids)
	return y
}

// className describes the switches of a class.
func (w *network) className(p *partition, class int32) string {
	switches := text.CountIf(p.of, func(c int32) bool { return c == class })
	name := w.f.Name(fabric.NodeID(slices.Index(p.of, class))).String()
	if p.name != "" && switches > 1 {
		name = fmt.Sprintf("%s of %d switches, %s the first", p.name, switches, name)
	}
	return name
}

// cables describes the cables of a cut by their rates.
func (w *network) cables(rates []int64) string {
	total, equal := int64(0), 0.0
	for i, c := range rates {
		total += c
		equal += float64(c*w.rates[i]) / float64(w.fastest)
	}
	s := text.CountGrouped(total, "cable", "cables")
	if rates[len(rates)-1] < total {
		s += fmt.Sprintf(", as fast as %.4g of the fastest", equal)
	}
	return s
}

// lumps returns words on lumps of routes if the bound of a cut depends on them, else "".
func (w *network) lumps(x *candidate, rates []int64, need int64) string {
	if x.unit == 1 || x.value.Cmp(w.least(big.NewInt(need), rates, 1)) <= 0 {
		return ""
	}
	return fmt.Sprintf(", in lumps of %d, since a switch has one port for a LID", x.unit)
}

// carries returns C(load) of a cut, for a load a little above a value where C changes.
func (w *network) carries(load float64, rates []int64, unit int64) float64 {
	sum := 0.0
	for i, c := range rates {
		sum += float64(c*unit) * math.Floor(load*float64(w.rates[i])/float64(unit*w.fastest))
	}
	return sum
}

// subtract returns the counts of all less the counts of some.
func subtract(all, some []count) []count {
	list := slices.Clone(all)
	for _, c := range some {
		list = addCount(list, count{c.hosts, -c.switches})
	}
	return slices.DeleteFunc(list, func(c count) bool { return c.switches == 0 })
}

// units returns 1 and the commonest numbers of hosts on a switch: the units worth trying.
func units(counts []count) []int64 {
	list := []int64{1}
	common := slices.Clone(counts)
	slices.SortStableFunc(common, func(a, b count) int { return int(b.switches*b.hosts - a.switches*a.hosts) })
	for _, c := range common[:min(len(common), maxUnits)] {
		list = append(list, c.hosts)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// certificate returns a candidate's certificate.
func (w *network) certificate(x *candidate) *Certificate {
	c := &Certificate{Paths: x.paths, Unit: x.unit, Bound: x.value, Fabric: Digest(w.f)}
	if x.paths == LegalPaths {
		c.Order = make([]fabric.GUID, len(x.rank))
		for s, r := range x.rank {
			c.Order[r] = w.f.Node(fabric.NodeID(s)).GUID
		}
	}
	all := true
	for s, h := range w.hosts {
		if x.sources[s] {
			c.Sources = append(c.Sources, w.f.Node(fabric.NodeID(s)).GUID)
		} else if h > 0 {
			all = false
		}
	}
	if c.Gate = x.gate; all && !c.Gate {
		c.Sources = nil
	}
	for i, l := range x.length {
		if l > 0 {
			c.Channels = append(c.Channels, Length{w.f.Node(w.from[i]).GUID, w.f.Num(w.port[i]), l})
		}
	}
	return c
}
