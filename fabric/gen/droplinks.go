package gen

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// DropLinks removes n random cables between switches, so that
// switches that could reach each other over switches still can.
// Everything else of f stays, LIDs included. If fewer than n
// cables can go, the error states how many can.
//
// The result is as if it removed random cables one by one and
// put back each that disconnects, but takes one pass: the
// cables put back would be a spanning forest, which Kruskal's
// algorithm finds if it takes the cables in the opposite order.
func DropLinks(f *fabric.Fabric, n int, seed uint64) (*fabric.Fabric, error) {
	if n < 0 {
		return nil, fmt.Errorf("%d links to drop: want 0 or more", n)
	}
	if n == 0 {
		return f, nil
	}
	cables := text.Where(f.Channels(), func(p fabric.PortID) bool { return p < f.Peer(p) }) // by its lower port
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

// Remaining returns the part of f that a subnet manager sees
// without some cables, each named by one of its ports: the largest
// connected part; of equal ones, that with the lowest NodeID. LIDs
// and kinds stay as in f. To remove a switch, remove its cables.
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
