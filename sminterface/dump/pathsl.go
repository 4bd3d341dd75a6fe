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
	"github.com/ibweave/ibweave/lft"
)

// WritePathSLs writes path SLs in a format of this package, which no other program
// uses:
//
//	Path SLs [1-40] of 16 switches
//	switch 0x0000000000200000 "switch 0,0"
//	switch 0x0000000000200001 "switch 0,1"
//	dlid 1-5 sl 0
//	dlid 6 sl 1
//	dlid 7-40 sl 0
//
// The first line has the range of the DLIDs and the number of switches. Then there is
// a block for each different row of SLs, with a blank line before each except the
// first. A block lists the switches with that row, which is for senders that are
// cabled to the switch or are its port 0. Then it has the SLs of all DLIDs in order,
// a line for each run of DLIDs with the same SL; ? stands for an unknown SL. Source
// ports with SLs of their own have lines with node GUID and port number,
//
//	port 0x0000000000100001[1] "host 0,0"
//
// after the switches, and the first line has their number, too: of 16 switches and 1
// ports. Switches are sorted by GUID, ports by GUID and number, and blocks by their
// first switch, else port, so that equal path SLs give equal bytes.
//
// opt.Lean leaves out the node descriptions; opt.Only leaves out all other switches
// and the ports on them. Errors are those of w, and path SLs or options of another
// fabric.
func WritePathSLs(w io.Writer, f *fabric.Fabric, p *lft.PathSLs, opt WriteOptions) error {
	if err := lft.CheckFabric(f, nil, nil, p); err != nil {
		return err
	}
	list, err := switchesToWrite(f, opt.Only)
	if err != nil {
		return err
	}
	slices.Sort(list) // NodeIDs are in the order of GUIDs
	sources := make([]pathSource, 0, len(list))
	for _, s := range list {
		sources = append(sources, pathSource{s, fabric.NoPort})
	}
	for _, port := range p.Ports() {
		at := f.Attachment(port)
		if opt.Only == nil || at != fabric.NoPort && slices.Contains(list, f.Owner(at)) {
			sources = append(sources, pathSource{f.Owner(port), port})
		}
	}
	head := fmt.Sprintf("Path SLs [1-%d] of %d switches", p.MaxLID(), len(list))
	if ports := len(sources) - len(list); ports > 0 {
		head += fmt.Sprintf(" and %d ports", ports)
	}
	if _, err := io.WriteString(w, head+"\n"); err != nil {
		return err
	}
	blocks := pathBlocks(p, sources)
	return writeInOrder(w, len(blocks), func(i int, b []byte) []byte {
		if i > 0 {
			b = append(b, '\n')
		}
		for _, s := range blocks[i].sources {
			b = appendPathSource(b, f, s, opt.Lean)
		}
		return appendPathRow(b, blocks[i].row)
	})
}

// pathSource is a switch, or a port with path SLs of its own.
type pathSource struct {
	node fabric.NodeID
	port fabric.PortID // NoPort for a switch
}

// pathBlock has sources whose paths all have the same SLs.
type pathBlock struct {
	row     []fabric.SL
	sources []pathSource
}

// pathBlocks groups sources with equal rows, whether or not the rows share
// memory. Blocks, and the sources of each, are in the order of sources.
func pathBlocks(p *lft.PathSLs, sources []pathSource) []pathBlock {
	var blocks []pathBlock
	byRow := make(map[*fabric.SL]int) // rows that are shared need not be compared
	byText := make(map[string]int)
	for _, s := range sources {
		row := p.PortRow(s.port)
		if s.port == fabric.NoPort {
			row = p.Given(s.node)
		}
		i, known := byRow[&row[0]]
		if !known {
			text := make([]byte, len(row))
			for l, sl := range row {
				text[l] = byte(sl)
			}
			if i, known = byText[string(text)]; !known {
				i = len(blocks)
				blocks = append(blocks, pathBlock{row: row})
				byText[string(text)] = i
			}
			byRow[&row[0]] = i
		}
		blocks[i].sources = append(blocks[i].sources, s)
	}
	return blocks
}

// appendPathSource appends the line of a source in the form of this package.
func appendPathSource(b []byte, f *fabric.Fabric, s pathSource, lean bool) []byte {
	node := f.Node(s.node)
	if s.port == fabric.NoPort {
		b = fmt.Appendf(b, "switch %s", node.GUID)
	} else {
		b = fmt.Appendf(b, "port %s[%d]", node.GUID, f.Num(s.port))
	}
	if !lean {
		b = append(b, " \""...)
		b = appendDescription(b, node.Description)
		b = append(b, '"')
	}
	return append(b, '\n')
}

// unknownSL is written for lft.UnknownSL.
const unknownSL = "?"

// appendPathRow appends a line for each run of DLIDs with the same SL.
func appendPathRow(b []byte, row []fabric.SL) []byte {
	for from := 1; from < len(row); {
		to := from
		for to+1 < len(row) && row[to+1] == row[from] {
			to++
		}
		b = append(b, "dlid "...)
		b = strconv.AppendInt(b, int64(from), 10)
		if to > from {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(to), 10)
		}
		b = append(b, " sl "...)
		if row[from] == lft.UnknownSL {
			b = append(b, unknownSL...)
		} else {
			b = strconv.AppendUint(b, uint64(row[from]), 10)
		}
		b = append(b, '\n')
		from = to + 1
	}
	return b
}

// ReadPathSLs reads path SLs in the format of WritePathSLs, or in that of ibdmchk -c: lines with a
// source's node GUID, a DLID and an SL. It recognizes the format by content. name is the file's,
// for messages.
//
// The result goes to the highest LID of f and of the file, and has lft.UnknownSL where the text has
// no SL: ibdmchk's format has no lines for paths from switches. Source ports whose SLs differ from
// those of the others on their switch have rows of their own. In this package's format, a switch
// without a block is a Missing Problem; in ibdmchk's format there is one such Problem for all paths
// between CA or router ports without a line.
//
// Errors are *fabric.ParseError, and the path SLs are then nil. With Options.Lenient these are
// Problems instead: unknown sources and DLIDs, SLs above 15, a second SL for a path (the first
// counts), foreign lines, blocks with gaps, and files that end too early.
func ReadPathSLs(name string, data []byte, f *fabric.Fabric, opt Options) (*lft.PathSLs, []fabric.Problem, error) {
	text := newTextReader(name, data, opt)
	switch form := Recognize(data); form {
	case PathSLs:
		return readPathBlocks(text, f)
	case IBDMPathSLs:
		return readPathPairs(text, f)
	default:
		return nil, nil, text.notForm(form, "path SLs", "what ibweave writes, or the lines of ibdmchk -c")
	}
}

// eachPathLine calls read for every line that is neither blank nor a comment.
func (r *textReader) eachPathLine(read func(at int, line []byte) error) {
	r.eachLine(func(at int, line []byte) error {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			return nil
		}
		return read(at, line)
	})
	r.checkEnd('#')
}

// pathCounts are numbers of sources with path SLs, -1 if unknown.
type pathCounts struct{ switches, ports int }

// pathBlockReader reads path SLs in the form of this package.
type pathBlockReader struct {
	textReader
	f     *fabric.Fabric
	paths *lft.PathSLs
	given []bool     // by switch: it has a row
	high  int        // highest DLID by the first line
	said  pathCounts // as the first line states
	count pathCounts // sources read so far

	// The block that is being read.
	begun    bool            // a source was read, in this block or before
	switches []fabric.NodeID // its sources that the fabric has
	ports    []fabric.PortID
	row      []fabric.SL // nil before its first line with DLIDs
	next     int         // the DLID that must come next
}

func readPathBlocks(text textReader, f *fabric.Fabric) (*lft.PathSLs, []fabric.Problem, error) {
	r := &pathBlockReader{textReader: text, f: f, given: make([]bool, f.NumSwitches())}
	r.eachPathLine(r.readLine)
	if !r.failed {
		r.endBlocks()
	}
	return finish(&r.textReader, r.paths)
}

func (r *pathBlockReader) readLine(at int, line []byte) error {
	s := topology.Line{Text: line}
	switch {
	case r.paths == nil && beginsWith(line, pathHead):
		return r.readHead(line)
	case s.Skip("dlid "):
		return r.readDLIDs(s)
	case s.Skip("switch 0x"):
		return r.readSwitch(at, s)
	case s.Skip("port 0x"):
		return r.readPort(at, s)
	}
	return errors.New("want switch 0x0123456789abcdef \"..\", or dlid 1-5 sl 0")
}

const pathHead = "Path SLs ["

// readHead reads the first line.
func (r *pathBlockReader) readHead(line []byte) (err error) {
	high, counts, ok := parsePathHead(line)
	if !ok {
		err = fmt.Errorf("want Path SLs [1-N] of M switches, or of M switches and P ports, with N of 0 to %d", fabric.MaxUnicastLID)
		high, counts = int(r.f.MaxLID()), pathCounts{-1, -1}
	}
	r.high, r.said, r.next = high, counts, 1
	r.paths = lft.UnknownPathSLs(r.f.NumSwitches(), max(fabric.LID(high), r.f.MaxLID()))
	return err
}

func parsePathHead(line []byte) (high int, counts pathCounts, ok bool) {
	s := topology.Line{Text: line}
	s.Want("Path SLs [1-")
	high = s.Decimal(5)
	s.Want("] of ")
	counts.switches = s.Decimal(9)
	s.Want(" switches")
	if s.Skip(" and ") {
		counts.ports = s.Decimal(9)
		s.Want(" ports")
	}
	return high, counts, s.AtEnd() && high <= int(fabric.MaxUnicastLID)
}

// beginSource handles a line with a source: behind DLIDs it begins a new block.
func (r *pathBlockReader) beginSource(at int) {
	if r.row != nil {
		r.closeBlock(at)
	}
	r.begun = true
}

// readSwitch reads a line with a switch, from the digits of its GUID on.
func (r *pathBlockReader) readSwitch(at int, s topology.Line) error {
	r.beginSource(at)
	guid := fabric.GUID(s.Hex(16))
	if !s.AtWordEnd() {
		return errors.New("bad GUID; want switch 0x0123456789abcdef \"..\"")
	}
	r.count.switches++
	sw, known := r.f.SwitchByGUID(guid)
	switch {
	case !known:
		return fmt.Errorf("the fabric has no switch %s", guid)
	case r.given[sw]:
		return fmt.Errorf("switch %s for a second time", guid)
	default:
		r.given[sw] = true
		r.switches = append(r.switches, sw)
	}
	return nil
}

// readPort reads a line with a port that has SLs of its own,
// from the digits of its node's GUID on.
func (r *pathBlockReader) readPort(at int, s topology.Line) error {
	r.beginSource(at)
	r.count.ports++
	guid := fabric.GUID(s.Hex(16))
	s.Want("[")
	num := s.Decimal(3)
	s.Want("]")
	if !s.AtWordEnd() {
		return errors.New("bad port; want port 0x0123456789abcdef[1] \"..\" with the node's GUID")
	}
	node, known := r.f.NodeByGUID(guid)
	if !known || num > int(r.f.Node(node).NumPorts) || (num == 0) != r.f.IsSwitch(node) {
		return fmt.Errorf("the fabric has no source port %s[%d]", guid, num)
	}
	port := r.f.Port(node, fabric.PortNum(num))
	if r.paths.PortRow(port) != nil || slices.Contains(r.ports, port) {
		return fmt.Errorf("port %s[%d] for a second time", guid, num)
	}
	r.ports = append(r.ports, port)
	return nil
}

// readDLIDs reads a line with a range of DLIDs and their SL, behind the word dlid.
func (r *pathBlockReader) readDLIDs(s topology.Line) (err error) {
	from := s.Decimal(5)
	to := from
	if s.Skip("-") {
		to = s.Decimal(5)
	}
	s.Want(" sl ")
	sl := int(lft.UnknownSL)
	if !s.Skip(unknownSL) {
		if sl = s.Decimal(2); sl >= lft.NumSLs && s.AtEnd() {
			return fmt.Errorf("SL %d, want 0 to %d", sl, lft.NumSLs-1)
		}
	}
	switch {
	case !s.AtEnd():
		return errors.New("want dlid 1-5 sl 0, or dlid 6 sl 1")
	case from == 0 || to < from || to > r.high:
		return fmt.Errorf("DLIDs %d to %d, want some of 1 to %d, the lower first", from, to, r.high)
	case !r.begun:
		return errors.New("no switch before this line; want switch 0x0123456789abcdef \"..\"")
	}
	if r.row == nil {
		r.row = unknownRow(r.paths.MaxLID())
	}
	if from != r.next {
		err = fmt.Errorf("the block goes on with DLID %d, want %d", from, r.next)
		if from < r.next {
			return err // the first SL counts
		}
	}
	for l := from; l <= to; l++ {
		r.row[l] = fabric.SL(sl)
	}
	r.next = to + 1
	return err
}

// unknownRow returns a row of path SLs that are all unknown.
func unknownRow(maxLID fabric.LID) []fabric.SL {
	return slices.Repeat([]fabric.SL{lft.UnknownSL}, int(maxLID)+1)
}

// closeBlock ends the block before the line at offset at.
func (r *pathBlockReader) closeBlock(at int) {
	if r.failed {
		return
	}
	if r.next <= r.high {
		r.add(r.lastLine(at), fabric.Truncated, fmt.Errorf("the block ends before DLID %d, want up to %d: %w", r.next, r.high, ErrTruncated))
	}
	if r.row != nil && len(r.switches) > 0 {
		r.paths.SetRow(r.row, r.switches...)
	}
	if r.row != nil && len(r.ports) > 0 {
		r.paths.SetPorts(r.row, r.ports...)
	}
	r.switches, r.ports, r.row, r.next = r.switches[:0], r.ports[:0], nil, 1
}

// endBlocks closes the last block, and notes what is missing.
func (r *pathBlockReader) endBlocks() {
	if r.row != nil || len(r.switches) > 0 || len(r.ports) > 0 {
		r.closeBlock(len(r.data))
	}
	r.checkCount("switches", r.count.switches, r.said.switches)
	r.checkCount("ports", r.count.ports, r.said.ports)
	if r.high < int(r.f.MaxLID()) {
		r.add(-1, fabric.Missing, fmt.Errorf("no path SLs for the LIDs from %d to %d", r.high+1, r.f.MaxLID()))
	}
	for s, ok := range r.given {
		if !ok {
			n := r.f.Node(fabric.NodeID(s))
			r.add(-1, fabric.Missing, fmt.Errorf("no path SLs of switch %s %q", n.GUID, n.Description))
		}
	}
}

// checkCount compares a number of sources with what the first line says.
func (r *pathBlockReader) checkCount(what string, have, said int) {
	switch {
	case have < said:
		r.add(r.lastLine(len(r.data)), fabric.Truncated, fmt.Errorf("%d %s, but the first line has %d: %w", have, what, said, ErrTruncated))
	case have > said && said >= 0:
		r.add(-1, fabric.Contradiction, fmt.Errorf("%d %s, but the first line has %d", have, what, said))
	}
}
