package groupfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
)

// small is two switches "leaf 0" and "leaf 1", hosts "h0" to "h3" with port
// GUIDs 0x101, 0x111, 0x121 and 0x131 and LIDs 3 to 6, a host "twin" with two
// ports, of which one has no cable, two hosts called "same", and one, "loose",
// without a cable. LIDs of h3 are 8 to 11, with LMC 2.
func small(t testing.TB) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	add := func(n fabric.Node) int {
		return short.Must(b.AddNode(n))(t)
	}
	for s := range 2 {
		i := add(fabric.Node{GUID: fabric.GUID(0xa + s), Type: fabric.Switch, NumPorts: 8, Description: fmt.Sprintf("leaf %d", s)})
		short.Check(t, b.SetPort(i, 0, 0, fabric.LID(1+s), 0))
	}
	short.Check(t, b.Connect(0, 8, 1, 8, fabric.Link{}))
	host := func(guid fabric.GUID, name string, ports fabric.PortNum, lid fabric.LID, lmc uint8, sw int, swPort fabric.PortNum) {
		i := add(fabric.Node{GUID: guid, Type: fabric.CA, NumPorts: ports, Description: name})
		short.Check(t, b.SetPort(i, ports, guid+fabric.GUID(ports), lid, lmc))
		if swPort > 0 {
			short.Check(t, b.Connect(i, ports, sw, swPort, fabric.Link{}))
		}
	}
	host(0x100, "h0", 1, 3, 0, 0, 1)
	host(0x110, "h1", 1, 4, 0, 0, 2)
	host(0x120, "h2", 1, 5, 0, 1, 1)
	host(0x130, "h3", 1, 8, 2, 1, 2)
	host(0x140, "twin", 2, 12, 0, 0, 3)
	host(0x150, "same", 1, 13, 0, 0, 4)
	host(0x160, "same", 1, 14, 0, 1, 3)
	host(0x170, "loose", 1, 0, 0, 0, 0)
	host(0xfffffffffffffff0, "last", 1, 15, 0, 1, 4)
	host(0x180, "17", 1, 16, 0, 1, 5)
	return short.Must(b.Build())(t)
}

// show is groups as text.
func show(f *fabric.Fabric, groups []mft.Group) string {
	var b strings.Builder
	ports := func(list []fabric.PortID) {
		for _, p := range list {
			fmt.Fprintf(&b, " %s/%d", f.Node(f.Owner(p)).Description, f.Num(p))
		}
	}
	for _, g := range groups {
		fmt.Fprintf(&b, "%q", g.Name)
		if g.MGID.IsValid() {
			fmt.Fprintf(&b, " %s", g.MGID)
		}
		if g.MLID != 0 {
			fmt.Fprintf(&b, " %#x", uint16(g.MLID))
		}
		if g.SL != 0 {
			fmt.Fprintf(&b, " SL %d", g.SL)
		}
		b.WriteString(":")
		ports(g.Receivers)
		if !slices.Equal(g.Senders, g.Receivers) {
			b.WriteString(" from")
			ports(g.Senders)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// cases are texts, and the groups or the error that they make.
var cases = []struct{ name, text, want string }{
	{"as documented", `groups:
  - name: allreduce-0                 # any text
    mgid: ff12:a01d:fe80::1           # optional
    mlid: 0xc001                      # optional
    receivers:                        # port GUIDs, descriptions, expressions
      - 0x0000000000000101
      - "leaf 0"
      - "re:^h[12]$"
    senders: [0x0000000000000131]     # optional
    sl: 3                             # optional
`, "\"allreduce-0\" ff12:a01d:fe80::1 0xc001 SL 3: leaf 0/0 h0/1 h1/1 h2/1 from h3/1\n"},
	{"JSON", `{"groups": [{"name": "a \"b\" \u00e9\ud83d\ude00\/", "mgid": "ff12::1", "mlid": 49153, "receivers": ["0x101", "h1"], "senders": ["re:2"], "sl": 15},
		{"name": "c", "mlid": "0xc002", "receivers": ["0xffffFFFFfffffff1"]}]}`,
		"\"a \\\"b\\\" é😀/\" ff12::1 0xc001 SL 15: h0/1 h1/1 from h2/1\n\"c\" 0xc002: last/1\n"},
	{"JSON with tabs", "{\n\t\"groups\": [\n\t\t{\n\t\t\t\"name\": \"a\",\n\t\t\t\"receivers\": [\n\t\t\t\t\"h0\"\n\t\t\t]\n\t\t}\n\t]\n}\n", "\"a\": h0/1\n"},
	{"what compile writes", `[
{"name":"a","mgid":"ff12:a01d::1","mlid":49153,"senders":[3],"receivers":[3,4],"scheme":"union","sl":2},
{"name":"a","mgid":"ff12:a01d::2","mlid":49154,"senders":[],"receivers":[8],"scheme":"comb","shared_mlid":true},
{"name":"b","mgid":"ff12:a01d::3","mlid":49154,"senders":[1],"receivers":[],"scheme":"comb","shared_mlid":true}
]
`, "\"a\" ff12:a01d::1 0xc001 SL 2: h0/1 h1/1 from h0/1\n\"a\" ff12:a01d::2 0xc002: h3/1 from\n\"b\" ff12:a01d::3 0xc002: from leaf 0/0\n"},
	{"unquoted", "groups:\n- name: a: b\n", "in:2: mapping values are not allowed in this context; want YAML\n    - name: a: b"},
	{"plain text", "groups:\n- name: all - it's \"so\"#1, [x] {y} # more\n  receivers: [h0]\n", "\"all - it's \\\"so\\\"#1, [x] {y}\": h0/1\n"},
	{"plain text of several words in a list", "groups:\n- {name: a b, receivers: [leaf 0, leaf 1,]}\n", "\"a b\": leaf 0/0 leaf 1/0\n"},
	{"colons in plain text", "groups:\n- {name: 'it''s', mgid: ff12::1, receivers: [re:^h0]}\n- {name: b, mgid: ff12:1b3e:0:0:0:0:0:2, receivers: [re::|h1]}\n",
		"\"it's\" ff12::1: h0/1\n\"b\" ff12:1b3e::2: h1/1\n"},
	{"JSON without blanks", `{"groups":[{"name":"a","receivers":["h0"]}]}`, "\"a\": h0/1\n"},
	{"marks of a document, BOM, CRLF, comments", "\ufeff# groups\r\n---\r\ngroups: # here\r\n\r\n  # and here\r\n- name: a\r\n  receivers:\r\n  - h0 # x\r\n...\r\n", "\"a\": h0/1\n"},
	{"dashes below their key", "groups:\n- name: a\n  receivers:\n  - h0\n  - h1\n  sl: 1\n", "\"a\" SL 1: h0/1 h1/1\n"},
	{"an item in the line after its dash", "groups:\n  -\n    name: a\n    receivers:\n      -\n        h0\n", "\"a\": h0/1\n"},
	{"nothing for a key", "groups:\n- name: a\n  mgid:\n  mlid: null\n  sl: ~\n  senders:\n  receivers: [h0]\n", "\"a\": h0/1\n"},
	{"no groups", "groups: []\n", ""},
	{"none yet", "[\n]\n", ""},
	{"a port twice", "groups: [{name: a, receivers: [h0, 3, 0x101, 're:h0']}]", "\"a\": h0/1\n"},
	{"ports with a cable", "groups: [{name: a, receivers: [twin]}]", "\"a\": twin/2\n"},
	{"GUID of a switch", "groups: [{name: a, receivers: [0xb]}]", "\"a\": leaf 1/0\n"},
	{"several nodes", "groups: [{name: a, receivers: ['re:^same$']}]", "\"a\": same/1 same/1\n"},
	{"hosts rather than switches", "groups: [{name: a, receivers: ['re:[h0]$']}, {name: b, receivers: ['re:leaf']}]", "\"a\": h0/1\n\"b\": leaf 0/0 leaf 1/0\n"},
	{"every LID of a port", "groups: [{name: a, receivers: [11]}]", "\"a\": h3/1\n"},
	{"a description of digits", "groups: [{name: a, receivers: ['17']}]", "\"a\": 17/1\n"},
	{"IPoIB, when it is asked for", "groups: [{name: a, mgid: 'ff12:401b:ffff::ffff:ffff', mlid: 0xc000, receivers: [h0]}]", "\"a\" ff12:401b:ffff::ffff:ffff 0xc000: h0/1\n"},

	{"empty", "", "in: the file is empty; want a file of groups with groups: and a list with name: and receivers: for each group"},
	{"comments only", "# x\n", "in: the file is empty; want a file of groups with groups: and a list with name: and receivers: for each group"},
	{"text", "hello\n", "in:1: \"hello\"; want a mapping with groups\n    hello"},
	{"nothing for groups", "groups:\n", "in:1:7: nothing; want a list of groups, each with name: and receivers:\n    groups:"},
	{"no list", "groups: {name: a}\n", "in:1:8: a mapping; want a list of groups, each with name: and receivers:\n    groups: {name: a}"},
	{"unknown key of the file", "group: []\n", "in:1: unknown key \"group\"; want groups\n    group: []"},
	{"unknown key", "groups:\n- name: a\n  recipients: [h0]\n", "in:3:2: unknown key \"recipients\"; want mgid, mlid, name, receivers, senders, sl\n      recipients: [h0]"},
	{"a key of groups.json", "groups:\n- name: a\n  scheme: union\n", "in:3:2: unknown key \"scheme\"; want mgid, mlid, name, receivers, senders, sl\n      scheme: union"},
	{"a key twice", "groups:\n- name: a\n  sl: 1\n  sl: 2\n", "in:4:2: sl: is in line 3 already; want it once\n      sl: 2"},
	{"a key twice, in JSON", "{\"groups\": [{\"name\": \"a\",\n\"name\": null}]}", "in:2: name: is in line 1 already; want it once\n    \"name\": null}]}"},
	{"a text for a group", "groups:\n- a\n", "in:2:2: \"a\"; want a mapping with mgid, mlid, name, receivers, senders, sl\n    - a"},
	{"no name", "groups:\n- receivers: [h0]\n", "in:2:2: a group without a name; want name: and any text\n    - receivers: [h0]"},
	{"a list for a name", "groups:\n- name: [a]\n", "in:2:8: a list for name; want a value in its line\n    - name: [a]"},
	{"no receivers", "groups:\n- name: a\n  senders: [h0]\n", "in:2:2: group \"a\" has no receivers; want receivers: and a list of port GUIDs, names or re: and regular expressions\n    - name: a"},
	{"empty receivers", "groups:\n- name: a\n  receivers: []\n", "in:3:13: no receivers; want at least one, and for senders that are all receivers no line at all\n      receivers: []"},
	{"empty senders", "groups:\n- name: a\n  receivers: [h0]\n  senders: []\n", "in:4:11: no senders; want at least one, and for senders that are all receivers no line at all\n      senders: []"},
	{"no list of receivers", "groups:\n- name: a\n  receivers: h0\n", "in:3:13: \"h0\" for receivers; want a list, such as [0x0000000000100001, \"host 0,1\"]\n      receivers: h0"},
	{"a list in the list", "groups: [{name: a, receivers: [[h0]]}]", "in:1:31: a list for an end port; want a port GUID such as 0x0000000000100001, a name, re: and a regular expression, or a LID\n    groups: [{name: a, receivers: [[h0]]}]"},
	{"nothing in the list", "groups:\n- name: a\n  receivers:\n  -\n", "in:4:3: nothing for an end port; want a port GUID such as 0x0000000000100001, a name, re: and a regular expression, or a LID\n      -"},
	{"bad MGID", "groups:\n- name: a\n  mgid: fe80::1\n", "in:3:8: MGID fe80::1 is not multicast; want one that begins with ff, like ff12:a01d::1\n      mgid: fe80::1"},
	{"MGID that ends with colons", "groups:\n- name: a\n  mgid: ff12::\n", "in:3: mapping values are not allowed in this context; want YAML\n      mgid: ff12::"},
	{"MLID too low", "groups:\n- name: a\n  mlid: 0xbfff\n", "in:3:8: MLID 0xbfff, want 0xc000 to 0xfffe\n      mlid: 0xbfff"},
	{"MLID too high", "groups:\n- name: a\n  mlid: 65535\n", "in:3:8: MLID 65535, want 0xc000 to 0xfffe\n      mlid: 65535"},
	{"MLID of more bits", "groups:\n- name: a\n  mlid: 0x1c001\n", "in:3:8: MLID 0x1c001, want 0xc000 to 0xfffe\n      mlid: 0x1c001"},
	{"MLID beyond 64 bits", "groups:\n- name: a\n  mlid: 0x1000000000000c001\n", "in:3:8: MLID 0x1000000000000c001, want 0xc000 to 0xfffe\n      mlid: 0x1000000000000c001"},
	{"MLID with a zero in front", "groups:\n- name: a\n  mlid: 049153\n", "in:3:8: MLID 049153, want 0xc000 to 0xfffe\n      mlid: 049153"},
	{"SL too high", "groups:\n- name: a\n  sl: 16\n", "in:3:6: SL 16, want 0 to 15\n      sl: 16"},
	{"SL below 0", "groups:\n- name: a\n  sl: -1\n", "in:3:6: SL -1, want 0 to 15\n      sl: -1"},
	{"an MGID twice", "groups:\n- {name: a, mgid: ff12::1, receivers: [h0]}\n- {name: b, mgid: 'ff12:0::1', receivers: [h0]}\n", "in:3:18: MGID ff12::1 is that of the group in line 2 already; want one for each group, or none\n    - {name: b, mgid: 'ff12:0::1', receivers: [h0]}"},
	{"an MLID twice", "groups:\n- {name: a, mlid: 0xc001, receivers: [h0]}\n- {name: b, mlid: 49153, receivers: [h0]}\n", "in:3:18: MLID 0xc001 is that of the group in line 2 already; want one for each group, or none\n    - {name: b, mlid: 49153, receivers: [h0]}"},
	{"an MLID twice, shared by one", "[{name: a, mlid: 0xc001, receivers: [h0]},\n{name: b, mlid: 49153, receivers: [h0], shared_mlid: true}]", "in:2:16: MLID 0xc001 is that of the group in line 1 already; want one for each group, or none\n    {name: b, mlid: 49153, receivers: [h0], shared_mlid: true}]"},
	{"shared or not", "[{name: a, mlid: 0xc001, receivers: [h0], shared_mlid: 1}]", "in:1:55: shared_mlid \"1\", want true or false\n    [{name: a, mlid: 0xc001, receivers: [h0], shared_mlid: 1}]"},
	{"unknown GUID", "groups:\n- name: a\n  receivers: [0x999]\n", "in:3:14: no end port has the GUID 0x0000000000000999\n      receivers: [0x999]"},
	{"GUID 0", "groups: [{name: a, receivers: [0x0]}]", "in:1:31: no end port has the GUID 0x0000000000000000\n    groups: [{name: a, receivers: [0x0]}]"},
	{"GUID of 17 digits", "groups:\n- name: a\n  receivers: [0x10000000000000101]\n", "in:3:14: GUID \"0x10000000000000101\": want 1 to 16 hexadecimal digits\n      receivers: [0x10000000000000101]"},
	{"GUID of a node", "groups:\n- name: a\n  receivers: [0x140]\n", "in:3:14: 0x0000000000000140 is the GUID of a node, \"twin\"; want that of a port: 0x0000000000000142\n      receivers: [0x140]"},
	{"GUID of a node without a cable", "groups: [{name: a, receivers: [0x170]}]", "in:1:31: no port of node 0x0000000000000170 has a cable\n    groups: [{name: a, receivers: [0x170]}]"},
	{"GUID of a port without a cable", "groups: [{name: a, receivers: [0x171]}]", "in:1:31: no end port has the GUID 0x0000000000000171\n    groups: [{name: a, receivers: [0x171]}]"},
	{"node without a cable", "groups: [{name: a, receivers: [loose]}]", "in:1:31: no port of \"loose\" has a cable\n    groups: [{name: a, receivers: [loose]}]"},
	{"unknown description", "groups: [{name: a, receivers: [Leaf  0]}]", "in:1:31: no node is called \"Leaf  0\"; \"leaf 0\" is one\n    groups: [{name: a, receivers: [Leaf  0]}]"},
	{"name in other letters", "groups: [{name: a, receivers: [TWIN]}]", "\"a\": twin/2\n"},
	{"description like none", "groups: [{name: a, receivers: [xyz]}]", "in:1:31: no node is called \"xyz\"; want a GUID, a name, or a list of names like n[1-4,7]\n    groups: [{name: a, receivers: [xyz]}]"},
	{"name of two nodes", "groups: [{name: a, receivers: [same]}]", "\"a\": same/1 same/1\n"},
	{"list of names", "groups: [{name: a, receivers: ['h[0,2]']}]", "\"a\": h0/1 h2/1\n"},
	{"unknown LID", "groups: [{name: a, receivers: [17]}]", "in:1:31: no end port has LID 17; GUIDs begin with 0x, and names that are numbers want quotes\n    groups: [{name: a, receivers: [17]}]"},
	{"GUID without 0x", "groups: [{name: a, receivers: [0002c90300000001]}]", "in:1:31: no node is called \"0002c90300000001\"; want a GUID, a name, or a list of names like n[1-4,7]\n    groups: [{name: a, receivers: [0002c90300000001]}]"},
	{"digits without 0x", "groups: [{name: a, receivers: [0002590300000001]}]", "in:1:31: no end port has LID 0002590300000001; GUIDs begin with 0x, and names that are numbers want quotes\n    groups: [{name: a, receivers: [0002590300000001]}]"},
	{"no match", "groups: [{name: a, receivers: ['re:^h0x']}]", "in:1:31: no node with a cable has a description that matches \"^h0x\"\n    groups: [{name: a, receivers: ['re:^h0x']}]"},
	{"bad expression", "groups: [{name: a, receivers: ['re:h[']}]", "in:1:31: error parsing regexp: missing closing ]: `[`\n    groups: [{name: a, receivers: ['re:h[']}]"},

	{"tab", "groups:\n\t- name: a\n", "in:2: found character that cannot start any token; want YAML\n    \t- name: a"},
	{"deeper line", "groups:\n- name: a\n   sl: 1\n", "in:3: mapping values are not allowed in this context; want YAML\n       sl: 1"},
	{"less deep", "groups:\n  - name: a\n - name: b\n", "in:3: did not find expected key; want YAML\n     - name: b"},
	{"text after the end", "  groups: []\nx: y\n", "in:2: did not find expected <document start>; want YAML\n    x: y"},
	{"text over lines", "groups:\n- name: |\n    a\n", "in:2:2: group \"a\\n\" has no receivers; want receivers: and a list of port GUIDs, names or re: and regular expressions\n    - name: |"},
	{"tag", "groups:\n- name: !!str a\n", "in:2:8: a tag, !!str; write the value without it\n    - name: !!str a"},
	{"directive", "%YAML 1.2\n---\ngroups: []\n", "in:1: found incompatible YAML document; want YAML\n    %YAML 1.2"},
	{"two documents", "groups: []\n---\ngroups: []\n", "in:2: a second document; want one file of groups a file\n    ---"},
	{"question mark", "? groups\n: []\n", ""},
	{"dash in a list", "groups: [- a]\n", "in:1: did not find expected node content; want YAML\n    groups: [- a]"},
	{"key that is a list", "[a]: b\n", "in:1: a list as a key; want a mapping with groups\n    [a]: b"},
	{"anchor and alias", "groups:\n- name: a\n  receivers: &all [h0]\n- name: b\n  receivers: *all\n", "in:3:13: an anchor or an alias; write the value out\n      receivers: &all [h0]"},
	{"no anchor", "groups: *a\n", "in:1: unknown anchor 'a' referenced; want YAML\n    groups: *a"},
	{"anchor's name", "groups: &a.b []\n", "in:1: did not find expected alphabetic or numeric character; want YAML\n    groups: &a.b []"},
	{"colon in braces", "groups: [{name\n:a}]\n", "in:1:10: unknown key \"name :a\"; want mgid, mlid, name, receivers, senders, sl\n    groups: [{name"},
	{"quote", "groups:\n- name: \"a\n", "in:2: found unexpected end of stream; want YAML\n    - name: \"a"},
	{"single quote", "groups:\n- name: 'a''\n", "in:2: found unexpected end of stream; want YAML\n    - name: 'a''"},
	{"escape", "groups:\n- name: \"\\q\"\n", "in:2: found unknown escape character; want YAML\n    - name: \"\\q\""},
	{"text after quotes", "groups:\n- name: \"a\" b\n", "in:2: did not find expected key; want YAML\n    - name: \"a\" b"},
	{"brace", "groups: [{name: a]\n", "in:1: did not find expected ',' or '}'; want YAML\n    groups: [{name: a]"},
	{"no comma", "groups: [{name: a\nsl: 1}]\n", "in:2: did not find expected ',' or '}'; want YAML\n    sl: 1}]"},
	{"cut short", "{\"groups\": [{\"name\": \"a\", \"receivers\": [\"h0\", \"h", "in:1: found unexpected end of stream; want YAML\n    {\"groups\": [{\"name\": \"a\", \"receivers\": [\"h0\", \"h"},
	{"key in a list", "groups: [a: b]\n", "in:1:9: unknown key \"a\"; want mgid, mlid, name, receivers, senders, sl\n    groups: [a: b]"},
	{"not UTF-8", "groups:\n- name: \xff\n", "in:2: invalid leading UTF-8 octet; want YAML\n    - name: \\xff"},
	{"control character", "groups:\n- name: \x00\n", "in:2: control characters are not allowed; want YAML\n    - name: \\x00"},
	{"merge key", "groups:\n- &a {name: a, receivers: [h0]}\n- <<: *a\n  name: b\n", "in:2:2: an anchor or an alias; write the value out\n    - &a {name: a, receivers: [h0]}"},
	{"tag without a name", "groups:\n- name: ! 17\n", "in:2:2: group \"17\" has no receivers; want receivers: and a list of port GUIDs, names or re: and regular expressions\n    - name: ! 17"},
	{"escapes of YAML", "groups:\n- name: \"\\x41\\u2028\\U0001F600\\e\"\n  receivers: [h0]\n", "\"A\\u2028😀\\x1b\": h0/1\n"},
	{"DEL in JSON", "[{\"name\": \"\x7f\u0085\u2028\ufffd\\uFFFD\", \"receivers\": [3]}]", "\"\\x7f\\u0085\\u2028��\": h0/1\n"},
	{"numbers of JSON", "[{\"name\": 1e3, \"receivers\": [3], \"mlid\": 4.9153e4}]", "in:1:41: MLID 4.9153e4, want 0xc000 to 0xfffe\n    [{\"name\": 1e3, \"receivers\": [3], \"mlid\": 4.9153e4}]"},
	{"columns are bytes", "groups: [{name: é😀, receivers: [xé, zz]}]", "in:1:36: no node is called \"xé\"; \"17\" is one\n    groups: [{name: é😀, receivers: [xé, zz]}]"},
	{"columns after a BOM", "\ufeffgroups: [{name: a, receivers: [xyz]}]", "in:1:33: no node is called \"xyz\"; want a GUID, a name, or a list of names like n[1-4,7]\n    \\ufeffgroups: [{name: a, receivers: [xyz]}]"},
	{"second document broken", "groups: []\n---\n[", "in:3: did not find expected node content; want YAML\n    ["},
	{"a dash after a key", "groups: - name: a\n", "in:1: block sequence entries are not allowed in this context; want YAML\n    groups: - name: a"},
}

func TestParse(t *testing.T) {
	f := small(t)
	for _, c := range cases {
		groups, err := Parse("in", []byte(c.text), f)
		got := show(f, groups)
		if err != nil {
			got = err.Error()
			var parse *fabric.ParseError
			if groups != nil || !errors.As(err, &parse) || parse.File != "in" || parse.Line == 0 && strings.TrimLeft(c.text, "# x\n") != "" {
				t.Errorf("%s: %v, %#v", c.name, groups, err)
			}
		}
		short.Equal(t, got, c.want, c.name)
	}
}

// TestShared: senders that are the receivers cost nothing.
func TestShared(t *testing.T) {
	f := small(t)
	groups := short.Must(Parse("in", []byte("groups: [{name: a, receivers: ['re:.']}]"), f))(t)
	short.Equal(t, &groups[0].Senders[0], &groups[0].Receivers[0], "lists are not shared")
}

// TestEveryPort: each end port is found by its GUID, its LID and its
// description when that is its own.
func TestEveryPort(t *testing.T) {
	f := small(t)
	f.EndPorts(func(p fabric.PortID) {
		n := f.Node(f.Owner(p))
		texts := []string{f.PortGUID(p).String(), fmt.Sprintf("%#x", uint64(f.PortGUID(p))), fmt.Sprint(f.LID(p))}
		if n.Description != "same" {
			texts = append(texts, fmt.Sprintf("%q", n.Description), "re:^"+n.Description+"$")
		}
		for _, s := range texts {
			groups := short.Must(Parse("in", fmt.Appendf(nil, "groups: [{name: a, receivers: [%s]}]", s), f))(t)
			short.EqualList(t, groups[0].Receivers, []fabric.PortID{p}, s, "for", f.PortName(p), groups)
		}
	})
}

// TestWritten: what mft.AppendGroupsJSON writes is read back.
func TestWritten(t *testing.T) {
	f := small(t)
	var all []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { all = append(all, p) })
	slices.Sort(all)
	rapid.Check(t, func(t *rapid.T) {
		some := func(label string) []fabric.PortID {
			list := []fabric.PortID{}
			for _, p := range all {
				if rapid.Bool().Draw(t, label) {
					list = append(list, p)
				}
			}
			return list
		}
		var trees []mft.Tree
		mlid := fabric.LID(0xc000)
		for i := range rapid.IntRange(0, 4).Draw(t, "trees") {
			m := short.Must(mft.ParseMGID(fmt.Sprintf("ff12:a01d::%x", i)))(t)
			mlid += fabric.LID(rapid.IntRange(0, 2).Draw(t, "step"))
			trees = append(trees, mft.Tree{Name: rapid.String().Draw(t, "name"), MGID: m, MLID: mlid, Receivers: some("receivers"), Senders: some("senders"),
				SL: fabric.SL(rapid.IntRange(0, 15).Draw(t, "SL")), Scheme: "union"})
		}
		b := short.Must(mft.AppendGroupsJSON(nil, f, trees))(t)
		groups, err := Parse("groups.json", b, f)
		if err != nil {
			t.Fatalf("%v\n%s", err, b)
		}
		var want []mft.Group
		for _, tree := range trees {
			name := strings.ToValidUTF8(tree.Name, "\ufffd")
			want = append(want, mft.Group{Name: name, MGID: tree.MGID, MLID: tree.MLID, Receivers: tree.Receivers, Senders: tree.Senders, SL: tree.SL})
		}
		short.Diff(t, show(f, groups), show(f, want), b)
	})
}

// aliases is a group whose receivers would be 2 to the n, were they written out.
func aliases(n int) string {
	text := []byte("groups:\n- name: a\n  senders: &a0 [h0, h0]\n- name: b\n  receivers:\n")
	for i := range n {
		text = fmt.Appendf(text, "  - &a%d [*a%d, *a%d]\n", i+1, i, i)
	}
	return string(text)
}

// TestSize: what is beyond the largest size is not read.
func TestSize(t *testing.T) {
	f := small(t)
	text := append([]byte(`[{"name":"a","receivers":["h0"]}]`), bytes.Repeat([]byte(" "), 64<<20)...)[:64<<20]
	short.Equal(t, len(short.Must(Parse("in", text, f))(t)), 1)
	if groups, err := Parse("in", append(text, ' '), f); err == nil || groups != nil || !strings.HasPrefix(err.Error(), "in: 67108865 bytes; want at most 67108864") {
		t.Errorf("%v, %.100v", groups, err)
	}
}

// TestHostile: text that makes readers of YAML slow.
func TestHostile(t *testing.T) {
	f := small(t)
	n := short.Of(100000, 10000)
	for name, text := range map[string]string{
		"brackets": strings.Repeat("[", n), "dashes": strings.Repeat("- ", n), "braces": strings.Repeat("{a: ", n), "anchors": strings.Repeat("&a ", n),
		"lines": strings.Repeat("a:\n", n), "indentation": strings.Repeat(" ", n) + "a", "long list": "groups: [{name: a, receivers: [" + strings.Repeat("h0,\n", n) + "]}]",
		"long line": "groups: [{name: a, receivers: [" + strings.Repeat("h0,", n) + "]}]", "anchors of anchors": "groups: " + strings.Repeat("&a\n", n),
		"questions": strings.Repeat("? ", n), "comments": strings.Repeat("#\n", n), "expressions": "groups: [{name: a, receivers: [" + strings.Repeat("'re:.',", n) + "]}]",
		"aliases of aliases": aliases(n / 100), "flow comments": "groups: [" + strings.Repeat("a, #\n", n) + "]", "comments of items": strings.Repeat("- a #x\n# y\n\n", n/4),
		"deep list": strings.Repeat("[", 9000) + strings.Repeat("a,", n), "aliases": "a: &a [x]\n" + strings.Repeat("b: [*a, *a, *a, *a]\n", n/10), "groups": "groups:\n" + strings.Repeat("- {name: a, receivers: [h0]}\n", n/10),
	} {
		var groups []mft.Group
		var err error
		var ended atomic.Bool
		go func() {
			groups, err = Parse("in", []byte(text), f)
			ended.Store(true)
		}()
		short.Await(t, ended.Load, name)
		if err != nil && groups != nil {
			t.Errorf("%s: an error and a result", name)
		}
	}
}

// FuzzParse: an error means no groups, and names the file; what is read has ports
// that are end ports, in order, and is read again from what compile would
// write.
func FuzzParse(f *testing.F) {
	fab := small(f)
	for _, c := range cases {
		f.Add([]byte(c.text))
	}
	endPort := make(map[fabric.PortID]bool)
	fab.EndPorts(func(p fabric.PortID) { endPort[p] = true })
	f.Fuzz(func(t *testing.T, data []byte) {
		groups, err := Parse("in", data, fab)
		if err != nil {
			var parse *fabric.ParseError
			if groups != nil || !errors.As(err, &parse) {
				t.Fatalf("%v, %#v", groups, err)
			}
			return
		}
		var trees []mft.Tree
		for i, g := range groups {
			for _, list := range [][]fabric.PortID{g.Receivers, g.Senders} {
				for j, p := range list {
					if !endPort[p] || j > 0 && p <= list[j-1] {
						t.Fatalf("ports %v", list)
					}
				}
			}
			trees = append(trees, mft.Tree{Group: i, Name: g.Name, MGID: g.MGID, MLID: g.MLID, Receivers: g.Receivers, Senders: g.Senders, SL: g.SL})
		}
		given, err := mft.NewIDs(groups, mft.Options{})
		if err != nil {
			return // an MLID that is shared
		}
		for i := range trees {
			trees[i].MGID = given.MGID(i, 0)
			if trees[i].MLID, err = given.MLID(i); err != nil {
				return
			}
			groups[i].MGID, groups[i].MLID = trees[i].MGID, trees[i].MLID
		}
		b := short.Must(mft.AppendGroupsJSON(nil, fab, trees))(t)
		again := short.Must(Parse("again", b, fab))(t)
		short.MustEqual(t, show(fab, again), show(fab, groups), b)
	})
}

// TestFile: the example of the documentation, from a file.
func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "groups.yaml")
	short.Check(t, os.WriteFile(name, []byte(cases[0].text), 0o600))
	data := short.Must(os.ReadFile(name))(t)
	f := small(t)
	groups := short.Must(Parse(name, data, f))(t)
	short.Equal(t, show(f, groups), cases[0].want, groups)
}
