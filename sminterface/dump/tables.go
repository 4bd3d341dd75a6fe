package dump

import (
	"bytes"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// section is the part of a file that has one switch's table.
type section struct {
	at   int // offset of its first line
	body int // offset of its second line
	end  int // offset of the next section
	sw   fabric.NodeID
	lid  int  // LID of the switch by the first line, 0 when that does not say
	high int  // highest LID by the first line; -1 when that does not say
	hex  bool // ibroute's form of the first line
	skip bool // not to be read
	even bool // its last row should be for the same LID as those of the others

	// What reading it found.
	ended  bool // the last line has been met
	failed bool // a strict reader stops here
	last   int  // highest LID of its rows, -1 for none
	plft   int  // 1 + offset of the first PLFT_NUM line, 0 for none
	faults []fault
	more   overflow // beyond maxFaults
	rows   int
}

// maxFaults bounds the Problems that a reader lists.
const maxFaults = 10000

// rowState is what a worker knows while it reads sections.
type rowState struct {
	last int // highest LID of the section's rows so far, -1 for none
	rows int // rows of the section so far

	over int      // highest LID beyond the tables, in all sections
	odd  []int    // by LID: 1 + the first offset where the owner differs, 0 for none; nil until needed
	none []uint64 // by LID, a bit: the section has a row without a path; nil until needed
}

// begin prepares for a section.
func (st *rowState) begin() {
	st.last, st.rows = -1, 0
	clear(st.none)
}

// tableReader reads the sections of one file into tables.
type tableReader struct {
	src      source
	f        *fabric.Fabric
	opt      Options
	sections []section
	maxLID   fabric.LID // of the tables
	tables   *lft.Tables
	texts    *rowTexts // the rows that OpenSM would write for f
	states   []rowState
}

// ReadLFTs reads forwarding tables: opensm-lfts.dump, what ibroute, dump_fts
// or dump_lfts print (with -a and -n too), opensm.fdbs, or the fdbs of
// ibdiagnet. The form is recognized by content. name is the file's, for
// messages.
//
// Switches are matched by node GUID, entries by LID: where a comment gives a
// LID to another port than f does, there is a Contradiction, and it is up to
// the caller what that means. A switch without a section keeps NoPath
// everywhere and is a Missing Problem, and so is one of opensm.fdbs without a row for
// each LID. Private tables other than PLFT 0 are
// not read, and PrivateTables says so. The tables go to the highest LID of f
// and of the file.
//
// Errors are *fabric.ParseError, and the tables are then nil. With
// Options.Lenient these are Problems instead: LIDs above
// fabric.MaxUnicastLID, ports that the switch does not have, which
// Options.AnyPort keeps, unknown
// switches, a second section for a switch and a second row for a LID with
// another port (the first counts), lines that are nothing of the form, and
// sections that end too early.
func ReadLFTs(name string, data []byte, f *fabric.Fabric, opt Options) (*lft.Tables, []Problem, error) {
	r := &tableReader{src: source{name, data}, f: f, opt: opt}
	form := Recognize(data)
	var marker []byte
	var header func(*section, []byte) (fabric.GUID, error)
	var read func(*rowState, *section)
	switch form {
	case LFTs, IBRoute:
		marker, header, read = unicastLIDs, r.unicastHeader, r.unicastSection
	case FDBs:
		marker, header, read = dumpRoutes, r.fdbsHeader, r.fdbsSection
	default:
		return nil, nil, r.notForm(form, "forwarding tables", "opensm-lfts.dump, opensm.fdbs, or what ibroute or dump_lfts print")
	}
	faults := r.preamble(r.split(marker))
	r.headers(header)
	maxLID := int(f.MaxLID())
	for i := range r.sections {
		if sec := &r.sections[i]; !sec.skip {
			maxLID = max(maxLID, sec.high)
		}
	}
	for {
		over := r.readAll(form, fabric.LID(maxLID), read)
		if over <= maxLID {
			break
		}
		// The first lines did not tell how high the LIDs go: once more.
		maxLID = over
	}
	r.checkLast()
	faults = append(faults, r.checkEven()...)
	problems, err := r.finish(faults, "table")
	if err != nil {
		return nil, nil, err
	}
	return r.tables, problems, nil
}

// notForm says what a file is instead of what a reader wants.
func (r *tableReader) notForm(form Form, what, want string) error {
	if form != Unknown {
		return &fabric.ParseError{File: r.src.name, Err: fmt.Errorf("this is %s; want %s", form, want)}
	}
	at := 0
	for at < len(r.src.data) {
		line, next := cutLine(r.src.data, at)
		if t := bytes.TrimSpace(line); len(t) > 0 && t[0] != '#' && !bytes.HasPrefix(t, fileVersion) {
			return r.src.errorAt(at, fmt.Errorf("no %s; want %s", what, want))
		}
		at = next
	}
	return &fabric.ParseError{File: r.src.name, Err: fmt.Errorf("no %s, the file is empty; want %s", what, want)}
}

// cutLine gives the line of data that starts at i, without its end, and the
// start of the next one.
func cutLine(data []byte, i int) (line []byte, next int) {
	line, next = data[i:], len(data)
	if j := bytes.IndexByte(line, '\n'); j >= 0 {
		line, next = line[:j], i+j+1
	}
	return bytes.TrimSuffix(line, cr), next
}

// split finds the lines that have marker at their start, after one of OpenSM's
// old prefixes in fdbs, and makes a section of each. It returns the offset of
// the first.
func (r *tableReader) split(marker []byte) int {
	d := r.src.data
	// Chunks are searched on all CPUs for markers that begin in them.
	const chunk = 4 << 20
	found := make([][]int, len(d)/chunk+1)
	forEach(len(found), func(_, c int) {
		i, limit := c*chunk, min((c+1)*chunk, len(d))
		for i < limit {
			j := bytes.Index(d[i:min(limit+len(marker)-1, len(d))], marker)
			if j < 0 {
				return
			}
			i += j
			line := bytes.LastIndexByte(d[:i], '\n') + 1
			if i-line <= len("__osm_ucast_mgr_") && (line == i || fdbsHeader(d[line:min(i+len(marker), len(d))]) > 0) {
				found[c] = append(found[c], line)
			}
			i += len(marker)
		}
	})
	for _, list := range found {
		for _, at := range list {
			r.sections = append(r.sections, section{at: at, high: -1, last: -1, sw: fabric.NoNode})
		}
	}
	end := len(d)
	for i := len(r.sections) - 1; i >= 0; i-- {
		r.sections[i].end = end
		end = r.sections[i].at
	}
	return end
}

// preamble looks at what precedes the first section.
func (r *tableReader) preamble(end int) (faults []fault) {
	for at := 0; at < end; {
		line, next := cutLine(r.src.data[:end], at)
		if t := bytes.TrimSpace(line); len(t) > 0 && t[0] != '#' && !bytes.HasPrefix(t, fileVersion) && len(faults) < maxFaults {
			faults = append(faults, fault{at: at, kind: Dropped, err: fmt.Errorf("text before the first section")})
		}
		at = next
	}
	return faults
}

// headers reads the first line of every section and decides which are to be
// read.
func (r *tableReader) headers(header func(*section, []byte) (fabric.GUID, error)) {
	first := make([]int, r.f.NumSwitches()) // 1 + index of the section
	for i := range r.sections {
		sec := &r.sections[i]
		var line []byte
		line, sec.body = cutLine(r.src.data[:sec.end], sec.at)
		guid, err := header(sec, line)
		if err == nil {
			var known bool
			if sec.sw, known = r.f.SwitchByGUID(guid); !known {
				err = fmt.Errorf("the fabric has no switch %s", guid)
			} else if sec.skip {
				continue
			} else if j := first[sec.sw]; j > 0 {
				err = fmt.Errorf("a second section for switch %s, the first is in line %d", guid, r.src.number(r.sections[j-1].at))
			} else {
				first[sec.sw] = i + 1
			}
		}
		if err != nil {
			sec.skip = true
			sec.sw = fabric.NoNode
			sec.faults = append(sec.faults, fault{at: sec.at, kind: Dropped, err: err})
		}
	}
}

// readAll reads all sections into new tables and returns the highest LID met.
func (r *tableReader) readAll(form Form, maxLID fabric.LID, read func(*rowState, *section)) int {
	r.maxLID = maxLID
	r.tables = lft.NewTables(r.f.NumSwitches(), maxLID)
	if form != FDBs {
		r.texts = newRowTexts(r.f, min(maxLID, r.f.MaxLID()), form, false)
	}
	r.states = make([]rowState, workers(len(r.sections)))
	forEach(len(r.sections), func(w, i int) {
		sec := &r.sections[i]
		if sec.skip {
			return
		}
		sec.faults, sec.more = nil, overflow{}
		sec.ended, sec.failed, sec.plft = false, false, 0
		st := &r.states[w]
		st.begin()
		read(st, sec)
		sec.last, sec.rows = st.last, st.rows
	})
	over := 0
	for i := range r.states {
		over = max(over, r.states[i].over)
	}
	return over
}

// checkLast looks whether the last section has fewer rows than all others,
// which is how fdbs look that are cut short between two lines.
func (r *tableReader) checkLast() {
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
		r.fault(sec, fault{at: r.lastLine(sec), kind: Truncated,
			err: fmt.Errorf("the last section has fewer rows than every other one: %w", ErrTruncated)})
	}
}

// checkEven looks for sections without faults that have fewer rows than there are LIDs up to the
// highest of all sections.
func (r *tableReader) checkEven() (faults []fault) {
	most := 0
	for i := range r.sections {
		most = max(most, r.sections[i].last)
	}
	for i := range r.sections {
		if sec := &r.sections[i]; sec.even && !sec.skip && len(sec.faults) == 0 && sec.rows < most && len(faults) < maxFaults {
			faults = append(faults, fault{at: sec.at, kind: Missing,
				err: fmt.Errorf("switch %s has %d rows, want one for each LID up to %d", r.f.Node(sec.sw).GUID, sec.rows, most)})
		}
	}
	return faults
}

// finish collects what was found wrong: the error of a strict reader, or the
// Problems. what names that which a switch without a section lacks.
func (r *tableReader) finish(faults []fault, what string) ([]Problem, error) {
	var more overflow
	private, at := 0, 0
	have := make([]bool, r.f.NumSwitches())
	several := make([]bool, r.f.NumSwitches())
	for i := range r.sections {
		sec := &r.sections[i]
		faults = append(faults, sec.faults...)
		more.join(sec.more)
		if sec.sw == fabric.NoNode {
			continue
		}
		if sec.plft > 0 && !several[sec.sw] {
			if private == 0 {
				at = sec.plft - 1
			}
			several[sec.sw] = true
			private++
		}
		if !sec.skip {
			have[sec.sw] = true
		}
	}
	if err := r.src.firstFault(faults); err != nil && !r.opt.Lenient {
		return nil, err
	}
	faults = append(faults, r.ownerFaults()...)
	if private > 0 {
		faults = append(faults, fault{at: at, kind: PrivateTables,
			err: fmt.Errorf("%d switches have private tables (PLFT_NUM), as for adaptive routing: the table read here is not all of the path", private)})
	}
	for s, ok := range have {
		if !ok {
			n := r.f.Node(fabric.NodeID(s))
			faults = append(faults, fault{at: -1, kind: Missing, err: fmt.Errorf("no %s of switch %s %q", what, n.GUID, n.Description)})
		}
	}
	return r.src.problems(faults, more), nil
}

// fault notes something wrong in a section; a strict reader goes no further.
func (r *tableReader) fault(sec *section, f fault) {
	if !r.opt.Lenient && f.kind.fatal() {
		sec.failed = true
	}
	if len(sec.faults) == maxFaults {
		sec.more.add(f.kind)
		return
	}
	sec.faults = append(sec.faults, f)
}

// drop notes a line that is left out.
func (r *tableReader) drop(sec *section, at int, format string, args ...any) {
	r.fault(sec, fault{at: at, kind: Dropped, err: fmt.Errorf(format, args...)})
}

// put enters one row that the fast loops have no place for, after checking
// everything about it. It says whether the row counts.
func (r *tableReader) put(st *rowState, sec *section, row []fabric.PortNum, lid, port, at int) bool {
	ports := r.f.Node(sec.sw).NumPorts
	switch {
	case lid > int(fabric.MaxUnicastLID):
		r.drop(sec, at, "LID %#x, want at most %#x", lid, fabric.MaxUnicastLID)
		return false
	case port > int(fabric.NoPath), port > int(ports) && port != int(fabric.NoPath) && !r.opt.AnyPort:
		r.drop(sec, at, "port %d of switch %s, which has ports 0 to %d", port, r.f.Node(sec.sw).GUID, ports)
		return false
	case lid >= len(row):
		st.over = max(st.over, lid) // to be read again
		return true
	}
	p := fabric.PortNum(port)
	if was := row[lid]; lid <= st.last {
		given := was != fabric.NoPath || (st.none != nil && st.none[lid/64]>>(lid%64)&1 != 0)
		if given && was != p {
			r.drop(sec, at, "a second row for LID %d of switch %s, with port %d; the first has %d", lid, r.f.Node(sec.sw).GUID, p, was)
			return false
		}
	}
	if p == fabric.NoPath {
		if st.none == nil {
			st.none = make([]uint64, int(r.maxLID)/64+1)
		}
		st.none[lid/64] |= 1 << (lid % 64)
	}
	row[lid] = p
	st.last = max(st.last, lid)
	return true
}

// lastLine is the offset of the last line of a section that is not empty.
func (r *tableReader) lastLine(sec *section) int {
	text := bytes.TrimRight(r.src.data[sec.at:sec.end], " \t\r\n")
	return sec.at + bytes.LastIndexByte(text, '\n') + 1
}
