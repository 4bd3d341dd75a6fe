package fabric_test

import (
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

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
		if err != nil {
			t.Fatal(err)
		}
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
