package topology

import (
	"bytes"
	"math"
	"regexp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// guidCounter is the GUID that ibsim gives to the next node of a type (guids
// and absguids in sim_net.c).
type guidCounter struct {
	next   fabric.GUID
	base   fabric.GUID
	port   fabric.GUID // from switchguid=0x1(2), 0 when absent
	stated bool        // by a line since the last node of the type
}

// readStanzas reads a text of stanzas, one for each node.
func (p *parser) readStanzas() error {
	p.current = -1
	p.guids[fabric.CA] = guidCounter{next: 0x100000, base: 0x100000}
	p.guids[fabric.Switch] = guidCounter{next: 0x200000, base: 0x200000}
	// ibnetdiscover writes about 80 bytes for a port line and 200 more for a
	// node.
	p.ports = make([]portLine, 0, len(p.data)/96+16)
	p.nodes = make([]node, 0, len(p.data)/512+16)
	return p.eachLine(func(l *Line) error {
		if l.Is('[') && p.isPort(*l) {
			if err := p.settleNoise(p.current >= 0 || p.dropped); err != nil {
				return err
			}
			return p.readPort(l)
		}
		return p.readOther(l)
	})
}

// isPort returns true if a line that begins with [ is a port line, and not a prompt or the
// time of a log.
func (p *parser) isPort(l Line) bool {
	if bytes.IndexByte(l.Rest(), '"') >= 0 {
		return true
	}
	if p.current < 0 && !p.dropped {
		return false
	}
	l.At++
	l.SkipBlanks()
	if l.decimal() < 0 {
		return l.Is(']')
	}
	l.SkipBlanks()
	return l.Done() || l.Is(']')
}

// isBrokenHeader returns true if a line that begins like a header is a damaged header, and not
// a prompt, which may begin with the same word.
func isBrokenHeader(l Line) bool {
	if bytes.IndexByte(l.Rest(), '"') >= 0 {
		return true
	}
	l.SkipBlanks()
	l.decimal()
	l.SkipBlanks()
	return l.Done() || l.Is('#')
}

// readOther reads a line that is not one of a port.
func (p *parser) readOther(l *Line) error {
	start := *l
	word := l.letters()
	switch kind := headerKinds[string(word)]; {
	case kind != 0 && !isBrokenHeader(*l):
		return p.passOver(&start)
	case kind != 0:
		if err := p.settleNoise(p.begun); err != nil {
			return err
		}
		return p.readHeader(l, kind)
	case len(p.pending) > 0 && before.Match(word):
		if err := p.settleNoise(p.begun); err != nil {
			return err
		}
	}
	switch string(word) {
	case "switchguid", "switchguids":
		return p.readGUID(l, fabric.Switch)
	case "caguid", "caguids", "hcaguid", "hcaguids":
		return p.readGUID(l, fabric.CA)
	case "rtguid", "rtguids":
		return p.readGUID(l, fabric.Router)
	case "vendid":
		v, err := p.readNumber(l, 1<<24-1)
		p.vendor = uint32(v)
		return err
	case "devid":
		// In ibsim it stays for the nodes that follow, unlike vendid and sysimgguid (new_node).
		v, err := p.readNumber(l, 1<<16-1)
		p.device = uint16(v)
		return err
	case "sysimgguid":
		v, err := p.readNumber(l, math.MaxUint64)
		p.system = fabric.GUID(v)
		return err
	case "width", "speed", "extspeed":
		ahead := *l
		if ahead.SkipBlanks(); !ahead.Is('=') {
			return p.passOver(&start)
		}
		i := slices.IndexFunc(masks[:], func(m linkMask) bool { return m.word == string(word) })
		v, err := p.readNumber(l, masks[i].most)
		p.masks[i] = int(v)
		return err
	case "pdebug": // ibsim's switch for its own debugging
		return nil
	case "Chassis", "Hostname": // of ibnetdiscover -g
		return nil
	}
	if bytes.HasPrefix(start.Rest(), []byte("Non-Chassis Nodes")) { // ibnetdiscover -g
		return nil
	}
	return p.refuse(start)
}

// headerKinds has the type of node that the first word of a header says.
var headerKinds = map[string]fabric.NodeType{"Switch": fabric.Switch, "Ca": fabric.CA, "Hca": fabric.CA, "Rt": fabric.Router}

// before matches the first word of a line that stands before a header.
var before = regexp.MustCompile(`^` + beforeWords + `$`)

// refuse reports why a line cannot be used, or passes over a line that is no topology text.
func (p *parser) refuse(l Line) error {
	at := l.At
	quoted, inList := bytes.IndexByte(l.Rest(), '"') >= 0, formOf(l.Rest()) == PortList
	start, header := l, anyHeader.Match(l.Rest())
	switch word := l.letters(); {
	case !quoted && !inList:
	case l.Is('@') && len(word) == 0, slices.Contains([]string{"include", "do", "module"}, string(word)):
		return p.dropLine(at, "ibsim's %s cannot be followed: load this file into ibsim and read what ibnetdiscover prints there", start.nextToken())
	case inList:
		return p.dropLine(at, "a line of ibnetdiscover -p in a text of another form: want one form only")
	case header:
		p.noNode()
		return p.failHere(at, "stanza dropped", "no such node type %q: want Switch, Ca, Hca or Rt", word)
	}
	l.At = at
	return p.passOver(&l)
}

// anyHeader is a word, a number and a quoted id, as in the first line of a stanza.
var anyHeader = regexp.MustCompile(`^[A-Za-z]+[ \t]*\d+[ \t]*"`)

// noNode makes port lines be ignored until the next header, because the header
// before them is not used.
func (p *parser) noNode() { p.current, p.dropped = -1, true }

// noStanza is called for a line between stanzas: port lines after it belong to no node.
func (p *parser) noStanza() { p.current, p.dropped = -1, false }

// readNumber reads =N, hexadecimal with 0x or decimal.
func (p *parser) readNumber(l *Line, most uint64) (uint64, error) {
	p.noStanza()
	p.begun = true
	l.SkipBlanks()
	if !l.Skip("=") {
		return 0, p.dropLine(l.At, "want = and a number")
	}
	l.SkipBlanks()
	start := *l
	v, ok := l.number()
	if !ok || !l.IsBlank() && !l.Is('#') {
		return 0, p.dropLine(start.At, "number %q: want decimal digits or 0x and hexadecimal digits", start.nextToken())
	}
	if v > most {
		return 0, p.dropLine(start.At, "%s is too large: want at most %#x", start.nextToken(), most)
	}
	return v, nil
}

// readGUID reads =0x1(2), or +N, which ibsim adds to the GUID of the last such
// line (parse_guidbase).
func (p *parser) readGUID(l *Line, kind fabric.NodeType) error {
	p.noStanza()
	p.begun = true
	c := &p.guids[kind]
	l.SkipBlanks()
	relative := l.Is('+')
	if !relative && !l.Is('=') {
		return p.dropLine(l.At, "want = and a GUID")
	}
	l.At++
	l.SkipBlanks()
	start := *l
	v, ok := l.number()
	if !relative && (!start.Is('0') || l.At == start.At+1) {
		ok = false // the base is unclear without 0x
	}
	if !ok {
		return p.dropLine(start.At, "GUID %q: want 0x and 1 to 16 hexadecimal digits", start.nextToken())
	}
	var port fabric.GUID
	if l.Is('(') {
		start := *l
		if port, ok = l.guidInBrackets(); !ok {
			return p.dropLine(start.At, "port GUID %q: want 1 to 16 hexadecimal digits in brackets", start.nextToken())
		}
	}
	if !l.IsBlank() && !l.Is('#') {
		return p.dropLine(l.At, "text behind the GUID: want nothing or a comment")
	}
	if relative {
		c.next = c.base + fabric.GUID(v)
	} else {
		c.next, c.base = fabric.GUID(v), fabric.GUID(v)
	}
	c.port, c.stated = port, true
	return nil
}

// readHeader reads the line that a stanza begins with, behind the type:
//
//	Switch	36 "S-0002c90000000001"		# "leaf 1" enhanced port 0 lid 7 lmc 0
func (p *parser) readHeader(l *Line, kind fabric.NodeType) error {
	p.noNode()
	p.begun = false
	if p.strict && !l.IsBlank() {
		return p.refusal(p.line, l.At, "no tab behind the type of node: want one")
	}
	n := node{
		header: p.line, kind: kind, vendor: p.vendor, device: p.device, system: p.system, base: len(p.slots),
		portGUID: p.guids[kind].port,
	}
	p.vendor, p.system = 0, 0
	id, err := p.readNodeID(l, &n)
	if err != nil {
		return err
	}
	if err := p.identify(&n, id); err != nil {
		return err
	}
	if err := p.readNodeComment(l, &n, id.text); err != nil {
		return err
	}
	p.current, p.dropped = int32(len(p.nodes)), false
	p.byGUID[n.guid] = p.current
	if n.id.kind == 0 {
		p.nameNode[n.id.value] = p.current
	}
	p.nodes = append(p.nodes, n)
	p.slots = append(p.slots, make([]int32, int(n.ports)+1)...)
	return nil
}

// nodeID is the id of a node, and its column.
type nodeID struct {
	text []byte
	at   int
}

// readNodeID reads the number of ports and the id of a header.
func (p *parser) readNodeID(l *Line, n *node) (id nodeID, err error) {
	l.SkipBlanks()
	start := *l
	ports := l.decimal()
	if ports < 1 || ports > int(fabric.MaxPortNum) {
		return id, p.failHere(start.At, "stanza dropped", "number of ports %s: want 1 to %d", start.nextToken(), fabric.MaxPortNum)
	}
	n.ports = fabric.PortNum(ports)
	l.SkipBlanks()
	id.at = l.At
	if id.text = l.quoted(); len(id.text) == 0 {
		return id, p.failHere(id.at, "stanza dropped", "want the node's id in quotes, such as \"S-0002c90000000001\"")
	}
	if p.strict && l.Is('#') {
		return id, p.refusal(p.line, l.At, "no tab behind the node's id: want one")
	}
	l.SkipBlanks()
	if !l.Done() && !l.Is('#') {
		return id, p.failHere(l.At, "stanza dropped", "text behind the node's id: want nothing or a comment")
	}
	return id, nil
}

// identify sets the key and GUID of a node.
func (p *parser) identify(n *node, id nodeID) error {
	const lost = "stanza dropped"
	c := &p.guids[n.kind]
	stated, fromID := c.stated, false
	if n.id, fromID = guidID(id.text); !fromID {
		n.id = p.name(id.text)
	}
	if fromID && !stated {
		n.guid = fabric.GUID(n.id.value)
	} else {
		n.guid = c.next
		c.next++
		if n.kind != fabric.Switch {
			c.next += fabric.GUID(n.ports)
		}
	}
	if of := fabric.GUID(n.id.value); fromID && n.guid != of && c.port == of {
		// ibdiagnet's switchguid=0xSYSTEM(NODE); ibnetdiscover has 0xNODE(PORT)
		if n.system == 0 {
			n.system = n.guid
		}
		n.guid, n.portGUID = of, 0
	}
	c.stated, c.port = false, 0
	if fromID && n.guid != fabric.GUID(n.id.value) {
		if err := p.mend(p.line, id.at, "the id counts", "id %s of a node with GUID %s: want the same GUID in both", id.text, n.guid); err != nil {
			return err
		}
		n.guid = fabric.GUID(n.id.value)
	}
	switch {
	case n.guid == 0 && n.kind == fabric.Router && !stated && !fromID:
		return p.failHere(id.at, lost, "ibsim gives this router GUID 0: want a line such as rtguid=0x300000 in front of it")
	case n.guid == 0:
		return p.failHere(id.at, lost, "node %q has GUID 0: want another", id.text)
	case n.kind != fabric.Switch && n.guid > math.MaxUint64-fabric.GUID(n.ports):
		return p.failHere(id.at, lost, "GUID %s leaves no room for the GUIDs of %d ports", n.guid, n.ports)
	}
	if n.id.kind == 0 && p.nameNode[n.id.value] >= 0 {
		return p.failHere(id.at, lost, "id %q is used twice: line %d has it too", id.text, p.nodes[p.nameNode[n.id.value]].header.num)
	}
	if other, ok := p.byGUID[n.guid]; ok {
		again := ""
		if bytes.Equal(p.textOf(p.line), p.textOf(p.nodes[other].header)) {
			again = "; want one capture in a file"
		}
		return p.failHere(id.at, lost, "GUID %s is used twice: the node of line %d has it too%s", n.guid, p.nodes[other].header.num, again)
	}
	return nil
}

// readNodeComment reads the comment of a header, with the description, which defaults to the id.
func (p *parser) readNodeComment(l *Line, n *node, id []byte) error {
	l.Skip("#")
	l.SkipBlanks()
	desc := id // the default of ibsim's new_node
	if last := bytes.LastIndexByte(l.Text, '"'); l.Is('"') && last > l.At {
		desc = l.Text[l.At+1 : last] // it may contain quotes
		l.At = last + 1
	} else if !l.Done() {
		end := unquotedEnd(l)
		if text := bytes.TrimRight(l.Text[l.At:max(l.At, end)], " \t"); len(text) > 0 {
			desc = text
		}
		l.At = end
	}
	n.desc = string(desc)
	var c comment
	if err := p.readComment(l, &c); err != nil {
		return err
	}
	if n.kind == fabric.Switch {
		n.lid, n.lmc, n.enhanced0 = c.lid, c.lmc, c.enhanced
		p.noteBadLID(badLID{c.bad, p.line, c.badAt, endRef{int32(len(p.nodes)), -1}, false})
	}
	return nil
}

// unquotedEnd returns where a description without quotes,
// as in old captures, ends for ibsim (parse_node_desc).
func unquotedEnd(l *Line) int {
	for _, stop := range []string{" enhanced port ", " base port ", " lid ", " lmc "} {
		if n := bytes.Index(l.Text[l.At-1:], []byte(stop)); n >= 0 {
			return l.At - 1 + n
		}
	}
	return len(l.Text)
}

// name returns the key of an id that is not made of a GUID.
func (p *parser) name(id []byte) key {
	n, ok := p.names[string(id)]
	if !ok {
		n = int32(len(p.nameNode))
		p.names[string(id)] = n
		p.nameNode = append(p.nameNode, -1)
	}
	return key{value: uint64(n)}
}
