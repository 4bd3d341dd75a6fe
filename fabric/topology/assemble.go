package topology

import (
	"bytes"
	"cmp"
	"fmt"

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
	if err := p.tellLIDs(); err != nil {
		return nil, err
	}
	p.tellNoise()
	f, err := p.build()
	if err != nil {
		return nil, &fabric.ParseError{File: p.file, Err: err}
	}
	return f, nil
}

// find gives the node that a key names, or -1.
func (p *parser) find(k key) int32 {
	if k.kind == 0 {
		return p.nameNode[k.value]
	}
	if i, ok := p.byGUID[fabric.GUID(k.value)]; ok && p.nodes[i].id == k {
		return i
	}
	return -1
}

// column is where the other end stands in a line, for messages.
func (p *parser) column(l *portLine) int {
	s := p.textOf(l.at)
	switch p.form {
	case PortList:
		return max(0, bytes.Index(s, []byte(" - "))+3)
	case LinkInfo:
		return p.columnOfPeer(l.at)
	case UFMLinks, SubnetList:
		return 0
	}
	return max(0, bytes.IndexByte(s, '"'))
}

// matchCables sets portLine.back.
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
	const lost = "link dropped"
	peer := p.find(l.peer)
	if peer < 0 {
		what := "stanza"
		if p.form != Stanzas {
			what = "line"
		}
		others := ""
		if !p.lenient { // which goes on to the next
			if n := p.countAstray(); n > 1 {
				others = fmt.Sprintf("; so it is with %d lines: is the text cut short?", n)
			}
		}
		return p.fail(l.at, p.column(l), lost, "%s is connected to %s here, but that node has no %s: a cable must be there at both ends%s", p.portName(l), p.peerName(l), what, others)
	}
	n := &p.nodes[peer]
	if l.peerNum > n.ports {
		return p.fail(l.at, p.column(l), lost, "%s is connected to %s here, but that node has ports 1 to %d (line %d)", p.portName(l), p.peerName(l), n.ports, n.header.num)
	}
	if peer == l.node && l.peerNum == l.num {
		if p.strict {
			return p.refusal(l.at, p.column(l), "%s is connected to itself: want another port", p.portName(l))
		}
		q := p.problem(fabric.Loopback, l.at, p.column(l), "connected to itself; taken as a port without a cable")
		q.Node, q.Port = p.nodes[l.node].guid, l.num
		return nil
	}
	at := p.slots[n.base+int(l.peerNum)] - 1
	if at < 0 {
		return p.fail(l.at, p.column(l), lost, "%s is connected to %s here, but that node (line %d) has no line for its port %d: a cable must be there at both ends", p.portName(l), p.peerName(l), n.header.num, l.peerNum)
	}
	b := &p.ports[at]
	if b.peer != p.nodes[l.node].id || b.peerNum != l.num {
		return p.fail(l.at, p.column(l), lost, "%s is connected to %s here, but line %d connects that port to %s", p.portName(l), p.peerName(l), b.at.num, p.peerName(b))
	}
	l.back, b.back = at, i
	return nil
}

// countAstray counts the lines of ports whose peer is nowhere in the text.
func (p *parser) countAstray() (n int) {
	for i := range p.ports {
		if p.find(p.ports[i].peer) < 0 {
			n++
		}
	}
	return n
}

// agreeOnLink gives both ends of a cable the same width and speed: what only
// one line knows, or the slower of two that differ. ibnetdiscover itself prints
// different speeds for the ends of an FDR10 link when it does not ask one of
// the devices about FDR10.
func (p *parser) agreeOnLink(a, b *portLine) {
	a.link, b.link = a.link.Or(b.link), b.link.Or(a.link)
	if a.link == b.link {
		return
	}
	slow := a.link.Slower(b.link)
	p.note(b.at, p.column(b), "%s is %s here, but %s is %s in line %d: taken as %s", p.portName(b), b.link, p.portName(a), a.link, a.at.num, slow)
	a.link, b.link = slow, slow
}

// checkTypes returns an error if the text gives its switches another type.
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
		for _, at := range p.slots[n.base : n.base+int(n.ports)+1] {
			if at == 0 || p.ports[at-1].back < 0 {
				continue
			}
			l := &p.ports[at-1]
			if last != nil && l.guid == last.guid && (l.guid != 0 || p.anyLID(l) != 0 && p.anyLID(l) == p.anyLID(last)) {
				if wrong++; first == nil {
					first = l
				}
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

// anyLID is the LID that a port with a cable says it has, or else that its neighbour says.
func (p *parser) anyLID(l *portLine) fabric.LID {
	if l.lid != 0 {
		return l.lid
	}
	return p.ports[l.back].peerLID
}

// resolvePortGUIDs finds the GUIDs of end ports. The line of the port itself counts
// more than what its peer says, and ibsim's rule, node GUID + port number,
// fills what neither says.
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
		switch {
		case l.guid == 0 && b.peerGUID != 0:
			l.guid = b.peerGUID
		case l.guid == 0:
			l.guid = n.guid + fabric.GUID(l.num)
		case b.peerGUID != 0 && b.peerGUID != l.guid:
			p.note(b.at, p.column(b), "port GUID of %s is %s here, but %s in its own line %d: taken from there", p.portName(l), b.peerGUID, l.guid, l.at.num)
		}
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

// resolveSwitchGUIDs finds the port GUIDs of switches. It returns by port GUID the
// number of the line that has it.
func (p *parser) resolveSwitchGUIDs() (map[fabric.GUID]int32, error) {
	lines := make(map[fabric.GUID]int32, len(p.nodes))
	clash := false
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.kind != fabric.Switch {
			continue
		}
		if n.portGUID == 0 {
			n.portGUID = n.guid
		}
		if line, twice := lines[n.portGUID]; twice {
			if err := p.mend(n.header, 0, "node GUIDs taken for the port GUIDs of all switches", "port GUID %s of switch %s is used twice: the switch of line %d has it too", n.portGUID, n.guid, line); err != nil {
				return nil, err
			}
			clash = true
			continue
		}
		lines[n.portGUID] = n.header.num
	}
	if !clash {
		return lines, nil
	}
	clear(lines)
	for i := range p.nodes {
		if n := &p.nodes[i]; n.kind == fabric.Switch {
			n.portGUID = n.guid
			lines[n.guid] = n.header.num
		}
	}
	return lines, nil
}

// resolveLIDs finds the LIDs of end ports.
func (p *parser) resolveLIDs() error {
	p.hearLIDs()
	var owner lidOwners
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.kind == fabric.Switch {
			if n.lid == 0 && !n.disagree {
				n.lid = n.heard
			}
			if ok, err := p.claim(&owner, n.lid, n.lmc, n.header, int32(i), nil); err != nil {
				return err
			} else if !ok {
				n.lid = 0
			}
			continue
		}
		for _, at := range p.slots[n.base : n.base+int(n.ports)+1] {
			if at == 0 || p.ports[at-1].back < 0 {
				continue
			}
			l := &p.ports[at-1]
			if ok, err := p.claim(&owner, l.lid, l.lmc, l.at, int32(i), l); err != nil {
				return err
			} else if !ok {
				l.lid = 0
			}
		}
	}
	return nil
}

// hearLIDs collects what lines say of the LIDs of their peers. What a port says of
// itself counts; where it says nothing, what its neighbours say, if they agree.
func (p *parser) hearLIDs() {
	for i := range p.ports {
		b := &p.ports[i]
		if b.back < 0 || b.peerLID == 0 {
			continue
		}
		l := &p.ports[b.back]
		n := &p.nodes[l.node]
		own, name := l.lid, p.portName
		if n.kind == fabric.Switch {
			own, name = n.lid, func(l *portLine) string { return p.nodeName(l.node) }
		}
		switch {
		case own == b.peerLID:
		case own != 0:
			p.note(b.at, p.column(b), "LID of %s is %d here, but %d in its own line: taken from there", name(l), b.peerLID, own)
		case n.kind != fabric.Switch:
			l.lid = b.peerLID
		case n.heard == 0:
			n.heard = b.peerLID
		case n.heard != b.peerLID:
			p.note(b.at, p.column(b), "LID of %s is %d here, but %d elsewhere, and it says none itself: left without a LID", name(l), b.peerLID, n.heard)
			n.disagree = true
		}
	}
}

// tellLIDs makes Problems of LIDs that no port can have, one for each end port. LID 0 is
// among them where other ports have LIDs: the subnet manager has left that port out. A
// strict read refuses it.
func (p *parser) tellLIDs() error {
	zero := p.zeroLIDs()
	if p.strict && len(zero) > 0 {
		x := &zero[0]
		return p.refusal(x.at, x.column, "LID 0 in a fabric with LIDs: want 1 to %d", fabric.MaxUnicastLID)
	}
	told := make(map[int]bool) // by index in slots
	for _, list := range [][]badLID{p.badLIDs, zero} {
		for i := range list {
			p.tellLID(&list[i], told)
		}
	}
	return nil
}

// tellLID makes a Problem of a LID that no port can have, unless its port has one already.
func (p *parser) tellLID(x *badLID, told map[int]bool) {
	n, l := &p.nodes[x.node], (*portLine)(nil)
	if x.port >= 0 {
		l = &p.ports[x.port]
		if x.peer {
			if l.back < 0 {
				return
			}
			l = &p.ports[l.back]
			n = &p.nodes[l.node]
		}
	}
	slot, num, lid := n.base, fabric.ManagementPort, n.lid
	if n.kind != fabric.Switch {
		slot, num, lid = slot+int(l.num), l.num, l.lid
	}
	if told[slot] {
		return
	}
	told[slot] = true
	message := fmt.Sprintf("LID %s: want 1 to %d; ", x.text, fabric.MaxUnicastLID)
	if lid == 0 {
		message += "taken as none"
	} else {
		message += fmt.Sprintf("taken as %d, as another line says", lid)
	}
	q := p.problem(fabric.InvalidLID, x.at, x.column, message)
	q.Node, q.Port = n.guid, num
}

// zeroLIDs lists the ports with a cable that have no LID and say that it is 0, unless no
// port has one.
func (p *parser) zeroLIDs() []badLID {
	var list []badLID
	some := false
	for i := range p.nodes {
		n := &p.nodes[i]
		cabled := false
		for _, at := range p.slots[n.base : n.base+int(n.ports)+1] {
			if at == 0 || p.ports[at-1].back < 0 {
				continue
			}
			cabled = true
			l := &p.ports[at-1]
			if n.kind == fabric.Switch {
				break
			}
			some = some || l.lid != 0
			if l.zero && l.lid == 0 {
				list = append(list, badLID{text: "0", at: l.at, column: p.lidColumn(l.at, 0), node: int32(i), port: at - 1})
			}
		}
		some = some || n.lid != 0
		if n.zero && n.lid == 0 && cabled {
			list = append(list, badLID{text: "0", at: n.header, column: p.lidColumn(n.header, 0), node: int32(i), port: -1})
		}
	}
	if !some {
		return nil
	}
	return list
}

// lidOwners holds for each LID the number of the line that gives it to a port,
// or 0.
type lidOwners [int(fabric.MaxUnicastLID) + 1]int32

// claim enters the LIDs of an end port, a switch's when l is nil. It says
// whether the port can have them.
func (p *parser) claim(owner *lidOwners, lid fabric.LID, lmc uint8, at place, node int32, l *portLine) (bool, error) {
	if lid == 0 {
		return true, nil
	}
	const lost = "LID dropped"
	name := func() string {
		if l == nil {
			return p.nodeName(node)
		}
		return p.portName(l)
	}
	low, n := int(lid), 1<<lmc
	if low%n != 0 {
		what := fmt.Sprintf("%d, not a multiple of %d as LMC %d wants", low, n, lmc)
		if p.strict {
			return false, p.refusal(at, p.lidColumn(at, lid), "LID of %s is %s", name(), what)
		}
		x := badLID{text: what, at: at, column: p.lidColumn(at, lid), node: node, port: -1}
		if l != nil {
			x.port = p.slots[p.nodes[node].base+int(l.num)] - 1
		}
		p.badLIDs = append(p.badLIDs, x)
		return false, nil
	}
	// low+n is in range, because low is and 0xC000 is a multiple of 128.
	for k, line := range owner[low : low+n] {
		if line != 0 {
			return false, p.mend(at, p.lidColumn(at, lid), lost, "LID %d of %s is used twice: the port of line %d has it too", low+k, name(), line)
		}
	}
	for k := range n {
		owner[low+k] = at.num
	}
	return true, nil
}

// lidColumn is where a LID stands in a line, for messages; 0 when it is in
// another line.
func (p *parser) lidColumn(at place, lid fabric.LID) int {
	l := Line{Text: p.textOf(at)}
	for ; !l.Done(); l.At++ {
		from := l.At
		if l.decimal() == int(lid) && (from == 0 || l.Text[from-1] == ' ') && (l.Done() || l.Is(' ')) {
			return from
		}
	}
	return 0
}

// build makes the fabric of what has been resolved.
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

// nodeName is a node as the text has it, for messages.
func (p *parser) nodeName(i int32) string {
	n := &p.nodes[i]
	if p.form != Stanzas {
		return kindWords[n.kind] + " " + n.guid.String()
	}
	return quotedIn(p.textOf(n.header))
}

// portName is the port of a line as the text has it, for messages.
func (p *parser) portName(l *portLine) string {
	name := p.nodeName(l.node)
	if p.form != Stanzas && l.guid != 0 {
		name = kindWords[p.nodes[l.node].kind] + " " + l.guid.String()
	}
	return fmt.Sprintf("%s[%d]", name, l.num)
}

// peerName is the other end of a line as the line has it.
func (p *parser) peerName(l *portLine) string {
	name := quotedIn(p.textOf(l.at))
	if p.form != Stanzas {
		name = kindWords[l.peer.kind] + " " + cmp.Or(l.peerGUID, fabric.GUID(l.peer.value)).String()
	}
	return fmt.Sprintf("%s[%d]", name, l.peerNum)
}

// quotedIn is the first id in a line, with its quotes.
func quotedIn(s []byte) string {
	l := Line{Text: s, At: max(0, bytes.IndexByte(s, '"'))}
	return `"` + string(l.quoted()) + `"`
}
