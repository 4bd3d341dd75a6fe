package files

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/ibweave/ibweave/internal/short"
)

// none is no limit.
func none([]byte) (int64, error) { return 1 << 40, nil }

// TestDecompress undoes both compressions, and leaves other text alone.
func TestDecompress(t *testing.T) {
	plain := []byte(strings.Repeat("0x0001 001 : (Switch portguid 0x1: 'a')\n", 2000))
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	short.Must(w.Write(plain))(t)
	short.Check(t, w.Close())
	enc := short.Must(zstd.NewWriter(nil))(t)
	zst := enc.EncodeAll(plain, nil)
	for name, data := range map[string][]byte{"plain": plain, "gzip": gz.Bytes(), "zstd": zst, "two frames": slices.Concat(enc.EncodeAll(plain[:100], nil), enc.EncodeAll(plain[100:], nil))} {
		short.EqualList(t, short.Must(Decompress("file", data, none))(t), plain, name, "bytes")
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

// FuzzDecompress: an error means no result, data that is neither compressed nor refused comes
// back, and UTF-16 becomes UTF-8.
func FuzzDecompress(f *testing.F) {
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x04\x00\x43\xbe\xb7\xe8\x01\x00\x00\x00"))
	f.Add([]byte("\x28\xb5\x2f\xfd\x04\x00\x09\x00\x00\x61\x35\xdf\x4f\xb4"))
	f.Add([]byte("Unicast lids"))
	f.Add([]byte("\xfe\xff"))
	f.Add([]byte("\xff\xfeU\x00\x00\xd8"))
	f.Add([]byte(foreignForms[0].first))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := Decompress("file", data, none)
		var refused *RefusedError
		form := compression(data)
		switch {
		case err != nil && out != nil:
			t.Fatal("an error and a result")
		case errors.As(err, &refused):
		case form == "" && (err != nil || !bytes.Equal(out, data)):
			t.Fatalf("%q, %v", out, err)
		case (form == littleEndian || form == bigEndian) && (err != nil || !utf8.Valid(out)):
			t.Fatalf("%q, %v", out, err)
		}
	})
}

// yes is an endless stream.
type yes struct{ read int64 }

func (y *yes) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "y\n"[i&1]
	}
	y.read += int64(len(p))
	return len(p), nil
}

// zstdFrame is a frame of zstd by the letter of RFC 8878: a window, a content size, and
// blocks that repeat a byte 128 KiB times.
func zstdFrame(window byte, content uint64, blocks int) []byte {
	frame := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 3 << 6, window}, binary.LittleEndian.AppendUint64(nil, content)...)
	for i := range blocks {
		last := uint32(0)
		if i == blocks-1 {
			last = 1
		}
		head := binary.LittleEndian.AppendUint32(nil, 128<<10<<3|1<<1|last)
		frame = append(append(frame, head[:3]...), 'y')
	}
	return frame
}

// The limits hold while an input is read and while it is unpacked, whatever it says of
// its own size, in however many frames it comes.
func TestLimits(t *testing.T) {
	text := short.Of(40, 20) << 20
	var member bytes.Buffer
	z := short.Must(gzip.NewWriterLevel(&member, gzip.BestSpeed))(t)
	short.Must(z.Write(make([]byte, text)))(t)
	short.Check(t, z.Close())
	const window = 0x50 // 1 MiB
	bomb := zstdFrame(window, 100<<20, 800)
	for name, c := range map[string]struct {
		data  []byte
		limit int64
		want  string // "" for no error
	}{
		"within":                 {zstdFrame(window, 8<<20, 64), 8 << 20, ""},
		"one byte more":          {zstdFrame(window, 8<<20, 64), 8<<20 - 1, "has more than 8.0 MiB; want less"},
		"ratio":                  {bomb, 1 << 40, "has 3.1 KiB of zstd that unpack to more than 64 MiB, 20880 times as much; want less"},
		"small with a ratio":     {zstdFrame(window, 60<<20, 60*8), 1 << 40, ""},
		"frames":                 {bytes.Repeat(zstdFrame(window, 1<<20, 8), 100), 64 << 20, "has more than 64 MiB; want less"},
		"members":                {bytes.Repeat(member.Bytes(), 3), int64(2 * text), fmt.Sprintf("has more than %d MiB; want less", text>>19)},
		"members within":         {bytes.Repeat(member.Bytes(), 2), int64(2 * text), ""},
		"content size that lies": {zstdFrame(window, 1<<60, 8), 1 << 40, "zstd: "},
		"window of 1 TiB":        {zstdFrame(30<<3, 1<<20, 8), 1 << 40, "zstd: window size exceeded"},
		"window of 1 GiB":        {zstdFrame(20<<3, 1<<20, 8), 1 << 40, "zstd: window size exceeded"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		data, err := Decompress("file", c.data, func([]byte) (int64, error) { return c.limit, nil })
		runtime.ReadMemStats(&after)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || data != nil || !strings.HasPrefix(err.Error(), "file: "+c.want)):
			t.Errorf("%s: %d bytes, %v; want error %q", name, len(data), err, c.want)
		}
		if took := int64(after.TotalAlloc - before.TotalAlloc); took > 2*min(c.limit, max(freely, maxRatio*int64(len(c.data))))+256<<20 {
			t.Errorf("%s: %d MiB allocated", name, took>>20)
		}
	}

	// Streams and files.
	limit := func(start []byte) (int64, error) {
		short.Equal(t, len(start), StartSize, "the limit was asked with", "bytes")
		return 10 << 20, nil
	}
	refused := func(what string, data []byte, err error, want string) {
		t.Helper()
		var r *RefusedError
		if data != nil || !errors.As(err, &r) || err.Error() != "file: "+want {
			t.Errorf("%s: %d bytes, %v; want %s", what, len(data), err, want)
		}
	}
	y := &yes{}
	data, err := ReadAll("file", y, limit, new(atomic.Int64))
	refused("stream", data, err, "has more than 10 MiB; want less")
	if y.read > 10<<20+2*chunkSize {
		t.Errorf("%d bytes of a stream were read, want not much more than the limit", y.read)
	}
	data, err = ReadAll("file", &yes{}, func([]byte) (int64, error) { return 0, errors.New("no form") }, new(atomic.Int64))
	refused("stream of no form", data, err, "no form")
	for _, size := range []int64{0, 1, StartSize - 1, StartSize, StartSize + 1, 3 * StartSize, 10 << 20} {
		want := make([]byte, size)
		_, _ = (&yes{}).Read(want)
		name := filepath.Join(t.TempDir(), "file")
		short.Check(t, os.WriteFile(name, want, 0o600))
		f := short.Must(os.Open(name))(t)
		for what, from := range map[string]io.Reader{"stream": bytes.NewReader(want), "pieces": iotest.HalfReader(bytes.NewReader(want)), "file": f} {
			var done atomic.Int64
			if data, err := ReadAll("file", from, limit, &done); err != nil || !bytes.Equal(data, want) || done.Load() != size {
				t.Errorf("%s of %d bytes: %d, %d counted, %v", what, size, len(data), done.Load(), err)
			}
		}
		short.Check(t, f.Close())
	}
	sparse := filepath.Join(t.TempDir(), "sparse")
	f := short.Must(os.Create(sparse))(t)
	defer f.Close()
	short.Check(t, f.Truncate(1<<40))
	data, err = ReadAll("file", f, limit, new(atomic.Int64))
	refused("sparse file", data, err, "has more than 10 MiB; want less")
	var read atomic.Int64
	if data, err = ReadAll("file", f, none, &read); err == nil || !strings.Contains(err.Error(), "which is what the memory allows") || read.Load() > 2*chunkSize {
		t.Errorf("sparse file without a limit: %d bytes, %v, after %d bytes; want no more of it than its beginning", len(data), err, read.Load())
	}
}

// ReadRegular reads regular files up to a limit, refuses everything else, and never
// waits for another process.
func TestReadRegular(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"empty": "", "full": strings.Repeat("x", 1000), "more": strings.Repeat("x", 1001)} {
		short.Check(t, os.WriteFile(at(name), []byte(text), 0o600))
	}
	listener := short.Must(net.Listen("unix", at("socket")))(t)
	defer listener.Close()
	sparse := short.Must(os.Create(at("sparse")))(t)
	short.Check(t, errors.Join(sparse.Truncate(8<<30), sparse.Close(), syscall.Mkfifo(at("fifo"), 0o600),
		os.Mkdir(at("folder"), 0o700), os.Symlink("fifo", at("link")), os.Symlink("full", at("good link"))))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, want := range map[string]string{
		"empty": "", "full": "", "good link": "",
		"more":      "has more than 1000 bytes; want less",
		"sparse":    "has more than 1000 bytes; want less",
		"fifo":      "is a device, FIFO or socket; want a regular file",
		"link":      "is a device, FIFO or socket; want a regular file",
		"socket":    "is a device, FIFO or socket; want a regular file",
		"folder":    "is a directory; want a file",
		"/dev/zero": "is a device, FIFO or socket; want a regular file",
	} {
		path := name
		if !filepath.IsAbs(path) {
			path = at(name)
		}
		data, err := ReadRegular(path, 1000)
		var refused *RefusedError
		switch {
		case want == "" && (err != nil || string(data) != strings.Repeat("x", len(data)) || len(data) != 1000 && name != "empty"):
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		case want != "" && (!errors.As(err, &refused) || err.Error() != path+": "+want):
			t.Errorf("%s: %v; want %s", name, err, want)
		}
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%d bytes allocated for files of 1000", after.TotalAlloc-before.TotalAlloc)
	}
	if _, err := ReadRegular(at("none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	// Files of the kernel say that they have no bytes.
	if data, err := ReadRegular("/proc/self/status", 1<<20); err != nil || !strings.HasPrefix(string(data), "Name:") {
		t.Errorf("%.20q, %v", data, err)
	}
	if _, err := ReadRegular("/proc/self/status", 10); err == nil {
		t.Error("10 bytes of a file that grows while it is read: no error")
	}
	var copied strings.Builder
	if err := CopyRegular(&copied, at("full"), 1000); err != nil || copied.Len() != 1000 {
		t.Errorf("%d bytes copied, %v", copied.Len(), err)
	}
	for _, name := range []string{at("more"), at("sparse"), at("fifo"), "/proc/self/status"} {
		var refused *RefusedError
		if err := CopyRegular(io.Discard, name, 100); !errors.As(err, &refused) {
			t.Errorf("%s is copied: %v", name, err)
		}
	}
}

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
