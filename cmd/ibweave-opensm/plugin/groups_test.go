package plugin

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// compiledGroups writes groups.json and guid2lid.
func compiledGroups(t testing.TB, dir string, f *fabric.Fabric, trees []mft.Tree) string {
	t.Helper()
	text := short.Must(mft.AppendGroupsJSON(nil, f, trees))(t)
	var lids bytes.Buffer
	short.Check(t, dump.WriteGUID2LID(&lids, f))
	name := filepath.Join(dir, outdir.GroupsName)
	for file, data := range map[string][]byte{name: text, filepath.Join(dir, outdir.GUID2LIDName): lids.Bytes()} {
		writeFile(t, file, data)
	}
	return name
}

// randomGroups is groups with senders that do not receive, and receivers that do
// not send.
func randomGroups(f *fabric.Fabric, n int, rnd *rand.Rand) []mft.Group {
	ports := f.CAPorts()
	groups := make([]mft.Group, n)
	for i := range groups {
		g := &groups[i]
		g.Name = fmt.Sprintf("group %d", i)
		some := rnd.Perm(len(ports))
		for _, k := range some[:2+rnd.IntN(len(ports)-2)] {
			g.Receivers = append(g.Receivers, ports[k])
		}
		for _, k := range rnd.Perm(len(ports))[:1+rnd.IntN(4)] {
			g.Senders = append(g.Senders, ports[k])
		}
		slices.Sort(g.Receivers)
		slices.Sort(g.Senders)
	}
	return groups
}

// boxesOf is how the ports join: receivers as full members, those who only send as
// send-only ones.
func boxesOf(f *fabric.Fabric, trees []mft.Tree, rnd *rand.Rand) []Box {
	var boxes []Box
	for i := range trees {
		tree := &trees[i]
		g := Group{MGID: tree.MGID, SL: tree.SL}
		for _, p := range tree.Receivers {
			g.Members = append(g.Members, Member{f.PortGUID(p), mad.FullMember})
		}
		for _, p := range tree.Senders {
			if !slices.Contains(tree.Receivers, p) {
				g.Members = append(g.Members, Member{f.PortGUID(p), mad.SendOnlyNonMember})
			}
		}
		// OpenSM has MLIDs of its own.
		boxes = append(boxes, Box{MLID: mft.MinMLID + 100 + fabric.LID(len(trees)-i), Groups: []Group{g}})
	}
	rnd.Shuffle(len(boxes), func(i, j int) { boxes[i], boxes[j] = boxes[j], boxes[i] })
	return boxes
}

// With groups.json masks are those of the compiled directory, whatever the scheme
// and in whatever order ports join: they cannot be without it, where a group has
// several MLIDs.
func TestDeclaredGroups(t *testing.T) {
	grid := func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: []int{4, 5}, Hosts: 2}) }
	odd := func() (*fabric.Fabric, error) {
		return gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 24, Seed: 7})
	}
	tree := func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}) }
	for _, tc := range []struct {
		engine, scheme string
		make           func() (*fabric.Fabric, error)
	}{
		{"xy", "", grid}, {"xy", "union", grid}, {"xy", "union-row", grid}, {"xy", "union-merge", grid}, {"xy", "comb", grid},
		{"updn", "", tree}, {"updn", "updn-tree", odd}, {"spam", "spam", odd},
	} {
		t.Run(tc.engine+" "+tc.scheme, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(3, 3))
			f, err := tc.make()
			f = withLIDs(t, f, err)
			e := short.Must(compile.EngineByName(tc.engine))(t)
			r := short.Must(compile.Run(t.Context(), f, e, compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}, Multicast: tc.scheme,
				Groups: func(f *fabric.Fabric) ([]mft.Group, error) { return randomGroups(f, 6, rnd), nil }}))(t)
			o := open(t, "multicast: {groups: "+compiledGroups(t, t.TempDir(), f, r.Plan.Trees)+"}")
			s := snapshotOf(f, rnd)
			short.Must(o.Route(o.engine(tc.engine), s))(t)
			boxes := boxesOf(f, r.Plan.Trees, rnd)
			// One after the other: OpenSM asks when somebody has joined.
			have := asked{}
			for i := range boxes {
				g := &boxes[i].Groups[0]
				members := g.Members
				for _, n := range []int{1, len(members) / 2, len(members)} {
					g.Members = members[:n]
					have[boxes[i].MLID] = o.Masks(boxes[i], func() []Box { return boxes[:i+1] })
				}
			}
			short.Must(o.Route(o.engine(tc.engine), s))(t)
			joined := have
			have = asked{}
			have.ask(o, boxes, all(boxes)...)
			for _, tree := range r.Plan.Trees {
				i := slices.IndexFunc(boxes, func(b Box) bool { return b.Groups[0].MGID == tree.MGID })
				want := o.masks.switchPorts(r.Plan.Tables.Ports(tree.MLID))
				if got := have[boxes[i].MLID]; !slices.Equal(got, want) {
					t.Errorf("%s, %s of %d senders: %d ports, want %d\n%v\n%v", tree.Scheme, tree.Name, len(tree.Senders), len(got), len(want), got, want)
				}
				if l := boxes[i].MLID; !slices.Equal(joined[l], have[l]) {
					t.Errorf("%s, %s: other masks after a sweep", tree.Scheme, tree.Name)
				}
			}
			if len(o.lines) > 0 {
				t.Errorf("OpenSM's log has %q", o.lines)
			}
		})
	}
}

// Who is declared to send does so as a full member, others do as send-only
// members only; without a declaration all do.
func TestDeclaredSenders(t *testing.T) {
	g := &declaredGroup{senders: []fabric.GUID{3, 7}}
	for _, tc := range []struct {
		g     *declaredGroup
		port  fabric.GUID
		state mad.JoinState
		want  bool
	}{
		{nil, 1, mad.FullMember, true}, {nil, 1, mad.NonMember, true}, {nil, 1, mad.SendOnlyNonMember, true}, {nil, 1, 0, false},
		{g, 3, mad.FullMember, true}, {g, 7, mad.NonMember, true}, {g, 5, mad.FullMember, false}, {g, 8, mad.NonMember, false}, {g, 2, mad.FullMember | mad.SendOnlyNonMember, false},
		{g, 5, mad.SendOnlyNonMember, true}, {g, 5, mad.SendOnlyFullMember, true}, {g, 3, 0, false},
	} {
		if got := tc.g.sends(&Member{tc.port, tc.state}); got != tc.want {
			t.Errorf("%+v, port %d as %d: %v", tc.g, tc.port, tc.state, got)
		}
	}
}

// groups.json is read again at each sweep. One that is broken then leaves what
// was, and says so once; at the start it is an error of the configuration.
func TestGroupsReadAgain(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1})
	f = withLIDs(t, f, err)
	rnd := rand.New(rand.NewPCG(1, 1))
	e, _ := compile.EngineByName("xy")
	trees := func(senders ...int) []mft.Tree {
		g := mft.Group{Name: "g", MGID: mgid(0), Receivers: slices.Clone(f.CAPorts())}
		for _, i := range senders {
			g.Senders = append(g.Senders, f.CAPorts()[i])
		}
		r := short.Must(compile.Run(t.Context(), f, e, compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}, Multicast: "union",
			Groups: func(*fabric.Fabric) ([]mft.Group, error) { return []mft.Group{g}, nil }}))(t)
		return r.Plan.Trees
	}
	dir := t.TempDir()
	file := compiledGroups(t, dir, f, trees(0))
	o := open(t, "multicast: {groups: "+file+"}")
	s := snapshotOf(f, rnd)
	boxes := boxesOf(f, trees(0), rnd)
	masks := func() []SwitchPort {
		short.Must(o.Route(o.engine("xy"), s))(t)
		return o.Masks(boxes[0], func() []Box { return boxes })
	}
	first := masks()
	compiledGroups(t, dir, f, trees(5))
	second := masks()
	if slices.Equal(first, second) || len(first) == 0 {
		t.Errorf("another sender has the masks of the one before: %v", second)
	}
	writeFile(t, file, []byte("[\n{\"name\": \"g\",\n"))
	for range 3 {
		if got := masks(); !slices.Equal(got, second) {
			t.Errorf("a broken file changes masks: %v, want %v", got, second)
		}
	}
	want := "1 ERR IBW1: " + file + ":3: the file ends in the middle; want a list of groups, as compile writes it; the last good groups stay"
	if len(o.lines) != 1 || o.lines[0] != want {
		t.Errorf("OpenSM's log has %q, want %q", o.lines, want)
	}
	compiledGroups(t, dir, f, trees(0))
	if got := masks(); !slices.Equal(got, first) {
		t.Errorf("masks %v, want those of the first sender again", got)
	}
	short.Check(t, os.Remove(filepath.Join(dir, outdir.GUID2LIDName)))
	o = open(t, "multicast: {groups: "+file+"}")
	if _, err := o.Route(o.engine("xy"), s); err == nil || len(o.lines) != 1 || !strings.Contains(o.lines[0], "ERR IBW1: the LIDs in "+file+" are those of the guid2lid beside it: ") {
		t.Errorf("%v, %q", err, o.lines)
	}
}

// Errors have the line and what would have been right.
func TestParseGroupsErrors(t *testing.T) {
	port := map[fabric.LID]fabric.GUID{1: 0x11, 2: 0x22}
	const one = `{"name":"a","mgid":"ff12:1b3e::1","mlid":49153,"senders":[1],"receivers":[1,2],"scheme":"union"}`
	d, err := parseGroups("f", []byte("[\n"+one+"\n]\n"), port)
	if err != nil || len(d.order) != 1 || !slices.Equal(d.order[0].receivers, []fabric.GUID{0x11, 0x22}) || d.order[0].scheme != "union" {
		t.Fatalf("%+v, %v", d, err)
	}
	for _, tc := range []struct{ text, want string }{
		{"", "f:1: the file ends in the middle"},
		{"{}", "f:1: want a list of groups, as compile writes it in groups.json"},
		{"[\n" + one + ",\n" + one + "\n]", "f:3: a second group with MGID ff12:1b3e::1"},
		{"[\n" + one + "\n", "the file ends in the middle"},
		{"[\n" + one + "\n] []", "f:3:2: text after the list of groups"},
		{"[\n" + strings.Replace(one, "[1,2]", "[1,3]", 1) + "\n]", `f:2: group "a": no port has base LID 3 in guid2lid`},
		{"[\n" + strings.Replace(one, "ff12", "fe12", 1) + "\n]", `f:2: group "a": MGID fe12:1b3e::1 is not multicast`},
		{"[\n" + strings.Replace(one, `"union"`, `"onion"`, 1) + "\n]", `f:2: group "a": multicast scheme "onion": want one of union`},
		{"[\n" + strings.Replace(one, `[1,2]`, `"all"`, 1) + "\n]", "f:2: receivers is a JSON string: want the groups.json of a compiled directory"},
		{"[\n" + strings.Replace(one, `"mlid"`, `"lid"`, 1) + "\n]", `f:2: json: unknown field "lid"`},
		{"[\n" + one + "\n;", "f:3: expected comma"},
	} {
		d, err := parseGroups("f", []byte(tc.text), port)
		if err == nil || d != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.text, err, tc.want)
		}
	}
}

func FuzzParseGroups(f *testing.F) {
	f.Add([]byte(`[{"name":"a","mgid":"ff12:1b3e::1","mlid":49153,"senders":[1],"receivers":[1,2],"scheme":"union"}]`))
	f.Add([]byte("[\n{\"name\": \"g\",\n"))
	f.Add([]byte("[] x"))
	port := map[fabric.LID]fabric.GUID{1: 0x11, 2: 0x22}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := parseGroups("f", data, port)
		if (err == nil) == (d == nil) {
			t.Fatal(d, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "f") {
			t.Fatal(err)
		}
	})
}
