// Package topology reads and writes topology text: what ibnetdiscover prints,
// with or without -p, the short form that people write by hand for ibsim, what iblinkinfo
// prints, the list of links of OpenSM, and the links of UFM. It makes no promise to other modules.
//
// Sources of the format of ibnetdiscover: infiniband-diags/ibnetdiscover.c of rdma-core
// (out_switch, out_ca, out_switch_port, out_ca_port, dump_ports_report) for
// what is printed, ibsim/sim_net.c of ibsim (parse_netconf and below) for what
// is accepted. Comments name quirks where the code meets them.
//
// A cable is written twice, once at each of its ends, and both must agree.
package topology

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// Options tell how a text is read.
type Options struct {
	// Lenient drops broken text and lists it, instead of refusing all.
	Lenient bool
	// Strict refuses all that the tool itself does not print: foreign lines, lost
	// tabs, other ends of lines, LIDs that no port can have. It overrides Lenient.
	Strict bool
	// TwiceLIDs drops LIDs that an earlier port has, and makes
	// Problems of them instead of an error.
	TwiceLIDs bool
	// Lines, if not nil, gets the lines of nodes and ports in the text.
	Lines *Lines
}

// Lines has the lines, from 1, of nodes and ports in a text: the header
// of a node, or in a list the first line with it, and the line of a port.
type Lines struct {
	Nodes map[fabric.GUID]int
	Ports map[NodePort]int
}

// NodePort is a port by the GUID of its node.
type NodePort struct {
	Node fabric.GUID
	Port fabric.PortNum
}

// fillLines sets the lines of nodes and ports.
func (p *parser) fillLines(to *Lines) {
	to.Nodes, to.Ports = make(map[fabric.GUID]int, len(p.nodes)), make(map[NodePort]int, len(p.ports))
	for i := range p.nodes {
		to.Nodes[p.nodes[i].guid] = int(p.nodes[i].header.num)
	}
	for i := range p.ports {
		l := &p.ports[i]
		to.Ports[NodePort{p.nodes[l.node].guid, l.num}] = int(l.at.num)
	}
}

// Parse reads topology text; name is for messages. The form is recognized by
// its lines. Nodes get their place in the text as Node.Order.
//
// Text is read as terminals and editors leave it: with a byte order mark, with CRLF or
// CR, with blanks for tabs or none, with colours, wrapped at the last column, with foreign
// lines before the first stanza, behind the last and between them, and with errors of the
// sweep amid lines. ibdiagnet's own ibnetdiscover text has the labels of ports.
//
// Errors are *fabric.ParseError. A read that is not lenient stops at the first line that
// is wrong by itself, and after that at the first that contradicts another. A
// lenient one only fails where there is no node at all; the fabric that it
// returns can be written and then read strictly. Problems are sorted by line.
//
// GUIDs come from the switchguid, caguid and rtguid lines, else from ids like
// S-0002c90000000001, else they are those that ibsim assigns: CAs from
// 0x100000, each taking its number of ports + 1, switches from 0x200000. Port
// lists do not say which node a CA port is on: its node GUID is taken as the
// port GUID less the port number, as in ibsim, which keeps the ports of a CA
// together. Where that contradicts another line of the list, each CA port is a
// node of its own, with the port's GUID. Port lists lack vendor, device, LMC and
// the kind of port 0, and a node has as many ports as are listed.
//
// What iblinkinfo prints and the links of UFM lack the same, and more: see Form. A subnet list
// has the GUIDs of nodes. If two of its lines describe a node differently, the first value that is
// not 0 counts, and there is a Contradiction. Links that are down are left out.
func Parse(name string, data []byte, opt Options) (*fabric.Fabric, []fabric.Problem, error) {
	p := newParser(name, data)
	p.lenient, p.strict, p.twiceLIDs = opt.Lenient && !opt.Strict, opt.Strict, opt.TwiceLIDs
	if opt.Strict {
		if err := checkPlain(name, data); err != nil {
			return nil, nil, err
		}
	}
	if p.data = Plain(data); !opt.Strict {
		p.unwrap()
		p.cutMessages()
	}
	if err := p.read(); err != nil {
		return nil, nil, p.hinted(err)
	}
	f, err := p.resolve()
	if err != nil {
		return nil, nil, p.hinted(err)
	}
	if opt.Lines != nil {
		p.fillLines(opt.Lines)
	}
	slices.SortStableFunc(p.problems, func(a, b fabric.Problem) int { return cmp.Compare(a.Line, b.Line) })
	return f, p.problems, nil
}

// ParseWritten parses what Append and AppendLabelled make.
// A program that reads nothing else links no other form.
func ParseWritten(name string, data []byte) (*fabric.Fabric, error) {
	p := newParser(name, data)
	p.form = Stanzas
	if err := p.checkRead(p.readStanzas()); err != nil {
		return nil, err
	}
	return p.resolve()
}

func newParser(name string, data []byte) *parser {
	return &parser{file: name, data: data, byGUID: map[fabric.GUID]int32{}, names: map[string]int32{}}
}

// parser is the state of one Parse. It first reads the lines one by one, and then
// combines them (see resolve).
type parser struct {
	file      string
	data      []byte // with LF alone
	lenient   bool
	strict    bool
	twiceLIDs bool // see Options
	form      Form
	problems  []fabric.Problem

	line    place     // being read
	pending []foreign // foreign lines since the last line of topology text
	noise   []foreign // other foreign lines

	nodes    []node
	ports    []portLine
	slots    []int32               // by node.base + port number: index in ports + 1, or 0
	byGUID   map[fabric.GUID]int32 // index in nodes
	names    map[string]int32      // ids that are not made of a GUID, numbered
	nameNode []int32               // by that number: index in nodes, or -1

	// State for the next lines of stanzas.
	current int32 // node that port lines belong to, -1 for none
	dropped bool  // no current node, since its header was dropped
	begun   bool  // a line of the next stanza is there, but not its header
	guids   [4]guidCounter
	vendor  uint32
	device  uint16
	system  fabric.GUID
	masks   linkMasks // by width, speed and extspeed lines

	labels   []string         // of ports, each once; labels[0] is ""
	labelNum map[string]int32 // index in labels
	badLIDs  []badLID
}

// place is a line of the text.
type place struct {
	off int   // of its first byte
	num int32 // 1-based
}

// key identifies a node as the text does: by an id like S-0002c90000000001, or
// by a name.
type key struct {
	value uint64          // GUID, or number of the name
	kind  fabric.NodeType // 0 for a name
}

// lids has the LIDs of an end port as the text gives them.
type lids struct {
	lid, heard fabric.LID // by its own line, and by those of its neighbours; 0 for none
	lmc        uint8
	disagree   bool // its neighbours' lines disagree
}

type node struct {
	id        key
	guid      fabric.GUID
	portGUID  fabric.GUID // of switch port 0, 0 if not stated
	system    fabric.GUID
	header    place
	desc      string
	base      int // index of its first slot
	vendor    uint32
	device    uint16
	lids           // of switch port 0
	odd       bool // a Problem about another description of it exists
	kind      fabric.NodeType
	ports     fabric.PortNum
	enhanced0 bool
}

// portLine is one end of a cable.
type portLine struct {
	at       place
	peer     key         // the node at the other end
	guid     fabric.GUID // of this port, 0 if not stated
	peerGUID fabric.GUID // of the peer port, 0 if not stated
	node     int32
	back     int32 // index of the line of the other end, -1 if dropped
	lids
	peerLID fabric.LID
	label   int32 // index in parser.labels
	num     fabric.PortNum
	peerNum fabric.PortNum
	link    fabric.Link
}

// errDropped is what fail returns in a lenient read; the loop over lines then goes on.
var errDropped = errors.New("dropped")

// textOf returns the line at a place.
func (p *parser) textOf(at place) []byte {
	line, _ := cutLine(p.data[at.off:])
	return line
}

// read reads all lines.
func (p *parser) read() error {
	var err error
	begin := 0
	switch p.form, begin = recognize(p.data, len(p.data)); p.form {
	case PortList:
		err = p.readList()
	case LinkInfo:
		err = p.readLinkInfo()
	case UFMLinks:
		err = p.readUFM(begin)
	case SubnetList:
		err = p.readSubnetList()
	case NetDump:
		err = p.readNetDump()
	case NodeList:
		err = &fabric.ParseError{File: p.file, Err: errors.New("a list of nodes as ibswitches or ibhosts print it has no cables: want what ibnetdiscover prints; the list can give names, by --node-name-map")}
	default:
		p.form = Stanzas
		err = p.readStanzas()
	}
	return p.checkRead(err)
}

// checkRead returns the error of reading lines, or one about all of them.
func (p *parser) checkRead(err error) error {
	if err != nil {
		return err
	}
	if err := p.settleNoise(false); err != nil {
		return err
	}
	slices.SortStableFunc(p.noise, func(a, b foreign) int { return cmp.Compare(a.at.num, b.at.num) })
	if len(p.nodes) == 0 {
		if len(p.noise) > 0 && !p.lenient {
			return p.refusal(p.noise[0].at, 0, notTopology)
		}
		return &fabric.ParseError{File: p.file, Err: errors.New("no node in this text: want what ibnetdiscover prints, with lines such as Switch 36 \"S-0002c90000000001\"")}
	}
	if len(p.ports) > math.MaxInt32 || len(p.slots) > math.MaxInt32 {
		return &fabric.ParseError{File: p.file, Err: fabric.ErrTooLarge}
	}
	return nil
}

// eachLine calls read for each line that is neither empty nor
// a comment, from its first word on.
func (p *parser) eachLine(read func(*Line) error) error {
	return p.eachLineIn(place{}, len(p.data), read)
}

// eachLineIn is eachLine from a place to an offset; from.num is the number of the line before.
func (p *parser) eachLineIn(from place, to int, read func(*Line) error) error {
	var l Line
	for p.line = from; from.off < to; {
		from.num++
		p.line = from
		l.Text, l.At = p.data[from.off:to], 0
		l.Text, _ = cutLine(l.Text)
		from.off += len(l.Text) + 1
		l.SkipBlanks()
		if l.Done() || l.Is('#') {
			continue
		}
		if err := read(&l); err != nil && err != errDropped {
			return err
		}
	}
	return nil
}
