package dump

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
)

// Trace is a path that ibtracert followed: its end ports, and the ports by which it leaves nodes.
type Trace struct {
	Source, Destination fabric.PortID
	Out                 []fabric.PortID
}

// The lines of a trace (dump_endnode and dump_route of ibtracert.c), also with -n:
//
//	From ca {0x0000000000100010} portnum 1 lid 18-18 "host 2,2"
//	[1] -> switch port {0x0000000000200008}[5] lid 13-13 "switch 2,2"
//	To switch {0x0000000000200008} portnum 0 lid 13-13 "switch 2,2"
var (
	traceEnd = regexp.MustCompile(`^(From|To) (?:\w+ )?\{(0x[0-9a-fA-F]{1,16})\}(?: portnum |\[)(\d{1,3})\b(?: lid (\d{1,5})-)?`)
	traceHop = regexp.MustCompile(`^\[(\d{1,3})\] -> (?:\w+ port )?\{(0x[0-9a-fA-F]{1,16})\}\[(\d{1,3})\]`)
	// traceLine matches the beginning of such a line, even of a broken one.
	traceLine = regexp.MustCompile(`^(?:(?:From|To) (?:\w+ )?\{|\[\d{1,3}\] ->)`)
)

// ReadTraces reads the unicast paths that ibtracert prints, one or several
// after one another, also with -n and -v. name is the file's, for messages.
//
// Errors are *fabric.ParseError, and there are no traces then: a line that is
// cut, an end port or a cable that the fabric lacks, a trace without an end.
// With Options.Lenient these are Problems, and such a trace is left out.
func ReadTraces(name string, data []byte, f *fabric.Fabric, opt Options) ([]Trace, []fabric.Problem, error) {
	r := &traceReader{textReader: newTextReader(name, data, opt), f: f}
	r.eachLine(func(at int, line []byte) error {
		err := r.readLine(at, bytes.TrimSpace(line))
		if err != nil {
			r.open, r.broken = false, true
		}
		return err
	})
	if r.open && !r.failed {
		r.add(r.lastLine(len(data)), fabric.Truncated, fmt.Errorf("the last trace has no line that begins with To: %w", ErrTruncated))
	}
	if !r.began {
		return nil, nil, r.notForm(Recognize(data), "trace", "what ibtracert prints")
	}
	return finish(&r.textReader, r.list)
}

// traceReader collects traces.
type traceReader struct {
	textReader
	f      *fabric.Fabric
	list   []Trace
	now    Trace
	node   fabric.NodeID // where the trace has arrived
	open   bool          // a trace has begun and not ended
	broken bool          // it is left out
	began  bool          // a line From or To was read
}

// readLine reads a line. It ignores lines of shells and
// libraries, and hops that -v prints before a trace.
func (r *traceReader) readLine(at int, line []byte) error {
	end, hop := traceEnd.FindSubmatch(line), traceHop.FindSubmatch(line)
	switch {
	case end != nil:
		num, _ := strconv.Atoi(string(end[3]))
		p, err := r.find(string(end[2]), num, string(end[4]))
		if r.began = true; err != nil {
			return err
		}
		if string(end[1]) == "From" {
			if r.open {
				r.drop(at, "the trace before this one has no line that begins with To")
			}
			r.open, r.broken, r.node, r.now = true, false, r.f.Owner(p), Trace{Source: p}
			return nil
		}
		hops := len(r.now.Out)
		switch {
		case r.broken:
		case !r.open:
			err = errors.New("a trace without a line that begins with From")
		case r.node != r.f.Owner(p), hops > 0 && !r.f.IsSwitch(r.node) && r.f.Peer(r.now.Out[hops-1]) != p:
			err = fmt.Errorf("the trace ends at %s, but the line before leads to another port", r.f.PortName(p))
		default:
			r.now.Destination = p
			r.list = append(r.list, r.now)
		}
		r.open, r.broken = false, false
		return err
	case hop != nil && r.open:
		num, _ := strconv.Atoi(string(hop[1]))
		if num == 0 || num > int(r.f.Node(r.node).NumPorts) {
			return fmt.Errorf("%s has no port %d", r.f.Name(r.node), num)
		}
		out := r.f.Port(r.node, fabric.PortNum(num))
		to := r.f.Peer(out)
		end := to // the port with the GUID
		if to != fabric.NoPort && r.f.IsSwitch(r.f.Owner(to)) {
			end = r.f.PortBase(r.f.Owner(to))
		}
		if guid, err := fabric.ParseGUID(string(hop[2])); err != nil || to == fabric.NoPort || r.f.PortGUID(end) != guid || strconv.Itoa(int(r.f.Num(to))) != string(hop[3]) {
			return fmt.Errorf("the fabric has no cable from %s to port %s of GUID %s: take the trace and the topology at the same time", r.f.PortName(out), hop[3], hop[2])
		}
		r.now.Out, r.node = append(r.now.Out, out), r.f.Owner(to)
	case hop == nil && traceLine.Match(line):
		return errors.New("want a line of a trace by unicast, such as [1] -> switch port {0x0000000000200008}[5] lid 13-13 \"switch 2,2\"")
	}
	return nil
}

// find returns end port num of a node, which must have the given LID unless that is "".
func (r *traceReader) find(node string, num int, lid string) (fabric.PortID, error) {
	guid, err := fabric.ParseGUID(node)
	n, known := r.f.NodeByGUID(guid)
	switch {
	case err != nil || !known:
		return fabric.NoPort, fmt.Errorf("the fabric has no node %s", node)
	case num > int(r.f.Node(n).NumPorts) || (num == 0) != r.f.IsSwitch(n):
		return fabric.NoPort, fmt.Errorf("%s has no end port %d", r.f.Name(n), num)
	}
	p := r.f.Port(n, fabric.PortNum(num))
	if lid != "" && lid != strconv.Itoa(int(r.f.LID(p))) {
		return fabric.NoPort, fmt.Errorf("%s has LID %d in the fabric, %s here", r.f.PortName(p), r.f.LID(p), lid)
	}
	return p, nil
}
