package dump

import (
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

const saRecordText = `MCMember Record dump:
		MGID....................ff12:a01d::2
		PortGid.................fe80::d1
		qkey....................0x0
		mlid....................0xc005
		mtu.....................0x84
		TClass..................0x0
		pkey....................0xffff
		rate....................0x83
		pkt_life................0x92
		SL......................0x3
		FlowLabel...............0x0
		HopLimit................0x0
		Scope...................0x2
		JoinState...............0x4
		ProxyJoin...............0x1
`

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
	c := saMember("ff12:a01d::1", "0xC001", "fe80::c1", "0x21", "0x0")
	d := saMember("ff12:a01d::1", "0xC001", "fe80::d1", "0x21", "0x0")
	absent := "in:1: contradiction: no members of group ff12:401b:ffff::ffff:ffff; saquery -m tells them with --smkey\n"
	broadcast := saMember("ff12:401b:ffff::ffff:ffff", "0xC000", "::", "0x20", "0x0")
	readCases(t, of(f, ReadSAQuery), func(list []mft.Group) string { return showGroups(f, list) }, []readCase{
		{"members", c + d, "", "ff12:a01d::1 0xc001: c/1 d/1\n", ""},
		{"another order, twice, CRLF", strings.ReplaceAll(d+c+d, "\n", "\r\n"), "", "ff12:a01d::1 0xc001: c/1 d/1\n", ""},
		{"port 0 of a switch", saMember("ff12:a01d::1", "0xC001", "fe80::b", "0x21", "0x1"), "", "ff12:a01d::1 0xc001: b/0\n", ""},
		{"states", c + saMember("ff12:a01d::1", "0xC001", "fe80::d1", "0x24", "0x0") + saMember("ff12:a01d::1", "0xC001", "fe80::a", "0x28", "0x0") + saMember("ff12:a01d::1", "0xC001", "fe80::b", "0x22", "0x0"),
			"", "ff12:a01d::1 0xc001: b/0 c/1 from a/0 b/0 c/1 d/1\n", ""},
		{"send-only, then full", saMember("ff12:a01d::1", "0xC001", "fe80::d1", "0x24", "0x0") + d, "", "ff12:a01d::1 0xc001: d/1\n", ""},
		{"another subnet prefix", saMember("ff12:a01d::1", "0xC001", "fec0:0:0:1::c1", "0x21", "0x0"), "", "ff12:a01d::1 0xc001: c/1\n", ""},
		{"without the SM_Key", broadcast + c, "", "ff12:401b:ffff::ffff:ffff 0xc000:\nff12:a01d::1 0xc001: c/1\n", absent},
		{"groups", saGroupText("ff12:401b:ffff::ffff:ffff", "0xC000", "0x0") + saGroupText("ff12:a01d::1", "0xC001", "0xF") + c, "",
			"ff12:401b:ffff::ffff:ffff 0xc000:\nff12:a01d::1 0xc001 SL 15: c/1\n", absent},
		{"groups alone", saGroupText("ff12:a01d::1", "0xC001", "0xF") + saGroupText("ff12:401b:ffff::ffff:ffff", "0xC000", "0x0"), "",
			"ff12:401b:ffff::ffff:ffff 0xc000:\nff12:a01d::1 0xc001 SL 15:\n", "in:1: missing: no members of any of 2 groups; saquery -m tells them with --smkey\n"},
		{"records", saRecordText, "", "ff12:a01d::2 0xc005 SL 3: from d/1\n", ""},
		{"shared MLID", c + saMember("ff12:601b::1", "0xC001", "fe80::c1", "0x21", "0x0"), "", "ff12:601b::1 0xc001: c/1\nff12:a01d::1 0xc001: c/1\n", ""},
		{"groups of the SA", saMember("ff12:a01b:fe80::1", "0xFFFE", "fe80::c1", "0x21", "0x0"), "", "ff12:a01b:fe80::1 0xfffe: c/1\n", ""},
		{"warnings between", "# x\nibwarn: [1] sim_connect: attached\n\n" + c, "", "ff12:a01d::1 0xc001: c/1\n", ""},

		{"unknown port", c + saMember("ff12:a01d::1", "0xC001", "fe80::99", "0x21", "0x0"), "in:8: the fabric has no end port 0x0000000000000099\n    MCMemberRecord member dump:", "ff12:a01d::1 0xc001: c/1\n",
			"in:8: dropped: the fabric has no end port 0x0000000000000099\n"},
		{"no state", c + saMember("ff12:a01d::1", "0xC001", "fe80::d1", "0x20", "0x0"), "in:8: port 0x00000000000000d1 joins with state 0; want a bit of 1, 2, 4 or 8\n    MCMemberRecord member dump:", "ff12:a01d::1 0xc001: c/1\n",
			"in:8: dropped: port 0x00000000000000d1 joins with state 0; want a bit of 1, 2, 4 or 8\n"},
		{"another MLID", c + saMember("ff12:a01d::1", "0xC002", "fe80::d1", "0x21", "0x0"), "in:8: group ff12:a01d::1 has MLID 0xc001 already\n    MCMemberRecord member dump:", "ff12:a01d::1 0xc001: c/1\n",
			"in:8: dropped: group ff12:a01d::1 has MLID 0xc001 already\n"},
		{"another SL", saRecordText + saGroupText("ff12:a01d::2", "0xC005", "0x0"), "in:17: group ff12:a01d::2 has SL 3 already\n    MCMemberRecord group dump:", "ff12:a01d::2 0xc005 SL 3: from d/1\n",
			"in:17: dropped: group ff12:a01d::2 has SL 3 already\n"},
		{"MLID too low", strings.Replace(c, "0xC001", "0xBFFF", 1) + d, "in:3: MLID 0xbfff, want 0xc000 to 0xfffe\n    \t\tMlid....................0xBFFF", "ff12:a01d::1 0xc001: d/1\n",
			"in:3: dropped: MLID 0xbfff, want 0xc000 to 0xfffe\n"},
		{"MLID too high", strings.Replace(c, "0xC001", "0xFFFF", 1) + d, "in:3: Mlid \"0xFFFF\", want 0x0 to 0xfffe\n    \t\tMlid....................0xFFFF", "ff12:a01d::1 0xc001: d/1\n",
			"in:3: dropped: Mlid \"0xFFFF\", want 0x0 to 0xfffe\n"},
		{"state of more bits", strings.Replace(c, "0x21", "0x121", 1) + d, "in:5: ScopeState \"0x121\", want 0x0 to 0xff\n    \t\tScopeState..............0x121", "ff12:a01d::1 0xc001: d/1\n",
			"in:5: dropped: ScopeState \"0x121\", want 0x0 to 0xff\n"},
		{"no MGID", strings.Replace(c, "ff12:a01d::1", "fe80::1", 1) + d, "in:2: MGID \"fe80::1\", want one that begins with ff, like ff12:401b:ffff::1\n    \t\tMGID....................fe80::1", "ff12:a01d::1 0xc001: d/1\n",
			"in:2: dropped: MGID \"fe80::1\", want one that begins with ff, like ff12:401b:ffff::1\n"},
		{"nothing for an MGID", strings.Replace(c, "ff12:a01d::1", "", 1) + d, "in:2: MGID \"\", want one that begins with ff, like ff12:401b:ffff::1\n    \t\tMGID....................", "ff12:a01d::1 0xc001: d/1\n",
			"in:2: dropped: MGID \"\", want one that begins with ff, like ff12:401b:ffff::1\n"},
		{"no GID", strings.Replace(c, "fe80::c1", "fe80:c1", 1) + d, "in:4: port GID \"fe80:c1\", want 128 bits like fe80::2:c903:1:2\n    \t\tPortGid.................fe80:c1", "ff12:a01d::1 0xc001: d/1\n",
			"in:4: dropped: port GID \"fe80:c1\", want 128 bits like fe80::2:c903:1:2\n"},
		{"unknown field", strings.Replace(c, "ScopeState", "ScopeStates", 1) + d, "in:5: no field of such a record is called \"ScopeStates\"\n    \t\tScopeStates..............0x21", "ff12:a01d::1 0xc001: d/1\n",
			"in:5: dropped: no field of such a record is called \"ScopeStates\"\n"},
		{"no field", strings.Replace(c, "\t\tMlid....................0xC001", "hello", 1) + d, "in:3: want a field of the record, such as MGID....................ff12:401b:ffff::1\n    hello", "ff12:a01d::1 0xc001: d/1\n",
			"in:3: dropped: want a field of the record, such as MGID....................ff12:401b:ffff::1\n"},
		{"a field twice", strings.Replace(c, "\t\tMlid", "\t\tMGID....................ff12::1\n\t\tMlid", 1) + d, "in:3: a second MGID in one record\n    \t\tMGID....................ff12::1", "ff12:a01d::1 0xc001: d/1\n",
			"in:3: dropped: a second MGID in one record\n"},
		{"a field missing", strings.Replace(c, "\t\tMlid....................0xC001\n", "", 1) + d, "in:1: the record has no MLID\n    MCMemberRecord member dump:", "ff12:a01d::1 0xc001: d/1\n",
			"in:1: dropped: the record has no MLID\n"},
		{"cut short", d + c[:len(c)-60], "in:8: the record has no ProxyJoin: the file is cut short\n    MCMemberRecord member dump:", "ff12:a01d::1 0xc001: d/1\n",
			"in:8: truncated: the record has no ProxyJoin: the file is cut short\n"},
		{"another form", tabA, "in: this is opensm-lfts.dump; want what saquery -m or saquery -g print", "-", ""},
		{"members of one group only", "\t\tPortGid.................fe80::10:1 (host 0,0)\n", "in:1: no groups; want what saquery -m or saquery -g print\n    \t\tPortGid.................fe80::10:1 (host 0,0)", "-", ""},
		{"nothing", "", "in: no groups, the file is empty; want what saquery -m or saquery -g print", "-", ""},
	})
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
	groups, problems, err := ReadSAQuery("in", []byte(member), pair(t), Options{GoneMembers: true})
	if err != nil || len(groups) != 1 || len(groups[0].Receivers) != 1 {
		t.Fatalf("%+v, %v", groups, err)
	}
	if len(problems) != 1 || problems[0].Kind != fabric.Gone || problems[0].Node != 0x99 || problems[0].Err == nil || problems[0].Err.Error() != problems[0].Message {
		t.Errorf("%+v", problems)
	}
}
