package subnet

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
)

// dial connects to a simulator, attached to a node, "" for the centre.
func dial(t testing.TB, s *ibsim.Sim, node string) *Client {
	t.Helper()
	conn := short.Must(s.Dial(t.Context(), node))(t)
	// A busy machine may take its time.
	c := New(conn, Options{Timeout: 10 * time.Second})
	t.Cleanup(func() {
		short.Check(t, c.Close())
	})
	return c
}

// ibnetdiscover gives the fabric that the real program finds.
func ibnetdiscover(t testing.TB, s *ibsim.Sim) *fabric.Fabric {
	t.Helper()
	var out bytes.Buffer
	cmd := s.Command(t.Context(), "ibnetdiscover", "-t", "10000")
	cmd.Stdout = &out
	short.Check(t, s.Run(t.Context(), cmd))
	f, _ := short.Must2(topology.Parse("ibnetdiscover", out.Bytes(), topology.Options{}))(t)
	return f
}

func sameFabric(t testing.TB, got, want *fabric.Fabric) {
	t.Helper()
	a, b := topology.Append(nil, got), topology.Append(nil, want)
	if bytes.Equal(a, b) {
		return
	}
	la, lb := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(la), len(lb)) {
		short.EqualList(t, la[i], lb[i], "line", i+1)
	}
	t.Fatalf("%d lines, want %d", len(la), len(lb))
}

// kinds has one fabric of every generator.
func kinds(t testing.TB) map[string]*fabric.Fabric {
	t.Helper()
	fabrics := make(map[string]*fabric.Fabric)
	add := func(name string, f *fabric.Fabric, err error) {
		t.Helper()
		if err == nil {
			f, err = lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs})
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		fabrics[name] = f
	}
	f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1})
	add("mesh", f, err)
	f, err = mesh.Generate(mesh.Spec{Dims: []int{3, 3, 3}, Wrap: []bool{true, true, true}, Hosts: 2})
	add("torus", f, err)
	f, err = mesh.Hypercube(4, 1)
	add("hypercube", f, err)
	f, err = gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	add("fattree", f, err)
	f, err = gen.Lattice(64, 7)
	add("lattice", f, err)
	f, err = gen.Irregular(gen.IrregularSpec{Switches: 30, Degree: 4, Hosts: 2, Seed: 5})
	add("irregular", f, err)
	f, err = banyan.Banyan(3, true)
	add("banyan", f, err)
	f, err = gen.Shufflenet(2, 3)
	add("shufflenet", f, err)
	f, err = gen.Myrinet4()
	add("myrinet4", f, err)
	f, err = odd()
	add("odd", f, err)
	return fabrics
}

// odd has what generators do not make: widths and speeds of all kinds, parallel
// cables, a cable from a switch to itself, a CA with two ports on two switches
// and one with a free port, a router, and more than one LID for a port.
func odd() (*fabric.Fabric, error) {
	var b fabric.Builder
	node := func(kind fabric.NodeType, guid fabric.GUID, ports fabric.PortNum, name string) int {
		i, err := b.AddNode(fabric.Node{Type: kind, GUID: guid, SystemGUID: guid, NumPorts: ports, Description: name, VendorID: 0x2c9, DeviceID: 0xd2f0})
		if err != nil {
			panic(err)
		}
		return i
	}
	a, z := node(fabric.Switch, 0x900, 40, "a; switch"), node(fabric.Switch, 0x300, 8, "z")
	two, one, router := node(fabric.CA, 0x10, 2, "two ports"), node(fabric.CA, 0x800, 4, "one port of four"), node(fabric.Router, 0x500, 2, "out")
	err := errors.Join(
		b.Connect(a, 1, z, 1, fabric.Link{Width: 4, Speed: fabric.HDR}),
		b.Connect(a, 40, z, 2, fabric.Link{Width: 12, Speed: fabric.EDR}),
		b.Connect(a, 7, z, 8, fabric.Link{Width: 1, Speed: fabric.FDR}),
		b.Connect(a, 20, a, 22, fabric.Link{Width: 4, Speed: fabric.FDR10}),
		b.Connect(a, 2, two, 1, fabric.Link{Width: 8, Speed: fabric.QDR}),
		b.Connect(z, 3, two, 2, fabric.Link{Width: 4, Speed: fabric.DDR}),
		b.Connect(z, 4, one, 3, fabric.Link{Width: 4, Speed: fabric.SDR}),
		b.Connect(z, 5, router, 1, fabric.Link{Width: 4, Speed: fabric.SDR}),
	)
	if err != nil {
		return nil, err
	}
	return b.Build()
}

// Where it starts, and how many LIDs ports have, changes nothing.
func TestDiscoverOdd(t *testing.T) {
	f := short.Must(odd())(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: 2}))(t)
	s, twin := ibsimtest.Start(t, f)
	openSM(t, s, ibsim.OpenSMConfig{LMC: 2})
	want := ibnetdiscover(t, s)
	for n := range fabric.NodeID(twin.Fabric.NumNodes()) {
		// Clients are at the first port of a CA: it must have a cable.
		if p := twin.Fabric.Port(n, 1); twin.Fabric.Peer(p) == fabric.NoPort {
			continue
		}
		c := dial(t, s, twin.NodeID(n))
		d := short.Must(c.Discover(t.Context()))(t)
		if len(d.Problems) > 0 {
			t.Errorf("from node %d: %v", n, d.Problems)
		}
		sameFabric(t, d.Fabric, want)
		short.Equal(t, d.Fabric.LMC(d.Fabric.CAPorts()[0]), 2, "LMC")
		short.Check(t, c.Close())
	}
}

func TestDiscover(t *testing.T) {
	kinds := kinds(t)
	for _, name := range short.Keys(kinds, "mesh", "fattree", "irregular") {
		f := kinds[name]
		t.Run(name, func(t *testing.T) {
			s, _ := ibsimtest.Start(t, f)
			want := ibnetdiscover(t, s)
			c := dial(t, s, "")
			began := time.Now()
			d := short.Must(c.Discover(t.Context()))(t)
			t.Logf("%d requests in %v", d.Requests, time.Since(began))
			if len(d.Problems) > 0 {
				t.Errorf("problems: %v", d.Problems)
			}
			sameFabric(t, d.Fabric, want)
		})
	}
}
