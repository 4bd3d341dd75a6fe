package files

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/ibweave/ibweave/internal/short"
)

// utf16Of is text as Windows writes it.
func utf16Of(text string, order binary.AppendByteOrder) []byte {
	b := order.AppendUint16(nil, 0xfeff)
	for _, u := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, u)
	}
	return b
}

func TestUTF16(t *testing.T) {
	text := strings.Repeat("Switch\t36 \"S-1\"\r\n \U0001f600 \u00fc\n", 10_000)
	for form, order := range map[string]binary.AppendByteOrder{littleEndian: binary.LittleEndian, bigEndian: binary.BigEndian} {
		data := utf16Of(text+"\ufeff", order)
		short.Equal(t, compression(data), form, "is not recognized")
		for _, odd := range []bool{false, true} { // as it comes, and byte by byte
			from := io.Reader(strings.NewReader(string(data)))
			if odd {
				from = iotest.OneByteReader(from)
			}
			got, err := io.ReadAll(newUTF16(form, from))
			if want := text + "\ufeff"; err != nil || string(got) != want {
				t.Errorf("%s: %d bytes, %v; want %d", form, len(got), err, len(want))
			}
		}
	}
	for data, want := range map[string]string{
		"a\x00b":                   "a\ufffd", // half a unit
		"\x3d\xd8":                 "\ufffd",  // half a pair
		"\x3d\xd8a\x00":            "\ufffda",
		"\x00\xdc\x3d\xd8\x00\xde": "\ufffd\U0001f600",
		"":                         "",
	} {
		short.Equal(t, string(short.Must(io.ReadAll(newUTF16(littleEndian, strings.NewReader(data))))(t)), want, data)
	}
	failing := iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("a\x00b\x00")))
	if _, err := io.ReadAll(newUTF16(littleEndian, failing)); err == nil {
		t.Error("an error of the source is lost")
	}
}

// What is no text says what to do.
func TestForeignForms(t *testing.T) {
	archive := string(tarOf(t, member{"a", []byte("one"), 0}))
	for start, want := range map[string]string{archive: "tar archive", string(gz(t, []byte(archive))): "tar archive", "PK\x03\x04...": "Excel", "BZh91": "bzip2", "\xfd7zXZ\x00...": "xz"} {
		if _, err := Decompress("f", []byte(start), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", start, err, want)
		}
	}
}
