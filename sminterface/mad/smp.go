package mad

import (
	"encoding/binary"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// MaxHops is the greatest number of links of a directed route (IBA 14.2.2): the
// path fields have 64 entries, of which the first is not used.
const MaxHops = 63

// DataSize is the length of the attribute of a SMP in bytes.
const DataSize = 64

// SMPVersion is the class version of subnet management.
const SMPVersion = 1

// SMP is a subnet management packet (IBA 14.2.1), by
// directed route if Header.Class is SubnDirected. Fields of
// directed routes are 0 in other packets.
type SMP struct {
	Header
	Status   Status
	HopCount uint8 // of a directed route
	MKey     uint64
	Data     [DataSize]byte
	// InitialPath has the output ports of a directed route,
	// from index 1 on. The route has no part by LID.
	InitialPath [MaxHops + 1]fabric.PortNum
}

// Marshal writes the SMP into b.
func (s *SMP) Marshal(b *[Size]byte) {
	*b = [Size]byte{}
	s.Header.Marshal(b[:])
	binary.BigEndian.PutUint64(b[24:], s.MKey)
	copy(b[64:128], s.Data[:])
	if s.Class == SubnDirected {
		b[7] = s.HopCount
		binary.BigEndian.PutUint16(b[32:], uint16(PermissiveLID)) // DrSLID
		binary.BigEndian.PutUint16(b[34:], uint16(PermissiveLID)) // DrDLID
		for i, p := range s.InitialPath {
			b[128+i] = byte(p)
		}
	}
	binary.BigEndian.PutUint16(b[4:], uint16(s.Status)&0x7fff)
}

// Unmarshal reads an SMP. Errors: ErrShort for fewer than Size bytes, and
// another class; s is unchanged then.
func (s *SMP) Unmarshal(b []byte) error {
	if len(b) < Size {
		return fmt.Errorf("%w: %d bytes, a SMP has %d", ErrShort, len(b), Size)
	}
	var h Header
	if err := h.Unmarshal(b); err != nil {
		return err
	}
	if h.Class != SubnLID && h.Class != SubnDirected {
		return fmt.Errorf("a MAD of %s, want a SMP", h.Class)
	}
	*s = SMP{Header: h, Status: Status(binary.BigEndian.Uint16(b[4:]) & 0x7fff), MKey: binary.BigEndian.Uint64(b[24:])}
	copy(s.Data[:], b[64:128])
	if h.Class == SubnDirected {
		s.HopCount = b[7]
		for i := range s.InitialPath {
			s.InitialPath[i] = fabric.PortNum(b[128+i])
		}
	}
	return nil
}
