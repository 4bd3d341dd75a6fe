package topology

import (
	"bytes"
	"cmp"
	"errors"
	"math"

	"github.com/ibweave/ibweave/fabric"
)

// Captures have more in them than ibnetdiscover prints to standard output: the prompt and
// the command, the banner of a terminal's log, and what libibmad and libibnetdisc print to
// standard error, as after `ibnetdiscover > FILE 2>&1`. This file tells such lines from
// broken ones.

// byteOrderMark is what some editors begin UTF-8 text with.
const byteOrderMark = "\ufeff"

// withLF is data with LF for every end of a line: CRLF, the CR CR LF of terminal logs, and
// CR where there is no LF at all. A terminal goes back to the begin of a line with CR: at
// the begin of a line it is left out. Elsewhere it is part of a description. Data without
// any CR is returned as it is.
func withLF(data []byte) []byte {
	if bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	if bytes.IndexByte(data, '\n') < 0 {
		return bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	}
	out := make([]byte, 0, len(data))
	for line := range bytes.Lines(data) {
		text, ended := bytes.CutSuffix(line, []byte("\n"))
		out = append(out, bytes.Trim(text, "\r")...)
		if ended {
			out = append(out, '\n')
		}
	}
	return out
}

// Plain is text as Parse reads it: without a byte order mark and colours, and with LF for
// every end of a line.
func Plain(data []byte) []byte {
	return withLF(withoutEscapes(bytes.TrimPrefix(data, []byte(byteOrderMark))))
}

// CheckEnds refuses a byte order mark and ends of lines other than LF, for strict reads of a
// file.
func CheckEnds(file string, data []byte) error {
	if bytes.HasPrefix(data, []byte(byteOrderMark)) {
		return &fabric.ParseError{File: file, Line: 1, Err: errMark}
	}
	for _, x := range []struct {
		c   byte
		err error
	}{{'\r', errCR}, {escape, errEscape}} {
		if n := bytes.IndexByte(data, x.c); n >= 0 {
			return &fabric.ParseError{File: file, Line: 1 + bytes.Count(data[:n], []byte("\n")), Err: x.err}
		}
	}
	return nil
}

// noise is what kind of foreign line a line is.
type noise int

// The kinds of foreign lines, as they are counted.
const (
	otherText noise = iota
	sweepTimeout
	sweepError
	noises // how many there are
)

// noiseKinds are the Kinds of Problems by kind of noise.
var noiseKinds = [noises]fabric.ProblemKind{otherText: fabric.ForeignLines, sweepTimeout: fabric.SweepTimeout, sweepError: fabric.SweepError}

// kindOfNoise says what a line that is no topology text is. Its sources are IBWARN and its
// like in rdma-core/libibumad and libibmad (`ibwarn: [PID] function: ..`), and IBND_ERROR
// of libibnetdisc/ibnetdisc.c (`src/query_smp.c:195; ..`: file, line, semicolon).
func kindOfNoise(text []byte) noise {
	is := false
	for _, prefix := range []string{"ibwarn:", "iberror:", "ibpanic:", "ibdebug:", "ibnetdiscover:", "-E-", "-W-"} {
		is = is || bytes.HasPrefix(text, []byte(prefix))
	}
	if !is && !fromSource(text) {
		return otherText
	}
	for _, word := range []string{"timed out", "timeout", "Timeout", "bad status 110"} {
		if bytes.Contains(text, []byte(word)) {
			return sweepTimeout
		}
	}
	return sweepError
}

// fromSource says whether text begins with "dir/name.c:195; ".
func fromSource(text []byte) bool {
	n := bytes.Index(text, []byte(".c:"))
	if n <= 0 || bytes.ContainsAny(text[:n], " \t") {
		return false
	}
	l := Line{Text: text, At: n + len(".c:")}
	return l.decimal() >= 0 && (l.Is(';') || l.Is(':'))
}

// foreign is lines that are no topology text, by kind of noise: the first one and how many.
type foreign [noises]struct {
	first place
	text  string // of the first, where it is not the whole line
	n     int
}

// add counts lines.
func (f *foreign) add(kind noise, first place, n int) {
	x := &f[kind]
	if x.n == 0 || first.num < x.first.num {
		x.first, x.text = first, ""
	}
	x.n = min(x.n+n, math.MaxInt32)
}

// addText counts what is a part of a line.
func (f *foreign) addText(kind noise, at place, text []byte) {
	first := f[kind].n == 0
	if f.add(kind, at, 1); first {
		f[kind].text = string(text[:min(len(text), 256)])
	}
}

// any says whether there are any.
func (f *foreign) any() bool { return *f != foreign{} }

// notTopology is what is wrong with a foreign line.
const notTopology = "not a line of topology text: want what ibnetdiscover prints on standard output"

// passOver is for a line that is no topology text: where it may stand is not known before
// the next line that is.
func (p *parser) passOver(l *Line) error {
	if p.strict {
		return p.refusal(p.line, l.At, notTopology)
	}
	p.pending.add(kindOfNoise(l.Rest()), p.line, 1)
	return nil
}

// settleNoise is called before a line of topology text, and at the end: the foreign lines
// since the last one are noise, unless they stand inside of a stanza.
func (p *parser) settleNoise(inside bool) error {
	if !p.pending.any() {
		return nil
	}
	pending := p.pending
	p.pending = foreign{}
	for kind := range pending {
		x := &pending[kind]
		switch {
		case x.n == 0:
		case !inside:
			p.noise.add(noise(kind), x.first, x.n)
		case p.lenient && noise(kind) != otherText: // nothing of the fabric
			p.noise.add(noise(kind), x.first, x.n)
		default:
			if err := p.mend(x.first, 0, "line dropped", "%s; in the middle of the text only --lenient passes over it", notTopology); err != nil {
				return err
			}
			if p.lenient {
				p.problems[len(p.problems)-1].Count = x.n
			}
		}
	}
	return nil
}

// tellNoise makes Problems of the foreign lines.
func (p *parser) tellNoise() {
	for kind, rule := range noiseKinds {
		if x := &p.noise[kind]; x.n > 0 {
			q := p.problem(rule, x.first, 0, "")
			q.Text = cmp.Or(x.text, q.Text)
			q.Message, q.Count = q.Text, x.n
		}
	}
}

// first is the first of all foreign lines, number 0 without any.
func (f *foreign) first() (first place) {
	for kind := range f {
		if x := &f[kind]; x.n > 0 && (first.num == 0 || x.first.num < first.num) {
			first = x.first
		}
	}
	return first
}

var (
	errMark = errors.New("a byte order mark: want none")
	errCR   = errors.New("a carriage return: want LF alone at the end of lines")

	errEscape = errors.New("a control sequence of a terminal: want none")
)
