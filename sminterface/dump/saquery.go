package dump

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// The first lines of records (infiniband-diags, saquery.c).
var (
	memberDump = []byte("MCMemberRecord member dump:") // saquery -m
	groupDump  = []byte("MCMemberRecord group dump:")  // saquery -g
	recordDump = []byte("MCMember Record dump:")       // saquery MCMR
)

// recordHead says whether a line begins a record of saquery.
func recordHead(line []byte) bool {
	return bytes.HasPrefix(line, memberDump) || bytes.HasPrefix(line, groupDump) || bytes.HasPrefix(line, recordDump)
}

// The fields of a record that matter here.
const (
	hasMGID = 1 << iota
	hasMLID
	hasPort
	hasJoin
	hasProxy
	hasSL
)

// saRecord is a record being read.
type saRecord struct {
	at       int       // offset of its first line
	need     int       // fields that this kind of record ends with, or has; 0 before the first record
	fields   []saField // of this kind, in the order of saquery
	field    int       // index in fields of the one to come
	have     int
	mgid     mft.MGID
	mgidText []byte // how mgid stands there
	mlid     fabric.LID
	port     fabric.GUID
	join     uint8
	sl       fabric.SL
	wrong    bool // left out
}

// saField is a line of a record as saquery prints it.
type saField struct {
	key    string // what the line begins with
	bit    int    // 0 for what does not matter here
	digits int    // the most that a number of 0x and digits has; 0 for a GID
	least  uint64
	most   uint64
}

func newSAField(key string, bit, digits int, least, most uint64) saField {
	return saField{"\t\t" + key + strings.Repeat(".", len("MGID....................")-len(key)), bit, digits, least, most}
}

// The fields of each kind of record, in the order of saquery.
var (
	fieldMGID    = newSAField("MGID", hasMGID, 0, 0, 0)
	fieldPort    = newSAField("PortGid", hasPort, 0, 0, 0)
	fieldProxy   = newSAField("ProxyJoin", hasProxy, 1, 0, 1)
	fieldSL      = newSAField("SL", hasSL, 1, 0, 15)
	memberFields = []saField{fieldMGID, newSAField("Mlid", hasMLID, 4, mlids[0], mlids[1]), fieldPort, newSAField("ScopeState", hasJoin, 2, 0, 0xff), fieldProxy, ignored("NodeDescription")}
	groupFields  = []saField{fieldMGID, newSAField("Mlid", hasMLID, 4, mlids[0], mlids[1]), ignored("Mtu"), ignored("pkey"), ignored("Rate"), fieldSL}
	recordFields = []saField{fieldMGID, fieldPort, ignored("qkey"), newSAField("mlid", hasMLID, 4, mlids[0], mlids[1]), ignored("mtu"), ignored("TClass"), ignored("pkey"), ignored("rate"),
		ignored("pkt_life"), fieldSL, ignored("FlowLabel"), ignored("HopLimit"), ignored("Scope"), newSAField("JoinState", hasJoin, 1, 0, 15), fieldProxy}
)

var mlids = [2]uint64{uint64(mft.MinMLID), uint64(mft.MaxMLID)}

func ignored(key string) saField { return newSAField(key, 0, 0, 0, 0) }

// ReadSAQuery reads the groups of a running subnet from what saquery -m, -g or
// MCMR print, or several of these one after another. name is the file's, for
// messages.
//
// A group is named by its MGID. Full members and non-members receive and
// send, send-only ones of either kind send only (IBA 15.2.5.17.1). SLs are in
// saquery -g and MCMR, members in -m and MCMR, and only for those who know the
// SM_Key (--smkey): a group without members is a Missing Problem, and it is one for
// all groups where none has any, as in saquery -g alone. Groups come
// in the order of their MLIDs, then of their MGIDs. Several groups may have one
// MLID, since OpenSM can be told so for IPv6's solicited-node groups. Senders and
// Receivers of a group that are the same are one slice.
//
// Errors are *fabric.ParseError, and the groups are then nil. With
// Options.Lenient these are Problems instead: lines that belong to no record,
// records with a field that is missing or wrong, members that are no end port
// of the fabric, a second MLID or SL for a group (the first counts).
func ReadSAQuery(name string, data []byte, f *fabric.Fabric, opt Options) ([]mft.Group, []Problem, error) {
	src := source{name, data}
	if form := Recognize(data); form != SAQuery {
		r := tableReader{src: src}
		return nil, nil, r.notForm(form, "groups", "what saquery -m or saquery -g print")
	}
	r := newSAReader(src, f)
	var rec saRecord
	for at := 0; at < len(data); {
		if next := rec.printedLine(data, at); next > 0 {
			at = next
			continue
		}
		line, next := cutLine(data, at)
		trimmed := bytes.TrimSpace(line)
		switch {
		case len(trimmed) == 0, trimmed[0] == '#', bytes.HasPrefix(trimmed, []byte("ibwarn: ")):
		case recordHead(trimmed):
			r.end(&rec, at)
			rec.begin(at, trimmed)
		case rec.need == 0:
			r.drop(at, errors.New("text before the first record; want MCMemberRecord member dump:"))
		default:
			if err := rec.line(trimmed); err != nil {
				rec.wrong = true
				r.drop(at, err)
			}
			rec.field++
		}
		at = next
	}
	r.end(&rec, len(data))
	list := r.list()
	if err := src.firstFault(r.faults); err != nil && !opt.Lenient {
		return nil, nil, err
	}
	return list, src.problems(r.faults, r.more), nil
}

// begin starts a record with this first line at offset at.
func (rec *saRecord) begin(at int, head []byte) {
	*rec = saRecord{at: at, mgid: rec.mgid, mgidText: rec.mgidText}
	switch {
	case bytes.HasPrefix(head, memberDump):
		rec.need, rec.fields = hasMGID|hasMLID|hasPort|hasJoin|hasProxy, memberFields
	case bytes.HasPrefix(head, groupDump):
		rec.need, rec.fields = hasMGID|hasMLID|hasSL, groupFields
	default:
		rec.need, rec.fields = hasMGID|hasMLID|hasPort|hasJoin|hasProxy|hasSL, recordFields
	}
}

// printedLine reads the line at offset at if it is the field that saquery prints
// next, and nothing is wrong with it, and gives the start of the next line; 0 for
// any other line.
func (rec *saRecord) printedLine(data []byte, at int) (next int) {
	if rec.field >= len(rec.fields) {
		return 0
	}
	d, field := data[at:], &rec.fields[rec.field]
	if !beginsWith(d, field.key) || rec.have&field.bit != 0 {
		return 0
	}
	value := d[len(field.key):]
	n := 0 // its length
	switch {
	case field.bit == 0:
		n = bytes.IndexByte(value, '\n')
	case field.digits > 0:
		var v uint64
		if v, n = hex0x(value, field.digits); v < field.least || v > field.most {
			return 0
		}
		switch field.bit {
		case hasMLID:
			rec.mlid = fabric.LID(v)
		case hasJoin:
			rec.join = uint8(v & 15)
		case hasSL:
			rec.sl = fabric.SL(v)
		}
	case field.bit == hasMGID && len(rec.mgidText) > 0 && beginsWith(value, string(rec.mgidText)):
		n = len(rec.mgidText) // mostly it is that of the record before
	default:
		var gid [2]uint64
		if gid[0], gid[1], n = gidPrefix(value); n >= len(value) || value[n] != '\n' {
			return 0
		}
		if field.bit == hasPort {
			rec.port = fabric.GUID(gid[1])
			break
		}
		var b [16]byte
		binary.BigEndian.PutUint64(b[:], gid[0])
		binary.BigEndian.PutUint64(b[8:], gid[1])
		if b[0] != 0xff || n == 0 {
			return 0
		}
		rec.mgid, rec.mgidText = netip.AddrFrom16(b), value[:n:n]
	}
	if n <= 0 || n >= len(value) || value[n] != '\n' {
		return 0
	}
	rec.have |= field.bit
	rec.field++
	return at + len(field.key) + n + 1
}

// gidPrefix reads a GID at the start of b, in halves, and says how long it is; n is 0
// when there is none, or it is written in a way that saquery does not have.
func gidPrefix(b []byte) (high, low uint64, n int) {
	var headHigh, headLow uint64 // what precedes ::
	groups, gap := 0, -1         // gap is how many groups do
	if len(b) > 1 && b[0] == ':' && b[1] == ':' {
		gap, n = 0, 2
	}
	for {
		v, k := hexPrefix(b[n:], 4)
		if k == 0 {
			if groups == gap {
				break
			}
			return 0, 0, 0
		}
		high, low = high<<16|low>>48, low<<16|v
		groups++
		if n += k; groups == 8 || n == len(b) || b[n] != ':' {
			break
		}
		if n++; n < len(b) && b[n] == ':' {
			if gap >= 0 {
				return 0, 0, 0
			}
			n++
			headHigh, headLow, gap = high, low, groups
			high, low = 0, 0
		}
	}
	switch {
	case gap < 0 && groups < 8, gap >= 0 && groups == 8:
		return 0, 0, 0
	case gap > 0:
		shift := uint(16 * (8 - gap))
		high |= headHigh<<shift | headLow>>(64-shift) | headLow<<(shift-64)
		low |= headLow << shift
	}
	return high, low, n
}

// line reads a line such as MGID....................ff12:401b:ffff::1.
func (rec *saRecord) line(line []byte) error {
	i := bytes.IndexByte(line, '.')
	if i < 0 {
		return errors.New("want a field of the record, such as MGID....................ff12:401b:ffff::1")
	}
	key := line[:i]
	for i < len(line) && line[i] == '.' {
		i++
	}
	value := line[i:]
	number := func(most uint64) (uint64, error) {
		v, n := hex0x(value, 8)
		if n == 0 || n != len(value) || v > most {
			return 0, fmt.Errorf("%s %q, want 0x0 to %#x", key, value, most)
		}
		return v, nil
	}
	bit := 0
	var v uint64
	var err error
	switch string(key) {
	case "MGID":
		bit = hasMGID
		// Mostly it is that of the record before.
		if len(value) == 0 || string(value) != string(rec.mgidText) {
			var ok bool
			if rec.mgid, ok = parseGID(value); !ok || rec.mgid.As16()[0] != 0xff {
				rec.mgidText = nil
				return fmt.Errorf("MGID %q, want one that begins with ff, like ff12:401b:ffff::1", value)
			}
			rec.mgidText = value
		}
	case "Mlid", "mlid":
		bit = hasMLID
		if v, err = number(uint64(mft.MaxMLID)); err == nil && v < uint64(mft.MinMLID) {
			err = fmt.Errorf("MLID %#x, want %#04x to %#04x", v, uint16(mft.MinMLID), uint16(mft.MaxMLID))
		}
		rec.mlid = fabric.LID(v)
	case "PortGid":
		bit = hasPort
		gid, ok := parseGID(value)
		if !ok {
			return fmt.Errorf("port GID %q, want 128 bits like fe80::2:c903:1:2", value)
		}
		b := gid.As16()
		rec.port = 0
		for _, c := range b[8:] {
			rec.port = rec.port<<8 | fabric.GUID(c)
		}
	case "ScopeState":
		bit = hasJoin
		v, err = number(0xff)
		rec.join = uint8(v & 15)
	case "JoinState":
		bit = hasJoin
		v, err = number(15)
		rec.join = uint8(v)
	case "ProxyJoin":
		bit = hasProxy
		_, err = number(1)
	case "SL":
		bit = hasSL
		v, err = number(15)
		rec.sl = fabric.SL(v)
	case "NodeDescription", "Mtu", "mtu", "Rate", "rate", "pkey", "qkey", "TClass", "pkt_life", "FlowLabel", "HopLimit", "Scope":
		return nil
	default:
		return fmt.Errorf("no field of such a record is called %q", key[:min(len(key), 40)])
	}
	if err != nil {
		return err
	}
	if rec.have&bit != 0 {
		return fmt.Errorf("a second %s in one record", key)
	}
	rec.have |= bit
	return nil
}

func parseGID(b []byte) (netip.Addr, bool) {
	a, err := netip.ParseAddr(string(b))
	return a, err == nil && a.Is6() && a.Zone() == ""
}

// saGroup is what the records say of a group.
type saGroup struct {
	mgid     mft.MGID
	mlid     fabric.LID
	sl       fabric.SL
	hasSL    bool
	sendOnly bool // a member is
	at       int
	members  int
	nameEnd  int // where its name ends in the text of all
}

// saJoin is a port that has joined a group.
type saJoin struct {
	group    int32 // index in groups
	port     fabric.PortID
	sendOnly bool
}

// saReader collects groups.
type saReader struct {
	src     source
	f       *fabric.Fabric
	ports   fabric.GUIDIndex // end ports
	groups  []saGroup
	index   map[mft.MGID]int32 // in groups
	last    int32              // index of the group of the record before, -1 for none
	members []saJoin
	faults  []fault
	more    overflow
}

func newSAReader(src source, f *fabric.Fabric) *saReader {
	r := &saReader{src: src, f: f, last: -1}
	groups := 0
	if i := bytes.Index(src.data, groupDump); i >= 0 {
		// A record for each group, mostly as long as the first.
		if n := bytes.Index(src.data[i+1:], groupDump); n > 0 {
			groups = min((len(src.data)-i)/n+1, mft.NumMLIDs)
		}
	}
	r.index, r.groups = make(map[mft.MGID]int32, groups), make([]saGroup, 0, groups)
	list := make([]fabric.PortID, 0, f.NumSwitches()+len(f.CAPorts()))
	f.EndPorts(func(p fabric.PortID) { list = append(list, p) })
	r.ports.Grow(len(list))
	for _, p := range slices.Backward(list) { // the last of several with one GUID counts
		if g := f.PortGUID(p); r.ports.Find(g) < 0 {
			r.ports.Add(g, int32(p))
		}
	}
	return r
}

func (r *saReader) fault(f fault) {
	if len(r.faults) == maxFaults {
		r.more.add(f.kind)
		return
	}
	r.faults = append(r.faults, f)
}

func (r *saReader) drop(at int, err error) { r.fault(fault{at: at, kind: Dropped, err: err}) }

// end takes a record whose last line precedes offset at.
func (r *saReader) end(rec *saRecord, at int) {
	if rec.need == 0 || rec.wrong {
		return
	}
	if missing := rec.need &^ rec.have; missing != 0 {
		names := [...]string{"MGID", "MLID", "PortGid", "JoinState", "ProxyJoin", "SL"}
		err := fmt.Errorf("the record has no %s", names[bits.TrailingZeros(uint(missing))])
		kind := Dropped
		if at == len(r.src.data) {
			kind, err = Truncated, fmt.Errorf("%w: %w", err, ErrTruncated)
		}
		r.fault(fault{at: rec.at, kind: kind, err: err})
		return
	}
	i := r.last
	if i < 0 || r.groups[i].mgid != rec.mgid {
		var ok bool
		if i, ok = r.index[rec.mgid]; !ok {
			i = int32(len(r.groups))
			r.index[rec.mgid] = i
			r.groups = append(r.groups, saGroup{at: rec.at, mgid: rec.mgid, mlid: rec.mlid})
		}
		r.last = i
	}
	g := &r.groups[i]
	if g.mlid != rec.mlid {
		r.drop(rec.at, fmt.Errorf("group %s has MLID %#04x already", rec.mgid, uint16(g.mlid)))
		return
	}
	if rec.have&hasSL != 0 {
		if g.hasSL && g.sl != rec.sl {
			r.drop(rec.at, fmt.Errorf("group %s has SL %d already", rec.mgid, g.sl))
			return
		}
		g.sl, g.hasSL = rec.sl, true
	}
	if rec.have&hasPort == 0 || rec.port == 0 {
		return // nobody, or nobody that we are told of
	}
	p := r.ports.Find(rec.port)
	switch {
	case p < 0:
		r.drop(rec.at, fmt.Errorf("the fabric has no end port %s", rec.port))
	case rec.join == 0:
		r.drop(rec.at, fmt.Errorf("port %s joins with state 0; want a bit of 1, 2, 4 or 8", rec.port))
	default:
		sendOnly := rec.join&(joinFull|joinNon) == 0
		g.members++
		g.sendOnly = g.sendOnly || sendOnly
		r.members = append(r.members, saJoin{i, fabric.PortID(p), sendOnly})
	}
}

// noMembersError has the name of a group.
type noMembersError string

func (e noMembersError) Error() string {
	return "no members of group " + string(e) + "; saquery -m tells them with --smkey"
}

// list is the groups in order.
func (r *saReader) list() []mft.Group {
	order := make([]int32, len(r.groups))
	start := make([]int, len(r.groups)+2)
	for i := range r.groups {
		order[i] = int32(i)
		start[i+2] = start[i+1] + r.groups[i].members
	}
	ports := make([]fabric.PortID, len(r.members))
	for _, m := range r.members {
		at := &start[m.group+1]
		ports[*at] = m.port
		*at++
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &r.groups[a], &r.groups[b]
		if x.mlid != y.mlid {
			return int(x.mlid) - int(y.mlid)
		}
		return x.mgid.Compare(y.mgid)
	})
	receivers := r.receivers()
	list := make([]mft.Group, len(order))
	var text []byte
	for _, at := range order {
		b := r.groups[at].mgid.As16()
		text = appendGID(text, binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:]))
		r.groups[at].nameEnd = len(text)
	}
	names, from := string(text), 0
	nobody := len(r.members) == 0 && len(order) > 1
	if nobody {
		r.fault(fault{at: r.groups[0].at, kind: Missing, err: fmt.Errorf("no members of any of %d groups; saquery -m tells them with --smkey", len(order))})
	}
	for i, at := range order {
		g := &r.groups[at]
		list[i] = mft.Group{Name: names[from:g.nameEnd], MGID: g.mgid, MLID: g.mlid, SL: g.sl}
		from = g.nameEnd
		if g.members == 0 {
			if !nobody {
				kind := Missing
				if len(r.members) > 0 {
					kind = Contradiction // they were asked for: it has none
				}
				r.fault(fault{at: g.at, kind: kind, err: noMembersError(list[i].Name)})
			}
			continue
		}
		list[i].Senders = ascending(ports[start[at]:start[at+1]:start[at+1]])
		if list[i].Receivers = list[i].Senders; g.sendOnly {
			list[i].Receivers = ascending(receivers[at])
		}
	}
	return list
}

// receivers are the members that receive, of groups of which not all do.
func (r *saReader) receivers() map[int32][]fabric.PortID {
	list := make(map[int32][]fabric.PortID)
	for _, m := range r.members {
		if !m.sendOnly && r.groups[m.group].sendOnly {
			list[m.group] = append(list[m.group], m.port)
		}
	}
	return list
}

// ascending sorts ports and leaves out repetitions.
func ascending(ports []fabric.PortID) []fabric.PortID {
	slices.Sort(ports)
	return slices.Clip(slices.Compact(ports))
}
