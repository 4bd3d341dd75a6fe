package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// mustReadSL2VL reads SL-to-VL tables that have nothing wrong.
func mustReadSL2VL(t testing.TB, name string, data []byte, f *fabric.Fabric) *lft.SL2VL {
	t.Helper()
	s, problems, err := ReadSL2VL(name, data, f, Options{})
	if err != nil || problems != nil {
		t.Fatalf("%s: %v, %v", name, err, problems)
	}
	return s
}

// sameWays compares tables where packets can pass.
func sameWays(t testing.TB, name string, want, got *lft.SL2VL) {
	t.Helper()
	for in, out := range want.PortPairs() {
		short.MustEqual(t, *want.At(in, out), *got.At(in, out), name, "from port", in, "to", want.Fabric().PortName(out))
	}
}

// sl2vlTexts is every text that we write for SL-to-VL tables.
func sl2vlTexts(t rapid.TB, s *lft.SL2VL) map[Form][]byte {
	t.Helper()
	return map[Form][]byte{
		SL2VL:         text(t, func(w io.Writer) error { return WriteSL2VL(w, s, WriteOptions{}) }),
		SMPQuerySL2VL: smpQuery(t, s, nil),
	}
}

// smpQuery is what smpquery prints of these switches, nil for all and the CA and router
// ports, in OpenSM's order.
func smpQuery(t rapid.TB, s *lft.SL2VL, only []fabric.NodeID) []byte {
	t.Helper()
	ports := short.Must(sl2vlPorts(s.Fabric(), only))(t)
	return smpQueryText(s, ports...)
}

// smpquery asks the simulated ports for their tables, in the order of
// smpQuery and with its choice.
func (s *simulator) smpquery(f *fabric.Fabric, only []fabric.NodeID) []byte {
	s.t.Helper()
	var all []byte
	ports := short.Must(sl2vlPorts(f, only))(s.t)
	for _, p := range ports {
		n := f.Owner(p)
		lid := strconv.Itoa(int(f.LID(p)))
		if !f.IsSwitch(n) {
			all = append(all, s.output("smpquery", "sl2vl", lid)...)
			continue
		}
		for out := fabric.PortNum(1); out <= f.Node(n).NumPorts; out++ {
			if f.Peer(f.Port(n, out)) != fabric.NoPort {
				all = append(all, s.output("smpquery", "sl2vl", lid, strconv.Itoa(int(out)))...)
			}
		}
	}
	return all
}

// TestQoSOptions gives schemes to OpenSM by its options, and compares byte for
// byte what it then dumps, and what smpquery says that the ports have.
func TestQoSOptions(t *testing.T) {
	f := oddFabric(t, 0, false)
	for _, c := range short.Part(2, []struct {
		name string
		make func() (*lft.SL2VL, error)
	}{
		{"spread, 4 VLs", func() (*lft.SL2VL, error) { return lft.SpreadSL2VL(f, 4) }},
		{"identity is what OpenSM does by itself", func() (*lft.SL2VL, error) { return lft.IdentitySL2VL(f, 8) }},
		{"identity, 8 VLs", func() (*lft.SL2VL, error) { return lft.IdentitySL2VL(f, 8) }},
		{"spread, 1 VL", func() (*lft.SL2VL, error) { return lft.SpreadSL2VL(f, 1) }},
		{"spread, 2 VLs", func() (*lft.SL2VL, error) { return lft.SpreadSL2VL(f, 2) }},
		{"one map for each class", func() (*lft.SL2VL, error) {
			s := lft.NewSL2VL(f, lft.VLMap{7, 6, 5, 4, 3, 2, 1, 0, 15, 15, 0, 0, 1, 1, 2, 15})
			for _, p := range f.CAPorts() {
				if f.Node(f.Owner(p)).Type == fabric.CA {
					s.SetOut(p, lft.ConstantVL(3))
				} else {
					s.SetOut(p, lft.ConstantVL(5))
				}
			}
			return s, nil
		}},
	}) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := short.Must(c.make())(t)
			lines := short.Must(QoSOptions(want))(t)
			if strings.Contains(c.name, "by itself") {
				lines = lines[:1]
			}
			s := startSimulator(t, f)
			s.opensm(ibsim.OpenSMConfig{Engine: "minhop", Options: lines})
			ours := sl2vlTexts(t, want)
			dumped := s.file("opensm-sl2vl.dump")
			same(t, "opensm-sl2vl.dump", dumped, ours[SL2VL])
			sameWays(t, "opensm-sl2vl.dump", want, mustReadSL2VL(t, "opensm-sl2vl.dump", dumped, f))
			queried := s.smpquery(f, nil)
			same(t, "smpquery sl2vl", queried, ours[SMPQuerySL2VL])
			sameWays(t, "smpquery sl2vl", want, mustReadSL2VL(t, "smpquery", queried, f))

			// The way from an enhanced port 0 to itself has an option of its own.
			y, _ := f.SwitchByGUID(0x0102030405060708)
			out := s.output("smpquery", "sl2vl", strconv.Itoa(int(f.LID(f.PortBase(y)))), "0")
			for line := range bytes.Lines(out) {
				if row, err := parseSL2VLRow(bytes.TrimSpace(line), portsIn, ", out ", ": |", '|', errSMPQueryRow); err == nil && row.in == 0 && row.vls != *want.At(0, f.PortBase(y)) {
					t.Errorf("from port 0 to port 0: %v, want %v", row.vls, want.At(0, f.PortBase(y)))
				}
			}
			arb := s.output("smpquery", "vlarb", strconv.Itoa(int(f.LID(0))), "1")
			if m := want.At(0, f.Port(0, 1)); lft.LeastVLCount(m.VLs()) == 2 && !bytes.Contains(arb, []byte("VL    : |0x0 |0x1 |0x0 |0x0 |0x0 |0x0 |0x0 |0x0 |\nWEIGHT: |0x40|0x40|0x0 |")) {
				t.Errorf("VL arbitration:\n%s", arb)
			}
		})
	}
}

// TestTorus2QoS reads tables that differ by way in and way out, which OpenSM's
// engine torus-2QoS makes, from its dump and from the ports, and writes them as
// the tools do.
func TestTorus2QoS(t *testing.T) {
	f := meshFabric(t, []int{5, 5}, true)
	s := startSimulator(t, f)
	guid := func(x, y int) string { return f.Node(fabric.NodeID(5*x + y)).GUID.String() }
	short.Check(t, os.MkdirAll(s.dir, 0o700))
	conf := fmt.Sprintf("torus 5 5 1\nxp_link %s %s\nyp_link %s %s\n", guid(0, 0), guid(1, 0), guid(0, 0), guid(0, 1))
	writeFile(t, filepath.Join(s.dir, "torus-2QoS.conf"), []byte(conf))
	s.opensm(ibsim.OpenSMConfig{Engine: "torus-2QoS", Options: []string{"qos TRUE"}})
	dumped := s.file("opensm-sl2vl.dump")
	tables := mustReadSL2VL(t, "opensm-sl2vl.dump", dumped, f)
	ours := sl2vlTexts(t, tables)
	same(t, "opensm-sl2vl.dump", dumped, ours[SL2VL])
	few := []fabric.NodeID{0, 7, 24}
	queried := s.smpquery(f, few)
	same(t, "smpquery sl2vl", queried, smpQuery(t, tables, few))
	got, problems, err := ReadSL2VL("smpquery", queried, f, Options{})
	if err != nil || len(problems) != f.NumSwitches()-len(few)+1 {
		t.Fatalf("%v, %v", err, problems)
	}
	for in, out := range tables.PortPairs() {
		if n := f.Owner(out); slices.Contains(few, n) && *tables.At(in, out) != *got.At(in, out) {
			t.Errorf("from port %d to %s: %v, want %v", in, f.PortName(out), got.At(in, out), tables.At(in, out))
		}
	}
	maps := make(map[lft.VLMap]bool)
	for in, out := range tables.PortPairs() {
		maps[*tables.At(in, out)] = true
	}
	if len(maps) < 3 {
		t.Errorf("only %d different maps", len(maps))
	}
	_, err = QoSOptions(tables)
	var ports [4]fabric.PortNum
	var vls, guids [2]string
	const way = "VLs %s from port %d to port %d of switch %s "
	said := regexp.MustCompile(`"(\\.|[^"\\])*"`).ReplaceAllString(fmt.Sprint(err), "")
	if _, err := fmt.Sscanf(said, "OpenSM has one option qos_swe_sl2vl for both "+way+" and "+way, &vls[0], &ports[0], &ports[1], &guids[0], &vls[1], &ports[2], &ports[3], &guids[1]); err != nil {
		t.Fatalf("%v: %v", said, err)
	}
	for i, want := range vls {
		guid, err := fabric.ParseGUID(guids[i])
		if s, ok := f.SwitchByGUID(guid); err != nil || !ok || vls[0] == vls[1] || vlList(tables.At(ports[2*i], f.Port(s, ports[2*i+1]))) != want {
			t.Errorf("%v, %v", said, err)
		}
	}
}

// torusDOR is dimension-order routing on a torus of generated meshes, the
// shortest way round and eastward or northward on a tie, with the path SLs and
// SL-to-VL tables that keep it free of credit loops: bit d of the SL says that
// the path passes the cable that closes dimension d, and is the VL of all hops
// along d.
func torusDOR(t testing.TB, f *fabric.Fabric, m, n int) (*lft.Tables, *lft.PathSLs, *lft.SL2VL) {
	t.Helper()
	tables := lft.NewTables(f.NumSwitches(), f.MaxLID())
	paths := lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
	// way is the port that leads from a to b on a ring of size; wraps is
	// whether the path passes the cable that closes it.
	way := func(a, b, size, plus, minus int) (port int, wraps bool) {
		if d := (b - a + size) % size; 2*d <= size {
			return plus, a+d >= size
		}
		return minus, b > a
	}
	for s := range m * n {
		x, y := s/n, s%n
		sls := make([]fabric.SL, int(f.MaxLID())+1)
		for l, p := range f.LIDPorts() {
			if p == fabric.NoPort {
				continue
			}
			owner := f.Owner(p)
			out := 0
			if !f.IsSwitch(owner) {
				out = 5
				owner = f.Owner(f.Peer(p))
			}
			u, v := int(owner)/n, int(owner)%n
			yPort, yWraps := way(y, v, n, 2, 4)
			if y != v {
				out = yPort
				if yWraps {
					sls[l] |= 2
				}
			}
			xPort, xWraps := way(x, u, m, 1, 3)
			if x != u {
				out = xPort
				if xWraps {
					sls[l] |= 1
				}
			}
			tables.Row(fabric.NodeID(s))[l] = fabric.PortNum(out)
		}
		paths.SetRow(sls, fabric.NodeID(s))
	}
	vls := lft.NewSL2VL(f, lft.ConstantVL(0))
	for s := range fabric.NodeID(f.NumSwitches()) {
		for port := fabric.PortNum(1); port <= 4; port++ {
			var byBit lft.VLMap
			for sl := range byBit {
				byBit[sl] = fabric.VL(sl >> ((port - 1) % 2) & 1)
			}
			vls.SetOut(f.Port(s, port), byBit)
		}
	}
	return tables, paths, vls
}

// ibdmchk runs it in a folder and gives its verdict on credit loops. Its
// status says nothing: now and then it crashes once all is printed.
func ibdmchk(t *testing.T, dir string, arg ...string) string {
	t.Helper()
	short.NeedPrograms(t)
	program := short.Must(ibsim.Find("ibdmchk"))(t)
	cmd := exec.CommandContext(t.Context(), program, append([]string{"-s", "subnet.lst", "-f", "fdbs", "-m", "mcfdbs"}, arg...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var verdict []string
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "-E-") || strings.Contains(line, "credit loops") || strings.Contains(line, "Credit Loops") {
			verdict = append(verdict, line)
		}
	}
	return strings.Join(verdict, "\n")
}

// TestAgainstIBDM has ibdmchk find the credit loops of a torus, none with our
// path SLs and SL-to-VL tables, and one again when
// a single path has another SL or a single switch other VLs.
func TestAgainstIBDM(t *testing.T) {
	const size = 8
	f := meshFabric(t, []int{size, size}, true)
	tables, paths, vls := torusDOR(t, f, size, size)
	dir := t.TempDir()
	put := func(name string, write func(io.Writer) error) {
		t.Helper()
		writeFile(t, filepath.Join(dir, name), text(t, write))
	}
	putPaths := func(name string, p *lft.PathSLs) {
		t.Helper()
		put(name, func(w io.Writer) error { return WriteIBDMPathSLs(w, f, p) })
	}
	put("subnet.lst", func(w io.Writer) error { return WriteSubnetList(w, f) })
	put("fdbs", func(w io.Writer) error { return WriteFDBs(w, f, tables, WriteOptions{}) })
	put("mcfdbs", func(io.Writer) error { return nil })
	putPaths("psl", paths)
	put("sl2vl", func(w io.Writer) error { return WriteSL2VL(w, vls, WriteOptions{}) })
	// One path from 6,3 to 1,3 that passes the closing cable on VL 0, and the
	// same for all paths to the north of one switch by their VLs.
	at := fabric.NodeID(6*size + 3)
	row := bytes.Clone(slBytes(paths.Row(at)))
	to := f.LID(f.Peer(f.Port(fabric.NodeID(1*size+3), 5)))
	short.MustEqual(t, row[to], 1, "SL", "from 6,3 to 1,3, want 1")
	row[to] = 0
	wrong := lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
	for s := range fabric.NodeID(f.NumSwitches()) {
		wrong.SetRow(paths.Row(s), s)
	}
	wrong.SetRow(bytesSL(row), at)
	putPaths("psl-wrong", wrong)
	wrongVLs := vls.Clone()
	wrongVLs.SetOut(f.Port(at, 1), lft.ConstantVL(0))
	wrongVLs.SetOut(f.Port(at+size, 1), lft.ConstantVL(0))
	wrongVLs.SetOut(f.Port(3, 1), lft.ConstantVL(0))
	put("sl2vl-wrong", func(w io.Writer) error { return WriteSL2VL(w, wrongVLs, WriteOptions{}) })

	const (
		loop = "-E- credit loops in routing"
		none = "-I- no credit loops found"
	)
	for _, c := range []struct {
		arg  []string
		want string
	}{
		{nil, "1 SLs, 1 VLs used.\n" + loop},
		{[]string{"-c", "psl", "-d", "sl2vl"}, "4 SLs, 2 VLs used.\n" + none},
		{[]string{"-c", "psl-wrong", "-d", "sl2vl"}, "4 SLs, 2 VLs used.\n" + loop},
		{[]string{"-c", "psl", "-d", "sl2vl-wrong"}, "4 SLs, 2 VLs used.\n" + loop},
	} {
		const analyzing = "-I- Analyzing Fabric for Credit Loops "
		short.Equal(t, ibdmchk(t, dir, c.arg...), analyzing+c.want, c.arg)
	}

	data := short.Must(os.ReadFile(filepath.Join(dir, "psl")))(t)
	got, problems, err := ReadPathSLs("psl", data, f, Options{})
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		for l, p := range f.LIDPorts() {
			if p != fabric.NoPort && !f.IsSwitch(f.Owner(p)) && f.Owner(f.Peer(p)) != s && got.Row(s)[l] != paths.Row(s)[l] {
				t.Fatalf("switch %d LID %d: SL %d, want %d", s, l, got.Row(s)[l], paths.Row(s)[l])
			}
		}
	}
}

func slBytes(row []fabric.SL) []byte {
	b := make([]byte, len(row))
	for i, v := range row {
		b[i] = byte(v)
	}
	return b
}

func bytesSL(b []byte) []fabric.SL {
	row := make([]fabric.SL, len(b))
	for i, v := range b {
		row[i] = fabric.SL(v)
	}
	return row
}

// Tables of pair: every way of a switch, and the hosts.
const (
	rulers   = slHeads + "\n" + slRuler + "\n"
	dumpEnd  = slRuler + "\n\n"
	dumpA    = "Switch 0x000000000000000a, base LID 1, \"a\"\n" + rulers + dumpRows + dumpEnd
	dumpB    = "Switch 0x000000000000000b, base LID 2, \"b\"\n" + rulers + dumpRows + dumpEnd
	dumpC    = "Channel Adapter 0x00000000000000c1, base LID 3, \"c\"\n" + rulers + "0   0   : 0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  3  \n" + dumpEnd
	dumpD    = "Channel Adapter 0x00000000000000d1, base LID 4, \"d\"\n" + rulers + "0   0   : 4  4  4  4  4  4  4  4  4  4  4  4  4  4  4  4  \n" + dumpEnd
	dumpRows = "0   1   : 0  1  0  1  0  1  0  1  0  1  0  1  0  1  0  15 \n" +
		"1   1   : 1  1  0  1  0  1  0  1  0  1  0  1  0  1  0  15 \n" +
		"2   1   : 2  1  0  1  0  1  0  1  0  1  0  1  0  1  0  15 \n" +
		"3   1   : 0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n" +
		"4   1   : 0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n" +
		"0   2   : 5  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n" +
		"1   2   : 6  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n" +
		"2   2   : 7  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n" +
		"3   2   : 0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n" +
		"4   2   : 0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0  \n"
	dumpAll = dumpA + dumpB + dumpC + dumpD

	queryA = "# SL2VL table: Lid 1\n#                 SL: | 0| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|15|\n" +
		"ports: in  0, out  1: | 0| 1| 0| 1| 0| 1| 0| 1| 0| 1| 0| 1| 0| 1| 0|15|\n"
	queryC = "# SL2VL table: Lid 3\n#                 SL: | 0| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|15|\n" +
		"ports: in  0, out  0: | 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 3|\n"
)

// ways are the VLs of SLs 0 and 15: a line for each switch and for each host.
func ways(s *lft.SL2VL) string {
	f := s.Fabric()
	var b strings.Builder
	last := fabric.NoNode
	for in, out := range s.PortPairs() {
		n := f.Owner(out)
		if n != last && last != fabric.NoNode {
			b.WriteByte('\n')
		} else if n == last {
			b.WriteByte(' ')
		}
		last = n
		m := s.At(in, out)
		if f.IsSwitch(n) {
			fmt.Fprintf(&b, "%d>%d:", in, f.Num(out))
		}
		fmt.Fprintf(&b, "%d,%d", m[0], m[15])
	}
	b.WriteByte('\n')
	return b.String()
}

// TestReadSL2VL pins what is read from odd and from wrong text, by a strict and
// by a lenient reader, and the exact messages.
func TestReadSL2VL(t *testing.T) {
	f := pair(t)
	readCases(t, of(f, ReadSL2VL), ways, casesOf(t))
	for text, want := range map[string]string{
		"":        "in: no SL-to-VL tables, the file is empty; want opensm-sl2vl.dump, or what smpquery sl2vl prints",
		"x\n":     "in:1: no SL-to-VL tables; want opensm-sl2vl.dump, or what smpquery sl2vl prints\n    x",
		fdbA:      "in: this is opensm.fdbs; want opensm-sl2vl.dump, or what smpquery sl2vl prints",
		"0xa 1 1": "in: this is ibdmchk's path SLs; want opensm-sl2vl.dump, or what smpquery sl2vl prints",
	} {
		if _, _, err := ReadSL2VL("in", []byte(text), f, Options{}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

const (
	pathsAB = "Path SLs [1-4] of 2 switches\nswitch 0x000000000000000a \"a\"\ndlid 1-2 sl 0\ndlid 3 sl 15\ndlid 4 sl 1\n\nswitch 0x000000000000000b \"b\"\ndlid 1-4 sl 2\n"
	pairsAB = "0x00000000000000c0 4 1\n0x00000000000000d0 3 2\n"
)

// pathsPorts is pathsAB with a first line that announces two ports.
var pathsPorts = strings.Replace(pathsAB, "2 switches", "2 switches and 2 ports", 1)

// sls are path SLs from LID 1 on, a line for each switch and then for each source port
// of its own; ? is not known.
func sls(p *lft.PathSLs) string {
	var b strings.Builder
	line := func(row []fabric.SL) {
		for l, sl := range row[1:] {
			if l > 0 {
				b.WriteByte(' ')
			}
			if sl == lft.UnknownSL {
				b.WriteByte('?')
			} else {
				fmt.Fprint(&b, sl)
			}
		}
		b.WriteByte('\n')
	}
	for s := range fabric.NodeID(p.Switches()) {
		line(p.Given(s))
	}
	for _, port := range p.Ports() {
		fmt.Fprintf(&b, "%d: ", port)
		line(p.PortRow(port))
	}
	return b.String()
}

// TestReadPathSLs does for path SLs what TestReadSL2VL does.
func TestReadPathSLs(t *testing.T) {
	f := pair(t)
	readCases(t, of(f, ReadPathSLs), sls, casesOf(t))
}

// TestWritePathSLs pins the form of this package, and that switches with equal
// rows share a block, whether or not they share the row in memory.
func TestWritePathSLs(t *testing.T) {
	f := pair(t)
	p, _, err := ReadPathSLs("in", []byte(pathsAB), f, Options{})
	short.Check(t, err)
	write := func(p *lft.PathSLs, opt WriteOptions) string {
		return string(text(t, func(w io.Writer) error { return WritePathSLs(w, f, p, opt) }))
	}
	short.Equal(t, write(p, WriteOptions{}), pathsAB)
	short.Equal(t, write(p, WriteOptions{Lean: true, Only: []fabric.NodeID{1}}), "Path SLs [1-4] of 1 switches\nswitch 0x000000000000000b\ndlid 1-4 sl 2\n")
	ports := strings.Replace(pathsPorts, "2 ports", "1 ports", 1) + "\nport 0x00000000000000c0[1] \"c\"\ndlid 1 sl 3\ndlid 2-4 sl ?\n"
	if p, _, err = ReadPathSLs("in", []byte(ports), f, Options{}); err != nil {
		t.Fatal(err)
	}
	short.Equal(t, write(p, WriteOptions{}), ports)
	short.Equal(t, string(text(t, func(w io.Writer) error { return WriteIBDMPathSLs(w, f, p) })), "0x00000000000000d0 3 2\n", "for ibdmchk")
	if got := write(p, WriteOptions{Lean: true, Only: []fabric.NodeID{1}}); strings.Contains(got, "port") {
		t.Errorf("%s", got)
	}
	p, _ = short.Must2(ReadPathSLs("in", []byte(pathsAB), f, Options{}))(t)
	const same = "Path SLs [1-4] of 2 switches\nswitch 0x000000000000000a\nswitch 0x000000000000000b\ndlid 1-4 sl 3\n"
	row := []fabric.SL{0, 3, 3, 3, 3}
	shared, copied := lft.NewPathSLs(2, 4), lft.NewPathSLs(2, 4)
	shared.SetRow(row, 1, 0)
	copied.SetRow(row, 0)
	copied.SetRow(bytesSL(slBytes(row)), 1)
	for _, p := range []*lft.PathSLs{shared, copied} {
		short.Equal(t, write(p, WriteOptions{Lean: true}), same)
	}
	short.Equal(t, string(text(t, func(w io.Writer) error { return WriteIBDMPathSLs(w, f, p) })), "0x00000000000000c0 4 1\n0x00000000000000d0 3 2\n", "for ibdmchk")
	if err := WritePathSLs(io.Discard, f, lft.NewPathSLs(3, 4), WriteOptions{}); err == nil {
		t.Error("path SLs of three switches were written for a fabric with two")
	}
}

// TestPathBlocks: switches of a block come by GUID, not in OpenSM's order, and blocks by
// their first.
func TestPathBlocks(t *testing.T) {
	f := oddFabric(t, 0, false)
	p := lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
	row := make([]fabric.SL, int(f.MaxLID())+1)
	row[1] = 1
	p.SetRow(row, 1, 3)
	n := int(f.MaxLID())
	want := fmt.Sprintf("Path SLs [1-%d] of 4 switches\n"+
		"switch 0x0000000000200000\nswitch 0x0102030405060708\ndlid 1-%d sl 0\n\n"+
		"switch 0x0100000000000001\nswitch 0x8000000000200004\ndlid 1 sl 1\ndlid 2-%d sl 0\n", n, n, n)
	if got := text(t, func(w io.Writer) error { return WritePathSLs(w, f, p, WriteOptions{Lean: true}) }); string(got) != want {
		t.Error(cmp.Diff(want, string(got)))
	}
}

// TestMissingPairs: of two hosts on a switch, each sends to the other.
func TestMissingPairs(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{1}, Hosts: 2})
	f = withLIDs(t, f, err)
	hosts := f.CAPorts()
	all := text(t, func(w io.Writer) error { return WriteIBDMPathSLs(w, f, lft.NewPathSLs(1, f.MaxLID())) })
	if _, problems, err := ReadPathSLs("in", all, f, Options{}); err != nil || problems != nil {
		t.Error(err, problems)
	}
	first := all[:bytes.IndexByte(all, '\n')+1]
	_, problems, err := ReadPathSLs("in", first, f, Options{})
	want := fmt.Sprintf("in: missing: no SL for 1 path between CA or router ports, from %s to LID %d\n", f.PortName(hosts[1]), f.LID(hosts[0]))
	if got := problemLines(problems); err != nil || got != want {
		t.Errorf("%v, %s, want %s", err, got, want)
	}
}

// Hosts of one switch may have different SLs for a destination: ibdmchk's form is by pair.
func TestPairsOfOneSwitch(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{2}, Hosts: 2})
	f = withLIDs(t, f, err)
	hosts := f.CAPorts()
	p := lft.NewPathSLs(2, f.MaxLID())
	row := make([]fabric.SL, int(f.MaxLID())+1)
	row[f.LID(hosts[3])] = 15
	p.SetPorts(row, hosts[1])
	form := func(p *lft.PathSLs) []byte {
		return text(t, func(w io.Writer) error { return WriteIBDMPathSLs(w, f, p) })
	}
	got, problems, err := ReadPathSLs("in", form(p), f, Options{})
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	short.Equal(t, string(form(got)), string(form(p)), "is read")
	to := f.LID(hosts[3])
	if got.PortRow(hosts[0]) != nil || got.Row(0)[to] != 0 || got.PortRow(hosts[1])[to] != 15 {
		t.Errorf("%s", sls(got))
	}
	// A line that is not there is not known, whatever the other host has.
	lines := strings.SplitAfter(string(form(p)), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, fmt.Sprintf("%s %d ", f.Node(f.Owner(hosts[0])).GUID, to))
	})
	got, _, err = ReadPathSLs("in", []byte(strings.Join(lines, "")), f, Options{})
	if sl := rowFrom(got, hosts[0], 0)[to]; err != nil || sl != lft.UnknownSL {
		t.Errorf("SL %d, %v", sl, err)
	}
}

// TestQoSOptionLines pins the lines for opensm.conf, and the message where
// there are none.
func TestQoSOptionLines(t *testing.T) {
	f := oddFabric(t, 0, false)
	s := lft.NewSL2VL(f, lft.VLMap{0, 1, 2, 3, 15, 15, 15, 15, 0, 0, 0, 0, 0, 0, 0, 0})
	for _, p := range f.CAPorts() {
		if f.Node(f.Owner(p)).Type == fabric.Router {
			s.SetOut(p, lft.OpenSMVLs(15))
		} else {
			s.SetOut(p, lft.ConstantVL(0))
		}
	}
	a, _ := f.SwitchByGUID(0x200000)
	s.SetOut(f.Port(a, 30), lft.ConstantVL(9)) // nothing leaves by there
	s.Set(30, f.Port(a, 1), lft.ConstantVL(9)) // nor comes in
	y, _ := f.SwitchByGUID(0x0102030405060708)
	s.SetOut(f.PortBase(y), lft.ConstantVL(1))
	lines := short.Must(QoSOptions(s))(t)
	want := string(short.Must(os.ReadFile("testdata/ibdm-path-sls.txt"))(t))
	short.Equal(t, strings.Join(lines, "\n"), want)
	s.Set(36, f.Port(a, 3), lft.ConstantVL(2))
	_, err := QoSOptions(s)
	const message = "OpenSM has one option qos_swe_sl2vl for both VLs 0,1,2,3,15,15,15,15,0,0,0,0,0,0,0,0 from port 0 to port 1 of switch 0x0000000000200000 \"switch {0} \u00e9t\u00e9\"" +
		" and VLs 2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2 from port 36 to port 3 of switch 0x0000000000200000 \"switch {0} \u00e9t\u00e9\""
	short.Equal(t, fmt.Sprint(err), message)
	s = lft.NewSL2VL(f, lft.ConstantVL(0))
	host, _ := f.NodeByGUID(0x100000)
	s.SetOut(f.Port(host, 2), lft.ConstantVL(1))
	_, err = QoSOptions(s)
	if want := "OpenSM has one option qos_ca_sl2vl for both VLs 0,0,"; err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), " of 0x0000000000100002 \"host 0,0 } LID:0001 PN:01 } {\"[2]") {
		t.Errorf("%v, want %s..", err, want)
	}
}

// TestIBDMPathSLsOfPorts: ibdmchk knows nodes, not ports.
func TestIBDMPathSLsOfPorts(t *testing.T) {
	f := oddFabric(t, 0, false)
	host, _ := f.NodeByGUID(0x100000)
	at := f.Owner(f.Peer(f.Port(host, 2)))
	p := lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
	row := make([]fabric.SL, int(f.MaxLID())+1)
	row[f.LID(f.Port(host, 1))] = 1
	p.SetRow(row, at)
	var b bytes.Buffer
	err := WriteIBDMPathSLs(&b, f, p)
	want := fmt.Sprintf("%s has SL 1 to LID %d and another port of the node has SL 0: ibdmchk has one SL for all ports of a node", f.PortName(f.Port(host, 2)), f.LID(f.Port(host, 1)))
	if err == nil || err.Error() != want || b.Len() > 0 {
		t.Errorf("%v, want %s; wrote %d bytes", err, want, b.Len())
	}
	// With the same SLs there are lines from each port to the other.
	for s := range fabric.NodeID(f.NumSwitches()) {
		p.SetRow(row, s)
	}
	out := text(t, func(w io.Writer) error { return WriteIBDMPathSLs(w, f, p) })
	for q, sl := range map[fabric.PortNum]int{1: 1, 2: 0} {
		if line := fmt.Appendf(nil, "0x0000000000100000 %d %d\n", f.LID(f.Port(host, q)), sl); !bytes.Contains(out, line) {
			t.Errorf("no line %s in\n%s", line, out)
		}
	}
}

// TestSL2VLRoundTrip reads back what is written of fabrics and tables of any
// kind, and compares the bytes that one CPU and several write.
func TestSL2VLRoundTrip(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t, true)
		guids := make(map[fabric.GUID]bool) // a drawn GUID may be another's port GUID
		for _, p := range f.CAPorts() {
			if guids[f.PortGUID(p)] {
				return
			}
			guids[f.PortGUID(p)] = true
		}
		s := lft.NewSL2VL(f, lft.ConstantVL(0))
		for in, out := range s.PortPairs() {
			var m lft.VLMap
			for sl := range m {
				m[sl] = fabric.VL(rapid.IntRange(0, 15).Draw(t, "VL"))
			}
			s.Set(in, out, m)
		}
		runtime.GOMAXPROCS(1)
		one := sl2vlTexts(t, s)
		runtime.GOMAXPROCS(4)
		for form, b := range sl2vlTexts(t, s) {
			short.EqualList(t, b, one[form], form, "one CPU writes", "several")
			if len(b) == 0 {
				continue
			}
			got, _, err := ReadSL2VL("in", b, f, Options{})
			if err != nil {
				t.Fatalf("%s: %v\n%s", form, err, b)
			}
			for in, out := range s.PortPairs() {
				n := f.Owner(out)
				end := out
				if f.IsSwitch(n) {
					end = f.PortBase(n)
				}
				if form == SMPQuerySL2VL && f.LID(end) == 0 {
					continue
				}
				short.MustEqual(t, *got.At(in, out), *s.At(in, out), form, "from port", in, "to", f.PortName(out), got.At(in, out), "want", s.At(in, out), b)
			}
		}
	})
}

// TestPathSLsRoundTrip does so for path SLs.
func TestPathSLsRoundTrip(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t, true)
		p := lft.NewPathSLs(f.NumSwitches(), f.MaxLID()+fabric.LID(rapid.IntRange(0, 3).Draw(t, "beyond")))
		for s := range fabric.NodeID(f.NumSwitches()) {
			row := make([]fabric.SL, int(p.MaxLID())+1)
			for l := 1; l < len(row); l++ {
				row[l] = fabric.SL(rapid.IntRange(0, 2).Draw(t, "SL"))
			}
			p.SetRow(row, s)
		}
		var b, one bytes.Buffer
		short.Check(t, WritePathSLs(&b, f, p, WriteOptions{Lean: rapid.Bool().Draw(t, "lean")}))
		got, problems, err := ReadPathSLs("in", b.Bytes(), f, Options{})
		if err != nil || problems != nil || sls(got) != sls(p) {
			t.Fatalf("%v %v\n%s\nwant\n%s%s", err, problems, sls(got), sls(p), &b)
		}

		b.Reset()
		if err := WriteIBDMPathSLs(&b, f, p); err != nil {
			return // a CA on two switches
		}
		runtime.GOMAXPROCS(1)
		err = WriteIBDMPathSLs(&one, f, p)
		runtime.GOMAXPROCS(4)
		if err != nil || !bytes.Equal(b.Bytes(), one.Bytes()) {
			t.Fatalf("one CPU writes\n%s\nseveral\n%s", &one, &b)
		}
		if b.Len() == 0 {
			return
		}
		if got, problems, err = ReadPathSLs("in", b.Bytes(), f, Options{}); err != nil || problems != nil {
			t.Fatalf("%v %v\n%s", err, problems, &b)
		}
		for i, from := range f.CAPorts() {
			s := f.CASwitches()[i]
			for l, to := range f.LIDPorts() {
				if s != fabric.NoNode && to != fabric.NoPort && to != from && !f.IsSwitch(f.Owner(to)) && got.Row(s)[l] != p.Row(s)[l] {
					t.Fatalf("from %s to LID %d: SL %d, want %d\n%s", f.PortName(from), l, got.Row(s)[l], p.Row(s)[l], &b)
				}
			}
		}
	})
}
