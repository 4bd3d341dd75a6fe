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
	k := &recheckChoices{
		recheck: &recheck{f: f, vls: c.VLs, number: make([]int32, f.NumPorts()*c.VLs)},
		tables:  t, read: s,
	}
	if err := k.numbers(c); err != nil {
		return err
	}
	return k.destinations(c.Management)
}

// recheckChoices enumerates the dependencies of packets for one LID with one SL. A static table
// leaves a switch one port to choose.
type recheckChoices struct {
	*recheck
	tables     *adaptive.Tables // nil for the static ones of read
	read       *state.State
	management bool

	slOf []fabric.SL // by PortID of an end port: of its path to the LID; nil for any

	sl     fabric.SL
	stops  []stop
	stopAt []int32 // by PortID of a switch, that packets come in by
	starts []int32 // the stops with senders
	lid    fabric.LID
	owner  fabric.PortID
	queue  []int32 // the stops that packets come to
}

// stop is a switch for packets that come in by some ports, and meet the same tables.
type stop struct {
	s       fabric.NodeID
	in      fabric.PortNum // one of the ports
	plft    int            // -1 for any
	senders []sender

	// For one LID: the ways on from here, whether packets can arrive, and the least number of
	// the channels that they wait for.
	reached, live bool
	ways          []way
	low           int32
}

// sender is an end port whose packets come to a stop.
type sender struct {
	port   fabric.PortID
	vl     fabric.VL // that it sends on, 0 for port 0 of a switch
	number int32     // of its channel
}

// way is a port by which packets leave a stop.
type way struct {
	out    fabric.PortID
	vl     fabric.VL
	number int32 // of the channel
	next   int32 // stop, or -1 for the owner
}

// destinations checks the dependencies of packets for all LIDs. Of SLs whose packets meet the same
// tables everywhere, and may be those of any path, it looks at the lowest.
func (k *recheckChoices) destinations(management bool) error {
	inUse, err := SLsInUse(k.f, k.read.PathSLs)
	if err != nil {
		return err
	}
	k.management = management
	rows := map[fabric.PortID][]fabric.SL{} // of path SLs, by end port
	if sls := k.read.PathSLs; sls != nil {
		k.slOf = make([]fabric.SL, k.f.NumPorts())
		k.f.EndPorts(func(port fabric.PortID) {
			if row := sls.PortRow(port); row != nil {
				rows[port] = row
			} else if in := k.f.Attachment(port); in != fabric.NoPort {
				rows[port] = sls.Given(k.f.Owner(in))
			}
		})
	}
	var walks []*recheckChoices // one for each SL
	for k.sl = range fabric.SL(lft.NumSLs) {
		if inUse>>k.sl&1 != 0 && !k.hasLower() {
			w := *k
			w.findStops()
			walks = append(walks, &w)
		}
	}
	for lid := fabric.LID(1); lid <= k.f.MaxLID(); lid++ {
		owner := k.f.LIDPort(lid)
		if k.f.Attachment(owner) == fabric.NoPort || k.f.IsSwitch(k.f.Owner(owner)) && !management {
			continue
		}
		for port, row := range rows {
			k.slOf[port] = row[lid]
		}
		for _, w := range walks {
			w.lid, w.owner = lid, owner
			if err := w.destination(); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasLower returns true if packets of a lower SL meet the same tables as those of the SL at hand.
func (k *recheckChoices) hasLower() bool {
	if k.read.PathSLs != nil || k.tables != nil && k.tables.Select != nil {
		return false
	}
	for sl := range k.sl {
		if k.read.SL2VL == nil || !slices.ContainsFunc(k.read.SL2VL.Maps(), func(m lft.VLMap) bool { return m[sl] != m[k.sl] }) {
			return true
		}
	}
	return false
}

// findStops finds the stops of packets with the SL, and who sends there.
func (k *recheckChoices) findStops() {
	f := k.f
	k.stopAt = make([]int32, f.PortBase(fabric.NodeID(f.NumSwitches())))
	for s := range fabric.NodeID(f.NumSwitches()) {
		known := map[string]int32{}
		for num := range int(f.Node(s).NumPorts) + 1 {
			in, plft := fabric.PortNum(num), 0
			switch t := k.tables; {
			case t == nil:
			case t.Select != nil:
				plft = t.Select.PLFT(s, in, k.sl)
			case len(t.PLFTs) > 1:
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
		in, x := f.Attachment(port), sender{port: port}
		if in == fabric.NoPort || in == port && !k.management {
			return
		}
		if k.read.SL2VL != nil && in != port {
			if x.vl = k.read.SL2VL.At(0, port)[k.sl]; x.vl == lft.DropVL {
				return
			}
		}
		x.number = k.numberOf(port, x.vl)
		at := &k.stops[k.stopAt[in]]
		if at.senders == nil {
			k.starts = append(k.starts, k.stopAt[in])
		}
		at.senders = append(at.senders, x)
	})
}

// sends returns true if a port sends packets for the LID with the SL.
func (k *recheckChoices) sends(x sender) bool {
	return x.port != k.owner && (k.slOf == nil || k.slOf[x.port] == k.sl || k.slOf[x.port] == lft.UnknownSL)
}

// destination checks the dependencies of packets for the LID.
func (k *recheckChoices) destination() error {
	for _, i := range k.queue {
		k.stops[i].reached, k.stops[i].live = false, false
	}
	k.queue = k.queue[:0]
	for _, i := range k.starts {
		if at := &k.stops[i]; slices.ContainsFunc(at.senders, k.sends) {
			at.reached = true
			k.queue = append(k.queue, i)
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
		for _, x := range at.senders {
			if at.live && x.port != k.f.Attachment(x.port) && k.sends(x) {
				if err := k.climbs(x.port, x.vl, x.number, i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// numberOf is the number of a channel, -1 without one.
func (k *recheckChoices) numberOf(port fabric.PortID, vl fabric.VL) int32 {
	if int(vl) >= k.vls {
		return -1
	}
	return k.number[int(port)*k.vls+int(vl)]
}

// findWays fills in the ways on from a stop that do not lose packets.
func (k *recheckChoices) findWays(at *stop) {
	at.ways = at.ways[:0]
	base, last := k.f.PortBase(at.s), k.f.Node(at.s).NumPorts
	set := k.choices(at)
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

// choices is the ports by which packets may leave a stop.
func (k *recheckChoices) choices(at *stop) (set adaptive.PortSet) {
	if k.tables == nil {
		if row := k.t.Row(at.s); int(k.lid) < len(row) && row[k.lid] != fabric.NoPath {
			set.Add(row[k.lid])
		}
		return set
	}
	for p, t := range k.tables.PLFTs {
		if (p == at.plft || at.plft < 0) && k.lid <= t.Ports.MaxLID() {
			set.Union(k.tables.Choices(p, at.s, k.lid))
		}
	}
	return set
}

// arrives says whether packets that take a way can arrive.
func (k *recheckChoices) arrives(w way) bool { return w.next < 0 || k.stops[w.next].live }

// climbs checks the dependencies of packets that come to a stop by a channel with a number.
func (k *recheckChoices) climbs(in fabric.PortID, vl fabric.VL, number, to int32) error {
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
