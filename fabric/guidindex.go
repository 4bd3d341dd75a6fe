package fabric

import "math/bits"

// GUIDIndex finds indices by GUID: open addressing, at most half full. The zero
// value is an empty one. It may be read concurrently.
type GUIDIndex struct {
	slots []guidSlot // a power of two
	shift uint8      // 66 less the bits of an index in slots
	used  int
}

type guidSlot struct {
	guid GUID
	at   int32 // index + 1, 0 for a free slot
}

// slot is where the search for a GUID begins. Four GUIDs in a row have one cache
// line, since nodes that were made together are often met together.
func (x *GUIDIndex) slot(g GUID) int {
	return int(uint64(g>>2)*0x9e3779b97f4a7c15>>x.shift)<<2 | int(g&3)
}

// Find gives the index of g, or -1.
func (x *GUIDIndex) Find(g GUID) int32 {
	if len(x.slots) == 0 {
		return -1
	}
	for i := x.slot(g); ; i++ {
		s := &x.slots[i&(len(x.slots)-1)]
		if s.guid == g || s.at == 0 {
			return s.at - 1
		}
	}
}

// Add puts g in, which must not be there, with an index of 0 or more.
func (x *GUIDIndex) Add(g GUID, index int32) {
	if 2*(x.used+1) > len(x.slots) {
		x.Grow(max(1, x.used))
	}
	x.used++
	x.put(g, index+1)
}

func (x *GUIDIndex) put(g GUID, at int32) {
	i := x.slot(g)
	for x.slots[i&(len(x.slots)-1)].at != 0 {
		i++
	}
	x.slots[i&(len(x.slots)-1)] = guidSlot{g, at}
}

// Grow makes room for so many GUIDs more.
func (x *GUIDIndex) Grow(n int) {
	size := max(5, bits.Len(uint(2*(x.used+n)-1)))
	if n <= 0 || 1<<size <= len(x.slots) {
		return
	}
	old := x.slots
	x.slots = make([]guidSlot, 1<<size)
	x.shift = uint8(66 - size)
	for _, s := range old {
		if s.at != 0 {
			x.put(s.guid, s.at)
		}
	}
}
