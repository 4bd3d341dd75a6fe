package ibsim

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// wild draws a fabric of a few nodes whose GUIDs crowd together.
func wild(t *rapid.T) *fabric.Fabric {
	var b fabric.Builder
	guids := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 40), 1, 12, rapid.ID[uint64]).Draw(t, "node GUIDs")
	portGUIDs := rapid.Permutation(seq(1, 200)).Draw(t, "port GUIDs")
	lid := fabric.LID(0)
	for i, g := range guids {
		kind := rapid.SampledFrom([]fabric.NodeType{fabric.Switch, fabric.CA, fabric.CA, fabric.Router}).Draw(t, "type")
		n := short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(g), Type: kind, Description: rapid.OneOf(rapid.String(), rapid.SampledFrom(nasty)).Draw(t, "description"),
			NumPorts: rapid.SampledFrom([]fabric.PortNum{0, 1, 2, 4}).Draw(t, "ports")}))(t)
		first, last := fabric.PortNum(1), b.Node(n).NumPorts
		if kind == fabric.Switch {
			first, last = 0, 0
		}
		for p := first; p <= last; p++ {
			lid++
			guid := portGUIDs[4*i+int(p)]
			if kind == fabric.Switch {
				guid = g + 1000
			}
			short.Check(t, b.SetPort(n, p, fabric.GUID(guid), lid, 0))
		}
	}
	for range rapid.IntRange(0, 10).Draw(t, "cables") {
		m := rapid.IntRange(0, len(guids)-1).Draw(t, "node")
		n := rapid.IntRange(0, len(guids)-1).Draw(t, "node")
		b.Connect(m, rapid.SampledFrom([]fabric.PortNum{1, 2, 3, 4}).Draw(t, "port"), n,
			rapid.SampledFrom([]fabric.PortNum{1, 2, 3, 4}).Draw(t, "port"),
			fabric.Link{Width: rapid.SampledFrom([]uint8{0, 1, 2, 4, 8, 12}).Draw(t, "width"), Speed: fabric.Speed(rapid.IntRange(0, 9).Draw(t, "speed"))})
	}
	return short.Must(b.Build())(t)
}

// nasty are descriptions that ibsim would take for something else.
var nasty = []string{
	"w=99", "x s=0 e=-1", `a" lid 77 lmc 3 "`, "base port 0 lid 5", "# comment", "@alias", strings.Repeat("long ", 60), "ends with \n[1] \"S-1\"[2]", "%s%n", "",
}

func seq(from, to uint64) (s []uint64) {
	for v := from; v <= to; v++ {
		s = append(s, v)
	}
	return s
}

func TestTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := wild(t)
		twin := short.Must(NewTwin(f))(t)
		g := twin.Fabric
		if g.NumNodes() != f.NumNodes() || g.NumSwitches() != f.NumSwitches() || g.NumLinks() != f.NumLinks() || g.MaxLID() != f.MaxLID() {
			t.Fatalf("%d nodes, %d switches, %d links, LIDs to %d; want %d, %d, %d, %d", g.NumNodes(), g.NumSwitches(), g.NumLinks(), g.MaxLID(),
				f.NumNodes(), f.NumSwitches(), f.NumLinks(), f.MaxLID())
		}
		for s := range fabric.NodeID(f.NumSwitches()) {
			short.Equal(t, f.Node(s).GUID, g.Node(s).GUID, "switch", s, "GUID")
		}
		seen := map[fabric.GUID]bool{}
		for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
			p, q := f.LIDPort(lid), g.LIDPort(lid)
			if p == fabric.NoPort {
				continue
			}
			node := g.Node(g.Owner(q))
			if g.Num(q) != f.Num(p) || node.Type != f.Node(f.Owner(p)).Type {
				t.Errorf("LID %d: %s, want %s", lid, g.PortName(q), f.PortName(p))
			}
			// As ibsim will have it.
			if want := node.GUID + fabric.GUID(g.Num(q)); g.PortGUID(q) != want || twin.PortGUID(f.PortGUID(p)) != want {
				t.Errorf("LID %d: port GUID %s, %s of %s; want %s", lid, g.PortGUID(q), twin.PortGUID(f.PortGUID(p)), f.PortGUID(p), want)
			}
			if seen[g.PortGUID(q)] {
				t.Errorf("port GUID %s comes twice", g.PortGUID(q))
			}
			seen[g.PortGUID(q)] = true
			// The cable leads to the port with the same LID, or to the same
			// port of the same switch.
			a, z := f.Peer(p), g.Peer(q)
			if (a == fabric.NoPort) != (z == fabric.NoPort) {
				t.Fatalf("LID %d: cable %d, want %d", lid, z, a)
			}
			if a != fabric.NoPort && (f.Num(a) != g.Num(z) || f.LID(a) != g.LID(z)) {
				t.Errorf("LID %d: a cable to %s, want one to %s", lid, g.PortName(z), f.PortName(a))
			}
		}
		for guid := range fabric.GUID(1300) {
			short.Equal(t, seen[twin.PortGUID(guid)], known(f, guid), "an unused port GUID", guid, "becomes", twin.PortGUID(guid))
		}
		again := short.Must(NewTwin(g))(t)
		if !again.Same() {
			t.Error("the twin's twin has other GUIDs")
		}
		// ibsim must read it as it is.
		s, err := StartTwin(t.Context(), twin, Config{})
		if f.NumSwitches() == 0 {
			short.MustEqual(t, err, ErrNoSwitch, "no switch")
			return
		}
		short.Check(t, err)
		defer s.Close()
		nodes := map[string]bool{}
		short.Check(t, s.Console(t.Context(), "dump", func(line []byte) {
			if _, rest, ok := strings.Cut(string(line), `"`); ok && strings.Contains(rest, "nodeguid") {
				id, _, _ := strings.Cut(rest, `"`)
				nodes[id] = true
			}
		}))
		for n := range fabric.NodeID(g.NumNodes()) {
			if !nodes[twin.NodeID(n)] {
				t.Errorf("ibsim has no %s, only %v", twin.NodeID(n), nodes)
			}
		}
	})
}

func known(f *fabric.Fabric, g fabric.GUID) bool {
	for p := range fabric.PortID(f.NumPorts()) {
		if g != 0 && f.PortGUID(p) == g {
			return true
		}
	}
	return false
}

func TestTwinErrors(t *testing.T) {
	var b fabric.Builder
	for i := range 2 {
		n := short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(10 * (i + 1)), Type: fabric.CA, NumPorts: 1, Description: fmt.Sprint("host ", i)}))(t)
		short.Check(t, b.SetPort(n, 1, 77, 0, 0))
	}
	f := short.Must(b.Build())(t)
	if twin, err := NewTwin(f); twin != nil || err == nil || !strings.Contains(err.Error(), `"host 1"[1]`) {
		t.Errorf("a GUID on two ports: %v, %v", twin, err)
	}
}

func TestCentre(t *testing.T) {
	var b fabric.Builder
	// A row of 9 switches, and another of 4.
	for i := range 13 {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(100 + i), Type: fabric.Switch, NumPorts: 2}))(t)
		if i > 0 && i != 4 {
			short.Check(t, b.Connect(i-1, 1, i, 2, fabric.Link{}))
		}
	}
	f := short.Must(b.Build())(t)
	short.Equal(t, Centre(f), 4+4, "centre")
	short.Equal(t, Centre(&fabric.Fabric{}), fabric.NoNode, "centre of nothing")
}
