package myrinet

import (
	"net/netip"
	"slices"
	"testing"
)

// TestClassD is the mapping of golden G-M8, and the union of what shares a group.
func TestClassD(t *testing.T) {
	for _, tt := range []struct {
		ip   string
		want GroupID
		bad  bool
	}{
		{"224.2.1.5", 5, false}, {"239.9.9.5", 5, false}, {"224.0.0.255", Broadcast, false}, {"239.255.255.255", Broadcast, false},
		{"225.1.2.0", 0, false}, {"223.255.255.5", 0, true}, {"240.0.0.5", 0, true}, {"ff02::5", 0, true},
	} {
		got, err := GroupOf(netip.MustParseAddr(tt.ip))
		if got != tt.want || (err != nil) != tt.bad {
			t.Errorf("%s: %d, %v; want %d", tt.ip, got, err, tt.want)
		}
	}
	groups, err := MyrinetGroups([]Membership{
		{netip.MustParseAddr("224.2.1.5"), []int32{4, 1}},
		{netip.MustParseAddr("239.9.9.5"), []int32{2, 4}},
		{netip.MustParseAddr("239.9.9.255"), []int32{7}},
		{netip.MustParseAddr("239.9.9.254"), []int32{8}},
	})
	if err != nil || !slices.Equal(groups[5], []int32{1, 2, 4}) || !slices.Equal(groups[254], []int32{8}) {
		t.Errorf("groups 5: %v, 254: %v, %v", groups[5], groups[254], err)
	}
	for g, hosts := range groups {
		if g != 5 && g != 254 && hosts != nil {
			t.Errorf("group %d has %v", g, hosts)
		}
	}
	if _, err := MyrinetGroups([]Membership{{Group: netip.MustParseAddr("10.0.0.1")}}); err == nil {
		t.Error("a group that is none")
	}
}
