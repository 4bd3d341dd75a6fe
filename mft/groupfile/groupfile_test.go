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

	"github.com/rogpeppe/go-internal/txtar"
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

// cases returns texts, and the groups or the error that each makes: those of testdata, and others
// that no text file holds.
func cases(t testing.TB) (list []fileCase) {
	t.Helper()
	files := short.Must(txtar.ParseFile("testdata/cases.txtar"))(t).Files
	for i := 0; i < len(files); i += 2 {
		short.MustEqual(t, files[i+1].Name, "=", files[i].Name, "is followed by")
		list = append(list, fileCase{files[i].Name, string(files[i].Data), string(files[i+1].Data)})
	}
	return append(list, []fileCase{
		{"marks of a document, BOM, CRLF, comments", "\ufeff# groups\r\n---\r\ngroups: # here\r\n\r\n  # and here\r\n- name: a\r\n  receivers:\r\n  - h0 # x\r\n...\r\n", "\"a\": h0/1\n"},
		{"empty", "", "in: the file is empty; want a file of groups with groups: and a list with name: and receivers: for each group\n"},
		{"cut short", "{\"groups\": [{\"name\": \"a\", \"receivers\": [\"h0\", \"h", "in:1: found unexpected end of stream; want YAML\n    {\"groups\": [{\"name\": \"a\", \"receivers\": [\"h0\", \"h\n"},
		{"second document broken", "groups: []\n---\n[", "in:3: did not find expected node content; want YAML\n    [\n"},
		{"not UTF-8", "groups:\n- name: \xff\n", "in:2: invalid leading UTF-8 octet; want YAML\n    - name: \\xff\n"},
		{"control character", "groups:\n- name: \x00\n", "in:2: control characters are not allowed; want YAML\n    - name: \\x00\n"},
		{"DEL in JSON", "[{\"name\": \"\x7f\u0085\u2028\ufffd\\uFFFD\", \"receivers\": [3]}]", "\"\\x7f\\u0085\\u2028��\": h0/1\n"},
		{"columns after a BOM", "\ufeffgroups: [{name: a, receivers: [xyz]}]", "in:1:33: no node is called \"xyz\"; want a GUID, a name, or a list of names like n[1-4,7]\n    \\ufeffgroups: [{name: a, receivers: [xyz]}]\n"},
	}...)
}

type fileCase struct{ name, text, want string }

func TestParse(t *testing.T) {
	f := small(t)
	for _, c := range cases(t) {
		groups, err := Parse("in", []byte(c.text), f)
		got := show(f, groups)
		if err != nil {
			got = err.Error() + "\n"
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
	for _, c := range cases(f) {
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
	short.Check(t, os.WriteFile(name, []byte(cases(t)[0].text), 0o600))
	data := short.Must(os.ReadFile(name))(t)
	f := small(t)
	groups := short.Must(Parse(name, data, f))(t)
	short.Equal(t, show(f, groups), cases(t)[0].want, groups)
}
