package fabric_test

import (
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

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
