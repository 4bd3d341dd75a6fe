package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// WriteLFTs writes opensm-lfts.dump as osm_dump.c does, in the form that opensm
// -R file -U reads. Entries that name no port of the switch have no row. Errors
// are those of w, and tables or options of another fabric.
func WriteLFTs(w io.Writer, f *fabric.Fabric, t *lft.Tables, opt WriteOptions) error {
	if err := lft.CheckFabric(f, t, nil, nil); err != nil {
		return err
	}
	rows := newRowTexts(f, t.MaxLID(), opt.Lean)
	return writeSwitches(w, f, opt.Only, func(b []byte, s fabric.NodeID) []byte {
		node := f.Node(s)
		b = fmt.Appendf(b, "Unicast lids [0-%d] of switch Lid %d guid %s ('", t.MaxLID(), f.LID(f.PortBase(s)), node.GUID)
		b = appendDescription(b, node.Description)
		b = append(b, "'):\n"...)
		b = rows.appendRows(b, t.Row(s), node.NumPorts)
		b = strconv.AppendUint(b, uint64(t.MaxLID()), 10)
		return append(b, " lids dumped\n"...)
	})
}

// lftSection has the fields of a section that only forwarding tables need.
type lftSection struct {
	high int  // highest LID by the first line; -1 if it has none
	hex  bool // ibroute's form of the first line
	even bool // it should have a row for each LID, like the others

	// Filled in by reading.
	last        int      // highest LID of its rows so far, -1 for none
	over        int      // highest LID of a row beyond the tables
	unreachable []uint64 // by LID, a bit: there was a row without a path; nil for none
	plft        int      // 1 + offset of the first PLFT_NUM line, 0 for none
	plfts       uint64   // by number, a bit: the PLFTs that such lines name, bit 63 for all above
	private     bool     // the rows that follow are of a private table other than 0
}

// lftReader reads forwarding tables of any form.
type lftReader struct {
	sectionReader
	anyPort bool
	tables  *lft.Tables
	texts   *rowTexts      // the rows that OpenSM would write
	owners  []atomic.Int64 // by LID: 1 + the first offset of a row that names another owner, 0 for none
}

// ReadLFTs reads forwarding tables: opensm-lfts.dump, what
// ibroute, dump_fts or dump_lfts print (with -a and -n too),
// opensm.fdbs, or the fdbs of ibdiagnet. The form is recognized by
// content. name is the file's, for messages.
//
// Switches are matched by node GUID, entries by LID. A comment
// that gives a LID to another port than f does is a Contradiction,
// for the caller to judge. A switch without a section keeps NoPath
// everywhere and is a Missing Problem, like a switch in
// opensm.fdbs without a row for each LID. Private tables other
// than PLFT 0 are not read; a PrivateTables Problem names them.
// The tables go to the highest LID of f and of the file.
//
// Errors are *fabric.ParseError, and the tables are then nil. With
// Options.Lenient these are Problems instead: LIDs above
// fabric.MaxUnicastLID, ports that the switch does not have
// (Options.AnyPort keeps them), unknown switches, a second section
// for a switch, a second row for a LID with another port (the
// first counts), foreign lines, and sections that end too early.
func ReadLFTs(name string, data []byte, f *fabric.Fabric, opt Options) (*lft.Tables, []fabric.Problem, error) {
	r := &lftReader{sectionReader: newSectionReader(name, data, f, opt), anyPort: opt.AnyPort}
	var read func(*section)
	switch form := Recognize(data); form {
	case LFTs, IBRoute:
		r.findSections(unicastLIDs, r.readUnicastHead)
		read = r.readUnicastSection
	case FDBs:
		r.findSections(dumpRoutes, r.readFDBsHead)
		read = r.readFDBsSection
	default:
		return nil, nil, r.notForm(form, "forwarding tables", "opensm-lfts.dump, opensm.fdbs, or what ibroute or dump_lfts print")
	}
	maxLID := int(f.MaxLID())
	for i := range r.sections {
		if sec := &r.sections[i]; !sec.skip {
			maxLID = max(maxLID, sec.high)
		}
	}
	for {
		over := r.readSections(fabric.LID(maxLID), read)
		if over <= maxLID {
			break
		}
		// The first lines did not tell the highest LID: read all again.
		maxLID = over
	}
	r.checkLast()
	r.joinSections()
	r.findShort()
	r.findOwners()
	r.findPrivate()
	r.findMissing()
	return finish(&r.textReader, r.tables)
}

// readSections reads all sections into new tables and returns the highest LID met.
func (r *lftReader) readSections(maxLID fabric.LID, read func(*section)) int {
	r.tables = lft.NewTables(r.f.NumSwitches(), maxLID)
	r.texts = newRowTexts(r.f, min(maxLID, r.f.MaxLID()), false)
	r.owners = make([]atomic.Int64, int(maxLID)+1)
	r.eachSection(func(_ int, sec *section) {
		sec.findings = findings{lenient: r.lenient}
		sec.ended, sec.rows = false, 0
		sec.lftSection = lftSection{high: sec.high, hex: sec.hex, even: sec.even, last: -1}
		read(sec)
		sec.unreachable = nil
	})
	over := 0
	for i := range r.sections {
		over = max(over, r.sections[i].over)
	}
	return over
}

// checkLast notes if the last section ends at a lower LID than
// all others, as in fdbs that are cut short between two lines.
func (r *lftReader) checkLast() {
	n := len(r.sections) - 1
	if n < 1 || r.sections[n].skip || !r.sections[n].even {
		return
	}
	least := int(fabric.MaxUnicastLID) + 1
	for i := range r.sections[:n] {
		if sec := &r.sections[i]; !sec.skip {
			least = min(least, sec.last)
		}
	}
	if sec := &r.sections[n]; least <= int(fabric.MaxUnicastLID) && sec.last < least {
		sec.add(r.lastLine(sec.end), fabric.Truncated, fmt.Errorf("the last section has fewer rows than every other one: %w", ErrTruncated))
	}
}

// findShort notes sections without faults that should have a row for
// each LID, but have fewer rows than the highest LID in any section.
func (r *lftReader) findShort() {
	most := 0
	for i := range r.sections {
		most = max(most, r.sections[i].last)
	}
	for i := range r.sections {
		if sec := &r.sections[i]; sec.even && !sec.skip && len(sec.faults) == 0 && sec.rows < most {
			r.add(sec.at, fabric.Missing, fmt.Errorf("switch %s has %d rows, want one for each LID up to %d", r.f.Node(sec.sw).GUID, sec.rows, most))
		}
	}
}

// findPrivate notes how many switches have private tables.
func (r *lftReader) findPrivate() {
	private := make(PrivateTablesError)
	first := -1
	for i := range r.sections {
		sec := &r.sections[i]
		if sec.sw == fabric.NoNode || sec.plft == 0 {
			continue
		}
		if len(private) == 0 {
			first = sec.plft - 1
		}
		private[sec.sw] |= sec.plfts
	}
	if len(private) > 0 {
		r.note(first, fabric.PrivateTables, private)
	}
}

// PrivateTablesError has the private LFTs of switches: by number, a bit for each.
type PrivateTablesError map[fabric.NodeID]uint64

func (e PrivateTablesError) Error() string {
	return fmt.Sprintf("%d switches have private tables (PLFT_NUM), as for adaptive routing: the table read here is not all of the path", len(e))
}

// In returns true if adaptive tables have all of these private LFTs.
func (e PrivateTablesError) In(t *adaptive.Tables) bool {
	for s, plfts := range e {
		for ; plfts != 0; plfts &= plfts - 1 {
			if k := bits.TrailingZeros64(plfts); k >= len(t.PLFTs) || !t.PLFTs[k].Has(s) {
				return false
			}
		}
	}
	return true
}

// addEntry checks and enters a row that the tuned loops do
// not read. It returns false if the row is dropped.
func (r *lftReader) addEntry(sec *section, lid uint64, port int, at int) bool {
	node, row := r.f.Node(sec.sw), r.tables.Row(sec.sw)
	switch {
	case lid > uint64(fabric.MaxUnicastLID):
		sec.drop(at, "LID %#x, want at most %#x", lid, fabric.MaxUnicastLID)
		return false
	case port > int(fabric.NoPath), port > int(node.NumPorts) && port != int(fabric.NoPath) && !r.anyPort:
		sec.drop(at, "port %d of switch %s, which has ports 0 to %d", port, node.GUID, node.NumPorts)
		return false
	case int(lid) >= len(row):
		sec.over = max(sec.over, int(lid)) // to be read again with larger tables
		return true
	}
	p, was := fabric.PortNum(port), row[lid]
	if int(lid) <= sec.last && was != p && (was != fabric.NoPath || sec.isUnreachable(lid)) {
		sec.drop(at, "a second row for LID %d of switch %s, with port %d; the first has %d", lid, node.GUID, p, was)
		return false
	}
	if p == fabric.NoPath {
		if sec.unreachable == nil {
			sec.unreachable = make([]uint64, len(row)/64+1)
		}
		sec.unreachable[lid/64] |= 1 << (lid % 64)
	}
	row[lid] = p
	sec.last = max(sec.last, int(lid))
	return true
}

// isUnreachable returns true if there was a row without a path for a LID.
func (sec *section) isUnreachable(lid uint64) bool {
	return sec.unreachable != nil && sec.unreachable[lid/64]>>(lid%64)&1 != 0
}

const unicastLIDs = "Unicast lids "

// readUnicastHead reads the first line of a section of opensm-lfts.dump or of
// ibroute.
func (r *lftReader) readUnicastHead(sec *section, line []byte) (fabric.GUID, error) {
	high, rest, err := sec.readRange(line)
	var guid fabric.GUID
	if err == nil {
		guid, err = sec.readSwitchName(rest)
	}
	if err != nil {
		return 0, fmt.Errorf("%w; want Unicast lids [0-N] of switch Lid L guid 0x0123456789abcdef", err)
	}
	sec.high = high
	return guid, nil
}

// readRange reads a range of LIDs, and returns its end and the text behind it.
func (sec *section) readRange(line []byte) (high int, rest []byte, err error) {
	s := topology.Line{Text: line}
	number := func() int {
		if beginsWith(s.Rest(), "0x") {
			sec.hex = true
			return int(s.Hex0x(8))
		}
		return s.Decimal(9)
	}
	s.Want(unicastLIDs + "[")
	number()
	s.Want("-")
	high = number()
	s.Want("]")
	switch {
	case s.Bad:
		return 0, nil, errors.New("no range of LIDs")
	case high > int(fabric.MaxUnicastLID):
		return 0, nil, fmt.Errorf("highest LID %d, above %d", high, fabric.MaxUnicastLID)
	}
	return high, s.Rest(), nil
}

// readUnicastLine reads any line of opensm-lfts.dump or ibroute,
// from offset at, and returns the offset of the next one.
func (r *lftReader) readUnicastLine(sec *section, at int) int {
	line, next := cutLine(r.data[:sec.end], at)
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0, line[0] == '#', bytes.HasPrefix(line, toolWarning),
		bytes.HasPrefix(line, []byte("Lid ")) && bytes.Contains(line, []byte("Destination")),
		bytes.HasPrefix(line, []byte("Port ")) && bytes.HasSuffix(line, []byte("Info")):
	case sec.ended:
		sec.drop(at, "text between the end of a section and the next one; want Unicast lids ..")
	case bytes.HasSuffix(line, []byte("lids dumped")) && r.readUnicastEnd(sec, at, line):
	default:
		r.readUnicastRow(sec, at, line)
	}
	return next
}

// readUnicastEnd reads the last line of a section; it returns false for any other.
func (r *lftReader) readUnicastEnd(sec *section, at int, line []byte) bool {
	s := topology.Line{Text: line}
	count := s.Decimal(9)
	s.Skip(" ")
	s.Skip("valid ")
	if s.Want("lids dumped"); !s.AtEnd() {
		return false
	}
	sec.ended = true
	want, what := sec.high, "as the highest LID" // OpenSM prints the LID, not a count
	if sec.hex {
		want, what = sec.rows, "rows"
	}
	if count != want {
		sec.add(at, fabric.Truncated, fmt.Errorf("%d lids dumped, but the section has %d %s: %w", count, want, what, ErrTruncated))
	}
	return true
}

// readUnicastRow reads a row of opensm-lfts.dump or ibroute.
func (r *lftReader) readUnicastRow(sec *section, at int, line []byte) {
	s := topology.Line{Text: line}
	lid := s.Hex0x(8)
	s.Blanks()
	port := s.Decimal(9)
	if !s.AtWordEnd() {
		sec.drop(at, "want a row such as 0x0001 002 # .., or N lids dumped")
		return
	}
	sec.rows++
	if r.addEntry(sec, lid, port, at) && int(lid) < len(r.owners) {
		r.checkOwner(int(lid), s.Rest(), at)
	}
}

// checkOwner compares the port GUID in a row's comment with the LID's owner in
// the fabric. For each LID it keeps the first offset where they differ: OpenSM
// would move that row to the LID of the GUID (osm_ucast_file.c, remap_lid).
func (r *lftReader) checkOwner(lid int, comment []byte, at int) {
	guid, ok := commentGUID(comment)
	if !ok {
		return
	}
	owner := r.f.LIDPort(fabric.LID(lid))
	if owner != fabric.NoPort && r.f.PortGUID(owner) == guid {
		return
	}
	for {
		was := r.owners[lid].Load()
		if was > 0 && was <= int64(at+1) || r.owners[lid].CompareAndSwap(was, int64(at+1)) {
			return
		}
	}
}

func commentGUID(comment []byte) (fabric.GUID, bool) {
	_, digits, found := bytes.Cut(comment, []byte("portguid 0x"))
	s := topology.Line{Text: digits, Bad: !found}
	guid := fabric.GUID(s.Hex(16))
	return guid, !s.Bad
}

// findOwners notes each LID that a row gives to another
// port than the fabric, at its first such row.
func (r *lftReader) findOwners() {
	for l := range r.owners {
		at := r.owners[l].Load()
		if at == 0 {
			continue
		}
		line, start := r.lineAt(int(at - 1))
		guid, _ := commentGUID(line)
		_, name, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":")) // "" if the row has none
		if !bytes.Contains(line, []byte("# Channel Adapter ")) {    // other nodes have names from the map of names
			name = nil
		}
		err := fmt.Errorf("LID %d belongs to no port of the fabric, here to %s%s", l, guid, name[:min(len(name), 70)]) // a description has 64 bytes at most
		if p := r.f.LIDPort(fabric.LID(l)); p != fabric.NoPort {
			desc := "'" + r.f.Node(r.f.Owner(p)).Description + "'"
			if r.f.PortGUID(p).IsMade() && bytes.Contains(line, []byte("# Channel Adapter ")) != bytes.Contains(line, []byte("(Channel Adapter ")) && bytes.Contains(line, []byte(desc)) {
				continue
			}
			err = fmt.Errorf("LID %d belongs to %s, %s, in the fabric, here to %s", l, r.f.PortGUID(p), r.f.PortName(p), guid)
		}
		r.note(start, fabric.Contradiction, err)
	}
}
