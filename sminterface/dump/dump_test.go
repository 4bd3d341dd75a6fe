package dump

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

func TestMain(m *testing.M) {
	short.UseMemory()
	m.Run()
}

// oddFabric has what fabrics of one kind do not have: a router, channel
// adapters with two ports, several links between two switches, GUIDs that
// OpenSM orders otherwise, all widths and speeds that ibsim has, an enhanced
// port 0, other vendors, and descriptions that try the forms. port0 is whether
// the LMC is for the enhanced port 0, too.
func oddFabric(t testing.TB, lmc uint8, port0 bool) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	node := func(typ fabric.NodeType, guid fabric.GUID, ports fabric.PortNum, vendor uint32, device uint16, description string) int {
		return short.Must(b.AddNode(fabric.Node{Type: typ, GUID: guid, SystemGUID: guid ^ 0xff00, NumPorts: ports, VendorID: vendor, DeviceID: device, Description: description}))(t)
	}
	a := node(fabric.Switch, 0x200000, 36, 0x2c9, 0xb924, "switch {0} \u00e9t\u00e9")
	z := node(fabric.Switch, 0x8000000000200004, 8, 0x2c9, 9, "MF0;z } LID:0001 PN:01 } {:MQM8700/U1")
	y := node(fabric.Switch, 0x0102030405060708, 8, 0x2c9, 0, "")
	x := node(fabric.Switch, 0x0100000000000001, 8, 0x1234, 0xffff, "it's #1")
	b.Node(y).EnhancedPort0 = true
	b.Node(y).Description = "y"
	h := node(fabric.CA, 0x100000, 2, 0x2c9, 0x1003, "host 0,0 } LID:0001 PN:01 } {")
	i := node(fabric.CA, 0xf00000000010, 2, 0x2c9, 0x1b, strings.Repeat("0123456789", 7))
	j := node(fabric.CA, 0x100020, 1, 0x2c9, 0x1003, "host 'j'  HCA-1")
	r := node(fabric.Router, 0x300000, 1, 0x2c9, 0x1003, "rt 1")
	link := func(n1 int, p1 fabric.PortNum, n2 int, p2 fabric.PortNum, width uint8, speed fabric.Speed) {
		t.Helper()
		short.Check(t, b.Connect(n1, p1, n2, p2, fabric.Link{Width: width, Speed: speed}))
	}
	link(a, 1, z, 3, 4, fabric.SDR)
	link(a, 2, z, 2, 12, fabric.DDR)
	link(a, 3, y, 1, 8, fabric.QDR)
	link(z, 1, x, 1, 4, fabric.EDR)
	link(y, 2, x, 8, 4, fabric.HDR)
	link(a, 36, h, 1, 1, fabric.FDR)
	link(z, 8, h, 2, 4, fabric.QDR)
	link(x, 4, i, 1, 4, fabric.SDR)
	link(y, 5, j, 1, 4, fabric.HDR)
	link(a, 7, r, 1, 4, fabric.QDR)
	f := short.Must(b.Build())(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{LMC: int(lmc), EnhancedPort0: port0}))(t)
	return f
}

// withLIDs gives all end ports LIDs.
func withLIDs(t testing.TB, f *fabric.Fabric, err error) *fabric.Fabric {
	t.Helper()
	return short.Must(lft.AssignLIDs(short.Must(f, err)(t), lft.LIDOptions{LMC: lft.KeepLMC}))(t)
}

func meshFabric(t testing.TB, dims []int, wrap bool) *fabric.Fabric {
	t.Helper()
	return withLIDs(t, fabrictest.Grid(t, 1, wrap, dims...), nil)
}

// sortedRecords splits a guid2lid file into records and sorts them.
func sortedRecords(b []byte) []byte {
	list := strings.SplitAfter(string(b), "\n\n")
	slices.Sort(list)
	return []byte(strings.Join(list, ""))
}

// same compares what a real tool wrote with what we write.
func same(t testing.TB, name string, theirs, ours []byte) {
	t.Helper()
	short.EqualList(t, theirs, ours, name, "(-theirs +ours)")
}

// written is every text that we write for tables.
func written(t testing.TB, f *fabric.Fabric, tables *lft.Tables, opt WriteOptions) map[Form][]byte {
	t.Helper()
	return map[Form][]byte{
		LFTs:      text(t, func(w io.Writer) error { return WriteLFTs(w, f, tables, opt) }),
		IBRoute:   ibRoute(t, f, tables, opt),
		FDBs:      text(t, func(w io.Writer) error { return WriteFDBs(w, f, tables, opt) }),
		LIDMatrix: text(t, func(w io.Writer) error { return WriteLIDMatrix(w, f, tables, opt) }),
	}
}

// mustRead reads tables that have nothing wrong.
func mustRead(t testing.TB, name string, data []byte, f *fabric.Fabric) *lft.Tables {
	t.Helper()
	tables, problems, err := ReadLFTs(name, data, f, Options{})
	if err != nil || problems != nil {
		t.Fatalf("%s: %v, %v", name, err, problems)
	}
	return tables
}

// sameTables compares tables entry by entry.
func sameTables(t testing.TB, name string, want, got *lft.Tables) {
	t.Helper()
	if want.Switches() != got.Switches() || want.MaxLID() != got.MaxLID() {
		t.Fatalf("%s: tables of %d switches to LID %d, want %d to %d", name, got.Switches(), got.MaxLID(), want.Switches(), want.MaxLID())
	}
	for s := range fabric.NodeID(want.Switches()) {
		short.EqualList(t, want.Row(s), got.Row(s), name, "switch", s)
	}
}

// TestAgainstOpenSM lets OpenSM route fabrics and compares each file that it
// writes with ours for its tables.
func TestAgainstOpenSM(t *testing.T) {
	fatTree, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})
	fatTree = withLIDs(t, fatTree, err)
	for _, c := range short.Part(3, []struct {
		name   string
		f      *fabric.Fabric
		engine string
		lmc    uint8
	}{
		{"odd", oddFabric(t, 0, false), "minhop", 0},
		{"odd, LMC 2", oddFabric(t, 2, false), "minhop", 2},
		{"odd, LMC 1 on port 0", oddFabric(t, 1, true), "minhop", 1},
		{"mesh", meshFabric(t, []int{4, 3}, false), "dor", 0},
		{"torus", meshFabric(t, []int{5, 5}, true), "minhop", 0},
		{"fat tree", fatTree, "minhop", 0},
		{"fat tree, up*/down*", fatTree, "updn", 0},
		{"fat tree, ftree", fatTree, "ftree", 0},
	}) {
		t.Run(c.name, func(t *testing.T) {
			s := startSimulator(t, c.f)
			s.opensm(ibsim.OpenSMConfig{Engine: c.engine, LMC: c.lmc, LMCPort0: strings.Contains(c.name, "port 0")})
			dumped := s.file("opensm-lfts.dump")
			tables := mustRead(t, "opensm-lfts.dump", dumped, c.f)
			ours := written(t, c.f, tables, WriteOptions{})
			same(t, "opensm-lfts.dump", dumped, ours[LFTs])
			same(t, "opensm.fdbs", s.file("opensm.fdbs"), ours[FDBs])
			if c.engine == "minhop" || c.engine == "dor" { // others leave out ports that their rules forbid
				same(t, "opensm-lid-matrix.dump", s.file("opensm-lid-matrix.dump"), ours[LIDMatrix])
			}
			list := bytes.ReplaceAll(s.file("opensm-subnet.lst"), []byte("-SM Ports:"), []byte(" Ports:"))
			same(t, "opensm-subnet.lst", list, text(t, func(w io.Writer) error { return WriteSubnetList(w, c.f) }))
			same(t, "guid2lid", sortedRecords(s.file("cache/guid2lid")), sortedRecords(text(t, func(w io.Writer) error { return WriteGUID2LID(w, c.f) })))
			sameTables(t, "opensm.fdbs", tables, mustRead(t, "opensm.fdbs", s.file("opensm.fdbs"), c.f))
		})
	}
}

// randomTables are tables of a fabric's shortest paths with some entries
// changed at random to other ports, port 0 and no path among them.
func randomTables(t testing.TB, f *fabric.Fabric, changes int, seed uint64) *lft.Tables {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 0))
	hops := f.Distances()
	tables := lft.NewTables(f.NumSwitches(), f.MaxLID())
	for s := range fabric.NodeID(f.NumSwitches()) {
		row := tables.Row(s)
		for l := range row {
			p := f.LIDPort(fabric.LID(l))
			if p == fabric.NoPort {
				continue
			}
			target := f.Owner(p)
			if !f.IsSwitch(target) {
				if peer := f.Peer(p); f.Owner(peer) == s {
					row[l] = f.Num(peer)
					continue
				}
				target = f.Owner(f.Peer(p))
			}
			if target == s {
				row[l] = fabric.ManagementPort
				continue
			}
			ports, to := f.SwitchLinks(s)
			for i, u := range to {
				if hops.To(target)[u] < hops.To(target)[s] {
					row[l] = f.Num(ports[i])
				}
			}
		}
	}
	for range changes {
		s := fabric.NodeID(rnd.IntN(f.NumSwitches()))
		row := tables.Row(s)
		l := 1 + rnd.IntN(len(row)-1)
		row[l] = fabric.PortNum(rnd.IntN(int(f.Node(s).NumPorts) + 2))
		if row[l] > f.Node(s).NumPorts {
			row[l] = fabric.NoPath
		}
	}
	return tables
}

// TestOpenSMLoads lets OpenSM load what we write and compares what it then
// dumps, which must be the very same: tables of shortest paths, and tables
// with errors of every kind, which OpenSM takes as they are.
func TestOpenSMLoads(t *testing.T) {
	fatTree, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2})
	fatTree = withLIDs(t, fatTree, err)
	for _, c := range short.Part(2, []struct {
		name    string
		f       *fabric.Fabric
		lmc     uint8
		changes int
	}{
		{"odd", oddFabric(t, 0, false), 0, 0},
		{"odd, wrong", oddFabric(t, 0, false), 0, 8},
		{"odd, LMC 2, wrong", oddFabric(t, 2, false), 2, 30},
		{"mesh", meshFabric(t, []int{4, 4}, false), 0, 0},
		{"torus, wrong", meshFabric(t, []int{5, 4}, true), 0, 300},
		{"fat tree, wrong", fatTree, 0, 100},
	}) {
		for _, lean := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lean %t", c.name, lean), func(t *testing.T) {
				tables := randomTables(t, c.f, c.changes, 1)
				files := written(t, c.f, tables, WriteOptions{Lean: lean})
				s := startSimulator(t, c.f)
				dir := t.TempDir()
				lfts, matrix := filepath.Join(dir, "lfts"), filepath.Join(dir, "matrix")
				for name, form := range map[string]Form{lfts: LFTs, matrix: LIDMatrix} {
					writeFile(t, name, files[form])
				}
				s.opensm(ibsim.OpenSMConfig{Engine: "file", LFTs: lfts, LIDMatrix: matrix, LMC: c.lmc})
				files = written(t, c.f, tables, WriteOptions{})
				same(t, "opensm-lfts.dump", s.file("opensm-lfts.dump"), files[LFTs])
				same(t, "opensm-lid-matrix.dump", s.file("opensm-lid-matrix.dump"), files[LIDMatrix])
				same(t, "opensm.fdbs", s.file("opensm.fdbs"), files[FDBs])
			})
		}
	}
}

// ibRoute is what ibroute prints of all switches in OpenSM's order.
func ibRoute(t testing.TB, f *fabric.Fabric, tables *lft.Tables, opt WriteOptions) []byte {
	t.Helper()
	list := short.Must(switchesToWrite(f, nil))(t)
	return ibRouteText(f, tables, opt.Lean, list...)
}

// TestAgainstIBRoute compares what we write with what ibroute prints of the
// same tables, and reads all that ibroute and dump_fts print.
func TestAgainstIBRoute(t *testing.T) {
	for _, c := range short.Part(1, []struct {
		name string
		f    *fabric.Fabric
		lmc  uint8
	}{
		{"odd, LMC 2", oddFabric(t, 2, false), 2},
		{"mesh", meshFabric(t, []int{4, 3}, false), 0},
		{"mesh to LID 64", meshFabric(t, []int{8, 4}, false), 0},
	}) {
		t.Run(c.name, func(t *testing.T) {
			s := startSimulator(t, c.f)
			s.opensm(ibsim.OpenSMConfig{Engine: "minhop", LMC: c.lmc})
			tables := mustRead(t, "opensm-lfts.dump", s.file("opensm-lfts.dump"), c.f)
			visible := tables // what ibroute sees of them
			if int(tables.MaxLID())%lft.BlockSize == 0 {
				visible = lft.NewTables(tables.Switches(), tables.MaxLID())
				for sw := range fabric.NodeID(tables.Switches()) {
					copy(visible.Row(sw), tables.Row(sw)[:tables.MaxLID()])
				}
			}
			list := short.Must(switchesToWrite(c.f, nil))(t)
			for _, options := range []string{"", "-n", "-a", "-na"} {
				var printed []byte
				for _, sw := range list {
					// ibroute does without what it gets no answer for in a second.
					arg := []string{"-t", "10000", fmt.Sprint(c.f.LID(c.f.PortBase(sw)))}
					if options != "" {
						arg = append([]string{options}, arg...)
					}
					out := s.output("ibroute", arg...)
					// Who has a LID it asks with 100 ms of its own (dump_lid of ibroute.c), which a busy machine
					// exceeds; -a asks for LIDs of none as well.
					for again := 0; bytes.Contains(out, []byte("unknown node and type")) && !strings.Contains(options, "a") && again < 20; again++ {
						out = s.output("ibroute", arg...)
					}
					printed = append(printed, out...)
				}
				sameTables(t, "ibroute "+options, visible, mustRead(t, "ibroute", printed, c.f))
				if !strings.Contains(options, "a") {
					ours := ibRoute(t, c.f, visible, WriteOptions{Lean: options == "-n"})
					same(t, "ibroute "+options, printed, ours)
				}
				args := append(strings.Fields(options), "-t", "10000")
				sameTables(t, "dump_fts "+options, visible, mustRead(t, "dump_fts", s.output("dump_fts", args...), c.f))
			}
			ours := ibRoute(t, c.f, tables, WriteOptions{})
			sameTables(t, "our own", tables, mustRead(t, "our own", ours, c.f))
		})
	}
}

// writeFile makes a file that has data.
func writeFile(t testing.TB, name string, data []byte) {
	t.Helper()
	short.Check(t, os.WriteFile(name, data, 0o600))
}

// The order of the hosts has a line each, whatever their descriptions have in them.
func TestWriteCAOrder(t *testing.T) {
	var b fabric.Builder
	for i, n := range []fabric.Node{{GUID: 1, Type: fabric.Switch, NumPorts: 4}, {GUID: 2, Type: fabric.CA, NumPorts: 1, Description: "a\nb"}} {
		short.Must(b.AddNode(n))(t)
		short.Check(t, b.SetPort(i, fabric.PortNum(i), 0, fabric.LID(10+i), 0))
	}
	short.Check(t, b.Connect(0, 1, 1, 1, fabric.Link{}))
	f := short.Must(b.Build())(t)
	got := string(text(t, func(w io.Writer) error { return WriteCAOrder(w, f, []fabric.PortID{fabric.NoPort, f.CAPorts()[0]}) }))
	short.Equal(t, got, "0xFFFF\tDUMMY\n0x000b\ta b\n")
}

// sameWithCRLF reads forwarding tables a second time with lines that end in CRLF. No
// program prints those, so that the tuned loops leave them to the readers of the forms:
// error, problems and tables have to be the same.
func sameWithCRLF(t testing.TB, data []byte, f *fabric.Fabric) {
	t.Helper()
	if bytes.ContainsRune(data, '\r') {
		return
	}
	slow := bytes.ReplaceAll(data, nl, []byte("\r\n"))
	for _, opt := range []Options{{}, {Lenient: true}} {
		tables, problems, err := ReadLFTs("in", data, f, opt)
		tables2, problems2, err2 := ReadLFTs("in", slow, f, opt)
		switch {
		case (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error():
			t.Fatalf("%v\nwith CRLF: %v", err, err2)
		case problemLines(problems) != problemLines(problems2):
			t.Fatalf("%s\nwith CRLF:\n%s", problemLines(problems), problemLines(problems2))
		case err == nil && rows(tables) != rows(tables2):
			t.Fatalf("%s\nwith CRLF:\n%s", rows(tables), rows(tables2))
		}
		for i := range problems {
			short.MustEqual(t, problems[i].Text, problems2[i].Text, "with CRLF")
		}
	}
}

// Tables in which a byte is another, or is missing, or a line comes twice, are read by
// the tuned loops as by the readers of their forms.
func TestReadDamaged(t *testing.T) {
	f := meshFabric(t, []int{4, 3}, true)
	tables := randomTables(t, f, 100, 5)
	texts := written(t, f, tables, WriteOptions{})
	delete(texts, LIDMatrix)
	texts[Unknown] = written(t, f, tables, WriteOptions{Lean: true})[LFTs]
	broken := slices.Clone(texts[FDBs])
	broken[bytes.Index(broken, []byte("   : yes\n"))-2] = '\n'
	sameWithCRLF(t, broken, f)
	random := rand.New(rand.NewPCG(5, 6))
	for _, form := range slices.Sorted(maps.Keys(texts)) {
		text := texts[form]
		sameWithCRLF(t, text, f)
		for range short.Of(300, 30) {
			at := random.IntN(len(text))
			data := slices.Clone(text)
			switch random.IntN(4) {
			case 0:
				data = slices.Delete(data, at, at+1)
			case 1: // a line for a second time, further down
				line, next := cutLine(data, at)
				data = slices.Insert(data, next, append(slices.Clone(line), '\n')...)
			case 2: // whatever else the text has
				data[at] = data[random.IntN(len(data))]
			default:
				data[at] = " \n\t0159aAfFx:-.g"[random.IntN(16)]
			}
			sameWithCRLF(t, data, f)
		}
	}
}

// TestMistyped: a topology that lists its switches as adapters is refused with its line, also where the read
// is lenient; with one such switch among others a lenient read goes on.
func TestMistyped(t *testing.T) {
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 16, Pods: []int{4}, Hosts: 3, Spines: 2}))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	parse := func(data []byte, lenient bool) (*fabric.Fabric, error) {
		g, _, err := topology.Parse("x", data, topology.Options{Lenient: lenient})
		return g, err
	}
	guid := f.Node(0).GUID.String()[2:]
	for name, x := range map[string]struct {
		good  []byte
		which string // of a line of a switch, with $ for its GUID; what stands before the type and the type are groups
		as    string
		read  func(data []byte, lenient bool) (*fabric.Fabric, error)
	}{
		"opensm-subnet.lst": {text(t, func(w io.Writer) error { return WriteSubnetList(w, f) }), `({ )(SW)( Ports:\w+ SystemGUID:\w+ NodeGUID:$)`, "CA",
			func(data []byte, lenient bool) (*fabric.Fabric, error) {
				g, _, err := topology.Parse("x", data, topology.Options{Lenient: lenient})
				return g, err
			}},
		"ibnetdiscover -p": {portList(f), `()(SW)( +\d+ +\d+ 0x$)`, "CA", parse},
		"ibnetdiscover":    {topology.Append(nil, f), `(?m)(^)(Switch)(\s+\d+ "S-$)`, "Ca", parse},
	} {
		mistype := func(guid string) []byte {
			return regexp.MustCompile(strings.ReplaceAll(x.which, "$", guid)).ReplaceAll(x.good, []byte("${1}"+x.as+"${3}"))
		}
		for _, lenient := range []bool{false, true} {
			var at *fabric.ParseError
			if g, err := x.read(mistype(`\w{16}`), lenient); g != nil || !errors.As(err, &at) || at.Line == 0 || !strings.Contains(err.Error(), "switches are listed as another type: node 0x") {
				t.Errorf("%s, lenient %v: %v, want what is listed wrong, with its line", name, lenient, err)
			}
			one := mistype(guid)
			if bytes.Equal(one, x.good) {
				t.Fatalf("%s: nothing is changed", name)
			}
			if g, err := x.read(one, lenient); lenient == (err != nil) || lenient && g.NumSwitches() != f.NumSwitches()-1 {
				t.Errorf("%s, one switch, lenient %v: %v", name, lenient, err)
			}
		}
	}
}

// portList returns the rows of ibnetdiscover -p, each cable from both ends.
func portList(f *fabric.Fabric) (b []byte) {
	side := func(p fabric.PortID) string {
		word, end := "CA", p
		if n := f.Owner(p); f.IsSwitch(n) {
			word, end = "SW", f.PortBase(n)
		}
		return fmt.Sprintf("%s %5d %2d %s", word, f.LID(end), f.Num(p), f.PortGUID(end))
	}
	for _, c := range f.Cables() {
		for _, p := range []fabric.PortID{c.A, c.B} {
			q := f.Peer(p)
			b = fmt.Appendf(b, "%s 4x SDR - %s ( '%s' - '%s' )\n", side(p), side(q), f.Node(f.Owner(p)).Description, f.Node(f.Owner(q)).Description)
		}
	}
	return b
}

// ibRouteText prints as ibroute of infiniband-diags 44 does, one switch after the other and
// each addressed by its LID; brief is its option -n. No switches stand for all. Unlike
// ibroute it does not lose the last row when the highest LID is a multiple of 64.
func ibRouteText(f *fabric.Fabric, t *lft.Tables, brief bool, switches ...fabric.NodeID) []byte {
	var b []byte
	if len(switches) == 0 {
		for s := range fabric.NodeID(f.NumSwitches()) {
			switches = append(switches, s)
		}
	}
	for _, s := range switches {
		node := f.Node(s)
		b = fmt.Appendf(b, "Unicast lids [0x0-%#x] of switch Lid %d guid %s (%s):\n  Lid  Out   Destination\n       Port     Info \n",
			t.MaxLID(), f.LID(f.PortBase(s)), node.GUID, printed(node.Description))
		rows := 0
		told := fabric.NoPort // the port whose owner the rows have told
		for l, p := range t.Row(s) {
			if p > node.NumPorts {
				continue
			}
			rows++
			owner := f.LIDPort(fabric.LID(l))
			b = fmt.Appendf(b, "0x%04x %03d", l, p)
			switch {
			case brief:
				b = append(b, " \n"...)
			case owner == fabric.NoPort:
				b = append(b, " : (unknown node and type)\n"...)
			case owner == told: // ibroute asks only for the first LID of a port
				b = fmt.Appendf(b, " : (path #%d out of %d: portguid %s)\n", l-int(f.LID(owner))+1, 1<<f.LMC(owner), f.PortGUID(owner))
			default:
				n := f.Node(f.Owner(owner))
				b = fmt.Appendf(b, " : (%s portguid %s: '%s')\n", n.Type, f.PortGUID(owner), printed(n.Description))
			}
			told = owner
		}
		b = fmt.Appendf(b, "%d valid lids dumped \n", rows)
	}
	return b
}

// printed is a node description as the tools print it: 63 bytes, with blanks for what
// is not printable.
func printed(description string) string {
	description, _, _ = strings.Cut(description[:min(len(description), 63)], "\x00")
	b := []byte(description)
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = ' '
		}
	}
	return string(b)
}

// smpQueryText prints as smpquery sl2vl LID PORT does (infiniband-diags, smpquery.c)
// for ports: of port 0 of a switch, what it prints for each port with a cable. No ports
// stand for all end ports. It leaves out what has no LID.
func smpQueryText(s *lft.SL2VL, ports ...fabric.PortID) []byte {
	f := s.Fabric()
	var b []byte
	if len(ports) == 0 {
		f.EndPorts(func(p fabric.PortID) { ports = append(ports, p) })
	}
	for _, p := range ports {
		if f.LID(p) == 0 {
			continue
		}
		head := fmt.Sprintf("# SL2VL table: Lid %d\n#                 SL: | 0| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|15|\n", f.LID(p))
		row := func(in, out fabric.PortNum, m *lft.VLMap) {
			b = fmt.Appendf(b, "ports: in %2d, out %2d: |", in, out)
			for _, v := range m {
				b = fmt.Appendf(b, "%2d|", v)
			}
			b = append(b, '\n')
		}
		n := f.Owner(p)
		if !f.IsSwitch(n) {
			b = append(b, head...)
			row(0, 0, s.At(0, p))
			continue
		}
		for out := fabric.PortNum(1); out <= f.Node(n).NumPorts; out++ {
			if f.Peer(f.Port(n, out)) == fabric.NoPort {
				continue
			}
			b = append(b, head...)
			for in := fabric.PortNum(0); in <= f.Node(n).NumPorts; in++ {
				row(in, out, s.At(in, f.Port(n, out)))
			}
		}
	}
	return b
}

// readLIDMatrix reads opensm-lid-matrix.dump: the hop counts by switch, LID and
// port, 255 for no path, with the least of a row for port 0. An error is a line that is
// nothing of the form.
func readLIDMatrix(text []byte) (map[fabric.GUID]map[fabric.LID][]uint8, error) {
	matrix := make(map[fabric.GUID]map[fabric.LID][]uint8)
	var rows map[fabric.LID][]uint8
	for line := range strings.Lines(string(text)) {
		if digits, ok := strings.CutPrefix(line, "Switch: guid "); ok {
			guid, err := fabric.ParseGUID(strings.TrimSpace(digits))
			if err != nil {
				return nil, err
			}
			rows = make(map[fabric.LID][]uint8)
			matrix[guid] = rows
			continue
		}
		var lid fabric.LID
		row, _, _ := strings.Cut(line, "#")
		digits, columns, _ := strings.Cut(row, ":")
		if _, err := fmt.Sscanf(digits, "0x%04x", &lid); err != nil || rows == nil || rows[lid] != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		hops, err := hex.DecodeString(strings.Join(strings.Fields(columns), ""))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		rows[lid] = hops
	}
	return matrix, nil
}
