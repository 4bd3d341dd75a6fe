package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"strconv"
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

// casesOf reads the cases of a test from testdata/cases. Each begins with "== " and its name. In front
// of the lines of its text stands "<", of one without an end "<<"; in front of the error of the strict
// reader "!", or "!!" if the lenient one has it too; of what is read ">", and of problems "?". Lines
// with a backslash are quoted as in Go.
func casesOf(t *testing.T) (list []readCase) {
	t.Helper()
	c := &readCase{}
	var left []string // of the first text
	for line := range strings.Lines(string(short.Must(os.ReadFile("testdata/cases/" + t.Name() + ".txt"))(t))) {
		mark, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if strings.Contains(rest, `\`) {
			rest = short.Must(strconv.Unquote(`"` + rest + `"`))(t)
		}
		if len(left) > 0 && !strings.Contains("@-++", mark) {
			c.text, left = c.text+strings.Join(left, ""), nil
		}
		switch mark {
		case "@":
			first := strings.SplitAfter(list[0].text, "\n")
			if left == nil {
				left = first
			}
			n := short.Must(strconv.Atoi(rest))(t) - 1 - (len(first) - len(left))
			c.text, left = c.text+strings.Join(left[:n], ""), left[n:]
		case "-":
			short.MustEqual(t, rest+"\n", left[0], c.name)
			left = left[1:]
		case "==":
			list = append(list, readCase{name: rest})
			c = &list[len(list)-1]
		case "<", "+":
			c.text += rest + "\n"
		case "<<", "++":
			c.text += rest
		case "!", "!!":
			c.err = strings.TrimPrefix(c.err+"\n"+rest, "\n")
			if mark == "!!" {
				c.want = "-"
			}
		case ">":
			c.want += rest + "\n"
		case "?":
			c.problems += rest + "\n"
		case "", "#":
		default:
			t.Fatalf("%q: want a mark of a case", line)
		}
	}
	if len(list) == 0 {
		t.Fatal("no cases")
	}
	return list
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
	readCases(t, of(f, ReadLFTs), rows, casesOf(t))
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
	readCases(t, ReadGUID2LID, func(list []lft.LIDRange) string { return fmt.Sprintln(list) }, casesOf(t))
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

// TestSubnetList reads lists of links, right and wrong ones.
func TestSubnetList(t *testing.T) {
	readCases(t, func(name string, data []byte, opt Options) (*fabric.Fabric, []fabric.Problem, error) {
		return topology.Parse(name, data, topology.Options{Lenient: opt.Lenient})
	}, describe, casesOf(t))
}

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
