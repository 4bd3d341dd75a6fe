package dump

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// GroupOptions are what a subnet manager is told of groups besides their
// trees. The numbers are those of the IBA's attributes.
type GroupOptions struct {
	MTU  uint8 // 1 to 5 for 256 to 4096 bytes (IBA 14.2.5.6); 0 stands for 4, 2048 bytes
	Rate uint8 // IBA 15.2.5.16; 0 takes the slowest link of a member
}

// What OpenSM takes where it is told nothing (osm_base.h).
const (
	defaultMTU   = 4 // 2048 bytes
	defaultRate  = 3 // 10 Gb/s
	defaultScope = 2 // of a subnet, link-local
)

// fullPKey is the default partition, for full members.
const fullPKey = 0xffff

// rates are the codes of IBA 15.2.5.16 for a port, by Gb/s of a lane and
// number of lanes.
var rates = map[fabric.Link]uint8{
	{Width: 1, Speed: fabric.SDR}: 2, {Width: 4, Speed: fabric.SDR}: 3, {Width: 8, Speed: fabric.SDR}: 6, {Width: 12, Speed: fabric.SDR}: 4,
	{Width: 1, Speed: fabric.DDR}: 5, {Width: 4, Speed: fabric.DDR}: 6, {Width: 8, Speed: fabric.DDR}: 7, {Width: 12, Speed: fabric.DDR}: 8,
	{Width: 1, Speed: fabric.QDR}: 3, {Width: 4, Speed: fabric.QDR}: 7, {Width: 8, Speed: fabric.QDR}: 9, {Width: 12, Speed: fabric.QDR}: 10,
	{Width: 1, Speed: fabric.FDR10}: 3, {Width: 4, Speed: fabric.FDR10}: 7, {Width: 8, Speed: fabric.FDR10}: 9, {Width: 12, Speed: fabric.FDR10}: 10,
	{Width: 1, Speed: fabric.FDR}: 11, {Width: 2, Speed: fabric.FDR}: 19, {Width: 4, Speed: fabric.FDR}: 12, {Width: 8, Speed: fabric.FDR}: 13, {Width: 12, Speed: fabric.FDR}: 14,
	{Width: 1, Speed: fabric.EDR}: 15, {Width: 2, Speed: fabric.EDR}: 20, {Width: 4, Speed: fabric.EDR}: 16, {Width: 8, Speed: fabric.EDR}: 17, {Width: 12, Speed: fabric.EDR}: 18,
	{Width: 1, Speed: fabric.HDR}: 20, {Width: 2, Speed: fabric.HDR}: 16, {Width: 4, Speed: fabric.HDR}: 17, {Width: 8, Speed: fabric.HDR}: 21, {Width: 12, Speed: fabric.HDR}: 22,
}

// gbps is the order of the rates, by code: tenths of Gb/s.
var gbps = [...]int{2: 25, 3: 100, 4: 300, 5: 50, 6: 200, 7: 400, 8: 600, 9: 800, 10: 1200, 11: 140, 12: 560, 13: 1120, 14: 1680,
	15: 250, 16: 1000, 17: 2000, 18: 3000, 19: 280, 20: 500, 21: 4000, 22: 6000}

// groupRate is the rate of the slowest link of a member. Links whose speed is
// not known do not count, and neither do ports 0 of switches, which have none.
// OpenSM 3.3.23 does not know links faster than HDR, and what it takes them
// for depends on the port: then the rate is 10 Gb/s, its default.
func groupRate(f *fabric.Fabric, t *mft.Tree) uint8 {
	rate := uint8(0)
	var before fabric.Link // of which nothing is known
	for _, list := range [][]fabric.PortID{t.Senders, t.Receivers} {
		for _, p := range list {
			link := f.Link(p)
			if link == before {
				continue
			}
			if before = link; link.String() == "" {
				continue
			}
			r, ok := rates[link]
			if !ok {
				return defaultRate
			}
			if rate == 0 || gbps[r] < gbps[rate] {
				rate = r
			}
		}
	}
	if rate == 0 {
		return defaultRate
	}
	return rate
}

// check says whether the options are numbers that OpenSM takes.
func (o GroupOptions) check() error {
	if o.MTU > 5 {
		return fmt.Errorf("MTU %d, want 1 to 5 for 256 to 4096 bytes", o.MTU)
	}
	if int(o.Rate) >= len(gbps) || o.Rate == 1 {
		return fmt.Errorf("rate %d, want 2 to %d", o.Rate, len(gbps)-1)
	}
	return nil
}

// byMLID sorts trees as OpenSM is to create them.
func byMLID(trees []mft.Tree) []*mft.Tree {
	list := make([]*mft.Tree, len(trees))
	for i := range trees {
		list[i] = &trees[i]
	}
	slices.SortStableFunc(list, func(a, b *mft.Tree) int {
		return cmp.Or(cmp.Compare(a.MLID, b.MLID), a.MGID.Compare(b.MGID))
	})
	return list
}

// oneOfEach says that trees have MGIDs that a group can have, no two the same.
func oneOfEach(list []*mft.Tree) error {
	met := make(map[mft.MGID]bool, len(list))
	for _, t := range list {
		if err := mft.CheckMGID(t.MGID); err != nil {
			return fmt.Errorf("group %q: %w", t.Name, err)
		}
		if met[t.MGID] {
			return fmt.Errorf("group %q: another tree has the MGID %s", t.Name, t.MGID)
		}
		met[t.MGID] = true
	}
	return nil
}

// ipoibBroadcast is the group that the flag ipoib of the default partition
// makes, with MLID mft.MinMLID.
var ipoibBroadcast = [16]byte{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 12: 0xff, 0xff, 0xff, 0xff}

// WritePartitions writes a partitions.conf with the default partition as
// OpenSM has it without such a file, all ports full members and IPoIB's
// broadcast group, and in it a group for the MGID of each tree. Errors: those
// of w, options that OpenSM does not take, and an MGID that is none or that
// two trees have.
//
// A partitions.conf has no MLIDs: OpenSM gives groups the lowest free ones in
// the order of the file, from mft.MinMLID+1 on. Groups come in the order of
// their MLIDs, so that these are right when no MLID is left out and none is
// shared; where they are not, a comment says which the group will have. Groups
// that OpenSM does not create from the file have a comment only: those whose
// MGID only the subnet administrator gives or has scope 0, and those of IPoIB
// with the P_Key of another partition. Groups of IPoIB have the MTU and the rate of the
// broadcast group; with others, OpenSM refuses them.
func WritePartitions(w io.Writer, f *fabric.Fabric, trees []mft.Tree, opt GroupOptions) error {
	list := byMLID(trees)
	if err := cmp.Or(opt.check(), oneOfEach(list)); err != nil {
		return err
	}
	if opt.MTU == 0 {
		opt.MTU = defaultMTU
	}
	var b []byte
	b = append(b, "Default=0x7fff,ipoib : ALL=full;\n"...)
	groups := 0
	next := mft.MinMLID + 1
	for _, t := range list {
		m := t.MGID.As16()
		if groups == 0 {
			b = append(b, "Default=0x7fff :\n"...)
		}
		groups++
		b = append(b, "# "...)
		b = appendComment(b, t.Name)
		b = append(b, ": MLID 0x"...)
		b = appendHex4(b, t.MLID)
		pkey := binary.BigEndian.Uint16(m[4:])
		switch {
		case m == ipoibBroadcast:
			b = append(b, ", which the partition makes\n"...)
			continue
		case mft.IsNamedBySA(t.MGID):
			b = append(b, ", "...)
			b = t.MGID.AppendTo(b)
			b = append(b, " is not to be made here: the subnet administrator names such groups\n"...)
			continue
		case mft.IsIPoIB(t.MGID) && pkey != 0 && pkey != fullPKey:
			b = append(b, ", "...)
			b = t.MGID.AppendTo(b)
			b = append(b, " is not to be made here: its P_Key is not that of the default partition\n"...)
			continue
		case m[1]&15 == 0:
			b = append(b, ", "...)
			b = t.MGID.AppendTo(b)
			b = append(b, " is not to be made here: OpenSM takes no scope 0\n"...)
			continue
		}
		if t.MLID != next {
			b = append(b, ", but OpenSM will give it 0x"...)
			b = appendHex4(b, next)
		}
		next++
		b = append(b, "\nmgid="...)
		b = t.MGID.AppendTo(b)
		if !mft.IsIPoIB(t.MGID) {
			rate := opt.Rate
			if rate == 0 {
				rate = groupRate(f, t)
			}
			b = append(b, ",mtu="...)
			b = strconv.AppendUint(b, uint64(opt.MTU), 10)
			b = append(b, ",rate="...)
			b = strconv.AppendUint(b, uint64(rate), 10)
		}
		b = append(b, ",sl="...)
		b = strconv.AppendUint(b, uint64(t.SL), 10)
		if scope := m[1] & 15; scope != defaultScope {
			// OpenSM would write its default into the MGID.
			b = append(b, ",scope="...)
			b = strconv.AppendUint(b, uint64(scope), 10)
		}
		b = append(b, '\n')
	}
	if groups > 0 {
		b = append(b, "NONE;\n"...) // no more ports
	}
	_, err := w.Write(b)
	return err
}

// appendComment appends a name for a comment: printable ASCII, and not too
// long for a line of OpenSM's, which has 4095 bytes.
func appendComment(b []byte, name string) []byte {
	for i := 0; i < min(len(name), 1000); i++ {
		c := name[i]
		if c < ' ' || c > '~' {
			c = ' '
		}
		b = append(b, c)
	}
	return b
}

// WriteSADump writes groups and their members in the form of opensm-sa.dump
// (osm_sa.c, sa_dump_one_mgrp), which OpenSM loads when it becomes the master
// with the option sa_db_file: then the groups have these MLIDs, and their
// members have joined, before any host asks. Senders that do not receive are
// send-only members. Groups without receivers are marked as well known, or
// OpenSM would forget them. Errors are as for WritePartitions, and an MLID that
// two MGIDs have.
//
// OpenSM reads partitions.conf first, and a group that is in both keeps the
// MLID that it got there.
func WriteSADump(w io.Writer, f *fabric.Fabric, trees []mft.Tree, opt GroupOptions) error {
	list := byMLID(trees)
	if err := cmp.Or(opt.check(), oneOfEach(list)); err != nil {
		return err
	}
	if opt.MTU == 0 {
		opt.MTU = defaultMTU
	}
	size := 0
	for _, t := range list {
		size += 300 + 90*max(len(t.Receivers), len(t.Senders))
	}
	b := make([]byte, 0, size)
	for i, t := range list {
		if i > 0 && list[i-1].MLID == t.MLID {
			return fmt.Errorf("groups %q and %q have one MLID, %#04x, which OpenSM does not do", list[i-1].Name, t.Name, uint16(t.MLID))
		}
		m := t.MGID.As16()
		rate := opt.Rate
		mtu := opt.MTU
		qkey := 0
		if mft.IsIPoIB(t.MGID) {
			rate, mtu, qkey = defaultRate, defaultMTU, 0x0b1b
		} else if rate == 0 {
			rate = groupRate(f, t)
		}
		scope := m[1] & 15
		hops := 0xff
		if scope == defaultScope {
			hops = 0
		}
		known := ""
		if len(t.Receivers) == 0 {
			known = " (well known)"
		}
		// The selectors of MTU, rate and lifetime say: exactly.
		b = fmt.Appendf(b, "MC Group 0x%04x%s: mgid=0x%016x:0x%016x port_gid=0x%016x:0x%016x qkey=0x%08x mlid=0x%04x mtu=0x%02x tclass=0x%02x"+
			" pkey=0x%04x rate=0x%02x pkt_life=0x%02x sl_flow_hop=0x%08x scope_state=0x%02x proxy_join=0x%x\n\n",
			uint16(t.MLID), known, m[:8], m[8:], 0, 0, qkey, uint16(t.MLID), 2<<6|mtu, 0,
			fullPKey, 2<<6|rate, 2<<6|subnetTimeout, uint32(t.SL)<<28|uint32(hops), scope<<4|joinFull, 0)
		r, s := t.Receivers, t.Senders
		for len(r)+len(s) > 0 {
			var p fabric.PortID
			state := byte(joinFull)
			if len(s) == 0 || len(r) > 0 && r[0] <= s[0] {
				p = r[0]
			} else {
				p, state = s[0], joinSendOnly
			}
			for len(r) > 0 && r[0] == p {
				r = r[1:]
			}
			for len(s) > 0 && s[0] == p {
				s = s[1:]
			}
			b = append(b, "mcm_port: port_gid=0xfe80000000000000:"...)
			b = f.PortGUID(p).Append(b)
			b = append(b, " scope_state=0x"...)
			b = append(b, hexLower[scope&15], hexLower[state&15], ' ')
			b = append(b, "proxy_join=0x0\n\n"...)
		}
	}
	_, err := w.Write(b)
	return err
}

// subnetTimeout is OpenSM's default for the lifetime of packets, 4.096 us
// times 2 to this power.
const subnetTimeout = 18

// The bits of JoinState (IBA 15.2.5.17.1).
const (
	joinFull     = 1 // sends and receives
	joinNon      = 2 // sends and receives, but does not keep the group alive
	joinSendOnly = 4
)
