package dump

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
)

// saMember is a record of saquery -m.
func saMember(mgid, mlid, gid, state, proxy string) string {
	return "MCMemberRecord member dump:\n\t\tMGID...................." + mgid + "\n\t\tMlid...................." + mlid + "\n\t\tPortGid................." + gid +
		"\n\t\tScopeState.............." + state + "\n\t\tProxyJoin..............." + proxy + "\n\t\tNodeDescription.........c.. d\n"
}

// saGroupText is a record of saquery -g.
func saGroupText(mgid, mlid, sl string) string {
	return "MCMemberRecord group dump:\n\t\tMGID...................." + mgid + "\n\t\tMlid...................." + mlid +
		"\n\t\tMtu.....................0x84\n\t\tpkey....................0xFFFF\n\t\tRate....................0x83\n\t\tSL......................" + sl + "\n"
}

//go:embed testdata/sa-record.txt
var saRecordText string

// showGroups is groups as text.
func showGroups(f *fabric.Fabric, groups []mft.Group) string {
	var b strings.Builder
	ports := func(list []fabric.PortID) {
		for _, p := range list {
			fmt.Fprintf(&b, " %s/%d", f.Node(f.Owner(p)).Description, f.Num(p))
		}
	}
	for _, g := range groups {
		fmt.Fprintf(&b, "%s %#x", g.MGID, uint16(g.MLID))
		if g.SL > 0 {
			fmt.Fprintf(&b, " SL %d", g.SL)
		}
		b.WriteByte(':')
		ports(g.Receivers)
		if !slices.Equal(g.Senders, g.Receivers) {
			b.WriteString(" from")
			ports(g.Senders)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestReadSAQuery(t *testing.T) {
	f := pair(t)
	readCases(t, of(f, ReadSAQuery), func(list []mft.Group) string { return showGroups(f, list) }, casesOf(t))
}

// FuzzReadSAQuery: an error means no groups, a lenient reader agrees, and the
// groups are what they should be.
func FuzzReadSAQuery(f *testing.F) {
	fab := pair(f)
	c := saMember("ff12:a01d::1", "0xC001", "fe80::c1", "0x21", "0x0")
	for _, s := range []string{c, c + saMember("ff12:a01d::1", "0xC001", "fe80::d1", "0x24", "0x1"), saGroupText("ff12:401b:ffff::ffff:ffff", "0xC000", "0x0") + c, saRecordText,
		saMember("ff12:401b:ffff::ffff:ffff", "0xC000", "::", "0x20", "0x0"), c[:100]} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lenient, ok := readTwice(t, data, of(fab, ReadSAQuery), deeply, SAQuery)
		if !ok {
			return
		}
		for i, g := range lenient {
			if g.MLID < mft.MinMLID || g.MLID > mft.MaxMLID || !g.MGID.Is6() || g.MGID.As16()[0] != 0xff || g.SL > 15 || i > 0 && g.MLID < lenient[i-1].MLID {
				t.Fatalf("%v", g)
			}
			for _, p := range g.Receivers {
				if !slices.Contains(g.Senders, p) {
					t.Fatalf("%v", g)
				}
			}
			if !slices.IsSorted(g.Senders) || !slices.IsSorted(g.Receivers) {
				t.Fatalf("%v", g)
			}
		}
	})
}

// Members that come twice leave room in a list, which the other list may not use.
func TestSAQueryLists(t *testing.T) {
	f := pair(t)
	c := saMember("ff12:a01d::1", "0xC001", "fe80::c1", "0x21", "0x0")
	d := saMember("ff12:a01d::1", "0xC001", "fe80::d1", "0x21", "0x0")
	groups, _ := short.Must2(ReadSAQuery("in", []byte(c+d+c+d), f, Options{}))(t)
	g := &groups[0]
	senders, receivers := append(g.Senders, 77), append(g.Receivers, 79)
	if senders[2] != 77 || receivers[2] != 79 {
		t.Errorf("%v and %v share memory", senders, receivers)
	}
}

// A checker that asks for it gets members that are gone, with the cause.
func TestGoneMembers(t *testing.T) {
	member := saMember("ff12:a01d::1", "0xC001", "fe80::c1", "0x21", "0x0") + saMember("ff12:a01d::1", "0xC001", "fe80::99", "0x21", "0x0")
	member += saMember("ff12:a01d::2", "0xC002", "fe80::99", "0x21", "0x0") // nothing but a member that is gone
	groups, problems, err := ReadSAQuery("in", []byte(member), pair(t), Options{GoneMembers: true})
	if err != nil || len(groups) != 2 || len(groups[0].Receivers) != 1 {
		t.Fatalf("%+v, %v", groups, err)
	}
	if len(problems) != 2 || problems[0].Kind != fabric.Gone || problems[0].Node != 0x99 || problems[0].Err == nil || problems[0].Err.Error() != problems[0].Message {
		t.Errorf("%+v", problems)
	}
}
