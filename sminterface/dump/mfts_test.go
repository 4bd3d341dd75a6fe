package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
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
