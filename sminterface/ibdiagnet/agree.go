package ibdiagnet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// Disagreements lists in what two fabrics differ that two files of one run of ibdiagnet
// say: nodes that have cables, cables, LIDs of ports with cables, widths and speeds that
// both know. first and second are the names of the files, which the Problems of kind
// FilesDisagree are about. Of each kind of difference there is one, with the first example
// in the order of GUIDs.
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

// comparison looks for what is in fabric from and not in the other one.
type comparison struct {
	names       [2]string // of the files of f and g
	from, other *fabric.Fabric
	side        int // 0 while from is f
	list        []fabric.Problem
	index       map[string]int
}

// differ notes a difference of a kind; what says the first one of it.
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

// node compares a node that has a cable.
func (c *comparison) node(n fabric.NodeID) {
	f := c.from
	x := f.Node(n)
	var cabled []fabric.PortID
	for num := fabric.PortNum(1); num <= x.NumPorts; num++ {
		if p := f.Port(n, num); f.Peer(p) != fabric.NoPort {
			cabled = append(cabled, p)
		}
	}
	if len(cabled) == 0 {
		return // a list of cables does not have it
	}
	here, there := c.names[c.side], c.names[1-c.side]
	m, known := c.other.NodeByGUID(x.GUID)
	if !known {
		c.differ("node", x.GUID, 0, "%s has node %s and %s does not", here, f.Name(n), there)
		return
	}
	y := c.other.Node(m)
	if x.Type != y.Type || x.NumPorts != y.NumPorts {
		if c.side == 0 {
			c.differ("kind", x.GUID, 0, "node %s is a %s with %d ports in %s, and a %s with %d ports in %s", f.Name(n), x.Type, x.NumPorts, here, y.Type, y.NumPorts, there)
		}
		return
	}
	if f.IsSwitch(n) && c.side == 0 {
		c.lid(f.PortBase(n), c.other.PortBase(m))
	}
	for _, p := range cabled {
		c.cable(p, c.other.Port(m, f.Num(p)))
	}
}

// cable compares the cable of a port, of which q is the same port in the other fabric.
func (c *comparison) cable(p, q fabric.PortID) {
	f, g := c.from, c.other
	here, there := c.names[c.side], c.names[1-c.side]
	peer := g.Peer(q)
	node, num := f.Node(f.Owner(p)).GUID, f.Num(p)
	switch {
	case peer == fabric.NoPort:
		if end := f.Peer(p); p < end || f.Owner(end) == f.Owner(p) {
			c.differ("cable", node, num, "%s has a cable from %s to %s and %s does not", here, f.PortName(p), f.PortName(end), there)
		}
		return
	case !samePort(f, f.Peer(p), g, peer):
		if c.side == 0 {
			c.differ("end", node, num, "the cable of %s leads to %s in %s, and to %s in %s", f.PortName(p), f.PortName(f.Peer(p)), here, g.PortName(peer), there)
		}
		return
	}
	if c.side != 0 {
		return
	}
	if f.PortGUID(p) != 0 { // an end port
		c.lid(p, q)
	}
	x, y := f.Link(p), g.Link(q)
	if p < f.Peer(p) && (differ(x.Width, y.Width) || differ(x.Speed, y.Speed)) {
		c.differ("link", node, num, "the cable of %s is %s in %s, and %s in %s", f.PortName(p), x, here, y, there)
	}
}

// lid compares the LID of an end port.
func (c *comparison) lid(p, q fabric.PortID) {
	f, g := c.from, c.other
	if a, b := f.LID(p), g.LID(q); a != b {
		c.differ("LID", f.Node(f.Owner(p)).GUID, f.Num(p), "LID of %s is %d in %s, and %d in %s", f.PortName(p), a, c.names[0], b, c.names[1])
	}
}

// differ says whether two values are known and not the same.
func differ[T comparable](a, b T) bool {
	var unknown T
	return a != unknown && b != unknown && a != b
}

// samePort says whether a port of f and one of g have the same number and node.
func samePort(f *fabric.Fabric, p fabric.PortID, g *fabric.Fabric, q fabric.PortID) bool {
	return f.Num(p) == g.Num(q) && f.Node(f.Owner(p)).GUID == g.Node(g.Owner(q)).GUID
}

// Masters lists the subnet managers that say they are the master, by GUID.
func (d *Database) Masters() []SM {
	masters := slices.DeleteFunc(slices.Clone(d.SMs), func(s SM) bool { return s.State != MasterSM })
	slices.SortFunc(masters, func(a, b SM) int { return cmp.Compare(a.Port, b.Port) })
	return slices.CompactFunc(masters, func(a, b SM) bool { return a.Port == b.Port && a.PortNum == b.PortNum }) // of two runs in one file
}
