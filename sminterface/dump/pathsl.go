package dump

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// pathGroup is the sources, switches or ports, from which all paths have the same SLs.
type pathGroup[K any] struct {
	row     []fabric.SL
	sources []K
}

// pathGroups puts sources with equal rows together, whether or not they share
// them in memory. Groups, and the sources of each, are in the order of list.
// hash is hashSLs, but for tests.
func pathGroups[K any](list []K, row func(K) []fabric.SL, hash func([]fabric.SL) uint64) []pathGroup[K] {
	hashes := make([]uint64, len(list))
	same := make([]int, len(list)) // index of the first source with this row in memory
	first := make(map[*fabric.SL]int)
	for i, s := range list {
		at := &row(s)[0]
		if _, ok := first[at]; !ok {
			first[at] = i
		}
		same[i] = first[at]
	}
	forEach(len(list), func(_, i int) {
		if same[i] == i {
			hashes[i] = hash(row(list[i]))
		}
	})
	var groups []pathGroup[K]
	byHash := make(map[uint64][]int)
	of := make([]int, len(list))
	for i, s := range list {
		if j := same[i]; j < i {
			of[i] = of[j]
			groups[of[i]].sources = append(groups[of[i]].sources, s)
			continue
		}
		of[i] = len(groups)
		for _, g := range byHash[hashes[i]] {
			if slices.Equal(groups[g].row, row(s)) {
				of[i] = g
			}
		}
		if of[i] == len(groups) {
			byHash[hashes[i]] = append(byHash[hashes[i]], of[i])
			groups = append(groups, pathGroup[K]{row: row(s)})
		}
		groups[of[i]].sources = append(groups[of[i]].sources, s)
	}
	return groups
}

// hashSLs mixes eight SLs at a time; what collides is compared.
func hashSLs(row []fabric.SL) uint64 {
	h := uint64(len(row))
	for ; len(row) >= 8; row = row[8:] {
		h = bits.RotateLeft64((h^eightSLs(row))*0x9e3779b97f4a7c15, 29)
	}
	for _, v := range row {
		h = (h ^ uint64(v)) * 0x9e3779b97f4a7c15
	}
	return h
}

var (
	pathHead = []byte("Path SLs [")
	pathOf   = []byte("switch 0x")
	pathFrom = []byte("port 0x")
	pathDLID = []byte("dlid ")
	pathSL   = []byte(" sl ")
)

// lineEnds holds what a line of this package's form ends with, by SL: at most eight
// bytes, as they are in one word of little-endian order, and how many.
var lineEnds = func() (t [256]struct {
	text uint64
	n    int
}) {
	for sl := range t {
		s := fmt.Sprintf("%s%d\n", pathSL, sl)
		if fabric.SL(sl) == lft.UnknownSL {
			s = fmt.Sprintf("%s%s\n", pathSL, unknownSL)
		}
		t[sl].text, t[sl].n = eightBytes(s+"  "), len(s)
	}
	return t
}()

// unknownSL is written for lft.UnknownSL.
const unknownSL = "?"

// sameSLs is how many SLs row begins with that are like the first.
func sameSLs(row []fabric.SL) int {
	n, all := 0, uint64(row[0])*0x0101010101010101
	for ; len(row)-n >= 8; n += 8 {
		if other := eightSLs(row[n:]) ^ all; other != 0 {
			return n + bits.TrailingZeros64(other)/8
		}
	}
	for n < len(row) && row[n] == row[0] {
		n++
	}
	return n
}

// eightSLs reads a word of little-endian order.
func eightSLs(row []fabric.SL) uint64 {
	row = row[:8]
	return uint64(row[0]) | uint64(row[1])<<8 | uint64(row[2])<<16 | uint64(row[3])<<24 |
		uint64(row[4])<<32 | uint64(row[5])<<40 | uint64(row[6])<<48 | uint64(row[7])<<56
}

// WritePathSLs writes path SLs in the form of this package, which no other
// program has:
//
//	Path SLs [1-40] of 16 switches
//	switch 0x0000000000200000 "switch 0,0"
//	switch 0x0000000000200001 "switch 0,1"
//	dlid 1-5 sl 0
//	dlid 6 sl 1
//	dlid 7-40 sl 0
//
// The first line has the range of the DLIDs and the number of switches. Then
// there is a block for each of the different rows of SLs, with a blank line
// before all but the first: the switches that the row is of, by the switch that
// the sender's port hangs on, or is the port 0 of, and the SLs of all DLIDs in
// order, a line for each run of DLIDs with the same; ? is an SL that is not known.
// Source ports with SLs of their own have lines with node GUID and port number,
//
//	port 0x0000000000100001[1] "host 0,0"
//
// after the switches, and the first line has their number, too: of 16 switches and 1
// ports. Switches come by GUID, ports by GUID and number, and
// blocks by their first switch, else port, so that equal path SLs give equal bytes.
//
// Of opt, Lean leaves out the node descriptions, and Only all other switches and what
// hangs on them.
// Errors are those of w, and path SLs or options that do not belong to the
// fabric.
func WritePathSLs(w io.Writer, f *fabric.Fabric, p *lft.PathSLs, opt WriteOptions) error {
	if err := checkPathSLs(f, p); err != nil {
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
		n := f.Owner(port)
		if opt.Only == nil || slices.Contains(list, n) || f.Peer(port) != fabric.NoPort && slices.Contains(list, f.Owner(f.Peer(port))) {
			sources = append(sources, pathSource{n, port})
		}
	}
	groups := pathGroups(sources, func(s pathSource) []fabric.SL {
		if s.port != fabric.NoPort {
			return p.PortRow(s.port)
		}
		return p.Given(s.node)
	}, hashSLs)
	head := fmt.Sprintf("%s1-%d] of %d switches", pathHead, p.MaxLID(), len(list))
	if ports := len(sources) - len(list); ports > 0 {
		head += fmt.Sprintf(" and %d ports", ports)
	}
	if _, err := io.WriteString(w, head+"\n"); err != nil {
		return err
	}
	return writeInOrder(w, len(groups), func(_, i int, b []byte) []byte {
		if i > 0 {
			b = append(b, '\n')
		}
		g := &groups[i]
		for _, s := range g.sources {
			if s.port == fabric.NoPort {
				b = append(b, "switch "...)
				b = f.Node(s.node).GUID.Append(b)
			} else {
				b = append(b, "port "...)
				b = f.Node(s.node).GUID.Append(b)
				b = fmt.Appendf(b, "[%d]", f.Num(s.port))
			}
			if !opt.Lean {
				b = append(b, ' ', '"')
				b = appendDescription(b, f.Node(s.node).Description)
				b = append(b, '"')
			}
			b = append(b, '\n')
		}
		for from := 1; from < len(g.row); {
			const most = len("dlid 12345-12345") + 8
			b = slices.Grow(b, most)
			line := b[len(b):][:most]
			binary.LittleEndian.PutUint64(line, dlidWord)
			n := len("dlid ")
			n += putDecimal(line[n:], from)
			sl := g.row[from]
			to := from + sameSLs(g.row[from:])
			if to-1 > from {
				line[n] = '-'
				n += 1 + putDecimal(line[n+1:], to-1)
			}
			end := &lineEnds[sl]
			binary.LittleEndian.PutUint64(line[n:], end.text)
			b = b[:len(b)+n+end.n]
			from = to
		}
		return b
	})
}

// pathSource is a switch, or a port with path SLs of its own.
type pathSource struct {
	node fabric.NodeID
	port fabric.PortID // NoPort for a switch
}

var dlidWord = eightBytes("dlid    ")

// putDecimal puts a LID in decimal at the start of b, which has eight bytes or more,
// and gives its length.
func putDecimal(b []byte, v int) int {
	n := 0
	if v >= 10000 {
		b[0] = '0' + byte(v/10000)
		binary.LittleEndian.PutUint32(b[1:], binary.LittleEndian.Uint32(fourDigits[v%10000][:]))
		return 5
	}
	switch {
	case v < 10:
		n = 1
	case v < 100:
		n = 2
	case v < 1000:
		n = 3
	default:
		n = 4
	}
	binary.LittleEndian.PutUint32(b, binary.LittleEndian.Uint32(fourDigits[v][:])>>(32-8*n))
	return n
}

// checkPathSLs says whether path SLs can be those of a fabric.
func checkPathSLs(f *fabric.Fabric, p *lft.PathSLs) error {
	if p.Switches() != f.NumSwitches() {
		return fmt.Errorf("path SLs of %d switches, the fabric has %d", p.Switches(), f.NumSwitches())
	}
	return nil
}

// WriteIBDMPathSLs writes path SLs as ibdmchk -c reads them: a line for each
// source node and DLID of another port, with the source's node GUID, the DLID
// and the SL. That is a line for each pair of CA or router ports, about 25
// bytes. Sources come in OpenSM's order, DLIDs in their own.
//
// Paths whose SL is not known have no lines. Paths from and to switches, which ibdmchk
// -a follows, have none either: ibdmchk takes the SL of a switch's own packets for their
// VL on the first hop, and crashes when the tables have no such VL.
//
// Errors are those of w, path SLs that do not belong to the fabric, and a CA
// whose ports hang on switches with different SLs, since the form has one SL
// for all ports of a node; then nothing has been written.
func WriteIBDMPathSLs(w io.Writer, f *fabric.Fabric, p *lft.PathSLs) error {
	if err := checkPathSLs(f, p); err != nil {
		return err
	}
	type source struct {
		node fabric.NodeID
		row  []fabric.SL
		own  fabric.PortID // no line for this port's LIDs; NoPort when it has several
	}
	var sources []source
	index := make([]int32, f.NumNodes()) // 1 + index in sources
	for i, port := range f.CAPorts() {
		n, s := f.Owner(port), f.CASwitches()[i]
		switch {
		case s == fabric.NoNode:
		case index[n] == 0:
			sources = append(sources, source{n, rowFrom(p, port, s), port})
			index[n] = int32(len(sources))
		default:
			src, row := &sources[index[n]-1], rowFrom(p, port, s)
			if l := differentSL(f, src.row, row); l > 0 {
				return fmt.Errorf("%s has SL %d to LID %d and another port of the node has SL %d: ibdmchk has one SL for all ports of a node",
					f.PortName(port), row[l], l, src.row[l])
			}
			src.own = fabric.NoPort
		}
	}
	slices.SortFunc(sources, func(a, b source) int {
		return cmp.Compare(bits.ReverseBytes64(uint64(f.Node(a.node).GUID)), bits.ReverseBytes64(uint64(f.Node(b.node).GUID)))
	})
	var dlids []fabric.LID
	for l := 1; l <= int(min(p.MaxLID(), f.MaxLID())); l++ {
		if q := f.LIDPort(fabric.LID(l)); q != fabric.NoPort && !f.IsSwitch(f.Owner(q)) {
			dlids = append(dlids, fabric.LID(l))
		}
	}
	return writeInOrder(w, len(sources), func(_, i int, b []byte) []byte {
		src := &sources[i]
		var head [len("0x0123456789abcdef ")]byte
		copy(head[:], f.Node(src.node).GUID.Append(head[:0]))
		head[len(head)-1] = ' '
		for _, l := range dlids {
			if f.LIDPort(l) == src.own || src.row[l] == lft.UnknownSL {
				continue
			}
			b = append(b, head[:]...)
			b = appendDecimal(b, int(l))
			b = append(b, ' ')
			b = appendDecimal(b, int(src.row[l]))
			b = append(b, '\n')
		}
		return b
	})
}

// rowFrom is the SLs of paths from a port on switch s.
func rowFrom(p *lft.PathSLs, port fabric.PortID, s fabric.NodeID) []fabric.SL {
	if row := p.PortRow(port); row != nil {
		return row
	}
	return p.Given(s)
}

// differentSL is the lowest LID with an owner to which the rows have different
// SLs, 0 for none.
func differentSL(f *fabric.Fabric, a, b []fabric.SL) fabric.LID {
	for l := 1; l < len(a); l++ {
		if a[l] != b[l] && f.LIDPort(fabric.LID(l)) != fabric.NoPort {
			return fabric.LID(l)
		}
	}
	return 0
}

// pathReader reads path SLs of any form.
type pathReader struct {
	src    source
	f      *fabric.Fabric
	opt    Options
	faults []fault
	more   overflow
	failed bool

	paths *lft.PathSLs
	given []bool // by switch: it has a row

	// Of the form of this package.
	high    int             // highest DLID by the first line
	first   sourceCounts    // switches and ports by the first line
	count   sourceCounts    // how many there have been
	inBlock bool            // there has been a line switch ..
	block   []fabric.NodeID // the switches of the block that the fabric has
	ports   []fabric.PortID // and its ports
	row     []fabric.SL     // of block, nil before its first dlid line
	next    int             // the DLID that the block must go on with

	// Of ibdmchk's.
	rows   [][]fabric.SL // by switch: UnknownSL where nothing is given; nil without lines
	paired map[fabric.PortID]*pairs
	source fabric.GUID      // of the last line of a pair
	from   []fabric.PortID  // the ports of source, or that the lines of a section are of
	byGUID fabric.GUIDIndex // PortIDs of CA and router ports on switches
	lids   []ownerKind      // by LID, up to the fabric's highest
}

// pairs is what ibdmchk's forms give for a source port.
type pairs struct {
	given []uint64    // a bit by LID
	own   []fabric.SL // nil while the row of its switch has the same SLs
}

func (p *pairs) has(lid uint64) bool { return p.given[lid/64]>>(lid%64)&1 != 0 }

// ownerKind is what kind of port a LID belongs to.
type ownerKind uint8

const (
	noPort ownerKind = iota
	switchPort
	hostPort // of a CA or router
)

// ownerKinds is by LID, up to the highest of f.
func ownerKinds(f *fabric.Fabric) []ownerKind {
	list := make([]ownerKind, int(f.MaxLID())+1)
	for l := range list {
		if p := f.LIDPort(fabric.LID(l)); p == fabric.NoPort {
			continue
		} else if f.IsSwitch(f.Owner(p)) {
			list[l] = switchPort
		} else {
			list[l] = hostPort
		}
	}
	return list
}

// ReadPathSLs reads path SLs: what WritePathSLs writes, or ibdmchk -c reads,
// which are lines with a source's node GUID, a DLID and an SL, or sections that
// begin with a line Channel Adapter 0x0123456789abcdef, .. with the source's
// port GUID, and have a line with DLID, colon and SL for each path. The form is
// recognized by content. name is the file's, for messages.
//
// The result goes to the highest LID of f and of the file, and has lft.UnknownSL where
// the text says nothing: ibdmchk's form has no lines for paths from switches. Source
// ports whose SLs are not those of the others on their switch have rows of their own. A
// switch without a block of this package's form is a Missing Problem; for ibdmchk's
// forms there is one for all paths between CA or router ports that have no line.
//
// Errors are *fabric.ParseError, and the path SLs are then nil. With
// Options.Lenient these are Problems instead: unknown sources and DLIDs, SLs
// above 15, a second SL for a path (the first counts), lines that are
// nothing of the form, blocks with gaps and files that end too early.
func ReadPathSLs(name string, data []byte, f *fabric.Fabric, opt Options) (*lft.PathSLs, []Problem, error) {
	r := &pathReader{src: source{name, data}, f: f, opt: opt}
	var line func(at int, line []byte)
	form := Recognize(data)
	switch form {
	case PathSLs:
		line = r.blockLine
	case IBDMPathSLs:
		line = r.ibdmLine
		r.rows = make([][]fabric.SL, f.NumSwitches())
		r.paired = make(map[fabric.PortID]*pairs)
		r.lids = ownerKinds(f)
		r.byGUID.Grow(len(f.CAPorts()))
		for i, p := range f.CAPorts() {
			if f.CASwitches()[i] != fabric.NoNode && r.byGUID.Find(f.PortGUID(p)) < 0 {
				r.byGUID.Add(f.PortGUID(p), int32(p))
			}
		}
	default:
		t := tableReader{src: r.src}
		return nil, nil, t.notForm(form, "path SLs", "what ibweave writes, or the lines of ibdmchk -c")
	}
	r.given = make([]bool, f.NumSwitches())
	for at := 0; at < len(data) && !r.failed; {
		if r.row != nil {
			at = r.printedRuns(at) // leaves the last lines
		}
		text, next := cutLine(data, at)
		if text = bytes.TrimSpace(text); len(text) > 0 && text[0] != '#' {
			line(at, text)
			if next == len(data) && data[next-1] != '\n' && !r.failed {
				r.fault(at, Truncated, fmt.Errorf("the last line has no end: %w", ErrTruncated))
			}
		}
		at = next
	}
	if !r.failed {
		if form == PathSLs {
			r.endBlocks()
		} else {
			r.endPairs()
		}
	}
	if err := r.src.firstFault(r.faults); err != nil && !opt.Lenient {
		return nil, nil, err
	}
	return r.paths, r.src.problems(r.faults, r.more), nil
}

func (r *pathReader) fault(at int, kind ProblemKind, err error) {
	if !r.opt.Lenient && kind.fatal() {
		r.failed = true
	}
	if len(r.faults) == maxFaults {
		r.more.add(kind)
		return
	}
	r.faults = append(r.faults, fault{at: at, kind: kind, err: err})
}

func (r *pathReader) drop(at int, format string, args ...any) {
	r.fault(at, Dropped, fmt.Errorf(format, args...))
}

// longestPrinted is more than the lines that printedRuns reads have.
const longestPrinted = 32

// printedRuns reads lines from offset at on that WritePathSLs printed within a block,
// while they give SLs and nothing is wrong with them, and gives the start of the first
// other line.
func (r *pathReader) printedRuns(at int) int {
	d, row, next := r.src.data, r.row, r.next
	for len(d)-at >= longestPrinted {
		line := d[at : at+longestPrinted]
		if string(line[:len("dlid ")]) != "dlid " {
			break
		}
		from, n := printedLID(line[len("dlid "):])
		i := len("dlid ") + n
		to := from
		if line[i] == '-' {
			var m int
			to, m = printedLID(line[i+1:])
			if m == 0 {
				break
			}
			i += 1 + m
		}
		if n == 0 || string(line[i:i+len(" sl ")]) != " sl " || from != next || to < from || to > r.high {
			break
		}
		i += len(" sl ")
		sl, m := printedSL(line[i:])
		if m == 0 {
			break
		}
		for part := row[from : to+1]; len(part) > 0; {
			part = part[copy(part, alike[sl][:]):]
		}
		next = to + 1
		at += i + m
	}
	r.next = next
	return at
}

// alike has many of every SL.
var alike = func() (t [lft.NumSLs][64]fabric.SL) {
	for sl := range t {
		for i := range t[sl] {
			t[sl][i] = fabric.SL(sl)
		}
	}
	return t
}()

// printedLID reads a decimal number of at most five digits at the start of b, which has
// eight bytes or more, and says how many they are, 0 for none or more.
func printedLID(b []byte) (v, n int) {
	w := binary.LittleEndian.Uint64(b) ^ 0x3030303030303030
	// The highest bit of each byte that is no digit, or of one behind it.
	other := (w + 0x7676767676767676 | w) & 0x8080808080808080
	if n = bits.TrailingZeros64(other) / 8; n == 0 || n > 5 {
		return 0, 0
	}
	// Eight digits, with zeros in front, become four numbers, then two, then one.
	w <<= 64 - 8*n
	w = (w*10 + w>>8) & 0x00ff00ff00ff00ff
	w = (w*100 + w>>16) & 0x0000ffff0000ffff
	return int((w*10000 + w>>32) & 0xffffffff), n
}

// printedSL reads an SL and the end of the line at the start of b, and says how long
// that is; n is 0 for anything else.
func printedSL(b []byte) (sl fabric.SL, n int) {
	b = b[:len("15\n")]
	v := b[0] - '0'
	if v > 9 {
		return 0, 0
	}
	if b[1] == '\n' {
		return fabric.SL(v), 2
	}
	u := b[1] - '0'
	if v = 10*v + u; u > 9 || v >= lft.NumSLs || b[2] != '\n' {
		return 0, 0
	}
	return fabric.SL(v), 3
}

// blockLine reads a line of this package's form.
func (r *pathReader) blockLine(at int, line []byte) {
	switch {
	case bytes.HasPrefix(line, pathDLID):
		r.dlidLine(at, line)
	case bytes.HasPrefix(line, pathFrom):
		r.beginSource(at)
		r.portLine(at, line)
	case bytes.HasPrefix(line, pathOf):
		r.beginSource(at)
		v, n := hexPrefix(line[len(pathOf):], 16)
		if rest := line[len(pathOf)+n:]; n == 0 || len(rest) > 0 && !isBlank(rest[0]) {
			r.drop(at, "bad GUID; want switch 0x0123456789abcdef \"..\"")
			return
		}
		r.count.switches++
		guid := fabric.GUID(v)
		s, ok := r.f.SwitchByGUID(guid)
		switch {
		case !ok:
			r.drop(at, "the fabric has no switch %s", guid)
		case r.given[s]:
			r.drop(at, "switch %s for a second time", guid)
		default:
			r.given[s] = true
			r.block = append(r.block, s)
		}
	case bytes.HasPrefix(line, pathHead) && r.paths == nil:
		high, counts, ok := parsePathHead(line)
		if !ok {
			r.drop(at, "want Path SLs [1-N] of M switches, or of M switches and P ports, with N of 0 to %d", fabric.MaxUnicastLID)
			high, counts = int(r.f.MaxLID()), sourceCounts{-1, -1}
		}
		r.high, r.first, r.next = high, counts, 1
		r.paths = lft.UnknownPathSLs(r.f.NumSwitches(), max(fabric.LID(high), r.f.MaxLID()))
	default:
		r.drop(at, "want switch 0x0123456789abcdef \"..\", or dlid 1-5 sl 0")
	}
}

// beginSource is told of a line with a switch or port, which the first after a line with
// DLIDs begins a block with.
func (r *pathReader) beginSource(at int) {
	if r.row != nil {
		r.closeBlock(at)
	}
	r.inBlock = true
}

// portLine reads a line with a source port of its own.
func (r *pathReader) portLine(at int, line []byte) {
	r.count.ports++
	v, n := hexPrefix(line[len(pathFrom):], 16)
	rest, open := bytes.CutPrefix(line[len(pathFrom)+n:], []byte("["))
	num, k := decPrefix(rest, 3)
	rest, shut := bytes.CutPrefix(rest[k:], []byte("]"))
	if n == 0 || k == 0 || !open || !shut || len(rest) > 0 && !isBlank(rest[0]) {
		r.drop(at, "bad port; want port 0x0123456789abcdef[1] \"..\" with the node's GUID")
		return
	}
	node, ok := r.f.NodeByGUID(fabric.GUID(v))
	if !ok || num > uint64(r.f.Node(node).NumPorts) || (num == 0) != r.f.IsSwitch(node) {
		r.drop(at, "the fabric has no source port %s[%d]", fabric.GUID(v), num)
		return
	}
	port := r.f.Port(node, fabric.PortNum(num))
	if r.paths.PortRow(port) != nil || slices.Contains(r.ports, port) {
		r.drop(at, "port %s[%d] for a second time", fabric.GUID(v), num)
		return
	}
	r.ports = append(r.ports, port)
}

// sourceCounts is how many sources path SLs have.
type sourceCounts struct{ switches, ports int }

// parsePathHead reads the first line of this package's form.
func parsePathHead(line []byte) (high int, counts sourceCounts, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("Path SLs [1-"))
	v, n := decPrefix(rest, 5)
	rest, of := bytes.CutPrefix(rest[n:], []byte("] of "))
	m, k := decPrefix(rest, 9)
	rest, switches := bytes.CutPrefix(rest[k:], []byte(" switches"))
	if !ok || !of || n == 0 || k == 0 || v > uint64(fabric.MaxUnicastLID) || !switches {
		return 0, sourceCounts{}, false
	}
	if len(rest) == 0 {
		return int(v), sourceCounts{int(m), 0}, true
	}
	rest, and := bytes.CutPrefix(rest, []byte(" and "))
	ports, k := decPrefix(rest, 9)
	return int(v), sourceCounts{int(m), int(ports)}, and && k > 0 && string(rest[k:]) == " ports"
}

// dlidLine reads a line with a range of DLIDs and their SL.
func (r *pathReader) dlidLine(at int, line []byte) {
	rest := line[len(pathDLID):]
	from, n := decPrefix(rest, 5)
	rest = rest[n:]
	to, m := from, 1
	if len(rest) > 0 && rest[0] == '-' {
		to, m = decPrefix(rest[1:], 5)
		rest = rest[1+m:]
	}
	rest, ok := bytes.CutPrefix(rest, pathSL)
	sl, k := decPrefix(rest, 2)
	unknown := string(rest) == unknownSL
	if unknown {
		sl, k = uint64(lft.UnknownSL), len(rest)
	}
	switch {
	case n == 0 || m == 0 || !ok || k == 0 || k != len(rest):
		r.drop(at, "want dlid 1-5 sl 0, or dlid 6 sl 1")
		return
	case sl >= lft.NumSLs && !unknown:
		r.drop(at, "SL %d, want 0 to %d", sl, lft.NumSLs-1)
		return
	case from == 0 || to < from || to > uint64(r.high):
		r.drop(at, "DLIDs %d to %d, want some of 1 to %d, the lower first", from, to, r.high)
		return
	case !r.inBlock:
		r.drop(at, "no switch before this line; want switch 0x0123456789abcdef \"..\"")
		return
	}
	if r.row == nil {
		r.row = slices.Repeat([]fabric.SL{lft.UnknownSL}, int(r.paths.MaxLID())+1)
	}
	if int(from) != r.next {
		r.drop(at, "the block goes on with DLID %d, want %d", from, r.next)
		if int(from) < r.next {
			return // the first counts
		}
	}
	part := r.row[from : to+1]
	for i := range part {
		part[i] = fabric.SL(sl)
	}
	r.next = int(to) + 1
}

// closeBlock ends the block before the line at offset at.
func (r *pathReader) closeBlock(at int) {
	if r.failed {
		return
	}
	if r.next <= r.high {
		text := bytes.TrimRight(r.src.data[:at], " \t\r\n")
		r.fault(bytes.LastIndexByte(text, '\n')+1, Truncated, fmt.Errorf("the block ends before DLID %d, want up to %d: %w", r.next, r.high, ErrTruncated))
	}
	if r.row != nil && len(r.block) > 0 {
		r.paths.SetRow(r.row, r.block...)
	}
	if r.row != nil && len(r.ports) > 0 {
		r.paths.SetPorts(r.row, r.ports...)
	}
	r.block, r.ports, r.row, r.next = r.block[:0], r.ports[:0], nil, 1
}

// endBlocks looks at what there was in this package's form.
func (r *pathReader) endBlocks() {
	if r.row != nil || len(r.block) > 0 || len(r.ports) > 0 {
		r.closeBlock(len(r.src.data))
	}
	compare := func(what string, have, want int) {
		switch {
		case have < want:
			text := bytes.TrimRight(r.src.data, " \t\r\n")
			r.fault(bytes.LastIndexByte(text, '\n')+1, Truncated, fmt.Errorf("%d %s, but the first line has %d: %w", have, what, want, ErrTruncated))
		case have > want && want >= 0:
			r.fault(-1, Contradiction, fmt.Errorf("%d %s, but the first line has %d", have, what, want))
		}
	}
	compare("switches", r.count.switches, r.first.switches)
	compare("ports", r.count.ports, r.first.ports)
	if r.high < int(r.f.MaxLID()) {
		r.fault(-1, Missing, fmt.Errorf("no path SLs for the LIDs from %d to %d", r.high+1, r.f.MaxLID()))
	}
	for s, ok := range r.given {
		if !ok {
			n := r.f.Node(fabric.NodeID(s))
			r.fault(-1, Missing, fmt.Errorf("no path SLs of switch %s %q", n.GUID, n.Description))
		}
	}
}

var errIBDMPath = errors.New("want a source's node GUID, a DLID and an SL, all but the GUID in decimal: 0x0123456789abcdef 6 1")

// ibdmLine reads a line of ibdmchk -c.
func (r *pathReader) ibdmLine(at int, line []byte) {
	if line[0] != '0' {
		r.ibdmHead(at, line)
		return
	}
	v, n := hex0x(line, 16)
	if n == 0 {
		r.fault(at, Dropped, errIBDMPath)
		return
	}
	i := skipBlanks(line, n)
	if i < len(line) && line[i] == ':' {
		j := skipBlanks(line, i+1)
		sl, k := decPrefix(line[j:], 3)
		switch {
		case k == 0 || j+k != len(line):
			r.drop(at, "want a DLID and an SL: 0x0006 : 1")
		case r.from == nil:
			r.drop(at, "no source before this line; want a line such as Channel Adapter 0x0123456789abcdef, .. with a port GUID")
		default:
			r.path(at, r.from, v, sl)
		}
		return
	}
	dlid, sl, ok := ibdmPair(line[n:])
	if !ok {
		r.fault(at, Dropped, errIBDMPath)
		return
	}
	if guid := fabric.GUID(v); guid != r.source || len(r.from) == 0 {
		if r.source, r.from = guid, r.portsOf(guid); len(r.from) == 0 {
			r.drop(at, "the fabric has no node %s on a switch", guid)
			return
		}
	}
	r.path(at, r.from, dlid, sl)
}

// ibdmPair reads the DLID and the SL that follow the GUID in a line of ibdmchk
// -c; what comes behind them it does not read either.
func ibdmPair(rest []byte) (dlid, sl uint64, ok bool) {
	i := skipBlanks(rest, 0)
	dlid, n := decPrefix(rest[i:], 9)
	j := skipBlanks(rest, i+n)
	sl, m := decPrefix(rest[min(j, len(rest)):], 3)
	end := j + m
	return dlid, sl, i > 0 && n > 0 && j > i+n && m > 0 && (end == len(rest) || isBlank(rest[end]))
}

// ibdmHead reads the first line of a section of ibdmchk -c.
func (r *pathReader) ibdmHead(at int, line []byte) {
	r.source, r.from = 0, nil
	guid, kind, ok := ibdmSource(line)
	if !ok {
		r.drop(at, "want a section's first line such as Channel Adapter 0x0123456789abcdef, .. with a port GUID, or %v", errIBDMPath)
		return
	}
	port := fabric.PortID(r.byGUID.Find(guid))
	ok = port >= 0
	if kind == fabric.Switch {
		var s fabric.NodeID
		if s, ok = r.f.SwitchByGUID(guid); ok {
			port = r.f.PortBase(s)
		}
	}
	if r.from = []fabric.PortID{}; ok {
		r.from = append(r.from, port)
		return
	}
	r.drop(at, "the fabric has no %s with port GUID %s on a switch", kind, guid)
}

// ibdmSource reads the first line of a section of ibdmchk -c.
func ibdmSource(line []byte) (guid fabric.GUID, kind fabric.NodeType, ok bool) {
	for _, kind := range []fabric.NodeType{fabric.CA, fabric.Switch} {
		if rest, ok := bytes.CutPrefix(line, []byte(kind.String()+" ")); ok {
			v, n := hex0x(rest, 16)
			return fabric.GUID(v), kind, n > 0 && n < len(rest) && rest[n] == ','
		}
	}
	return 0, 0, false
}

// portsOf lists the ports that a node's paths begin at: port 0 of a switch, or those of
// a CA or router that hang on switches.
func (r *pathReader) portsOf(guid fabric.GUID) []fabric.PortID {
	list := []fabric.PortID{}
	n, ok := r.f.NodeByGUID(guid)
	if !ok {
		return list
	}
	if r.f.IsSwitch(n) {
		return append(list, r.f.PortBase(n))
	}
	for p := fabric.PortNum(1); p <= r.f.Node(n).NumPorts; p++ {
		if r.switchOf(r.f.Port(n, p)) != fabric.NoNode {
			list = append(list, r.f.Port(n, p))
		}
	}
	return list
}

// switchOf is the switch that a source port hangs on or is the port 0 of, else NoNode.
func (r *pathReader) switchOf(port fabric.PortID) fabric.NodeID {
	n := r.f.Owner(port)
	if peer := r.f.Peer(port); !r.f.IsSwitch(n) {
		if peer == fabric.NoPort {
			return fabric.NoNode
		}
		if n = r.f.Owner(peer); !r.f.IsSwitch(n) {
			return fabric.NoNode
		}
	}
	return n
}

// path enters the SL of a path of one of ibdmchk's forms.
func (r *pathReader) path(at int, from []fabric.PortID, dlid, sl uint64) {
	switch {
	case dlid >= uint64(len(r.lids)) || r.lids[dlid] == noPort:
		r.drop(at, "no port of the fabric has LID %d", dlid)
		return
	case sl >= lft.NumSLs:
		r.drop(at, "SL %d, want 0 to %d", sl, lft.NumSLs-1)
		return
	}
	for _, port := range from {
		s := r.switchOf(port)
		if r.rows[s] == nil {
			r.rows[s] = slices.Repeat([]fabric.SL{lft.UnknownSL}, int(r.f.MaxLID())+1)
		}
		row, p := r.rows[s], r.paired[port]
		if p == nil {
			p = &pairs{given: make([]uint64, len(r.lids)/64+1)}
			r.paired[port] = p
		}
		if p.own != nil {
			row = p.own
		}
		switch was := row[dlid]; {
		case p.has(dlid):
			if was != fabric.SL(sl) {
				r.drop(at, "SL %d from %s to LID %d, which has SL %d already", sl, r.f.PortName(port), dlid, was)
				return
			}
		case was != lft.UnknownSL && was != fabric.SL(sl): // of another port on the switch
			p.own = r.only(p, row)
			row = p.own
			fallthrough
		default:
			row[dlid] = fabric.SL(sl)
			p.given[dlid/64] |= 1 << (dlid % 64)
		}
	}
}

// only is the part of a row that has been given for a port.
func (r *pathReader) only(p *pairs, row []fabric.SL) []fabric.SL {
	row = slices.Clone(row)
	for l := range row {
		if !p.has(uint64(l)) {
			row[l] = lft.UnknownSL
		}
	}
	return row
}

// endPairs makes the path SLs of ibdmchk's lines, and notes which are missing.
func (r *pathReader) endPairs() {
	f := r.f
	r.paths = lft.UnknownPathSLs(f.NumSwitches(), f.MaxLID())
	var list []fabric.NodeID
	for s := range r.rows {
		if r.rows[s] != nil {
			list = append(list, fabric.NodeID(s))
		}
	}
	for _, g := range pathGroups(list, func(s fabric.NodeID) []fabric.SL { return r.rows[s] }, hashSLs) {
		r.paths.SetRow(g.row, g.sources...)
	}
	missing, from, to := 0, fabric.NoPort, fabric.LID(0)
	var without []fabric.PortID // any line, on switches where others have some
	none := &pairs{given: make([]uint64, len(r.lids)/64+1)}
	f.EndPorts(func(port fabric.PortID) {
		s, isSwitch := r.switchOf(port), f.IsSwitch(f.Owner(port))
		if s == fabric.NoNode {
			return
		}
		p, row := r.paired[port], r.rows[s]
		if p == nil {
			p = none
		}
		differs := p.own != nil
		for l := range r.lids {
			if p.has(uint64(l)) || r.lids[l] == noPort || f.LIDPort(fabric.LID(l)) == port {
				continue
			}
			differs = differs || row != nil && row[l] != lft.UnknownSL
			if !isSwitch && r.lids[l] == hostPort {
				if missing == 0 {
					from, to = port, fabric.LID(l)
				}
				missing++
			}
		}
		switch {
		case !differs:
		case p == none:
			without = append(without, port)
		case p.own != nil:
			r.paths.SetPorts(p.own, port)
		default:
			r.paths.SetPorts(r.only(p, row), port)
		}
	})
	if len(without) > 0 {
		r.paths.SetPorts(slices.Repeat([]fabric.SL{lft.UnknownSL}, int(f.MaxLID())+1), without...)
	}
	if missing > 0 {
		what := "1 path between CA or router ports,"
		if missing > 1 {
			what = fmt.Sprintf("%d paths between CA and router ports, the first", missing)
		}
		r.fault(-1, Missing, fmt.Errorf("no SL for %s from %s to LID %d", what, f.PortName(from), to))
	}
}
