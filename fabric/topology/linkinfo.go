package topology

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"

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
// The GUID is that of the port; all ports of a switch have the GUID of its port 0. With --switches-only
// only switches have rows.

var (
	// infoHead is a head: type and description of an adapter or router, or GUID, description and
	// colon of a switch.
	infoHead = regexp.MustCompile(`^(?:(CA|Router): (.*):|Switch: (0x\S*) ?(.*?)(:?))$`)
	// infoBegin matches the beginning of a row, even of a broken one.
	infoBegin = regexp.MustCompile(`^(?:0x[0-9a-fA-F]{1,16}(?:[ \t]|$)|\d+[ \t]*(?:$|[ \t]\d+(?:$|\[)))`)
	// infoRow matches a row: GUID and description of -l, LID and port number, state of the link,
	// and the other end: not answering, nothing, or GUID, LID, port number and description.
	infoRow = regexp.MustCompile(`^(?:(0x\S*)[ \t]+)?(?:"(.*?)"[ \t]+)?(\d+)[ \t]+(\d+)` + chassis + `==\(([^"\[]*?)==>[ \t]*` +
		`(?:("Port not available")|` + chassis + `(")|(?:(0x\S*)[ \t]+)?(\d+)[ \t]+(\d+)` + chassis + `"(.*)")`)
)

// chassis matches the number of a port on its chassis, which is ignored.
const chassis = `\[[ \t]*\d*[ \t]*\][ \t]*`

// The parts of infoRow.
const (
	rowGUID = 1 + iota
	rowName
	rowLID // and port number
	_
	rowState
	rowSilent
	rowDown
	rowPeer // GUID, LID, port and name
)

// readLinkInfo reads what iblinkinfo prints.
func (p *parser) readLinkInfo() error {
	rows := make([]listLine, 0, len(p.data)/112+16)
	var head *listPort // of the rows that follow
	dropped := false   // the head was dropped
	err := p.eachLine(func(l *Line) (err error) {
		row := parts{l, infoRow.FindSubmatchIndex(l.Rest())}
		if row.at == nil {
			if m := infoHead.FindSubmatchIndex(l.Rest()); m != nil {
				if err := p.settleNoise(false); err != nil {
					return err
				}
				head, err = p.readInfoHead(parts{l, m})
				dropped = err != nil
				return err
			}
			if !infoBegin.Match(l.Rest()) && formOf(l.Rest()) != PortList && !isStanza(*l) {
				return p.passOver(l)
			}
		}
		if err := p.settleNoise(len(rows) > 0 || head != nil); err != nil {
			return err
		}
		switch {
		case row.at == nil:
			return p.dropLine(l.At, "want LID, port[ ] ==( state of the link )==> and the other end, as iblinkinfo prints them")
		case dropped && !row.has(rowName):
			return nil
		}
		x := listLine{at: p.line}
		if err := p.readInfoRow(row, head, &x); err != nil {
			return err
		}
		rows = append(rows, x)
		return nil
	})
	if err != nil {
		return err
	}
	if rows, err = p.addAdapters(rows); err != nil {
		return err
	}
	inferKinds(rows, func(e *listPort) fabric.NodeType { return e.kind })
	if err := p.joinRows(rows); err != nil {
		return err
	}
	return p.listNodes(rows, false)
}

// name returns a description without the leading blanks
// that -l puts before that of a row's own node.
func (m parts) name(i int) string { return strings.TrimLeft(string(m.part(i).Rest()), " ") }

func (p *parser) readInfoHead(m parts) (*listPort, error) {
	const lost = "node dropped"
	if !m.has(3) {
		kind := fabric.CA
		if m.name(1) == "Router" {
			kind = fabric.Router
		}
		return &listPort{kind: kind, name: m.name(2)}, nil
	}
	guid, err := p.readGUID0x(m.part(3), lost)
	if err == nil && m.name(5) == "" {
		err = p.failHere(m.part(4).At, lost, "want the node's description and a colon")
	}
	return &listPort{kind: fabric.Switch, guid: guid, name: m.name(4)}, err
}

// readInfoRow reads a row of the node in head, nil for none.
func (p *parser) readInfoRow(m parts, head *listPort, x *listLine) (err error) {
	if m.has(rowGUID) {
		if x.own.guid, err = p.readGUID0x(m.part(rowGUID), "line dropped"); err != nil {
			return err
		}
	}
	switch {
	case m.has(rowName):
		x.own.name = m.name(rowName)
	case head == nil:
		return p.dropLine(m.line.At, "a port of no node: want a line such as \"Switch: 0x0002c90000000001 leaf 1:\" first")
	default:
		x.own.kind, x.own.name, x.own.guid = head.kind, head.name, cmp.Or(head.guid, x.own.guid)
	}
	if x.own.guid == 0 {
		return p.dropLine(m.line.At, "no GUID of the port: want 0x and 1 to 16 hexadecimal digits in front of the LID")
	}
	if err := p.readEnd(m, rowLID, &x.own); err != nil {
		return err
	}
	down := false
	x.link, down = linkInfoOf(m.part(rowState).Rest())
	switch {
	case m.has(rowSilent):
		x.silent = true
		return nil
	case m.has(rowDown) && !down:
		return p.dropLine(m.part(rowState).At, "no other end of a link that is up: want its LID, port and description")
	case m.has(rowDown):
		return nil
	case m.has(rowPeer):
		if x.peer.guid, err = p.readGUID0x(m.part(rowPeer), "line dropped"); err != nil {
			return err
		}
	}
	x.linked, x.peer.name = true, m.name(rowPeer+3)
	return p.readEnd(m, rowPeer+1, &x.peer)
}

// linkRates has speeds by the rate of a lane as libibmad prints it, in
// Gbit/s without zeros behind (mad_dump_linkspeed, mad_dump_linkspeedext).
var linkRates = map[string]fabric.Speed{
	"2.5": fabric.SDR, "5": fabric.DDR, "10": fabric.QDR, "14.0625": fabric.FDR, "25.78125": fabric.EDR,
	"53.125": fabric.HDR, "106.25": fabric.NDR, "212.5": fabric.XDR,
}

// infoState matches the state of a link: width, rate, and a mark of FDR10.
var infoState = regexp.MustCompile(`^[ \t]*((?:\d+|\?\?)X)?(?:.*?[ \t(/]([0-9.]+) Gbps)?(.*FDR10)?`)

// linkInfoOf reads " 4X 25.78125 Gbps Active/  LinkUp)". What it does not know stays 0.
func linkInfoOf(text []byte) (link fabric.Link, down bool) {
	m := infoState.FindSubmatch(text)
	if width, ok := linkOf(bytes.ToLower(m[1])); ok {
		link.Width = width.Width
	}
	rate := string(m[2])
	if strings.Contains(rate, ".") {
		rate = strings.TrimRight(strings.TrimRight(rate, "0"), ".")
	}
	if link.Speed = linkRates[rate]; len(m[3]) > 0 {
		link.Speed = fabric.FDR10
	}
	return link, bytes.Contains(text, []byte("Down"))
}

// maxAdapterPort is the highest port number of an adapter.
const maxAdapterPort = 4

// addAdapters adds rows for adapters if the text has rows of switches only
// (--switches-only). If the node at the other end of a switch's row has no rows, it
// is taken for an adapter; without -l its GUID is made of its LID and port number.
func (p *parser) addAdapters(rows []listLine) ([]listLine, error) {
	type node struct {
		guid fabric.GUID
		name string // with lid, if there is no -l
		lid  fabric.LID
	}
	of := func(e *listPort, byGUID bool) node {
		if byGUID {
			return node{guid: e.guid}
		}
		return node{name: e.name, lid: e.lid}
	}
	ports := make(map[node]map[fabric.PortNum]bool, len(rows)/8+1) // by node: ports in its rows or in those of others
	add := func(n node, num fabric.PortNum) {
		if ports[n] == nil {
			ports[n] = make(map[fabric.PortNum]bool)
		}
		ports[n][num] = true
	}
	listed := make(map[node]bool)
	for i := range rows {
		x := &rows[i]
		for _, n := range []node{of(&x.own, true), of(&x.own, false)} {
			listed[n] = true
			add(n, x.own.num)
		}
		if x.linked {
			add(of(&x.peer, x.peer.guid != 0), x.peer.num)
		}
	}
	for i := range rows {
		if e := &rows[i].own; e.kind != fabric.Switch && (e.kind != 0 || len(ports[of(e, true)]) == 1) {
			return rows, nil // an adapter has rows, so all have
		}
	}
	known, adapters, made := "GUID", 0, make(map[fabric.GUID]string)
	for i := range len(rows) {
		x := &rows[i]
		n := of(&x.peer, x.peer.guid != 0)
		if !x.linked || listed[n] {
			continue
		}
		wrong, guid := "", fabric.MadeGUID(x.peer.lid, x.peer.num)
		other, taken := made[guid]
		switch {
		case len(ports[n]) > 1 || x.peer.num > maxAdapterPort:
			wrong = fmt.Sprintf("connected to port %d of %q here, which has no rows and more ports than an adapter: a switch has rows; is the text cut short?", x.peer.num, x.peer.name)
		case x.peer.guid != 0:
		case x.peer.lid == 0:
			wrong = fmt.Sprintf("connected to %q here, which has no rows, GUID or LID: want iblinkinfo -l, which has GUIDs, or of the whole fabric, not of switches only", x.peer.name)
		case taken && other != x.peer.name:
			wrong = fmt.Sprintf("port %d of %q has LID %d, which %q has, too: want iblinkinfo -l, which has GUIDs", x.peer.num, x.peer.name, x.peer.lid, other)
		default:
			made[guid] = x.peer.name
			x.peer.guid, known = guid, "LID and name, and have made up GUIDs: iblinkinfo -l has theirs"
		}
		if wrong != "" {
			x.linked = false
			if err := p.dropLink(x.at, "%s", wrong); err != errDropped {
				return nil, err
			}
			continue
		}
		x.peer.kind = fabric.CA
		y := *x
		y.own, y.peer, y.peer.bad = x.peer, x.own, ""
		x.peer.bad = "" // the adapter's row reports a bad LID
		rows = append(rows, y)
		adapters++
	}
	if adapters > 0 {
		p.note(rows[0].at, 0, "the rows are those of switches alone: %d ports of adapters are known from them by %s", adapters, known)
	}
	return rows, nil
}

// cableKey is a cable as the row of one end names it.
type cableKey struct {
	ownName, peerName string
	ownNum, peerNum   fabric.PortNum
}

// joinRows finds for each row the row of its cable's other end, which has GUID
// and type of the port there. Without -l the descriptions, port numbers and LIDs
// of both ends decide.
func (p *parser) joinRows(rows []listLine) error {
	byKey := make(map[cableKey][]int32, len(rows))
	for i := range rows {
		if x := &rows[i]; x.linked && x.peer.guid == 0 {
			k := cableKey{x.own.name, x.peer.name, x.own.num, x.peer.num}
			byKey[k] = append(byKey[k], int32(i))
		}
	}
	p.tellSilent(rows)
	for i := range rows {
		x := &rows[i]
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

// tellSilent makes Problems of ports that are up, with nothing behind them that answered.
func (p *parser) tellSilent(rows []listLine) {
	for i := range rows {
		if x := &rows[i]; x.silent {
			q := p.problem(fabric.SweepError, x.at, 0, "the port is up, and nothing answered behind it")
			if x.own.kind == fabric.Switch {
				q.Node, q.Port = x.own.guid, x.own.num
			}
		}
	}
}

// joinRow finds the row of the other end of x in list, the rows that name the same ports.
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
		return p.dropLink(x.at, "connected to port %d of %q here, but no row of that node says so: a cable must be there at both ends; want iblinkinfo of the whole fabric, not of switches only", x.peer.num, x.peer.name)
	default:
		return p.dropLink(x.at, "port %d of %q may be that of any of %d nodes with this description and LID: want iblinkinfo -l, which has GUIDs", x.peer.num, x.peer.name, max(agree, len(list)))
	}
	x.peer.guid, x.peer.kind = found.own.guid, found.own.kind
	return nil
}

// sameLID returns true if two ports have the same LID, valid or not.
func (l *listPort) sameLID(m *listPort) bool { return l.lid == m.lid && l.bad == m.bad }
