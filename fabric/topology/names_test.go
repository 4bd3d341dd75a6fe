package topology

import (
	"errors"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

const goodNames = "# a map\n0x0002c90300000001 \"leaf 1\"\n2c90300000002\t\"spine # 2\" # in row 4\r\n\n0x3 \"\"\n"

func TestParseNames(t *testing.T) {
	names, _, err := ParseNames("map", []byte(goodNames))
	if err != nil || len(names) != 3 || names[0x2c90300000001] != "leaf 1" || names[0x2c90300000002] != "spine # 2" || names[3] != "" {
		t.Errorf("%q, %v", names, err)
	}
	var b fabric.Builder
	for _, g := range []fabric.GUID{3, 4} {
		short.Must(b.AddNode(fabric.Node{GUID: g, Type: fabric.Switch, NumPorts: 4, Description: "old"}))(t)
	}
	f := short.Must(b.Build())(t)
	g := f.WithNames(map[fabric.GUID]string{4: "new", 5: "absent"})
	for _, x := range []struct{ got, want string }{
		{f.Name(0).String(), `"old" 0x0000000000000003`}, {f.PortName(f.Port(1, 2)), `"old" 0x0000000000000004[2]`},
		{g.Name(0).String(), `"old"`}, {g.PortName(g.Port(1, 2)), `"new"[2]`}, {g.Node(1).Description, "old"},
	} {
		short.Equal(t, x.got, x.want)
	}
}

var brokenNames = []struct {
	text string
	line int
	say  string
}{
	{"0x1 leaf\n", 1, "no name in quotes"}, {"0x1 \"leaf\n", 1, "no closing quote"},
	{"x1 \"leaf\"\n", 1, "x1"}, {"\n0x0 \"leaf\"\n", 2, "no node"}, {"0x1 \"a\" b\n", 1, "after the name"},
	{"0x1 \"a\"\n0x01 \"b\"\n", 2, "in line 1 already"}, {"0x12345678901234567 \"a\"\n", 1, "12345678901234567"},
}

func TestParseNamesErrors(t *testing.T) {
	if names, _, err := ParseNames("map", []byte("# nothing\n\n")); names == nil || len(names) > 0 || err != nil {
		t.Errorf("comments alone: %v, %v", names, err)
	}
	for _, tc := range brokenNames {
		names, _, err := ParseNames("map", []byte(tc.text))
		var at *fabric.ParseError
		if !errors.As(err, &at) || names != nil || at.Line != tc.line || !strings.Contains(err.Error(), tc.say) {
			t.Errorf("%q: %v, %v", tc.text, names, err)
		}
	}
}

func FuzzParseNames(f *testing.F) {
	f.Add([]byte(goodNames))
	f.Add([]byte("[root@host ~]# ibnodes\nCa\t: 0x100 ports 2 \"a \"quoted\" name\"\nSwitch  : 0x10 ports 36 \"leaf 1\" enhanced port 0 lid 7 lmc 0\r\n"))
	for _, tc := range brokenNames {
		f.Add([]byte(tc.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		names, _, err := ParseNames("map", data)
		var at *fabric.ParseError
		if err != nil && (names != nil || !errors.As(err, &at)) || err == nil && names == nil {
			t.Fatalf("%v, %v", names, err)
		}
	})
}
