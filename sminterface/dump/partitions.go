package dump

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// OpenSM's defaults (osm_base.h).
const (
	defaultMTU   = 4 // 2048 bytes
	defaultRate  = 3 // 10 Gb/s
	defaultScope = 2 // link-local: of a subnet
)

// fullPKey is the default partition, for full members.
const fullPKey = 0xffff

// rates has the codes of IBA 15.2.5.16 by rate in tenths of Gb/s.
var rates = map[int]uint8{25: 2, 50: 5, 100: 3, 140: 11, 200: 6, 250: 15, 280: 19, 300: 4, 400: 7, 500: 20, 560: 12, 600: 8, 800: 9,
	1000: 16, 1120: 13, 1200: 10, 1680: 14, 2000: 17, 3000: 18, 4000: 21, 6000: 22}

// laneRates has the rate of a lane in tenths of Gb/s. OpenSM
// 3.3.23 knows none faster than HDR.
var laneRates = [fabric.XDR + 1]int{fabric.SDR: 25, fabric.DDR: 50, fabric.QDR: 100, fabric.FDR10: 100, fabric.FDR: 140, fabric.EDR: 250, fabric.HDR: 500}

// groupRate returns the rate of the slowest link of a member, among those of
// known speed; ports 0 of switches have no link. If a link is faster than HDR,
// OpenSM's view of it depends on the port, and the rate is its default, 10 Gb/s.
func groupRate(f *fabric.Fabric, t *mft.Tree) uint8 {
	slowest := 0
	for _, ports := range [][]fabric.PortID{t.Receivers, t.Senders} {
		for _, p := range ports {
			link := f.Link(p)
			rate := int(link.Width) * laneRates[link.Speed]
			switch {
			case link.Width == 0 || link.Speed == fabric.SpeedUnknown:
			case rates[rate] == 0:
				return defaultRate
			case slowest == 0 || rate < slowest:
				slowest = rate
			}
		}
	}
	return cmp.Or(rates[slowest], defaultRate)
}

// orderGroups returns trees in the order in which OpenSM is to create their groups:
// by MLID, then by MGID. An MGID that is invalid or occurs twice is an error.
func orderGroups(trees []mft.Tree) ([]*mft.Tree, error) {
	list := make([]*mft.Tree, len(trees))
	for i := range trees {
		list[i] = &trees[i]
	}
	slices.SortStableFunc(list, func(a, b *mft.Tree) int { return cmp.Or(cmp.Compare(a.MLID, b.MLID), a.MGID.Compare(b.MGID)) })
	met := make(map[mft.MGID]bool, len(list))
	for _, t := range list {
		if err := mft.CheckMGID(t.MGID); err != nil {
			return nil, fmt.Errorf("group %q: %w", t.Name, err)
		}
		if met[t.MGID] {
			return nil, fmt.Errorf("group %q: another tree has the MGID %s", t.Name, t.MGID)
		}
		met[t.MGID] = true
	}
	return list, nil
}

// broadcastMGID is the MGID of IPoIB's broadcast group. The flag ipoib
// of the default partition creates that group, with MLID mft.MinMLID.
var broadcastMGID = netip.MustParseAddr("ff12:401b:ffff::ffff:ffff")

// WritePartitions writes a partitions.conf with the default partition that OpenSM has
// without such a file: all ports are full members, and IPoIB's broadcast group is in
// it. It adds a group for the MGID of each tree. Errors: those of w, and an MGID that
// is not valid or that two trees have.
//
// A partitions.conf has no MLIDs: OpenSM gives groups the lowest free ones in the order
// of the file, from mft.MinMLID+1 on. Groups are written in the order of their MLIDs: each
// gets its own if the trees leave out and share no MLID; otherwise a comment has the
// MLID that the group will get. A group that OpenSM does not create from the file has
// only a comment: its MGID is one that only the subnet administrator assigns, or has
// scope 0, or is that of an IPoIB group with the P_Key of another partition. IPoIB
// groups get the MTU and rate of the broadcast group, since OpenSM refuses others.
func WritePartitions(w io.Writer, f *fabric.Fabric, trees []mft.Tree) error {
	list, err := orderGroups(trees)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "Default=0x7fff,ipoib : ALL=full;\n")
	if len(list) > 0 {
		fmt.Fprint(out, "Default=0x7fff :\n")
	}
	next := mft.MinMLID + 1
	for _, t := range list {
		name := appendPrintable(nil, t.Name[:min(len(t.Name), maxComment)])
		fmt.Fprintf(out, "# %s: MLID 0x%04x", name, uint16(t.MLID))
		switch why := whyNotCreated(t.MGID); {
		case t.MGID == broadcastMGID:
			fmt.Fprint(out, ", which the partition makes\n")
			continue
		case why != "":
			fmt.Fprintf(out, ", %s is not to be made here: %s\n", t.MGID, why)
			continue
		case t.MLID != next:
			fmt.Fprintf(out, ", but OpenSM will give it 0x%04x", uint16(next))
		}
		next++
		fmt.Fprintf(out, "\n%s\n", groupLine(f, t))
	}
	if len(list) > 0 {
		fmt.Fprint(out, "NONE;\n") // no more ports
	}
	return out.Flush()
}

// maxComment bounds a name in a comment, in bytes: OpenSM's lines have at most 4095.
const maxComment = 1000

// whyNotCreated returns the reason why OpenSM does not create a group from
// partitions.conf, "" for a group that it creates.
func whyNotCreated(m mft.MGID) string {
	b := m.As16()
	pkey := binary.BigEndian.Uint16(b[4:])
	switch {
	case !mft.IsIPoIB(m) && mft.IsNamedBySA(m):
		return "the subnet administrator names such groups"
	case mft.IsIPoIB(m) && pkey != 0 && pkey != fullPKey:
		return "its P_Key is not that of the default partition"
	case scopeOf(m) == 0:
		return "OpenSM takes no scope 0"
	}
	return ""
}

// scopeOf returns the scope of a group (IBA 4.1.1).
func scopeOf(m mft.MGID) uint8 { return m.As16()[1] & 15 }

// groupLine returns the line that creates a group.
func groupLine(f *fabric.Fabric, t *mft.Tree) string {
	line := "mgid=" + t.MGID.String()
	if !mft.IsIPoIB(t.MGID) {
		line += fmt.Sprintf(",mtu=%d,rate=%d", defaultMTU, groupRate(f, t))
	}
	line += fmt.Sprintf(",sl=%d", t.SL)
	if scope := scopeOf(t.MGID); scope != defaultScope {
		// Otherwise OpenSM would write its default into the MGID.
		line += fmt.Sprintf(",scope=%d", scope)
	}
	return line
}
