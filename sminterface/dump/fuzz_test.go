package dump

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

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
