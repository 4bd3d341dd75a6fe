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
	RMPPHeaderSize = 12
	AdmHeaderSize  = HeaderSize + RMPPHeaderSize + 20 // up to the record
	AdmDataSize    = Size - AdmHeaderSize
)

// Adm is a MAD of subnet administration, whole: with RMPP, Data has the records
// of all segments.
type Adm struct {
	Header
	Status Status
	RMPP   RMPP
	SMKey  uint64 // 0 unless the request is to be trusted
	// AttributeOffset is the distance between records, in units of 8 bytes.
	AttributeOffset uint16
	ComponentMask   uint64 // which components of the record count
	Data            []byte
}

// Append appends the MAD, filled with zeros to Size bytes, to b.
func (a *Adm) Append(b []byte) []byte {
	from := len(b)
	b = append(b, make([]byte, max(Size, AdmHeaderSize+len(a.Data)))...)
	m := b[from:]
	a.Header.Marshal(m)
	binary.BigEndian.PutUint16(m[4:], uint16(a.Status))
	a.RMPP.Marshal(m[HeaderSize:])
	binary.BigEndian.PutUint64(m[36:], a.SMKey)
	binary.BigEndian.PutUint16(m[44:], a.AttributeOffset)
	binary.BigEndian.PutUint64(m[48:], a.ComponentMask)
	copy(m[AdmHeaderSize:], a.Data)
	return b
}

// Unmarshal reads a MAD of AdmHeaderSize bytes or more: the records of an
// answer may be fewer than fill a MAD. Data is a part of b. It returns ErrShort
// for fewer, and an error for another class. a is unchanged then.
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
	a.RMPP.Unmarshal(b[HeaderSize:])
	return nil
}

// JoinState says how a port takes part in a multicast group (IBA 15.2.5.17); it
// is a set.
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

// Selector says how a component of a record is meant (IBA 15.2.5.16).
type Selector uint8

// The selectors.
const (
	GreaterThan Selector = 0
	LessThan    Selector = 1
	Exactly     Selector = 2
	Largest     Selector = 3
)

// MCMemberRecord is attribute 0x0038 of subnet administration (IBA 15.2.5.17).
type MCMemberRecord struct {
	MGID, PortGID    netip.Addr // IPv6; the zero Addr is written as ::
	QKey             uint32
	MLID             fabric.LID
	MTUSelector      Selector
	MTU              uint8 // 6 bits: 1 to 5 for 256 to 4096 bytes
	TClass           uint8
	PKey             uint16
	RateSelector     Selector
	Rate             uint8 // 6 bits
	LifeTimeSelector Selector
	LifeTime         uint8 // 6 bits
	SL               fabric.SL
	FlowLabel        uint32 // 20 bits
	HopLimit         uint8
	Scope            uint8 // 4 bits
	JoinState        JoinState
	ProxyJoin        bool
}

// MCMemberRecordSize is the length of a MCMemberRecord in bytes. In tables it
// is filled up to a multiple of 8.
const MCMemberRecordSize = 52

// The components of a MCMemberRecord.
const (
	MCMemberMGID             uint64 = 1 << 0
	MCMemberPortGID          uint64 = 1 << 1
	MCMemberQKey             uint64 = 1 << 2
	MCMemberMLID             uint64 = 1 << 3
	MCMemberMTUSelector      uint64 = 1 << 4
	MCMemberMTU              uint64 = 1 << 5
	MCMemberTClass           uint64 = 1 << 6
	MCMemberPKey             uint64 = 1 << 7
	MCMemberRateSelector     uint64 = 1 << 8
	MCMemberRate             uint64 = 1 << 9
	MCMemberLifeTimeSelector uint64 = 1 << 10
	MCMemberLifeTime         uint64 = 1 << 11
	MCMemberSL               uint64 = 1 << 12
	MCMemberFlowLabel        uint64 = 1 << 13
	MCMemberHopLimit         uint64 = 1 << 14
	MCMemberScope            uint64 = 1 << 15
	MCMemberJoinState        uint64 = 1 << 16
	MCMemberProxyJoin        uint64 = 1 << 17
)

func putGID(b []byte, g netip.Addr) {
	var a [16]byte
	if g.IsValid() {
		a = g.As16()
	}
	copy(b[:16], a[:])
}

func gid(b []byte) netip.Addr { return netip.AddrFrom16([16]byte(b[:16])) }

// PortGID is the GID of a port in a subnet.
func PortGID(prefix uint64, port fabric.GUID) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], prefix)
	binary.BigEndian.PutUint64(b[8:], uint64(port))
	return netip.AddrFrom16(b)
}

// GIDPort is the port GUID of a port's GID.
func GIDPort(g netip.Addr) fabric.GUID {
	b := g.As16()
	return fabric.GUID(binary.BigEndian.Uint64(b[8:]))
}

// DefaultSubnetPrefix is the prefix of GIDs that a subnet has unless it is told
// another (IBA 4.1.1).
const DefaultSubnetPrefix uint64 = 0xfe80000000000000

// Append appends the record to b.
func (m *MCMemberRecord) Append(b []byte) []byte {
	from := len(b)
	b = append(b, make([]byte, MCMemberRecordSize)...)
	r := b[from:]
	putGID(r, m.MGID)
	putGID(r[16:], m.PortGID)
	binary.BigEndian.PutUint32(r[32:], m.QKey)
	binary.BigEndian.PutUint16(r[36:], uint16(m.MLID))
	r[38] = byte(m.MTUSelector)<<6 | m.MTU&63
	r[39] = m.TClass
	binary.BigEndian.PutUint16(r[40:], m.PKey)
	r[42] = byte(m.RateSelector)<<6 | m.Rate&63
	r[43] = byte(m.LifeTimeSelector)<<6 | m.LifeTime&63
	binary.BigEndian.PutUint32(r[44:], uint32(m.SL)<<28|m.FlowLabel&0xfffff<<8|uint32(m.HopLimit))
	r[48] = m.Scope<<4 | byte(m.JoinState)&15
	r[49] = bit(m.ProxyJoin, 7)
	return b
}

// Unmarshal reads a record. It returns ErrShort for fewer bytes than
// MCMemberRecordSize.
func (m *MCMemberRecord) Unmarshal(r []byte) error {
	if len(r) < MCMemberRecordSize {
		return fmt.Errorf("%w: %d bytes, a MCMemberRecord has %d", ErrShort, len(r), MCMemberRecordSize)
	}
	flow := binary.BigEndian.Uint32(r[44:])
	*m = MCMemberRecord{
		MGID: gid(r), PortGID: gid(r[16:]),
		QKey:             binary.BigEndian.Uint32(r[32:]),
		MLID:             fabric.LID(binary.BigEndian.Uint16(r[36:])),
		MTUSelector:      Selector(r[38] >> 6),
		MTU:              r[38] & 63,
		TClass:           r[39],
		PKey:             binary.BigEndian.Uint16(r[40:]),
		RateSelector:     Selector(r[42] >> 6),
		Rate:             r[42] & 63,
		LifeTimeSelector: Selector(r[43] >> 6),
		LifeTime:         r[43] & 63,
		SL:               fabric.SL(flow >> 28),
		FlowLabel:        flow >> 8 & 0xfffff,
		HopLimit:         uint8(flow),
		Scope:            r[48] >> 4,
		JoinState:        JoinState(r[48] & 15),
		// OpenSM's struct has a bit field of C here, which compilers for
		// little-endian machines put at the other end of the byte.
		ProxyJoin: r[49]&0x81 != 0,
	}
	return nil
}

// PathRecord is attribute 0x0035 of subnet administration (IBA 15.2.5.16).
type PathRecord struct {
	ServiceID        uint64
	DGID, SGID       netip.Addr // IPv6; the zero Addr is written as ::
	DLID, SLID       fabric.LID
	RawTraffic       bool
	FlowLabel        uint32 // 20 bits
	HopLimit         uint8
	TClass           uint8
	Reversible       bool
	NumPath          uint8 // 7 bits
	PKey             uint16
	QoSClass         uint16 // 12 bits
	SL               fabric.SL
	MTUSelector      Selector
	MTU              uint8 // 6 bits
	RateSelector     Selector
	Rate             uint8 // 6 bits
	LifeTimeSelector Selector
	LifeTime         uint8 // 6 bits
	Preference       uint8
}

// PathRecordSize is the length of a PathRecord in bytes.
const PathRecordSize = 64

// The components of a PathRecord.
const (
	PathServiceID        uint64 = 1<<0 | 1<<1
	PathDGID             uint64 = 1 << 2
	PathSGID             uint64 = 1 << 3
	PathDLID             uint64 = 1 << 4
	PathSLID             uint64 = 1 << 5
	PathRawTraffic       uint64 = 1 << 6
	PathFlowLabel        uint64 = 1 << 8
	PathHopLimit         uint64 = 1 << 9
	PathTClass           uint64 = 1 << 10
	PathReversible       uint64 = 1 << 11
	PathNumPath          uint64 = 1 << 12
	PathPKey             uint64 = 1 << 13
	PathQoSClass         uint64 = 1 << 14
	PathSL               uint64 = 1 << 15
	PathMTUSelector      uint64 = 1 << 16
	PathMTU              uint64 = 1 << 17
	PathRateSelector     uint64 = 1 << 18
	PathRate             uint64 = 1 << 19
	PathLifeTimeSelector uint64 = 1 << 20
	PathLifeTime         uint64 = 1 << 21
)

// Append appends the record to b.
func (p *PathRecord) Append(b []byte) []byte {
	from := len(b)
	b = append(b, make([]byte, PathRecordSize)...)
	r := b[from:]
	binary.BigEndian.PutUint64(r, p.ServiceID)
	putGID(r[8:], p.DGID)
	putGID(r[24:], p.SGID)
	binary.BigEndian.PutUint16(r[40:], uint16(p.DLID))
	binary.BigEndian.PutUint16(r[42:], uint16(p.SLID))
	binary.BigEndian.PutUint32(r[44:], uint32(bit(p.RawTraffic, 7))<<24|p.FlowLabel&0xfffff<<8|uint32(p.HopLimit))
	r[48] = p.TClass
	r[49] = bit(p.Reversible, 7) | p.NumPath&0x7f
	binary.BigEndian.PutUint16(r[50:], p.PKey)
	binary.BigEndian.PutUint16(r[52:], p.QoSClass<<4|uint16(p.SL)&15)
	r[54] = byte(p.MTUSelector)<<6 | p.MTU&63
	r[55] = byte(p.RateSelector)<<6 | p.Rate&63
	r[56] = byte(p.LifeTimeSelector)<<6 | p.LifeTime&63
	r[57] = p.Preference
	return b
}

// Unmarshal reads a record. It returns ErrShort for fewer bytes than
// PathRecordSize.
func (p *PathRecord) Unmarshal(r []byte) error {
	if len(r) < PathRecordSize {
		return fmt.Errorf("%w: %d bytes, a PathRecord has %d", ErrShort, len(r), PathRecordSize)
	}
	flow := binary.BigEndian.Uint32(r[44:])
	qos := binary.BigEndian.Uint16(r[52:])
	*p = PathRecord{
		ServiceID: binary.BigEndian.Uint64(r),
		DGID:      gid(r[8:]), SGID: gid(r[24:]),
		DLID:             fabric.LID(binary.BigEndian.Uint16(r[40:])),
		SLID:             fabric.LID(binary.BigEndian.Uint16(r[42:])),
		RawTraffic:       flow>>31 != 0,
		FlowLabel:        flow >> 8 & 0xfffff,
		HopLimit:         uint8(flow),
		TClass:           r[48],
		Reversible:       r[49]&0x80 != 0,
		NumPath:          r[49] & 0x7f,
		PKey:             binary.BigEndian.Uint16(r[50:]),
		QoSClass:         qos >> 4,
		SL:               fabric.SL(qos & 15),
		MTUSelector:      Selector(r[54] >> 6),
		MTU:              r[54] & 63,
		RateSelector:     Selector(r[55] >> 6),
		Rate:             r[55] & 63,
		LifeTimeSelector: Selector(r[56] >> 6),
		LifeTime:         r[56] & 63,
		Preference:       r[57],
	}
	return nil
}

// NodeRecord is attribute 0x0011 of subnet administration (IBA 15.2.5.2).
type NodeRecord struct {
	LID         fabric.LID
	Info        NodeInfo
	Description NodeDescription
}

// NodeRecordSize is the length of a NodeRecord in bytes: its NodeInfo has only
// the 40 bytes that are in use.
const NodeRecordSize = 4 + 40 + DataSize

// The components of a NodeRecord in use here.
const (
	NodeRecordLID      uint64 = 1 << 0
	NodeRecordType     uint64 = 1 << 4
	NodeRecordNodeGUID uint64 = 1 << 7
	NodeRecordPortGUID uint64 = 1 << 8
)

// Append appends the record to b.
func (n *NodeRecord) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(n.LID))
	b = append(b, 0, 0)
	var d Data
	n.Info.Marshal(&d)
	b = append(b, d[:40]...)
	n.Description.Marshal(&d)
	return append(b, d[:]...)
}

// Unmarshal reads a record. It returns ErrShort for fewer bytes than
// NodeRecordSize.
func (n *NodeRecord) Unmarshal(r []byte) error {
	if len(r) < NodeRecordSize {
		return fmt.Errorf("%w: %d bytes, a NodeRecord has %d", ErrShort, len(r), NodeRecordSize)
	}
	n.LID = fabric.LID(binary.BigEndian.Uint16(r))
	var d Data
	copy(d[:40], r[4:])
	n.Info.Unmarshal(&d)
	copy(d[:], r[44:])
	n.Description.Unmarshal(&d)
	return nil
}

// ErrTruncated says that an answer does not end with a whole record.
// libumad2sim.so cuts what OpenSM answers on ibsim off at 256 bytes, which are
// three MCMemberRecords: ask for less at a time there.
var ErrTruncated = errors.New("the answer was cut off")

// Records cuts the Data of an answer into its records, of size bytes each, by
// AttributeOffset. Errors: an offset less than a record, and ErrTruncated for a
// rest that is not one. What follows the last record as padding is less than 8
// bytes.
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
