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
)

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
		strict, problems, err := ReadLFTs("in", data, fab, Options{})
		if err != nil && (strict != nil || problems != nil) {
			t.Fatal("an error and a result")
		}
		lenient, problems2, err2 := ReadLFTs("in", data, fab, Options{Lenient: true})
		if err2 != nil {
			if form := Recognize(data); err == nil || lenient != nil || form == LFTs || form == IBRoute || form == FDBs {
				t.Fatalf("lenient: %v; strict: %v", err2, err)
			}
			return
		}
		if err == nil && (!reflect.DeepEqual(problems, problems2) || rows(strict) != rows(lenient)) {
			t.Fatalf("strict: %v\n%slenient: %v\n%s", problems, rows(strict), problems2, rows(lenient))
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
		strict, problems, err := ReadGUID2LID("in", data, Options{})
		if err != nil && (strict != nil || problems != nil) {
			t.Fatal("an error and a result")
		}
		lenient, problems2 := short.Must2(ReadGUID2LID("in", data, Options{Lenient: true}))(t)
		if err == nil && (!reflect.DeepEqual(strict, lenient) || !reflect.DeepEqual(problems, problems2)) {
			t.Fatalf("strict: %v %v; lenient: %v %v", strict, problems, lenient, problems2)
		}
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
		strict, problems, err := topology.Parse("in", data, topology.Options{})
		if err != nil && (strict != nil || problems != nil) {
			t.Fatal("an error and a result")
		}
		lenient, problems2, err2 := topology.Parse("in", data, topology.Options{Lenient: true})
		if err2 != nil {
			if err == nil || lenient != nil {
				t.Fatalf("lenient: %v; strict: %v", err2, err)
			}
			return
		}
		if err == nil && (!reflect.DeepEqual(problems, problems2) || describe(strict) != describe(lenient)) {
			t.Fatalf("strict: %v\n%s\nlenient: %v\n%s", problems, describe(strict), problems2, describe(lenient))
		}
		if lenient.NumLinks() == 0 {
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
		if twice := text(t, func(w io.Writer) error { return WriteSubnetList(w, again) }); !bytes.Equal(once, twice) {
			t.Fatalf("%s\nthen\n%s", once, twice)
		}
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
		strict, problems, err := ReadSL2VL("in", data, fab, Options{})
		if err != nil && (strict != nil || problems != nil) {
			t.Fatal("an error and a result")
		}
		lenient, problems2, err2 := ReadSL2VL("in", data, fab, Options{Lenient: true})
		if err2 != nil {
			if form := Recognize(data); err == nil || lenient != nil || form == SL2VL || form == SMPQuerySL2VL {
				t.Fatalf("lenient: %v; strict: %v", err2, err)
			}
			return
		}
		if err == nil && (!strict.Equal(lenient) || !reflect.DeepEqual(problems, problems2)) {
			t.Fatalf("strict: %v; lenient: %v", problems, problems2)
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
		strict, problems, err := ReadPathSLs("in", data, fab, Options{})
		if err != nil && (strict != nil || problems != nil) {
			t.Fatal("an error and a result")
		}
		lenient, problems2, err2 := ReadPathSLs("in", data, fab, Options{Lenient: true})
		if err2 != nil {
			if form := Recognize(data); err == nil || lenient != nil || form == PathSLs || form == IBDMPathSLs {
				t.Fatalf("lenient: %v; strict: %v", err2, err)
			}
			return
		}
		once := text(t, func(w io.Writer) error { return WritePathSLs(w, fab, lenient, WriteOptions{}) })
		if err == nil {
			if theirs := text(t, func(w io.Writer) error { return WritePathSLs(w, fab, strict, WriteOptions{}) }); !bytes.Equal(once, theirs) || !reflect.DeepEqual(problems, problems2) {
				t.Fatalf("strict: %v\n%s\nlenient: %v\n%s", problems, theirs, problems2, once)
			}
		}
		again, problems, err := ReadPathSLs("again", once, fab, Options{})
		if err != nil || problems != nil {
			t.Fatalf("%v %v\n%s", err, problems, once)
		}
		if twice := text(t, func(w io.Writer) error { return WritePathSLs(w, fab, again, WriteOptions{}) }); !bytes.Equal(once, twice) {
			t.Fatalf("%s\nthen\n%s", once, twice)
		}
	})
}
