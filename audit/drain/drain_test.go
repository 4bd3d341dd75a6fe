package drain_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// drawFabric makes a damaged tree or an irregular fabric.
func drawFabric(t *testing.T, rnd *rand.Rand) *fabric.Fabric {
	t.Helper()
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2 + rnd.IntN(2)})
	if rnd.IntN(3) == 0 {
		f, err = gen.Irregular(gen.IrregularSpec{Switches: 8, Degree: 3, Hosts: 16, Seed: rnd.Uint64()})
	}
	if err == nil {
		f, err = gen.DropLinks(f, rnd.IntN(4), rnd.Uint64())
	}
	short.Check(t, err)
	if rnd.IntN(2) == 0 {
		f = pairHosts(t, f)
	}
	called := make(map[fabric.GUID]string)
	for n := f.NumSwitches(); n < f.NumNodes(); n++ {
		called[f.Node(fabric.NodeID(n)).GUID] = fmt.Sprintf("n%d", n)
	}
	return f.WithNames(called)
}

// pairHosts makes hosts with two ports, mostly on different switches, of hosts with one.
func pairHosts(t *testing.T, f *fabric.Fabric) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	at := make([]int, f.NumNodes())
	num := make([]fabric.PortNum, f.NumNodes()) // added to a port's
	hosts := f.NumNodes() - f.NumSwitches()
	for n := range f.NumNodes() {
		node := *f.Node(fabric.NodeID(n))
		if i := n - f.NumSwitches(); i >= 0 && i >= (hosts+1)/2 {
			at[n], num[n] = at[n-(hosts+1)/2], 1
			continue
		} else if i >= 0 {
			node.NumPorts = 2
		}
		var err error
		if at[n], err = b.AddNode(node); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range f.Cables() {
		x, y := f.Owner(c.A), f.Owner(c.B)
		short.Check(t, b.Connect(at[x], f.Num(c.A)+num[x], at[y], f.Num(c.B)+num[y], c.Link))
	}
	return short.Must(b.Build())(t)
}

// byLastDigit groups hosts by their last digits, and leaves some in no group.
func byLastDigit(t *testing.T, f *fabric.Fabric) *groups.Set {
	t.Helper()
	file := short.Must(groups.Read("groups", func(string) ([]byte, error) { return []byte("digit: re:([0-5])$"), nil }))(t)
	return short.Must(file.In(f))(t)
}

// drawParts draws cables and switches with all that hangs on them.
func drawParts(f *fabric.Fabric, rnd *rand.Rand) (parts []drain.Part) {
	for i := range 1 + rnd.IntN(4) {
		s := fabric.NodeID(rnd.IntN(f.NumSwitches()))
		p := drain.Part{Name: fmt.Sprint("part ", i)}
		ports, _ := f.SwitchLinks(s)
		if rnd.IntN(2) == 0 && len(ports) > 0 {
			p.Cables = []fabric.PortID{ports[rnd.IntN(len(ports))]}
		} else {
			p.Nodes, p.Cables = []fabric.NodeID{s}, slices.Clone(ports)
			for _, host := range f.HostsOn(s) {
				p.Cables, p.Nodes = append(p.Cables, host), append(p.Nodes, f.Owner(host))
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// TestPlans makes plans for random parts of random fabrics, and follows every pair in every
// state: only packets of drained hosts go through what is drained, all arrive, loads, those of groups
// of hosts too, and limits are as the plan says, and what the plan refuses is in no window.
func TestPlans(t *testing.T) {
	engines := []string{"updn", "layered", "minhop", "fattree"}
	drained, refused, windows := 0, 0, 0
	for seed := range uint64(short.Of(60, 12)) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		f := drawFabric(t, rnd)
		e := short.Must(compile.EngineByName(engines[seed%4]))(t)
		base, err := compile.Run(context.Background(), f, e, compile.Options{LIDs: lft.LIDOptions{Policy: lft.DenseLIDs}})
		if err != nil || base.Verify.Verdict == verify.VerdictErrors {
			continue // not for this engine
		}
		f = base.Routing.Fabric
		parts := drawParts(f, rnd)
		byName := make(map[string]*drain.Part)
		for i := range parts {
			byName[parts[i].Name] = &parts[i]
		}
		limit := float64(rnd.IntN(2)) * (1 + rnd.Float64())
		set := byLastDigit(t, f)
		plan, err := drain.Make(context.Background(), base, compile.Options{}, parts, drain.Options{Limit: limit})
		if err == nil {
			err = plan.AddGroups(context.Background(), base, set)
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		seen := 0
		for _, w := range plan.Windows {
			windows++
			now := follower{f: f, set: set, nodes: make(map[fabric.NodeID]bool), cables: make(map[fabric.PortID]bool)}
			for i := range w.Steps {
				s := &w.Steps[i]
				seen++
				now.drain(byName[s.Part])
				now.follow(t, seed, s)
				if limit > 0 && s.Factor > limit {
					t.Errorf("seed %d: factor %v above the limit %v", seed, s.Factor, limit)
				}
				if s.Drain.Entries != s.Back.Entries || s.Verdict == verify.VerdictErrors {
					t.Errorf("seed %d: %+v", seed, s)
				}
			}
		}
		short.Equal(t, seen+len(plan.Refused), len(parts), "seed", seed, seen, "drained and", len(plan.Refused), "refused")
		for _, r := range plan.Refused {
			short.Equal(t, cutsOff(f, byName[r.Part]), strings.HasPrefix(r.Reason, "cuts off"), "seed", seed, r.Part, r.Reason, "the cables say")
		}
		drained, refused = drained+seen, refused+len(plan.Refused)
	}
	if drained < 10 || refused == 0 || windows >= drained {
		t.Errorf("%d drained in %d windows, %d refused: the draw is too narrow", drained, windows, refused)
	}
}

// cutsOff returns true if hosts that stay are cut off from each other without a part.
func cutsOff(f *fabric.Fabric, p *drain.Part) bool {
	rest := f.Without(p.Cables...)
	seen := make(map[int32]bool)
	for _, c := range rest.CAPorts() {
		if s := rest.PeerSwitch(c); s != fabric.NoNode {
			seen[rest.Components().Of[s]] = true
		} else if !slices.Contains(p.Nodes, rest.Owner(c)) {
			return true
		}
	}
	return len(seen) > 1
}

// follower follows packets while parts are drained.
type follower struct {
	f      *fabric.Fabric
	nodes  map[fabric.NodeID]bool
	cables map[fabric.PortID]bool // both ends
	set    *groups.Set
}

func (x *follower) drain(p *drain.Part) {
	for _, n := range p.Nodes {
		x.nodes[n] = true
	}
	for _, c := range p.Cables {
		x.cables[c], x.cables[x.f.Peer(c)] = true, true
	}
}

// follow follows all pairs, and counts the routes of those that stay when all is unplugged.
func (x *follower) follow(t *testing.T, seed uint64, s *drain.Step) {
	t.Helper()
	f, tables := x.f, s.Compiled.Routing.Tables
	routes := make(map[fabric.PortID]int64)
	most := int64(0)
	for _, src := range f.CAPorts() {
		for _, dst := range f.CAPorts() {
			if src == dst {
				continue
			}
			path, err := tables.Path(f, src, f.LID(dst), nil)
			if err != nil {
				t.Fatalf("seed %d, %s: with all cables in: %v", seed, s.Part, err)
			}
			if x.cables[src] || x.cables[dst] {
				continue
			}
			for _, c := range path {
				if x.cables[c] {
					t.Fatalf("seed %d: a packet goes through %s, and %s is drained", seed, f.PortName(c), s.Part)
				}
				if f.IsSwitch(f.Owner(c)) && f.PeerSwitch(c) != fabric.NoNode {
					routes[c]++
					most = max(most, routes[c])
				}
			}
		}
	}
	short.Equal(t, most, s.MaxRoutes, "seed", seed, s.Part, "routes on the busiest cable, the plan")
	for i, g := range x.set.Groups {
		if g.Name == groups.NoGroup && len(g.Hosts) == 0 {
			continue
		}
		uplinks, most := 0, int64(0)
		for _, p := range g.Uplinks {
			if !x.cables[p] {
				uplinks++
				most = max(most, routes[p], routes[f.Peer(p)])
			}
		}
		if got := s.Groups[i]; got.Group != g.Name || got.Uplinks != uplinks || got.MaxRoutes != most || got.Lost != 0 {
			t.Errorf("seed %d, %s: group %s has %d uplinks with %d routes at most, the plan says %+v with %+v", seed, s.Part, g.Name, uplinks, most, got, got.Traffic)
		}
	}
}
