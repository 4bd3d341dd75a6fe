package verify

import (
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
)

// TestMulticastUse has the use of multicast tables: capacity, groups with one member, masks
// without an end port.
func TestMulticastUse(t *testing.T) {
	type mask = map[[2]int][]fabric.PortNum
	through := mask{{0, 0}: {1, 5}, {1, 0}: {3, 5}}
	both := [][2]int{{0, 0}, {1, 0}}
	for _, tt := range []struct {
		name     string
		masks    mask
		members  [][2]int
		capacity []int // of the four switches
		rule     string
		count    int64
		message  string
	}{
		{"room", through, both, []int{9, 9, 3, 0}, "", 0, ""},
		{"not known", through, both, nil, "", 0, ""},
		{"nearly full", through, both, []int{9, 9, 2, 0}, "", 0, ""}, // one of two
		{"beyond", through, both, []int{9, 9, 1, 0}, MulticastBeyondCapacity, 1, "the smallest multicast table has room for 1 MLIDs, up to 0xc000: 1 MLID is beyond, the first 0xc001"},
		{"alone", mask{{0, 0}: {5}}, both[:1], nil, MulticastLoneMember, 1, `group "g" (MLID 0xc001) has one member, "host 0,0"[1]`},
		{"no end port", mask{{0, 0}: {1}, {1, 0}: {3}}, nil, nil, MulticastNoEndPort, 1, "the masks of MLID 0xc001 lead to no end port"},
		{"to a port that is down", mask{{0, 0}: {3}}, nil, nil, MulticastNoEndPort, 1, "the masks of MLID 0xc001 lead to no end port"},
		{"to a switch", mask{{0, 0}: {0}}, nil, nil, "", 0, ""},
	} {
		f, tables, mc := masked(t, 2, 2, tt.masks, tt.members, tt.members)
		r := mustCheck(t, &state.State{Fabric: f, Tables: tables, Multicast: mc, MFTCapacity: tt.capacity}, Options{})
		i := slices.IndexFunc(r.Findings, func(x Finding) bool {
			return slices.Contains([]string{MulticastBeyondCapacity, MulticastNearlyFull, MulticastNoEndPort, MulticastLoneMember}, x.Rule)
		})
		switch {
		case i < 0 && tt.rule != "" || i >= 0 && tt.rule == "":
			t.Errorf("%s: %+v", tt.name, r.Findings)
		case i >= 0 && (r.Findings[i].Rule != tt.rule || r.Findings[i].Count != tt.count || r.Findings[i].Message != tt.message):
			t.Errorf("%s: %+v", tt.name, r.Findings[i])
		}
		if full := r.Multicast.Fullest; (tt.capacity != nil) != (full != nil) || full != nil &&
			(r.Multicast.Capacity != slices.Min(tt.capacity[:3]) || full.Capacity != tt.capacity[full.MLIDs] && full.MLIDs > 1) {
			t.Errorf("%s: %+v of %d", tt.name, full, r.Multicast.Capacity)
		}
	}
	// Nine of ten MLIDs are nearly all, with masks or without; the fullest table is the one with the
	// greatest share.
	f, tables, mc := masked(t, 2, 2, through, both, both)
	for l := mft.MinMLID + 2; l < mft.MinMLID+10; l++ {
		mc.Trees = append(mc.Trees, mft.Tree{Name: "more", Group: int(l), MLID: l, Senders: mc.Trees[0].Senders[:1], Receivers: mc.Trees[0].Senders[1:]})
	}
	r := mustCheck(t, &state.State{Fabric: f, Tables: tables, Multicast: mc, MFTCapacity: []int{12, 100, 10, 0}}, Options{})
	if i := slices.IndexFunc(r.Findings, func(x Finding) bool { return x.Rule == MulticastNearlyFull }); i < 0 || r.Findings[i].Count != 9 ||
		r.Findings[i].Message != "9 MLIDs are in use of the 10 that the smallest multicast table has room for" {
		t.Errorf("%+v", r.Findings)
	}
	if full := r.Multicast.Fullest; full.Name.Text != "switch 1,0" || full.MLIDs != 1 || full.Capacity != 10 || r.Multicast.Capacity != 10 {
		t.Errorf("%+v", full)
	}
}
