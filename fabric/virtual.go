package fabric

import (
	"fmt"
	"iter"
	"maps"
	"slices"
)

// WithVirtualLIDs returns the same subnet, in which end ports also answer
// to the LIDs of virtual ports on them, given by LID. LID and LMC of a
// port stay; WithLIDs drops the virtual LIDs again. Errors: a LID beyond
// MaxUnicastLID, a port that is no end port, and a *LIDOverlapError.
func (f *Fabric) WithVirtualLIDs(ports map[LID]PortID) (*Fabric, error) {
	list := slices.Sorted(maps.Keys(ports))
	if len(list) == 0 {
		return f, nil
	}
	highest := list[len(list)-1]
	byLID := slices.Clone(f.byLID)
	for len(byLID) <= int(min(highest, MaxUnicastLID)) {
		byLID = append(byLID, NoPort)
	}
	for _, l := range list {
		p := ports[l]
		switch {
		case l == 0 || l > MaxUnicastLID:
			return nil, fmt.Errorf("%s: LID %d of a virtual port, want 1 to %d", f.PortName(p), l, MaxUnicastLID)
		case f.guid[p] == 0:
			return nil, fmt.Errorf("LID %d of a virtual port on %s, which is no end port", l, f.PortName(p))
		case byLID[l] != NoPort && byLID[l] != p:
			return nil, &LIDOverlapError{LID: l, A: byLID[l], B: p, fab: f}
		}
		byLID[l] = p
	}
	g := *f
	g.lids = &lids{lid: f.lid, lmc: f.lmc, byLID: byLID, virtual: map[PortID]int{}}
	for _, p := range g.VirtualLIDs() {
		g.virtual[p]++
	}
	return &g, nil
}

// NumLIDs is the number of LIDs of a port, including those of its virtual ports.
func (f *Fabric) NumLIDs(p PortID) int {
	n := f.virtual[p]
	if f.lid[p] != 0 {
		n += 1 << f.lmc[p]
	}
	return n
}

// AllLIDs yields the LIDs of a port, ascending, including those of its virtual ports.
func (f *Fabric) AllLIDs(p PortID) iter.Seq[LID] {
	if f.virtual[p] == 0 {
		return f.LIDs(p)
	}
	return func(yield func(LID) bool) {
		for l, q := range f.byLID {
			if q == p && !yield(LID(l)) {
				return
			}
		}
	}
}

// VirtualLIDs returns the LIDs that WithVirtualLIDs has added, with their ports.
func (f *Fabric) VirtualLIDs() map[LID]PortID {
	all := map[LID]PortID{}
	if f.virtual == nil {
		return all
	}
	for l, p := range f.byLID {
		if p != NoPort && f.IsVirtual(LID(l)) {
			all[LID(l)] = p
		}
	}
	return all
}

// IsVirtual returns true if only a virtual port has LID l, which some port must have.
func (f *Fabric) IsVirtual(l LID) bool {
	p := f.byLID[l]
	return l < f.lid[p] || int(l) >= int(f.lid[p])+1<<f.lmc[p]
}

// WithoutVirtualLIDs returns the same subnet without the LIDs of virtual ports.
func (f *Fabric) WithoutVirtualLIDs() *Fabric {
	g, err := f.WithLIDs(f.lid, f.lmc)
	if err != nil { // cannot be: they were valid
		return f
	}
	return g
}

// PKey is a P_Key, an entry of the P_Key table of a port (IBA 10.9.1): the number of a
// partition in 15 bits, and the membership bit. Two ports can communicate if they have
// P_Keys of the same partition and at least one of the two is a full member.
type PKey uint16

const (
	// FullMember is the bit of full members; without it the membership is limited.
	FullMember PKey = 0x8000
	// DefaultPartition is the partition in which every port can reach subnet administration.
	DefaultPartition PKey = 0x7fff
)

// Partition returns the number of the partition, without
// the membership bit; 0 for an entry that is not in use.
func (k PKey) Partition() PKey { return k &^ FullMember }

// IsFull returns true for the P_Key of a full member.
func (k PKey) IsFull() bool { return k&FullMember != 0 }

// String is 0x and 4 hexadecimal digits.
func (k PKey) String() string { return fmt.Sprintf("0x%04x", uint16(k)) }
