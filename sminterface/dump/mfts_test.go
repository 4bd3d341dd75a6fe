package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
)

const (
	mcA = "\nSwitch 0x000000000000000a\nLID    : Out Port(s)\n0xC000 : 0x001  0x002 \n0xC123 : 0x000 \n"
	mcB = "\nSwitch 0x000000000000000b\nLID    : Out Port(s)\n0xC000 : 0x001  0x002 \n"

	mftHeadA = "Multicast mlids [0xc000-0xc3ff] of switch Lid 1 guid 0x000000000000000a (a):\n     Ports: 0 1 2 3 4 \n MLid\n"
	mftHeadB = "Multicast mlids [0xc000-0xc3ff] of switch DR path slid 0; dlid 0; 0,1 guid 0x000000000000000b (b):\n     Ports: 0 1 2 3 4 \n MLid\n"
	mftA     = mftHeadA + "0xc000        x x     \n0xc123      x         \n2 valid mlids dumped \n"
	mftB     = mftHeadB + "0xc000        x x     \n1 valid mlids dumped \n"
	masksA   = "0xc000: 0/1 0/2\n0xc123: 0/0\n"
	masksAB  = "0xc000: 0/1 0/2 1/1 1/2\n0xc123: 0/0\n"
	noMFTs   = "in: missing: no table of switch 0x000000000000000b \"b\"\n"
)

// TestReadMFTs pins what is read from odd and from wrong text, by a strict and
// by a lenient reader, and the exact messages.
func TestReadMFTs(t *testing.T) {
	f := pair(t)
	readCases(t, of(f, ReadMFTs), masks, []readCase{
		{"mcfdbs", mcA + mcB, "", masksAB, ""},
		{"nothing", "", "", "", ""},
		{"nothing but blanks and comments", "\n \n# no groups\nFile version: 1\n", "", "", ""},
		{"one switch", mcA, "", masksA, ""},
		{"other order, CRLF", strings.ReplaceAll(mcB+mcA, "\n", "\r\n"), "", masksAB, ""},
		{"by hand", "# x\nSwitch 0xb\n0xc000 : 0x002 0x001\nSwitch 0xa\n# y\n0xC123:0x000 \n", "in:6: want a row such as 0xC000 : 0x001  0x005\n    0xC123:0x000 ", "0xc000: 1/1 1/2\n", "in:6: dropped: want a row such as 0xC000 : 0x001  0x005\n"},
		{"no ports", mcA + "0xC124 : \n", "", masksA, ""},
		{"a row twice", mcA + "0xC000 : 0x002  0x001  0x002 \n", "", masksA, ""},
		{"rows in disorder", "Switch 0xa\n0xC123 : 0x000 \n0xC000 : 0x001  0x002 \n", "", masksA, ""},

		{"other ports", mcA + "0xC000 : 0x001 \n", "in:6: a second row for MLID 0xc000 of switch 0x000000000000000a, with other ports than the first\n    0xC000 : 0x001 ",
			masksA, "in:6: dropped: a second row for MLID 0xc000 of switch 0x000000000000000a, with other ports than the first\n"},
		{"MLID too low", mcA + "0xBFFF : 0x001 \n", "in:6: MLID 0xbfff, want 0xc000 to 0xfffe\n    0xBFFF : 0x001 ", masksA, "in:6: dropped: MLID 0xbfff, want 0xc000 to 0xfffe\n"},
		{"MLID too high", mcA + "0xFFFF : 0x001 \n", "in:6: MLID 0xffff, want 0xc000 to 0xfffe\n    0xFFFF : 0x001 ", masksA, "in:6: dropped: MLID 0xffff, want 0xc000 to 0xfffe\n"},
		{"MLID of more bits", mcA + "0x1C000 : 0x001 \n", "in:6: MLID 0x1c000, want 0xc000 to 0xfffe\n    0x1C000 : 0x001 ", masksA, "in:6: dropped: MLID 0x1c000, want 0xc000 to 0xfffe\n"},
		{"port too high", mcA + "0xC001 : 0x001  0x005 \n", "in:6: port 5 of switch 0x000000000000000a, which has ports 0 to 4\n    0xC001 : 0x001  0x005 ",
			masksA, "in:6: dropped: port 5 of switch 0x000000000000000a, which has ports 0 to 4\n"},
		{"port of more bits", mcA + "0xC001 : 0x101 \n", "in:6: port 257 of switch 0x000000000000000a, which has ports 0 to 4\n    0xC001 : 0x101 ",
			masksA, "in:6: dropped: port 257 of switch 0x000000000000000a, which has ports 0 to 4\n"},
		{"port cut short", mcA + "0xC001 : 0x00\n", "in:6: want a row such as 0xC000 : 0x001  0x005\n    0xC001 : 0x00", masksA, "in:6: dropped: want a row such as 0xC000 : 0x001  0x005\n"},
		{"file cut short", mcA + "0xC001 : 0x001 ", "in:6: the last line has no end: the file is cut short\n    0xC001 : 0x001 ",
			"0xc000: 0/1 0/2\n0xc001: 0/1\n0xc123: 0/0\n", "in:6: truncated: the last line has no end: the file is cut short\n"},
		{"unknown switch", mcA + "\nSwitch 0x0000000000000099\n0xC001 : 0x001 \n", "in:7: the fabric has no switch 0x0000000000000099\n    Switch 0x0000000000000099",
			masksA, "in:7: dropped: the fabric has no switch 0x0000000000000099\n"},
		{"a host", mcA + "\nSwitch 0x00000000000000c0\n", "in:7: the fabric has no switch 0x00000000000000c0\n    Switch 0x00000000000000c0", masksA, "in:7: dropped: the fabric has no switch 0x00000000000000c0\n"},
		{"a section twice", mcA + mcA, "in:7: a second section for switch 0x000000000000000a, the first is in line 2\n    Switch 0x000000000000000a",
			masksA, "in:7: dropped: a second section for switch 0x000000000000000a, the first is in line 2\n"},
		{"bad GUID", mcA + "Switch 0x12345678901234567\n", "in:6: bad GUID; want Switch 0x0123456789abcdef\n    Switch 0x12345678901234567", masksA, "in:6: dropped: bad GUID; want Switch 0x0123456789abcdef\n"},
		{"text", mcA + "hello\n", "in:6: want a row such as 0xC000 : 0x001  0x005\n    hello", masksA, "in:6: dropped: want a row such as 0xC000 : 0x001  0x005\n"},
		{"other text", "hello\n", "in:1: no multicast forwarding tables; want opensm.mcfdbs, or what ibroute -M or dump_mfts print\n    hello", "-", ""},
		{"unicast", tabA, "in: this is opensm-lfts.dump; want opensm.mcfdbs, or what ibroute -M or dump_mfts print", "-", ""},

		{"dump_mfts", mftA + mftB, "", masksAB, ""},
		{"dump_mfts of one switch", mftA, "", masksA, noMFTs},
		{"what surrounds it", "ibwarn: [7] x: attached\n" + mftA + mftB + "\n*** WARNING ***: this command has been replaced by dump_fts -M\n\n", "in:1: text before the first section\n    ibwarn: [7] x: attached", masksAB,
			"in:1: dropped: text before the first section\n"},
		{"warning at the end", mftA + mftB + "\n*** WARNING ***: this command has been replaced by dump_fts -M\n\n\n", "", masksAB, ""},
		{"brief", strings.Replace(strings.Replace(mftA, "        x x     ", "      0006", 1), "      x         ", "      0001", 1) + strings.Replace(mftB, "        x x     ", "      0006", 1), "", masksAB, ""},
		{"all MLIDs", strings.Replace(mftA, "2 valid", "0xc124                \n3", 1) + mftB, "", masksAB, ""},
		{"blanks at the ends of lines cut", strings.ReplaceAll(strings.ReplaceAll(mftA+mftB, "x     \n", "x\n"), "x         \n", "x\n"), "", masksAB, ""},
		{"verbose", strings.Replace(mftA, " MLid\n", " MLid\nSwitch multicast mlid capability is 1024 top is 0x0\n", 1) + mftB, "", masksAB, ""},
		{"other LID of a switch", strings.Replace(mftA, "Lid 1 ", "Lid 7 ", 1) + mftB, "", masksAB, "in:1: contradiction: switch 0x000000000000000a has LID 1 in the fabric, here 7\n"},

		{"fewer rows", strings.Replace(mftA, "2 valid", "3 valid", 1) + mftB, "in:6: 3 mlids dumped, but the section has 2 rows: the file is cut short\n    3 valid mlids dumped ", masksAB,
			"in:6: truncated: 3 mlids dumped, but the section has 2 rows: the file is cut short\n"},
		{"no last line", strings.Replace(mftA, "2 valid mlids dumped \n", "", 1) + mftB,
			"in:5: the section of switch 0x000000000000000a does not end with a line N valid mlids dumped: the file is cut short\n    0xc123      x         ", masksAB,
			"in:5: truncated: the section of switch 0x000000000000000a does not end with a line N valid mlids dumped: the file is cut short\n"},
		{"column too high", strings.Replace(mftA, "x         \n", "x         x\n", 1) + mftB, "in:5: port 5 of switch 0x000000000000000a, which has ports 0 to 4\n    0xc123      x         x",
			"0xc000: 0/1 0/2 1/1 1/2\n", "in:5: dropped: port 5 of switch 0x000000000000000a, which has ports 0 to 4\n"},
		{"between columns", strings.Replace(mftA, "      x         ", "       x        ", 1) + mftB, "in:5: want a row such as 0xc000      x   x, or N valid mlids dumped\n    0xc123       x        ",
			"0xc000: 0/1 0/2 1/1 1/2\n", "in:5: dropped: want a row such as 0xc000      x   x, or N valid mlids dumped\n"},
		{"before the columns", strings.Replace(mftA, "      x         ", "   x         ", 1) + mftB, "in:5: want a row such as 0xc000      x   x, or N valid mlids dumped\n    0xc123   x         ",
			"0xc000: 0/1 0/2 1/1 1/2\n", "in:5: dropped: want a row such as 0xc000      x   x, or N valid mlids dumped\n"},
		{"brief, port too high", strings.Replace(mftA, "      x         ", "      0021", 1) + mftB, "in:5: port 5 of switch 0x000000000000000a, which has ports 0 to 4\n    0xc123      0021",
			"0xc000: 0/1 0/2 1/1 1/2\n", "in:5: dropped: port 5 of switch 0x000000000000000a, which has ports 0 to 4\n"},
		{"brief, cut short", strings.Replace(mftA, "      x         ", "      001", 1) + mftB, "in:5: want a row such as 0xc000      x   x, or N valid mlids dumped\n    0xc123      001",
			"0xc000: 0/1 0/2 1/1 1/2\n", "in:5: dropped: want a row such as 0xc000      x   x, or N valid mlids dumped\n"},
		{"brief, no digits", strings.Replace(mftA, "      x         ", "      00g1", 1) + mftB, "in:5: want a row such as 0xc000      x   x, or N valid mlids dumped\n    0xc123      00g1",
			"0xc000: 0/1 0/2 1/1 1/2\n", "in:5: dropped: want a row such as 0xc000      x   x, or N valid mlids dumped\n"},
		{"a switch that did not answer", strings.Replace(mftA, "0xc123", "SubnGet(MFT) failed on switch 'a' ..\n0xc123", 1) + mftB, "in:5: want a row such as 0xc000      x   x, or N valid mlids dumped\n    SubnGet(MFT) failed on switch 'a' ..",
			masksAB, "in:5: dropped: want a row such as 0xc000      x   x, or N valid mlids dumped\n"},
		{"text after a section", mftA + "0xc000      x\n" + mftB, "in:7: text between the end of a section and the next one; want Multicast mlids ..\n    0xc000      x",
			masksAB, "in:7: dropped: text between the end of a section and the next one; want Multicast mlids ..\n"},
		{"MFT's MLID too low", strings.Replace(mftA, "0xc123", "0xb123", 1) + mftB, "in:5: MLID 0xb123, want 0xc000 to 0xfffe\n    0xb123      x         ",
			"0xc000: 0/1 0/2 1/1 1/2\n", "in:5: dropped: MLID 0xb123, want 0xc000 to 0xfffe\n"},
		{"no GUID", mftA + "Multicast mlids x\n", "in:7: no GUID; want Multicast mlids [0xc000-0xc3ff] of switch Lid 1 guid 0x0123456789abcdef\n    Multicast mlids x", masksA,
			noMFTs + "in:7: dropped: no GUID; want Multicast mlids [0xc000-0xc3ff] of switch Lid 1 guid 0x0123456789abcdef\n"},
	})
}

// TestWriteMFTs pins what is written of small tables, and what is refused.
func TestWriteMFTs(t *testing.T) {
	f := pair(t)
	tables := mustReadMFTs(t, "seed", []byte(mcA+mcB), f)
	for _, c := range []struct {
		name  string
		write func(io.Writer) error
		want  string // or the error
	}{
		{"mcfdbs", func(w io.Writer) error { return WriteMCFDBs(w, tables, WriteOptions{}) }, mcA + mcB},
		{"mcfdbs of one", func(w io.Writer) error { return WriteMCFDBs(w, tables, WriteOptions{Only: []fabric.NodeID{1}}) }, mcB},
		{"no masks", func(w io.Writer) error { return WriteMCFDBs(w, mft.NewTables(f), WriteOptions{}) }, ""},
		{"MFTs", func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{}, 1024) },
			mftA + strings.Replace(mftB, "DR path slid 0; dlid 0; 0,1", "Lid 2", 1)},
		{"all MLIDs", func(w io.Writer) error {
			return WriteMFTs(w, tables, WriteOptions{Only: []fabric.NodeID{0}}, 1<<20)
		}, strings.Replace(mftA, "0xc3ff", "0xfffe", 1)},
		{"few MLIDs", func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{}, 0x123) }, "MLID 0xc123, above 0xc122, the highest that the switches have"},
		{"no such switch", func(w io.Writer) error { return WriteMCFDBs(w, tables, WriteOptions{Only: []fabric.NodeID{2}}) }, "node 2 is not one of the 2 switches"},
		{"full", func(io.Writer) error { return WriteMFTs(full{}, tables, WriteOptions{}, 0) }, errFull.Error()},
	} {
		var b bytes.Buffer
		got := ""
		if err := c.write(&b); err != nil {
			got = err.Error()
		} else {
			got = b.String()
		}
		short.Diff(t, got, c.want, c.name)
	}
}

// full is a device without room.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestMFTsRoundTrip: what is written is read, by all forms, on any number of
// CPUs, and for sections in any order.
func TestMFTsRoundTrip(t *testing.T) {
	f := wide(t)
	rapid.Check(t, func(t *rapid.T) {
		var mlids []fabric.LID
		for _, l := range rapid.SliceOfNDistinct(rapid.Uint16Range(uint16(mft.MinMLID), uint16(mft.MaxMLID)), 0, 12, rapid.ID[uint16]).Draw(t, "MLIDs") {
			mlids = append(mlids, fabric.LID(l))
		}
		slices.Sort(mlids)
		tables := randomMFTs(f, mlids, rapid.Uint64().Draw(t, "seed"))
		for name, write := range map[string]func(io.Writer) error{
			"mcfdbs": func(w io.Writer) error { return WriteMCFDBs(w, tables, WriteOptions{}) },
			"MFTs":   func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{}, 0) },
			"brief":  func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{Lean: true}, 0) },
		} {
			var b, one bytes.Buffer
			short.Check(t, write(&b))
			procs := runtime.GOMAXPROCS(1)
			err := write(&one)
			runtime.GOMAXPROCS(procs)
			if err != nil || !bytes.Equal(b.Bytes(), one.Bytes()) {
				t.Fatalf("%s: %v, other bytes on one CPU", name, err)
			}
			marker := "Multicast"
			if name == "mcfdbs" {
				marker = "\nSwitch"
			}
			sections := strings.SplitAfter(strings.ReplaceAll(b.String(), marker, "\x00"+marker), "\x00")
			shuffled := strings.ReplaceAll(strings.Join(rapid.Permutation(sections).Draw(t, "order"), ""), "\x00", "")
			for _, text := range []string{b.String(), shuffled} {
				got, problems, err := ReadMFTs(name, []byte(text), f, Options{})
				if err != nil || problems != nil || masks(got) != masks(tables) {
					t.Fatalf("%s: %v %v\n%s", name, err, problems, text)
				}
			}
		}
	})
}

// FuzzReadMFTs: an error means no result; a lenient reader agrees with a strict
// one that is content, and never fails once it knows the form; what was read
// can be written and read again.
func FuzzReadMFTs(f *testing.F) {
	fab := pair(f)
	for _, s := range []string{mcA + mcB, mcB + mcA, mftA + mftB, mcA + mcA, "", "\n", strings.ReplaceAll(mcA, "\n", "\r\n"), "Switch 0xb\n0xc000 : 0x004 0x001\n0xFFFF : 0x001 \n",
		mftHeadA + "0xc000      0006\n0xc001      x\n0xfffe                 \n3 mlids dumped\n*** WARNING ***\n"} {
		f.Add([]byte(s))
	}
	tables := mustReadMFTs(f, "seed", []byte(mcA+mcB), fab)
	f.Add(text(f, func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{Lean: true}, 0) }))
	f.Fuzz(func(t *testing.T, data []byte) {
		lenient, ok := readTwice(t, data, of(fab, ReadMFTs), equally(masks), MCFDBs, MFTs)
		if !ok {
			return
		}
		for _, l := range lenient.MLIDs() {
			for i, p := range lenient.Ports(l) {
				if s := fab.Owner(p); !fab.IsSwitch(s) || i > 0 && p <= lenient.Ports(l)[i-1] {
					t.Fatalf("ports %v", lenient.Ports(l))
				}
			}
		}
		for _, write := range []func(io.Writer) error{
			func(w io.Writer) error { return WriteMCFDBs(w, lenient, WriteOptions{}) },
			func(w io.Writer) error { return WriteMFTs(w, lenient, WriteOptions{}, 0) },
			func(w io.Writer) error { return WriteMFTs(w, lenient, WriteOptions{Lean: true}, 0) },
		} {
			again := text(t, write)
			got, problems, err := ReadMFTs("again", again, fab, Options{})
			if err != nil || problems != nil || masks(got) != masks(lenient) {
				t.Fatalf("%v %v\n%s", err, problems, again)
			}
		}
	})
}

// benchmarkMFTs is 10,000 MLIDs, each in masks of 32 of 320 switches with 48
// ports: 720,000 ports in masks.
func benchmarkMFTs(b *testing.B) *mft.Tables {
	b.Helper()
	var build fabric.Builder
	for s := range 320 {
		short.Must(build.AddNode(fabric.Node{GUID: fabric.GUID(1 + s), Type: fabric.Switch, NumPorts: 48, Description: "switch"}))(b)
	}
	f := short.Must(build.Build())(b)
	t := mft.NewTables(f)
	for m := range 10000 {
		var ports []fabric.PortID
		for s := m % 10; s < 320; s += 10 {
			for n := m % 20; n < 49; n += 20 {
				ports = append(ports, f.Port(fabric.NodeID(s), fabric.PortNum(n)))
			}
		}
		t.Add(mft.MinMLID+1+fabric.LID(m), ports)
	}
	return t
}

// Rows that come again and again are compared with the first of their MLID, however
// many others there are.
func TestRepeatedRows(t *testing.T) {
	f := meshFabric(t, []int{4, 3}, true)
	var b strings.Builder
	fmt.Fprintf(&b, "\nSwitch %s\nLID    : Out Port(s)\n", f.Node(0).GUID)
	const rows, again = 16000, 20000
	for i := range rows - 1 {
		fmt.Fprintf(&b, "0x%04X : 0x001 \n", int(mft.MinMLID)+i)
	}
	for range 1 + again {
		fmt.Fprintf(&b, "0x%04X : 0x002 \n", int(mft.MinMLID)+rows-1)
	}
	if _, problems, err := ReadMFTs("in", []byte(b.String()), f, Options{}); err != nil {
		t.Error(err, problems)
	}
	fmt.Fprintf(&b, "0x%04X : 0x001 \n", int(mft.MinMLID)+rows-1)
	_, _, err := ReadMFTs("in", []byte(b.String()), f, Options{})
	var at *fabric.ParseError
	if !errors.As(err, &at) || at.Line != 3+rows+again+1 {
		t.Errorf("%v, want an error in line %d", err, 3+rows+again+1)
	}
}
