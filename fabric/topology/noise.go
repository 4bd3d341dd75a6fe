package topology

import (
	"bytes"
	"errors"
	"regexp"

	"github.com/ibweave/ibweave/fabric"
)

// Captures have more in them than ibnetdiscover prints to standard output: the prompt and
// the command, the banner of a terminal's log, and what libibmad and libibnetdisc print to
// standard error, as after `ibnetdiscover > FILE 2>&1`. This file tells such lines from
// broken ones.

// byteOrderMark stands at the beginning of UTF-8 text from some editors.
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

// checkPlain refuses what Plain takes away, for strict reads of a file.
func checkPlain(file string, data []byte) error {
	for _, x := range []struct{ mark, err string }{
		{byteOrderMark, "a byte order mark: want none"},
		{"\r", "a carriage return: want LF alone at the end of lines"},
		{escape, "a control sequence of a terminal: want none"},
	} {
		if n := bytes.Index(data, []byte(x.mark)); n >= 0 {
			return &fabric.ParseError{File: file, Line: 1 + bytes.Count(data[:n], []byte("\n")), Err: errors.New(x.err)}
		}
	}
	return nil
}

// message is an error of the sweep: those of IBWARN and its like in rdma-core/libibumad and libibmad
// begin with "ibwarn: [PID] function: ", and those of IBND_ERROR of libibnetdisc/ibnetdisc.c with a
// file and a line, "src/query_smp.c:195; ". Others stand in lines of their own.
var (
	message     = regexp.MustCompile(`ib(?:warn|error|panic|debug): \[|(?:\.\.|src|lib[a-z]+|/[a-z]{3,}[\w.-]*)/[\w./-]*\.c:\d+[;:]`)
	messageLine = regexp.MustCompile(`^(?:ib(?:warn|error|panic|debug|netdiscover):|-[EW]-|[^ \t]+\.c:\d+[;:])`)
	timedOut    = regexp.MustCompile(`timed out|[tT]imeout|bad status 110`)
)

// kindOfNoise is the kind of Problem that a line is which is no topology text.
func kindOfNoise(text []byte) fabric.ProblemKind {
	switch {
	case !messageLine.Match(text):
		return fabric.ForeignLines
	case timedOut.Match(text):
		return fabric.SweepTimeout
	}
	return fabric.SweepError
}

// foreign is a line, or a part of one, that is no topology text.
type foreign struct {
	kind fabric.ProblemKind
	at   place
	text []byte // "" for the line
}

// notTopology is the message about a foreign line.
const notTopology = "not a line of topology text: want what ibnetdiscover prints on standard output"

// passOver is for a line that is no topology text: where it may stand is not known before
// the next line that is.
func (p *parser) passOver(l *Line) error {
	if p.strict {
		return p.refusal(p.line, l.At, notTopology)
	}
	p.pending = append(p.pending, foreign{kind: kindOfNoise(l.Rest()), at: p.line})
	return nil
}

// settleNoise is called before a line of topology text, and at the end: the foreign lines
// since the last one are noise, unless they stand inside of a stanza. A lenient read drops them there,
// but errors of the sweep are nothing of the fabric.
func (p *parser) settleNoise(inside bool) error {
	dropped := 0
	for _, x := range p.pending {
		if !inside || p.lenient && x.kind != fabric.ForeignLines {
			p.noise = append(p.noise, x)
		} else if dropped++; dropped == 1 {
			if err := p.mend(x.at, 0, "line dropped", "%s; in the middle of the text only --lenient passes over it", notTopology); err != nil {
				return err
			}
		}
	}
	if dropped > 0 {
		p.problems[len(p.problems)-1].Count = dropped
	}
	p.pending = p.pending[:0]
	return nil
}

// tellNoise makes a Problem of the foreign lines of each kind.
func (p *parser) tellNoise() {
	told := make(map[fabric.ProblemKind]int) // index in problems + 1
	for _, x := range p.noise {
		if at := told[x.kind]; at > 0 {
			p.problems[at-1].Count++
			continue
		}
		q := p.problem(x.kind, x.at, 0, "")
		if len(x.text) > 0 {
			q.Text = string(x.text[:min(len(x.text), 256)])
		}
		q.Message = q.Text
		told[x.kind] = len(p.problems)
	}
}
