package dump

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// Membership is the kind of a port's membership in a partition.
type Membership uint8

// The memberships. OpenSM makes Both full, unless its option allow_both_pkeys is set.
const (
	NoMember Membership = iota
	Limited
	Full
	Both
)

// memberNames are the words of partitions.conf. OpenSM also
// accepts their beginnings, and tries Full first.
var memberNames = [...]string{Limited: "limited", Full: "full", Both: "both"}

// String returns the word of partitions.conf.
func (m Membership) String() string {
	if m == NoMember || int(m) >= len(memberNames) {
		return "no"
	}
	return memberNames[m]
}

// memberOf returns the membership whose name begins with
// word, as OpenSM does: the empty word is "full".
func memberOf(word string) (m Membership, known bool) {
	for _, m := range []Membership{Full, Both, Limited} {
		if strings.HasPrefix(memberNames[m], word) {
			return m, true
		}
	}
	return Limited, false
}

// MemberKind tells which ports a member of a port list stands for.
type MemberKind uint8

// The kinds.
const (
	OnePort MemberKind = iota
	AllPorts
	AllCAs
	AllSwitches
	AllRouters
	SelfPort // the port of the subnet manager
)

type memberWord struct {
	word string
	kind MemberKind
}

// memberWords are the words for several ports, in the order in which OpenSM tries them.
var memberWords = []memberWord{{"ALL", AllPorts}, {"ALL_CAS", AllCAs}, {"ALL_SWITCHES", AllSwitches}, {"ALL_ROUTERS", AllRouters}, {"SELF", SelfPort}}

// Member is a port specifier.
type Member struct {
	Kind MemberKind
	GUID fabric.GUID // of the port, with OnePort
	As   Membership
	Line int // 0 for a default of OpenSM
}

// Partition is a partition with all that its definitions in partitions.conf have.
type Partition struct {
	PKey    fabric.PKey // without the bit of the membership
	Name    string      // the first; "" for none
	Line    int         // of the first definition; 0 for the default partition without one
	Members []Member    // if several are for one port, the last counts

	full Member // the first member that makes a single port a full member
}

// PartitionsConf is a partitions.conf as OpenSM reads it.
type PartitionsConf struct {
	Partitions []Partition // by PKey; always with the default one
	Oddities   []Oddity    // by line; one about the whole file comes last
}

// Oddity is a line that OpenSM does not read as a reader may think.
type Oddity struct {
	Line int // 0 for the whole file
	Text string
}

// maxPartitionsLine is the longest line that OpenSM reads as one,
// in bytes (osm_prtn_config.c, with fgets).
const maxPartitionsLine = 4094

// maxPartitionName is the number of bytes of a name that OpenSM keeps.
const maxPartitionName = 32

// errRefused describes the effect of a file that OpenSM cannot read.
var errRefused = errors.New("OpenSM refuses the whole file for that, and all ports become full members of the default partition alone")

// ReadPartitions reads a partitions.conf as OpenSM 3.3.23 does (osm_prtn_config.c). name is
// the file's, for messages.
//
// A definition is "name=key,flag,..:" in one line, then ports or one mgid with its flags in
// each line, up to a semicolon. Words may be cut short: OpenSM compares as many letters as
// there are. A partition without a key has that of an earlier one with its name, else the
// lowest free key. All ports are in the default partition as limited members, and the subnet
// manager as a full one, before the file is looked at; of several words for one port of a
// partition the last counts. A file without any definition counts as none: all ports are
// full members then.
//
// Errors are *fabric.ParseError, for what makes OpenSM refuse the file.
func ReadPartitions(name string, data []byte) (*PartitionsConf, error) {
	r := &confReader{source: source{name, data}, conf: &PartitionsConf{}, index: map[fabric.PKey]int{}, names: map[string]fabric.PKey{}}
	r.make(fabric.DefaultPartition, "Default", 0)
	r.conf.Partitions[0].Members = []Member{{Kind: AllPorts, As: Limited}, {Kind: SelfPort, As: Full}}
	if err := r.read(); err != nil {
		if bytes.Contains(r.text, cr) {
			err = fmt.Errorf("%w; OpenSM takes no CR at the end of a line, want LF alone", err)
		}
		return nil, &fabric.ParseError{File: name, Line: r.line, Text: string(r.text[:min(len(r.text), maxQuoted)]), Err: fmt.Errorf("%w. %w", err, errRefused)}
	}
	if !r.any {
		r.line = 0
		r.odd("no partition is defined: OpenSM makes all ports full members of the default partition, as without a file")
		r.conf.Partitions[0].Members = []Member{{Kind: AllPorts, As: Full}}
	}
	slices.SortFunc(r.conf.Partitions, func(a, b Partition) int { return int(a.PKey) - int(b.PKey) })
	return r.conf, nil
}

// confReader reads a partitions.conf.
type confReader struct {
	source
	conf   *PartitionsConf
	index  map[fabric.PKey]int    // in conf.Partitions
	names  map[string]fabric.PKey // by the beginning of the name that OpenSM keeps
	given  fabric.PKey            // the highest P_Key given to a partition without one
	any    bool                   // a definition was read
	line   int                    // number of the line being read, from 1
	text   []byte
	open   int        // index of the partition whose definition goes on, -1 for none
	member Membership // of ports without a membership, in this definition
}

func (r *confReader) odd(format string, args ...any) {
	if len(r.conf.Oddities) < maxFaults {
		r.conf.Oddities = append(r.conf.Oddities, Oddity{r.line, fmt.Sprintf(format, args...)})
	}
}

// read reads the lines as OpenSM cuts them.
func (r *confReader) read() error {
	r.open = -1
	for at := 0; at < len(r.data); {
		line, next := r.data[at:], len(r.data)
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, next = line[:i], at+i+1
		}
		r.line, r.text = r.line+1, line
		for first := true; first || len(line) > 0; first = false {
			// fgets counts the line's end as well.
			part := line[:min(len(line), maxPartitionsLine)]
			if line = line[len(part):]; len(line) > 0 && first {
				r.odd("the line has more than %d bytes: OpenSM reads what is behind them as another line", maxPartitionsLine)
			}
			if err := r.readLine(part); err != nil {
				return err
			}
		}
		at = next
	}
	return nil
}

// confBlanks are the characters that OpenSM skips.
const confBlanks = " \t\n"

// readLine reads a line: parts of definitions, separated by semicolons.
func (r *confReader) readLine(line []byte) error {
	if bytes.IndexByte(line, 0) >= 0 {
		return errors.New("a byte 0; want text")
	}
	content, _, _ := bytes.Cut(line, []byte("#"))
	text := strings.TrimLeft(string(content), confBlanks)
	if rest, ok := strings.CutPrefix(text, ";"); ok && r.open >= 0 {
		if strings.Trim(rest, confBlanks) != "" {
			return errors.New("text behind a semicolon that begins a line; want the semicolon behind the last port")
		}
		r.odd("the line begins with a semicolon: OpenSM reads on in what its buffer has of a longer line, and refuses the whole file if that is text; want the semicolon behind the last port")
	}
	for text != "" {
		part, rest, ended := strings.Cut(text, ";")
		if part == "" && r.open < 0 {
			return errors.New("a second semicolon")
		}
		if err := r.readPart(part, ended); err != nil {
			return err
		}
		if ended {
			r.open = -1
		}
		text = strings.TrimLeft(rest, confBlanks)
	}
	return nil
}

// readPart reads a definition and the ports behind its colon, or more ports of the open one.
func (r *confReader) readPart(part string, ended bool) error {
	if r.open < 0 {
		head, ports, found := strings.Cut(part, ":")
		if !found {
			return errors.New("no colon behind the definition of a partition; want it in the same line, like \"Name=0x8001 : 0x0002c90300000001=full;\"")
		}
		if err := r.define(head); err != nil {
			return err
		}
		part = ports
	}
	r.any = true
	p := &r.conf.Partitions[r.open]
	for rest, more := part, true; more; {
		var token string
		all := rest
		token, rest, more = strings.Cut(rest, ",")
		word, value, has := cutToken(token)
		if word == "mgid" {
			return r.readGroup(value, all, ended)
		}
		if err := r.readMember(p, word, value, has); err != nil {
			return err
		}
	}
	return nil
}

// cutToken takes "word = value" apart.
func cutToken(token string) (word, value string, has bool) {
	word, value, has = strings.Cut(token, "=")
	return strings.Trim(word, confBlanks), strings.Trim(value, confBlanks), has
}

// number reads a number as strtoul does with base 0: decimal, 0x and octal.
func number(text string) (uint64, bool) {
	if len(text) > 1 && text[0] == '0' && strings.ContainsAny(text[1:2], "bBoO") || strings.Contains(text, "_") {
		return 0, false // only Go accepts these
	}
	v, err := strconv.ParseUint(text, 0, 64)
	return v, err == nil
}

// define reads the head of a definition.
func (r *confReader) define(head string) error {
	first, flags, more := strings.Cut(head, ",")
	name, key, has := cutToken(first)
	if !has && name != "" && name[0] >= '0' && name[0] <= '9' {
		name, key, has = "", name, true
	}
	pkey := fabric.PKey(0)
	if has {
		v, ok := number(key)
		if !ok {
			return fmt.Errorf("P_Key %q; want a number like 0x8001", key)
		}
		if pkey = fabric.PKey(v).Partition(); v > 0xffff {
			r.odd("P_Key %s is more than 16 bits: OpenSM takes %s", key, pkey)
		}
	}
	if pkey == 0 {
		if pkey = r.names[name[:min(len(name), maxPartitionName)]]; pkey == 0 {
			pkey = r.give()
		}
		if pkey == 0 {
			return errors.New("no P_Key is free for the partition")
		}
	}
	r.open = r.make(pkey, name, r.line)
	r.member = Limited
	for more {
		var flag string
		flag, flags, more = strings.Cut(flags, ",")
		r.readFlag(flag)
	}
	return nil
}

// make returns the index of a partition, which it adds if it is new.
func (r *confReader) make(pkey fabric.PKey, name string, line int) int {
	if i, known := r.index[pkey]; known {
		if p := &r.conf.Partitions[i]; p.Line == 0 {
			p.Line = line
		}
		return i
	}
	name = name[:min(len(name), maxPartitionName)]
	// OpenSM sorts partitions by P_Key in network byte order; of
	// several with one name it finds the first.
	if other := r.names[name]; name != "" && (other == 0 || bits.ReverseBytes16(uint16(pkey)) < bits.ReverseBytes16(uint16(other))) {
		r.names[name] = pkey
	}
	r.index[pkey] = len(r.conf.Partitions)
	r.conf.Partitions = append(r.conf.Partitions, Partition{PKey: pkey, Name: name, Line: line})
	return r.index[pkey]
}

// give returns the next P_Key for a partition without one, 0 if none is free.
func (r *confReader) give() fabric.PKey {
	for r.given < fabric.DefaultPartition-1 {
		r.given++
		if _, known := r.index[r.given]; !known {
			return r.given
		}
	}
	return 0
}

// groupFlags are the flags of multicast groups, which OpenSM tries first.
var groupFlags = []string{"mtu", "rate", "scope", "Q_Key", "TClass", "sl", "FlowLabel"}

func isGroupFlag(word string) bool {
	return slices.ContainsFunc(groupFlags, func(f string) bool { return strings.HasPrefix(f, word) })
}

// readFlag reads a flag of a definition.
func (r *confReader) readFlag(flag string) {
	word, value, has := cutToken(flag)
	switch {
	case isGroupFlag(word), strings.HasPrefix("ipoib", word), word == "indx0": // flags of groups, and of the order in P_Key tables
	case strings.HasPrefix("defmember", word):
		if m, known := memberOf(value); has && known {
			r.member = m
		} else {
			r.odd("defmember wants full, limited or both: OpenSM passes over %q", flag)
		}
	default:
		r.odd("OpenSM knows no flag %q, and passes over it", word)
	}
}

// readMember reads a port specifier.
func (r *confReader) readMember(p *Partition, word, value string, has bool) error {
	if strings.HasPrefix("NONE", word) { // true for the empty word, too
		return nil
	}
	m := Member{As: r.member, Line: r.line}
	if has {
		var known bool
		if m.As, known = memberOf(value); !known {
			r.odd("membership %q of %s: OpenSM takes it for limited; want full, limited or both", value, word)
		} else if value == "" {
			r.odd("no membership behind the = of %s: OpenSM takes it for full", word)
		}
	}
	i := slices.IndexFunc(memberWords, func(w memberWord) bool { return strings.HasPrefix(w.word, word) })
	if i >= 0 {
		m.Kind = memberWords[i].kind
	} else if v, ok := number(word); !ok || v == 0 {
		return fmt.Errorf("port %q; want the GUID of a port, like 0x0002c90300000001, or ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF or NONE", word)
	} else {
		m.GUID = fabric.GUID(v)
	}
	p.Members = append(p.Members, m)
	several := m.Kind != OnePort && m.Kind != SelfPort
	switch {
	case !several && m.As != Limited && p.full.As == NoMember:
		p.full = m
	case several && m.As == Limited && p.full.As != NoMember:
		r.odd("the last word for a port counts: this one makes a limited member of the port of line %d, which was a %s one; want it first", p.full.Line, p.full.As)
	}
	return nil
}

// readGroup reads mgid and its flags, to the end of the line.
func (r *confReader) readGroup(mgid, rest string, ended bool) error {
	_, flags, more := strings.Cut(rest, ",")
	a, err := netip.ParseAddr(mgid)
	if err != nil || !a.Is6() || a.Zone() != "" || a.As16()[0] != 0xff {
		if more && ended {
			return fmt.Errorf("mgid %q; want a multicast GID, like ff12:401b::16, as OpenSM reads on behind a wrong one", mgid)
		}
		r.odd("mgid %q is no multicast GID, like ff12:401b::16: OpenSM makes no group", mgid)
		return nil
	}
	for more {
		var flag string
		flag, flags, more = strings.Cut(flags, ",")
		if word, _, _ := cutToken(flag); !isGroupFlag(word) {
			r.odd("%q behind an mgid is no flag of groups, and OpenSM passes over it: an mgid takes the rest of its line", word)
		}
	}
	return nil
}
