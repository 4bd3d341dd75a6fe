package gen_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/mesh"
)

// Each switch of any kind gets one aggregation node, on a new last port, and all else stays.
func TestAggregationNodes(t *testing.T) {
	for _, s := range shapes() {
		if s.switches > 200 {
			continue
		}
		f, err := s.make()
		if err != nil {
			t.Fatal(err)
		}
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
		if len(systems) != s.switches {
			t.Errorf("%s: %d systems of %d switches", s.name, len(systems), s.switches)
		}
		var kept []string // without the cables of aggregation nodes
		for _, line := range wiring(g) {
			if !strings.Contains(line, gen.AggregationNode) {
				kept = append(kept, line)
			}
		}
		if diff := cmp.Diff(wiring(f), kept); diff != "" {
			t.Errorf("%s: cables (-want +got):\n%s", s.name, diff)
		}
	}
}

func TestOptionsErrors(t *testing.T) {
	wide, err := mesh.Generate(mesh.Spec{Dims: []int{2, 2}, Hosts: 250})
	if err != nil {
		t.Fatal(err)
	}
	many, err := irregular(16000, 2, 18000, 1)()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		f    *fabric.Fabric
		o    gen.Options
		want string
	}{
		{wide, gen.Options{AggregationNodes: true}, "an aggregation node on switch 0,0, which has 254 ports: want at most 253 and one more"},
		{many, gen.Options{AggregationNodes: true}, "16000 switches and 34000 ports of channel adapters: want at most 49151 together"},
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
