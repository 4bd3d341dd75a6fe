package fabric

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/internal/short"
)

func TestGUID(t *testing.T) {
	for _, test := range []struct {
		in   string
		want GUID
		out  string
	}{
		{"0", 0, "0x0000000000000000"},
		{"2c5eab0300b87b40", 0x2c5eab0300b87b40, "0x2c5eab0300b87b40"},
		{"0x1", 1, "0x0000000000000001"},
		{"0XfFfFfFfFfFfFfFfF", 1<<64 - 1, "0xffffffffffffffff"},
	} {
		g, err := ParseGUID(test.in)
		if err != nil || g != test.want || g.String() != test.out {
			t.Errorf("ParseGUID(%q) = %v, %v; want %s", test.in, g, err, test.out)
		}
	}
	for _, in := range []string{"", "0x", "x1", "0x12345678901234567", "-1", "1 ", "0x0x1", "g"} {
		if g, err := ParseGUID(in); err == nil {
			t.Errorf("ParseGUID(%q) = %v, want an error", in, g)
		}
	}
	text := short.Must(json.Marshal(map[string]GUID{"guid": 0xabc}))(t)
	short.Equal(t, string(text), `{"guid":"0x0000000000000abc"}`, "JSON")
	var back map[string]GUID
	if err := json.Unmarshal(text, &back); err != nil || back["guid"] != 0xabc {
		t.Errorf("from JSON %v, %v", back, err)
	}
}

func FuzzParseGUID(f *testing.F) {
	f.Add("0x2c5eab0300b87b40")
	f.Add("1")
	f.Fuzz(func(t *testing.T, s string) {
		g, err := ParseGUID(s)
		if err != nil {
			short.Equal(t, g, 0, "with an error")
			return
		}
		short.Equal(t, short.Must(ParseGUID(g.String()))(t), g, s, "back")
	})
}

func TestLink(t *testing.T) {
	for _, test := range []struct {
		width uint8
		speed string
		text  string
		mbps  int
	}{{1, "SDR", "1xSDR", 2000}, {4, "FDR10", "4xFDR10", 40000}, {4, "NDR", "4xNDR", 400000}, {12, "XDR", "12xXDR", 2400000}} {
		speed, ok := ParseSpeed(test.speed)
		if l := (Link{test.width, speed}); !ok || l.String() != test.text || l.Mbps() != test.mbps {
			t.Errorf("%s: %v, %d Mb/s, %t; want %d", test.text, l, l.Mbps(), ok, test.mbps)
		}
	}
	for _, in := range []string{"", "qdr", "QDR "} {
		if s, ok := ParseSpeed(in); ok {
			t.Errorf("ParseSpeed(%q) = %v, want none", in, s)
		}
	}
	if l := (Link{Width: 4, Speed: 200}); l.Mbps() != 0 || l.String() != "4x" {
		t.Errorf("unknown speed: %d Mb/s, %q", l.Mbps(), l)
	}
}

func TestParseError(t *testing.T) {
	cause := errors.New("want 1 to 254")
	for _, test := range []struct {
		err  ParseError
		want string
	}{
		{ParseError{File: "f", Line: 3, Column: 4, Text: "[255] x", Err: cause}, "f:3:4: want 1 to 254\n    [255] x"},
		{ParseError{File: "-", Line: 3, Err: cause}, "-:3: want 1 to 254"},
		{ParseError{File: "f", Err: cause}, "f: want 1 to 254"},
		{ParseError{File: "f", Line: 1, Text: strings.Repeat("a", 300), Err: cause}, "f:1: want 1 to 254\n    " + strings.Repeat("a", 200) + "..."},
	} {
		if got := test.err.Error(); got != test.want || !errors.Is(&test.err, cause) {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// small is a switch (GUID 0x20) with three CAs, one of two ports, and a router,
// cabled to a second switch (0x10).
func small(t testing.TB) *Builder {
	t.Helper()
	var b Builder
	for _, n := range []Node{
		{GUID: 0x20, Type: Switch, NumPorts: 8, Description: "one"},
		{GUID: 0x300, Type: CA, NumPorts: 2, Description: "both"},
		{GUID: 0x10, Type: Switch, NumPorts: 4, Description: "two", EnhancedPort0: true},
		{GUID: 0x100, Type: CA, NumPorts: 1, Description: "host"},
		{GUID: 0x200, Type: Router, NumPorts: 2, Description: "router"},
	} {
		short.Must(b.AddNode(n))(t)
	}
	for _, c := range []struct {
		a int
		p PortNum
		z int
		q PortNum
	}{{0, 1, 2, 1}, {0, 2, 2, 2}, {0, 3, 1, 1}, {2, 3, 1, 2}, {0, 4, 3, 1}, {4, 2, 2, 4}, {0, 7, 0, 8}} {
		short.Check(t, b.Connect(c.a, c.p, c.z, c.q, Link{Width: 4, Speed: HDR}))
	}
	return &b
}

func TestBuild(t *testing.T) {
	b := small(t)
	short.Check(t, b.SetPort(1, 2, 0xabc, 8, 1))
	f := short.Must(b.Build())(t)
	var guids []GUID
	for n := range NodeID(f.NumNodes()) {
		guids = append(guids, f.Node(n).GUID)
	}
	short.EqualList(t, guids, []GUID{0x10, 0x20, 0x100, 0x200, 0x300}, "nodes", "switches, then the others, by GUID")
	if f.NumSwitches() != 2 || f.NumLinks() != 7 || f.NumPorts() != 5+9+2+3+3 {
		t.Errorf("%d switches, %d links, %d port slots", f.NumSwitches(), f.NumLinks(), f.NumPorts())
	}
	if f.Node(0).Order != 2 || f.Node(4).Order != 1 {
		t.Errorf("order in the input %d and %d, want 2 and 1", f.Node(0).Order, f.Node(4).Order)
	}
	ports, to := f.SwitchLinks(1)
	if want := []PortID{f.Port(1, 1), f.Port(1, 2)}; !slices.Equal(ports, want) || !slices.Equal(to, []NodeID{0, 0}) {
		t.Errorf("channels %v to %v; want %v, and the cable of a switch to itself not among them", ports, to, want)
	}
	want := []PortID{f.Port(2, 1), f.Port(3, 2), f.Port(4, 1), f.Port(4, 2)}
	if !slices.Equal(f.CAPorts(), want) || !slices.Equal(f.CASwitches(), []NodeID{1, 0, 1, 0}) {
		t.Errorf("CA ports %v at %v, want %v at [1 0 1 0]", f.CAPorts(), f.CASwitches(), want)
	}
	for p := range PortID(f.NumPorts()) {
		if q := f.Peer(p); q != NoPort && (f.Peer(q) != p || f.Link(p) != f.Link(q)) {
			t.Errorf("%s: the other end of its cable is not its", f.PortName(p))
		}
		short.Equal(t, f.Port(f.Owner(p), f.Num(p)), p, "port", "is number", f.Num(p), "of node", f.Owner(p))
	}
	both := f.Port(4, 2)
	if f.PortGUID(both) != 0xabc || f.PortGUID(f.Port(4, 1)) != 0x301 || f.PortGUID(f.Port(0, 0)) != 0x10 || f.PortGUID(f.Port(0, 1)) != 0 {
		t.Error("port GUIDs are not those set, GUID+p for CAs, and the node's for switch port 0")
	}
	if f.MaxLID() != 9 || f.LIDPort(8) != both || f.LIDPort(9) != both || f.LIDPort(7) != NoPort || f.LIDPort(10) != NoPort {
		t.Error("LID 8 with LMC 1 is not LIDs 8 and 9")
	}
	if n, ok := f.NodeByGUID(0x300); !ok || n != 4 {
		t.Errorf("GUID 0x300 is node %d", n)
	}
	if _, ok := f.SwitchByGUID(0x300); ok {
		t.Error("GUID 0x300 is no switch's")
	}
	if _, ok := f.NodeByGUID(0x301); ok {
		t.Error("GUID 0x301 is no node's")
	}
	var ends []PortID
	f.EndPorts(func(p PortID) { ends = append(ends, p) })
	short.EqualList(t, ends, append([]PortID{f.Port(0, 0), f.Port(1, 0)}, want...), "end ports")
}

func TestBuilderErrors(t *testing.T) {
	for _, test := range []struct {
		want string
		do   func(b *Builder) error
	}{
		{"255 ports, want at most 254", func(b *Builder) error {
			_, err := b.AddNode(Node{GUID: 1, Type: Switch, NumPorts: 255})
			return err
		}},
		{"no such node type: 4", func(b *Builder) error {
			_, err := b.AddNode(Node{GUID: 1, Type: 4})
			return err
		}},
		{`port 9 of "one", which has ports 1 to 8`, func(b *Builder) error { return b.Connect(0, 9, 3, 1, Link{}) }},
		{`port 0 of "host", which has ports 1 to 1`, func(b *Builder) error { return b.Connect(0, 5, 3, 0, Link{}) }},
		{"port 0 of a switch takes no cable", func(b *Builder) error { return b.Connect(0, 0, 4, 1, Link{}) }},
		{`port 1 of "one" has a cable already`, func(b *Builder) error { return b.Connect(0, 1, 4, 1, Link{}) }},
		{`port 1 of "host" has a cable already`, func(b *Builder) error { return b.Connect(0, 5, 3, 1, Link{}) }},
		{`a cable from port 5 of "one" to itself`, func(b *Builder) error { return b.Connect(0, 5, 0, 5, Link{}) }},
		{"no node 9", func(b *Builder) error { return b.Connect(9, 1, 0, 5, Link{}) }},
		{`port 1 of switch "one" is no end port`, func(b *Builder) error { return b.SetPort(0, 1, 0, 1, 0) }},
		{`GUID 0x0000000000000020 is on two nodes, "one" and "again"`, func(b *Builder) error {
			return build(b, Node{GUID: 0x20, Type: Switch, Description: "again"})
		}},
		{`GUID 0x0000000000000020 is on two nodes, "one" and "a CA"`, func(b *Builder) error {
			return build(b, Node{GUID: 0x20, Type: CA, Description: "a CA"})
		}},
		{`node "absent" has GUID 0`, func(b *Builder) error { return build(b, Node{Type: CA, Description: "absent"}) }},
		{`LID 5 is claimed by "two"[0] and by "host"[1]`, func(b *Builder) error { return lid(b, 2, 0, 5, 0, 3, 1, 5, 0) }},
		{`LID 4 is claimed by "two"[0] and by "host"[1]`, func(b *Builder) error { return lid(b, 2, 0, 4, 0, 3, 1, 4, 2) }},
		{`"host"[1]: LID 5 is not a multiple of 2, as LMC 1 wants`, func(b *Builder) error { return lid(b, 2, 0, 4, 0, 3, 1, 5, 1) }},
		{`"host"[1]: LMC 8, want 0 to 7`, func(b *Builder) error { return lid(b, 2, 0, 4, 0, 3, 1, 5, 8) }},
		{`"host"[1]: LID 49152, want 1 to 49151`, func(b *Builder) error { return lid(b, 2, 0, 4, 0, 3, 1, 0xc000, 0) }},
	} {
		short.Equal(t, fmt.Sprint(test.do(small(t))), test.want, "error")
	}
}

func build(b *Builder, n Node) error {
	if _, err := b.AddNode(n); err != nil {
		return err
	}
	_, err := b.Build()
	return err
}

func lid(b *Builder, n int, p PortNum, l LID, lmc uint8, m int, q PortNum, k LID, kmc uint8) error {
	if err := b.SetPort(n, p, 0, l, lmc); err != nil {
		return err
	}
	if err := b.SetPort(m, q, 0, k, kmc); err != nil {
		return err
	}
	_, err := b.Build()
	return err
}

// TestDistances compares with a search from each switch by itself.
func TestDistances(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 150).Draw(rt, "switches")
		var b Builder
		for i := range n {
			short.Must(b.AddNode(Node{GUID: GUID(i + 1), Type: Switch, NumPorts: 250}))(rt)
		}
		ports := make([]PortNum, n)
		for range rapid.IntRange(0, 200).Draw(rt, "links") {
			i := rapid.IntRange(0, n-1).Draw(rt, "i")
			j := min(n-1, i+rapid.IntRange(0, 5).Draw(rt, "j"))
			if ports[i] > 240 || ports[j] > 240 {
				continue
			}
			ports[i]++
			p := ports[i]
			ports[j]++
			short.Check(rt, b.Connect(i, p, j, ports[j], Link{}))
		}
		f := short.Must(b.Build())(rt)
		m := f.Distances()
		for s := range NodeID(n) {
			want := bytes.Repeat([]byte{Unreachable}, n)
			want[s] = 0
			for queue := []NodeID{s}; len(queue) > 0; queue = queue[1:] {
				_, to := f.SwitchLinks(queue[0])
				for _, u := range to {
					if want[u] == Unreachable {
						want[u] = want[queue[0]] + 1
						queue = append(queue, u)
					}
				}
			}
			short.EqualList(rt, m.To(s), want, "to", s)
		}
		if m.TooLong() {
			rt.Fatal("no path is that long")
		}
	})
}

// TestDistancesTooLong: a line of switches.
func TestDistancesTooLong(t *testing.T) {
	for _, n := range []int{254, 255, 300} {
		var b Builder
		for i := range n {
			short.Must(b.AddNode(Node{GUID: GUID(i + 1), Type: Switch, NumPorts: 2}))(t)
			if i > 0 {
				short.Check(t, b.Connect(i-1, 2, i, 1, Link{}))
			}
		}
		f := short.Must(b.Build())(t)
		m := f.Distances()
		if got, want := m.To(0)[n-1], uint8(min(n-1, int(MaxHops))); got != want || m.TooLong() != (n > 254) {
			t.Errorf("%d switches: distance %d, too long %t; want %d, %t", n, got, m.TooLong(), want, n > 254)
		}
	}
}

// A message of a bad line shows the line and its escape sequences reach no terminal.
func TestParseErrorPrintable(t *testing.T) {
	e := &ParseError{File: "a\x1bb\nc", Line: 1, Text: strings.Repeat("x", 199) + "ü\x1b]0;x\a", Err: errors.New("no \u202e number")}
	const want = `a\x1bb\nc:1: no \u202e number` + "\n    "
	if got := e.Error(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, `x\xc3...`) {
		t.Errorf("%q", got)
	}
}
