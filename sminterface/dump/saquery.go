package dump

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// saFields has the fields of records that matter here, by the names that saquery prints; ""
// stands for fields to ignore.
var saFields = map[string]string{
	"MGID": "MGID", "Mlid": "MLID", "mlid": "MLID", "PortGid": "PortGid", "ScopeState": "JoinState",
	"JoinState": "JoinState", "ProxyJoin": "ProxyJoin", "SL": "SL",
	"NodeDescription": "", "Mtu": "", "mtu": "", "Rate": "", "rate": "", "pkey": "",
	"qkey": "", "TClass": "", "pkt_life": "", "FlowLabel": "", "HopLimit": "", "Scope": "",
}

// saRecord is a record being read.
type saRecord struct {
	at    int      // offset of its first line
	need  []string // fields that this kind of record has; nil before the first record
	has   map[string]bool
	wrong bool // it is left out

	mgid mft.MGID
	mlid fabric.LID
	port fabric.GUID
	join mad.JoinState
	sl   fabric.SL
}

// ReadSAQuery reads the groups of a running subnet from what saquery -m, -g
// or MCMR print, or several of these one after another. name is the file's,
// for messages.
//
// A group is named by its MGID. Full members and non-members receive and
// send, send-only ones of either kind send only (IBA 15.2.5.17.1). SLs are in
// saquery -g and MCMR, members in -m and MCMR, and only with the SM_Key
// (--smkey). A group without members is a Contradiction if other groups have
// some. If none has, as in saquery -g alone, one Missing Problem stands for
// all. Groups are sorted by MLID, then by MGID. With an option, OpenSM gives
// one MLID to several of IPv6's solicited-node groups. Senders and Receivers
// of a group are one slice if they are equal.
//
// Errors are *fabric.ParseError, and the groups are then nil. With
// Options.Lenient these are Problems instead: lines that belong to no record,
// records with a field that is missing or wrong, members that are no end port
// of the fabric, a second MLID or SL for a group (the first counts).
func ReadSAQuery(name string, data []byte, f *fabric.Fabric, opt Options) ([]mft.Group, []fabric.Problem, error) {
	r := &saReader{textReader: newTextReader(name, data, opt), ports: make(map[fabric.GUID]fabric.PortID), index: make(map[mft.MGID]int), goneToo: opt.GoneMembers}
	if form := Recognize(data); form != SAQuery {
		return nil, nil, r.notForm(form, "groups", "what saquery -m or saquery -g print")
	}
	f.EndPorts(func(p fabric.PortID) { r.ports[f.PortGUID(p)] = p })
	r.eachLine(r.readLine)
	r.endRecord(len(data))
	return finish(&r.textReader, r.list())
}

// saGroup has the data of a group from its records.
type saGroup struct {
	mgid      mft.MGID
	mlid      fabric.LID
	sl        fabric.SL
	hasSL     bool
	at        int
	gone      bool // it has a member that is no end port of the fabric
	members   []fabric.PortID
	receivers []fabric.PortID // those members that are not send-only
}

// saReader collects groups.
type saReader struct {
	textReader
	ports   map[fabric.GUID]fabric.PortID // end ports
	record  saRecord
	groups  []saGroup
	goneToo bool             // Options.GoneMembers
	index   map[mft.MGID]int // in groups
}

func (r *saReader) readLine(at int, line []byte) error {
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0, line[0] == '#', bytes.HasPrefix(line, libraryWarning):
	case neededFields(line) != nil:
		r.endRecord(at)
		r.record = saRecord{at: at, need: neededFields(line), has: map[string]bool{}}
	case r.record.need == nil:
		return errors.New("text before the first record; want MCMemberRecord member dump:")
	default:
		err := r.record.readField(line)
		r.record.wrong = r.record.wrong || err != nil
		return err
	}
	return nil
}

// recordKinds are the kinds of records (infiniband-diags, saquery.c), by the first line: what
// saquery -m, -g and MCMR print.
var recordKinds = []struct {
	head string
	need []string
}{
	{"MCMemberRecord member dump:", []string{"MGID", "MLID", "PortGid", "JoinState", "ProxyJoin"}},
	{"MCMemberRecord group dump:", []string{"MGID", "MLID", "SL"}},
	{"MCMember Record dump:", []string{"MGID", "MLID", "PortGid", "JoinState", "ProxyJoin", "SL"}},
}

// neededFields returns the fields of a record with this first line, nil for any other line.
func neededFields(line []byte) []string {
	for _, k := range recordKinds {
		if beginsWith(line, k.head) {
			return k.need
		}
	}
	return nil
}

// readField reads a line such as MGID....................ff12:401b:ffff::1.
func (rec *saRecord) readField(line []byte) error {
	i := bytes.IndexByte(line, '.')
	if i < 0 {
		return errors.New("want a field of the record, such as MGID....................ff12:401b:ffff::1")
	}
	key, value := string(line[:i]), bytes.TrimLeft(line[i:], ".")
	field, known := saFields[key]
	switch {
	case !known:
		return fmt.Errorf("no field of such a record is called %q", key[:min(len(key), 40)])
	case field == "":
		return nil
	}
	if err := rec.setField(field, key, value); err != nil {
		return err
	}
	if rec.has[field] {
		return fmt.Errorf("a second %s in one record", key)
	}
	rec.has[field] = true
	return nil
}

func (rec *saRecord) setField(field, key string, value []byte) (err error) {
	number := func(most uint64) uint64 {
		s := topology.Line{Text: value}
		v := s.Hex0x(8)
		if !s.AtEnd() || v > most {
			err = fmt.Errorf("%s %q, want 0x0 to %#x", key, value, most)
		}
		return v
	}
	switch field {
	case "MGID":
		var ok bool
		if rec.mgid, ok = parseGID(value); !ok || rec.mgid.As16()[0] != 0xff {
			return fmt.Errorf("MGID %q, want one that begins with ff, like ff12:401b:ffff::1", value)
		}
	case "MLID":
		rec.mlid = fabric.LID(number(uint64(mft.MaxMLID)))
		if err == nil && rec.mlid < mft.MinMLID {
			err = fmt.Errorf("MLID %#x, want %#04x to %#04x", uint16(rec.mlid), uint16(mft.MinMLID), uint16(mft.MaxMLID))
		}
	case "PortGid":
		gid, ok := parseGID(value)
		if !ok {
			return fmt.Errorf("port GID %q, want 128 bits like fe80::2:c903:1:2", value)
		}
		b := gid.As16()
		rec.port = fabric.GUID(binary.BigEndian.Uint64(b[8:]))
	case "JoinState":
		most := uint64(0xff)
		if key == "JoinState" {
			most = 15
		}
		rec.join = mad.JoinState(number(most) & 15) // the upper half of ScopeState is the scope
	case "ProxyJoin":
		number(1)
	case "SL":
		rec.sl = fabric.SL(number(15))
	}
	return err
}

func parseGID(b []byte) (netip.Addr, bool) {
	a, err := netip.ParseAddr(string(b))
	return a, err == nil && a.Is6() && a.Zone() == ""
}

// endRecord adds the record that ends before offset at to its group.
func (r *saReader) endRecord(at int) {
	rec := &r.record
	if rec.need == nil || rec.wrong || r.failed {
		return
	}
	for _, field := range rec.need {
		if rec.has[field] {
			continue
		}
		err, kind := fmt.Errorf("the record has no %s", field), fabric.Dropped
		if at == len(r.data) {
			err, kind = fmt.Errorf("%w: %w", err, ErrTruncated), fabric.Truncated
		}
		r.add(rec.at, kind, err)
		return
	}
	i, ok := r.index[rec.mgid]
	if !ok {
		i = len(r.groups)
		r.index[rec.mgid] = i
		r.groups = append(r.groups, saGroup{at: rec.at, mgid: rec.mgid, mlid: rec.mlid})
	}
	g := &r.groups[i]
	switch {
	case g.mlid != rec.mlid:
		r.drop(rec.at, "group %s has MLID %#04x already", rec.mgid, uint16(g.mlid))
		return
	case rec.has["SL"] && g.hasSL && g.sl != rec.sl:
		r.drop(rec.at, "group %s has SL %d already", rec.mgid, g.sl)
		return
	case rec.has["SL"]:
		g.sl, g.hasSL = rec.sl, true
	}
	if rec.has["PortGid"] && rec.port != 0 { // else no member, or a hidden one
		r.addMember(g, rec)
	}
}

// addMember adds the port of a record to its group.
func (r *saReader) addMember(g *saGroup, rec *saRecord) {
	p, known := r.ports[rec.port]
	switch {
	case !known && r.goneToo:
		g.gone = true
		r.addNode(rec.at, fabric.Gone, rec.port, fmt.Errorf("member %s of group %s is no end port of the fabric", rec.port, g.mgid))
	case !known:
		r.drop(rec.at, "the fabric has no end port %s", rec.port)
	case rec.join == 0:
		r.drop(rec.at, "port %s joins with state 0; want a bit of 1, 2, 4 or 8", rec.port)
	default:
		g.members = append(g.members, p)
		if rec.join&(mad.FullMember|mad.NonMember) != 0 { // the others send only
			g.receivers = append(g.receivers, p)
		}
	}
}

// list returns the groups, sorted.
func (r *saReader) list() []mft.Group {
	slices.SortFunc(r.groups, func(a, b saGroup) int { return cmp.Or(cmp.Compare(a.mlid, b.mlid), a.mgid.Compare(b.mgid)) })
	members := slices.ContainsFunc(r.groups, func(g saGroup) bool { return len(g.members) > 0 || g.gone })
	if !members && len(r.groups) > 1 {
		first := slices.MinFunc(r.groups, func(a, b saGroup) int { return cmp.Compare(a.at, b.at) })
		r.add(first.at, fabric.Missing, fmt.Errorf("no members of any of %d groups; saquery -m tells them with --smkey", len(r.groups)))
	}
	list := make([]mft.Group, len(r.groups))
	for i, g := range r.groups {
		list[i] = mft.Group{Name: g.mgid.String(), MGID: g.mgid, MLID: g.mlid, SL: g.sl}
		switch {
		case len(g.members) > 0:
			list[i].Senders = ascending(g.members)
			if list[i].Receivers = list[i].Senders; len(g.receivers) < len(g.members) {
				list[i].Receivers = ascending(g.receivers)
			}
		case g.gone: // Problems name its members
		case members: // the text has members, but none of this group
			r.add(g.at, fabric.Contradiction, noMembersError(list[i].Name))
		case len(r.groups) == 1:
			r.add(g.at, fabric.Missing, noMembersError(list[i].Name))
		}
	}
	return list
}

func noMembersError(group string) error {
	return fmt.Errorf("no members of group %s; saquery -m tells them with --smkey", group)
}

// ascending sorts ports and removes duplicates.
func ascending(ports []fabric.PortID) []fabric.PortID {
	slices.Sort(ports)
	return slices.Clip(slices.Compact(ports))
}
