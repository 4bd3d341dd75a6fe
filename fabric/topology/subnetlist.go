package topology

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
)

// This file reads opensm-subnet.lst (osm_dump.c of OpenSM) and the lst file of ibdiagnet: a
// line for each port with a cable, with the port and its neighbour. A cable is there from both
// ends or from one:
//
//	{ SW Ports:24 SystemGUID:.. NodeGUID:.. PortGUID:.. VenID:0002C9 DevID:B924 Rev:000000A1 {leaf 1} LID:0001 PN:11 } { CA .. } PHY=4x LOG=ACT SPD=10
//
// In the second record OpenSM shifts the device ID up by 16 bits. Files from years before 2006
// have no SPD; ibdiagnet may have more fields behind it.

// statedNode is a node as a record of a subnet list has it.
type statedNode struct {
	guid, system fabric.GUID
	ports        fabric.PortNum
	vendor       uint32
	device       uint16
	desc         []byte
}

// SubnetSpeeds are the values of SPD, by Speed. OpenSM 3.3.23 knows them up to 50 and prints ??
// for faster links; 100 and 200 are what ibdiagnet prints.
var SubnetSpeeds = [...]string{
	fabric.SpeedUnknown: "??", fabric.SDR: "2.5", fabric.DDR: "5", fabric.QDR: "10", fabric.FDR10: "FDR10", fabric.FDR: "14",
	fabric.EDR: "25", fabric.HDR: "50", fabric.NDR: "100", fabric.XDR: "200",
}

// errRecord says what records look like.
var errRecord = errors.New("want { SW Ports:24 SystemGUID:.. NodeGUID:.. PortGUID:.. VenID:.. DevID:.. Rev:.. {description} LID:0001 PN:01 }, and the same of the neighbour")

// isSubnetLine returns true for a line that begins as one of a subnet list.
func isSubnetLine(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("{ "))
	word, _, _ := bytes.Cut(rest, []byte(" "))
	return ok && len(word) >= 2 && bytes.IndexByte([]byte(`"{[`), word[0]) < 0 && bytes.HasPrefix(rest[len(word):], []byte(" Ports:"))
}

// isRecord returns true for a line that is or was one of a subnet list: it has something that
// only records have.
func isRecord(text []byte) bool {
	if isSubnetLine(text) || text[0] == '{' || text[0] == '}' {
		return true
	}
	return slices.ContainsFunc([]string{"GUID:", "VenID:", "DevID:", "} LID:", " PN:", "PHY=", "LOG=", "SPD="},
		func(mark string) bool { return bytes.Contains(text, []byte(mark)) })
}

// readSubnetList reads a subnet list.
func (p *parser) readSubnetList() error {
	lines := make([]listLine, 0, len(p.data)/400+16)
	err := p.eachLine(func(l *Line) error {
		l.Text = bytes.TrimRight(l.Text, " \t")
		switch {
		case bytes.HasPrefix(l.Rest(), []byte("File version:")): // of ibdiagnet
			return nil
		case !isRecord(l.Rest()):
			return p.passOver(l)
		}
		if err := p.settleNoise(len(lines) > 0); err != nil {
			return err
		}
		x := listLine{at: p.line, named: true}
		if column, err := x.readSubnetLine(*l); err != nil {
			return p.failHere(column, "line dropped", "%w", err)
		}
		for _, e := range []*listPort{&x.own, &x.peer} {
			if e.bad != "" && p.strict {
				return p.refusal(p.line, 0, "LID %s: want 0 to %d", e.bad, fabric.MaxUnicastLID)
			}
		}
		if !x.linked {
			p.note(p.line, 0, "the link is down; left out")
		}
		lines = append(lines, x)
		return nil
	})
	if err != nil {
		return err
	}
	return p.listNodes(lines)
}

// readSubnetLine reads a line of a subnet list. Its errors come with the column.
func (x *listLine) readSubnetLine(l Line) (column int, err error) {
	return x.own.readRecord(l, func(l Line) (int, error) {
		if !l.Skip(" ") {
			return l.At, errRecord
		}
		return x.peer.readRecord(l, x.readState)
	})
}

// maxName bounds a description in a subnet list, in bytes. Names of a node-name map may be
// longer than the 64 bytes of a node description.
const maxName = 256

// readRecord reads a record, and what follows it by follow. Descriptions may contain
// anything, so the first end of one that lets all that follows be right is taken.
func (e *listPort) readRecord(l Line, follow func(Line) (int, error)) (column int, err error) {
	if column, err := e.readNode(&l); err != nil {
		return column, err
	}
	begin := l.At
	for end := []byte("} LID:"); ; l.At++ {
		i := bytes.Index(l.Rest(), end)
		if l.At += i; i < 0 || l.At-begin > maxName {
			return max(column, begin), cmp.Or(err, fmt.Errorf("no end of the description: %w", errRecord))
		}
		e.stated.desc = l.Text[begin:l.At]
		ahead := l
		at, err1 := e.readPort(&ahead)
		if err1 == nil {
			at, err1 = follow(ahead)
		}
		if err1 == nil {
			return 0, nil
		}
		if err == nil { // that of the likeliest end counts
			column, err = at, err1
		}
	}
}

// field is a field of a record: its name, and how many hexadecimal digits it may have.
type field struct {
	name   string
	digits int
}

// The fields of a record in front of the description, and behind it.
var (
	nodeFields = []field{{"Ports", 8}, {"SystemGUID", 16}, {"NodeGUID", 16}, {"PortGUID", 16}, {"VenID", 8}, {"DevID", 8}, {"Rev", 8}}
	portFields = []field{{"LID", 4}, {"PN", 8}}
)

// readFields reads fields with a blank behind each into v.
func (l *Line) readFields(fields []field, v []uint64) error {
	for i, f := range fields {
		if !l.Skip(f.name) || !l.Skip(":") {
			return fmt.Errorf("no %s: %w", f.name, errRecord)
		}
		from, ok := l.At, false
		if v[i], ok = l.hexadecimal(); !ok || l.At-from > f.digits || !l.Skip(" ") {
			l.At = from
			return fmt.Errorf("%s: want 1 to %d hexadecimal digits", f.name, f.digits)
		}
	}
	return nil
}

// readNode reads a record up to its description.
func (e *listPort) readNode(l *Line) (column int, err error) {
	if !l.Skip("{ ") {
		return l.At, errRecord
	}
	at := l.At
	word := bytes.TrimSuffix(l.token(), []byte("-SM"))
	kind, known := listKind(word)
	if !known || !l.Skip(" ") {
		return at, fmt.Errorf("node type %q: want SW, CA or Rt", word)
	}
	at = l.At
	var v [7]uint64
	if err := l.readFields(nodeFields, v[:]); err != nil {
		return l.At, err
	}
	ports, guid, vendor, device := v[0], v[2], v[4], v[5]
	shifted := device > math.MaxUint16
	switch {
	case ports == 0 || ports > uint64(fabric.MaxPortNum):
		return at, fmt.Errorf("%d ports, want 1 to %d", ports, fabric.MaxPortNum)
	case guid == 0:
		return at, errors.New("node GUID 0")
	case vendor > 1<<24-1:
		return at, fmt.Errorf("vendor ID %#x, want 24 bits", vendor)
	case shifted && device&math.MaxUint16 != 0:
		return at, fmt.Errorf("device ID %#x, want 16 bits", device)
	case !l.Skip("{"):
		return l.At, fmt.Errorf("no description: %w", errRecord)
	case shifted:
		device >>= 16
	}
	e.kind, e.guid = kind, fabric.GUID(v[3])
	e.stated = &statedNode{
		guid: fabric.GUID(guid), system: fabric.GUID(v[1]), ports: fabric.PortNum(ports), vendor: uint32(vendor), device: uint16(device),
	}
	return 0, nil
}

// readPort reads the end of a record, from the brace behind its description.
func (e *listPort) readPort(l *Line) (column int, err error) {
	l.Skip("} ")
	at := l.At
	var v [2]uint64
	if err := l.readFields(portFields, v[:]); err != nil {
		return l.At, err
	}
	lid, num := v[0], v[1]
	switch {
	case num == 0 || num > uint64(e.stated.ports):
		return at, fmt.Errorf("port %d of a node with ports 1 to %d", num, e.stated.ports)
	case !l.Skip("}"):
		return l.At, errRecord
	}
	e.lid, e.num, e.bad = fabric.LID(lid), fabric.PortNum(num), ""
	if lid > uint64(fabric.MaxUnicastLID) {
		e.lid, e.bad = 0, strconv.FormatUint(lid, 10)
	}
	return 0, nil
}

// readState reads PHY=4x LOG=ACT SPD=10.
func (x *listLine) readState(l Line) (column int, err error) {
	const want = "want PHY=4x LOG=ACT SPD=10"
	at := l.At
	var phy, log, spd []byte
	if l.Skip(" PHY=") {
		phy = l.token()
	}
	if l.Skip(" LOG=") {
		log = l.token()
	}
	width, _ := linkOf(phy)
	switch {
	case phy == nil || log == nil:
		return at, errors.New("no state of the link; " + want)
	case !slices.Contains([]string{"1x", "2x", "4x", "8x", "12x", "??", "UNKNOWN"}, string(phy)):
		return at, fmt.Errorf("link width %q: want 1x, 2x, 4x, 8x, 12x or ??", phy)
	case !slices.Contains([]string{"ACT", "ARM", "INI", "DWN"}, string(log)):
		return at, fmt.Errorf("link state %q: want ACT, ARM, INI or DWN", log)
	}
	x.link, x.linked = fabric.Link{Width: width.Width}, string(log) != "DWN"
	if l.Done() {
		return 0, nil
	}
	if !l.Skip(" SPD=") {
		return l.At, errors.New("no speed of the link; " + want)
	}
	spd = l.token()
	speed := slices.Index(SubnetSpeeds[:], string(spd))
	if speed < 0 && string(spd) != "EDR20" && string(spd) != "UNKNOWN" { // EDR20 is of one vendor
		return at, fmt.Errorf("link speed %q: want 2.5, 5, 10, FDR10, 14, 25, 50, 100, 200 or ??", spd)
	}
	x.link.Speed = fabric.Speed(max(0, speed))
	return 0, nil
}
