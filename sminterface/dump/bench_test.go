package dump

import (
	"fmt"
	"io"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
)

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// benchForm is a text of a form, what writes it, if not nil, and what reads it.
type benchForm struct {
	name  string
	data  []byte
	write func(io.Writer) error
	read  func(data []byte) error
}

// benchForms has all forms: of a fat tree of 1,024 hosts and 320 switches with tables; of a torus
// of 32x32 with dateline tables, the maps and path SLs of real use, in which all sources differ;
// and of 10,000 MLIDs.
func benchForms(b *testing.B) (forms []benchForm) {
	b.Helper()
	add := func(name string, write func(io.Writer) error, read func([]byte) error) {
		forms = append(forms, benchForm{name, text(b, write), write, read})
	}
	f := withLIDs(b, short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 16, Levels: 3}))(b), nil)
	tables := randomTables(b, f, 0, 1)
	readLFTs := func(f *fabric.Fabric) func(data []byte) error {
		return func(data []byte) error {
			_, _, err := ReadLFTs("bench", data, f, Options{})
			return err
		}
	}
	for name, opt := range map[string]WriteOptions{"lfts": {}, "lfts/lean": {Lean: true}} {
		add(name, func(w io.Writer) error { return WriteLFTs(w, f, tables, opt) }, readLFTs(f))
	}
	add("fdbs", func(w io.Writer) error { return WriteFDBs(w, f, tables, WriteOptions{}) }, readLFTs(f))
	files := written(b, f, tables, WriteOptions{})
	forms = append(forms, benchForm{"lfts/renamed", files[LFTs], nil, readLFTs(renamed(b, f))}, benchForm{"ibroute", files[IBRoute], nil, readLFTs(f)})
	add("lid-matrix", func(w io.Writer) error { return WriteLIDMatrix(w, f, tables, WriteOptions{}) }, nil)
	add("subnet.lst", func(w io.Writer) error { return WriteSubnetList(w, f) }, func(data []byte) error {
		_, _, err := topology.Parse("bench", data, topology.Options{})
		return err
	})
	add("guid2lid", func(w io.Writer) error { return WriteGUID2LID(w, f) }, func(data []byte) error {
		_, _, err := ReadGUID2LID("bench", data, Options{})
		return err
	})
	torus := meshFabric(b, []int{32, 32}, true)
	_, paths, vls := torusDOR(b, torus, 32, 32)
	add("sl2vl", func(w io.Writer) error { return WriteSL2VL(w, vls, WriteOptions{}) }, nil)
	for form, data := range sl2vlTexts(b, vls) {
		forms = append(forms, benchForm{form.String(), data, nil, func(data []byte) error {
			_, _, err := ReadSL2VL("bench", data, torus, Options{})
			return err
		}})
	}
	readPaths := func(data []byte) error {
		_, _, err := ReadPathSLs("bench", data, torus, Options{})
		return err
	}
	add("path-sls", func(w io.Writer) error { return WritePathSLs(w, torus, paths, WriteOptions{}) }, readPaths)
	add("path-sls of ibdmchk", func(w io.Writer) error { return WriteIBDMPathSLs(w, torus, paths) }, readPaths)
	masks := benchmarkMFTs(b)
	readMFTs := func(data []byte) error {
		_, _, err := ReadMFTs("bench", data, masks.Fabric(), Options{})
		return err
	}
	add("mcfdbs", func(w io.Writer) error { return WriteMCFDBs(w, masks, WriteOptions{}) }, readMFTs)
	for name, opt := range map[string]WriteOptions{"dump_mfts": {}, "dump_mfts/lean": {Lean: true}} {
		add(name, func(w io.Writer) error { return WriteMFTs(w, masks, opt, 0) }, readMFTs)
	}
	hosts := f.CAPorts()
	trees := make([]mft.Tree, 10_000)
	for i := range trees {
		ports := hosts[i%(len(hosts)-64):][:64]
		trees[i] = mft.Tree{Group: i, MGID: mgid(b, fmt.Sprintf("ff12:401b:ffff::1:%x", i+1)), MLID: mft.MinMLID + 1 + fabric.LID(i), Receivers: ports, Senders: ports}
	}
	add("partitions.conf", func(w io.Writer) error { return WritePartitions(w, f, trees) }, nil)
	return forms
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

func BenchmarkWrite(b *testing.B) {
	for _, form := range benchForms(b) {
		if form.write == nil {
			continue
		}
		b.Run(form.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var c counter
				short.Check(b, form.write(&c))
				b.SetBytes(int64(c))
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for _, form := range benchForms(b) {
		if form.read == nil {
			continue
		}
		b.Run(form.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(form.data)))
			for b.Loop() {
				short.Check(b, form.read(form.data))
			}
		})
	}
}
