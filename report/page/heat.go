package page

import (
	"context"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// mostLeaves is the greatest number of leaves for which there is a map: it takes their square.
const mostLeaves = 2048

// heat is a leaf-to-leaf map: how the static tables route packets from the hosts of one leaf
// to those of another. Index i*len(leaves)+j is from leaf i to leaf j.
type heat struct {
	leaves []fabric.NodeID // switches with hosts, ascending
	load   []int32         // routes on the busiest link between switches on these paths
	hops   []uint16        // mean number of switches on a path, in tenths; 0 if no packet arrives
	paths  []uint16        // different paths to the LIDs of the destination
	lost   []uint16        // LIDs of the destination that packets do not reach
	lids   []uint16        // by leaf: LIDs of its hosts
}

// heat follows packets from every leaf to every LID of hosts, in a step for each switch and
// LID. It returns nil if there is no map.
func (s *scene) heat(ctx context.Context) (*heat, error) {
	f := s.Fabric
	h := &heat{leaves: text.Where(f.Switches(), func(sw fabric.NodeID) bool { return len(f.HostsOn(sw)) > 0 })}
	n := len(h.leaves)
	if s.Tables == nil || n < 2 || n > mostLeaves {
		return nil, nil
	}
	h.load, h.hops, h.paths = make([]int32, n*n), make([]uint16, n*n), make([]uint16, n*n)
	h.lost, h.lids = make([]uint16, n*n), make([]uint16, n)
	_, err := par.ForEachWith(ctx, 0, n, func() *tracer {
		return &tracer{s, lft.NewForest(f), make([]onward, f.NumSwitches())}
	}, func(t *tracer, j int) error {
		t.column(h, j)
		return nil
	})
	return h, err
}

// onward describes the path of packets from a switch to a LID.
type onward struct {
	hops int32 // switches; 0 if they do not arrive
	load int64 // of the busiest link between switches
	hash uint64
}

// tracer follows packets to one LID at a time.
type tracer struct {
	*scene
	tree *lft.Forest
	ways []onward // by switch
}

// column fills in the map for destination leaf j.
func (t *tracer) column(h *heat, j int) {
	n := len(h.leaves)
	hashes := make([][]uint64, n)
	hops := make([]int64, n)
	for _, port := range t.Fabric.HostsOn(h.leaves[j]) {
		for lid := range t.Fabric.AllLIDs(port) {
			t.follow(lid)
			h.lids[j]++
			for i, leaf := range h.leaves {
				w := t.ways[leaf]
				if w.hops == 0 {
					h.lost[i*n+j]++
					continue
				}
				hops[i] += int64(w.hops)
				hashes[i] = append(hashes[i], w.hash)
				at := &h.load[i*n+j]
				*at = max(*at, int32(min(w.load, math.MaxInt32)))
			}
		}
	}
	for i, list := range hashes {
		if len(list) == 0 {
			continue
		}
		slices.Sort(list)
		arrived := int64(len(list))
		h.hops[i*n+j] = uint16(min((10*hops[i]+arrived/2)/arrived, math.MaxUint16))
		h.paths[i*n+j] = uint16(min(len(slices.Compact(list)), math.MaxUint16))
	}
}

// follow sets ways for all switches and a LID.
func (t *tracer) follow(lid fabric.LID) {
	clear(t.ways)
	t.tree.FindTree(t.Tables, lid)
	for i, s := range t.tree.Order {
		w := onward{hops: 1, hash: 1}
		if i > 0 {
			out := t.tree.Next[s]
			w = t.ways[t.Fabric.PeerSwitch(out)]
			w = onward{w.hops + 1, max(w.load, t.routes[out]), (w.hash ^ uint64(out)) * 0x9e3779b97f4a7c15}
			w.hash ^= w.hash >> 29
		}
		t.ways[s] = w
	}
}
