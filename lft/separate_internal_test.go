package lft

import (
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
)

// TestSeparateKeeps: separate makes the greatest load no greater and no channel idle, and its loads
// are those that the tables have.
func TestSeparateKeeps(t *testing.T) {
	tree := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 3}))(t)
	irregular := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 24, Degree: 5, Hosts: 60, Seed: 7}))(t)
	few := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 3, HostsPerLeaf: 1}))(t)
	moved := false
	for seed := range uint64(short.Of(8, 3)) {
		for _, f := range []*fabric.Fabric{tree, irregular, few} {
			f := short.Must(gen.DropLinks(f, 8, seed))(t)
			f = short.Must(AssignLIDs(f, LIDOptions{}))(t)
			ports, _ := f.SwitchLinks(fabric.NodeID(seed))
			f = f.WithLinks(map[fabric.PortID]fabric.Link{ports[0]: {Width: 1, Speed: f.Link(ports[0]).Speed}})
			newList := func() ListNextHops { return ShortestNextHops(f) }
			b := newBalancer(f, newList)
			short.Check(t, b.balance(t.Context()))
			before, most, idle := b.tables.Clone(), b.greatestLoad(), b.countIdle()
			short.Check(t, b.separate(t.Context()))
			moved = moved || !slices.Equal(before.entries, b.tables.entries)
			if b.greatestLoad() > most || b.countIdle() > idle {
				t.Errorf("seed %d: the greatest load is %d, it was %d; %d channels are idle, %d were", seed, b.greatestLoad(), most, b.countIdle(), idle)
			}
			again := newBalancer(f, newList)
			short.Check(t, again.keepRoutes(t.Context(), b.tables))
			if !slices.Equal(again.load, b.load) {
				t.Errorf("seed %d: the loads are not those of the tables", seed)
			}
		}
	}
	if !moved {
		t.Error("no routes have moved")
	}
}

// countIdle counts the channels without load.
func (b *balancer) countIdle() (n int) {
	for _, c := range b.fab.Channels() {
		if b.load[c] == 0 {
			n++
		}
	}
	return n
}
