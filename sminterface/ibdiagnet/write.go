package ibdiagnet

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// Written is the time in written files: constant, so that the
// same fabric gives the same bytes.
const Written = "2000-01-01 00:00:00 UTC +0000"

// Version is the version in written files: that of the form, not of a program.
const Version = `"IBDIAGNET 2.10.0.IBWEAVE"`

// Write writes a database with the sections that Read uses, and INDEX_TABLE. Nodes are in the
// order of Node.Order. Read returns the same fabric from it. The only errors are those of w.
func Write(w io.Writer, f *fabric.Fabric) error {
	const promise = indexPromise + " %11d, line: %11d\n"
	s := new(sectionWriter)
	s.printf(promise, 0, 0)
	s.writeSections(f)
	// The mark of the index follows two blank lines.
	copy(s.text.Bytes(), fmt.Sprintf(promise, s.text.Len()+2, s.line+3))
	s.printf("\n\n%s%s\nName, Offset, Size, Line, Rows\n", startMark, indexName)
	for _, e := range s.index {
		s.printf("%s,%12d,%12d,%12d,%12d\n", e.name, e.offset, e.size, e.line, e.rows)
	}
	s.printf("%s%s\n", endMark, indexName)
	_, err := s.text.WriteTo(w)
	return err
}

// sectionWriter writes sections and their index.
type sectionWriter struct {
	text  bytes.Buffer
	line  int // lines so far
	index []entry
}

func (s *sectionWriter) printf(format string, args ...any) {
	from := s.text.Len()
	fmt.Fprintf(&s.text, format, args...)
	s.line += bytes.Count(s.text.Bytes()[from:], []byte{'\n'})
}

// section writes a section; rows writes its rows.
func (s *sectionWriter) section(name, header string, rows func()) {
	s.printf("\n\n%s%s\n", startMark, name)
	e := entry{name: name, offset: s.text.Len(), line: s.line + 1}
	s.printf("%s\n", header)
	first := s.line
	rows()
	e.size, e.rows = s.text.Len()-e.offset, s.line-first
	s.printf("%s%s\n", endMark, name)
	s.index = append(s.index, e)
}

// writeSections writes all sections but the index.
func (s *sectionWriter) writeSections(f *fabric.Fabric) {
	nodes := f.Nodes()
	slices.SortStableFunc(nodes, func(a, b fabric.NodeID) int { return cmp.Compare(f.Node(a).Order, f.Node(b).Order) })
	s.section("RUN_INFO", "IBDIAGNET_Version,Date,Args", func() { s.printf("%s,%q,%q\n", Version, Written, "") })
	s.section("NODES", "NodeDesc,NumPorts,NodeType,SystemImageGUID,NodeGUID,PortGUID,DeviceID,VendorID,LocalPortNum", func() {
		for _, n := range nodes {
			s.node(f, n)
		}
	})
	s.section("PORTS", "NodeGuid,PortGuid,PortNum,LID,LinkWidthActv,LinkSpeedActv,LMC,PortPhyState,PortState,VLCap,NMTU,OpVLs", func() {
		for _, n := range nodes {
			s.ports(f, n)
		}
	})
	s.section("SWITCHES", "NodeGUID,LinearFDBCap,MCastFDBCap,LinearFDBTop,ENP0,MCastFDBTop", func() {
		for _, n := range nodes {
			if f.IsSwitch(n) {
				enhanced := map[bool]int{true: 1}[f.Node(n).EnhancedPort0]
				s.printf("%s,49152,8192,%d,%d,49151\n", f.Node(n).GUID, f.MaxLID(), enhanced)
			}
		}
	})
	if f.Labelled() {
		s.section("PORT_HIERARCHY_INFO", "NodeGUID,PortGUID,PortNum,Label", func() { s.labels(f, nodes) })
	}
	s.section("LINKS", "NodeGuid1,PortNum1,NodeGuid2,PortNum2", func() { s.links(f, nodes) })
}

// node writes a row of NODES. PortGUID is that of port 0 of a switch, else of port 1.
func (s *sectionWriter) node(f *fabric.Fabric, n fabric.NodeID) {
	x := f.Node(n)
	num := fabric.PortNum(1)
	if f.IsSwitch(n) {
		num = fabric.ManagementPort
	}
	desc := strings.NewReplacer("\n", " ", "\r", " ").Replace(x.Description)
	s.printf("\"%s\",%d,%d,%s,%s,%s,%d,%d,%d\n", desc, x.NumPorts, x.Type, x.SystemGUID, x.GUID, f.PortGUID(f.Port(n, num)), x.DeviceID, x.VendorID, num)
}

// ports writes the rows of PORTS of a node. Rows of external ports of a switch have the
// GUID of its port 0.
func (s *sectionWriter) ports(f *fabric.Fabric, n fabric.NodeID) {
	first := fabric.PortNum(1)
	if f.IsSwitch(n) {
		first = fabric.ManagementPort
	}
	const vls = 3 // the code of 4 data VLs
	for num := first; num <= f.Node(n).NumPorts; num++ {
		p := f.Port(n, num)
		end := p
		if f.IsSwitch(n) {
			end = f.PortBase(n)
		}
		up := num == fabric.ManagementPort || f.Peer(p) != fabric.NoPort
		state, physical, width, speed := Down, 2, "N/A", "N/A"
		if up {
			state, physical = Active, 5
			width, speed = codeText(slices.Index(widths[:], f.Link(p).Width)), codeText(speedCodeOf(f.Link(p).Speed))
		}
		s.printf("%s,%s,%d,%d,%s,%s,%d,%d,%d,%d,5,%d\n", f.Node(n).GUID, f.PortGUID(end), num, f.LID(p), width, speed, f.LMC(p), physical, state, vls, vls)
	}
}

func (s *sectionWriter) labels(f *fabric.Fabric, nodes []fabric.NodeID) {
	for _, n := range nodes {
		for num := range f.Node(n).NumPorts + 1 {
			p := f.Port(n, num)
			if label := f.Label(p); label != "" {
				s.printf("%s,%s,%d,\"%s\"\n", f.Node(n).GUID, f.Node(n).GUID, num, label)
			}
		}
	}
}

// links writes each cable once, at the end whose node comes first.
func (s *sectionWriter) links(f *fabric.Fabric, nodes []fabric.NodeID) {
	for _, n := range nodes {
		for num := fabric.PortNum(1); num <= f.Node(n).NumPorts; num++ {
			p := f.Port(n, num)
			peer := f.Peer(p)
			if peer == fabric.NoPort {
				continue
			}
			other := f.Owner(peer)
			if a, b := f.Node(n).Order, f.Node(other).Order; b < a || b == a && peer < p {
				continue
			}
			s.printf("%s,%d,%s,%d\n", f.Node(n).GUID, num, f.Node(other).GUID, f.Num(peer))
		}
	}
}

// codeText returns a code as in PORTS, N/A for 0.
func codeText(code int) string {
	if code == 0 {
		return "N/A"
	}
	return strconv.Itoa(code)
}

// speedCodeOf returns LinkSpeedActv; an extended speed also has QDR in byte 0.
func speedCodeOf(speed fabric.Speed) int {
	i := slices.IndexFunc(speedCodes, func(c speedCode) bool { return c.speed == speed })
	switch {
	case i < 0:
		return 0
	case speedCodes[i].bit > 4:
		return int(speedCodes[i].bit | 4)
	}
	return int(speedCodes[i].bit)
}

// WriteHead writes the lines that ibdiagnet begins its other files with.
func WriteHead(w io.Writer) {
	fmt.Fprintf(w, "# %s\n# Running version   : %s\n# Running command   : \n# Running timestamp : %s\n# File created at   : %s\n\n\n",
		generated, Version, Written, Written)
}

// WriteTail writes the line that ibdiagnet ends its other files with.
func WriteTail(w io.Writer) { fmt.Fprintf(w, "\n\n\n%s : %s\n", closed, Written) }

// Lines of the other files of ibdiagnet.
const (
	generated = "This database file was automatically generated by IBDIAG"
	created   = "# File created at"
	closed    = "# File closed at"
)

// IsGenerated returns true if the beginning of a file shows that ibdiagnet wrote it.
func IsGenerated(head []byte) bool { return bytes.Contains(head, []byte(generated)) }

// IsCut returns true if a file of ibdiagnet lacks its last line. head and tail are its
// beginning and end. Versions that print when a file was created also print when it was
// closed; older ones print neither.
func IsCut(head, tail []byte) bool {
	return IsGenerated(head) && bytes.Contains(head, []byte(created)) && !bytes.Contains(tail, []byte(closed))
}
