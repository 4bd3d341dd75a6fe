package subnet

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// PullOptions say what to read.
type PullOptions struct {
	// LFT, MFT and SL2VL choose the tables; none of them set means all.
	LFT, MFT, SL2VL bool
	// MaxMLID is the highest MLID to read masks of; 0 reads all that a switch
	// has. Switches that keep a MulticastFDBTop are not read beyond it.
	MaxMLID fabric.LID
}

// Tables is what the switches of a subnet forward by. Those that were not read
// are nil.
type Tables struct {
	LFT   *lft.Tables
	MFT   *mft.Tables
	SL2VL *lft.SL2VL
	// Read says of each switch, by NodeID, whether all its tables were read.
	Read []bool
	// Problems are switches and ports that could not be read, and entries
	// that name no port; sorted.
	Problems []fabric.Problem
	Requests int // SMPs
}

// pull is the reading of tables under way.
type pull struct {
	*batch
	d     *Discovery
	opt   PullOptions
	t     *Tables
	rows  [][]fabric.PortNum // by switch, until the highest LID is known
	masks map[fabric.LID][]fabric.PortID
}

// Pull reads the forwarding tables of all switches that d has, by its directed
// routes: linear tables up to each switch's LinearFDBTop, the masks of all
// MLIDs, and the SL-to-VL maps from all input ports of a switch to all output ports with
// a cable, and of the ports of CAs and routers that have one. What is beyond the
// top is NoPath. A CA or router port without SL-to-VL maps, as one with a
// single VL may be, maps all to VL 0.
//
// A block that does not come is never taken for another: the switch is not
// Read then, and its entries in this block are NoPath. Errors: ErrClosed, and
// ctx's.
func (c *Client) Pull(ctx context.Context, d *Discovery, opt PullOptions) (*Tables, error) {
	if !opt.LFT && !opt.MFT && !opt.SL2VL {
		opt.LFT, opt.MFT, opt.SL2VL = true, true, true
	}
	if opt.MaxMLID == 0 {
		opt.MaxMLID = mft.MaxMLID
	}
	if opt.MaxMLID < mft.MinMLID || opt.MaxMLID > mft.MaxMLID {
		return nil, fmt.Errorf("MLID %#x, want %#x to %#x", opt.MaxMLID, mft.MinMLID, mft.MaxMLID)
	}
	f := d.Fabric
	n := f.NumSwitches()
	p := &pull{d: d, opt: opt, t: &Tables{Read: make([]bool, n)}, rows: make([][]fabric.PortNum, n), masks: make(map[fabric.LID][]fabric.PortID)}
	for i := range p.t.Read {
		p.t.Read[i] = true
	}
	if opt.SL2VL {
		p.t.SL2VL = lft.NewSL2VL(f, lft.ConstantVL(0))
	}
	requests, err := c.run(ctx, func(b *batch) {
		p.batch = b
		for s := range fabric.NodeID(n) {
			p.readSwitch(s)
		}
		if opt.SL2VL {
			for _, port := range f.CAPorts() {
				p.readHost(port)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	p.t.Requests = requests
	p.makeTables()
	return p.t, nil
}

// name is how problems call a node.
func (d *Discovery) name(n fabric.NodeID) string {
	node := d.Fabric.Node(n)
	return fmt.Sprintf("%s %s %q", node.Type, node.GUID, d.Fabric.Name(n).Text)
}

// askSwitch reads an attribute of a switch. Where the answer does not come, the switch is
// unread, which is noted once.
func (p *pull) askSwitch(s fabric.NodeID, to Target, attr mad.Attribute, modifier uint32, answer func(*mad.Data)) {
	p.ask(to, attr, modifier, answer, func(err error) {
		if p.t.Read[s] {
			p.t.Read[s] = false
			p.note(p.d.name(s), "%v", err)
		}
	})
}

// readSwitch asks how large the tables of a switch are, and for them.
func (p *pull) readSwitch(s fabric.NodeID) {
	to := Target{Route: p.d.Routes[s]}
	if p.opt.LFT || p.opt.MFT {
		p.askSwitch(s, to, mad.AttrSwitchInfo, 0, func(data *mad.Data) {
			info := mad.Of[mad.SwitchInfo](data)
			if p.opt.LFT {
				p.readLFT(s, to, &info)
			}
			if p.opt.MFT {
				p.readTop(s, to, &info)
			}
		})
	}
	if p.opt.SL2VL {
		p.readSL2VL(s, to)
	}
}

// readLFT reads the linear table of a switch.
func (p *pull) readLFT(s fabric.NodeID, to Target, info *mad.SwitchInfo) {
	top := int(info.LinearFDBTop)
	if top > int(fabric.MaxUnicastLID) {
		p.note(p.d.name(s), "LinearFDBTop %#x, want at most %#x", top, fabric.MaxUnicastLID)
		top = int(fabric.MaxUnicastLID)
	}
	row := slices.Repeat([]fabric.PortNum{fabric.NoPath}, top+1)
	p.rows[s] = row
	for block := 0; block*lft.BlockSize <= top; block++ {
		p.askSwitch(s, to, mad.AttrLinearForwardingTable, uint32(block), func(data *mad.Data) {
			t := mad.Of[mad.LinearForwardingTable](data)
			copy(row[block*lft.BlockSize:], t[:])
		})
	}
}

// readTop finds out where the multicast table of a switch ends, and reads it.
func (p *pull) readTop(s fabric.NodeID, to Target, info *mad.SwitchInfo) {
	count := min(int(info.MulticastFDBCap), mft.NumMLIDs, int(p.opt.MaxMLID-mft.MinMLID)+1)
	if count == 0 {
		return
	}
	if info.MulticastFDBTop == 0 || int(info.MulticastFDBTop) >= int(mft.MinMLID)+count-1 {
		p.readMFT(s, to, count)
		return
	}
	// 0 is what a switch without this field has, too: ask.
	top := int(info.MulticastFDBTop) - int(mft.MinMLID) + 1
	p.askSwitch(s, to, mad.AttrPortInfo, 0, func(data *mad.Data) {
		if mad.Of[mad.PortInfo](data).CapabilityMask&mad.IsMulticastFDBTop != 0 {
			count = max(0, top)
		}
		p.readMFT(s, to, count)
	})
}

// readMFT reads the masks of the first count MLIDs.
func (p *pull) readMFT(s fabric.NodeID, to Target, count int) {
	ports := int(p.d.Fabric.Node(s).NumPorts)
	for block := 0; block*mad.MLIDBlock < count; block++ {
		for position := 0; position*mad.PortsPerMask <= ports; position++ {
			p.askSwitch(s, to, mad.AttrMulticastForwardingTable, mad.MulticastModifier(block, position), func(data *mad.Data) {
				t := mad.Of[mad.MulticastForwardingTable](data)
				for i, mask := range t[:min(mad.MLIDBlock, count-block*mad.MLIDBlock)] {
					p.addMask(s, mft.MinMLID+fabric.LID(block*mad.MLIDBlock+i), mask, position*mad.PortsPerMask)
				}
			})
		}
	}
}

// addMask enters the ports from number first on that are in a mask.
func (p *pull) addMask(s fabric.NodeID, mlid fabric.LID, mask uint16, first int) {
	ports := int(p.d.Fabric.Node(s).NumPorts)
	for ; mask != 0; mask &= mask - 1 {
		port := first + bits.TrailingZeros16(mask)
		if port > ports {
			p.note(p.d.name(s), "the mask of MLID %#x has port %d, and the switch has ports 0 to %d", mlid, port, ports)
			continue
		}
		p.masks[mlid] = append(p.masks[mlid], p.d.Fabric.Port(s, fabric.PortNum(port)))
	}
}

// readSL2VL reads the SL-to-VL maps of a switch.
func (p *pull) readSL2VL(s fabric.NodeID, to Target) {
	lft.EachMap(p.d.Fabric, s, func(in, out fabric.PortNum) {
		p.askSwitch(s, to, mad.AttrSLtoVLMappingTable, mad.SLtoVLModifier(in, out), func(data *mad.Data) {
			p.setMap(in, p.d.Fabric.Port(s, out), data)
		})
	})
}

func (p *pull) setMap(in fabric.PortNum, out fabric.PortID, data *mad.Data) {
	p.t.SL2VL.Set(in, out, lft.VLMap(mad.Of[mad.SLtoVL](data)))
}

// readHost reads the SL-to-VL map of a port of a CA or router.
func (p *pull) readHost(port fabric.PortID) {
	f := p.d.Fabric
	node := f.Owner(port)
	to := p.d.target(port)
	p.ask(to, mad.AttrSLtoVLMappingTable, 0, func(data *mad.Data) { p.setMap(0, port, data) },
		func(err error) { p.note(p.d.name(node), "port %d: %v", f.Num(port), err) })
}

// makeTables makes tables of what was read.
func (p *pull) makeTables() {
	f := p.d.Fabric
	if p.opt.LFT {
		top := int(f.MaxLID())
		for _, row := range p.rows {
			top = max(top, len(row)-1)
		}
		p.t.LFT = lft.NewTables(f.NumSwitches(), fabric.LID(top))
		for s, row := range p.rows {
			copy(p.t.LFT.Row(fabric.NodeID(s)), row)
		}
	}
	if p.opt.MFT {
		p.t.MFT = mft.NewTables(f)
		for _, l := range slices.Sorted(maps.Keys(p.masks)) {
			slices.Sort(p.masks[l])
			p.t.MFT.Add(l, p.masks[l])
		}
	}
	p.t.Problems = p.problems()
}
