package myrinet

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibweave/ibweave/fabric"
)

// textVersion is the first line of a file.
const textVersion = "ibweave-schedule 1"

// maxText is the most bytes of a file of schedules.
const maxText = 256 << 20

// Append appends a schedule as text:
//
//	ibweave-schedule 1
//	classes 2
//	host 4 lid 4 port 0x0000000000100004
//	group circuit hops 9 "allreduce-0"
//	members 4 7 9 ..
//	senders 4 7 9 ..
//	4 send * > 7 1
//	7 1 * > 9 1
//
// Hosts are ordered by ID. A line with > says: host 7, which holds a
// message of the group in class 1 and got it from any host, sends it to
// host 9, where it asks for a buffer of class 1; send is the send buffer
// of the originator. hops 0 means no limit. In groups of two-phase ">
// 7-12" is one packet to all hosts with IDs from 7 to 12, and any host
// may pass it on. On a banyan network, "out 0x0000000000200005" follows
// a host's port: the port by which it sends; IDs are addresses there. A
// # begins a comment, to the end of the line. Read reads it.
func (s *Schedule) Append(b []byte) []byte {
	b = fmt.Appendf(b, "%s\nclasses %d\n", textVersion, s.Classes)
	for _, h := range s.Hosts {
		b = fmt.Appendf(b, "host %d lid %d port %s", h.ID, h.LID, h.Port)
		if h.relays() {
			b = fmt.Appendf(b, " out %s", h.Out)
		}
		b = append(b, '\n')
	}
	id := func(i int32) string {
		if i == Anyone {
			return "*"
		}
		return strconv.Itoa(int(s.Hosts[i].ID))
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		b = fmt.Appendf(b, "group %s hops %d %q", g.Method, g.Hops, g.Name)
		for k, list := range [2][]int32{g.Members, g.Senders} {
			b = append(b, [2]string{"\nmembers", "\nsenders"}[k]...)
			for _, m := range list {
				b = append(append(b, ' '), id(m)...)
			}
		}
		b = append(b, '\n')
		for _, x := range g.Sends {
			to := id(x.To)
			if x.More > 0 {
				to += "-" + id(x.To+x.More)
			}
			b = fmt.Appendf(b, "%s %s %s > %s %s\n", id(x.At), x.Held, id(x.From), to, x.Class)
		}
	}
	return b
}

// AppendPhaseOne appends a file of multicast groups, as compile takes it, with a
// group for each region of a first phase, in the order of regions: "region 4-8"
// has the IDs of its hosts, and its senders are all originators that send there.
func (s *Schedule) AppendPhaseOne(b []byte) []byte {
	senders := map[[2]int32][]int32{} // by region, its first and last host
	for _, g := range s.Groups {
		for _, x := range g.Sends {
			if r := [2]int32{x.To, x.To + x.More}; g.Method == TwoPhase && x.Held == SendBuffer && !slices.Contains(senders[r], x.At) {
				senders[r] = append(senders[r], x.At)
			}
		}
	}
	b = append(b, "groups:\n"...)
	for _, r := range slices.SortedFunc(maps.Keys(senders), func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) }) {
		b = fmt.Appendf(b, "  - name: region %d-%d\n    receivers:\n", s.Hosts[r[0]].ID, s.Hosts[r[1]].ID)
		for _, h := range s.Hosts[r[0] : r[1]+1] {
			b = fmt.Appendf(b, "      - %s\n", h.Port)
		}
		b = append(b, "    senders:\n"...)
		for _, o := range slices.Sorted(slices.Values(senders[r])) {
			b = fmt.Appendf(b, "      - %s\n", s.Hosts[o].Out)
		}
	}
	return b
}

// Read reads what Append writes; blanks separate fields, and empty lines and
// comments may be anywhere. name is the file's, for messages. A schedule may
// have the right form and still be unsafe or incomplete: see Check.
//
// Errors are *fabric.ParseError, and the schedule is then nil: text of
// another form, IDs that no host line has or that come twice, lists
// that do not ascend, senders and sends of hosts that are no members,
// unknown classes, sends that come twice or are out of order.
func Read(name string, data []byte) (*Schedule, error) {
	r := reader{s: &Schedule{}, name: name, index: make(map[int32]int32)}
	if len(data) > maxText {
		return nil, r.fail("%d bytes: want at most %d", len(data), maxText)
	}
	for line := range bytes.Lines(data) {
		r.line++
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		r.text = string(line)
		if !utf8.ValidString(r.text) {
			return nil, r.fail("the line is not UTF-8")
		}
		if err := r.read(); err != nil {
			return nil, err
		}
	}
	r.text = ""
	if r.state == stateStart {
		return nil, r.fail("the file is empty: want %q in its first line", textVersion)
	}
	if r.s.Classes == 0 {
		return nil, r.fail("no line with classes")
	}
	if err := r.endGroup(); err != nil {
		return nil, err
	}
	return r.s, nil
}

type reader struct {
	s       *Schedule
	name    string
	line    int
	text    string
	state   readerState
	index   map[int32]int32 // by ID
	member  []bool          // by host: it is in the group that is being read
	opened  int             // line where the group begins
	members bool            // the members line was read
	senders bool
}

type readerState uint8

const (
	stateStart readerState = iota
	stateClasses
	stateHosts
	stateGroup
)

func (r *reader) fail(format string, args ...any) error {
	return &fabric.ParseError{File: r.name, Line: r.line, Text: r.text, Err: fmt.Errorf(format, args...)}
}

// fieldsOf splits a line into words. A quoted word keeps its quotes, and blanks and # within it.
func fieldsOf(text string) ([]string, error) {
	var fields []string
	for {
		text = strings.TrimLeft(text, " \t")
		if text == "" || text[0] == '#' {
			return fields, nil
		}
		if text[0] == '"' {
			q, err := strconv.QuotedPrefix(text)
			if err != nil {
				return nil, fmt.Errorf("a quote without its end")
			}
			fields = append(fields, q)
			text = text[len(q):]
			continue
		}
		n := strings.IndexAny(text, " \t#")
		if n < 0 {
			n = len(text)
		}
		fields = append(fields, text[:n])
		text = text[n:]
	}
}

func (r *reader) read() error {
	f, err := fieldsOf(r.text)
	if err != nil {
		return r.fail("%w", err)
	}
	if len(f) == 0 {
		return nil
	}
	if r.state == stateStart {
		if strings.Join(f, " ") != textVersion {
			return r.fail("want %q in the first line", textVersion)
		}
		r.state = stateClasses
		return nil
	}
	if r.state == stateClasses {
		n := int64(0)
		if len(f) == 2 && f[0] == "classes" {
			n, _ = strconv.ParseInt(f[1], 10, 32)
		}
		if n < 1 || n > MaxClasses {
			return r.fail("want classes and a number from 1 to %d", MaxClasses)
		}
		r.s.Classes = int(n)
		r.state = stateHosts
		return nil
	}
	switch f[0] {
	case "host":
		return r.host(f)
	case "group":
		if err := r.endGroup(); err != nil {
			return err
		}
		return r.group(f)
	case "members", "senders":
		return r.list(f)
	}
	return r.send(f)
}

func (r *reader) host(f []string) error {
	const want = `want host ID lid LID port GUID, such as "host 4 lid 4 port 0x0000000000100004"`
	if r.state != stateHosts {
		return r.fail("a host behind a group: want all hosts first")
	}
	relays := len(f) == 8 && f[6] == "out"
	if len(f) != 6 && !relays || f[2] != "lid" || f[4] != "port" {
		return r.fail(want)
	}
	id, err := strconv.ParseInt(f[1], 10, 32)
	if err != nil || id < 0 {
		return r.fail("ID %q: want a number from 0 on", f[1])
	}
	if n := len(r.s.Hosts); n > 0 && r.s.Hosts[n-1].ID >= int32(id) {
		return r.fail("host %d behind host %d: want hosts by ID, each once", id, r.s.Hosts[n-1].ID)
	}
	lid, err := strconv.ParseUint(f[3], 10, 16)
	if err != nil || lid < 1 || lid > uint64(fabric.MaxUnicastLID) {
		return r.fail("LID %q: want 1 to %d", f[3], fabric.MaxUnicastLID)
	}
	guid, err := fabric.ParseGUID(f[5])
	if err != nil {
		return r.fail("%w", err)
	}
	out := guid
	if relays {
		if out, err = fabric.ParseGUID(f[7]); err != nil {
			return r.fail("%w", err)
		}
	}
	r.index[int32(id)] = int32(len(r.s.Hosts))
	r.s.Hosts = append(r.s.Hosts, Host{ID: int32(id), LID: fabric.LID(lid), Port: guid, Out: out})
	return nil
}

func (r *reader) group(f []string) error {
	const want = `want group METHOD hops N "NAME", such as group circuit hops 9 "all"`
	if len(f) != 5 || f[2] != "hops" || f[4][0] != '"' {
		return r.fail(want)
	}
	m, err := ParseMethod(f[1])
	if err != nil {
		return r.fail("%w", err)
	}
	hops, err := strconv.ParseInt(f[3], 10, 32)
	if err != nil || hops < 0 {
		return r.fail("hops %q: want a number, 0 for no limit", f[3])
	}
	name, err := strconv.Unquote(f[4])
	if err != nil {
		return r.fail("name %s: %w", f[4], err)
	}
	if r.state == stateHosts {
		r.state = stateGroup
		r.member = make([]bool, len(r.s.Hosts))
	}
	r.opened = r.line
	r.members, r.senders = false, false
	clear(r.member)
	r.s.Groups = append(r.s.Groups, Group{Name: name, Method: m, Hops: int(hops)})
	return nil
}

// endGroup returns an error if the group that was read last is incomplete.
func (r *reader) endGroup() error {
	if len(r.s.Groups) > 0 && !r.senders {
		r.text = ""
		r.line = r.opened
		return r.fail("group %q has no members and senders: want a line of each behind it", r.s.Groups[len(r.s.Groups)-1].Name)
	}
	return nil
}

func (r *reader) list(f []string) error {
	if r.state != stateGroup {
		return r.fail("%s without a group", f[0])
	}
	g := &r.s.Groups[len(r.s.Groups)-1]
	to := &g.Members
	done := &r.members
	if f[0] == "senders" {
		to, done = &g.Senders, &r.senders
		if !r.members {
			return r.fail("senders before the members")
		}
	}
	if *done {
		return r.fail("a second line of %s", f[0])
	}
	*done = true
	for _, s := range f[1:] {
		i, err := r.id(s)
		if err != nil {
			return err
		}
		if n := len(*to); n > 0 && (*to)[n-1] >= i {
			return r.fail("%s %s behind %d: want them by ID, each once", f[0], s, r.s.Hosts[(*to)[n-1]].ID)
		}
		if f[0] == "members" {
			r.member[i] = true
		} else if !r.member[i] {
			return r.fail("sender %s is no member", s)
		}
		*to = append(*to, i)
	}
	return nil
}

// id returns the index of the host with an ID.
func (r *reader) id(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, r.fail("ID %q: want a number", s)
	}
	i, ok := r.index[int32(n)]
	if !ok {
		return 0, r.fail("no host has the ID %d", n)
	}
	return i, nil
}

// memberID is id for a member of the group, in two-phase for any host.
func (r *reader) memberID(s string) (int32, error) {
	i, err := r.id(s)
	if err == nil && !r.member[i] && r.s.Groups[len(r.s.Groups)-1].Method != TwoPhase {
		err = r.fail("host %s is no member of the group", s)
	}
	return i, err
}

func (r *reader) class(s string, least Class) (Class, error) {
	if s == "send" && least == SendBuffer {
		return SendBuffer, nil
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil || n < 1 || n > uint64(r.s.Classes) {
		return 0, r.fail("class %q: want 1 to %d", s, r.s.Classes)
	}
	return Class(n), nil
}

func (r *reader) send(f []string) error {
	if r.state != stateGroup || len(f) != 6 || f[3] != ">" {
		return r.fail("want host, group, members, senders, or in a group a send such as 7 1 * > 9 1")
	}
	if !r.senders {
		return r.fail("a send before the members and senders of the group")
	}
	var s Send
	var err error
	if s.At, err = r.memberID(f[0]); err != nil {
		return err
	}
	if s.Held, err = r.class(f[1], SendBuffer); err != nil {
		return err
	}
	s.From = Anyone
	if f[2] != "*" {
		if s.From, err = r.memberID(f[2]); err != nil {
			return err
		}
		if s.Held == SendBuffer {
			return r.fail("a message in a send buffer has no sender: want *")
		}
	}
	first, last, region := strings.Cut(f[4], "-")
	if s.To, err = r.memberID(first); err != nil {
		return err
	}
	if region {
		if r.s.Groups[len(r.s.Groups)-1].Method != TwoPhase || s.Held != SendBuffer {
			return r.fail("%s: want one host: originators of two-phase alone send to several", f[4])
		}
		end, err := r.id(last)
		if err != nil {
			return err
		}
		if s.More = end - s.To; s.More <= 0 {
			return r.fail("%s: want the lower ID first", f[4])
		}
	}
	if s.To == s.At && !region && !r.s.Hosts[s.At].relays() {
		return r.fail("host %s sends to itself", f[0])
	}
	if s.Class, err = r.class(f[5], 1); err != nil {
		return err
	}
	g := &r.s.Groups[len(r.s.Groups)-1]
	if n := len(g.Sends); n > 0 {
		switch c := compareSends(g.Sends[n-1], s); {
		case c > 0:
			return r.fail("the send is out of order: want them by host, class and from whom")
		case c == 0:
			// Sends of one key are next to each other.
			for i := n - 1; i >= 0 && compareSends(g.Sends[i], s) == 0; i-- {
				if g.Sends[i].To == s.To && g.Sends[i].More == 0 { // the host may be in a region, too
					return r.fail("host %s sends to host %s twice", f[0], f[4])
				}
			}
		}
	}
	g.Sends = append(g.Sends, s)
	return nil
}
