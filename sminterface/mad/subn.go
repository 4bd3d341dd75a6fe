package mad

import (
	"bytes"
	"encoding/binary"

	"github.com/ibweave/ibweave/fabric"
)

// Data is the attribute of a SMP.
type Data = [DataSize]byte

// NodeInfo is attribute 0x0011 (IBA 14.2.5.3).
type NodeInfo struct {
	BaseVersion  uint8
	ClassVersion uint8
	Type         fabric.NodeType
	NumPorts     uint8 // external ports
	SystemGUID   fabric.GUID
	GUID         fabric.GUID
	PortGUID     fabric.GUID
	PartitionCap uint16 // P_Keys of a CA or router port, or of port 0 of a switch
	DeviceID     uint16
	Revision     uint32
	LocalPort    fabric.PortNum // that the SMP came in by
	VendorID     uint32         // 24 bits
}

// Marshal writes the attribute.
func (n *NodeInfo) Marshal(b *Data) {
	*b = Data{n.BaseVersion, n.ClassVersion, byte(n.Type), n.NumPorts}
	binary.BigEndian.PutUint64(b[4:], uint64(n.SystemGUID))
	binary.BigEndian.PutUint64(b[12:], uint64(n.GUID))
	binary.BigEndian.PutUint64(b[20:], uint64(n.PortGUID))
	binary.BigEndian.PutUint16(b[28:], n.PartitionCap)
	binary.BigEndian.PutUint16(b[30:], n.DeviceID)
	binary.BigEndian.PutUint32(b[32:], n.Revision)
	binary.BigEndian.PutUint32(b[36:], n.VendorID&0xffffff|uint32(n.LocalPort)<<24)
}

// Unmarshal reads the attribute.
func (n *NodeInfo) Unmarshal(b *Data) {
	last := binary.BigEndian.Uint32(b[36:])
	*n = NodeInfo{
		BaseVersion: b[0], ClassVersion: b[1], Type: fabric.NodeType(b[2]), NumPorts: b[3],
		SystemGUID:   fabric.GUID(binary.BigEndian.Uint64(b[4:])),
		GUID:         fabric.GUID(binary.BigEndian.Uint64(b[12:])),
		PortGUID:     fabric.GUID(binary.BigEndian.Uint64(b[20:])),
		PartitionCap: binary.BigEndian.Uint16(b[28:]),
		DeviceID:     binary.BigEndian.Uint16(b[30:]),
		Revision:     binary.BigEndian.Uint32(b[32:]),
		LocalPort:    fabric.PortNum(last >> 24),
		VendorID:     last & 0xffffff,
	}
}

// NodeDescription is attribute 0x0010 (IBA 14.2.5.2): text of at most DataSize
// bytes, which ends at the first zero.
type NodeDescription string

// Marshal writes the attribute; what is too long is cut.
func (d NodeDescription) Marshal(b *Data) {
	*b = Data{}
	copy(b[:], d)
}

// Unmarshal reads the attribute.
func (d *NodeDescription) Unmarshal(b *Data) {
	text, _, _ := bytes.Cut(b[:], []byte{0})
	*d = NodeDescription(text)
}

// SwitchInfo is attribute 0x0012 (IBA 14.2.5.4).
type SwitchInfo struct {
	LinearFDBCap, RandomFDBCap, MulticastFDBCap uint16 // entries
	LinearFDBTop                                fabric.LID
	DefaultPort                                 fabric.PortNum
	DefaultMulticastPrimaryPort                 fabric.PortNum
	DefaultMulticastNotPrimaryPort              fabric.PortNum
	LifeTimeValue                               uint8 // 5 bits
	PortStateChange                             bool
	OptimizedSLtoVLMapping                      uint8 // 2 bits
	LIDsPerPort                                 uint16
	PartitionEnforcementCap                     uint16
	InboundEnforcement, OutboundEnforcement     bool
	FilterRawInbound, FilterRawOutbound         bool
	EnhancedPort0                               bool
	MulticastFDBTop                             fabric.LID // 0 when the switch does not know it
}

func bit(b bool, n uint) uint8 {
	if b {
		return 1 << n
	}
	return 0
}

// Marshal writes the attribute.
func (s *SwitchInfo) Marshal(b *Data) {
	*b = Data{}
	binary.BigEndian.PutUint16(b[0:], s.LinearFDBCap)
	binary.BigEndian.PutUint16(b[2:], s.RandomFDBCap)
	binary.BigEndian.PutUint16(b[4:], s.MulticastFDBCap)
	binary.BigEndian.PutUint16(b[6:], uint16(s.LinearFDBTop))
	b[8], b[9], b[10] = byte(s.DefaultPort), byte(s.DefaultMulticastPrimaryPort), byte(s.DefaultMulticastNotPrimaryPort)
	b[11] = s.LifeTimeValue<<3 | bit(s.PortStateChange, 2) | s.OptimizedSLtoVLMapping&3
	binary.BigEndian.PutUint16(b[12:], s.LIDsPerPort)
	binary.BigEndian.PutUint16(b[14:], s.PartitionEnforcementCap)
	b[16] = bit(s.InboundEnforcement, 7) | bit(s.OutboundEnforcement, 6) |
		bit(s.FilterRawInbound, 5) | bit(s.FilterRawOutbound, 4) | bit(s.EnhancedPort0, 3)
	binary.BigEndian.PutUint16(b[18:], uint16(s.MulticastFDBTop))
}

// Unmarshal reads the attribute.
func (s *SwitchInfo) Unmarshal(b *Data) {
	*s = SwitchInfo{
		LinearFDBCap:                   binary.BigEndian.Uint16(b[0:]),
		RandomFDBCap:                   binary.BigEndian.Uint16(b[2:]),
		MulticastFDBCap:                binary.BigEndian.Uint16(b[4:]),
		LinearFDBTop:                   fabric.LID(binary.BigEndian.Uint16(b[6:])),
		DefaultPort:                    fabric.PortNum(b[8]),
		DefaultMulticastPrimaryPort:    fabric.PortNum(b[9]),
		DefaultMulticastNotPrimaryPort: fabric.PortNum(b[10]),
		LifeTimeValue:                  b[11] >> 3,
		PortStateChange:                b[11]&4 != 0,
		OptimizedSLtoVLMapping:         b[11] & 3,
		LIDsPerPort:                    binary.BigEndian.Uint16(b[12:]),
		PartitionEnforcementCap:        binary.BigEndian.Uint16(b[14:]),
		InboundEnforcement:             b[16]&0x80 != 0,
		OutboundEnforcement:            b[16]&0x40 != 0,
		FilterRawInbound:               b[16]&0x20 != 0,
		FilterRawOutbound:              b[16]&0x10 != 0,
		EnhancedPort0:                  b[16]&0x08 != 0,
		MulticastFDBTop:                fabric.LID(binary.BigEndian.Uint16(b[18:])),
	}
}

// PortState is the logical state of a port (IBA 14.2.5.6).
type PortState uint8

// The states of a port.
const (
	PortDown   PortState = 1
	PortInit   PortState = 2
	PortArmed  PortState = 3
	PortActive PortState = 4
)

// PhysicalLinkUp is the physical state of a port with a link.
const PhysicalLinkUp = 5

// The bits of PortInfo.CapabilityMask in use here.
const (
	IsSM             uint32 = 1 << 1
	IsExtendedSpeeds uint32 = 1 << 14
)

// PortInfo is attribute 0x0015 (IBA 14.2.5.6).
type PortInfo struct {
	MKey                      uint64
	SubnetPrefix              uint64
	LID                       fabric.LID
	MasterSMLID               fabric.LID
	CapabilityMask            uint32
	DiagCode                  uint16
	MKeyLeasePeriod           uint16
	LocalPort                 fabric.PortNum
	LinkWidthEnabled          uint8
	LinkWidthSupported        uint8
	LinkWidthActive           uint8 // 1, 2, 4, 8, 16: 1x, 4x, 8x, 12x, 2x
	LinkSpeedSupported        uint8 // 4 bits
	State                     PortState
	PhysicalState             uint8 // 4 bits
	LinkDownDefaultState      uint8 // 4 bits
	MKeyProtectBits           uint8 // 2 bits
	LMC                       uint8 // 3 bits
	LinkSpeedActive           uint8 // 4 bits: 1, 2, 4: SDR, DDR, QDR
	LinkSpeedEnabled          uint8 // 4 bits
	NeighborMTU               uint8 // 4 bits: 1 to 5 for 256 to 4096 bytes
	MasterSMSL                fabric.SL
	VLCap                     uint8 // 4 bits: 1 to 5 for 1, 2, 4, 8, 15 data VLs
	InitType                  uint8 // 4 bits
	VLHighLimit               uint8
	VLArbitrationHighCap      uint8
	VLArbitrationLowCap       uint8
	InitTypeReply             uint8 // 4 bits
	MTUCap                    uint8 // 4 bits
	VLStallCount              uint8 // 3 bits
	HOQLife                   uint8 // 5 bits
	OperationalVLs            uint8 // 4 bits, as VLCap
	PartitionEnforcementIn    bool
	PartitionEnforcementOut   bool
	FilterRawIn, FilterRawOut bool
	MKeyViolations            uint16
	PKeyViolations            uint16
	QKeyViolations            uint16
	GUIDCap                   uint8
	ClientReregister          bool
	MulticastPKeyTrapSuppress uint8 // 2 bits
	SubnetTimeout             uint8 // 5 bits
	RespTimeValue             uint8 // 5 bits
	LocalPhyErrors            uint8 // 4 bits
	OverrunErrors             uint8 // 4 bits
	MaxCreditHint             uint16
	LinkRoundTripLatency      uint32 // 24 bits
	CapabilityMask2           uint16
	LinkSpeedExtActive        uint8 // 4 bits: 1, 2, 4, 8: FDR, EDR, HDR, NDR
	LinkSpeedExtSupported     uint8 // 4 bits
	LinkSpeedExtEnabled       uint8 // 5 bits
}

// Marshal writes the attribute.
func (p *PortInfo) Marshal(b *Data) {
	*b = Data{}
	binary.BigEndian.PutUint64(b[0:], p.MKey)
	binary.BigEndian.PutUint64(b[8:], p.SubnetPrefix)
	binary.BigEndian.PutUint16(b[16:], uint16(p.LID))
	binary.BigEndian.PutUint16(b[18:], uint16(p.MasterSMLID))
	binary.BigEndian.PutUint32(b[20:], p.CapabilityMask)
	binary.BigEndian.PutUint16(b[24:], p.DiagCode)
	binary.BigEndian.PutUint16(b[26:], p.MKeyLeasePeriod)
	b[28] = byte(p.LocalPort)
	b[29], b[30], b[31] = p.LinkWidthEnabled, p.LinkWidthSupported, p.LinkWidthActive
	b[32] = p.LinkSpeedSupported<<4 | byte(p.State)&15
	b[33] = p.PhysicalState<<4 | p.LinkDownDefaultState&15
	b[34] = p.MKeyProtectBits<<6 | p.LMC&7
	b[35] = p.LinkSpeedActive<<4 | p.LinkSpeedEnabled&15
	b[36] = p.NeighborMTU<<4 | byte(p.MasterSMSL)&15
	b[37] = p.VLCap<<4 | p.InitType&15
	b[38], b[39], b[40] = p.VLHighLimit, p.VLArbitrationHighCap, p.VLArbitrationLowCap
	b[41] = p.InitTypeReply<<4 | p.MTUCap&15
	b[42] = p.VLStallCount<<5 | p.HOQLife&31
	b[43] = p.OperationalVLs<<4 | bit(p.PartitionEnforcementIn, 3) | bit(p.PartitionEnforcementOut, 2) |
		bit(p.FilterRawIn, 1) | bit(p.FilterRawOut, 0)
	binary.BigEndian.PutUint16(b[44:], p.MKeyViolations)
	binary.BigEndian.PutUint16(b[46:], p.PKeyViolations)
	binary.BigEndian.PutUint16(b[48:], p.QKeyViolations)
	b[50] = p.GUIDCap
	b[51] = bit(p.ClientReregister, 7) | p.MulticastPKeyTrapSuppress&3<<5 | p.SubnetTimeout&31
	b[52] = p.RespTimeValue & 31
	b[53] = p.LocalPhyErrors<<4 | p.OverrunErrors&15
	binary.BigEndian.PutUint16(b[54:], p.MaxCreditHint)
	binary.BigEndian.PutUint32(b[56:], p.LinkRoundTripLatency&0xffffff)
	binary.BigEndian.PutUint16(b[60:], p.CapabilityMask2)
	b[62] = p.LinkSpeedExtActive<<4 | p.LinkSpeedExtSupported&15
	b[63] = p.LinkSpeedExtEnabled & 31
}

// Unmarshal reads the attribute.
func (p *PortInfo) Unmarshal(b *Data) {
	*p = PortInfo{
		MKey:                      binary.BigEndian.Uint64(b[0:]),
		SubnetPrefix:              binary.BigEndian.Uint64(b[8:]),
		LID:                       fabric.LID(binary.BigEndian.Uint16(b[16:])),
		MasterSMLID:               fabric.LID(binary.BigEndian.Uint16(b[18:])),
		CapabilityMask:            binary.BigEndian.Uint32(b[20:]),
		DiagCode:                  binary.BigEndian.Uint16(b[24:]),
		MKeyLeasePeriod:           binary.BigEndian.Uint16(b[26:]),
		LocalPort:                 fabric.PortNum(b[28]),
		LinkWidthEnabled:          b[29],
		LinkWidthSupported:        b[30],
		LinkWidthActive:           b[31],
		LinkSpeedSupported:        b[32] >> 4,
		State:                     PortState(b[32] & 15),
		PhysicalState:             b[33] >> 4,
		LinkDownDefaultState:      b[33] & 15,
		MKeyProtectBits:           b[34] >> 6,
		LMC:                       b[34] & 7,
		LinkSpeedActive:           b[35] >> 4,
		LinkSpeedEnabled:          b[35] & 15,
		NeighborMTU:               b[36] >> 4,
		MasterSMSL:                fabric.SL(b[36] & 15),
		VLCap:                     b[37] >> 4,
		InitType:                  b[37] & 15,
		VLHighLimit:               b[38],
		VLArbitrationHighCap:      b[39],
		VLArbitrationLowCap:       b[40],
		InitTypeReply:             b[41] >> 4,
		MTUCap:                    b[41] & 15,
		VLStallCount:              b[42] >> 5,
		HOQLife:                   b[42] & 31,
		OperationalVLs:            b[43] >> 4,
		PartitionEnforcementIn:    b[43]&8 != 0,
		PartitionEnforcementOut:   b[43]&4 != 0,
		FilterRawIn:               b[43]&2 != 0,
		FilterRawOut:              b[43]&1 != 0,
		MKeyViolations:            binary.BigEndian.Uint16(b[44:]),
		PKeyViolations:            binary.BigEndian.Uint16(b[46:]),
		QKeyViolations:            binary.BigEndian.Uint16(b[48:]),
		GUIDCap:                   b[50],
		ClientReregister:          b[51]&0x80 != 0,
		MulticastPKeyTrapSuppress: b[51] >> 5 & 3,
		SubnetTimeout:             b[51] & 31,
		RespTimeValue:             b[52] & 31,
		LocalPhyErrors:            b[53] >> 4,
		OverrunErrors:             b[53] & 15,
		MaxCreditHint:             binary.BigEndian.Uint16(b[54:]),
		LinkRoundTripLatency:      binary.BigEndian.Uint32(b[56:]) & 0xffffff,
		CapabilityMask2:           binary.BigEndian.Uint16(b[60:]),
		LinkSpeedExtActive:        b[62] >> 4,
		LinkSpeedExtSupported:     b[62] & 15,
		LinkSpeedExtEnabled:       b[63] & 31,
	}
}

// Link is the width and speed that the port has negotiated. extended says
// whether its node knows extended speeds: for a port of a switch, the
// CapabilityMask of port 0 says so. FDR10 shows as QDR here.
func (p *PortInfo) Link(extended bool) fabric.Link {
	var l fabric.Link
	switch p.LinkWidthActive {
	case 1:
		l.Width = 1
	case 2:
		l.Width = 4
	case 4:
		l.Width = 8
	case 8:
		l.Width = 12
	case 16:
		l.Width = 2
	}
	switch p.LinkSpeedActive {
	case 1:
		l.Speed = fabric.SDR
	case 2:
		l.Speed = fabric.DDR
	case 4:
		l.Speed = fabric.QDR
	}
	if extended {
		switch p.LinkSpeedExtActive {
		case 1:
			l.Speed = fabric.FDR
		case 2:
			l.Speed = fabric.EDR
		case 4:
			l.Speed = fabric.HDR
		case 8:
			l.Speed = fabric.NDR
		}
	}
	return l
}

// GUIDInfo is attribute 0x0014 (IBA 14.2.5.5): a block of eight GUIDs, the
// number of the block being the modifier.
type GUIDInfo [8]fabric.GUID

// Marshal writes the attribute.
func (g *GUIDInfo) Marshal(b *Data) {
	for i, v := range g {
		binary.BigEndian.PutUint64(b[8*i:], uint64(v))
	}
}

// Unmarshal reads the attribute.
func (g *GUIDInfo) Unmarshal(b *Data) {
	for i := range g {
		g[i] = fabric.GUID(binary.BigEndian.Uint64(b[8*i:]))
	}
}

// PKeyTable is attribute 0x0016 (IBA 14.2.5.7): a block of 32 P_Keys. The
// highest bit of a P_Key is full membership. The modifier has the port in its
// upper half and the block in its lower one.
type PKeyTable [32]uint16

// Marshal writes the attribute.
func (t *PKeyTable) Marshal(b *Data) {
	for i, v := range t {
		binary.BigEndian.PutUint16(b[2*i:], v)
	}
}

// Unmarshal reads the attribute.
func (t *PKeyTable) Unmarshal(b *Data) {
	for i := range t {
		t[i] = binary.BigEndian.Uint16(b[2*i:])
	}
}

// SLtoVL is attribute 0x0017 (IBA 14.2.5.8), the VL by SL.
type SLtoVL [16]fabric.VL

// SLtoVLModifier names the map of a switch for packets that come in by one port
// and leave by another. A CA or router wants 0.
func SLtoVLModifier(in, out fabric.PortNum) uint32 { return uint32(in)<<8 | uint32(out) }

// Marshal writes the attribute.
func (m *SLtoVL) Marshal(b *Data) {
	*b = Data{}
	for i := range 8 {
		b[i] = byte(m[2*i])<<4 | byte(m[2*i+1])&15
	}
}

// Unmarshal reads the attribute.
func (m *SLtoVL) Unmarshal(b *Data) {
	for i := range 8 {
		m[2*i], m[2*i+1] = fabric.VL(b[i]>>4), fabric.VL(b[i]&15)
	}
}

// VLWeight is an entry of a VL arbitration table.
type VLWeight struct {
	VL     fabric.VL // 4 bits
	Weight uint8     // units of 64 bytes; 0 skips the entry
}

// VLArbitration is attribute 0x0018 (IBA 14.2.5.9): a block of 32 entries.
type VLArbitration [32]VLWeight

// The blocks of the VL arbitration tables.
const (
	VLArbitrationLow0  = 1
	VLArbitrationLow1  = 2
	VLArbitrationHigh0 = 3
	VLArbitrationHigh1 = 4
)

// VLArbitrationModifier names a block of the table of a port, which is the way
// out of a switch and 0 for a CA or router.
func VLArbitrationModifier(block int, port fabric.PortNum) uint32 {
	return uint32(block)<<16 | uint32(port)
}

// Marshal writes the attribute.
func (t *VLArbitration) Marshal(b *Data) {
	for i, e := range t {
		b[2*i], b[2*i+1] = byte(e.VL)&15, e.Weight
	}
}

// Unmarshal reads the attribute.
func (t *VLArbitration) Unmarshal(b *Data) {
	for i := range t {
		t[i] = VLWeight{fabric.VL(b[2*i] & 15), b[2*i+1]}
	}
}

// LinearForwardingTable is attribute 0x0019 (IBA 14.2.5.10): a block of 64
// entries, the number of the block being the modifier.
type LinearForwardingTable [64]fabric.PortNum

// Marshal writes the attribute.
func (t *LinearForwardingTable) Marshal(b *Data) {
	for i, p := range t {
		b[i] = byte(p)
	}
}

// Unmarshal reads the attribute.
func (t *LinearForwardingTable) Unmarshal(b *Data) {
	for i := range t {
		t[i] = fabric.PortNum(b[i])
	}
}

// MLIDBlock is how many MLIDs one MulticastForwardingTable attribute has.
const MLIDBlock = 32

// PortsPerMask is how many ports a mask of one has.
const PortsPerMask = 16

// MulticastForwardingTable is attribute 0x001b (IBA 14.2.5.12): the masks of a
// block of 32 MLIDs for 16 ports, bit i being port 16*position+i.
type MulticastForwardingTable [MLIDBlock]uint16

// MulticastModifier names a block: MLIDs from 0xC000+32*block on, ports from
// 16*position on.
func MulticastModifier(block, position int) uint32 {
	return uint32(position)<<28 | uint32(block)&0x1ff
}

// Marshal writes the attribute.
func (t *MulticastForwardingTable) Marshal(b *Data) {
	for i, v := range t {
		binary.BigEndian.PutUint16(b[2*i:], v)
	}
}

// Unmarshal reads the attribute.
func (t *MulticastForwardingTable) Unmarshal(b *Data) {
	for i := range t {
		t[i] = binary.BigEndian.Uint16(b[2*i:])
	}
}

// MellanoxExtendedPortInfo is Mellanox's attribute 0xff90, which alone tells
// FDR10 from QDR (ib_mlnx_ext_port_info_t in OpenSM's ib_types.h).
type MellanoxExtendedPortInfo struct {
	StateChangeEnable  uint8
	LinkSpeedSupported uint8
	LinkSpeedEnabled   uint8
	LinkSpeedActive    uint8 // 1 is FDR10
}

// Marshal writes the attribute.
func (p *MellanoxExtendedPortInfo) Marshal(b *Data) {
	*b = Data{3: p.StateChangeEnable, 7: p.LinkSpeedSupported, 11: p.LinkSpeedEnabled, 15: p.LinkSpeedActive}
}

// Unmarshal reads the attribute.
func (p *MellanoxExtendedPortInfo) Unmarshal(b *Data) {
	*p = MellanoxExtendedPortInfo{b[3], b[7], b[11], b[15]}
}
