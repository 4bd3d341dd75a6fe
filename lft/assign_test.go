package lft

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// lidNode is a node of a test fabric: a switch, or a CA with one port, which
// is cabled to the switch before it.
type lidNode struct {
	ca       bool
	guid     fabric.GUID
	lid      fabric.LID
	lmc      uint8
	enhanced bool
}

// lidFabric joins the switches in a row by ports 1 and 2 and hangs each CA
// off its switch from port 3 on. CA ports have the GUID of their node plus 1.
func lidFabric(t testing.TB, nodes []lidNode) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	before, port := -1, fabric.PortNum(0)
	for _, n := range nodes {
		node := fabric.Node{GUID: n.guid, Type: fabric.CA, NumPorts: 1, Description: fmt.Sprintf("host %x", uint64(n.guid))}
		if !n.ca {
			node.Type, node.NumPorts, node.EnhancedPort0 = fabric.Switch, fabric.MaxPortNum, n.enhanced
			node.Description = fmt.Sprintf("switch %x", uint64(n.guid))
		}
		i, err := b.AddNode(node)
		must(err)
		if n.ca {
			must(b.SetPort(i, 1, 0, n.lid, n.lmc))
			port++
			must(b.Connect(before, port, i, 1, fabric.Link{}))
			continue
		}
		must(b.SetPort(i, 0, 0, n.lid, n.lmc))
		if before >= 0 {
			must(b.Connect(before, 1, i, 2, fabric.Link{}))
		}
		before, port = i, 2
	}
	f, err := b.Build()
	must(err)
	return f
}

// lidsOf gives base LID and LMC of each end port by node GUID: "12" or "12/1".
func lidsOf(f *fabric.Fabric) map[fabric.GUID]string {
	m := map[fabric.GUID]string{}
	f.EndPorts(func(p fabric.PortID) {
		s := fmt.Sprint(f.LID(p))
		if f.LMC(p) > 0 {
			s += fmt.Sprintf("/%d", f.LMC(p))
		}
		m[f.Node(f.Owner(p)).GUID] = s
	})
	return m
}

func TestAssignLIDs(t *testing.T) {
	for _, tc := range []struct {
		name  string
		nodes []lidNode
		opt   LIDOptions
		want  map[fabric.GUID]string
	}{
		{"keep fills gaps in file order",
			[]lidNode{{guid: 9, lid: 2}, {ca: true, guid: 50}, {ca: true, guid: 40, lid: 4}, {guid: 5}},
			LIDOptions{LMC: KeepLMC},
			map[fabric.GUID]string{9: "2", 50: "1", 40: "4", 5: "3"}},
		{"dense counts switches by GUID, then CAs",
			[]lidNode{{guid: 9, lid: 200}, {ca: true, guid: 50, lid: 7}, {ca: true, guid: 40}, {guid: 5}},
			LIDOptions{Policy: DenseLIDs, LMC: KeepLMC},
			map[fabric.GUID]string{5: "1", 9: "2", 40: "3", 50: "4"}},
		{"LMC is for CAs, not for switches, as in OpenSM",
			[]lidNode{{guid: 9, enhanced: true}, {ca: true, guid: 50}, {ca: true, guid: 40}, {guid: 5}},
			LIDOptions{Policy: DenseLIDs, LMC: 2},
			map[fabric.GUID]string{5: "1", 9: "2", 40: "4/2", 50: "8/2"}},
		{"lmc_esp0 is for enhanced ports 0 only",
			[]lidNode{{guid: 9, enhanced: true}, {ca: true, guid: 50}, {ca: true, guid: 40}, {guid: 5}},
			LIDOptions{Policy: DenseLIDs, LMC: 2, EnhancedPort0: true},
			map[fabric.GUID]string{5: "1", 9: "4/2", 40: "8/2", 50: "12/2"}},
		{"keep takes the LMC of the ports that have LIDs",
			[]lidNode{{guid: 9, lid: 1}, {ca: true, guid: 50, lid: 6, lmc: 1}, {ca: true, guid: 40}, {guid: 5}},
			LIDOptions{LMC: KeepLMC},
			map[fabric.GUID]string{9: "1", 50: "6/1", 40: "2/1", 5: "4"}},
		{"keep takes lmc_esp0 of the enhanced ports that have LIDs",
			[]lidNode{{guid: 9, lid: 4, lmc: 1, enhanced: true}, {ca: true, guid: 50}, {guid: 5, enhanced: true}, {guid: 6}},
			LIDOptions{LMC: KeepLMC},
			map[fabric.GUID]string{9: "4/1", 50: "2/1", 5: "6/1", 6: "1"}},
		{"a base port 0 has LMC 0, whatever the text says",
			[]lidNode{{guid: 9, lid: 4, lmc: 1}, {ca: true, guid: 50, lid: 6}},
			LIDOptions{LMC: KeepLMC},
			map[fabric.GUID]string{9: "4", 50: "6"}},
		{"another LMC keeps the LIDs that allow it",
			[]lidNode{{guid: 9, lid: 1}, {ca: true, guid: 50, lid: 8}, {ca: true, guid: 40, lid: 4}},
			LIDOptions{LMC: 2},
			map[fabric.GUID]string{9: "1", 50: "8/2", 40: "4/2"}},
		{"guid2lid overrides the topology and reserves for absent ports",
			[]lidNode{{guid: 9, lid: 3}, {ca: true, guid: 50, lid: 4}, {ca: true, guid: 40}},
			LIDOptions{LMC: KeepLMC, GUID2LID: []LIDRange{{51, 7, 7}, {0xabc, 1, 2}}},
			map[fabric.GUID]string{9: "3", 50: "7", 40: "4"}},
		{"guid2lid brings its LMC",
			[]lidNode{{guid: 9}, {ca: true, guid: 50}, {ca: true, guid: 40}},
			LIDOptions{LMC: KeepLMC, GUID2LID: []LIDRange{{9, 1, 1}, {51, 16, 19}}},
			map[fabric.GUID]string{9: "1", 50: "16/2", 40: "4/2"}},
		{"a present port has what guid2lid gives to an absent one too",
			[]lidNode{{guid: 9, lid: 1}, {ca: true, guid: 50}},
			LIDOptions{LMC: KeepLMC, GUID2LID: []LIDRange{{0xabc, 1, 2}}},
			map[fabric.GUID]string{9: "1", 50: "3"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := lidFabric(t, tc.nodes)
			before := lidsOf(f)
			g := short.Must(AssignLIDs(f, tc.opt))(t)
			if d := cmp.Diff(tc.want, lidsOf(g)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(before, lidsOf(f)); d != "" {
				t.Error("the given fabric changed: " + d)
			}
		})
	}
}

func TestAssignLIDsErrors(t *testing.T) {
	two := []lidNode{{guid: 9, lid: 3}, {ca: true, guid: 50, lid: 4}, {ca: true, guid: 40, lid: 6}}
	for _, tc := range []struct {
		name  string
		nodes []lidNode
		opt   LIDOptions
		want  string
	}{
		{"LMC", two, LIDOptions{LMC: 8}, "LMC 8: want 0 to 7"},
		{"guid2lid against the topology", two,
			LIDOptions{LMC: KeepLMC, GUID2LID: []LIDRange{{51, 6, 6}}},
			`LID 6 belongs to two ports: "host 28"[1] has 6 by the topology, "host 32"[1] has 6 by guid2lid; correct one of them, or renumber all (dense)`},
		{"guid2lid against itself", two,
			LIDOptions{LMC: KeepLMC, GUID2LID: []LIDRange{{51, 8, 9}, {41, 8, 9}}},
			`LID 8 belongs to two ports: "host 28"[1] has 8 to 9 by guid2lid, "host 32"[1] has 8 to 9 by guid2lid; correct one of them, or renumber all (dense)`},
		{"a larger LMC runs into the neighbour",
			[]lidNode{{guid: 9, lid: 5}, {ca: true, guid: 50, lid: 4}},
			LIDOptions{LMC: 1},
			`LID 5 belongs to two ports: "switch 9"[0] has 5 by the topology, "host 32"[1] has 4 to 5 by the topology; correct one of them, or renumber all (dense)`},
		{"alignment", two, LIDOptions{LMC: 2},
			`"host 28"[1] has LID 6 by the topology, which is not a multiple of 4 as LMC 2 wants; use another LMC or renumber all (dense)`},
		{"top", []lidNode{{guid: 9, lid: 1}, {ca: true, guid: 50}},
			LIDOptions{LMC: KeepLMC, GUID2LID: []LIDRange{{51, 0xbfff, 0xc000}}},
			"guid2lid gives port GUID 0x0000000000000033 the LIDs 49151 to 49152: want a range within 1 to 49151"},
		{"range", two, LIDOptions{LMC: KeepLMC, GUID2LID: []LIDRange{{51, 4, 6}}},
			`guid2lid gives "host 32"[1] the LIDs 4 to 6, 3 of them: want a power of two, at most 128`},
		{"twice", two, LIDOptions{LMC: KeepLMC, GUID2LID: []LIDRange{{51, 4, 4}, {51, 5, 5}}},
			"guid2lid lists port GUID 0x0000000000000033 twice"},
		{"ambiguous", []lidNode{{guid: 51}, {ca: true, guid: 50}},
			LIDOptions{LMC: KeepLMC, GUID2LID: []LIDRange{{51, 4, 4}}},
			`guid2lid lists port GUID 0x0000000000000033, which both "switch 33"[0] and "host 32"[1] have`},
		{"mixed LMC", []lidNode{{guid: 9}, {ca: true, guid: 50, lid: 4, lmc: 1}, {ca: true, guid: 40, lid: 6}},
			LIDOptions{LMC: KeepLMC},
			`"host 28"[1] has LMC 0 by the topology and "host 32"[1] has LMC 1 by the topology: OpenSM knows one LMC for all; say which`},
		{"two LMCs", []lidNode{{guid: 9, enhanced: true, lid: 8, lmc: 2}, {ca: true, guid: 50, lid: 4, lmc: 1}},
			LIDOptions{LMC: KeepLMC},
			"enhanced switch ports 0 have LMC 2, CA ports 1: OpenSM knows one LMC, which enhanced ports have or not; say which"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, err := AssignLIDs(lidFabric(t, tc.nodes), tc.opt)
			if err == nil {
				t.Fatalf("got LIDs %v, want an error", lidsOf(g))
			}
			if g != nil {
				t.Error("an error and a fabric")
			}
			if err.Error() != tc.want {
				t.Errorf("got  %s\nwant %s", err, tc.want)
			}
		})
	}
	_, err := AssignLIDs(lidFabric(t, two), LIDOptions{LMC: KeepLMC, GUID2LID: []LIDRange{{51, 6, 6}}})
	var conflict *LIDConflictError
	if !errors.As(err, &conflict) || conflict.LID != 6 || conflict.A == conflict.B {
		t.Errorf("%#v is no LIDConflictError about LID 6", err)
	}
}

// The largest subnet: 49,151 LIDs and not one more.
func TestAssignLIDsLimit(t *testing.T) {
	fill := func(switches, hosts int) []lidNode {
		var nodes []lidNode
		for s := range switches {
			nodes = append(nodes, lidNode{guid: fabric.GUID(0x1000 + s)})
			for h := range hosts {
				nodes = append(nodes, lidNode{ca: true, guid: fabric.GUID(0x100000 + 0x1000*s + 2*h)})
			}
		}
		return nodes
	}
	// 127 x (1 switch + 3 hosts x 128 LIDs) fits only with LIDs 1 to 127 for
	// the switches: 127 + 381 x 128 = 48,895; two runs of 128 stay free.
	f := lidFabric(t, fill(127, 3))
	g := short.Must(AssignLIDs(f, LIDOptions{Policy: DenseLIDs, LMC: 7}))(t)
	if got, want := g.MaxLID(), fabric.LID(127+381*128); got != want {
		t.Errorf("highest LID %d, want %d", got, want)
	}
	f = lidFabric(t, fill(100, 4))
	_, err := AssignLIDs(f, LIDOptions{Policy: DenseLIDs, LMC: 7})
	if want := "out of LIDs: 500 end ports want 51300 LIDs with LMC 7, and a subnet has 49151; use a smaller LMC"; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	// All LIDs reserved but one, which goes to the switch.
	f = lidFabric(t, fill(1, 1))
	_, err = AssignLIDs(f, LIDOptions{GUID2LID: []LIDRange{{0xabc, 2, fabric.MaxUnicastLID}}})
	if want := "out of LIDs: 2 end ports want 2 LIDs with LMC 0, guid2lid reserves 49150 for absent ports, and a subnet has 49151"; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestParseLIDPolicy(t *testing.T) {
	for _, p := range []LIDPolicy{KeepLIDs, DenseLIDs} {
		if q, err := ParseLIDPolicy(p.String()); q != p || err != nil {
			t.Errorf("%v reads as %v, %v", p, q, err)
		}
	}
	if _, err := ParseLIDPolicy("Keep"); err == nil || !strings.Contains(err.Error(), "keep dense") {
		t.Errorf("got %v, want an error that lists the policies", err)
	}
}

// checkLIDs holds that all ports have the LMC that they should have, keep the LIDs that
// they had, and share none. It returns the port of each LID.
func checkLIDs(rt *rapid.T, keep *fabric.Fabric, nodes []lidNode, given map[fabric.GUID]fabric.LID, lmcOf func(lidNode) uint8) map[fabric.LID]fabric.PortID {
	holder := map[fabric.LID]fabric.PortID{}
	keep.EndPorts(func(p fabric.PortID) {
		node := keep.Node(keep.Owner(p))
		l, m := keep.LID(p), keep.LMC(p)
		i := (int(node.GUID) - 8) / 2
		if node.GUID == 1 {
			i = 0
		}
		if l == 0 || m != lmcOf(nodes[i]) || int(l)%(1<<m) != 0 {
			rt.Errorf("%s has LID %d with LMC %d, want LMC %d", keep.PortName(p), l, m, lmcOf(nodes[i]))
		}
		if g := given[node.GUID]; g != 0 && g != l {
			rt.Errorf("%s had LID %d and has %d", keep.PortName(p), g, l)
		}
		for k := l; k < l+1<<m; k++ {
			if q, dup := holder[k]; dup {
				rt.Errorf("%s and %s both have LID %d", keep.PortName(p), keep.PortName(q), k)
			}
			holder[k] = p
		}
	})
	return holder
}

// checkLowestFree holds that a new LID is the lowest free one: each run below it has a LID
// of an earlier port.
func checkLowestFree(rt *rapid.T, keep *fabric.Fabric, given map[fabric.GUID]fabric.LID, holder map[fabric.LID]fabric.PortID) {
	keep.EndPorts(func(p fabric.PortID) {
		if given[keep.Node(keep.Owner(p)).GUID] != 0 {
			return
		}
		size := fabric.LID(1) << keep.LMC(p)
		for l := fabric.LID(0); l < keep.LID(p); l += size {
			free := l > 0
			for k := max(l, 1); k < l+size; k++ {
				q, taken := holder[k]
				older := taken && (given[keep.Node(keep.Owner(q)).GUID] != 0 || keep.Node(keep.Owner(q)).Order < keep.Node(keep.Owner(p)).Order)
				free = free && !older
			}
			if free {
				rt.Errorf("%s has LID %d while %d was free", keep.PortName(p), keep.LID(p), l)
			}
		}
	})
}

// What holds for every assignment, whatever is kept.
func TestAssignLIDsProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nodes := []lidNode{{guid: 1, enhanced: rapid.Bool().Draw(rt, "first")}}
		n := rapid.IntRange(1, 40).Draw(rt, "nodes")
		for i := range n {
			nodes = append(nodes, lidNode{
				ca:       rapid.Bool().Draw(rt, "ca"),
				guid:     fabric.GUID(10 + 2*i),
				enhanced: rapid.Bool().Draw(rt, "enhanced"),
			})
		}
		lmc := rapid.IntRange(0, fabric.MaxLMC).Draw(rt, "lmc")
		esp0 := rapid.Bool().Draw(rt, "esp0")
		lmcOf := func(n lidNode) uint8 {
			if n.ca || n.enhanced && esp0 {
				return uint8(lmc)
			}
			return 0
		}
		// Some ports have LIDs, each in a span of 128 of its own.
		span := rand.New(rand.NewPCG(1, uint64(rapid.Uint32().Draw(rt, "spans")))).Perm(len(nodes) * 2)
		given := map[fabric.GUID]fabric.LID{}
		for i := range nodes {
			if rapid.Bool().Draw(rt, "given") {
				nodes[i].lmc = lmcOf(nodes[i])
				runs := 128 >> nodes[i].lmc
				nodes[i].lid = fabric.LID(128*(1+span[i]) + rapid.IntRange(0, runs-1).Draw(rt, "run")<<nodes[i].lmc)
				given[nodes[i].guid] = nodes[i].lid
			}
		}
		f := lidFabric(t, nodes)
		keep := short.Must(AssignLIDs(f, LIDOptions{LMC: lmc, EnhancedPort0: esp0}))(rt)
		holder := checkLIDs(rt, keep, nodes, given, lmcOf)
		checkLowestFree(rt, keep, given, holder)
		again := short.Must(AssignLIDs(keep, LIDOptions{LMC: KeepLMC, EnhancedPort0: esp0}))(rt)
		if d := cmp.Diff(lidsOf(keep), lidsOf(again)); d != "" {
			rt.Errorf("a full assignment is not kept: %s", d)
		}

		// Dense: the same for each order of the switches, and without gaps
		// beyond the alignment of the first run.
		dense := short.Must(AssignLIDs(f, LIDOptions{Policy: DenseLIDs, LMC: lmc, EnhancedPort0: esp0}))(rt)
		var wanted int
		dense.EndPorts(func(p fabric.PortID) { wanted += 1 << dense.LMC(p) })
		if got, limit := int(dense.MaxLID()), wanted+2*(1<<lmc)-2; got < wanted || got > limit {
			rt.Errorf("dense LIDs go to %d, want %d to %d", got, wanted, limit)
		}
		var cut []int // where a switch and its CAs begin
		for i := range nodes {
			if !nodes[i].ca {
				cut = append(cut, i)
			}
		}
		cut = append(cut, len(nodes))
		var shuffled []lidNode
		for _, i := range rapid.Permutation(cut[:len(cut)-1]).Draw(rt, "order") {
			end := i + 1
			for end < len(nodes) && nodes[end].ca {
				end++
			}
			shuffled = append(shuffled, nodes[i:end]...)
		}
		other := short.Must(AssignLIDs(lidFabric(t, shuffled), LIDOptions{Policy: DenseLIDs, LMC: lmc, EnhancedPort0: esp0}))(rt)
		if d := cmp.Diff(lidsOf(dense), lidsOf(other)); d != "" {
			rt.Errorf("dense LIDs depend on the order: %s", d)
		}
	})
}

// LIDs by place are taken as they are, held to the same rules as those of a
// text, and ports without a place get what is free.
func TestMeshLIDs(t *testing.T) {
	f := lidFabric(t, []lidNode{{guid: 1, lid: 9}, {ca: true, guid: 0x11, lid: 3}, {guid: 2}, {ca: true, guid: 0x12}, {ca: true, guid: 0x13}})
	place := func(want map[fabric.GUID]fabric.LID) func([]uint8) ([]fabric.LID, error) {
		return func(lmc []uint8) ([]fabric.LID, error) {
			base := make([]fabric.LID, len(lmc))
			f.EndPorts(func(p fabric.PortID) { base[p] = want[f.Node(f.Owner(p)).GUID] })
			return base, nil
		}
	}
	for _, tc := range []struct {
		name string
		opt  LIDOptions
		want map[fabric.GUID]string
		err  string
	}{
		{"all", LIDOptions{MeshBases: place(map[fabric.GUID]fabric.LID{1: 20, 2: 21, 0x11: 3, 0x12: 1, 0x13: 2})},
			map[fabric.GUID]string{1: "20", 2: "21", 0x11: "3", 0x12: "1", 0x13: "2"}, ""},
		{"some, LMC 1", LIDOptions{LMC: 1, MeshBases: place(map[fabric.GUID]fabric.LID{1: 3, 0x12: 4})},
			map[fabric.GUID]string{1: "3", 2: "1", 0x11: "6/1", 0x12: "4/1", 0x13: "8/1"}, ""},
		{"not a multiple", LIDOptions{LMC: 1, MeshBases: place(map[fabric.GUID]fabric.LID{0x12: 5})}, nil,
			`"host 12"[1] has LID 5 by its place in the mesh, which is not a multiple of 2`},
		{"twice", LIDOptions{MeshBases: place(map[fabric.GUID]fabric.LID{1: 5, 0x12: 5})}, nil,
			`LID 5 belongs to two ports: "switch 1"[0] has 5 by its place in the mesh, "host 12"[1] has 5 by its place in the mesh`},
		{"no mesh", LIDOptions{}, nil, "want the mesh"},
		{"an error", LIDOptions{MeshBases: func([]uint8) ([]fabric.LID, error) { return nil, errors.New("no grid") }}, nil, "no grid"},
		{"too few", LIDOptions{MeshBases: func([]uint8) ([]fabric.LID, error) { return make([]fabric.LID, 2), nil }}, nil, "for 2 ports"},
	} {
		tc.opt.Policy = MeshLIDs
		g, err := AssignLIDs(f, tc.opt)
		if tc.err != "" {
			if g != nil || err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %q", tc.name, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if diff := cmp.Diff(tc.want, lidsOf(g)); diff != "" {
			t.Errorf("%s: LIDs (-want +got):\n%s", tc.name, diff)
		}
	}
}
