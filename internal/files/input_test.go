package files

import (
	"bytes"
	"compress/gzip"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// none is no limit.
func none([]byte) (int64, error) { return 1 << 40, nil }

// TestDecompress undoes both compressions, and leaves other text alone.
func TestDecompress(t *testing.T) {
	plain := []byte(strings.Repeat("0x0001 001 : (Switch portguid 0x1: 'a')\n", 2000))
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zst := enc.EncodeAll(plain, nil)
	for name, data := range map[string][]byte{"plain": plain, "gzip": gz.Bytes(), "zstd": zst, "two frames": slices.Concat(enc.EncodeAll(plain[:100], nil), enc.EncodeAll(plain[100:], nil))} {
		if got, err := Decompress("file", data, none); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	for name, data := range map[string][]byte{"gzip": gz.Bytes()[:gz.Len()-9], "zstd": zst[:len(zst)-3], "gzip header": {0x1f, 0x8b}} {
		if got, err := Decompress("file", data, none); err == nil || got != nil || !strings.HasPrefix(err.Error(), "file: "+strings.Fields(name)[0]+": ") {
			t.Errorf("%s cut short: %d bytes, %v", name, len(got), err)
		}
	}
	if got, err := Decompress("file", nil, none); err != nil || got != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
}

// FuzzDecompress: an error means no result, and other data comes back.
func FuzzDecompress(f *testing.F) {
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x04\x00\x43\xbe\xb7\xe8\x01\x00\x00\x00"))
	f.Add([]byte("\x28\xb5\x2f\xfd\x04\x00\x09\x00\x00\x61\x35\xdf\x4f\xb4"))
	f.Add([]byte("Unicast lids"))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := Decompress("file", data, none)
		if err != nil && out != nil {
			t.Fatal("an error and a result")
		}
		if !bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}) && !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) && (err != nil || !bytes.Equal(out, data)) {
			t.Fatalf("%v", err)
		}
	})
}
