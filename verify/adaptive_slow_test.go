package verify_test

import (
	"maps"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
)

// channel is a VL of the cable that leaves a port of a switch.
type channel struct {
	port fabric.PortID
	vl   fabric.VL
}

// slow is a checker that is too plain to be wrong: it follows the packets of each port to each
// LID with each SL by every choice, port by port, and keeps dependencies in maps.
type slow struct {
	f   *fabric.Fabric
	t   *adaptive.Tables
	opt state.State

	deadEnds, loops, mgmtDeadEnds, mgmtLoops int64
	// All choices, and those to escapes: of pairs of CA ports, and of all.
	unicast, all, unicastEscape, allEscape dependencies
	channels                               map[channel]bool // of pairs of CA ports
}

type dependencies map[channel]map[channel]bool

func (d dependencies) add(a, b channel) {
	if d[a] == nil {
		d[a] = map[channel]bool{}
	}
	d[a][b] = true
}

func (d dependencies) size() (n int) {
	for _, next := range d {
		n += len(next)
	}
	return n
}

// components counts the sets of channels that all lead to each other.
func (d dependencies) components() (n int) {
	reach := map[channel]map[channel]bool{}
	for start := range d {
		seen := map[channel]bool{}
		var visit func(channel)
		visit = func(c channel) {
			for next := range d[c] {
				if !seen[next] {
					seen[next] = true
					visit(next)
				}
			}
		}
		visit(start)
		reach[start] = seen
	}
	done := map[channel]bool{}
	for start := range d {
		if done[start] || !reach[start][start] {
			continue
		}
		n++
		for other := range d {
			if reach[start][other] && reach[other][start] {
				done[other] = true
			}
		}
	}
	return n
}

// hop is what may become of a packet that has come into a switch by a port.
type hop struct {
	good   map[fabric.PortID]fabric.VL // choices that lead on, or to the owner
	offers []fabric.PortID             // of these, what a blocked packet is offered
	bad    bool                        // a choice loses it, or there is none
}

// look gives the choices of a packet that is in a switch, from port in.
func (s *slow) look(in fabric.PortID, lid fabric.LID, sl fabric.SL) (h hop) {
	f := s.f
	at, owner := f.Owner(in), f.LIDPort(lid)
	h.good = map[fabric.PortID]fabric.VL{}
	own := f.Num(in) == 0 && s.opt.PathSLs == nil
	plfts := []int{}
	for k := range s.t.PLFTs {
		switch p := s.t.PLFTs[k]; {
		case s.t.Select != nil && s.t.Select.PLFT(at, f.Num(in), sl) != k:
		case s.t.Select == nil && len(s.t.PLFTs) > 1 && p.Lacking != nil && p.Lacking[at]:
		default:
			plfts = append(plfts, k)
		}
	}
	h.bad = len(plfts) == 0
	offers := map[fabric.PortID]bool{}
	for _, k := range plfts {
		t := s.t.PLFTs[k]
		if lid > t.Ports.MaxLID() {
			h.bad = true
			continue
		}
		state, _ := t.At(at, lid)
		static := t.Ports.Row(at)[lid]
		choices := s.t.Choices(k, at, lid)
		h.bad = h.bad || choices.Len() == 0
		for num := range 256 {
			if !choices.Has(fabric.PortNum(num)) {
				continue
			}
			if num > int(f.Node(at).NumPorts) {
				h.bad = true
				continue
			}
			out := f.Port(at, fabric.PortNum(num))
			vl := fabric.VL(0)
			if s.opt.SL2VL != nil && num > 0 {
				vl = s.opt.SL2VL.At(f.Num(in), out)[sl]
			}
			switch peer := f.Peer(out); {
			case num > 0 && peer == fabric.NoPort, num == 0 && out != owner:
				h.bad = true
			case vl == lft.DropVL:
				h.bad = h.bad || !own
			case num > 0 && !f.IsSwitch(f.Owner(peer)) && peer != owner:
				h.bad = true
			default:
				h.good[out] = vl
				if state != adaptive.Free || static == fabric.NoPath || int(static) == num || len(plfts) > 1 {
					offers[out] = true
				}
			}
		}
	}
	h.offers = slices.Sorted(maps.Keys(offers))
	return h
}

func (s *slow) joined(a, b fabric.PortID) bool {
	at := func(p fabric.PortID) fabric.PortID { return s.f.Attachment(p) }
	if at(a) == fabric.NoPort || at(b) == fabric.NoPort {
		return false
	}
	of := s.f.Components().Of
	return of[s.f.Owner(at(a))] == of[s.f.Owner(at(b))]
}

// pair follows packets of one port to a LID with one SL.
func (s *slow) pair(from, to fabric.PortID, lid fabric.LID, sl fabric.SL) (dead, loop bool) {
	f := s.f
	management := f.IsSwitch(f.Owner(from)) || f.IsSwitch(f.Owner(to))
	start := f.Attachment(from)
	hops := map[fabric.PortID]hop{}
	next := func(in fabric.PortID) (list []fabric.PortID) {
		for out := range hops[in].good {
			if peer := f.Peer(out); peer != fabric.NoPort && peer != to {
				list = append(list, peer)
			}
		}
		return list
	}
	// All places that the packet can come to; an open place again is a loop.
	open := map[fabric.PortID]bool{}
	var follow func(in fabric.PortID)
	follow = func(in fabric.PortID) {
		if _, ok := hops[in]; ok {
			loop = loop || open[in]
			return
		}
		hops[in] = s.look(in, lid, sl)
		dead = dead || hops[in].bad
		open[in] = true
		for _, peer := range next(in) {
			follow(peer)
		}
		open[in] = false
	}
	follow(start)
	// From which of them it can arrive.
	live := map[fabric.PortID]bool{}
	for more := true; more; {
		more = false
		for in, h := range hops {
			for out := range h.good {
				peer := f.Peer(out)
				if !live[in] && (out == to || peer == to || live[peer]) {
					live[in], more = true, true
				}
			}
		}
	}
	useful := func(out fabric.PortID) bool {
		return out == to || f.Peer(out) == to || live[f.Peer(out)]
	}
	for in, h := range hops {
		for out, vl := range h.good {
			if !live[in] || !useful(out) || out == to {
				continue
			}
			a := channel{out, vl}
			if !management {
				s.channels[a] = true
			}
			after, ok := hops[f.Peer(out)]
			if f.Peer(out) == to || !ok {
				continue
			}
			escaped := slices.ContainsFunc(after.offers, useful)
			for wait, vl := range after.good {
				if wait == to || !useful(wait) {
					continue
				}
				b := channel{wait, vl}
				s.all.add(a, b)
				if !management {
					s.unicast.add(a, b)
				}
				if !escaped || slices.Contains(after.offers, wait) {
					s.allEscape.add(a, b)
					if !management {
						s.unicastEscape.add(a, b)
					}
				}
			}
		}
	}
	return dead && s.joined(from, to), loop
}

// sls lists the SLs that packets from a port to a LID may have.
func (s *slow) sls(from fabric.PortID, lid fabric.LID) (list []fabric.SL) {
	for sl := range fabric.SL(lft.NumSLs) {
		if !s.f.IsSwitch(s.f.Owner(from)) && s.opt.SL2VL != nil && s.opt.SL2VL.At(0, from)[sl] == lft.DropVL {
			continue
		}
		if s.opt.PathSLs == nil {
			list = append(list, sl)
			continue
		}
		row := s.opt.PathSLs.PortRow(from)
		if row == nil {
			row = s.opt.PathSLs.Given(s.f.Owner(s.f.Attachment(from)))
		}
		if row[lid] == sl || row[lid] == lft.UnknownSL {
			list = append(list, sl)
		}
	}
	return list
}

func newSlow(f *fabric.Fabric, t *adaptive.Tables, opt state.State) *slow {
	s := &slow{f: f, t: t, opt: opt, unicast: dependencies{}, all: dependencies{},
		unicastEscape: dependencies{}, allEscape: dependencies{}, channels: map[channel]bool{}}
	var ends []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { ends = append(ends, p) })
	for _, from := range ends {
		for _, to := range ends {
			if from == to || f.Attachment(from) == fabric.NoPort {
				continue
			}
			for lid := range f.LIDs(to) {
				dead, loop := false, false
				for _, sl := range s.sls(from, lid) {
					d, l := s.pair(from, to, lid, sl)
					dead, loop = dead || d, loop || l
				}
				management := f.IsSwitch(f.Owner(from)) || f.IsSwitch(f.Owner(to))
				for _, x := range []struct {
					is         bool
					pairs, own *int64
				}{{dead, &s.deadEnds, &s.mgmtDeadEnds}, {loop, &s.loops, &s.mgmtLoops}} {
					switch {
					case !x.is:
					case management:
						*x.own++
					default:
						*x.pairs++
					}
				}
			}
		}
	}
	return s
}
