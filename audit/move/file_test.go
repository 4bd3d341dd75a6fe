package move_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/move"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// site is three leaves with two hosts each under two spines.
func site(t testing.TB, leaves int) *fabric.Fabric {
	t.Helper()
	spec := gen.TreeSpec{Ports: 8, Pods: []int{leaves}, Hosts: 2, Spines: 2}
	f := short.Must(gen.Tree(spec))(t)
	return short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
}

// TestParse reads edits, and says what is wrong with others and where.
func TestParse(t *testing.T) {
	f := site(t, 3)
	for _, c := range []struct{ text, want string }{
		{"edits: [unplug leaf 0:3]", "want unplug NODE:PORT"},
		{"edits:\n  - unplug \"leaf 0\":7\n  - plug \"leaf 0\":7 \"spine 1\":4 4xhdr", "1 step, -1 +1"},
		{"# steps\n---\nsteps:\n- [unplug \"leaf 0\":7]\n- [plug \"leaf 0\":7 \"spine 1\":4]\n- []", "3 steps, -1 +1"},
		{"edits:\n- add switch \"new \\\"leaf\" 8\n- add host h 0xabc 1\n- plug h:1 \"new \\\"leaf\":1\n- plug \"new \\\"leaf\":2 \"spine 0\":4\n- remove \"spine 1\"\n", "1 step, -3 +2"},
		{"edits: []", "1 step, -0 +0"},
		{"", "want a file of edits with edits:"}, {"edits", `"edits"; want a mapping with edits, steps`}, {"moves: []", `unknown key "moves"`}, {"edits: []\nsteps: []", "want either edits: or steps:"},
		{"edits: {a: b}", "a mapping; want a list of edits"}, {"steps: [a]", `"a"; want a list of edits`}, {"steps: x", "want a list of lists of edits"}, {"edits: [[a]]", "a list; want an edit"},
		{"edits: [a: b]", "a mapping; want an edit"}, {"edits: [\t", "want YAML"},
		{"edits: [' ']", "want an edit, like unplug leaf03:37"}, {"edits: [fly x]", `"fly": want unplug NODE:PORT`}, {"edits: ['unplug \"x']", "a quotation mark without another"}, {"edits: [unplug x:1]", `no node is called "x"`},
		{"edits:\n- unplug \"leaf 0\":99", "2:2: \"leaf 0\" has ports 1 to"}, {"edits:\n- unplug \"leaf 0\":5", "has no cable"}, {"edits:\n- plug \"leaf 0\":5 \"leaf 1\":8", "has a cable already"},
		{"edits:\n- plug \"leaf 0\":5 \"leaf 0\":5", "has a cable already"}, {"edits:\n- plug \"leaf 0\":5 \"leaf 1\":5 3xHDR", "want one like 4xHDR"}, {"edits: [add switch x]", "want add switch NAME"},
		{"edits: [add router x 3]", "want add switch NAME"}, {"edits: [add host x 0]", "want 1 to 254"}, {"edits: [add host x 0x0 1]", "GUID 0 is no node's"}, {"edits: [add host x 0xg 1]", "hexadecimal"},
		{fmt.Sprintf("edits: [add host x %s 1]", f.Node(0).GUID), "is that of another node"}, {"edits: [remove n9]", `no node is called "n9"`}, {"edits: [&a unplug x, *a]", "an anchor or an alias"},
		{"edits:\n- add host x 1\n- add host x 1\n- unplug x:1", `2 nodes are called "x"`},
	} {
		job, err := move.Parse("f", []byte(c.text), f)
		got := fmt.Sprint(err)
		if err == nil {
			var b move.Batch
			for _, s := range job.Steps {
				b.Unplug, b.Plug = append(b.Unplug, s.Unplug...), append(b.Plug, s.Plug...)
			}
			n := max(1, len(job.Steps))
			if job.Steps == nil {
				b.Unplug, b.Plug = difference(job.Old, job.New), difference(job.New, job.Old)
			}
			got = fmt.Sprintf("%d step%s, -%d +%d", n, strings.Repeat("s", min(1, n-1)), len(b.Unplug), len(b.Plug))
		}
		var at *fabric.ParseError
		if !strings.Contains(got, c.want) || err != nil && (!errors.As(err, &at) || job != nil) {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

func difference(a, b []fabric.Cable) (rest []fabric.Cable) {
	has := make(map[fabric.PortID]fabric.PortID)
	for _, c := range b {
		has[c.A] = c.B
	}
	for _, c := range a {
		if z, ok := has[c.A]; !ok || z != c.B {
			rest = append(rest, c)
		}
	}
	return rest
}

// TestBetween finds nodes by name where GUIDs are others, and tells that.
func TestBetween(t *testing.T) {
	old, new := site(t, 3), site(t, 4) // whose spines have the GUIDs after those of the leaves
	if _, err := move.Between(old, new, false); err == nil || !strings.Contains(err.Error(), "--by name") {
		t.Errorf("by GUIDs that mean other nodes: %v", err)
	}
	job := short.Must(move.Between(old, new, true))(t)
	if gone, come := len(difference(job.Old, job.New)), len(difference(job.New, job.Old)); gone != 0 || come != 4 || job.Nodes.NumNodes() != old.NumNodes()+3 {
		t.Errorf("%d cables go, %d come, %d nodes for %d", gone, come, job.Nodes.NumNodes(), old.NumNodes())
	}
	for n := range fabric.NodeID(old.NumNodes()) {
		at, ok := job.Nodes.NodeByGUID(old.Node(n).GUID)
		if !ok || job.Nodes.Name(at) != old.Name(n) {
			t.Errorf("%s is not what it was", old.Name(n))
		}
		for p := range old.Node(n).NumPorts + 1 {
			if x, y := old.Port(n, p), job.Nodes.Port(at, p); old.LID(x) != job.Nodes.LID(y) || old.PortGUID(x) != job.Nodes.PortGUID(y) {
				t.Errorf("%s has LID %d, and had %d", old.PortName(x), job.Nodes.LID(y), old.LID(x))
			}
		}
	}
	if _, err := move.Between(old, old, true); err != nil {
		t.Error(err)
	}
	if job, err := move.Between(old, old, false); err != nil || len(difference(job.Old, job.New)) > 0 {
		t.Errorf("from a fabric to itself: %v", err)
	}
}

// FuzzParse reads anything: an error has no result, and all states of a job are fabrics with LIDs.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"edits:\n- add switch \"new \\\"leaf\" 8\n- add host h 0xabc 1\n- plug h:1 \"new \\\"leaf\":1\n- plug \"new \\\"leaf\":2 \"spine 0\":4\n- remove \"spine 1\"\n",
		"steps:\n- [unplug \"leaf 0\":7, add host x 2]\n- [plug \"leaf 0\":7 x:2 4xEDR]\n- [unplug x:2]", "edits: [&a unplug x, *a]", "edits: [add host a 0xffffffffffffffff 9, plug a:9 a:8]",
	} {
		f.Add([]byte(text))
	}
	old := site(f, 3)
	f.Fuzz(func(t *testing.T, data []byte) {
		job, err := move.Parse("f", data, old)
		if err != nil {
			if job != nil {
				t.Fatal("an error and a result")
			}
			return
		}
		cables := job.Old
		steps := job.Steps
		if steps == nil {
			steps = []move.Batch{{Unplug: difference(job.Old, job.New), Plug: difference(job.New, job.Old)}}
		}
		for _, b := range steps {
			cables = append(difference(cables, b.Unplug), b.Plug...)
			g := short.Must(job.Nodes.WithCables(cables))(t)
			g.EndPorts(func(p fabric.PortID) {
				if s := g.Owner(p); g.LID(p) == 0 && (!g.IsSwitch(s) || len(g.Neighbors(s)) > 0) {
					t.Fatalf("%s has no LID", g.PortName(p))
				}
			})
		}
		if len(difference(cables, job.New))+len(difference(job.New, cables)) > 0 {
			t.Fatal("the steps do not lead to the end")
		}
	})
}
