package topology

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// This file reads the net_dump file of ibdiagnet: for each switch a head, a row of the columns'
// names, and a row for each port, also those that are down:
//
//	"leaf 1", Mellanox, 0x0002c90000000001, LID 24
//	  #     : IB# : Sta  : PhysSta : MTU : LWA : LSA : FEC mode : Retran : Neighbor Guid : N# : NLID : Neighbor Description
//	  1/1/1 : 1   : ACT  : LINK UP : 5   : 4x  : 100 : .. : NO-RTR : 0x0000000000000101 : B184D0F0/0/0/1 : 156 : "host 1"
//
// # and N# are the labels of a port and of its peer. The row of a switch with the label N# has
// the peer's number; the label of an adapter's port ends with it.

// netDumpHead matches the head of a switch: description,
// GUID and LID; netDumpRow, how a row begins.
var (
	netDumpHead = regexp.MustCompile(`^"(.*)",[ \t]*[^",]*,[ \t]*(0x[0-9a-fA-F]*),[ \t]*LID[ \t]+(\S*)[ \t]*$`)
	netDumpRow  = regexp.MustCompile(`^[^ \t:]+[ \t]*:[ \t]`)
)

// netDumpColumns names the columns that are read. In a file the last of them comes last.
var netDumpColumns = []string{"#", "ib#", "sta", "lwa", "lsa", "neighbor guid", "n#", "nlid", "neighbor description"}

// The parts of a row.
const (
	columnLabel = 1 + iota
	columnPort
	columnState
	columnWidth
	columnSpeed
	columnPeer // GUID, label, LID and name
)

func (p *parser) readNetDump() error {
	var rows []listLine
	var head *listPort // of the rows that follow
	var columns []int  // columns of that switch
	dropped := false   // the head was dropped
	err := p.eachLine(func(l *Line) (err error) {
		isHead := l.Is('"')
		if !isHead && !netDumpRow.Match(l.Rest()) {
			return p.passOver(l)
		}
		if err := p.settleNoise(head != nil && !isHead); err != nil {
			return err
		}
		switch {
		case isHead:
			head, columns, err = p.readNetDumpHead(l)
			dropped = err != nil
			return err
		case dropped:
			return nil
		case head == nil:
			return p.dropLine(l.At, "a port of no switch: want a line such as \"leaf 1\", Mellanox, 0x0002c90000000001, LID 24 first")
		}
		x := listLine{at: p.line, own: *head}
		if err := p.readNetDumpRow(partsOf(l, columns), &x); err != nil {
			return err
		}
		rows = append(rows, x)
		return nil
	})
	if err != nil {
		return err
	}
	if rows, err = p.netDumpEnds(rows); err != nil {
		return err
	}
	p.tellSilent(rows)
	return p.listNodes(rows, false)
}

// readNetDumpHead reads the head of a switch and the columns in the line below.
func (p *parser) readNetDumpHead(l *Line) (head *listPort, columns []int, err error) {
	const lost = "node dropped"
	m := parts{l, netDumpHead.FindSubmatchIndex(l.Rest())}
	if m.at == nil {
		return nil, nil, p.failHere(l.At, lost, "want the description of a switch, its vendor, GUID and LID: \"leaf 1\", Mellanox, 0x0002c90000000001, LID 24")
	}
	head = &listPort{kind: fabric.Switch, name: string(m.part(1).Rest())}
	if head.guid, err = p.readGUID0x(m.part(2), lost); err != nil {
		return nil, nil, err
	}
	head.node = head.guid
	below := p.textOf(place{off: min(len(p.data), p.line.off+len(p.textOf(p.line))+1)})
	names := text.Each(strings.Split(strings.ToLower(string(below)), ":"), strings.TrimSpace)
	columns = text.Each(netDumpColumns, func(name string) int { return slices.Index(names, name) })
	if slices.Contains(columns, -1) || columns[len(columns)-1] != len(names)-1 {
		return nil, nil, p.failHere(l.At, lost, "the line below does not name the columns: want at least %s, the last one behind all others", strings.Join(netDumpColumns, " : "))
	}
	return head, columns, p.takeLID(m.part(3), head)
}

// partsOf splits a row at its colons; a part that is not there is missing.
func partsOf(l *Line, columns []int) parts {
	ends := []int{-1} // by column: offset of the colon before it
	for at, c := range l.Rest() {
		if c == ':' && len(ends) <= columns[len(columns)-1] {
			ends = append(ends, at)
		}
	}
	ends = append(ends, len(l.Rest()))
	m := parts{l, []int{0, len(l.Rest())}}
	for _, c := range columns {
		from, to := -1, -1
		if c+1 < len(ends) {
			text := l.Rest()[ends[c]+1 : ends[c+1]]
			to = ends[c] + 1 + len(bytes.TrimRight(text, " \t"))
			from = min(to, ends[c+1]-len(bytes.TrimLeft(text, " \t")))
		}
		m.at = append(m.at, from, to)
	}
	return m
}

// readNetDumpRow reads a row. The number of the port at the other end stays 0.
func (p *parser) readNetDumpRow(m parts, x *listLine) (err error) {
	if !m.has(columnPeer + 3) {
		return p.dropLine(m.line.At, "the row is cut short: want all columns that the line below the head of the switch names")
	}
	if x.own.num, err = p.readPortNum(m.part(columnPort)); err != nil {
		return err
	}
	x.own.label = netDumpLabel(m.part(columnLabel))
	if string(m.part(columnState).Rest()) == "DOWN" {
		return nil
	}
	for i, at := range []int{columnWidth, columnState, columnSpeed} {
		if l := m.part(at); string(l.Rest()) != "N/A" {
			if err := x.takeState(i, l); err != nil {
				return p.dropLine(l.At, "%w", err)
			}
		}
	}
	if x.silent = m.part(columnPeer).Done(); x.silent || !x.linked {
		x.linked = false
		return nil
	}
	if x.peer.guid, err = p.readGUID0x(m.part(columnPeer), "line dropped"); err != nil {
		return err
	}
	x.peer.node, x.peer.label = x.peer.guid, netDumpLabel(m.part(columnPeer+1))
	name := m.part(columnPeer + 3).Rest()
	if len(name) < 2 || name[0] != '"' || name[len(name)-1] != '"' {
		return p.dropLine(m.part(columnPeer+3).At, "want the description of the neighbour in quotes")
	}
	x.peer.name = string(name[1 : len(name)-1])
	return p.takeLID(m.part(columnPeer+2), &x.peer)
}

// netDumpLabel returns the label of a port, "" for none.
func netDumpLabel(l *Line) string {
	if text := l.Rest(); IsLabel(text) && string(text) != "N/A" {
		return string(text)
	}
	return ""
}

// netDumpEnds sets the number of the port at the other end of
// each row, and adds rows of adapters, which the file lacks.
func (p *parser) netDumpEnds(rows []listLine) ([]listLine, error) {
	type port struct {
		guid  fabric.GUID
		label string
	}
	switches, byLabel := make(map[fabric.GUID]bool), make(map[port][]int32, len(rows))
	for i := range rows {
		own := &rows[i].own
		switches[own.guid] = true
		byLabel[port{own.guid, own.label}] = append(byLabel[port{own.guid, own.label}], int32(i))
	}
	for i := range len(rows) {
		x := &rows[i]
		if !x.linked {
			continue
		}
		bus, tail, inBus := strings.Cut(x.peer.label, "/")
		isSwitch, lost := switches[x.peer.guid], error(nil)
		switch number := (&Line{Text: []byte(bus)}).decimal(); {
		case !isSwitch && inBus && number >= 0:
			lost = fmt.Errorf("port %s of a switch is at the other end here, but %s has no head: is the file cut short?", x.peer.label, x.peer.guid)
		case !isSwitch:
			if !inBus {
				tail = bus
			}
			x.peer.kind, x.peer.num = fabric.CA, 1
			number := Line{Text: []byte(tail[strings.LastIndexByte(tail, '/')+1:])}
			if n := number.decimal(); n > 1 && n <= int(fabric.MaxPortNum) {
				x.peer.guid, x.peer.num = 0, fabric.PortNum(n) // the GUID is of another port
			}
			y := *x
			y.own, y.peer, y.peer.bad = x.peer, x.own, ""
			x.peer.bad = "" // the adapter's row reports a bad LID
			rows = append(rows, y)
		default:
			x.peer.kind = fabric.Switch
			for _, j := range byLabel[port{x.peer.guid, x.peer.label}] {
				// If several ports have the label, take the one that leads back.
				y := &rows[j]
				if x.peer.num == 0 || y.peer.guid == x.own.guid && y.peer.label == x.own.label {
					x.peer.num = y.own.num
				}
			}
			if x.peer.num == 0 {
				lost = fmt.Errorf("port %q of switch %s is at the other end here, but no row of that switch has this label", x.peer.label, x.peer.guid)
			}
		}
		if lost == nil {
			continue
		}
		x.linked = false
		if err := p.mend(x.at, p.column(x.at), "link dropped", "%w", lost); err != nil {
			return nil, err
		}
	}
	return rows, nil
}
