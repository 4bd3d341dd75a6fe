package ibdiagnet

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// The rows of the sections that the fabric is made of.
type (
	nodeRow struct {
		line int
		node fabric.Node // without Order
		text string
	}
	portRow struct {
		line int
		at   portAt
		guid fabric.GUID
		lid  string // as in the file, "" for none
		link fabric.Link
		info Port
	}
	linkRow struct {
		line int
		ends [2]portAt
	}
	vportRow struct {
		at portAt
		VPort
	}
)

// portAt is a port by the GUID of its node.
type portAt struct {
	node fabric.GUID
	num  fabric.PortNum
}

func (p portAt) String() string { return fmt.Sprintf("%s[%d]", p.node, p.num) }

// draft collects the rows of a database.
type draft struct {
	file     string
	lenient  bool
	strict   bool
	problems []fabric.Problem
	counted  map[fabric.ProblemKind]int // by kind: 1 + index of the problem that counts all
	failed   error                      // the first error of a strict read

	date     string // of the run
	nodes    []nodeRow
	ports    []portRow
	links    []linkRow
	switches map[fabric.GUID]Switch
	labels   map[portAt]string
	sms      []SM
	pkeys    []pkeyRow
	vports   []vportRow
	warnings []Warning

	counters *counterDraft // if not nil, only counters are read

	unread map[string]bool // sections with rows that are left out

	rows  map[string]int // by section that is read: number of rows
	lines map[string]int // by section: line of its header row
	index []entry        // of INDEX_TABLE
}

type pkeyRow struct {
	at  portAt
	key fabric.PKey
}

// maxProblems bounds the list of problems.
const maxProblems = 10000

// note adds a problem about a line, 0 for none, and returns it for more data.
func (d *draft) note(kind fabric.ProblemKind, line int, text []byte, format string, args ...any) *fabric.Problem {
	p := fabric.Problem{Kind: kind, File: d.file, Line: line, Text: string(text[:min(len(text), maxQuoted)]), Message: fmt.Sprintf(format, args...), Count: 1}
	if d.strict && kind != fabric.Contradiction && kind != fabric.Loopback && d.failed == nil {
		d.failed = parseError(d.file, line, text, "%s", p.Message)
	}
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, p)
		return &d.problems[len(d.problems)-1]
	}
	return &p
}

// count lists the first problem of a kind and counts the others.
func (d *draft) count(kind fabric.ProblemKind, line int, text []byte, format string, args ...any) *fabric.Problem {
	if at := d.counted[kind]; at > 0 {
		d.problems[at-1].Count++
		return &d.problems[at-1]
	}
	p := d.note(kind, line, text, format, args...)
	d.counted[kind] = len(d.problems)
	return p
}

// wrong reports a row that cannot be used: as an error, or in a lenient read as a problem.
func (d *draft) wrong(line int, text []byte, format string, args ...any) {
	if d.lenient {
		err := fmt.Errorf(format, args...)
		d.note(fabric.Dropped, line, text, "%s; left out", err)
		return
	}
	if d.failed == nil {
		d.failed = parseError(d.file, line, text, format, args...)
	}
}

// Read reads a database. name is for messages.
//
// Errors are *fabric.ParseError and those of from; the database is then nil. It is an
// error if section NODES or LINKS is missing, or if the header row of NODES, PORTS or
// LINKS lacks a needed column. With Options.Lenient other errors are Problems, and
// such rows or LIDs are left out: numbers invalid or out of range, two rows that
// differ about one node, port or cable, and a LID that two ports have. Options.Strict
// makes all Problems errors, except contradictions and loopback plugs.
func Read(name string, from io.Reader, opt Options) (*Database, error) {
	d := newDraft(name, opt)
	if err := d.readText(from); err != nil {
		return nil, err
	}
	return d.build()
}

func newDraft(name string, opt Options) *draft {
	return &draft{file: name, lenient: opt.Lenient && !opt.Strict, strict: opt.Strict, counted: map[fabric.ProblemKind]int{}, switches: map[fabric.GUID]Switch{},
		labels: map[portAt]string{}, unread: map[string]bool{}, rows: map[string]int{}, lines: map[string]int{}}
}

// readText reads all rows, and notes missing parts.
func (d *draft) readText(from io.Reader) error {
	r := &lineReader{from: bufio.NewReaderSize(from, maxLine)}
	promised := false // the first line promises an index at the end
	first, err := r.from.Peek(maxFirst)
	if err == nil || err == io.EOF {
		promised = bytes.Contains(first, []byte(indexPromise))
	}
	err = d.walk(r)
	if errors.Is(err, errLongLine) {
		return &fabric.ParseError{File: d.file, Err: err}
	}
	if err != nil {
		return err
	}
	if _, there := d.lines[indexName]; promised && !there && !d.isCut() {
		d.note(CutFile, r.number, nil, "no INDEX_TABLE, which the first line says to be there: the file is cut short")
	}
	d.checkRows()
	return d.failed
}

// beginSection reads the header row of a section that is used.
func (d *draft) beginSection(r *row, t *table, line int) error {
	d.lines[t.name] = line
	if t.name == indexName {
		return nil
	}
	err := r.begin(t, d.formOf(t.name))
	switch {
	case err == nil:
	case isNeeded(t.name):
		return parseError(d.file, line, t.header, "%w", err)
	default:
		d.leaveOut(t.name, line, t.header, err)
		r.form = nil
	}
	return nil
}

// readRow reads a row of a section that is used.
func (d *draft) readRow(r *row, t *table, line int, text []byte) error {
	if t.name == indexName {
		if e, err := t.indexEntry(text); err == nil {
			d.index = append(d.index, e)
		}
		return nil
	}
	if r.form == nil {
		return nil
	}
	r.line, r.text, r.err = line, text, nil
	if r.fields, r.err = t.split(r.fields, text); r.err == nil {
		r.form.read(d, r)
	}
	switch {
	case r.err == nil:
	case isNeeded(t.name):
		d.wrong(line, text, "%w", r.err)
	default:
		d.leaveOut(t.name, line, text, r.err)
	}
	return d.failed
}

// leaveOut notes, once for each section, that it has
// unreadable rows that the fabric does not need.
func (d *draft) leaveOut(section string, line int, text []byte, err error) {
	if !d.unread[section] {
		d.unread[section] = true
		d.note(UnreadRows, line, text, "%s; such rows are left out, the fabric does not need them", err)
	}
}

// isCut returns true if a problem already notes that text is missing.
func (d *draft) isCut() bool { return slices.ContainsFunc(d.problems, isCut) }

func isCut(p fabric.Problem) bool { return p.Kind == CutFile }

// checkRows compares the numbers of rows with INDEX_TABLE.
func (d *draft) checkRows() {
	if d.isCut() {
		return
	}
	for _, e := range d.index {
		if rows, read := d.rows[e.name]; read && rows < e.rows {
			d.note(CutFile, d.lines[e.name], nil, "section %s has %d rows, INDEX_TABLE says %d: rows are missing", e.name, rows, e.rows)
		} else if !read && d.formOf(e.name) != nil {
			d.note(CutFile, 0, nil, "no section %s, which INDEX_TABLE lists: it is missing", e.name)
		}
	}
}

// sortProblems sorts the problems by line.
func (d *draft) sortProblems() {
	slices.SortStableFunc(d.problems, func(a, b fabric.Problem) int { return cmp.Compare(a.Line, b.Line) })
}

func (d *draft) readRun(r *row) { d.date = r.words(0) }

func (d *draft) readNode(r *row) {
	n := fabric.Node{
		GUID: r.guid(0), Type: fabric.NodeType(r.number(1, 255)), NumPorts: fabric.PortNum(r.number(2, uint64(fabric.MaxPortNum))),
		Description: r.words(3), SystemGUID: r.guid(4), VendorID: uint32(r.number(5, 0xffffff)), DeviceID: uint16(r.number(6, 0xffff)),
	}
	switch {
	case r.err != nil:
		return
	case n.GUID == 0:
		r.refuse("node GUID 0")
	case n.Type != fabric.CA && n.Type != fabric.Switch && n.Type != fabric.Router:
		r.refuse("node type %d: want 1 for a channel adapter, 2 for a switch, 3 for a router", n.Type)
	case n.NumPorts == 0:
		r.refuse("node %s has no ports; want 1 to %d", n.GUID, fabric.MaxPortNum)
	}
	if r.err == nil {
		d.nodes = append(d.nodes, nodeRow{r.line, n, string(r.text[:min(len(r.text), maxQuoted)])})
	}
}

// port reads a node GUID and a port number, the first cells of rows in many sections.
func (r *row) port() portAt {
	return portAt{r.guid(0), fabric.PortNum(r.number(1, uint64(fabric.MaxPortNum)))}
}

func (d *draft) readPort(r *row) {
	p := portRow{line: r.line, at: r.port(), guid: r.guid(2), lid: r.cell(3)}
	p.link = fabric.Link{Width: widths[r.small(5, 255)], Speed: speedOf(uint32(r.small(6, 1<<32-1)))}
	p.info = Port{State: PortState(r.small(7, 4)), OpVLs: vlCount(r.small(8, 15)), MTU: mtuBytes(r.small(9, 7)),
		LMC: uint8(r.number(4, fabric.MaxLMC))}
	if r.err == nil {
		d.ports = append(d.ports, p)
	}
}

func (d *draft) readLink(r *row) {
	most := uint64(fabric.MaxPortNum)
	l := linkRow{r.line, [2]portAt{{r.guid(0), fabric.PortNum(r.number(1, most))}, {r.guid(2), fabric.PortNum(r.number(3, most))}}}
	if r.err == nil {
		d.links = append(d.links, l)
	}
}

func (d *draft) readSwitch(r *row) {
	g := r.guid(0)
	if r.err == nil {
		d.switches[g] = Switch{MCastFDBCap: int(r.small(1, 1<<17)), EnhancedPort0: r.small(2, 1) == 1}
	}
}

// readLabel reads the label on the cage of a port. Old versions have only its parts.
func (d *draft) readLabel(r *row) {
	at, label := r.port(), r.cell(2)
	if r.err != nil {
		return
	}
	if label == "" {
		label = joinLabel(r)
	}
	if label != "" {
		d.labels[at] = label
	}
}

// joinLabel joins the parts of a label as newer versions do:
// ASIC/Cage/Port/Split, for an adapter after bus, device and function.
func joinLabel(r *row) string {
	label := ""
	if r.cell(3) != "" {
		label = "B" + r.cell(3) + "D" + r.cell(4) + "F" + r.cell(5)
	}
	for i := 6; i <= 9; i++ {
		switch part := r.cell(i); {
		case part == "", part == "-1":
		case label == "":
			label = part
		default:
			label += "/" + part
		}
	}
	return label
}

func (d *draft) readSM(r *row) {
	s := SM{Node: r.guid(0), Port: r.guid(1), PortNum: fabric.PortNum(r.small(2, uint64(fabric.MaxPortNum))), State: uint8(r.small(3, 255))}
	if r.err == nil {
		d.sms = append(d.sms, s)
	}
}

func (d *draft) readPKey(r *row) {
	at, key := r.port(), fabric.PKey(r.number(2, 0xffff))
	if r.small(3, 1) == 1 {
		key |= fabric.FullMember
	}
	if r.err == nil {
		d.pkeys = append(d.pkeys, pkeyRow{at, key})
	}
}

func (d *draft) readVPort(r *row) {
	at := r.port()
	v := VPort{Index: int(r.small(2, 1<<16))}
	lid := r.number(3, 0xffff)
	if lid <= uint64(fabric.MaxUnicastLID) {
		v.LID = fabric.LID(lid)
	}
	if r.err == nil {
		d.vports = append(d.vports, vportRow{at, v})
	}
}

func (d *draft) readWarning(r *row) {
	w := Warning{Section: r.table.name, Line: r.line, Node: r.guid(0), PortNum: int(r.small(1, 255)), Event: r.cell(2), Summary: r.words(3)}
	if r.err == nil {
		d.warnings = append(d.warnings, w)
	}
}

// widths are the values of PortInfo.LinkWidthActive (IBA 14.2.5.6).
var widths = [256]uint8{1: 1, 2: 4, 4: 8, 8: 12, 16: 2}

// speedCode is a bit of LinkSpeedActv.
type speedCode struct {
	bit   uint32
	speed fabric.Speed
}

// speedCodes has the bits of LinkSpeedActv, the fastest speed first: byte 0 has the speeds
// of PortInfo.LinkSpeedActive, byte 1 those of LinkSpeedExtActive, byte 2 the vendor's,
// byte 3 those of LinkSpeedExtActive2 (ibdm's IBLinkSpeed). Ports at an extended speed also
// have a bit in byte 0.
var speedCodes = []speedCode{
	{1 << 24, fabric.XDR}, {8 << 8, fabric.NDR}, {4 << 8, fabric.HDR}, {2 << 8, fabric.EDR}, {1 << 8, fabric.FDR},
	{1 << 16, fabric.FDR10}, {4, fabric.QDR}, {2, fabric.DDR}, {1, fabric.SDR},
}

func speedOf(code uint32) fabric.Speed {
	for _, c := range speedCodes {
		if code&c.bit != 0 {
			return c.speed
		}
	}
	return fabric.SpeedUnknown
}

// vlCount decodes OperationalVLs (IBA 14.2.5.6) into data VLs.
func vlCount(code uint64) uint8 {
	return [16]uint8{1: 1, 2: 2, 3: 4, 4: 8, 5: 15}[code]
}

// mtuBytes decodes NeighborMTU (IBA 14.2.5.6).
func mtuBytes(code uint64) int {
	if code < 1 || code > 5 {
		return 0
	}
	return 128 << code
}
