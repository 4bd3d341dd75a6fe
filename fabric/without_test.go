package fabric_test

import (
	"slices"
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
