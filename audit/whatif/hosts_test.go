package whatif

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// TestLostHosts has cables and switches of trees fail whose hosts have ports on several leaves, by name, system image GUID
// or adapter. The hosts that lose all ports are those to which no packet of another host arrives, which follow each of
// the old entries from port to port, and those that a search by cables does not find.
func TestLostHosts(t *testing.T) {
	away, cutOff := 0, 0
	for seed := range uint64(short.Of(40, 8)) {
		rng := rand.New(rand.NewPCG(seed, 45))
		f := short.Must(gen.Tree(gen.TreeSpec{Ports: 40, Pods: []int{2 + rng.IntN(2)}, Rails: 2, Hosts: 2 + rng.IntN(4), Spines: 1 + rng.IntN(4)}))(t)
		if seed%4 == 3 {
			f = short.Must(twoPorts(rng.IntN(3)))(t)
		} else {
			f = short.Must(gen.Options{Names: "site"}.Apply(f))(t)
		}
		for range rng.IntN(3) {
			f = f.Without(f.Channels()[rng.IntN(len(f.Channels()))])
		}
		opt := compile.Options{LIDs: lft.LIDOptions{LMC: rng.IntN(2)}}
		e := short.Must(compile.EngineByName([]string{"updn", "fattree", "minhop"}[rng.IntN(3)]))(t)
		base, err := compile.Run(t.Context(), f, e, opt)
		if err != nil {
			continue // no tree
		}
		f = base.Routing.Fabric
		got := run(t, base, opt, Options{Kind: []string{Links, Switches}[seed%2], Depth: 1 + rng.IntN(2), Sample: 60, Seed: seed})
		for i := range got.Cases {
			c := &got.Cases[i]
			want := slowLostHosts(base.Routing, f.Without(cablesOf(t, f, c)...))
			var is LostHosts
			if c.Hosts != nil {
				is = *c.Hosts
			}
			if d := cmp.Diff(want, is); d != "" {
				t.Errorf("seed %d, %s, %s:\n%s", seed, e.Name(), c.Names(), d)
			}
			away, cutOff = away+len(is.UntilWritten), cutOff+len(is.CutOff)
		}
	}
	if away == 0 || cutOff == 0 || away == cutOff {
		t.Errorf("%d hosts away and %d cut off: too few", away, cutOff)
	}
}

// twoPorts is a tree of two levels whose hosts have one adapter with ports on two leaves, or both on one.
func twoPorts(spines int) (*fabric.Fabric, error) {
	p, err := gen.NewPlan(6+spines, 6)
	if err != nil {
		return nil, err
	}
	for s := range 6 + spines {
		p.Switch(16, "switch "+string(rune('a'+s)))
	}
	for leaf := range 4 {
		for s := range 2 + spines {
			p.Cable(leaf, 9+s, 4+s, 1+leaf)
		}
	}
	for h := range 6 {
		ca := p.CA(2, "localhost")
		p.Cable(ca, 1, h%4, 1+h/4)
		p.Cable(ca, 2, (h+h%2)%4, 3+h/4+2*(h%2))
	}
	return p.Fabric()
}

// slowLostHosts looks at every pair of a port and a port of another host.
func slowLostHosts(r *lft.Routing, g *fabric.Fabric) (x LostHosts) {
	f := r.Fabric
	walk := func(g *fabric.Fabric, src, dst fabric.PortID) bool {
		for lid := range f.LIDs(dst) {
			at := g.Peer(src)
			for hops := 0; at != fabric.NoPort && at != dst && g.IsSwitch(g.Owner(at)) && hops < 99; hops++ {
				num := r.Tables.Row(g.Owner(at))[lid]
				if num == 0 || num > g.Node(g.Owner(at)).NumPorts {
					break
				}
				at = g.Peer(g.Port(g.Owner(at), num))
			}
			if at == dst {
				return true
			}
		}
		return false
	}
	ofHost := lft.HostPorts(f)
	for _, ports := range ofHost {
		var called string
		for n := range fabric.NodeID(f.NumNodes()) {
			if n == f.Owner(ports[0]) {
				called = f.Name(n).String()
			}
		}
		if host, _, ok := hostOf(f.Name(f.Owner(ports[0])).Text); ok {
			called = host
		}
		lost := slices.ContainsFunc(f.CAPorts(), func(src fabric.PortID) bool {
			reaches := func(g *fabric.Fabric) bool {
				return slices.ContainsFunc(ports, func(dst fabric.PortID) bool { return walk(g, src, dst) })
			}
			return !slices.Contains(ports, src) && g.Peer(src) != fabric.NoPort && reaches(f) && !reaches(g)
		})
		if lost {
			x.UntilWritten = append(x.UntilWritten, called)
		}
		if !largest(f, ports) {
			continue
		}
		if !largest(g, ports) {
			x.CutOff = append(x.CutOff, called)
		}
	}
	return x
}

func hostOf(text string) (host, adapter string, ok bool) {
	for i := range text {
		if text[i] == ' ' {
			return text[:i], text[i+1:], text[:i] != "localhost"
		}
	}
	return "", "", false
}

// largest searches from each switch, and reports whether one of some ports is on a part with at least half as many ports of
// CAs as the part with most.
func largest(g *fabric.Fabric, ports []fabric.PortID) bool {
	size := func(from fabric.NodeID) (n int) {
		seen, list := map[fabric.NodeID]bool{from: true}, []fabric.NodeID{from}
		for len(list) > 0 {
			s := list[0]
			list = list[1:]
			for num := range g.Node(s).NumPorts {
				switch peer := g.Peer(g.Port(s, num+1)); {
				case peer == fabric.NoPort:
				case !g.IsSwitch(g.Owner(peer)):
					n++
				case !seen[g.Owner(peer)]:
					seen[g.Owner(peer)] = true
					list = append(list, g.Owner(peer))
				}
			}
		}
		return n
	}
	most := 0
	for s := range fabric.NodeID(g.NumSwitches()) {
		most = max(most, size(s))
	}
	return slices.ContainsFunc(ports, func(p fabric.PortID) bool {
		return g.Peer(p) != fabric.NoPort && 2*size(g.Owner(g.Peer(p))) >= most
	})
}
