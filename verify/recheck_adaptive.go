package verify

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
)

// CheckAdaptive is Check for adaptive tables: the number must increase along every dependency
// that packets make which can still arrive, whatever ports the switches choose. With
// several PLFTs and no selector packets may take any at each switch. Multicast packets are an
// error. It takes O(switches x ports) time for each LID, with SL-to-VL tables, selectors
// and path SLs for each SL.
func (c *Certificate) CheckAdaptive(s *state.State) error {
	f, t := s.Fabric, s.Adaptive
	if err := t.Check(f); err != nil {
		return err
	}
	if _, err := checkLanes(f, s.SL2VL, s.PathSLs); err != nil {
		return err
	}
	switch {
	case c.VLs < 1 || c.VLs > lft.MaxDataVLs:
		return fmt.Errorf("the certificate is of %d VLs: want 1 to %d", c.VLs, lft.MaxDataVLs)
	case s.SL2VL == nil && c.VLs != 1:
		return fmt.Errorf("the certificate is of %d VLs, and without SL-to-VL tables all traffic is on one", c.VLs)
	case c.Multicast || s.Multicast != nil:
		return errors.New("there are multicast packets, and no certificate covers them together with adaptive tables")
	}
	k := &recheckAdaptive{
		recheck: &recheck{f: f, vls: c.VLs, number: make([]int32, f.NumPorts()*c.VLs)},
		tables:  t, read: s, management: c.Management,
	}
	if err := k.numbers(c); err != nil {
		return err
	}
	for k.sl = range fabric.SL(lft.NumSLs) {
		if k.sl > 0 && s.SL2VL == nil && s.PathSLs == nil && t.Select == nil {
			break // as SL 0
		}
		k.findStops()
		for k.lid = 1; k.lid <= f.MaxLID(); k.lid++ {
			k.owner = f.LIDPort(k.lid)
			if f.Attachment(k.owner) == fabric.NoPort || f.IsSwitch(f.Owner(k.owner)) && !c.Management {
				continue
			}
			if err := k.destination(); err != nil {
				return err
			}
		}
	}
	return nil
}

// recheckAdaptive enumerates the dependencies of packets for one LID with one SL.
type recheckAdaptive struct {
	*recheck
	tables     *adaptive.Tables
	read       *state.State
	management bool

	sl     fabric.SL
	stops  []stop
	stopAt []int32 // by PortID of a switch, that packets come in by
	lid    fabric.LID
	owner  fabric.PortID
	queue  []int32 // the stops that packets come to
}

// stop is a switch for packets that come in by some ports, and meet the same tables.
type stop struct {
	s       fabric.NodeID
	in      fabric.PortNum // one of the ports
	plft    int            // -1 for any
	senders []fabric.PortID

	// For one LID: the ways on from here, whether packets can arrive, and the least number of
	// the channels that they wait for.
	reached, live bool
	ways          []way
	low           int32
}

// way is a port by which packets leave a stop.
type way struct {
	out    fabric.PortID
	vl     fabric.VL
	number int32 // of the channel
	next   int32 // stop, or -1 for the owner
}

// findStops finds the stops of packets with the SL, and who sends there.
func (k *recheckAdaptive) findStops() {
	f := k.f
	k.stops, k.stopAt = nil, make([]int32, f.PortBase(fabric.NodeID(f.NumSwitches())))
	for s := range fabric.NodeID(f.NumSwitches()) {
		known := map[string]int32{}
		for num := range int(f.Node(s).NumPorts) + 1 {
			in, plft := fabric.PortNum(num), 0
			if k.tables.Select != nil {
				plft = k.tables.Select.PLFT(s, in, k.sl)
			} else if len(k.tables.PLFTs) > 1 {
				plft = -1
			}
			key := []byte{byte(plft)}
			for out := f.PortBase(s) + 1; k.read.SL2VL != nil && out <= f.PortBase(s)+fabric.PortID(f.Node(s).NumPorts); out++ {
				key = append(key, byte(k.read.SL2VL.At(in, out)[k.sl]))
			}
			at, ok := known[string(key)]
			if !ok {
				at = int32(len(k.stops))
				known[string(key)] = at
				k.stops = append(k.stops, stop{s: s, in: in, plft: plft})
			}
			k.stopAt[f.Port(s, in)] = at
		}
	}
	f.EndPorts(func(port fabric.PortID) {
		in := f.Attachment(port)
		if in == fabric.NoPort || in == port && !k.management || k.vlFrom(port) == lft.DropVL {
			return
		}
		at := &k.stops[k.stopAt[in]]
		at.senders = append(at.senders, port)
	})
}

// vlFrom is the VL on which a CA or router port sends, 0 for port 0 of a switch.
func (k *recheckAdaptive) vlFrom(port fabric.PortID) fabric.VL {
	if k.read.SL2VL == nil || k.f.IsSwitch(k.f.Owner(port)) {
		return 0
	}
	return k.read.SL2VL.At(0, port)[k.sl]
}

// sends says whether a port sends packets for the LID with the SL.
func (k *recheckAdaptive) sends(port fabric.PortID) bool {
	if port == k.owner || k.read.PathSLs == nil {
		return port != k.owner
	}
	row := k.read.PathSLs.PortRow(port)
	if row == nil {
		row = k.read.PathSLs.Given(k.f.Owner(k.f.Attachment(port)))
	}
	return row[k.lid] == k.sl || row[k.lid] == lft.UnknownSL
}

// destination checks the dependencies of packets for the LID.
func (k *recheckAdaptive) destination() error {
	k.queue = k.queue[:0]
	for i := range k.stops {
		at := &k.stops[i]
		at.reached, at.live = slices.ContainsFunc(at.senders, k.sends), false
		if at.reached {
			k.queue = append(k.queue, int32(i))
		}
	}
	for i := 0; i < len(k.queue); i++ {
		k.findWays(&k.stops[k.queue[i]])
	}
	for more := true; more; {
		more = false
		for _, i := range slices.Backward(k.queue) {
			if at := &k.stops[i]; !at.live && slices.ContainsFunc(at.ways, k.arrives) {
				at.live, more = true, true
			}
		}
	}
	for _, i := range k.queue {
		at := &k.stops[i]
		at.low = math.MaxInt32
		for _, w := range at.ways {
			if k.arrives(w) && w.out != k.owner { // port 0 of a switch is no channel
				at.low = min(at.low, w.number)
			}
		}
	}
	for _, i := range k.queue {
		at := &k.stops[i]
		for _, w := range at.ways {
			if w.next >= 0 && k.arrives(w) {
				if err := k.climbs(w.out, w.vl, w.number, w.next); err != nil {
					return err
				}
			}
		}
		for _, port := range at.senders {
			if from := k.vlFrom(port); at.live && !k.f.IsSwitch(k.f.Owner(port)) && k.sends(port) {
				if err := k.climbs(port, from, k.numberOf(port, from), i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// numberOf is the number of a channel, -1 without one.
func (k *recheckAdaptive) numberOf(port fabric.PortID, vl fabric.VL) int32 {
	if int(vl) >= k.vls {
		return -1
	}
	return k.number[int(port)*k.vls+int(vl)]
}

// findWays fills in the ways on from a stop that do not lose packets.
func (k *recheckAdaptive) findWays(at *stop) {
	at.ways = at.ways[:0]
	var set adaptive.PortSet
	for p, t := range k.tables.PLFTs {
		if (p == at.plft || at.plft < 0) && k.lid <= t.Ports.MaxLID() {
			set.Union(k.tables.Choices(p, at.s, k.lid))
		}
	}
	base, last := k.f.PortBase(at.s), k.f.Node(at.s).NumPorts
	set.Each(func(num fabric.PortNum) {
		if num > last {
			return
		}
		w := way{out: base + fabric.PortID(num), next: -1}
		peer := k.f.Peer(w.out)
		if k.read.SL2VL != nil && w.out != k.owner {
			w.vl = k.read.SL2VL.At(at.in, w.out)[k.sl]
		}
		switch {
		case w.vl == lft.DropVL:
			return
		case w.out == k.owner || peer == k.owner:
		case k.f.PeerSwitch(w.out) == fabric.NoNode:
			return
		default:
			w.next = k.stopAt[peer]
			if to := &k.stops[w.next]; !to.reached {
				to.reached = true
				k.queue = append(k.queue, w.next)
			}
		}
		w.number = k.numberOf(w.out, w.vl)
		at.ways = append(at.ways, w)
	})
}

// arrives says whether packets that take a way can arrive.
func (k *recheckAdaptive) arrives(w way) bool { return w.next < 0 || k.stops[w.next].live }

// climbs checks the dependencies of packets that come to a stop by a channel with a number.
func (k *recheckAdaptive) climbs(in fabric.PortID, vl fabric.VL, number, to int32) error {
	at := &k.stops[to]
	if number >= 0 && number < at.low {
		return nil
	}
	for _, w := range at.ways {
		if k.arrives(w) && w.out != k.owner {
			if err := k.increases(in, vl, w.out, w.vl, k.lid); err != nil {
				return err
			}
		}
	}
	return nil
}
