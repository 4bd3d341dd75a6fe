package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// pair is two switches with four ports, LIDs 1 and 2, joined by their ports 1,
// and a host on port 2 of each, LIDs 3 and 4.
func pair(t testing.TB) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	for i := range 4 {
		n := fabric.Node{GUID: 0xa, Type: fabric.Switch, NumPorts: 4, Description: "a"}
		switch i {
		case 1:
			n.GUID, n.Description = 0xb, "b"
		case 2:
			n = fabric.Node{GUID: 0xc0, Type: fabric.CA, NumPorts: 1, Description: "c"}
		case 3:
			n = fabric.Node{GUID: 0xd0, Type: fabric.CA, NumPorts: 1, Description: "d"}
		}
		short.Must(b.AddNode(n))(t)
		short.Check(t, b.SetPort(i, fabric.PortNum(i/2), 0, fabric.LID(i+1), 0))
	}
	short.Check(t, b.Connect(0, 1, 1, 1, fabric.Link{Width: 4, Speed: fabric.NDR}))
	short.Check(t, b.Connect(0, 2, 2, 1, fabric.Link{}))
	short.Check(t, b.Connect(1, 2, 3, 1, fabric.Link{}))
	return short.Must(b.Build())(t)
}

// rows are tables as text: a line for each switch, NoPath as a dash.
func rows(t *lft.Tables) string {
	var b strings.Builder
	for s := range fabric.NodeID(t.Switches()) {
		for i, p := range t.Row(s) {
			if i > 0 {
				b.WriteByte(' ')
			}
			if p == fabric.NoPath {
				b.WriteByte('-')
			} else {
				fmt.Fprint(&b, p)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// problemLines are Problems as text.
func problemLines(list []fabric.Problem) string {
	var b strings.Builder
	for i := range list {
		fmt.Fprintln(&b, list[i].String())
	}
	return b.String()
}

const (
	headA = "Unicast lids [0-4] of switch Lid 1 guid 0x000000000000000a ('a'):\n"
	headB = "Unicast lids [0-4] of switch Lid 2 guid 0x000000000000000b ('b'):\n"
	tail  = "4 lids dumped\n"
	tabA  = headA + "0x0001 000\n0x0002 001\n0x0003 002\n0x0004 001\n" + tail
	tabB  = headB + "0x0001 001\n0x0002 000\n0x0003 001\n0x0004 002\n" + tail
	rowsA = "- 0 1 2 1\n"
	rowsB = "- 1 0 1 2\n"
	none  = "- - - - -\n"

	fdbA = "dump_ucast_routes: Switch 0x000000000000000a\nLID    : Port : Hops : Optimal\n" +
		"0x0001 : 000  : 00   : yes\n0x0002 : 001  : 01   : yes\n0x0003 : 002  : 01   : yes\n0x0004 : 001  : 02   : yes\n"
	fdbB = "dump_ucast_routes: Switch 0x000000000000000b\nLID    : Port : Hops : Optimal\n" +
		"0x0001 : 001  : 01   : yes\n0x0002 : 000  : 00   : yes\n0x0003 : 001  : 02   : yes\n0x0004 : 002  : 01   : yes\n"
)

// readCase is a text and what is read from it.
type readCase struct {
	name, text string
	err        string // of the strict reader, "" for none
	want       string // what is read, leniently where there is an error; "-" for nothing
	problems   string
}

// readCases pins what a reader of a form makes of texts, strictly and leniently.
func readCases[T any](t *testing.T, read func(string, []byte, Options) (T, []fabric.Problem, error), show func(T) string, cases []readCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var none T
			for _, opt := range []Options{{}, {Lenient: true}} {
				got, problems, err := read("in", []byte(c.text), opt)
				if c.err == "" || opt.Lenient && c.want != "-" {
					short.Check(t, err)
					short.Diff(t, show(got), c.want, "read")
					short.Diff(t, problemLines(problems), c.problems, "problems")
					continue
				}
				short.Diff(t, fmt.Sprint(err), c.err, "error")
				var parse *fabric.ParseError
				if !errors.As(err, &parse) || !reflect.DeepEqual(got, none) || problems != nil {
					t.Errorf("%T, %v, %v", err, got, problems)
				}
			}
		})
	}
}

// TestReadLFTs pins what is read from odd and from wrong text, by a strict and
// by a lenient reader, and the exact messages.
func TestReadLFTs(t *testing.T) {
	f := pair(t)
	wide := strings.ReplaceAll(rowsA+rowsB, "\n", " - -\n")
	readCases(t, of(f, ReadLFTs), rows, []readCase{
		{"both", tabA + tabB, "", rowsA + rowsB, ""},
		{"CRLF", strings.ReplaceAll(tabA+tabB, "\n", "\r\n"), "", rowsA + rowsB, ""},
		{"comments, blank lines, unpadded numbers, other order",
			"# made by hand\n\nUnicast lids [0x0-0x4] of switch DR path slid 0; dlid 0; 0,1 guid 0xb (b):\n\n  0x4 2 # portguid 0xd1: x\n# more\n0x1 1\n0x3\t1\n" +
				"0x2 0\n4 valid lids dumped \n\n*** WARNING ***: this command has been replaced by dump_fts\n\n" + tabA,
			"", rowsA + rowsB, ""},
		{"illegal ports are no path", headA + "0x0001 255 : (illegal port)\n0x0002 001\n" + tail + tabB, "", "- - 1 - -\n" + rowsB, ""},
		{"a row twice", headA + "0x0001 000\n0x0002 001\n0x0001 000\n" + tail + tabB, "", "- 0 1 - -\n" + rowsB, ""},
		{"LIDs beyond the fabric's and the header's", strings.Replace(tabA, tail, "0x0006 003\n"+tail, 1) + tabB, "",
			strings.Replace(wide, "1 - -\n", "1 - 3\n", 1), ""},
		{"highest LID of the header", strings.ReplaceAll(strings.ReplaceAll(tabA+tabB, "[0-4]", "[0-6]"), "4 lids", "6 lids"), "", wide, ""},
		{"no table", tabB, "", none + rowsB, "in: missing: no table of switch 0x000000000000000a \"a\"\n"},
		{"other owner", strings.Replace(tabA+tabB, "0x0003 002", "0x0003 002 # Channel Adapter portguid 0x00000000000000d1: 'd'", 1), "", rowsA + rowsB,
			"in:4: contradiction: LID 3 belongs to 0x00000000000000c1, \"c\"[1], in the fabric, here to 0x00000000000000d1\n"},
		{"other owner, in many rows, and none",
			strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(tabA+tabB, "0x0003 00", "0x0003 00# portguid 0xd1"), "0# portguid 0xd1", "0"), "0x0004 002", "0x0004 002 # portguid 0x1\n0x0005 001 # portguid 0x2"), "",
			"- 0 1 2 1 -\n- 1 0 1 2 1\n",
			"in:11: contradiction: LID 4 belongs to 0x00000000000000d1, \"d\"[1], in the fabric, here to 0x0000000000000001\n" +
				"in:12: contradiction: LID 5 belongs to no port of the fabric, here to 0x0000000000000002\n"},
		{"other LID of a switch", strings.Replace(tabA, "Lid 1", "Lid 9", 1) + tabB, "", rowsA + rowsB,
			"in:1: contradiction: switch 0x000000000000000a has LID 1 in the fabric, here 9\n"},

		{"LID too high", headA + "0xc000 001 # x\n" + tail + tabB,
			"in:2: LID 0xc000, want at most 0xbfff\n    0xc000 001 # x", none + rowsB, "in:2: dropped: LID 0xc000, want at most 0xbfff\n"},
		{"LID of five digits", headA + "0x10001 001 # x\n" + tail + tabB,
			"in:2: LID 0x10001, want at most 0xbfff\n    0x10001 001 # x", none + rowsB, "in:2: dropped: LID 0x10001, want at most 0xbfff\n"},
		{"port too high", headA + "0x0001 000\n0x0002 005 # x\n" + tail + tabB,
			"in:3: port 5 of switch 0x000000000000000a, which has ports 0 to 4\n    0x0002 005 # x", "- 0 - - -\n" + rowsB,
			"in:3: dropped: port 5 of switch 0x000000000000000a, which has ports 0 to 4\n"},
		{"port that would wrap", headA + "0x0002 257\n" + tail + tabB,
			"in:2: port 257 of switch 0x000000000000000a, which has ports 0 to 4\n    0x0002 257", none + rowsB,
			"in:2: dropped: port 257 of switch 0x000000000000000a, which has ports 0 to 4\n"},
		{"unknown switch", strings.Replace(tabA, "0a (", "0e (", 1) + tabB,
			"in:1: the fabric has no switch 0x000000000000000e\n    Unicast lids [0-4] of switch Lid 1 guid 0x000000000000000e ('a'):", none + rowsB,
			"in: missing: no table of switch 0x000000000000000a \"a\"\nin:1: dropped: the fabric has no switch 0x000000000000000e\n"},
		{"host for a switch", strings.Replace(tabA, "0a (", "c0 (", 1) + tabA + tabB,
			"in:1: the fabric has no switch 0x00000000000000c0\n    Unicast lids [0-4] of switch Lid 1 guid 0x00000000000000c0 ('a'):", rowsA + rowsB,
			"in:1: dropped: the fabric has no switch 0x00000000000000c0\n"},
		{"switch twice", tabA + tabB + strings.ReplaceAll(tabA, " 001\n", " 003\n"),
			"in:13: a second section for switch 0x000000000000000a, the first is in line 1\n    Unicast lids [0-4] of switch Lid 1 guid 0x000000000000000a ('a'):", rowsA + rowsB,
			"in:13: dropped: a second section for switch 0x000000000000000a, the first is in line 1\n"},
		{"LID twice", headA + "0x0001 000\n0x0002 001\n0x0001 002\n" + tail + tabB,
			"in:4: a second row for LID 1 of switch 0x000000000000000a, with port 2; the first has 0\n    0x0001 002", "- 0 1 - -\n" + rowsB,
			"in:4: dropped: a second row for LID 1 of switch 0x000000000000000a, with port 2; the first has 0\n"},
		{"LID twice, first without path", headA + "0x0001 255\n0x0001 002\n" + tail + tabB,
			"in:3: a second row for LID 1 of switch 0x000000000000000a, with port 2; the first has 255\n    0x0001 002", none + rowsB,
			"in:3: dropped: a second row for LID 1 of switch 0x000000000000000a, with port 2; the first has 255\n"},
		{"LID twice, then without path", headA + "0x0001 000\n0x0001 255\n" + tail + tabB,
			"in:3: a second row for LID 1 of switch 0x000000000000000a, with port 255; the first has 0\n    0x0001 255", "- 0 - - -\n" + rowsB,
			"in:3: dropped: a second row for LID 1 of switch 0x000000000000000a, with port 255; the first has 0\n"},
		{"no row", headA + "0x0001 000\nhello\n" + tail + tabB,
			"in:3: want a row such as 0x0001 002 # .., or N lids dumped\n    hello", "- 0 - - -\n" + rowsB,
			"in:3: dropped: want a row such as 0x0001 002 # .., or N lids dumped\n"},
		{"digits run together", headA + "0x0001000\n0x0002 001x\n0x0003 0021 # y\n" + tail + tabB,
			"in:2: want a row such as 0x0001 002 # .., or N lids dumped\n    0x0001000", none + rowsB,
			"in:2: dropped: want a row such as 0x0001 002 # .., or N lids dumped\nin:3: dropped: want a row such as 0x0001 002 # .., or N lids dumped\n" +
				"in:4: dropped: port 21 of switch 0x000000000000000a, which has ports 0 to 4\n"},
		{"cut in a row", tabA + tabB[:len(tabB)-len(tail)-4],
			"in:11: want a row such as 0x0001 002 # .., or N lids dumped\n    0x0004 ", rowsA + "- 1 0 1 -\n",
			"in:11: dropped: want a row such as 0x0001 002 # .., or N lids dumped\n" +
				"in:11: truncated: the section of switch 0x000000000000000b does not end with a line N lids dumped: the file is cut short\n"},
		{"cut after a row", tabA + tabB[:len(tabB)-len(tail)],
			"in:11: the section of switch 0x000000000000000b does not end with a line N lids dumped: the file is cut short\n    0x0004 002", rowsA + rowsB,
			"in:11: truncated: the section of switch 0x000000000000000b does not end with a line N lids dumped: the file is cut short\n"},
		{"cut in the middle of the file", tabA[:len(tabA)-len(tail)] + tabB,
			"in:5: the section of switch 0x000000000000000a does not end with a line N lids dumped: the file is cut short\n    0x0004 001", rowsA + rowsB,
			"in:5: truncated: the section of switch 0x000000000000000a does not end with a line N lids dumped: the file is cut short\n"},
		{"other end", strings.Replace(tabA, "4 lids", "5 lids", 1) + tabB,
			"in:6: 5 lids dumped, but the section has 4 as the highest LID: the file is cut short\n    5 lids dumped", rowsA + rowsB,
			"in:6: truncated: 5 lids dumped, but the section has 4 as the highest LID: the file is cut short\n"},
		{"text after the end", tabA + "0x0001 003\n" + tabB,
			"in:7: text between the end of a section and the next one; want Unicast lids ..\n    0x0001 003", rowsA + rowsB,
			"in:7: dropped: text between the end of a section and the next one; want Unicast lids ..\n"},
		{"a row after the end", strings.Replace(tabA, "0x0004 001\n"+tail, tail+"0x0004 001\n", 1) + tabB,
			"in:6: text between the end of a section and the next one; want Unicast lids ..\n    0x0004 001", "- 0 1 2 -\n" + rowsB,
			"in:6: dropped: text between the end of a section and the next one; want Unicast lids ..\n"},
		{"no range", "Unicast lids of switch\n" + tabA + tabB,
			"in:1: no range of LIDs; want Unicast lids [0-N] of switch Lid L guid 0x0123456789abcdef\n    Unicast lids of switch", rowsA + rowsB,
			"in:1: dropped: no range of LIDs; want Unicast lids [0-N] of switch Lid L guid 0x0123456789abcdef\n"},
		{"range too wide", strings.Replace(tabA, "[0-4]", "[0-49152]", 1) + tabB,
			"in:1: highest LID 49152, above 49151; want Unicast lids [0-N] of switch Lid L guid 0x0123456789abcdef\n    Unicast lids [0-49152] of switch Lid 1 guid 0x000000000000000a ('a'):", none + rowsB,
			"in: missing: no table of switch 0x000000000000000a \"a\"\nin:1: dropped: highest LID 49152, above 49151; want Unicast lids [0-N] of switch Lid L guid 0x0123456789abcdef\n"},
		{"no GUID", strings.Replace(tabA, " guid", "", 1) + tabB,
			"in:1: no GUID; want Unicast lids [0-N] of switch Lid L guid 0x0123456789abcdef\n    Unicast lids [0-4] of switch Lid 1 0x000000000000000a ('a'):", none + rowsB,
			"in: missing: no table of switch 0x000000000000000a \"a\"\nin:1: dropped: no GUID; want Unicast lids [0-N] of switch Lid L guid 0x0123456789abcdef\n"},
		{"long GUID", strings.Replace(tabA, "guid 0x", "guid 0x0", 1) + tabB,
			"in:1: bad GUID; want Unicast lids [0-N] of switch Lid L guid 0x0123456789abcdef\n    Unicast lids [0-4] of switch Lid 1 guid 0x0000000000000000a ('a'):", none + rowsB,
			"in: missing: no table of switch 0x000000000000000a \"a\"\nin:1: dropped: bad GUID; want Unicast lids [0-N] of switch Lid L guid 0x0123456789abcdef\n"},

		{"fdbs", fdbA + fdbB, "", rowsA + rowsB, ""},
		{"fdbs of old OpenSM", "__osm_ucast_mgr_" + fdbA + "\n__osm_ucast_mgr_" + fdbB, "", rowsA + rowsB, ""},
		{"fdbs of ibdiagnet", "# made by\nFile version: 1\n\nosm_ucast_mgr_" + strings.ReplaceAll(fdbA, "00000000000000", "") + "\nosm_ucast_mgr_" + strings.ReplaceAll(fdbB, "00000000000000", "") + "\n", "", rowsA + rowsB, ""},
		{"fdbs, all that OpenSM prints", strings.NewReplacer(": 01   : yes", ": HOPS UNKNOWN", ": 02   : yes", ": 03   : No 2 hop path possible via port 1!", "0x0001 : 000  : 00   : yes", "0x0001 : UNREACHABLE").Replace(fdbA) + fdbB, "",
			"- - 1 2 1\n" + rowsB, ""},
		{"fdbs, switches of unequal height", "osm_ucast_mgr_" + fdbA + "osm_ucast_mgr_" + fdbB[:len(fdbB)-27], "", rowsA + "- 1 0 1 -\n", ""},
		{"private tables",
			strings.Replace(fdbA, "\n", "\nPLFT_NUM: 0\n", 1) + "PLFT_NUM: 1\n0x0001 : 003  : 00   : yes\nfree\n" + strings.Replace(fdbB, "\n", "\nPLFT_NUM: 0\n", 1), "", rowsA + rowsB,
			"in:2: private tables: 2 switches have private tables (PLFT_NUM), as for adaptive routing: the table read here is not all of the path\n"},
		{"private tables in sections of their own",
			fdbA + strings.Replace(fdbB, "\n", "\nPLFT_NUM: 0\n", 1) + strings.Replace(strings.ReplaceAll(fdbB, ": 001", ": 003"), "\n", "\nPLFT_NUM: 1\n", 1), "", rowsA + rowsB,
			"in:8: private tables: 1 switches have private tables (PLFT_NUM), as for adaptive routing: the table read here is not all of the path\n"},
		{"fdbs cut in a row", fdbA + fdbB[:len(fdbB)-3],
			"in:12: want a row such as 0x0001 : 002  : 01   : yes, or 0x0001 : UNREACHABLE\n    0x0004 : 002  : 01   : y", rowsA + "- 1 0 1 -\n",
			"in:12: dropped: want a row such as 0x0001 : 002  : 01   : yes, or 0x0001 : UNREACHABLE\n" +
				"in:12: truncated: the last section has fewer rows than every other one: the file is cut short\n"},
		{"fdbs cut after a row", fdbA + fdbB[:len(fdbB)-27],
			"in:11: the last section has fewer rows than every other one: the file is cut short\n    0x0003 : 001  : 02   : yes", rowsA + "- 1 0 1 -\n",
			"in:11: truncated: the last section has fewer rows than every other one: the file is cut short\n"},
		{"fdbs, LID twice", fdbA + "0x0002 : 002  : 01   : yes\n" + fdbB,
			"in:7: a second row for LID 2 of switch 0x000000000000000a, with port 2; the first has 1\n    0x0002 : 002  : 01   : yes", rowsA + rowsB,
			"in:7: dropped: a second row for LID 2 of switch 0x000000000000000a, with port 2; the first has 1\n"},
		{"fdbs, port too high", strings.Replace(fdbA, ": 002", ": 005", 1) + fdbB,
			"in:5: port 5 of switch 0x000000000000000a, which has ports 0 to 4\n    0x0003 : 005  : 01   : yes", "- 0 1 - 1\n" + rowsB,
			"in:5: dropped: port 5 of switch 0x000000000000000a, which has ports 0 to 4\n"},
		{"fdbs, no LID", fdbA + "0x : 001  : 01   : yes\n0x0001\n" + fdbB,
			"in:7: want a row such as 0x0001 : 002  : 01   : yes, or 0x0001 : UNREACHABLE\n    0x : 001  : 01   : yes", rowsA + rowsB,
			"in:7: dropped: want a row such as 0x0001 : 002  : 01   : yes, or 0x0001 : UNREACHABLE\nin:8: dropped: want a row such as 0x0001 : 002  : 01   : yes, or 0x0001 : UNREACHABLE\n"},
		{"fdbs, bad GUID", "dump_ucast_routes: Switch a\n" + fdbA + fdbB,
			"in:1: bad GUID; want dump_ucast_routes: Switch 0x0123456789abcdef\n    dump_ucast_routes: Switch a", rowsA + rowsB,
			"in:1: dropped: bad GUID; want dump_ucast_routes: Switch 0x0123456789abcdef\n"},
		{"bad PLFT", strings.Replace(fdbA, "\n", "\nPLFT_NUM: x\n", 1) + fdbB,
			"in:2: bad number of a private table; want PLFT_NUM: 0\n    PLFT_NUM: x", rowsA + rowsB,
			"in:2: dropped: bad number of a private table; want PLFT_NUM: 0\n"},
		{"first error of several", strings.Replace(tabA, "0x0003", "0xc003", 1) + strings.Replace(tabB, "0b (", "0e (", 1) + headB + "x\n",
			"in:4: LID 0xc003, want at most 0xbfff\n    0xc003 002", "- 0 1 - 1\n" + none,
			"in:4: dropped: LID 0xc003, want at most 0xbfff\nin:7: dropped: the fabric has no switch 0x000000000000000e\n" +
				"in:14: dropped: want a row such as 0x0001 002 # .., or N lids dumped\n" +
				"in:14: truncated: the section of switch 0x000000000000000b does not end with a line N lids dumped: the file is cut short\n"},
	})
}

// TestOtherForms pins what is said of files that are something else, by
// lenient readers too.
func TestOtherForms(t *testing.T) {
	f := pair(t)
	for _, c := range []struct{ name, text, err string }{
		{"empty", "", "in: no forwarding tables, the file is empty; want opensm-lfts.dump, opensm.fdbs, or what ibroute or dump_lfts print"},
		{"blank", "\n# x\n\n", "in: no forwarding tables, the file is empty; want opensm-lfts.dump, opensm.fdbs, or what ibroute or dump_lfts print"},
		{"anything", "\nhello\n", "in:2: no forwarding tables; want opensm-lfts.dump, opensm.fdbs, or what ibroute or dump_lfts print\n    hello"},
		{"mcfdbs", "\nSwitch 0x000000000000000a\nLID    : Out Port(s)\n", "in: this is opensm.mcfdbs; want opensm-lfts.dump, opensm.fdbs, or what ibroute or dump_lfts print"},
		{"mfts", "Multicast mlids [0xc000-0xc3ff] of switch\n", "in: this is dump_mfts text; want opensm-lfts.dump, opensm.fdbs, or what ibroute or dump_lfts print"},
		{"sl2vl", "Switch 0x000000000000000a, base LID 1, \"a\"\n", "in: this is opensm-sl2vl.dump; want opensm-lfts.dump, opensm.fdbs, or what ibroute or dump_lfts print"},
		{"guid2lid", "0x000000000000000a 0x0001 0x0001\n", "in: this is guid2lid; want opensm-lfts.dump, opensm.fdbs, or what ibroute or dump_lfts print"},
		{"lid matrix", "Switch: guid 0x000000000000000a\n", "in: this is opensm-lid-matrix.dump; want opensm-lfts.dump, opensm.fdbs, or what ibroute or dump_lfts print"},
		{"subnet list", "{ CA Ports:01\n", "in: this is opensm-subnet.lst; want opensm-lfts.dump, opensm.fdbs, or what ibroute or dump_lfts print"},
	} {
		for _, lenient := range []bool{false, true} {
			tables, problems, err := ReadLFTs("in", []byte(c.text), f, Options{Lenient: lenient})
			if err == nil || err.Error() != c.err || tables != nil || problems != nil {
				t.Errorf("%s: %v, %v, %v; want %s", c.name, tables, problems, err, c.err)
			}
		}
	}
}

// TestManyProblems reads a file with more wrong lines than are listed.
func TestManyProblems(t *testing.T) {
	f := pair(t)
	data := headA + strings.Repeat("x\n", maxFaults+5) + tail + headB + strings.Repeat("y\n", 7) + tail
	_, problems, err := ReadLFTs("in", []byte(data), f, Options{Lenient: true})
	if err != nil || len(problems) != maxFaults+1 {
		t.Fatal(len(problems), err)
	}
	short.Equal(t, problems[maxFaults].String(), "in: dropped: 12 more problems")
	short.Equal(t, problems[maxFaults-1].Line, maxFaults+1, "the last one is of line")
}

// TestGUID2LID reads LIDs, right and wrong ones.
func TestGUID2LID(t *testing.T) {
	readCases(t, ReadGUID2LID, func(list []lft.LIDRange) string { return fmt.Sprint(list) }, []readCase{
		{"empty", "", "", "[]", ""},
		{"two", "0x000000000000000b 0x0004 0x0007\n\n0x000000000000000a 0x0001 0x0001\n\n", "", "[{0x000000000000000a 1 1} {0x000000000000000b 4 7}]", ""},
		{"short", "0xb\t0x4  0x7 \r\n\r\n\r\n", "", "[{0x000000000000000b 4 7}]", ""},
		{"no empty line", "0xb 0x4 0x7\n0xa 0x1 0x1\n", "", "[{0x000000000000000a 1 1} {0x000000000000000b 4 7}]",
			"in:2: contradiction: no empty line before port 0x000000000000000a: OpenSM takes this line as part of the one before\n"},
		{"no LID", "0xb 0x4 0x7\n\n0xa 0x1\n", "in:3: want a port GUID and its first and last LID: 0x0123456789abcdef 0x0001 0x0001\n    0xa 0x1", "[{0x000000000000000b 4 7}]",
			"in:3: dropped: want a port GUID and its first and last LID: 0x0123456789abcdef 0x0001 0x0001\n"},
		{"too much", "0xb 0x4 0x7 x\n", "in:1: want a port GUID and its first and last LID: 0x0123456789abcdef 0x0001 0x0001\n    0xb 0x4 0x7 x", "[]",
			"in:1: dropped: want a port GUID and its first and last LID: 0x0123456789abcdef 0x0001 0x0001\n"},
		{"LID that would wrap", "0xb 0x10001 0x10001\n", "in:1: want a port GUID and its first and last LID: 0x0123456789abcdef 0x0001 0x0001\n    0xb 0x10001 0x10001", "[]",
			"in:1: dropped: want a port GUID and its first and last LID: 0x0123456789abcdef 0x0001 0x0001\n"},
		{"GUID 0", "0x0 0x4 0x7\n", "in:1: port GUID 0\n    0x0 0x4 0x7", "[]", "in:1: dropped: port GUID 0\n"},
		{"LID 0", "0xb 0x0 0x0\n", "in:1: LIDs 0x0000 to 0x0000, want 0x0001 to 0xbfff\n    0xb 0x0 0x0", "[]", "in:1: dropped: LIDs 0x0000 to 0x0000, want 0x0001 to 0xbfff\n"},
		{"multicast LID", "0xb 0xc000 0xc000\n", "in:1: LIDs 0xc000 to 0xc000, want 0x0001 to 0xbfff\n    0xb 0xc000 0xc000", "[]", "in:1: dropped: LIDs 0xc000 to 0xc000, want 0x0001 to 0xbfff\n"},
		{"backwards", "0xb 0x0007 0x0004\n", "in:1: LIDs 0x0007 to 0x0004: want as many as an LMC of 0 to 7 has, the first a multiple of their number\n    0xb 0x0007 0x0004", "[]",
			"in:1: dropped: LIDs 0x0007 to 0x0004: want as many as an LMC of 0 to 7 has, the first a multiple of their number\n"},
		{"not aligned", "0xb 0x0003 0x0004\n", "in:1: LIDs 0x0003 to 0x0004: want as many as an LMC of 0 to 7 has, the first a multiple of their number\n    0xb 0x0003 0x0004", "[]",
			"in:1: dropped: LIDs 0x0003 to 0x0004: want as many as an LMC of 0 to 7 has, the first a multiple of their number\n"},
		{"256 of them", "0xb 0x0100 0x01ff\n", "in:1: LIDs 0x0100 to 0x01ff: want as many as an LMC of 0 to 7 has, the first a multiple of their number\n    0xb 0x0100 0x01ff", "[]",
			"in:1: dropped: LIDs 0x0100 to 0x01ff: want as many as an LMC of 0 to 7 has, the first a multiple of their number\n"},
		{"GUID twice", "0xb 0x1 0x1\n\n0xb 0x2 0x2\n", "in:3: a second record for port 0x000000000000000b, the first is in line 1\n    0xb 0x2 0x2", "[{0x000000000000000b 1 1}]",
			"in:3: dropped: a second record for port 0x000000000000000b, the first is in line 1\n"},
		{"LID twice", "0xb 0x4 0x7\n\n0xa 0x6 0x6\n", "in:3: LID 0x0006 belongs to port 0x000000000000000b already\n    0xa 0x6 0x6", "[{0x000000000000000b 4 7}]",
			"in:3: dropped: LID 0x0006 belongs to port 0x000000000000000b already\n"},
		{"GUIDs twice", "0xa 0x1 0x1\n\n0xb 0x2 0x2\n\n0xa 0x3 0x3\n\n0xb 0x4 0x4\n", "in:5: a second record for port 0x000000000000000a, the first is in line 1\n    0xa 0x3 0x3", "[{0x000000000000000a 1 1} {0x000000000000000b 2 2}]",
			"in:5: dropped: a second record for port 0x000000000000000a, the first is in line 1\nin:7: dropped: a second record for port 0x000000000000000b, the first is in line 3\n"},
		{"an empty line behind what is left out", "0xb 0x4 0x7\n0x000000000000000b 0x0008 0x0008\n\n0xc 0x9 0x9\n", "in:2: a second record for port 0x000000000000000b, the first is in line 1\n    0x000000000000000b 0x0008 0x0008",
			"[{0x000000000000000b 4 7} {0x000000000000000c 9 9}]", "in:2: dropped: a second record for port 0x000000000000000b, the first is in line 1\n"},
	})
}

// describe is a fabric as text: nodes, then cables.
func describe(f *fabric.Fabric) string {
	var b strings.Builder
	for n := range fabric.NodeID(f.NumNodes()) {
		node := *f.Node(n)
		node.Order = 0
		fmt.Fprintf(&b, "%+v", node)
		for p := fabric.PortNum(0); p <= node.NumPorts; p++ {
			if at := f.Port(n, p); f.LID(at) > 0 {
				fmt.Fprintf(&b, " %d: %s LID %d LMC %d", p, f.PortGUID(at), f.LID(at), f.LMC(at))
			}
		}
		b.WriteByte('\n')
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if peer := f.Peer(p); peer > p {
			fmt.Fprintf(&b, "%s %s {Width:%d Speed:%s}\n", f.PortName(p), f.PortName(peer), f.Link(p).Width, f.Link(p).Speed)
		}
	}
	return b.String()
}

// column finds the column behind the line of an error.
var column = regexp.MustCompile(`^(in:\d+):\d+`)

// TestSubnetList reads lists of links, right and wrong ones.
func TestSubnetList(t *testing.T) {
	const (
		a  = "{ SW Ports:04 SystemGUID:0000000000000000 NodeGUID:000000000000000a PortGUID:000000000000000a VenID:0002C9 DevID:B924 Rev:000000A1 {a} LID:0001 PN:01 }"
		a2 = "{ SW-SM Ports:04 SystemGUID:0000000000000000 NodeGUID:000000000000000a PortGUID:000000000000000a VenID:000002C9 DevID:B9240000 Rev:000000A0 {a} LID:0001 PN:02 }"
		b  = "{ SW Ports:04 SystemGUID:0000000000000000 NodeGUID:000000000000000b PortGUID:000000000000000b VenID:000002C9 DevID:90000 Rev:000000A1 {b} LID:0002 PN:01 }"
		c  = "{ CA Ports:01 SystemGUID:0000000000000000 NodeGUID:00000000000000c0 PortGUID:00000000000000c1 VenID:000002C9 DevID:10030000 Rev:000000A1 {c} LID:0003 PN:01 }"
		up = " PHY=4x LOG=ACT SPD=10\n"

		nodeA = "{GUID:0x000000000000000a SystemGUID:0x0000000000000000 Type:Switch NumPorts:4 EnhancedPort0:false Order:0 VendorID:713 DeviceID:47396 Description:a} 0: 0x000000000000000a LID 1 LMC 0\n"
		nodeB = "{GUID:0x000000000000000b SystemGUID:0x0000000000000000 Type:Switch NumPorts:4 EnhancedPort0:false Order:0 VendorID:713 DeviceID:9 Description:b} 0: 0x000000000000000b LID 2 LMC 0\n"
		nodeC = "{GUID:0x00000000000000c0 SystemGUID:0x0000000000000000 Type:Channel Adapter NumPorts:1 EnhancedPort0:false Order:0 VendorID:713 DeviceID:4099 Description:c} 1: 0x00000000000000c1 LID 3 LMC 0\n"
		cable = "\"a\"[1] \"b\"[1] {Width:4 Speed:QDR}\n"
		host  = "\"a\"[2] \"c\"[1] {Width:4 Speed:QDR}\n"

		ab      = a + " " + b + up
		ba      = b + " " + a + up
		ac      = a2 + " " + c + up
		want    = errText
		foreign = "not a line of topology text: want what ibnetdiscover prints on standard output; in the middle of the text only --lenient passes over it"
	)
	all := nodeA + nodeB + nodeC + cable + host
	// What stands where an error has its column, by case; in the others the whole line is meant.
	at := map[string]string{
		"cut short": "", "cut in the neighbour": "0", "cut in the state": " SPD",
		"node type": "XX Ports:01", "port beyond": "05 }", "port 0": "00 }", "too many ports": "FF System", "ports that would wrap": "101 System", "no ports": "00 System",
		"LID of five digits": "10003 PN",
		"GUID 0":             "0 PortGUID", "vendor": "010002C9", "device": "CA Ports:01",
		"width": "3x LOG", "state": "UP SPD", "speed": "11", "no state": "",
		"no neighbour": "", "no GUID": "GUID:000000000000000a PortGUID",
	}
	swap := func(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }
	for _, tc := range []struct{ name, text, err, fabric, problems string }{
		{"one-sided", ab + ac, "", all, ""},
		{"two-sided", "# x\n\n" + ab + ac + ba + c + " " + a2 + up, "", all, ""},
		{"CRLF", strings.ReplaceAll(ab+ac, "\n", "\r\n"), "", all, ""},
		{"no SPD", strings.ReplaceAll(ab+ac, " SPD=10", ""), "", strings.ReplaceAll(all, "QDR", ""), ""},
		{"more fields", strings.ReplaceAll(ab+ac, "SPD=10", "SPD=200 FEC=x"), "", strings.ReplaceAll(all, "QDR", "XDR"), ""},
		{"unknown width and speed", strings.ReplaceAll(strings.ReplaceAll(ab+ac, "SPD=10", "SPD=??"), "PHY=4x", "PHY=??"), "", swap(all, "Width:4 Speed:QDR", "Width:0 Speed:"), ""},
		{"2x, being set up", strings.ReplaceAll(strings.ReplaceAll(ab+ac, "ACT", "INI"), "4x", "2x"), "", strings.ReplaceAll(all, "Width:4", "Width:2"), ""},
		{"device IDs of old lists", swap(ab, "B924 Rev:000000A1", "0000 Rev:00000000") + ac, "", all, ""},
		{"ibdiagnet's router", swap(ab+ac, "CA ", "RTR "), "", strings.Replace(all, "Channel Adapter", "Router", 1), ""},
		{"description with braces", swap(ab+ac, "{b}", "{} PN:01 } {}"), "", swap(all, "Description:b", "Description:} PN:01 } {", "\"b\"", "\"} PN:01 } {\""), ""},
		{"no description", swap(ab+ac, "{b}", "{}"), "", swap(all, "Description:b", "Description:", "\"b\"", "\"\" 0x000000000000000b"), ""},
		{"link down", ab + swap(ac, "ACT", "DWN"), "", nodeA + nodeB + strings.Replace(nodeC, " 1: 0x00000000000000c1 LID 3 LMC 0", "", 1) + cable, "in:2: the link is down; left out\n"},
		{"other descriptions", ab + swap(ac, "{a}", "{x}") + c + " " + swap(a2, "{a}", "{y}") + up, "", all, "in:2: node 0x000000000000000a is described otherwise in a line before\n"},
		{"other device", ab + swap(ac, "B9240000", "B9250000"), "", all, "in:2: node 0x000000000000000a is described otherwise in a line before\n"},
		{"no LIDs", swap(ab, "LID:0001", "LID:0000", "LID:0002", "LID:0000"), "", strings.ReplaceAll(swap(nodeA+nodeB, " 0: 0x000000000000000a LID 1 LMC 0", "", " 0: 0x000000000000000b LID 2 LMC 0", "")+cable, "QDR", "QDR"), ""},
		{"loopback", a + " " + a2 + up, "", nodeA + "\"a\"[1] \"a\"[2] {Width:4 Speed:QDR}\n", ""},

		{"cut short", ab + ac[:len(ac)-200], "in:2: no end of the description: " + want + "\n    ", nodeA + nodeB + cable, "in:2: no end of the description: " + want + "; line dropped\n"},
		{"cut in the neighbour", ab + ac[:len(ac)-50], "in:2: Rev: want 1 to 8 hexadecimal digits\n    ", nodeA + nodeB + cable, "in:2: Rev: want 1 to 8 hexadecimal digits; line dropped\n"},
		{"cut in the state", ab + ac[:len(ac)-4], "in:2: no link speed; want PHY=4x LOG=ACT SPD=10\n    ", nodeA + nodeB + cable, "in:2: no link speed; want PHY=4x LOG=ACT SPD=10; line dropped\n"},
		{"node type", ab + swap(ac, "CA ", "XX "), "in:2: node type \"XX\": want SW, CA or Rt\n    ", nodeA + nodeB + cable, "in:2: node type \"XX\": want SW, CA or Rt; line dropped\n"},
		{"port beyond", ab + swap(ac, "PN:02", "PN:05"), "in:2: PN 0x5: want 0x1 to 0x4\n    ", nodeA + nodeB + cable, "in:2: PN 0x5: want 0x1 to 0x4; line dropped\n"},
		{"port 0", ab + swap(ac, "PN:02", "PN:00"), "in:2: PN 0x0: want 0x1 to 0x4\n    ", nodeA + nodeB + cable, "in:2: PN 0x0: want 0x1 to 0x4; line dropped\n"},
		{"too many ports", ab + swap(ac, "CA Ports:01", "CA Ports:FF"), "in:2: Ports 0xff: want 0x1 to 0xfe\n    ", nodeA + nodeB + cable, "in:2: Ports 0xff: want 0x1 to 0xfe; line dropped\n"},
		{"ports that would wrap", ab + swap(ac, "CA Ports:01", "CA Ports:101"), "in:2: Ports 0x101: want 0x1 to 0xfe\n    ", nodeA + nodeB + cable, "in:2: Ports 0x101: want 0x1 to 0xfe; line dropped\n"},
		{"no ports", ab + swap(ac, "CA Ports:01", "CA Ports:00"), "in:2: Ports 0x0: want 0x1 to 0xfe\n    ", nodeA + nodeB + cable, "in:2: Ports 0x0: want 0x1 to 0xfe; line dropped\n"},
		{"LID too high", ab + swap(ac, "LID:0003", "LID:C000"), "", swap(all, " 1: 0x00000000000000c1 LID 3 LMC 0", ""), "in:2: LID 49152: want 1 to 49151; taken as none\n"},
		{"LID of five digits", ab + swap(ac, "LID:0003", "LID:10003"), "in:2: LID: want 1 to 4 hexadecimal digits\n    ", nodeA + nodeB + cable, "in:2: LID: want 1 to 4 hexadecimal digits; line dropped\n"},
		{"LID of another port", ab + swap(ac, "LID:0003", "LID:0002"), "in:2: LID 2 of CA 0x00000000000000c1[1] is used twice: the port of line 1 has it too\n    ", strings.Replace(all, " 1: 0x00000000000000c1 LID 3 LMC 0", "", 1),
			"in:2: LID 2 of CA 0x00000000000000c1[1] is used twice: the port of line 1 has it too; LID dropped\n"},
		{"one LID", swap(ab, "LID:0002", "LID:0001") + ac, "in:1: LID 1 of SW 0x000000000000000b is used twice: the port of line 1 has it too\n    ", strings.Replace(all, " 0: 0x000000000000000b LID 2 LMC 0", "", 1),
			"in:1: LID 1 of SW 0x000000000000000b is used twice: the port of line 1 has it too; LID dropped\n"},
		{"other LID", ab + swap(ac, "LID:0001", "LID:0009"), "", all, "in:2: LID of SW 0x000000000000000a is 9 here, but 1 in line 1: taken from there\n"},
		{"other LID of a neighbour", ab + ac + ba + c + " " + swap(a2, "LID:0001", "LID:0009") + up, "", all,
			"in:4: LID of SW 0x000000000000000a is 9 here, but 1 in its own line: taken from there\n"},
		{"other number of ports", ab + swap(ac, "Ports:04", "Ports:05"), "in:2: node 0x000000000000000a has 5 ports here, but 4 in line 1\n    ", nodeA + nodeB + cable,
			"in:2: node 0x000000000000000a has 5 ports here, but 4 in line 1; line dropped\n"},
		{"other cable", ab + ac + swap(ba, "PN:01", "PN:02"), "in:3: SW 0x000000000000000b[2] is connected to SW 0x000000000000000a[2] here, but line 2 connects that port to CA 0x00000000000000c1[1]\n    ", all,
			"in:3: SW 0x000000000000000b[2] is connected to SW 0x000000000000000a[2] here, but line 2 connects that port to CA 0x00000000000000c1[1]; link dropped\n"},
		{"other end of a cable", ab + b + " " + a2 + up, "in:1: SW 0x000000000000000a[1] is connected to SW 0x000000000000000b[1] here, but line 2 connects that port to SW 0x000000000000000a[2]\n    ",
			nodeA + nodeB + strings.Replace(cable, "\"a\"[1]", "\"a\"[2]", 1),
			"in:1: SW 0x000000000000000a[1] is connected to SW 0x000000000000000b[1] here, but line 2 connects that port to SW 0x000000000000000a[2]; link dropped\n"},
		{"cable to itself", ab + a2 + " " + a2 + up, "", nodeA + nodeB + cable, "in:2: connected to itself; taken as a port without a cable\n"},
		{"two LIDs of a switch", ab + swap(a2, "0001", "0009") + " " + swap(a, "PN:01", "PN:03") + up, "", nodeA + nodeB + cable + "\"a\"[2] \"a\"[3] {Width:4 Speed:QDR}\n",
			"in:2: LID of SW 0x000000000000000a is 9 here, but 1 in line 1: taken from there\n"},
		{"twice from one end", ab + ac + ac + ab, "", all, ""},
		{"twice from one end, in other words", ab + ac + swap(ac, "4x", "1x"), "in:3: port 2 of SW 0x000000000000000a is there twice: line 2 has it too\n    ", all,
			"in:3: port 2 of SW 0x000000000000000a is there twice: line 2 has it too; line dropped\n"},
		{"GUID 0", ab + swap(ac, "NodeGUID:00000000000000c0", "NodeGUID:0"), "in:2: NodeGUID 0x0: want 0x1 to 0xffffffffffffffff\n    ", nodeA + nodeB + cable, "in:2: NodeGUID 0x0: want 0x1 to 0xffffffffffffffff; line dropped\n"},
		{"vendor", ab + swap(ac, "10030000", "10030000", "VenID:000002C9 DevID:1003", "VenID:010002C9 DevID:1003"), "in:2: VenID 0x10002c9: want 0x0 to 0xffffff\n    ", nodeA + nodeB + cable, "in:2: VenID 0x10002c9: want 0x0 to 0xffffff; line dropped\n"},
		{"device", ab + swap(ac, "10030000", "10030001"), "in:2: device ID 0x10030001, want 16 bits\n    ", nodeA + nodeB + cable, "in:2: device ID 0x10030001, want 16 bits; line dropped\n"},
		{"width", ab + swap(ac, "4x", "3x"), "in:2: link width \"3x\": want one of 1x, 2x, 4x, 8x, 12x, ??, UNKNOWN\n    ", nodeA + nodeB + cable, "in:2: link width \"3x\": want one of 1x, 2x, 4x, 8x, 12x, ??, UNKNOWN; line dropped\n"},
		{"state", ab + swap(ac, "ACT", "UP"), "in:2: link state \"UP\": want one of ACT, ARM, INI, DWN\n    ", nodeA + nodeB + cable, "in:2: link state \"UP\": want one of ACT, ARM, INI, DWN; line dropped\n"},
		{"speed", ab + swap(ac, "SPD=10", "SPD=11"), "in:2: link speed \"11\": want one of ??, 2.5, 5, 10, FDR10, 14, 25, 50, 100, 200, EDR20, UNKNOWN\n    ", nodeA + nodeB + cable, "in:2: link speed \"11\": want one of ??, 2.5, 5, 10, FDR10, 14, 25, 50, 100, 200, EDR20, UNKNOWN; line dropped\n"},
		{"no state", ab + swap(ac, up, "\n"), "in:2: no link width; want PHY=4x LOG=ACT SPD=10\n    ", nodeA + nodeB + cable, "in:2: no link width; want PHY=4x LOG=ACT SPD=10; line dropped\n"},
		{"no line", ab + "hello\n" + ac, "in:2: " + foreign + "\n    hello", all, "in:2: " + foreign + "; line dropped\n"},
		{"no neighbour", ab + a2 + "\n" + ac, "in:2: " + want + "\n    ", all, "in:2: " + want + "; line dropped\n"},
		{"no GUID", ab + swap(ac, "NodeGUID", "GUID"), "in:2: no NodeGUID: " + want + "\n    ", nodeA + nodeB + cable, "in:2: no NodeGUID: " + want + "; line dropped\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, problems, err := topology.Parse("in", []byte(tc.text), topology.Options{})
			if tc.err != "" {
				if err == nil || !strings.HasPrefix(column.ReplaceAllString(err.Error(), "$1"), tc.err) || f != nil || problems != nil {
					t.Errorf("%v, %v; want %s", problems, err, tc.err)
				}
				var parse *fabric.ParseError
				if want, ok := at[tc.name]; errors.As(err, &parse) && (parse.Column > 0 || ok) && (!ok || !strings.HasPrefix(parse.Text[parse.Column:], want)) {
					t.Errorf("the column is that of %q, want %q", parse.Text[parse.Column:], want)
				}
				f, problems, err = topology.Parse("in", []byte(tc.text), topology.Options{Lenient: true})
			}
			if err != nil {
				t.Fatal(err)
			}
			short.Diff(t, describe(f), tc.fabric, "fabric")
			short.Diff(t, problemLines(problems), tc.problems, "problems")
		})
	}
}

const errText = "want { SW Ports:24 SystemGUID:.. NodeGUID:.. PortGUID:.. VenID:.. DevID:.. Rev:.. {description} LID:0001 PN:01 }, and the same of the neighbour"

// Foreign lines around a list of links are passed over and counted, those among its records
// are an error, and LID 0 is a finding where other ports have LIDs.
func TestSubnetListNoise(t *testing.T) {
	list := string(text(t, func(w io.Writer) error { return WriteSubnetList(w, pair(t)) }))
	first, rest, _ := strings.Cut(list, "\n")
	before, behind := "=~=~= PuTTY =~=~=\nibwarn: [7] mad_rpc: timeout\n", "[root@host ~]# \nlogout"
	found := func(data string, opt topology.Options) (string, error) {
		f, problems, err := topology.Parse("in", []byte(data), opt)
		if err != nil {
			return "", err
		}
		said := fmt.Sprintf("%d nodes\n", f.NumNodes())
		for _, p := range problems {
			said += fmt.Sprintf("%d: %s, %d: %v\n", p.Line, p.Kind, p.Count, p.Message)
		}
		return said, nil
	}
	want := "4 nodes\n1: foreign-lines, 3: =~=~= PuTTY =~=~=\n2: sweep-timeout, 1: ibwarn: [7] mad_rpc: timeout\n"
	for name, data := range map[string]string{
		"around": before + list + behind,
		"a mark": "\ufeff" + before + list + behind,
		"CRLF":   strings.ReplaceAll(before+list+behind, "\n", "\r\n"),
		"CR":     strings.ReplaceAll(before+list+behind, "\n", "\r"),
	} {
		if got, err := found(data, topology.Options{}); got != want || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	inside := first + "\nibwarn: [7] x: timeout\nlogout\n" + rest
	var at *fabric.ParseError
	if _, err := found(inside, topology.Options{}); !errors.As(err, &at) || at.Line != 2 {
		t.Errorf("among records: %v", err)
	}
	if got, err := found(inside, topology.Options{Lenient: true}); err != nil || !strings.Contains(got, "2: sweep-timeout, 1: ibwarn") || !strings.Contains(got, "3: dropped") {
		t.Errorf("leniently: %s, %v", got, err)
	}
	for _, broken := range []string{"PHY=4x LOG=ACT SPD=10", "SW Ports:18 SystemGUID:0 NodeGUID:1", "{"} {
		if got, err := found(list+broken, topology.Options{}); err == nil {
			t.Errorf("%q at the end: %s", broken, got)
		}
	}
	if got, err := found(strings.ReplaceAll(list, "LID:0001", "LID:0000"), topology.Options{}); err != nil || !strings.Contains(got, ": invalid-lid, 1: LID 0: want 1 to 49151; taken as none\n") || strings.Count(got, "LID 0:") != 1 {
		t.Errorf("LID 0: %s, %v", got, err)
	}
}

// TestRecognize tells all forms.
func TestRecognize(t *testing.T) {
	f := pair(t)
	files := written(t, f, mustRead(t, "in", []byte(tabA+tabB), f), WriteOptions{})
	files[GUID2LID] = text(t, func(w io.Writer) error { return WriteGUID2LID(w, f) })
	files[SubnetList] = text(t, func(w io.Writer) error { return WriteSubnetList(w, f) })
	files[SL2VL], files[SMPQuerySL2VL] = []byte(dumpAll), []byte(queryA)
	files[PathSLs], files[IBDMPathSLs] = []byte(pathsAB), []byte(pairsAB)
	for form, data := range files {
		for _, before := range []string{"", "# comment\n\n", "\r\nFile version: 1\r\n"} {
			short.Equal(t, Recognize(append([]byte(before), data...)), form, "taken")
		}
	}
	for s, want := range map[string]Form{
		dumpC: SL2VL, "0xa 0x1 0x1\n": GUID2LID, "Switch 0xa\nLID    : Out Port(s)\n": MCFDBs,
		"ibwarn: [1] x\n" + queryA: SMPQuerySL2VL, "Channel Adapter 0xc1, x\n": Unknown,
	} {
		short.Equal(t, Recognize([]byte(s)), want, s, "taken")
	}
	for s, want := range map[string]Form{
		"x\nSTART_NODES\n": Database, "vendid=0x2c9\n": NetDiscover, "Switch\t36 \"S-1\"\t# \"a\"\n": NetDiscover,
		"# a run\nSwitch: 0x0000000000000001 leaf:\n": LinkInfo, "[{\"source_guid\": 1}]": UFMLinks,
		"# IBDIAG\n\n\"leaf, 1\", Mellanox, 0x1, LID 24\n  # : IB# : Sta\n": NetDump,
		"SW 24 1 0x1 4x SDR 'leaf'":                                         PortList, "Ca\t: 0x1 ports 1 \"h\"": NodeList,
		"[root@host ~]# cat opensm-subnet.lst\n" + string(files[SubnetList]): SubnetList,
	} {
		short.Equal(t, Recognize([]byte(s)), want, s, "taken")
	}
	for _, s := range []string{"", "\n", "x\n" + tabA, "{ \"a\": 1 }", "START_\n", " Unicast lids [0-4]"} {
		short.Equal(t, Recognize([]byte(s)), Unknown, s, "taken")
	}
}

// failing is a writer that fails after some bytes, and counts the failures.
type failing struct{ left, failures int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		f.failures++
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// TestWriteErrors passes errors of the writer on, and refuses what does not
// belong together.
func TestWriteErrors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	f := meshFabric(t, []int{6, 6}, false)
	tables := randomTables(t, f, 0, 1)
	writers := map[string]func(io.Writer, *fabric.Fabric, *lft.Tables, WriteOptions) error{
		"WriteLFTs": WriteLFTs, "WriteFDBs": WriteFDBs, "WriteLIDMatrix": WriteLIDMatrix,
	}
	for name, write := range writers {
		for _, left := range []int{0, 5000} {
			for _, cpus := range []int{1, 4} {
				runtime.GOMAXPROCS(cpus)
				w := &failing{left: left}
				if err := write(w, f, tables, WriteOptions{}); !errors.Is(err, io.ErrShortWrite) || w.failures != 1 {
					t.Errorf("%s: %v, after %d failures", name, err, w.failures)
				}
			}
		}
		var b bytes.Buffer
		if err := write(&b, pair(t), tables, WriteOptions{}); err == nil || err.Error() != "tables of 36 switches for a fabric of 2" || b.Len() > 0 {
			t.Errorf("%s: %v", name, err)
		}
		for _, n := range []fabric.NodeID{-1, 36} {
			want := fmt.Sprintf("node %d is not one of the 36 switches", n)
			if err := write(&b, f, tables, WriteOptions{Only: []fabric.NodeID{0, n}}); err == nil || err.Error() != want || b.Len() > 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
		// Only some switches: the parts of the whole, in its order.
		whole := text(t, func(w io.Writer) error { return write(w, f, tables, WriteOptions{}) })
		some := text(t, func(w io.Writer) error { return write(w, f, tables, WriteOptions{Only: []fabric.NodeID{35, 3, 35}}) })
		first := text(t, func(w io.Writer) error { return write(w, f, tables, WriteOptions{Only: []fabric.NodeID{3}}) })
		second := text(t, func(w io.Writer) error { return write(w, f, tables, WriteOptions{Only: []fabric.NodeID{35}}) })
		if !bytes.Equal(some, append(first, second...)) || !bytes.Contains(whole, first) || !bytes.Contains(whole, second) {
			t.Errorf("%s: Only gives\n%s", name, some)
		}
		if none := text(t, func(w io.Writer) error { return write(w, f, tables, WriteOptions{Only: []fabric.NodeID{}}) }); len(none) > 0 {
			t.Errorf("%s: no switches give\n%s", name, none)
		}
	}
	if err := WriteSubnetList(&failing{}, f); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
	if err := WriteGUID2LID(&failing{}, f); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
}
