package mad

import (
	"encoding/binary"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// MaxHops is how many links a directed route can have (IBA 14.2.2): the path
// fields have 64 entries, of which the first is not used.
const MaxHops = 63

// DataSize is the length of the attribute of a SMP in bytes.
const DataSize = 64

// SMPVersion is the class version of subnet management.
const SMPVersion = 1

// SMP is a subnet management packet (IBA 14.2.1), by directed route if
// Header.Class is SubnDirected. Fields that only directed routes have are 0
// otherwise.
type SMP struct {
	Header
	Status     Status
	Returning  bool  // on the way back (D); directed route
	HopPointer uint8 // directed route
	HopCount   uint8 // directed route
	MKey       uint64
	// DrSLID and DrDLID are the LIDs of the parts of a route before and after
	// the ports, PermissiveLID for none; directed route.
	DrSLID, DrDLID fabric.LID
	Data           [DataSize]byte
	// InitialPath has the ports to leave by, from index 1 on, ReturnPath
	// those that the SMP came in by; directed route.
	InitialPath, ReturnPath [MaxHops + 1]fabric.PortNum
}

// Marshal writes the SMP into b.
func (s *SMP) Marshal(b *[Size]byte) {
	*b = [Size]byte{}
	s.Header.Marshal(b[:])
	status := uint16(s.Status) & 0x7fff
	binary.BigEndian.PutUint64(b[24:], s.MKey)
	copy(b[64:128], s.Data[:])
	if s.Class == SubnDirected {
		if s.Returning {
			status |= 0x8000
		}
		b[6], b[7] = s.HopPointer, s.HopCount
		binary.BigEndian.PutUint16(b[32:], uint16(s.DrSLID))
		binary.BigEndian.PutUint16(b[34:], uint16(s.DrDLID))
		for i, p := range s.InitialPath {
			b[128+i] = byte(p)
		}
		for i, p := range s.ReturnPath {
			b[192+i] = byte(p)
		}
	}
	binary.BigEndian.PutUint16(b[4:], status)
}

// Unmarshal reads a SMP. It returns ErrShort for fewer than Size bytes, and an
// error for another class. s is unchanged then.
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
	status := binary.BigEndian.Uint16(b[4:])
	*s = SMP{Header: h, Status: Status(status & 0x7fff), MKey: binary.BigEndian.Uint64(b[24:])}
	copy(s.Data[:], b[64:128])
	if h.Class == SubnDirected {
		s.Returning = status&0x8000 != 0
		s.HopPointer, s.HopCount = b[6], b[7]
		s.DrSLID = fabric.LID(binary.BigEndian.Uint16(b[32:]))
		s.DrDLID = fabric.LID(binary.BigEndian.Uint16(b[34:]))
		for i := range s.InitialPath {
			s.InitialPath[i] = fabric.PortNum(b[128+i])
		}
		for i := range s.ReturnPath {
			s.ReturnPath[i] = fabric.PortNum(b[192+i])
		}
	}
	return nil
}
