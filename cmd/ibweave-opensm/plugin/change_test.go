package plugin

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
)

// TestChangeLines makes each kind of change of a subnet, and wants its cause, what it did and why
// in the line of OpenSM's log, and in ours.
func TestChangeLines(t *testing.T) {
	f, err := gen.Tree(gen.TreeSpec{Ports: 40, Pods: []int{4}, Hosts: 4, Spines: 3, Parallel: 2})
	f = withLIDs(t, f, err)
	o := open(t, "")
	last := func(s *Snapshot) string {
		t.Helper()
		got := short.Must(o.Route(o.engine("updn"), s))(t)
		o.Written(got)
		o.SubnetUp()
		o.last.Wait()
		o.mu.Lock()
		defer o.mu.Unlock()
		i := len(o.lines) - 1
		for !strings.Contains(o.lines[i], " routes on a link") {
			i--
		}
		return o.lines[i]
	}
	take := func(g *fabric.Fabric) *Snapshot { return snapshotOf(g, rand.New(rand.NewPCG(1, 2))) }
	want := func(line string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(line, text) {
				t.Errorf("no %q in %q", text, line)
			}
		}
	}
	if line := last(take(f)); strings.Contains(line, "lost") || strings.Contains(line, "new") {
		t.Errorf("at the start: %q", line)
	}
	if line := last(take(f)); strings.Contains(line, "; ") {
		t.Errorf("without a change: %q", line)
	}
	cables, _ := f.SwitchLinks(0)
	cable := f.PortName(cables[1]) + " to " + f.PortName(f.Peer(cables[1]))
	if f.Peer(cables[1]) < cables[1] {
		cable = f.PortName(f.Peer(cables[1])) + " to " + f.PortName(cables[1])
	}
	want(last(take(f.Without(cables[1]))), "; lost cable "+cable+"; ", " LIDs rerouted, ", " blocks changed")
	want(o.ownLog(t), `"lost": ["cable `, `"max_routes_before": `, `"unreachable": 0`)
	want(last(take(f)), "; new cable "+cable)
	spine := f.Owner(f.Peer(cables[0]))
	out, _ := f.SwitchLinks(spine)
	want(last(take(f.Without(out[:5]...))), "; lost cable ", " and 2 more; ")
	want(last(take(f)), "; new ")
	host := f.Owner(f.CAPorts()[2])
	without := take(f)
	i := slices.IndexFunc(without.Nodes, func(n Node) bool { return n.GUID == f.Node(host).GUID })
	want(last(withoutNode(without, i)), "; lost host "+f.Name(host).String()+"; ")
	want(last(take(f)), "; new host "+f.Name(host).String())
	i = slices.IndexFunc(without.Nodes, func(n Node) bool { return n.GUID == f.Node(spine).GUID })
	want(last(withoutNode(take(f), i)), "; lost switch "+f.Name(spine).String())
	want(last(take(f)), "; new switch "+f.Name(spine).String())
	spineAt := i
	moved := take(f)
	i = slices.IndexFunc(moved.Nodes, func(n Node) bool { return n.GUID == f.Node(host).GUID })
	moved.portsOf(i)[1].LID = f.MaxLID() + 3
	moved.MaxLID = f.MaxLID() + 3
	want(last(moved), "; 1 port has another LID; 1 LID rerouted, ")
	o = open(t, "")
	last(withoutNode(take(f), spineAt))
	want(last(take(f)), "; new switch ", "; routed from scratch, as the change is too large, or has new switches", " blocks changed")
}

// withoutNode takes a node out of a snapshot.
func withoutNode(s *Snapshot, i int) *Snapshot {
	c := copied(s)
	for k := range c.Ports {
		switch p := &c.Ports[k]; {
		case int(p.Peer) == i:
			p.Peer = -1
		case int(p.Peer) > i:
			p.Peer--
		}
	}
	c.Nodes = slices.Delete(c.Nodes, i, i+1)
	return c
}

// TestOwnSweeps wants a plugin that asks for sweeps by itself until the loads are near those from
// scratch, and for none more.
func TestOwnSweeps(t *testing.T) {
	f, err := gen.Tree(gen.TreeSpec{Ports: 64, Pods: []int{20}, Hosts: 16, Spines: 8, Parallel: 2})
	f = withLIDs(t, f, err)
	o := open(t, "rebalance: 1.05\n")
	asked := make(chan bool, 1)
	o.host.Sweep = func() { asked <- true }
	route := func(g *fabric.Fabric) *Tables {
		t.Helper()
		got := short.Must(o.Route(o.engine("updn"), snapshotOf(g, rand.New(rand.NewPCG(1, 2)))))(t)
		o.Written(got)
		o.SubnetUp()
		return got
	}
	quiet := func() bool {
		for {
			select {
			case <-asked:
				return false
			default:
			}
			o.routing.Lock()
			done := o.watched == nil
			o.routing.Unlock()
			if done {
				return len(asked) == 0
			}
		}
	}
	route(f)
	if !quiet() {
		t.Error("a sweep without a change")
	}
	cables, _ := f.SwitchLinks(3)
	g := f.Without(cables[0], cables[5])
	route(g)
	steps, still := 0, 0
	for ; !quiet() && steps < 50; steps++ {
		if got := route(g); !got.Rebalanced {
			still++
		}
	}
	if steps == 0 || steps == 50 || still > 1 {
		t.Errorf("%d sweeps, of which %d move nothing", steps, still)
	}
}
