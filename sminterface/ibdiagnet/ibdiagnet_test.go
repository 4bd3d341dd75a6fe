package ibdiagnet

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// read reads a database.
func read(data []byte, opt Options) (*Database, error) {
	return Read("x.db_csv", bytes.NewReader(data), opt)
}

// text is a database as ibdiagnet writes it, of a switch, a host with a comma in its name
// and one that is switched off.
//
//go:embed testdata/small.db_csv
var text string

func TestRead(t *testing.T) {
	d := short.Must(read([]byte(text), Options{}))(t)
	for i := range d.Problems {
		t.Error(d.Problems[i].String())
	}
	f := d.Fabric
	if f.NumSwitches() != 1 || f.NumNodes() != 2 || f.NumLinks() != 1 {
		t.Fatalf("%d switches, %d nodes, %d links", f.NumSwitches(), f.NumNodes(), f.NumLinks())
	}
	s, h := f.Port(0, 1), f.Port(1, 1)
	for what, ok := range map[string]bool{
		"name of the switch": f.Node(0).Description == "MF0;a,b:X/U1",
		"name of the host":   f.Node(1).Description == `h "1" HCA-1`,
		"enhanced port 0":    f.Node(0).EnhancedPort0,
		"LID of the switch":  f.LID(f.PortBase(0)) == 5,
		"LIDs of the host":   f.LID(h) == 8 && f.LMC(h) == 2 && f.MaxLID() == 77 && d.Virtual == 1 && f.LIDPort(77) == h && f.LIDPort(12) == fabric.NoPort,
		"cable":              f.Peer(s) == h && f.Link(s) == fabric.Link{Width: 4, Speed: fabric.NDR},
		"port GUID":          f.PortGUID(h) == 0x21,
		"labels":             f.Label(s) == "1/12/2" && f.Label(h) == "B184D0F0/0/0/1",
		"port":               d.Ports[s] == Port{State: Active, OpVLs: 4, MTU: 4096} && d.Ports[h].MTU == 2048,
		"port that is down":  d.Ports[f.Port(0, 2)].State == Down,
		"switch":             d.Switches[0] == Switch{8192, true},
		"SM":                 len(d.SMs) == 1 && d.SMs[0] == SM{0x10, 0x10, 0, MasterSM},
		"partitions":         slices.Equal(d.PKeys[h], []fabric.PKey{0xffff, 0x12}),
		"virtual port":       len(d.VPorts) == 1 && d.VPorts[0] == VPort{h, 3, 77},
		"warning": len(d.Warnings) == 1 && d.Warnings[0].Event == "NODE_NO_RESPONSE" && d.Warnings[0].Node == 0x20 &&
			d.Warnings[0].Summary == "No response, status = 4",
		"lines": d.NodeLine(0x20) == 6 && d.PortLine(s) == 36 && d.PortLine(h) == 36,
	} {
		if !ok {
			t.Errorf("%s: %+v", what, d)
		}
	}
}

// TestMistyped: a database that gives its switch another type is refused with the row, also where the read is
// lenient.
func TestMistyped(t *testing.T) {
	wrong := strings.Replace(text, `/U1",3,2,1,1`, `/U1",3,1,1,1`, 1)
	for _, lenient := range []bool{false, true} {
		_, err := read([]byte(wrong), Options{Lenient: lenient})
		if err == nil || !strings.HasPrefix(err.Error(), "x.db_csv:5: NODES: switches are listed as another type: node 0x0000000000000010") {
			t.Errorf("lenient %v: %v", lenient, err)
		}
	}
}

// What is wrong is told with its line, and left out of a lenient read.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		what, old, new string
		want           string // in the error of a strict read; "" where a problem says it
		problem        string // in a problem of a lenient one
	}{
		{"no number", "1,0x8,2,2,2048", "1,eight,2,2,2048", "", "x.db_csv:15: LID eight of port 0x0000000000000020[1]: want 1 to 49151"},
		{"LID -1", "1,0x8,2,2,2048", "1,-1,2,2,2048", "", "x.db_csv:15: LID -1"},
		{"LID 0", "1,0x8,2,2,2048", "1,0,2,2,2048", "", "x.db_csv:15: LID 0 of port 0x0000000000000020[1]"},
		{"no LID", "0,5,0,2,1,4", "0,N/A,0,2,1,4", "", "x.db_csv:12: LID N/A of port 0x0000000000000010[0]"},
		{"LMC", "1,0x8,2,2,2048", "1,0x8,x,2,2048", `x.db_csv:15: PORTS: lmc "x": want a number`, "lmc"},
		{"commas behind a row", "0x0000000000000010,1,0x0000000000000020,1\n", "0x0000000000000010,1,0x0000000000000020,1,,\n", "", ""},
		{"another version", "NodeGUID,PortGUID,LocalPortNum,BlockNum", "NodeGUID,PortGUID,Other,BlockNum", "", "x.db_csv:50: PKEY has no column localportnum"},
		{"rows not needed", "0,1,0x0012,0\n", "0,1,0x0012,0,8\n", "", "x.db_csv:52: PKEY: a row of 8 fields; want 7, as the header row has; such rows are left out"},
		{"a field less", "0x0000000000000010,1,0x0000000000000020,1\n", "0x0000000000000010,1,0x0000000000000020\n", "x.db_csv:36: LINKS: a row of 3 fields; want 4", "3 fields"},
		{"no such node", "0x0000000000000010,1,0x0000000000000020,1\n", "0x0000000000000010,1,0x0000000000000030,1\n", "x.db_csv:36: LINKS: node 0x0000000000000030 is not in NODES", "0x0000000000000030"},
		{"no such port", "0x0000000000000010,1,0x0000000000000020,1\n", "0x0000000000000010,4,0x0000000000000020,1\n", "x.db_csv:36: LINKS: port 4", "port 4"},
		{"node type", `X/U1",3,2`, `X/U1",3,7`, "x.db_csv:5: NODES: node type 7: want 1", "node type 7"},
		{"LID twice", "0,5,0,2,1,4", "0,8,0,2,1,4", "x.db_csv:15: PORTS: LID 8 of port 0x0000000000000020[1] is that of the port in line 12 too", "LID 8"},
		{"LID and LMC", "1,0x8,2,2", "1,0x9,2,2", "not a multiple of 4", "multiple"},
		{"no section", "_LINKS", "_LYNX", "no section LINKS", ""},
		{"no column", "PortNum2", "PortNumber2", "x.db_csv:35: LINKS has no column portnum2", ""},
		{"bad LID", "0,5,0,2,1,4", "0,65535,0,2,1,4", "", "x.db_csv:12: LID 65535"},
		{"section not ended", "END_LINKS\n", "", "", "x.db_csv:38: section LINKS has no end"},
		{"rows missing", "NODES,   1, 1, 1, 2", "NODES,   1, 1, 1, 3", "", "x.db_csv:4: section NODES has 2 rows, INDEX_TABLE says 3"},
		{"cut", text[strings.Index(text, "\nSTART_INDEX_TABLE"):], "", "", "no INDEX_TABLE"},
		{"cut in a section", text[strings.Index(text, "\nEND_PKEY"):], "", "", "section PKEY has no end"},
		{"cut in a row", text[strings.Index(text, "12,0\nEND_PKEY"):], "", "", "x.db_csv:52: section PKEY has no end"},
		{"cut before the cables", text[strings.Index(text, "2,2048,4"):], "", "x.db_csv:15: no section LINKS, since the file is cut short: want", ""},
		{"speeds differ", "2,2048,4", "2,1024,4", "", "4xNDR at port 0x0000000000000010[1] and 4xHDR"},
		{"loop", "0x0000000000000010,1,0x0000000000000020,1\n", "0x0000000000000010,1,0x0000000000000010,1\n", "", "to itself"},
		{"foreign", "# a comment of ibdiagnet", "[root@host ~]# cat x", "", `x.db_csv:9: "[root@host ~]# cat x" stands between sections`},
	} {
		broken := strings.Replace(text, c.old, c.new, 1)
		if broken == text {
			t.Fatalf("%s: nothing broken", c.what)
		}
		d, err := read([]byte(broken), Options{})
		if c.want != "" && (err == nil || d != nil || !strings.Contains(err.Error(), c.want)) || c.want == "" && err != nil {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
		if c.problem == "" {
			continue
		}
		d, err = read([]byte(broken), Options{Lenient: true})
		if err != nil {
			t.Errorf("%s: lenient: %v", c.what, err)
			continue
		}
		found := false
		for i := range d.Problems {
			found = found || strings.Contains(d.Problems[i].String(), c.problem)
		}
		if !found || c.what != "node type" && len(d.Problems) != 1 {
			t.Errorf("%s: %d problems, want one with %q: %v", c.what, len(d.Problems), c.problem, d.Problems)
		}
	}
}

// What is noticed has the first of each kind, and how many there are.
func TestNotice(t *testing.T) {
	notice := func(pairs ...string) (list []string) {
		d := short.Must(read([]byte(strings.NewReplacer(pairs...).Replace(text)), Options{}))(t)
		for _, p := range d.Notice("f") {
			list = append(list, fmt.Sprintf("%s %d %s[%d] %s", p.Kind, p.Count, p.Node, p.Port, p.String()))
		}
		return list
	}
	warned := "tool-warning 1 0x0000000000000020[0] f:41: NODE_NO_RESPONSE: No response, status = 4"
	mtu := "uneven-cable 1 0x0000000000000010[1] f:36: an MTU of 4096 bytes here and 2048 at \"h \\\"1\\\" HCA-1\"[1](B184D0F0/0/0/1)"
	for _, c := range []struct {
		what  string
		pairs []string
		want  []string
	}{
		{"as it is", nil, []string{warned, mtu}},
		{"the same MTU", []string{"4,4,3,4\n", "4,4,3,5\n"}, []string{warned}},
		{"other VLs", []string{"4,4,3,4\n", "4,4,2,5\n"}, []string{warned, "uneven-cable 1 0x0000000000000010[1] f:36: 4 data VLs in operation here and 2 at"}},
		{"down", []string{"2,2048,4,4,3,4\n", "2,2048,2,4,3,4\n"}, []string{warned}},
		{"two events", []string{"END_WARNINGS", "NODE,0x10,0x00,0x00,NODE_NO_RESPONSE,x\nNODE,0x10,0x00,0x00,OTHER,x\nEND_WARNINGS"},
			[]string{"tool-warning 2 ", "tool-warning 1 0x0000000000000010[0] f:43: OTHER: x", "uneven-cable 1 "}},
		{"two masters", []string{",3,12\n", ",3,12\n0x20,0x21,1,0x21,0x1,1,3,14\n0x20,0x22,1,0x22,0x1,1,2,14\n"},
			[]string{warned, "several-masters 2 0x0000000000000010[0] f: 2 subnet managers", mtu}},
		{"two runs in one file", []string{",3,12\n", ",3,12\n0x10,0x10,0,0x10,0x1,7,3,12\n"}, []string{warned, mtu}},
	} {
		got := notice(c.pairs...)
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", c.what, got[i], c.want[i])
			}
		}
	}
}

// All files of a run, as they are written, agree.
func TestFilesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFabric(t)
		var lst bytes.Buffer
		short.Check(t, dump.WriteSubnetList(&lst, f))
		fabrics := map[string]*fabric.Fabric{"db_csv": f}
		if f.NumLinks() > 0 {
			g, _ := short.Must2(topology.Parse("lst", lst.Bytes(), topology.Options{}))(t)
			fabrics["lst"] = g
		}
		g, _ := short.Must2(topology.Parse("ibnetdiscover", topology.Append(nil, f), topology.Options{}))(t)
		fabrics["ibnetdiscover"] = g
		for a, f := range fabrics {
			for b, g := range fabrics {
				for _, d := range Disagreements(f, g, a, b) {
					t.Fatalf("%s", d.Message)
				}
			}
		}
	})
}

// One difference of each kind is found, from both sides.
func TestDisagreements(t *testing.T) {
	parse := func(change ...string) *fabric.Fabric {
		text := `Switch	3 "S-0000000000000010"	# "s" base port 0 lid 1 lmc 0
[1]	"H-0000000000000020"[1](21)	# "h" lid 2 4xNDR
[2]	"H-0000000000000030"[1](31)	# "k" lid 3 4xNDR

Ca	2 "H-0000000000000020"	# "h"
[1](21)	"S-0000000000000010"[1]	# lid 2 lmc 0 "s" lid 1 4xNDR

Ca	2 "H-0000000000000030"	# "k"
[1](31)	"S-0000000000000010"[2]	# lid 3 lmc 0 "s" lid 1 4xNDR
`
		f, _ := short.Must2(topology.Parse("x", []byte(strings.NewReplacer(change...).Replace(text)), topology.Options{Lenient: true}))(t)
		return f
	}
	f := parse()
	for _, c := range []struct {
		what   string
		change []string
		want   []string
		swap   []string // the other way round
	}{
		{"nothing", nil, nil, nil},
		{"names", []string{`"h"`, `"other"`}, nil, nil},
		{"LID", []string{"lid 2", "lid 9"}, []string{`LID of "h"[1] is 2 in one, and 9 in two`}, nil},
		{"LID of a switch", []string{"lid 1", "lid 9"}, []string{`LID of "s"[0] is 1 in one, and 9 in two`}, nil},
		{"speed", []string{"lid 2 4xNDR", "lid 2 4xHDR", "lid 2 lmc 0 \"s\" lid 1 4xNDR", "lid 2 lmc 0 \"s\" lid 1 4xHDR"}, []string{"is 4xNDR in one, and 4xHDR in two"}, nil},
		{"speed that one does not know", []string{"4xNDR", ""}, nil, nil},
		{"cable", []string{"[2]\t", "#", `[1](31)`, "#"}, []string{`one has a cable from "s"[2] to "k"[1] and two does not`, ""}, []string{"two has a cable"}},
		{"end", []string{`0030"[1](31)`, `0030"[2](32)`, "[1](31)", "[2](32)"}, []string{"leads to \"k\"[1] in one, and to \"k\"[2] in two", ""}, nil},
		{"node", []string{"0030", "0040"}, []string{"one has node", "two has node", "the cable of"}, nil},
		{"ports", []string{`Switch	3`, `Switch	5`}, []string{"with 3 ports in one, and a Switch with 5 ports in two"}, nil},
	} {
		g := parse(c.change...)
		list := Disagreements(f, g, "one", "two")
		if (len(c.want) == 0) != (len(list) == 0) {
			t.Errorf("%s: %v", c.what, list)
		}
		for i, want := range c.want {
			found := want == "" && len(list) >= i
			for _, d := range list {
				found = found || strings.Contains(d.Message, want)
			}
			if !found {
				t.Errorf("%s: no %q in %v", c.what, want, list)
			}
		}
		back := Disagreements(g, f, "one", "two")
		for _, want := range c.swap {
			if len(back) == 0 || !strings.Contains(back[len(back)-1].Message, want) {
				t.Errorf("%s, the other way round: %v", c.what, back)
			}
		}
	}
}
