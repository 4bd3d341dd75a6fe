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

// PullOptions determine what Pull reads.
type PullOptions struct {
	// LFT, MFT and SL2VL choose the tables; none of them set means all.
	LFT, MFT, SL2VL bool
	// MaxMLID is the highest MLID whose masks are read. With 0, Pull reads up to the first
	// block of 32 MLIDs without a mask at any switch, since MLIDs are given out from the
	// lowest on. For each block beyond, it asks some switches: if one has a mask, it reads all
	// switches up to that block. A switch that keeps a MulticastFDBTop is not read beyond that.
	MaxMLID fabric.LID
	// SomeMaps reads two SL-to-VL maps for each output port of a switch, from
	// different input ports; only one if the switch has the optimized form, which
	// writes the maps from all input ports at once. If these maps are all the
	// same, every map of the switch is taken to be so; otherwise all are read.
	SomeMaps bool
}

// Tables has the tables of the switches of a subnet. Tables that were not read
// are nil.
type Tables struct {
	LFT   *lft.Tables
	MFT   *mft.Tables
	SL2VL *lft.SL2VL
	// Read is, by NodeID of switches, true if all tables of the switch were read.
	Read []bool
	// Problems are switches and ports that could not be read, and entries
	// that name no port; sorted.
	Problems []fabric.Problem
	Requests int // SMPs
	// Maps is the number of SL-to-VL maps of switches, AskedMaps how many of them were read.
	Maps, AskedMaps int
}

// pull reads tables.
type pull struct {
	*batch
	d     *Discovery
	opt   PullOptions
	t     *Tables
	rows  [][]fabric.PortNum // by switch, kept until the highest LID is known
	masks map[fabric.LID][]fabric.PortID
	mlids []int // by switch: number of MLIDs that it may have masks of
	used  int   // number of blocks of MLIDs, to the last with a mask
}

// spread is the number of switches asked for each block of MLIDs beyond those in use.
const spread = 8

// Estimate returns about how many requests Pull and PKeys will send for d.
func (d *Discovery) Estimate(opt PullOptions) int {
	f, n := d.Fabric, 0
	for _, s := range f.Switches() {
		masks := int(f.Node(s).NumPorts)/mad.PortsPerMask + 1 // requests for a block
		n += 1 + int(f.MaxLID())/lft.BlockSize + 1
		if opt.MaxMLID == 0 {
			n += 2 * masks
		} else {
			n += ((int(opt.MaxMLID-mft.MinMLID))/mad.MLIDBlock + 1) * masks
		}
		for range f.Cabled(s) {
			if n += 2; !opt.SomeMaps {
				n += int(f.Node(s).NumPorts) - 1
			}
		}
	}
	if opt.MaxMLID == 0 && f.NumSwitches() > 0 {
		n += int(d.Switches[0].MulticastFDBCap) / mad.MLIDBlock * min(spread, f.NumSwitches()) * (int(f.Node(0).NumPorts)/mad.PortsPerMask + 1)
	}
	ports := 0
	f.EndPorts(func(fabric.PortID) { ports++ })
	return n + len(f.CAPorts()) + 3*ports
}

// Pull reads the forwarding tables of all switches of d, by its
// directed routes: linear tables up to each switch's
// LinearFDBTop, beyond which entries are NoPath; the masks of all
// MLIDs; and the SL-to-VL maps from all input ports of a switch
// to all output ports with a cable, and of CA and router ports
// with a cable. A CA or router port without a map, as one with a
// single VL may be, maps all SLs to VL 0.
//
// If a block does not arrive, the switch is not Read, and its
// entries in this block are NoPath. Errors: ErrClosed, and ctx's.
func (c *Client) Pull(ctx context.Context, d *Discovery, opt PullOptions) (*Tables, error) {
	if !opt.LFT && !opt.MFT && !opt.SL2VL {
		opt.LFT, opt.MFT, opt.SL2VL = true, true, true
	}
	if opt.MaxMLID != 0 && (opt.MaxMLID < mft.MinMLID || opt.MaxMLID > mft.MaxMLID) {
		return nil, fmt.Errorf("MLID %#x, want %#x to %#x", opt.MaxMLID, mft.MinMLID, mft.MaxMLID)
	}
	f := d.Fabric
	n := f.NumSwitches()
	p := &pull{d: d, opt: opt, t: &Tables{Read: slices.Repeat([]bool{true}, n)}, rows: make([][]fabric.PortNum, n), masks: make(map[fabric.LID][]fabric.PortID), mlids: make([]int, n)}
	if opt.SL2VL {
		p.t.SL2VL = lft.NewSL2VL(f, lft.ConstantVL(0))
	}
	err := p.run(ctx, c, func() {
		for s := range fabric.NodeID(n) {
			p.readSwitch(s)
		}
		if opt.SL2VL {
			for _, port := range f.CAPorts() {
				p.readHost(port)
			}
		}
	})
	if err == nil && opt.MFT {
		err = p.readMasks(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	p.makeTables()
	return p.t, nil
}

// run sends the requests that begin starts, and waits for them.
func (p *pull) run(ctx context.Context, c *Client, begin func()) error {
	requests, err := c.run(ctx, func(b *batch) {
		if p.batch != nil {
			b.odd = p.odd
		}
		p.batch = b
		begin()
	})
	p.t.Requests += requests
	return err
}

// readMasks reads the masks of MLIDs: see PullOptions.MaxMLID.
func (p *pull) readMasks(ctx context.Context, c *Client) error {
	n := len(p.mlids)
	blocks := (slices.Max(append(p.mlids, 0)) + mad.MLIDBlock - 1) / mad.MLIDBlock
	read := func(from, to int, asks func(block int, s fabric.NodeID) bool) error {
		return p.run(ctx, c, func() {
			for block := from; block < to; block++ {
				for s := range fabric.NodeID(n) {
					if asks(block, s) {
						p.readBlock(s, block)
					}
				}
			}
		})
	}
	all := func(int, fabric.NodeID) bool { return true }
	if p.opt.MaxMLID != 0 {
		return read(0, blocks, all)
	}
	next := 0 // the first block that was not read from all switches
	for {
		for ; next < blocks && next <= p.used; next++ {
			if err := read(next, next+1, all); err != nil {
				return err
			}
		}
		if next == blocks {
			return nil
		}
		seen := maps.Clone(p.masks)
		err := read(next, blocks, func(block int, s fabric.NodeID) bool { return (int(s)+n-block*spread%n)%n < spread })
		if err != nil || p.used <= next {
			return err
		}
		p.masks = seen // to be read again, from all switches
	}
}

// name returns the name of a node in problems.
func (d *Discovery) name(n fabric.NodeID) string {
	node := d.Fabric.Node(n)
	return fmt.Sprintf("%s %s %q", node.Type, node.GUID, d.Fabric.Name(n).Text)
}

// askSwitch reads an attribute of a switch. If no answer
// comes, the switch is unread, which is noted once.
func (p *pull) askSwitch(s fabric.NodeID, to Target, attr mad.Attribute, modifier uint32, answer func(*mad.Data)) {
	p.ask(to, attr, modifier, answer, func(err error) { p.miss(s, err) })
}

// miss marks a switch as unread, and notes why.
func (p *pull) miss(s fabric.NodeID, err error) {
	if p.t.Read[s] {
		p.t.Read[s] = false
		p.note(p.d.name(s), "%v", err)
	}
}

// readSwitch asks for the sizes of the tables of a switch, and then for the tables.
func (p *pull) readSwitch(s fabric.NodeID) {
	to := Target{Route: p.d.Routes[s]}
	if p.opt.LFT || p.opt.MFT || p.opt.SomeMaps {
		p.askSwitch(s, to, mad.AttrSwitchInfo, 0, func(data *mad.Data) {
			info := mad.Of[mad.SwitchInfo](data)
			if p.opt.LFT {
				p.readLFT(s, to, &info)
			}
			if p.opt.MFT {
				p.readTop(s, to, &info)
			}
			if p.opt.SL2VL && p.opt.SomeMaps {
				p.readSomeMaps(s, to, info.OptimizedSL2VL)
			}
		})
	}
	if p.opt.SL2VL && !p.opt.SomeMaps {
		p.readSL2VL(s, to, map[[2]fabric.PortNum]bool{})
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

// readTop sets how many MLIDs of a switch to read.
func (p *pull) readTop(s fabric.NodeID, to Target, info *mad.SwitchInfo) {
	count := min(int(info.MulticastFDBCap), mft.NumMLIDs)
	if p.opt.MaxMLID != 0 {
		count = min(count, int(p.opt.MaxMLID-mft.MinMLID)+1)
	}
	p.mlids[s] = count
	if count == 0 || info.MulticastFDBTop == 0 || int(info.MulticastFDBTop) >= int(mft.MinMLID)+count-1 {
		return
	}
	// The top is valid if the switch has this capability.
	top := int(info.MulticastFDBTop) - int(mft.MinMLID) + 1
	p.askSwitch(s, to, mad.AttrPortInfo, 0, func(data *mad.Data) {
		if mad.Of[mad.PortInfo](data).CapabilityMask&mad.IsMulticastFDBTop != 0 {
			p.mlids[s] = max(0, top)
		}
	})
}

// readBlock reads a block of masks of a switch.
func (p *pull) readBlock(s fabric.NodeID, block int) {
	first := block * mad.MLIDBlock
	for position := 0; first < p.mlids[s] && position*mad.PortsPerMask <= int(p.d.Fabric.Node(s).NumPorts); position++ {
		p.askSwitch(s, Target{Route: p.d.Routes[s]}, mad.AttrMulticastForwardingTable, mad.MulticastModifier(block, position), func(data *mad.Data) {
			t := mad.Of[mad.MulticastForwardingTable](data)
			for i, mask := range t[:min(mad.MLIDBlock, p.mlids[s]-first)] {
				if mask != 0 {
					p.used = max(p.used, block+1)
				}
				p.addMask(s, mft.MinMLID+fabric.LID(first+i), mask, position*mad.PortsPerMask)
			}
		})
	}
}

// addMask adds the ports in a mask whose bit 0 is port first.
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

// readSL2VL reads the SL-to-VL maps of a switch, except those in asked.
func (p *pull) readSL2VL(s fabric.NodeID, to Target, asked map[[2]fabric.PortNum]bool) {
	lft.EachMap(p.d.Fabric, s, func(in, out fabric.PortNum) {
		if p.t.Maps++; asked[[2]fabric.PortNum{in, out}] {
			return
		}
		p.t.AskedMaps++
		p.askSwitch(s, to, mad.AttrSLtoVLMappingTable, mad.SLtoVLModifier(in, out), func(data *mad.Data) {
			p.setMap(in, p.d.Fabric.Port(s, out), data)
		})
	})
}

// readSomeMaps reads SL-to-VL maps of a switch: see PullOptions.SomeMaps.
func (p *pull) readSomeMaps(s fabric.NodeID, to Target, optimized bool) {
	f := p.d.Fabric
	ways, asked := f.Node(s).NumPorts+1, map[[2]fabric.PortNum]bool{}
	var first *mad.SLtoVL
	left, differ := 0, false
	ask := func(in, out fabric.PortNum) {
		if asked[[2]fabric.PortNum{in, out}] {
			return
		}
		asked[[2]fabric.PortNum{in, out}] = true
		left++
		p.t.AskedMaps++
		came := func() { // the last answer decides; after a lost one, all other maps are read
			switch left--; {
			case left > 0:
			case differ:
				p.readSL2VL(s, to, asked)
			default:
				lft.EachMap(f, s, func(in, out fabric.PortNum) {
					p.t.Maps++
					p.t.SL2VL.Set(in, f.Port(s, out), lft.VLMap(*first))
				})
			}
		}
		p.ask(to, mad.AttrSLtoVLMappingTable, mad.SLtoVLModifier(in, out), func(data *mad.Data) {
			p.setMap(in, f.Port(s, out), data)
			m := mad.Of[mad.SLtoVL](data)
			if first == nil {
				first = &m
			}
			differ = differ || m != *first
			came()
		}, func(err error) {
			p.miss(s, err)
			differ = true
			came()
		})
	}
	for port := range f.Cabled(s) {
		out := f.Num(port)
		if ask((out*7+1)%ways, out); !optimized {
			ask((out*3+ways/2)%ways, out)
		}
	}
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
