// Package paths follows packets through forwarding tables and says whom they meet: the
// cables, lanes and loads of a path, and who shares its busiest cable. It makes no promise
// to other modules.
package paths

import (
	"context"
	"maps"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Finder finds the paths of the tables and lanes of a state.
type Finder struct {
	*state.State
	routes []int64 // by PortID, on the channel that leaves there
}

// New counts the routes on all channels. It takes O(switches x LIDs).
func New(ctx context.Context, s *state.State) (*Finder, error) {
	routes, err := lft.ChannelLoads(ctx, s.Fabric, s.Tables)
	if err != nil {
		return nil, err
	}
	return &Finder{s, routes}, nil
}

// Routes is how many routes are on the channel that leaves each port, by PortID, of ports that
// count for load.
func (x *Finder) Routes() []int64 { return x.routes }

// Path is the path of packets from a port to a LID.
type Path struct {
	Source      verify.Endpoint `json:"source"`
	Destination verify.Endpoint `json:"destination"`
	LID         fabric.LID      `json:"lid"`
	Hops        []Hop           `json:"hops"`
	Lanes       []Lane          `json:"lanes"` // empty for a path that is lost
	// Lost says where the packet is lost; "" for a path that arrives.
	Lost string `json:"lost,omitempty"`
	// Busiest is the index of the hop between switches with the greatest load relative to its
	// rate, the first of several; -1 without one.
	Busiest int `json:"busiest"`

	channels []fabric.PortID // by hop
}

// Hop is a channel of a path.
type Hop struct {
	verify.Cable
	Routes int64 `json:"routes"` // of ports that count for load
}

// Lane is SLs with the same VLs.
type Lane struct {
	SLs []int `json:"sls"` // ascending
	VLs []int `json:"vls"` // by hop
}

// Find follows packets from an end port to a LID.
func (x *Finder) Find(src fabric.PortID, lid fabric.LID) Path {
	p := Path{Source: verify.EndpointOf(x.Fabric, src), LID: lid, Hops: []Hop{}, Lanes: []Lane{}, Busiest: -1}
	if dst := x.Fabric.LIDPort(lid); dst != fabric.NoPort {
		p.Destination = verify.EndpointOf(x.Fabric, dst)
	}
	channels, err := x.Tables.Path(x.Fabric, src, lid, nil)
	p.channels = channels
	for i, c := range channels {
		p.Hops = append(p.Hops, Hop{verify.CableOf(x.Fabric, c), x.routes[c]})
		if x.Fabric.PeerSwitch(c) == fabric.NoNode || !x.Fabric.IsSwitch(x.Fabric.Owner(c)) {
			continue
		}
		if p.Busiest < 0 || p.Hops[i].isBusier(&p.Hops[p.Busiest]) {
			p.Busiest = i
		}
	}
	if err != nil {
		p.Lost = err.Error()
		return p
	}
	if p.Lanes = x.lanes(src, lid, channels); len(p.Lanes) == 0 {
		p.Lost = "each SL of the path has VL 15 on the way, which drops packets"
	}
	return p
}

// isBusier compares loads relative to rates; cables of unknown rate count alike.
func (h *Hop) isBusier(g *Hop) bool {
	if h.Rate == 0 || g.Rate == 0 {
		return h.Routes > g.Routes
	}
	return h.Routes*int64(g.Rate) > g.Routes*int64(h.Rate)
}

// lanes groups the SLs that the path may have by their VLs. SLs that are dropped are not
// among them.
func (x *Finder) lanes(src fabric.PortID, lid fabric.LID, channels []fabric.PortID) (lanes []Lane) {
	if x.SL2VL == nil {
		return []Lane{{SLs: x.slsOf(src, lid), VLs: make([]int, len(channels))}}
	}
	for _, sl := range x.slsOf(src, lid) {
		vls := make([]int, 0, len(channels))
		in := fabric.PortNum(0)
		for _, c := range channels {
			vl := x.SL2VL.At(in, c)[sl]
			if vl == lft.DropVL {
				break
			}
			vls = append(vls, int(vl))
			in = x.Fabric.Num(x.Fabric.Peer(c))
		}
		if len(vls) < len(channels) {
			continue
		}
		i := slices.IndexFunc(lanes, func(l Lane) bool { return slices.Equal(l.VLs, vls) })
		if i < 0 {
			lanes, i = append(lanes, Lane{VLs: vls}), len(lanes)
		}
		lanes[i].SLs = append(lanes[i].SLs, sl)
	}
	return lanes
}

// slsOf lists the SLs that a path may have.
func (x *Finder) slsOf(src fabric.PortID, lid fabric.LID) (sls []int) {
	if x.PathSLs != nil {
		row := x.PathSLs.PortRow(src)
		if row == nil {
			row = x.PathSLs.Given(x.Fabric.Owner(x.Fabric.Attachment(src)))
		}
		if int(lid) < len(row) && row[lid] != lft.UnknownSL {
			return []int{int(row[lid])}
		}
	}
	for sl := range lft.NumSLs {
		sls = append(sls, sl)
	}
	return sls
}

// Sharing is who uses a channel.
type Sharing struct {
	Routes       int64
	Sources      []fabric.NodeID // ascending
	Destinations []fabric.NodeID // ascending
	Next         []fabric.PortID // channels that its packets take behind it, ascending
}

// Shares finds who shares the busiest hop of each path, nil for a path without one, as Sharers does.
func (x *Finder) Shares(list []Path) []*Sharing {
	var channels []fabric.PortID
	for i := range list {
		if p := &list[i]; p.Busiest >= 0 {
			channels = append(channels, p.channels[p.Busiest])
		}
	}
	shares := x.Sharers(channels)
	all := make([]*Sharing, len(list))
	for i := range list {
		if p := &list[i]; p.Busiest >= 0 {
			all[i] = shares[p.channels[p.Busiest]]
		}
	}
	return all
}

// Sharers finds who uses channels between switches. It takes O(switches x LIDs) for all of them,
// and the time for the hosts on both sides of each.
func (x *Finder) Sharers(channels []fabric.PortID) map[fabric.PortID]*Sharing {
	f := x.Fabric
	type sides struct { // by NodeID
		sends, gets []bool
		next        map[fabric.PortID]bool
	}
	channels = slices.Compact(slices.Sorted(slices.Values(channels)))
	wanted := make([]sides, len(channels))
	for i := range wanted {
		wanted[i] = sides{make([]bool, f.NumNodes()), make([]bool, f.NumNodes()), map[fabric.PortID]bool{}}
	}
	forest := lft.NewForest(f)
	place := make([]int32, f.NumSwitches()) // by switch: 1 + its index in forest.Order, 0 for none
	for lid, dst := range f.LIDPorts() {
		if dst == fabric.NoPort || !f.PortCounts(dst, fabric.ForLoad) {
			continue
		}
		for _, s := range forest.Order {
			place[s] = 0
		}
		forest.FindTree(x.Tables, fabric.LID(lid))
		for i, s := range forest.Order {
			place[s] = int32(i) + 1
		}
		for i, c := range channels {
			if s := f.Owner(c); place[s] < 2 || forest.Next[s] != c {
				continue
			}
			w := &wanted[i]
			next := f.Attachment(dst)
			if s := f.PeerSwitch(c); place[s] > 1 {
				next = forest.Next[s]
			}
			senders := []fabric.NodeID{f.Owner(c)}
			for i := 0; i < len(senders); i++ {
				for _, host := range f.HostsOn(senders[i]) {
					w.sends[f.Owner(host)], w.gets[f.Owner(dst)], w.next[next] = true, true, true
				}
				for s := range forest.From(senders[i]) {
					senders = append(senders, s)
				}
			}
		}
	}
	shares := make(map[fabric.PortID]*Sharing)
	for i, c := range channels {
		share := &Sharing{Routes: x.routes[c], Next: slices.Sorted(maps.Keys(wanted[i].next))}
		for n := range fabric.NodeID(f.NumNodes()) {
			if wanted[i].sends[n] {
				share.Sources = append(share.Sources, n)
			}
			if wanted[i].gets[n] {
				share.Destinations = append(share.Destinations, n)
			}
		}
		shares[c] = share
	}
	return shares
}
