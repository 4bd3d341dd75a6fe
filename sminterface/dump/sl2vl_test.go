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
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
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
