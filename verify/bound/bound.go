// Package bound proves lower bounds of the greatest relative load that forwarding tables put on a
// cable between switches. It shows how much better tables could be, and knows no engine. It makes
// no promise to other modules.
//
// # What is bounded
//
// The traffic is one route from each CA or router port to each LID of another one.
// The load of a channel, which is one direction of a cable between two switches, is
// the number of routes on it. Its relative load is its load, times the rate of the
// fastest channel, divided by its own rate: the number of routes that take the same
// time on the fastest cable. An unknown rate counts as the commonest. Tables that
// deliver all pairs have a greatest relative load. A bound is a number below which
// this cannot be.
//
// # The theorem
//
// Give each channel c a length l(c) of 0 or more. Choose some switches with hosts,
// the sources, and a unit g of 1 or more. Let h(s) be the hosts of source s, D(t) the
// LIDs of the hosts on switch t, and dist(s, t) the least length of a path from s to
// t that the tables may take. Let r(c) be the rate of channel c, and F the fastest
// rate. With
//
//	N    = sum over sources s and switches t of g floor(h(s) / g) D(t) dist(s, t)
//	C(L) = sum over channels c of l(c) g floor(L r(c) / (g F))
//
// no tables have a greatest relative load of L unless C(L) >= N.
//
// Proof. A switch has one output port for a LID, so the h(s) routes from the hosts of s to
// a LID take the same channels. Count g floor(h(s) / g) of them. Then the counted routes
// x(c) on channel c are a multiple of g, and no more than its load, which is at most L
// r(c) / F. So x(c) <= g floor(L r(c) / (g F)), and the sum of l(c) x(c) is at most C(L).
// The same sum is the sum of the lengths of the counted routes' paths, which is at least
// N.
//
// C does not fall as L grows, so there is a least L with C(L) >= N:
// this is the bound. It is a rational number: C changes only where
// some L r(c) / (g F) is an integer. All numbers are integers, and no
// proof rests on floating point. Any lengths prove a bound; rounding
// them may make it worse, and never wrong.
//
// Instead there may be one source, a gate, which need not have hosts. Then h(s) is, for each t, the
// hosts that reach t through s alone: those of s, and those that are not joined to t without s.
// Their routes to a LID leave s by one port and go on together, so the proof is the same.
//
// Without a unit, routes may be divided. N counts h(s) for each source, C(L) is the
// sum of l(c) L r(c) / F, and the bound is F N divided by the sum of l(c) r(c). By
// linear programming duality the best lengths then give the least greatest relative
// load of a fractional multicommodity flow: no bound for divisible routes is
// better.
//
// # Legal ports
//
// An up*/down* engine has an order of the switches. A channel goes up if it leads to a switch
// that comes before its own in the order, else down. Distances from a switch t grow from 0 on.
// A switch without a distance gets d + 1 if it has a way up, a channel up to a switch of
// distance d, or a way down, a channel down to a switch of distance d that only sends down. A
// switch only sends down if it has a way down, and either no way up or a neighbor above whose
// distance is greater than its own; t only sends down, too. The legal channels are all ways
// down, and the ways up of switches that do not only send down. So the order alone determines
// them. With dist over legal paths, the theorem bounds the tables that keep to them, and its
// proof is the same.
//
// # What it contains
//
// A cut has length 1 on the channels that leave a set of switches, and 0 elsewhere. With the
// switches of the set as sources, N is their hosts times the LIDs beyond. For example, a
// leaf with h hosts and k cables sends to D LIDs beyond by k ports, in lumps of h routes:
// the unit h gives h ceil(D / k). Cuts of single switches, pods, planes, islands, groups and
// the first switches are tried, and lengths are sought by multiplicative weights, see
// [Options].
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
	AnyPaths      Paths = iota // any paths between two switches
	ShortestPaths              // those with the fewest channels
	LegalPaths                 // those over the legal ports of an order, see LegalPorts
)

var pathNames = [...]string{AnyPaths: "any", ShortestPaths: "shortest", LegalPaths: "legal"}

// String returns the word for p in certificates.
func (p Paths) String() string { return pathNames[p] }

// network has the switches of a fabric, the channels between them and the traffic.
type network struct {
	f       *fabric.Fabric
	hosts   []int64         // by switch: its hosts, CA and router ports
	lids    []int64         // by switch: LIDs of its hosts
	targets []fabric.NodeID // switches with LIDs
	first   []int32         // by switch, and one more: its first channel
	port    []fabric.PortID // by channel: the port that it leaves
	from    []fabric.NodeID // by channel
	to      []fabric.NodeID // by channel
	back    []int32         // by channel: the other direction of its cable
	rate    []int64         // by channel
	fastest int64           // greatest rate
	rates   []int64         // all rates of channels, ascending
	part    []int32         // by switch: component of the fabric
	whole   []sum           // by component
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

// channel returns the channel that leaves port p.
func (w *network) channel(p fabric.PortID) int32 {
	s := w.f.Owner(p)
	i, _ := slices.BinarySearch(w.port[w.first[s]:w.first[s+1]], p)
	return w.first[s] + int32(i)
}

// partition divides the switches into connected classes.
type partition struct {
	name string  // "pod"; "" for single switches
	of   []int32 // by switch: its class
	n    int
	sums []sum // by class
}

// sum has the totals of one class of switches.
type sum struct {
	hosts   []count
	lids    int64
	part    int32   // component of the fabric
	out, in []int64 // by rate: channels that leave the class, and enter it
	// gate is the switch from which all channels into the class come, NoNode for none or several.
	gate fabric.NodeID
}

// count is a number of switches that have the same number of hosts.
type count struct{ hosts, switches int64 }

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

// rateOf returns the index in rates of a channel's rate.
func (w *network) rateOf(c int32) int {
	i, _ := slices.BinarySearch(w.rates, w.rate[c])
	return i
}

// addCount adds c to a list that ascends by hosts.
func addCount(list []count, c count) []count {
	i, ok := slices.BinarySearchFunc(list, c, func(a, b count) int { return int(a.hosts - b.hosts) })
	if ok {
		list[i].switches += c.switches
		return list
	}
	return slices.Insert(list, i, c)
}

// traffic counts, by switch, the CA and router ports and their LIDs. If no such port of the fabric
// has a LID, each counts with as many as its LMC gives it.
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

// Rates returns the data rate of each of some channels in Mbit/s. An unknown rate counts as the
// commonest, the highest of equally common ones; all are 1 if none is known.
func Rates(f *fabric.Fabric, channels []fabric.PortID) []int64 {
	unknown := max(1, commonestRate(f, channels))
	return text.Each(channels, func(p fabric.PortID) int64 { return cmp.Or(int64(f.Link(p).Mbps()), unknown) })
}

// commonestRate returns the data rate in Mbit/s of most of some channels, the highest of equally
// common ones; 0 if none is known.
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

// Scale is the unit of relative loads: routes on a cable of one rate. Loads of two fabrics, or
// before and after a change, can be compared only on the same scale, since the fastest cables may
// differ.
type Scale struct {
	Fastest fabric.Link // zero if no rate is known
	Unknown int64       // rate in Mbit/s that stands for unknown ones; 0 if no rate is known
	Differ  bool        // the fabric has cables of several rates
}

// ScaleOf returns the scale of a fabric's relative loads, from the fastest cable between switches
// and the commonest rate, as Rates has it.
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

// Or returns s, or other if s knows no rate.
func (s Scale) Or(other Scale) Scale {
	if s.Unknown == 0 {
		return other
	}
	return s
}

// Load returns how many routes take as long on a cable of s.Fastest as the given routes on cable l.
func (s Scale) Load(routes int64, l fabric.Link) float64 {
	rate := cmp.Or(int64(l.Mbps()), s.Unknown)
	if s.Unknown == 0 || rate == 0 {
		return float64(routes)
	}
	return float64(routes) * float64(s.Fastest.Mbps()) / float64(rate)
}

// Digest identifies what a bound depends on: switches with the numbers of their hosts and LIDs,
// and the channels between them with their rates. It is the SHA-256 of these, big-endian, in
// the order of NodeIDs and ports: for each switch its GUID in 8 bytes and its numbers of hosts,
// of their LIDs and of channels in 4 bytes each; for each channel its port in 1 byte, the
// NodeID that it leads to in 4 and its rate in 8. Names, LIDs and the cables of hosts may
// change.
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

// least returns the bound of the theorem: the least L with C(L) >= need; 0 for need 0. length has,
// for each rate, the sum of its channels' lengths; one at least is above 0. If unit is 0, routes
// may be divided.
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
		// Try those L for which a channel of rate r holds k units, for the least k with C(L) >= need.
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
		for { // low is not enough, or below 0; high is enough
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
