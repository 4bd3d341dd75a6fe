package fabric

import (
	"slices"
	"strconv"
	"sync"

	"github.com/ibweave/ibweave/internal/text"
)

// Name is how people call a node. Its JSON form is the text alone, because the GUID is a
// field of its own there.
type Name struct {
	Text string
	// GUID is the node's GUID if the text does not identify the node, because other nodes
	// have the same text or it is empty. Otherwise it is 0.
	GUID GUID
}

// String returns "text", or "text" 0x0002c90300001234 if the text does not identify the node.
func (n Name) String() string {
	if n.GUID == 0 {
		return strconv.Quote(n.Text)
	}
	return strconv.Quote(n.Text) + " " + n.GUID.String()
}

// At returns the name of a port of the node: "text"[3], or "text" 0x0002c90300001234[3],
// and behind it the port's label, if it has one: "text"[3](1/2/1), as ibdiagnet writes it.
func (n Name) At(p PortNum, label string) string {
	if p == NoPath {
		return n.String() + ", no port"
	}
	name := n.String() + "[" + strconv.Itoa(int(p)) + "]"
	if label != "" {
		name += "(" + label + ")"
	}
	return name
}

// Label is String without quotation marks, for pictures and lists.
func (n Name) Label() string {
	switch {
	case n.GUID == 0:
		return n.Text
	case n.Text == "":
		return n.GUID.String()
	}
	return n.Text + " " + n.GUID.String()
}

// MarshalText returns the text.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.Text), nil }

// UnmarshalText takes the text. The GUID is lost.
func (n *Name) UnmarshalText(text []byte) error {
	*n = Name{Text: string(text)}
	return nil
}

// names holds the names of the nodes, made at the first request.
type names struct {
	given map[GUID]string // instead of node descriptions
	once  sync.Once
	list  []Name // by NodeID
}

// Name returns what people call a node: the name that WithNames gave it, else its description.
func (f *Fabric) Name(n NodeID) Name {
	f.names.once.Do(func() { f.names.list = f.nameNodes() })
	return f.names.list[n]
}

func (f *Fabric) nameNodes() []Name {
	list := make([]Name, len(f.nodes))
	nodes := make(map[string]int, len(f.nodes)) // by name: number of nodes with it
	for i := range f.nodes {
		n := &f.nodes[i]
		text, ok := f.names.given[n.GUID]
		if !ok {
			text = n.Description
		}
		list[i].Text = text
		nodes[text]++
	}
	for i := range list {
		if text := list[i].Text; text == "" || nodes[text] > 1 {
			list[i].GUID = f.nodes[i].GUID
		}
	}
	return list
}

// PortName returns the name of a port for messages, as Name.At does.
func (f *Fabric) PortName(p PortID) string { return f.Name(f.owner[p]).At(f.Num(p), f.Label(p)) }

// PortText names a port of a node that is named already: 3, or 3(1/2/1) with its label.
func (f *Fabric) PortText(p PortID) string { return portText(f.Num(p), f.Label(p)) }

// WithNames returns the same subnet with names for people, by node
// GUID. Nodes without one are called by their descriptions. Node
// descriptions stay, so that written files do not depend on names.
func (f *Fabric) WithNames(given map[GUID]string) *Fabric {
	g := *f
	g.names = &names{given: given}
	return &g
}

// Renamed returns the same subnet with the names as node descriptions.
func (f *Fabric) Renamed() *Fabric {
	g := *f
	g.nodes = slices.Clone(f.nodes)
	for i := range g.nodes {
		g.nodes[i].Description = f.Name(NodeID(i)).Text
	}
	return &g
}

// Printable returns s with everything escaped that acts on a terminal or hides in it, as
// internal/text does. Messages have names of nodes and files and lines of input in this form.
func Printable(s string) string { return text.Printable(s) }
