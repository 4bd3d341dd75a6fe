package session

import (
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// Export is the steps so far for the command line.
type Export struct {
	Command string `json:"command"` // DIR stands for the compiled directory of the base
	File    string `json:"file,omitempty"`
	Text    string `json:"text,omitempty"` // of File
}

// Export gives the command that plans the steps: drain if all of them drain, else move with a file of
// its steps. The error is why there is none.
func (s *Session) Export() (*Export, error) {
	kinds := map[Kind]bool{}
	for _, x := range s.states[1:] {
		kinds[x.step.Kind] = true
	}
	switch {
	case len(kinds) == 0:
		return nil, refuse("there are no steps yet")
	case kinds[Drain] && len(kinds) == 1:
		return &Export{Command: "ibweave drain DIR" + s.drainFlags()}, nil
	case kinds[Drain]:
		return nil, refuse("a plan drains parts, or moves cables: want steps of one kind")
	case kinds[Slow]:
		return nil, refuse("a plan has no step that slows a cable down")
	}
	var b strings.Builder
	b.WriteString("steps:\n")
	for i, x := range s.states[1:] {
		b.WriteString(edits(s.states[i].whole, x.whole))
	}
	return &Export{Command: "ibweave move DIR steps.yaml -o plan", File: "steps.yaml", Text: b.String()}, nil
}

// drainFlags are the parts that are drained.
func (s *Session) drainFlags() (flags string) {
	for _, d := range s.now().drained {
		flag := "--switch"
		if d.at.Port != 0 {
			flag = "--cable"
		}
		flags += fmt.Sprintf(" %s %s", flag, d.at)
	}
	return flags
}

// edits is a step of a file for package move: the cables that f has and g has not, then the others.
func edits(f, g *fabric.Fabric) string {
	var list []string
	end := func(p fabric.PortID) End { return End{f.Node(f.Owner(p)).GUID, f.Num(p)} }
	for _, c := range f.Cables() {
		if g.Peer(c.A) != c.B {
			list = append(list, fmt.Sprintf("unplug %s", end(c.A)))
		}
	}
	for _, c := range g.Cables() {
		if f.Peer(c.A) != c.B {
			list = append(list, strings.TrimRight(fmt.Sprintf("plug %s %s %s", end(c.A), end(c.B), c.Link), " "))
		}
	}
	return "  - - " + strings.Join(list, "\n    - ") + "\n"
}
