package mft

import (
	"fmt"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// TestTurnTree has turns that lead to a switch by a short way that passes another
// switch twice, and by a longer one that does not: from switch 0 to 1, on to 2, 3 and 1
// again, and to 4; or by 5 to 9. The tree has the longer one, and none without it.
func TestTurnTree(t *testing.T) {
	var b fabric.Builder
	for s := range 10 {
		if _, err := b.AddNode(fabric.Node{GUID: fabric.GUID(0x200 + s), Type: fabric.Switch, NumPorts: 8, Description: fmt.Sprint("s", s)}); err != nil {
			t.Fatal(err)
		}
	}
	ports := map[[2]int]fabric.PortNum{} // by switches
	used := map[int]fabric.PortNum{}
	connect := func(m, n int) {
		used[m]++
		used[n]++
		ports[[2]int{m, n}], ports[[2]int{n, m}] = used[m], used[n]
		short.Check(t, b.Connect(m, used[m], n, used[n], fabric.Link{}))
	}
	short, long := []int{0, 1, 2, 3, 1, 4}, []int{0, 5, 6, 7, 8, 9, 4}
	for _, way := range [][]int{short, long} {
		for i := 1; i < len(way); i++ {
			connect(way[i-1], way[i])
		}
	}
	var hosts []int
	for _, s := range []int{0, 4} {
		h, err := b.AddNode(fabric.Node{GUID: fabric.GUID(0x1000 + s), Type: fabric.CA, NumPorts: 1, Description: fmt.Sprint("h", s)})
		if err != nil {
			t.Fatal(err)
		}
		used[s]++
		if err := b.Connect(s, used[s], h, 1, fabric.Link{}); err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	f, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var ends []fabric.PortID
	for _, h := range hosts {
		ends = append(ends, f.Port(fabric.NodeID(h), 1))
	}
	for _, tt := range []struct {
		name  string
		ways  [][]int
		ports int // of the tree to the host on 4; 0 for none
	}{
		{"both", [][]int{short, long}, 6 + 1},
		{"long", [][]int{long}, 6 + 1},
		{"short", [][]int{short}, 0},
	} {
		set := &turnSet{words: 1, bits: make([]uint64, f.PortBase(fabric.NodeID(f.NumSwitches())))}
		for _, way := range tt.ways {
			for i := 2; i < len(way); i++ {
				c := f.Port(fabric.NodeID(way[i-2]), ports[[2]int{way[i-2], way[i-1]}])
				set.bits[c] |= 1 << ports[[2]int{way[i-1], way[i]}]
			}
		}
		w := &turnTree{turnSet: set, f: f, by: make([]fabric.PortID, f.NumSwitches()), from: make([]fabric.PortID, f.NumPorts())}
		got, reason := w.growTree(&Group{Name: "g", Receivers: ends}, ends[0])
		if len(got) != tt.ports || (reason == "") != (tt.ports > 0) {
			t.Errorf("%s: %d ports, want %d: %s", tt.name, len(got), tt.ports, reason)
		}
	}
}
