package gen_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
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

// Planes are copies of the fabric that share systems and adapters: each cable is there once
// for each plane, between chips of the plane or a chip and the plane's port of an adapter.
func TestPlanes(t *testing.T) {
	const planes = 4
	for _, s := range shapes() {
		if s.switches > 200 {
			continue
		}
		f, err := s.make()
		if err != nil {
			t.Fatal(err)
		}
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
				if want := (fabric.Link{Width: 1, Speed: fabric.QDR}); g.Link(p) != want {
					t.Errorf("%s: a lane is %s, want %s", s.name, g.Link(p), want)
				}
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: cables (-want +got):\n%s", s.name, diff)
		}
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
	f, err := gen.Tree(gen.TreeSpec{Ports: 8, Pods: []int{3}, Hosts: 2, Spines: 2, Directors: true})
	if err != nil {
		t.Fatal(err)
	}
	if f, err = (gen.Options{Planes: planes, AggregationNodes: true}).Apply(f); err != nil {
		t.Fatal(err)
	}
	if got := systems(f); len(got) != 1 || len(got[0]) != 5*planes {
		t.Errorf("systems %v, want one of 20 chips", got)
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
	two, err := banyan.Banyan(2, true) // adapters of two ports
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
