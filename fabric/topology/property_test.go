package topology

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// anyFabric draws a fabric of all that a text can hold: cables of all kinds,
// loops and parallel ones among them, LIDs on some end ports, LMCs, port GUIDs
// that follow no rule, unknown links.
func anyFabric(t *rapid.T) *fabric.Fabric {
	var b fabric.Builder
	type end struct {
		node int
		port fabric.PortNum
	}
	var free []end
	kinds := []fabric.NodeType{fabric.Switch, fabric.Switch, fabric.CA, fabric.Router}
	letters := rapid.StringOfN(rapid.RuneFrom([]rune(`abc ,;"'#\()[]-@0é`)), 0, 20, -1)
	speeds := []fabric.Speed{fabric.SpeedUnknown, fabric.SDR, fabric.DDR, fabric.QDR, fabric.FDR10, fabric.FDR, fabric.EDR, fabric.HDR, fabric.NDR, fabric.XDR}
	nodes := rapid.IntRange(1, 8).Draw(t, "nodes")
	// GUIDs leave room for those of ports, and port GUIDs that follow no rule
	// lie beyond.
	guids := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 1<<54), nodes, nodes, rapid.ID).Draw(t, "guids")
	portGUIDs := rapid.SliceOfNDistinct(rapid.Uint64Range(1<<63, 1<<64-1), 64, 64, rapid.ID).Draw(t, "port guids")
	for i := range nodes {
		n := fabric.Node{
			GUID:        fabric.GUID(guids[i] << 8),
			SystemGUID:  fabric.GUID(rapid.Uint64().Draw(t, "system")),
			Type:        rapid.SampledFrom(kinds).Draw(t, "type"),
			NumPorts:    fabric.PortNum(rapid.OneOf(rapid.IntRange(1, 6), rapid.IntRange(1, 254)).Draw(t, "ports")),
			VendorID:    rapid.Uint32Range(0, 1<<24-1).Draw(t, "vendor"),
			DeviceID:    rapid.Uint16().Draw(t, "device"),
			Description: letters.Draw(t, "description"),
		}
		n.EnhancedPort0 = n.Type == fabric.Switch && rapid.Bool().Draw(t, "enhanced")
		short.Must(b.AddNode(n))(t)
		for p := fabric.PortNum(1); p <= min(n.NumPorts, 8); p++ {
			free = append(free, end{i, p})
		}
		if n.NumPorts > 8 {
			free = append(free, end{i, n.NumPorts})
		}
	}
	lid := fabric.LID(0)
	endPort := func(i int, p fabric.PortNum, guid fabric.GUID) {
		lmc := uint8(rapid.SampledFrom([]int{0, 0, 0, 1, 7}).Draw(t, "lmc"))
		l := fabric.LID(0)
		if rapid.Bool().Draw(t, "has LID") {
			n := fabric.LID(1) << lmc
			l = (lid/n + 1) * n
			lid = l + n - 1
		}
		short.Check(t, b.SetPort(i, p, guid, l, lmc))
	}
	drawGUID := func() fabric.GUID {
		g := portGUIDs[0]
		portGUIDs = portGUIDs[1:]
		if rapid.Bool().Draw(t, "default GUID") {
			return 0
		}
		return fabric.GUID(g)
	}
	for i := range nodes {
		if b.Node(i).Type == fabric.Switch {
			endPort(i, 0, drawGUID())
		}
	}
	free = rapid.Permutation(free).Draw(t, "ends")
	for range rapid.IntRange(0, min(len(free)/2, 20)).Draw(t, "cables") {
		link := fabric.Link{
			Width: rapid.SampledFrom([]uint8{0, 1, 2, 4, 8, 12}).Draw(t, "width"),
			Speed: rapid.SampledFrom(speeds).Draw(t, "speed"),
		}
		short.Check(t, b.Connect(free[0].node, free[0].port, free[1].node, free[1].port, link))
		for _, e := range free[:2] {
			if b.Node(e.node).Type != fabric.Switch {
				endPort(e.node, e.port, drawGUID())
			}
		}
		free = free[2:]
	}
	for i := range nodes {
		for p := fabric.PortNum(1); p <= min(b.Node(i).NumPorts, 8); p++ {
			if _, _, cabled := b.Connected(i, p); cabled {
				short.Check(t, b.SetLabel(i, p, rapid.SampledFrom([]string{"", "", "1", "1/2/3", "1/32/2/4", "HCA1", "B184D0F0/0/0/1"}).Draw(t, "label")))
			}
		}
	}
	return short.Must(b.Build())(t)
}

// withoutZero is problems without those about ports that have no LID, which the fabrics of
// these tests have.
func withoutZero(problems []fabric.Problem) []fabric.Problem {
	return slices.DeleteFunc(problems, func(p fabric.Problem) bool {
		return p.Kind == fabric.InvalidLID && p.Message == "LID 0: want 1 to 49151; taken as none"
	})
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFabric(t)
		text := Append(nil, f)
		g, problems, err := Parse("in", text, Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if problems = withoutZero(problems); len(problems) != 0 {
			t.Fatalf("%s%s", list(problems), text)
		}
		short.Diff(t, tell(g), tell(f), text)
		var written bytes.Buffer
		if err := Write(&written, f); err != nil || !bytes.Equal(written.Bytes(), text) {
			t.Fatal("Write differs from Append", err)
		}
	})
}

// Labels are read back, and are all that AppendLabelled adds.
func TestLabelsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFabric(t)
		text := AppendLabelled(nil, f)
		g, _, err := Parse("in", text, Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		short.Diff(t, tell(g), tell(f), text)
		for p := range fabric.PortID(f.NumPorts()) {
			short.MustEqual(t, f.Label(p), g.Label(p), "label", text)
		}
		var written bytes.Buffer
		if err := WriteLabelled(&written, f); err != nil || !bytes.Equal(written.Bytes(), text) {
			t.Fatal("WriteLabelled differs from AppendLabelled", err)
		}
		if !bytes.Equal(AppendLabelled(nil, g), text) || !bytes.Equal(Append(nil, f), Append(nil, g)) {
			t.Fatalf("written again it differs\n%s", text)
		}
	})
}

// The order of stanzas, and of lines in one, changes nothing but Node.Order.
func TestOrderOfLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFabric(t)
		text := string(Append(nil, f))
		parts := rapid.Permutation(stanzas(text)[1:]).Draw(t, "stanzas")
		for i, s := range parts {
			lines := strings.SplitAfter(s, "\n")
			at := 0
			for at < len(lines) && !strings.HasPrefix(lines[at], "[") {
				at++
			}
			end := at
			for end < len(lines) && strings.HasPrefix(lines[end], "[") {
				end++
			}
			if end-at > 1 {
				copy(lines[at:end], rapid.Permutation(lines[at:end]).Draw(t, "lines"))
			}
			parts[i] = strings.Join(lines, "")
		}
		g, _, err := Parse("in", []byte(strings.Join(parts, "")), Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		short.Diff(t, string(Append(nil, g)), text)
		if g.NumNodes() > 0 && g.Node(0).Type == fabric.Switch {
			order := g.Node(0).Order
			if id := string(appendID(nil, g.Node(0))); !strings.Contains(parts[order], "Switch\t") || !strings.Contains(parts[order], " "+id+"\t\t#") {
				t.Fatalf("node %s is not at %d", id, order)
			}
		}
	})
}

// Any text with a line taken away, doubled or moved is read or refused, and
// what a lenient read makes of it can be written and read strictly.
func TestBrokenLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := strings.SplitAfter(string(Append(nil, anyFabric(t))), "\n")
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
			j := rapid.IntRange(0, len(lines)-1).Draw(t, "other line")
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				lines[i] = ""
			case 1:
				lines[i] += lines[j]
			case 2:
				lines[i], lines[j] = lines[j], lines[i]
			default:
				n := rapid.IntRange(0, len(lines[i])).Draw(t, "column")
				lines[i] = lines[i][:n] + rapid.SampledFrom([]string{"", "9", "\"", "]", " ", "#"}).Draw(t, "text") + lines[i][min(n+1, len(lines[i])):]
			}
		}
		checkParse(t, []byte(strings.Join(lines, "")))
	})
}

// checkParse checks what holds for any input.
func checkParse(t interface {
	Helper()
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}, data []byte,
) {
	t.Helper()
	for _, lenient := range []bool{false, true} {
		f, problems, err := Parse("in", data, Options{Lenient: lenient})
		checkCRLF(t, data, lenient, list(problems), err)
		if err != nil {
			if f != nil || problems != nil {
				t.Fatalf("a result with error %v", err)
			}
			continue
		}
		if len(data) <= recognizeWithin && Recognize(data) == NoForm {
			t.Fatalf("read, but not recognized")
		}
		for _, p := range problems {
			if p.Line < 1 || p.Column < 0 || p.Column > len(data) || p.Message == "" {
				t.Fatalf("problem %+v", p)
			}
		}
		text := Append(nil, f)
		g, problems, err := Parse("in", text, Options{})
		if err != nil {
			t.Fatalf("lenient %v: written text cannot be read: %v\n%s", lenient, err, text)
		}
		if problems = withoutZero(problems); len(problems) != 0 {
			t.Fatalf("lenient %v: written text has problems:\n%s%s", lenient, list(problems), text)
		}
		short.EqualList(t, text, Append(nil, g), "lenient", lenient, "(-want +got)")
	}
}

// checkCRLF checks that lines may end in CRLF.
func checkCRLF(t interface {
	Helper()
	Fatalf(string, ...any)
}, data []byte, lenient bool, problems string, err error,
) {
	t.Helper()
	if bytes.ContainsRune(data, '\r') {
		return
	}
	_, problems2, err2 := Parse("in", bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")), Options{Lenient: lenient})
	if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() || problems != list(problems2) {
		t.Fatalf("%v\n%s\nwith CRLF: %v\n%s", err, problems, err2, list(problems2))
	}
}

// logged is a capture as a terminal leaves it, with labels and LIDs that cannot be.
const logged = "\ufeff=~=~=~= PuTTY log =~=~=~=\n[root@host ~]# ibnetdiscover\n" +
	"src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1,20 Attr 0x11:0) bad status 110; Connection timed out\n" +
	"# This database file was automatically generated by IBDIAG\n\n" +
	"sysimgguid=0x5\nswitchguid=0x5(1)\nSwitch4 \"S-0000000000000001\"# \"a\" enhanced port 0 lid 65535 lmc 0\n" +
	"[1](1/1/1) \"H-0000000000000002\"[1](2)# \"h\" lid  4xNDR\n[2](2)\"S-0000000000000001\"[2]# \"a\" lid -1 4xNDR\n" +
	"ibwarn: [7] mad_rpc: timed out\n\n" +
	"caguid=0x2\nCa  1 \"H-0000000000000002\"# \"h\"\n[1](B1D0F0/0/0/1)(2) \"S-0000000000000001\"[1]# lid 0 lmc 0 \"a\" lid 65535 4xNDR\n" +
	"\r[root@host ~]# "

func FuzzParse(f *testing.F) {
	for _, test := range broken(f) {
		f.Add([]byte(test["text"]))
	}
	f.Add([]byte(logged))
	f.Add([]byte(strings.ReplaceAll(logged, "\n", "\r\r\n")))
	f.Add([]byte(strings.ReplaceAll(logged, "\n", "\r")))
	f.Add([]byte(wrapped(strings.Repeat("# a line of a comment that is of some length\n", 2)+logged, minColumns, true)))
	f.Add([]byte(strings.Replace(strings.ReplaceAll(logged, "lid", "\x1b[1mlid\x1b[m"), "enhanced", "enhsrc/x.c:1; failed\nancedibwarn: [7] x\n", 1)))
	f.Fuzz(func(t *testing.T, data []byte) { checkParse(t, data) })
}

func FuzzLinkInfo(f *testing.F) {
	for _, name := range []string{"awkward-info", "awkward-lines", "awkward-settings"} {
		data := short.Must(os.ReadFile("testdata/" + name + ".golden"))(f)
		f.Add(data)
	}
	f.Add([]byte(info))
	f.Add([]byte(info[:strings.Index(info, "CA:")])) // as of switches only
	f.Fuzz(func(t *testing.T, data []byte) { checkParse(t, data) })
}

func FuzzUFMLinks(f *testing.F) {
	f.Add([]byte(links))
	f.Add([]byte("[root@ufm ~]# curl\n" + strings.ReplaceAll(links, "\n", " ") + "[root@ufm ~]#"))
	f.Fuzz(func(t *testing.T, data []byte) { checkParse(t, data) })
}

// 72 spines, 144 leaves and 10,368 hosts: 10,584 nodes, 20,736 cables.
func BenchmarkParse10kNodes(b *testing.B) {
	text := Append(nil, fatTree(b, 72, fabric.Link{Width: 4, Speed: fabric.NDR}))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse("bench", text, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend10kNodes(b *testing.B) {
	f := fatTree(b, 72, fabric.Link{Width: 4, Speed: fabric.NDR})
	text := Append(nil, f)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		text = Append(text[:0], f)
	}
}
