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

// withLF returns data with LF for every end of a line: CRLF, the CR CR
// LF of terminal logs, and CR if there is no LF at all. CRs at the begin
// of a line, where a terminal writes them, are left out; elsewhere they
// are part of a description. Data without CR is returned as it is.
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

// Plain returns text as Parse reads it: without a byte order
// mark and colours, and with LF for every end of a line.
func Plain(data []byte) []byte {
	return withLF(withoutEscapes(bytes.TrimPrefix(data, []byte(byteOrderMark))))
}

// checkPlain returns an error for what Plain removes; strict reads call it.
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

// kindOfNoise returns the kind of Problem for a line that is no topology text.
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
	text []byte // "" for the whole line
}

// notTopology is the message about a foreign line.
const notTopology = "not a line of topology text: want what ibnetdiscover prints on standard output"

// passOver keeps a line that is no topology text until the next
// line shows if it may stand there. A strict read refuses it.
func (p *parser) passOver(l *Line) error {
	if p.strict {
		return p.refusal(p.line, l.At, notTopology)
	}
	p.pending = append(p.pending, foreign{kind: kindOfNoise(l.Rest()), at: p.line})
	return nil
}

// settleNoise is called before a line of topology text, and at the end. It takes the
// foreign lines before it as noise. Inside of a stanza they are an error instead, or
// dropped by a lenient read, which still takes errors of the sweep as noise.
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
