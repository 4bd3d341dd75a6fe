package verify

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// CheckAdaptive is Check for adaptive tables: the number must increase along every dependency
// that packets make which can still arrive, whatever ports the switches choose. With
// several PLFTs and no selector packets may take any at each switch. It follows packets
// from port to port, and takes O(switches x ports) time for each LID, with SL-to-VL tables
// for each SL and O(switches x ports x ports).
func (c *Certificate) CheckAdaptive(f *fabric.Fabric, t *adaptive.Tables, opt Options) error {
	if err := t.Check(f); err != nil {
		return err
	}
	if _, err := checkLanes(f, opt.SL2VL, opt.PathSLs); err != nil {
		return err
	}
	switch {
	case c.VLs < 1 || c.VLs > lft.MaxDataVLs:
		return fmt.Errorf("the certificate is of %d VLs: want 1 to %d", c.VLs, lft.MaxDataVLs)
	case opt.SL2VL == nil && c.VLs != 1:
		return fmt.Errorf("the certificate is of %d VLs, and without SL-to-VL tables all traffic is on one", c.VLs)
	}
	ports := int(f.PortBase(fabric.NodeID(f.NumSwitches())))
	k := &recheckAdaptive{
		recheck: &recheck{f: f, vls: c.VLs, number: make([]int32, f.NumPorts()*c.VLs)},
		choices: t, opt: opt, management: c.Management,
		came: make([]uint16, ports), live: make([]bool, ports),
		nodes: make([]recheckNode, f.NumSwitches()*(len(t.PLFTs)+1)),
	}
	if err := k.numbers(c); err != nil {
		return err
	}
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		k.lid, k.owner = lid, f.LIDPort(lid)
		if f.Attachment(k.owner) == fabric.NoPort || f.IsSwitch(f.Owner(k.owner)) && !c.Management {
			continue
		}
		for k.sl = range fabric.SL(lft.NumSLs) {
			if k.sl > 0 && k.alike(k.sl) {
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
	choices    *adaptive.Tables
	opt        Options
	management bool

	lid   fabric.LID
	owner fabric.PortID
	sl    fabric.SL

	// By PortID of a switch, that packets come in by: the VLs that they come on, whether
	// they can arrive from there; and those with any VL. Port 0 is the switch's own packets.
	came    []uint16
	live    []bool
	reached []fabric.PortID
	nodes   []recheckNode // by switch and PLFT; behind the last PLFT, all of them
	known   []int         // of nodes
}

// recheckNode is what packets of one PLFT can do at a switch.
type recheckNode struct {
	known    bool
	followed bool            // without SL-to-VL tables: where the ports lead has been noted
	ports    []fabric.PortID // those that lead to a switch or the owner
	low      int32           // without SL-to-VL tables: the least number of those from which packets arrive; 0 for unknown
}

// alike says whether packets of an SL do everywhere what those of a lower one do, so that
// there is no need to look.
func (k *recheckAdaptive) alike(sl fabric.SL) bool {
	return k.opt.SL2VL == nil && k.opt.PathSLs == nil && k.choices.Select == nil
}

// node is what packets do that come into a switch by a port.
func (k *recheckAdaptive) node(in fabric.PortID) *recheckNode {
	s, all := k.f.Owner(in), len(k.choices.PLFTs)
	plft := all
	if k.choices.Select != nil || all == 1 {
		plft = k.choices.Select.PLFT(s, k.f.Num(in), k.sl)
	}
	i := int(s)*(all+1) + min(plft, all)
	n := &k.nodes[i]
	if n.known {
		return n
	}
	k.known = append(k.known, i)
	*n = recheckNode{known: true, ports: n.ports[:0]}
	var set adaptive.PortSet
	for p := range all {
		if (p == plft || k.choices.Select == nil) && k.lid <= k.choices.PLFTs[p].Ports.MaxLID() {
			set.Union(k.choices.Choices(p, s, k.lid))
		}
	}
	set.Each(func(num fabric.PortNum) {
		if num > k.f.Node(s).NumPorts {
			return
		}
		if out := k.f.Port(s, num); k.arrived(out) || k.f.PeerSwitch(out) != fabric.NoNode {
			n.ports = append(n.ports, out)
		}
	})
	return n
}

// arrived says whether packets that leave by a port are where they should be.
func (k *recheckAdaptive) arrived(out fabric.PortID) bool {
	return out == k.owner || k.f.Peer(out) == k.owner
}

// vl is the VL of packets that come into a switch by a port and leave it by another.
func (k *recheckAdaptive) vl(in, out fabric.PortID) fabric.VL {
	if k.opt.SL2VL == nil || out == k.owner {
		return 0
	}
	return k.opt.SL2VL.At(k.f.Num(in), out)[k.sl]
}

// come notes that packets come into a switch by a port on a VL.
func (k *recheckAdaptive) come(in fabric.PortID, vl fabric.VL) {
	if k.came[in] == 0 {
		k.reached = append(k.reached, in)
	}
	k.came[in] |= 1 << vl
}

// destination checks the dependencies of packets for the LID.
func (k *recheckAdaptive) destination() error {
	for _, in := range k.reached {
		k.came[in], k.live[in] = 0, false
	}
	for _, i := range k.known {
		k.nodes[i].known = false
	}
	k.reached, k.known = k.reached[:0], k.known[:0]
	k.f.EndPorts(k.begin)
	for i := 0; i < len(k.reached); i++ {
		in := k.reached[i]
		n := k.node(in)
		if n.followed {
			continue
		}
		n.followed = k.opt.SL2VL == nil
		for _, out := range n.ports {
			if vl := k.vl(in, out); vl != lft.DropVL && !k.arrived(out) {
				k.come(k.f.Peer(out), vl)
			}
		}
	}
	for more := true; more; {
		more = false
		for i := len(k.reached) - 1; i >= 0; i-- {
			if in := k.reached[i]; !k.live[in] && k.leadsOn(in) {
				k.live[in], more = true, true
			}
		}
	}
	for _, in := range k.reached {
		if err := k.climbs(in); err != nil {
			return err
		}
	}
	return nil
}

// begin notes the packets that a port sends.
func (k *recheckAdaptive) begin(source fabric.PortID) {
	in := k.f.Attachment(source)
	if source == k.owner || in == fabric.NoPort {
		return
	}
	s := k.f.Owner(in)
	if k.opt.PathSLs != nil {
		row := k.opt.PathSLs.PortRow(source)
		if row == nil {
			row = k.opt.PathSLs.Given(s)
		}
		if row[k.lid] != k.sl && row[k.lid] != lft.UnknownSL {
			return
		}
	}
	if source == in { // the switch itself: its packets hold no channel
		if k.management {
			k.come(in, lft.DropVL)
		}
		return
	}
	vl := fabric.VL(0)
	if k.opt.SL2VL != nil {
		vl = k.opt.SL2VL.At(0, source)[k.sl]
	}
	if vl != lft.DropVL {
		k.come(in, vl)
	}
}

// leadsOn says whether packets that come in by a port can arrive, as far as live tells.
func (k *recheckAdaptive) leadsOn(in fabric.PortID) bool {
	for _, out := range k.node(in).ports {
		if k.useful(in, out) {
			return true
		}
	}
	return false
}

// useful says whether packets that come in by a port and leave by another can arrive.
func (k *recheckAdaptive) useful(in, out fabric.PortID) bool {
	return k.vl(in, out) != lft.DropVL && (k.arrived(out) || k.live[k.f.Peer(out)])
}

// climbs checks the dependencies of packets that come in by a port.
func (k *recheckAdaptive) climbs(in fabric.PortID) error {
	n, from := k.node(in), k.f.Peer(in)
	if !k.live[in] || from == fabric.NoPort {
		return nil
	}
	vl := fabric.VL(0)
	if k.opt.SL2VL == nil && n.low > 0 && k.number[from] >= 0 && k.number[from] < n.low {
		return nil
	}
	low := int32(0)
	for _, out := range n.ports {
		if out == k.owner || !k.useful(in, out) {
			continue
		}
		to := k.vl(in, out)
		for vl = range fabric.VL(lft.MaxDataVLs) {
			if k.came[in]>>vl&1 == 0 {
				continue
			}
			if err := k.increases(from, vl, out, to, k.lid); err != nil {
				return err
			}
		}
		if number := k.number[int(out)*k.vls+int(to)]; low == 0 || number < low {
			low = number
		}
	}
	n.low = low
	return nil
}
