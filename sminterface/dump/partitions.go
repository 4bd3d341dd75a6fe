package dump

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"slices"

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

// noRate stands for a link that does not count.
const noRate = 0xff

// codes are the rates in the order of gbps, and places say, by code, 1 + the index
// of a rate in them.
var codes, places = func() (codes []uint8, places [len(gbps)]uint8) {
	for c := range gbps {
		if gbps[c] > 0 {
			codes = append(codes, uint8(c))
		}
	}
	slices.SortFunc(codes, func(a, b uint8) int { return cmp.Compare(gbps[a], gbps[b]) })
	for i, c := range codes {
		places[c] = uint8(1 + i)
	}
	return codes, places
}()

// linkRates is how fast the links of all ports are: by PortID the place of the rate.
// It is noRate where the speed is not known, as for ports 0 of switches, which have
// no link, and 0 for links faster than HDR, which OpenSM 3.3.23 does not know.
type linkRates struct {
	place []uint8
	least uint8 // of all
}

func newLinkRates(f *fabric.Fabric) linkRates {
	r := linkRates{make([]uint8, f.NumPorts()), noRate}
	var before fabric.Link // of which nothing is known
	place := uint8(noRate)
	for p := range r.place {
		if link := f.Link(fabric.PortID(p)); link != before {
			before, place = link, noRate
			if link.Width != 0 && link.Speed != fabric.SpeedUnknown {
				place = places[rates[link]] // 0 for no rate
			}
			r.least = min(r.least, place)
		}
		r.place[p] = place
	}
	return r
}

// group is the rate of the slowest link of a member, of those that count. What
// OpenSM takes links faster than HDR for depends on the port: with one of them,
// the rate is 10 Gb/s, its default.
func (r linkRates) group(t *mft.Tree) uint8 {
	least := r.slowest(t.Receivers, noRate)
	if a, b := t.Receivers, t.Senders; len(a) != len(b) || len(b) > 0 && &a[0] != &b[0] {
		least = r.slowest(t.Senders, least)
	}
	if least == 0 || least == noRate {
		return defaultRate
	}
	return codes[least-1]
}

// slowest is the least place of ports, and no more than least.
func (r linkRates) slowest(ports []fabric.PortID, least uint8) uint8 {
	for _, p := range ports {
		if least = min(least, r.place[p]); least == r.least {
			break
		}
	}
	return least
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

// groupKey is what trees are told apart by.
type groupKey struct {
	high, low uint64 // of the MGID
	mlid      fabric.LID
	tree      int32 // index in the list of trees
}

// compare sorts by MLID, then by MGID; the index makes it stable.
func (a groupKey) compare(b groupKey) int {
	switch {
	case a.mlid != b.mlid:
		return int(a.mlid) - int(b.mlid)
	case a.high != b.high:
		return cmp.Compare(a.high, b.high)
	case a.low != b.low:
		return cmp.Compare(a.low, b.low)
	}
	return int(a.tree - b.tree)
}

// rising says whether each MGID is above the one before, so that all differ.
func rising(keys []groupKey) bool {
	for i := 1; i < len(keys); i++ {
		a, b := &keys[i-1], &keys[i]
		if a.high > b.high || a.high == b.high && a.low >= b.low {
			return false
		}
	}
	return true
}

// groupKeys is the trees in the order in which OpenSM is to create them. Errors: an
// MGID that no group can have, or that two have.
func groupKeys(trees []mft.Tree) ([]groupKey, error) {
	keys := make([]groupKey, len(trees))
	good := true
	for i := range trees {
		t := &trees[i]
		m := t.MGID.As16()
		keys[i] = groupKey{binary.BigEndian.Uint64(m[:8]), binary.BigEndian.Uint64(m[8:]), t.MLID, int32(i)}
		good = good && mft.CheckMGID(t.MGID) == nil
	}
	if !slices.IsSortedFunc(keys, groupKey.compare) {
		slices.SortFunc(keys, groupKey.compare)
	}
	if good && rising(keys) {
		return keys, nil
	}
	// Places are tried one after the other from the hash on; half of them or more
	// stay free.
	shift := 64 - bits.Len(uint(2*len(keys)))
	met := make([]int32, 1<<(64-shift)) // 1 + index in keys
	for i, k := range keys {
		t := &trees[k.tree]
		if !good {
			if err := mft.CheckMGID(t.MGID); err != nil {
				return nil, fmt.Errorf("group %q: %w", t.Name, err)
			}
		}
		h := (k.high^0x9e3779b97f4a7c15)*0xd6e8feb86659fd93 + k.low
		h = (h ^ h>>32) * 0x9e3779b97f4a7c15
		at := h >> shift
		for ; met[at] > 0; at = (at + 1) & uint64(len(met)-1) {
			if other := &keys[met[at]-1]; other.high == k.high && other.low == k.low {
				return nil, fmt.Errorf("group %q: another tree has the MGID %s", t.Name, t.MGID)
			}
		}
		met[at] = int32(1 + i)
	}
	return keys, nil
}

// The halves of the MGID of IPoIB's broadcast group, which the flag ipoib of the
// default partition makes, with MLID mft.MinMLID.
const (
	broadcastHigh = 0xff12401bffff0000
	broadcastLow  = 0x00000000ffffffff
)

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
	if err := opt.check(); err != nil {
		return err
	}
	keys, err := groupKeys(trees)
	if err != nil {
		return err
	}
	if opt.MTU == 0 {
		opt.MTU = defaultMTU
	}
	var links linkRates
	if opt.Rate == 0 {
		links = newLinkRates(f)
	}
	b := make([]byte, 0, partitionsPiece+maxGroup)
	b = append(b, "Default=0x7fff,ipoib : ALL=full;\n"...)
	groups := 0
	next := mft.MinMLID + 1
	for _, k := range keys {
		t := &trees[k.tree]
		if len(b) >= partitionsPiece {
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
		if groups == 0 {
			b = append(b, "Default=0x7fff :\n"...)
		}
		groups++
		b = append(b, "# "...)
		b = appendComment(b, t.Name)
		b = append(b, ": MLID 0x"...)
		b = appendHex4(b, t.MLID)
		pkey, scope := uint16(k.high>>16), k.high>>48&15
		ipoib := mft.IsIPoIB(t.MGID)
		switch {
		case k.high == broadcastHigh && k.low == broadcastLow:
			b = append(b, ", which the partition makes\n"...)
			continue
		case !ipoib && mft.IsNamedBySA(t.MGID):
			b = append(b, ", "...)
			b = appendGID(b, k.high, k.low)
			b = append(b, " is not to be made here: the subnet administrator names such groups\n"...)
			continue
		case ipoib && pkey != 0 && pkey != fullPKey:
			b = append(b, ", "...)
			b = appendGID(b, k.high, k.low)
			b = append(b, " is not to be made here: its P_Key is not that of the default partition\n"...)
			continue
		case scope == 0:
			b = append(b, ", "...)
			b = appendGID(b, k.high, k.low)
			b = append(b, " is not to be made here: OpenSM takes no scope 0\n"...)
			continue
		}
		if t.MLID != next {
			b = append(b, ", but OpenSM will give it 0x"...)
			b = appendHex4(b, next)
		}
		next++
		b = append(b, "\nmgid="...)
		b = appendGID(b, k.high, k.low)
		if !ipoib {
			rate := opt.Rate
			if rate == 0 {
				rate = links.group(t)
			}
			b = append(b, ",mtu="...)
			b = appendDecimal(b, int(opt.MTU))
			b = append(b, ",rate="...)
			b = appendDecimal(b, int(rate))
		}
		b = append(b, ",sl="...)
		b = appendDecimal(b, int(t.SL))
		if scope != defaultScope {
			// OpenSM would write its default into the MGID.
			b = append(b, ",scope="...)
			b = appendDecimal(b, int(scope))
		}
		b = append(b, '\n')
	}
	if groups > 0 {
		b = append(b, "NONE;\n"...) // no more ports
	}
	_, err = w.Write(b)
	return err
}

// WritePartitions writes pieces of partitionsPiece bytes and at most one group,
// which has maxGroup.
const (
	partitionsPiece = 32 << 10
	maxGroup        = maxComment + 200
)

// maxComment is what a comment has of a name: a line of OpenSM's has 4095 bytes.
const maxComment = 1000

// appendComment appends a name for a comment: printable ASCII, and not too long.
func appendComment(b []byte, name string) []byte {
	return appendPrintable(b, name[:min(len(name), maxComment)])
}

// zeroRuns is which groups of 16 bits a GID's text leaves out, by the mask of those
// that are zero, bit 7 for the first: the first of the longest runs, if it has two
// or more.
var zeroRuns = func() (t [256]struct{ from, to uint8 }) {
	for mask := range t {
		for from := range 8 {
			to := from
			for to < 8 && mask>>(7-to)&1 != 0 {
				to++
			}
			if to-from > max(1, int(t[mask].to-t[mask].from)) {
				t[mask].from, t[mask].to = uint8(from), uint8(to)
			}
		}
		if t[mask].to == 0 {
			t[mask].from = 8
		}
	}
	return t
}()

// zeroGroups is a mask of the groups of 16 bits of v that are zero, the first of
// four in the highest bit.
func zeroGroups(v uint64) uint64 {
	const ones = 0x7fff7fff7fff7fff
	given := (v&ones + ones | v) >> 15 & 0x0001000100010001
	return given*(1<<48|1<<33|1<<18|1<<3)>>48&15 ^ 15
}

// appendGID appends a GID, of which these are the two halves, as netip.Addr prints
// it (RFC 5952), but for IPv4 in IPv6, which no MGID is.
func appendGID(b []byte, high, low uint64) []byte {
	run := zeroRuns[zeroGroups(high)<<4|zeroGroups(low)]
	const most = 8*len("0123:") + 4
	b = slices.Grow(b, most)
	t := b[len(b):][:most]
	n := 0
	for i := uint8(0); i < 8; i++ {
		if i == run.from {
			t[n], t[n+1] = ':', ':'
			n += 2
			if i = run.to; i == 8 {
				break
			}
		} else if i > 0 {
			t[n] = ':'
			n++
		}
		v := high
		if i > 3 {
			v = low
		}
		group := uint16(v >> (48 - 16*(i&3)))
		digits := (bits.Len16(group|1) + 3) / 4
		four := hexWords[group>>8] | hexWords[group&0xff]<<16
		binary.LittleEndian.PutUint32(t[n:], uint32(four>>(8*(4-digits))))
		n += digits
	}
	return b[:len(b)+n]
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
	if err := opt.check(); err != nil {
		return err
	}
	keys, err := groupKeys(trees)
	if err != nil {
		return err
	}
	if opt.MTU == 0 {
		opt.MTU = defaultMTU
	}
	for i, k := range keys {
		if i > 0 && keys[i-1].mlid == k.mlid {
			return fmt.Errorf("groups %q and %q have one MLID, %#04x, which OpenSM does not do", trees[keys[i-1].tree].Name, trees[k.tree].Name, uint16(k.mlid))
		}
	}
	var links linkRates
	if opt.Rate == 0 {
		links = newLinkRates(f)
	}
	return writeInOrder(w, len(keys), func(_, i int, b []byte) []byte {
		return appendSAGroup(b, f, &trees[keys[i].tree], opt, links)
	})
}

// appendSAGroup appends a group of opensm-sa.dump and its members.
func appendSAGroup(b []byte, f *fabric.Fabric, t *mft.Tree, opt GroupOptions, links linkRates) []byte {
	m := t.MGID.As16()
	rate := opt.Rate
	mtu := opt.MTU
	qkey := 0
	if mft.IsIPoIB(t.MGID) {
		rate, mtu, qkey = defaultRate, defaultMTU, 0x0b1b
	} else if rate == 0 {
		rate = links.group(t)
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
	return b
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
