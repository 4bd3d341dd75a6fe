package gen

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// DropLinks takes n random cables between switches away, such that switches
// that could reach each other over switches still can. Everything else of f
// stays, LIDs included. Fewer than n such cables: an error that says how many
// can go.
//
// It is what taking one random cable after the other away and putting back
// each one that disconnects would give, in one pass: the cables that would be
// put back are a spanning forest, the one that Kruskal's algorithm finds when
// it takes the cables in the opposite order.
func DropLinks(f *fabric.Fabric, n int, seed uint64) (*fabric.Fabric, error) {
	if n < 0 {
		return nil, fmt.Errorf("%d links to drop: want 0 or more", n)
	}
	if n == 0 {
		return f, nil
	}
	var cables []fabric.PortID // the lower port of each
	for _, p := range f.Channels() {
		if p < f.Peer(p) {
			cables = append(cables, p)
		}
	}
	newRand(seed).Shuffle(len(cables), func(i, j int) { cables[i], cables[j] = cables[j], cables[i] })

	joined := graph.NewUnionFind[fabric.NodeID](f.NumSwitches())
	needed := make([]bool, len(cables))
	spare := len(cables)
	for i, p := range slices.Backward(cables) {
		if joined.Join(f.Owner(p), f.PeerSwitch(p)) {
			needed[i] = true
			spare--
		}
	}
	if n > spare {
		return nil, fmt.Errorf("%d links to drop: want at most %d, since the other %d of the %d links between switches keep them connected",
			n, spare, len(cables)-spare, len(cables))
	}
	var dropped []fabric.PortID
	for i, p := range cables {
		if !needed[i] && len(dropped) < n {
			dropped = append(dropped, p)
		}
	}
	return f.Without(dropped...), nil
}
