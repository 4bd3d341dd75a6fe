package fabric

import "math/bits"

// GUIDIndex finds indices by GUID: open addressing, at most half full. The zero
// value is an empty one. It may be read concurrently.
//
// A search looks at no more than probes slots. GUIDs that find all of theirs taken,
// which are few unless somebody has chosen them to be many, go into a map.
type GUIDIndex struct {
	slots []guidSlot // a power of two, and probes more
	shift uint8      // 66 less the bits of that power
	used  int
	rest  map[GUID]int32
}

type guidSlot struct {
	guid GUID
	at   int32 // index + 1, 0 for a free slot
}

// probes is far more than what half full tables need: 8 for nearly all GUIDs.
const probes = 64

// near is the slots that a GUID may be in. Four GUIDs in a row have one cache line,
// since nodes that were made together are often met together.
func (x *GUIDIndex) near(g GUID) []guidSlot {
	i := uint64(g>>2)*0x9e3779b97f4a7c15>>x.shift<<2 | uint64(g&3)
	return x.slots[i : i+probes]
}

// Find gives the index of g, or -1.
func (x *GUIDIndex) Find(g GUID) int32 {
	if len(x.slots) == 0 {
		return -1
	}
	near := x.near(g)
	for i := range near {
		if s := &near[i]; s.guid == g || s.at == 0 {
			return s.at - 1
		}
	}
	if i, ok := x.rest[g]; ok {
		return i
	}
	return -1
}

// Add puts g in with an index of 0 or more and returns -1. When g is there already,
// nothing changes and the index it has is returned.
func (x *GUIDIndex) Add(g GUID, index int32) int32 {
	if 2*(x.used+1)+probes > len(x.slots) {
		x.Grow(max(1, x.used))
	}
	near := x.near(g)
	for i := range near {
		s := &near[i]
		if s.at == 0 {
			*s = guidSlot{g, index + 1}
			x.used++
			return -1
		}
		if s.guid == g {
			return s.at - 1
		}
	}
	if i, ok := x.rest[g]; ok {
		return i
	}
	if x.rest == nil {
		x.rest = make(map[GUID]int32)
	}
	x.rest[g] = index
	return -1
}

// Grow makes room for so many GUIDs more.
func (x *GUIDIndex) Grow(n int) {
	size := max(5, bits.Len(uint(2*(x.used+n)-1)))
	if n <= 0 || 1<<size+probes <= len(x.slots) {
		return
	}
	old := *x
	*x = GUIDIndex{slots: make([]guidSlot, 1<<size+probes), shift: uint8(66 - size)}
	for i := range old.slots {
		if s := &old.slots[i]; s.at != 0 {
			x.Add(s.guid, s.at-1)
		}
	}
	for g, i := range old.rest { // in any order: each is found wherever it is
		x.Add(g, i)
	}
}
