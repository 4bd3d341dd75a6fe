package mad

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/ibweave/ibweave/fabric"
)

// AdmVersion is the class version of subnet administration.
const AdmVersion = 2

// The parts of a MAD of subnet administration (IBA 15.2.1.1), in bytes.
const (
	AdmHeaderSize = HeaderSize + 12 + 20 // the header including that of RMPP, up to the record
	AdmDataSize   = Size - AdmHeaderSize
)

// MaxAnswer is the longest answer of several packets, in bytes. A subnet of 49,151 ports has
// 9 MB of NodeRecords.
const MaxAnswer = 64 << 20

// Adm is a whole MAD of subnet administration: Data has the records of all packets
// of an answer, which the kernel joins. The header of RMPP is written as 0.
type Adm struct {
	Header
	Status Status
	SMKey  uint64 // 0 for a request that needs no trust
	// AttributeOffset is the distance between records, in units of 8 bytes.
	AttributeOffset uint16
	ComponentMask   uint64 // the components of the record that count
	Data            []byte
}

// Append appends the MAD, filled with zeros to Size bytes, to b.
func (a *Adm) Append(b []byte) []byte {
	from := len(b)
	b = append(b, make([]byte, max(Size, AdmHeaderSize+len(a.Data)))...)
	m := b[from:]
	a.Header.Marshal(m)
	binary.BigEndian.PutUint16(m[4:], uint16(a.Status))
	binary.BigEndian.PutUint64(m[36:], a.SMKey)
	binary.BigEndian.PutUint16(m[44:], a.AttributeOffset)
	binary.BigEndian.PutUint64(m[48:], a.ComponentMask)
	copy(m[AdmHeaderSize:], a.Data)
	return b
}

// Unmarshal reads a MAD of at least AdmHeaderSize bytes. Data is a part of b. It returns ErrShort
// if b is shorter, another error for another class, and leaves a unchanged on error.
func (a *Adm) Unmarshal(b []byte) error {
	if len(b) < AdmHeaderSize {
		return fmt.Errorf("%w: %d bytes, a MAD of subnet administration has %d", ErrShort, len(b), AdmHeaderSize)
	}
	var h Header
	if err := h.Unmarshal(b); err != nil {
		return err
	}
	if h.Class != SubnAdm {
		return fmt.Errorf("a MAD of %s, want %s", h.Class, SubnAdm)
	}
	*a = Adm{
		Header:          h,
		Status:          Status(binary.BigEndian.Uint16(b[4:])),
		SMKey:           binary.BigEndian.Uint64(b[36:]),
		AttributeOffset: binary.BigEndian.Uint16(b[44:]),
		ComponentMask:   binary.BigEndian.Uint64(b[48:]),
		Data:            b[AdmHeaderSize:],
	}
	return nil
}

// JoinState is the set of ways in which a port takes part in a multicast group
// (IBA 15.2.5.17).
type JoinState uint8

// The ways to take part.
const (
	FullMember         JoinState = 1 << 0
	NonMember          JoinState = 1 << 1
	SendOnlyNonMember  JoinState = 1 << 2
	SendOnlyFullMember JoinState = 1 << 3
)

func (j JoinState) String() string {
	text := ""
	for i, name := range [4]string{"full", "non", "send-only", "send-only full"} {
		if j>>i&1 != 0 {
			if text != "" {
				text += "+"
			}
			text += name
		}
	}
	if text == "" {
		return "none"
	}
	return text + " member"
}

// MCMemberRecord has the fields in use here of attribute 0x0038 of subnet
// administration (IBA 15.2.5.17). Other fields are written as 0.
type MCMemberRecord struct {
	MGID, PortGID netip.Addr // IPv6; the zero Addr is written as ::
	QKey          uint32
	MLID          fabric.LID
	PKey          uint16
	SL            fabric.SL
	JoinState     JoinState
}

// MCMemberRecordSize is the length of a MCMemberRecord in bytes. In tables it
// is filled up to a multiple of 8.
const MCMemberRecordSize = 52

// The components of a MCMemberRecord in use here.
const (
	MCMemberMGID      uint64 = 1 << 0
	MCMemberPortGID   uint64 = 1 << 1
	MCMemberQKey      uint64 = 1 << 2
	MCMemberMLID      uint64 = 1 << 3
	MCMemberTClass    uint64 = 1 << 6
	MCMemberPKey      uint64 = 1 << 7
	MCMemberSL        uint64 = 1 << 12
	MCMemberFlowLabel uint64 = 1 << 13
	MCMemberJoinState uint64 = 1 << 16
)

func putGID(b []byte, g netip.Addr) {
	var a [16]byte
	if g.IsValid() {
		a = g.As16()
	}
	copy(b[:16], a[:])
}

func gid(b []byte) netip.Addr { return netip.AddrFrom16([16]byte(b[:16])) }

// PortGID returns the GID of a port in a subnet.
func PortGID(prefix uint64, port fabric.GUID) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], prefix)
	binary.BigEndian.PutUint64(b[8:], uint64(port))
	return netip.AddrFrom16(b)
}

// DefaultSubnetPrefix is the prefix of a subnet's GIDs if no
// other one is configured (IBA 4.1.1).
const DefaultSubnetPrefix uint64 = 0xfe80000000000000

// Append appends the record to b.
func (m *MCMemberRecord) Append(b []byte) []byte {
	var r [MCMemberRecordSize]byte
	putGID(r[0:], m.MGID)
	putGID(r[16:], m.PortGID)
	binary.BigEndian.PutUint32(r[32:], m.QKey)
	binary.BigEndian.PutUint16(r[36:], uint16(m.MLID))
	binary.BigEndian.PutUint16(r[40:], m.PKey)
	r[44] = byte(m.SL) << 4
	r[48] = byte(m.JoinState) & 15
	return append(b, r[:]...)
}

// Unmarshal reads a record. It returns ErrShort for fewer bytes than
// MCMemberRecordSize.
func (m *MCMemberRecord) Unmarshal(r []byte) error {
	if len(r) < MCMemberRecordSize {
		return fmt.Errorf("%w: %d bytes, a MCMemberRecord has %d", ErrShort, len(r), MCMemberRecordSize)
	}
	*m = MCMemberRecord{
		MGID:      gid(r),
		PortGID:   gid(r[16:]),
		QKey:      binary.BigEndian.Uint32(r[32:]),
		MLID:      fabric.LID(binary.BigEndian.Uint16(r[36:])),
		PKey:      binary.BigEndian.Uint16(r[40:]),
		SL:        fabric.SL(r[44] >> 4),
		JoinState: JoinState(r[48] & 15),
	}
	return nil
}

// PathRecord has the fields in use here of attribute 0x0035 of subnet
// administration (IBA 15.2.5.16). Other fields are written as 0.
type PathRecord struct {
	DLID, SLID fabric.LID
	NumPath    uint8 // 7 bits
	SL         fabric.SL
}

// PathRecordSize is the length of a PathRecord in bytes.
const PathRecordSize = 64

// The components of a PathRecord in use here.
const (
	PathDLID    uint64 = 1 << 4
	PathSLID    uint64 = 1 << 5
	PathNumPath uint64 = 1 << 12
)

// Append appends the record to b.
func (p *PathRecord) Append(b []byte) []byte {
	var r [PathRecordSize]byte
	binary.BigEndian.PutUint16(r[40:], uint16(p.DLID))
	binary.BigEndian.PutUint16(r[42:], uint16(p.SLID))
	r[49] = p.NumPath & 0x7f
	r[53] = byte(p.SL) & 15
	return append(b, r[:]...)
}

// Unmarshal reads a record. It returns ErrShort for fewer bytes than
// PathRecordSize.
func (p *PathRecord) Unmarshal(r []byte) error {
	if len(r) < PathRecordSize {
		return fmt.Errorf("%w: %d bytes, a PathRecord has %d", ErrShort, len(r), PathRecordSize)
	}
	*p = PathRecord{
		DLID:    fabric.LID(binary.BigEndian.Uint16(r[40:])),
		SLID:    fabric.LID(binary.BigEndian.Uint16(r[42:])),
		NumPath: r[49] & 0x7f,
		SL:      fabric.SL(r[53] & 15),
	}
	return nil
}

// ErrTruncated means that an answer does not end with a whole record.
// libumad2sim.so cuts off OpenSM's answers on ibsim at 256 bytes,
// which are three MCMemberRecords: ask for less at a time there.
var ErrTruncated = errors.New("the answer was cut off")

// Records cuts the Data of an answer into its records of size
// bytes, which are AttributeOffset apart. Errors: an offset less
// than a record, and ErrTruncated if part of a record is left at
// the end. Padding behind the last record has less than 8 bytes.
func (a *Adm) Records(size int) ([][]byte, error) {
	step := 8 * int(a.AttributeOffset)
	if step == 0 && len(a.Data) == 0 {
		return nil, nil
	}
	if step < size {
		return nil, fmt.Errorf("records are %d bytes apart, but have %d", step, size)
	}
	var list [][]byte
	rest := a.Data
	for len(rest) >= size {
		list = append(list, rest[:size])
		rest = rest[min(step, len(rest)):]
	}
	if len(rest) >= 8 {
		return nil, fmt.Errorf("%w: %d bytes follow the last of %d records of %d bytes", ErrTruncated, len(rest), len(list), step)
	}
	return list, nil
}
