package fabric_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// TestWithout compares with a fabric that is built without the cables.
func TestWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		switches := rapid.IntRange(2, 8).Draw(t, "switches")
		f := short.Must(gen.Irregular(gen.IrregularSpec{
			Switches: switches, Degree: min(4, switches-1), Hosts: rapid.IntRange(1, 9).Draw(t, "hosts"),
			Seed: rapid.Uint64().Draw(t, "seed"),
		}))(t)
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{LMC: rapid.IntRange(0, 2).Draw(t, "LMC")}))(t)
		before := slices.Clone(f.CAPorts())
		cut := rapid.SliceOfN(rapid.IntRange(0, f.NumPorts()-1), 0, 12).Draw(t, "cut")
		var cables []fabric.PortID
		for _, p := range cut {
			cables = append(cables, fabric.PortID(p))
		}
		got := f.Without(cables...)
		want := rebuilt(t, f, func(p, q fabric.PortID) bool {
			return !slices.Contains(cables, p) && !slices.Contains(cables, q)
		})
		same(t, want, got)
		hosts(t, got)
		again := short.Must(f.WithCables(got.Cables()))(t)
		same(t, want, again)
		hosts(t, again)
		if list := f.Cables(); len(list) > 0 {
			if _, err := f.WithCables(append(list, fabric.Cable{A: list[0].A, B: list[len(list)-1].B})); err == nil {
				t.Fatal("two cables at one port")
			}
		}
		if !fabric.SameTopology(got, want) || !fabric.SameNodes(f, got) || fabric.SameTopology(f, got) != (f.NumLinks() == got.NumLinks()) {
			t.Fatal("topologies")
		}
		short.EqualList(t, before, f.CAPorts(), "the fabric itself changed")
	})
}

// rebuilt builds f from its nodes and those of its cables that are kept.
func rebuilt(t *rapid.T, f *fabric.Fabric, keep func(p, q fabric.PortID) bool) *fabric.Fabric {
	var b fabric.Builder
	for n := range fabric.NodeID(f.NumNodes()) {
		node := *f.Node(n)
		i := short.Must(b.AddNode(node))(t)
		short.MustEqual(t, i, int(n), "node", "became")
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if q := f.Peer(p); q > p && keep(p, q) {
			short.Check(t, b.Connect(int(f.Owner(p)), f.Num(p), int(f.Owner(q)), f.Num(q), f.Link(p)))
		}
	}
	return short.Must(b.Build())(t)
}

// hosts compares what f says of hosts and switches with its cables.
func hosts(t *rapid.T, f *fabric.Fabric) {
	short.MustEqual(t, f.Attachment(fabric.NoPort), fabric.NoPort, "attachment of no port")
	for s := range fabric.NodeID(f.NumSwitches()) {
		var want []fabric.PortID
		for p := f.PortBase(s) + 1; p < f.PortBase(s+1); p++ {
			q, to := f.Peer(p), fabric.NoNode
			if q != fabric.NoPort && f.IsSwitch(f.Owner(q)) {
				to = f.Owner(q)
			} else if q != fabric.NoPort {
				want = append(want, q)
				short.MustEqual(t, f.Attachment(q), p, f.PortName(q), "is attached to port", "want", f.PortName(p))
			}
			short.MustEqual(t, f.PeerSwitch(p), to, f.PortName(p), "leads to switch")
		}
		if !slices.Equal(f.HostsOn(s), want) || f.Attachment(f.PortBase(s)) != f.PortBase(s) {
			t.Fatalf("hosts on switch %d: %v, want %v", s, f.HostsOn(s), want)
		}
	}
}

func same(t *rapid.T, want, got *fabric.Fabric) {
	short.MustEqual(t, want.NumLinks(), got.NumLinks(), "links")
	if !slices.Equal(want.CAPorts(), got.CAPorts()) || !slices.Equal(want.CASwitches(), got.CASwitches()) {
		t.Fatal("CA ports")
	}
	for p := range fabric.PortID(want.NumPorts()) {
		short.MustEqual(t, want.Peer(p), got.Peer(p), "the peer of", want.PortName(p))
	}
	for s := range fabric.NodeID(want.NumSwitches()) {
		a, b := want.SwitchLinks(s)
		c, d := got.SwitchLinks(s)
		if !slices.Equal(a, c) || !slices.Equal(b, d) {
			t.Fatalf("links of switch %d", s)
		}
		alone := true
		for p := range want.Node(s).NumPorts {
			alone = alone && want.Peer(want.Port(s, p+1)) == fabric.NoPort
		}
		short.MustEqual(t, alone, (got.LID(got.Port(s, 0)) == 0), "LID of switch", s)
	}
	cabled := 0
	for _, p := range got.LIDPorts() {
		if p == fabric.NoPort {
			continue
		}
		if n := got.Owner(p); !got.IsSwitch(n) && got.Peer(p) == fabric.NoPort {
			t.Fatalf("%s has a LID and no cable", got.PortName(p))
		}
		cabled++
	}
	if d := got.Distances(); d.To(0)[0] != 0 || slices.Compare(d.To(0), want.Distances().To(0)) != 0 {
		t.Fatal("distances")
	}
	if len(got.CAPorts()) > 0 && cabled == 0 {
		t.Fatal("no LIDs left")
	}
}

// TestKinds: the default rule, with adapters that look like aggregation nodes and are none.
func TestKinds(t *testing.T) {
	b := &fabric.Builder{}
	add := func(n fabric.Node) int {
		t.Helper()
		if n.Type == 0 {
			n.Type = fabric.CA
		}
		if n.NumPorts == 0 {
			n.NumPorts = 1
		}
		return short.Must(b.AddNode(n))(t)
	}
	s := add(fabric.Node{GUID: 1, SystemGUID: 0x10, Type: fabric.Switch, NumPorts: 9, Description: "Aggregation Node"})
	other := add(fabric.Node{GUID: 2, Type: fabric.Switch, NumPorts: 9})
	cases := []struct {
		node fabric.Node
		to   int
		port fabric.PortNum
		want fabric.Kind
	}{
		{fabric.Node{SystemGUID: 0x10}, s, 9, fabric.AggregationKind},
		{fabric.Node{SystemGUID: 0x10, Description: "n1 mlx5_0"}, s, 8, fabric.HostKind},
		{fabric.Node{SystemGUID: 0x10, NumPorts: 2, Description: "Aggregation Node"}, s, 7, fabric.HostKind},
		{fabric.Node{Description: "Mellanox Technologies Aggregation Node"}, s, 1, fabric.AggregationKind},
		{fabric.Node{Description: "Aggregation Node without a cable"}, 0, 0, fabric.AggregationKind},
		{fabric.Node{VendorID: 0x2c9, DeviceID: 53001}, s, 2, fabric.AggregationKind},
		{fabric.Node{VendorID: 0x2ca, DeviceID: 53001}, s, 3, fabric.HostKind},
		{fabric.Node{}, other, 9, fabric.HostKind}, // both say nothing of their system
		{fabric.Node{SystemGUID: 0x10}, other, 8, fabric.HostKind},
		{fabric.Node{SystemGUID: 0x10}, 0, 0, fabric.HostKind},
		{fabric.Node{Type: fabric.Router, Description: "Aggregation Node"}, other, 1, fabric.RouterKind},
		{fabric.Node{Description: "rack2-OSS01 mlx5_0"}, other, 2, fabric.ServiceKind},
		{fabric.Node{Description: "ufm"}, other, 3, fabric.ServiceKind},
		{fabric.Node{Description: "ib-gw3 HCA-1"}, other, 4, fabric.GatewayKind},
		{fabric.Node{Description: "boss01 mlx5_0"}, other, 5, fabric.HostKind},
		{fabric.Node{Description: "n7 storage"}, other, 6, fabric.HostKind}, // not in the host name
	}
	for i, c := range cases {
		c.node.GUID = fabric.GUID(0x100 + i)
		n := add(c.node)
		if c.port > 0 {
			short.Check(t, b.Connect(c.to, c.port, n, 1, fabric.Link{}))
		}
	}
	f := short.Must(b.Build())(t)
	cut := f.Without(f.Port(0, 9))
	for i, c := range cases {
		n, _ := f.NodeByGUID(fabric.GUID(0x100 + i))
		short.Equal(t, f.Kind(n), c.want, c.node, "on port", c.port, "of", c.to)
		short.Equal(t, cut.Kind(n), f.Kind(n), "node", i, "is a", "once a cable is gone")
	}
	alone := &fabric.Builder{}
	for i, name := range []string{"n1", "oss1", "oss2", "gw1"} {
		short.Must(alone.AddNode(fabric.Node{GUID: fabric.GUID(i + 1), Type: fabric.CA, NumPorts: 1, Description: name}))(t)
	}
	storage := short.Must(alone.Build())(t)
	for n := range fabric.NodeID(4) {
		short.Equal(t, storage.Kind(n), fabric.HostKind, storage.Name(n), "is a", "of a fabric for storage")
	}
	if f.Kind(0) != fabric.SwitchKind || f.Kind(0).String() != "switch" || fabric.Kind(9).String() != "kind 9" {
		t.Errorf("switch: %s", f.Kind(0))
	}
}

// TestWithKinds: rules go by names and GUIDs, the last one counts, and switches stay switches.
func TestWithKinds(t *testing.T) {
	b := &fabric.Builder{}
	for i, name := range []string{"s", "n1 mlx5_0", "n1 mlx5_1", "oss1", "n2"} {
		n := fabric.Node{GUID: fabric.GUID(i + 1), Type: fabric.CA, NumPorts: 1, Description: name}
		if i == 0 {
			n.Type, n.NumPorts = fabric.Switch, 9
		}
		short.Must(b.AddNode(n))(t)
		if i > 0 {
			short.Check(t, b.Connect(0, fabric.PortNum(i), i, 1, fabric.Link{}))
		}
	}
	f := short.Must(b.Build())(t)
	rules := short.Must(fabric.ParseKindRules("service=n*, aggregation=n1*_1,host=oss1,gateway=0x5,router=s,service=absent*"))(t)
	g, unused := f.WithKinds(rules)
	if len(unused) != 2 || unused[0].Pattern != "s" || unused[1].Pattern != "absent*" {
		t.Errorf("unused: %v", unused)
	}
	for n, want := range []fabric.Kind{fabric.SwitchKind, fabric.ServiceKind, fabric.AggregationKind, fabric.HostKind, fabric.GatewayKind} {
		short.Equal(t, g.Kind(fabric.NodeID(n)), want, g.Name(fabric.NodeID(n)), "is a")
	}
	if len(g.HostsOn(0)) != 3 || len(g.EndPortsOn(0)) != 4 || len(f.HostsOn(0)) != 4 || len(g.Without(g.Port(0, 1)).HostsOn(0)) != 2 {
		t.Errorf("%d hosts of %d, %d before", len(g.HostsOn(0)), len(g.EndPortsOn(0)), len(f.HostsOn(0)))
	}
	for _, bad := range []string{"", "host", "host=", "storage=x", "switch=x", "host=a,,"} {
		if rules, err := fabric.ParseKindRules(bad); err == nil {
			t.Errorf("%q: %v", bad, rules)
		}
	}
}

// FuzzKindRules: rules that are read match nodes without a panic.
func FuzzKindRules(f *testing.F) {
	f.Add("host=a*b*,service=0x5", "a mlx5_0")
	f.Add("gateway=*", "")
	f.Fuzz(func(t *testing.T, text, name string) {
		rules, err := fabric.ParseKindRules(text)
		if err != nil {
			if rules != nil {
				t.Error("rules and an error")
			}
			return
		}
		var b fabric.Builder
		short.Must(b.AddNode(fabric.Node{GUID: 5, Type: fabric.CA, NumPorts: 1, Description: name}))(t)
		g := short.Must(b.Build())(t)
		g.WithKinds(rules)
	})
}

// labelled builds two switches with a cable and a host, whose ports have labels, except
// port 2 of the second switch. The second has the lower GUID: indices change in Build.
func labelled(t *testing.T) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	for _, n := range []fabric.Node{
		{GUID: 9, Type: fabric.Switch, NumPorts: 3, Description: "late"},
		{GUID: 5, Type: fabric.Switch, NumPorts: 2, Description: "early"},
		{GUID: 7, Type: fabric.CA, NumPorts: 1, Description: "host"},
	} {
		short.Must(b.AddNode(n))(t)
	}
	for _, err := range []error{
		b.Connect(0, 1, 1, 1, fabric.Link{}),
		b.Connect(0, 2, 2, 1, fabric.Link{}),
		b.SetPort(2, 1, 0, 3, 0),
		b.SetLabel(0, 1, "1/1/1"),
		b.SetLabel(0, 2, "1/1/2"),
		b.SetLabel(0, 3, "wrong"),
		b.SetLabel(0, 3, ""),
		b.SetLabel(1, 1, "1/1/1"),
		b.SetLabel(2, 1, "B1D0F0/0/0/1"),
	} {
		short.Check(t, err)
	}
	return short.Must(b.Build())(t)
}

func TestLabels(t *testing.T) {
	f := labelled(t)
	late, _ := f.NodeByGUID(9)
	host, _ := f.NodeByGUID(7)
	with := short.Must(f.WithLIDs(make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())))(t)
	for what, g := range map[string]*fabric.Fabric{
		"built": f, "other LIDs": with, "a cable less": f.Without(f.Port(late, 1)),
		"named": f.WithNames(map[fabric.GUID]string{9: "late"}), "renamed": f.Renamed(),
	} {
		for p, want := range map[fabric.PortID]string{
			g.Port(0, 0): `"early"[0]`, g.Port(0, 1): `"early"[1](1/1/1)`, g.Port(0, 2): `"early"[2]`,
			g.Port(late, 1): `"late"[1](1/1/1)`, g.Port(late, 2): `"late"[2](1/1/2)`, g.Port(late, 3): `"late"[3]`,
			g.Port(host, 1): `"host"[1](B1D0F0/0/0/1)`,
		} {
			short.Equal(t, g.PortName(p), want, what, "port name")
		}
		if !g.Labelled() || !fabric.SameTopology(f, f.WithNames(nil)) {
			t.Errorf("%s: labelled %v", what, g.Labelled())
		}
	}
}

func TestNoLabels(t *testing.T) {
	var b fabric.Builder
	short.Must(b.AddNode(fabric.Node{GUID: 1, Type: fabric.Switch, NumPorts: 2}))(t)
	if err := b.SetLabel(0, 3, "1"); err == nil {
		t.Error("label of a port that is not there")
	}
	if err := b.SetLabel(0, 1, strings.Repeat("1", 65)); err == nil {
		t.Error("label of 65 bytes")
	}
	f := short.Must(b.Build())(t)
	if f.Labelled() || f.Label(1) != "" {
		t.Error("labels out of nowhere")
	}
}

func TestVirtualLIDs(t *testing.T) {
	f := labelled(t)
	host, _ := f.NodeByGUID(7)
	h := f.Port(host, 1) // with LID 3
	g := short.Must(f.WithVirtualLIDs(map[fabric.LID]fabric.PortID{9: h, 5: h, 3: h}))(t)
	if g.MaxLID() != 9 || g.LIDPort(5) != h || g.LIDPort(9) != h || g.LIDPort(8) != fabric.NoPort || g.LID(h) != 3 || f.MaxLID() != 3 {
		t.Errorf("LIDs up to %d, port %d has 5", g.MaxLID(), g.LIDPort(5))
	}
	if got, own := slices.Collect(g.AllLIDs(h)), slices.Collect(f.AllLIDs(h)); !slices.Equal(got, []fabric.LID{3, 5, 9}) || !slices.Equal(own, []fabric.LID{3}) {
		t.Errorf("LIDs %v with virtual ports, %v without", got, own)
	}
	if same, err := f.WithVirtualLIDs(nil); same != f || err != nil {
		t.Error("another fabric without virtual ports")
	}
	var overlap *fabric.LIDOverlapError
	if _, err := f.WithVirtualLIDs(map[fabric.LID]fabric.PortID{3: 0}); !errors.As(err, &overlap) {
		t.Errorf("LID of another port: %v", err)
	}
	for l, p := range map[fabric.LID]fabric.PortID{0: h, fabric.MaxUnicastLID + 1: h, 7: f.Port(0, 1)} {
		if g, err := f.WithVirtualLIDs(map[fabric.LID]fabric.PortID{l: p}); g != nil || err == nil {
			t.Errorf("LID %d on port %d: %v", l, p, err)
		}
	}
}
