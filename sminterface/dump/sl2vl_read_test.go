package dump

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

// Tables of pair: every way of a switch, and the hosts.
const (
	rulers   = slHeads + "\n" + slRuler + "\n"
	dumpEnd  = slRuler + "\n\n"
	dumpA    = "Switch 0x000000000000000a, base LID 1, \"a\"\n" + rulers + dumpRows + dumpEnd
	dumpB    = "Switch 0x000000000000000b, base LID 2, \"b\"\n" + rulers + dumpRows + dumpEnd
	dumpC    = "Channel Adapter 0x00000000000000c1, base LID 3, \"c\"\n" + rulers + "0   0   : 0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  3  \n" + dumpEnd
	dumpD    = "Channel Adapter 0x00000000000000d1, base LID 4, \"d\"\n" + rulers + "0   0   : 4  4  4  4  4  4  4  4  4  4  4  4  4  4  4  4  \n" + dumpEnd
	dumpRows = "0   1   : 0  1  0  1  0  1  0  1  0  1  0  1  0  1  0  15 \n" +
		"1   1   : 1  1  0  1  0  1  0  1  0  1  0  1  0  1  0  15 \n" +
		"2   1   : 2  1  0  1  0  1  0  1  0  1  0  1  0  1  0  15 \n" +
		"3   1   : 0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n" +
		"4   1   : 0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n" +
		"0   2   : 5  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n" +
		"1   2   : 6  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n" +
		"2   2   : 7  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n" +
		"3   2   : 0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n" +
		"4   2   : 0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n"
	dumpAll = dumpA + dumpB + dumpC + dumpD

	queryA = "# SL2VL table: Lid 1\n#                 SL: | 0| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|15|\n" +
		"ports: in  0, out  1: | 0| 1| 0| 1| 0| 1| 0| 1| 0| 1| 0| 1| 0| 1| 0|15|\n"
	queryC = "# SL2VL table: Lid 3\n#                 SL: | 0| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|15|\n" +
		"ports: in  0, out  0: | 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 3|\n"
)

// ways are the VLs of SLs 0 and 15: a line for each switch and for each host.
func ways(s *lft.SL2VL) string {
	f := s.Fabric()
	var b strings.Builder
	last := fabric.NoNode
	for in, out := range s.PortPairs() {
		n := f.Owner(out)
		if n != last && last != fabric.NoNode {
			b.WriteByte('\n')
		} else if n == last {
			b.WriteByte(' ')
		}
		last = n
		m := s.At(in, out)
		if f.IsSwitch(n) {
			fmt.Fprintf(&b, "%d>%d:", in, f.Num(out))
		}
		fmt.Fprintf(&b, "%d,%d", m[0], m[15])
	}
	b.WriteByte('\n')
	return b.String()
}

// TestReadSL2VL pins what is read from odd and from wrong text, by a strict and
// by a lenient reader, and the exact messages.
func TestReadSL2VL(t *testing.T) {
	f := pair(t)
	readCases(t, of(f, ReadSL2VL), ways, casesOf(t))
	for text, want := range map[string]string{
		"":        "in: no SL-to-VL tables, the file is empty; want opensm-sl2vl.dump, or what smpquery sl2vl prints",
		"x\n":     "in:1: no SL-to-VL tables; want opensm-sl2vl.dump, or what smpquery sl2vl prints\n    x",
		fdbA:      "in: this is opensm.fdbs; want opensm-sl2vl.dump, or what smpquery sl2vl prints",
		"0xa 1 1": "in: this is ibdmchk's path SLs; want opensm-sl2vl.dump, or what smpquery sl2vl prints",
	} {
		if _, _, err := ReadSL2VL("in", []byte(text), f, Options{}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

const (
	pathsAB = "Path SLs [1-4] of 2 switches\nswitch 0x000000000000000a \"a\"\ndlid 1-2 sl 0\ndlid 3 sl 15\ndlid 4 sl 1\n\nswitch 0x000000000000000b \"b\"\ndlid 1-4 sl 2\n"
	pairsAB = "0x00000000000000c0 4 1\n0x00000000000000d0 3 2\n"
)

// pathsPorts is pathsAB with a first line that announces two ports.
var pathsPorts = strings.Replace(pathsAB, "2 switches", "2 switches and 2 ports", 1)

// sls are path SLs from LID 1 on, a line for each switch and then for each source port
// of its own; ? is not known.
func sls(p *lft.PathSLs) string {
	var b strings.Builder
	line := func(row []fabric.SL) {
		for l, sl := range row[1:] {
			if l > 0 {
				b.WriteByte(' ')
			}
			if sl == lft.UnknownSL {
				b.WriteByte('?')
			} else {
				fmt.Fprint(&b, sl)
			}
		}
		b.WriteByte('\n')
	}
	for s := range fabric.NodeID(p.Switches()) {
		line(p.Given(s))
	}
	for _, port := range p.Ports() {
		fmt.Fprintf(&b, "%d: ", port)
		line(p.PortRow(port))
	}
	return b.String()
}

// TestReadPathSLs does for path SLs what TestReadSL2VL does.
func TestReadPathSLs(t *testing.T) {
	f := pair(t)
	readCases(t, of(f, ReadPathSLs), sls, casesOf(t))
}

// TestWritePathSLs pins the form of this package, and that switches with equal
// rows share a block, whether or not they share the row in memory.
func TestWritePathSLs(t *testing.T) {
	f := pair(t)
	p, _, err := ReadPathSLs("in", []byte(pathsAB), f, Options{})
	short.Check(t, err)
	write := func(p *lft.PathSLs, opt WriteOptions) string {
		return string(text(t, func(w io.Writer) error { return WritePathSLs(w, f, p, opt) }))
	}
	short.Equal(t, write(p, WriteOptions{}), pathsAB)
	short.Equal(t, write(p, WriteOptions{Lean: true, Only: []fabric.NodeID{1}}), "Path SLs [1-4] of 1 switches\nswitch 0x000000000000000b\ndlid 1-4 sl 2\n")
	ports := strings.Replace(pathsPorts, "2 ports", "1 ports", 1) + "\nport 0x00000000000000c0[1] \"c\"\ndlid 1 sl 3\ndlid 2-4 sl ?\n"
	if p, _, err = ReadPathSLs("in", []byte(ports), f, Options{}); err != nil {
		t.Fatal(err)
	}
	short.Equal(t, write(p, WriteOptions{}), ports)
	short.Equal(t, string(text(t, func(w io.Writer) error { return WriteIBDMPathSLs(w, f, p) })), "0x00000000000000d0 3 2\n", "for ibdmchk")
	if got := write(p, WriteOptions{Lean: true, Only: []fabric.NodeID{1}}); strings.Contains(got, "port") {
		t.Errorf("%s", got)
	}
	p, _ = short.Must2(ReadPathSLs("in", []byte(pathsAB), f, Options{}))(t)
	const same = "Path SLs [1-4] of 2 switches\nswitch 0x000000000000000a\nswitch 0x000000000000000b\ndlid 1-4 sl 3\n"
	row := []fabric.SL{0, 3, 3, 3, 3}
	shared, copied := lft.NewPathSLs(2, 4), lft.NewPathSLs(2, 4)
	shared.SetRow(row, 1, 0)
	copied.SetRow(row, 0)
	copied.SetRow(bytesSL(slBytes(row)), 1)
	for _, p := range []*lft.PathSLs{shared, copied} {
		short.Equal(t, write(p, WriteOptions{Lean: true}), same)
	}
	short.Equal(t, string(text(t, func(w io.Writer) error { return WriteIBDMPathSLs(w, f, p) })), "0x00000000000000c0 4 1\n0x00000000000000d0 3 2\n", "for ibdmchk")
	if err := WritePathSLs(io.Discard, f, lft.NewPathSLs(3, 4), WriteOptions{}); err == nil {
		t.Error("path SLs of three switches were written for a fabric with two")
	}
}

// TestPathBlocks: switches of a block come by GUID, not in OpenSM's order, and blocks by
// their first.
func TestPathBlocks(t *testing.T) {
	f := oddFabric(t, 0, false)
	p := lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
	row := make([]fabric.SL, int(f.MaxLID())+1)
	row[1] = 1
	p.SetRow(row, 1, 3)
	n := int(f.MaxLID())
	want := fmt.Sprintf("Path SLs [1-%d] of 4 switches\n"+
		"switch 0x0000000000200000\nswitch 0x0102030405060708\ndlid 1-%d sl 0\n\n"+
		"switch 0x0100000000000001\nswitch 0x8000000000200004\ndlid 1 sl 1\ndlid 2-%d sl 0\n", n, n, n)
	if got := text(t, func(w io.Writer) error { return WritePathSLs(w, f, p, WriteOptions{Lean: true}) }); string(got) != want {
		t.Error(cmp.Diff(want, string(got)))
	}
}

// TestMissingPairs: of two hosts on a switch, each sends to the other.
func TestMissingPairs(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{1}, Hosts: 2})
	f = withLIDs(t, f, err)
	hosts := f.CAPorts()
	all := text(t, func(w io.Writer) error { return WriteIBDMPathSLs(w, f, lft.NewPathSLs(1, f.MaxLID())) })
	if _, problems, err := ReadPathSLs("in", all, f, Options{}); err != nil || problems != nil {
		t.Error(err, problems)
	}
	first := all[:bytes.IndexByte(all, '\n')+1]
	_, problems, err := ReadPathSLs("in", first, f, Options{})
	want := fmt.Sprintf("in: missing: no SL for 1 path between CA or router ports, from %s to LID %d\n", f.PortName(hosts[1]), f.LID(hosts[0]))
	if got := problemLines(problems); err != nil || got != want {
		t.Errorf("%v, %s, want %s", err, got, want)
	}
}

// Hosts of one switch may have different SLs for a destination: ibdmchk's form is by pair.
func TestPairsOfOneSwitch(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{2}, Hosts: 2})
	f = withLIDs(t, f, err)
	hosts := f.CAPorts()
	p := lft.NewPathSLs(2, f.MaxLID())
	row := make([]fabric.SL, int(f.MaxLID())+1)
	row[f.LID(hosts[3])] = 5
	p.SetPorts(row, hosts[1])
	form := func(p *lft.PathSLs) []byte {
		return text(t, func(w io.Writer) error { return WriteIBDMPathSLs(w, f, p) })
	}
	got, problems, err := ReadPathSLs("in", form(p), f, Options{})
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	short.Equal(t, string(form(got)), string(form(p)), "is read")
	to := f.LID(hosts[3])
	if got.PortRow(hosts[0]) != nil || got.Row(0)[to] != 0 || got.PortRow(hosts[1])[to] != 5 {
		t.Errorf("%s", sls(got))
	}
	// A line that is not there is not known, whatever the other host has.
	lines := strings.SplitAfter(string(form(p)), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, fmt.Sprintf("%s %d ", f.Node(f.Owner(hosts[0])).GUID, to))
	})
	got, _, err = ReadPathSLs("in", []byte(strings.Join(lines, "")), f, Options{})
	if sl := rowFrom(got, hosts[0], 0)[to]; err != nil || sl != lft.UnknownSL {
		t.Errorf("SL %d, %v", sl, err)
	}
}

// TestQoSOptionLines pins the lines for opensm.conf, and the message where
// there are none.
func TestQoSOptionLines(t *testing.T) {
	f := oddFabric(t, 0, false)
	s := lft.NewSL2VL(f, lft.VLMap{0, 1, 2, 3, 15, 15, 15, 15, 0, 0, 0, 0, 0, 0, 0, 0})
	for _, p := range f.CAPorts() {
		if f.Node(f.Owner(p)).Type == fabric.Router {
			s.SetOut(p, lft.OpenSMVLs(15))
		} else {
			s.SetOut(p, lft.ConstantVL(0))
		}
	}
	a, _ := f.SwitchByGUID(0x200000)
	s.SetOut(f.Port(a, 30), lft.ConstantVL(9)) // nothing leaves by there
	s.Set(30, f.Port(a, 1), lft.ConstantVL(9)) // nor comes in
	y, _ := f.SwitchByGUID(0x0102030405060708)
	s.SetOut(f.PortBase(y), lft.ConstantVL(1))
	lines := short.Must(QoSOptions(s))(t)
	want := string(short.Must(os.ReadFile("testdata/ibdm-path-sls.txt"))(t))
	short.Equal(t, strings.Join(lines, "\n"), want)
	s.Set(36, f.Port(a, 3), lft.ConstantVL(2))
	_, err := QoSOptions(s)
	const message = "OpenSM has one option qos_swe_sl2vl for both VLs 0,1,2,3,15,15,15,15,0,0,0,0,0,0,0,0 from port 0 to port 1 of switch 0x0000000000200000 \"switch {0} \u00e9t\u00e9\"" +
		" and VLs 2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2 from port 36 to port 3 of switch 0x0000000000200000 \"switch {0} \u00e9t\u00e9\""
	short.Equal(t, fmt.Sprint(err), message)
	s = lft.NewSL2VL(f, lft.ConstantVL(0))
	host, _ := f.NodeByGUID(0x100000)
	s.SetOut(f.Port(host, 2), lft.ConstantVL(1))
	_, err = QoSOptions(s)
	if want := "OpenSM has one option qos_ca_sl2vl for both VLs 0,0,"; err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), " of 0x0000000000100002 \"host 0,0 } LID:0001 PN:01 } {\"[2]") {
		t.Errorf("%v, want %s..", err, want)
	}
}

// TestIBDMPathSLsOfPorts: ibdmchk knows nodes, not ports.
func TestIBDMPathSLsOfPorts(t *testing.T) {
	f := oddFabric(t, 0, false)
	host, _ := f.NodeByGUID(0x100000)
	at := f.Owner(f.Peer(f.Port(host, 2)))
	p := lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
	row := make([]fabric.SL, int(f.MaxLID())+1)
	row[f.LID(f.Port(host, 1))] = 1
	p.SetRow(row, at)
	var b bytes.Buffer
	err := WriteIBDMPathSLs(&b, f, p)
	want := fmt.Sprintf("%s has SL 1 to LID %d and another port of the node has SL 0: ibdmchk has one SL for all ports of a node", f.PortName(f.Port(host, 2)), f.LID(f.Port(host, 1)))
	if err == nil || err.Error() != want || b.Len() > 0 {
		t.Errorf("%v, want %s; wrote %d bytes", err, want, b.Len())
	}
	// With the same SLs there are lines from each port to the other.
	for s := range fabric.NodeID(f.NumSwitches()) {
		p.SetRow(row, s)
	}
	out := text(t, func(w io.Writer) error { return WriteIBDMPathSLs(w, f, p) })
	for q, sl := range map[fabric.PortNum]int{1: 1, 2: 0} {
		if line := fmt.Appendf(nil, "0x0000000000100000 %d %d\n", f.LID(f.Port(host, q)), sl); !bytes.Contains(out, line) {
			t.Errorf("no line %s in\n%s", line, out)
		}
	}
}

// TestSL2VLRoundTrip reads back what is written of fabrics and tables of any
// kind, and compares the bytes that one CPU and several write.
func TestSL2VLRoundTrip(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t, true)
		guids := make(map[fabric.GUID]bool) // a drawn GUID may be another's port GUID
		for _, p := range f.CAPorts() {
			if guids[f.PortGUID(p)] {
				return
			}
			guids[f.PortGUID(p)] = true
		}
		s := lft.NewSL2VL(f, lft.ConstantVL(0))
		for in, out := range s.PortPairs() {
			var m lft.VLMap
			for sl := range m {
				m[sl] = fabric.VL(rapid.IntRange(0, 15).Draw(t, "VL"))
			}
			s.Set(in, out, m)
		}
		runtime.GOMAXPROCS(1)
		one := sl2vlTexts(t, s)
		runtime.GOMAXPROCS(4)
		for form, b := range sl2vlTexts(t, s) {
			short.EqualList(t, b, one[form], form, "one CPU writes", "several")
			if len(b) == 0 {
				continue
			}
			got, _, err := ReadSL2VL("in", b, f, Options{})
			if err != nil {
				t.Fatalf("%s: %v\n%s", form, err, b)
			}
			for in, out := range s.PortPairs() {
				n := f.Owner(out)
				end := out
				if f.IsSwitch(n) {
					end = f.PortBase(n)
				}
				if form == SMPQuerySL2VL && f.LID(end) == 0 {
					continue
				}
				short.MustEqual(t, *got.At(in, out), *s.At(in, out), form, "from port", in, "to", f.PortName(out), got.At(in, out), "want", s.At(in, out), b)
			}
		}
	})
}

// TestPathSLsRoundTrip does so for path SLs.
func TestPathSLsRoundTrip(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t, true)
		p := lft.NewPathSLs(f.NumSwitches(), f.MaxLID()+fabric.LID(rapid.IntRange(0, 3).Draw(t, "beyond")))
		for s := range fabric.NodeID(f.NumSwitches()) {
			row := make([]fabric.SL, int(p.MaxLID())+1)
			for l := 1; l < len(row); l++ {
				row[l] = fabric.SL(rapid.IntRange(0, 2).Draw(t, "SL"))
			}
			p.SetRow(row, s)
		}
		var b, one bytes.Buffer
		short.Check(t, WritePathSLs(&b, f, p, WriteOptions{Lean: rapid.Bool().Draw(t, "lean")}))
		got, problems, err := ReadPathSLs("in", b.Bytes(), f, Options{})
		if err != nil || problems != nil || sls(got) != sls(p) {
			t.Fatalf("%v %v\n%s\nwant\n%s%s", err, problems, sls(got), sls(p), &b)
		}

		b.Reset()
		if err := WriteIBDMPathSLs(&b, f, p); err != nil {
			return // a CA on two switches
		}
		runtime.GOMAXPROCS(1)
		err = WriteIBDMPathSLs(&one, f, p)
		runtime.GOMAXPROCS(4)
		if err != nil || !bytes.Equal(b.Bytes(), one.Bytes()) {
			t.Fatalf("one CPU writes\n%s\nseveral\n%s", &one, &b)
		}
		if b.Len() == 0 {
			return
		}
		if got, problems, err = ReadPathSLs("in", b.Bytes(), f, Options{}); err != nil || problems != nil {
			t.Fatalf("%v %v\n%s", err, problems, &b)
		}
		for i, from := range f.CAPorts() {
			s := f.CASwitches()[i]
			for l, to := range f.LIDPorts() {
				if s != fabric.NoNode && to != fabric.NoPort && to != from && !f.IsSwitch(f.Owner(to)) && got.Row(s)[l] != p.Row(s)[l] {
					t.Fatalf("from %s to LID %d: SL %d, want %d\n%s", f.PortName(from), l, got.Row(s)[l], p.Row(s)[l], &b)
				}
			}
		}
	})
}
