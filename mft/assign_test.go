package mft_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
)

func mgid(t testing.TB, s string) mft.MGID {
	t.Helper()
	return short.Must(mft.ParseMGID(s))(t)
}

func TestParseMGID(t *testing.T) {
	for _, c := range []struct{ text, want, err string }{
		{"ff12:a01d:fe80::1", "ff12:a01d:fe80::1", ""},
		{"FF12:401B:FFFF::FFFF:FFFF", "ff12:401b:ffff::ffff:ffff", ""},
		{"ff1e:a01b::1", "ff1e:a01b::1", ""},
		{"ff02::1", "ff02::1", ""},
		{"ff12:0:0:1:0:0:0:1", "ff12:0:0:1::1", ""},
		{"fe80::1", "", "MGID fe80::1 is not multicast; want one that begins with ff, like ff12:a01d::1"},
		{"ff32::1", "", "MGID ff32::1 has reserved flags; want ff0 or ff1 and a scope, like ff12:a01d::1"},
		{"ff12:a01b::1", "ff12:a01b::1", ""},
		{"ff12::1%ib0", "", `MGID "ff12::1%ib0": want 128 bits like ff12:a01d::1`},
		{"224.0.0.1", "", `MGID "224.0.0.1": want 128 bits like ff12:a01d::1`},
		{"ff12:a01d::1::", "", `MGID "ff12:a01d::1::": want 128 bits like ff12:a01d::1`},
		{"", "", `MGID "": want 128 bits like ff12:a01d::1`},
	} {
		m, err := mft.ParseMGID(c.text)
		if got := fmt.Sprint(err); err != nil && got != c.err || err == nil && (c.err != "" || m.String() != c.want) {
			t.Errorf("%q: %v, %v; want %s %s", c.text, m, err, c.want, c.err)
		}
	}
	if err := mft.CheckMGID(mft.MGID{}); err == nil {
		t.Error("no MGID is none")
	}
	for text, want := range map[string]bool{"ff12:a01b::1": true, "ff15:a01b::1": false, "ff12:a01d::1": false, "ff12:1b3e::": false} {
		short.Equal(t, mft.IsNamedBySA(mgid(t, text)), want, "IsNamedBySA", text, "is")
	}
	for text, want := range map[string]bool{"ff12:401b::1": true, "ff15:601b::1": true, "ff12:a01d::1": false, "ff12:1b3e::": false} {
		short.Equal(t, mft.IsIPoIB(mgid(t, text)), want, "IsIPoIB", text, "is")
	}
}

// TestMGIDs pins what is given out: applications rely on it.
func TestMGIDs(t *testing.T) {
	groups := []mft.Group{
		{Name: "allreduce-0"},
		{Name: "allreduce-1"},
		{Name: "given", MGID: mgid(t, "ff12:a01d:fe80::1")},
		{Name: "allreduce-0"},
		{Name: "site", MGID: mgid(t, "ff15:401b:ffff::1")},
		{Name: ""},
		// As it was given out, and one that stands in the way of its trees.
		{Name: "again", MGID: mgid(t, "ff12:1b3e:1:2:3:4:0:1")},
		{Name: "crossed", MGID: mgid(t, "ff12:1b3e:1:2:3:4:1:1")},
		{Name: "crossing", MGID: mgid(t, "ff12:1b3e:1:2:3:4:1:5")},
	}
	ids := short.Must(mft.NewIDs(groups, mft.Options{}))(t)
	var b strings.Builder
	for i := range groups {
		fmt.Fprintln(&b, ids.MGID(i, 0), ids.MGID(i, 1), ids.MGID(i, 0x3ffe))
	}
	const want = `ff12:1b3e:f597:2664:66a2:9d07:0:1 ff12:1b3e:f597:2664:66a2:9d07:0:2 ff12:1b3e:f597:2664:66a2:9d07:0:3fff
ff12:1b3e:f597:2564:66a2:9b54:0:1 ff12:1b3e:f597:2564:66a2:9b54:0:2 ff12:1b3e:f597:2564:66a2:9b54:0:3fff
ff12:a01d:fe80::1 ff12:1b3e:3f4:f129:5647:b46a:8000:2 ff12:1b3e:3f4:f129:5647:b46a:8000:3fff
ff12:1b3e:f597:2664:66a2:9d07:1:1 ff12:1b3e:f597:2664:66a2:9d07:1:2 ff12:1b3e:f597:2664:66a2:9d07:1:3fff
ff15:401b:ffff::1 ff15:1b3e:be4d:feb5:61b5:ad91:8000:2 ff15:1b3e:be4d:feb5:61b5:ad91:8000:3fff
ff12:1b3e:cbf2:9ce4:8422:2325:0:1 ff12:1b3e:cbf2:9ce4:8422:2325:0:2 ff12:1b3e:cbf2:9ce4:8422:2325:0:3fff
ff12:1b3e:1:2:3:4:0:1 ff12:1b3e:1:2:3:4:0:2 ff12:1b3e:1:2:3:4:0:3fff
ff12:1b3e:1:2:3:4:1:1 ff12:1b3e:b73a:c80b:a56d:245d:8000:2 ff12:1b3e:b73a:c80b:a56d:245d:8000:3fff
ff12:1b3e:1:2:3:4:1:5 ff12:1b3e:b73a:c40b:a56d:1d91:8000:2 ff12:1b3e:b73a:c40b:a56d:1d91:8000:3fff
`
	short.Equal(t, b.String(), want)

	// A group's MGID does not depend on the others.
	alone := short.Must(mft.NewIDs(groups[1:2], mft.Options{}))(t)
	short.Equal(t, alone.MGID(0, 0), ids.MGID(1, 0), "an MGID changes with the other groups")
	// Written into the file, it gives the same trees.
	written := slices.Clone(groups[:2])
	for i := range written {
		written[i].MGID = ids.MGID(i, 0)
		written[i].Name = "other"
	}
	again := short.Must(mft.NewIDs(written, mft.Options{}))(t)
	for i := range written {
		for k := range 3 {
			short.Equal(t, again.MGID(i, k), ids.MGID(i, k), "group", i, "tree", k, "then")
		}
	}
}

// TestMGIDsDiffer: no MGID of any tree is one of another tree, or of IPoIB, or
// one that OpenSM refuses.
func TestMGIDsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"", "a", "b", "c"})
		// MGIDs that are near to those that are given out.
		first := short.Must(mft.NewIDs([]mft.Group{{Name: "a"}, {Name: "b"}, {Name: "a"}, {Name: "x", MGID: mgidOf(t, "ff15:a01d::1")}}, mft.Options{}))(t)
		given := rapid.Custom(func(t *rapid.T) mft.MGID {
			return rapid.SampledFrom([]mft.MGID{
				{}, {}, first.MGID(0, 0), first.MGID(0, 1), first.MGID(1, 0), first.MGID(2, 0), first.MGID(2, 2),
				first.MGID(3, 0), first.MGID(3, 1), mgidOf(t, "ff12:401b::1"), mgidOf(t, "ff12:1b3e::"), mgidOf(t, "ff12:1b3e::1"), mgidOf(t, "ff12:1b3e::2"),
			}).Draw(t, "given")
		})
		var groups []mft.Group
		met := make(map[mft.MGID]bool)
		for range rapid.IntRange(0, 12).Draw(t, "groups") {
			g := mft.Group{Name: name.Draw(t, "name"), MGID: given.Draw(t, "MGID")}
			if g.MGID.IsValid() && met[g.MGID] {
				continue
			}
			met[g.MGID] = true
			groups = append(groups, g)
		}
		ids := short.Must(mft.NewIDs(groups, mft.Options{}))(t)
		all := make(map[mft.MGID]string)
		for i, g := range groups {
			for k := range 4 {
				m := ids.MGID(i, k)
				who := fmt.Sprintf("group %d, tree %d", i, k)
				if other, dup := all[m]; dup {
					t.Fatalf("%s and %s have %s", other, who, m)
				}
				all[m] = who
				if err := mft.CheckMGID(m); err != nil || m != g.MGID && mft.IsIPoIB(m) {
					t.Fatalf("%s: %s %v", who, m, err)
				}
			}
		}
	})
}

func mgidOf(t *rapid.T, s string) mft.MGID {
	return short.Must(mft.ParseMGID(s))(t)
}

func TestManyOfOneName(t *testing.T) {
	groups := make([]mft.Group, 0x8001)
	short.Must(mft.NewIDs(groups[:0x8000], mft.Options{}))(t)
	_, err := mft.NewIDs(groups, mft.Options{})
	if want := `group "": 32768 groups before it have the same name; want a name of its own, or an MGID`; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAssignIDs(t *testing.T) {
	groups := []mft.Group{{Name: "a"}, {Name: "b", MLID: 0xc002}, {Name: "c"}, {Name: "d", MLID: 0xc000}, {Name: "e"}}
	mlids := func(opt mft.Options) string {
		list, err := mft.AssignIDs(groups, opt)
		if err != nil {
			return err.Error()
		}
		var b strings.Builder
		for _, g := range list {
			fmt.Fprintf(&b, "%x ", uint16(g.MLID))
			if !g.MGID.IsValid() {
				t.Errorf("no MGID for %s", g.Name)
			}
		}
		return b.String()
	}
	for _, c := range []struct {
		opt  mft.Options
		want string
	}{
		{mft.Options{}, "c001 c002 c003 c000 c004 "},
		{mft.Options{Reserved: []fabric.LID{0xc003, 0xc001, 7}}, "c004 c002 c005 c000 c006 "},
		{mft.Options{Capacity: 5}, "c001 c002 c003 c000 c004 "},
		{mft.Options{Capacity: 4}, `group "e": no MLID is left, of 2 that were free`},
		{mft.Options{Capacity: 2}, `group "b": MLID 0xc002, but the switches have MLIDs 0xc000 to 0xc001`},
		{mft.Options{Capacity: 1 << 20, Reserved: []fabric.LID{0xc002}}, `group "b": MLID 0xc002 is reserved`},
	} {
		short.Equal(t, mlids(c.opt), c.want, c.opt)
	}
	for i, g := range groups {
		if g.MGID.IsValid() || i == 0 && g.MLID != 0 {
			t.Error("the groups that were given have changed")
		}
	}
	for _, c := range []struct {
		groups []mft.Group
		want   string
	}{
		{[]mft.Group{{Name: "a", MLID: 0xc001}, {Name: "b", MLID: 0xc001}}, `groups "a" and "b" have one MLID, 0xc001`},
		{[]mft.Group{{Name: "a", MLID: 0xbfff}}, `group "a": MLID 0xbfff, want 0xc000 to 0xfffe`},
		{[]mft.Group{{Name: "a", MLID: 0xffff}}, `group "a": MLID 0xffff, want 0xc000 to 0xfffe`},
		{[]mft.Group{{Name: "a", MGID: mgid(t, "ff12::1")}, {Name: "b", MGID: mgid(t, "ff12::1")}}, `groups "a" and "b" have one MGID, ff12::1`},
		{[]mft.Group{{Name: "a", MGID: mgid(t, "ff12::1").Prev().Next().Unmap().WithZone("ib0")}}, `group "a": no MGID; want 128 bits like ff12:a01d::1`},
	} {
		if list, err := mft.AssignIDs(c.groups, mft.Options{}); list != nil || fmt.Sprint(err) != c.want {
			t.Errorf("%v, %v; want %s", list, err, c.want)
		}
	}
}

// TestAllMLIDs gives out every MLID but the first, once.
func TestAllMLIDs(t *testing.T) {
	ids := short.Must(mft.NewIDs([]mft.Group{{Name: "a", MLID: 0xfffe}}, mft.Options{}))(t)
	if l, err := ids.MLID(0); l != 0xfffe || err != nil {
		t.Errorf("%#x, %v", uint16(l), err)
	}
	short.Equal(t, ids.Free(), mft.NumMLIDs-2, "MLIDs are free")
	for want := fabric.LID(0xc001); want < 0xfffe; want++ {
		if l, err := ids.Next(); l != want || err != nil {
			t.Fatalf("%#x, %v; want %#x", uint16(l), err, uint16(want))
		}
	}
	_, err := ids.Next()
	var budget *mft.BudgetError
	if !errors.As(err, &budget) || budget.MLIDs != mft.NumMLIDs-2 || ids.Free() != 0 {
		t.Errorf("%v, %d free", err, ids.Free())
	}
}

func TestGroupsJSON(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{2, 2}, Hosts: 1}))(t)
	lids := make([]fabric.LID, f.NumPorts())
	next := fabric.LID(40)
	var ports []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { lids[p] = next; next--; ports = append(ports, p) })
	f = short.Must(f.WithLIDs(lids, make([]uint8, f.NumPorts())))(t)
	trees := []mft.Tree{
		{Name: `a "b"`, MGID: mgid(t, "ff12:a01d::1"), MLID: 0xc001, Senders: ports[:1], Receivers: ports[:3], Scheme: "union", SL: 2},
		{Name: "c", MGID: mgid(t, "ff12:a01d::2"), MLID: 0xc002, Receivers: ports[7:], Scheme: "comb"},
		{Name: "d", MGID: mgid(t, "ff12:a01d::3"), MLID: 0xc002, Scheme: "comb"},
	}
	b := short.Must(mft.AppendGroupsJSON([]byte("x"), f, trees))(t)
	const want = `x[
{"name":"a \"b\"","mgid":"ff12:a01d::1","mlid":49153,"senders":[40],"receivers":[38,39,40],"scheme":"union","sl":2},
{"name":"c","mgid":"ff12:a01d::2","mlid":49154,"senders":[],"receivers":[33],"scheme":"comb","shared_mlid":true},
{"name":"d","mgid":"ff12:a01d::3","mlid":49154,"senders":[],"receivers":[],"scheme":"comb","shared_mlid":true}
]
`
	short.Equal(t, string(b), want)
	var entries []mft.Entry
	if err := json.Unmarshal(b[1:], &entries); err != nil || entries[1].MGID != trees[1].MGID {
		t.Errorf("%v, %v", entries, err)
	}
	if b, err := mft.AppendGroupsJSON(nil, f, nil); string(b) != "[\n]\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	lids[ports[2]] = 0
	f = short.Must(f.WithLIDs(lids, make([]uint8, f.NumPorts())))(t)
	if b, err := mft.AppendGroupsJSON(nil, f, trees); b != nil || err == nil || !strings.Contains(err.Error(), `group "a \"b\"": `) {
		t.Errorf("%q, %v", b, err)
	}
}
