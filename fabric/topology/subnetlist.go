package topology

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

// SubnetSpeeds has the text of SPD for each Speed. OpenSM 3.3.23 has texts up
// to 50 and prints ?? for faster links; ibdiagnet also prints 100 and 200.
var SubnetSpeeds = [...]string{
	fabric.SpeedUnknown: "??", fabric.SDR: "2.5", fabric.DDR: "5", fabric.QDR: "10", fabric.FDR10: "FDR10", fabric.FDR: "14",
	fabric.EDR: "25", fabric.HDR: "50", fabric.NDR: "100", fabric.XDR: "200",
}

// errRecord describes a valid record.
var errRecord = errors.New("want { SW Ports:24 SystemGUID:.. NodeGUID:.. PortGUID:.. VenID:.. DevID:.. Rev:.. {description} LID:0001 PN:01 }, and the same of the neighbour")

// record matches a line of a subnet list, whole or damaged.
var record = regexp.MustCompile(`^[{}]|GUID:|VenID:|DevID:|\} LID:| PN:|PHY=|LOG=|SPD=`)

func (p *parser) readSubnetList() error {
	lines := make([]listLine, 0, len(p.data)/400+16)
	err := p.eachLine(func(l *Line) error {
		l.Text = bytes.TrimRight(l.Text, " \t")
		switch {
		case bytes.HasPrefix(l.Rest(), []byte("File version:")): // of ibdiagnet
			return nil
		case !record.Match(l.Rest()):
			return p.passOver(l)
		}
		if err := p.settleNoise(len(lines) > 0); err != nil {
			return err
		}
		x := listLine{at: p.line}
		if err := x.readSubnetLine(l); err != nil {
			return p.dropLine(l.At, "%w", err)
		}
		for _, e := range []*listPort{&x.own, &x.peer} {
			if err := p.setLID(e, int(e.lid), strconv.Itoa(int(e.lid)), 0); err != nil {
				return err
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
	return p.listNodes(lines, true)
}

// readSubnetLine reads a line of a subnet list. An error is about the place l.At.
func (x *listLine) readSubnetLine(l *Line) error {
	if err := x.own.readRecord(l); err != nil {
		return err
	}
	if !l.Skip(" ") {
		return errRecord
	}
	if err := x.peer.readRecord(l); err != nil {
		return err
	}
	return x.readState(l)
}

// field is a field of a record: its name, its greatest number
// of hexadecimal digits, and its range.
type field struct {
	name        string
	digits      int
	least, most uint64
}

// nodeFields are the fields of a record before the description.
var nodeFields = []field{
	{"Ports", 8, 1, uint64(fabric.MaxPortNum)},
	{"SystemGUID", 16, 0, math.MaxUint64},
	{"NodeGUID", 16, 1, math.MaxUint64},
	{"PortGUID", 16, 0, math.MaxUint64},
	{"VenID", 8, 0, 1<<24 - 1},
	{"DevID", 8, 0, math.MaxUint32},
	{"Rev", 8, 0, math.MaxUint32},
}

// readFields reads fields with a blank behind each into v.
func (l *Line) readFields(fields []field, v []uint64) error {
	for i, f := range fields {
		if !l.Skip(f.name) || !l.Skip(":") {
			return fmt.Errorf("no %s: %w", f.name, errRecord)
		}
		from, ok := l.At, false
		if v[i], ok = l.hexadecimal(); !ok || l.At-from > f.digits || !l.Skip(" ") {
			return l.failAt(from, "%s: want 1 to %d hexadecimal digits", f.name, f.digits)
		}
		if v[i] < f.least || v[i] > f.most {
			return l.failAt(from, "%s %#x: want %#x to %#x", f.name, v[i], f.least, f.most)
		}
	}
	return nil
}

// failAt moves l to at, and returns the error about that place.
func (l *Line) failAt(at int, format string, args ...any) error {
	l.At = at
	return fmt.Errorf(format, args...)
}

// readRecord reads a record. Its description ends at the first text that looks like its end.
func (e *listPort) readRecord(l *Line) error {
	if !l.Skip("{ ") {
		return errRecord
	}
	at := l.At
	word := bytes.TrimSuffix(l.token(), []byte("-SM"))
	if e.kind = listKind(word); e.kind == 0 || !l.Skip(" ") {
		return l.failAt(at, "node type %q: want SW, CA or Rt", word)
	}
	var v [9]uint64
	if err := l.readFields(nodeFields, v[:]); err != nil {
		return err
	}
	if !l.Skip("{") {
		return fmt.Errorf("no description: %w", errRecord)
	}
	n := bytes.Index(l.Rest(), []byte("} LID:"))
	if n < 0 {
		return fmt.Errorf("no end of the description: %w", errRecord)
	}
	e.name = string(l.Rest()[:n])
	l.At += n + len("} ")
	if err := l.readFields([]field{{"LID", 4, 0, math.MaxUint16}, {"PN", 8, 1, v[0]}}, v[7:]); err != nil {
		return err
	}
	if !l.Skip("}") {
		return errRecord
	}
	device := v[5]
	if device > math.MaxUint16 {
		if device&math.MaxUint16 != 0 {
			return l.failAt(at, "device ID %#x, want 16 bits", device)
		}
		device >>= 16
	}
	e.statedNode = statedNode{
		node: fabric.GUID(v[2]), system: fabric.GUID(v[1]), vendor: uint32(v[4]), device: uint16(device), ports: fabric.PortNum(v[0]),
	}
	e.guid, e.lid, e.num = fabric.GUID(v[3]), fabric.LID(v[7]), fabric.PortNum(v[8])
	return nil
}

// stateFields are the fields after the records, with their allowed words. Only one vendor prints EDR20.
var stateFields = []struct {
	name, what string
	words      []string
}{
	{" PHY=", "link width", []string{"1x", "2x", "4x", "8x", "12x", "??", "UNKNOWN"}},
	{" LOG=", "link state", []string{"ACT", "ARM", "INI", "DWN"}},
	{" SPD=", "link speed", append(SubnetSpeeds[:], "EDR20", "UNKNOWN")},
}

// readState reads PHY=4x LOG=ACT SPD=10.
func (x *listLine) readState(l *Line) error {
	for i, f := range stateFields {
		if i == 2 && l.Done() {
			break
		}
		if !l.Skip(f.name) {
			return fmt.Errorf("no %s; want PHY=4x LOG=ACT SPD=10", f.what)
		}
		if err := x.takeState(i, l); err != nil {
			return err
		}
	}
	return nil
}

// takeState reads the word of one of stateFields.
func (x *listLine) takeState(i int, l *Line) error {
	from, f := l.At, stateFields[i]
	word := l.token()
	at := slices.Index(f.words, string(word))
	switch {
	case at < 0:
		return l.failAt(from, "%s %q: want one of %s", f.what, word, strings.Join(f.words, ", "))
	case i == 0:
		x.link, _ = linkOf(word)
	case i == 1:
		x.linked = string(word) != "DWN"
	case at < len(SubnetSpeeds):
		x.link.Speed = fabric.Speed(at)
	}
	return nil
}
