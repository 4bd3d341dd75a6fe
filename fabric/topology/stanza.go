package topology

import (
	"bytes"
	"fmt"
	"math"

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

// linkMasks is what ibsim lets a port run at, one bit each: IBA's
// LinkWidthEnabled, LinkSpeedEnabled and LinkSpeedExtEnabled. 0 is not stated.
type linkMasks struct{ width, speed, ext int }

// ibsim's defaults, DEFAULT_LINKWIDTH and DEFAULT_LINKSPEED in sim.h.
const (
	defaultWidth = 2 // 4x
	defaultSpeed = 1 // SDR
)

// link is the best link of the masks, in ibsim's order of preference
// (get_active_linkwidth and its like).
func (m linkMasks) link() fabric.Link {
	if m == (linkMasks{}) {
		return fabric.Link{}
	}
	if m.width == 0 {
		m.width = defaultWidth
	}
	if m.speed == 0 {
		m.speed = defaultSpeed
	}
	var l fabric.Link
	switch {
	case m.width&8 != 0:
		l.Width = 12
	case m.width&4 != 0:
		l.Width = 8
	case m.width&2 != 0:
		l.Width = 4
	case m.width&16 != 0:
		l.Width = 2
	default:
		l.Width = 1
	}
	switch {
	case m.ext&8 != 0:
		l.Speed = fabric.NDR
	case m.ext&4 != 0:
		l.Speed = fabric.HDR
	case m.ext&2 != 0:
		l.Speed = fabric.EDR
	case m.ext&1 != 0:
		l.Speed = fabric.FDR
	case m.speed&4 != 0:
		l.Speed = fabric.QDR
	case m.speed&2 != 0:
		l.Speed = fabric.DDR
	default:
		l.Speed = fabric.SDR
	}
	return l
}

// readStanzas reads a text of stanzas, one for each node.
func (p *parser) readStanzas() error {
	p.current = -1
	p.guids[fabric.CA] = guidCounter{next: 0x100000, base: 0x100000}
	p.guids[fabric.Switch] = guidCounter{next: 0x200000, base: 0x200000}
	// About 80 bytes a port line and 200 more a node is what ibnetdiscover
	// writes.
	p.ports = make([]portLine, 0, len(p.data)/96+16)
	nodes := len(p.data) / 512
	p.nodes = make([]node, 0, nodes+16)
	p.slots = make([]int32, 0, nodes+cap(p.ports))
	p.desc = make([]byte, 0, len(p.data)/32)
	p.byGUID.Grow(nodes + 16)
	p.line = place{num: 1}
	p.hex = noHex
	for at := 0; at < len(p.data); {
		next := at
		switch p.data[at] {
		case '\n':
			next++
			p.endLine(next)
		case '[':
			next = p.printedPorts(at)
		case 'C', 'S':
			if n := p.printedHeader(at); n > 0 {
				next = n
				p.endLine(next)
			}
		case 'v', 'd', 's', 'c':
			next = p.printedAttributes(at)
		}
		if next > at {
			at = next
			continue
		}
		s, rest := cutLine(p.data[at:])
		at = len(p.data) - len(rest)
		i := 0
		for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
			i++
		}
		var err error
		switch {
		case i == len(s) || s[i] == '#':
		case s[i] == '[':
			err = p.readPort(s, i)
		default:
			err = p.readOther(s, i)
		}
		if err != nil && err != errDropped {
			return err
		}
		p.endLine(at)
	}
	return nil
}

// endLine goes on to the line that begins at p.data[next].
func (p *parser) endLine(next int) {
	p.line.off = uint32(next)
	p.line.num++
}

// readOther reads a line that is neither empty, nor a comment, nor one of a
// port.
func (p *parser) readOther(s []byte, i int) error {
	word := wordAt(s, i)
	after := i + len(word)
	switch string(word) {
	case "Switch":
		return p.readHeader(s, after, fabric.Switch)
	case "Ca", "Hca":
		return p.readHeader(s, after, fabric.CA)
	case "Rt":
		return p.readHeader(s, after, fabric.Router)
	case "switchguid", "switchguids":
		return p.readGUID(s, after, fabric.Switch)
	case "caguid", "caguids", "hcaguid", "hcaguids":
		return p.readGUID(s, after, fabric.CA)
	case "rtguid", "rtguids":
		return p.readGUID(s, after, fabric.Router)
	case "vendid":
		v, err := p.readNumber(s, after, 1<<24-1)
		p.vendor = uint32(v)
		return err
	case "devid":
		// ibsim keeps it for the nodes that follow, but not vendid and
		// sysimgguid (new_node).
		v, err := p.readNumber(s, after, 1<<16-1)
		p.device = uint16(v)
		return err
	case "sysimgguid":
		v, err := p.readNumber(s, after, math.MaxUint64)
		p.system = fabric.GUID(v)
		return err
	case "width":
		v, err := p.readNumber(s, after, 31)
		p.masks.width = int(v)
		return err
	case "speed":
		v, err := p.readNumber(s, after, 7)
		p.masks.speed = int(v)
		return err
	case "extspeed":
		v, err := p.readNumber(s, after, 15)
		p.masks.ext = int(v)
		return err
	case "pdebug": // ibsim's switch for its own debugging
		return nil
	case "Chassis", "Hostname": // of ibnetdiscover -g
		return nil
	case "include":
		return p.failHere(i, "line dropped", "ibsim's include cannot be followed: put the text of that file here, or load this file into ibsim and read what ibnetdiscover prints there")
	case "do", "module":
		return p.failHere(i, "line dropped", "ibsim's %s changes the fabric as ibsim loads it: load this file into ibsim and read what ibnetdiscover prints there", word)
	case "":
		if s[i] == '@' {
			return p.failHere(i, "line dropped", "ibsim's aliases of ports cannot be followed: want [port] \"node\"[port], or load this file into ibsim and read what ibnetdiscover prints there")
		}
	}
	if bytes.HasPrefix(s[i:], []byte("Non-Chassis Nodes")) { // ibnetdiscover -g
		return nil
	}
	if isListLine(s, i) {
		return p.failHere(i, "line dropped", "a line of ibnetdiscover -p in a text of another form: want one form only")
	}
	j := skipBlanks(s, after)
	if n, k := decimal(s, j); len(word) > 0 && n >= 0 {
		if k = skipBlanks(s, k); k < len(s) && s[k] == '"' {
			p.noNode()
			return p.failHere(i, "stanza dropped", "no such node type %q: want Switch, Ca, Hca or Rt", word)
		}
	}
	return p.failHere(i, "line dropped", "not a line of topology text: want what ibnetdiscover prints on standard output")
}

// noNode makes port lines fall away until the next header, because the one
// before them is not used.
func (p *parser) noNode() { p.current, p.dropped = -1, true }

// readNumber reads =N at s[i:], hexadecimal with 0x or decimal.
func (p *parser) readNumber(s []byte, i int, most uint64) (uint64, error) {
	p.noStanza()
	i = skipBlanks(s, i)
	if i >= len(s) || s[i] != '=' {
		return 0, p.failHere(i, "line dropped", "want = and a number")
	}
	i = skipBlanks(s, i+1)
	v, next, ok := number(s, i)
	if !ok || (next < len(s) && s[next] != ' ' && s[next] != '\t' && s[next] != '#') {
		return 0, p.failHere(i, "line dropped", "number %q: want decimal digits or 0x and hexadecimal digits", tokenAt(s, i))
	}
	if v > most {
		return 0, p.failHere(i, "line dropped", "%s is too large: want at most %#x", tokenAt(s, i), most)
	}
	return v, nil
}

// noStanza is for lines that stand between stanzas: port lines after them
// belong to no node.
func (p *parser) noStanza() { p.current, p.dropped = -1, false }

// number reads a decimal number without leading zeros, or 0x and hexadecimal
// digits. Numbers beyond 64 bits are not ok.
func number(s []byte, i int) (v uint64, next int, ok bool) {
	if i+1 < len(s) && s[i] == '0' && s[i+1]|0x20 == 'x' {
		v, n := hexadecimal(s, i+2)
		return v, i + 2 + n, n >= 1 && n <= 16
	}
	j := i
	ok = true
	for ; j < len(s) && '0' <= s[j] && s[j] <= '9'; j++ {
		d := uint64(s[j] - '0')
		if v > (math.MaxUint64-d)/10 {
			ok = false
		}
		v = v*10 + d
	}
	if j == i || (s[i] == '0' && j > i+1) { // ibsim takes 010 for octal
		ok = false
	}
	return v, j, ok
}

// readGUID reads =0x1(2), or +N, which ibsim adds to the GUID of the last such
// line (parse_guidbase).
func (p *parser) readGUID(s []byte, i int, kind fabric.NodeType) error {
	p.noStanza()
	c := &p.guids[kind]
	i = skipBlanks(s, i)
	if i >= len(s) || (s[i] != '=' && s[i] != '+') {
		return p.failHere(i, "line dropped", "want = and a GUID")
	}
	relative := s[i] == '+'
	i = skipBlanks(s, i+1)
	v, next, ok := number(s, i)
	if ok && !relative {
		ok = next > i+1 && s[i] == '0' // a GUID without 0x may be in either base
	}
	if !ok {
		return p.failHere(i, "line dropped", "GUID %q: want 0x and 1 to 16 hexadecimal digits", tokenAt(s, i))
	}
	var port uint64
	if next < len(s) && s[next] == '(' {
		end := 0
		if port, end, ok = guidInBrackets(s, next); !ok {
			return p.failHere(next, "line dropped", "port GUID %q: want 1 to 16 hexadecimal digits in brackets", tokenAt(s, next))
		}
		next = end
	}
	if next < len(s) && s[next] != ' ' && s[next] != '\t' && s[next] != '#' {
		return p.failHere(next, "line dropped", "text behind the GUID: want nothing or a comment")
	}
	if relative {
		c.next = c.base + fabric.GUID(v)
	} else {
		c.next, c.base = fabric.GUID(v), fabric.GUID(v)
	}
	c.port, c.stated = fabric.GUID(port), true
	return nil
}

// guidInBrackets reads (2c9f) at s[i:], with or without 0x.
func guidInBrackets(s []byte, i int) (g uint64, next int, ok bool) {
	i++
	if i+1 < len(s) && s[i] == '0' && s[i+1]|0x20 == 'x' {
		i += 2
	}
	g, n := hexadecimal(s, i)
	i += n
	if n < 1 || n > 16 || i >= len(s) || s[i] != ')' {
		return 0, i, false
	}
	return g, i + 1, true
}

// readHeader reads the line that a stanza begins with:
//
//	Switch	36 "S-0002c90000000001"		# "leaf 1" enhanced port 0 lid 7 lmc 0
//
// s[i:] is what follows the type.
func (p *parser) readHeader(s []byte, i int, kind fabric.NodeType) error {
	p.noNode()
	c := &p.guids[kind]
	n := node{header: p.line, kind: kind, vendor: p.vendor, device: p.device, system: p.system, base: len(p.slots), portGUID: c.port}
	p.vendor, p.system = 0, 0

	j := skipBlanks(s, i)
	ports, k := decimal(s, j)
	if ports < 1 || ports > int(fabric.MaxPortNum) {
		return p.failHere(j, "stanza dropped", "number of ports %s: want 1 to %d", tokenAt(s, j), fabric.MaxPortNum)
	}
	n.ports = fabric.PortNum(ports)
	i = skipBlanks(s, k)
	id, next := quoted(s, i)
	if len(id) == 0 {
		return p.failHere(i, "stanza dropped", "want the node's id in quotes, such as \"S-0002c90000000001\"")
	}
	idAt := i
	i = skipBlanks(s, next)
	if i < len(s) && s[i] != '#' {
		return p.failHere(i, "stanza dropped", "text behind the node's id: want nothing or a comment")
	}

	fromID := false
	if n.id, fromID = guidID(id); !fromID {
		n.id = p.name(id)
	}
	switch {
	case fromID && !c.stated:
		n.guid = fabric.GUID(n.id.value)
	default:
		n.guid = c.next
		step := fabric.GUID(1)
		if kind != fabric.Switch {
			step += fabric.GUID(ports)
		}
		c.next += step
	}
	stated := c.stated
	c.stated, c.port = false, 0
	if fromID && n.guid != fabric.GUID(n.id.value) {
		if err := p.mend(p.line, idAt, "the id counts", "id %s of a node with GUID %s: want the same GUID in both", id, n.guid); err != nil {
			return err
		}
		n.guid = fabric.GUID(n.id.value)
	}
	switch {
	case n.guid == 0 && kind == fabric.Router && !stated && !fromID:
		return p.failHere(idAt, "stanza dropped", "ibsim gives this router GUID 0: want a line such as rtguid=0x300000 in front of it")
	case n.guid == 0:
		return p.failHere(idAt, "stanza dropped", "node %q has GUID 0: want another", id)
	case kind != fabric.Switch && n.guid > math.MaxUint64-fabric.GUID(ports):
		return p.failHere(idAt, "stanza dropped", "GUID %s leaves no room for the GUIDs of %d ports", n.guid, ports)
	}
	if n.id.kind == 0 && p.nameNode[n.id.value] >= 0 {
		return p.failHere(idAt, "stanza dropped", "id %q is used twice: line %d has it too", id, p.nodes[p.nameNode[n.id.value]].header.num)
	}
	if other := p.byGUID.Find(n.guid); other >= 0 {
		return p.failHere(idAt, "stanza dropped", "GUID %s is used twice: the node of line %d has it too", n.guid, p.nodes[other].header.num)
	}

	n.descFrom = int32(len(p.desc))
	var t tail
	if err := p.readNodeComment(s, i, id, &t); err != nil {
		return err
	}
	n.descTo = int32(len(p.desc))
	if kind == fabric.Switch {
		n.lid, n.lmc, n.enhanced0 = t.lid, t.lmc, t.enhanced
	}

	p.byGUID.Add(n.guid, int32(len(p.nodes)))
	p.enter(&n)
	return nil
}

// readNodeComment reads the comment of a header at s[i:], or makes up for its
// absence, and appends the description to p.desc.
func (p *parser) readNodeComment(s []byte, i int, id []byte, t *tail) error {
	if i < len(s) {
		i = skipBlanks(s, i+1)
	}
	if i >= len(s) {
		p.desc = append(p.desc, id...) // as ibsim's new_node
		return nil
	}
	if s[i] == '"' {
		// A description may have quotes in it.
		if last := bytes.LastIndexByte(s, '"'); last > i {
			p.desc = append(p.desc, s[i+1:last]...)
			return p.readTail(s, last+1, t)
		}
	}
	// Without quotes, as in old captures, it ends where ibsim ends it
	// (parse_node_desc).
	end := len(s)
	for _, stop := range []string{" enhanced port ", " base port ", " lid ", " lmc "} {
		if n := bytes.Index(s[i-1:], []byte(stop)); n >= 0 {
			end = i - 1 + n
			break
		}
	}
	desc := bytes.TrimRight(s[i:max(i, end)], " \t")
	if len(desc) == 0 {
		desc = id
	}
	p.desc = append(p.desc, desc...)
	return p.readTail(s, end, t)
}

// quoted is what stands in quotes at s[i:]; next is behind them.
func quoted(s []byte, i int) (text []byte, next int) {
	if i >= len(s) || s[i] != '"' {
		return nil, i
	}
	n := bytes.IndexByte(s[i+1:], '"')
	if n < 0 {
		return nil, i
	}
	return s[i+1 : i+1+n], i + n + 2
}

// name is the key of an id that is not made of a GUID.
func (p *parser) name(id []byte) key {
	n, ok := p.names[string(id)]
	if !ok {
		if p.names == nil {
			p.names = make(map[string]int32)
		}
		n = int32(len(p.nameNode))
		p.names[string(id)] = n
		p.nameNode = append(p.nameNode, -1)
	}
	return key{value: uint64(n)}
}

// readPort reads a line of a port, of a switch or of anything else:
//
//	[17]	"H-0002c90000000002"[1](2c90000000003) 		# "host 1" lid 9 4xNDR
//	[1](2c90000000003) 	"S-0002c90000000001"[17]		# lid 9 lmc 0 "leaf 1" lid 7 4xNDR
//
// With -g, [ext 3] may stand behind either port number. s[i] is the first
// bracket.
func (p *parser) readPort(s []byte, i int) error {
	const lost = "line dropped"
	if p.current < 0 {
		if p.dropped {
			return nil
		}
		return p.failHere(i, lost, "a port of no node: want a Switch, Ca, Hca or Rt line first")
	}
	n := &p.nodes[p.current]
	l := portLine{at: p.line, node: p.current, back: -1}

	num, j, ok := bracketed(s, i)
	if !ok || num < 1 || num > int(n.ports) {
		return p.failHere(i, lost, "port %s of a node with %d ports: want [1] to [%d]", bracketToken(s, i), n.ports, n.ports)
	}
	l.num = fabric.PortNum(num)
	j = skipBlanks(s, skipExternal(s, j))
	if j < len(s) && s[j] == '(' {
		g, next, ok := guidInBrackets(s, j)
		if !ok {
			return p.failHere(j, lost, "port GUID %q: want 1 to 16 hexadecimal digits in brackets", tokenAt(s, j))
		}
		l.guid = fabric.GUID(g)
		j = skipBlanks(s, next)
	}

	id, next := quoted(s, j)
	if len(id) == 0 {
		return p.failHere(j, lost, "want the id of the node at the other end in quotes, such as \"S-0002c90000000001\"")
	}
	to, ok := guidID(id)
	if !ok {
		to = p.name(id)
	}
	l.peerID, l.peerKind = to.value, to.kind
	j = skipBlanks(s, next)
	l.peerNum = 1 // ibsim's default (parse_port)
	if j < len(s) && s[j] == '[' {
		num, next, ok := bracketed(s, j)
		if !ok || num < 1 || num > int(fabric.MaxPortNum) {
			return p.failHere(j, lost, "port %s: want [1] to [%d]", bracketToken(s, j), fabric.MaxPortNum)
		}
		l.peerNum = fabric.PortNum(num)
		j = skipBlanks(s, skipExternal(s, next))
	}
	if j < len(s) && s[j] == '(' {
		g, next, ok := guidInBrackets(s, j)
		if !ok {
			return p.failHere(j, lost, "port GUID %q: want 1 to 16 hexadecimal digits in brackets", tokenAt(s, j))
		}
		l.peerGUID = fabric.GUID(g)
		j = skipBlanks(s, next)
	}

	own := tail{}
	peer := tail{masks: p.masks}
	if j < len(s) && s[j] != '#' {
		// ibsim's options, w=2 and the like, which may have a comment behind.
		end := len(s)
		if n := bytes.IndexByte(s[j:], '#'); n >= 0 {
			end = j + n
		}
		peer.strict = true
		if err := p.readTail(s[:end], j, &peer); err != nil {
			return err
		}
		if peer.junk > 0 {
			return p.failHere(peer.junk, lost, "text behind the other end: want nothing or a comment")
		}
		peer.strict = false
		j = end
	}
	if j < len(s) {
		// The description stands between the first quote and the last.
		last := len(s) - 1
		for last > j && s[last] != '"' {
			last--
		}
		if last == j {
			peer.unquoted = true
		} else if n.kind != fabric.Switch {
			first := j + 1 + bytes.IndexByte(s[j+1:], '"')
			if err := p.readTail(s[:first], j+1, &own); err != nil {
				return err
			}
		}
		if err := p.readTail(s, last+1, &peer); err != nil {
			return err
		}
		if peer.unquoted && n.kind != fabric.Switch && bytes.HasPrefix(s[skipBlanks(s, j+1):], []byte("lid ")) {
			own.lid, own.lmc = peer.firstLID, peer.lmc
			if peer.lids == 1 {
				peer.lid = 0
			}
		}
	}
	l.lid, l.lmc, l.peerLID, l.link = own.lid, own.lmc, peer.lid, peer.link
	if l.link == (fabric.Link{}) {
		l.link = peer.masks.link()
	}

	slot := &p.slots[n.base+num]
	if *slot != 0 {
		return p.failHere(i, lost, "port [%d] is there twice: line %d has it too", num, p.ports[*slot-1].at.num)
	}
	p.ports = append(p.ports, l)
	*slot = int32(len(p.ports))
	return nil
}

// bracketed reads [12] at s[i:].
func bracketed(s []byte, i int) (n, next int, ok bool) {
	i = skipBlanks(s, i+1)
	if n, i = decimal(s, i); n < 0 {
		return 0, i, false
	}
	i = skipBlanks(s, i)
	if i >= len(s) || s[i] != ']' {
		return 0, i, false
	}
	return n, i + 1, true
}

// bracketToken is what stands at s[i:] up to a closing bracket, for messages.
func bracketToken(s []byte, i int) []byte {
	t := tokenAt(s, i)
	if n := bytes.IndexByte(s[i:], ']'); n >= 0 && n < 24 {
		t = s[i : i+n+1]
	}
	return t
}

// skipExternal skips the [ext 3] of ibnetdiscover -g: the number that is
// printed on the chassis.
func skipExternal(s []byte, i int) int {
	if bytes.HasPrefix(s[i:], []byte("[ext ")) {
		if n := bytes.IndexByte(s[i:], ']'); n >= 0 {
			return i + n + 1
		}
	}
	return i
}

// tail is what stands in a comment before or behind a description.
type tail struct {
	lid      fabric.LID // the last one
	firstLID fabric.LID // the first one
	lids     int        // how many
	lmc      uint8
	enhanced bool
	unquoted bool // a description is among it
	strict   bool // it is no comment, and nothing else may be among it
	junk     int  // where something else is, if strict
	link     fabric.Link
	masks    linkMasks
}

// readTail reads "lid 7 lmc 0 4xNDR" and the like at s[i:]. Words that it does
// not know are passed over, as "slot 3" and "(scp)" of ibnetdiscover -g.
func (p *parser) readTail(s []byte, i int, t *tail) error {
	for {
		for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
			i++
		}
		if i >= len(s) {
			return nil
		}
		from := i
		for i < len(s) && s[i] != ' ' && s[i] != '\t' {
			i++
		}
		word := s[from:i]
		switch {
		case len(word) == 3 && word[0] == 'l' && (string(word) == "lid" || string(word) == "lmc"):
			at := skipBlanks(s, i)
			v, next, ok := number(s, at)
			if next == at && (next >= len(s) || s[next] != '-') || next < len(s) && s[next] == 'x' {
				continue // no number: a word of a description, or lid 4xNDR
			}
			what, most := "LID", uint64(fabric.MaxUnicastLID)
			if word[1] == 'm' {
				what, most = "LMC", fabric.MaxLMC
			}
			if !ok || v > most || (next < len(s) && s[next] != ' ' && s[next] != '\t') {
				if t.unquoted {
					continue
				}
				if err := p.mend(p.line, at, what+" dropped", "%s %q: want 0 to %d", what, tokenAt(s, at), most); err != nil {
					return err
				}
				continue
			}
			i = next
			if word[1] == 'm' {
				t.lmc = uint8(v)
				continue
			}
			if t.lids++; t.lids == 1 {
				t.firstLID = fabric.LID(v)
			}
			t.lid = fabric.LID(v)
		case '0' <= word[0] && word[0] <= '9' || word[0] == '?':
			if l, ok := linkOf(word); ok {
				t.link = l
			} else if t.strict {
				t.junk = from
				return nil
			}
		case string(word) == "enhanced":
			t.enhanced = true
		case len(word) > 2 && word[1] == '=' && (word[0] == 'w' || word[0] == 's' || word[0] == 'e'):
			if err := p.readMask(s, from, word, t); err != nil {
				return err
			}
		case t.strict:
			t.junk = from
			return nil
		}
	}
}

// readMask reads w=2, s=1 or e=1, as ibsim's parse_port_opt.
func (p *parser) readMask(s []byte, at int, word []byte, t *tail) error {
	v, next, ok := number(word, 2)
	most, to := uint64(31), &t.masks.width
	switch word[0] {
	case 's':
		most, to = 7, &t.masks.speed
	case 'e':
		most, to = 15, &t.masks.ext
	}
	if !ok || next != len(word) || v > most {
		if !t.strict {
			return nil // a word of a comment
		}
		return p.failHere(at, "line dropped", "%q: want a number from 0 to %d", word, most)
	}
	*to = int(v)
	return nil
}

// linkOf reads 4xNDR. A width or speed that is not known is left 0, as those
// that ibnetdiscover prints ?? or ??? for.
func linkOf(word []byte) (l fabric.Link, ok bool) {
	width, i := decimal(word, 0)
	switch {
	case width >= 0:
		if i >= len(word) || word[i] != 'x' {
			return l, false
		}
		i++
		switch width {
		case 1, 2, 4, 8, 12:
			l.Width = uint8(width)
		}
	case len(word) > 2 && word[0] == '?' && word[1] == '?':
		i = 2
	default:
		return l, false
	}
	l.Speed = speedOf(word[i:])
	return l, true
}

// speedOf is ParseSpeed for bytes.
func speedOf(name []byte) fabric.Speed {
	switch string(name) {
	case "SDR":
		return fabric.SDR
	case "DDR":
		return fabric.DDR
	case "QDR":
		return fabric.QDR
	case "FDR10":
		return fabric.FDR10
	case "FDR":
		return fabric.FDR
	case "EDR":
		return fabric.EDR
	case "HDR":
		return fabric.HDR
	case "NDR":
		return fabric.NDR
	case "XDR":
		return fabric.XDR
	}
	return fabric.SpeedUnknown
}

// nodeName is a node as the text has it, for messages.
func (p *parser) nodeName(i int32) string {
	n := &p.nodes[i]
	if p.list {
		return listType(n.id.kind) + " " + n.guid.String()
	}
	return quotedIn(p.textOf(n.header))
}

// portName is the port of a line as the text has it, for messages.
func (p *parser) portName(l *portLine) string {
	name := p.nodeName(l.node)
	if p.list && l.guid != 0 {
		name = listType(p.nodes[l.node].id.kind) + " " + l.guid.String()
	}
	return fmt.Sprintf("%s[%d]", name, l.num)
}

// peerName is the other end of a line as the line has it.
func (p *parser) peerName(l *portLine) string {
	name := ""
	switch {
	case !p.list:
		name = quotedIn(p.textOf(l.at))
	case l.peerGUID != 0:
		name = listType(l.peerKind) + " " + l.peerGUID.String()
	default:
		name = listType(l.peerKind) + " " + fabric.GUID(l.peerID).String()
	}
	return fmt.Sprintf("%s[%d]", name, l.peerNum)
}

// quotedIn is the first id in a line, with its quotes.
func quotedIn(s []byte) string {
	id, _ := quoted(s, max(0, bytes.IndexByte(s, '"')))
	return `"` + string(id) + `"`
}
