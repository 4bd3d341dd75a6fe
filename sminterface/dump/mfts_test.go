package dump

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump/dumptest"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

const (
	mcA = "\nSwitch 0x000000000000000a\nLID    : Out Port(s)\n0xC000 : 0x001  0x002 \n0xC123 : 0x000 \n"
	mcB = "\nSwitch 0x000000000000000b\nLID    : Out Port(s)\n0xC000 : 0x001  0x002 \n"

	mftHeadA = "Multicast mlids [0xc000-0xc3ff] of switch Lid 1 guid 0x000000000000000a (a):\n     Ports: 0 1 2 3 4 \n MLid\n"
	mftHeadB = "Multicast mlids [0xc000-0xc3ff] of switch DR path slid 0; dlid 0; 0,1 guid 0x000000000000000b (b):\n     Ports: 0 1 2 3 4 \n MLid\n"
	mftA     = mftHeadA + "0xc000        x x     \n0xc123      x         \n2 valid mlids dumped \n"
	mftB     = mftHeadB + "0xc000        x x     \n1 valid mlids dumped \n"
)

// TestReadMFTs pins what is read from odd and from wrong text, by a strict and
// by a lenient reader, and the exact messages.
func TestReadMFTs(t *testing.T) {
	f := pair(t)
	readCases(t, of(f, ReadMFTs), masks, casesOf(t))
}

// TestWriteMFTs pins what is written of small tables, and what is refused.
func TestWriteMFTs(t *testing.T) {
	f := pair(t)
	tables := mustReadMFTs(t, "seed", []byte(mcA+mcB), f)
	for _, c := range []struct {
		name  string
		write func(io.Writer) error
		want  string // or the error
	}{
		{"mcfdbs", func(w io.Writer) error { return WriteMCFDBs(w, tables, WriteOptions{}) }, mcA + mcB},
		{"mcfdbs of one", func(w io.Writer) error { return WriteMCFDBs(w, tables, WriteOptions{Only: []fabric.NodeID{1}}) }, mcB},
		{"no masks", func(w io.Writer) error { return WriteMCFDBs(w, mft.NewTables(f), WriteOptions{}) }, ""},
		{"MFTs", func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{}, 1024) },
			mftA + strings.Replace(mftB, "DR path slid 0; dlid 0; 0,1", "Lid 2", 1)},
		{"all MLIDs", func(w io.Writer) error {
			return WriteMFTs(w, tables, WriteOptions{Only: []fabric.NodeID{0}}, 1<<20)
		}, strings.Replace(mftA, "0xc3ff", "0xfffe", 1)},
		{"few MLIDs", func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{}, 0x123) }, "MLID 0xc123, above 0xc122, the highest that the switches have"},
		{"no such switch", func(w io.Writer) error { return WriteMCFDBs(w, tables, WriteOptions{Only: []fabric.NodeID{2}}) }, "node 2 is not one of the 2 switches"},
		{"full", func(io.Writer) error { return WriteMFTs(full{}, tables, WriteOptions{}, 0) }, errFull.Error()},
	} {
		var b bytes.Buffer
		got := ""
		if err := c.write(&b); err != nil {
			got = err.Error()
		} else {
			got = b.String()
		}
		short.Diff(t, got, c.want, c.name)
	}
}

// full is a device without room.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestMFTsRoundTrip: what is written is read, by all forms, on any number of
// CPUs, and for sections in any order.
func TestMFTsRoundTrip(t *testing.T) {
	f := wide(t)
	rapid.Check(t, func(t *rapid.T) {
		var mlids []fabric.LID
		for _, l := range rapid.SliceOfNDistinct(rapid.Uint16Range(uint16(mft.MinMLID), uint16(mft.MaxMLID)), 0, 12, rapid.ID[uint16]).Draw(t, "MLIDs") {
			mlids = append(mlids, fabric.LID(l))
		}
		slices.Sort(mlids)
		tables := randomMFTs(f, mlids, rapid.Uint64().Draw(t, "seed"))
		for name, write := range map[string]func(io.Writer) error{
			"mcfdbs": func(w io.Writer) error { return WriteMCFDBs(w, tables, WriteOptions{}) },
			"MFTs":   func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{}, 0) },
			"brief":  func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{Lean: true}, 0) },
		} {
			var b, one bytes.Buffer
			short.Check(t, write(&b))
			procs := runtime.GOMAXPROCS(1)
			err := write(&one)
			runtime.GOMAXPROCS(procs)
			if err != nil || !bytes.Equal(b.Bytes(), one.Bytes()) {
				t.Fatalf("%s: %v, other bytes on one CPU", name, err)
			}
			marker := "Multicast"
			if name == "mcfdbs" {
				marker = "\nSwitch"
			}
			sections := strings.SplitAfter(strings.ReplaceAll(b.String(), marker, "\x00"+marker), "\x00")
			shuffled := strings.ReplaceAll(strings.Join(rapid.Permutation(sections).Draw(t, "order"), ""), "\x00", "")
			for _, text := range []string{b.String(), shuffled} {
				got, problems, err := ReadMFTs(name, []byte(text), f, Options{})
				if err != nil || problems != nil || masks(got) != masks(tables) {
					t.Fatalf("%s: %v %v\n%s", name, err, problems, text)
				}
			}
		}
	})
}

// FuzzReadMFTs: an error means no result; a lenient reader agrees with a strict
// one that is content, and never fails once it knows the form; what was read
// can be written and read again.
func FuzzReadMFTs(f *testing.F) {
	fab := pair(f)
	for _, s := range []string{mcA + mcB, mcB + mcA, mftA + mftB, mcA + mcA, "", "\n", strings.ReplaceAll(mcA, "\n", "\r\n"), "Switch 0xb\n0xc000 : 0x004 0x001\n0xFFFF : 0x001 \n",
		mftHeadA + "0xc000      0006\n0xc001      x\n0xfffe                 \n3 mlids dumped\n*** WARNING ***\n"} {
		f.Add([]byte(s))
	}
	tables := mustReadMFTs(f, "seed", []byte(mcA+mcB), fab)
	f.Add(text(f, func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{Lean: true}, 0) }))
	f.Fuzz(func(t *testing.T, data []byte) {
		lenient, ok := readTwice(t, data, of(fab, ReadMFTs), equally(masks), MCFDBs, MFTs)
		if !ok {
			return
		}
		for _, l := range lenient.MLIDs() {
			for i, p := range lenient.Ports(l) {
				if s := fab.Owner(p); !fab.IsSwitch(s) || i > 0 && p <= lenient.Ports(l)[i-1] {
					t.Fatalf("ports %v", lenient.Ports(l))
				}
			}
		}
		for _, write := range []func(io.Writer) error{
			func(w io.Writer) error { return WriteMCFDBs(w, lenient, WriteOptions{}) },
			func(w io.Writer) error { return WriteMFTs(w, lenient, WriteOptions{}, 0) },
			func(w io.Writer) error { return WriteMFTs(w, lenient, WriteOptions{Lean: true}, 0) },
		} {
			again := text(t, write)
			got, problems, err := ReadMFTs("again", again, fab, Options{})
			if err != nil || problems != nil || masks(got) != masks(lenient) {
				t.Fatalf("%v %v\n%s", err, problems, again)
			}
		}
	})
}

// benchmarkMFTs is 10,000 MLIDs, each in masks of 32 of 320 switches with 48
// ports: 720,000 ports in masks.
func benchmarkMFTs(b *testing.B) *mft.Tables {
	b.Helper()
	var build fabric.Builder
	for s := range 320 {
		short.Must(build.AddNode(fabric.Node{GUID: fabric.GUID(1 + s), Type: fabric.Switch, NumPorts: 48, Description: "switch"}))(b)
	}
	f := short.Must(build.Build())(b)
	t := mft.NewTables(f)
	for m := range 10000 {
		var ports []fabric.PortID
		for s := m % 10; s < 320; s += 10 {
			for n := m % 20; n < 49; n += 20 {
				ports = append(ports, f.Port(fabric.NodeID(s), fabric.PortNum(n)))
			}
		}
		t.Add(mft.MinMLID+1+fabric.LID(m), ports)
	}
	return t
}

// Rows that come again and again are compared with the first of their MLID, however
// many others there are.
func TestRepeatedRows(t *testing.T) {
	f := meshFabric(t, []int{4, 3}, true)
	var b strings.Builder
	fmt.Fprintf(&b, "\nSwitch %s\nLID    : Out Port(s)\n", f.Node(0).GUID)
	const rows, again = 16000, 20000
	for i := range rows - 1 {
		fmt.Fprintf(&b, "0x%04X : 0x001 \n", int(mft.MinMLID)+i)
	}
	for range 1 + again {
		fmt.Fprintf(&b, "0x%04X : 0x002 \n", int(mft.MinMLID)+rows-1)
	}
	if _, problems, err := ReadMFTs("in", []byte(b.String()), f, Options{}); err != nil {
		t.Error(err, problems)
	}
	fmt.Fprintf(&b, "0x%04X : 0x001 \n", int(mft.MinMLID)+rows-1)
	_, _, err := ReadMFTs("in", []byte(b.String()), f, Options{})
	var at *fabric.ParseError
	if !errors.As(err, &at) || at.Line != 3+rows+again+1 {
		t.Errorf("%v, want an error in line %d", err, 3+rows+again+1)
	}
}

// wide is switches with 5, 9, 10, 40 and 130 ports in a row, each with a host,
// and LIDs.
func wide(t testing.TB) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	add := func(n fabric.Node, lid fabric.LID) int {
		i := short.Must(b.AddNode(n))(t)
		p := fabric.PortNum(0)
		if n.Type == fabric.CA {
			p = 1
		}
		short.Check(t, b.SetPort(i, p, 0, lid, 0))
		return i
	}
	var before int
	for i, ports := range []fabric.PortNum{5, 9, 10, 40, 130} {
		s := add(fabric.Node{GUID: fabric.GUID(0x200000 + 0x1000*(5-i)), Type: fabric.Switch, NumPorts: ports, Description: fmt.Sprintf("switch (%d)", i)}, fabric.LID(2*i+1))
		h := add(fabric.Node{GUID: fabric.GUID(0x100000 + 0x10*i), Type: fabric.CA, NumPorts: 1, Description: fmt.Sprintf("host '%d'", i)}, fabric.LID(2*i+2))
		short.Check(t, b.Connect(s, ports, h, 1, fabric.Link{Width: 4, Speed: fabric.EDR}))
		if i > 0 {
			short.Check(t, b.Connect(s, 1, before, 2, fabric.Link{Width: 4, Speed: fabric.HDR}))
		}
		before = s
	}
	return short.Must(b.Build())(t)
}

// randomMFTs has masks of all kinds, the MLIDs of the first and the last
// block of 32 among them.
func randomMFTs(f *fabric.Fabric, mlids []fabric.LID, seed uint64) *mft.Tables {
	rnd := rand.New(rand.NewPCG(seed, 0))
	t := mft.NewTables(f)
	for _, l := range mlids {
		var ports []fabric.PortID
		for s := range fabric.NodeID(f.NumSwitches()) {
			share := rnd.IntN(3) // none, few, many
			for n := range int(f.Node(s).NumPorts) + 1 {
				if rnd.IntN(3) < share {
					ports = append(ports, f.PortBase(s)+fabric.PortID(n))
				}
			}
		}
		t.Add(l, ports)
	}
	return t
}

// masks are tables as text.
func masks(t *mft.Tables) string {
	var b strings.Builder
	for _, l := range t.MLIDs() {
		if len(t.Ports(l)) > 0 {
			fmt.Fprintf(&b, "%#x:", uint16(l))
			for _, p := range t.Ports(l) {
				fmt.Fprintf(&b, " %d/%d", t.Fabric().Owner(p), t.Fabric().Num(p))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// mustReadMFTs reads without any problem.
func mustReadMFTs(t testing.TB, name string, data []byte, f *fabric.Fabric) *mft.Tables {
	t.Helper()
	tables, problems, err := ReadMFTs(name, data, f, Options{})
	if err != nil || problems != nil {
		t.Fatalf("%s: %v\n%v", name, err, problems)
	}
	return tables
}

// sections cuts what dump_mfts prints, sorts the sections by GUID and gives
// their first lines the LID of the switch for a directed route.
func sections(t *testing.T, f *fabric.Fabric, data []byte) []byte {
	t.Helper()
	if i := bytes.Index(data, toolWarning); i >= 0 {
		data = bytes.TrimRight(data[:i], "\n")
		data = append(data, '\n')
	}
	head := regexp.MustCompile(`(?m)^Multicast mlids .* of switch (DR path [^(]*) guid (0x[0-9a-f]+)`)
	at := head.FindAllSubmatchIndex(data, -1)
	list := make(map[fabric.NodeID][]byte)
	for i, m := range at {
		end := len(data)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		guid := short.Must(fabric.ParseGUID(string(data[m[4]:m[5]])))(t)
		s, ok := f.SwitchByGUID(guid)
		if !ok {
			t.Fatalf("no switch %s", guid)
		}
		list[s] = slices.Concat(data[m[0]:m[2]], fmt.Appendf(nil, "Lid %d", f.LID(f.PortBase(s))), data[m[3]:end])
	}
	var out []byte
	all := short.Must(switchesToWrite(f, nil))(t)
	for _, s := range all {
		out = append(out, list[s]...)
	}
	return out
}

// TestMFTsAsPrinted: what dump_fts -M and ibroute -M print of tables that were
// written into the switches is what WriteMFTs writes, and is read back.
func TestMFTsAsPrinted(t *testing.T) {
	f := wide(t)
	s := startSimulator(t, f)
	s.opensm(ibsim.OpenSMConfig{Engine: "minhop"})
	// ibsim has room for 32 blocks of 32 MLIDs, whatever it is told
	// (sim_mad.c, do_multicastforwtbl).
	tables := randomMFTs(f, []fabric.LID{0xc000, 0xc001, 0xc01f, 0xc020, 0xc123, 0xc3ff}, 1)
	s.setMFTs(tables)

	all := short.Must(switchesToWrite(f, nil))(t)
	for _, lean := range short.Part(1, []bool{false, true}) {
		arg := []string{"-M"}
		if lean {
			arg = append(arg, "-n")
		}
		want := text(t, func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{Lean: lean}, 0) })
		var routes []byte
		for _, sw := range all {
			routes = append(routes, s.output("ibroute", append(arg, fmt.Sprint(f.LID(f.PortBase(sw))))...)...)
		}
		short.Diff(t, string(want), string(routes), "ibroute", arg, "(-) and WriteMFTs (+)")
	}
	got := s.output("dump_fts", "-M", "0xc000", "0xc3ff")
	want := text(t, func(w io.Writer) error { return WriteMFTs(w, tables, WriteOptions{}, 1024) })
	short.Diff(t, string(want), string(sections(t, f, got)), "dump_fts -M (-) and WriteMFTs (+)")
	for name, data := range map[string][]byte{
		"dump_fts -M": got, "dump_fts -M -a": s.output("dump_fts", "-M", "-a", "0xc000", "0xc3ff"), "dump_fts -M -n -a": s.output("dump_fts", "-M", "-n", "-a", "0xc000", "0xc3ff"),
	} {
		short.Equal(t, masks(mustReadMFTs(t, name, data, f)), masks(tables), name, "reads")
	}
}

// daemon runs OpenSM until the test ends, and returns once the subnet is up.
func (s *simulator) daemon(options string) {
	s.t.Helper()
	cache := filepath.Join(s.dir, "cache")
	short.Check(s.t, os.MkdirAll(cache, 0o700))
	conf, log := filepath.Join(s.dir, "daemon.conf"), filepath.Join(s.dir, "opensm.log")
	options += fmt.Sprintf("force_log_flush TRUE\nlog_file %s\ndump_files_dir %s\nprefix_routes_file %s/none\nper_module_logging_file %s/none\n"+
		"torus_config %s/none\nlong_transaction_timeout 2000\ntransaction_timeout 1000\n", log, s.dir, s.dir, s.dir, s.dir)
	short.Check(s.t, os.WriteFile(conf, []byte(options), 0o600))
	ctx, cancel := context.WithCancel(s.t.Context())
	cmd := s.Command(ctx, "opensm", "-F", conf, "-D", "0x47")
	cmd.Env = append(cmd.Env, "OSM_TMP_DIR="+s.dir, "OSM_CACHE_DIR="+cache)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, cmd) }()
	s.t.Cleanup(func() {
		cancel()
		<-ended
	})
	short.Await(s.t, func() bool {
		b, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			s.t.Fatal(err)
		}
		select {
		case err := <-ended:
			s.t.Fatalf("OpenSM ended: %v\n%s", err, b)
		default:
		}
		return bytes.Contains(b, []byte("SUBNET UP"))
	}, "the subnet is not up")
}

// complaints are the lines of level 0x01 of OpenSM's log, and what it says of
// its files.
func (s *simulator) complaints() string {
	s.t.Helper()
	var b strings.Builder
	for line := range bytes.Lines(s.file("opensm.log")) {
		if bytes.Contains(line, []byte("since we are exiting")) {
			continue // an answer that came as OpenSM was told to end
		}
		if bytes.Contains(line, []byte(" 0x01 -> ")) || bytes.Contains(line, []byte("PARSE")) || bytes.Contains(line, []byte("reregistration")) {
			b.Write(line)
		}
	}
	return b.String()
}

func mgid(t testing.TB, s string) mft.MGID {
	t.Helper()
	return short.Must(mft.ParseMGID(s))(t)
}

// TestGroupsInOpenSM: OpenSM loads an opensm-sa.dump, with the MLIDs and
// the members; ReadMFTs reads the opensm.mcfdbs that it then writes, which
// WriteMCFDBs writes again; what dump_fts reads from the switches is the same;
// saquery tells the groups as they were.
func TestGroupsInOpenSM(t *testing.T) {
	f := fabrictest.WithLIDs(t, fabrictest.Grid(t, 1, false, 3, 3), 0)
	hosts := f.CAPorts()
	port0 := f.PortBase(3)
	trees := []mft.Tree{
		{Name: "three", MGID: mgid(t, "ff12:a01d::7"), MLID: 0xc007, Receivers: []fabric.PortID{hosts[0], hosts[5]}, Senders: []fabric.PortID{hosts[0], hosts[7]}, SL: 3},
		{Name: "a switch", MGID: mgid(t, "ff15:1b3e:0:1::"), MLID: 0xc123, Receivers: []fabric.PortID{port0, hosts[1], hosts[8]}, Senders: []fabric.PortID{hosts[8]}},
		{Name: "absent", MGID: mgid(t, "ff1e:a01d::1"), MLID: 0xc002},
	}
	s := startSimulator(t, f)
	file := filepath.Join(t.TempDir(), "opensm-sa.dump")
	writeFile(t, file, dumptest.SADump(f, trees))
	partitions := filepath.Join(t.TempDir(), "partitions.conf")
	writeFile(t, partitions, text(t, func(w io.Writer) error { return WritePartitions(w, f, nil) }))
	s.daemon("sa_db_file " + file + "\npartition_config_file " + partitions + "\n")
	short.Equal(t, s.complaints(), "")

	dumped := s.file("opensm.mcfdbs")
	tables := mustReadMFTs(t, "opensm.mcfdbs", dumped, f)
	if got := text(t, func(w io.Writer) error { return WriteMCFDBs(w, tables, WriteOptions{}) }); !bytes.Equal(got, dumped) || len(dumped) == 0 {
		t.Errorf("WriteMCFDBs writes\n%s\nOpenSM\n%s", got, dumped)
	}
	short.Equal(t, masks(mustReadMFTs(t, "dump_fts", s.output("dump_fts", "-M"), f)), masks(tables), "the switches", "opensm.mcfdbs")
	// OpenSM's trees reach the members, send-only ones too, and port 0.
	for _, c := range []struct {
		mlid fabric.LID
		port fabric.PortID
	}{{0xc007, f.Peer(hosts[0])}, {0xc007, f.Peer(hosts[5])}, {0xc123, port0}, {0xc123, f.Peer(hosts[8])}} {
		if _, ok := slices.BinarySearch(tables.Ports(c.mlid), c.port); !ok {
			t.Errorf("%s is not in the masks of %#x", f.PortName(c.port), uint16(c.mlid))
		}
	}

	// libumad2sim.so gives saquery only the first packet of an answer, which is
	// three of these records, and saquery -m always asks for all of them.
	want := func(tree mft.Tree, withSL, withMembers bool) string {
		g := mft.Group{Name: tree.MGID.String(), MGID: tree.MGID, MLID: tree.MLID}
		if withSL {
			g.SL = tree.SL
		}
		if withMembers {
			g.Receivers = tree.Receivers
			g.Senders = append(slices.Clone(tree.Receivers), tree.Senders...)
			slices.Sort(g.Senders)
			g.Senders = slices.Compact(g.Senders)
		}
		return fmt.Sprintln(g)
	}
	members, groups := s.output("saquery", "--smkey", "1", "-m"), s.output("saquery", "-g")
	records := slices.Concat(s.output("saquery", "--smkey", "1", "MCMR", "--mgid", trees[0].MGID.String()),
		s.output("saquery", "--smkey", "1", "MCMR", "--mgid", trees[1].MGID.String()))
	broadcast := mft.Tree{MGID: mgid(t, "ff12:401b:ffff::ffff:ffff"), MLID: 0xc000}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"-m":        {members, want(trees[0], false, true)},
		"MCMR":      {records, want(trees[0], true, true) + want(trees[1], true, true)},
		"-g":        {groups, want(broadcast, true, false) + want(trees[0], true, false) + want(trees[1], true, false)},
		"-g and -m": {slices.Concat(groups, members), want(broadcast, true, false) + want(trees[0], true, true) + want(trees[1], true, false)},
	} {
		list, _ := short.Must2(ReadSAQuery(name, c.data, f, Options{}))(t)
		var got strings.Builder
		for _, g := range list {
			fmt.Fprintln(&got, g)
		}
		short.Diff(t, got.String(), c.want, name, c.data)
	}
}

// TestPartitions: OpenSM makes the groups of a partitions.conf, with their
// MGIDs, MTUs, rates and SLs, in the order of the MLIDs, and leaves the default
// partition as it is without such a file.
func TestPartitions(t *testing.T) {
	f := fabrictest.WithLIDs(t, fabrictest.Grid(t, 1, false, 3, 3), 0)
	hosts := f.CAPorts()
	trees := []mft.Tree{
		{Name: "second\n#;=: \xff", MGID: mgid(t, "ff12:a01d::2"), MLID: 0xc002, SL: 5, Receivers: hosts[:2]},
		{Name: "first", MGID: mgid(t, "ff12:1b3e:f597:2664:66a2:9d07:0:1"), MLID: 0xc001, Senders: hosts[:2]},
		{Name: "site", MGID: mgid(t, "ff15:a01d::3"), MLID: 0xc003},
		{Name: "global", MGID: mgid(t, "ff1e:a01d::4"), MLID: 0xc007},
		{Name: "permanent", MGID: mgid(t, "ff02::5"), MLID: 0xc008},
		{Name: "IPv4", MGID: mgid(t, "ff12:401b:ffff::16"), MLID: 0xc009},
		{Name: "IPv4, any P_Key", MGID: mgid(t, "ff12:401b::17"), MLID: 0xc00a},
		{Name: "IPv6", MGID: mgid(t, "ff12:601b:ffff::1"), MLID: 0xc00b},
		{Name: "another partition's", MGID: mgid(t, "ff12:401b:8001::1"), MLID: 0xc00c},
		{Name: "the SA's", MGID: mgid(t, "ff12:a01b::1"), MLID: 0xc00d},
		{Name: "no scope", MGID: mgid(t, "ff10::1"), MLID: 0xc00e},
		{Name: "broadcast", MGID: mgid(t, "ff12:401b:ffff::ffff:ffff"), MLID: 0xc000},
		{Name: "shares", MGID: mgid(t, "ff12:a01d::a"), MLID: 0xc00b},
	}
	want := string(short.Must(os.ReadFile("testdata/mfts.txt"))(t))
	conf := text(t, func(w io.Writer) error { return WritePartitions(w, f, trees) })
	short.Diff(t, string(conf), want)
	partitions := filepath.Join(t.TempDir(), "partitions.conf")
	writeFile(t, partitions, conf)
	s := startSimulator(t, f)
	s.daemon("partition_config_file " + partitions + "\n")
	short.Equal(t, s.complaints(), "")
	for _, line := range []string{
		"ff12:401b:ffff::ffff:ffff 0xC000 0x84 0xFFFF 0x83 0x0", "ff12:1b3e:f597:2664:66a2:9d07:0:1 0xC001 0x84 0xFFFF 0x87 0x0",
		"ff12:a01d::2 0xC002 0x84 0xFFFF 0x87 0x5", "ff15:a01d::3 0xC003 0x84 0xFFFF 0x83 0x0", "ff1e:a01d::4 0xC004 0x84 0xFFFF 0x83 0x0",
		"ff02::5 0xC005 0x84 0xFFFF 0x83 0x0", "ff12:401b:ffff::16 0xC006 0x84 0xFFFF 0x83 0x0", "ff12:401b:ffff::17 0xC007 0x84 0xFFFF 0x83 0x0",
		"ff12:601b:ffff::1 0xC008 0x84 0xFFFF 0x83 0x0", "ff12:a01d::a 0xC009 0x84 0xFFFF 0x83 0x0",
	} {
		m, _, _ := strings.Cut(line, " ")
		out := s.output("saquery", "MCMR", "--mgid", m)
		field := func(name string) string {
			i := bytes.Index(out, []byte("\t"+name+"."))
			if i < 0 {
				return "?"
			}
			value, _ := cutLine(out, i)
			return string(bytes.TrimLeft(bytes.TrimPrefix(value, []byte("\t"+name)), "."))
		}
		got := strings.Join([]string{field("MGID"), field("mlid"), field("mtu"), field("pkey"), field("rate"), field("SL")}, " ")
		if !strings.EqualFold(got, line) {
			t.Errorf("OpenSM has %s, want %s", got, line)
		}
	}
	// All ports are full members, as without the file.
	for _, p := range []fabric.PortID{hosts[0], hosts[8], f.PortBase(2)} {
		out := s.output("smpquery", "pkeys", fmt.Sprint(f.LID(p)), fmt.Sprint(f.Num(p)))
		if !bytes.Contains(out, []byte("   0: 0xffff 0x0000")) {
			t.Errorf("%s has the P_Keys\n%s", f.PortName(p), out)
		}
	}
}

// simulator is an ibsim with a fabric in it. Programs run as if on its first
// switch.
type simulator struct {
	*ibsim.Sim
	t   *testing.T
	dir string // of what OpenSM writes
}

// startSimulator runs ibsim until the test ends.
func startSimulator(t *testing.T, f *fabric.Fabric) *simulator {
	t.Helper()
	short.NeedPrograms(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "fabric.topo")
	writeFile(t, file, text(t, func(w io.Writer) error { return topology.Write(w, f) }))
	s := short.Must(ibsim.Start(t.Context(), file, ibsim.Config{
		Nodes: f.NumNodes(), Switches: f.NumSwitches(), Ports: f.NumPorts(),
		Host: fmt.Sprintf("S-%016x", uint64(f.Node(0).GUID)),
	}))(t)
	t.Cleanup(func() {
		short.Check(t, s.Close())
	})
	return &simulator{s, t, filepath.Join(dir, "opensm")}
}

// opensm routes the fabric once, with all dumps.
func (s *simulator) opensm(cfg ibsim.OpenSMConfig) {
	s.t.Helper()
	cfg.Dir, cfg.Flags = s.dir, 0x43
	run := short.Must(ibsim.RunOpenSM(s.t.Context(), s.Sim, cfg))(s.t)
	if run.Engine != cfg.Engine || run.NumErrors > 0 {
		s.t.Fatalf("%+v, want engine %s and no errors", run, cfg.Engine)
	}
}

// output runs another program and returns its standard output.
func (s *simulator) output(name string, arg ...string) []byte {
	s.t.Helper()
	cmd := s.Command(s.t.Context(), name, arg...)
	var out bytes.Buffer
	cmd.Stdout = &out
	short.Check(s.t, s.Run(s.t.Context(), cmd))
	return out.Bytes()
}

// file is a file that OpenSM wrote.
func (s *simulator) file(name string) []byte {
	s.t.Helper()
	b := short.Must(os.ReadFile(filepath.Join(s.dir, name)))(s.t)
	return b
}

// text is what a writer writes.
func text(t rapid.TB, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	short.Check(t, write(&b))
	return b.Bytes()
}

// setMFTs writes multicast tables into the switches, which must not have any.
func (s *simulator) setMFTs(t *mft.Tables) {
	s.t.Helper()
	conn := short.Must(s.Dial(s.t.Context(), ""))(s.t)
	c := subnet.New(conn, subnet.Options{Timeout: 20 * time.Second})
	defer func() {
		if err := c.Close(); err != nil {
			s.t.Error(err)
		}
	}()
	d := short.Must(c.Discover(s.t.Context()))(s.t)
	f := t.Fabric()
	for sw := range fabric.NodeID(f.NumSwitches()) {
		blocks := make(map[uint32]*mad.MulticastForwardingTable)
		for _, l := range t.MLIDs() {
			for _, p := range t.Mask(sw, l) {
				n := f.Num(p)
				modifier := mad.MulticastModifier(int(l-mft.MinMLID)/mad.MLIDBlock, int(n)/mad.PortsPerMask)
				if blocks[modifier] == nil {
					blocks[modifier] = new(mad.MulticastForwardingTable)
				}
				blocks[modifier][int(l-mft.MinMLID)%mad.MLIDBlock] |= 1 << (n % mad.PortsPerMask)
			}
		}
		found, ok := d.Fabric.SwitchByGUID(f.Node(sw).GUID)
		if !ok {
			s.t.Fatalf("no switch %s", f.Node(sw).GUID)
		}
		to := subnet.Target{Route: d.Routes[found]}
		for modifier, masks := range blocks {
			var data mad.Data
			for i, mask := range masks {
				binary.BigEndian.PutUint16(data[2*i:], mask)
			}
			short.Must(c.SMP(s.t.Context(), to, mad.Set, mad.AttrMulticastForwardingTable, modifier, &data))(s.t)
		}
	}
}
