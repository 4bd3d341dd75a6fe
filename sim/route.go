package sim

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/mft"
)

// branchOut makes the branches of a routed cell at a switch. It counts a cell
// without any as dropped.
func (s *Sim) branchOut(c int32, ce *cell) {
	in := s.channels[ce.in].port
	at := s.net.Fabric.Owner(fabric.PortID(in))
	num := s.net.Fabric.Num(fabric.PortID(in))
	switch {
	case s.net.Router != nil:
		s.route = s.net.Router.Route(s, at, fabric.PortID(in), &s.packets.items[ce.packet].msg, s.route[:0])
		for i := len(s.route) - 1; i >= 0; i-- {
			s.leave(c, num, s.route[i])
		}
	case ce.dlid >= mft.MinMLID:
		var mask []fabric.PortID
		if s.net.Multicast != nil {
			mask = s.net.Multicast.Tables.Mask(at, ce.dlid)
		}
		for i := len(mask) - 1; i >= 0; i-- { // backwards: the list of branches then ascends
			if mask[i] != fabric.PortID(in) {
				s.leave(c, num, mask[i])
			}
		}
	case s.worms:
		if s.net.Adaptive != nil {
			s.pick(ce)
		} else {
			s.look(ce, int32(at), in)
		}
		if ce.port != none {
			s.addBranch(c, ce.port, ce.out)
		}
	}
	if ce.branch == none {
		s.counts.Dropped++
	}
}

// look sets ce.port and ce.out, by the static entry, for a cell that arrives at port in of a
// switch. ce.port is none if the cell cannot leave.
func (s *Sim) look(ce *cell, node, in int32) {
	ce.port = none
	if int(ce.dlid) > s.topLID {
		return
	}
	at := &s.hubs[node]
	out := at.base + int32(at.row[ce.dlid])
	if out >= at.end {
		return
	}
	to := s.to[out]
	vl := fabric.VL(0)
	switch {
	case to == none:
		return
	case to == out: // port 0
	case s.allAlike:
		vl = s.sameVL[ce.sl]
	default:
		vl = s.net.SL2VL.At(fabric.PortNum(in-at.base), fabric.PortID(out))[ce.sl]
	}
	if vl != lft.DropVL {
		ce.port, ce.out = out, to*s.vls+int32(vl)
	}
}

// leave adds a branch of a cell by port out, if the port leads somewhere.
func (s *Sim) leave(c int32, in fabric.PortNum, out fabric.PortID) {
	if vl := s.vlOut(in, int32(out), s.cells.items[c].sl); vl != lft.DropVL {
		s.addBranch(c, int32(out), s.to[out]*s.vls+int32(vl))
	}
}

// vlOut returns the VL on which a packet leaves a switch by port out, or
// lft.DropVL if it cannot.
func (s *Sim) vlOut(in fabric.PortNum, out int32, sl fabric.SL) fabric.VL {
	switch s.to[out] {
	case none:
		return lft.DropVL
	case out: // port 0
		return 0
	}
	return s.vl(in, fabric.PortID(out), sl)
}

// groupPorts returns, by switch and group, the ports with a cable, ascending.
func groupPorts(f *fabric.Fabric, t *adaptive.Tables) [][][]int32 {
	all := make([][][]int32, f.NumSwitches())
	for i, groups := range t.Groups[:min(len(t.Groups), len(all))] {
		s := fabric.NodeID(i)
		all[i] = make([][]int32, len(groups))
		for k := range groups {
			ports := groups[k].Ports()
			ports.Each(func(num fabric.PortNum) {
				if num == fabric.ManagementPort || num > f.Node(s).NumPorts {
					return
				}
				if p := f.Port(s, num); f.Peer(p) != fabric.NoPort {
					all[i][k] = append(all[i][k], int32(p))
				}
			})
		}
	}
	return all
}

// pick sets ce.port and ce.out by the adaptive tables of its switch. It puts all outlets into
// s.outlets, for cells that may choose again.
func (s *Sim) pick(ce *cell) {
	ce.port = none
	s.outlets = s.outlets[:0]
	t := s.net.Adaptive
	in := s.channels[ce.in].port
	at := s.net.Fabric.Owner(fabric.PortID(in))
	hub := &s.hubs[at]
	num := fabric.PortNum(in - hub.base)
	plft := t.Select.PLFT(at, num, ce.sl)
	if plft >= len(t.PLFTs) || ce.dlid > t.PLFTs[plft].Ports.MaxLID() {
		return
	}
	p := t.PLFTs[plft]
	static := hub.base + int32(p.Ports.Row(at)[ce.dlid])
	state, group := p.At(at, ce.dlid)
	var ports []int32
	if state != adaptive.Static && group >= 0 && group < len(s.groups[at]) {
		ports = s.groups[at][group]
	}
	// In the order in which ties are broken: the static port, those above it, those below it.
	s.addOutlet(ce, hub, num, static)
	for _, above := range []bool{true, false} {
		for _, port := range ports {
			if port != static && (port > static) == above {
				s.addOutlet(ce, hub, num, port)
			}
		}
	}
	if len(s.outlets) == 0 {
		return
	}
	best := s.outlets[0]
	switch {
	case len(s.outlets) == 1:
	case state == adaptive.HBF:
		best = s.hashed(ce, at)
		s.outlets = s.outlets[:0] // an HBF entry never chooses again
	default:
		best = s.best()
	}
	ce.port, ce.out = best.port, best.out
}

// addOutlet adds a port to s.outlets if a cell that came by port in can leave by it.
func (s *Sim) addOutlet(ce *cell, at *hub, in fabric.PortNum, port int32) {
	if port >= at.end {
		return
	}
	if vl := s.vlOut(in, port, ce.sl); vl != lft.DropVL {
		s.outlets = append(s.outlets, outlet{port, s.to[port]*s.vls + int32(vl)})
	}
}

// best returns the outlet that Config.Choice takes.
func (s *Sim) best() outlet {
	best := s.outlets[0]
	wait, credits := s.measure(best)
	for _, o := range s.outlets[1:] {
		w, c := s.measure(o)
		better := w < wait || w == wait && c > credits
		if s.cfg.Choice == MostCredits {
			better = c > credits || c == credits && w < wait
		}
		if better {
			best, wait, credits = o, w, c
		}
	}
	return best
}

// measure returns how long a port still needs for what it sends and what waits for it, and the
// credits of the outlet's channel.
func (s *Sim) measure(x outlet) (wait Time, credits int32) {
	pt := &s.ports[x.port]
	wait = max(pt.freeAt-s.events.now, 0)
	if pt.taken != none && !s.worms {
		wait += takes(s.cells.items[s.branches.items[pt.taken].cell].bytes, pt.rate)
	}
	for vl := range s.vls {
		o := &s.channels[pt.to*s.vls+vl]
		if o.holder != none {
			br := &s.branches.items[o.holder]
			wait += takes((s.cells.items[br.cell].flits-br.sent)*int32(s.cfg.FlitBytes), pt.rate)
		}
		for b := o.first; b != none; b = s.branches.items[b].next {
			wait += takes(s.cells.items[s.branches.items[b].cell].bytes, pt.rate)
		}
	}
	s.collectCredits(x.out, 0)
	return wait, s.channels[x.out].credits
}

// hashed returns the outlet of a packet's flow, by a hash of source, destination, flow number and
// switch. If all switches hashed alike, each would use only a part of its ports.
func (s *Sim) hashed(ce *cell, at fabric.NodeID) outlet {
	m := &s.packets.items[ce.packet].msg
	key := uint64(s.net.Fabric.LID(m.Src))<<48 | uint64(m.DLID)<<32 | uint64(m.Flow)
	return s.outlets[mix(mix(key)+uint64(at))%uint64(len(s.outlets))]
}

// mix is the finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014) after its increment.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
