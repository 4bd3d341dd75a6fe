// Package paths follows packets through forwarding tables: it finds the
// cables, lanes and loads of a path, and who shares its busiest cable. It
// makes no promise to other modules.
package paths

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Finder finds the paths of forwarding tables.
type Finder struct {
	*state.State
	routes []int64 // by PortID: routes on the channel that leaves there
}

// New counts the routes on all channels of the tables of a state. It takes O(switches x LIDs).
func New(ctx context.Context, s *state.State) (*Finder, error) {
	routes, err := lft.ChannelLoads(ctx, s.Fabric, s.Tables)
	return &Finder{s, routes}, err
}

// Path is the path of packets from a port to a LID.
type Path struct {
	Source      verify.Endpoint `json:"source"`
	Destination verify.Endpoint `json:"destination"`
	LID         fabric.LID      `json:"lid"`
	Hops        []Hop           `json:"hops"`
	Lanes       []Lane          `json:"lanes"` // empty if the path is lost
	// Lost is where the packet is lost; "" if it arrives.
	Lost string `json:"lost,omitempty"`
	// Busiest is the index of the hop between switches with the greatest load relative to its rate,
	// the first of equal ones; -1 without such a hop.
	Busiest int `json:"busiest"`
	// Channel is the port that this hop leaves; fabric.NoPort without one.
	Channel fabric.PortID `json:"-"`
}

// Hop is a channel of a path.
type Hop struct {
	verify.Cable
	Routes int64 `json:"routes"` // of ports that count for load
}

// Lane is a set of SLs that have the same VLs on a path.
type Lane struct {
	SLs []int `json:"sls"` // ascending
	VLs []int `json:"vls"` // by hop
}

// Find follows packets from an end port to a LID.
func (x *Finder) Find(src fabric.PortID, lid fabric.LID) Path {
	f := x.Fabric
	p := Path{Source: verify.EndpointOf(f, src), LID: lid, Hops: []Hop{}, Lanes: []Lane{}, Busiest: -1, Channel: fabric.NoPort}
	if dst := f.LIDPort(lid); dst != fabric.NoPort {
		p.Destination = verify.EndpointOf(f, dst)
	}
	channels, err := x.Tables.Path(f, src, lid, nil)
	for i, c := range channels {
		p.Hops = append(p.Hops, Hop{verify.CableOf(f, c), x.routes[c]})
		between := f.IsSwitch(f.Owner(c)) && f.PeerSwitch(c) != fabric.NoNode
		if between && (p.Busiest < 0 || p.Hops[i].isBusier(&p.Hops[p.Busiest])) {
			p.Busiest, p.Channel = i, c
		}
	}
	if err != nil {
		p.Lost = err.Error()
	} else if p.Lanes = x.lanes(src, lid, channels); len(p.Lanes) == 0 {
		p.Lost = "each SL of the path has VL 15 on the way, which drops packets"
	}
	return p
}

// Compare returns the packet to the first LID of dst whose path leaves by the ports out, from src's
// node on. Without such a LID it returns the packet to the base LID, and a text that tells where
// its path differs from out.
func (x *Finder) Compare(src, dst fabric.PortID, out []fabric.PortID) (Packet, string) {
	f := x.Fabric
	if src == dst && len(out) == 0 {
		return Packet{src, f.LID(dst)}, ""
	}
	for lid := range f.AllLIDs(dst) {
		if path, err := x.Tables.Path(f, src, lid, nil); err == nil && slices.Equal(path, out) {
			return Packet{src, lid}, ""
		}
	}
	lid := f.LID(dst)
	path, _ := x.Tables.Path(f, src, lid, nil)
	k := 0
	for k < len(path) && k < len(out) && path[k] == out[k] {
		k++
	}
	switch {
	case k < len(path) && k < len(out):
		return Packet{src, lid}, fmt.Sprintf("it leaves by %s to %s, where the tables lead by %s to %s",
			f.PortName(out[k]), f.Name(f.Owner(f.Peer(out[k]))), f.PortName(path[k]), f.Name(f.Owner(f.Peer(path[k]))))
	case k < len(out):
		return Packet{src, lid}, fmt.Sprintf("it goes on by %s, where the tables lead no further", f.PortName(out[k]))
	}
	return Packet{src, lid}, "it ends before the tables do"
}

// isBusier compares loads relative to rates; if a rate is unknown, both count as equal.
func (h *Hop) isBusier(g *Hop) bool {
	if h.Rate == 0 || g.Rate == 0 {
		return h.Routes > g.Routes
	}
	return h.Routes*int64(g.Rate) > g.Routes*int64(h.Rate)
}

// lanes groups the SLs that the path may have by their VLs. It leaves out SLs that are dropped.
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

// Sharing tells who uses a channel.
type Sharing struct {
	Sources      []fabric.NodeID // ascending
	Destinations []fabric.NodeID // ascending
	Next         []fabric.PortID // channels that its packets take next, ascending
}

// Sharers finds who uses each of some channels between switches. It takes O(switches x LIDs), and
// for each channel the time for the hosts on both sides.
func Sharers(f *fabric.Fabric, t *lft.Tables, channels []fabric.PortID) map[fabric.PortID]*Sharing {
	type sides struct {
		sends, gets map[fabric.NodeID]bool
		next        map[fabric.PortID]bool
	}
	wanted := make([]*sides, f.NumPorts()) // nil for other channels
	for _, c := range channels {
		wanted[c] = &sides{map[fabric.NodeID]bool{}, map[fabric.NodeID]bool{}, map[fabric.PortID]bool{}}
	}
	forest := lft.NewForest(f)
	for lid, dst := range f.LIDPorts() {
		if dst == fabric.NoPort || !f.PortCounts(dst, fabric.ForLoad) {
			continue
		}
		forest.FindTree(t, fabric.LID(lid))
		for i, s := range forest.Order {
			if i == 0 || wanted[forest.Next[s]] == nil {
				continue
			}
			c := forest.Next[s]
			w, next := wanted[c], f.Attachment(dst)
			if to := f.PeerSwitch(c); to != forest.Order[0] {
				next = forest.Next[to]
			}
			senders := []fabric.NodeID{s}
			for i := 0; i < len(senders); i++ {
				for _, host := range f.HostsOn(senders[i]) {
					w.sends[f.Owner(host)], w.gets[f.Owner(dst)], w.next[next] = true, true, true
				}
				senders = slices.AppendSeq(senders, forest.From(senders[i]))
			}
		}
	}
	shares := make(map[fabric.PortID]*Sharing)
	for _, c := range channels {
		w := wanted[c]
		shares[c] = &Sharing{slices.Sorted(maps.Keys(w.sends)), slices.Sorted(maps.Keys(w.gets)), slices.Sorted(maps.Keys(w.next))}
	}
	return shares
}
