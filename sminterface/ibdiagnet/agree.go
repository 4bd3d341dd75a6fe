package ibdiagnet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
)

// Disagreements compares fabrics f and g of two files of one run
// of ibdiagnet, named first and second: nodes with cables, cables,
// LIDs of ports with cables, and widths and speeds that both know.
// For each kind of difference it returns one Problem of kind
// FilesDisagree, with the first example in the order of GUIDs.
func Disagreements(f, g *fabric.Fabric, first, second string) []fabric.Problem {
	c := comparison{names: [2]string{first, second}}
	for i, pair := range [][2]*fabric.Fabric{{f, g}, {g, f}} {
		c.from, c.other, c.side = pair[0], pair[1], i
		for n := range fabric.NodeID(c.from.NumNodes()) {
			c.node(n)
		}
	}
	return c.list
}

// comparison compares two fabrics: it looks for what from has and other lacks.
type comparison struct {
	names       [2]string // of the files of f and g
	from, other *fabric.Fabric
	side        int // 0 if from is f, 1 if it is g
	list        []fabric.Problem
	index       map[string]int
}

// differ counts a difference of a kind; the message describes the first one.
func (c *comparison) differ(kind string, node fabric.GUID, port fabric.PortNum, format string, args ...any) {
	kind += c.names[c.side]
	if c.index == nil {
		c.index = map[string]int{}
	}
	if i, known := c.index[kind]; known {
		c.list[i].Count++
		return
	}
	c.index[kind] = len(c.list)
	c.list = append(c.list, fabric.Problem{Kind: FilesDisagree, File: c.names[1], Count: 1, Node: node, Port: port, Message: fmt.Sprintf(format, args...)})
}

// same returns true if both files say the same of a node or port. A
// difference is noted once, when from is the fabric of the first file.
func (c *comparison) same(kind string, node fabric.GUID, port fabric.PortNum, what, here, there string) bool {
	if here != there && c.side == 0 {
		c.differ(kind, node, port, "%s %s in %s, and %s in %s", what, here, c.names[0], there, c.names[1])
	}
	return here == there
}

// node compares node n if it has a cable: files that list cables lack other nodes.
func (c *comparison) node(n fabric.NodeID) {
	f, g := c.from, c.other
	guid, here, there := f.Node(n).GUID, c.names[c.side], c.names[1-c.side]
	if !f.HasCable(n) {
		return
	}
	m, known := g.NodeByGUID(guid)
	if !known {
		c.differ("node", guid, 0, "%s has node %s and %s does not", here, f.Name(n), there)
		return
	}
	kind := func(x *fabric.Node) string { return fmt.Sprintf("a %s with %d ports", x.Type, x.NumPorts) }
	if !c.same("kind", guid, 0, fmt.Sprintf("node %s is", f.Name(n)), kind(f.Node(n)), kind(g.Node(m))) {
		return
	}
	lid := func(p, q fabric.PortID) {
		c.same("LID", guid, f.Num(p), "LID of "+f.PortName(p)+" is", strconv.Itoa(int(f.LID(p))), strconv.Itoa(int(g.LID(q))))
	}
	if f.IsSwitch(n) {
		lid(f.PortBase(n), g.PortBase(m))
	}
	for p := range f.Cabled(n) {
		num := f.Num(p)
		q, peer := g.Port(m, num), f.Peer(p)
		if g.Peer(q) == fabric.NoPort {
			if p < peer || f.Owner(peer) == n {
				c.differ("cable", guid, num, "%s has a cable from %s to %s and %s does not", here, f.PortName(p), f.PortName(peer), there)
			}
			continue
		}
		if other := g.Peer(q); f.Num(peer) != g.Num(other) || f.Node(f.Owner(peer)).GUID != g.Node(g.Owner(other)).GUID {
			if c.side == 0 { // not again from the other side
				c.differ("end", guid, num, "the cable of %s leads to %s in %s, and to %s in %s", f.PortName(p), f.PortName(peer), here, g.PortName(other), there)
			}
			continue
		}
		if !f.IsSwitch(n) {
			lid(p, q)
		}
		if x, y := f.Link(p), g.Link(q); p < peer && (differ(x.Width, y.Width) || differ(x.Speed, y.Speed)) {
			c.same("link", guid, num, "the cable of "+f.PortName(p)+" is", x.String(), y.String())
		}
	}
}

// differ returns true if two values are known and not the same.
func differ[T comparable](a, b T) bool {
	var unknown T
	return a != unknown && b != unknown && a != b
}

// Masters lists the subnet managers that say they are the master, by GUID.
func (d *Database) Masters() []SM {
	masters := slices.DeleteFunc(slices.Clone(d.SMs), func(s SM) bool { return s.State != MasterSM })
	slices.SortFunc(masters, func(a, b SM) int { return cmp.Compare(a.Port, b.Port) })
	return slices.CompactFunc(masters, func(a, b SM) bool { return a.Port == b.Port && a.PortNum == b.PortNum }) // two runs in one file repeat them
}
