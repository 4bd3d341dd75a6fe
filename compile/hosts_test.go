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
// two ports of a host meet in a spine where a cable leads to another spine that leads to the port and has not the greatest load, or that
// the leaf can exchange for the first one with another port. The greatest load is that of the engine itself, shifts meet as rarely in the mean, within
// a hundredth, and one path in a thousand at most shares a spine though some other has no port of the host.
func TestHostPorts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(45, 9))
	looked, shared := 0, 0
	was, is := map[string]float64{}, map[string]float64{}
	bandwidth := map[string]float64{} // the difference of the sums
	for i := range short.Of(short.Usual(90, 30), 18) {
		parallel := 1 + i%3/2 // cables that the greatest load fills keep more apart from each other
		rails := 2 + rnd.IntN(2)
		f := short.Must(gen.Tree(gen.TreeSpec{Ports: 40, Pods: []int{2 + rnd.IntN(3)}, Rails: rails, Hosts: 4 + rnd.IntN(8), Spines: 4 + rnd.IntN(5), Parallel: parallel}))(t)
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
				sum  map[string]float64
				r    *lft.Routing
				sign float64
			}{{was, plain, 0.99}, {is, r.Routing, -1}} {
				shifts := short.Must(quality.Measure(t.Context(), f, x.r.Tables, quality.Options{CAOrder: x.r.CAOrder, Shifts: quality.DefaultShifts}))(t).Shifts
				x.sum[name] += shifts.Contention
				bandwidth[name] += x.sign * shifts.Bandwidth
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
							looked += 2 - parallel
						}
					}
					ups, spines := f.SwitchLinks(leaf)
					for p, by := range at {
						if count[by] > 1 {
							if q := exchangeable(f, r.Routing.Tables, loads, most, leaf, p, ports); q != fabric.NoPort {
								t.Errorf("%s: %s shares %s with another port of its host for %s, which could exchange it with %s", name, f.PortName(p), f.Name(by), f.Name(leaf), f.PortName(q))
							}
						}
						if count[by] > 1 && slices.ContainsFunc(spines, func(s fabric.NodeID) bool { return count[s] == 0 }) {
							shared += 2 - parallel
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
	if 1000*shared > looked {
		t.Errorf("%d of %d paths share a spine", shared, looked)
	}
	t.Logf("%d of %d paths to ports of hosts share a spine; shifts %v, and were %v", shared, looked, is, was)
	for name := range is {
		if looked == 0 || is[name] > 1.01*was[name] || bandwidth[name] > 0 {
			t.Errorf("%s: shifts meet %.2f times, and did %.2f; their bandwidth is less than 99 %% of that by %.3f", name, is[name], was[name], bandwidth[name])
		}
	}
}

// exchangeable finds a port to which a leaf can send by the spine that it sends to p by, and to p by that port's, so that fewer
// ports of hosts share a spine and no channel has more than the greatest load; NoPort for none. Paths to the other ports of p's host stay.
func exchangeable(f *fabric.Fabric, tables *lft.Tables, loads []int64, most int64, leaf fabric.NodeID, p fabric.PortID, host []fabric.PortID) fabric.PortID {
	spineOf := func(p fabric.PortID) fabric.NodeID {
		_, peer := tables.Step(f, leaf, f.LID(p))
		return f.Owner(peer)
	}
	down := func(spine fabric.NodeID, p fabric.PortID) fabric.PortID {
		out, peer := tables.Step(f, spine, f.LID(p))
		if peer == fabric.NoPort || f.Owner(peer) != f.PeerSwitch(p) {
			return fabric.NoPort
		}
		return out
	}
	uses := func(host []fabric.PortID, but fabric.PortID, spine fabric.NodeID) bool {
		return slices.ContainsFunc(host, func(q fabric.PortID) bool { return q != but && f.PeerSwitch(q) != leaf && spineOf(q) == spine })
	}
	sources := int64(len(f.HostsOn(leaf)))
	from := spineOf(p)
	for _, other := range lft.HostPorts(f) {
		for _, q := range other {
			if f.PeerSwitch(q) == leaf || slices.Contains(host, q) {
				continue
			}
			to := spineOf(q)
			downP, downQ := down(to, p), down(from, q)
			if to == from || downP == fabric.NoPort || downQ == fabric.NoPort || uses(host, p, to) || uses(other, q, from) {
				continue
			}
			if (downP == down(to, q) || loads[downP]+sources <= most) && (downQ == down(from, p) || loads[downQ]+sources <= most) {
				return q
			}
		}
	}
	return fabric.NoPort
}

// TestRailShifts cuts cables of trees with eight rails, two cables to each spine: to part the paths to ports of
// hosts costs shifts at most a hundredth of their bandwidth and of the times that routes meet, in each tree.
func TestRailShifts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 12))
	for range short.Of(short.Usual(3, 1), 1) {
		f := short.Must(gen.Tree(gen.TreeSpec{Ports: 64, Pods: []int{4}, Rails: 8, Hosts: short.Of(16, 4), Spines: 8, Parallel: 2}))(t)
		f = short.Must(lft.AssignLIDs(short.Must(gen.Options{Names: "site"}.Apply(f))(t), lft.LIDOptions{}))(t)
		var gone []fabric.PortID
		for range 12 {
			gone = append(gone, f.Channels()[rnd.IntN(len(f.Channels()))])
		}
		f = f.Without(gone...)
		for _, name := range []string{"fattree", "updn"} {
			e := engine(t, name)
			parted := short.Must(compile.Run(t.Context(), f, e, compile.Options{}))(t).Routing
			plain := short.Must(e.Route(t.Context(), f, lft.Options{}))(t)
			measure := func(r *lft.Routing) *quality.Shifts {
				return short.Must(quality.Measure(t.Context(), f, r.Tables, quality.Options{CAOrder: r.CAOrder, Shifts: quality.DefaultShifts}))(t).Shifts
			}
			is, was := measure(parted), measure(plain)
			if is.Bandwidth < 0.99*was.Bandwidth || is.Contention > 1.01*was.Contention {
				t.Errorf("%s: bandwidth of shifts %.4f, routes meet %.4f times; want about %.4f and %.4f", name, is.Bandwidth, is.Contention, was.Bandwidth, was.Contention)
			}
		}
	}
}
