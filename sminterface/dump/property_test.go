package dump

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// drawFabric draws nodes of all types with GUIDs and names of any kind, cables
// between any free ports, and distinct LIDs.
func drawFabric(t *rapid.T, lmc bool) *fabric.Fabric {
	var b fabric.Builder
	guids := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 1<<64-1), 1, 14, rapid.ID[uint64]).Draw(t, "GUIDs")
	type port struct {
		node int
		num  fabric.PortNum
	}
	var free []port
	for i, g := range guids {
		n := fabric.Node{
			GUID:        fabric.GUID(g),
			SystemGUID:  fabric.GUID(rapid.Uint64().Draw(t, "system GUID")),
			Type:        rapid.SampledFrom([]fabric.NodeType{fabric.Switch, fabric.Switch, fabric.CA, fabric.Router}).Draw(t, "type"),
			NumPorts:    fabric.PortNum(rapid.IntRange(1, 6).Draw(t, "ports")),
			VendorID:    rapid.Uint32Range(0, 0xffffff).Draw(t, "vendor"),
			DeviceID:    rapid.Uint16().Draw(t, "device"),
			Description: rapid.StringMatching(`[ -~]{0,20}`).Draw(t, "description"),
		}
		if rapid.IntRange(0, 20).Draw(t, "large") == 0 {
			n.NumPorts = fabric.MaxPortNum
		}
		short.Must(b.AddNode(n))(t)
		for p := fabric.PortNum(1); p <= min(n.NumPorts, 6); p++ {
			free = append(free, port{i, p})
		}
	}
	free = rapid.Permutation(free).Draw(t, "cables")
	for len(free) >= 2 && rapid.IntRange(0, 5).Draw(t, "more") > 0 {
		link := fabric.Link{
			Width: rapid.SampledFrom([]uint8{0, 1, 4, 8, 12}).Draw(t, "width"),
			Speed: fabric.Speed(rapid.IntRange(0, int(fabric.XDR)).Draw(t, "speed")),
		}
		short.Check(t, b.Connect(free[0].node, free[0].num, free[1].node, free[1].num, link))
		free = free[2:]
	}
	f := short.Must(b.Build())(t)
	base := make([]fabric.LID, f.NumPorts())
	lmcs := make([]uint8, f.NumPorts())
	next := fabric.LID(rapid.IntRange(1, 40).Draw(t, "first LID"))
	f.EndPorts(func(p fabric.PortID) {
		if rapid.IntRange(0, 9).Draw(t, "no LID") == 0 {
			return
		}
		if lmc {
			lmcs[p] = uint8(rapid.IntRange(0, 2).Draw(t, "LMC"))
		}
		n := fabric.LID(1) << lmcs[p]
		base[p] = (next + n - 1) / n * n
		next = base[p] + n + fabric.LID(rapid.IntRange(0, 2).Draw(t, "gap"))
	})
	return short.Must(f.WithLIDs(base, lmcs))(t)
}

// drawTables draws any ports that the switches have.
func drawTables(t *rapid.T, f *fabric.Fabric) *lft.Tables {
	tables := lft.NewTables(f.NumSwitches(), f.MaxLID()+fabric.LID(rapid.IntRange(0, 3).Draw(t, "beyond")))
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports := f.Node(s).NumPorts
		row := tables.Row(s)
		for l := range row {
			if p := fabric.PortNum(rapid.IntRange(0, min(int(ports), 6)+1).Draw(t, "port")); p <= ports && p < 7 {
				row[l] = p
			}
		}
	}
	return tables
}

// TestTablesRoundTrip reads back what is written, in all forms, and compares
// the bytes that one CPU and several write.
func TestTablesRoundTrip(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t, true)
		if f.NumSwitches() == 0 {
			return
		}
		tables := drawTables(t, f)
		lean := rapid.Bool().Draw(t, "lean")
		for form, write := range map[Form]func(io.Writer, *fabric.Fabric, *lft.Tables, WriteOptions) error{LFTs: WriteLFTs, FDBs: WriteFDBs, LIDMatrix: WriteLIDMatrix} {
			var b, one bytes.Buffer
			short.Check(t, write(&b, f, tables, WriteOptions{Lean: lean}))
			runtime.GOMAXPROCS(1)
			err := write(&one, f, tables, WriteOptions{Lean: lean})
			runtime.GOMAXPROCS(4)
			if err != nil || !bytes.Equal(b.Bytes(), one.Bytes()) {
				t.Fatalf("%s: one CPU writes\n%s\nseveral\n%s", form, &one, &b)
			}
			if form == LIDMatrix {
				checkHops(t, f, tables, b.Bytes())
				continue
			}
			got, problems, err := ReadLFTs("in", b.Bytes(), f, Options{})
			if err != nil || problems != nil {
				t.Fatalf("%s: %v %v\n%s", form, err, problems, &b)
			}
			short.MustEqual(t, got.MaxLID(), tables.MaxLID(), form, "to LID")
			for s := range fabric.NodeID(f.NumSwitches()) {
				for l, want := range tables.Row(s) {
					if form == FDBs && f.LIDPort(fabric.LID(l)) == fabric.NoPort {
						want = fabric.NoPath // no row for unused LIDs
					}
					short.MustEqual(t, got.Row(s)[l], want, form, "switch", s, "LID", l, "port", &b)
				}
			}
		}
	})
}

// checkHops reads a lid matrix and compares it with walks of the tables, one
// pair after the other.
func checkHops(t *rapid.T, f *fabric.Fabric, tables *lft.Tables, data []byte) {
	matrix, err := readLIDMatrix(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	walk := func(from, to fabric.NodeID) int {
		l := f.LID(f.PortBase(to))
		for hops := range f.NumSwitches() {
			p := tables.Row(from)[l]
			if from == to && p == fabric.ManagementPort {
				return hops
			}
			if p == 0 || p > f.Node(from).NumPorts {
				break
			}
			peer := f.Peer(f.Port(from, p))
			if peer == fabric.NoPort || !f.IsSwitch(f.Owner(peer)) {
				break
			}
			from = f.Owner(peer)
		}
		return 255
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		rows := 0
		for target := range fabric.NodeID(f.NumSwitches()) {
			l := f.LID(f.PortBase(target))
			if l == 0 {
				continue
			}
			want := make([]uint8, int(f.Node(s).NumPorts)+1)
			want[0] = 255
			for p := range want[1:] {
				want[p+1] = 255
				peer := f.Peer(f.Port(s, fabric.PortNum(p+1)))
				if peer == fabric.NoPort || !f.IsSwitch(f.Owner(peer)) || f.Owner(peer) == s {
					continue
				}
				want[p+1] = uint8(min(255, 1+walk(f.Owner(peer), target)))
				want[0] = min(want[0], want[p+1])
			}
			if s == target {
				want[0] = 0
			}
			if want[0] == 255 {
				want = nil
			} else {
				rows++
			}
			short.Diff(t, matrix[f.Node(s).GUID][l], want, "from", s, "to", target, data)
		}
		short.MustEqual(t, len(matrix[f.Node(s).GUID]), rows, "switch", s, "rows", data)
	}
}

// TestManyHops walks a chain that is longer than hop counts go.
func TestManyHops(t *testing.T) {
	f := meshFabric(t, []int{300}, false)
	tables := lft.NewTables(f.NumSwitches(), f.MaxLID())
	for s := range fabric.NodeID(f.NumSwitches()) {
		for target := range fabric.NodeID(f.NumSwitches()) {
			l := f.LID(f.PortBase(target))
			tables.Row(s)[l] = fabric.ManagementPort
			ports, to := f.SwitchLinks(s)
			for i, u := range to {
				if s != target && (u > s) == (target > s) {
					tables.Row(s)[l] = f.Num(ports[i])
				}
			}
		}
	}
	h := NewHops(f, tables)
	for _, c := range []struct{ from, to, want int }{{0, 0, 0}, {0, 1, 1}, {0, 253, 253}, {0, 254, 254}, {0, 255, 254}, {0, 299, 254}, {299, 0, 254}, {299, 290, 9}} {
		if got := h.dist[c.to*h.n+c.from]; int(got) != c.want {
			t.Errorf("%d hops from %d to %d, want %d", got, c.from, c.to, c.want)
		}
	}
	m := short.Must(readLIDMatrix(text(t, func(w io.Writer) error { return WriteLIDMatrix(w, f, tables, WriteOptions{}) })))(t)
	rows := m[f.Node(0).GUID]
	if near, far := rows[f.LID(f.PortBase(254))], rows[f.LID(f.PortBase(256))]; near[0] != 254 || far != nil {
		t.Errorf("254 switches off %v, 256 off %v", near, far)
	}
}

// TestSubnetListRoundTrip reads back what is written of the nodes that have
// cables.
func TestSubnetListRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t, false)
		if f.NumLinks() == 0 || sharesGUID(f) {
			return
		}
		var b bytes.Buffer
		short.Check(t, WriteSubnetList(&b, f))
		g, problems, err := topology.Parse("in", b.Bytes(), topology.Options{})
		zero := 0
		for _, p := range problems {
			if p.Kind == fabric.InvalidLID && strings.HasPrefix(p.Message, "LID 0:") {
				zero++
			}
		}
		lacking := 0
		if g != nil && g.MaxLID() > 0 {
			g.EndPorts(func(p fabric.PortID) {
				if g.LID(p) == 0 {
					lacking++
				}
			})
		}
		if err != nil || len(problems) != zero || zero != lacking {
			t.Fatalf("%v %v, %d ports without a LID\n%s", err, problems, lacking, &b)
		}
		short.Diff(t, describe(g), describe(cabled(t, f)), &b)
	})
}

// sharesGUID returns true if two end ports have one GUID, as where those of a node go on from 0.
func sharesGUID(f *fabric.Fabric) (shared bool) {
	met := map[fabric.GUID]bool{}
	f.EndPorts(func(p fabric.PortID) {
		shared = shared || met[f.PortGUID(p)]
		met[f.PortGUID(p)] = true
	})
	return shared
}

// cabled is f without the nodes that have no cable.
func cabled(t *rapid.T, f *fabric.Fabric) *fabric.Fabric {
	var b fabric.Builder
	index := make([]int, f.NumNodes())
	for n := range fabric.NodeID(f.NumNodes()) {
		index[n] = -1
		for p := fabric.PortNum(1); p <= f.Node(n).NumPorts && index[n] < 0; p++ {
			if f.Peer(f.Port(n, p)) == fabric.NoPort {
				continue
			}
			i := short.Must(b.AddNode(*f.Node(n)))(t)
			index[n] = i
		}
		if index[n] < 0 {
			continue
		}
		for p := fabric.PortNum(0); p <= f.Node(n).NumPorts; p++ {
			if at := f.Port(n, p); f.LID(at) > 0 {
				short.Check(t, b.SetPort(index[n], p, f.PortGUID(at), f.LID(at), 0))
			}
		}
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if peer := f.Peer(p); peer > p {
			short.Check(t, b.Connect(index[f.Owner(p)], f.Num(p), index[f.Owner(peer)], f.Num(peer), f.Link(p)))
		}
	}
	return short.Must(b.Build())(t)
}

// TestGUID2LIDRoundTrip reads back the LIDs of the end ports.
func TestGUID2LIDRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t, true)
		seen := make(map[fabric.GUID]bool) // a drawn GUID may be another's port GUID
		twice := false
		f.EndPorts(func(p fabric.PortID) {
			if f.LID(p) > 0 {
				twice = twice || seen[f.PortGUID(p)] || f.PortGUID(p) == 0
				seen[f.PortGUID(p)] = true
			}
		})
		if twice {
			return
		}
		var b bytes.Buffer
		short.Check(t, WriteGUID2LID(&b, f))
		list, problems, err := ReadGUID2LID("in", b.Bytes(), Options{})
		if err != nil || problems != nil || len(list) != len(seen) {
			t.Fatalf("%v %v %v\n%s", list, problems, err, &b)
		}
		for _, r := range list {
			p := f.LIDPort(r.Min)
			if p == fabric.NoPort || f.PortGUID(p) != r.Port || f.LID(p) != r.Min || f.LID(p)+1<<f.LMC(p)-1 != r.Max {
				t.Fatalf("%+v is not what the fabric has", r)
			}
		}
	})
}

// TestCPUs reads tables with errors in them on one CPU and on several.
func TestCPUs(t *testing.T) {
	f := meshFabric(t, []int{8, 8}, false)
	data := text(t, func(w io.Writer) error { return WriteLFTs(w, f, randomTables(t, f, 0, 1), WriteOptions{}) })
	for i := 1000; i < len(data); i += 7919 {
		data[i] = '!'
	}
	type result struct {
		rows, problems, err string
	}
	var results []result
	for _, cpus := range []int{1, 2, 7} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cpus))
		_, _, strict := ReadLFTs("in", data, f, Options{})
		tables, problems, err := ReadLFTs("in", data, f, Options{Lenient: true})
		if err != nil || strict == nil || len(problems) == 0 {
			t.Fatal(err, strict, problems)
		}
		results = append(results, result{rows(tables), problemLines(problems), strict.Error()})
	}
	if results[0] != results[1] || results[0] != results[2] {
		t.Errorf("%+v", results)
	}
}

// readTwice holds a reader to what all of them promise: an error means no result; a lenient reader
// agrees with a strict one that is content, and never fails once it knows the form. ok is whether
// the lenient one has a result.
func readTwice[T any](t *testing.T, data []byte, read func(string, []byte, Options) (T, []fabric.Problem, error), equal func(a, b T) bool, forms ...Form) (lenient T, ok bool) {
	t.Helper()
	var none T
	strict, problems, err := read("in", data, Options{})
	if err != nil && (!reflect.DeepEqual(strict, none) || problems != nil) {
		t.Fatal("an error and a result")
	}
	lenient, problems2, err2 := read("in", data, Options{Lenient: true})
	if err2 != nil {
		if err == nil || !reflect.DeepEqual(lenient, none) || slices.Contains(forms, Recognize(data)) {
			t.Fatalf("lenient: %v; strict: %v", err2, err)
		}
		return none, false
	}
	if err == nil && (!equal(strict, lenient) || !reflect.DeepEqual(problems, problems2)) {
		t.Fatalf("strict: %v %v; lenient: %v %v", strict, problems, lenient, problems2)
	}
	return lenient, true
}

// of is the reader of a form for one fabric.
func of[T any](f *fabric.Fabric, read func(string, []byte, *fabric.Fabric, Options) (T, []fabric.Problem, error)) func(string, []byte, Options) (T, []fabric.Problem, error) {
	return func(name string, data []byte, opt Options) (T, []fabric.Problem, error) {
		return read(name, data, f, opt)
	}
}

// equally compares results by a text of theirs.
func equally[T any](show func(T) string) func(a, b T) bool {
	return func(a, b T) bool { return show(a) == show(b) }
}

func deeply[T any](a, b T) bool { return reflect.DeepEqual(a, b) }

// FuzzReadLFTs: an error means no result; a lenient reader agrees with a
// strict one that is content, and never fails once it knows the form; what was
// read can be written and read again.
func FuzzReadLFTs(f *testing.F) {
	fab := pair(f)
	for _, s := range []string{
		tabA + tabB, fdbA + fdbB, tabA, tabA + tabA, headA + "0x0001 255 : (illegal port)\n0xbfff 001\n" + tail,
		"Unicast lids [0x0-0x4] of switch DR path slid 0; dlid 0; 0,1 guid 0xb (b):\n  Lid  Out   Destination\n       Port     Info \n0x0004 002 : (Channel Adapter portguid 0xd1: 'd')\n1 valid lids dumped \n\n*** WARNING ***: this\n",
		"osm_ucast_mgr_" + fdbA + "PLFT_NUM: 1\n0x0002 : 003  : 00   : yes\n", "File version: 1\n# x\n" + fdbB, strings.ReplaceAll(tabA+tabB, "\n", "\r\n"),
	} {
		f.Add([]byte(s))
	}
	for _, opt := range []WriteOptions{{}, {Lean: true}} {
		for _, b := range written(f, fab, mustRead(f, "seed", []byte(tabA+tabB), fab), opt) {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sameWithCRLF(t, data, fab)
		lenient, ok := readTwice(t, data, of(fab, ReadLFTs), equally(rows), LFTs, IBRoute, FDBs)
		if !ok {
			return
		}
		for s := range fabric.NodeID(fab.NumSwitches()) {
			for l, p := range lenient.Row(s) {
				if p > fab.Node(s).NumPorts && p != fabric.NoPath {
					t.Fatalf("switch %d LID %d port %d", s, l, p)
				}
			}
		}
		dumped := text(t, func(w io.Writer) error { return WriteLFTs(w, fab, lenient, WriteOptions{}) })
		for _, again := range [][]byte{dumped, ibRoute(t, fab, lenient, WriteOptions{})} {
			got, problems, err := ReadLFTs("again", again, fab, Options{})
			if err != nil || problems != nil || rows(got) != rows(lenient) {
				t.Fatalf("%v %v\n%s", err, problems, again)
			}
		}
	})
}

// FuzzReadGUID2LID: an error means no result, a lenient reader agrees, and the
// ranges are what they should be.
func FuzzReadGUID2LID(f *testing.F) {
	f.Add([]byte("0x000000000000000b 0x0004 0x0007\n\n0x000000000000000a 0x0001 0x0001\n\n"))
	f.Add([]byte("0xb 0x4 0x7\n0xa 0x1 0x1\r\n\t\nx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lenient, ok := readTwice(t, data, ReadGUID2LID, deeply)
		short.MustEqual(t, ok, true, "a lenient reader fails")
		seen := make(map[fabric.LID]bool)
		for i, r := range lenient {
			if i > 0 && r.Port <= lenient[i-1].Port || r.Min == 0 || r.Max < r.Min || r.Max > fabric.MaxUnicastLID {
				t.Fatalf("%v", lenient)
			}
			for l := r.Min; l <= r.Max; l++ {
				if seen[l] {
					t.Fatalf("LID %d twice", l)
				}
				seen[l] = true
			}
		}
	})
}

// FuzzReadSubnetList: an error means no result, a lenient reader agrees, and
// what was read is written and read again without a change.
func FuzzReadSubnetList(f *testing.F) {
	fab := oddFabric(f, 0, false)
	good := text(f, func(w io.Writer) error { return WriteSubnetList(w, fab) })
	for line := range bytes.Lines(good) {
		f.Add(line)
	}
	f.Add(good)
	f.Add(bytes.ReplaceAll(bytes.ReplaceAll(good[:len(good)/2], []byte(" SPD=10"), nil), []byte("ACT"), []byte("DWN")))
	f.Fuzz(func(t *testing.T, data []byte) {
		parse := func(name string, data []byte, opt Options) (*fabric.Fabric, []fabric.Problem, error) {
			return topology.Parse(name, data, topology.Options{Lenient: opt.Lenient})
		}
		lenient, ok := readTwice(t, data, parse, equally(describe))
		if !ok || lenient.NumLinks() == 0 {
			return
		}
		once := text(t, func(w io.Writer) error { return WriteSubnetList(w, lenient) })
		again, problems, err := topology.Parse("again", once, topology.Options{})
		problems = slices.DeleteFunc(problems, func(p fabric.Problem) bool { // those without a LID have none
			return p.Kind == fabric.InvalidLID && p.Message == fmt.Sprintf("LID 0: want 1 to %d; taken as none", fabric.MaxUnicastLID)
		})
		if err != nil || len(problems) > 0 {
			t.Fatalf("%v %v\n%s", err, problems, once)
		}
		short.EqualList(t, once, text(t, func(w io.Writer) error { return WriteSubnetList(w, again) }), "then")
	})
}

// FuzzReadSL2VL: an error means no result, a lenient reader agrees, and what
// was read is written in each form and read again without a change.
func FuzzReadSL2VL(f *testing.F) {
	fab := pair(f)
	f.Add([]byte(dumpC))
	f.Add([]byte(queryA + queryC))
	f.Add([]byte("Switch 0xa, base LID 1, \"x\"\r\n#\r\n#--\r\n0 1 : 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\r\n#--\r\n"))
	f.Add([]byte("ibwarn: [1] x\n# SL2VL table: Lid 1\nports: in  0, out  1: |15| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|16|\n# SL2VL table: DR path 0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lenient, ok := readTwice(t, data, of(fab, ReadSL2VL), (*lft.SL2VL).Equal, SL2VL, SMPQuerySL2VL)
		if !ok {
			return
		}
		texts := sl2vlTexts(t, lenient)
		for _, form := range []Form{SL2VL, SMPQuerySL2VL} {
			b := texts[form]
			again, problems, err := ReadSL2VL("again", b, fab, Options{})
			if err != nil || len(problems) > 0 {
				t.Fatalf("%s: %v %v\n%s", form, err, problems, b)
			}
			sameWays(t, form.String(), lenient, again)
		}
	})
}

// FuzzReadPathSLs: an error means no result, a lenient reader agrees, and what
// was read is written and read again without a change.
func FuzzReadPathSLs(f *testing.F) {
	fab := pair(f)
	f.Add([]byte(pathsAB))
	f.Add([]byte(pairsAB))
	f.Add([]byte("Path SLs [1-9] of 1 switches\r\nswitch 0xa\r\ndlid 1 sl 15\r\ndlid 2-9 sl 0\r\n"))
	f.Add([]byte("0xc0 2 1 x\n0xa 2 1\nSwitch 0xb, x\n0x2 : 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		written := func(p *lft.PathSLs) string {
			return string(text(t, func(w io.Writer) error { return WritePathSLs(w, fab, p, WriteOptions{}) }))
		}
		lenient, ok := readTwice(t, data, of(fab, ReadPathSLs), equally(written), PathSLs, IBDMPathSLs)
		if !ok {
			return
		}
		once := written(lenient)
		again, problems, err := ReadPathSLs("again", []byte(once), fab, Options{})
		if err != nil || problems != nil {
			t.Fatalf("%v %v\n%s", err, problems, once)
		}
		short.Equal(t, written(again), once, "written again")
	})
}
