package ibdiagnet

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// anyFabric draws a fabric of all that a database can hold: names with commas and quotes,
// cables from a switch to itself, LMCs, labels, ports without cables, unknown links.
func anyFabric(t *rapid.T) *fabric.Fabric {
	var b fabric.Builder
	type end struct {
		node int
		num  fabric.PortNum
	}
	var free []end
	letters := rapid.StringOfN(rapid.RuneFrom([]rune(`abc ,;"'#\()[]-@0é/`)), 0, 20, -1)
	labels := rapid.SampledFrom([]string{"", "", "1", "1/12/2", "1/1/1/1", "B184D0F0/0/0/1"})
	speeds := []fabric.Speed{fabric.SpeedUnknown, fabric.SDR, fabric.DDR, fabric.QDR, fabric.FDR10, fabric.FDR, fabric.EDR, fabric.HDR, fabric.NDR, fabric.XDR}
	nodes := rapid.IntRange(1, 6).Draw(t, "nodes")
	guids := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 1<<54), nodes, nodes, rapid.ID).Draw(t, "guids")
	lid := fabric.LID(0)
	for i := range nodes {
		n := fabric.Node{
			GUID: fabric.GUID(guids[i] << 8), SystemGUID: fabric.GUID(rapid.Uint64().Draw(t, "system")),
			Type:     rapid.SampledFrom([]fabric.NodeType{fabric.Switch, fabric.Switch, fabric.CA, fabric.Router}).Draw(t, "type"),
			NumPorts: fabric.PortNum(rapid.IntRange(1, 8).Draw(t, "ports")), VendorID: rapid.Uint32Range(0, 1<<24-1).Draw(t, "vendor"),
			DeviceID: rapid.Uint16().Draw(t, "device"), Description: letters.Draw(t, "description"),
		}
		n.EnhancedPort0 = n.Type == fabric.Switch && rapid.Bool().Draw(t, "enhanced")
		short.Must(b.AddNode(n))(t)
		for p := range n.NumPorts + 1 {
			if p > 0 {
				free = append(free, end{i, p})
				short.Check(t, b.SetLabel(i, p, labels.Draw(t, "label")))
			}
			if (p == 0) == (n.Type == fabric.Switch) && rapid.Bool().Draw(t, "has a LID") {
				lmc := uint8(rapid.SampledFrom([]int{0, 0, 1, 7}).Draw(t, "lmc"))
				lid = (lid>>lmc + 1) << lmc
				short.Check(t, b.SetPort(i, p, n.GUID+fabric.GUID(p)+fabric.GUID(rapid.IntRange(0, 1).Draw(t, "odd GUID"))<<7, lid, lmc))
				lid += 1<<lmc - 1
			}
		}
	}
	for len(free) > 1 && rapid.IntRange(0, 9).Draw(t, "more cables") > 0 {
		var ends [2]end
		for i := range ends {
			k := rapid.IntRange(0, len(free)-1).Draw(t, "end")
			ends[i] = free[k]
			free = append(free[:k], free[k+1:]...)
		}
		link := fabric.Link{Width: rapid.SampledFrom([]uint8{0, 1, 2, 4, 8, 12}).Draw(t, "width"), Speed: rapid.SampledFrom(speeds).Draw(t, "speed")}
		short.Check(t, b.Connect(ends[0].node, ends[0].num, ends[1].node, ends[1].num, link))
	}
	return short.Must(b.Build())(t)
}

// sameFabric compares all that a database holds.
func sameFabric(f, g *fabric.Fabric) error {
	if a, b := topology.Append(nil, f), topology.Append(nil, g); !bytes.Equal(a, b) {
		return fmt.Errorf("another fabric:\n%s\nwant\n%s", b, a)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if f.LID(p) != g.LID(p) || f.LMC(p) != g.LMC(p) || f.Label(p) != g.Label(p) || f.Link(p) != g.Link(p) || f.PortGUID(p) != g.PortGUID(p) {
			return fmt.Errorf("%s: LID %d, LMC %d, label %q, link %v, GUID %s; want %d, %d, %q, %v, %s", f.PortName(p),
				g.LID(p), g.LMC(p), g.Label(p), g.Link(p), g.PortGUID(p), f.LID(p), f.LMC(p), f.Label(p), f.Link(p), f.PortGUID(p))
		}
	}
	return nil
}

// write writes a database.
func write(t rapid.TB, f *fabric.Fabric, counters int, values dump.Counters) []byte {
	var b bytes.Buffer
	short.Check(t, Write(&b, f))
	return withCounters(b.Bytes(), f, counters, values)
}

// What Write writes is read back as the same fabric, and after what copying and editing
// does to text.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFabric(t)
		data := write(t, f, rapid.IntRange(0, 3).Draw(t, "counters"), dump.Counters{})
		for what, text := range map[string][]byte{
			"as it is":            data,
			"CRLF":                bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")),
			"a byte order mark":   append([]byte("\ufeff"), data...),
			"upper-case headers":  upperHeaders(data),
			"comments":            bytes.ReplaceAll(data, []byte("\nEND_"), []byte("\n# END\n\nEND_")),
			"blanks at line ends": bytes.ReplaceAll(data, []byte("\n"), []byte(" \n")),
		} {
			d, err := Read("x", bytes.NewReader(text), Options{})
			if err != nil {
				t.Fatalf("%s: %v\n%s", what, err, text)
			}
			lacking := 0
			for i := range d.Problems {
				if lacking += d.Problems[i].Count; d.Problems[i].Kind != fabric.InvalidLID {
					t.Fatalf("%s: %s", what, d.Problems[i].String())
				}
			}
			short.MustEqual(t, lacking, withoutLIDs(f), what, "ports without a LID are noticed")
			if err := sameFabric(f, d.Fabric); err != nil {
				t.Fatalf("%s: %v\n%s", what, err, text)
			}
		}
	})
}

// withoutLIDs counts the end ports that have a cable and no LID, where others have one.
func withoutLIDs(f *fabric.Fabric) (n int) {
	if f.MaxLID() == 0 {
		return 0
	}
	for p := range fabric.PortID(f.NumPorts()) {
		node := f.Owner(p)
		cabled := f.Peer(p) != fabric.NoPort
		for num := fabric.PortNum(1); f.IsSwitch(node) && f.Num(p) == 0 && num <= f.Node(node).NumPorts; num++ {
			cabled = cabled || f.Peer(f.Port(node, num)) != fabric.NoPort
		}
		if (f.Num(p) == 0) == f.IsSwitch(node) && cabled && f.LID(p) == 0 {
			n++
		}
	}
	return n
}

// upperHeaders prints the names of columns in upper case, as another version may.
func upperHeaders(data []byte) []byte {
	lines := strings.Split(string(data), "\n")
	for i := range lines {
		if strings.HasPrefix(lines[i], startMark) {
			lines[i+1] = strings.ToUpper(lines[i+1])
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

// A database that is cut anywhere is refused, or a problem says that it is cut.
func TestCutAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := write(t, anyFabric(t), 2, dump.Counters{})
		cut := data[:rapid.IntRange(0, len(data)-2).Draw(t, "length")]
		d, err := Read("x", bytes.NewReader(cut), Options{})
		if errors.Is(err, ErrNoFabric) {
			return
		} else if err != nil { // what is left is right
			t.Fatal(err)
		}
		for i := range d.Problems {
			if d.Problems[i].Kind == CutFile {
				return
			}
		}
		t.Fatalf("cut, and no problem says so:\n%s", cut)
	})
}

// A line that is lost anywhere is an error or a problem, if it says something.
func TestLostLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFabric(t)
		lines := bytes.SplitAfter(write(t, f, 0, dump.Counters{}), []byte("\n"))
		at := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
		lost := bytes.TrimSpace(lines[at])
		lines[at] = nil
		d, err := Read("x", bytes.NewReader(bytes.Join(lines, nil)), Options{})
		if err == nil && len(d.Problems) == 0 {
			if err := sameFabric(f, d.Fabric); err != nil {
				t.Fatalf("line %d lost, %q, and no problem says so: %v", at+1, lost, err)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(text))
	f.Add([]byte(strings.Replace(text, "END_LINKS\n", "", 1)))
	for seed := range 20 {
		f.Add(write(f, rapid.Custom(anyFabric).Example(seed), 1, dump.Counters{}))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		strict, err := read(data, Options{})
		if (err == nil) != (strict != nil) {
			t.Fatalf("database %v with error %v", strict, err)
		}
		d, err := read(data, Options{Lenient: true})
		if strict != nil && err != nil {
			t.Fatalf("a lenient read fails where a strict one does not: %v", err)
		}
		if err != nil {
			return
		}
		for p := range d.PKeys {
			_ = d.Fabric.PortName(fabric.PortID(p))
		}
		again := short.Must(read(write(t, d.Fabric, 0, dump.Counters{}), Options{}))(t)
		// A port that no row is about has the GUID that follows from its node, which a row may
		// give to another one.
		guids, twice := map[fabric.GUID]bool{}, false
		for p := range fabric.PortID(d.Fabric.NumPorts()) {
			g := d.Fabric.PortGUID(p)
			twice = twice || g != 0 && guids[g]
			guids[g] = true
		}
		if err := sameFabric(again.Fabric, d.Fabric); err != nil && !twice && !strings.ContainsAny(string(data), "\r\x00\v\f\u0085") {
			t.Fatal(err)
		}
	})
}
