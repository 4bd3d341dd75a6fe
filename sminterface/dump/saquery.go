package dump

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

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
	at       int // offset of its first line
	need     int // fields that this kind of record ends with, or has
	have     int
	mgid     mft.MGID
	mgidText []byte // how mgid stands there
	mlid     fabric.LID
	port     fabric.GUID
	join     uint8
	sl       fabric.SL
	wrong    bool // left out
}

// ReadSAQuery reads the groups of a running subnet from what saquery -m, -g or
// MCMR print, or several of these one after another. name is the file's, for
// messages.
//
// A group is named by its MGID. Full members and non-members receive and
// send, send-only ones of either kind send only (IBA 15.2.5.17.1). SLs are in
// saquery -g and MCMR, members in -m and MCMR, and only for those who know the
// SM_Key (--smkey): a group without members is a Missing Problem. Groups come
// in the order of their MLIDs, then of their MGIDs. Several groups may have one
// MLID, since OpenSM can be told so for IPv6's solicited-node groups.
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
	r := saReader{src: src, f: f, groups: make(map[mft.MGID]*saGroup), ports: endPortsByGUID(f)}
	var rec *saRecord
	for at := 0; at < len(data); {
		line, next := cutLine(data, at)
		trimmed := bytes.TrimSpace(line)
		switch {
		case len(trimmed) == 0, trimmed[0] == '#', bytes.HasPrefix(trimmed, []byte("ibwarn: ")):
		case recordHead(trimmed):
			r.end(rec, at)
			before := rec
			rec = &saRecord{at: at, need: hasMGID | hasMLID | hasPort | hasJoin | hasProxy}
			if before != nil {
				rec.mgid, rec.mgidText = before.mgid, before.mgidText
			}
			if bytes.HasPrefix(trimmed, groupDump) {
				rec.need = hasMGID | hasMLID | hasSL
			} else if bytes.HasPrefix(trimmed, recordDump) {
				rec.need |= hasSL
			}
		case rec == nil:
			r.drop(at, errors.New("text before the first record; want MCMemberRecord member dump:"))
		default:
			if err := rec.field(trimmed); err != nil {
				rec.wrong = true
				r.drop(at, err)
			}
		}
		at = next
	}
	r.end(rec, len(data))
	list := r.list()
	if err := src.firstFault(r.faults); err != nil && !opt.Lenient {
		return nil, nil, err
	}
	return list, src.problems(r.faults, r.more), nil
}

// field reads a line such as MGID....................ff12:401b:ffff::1.
func (rec *saRecord) field(line []byte) error {
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
		if guid, ok := linkLocalGUID(value); ok {
			rec.port = guid
			break
		}
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

// linkLocalGUID is the GUID in a GID such as fe80::2:c903:1:2, with no other group
// of zeros left out than the one behind fe80.
func linkLocalGUID(b []byte) (guid fabric.GUID, ok bool) {
	if !beginsWith(b, "fe80:") || len(b) < len("fe80::1") || b[5] != ':' {
		return 0, false
	}
	i := len("fe80::")
	for groups := 0; ; i++ {
		v, n := hexPrefix(b[i:], 4)
		if groups++; n == 0 || groups > 4 {
			return 0, false
		}
		guid = guid<<16 | fabric.GUID(v)
		if i += n; i == len(b) {
			return guid, true
		}
		if b[i] != ':' {
			return 0, false
		}
	}
}

func parseGID(b []byte) (netip.Addr, bool) {
	a, err := netip.ParseAddr(string(b))
	return a, err == nil && a.Is6() && a.Zone() == ""
}

// endPortsByGUID is the end ports of a fabric.
func endPortsByGUID(f *fabric.Fabric) map[fabric.GUID]fabric.PortID {
	m := make(map[fabric.GUID]fabric.PortID)
	f.EndPorts(func(p fabric.PortID) { m[f.PortGUID(p)] = p })
	return m
}

// saGroup is what the records say of a group.
type saGroup struct {
	mft.Group
	at    int
	hasSL bool
}

// saReader collects groups.
type saReader struct {
	src    source
	f      *fabric.Fabric
	ports  map[fabric.GUID]fabric.PortID
	groups map[mft.MGID]*saGroup
	last   *saGroup // of the record before
	faults []fault
	more   int
}

func (r *saReader) fault(f fault) {
	if len(r.faults) == maxFaults {
		r.more++
		return
	}
	r.faults = append(r.faults, f)
}

func (r *saReader) drop(at int, err error) { r.fault(fault{at: at, kind: Dropped, err: err}) }

// end takes a record whose last line precedes offset at.
func (r *saReader) end(rec *saRecord, at int) {
	if rec == nil || rec.wrong {
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
	g := r.last
	if g == nil || g.MGID != rec.mgid {
		g = r.groups[rec.mgid]
	}
	if g == nil {
		g = &saGroup{at: rec.at, Group: mft.Group{Name: rec.mgid.String(), MGID: rec.mgid, MLID: rec.mlid}}
		r.groups[rec.mgid] = g
	}
	r.last = g
	if g.MLID != rec.mlid {
		r.drop(rec.at, fmt.Errorf("group %s has MLID %#04x already", rec.mgid, uint16(g.MLID)))
		return
	}
	if rec.have&hasSL != 0 {
		if g.hasSL && g.SL != rec.sl {
			r.drop(rec.at, fmt.Errorf("group %s has SL %d already", rec.mgid, g.SL))
			return
		}
		g.SL, g.hasSL = rec.sl, true
	}
	if rec.have&hasPort == 0 || rec.port == 0 {
		return // nobody, or nobody that we are told of
	}
	p, ok := r.ports[rec.port]
	switch {
	case !ok:
		r.drop(rec.at, fmt.Errorf("the fabric has no end port %s", rec.port))
	case rec.join == 0:
		r.drop(rec.at, fmt.Errorf("port %s joins with state 0; want a bit of 1, 2, 4 or 8", rec.port))
	default:
		g.Senders = append(g.Senders, p)
		if rec.join&(joinFull|joinNon) != 0 {
			g.Receivers = append(g.Receivers, p)
		}
	}
}

// list is the groups in order.
func (r *saReader) list() []mft.Group {
	groups := make([]*saGroup, 0, len(r.groups))
	for _, g := range r.groups {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *saGroup) int {
		return cmp.Or(cmp.Compare(a.MLID, b.MLID), a.MGID.Compare(b.MGID))
	})
	list := make([]mft.Group, len(groups))
	for i, g := range groups {
		slices.Sort(g.Senders)
		g.Senders = slices.Compact(g.Senders)
		slices.Sort(g.Receivers)
		g.Receivers = slices.Compact(g.Receivers)
		if len(g.Senders) == 0 {
			r.fault(fault{at: g.at, kind: Missing, err: fmt.Errorf("no members of group %s; saquery -m tells them with --smkey", g.MGID)})
		}
		list[i] = g.Group
	}
	return list
}
