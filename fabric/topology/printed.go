package topology

import (
	"bytes"

	"github.com/ibweave/ibweave/fabric"
)

// Lines exactly as ibnetdiscover prints them are nearly all of a text. They are
// read here without being split into words first. Each function returns the
// start of the next line, or 0 for a line that is anything else, of which it has
// changed nothing: readPort, readHeader and readOther then take it, and say what
// is wrong with it.

// printedNumber reads a decimal number of at most five digits at d[i:] that is
// followed by something; next is 0 when there is none.
func printedNumber(d []byte, i int) (n, next int) {
	from := i
	for ; i < len(d) && d[i]-'0' <= 9; i++ {
		n = n*10 + int(d[i]-'0')
	}
	// Leading zeros mean something else to ibsim.
	if i == from || i == len(d) || i-from > 5 || d[from] == '0' && i-from > 1 {
		return 0, 0
	}
	return n, i
}

// printedPort is [17] at d[i:].
func printedPort(d []byte, i int) (n, next int) {
	if i+3 >= len(d) || d[i] != '[' {
		return 0, 0
	}
	if n, next = printedNumber(d, i+1); next == 0 || d[next] != ']' || next+1 == len(d) || n > int(fabric.MaxPortNum) {
		return 0, 0
	}
	return n, next + 1
}

// printedGUID is (2c90000000003) and a blank at d[i:].
func printedGUID(d []byte, i int) (g uint64, next int) {
	v, n := hexadecimal(d, i+1)
	i += 1 + n
	if n < 1 || n > 16 || i+2 >= len(d) || d[i] != ')' || d[i+1] != ' ' {
		return 0, 0
	}
	return v, i + 2
}

// beginsWith is whether s stands at d[i:].
func beginsWith(d []byte, i int, s string) bool {
	return len(d)-i >= len(s) && string(d[i:i+len(s)]) == s
}

// printedPortLine reads a line of a port, whose first byte is d[i].
func (p *parser) printedPortLine(i int) int {
	if p.current < 0 {
		return 0
	}
	d := p.data
	n := &p.nodes[p.current]
	num, i := printedPort(d, i)
	if i == 0 || num < 1 || num > int(n.ports) || p.slots[n.base+num] != 0 {
		return 0
	}
	var guid, peerGUID uint64
	own := n.kind != fabric.Switch
	if own {
		if d[i] != '(' {
			return 0
		}
		if guid, i = printedGUID(d, i); i == 0 {
			return 0
		}
	}
	if !beginsWith(d, i, "\t\"") {
		return 0
	}
	i += 2
	if len(d)-i < len(`S-0002c90000000001"[1] `) || d[i+1] != '-' || d[i] != 'S' && d[i] != 'H' && d[i] != 'R' {
		return 0
	}
	kind := d[i]
	id, ok := fabric.ReadDigits(d[i+2:])
	if !ok || d[i+18] != '"' {
		return 0
	}
	peerNum, i := printedPort(d, i+19)
	if i == 0 || peerNum < 1 {
		return 0
	}
	if kind != 'S' {
		if own && d[i] == ' ' {
			i++
		}
		if i >= len(d) || d[i] != '(' {
			return 0
		}
		if peerGUID, i = printedGUID(d, i); i == 0 {
			return 0
		}
	}
	if !beginsWith(d, i, "\t\t# ") {
		return 0
	}
	i += 4
	lid, lmc := 0, 0
	if own {
		if !beginsWith(d, i, "lid ") {
			return 0
		}
		if lid, i = printedNumber(d, i+4); i == 0 || lid > int(fabric.MaxUnicastLID) || !beginsWith(d, i, " lmc ") {
			return 0
		}
		if lmc, i = printedNumber(d, i+5); i == 0 || lmc > fabric.MaxLMC || d[i] != ' ' {
			return 0
		}
		i++
	}
	if i >= len(d) || d[i] != '"' {
		return 0
	}
	i++
	// A description that has quotes is not read here, since no lid follows.
	k := bytes.IndexByte(d[i:], '"')
	if i += k + 1; k < 0 || bytes.IndexByte(d[i-k-1:i], '\n') >= 0 || !beginsWith(d, i, " lid ") {
		return 0
	}
	peerLID, i := printedNumber(d, i+5)
	if i == 0 || peerLID > int(fabric.MaxUnicastLID) || d[i] != ' ' {
		return 0
	}
	i++
	from := i
	for i < len(d) && d[i] > ' ' && d[i] != '"' && i-from < 8 {
		i++
	}
	if i == len(d) || d[i] != '\n' {
		return 0
	}
	link, ok := linkOf(d[from:i])
	if !ok || link.Width == 0 || link.Speed == fabric.SpeedUnknown {
		return 0
	}
	p.ports = append(p.ports, portLine{
		at: p.line, node: p.current, back: -1, num: fabric.PortNum(num), guid: fabric.GUID(guid), lid: fabric.LID(lid), lmc: uint8(lmc),
		peerID: uint64(id), peerKind: kind, peerNum: fabric.PortNum(peerNum), peerGUID: fabric.GUID(peerGUID), peerLID: fabric.LID(peerLID), link: link,
	})
	p.slots[n.base+num] = int32(len(p.ports))
	return i + 1
}

// printedHex reads 0x, at most digits hexadecimal digits and the byte end at
// d[i:], as behind vendid=.
func printedHex(d []byte, i, digits int, end byte) (v uint64, next int) {
	if !beginsWith(d, i, "0x") {
		return 0, 0
	}
	v, n := hexadecimal(d, i+2)
	i += 2 + n
	if n < 1 || n > digits || i >= len(d) || d[i] != end {
		return 0, 0
	}
	return v, i + 1
}

// printedAttribute reads a line that precedes the header of a node and whose
// first byte is d[i].
func (p *parser) printedAttribute(i int) (next int) {
	d := p.data
	var v uint64
	switch {
	case d[i] == 'v' && beginsWith(d, i, "vendid="):
		if v, next = printedHex(d, i+len("vendid="), 6, '\n'); next > 0 {
			p.vendor = uint32(v)
		}
	case d[i] == 'd' && beginsWith(d, i, "devid="):
		if v, next = printedHex(d, i+len("devid="), 4, '\n'); next > 0 {
			p.device = uint16(v)
		}
	case beginsWith(d, i, "sysimgguid="):
		if v, next = printedHex(d, i+len("sysimgguid="), 16, '\n'); next > 0 {
			p.system = fabric.GUID(v)
		}
	case d[i] == 'c' && beginsWith(d, i, "caguid="):
		if v, next = printedHex(d, i+len("caguid="), 16, '\n'); next > 0 {
			p.guids[fabric.CA] = guidCounter{next: fabric.GUID(v), base: fabric.GUID(v), stated: true}
		}
	}
	if next > 0 {
		p.noStanza()
	}
	return next
}

// printedCA reads the line that the stanza of a CA begins with, after the line
// with its GUID; its first byte is d[i]:
//
//	Ca	1 "H-0002c90000000002"		# "host 1"
func (p *parser) printedCA(i int) int {
	d := p.data
	c := &p.guids[fabric.CA]
	if !beginsWith(d, i, "Ca\t") || !c.stated || c.port != 0 {
		return 0
	}
	ports, i := printedNumber(d, i+3)
	if i == 0 || ports < 1 || ports > int(fabric.MaxPortNum) || !beginsWith(d, i, " \"H-") {
		return 0
	}
	guid, ok := fabric.ReadDigits(d[i+4:])
	if !ok || guid != c.next || guid == 0 || guid > 1<<63 || !beginsWith(d, i+20, "\"\t\t# \"") {
		return 0
	}
	i += 26
	k := bytes.IndexByte(d[i:], '"')
	if k < 0 || i+k+1 >= len(d) || d[i+k+1] != '\n' || bytes.IndexByte(d[i:i+k], '\n') >= 0 || p.byGUID.Find(c.next) >= 0 {
		return 0
	}
	n := node{
		header: p.line, id: key{value: uint64(guid), kind: 'H'}, guid: c.next, kind: fabric.CA, ports: fabric.PortNum(ports), base: len(p.slots),
		vendor: p.vendor, device: p.device, system: p.system, descFrom: int32(len(p.desc)), descTo: int32(len(p.desc) + k),
	}
	p.desc = append(p.desc, d[i:i+k]...)
	p.vendor, p.system = 0, 0
	c.next += fabric.GUID(1 + ports)
	c.stated = false
	p.enter(&n)
	return i + k + 2
}

// enter adds a node, to which the port lines that follow belong.
func (p *parser) enter(n *node) {
	p.current, p.dropped = int32(len(p.nodes)), false
	if n.id.kind == 0 {
		p.nameNode[n.id.value] = p.current
	}
	p.byGUID.Add(n.guid, p.current)
	p.nodes = append(p.nodes, *n)
	for range int(n.ports) + 1 {
		p.slots = append(p.slots, 0)
	}
}
