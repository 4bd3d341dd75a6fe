package rehearse

import (
	"bytes"
	"errors"
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

const head10 = "Unicast lids [0x0-0x2] of switch DR path slid 0; dlid 0; 0 guid 0x0000000000000010 (s guid 0x20):\n  Lid  Out   Destination\n       Port     Info \n"

const table10 = head10 + "0x0000 255 \n0x0001 000 \n0x0002 001 \n3 lids dumped \n"

func TestReadTables(t *testing.T) {
	f := pair(t)
	want := lft.NewTables(2, 2)
	copy(want.Row(0), []fabric.PortNum{255, 0, 1})
	copy(want.Row(1), []fabric.PortNum{255, 2, 0})
	table20 := strings.NewReplacer("0010 (s", "0020 (s", "0x0001 000", "0x0001 002", "0x0002 001", "0x0002 000").Replace(table10)
	if err := errors.Join(func() (errs []error) {
		c := newComparison(f, want, 9)
		errs = append(errs, c.readTables(t.Context(), strings.NewReader(table20+table10)))
		var r Report
		if c.finish(&r); r.EqualSwitches != 2 || r.Entries != 4 || r.Differences != 0 || r.Unread != 0 {
			t.Errorf("report %+v", r)
		}
		return errs
	}()...); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		name, text string
		want       string // of the differences, or
		err        string
	}{
		{"port", strings.Replace(table10, "0x0001 000", "0x0001 004", 1), `"s" (0x0000000000000010), LID 1: port 0, OpenSM has port 4`, ""},
		{"no path", strings.Replace(table10, "0x0002 001", "0x0002 255", 1), `"s" (0x0000000000000010), LID 2: port 1, OpenSM has no path`, ""},
		{"LID 0 is nobody's", strings.Replace(table10, "0x0000 255", "0x0000 001", 1), "", ""},
		{"lower top", "Unicast lids [0x0-0x1] of switch guid 0x0000000000000010 (s):\n0x0000 255\n0x0001 000 \n2 lids dumped\n",
			`"s" (0x0000000000000010), LID 2: port 1, OpenSM has no path`, ""},
		{"never set up", "Unicast lids [0x0-0x0] of switch guid 0x0000000000000010 (s):\n0 lids dumped\n",
			`"s" (0x0000000000000010), LID 1: port 0, OpenSM has no path; "s" (0x0000000000000010), LID 2: port 1, OpenSM has no path`, ""},
		{"higher top", "Unicast lids [0x0-0x3] of switch guid 0x0000000000000010 (s):\n0x0000 255\n0x0001 000 \n0x0002 001\n0x0003 002\n4 lids dumped\n",
			`"s" (0x0000000000000010), LID 3: no path, OpenSM has port 2`, ""},

		{"row lost", strings.Replace(table10, "0x0001 000 \n", "", 1), "", "dump_fts:5: want the row of LID 0x0001"},
		{"last row lost", strings.Replace(table10, "0x0002 001 \n3", "2", 1), "", "dump_fts:6: want 3 rows"},
		{"row twice", strings.Replace(table10, "0x0001 000 \n", "0x0001 000 \n0x0001 000 \n", 1), "", "dump_fts:6: want the row of LID 0x0002"},
		{"row above the top", strings.Replace(table10, "3 lids", "0x0003 001\n3 lids", 1), "", "dump_fts:7: want the row of LID 0x0003"},
		{"wrong count", strings.Replace(table10, "3 lids", "4 lids", 1), "", "dump_fts:7: 3 rows were printed"},
		{"port out of range", strings.Replace(table10, "0x0002 001", "0x0002 256", 1), "", "dump_fts:6: want a port"},
		{"resolved", strings.Replace(table10, "0x0001 000 ", "0x0001 000 : (Switch)", 1), "", "dump_fts:5: want a row"},
		{"cut short", strings.Replace(table10, "3 lids dumped \n", "", 1), "", "stopped in the table of switch 0x0000000000000010"},
		{"no end", head10 + table10, "", "dump_fts:4: the table of switch 0x0000000000000010 has no end"},
		{"switch twice", table10 + table10, "", "dump_fts:8: switch 0x0000000000000010 comes twice"},
		{"unknown switch", strings.Replace(table10, "0010 (s", "0030 (s", 1), "", "dump_fts:1: the fabric has no switch 0x0000000000000030"},
		{"no GUID", "Unicast lids [0x0-0x2] of switch Lid 3:\n", "", "dump_fts:1: no guid 0x"},
		{"bad GUID", "Unicast lids [0x0-0x2] of switch Lid 3 guid 0x:\n", "", "dump_fts:1: GUID"},
		{"top beyond unicast", "Unicast lids [0x0-0xc000] of switch Lid 3 guid 0x10:\n", "", "dump_fts:1: highest LID c000"},
		{"multicast", "Multicast mlids [0xc000-0xc3ff] of switch Lid 3 guid 0x10:\n", "", "dump_fts:1: want the table of a switch"},
		{"row without a table", "0x0001 002\n", "", "dump_fts:1: want the table of a switch"},
	} {
		cmp := newComparison(f, want, 9)
		err := cmp.readTables(t.Context(), strings.NewReader(c.text))
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
		var r Report
		cmp.finish(&r)
		var got []string
		for _, d := range r.Samples {
			got = append(got, d.String())
		}
		if s := strings.Join(got, "; "); s != c.want || r.Differences != len(got) || r.Unread != 1 {
			t.Errorf("%s: %s, want %s; report %+v", c.name, s, c.want, r)
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

func TestLastRow(t *testing.T) {
	f := pair(t)
	for _, top := range []fabric.LID{1, 63, 64, 65, 127, 128, 129} {
		tb := lft.NewTables(2, top)
		for lid := range tb.Row(0) {
			tb.Row(0)[lid], tb.Row(1)[lid] = fabric.PortNum(lid%5), 255
		}
		c := newComparison(f, tb, 9)
		if err := c.readTables(t.Context(), bytes.NewReader(dumpOf(f, tb))); err != nil {
			t.Fatal(err)
		}
		late := 0
		if top%64 == 0 {
			late = int(top)
		}
		if c.late[0] != late || c.differ[0] != 0 || c.differ[1] != 0 {
			t.Errorf("top %d: %d is left, want %d; %v differ", top, c.late[0], late, c.differ)
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
	twin, err := ibsim.NewTwin(pair(t))
	if err != nil {
		t.Fatal(err)
	}
	want := lft.NewTables(2, 64)
	want.Row(0)[64] = 10
	run := func(text string) (*comparison, error) {
		c := newComparison(twin.Fabric, want, 9)
		c.late[0] = 64
		d := simulatorDump{twin: twin, c: c, node: fabric.NoNode}
		for line := range strings.Lines(text) {
			d.line([]byte(strings.TrimSuffix(line, "\n")))
		}
		return c, d.err
	}
	if c, err := run(simDump); err != nil || c.late[0] != 0 || c.wrong != 0 || c.differ[0] != 0 || c.entries != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := run(strings.Replace(simDump, "[64]A", "[64]B", 1)); err != nil || c.differ[0] != 1 || c.list[0].OpenSM != 11 {
		t.Errorf("another entry: %+v, %v", c, err)
	}
	if c, err := run(strings.Replace(simDump, "[64]A ", "", 1)); err != nil || c.late[0] != 64 {
		t.Errorf("no entry: %+v, %v", c, err)
	}
	if c, err := run(strings.Replace(simDump, "lid 1 lmc 0", "lid 5 lmc 1", 1)); err != nil ||
		!slices.Equal(c.lids, []LIDDifference{{Port: `"s" 0x0000000000000010[0]`, GUID: 0x10, Ours: 1, OpenSM: 5, OpenSMLMC: 1}}) {
		t.Errorf("another LID: %+v, %v", c, err)
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

func TestComplaints(t *testing.T) {
	const text = "ibwarn: [1] x\nSubnGet(LFT) failed on switch 's'\nSubnGet(LFT) failed on switch 't'\n"
	for size := 1; size <= len(text); size++ {
		var c complaints
		for chunk := range slices.Chunk([]byte(text), size) {
			if n, err := c.Write(chunk); n != len(chunk) || err != nil {
				t.Fatal(n, err)
			}
		}
		if c.first != "SubnGet(LFT) failed on switch 's'" {
			t.Fatalf("in pieces of %d: %q", size, c.first)
		}
	}
}

func FuzzReadTables(f *testing.F) {
	fab := pair(f)
	f.Add([]byte(table10))
	f.Add([]byte(head10))
	f.Add(dumpOf(fab, lft.NewTables(2, 64)))
	f.Fuzz(func(t *testing.T, text []byte) {
		want := lft.NewTables(2, 2)
		c := newComparison(fab, want, 3)
		if err := c.readTables(t.Context(), bytes.NewReader(text)); err != nil {
			return
		}
		var r Report
		c.finish(&r)
		if r.EqualSwitches+r.Unread > 2 || len(r.Samples) > 3 || r.Entries < r.Differences {
			t.Errorf("report %+v", r)
		}
		if r.Unread == 2 && r.Entries != 0 {
			t.Errorf("entries of no switch: %+v", r)
		}
	})
}

func FuzzSimulatorDump(f *testing.F) {
	fab := pair(f)
	f.Add([]byte(simDump))
	f.Fuzz(func(t *testing.T, text []byte) {
		twin, err := ibsim.NewTwin(fab)
		if err != nil {
			t.Fatal(err)
		}
		c := newComparison(fab, lft.NewTables(2, 64), 3)
		c.late[1] = 64
		d := simulatorDump{twin: twin, c: c, node: fabric.NoNode}
		for line := range bytes.Lines(text) {
			d.line(bytes.TrimSuffix(line, []byte("\n")))
		}
		if d.err == nil && c.late[1] == 0 && c.entries != 1 {
			t.Errorf("%+v", c)
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
