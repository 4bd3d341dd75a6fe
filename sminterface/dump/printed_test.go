package dump

import (
	"bytes"
	"io"
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
			if problems[i].Text != problems2[i].Text {
				t.Fatalf("%q with CRLF: %q", problems[i].Text, problems2[i].Text)
			}
		}
	}
}

// reading binds a reader to a fabric.
func reading[T any](read func(string, []byte, *fabric.Fabric, Options) (T, []Problem, error), f *fabric.Fabric) func([]byte, Options) (T, []Problem, error) {
	return func(data []byte, opt Options) (T, []Problem, error) { return read("in", data, f, opt) }
}

// The order of the hosts has a line each, whatever their descriptions have in them.
func TestWriteCAOrder(t *testing.T) {
	var b fabric.Builder
	for i, n := range []fabric.Node{{GUID: 1, Type: fabric.Switch, NumPorts: 4}, {GUID: 2, Type: fabric.CA, NumPorts: 1, Description: "a\nb"}} {
		if _, err := b.AddNode(n); err != nil {
			t.Fatal(err)
		}
		if err := b.SetPort(i, fabric.PortNum(i), 0, fabric.LID(10+i), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Connect(0, 1, 1, 1, fabric.Link{}); err != nil {
		t.Fatal(err)
	}
	f, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	got := string(text(t, func(w io.Writer) error { return WriteCAOrder(w, f, []fabric.PortID{fabric.NoPort, f.CAPorts()[0]}) }))
	if want := "0xFFFF\tDUMMY\n0x000b\ta b\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
