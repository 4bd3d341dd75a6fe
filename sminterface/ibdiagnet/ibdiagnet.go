// Package ibdiagnet reads and writes db_csv, the database that ibdiagnet of MLNX_OFED and
// UFM leaves among its other files in /var/tmp/ibdiagnet2. It makes no promise to other
// modules.
//
// A database is a text of sections. Between them are blank lines and comments:
//
//	START_NODES
//	NodeDesc,NumPorts,NodeType,..
//	"leaf 1",65,2,..
//	END_NODES
//
// Columns differ from version to version, so they are found by their names in the header
// row, in upper or lower case. Numbers are decimal, or hexadecimal with 0x; N/A stands
// for a missing number. Newer versions write the place of each section into a last
// section, INDEX_TABLE, and the place of INDEX_TABLE into the first line of the file.
//
// The format was learned from files of ibdiagnet 2.6 to 2.13; there is no specification.
// The encodings of widths and speeds are those of PortInfo (IBA 14.2.5.6) and of ibdm's
// IBLinkSpeed.
//
// [Read] needs memory only for the sections that it uses: most of a large database is
// counters.
package ibdiagnet

import (
	"errors"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// Options are the settings of Read.
type Options struct {
	// Lenient leaves out what is wrong and lists it as a Problem, instead of failing.
	Lenient bool
	// Strict refuses what the tool itself never writes: a file that is cut, foreign
	// lines between sections, LIDs that no port can have. It overrides Lenient.
	Strict bool
}

// Kinds of fabric.Problem for files of ibdiagnet, in addition to those of package fabric.
const (
	// CutFile means that text is missing: a section or the file has
	// no end, or a section has fewer rows than INDEX_TABLE states.
	CutFile fabric.ProblemKind = "cut-file"
	// FilesDisagree means that two files of one run contradict each other.
	FilesDisagree fabric.ProblemKind = "files-disagree"
	// ToolWarning is a warning or an error of ibdiagnet.
	ToolWarning fabric.ProblemKind = "tool-warning"
	// SeveralMasters means that several subnet managers claim to be the master.
	SeveralMasters fabric.ProblemKind = "several-masters"
	// UnevenCable is a cable whose ends differ in data VLs in operation or in MTU.
	UnevenCable fabric.ProblemKind = "uneven-cable"
	// UnreadRows are unreadable rows of a section that the fabric
	// does not need. They are left out.
	UnreadRows fabric.ProblemKind = "unread-rows"
)

// ErrNoFabric is wrapped by errors about a database without nodes or
// cables, which ibdiagnet writes when it is told to skip its discovery.
var ErrNoFabric = errors.New("want a db_csv with sections NODES, PORTS and LINKS")

// ErrCut is wrapped, as well as ErrNoFabric, by errors
// about a database that is cut before its cables.
var ErrCut = errors.New("the file is cut short")

// Database has the contents of a db_csv. Slices are in the order of the file.
type Database struct {
	Fabric *fabric.Fabric
	// Virtual is the number of LIDs of the fabric that belong only to virtual ports.
	Virtual int
	Date    string // of the run; "" when it is not there
	// Ports is by fabric.PortID. Ports without a row have the zero value.
	Ports []Port
	// Switches is by fabric.NodeID of switches.
	Switches []Switch
	SMs      []SM
	// PKeys has the entries in use of the P_Key tables, by fabric.PortID;
	// nil for a port without rows, or if no port has rows.
	PKeys    [][]fabric.PKey
	VPorts   []VPort
	Warnings []Warning
	Problems []fabric.Problem // sorted by line

	nodeLines map[fabric.GUID]int
	portLines map[fabric.PortID]int
}

// NodeLine returns the line of a node's row in NODES, 0 if there is none.
func (d *Database) NodeLine(g fabric.GUID) int { return d.nodeLines[g] }

// PortLine returns the line of the row of a port's cable in LINKS, 0 if there is none.
func (d *Database) PortLine(p fabric.PortID) int { return d.portLines[p] }

// Port has what the fabric model lacks about a port.
type Port struct {
	State PortState // logical
	OpVLs uint8     // data VLs in operation: 1, 2, 4, 8 or 15; 0 unknown
	MTU   int       // of the neighbour (NeighborMTU), in bytes; 0 unknown
	LMC   uint8
}

// PortState is PortInfo.PortState (IBA 14.2.5.6); 0 is unknown.
type PortState uint8

// The states of ports.
const (
	Down   PortState = 1
	Init   PortState = 2
	Armed  PortState = 3
	Active PortState = 4
)

// Switch has what the fabric model lacks about a switch.
type Switch struct {
	MCastFDBCap   int // MLIDs; 0 unknown
	EnhancedPort0 bool
}

// SM is a subnet manager, of section SM_INFO.
type SM struct {
	Node, Port fabric.GUID
	PortNum    fabric.PortNum
	State      uint8 // SMInfo.SMState: 0 not active, 1 discovering, 2 standby, 3 master
}

// MasterSM is SM.State of the master.
const MasterSM = 3

// VPort is a virtual port.
type VPort struct {
	Port  fabric.PortID // the port that it is on
	Index int           // 0 is the port itself
	LID   fabric.LID    // 0 for none
}

// Warning is a row of a section WARNINGS_x or ERRORS_x: something that ibdiagnet found.
type Warning struct {
	Section string // without START_
	Line    int
	Node    fabric.GUID
	PortNum int    // 0 if the event is not about a port
	Event   string // such as PORT_HIERARCHY_MISSING
	Summary string
}

// maxQuoted bounds the text of a line that errors and problems keep, in bytes.
const maxQuoted = 256

// parseError returns an error about a line.
func parseError(file string, line int, text []byte, format string, args ...any) *fabric.ParseError {
	return &fabric.ParseError{File: file, Line: line, Text: string(text[:min(len(text), maxQuoted)]), Err: fmt.Errorf(format, args...)}
}
