package gen_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
)

// Each switch of any kind gets one aggregation node, on a new last port, and all else stays.
func TestAggregationNodes(t *testing.T) {
	for _, s := range shapes() {
		if s.switches > 200 {
			continue
		}
		f := short.Must(s.make())(t)
		g, err := gen.Options{AggregationNodes: true}.Apply(f)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if g.NumSwitches() != s.switches || g.NumNodes() != f.NumNodes()+s.switches || g.NumLinks() != f.NumLinks()+s.switches {
			t.Errorf("%s: %d switches, %d nodes, %d links", s.name, g.NumSwitches(), g.NumNodes(), g.NumLinks())
		}
		systems := map[fabric.GUID]bool{}
		for sw := range fabric.NodeID(g.NumSwitches()) {
			x := g.Node(sw)
			last := g.Port(sw, x.NumPorts)
			peer := g.Peer(last)
			if x.NumPorts != f.Node(sw).NumPorts+1 || peer == fabric.NoPort {
				t.Fatalf("%s: %d ports on %q, the last one without a cable", s.name, x.NumPorts, x.Description)
			}
			a := g.Node(g.Owner(peer))
			if a.Type != fabric.CA || a.NumPorts != 1 || a.Description != gen.AggregationNode || a.SystemGUID != x.SystemGUID || a.DeviceID != 0xcf09 {
				t.Errorf("%s: %+v on %+v", s.name, a, x)
			}
			if want := (fabric.Link{Width: 4, Speed: fabric.QDR}); f.NumLinks() > 0 && g.Link(last) != want {
				t.Errorf("%s: %s, want %s", s.name, g.Link(last), want)
			}
			systems[a.SystemGUID] = true
		}
		short.Equal(t, len(systems), s.switches, s.name, "systems")
		var kept []string // without the cables of aggregation nodes
		for _, line := range wiring(g) {
			if !strings.Contains(line, gen.AggregationNode) {
				kept = append(kept, line)
			}
		}
		short.Diff(t, kept, wiring(f), s.name, "cables")
	}
}

// Planes are copies of the fabric that share systems and adapters: each cable is there once
// for each plane, between chips of the plane or a chip and the plane's port of an adapter.
func TestPlanes(t *testing.T) {
	const planes = 4
	for _, s := range shapes() {
		if s.switches > 200 {
			continue
		}
		f := short.Must(s.make())(t)
		g, err := gen.Options{Planes: planes}.Apply(f)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if g.NumSwitches() != planes*s.switches || g.NumNodes()-g.NumSwitches() != s.cas || len(g.CAPorts()) != planes*s.caPorts {
			t.Errorf("%s: %d switches, %d adapters, %d ports of adapters", s.name, g.NumSwitches(), g.NumNodes()-g.NumSwitches(), len(g.CAPorts()))
		}
		end := func(p fabric.PortID, plane int) string {
			n, num := f.Node(f.Owner(p)), f.Num(p)
			if n.Type == fabric.Switch {
				return fmt.Sprintf("chip %d %s[%d]", plane, n.Description, num)
			}
			return fmt.Sprintf("%s[%d]", n.Description, (int(num)-1)*planes+plane+1)
		}
		var want, got []string
		add := func(list *[]string, a, b string) { *list = append(*list, min(a, b)+" "+max(a, b)) }
		for p := range fabric.PortID(f.NumPorts()) {
			if peer := f.Peer(p); peer > p {
				for k := range planes {
					add(&want, end(p, k), end(peer, k))
				}
			}
		}
		for p := range fabric.PortID(g.NumPorts()) {
			if peer := g.Peer(p); peer > p {
				add(&got, fmt.Sprintf("%s[%d]", g.Node(g.Owner(p)).Description, g.Num(p)), fmt.Sprintf("%s[%d]", g.Node(g.Owner(peer)).Description, g.Num(peer)))
				short.Equal(t, g.Link(p), (fabric.Link{Width: 1, Speed: fabric.QDR}), s.name, "a lane")
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		short.Diff(t, got, want, s.name, "cables")
		for _, chips := range systems(g) {
			name := strings.TrimPrefix(chips[0], "chip 0 ")
			for k := range planes {
				if want := fmt.Sprintf("chip %d %s", k, name); len(chips) != planes || chips[k] != want {
					t.Errorf("%s: a system of %q, want chip %d to be %q", s.name, chips, k, want)
				}
			}
		}
	}
	// The chips of all planes of a director are one system.
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 8, Pods: []int{3}, Hosts: 2, Spines: 2, Directors: true}))(t)
	f = short.Must((gen.Options{Planes: planes, AggregationNodes: true}).Apply(f))(t)
	if got := systems(f); len(got) != 1 || len(got[0]) != 5*planes {
		t.Errorf("systems %v, want one of 20 chips", got)
	}
}

// apply applies options to a tree.
func apply(t *testing.T, spec gen.TreeSpec, o gen.Options) *fabric.Fabric {
	t.Helper()
	f := short.Must(gen.Tree(spec))(t)
	return short.Must(o.Apply(f))(t)
}

var small = gen.TreeSpec{Ports: 12, Pods: []int{4, 3}, Hosts: 6, Spines: 3, Cores: 2}

// The given share of hosts stays, on each leaf one at least, and not the same on each.
func TestFill(t *testing.T) {
	for percent, want := range map[int]int{100: 42, 99: 42, 97: 41, 50: 21, 17: 8, 1: 7} {
		counts := map[int]int{}
		f := apply(t, small, gen.Options{Fill: percent, Seed: 5})
		for s := range fabric.NodeID(f.NumSwitches()) {
			if n := len(f.HostsOn(s)); n > 0 {
				counts[n]++
			}
		}
		leaves := 0
		for _, n := range counts {
			leaves += n
		}
		if got := len(f.CAPorts()); got != want || f.NumNodes() != f.NumSwitches()+want || leaves != 7 {
			t.Errorf("%d percent: %d hosts with cables of %d, want %d; %d leaves with hosts, want 7", percent, got, f.NumNodes()-f.NumSwitches(), want, leaves)
		}
		if percent == 50 && len(counts) < 3 {
			t.Errorf("leaves by their hosts %v: want them filled in different parts", counts)
		}
	}
	// A host that is gone is gone on all rails.
	f := apply(t, gen.TreeSpec{Ports: 12, Pods: []int{2}, Hosts: 8, Rails: 4, Spines: 2}, gen.Options{Fill: 40})
	adapters := map[string]int{}
	for _, p := range f.CAPorts() {
		_, host, _ := strings.Cut(f.Node(f.Owner(p)).Description, " host ")
		adapters[host]++
	}
	for host, n := range adapters {
		short.Equal(t, n, 4, "host", host, "adapters, want 4")
	}
	short.Equal(t, len(adapters), 7, "hosts, want 7")
}

func TestServiceHosts(t *testing.T) {
	spec := small
	spec.Ports = 14
	f := apply(t, spec, gen.Options{ServiceHosts: 20})
	var got []string
	for _, line := range wiring(f) {
		if strings.Contains(line, `"service`) {
			got = append(got, line)
		}
	}
	// 6 spines have 3 or 4 leaves and 2 core switches; port 4 is free in the smaller pod.
	want := []string{}
	for k := range 20 {
		pod, spine, round := k%6/3, k%3, k/6
		port := 7 + round
		if pod == 1 {
			port = []int{4, 7, 8, 9}[round]
		}
		want = append(want, fmt.Sprintf("%q[%d] %q[1]", fmt.Sprintf("spine %d pod %d", spine, pod), port, fmt.Sprintf("service %d", k)))
	}
	slices.Sort(want)
	slices.Sort(got)
	short.Diff(t, got, want, "cables")
}

// One speed is that of all; of several each system has one, and no cable is faster than its
// ends.
func TestSpeeds(t *testing.T) {
	f := apply(t, small, gen.Options{Speeds: []fabric.Speed{fabric.NDR}, AggregationNodes: true})
	for p := range fabric.PortID(f.NumPorts()) {
		if f.Peer(p) != fabric.NoPort && f.Link(p).String() != "4xNDR" {
			t.Errorf("%s is %s", f.PortName(p), f.Link(p))
		}
	}
	ids := map[uint16]fabric.Speed{0xd2f0: fabric.HDR, 0xd2f2: fabric.NDR, 0x101b: fabric.HDR, 0x1021: fabric.NDR}
	small.Directors = true
	defer func() { small.Directors = false }()
	f = apply(t, small, gen.Options{Speeds: []fabric.Speed{fabric.NDR, fabric.HDR}, Seed: 2})
	bySystem, seen := map[fabric.GUID]fabric.Speed{}, map[fabric.Speed]int{}
	for s := range fabric.NodeID(f.NumSwitches()) {
		x := f.Node(s)
		speed := ids[x.DeviceID]
		if was, ok := bySystem[x.SystemGUID]; ok && was != speed {
			t.Errorf("%s: %s and %s in one system", x.SystemGUID, was, speed)
		}
		bySystem[x.SystemGUID] = speed
		seen[speed]++
	}
	if seen[fabric.HDR] == 0 || seen[fabric.NDR] == 0 || len(seen) != 2 {
		t.Errorf("switches by speed %v, want HDR and NDR", seen)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if peer := f.Peer(p); peer != fabric.NoPort {
			want := min(ids[f.Node(f.Owner(p)).DeviceID], ids[f.Node(f.Owner(peer)).DeviceID])
			short.Equal(t, f.Link(p).Speed, want, f.PortName(p), "is", f.Link(p))
		}
	}
}

// labels are those of the ports of a node, in order.
func labels(f *fabric.Fabric, n fabric.NodeID) string {
	var list []string
	for p := f.PortBase(n) + 1; p < f.PortBase(n+1); p++ {
		list = append(list, f.Label(p))
	}
	return strings.Join(list, " ")
}

func TestLabels(t *testing.T) {
	ndr := []fabric.Speed{fabric.NDR}
	for _, tt := range []struct {
		o    gen.Options
		want string // labels of the first leaf, whose ports 3 and 4 are free
	}{
		{gen.Options{}, "1 2 3 4 5 6 7 8 9"},
		{gen.Options{Speeds: []fabric.Speed{fabric.HDR}}, "1 2 3 4 5 6 7 8 9"},
		{gen.Options{Speeds: ndr}, "1/1/1 1/1/2 1/2/1 1/2/2 1/3/1 1/3/2 1/4/1 1/4/2 9"},
	} {
		tt.o.Labels, tt.o.AggregationNodes, tt.o.Names = true, true, "site"
		f := apply(t, gen.TreeSpec{Ports: 8, Pods: []int{3}, Hosts: 2, Rails: 2, Spines: 4}, tt.o)
		short.Equal(t, labels(f, 0), tt.want, tt.o, "labels")
		for p, want := range []string{"B16D0F0/0/0/1", "B40D0F0/0/0/1", "B16D0F0/0/0/1"} {
			short.Equal(t, f.Label(f.CAPorts()[p]), want, "label of adapter", p)
		}
		if ports := f.CAPorts(); f.Label(ports[len(ports)-1]) != "1" {
			t.Errorf("the label of an aggregation node is %s, want 1", f.Label(ports[len(ports)-1]))
		}
	}
	f := apply(t, gen.TreeSpec{Ports: 4, Pods: []int{1}, Hosts: 1, Spines: 1}, gen.Options{Planes: 4, Labels: true, Speeds: []fabric.Speed{fabric.XDR}})
	short.Equal(t, labels(f, 2), "3/1/1 3/1/2 3/2/1 3/2/2", "labels of chip 2", "want 3/1/1 3/1/2 3/2/1 3/2/2")
	short.Equal(t, labels(f, fabric.NodeID(f.NumSwitches())), "B16D0F0/0/0/1 B16D0F0/0/0/2 B16D0F0/0/0/3 B16D0F0/0/0/4", "labels of an adapter")
}

func TestNames(t *testing.T) {
	names := func(f *fabric.Fabric) []string {
		var list []string
		for n := range fabric.NodeID(f.NumNodes()) {
			list = append(list, f.Node(n).Description)
		}
		return list
	}
	hdr := []fabric.Speed{fabric.HDR}
	for _, tt := range []struct {
		spec gen.TreeSpec
		o    gen.Options
		want []string
	}{
		{gen.TreeSpec{Ports: 6, Pods: []int{1, 1}, Hosts: 2, Spines: 1, Cores: 1},
			gen.Options{Names: "site", Speeds: hdr, ServiceHosts: 1, AggregationNodes: true}, []string{
				"MF0;pod00-leaf00:MQM8700/U1", "MF0;pod01-leaf00:MQM8700/U1", "MF0;pod00-spine00:MQM8700/U1", "MF0;pod01-spine00:MQM8700/U1",
				"MF0;core0-0:MQM8700/U1", "node0001 mlx5_0", "node0002 mlx5_0", "node0003 mlx5_0", "node0004 mlx5_0",
				"storage0001 mlx5_0", gen.AggregationNode, gen.AggregationNode, gen.AggregationNode, gen.AggregationNode, gen.AggregationNode}},
		{gen.TreeSpec{Ports: 6, Pods: []int{3}, Hosts: 1, Spines: 1, Directors: true}, gen.Options{Names: "site", Speeds: hdr}, []string{
			"MF0;director00:MCS8500/L01/U1", "MF0;director00:MCS8500/L01/U2", "MF0;director00:MCS8500/L02/U1", "MF0;director00:MCS8500/S01/U1",
			"node0001 mlx5_0", "node0002 mlx5_0", "node0003 mlx5_0"}},
		{gen.TreeSpec{Ports: 6, Pods: []int{1}, Hosts: 2, Rails: 2, Spines: 1}, gen.Options{Names: "site", Planes: 2, Speeds: []fabric.Speed{fabric.XDR}}, []string{
			"MF0;unit00-leaf00:Q3400_RA/U1", "MF0;unit00-leaf00:Q3400_RA/U2", "MF0;unit00-leaf01:Q3400_RA/U1", "MF0;unit00-leaf01:Q3400_RA/U2",
			"MF0;spine00:Q3400_RA/U1", "MF0;spine00:Q3400_RA/U2", "node0001 mlx5_0", "node0001 mlx5_1", "node0002 mlx5_0", "node0002 mlx5_1"}},
		{gen.TreeSpec{Ports: 6, Pods: []int{1}, Hosts: 1, Spines: 1}, gen.Options{Names: "factory", Speeds: []fabric.Speed{fabric.NDR}}, []string{
			"Quantum-2 Mellanox Technologies", "Quantum-2 Mellanox Technologies", "MT4129 ConnectX7   Mellanox Technologies"}},
		{gen.TreeSpec{Ports: 6, Pods: []int{1}, Hosts: 1, Spines: 1}, gen.Options{Names: "factory"}, []string{
			"Infiniscale-IV Mellanox Technologies", "Infiniscale-IV Mellanox Technologies", "MT26428 ConnectX2   Mellanox Technologies"}},
	} {
		short.Diff(t, names(apply(t, tt.spec, tt.o)), tt.want, tt.o, "names")
	}
	// Mixed, some are as delivered, some have another number, and hosts keep theirs.
	site, mixed := names(apply(t, small, gen.Options{Names: "site"})), names(apply(t, small, gen.Options{Names: "mixed", Seed: 3}))
	same, hca, factory := 0, 0, 0
	for i := range site {
		switch {
		case site[i] == mixed[i]:
			same++
		case strings.HasSuffix(mixed[i], "Mellanox Technologies"):
			factory++
		case mixed[i] == strings.TrimSuffix(site[i], "mlx5_0")+"HCA-1":
			hca++
		default:
			t.Errorf("%q, at a site %q", mixed[i], site[i])
		}
	}
	if same < len(site)/2 || hca == 0 || factory == 0 {
		t.Errorf("of %d names %d are as at sites, %d HCA, %d as delivered", len(site), same, hca, factory)
	}
}

func TestOptionsErrors(t *testing.T) {
	wide := short.Must(mesh.Generate(mesh.Spec{Dims: []int{2, 2}, Hosts: 250}))(t)
	many := short.Must(irregular(16000, 2, 18000, 1)())(t)
	two, err := banyan.Banyan(2, true) // adapters of two ports
	short.Check(t, err)
	for _, tt := range []struct {
		f    *fabric.Fabric
		o    gen.Options
		want string
	}{
		{wide, gen.Options{AggregationNodes: true}, "an aggregation node on switch 0,0, which has 254 ports: want at most 253 and one more"},
		{many, gen.Options{AggregationNodes: true}, "16000 switches and 34000 ports of channel adapters: want at most 49151 together"},
		{wide, gen.Options{Fill: 101}, "101 of 100 hosts: want 1 to 100"},
		{wide, gen.Options{Fill: -1}, "-1 of 100 hosts: want 1 to 100"},
		{wide, gen.Options{ServiceHosts: 1}, "1 service hosts: want 0 to 0, the free ports of switches above those with hosts; switches with more ports have more"},
		{wide, gen.Options{ServiceHosts: -1}, "-1 service hosts: want 0 to 0"},
		{wide, gen.Options{Speeds: []fabric.Speed{fabric.SDR}}, `switches of speed "SDR": want QDR, FDR, EDR, HDR, NDR or XDR`},
		{wide, gen.Options{Names: "plain"}, `names in style "plain": want site, factory, mixed`},
		{wide, gen.Options{Planes: -1}, "-1 planes: want 1 to 254"},
		{wide, gen.Options{Planes: 255}, "255 planes: want 1 to 254"},
		{two, gen.Options{Planes: 128}, "with 256 ports, 2 on each of 128 planes: want at most 254"},
		{many, gen.Options{Planes: 4}, "64000 switches and 72000 ports of channel adapters: want at most 49151 together"},
		{wide, gen.Options{DropLinks: -1}, "-1 links to drop: want 0 or more"},
	} {
		g, err := tt.o.Apply(tt.f)
		if err == nil || g != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	if _, err := (gen.Options{AggregationNodes: true}).Apply(many); !errors.Is(err, fabric.ErrTooLarge) {
		t.Errorf("%v, want ErrTooLarge", err)
	}
}

// TestRemaining: a dead switch and the unreachable hosts are gone, and
// all others are cabled as before.
func TestRemaining(t *testing.T) {
	whole := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3}))(t)
	cable, _ := whole.SwitchLinks(5)
	for _, x := range []struct {
		name   string
		cables []fabric.PortID
	}{{"cable", cable[:1]}, {"leaf", slices.Collect(whole.Cabled(5))}, {"spine", slices.Collect(whole.Cabled(13))}, {"core", slices.Collect(whole.Cabled(18))}} {
		f := short.Must(gen.Remaining(whole, x.cables...))(t)
		hosts, switches := 16, 20
		switch x.name {
		case "leaf":
			hosts, switches = 14, 19
		case "spine", "core":
			switches = 19
		}
		if len(f.CAPorts()) != hosts || f.NumSwitches() != switches || f.NumLinks() != whole.NumLinks()-len(x.cables) {
			t.Errorf("%s: %d hosts, %d switches, %d cables", x.name, len(f.CAPorts()), f.NumSwitches(), f.NumLinks())
		}
		for n := range fabric.NodeID(f.NumNodes()) {
			was, ok := whole.NodeByGUID(f.Node(n).GUID)
			for num := fabric.PortNum(1); num <= f.Node(n).NumPorts && ok; num++ {
				peer := f.Peer(f.Port(n, num))
				if peer == fabric.NoPort {
					continue
				}
				before := whole.Peer(whole.Port(was, num))
				ok = whole.Node(whole.Owner(before)).GUID == f.Node(f.Owner(peer)).GUID && whole.Num(before) == f.Num(peer)
			}
			if !ok {
				t.Errorf("%s: %s is not cabled as before", x.name, f.Node(n).Description)
			}
		}
	}
}
