package page

import (
	"fmt"
	"iter"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// Path is the path of a packet by the tables, or with adaptive routing the fan of all its
// paths.
type Path struct {
	SL fabric.SL
	// Hops are the channels that the packet takes, from the source port on. In a fan,
	// channels at the same distance from the source are in a row, sorted by the ports by
	// which packets arrive and leave.
	Hops []Channel
	// Lost is why the packet does not arrive, in a fan the first reason found; "" if it does.
	Lost      string
	LostShare float64 // share of packets that do not arrive
}

// Channel is a virtual lane of a cable in one direction.
type Channel struct {
	Out fabric.PortID // the port that it leaves by
	VL  fabric.VL
	// Share is the share of packets that take it, if each switch uses all ports of its choice
	// equally; 1 on a path without choices.
	Share float64
	Hop   int           // 0 for the channel from the source
	From  fabric.PortID // port by which packets came to the switch; NoPort at the source
}

// Path follows a packet from a CA or router port to a LID, for at most one hop more than
// there are switches.
func (in *Input) Path(src fabric.PortID, lid fabric.LID) Path {
	path := Path{SL: in.slOf(src, lid)}
	if in.Fabric.Peer(src) == fabric.NoPort {
		path.lose(1, "%s has no cable", in.Fabric.PortName(src))
		return path
	}
	in.follow(lid, []arrival{{place{src, path.SL}, 1}}, false, func(c Channel) { path.Hops = append(path.Hops, c) }, path.lose)
	return path
}

// lose records that a share of packets does not arrive, and the first reason.
func (p *Path) lose(share float64, format string, args ...any) {
	if p.Lost == "" {
		p.Lost = fmt.Sprintf(format, args...)
	}
	p.LostShare += share
}

// Merged returns Hops without the distinction by From.
func (p *Path) Merged() (list []Channel) {
	for _, h := range p.Hops {
		h.From = fabric.NoPort
		if i := slices.IndexFunc(list, func(c Channel) bool { return c.Out == h.Out && c.VL == h.VL && c.Hop == h.Hop }); i >= 0 {
			list[i].Share += h.Share
		} else {
			list = append(list, h)
		}
	}
	return list
}

// place is a port that packets of an SL come to.
type place struct {
	port fabric.PortID // the port that they come to
	sl   fabric.SL
}

// arrival is a share of the packets, at a place.
type arrival struct {
	place
	share float64
}

// follow sends packets to a LID out of the ports in from, and on from all places
// that they reach, hop by hop. It calls take for the channels that they take,
// and lose for the shares that do not arrive. With once it continues only from
// places not seen before; else until packets have passed as many switches as
// there are.
func (in *Input) follow(lid fabric.LID, from []arrival, once bool, take func(c Channel), lose func(share float64, format string, args ...any)) {
	f := in.Fabric
	var here, next []arrival
	index := make(map[place]int) // places in next; with once all places
	send := func(hop int, at, out fabric.PortID, sl fabric.SL, share float64) {
		vl, way := fabric.VL(0), fabric.PortNum(0)
		if at != fabric.NoPort {
			way = f.Num(at)
		}
		if in.SL2VL != nil {
			vl = in.SL2VL.At(way, out)[sl]
		}
		if vl == lft.DropVL {
			lose(share, "the SL-to-VL table of %s drops SL %d", f.PortName(out), sl)
			return
		}
		take(Channel{out, vl, share, hop, at})
		to := place{f.Peer(out), sl}
		i, known := index[to]
		switch {
		case !f.IsSwitch(f.Owner(to.port)):
			if f.LIDPort(lid) != to.port {
				lose(share, "the packet for LID %d comes to %s, which has another LID", lid, f.PortName(to.port))
			}
		case !known:
			index[to] = len(next)
			next = append(next, arrival{to, share})
		case !once:
			next[i].share += share
		}
	}
	for _, x := range from {
		send(0, fabric.NoPort, x.port, x.sl, x.share)
	}
	for hop := 1; len(next) > 0; hop++ {
		if here, next = next, here[:0]; !once {
			clear(index)
		}
		for _, x := range here {
			if !once && hop > f.NumSwitches() {
				lose(x.share, "the packet for LID %d loops at %s", lid, f.Name(f.Owner(x.port)))
				continue
			}
			in.exits(x.port, x.share, x.sl, lid, lose, func(out fabric.PortID, share float64) { send(hop, x.port, out, x.sl, share) })
		}
	}
}

// slOf returns the SL of packets from a host's port to a LID.
func (in *Input) slOf(src fabric.PortID, lid fabric.LID) fabric.SL {
	if first := in.Fabric.PeerSwitch(src); in.PathSLs != nil && first != fabric.NoNode {
		return in.PathSLs.SL(src, first, lid)
	}
	return 0
}

// exits calls take for each port by which packets for a LID may leave a switch,
// with their share; they entered the switch by port at. It calls lose for shares
// that go nowhere.
func (in *Input) exits(at fabric.PortID, share float64, sl fabric.SL, lid fabric.LID,
	lose func(share float64, format string, args ...any), take func(out fabric.PortID, share float64),
) {
	f := in.Fabric
	s := f.Owner(at)
	ports := in.next(s, f.Num(at), sl, lid)
	share /= float64(max(ports.Len(), 1))
	ports.Each(func(p fabric.PortNum) {
		switch {
		case p == fabric.ManagementPort:
			if f.LIDPort(lid) != f.PortBase(s) {
				lose(share, "%s takes LID %d for its own", f.Name(s), lid)
			}
		case p > f.Node(s).NumPorts:
			lose(share, "%s sends LID %d to port %d, which it does not have", f.Name(s), lid, p)
		case f.Peer(f.Port(s, p)) == fabric.NoPort:
			lose(share, "%s sends LID %d to port %s, which has no cable", f.Name(s), lid, f.PortText(f.Port(s, p)))
		default:
			take(f.Port(s, p), share)
		}
	})
	if ports.Len() == 0 {
		lose(share, "%s has no entry for LID %d", f.Name(s), lid)
	}
}

// Fan is what packets to a LID from all hosts may take.
type Fan struct {
	Outs []fabric.PortID // ports that they leave by, of hosts too, ascending
	Lost int             // number of places where they stop or reach an end port other than the LID's
	Why  string          // reason of the first loss; "" if none
}

// Fan follows packets of all hosts to a LID, with the SL of each, in a step for each input
// port and SL.
func (in *Input) Fan(lid fabric.LID) (fan Fan) {
	f := in.Fabric
	var from []arrival
	for src := range fabric.PortID(f.NumPorts()) {
		if !f.IsSwitch(f.Owner(src)) && f.Peer(src) != fabric.NoPort && f.LID(src) != 0 && src != f.LIDPort(lid) {
			from = append(from, arrival{place: place{src, in.slOf(src, lid)}})
		}
	}
	in.follow(lid, from, true, func(c Channel) { fan.Outs = append(fan.Outs, c.Out) }, func(_ float64, format string, args ...any) {
		if fan.Lost++; fan.Lost == 1 {
			fan.Why = fmt.Sprintf(format, args...)
		}
	})
	slices.Sort(fan.Outs)
	fan.Outs = slices.Compact(fan.Outs)
	return fan
}

// next returns the ports by which a packet may leave a switch that it enters by port num.
func (in *Input) next(s fabric.NodeID, num fabric.PortNum, sl fabric.SL, lid fabric.LID) (ports adaptive.PortSet) {
	if in.Adaptive != nil {
		return in.choices(in.Adaptive.Select.PLFT(s, num, sl), s, lid)
	}
	if p := in.Tables.Row(s)[lid]; p != fabric.NoPath {
		ports.Add(p)
	}
	return ports
}

// bySwitch yields the nodes with ports in Outs, ascending, with these ports.
func (x *Fan) bySwitch(f *fabric.Fabric) iter.Seq2[fabric.NodeID, []fabric.PortID] {
	return func(yield func(fabric.NodeID, []fabric.PortID) bool) {
		for i := 0; i < len(x.Outs); {
			k := i
			for k < len(x.Outs) && f.Owner(x.Outs[k]) == f.Owner(x.Outs[i]) {
				k++
			}
			if !yield(f.Owner(x.Outs[i]), x.Outs[i:k]) {
				return
			}
			i = k
		}
	}
}

// choices returns the ports by which a packet may leave a switch by a PLFT; none if there is
// no PLFT.
func (in *Input) choices(plft int, s fabric.NodeID, lid fabric.LID) (ports adaptive.PortSet) {
	t := in.Adaptive
	if plft < len(t.PLFTs) && lid <= t.PLFTs[plft].Ports.MaxLID() {
		ports = t.Choices(plft, s, lid)
	}
	return ports
}
