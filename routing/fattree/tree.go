package fattree

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// tree is a connected part of the switches, with levels. It numbers switches by their places
// in switches, in the order of NodeIDs. It has only the cables to the next level.
type tree struct {
	f        *fabric.Fabric
	switches []fabric.NodeID
	level    []int
	byLevel  [][]int32
	ups      [][]uplink // by switch
}

// uplink is a channel to the next level.
type uplink struct {
	port, peer fabric.PortID
	to         int32
	copy       int // its number among the channels between the same two switches
}

// newTree makes the tree of a part. level and index are by NodeID; index is scratch memory.
func newTree(f *fabric.Fabric, part []fabric.NodeID, level, index []int32) *tree {
	x := &tree{f: f, switches: part, ups: make([][]uplink, len(part))}
	for u, s := range part {
		index[s] = int32(u)
		x.level = append(x.level, int(level[s]))
		for len(x.byLevel) <= int(level[s]) {
			x.byLevel = append(x.byLevel, nil)
		}
		x.byLevel[level[s]] = append(x.byLevel[level[s]], int32(u))
	}
	for u, s := range part {
		ports, to := f.SwitchLinks(s)
		for i, v := range to {
			if level[v] != level[s]+1 {
				continue
			}
			up := uplink{port: ports[i], peer: f.Peer(ports[i]), to: index[v]}
			for _, other := range x.ups[u] {
				if other.to == up.to {
					up.copy++
				}
			}
			x.ups[u] = append(x.ups[u], up)
		}
	}
	return x
}

// height returns the level of the top.
func (x *tree) height() int { return len(x.byLevel) - 1 }

// findParts joins switches by the uplinks of levels from, ..., to-1. It returns, by
// switch, the lowest switch of those that it is joined with.
func (x *tree) findParts(from, to int) []int32 {
	joined := graph.NewUnionFind[int32](len(x.switches))
	for _, list := range x.byLevel[from:to] {
		for _, u := range list {
			for _, up := range x.ups[u] {
				joined.Join(u, up.to)
			}
		}
	}
	part := make([]int32, len(x.switches))
	for u := range part {
		part[u] = joined.Find(int32(u))
	}
	return part
}
