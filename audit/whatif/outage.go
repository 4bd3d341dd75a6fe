package whatif

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// Outage is what a failure loses until a subnet manager writes new tables: with the old
// static tables, and with the old adaptive ones, where a switch drops the ports with dead
// cables from its groups, and no other switch knows. Pairs are those of ports that cables still join.
type Outage struct {
	Static int64 `json:"static_pairs"` // that lose all packets with the static tables
	// With the adaptive tables: pairs that can lose packets, those that lose all, and the sum of the
	// shares that pairs lose, when switches choose among live ports alike.
	CanLose int64   `json:"adaptive_pairs"`
	Cut     int64   `json:"adaptive_cut_pairs"`
	Loss    float64 `json:"adaptive_loss"`
	// Shrunk is entries whose choices become fewer, and Last those of them that are left with
	// one port or none.
	Shrunk int64 `json:"shrunk_entries"`
	Last   int64 `json:"shrunk_to_one_entries"`
}

// outages finds outages.
type outages struct {
	f      *fabric.Fabric
	tables *adaptive.Tables
	static *adaptive.Tables // without choices
}

func newOutages(f *fabric.Fabric, t *adaptive.Tables) *outages {
	return &outages{f, t, &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches()), PLFTs: []*adaptive.PLFT{adaptive.NewPLFT(t.PLFTs[0].Ports)}}}
}

// find compares the tables on what a failure leaves, g, whose dead cables have the ports of cut.
func (x *outages) find(g *fabric.Fabric, cut []fabric.PortID) *Outage {
	o := new(Outage)
	touched := map[fabric.NodeID]bool{}
	for _, p := range cut {
		if q := x.f.Peer(p); q != fabric.NoPort {
			touched[x.f.Owner(p)], touched[x.f.Owner(q)] = true, true
		}
	}
	for s := range touched {
		x.countShrunk(o, g, s)
	}
	lost := make([]float64, g.NumSwitches()) // by switch: the share of the packets to a LID from there
	part, _ := graph.Components(g.NumSwitches(), g.Neighbors)
	for lid, end := range g.LIDPorts() {
		if end == fabric.NoPort || g.IsSwitch(g.Owner(end)) || g.PeerSwitch(end) == fabric.NoNode {
			continue
		}
		root := g.PeerSwitch(end)
		for _, t := range []*adaptive.Tables{x.static, x.tables} {
			for s := range lost {
				lost[s] = unknown
			}
			lost[root] = 0
			for s := range fabric.NodeID(g.NumSwitches()) {
				pairs := int64(len(g.EndPortsOn(s)))
				if pairs == 0 || part[s] != part[root] {
					continue
				}
				loss := follow(t, g, s, fabric.LID(lid), lost)
				switch {
				case loss == 0:
				case t == x.static:
					o.Static += pairs
				default:
					o.CanLose += pairs
					if loss == 1 {
						o.Cut += pairs
					}
					o.Loss += float64(float64(pairs) * loss)
				}
			}
		}
	}
	return o
}

const unknown = -1

// follow is the share of the packets to a LID that is lost from a switch on; lost has those that are known. The
// choices of proven tables have no loop, and a loop of others loses all.
func follow(t *adaptive.Tables, g *fabric.Fabric, s fabric.NodeID, lid fabric.LID, lost []float64) float64 {
	if lost[s] != unknown {
		return lost[s]
	}
	lost[s] = 1
	n, sum := 0, 0.0
	choices := t.Choices(0, s, lid)
	choices.Each(func(p fabric.PortNum) {
		if next := peerSwitch(g, s, p); next != fabric.NoNode {
			n++
			sum += follow(t, g, next, lid, lost)
		}
	})
	if n > 0 {
		lost[s] = sum / float64(n)
	}
	return lost[s]
}

// peerSwitch is the switch that a port of a switch leads to, NoNode for none.
func peerSwitch(g *fabric.Fabric, s fabric.NodeID, p fabric.PortNum) fabric.NodeID {
	if p == fabric.ManagementPort || p > g.Node(s).NumPorts {
		return fabric.NoNode
	}
	return g.PeerSwitch(g.Port(s, p))
}

// countShrunk counts the entries of a switch whose choices become fewer. A switch that has no cable
// left has none.
func (x *outages) countShrunk(o *Outage, g *fabric.Fabric, s fabric.NodeID) {
	if !g.IsSwitch(s) || len(g.Neighbors(s)) == 0 {
		return
	}
	for lid := range x.tables.PLFTs[0].Row(s) {
		if _, group := x.tables.PLFTs[0].At(s, fabric.LID(lid)); group < 0 {
			continue
		}
		live, dead := 0, false
		choices := x.tables.Choices(0, s, fabric.LID(lid))
		choices.Each(func(p fabric.PortNum) {
			if peerSwitch(g, s, p) != fabric.NoNode {
				live++
			} else {
				dead = true
			}
		})
		if dead {
			o.Shrunk++
			if live <= 1 {
				o.Last++
			}
		}
	}
}
