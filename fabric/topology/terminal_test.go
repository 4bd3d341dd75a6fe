package topology

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// rack is two switches with hosts, named as sites do.
func rack(t *testing.T) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	link := fabric.Link{Width: 4, Speed: fabric.NDR}
	add := func(n fabric.Node) int {
		return short.Must(b.AddNode(n))(t)
	}
	leaf := add(fabric.Node{GUID: 0x2c5eab0300b87b40, SystemGUID: 0x2c5eab0300b87b40, Type: fabric.Switch, NumPorts: 65, EnhancedPort0: true, Description: "MF0;A09-P1-IBLEAF-04-04:MQM9701/U1", VendorID: 0x2c9, DeviceID: 0xd2f2})
	spine := add(fabric.Node{GUID: 0x2c5eab0300b87b80, SystemGUID: 0x2c5eab0300b87b80, Type: fabric.Switch, NumPorts: 65, EnhancedPort0: true, Description: "Quantum-2 Mellanox Technologies", VendorID: 0x2c9, DeviceID: 0xd2f2})
	short.Check(t, b.SetPort(leaf, 0, 0x2c5eab0300b87b40, 1, 0))
	short.Check(t, b.SetPort(spine, 0, 0x2c5eab0300b87b80, 2, 0))
	short.Check(t, b.Connect(leaf, 33, spine, 3, link))
	short.Check(t, b.Connect(leaf, 34, spine, 4, link))
	for i, name := range []string{"a08-p1-dgx-04-c01 mlx5_5", "a08-p1-dgx-04-c02 mlx5_10", "storage # 3 \"x\""} {
		g := fabric.GUID(0xe09d7303007a4bd8) + fabric.GUID(16*i)
		h := add(fabric.Node{GUID: g, SystemGUID: g, Type: fabric.CA, NumPorts: 1, Description: name, VendorID: 0x2c9, DeviceID: 0x1021})
		short.Check(t, b.SetPort(h, 1, g+1, fabric.LID(100+i), 0))
		short.Check(t, b.Connect(h, 1, leaf, fabric.PortNum(1+i), link))
	}
	return short.Must(b.Build())(t)
}

// expanded is text with blanks for tabs, as a terminal shows it.
func expanded(text string) string {
	var b strings.Builder
	column := 0
	for _, c := range text {
		switch c {
		case '\t':
			b.WriteString(strings.Repeat(" ", 8-column%8))
			column += 8 - column%8
			continue
		case '\n':
			column = -1
		}
		column++
		b.WriteRune(c)
	}
	return b.String()
}

// wrapped is text as a terminal of the given columns shows it; trim leaves out blanks at the
// end of rows, as copies do.
func wrapped(text string, columns int, trim bool) string {
	var rows []string
	for line := range strings.Lines(expanded(text)) {
		line = strings.TrimSuffix(line, "\n")
		for len(line) > columns {
			rows, line = append(rows, line[:columns]), line[columns:]
		}
		rows = append(rows, line)
	}
	for i := range rows {
		if trim {
			rows[i] = strings.TrimRight(rows[i], " ")
		}
	}
	return strings.Join(rows, "\n") + "\n"
}

// A text that a terminal has cut at its last column is the same fabric, and a line says so.
func TestWrapped(t *testing.T) {
	f := rack(t)
	text := string(Append(nil, f))
	longest := slices.Max(slices.Collect(func(yield func(int) bool) {
		for line := range strings.Lines(expanded(text)) {
			if !yield(len(line) - 1) {
				return
			}
		}
	}))
	joined := 0
	for columns := minColumns; columns <= longest+1; columns++ {
		for _, trim := range []bool{false, true} {
			what := fmt.Sprintf("%d columns, trimmed: %v", columns, trim)
			shown := wrapped(text, columns, trim)
			if !slices.ContainsFunc(strings.Split(shown, "\n"), func(row string) bool { return len(row) == columns }) {
				continue // nothing tells how wide it was
			}
			g, problems, err := Parse("in", []byte(shown), Options{})
			if err != nil {
				if strings.Count(shown, "\n")-strings.Count(text, "\n") < 4 {
					continue // so few rows are not joined: it is an error, and no other fabric
				}
				t.Errorf("%s: %v\n%s", what, err, shown)
				continue
			}
			if !bytes.Equal(Append(nil, g), []byte(text)) && columns < longest-4 {
				t.Errorf("%s: another fabric:\n%s", what, shown)
			}
			for i := range problems {
				short.Equal(t, problems[i].Kind, fabric.WrappedLines, what, problems[i].String())
				joined++
			}
		}
	}
	if joined < 60 {
		t.Errorf("rows were joined at %d widths only", joined)
	}
	_, problems, err := Parse("in", []byte(wrapped(text, 80, false)), Options{})
	if err != nil || len(problems) != 1 || problems[0].Line != 9 || problems[0].Message != "cut at column 80 by a terminal, as 12 rows are: joined again" {
		t.Errorf("%v %v", problems, err)
	}
	if _, _, err := Parse("in", []byte(wrapped(text, 80, false)), Options{Strict: true}); err == nil {
		t.Error("a strict read takes it")
	}
	// Lines behind keep their numbers.
	broken := strings.Replace(wrapped(text, 80, false), "\nCa ", "\nXy ", 1)
	var parse *fabric.ParseError
	if _, _, err := Parse("in", []byte(broken), Options{}); !errors.As(err, &parse) || parse.Line != 1+strings.Count(broken[:strings.Index(broken, "\nXy ")+1], "\n") {
		t.Errorf("%v", err)
	}
}

// An error of the sweep amid a line, anywhere, is taken out of it; it is a finding.
func TestMessagesAmidLines(t *testing.T) {
	text := Append(nil, rack(t))
	for _, message := range []string{
		"src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1,20 Attr 0x11:0) bad status 110; Connection timed out",
		"ibwarn: [7] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0,1) timeout",
		"/build/rdma-core/libibnetdisc/ibnetdisc.c:412: port 3: Query remote node failed, timed out",
		"../libibnetdisc/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1) bad status 110; Connection timed out",
	} {
		if n := messageIn([]byte(message), 0); n >= 0 {
			t.Errorf("%q is split at %d", message, n)
		}
		for at := 0; at < len(text); at += short.Of(short.Usual(1, 3), 5) {
			begin := at == 0 || text[at-1] == '\n'
			data := slices.Concat(text[:at], []byte(message+"\n"), text[at:])
			g, problems, err := Parse("in", data, Options{})
			switch {
			case begin && err != nil: // a line of its own, perhaps among those of a node
			case err != nil:
				t.Errorf("%q at %d, behind %q: %v", message[:12], at, text[max(0, at-20):at], err)
			case !bytes.Equal(Append(nil, g), text):
				t.Errorf("%q at %d, behind %q: another fabric", message[:12], at, text[max(0, at-20):at])
			case len(problems) != 1 || problems[0].Kind != fabric.SweepTimeout || problems[0].Count != 1 || problems[0].Text != message:
				t.Errorf("%q at %d, behind %q: %v", message[:12], at, text[max(0, at-20):at], problems)
			}
		}
	}
	for _, whole := range []string{"libibnetdisc/src/query_smp.c:195; a", "libibnetdisc/query_smp.c:195; a", "query_smp.c:195; a", "[1] \"x.c:1\""} {
		if n := messageIn([]byte(whole), 0); n >= 0 {
			t.Errorf("%q is split at %d", whole, n)
		}
	}
	// Two of them in one line, and one at its end.
	glued := bytes.Replace(text, []byte("lid 100"), []byte("lid 1ibwarn: [7] a: failed\n0ibwarn: [7] b: failed\n0"), 1)
	glued = bytes.Replace(glued, []byte("enhanced port 0 lid 2 lmc 0"), []byte("enhanced port 0 lid 2 lmc 0src/x.c:1; failed"), 1)
	g, problems, err := Parse("in", glued, Options{})
	if err != nil || !bytes.Equal(Append(nil, g), text) || len(problems) != 1 || problems[0].Count != 3 || problems[0].Kind != fabric.SweepError {
		t.Errorf("%v %v", problems, err)
	}
}

// Colours and other control sequences are none of the text.
func TestEscapes(t *testing.T) {
	f := rack(t)
	text := string(Append(nil, f))
	for what, data := range map[string]string{
		"grep":   strings.ReplaceAll(text, "Switch", "\x1b[01;31m\x1b[KSwitch\x1b[m\x1b[K"),
		"less":   strings.ReplaceAll(text, "\n", "\x1b[m\n"),
		"script": "\x1b]0;root@h:~\a\x1b[?2004h" + strings.ReplaceAll(text, "\n", "\r\n") + "\x1b(B\x1b[?2004l\x1b]0;x\x1b\\\x1b=",
		"cut":    text + "\x1b",
		"cut 2":  text + "\x1b[01",
		"cut 3":  text + "\x1b]0;",
	} {
		g, problems, err := Parse("in", []byte(data), Options{})
		if err != nil || len(problems) > 0 || !bytes.Equal(Append(nil, g), []byte(text)) {
			t.Errorf("%s: %v %v", what, problems, err)
		}
		short.Equal(t, Recognize([]byte(data)), Stanzas, what, "not recognized")
		if _, _, err := Parse("in", []byte(data), Options{Strict: true}); err == nil {
			t.Errorf("%s: a strict read takes it", what)
		}
	}
}

// A text that ends amid a line, or lacks many stanzas, is said to be cut.
func TestCutText(t *testing.T) {
	text := string(Append(nil, rack(t)))
	for end, want := range map[string]string{
		"\n[33]\t\"S-2c5eab": "the text ends amid line 13: is it cut short?",
		"\nCa\t1 \"H-e09":    "is it cut short?",
		"\nSwitch\t":         "so it is with 5 lines: is the text cut short?",
	} {
		n := strings.LastIndex(text, end)
		if n < 0 {
			t.Fatalf("%q is not in\n%s", end, text)
		}
		if strings.HasPrefix(end, "\nSwitch") {
			end = "\n"
		}
		_, _, err := Parse("in", []byte(text[:n]+end), Options{})
		short.Contains(t, fmt.Sprint(err), want, end)
	}
}

// Lists are wrapped at 80 columns like stanzas; most of their lines are longer.
func TestWrappedLists(t *testing.T) {
	f := rack(t)
	for what, text := range map[string][]byte{
		"ibnetdiscover -p": AppendPortList(nil, f), "iblinkinfo": AppendLinkInfo(nil, f, false), "iblinkinfo -l": AppendLinkInfo(nil, f, true),
	} {
		want, odd := short.Must2(Parse("in", text, Options{}))(t)
		got, problems, err := Parse("in", []byte(wrapped(string(text), 80, false)), Options{})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		problems = slices.DeleteFunc(problems, func(p fabric.Problem) bool { return p.Kind == fabric.WrappedLines })
		if !bytes.Equal(Append(nil, got), Append(nil, want)) || len(problems) != len(odd) {
			t.Errorf("%s: another fabric, or %v", what, problems)
		}
	}
}

// Lines that a terminal printed behind the longest rows of a text are not the rest of them.
func TestForeignBehindLongest(t *testing.T) {
	text := string(short.Must(os.ReadFile("testdata/terminal.txt"))(t))
	f, problems := short.Must2(Parse("in", []byte(text), Options{}))(t)
	if len(problems) != 1 || problems[0].Kind != fabric.ForeignLines || problems[0].Count != 2 || f.NumLinks() != 1 {
		t.Errorf("%d links, %v, want 1 and 2 foreign lines", f.NumLinks(), problems)
	}
}

// Many errors in one line, each with a rest behind it, take the time of their text.
func TestManyMessagesInOneLine(t *testing.T) {
	const n = 20_000
	text := "Switch\t4 \"S-0000000000000001\"" + strings.Repeat("xx ibwarn: [1] y\n", n)
	p := &parser{data: []byte(text)}
	p.cutMessages()
	if want := "Switch\t4 \"S-0000000000000001\"" + strings.Repeat("xx ", n) + strings.Repeat("\n", n); string(p.data) != want || len(p.noise) != n {
		t.Errorf("%d errors, %d bytes; want %d and %d", len(p.noise), len(p.data), n, len(want))
	}
	if last := p.noise[n-1]; string(last.text) != "ibwarn: [1] y" || last.at.num != n {
		t.Errorf("the last is %q in line %d", last.text, last.at.num)
	}
}
