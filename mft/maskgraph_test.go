package mft_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// FindFault tells what a flood does in old and new masks together; where it finds nothing, no flood loops or brings a
// second copy in any mixture of them, switch by switch.
func TestFindFault(t *testing.T) {
	f := newGrid(t, 3, 2).r.Fabric
	senders := slices.Clone(f.CAPorts())
	var all []fabric.PortID
	for s := range fabric.NodeID(f.NumSwitches()) {
		senders = append(senders, f.PortBase(s))
		all = slices.AppendSeq(append(all, f.PortBase(s)), f.Cabled(s))
	}
	isFaulty := func(ports []fabric.PortID) bool {
		return slices.ContainsFunc(senders, func(s fabric.PortID) bool {
			v := newFlood(f, ports, s).verdict(s, nil)
			return v == "loop" || v == "duplicate"
		})
	}
	faults, mixtures := 0, 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		draw := func() []fabric.PortID {
			return slices.DeleteFunc(slices.Clone(all), func(fabric.PortID) bool { return rnd.IntN(5) < 3 })
		}
		masks := [2][]fabric.PortID{draw(), draw()}
		both := slices.Concat(masks[0], masks[1])
		slices.Sort(both)
		both = slices.Compact(both)
		fault := mft.FindFault(f, both, senders)
		if (fault != "") != isFaulty(both) {
			t.Fatalf("seed %d: %q, and a flood disagrees", seed, fault)
		}
		if fault != "" {
			faults++
			continue
		}
		for range 8 {
			mixtures++
			turn := rnd.Uint64()
			mixed := slices.DeleteFunc(slices.Clone(both), func(p fabric.PortID) bool {
				return !slices.Contains(masks[turn>>f.Owner(p)&1], p)
			})
			if isFaulty(mixed) {
				t.Fatalf("seed %d: a mixture has a fault, and both together have none", seed)
			}
		}
	}
	if faults < 30 || mixtures < 200 {
		t.Errorf("%d faults, %d mixtures: the draw is too narrow", faults, mixtures)
	}
}
