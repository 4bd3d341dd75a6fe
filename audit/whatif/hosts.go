package whatif

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/lft"
)

// LostHosts names the hosts with several ports that lose all of them at once by a failure.
type LostHosts struct {
	// UntilWritten lists hosts that are lost until the subnet manager has written its tables:
	// some switch with other hosts reached a port of theirs before the failure, and with the
	// entries from then reaches none now. Those of CutOff are among them.
	UntilWritten []string `json:"until_written,omitempty"`
	// CutOff lists hosts that stay lost. None of their ports is cabled to a
	// part of the fabric with at least half as many host ports as the largest
	// part, but one was before.
	CutOff []string `json:"cut_off,omitempty"`
}

// compare orders fewer hosts first: by those that stay lost, then by the others.
func (x *LostHosts) compare(y *LostHosts) int {
	counts := func(h *LostHosts) []int {
		if h == nil {
			h = new(LostHosts)
		}
		return []int{len(h.CutOff), len(h.UntilWritten)}
	}
	return slices.Compare(counts(x), counts(y))
}

// hosts has the hosts with several ports.
type hosts struct {
	routing *lft.Routing
	ports   [][]fabric.PortID // by host, those of lft.HostPorts
	// Before any failure: hosts that are cut off; ports that all switches with hosts reach.
	cutOff  []bool
	reached map[fabric.PortID]bool
}

func findHosts(r *lft.Routing) *hosts {
	h := &hosts{routing: r, ports: lft.HostPorts(r.Fabric), reached: make(map[fabric.PortID]bool)}
	h.cutOff = h.findCutOff(r.Fabric)
	for _, p := range slices.Concat(h.ports...) {
		h.reached[p] = true
		for s := range fabric.NodeID(r.Fabric.NumSwitches()) {
			if h.reached[p] && len(r.Fabric.HostsOn(s)) > 0 {
				h.reached[p] = h.reaches(r.Fabric, s, []fabric.PortID{p})
			}
		}
	}
	return h
}

// name returns the name that the adapters of host i have in common, or that of its first adapter.
func (h *hosts) name(i int) string {
	called := h.routing.Fabric.Name(h.routing.Fabric.Owner(h.ports[i][0]))
	host, _ := names.Split(called.Text, nil)
	if host == "" || host == "localhost" || called.GUID != 0 && called.Text != host {
		return called.String()
	}
	return host
}

// lost returns the hosts that lose all their ports if the cables at the ports of cut are gone, as
// in g; nil if none does.
func (h *hosts) lost(g *fabric.Fabric, cut []fabric.PortID) *LostHosts {
	if len(h.ports) == 0 {
		return nil
	}
	f := h.routing.Fabric
	var ends []fabric.PortID // switch ports that lost their cable
	for _, p := range cut {
		for _, end := range []fabric.PortID{p, f.Peer(p)} {
			if end != fabric.NoPort && f.IsSwitch(f.Owner(end)) && f.Peer(end) != fabric.NoPort {
				ends = append(ends, end)
			}
		}
	}
	x := new(LostHosts)
	cutOff := h.findCutOff(g)
	for i, ports := range h.ports {
		// Packets to a port are lost only if a switch sends them over a failed cable.
		hit, safe := false, false
		for _, p := range ports {
			is := false
			for _, end := range ends {
				row := h.routing.Tables.Row(f.Owner(end))
				for lid := range f.LIDs(p) {
					is = is || row[lid] == f.Num(end)
				}
			}
			hit, safe = hit || is, safe || !is && h.reached[p]
		}
		if hit && !safe && slices.ContainsFunc(g.Switches(), func(s fabric.NodeID) bool {
			others := slices.ContainsFunc(g.HostsOn(s), func(p fabric.PortID) bool { return !slices.Contains(ports, p) })
			return others && h.reaches(f, s, ports) && !h.reaches(g, s, ports)
		}) {
			x.UntilWritten = append(x.UntilWritten, h.name(i))
		}
		if cutOff[i] && !h.cutOff[i] {
			x.CutOff = append(x.CutOff, h.name(i))
		}
	}
	if x.UntilWritten == nil && x.CutOff == nil {
		return nil
	}
	return x
}

// reaches reports whether packets from a switch to a LID of one of some ports arrive by the cables of g.
func (h *hosts) reaches(g *fabric.Fabric, s fabric.NodeID, ports []fabric.PortID) bool {
	for _, p := range ports {
		for lid := range h.routing.Fabric.LIDs(p) {
			for at, hops := s, 0; g.IsSwitch(at) && hops < g.NumSwitches(); hops++ {
				_, peer := h.routing.Tables.Step(g, at, lid)
				if peer == p {
					return true
				}
				if peer == fabric.NoPort {
					break
				}
				at = g.Owner(peer)
			}
		}
	}
	return false
}

// findCutOff returns by host true if each connected part of g that it is in has less than half as
// many host ports as the largest part.
func (h *hosts) findCutOff(g *fabric.Fabric) []bool {
	parts := g.Components()
	size, most := make([]int, len(parts.List)), 0
	for s := range fabric.NodeID(g.NumSwitches()) {
		size[parts.Of[s]] += len(g.HostsOn(s))
		most = max(most, size[parts.Of[s]])
	}
	cut := make([]bool, len(h.ports))
	for i, ports := range h.ports {
		cut[i] = !slices.ContainsFunc(ports, func(p fabric.PortID) bool {
			s := g.PeerSwitch(p)
			return s != fabric.NoNode && 2*size[parts.Of[s]] >= most
		})
	}
	return cut
}
