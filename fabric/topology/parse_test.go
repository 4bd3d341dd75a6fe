package topology

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// pair is a switch and a CA, as ibnetdiscover prints them.
//
//go:embed testdata/pair.ibnetdiscover
var pair string

const tellPair = `Switch 1 "leaf" ports 36 system 1 vendor 2c9 device d2f2 enhanced lid 7
  17 to 2 1 4xNDR
Channel Adapter 2 "host" ports 1 system 2 vendor 2c9 device 1021
  1 to 1 17 4xNDR lid 9
`

// switches is two cabled switches whose lines are completed by the test.
func switches(port1, port2 string) string {
	return "Switch 4 \"S-0000000000000001\" # \"a\" base port 0 lid 1 lmc 0\n[1] \"S-0000000000000002\"[2]" + port1 +
		"\n\nSwitch 4 \"S-0000000000000002\" # \"b\" base port 0 lid 2 lmc 0\n[2] \"S-0000000000000001\"[1]" + port2 + "\n"
}

func tellSwitches(link string) string {
	return "Switch 1 \"a\" ports 4 lid 1\n  1 to 2 2" + link + "\nSwitch 2 \"b\" ports 4 lid 2\n  2 to 1 1" + link + "\n"
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
		notes            string
	}{
		{"ibnetdiscover", pair, tellPair, ""},
		{"CRLF", strings.ReplaceAll(pair, "\n", "\r\n"), tellPair, ""},
		{"no empty lines", strings.ReplaceAll(pair, "\n\n", "\n"), tellPair, ""},
		{"no final newline", strings.TrimSuffix(pair, "\n"), tellPair, ""},
		{"blanks for tabs", strings.ReplaceAll(pair, "\t", "  "), tellPair, ""},
		{"no blanks", strings.NewReplacer("] \t", "]", "]\t", "]", ") \t", ")", "\t\t#", "#", "# \"", "#\"").Replace(pair), tellPair, ""},
		{"indented", strings.ReplaceAll(pair, "\n", "\n \t"), tellPair, ""},
		{"byte order mark", "\ufeff" + pair, tellPair, ""},
		{"Hca", strings.NewReplacer("Ca\t", "Hca\t", "caguid", "hcaguid").Replace(pair), tellPair, ""},
		{"upper case", strings.NewReplacer("0x2c9", "0x2C9", "0xd2f2", "0XD2F2", "0x1(1)", "0x0000000000000001(0x1)").Replace(pair), tellPair, ""},
		{"comments", strings.ReplaceAll(pair, "\n[1", "\n# a comment\n[1"), tellPair, ""},
		{
			// ibnetdiscover -g
			"chassis",
			strings.NewReplacer(
				"\nvendid=0x2c9\ndevid=0xd2f2", "\nChassis 1 (guid 0x5)\nHostname: box\n\n# Spine Nodes\nvendid=0x2c9\ndevid=0xd2f2",
				"sysimgguid=0x1\n", "sysimgguid=0x1\t\t# Chassis 1 (box) slot 3\n",
				"(1)\n", "(1)\t# Spine 1 Chip 2\n",
				"[17]\t", "[17][ext 4]\t", "[17]\t\t#", "[17][ext 4]\t\t#",
				"\nvendid=0x2c9\ndevid=0x1021", "\nNon-Chassis Nodes\n\nvendid=0x2c9\ndevid=0x1021",
				"# \"host\"\n", "# \"host\" (scp)\n", "4xNDR", "4xNDR slot 3",
			).Replace(pair),
			tellPair, "",
		},
		// ibnetdiscover -f
		{"full", strings.ReplaceAll(pair, "4xNDR", "4xNDR s=4 w=2 v=4"), tellPair, ""},
		{
			"description with everything",
			strings.NewReplacer(`"leaf"`, `"a "b", #c\ lid 3 4xSDR 'd' "e""`).Replace(pair),
			strings.Replace(tellPair, `"leaf"`, `"a \"b\", #c\\ lid 3 4xSDR 'd' \"e\""`, 1), "",
		},
		{"empty description", strings.ReplaceAll(pair, `"leaf"`, `""`), strings.Replace(tellPair, `"leaf"`, `""`, 1), ""},
		{
			"old captures: no quotes around descriptions",
			strings.NewReplacer(`# "leaf"`, "# leaf, of old", `# "host"`, "# host", `lmc 0 "leaf" lid 7`, "lmc 0 leaf, of old lid 7").Replace(pair),
			strings.Replace(tellPair, `"leaf"`, `"leaf, of old"`, 1), "",
		},
		{"options and a comment", switches(` w=4 s=1 # "b" lid 2`, ` w=4 s=1# "a" lid 1 8xSDR`), tellSwitches(" 8xSDR"), ""},
		{"words in a comment that look like options", switches(` # "b" lid 2 4xSDR w=99 s=x 77 lid`, ` # "a" lid 1 4xSDR =`), tellSwitches(" 4xSDR"), ""},
		{"words in a description without quotes that look like LIDs", switches(` # lid 5b of b lid 2 4xSDR`, ` # lid lid lid 1 4xSDR`), tellSwitches(" 4xSDR"), ""},
		{
			"no description in a comment",
			"Switch 2 \"a\" # base port 0 lid 3 lmc 0\nCa 1 \"h\" #\nCa 1 \"i\" # \"\nCa 1 \"j\"#k \n",
			"Switch 200000 \"a\" ports 2 lid 3\nChannel Adapter 100000 \"h\" ports 1\nChannel Adapter 100002 \"\\\"\" ports 1\nChannel Adapter 100004 \"k\" ports 1\n", "",
		},
		{"masks of FDR", switches(" e=1", " e=1"), tellSwitches(" 4xFDR"), ""},
		{"masks of HDR", switches(" e=7 w=3", " e=7 w=3"), tellSwitches(" 4xHDR"), ""},
		{"masks of 1x", "pdebug=1\nextspeed=8\n" + switches(" w=1", " w=1"), tellSwitches(" 1xNDR"), ""},
		{"masks", switches(" w=17 s=7 e=2", " w=17 s=7 e=2"), tellSwitches(" 2xEDR"), ""},
		{"mask of the width only", switches(" w=4", " w=4"), tellSwitches(" 8xSDR"), ""},
		{"mask of the speed only", switches(" s=4", " s=4"), tellSwitches(" 4xQDR"), ""},
		{"no blank behind the type", strings.NewReplacer("Switch\t", "Switch", "Ca\t", "Ca").Replace(pair), tellPair, ""},
		{"no comments", switches("", ""), tellSwitches(""), ""},
		{"link at one end", switches(` # "b" lid 2 4xHDR`, ` # "a" lid 1`), tellSwitches(" 4xHDR"), ""},
		{"width at one end, speed at the other", switches(` # "b" lid 2 4x???`, ` # "a" lid 1 ??HDR`), tellSwitches(" 4xHDR"), ""},
		{"unknown speed and width", switches(` # "b" lid 2 4xFAST`, ` # "a" lid 1 5xFAST`), tellSwitches(" 4x"), ""},
		{"lid without a number", switches(` # "b" lid 4xDDR`, ` # "a" lid 4xDDR`), tellSwitches(" 4xDDR"),
			"line 2: LID without a number: want 1 to 49151; taken as 2, as another line says\nline 5: LID without a number: want 1 to 49151; taken as 1, as another line says\n"},
		{"hexadecimal LIDs", switches(` # "b" lid 0x2 1xSDR`, ` # "a" lid 0x1 1xSDR`), tellSwitches(" 1xSDR"), ""},
		{"no quotes in comments", switches(` # b lid 2 12xQDR`, ` # lid 1 12xQDR`), tellSwitches(" 12xQDR"), ""},
		{
			"ends of different speed", switches(` # "b" lid 2 4xHDR`, ` # "a" lid 1 4xNDR`), tellSwitches(" 4xHDR"),
			"line 5: \"S-0000000000000002\"[2] is 4xNDR here, but \"S-0000000000000001\"[1] is 4xHDR in line 2: taken as 4xHDR\n",
		},
		{
			"same rate, different width", switches(` # "b" lid 2 8xSDR`, ` # "a" lid 1 4xDDR`), tellSwitches(" 4xDDR"),
			"line 5: \"S-0000000000000002\"[2] is 4xDDR here, but \"S-0000000000000001\"[1] is 8xSDR in line 2: taken as 4xDDR\n",
		},
		{
			"LID of the peer is another", switches(` # "b" lid 3 4xHDR`, ` # "a" lid 1 4xHDR`), tellSwitches(" 4xHDR"),
			"line 2: LID of \"S-0000000000000002\" is 3 here, but 2 in its own line: taken from there\n",
		},
		{
			"LID of a CA port is another", strings.Replace(pair, "lid 9 4xNDR", "lid 10 4xNDR", 1), tellPair,
			"line 11: LID of \"H-0000000000000002\"[1] is 10 here, but 9 in its own line: taken from there\n",
		},
		{
			"LIDs from the neighbours only",
			strings.NewReplacer(" lid 7 lmc 0\n", "\n", "# lid 9 lmc 0", "#").Replace(pair), tellPair, "",
		},
		{"own LID only", strings.NewReplacer(` "leaf" lid 7 4xNDR`, "").Replace(pair), tellPair, ""},
		{
			"names that look like ids",
			"Switch 2 \"S-switch-number-01\"\n[1] \"S-switch-number-02\"[2]\n\nSwitch 2 \"S-switch-number-02\"\n[2] \"S-switch-number-01\"[1]\n\nSwitch 2 \"S-1\"\n",
			"Switch 200000 \"S-switch-number-01\" ports 2\n  1 to 200001 2\nSwitch 200001 \"S-switch-number-02\" ports 2\n  2 to 200000 1\nSwitch 200002 \"S-1\" ports 2\n", "",
		},
		{
			"neighbours disagree on a LID",
			"Switch 2 \"a\" # \"a\" base port 0 lid 1 lmc 0\n[1] \"b\"[1] # \"b\" lid 5 4xQDR\n[2] \"b\"[2] # \"b\" lid 6 4xQDR\n\n" +
				"Switch 2 \"b\" # \"b\" base port 0\n[1] \"a\"[1]\n[2] \"a\"[2]\n",
			"Switch 200000 \"a\" ports 2 lid 1\n  1 to 200001 1 4xQDR\n  2 to 200001 2 4xQDR\nSwitch 200001 \"b\" ports 2\n  1 to 200000 1 4xQDR\n  2 to 200000 2 4xQDR\n",
			"line 3: LID of \"b\" is 6 here, but 5 elsewhere, and it says none itself: left without a LID\n",
		},
		{
			"port GUID from the switch only", strings.Replace(pair, "[1](3) \t\"S", "[1] \t\"S", 1), tellPair, "",
		},
		{
			"port GUIDs that are not node GUID + port",
			strings.NewReplacer("(1)", "(e)", "](3)", "](f)").Replace(pair),
			strings.NewReplacer("lid 7", "lid 7 port GUID e", "lid 9", "lid 9 port GUID f").Replace(tellPair), "",
		},
		{
			"port GUID of the peer is another", strings.Replace(pair, "[1](3) \t\t#", "[1](f) \t\t#", 1), tellPair,
			"line 11: port GUID of \"H-0000000000000002\"[1] is 0x000000000000000f here, but 0x0000000000000003 in its own line 18: taken from there\n",
		},
		{"GUIDs from ids", strings.NewReplacer("switchguid=0x1(1)\n", "", "caguid=0x2\n", "").Replace(pair), tellPair, ""},
		{
			"LMC",
			strings.NewReplacer("lid 7 lmc 0", "lid 8 lmc 3", "lid 7", "lid 8", "lid 9 lmc 0", "lid 0xbf80 lmc 7", "lid 9", "lid 49024").Replace(pair),
			strings.NewReplacer("lid 7", "lid 8 lmc 3", "lid 9", "lid 49024 lmc 7").Replace(tellPair), "",
		},
		{
			"LID 0 on both", strings.NewReplacer("lid 7", "lid 0", "lid 9", "lid 0").Replace(pair),
			strings.NewReplacer(" lid 7", "", " lid 9", "").Replace(tellPair), "",
		},
		{
			// The rule of ibsim's new_node, seen in TestIbsimShortForm too.
			"short form",
			"# by hand\nSwitch 5 \"left\"\n[1] \"right\"[3]\n[2]\"right\" [4]\n[5] \"two\"[2]\n\nSwitch 254 \"right\"\n[3] \"left\"\n[4] \"left\"[2]\n[254] \"h\"\n\n" +
				"Hca 2 \"two\"\n[2] \"left\"[5]\n\nCa 1 \"h\" # \"\"\n[1] \"right\"[254]\n",
			"Switch 200000 \"left\" ports 5\n  1 to 200001 3\n  2 to 200001 4\n  5 to 100000 2\n" +
				"Switch 200001 \"right\" ports 254\n  3 to 200000 1\n  4 to 200000 2\n  254 to 100003 1\n" +
				"Channel Adapter 100000 \"two\" ports 2\n  2 to 200000 5\n" +
				"Channel Adapter 100003 \"\" ports 1\n  1 to 200001 254\n", "",
		},
		{
			"ibsim's GUID bases, device and masks",
			"devid=0x5\nswitchguid=0x500\nSwitch 2 \"a\"\n[1] \"b\"[1] w=8 s=2\n\nSwitch 2 \"b\"\n[1] \"a\"[1] w=8 s=2 e=8\n\nwidth=4\nspeed=3\nswitchguid+0x20\nSwitch 2 \"c\"\n[1] \"r\"\n\nrtguid=0x900\nRt 1 \"r\"\n[1] \"c\"\n",
			"Switch 500 \"a\" ports 2 system 0 vendor 0 device 5\n  1 to 501 1 12xDDR\n" +
				"Switch 501 \"b\" ports 2 system 0 vendor 0 device 5\n  1 to 500 1 12xDDR\n" +
				"Switch 520 \"c\" ports 2 system 0 vendor 0 device 5\n  1 to 900 1 8xDDR\n" +
				"Router 900 \"r\" ports 1 system 0 vendor 0 device 5\n  1 to 520 1 8xDDR\n",
			"line 7: \"b\"[1] is 12xNDR here, but \"a\"[1] is 12xDDR in line 4: taken as 12xDDR\n",
		},
		{
			"a switch with a cable to itself, twice",
			"Switch 4 \"S-0000000000000001\"\n[1] \"S-0000000000000001\"[2]\n[2] \"S-0000000000000001\"[1]\n[3] \"S-0000000000000001\"[4]\n[4] \"S-0000000000000001\"[3]\n",
			"Switch 1 \"S-0000000000000001\" ports 4\n  1 to 1 2\n  2 to 1 1\n  3 to 1 4\n  4 to 1 3\n", "",
		},
		{
			"two CAs back to back",
			"Ca 1 \"a\"\n[1] \"b\"\n\nCa 1 \"b\"\n[1] \"a\"\n",
			"Channel Adapter 100000 \"a\" ports 1\n  1 to 100002 1\nChannel Adapter 100002 \"b\" ports 1\n  1 to 100000 1\n", "",
		},
		{
			"a CA without a link",
			"vendid=0x2c9\ndevid=0x1021\nsysimgguid=0xb8e92403009ca838\ncaguid=0xb8e92403009ca838\nCa\t1 \"H-b8e92403009ca838\"\t\t# \"n01 HCA-1\"\n",
			"Channel Adapter b8e92403009ca838 \"n01 HCA-1\" ports 1 system b8e92403009ca838 vendor 2c9 device 1021\n", "",
		},
		{
			"port list",
			"CA     9  1 0x0000000000000003 4x NDR - SW     7 17 0x0000000000000001 ( 'host' - 'leaf' )\n" +
				"SW     7 18 0x0000000000000001 4x SDR                                    'leaf'\n" +
				"SW     7 17 0x0000000000000001 4x NDR - CA     9  1 0x0000000000000003 ( 'leaf' - 'host' )\n",
			"Switch 1 \"leaf\" ports 18 lid 7\n  17 to 2 1 4xNDR\nChannel Adapter 2 \"host\" ports 1\n  1 to 1 17 4xNDR lid 9\n", "",
		},
		{
			"port list with two ports of a CA, descriptions with quotes, comments and blanks, CRLF, no LIDs",
			strings.ReplaceAll("# by ibnetdiscover -p\n\nCA 0 2 0x12 2x HDR - SW 0 1 0x1 ( 'it's' - 'a' - 'b' )\n"+
				"CA 0 1 0x11 4x ??? - RT 0 1 0x31 ( 'it's' - 'r' )\n"+
				"RT 0 1 0x31 4x ??? - CA 0 1 0x11 ( 'r' - 'it's' )\n"+
				"SW 0 1 0x1 2x HDR - CA 0 2 0x12 ( 'a' - 'b' - 'it's' )", "\n", "\r\n"),
			"Switch 1 \"a\" ports 1\n  1 to 10 2 2xHDR\n" +
				"Channel Adapter 10 \"it's\" ports 2\n  1 to 30 1 4x\n  2 to 1 1 2xHDR\nRouter 30 \"r\" ports 1\n  1 to 10 1 4x\n",
			"line 3: the descriptions can be split in several ways: taken as \"it's\" and \"a' - 'b\"\nline 6: the descriptions can be split in several ways: taken as \"a\" and \"b' - 'it's\"\n",
		},
		{
			"port list whose every line can be split in several ways",
			"SW 1 1 0x1 4x EDR - SW 2 1 0x2 ( 'a' - 'b' - 'c' )\nSW 2 1 0x2 4x EDR - SW 1 1 0x1 ( 'b' - 'c' - 'a' )\n",
			"Switch 1 \"a\" ports 1 lid 1\n  1 to 2 1 4xEDR\nSwitch 2 \"b\" ports 1 lid 2\n  1 to 1 1 4xEDR\n",
			"line 1: the descriptions can be split in several ways: taken as \"a\" and \"b' - 'c\"\n" +
				"line 2: the descriptions can be split in several ways: taken as \"b\" and \"c' - 'a\"\n",
		},
		{
			// ConnectX-4 and later: a node for each port, with the port's GUID.
			"port list where node GUIDs cannot be port GUIDs less port numbers",
			"SW 1 1 0x10 4x EDR - CA 2 1 0x11 ( 's' - 'a' )\nCA 2 1 0x11 4x EDR - SW 1 1 0x10 ( 'a' - 's' )\n",
			"Switch 10 \"s\" ports 1 lid 1\n  1 to 11 1 4xEDR\nChannel Adapter 11 \"a\" ports 1\n  1 to 10 1 4xEDR lid 2 port GUID 11\n", "",
		},
		{
			"port list where one node GUID would have two descriptions",
			"CA 2 1 0x11 4x EDR - CA 3 2 0x12 ( 'a' - 'b' )\nCA 3 2 0x12 4x EDR - CA 2 1 0x11 ( 'b' - 'a' )\n",
			"Channel Adapter 11 \"a\" ports 1\n  1 to 12 2 4xEDR lid 2 port GUID 11\nChannel Adapter 12 \"b\" ports 2\n  2 to 11 1 4xEDR lid 3 port GUID 12\n", "",
		},
		{
			"port list with a port GUID less than the port number",
			"CA 2 3 0x1 4x EDR - CA 3 1 0x12 ( 'a' - 'b' )\nCA 3 1 0x12 4x EDR - CA 2 3 0x1 ( 'b' - 'a' )\n",
			"Channel Adapter 1 \"a\" ports 3\n  3 to 12 1 4xEDR lid 2 port GUID 1\nChannel Adapter 12 \"b\" ports 1\n  1 to 1 3 4xEDR lid 3 port GUID 12\n", "",
		},
		{
			"port list whose lines give a switch different LIDs",
			"SW 1 1 0x10 4x EDR - SW 3 1 0x11 ( 's' - 't' )\nSW 2 2 0x10 4x SDR 's'\nSW 3 1 0x11 4x EDR - SW 1 1 0x10 ( 't' - 's' )\n",
			"Switch 10 \"s\" ports 2 lid 1\n  1 to 11 1 4xEDR\nSwitch 11 \"t\" ports 1 lid 3\n  1 to 10 1 4xEDR\n",
			"line 2: LID of SW 0x0000000000000010 is 2 here, but 1 in line 1: taken from there\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, lenient := range []bool{false, true} {
				f, problems, err := Parse("in", []byte(test.text), Options{Lenient: lenient})
				if err != nil {
					t.Fatalf("lenient %v: %v\n%s", lenient, err, test.text)
				}
				short.Diff(t, tell(f), test.want, "lenient", lenient)
				short.Diff(t, list(problems), test.notes, "lenient", lenient, "problems")
			}
			if Recognize([]byte(test.text)) == NoForm {
				t.Error("not recognized")
			}
		})
	}
}

func list(problems []fabric.Problem) string {
	s := ""
	for _, p := range problems {
		s += fmt.Sprintf("line %d: %s\n", p.Line, fabric.Printable(p.Message))
	}
	return s
}

// A strict read takes what ibnetdiscover and ibdiagnet print themselves.
func TestStrict(t *testing.T) {
	for name, text := range map[string]string{
		"ibnetdiscover": pair,
		"ibdiagnet": strings.NewReplacer("[17]\t", "[17](1/9/1) ", "[1](3) \t", "[1](B6D0F0/0/0/1)(3) ", "\t\t#", "      #",
			"Switch\t", "Switch  ", "Ca\t", "Ca  ", " \t\t#", " #").Replace(pair),
	} {
		f, problems, err := Parse("in", []byte(text), Options{Strict: true})
		if err != nil || len(problems) != 0 {
			t.Errorf("%s: %v\n%s", name, err, list(problems))
		} else if diff := cmp.Diff(tellPair, tell(f)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestParseOrder(t *testing.T) {
	f, _ := short.Must2(Parse("in", []byte("Ca 1 \"x\"\nSwitch 1 \"b\"\nSwitch 1 \"a\"\n"), Options{}))(t)
	var got []int32
	for n := range f.NumNodes() {
		got = append(got, f.Node(fabric.NodeID(n)).Order)
	}
	short.Diff(t, got, []int32{1, 2, 0})
}

func TestRecognize(t *testing.T) {
	for text, want := range map[string]Form{
		pair: Stanzas,
		"ibwarn: [12] mad_rpc: timed out\n" + pair: Stanzas,
		"Switch 5 \"a\"": Stanzas,
		"  vendid=0x2c9": Stanzas,
		"switchguid+5":   Stanzas,
		"# Topology file: generated on Fri Aug  8 06:33:24 2025\n":                              Stanzas,
		"SW    24  1 0x000000000020000f 4x SDR                                    'switch 3,3'": PortList,
		"[root@host ~]# iblinkinfo\nSwitch: 0x0002c90000000001 leaf:\n":                         LinkInfo,
		"CA: host 1:": LinkInfo,
		"Router: r:":  LinkInfo,
		"           1    5[  ] ==(                Down/ Polling)==>             [  ] \"\" ( )":                                                                                   LinkInfo,
		"0x0000000000000101 \"  host 1\"      4    1[  ] ==( 4X 2.5 Gbps Active/ LinkUp)==>  ":                                                                                   LinkInfo,
		"HTTP/1.1 200 OK\n\n[{\"width\": \"4x\", \"source_guid\": \"1\"}]":                                                                                                       UFMLinks,
		"[root@host ~]# curl\n[\n  {\n  \"source_guid\": \"1\"":                                                                                                                  UFMLinks,
		"Switch\t: 0x0002c90000000001 ports 36 \"leaf 1\" enhanced port 0 lid 7 lmc 0":                                                                                           NodeList,
		"{ SW Ports:05 SystemGUID:000000000020000f NodeGUID:000000000020000f PortGUID:000000000020000f VenID:000002C9 DevID:B9240000 Rev:000000A1 {switch 3,3} LID:0018 PN:03 }": SubnetList,
		"Ca\t: 0x0000000000000100 ports 1 \"host\"":                                                                                                                              NodeList,
	} {
		short.Equal(t, Recognize([]byte(text)), want, "form", text)
	}
	for _, text := range []string{
		"",
		"\n\n",
		"Unicast lids [0-32] of switch Lid 1 guid 0x0000000000200000 ('switch 0,0'):\n0x0001 000 # Switch portguid 0x0000000000200000: 'switch 0,0'\n",
		"dump_ucast_routes: Switch 0x0000000000200000\nLID    : Port : Hops : Optimal\n0x0001 : 000  : 00   : yes\n",
		"\nSwitch 0x0000000000200000\nLID    : Out Port(s)\n0xC000 : 0x005\n",
		"0x0000000000100001 0x0002 0x0002\n",
		"0x0000000000200000 \"switch 0,0\"\n",
		"Switches 5 \"a\"",
		"SW    24  1 x",
		"CA",
		"CA: host",
		"Switch: guid 0x0002c90000000001\n",
		"[{\"guid\": \"1\"}]",
		"[root@host ~]# grep source_guid",
	} {
		short.Equal(t, Recognize([]byte(text)), NoForm, "recognized", text)
	}
}

// A long line with many problems does not fill the memory with copies of it.
func TestProblemText(t *testing.T) {
	line := "Switch 1 \"a\" # \"a\"" + strings.Repeat(" lmc 99999", 1000)
	_, problems, err := Parse("in", []byte(line), Options{Lenient: true})
	if err != nil || len(problems) != 1000 {
		t.Fatal(len(problems), err)
	}
	want := fabric.Problem{Kind: fabric.Dropped, File: "in", Count: 1, Line: 1, Column: 23, Text: line[:256], Message: "LMC \"99999\": want 0 to 7; LMC dropped"}
	short.Diff(t, problems[0], want)
}

func TestRecognizeBeginning(t *testing.T) {
	noise := strings.Repeat("noise\n", recognizeWithin/6)
	short.Equal(t, Recognize([]byte(noise[:recognizeWithin-6*20]+pair)), Stanzas, "not recognized within the limit")
	short.Equal(t, Recognize([]byte(noise+"noise\n"+pair)), NoForm, "recognized beyond the limit")
}

// Many nodes: tables grow, Write writes in pieces.
func TestLargeRoundTrip(t *testing.T) {
	f := fatTree(t, 24, fabric.Link{Width: 4, Speed: fabric.HDR})
	text := string(Append(nil, f))
	for _, in := range []string{text, shuffled(text, 7)} {
		g, problems, err := Parse("in", []byte(in), Options{})
		if err != nil || len(problems) != 0 {
			t.Fatal(err, list(problems))
		}
		short.Diff(t, tell(g), tell(f))
	}
	var pieces recorder
	short.Check(t, Write(&pieces, f))
	short.Equal(t, strings.Join(pieces.text, ""), text, "Write differs from Append")
	if len(pieces.text) < 2 {
		t.Errorf("%d bytes in %d pieces", len(text), len(pieces.text))
	}
	for i := range pieces.text {
		if err := Write(&recorder{fail: i + 1}, f); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("piece %d: error %v", i, err)
		}
	}
}

// recorder keeps what is written, up to a write that fails.
type recorder struct {
	text []string
	fail int // the number of that write, from 1; 0 for none
}

func (r *recorder) Write(b []byte) (int, error) {
	r.text = append(r.text, string(b))
	if len(r.text) == r.fail {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestAppendDescription(t *testing.T) {
	var b fabric.Builder
	short.Must(b.AddNode(fabric.Node{GUID: 1, Type: fabric.CA, NumPorts: 1, Description: "a\nb\tc\x7fd\x00e\xffé"}))(t)
	f := short.Must(b.Build())(t)
	want := header + "\nvendid=0x0\ndevid=0x0\ncaguid=0x1\nCa\t1 \"H-0000000000000001\"\t\t# \"a b c d e\xffé\"\n"
	short.Diff(t, string(Append(nil, f)), want)
}

// brokenText is a case of testdata/errors.txt: texts by their names. A strict read refuses "text"
// with "err"; a lenient one makes "want" of it with "problems", or fails with "err", too, where
// there is no "want". With "strict" a read that is neither does what a lenient one does.
type brokenText map[string]string

// broken reads testdata/errors.txt. A line "== NAME" begins a case, a line "-- NAME" a text of it,
// which has all lines up to the next such line.
func broken(t testing.TB) (cases []brokenText) {
	t.Helper()
	name := ""
	for line := range strings.Lines(string(short.Must(os.ReadFile("testdata/errors.txt"))(t))) {
		if title, ok := strings.CutPrefix(line, "== "); ok {
			cases = append(cases, brokenText{"name": strings.TrimSpace(title)})
			continue
		}
		c := cases[len(cases)-1]
		if title, ok := strings.CutPrefix(line, "-- "); ok {
			name = strings.TrimSpace(title)
			c[name] = ""
			continue
		}
		c[name] += line
	}
	return cases
}

func TestParseErrors(t *testing.T) {
	for _, test := range broken(t) {
		t.Run(test["name"], func(t *testing.T) {
			text := test["text"]
			_, strict := test["strict"]
			want, lenient := test["want"]
			f, problems, err := Parse("in", []byte(text), Options{Strict: strict})
			if err == nil {
				t.Fatalf("no error, but %s", tell(f))
			}
			if f != nil || problems != nil {
				t.Error("a result with an error")
			}
			var parse *fabric.ParseError
			if !errors.As(err, &parse) {
				t.Fatalf("%T", err)
			}
			short.Diff(t, err.Error()+"\n", test["err"], "strict")
			if n := parse.Line; n > 0 && !strings.HasPrefix(strings.Split(text, "\n")[n-1], parse.Text) {
				t.Errorf("line %d is not %q", n, parse.Text)
			}

			f, problems, err = Parse("in", []byte(text), Options{Lenient: !strict})
			if !lenient {
				if err == nil {
					t.Fatal("lenient: no error")
				}
				return
			}
			short.Check(t, err)
			short.Diff(t, tell(f), want, "lenient")
			short.Diff(t, list(problems), test["problems"], "lenient: problems")
		})
	}
}

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

// A LID that two ports have is an error, or with TwiceLIDs a Problem that names both.
func TestTwiceLIDs(t *testing.T) {
	text := `Switch	2 "S-0000000000000010"		# "leaf" base port 0 lid 1 lmc 0
[1]	"H-0000000000000020"[1](21) 		# "a" lid 2 4xQDR
[2]	"H-0000000000000030"[1](31) 		# "b" lid 2 4xQDR

Ca	1 "H-0000000000000020"		# "a"
[1](21) 	"S-0000000000000010"[1]		# lid 2 lmc 0 "leaf" lid 1 4xQDR

Ca	1 "H-0000000000000030"		# "b"
[1](31) 	"S-0000000000000010"[2]		# lid 2 lmc 0 "leaf" lid 1 4xQDR
`
	if _, _, err := Parse("in", []byte(text), Options{}); err == nil || !strings.Contains(err.Error(), "is used twice") {
		t.Errorf("got %v", err)
	}
	f, problems := short.Must2(Parse("in", []byte(text), Options{TwiceLIDs: true}))(t)
	if len(problems) != 1 || problems[0].Kind != fabric.DuplicateLID || problems[0].Line != 9 || problems[0].Node != 0x30 ||
		problems[0].Message != `LID 2, which "a"[1] has too, by line 6; taken as none` {
		t.Errorf("%+v", problems)
	}
	if got := f.PortName(f.LIDPort(2)); got != `"a"[1]` || f.MaxLID() != 2 {
		t.Errorf("LID 2 is that of %s", got)
	}
}
