// Package mad encodes and decodes management datagrams (MADs): subnet
// management packets (SMPs), by directed route and by LID, and the requests and
// records of subnet administration (SA). It makes no promise to other modules.
//
// Offsets and bit fields are those of the InfiniBand Architecture
// Specification, volume 1: 13.4 (MAD headers), 14.2 (subnet management), 15.2
// (subnet administration). Values in structs are in host byte order. Reserved
// bits are written as 0 and ignored when read.
//
// Everything here is safe for concurrent use on different values.
package mad

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ibweave/ibweave/fabric"
)

// Size is the length of a MAD in bytes.
const Size = 256

// Class is a management class (IBA 13.4.4).
type Class uint8

// The management classes in use here.
const (
	SubnLID      Class = 0x01 // subnet management, routed by LID
	SubnDirected Class = 0x81 // subnet management, routed by ports
	SubnAdm      Class = 0x03 // subnet administration
)

var classNames = map[Class]string{SubnLID: "SubnLID", SubnDirected: "SubnDirected", SubnAdm: "SubnAdm"}

func (c Class) String() string { return nameOf(classNames, c, "class %#02x") }

// nameOf returns the name of a number, or formats it if it has none.
func nameOf[T ~uint8 | ~uint16](names map[T]string, v T, format string) string {
	if name, ok := names[v]; ok {
		return name
	}
	return fmt.Sprintf(format, uint16(v))
}

// Method is the kind of request or answer of a MAD (IBA 13.4.5, 15.2.2).
type Method uint8

// The methods in use here. Answers have the bit Response.
const (
	Get          Method = 0x01
	Set          Method = 0x02
	GetTable     Method = 0x12
	Delete       Method = 0x15
	Response     Method = 0x80
	GetResp      Method = 0x81
	GetTableResp Method = 0x92
	DeleteResp   Method = 0x95
)

var methodNames = map[Method]string{
	Get: "Get", Set: "Set", GetTable: "GetTable", Delete: "Delete",
	GetResp: "GetResp", GetTableResp: "GetTableResp", DeleteResp: "DeleteResp",
}

func (m Method) String() string { return nameOf(methodNames, m, "method %#02x") }

// Attribute is the object that a MAD reads or writes (IBA 14.2.5, 15.2.5). Numbers have different
// meanings in subnet management and in subnet administration.
type Attribute uint16

// The attributes in use here: of subnet management, then of subnet administration.
const (
	AttrNodeDescription          Attribute = 0x0010
	AttrNodeInfo                 Attribute = 0x0011
	AttrSwitchInfo               Attribute = 0x0012
	AttrPortInfo                 Attribute = 0x0015
	AttrPKeyTable                Attribute = 0x0016
	AttrSLtoVLMappingTable       Attribute = 0x0017
	AttrVLArbitrationTable       Attribute = 0x0018
	AttrLinearForwardingTable    Attribute = 0x0019
	AttrMulticastForwardingTable Attribute = 0x001b
	AttrMellanoxExtendedPortInfo Attribute = 0xff90 // Mellanox's own, for FDR10

	AttrPathRecord     Attribute = 0x0035
	AttrMCMemberRecord Attribute = 0x0038
)

var subnAttributes = map[Attribute]string{
	AttrNodeDescription: "NodeDescription", AttrNodeInfo: "NodeInfo", AttrSwitchInfo: "SwitchInfo", AttrPortInfo: "PortInfo",
	AttrPKeyTable: "P_KeyTable", AttrSLtoVLMappingTable: "SLtoVLMappingTable", AttrVLArbitrationTable: "VLArbitrationTable",
	AttrLinearForwardingTable: "LinearForwardingTable", AttrMulticastForwardingTable: "MulticastForwardingTable",
	AttrMellanoxExtendedPortInfo: "MellanoxExtendedPortInfo",
}

var admAttributes = map[Attribute]string{AttrPathRecord: "PathRecord", AttrMCMemberRecord: "MCMemberRecord"}

// Name returns the attribute's name in a class.
func (a Attribute) Name(c Class) string {
	names := subnAttributes
	if c == SubnAdm {
		names = admAttributes
	}
	return nameOf(names, a, "attribute %#04x")
}

// Status is the status field of a MAD (IBA 13.4.7): 0 means
// success. In a SMP by directed route its highest bit is
// the direction, which is not part of a Status.
type Status uint16

// The status codes of subnet administration (IBA 15.2.1.1)
// that callers check for. They are in the upper byte.
const (
	RequestInvalid      Status = 0x0200
	NoRecords           Status = 0x0300
	InsufficientRequest Status = 0x0600
)

// Busy is set if the receiver could not take a request, which should be sent again.
const Busy Status = 0x0001

var admStatus = map[Status]string{
	0x0100: "no resources", RequestInvalid: "request invalid", NoRecords: "no records",
	0x0400: "too many records", 0x0500: "invalid GID",
	InsufficientRequest: "insufficient components", 0x0700: "request denied",
	0x0800: "priority suggested",
}

var invalidFields = [8]string{1: "bad class or version", 2: "method not supported", 3: "method and attribute not supported", 7: "invalid value in an attribute or its modifier"}

func (s Status) String() string {
	text := fmt.Sprintf("status %#04x", uint16(s))
	if name, ok := admStatus[s&0xff00]; ok {
		text += ", " + name
	}
	if name := invalidFields[s>>2&7]; name != "" {
		text += ", " + name
	}
	if s&Busy != 0 {
		text += ", busy"
	}
	if s&2 != 0 {
		text += ", redirection required"
	}
	return text
}

// Header is the part that all MADs have (IBA 13.4.3), without the four
// bytes at offset 4. These have the Status, and for directed routes more.
type Header struct {
	BaseVersion   uint8
	Class         Class
	ClassVersion  uint8
	Method        Method
	TransactionID uint64
	Attribute     Attribute
	Modifier      uint32
}

// HeaderSize is the length of the common header in bytes.
const HeaderSize = 24

// ErrShort means that a MAD has fewer bytes than its class needs.
var ErrShort = errors.New("MAD too short")

// Marshal writes the header to b, which has HeaderSize bytes or more. It leaves
// bytes 4 to 7 alone.
func (h *Header) Marshal(b []byte) {
	_ = b[HeaderSize-1]
	b[0], b[1], b[2], b[3] = h.BaseVersion, byte(h.Class), h.ClassVersion, byte(h.Method)
	binary.BigEndian.PutUint64(b[8:], h.TransactionID)
	binary.BigEndian.PutUint16(b[16:], uint16(h.Attribute))
	b[18], b[19] = 0, 0
	binary.BigEndian.PutUint32(b[20:], h.Modifier)
}

// Unmarshal reads the header. It returns ErrShort for fewer than HeaderSize
// bytes.
func (h *Header) Unmarshal(b []byte) error {
	if len(b) < HeaderSize {
		return fmt.Errorf("%w: %d bytes, the header has %d", ErrShort, len(b), HeaderSize)
	}
	*h = Header{
		BaseVersion:   b[0],
		Class:         Class(b[1]),
		ClassVersion:  b[2],
		Method:        Method(b[3]),
		TransactionID: binary.BigEndian.Uint64(b[8:]),
		Attribute:     Attribute(binary.BigEndian.Uint16(b[16:])),
		Modifier:      binary.BigEndian.Uint32(b[20:]),
	}
	return nil
}

// TransactionID reads the transaction ID of a MAD of at least HeaderSize bytes.
func TransactionID(b []byte) uint64 { return binary.BigEndian.Uint64(b[8:]) }

// SetTransactionID replaces the transaction ID.
func SetTransactionID(b []byte, id uint64) { binary.BigEndian.PutUint64(b[8:], id) }

// IsResponse returns true if a MAD of at least HeaderSize bytes is an answer.
func IsResponse(b []byte) bool { return Method(b[3])&Response != 0 }

// The addresses of the management agents.
const (
	// PermissiveLID is a LID that every port accepts as its own (IBA 4.1.3).
	PermissiveLID fabric.LID = 0xFFFF
	// QP0 is for SMPs, QP1 for the other classes.
	QP0, QP1 uint32 = 0, 1
	// WellKnownQKey is the Q_Key of QP1 (IBA 10.2.5).
	WellKnownQKey uint32 = 0x80010000
)

// Packet is a MAD and the address that it goes to or comes from.
// Transports (package ibsim, package umad) send and receive it.
type Packet struct {
	LID  fabric.LID // LID of the other port
	QP   uint32     // queue pair of the other port
	QKey uint32
	SL   fabric.SL
	// Timeout is how long the transport waits for an answer before it sends
	// the MAD again, Retries times at most. With 0 it expects no answer.
	Timeout time.Duration
	Retries int
	// TimedOut is set in a received packet that is the sent MAD
	// itself, since no answer came.
	TimedOut bool
	// Data is the MAD: Size bytes, or more if several packets were joined.
	Data []byte
}

// StatusError means that the answer to a request has a bad status.
type StatusError struct {
	Class     Class
	Method    Method // of the request
	Attribute Attribute
	Modifier  uint32
	Status    Status
}

func (e *StatusError) Error() string {
	return e.Method.String() + "(" + e.Attribute.Name(e.Class) + ", " + strconv.FormatUint(uint64(e.Modifier), 10) + "): " + e.Status.String()
}
