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

// RankOrder brings the ports of hosts into the order of their ranks.
type RankOrder func(f *fabric.Fabric, list []fabric.PortID)

// ParseRankOrder reads "listed", which leaves ports as they are, "leaf", "random" or "random:SEED".
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

// SourceCount returns how many of the hosts that may send to groups do, as Traffic.Sources has it; nil is all.
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

// Of returns how many of senders that is.
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
