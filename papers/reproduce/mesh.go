package reproduce

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/state"
)

// The mesh of Zhou, Liu and Chung (X18); meshPart is 40 % of its hosts (X19).
const (
	meshSide  = 16
	meshHosts = meshSide * meshSide
	meshPart  = 102
)

// lanes is a configuration of virtual lanes in figure 8 of the
// journal version, which is figure 6 of the conference's (X14).
type lanes struct {
	label  string // of the papers' curves
	vls    int
	scheme string // of compile's SL-to-VL tables
	// figure says that VLs are numbered as in figures (Fig. 6(e) and 8(e), E-X5), north 0,
	// east 1, south 2, west 3, and not as in the text: east 0, north 1, west 2, south 3.
	figure bool
}

var (
	oneVL     = lanes{"1 VL", 1, "", false}
	twoBySL   = lanes{"NESW: VL0, VL1", 2, compile.IdentityVLs, false}
	twoByDir  = lanes{"NE: VL0; SW: VL1", 2, compile.ByDirectionVLs, false}
	fourBySL  = lanes{"NESW: VL0, VL1, VL2, VL3", 4, compile.IdentityVLs, false}
	fourByDir = lanes{"N: VL0; E: VL1; S: VL2; W: VL3", 4, compile.ByDirectionVLs, true}
)

// slChoice is how a source chooses the SL of a packet, if VLs
// go by SL. The papers leave it open (X16).
type slChoice string

const (
	slBySequence slChoice = "source + sequence number" // mod VLs
	slByPair     slChoice = "source + destination"     // mod VLs
	slRandom     slChoice = "random"
)

// unicastOrder is the order of destinations of repeated unicast.
type unicastOrder string

const (
	orderLID    unicastOrder = "by LID"
	orderRotate unicastOrder = "by LID from the source on"
	orderRandom unicastOrder = "random"
)

// exchange is one measurement of the mesh papers: each source sends
// one message to all of a group but itself at time 0, as one multicast
// or as a unicast to each (X20). The papers do not give the fields
// from seed on (X19). Exchanges are keys: every field is comparable.
type exchange struct {
	sources, group, bytes int
	unicast               bool
	lanes                 lanes
	seed, draw            uint64 // for drawing sources and group
	routing, wire, credit sim.Time
	buffers               int // whole packets a port and VL
	header                int // bytes
	mtu                   int // 0: a message is one packet
	order                 unicastOrder
	choice                slChoice
}

// meshHardware fills the gaps in the mesh papers (X19): links of 1X
// SDR, 2 Gb/s of data or 4 ns a byte, 100 ns in a switch, 10 ns for
// the wire and for credits, no headers. PacketBuffers sets buffers.
func meshHardware() sim.Config {
	return sim.Config{
		Mbps: 2000, WireDelay: 10 * sim.Nanosecond, CreditDelay: 10 * sim.Nanosecond, RoutingDelay: 100 * sim.Nanosecond,
	}
}

// newExchange returns an exchange with the defaults of X19.
func newExchange(sources, group, bytes int, unicast bool, l lanes, seed, draw uint64) exchange {
	d := meshHardware()
	return exchange{
		sources: sources, group: group, bytes: bytes, unicast: unicast, lanes: l, seed: seed, draw: draw,
		routing: d.RoutingDelay, wire: d.WireDelay, credit: d.CreditDelay, buffers: 1,
		order: orderLID, choice: slBySequence,
	}
}

// meshTables is the compiled mesh with its group.
type meshTables struct {
	sources, group []fabric.PortID // by LID
	net            sim.Network
	mlid           map[fabric.PortID]fabric.LID // by source
}

// tables compiles the mesh for x.
func (x *exchange) tables(lab *Lab) (*meshTables, error) {
	key := fmt.Sprintf("mesh tables %d %d %d %d %v", x.sources, x.group, x.seed, x.draw, x.lanes)
	return Once(lab, key, func(ctx context.Context) (*meshTables, error) {
		t := &meshTables{mlid: map[fabric.PortID]fabric.LID{}}
		r, err := zhouMesh(ctx, meshSide, meshSide, compile.Options{
			Route: lft.Options{VLs: x.lanes.vls},
			SL2VL: x.lanes.scheme,
			Groups: func(f *fabric.Fabric) ([]mft.Group, error) {
				t.drawHosts(f, x)
				return []mft.Group{{Name: "all", Senders: t.sources, Receivers: t.group}}, nil
			},
		})
		if err != nil {
			return nil, err
		}
		if r.Verify.Verdict != "clean" {
			return nil, fmt.Errorf("the compiled mesh is not clean: %+v", r.Verify.Findings)
		}
		if x.lanes.figure {
			for _, p := range r.Routing.Fabric.Channels() {
				r.Routing.SL2VL.SetOut(p, lft.ConstantVL(r.Routing.SL2VL.At(0, p)[0]^1))
			}
		}
		t.net = sim.Network{State: state.State{Fabric: r.Routing.Fabric, Tables: r.Routing.Tables, SL2VL: r.Routing.SL2VL, Multicast: r.Plan}}
		for _, tree := range r.Plan.Trees {
			for _, s := range tree.Senders {
				t.mlid[s] = tree.MLID
			}
		}
		return t, nil
	})
}

// drawHosts draws the group and the sources independently: a source may be in the group or not.
func (t *meshTables) drawHosts(f *fabric.Fabric, x *exchange) {
	rng := rand.New(rand.NewPCG(x.seed, 2*x.draw))
	some := func(n int) []fabric.PortID {
		hosts := slices.Clone(f.CAPorts())
		rng.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		hosts = hosts[:n]
		slices.Sort(hosts) // GUIDs, PortIDs and LIDs have one order here
		return hosts
	}
	t.group, t.sources = some(x.group), some(x.sources)
}

// makespan returns the time until the last destination has the
// last byte. It simulates each exchange once in a Run.
func (x exchange) makespan(ctx context.Context, lab *Lab) (sim.Time, error) {
	t, err := x.tables(lab)
	if err != nil {
		return 0, err
	}
	return Once(lab, fmt.Sprintf("exchange %+v", x), func(context.Context) (sim.Time, error) {
		return x.simulate(ctx, t)
	})
}

func (x *exchange) simulate(ctx context.Context, t *meshTables) (sim.Time, error) {
	cfg := meshHardware()
	cfg.RoutingDelay, cfg.WireDelay, cfg.CreditDelay = x.routing, x.wire, x.credit
	cfg.HeaderBytes, cfg.MTU = x.header, x.mtu
	packet := x.bytes
	if x.mtu > 0 {
		packet = min(packet, x.mtu)
	}
	cfg.PacketBuffers(x.buffers, packet)
	s, err := sim.New(t.net, cfg, nil)
	if err != nil {
		return 0, err
	}
	rng := rand.New(rand.NewPCG(x.seed, 2*x.draw+1))
	packets := int64((x.bytes + packet - 1) / packet)
	want := int64(0)
	for i, src := range t.sources {
		to := slices.Clone(t.group)
		switch x.order {
		case orderRotate:
			at, _ := slices.BinarySearch(to, src)
			to = slices.Concat(to[at:], to[:at])
		case orderRandom:
			rng.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
		}
		sl := func(sequence int, dlid fabric.LID) fabric.SL {
			n := i + sequence
			switch x.choice {
			case slByPair:
				n = i + int(dlid)
			case slRandom:
				n = rng.IntN(x.lanes.vls)
			}
			return fabric.SL(n % x.lanes.vls)
		}
		sent := 0
		for _, d := range to {
			if d == src {
				continue
			}
			want += packets
			if x.unicast {
				dlid := t.net.Fabric.LID(d)
				if err := s.Send(sim.Message{Src: src, DLID: dlid, Bytes: x.bytes, SL: sl(sent, dlid)}); err != nil {
					return 0, err
				}
			}
			sent++
		}
		if !x.unicast {
			if err := s.Send(sim.Message{Src: src, DLID: t.mlid[src], Bytes: x.bytes, SL: sl(0, t.mlid[src])}); err != nil {
				return 0, err
			}
		}
	}
	if err := s.Run(ctx, sim.Forever); err != nil {
		return 0, err
	}
	if c := s.Counts(); c.Delivered != want || c.Dropped != 0 || c.Strayed != 0 {
		return 0, fmt.Errorf("%+v: %d packets delivered of %d, %d dropped, %d strayed", *x, c.Delivered, want, c.Dropped, c.Strayed)
	}
	return s.Counts().LastAt, nil
}
