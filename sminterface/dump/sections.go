package dump

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/par"
)

// section is the part of a text with one switch's table.
type section struct {
	findings
	at   int // offset of its first line
	body int // offset of its second line
	end  int // offset of the next section
	sw   fabric.NodeID
	lid  int  // LID of the switch by the first line, 0 if it has none
	skip bool // not to be read

	// Filled in by reading.
	ended bool // the last line was read
	rows  int

	lftSection
}

// sectionReader reads a text with a section for each switch.
type sectionReader struct {
	textReader
	f        *fabric.Fabric
	sections []section
}

func newSectionReader(name string, data []byte, f *fabric.Fabric, opt Options) sectionReader {
	return sectionReader{textReader: newTextReader(name, data, opt), f: f}
}

// findSections makes a section of each line that begins with
// marker (in fdbs, behind one of OpenSM's old prefixes). readHead
// reads that line and returns the switch's GUID. Sections of
// unknown switches, and second sections of a switch, are skipped.
func (r *sectionReader) findSections(marker string, readHead func(sec *section, line []byte) (fabric.GUID, error)) {
	const longest = len("\n__osm_ucast_mgr_") // before a marker
	for i := 0; ; i += len(marker) {
		j := bytes.Index(r.data[i:], []byte(marker))
		if j < 0 {
			break
		}
		i += j
		from := max(0, i-longest)
		at := from + bytes.LastIndexByte(r.data[from:i], '\n') + 1
		if at > from || from == 0 {
			if at == i || fdbsHeader(r.data[at:i+len(marker)]) > 0 {
				r.sections = append(r.sections, section{findings: findings{lenient: r.lenient}, at: at, sw: fabric.NoNode})
			}
		}
	}
	end := len(r.data)
	for i := len(r.sections) - 1; i >= 0; i-- {
		r.sections[i].end = end
		end = r.sections[i].at
	}
	r.readPreamble(end)
	first := make(map[fabric.NodeID]int) // the offset of a switch's section
	for i := range r.sections {
		sec := &r.sections[i]
		var line []byte
		line, sec.body = cutLine(r.data[:sec.end], sec.at)
		if err := r.findSwitch(sec, line, readHead, first); err != nil {
			sec.skip, sec.sw = true, fabric.NoNode
			sec.add(sec.at, fabric.Dropped, err)
		}
	}
}

// readPreamble notes text before the first section.
func (r *sectionReader) readPreamble(end int) {
	for at := 0; at < end; {
		line, next := cutLine(r.data[:end], at)
		if !isSilent(bytes.TrimSpace(line)) {
			r.drop(at, "text before the first section")
		}
		at = next
	}
}

// findSwitch sets the switch of a section by its first
// line. first has the offset of each switch's section.
func (r *sectionReader) findSwitch(sec *section, line []byte, readHead func(*section, []byte) (fabric.GUID, error), first map[fabric.NodeID]int) error {
	guid, err := readHead(sec, line)
	if err != nil {
		return err
	}
	var known bool
	if sec.sw, known = r.f.SwitchByGUID(guid); !known {
		return fmt.Errorf("the fabric has no switch %s", guid)
	}
	if sec.skip {
		return nil
	}
	if at, again := first[sec.sw]; again {
		return fmt.Errorf("a second section for switch %s, the first is in line %d", guid, r.numberAt(at))
	}
	first[sec.sw] = sec.at
	return nil
}

// readSwitchName reads the switch in the first line of a section of ibroute,
// dump_fts or opensm-lfts.dump: its GUID, and its LID if it is there.
func (sec *section) readSwitchName(text []byte) (fabric.GUID, error) {
	before, after, found := bytes.Cut(text, []byte(" guid 0x"))
	if !found {
		return 0, errors.New("no GUID")
	}
	s := topology.Line{Text: after}
	guid := fabric.GUID(s.Hex(16))
	if s.Bad || !s.Done() && !s.Is(' ') {
		return 0, errors.New("bad GUID")
	}
	if _, lid, found := bytes.Cut(before, []byte(" of switch Lid ")); found {
		s := topology.Line{Text: lid}
		sec.lid = s.Decimal(5)
	}
	return guid, nil
}

// guidHead returns a readHead for first lines that consist of begin and a switch's GUID.
func guidHead(begin string) func(*section, []byte) (fabric.GUID, error) {
	return func(_ *section, line []byte) (fabric.GUID, error) {
		s := topology.Line{Text: bytes.TrimSpace(line)}
		s.Want(begin)
		guid := fabric.GUID(s.Hex(16))
		if !s.AtEnd() {
			return 0, fmt.Errorf("bad GUID; want %s0123456789abcdef", begin)
		}
		return guid, nil
	}
}

// checkLID compares the LID that the first line of a section has with the fabric's.
func (r *sectionReader) checkLID(sec *section) {
	if own := r.f.LID(r.f.PortBase(sec.sw)); sec.lid > 0 && int(own) != sec.lid {
		sec.add(sec.at, fabric.Contradiction, fmt.Errorf("switch %s has LID %d in the fabric, here %d", r.f.Node(sec.sw).GUID, own, sec.lid))
	}
}

// checkEnded notes a section without its last line.
func (r *sectionReader) checkEnded(sec *section, want string) {
	if !sec.ended {
		sec.add(r.lastLine(sec.end), fabric.Truncated, fmt.Errorf("the section of switch %s does not end with a line %s: %w", r.f.Node(sec.sw).GUID, want, ErrTruncated))
	}
}

// eachSection calls read, on all CPUs, with each section that is not skipped and its index.
func (r *sectionReader) eachSection(read func(i int, sec *section)) {
	par.Each(len(r.sections), func(i int) {
		if sec := &r.sections[i]; !sec.skip {
			read(i, sec)
		}
	})
}

// eachLine calls read for every line of a section after the first, without its end, until a
// strict reader has failed. A line for which read returns an error is dropped.
func (r *sectionReader) eachLine(sec *section, read func(at int, line []byte) error) {
	for at := sec.body; at < sec.end && !sec.failed; {
		line, next := cutLine(r.data[:sec.end], at)
		if err := read(at, line); err != nil {
			sec.add(at, fabric.Dropped, err)
		}
		at = next
	}
}

// joinSections collects the findings of all sections.
func (r *sectionReader) joinSections() {
	for i := range r.sections {
		r.join(&r.sections[i].findings)
	}
}

// findMissing notes the switches without a section.
func (r *sectionReader) findMissing() {
	have := make([]bool, r.f.NumSwitches())
	for i := range r.sections {
		if sec := &r.sections[i]; !sec.skip {
			have[sec.sw] = true
		}
	}
	for s, ok := range have {
		if !ok {
			n := r.f.Node(fabric.NodeID(s))
			r.note(-1, fabric.Missing, fmt.Errorf("no table of switch %s %q", n.GUID, n.Description))
		}
	}
}
