package session

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// Kind is what a step does.
type Kind string

// The kinds of steps.
const (
	Fail    Kind = "fail"    // a cable, or a switch with all of its cables
	Drain   Kind = "drain"   // the same, while the cables stay
	Restore Kind = "restore" // undoes these, and gives a cable its rate back
	Slow    Kind = "slow"    // a cable has another rate
	Recable Kind = "recable" // moves the far end of the cable at a port to another port
)

// End is a node, or one of its ports.
type End struct {
	Node fabric.GUID
	Port fabric.PortNum // 0 for the node
}

// String returns GUID or GUID:PORT.
func (e End) String() string {
	if e.Port == 0 {
		return e.Node.String()
	}
	return fmt.Sprintf("%s:%d", e.Node, e.Port)
}

func parseEnd(text string) (e End, err error) {
	guid, port, isPort := strings.Cut(text, ":")
	if e.Node, err = fabric.ParseGUID(guid); err != nil {
		return e, err
	}
	if isPort {
		n, err := strconv.ParseUint(port, 10, 8)
		if err != nil || n < 1 || n > uint64(fabric.MaxPortNum) {
			return e, fmt.Errorf("port %q: want 1 to %d", port, fabric.MaxPortNum)
		}
		e.Port = fabric.PortNum(n)
	}
	return e, nil
}

// Step is a change of a fabric.
type Step struct {
	Kind Kind
	At   End
	Rate fabric.Link // of Slow
	To   End         // of Recable
}

// String returns a step as ParseStep reads it.
func (s Step) String() string {
	text := string(s.Kind) + " " + s.At.String()
	switch s.Kind {
	case Slow:
		text += " " + s.Rate.String()
	case Recable:
		text += " " + s.To.String()
	}
	return text
}

// ParseStep reads a step:
//
//	fail|drain|restore GUID[:PORT]
//	slow GUID:PORT RATE              4xHDR
//	recable GUID:PORT GUID:PORT
//
// The error says what would have been right.
func ParseStep(text string) (s Step, err error) {
	const want = "want fail, drain or restore and GUID or GUID:PORT, slow GUID:PORT RATE, or recable GUID:PORT GUID:PORT"
	words := strings.Fields(text)
	if len(words) < 2 {
		return s, fmt.Errorf("%q: %s", text, want)
	}
	s.Kind = Kind(words[0])
	if s.At, err = parseEnd(words[1]); err != nil {
		return s, err
	}
	switch {
	case (s.Kind == Fail || s.Kind == Drain || s.Kind == Restore) && len(words) == 2:
		return s, nil
	case s.Kind == Slow && len(words) == 3 && s.At.Port != 0:
		var ok bool
		if s.Rate, ok = fabric.ParseLink(words[2]); !ok {
			return s, fmt.Errorf("rate %q: want one like 4xHDR", words[2])
		}
		return s, nil
	case s.Kind == Recable && len(words) == 3 && s.At.Port != 0:
		if s.To, err = parseEnd(words[2]); err == nil && s.To.Port == 0 {
			err = fmt.Errorf("%q: want GUID:PORT", words[2])
		}
		return s, err
	}
	return s, fmt.Errorf("%q: %s", text, want)
}

// Export is the steps so far, for the command line.
type Export struct {
	Command string `json:"command"` // DIR stands for the compiled directory of the base
	File    string `json:"file,omitempty"`
	Text    string `json:"text,omitempty"` // of File
}

// Export returns the command that plans the steps: drain if all of them drain, else move with a
// file of its steps. The error says why there is none.
func (s *Session) Export() (*Export, error) {
	kinds := map[Kind]bool{}
	for _, x := range s.states[1:] {
		kinds[x.step.Kind] = true
	}
	switch {
	case len(kinds) == 0:
		return nil, drain.Refuse("there are no steps yet")
	case kinds[Drain] && len(kinds) == 1:
		x := &Export{Command: "ibweave drain DIR"}
		for _, d := range s.now().drained {
			flag := "--switch"
			if d.at.Port != 0 {
				flag = "--cable"
			}
			x.Command += fmt.Sprintf(" %s %s", flag, d.at)
		}
		return x, nil
	case kinds[Drain]:
		return nil, drain.Refuse("a plan drains parts, or moves cables: want steps of one kind")
	case kinds[Slow]:
		return nil, drain.Refuse("a plan has no step that slows a cable down")
	}
	var b strings.Builder
	b.WriteString("steps:\n")
	for i, x := range s.states[1:] {
		b.WriteString(edits(s.states[i].whole, x.whole))
	}
	return &Export{Command: "ibweave move DIR steps.yaml -o plan", File: "steps.yaml", Text: b.String()}, nil
}

// edits writes a step for package move: unplug what only f has, then plug what only g has.
func edits(f, g *fabric.Fabric) string {
	end := func(p fabric.PortID) End { return End{f.Node(f.Owner(p)).GUID, f.Num(p)} }
	gone := text.Where(f.Cables(), func(c fabric.Cable) bool { return g.Peer(c.A) != c.B })
	come := text.Where(g.Cables(), func(c fabric.Cable) bool { return f.Peer(c.A) != c.B })
	list := append(text.Each(gone, func(c fabric.Cable) string { return fmt.Sprintf("unplug %s", end(c.A)) }), text.Each(come, func(c fabric.Cable) string {
		return strings.TrimRight(fmt.Sprintf("plug %s %s %s", end(c.A), end(c.B), c.Link), " ")
	})...)
	return "  - - " + strings.Join(list, "\n    - ") + "\n"
}
