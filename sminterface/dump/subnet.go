package dump

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
)

// word is what stands for a value in a record.
type word[T comparable] struct {
	text string
	is   T
}

// textOf is the first word for a value, or the first of all.
func textOf[T comparable](words []word[T], v T) string {
	return words[max(0, slices.IndexFunc(words, func(w word[T]) bool { return w.is == v }))].text
}

// valueOf returns the value of a word.
func valueOf[T comparable](words []word[T], text []byte) (v T, known bool) {
	i := slices.IndexFunc(words, func(w word[T]) bool { return w.text == string(text) })
	if i < 0 {
		return v, false
	}
	return words[i].is, true
}

// linkSpeeds are the values of SPD. OpenSM 3.3.23 knows them up to 50 and
// prints ?? for faster links; 100 and 200 are what ibdiagnet prints.
var linkSpeeds = []word[fabric.Speed]{
	{"??", fabric.SpeedUnknown},
	{"2.5", fabric.SDR},
	{"5", fabric.DDR},
	{"10", fabric.QDR},
	{"FDR10", fabric.FDR10},
	{"14", fabric.FDR},
	{"25", fabric.EDR},
	{"50", fabric.HDR},
	{"100", fabric.NDR},
	{"200", fabric.XDR},
	{"EDR20", fabric.SpeedUnknown}, // ibdiagnet's, of one vendor
	{"UNKNOWN", fabric.SpeedUnknown},
}

// linkWidths are the values of PHY. OpenSM 3.3.23 prints ?? for 2x.
var linkWidths = []word[uint8]{{"??", 0}, {"1x", 1}, {"2x", 2}, {"4x", 4}, {"8x", 8}, {"12x", 12}, {"UNKNOWN", 0}}

// nodeTypes are how records name the types; RTR is ibdiagnet's.
var nodeTypes = []word[fabric.NodeType]{{"SW", fabric.Switch}, {"CA", fabric.CA}, {"Rt", fabric.Router}, {"RTR", fabric.Router}}

// revision is what every record has for Rev: NodeInfo's Revision, which the
// fabric does not keep, as ibsim answers it.
const revision = "000000A1"

// WriteSubnetList writes opensm-subnet.lst, as osm_dump.c does: a line for
// each port with a cable, with the port and its neighbour. The two records of
// a line differ: the second has eight digits for VenID, and in DevID OpenSM
// shifts the device ID up by 16 bits.
//
// Where the fabric knows no width or speed, and for 2x links, OpenSM's ?? is
// printed; NDR and XDR links have ibdiagnet's 100 and 200. All links are
// active. Rev is constant. FDR10 is printed for both ends; OpenSM sees it
// only on ports of devices that it knows to have it. Records of the master subnet manager's node
// lack OpenSM's mark -SM. The only errors are those of w.
func WriteSubnetList(w io.Writer, f *fabric.Fabric) error {
	nodes := make([]fabric.NodeID, f.NumNodes())
	for n := range nodes {
		nodes[n] = fabric.NodeID(n)
	}
	inOpenSMOrder(f, nodes)
	return writeBatches(w, nodes, func(b []byte, n fabric.NodeID) []byte {
		for p := fabric.PortNum(1); p <= f.Node(n).NumPorts; p++ {
			port := f.Port(n, p)
			peer := f.Peer(port)
			if peer == fabric.NoPort {
				continue
			}
			link := f.Link(port)
			width := link.Width
			if width == 2 { // as OpenSM has it
				width = 0
			}
			b = appendRecord(b, f, port, false)
			b = append(b, ' ')
			b = appendRecord(b, f, peer, true)
			b = append(append(b, " PHY="...), textOf(linkWidths, width)...)
			b = append(append(b, " LOG=ACT SPD="...), textOf(linkSpeeds, link.Speed)...)
			b = append(b, '\n')
		}
		return b
	})
}

// appendRecord appends what is between braces of a port; second says that it
// is the neighbour's.
func appendRecord(b []byte, f *fabric.Fabric, p fabric.PortID, second bool) []byte {
	n := f.Owner(p)
	node := f.Node(n)
	end := p // the port that has the GUID and the LID
	if f.IsSwitch(n) {
		end = f.PortBase(n)
	}
	b = append(append(b, "{ "...), textOf(nodeTypes, node.Type)...)
	b = appendHex(append(b, " Ports:"...), uint64(node.NumPorts), 2, upperHex)
	b = node.SystemGUID.AppendDigits(append(b, " SystemGUID:"...))
	b = node.GUID.AppendDigits(append(b, " NodeGUID:"...))
	b = f.PortGUID(end).AppendDigits(append(b, " PortGUID:"...))
	vendorDigits, device := 6, uint64(node.DeviceID)
	if second {
		vendorDigits, device = 8, device<<16
	}
	b = appendHex(append(b, " VenID:"...), uint64(node.VendorID), vendorDigits, upperHex)
	b = appendHex(append(b, " DevID:"...), device, 4, upperHex)
	b = append(b, " Rev:"+revision+" {"...)
	b = appendDescription(b, node.Description)
	b = appendHex(append(b, "} LID:"...), uint64(f.LID(end)), 4, upperHex)
	b = appendHex(append(b, " PN:"...), uint64(f.Num(p)), 2, upperHex)
	return append(b, " }"...)
}

// record is one port of a line of a subnet list.
type record struct {
	node     fabric.Node // without Description
	desc     []byte
	portGUID fabric.GUID
	lid      fabric.LID
	invalid  uint64 // the LID that it says, if no port can have that
	num      fabric.PortNum
	index    int // of its node in the builder, -1 when it is new
}

// endPort is the number of the end port that the record's GUID and LID are of.
func (e *record) endPort() fabric.PortNum {
	if e.node.Type == fabric.Switch {
		return fabric.ManagementPort
	}
	return e.num
}

// errRecord says what records look like.
var errRecord = errors.New("want { SW Ports:24 SystemGUID:.. NodeGUID:.. PortGUID:.. VenID:.. DevID:.. Rev:.. {description} LID:0001 PN:01 }, and the same of the neighbour")

var errDescription = fmt.Errorf("no end of the description: %w", errRecord)

// fieldReader reads the fields of a record from left to right. err is the first
// thing that is wrong; nothing is read after that.
type fieldReader struct {
	rest []byte
	err  error
}

// field reads a name, a hexadecimal number of 1 to digits digits, and a blank.
func (r *fieldReader) field(name string, digits int) uint64 {
	if r.err != nil {
		return 0
	}
	s := scanner{rest: r.rest}
	if s.want(name); s.bad {
		r.err = fmt.Errorf("no %s: %w", strings.Trim(name, "} :"), errRecord)
		return 0
	}
	v := s.hex(digits)
	if s.want(" "); s.bad {
		r.err = fmt.Errorf("%s: want 1 to %d hexadecimal digits", strings.Trim(name, "} :"), digits)
		return 0
	}
	r.rest = s.rest
	return v
}

// refuse notes a value that is wrong.
func (r *fieldReader) refuse(wrong bool, format string, args ...any) {
	if wrong && r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// parseRecord reads a record, and what follows it by follow. Descriptions may contain
// anything, so the first end of one that lets all that follows be right is taken.
func parseRecord(b []byte, e *record, follow func(rest []byte) error) error {
	rest, err := e.parseNode(b)
	if err != nil {
		return err
	}
	end := []byte("} LID:")
	for at := 0; ; at += len(end) {
		i := bytes.Index(rest[at:], end)
		if at += i; i < 0 || at > maxName {
			return cmp.Or(err, errDescription)
		}
		e.desc = rest[:at]
		after, err1 := e.parsePort(rest[at:])
		if err1 == nil {
			err1 = follow(after)
		}
		if err1 == nil {
			return nil
		}
		err = cmp.Or(err, err1) // that of the likeliest end counts
	}
}

// maxName bounds a description in a subnet list, in bytes. Names of a
// node-name-map may be longer than the 64 bytes of a node description.
const maxName = 256

// isSubnetLine says whether a line begins as one of a subnet list.
func isSubnetLine(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("{ "))
	if !ok {
		return false
	}
	word, _, _ := bytes.Cut(rest, []byte(" "))
	return len(word) >= 2 && bytes.IndexByte([]byte(`"{[`), word[0]) < 0
}

// parseNode reads a record up to its description, and gives what follows the brace
// before that.
func (e *record) parseNode(b []byte) (rest []byte, err error) {
	b, ok := bytes.CutPrefix(b, []byte("{ "))
	word, b, found := bytes.Cut(b, []byte(" "))
	if !ok || !found {
		return nil, errRecord
	}
	name := bytes.TrimSuffix(word, []byte("-SM"))
	kind, known := valueOf(nodeTypes, name)
	if !known {
		return nil, fmt.Errorf("node type %q: want SW, CA or Rt", name)
	}
	r := fieldReader{rest: b}
	ports := r.field("Ports:", 8)
	r.refuse(ports == 0 || ports > uint64(fabric.MaxPortNum), "%d ports, want 1 to %d", ports, fabric.MaxPortNum)
	system := r.field("SystemGUID:", 16)
	guid := r.field("NodeGUID:", 16)
	r.refuse(guid == 0, "node GUID 0")
	port := r.field("PortGUID:", 16)
	vendor := r.field("VenID:", 8)
	r.refuse(vendor > 0xffffff, "vendor ID %#x, want 24 bits", vendor)
	device := r.field("DevID:", 8)
	shifted := device > math.MaxUint16 // as OpenSM does for the neighbour
	r.refuse(shifted && device&0xffff != 0, "device ID %#x, want 16 bits", device)
	if shifted {
		device >>= 16
	}
	r.field("Rev:", 8)
	rest, ok = bytes.CutPrefix(r.rest, []byte("{"))
	r.refuse(!ok, "no description: %w", errRecord)
	e.portGUID = fabric.GUID(port)
	e.node = fabric.Node{
		Type: kind, NumPorts: fabric.PortNum(ports), SystemGUID: fabric.GUID(system), GUID: fabric.GUID(guid),
		VendorID: uint32(vendor), DeviceID: uint16(device),
	}
	return rest, r.err
}

// parsePort reads the end of a record, from the brace behind its description, and
// gives what follows the record.
func (e *record) parsePort(b []byte) (rest []byte, err error) {
	r := fieldReader{rest: b}
	lid := r.field("} LID:", 4)
	e.invalid = 0
	if lid > uint64(fabric.MaxUnicastLID) {
		lid, e.invalid = 0, lid
	}
	num := r.field("PN:", 8)
	r.refuse(num == 0 || num > uint64(e.node.NumPorts), "port %d of a node with ports 1 to %d", num, e.node.NumPorts)
	rest, ok := bytes.CutPrefix(r.rest, []byte("}"))
	if r.err == nil && !ok {
		r.err = errRecord
	}
	e.lid, e.num = fabric.LID(lid), fabric.PortNum(num)
	return rest, r.err
}

// listLine is a line of a subnet list.
type listLine struct {
	first, second record
	link          fabric.Link
	up            bool
}

func parseSubnetLine(b []byte) (l listLine, err error) {
	err = parseRecord(b, &l.first, func(rest []byte) error {
		rest, ok := bytes.CutPrefix(rest, []byte(" "))
		if !ok {
			return errRecord
		}
		return parseRecord(rest, &l.second, l.parseLink)
	})
	return l, err
}

// linkField gives the value of a field, which ends at a blank, and what
// follows it.
func linkField(b []byte, name string) (value, rest []byte, ok bool) {
	b, ok = bytes.CutPrefix(b, []byte(name))
	n := bytes.IndexByte(b, ' ')
	if n < 0 {
		n = len(b)
	}
	return b[:n], b[n:], ok
}

// parseLink reads PHY=4x LOG=ACT SPD=10; files from years before 2006 have no SPD, and
// ibdiagnet may have more fields.
func (l *listLine) parseLink(b []byte) error {
	const want = "want PHY=4x LOG=ACT SPD=10"
	phy, b, ok1 := linkField(b, " PHY=")
	log, b, ok2 := linkField(b, " LOG=")
	if !ok1 || !ok2 {
		return errors.New("no state of the link; " + want)
	}
	var known bool
	if l.link.Width, known = valueOf(linkWidths, phy); !known {
		return fmt.Errorf("link width %q: want 1x, 2x, 4x, 8x, 12x or ??", phy)
	}
	switch string(log) {
	case "ACT", "ARM", "INI":
		l.up = true
	case "DWN":
		l.up = false
	default:
		return fmt.Errorf("link state %q: want ACT, ARM, INI or DWN", log)
	}
	l.link.Speed = fabric.SpeedUnknown
	if len(b) == 0 {
		return nil
	}
	spd, _, ok := linkField(b, " SPD=")
	if !ok {
		return errors.New("no speed of the link; " + want)
	}
	if l.link.Speed, known = valueOf(linkSpeeds, spd); !known {
		return fmt.Errorf("link speed %q: want 2.5, 5, 10, FDR10, 14, 25, 50, 100, 200 or ??", spd)
	}
	return nil
}

// subnetReader builds a fabric of the lines of a subnet list.
type subnetReader struct {
	textReader
	b     fabric.Builder
	index map[fabric.GUID]int // of nodes, in b and in nodes
	nodes []listNode
	owner map[fabric.LID]endPort

	records int                           // lines that are records, or broken ones
	pending map[fabric.ProblemKind]*fault // foreign lines since the last record
	foreign map[fabric.ProblemKind]*fault // all others
}

// notice lists what belongs to no record, and the ports with LID 0 where others have LIDs.
func (r *subnetReader) notice() {
	for _, x := range r.foreign {
		r.faults = append(r.faults, *x) // no two are of one line
	}
	if len(r.owner) == 0 {
		return
	}
	for i := range r.nodes {
		for num, end := range r.nodes[i].ends {
			if end.zero > 0 {
				r.addPort(end.zero-1, fabric.InvalidLID, r.b.Node(i).GUID, fabric.PortNum(num), fmt.Errorf("LID 0: want 1 to %#x; taken as none", fabric.MaxUnicastLID))
			}
		}
	}
}

// isRecord says whether a line is a record or was one: it has something that only records
// have.
func isRecord(line []byte) bool {
	if isSubnetLine(line) {
		return true
	}
	for _, mark := range []string{"GUID:", "VenID:", "DevID:", "} LID:", " PN:", "PHY=", "LOG=", "SPD="} {
		if bytes.Contains(line, []byte(mark)) {
			return true
		}
	}
	return line[0] == '{' || line[0] == '}'
}

// passOver is for a line that is no record: where it may stand is not known before the next
// one that is.
func (r *subnetReader) passOver(at int, line []byte) {
	kind := topology.ForeignKind(line)
	x := r.pending[kind]
	if x == nil {
		x = &fault{at: at, kind: kind, err: errors.New(r.text(at))}
		r.pending[kind] = x
	}
	x.n++
}

// settle is called before a record, and at the end: the foreign lines since the last record
// stand in front of the list, behind it, or among the records, where one may be lost.
func (r *subnetReader) settle(inside bool) {
	for _, kind := range []fabric.ProblemKind{fabric.ForeignLines, fabric.SweepTimeout, fabric.SweepError} {
		x := r.pending[kind]
		switch {
		case x == nil:
		case inside && (!r.lenient || kind == fabric.ForeignLines):
			r.drop(x.at, "%w", errRecord)
		case r.foreign[kind] == nil:
			r.foreign[kind] = x
		default:
			r.foreign[kind].n += x.n
		}
	}
	clear(r.pending)
}

// listNode collects the lines of a node.
type listNode struct {
	odd   bool      // a contradiction has been listed
	typed int       // 1 + offset of the first line that contradicts its type, 0 for none
	ends  []listEnd // by number
}

// listEnd collects the lines of an end port.
type listEnd struct {
	endPortID
	known bool
	zero  int // 1 + offset of the first line with LID 0 and an active cable, 0 for none
}

// endPort is an end port by its node's index in the builder, and its number.
type endPort struct {
	node int
	num  fabric.PortNum
}

// endPortID is what an end port is known by.
type endPortID struct {
	guid fabric.GUID
	lid  fabric.LID
}

// ReadSubnetList reads opensm-subnet.lst, or the lst file of ibdiagnet, with
// cables listed from both ends or from one, and the forms of older versions:
// without SPD, with DevID shifted or 0. The list says nothing of nodes without
// cables, of LMCs and of enhanced ports 0. Links that are down are left out,
// and a Contradiction says so; another is that two lines give a node different
// descriptions, system GUIDs or vendor or device IDs, of which the first
// counts, but 0 never does. An InvalidLID, such as 0xffff of a port that no subnet manager has
// seen, or 0 where other ports have LIDs, counts as none, and a port with a Loopback as one
// without a cable. A byte order mark, CR, and foreign lines in front of the list and behind it
// are passed over.
//
// Errors are *fabric.ParseError, and the fabric is then nil. With
// Options.Lenient these are Problems instead, and the line is left out: lines
// that are not of the form, numbers out of range, a port that is on two
// cables, a node or port that is not what a line before said, and a LID that
// another port has already.
func ReadSubnetList(name string, data []byte, opt Options) (*fabric.Fabric, []fabric.Problem, error) {
	r := &subnetReader{
		textReader: newTextReader(name, topology.Plain(data), opt),
		index:      make(map[fabric.GUID]int),
		owner:      make(map[fabric.LID]endPort),
		pending:    make(map[fabric.ProblemKind]*fault),
		foreign:    make(map[fabric.ProblemKind]*fault),
	}
	if form := Recognize(data); form != SubnetList {
		return nil, nil, r.notForm(form, "list of links", "opensm-subnet.lst")
	}
	r.eachLine(func(at int, line []byte) error {
		switch line = bytes.TrimRight(line, " \t"); {
		case isSilent(line):
			return nil
		case !isRecord(line):
			r.passOver(at, line)
			return nil
		}
		r.settle(r.records > 0)
		r.records++
		return r.readLine(at, line)
	})
	r.settle(false)
	if err := r.checkTypes(); err != nil {
		return nil, nil, err
	}
	r.notice()
	problems, err := r.listProblems()
	if err != nil {
		return nil, nil, err
	}
	f, err := r.b.Build()
	if err != nil {
		return nil, nil, &fabric.ParseError{File: name, Err: err}
	}
	return f, problems, nil
}

// checkTypes returns an error if the list gives its switches another type.
func (r *subnetReader) checkTypes() error {
	switches, wrong, first := 0, 0, -1
	for i := range r.nodes {
		if r.b.Node(i).Type == fabric.Switch {
			switches++
		}
		if at := r.nodes[i].typed; at > 0 {
			if wrong++; first < 0 || at < r.nodes[first].typed {
				first = i
			}
		}
	}
	if first < 0 || switches > wrong {
		return nil
	}
	return r.errorAt(r.nodes[first].typed-1, topology.MistypedError(r.b.Node(first).GUID, r.b.Node(first).Type))
}

// readLine enters a line. It changes nothing when it returns an error.
func (r *subnetReader) readLine(at int, line []byte) error {
	l, err := parseSubnetLine(line)
	if err != nil {
		return err
	}
	first, second := &l.first, &l.second
	for _, e := range []*record{first, second} {
		if err := r.check(e, at); err != nil {
			return err
		}
	}
	if err := checkPair(first, second); err != nil {
		return err
	}
	wired := false
	if l.up {
		if wired, err = r.checkCable(first, second); err != nil {
			return err
		}
	}
	for _, e := range []*record{first, second} {
		if err := r.addRecord(e, at); err != nil {
			return err
		}
		if end := &r.nodes[e.index].ends[e.endPort()]; end.zero == 0 && l.up && e.lid == 0 && e.invalid == 0 {
			end.zero = at + 1
		}
	}
	switch {
	case !l.up:
		r.add(at, fabric.Contradiction, errors.New("the link is down; left out"))
		return nil
	case first.node.GUID == second.node.GUID && first.num == second.num:
		r.addPort(at, fabric.Loopback, first.node.GUID, first.num, errors.New("connected to itself; taken as a port without a cable"))
		return nil
	case wired:
		return nil
	}
	return r.b.Connect(first.index, first.num, second.index, second.num, l.link)
}

// check finds the node of a record in the line at an offset, and compares the record with what lines
// before said.
func (r *subnetReader) check(e *record, at int) error {
	i, known := r.index[e.node.GUID]
	if e.index = i; !known {
		e.index = -1
	} else {
		n := r.b.Node(i)
		if n.Type != e.node.Type || n.NumPorts != e.node.NumPorts {
			return fmt.Errorf("node %s is %s with %d ports here, was %s with %d before", n.GUID, e.node.Type, e.node.NumPorts, n.Type, n.NumPorts)
		}
		if p := &r.nodes[i].ends[e.endPort()]; p.known && p.endPortID != (endPortID{e.portGUID, e.lid}) {
			return fmt.Errorf("port %d of node %s has GUID %s and LID %d here, had %s and %d before", e.endPort(), n.GUID, e.portGUID, e.lid, p.guid, p.lid)
		}
	}
	if o, owned := r.owner[e.lid]; owned && o != (endPort{e.index, e.endPort()}) {
		if o.node == e.index && r.nodes[o.node].ends[o.num].guid == e.portGUID {
			if n := &r.nodes[o.node]; n.typed == 0 {
				n.typed = at + 1
			}
			return topology.MistypedError(e.node.GUID, e.node.Type)
		}
		return fmt.Errorf("LID %d belongs to %q already", e.lid, r.b.Node(o.node).Description)
	}
	return nil
}

// checkPair compares the two records of a line.
func checkPair(a, b *record) error {
	if a.node.GUID != b.node.GUID {
		if a.lid != 0 && a.lid == b.lid {
			return fmt.Errorf("LID %d of both %q and %q", a.lid, a.desc, b.desc)
		}
		return nil
	}
	switch {
	case a.node.Type != b.node.Type || a.node.NumPorts != b.node.NumPorts:
		return fmt.Errorf("node %s is %s with %d ports and %s with %d", a.node.GUID, a.node.Type, a.node.NumPorts, b.node.Type, b.node.NumPorts)
	case a.node.Type == fabric.Switch && (a.lid != b.lid || a.portGUID != b.portGUID):
		return fmt.Errorf("switch %s has LIDs %d and %d, port GUIDs %s and %s", a.node.GUID, a.lid, b.lid, a.portGUID, b.portGUID)
	case a.node.Type != fabric.Switch && a.lid != 0 && a.lid == b.lid:
		return fmt.Errorf("LID %d of two ports of %q", a.lid, a.desc)
	}
	return nil
}

// checkCable compares a cable with those of lines before. wired is whether one of
// them had it.
func (r *subnetReader) checkCable(a, z *record) (wired bool, err error) {
	for _, end := range [2][2]*record{{a, z}, {z, a}} {
		if end[0].index < 0 {
			continue
		}
		peer, port, connected := r.b.Connected(end[0].index, end[0].num)
		if !connected {
			continue
		}
		if end[1].index != peer || port != end[1].num {
			return false, fmt.Errorf("port %d of %q has a cable to port %d of %q already",
				end[0].num, end[0].desc, port, r.b.Node(peer).Description)
		}
		wired = true
	}
	return wired, nil
}

// addRecord enters a record that check has passed, and its index where it is new.
func (r *subnetReader) addRecord(e *record, at int) error {
	i, known := r.index[e.node.GUID]
	if !known {
		n := e.node
		n.Description = string(e.desc)
		var err error
		if i, err = r.b.AddNode(n); err != nil {
			return err
		}
		r.index[n.GUID] = i
		r.nodes = append(r.nodes, listNode{ends: make([]listEnd, int(n.NumPorts)+1)})
	}
	e.index = i
	n := r.b.Node(i)
	differ := n.Description != string(e.desc)
	differ = merge(&n.SystemGUID, e.node.SystemGUID) || differ
	differ = merge(&n.VendorID, e.node.VendorID) || differ
	differ = merge(&n.DeviceID, e.node.DeviceID) || differ
	if differ && !r.nodes[i].odd {
		r.nodes[i].odd = true
		r.add(at, fabric.Contradiction, fmt.Errorf("node %s is described otherwise in a line before", n.GUID))
	}
	end := &r.nodes[i].ends[e.endPort()]
	if end.known {
		return nil
	}
	end.known, end.endPortID = true, endPortID{e.portGUID, e.lid}
	if e.invalid != 0 {
		r.addPort(at, fabric.InvalidLID, n.GUID, e.endPort(), fmt.Errorf("LID %#x: want 1 to %#x; taken as none", e.invalid, fabric.MaxUnicastLID))
	}
	if e.lid != 0 {
		r.owner[e.lid] = endPort{i, e.endPort()}
	}
	return r.b.SetPort(i, e.endPort(), e.portGUID, e.lid, 0)
}

// merge keeps the first value that is not 0 and says whether another differs.
func merge[T comparable](have *T, v T) bool {
	var none T
	if *have == none {
		*have = v
	}
	return v != none && *have != v
}
