package dump

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// values lists the counters of a reading.
func values(f *fabric.Fabric, c *Counters) map[string]string {
	all := map[string]string{}
	for k := range CounterCount {
		for p := range f.NumPorts() {
			if v := c.Get(k, fabric.PortID(p)); v.Known {
				all[strings.ReplaceAll(f.PortName(fabric.PortID(p)), "\"", "")+" "+k.Info().Name] = fmt.Sprintf("%g full %v", v.N, v.Full)
			}
		}
	}
	return all
}

// What the real perfquery prints of counters that ibsim was told is read, for all ports of a
// fabric one after the other, with -x and without it.
func TestReadRealPerfQuery(t *testing.T) {
	short.NeedPrograms(t)
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	short.Check(t, err)
	twin := short.Must(ibsim.NewTwin(f))(t)
	sim := short.Must(ibsim.StartTwin(t.Context(), twin, ibsim.Config{}))(t)
	defer sim.Close()
	run := short.Must(ibsim.RunOpenSM(t.Context(), sim, ibsim.OpenSMConfig{Engine: "minhop", Dir: t.TempDir(), Flags: 0x43}))(t)
	list := short.Must(os.ReadFile(filepath.Join(run.Dir, "opensm-subnet.lst")))(t)
	if f, _, err = topology.Parse("list", list, topology.Options{}); err != nil {
		t.Fatal(err)
	}
	// Perfquery's own datagrams count as data: at most some thousand words.
	const word, slack = 4, 1 << 24
	want := map[string]string{}
	set := func(n fabric.NodeID, num fabric.PortNum, attribute string, k Counter, raw uint64, full bool) {
		t.Helper()
		i := k.Info()
		line := fmt.Sprintf(`PerformanceSet "%s"[%d] %s.%s=%d`, twin.NodeID(n), num, attribute, i.Name, raw)
		short.Check(t, sim.Console(t.Context(), line, func(b []byte) {
			if bytes.Contains(b, []byte("#")) {
				t.Errorf("%s: %s", line, b)
			}
		}))
		if i.Words {
			raw *= word
		}
		want[strings.ReplaceAll(f.PortName(f.Port(n, num)), "\"", "")+" "+i.Name] = fmt.Sprintf("%g full %v", float64(raw), full)
	}
	var text bytes.Buffer
	for n := range fabric.NodeID(f.NumNodes()) {
		node := f.Node(n)
		for num := fabric.PortNum(1); num <= node.NumPorts; num++ {
			lid := f.LID(f.Port(n, fabric.ManagementPort))
			if !f.IsSwitch(n) {
				lid = f.LID(f.Port(n, num))
			}
			if lid == 0 {
				t.Fatalf("%s has no LID", f.PortName(f.Port(n, num)))
			}
			x := uint64(n)*100 + uint64(num)
			set(n, num, "PortCountersExtended", XmitData, (1<<16+x)*slack, false)
			set(n, num, "PortCounters", SymbolErrors, x, false)
			set(n, num, "PortCounters", LinkDowned, 255, true)
			set(n, num, "PortCounters", XmitWait, 1<<31+x, false)
			for _, args := range [][]string{{"-x"}, {}} {
				var stderr bytes.Buffer
				cmd := sim.Command(t.Context(), "perfquery", append(args, fmt.Sprint(lid), fmt.Sprint(num))...)
				cmd.Stdout, cmd.Stderr = &text, &stderr
				if err := sim.Run(t.Context(), cmd); err != nil {
					t.Fatalf("%s: %v %v: %s", f.PortName(f.Port(n, num)), args, err, stderr.Bytes())
				}
			}
		}
	}
	short.MustEqual(t, Recognize(text.Bytes()), PerfQuery, "recognized")
	c, problems, err := ReadCounters("perfquery", text.Bytes(), f, Options{})
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		v := c.Get(XmitData, p)
		v.N = math.Floor(v.N/(word*slack)) * (word * slack)
		c.Set(f, XmitData, p, v)
	}
	got := values(f, c)
	for name := range got {
		if _, told := want[name]; !told {
			delete(got, name) // zeros, and the datagrams of perfquery itself
		}
	}
	short.Diff(t, got, want, "ibsim was told (-) and perfquery says (+)", text.Bytes()[:2000])
}

// What the real ibqueryerrors prints of a fabric is read whatever its options are: the errors of each port, and
// with --data and --counters its data. Of a fabric without errors it is recognized, too.
func TestReadRealQueryErrors(t *testing.T) {
	short.NeedPrograms(t)
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))(t)
	twin := short.Must(ibsim.NewTwin(f))(t)
	sim := short.Must(ibsim.StartTwin(t.Context(), twin, ibsim.Config{}))(t)
	defer sim.Close()
	run := short.Must(ibsim.RunOpenSM(t.Context(), sim, ibsim.OpenSMConfig{Engine: "minhop", Dir: t.TempDir(), Flags: 0x43}))(t)
	list, err := os.ReadFile(filepath.Join(run.Dir, "opensm-subnet.lst"))
	short.Check(t, err)
	if f, _, err = topology.Parse("list", list, topology.Options{}); err != nil {
		t.Fatal(err)
	}
	read := func(args ...string) *Counters {
		t.Helper()
		var text bytes.Buffer
		cmd := sim.Command(t.Context(), "ibqueryerrors", append([]string{"--skip-sl"}, args...)...)
		cmd.Stdout = &text
		_ = sim.Run(t.Context(), cmd) // it exits 1 where there are errors
		c, problems, err := ReadCounters("ibqueryerrors", text.Bytes(), f, Options{})
		if form := Recognize(text.Bytes()); err != nil || problems != nil || form != QueryErrors {
			t.Fatalf("%v: %v %v %v\n%s", args, form, err, problems, text.Bytes())
		}
		return c
	}
	if got := values(f, read()); len(got) > 0 {
		t.Errorf("no errors, and %v", got)
	}
	want := map[string]string{}
	for _, n := range []fabric.NodeID{0, fabric.NodeID(f.NumSwitches())} {
		for k, full := range map[Counter]bool{SymbolErrors: false, LinkDowned: true} {
			raw := map[bool]uint64{false: 12 + uint64(n), true: 255}[full]
			short.Check(t, sim.Console(t.Context(), fmt.Sprintf(`PerformanceSet "%s"[1] PortCounters.%s=%d`, twin.NodeID(n), k.Info().Name, raw), func([]byte) {}))
			want[strings.ReplaceAll(f.PortName(f.Port(n, 1)), "\"", "")+" "+k.Info().Name] = fmt.Sprintf("%d full %v", raw, full)
		}
	}
	thresholds := filepath.Join(t.TempDir(), "thresholds") // which the last lines repeat with " = "
	short.Check(t, os.WriteFile(thresholds, []byte("SymbolErrorCounter=3\nPortRcvErrors=7\n"), 0o600))
	for _, args := range [][]string{{}, {"-r"}, {"-c"}, {"--details"}, {"--data"}, {"-r", "--data", "--details"},
		{"-s", "PortXmitWait", "-v"}, {"--threshold-file", thresholds}, {"-o", "1", "-e", "-R"}} {
		got := values(f, read(args...))
		data := 0
		for name := range got {
			if strings.HasSuffix(name, "Data") {
				data++
			}
			if strings.HasSuffix(name, "Data") || strings.HasSuffix(name, "Pkts") {
				delete(got, name)
			}
		}
		if d := cmp.Diff(want, got); d != "" || (data > 0) != slices.Contains(args, "--data") {
			t.Errorf("%v: %d of data, ibsim was told (-) and ibqueryerrors says (+):\n%s", args, data, d)
		}
	}
	for p := range f.Cabled(0) {
		if v := read("--counters").Get(XmitData, p); !v.Known || v.Count%4 != 0 {
			t.Errorf("data of %s: %+v", f.PortName(p), v)
		}
	}
}

// perfText is two ports as perfquery prints them, one in both ways.
//
//go:embed testdata/perfquery.txt
var perfText string

// errorsText was printed by ibqueryerrors -r --data of a switch and an adapter, and below it --counters.
//
//go:embed testdata/ibqueryerrors.txt
var errorsText string

func TestReadCounters(t *testing.T) {
	f := pair(t)
	for name, c := range map[string]struct {
		text string
		want map[string]string
		n    int // problems
	}{
		"perfquery": {perfText, map[string]string{
			"a[1] PortXmitData": "1.717986918e+10 full true", "a[1] SymbolErrorCounter": "70000 full false", "a[1] LinkDownedCounter": "255 full true", "a[1] PortXmitWait": "9 full false",
			"d[1] PortRcvData": "1.717986918e+10 full true"}, 1},
		"ibqueryerrors": {errorsText, map[string]string{
			"a[1] PortXmitData": "40 full false", "a[1] PortRcvData": "28 full false", "a[1] SymbolErrorCounter": "65535 full true", "a[1] PortXmitWait": "4.294967295e+09 full true",
			"d[1] SymbolErrorCounter": "70000 full false", "d[1] LinkDownedCounter": "255 full false"}, 0},
	} {
		got, problems, err := ReadCounters(name, []byte(c.text), f, Options{})
		if err != nil || len(problems) != c.n {
			t.Fatalf("%s: %v %v", name, err, problems)
		}
		short.Diff(t, values(f, got), c.want, name)
	}
}

// Each thing that is wrong is an error with its line; a lenient reader leaves it out.
func TestReadCountersRefuses(t *testing.T) {
	f := pair(t)
	const head = "# Port extended counters: Lid 1 port 1\nPortSelect:......................1\n"
	for text, want := range map[string]string{
		head + "PortXmitData:....................1\n" + head:                                   "in:4: a second reading of port \"a\"[1]",
		head + "# Port counters: Lid 1 port 255\n":                                             "in:3: this is the sum of all ports",
		head + "# Port counters: Lid 1 port 5\n":                                               "in:3: port 5 of node",
		head + "# Port counters: Lid 9 port 1\n":                                               "in:3: no port of the fabric has LID 9",
		head + "# Port counters: Lid 99999 port 1\n":                                           "in:3: no port of the fabric has LID 99999",
		head + "# Port counters: DR path 0,1 port 1\n":                                         "in:3: want the first line of a port",
		head + "PortXmitData:....................x\n":                                          `in:3: PortXmitData "x"`,
		head + "segmentation fault\n":                                                          "in:3: want a counter such as",
		"PortSelect:......................1\n" + head:                                          "in:1: text before the first port",
		"# Port counters: Lid 1 port 1\nPortSelect:.1\nLinkDownedCounter:...............256\n": "up to 8 bits",
		"Errors for \"z\"\n   GUID 0x99 port 1: [SymbolErrorCounter == 1]\n":                   "in:2: the fabric has no port 1 of 0x0000000000000099",
		"Errors for \"b\"\n   GUID 0xb port 9: [SymbolErrorCounter == 1]\n":                    "in:2: the fabric has no port 9",
		"Errors for \"b\"\n   GUID 0xb port 1: [SymbolErrorCounter == x]\n":                    "in:2: SymbolErrorCounter \"\", want a number",
		"Errors for \"b\"\n   GUID 0xb port 1: [LinkDownedCounter == 1] [SymbolErrorCoun":      "in:2: SymbolErrorCoun \"\", want a number",
		"Errors for \"b\"\n   port 1: [SymbolErrorCounter == 1]\n":                             "in:2: want a line such as GUID",
		errorsText + "   GUID 0xa port 1: [PortRcvData == 7]\n":                                "in:12: a second reading",
		"Switch\t4 \"S-000000000000000a\"\t\t# \"a\" base port 0 lid 1 lmc 0\n":                "want what perfquery -x or ibqueryerrors prints",
	} {
		c, _, err := ReadCounters("in", []byte(text), f, Options{})
		if err == nil || c != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

// A difference leaves out what one reading lacks, and says what was reset or stood still.
func TestSince(t *testing.T) {
	f := pair(t)
	read := func(text string) *Counters {
		c, _ := short.Must2(ReadCounters("in", []byte(text), f, Options{}))(t)
		return c
	}
	port := func(lid int, counters ...string) string {
		return fmt.Sprintf("# Port counters: Lid %d port 1\nPortSelect:.1\n%s\n", lid, strings.Join(counters, "\n"))
	}
	before := read(port(1, "PortXmitData:....10", "SymbolErrorCounter:....5", "PortXmitWait:....3") + port(2, "LinkDownedCounter:....255"))
	now := read(port(1, "PortXmitData:....30", "SymbolErrorCounter:....2", "PortRcvPkts:....3") + port(2, "LinkDownedCounter:....255"))
	d, resets := now.Since(f, before)
	want := map[string]string{"a[1] PortXmitData": "80 full false", "a[1] SymbolErrorCounter": "2 full true", "b[1] LinkDownedCounter": "0 full true"}
	if diff := cmp.Diff(want, values(f, d)); diff != "" || resets != 1 {
		t.Errorf("%d resets, %s", resets, diff)
	}
}

// cablesText is two modules as ibdiagnet --get_cable_info describes them, of copper and of light.
//
//go:embed testdata/cables.txt
var cablesText string

// Modules of cables have temperatures, and light of lanes that may be apart; a port that the fabric lacks is
// an error.
func TestReadCables(t *testing.T) {
	f := pair(t)
	c, problems, err := ReadCounters("in", []byte(cablesText), f, Options{})
	if err != nil || len(problems) > 0 || Recognize([]byte(cablesText)) != Cables {
		t.Fatal(err, problems)
	}
	for guid, want := range map[fabric.GUID]Line{0xa: {}, 0xb: {Celsius: 71, Spread: 20}} {
		n, _ := f.NodeByGUID(guid)
		if got := c.Lines[f.Port(n, 1)]; got.Celsius != want.Celsius || math.Abs(got.Spread-want.Spread) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", guid, got, want)
		}
	}
	for _, wrong := range []string{"Port=9", "Port=x"} {
		text := []byte(strings.Replace(cablesText, "Port=1", wrong, 1))
		if _, _, err := ReadCounters("in", text, f, Options{}); err == nil || !strings.HasPrefix(err.Error(), "in:2: ") {
			t.Errorf("%s: %v", wrong, err)
		}
		if c, problems, err = ReadCounters("in", text, f, Options{Lenient: true}); err != nil || len(problems) != 1 || c.Lines == nil {
			t.Errorf("%s, lenient: %v %v", wrong, err, problems)
		}
	}
}

// FuzzReadCounters: an error means no result, a lenient reader agrees and only fails for a text
// that is no reading, and all values are numbers from 0 on.
func FuzzReadCounters(f *testing.F) {
	fab := pair(f)
	f.Add([]byte(perfText))
	f.Add([]byte(errorsText))
	f.Add([]byte(cablesText))
	f.Add([]byte(strings.ReplaceAll(perfText, "Lid 4", "Lid 1")))
	f.Fuzz(func(t *testing.T, data []byte) {
		lenient, ok := readTwice(t, data, of(fab, ReadCounters), deeply, PerfQuery, QueryErrors, Cables)
		if !ok {
			return
		}
		for k := range CounterCount {
			for p := range fab.NumPorts() {
				v := lenient.Get(k, fabric.PortID(p))
				if !(v.N >= 0) || v.N > 0 && !v.Known || v.N > 1<<62*4 {
					t.Fatalf("%v is %v", k.Info().Name, v)
				}
			}
		}
	})
}
