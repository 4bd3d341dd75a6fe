package dump

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// sameWithCRLF reads forwarding tables a second time with lines that end in CRLF. No
// program prints those, so that the tuned loops leave them to the readers of the forms:
// error, problems and tables have to be the same.
func sameWithCRLF(t testing.TB, data []byte, f *fabric.Fabric) {
	t.Helper()
	if bytes.ContainsRune(data, '\r') {
		return
	}
	slow := bytes.ReplaceAll(data, nl, []byte("\r\n"))
	for _, opt := range []Options{{}, {Lenient: true}} {
		tables, problems, err := ReadLFTs("in", data, f, opt)
		tables2, problems2, err2 := ReadLFTs("in", slow, f, opt)
		switch {
		case (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error():
			t.Fatalf("%v\nwith CRLF: %v", err, err2)
		case problemLines(problems) != problemLines(problems2):
			t.Fatalf("%s\nwith CRLF:\n%s", problemLines(problems), problemLines(problems2))
		case err == nil && rows(tables) != rows(tables2):
			t.Fatalf("%s\nwith CRLF:\n%s", rows(tables), rows(tables2))
		}
		for i := range problems {
			short.MustEqual(t, problems[i].Text, problems2[i].Text, "with CRLF")
		}
	}
}

// Tables in which a byte is another, or is missing, or a line comes twice, are read by
// the tuned loops as by the readers of their forms.
func TestReadDamaged(t *testing.T) {
	f := meshFabric(t, []int{4, 3}, true)
	tables := randomTables(t, f, 100, 5)
	texts := written(t, f, tables, WriteOptions{})
	delete(texts, LIDMatrix)
	texts[Unknown] = written(t, f, tables, WriteOptions{Lean: true})[LFTs]
	broken := slices.Clone(texts[FDBs])
	broken[bytes.Index(broken, []byte("   : yes\n"))-2] = '\n'
	sameWithCRLF(t, broken, f)
	random := rand.New(rand.NewPCG(5, 6))
	for _, form := range slices.Sorted(maps.Keys(texts)) {
		text := texts[form]
		sameWithCRLF(t, text, f)
		for range short.Of(300, 30) {
			at := random.IntN(len(text))
			data := slices.Clone(text)
			switch random.IntN(4) {
			case 0:
				data = slices.Delete(data, at, at+1)
			case 1: // a line for a second time, further down
				line, next := cutLine(data, at)
				data = slices.Insert(data, next, append(slices.Clone(line), '\n')...)
			case 2: // whatever else the text has
				data[at] = data[random.IntN(len(data))]
			default:
				data[at] = " \n\t0159aAfFx:-.g"[random.IntN(16)]
			}
			sameWithCRLF(t, data, f)
		}
	}
}
