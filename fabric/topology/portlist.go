package topology

import (
	"bytes"

	"github.com/ibweave/ibweave/fabric"
)

// listLine is a line of a port list (dump_ports_report), or what another form says of one
// port:
//
//	CA    32  1 0x000000000010001f 4x QDR - SW    24  5 0x000000000020000f ( 'host 3,3' - 'switch 3,3' )
//	SW    24  1 0x000000000020000f 4x SDR                                    'switch 3,3'
type listLine struct {
	at     place
	own    listPort
	peer   listPort
	link   fabric.Link
	linked bool
	names  []byte // what stands between the first quote and the last
	desc   []byte // of the node, where named says so; names is nil then
	named  bool
	label  string // of the port, "" for none
}

// firstName is names up to the first place where a description can end.
func (l *listLine) firstName() []byte {
	if l.named {
		return l.desc
	}
	if n := bytes.Index(l.names, separator); n >= 0 {
		return l.names[:n]
	}
	return l.names
}

// listPort is a port as a port list has it. A switch has the same GUID on all
// its ports.
type listPort struct {
	guid fabric.GUID
	kind fabric.NodeType
	num  fabric.PortNum
	lid  fabric.LID
	bad  string // a LID that no port can have, "" for none

	stated *statedNode // its node, nil where a form has the port only
}

// key identifies the node of the port by its GUID.
func (l *listPort) key(nodeOf func(*listPort) fabric.GUID) key {
	return key{value: uint64(nodeOf(l)), kind: idKind(l.kind)}
}

// listKind reads the type of a node in a port list or a subnet list.
func listKind(s []byte) (fabric.NodeType, bool) {
	switch string(s) {
	case "SW":
		return fabric.Switch, true
	case "CA":
		return fabric.CA, true
	case "RT", "Rt", "RTR": // of subnet lists, by OpenSM and by ibdiagnet
		return fabric.Router, true
	}
	return 0, false
}

// idKind is the letter that ids of a type of node begin with.
func idKind(kind fabric.NodeType) byte {
	switch kind {
	case fabric.Switch:
		return 'S'
	case fabric.Router:
		return 'R'
	}
	return 'H'
}

// listType is the type that a port list has for such a letter.
func listType(letter byte) string {
	switch letter {
	case 'S':
		return "SW"
	case 'R':
		return "RT"
	}
	return "CA"
}

// isListLine says whether text[at:] begins as a line of a port list.
func isListLine(text []byte, at int) bool {
	if at+2 >= len(text) {
		return false
	}
	if _, ok := listKind(text[at : at+2]); !ok {
		return false
	}
	l := Line{Text: text, At: at + 2}
	for range 2 { // LID, port number
		from := l.At
		if l.SkipBlanks(); l.At == from || l.decimal() < 0 {
			return false
		}
	}
	l.SkipBlanks()
	return l.Skip("0x")
}

// readList reads a port list.
func (p *parser) readList() error {
	lines := make([]listLine, 0, len(p.data)/96+16)
	err := p.eachLine(func(l *Line) error {
		if !isListLine(l.Text, l.At) && !isBrokenList(l.Rest()) && !isStanza(*l) {
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
	return p.listNodes(lines)
}

// isBrokenList says whether a line that is none of a port list begins as one: it may be
// cut, or lack a blank.
func isBrokenList(text []byte) bool {
	if len(text) < 2 {
		return false
	}
	_, ok := listKind(text[:2])
	return ok && (len(text) == 2 || text[2] == ' ' || text[2] == '\t' || '0' <= text[2] && text[2] <= '9')
}

// isStanza says whether a line is one of a stanza.
func isStanza(l Line) bool {
	word := l.letters()
	return headerKind(word) != 0 && isBrokenHeader(l) || isBefore(word)
}

func (p *parser) readListLine(l *Line, x *listLine) error {
	const lost = "line dropped"
	if !isListLine(l.Text, l.At) {
		return p.failHere(l.At, lost, "not a line of a port list: want what ibnetdiscover -p prints on standard output")
	}
	if err := p.readListPort(l, &x.own); err != nil {
		return err
	}
	l.SkipBlanks()
	width := l.token()
	l.SkipBlanks()
	speed := l.token()
	l.SkipBlanks()
	if len(width) < 2 || len(speed) < 2 {
		return p.failHere(l.At, lost, "want width and speed, such as 4x NDR")
	}
	link, ok := linkOf(width)
	if !ok {
		return p.failHere(l.At, lost, "width %q: want a number and x", width)
	}
	link.Speed, _ = fabric.ParseSpeed(string(speed))

	if l.Skip("-") {
		l.SkipBlanks()
		if !isListLine(l.Text, l.At) {
			return p.failHere(l.At, lost, "want the port at the other end: SW, CA or RT, LID, port number and GUID")
		}
		if err := p.readListPort(l, &x.peer); err != nil {
			return err
		}
		l.SkipBlanks()
		if l.Skip("(") {
			l.SkipBlanks()
		}
		x.linked, x.link = true, link
	}
	last := bytes.LastIndexByte(l.Text, '\'')
	if !l.Is('\'') || last <= l.At {
		return p.failHere(l.At, lost, "want the node's description in single quotes")
	}
	x.names = l.Text[l.At+1 : last]
	if x.linked && !bytes.Contains(x.names, separator) {
		return p.failHere(l.At, lost, "want the descriptions of both nodes: 'one' - 'other'")
	}
	return nil
}

// separator is between two descriptions, with the quotes of both.
var separator = []byte("' - '")

// readListPort reads "SW    24  5 0x000000000020000f", which isListLine has
// looked at.
func (p *parser) readListPort(l *Line, to *listPort) error {
	const lost = "line dropped"
	to.kind, _ = listKind(l.Text[l.At : l.At+2])
	l.At += 2
	l.SkipBlanks()
	start := *l
	lid := l.decimal()
	if lid > int(fabric.MaxUnicastLID) {
		if p.strict {
			return p.refusal(p.line, start.At, "LID %s: want 0 to %d", start.nextToken(), fabric.MaxUnicastLID)
		}
		to.bad = string(start.nextToken())
		lid = 0
	}
	to.lid = fabric.LID(lid)
	l.SkipBlanks()
	start = *l
	num := l.decimal()
	if num < 1 || num > int(fabric.MaxPortNum) {
		return p.failHere(start.At, lost, "port %s: want 1 to %d", start.nextToken(), fabric.MaxPortNum)
	}
	to.num = fabric.PortNum(num)
	l.SkipBlanks()
	start = *l
	g, ok := l.number()
	if !ok || !l.IsBlank() {
		return p.failHere(start.At, lost, "GUID %q: want 0x and 1 to 16 hexadecimal digits", start.nextToken())
	}
	if g == 0 {
		return p.failHere(start.At, lost, "GUID 0: want another")
	}
	to.guid = fabric.GUID(g)
	return nil
}

// listNodes makes nodes and port lines of the lines of a list.
func (p *parser) listNodes(lines []listLine) error {
	nodeOf := p.nodeRule(lines)
	of := make([]int32, len(lines)) // node of each line, -1 when dropped
	stated := false
	for i := range lines {
		l := &lines[i]
		var err error
		if of[i], err = p.enterNode(l, &l.own, nodeOf); err != nil {
			return err
		}
		if stated = l.peer.stated != nil; !stated || of[i] < 0 {
			continue
		}
		peer, err := p.enterNode(l, &l.peer, nodeOf)
		if err != nil {
			return err
		}
		if peer < 0 {
			of[i] = -1
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
		n := &p.nodes[of[i]]
		slot := n.base + int(l.own.num)
		if first[slot] != 0 {
			of[i] = -1
			if err := p.mend(l.at, 0, "line dropped", "port %d of %s %s is there twice: line %d has it too", l.own.num, listType(n.id.kind), l.own.guid, lines[first[slot]-1].at.num); err != nil {
				return err
			}
			continue
		}
		first[slot] = int32(i + 1)
		p.enterPort(l, of[i], nodeOf)
	}
	if !stated {
		p.describe(lines, of, first, nodeOf)
		return nil
	}
	for i := range lines { // the other ends of cables that are there from one end
		l := &lines[i]
		n := p.byGUID[l.peer.stated.guid]
		slot := p.nodes[n].base + int(l.peer.num)
		if of[i] >= 0 && l.linked && (first[slot] == 0 || !lines[first[slot]-1].linked) { // its own line may say that it is down
			first[slot] = int32(i + 1)
			l.own, l.peer = l.peer, l.own
			l.peer.lid, l.peer.bad = 0, "" // its own line has told
			p.enterPort(l, n, nodeOf)
		}
	}
	return nil
}

// enterNode finds or makes the node of a port of a line. It is -1 where a lenient read drops the
// line, because one before says something else.
func (p *parser) enterNode(l *listLine, e *listPort, nodeOf func(*listPort) fabric.GUID) (int32, error) {
	const lost = "line dropped"
	g := nodeOf(e)
	i, known := p.byGUID[g]
	if !known {
		i = int32(len(p.nodes))
		p.byGUID[g] = i
		p.nodes = append(p.nodes, node{id: e.key(nodeOf), guid: g, kind: e.kind, header: l.at})
	}
	n, s := &p.nodes[i], e.stated
	switch {
	case n.kind != e.kind:
		return -1, p.mend(l.at, 0, lost, "GUID %s is of a %s here, but of a %s in line %d", e.guid, listType(idKind(e.kind)), listType(n.id.kind), n.header.num)
	case s == nil:
		n.ports = max(n.ports, e.num)
		return i, nil
	case !known:
		n.ports, n.desc = s.ports, string(s.desc)
		if e.kind == fabric.Switch {
			n.portGUID = e.guid
		}
	case n.ports != s.ports:
		return -1, p.mend(l.at, 0, lost, "node %s has %d ports here, but %d in line %d", g, s.ports, n.ports, n.header.num)
	}
	differ := n.desc != string(s.desc) || e.kind == fabric.Switch && n.portGUID != e.guid
	differ = merge(&n.system, s.system) || differ
	differ = merge(&n.vendor, s.vendor) || differ
	if differ = merge(&n.device, s.device) || differ; differ && !n.odd {
		n.odd = true
		p.note(l.at, 0, "node %s is described otherwise in a line before", g)
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

// enterPort makes the port line of a line of node i, if it has a cable, and takes the LID of a
// switch.
func (p *parser) enterPort(l *listLine, i int32, nodeOf func(*listPort) fabric.GUID) {
	n := &p.nodes[i]
	if n.kind == fabric.Switch && l.own.lid != 0 {
		if n.lid == 0 {
			n.lid = l.own.lid
			n.header = l.at
		} else if n.lid != l.own.lid {
			p.note(l.at, 0, "LID of %s %s is %d here, but %d in line %d: taken from there", listType(n.id.kind), n.guid, l.own.lid, n.lid, n.header.num)
		}
	}
	if l.own.bad != "" && n.kind == fabric.Switch {
		p.badLIDs = append(p.badLIDs, badLID{text: l.own.bad, at: l.at, node: i, port: -1})
	}
	if !l.linked {
		return
	}
	line := portLine{
		at:      l.at,
		node:    i,
		back:    -1,
		num:     l.own.num,
		peer:    l.peer.key(nodeOf),
		peerNum: l.peer.num,
		peerLID: l.peer.lid,
		link:    l.link,
	}
	if l.label != "" {
		line.label = p.labelOf(l.label)
	}
	if zero := l.own.lid == 0 && l.own.bad == ""; n.kind == fabric.Switch {
		n.zero = n.zero || zero
	} else {
		line.guid, line.lid, line.zero = l.own.guid, l.own.lid, zero
	}
	if l.peer.kind != fabric.Switch {
		line.peerGUID = l.peer.guid
	}
	at := int32(len(p.ports))
	if l.own.bad != "" && n.kind != fabric.Switch {
		p.badLIDs = append(p.badLIDs, badLID{text: l.own.bad, at: l.at, node: i, port: at})
	}
	if l.peer.bad != "" {
		p.badLIDs = append(p.badLIDs, badLID{text: l.peer.bad, at: l.at, node: i, port: at, peer: true})
	}
	p.ports = append(p.ports, line)
	p.slots[n.base+int(l.own.num)] = int32(len(p.ports))
}

// nodeRule chooses how the node GUID of a CA or router is made of a port's:
// see Parse.
func (p *parser) nodeRule(lines []listLine) func(*listPort) fabric.GUID {
	if len(lines) > 0 && lines[0].own.stated != nil {
		return func(l *listPort) fabric.GUID { return l.stated.guid }
	}
	less := func(l *listPort) fabric.GUID {
		if l.kind == fabric.Switch {
			return l.guid
		}
		return l.guid - fabric.GUID(l.num)
	}
	kinds := make(map[fabric.GUID]fabric.NodeType, len(lines)/8+1)
	names := make(map[fabric.GUID]string)
	for i := range lines {
		l := &lines[i]
		g := less(&l.own)
		kind, seen := kinds[g]
		kinds[g] = l.own.kind
		name := ""
		if l.own.kind != fabric.Switch {
			name = string(l.firstName())
		}
		if g == 0 || g > l.own.guid || seen && (kind != l.own.kind || names[g] != name) {
			return func(l *listPort) fabric.GUID { return l.guid }
		}
		if !seen && name != "" {
			names[g] = name
		}
	}
	return less
}

// describe finds the descriptions of the nodes. They are not escaped, so that
// 'a' - 'b' - 'c' may be split in two ways: lines that can be split in one way
// only decide, and after them the line of the other end, which has the same two
// descriptions in the other order.
func (p *parser) describe(lines []listLine, of, first []int32, nodeOf func(*listPort) fabric.GUID) {
	known := make([][]byte, len(p.nodes))
	for i := range lines {
		l := &lines[i]
		if of[i] < 0 {
			continue
		}
		switch {
		case l.named && known[of[i]] == nil:
			known[of[i]] = l.desc
		case !l.named && !l.linked:
			known[of[i]] = l.names
		}
		if l.named || !l.linked {
			continue
		}
		at := bytes.Index(l.names, separator)
		if bytes.Contains(l.names[at+1:], separator) {
			continue
		}
		if known[of[i]] == nil {
			known[of[i]] = l.names[:at]
		}
	}
	for i := range lines {
		l := &lines[i]
		if of[i] >= 0 && known[of[i]] == nil && !l.named {
			peer := p.find(l.peer.key(nodeOf))
			known[of[i]] = p.splitNames(l, peer, known, lines, first)
		}
	}
	for i := range p.nodes {
		p.nodes[i].desc = string(known[i])
	}
}

// splitNames gives the first description of a line that can be split in several
// ways.
func (p *parser) splitNames(l *listLine, peer int32, known [][]byte, lines []listLine, first []int32) []byte {
	if peer < 0 || len(l.names) > 4096 { // trying takes quadratic time
		return l.firstName()
	}
	if known[peer] != nil {
		if own, ok := bytes.CutSuffix(l.names, known[peer]); ok && bytes.HasSuffix(own, separator) {
			return own[:len(own)-len(separator)]
		}
	}
	n := &p.nodes[peer]
	if l.peer.num > n.ports || first[n.base+int(l.peer.num)] == 0 {
		return l.firstName()
	}
	back := lines[first[n.base+int(l.peer.num)]-1].names
	for at := 0; ; at++ {
		k := bytes.Index(l.names[at:], separator)
		if k < 0 {
			return l.firstName()
		}
		at += k
		own, other := l.names[:at], l.names[at+len(separator):]
		if rest, ok := bytes.CutPrefix(back, other); ok && bytes.HasSuffix(rest, own) && bytes.HasPrefix(rest, separator) && len(rest) == len(separator)+len(own) {
			return own
		}
	}
}
