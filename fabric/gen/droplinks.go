package gen

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
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
	cables := text.Where(f.Channels(), func(p fabric.PortID) bool { return p < f.Peer(p) }) // the lower port of each
	newRand(seed).Shuffle(len(cables), func(i, j int) { cables[i], cables[j] = cables[j], cables[i] })

	joined := graph.NewUnionFind[fabric.NodeID](f.NumSwitches())
	slices.Reverse(cables)
	spare := text.Where(cables, func(p fabric.PortID) bool { return !joined.Join(f.Owner(p), f.PeerSwitch(p)) })
	if n > len(spare) {
		return nil, fmt.Errorf("%d links to drop: want at most %d, since the other %d of the %d links between switches keep them connected",
			n, len(spare), len(cables)-len(spare), len(cables))
	}
	return f.Without(spare[len(spare)-n:]...), nil
}

// Remaining returns the part of f that a subnet manager sees when cables are gone, each named by one
// of its ports: the largest connected part of what is left, of equal ones that with the
// lowest NodeID. All that is there has the LIDs and kinds that it has in f. A switch that is dead is
// one without cables.
func Remaining(f *fabric.Fabric, cables ...fabric.PortID) (*fabric.Fabric, error) {
	g := f.Without(cables...)
	var peers []fabric.NodeID
	of, count := graph.Components(g.NumNodes(), func(n fabric.NodeID) []fabric.NodeID {
		peers = peers[:0]
		for p := range g.Cabled(n) {
			peers = append(peers, g.Owner(g.Peer(p)))
		}
		return peers
	})
	parts := make([][]fabric.NodeID, count)
	for n, part := range of {
		parts[part] = append(parts[part], fabric.NodeID(n))
	}
	return g.Part(slices.MaxFunc(parts, func(a, b []fabric.NodeID) int { return len(a) - len(b) }))
}
