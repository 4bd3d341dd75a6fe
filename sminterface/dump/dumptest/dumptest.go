// Package dumptest writes texts for tests as tools print
// them, in forms that package dump reads and no program of
// this module writes. It makes no promise to other modules.
package dumptest

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/mft"
)

// SADump returns groups and their members in the form of opensm-sa.dump
// (osm_sa.c, sa_dump_one_mgrp). OpenSM loads the file of its option
// sa_db_file when it becomes the master: then groups have these MLIDs and
// members before any host joins. Senders that do not receive are send-only
// members. Groups without receivers are marked as well known, since OpenSM
// would forget them otherwise. The MTU is 2048 bytes, the rate 10 Gb/s.
//
// OpenSM reads partitions.conf first. A group that is in both files keeps
// the MLID that it got from partitions.conf.
func SADump(f *fabric.Fabric, trees []mft.Tree) []byte {
	var b []byte
	for _, t := range trees {
		m := t.MGID.As16()
		scope, hops, qkey, known := m[1]&15, 0xff, 0, ""
		if scope == 2 { // of a subnet
			hops = 0
		}
		if mft.IsIPoIB(t.MGID) {
			qkey = 0x0b1b
		}
		if len(t.Receivers) == 0 {
			known = " (well known)"
		}
		b = fmt.Appendf(b, "MC Group 0x%04x%s: mgid=0x%016x:0x%016x port_gid=0x%016x:0x%016x qkey=0x%08x mlid=0x%04x mtu=0x84 tclass=0x00"+
			" pkey=0xffff rate=0x83 pkt_life=0x92 sl_flow_hop=0x%08x scope_state=0x%x1 proxy_join=0x0\n\n",
			uint16(t.MLID), known, m[:8], m[8:], 0, 0, qkey, uint16(t.MLID), uint32(t.SL)<<28|uint32(hops), scope)
		member := func(p fabric.PortID, state int) {
			b = fmt.Appendf(b, "mcm_port: port_gid=0xfe80000000000000:%s scope_state=0x%x%x proxy_join=0x0\n\n", f.PortGUID(p), scope, state)
		}
		for _, p := range t.Receivers {
			member(p, 1)
		}
		for _, p := range t.Senders {
			if !slices.Contains(t.Receivers, p) {
				member(p, 4)
			}
		}
	}
	return b
}

// PLFTMap returns the text that tells which private LFT each packet takes.
func PLFTMap(f *fabric.Fabric, x *adaptive.Selector) []byte {
	var b []byte
	for _, s := range f.Switches() {
		b = fmt.Appendf(b, "PLFTs of switch %s\n#in : SL 0 to 15\n", f.Node(s).GUID)
		for in := range int(f.Node(s).NumPorts) + 1 {
			b = fmt.Appendf(b, "%d :", in)
			for _, plft := range x.Row(s, fabric.PortNum(in)) {
				b = fmt.Appendf(b, " %d", plft)
			}
			b = append(b, '\n')
		}
	}
	return b
}
