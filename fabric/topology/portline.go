package topology

import (
	"bytes"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// readPort reads a line of a port, of a switch or of anything else:
//
//	[17]	"H-0002c90000000002"[1](2c90000000003) 		# "host 1" lid 9 4xNDR
//	[1](2c90000000003) 	"S-0002c90000000001"[17]		# lid 9 lmc 0 "leaf 1" lid 7 4xNDR
//
// With -g, [ext 3] may stand behind either port number. ibdiagnet's own ibnetdiscover text
// has labels of ports:
//
//	[17](1/9/1) "H-0002c90000000002"[1](2c90000000003)      # "host 1" lid 9 4xNDR
//	[1](B66D0F0/0/0/1)(2c90000000003) "S-0002c90000000001"[17] # lid 9 lmc 0 "leaf 1" lid 7 4xNDR
func (p *parser) readPort(l *Line) error {
	if p.current < 0 {
		if p.dropped {
			return nil
		}
		return p.dropLine(l.At, "a port of no node: want a Switch, Ca, Hca or Rt line first")
	}
	start := l.At
	port := portLine{at: p.line, node: p.current, back: -1}
	own, peer := comment{}, comment{masks: p.masks}
	if err := p.readOwnEnd(l, &port); err != nil {
		return err
	}
	if err := p.readPeerEnd(l, &port); err != nil {
		return err
	}
	if err := p.readOptions(l, &peer); err != nil {
		return err
	}
	if err := p.readPortComment(l, &own, &peer); err != nil {
		return err
	}
	port.lid, port.lmc, port.peerLID, port.link = own.lid, own.lmc, peer.lid, peer.link
	if port.link == (fabric.Link{}) {
		port.link = peer.masks.link()
	}
	slot := &p.slots[p.nodes[p.current].base+int(port.num)]
	if *slot != 0 {
		return p.dropLine(start, "port [%d] is there twice: line %d has it too", port.num, p.ports[*slot-1].at.num)
	}
	of := endRef{p.current, int32(len(p.ports))}
	p.noteBadLID(badLID{own.bad, p.line, own.badAt, of, false})
	p.noteBadLID(badLID{peer.bad, p.line, peer.badAt, of, true})
	p.ports = append(p.ports, port)
	*slot = int32(len(p.ports))
	return nil
}

// readOwnEnd reads the number of the port, and its label and its GUID if it has them.
func (p *parser) readOwnEnd(l *Line, port *portLine) (err error) {
	ports := p.nodes[p.current].ports
	start := *l
	num := l.portNumber()
	if num < 1 || num > int(ports) {
		return p.dropLine(start.At, "port %s of a node with %d ports: want [1] to [%d]", start.nextBracket(), ports, ports)
	}
	port.num = fabric.PortNum(num)
	l.skipExternal()
	if l.Is('(') {
		port.label = p.readLabel(l, p.nodes[p.current].kind == fabric.Switch)
	}
	if p.strict && l.Is('"') && !l.afterBlank() {
		return p.refusal(p.line, l.At, "no tab in front of the other end: want one")
	}
	port.guid, err = p.readPortGUID(l)
	return err
}

// readPeerEnd reads the id of the node at the other end, the number of the port there,
// and its GUID if there is one. It skips a label there: the port's own line has it.
func (p *parser) readPeerEnd(l *Line, port *portLine) (err error) {
	start := *l
	id := l.quoted()
	if len(id) == 0 {
		return p.dropLine(start.At, "want the id of the node at the other end in quotes, such as \"S-0002c90000000001\"")
	}
	var ok bool
	if port.peer, ok = guidID(id); !ok {
		port.peer = p.name(id)
	}
	l.SkipBlanks()
	port.peerNum = 1 // ibsim's default (parse_port)
	if l.Is('[') {
		start = *l
		num := l.portNumber()
		if num < 1 || num > int(fabric.MaxPortNum) {
			return p.dropLine(start.At, "port %s: want [1] to [%d]", start.nextBracket(), fabric.MaxPortNum)
		}
		port.peerNum = fabric.PortNum(num)
		l.skipExternal()
	}
	if l.Is('(') {
		p.readLabel(l, port.peer.kind == fabric.Switch)
	}
	if p.strict && l.Is('#') && !l.afterBlank() {
		return p.refusal(p.line, l.At, "no tab in front of the comment: want one")
	}
	port.peerGUID, err = p.readPortGUID(l)
	return err
}

// readLabel reads a label in brackets, and returns its index in labels,
// 0 if there is none. If only one pair of brackets is behind a port
// number, it is a label if it has slashes, or on a switch at most
// maxPlain letters; otherwise it is a GUID, as ibnetdiscover prints it.
func (p *parser) readLabel(l *Line, ofSwitch bool) int32 {
	text := l.Rest()
	n := bytes.IndexByte(text, ')')
	if n < 0 {
		return 0
	}
	label := text[1:n]
	ahead := Line{Text: text, At: n + 1}
	ahead.SkipBlanks()
	switch slashes := bytes.IndexByte(label, '/') >= 0; {
	case !IsLabel(label):
		return 0
	case slashes || ahead.Is('('):
	case !ofSwitch || len(label) > maxPlain:
		return 0
	}
	l.At += n + 1
	l.SkipBlanks()
	if string(label) == "N/A" {
		return 0
	}
	return p.labelOf(string(label))
}

func (p *parser) labelOf(label string) int32 {
	i, ok := p.labelNum[label]
	if !ok {
		if p.labelNum == nil {
			p.labels, p.labelNum = []string{""}, make(map[string]int32)
		}
		i = int32(len(p.labels))
		p.labels = append(p.labels, label)
		p.labelNum[label] = i
	}
	return i
}

// maxPlain bounds labels without slashes, in bytes, maxLabel
// those with slashes. All that ibdiagnet prints are shorter.
const (
	maxPlain = 8
	maxLabel = 32
)

// readable returns true if readLabel would read a label back from the line of a port. On a
// line of a switch it must be short or have slashes; on others any label but N/A will do, since
// the port's GUID stands in brackets behind it.
func readable(label string, ofSwitch bool) bool {
	return IsLabel([]byte(label)) && label != "N/A" && (!ofSwitch || len(label) <= maxPlain || strings.Contains(label, "/"))
}

// IsLabel returns true if text can be a label: 1/12/2, 7, B184D0F0/0/0/1.
func IsLabel(text []byte) bool {
	for _, c := range text {
		if c != '/' && c != '-' && c != '.' && c != '_' && HexDigit[c] > 15 && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return 1 <= len(text) && len(text) <= maxLabel && !bytes.HasPrefix(text, []byte("0x"))
}

// readPortGUID reads a GUID in brackets between blanks, 0 if there is none.
func (p *parser) readPortGUID(l *Line) (fabric.GUID, error) {
	l.SkipBlanks()
	if !l.Is('(') {
		return 0, nil
	}
	start := *l
	g, ok := l.guidInBrackets()
	if !ok {
		return 0, p.dropLine(start.At, "port GUID %q: want 1 to 16 hexadecimal digits in brackets", start.nextToken())
	}
	l.SkipBlanks()
	return g, nil
}

// readOptions reads ibsim's options, w=2 and the like, up to a comment.
func (p *parser) readOptions(l *Line, c *comment) error {
	if l.Done() || l.Is('#') {
		return nil
	}
	options := *l
	if n := bytes.IndexByte(l.Rest(), '#'); n >= 0 {
		options.Text = l.Text[:l.At+n]
	}
	c.strict = true
	if err := p.readComment(&options, c); err != nil {
		return err
	}
	if c.junk > 0 {
		return p.dropLine(c.junk, "text behind the other end: want nothing or a comment")
	}
	c.strict = false
	l.At = len(options.Text)
	return nil
}

// readPortComment reads the comment of a port line. For a port of a CA or router,
// it also has statements about the port itself, before the description of the peer.
func (p *parser) readPortComment(l *Line, own, peer *comment) error {
	if !l.Skip("#") {
		return nil
	}
	ownLID := p.nodes[p.current].kind != fabric.Switch
	// The description stands between the first quote and the last, or in old captures without quotes in
	// front of the last LID.
	before := *l
	if n := bytes.IndexByte(l.Rest(), '"'); n >= 0 {
		before.Text = l.Text[:l.At+n]
		l.At = bytes.LastIndexByte(l.Text, '"') + 1
	} else if n := max(0, bytes.LastIndex(l.Rest(), []byte(" lid "))); n > 0 || !ownLID {
		before.Text, own.strict = l.Text[:l.At+n], true
		l.At += n
	} else { // the peer has no LID
		err := p.readComment(l, own)
		peer.link = own.link
		return err
	}
	if ownLID {
		if err := p.readComment(&before, own); err != nil {
			return err
		}
	}
	return p.readComment(l, peer)
}
