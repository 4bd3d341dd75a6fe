package subnet

import (
	"bytes"
	"testing"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/minnet"
	"github.com/ibweave/ibweave/myrinet"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// start runs ibsim on a fabric.
func start(t testing.TB, f *fabric.Fabric) (*ibsim.Sim, *ibsim.Twin) {
	t.Helper()
	twin, err := ibsim.NewTwin(f)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ibsim.StartTwin(t.Context(), twin, ibsim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, twin
}

// dial connects to a simulator, attached to a node, "" for the centre.
func dial(t testing.TB, s *ibsim.Sim, node string) *Client {
	t.Helper()
	conn, err := s.Dial(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine may take its time.
	c := New(conn, Options{Timeout: 10 * time.Second})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// ibnetdiscover gives the fabric that the real program finds.
func ibnetdiscover(t testing.TB, s *ibsim.Sim) *fabric.Fabric {
	t.Helper()
	var out bytes.Buffer
	cmd := s.Command(t.Context(), "ibnetdiscover", "-t", "10000")
	cmd.Stdout = &out
	if err := s.Run(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	f, _, err := topology.Parse("ibnetdiscover", out.Bytes(), topology.Options{})
	if err != nil {
		t.Fatal(err)
	}
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
		if !bytes.Equal(la[i], lb[i]) {
			t.Fatalf("line %d is\n%s\nwant\n%s", i+1, la[i], lb[i])
		}
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
	f, err = minnet.Banyan(3, true)
	add("banyan", f, err)
	f, err = myrinet.Shufflenet(2, 3)
	add("shufflenet", f, err)
	f, err = myrinet.Four()
	add("myrinet4", f, err)
	return fabrics
}

func TestDiscover(t *testing.T) {
	for name, f := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			s, _ := start(t, f)
			want := ibnetdiscover(t, s)
			c := dial(t, s, "")
			began := time.Now()
			d, err := c.Discover(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d requests in %v", d.Requests, time.Since(began))
			if len(d.Problems) > 0 {
				t.Errorf("problems: %v", d.Problems)
			}
			sameFabric(t, d.Fabric, want)
		})
	}
}
