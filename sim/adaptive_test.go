package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// onePort is adaptive tables that leave no choice: up to three PLFTs with the same ports that
// a random selector takes, with all states and groups of the static port alone.
func (x *trial) onePort(rng *rand.Rand) *adaptive.Tables {
	t := &adaptive.Tables{Groups: make([][]adaptive.Group, x.f.NumSwitches())}
	for s := range t.Groups {
		t.Groups[s] = make([]adaptive.Group, 256)
		for p := range t.Groups[s] {
			sub := adaptive.Subgroup{}
			sub.Ports.Add(fabric.PortNum(p))
			t.Groups[s][p] = adaptive.Group{Number: p, Subgroups: []adaptive.Subgroup{sub}}
		}
	}
	for range 1 + rng.IntN(3) {
		p := adaptive.NewPLFT(x.net.Tables)
		for s := range fabric.NodeID(x.f.NumSwitches()) {
			for lid, port := range x.net.Tables.Row(s) {
				if state := adaptive.State(rng.IntN(3)); rng.IntN(8) > 0 {
					p.Set(s, fabric.LID(lid), state, int(port))
				} else {
					p.Set(s, fabric.LID(lid), state, -1)
				}
			}
		}
		t.PLFTs = append(t.PLFTs, p)
	}
	t.Select = adaptive.NewSelector(x.f)
	for _, s := range x.f.Switches() {
		for in := range fabric.PortNum(int(x.f.Node(s).NumPorts) + 1) {
			for sl := range t.Select.Row(s, in) {
				t.Select.Row(s, in)[sl] = uint8(rng.IntN(len(t.PLFTs)))
			}
		}
	}
	return t
}

// TestOnePort has adaptive tables without a choice be the tables that they come from, event for
// event, on random fabrics with all ways to copy, lanes, rates and arbitration.
func TestOnePort(t *testing.T) {
	for seed := range uint64(short.Of(60, 5)) {
		for copying := Independent; copying <= GreedyWormhole; copying++ {
			want, events := goldenTrial(t, seed).golden(t, copying)
			x := goldenTrial(t, seed)
			x.net.Adaptive = x.onePort(rand.New(rand.NewPCG(seed, 77)))
			if got, n := x.golden(t, copying); got != want || n != events {
				t.Errorf("%s, %s: %s after %d events, with static tables %s after %d", x, copying, got, n, want, events)
			}
		}
	}
}

// freeTables gives each switch and LID the ports of list as a group.
func freeTables(t testing.TB, f *fabric.Fabric, static *lft.Tables, list lft.ListNextHops, state adaptive.State) *adaptive.Tables {
	t.Helper()
	tables := &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches()), PLFTs: []*adaptive.PLFT{adaptive.NewPLFT(static)}}
	var h lft.NextHops
	for _, to := range f.Switches() {
		h.Reset()
		short.Check(t, list(to, &h))
		for i, s := range h.Switches {
			var set adaptive.PortSet
			for _, p := range h.Ports(i) {
				set.Add(p)
			}
			n := len(tables.Groups[s])
			tables.Groups[s] = append(tables.Groups[s], adaptive.Group{Number: n, Subgroups: []adaptive.Subgroup{{Ports: set}}})
			for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
				if p := f.LIDPort(lid); p != fabric.NoPort && (f.Owner(p) == to || f.Peer(p) != fabric.NoPort && f.Owner(f.Peer(p)) == to && !f.IsSwitch(f.Owner(p))) {
					tables.PLFTs[0].Set(s, lid, state, n)
				}
			}
		}
	}
	return tables
}

// tree is a tree of n leaves with n hosts and n spines, whose static tables send all that goes
// to one leaf over one spine: as far as a shift by n goes, nothing can be worse.
func newTree(t testing.TB, n int) (*fabric.Fabric, *lft.Tables) {
	t.Helper()
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 2 * n, Pods: []int{n}, Hosts: n, Spines: n}))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	r := short.Must(lft.Minhop{}.Route(t.Context(), f, lft.Options{}))(t)
	for _, s := range f.Switches() {
		up, _ := f.SwitchLinks(s)
		if len(f.HostsOn(s)) == 0 {
			continue
		}
		for _, p := range f.CAPorts() {
			if to := f.Owner(f.Peer(p)); to != s {
				r.Tables.Row(s)[f.LID(p)] = f.Num(up[int(to)%len(up)])
			}
		}
	}
	return f, r.Tables
}

// TestAdaptiveShift has the adversarial shift on a tree of 4 leaves: where static tables give
// the four hosts of a leaf one cable, adaptive ones give each the whole rate. Packets of a flow
// overtake each other only where each of them chooses.
func TestAdaptiveShift(t *testing.T) {
	const n, messages = 4, 100
	f, static := newTree(t, n)
	list := lft.ShortestNextHops(f)
	for _, tt := range []struct {
		name        string
		state       adaptive.State
		choice      Choice
		again       bool
		least, most float64 // accepted
	}{
		{"static", adaptive.Static, LeastQueued, false, 0.2, 0.26},
		{"least queued", adaptive.Free, LeastQueued, false, 0.95, 1},
		{"most credits", adaptive.Free, MostCredits, false, 0.95, 1},
		{"again", adaptive.Free, LeastQueued, true, 0.95, 1},
		{"HBF", adaptive.HBF, LeastQueued, false, 0.45, 0.55},
		{"HBF again", adaptive.HBF, LeastQueued, true, 0.45, 0.55},
	} {
		cfg := oldLinks()
		cfg.PacketBuffers(4, 2048)
		cfg.Choice, cfg.ChooseAgain, cfg.FullChecks = tt.choice, tt.again, 1000
		net := Network{State: state.State{Fabric: f, Adaptive: freeTables(t, f, static, list, tt.state)}}
		m := short.Must(Burst(t.Context(), net, cfg, Traffic{Pattern: Shift(n), Bytes: 2048, Flows: 2}, messages, 0))(t)
		r := m.Reordering
		t.Logf("%s: accepts %.3f, %d of %d packets out of order, %d behind", tt.name, m.Accepted, r.OutOfOrder, r.Packets, r.Behind)
		if m.Accepted < tt.least || m.Accepted > tt.most {
			t.Errorf("%s: accepts %.3f, want %g to %g", tt.name, m.Accepted, tt.least, tt.most)
		}
		if m.Incomplete != 0 || r.Packets != n*n*messages || r.Flows != 2*n*n || tt.state != adaptive.Free && r.OutOfOrder > 0 {
			t.Errorf("%s: %d incomplete, %+v", tt.name, m.Incomplete, r)
		}
	}
}

// TestOvertaking counts again, the slow way, which packets of bursts on a tree overtake each
// other, and how late they are. Messages of several packets are complete when all their bytes
// have come, of which the last packet need not be the last.
func TestOvertaking(t *testing.T) {
	f, static := newTree(t, 4)
	hosts := f.CAPorts()
	rng := rand.New(rand.NewPCG(1, 1))
	cfg := oldLinks()
	cfg.MTU = 512
	for _, most := range []int{512, 2000} { // bytes of a message
		l := &log{}
		s := mustNew(t, Network{State: state.State{Fabric: f, Adaptive: freeTables(t, f, static, lft.ShortestNextHops(f), adaptive.Free)}}, cfg, l)
		var sent []Message
		for range 1500 {
			m := Message{Src: hosts[rng.IntN(16)], DLID: f.LID(hosts[rng.IntN(8)]), Flow: rng.Uint32N(2), Bytes: 1 + rng.IntN(most), Tag: int64(len(sent))}
			if m.DLID != f.LID(m.Src) {
				mustSend(t, s, m)
				sent = append(sent, m)
			}
		}
		short.Check(t, s.Run(t.Context(), Forever))
		got := s.Reordering()
		if most > cfg.MTU {
			left, early := map[int64]int{}, 0
			for _, d := range l.deliveries {
				bytes := left[d.Tag] + d.Bytes
				left[d.Tag] = bytes
				if d.Last != (bytes == sent[d.Tag].Bytes) {
					t.Fatalf("%d of %d bytes of message %d have come, last: %t", bytes, sent[d.Tag].Bytes, d.Tag, d.Last)
				}
				if size := (sent[d.Tag].Bytes-1)%cfg.MTU + 1; d.Bytes == size && size != cfg.MTU && !d.Last {
					early++
				}
			}
			if early == 0 || got.Packets != int64(len(l.deliveries)) {
				t.Errorf("%d messages have their last packet early, %+v", early, got)
			}
			continue
		}
		flowOf := func(m *Message) [3]int { return [3]int{int(m.Src), int(m.DLID), int(m.Flow)} }
		want, late := Reordering{Packets: int64(len(sent))}, Latency{}
		flows := map[[3]int]bool{} // whether packets are out of order
		gaps := map[[3]int]Time{}  // by flow with a gap: since when
		for i := range l.deliveries {
			d := &l.deliveries[i]
			flow := flowOf(&d.Message)
			ahead := false
			place, highest, last, come := 0, 0, 0, 0 // of all of the flow that were sent
			for k := range sent {
				if flowOf(&sent[k]) != flow {
					continue
				}
				arrived := false
				for e := range l.deliveries[:i] {
					arrived = arrived || l.deliveries[e].Tag == int64(k)
				}
				highest++
				if arrived || int64(k) == d.Tag {
					come++
					last = highest
				}
				if int64(k) < d.Tag {
					place++
				} else if arrived {
					ahead = true
					want.Behind = max(want.Behind, int64(highest-1-place))
				}
			}
			flows[flow] = flows[flow] || ahead
			if ahead {
				want.OutOfOrder++
				late.add(d.At - gaps[flow])
			}
			if come == last {
				delete(gaps, flow)
			} else if _, open := gaps[flow]; !open {
				gaps[flow] = d.At
			}
		}
		for _, out := range flows {
			want.Flows++
			if out {
				want.OutOfOrderFlows++
			}
		}
		want.Share, want.Late = float64(want.OutOfOrder)/float64(want.Packets), late.summary(true)
		if !reflect.DeepEqual(*got, want) || want.OutOfOrder < 20 || want.OutOfOrderFlows == want.Flows || want.Late.Max == 0 {
			t.Errorf("%d of %d packets, %d of %d flows, %d behind, late %g; want %d of %d, %d of %d, %d, %g", got.OutOfOrder, got.Packets, got.OutOfOrderFlows, got.Flows, got.Behind, got.Late.Mean,
				want.OutOfOrder, want.Packets, want.OutOfOrderFlows, want.Flows, want.Behind, want.Late.Mean)
		}
	}
}

// TestChoiceMeasures looks at all choices that loaded switches with three lanes would make: the
// port has the most credits, or is done first, of all ports of the group, and is the static one
// where that is no worse. Groups have ports without a cable too.
func TestChoiceMeasures(t *testing.T) {
	f, static := newTree(t, 4)
	tables := freeTables(t, f, static, lft.ShortestNextHops(f), adaptive.Free)
	for s := range tables.Groups {
		for i := range tables.Groups[s] {
			tables.Groups[s][i].Subgroups[0].Ports.Add(250)
		}
	}
	for _, choice := range []Choice{LeastQueued, MostCredits} {
		cfg := oldLinks()
		cfg.BufferFlits, cfg.Choice = 8, choice
		d := &open{Traffic: Traffic{Load: 0.9, Bytes: 200, SLs: 3, Seed: 3}, out: &Measured{}}
		s := mustNew(t, Network{State: state.State{Fabric: f, Adaptive: tables, SL2VL: lft.NewSL2VL(f, lft.IdentityVLs(3))}}, cfg, d)
		short.Check(t, d.check(s))
		d.start(s)
		chosen, other, same := 0, 0, 0
		for s.Now() < Time(short.Of(300, 100))*Microsecond {
			short.Check(t, s.Run(t.Context(), s.Now()+500*Nanosecond))
			for in := range s.channels {
				c := s.channels[in].head
				if c == none || !f.IsSwitch(f.Owner(fabric.PortID(s.channels[in].port))) {
					continue
				}
				ce := s.cells.items[c]
				if s.pick(&ce); ce.port == none {
					t.Fatalf("no port for LID %d", ce.dlid)
				}
				chosen++
				at := f.Owner(fabric.PortID(s.channels[in].port))
				wait, credits := s.measure(outlet{ce.port, ce.out})
				after := f.Num(fabric.PortID(ce.port)) - static.Row(at)[ce.dlid] // the static port, round
				ports := tables.Choices(0, at, ce.dlid)
				ports.Each(func(p fabric.PortNum) {
					if p == 250 {
						return
					}
					o := f.Port(at, p)
					w, c := s.measure(outlet{int32(o), s.to[o]*s.vls + ce.out%s.vls})
					better := w < wait || w == wait && c > credits
					if choice == MostCredits {
						better = c > credits || c == credits && w < wait
					}
					if better || w == wait && c == credits && p-static.Row(at)[ce.dlid] < after {
						t.Fatalf("%s: port with a wait of %s and %d credits, %s and %d by port %d", choice, wait, credits, w, c, p)
					}
					if w != wait || c != credits {
						other++
					}
				})
				if after == 0 {
					same++
				}
			}
		}
		if chosen < 1000 || other < chosen/10 || same == chosen {
			t.Errorf("%s: %d choices, %d other ports were unlike the chosen one, %d static", choice, chosen, other, same)
		}
	}
}

// doubleRing is a ring of eight switches with two cables to the next one and two hosts each:
// packets that choose between two cables wait in cycles that are none for ever.
func (x *trial) doubleRing(t *testing.T) {
	t.Helper()
	p, err := gen.NewPlan(8, 16)
	short.Check(t, err)
	for i := range 8 {
		p.Switch(6, fmt.Sprint("switch ", i))
	}
	for i := range 8 {
		for k := range 2 {
			p.Cable(i, 1+k, (i+1)%8, 3+k)
			p.Cable(p.CA(1, fmt.Sprint("host ", 2*i+k)), 1, i, 5+k)
		}
	}
	if x.f, err = p.Fabric(); err == nil {
		x.f, err = lft.AssignLIDs(x.f, lft.LIDOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	x.name, x.hosts, x.net = "double ring", x.f.CAPorts(), Network{State: state.State{Fabric: x.f}}
}

// TestChooseAgainDeadlock floods random fabrics, on which shortest paths have cycles, with
// packets that choose again. A deadlock that is reported while others still move stays one:
// the same packets are at the heads of these buffers when all movement has ended. A stop
// without a deadlock would be a *ConservationError.
func TestChooseAgainDeadlock(t *testing.T) {
	dead, early, whole := 0, 0, 0
	for seed := range uint64(short.Of(300, 90)) {
		x := newTrial(t, seed)
		if seed%2 == 0 {
			x.doubleRing(t)
		}
		x.trees = nil
		r := short.Must(lft.Minhop{}.Route(t.Context(), x.f, lft.Options{}))(t)
		x.net.Adaptive = freeTables(t, x.f, r.Tables, lft.ShortestNextHops(x.f), adaptive.Free)
		cfg := x.config(Independent)
		cfg.ChooseAgain, cfg.Choice = true, Choice(x.rng.IntN(2))
		s := mustNew(t, x.net, cfg, nil)
		for _, m := range x.anyTraffic(x.lids(false)) {
			mustSend(t, s, m)
		}
		var held *DeadlockError
		heads := map[int32]int32{}
		for s.events.len() > 0 {
			err := s.Run(t.Context(), s.Now()+5*Nanosecond)
			if err == nil {
				err = s.Deadlock()
			}
			found, is := errors.AsType[*DeadlockError](err)
			if err != nil && !is {
				t.Fatalf("%s: %v", x, err)
			}
			if is && held == nil {
				held = found
				if s.events.len() > 0 {
					early++
				}
				for _, w := range found.Waits {
					if w.Reason != NoRoom {
						continue
					}
					at, _ := x.f.SwitchByGUID(w.For.Switch)
					out := x.f.Port(at, w.For.Port)
					in := int32(x.f.Peer(out))*s.vls + int32(w.For.VL) // the buffer that has no room
					heads[in] = s.cells.items[s.channels[in].head].packet
				}
			}
			s.broken, s.nextCheck = nil, s.counts.Events+1
		}
		c := s.Counts()
		if (held != nil) != (c.Copies > 0) || c.Dropped+c.Strayed > 0 {
			t.Fatalf("%s: deadlock %v, then %+v", x, held, c)
		}
		for in, packet := range heads {
			if head := s.channels[in].head; head == none || s.cells.items[head].packet != packet {
				t.Fatalf("%s: %v, and the packets went on", x, held)
			}
		}
		if held != nil {
			dead++
		} else {
			whole++
		}
	}
	t.Logf("%d deadlocks, %d of them found while others moved, %d without", dead, early, whole)
	if dead < 10 || early < 5 || whole < 10 {
		t.Errorf("%d deadlocks, %d early, %d without: too few to tell", dead, early, whole)
	}
}

// someChoices widens entries of a trial's tables. Of the ports that may be chosen and lead nearer,
// by the lengths of the static paths, it adds each with probability 1/one.
func (x *trial) someChoices(one int, may func(fabric.PortNum) bool) *adaptive.Tables {
	f := x.f
	t := &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches()), PLFTs: []*adaptive.PLFT{adaptive.NewPLFT(x.net.Tables)}}
	for lid, end := range f.LIDPorts() {
		if end == fabric.NoPort {
			continue
		}
		far := make([]int, f.NumSwitches())
		for s := range far {
			for at := fabric.NodeID(s); f.IsSwitch(at) && f.PortBase(at) != end; far[s]++ {
				out := x.net.Tables.Row(at)[lid]
				if out == 0 {
					break
				}
				at = f.Owner(f.Peer(f.Port(at, out)))
			}
		}
		for s := range fabric.NodeID(f.NumSwitches()) {
			var set adaptive.PortSet
			ports, to := f.SwitchLinks(s)
			for i, p := range ports {
				if far[to[i]] < far[s] && may(f.Num(p)) && x.rng.IntN(one) == 0 {
					set.Add(f.Num(p))
				}
			}
			if set.Len() > 0 {
				t.Groups[s] = append(t.Groups[s], adaptive.Group{Subgroups: []adaptive.Subgroup{{Ports: set}}})
				t.PLFTs[0].Set(s, fabric.LID(lid), adaptive.Free, len(t.Groups[s])-1)
			}
		}
	}
	return t
}

// TestMultipath holds the checker of choices against floods: nothing deadlocks where it finds no
// credit loop, and where it finds an escape nothing does that chooses again.
func TestMultipath(t *testing.T) {
	clean, escapes, loops, dead, once := 0, 0, 0, 0, 0
	for seed := range uint64(short.Of(400, 80)) {
		x := newTrial(t, seed)
		x.trees, x.net.Multicast = nil, nil
		one, may := 1+x.rng.IntN(8), func(fabric.PortNum) bool { return true }
		if seed%4 == 0 { // static paths by up*/down* on one cable, choices on the other: these escape
			x.doubleRing(t)
			static := short.Must(updown.Engine{}.Route(t.Context(), x.f, lft.Options{}))(t)
			x.net.Tables = static.Tables
			for _, s := range x.f.Switches() {
				for lid, port := range static.Tables.Row(s) {
					if port == 2 || port == 4 {
						static.Tables.Row(s)[lid]--
					}
				}
			}
			one, may = 1+x.rng.IntN(2), func(p fabric.PortNum) bool { return p == 2 || p == 4 }
		}
		x.net.Adaptive = x.someChoices(one, may)
		r := short.Must(verify.CheckAdaptive(t.Context(), &state.State{Fabric: x.f, Adaptive: x.net.Adaptive, SL2VL: x.net.SL2VL, PathSLs: x.net.PathSLs}, verify.Options{}))(t)
		switch {
		case r.Adaptive.CreditLoops == 0:
			clean++
		case r.Adaptive.NoEscape == 0:
			escapes++
		default:
			loops++
		}
		for _, again := range []bool{false, true} {
			cfg := x.config(Independent)
			cfg.Choice, cfg.ChooseAgain = Choice(x.rng.IntN(2)), again
			s := mustNew(t, x.net, cfg, nil)
			for _, m := range x.anyTraffic(x.lids(false)) {
				mustSend(t, s, m)
			}
			err := s.Run(t.Context(), Forever)
			found, is := errors.AsType[*DeadlockError](err)
			if is {
				dead++
				if r.Adaptive.NoEscape == 0 {
					once++
				}
			} else if err != nil || s.Counts().Copies > 0 || s.Counts().Dropped > 0 {
				t.Fatalf("%s: %v, %+v", x, err, s.Counts())
			}
			if is && (r.Adaptive.CreditLoops == 0 || again && r.Adaptive.NoEscape == 0) {
				t.Errorf("%s: again %t, %d credit loops, %d without escape, and %v", x, again, r.Adaptive.CreditLoops, r.Adaptive.NoEscape, found)
			}
		}
	}
	t.Logf("%d clean, %d with an escape, %d without, %d deadlocks of twice as many runs, %d with an escape that is not taken", clean, escapes, loops, dead, once)
	if clean < 10 || escapes < 10 || loops < 10 || dead < 10 || once == 0 {
		t.Errorf("%d clean, %d with an escape, %d without, %d deadlocks, %d with an escape: too few to tell", clean, escapes, loops, dead, once)
	}
}
