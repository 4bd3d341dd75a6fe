package rehearse

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

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
	} {
		var out bytes.Buffer
		if err := replaceGUIDs(&out, []byte(c[0]), up); err != nil || out.String() != c[1] {
			t.Errorf("%.80q: %.80q, %v, want %.80q", c[0], out.String(), err, c[1])
		}
	}
}

func FuzzReplaceGUIDs(f *testing.F) {
	f.Add([]byte("Unicast lids [0-2] of switch Lid 1 guid 0x0000000000000010 ('s guid 0x20'):\n0x0000 255 \n0x0001 000 \n"))
	f.Add([]byte("0x0001 003 # Switch portguid 0x000000000000001f: 'a'\n0x000000000000001f 0x0001 0x0001\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var same, there, back bytes.Buffer
		if err := replaceGUIDs(&same, text, func(g fabric.GUID) fabric.GUID { return g }); err != nil || !bytes.Equal(same.Bytes(), text) {
			t.Fatalf("no GUID changes, but the text: %q, %v", same.Bytes(), err)
		}
		turn := func(g fabric.GUID) fabric.GUID { return ^g }
		short.Check(t, replaceGUIDs(&there, text, turn))
		short.Check(t, replaceGUIDs(&back, there.Bytes(), turn))
		var full bytes.Buffer // GUIDs with all digits, as they are written
		short.Check(t, replaceGUIDs(&full, text, func(g fabric.GUID) fabric.GUID { return g ^ 1 }))
		same.Reset()
		short.Check(t, replaceGUIDs(&same, full.Bytes(), func(g fabric.GUID) fabric.GUID { return g ^ 1 }))
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
