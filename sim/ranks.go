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
)

// RankOrder is an order of ranks; the zero value is that in which they are listed.
type RankOrder struct {
	byLeaf, random bool
	seed           uint64
}

// ParseRankOrder reads "listed", "leaf", "random" or "random:SEED".
func ParseRankOrder(s string) (o RankOrder, err error) {
	name, seed, has := strings.Cut(s, ":")
	switch {
	case s == "listed":
		return o, nil
	case s == "leaf":
		return RankOrder{byLeaf: true}, nil
	case name == "random":
		o.random = true
		if has {
			o.seed, err = strconv.ParseUint(seed, 10, 64)
		}
		if err == nil {
			return o, nil
		}
	}
	return RankOrder{}, fmt.Errorf("%q: want listed, leaf or random[:SEED]", s)
}

// Sort brings the ports of hosts into the order of their ranks.
func (o RankOrder) Sort(f *fabric.Fabric, list []fabric.PortID) {
	switch {
	case o.byLeaf:
		leaf := func(p fabric.PortID) fabric.NodeID { return f.Owner(f.Peer(p)) }
		slices.SortStableFunc(list, func(p, q fabric.PortID) int {
			return cmp.Or(text.Natural(f.Name(leaf(p)).Text, f.Name(leaf(q)).Text), cmp.Compare(leaf(p), leaf(q)))
		})
	case o.random:
		rng := rand.New(rand.NewPCG(o.seed, 0x72616e6b73))
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
}

// SourceCount is how many of the hosts that may send to groups do.
type SourceCount struct {
	n       int     // 0 is all
	percent float64 // if above 0
}

// ParseSources reads "all", "one", a number of hosts, or a share such as "40%".
func ParseSources(s string) (c SourceCount, err error) {
	number, isPercent := strings.CutSuffix(s, "%")
	switch {
	case s == "all":
		return c, nil
	case s == "one":
		return SourceCount{n: 1}, nil
	case isPercent:
		c.percent, err = strconv.ParseFloat(number, 64)
		if err == nil && c.percent > 0 && c.percent <= 100 {
			return c, nil
		}
	default:
		c.n, err = strconv.Atoi(s)
		if err == nil && c.n > 0 {
			return c, nil
		}
	}
	return SourceCount{}, fmt.Errorf("%q: want one, all, a number of hosts, or a share such as 40%%", s)
}

// Of returns how many of senders that is, as Traffic.Sources has it: 0 for all.
func (c SourceCount) Of(senders int) (int, error) {
	n := c.n
	if c.percent > 0 {
		n = max(1, int(math.Round(c.percent/100*float64(senders))))
	}
	if n > senders {
		return 0, fmt.Errorf("%d of %s that may send to groups", n, text.CountGrouped(senders, "host", "hosts"))
	}
	return n, nil
}

// CountSenders returns how many ports may send to a group that another port receives.
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
