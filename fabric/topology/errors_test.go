package topology

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
)

// broken is text that a strict read refuses with err, and that a lenient read
// makes something of, with these problems.
var broken = []struct {
	name, text string
	strict     bool // only a strict read refuses it; any other makes the same of it
	err        string
	problems   string
	want       string // what a lenient read makes of it; "" where it fails with err, too
}{
	{
		name: "empty",
		text: "",
		err:  `in: no node in this text: want what ibnetdiscover prints, with lines such as Switch 36 "S-0002c90000000001"`,
	},
	{
		name: "comments only",
		text: "# nothing\n" +
			"\n" +
			"# here\n",
		err: `in: no node in this text: want what ibnetdiscover prints, with lines such as Switch 36 "S-0002c90000000001"`,
	},
	{
		name: "other text",
		text: "Unicast lids [0-32] of switch Lid 1 guid 0x1 ('a'):\n",
		err: "in:1: not a line of topology text: want what ibnetdiscover prints on standard output\n" +
			"    Unicast lids [0-32] of switch Lid 1 guid 0x1 ('a'):",
	},
	{
		name: "noise of libibmad", strict: true,
		text: "ibwarn: [12] mad_rpc: timed out\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[1]\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 2 lmc 0\n" +
			"[1] \"a\"[1]\n",
		err: "in:1: not a line of topology text: want what ibnetdiscover prints on standard output\n" +
			"    ibwarn: [12] mad_rpc: timed out",
		problems: "line 1: ibwarn: [12] mad_rpc: timed out\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"  1 to 200001 1\n" +
			"Switch 200001 \"b\" ports 4 lid 2\n" +
			"  1 to 200000 1\n",
	},
	{
		name: "prompt inside of a stanza",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[1]\n" +
			"[root@host ~]# more\n" +
			"--More--\n" +
			"[2] \"b\"[2]\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 2 lmc 0\n" +
			"[1] \"a\"[1]\n" +
			"[2] \"a\"[2]\n",
		err: "in:3: not a line of topology text: want what ibnetdiscover prints on standard output; in the middle of the text only --lenient passes over it\n" +
			"    [root@host ~]# more",
		problems: "line 3: not a line of topology text: want what ibnetdiscover prints on standard output; in the middle of the text only --lenient passes over it; line dropped\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"  1 to 200001 1\n" +
			"  2 to 200001 2\n" +
			"Switch 200001 \"b\" ports 4 lid 2\n" +
			"  1 to 200000 1\n" +
			"  2 to 200000 2\n",
	},
	{
		name: "error of the sweep inside of a stanza",
		text: "switchguid=0x1(1)\n" +
			"src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110; Connection timed out\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:2: not a line of topology text: want what ibnetdiscover prints on standard output; in the middle of the text only --lenient passes over it\n" +
			"    src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110; Connection timed out",
		problems: "line 2: src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110; Connection timed out\n",
		want:     "Switch 1 \"a\" ports 4 lid 1\n",
	},
	{
		name: "prompt inside of a port list",
		text: "SW 1 1 0x1 4x SDR 'a'\n" +
			"$ more\n" +
			"SW 1 2 0x1 4x SDR 'a'\n",
		err: "in:2: not a line of topology text: want what ibnetdiscover prints on standard output; in the middle of the text only --lenient passes over it\n" +
			"    $ more",
		problems: "line 2: not a line of topology text: want what ibnetdiscover prints on standard output; in the middle of the text only --lenient passes over it; line dropped\n",
		want:     "Switch 1 \"a\" ports 2 lid 1\n",
	},
	{
		name: "unknown node type",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[1]\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 2 lmc 0\n" +
			"[1] \"a\"[1]\n" +
			"\n" +
			"Bridge 4 \"c\"\n" +
			"[1] \"a\"[2]\n",
		err: "in:7: no such node type \"Bridge\": want Switch, Ca, Hca or Rt\n" +
			"    Bridge 4 \"c\"",
		problems: "line 7: no such node type \"Bridge\": want Switch, Ca, Hca or Rt; stanza dropped\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"  1 to 200001 1\n" +
			"Switch 200001 \"b\" ports 4 lid 2\n" +
			"  1 to 200000 1\n",
	},
	{
		name: "port before any node",
		text: "[1] \"b\"[1]\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1: a port of no node: want a Switch, Ca, Hca or Rt line first\n" +
			"    [1] \"b\"[1]",
		problems: "line 1: a port of no node: want a Switch, Ca, Hca or Rt line first; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "port behind GUID line",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"switchguid=0x7\n" +
			"[1] \"b\"[1]\n",
		err: "in:3: a port of no node: want a Switch, Ca, Hca or Rt line first\n" +
			"    [1] \"b\"[1]",
		problems: "line 3: a port of no node: want a Switch, Ca, Hca or Rt line first; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "no number of ports",
		text: "Switch \"a\"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 1 lmc 0\n",
		err: "in:1:7: number of ports \"a\": want 1 to 254\n" +
			"    Switch \"a\"",
		problems: "line 1: number of ports \"a\": want 1 to 254; stanza dropped\n",
		want:     "Switch 200000 \"b\" ports 4 lid 1\n",
	},
	{
		name: "no ports",
		text: "Switch 0 \"a\"\n" +
			"[1] \"b\"[1]\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 1 lmc 0\n",
		err: "in:1:7: number of ports 0: want 1 to 254\n" +
			"    Switch 0 \"a\"",
		problems: "line 1: number of ports 0: want 1 to 254; stanza dropped\n",
		want:     "Switch 200000 \"b\" ports 4 lid 1\n",
	},
	{
		name: "too many ports",
		text: "Switch 255 \"a\"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 1 lmc 0\n",
		err: "in:1:7: number of ports 255: want 1 to 254\n" +
			"    Switch 255 \"a\"",
		problems: "line 1: number of ports 255: want 1 to 254; stanza dropped\n",
		want:     "Switch 200000 \"b\" ports 4 lid 1\n",
	},
	{
		name: "far too many ports",
		text: "Switch 99999999999999999999 \"a\"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 1 lmc 0\n",
		err: "in:1:7: number of ports 99999999999999999999: want 1 to 254\n" +
			"    Switch 99999999999999999999 \"a\"",
		problems: "line 1: number of ports 99999999999999999999: want 1 to 254; stanza dropped\n",
		want:     "Switch 200000 \"b\" ports 4 lid 1\n",
	},
	{
		name: "no id",
		text: "Switch 4 # \"a\"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 1 lmc 0\n",
		err: "in:1:9: want the node's id in quotes, such as \"S-0002c90000000001\"\n" +
			"    Switch 4 # \"a\"",
		problems: "line 1: want the node's id in quotes, such as \"S-0002c90000000001\"; stanza dropped\n",
		want:     "Switch 200000 \"b\" ports 4 lid 1\n",
	},
	{
		name: "id without end",
		text: "Switch 4 \"a\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 1 lmc 0\n",
		err: "in:1:9: want the node's id in quotes, such as \"S-0002c90000000001\"\n" +
			"    Switch 4 \"a",
		problems: "line 1: want the node's id in quotes, such as \"S-0002c90000000001\"; stanza dropped\n",
		want:     "Switch 200000 \"b\" ports 4 lid 1\n",
	},
	{
		name: "text behind the id",
		text: "Switch 4 \"a\" \"desc\" lid 3\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 1 lmc 0\n",
		err: "in:1:13: text behind the node's id: want nothing or a comment\n" +
			"    Switch 4 \"a\" \"desc\" lid 3",
		problems: "line 1: text behind the node's id: want nothing or a comment; stanza dropped\n",
		want:     "Switch 200000 \"b\" ports 4 lid 1\n",
	},
	{
		name: "id twice",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[1]\n" +
			"\n" +
			"Switch 4 \"a\"\n" +
			"[2] \"b\"[2]\n" +
			"\n" +
			"Switch 2 \"b\"\n" +
			"[1] \"a\"[1]\n" +
			"[2] \"a\"[2]\n",
		err: "in:4:9: id \"a\" is used twice: line 1 has it too\n" +
			"    Switch 4 \"a\"",
		problems: "line 4: id \"a\" is used twice: line 1 has it too; stanza dropped\n" +
			"line 9: \"b\"[2] is connected to \"a\"[2] here, but that node (line 1) has no line for its port 2: a cable must be there at both ends; link dropped\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"  1 to 200002 1\n" +
			"Switch 200002 \"b\" ports 2\n" +
			"  1 to 200000 1\n",
	},
	{
		name: "GUID twice",
		text: "switchguid=0x5(5)\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"\n" +
			"caguid=0x5\n" +
			"Ca 1 \"h\"\n",
		err: "in:5:5: GUID 0x0000000000000005 is used twice: the node of line 2 has it too\n" +
			"    Ca 1 \"h\"",
		problems: "line 5: GUID 0x0000000000000005 is used twice: the node of line 2 has it too; stanza dropped\n",
		want:     "Switch 5 \"a\" ports 4 lid 1\n",
	},
	{
		name: "GUID id twice",
		text: "Switch 4 \"S-0000000000000005\"\n" +
			"\n" +
			"Switch 4 \"S-0000000000000005\"\n",
		err: "in:3:9: GUID 0x0000000000000005 is used twice: the node of line 1 has it too; want one capture in a file\n" +
			"    Switch 4 \"S-0000000000000005\"",
		problems: "line 3: GUID 0x0000000000000005 is used twice: the node of line 1 has it too; want one capture in a file; stanza dropped\n",
		want:     "Switch 5 \"S-0000000000000005\" ports 4\n",
	},
	{
		name: "GUID of id and line differ",
		text: "switchguid=0x5(5)\n" +
			"Switch 4 \"S-0000000000000006\"\n" +
			"[1] \"b\"[1]\n" +
			"\n" +
			"Switch 2 \"b\"\n" +
			"[1] \"S-0000000000000006\"[1]\n",
		err: "in:2:9: id S-0000000000000006 of a node with GUID 0x0000000000000005: want the same GUID in both\n" +
			"    Switch 4 \"S-0000000000000006\"",
		problems: "line 2: id S-0000000000000006 of a node with GUID 0x0000000000000005: want the same GUID in both; the id counts\n" +
			"line 3: \"S-0000000000000006\"[1] is connected to \"b\"[1] here, but that node has no stanza: a cable must be there at both ends; link dropped\n" +
			"line 5: GUID 0x0000000000000006 is used twice: the node of line 2 has it too; stanza dropped\n",
		want: "Switch 6 \"S-0000000000000006\" ports 4 port GUID 5\n",
	},
	{
		name: "GUID 0",
		text: "switchguid=0x0(0)\n" +
			"Switch 4 \"S-0000000000000000\"\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:2:9: node \"S-0000000000000000\" has GUID 0: want another\n" +
			"    Switch 4 \"S-0000000000000000\"",
		problems: "line 2: node \"S-0000000000000000\" has GUID 0: want another; stanza dropped\n",
		want:     "Switch 1 \"a\" ports 4 lid 1\n",
	},
	{
		name: "router without a GUID",
		text: "Rt 2 \"r\"\n" +
			"\n" +
			"Rt 2 \"s\"\n",
		err: "in:1:5: ibsim gives this router GUID 0: want a line such as rtguid=0x300000 in front of it\n" +
			"    Rt 2 \"r\"",
		problems: "line 1: ibsim gives this router GUID 0: want a line such as rtguid=0x300000 in front of it; stanza dropped\n",
		want:     "Router 3 \"s\" ports 2\n",
	},
	{
		name: "GUID without room",
		text: "caguid=0xffffffffffffffff\n" +
			"Ca 1 \"h\"\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:2:5: GUID 0xffffffffffffffff leaves no room for the GUIDs of 1 ports\n" +
			"    Ca 1 \"h\"",
		problems: "line 2: GUID 0xffffffffffffffff leaves no room for the GUIDs of 1 ports; stanza dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "GUID too long",
		text: "switchguid=0x12345678901234567\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1:11: GUID \"0x12345678901234567\": want 0x and 1 to 16 hexadecimal digits\n" +
			"    switchguid=0x12345678901234567",
		problems: "line 1: GUID \"0x12345678901234567\": want 0x and 1 to 16 hexadecimal digits; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "GUID in decimal",
		text: "switchguid=12\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1:11: GUID \"12\": want 0x and 1 to 16 hexadecimal digits\n" +
			"    switchguid=12",
		problems: "line 1: GUID \"12\": want 0x and 1 to 16 hexadecimal digits; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "GUID without digits",
		text: "switchguid=0x\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1:11: GUID \"0x\": want 0x and 1 to 16 hexadecimal digits\n" +
			"    switchguid=0x",
		problems: "line 1: GUID \"0x\": want 0x and 1 to 16 hexadecimal digits; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "GUID with other characters",
		text: "switchguid=0x12g\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1:15: text behind the GUID: want nothing or a comment\n" +
			"    switchguid=0x12g",
		problems: "line 1: text behind the GUID: want nothing or a comment; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "no GUID",
		text: "caguid\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1:6: want = and a GUID\n" +
			"    caguid",
		problems: "line 1: want = and a GUID; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "port GUID too long",
		text: "switchguid=0x1(12345678901234567)\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1:14: port GUID \"(12345678901234567)\": want 1 to 16 hexadecimal digits in brackets\n" +
			"    switchguid=0x1(12345678901234567)",
		problems: "line 1: port GUID \"(12345678901234567)\": want 1 to 16 hexadecimal digits in brackets; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "vendor too large",
		text: "vendid=0x1000000\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1:7: 0x1000000 is too large: want at most 0xffffff\n" +
			"    vendid=0x1000000",
		problems: "line 1: 0x1000000 is too large: want at most 0xffffff; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "device too large",
		text: "devid=65536\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1:6: 65536 is too large: want at most 0xffff\n" +
			"    devid=65536",
		problems: "line 1: 65536 is too large: want at most 0xffff; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "system GUID too large",
		text: "sysimgguid=0x1ffffffffffffffff\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1:11: number \"0x1ffffffffffffffff\": want decimal digits or 0x and hexadecimal digits\n" +
			"    sysimgguid=0x1ffffffffffffffff",
		problems: "line 1: number \"0x1ffffffffffffffff\": want decimal digits or 0x and hexadecimal digits; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "octal or not",
		text: "devid=010\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1:6: number \"010\": want decimal digits or 0x and hexadecimal digits\n" +
			"    devid=010",
		problems: "line 1: number \"010\": want decimal digits or 0x and hexadecimal digits; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "vendor without a number",
		text: "vendid 5\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1:7: want = and a number\n" +
			"    vendid 5",
		problems: "line 1: want = and a number; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "width",
		text: "width=32\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1:6: 32 is too large: want at most 0x1f\n" +
			"    width=32",
		problems: "line 1: 32 is too large: want at most 0x1f; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "include",
		text: "include \"other.net\"\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1: ibsim's include cannot be followed: load this file into ibsim and read what ibnetdiscover prints there\n" +
			"    include \"other.net\"",
		problems: "line 1: ibsim's include cannot be followed: load this file into ibsim and read what ibnetdiscover prints there; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "do",
		text: "do Link \"a\"[1] \"b\"[1]\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1: ibsim's do cannot be followed: load this file into ibsim and read what ibnetdiscover prints there\n" +
			"    do Link \"a\"[1] \"b\"[1]",
		problems: "line 1: ibsim's do cannot be followed: load this file into ibsim and read what ibnetdiscover prints there; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "module",
		text: "module = \"m\"\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:1: ibsim's module cannot be followed: load this file into ibsim and read what ibnetdiscover prints there\n" +
			"    module = \"m\"",
		problems: "line 1: ibsim's module cannot be followed: load this file into ibsim and read what ibnetdiscover prints there; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "alias",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"@[1] \"uplink\"\n",
		err: "in:2: ibsim's @[1] cannot be followed: load this file into ibsim and read what ibnetdiscover prints there\n" +
			"    @[1] \"uplink\"",
		problems: "line 2: ibsim's @[1] cannot be followed: load this file into ibsim and read what ibnetdiscover prints there; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "port 0",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[0] \"b\"[1]\n",
		err: "in:2: port [0] of a node with 4 ports: want [1] to [4]\n" +
			"    [0] \"b\"[1]",
		problems: "line 2: port [0] of a node with 4 ports: want [1] to [4]; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "port number too large",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[5] \"b\"[1]\n",
		err: "in:2: port [5] of a node with 4 ports: want [1] to [4]\n" +
			"    [5] \"b\"[1]",
		problems: "line 2: port [5] of a node with 4 ports: want [1] to [4]; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "port number far too large",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[18446744073709551617] \"b\"[1]\n",
		err: "in:2: port [18446744073709551617] of a node with 4 ports: want [1] to [4]\n" +
			"    [18446744073709551617] \"b\"[1]",
		problems: "line 2: port [18446744073709551617] of a node with 4 ports: want [1] to [4]; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "no port number",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[] \"b\"[1]\n",
		err: "in:2: port [] of a node with 4 ports: want [1] to [4]\n" +
			"    [] \"b\"[1]",
		problems: "line 2: port [] of a node with 4 ports: want [1] to [4]; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "no closing bracket",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1 \"b\"[1]\n",
		err: "in:2: port [1 \"b\"[1] of a node with 4 ports: want [1] to [4]\n" +
			"    [1 \"b\"[1]",
		problems: "line 2: port [1 \"b\"[1] of a node with 4 ports: want [1] to [4]; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "bad port GUID",
		text: "Ca 1 \"h\"\n" +
			"[1](0xg) \"a\"[1]\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:2:3: port GUID \"(0xg)\": want 1 to 16 hexadecimal digits in brackets\n" +
			"    [1](0xg) \"a\"[1]",
		problems: "line 2: port GUID \"(0xg)\": want 1 to 16 hexadecimal digits in brackets; line dropped\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"Channel Adapter 100000 \"h\" ports 1\n",
	},
	{
		name: "no other end",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1]\n",
		err: "in:2:3: want the id of the node at the other end in quotes, such as \"S-0002c90000000001\"\n" +
			"    [1]",
		problems: "line 2: want the id of the node at the other end in quotes, such as \"S-0002c90000000001\"; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "peer's port 0",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[0]\n",
		err: "in:2:7: port [0]: want [1] to [254]\n" +
			"    [1] \"b\"[0]",
		problems: "line 2: port [0]: want [1] to [254]; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "peer's port too large",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[255]\n",
		err: "in:2:7: port [255]: want [1] to [254]\n" +
			"    [1] \"b\"[255]",
		problems: "line 2: port [255]: want [1] to [254]; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "peer's port GUID",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[1](12345678901234567)\n",
		err: "in:2:10: port GUID \"(12345678901234567)\": want 1 to 16 hexadecimal digits in brackets\n" +
			"    [1] \"b\"[1](12345678901234567)",
		problems: "line 2: port GUID \"(12345678901234567)\": want 1 to 16 hexadecimal digits in brackets; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "text behind the other end",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[1] lid 3 w=2 to b\n",
		err: "in:2:21: text behind the other end: want nothing or a comment\n" +
			"    [1] \"b\"[1] lid 3 w=2 to b",
		problems: "line 2: text behind the other end: want nothing or a comment; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "bad mask",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[1] w=32\n",
		err: "in:2:11: \"w=32\": want a number from 0 to 31\n" +
			"    [1] \"b\"[1] w=32",
		problems: "line 2: \"w=32\": want a number from 0 to 31; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "port twice",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[1]\n" +
			"[1] \"b\"[1]\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 2 lmc 0\n" +
			"[1] \"a\"[1]\n",
		err: "in:3: port [1] is there twice: line 2 has it too\n" +
			"    [1] \"b\"[1]",
		problems: "line 3: port [1] is there twice: line 2 has it too; line dropped\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"  1 to 200001 1\n" +
			"Switch 200001 \"b\" ports 4 lid 2\n" +
			"  1 to 200000 1\n",
	},
	{
		name: "one-sided: no such node",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"H-0000000000000002\"[1](2) # \"h\" lid 3 4xNDR\n",
		err: "in:2:4: \"a\"[1] is connected to \"H-0000000000000002\"[1] here, but that node has no stanza: a cable must be there at both ends\n" +
			"    [1] \"H-0000000000000002\"[1](2) # \"h\" lid 3 4xNDR",
		problems: "line 2: \"a\"[1] is connected to \"H-0000000000000002\"[1] here, but that node has no stanza: a cable must be there at both ends; link dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "one-sided: no such port",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[9]\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 2 lmc 0\n" +
			"[1] \"a\"[2]\n",
		err: "in:2:4: \"a\"[1] is connected to \"b\"[9] here, but that node has ports 1 to 4 (line 4)\n" +
			"    [1] \"b\"[9]",
		problems: "line 2: \"a\"[1] is connected to \"b\"[9] here, but that node has ports 1 to 4 (line 4); link dropped\n" +
			"line 5: \"b\"[1] is connected to \"a\"[2] here, but that node (line 1) has no line for its port 2: a cable must be there at both ends; link dropped\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"Switch 200001 \"b\" ports 4 lid 2\n",
	},
	{
		name: "one-sided: no line",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[1]\n" +
			"[2] \"b\"[2]\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 2 lmc 0\n" +
			"[2] \"a\"[2]\n",
		err: "in:2:4: \"a\"[1] is connected to \"b\"[1] here, but that node (line 5) has no line for its port 1: a cable must be there at both ends\n" +
			"    [1] \"b\"[1]",
		problems: "line 2: \"a\"[1] is connected to \"b\"[1] here, but that node (line 5) has no line for its port 1: a cable must be there at both ends; link dropped\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"  2 to 200001 2\n" +
			"Switch 200001 \"b\" ports 4 lid 2\n" +
			"  2 to 200000 2\n",
	},
	{
		name: "contradiction",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[1]\n" +
			"[2] \"b\"[2]\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 2 lmc 0\n" +
			"[1] \"a\"[2]\n" +
			"[2] \"a\"[1]\n",
		err: "in:2:4: \"a\"[1] is connected to \"b\"[1] here, but line 6 connects that port to \"a\"[2]\n" +
			"    [1] \"b\"[1]",
		problems: "line 2: \"a\"[1] is connected to \"b\"[1] here, but line 6 connects that port to \"a\"[2]; link dropped\n" +
			"line 3: \"a\"[2] is connected to \"b\"[2] here, but line 7 connects that port to \"a\"[1]; link dropped\n" +
			"line 6: \"b\"[1] is connected to \"a\"[2] here, but line 3 connects that port to \"b\"[2]; link dropped\n" +
			"line 7: \"b\"[2] is connected to \"a\"[1] here, but line 2 connects that port to \"b\"[1]; link dropped\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"Switch 200001 \"b\" ports 4 lid 2\n",
	},
	{
		name: "contradiction with a third",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"c\"[1]\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 2 lmc 0\n" +
			"[1] \"c\"[1]\n" +
			"\n" +
			"Switch 1 \"c\"\n" +
			"[1] \"b\"[1]\n",
		err: "in:2:4: \"a\"[1] is connected to \"c\"[1] here, but line 8 connects that port to \"b\"[1]\n" +
			"    [1] \"c\"[1]",
		problems: "line 2: \"a\"[1] is connected to \"c\"[1] here, but line 8 connects that port to \"b\"[1]; link dropped\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"Switch 200001 \"b\" ports 4 lid 2\n" +
			"  1 to 200002 1\n" +
			"Switch 200002 \"c\" ports 1\n" +
			"  1 to 200001 1\n",
	},
	{
		name: "a port to itself", strict: true,
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"a\"[1]\n",
		err: "in:2:4: \"a\"[1] is connected to itself: want another port\n" +
			"    [1] \"a\"[1]",
		problems: "line 2: connected to itself; taken as a port without a cable\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "id of another type",
		text: "Switch 1 \"S-0000000000000001\"\n" +
			"[1] \"H-0000000000000002\"[1]\n" +
			"\n" +
			"Switch 1 \"S-0000000000000002\"\n" +
			"[1] \"S-0000000000000001\"[1]\n",
		err: "in:2:4: \"S-0000000000000001\"[1] is connected to \"H-0000000000000002\"[1] here, but that node has no stanza: a cable must be there at both ends\n" +
			"    [1] \"H-0000000000000002\"[1]",
		problems: "line 2: \"S-0000000000000001\"[1] is connected to \"H-0000000000000002\"[1] here, but that node has no stanza: a cable must be there at both ends; link dropped\n" +
			"line 5: \"S-0000000000000002\"[1] is connected to \"S-0000000000000001\"[1] here, but line 2 connects that port to \"H-0000000000000002\"[1]; link dropped\n",
		want: "Switch 1 \"S-0000000000000001\" ports 1\n" +
			"Switch 2 \"S-0000000000000002\" ports 1\n",
	},
	{
		name: "LID twice",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 1 lmc 0\n",
		err: "in:3:35: LID 1 of \"b\" is used twice: the port of line 1 has it too\n" +
			"    Switch 4 \"b\" # \"b\" base port 0 lid 1 lmc 0",
		problems: "line 3: LID 1 of \"b\" is used twice: the port of line 1 has it too; LID dropped\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"Switch 200001 \"b\" ports 4\n",
	},
	{
		name: "LID twice by LMC",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 8 lmc 2\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 10 lmc 0\n" +
			"[1] \"h\"[1]\n" +
			"\n" +
			"Ca 1 \"h\"\n" +
			"[1] \"b\"[1] # lid 11 lmc 0 \"b\" lid 10 4xNDR\n",
		err: "in:3:35: LID 10 of \"b\" is used twice: the port of line 1 has it too\n" +
			"    Switch 4 \"b\" # \"b\" base port 0 lid 10 lmc 0",
		problems: "line 3: LID 10 of \"b\" is used twice: the port of line 1 has it too; LID dropped\n" +
			"line 7: LID 11 of \"h\"[1] is used twice: the port of line 1 has it too; LID dropped\n",
		want: "Switch 200000 \"a\" ports 4 lid 8 lmc 2\n" +
			"Switch 200001 \"b\" ports 4\n" +
			"  1 to 100000 1 4xNDR\n" +
			"Channel Adapter 100000 \"h\" ports 1\n" +
			"  1 to 200001 1 4xNDR\n",
	},
	{
		name: "LID too large", strict: true,
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 49152 lmc 0\n",
		err: "in:3:35: LID 49152: want 0 to 49151\n" +
			"    Switch 4 \"b\" # \"b\" base port 0 lid 49152 lmc 0",
		problems: "line 3: LID 49152: want 1 to 49151; taken as none\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"Switch 200001 \"b\" ports 4\n",
	},
	{
		name: "LID far too large", strict: true,
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 18446744073709551617 lmc 0\n",
		err: "in:3:35: LID 18446744073709551617: want 0 to 49151\n" +
			"    Switch 4 \"b\" # \"b\" base port 0 lid 18446744073709551617 lmc 0",
		problems: "line 3: LID 18446744073709551617: want 1 to 49151; taken as none\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"Switch 200001 \"b\" ports 4\n",
	},
	{
		name: "LID below 0", strict: true,
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid -1 lmc 0\n",
		err: "in:3:35: LID -1: want 0 to 49151\n" +
			"    Switch 4 \"b\" # \"b\" base port 0 lid -1 lmc 0",
		problems: "line 3: LID -1: want 1 to 49151; taken as none\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"Switch 200001 \"b\" ports 4\n",
	},
	{
		name: "LID of a port too large", strict: true,
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"h\"[1]\n" +
			"\n" +
			"Ca 1 \"h\"\n" +
			"[1] \"a\"[1] # lid 70000 lmc 0 \"a\" lid 1 4xNDR\n",
		err: "in:5:17: LID 70000: want 0 to 49151\n" +
			"    [1] \"a\"[1] # lid 70000 lmc 0 \"a\" lid 1 4xNDR",
		problems: "line 5: LID 70000: want 1 to 49151; taken as none\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"  1 to 100000 1 4xNDR\n" +
			"Channel Adapter 100000 \"h\" ports 1\n" +
			"  1 to 200000 1 4xNDR\n",
	},
	{
		name: "LID of the peer too large", strict: true,
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[1] # \"b\" lid 65536 4xNDR\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 2 lmc 0\n" +
			"[1] \"a\"[1]\n",
		err: "in:2:21: LID 65536: want 0 to 49151\n" +
			"    [1] \"b\"[1] # \"b\" lid 65536 4xNDR",
		problems: "line 2: LID 65536: want 1 to 49151; taken as 2, as another line says\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"  1 to 200001 1 4xNDR\n" +
			"Switch 200001 \"b\" ports 4 lid 2\n" +
			"  1 to 200000 1 4xNDR\n",
	},
	{
		name: "LMC too large",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 8 lmc 8\n",
		err: "in:3:41: LMC \"8\": want 0 to 7\n" +
			"    Switch 4 \"b\" # \"b\" base port 0 lid 8 lmc 8",
		problems: "line 3: LMC \"8\": want 0 to 7; LMC dropped\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"Switch 200001 \"b\" ports 4 lid 8\n",
	},
	{
		name: "LID that LMC forbids", strict: true,
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"\n" +
			"Switch 4 \"b\" # \"b\" base port 0 lid 10 lmc 2\n",
		err: "in:3:35: LID of \"b\" is 10, not a multiple of 4 as LMC 2 wants\n" +
			"    Switch 4 \"b\" # \"b\" base port 0 lid 10 lmc 2",
		problems: "line 3: LID 10, not a multiple of 4 as LMC 2 wants: want 1 to 49151; taken as none\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"Switch 200001 \"b\" ports 4 lid 0 lmc 2\n",
	},
	{
		name: "switch port GUID twice",
		text: "switchguid=0x1(9)\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"\n" +
			"switchguid=0x2(9)\n" +
			"Switch 1 \"b\"\n",
		err: "in:5: port GUID 0x0000000000000009 of switch 0x0000000000000002 is used twice: the switch of line 2 has it too\n" +
			"    Switch 1 \"b\"",
		problems: "line 5: port GUID 0x0000000000000009 of switch 0x0000000000000002 is used twice: the switch of line 2 has it too; node GUIDs taken for the port GUIDs of all switches\n",
		want: "Switch 1 \"a\" ports 4 lid 1\n" +
			"Switch 2 \"b\" ports 1\n",
	},
	{
		name: "port GUID twice",
		text: "Switch 4 \"a\"\n" +
			"[1] \"h\"[1]\n" +
			"[2] \"i\"[1]\n" +
			"\n" +
			"Ca 1 \"h\"\n" +
			"[1](9) \"a\"[1]\n" +
			"\n" +
			"Ca 1 \"i\"\n" +
			"[1](9) \"a\"[2]\n",
		err: "in:9: port GUID 0x0000000000000009 of \"i\"[1] is used twice: the port of line 6 has it too\n" +
			"    [1](9) \"a\"[2]",
		problems: "line 9: port GUID 0x0000000000000009 of \"i\"[1] is used twice: the port of line 6 has it too; link dropped\n",
		want: "Switch 200000 \"a\" ports 4\n" +
			"  1 to 100000 1\n" +
			"Channel Adapter 100000 \"h\" ports 1\n" +
			"  1 to 200000 1 port GUID 9\n" +
			"Channel Adapter 100002 \"i\" ports 1\n",
	},
	{
		name: "port GUID of a switch",
		text: "Switch 4 \"a\"\n" +
			"[1] \"h\"[1]\n" +
			"\n" +
			"Ca 1 \"h\"\n" +
			"[1](200000) \"a\"[1]\n",
		err: "in:5: port GUID 0x0000000000200000 of \"h\"[1] is used twice: the port of line 1 has it too\n" +
			"    [1](200000) \"a\"[1]",
		problems: "line 5: port GUID 0x0000000000200000 of \"h\"[1] is used twice: the port of line 1 has it too; link dropped\n",
		want: "Switch 200000 \"a\" ports 4\n" +
			"Channel Adapter 100000 \"h\" ports 1\n",
	},
	{
		name: "port list in another text",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"SW 1 1 0x1 4x SDR 'a'\n",
		err: "in:2: a line of ibnetdiscover -p in a text of another form: want one form only\n" +
			"    SW 1 1 0x1 4x SDR 'a'",
		problems: "line 2: a line of ibnetdiscover -p in a text of another form: want one form only; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "other text in a port list",
		text: "SW 1 1 0x1 4x SDR 'a'\n" +
			"Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n",
		err: "in:2: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them\n" +
			"    Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0",
		problems: "line 2: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them; line dropped\n",
		want:     "Switch 1 \"a\" ports 1 lid 1\n",
	},
	{
		name: "port list: one-sided",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n",
		err: "in:1:21: SW 0x0000000000000010[1] is connected to CA 0x0000000000000021[1] here, but that node has no line: a cable must be there at both ends\n" +
			"    SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )",
		problems: "line 1: SW 0x0000000000000010[1] is connected to CA 0x0000000000000021[1] here, but that node has no line: a cable must be there at both ends; link dropped\n",
		want:     "Switch 10 \"s\" ports 1 lid 1\n",
	},
	{
		name: "port list: no line",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x SDR 'h'\n",
		err: "in:1:21: SW 0x0000000000000010[1] is connected to CA 0x0000000000000021[1] here, but that node (line 2) has no line for its port 1: a cable must be there at both ends\n" +
			"    SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )",
		problems: "line 1: SW 0x0000000000000010[1] is connected to CA 0x0000000000000021[1] here, but that node (line 2) has no line for its port 1: a cable must be there at both ends; link dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"Channel Adapter 20 \"h\" ports 1\n",
	},
	{
		name: "port list: contradiction",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 1 2 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n",
		err: "in:3:21: SW 0x0000000000000010[2] is connected to CA 0x0000000000000021[1] here, but line 2 connects that port to SW 0x0000000000000010[1]\n" +
			"    SW 1 2 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )",
		problems: "line 3: SW 0x0000000000000010[2] is connected to CA 0x0000000000000021[1] here, but line 2 connects that port to SW 0x0000000000000010[1]; link dropped\n",
		want: "Switch 10 \"s\" ports 2 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: port twice",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 1 1 0x10 4x EDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 't' )\n" +
			"CA 2 1 0x21 4x  NDR - SW 1 1 0x10 ( 'h' - 's' )\n",
		err: "in:3: port 1 of SW 0x0000000000000010 is there twice: line 1 has it too\n" +
			"    SW 1 1 0x10 4x EDR - CA 2 1 0x21 ( 's' - 'h' )",
		problems: "line 3: port 1 of SW 0x0000000000000010 is there twice: line 1 has it too; line dropped\n" +
			"line 4: port 1 of CA 0x0000000000000021 is there twice: line 2 has it too; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: type changes",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"CA 3 2 0x10 4x SDR 's'\n" +
			"SW 4 1 0xe 4x SDR 't'\n",
		err: "in:3: GUID 0x0000000000000010 is of a CA here, but of a SW in line 1\n" +
			"    CA 3 2 0x10 4x SDR 's'",
		problems: "line 3: GUID 0x0000000000000010 is of a CA here, but of a SW in line 1; line dropped\n",
		want: "Switch e \"t\" ports 1 lid 4\n" +
			"Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 21 1 4xNDR\n" +
			"Channel Adapter 21 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2 port GUID 21\n",
	},
	{
		name: "port list: LID", strict: true,
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 49152 1 0x40 4x SDR 't'\n",
		err: "in:3:3: LID 49152: want 0 to 49151\n" +
			"    SW 49152 1 0x40 4x SDR 't'",
		problems: "line 3: LID 49152: want 1 to 49151; taken as none\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Switch 40 \"t\" ports 1\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: LID twice",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 2 1 0x40 4x SDR 't'\n",
		err: "in:3:3: LID 2 of SW 0x0000000000000040 is used twice: the port of line 2 has it too\n" +
			"    SW 2 1 0x40 4x SDR 't'",
		problems: "line 3: LID 2 of SW 0x0000000000000040 is used twice: the port of line 2 has it too; LID dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Switch 40 \"t\" ports 1\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: port 0",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 4 0 0x40 4x SDR 't'\n",
		err: "in:3:5: port 0: want 1 to 254\n" +
			"    SW 4 0 0x40 4x SDR 't'",
		problems: "line 3: port 0: want 1 to 254; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: port number",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 4 255 0x40 4x SDR 't'\n",
		err: "in:3:5: port 255: want 1 to 254\n" +
			"    SW 4 255 0x40 4x SDR 't'",
		problems: "line 3: port 255: want 1 to 254; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: GUID",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 4 1 0x12345678901234567 4x SDR 't'\n",
		err: "in:3:7: GUID \"0x12345678901234567\": want 0x and 1 to 16 hexadecimal digits, not 0\n" +
			"    SW 4 1 0x12345678901234567 4x SDR 't'",
		problems: "line 3: GUID \"0x12345678901234567\": want 0x and 1 to 16 hexadecimal digits, not 0; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: GUID 0",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 4 1 0x0 4x SDR 't'\n",
		err: "in:3:7: GUID \"0x0\": want 0x and 1 to 16 hexadecimal digits, not 0\n" +
			"    SW 4 1 0x0 4x SDR 't'",
		problems: "line 3: GUID \"0x0\": want 0x and 1 to 16 hexadecimal digits, not 0; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: no speed",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 4 1 0x40 4x\n",
		err: "in:3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them\n" +
			"    SW 4 1 0x40 4x",
		problems: "line 3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: no width",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 4 1 0x40 four SDR 't'\n",
		err: "in:3:12: width \"four\": want a number and x\n" +
			"    SW 4 1 0x40 four SDR 't'",
		problems: "line 3: width \"four\": want a number and x; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: no description",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 4 1 0x40 4x SDR\n",
		err: "in:3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them\n" +
			"    SW 4 1 0x40 4x SDR",
		problems: "line 3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: half a description",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 4 1 0x40 4x SDR 't\n",
		err: "in:3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them\n" +
			"    SW 4 1 0x40 4x SDR 't",
		problems: "line 3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: no other end",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 4 1 0x40 4x SDR - ( 't' - 'u' )\n",
		err: "in:3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them\n" +
			"    SW 4 1 0x40 4x SDR - ( 't' - 'u' )",
		problems: "line 3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: one description",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 4 1 0x40 4x SDR - SW 5 1 0x41 ( 't' )\n",
		err: "in:3:35: want the descriptions of both nodes: 'one' - 'other'\n" +
			"    SW 4 1 0x40 4x SDR - SW 5 1 0x41 ( 't' )",
		problems: "line 3: want the descriptions of both nodes: 'one' - 'other'; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "number behind the other end",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[1] w=1 7 # a\n",
		err: "in:2:15: text behind the other end: want nothing or a comment\n" +
			"    [1] \"b\"[1] w=1 7 # a",
		problems: "line 2: text behind the other end: want nothing or a comment; line dropped\n",
		want:     "Switch 200000 \"a\" ports 4 lid 1\n",
	},
	{
		name: "LID from a neighbour, twice",
		text: "Switch 4 \"a\" # \"a\" base port 0 lid 1 lmc 0\n" +
			"[1] \"b\"[1] # \"b\" lid 1 4xNDR\n" +
			"\n" +
			"Switch 4 \"b\"\n" +
			"[1] \"a\"[1]\n",
		err: "in:4: LID 1 of \"b\" is used twice: the port of line 1 has it too\n" +
			"    Switch 4 \"b\"",
		problems: "line 4: LID 1 of \"b\" is used twice: the port of line 1 has it too; LID dropped\n",
		want: "Switch 200000 \"a\" ports 4 lid 1\n" +
			"  1 to 200001 1 4xNDR\n" +
			"Switch 200001 \"b\" ports 4\n" +
			"  1 to 200000 1 4xNDR\n",
	},
	{
		name: "port list: one-sided, at a CA",
		text: "CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n",
		err: "in:1:21: CA 0x0000000000000021[1] is connected to SW 0x0000000000000010[1] here, but that node has no line: a cable must be there at both ends\n" +
			"    CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )",
		problems: "line 1: CA 0x0000000000000021[1] is connected to SW 0x0000000000000010[1] here, but that node has no line: a cable must be there at both ends; link dropped\n",
		want:     "Channel Adapter 20 \"h\" ports 1\n",
	},
	{
		name: "port list: one-sided, at a router",
		text: "SW 1 1 0x10 4x NDR - RT 2 1 0x21 ( 's' - 'r' )\n",
		err: "in:1:21: SW 0x0000000000000010[1] is connected to RT 0x0000000000000021[1] here, but that node has no line: a cable must be there at both ends\n" +
			"    SW 1 1 0x10 4x NDR - RT 2 1 0x21 ( 's' - 'r' )",
		problems: "line 1: SW 0x0000000000000010[1] is connected to RT 0x0000000000000021[1] here, but that node has no line: a cable must be there at both ends; link dropped\n",
		want:     "Switch 10 \"s\" ports 1 lid 1\n",
	},
	{
		name: "port list: one-sided, descriptions that can be split in several ways",
		text: "SW 1 1 0x10 4x NDR - RT 2 1 0x21 ( 's' - 't' - 'r' )\n",
		err: "in:1:21: SW 0x0000000000000010[1] is connected to RT 0x0000000000000021[1] here, but that node has no line: a cable must be there at both ends\n" +
			"    SW 1 1 0x10 4x NDR - RT 2 1 0x21 ( 's' - 't' - 'r' )",
		problems: "line 1: the descriptions can be split in several ways: taken as \"s\" and \"t' - 'r\"\n" +
			"line 1: SW 0x0000000000000010[1] is connected to RT 0x0000000000000021[1] here, but that node has no line: a cable must be there at both ends; link dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n",
	},
	{
		name: "port list: contradiction, descriptions that can be split in several ways",
		text: "SW 1 1 0x10 4x NDR - SW 2 1 0x20 ( 's' - 't' - 'r' )\n" +
			"SW 2 1 0x20 4x NDR - SW 3 1 0x30 ( 'r' - 't' - 's' )\n",
		err: "in:1:21: SW 0x0000000000000010[1] is connected to SW 0x0000000000000020[1] here, but line 2 connects that port to SW 0x0000000000000030[1]\n" +
			"    SW 1 1 0x10 4x NDR - SW 2 1 0x20 ( 's' - 't' - 'r' )",
		problems: "line 1: the descriptions can be split in several ways: taken as \"s\" and \"t' - 'r\"\n" +
			"line 1: SW 0x0000000000000010[1] is connected to SW 0x0000000000000020[1] here, but line 2 connects that port to SW 0x0000000000000030[1]; link dropped\n" +
			"line 2: the descriptions can be split in several ways: taken as \"r\" and \"t' - 's\"\n" +
			"line 2: SW 0x0000000000000020[1] is connected to SW 0x0000000000000030[1] here, but that node has no line: a cable must be there at both ends; link dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"Switch 20 \"r\" ports 1 lid 2\n",
	},
	{
		name: "port list: half a line",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW 4\n",
		err: "in:3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them\n" +
			"    SW 4",
		problems: "line 3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: no blanks",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW4 1 0x40 4x SDR 't'\n",
		err: "in:3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them\n" +
			"    SW4 1 0x40 4x SDR 't'",
		problems: "line 3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: no LID",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"SW x 1 0x40 4x SDR 't'\n",
		err: "in:3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them\n" +
			"    SW x 1 0x40 4x SDR 't'",
		problems: "line 3: not a line of a port list: want SW, LID, port, GUID, 4x NDR, and - CA, LID, port, GUID ( 'one' - 'other' ), as ibnetdiscover -p prints them; line dropped\n",
		want: "Switch 10 \"s\" ports 1 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
	{
		name: "port list: port GUID twice",
		text: "SW 1 1 0x10 4x NDR - CA 2 1 0x21 ( 's' - 'h' )\n" +
			"SW 1 2 0x10 4x NDR - CA 2 2 0x21 ( 's' - 'h' )\n" +
			"CA 2 1 0x21 4x NDR - SW 1 1 0x10 ( 'h' - 's' )\n" +
			"CA 3 2 0x21 4x NDR - SW 1 2 0x10 ( 'h' - 's' )\n",
		err: "in:4: port GUID 0x0000000000000021 of CA 0x0000000000000021[2] is used twice: the port of line 3 has it too\n" +
			"    CA 3 2 0x21 4x NDR - SW 1 2 0x10 ( 'h' - 's' )",
		problems: "line 4: port GUID 0x0000000000000021 of CA 0x0000000000000021[2] is used twice: the port of line 3 has it too; link dropped\n",
		want: "Switch 10 \"s\" ports 2 lid 1\n" +
			"  1 to 20 1 4xNDR\n" +
			"Channel Adapter 1f \"h\" ports 2\n" +
			"Channel Adapter 20 \"h\" ports 1\n" +
			"  1 to 10 1 4xNDR lid 2\n",
	},
}

func TestParseErrors(t *testing.T) {
	for _, test := range broken {
		t.Run(test.name, func(t *testing.T) {
			f, problems, err := Parse("in", []byte(test.text), Options{Strict: test.strict})
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
			if diff := cmp.Diff(test.err, err.Error()); diff != "" {
				t.Errorf("strict: (-want +got)\n%s", diff)
			}
			if n := parse.Line; n > 0 && !strings.HasPrefix(strings.Split(test.text, "\n")[n-1], parse.Text) {
				t.Errorf("line %d is not %q", n, parse.Text)
			}

			f, problems, err = Parse("in", []byte(test.text), Options{Lenient: !test.strict})
			if test.want == "" {
				if err == nil {
					t.Fatal("lenient: no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, tell(f)); diff != "" {
				t.Errorf("lenient: (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, list(problems)); diff != "" {
				t.Errorf("lenient: problems (-want +got)\n%s", diff)
			}
		})
	}
}
