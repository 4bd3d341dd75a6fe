package mad

import (
	"bytes"
	"encoding/binary"

	"github.com/ibweave/ibweave/fabric"
)

// Data is the attribute in a SMP.
type Data = [DataSize]byte

// Of decodes an attribute into a T.
func Of[T any, P interface {
	*T
	Unmarshal(b *Data)
}](b *Data) (t T) {
	P(&t).Unmarshal(b)
	return t
}

// NodeInfo has the fields in use here of attribute 0x0011 (IBA 14.2.5.3).
type NodeInfo struct {
	Type       fabric.NodeType
	NumPorts   uint8 // external ports
	SystemGUID fabric.GUID
	GUID       fabric.GUID
	PortGUID   fabric.GUID
	PKeys      uint16 // entries of a P_Key table (PartitionCap)
	DeviceID   uint16
	LocalPort  fabric.PortNum // the port where the SMP arrived
	VendorID   uint32         // 24 bits
}

// Unmarshal reads the attribute.
func (n *NodeInfo) Unmarshal(b *Data) {
	*n = NodeInfo{
		Type:       fabric.NodeType(b[2]),
		NumPorts:   b[3],
		SystemGUID: fabric.GUID(binary.BigEndian.Uint64(b[4:])),
		GUID:       fabric.GUID(binary.BigEndian.Uint64(b[12:])),
		PortGUID:   fabric.GUID(binary.BigEndian.Uint64(b[20:])),
		PKeys:      binary.BigEndian.Uint16(b[28:]),
		DeviceID:   binary.BigEndian.Uint16(b[30:]),
		LocalPort:  fabric.PortNum(b[36]),
		VendorID:   binary.BigEndian.Uint32(b[36:]) & 0xffffff,
	}
}

// NodeDescription is attribute 0x0010 (IBA 14.2.5.2): text of at most DataSize
// bytes, which ends at the first zero.
type NodeDescription string

// Unmarshal reads the attribute.
func (d *NodeDescription) Unmarshal(b *Data) {
	text, _, _ := bytes.Cut(b[:], []byte{0})
	*d = NodeDescription(text)
}

// SwitchInfo has the fields in use here of attribute 0x0012 (IBA 14.2.5.4).
type SwitchInfo struct {
	MulticastFDBCap uint16 // entries
	LinearFDBTop    fabric.LID
	EnhancedPort0   bool
	MulticastFDBTop fabric.LID // 0 if the switch does not keep it
	OptimizedSL2VL  bool       // one request writes an output port's maps from all input ports
}

// Unmarshal reads the attribute.
func (s *SwitchInfo) Unmarshal(b *Data) {
	*s = SwitchInfo{
		MulticastFDBCap: binary.BigEndian.Uint16(b[4:]),
		LinearFDBTop:    fabric.LID(binary.BigEndian.Uint16(b[6:])),
		EnhancedPort0:   b[16]&0x08 != 0,
		MulticastFDBTop: fabric.LID(binary.BigEndian.Uint16(b[18:])),
		OptimizedSL2VL:  b[11]&0x01 != 0,
	}
}

// PhysicalLinkUp is the physical state of a port with a link.
const PhysicalLinkUp = 5

// The bits of PortInfo.CapabilityMask in use here.
const (
	IsExtendedSpeeds  uint32 = 1 << 14
	IsMulticastFDBTop uint32 = 1 << 30 // of port 0: the switch has SwitchInfo.MulticastFDBTop
)

// PortInfo has the fields in use here of attribute 0x0015 (IBA 14.2.5.6).
type PortInfo struct {
	SubnetPrefix       uint64
	LID                fabric.LID
	MasterSMLID        fabric.LID
	CapabilityMask     uint32
	LinkWidthActive    uint8 // see linkWidths
	PhysicalState      uint8 // 4 bits
	LMC                uint8 // 3 bits
	LinkSpeedActive    uint8 // 4 bits, see linkSpeeds
	MasterSMSL         fabric.SL
	LinkSpeedExtActive uint8 // 4 bits, see extendedSpeeds
}

// Unmarshal reads the attribute.
func (p *PortInfo) Unmarshal(b *Data) {
	*p = PortInfo{
		SubnetPrefix:       binary.BigEndian.Uint64(b[8:]),
		LID:                fabric.LID(binary.BigEndian.Uint16(b[16:])),
		MasterSMLID:        fabric.LID(binary.BigEndian.Uint16(b[18:])),
		CapabilityMask:     binary.BigEndian.Uint32(b[20:]),
		LinkWidthActive:    b[31],
		PhysicalState:      b[33] >> 4,
		LMC:                b[34] & 7,
		LinkSpeedActive:    b[35] >> 4,
		MasterSMSL:         fabric.SL(b[36] & 15),
		LinkSpeedExtActive: b[62] >> 4,
	}
}

// The meaning of the fields of an active link.
var (
	linkWidths     = map[uint8]uint8{1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
	linkSpeeds     = map[uint8]fabric.Speed{1: fabric.SDR, 2: fabric.DDR, 4: fabric.QDR}
	extendedSpeeds = map[uint8]fabric.Speed{1: fabric.FDR, 2: fabric.EDR, 4: fabric.HDR, 8: fabric.NDR}
)

// Link returns the width and speed that the port has negotiated. extended
// is true if its node has extended speeds, by the CapabilityMask of the
// port, or of port 0 of a switch. FDR10 is returned as QDR.
func (p *PortInfo) Link(extended bool) fabric.Link {
	l := fabric.Link{Width: linkWidths[p.LinkWidthActive], Speed: linkSpeeds[p.LinkSpeedActive]}
	if speed, ok := extendedSpeeds[p.LinkSpeedExtActive]; ok && extended {
		l.Speed = speed
	}
	return l
}

// PKeyBlock is the number of entries in one PKeyTable attribute.
const PKeyBlock = 32

// PKeyTable is attribute 0x0016 (IBA 14.2.5.7): a block of entries. The modifier is
// the number of the block; for a switch, its upper 16 bits are the number of the port.
type PKeyTable [PKeyBlock]fabric.PKey

// Unmarshal reads the attribute.
func (t *PKeyTable) Unmarshal(b *Data) {
	for i := range t {
		t[i] = fabric.PKey(binary.BigEndian.Uint16(b[2*i:]))
	}
}

// SLtoVL is attribute 0x0017 (IBA 14.2.5.8), the VL by SL.
type SLtoVL [16]fabric.VL

// SLtoVLModifier selects the map of a switch for packets
// from one port to another. A CA or router needs 0.
func SLtoVLModifier(in, out fabric.PortNum) uint32 { return uint32(in)<<8 | uint32(out) }

// Unmarshal reads the attribute.
func (m *SLtoVL) Unmarshal(b *Data) {
	for i := range 8 {
		m[2*i], m[2*i+1] = fabric.VL(b[i]>>4), fabric.VL(b[i]&15)
	}
}

// LinearForwardingTable is attribute 0x0019 (IBA 14.2.5.10): a
// block of 64 entries. The modifier is the number of the block.
type LinearForwardingTable [64]fabric.PortNum

// Unmarshal reads the attribute.
func (t *LinearForwardingTable) Unmarshal(b *Data) {
	for i := range t {
		t[i] = fabric.PortNum(b[i])
	}
}

// MLIDBlock is the number of MLIDs in one MulticastForwardingTable attribute.
const MLIDBlock = 32

// PortsPerMask is the number of ports in a mask of that attribute.
const PortsPerMask = 16

// MulticastForwardingTable is attribute 0x001b (IBA 14.2.5.12): the masks
// of a block of 32 MLIDs for 16 ports: bit i is port 16*position+i.
type MulticastForwardingTable [MLIDBlock]uint16

// MulticastModifier selects a block: MLIDs from
// 0xC000+32*block on, ports from 16*position on.
func MulticastModifier(block, position int) uint32 {
	return uint32(position)<<28 | uint32(block)&0x1ff
}

// Unmarshal reads the attribute.
func (t *MulticastForwardingTable) Unmarshal(b *Data) {
	for i := range t {
		t[i] = binary.BigEndian.Uint16(b[2*i:])
	}
}

// HasFDR10 returns true if a link has FDR10 by Mellanox's attribute 0xff90, the only
// one that tells FDR10 from QDR (ib_mlnx_ext_port_info_t in OpenSM's ib_types.h).
func HasFDR10(b *Data) bool { return b[15]&1 != 0 }
