package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// The fixed lines of far, ibdiagnet's adaptive routing. In heads of columns, blanks do not count.
// No file of a real fabric is public: the grammar is that of a published parser
// (CrackedPoly/Rapimt, ibfar.pest).
const (
	farGroups    = "Groups Definition:"
	farGroupHead = "Group Sub Group WHBF Ports"
	farLFT       = "LFT Definition:"
	farLFTHead   = "LID Static Port Lid State Group"
	farTop       = ", top:"
	farRuler     = "-------------------------------------"
)

// maxPLFT is the highest number of a private LFT: ibdiagnet's own tables have 8 of them.
const maxPLFT = 7

// maxGroupNumber is the highest number of a group or subgroup, which have 16 bits.
const maxGroupNumber = 1<<16 - 1

// WriteFAR writes adaptive routing as ibdiagnet's far: for each switch its groups, and the
// private LFTs that it has, by ascending LID. Rows without a path are left out. An entry
// without a group (only Static entries can lack one) gets the lowest number that no group of
// the switch has. opt.Lean changes nothing. Errors are those of w, tables of another fabric,
// and entries that the format cannot represent.
func WriteFAR(w io.Writer, f *fabric.Fabric, t *adaptive.Tables, opt WriteOptions) error {
	if err := checkAdaptive(f, t); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "File version: 1\n"); err != nil {
		return err
	}
	return writeSwitches(w, f, opt.Only, func(b []byte, s fabric.NodeID) []byte { return appendFAR(b, f, t, s) })
}

// checkAdaptive returns an error for tables that cannot be written as far.
func checkAdaptive(f *fabric.Fabric, t *adaptive.Tables) error {
	if len(t.Groups) != f.NumSwitches() {
		return fmt.Errorf("group tables of %d switches, the fabric has %d", len(t.Groups), f.NumSwitches())
	}
	if len(t.PLFTs) > maxPLFT+1 {
		return fmt.Errorf("%d private LFTs, want at most %d", len(t.PLFTs), maxPLFT+1)
	}
	for i, p := range t.PLFTs {
		if err := lft.CheckFabric(f, p.Ports, nil, nil); err != nil {
			return err
		}
		for _, s := range f.Switches() {
			for l := range p.Ports.Row(s) {
				if state, group := p.At(s, fabric.LID(l)); state != adaptive.Static && group < 0 {
					return fmt.Errorf("switch %s, PLFT %d, LID %d: a %s entry without a group", f.Node(s).GUID, i, l, state)
				}
			}
		}
	}
	return nil
}

// appendFAR appends the section of a switch.
func appendFAR(b []byte, f *fabric.Fabric, t *adaptive.Tables, s fabric.NodeID) []byte {
	b = fmt.Appendf(b, "\n%s%016x, LID %d\n%s\n%s\n%s\n", mcfdbsSwitch, uint64(f.Node(s).GUID), f.LID(f.PortBase(s)), farGroups, farGroupHead, farRuler)
	none := 0
	for _, g := range t.Groups[s] {
		subgroups := g.Subgroups
		if len(subgroups) == 0 {
			subgroups = make([]adaptive.Subgroup, 1) // entries can name a group without ports
		}
		for _, sub := range subgroups {
			b = fmt.Appendf(b, "%d %d %d ", g.Number, sub.Number, sub.WHBF)
			sub.Ports.Each(func(p fabric.PortNum) { b = append(strconv.AppendUint(b, uint64(p), 10), ',') })
			b = append(b, '\n')
		}
	}
	for slices.ContainsFunc(t.Groups[s], func(g adaptive.Group) bool { return g.Number == none }) {
		none++
	}
	b = append(b, farLFT+"\n"...)
	for i, plft := range t.PLFTs {
		row := plft.Ports.Row(s)
		top := len(row) - 1
		for top > 0 && !plft.HasEntry(s, fabric.LID(top)) {
			top--
		}
		if plft.Lacks(s) {
			continue
		}
		b = fmt.Appendf(b, "%s %d%s 0x%04x\n%s\n%s\n", plftNumber, i, farTop, top, farLFTHead, farRuler)
		for l := 1; l <= top; l++ {
			if !plft.HasEntry(s, fabric.LID(l)) {
				continue
			}
			state, group := plft.At(s, fabric.LID(l))
			number := none
			if group >= 0 {
				number = t.Groups[s][group].Number
			}
			b = appendHex(append(b, "0x"...), uint64(l), 4, lowerHex)
			b = strconv.AppendUint(append(b, ' '), uint64(row[l]), 10)
			b = append(append(b, ' '), state.String()...)
			b = append(strconv.AppendInt(append(b, ' '), int64(number), 10), '\n')
		}
	}
	return b
}

// farReader reads ibdiagnet's far.
type farReader struct {
	sectionReader
	read []farSection // by section
}

// farSection has the contents of a section of far.
type farSection struct {
	node    *fabric.Node
	groups  []adaptive.Group
	index   map[int]int // in groups, by number
	plfts   []farTable
	part    farPart
	rows    bool // the heads of the columns have been read
	unknown int  // number of lines before the groups
	first   int  // offset of the first of these lines
}

// farPart is a part of a section of far.
type farPart uint8

const (
	farSettings farPart = iota
	farInGroups
	farBeforePLFT
	farInPLFT
	farOutside // in a table that is left out
)

// farTable is a private LFT of a switch, by LID up to its top.
type farTable struct {
	number  int
	entries []farEntry
}

type farEntry struct {
	given bool
	port  fabric.PortNum
	state adaptive.State
	group int16 // in the switch's group table, -1 for none
}

// ReadFAR reads adaptive routing from ibdiagnet's far: the groups and private LFTs of
// each switch. name is the file's, for messages. The result has no Select, which far
// lacks and ReadPLFTMap reads. A private LFT has NoPath for a LID without a row. One with a
// number above 0 is Lacking on switches whose section has no line with that number.
//
// Switches are matched by node GUID, and one without a section is a Missing Problem.
// Lines between the first line of a section and its groups are not understood; one
// NotUnderstood Problem counts them. They can exclude SLs and transports from
// adaptive routing: packets then have fewer choices than these tables, never more.
//
// Errors are *fabric.ParseError, and the tables are then nil. With Options.Lenient
// these are Problems instead: unknown switches, ports and groups, LIDs that are 0 or
// beyond the table's top, a second section, group, private LFT or row, foreign lines,
// and sections that end too early.
func ReadFAR(name string, data []byte, f *fabric.Fabric, opt Options) (*adaptive.Tables, []fabric.Problem, error) {
	r := &farReader{sectionReader: newSectionReader(name, data, f, opt)}
	if form := Recognize(data); form != FAR {
		return nil, nil, r.notForm(form, "adaptive routing", "the far file of ibdiagnet, as compile --adaptive writes it too")
	}
	r.findSections(mcfdbsSwitch, r.readHead)
	r.read = make([]farSection, len(r.sections))
	r.eachSection(func(i int, sec *section) { r.readSection(sec, &r.read[i]) })
	r.joinSections()
	r.findSettings()
	r.findMissing()
	return finish(&r.textReader, r.tables())
}

// readHead reads the first line of a section.
func (r *farReader) readHead(_ *section, line []byte) (fabric.GUID, error) {
	s := topology.Line{Text: line}
	s.Want(mcfdbsSwitch)
	guid := fabric.GUID(s.Hex(16))
	if s.Bad || !s.IsBlank() && !s.Is(',') {
		return 0, errors.New("bad GUID; want Switch 0x0123456789abcdef")
	}
	return guid, nil
}

// readSection reads the lines of a section after the first.
func (r *farReader) readSection(sec *section, x *farSection) {
	x.node, x.index = r.f.Node(sec.sw), map[int]int{}
	r.eachLine(sec, func(at int, line []byte) error {
		if line = bytes.TrimSpace(line); isSilent(line) {
			return nil
		}
		return x.readLine(at, line)
	})
	want := [...]string{farSettings: farGroups, farInGroups: farLFT, farBeforePLFT: plftNumber, farOutside: ""}[x.part]
	switch {
	case want != "":
	case !x.rows:
		want = farLFTHead
	case r.data[sec.end-1] != '\n':
		sec.add(r.lastLine(sec.end), fabric.Truncated, fmt.Errorf("the last line has no end: %w", ErrTruncated))
	}
	if want != "" {
		sec.add(r.lastLine(sec.end), fabric.Truncated, fmt.Errorf("the section of switch %s has no line %s: %w", x.node.GUID, want, ErrTruncated))
	}
}

// readLine reads a line that is neither blank nor a comment.
func (x *farSection) readLine(at int, line []byte) error {
	switch {
	case beginsWith(line, farGroups):
		if x.part != farSettings {
			return fmt.Errorf("%s a second time for switch %s", farGroups, x.node.GUID)
		}
		x.part, x.rows = farInGroups, false
	case x.part == farSettings:
		if x.unknown++; x.unknown == 1 {
			x.first = at
		}
	case beginsWith(line, farLFT): // once, or for each private LFT
		x.part, x.rows = farBeforePLFT, false
	case beginsWith(line, plftNumber) && x.part >= farBeforePLFT:
		x.part, x.rows = farInPLFT, false
		if err := x.beginPLFT(line); err != nil {
			x.part = farOutside
			return err
		}
	case len(bytes.Trim(line, "- ")) == 0: // a ruler
	case x.part == farBeforePLFT:
		return fmt.Errorf("want %s 0%s 0x0012", plftNumber, farTop)
	case !x.rows:
		want := farLFTHead
		if x.part == farInGroups {
			want = farGroupHead
		}
		x.rows = true
		if string(bytes.Join(bytes.Fields(line), []byte(" "))) != want {
			return fmt.Errorf("want the heads of the columns, %s", want)
		}
	case x.part == farInGroups:
		return x.readGroup(line)
	case x.part == farInPLFT:
		return x.readEntry(line)
	}
	return nil
}

// readGroup reads a row of the group table.
func (x *farSection) readGroup(line []byte) error {
	s := topology.Line{Text: line}
	number := s.Decimal(9)
	s.Blanks()
	sub := adaptive.Subgroup{Number: s.Decimal(9)}
	s.Blanks()
	sub.WHBF = s.Decimal(9)
	if !s.Bad && !s.Done() { // blanks before the first port
		s.Blanks()
	}
	for !s.Bad && !s.Done() {
		p := s.Decimal(9)
		switch {
		case s.Bad:
		case p > int(x.node.NumPorts):
			return fmt.Errorf("port %d of switch %s, which has ports 0 to %d", p, x.node.GUID, x.node.NumPorts)
		default:
			sub.Ports.Add(fabric.PortNum(p))
		}
		if !s.Done() {
			s.Want(",")
		}
		s.SkipBlanks()
	}
	if s.Bad {
		return errors.New("want a group, subgroup, WHBF and ports such as 1 0 0 3,4,5,")
	}
	if max(number, sub.Number, sub.WHBF) > maxGroupNumber {
		return fmt.Errorf("group %d, subgroup %d, WHBF %d: want at most %d", number, sub.Number, sub.WHBF, maxGroupNumber)
	}
	i, known := x.index[number]
	switch {
	case !known:
		if i = len(x.groups); i == adaptive.MaxGroups {
			return fmt.Errorf("more than %d groups", adaptive.MaxGroups)
		}
		x.groups = append(x.groups, adaptive.Group{Number: number})
		x.index[number] = i
	case i != len(x.groups)-1:
		return fmt.Errorf("group %d of switch %s a second time; want the rows of its subgroups one after the other", number, x.node.GUID)
	case slices.ContainsFunc(x.groups[i].Subgroups, func(o adaptive.Subgroup) bool { return o.Number == sub.Number }):
		return fmt.Errorf("subgroup %d of group %d of switch %s a second time", sub.Number, number, x.node.GUID)
	}
	x.groups[i].Subgroups = append(x.groups[i].Subgroups, sub)
	return nil
}

// beginPLFT reads the first line of a private LFT.
func (x *farSection) beginPLFT(line []byte) error {
	s := topology.Line{Text: line}
	s.Want(plftNumber)
	s.SkipBlanks()
	number := s.Decimal(9)
	s.Want(farTop)
	s.SkipBlanks()
	top := s.Hex0x(8)
	switch {
	case !s.AtEnd():
		return fmt.Errorf("want %s 0%s 0x0012", plftNumber, farTop)
	case number > maxPLFT:
		return fmt.Errorf("PLFT %d, want 0 to %d", number, maxPLFT)
	case top > uint64(fabric.MaxUnicastLID):
		return fmt.Errorf("top LID %#x, want at most %#x", top, fabric.MaxUnicastLID)
	case slices.ContainsFunc(x.plfts, func(t farTable) bool { return t.number == number }):
		return fmt.Errorf("PLFT %d of switch %s a second time", number, x.node.GUID)
	}
	x.plfts = append(x.plfts, farTable{number: number, entries: make([]farEntry, top+1)})
	return nil
}

// readEntry reads a row of a private LFT.
func (x *farSection) readEntry(line []byte) error {
	s := topology.Line{Text: line}
	lid := s.Hex0x(8)
	s.Blanks()
	port := s.Decimal(9)
	s.Blanks()
	n := max(0, bytes.IndexAny(s.Rest(), " \t"))
	state, known := adaptive.ParseState(string(s.Rest()[:n]))
	s.At += n
	s.Blanks()
	group := s.Decimal(9)
	t := &x.plfts[len(x.plfts)-1]
	e := farEntry{given: true, port: fabric.PortNum(port), state: state, group: -1}
	if i, has := x.index[group]; has {
		e.group = int16(i)
	}
	switch {
	case !s.AtEnd() || !known:
		return errors.New("want a LID, static port, state (Static, Free or HBF) and group such as 0x0001 3 Free 1")
	case lid == 0 || lid >= uint64(len(t.entries)):
		return fmt.Errorf("LID %#x, want 0x1 to %#x, the top of PLFT %d", lid, len(t.entries)-1, t.number)
	case port > int(x.node.NumPorts) && port != int(fabric.NoPath):
		return fmt.Errorf("port %d of switch %s, which has ports 0 to %d", port, x.node.GUID, x.node.NumPorts)
	case e.group < 0 && state != adaptive.Static:
		return fmt.Errorf("group %d, which the group table of switch %s has not", group, x.node.GUID)
	case t.entries[lid].given && t.entries[lid] != e:
		return fmt.Errorf("a second row for LID %d in PLFT %d of switch %s, with other choices", lid, t.number, x.node.GUID)
	}
	t.entries[lid] = e
	return nil
}

// findSettings notes how many lines before the groups were not understood.
func (r *farReader) findSettings() {
	n, first := 0, -1
	for i := range r.read {
		if x := &r.read[i]; x.unknown > 0 {
			if n == 0 {
				first = x.first
			}
			n += x.unknown
		}
	}
	if n == 0 {
		return
	}
	r.note(first, fabric.NotUnderstood, fmt.Errorf("lines before %s are not understood, %d in all: what they allow some packets is taken to be allowed to all", farGroups, n))
}

// tables makes tables of the sections.
func (r *farReader) tables() *adaptive.Tables {
	n, maxLID := 1, int(r.f.MaxLID())
	for i := range r.read {
		for _, t := range r.read[i].plfts {
			n, maxLID = max(n, t.number+1), max(maxLID, len(t.entries)-1)
		}
	}
	tables := &adaptive.Tables{Groups: make([][]adaptive.Group, r.f.NumSwitches())}
	for i := range n {
		plft := adaptive.NewPLFT(lft.NewTables(r.f.NumSwitches(), fabric.LID(maxLID)))
		if i > 0 { // number 0 is the linear table, which every switch has
			plft.Lacking = slices.Repeat([]bool{true}, r.f.NumSwitches())
		}
		tables.PLFTs = append(tables.PLFTs, plft)
	}
	par.Each(len(r.read), func(i int) {
		x, s := &r.read[i], r.sections[i].sw
		if s == fabric.NoNode || r.sections[i].skip {
			return
		}
		tables.Groups[s] = x.groups
		for _, t := range x.plfts {
			plft := tables.PLFTs[t.number]
			if plft.Lacking != nil {
				plft.Lacking[s] = false
			}
			for l, e := range t.entries {
				if e.given {
					plft.Ports.Row(s)[l] = e.port
					plft.Set(s, fabric.LID(l), e.state, int(e.group))
				}
			}
		}
	})
	return tables
}
