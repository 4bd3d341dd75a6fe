package dump

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// linkSpeeds are the values of SPD. OpenSM 3.3.23 knows them up to 50 and
// prints ?? for faster links; 100 and 200 are what ibdiagnet prints.
var linkSpeeds = [...]struct {
	text  string
	speed fabric.Speed
}{
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
}

// linkWidths are the values of PHY. OpenSM 3.3.23 prints ?? for 2x.
var linkWidths = [...]struct {
	text  string
	width uint8
}{{"??", 0}, {"1x", 1}, {"2x", 2}, {"4x", 4}, {"8x", 8}, {"12x", 12}}

// nodeTypes are how records name the types; RTR is ibdiagnet's.
var nodeTypes = [...]struct {
	text string
	is   fabric.NodeType
}{{"SW", fabric.Switch}, {"CA", fabric.CA}, {"Rt", fabric.Router}, {"RTR", fabric.Router}}

// revision is what every record has for Rev: NodeInfo's Revision, which the
// fabric does not keep, as ibsim answers it.
const revision = "000000A1"

// SubnetListOptions are what a caller may ask of WriteSubnetList.
type SubnetListOptions struct {
	// SM is the LID of the master subnet manager's port, 0 for none. Records
	// of nodes with this LID have the mark -SM.
	SM fabric.LID
}

// WriteSubnetList writes opensm-subnet.lst, as osm_dump.c does: a line for
// each port with a cable, with the port and its neighbour. The two records of
// a line differ: the second has eight digits for VenID, and in DevID OpenSM
// shifts the device ID up by 16 bits.
//
// Where the fabric knows no width or speed, and for 2x links, OpenSM's ?? is
// printed; NDR and XDR links have ibdiagnet's 100 and 200. All links are
// active. Rev is constant. FDR10 is printed for both ends; OpenSM sees it
// only on ports of devices that it knows to have it. The only errors are
// those of w.
func WriteSubnetList(w io.Writer, f *fabric.Fabric, opt SubnetListOptions) error {
	nodes := make([]fabric.NodeID, f.NumNodes())
	for n := range nodes {
		nodes[n] = fabric.NodeID(n)
	}
	inOpenSMOrder(f, nodes)
	// Some nodes at a time, so that small ones do not cost a write each.
	const batch = 64
	return writeInOrder(w, (len(nodes)+batch-1)/batch, func(_, i int, b []byte) []byte {
		for _, n := range nodes[i*batch : min((i+1)*batch, len(nodes))] {
			for p := fabric.PortNum(1); p <= f.Node(n).NumPorts; p++ {
				port := f.Port(n, p)
				peer := f.Peer(port)
				if peer == fabric.NoPort {
					continue
				}
				b = appendRecord(b, f, port, opt, false)
				b = append(b, ' ')
				b = appendRecord(b, f, peer, opt, true)
				link := f.Link(port)
				b = append(b, " PHY="...)
				b = append(b, widthText(link.Width)...)
				b = append(b, " LOG=ACT SPD="...)
				b = append(b, speedText(link.Speed)...)
				b = append(b, '\n')
			}
		}
		return b
	})
}

func widthText(width uint8) string {
	for _, w := range linkWidths {
		if w.width == width && width != 2 {
			return w.text
		}
	}
	return linkWidths[0].text
}

func speedText(speed fabric.Speed) string {
	for _, s := range linkSpeeds {
		if s.speed == speed {
			return s.text
		}
	}
	return linkSpeeds[0].text
}

// appendRecord appends what is between braces of a port; second says that it
// is the neighbour's.
func appendRecord(b []byte, f *fabric.Fabric, p fabric.PortID, opt SubnetListOptions, second bool) []byte {
	n := f.Owner(p)
	node := f.Node(n)
	end := p // the port that has the GUID and the LID
	if f.IsSwitch(n) {
		end = f.PortBase(n)
	}
	b = append(b, "{ "...)
	switch node.Type {
	case fabric.Switch:
		b = append(b, "SW"...)
	case fabric.CA:
		b = append(b, "CA"...)
	case fabric.Router:
		b = append(b, "Rt"...)
	}
	if opt.SM != 0 && f.LID(end) == opt.SM {
		b = append(b, "-SM"...)
	}
	b = append(b, " Ports:"...)
	b = appendHex(b, uint64(node.NumPorts), 2, hexUpper)
	b = append(b, " SystemGUID:"...)
	b = node.SystemGUID.AppendDigits(b)
	b = append(b, " NodeGUID:"...)
	b = node.GUID.AppendDigits(b)
	b = append(b, " PortGUID:"...)
	b = f.PortGUID(end).AppendDigits(b)
	b = append(b, " VenID:"...)
	if second {
		b = appendHex(b, uint64(node.VendorID), 8, hexUpper)
		b = append(b, " DevID:"...)
		// The format is %04X, for 0 too.
		if node.DeviceID == 0 {
			b = append(b, "0000"...)
		} else {
			digits := 8
			for digits > 5 && node.DeviceID>>(4*(digits-5)) == 0 {
				digits--
			}
			b = appendHex(b, uint64(node.DeviceID)<<16, digits, hexUpper)
		}
	} else {
		b = appendHex(b, uint64(node.VendorID), 6, hexUpper)
		b = append(b, " DevID:"...)
		b = appendHex(b, uint64(node.DeviceID), 4, hexUpper)
	}
	b = append(b, " Rev:"+revision+" {"...)
	b = appendDescription(b, node.Description)
	b = append(b, "} LID:"...)
	b = appendHex(b, uint64(f.LID(end)), 4, hexUpper)
	b = append(b, " PN:"...)
	b = appendHex(b, uint64(f.Num(p)), 2, hexUpper)
	return append(b, " }"...)
}

// record is one port of a line of a subnet list.
type record struct {
	node     fabric.Node // without Description
	desc     []byte
	portGUID fabric.GUID
	lid      fabric.LID
	num      fabric.PortNum
	index    int32 // of its node in the builder, -1 when it is new
}

// printedRecord reads a record as OpenSM or WriteSubnetList print it at the
// start of b, and gives what follows; rest is nil for anything else.
func (r *record) printedRecord(b []byte) (rest []byte) {
	const layout = "{ SW Ports:24 SystemGUID:0123456789abcdef NodeGUID:0123456789abcdef PortGUID:0123456789abcdef VenID:"
	if len(b) < len(layout)+len("000002C9 DevID:0000 Rev:000000A1 {} LID:0001 PN:01 }") || b[0] != '{' || b[1] != ' ' || string(b[4:11]) != " Ports:" ||
		string(b[13:25]) != " SystemGUID:" || string(b[41:51]) != " NodeGUID:" || string(b[67:77]) != " PortGUID:" || string(b[93:100]) != " VenID:" {
		return nil
	}
	switch string(b[2:4]) {
	case "SW":
		r.node.Type = fabric.Switch
	case "CA":
		r.node.Type = fabric.CA
	default:
		return nil
	}
	high, low := hexDigit[b[11]], hexDigit[b[12]]
	system, ok1 := fabric.ReadDigits(b[25:])
	node, ok2 := fabric.ReadDigits(b[51:])
	port, ok3 := fabric.ReadDigits(b[77:])
	ports := high<<4 | low
	if high|low > 15 || !ok1 || !ok2 || !ok3 || node == 0 || ports == 0 || fabric.PortNum(ports) > fabric.MaxPortNum {
		return nil
	}
	r.node.SystemGUID, r.node.GUID, r.portGUID, r.node.NumPorts = system, node, port, fabric.PortNum(ports)
	b = b[len(layout):]
	vendor, n := hexPrefix(b, 8)
	if b = b[n:]; n == 0 || vendor > 0xffffff || !beginsWith(b, " DevID:") {
		return nil
	}
	b = b[len(" DevID:"):]
	device, n := hexPrefix(b, 8)
	if device > math.MaxUint16 {
		if device&0xffff != 0 {
			return nil
		}
		device >>= 16
	}
	if b = b[n:]; n == 0 || !beginsWith(b, " Rev:") {
		return nil
	}
	b = b[len(" Rev:"):]
	_, n = hexPrefix(b, 8)
	if b = b[n:]; n == 0 || !beginsWith(b, " {") {
		return nil
	}
	b = b[2:]
	at := bytes.IndexByte(b, '}')
	if at < 0 || at > maxName || len(b)-at <= len("} LID:0001 PN:01 }") || string(b[at:at+6]) != "} LID:" || string(b[at+10:at+14]) != " PN:" || string(b[at+16:at+18]) != " }" {
		return nil
	}
	r.desc = b[:at]
	b = b[at+6:]
	h3, h2, h1, h0 := hexDigit[b[0]], hexDigit[b[1]], hexDigit[b[2]], hexDigit[b[3]]
	high, low = hexDigit[b[8]], hexDigit[b[9]]
	r.lid = fabric.LID(h3)<<12 | fabric.LID(h2)<<8 | fabric.LID(h1)<<4 | fabric.LID(h0)
	r.num = fabric.PortNum(high<<4 | low)
	if h3|h2|h1|h0|high|low > 15 || r.lid > fabric.MaxUnicastLID || r.num == 0 || r.num > r.node.NumPorts {
		return nil
	}
	r.node.VendorID, r.node.DeviceID = uint32(vendor), uint16(device)
	return b[12:]
}

// printedLine reads a line as OpenSM or WriteSubnetList print it. The state of
// its link is then in r.
func (r *subnetReader) printedLine(line []byte) (first, second record, ok bool) {
	rest := first.printedRecord(line)
	if len(rest) < 2 || rest[0] != ' ' {
		return first, second, false
	}
	if rest = second.printedRecord(rest[1:]); rest == nil {
		return first, second, false
	}
	if r.state == nil || !bytes.Equal(rest, r.state) {
		link, up, err := parseLinkState(rest)
		if err != nil {
			return first, second, false
		}
		r.state, r.link, r.up = rest, link, up
	}
	return first, second, true
}

// errRecord says what records look like.
var errRecord = errors.New("want { SW Ports:24 SystemGUID:.. NodeGUID:.. PortGUID:.. VenID:.. DevID:.. Rev:.. {description} LID:0001 PN:01 }, and the same of the neighbour")

var errDescription = fmt.Errorf("no end of the description: %w", errRecord)

// recordField reads name and a hexadecimal number of at most digits digits at
// the start of b, and a blank after it.
func recordField(b []byte, name string, digits int) (v uint64, rest []byte, err error) {
	if len(b) < len(name) || string(b[:len(name)]) != name {
		return 0, nil, fmt.Errorf("no %s: %w", strings.Trim(name, "} :"), errRecord)
	}
	b = b[len(name):]
	v, n := hexPrefix(b, digits)
	if n == 0 || n == len(b) || b[n] != ' ' {
		return 0, nil, fmt.Errorf("%s: want 1 to %d hexadecimal digits", strings.Trim(name, "} :"), digits)
	}
	return v, b[n+1:], nil
}

// parseRecord reads a record up to its description and returns what follows
// the brace before it.
func parseRecord(b []byte) (r record, rest []byte, err error) {
	if !bytes.HasPrefix(b, []byte("{ ")) {
		return r, nil, errRecord
	}
	b = b[2:]
	i := bytes.IndexByte(b, ' ')
	if i < 0 {
		return r, nil, errRecord
	}
	word := bytes.TrimSuffix(b[:i], []byte("-SM"))
	for _, t := range nodeTypes {
		if string(word) == t.text {
			r.node.Type = t.is
		}
	}
	if r.node.Type == 0 {
		return r, nil, fmt.Errorf("node type %q: want SW, CA or Rt", word)
	}
	b = b[i+1:]
	var v uint64
	if v, b, err = recordField(b, "Ports:", 8); err != nil {
		return r, nil, err
	}
	if v == 0 || v > uint64(fabric.MaxPortNum) {
		return r, nil, fmt.Errorf("%d ports, want 1 to %d", v, fabric.MaxPortNum)
	}
	r.node.NumPorts = fabric.PortNum(v)
	if v, b, err = recordField(b, "SystemGUID:", 16); err != nil {
		return r, nil, err
	}
	r.node.SystemGUID = fabric.GUID(v)
	if v, b, err = recordField(b, "NodeGUID:", 16); err != nil {
		return r, nil, err
	}
	if v == 0 {
		return r, nil, errors.New("node GUID 0")
	}
	r.node.GUID = fabric.GUID(v)
	if v, b, err = recordField(b, "PortGUID:", 16); err != nil {
		return r, nil, err
	}
	r.portGUID = fabric.GUID(v)
	if v, b, err = recordField(b, "VenID:", 8); err != nil {
		return r, nil, err
	}
	if v > 0xffffff {
		return r, nil, fmt.Errorf("vendor ID %#x, want 24 bits", v)
	}
	r.node.VendorID = uint32(v)
	if v, b, err = recordField(b, "DevID:", 8); err != nil {
		return r, nil, err
	}
	if v > math.MaxUint16 { // OpenSM's shifted form
		if v&0xffff != 0 {
			return r, nil, fmt.Errorf("device ID %#x, want 16 bits", v)
		}
		v >>= 16
	}
	r.node.DeviceID = uint16(v)
	if _, b, err = recordField(b, "Rev:", 8); err != nil {
		return r, nil, err
	}
	if len(b) == 0 || b[0] != '{' {
		return r, nil, fmt.Errorf("no description: %w", errRecord)
	}
	return r, b[1:], nil
}

// maxName bounds a description in a subnet list, in bytes. Names of a
// node-name-map may be longer than the 64 bytes of a node description.
const maxName = 256

// afterDescription ends a description.
var afterDescription = []byte("} LID:")

// finish reads the end of a record from b, where its description may end. It
// returns what follows the record.
func (r *record) finish(description, b []byte) (rest []byte, err error) {
	v, b, err := recordField(b, "} LID:", 4)
	if err != nil {
		return nil, err
	}
	if fabric.LID(v) > fabric.MaxUnicastLID {
		return nil, fmt.Errorf("LID %#x, want at most %#x", v, fabric.MaxUnicastLID)
	}
	r.lid = fabric.LID(v)
	if v, b, err = recordField(b, "PN:", 8); err != nil {
		return nil, err
	}
	if v == 0 || v > uint64(r.node.NumPorts) {
		return nil, fmt.Errorf("port %d of a node with ports 1 to %d", v, r.node.NumPorts)
	}
	r.num = fabric.PortNum(v)
	if len(b) == 0 || b[0] != '}' {
		return nil, errRecord
	}
	r.desc = description
	return b[1:], nil
}

// parseSubnetLine reads a line of a subnet list. Descriptions may contain
// anything, so the first that lets the rest of the line be right is taken.
func parseSubnetLine(line []byte) (first, second record, link fabric.Link, up bool, err error) {
	first, rest, err := parseRecord(line)
	if err != nil {
		return first, second, link, false, err
	}
	for at := 0; ; {
		i := bytes.Index(rest[at:], afterDescription)
		if i < 0 {
			return first, second, link, false, cmp.Or(err, errDescription)
		}
		if at += i; at > maxName {
			return first, second, link, false, cmp.Or(err, errDescription)
		}
		after, err1 := first.finish(rest[:at], rest[at:])
		if err1 == nil {
			second, link, up, err1 = parseNeighbour(after)
		}
		if err1 == nil {
			return first, second, link, up, nil
		}
		err = cmp.Or(err, err1) // that of the likeliest end counts
		at += len(afterDescription)
	}
}

// parseNeighbour reads the second half of a line.
func parseNeighbour(b []byte) (r record, link fabric.Link, up bool, err error) {
	if len(b) == 0 || b[0] != ' ' {
		return r, link, false, errRecord
	}
	r, rest, err := parseRecord(b[1:])
	if err != nil {
		return r, link, false, err
	}
	for at := 0; ; {
		i := bytes.Index(rest[at:], afterDescription)
		if i < 0 {
			return r, link, false, cmp.Or(err, errDescription)
		}
		if at += i; at > maxName {
			return r, link, false, cmp.Or(err, errDescription)
		}
		after, err1 := r.finish(rest[:at], rest[at:])
		if err1 == nil {
			link, up, err1 = parseLinkState(after)
		}
		if err1 == nil {
			return r, link, up, nil
		}
		err = cmp.Or(err, err1)
		at += len(afterDescription)
	}
}

// linkField gives the value of a field, which ends at a blank, and what
// follows it.
func linkField(b []byte, name string) (value, rest []byte, ok bool) {
	if len(b) < len(name) || string(b[:len(name)]) != name {
		return nil, nil, false
	}
	b = b[len(name):]
	n := bytes.IndexByte(b, ' ')
	if n < 0 {
		n = len(b)
	}
	return b[:n], b[n:], true
}

// parseLinkState reads PHY=4x LOG=ACT SPD=10; files of before 2006 have no
// SPD, and ibdiagnet may have more fields.
func parseLinkState(b []byte) (link fabric.Link, up bool, err error) {
	const want = "want PHY=4x LOG=ACT SPD=10"
	phy, b, ok1 := linkField(b, " PHY=")
	log, b, ok2 := linkField(b, " LOG=")
	if !ok1 || !ok2 {
		return link, false, errors.New("no state of the link; " + want)
	}
	found := false
	for _, w := range linkWidths {
		if string(phy) == w.text {
			link.Width, found = w.width, true
		}
	}
	if !found {
		return link, false, fmt.Errorf("link width %q: want 1x, 2x, 4x, 8x, 12x or ??", phy)
	}
	switch string(log) {
	case "ACT", "ARM", "INI":
		up = true
	case "DWN":
	default:
		return link, false, fmt.Errorf("link state %q: want ACT, ARM, INI or DWN", log)
	}
	if len(b) > 0 {
		spd, _, ok := linkField(b, " SPD=")
		if !ok {
			return link, false, errors.New("no speed of the link; " + want)
		}
		found = false
		for _, s := range linkSpeeds {
			if string(spd) == s.text {
				link.Speed, found = s.speed, true
			}
		}
		if !found {
			return link, false, fmt.Errorf("link speed %q: want 2.5, 5, 10, FDR10, 14, 25, 50, 100, 200 or ??", spd)
		}
	}
	return link, up, nil
}

// subnetReader builds a fabric of the lines of a subnet list.
type subnetReader struct {
	src    source
	opt    Options
	b      fabric.Builder
	nodes  []subnetNode     // by index in b
	byGUID fabric.GUIDIndex // index in b
	owner  []lidOwner       // by LID, as far as needed
	slab   []subnetPort     // room for ports of nodes to come
	state  []byte           // the last state of a link that was read, and what it says
	link   fabric.Link
	up     bool
	faults []fault
}

// subnetNode is what the reader keeps of a node beside the builder.
type subnetNode struct {
	ports []subnetPort // by port number; only port 0 of a switch
	odd   bool         // a contradiction about it has been listed
}

type subnetPort struct {
	guid  fabric.GUID
	lid   fabric.LID
	known bool
}

// lidOwner is the first end port that had a LID.
type lidOwner struct {
	node int32 // index + 1, 0 for none
	port fabric.PortNum
}

// ReadSubnetList reads opensm-subnet.lst, or the lst file of ibdiagnet, with
// cables listed from both ends or from one, and the forms of older versions:
// without SPD, with DevID shifted or 0. The list says nothing of nodes without
// cables, of LMCs and of enhanced ports 0. Links that are down are left out,
// and a Contradiction says so; another is that two lines give a node different
// descriptions, system GUIDs or vendor or device IDs, of which the first
// counts, but 0 never does.
//
// Errors are *fabric.ParseError, and the fabric is then nil. With
// Options.Lenient these are Problems instead, and the line is left out: lines
// that are not of the form, numbers out of range, a port that is on two
// cables, a node or port that is not what a line before said, and a LID that
// another port has already.
func ReadSubnetList(name string, data []byte, opt Options) (*fabric.Fabric, []Problem, error) {
	r := &subnetReader{
		src: source{name, data},
		opt: opt,
	}
	if form := Recognize(data); form != SubnetList {
		t := &tableReader{src: r.src}
		return nil, nil, t.notForm(form, "list of links", "opensm-subnet.lst")
	}
	var more overflow
	for at := 0; at < len(data); {
		start := at
		var line []byte
		line, at = cutLine(data, at)
		if n := len(line); n > 0 && isBlank(line[n-1]) {
			line = bytes.TrimRight(line, " \t")
		}
		if len(line) == 0 || line[0] == '#' || bytes.HasPrefix(line, fileVersion) {
			continue
		}
		if err := r.line(line, start); err != nil {
			if !opt.Lenient {
				return nil, nil, r.src.errorAt(start, err)
			}
			if len(r.faults) >= maxFaults {
				more.add(Dropped)
				continue
			}
			r.faults = append(r.faults, fault{at: start, kind: Dropped, err: err})
		}
	}
	f, err := r.b.Build()
	if err != nil {
		return nil, nil, &fabric.ParseError{File: name, Err: err}
	}
	return f, r.src.problems(r.faults, more), nil
}

// line enters a line. It changes nothing when it returns an error.
func (r *subnetReader) line(line []byte, at int) error {
	first, second, ok := r.printedLine(line)
	link, up := r.link, r.up
	if !ok {
		var err error
		if first, second, link, up, err = parseSubnetLine(line); err != nil {
			return err
		}
	}
	ends := [2]*record{&first, &second}
	for _, e := range ends {
		e.index = r.byGUID.Find(e.node.GUID)
		if err := r.check(e); err != nil {
			return err
		}
	}
	if first.node.GUID == second.node.GUID {
		if err := sameNode(&first, &second); err != nil {
			return err
		}
	} else if first.lid != 0 && first.lid == second.lid {
		return fmt.Errorf("LID %d of both %q and %q", first.lid, first.desc, second.desc)
	}
	wired := false
	if up {
		var err error
		if wired, err = r.checkCable(&first, &second); err != nil {
			return err
		}
	}
	if err := r.add(&first, at); err != nil {
		return err
	}
	if first.node.GUID == second.node.GUID {
		second.index = first.index
	}
	if err := r.add(&second, at); err != nil {
		return err
	}
	if !up {
		r.note(at, errors.New("the link is down; left out"))
		return nil
	}
	if wired {
		return nil
	}
	return r.b.Connect(int(first.index), first.num, int(second.index), second.num, link)
}

func (r *subnetReader) note(at int, err error) {
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, fault{at: at, kind: Contradiction, err: err})
	}
}

// sameNode checks the records of a cable between two ports of a node.
func sameNode(a, b *record) error {
	switch {
	case a.num == b.num:
		return fmt.Errorf("a cable from port %d of %q to itself", a.num, a.desc)
	case a.node.Type != b.node.Type || a.node.NumPorts != b.node.NumPorts:
		return fmt.Errorf("node %s is %s with %d ports and %s with %d", a.node.GUID, a.node.Type, a.node.NumPorts, b.node.Type, b.node.NumPorts)
	case a.node.Type == fabric.Switch && (a.lid != b.lid || a.portGUID != b.portGUID):
		return fmt.Errorf("switch %s has LIDs %d and %d, port GUIDs %s and %s", a.node.GUID, a.lid, b.lid, a.portGUID, b.portGUID)
	case a.node.Type != fabric.Switch && a.lid != 0 && a.lid == b.lid:
		return fmt.Errorf("LID %d of two ports of %q", a.lid, a.desc)
	}
	return nil
}

// endPort is the number of the end port that a record's GUID and LID are of.
func (e *record) endPort() fabric.PortNum {
	if e.node.Type == fabric.Switch {
		return fabric.ManagementPort
	}
	return e.num
}

// check compares a record with what lines before said.
func (r *subnetReader) check(e *record) error {
	i := int(e.index)
	if i >= 0 {
		n := r.b.Node(i)
		if n.Type != e.node.Type || n.NumPorts != e.node.NumPorts {
			return fmt.Errorf("node %s is %s with %d ports here, was %s with %d before", n.GUID, e.node.Type, e.node.NumPorts, n.Type, n.NumPorts)
		}
		if p := &r.nodes[i].ports[e.endPort()]; p.known && (p.guid != e.portGUID || p.lid != e.lid) {
			return fmt.Errorf("port %d of node %s has GUID %s and LID %d here, had %s and %d before", e.endPort(), n.GUID, e.portGUID, e.lid, p.guid, p.lid)
		}
	}
	if int(e.lid) < len(r.owner) && e.lid != 0 {
		if o := r.owner[e.lid]; o.node != 0 && (o.node-1 != e.index || o.port != e.endPort()) {
			return fmt.Errorf("LID %d belongs to %q already", e.lid, r.b.Node(int(o.node-1)).Description)
		}
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
		peer, port, connected := r.b.Connected(int(end[0].index), end[0].num)
		if !connected {
			continue
		}
		if int(end[1].index) != peer || port != end[1].num {
			return false, fmt.Errorf("port %d of %q has a cable to port %d of %q already",
				end[0].num, end[0].desc, port, r.b.Node(peer).Description)
		}
		wired = true
	}
	return wired, nil
}

// slabPorts is how many ports get their memory at a time.
const slabPorts = 1024

// add enters a record that check has passed, and its index where it is new.
func (r *subnetReader) add(e *record, at int) error {
	if e.index < 0 {
		n := e.node
		n.Description = string(e.desc)
		i, err := r.b.AddNode(n)
		if err != nil {
			return err
		}
		e.index = int32(i)
		r.byGUID.Add(e.node.GUID, e.index)
		ports := 1
		if e.node.Type != fabric.Switch {
			ports += int(e.node.NumPorts)
		}
		if len(r.slab) < ports {
			r.slab = make([]subnetPort, slabPorts)
		}
		r.nodes = append(r.nodes, subnetNode{ports: r.slab[:ports:ports]})
		r.slab = r.slab[ports:]
	}
	i := int(e.index)
	n := r.b.Node(i)
	differ := n.Description != string(e.desc)
	differ = merge(&n.SystemGUID, e.node.SystemGUID) || differ
	differ = merge(&n.VendorID, e.node.VendorID) || differ
	differ = merge(&n.DeviceID, e.node.DeviceID) || differ
	if differ && !r.nodes[i].odd {
		r.nodes[i].odd = true
		r.note(at, fmt.Errorf("node %s is described otherwise in a line before", n.GUID))
	}
	p := &r.nodes[i].ports[e.endPort()]
	if p.known {
		return nil
	}
	*p = subnetPort{guid: e.portGUID, lid: e.lid, known: true}
	if e.lid != 0 {
		if n := int(e.lid) + 1 - len(r.owner); n > 0 {
			r.owner = append(r.owner, make([]lidOwner, n)...)
		}
		r.owner[e.lid] = lidOwner{e.index + 1, e.endPort()}
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
