package rehearse

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// pair is two switches, 0x10 with LID 1 and 0x20 with LID 2.
func pair(t testing.TB) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	for i := range 2 {
		s, err := b.AddNode(fabric.Node{GUID: fabric.GUID(0x10 * (i + 1)), Type: fabric.Switch, NumPorts: 4, Description: "s"})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.SetPort(s, 0, 0, fabric.LID(i+1), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Connect(0, 1, 1, 2, fabric.Link{}); err != nil {
		t.Fatal(err)
	}
	f, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const table10 = "Unicast lids [0x0-0x2] of switch DR path slid 0; dlid 0; 0 guid 0x0000000000000010 (s guid 0x20):\n  Lid  Out   Destination\n       Port     Info \n" +
	"0x0000 255 \n0x0001 000 \n0x0002 001 \n3 lids dumped \n"

// newReadback is a rehearsal of tables whose simulated switches are to be read.
func newReadback(t testing.TB, f *fabric.Fabric, want *lft.Tables) *readback {
	t.Helper()
	twin, err := ibsim.NewTwin(f)
	if err != nil {
		t.Fatal(err)
	}
	return &readback{run: &run{f: f, t: want, twin: twin, opt: Options{Samples: 9}, report: &Report{}}, node: fabric.NoNode, late: make([]fabric.LID, f.NumSwitches())}
}

// simulator gives ibsim's dump to b.
func (b *readback) simulator(text string) {
	for line := range strings.Lines(text) {
		b.simulatorLine([]byte(strings.TrimSuffix(line, "\n")))
	}
}

func TestReadTables(t *testing.T) {
	f := pair(t)
	want := lft.NewTables(2, 2)
	copy(want.Row(0), []fabric.PortNum{255, 0, 1})
	copy(want.Row(1), []fabric.PortNum{255, 2, 0})
	table20 := strings.NewReplacer("0010 (s", "0020 (s", "0x0001 000", "0x0001 002", "0x0002 001", "0x0002 000").Replace(table10)
	b := newReadback(t, f, want)
	if err := b.readTables([]byte(table20 + table10)); err != nil {
		t.Fatal(err)
	}
	if b.compare(); b.report.EqualSwitches != 2 || b.report.Entries != 4 || b.report.Differences != 0 || b.report.Unread != 0 {
		t.Errorf("report %+v", b.report)
	}
	b = newReadback(t, f, want)
	if err := b.readTables([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if b.compare(); b.report.Unread != 2 || b.report.Entries != 0 {
		t.Errorf("nothing is read: report %+v", b.report)
	}

	for _, c := range []struct {
		name, text string
		want       string // of the differences, or
		err        string
	}{
		{"port", strings.Replace(table10, "0x0001 000", "0x0001 004", 1), `"s" (0x0000000000000010), LID 1: port 0, OpenSM has port 4`, ""},
		{"port that the switch does not have", strings.Replace(table10, "0x0001 000", "0x0001 009", 1), `"s" (0x0000000000000010), LID 1: port 0, OpenSM has port 9`, ""},
		{"no path", strings.Replace(table10, "0x0002 001", "0x0002 255", 1), `"s" (0x0000000000000010), LID 2: port 1, OpenSM has no path`, ""},
		{"LID 0 is no port's", strings.Replace(table10, "0x0000 255", "0x0000 001", 1), "", ""},
		{"lower top", "Unicast lids [0x0-0x1] of switch guid 0x0000000000000010 (s):\n0x0000 255\n0x0001 000 \n2 lids dumped\n",
			`"s" (0x0000000000000010), LID 2: port 1, OpenSM has no path`, ""},
		{"never set up", "Unicast lids [0x0-0x0] of switch guid 0x0000000000000010 (s):\n0 lids dumped\n",
			`"s" (0x0000000000000010), LID 1: port 0, OpenSM has no path; "s" (0x0000000000000010), LID 2: port 1, OpenSM has no path`, ""},
		{"higher top", "Unicast lids [0x0-0x3] of switch guid 0x0000000000000010 (s):\n0x0000 255\n0x0001 000 \n0x0002 001\n0x0003 002\n4 lids dumped\n",
			`"s" (0x0000000000000010), LID 3: no path, OpenSM has port 2`, ""},
		{"last row lost", strings.Replace(table10, "0x0002 001 \n3", "2", 1), `"s" (0x0000000000000010), LID 2: port 1, OpenSM has no path`, ""},

		{"row lost", strings.Replace(table10, "0x0001 000 \n", "", 1), "", "dump_fts:6: 3 lids dumped, but the section has 2 rows"},
		{"port out of range", strings.Replace(table10, "0x0002 001", "0x0002 256", 1), "", "dump_fts:6: port 256 of switch"},
		{"cut short", strings.Replace(table10, "3 lids dumped \n", "", 1), "", "dump_fts:6: the section of switch 0x0000000000000010 does not end"},
		{"switch twice", table10 + table10, "", "dump_fts:8: a second section for switch 0x0000000000000010"},
		{"unknown switch", strings.Replace(table10, "0010 (s", "0030 (s", 1), "", "dump_fts:1: the fabric has no switch 0x0000000000000030"},
		{"multicast", "Multicast mlids [0xc000-0xc3ff] of switch Lid 3 guid 0x10:\n", "", "dump_fts: this is dump_mfts text"},
	} {
		b := newReadback(t, f, want)
		err := b.readTables([]byte(c.text))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		b.compare()
		var got []string
		for _, d := range b.report.Samples {
			got = append(got, d.String())
		}
		if s := strings.Join(got, "; "); s != c.want || b.report.Differences != len(got) || b.report.Unread != 1 {
			t.Errorf("%s: %s, want %s; report %+v", c.name, s, c.want, b.report)
		}
	}
}

// dumpOf prints tables as dump_fts -a -n does, with its missing last row.
func dumpOf(f *fabric.Fabric, tb *lft.Tables) []byte {
	var b []byte
	top := int(tb.MaxLID())
	for s := range fabric.NodeID(tb.Switches()) {
		b = fmt.Appendf(b, "Unicast lids [0x0-%#x] of switch Lid 1 guid %s (%s):\n  Lid  Out   Destination\n       Port     Info \n",
			top, f.Node(s).GUID, f.Node(s).Description)
		n := (top + 63) / 64 * 64
		n = min(n, top+1)
		for lid := range n {
			b = fmt.Appendf(b, "0x%04x %03d \n", lid, tb.Row(s)[lid])
		}
		b = fmt.Appendf(b, "%d lids dumped \n", n)
	}
	return b
}

// The last row that dump_fts leaves comes from ibsim's dump.
func TestLastRow(t *testing.T) {
	f := pair(t)
	for _, top := range []fabric.LID{1, 63, 64, 65, 127, 128, 129} {
		tb := lft.NewTables(2, top)
		for lid := range tb.Row(0) {
			tb.Row(0)[lid], tb.Row(1)[lid] = fabric.PortNum(lid%5), 255
		}
		b := newReadback(t, f, tb)
		if err := b.readTables(dumpOf(f, tb)); err != nil {
			t.Fatal(err)
		}
		b.simulator(fmt.Sprintf("Switch 4 \"S-0000000000000010\"\tnodeguid 10\tsysimgguid 10\n#\tlinearcap 49152 FDBtop %d portchange 0\n", top))
		late := fabric.LID(0)
		if top%64 == 0 {
			late = top
		}
		if b.err != nil || b.late[0] != late {
			t.Errorf("top %d: %d is left, want %d; %v", top, b.late[0], late, b.err)
		}
		b.simulator(fmt.Sprintf("#\tForwarding table 0-128: [0]0 [%d]%X\n", top, tb.Row(0)[top]))
		if b.compare(); b.err != nil || b.late[0] != 0 || b.report.EqualSwitches != 2 {
			t.Errorf("top %d: %+v, %v", top, b.report, b.err)
		}
	}
}

const simDump = `# Net status - Sat Nov 21 04:07:55 2026

Switch 4 "S-0000000000000010"	nodeguid 10	sysimgguid 10
#	linearcap 49152 FDBtop 64 portchange 0
#	Forwarding table 0-15: [0]FF [1]0
#	Forwarding table 48-64: [6]9 [64]A [65]B
10	[0]	"Sma Port"[0]	 lid 1 lmc 0 smlid 1  4x  2.5G Active/LinkUp
10	[1]	"S-0000000000000020"[2]	  4x 10.0G Active/LinkUp
10	[2]			  4x  2.5G Down/Polling
#  dumped 1 nodes
`

func TestSimulatorDump(t *testing.T) {
	want := lft.NewTables(2, 64)
	want.Row(0)[64] = 10
	run := func(text string) (*readback, error) {
		b := newReadback(t, pair(t), want)
		b.got, b.unread = lft.NewTables(2, 64), []bool{false, true}
		if b.simulator(text); b.err == nil {
			b.compare()
		}
		return b, b.err
	}
	if b, err := run(simDump); err != nil || b.late[0] != 0 || b.report.WrongLIDs != 0 || b.report.Differences != 0 || b.report.Entries != 64 {
		t.Errorf("%+v, %v", b.report, err)
	}
	if b, err := run(strings.Replace(simDump, "[64]A", "[64]B", 1)); err != nil || b.report.Differences != 1 || b.report.Samples[0].OpenSM != 11 {
		t.Errorf("another entry: %+v, %v", b.report, err)
	}
	if b, err := run(strings.Replace(simDump, "[64]A ", "", 1)); err != nil || b.late[0] != 64 {
		t.Errorf("no entry: %+v, %v", b.report, err)
	}
	if b, err := run(strings.Replace(simDump, "lid 1 lmc 0", "lid 5 lmc 1", 1)); err != nil ||
		!slices.Equal(b.report.LIDSamples, []LIDDifference{{Port: `"s" 0x0000000000000010[0]`, GUID: 0x10, Ours: 1, OpenSM: 5, OpenSMLMC: 1}}) {
		t.Errorf("another LID: %+v, %v", b.report, err)
	}
	for _, bad := range [][2]string{
		{"[64]A", "[64]"}, {"[64]A", "[64]100"}, {"lid 1 ", "lid x "}, {" lmc 0", " lmc 256"}, {" lid 1", ""}, {"nodeguid 10", "nodeguid 30"},
		{"nodeguid 10", "nodeguid"}, {"10	[2]", "10	[5]"}, {"10	[2]", "10	(2)"}, {"Switch 4", "#"}, {"# Net", "Net"},
	} {
		if _, err := run(strings.Replace(simDump, bad[0], bad[1], 1)); err == nil {
			t.Errorf("%q for %q was taken", bad[1], bad[0])
		}
	}
}

func TestReplaceGUIDs(t *testing.T) {
	up := func(g fabric.GUID) fabric.GUID {
		if g == 0x1f {
			return 0x123
		}
		return g
	}
	for _, c := range [][2]string{
		{"", ""},
		{"Unicast lids [0-9] of switch Lid 1 guid 0x000000000000001f ('x'):\n", "Unicast lids [0-9] of switch Lid 1 guid 0x000000000000001f ('x'):\n"},
		{"0x0001 003 # Channel Adapter portguid 0x000000000000001f: 'a portguid 0x1f'", "0x0001 003 # Channel Adapter portguid 0x0000000000000123: 'a portguid 0x1f'"},
		{"0x0001 003 # portguid 0x1F\r\n\n", "0x0001 003 # portguid 0x0000000000000123\r\n\n"},
		{"0x0001 003 # portguid 0x000000000000002f\n", "0x0001 003 # portguid 0x000000000000002f\n"},
		{"0x0001: 00 02 ff # portguid 0x000000000000001f\n", "0x0001: 00 02 ff # portguid 0x0000000000000123\n"},
		{"0x000000000000001f 0x0001 0x0001\n\n0x0000000000000020 0x001f 0x001f\n", "0x0000000000000123 0x0001 0x0001\n\n0x0000000000000020 0x001f 0x001f\n"},
		{"0x001f 003\n", "0x001f 003\n"},
		{" portguid 0x00000000000000001f\n", " portguid 0x00000000000000001f\n"},
		{" portguid 0x", " portguid 0x"},
		{strings.Repeat("x", bufferSize+9) + "\n0x1f", strings.Repeat("x", bufferSize+9) + "\n0x1f"},
	} {
		var out bytes.Buffer
		if err := replaceGUIDs(t.Context(), &out, strings.NewReader(c[0]), up); err != nil || out.String() != c[1] {
			t.Errorf("%.80q: %.80q, %v, want %.80q", c[0], out.String(), err, c[1])
		}
	}
}

func FuzzSimulatorDump(f *testing.F) {
	fab := pair(f)
	f.Add([]byte(simDump))
	f.Fuzz(func(t *testing.T, text []byte) {
		b := newReadback(t, fab, lft.NewTables(2, 64))
		b.got, b.unread = lft.NewTables(2, 64), make([]bool, 2)
		if b.simulator(string(text)); b.err == nil {
			b.compare()
		}
		if b.report.EqualSwitches > 2 || b.report.Entries < b.report.Differences {
			t.Errorf("%+v", b.report)
		}
	})
}

func FuzzReplaceGUIDs(f *testing.F) {
	f.Add([]byte(table10))
	f.Add([]byte("0x0001 003 # Switch portguid 0x000000000000001f: 'a'\n0x000000000000001f 0x0001 0x0001\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var same, there, back bytes.Buffer
		if err := replaceGUIDs(t.Context(), &same, bytes.NewReader(text), func(g fabric.GUID) fabric.GUID { return g }); err != nil || !bytes.Equal(same.Bytes(), text) {
			t.Fatalf("no GUID changes, but the text: %q, %v", same.Bytes(), err)
		}
		turn := func(g fabric.GUID) fabric.GUID { return ^g }
		if err := replaceGUIDs(t.Context(), &there, bytes.NewReader(text), turn); err != nil {
			t.Fatal(err)
		}
		if err := replaceGUIDs(t.Context(), &back, &there, turn); err != nil {
			t.Fatal(err)
		}
		var full bytes.Buffer // GUIDs with all digits, as they are written
		if err := replaceGUIDs(t.Context(), &full, bytes.NewReader(text), func(g fabric.GUID) fabric.GUID { return g ^ 1 }); err != nil {
			t.Fatal(err)
		}
		same.Reset()
		if err := replaceGUIDs(t.Context(), &same, &full, func(g fabric.GUID) fabric.GUID { return g ^ 1 }); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back.Bytes(), same.Bytes()) {
			t.Errorf("there and back: %q, %q", back.Bytes(), same.Bytes())
		}
	})
}

// Differences name ports by number and label.
func TestDifferencesHaveLabels(t *testing.T) {
	labels := fabric.PortLabels{1: "1/1/1", 3: "1/2/1"}
	s := Switch{0x10, fabric.Name{Text: "leaf"}}
	for _, c := range []struct {
		got  fmt.Stringer
		want string
	}{
		{Difference{Switch: 0x10, Name: s.Name, LID: 4, Ours: 3, OpenSM: 2, Labels: labels},
			`"leaf" (0x0000000000000010), LID 4: port 3(1/2/1), OpenSM has port 2`},
		{Difference{Switch: 0x10, Name: s.Name, LID: 4, Ours: fabric.NoPath, OpenSM: 1, Labels: labels},
			`"leaf" (0x0000000000000010), LID 4: no path, OpenSM has port 1(1/1/1)`},
		{MaskDifference{"g", "ff12::1", 0xc001, s, []int{1, 2, 3}, []int{3}, labels},
			`group "g" (ff12::1), MLID 0xc001, "leaf" (0x0000000000000010): ports 1(1/1/1),2,3(1/2/1), OpenSM has port 3(1/2/1)`},
		{MapDifference{s, 1, 2, []int{0, 1}, []int{0, 0}, labels},
			`"leaf" (0x0000000000000010), port 1(1/1/1) to port 2: VLs 0,1, OpenSM has 0,0`},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
