package dump

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/ibweave/ibweave/fabric"
)

// sameWithCRLF reads a text a second time with lines that end in CRLF. No program
// prints those, so that the quick readers of printed lines leave them to the thorough
// ones: error, problems and result have to be the same.
func sameWithCRLF[T any](t testing.TB, data []byte, read func(data []byte, opt Options) (T, []Problem, error), show func(T) string) {
	t.Helper()
	if bytes.ContainsRune(data, '\r') {
		return
	}
	slow := bytes.ReplaceAll(data, nl, []byte("\r\n"))
	for _, opt := range []Options{{}, {Lenient: true}} {
		result, problems, err := read(data, opt)
		result2, problems2, err2 := read(slow, opt)
		switch {
		case (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error():
			t.Fatalf("%v\nwith CRLF: %v", err, err2)
		case problemLines(problems) != problemLines(problems2):
			t.Fatalf("%s\nwith CRLF:\n%s", problemLines(problems), problemLines(problems2))
		case err == nil && show(result) != show(result2):
			t.Fatalf("%s\nwith CRLF:\n%s", show(result), show(result2))
		}
		for i := range problems {
			if !reflect.DeepEqual(problems[i].Text, problems2[i].Text) {
				t.Fatalf("%q with CRLF: %q", problems[i].Text, problems2[i].Text)
			}
		}
	}
}

// reading binds a reader to a fabric.
func reading[T any](read func(string, []byte, *fabric.Fabric, Options) (T, []Problem, error), f *fabric.Fabric) func([]byte, Options) (T, []Problem, error) {
	return func(data []byte, opt Options) (T, []Problem, error) { return read("in", data, f, opt) }
}
