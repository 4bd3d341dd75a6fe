package topology

import (
	"bytes"
	"cmp"

	"github.com/ibweave/ibweave/fabric"
)

// This file reads what iblinkinfo prints (print_node_header and print_port of
// infiniband-diags/iblinkinfo.c). A node has a head, and each of its ports a row, also
// those that are down:
//
//	Switch: 0x0002c90000000001 leaf 1:
//	           1    5[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       4    1[  ] "host 1" (Could be 53.125 Gbps)
//	           1    6[  ] ==(                Down/ Polling)==>             [  ] "" ( )
//	CA: host 1:
//	      0x0000000000000101      4    1[  ] ==( ..)==>       1    5[  ] "leaf 1" ( )
//
// With -l there are no heads, and each row has the GUIDs and descriptions of both ends:
//
//	0x0000000000000101 "                        host 1"      4    1[  ] ==( ..)==>  0x0002c90000000001      1    5[  ] "leaf 1" ( )
//
// The GUID is that of the port; all ports of a switch have the one of its port 0.

// infoHead is what a head says of the node.
type infoHead struct {
	kind fabric.NodeType
	guid fabric.GUID // of a switch
	name string
}

// Marks of a row: in front of the state of the link, and behind it.
var (
	linkBegin = []byte("==(")
	linkEnd   = []byte("==>")
)

// headWord is the type of node that a head says, 0 for a line that is no head.
func headWord(l Line) fabric.NodeType {
	kind := fabric.NodeType(0)
	switch string(l.letters()) {
	case "CA":
		kind = fabric.CA
	case "Switch":
		kind = fabric.Switch
	case "Router":
		kind = fabric.Router
	default:
		return 0
	}
	if !l.Skip(": ") || kind == fabric.Switch && !l.Skip("0x") || kind != fabric.Switch && !bytes.HasSuffix(l.Text, []byte(":")) {
		return 0
	}
	return kind
}

// isInfoLine says whether a line is one of iblinkinfo.
func isInfoLine(l Line) bool {
	if headWord(l) != 0 {
		return true
	}
	n := bytes.Index(l.Rest(), linkBegin)
	return n >= 0 && bytes.Contains(l.Rest()[n:], linkEnd) && isInfoRow(l)
}

// isInfoRow says whether a line begins as a row of iblinkinfo, though it may be broken: with
// a GUID, or a LID and the number of a port.
func isInfoRow(l Line) bool {
	if l.Skip("0x") {
		_, ok := l.hexadecimal()
		return ok && l.IsBlank()
	}
	if l.decimal() < 0 || !l.IsBlank() {
		return false
	}
	l.SkipBlanks()
	return l.Done() || l.decimal() >= 0 && (l.Done() || l.Is('['))
}

// readLinkInfo reads what iblinkinfo prints.
func (p *parser) readLinkInfo() error {
	rows := make([]listLine, 0, len(p.data)/112+16)
	var head *infoHead
	dropped := false
	err := p.eachLine(func(l *Line) error {
		switch {
		case headWord(*l) != 0:
			if err := p.settleNoise(false); err != nil {
				return err
			}
			head, dropped = nil, true
			h, err := p.readInfoHead(l)
			if err == nil {
				head, dropped = h, false
			}
			return err
		case !isInfoRow(*l) && !isInfoLine(*l) && !isListLine(l.Text, l.At) && !isStanza(*l):
			return p.passOver(l)
		}
		if err := p.settleNoise(len(rows) > 0 || head != nil); err != nil {
			return err
		}
		x := listLine{at: p.line}
		if err := p.readInfoRow(l, head, dropped, &x); err != nil {
			return err
		}
		if x.own.num > 0 { // it is none of a node that is dropped
			rows = append(rows, x)
		}
		return nil
	})
	if err != nil {
		return err
	}
	inferKinds(rows)
	if err := p.joinRows(rows); err != nil {
		return err
	}
	return p.listNodes(rows, false)
}

// readInfoHead reads a head, of which headWord has looked at the begin.
func (p *parser) readInfoHead(l *Line) (*infoHead, error) {
	const lost = "node dropped"
	h := infoHead{kind: headWord(*l)}
	l.letters()
	l.Skip(": ")
	if h.kind == fabric.Switch {
		var err error
		if h.guid, err = p.readInfoGUID(l, lost); err != nil {
			return nil, err
		}
		l.Skip(" ")
	}
	name, ok := bytes.CutSuffix(l.Rest(), []byte(":"))
	if !ok {
		return nil, p.failHere(l.At, lost, "want the node's description and a colon")
	}
	h.name = unpadded(name)
	return &h, nil
}

// readInfoGUID reads 0x and a GUID, behind which is a blank.
func (p *parser) readInfoGUID(l *Line, lost string) (fabric.GUID, error) {
	start := *l
	g, ok := l.number()
	if !ok || g == 0 || !l.IsBlank() {
		return 0, p.failHere(start.At, lost, "GUID %q: want 0x and 1 to 16 hexadecimal digits", start.nextToken())
	}
	return fabric.GUID(g), nil
}

// infoEnd is what a row says of one end: LID, port number, and the number on the chassis,
// which is passed over.
type infoEnd struct{ lid, num Line }

// readInfoEnd reads "     4    1[  ]", with blanks behind it.
func (l *Line) readInfoEnd() (e infoEnd, ok bool) {
	l.SkipBlanks()
	e.lid = *l
	if l.decimal() < 0 || !l.IsBlank() {
		return e, false
	}
	l.SkipBlanks()
	e.num = *l
	return e, l.decimal() >= 0 && l.skipChassis()
}

// skipChassis reads [  ] or [ 3], with blanks behind it.
func (l *Line) skipChassis() bool {
	if !l.Skip("[") {
		return false
	}
	l.SkipBlanks()
	l.decimal()
	l.SkipBlanks()
	ok := l.Skip("]")
	l.SkipBlanks()
	return ok
}

const wantRow = "want LID, port[ ] ==( state of the link )==> and the other end, as iblinkinfo prints them"

// readInfoRow reads a row of the node that head says, nil for none.
func (p *parser) readInfoRow(l *Line, head *infoHead, dropped bool, x *listLine) (err error) {
	const lost = "row dropped"
	start := *l
	if l.Is('0') && bytes.HasPrefix(l.Rest(), []byte("0x")) {
		if x.own.guid, err = p.readInfoGUID(l, lost); err != nil {
			return err
		}
		l.SkipBlanks()
	}
	var own infoEnd
	var ok bool
	switch {
	case l.Is('"'):
		if x.own.name, own, ok = l.ownName(); !ok {
			return p.failHere(l.At, lost, wantRow)
		}
	default:
		if own, ok = l.readInfoEnd(); !ok || !bytes.HasPrefix(l.Rest(), linkBegin) {
			return p.failHere(l.At, lost, wantRow)
		}
		switch {
		case head != nil:
			x.own.kind, x.own.name = head.kind, head.name
			x.own.guid = cmp.Or(head.guid, x.own.guid)
		case dropped:
			return nil
		default:
			return p.failHere(start.At, lost, "a port of no node: want a line such as \"Switch: 0x0002c90000000001 leaf 1:\" first")
		}
		if x.own.guid == 0 {
			return p.failHere(start.At, lost, "no GUID of the port: want 0x and 1 to 16 hexadecimal digits in front of the LID")
		}
	}
	if err := p.takeEnd(own, &x.own); err != nil {
		return err
	}
	l.Skip("==(")
	n := bytes.Index(l.Rest(), linkEnd)
	if n < 0 {
		return p.failHere(l.At, lost, wantRow)
	}
	down := false
	x.link, down = linkInfoOf(l.Rest()[:n])
	l.At += n + len(linkEnd)
	l.SkipBlanks()
	switch {
	case l.Is('['):
		if !down || !l.skipChassis() || !l.Is('"') {
			return p.failHere(l.At, lost, wantRow)
		}
		return nil
	case bytes.HasPrefix(l.Rest(), []byte(`"Port not available"`)):
		x.silent = true
		return nil
	}
	return p.readInfoPeer(l, x)
}

// ownName reads the description of -l, which ends where what follows is right, and the end
// of the cable behind it.
func (l *Line) ownName() (name string, own infoEnd, ok bool) {
	for from, at := l.At+1, l.At+1; ; at++ {
		n := bytes.IndexByte(l.Text[at:], '"')
		if n < 0 {
			return "", own, false
		}
		at += n
		ahead := Line{Text: l.Text, At: at + 1}
		if own, ok = ahead.readInfoEnd(); ok && isLinkState(ahead.Rest()) {
			*l = ahead
			return unpadded(l.Text[from:at]), own, true
		}
	}
}

// unpadded is a description without blanks in front, as -l pads those of a row's own node.
func unpadded(name []byte) string { return string(bytes.TrimLeft(name, " ")) }

// isLinkState says whether text begins with the state of a link, "==( 4X .. Active/  LinkUp)==>".
func isLinkState(text []byte) bool {
	text, ok := bytes.CutPrefix(text, linkBegin)
	n := bytes.Index(text, linkEnd)
	return ok && n >= 0 && !bytes.ContainsAny(text[:n], `"[`)
}

// takeEnd takes the LID and the port number of an end.
func (p *parser) takeEnd(e infoEnd, to *listPort) error {
	if err := p.takeLID(&e.lid, to); err != nil {
		return err
	}
	num := e.num
	v := num.decimal()
	if v < 1 || v > int(fabric.MaxPortNum) {
		return p.failHere(e.num.At, "row dropped", "port %s: want 1 to %d", num.Text[e.num.At:num.At], fabric.MaxPortNum)
	}
	to.num = fabric.PortNum(v)
	return nil
}

// readInfoPeer reads the other end of a cable.
func (p *parser) readInfoPeer(l *Line, x *listLine) (err error) {
	const lost = "row dropped"
	if ahead := *l; ahead.Skip("0x") {
		if x.peer.guid, err = p.readInfoGUID(l, lost); err != nil {
			return err
		}
	}
	end, ok := l.readInfoEnd()
	last := bytes.LastIndexByte(l.Text, '"')
	if !ok || !l.Is('"') || last <= l.At {
		return p.failHere(l.At, lost, wantRow)
	}
	if err := p.takeEnd(end, &x.peer); err != nil {
		return err
	}
	x.peer.name = unpadded(l.Text[l.At+1 : last])
	x.linked = true
	return nil
}

// linkRates are the lanes' rates as libibmad prints them, in Gbit/s without zeros behind
// (mad_dump_linkspeed, mad_dump_linkspeedext).
var linkRates = map[string]fabric.Speed{
	"2.5": fabric.SDR, "5": fabric.DDR, "10": fabric.QDR, "14.0625": fabric.FDR, "25.78125": fabric.EDR,
	"53.125": fabric.HDR, "106.25": fabric.NDR, "212.5": fabric.XDR,
}

// linkInfoOf reads " 4X 25.78125 Gbps Active/  LinkUp)". What it does not know is left 0.
func linkInfoOf(text []byte) (link fabric.Link, down bool) {
	words := bytes.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == '\t' || c == '(' || c == ')' || c == '/' })
	for i, w := range words {
		switch {
		case string(w) == "Down":
			down = true
		case string(w) == "FDR10":
			link.Speed = fabric.FDR10
		case string(w) == "Gbps" && i > 0 && link.Speed == fabric.SpeedUnknown:
			rate := words[i-1]
			if bytes.IndexByte(rate, '.') >= 0 {
				rate = bytes.TrimRight(bytes.TrimRight(rate, "0"), ".")
			}
			link.Speed = linkRates[string(rate)]
		case i == 0:
			if width, ok := linkOf(bytes.ToLower(w)); ok {
				link.Width = width.Width
			}
		}
	}
	return link, down
}

// inferKinds finds the types of nodes that rows of -l do not say: a GUID with several ports
// is that of a switch, as ports of adapters have each their own. Routers cannot be told from
// adapters.
func inferKinds(rows []listLine) {
	first := make(map[fabric.GUID]fabric.PortNum, len(rows)/8+1)
	several := make(map[fabric.GUID]bool)
	see := func(e *listPort) {
		if num, ok := first[e.guid]; !ok {
			first[e.guid] = e.num
		} else if num != e.num {
			several[e.guid] = true
		}
	}
	for i := range rows {
		see(&rows[i].own)
		if rows[i].peer.guid != 0 {
			see(&rows[i].peer)
		}
	}
	kind := func(e *listPort) {
		switch {
		case e.kind != 0 || e.guid == 0:
		case several[e.guid]:
			e.kind = fabric.Switch
		default:
			e.kind = fabric.CA
		}
	}
	for i := range rows {
		kind(&rows[i].own)
		kind(&rows[i].peer)
	}
}

// cableKey is a cable as the row of one end names it.
type cableKey struct {
	ownName, peerName string
	ownNum, peerNum   fabric.PortNum
}

// joinRows finds for each row the one of the other end of its cable, and with it GUID and
// type of the port there. Without -l the descriptions, port numbers and LIDs of both ends
// decide.
func (p *parser) joinRows(rows []listLine) error {
	byKey := make(map[cableKey][]int32, len(rows))
	for i := range rows {
		if x := &rows[i]; x.linked && x.peer.guid == 0 {
			k := cableKey{x.own.name, x.peer.name, x.own.num, x.peer.num}
			byKey[k] = append(byKey[k], int32(i))
		}
	}
	for i := range rows {
		x := &rows[i]
		if x.silent {
			q := p.problem(fabric.SweepError, x.at, 0, "the port is up, and nothing answered behind it")
			if x.own.kind == fabric.Switch {
				q.Node, q.Port = x.own.guid, x.own.num
			}
		}
		if x.linked && x.peer.guid == 0 {
			if err := p.joinRow(rows, x, byKey[cableKey{x.peer.name, x.own.name, x.peer.num, x.own.num}]); err == errDropped {
				x.linked = false
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// joinRow finds the row of the other end among those that name the same ports.
func (p *parser) joinRow(rows []listLine, x *listLine, list []int32) error {
	var found *listLine
	agree := 0
	for _, i := range list {
		if y := &rows[i]; y.own.sameLID(&x.peer) && y.peer.sameLID(&x.own) {
			found = y
			agree++
		}
	}
	switch {
	case agree == 1:
	case len(list) == 1:
		found = &rows[list[0]]
	case len(list) == 0:
		return p.fail(x.at, p.columnOfPeer(x.at), "link dropped", "connected to port %d of %q here, but no row of that node says so: a cable must be there at both ends; want iblinkinfo of the whole fabric, not of switches only", x.peer.num, x.peer.name)
	default:
		return p.fail(x.at, p.columnOfPeer(x.at), "link dropped", "port %d of %q may be that of any of %d nodes with this description and LID: want iblinkinfo -l, which has GUIDs", x.peer.num, x.peer.name, max(agree, len(list)))
	}
	x.peer.guid, x.peer.kind = found.own.guid, found.own.kind
	return nil
}

// sameLID says whether two ports have the same LID, also where it cannot be.
func (l *listPort) sameLID(m *listPort) bool { return l.lid == m.lid && l.bad == m.bad }

// columnOfPeer is where the other end stands in a row.
func (p *parser) columnOfPeer(at place) int {
	return max(0, bytes.Index(p.textOf(at), linkEnd)+len(linkEnd))
}
