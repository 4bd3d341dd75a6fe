package mft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"

	"github.com/ibweave/ibweave/fabric"
)

// NumMLIDs is the number of multicast LIDs.
const NumMLIDs = int(MaxMLID) - int(MinMLID) + 1

// The signatures of MGIDs, in bytes 2 and 3: IPoIB's for IPv4 and IPv6 (RFC
// 4391, 4), a subnet administrator's own (osm_sa_mcmember_record.c,
// build_new_mgid), and this package's.
const (
	signatureIPv4   = 0x401b
	signatureIPv6   = 0x601b
	signatureSA     = 0xa01b
	signatureWeaved = 0x1b3e
)

// linkLocal is the scope of the MGIDs that this package makes: one subnet.
const linkLocal = 2

// ParseMGID reads an MGID such as ff12:a01d::1. Errors are those of CheckMGID.
func ParseMGID(s string) (MGID, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Zone() != "" {
		return MGID{}, fmt.Errorf("MGID %q: want 128 bits like ff12:a01d::1", s)
	}
	return a, CheckMGID(a)
}

// CheckMGID returns an error if no group can have the MGID: it must be multicast and have no flag
// other than that of a transient group (IBA 4.1.1).
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

// IsIPoIB returns true for an MGID of IPoIB. OpenSM creates such groups only
// with the P_Key, the rate and the MTU of the broadcast group.
func IsIPoIB(m MGID) bool {
	s := signature(m)
	return m.Is6() && (s == signatureIPv4 || s == signatureIPv6)
}

// IsNamedBySA returns true for an MGID of those that a subnet administrator makes up
// when a request for a group has none. OpenSM refuses requests for a group with such
// an MGID (osm_sa_mcmember_record.c, validate_requested_mgid).
func IsNamedBySA(m MGID) bool {
	return m.Is6() && signature(m) == signatureSA && m.As16()[1]&15 == linkLocal
}

// BudgetError says that there are more trees than free MLIDs.
type BudgetError struct {
	MLIDs int // free at first
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("no MLID is left, of %d that were free", e.MLIDs)
}

// IDs gives MGIDs and MLIDs to groups, the same ones for the same calls.
//
// An MGID made here is ff12, the signature 1b3e, the 64-bit FNV-1a hash of the group's name, 16
// bits that tell groups of one hash apart (the second in the list has 1), and 16 bits for the tree.
// So a group keeps its MGID when others come and go.
//
// Each further tree of a group has an MGID by which a host tells the subnet manager which
// tree it joins: tree k, from 0, ends with k+1. If the group came with an MGID, its further
// trees have that MGID's scope, the hash of its 16 bytes instead of the name's, and bit
// 8000 set in the 16 bits that tell groups apart. But an MGID of the form above is treated
// as made here, so the further MGIDs stay the same when it is written into a file of
// groups.
//
// No MGID made here has a signature of IPoIB, or is one that a group came with.
type IDs struct {
	groups []Group
	prefix [][14]byte // by group: first 14 bytes of its trees' MGIDs
	given  []MGID     // MGIDs that groups came with
	taken  []uint64   // a bit for each MLID, MinMLID first
	limit  int        // MLIDs that the switches have
	next   int        // all MLIDs below are taken, counted from MinMLID
	free   int
	total  int // free at first
}

// NewIDs prepares for groups, which must not change while it is used. Errors
// name the group: an MGID that CheckMGID refuses, an MLID that the switches
// do not have or that opt reserves, two groups with one MGID or MLID.
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

// prefixes chooses the first 14 bytes of the MGIDs of each group.
func (a *IDs) prefixes() error {
	used := make(map[[14]byte]int) // by prefix: MGIDs that groups came with; -1 if chosen here
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
			b[12] = 0x80 // differs from those of names
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

// Free is the number of MLIDs that are left.
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

// MLID returns the group's own MLID, or takes the next free one: call it once
// for a group. Its error is a *BudgetError.
func (a *IDs) MLID(group int) (fabric.LID, error) {
	if l := a.groups[group].MLID; l != 0 {
		return l, nil
	}
	return a.Next()
}

// AssignIDs returns the groups with the MGID and MLID of their first trees. Errors are those of
// NewIDs, and a *BudgetError.
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
