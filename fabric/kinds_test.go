package fabric_test

import (
	"testing"

	"github.com/ibweave/ibweave/fabric"
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
		i, err := b.AddNode(n)
		if err != nil {
			t.Fatal(err)
		}
		return i
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
			if err := b.Connect(c.to, c.port, n, 1, fabric.Link{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	f, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	cut := f.Without(f.Port(0, 9))
	for i, c := range cases {
		n, _ := f.NodeByGUID(fabric.GUID(0x100 + i))
		if got := f.Kind(n); got != c.want {
			t.Errorf("%+v on port %d of %d: %s, want %s", c.node, c.port, c.to, got, c.want)
		}
		if cut.Kind(n) != f.Kind(n) {
			t.Errorf("node %d is a %s once a cable is gone", i, cut.Kind(n))
		}
	}
	alone := &fabric.Builder{}
	for i, name := range []string{"n1", "oss1", "oss2", "gw1"} {
		if _, err := alone.AddNode(fabric.Node{GUID: fabric.GUID(i + 1), Type: fabric.CA, NumPorts: 1, Description: name}); err != nil {
			t.Fatal(err)
		}
	}
	storage, err := alone.Build()
	if err != nil {
		t.Fatal(err)
	}
	for n := range fabric.NodeID(4) {
		if storage.Kind(n) != fabric.HostKind {
			t.Errorf("%s is a %s of a fabric for storage", storage.Name(n), storage.Kind(n))
		}
	}
	if f.Kind(0) != fabric.SwitchKind || f.Kind(0).String() != "switch" || fabric.Kind(9).String() != "kind 9" {
		t.Errorf("switch: %s", f.Kind(0))
	}
}
