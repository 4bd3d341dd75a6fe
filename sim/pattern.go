package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/traffic"
)

// Pattern is which host sends to which.
type Pattern interface {
	// To is the host, of n, that the k-th message of host i goes to, from 0. None,
	// which is -1, and i itself send nothing. rng is host i's.
	To(i int, k int64, n int, rng *rand.Rand) int
	// For is the pattern for n hosts, or what is wrong with it for n. To is
	// called of what it returns, and with the same n.
	For(n int) (Pattern, error)
	// String is the form that ParsePattern reads.
	String() string
}

// Uniform sends to all others alike.
type Uniform struct{}

// To draws another host.
func (Uniform) To(i int, _ int64, n int, rng *rand.Rand) int {
	d := rng.IntN(n - 1)
	if d >= i {
		d++
	}
	return d
}

// For is the same for any number of hosts.
func (u Uniform) For(int) (Pattern, error) { return u, nil }

// String is "uniform".
func (Uniform) String() string { return "uniform" }

// Permutation has each host send to one, and get from one: a cycle through all
// hosts, drawn by the seed, so that none sends to itself.
type Permutation struct {
	Seed uint64
	to   []int
}

// To is the next host in the cycle.
func (p Permutation) To(i int, _ int64, _ int, _ *rand.Rand) int { return p.to[i] }

// For draws the cycle.
func (p Permutation) For(n int) (Pattern, error) {
	p.to = traffic.Cycle(n, p.Seed)
	return p, nil
}

// String is "permutation:SEED".
func (p Permutation) String() string { return "permutation:" + strconv.FormatUint(p.Seed, 10) }

// Bisection has pairs of hosts exchange messages: a random half of the hosts, and each of them
// with a partner of the other half. Of an odd number one host sends nothing. The mean
// bandwidth that pairs get is the effective bisection bandwidth (Hoefler, Schneider and
// Lumsdaine, Cluster 2008).
type Bisection struct {
	Seed  uint64
	Fixed bool // Seed counts, and not that of the traffic
	to    []int32
}

// To is the partner.
func (b Bisection) To(i int, _ int64, _ int, _ *rand.Rand) int { return int(b.to[i]) }

// For draws the pairs.
func (b Bisection) For(n int) (Pattern, error) {
	rng := rand.New(rand.NewPCG(b.Seed, 0x62697365))
	b.to = make([]int32, n)
	order := rng.Perm(n)
	b.to[order[n-1]] = int32(order[n-1])
	for i := 0; i+1 < n; i += 2 {
		b.to[order[i]], b.to[order[i+1]] = int32(order[i+1]), int32(order[i])
	}
	return b, nil
}

// String is "bisection", or "bisection:SEED" where the seed is fixed.
func (b Bisection) String() string {
	if !b.Fixed {
		return "bisection"
	}
	return "bisection:" + strconv.FormatUint(b.Seed, 10)
}

// Shift has each host send to the one that is By after it, and the last ones to
// the first.
type Shift struct{ By int }

// To is that host.
func (s Shift) To(i int, _ int64, n int, _ *rand.Rand) int { return ((i+s.By)%n + n) % n }

// For refuses shifts that have all hosts send to themselves.
func (s Shift) For(n int) (Pattern, error) {
	if s.By%n == 0 {
		return nil, fmt.Errorf("shift by %d among %d hosts sends nothing", s.By, n)
	}
	return s, nil
}

// String is "shift:BY".
func (s Shift) String() string { return "shift:" + strconv.Itoa(s.By) }

// HotSpot sends a share of all messages to one host, and the others uniformly.
type HotSpot struct {
	Host  int
	Share float64 // 0 to 1
}

// To is the hot host, which itself sends uniformly, or another.
func (h HotSpot) To(i int, k int64, n int, rng *rand.Rand) int {
	if hot := rng.Float64() < h.Share; hot && i != h.Host {
		return h.Host
	}
	return Uniform{}.To(i, k, n, rng)
}

// For refuses hosts and shares that there are not.
func (h HotSpot) For(n int) (Pattern, error) {
	if h.Host < 0 || h.Host >= n || !(h.Share >= 0 && h.Share <= 1) {
		return nil, fmt.Errorf("hot spot at host %d with a share of %g: want one of 0 to %d and 0 to 1", h.Host, h.Share, n-1)
	}
	return h, nil
}

// String is "hot-spot:HOST:SHARE".
func (h HotSpot) String() string {
	return fmt.Sprintf("hot-spot:%d:%g", h.Host, h.Share)
}

// AllToAll has each host send to all others in turn, beginning with the next one:
// a shift by 1, then by 2, and so on.
type AllToAll struct{}

// To is the host that is k after the next one.
func (AllToAll) To(i int, k int64, n int, _ *rand.Rand) int {
	return (i + 1 + int(k%int64(n-1))) % n
}

// For is the same for any number of hosts.
func (a AllToAll) For(int) (Pattern, error) { return a, nil }

// String is "all-to-all".
func (AllToAll) String() string { return "all-to-all" }

// collective is a pattern of ranks: a host sends to those to which its rank sends, in turn, as often as
// the pattern has it.
type collective struct {
	text string
	// of is the pattern of n ranks, or what is wrong with it for n.
	of func(n int) (traffic.Pattern, error)
	to [][]int32
}

func (c collective) To(i int, k int64, _ int, _ *rand.Rand) int {
	if len(c.to[i]) == 0 {
		return -1
	}
	return int(c.to[i][k%int64(len(c.to[i]))])
}

// For lists the receivers of each rank.
func (c collective) For(n int) (Pattern, error) {
	p, err := c.of(n)
	if err != nil {
		return nil, err
	}
	c.to = make([][]int32, n)
	for dst := range n {
		for src, times := range p.Senders(n, dst) {
			for range times {
				c.to[src] = append(c.to[src], int32(dst))
			}
		}
	}
	return c, nil
}

func (c collective) String() string { return c.text }

// ParsePattern reads "uniform", "permutation", "permutation:SEED", "bisection",
// "bisection:SEED", "shift:BY", "hot-spot:HOST:SHARE", "all-to-all" or "alltoall", and the
// other traffic.Operations.
func ParsePattern(text string) (Pattern, error) {
	if text == "alltoall" {
		return AllToAll{}, nil
	}
	p, err := parseSimple(text)
	if err == nil {
		return p, nil
	}
	o, other := traffic.Parse(text)
	switch {
	case other != nil && (strings.HasPrefix(text, "halo") || strings.HasPrefix(text, "alltoall:")):
		return nil, other
	case other != nil:
		return nil, fmt.Errorf("%w, or %s", err, traffic.Operations)
	}
	return collective{text: text, of: o.Pattern}, nil
}

// parseSimple reads the patterns that are no collective operation.
func parseSimple(text string) (Pattern, error) {
	name, rest, has := strings.Cut(text, ":")
	bad := fmt.Errorf("pattern %q: want uniform, permutation[:SEED], bisection[:SEED], shift:BY, hot-spot:HOST:SHARE or all-to-all", text)
	switch {
	case name == "uniform" && !has:
		return Uniform{}, nil
	case name == "all-to-all" && !has:
		return AllToAll{}, nil
	case name == "permutation" && !has:
		return Permutation{}, nil
	case name == "bisection" && !has:
		return Bisection{}, nil
	case name == "permutation" || name == "bisection":
		seed, err := strconv.ParseUint(rest, 10, 64)
		if err != nil {
			return nil, bad
		}
		if name == "bisection" {
			return Bisection{Seed: seed, Fixed: true}, nil
		}
		return Permutation{Seed: seed}, nil
	case name == "shift":
		by, err := strconv.ParseInt(rest, 10, 32)
		if err != nil {
			return nil, bad
		}
		return Shift{int(by)}, nil
	case name == "hot-spot":
		host, share, _ := strings.Cut(rest, ":")
		h, err1 := strconv.ParseInt(host, 10, 32)
		x, err2 := strconv.ParseFloat(share, 64)
		if err1 != nil || err2 != nil || !(x >= 0 && x <= 1) || h < 0 {
			return nil, bad
		}
		return HotSpot{int(h), x}, nil
	}
	return nil, bad
}
