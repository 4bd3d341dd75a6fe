package topology

import (
	"cmp"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// listLine is a line of a port list (dump_ports_report). It also holds what another form says
// of one cable, or of a port without a cable:
//
//	CA    32  1 0x000000000010001f 4x QDR - SW    24  5 0x000000000020000f ( 'host 3,3' - 'switch 3,3' )
//	SW    24  1 0x000000000020000f 4x SDR                                    'switch 3,3'
type listLine struct {
	at        place
	own, peer listPort
	link      fabric.Link
	linked    bool
	silent    bool // the port is up, but nothing behind it answered
}

// listPort is a port as a list has it. A switch has the same GUID on all its ports.
type listPort struct {
	guid  fabric.GUID
	name  string // description of the node
	label string // "" for none
	bad   string // a LID that no port can have, or 0; "" for none
	kind  fabric.NodeType
	num   fabric.PortNum
	lid   fabric.LID
	statedNode
}

// statedNode is the node of a port. Only subnet lists have
// all of it; for other forms, placePorts sets the GUID.
type statedNode struct {
	node, system fabric.GUID
	vendor       uint32
	device       uint16
	ports        fabric.PortNum
}

// key identifies the node of the port by its GUID.
func (l *listPort) key() key { return key{value: uint64(l.node), kind: l.kind} }

// kindWords names the types of nodes in port lists; kindLetters is the first letter of their ids.
var (
	kindWords   = [...]string{fabric.CA: "CA", fabric.Switch: "SW", fabric.Router: "RT"}
	kindLetters = [...]byte{fabric.CA: 'H', fabric.Switch: 'S', fabric.Router: 'R'}
)

// listKind reads the type of a node in a port list or a subnet list, 0 for another word.
func listKind(s []byte) fabric.NodeType {
	switch string(s) {
	case "Rt", "RTR": // of subnet lists, by OpenSM and by ibdiagnet
		return fabric.Router
	}
	return fabric.NodeType(max(0, slices.Index(kindWords[:], string(s))))
}

// readList reads a port list.
func (p *parser) readList() error {
	lines := make([]listLine, 0, len(p.data)/96+16)
	err := p.eachLine(func(l *Line) error {
		if !brokenList.Match(l.Rest()) && !isStanza(*l) {
			return p.passOver(l)
		}
		if err := p.settleNoise(len(lines) > 0); err != nil {
			return err
		}
		x := listLine{at: p.line}
		if err := p.readListLine(l, &x); err != nil {
			return err
		}
		lines = append(lines, x)
		return nil
	})
	if err != nil {
		return err
	}
	return p.listNodes(lines, false)
}

// separator is between two descriptions, with the quotes of both.
const separator = "' - '"

// brokenList matches a line that begins like one of a port
// list, even if it is cut or lacks a blank.
var brokenList = regexp.MustCompile(`^(?:SW|CA|R[Tt])(?:[ \t0-9]|$)`)

func isStanza(l Line) bool {
	word := l.letters()
	return headerKinds[string(word)] != 0 && isBrokenHeader(l) || before.Match(word)
}

// listRow is a line of a port list: its port, width and speed, the port at the other end, and descriptions.
var listRow = regexp.MustCompile(`^` + listEnd + `(\S{2,})[ \t]+(\S{2,})[ \t]+(?:-[ \t]*` + listEnd + `(?:\([ \t]*)?)?'(.*)'`)

// listEnd is the type, LID, number and GUID of a port.
const listEnd = `(SW|CA|R[Tt])[ \t]+(\d+)[ \t]+(\d+)[ \t]+(0x\S*)[ \t]+`

func (p *parser) readListLine(l *Line, x *listLine) error {
	const own, width, speed, peer, names = 1, 5, 6, 7, 11 // parts of listRow
	m := parts{l, listRow.FindSubmatchIndex(l.Rest())}
	if m.at == nil {
		return p.dropLine(l.At, "not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them")
	}
	if err := p.readListPort(m, own, &x.own); err != nil {
		return err
	}
	var ok bool
	if x.link, ok = linkOf(m.part(width).Rest()); !ok {
		return p.dropLine(m.part(width).At, "width %q: want a number and x", m.part(width).Rest())
	}
	x.link.Speed, _ = fabric.ParseSpeed(string(m.part(speed).Rest()))
	x.own.name = string(m.part(names).Rest())
	if x.linked = m.has(peer); !x.linked {
		x.link = fabric.Link{}
		return nil
	}
	// Descriptions are not escaped: split at the first possible place.
	text := x.own.name
	if x.own.name, x.peer.name, ok = strings.Cut(text, separator); !ok {
		return p.dropLine(m.part(names).At-1, "want the descriptions of both nodes: 'one' - 'other'")
	}
	if strings.Contains(text[len(x.own.name)+1:], separator) {
		p.note(x.at, 0, "the descriptions can be split in several ways: taken as %q and %q", x.own.name, x.peer.name)
	}
	return p.readListPort(m, peer, &x.peer)
}

// readListPort reads a port, whose parts begin with number at.
func (p *parser) readListPort(m parts, at int, to *listPort) (err error) {
	to.kind = listKind(m.part(at).Rest())
	if err := p.readEnd(m, at+1, to); err != nil {
		return err
	}
	to.guid, err = p.readGUID0x(m.part(at+3), "line dropped")
	return err
}

func (p *parser) readEnd(m parts, at int, to *listPort) error {
	if err := p.takeLID(m.part(at), to); err != nil {
		return err
	}
	num, err := p.readPortNum(m.part(at + 1))
	to.num = num
	return err
}

func (p *parser) readPortNum(l *Line) (fabric.PortNum, error) {
	start := *l
	v := l.decimal()
	if v < 1 || v > int(fabric.MaxPortNum) {
		return 0, p.dropLine(start.At, "port %s: want 1 to %d", start.Rest(), fabric.MaxPortNum)
	}
	return fabric.PortNum(v), nil
}

func (p *parser) readGUID0x(l *Line, lost string) (fabric.GUID, error) {
	start := *l
	if g := l.GUID(); g != 0 && l.AtEnd() {
		return g, nil
	}
	return 0, p.failHere(start.At, lost, "GUID %q: want 0x and 1 to 16 hexadecimal digits, not 0", start.Rest())
}

// parts are parts of a line by number: where each begins and ends, -1 for none.
type parts struct {
	line *Line
	at   []int
}

func (m parts) has(i int) bool { return m.at[2*i] >= 0 }

// part returns part i, to be read.
func (m parts) part(i int) *Line {
	if !m.has(i) {
		return &Line{}
	}
	return &Line{Text: m.line.Text[:m.line.At+m.at[2*i+1]], At: m.line.At + m.at[2*i]}
}

// ends visits the ports of lines that have a GUID.
func ends(lines []listLine) iter.Seq[*listPort] {
	return func(yield func(*listPort) bool) {
		for i := range lines {
			for _, e := range [...]*listPort{&lines[i].own, &lines[i].peer} {
				if e.guid != 0 && !yield(e) {
					return
				}
			}
		}
	}
}

// inferKinds finds the types of nodes that lines do not state: the result of
// known, if not 0; else a GUID with several ports is a switch's, since each port
// of an adapter has its own. Routers cannot be told from adapters.
func inferKinds(lines []listLine, known func(*listPort) fabric.NodeType) {
	kinds := make(map[fabric.GUID]fabric.NodeType, len(lines)/8+1)
	first := make(map[fabric.GUID]fabric.PortNum, len(lines)/8+1)
	for e := range ends(lines) {
		num, seen := first[e.guid]
		if !seen {
			first[e.guid] = e.num
		}
		switch k := known(e); {
		case k == fabric.Switch || k == 0 && seen && num != e.num:
			kinds[e.guid] = fabric.Switch
		case kinds[e.guid] == 0:
			kinds[e.guid] = fabric.CA
		}
	}
	for e := range ends(lines) {
		e.kind = cmp.Or(e.kind, kinds[e.guid])
	}
}

// takeLID reads the decimal LID of a port.
func (p *parser) takeLID(l *Line, to *listPort) error {
	at, text := l.At, l.nextToken()
	return p.setLID(to, l.decimal(), string(text[:min(len(text), 32)]), at)
}

// setLID sets the LID of a port, or keeps the text of an
// invalid one, which a strict read refuses.
func (p *parser) setLID(to *listPort, lid int, text string, column int) error {
	bad := lid < 0 || lid > int(fabric.MaxUnicastLID)
	if bad && p.strict {
		return p.refusal(p.line, column, "LID %s: want 0 to %d", text, fabric.MaxUnicastLID)
	}
	to.lid, to.bad = fabric.LID(lid), ""
	switch {
	case lid == 0:
		to.bad = "0"
	case bad:
		to.lid, to.bad = 0, cmp.Or(text, "none")
	}
	return nil
}

// placePorts finds the node GUID of each port in lists that have only port GUIDs: see Parse.
// Without bothEnds, each port has a line of its own.
func placePorts(lines []listLine, bothEnds bool) {
	less := func(e *listPort) fabric.GUID {
		if e.kind == fabric.Switch {
			return e.guid
		}
		return e.guid - fabric.GUID(e.num)
	}
	type of struct {
		kind fabric.NodeType
		name string
	}
	nodes, together := make(map[fabric.GUID]of, len(lines)/8+1), true
	for i := range lines {
		ends := []*listPort{&lines[i].own, &lines[i].peer}
		if !bothEnds {
			ends = ends[:1]
		}
		for _, e := range ends {
			g, n := less(e), of{kind: e.kind}
			if e.kind != fabric.Switch {
				n.name = e.name
			}
			before, seen := nodes[g]
			together = together && g != 0 && g <= e.guid && (!seen || before == n)
			nodes[g] = n
		}
	}
	for e := range ends(lines) {
		if e.node = e.guid; together {
			e.node = less(e)
		}
	}
}

// listNodes makes nodes and port lines of the lines of a list. With bothEnds, each line has
// as much about its peer as about its own port, so that one line is enough for a cable.
func (p *parser) listNodes(lines []listLine, bothEnds bool) error {
	if p.form != SubnetList && p.form != NetDump {
		placePorts(lines, bothEnds)
	}
	of := make([]int32, len(lines)) // node of each line, -1 when dropped
	for i := range lines {
		l := &lines[i]
		var err error
		if of[i], err = p.enterNode(l, &l.own); err == nil && of[i] >= 0 && bothEnds {
			var peer int32
			if peer, err = p.enterNode(l, &l.peer); peer < 0 {
				of[i] = -1
			}
		}
		if err != nil {
			return err
		}
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		n.base = len(p.slots)
		p.slots = append(p.slots, make([]int32, int(n.ports)+1)...)
	}
	p.ports = make([]portLine, 0, len(lines))
	first := make([]int32, len(p.slots)) // line of each slot + 1, linked or not
	for i := range lines {
		if of[i] < 0 {
			continue
		}
		l := &lines[i]
		slot := &first[p.nodes[of[i]].base+int(l.own.num)]
		if *slot == 0 {
			*slot = int32(i + 1)
			p.enterPort(l, of[i])
			continue
		}
		of[i] = -1
		again, before := *l, &lines[*slot-1]
		if again.at = before.at; again != *before {
			if err := p.mend(l.at, 0, "line dropped", "port %d of %s %s is there twice: line %d has it too", l.own.num, kindWords[l.own.kind], l.own.guid, before.at.num); err != nil {
				return err
			}
		}
	}
	for i := range lines { // other ends of cables that are listed at one end
		if of[i] < 0 || !lines[i].linked || !bothEnds {
			continue
		}
		l := lines[i]
		l.own, l.peer = l.peer, l.own
		l.peer.lid, l.peer.bad = 0, "" // its own line has reported it
		n := p.byGUID[l.own.node]
		slot := &first[p.nodes[n].base+int(l.own.num)]
		if *slot == 0 || !lines[*slot-1].linked { // its own line may state that it is down
			*slot = int32(i + 1)
			p.enterPort(&l, n)
		}
	}
	return nil
}

// enterNode finds or makes the node of a port of a line. It returns -1 if
// a lenient read drops the line, because an earlier one contradicts it.
func (p *parser) enterNode(l *listLine, e *listPort) (int32, error) {
	i, known := p.byGUID[e.node]
	if !known {
		i = int32(len(p.nodes))
		p.byGUID[e.node] = i
		n := node{id: e.key(), guid: e.node, kind: e.kind, header: l.at, desc: e.name, ports: e.ports}
		if e.kind == fabric.Switch {
			n.portGUID = e.guid
		}
		p.nodes = append(p.nodes, n)
	}
	n, stated := &p.nodes[i], e.ports > 0
	switch {
	case n.kind != e.kind:
		return -1, p.mend(l.at, 0, "line dropped", "GUID %s is of a %s here, but of a %s in line %d", e.guid, kindWords[e.kind], kindWords[n.kind], n.header.num)
	case !stated:
		n.ports = max(n.ports, e.num)
		return i, nil
	case n.ports != e.ports:
		return -1, p.mend(l.at, 0, "line dropped", "node %s has %d ports here, but %d in line %d", e.node, e.ports, n.ports, n.header.num)
	}
	differ := n.desc != e.name || e.kind == fabric.Switch && n.portGUID != e.guid
	differ = merge(&n.system, e.system) || differ
	differ = merge(&n.vendor, e.vendor) || differ
	if differ = merge(&n.device, e.device) || differ; differ && !n.odd {
		n.odd = true
		p.note(l.at, 0, "node %s is described otherwise in a line before", e.node)
	}
	return i, nil
}

// merge keeps the first value that is not 0, and returns true if another differs.
func merge[T comparable](have *T, v T) bool {
	var none T
	if *have == none {
		*have = v
	}
	return v != none && *have != v
}

// enterPort makes the port line of a line of node i, if it
// has a cable, and sets the LID of a switch.
func (p *parser) enterPort(l *listLine, i int32) {
	n := &p.nodes[i]
	if n.kind == fabric.Switch && l.own.lid != 0 {
		if n.lid == 0 {
			n.lid = l.own.lid
			n.header = l.at
		} else if n.lid != l.own.lid {
			p.note(l.at, 0, "LID of %s %s is %d here, but %d in line %d: taken from there", kindWords[n.kind], n.guid, l.own.lid, n.lid, n.header.num)
		}
	}
	of := endRef{i, -1}
	if n.kind != fabric.Switch {
		of.line = int32(len(p.ports))
	}
	if n.kind == fabric.Switch || l.linked {
		p.noteBadLID(badLID{text: l.own.bad, at: l.at, of: of})
	}
	if !l.linked {
		return
	}
	line := portLine{
		at:      l.at,
		node:    i,
		back:    -1,
		num:     l.own.num,
		peer:    l.peer.key(),
		peerNum: l.peer.num,
		peerLID: l.peer.lid,
		link:    l.link,
	}
	if l.own.label != "" {
		line.label = p.labelOf(l.own.label)
	}
	if n.kind != fabric.Switch {
		line.guid, line.lid = l.own.guid, l.own.lid
	}
	if l.peer.kind != fabric.Switch {
		line.peerGUID = l.peer.guid
	}
	p.noteBadLID(badLID{text: l.peer.bad, at: l.at, of: endRef{i, int32(len(p.ports))}, peer: true})
	p.ports = append(p.ports, line)
	p.slots[n.base+int(l.own.num)] = int32(len(p.ports))
}
