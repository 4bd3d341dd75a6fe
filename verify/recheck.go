package verify

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
)

// DependencyError says why a certificate does not hold: packets for LID hold
// channel In while they wait for Out, and the number does not increase. A
// channel without a number has Number -1.
type DependencyError struct {
	In, Out NumberedChannel
	LID     fabric.LID

	in, out string // "description"[port], with the VL if there are several
}

func (e *DependencyError) Error() string {
	number := func(c NumberedChannel) string {
		if c.Number < 0 {
			return "no number"
		}
		return fmt.Sprintf("number %d", c.Number)
	}
	lid := fmt.Sprintf("%d", e.LID)
	if e.LID >= mft.MinMLID {
		lid = fmt.Sprintf("%#x", uint16(e.LID))
	}
	return fmt.Sprintf("the certificate does not hold: packets for LID %s hold %s, which has %s, while they wait for %s, which has %s: the number must increase",
		lid, e.in, number(e.In), e.out, number(e.Out))
}

// Check proves the certificate against the static tables of a state, with its SL-to-VL
// tables, path SLs and multicast tables: the certificate must be of this fabric, and its
// numbers must increase along every dependency of the covered traffic. It finds the
// dependencies itself in the plainest way. It takes O(switches x LIDs), with SL-to-VL tables
// for each SL in use, and for each MLID O((senders + ports in masks x VLs) x ports of a
// switch). It returns a *DependencyError for a dependency along which the number does not
// increase.
//
// It is an error if the certificate covers multicast packets and there are no multicast
// tables, or the reverse; with multicast tables also if switches do not copy
// independently, which no certificate covers.
//
// Packets that are dropped and unicast packets that loop make no dependency; no certificate holds
// for multicast packets that loop. Tables with other faults, which [Check] finds, may have a
// certificate.
func (c *Certificate) Check(s *state.State, copying Copying) error {
	if s.Tables.Switches() != s.Fabric.NumSwitches() {
		return fmt.Errorf("tables of %d switches for a fabric of %d", s.Tables.Switches(), s.Fabric.NumSwitches())
	}
	switch {
	case c.Multicast && s.Multicast == nil:
		return errors.New("the certificate covers multicast packets, and there are no multicast tables")
	case !c.Multicast && s.Multicast != nil:
		return errors.New("the certificate does not cover multicast packets, and there are multicast tables")
	}
	if s.Multicast != nil {
		if err := checkPlan(s.Multicast, s.Fabric); err != nil {
			return err
		}
		if copying != Independent {
			return fmt.Errorf("a certificate says nothing about switches with %s copying", copying)
		}
	}
	unicast := *s
	if s.SL2VL == nil {
		unicast.PathSLs = nil // SLs make no difference
	}
	k := &recheck{f: s.Fabric, read: &unicast}
	if err := k.check(c); err != nil || s.Multicast == nil {
		return err
	}
	return (&recheckMulticast{recheck: k, m: s.Multicast, sl2vl: s.SL2VL, came: make([]uint16, k.f.NumPorts())}).trees()
}

// CheckAdaptive is Check for adaptive tables: the numbers must increase along
// every dependency of packets that can still arrive, whatever ports the switches
// choose. If there are several PLFTs and no selector, packets may take any of
// them at each switch. Multicast packets are an error. It takes O(switches x
// ports) for each LID, and with SL-to-VL tables, selectors or path SLs for each
// SL.
func (c *Certificate) CheckAdaptive(s *state.State) error {
	if err := s.Adaptive.Check(s.Fabric); err != nil {
		return err
	}
	if c.Multicast || s.Multicast != nil {
		return errors.New("there are multicast packets, and no certificate covers them together with adaptive tables")
	}
	return (&recheck{f: s.Fabric, tables: s.Adaptive, read: s}).check(c)
}

// recheck enumerates the dependencies of packets for one LID with one SL. Static tables count as
// adaptive ones with one port to choose.
type recheck struct {
	f          *fabric.Fabric
	tables     *adaptive.Tables // nil for static tables
	read       *state.State
	management bool
	vls        int
	number     []int32 // by PortID and VL of a channel; -1 for none

	sl     fabric.SL
	stops  []recheckStop
	stopAt []int32 // by PortID of a switch where packets enter: its stop
	starts []int32 // stops with senders
	lid    fabric.LID
	owner  fabric.PortID
	queue  []int32 // stops that packets reach
	arrive []int32 // those from which packets can arrive
}

// recheckStop is a switch with a set of its input ports, whose packets meet the same tables.
type recheckStop struct {
	s       fabric.NodeID
	in      fabric.PortNum // one of the input ports
	plft    int            // -1 for any
	senders []recheckSender
	rows    [][]fabric.SL // path SLs of the senders; a row of several in sequence is there once
	top     int32         // the greatest number of CAs' channels to it; math.MaxInt32 if one has none

	// For one LID: whether packets come here, and can arrive; the ways on; the stops with a way to
	// here; and the least number of the channels that packets here wait for.
	reached, live bool
	ways          []recheckWay
	before        []int32
	low           int32
}

// recheckSender is an end port whose packets enter at a stop.
type recheckSender struct {
	port   fabric.PortID
	ca     bool        // a CA or router port, not port 0 of a switch
	vl     fabric.VL   // on which it sends
	number int32       // of its channel
	row    []fabric.SL // SLs of its paths by LID; nil for any
}

// recheckWay is a port by which packets leave a stop.
type recheckWay struct {
	out    fabric.PortID
	vl     fabric.VL
	number int32 // of the channel
	next   int32 // stop, or -1 for the owner
}

// check checks the dependencies of unicast packets.
func (k *recheck) check(c *Certificate) error {
	if _, err := checkLanes(k.f, k.read.SL2VL, k.read.PathSLs); err != nil {
		return err
	}
	switch {
	case c.VLs < 1 || c.VLs > lft.MaxDataVLs:
		return fmt.Errorf("the certificate is of %d VLs: want 1 to %d", c.VLs, lft.MaxDataVLs)
	case k.read.SL2VL == nil && c.VLs != 1:
		return fmt.Errorf("the certificate is of %d VLs, and without SL-to-VL tables all traffic is on one", c.VLs)
	}
	k.vls, k.management = c.VLs, c.Management
	if err := k.takeNumbers(c); err != nil {
		return err
	}
	return k.destinations()
}

// takeNumbers copies the certificate's numbers.
func (k *recheck) takeNumbers(c *Certificate) error {
	f := k.f
	k.number = make([]int32, f.NumPorts()*k.vls)
	if FabricHash(f) != c.Fabric {
		return errors.New("the certificate is of a fabric with other nodes or cables")
	}
	for port := range k.number {
		k.number[port] = -1
	}
	for _, ch := range c.Channels {
		n, ok := f.NodeByGUID(ch.GUID)
		if !ok {
			return fmt.Errorf("the certificate numbers a channel of node %s, which the fabric does not have", ch.GUID)
		}
		node := f.Node(n)
		if ch.Port == 0 || ch.Port > node.NumPorts || f.Peer(f.Port(n, ch.Port)) == fabric.NoPort {
			return fmt.Errorf("the certificate numbers a channel of port %d of %q (%s), which has no cable", ch.Port, f.Name(n).Text, ch.GUID)
		}
		port := f.Port(n, ch.Port)
		if int(ch.VL) >= k.vls || ch.Number < 0 {
			return fmt.Errorf("the certificate gives %s VL %d the number %d: want VL 0 to %d and numbers from 0 on", f.PortName(port), ch.VL, ch.Number, k.vls-1)
		}
		at := &k.number[int(port)*k.vls+int(ch.VL)]
		if *at >= 0 {
			return fmt.Errorf("the certificate numbers %s VL %d twice", f.PortName(port), ch.VL)
		}
		*at = ch.Number
	}
	return nil
}

// destinations checks the dependencies of packets for all LIDs. Of SLs that may be on the same
// paths, and whose packets meet the same tables everywhere, it checks only the lowest.
func (k *recheck) destinations() error {
	inUse, err := slsInUse(k.f, k.read.PathSLs)
	if err != nil {
		return err
	}
	var walks []*recheck // one for each SL
	for k.sl = range fabric.SL(lft.NumSLs) {
		if inUse>>k.sl&1 != 0 && !k.hasLower() {
			w := *k
			w.findStops()
			walks = append(walks, &w)
		}
	}
	for lid := fabric.LID(1); lid <= k.f.MaxLID(); lid++ {
		owner := k.f.LIDPort(lid)
		if k.f.Attachment(owner) == fabric.NoPort || k.f.IsSwitch(k.f.Owner(owner)) && !k.management {
			continue
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

// hasLower returns true if packets of a lower SL may be on the same paths as packets of k.sl, and
// meet the same tables.
func (k *recheck) hasLower() bool {
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

// findStops finds the stops of packets with the SL, and their senders.
func (k *recheck) findStops() {
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
				k.stops = append(k.stops, recheckStop{s: s, in: in, plft: plft})
			}
			k.stopAt[f.Port(s, in)] = at
		}
	}
	f.EndPorts(func(port fabric.PortID) {
		in := f.Attachment(port)
		x := recheckSender{port: port, ca: in != port}
		if sls := k.read.PathSLs; sls != nil && in != fabric.NoPort {
			if x.row = sls.PortRow(port); x.row == nil {
				x.row = sls.Given(k.f.Owner(in))
			}
		}
		if in == fabric.NoPort || !x.ca && !k.management {
			return
		}
		if k.read.SL2VL != nil && x.ca {
			if x.vl = k.read.SL2VL.At(0, port)[k.sl]; x.vl == lft.DropVL {
				return
			}
		}
		at := &k.stops[k.stopAt[in]]
		x.number = k.numberOf(port, x.vl)
		switch {
		case x.ca && x.number < 0:
			at.top = math.MaxInt32
		case x.ca:
			at.top = max(at.top, x.number)
		}
		if at.senders == nil {
			k.starts = append(k.starts, k.stopAt[in])
		}
		if n := len(at.rows); n == 0 || x.row != nil && &x.row[0] != &at.rows[n-1][0] {
			at.rows = append(at.rows, x.row)
		}
		at.senders = append(at.senders, x)
	})
}

// sends returns true if a port sends packets for the LID with the SL.
func (k *recheck) sends(x *recheckSender) bool { return x.port != k.owner && k.hasSL(x.row) }

// anySends returns true if some sender of a stop sends packets for the LID with the SL. Mostly the
// first does, or none does if all have one row.
func (k *recheck) anySends(at *recheckStop) bool {
	some := k.sends(&at.senders[0])
	if some || !slices.ContainsFunc(at.rows, k.hasSL) {
		return some
	}
	for n := range at.senders {
		some = some || k.sends(&at.senders[n])
	}
	return some
}

// hasSL returns true if row, of path SLs, allows SL k.sl on paths to k.lid.
func (k *recheck) hasSL(row []fabric.SL) bool {
	return row == nil || row[k.lid] == k.sl || row[k.lid] == lft.UnknownSL
}

// destination checks the dependencies of packets for the LID.
func (k *recheck) destination() error {
	for _, i := range k.queue {
		at := &k.stops[i]
		at.reached, at.live, at.before = false, false, at.before[:0]
	}
	k.queue, k.arrive = k.queue[:0], k.arrive[:0]
	for _, i := range k.starts {
		if at := &k.stops[i]; k.anySends(at) {
			at.reached = true
			k.queue = append(k.queue, i)
		}
	}
	for i := 0; i < len(k.queue); i++ {
		k.findWays(k.queue[i])
	}
	for i := 0; i < len(k.arrive); i++ {
		for _, from := range k.stops[k.arrive[i]].before {
			k.setLive(from)
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
		if !at.live || at.top < at.low {
			continue
		}
		for n := range at.senders {
			if x := &at.senders[n]; x.ca && k.sends(x) {
				if err := k.climbs(x.port, x.vl, x.number, i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// numberOf returns the number of a channel, -1 if it has none.
func (k *recheck) numberOf(port fabric.PortID, vl fabric.VL) int32 {
	if int(vl) >= k.vls {
		return -1
	}
	return k.number[int(port)*k.vls+int(vl)]
}

// setLive notes that packets can arrive from stop i.
func (k *recheck) setLive(i int32) {
	if at := &k.stops[i]; !at.live {
		at.live = true
		k.arrive = append(k.arrive, i)
	}
}

// findWays finds the ways on from stop i that do not lose packets.
func (k *recheck) findWays(i int32) {
	at := &k.stops[i]
	at.ways = at.ways[:0]
	if k.tables == nil {
		if row := k.read.Tables.Row(at.s); int(k.lid) < len(row) {
			k.addWay(i, row[k.lid])
		}
		return
	}
	var set adaptive.PortSet
	for p, t := range k.tables.PLFTs {
		if (p == at.plft || at.plft < 0) && k.lid <= t.Ports.MaxLID() {
			set.Union(k.tables.Choices(p, at.s, k.lid))
		}
	}
	set.Each(func(num fabric.PortNum) { k.addWay(i, num) })
}

// addWay adds a way from stop i by port num, if packets are not lost there.
func (k *recheck) addWay(i int32, num fabric.PortNum) {
	at := &k.stops[i]
	if num > k.f.Node(at.s).NumPorts {
		return
	}
	w := recheckWay{out: k.f.PortBase(at.s) + fabric.PortID(num), next: -1}
	peer := k.f.Peer(w.out)
	if k.read.SL2VL != nil && w.out != k.owner {
		w.vl = k.read.SL2VL.At(at.in, w.out)[k.sl]
	}
	switch {
	case w.vl == lft.DropVL:
		return
	case w.out == k.owner || peer == k.owner:
		k.setLive(i)
	case k.f.PeerSwitch(w.out) == fabric.NoNode:
		return
	default:
		w.next = k.stopAt[peer]
		to := &k.stops[w.next]
		if !to.reached {
			to.reached = true
			k.queue = append(k.queue, w.next)
		}
		to.before = append(to.before, i)
	}
	w.number = k.numberOf(w.out, w.vl)
	at.ways = append(at.ways, w)
}

// arrives returns true if packets can arrive by way w.
func (k *recheck) arrives(w recheckWay) bool { return w.next < 0 || k.stops[w.next].live }

// climbs checks the dependencies of packets that come to a stop by a channel with the given number.
func (k *recheck) climbs(in fabric.PortID, vl fabric.VL, number, to int32) error {
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

// increases checks the dependency of packets for lid that hold channel in and wait for channel out.
func (k *recheck) increases(in fabric.PortID, inVL fabric.VL, out fabric.PortID, outVL fabric.VL, lid fabric.LID) error {
	if a, b := k.numberOf(in, inVL), k.numberOf(out, outVL); a >= 0 && a < b {
		return nil
	}
	channel := func(p fabric.PortID, vl fabric.VL) NumberedChannel {
		return NumberedChannel{k.f.Node(k.f.Owner(p)).GUID, k.f.Num(p), vl, k.numberOf(p, vl)}
	}
	name := func(p fabric.PortID, vl fabric.VL) string {
		if k.vls == 1 && inVL == 0 && outVL == 0 {
			return k.f.PortName(p)
		}
		return fmt.Sprintf("%s VL %d", k.f.PortName(p), vl)
	}
	return &DependencyError{In: channel(in, inVL), Out: channel(out, outVL), LID: lid, in: name(in, inVL), out: name(out, outVL)}
}

// recheckMulticast enumerates the dependencies of multicast packets. It
// follows a packet of each sender, and ends where a copy of the same tree has
// entered by the same port on the same VL before.
type recheckMulticast struct {
	*recheck
	m     *mft.Plan
	sl2vl *lft.SL2VL
	came  []uint16        // by PortID: bits of VLs on which copies entered
	dirty []fabric.PortID // ports in came
	queue []copied
}

// copied is a copy of a packet that enters a switch.
type copied struct {
	in fabric.PortID // port of the switch
	vl fabric.VL     // on which it came
}

// trees checks the dependencies of all trees, and of MLIDs without senders, for which it
// assumes those that the function Check assumes.
func (k *recheckMulticast) trees() error {
	known := make(map[fabric.LID]bool, len(k.m.Trees))
	for i := range k.m.Trees {
		t := &k.m.Trees[i]
		known[t.MLID] = known[t.MLID] || len(t.Senders) > 0
		if err := k.tree(t.MLID, t.Senders, t.SL); err != nil {
			return err
		}
	}
	for _, mlid := range k.m.Tables.MLIDs() {
		if known[mlid] {
			continue
		}
		var members []fabric.PortID
		for _, p := range k.m.Tables.Ports(mlid) {
			if end := k.endAt(p); end != fabric.NoPort {
				members = append(members, end)
			}
		}
		if err := k.tree(mlid, members, 0); err != nil {
			return err
		}
	}
	return nil
}

// endAt returns the end port to which a switch port leads, or NoPort.
func (k *recheckMulticast) endAt(p fabric.PortID) fabric.PortID {
	if k.f.Num(p) == fabric.ManagementPort {
		return p
	}
	if peer := k.f.Peer(p); peer != fabric.NoPort && !k.f.IsSwitch(k.f.Owner(peer)) {
		return peer
	}
	return fabric.NoPort
}

func (k *recheckMulticast) tree(mlid fabric.LID, senders []fabric.PortID, sl fabric.SL) error {
	for _, p := range k.dirty {
		k.came[p] = 0
	}
	k.dirty = k.dirty[:0]
	for _, s := range senders {
		if k.f.IsSwitch(k.f.Owner(s)) {
			if err := k.forward(mlid, sl, k.f.PortBase(k.f.Owner(s)), fabric.NoPort, 0); err != nil {
				return err
			}
			continue
		}
		in := k.f.Peer(s)
		if in == fabric.NoPort || !k.f.IsSwitch(k.f.Owner(in)) {
			continue
		}
		vl := fabric.VL(0)
		if k.sl2vl != nil {
			vl = k.sl2vl.At(0, s)[sl]
		}
		if vl != lft.DropVL {
			if err := k.forward(mlid, sl, in, s, vl); err != nil {
				return err
			}
		}
	}
	for len(k.queue) > 0 {
		at := k.queue[0]
		k.queue = k.queue[1:]
		if err := k.forward(mlid, sl, at.in, k.f.Peer(at.in), at.vl); err != nil {
			return err
		}
	}
	return nil
}

// forward copies a packet that entered a switch by port in. The packet holds
// channel held on VL vl; held is NoPort for a packet of port 0.
func (k *recheckMulticast) forward(mlid fabric.LID, sl fabric.SL, in, held fabric.PortID, vl fabric.VL) error {
	for _, out := range k.m.Tables.Mask(k.f.Owner(in), mlid) {
		to := k.f.Peer(out)
		if out == in || to == fabric.NoPort {
			continue
		}
		after := fabric.VL(0)
		if k.sl2vl != nil {
			if after = k.sl2vl.At(k.f.Num(in), out)[sl]; after == lft.DropVL {
				continue
			}
		}
		if held != fabric.NoPort {
			if err := k.increases(held, vl, out, after, mlid); err != nil {
				return err
			}
		}
		if !k.f.IsSwitch(k.f.Owner(to)) || k.came[to]>>after&1 != 0 {
			continue
		}
		if k.came[to] == 0 {
			k.dirty = append(k.dirty, to)
		}
		k.came[to] |= 1 << after
		k.queue = append(k.queue, copied{to, after})
	}
	return nil
}
