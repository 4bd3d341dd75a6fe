package topology

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// resolve makes the fabric of lines that may contradict each other.
func (p *parser) resolve() (*fabric.Fabric, error) {
	for _, step := range []func() error{
		p.matchCables,      // both ends must agree
		p.checkTypes,       // before ports of a mistyped switch are taken for those of an adapter
		p.resolvePortGUIDs, // needs to know which ports have a cable
		p.resolveLIDs,      // needs to know which lines speak of one port
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	p.tellNoise()
	f, err := p.build()
	if err != nil {
		return nil, &fabric.ParseError{File: p.file, Err: err}
	}
	return f, nil
}

// find returns the index of the node with a key, or -1.
func (p *parser) find(k key) int32 {
	if k.kind == 0 {
		return p.nameNode[k.value]
	}
	if i, ok := p.byGUID[fabric.GUID(k.value)]; ok && p.nodes[i].id == k {
		return i
	}
	return -1
}

// peerMarks precede the other end in a line of a list, by form.
var peerMarks = [...]string{PortList: " - ", LinkInfo: "==>", NetDump: " : 0x", NodeList: ""}

// column returns where the other end begins in a line, for messages.
func (p *parser) column(at place) int {
	text := p.textOf(at)
	if p.form == Stanzas {
		return max(0, bytes.IndexByte(text, '"'))
	}
	mark := peerMarks[p.form]
	if n := bytes.Index(text, []byte(mark)); n > 0 {
		return n + len(mark)
	}
	return 0
}

// matchCables sets portLine.back, the line of the other end.
func (p *parser) matchCables() error {
	for i := range p.ports {
		l := &p.ports[i]
		if l.back >= 0 {
			continue // the other end found it
		}
		if err := p.matchLine(int32(i), l); err != nil && err != errDropped {
			return err
		}
	}
	for i := range p.ports {
		if l := &p.ports[i]; l.back > int32(i) {
			p.agreeOnLink(l, &p.ports[l.back])
		}
	}
	return nil
}

func (p *parser) matchLine(i int32, l *portLine) error {
	peer := p.find(l.peer)
	if peer < 0 {
		what := map[bool]string{true: "stanza", false: "line"}[p.form == Stanzas]
		return p.dropLink(l.at, "%s is connected to %s here, but that node has no %s: a cable must be there at both ends%s", p.portName(l), p.peerName(l), what, p.astray())
	}
	n := &p.nodes[peer]
	if l.peerNum > n.ports {
		return p.dropLink(l.at, "%s is connected to %s here, but that node has ports 1 to %d (line %d)", p.portName(l), p.peerName(l), n.ports, n.header.num)
	}
	if peer == l.node && l.peerNum == l.num {
		if p.strict {
			return p.refusal(l.at, p.column(l.at), "%s is connected to itself: want another port", p.portName(l))
		}
		q := p.problem(fabric.Loopback, l.at, p.column(l.at), "connected to itself; taken as a port without a cable")
		q.Node, q.Port = p.nodes[l.node].guid, l.num
		return nil
	}
	at := p.slots[n.base+int(l.peerNum)] - 1
	if at < 0 {
		return p.dropLink(l.at, "%s is connected to %s here, but that node (line %d) has no line for its port %d: a cable must be there at both ends", p.portName(l), p.peerName(l), n.header.num, l.peerNum)
	}
	b := &p.ports[at]
	if b.peer != p.nodes[l.node].id || b.peerNum != l.num {
		return p.dropLink(l.at, "%s is connected to %s here, but line %d connects that port to %s", p.portName(l), p.peerName(l), b.at.num, p.peerName(b))
	}
	l.back, b.back = at, i
	return nil
}

// astray returns a hint if the peers of several lines are missing; a lenient read
// reports each.
func (p *parser) astray() string {
	n := 0
	for i := 0; i < len(p.ports) && !p.lenient; i++ {
		if p.find(p.ports[i].peer) < 0 {
			n++
		}
	}
	if n < 2 {
		return ""
	}
	return fmt.Sprintf("; so it is with %d lines: is the text cut short?", n)
}

// agreeOnLink gives both ends of a cable the same width and
// speed: what one line knows, or the slower of two that differ.
// ibnetdiscover itself prints different speeds for the ends of
// an FDR10 link if it does not ask one device about FDR10.
func (p *parser) agreeOnLink(a, b *portLine) {
	a.link, b.link = a.link.Or(b.link), b.link.Or(a.link)
	if a.link == b.link {
		return
	}
	slow := a.link.Slower(b.link)
	p.note(b.at, p.column(b.at), "%s is %s here, but %s is %s in line %d: taken as %s", p.portName(b), b.link, p.portName(a), a.link, a.at.num, slow)
	a.link, b.link = slow, slow
}

// cabled visits the lines of a node's ports that have a cable, by port number.
func (p *parser) cabled(n *node) iter.Seq[*portLine] {
	return func(yield func(*portLine) bool) {
		for _, at := range p.slots[n.base : n.base+int(n.ports)+1] {
			if at > 0 && p.ports[at-1].back >= 0 && !yield(&p.ports[at-1]) {
				return
			}
		}
	}
}

// checkTypes returns an error if switches seem to be listed
// as another type: see MistypedError.
func (p *parser) checkTypes() error {
	var first *portLine
	wrong, switches := 0, 0
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.kind == fabric.Switch {
			switches++
			continue
		}
		var last *portLine
		for l := range p.cabled(n) {
			if last != nil && l.guid == last.guid && (l.guid != 0 || p.anyLID(l) != 0 && p.anyLID(l) == p.anyLID(last)) {
				first = cmp.Or(first, l)
				wrong++
				break
			}
			last = l
		}
	}
	if first == nil || switches > wrong {
		return nil
	}
	n := &p.nodes[first.node]
	return p.refusal(first.at, 0, "%w", MistypedError(n.guid, n.kind))
}

// anyLID returns the LID of a cabled port by its own line, or else by its neighbour's.
func (p *parser) anyLID(l *portLine) fabric.LID { return cmp.Or(l.lid, p.ports[l.back].peerLID) }

// resolvePortGUIDs finds the GUIDs of end ports: by the
// line of the port itself, else by its peer's line, else by
// ibsim's rule, node GUID + port number.
func (p *parser) resolvePortGUIDs() error {
	lines, err := p.resolveSwitchGUIDs()
	if err != nil {
		return err
	}
	for i := range p.ports {
		l := &p.ports[i]
		n := &p.nodes[l.node]
		if l.back < 0 || n.kind == fabric.Switch {
			continue
		}
		b := &p.ports[l.back]
		if l.guid != 0 && b.peerGUID != 0 && b.peerGUID != l.guid {
			p.note(b.at, p.column(b.at), "port GUID of %s is %s here, but %s in its own line %d: taken from there", p.portName(l), b.peerGUID, l.guid, l.at.num)
		}
		l.guid = cmp.Or(l.guid, b.peerGUID, n.guid+fabric.GUID(l.num))
		if line, twice := lines[l.guid]; twice {
			if err := p.mend(l.at, 0, "link dropped", "port GUID %s of %s is used twice: the port of line %d has it too", l.guid, p.portName(l), line); err != nil {
				return err
			}
			l.back, b.back = -1, -1
			continue
		}
		lines[l.guid] = l.at.num
	}
	return nil
}

// resolveSwitchGUIDs finds the port GUIDs of switches. It returns, for each port GUID, the
// number of the line that has it.
func (p *parser) resolveSwitchGUIDs() (map[fabric.GUID]int32, error) {
	for clash := false; ; {
		lines, ofNodes := make(map[fabric.GUID]int32, len(p.nodes)), clash
		for i := range p.nodes {
			n := &p.nodes[i]
			if n.kind != fabric.Switch {
				continue
			}
			if n.portGUID == 0 || ofNodes {
				n.portGUID = n.guid
			}
			line, twice := lines[n.portGUID]
			if lines[n.portGUID] = n.header.num; !twice {
				continue
			}
			if err := p.mend(n.header, 0, "node GUIDs taken for the port GUIDs of all switches", "port GUID %s of switch %s is used twice: the switch of line %d has it too", n.portGUID, n.guid, line); err != nil {
				return nil, err
			}
			clash = true
		}
		if clash == ofNodes {
			return lines, nil
		}
	}
}

// endRef is an end port: index of its node, and of its line in ports, -1 for port 0 of a switch.
type endRef struct{ node, line int32 }

// endOf returns the end port of a line of ports.
func (p *parser) endOf(line int32) endRef {
	node := p.ports[line].node
	if p.nodes[node].kind == fabric.Switch {
		line = -1
	}
	return endRef{node, line}
}

// lids returns the LIDs of an end port, and the line that has them.
func (p *parser) lids(e endRef) (*lids, place) {
	if e.line < 0 {
		return &p.nodes[e.node].lids, p.nodes[e.node].header
	}
	return &p.ports[e.line].lids, p.ports[e.line].at
}

// endName returns the name of an end port in the text, for messages.
func (p *parser) endName(e endRef) string {
	if e.line < 0 {
		return p.nodeName(e.node)
	}
	return p.portName(&p.ports[e.line])
}

// endPorts visits port 0 of switches, and the ports with a cable of other nodes.
func (p *parser) endPorts() iter.Seq[endRef] {
	return func(yield func(endRef) bool) {
		for i := range p.nodes {
			n := &p.nodes[i]
			if n.kind == fabric.Switch {
				if !yield(endRef{int32(i), -1}) {
					return
				}
				continue
			}
			for l := range p.cabled(n) {
				if !yield(endRef{int32(i), p.slots[n.base+int(l.num)] - 1}) {
					return
				}
			}
		}
	}
}

// resolveLIDs finds the LIDs of end ports.
func (p *parser) resolveLIDs() error {
	p.hearLIDs()
	var owner lidOwners
	for e := range p.endPorts() {
		if l, _ := p.lids(e); l.lid == 0 && !l.disagree {
			l.lid = l.heard
		}
		if err := p.claim(&owner, e); err != nil {
			return err
		}
	}
	return p.tellLIDs()
}

// hearLIDs collects the LIDs that lines give to their peers. A port's own line
// decides; if it has no LID, the lines of its neighbours decide, if they agree.
func (p *parser) hearLIDs() {
	for i := range p.ports {
		b := &p.ports[i]
		if b.back < 0 || b.peerLID == 0 {
			continue
		}
		e := p.endOf(b.back)
		switch l, _ := p.lids(e); {
		case l.lid == b.peerLID:
		case l.lid != 0:
			p.note(b.at, p.column(b.at), "LID of %s is %d here, but %d in its own line: taken from there", p.endName(e), b.peerLID, l.lid)
		case l.heard == 0:
			l.heard = b.peerLID
		case l.heard != b.peerLID:
			p.note(b.at, p.column(b.at), "LID of %s is %d here, but %d elsewhere, and it says none itself: left without a LID", p.endName(e), b.peerLID, l.heard)
			l.disagree = true
		}
	}
}

// badLID is a LID that no port can have, or 0, as text.
type badLID struct {
	text   string
	at     place
	column int
	of     endRef
	peer   bool // it is the LID of the port's peer
}

// noteBadLID keeps x if it has a LID, except a peer's LID 0, which the peer's own line reports.
func (p *parser) noteBadLID(x badLID) {
	if x.text != "" && !(x.peer && x.text == "0") {
		if x.column == 0 {
			x.column = p.lidColumn(x.at, x.text)
		}
		p.badLIDs = append(p.badLIDs, x)
	}
}

// tellLIDs makes Problems of LIDs that no port can have, at most one
// for each end port. LID 0 is one of them if other ports have LIDs:
// the subnet manager has left that port out. A strict read refuses it.
func (p *parser) tellLIDs() error {
	some := false
	for e := range p.endPorts() {
		l, _ := p.lids(e)
		some = some || l.lid != 0
	}
	told := make(map[endRef]bool)
	for _, zero := range []bool{false, true} {
		for i := range p.badLIDs {
			if x := &p.badLIDs[i]; (x.text == "0") == zero && (some || !zero) {
				if err := p.tellLID(x, told); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// tellLID makes a Problem of x, unless the port of x has one already.
func (p *parser) tellLID(x *badLID, told map[endRef]bool) error {
	e := x.of
	if x.peer {
		if p.ports[e.line].back < 0 {
			return nil
		}
		e = p.endOf(p.ports[e.line].back)
	}
	cabled := e.line >= 0 && p.ports[e.line].back >= 0
	for range p.cabled(&p.nodes[e.node]) {
		cabled = cabled || e.line < 0
	}
	l, _ := p.lids(e)
	message := fmt.Sprintf("LID %s: want 1 to %d; taken as none", x.text, fabric.MaxUnicastLID)
	switch zero := x.text == "0"; {
	case told[e] || zero && (l.lid != 0 || !cabled):
		return nil
	case zero && p.strict:
		return p.refusal(x.at, x.column, "LID 0 in a fabric with LIDs: want 1 to %d", fabric.MaxUnicastLID)
	case l.lid != 0:
		message = fmt.Sprintf("LID %s: want 1 to %d; taken as %d, as another line says", x.text, fabric.MaxUnicastLID, l.lid)
	}
	told[e] = true
	q := p.problem(fabric.InvalidLID, x.at, x.column, message)
	q.Node, q.Port = p.nodes[e.node].guid, p.num(e)
	return nil
}

func (p *parser) num(e endRef) fabric.PortNum {
	if e.line < 0 {
		return fabric.ManagementPort
	}
	return p.ports[e.line].num
}

// lidOwners has, for each LID, the number of the line that gives it to a port, or 0.
type lidOwners [int(fabric.MaxUnicastLID) + 1]int32

// claim enters the LIDs of an end port. A port that cannot have them loses its LID.
func (p *parser) claim(owner *lidOwners, e endRef) error {
	l, at := p.lids(e)
	low, n := int(l.lid), 1<<l.lmc
	if low == 0 {
		return nil
	}
	if low%n != 0 {
		column := p.lidColumn(at, strconv.Itoa(low))
		what := fmt.Sprintf("%d, not a multiple of %d as LMC %d wants", low, n, l.lmc)
		if p.strict {
			return p.refusal(at, column, "LID of %s is %s", p.endName(e), what)
		}
		l.lid = 0
		p.badLIDs = append(p.badLIDs, badLID{text: what, at: at, column: column, of: e})
		return nil
	}
	// low+n is in range, because low is and 0xC000 is a multiple of 128.
	for k, line := range owner[low : low+n] {
		if line != 0 {
			l.lid = 0
			if p.twiceLIDs {
				p.tellTwice(e, at, low+k, line)
				return nil
			}
			return p.mend(at, p.lidColumn(at, strconv.Itoa(low)), "LID dropped", "LID %d of %s is used twice: the port of line %d has it too", low+k, p.endName(e), line)
		}
	}
	for k := range n {
		owner[low+k] = at.num
	}
	return nil
}

// tellTwice makes a Problem of a LID of an end port that the port of an earlier line has, too.
func (p *parser) tellTwice(e endRef, at place, lid int, line int32) {
	for first := range p.endPorts() {
		if _, has := p.lids(first); has.num == line {
			name := fabric.Name{Text: p.nodes[first.node].desc}.At(p.num(first), "")
			message := fmt.Sprintf("LID %d, which %s has too, by line %d; taken as none", lid, name, line)
			q := p.problem(fabric.DuplicateLID, at, p.lidColumn(at, strconv.Itoa(lid)), message)
			q.Node, q.Port, q.LID = p.nodes[e.node].guid, p.num(e), fabric.LID(lid)
			return
		}
	}
}

// lidColumn returns the column of a LID in a line, for messages; 0 if the line lacks it.
func (p *parser) lidColumn(at place, lid string) int {
	return strings.Index(string(p.textOf(at))+" ", " "+lid+" ") + 1
}

// build makes the fabric once everything is resolved.
func (p *parser) build() (*fabric.Fabric, error) {
	var b fabric.Builder
	ports := 0
	for i := range p.nodes {
		ports += int(p.nodes[i].ports) + 1
	}
	b.Grow(len(p.nodes), ports)
	for i := range p.nodes {
		n := &p.nodes[i]
		if _, err := b.AddNode(fabric.Node{
			GUID:          n.guid,
			SystemGUID:    n.system,
			Type:          n.kind,
			NumPorts:      n.ports,
			EnhancedPort0: n.enhanced0,
			VendorID:      n.vendor,
			DeviceID:      n.device,
			Description:   n.desc,
		}); err != nil {
			return nil, err
		}
		if n.kind == fabric.Switch {
			if err := b.SetPort(i, fabric.ManagementPort, n.portGUID, n.lid, n.lmc); err != nil {
				return nil, err
			}
		}
	}
	for i := range p.ports {
		l := &p.ports[i]
		if l.label != 0 {
			if err := b.SetLabel(int(l.node), l.num, p.labels[l.label]); err != nil {
				return nil, err
			}
		}
		if l.back < 0 {
			continue
		}
		if p.nodes[l.node].kind != fabric.Switch {
			if err := b.SetPort(int(l.node), l.num, l.guid, l.lid, l.lmc); err != nil {
				return nil, err
			}
		}
		if int(l.back) > i {
			peer := &p.ports[l.back]
			if err := b.Connect(int(l.node), l.num, int(peer.node), peer.num, l.link); err != nil {
				return nil, err
			}
		}
	}
	return b.Build()
}

// nodeName returns the name of a node in the text, for messages.
func (p *parser) nodeName(i int32) string {
	n := &p.nodes[i]
	if p.form != Stanzas {
		return kindWords[n.kind] + " " + n.guid.String()
	}
	return quotedIn(p.textOf(n.header))
}

// portName returns the name in the text of a line's port, for messages.
func (p *parser) portName(l *portLine) string {
	name := p.nodeName(l.node)
	if p.form != Stanzas && l.guid != 0 {
		name = kindWords[p.nodes[l.node].kind] + " " + l.guid.String()
	}
	return fmt.Sprintf("%s[%d]", name, l.num)
}

// peerName returns the name that a line gives to its other end.
func (p *parser) peerName(l *portLine) string {
	name := quotedIn(p.textOf(l.at))
	if p.form != Stanzas {
		name = kindWords[l.peer.kind] + " " + cmp.Or(l.peerGUID, fabric.GUID(l.peer.value)).String()
	}
	return fmt.Sprintf("%s[%d]", name, l.peerNum)
}

// quotedIn returns the first id in a line, with its quotes.
func quotedIn(s []byte) string {
	l := Line{Text: s, At: max(0, bytes.IndexByte(s, '"'))}
	return `"` + string(l.quoted()) + `"`
}
