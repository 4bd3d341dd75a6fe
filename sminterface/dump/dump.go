// Package dump reads and writes the text files in which OpenSM,
// infiniband-diags, ibdiagnet and ibdmchk keep what a subnet manager decided:
// unicast forwarding tables, hop counts, LID assignments, the list of links,
// SL-to-VL tables and path SLs.
//
// Writers print what OpenSM 3.3.23 and infiniband-diags 44 print, byte for
// byte, on a host of little-endian byte order; where they differ on purpose,
// their comments say so. Switches and nodes come in OpenSM's order: OpenSM
// keeps them in maps keyed by the GUID in network byte order, so on such
// hosts they are sorted by the byte-reversed GUID.
//
// Readers recognize older forms as well. Text that cannot be right is a
// *fabric.ParseError with the line; Options.Lenient leaves such lines out
// instead and lists them. What is odd but usable is listed in either case.
// All functions are safe for concurrent use, and their results do not depend
// on the number of CPUs.
package dump

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// Options are what a caller may ask of a reader.
type Options struct {
	// Lenient leaves out what is wrong and lists it as a Problem, instead of
	// failing.
	Lenient bool
	// AnyPort keeps entries of forwarding tables with ports that the switch does
	// not have, for a checker that makes findings of them.
	AnyPort bool
}

// ProblemKind sorts Problems by what a caller has to make of them.
type ProblemKind uint8

const (
	// Dropped text was wrong and has been left out; only a lenient reader
	// has such Problems.
	Dropped ProblemKind = iota
	// Truncated text ends too early; what there is has been read. Only a
	// lenient reader has such Problems.
	Truncated
	// Contradiction means that the text and the fabric, or two places of the
	// text, disagree on something that the result does not depend on.
	Contradiction
	// Missing means that the text says nothing, or not all that it should, about
	// a switch of the fabric.
	Missing
	// MissingEnds means that the text says nothing about CA and router ports.
	MissingEnds
	// PrivateTables means that switches forward by private LFTs (PLFT), as
	// adaptive routing does: the LFT alone does not tell the path.
	PrivateTables
)

// String is the kind in lower case, for messages.
func (k ProblemKind) String() string {
	switch k {
	case Dropped:
		return "dropped"
	case Truncated:
		return "truncated"
	case Contradiction:
		return "contradiction"
	case Missing, MissingEnds:
		return "missing"
	case PrivateTables:
		return "private tables"
	}
	return "problem kind " + strconv.Itoa(int(k))
}

// fatal says whether a strict reader makes an error of the kind.
func (k ProblemKind) fatal() bool { return k == Dropped || k == Truncated }

// Problem is something in a file that did not keep it from being read.
type Problem struct {
	Kind ProblemKind
	File string // name as given to the reader
	Line int    // 1-based; 0 when it belongs to no line
	Text string // the line, without its end
	Err  error  // what is wrong
}

// String is file:line: kind: cause, all printable.
func (p *Problem) String() string {
	s := fabric.Printable(p.File)
	if p.Line > 0 {
		s += ":" + strconv.Itoa(p.Line)
	}
	return s + ": " + p.Kind.String() + ": " + fabric.Printable(p.Err.Error())
}

// WriteOptions are what a caller may ask of the writers of tables.
type WriteOptions struct {
	// Lean leaves out the comments that name a LID's owner. OpenSM then
	// cannot notice that a LID has moved to another port.
	Lean bool
	// Only restricts the output to these switches; nil means all.
	Only []fabric.NodeID
}

// ErrTruncated is wrapped by errors about files that end too early.
var ErrTruncated = errors.New("the file is cut short")

// source is a file being read. Places in it are byte offsets, which become
// line numbers only when there is something to say about them.
type source struct {
	name string
	data []byte
}

// lineAt gives the line that offset at is in, without its end, and its start.
func (s *source) lineAt(at int) (line []byte, start int) {
	at = min(at, len(s.data))
	start = bytes.LastIndexByte(s.data[:at], '\n') + 1
	line = s.data[start:]
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	return bytes.TrimSuffix(line, cr), start
}

// number is the 1-based number of the line that offset at is in.
func (s *source) number(at int) int {
	return bytes.Count(s.data[:min(at, len(s.data))], nl) + 1
}

var (
	nl = []byte{'\n'}
	cr = []byte{'\r'}
)

// maxQuoted bounds the text of a line that errors and problems keep.
const maxQuoted = 256

func (s *source) text(at int) string {
	line, _ := s.lineAt(at)
	return string(line[:min(len(line), maxQuoted)])
}

// fault is something wrong, or odd, at an offset.
type fault struct {
	at   int
	kind ProblemKind
	err  error
}

// errorAt is the ParseError for a fault.
func (s *source) errorAt(at int, err error) error {
	return &fabric.ParseError{File: s.name, Line: s.number(at), Text: s.text(at), Err: err}
}

// overflow counts faults that are not listed.
type overflow struct {
	n    int
	harm bool // some are no Contradiction
}

func (o *overflow) add(kind ProblemKind) {
	o.n++
	o.harm = o.harm || kind != Contradiction
}

func (o *overflow) join(p overflow) {
	o.n += p.n
	o.harm = o.harm || p.harm
}

// problems turns faults, in any order, into Problems in the order of the
// lines, those that belong to no line first. It lists at most maxFaults and
// one that counts the others, which include more; it is a Contradiction if all of
// these are.
func (s *source) problems(faults []fault, more overflow) []Problem {
	if len(faults) == 0 {
		return nil
	}
	sortFaults(faults)
	for ; len(faults) > maxFaults; faults = faults[:len(faults)-1] {
		more.add(faults[len(faults)-1].kind)
	}
	list := make([]Problem, len(faults), len(faults)+1)
	number, at := 1, 0
	for i, f := range faults {
		list[i] = Problem{Kind: f.kind, File: s.name, Err: f.err}
		if f.at < 0 {
			continue
		}
		to := min(f.at, len(s.data))
		number += bytes.Count(s.data[at:to], nl)
		at = to
		list[i].Line = number
		line, _ := s.lineAt(to)
		line = line[:min(len(line), maxQuoted)]
		if i > 0 && string(line) == list[i-1].Text {
			list[i].Text = list[i-1].Text // mostly the first lines of records
		} else {
			list[i].Text = string(line)
		}
	}
	if more.n > 0 {
		kind := Contradiction
		if more.harm {
			kind = Dropped
		}
		list = append(list, Problem{Kind: kind, File: s.name, Err: fmt.Errorf("%d more problems", more.n)})
	}
	return list
}

// sortFaults orders by offset; faults that belong to no line have offset -1
// and keep their order.
func sortFaults(faults []fault) {
	compare := func(a, b fault) int { return cmp.Compare(a.at, b.at) }
	if !slices.IsSortedFunc(faults, compare) {
		slices.SortStableFunc(faults, compare)
	}
}

// firstFault is the error of a strict reader: the first fatal one.
func (s *source) firstFault(faults []fault) error {
	var first *fault
	for i := range faults {
		f := &faults[i]
		if f.kind.fatal() && (first == nil || f.at < first.at) {
			first = f
		}
	}
	if first == nil {
		return nil
	}
	return s.errorAt(first.at, first.err)
}

// hexWords holds the two lower-case digits of every byte, as they are read in
// one word of little-endian order.
var hexWords = func() (t [256]uint64) {
	for i := range t {
		t[i] = uint64(hexLower[i>>4]) | uint64(hexLower[i&15])<<8
	}
	return t
}()

// rowKey is the seven bytes 0x0001 and a blank that a row of LID l begins with,
// as they are read in one word of little-endian order.
func rowKey(l int) uint64 {
	return '0' | 'x'<<8 | hexWords[l>>8&0xff]<<16 | hexWords[l&0xff]<<32 | ' '<<48
}

// sevenBytes masks the bytes of rowKey.
const sevenBytes = 1<<56 - 1

// hexDigit is the value of a hexadecimal digit, 0xff for other bytes.
var hexDigit = func() (t [256]uint8) {
	for i := range t {
		t[i] = 0xff
	}
	for c := byte('0'); c <= '9'; c++ {
		t[c] = c - '0'
	}
	for c := byte('a'); c <= 'f'; c++ {
		t[c] = c - 'a' + 10
		t[c-'a'+'A'] = c - 'a' + 10
	}
	return t
}()

const hexLower = "0123456789abcdef"
const hexUpper = "0123456789ABCDEF"

// appendHex appends v in exactly digits digits.
func appendHex(b []byte, v uint64, digits int, set string) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		b = append(b, set[v>>shift&15])
	}
	return b
}

// appendHex4 appends the four lower-case digits of a LID.
func appendHex4(b []byte, v fabric.LID) []byte {
	high, low := hexWords[v>>8], hexWords[v&0xff]
	return append(b, byte(high), byte(high>>8), byte(low), byte(low>>8))
}

// fourDigits holds the four decimal digits of every number below 10,000.
var fourDigits = func() (t [10000][4]byte) {
	for i := range t {
		t[i] = [4]byte{'0' + byte(i/1000), '0' + byte(i/100%10), '0' + byte(i/10%10), '0' + byte(i%10)}
	}
	return t
}()

// appendDecimal appends v, which is not negative, in decimal.
func appendDecimal(b []byte, v int) []byte {
	switch {
	case v < 10:
		return append(b, '0'+byte(v))
	case v < 100:
		t := &fourDigits[v]
		return append(b, t[2], t[3])
	case v < 1000:
		t := &fourDigits[v]
		return append(b, t[1], t[2], t[3])
	case v < 10000:
		t := &fourDigits[v]
		return append(b, t[0], t[1], t[2], t[3])
	case v < 100000:
		t := &fourDigits[v%10000]
		return append(b, '0'+byte(v/10000), t[0], t[1], t[2], t[3])
	}
	return strconv.AppendInt(b, int64(v), 10)
}

// hexPrefix reads a hexadecimal number of at most digits digits at the start
// of b and says how long it is; n is 0 when there is none or it is longer.
func hexPrefix(b []byte, digits int) (v uint64, n int) {
	for n < len(b) {
		d := hexDigit[b[n]]
		if d == 0xff {
			break
		}
		if n == digits {
			return 0, 0
		}
		v = v<<4 | uint64(d)
		n++
	}
	return v, n
}

// beginsWith is whether b begins with s.
func beginsWith(b []byte, s string) bool { return len(b) >= len(s) && string(b[:len(s)]) == s }

// hex0x is hexPrefix for a number with 0x in front; n includes it.
func hex0x(b []byte, digits int) (v uint64, n int) {
	if len(b) < 3 || b[0] != '0' || b[1] != 'x' {
		return 0, 0
	}
	v, n = hexPrefix(b[2:], digits)
	if n == 0 {
		return 0, 0
	}
	return v, n + 2
}

// decPrefix is hexPrefix for decimal numbers.
func decPrefix(b []byte, digits int) (v uint64, n int) {
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		if n == digits {
			return 0, 0
		}
		v = v*10 + uint64(b[n]-'0')
		n++
	}
	return v, n
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// skipBlanks gives the index of the first byte at or after i that is neither
// blank nor tab.
func skipBlanks(b []byte, i int) int {
	for i < len(b) && isBlank(b[i]) {
		i++
	}
	return i
}

// descriptionLen is what OpenSM and infiniband-diags print of a node
// description: the attribute has 64 bytes, and they end it at the 64th.
const descriptionLen = 63

// appendDescription appends a node description as OpenSM and
// infiniband-diags print it: bytes outside of printable ASCII become blanks.
func appendDescription(b []byte, description string) []byte {
	description = description[:min(len(description), descriptionLen)]
	if i := strings.IndexByte(description, 0); i >= 0 {
		description = description[:i]
	}
	return appendPrintable(b, description)
}

// appendPrintable appends s with blanks for what is not printable ASCII.
func appendPrintable(b []byte, s string) []byte {
	from := len(b)
	b = append(b, s...)
	for i, c := range b[from:] {
		if c < ' ' || c > '~' {
			b[from+i] = ' '
		}
	}
	return b
}

// inOpenSMOrder sorts nodes as OpenSM's dumps have them.
func inOpenSMOrder(f *fabric.Fabric, nodes []fabric.NodeID) {
	slices.SortFunc(nodes, func(m, n fabric.NodeID) int {
		return cmp.Compare(bits.ReverseBytes64(uint64(f.Node(m).GUID)), bits.ReverseBytes64(uint64(f.Node(n).GUID)))
	})
}

// switchesToWrite lists the switches that a writer of tables is asked for.
func switchesToWrite(f *fabric.Fabric, only []fabric.NodeID) ([]fabric.NodeID, error) {
	var list []fabric.NodeID
	if only == nil {
		list = make([]fabric.NodeID, f.NumSwitches())
		for s := range list {
			list[s] = fabric.NodeID(s)
		}
	} else {
		for _, s := range only {
			if s < 0 || int(s) >= f.NumSwitches() {
				return nil, fmt.Errorf("node %d is not one of the %d switches", s, f.NumSwitches())
			}
		}
		list = slices.Clone(only)
		slices.Sort(list)
		list = slices.Compact(list)
	}
	inOpenSMOrder(f, list)
	return list, nil
}
