package myrinet

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/rehearse"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// made gives a fabric dense LIDs.
func made(t testing.TB, f *fabric.Fabric, err error) *fabric.Fabric {
	t.Helper()
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs})
	}
	short.Check(t, err)
	return f
}

func torus8(t testing.TB) *fabric.Fabric {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{8, 8}, Wrap: []bool{true, true}, Hosts: 1})
	return made(t, f, err)
}

func shufflenet24(t testing.TB) *fabric.Fabric {
	f, err := gen.Shufflenet(2, 3)
	return made(t, f, err)
}

// routed has the tables of a fabric with the root in switch 0.
func routed(t testing.TB, f *fabric.Fabric) *lft.Tables {
	t.Helper()
	u := short.Must(NewUpDown(f, 0))(t)
	return short.Must(u.Tables())(t)
}

// TestUpDown is golden G-M6, and the sizes of G-M5 that distances give: mean and
// greatest number of links of paths, the hottest link, and that no path could be
// shorter by the up/down rule although tables know no history.
func TestUpDown(t *testing.T) {
	for _, tt := range []struct {
		name           string
		f              *fabric.Fabric
		links, degree  int
		shortest, mean float64
		most           int
		hotFrom, hotTo fabric.NodeID
		longest        int
	}{
		{name: "torus", f: torus8(t), links: 128, degree: 4, shortest: 4.0635, mean: 4.5714, most: 12, hotFrom: 0, hotTo: 1, longest: 8},
		{name: "shufflenet", f: shufflenet24(t), links: 48, degree: 4, shortest: 2.3913, mean: 2.6304, most: 6, longest: 4, hotFrom: -1},
	} {
		f := tt.f
		n := f.NumSwitches()
		u := short.Must(NewUpDown(f, 0))(t)
		tables := routed(t, f)
		load := make([]int, f.NumPorts())
		legal := legalDistances(u)
		var sum, shortest, most, longer, diameter int
		for _, a := range f.CAPorts() {
			from := f.Owner(f.Peer(a))
			for _, b := range f.CAPorts() {
				if a == b {
					continue
				}
				to := f.Owner(f.Peer(b))
				path := short.Must(tables.Path(f, a, f.LID(b), nil))(t)
				path = path[1:]
				down := false
				for _, p := range path[:len(path)-1] {
					load[p]++
					if up := u.Goes(p); up && down {
						t.Errorf("%s: from %d to %d goes up after down", tt.name, from, to)
					} else {
						down = !up
					}
				}
				sum += len(path) - 1
				most = max(most, len(path)-1)
				shortest += int(f.Distances().To(to)[from])
				diameter = max(diameter, int(f.Distances().To(to)[from]))
				if len(path)-1 > legal[from][to] {
					longer++
				}
			}
		}
		pairs := float64(n * (n - 1))
		if m := float64(sum) / pairs; math.Abs(m-tt.mean) > 0.00005 || most != tt.most || longer != 0 {
			t.Errorf("%s: mean of %.4f links, most %d, %d paths longer than they need be; want %.4f, %d, none", tt.name, m, most, longer, tt.mean, tt.most)
		}
		if m := float64(shortest) / pairs; math.Abs(m-tt.shortest) > 0.00005 || diameter != tt.longest {
			t.Errorf("%s: shortest paths have %.4f links, at most %d; want %.4f, %d", tt.name, m, diameter, tt.shortest, tt.longest)
		}
		channels := 0
		for s := range fabric.NodeID(n) {
			ports, _ := f.SwitchLinks(s)
			channels += len(ports)
			short.Equal(t, len(ports), tt.degree, tt.name, "switch", s, "links")
		}
		short.Equal(t, channels, 2*tt.links, tt.name, channels/2, "links, want", tt.links)
		if tt.hotFrom >= 0 {
			hot := fabric.PortID(0)
			for p := range load {
				if load[p] > load[hot] {
					hot = fabric.PortID(p)
				}
			}
			if from, to := f.Owner(hot), f.Owner(f.Peer(hot)); from != tt.hotFrom || to != tt.hotTo {
				t.Errorf("%s: the hottest link is %d to %d with %d paths, want %d to %d", tt.name, from, to, load[hot], tt.hotFrom, tt.hotTo)
			}
		}
	}
}

// legalDistances is the fewest links of up/down paths between switches, by a
// search that remembers whether it has gone down.
func legalDistances(u *UpDown) [][]int {
	f := u.fab
	n := f.NumSwitches()
	dist := make([][]int, n)
	for from := range n {
		best := make([]int, 2*n) // by switch, and by switch after a downward link
		for i := range best {
			best[i] = -1
		}
		best[from] = 0
		queue := []int{from}
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			ports, to := f.SwitchLinks(fabric.NodeID(at % n))
			for i, v := range to {
				next := int(v)
				if !u.Goes(ports[i]) {
					next += n
				} else if at >= n {
					continue
				}
				if best[next] < 0 {
					best[next] = best[at] + 1
					queue = append(queue, next)
				}
			}
		}
		dist[from] = make([]int, n)
		for v := range n {
			d := best[v]
			if d < 0 || best[v+n] >= 0 && best[v+n] < d {
				d = best[v+n]
			}
			dist[from][v] = d
		}
	}
	return dist
}

// TestKinds has every kind of fabric of the paper routed by M4, on all links and on
// the spanning tree alone, clean for verify, and loaded by the real OpenSM on the
// real ibsim.
func TestKinds(t *testing.T) {
	short.NeedPrograms(t)
	four, err := gen.Myrinet4()
	four = made(t, four, err)
	irregular, err := gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 3, Hosts: 24, Seed: 5})
	irregular = made(t, irregular, err)
	for _, tt := range short.Part(2, []struct {
		name string
		f    *fabric.Fabric
	}{{"four switches", four}, {"irregular", irregular}, {"torus", torus8(t)}, {"shufflenet", shufflenet24(t)}}) {
		u := short.Must(NewUpDown(tt.f, 0))(t)
		for _, tree := range []bool{false, true} {
			make := u.Tables
			if tree {
				make = u.TreeTables
			}
			tables := short.Must(make())(t)
			r := short.Must(verify.Check(context.Background(), &state.State{Fabric: tt.f, Tables: tables}, verify.Options{}))(t)
			if r.Unicast.Unreachable+r.Unicast.Loops != 0 || r.CreditLoops.Count != 0 || r.Management.Unreachable+r.Management.Loops != 0 || r.Management.CreditLoops != 0 {
				t.Errorf("%s, tree %v: %+v %+v %+v", tt.name, tree, r.Unicast, r.CreditLoops, r.Management)
			}
			if tree {
				continue
			}
			got := short.Must(rehearse.Run(t.Context(), tt.f, tables, rehearse.Options{}))(t)
			if got.EqualSwitches != tt.f.NumSwitches() || got.Differences != 0 || !got.SubnetUp {
				t.Errorf("%s, tree %v: %d of %d switches equal, %d entries differ: %v", tt.name, tree, got.EqualSwitches, tt.f.NumSwitches(), got.Differences, got.Samples)
			}
		}
		// On the tree no other cable has traffic.
		tables := short.Must(u.TreeTables())(t)
		for s := range fabric.NodeID(tt.f.NumSwitches()) {
			for l, num := range tables.Row(s) {
				if num == fabric.ManagementPort || num == fabric.NoPath {
					continue
				}
				if p := tt.f.Port(s, num); tt.f.IsSwitch(tt.f.Owner(tt.f.Peer(p))) && !u.Tree(p) {
					t.Errorf("%s: LID %d leaves switch %d by a cross link", tt.name, l, s)
				}
			}
		}
	}
}

func TestUpDownErrors(t *testing.T) {
	f := torus8(t)
	if _, err := NewUpDown(f, f.Owner(f.CAPorts()[0])); err == nil {
		t.Error("a channel adapter as root")
	}
	bare := short.Must(gen.Shufflenet(2, 2))(t)
	u := short.Must(NewUpDown(bare, 0))(t)
	if _, err := u.Tables(); err == nil {
		t.Error("tables without LIDs")
	}
	tables := routed(t, f)
	a, b := f.CAPorts()[0], f.CAPorts()[9]
	tables.Row(f.Owner(f.Peer(a)))[f.LID(b)] = fabric.NoPath
	if _, err := Links(f, tables, a, f.LID(b)); err == nil {
		t.Error("a path through a table that drops")
	}
	if _, err := Links(f, tables, a, f.MaxLID()+1); err == nil {
		t.Error("a path to no host")
	}
}

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
