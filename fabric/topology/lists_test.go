package topology

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// info is what iblinkinfo prints of a switch with a host, another without LIDs, and ports
// without cables.
//
//go:embed testdata/iblinkinfo.txt
var info string

//go:embed testdata/iblinkinfo.told
var infoTold string

func TestLinkInfo(t *testing.T) {
	silent := "line 11: the port is up, and nothing answered behind it\n"
	row := func(old, new string) string { return strings.Replace(info, old, new, 1) }
	for _, test := range []struct {
		name, text string
		want       string // "" for an error
		say        string // problems, or what the error has
	}{
		{"as printed", info, infoTold, silent},
		{"a banner", "=~=~= PuTTY =~=~=\n[root@host ~]# iblinkinfo\n" + info + "[root@host ~]#\n", infoTold,
			"line 1: =~=~= PuTTY =~=~=\n" + strings.Replace(silent, "11", "13", 1)},
		{"a mark and CR", "\ufeff" + strings.ReplaceAll(info, "\n", "\r\r\n"), infoTold, silent},
		{"between nodes", row("CA: host", "src/query_smp.c:195; timed out\nCA: host"), infoTold,
			"line 7: src/query_smp.c:195; timed out\n" + strings.Replace(silent, "11", "12", 1)},
		{"in a node", row("           1    2", "logout\n           1    2"), "", "in:3: not a line of topology text"},
		{"no head", strings.TrimPrefix(info, "Switch: 0x0000000000000010 leaf 1:\n"), "", "in:1:11: a port of no node"},
		{"a cut head", row("leaf 2:", "leaf 2"), "", "in:9:27: want the node's description and a colon"},
		{"a head without a GUID", row("0x0000000000000020", "0x00000000000000201"), "", "in:9:8: GUID \"0x00000000000000201\""},
		{"a cut row", info[:len(info)-60], "", "in:11:"},
		{"a cut number", info + "           3", "", "in:12:11: want LID, port"},
		{"no end", row(`"leaf 2" (Could`, `"leaf 2 (Could`), "", "in:4:"},
		{"one end", row(`    1[  ] "host 1"`, `    2[  ] "host 1"`), "", `in:2:67: connected to port 2 of "host 1" here, but no row of that node says so`},
		{"a port twice", row("1    2[  ]", "1    1[  ]"), "", "port 1 of SW 0x0000000000000010 is there twice: line 2 has it too"},
		{"port 255", row("1    2[  ]", "1  255[  ]"), "", "in:3:14: port 255: want 1 to 254"},
		{"no port GUID", row("      0x0000000000000101 ", "      "), "", "in:8:11: no GUID of the port"},
		{"LID 65535", strings.NewReplacer("      2    1[", "  65535    1[").Replace(info), strings.Replace(infoTold, " lid 2", "", 1),
			"line 2: LID 65535: want 1 to 49151; taken as none\n" + silent},
		{"LIDs that disagree", row("      2    1[", "      9    1["), infoTold, "line 2: LID of CA 0x0000000000000101[1] is 9 here, but 2 in its own line: taken from there\n" + silent},
		{"speeds that disagree", row("25.78125", "2.5"), strings.ReplaceAll(infoTold, "4xEDR", "4xSDR"),
			"line 8: CA 0x0000000000000101[1] is 4xEDR here, but SW 0x0000000000000010[1] is 4xSDR in line 2: taken as 4xSDR\n" + silent},
		{"twins", info + strings.ReplaceAll(strings.ReplaceAll(info, "0000010 ", "0000030 "), "0000000020 ", "0000000040 "), "",
			`in:2:67: port 1 of "host 1" may be that of any of 2 nodes with this description and LID: want iblinkinfo -l`},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkParse(t, []byte(test.text))
			f, problems, err := Parse("in", []byte(test.text), Options{})
			if test.want == "" {
				short.Contains(t, fmt.Sprint(err), test.say, "error")
				return
			}
			short.Check(t, err)
			short.Diff(t, tell(f), test.want)
			short.Diff(t, list(problems), test.say, "problems")
		})
	}
}

// links are of UFM 6.20; those of UFM 6.11 have less. The second has its ends in the other
// order in its name, the third is of a host with two adapters.
//
//go:embed testdata/ufm-links.json
var links string

//go:embed testdata/ufm-links.told
var linksTold string

func TestUFMLinks(t *testing.T) {
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(links) }
	twice := strings.TrimSuffix(links, "\n]\n") + ",\n" + strings.TrimPrefix(links, "[\n")
	old := `[ { "source_guid": "10", "source_port": "29", "destination_guid": "20", "destination_port": "28", "source_port_dname": "29",
"destination_port_dname": "28", "width": "IB_4x", "severity": "Info", "name": "20_28:10_29", "capabilities": [ ] },
{ "destination_port_dname": "HCA-1/2", "source_guid": "10", "width": "IB_4x", "source_port_dname": "20", "source_port": "20", "destination_port": "2", "destination_guid": "900", "name": "10_20:102_2" }]`
	for _, test := range []struct{ name, text, want, say string }{
		{"as answered", links, linksTold, ""},
		{"each twice", twice, linksTold, ""},
		{"in one line", strings.ReplaceAll(strings.ReplaceAll(links, "\n", " "), "  ", ""), linksTold, ""},
		{"CRLF", "\ufeff" + strings.ReplaceAll(links, "\n", "\r\n"), linksTold, ""},
		{"of a terminal", "[root@ufm ~]# curl -s -u admin https://ufm/ufmRest/resources/links\nHTTP/1.1 200 OK\n\n" + strings.TrimSuffix(links, "\n") + "[root@ufm ~]# ", linksTold,
			"line 1: [root@ufm ~]# curl -s -u admin https://ufm/ufmRest/resources/links\n"},
		{"of UFM 6.11", old, "Switch 10 \"\" ports 29\n  20 to 100 2 4x\n  29 to 20 28 4x\nSwitch 20 \"\" ports 28\n  28 to 10 29 4x\nChannel Adapter 100 \"\" ports 2\n  2 to 10 20 4x\n", ""},
		{"cut short", links[:400], "", "in:5: no list of links as UFM gives it for /ufmRest/resources/links: the text ends within the list: the file is cut short"},
		{"no JSON", change(`"width": "4x",`, `"width": 4x,`), "", "in:3: no list of links"},
		{"no JSON in the last link", change(`"width": null`, `"width": nil`), "", "in:11: no list of links"},
		{"no comma", change("},\n    {\"source_guid\": \"0x900\"", "}\n    {\"source_guid\": \"0x900\""), "", "in:6: no list of links"},
		{"no GUID", change(`"source_guid": "0000000000000010"`, `"source_guid": ""`), "", `in:2:4: source: GUID ""`},
		{"no port", change(`"source_port": 1,`, ``), "", `in:6:4: source: port "": want 1 to 254`},
		{"a list for a name", change(`"width": null`, `"width": [1]`), "", `in:9:4: width: want a string`},
		{"an object for a GUID", change(`"source_guid": "0000000000000010"`, `"source_guid": {}`), "", `in:2:4: source_guid: want a string`},
		{"a truth for a port", change(`"source_port": 1,`, `"source_port": true,`), "", `in:6:4: source_port: want a string`},
		{"a number for a link", strings.TrimSuffix(links, "\n]\n") + ", 1]", "", `in:11:92: want an object of a link`},
		{"another port in the name", change(`10_5:`, `10_4:`), "", `in:2:4: name "0000000000000010_4:0000000000000020_6" and ports 5 and 6: want the same ports in both`},
		{"another port in the port's name", change(`201_1"`, `201_2"`), "", `in:9:4: name "0000000000000201_2" of port 1: want the same port in both`},
		{"a port twice", change(`"destination_port": "7"`, `"destination_port": "5"`, "10_7:", "10_5:"), "", "in:6: CA 0x0000000000000101[1] is connected to SW 0x0000000000000010[5] here, but line 2 connects that port to SW 0x0000000000000020[6]"},
		{"text behind", links + "[\n", linksTold, "line 13: [\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkParse(t, []byte(test.text))
			f, problems, err := Parse("in", []byte(test.text), Options{})
			if test.want == "" {
				short.Contains(t, fmt.Sprint(err), test.say, "error")
				if _, problems, _ := Parse("in", []byte(test.text), Options{Lenient: true}); strings.Contains(list(problems), "%!") {
					t.Errorf("leniently: %s", list(problems))
				}
				return
			}
			short.Check(t, err)
			short.Diff(t, tellLabels(f), test.want)
			short.Diff(t, list(problems), test.say, "problems")
			g, _ := short.Must2(Parse("again", AppendUFMLinks(nil, f), Options{}))(t)
			if diff := cmp.Diff(tellLabels(f), tellLabels(g)); diff != "" && test.name != "of UFM 6.11" { // without names of nodes
				t.Errorf("(-read +written and read again)\n%s", diff)
			}
		})
	}
}

// tellLabels is tell with labels.
func tellLabels(f *fabric.Fabric) string {
	lines := strings.Split(tell(f), "\n")
	i := 0
	for n := range fabric.NodeID(f.NumNodes()) {
		i++
		for p := f.PortBase(n) + 1; p < f.PortBase(n)+fabric.PortID(f.Node(n).NumPorts)+1; p++ {
			if f.Peer(p) != fabric.NoPort {
				if label := f.Label(p); label != "" {
					lines[i] += " (" + label + ")"
				}
				i++
			}
		}
	}
	return strings.Join(lines, "\n")
}

func TestNodeListNames(t *testing.T) {
	text := "[root@host ~]# ibnodes\nibwarn: [7] mad_rpc: timeout\nCa\t: 0x0000000000000100 ports 2 \"a \"quoted\" name\"\n" +
		"Switch  : 0x10 ports 36 \"leaf 1\" enhanced port 0 lid 7 lmc 0\r\nSwitch\t: 0x10 ports 36 \"leaf 1\" base port 0 lid 7 lmc 0\n"
	names, problems := short.Must2(ParseNames("in", []byte(text)))(t)
	short.Diff(t, names, map[fabric.GUID]string{0x100: `a "quoted" name`, 0x10: "leaf 1"})
	short.Diff(t, list(problems), "line 1: [root@host ~]# ibnodes\nline 2: ibwarn: [7] mad_rpc: timeout\n")
	for more, say := range map[string]string{
		"Ca\t: 0x10 ports 1 \"other\"\n": "in:6: GUID 0x0000000000000010 has a name in line 5 already",
		"Ca\t: 0x0 ports 1 \"other\"\n":  "in:6: GUID 0 belongs to no node",
		"Ca\t: 0x11 ports 1 \"oth\n":     "in:6: want a node such as",
		"Ca\t: 11 ports 1 \"other\"\n":   "in:6: want a node such as",
	} {
		if _, _, err := ParseNames("in", []byte(text+more)); err == nil || !strings.HasPrefix(err.Error(), say) {
			t.Errorf("%q: %v", more, err)
		}
	}
}

// The rate of a link is a number of its own, not the end of a word.
func TestInfoRate(t *testing.T) {
	for text, want := range map[string]fabric.Speed{" 4X  25.78125 Gbps Active": fabric.EDR, "4X/5.0 Gbps": fabric.DDR, "4X v25.78125 Gbps": 0, "4X 325.78125 Gbps": 0, "(x5 Gbps": 0} {
		if link, _ := linkInfoOf([]byte(text)); link.Speed != want {
			t.Errorf("%q: %v, want %v", text, link.Speed, want)
		}
	}
}

const (
	netColumns = "  # : IB# : Sta : PhysSta : MTU : LWA : LSA : FEC mode : Retran : Neighbor Guid : N# : NLID : Neighbor Description\n"
	netRow     = "  %-10s : %-3d : ACT  : LINK UP    : 5   : %-7s : %-7s : RS_FEC_544_514      : NO-RTR : 0x%016x : %-10s : %-4d : \"%s\"\n"
	netDown    = "  %-10s : %-3d : DOWN : POLL       : N/A : N/A     : N/A     : N/A                 : N/A    :                    :            :      : \n"
	// netCut is a net_dump with two switches, two adapters and a port where nothing answers.
	netCut = "# This database file was automatically generated by IBDIAG\n\n" +
		"\"a, \"1\": x\", Mellanox, 0x10, LID 1\n" + netColumns +
		"  1/1/1 : 1 : ACT : LINK UP : 5 : 4x : 100 : N/A : NO-RTR : 0x20 : 1/1/2 : 2 : \"b: \"2\"\"\n" +
		"  1/1/2 : 2 : ACT : LINK UP : 5 : 4x : 100 : N/A : NO-RTR : 0x30 : B1D0F0/0/0/2 : 3 : \"host 1\"\n" +
		"  1/2/1 : 3 : INI : LINK UP : 5 : 4x : 100 : N/A : NO-RTR : : : :\n" +
		"\"b: \"2\"\", Mellanox, 0x20, LID 2\n" + netColumns +
		"  1/1/1 : 1 : DOWN : POLL : N/A : N/A : N/A : N/A : N/A : : : : \n" +
		"  1/1/2 : 2 : ACT : LINK UP : 5 : 4x : 100 : N/A : NO-RTR : 0x10 : 1/1/1 : 1 : \"a, \"1\": x\"\n" +
		"  65 : 65 : ACT : LINK UP : 5 : 2x : 25 : N/A : NO-RTR : 0x40 : 1 : 4 : \"Aggregation Node\"\n"
)

// netDump writes a fabric as ibdiagnet does.
func netDump(f *fabric.Fabric) string {
	b := new(strings.Builder)
	label := func(at fabric.PortID) string {
		if l := f.Label(at); l != "" {
			return l
		}
		return fmt.Sprint(f.Num(at))
	}
	for n := range fabric.NodeID(f.NumNodes()) {
		m := f.Node(n)
		if m.Type != fabric.Switch {
			continue
		}
		fmt.Fprintf(b, "\"%s\", Mellanox, 0x%016x, LID %d\n%s", m.Description, uint64(m.GUID), f.LID(f.Port(n, 0)), netColumns)
		for num := fabric.PortNum(1); num <= m.NumPorts; num++ {
			at := f.Port(n, num)
			peer := f.Peer(at)
			if peer == fabric.NoPort {
				fmt.Fprintf(b, netDown, label(at), num)
				continue
			}
			x, end, link, width := f.Node(f.Owner(peer)), peer, f.Link(at), "??"
			if link.Width > 0 {
				width = fmt.Sprintf("%dx", link.Width)
			}
			if x.Type == fabric.Switch {
				end = f.Port(f.Owner(peer), 0)
			}
			fmt.Fprintf(b, netRow, label(at), num, width, SubnetSpeeds[link.Speed], uint64(x.GUID), label(peer), f.LID(end), x.Description)
		}
	}
	return b.String() + "# File closed at : 2026-11-22 00:00:00 UTC\n"
}

// What a net_dump says of a fabric is read back: nodes, names, LIDs, cables, widths and speeds.
func TestNetDump(t *testing.T) {
	f, _, err := Parse("plain", []byte(awkward), Options{})
	short.Check(t, err)
	text := netDump(f)
	short.Equal(t, Recognize([]byte(text)), NetDump, "form")
	got, problems, err := Parse("ibdiagnet2.net_dump", []byte(text), Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if problems = withoutZero(problems); len(problems) > 0 {
		t.Error(list(problems))
	}
	guids := regexp.MustCompile(` port GUID \S+`) // of adapters, which the form does not have
	lmc := regexp.MustCompile(` lmc \d+`)
	have, want := guids.ReplaceAllString(tell(got), ""), tell(listed(t, f))
	want = guids.ReplaceAllString(lmc.ReplaceAllString(strings.ReplaceAll(want, "Router", "Channel Adapter"), ""), "")
	short.Diff(t, have, want)
}

func TestNetDumpPorts(t *testing.T) {
	f, problems, err := Parse("n", []byte(netCut), Options{})
	short.Check(t, err)
	if len(problems) != 1 || problems[0].Kind != fabric.SweepError || problems[0].Node != 0x10 || problems[0].Port != 3 {
		t.Error(list(problems))
	}
	short.Diff(t, strings.TrimSpace(tell(f)), strings.TrimSpace(`
Switch 10 "a, \"1\": x" ports 3 lid 1
  1 to 20 2 4xNDR
  2 to 30 2 4xNDR
Switch 20 "b: \"2\"" ports 65 lid 2
  2 to 10 1 4xNDR
  65 to 40 1 2xEDR
Channel Adapter 30 "host 1" ports 2
  2 to 10 2 4xNDR lid 3
Channel Adapter 40 "Aggregation Node" ports 1
  1 to 20 65 2xEDR lid 4 port GUID 40
`))
	for node, label := range map[fabric.GUID]string{0x10: "1/1/2", 0x30: "B1D0F0/0/0/2"} {
		n, _ := f.NodeByGUID(node)
		short.Equal(t, f.Label(f.Port(n, 2)), label, "label")
	}
}

// A broken net_dump is refused with the line and what would have been right; a lenient read goes on.
func TestBrokenNetDump(t *testing.T) {
	for _, test := range []struct {
		from, to string // "" to cut the text in front of from
		line     int
		want     string
	}{
		{"# : IB#", "# : IB", 3, "want at least # : ib# : sta"},
		{"0x10, LID", "0x0, LID", 3, "1 to 16 hexadecimal digits, not 0"},
		{"Mellanox, 0x10, LID 1", "Mellanox, 0x10", 3, `want the description of a switch, its vendor, GUID and LID`},
		{": 2 : ACT", ": 255 : ACT", 6, "port 255: want 1 to 254"},
		{": 2 : ACT", ": 1 : ACT", 6, "is there twice: line 5 has it too"},
		{"ACT", "UP", 5, "want one of ACT, ARM, INI, DWN"},
		{"4x", "5x", 5, "want one of 1x, 2x"},
		{": 100", ": 99", 5, "want one of ??, 2.5"},
		{"0x30", "30", 6, `GUID "30"`},
		{" : 3 : \"host 1\"", "", 6, "the row is cut short"},
		{"host 1\"", "host", 6, "description of the neighbour in quotes"},
		{"1/1/2 : 2 : \"b", "1/9/9 : 2 : \"b", 5, `port "1/9/9" of switch 0x0000000000000020`},
		{"1/1/2 : 2 : \"b", "1/1/1 : 2 : \"b", 5, "no line for its port 1"},
		{"0x10 : 1/1/1 : 1", "0x10 : 1/1/2 : 1", 5, "but line 11 connects that port to"},
		{"\"b: \"2\"\", Mellanox", "", 5, "is the file cut short"},
	} {
		text := strings.Replace(netCut, test.from, test.to, 1)
		if test.to == "" {
			text = netCut[:strings.Index(netCut, test.from)]
		}
		_, _, err := Parse("ibdiagnet2.net_dump", []byte(text), Options{})
		broken, ok := errors.AsType[*fabric.ParseError](err)
		if !ok || broken.Line != test.line || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q instead of %q: %v, want line %d and %q", test.to, test.from, err, test.line, test.want)
		}
		if _, problems, err := Parse("n", []byte(text), Options{Lenient: true}); err != nil || len(problems) == 0 {
			t.Errorf("%q instead of %q: lenient: %v %v", test.to, test.from, list(problems), err)
		}
	}
}

func FuzzNetDump(f *testing.F) {
	f.Add([]byte(netCut))
	f.Add([]byte("[root@host ~]# cat net_dump\n" + strings.ReplaceAll(netCut, "\n", "\r\n") + "[root@host ~]#"))
	f.Fuzz(func(t *testing.T, data []byte) { checkParse(t, data) })
}
