package dump

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// source is a text being read. Places in it are byte offsets; they are
// converted to line numbers only for messages.
type source struct {
	name string
	data []byte
}

var (
	nl = []byte{'\n'}
	cr = []byte{'\r'}

	// libraryWarning begins the lines of libibumad and libibmad, which a shell may have
	// put among what a tool prints.
	libraryWarning = []byte("ibwarn: ")
	// toolWarning begins a line that Debian's dump_lfts and dump_mfts print at the end.
	toolWarning = []byte("*** WARNING ***")
)

// cutLine returns the line of data that starts at i,
// without its end, and the start of the next one.
func cutLine(data []byte, i int) (line []byte, next int) {
	line, next = data[i:], len(data)
	if j := bytes.IndexByte(line, '\n'); j >= 0 {
		line, next = line[:j], i+j+1
	}
	return bytes.TrimSuffix(line, cr), next
}

// beginsWith is bytes.HasPrefix of a string.
func beginsWith(b []byte, s string) bool { return len(b) >= len(s) && string(b[:len(s)]) == s }

// isSilent returns true if a line, beginning with its first non-blank byte, has
// no content in any format: it is empty, a comment or the version of a file.
func isSilent(line []byte) bool {
	return len(line) == 0 || line[0] == '#' || bytes.HasPrefix(line, fileVersion)
}

// firstLine returns the offset of the first line with content, -1 if there is none.
func firstLine(data []byte) int {
	for at := 0; at < len(data); {
		line, next := cutLine(data, at)
		if !isSilent(bytes.TrimSpace(line)) {
			return at
		}
		at = next
	}
	return -1
}

// fileVersion starts a line that newer ibdiagnet writes into its files.
var fileVersion = []byte("File version:")

// lineAt returns the line around offset at, without its end, and its start.
func (s *source) lineAt(at int) (line []byte, start int) {
	start = bytes.LastIndexByte(s.data[:min(at, len(s.data))], '\n') + 1
	line, _ = cutLine(s.data, start)
	return line, start
}

// lastLine returns the offset of the last line before offset end that is not blank.
func (s *source) lastLine(end int) int {
	text := bytes.TrimRight(s.data[:end], " \t\r\n")
	return bytes.LastIndexByte(text, '\n') + 1
}

// numberAt returns the number, from 1, of the line around offset at.
func (s *source) numberAt(at int) int {
	return bytes.Count(s.data[:min(at, len(s.data))], nl) + 1
}

// maxQuoted bounds, in bytes, the text of a line that errors and problems quote.
const maxQuoted = 256

func (s *source) text(at int) string {
	line, _ := s.lineAt(at)
	return string(line[:min(len(line), maxQuoted)])
}

// errorAt returns a ParseError for the line around an offset.
func (s *source) errorAt(at int, err error) error {
	return &fabric.ParseError{File: s.name, Line: s.numberAt(at), Text: s.text(at), Err: err}
}

// notForm returns the error about a text of another form than a reader wants.
func (s *source) notForm(form Form, what, want string) error {
	if form != Unknown {
		return &fabric.ParseError{File: s.name, Err: fmt.Errorf("this is %s; want %s", form, want)}
	}
	if at := firstLine(s.data); at >= 0 {
		return s.errorAt(at, fmt.Errorf("no %s; want %s", what, want))
	}
	return &fabric.ParseError{File: s.name, Err: fmt.Errorf("no %s, the file is empty; want %s", what, want)}
}

// fault is something wrong or odd at offset at, -1 for no line.
type fault struct {
	at   int
	kind fabric.ProblemKind
	err  error
	node fabric.GUID // the node or port it is about, 0 for none
}

// maxFaults bounds the Problems that a reader lists.
const maxFaults = 10000

// findings are the faults of a text or a part of it, in any order.
type findings struct {
	lenient bool
	failed  bool // a strict reader must stop
	faults  []fault
	more    int  // faults beyond maxFaults
	harm    bool // one beyond maxFaults is no Contradiction
}

// add records a fault of a line; beyond maxFaults it only counts it.
func (x *findings) add(at int, kind fabric.ProblemKind, err error) {
	if len(x.faults) < maxFaults {
		x.note(at, kind, err)
		return
	}
	x.failed = x.failed || !x.lenient && isFatal(kind)
	x.leaveOut(kind)
}

// note records a fault even beyond maxFaults; it is for rare kinds.
func (x *findings) note(at int, kind fabric.ProblemKind, err error) {
	x.failed = x.failed || !x.lenient && isFatal(kind)
	x.faults = append(x.faults, fault{at: at, kind: kind, err: err})
}

// addNode records a fault about a node or an end port.
func (x *findings) addNode(at int, kind fabric.ProblemKind, node fabric.GUID, err error) {
	before := len(x.faults)
	if x.add(at, kind, err); len(x.faults) > before {
		x.faults[before].node = node
	}
}

// leaveOut counts a fault that is not listed.
func (x *findings) leaveOut(kind fabric.ProblemKind) {
	x.more++
	x.harm = x.harm || kind != fabric.Contradiction
}

// drop records a line that is left out.
func (x *findings) drop(at int, format string, args ...any) {
	x.add(at, fabric.Dropped, fmt.Errorf(format, args...))
}

// join adds the findings of part.
func (x *findings) join(part *findings) {
	x.failed = x.failed || part.failed
	x.faults = append(x.faults, part.faults...)
	x.more += part.more
	x.harm = x.harm || part.harm
}

// textReader is the common part of the readers of all formats: a text and its faults.
type textReader struct {
	source
	findings
}

func newTextReader(name string, data []byte, opt Options) textReader {
	return textReader{source: source{name, data}, findings: findings{lenient: opt.Lenient}}
}

// eachLine calls read for every line, without its end, until a strict reader
// has failed. A line for which read returns an error is dropped.
func (r *textReader) eachLine(read func(at int, line []byte) error) {
	for at := 0; at < len(r.data) && !r.failed; {
		line, next := cutLine(r.data, at)
		if err := read(at, line); err != nil {
			r.add(at, fabric.Dropped, err)
		}
		at = next
	}
}

// checkEnd notes that the last line has no end, as in a file that is cut short, unless it is
// blank or begins with the mark of a comment.
func (r *textReader) checkEnd(comment byte) {
	at := bytes.LastIndexByte(r.data, '\n') + 1
	if line := bytes.TrimSpace(r.data[at:]); !r.failed && len(line) > 0 && line[0] != comment {
		r.add(at, fabric.Truncated, fmt.Errorf("the last line has no end: %w", ErrTruncated))
	}
}

// finish returns the results of a reader: made and the Problems or,
// for a strict reader, the error at the first line with a fatal fault.
func finish[T any](r *textReader, made T) (T, []fabric.Problem, error) {
	problems, err := r.listProblems()
	if err != nil {
		var none T
		return none, nil, err
	}
	return made, problems, nil
}

// listProblems lists all Problems in the order of their lines, those without a line
// first: at most maxFaults, and one more that counts the rest. For a strict reader
// with a fatal fault it returns the error at the first line with one instead.
func (r *textReader) listProblems() ([]fabric.Problem, error) {
	slices.SortStableFunc(r.faults, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	if !r.lenient {
		for _, f := range r.faults {
			if isFatal(f.kind) {
				return nil, r.errorAt(f.at, f.err)
			}
		}
	}
	for _, f := range r.faults[min(maxFaults, len(r.faults)):] {
		r.leaveOut(f.kind)
	}
	var list []fabric.Problem
	line, at := 1, 0
	for _, f := range r.faults[:min(maxFaults, len(r.faults))] {
		p := fabric.Problem{Kind: f.kind, File: r.name, Message: f.err.Error(), Err: f.err, Node: f.node, Count: 1}
		if f.at >= 0 {
			to := min(f.at, len(r.data))
			line += bytes.Count(r.data[at:to], nl)
			at = to
			p.Line, p.Text = line, r.text(to)
		}
		list = append(list, p)
	}
	if r.more > 0 {
		kind := fabric.Contradiction
		if r.harm {
			kind = fabric.Dropped
		}
		err := fmt.Errorf("%d more problems", r.more)
		list = append(list, fabric.Problem{Kind: kind, File: r.name, Message: err.Error(), Err: err, Count: 1})
	}
	return list, nil
}
