package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/traffic"
)

// Pattern tells which hosts send to which; the zero value is Uniform.
type Pattern struct {
	text string
	bind func(n int, seed uint64) (Receivers, error)
}

// Receivers returns the host to which host i sends its k-th message, both from 0. A result below 0,
// or i, means no message. rng is host i's.
type Receivers func(i int, k int64, rng *rand.Rand) int

// For returns the receivers among n hosts; seed determines what is random. The error tells why n
// hosts cannot use the pattern.
func (p Pattern) For(n int, seed uint64) (Receivers, error) {
	if p.bind == nil {
		p = Uniform
	}
	return p.bind(n, seed)
}

// String returns the text that ParsePattern reads.
func (p Pattern) String() string { return p.text }

// withSeed returns the pattern with a fixed seed.
func (p Pattern) withSeed(seed uint64) Pattern {
	return Pattern{fmt.Sprintf("%s:%d", p.text, seed), func(n int, _ uint64) (Receivers, error) { return p.bind(n, seed) }}
}

var (
	// Uniform sends each message to a random other host.
	Uniform = Pattern{"uniform", func(n int, _ uint64) (Receivers, error) {
		return func(i int, _ int64, rng *rand.Rand) int { return drawOther(i, n, rng) }, nil
	}}
	// Permutation has each host send to one other, and receive from one, in a random cycle through all
	// hosts.
	Permutation = Pattern{"permutation", func(n int, seed uint64) (Receivers, error) {
		to := traffic.Cycle(n, seed)
		return func(i int, _ int64, _ *rand.Rand) int { return to[i] }, nil
	}}
	// Bisection has random pairs of hosts exchange messages. If the number of hosts is odd, one sends
	// nothing. The mean bandwidth of the pairs is the effective bisection bandwidth (Hoefler,
	// Schneider and Lumsdaine, Cluster 2008).
	Bisection = Pattern{"bisection", func(n int, seed uint64) (Receivers, error) {
		order := rand.New(rand.NewPCG(seed, 0x62697365)).Perm(n)
		to := make([]int, n)
		to[order[n-1]] = order[n-1]
		for i := 0; i+1 < n; i += 2 {
			to[order[i]], to[order[i+1]] = order[i+1], order[i]
		}
		return func(i int, _ int64, _ *rand.Rand) int { return to[i] }, nil
	}}
	// AllToAll has each host send to all others in turn: first a shift by 1,
	// then by 2, and so on.
	AllToAll = Pattern{"all-to-all", func(n int, _ uint64) (Receivers, error) {
		return func(i int, k int64, _ *rand.Rand) int { return (i + 1 + int(k%int64(n-1))) % n }, nil
	}}
)

// drawOther draws one of n hosts except host i.
func drawOther(i, n int, rng *rand.Rand) int {
	d := rng.IntN(n - 1)
	if d >= i {
		d++
	}
	return d
}

// Shift has host i send to host i+by, modulo the number of hosts. It refuses a shift that makes
// hosts send to themselves.
func Shift(by int) Pattern {
	return Pattern{fmt.Sprintf("shift:%d", by), func(n int, _ uint64) (Receivers, error) {
		if by%n == 0 {
			return nil, fmt.Errorf("shift by %d among %d hosts sends nothing", by, n)
		}
		return func(i int, _ int64, _ *rand.Rand) int { return ((i+by)%n + n) % n }, nil
	}}
}

// HotSpot sends a share of all messages, 0 to 1, to one host. The rest, and all messages of that
// host, go as in Uniform.
func HotSpot(host int, share float64) Pattern {
	return Pattern{fmt.Sprintf("hot-spot:%d:%g", host, share), func(n int, _ uint64) (Receivers, error) {
		if host < 0 || host >= n || !(share >= 0 && share <= 1) {
			return nil, fmt.Errorf("hot spot at host %d with a share of %g: want one of 0 to %d and 0 to 1", host, share, n-1)
		}
		return func(i int, _ int64, rng *rand.Rand) int {
			if hot := rng.Float64() < share; hot && i != host {
				return host
			}
			return drawOther(i, n, rng)
		}, nil
	}}
}

// collective has each host send, in turn, to all receivers of its rank in an operation; a receiver
// of several units has several turns.
func collective(text string, o traffic.Operation) Pattern {
	return Pattern{text, func(n int, _ uint64) (Receivers, error) {
		p, err := o.Pattern(n)
		if err != nil {
			return nil, err
		}
		to := make([][]int, n)
		for dst := range n {
			for src, times := range p.Senders(n, dst) {
				for range times {
					to[src] = append(to[src], dst)
				}
			}
		}
		return func(i int, k int64, _ *rand.Rand) int {
			if len(to[i]) == 0 {
				return -1
			}
			return to[i][k%int64(len(to[i]))]
		}, nil
	}}
}

// ParsePattern reads "uniform", "permutation", "permutation:SEED", "bisection",
// "bisection:SEED", "shift:BY", "hot-spot:HOST:SHARE", "all-to-all" or "alltoall", and the
// other traffic.Operations. A permutation without a seed has seed 0.
func ParsePattern(text string) (Pattern, error) {
	name, rest, _ := strings.Cut(text, ":")
	seed, notSeed := strconv.ParseUint(rest, 10, 64)
	switch {
	case text == "uniform":
		return Uniform, nil
	case text == "all-to-all", text == "alltoall":
		return AllToAll, nil
	case text == "bisection":
		return Bisection, nil
	case text == "permutation", name == "permutation" && notSeed == nil:
		return Permutation.withSeed(seed), nil
	case name == "bisection" && notSeed == nil:
		return Bisection.withSeed(seed), nil
	case name == "shift":
		if by, err := strconv.ParseInt(rest, 10, 32); err == nil {
			return Shift(int(by)), nil
		}
	case name == "hot-spot":
		host, share, _ := strings.Cut(rest, ":")
		h, err1 := strconv.ParseInt(host, 10, 32)
		x, err2 := strconv.ParseFloat(share, 64)
		if err1 == nil && err2 == nil && x >= 0 && x <= 1 && h >= 0 {
			return HotSpot(int(h), x), nil
		}
	}
	o, err := traffic.Parse(text)
	switch {
	case err == nil:
		return collective(text, o), nil
	case strings.HasPrefix(text, "halo") || strings.HasPrefix(text, "alltoall:"):
		return Pattern{}, err
	}
	return Pattern{}, fmt.Errorf("pattern %q: want uniform, permutation[:SEED], bisection[:SEED], shift:BY, hot-spot:HOST:SHARE or all-to-all, or %s", text, traffic.Operations)
}

// RankOrder sorts the ports of hosts by rank.
type RankOrder func(f *fabric.Fabric, list []fabric.PortID)

// ParseRankOrder reads "listed", which keeps the order, "leaf", "random" or "random:SEED".
func ParseRankOrder(s string) (RankOrder, error) {
	name, seed, has := strings.Cut(s, ":")
	if !has {
		seed = "0"
	}
	n, err := strconv.ParseUint(seed, 10, 64)
	switch {
	case s == "listed":
		return func(*fabric.Fabric, []fabric.PortID) {}, nil
	case s == "leaf":
		return orderByLeaf, nil
	case name == "random" && err == nil:
		return func(_ *fabric.Fabric, list []fabric.PortID) {
			rng := rand.New(rand.NewPCG(n, 0x72616e6b73))
			rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		}, nil
	}
	return nil, fmt.Errorf("%q: want listed, leaf or random[:SEED]", s)
}

func orderByLeaf(f *fabric.Fabric, list []fabric.PortID) {
	leaf := func(p fabric.PortID) fabric.NodeID { return f.Owner(f.Peer(p)) }
	slices.SortStableFunc(list, func(p, q fabric.PortID) int {
		return cmp.Or(text.Natural(f.Name(leaf(p)).Text, f.Name(leaf(q)).Text), cmp.Compare(leaf(p), leaf(q)))
	})
}

// SourceCount returns, given how many hosts may send to groups, how many do. 0 is all; so is a nil
// SourceCount.
type SourceCount func(senders int) int

// ParseSources reads "all", "one", a number of hosts, or a share such as "40%".
func ParseSources(s string) (SourceCount, error) {
	share, isPercent := strings.CutSuffix(s, "%")
	percent, notPercent := strconv.ParseFloat(share, 64)
	n, notNumber := strconv.Atoi(s)
	switch {
	case s == "all":
		return func(int) int { return 0 }, nil
	case s == "one":
		return func(int) int { return 1 }, nil
	case isPercent && notPercent == nil && percent > 0 && percent <= 100:
		return func(senders int) int { return max(1, int(math.Round(percent/100*float64(senders)))) }, nil
	case notNumber == nil && n > 0:
		return func(int) int { return n }, nil
	}
	return nil, fmt.Errorf("%q: want one, all, a number of hosts, or a share such as 40%%", s)
}

// Of returns c(senders), 0 for all, or an error if that is more than senders.
func (c SourceCount) Of(senders int) (int, error) {
	n := 0
	if c != nil {
		n = c(senders)
	}
	if n > senders {
		return 0, fmt.Errorf("%d of %s that may send to groups", n, text.CountGrouped(senders, "host", "hosts"))
	}
	return n, nil
}

// CountSenders counts the ports that may send to a group in which another port receives.
func CountSenders(trees []mft.Tree) int {
	senders := map[fabric.PortID]bool{}
	for i := range trees {
		for _, p := range trees[i].Senders {
			if reachesOther(&trees[i], p) {
				senders[p] = true
			}
		}
	}
	return len(senders)
}

// reachesOther returns true if a tree has a receiver besides port p.
func reachesOther(t *mft.Tree, p fabric.PortID) bool {
	return len(t.Receivers) > 1 || len(t.Receivers) == 1 && t.Receivers[0] != p
}
