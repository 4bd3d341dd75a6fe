package dump

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// benchFabric is a fat tree of 1,024 hosts and 320 switches, with tables.
func benchFabric(b *testing.B) (*fabric.Fabric, *lft.Tables) {
	b.Helper()
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 16, Levels: 3})
	f = withLIDs(b, f, err)
	return f, randomTables(b, f, 0, 1)
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

func benchmarkWrite(b *testing.B, write func(io.Writer) error) {
	b.ReportAllocs()
	for b.Loop() {
		var c counter
		short.Check(b, write(&c))
		b.SetBytes(int64(c))
	}
}

func benchmarkRead(b *testing.B, data []byte, read func() error) {
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		short.Check(b, read())
	}
}

// renamed is the same fabric with other descriptions, so that no row is the
// one that OpenSM would write for it.
func renamed(b *testing.B, f *fabric.Fabric) *fabric.Fabric {
	b.Helper()
	var bl fabric.Builder
	for n := range fabric.NodeID(f.NumNodes()) {
		node := *f.Node(n)
		node.Description = "by another name"
		i := short.Must(bl.AddNode(node))(b)
		for p := fabric.PortNum(0); p <= node.NumPorts; p++ {
			if at := f.Port(n, p); f.LID(at) > 0 {
				short.Check(b, bl.SetPort(i, p, f.PortGUID(at), f.LID(at), 0))
			}
		}
	}
	return short.Must(bl.Build())(b)
}

func BenchmarkReadLFTs(b *testing.B) {
	f, tables := benchFabric(b)
	files := written(b, f, tables, WriteOptions{})
	lean := written(b, f, tables, WriteOptions{Lean: true})
	for _, c := range []struct {
		name string
		data []byte
		f    *fabric.Fabric
	}{
		{"lfts", files[LFTs], f},
		{"lfts/renamed", files[LFTs], renamed(b, f)},
		{"lfts/lean", lean[LFTs], f},
		{"ibroute", files[IBRoute], f},
		{"fdbs", files[FDBs], f},
	} {
		b.Run(c.name, func(b *testing.B) {
			benchmarkRead(b, c.data, func() error {
				_, _, err := ReadLFTs("bench", c.data, c.f, Options{})
				return err
			})
		})
	}
}

func BenchmarkReadSubnetList(b *testing.B) {
	f, _ := benchFabric(b)
	data := text(b, func(w io.Writer) error { return WriteSubnetList(w, f) })
	benchmarkRead(b, data, func() error {
		_, _, err := topology.Parse("bench", data, topology.Options{})
		return err
	})
}

func BenchmarkReadGUID2LID(b *testing.B) {
	f, _ := benchFabric(b)
	data := text(b, func(w io.Writer) error { return WriteGUID2LID(w, f) })
	benchmarkRead(b, data, func() error {
		_, _, err := ReadGUID2LID("bench", data, Options{})
		return err
	})
}

func BenchmarkWriteLFTs(b *testing.B) {
	f, tables := benchFabric(b)
	benchmarkWrite(b, func(w io.Writer) error { return WriteLFTs(w, f, tables, WriteOptions{}) })
}

func BenchmarkWriteFDBs(b *testing.B) {
	f, tables := benchFabric(b)
	benchmarkWrite(b, func(w io.Writer) error { return WriteFDBs(w, f, tables, WriteOptions{}) })
}

func BenchmarkWriteLIDMatrix(b *testing.B) {
	f, tables := benchFabric(b)
	benchmarkWrite(b, func(w io.Writer) error { return WriteLIDMatrix(w, f, tables, WriteOptions{}) })
}

func BenchmarkWriteSubnetList(b *testing.B) {
	f, _ := benchFabric(b)
	benchmarkWrite(b, func(w io.Writer) error { return WriteSubnetList(w, f) })
}

func BenchmarkWriteGUID2LID(b *testing.B) {
	f, _ := benchFabric(b)
	benchmarkWrite(b, func(w io.Writer) error { return WriteGUID2LID(w, f) })
}

// benchTorus is a torus of 32x32 with dateline tables: the maps and path SLs
// of real use, in which all sources differ.
func benchTorus(b *testing.B) (*fabric.Fabric, *lft.PathSLs, *lft.SL2VL) {
	b.Helper()
	f := meshFabric(b, []int{32, 32}, true)
	_, paths, vls := torusDOR(b, f, 32, 32)
	return f, paths, vls
}

func BenchmarkWriteSL2VL(b *testing.B) {
	_, _, vls := benchTorus(b)
	benchmarkWrite(b, func(w io.Writer) error { return WriteSL2VL(w, vls, WriteOptions{}) })
}

func BenchmarkReadSL2VL(b *testing.B) {
	f, _, vls := benchTorus(b)
	for form, data := range sl2vlTexts(b, vls) {
		b.Run(form.String(), func(b *testing.B) {
			benchmarkRead(b, data, func() error {
				_, _, err := ReadSL2VL("in", data, f, Options{})
				return err
			})
		})
	}
}

func BenchmarkWritePathSLs(b *testing.B) {
	f, paths, _ := benchTorus(b)
	benchmarkWrite(b, func(w io.Writer) error { return WritePathSLs(w, f, paths, WriteOptions{}) })
}

func BenchmarkReadPathSLs(b *testing.B) {
	f, paths, _ := benchTorus(b)
	data := text(b, func(w io.Writer) error { return WritePathSLs(w, f, paths, WriteOptions{}) })
	benchmarkRead(b, data, func() error {
		_, _, err := ReadPathSLs("in", data, f, Options{})
		return err
	})
}

func BenchmarkWriteIBDMPathSLs(b *testing.B) {
	f, paths, _ := benchTorus(b)
	benchmarkWrite(b, func(w io.Writer) error { return WriteIBDMPathSLs(w, f, paths) })
}

func BenchmarkReadIBDMPathSLs(b *testing.B) {
	f, paths, _ := benchTorus(b)
	data := text(b, func(w io.Writer) error { return WriteIBDMPathSLs(w, f, paths) })
	benchmarkRead(b, data, func() error {
		_, _, err := ReadPathSLs("in", data, f, Options{})
		return err
	})
}

// benchGroups is n groups of 64 random ports on benchFabric.
func benchGroups(b *testing.B, n int) (*fabric.Fabric, []mft.Tree) {
	b.Helper()
	f, _ := benchFabric(b)
	random := rand.New(rand.NewPCG(1, 2))
	trees := make([]mft.Tree, n)
	hosts := slices.Clone(f.CAPorts())
	for i := range trees {
		random.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		ports := slices.Clone(hosts[:64])
		slices.Sort(ports)
		mgid := short.Must(mft.ParseMGID(fmt.Sprintf("ff12:401b:ffff::1:%x", i+1)))(b)
		trees[i] = mft.Tree{Group: i, Name: fmt.Sprintf("group %d", i), MGID: mgid, MLID: mft.MinMLID + 1 + fabric.LID(i), Receivers: ports, Senders: ports}
	}
	return f, trees
}

// withMGIDs gives trees the MGIDs that ibweave gives to groups without one, which
// are in no order.
func withMGIDs(b *testing.B, f *fabric.Fabric, trees []mft.Tree) []mft.Tree {
	b.Helper()
	groups := make([]mft.Group, len(trees))
	for i := range trees {
		groups[i] = mft.Group{Name: trees[i].Name, Receivers: trees[i].Receivers}
	}
	ids := short.Must(mft.NewIDs(groups, mft.Options{}))(b)
	trees = slices.Clone(trees)
	for i := range trees {
		trees[i].MGID = ids.MGID(i, 0)
	}
	return trees
}

func BenchmarkWriteGroups(b *testing.B) {
	f, trees := benchGroups(b, 10000)
	b.Run("partitions.conf", func(b *testing.B) {
		benchmarkWrite(b, func(w io.Writer) error { return WritePartitions(w, f, trees) })
	})
	b.Run("partitions.conf/given", func(b *testing.B) {
		given := withMGIDs(b, f, trees)
		benchmarkWrite(b, func(w io.Writer) error { return WritePartitions(w, f, given) })
	})
}

func BenchmarkReadSAQuery(b *testing.B) {
	f, trees := benchGroups(b, 10000)
	random := rand.New(rand.NewPCG(3, 4))
	var members, groups, records []byte
	for i := range trees {
		t := &trees[i]
		mlid := fmt.Sprintf("0x%X", uint16(t.MLID))
		groups = append(groups, saGroupText(t.MGID.String(), mlid, "0x0")...)
		if i%10 > 0 {
			continue
		}
		for _, k := range random.Perm(len(t.Receivers)) {
			p := t.Receivers[k]
			gid := fmt.Sprintf("fe80::%x:%x:%x:%x", uint16(f.PortGUID(p)>>48), uint16(f.PortGUID(p)>>32), uint16(f.PortGUID(p)>>16), uint16(f.PortGUID(p)))
			members = append(members, saMember(t.MGID.String(), mlid, gid, "0x21", "0x0")...)
			records = append(records, strings.NewReplacer("ff12:a01d::2", t.MGID.String(), "0xc005", strings.ToLower(mlid), "fe80::d1", gid).Replace(saRecordText)...)
		}
	}
	for _, c := range []struct {
		name string
		data []byte
	}{{"m", members}, {"g", groups}, {"MCMR", records}} {
		b.Run(c.name, func(b *testing.B) {
			benchmarkRead(b, c.data, func() error {
				_, _, err := ReadSAQuery("in", c.data, f, Options{})
				return err
			})
		})
	}
}
