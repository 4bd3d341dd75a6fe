package compile_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// TestHostPorts routes trees whose hosts have ports on several leaves, whole and with cables gone: from no leaf do the paths to
// two ports of a host meet in a spine where a cable leads to another spine that leads to the port and has not the greatest load. The
// greatest load is that of the engine itself, shifts meet as rarely in the mean, and one path in a hundred at most shares a spine though some other
// has no port of the host.
func TestHostPorts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(45, 9))
	looked, shared := 0, 0
	was, is := map[string]float64{}, map[string]float64{}
	for range short.Of(60, 12) {
		rails := 2 + rnd.IntN(2)
		f := short.Must(gen.Tree(gen.TreeSpec{Ports: 40, Pods: []int{2 + rnd.IntN(3)}, Rails: rails, Hosts: 4 + rnd.IntN(8), Spines: 4 + rnd.IntN(5)}))(t)
		f = short.Must(lft.AssignLIDs(short.Must(gen.Options{Names: "site"}.Apply(f))(t), lft.LIDOptions{}))(t)
		var gone []fabric.PortID
		for range rnd.IntN(4) {
			gone = append(gone, f.Channels()[rnd.IntN(len(f.Channels()))])
		}
		f = f.Without(gone...)
		for _, name := range []string{"fattree", "updn", "layered"} {
			e := engine(t, name)
			r := short.Must(compile.Run(t.Context(), f, e, compile.Options{}))(t)
			short.Equal(t, r.Verify.Verdict, "clean", name)
			plain := short.Must(e.Route(t.Context(), f, lft.Options{}))(t)
			short.Equal(t, lft.GreatestLoad(f, r.Routing.Tables), lft.GreatestLoad(f, plain.Tables), name, "the greatest load", "and")
			for _, x := range []struct {
				sum map[string]float64
				r   *lft.Routing
			}{{was, plain}, {is, r.Routing}} {
				x.sum[name] += short.Must(quality.Measure(t.Context(), f, x.r.Tables, quality.Options{CAOrder: x.r.CAOrder, Shifts: quality.DefaultShifts}))(t).Shifts.Contention
			}
			loads := short.Must(lft.ChannelLoads(t.Context(), f, r.Routing.Tables))(t)
			most := int64(0)
			for _, p := range f.Channels() {
				most = max(most, loads[p])
			}
			for _, ports := range lft.HostPorts(f) {
				short.MustEqual(t, len(ports), rails, "a host with", "ports")
				for leaf := range fabric.NodeID(f.NumSwitches()) {
					hosts := int64(len(f.HostsOn(leaf)))
					count := map[fabric.NodeID]int{} // of ports behind each spine
					at := make(map[fabric.PortID]fabric.NodeID)
					for _, p := range ports {
						if hosts > 0 && f.PeerSwitch(p) != leaf {
							_, peer := r.Routing.Tables.Step(f, leaf, f.LID(p))
							at[p] = f.Owner(peer)
							count[at[p]]++
							looked++
						}
					}
					ups, spines := f.SwitchLinks(leaf)
					for p, by := range at {
						if count[by] > 1 && slices.ContainsFunc(spines, func(s fabric.NodeID) bool { return count[s] == 0 }) {
							shared++
						}
						if slices.ContainsFunc(spines, func(s fabric.NodeID) bool {
							_, peer := r.Routing.Tables.Step(f, s, f.LID(p))
							return f.Owner(peer) == leaf
						}) {
							continue // another switch sends by the leaf
						}
						for k, spine := range spines {
							downs, below := f.SwitchLinks(spine)
							for m, down := range downs {
								if count[by] > 1 && below[m] == f.PeerSwitch(p) && count[spine] == 0 && loads[ups[k]]+hosts <= most && loads[down]+hosts <= most {
									t.Errorf("%s: %s shares %s with another port of its host for %s, and %s is free", name, f.PortName(p), f.Name(by), f.Name(leaf), f.Name(spine))
								}
							}
						}
					}
				}
			}
		}
	}
	if 100*shared > looked {
		t.Errorf("%d of %d paths share a spine", shared, looked)
	}
	t.Logf("%d of %d paths to ports of hosts share a spine; shifts %v, and were %v", shared, looked, is, was)
	for name := range is {
		if looked == 0 || is[name] > 1.02*was[name] {
			t.Errorf("%s: shifts meet %.2f times, and did %.2f", name, is[name], was[name])
		}
	}
}
