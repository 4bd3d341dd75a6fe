package topology

import (
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// What the real iblinkinfo prints of switches only has the adapters, too: with -l the fabric is that of all rows;
// without it only GUIDs of adapters are others.
func TestLinkInfoOfSwitches(t *testing.T) {
	var b fabric.Builder
	add := func(kind fabric.NodeType, guid fabric.GUID, name string, ports fabric.PortNum, lids ...fabric.LID) int {
		i := short.Must(b.AddNode(fabric.Node{GUID: guid, Type: kind, NumPorts: ports, Description: name}))(t)
		for n, lid := range lids {
			if kind != fabric.Switch {
				n++
			}
			short.Check(t, b.SetPort(i, fabric.PortNum(n), 0, lid, 0))
		}
		return i
	}
	link := fabric.Link{Width: 4, Speed: fabric.QDR}
	leaf, spine := add(fabric.Switch, 0x100, "leaf", 4, 1), add(fabric.Switch, 0x200, "spine", 4, 2)
	one, both := add(fabric.CA, 0x300, "host", 1, 7), add(fabric.CA, 0x400, "host", 2, 8, 9)
	short.Check(t, b.Connect(leaf, 1, spine, 4, link))
	short.Check(t, b.Connect(leaf, 2, one, 1, link))
	short.Check(t, b.Connect(leaf, 3, both, 1, link))
	short.Check(t, b.Connect(spine, 1, both, 2, link))
	run := simulate(t, string(Append(nil, short.Must(b.Build())(t))))
	read := func(args ...string) (*fabric.Fabric, string) {
		t.Helper()
		f, problems, err := Parse("info", []byte(run("iblinkinfo", args...)), Options{})
		short.Check(t, err)
		return f, list(problems)
	}

	all, _ := read("-l")
	lines, told := read("-l", "--switches-only")
	short.Diff(t, tell(lines), tell(all))
	if !strings.Contains(told, "3 ports of adapters are known from them by GUID") {
		t.Error(told)
	}

	plain, told := read("--switches-only")
	if !strings.Contains(told, "3 ports of adapters are known from them by LID and name") {
		t.Error(told)
	}
	short.Equal(t, plain.NumLinks(), all.NumLinks(), "links")
	for lid := fabric.LID(1); lid <= 9; lid++ {
		p, q := plain.LIDPort(lid), all.LIDPort(lid)
		if p == fabric.NoPort != (q == fabric.NoPort) || p != fabric.NoPort && (plain.Num(p) != all.Num(q) || plain.Node(plain.Owner(p)).Description != all.Node(all.Owner(q)).Description) {
			t.Errorf("LID %d is that of another port", lid)
		} else if p != fabric.NoPort && plain.PortGUID(p).IsMade() != (lid > 2) {
			t.Errorf("LID %d: GUID %s", lid, plain.PortGUID(p))
		}
	}
}

// A text of switches only that is cut short names ports of a switch without rows; an adapter without LID cannot be known.
func TestLinkInfoOfSwitchesCut(t *testing.T) {
	const row = "           1    %[ ] ==( 4X 10.0 Gbps Active/  LinkUp)==>       2   %[ ] \"spine\" ( )\n"
	text := "Switch: 0x100 leaf:\n" + strings.ReplaceAll(row, "%", "1") + strings.ReplaceAll(row, "%", "2")
	_, _, err := Parse("info", []byte(text), Options{})
	if err == nil || !strings.Contains(err.Error(), `info:2:57: connected to port 1 of "spine" here, which has no rows and more ports than an adapter`) {
		t.Error(err)
	}
	f, problems, err := Parse("info", []byte(text), Options{Lenient: true})
	short.Check(t, err)
	if f.NumLinks() != 0 || len(problems) != 2 {
		t.Error(f.NumLinks(), list(problems))
	}
	one := "Switch: 0x100 leaf:\n" + strings.ReplaceAll(row, "%", "17")
	if _, _, err := Parse("info", []byte(one), Options{}); err == nil || !strings.Contains(err.Error(), `connected to port 17 of "spine"`) {
		t.Error(err)
	}
	twice := "Switch: 0x100 leaf:\n" + strings.ReplaceAll(row, "%", "1") + strings.Replace(strings.ReplaceAll(row, "%", "1"), "spine", "other", 1)
	_, _, err = Parse("info", []byte(strings.Replace(twice, "1    1[", "1    2[", 1)), Options{})
	if err == nil || !strings.Contains(err.Error(), `port 1 of "other" has LID 2, which "spine" has, too`) {
		t.Error(err)
	}
	text = strings.Replace(text[:len(text)/2+20], "2    1[", "0    1[", 1)
	_, _, err = Parse("info", []byte(strings.Replace(text, "       2 ", "       0 ", 1)), Options{})
	if err == nil || !strings.Contains(err.Error(), `connected to "spine" here, which has no rows, GUID or LID`) {
		t.Error(err)
	}
}
