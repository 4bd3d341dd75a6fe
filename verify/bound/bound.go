// Package bound proves lower bounds of the greatest relative load that forwarding tables
// put on a cable between switches. It says how much better tables could be, and knows no
// engine. It makes no promise to other modules.
//
// # What is bounded
//
// The traffic is one route from each CA or router port to each LID of another one. The load
// of a channel, which is one direction of a cable between two switches, is the number of
// routes on it. Its relative load is that times the rate of the fastest channel, over its own
// rate: as many routes take that time on the fastest cable. A rate that is not known counts as
// the commonest. Tables that deliver all pairs have a greatest relative load. A bound is a
// number that it cannot be below.
//
// # The theorem
//
// Give each channel c a length l(c) of 0 or more. Choose some switches with hosts, the
// sources, and a unit g of 1 or more. Let h(s) be the hosts of source s, D(t) the LIDs of the
// hosts on switch t, and dist(s, t) the least length of a path from s to t that the tables may
// take. Let r(c) be the rate of channel c, and F the fastest rate. With
//
//	N    = sum over sources s and switches t of g floor(h(s) / g) D(t) dist(s, t)
//	C(L) = sum over channels c of l(c) g floor(L r(c) / (g F))
//
// no tables have a greatest relative load of L unless C(L) >= N.
//
// Proof. A switch has one output port for a LID, so that the h(s) routes from the hosts of s
// to a LID take the same channels. Count g floor(h(s) / g) of them. Then the counted routes
// x(c) on channel c are a multiple of g, and no more than its load, which is at most
// L r(c) / F. So x(c) <= g floor(L r(c) / (g F)), and the sum of l(c) x(c) is at most C(L).
// The same sum, route by route, is the sum of the lengths of the paths of the counted routes,
// which is at least N.
//
// C does not fall as L grows, so there is a least L with C(L) >= N: that is the bound. It is a
// rational number, because C changes only where some L r(c) / (g F) is an integer. All numbers
// are integers, lengths too, and no proof rests on floating point. Any lengths prove a bound;
// rounding them may make it worse, and never wrong.
//
// Or there is one source, a gate, which need not have hosts. Then h(s) is, for each t, the hosts that
// reach t through s alone: those of s, and those that are not joined to t without s. Their routes to a
// LID leave s by one port and go on together, and the proof is the same.
//
// Without a unit routes may be divided at will. N counts h(s) for each source, C(L) is the sum
// of l(c) L r(c) / F, and the bound is F N over the sum of l(c) r(c). By linear programming
// duality the best lengths then give the least greatest relative load of a fractional
// multicommodity flow: no bound for divisible routes is better.
//
// # Legal ports
//
// An up*/down* engine has an order of the switches; a channel goes up if it leads to a switch that
// comes before its own in the order, else down. Distances from a switch t grow from 0 on. A switch
// that has none yet gets d + 1 if it has a way down, a channel down to a switch of distance d that only
// sends down, or a way up, a channel up to any switch of distance d. It only sends down if it has
// a way down, and either no way up or a neighbour above whose distance is greater than its own; t only
// sends down, too. Legal are ways down, and ways up of switches that do not only send down: the
// order alone says which ports are legal. With dist over paths of legal ports
// the theorem bounds the tables that keep to them, and its proof is the same.
//
// # What it contains
//
// A cut has length 1 on the channels that leave a set of switches, and 0 elsewhere; with the
// switches of the set as sources N is their hosts times the LIDs beyond. A single leaf with h
// hosts and k cables sends to D LIDs beyond by k ports in whole lumps of h routes: the unit h
// gives h ceil(D / k). Cuts of single switches, pods, planes, islands, groups and the first
// switches are tried, and lengths are sought by multiplicative weights, see [Options].
package bound

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// Paths is a set of paths that tables may take.
type Paths uint8

// The kinds of paths.
const (
	AnyPaths      Paths = iota // whatever joins two switches
	ShortestPaths              // those with the fewest channels
	LegalPaths                 // those over the legal ports of an order, see LegalPorts
)

var pathNames = [...]string{AnyPaths: "any", ShortestPaths: "shortest", LegalPaths: "legal"}

// String is the word for p in certificates.
func (p Paths) String() string { return pathNames[p] }

// network is a fabric's switches, the channels between them and the traffic, in flat tables.
type network struct {
	f       *fabric.Fabric
	hosts   []int64         // by switch: CA and router ports
	lids    []int64         // by switch: their LIDs
	targets []fabric.NodeID // switches with LIDs
	first   []int32         // by switch: its first channel, and one more
	port    []fabric.PortID // by channel: the port that it leaves
	from    []fabric.NodeID // by channel
	to      []fabric.NodeID // by channel
	back    []int32         // by channel: the other direction of its cable
	rate    []int64         // by channel
	fastest int64           // rate
	rates   []int64         // that occur, ascending
	part    []int32         // by switch: its part of the fabric, by the cables
	whole   []sum           // by part
}

func newNetwork(f *fabric.Fabric) *network {
	n := f.NumSwitches()
	w := &network{f: f, first: make([]int32, 1, n+1)}
	w.hosts, w.lids = traffic(f)
	for s := range fabric.NodeID(n) {
		if w.lids[s] > 0 {
			w.targets = append(w.targets, s)
		}
		ports, to := f.SwitchLinks(s)
		w.port, w.to = append(w.port, ports...), append(w.to, to...)
		w.from = append(w.from, slices.Repeat([]fabric.NodeID{s}, len(ports))...)
		w.first = append(w.first, int32(len(w.port)))
	}
	w.back = text.Each(w.port, func(p fabric.PortID) int32 { return w.channel(f.Peer(p)) })
	w.rate = Rates(f, w.port)
	w.rates = slices.Compact(slices.Sorted(slices.Values(w.rate)))
	if len(w.rates) > 0 {
		w.fastest = w.rates[len(w.rates)-1]
	}
	var parts int
	w.part, parts = graph.Components(n, f.Neighbors)
	w.whole = w.sums(&partition{of: w.part, n: parts})
	return w
}

// channel finds the channel that leaves a port.
func (w *network) channel(p fabric.PortID) int32 {
	s := w.f.Owner(p)
	i, _ := slices.BinarySearch(w.port[w.first[s]:w.first[s+1]], p)
	return w.first[s] + int32(i)
}

// partition divides the switches into classes, each of them connected.
type partition struct {
	name string  // "pod"; "" for single switches
	of   []int32 // by switch: its class
	n    int
	sums []sum // by class
}

// sum has the totals of a class of switches.
type sum struct {
	hosts   []count
	lids    int64
	part    int32   // of the fabric, by the cables
	out, in []int64 // by rate: channels that leave the class, and enter it
	// gate is the switch that all channels into the class come from, NoNode for none or several.
	gate fabric.NodeID
}

// count is how many switches have a number of hosts.
type count struct{ hosts, switches int64 }

// sumHosts is how many hosts there are in all.
func sumHosts(list []count) (sum int64) {
	for _, c := range list {
		sum += c.hosts * c.switches
	}
	return sum
}

// sums adds up the classes of a partition.
func (w *network) sums(p *partition) []sum {
	list := make([]sum, p.n)
	edges := make([]int64, 2*len(w.rates)*p.n)
	for i := range list {
		k := len(w.rates)
		list[i].out, edges = edges[:k], edges[k:]
		list[i].in, edges = edges[:k], edges[k:]
	}
	for s, class := range p.of {
		x := &list[class]
		x.part = w.part[s]
		x.lids += w.lids[s]
		if w.hosts[s] > 0 {
			x.hosts = addCount(x.hosts, count{w.hosts[s], 1})
		}
	}
	several := make([]bool, p.n)
	for i := range list {
		list[i].gate = fabric.NoNode
	}
	for c, a := range w.from {
		if from, to := p.of[a], p.of[w.to[c]]; from != to {
			i := w.rateOf(int32(c))
			list[from].out[i]++
			list[to].in[i]++
			several[to] = several[to] || list[to].gate != fabric.NoNode && list[to].gate != a
			list[to].gate = a
		}
	}
	for i := range list {
		if several[i] {
			list[i].gate = fabric.NoNode
		}
	}
	return list
}

// rateOf is the place in rates of a channel's rate.
func (w *network) rateOf(c int32) int {
	i, _ := slices.BinarySearch(w.rates, w.rate[c])
	return i
}

// addCount adds to a list by hosts, ascending.
func addCount(list []count, c count) []count {
	i, ok := slices.BinarySearchFunc(list, c, func(a, b count) int { return int(a.hosts - b.hosts) })
	if ok {
		list[i].switches += c.switches
		return list
	}
	return slices.Insert(list, i, c)
}

// traffic counts by switch the CA and router ports, and their LIDs. In a fabric in which
// no such port has a LID each counts as one that has 1, as LIDs will be assigned.
func traffic(f *fabric.Fabric) (hosts, lids []int64) {
	n := f.NumSwitches()
	hosts, lids = make([]int64, n), make([]int64, n)
	assigned := slices.ContainsFunc(f.CAPorts(), func(p fabric.PortID) bool { return f.LID(p) != 0 })
	for s := range hosts {
		for _, p := range f.HostsOn(fabric.NodeID(s)) {
			hosts[s]++
			if !assigned || f.LID(p) != 0 {
				lids[s] += 1 << f.LMC(p)
			}
		}
	}
	return hosts, lids
}

// Rates is the data rate in Mbit/s of each of some channels between switches. Unknown rates
// count as the commonest, of equally common ones as the highest; all are 1 when none is known.
func Rates(f *fabric.Fabric, channels []fabric.PortID) []int64 {
	unknown := max(1, commonestRate(f, channels))
	return text.Each(channels, func(p fabric.PortID) int64 { return cmp.Or(int64(f.Link(p).Mbps()), unknown) })
}

// commonestRate is the data rate in Mbit/s that most of some channels have, of equally common ones
// the highest; 0 when none is known.
func commonestRate(f *fabric.Fabric, channels []fabric.PortID) (commonest int64) {
	count := make(map[int64]int)
	for _, p := range channels {
		count[int64(f.Link(p).Mbps())]++
	}
	count[0] = 0 // not known
	for r, n := range count {
		if cmp.Or(cmp.Compare(n, count[commonest]), cmp.Compare(r, commonest)) > 0 {
			commonest = r
		}
	}
	return commonest
}

// Scale is the unit of relative loads: routes on a cable of one rate. Loads of two fabrics, or of
// one before and after a change, can be compared only on the same scale, since the fabrics may have
// different fastest cables.
type Scale struct {
	Fastest fabric.Link // zero where no rate is known
	Unknown int64       // what a rate counts as that is not known, in Mbit/s; 0 where no rate is known
	Differ  bool        // the fabric has cables of several rates
}

// ScaleOf is the scale of a fabric's relative loads: its fastest cable between switches, and the
// commonest rate of these, as of Rates.
func ScaleOf(f *fabric.Fabric) Scale {
	var s Scale
	channels := f.Channels()
	for _, p := range channels {
		l, fastest := f.Link(p), s.Fastest.Mbps()
		s.Differ = s.Differ || l.Mbps() > 0 && fastest > 0 && l.Mbps() != fastest
		if l.Mbps() > fastest {
			s.Fastest = l
		}
	}
	if s.Unknown = int64(s.Fastest.Mbps()); s.Differ {
		s.Unknown = commonestRate(f, channels)
	}
	return s
}

// Or is s, or another scale where s knows no rate.
func (s Scale) Or(other Scale) Scale {
	if s.Unknown == 0 {
		return other
	}
	return s
}

// Load is the relative load of routes on a cable: as many routes take that time on a cable of s.Fastest.
func (s Scale) Load(routes int64, l fabric.Link) float64 {
	rate := cmp.Or(int64(l.Mbps()), s.Unknown)
	if s.Unknown == 0 || rate == 0 {
		return float64(routes)
	}
	return float64(routes) * float64(s.Fastest.Mbps()) / float64(rate)
}

// Digest names what a bound is about: switches with their hosts and LIDs, and the channels
// between them with their rates. It is the SHA-256 of these in the order of NodeIDs and port
// numbers: of each switch the GUID, the number of hosts and of their LIDs, and of channels, and
// of each channel its port number, the switch that it leads to and its rate; the GUID and rates
// in 8 bytes, the others in 4, port numbers in 1, in big-endian order. Names, LIDs and the
// cables of hosts may change.
func Digest(f *fabric.Fabric) [sha256.Size]byte {
	var b []byte
	hosts, lids := traffic(f)
	rate := Rates(f, f.Channels())
	at := 0
	for s := range hosts {
		ports, to := f.SwitchLinks(fabric.NodeID(s))
		b = binary.BigEndian.AppendUint64(b, uint64(f.Node(fabric.NodeID(s)).GUID))
		for _, n := range []int64{hosts[s], lids[s], int64(len(ports))} {
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		}
		for k, p := range ports {
			b = binary.BigEndian.AppendUint32(append(b, byte(f.Num(p))), uint32(to[k]))
			b = binary.BigEndian.AppendUint64(b, uint64(rate[at]))
			at++
		}
	}
	return sha256.Sum256(b)
}

// least is the least L with C(L) >= need: the bound of the theorem, over one length for each
// rate, the sum of its channels' lengths. It is 0 for need 0. Some length is more than 0.
func (w *network) least(need *big.Int, length []int64, unit int64) *big.Rat {
	if unit == 0 {
		sum := new(big.Int)
		for i, l := range length {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(l), big.NewInt(w.rates[i])))
		}
		return new(big.Rat).SetFrac(new(big.Int).Mul(need, big.NewInt(w.fastest)), sum)
	}
	var best *big.Rat
	for i, r := range w.rates {
		if length[i] == 0 {
			continue
		}
		// L is k lumps on channels of rate r: the least k that does.
		holds := func(k *big.Int) bool {
			sum, x := new(big.Int), new(big.Int)
			for j, l := range length {
				x.Div(x.Mul(k, big.NewInt(w.rates[j])), big.NewInt(r))
				sum.Add(sum, x.Mul(x, big.NewInt(l)))
			}
			return sum.Mul(sum, big.NewInt(unit)).Cmp(need) >= 0
		}
		low, high := new(big.Int), big.NewInt(1)
		for !holds(high) {
			high.Lsh(high, 1)
		}
		one := big.NewInt(1)
		low.Sub(new(big.Int).Rsh(high, 1), one)
		for { // low does not hold, or is below 0; high holds
			middle := new(big.Int).Add(low, high)
			middle.Rsh(middle, 1)
			if middle.Cmp(low) == 0 {
				break
			}
			if middle.Sign() >= 0 && holds(middle) {
				high = middle
			} else {
				low = middle
			}
		}
		x := new(big.Rat).SetFrac(new(big.Int).Mul(high, big.NewInt(unit*w.fastest)), big.NewInt(r))
		if best == nil || x.Cmp(best) < 0 {
			best = x
		}
	}
	return best
}
