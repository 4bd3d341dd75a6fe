package mft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"

	"github.com/ibweave/ibweave/fabric"
)

// NumMLIDs is how many multicast LIDs there are.
const NumMLIDs = int(MaxMLID) - int(MinMLID) + 1

// The signatures of MGIDs, in their bytes 2 and 3. IPoIB has one for IPv4 and one
// for IPv6 (RFC 4391, 4). A subnet administrator that makes MGIDs uses the
// third (osm_sa_mcmember_record.c, build_new_mgid). MGIDs made by this package have
// the fourth.
const (
	signatureIPv4   = 0x401b
	signatureIPv6   = 0x601b
	signatureSA     = 0xa01b
	signatureWeaved = 0x1b3e
)

// linkLocal is the scope of MGIDs that are given out: one subnet.
const linkLocal = 2

// ParseMGID reads an MGID such as ff12:a01d::1. Errors are those of CheckMGID.
func ParseMGID(s string) (MGID, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Zone() != "" {
		return MGID{}, fmt.Errorf("MGID %q: want 128 bits like ff12:a01d::1", s)
	}
	return a, CheckMGID(a)
}

// CheckMGID returns an error unless a group can have the MGID: it must be multicast, with
// no other flag than that of a transient group (IBA 4.1.1).
func CheckMGID(m MGID) error {
	if !m.Is6() || m.Zone() != "" {
		return errors.New("no MGID; want 128 bits like ff12:a01d::1")
	}
	b := m.As16()
	switch {
	case b[0] != 0xff:
		return fmt.Errorf("MGID %s is not multicast; want one that begins with ff, like ff12:a01d::1", m)
	case b[1]&0xe0 != 0:
		return fmt.Errorf("MGID %s has reserved flags; want ff0 or ff1 and a scope, like ff12:a01d::1", m)
	}
	return nil
}

func signature(m MGID) uint16 {
	b := m.As16()
	return binary.BigEndian.Uint16(b[2:])
}

// IsIPoIB returns true if an MGID is one of IPoIB. OpenSM creates such groups
// only with the P_Key, the rate and the MTU of the broadcast group.
func IsIPoIB(m MGID) bool {
	s := signature(m)
	return m.Is6() && (s == signatureIPv4 || s == signatureIPv6)
}

// IsNamedBySA returns true if only a subnet administrator makes a group with this
// MGID, when it is asked to create one without: OpenSM refuses requests to
// create it (osm_sa_mcmember_record.c, validate_requested_mgid).
func IsNamedBySA(m MGID) bool {
	return m.Is6() && signature(m) == signatureSA && m.As16()[1]&15 == linkLocal
}

// BudgetError says that there are more trees than MLIDs.
type BudgetError struct {
	MLIDs int // that were free when the first was given out
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("no MLID is left, of %d that were free", e.MLIDs)
}

// IDs gives out MGIDs and MLIDs to groups, the same ones for the same calls.
//
// An MGID that is given out is ff12, the signature 1b3e, 64 bits of the FNV-1a
// hash of the group's name, 16 bits to tell groups apart whose names have one
// hash (the second by index in the list has 1), and 16 bits that are 1. So a
// group keeps its MGID when others come and go.
//
// Trees of a group beyond the first have MGIDs of their own, by which a
// host tells the subnet manager which tree it wants to join. Tree k, from 0, has k+1 in
// the last 16 bits of the group's new MGID. If the group came with an MGID, its further
// trees have that MGID's scope, the hash of its 16 bytes instead of the name's,
// and the bit 8000 set in the 16 bits that distinguish groups. But an MGID of
// the form above is treated as one made here, so that the further MGIDs stay the
// same when it is written into a file of groups.
//
// None of these has a signature of IPoIB, and none is an MGID that a group
// came with.
type IDs struct {
	groups []Group
	prefix [][14]byte // by group: what the MGIDs of its trees begin with
	given  []MGID     // those that groups came with
	taken  []uint64   // by MLID less MinMLID, a bit
	limit  int        // MLIDs that the switches have
	next   int        // MLIDs below are taken
	free   int
	total  int // free when nothing had been given out
}

// NewIDs prepares for groups, which must not change while it is used. Errors
// name the group: an MGID that CheckMGID refuses, an MLID that the switches do
// not have or that opt reserves, two groups with one MGID or MLID.
func NewIDs(groups []Group, opt Options) (*IDs, error) {
	a := &IDs{groups: groups, limit: NumMLIDs, taken: make([]uint64, NumMLIDs/64+1), prefix: make([][14]byte, len(groups))}
	if opt.Capacity > 0 {
		a.limit = min(opt.Capacity, NumMLIDs)
	}
	for _, l := range opt.Reserved {
		if l >= MinMLID && l <= MaxMLID {
			a.reserve(l)
		}
	}
	byMLID := make(map[fabric.LID]int)
	byMGID := make(map[MGID]int)
	for i := range groups {
		g := &groups[i]
		if l := g.MLID; l != 0 {
			first, dup := byMLID[l]
			switch {
			case l < MinMLID || l > MaxMLID:
				return nil, fmt.Errorf("group %q: MLID %#04x, want %#04x to %#04x", g.Name, uint16(l), uint16(MinMLID), uint16(MaxMLID))
			case int(l-MinMLID) >= a.limit:
				return nil, fmt.Errorf("group %q: MLID %#04x, but the switches have MLIDs %#04x to %#04x", g.Name, uint16(l), uint16(MinMLID), int(MinMLID)+a.limit-1)
			case dup:
				return nil, fmt.Errorf("groups %q and %q have one MLID, %#04x", groups[first].Name, g.Name, uint16(l))
			case a.isTaken(l):
				return nil, fmt.Errorf("group %q: MLID %#04x is reserved", g.Name, uint16(l))
			}
			byMLID[l] = i
		}
		if g.MGID.IsValid() {
			if err := CheckMGID(g.MGID); err != nil {
				return nil, fmt.Errorf("group %q: %w", g.Name, err)
			}
			if first, dup := byMGID[g.MGID]; dup {
				return nil, fmt.Errorf("groups %q and %q have one MGID, %s", groups[first].Name, g.Name, g.MGID)
			}
			byMGID[g.MGID] = i
			a.given = append(a.given, g.MGID)
		}
	}
	a.reserve(MinMLID)
	for l := range byMLID {
		a.reserve(l)
	}
	for m := range a.limit {
		if !a.isTaken(MinMLID + fabric.LID(m)) {
			a.free++
		}
	}
	a.total = a.free
	if err := a.prefixes(); err != nil {
		return nil, err
	}
	return a, nil
}

// prefixes chooses what the MGIDs of each group begin with.
func (a *IDs) prefixes() error {
	used := make(map[[14]byte]int) // how many MGIDs that groups came with, or -1
	for _, m := range a.given {
		if signature(m) == signatureWeaved {
			b := m.As16()
			used[[14]byte(b[:14])]++
		}
	}
	next := make(map[[12]byte]int) // the number to try in the last two bytes
	for i := range a.groups {
		g := &a.groups[i]
		b := [14]byte{0xff, 0x10 | linkLocal}
		binary.BigEndian.PutUint16(b[2:], signatureWeaved)
		kind := 0
		if g.MGID.IsValid() {
			m := g.MGID.As16()
			if signature(g.MGID) == signatureWeaved && m[14] == 0 && m[15] == 1 && used[[14]byte(m[:14])] == 1 {
				a.prefix[i] = [14]byte(m[:14])
				continue
			}
			b[1] = 0x10 | m[1]&15
			b[12] = 0x80 // apart from those of names
			kind = 0x8000
			binary.BigEndian.PutUint64(b[4:], fnv1a(m[:]))
		} else {
			binary.BigEndian.PutUint64(b[4:], fnv1a([]byte(g.Name)))
		}
		same := [12]byte(b[:12])
		same[0] = b[12]
		n := next[same]
		for ; n < 0x8000; n++ {
			binary.BigEndian.PutUint16(b[12:], uint16(kind|n))
			if used[b] == 0 {
				break
			}
		}
		if n == 0x8000 {
			return fmt.Errorf("group %q: %d groups before it have the same name; want a name of its own, or an MGID", g.Name, n)
		}
		next[same] = n + 1
		used[b] = -1
		a.prefix[i] = b
	}
	return nil
}

// fnv1a is the 64-bit FNV-1a hash.
func fnv1a(data []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(data) // it never fails
	return h.Sum64()
}

func (a *IDs) reserve(l fabric.LID)      { a.taken[(l-MinMLID)/64] |= 1 << ((l - MinMLID) % 64) }
func (a *IDs) isTaken(l fabric.LID) bool { return a.taken[(l-MinMLID)/64]>>((l-MinMLID)%64)&1 != 0 }

// MGID is the MGID of a tree of a group; tree 0 has the group's own. Trees are
// numbered below NumMLIDs.
func (a *IDs) MGID(group, tree int) MGID {
	if m := a.groups[group].MGID; tree == 0 && m.IsValid() {
		return m
	}
	var b [16]byte
	copy(b[:], a.prefix[group][:])
	binary.BigEndian.PutUint16(b[14:], uint16(tree+1))
	return netip.AddrFrom16(b)
}

// Free is how many MLIDs Next has still to give.
func (a *IDs) Free() int { return a.free }

// Next gives out the lowest free MLID, from MinMLID+1 on. Its error is a
// *BudgetError.
func (a *IDs) Next() (fabric.LID, error) {
	for a.next < a.limit && a.isTaken(MinMLID+fabric.LID(a.next)) {
		a.next++
	}
	if a.next == a.limit {
		return 0, &BudgetError{MLIDs: a.total}
	}
	l := MinMLID + fabric.LID(a.next)
	a.reserve(l)
	a.free--
	return l, nil
}

// MLID is the group's own MLID, or else the next free one: to be called once
// for a group. Its error is a *BudgetError.
func (a *IDs) MLID(group int) (fabric.LID, error) {
	if l := a.groups[group].MLID; l != 0 {
		return l, nil
	}
	return a.Next()
}

// AssignIDs returns the groups with an MGID and an MLID each: those that the first tree of
// a group has. Errors are those of NewIDs, and a *BudgetError.
func AssignIDs(groups []Group, opt Options) ([]Group, error) {
	ids, err := NewIDs(groups, opt)
	if err != nil {
		return nil, err
	}
	list := make([]Group, len(groups))
	for i, g := range groups {
		g.MGID = ids.MGID(i, 0)
		if g.MLID, err = ids.MLID(i); err != nil {
			return nil, fmt.Errorf("group %q: %w", g.Name, err)
		}
		list[i] = g
	}
	return list, nil
}
