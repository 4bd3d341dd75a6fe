package verify

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// maxMatrix bounds the distance matrix in bytes. In a larger fabric distances
// are searched for one destination switch at a time.
const maxMatrix = 256 << 20

// plan has the data that all workers read.
type plan struct {
	f         *fabric.Fabric
	t         *lft.Tables
	n         int               // switches
	hops      *fabric.HopMatrix // nil if it would be larger than maxMatrix
	*channels                   // on one VL
	lanes     *lanes            // nil without SL-to-VL tables
	onVLs     *channels         // on all VLs in use
	unicast   *sharedGraph      // found by all workers: traffic between CAs; nil unless lanes are followed
	others    *sharedGraph      // likewise: other traffic only
	sources   []uint32          // by switch: number of CA and router ports cabled to it
	hosts     []uint32          // by switch: number of these that count for load
	alone     []int32           // switches without a cable
	parts     *fabric.Components
	ports     []int32 // by switch, and one more: its first PortID
	units     []unit
}

// unit is a piece of work: up to lft.BlockSize LIDs that ports have, or that no port has. LIDs of
// one root follow each other, as they share computations for the root.
type unit struct {
	dests   []dest
	unowned []fabric.LID
}

// dest is a LID, whose owner is the port that has it and whose root is the owner's switch.
type dest struct {
	lid    fabric.LID
	column int            // in its unit
	last   fabric.PortNum // the port by which the root's entry must send
	ca     bool           // the owner is a CA or router port; else it is port 0 of the root
	loads  bool           // the owner counts for load
	root   int32          // -1 if the owner's cable leads to no switch
}

func newPlan(f *fabric.Fabric, t *lft.Tables, l *lanes) *plan {
	n := f.NumSwitches()
	p := &plan{f: f, t: t, n: n, channels: newChannels(f, 0), lanes: l, parts: f.Components()}
	p.onVLs = p.channels
	if l != nil {
		p.onVLs = newChannels(f, l.allVLs()...)
		if l.tracks() {
			p.unicast, p.others = newSharedGraph(p.onVLs), newSharedGraph(p.onVLs)
		}
	}
	p.sources, p.hosts, p.ports = make([]uint32, n), make([]uint32, n), make([]int32, n+1)
	for s := range fabric.NodeID(n) {
		p.sources[s], p.hosts[s] = uint32(len(f.EndPortsOn(s))), uint32(len(f.HostsOn(s)))
		p.ports[s] = int32(f.PortBase(s))
		if !f.HasCable(s) {
			p.alone = append(p.alone, int32(s))
		}
	}
	p.ports[n] = int32(len(p.to))
	p.findUnits()
	if n*n <= maxMatrix {
		p.hops = f.Distances()
	}
	return p
}

// findUnits divides the LIDs into units.
func (p *plan) findUnits() {
	var dests []dest
	var unowned []fabric.LID
	for lid := fabric.LID(1); lid <= max(p.f.MaxLID(), p.t.MaxLID()); lid++ { // LID 0 belongs to no port
		if d, ok := destination(p.f, lid); ok {
			dests = append(dests, d)
		} else {
			unowned = append(unowned, lid)
		}
	}
	kind := func(d *dest) int {
		switch {
		case d.loads:
			return 1
		case d.ca:
			return 2
		}
		return 0
	}
	slices.SortFunc(dests, func(d, e dest) int {
		return cmp.Or(kind(&d)-kind(&e), cmp.Compare(d.root, e.root), cmp.Compare(d.last, e.last), cmp.Compare(d.lid, e.lid))
	})
	for len(dests) > 0 {
		n := min(len(dests), lft.BlockSize)
		if n < len(dests) { // up to where another root begins, if any does
			for at := n; at > n/2; at-- {
				if dests[at].root != dests[at-1].root {
					n = at
					break
				}
			}
		}
		for i := range dests[:n] {
			dests[i].column = i
		}
		p.units = append(p.units, unit{dests: dests[:n]})
		dests = dests[n:]
	}
	for list := range slices.Chunk(unowned, lft.BlockSize) {
		p.units = append(p.units, unit{unowned: list})
	}
}

// destination finds the owner of a LID. ok is false if no switch and no port
// with a cable has the LID.
func destination(f *fabric.Fabric, lid fabric.LID) (d dest, ok bool) {
	port := f.LIDPort(lid)
	if port == fabric.NoPort {
		return d, false
	}
	node := f.Owner(port)
	if f.IsSwitch(node) {
		return dest{lid: lid, root: int32(node), last: fabric.ManagementPort}, f.Num(port) == fabric.ManagementPort
	}
	d = dest{lid: lid, root: -1, ca: true, loads: f.PortCounts(port, fabric.ForLoad)}
	if at := f.Attachment(port); at != fabric.NoPort {
		d.root, d.last = int32(f.Owner(at)), f.Num(at)
	}
	return d, f.Peer(port) != fabric.NoPort
}

// entry returns switch s's entry for a LID; NoPath beyond the end of its table.
func (p *plan) entry(s int32, lid fabric.LID) fabric.PortNum {
	return lft.Entry(p.t.Row(fabric.NodeID(s)), lid)
}

// leadsTo returns where switch s sends packets by an entry, as in channels.to.
func (p *plan) leadsTo(s int32, entry fabric.PortNum) int32 {
	if at := p.ports[s] + int32(entry); at < p.ports[s+1] {
		return p.to[at]
	}
	return toNowhere
}

// next returns where switch s sends packets for a LID, as in channels.to.
func (p *plan) next(s int32, lid fabric.LID) int32 { return p.leadsTo(s, p.entry(s, lid)) }

// vlOf returns the VL of packets with an SL that enter a node by port in and leave by port out;
// lft.DropVL if they are dropped. It is 0 for packets to port 0 of a switch.
func (p *plan) vlOf(in fabric.PortNum, out fabric.PortID, sl fabric.SL) fabric.VL {
	if p.lanes == nil || p.f.Num(out) == fabric.ManagementPort {
		return 0
	}
	return p.lanes.sl2vl.At(in, out)[sl]
}

// mute returns true if a CA port's own SL-to-VL table drops all its packets.
func (p *plan) mute(port fabric.PortID) bool {
	return p.lanes != nil && *p.lanes.sl2vl.At(0, port) == lft.ConstantVL(lft.DropVL)
}
