package dump

import (
	"bytes"
	"io"
	"runtime"
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
