package fabric

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// GUID is an EUI-64: of a node, a system image or a port. The zero GUID is
// not a valid node GUID.
type GUID uint64

// MadeGUID returns a GUID for a port of which a text has only LID and number, such as that of
// iblinkinfo --switches-only. No vendor's GUID is equal: the bit for local administration is set.
func MadeGUID(lid LID, num PortNum) GUID {
	return madeGUID | GUID(lid)<<8 | GUID(num)
}

const madeGUID = 0x0269627700000000

// IsMade returns true for what MadeGUID returns.
func (g GUID) IsMade() bool { return g>>32 == madeGUID>>32 }

// ParseGUID reads 1 to 16 hexadecimal digits, with or
// without 0x in front, in either case, as ibnetdiscover
// prints them (unpadded) and OpenSM does (padded).
func ParseGUID(s string) (GUID, error) {
	digits := s
	if len(digits) > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') {
		digits = digits[2:]
	}
	v, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || len(digits) > 16 {
		return 0, fmt.Errorf("GUID %q: want 1 to 16 hexadecimal digits", s)
	}
	return GUID(v), nil
}

// String formats the GUID as OpenSM does: 0x and 16 lower-case digits.
func (g GUID) String() string { return string(g.Append(make([]byte, 0, 18))) }

// Append appends the String form to b.
func (g GUID) Append(b []byte) []byte {
	return g.AppendDigits(append(b, '0', 'x'))
}

// AppendDigits appends the 16 lower-case digits without 0x, as in the node
// ids of ibnetdiscover text.
func (g GUID) AppendDigits(b []byte) []byte {
	var bytes [8]byte
	binary.BigEndian.PutUint64(bytes[:], uint64(g))
	return hex.AppendEncode(b, bytes[:])
}

// Compare orders GUIDs as unsigned numbers.
func (g GUID) Compare(h GUID) int { return cmp.Compare(g, h) }

// MarshalText is String, so that JSON has GUIDs as strings.
func (g GUID) MarshalText() ([]byte, error) { return g.Append(nil), nil }

// UnmarshalText is ParseGUID.
func (g *GUID) UnmarshalText(text []byte) error {
	v, err := ParseGUID(string(text))
	if err != nil {
		return err
	}
	*g = v
	return nil
}

// LID is a local identifier in host byte order. 0 means unassigned; 1 to
// MaxUnicastLID are unicast; 0xC000 to 0xFFFE are multicast (IBA 4.1.3).
type LID uint16

// MaxUnicastLID is the highest LID that an end port can have.
const MaxUnicastLID LID = 0xBFFF

// MaxLMC is the largest LID mask control: an end port has 1<<LMC LIDs.
const MaxLMC = 7

// PortNum is a port number on one node. A switch numbers its external ports
// 1 to 254 and has a management port 0; a CA or router numbers its from 1.
type PortNum uint8

const (
	// ManagementPort is port 0 of a switch, which terminates traffic to the
	// switch's own LID.
	ManagementPort PortNum = 0
	// MaxPortNum is the highest number an external port can have.
	MaxPortNum PortNum = 254
	// NoPath is the forwarding entry of a LID that a switch drops
	// (OSM_NO_PATH in OpenSM).
	NoPath PortNum = 255
)

// SL is a service level, 0 to 15.
type SL uint8

// VL is a virtual lane: data VLs are 0 to 14.
type VL uint8

// NodeType tells switches, channel adapters and routers apart. Aggregation
// nodes (SHARP) are channel adapters.
type NodeType uint8

// The node types, with the values of NodeInfo.NodeType (IBA 14.2.5.3).
const (
	CA     NodeType = 1
	Switch NodeType = 2
	Router NodeType = 3
)

// String is the name that OpenSM's forwarding table dumps use.
func (t NodeType) String() string {
	switch t {
	case CA:
		return "Channel Adapter"
	case Switch:
		return "Switch"
	case Router:
		return "Router"
	}
	return "node type " + strconv.Itoa(int(t))
}

// NodeID is a dense node index: switches are [0, NumSwitches),
// then come channel adapters and routers together, each part
// in the order of GUIDs, whatever the order of the input.
type NodeID int32

// PortID is a dense index over all port slots of all nodes: node n's port p
// has index PortBase(n)+p. Slot 0 of a CA or router is never used. A PortID
// also names the directed channel that leaves the port.
type PortID int32

// NoNode and NoPort mean none.
const (
	NoNode NodeID = -1
	NoPort PortID = -1
)

// Speed is a lane's signalling rate, by its InfiniBand name.
type Speed uint8

// The speeds, slowest first.
const (
	SpeedUnknown Speed = iota
	SDR
	DDR
	QDR
	FDR10
	FDR
	EDR
	HDR
	NDR
	XDR
)

var speeds = [...]struct {
	name string
	mbps int // data rate of a lane after line coding, megabits a second
}{{"", 0}, {"SDR", 2000}, {"DDR", 4000}, {"QDR", 8000}, {"FDR10", 10000}, {"FDR", 13636},
	{"EDR", 25000}, {"HDR", 50000}, {"NDR", 100000}, {"XDR", 200000}}

// String is the name: "NDR".
func (s Speed) String() string {
	if int(s) < len(speeds) {
		return speeds[s].name
	}
	return ""
}

// ParseSpeed reads a speed's name.
func ParseSpeed(s string) (Speed, bool) {
	for i := 1; i < len(speeds); i++ {
		if speeds[i].name == s {
			return Speed(i), true
		}
	}
	return SpeedUnknown, false
}

// Link is what a port negotiated: the zero value is unknown.
type Link struct {
	Width uint8 // lanes: 1, 2, 4, 8 or 12; 0 unknown
	Speed Speed
}

// Mbps is the link's data rate in megabits a second, 0 when unknown.
func (l Link) Mbps() int {
	if int(l.Speed) >= len(speeds) {
		return 0
	}
	return int(l.Width) * speeds[l.Speed].mbps
}

// Or returns l with width and speed of m where those of l are unknown.
func (l Link) Or(m Link) Link {
	return Link{cmp.Or(l.Width, m.Width), cmp.Or(l.Speed, m.Speed)}
}

// Slower returns the slower of two links; if equally fast, the narrower; else l.
func (l Link) Slower(m Link) Link {
	if cmp.Or(cmp.Compare(m.Mbps(), l.Mbps()), cmp.Compare(m.Width, l.Width)) < 0 {
		return m
	}
	return l
}

// String is ibnetdiscover's form, "4xNDR", or "" when unknown.
func (l Link) String() string {
	if l.Width == 0 || l.Speed == SpeedUnknown {
		return ""
	}
	return strconv.Itoa(int(l.Width)) + "x" + l.Speed.String()
}

// ParseLink reads what String writes of a known rate, in upper or lower case.
func ParseLink(text string) (l Link, ok bool) {
	width, speed, _ := strings.Cut(text, "x")
	n, err := strconv.ParseUint(width, 10, 8)
	l.Width = uint8(n)
	l.Speed, ok = ParseSpeed(strings.ToUpper(speed))
	return l, ok && err == nil && slices.Contains([]uint8{1, 2, 4, 8, 12}, l.Width)
}

// ParseError is the error that every reader of ibweave returns for text that it cannot use.
type ParseError struct {
	File   string // name as given; "-" is standard input
	Line   int    // 1-based; 0 when the error belongs to no line
	Column int    // 0-based, in bytes
	Text   string // the line, without its end
	Err    error  // what is wrong, and what would have been right
}

// Error returns file:line:column, the cause, and below it the line itself, all Printable.
func (e *ParseError) Error() string {
	s := Printable(e.File)
	if e.Line > 0 {
		s += ":" + strconv.Itoa(e.Line)
		if e.Column > 0 {
			s += ":" + strconv.Itoa(e.Column)
		}
	}
	s += ": " + Printable(e.Err.Error())
	if e.Text != "" {
		text := e.Text
		if len(text) > 200 {
			text = text[:200] + "..."
		}
		s += "\n    " + Printable(text)
	}
	return s
}

// Unwrap returns the cause.
func (e *ParseError) Unwrap() error { return e.Err }

// ErrTooLarge is wrapped by errors about input beyond what InfiniBand can
// address.
var ErrTooLarge = errors.New("larger than InfiniBand can address")
