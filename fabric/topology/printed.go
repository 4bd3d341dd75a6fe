package topology

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/ibweave/ibweave/fabric"
)

// Lines exactly as ibnetdiscover prints them are nearly all of a text. They are
// read here by the words of memory that they are made of, without being split
// into words of text first. Functions for a line return the start of the next one, or 0
// for a line that is anything else; those for several lines return where the first
// other one begins. Of that they have changed nothing: readPort, readHeader and
// readOther then take it, and say what is wrong with it.

// printedRoom is more than the bytes of a line in front of its description, so
// that whole words of memory may be read there.
const printedRoom = 128

// ones has 1 in each byte of a word.
const ones = 0x0101010101010101

// wordOf is the eight bytes at d[i:], the first being the lowest.
func wordOf(d []byte, i int) uint64 { return binary.LittleEndian.Uint64(d[i:]) }

// same is 0x80 in the lowest byte of w that is c, and perhaps in some above it.
func same(w uint64, c byte) uint64 {
	w ^= uint64(c) * ones
	return (w - ones) &^ w & (128 * ones)
}

// beginsWith is whether s stands at d[i:].
func beginsWith(d []byte, i int, s string) bool {
	return len(d)-i >= len(s) && string(d[i:i+len(s)]) == s
}

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

// printedPort is [17] at d[i:], which has 5 bytes; next is 0 when there is no
// such number of a port there.
func printedPort(d []byte, i int) (n, next int) {
	s := (*[5]byte)(d[i:])
	if s[0] != '[' {
		return 0, 0
	}
	a, b, c := int(s[1]-'0'), int(s[2]-'0'), int(s[3]-'0')
	switch {
	case a < 1 || a > 9:
	case s[2] == ']':
		return a, i + 3
	case b > 9:
	case s[3] == ']':
		return 10*a + b, i + 4
	case c <= 9 && s[4] == ']' && 100*a+10*b+c <= int(fabric.MaxPortNum):
		return 100*a + 10*b + c, i + 5
	}
	return 0, 0
}

// hexMemo is the last 16 digits that were read, in halves: the first eight of one
// GUID are mostly those of the next, and a node has several names of one GUID.
type hexMemo struct {
	text, value [2]uint64
}

// zeros is eight digits.
const zeros = '0' * ones

// noHex is a hexMemo to begin with.
var noHex = hexMemo{text: [2]uint64{zeros, zeros}}

// read reads 16 digits, the first eight and the others as words.
func (m *hexMemo) read(first, second uint64) (v uint64, ok bool) {
	if first != m.text[0] {
		v, ok := fabric.ReadWord(first)
		if !ok {
			return 0, false
		}
		m.text[0], m.value[0] = first, v
	}
	if second != m.text[1] {
		v, ok := fabric.ReadWord(second)
		if !ok {
			return 0, false
		}
		m.text[1], m.value[1] = second, v
	}
	return m.value[0]<<32 | m.value[1], true
}

// printedDigits reads 1 to 16 hexadecimal digits and the byte end, which is no
// digit, at d[i:]; d has 17 bytes there. next is 0 when that is not what is there.
func (m *hexMemo) printedDigits(d []byte, i int, end byte) (v uint64, next int) {
	low := wordOf(d, i) // the last eight digits
	high := uint64(zeros)
	n := 0
	switch mark := same(low, end); {
	case mark != 0:
		if n = bits.TrailingZeros64(mark) >> 3; n == 0 {
			return 0, 0
		}
		low = low<<(64-8*n) | zeros>>(8*n)
	default:
		n = 8
		if d[i+16] == end {
			n = 16
		}
		if mark = same(wordOf(d, i+8), end); mark != 0 {
			n = 8 + bits.TrailingZeros64(mark)>>3
		} else if n == 8 {
			return 0, 0
		}
		high = low<<(8*(16-n)) | uint64(zeros)>>(8*(n-8))
		low = wordOf(d, i+n-8)
	}
	v, ok := m.read(high, low)
	if !ok {
		return 0, 0
	}
	return v, i + n + 1
}

// printedEnd is how a line of a port ends: the width and speed of its link.
type printedEnd struct {
	word uint64 // the last 7 bytes of a line, " 4xNDR\n"
	link fabric.Link
}

// printedLink reads the width and speed that a line ends with, which is d[i:end+1]
// and ends in LF; at is where the blank in front of them is, 0 when there is no such
// thing or the line has other words behind its description.
func (p *parser) printedLink(d []byte, i, end int) (link fabric.Link, at int) {
	w := wordOf(d, end-7) >> 8
	if w == p.end.word {
		return p.end.link, end - 6
	}
	at = end - 1
	for at > i && end-at < 8 && d[at] > ' ' && d[at] != '"' {
		at--
	}
	link, ok := linkOf(d[at+1 : end])
	if !ok || d[at] != ' ' || link.Width == 0 || link.Speed == fabric.SpeedUnknown {
		return link, 0
	}
	if end-at == 6 {
		p.end = printedEnd{w, link}
	}
	return link, at
}

// numberBefore reads the decimal number that ends in front of d[end], where d has
// eight bytes before it; from is its first digit, 0 when there is none, or more
// than five, or the first of several is 0.
func numberBefore(d []byte, end int) (n uint64, from int) {
	w := wordOf(d, end-8) ^ '0'*ones
	digits := bits.LeadingZeros64(((w&(127*ones))+118*ones|w)&(128*ones)) >> 3
	if digits < 1 || digits > 5 || digits > 1 && d[end-digits] == '0' {
		return 0, 0
	}
	w = w >> (64 - 8*digits) << (64 - 8*digits)
	// Pairs of digits, then of those, the first being the highest.
	w = w * (10<<8 + 1) >> 8 & 0x00ff00ff00ff00ff
	w = w * (100<<16 + 1) >> 16 & 0x0000ffff0000ffff
	return w * (10000<<32 + 1) >> 32, end - digits
}

// printedPorts reads lines of ports, the first of which is p.line and begins at
// d[i]. It returns where the first line begins that is not like that, which is
// p.line then; i when that is the first.
func (p *parser) printedPorts(i int) int {
	if p.current < 0 {
		return i
	}
	d := p.data
	n := &p.nodes[p.current]
	ports := int(n.ports)
	slots := p.slots[n.base : n.base+ports+1]
	own := n.kind != fabric.Switch
	for len(d)-i >= printedRoom && d[i] == '[' {
		num, j := printedPort(d, i)
		if j == 0 || num > ports || slots[num] != 0 {
			break
		}
		var guid, peerGUID uint64
		if own {
			if d[j] != '(' {
				break
			}
			if guid, j = p.hex.printedDigits(d, j+1, ')'); j == 0 || d[j] != ' ' {
				break
			}
			j++
		}
		// \t"S-0002c90000000001"[1]
		kind := d[j+2]
		if d[j] != '\t' || d[j+1] != '"' || d[j+3] != '-' || d[j+20] != '"' || kind != 'S' && kind != 'H' && kind != 'R' {
			break
		}
		id, ok := p.hex.read(wordOf(d, j+4), wordOf(d, j+12))
		if !ok {
			break
		}
		peerNum, j := printedPort(d, j+21)
		if j == 0 {
			break
		}
		if kind != 'S' {
			if own && d[j] == ' ' {
				j++
			}
			if d[j] != '(' {
				break
			}
			if peerGUID, j = p.hex.printedDigits(d, j+1, ')'); j == 0 || d[j] != ' ' {
				break
			}
			j++
		}
		if string(d[j:j+4]) != "\t\t# " {
			break
		}
		j += 4
		lid, lmc := 0, 0
		if own {
			if string(d[j:j+4]) != "lid " {
				break
			}
			if lid, j = printedNumber(d, j+4); j == 0 || lid > int(fabric.MaxUnicastLID) || !beginsWith(d, j, " lmc ") {
				break
			}
			lmc = int(d[j+5] - '0')
			if lmc > fabric.MaxLMC || d[j+6] != ' ' {
				break
			}
			j += 7
		}
		if d[j] != '"' {
			break
		}
		j++
		// The description ends at the last quote of the line, and behind that is
		// what the line ends with: " lid 7 4xNDR.
		const shortest = len(`" lid 7 4xSDR`)
		k := bytes.IndexByte(d[j:], '\n')
		if k < shortest {
			break
		}
		k += j
		link, at := p.printedLink(d, j, k)
		if at < j+8 {
			break
		}
		peerLID, at := numberBefore(d, at)
		at -= len(`" lid `)
		if at < j || peerLID > uint64(fabric.MaxUnicastLID) || string(d[at:at+6]) != `" lid ` {
			break
		}

		if len(p.ports) == cap(p.ports) {
			p.ports = append(p.ports, portLine{})[:len(p.ports)]
		}
		p.ports = p.ports[:len(p.ports)+1]
		l := &p.ports[len(p.ports)-1]
		l.at, l.node, l.back = p.line, p.current, -1
		l.num, l.guid, l.lid, l.lmc = fabric.PortNum(num), fabric.GUID(guid), fabric.LID(lid), uint8(lmc)
		l.peerID, l.peerKind, l.peerNum, l.peerGUID, l.peerLID = id, kind, fabric.PortNum(peerNum), fabric.GUID(peerGUID), fabric.LID(peerLID)
		l.link = link
		slots[num] = int32(len(p.ports))
		i = k + 1
		p.endLine(i)
	}
	return i
}

// printedHex reads 0x, at most digits hexadecimal digits and LF at d[i:], as
// behind vendid=.
func (m *hexMemo) printedHex(d []byte, i, digits int) (v uint64, next int) {
	if d[i] != '0' || d[i+1] != 'x' {
		return 0, 0
	}
	if v, next = m.printedDigits(d, i+2, '\n'); next > i+2+digits+1 {
		return 0, 0
	}
	return v, next
}

// printedMake is the two lines that nodes of one make begin with.
type printedMake struct {
	text   []byte // vendid=0x2c9, devid=0xd2f2
	vendor uint32
	device uint16
}

// printedAttributes reads lines that precede the header of a node, the first of
// which is p.line and begins at d[i]. It returns where the first line begins that is
// not like that, as printedPorts.
func (p *parser) printedAttributes(i int) int {
	d := p.data
	made := -1 // where a vendid line begins that a devid line may follow
	for len(d)-i >= printedRoom {
		var v, port uint64
		next, from := 0, made
		made = -1
		switch {
		case d[i] == 'v' && bytes.HasPrefix(d[i:], p.made.text) && len(p.made.text) > 0:
			p.vendor, p.device = p.made.vendor, p.made.device
			p.line.num++
			next = i + len(p.made.text)
		case string(d[i:i+7]) == "vendid=":
			if v, next = p.hex.printedHex(d, i+len("vendid="), 6); next > 0 {
				p.vendor = uint32(v)
				made = i
			}
		case string(d[i:i+6]) == "devid=":
			if v, next = p.hex.printedHex(d, i+len("devid="), 4); next > 0 {
				p.device = uint16(v)
				if from >= 0 {
					p.made = printedMake{d[from:next], p.vendor, p.device}
				}
			}
		case string(d[i:i+11]) == "sysimgguid=":
			if v, next = p.hex.printedHex(d, i+len("sysimgguid="), 16); next > 0 {
				p.system = fabric.GUID(v)
			}
		case string(d[i:i+7]) == "caguid=":
			if v, next = p.hex.printedHex(d, i+len("caguid="), 16); next > 0 {
				p.guids[fabric.CA] = guidCounter{next: fabric.GUID(v), base: fabric.GUID(v), stated: true}
			}
		case string(d[i:i+13]) == "switchguid=0x":
			if v, next = p.hex.printedDigits(d, i+len("switchguid=0x"), '('); next == 0 {
				break
			}
			if port, next = p.hex.printedDigits(d, next, ')'); next == 0 || d[next] != '\n' {
				next = 0
				break
			}
			next++
			p.guids[fabric.Switch] = guidCounter{next: fabric.GUID(v), base: fabric.GUID(v), port: fabric.GUID(port), stated: true}
		}
		if next == 0 {
			break
		}
		p.noStanza()
		i = next
		p.endLine(i)
	}
	return i
}

// printedHeader reads the line that the stanza of a CA or switch begins with, after
// the line with its GUID; its first byte is d[i]:
//
//	Ca	1 "H-0002c90000000002"		# "host 1"
//	Switch	36 "S-0002c90000000001"		# "leaf 1" enhanced port 0 lid 7 lmc 0
func (p *parser) printedHeader(i int) int {
	d := p.data
	if len(d)-i < printedRoom {
		return 0
	}
	kind, letter := fabric.CA, byte('H')
	switch {
	case string(d[i:i+3]) == "Ca\t":
		i += 3
	case string(d[i:i+7]) == "Switch\t":
		kind, letter = fabric.Switch, 'S'
		i += 7
	default:
		return 0
	}
	c := &p.guids[kind]
	ports, i := printedNumber(d, i)
	if !c.stated || i == 0 || ports < 1 || ports > int(fabric.MaxPortNum) || string(d[i:i+2]) != ` "` || d[i+2] != letter || d[i+3] != '-' {
		return 0
	}
	id, ok := p.hex.read(wordOf(d, i+4), wordOf(d, i+12))
	guid := fabric.GUID(id)
	if !ok || guid != c.next || guid == 0 || guid > 1<<63 || string(d[i+20:i+26]) != "\"\t\t# \"" {
		return 0
	}
	i += 26
	line := bytes.IndexByte(d[i:], '\n')
	end := i + line // of the description
	n := node{
		header: p.line, id: key{value: id, kind: letter}, guid: guid, portGUID: c.port, kind: kind, ports: fabric.PortNum(ports), base: len(p.slots),
		vendor: p.vendor, device: p.device, system: p.system,
	}
	// The description ends at the last quote of the line. What stands behind it in
	// that of a CA is not read, as nothing does.
	if kind == fabric.Switch {
		const shortest = len(`" base port 0 lid 7 lmc 0`)
		if line < shortest {
			return 0
		}
		n.lmc = d[end-1] - '0'
		lid, from := numberBefore(d, end-len(" lmc 0"))
		if n.lmc > fabric.MaxLMC || from < i+5 || string(d[end-6:end-1]) != " lmc " || lid > uint64(fabric.MaxUnicastLID) || string(d[from-5:from]) != " lid " {
			return 0
		}
		n.lid = fabric.LID(lid)
		switch from -= len(" lid "); {
		case bytes.HasSuffix(d[i:from], []byte(`" base port 0`)):
			end = from - len(` base port 0`)
		case bytes.HasSuffix(d[i:from], []byte(`" enhanced port 0`)):
			n.enhanced0 = true
			end = from - len(` enhanced port 0`)
		default:
			return 0
		}
	}
	end--
	if line < 1 || d[end] != '"' || p.byGUID.Add(guid, int32(len(p.nodes))) >= 0 {
		return 0
	}
	n.descFrom = int32(len(p.desc))
	p.desc = append(p.desc, d[i:end]...)
	n.descTo = int32(len(p.desc))
	p.vendor, p.system = 0, 0
	c.next++
	if kind != fabric.Switch {
		c.next += fabric.GUID(ports)
	}
	c.stated, c.port = false, 0
	p.enter(&n)
	return i + line + 1
}

// enter adds a node, to which the port lines that follow belong.
func (p *parser) enter(n *node) {
	p.current, p.dropped = int32(len(p.nodes)), false
	if n.id.kind == 0 {
		p.nameNode[n.id.value] = p.current
	}
	p.nodes = append(p.nodes, *n)
	for range int(n.ports) + 1 {
		p.slots = append(p.slots, 0)
	}
}
