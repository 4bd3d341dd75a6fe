package files

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/short"
)

// member is a file for an archive.
type member struct {
	name string
	data []byte
	kind byte // of tar, 0 for a regular file
}

func tarOf(t *testing.T, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: 0o600, Size: int64(len(m.data)), Typeflag: tar.TypeReg}
		if m.kind != 0 {
			h.Typeflag, h.Linkname = m.kind, "/etc/passwd"
		}
		short.Check(t, w.WriteHeader(h))
		short.Must(w.Write(m.data))(t)
	}
	short.Check(t, w.Close())
	return b.Bytes()
}

func zipOf(t *testing.T, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		if m.kind != 0 {
			continue
		}
		f := short.Must(w.Create(m.name))(t)
		short.Must(f.Write(m.data))(t)
	}
	short.Check(t, w.Close())
	return b.Bytes()
}

func compressed(t *testing.T, data []byte, open func(io.Writer) (io.WriteCloser, error)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := short.Must(open(&b))(t)
	short.Must(w.Write(data))(t)
	short.Check(t, w.Close())
	return b.Bytes()
}

func gz(t *testing.T, data []byte) []byte {
	return compressed(t, data, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.BestCompression) })
}

func zst(t *testing.T, data []byte) []byte {
	return compressed(t, data, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })
}

// Archives of all forms have the same files; paths that lead out of them, links and
// devices lead nowhere.
func TestEachMember(t *testing.T) {
	members := []member{
		{"run/", nil, tar.TypeDir}, {"run/a.txt", []byte("one"), 0}, {"../../etc/b", []byte("two"), 0}, {`/abs\c`, []byte("three"), 0},
		{"link", nil, tar.TypeSymlink}, {"hard", nil, tar.TypeLink}, {"dev", nil, tar.TypeBlock}, {"empty", nil, 0},
	}
	want := []string{"run/a.txt=one", "etc/b=two", "abs/c=three", "empty="}
	plain := tarOf(t, members...)
	for name, data := range map[string][]byte{"x.tar": plain, "x.tar.gz": gz(t, plain), "x.tar.zst": zst(t, plain), "x.zip": zipOf(t, members...)} {
		file := filepath.Join(t.TempDir(), "any name")
		short.Check(t, os.WriteFile(file, data, 0o600))
		if !Archive(file) {
			t.Errorf("%s is no archive", name)
		}
		var got []string
		err := EachMember(file, func(m Member) error {
			text, err := io.ReadAll(m.From)
			short.Equal(t, int(m.Size), len(text), name, m.Name, "bytes")
			got = append(got, m.Name+"="+string(text))
			return err
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
		// Damage is an error that names the archive, and never a panic.
		for _, length := range []int{len(data) / 2, len(data) - 1100, 30} {
			if length < 0 {
				continue
			}
			short.Check(t, os.WriteFile(file, data[:length], 0o600))
			err := EachMember(file, func(m Member) error {
				_, err := io.Copy(io.Discard, m.From)
				return err
			})
			short.Contains(t, fmt.Sprint(err), file, name, "cut to", length, "bytes")
		}
	}
	for name, data := range map[string][]byte{"empty": nil, "text": []byte("Switch 36"), "gz of text": gz(t, []byte("Switch 36"))} {
		file := filepath.Join(t.TempDir(), "x.tar.gz")
		short.Check(t, os.WriteFile(file, data, 0o600))
		if Archive(file) {
			t.Errorf("%s is an archive", name)
		}
	}
	if Archive(t.TempDir()) || Archive("/dev/zero") || Archive("not there") {
		t.Error("no regular file is an archive")
	}
}

// TestDamagedArchives flips, cuts off and adds bytes at random places of archives whose
// checksums cover them, also where the visitor reads nothing, and expects a refusal. What is
// in them is stored without compression, so that only a checksum tells a flipped byte.
func TestDamagedArchives(t *testing.T) {
	text := []byte(strings.Repeat("START_NODES\n", 400))
	plain := tarOf(t, member{"a", text, 0}, member{"b", text, 0})
	stored := func(data []byte) []byte {
		return compressed(t, data, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.NoCompression) })
	}
	noise := make([]byte, 5000) // which zstd and zip store as it is
	r := rand.New(rand.NewPCG(1, 10))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	plainNoise := tarOf(t, member{"a", noise, 0})
	file := filepath.Join(t.TempDir(), "x")
	visit := func(data []byte, all bool) error {
		short.Check(t, os.WriteFile(file, data, 0o600))
		return EachMember(file, func(m Member) (err error) {
			if all {
				_, err = io.Copy(io.Discard, m.From)
			}
			return err
		})
	}
	for _, c := range []struct {
		name     string
		data     []byte
		from, to int    // the bytes that may be flipped
		tail     string // that may not be added; "" if all may
		all      bool   // the visitor reads members to their ends
	}{
		{"tar.gz, nothing read", stored(plain), 600, len(plain), "junk", false},
		{"tar.gz", stored(plain), 600, len(plain), "junk", true},
		{"tar.gz, checksum", stored(plain), -8, 0, "junk", true},
		{"tar.zst, nothing read", zst(t, plainNoise), 1000, 4000, "junk", false},
		{"tar.zst, checksum", zst(t, plainNoise), -4, 0, "junk", true},
		{"zip, nothing read", zipOf(t, member{"a", noise, 0}), 100, 4000, "", false},
		{"gz in tar", tarOf(t, member{"a.gz", stored(text), 0}), 600, 4000, "", true},
		{"gz in zip, nothing read", zipOf(t, member{"a.gz", stored(noise), 0}), 100, 4000, "", false},
		{"zst in tar.gz, nothing read", stored(tarOf(t, member{"a.zst", zst(t, noise), 0})), 600, 4000, "junk", false},
	} {
		if c.to <= 0 {
			c.from, c.to = c.from+len(c.data), c.to+len(c.data)
		}
		if err := visit(c.data, c.all); err != nil {
			t.Errorf("%s, undamaged: %v", c.name, err)
		}
		for range 20 {
			damaged := bytes.Clone(c.data)
			at := c.from + r.IntN(c.to-c.from)
			damaged[at] ^= 1 << r.IntN(8)
			short.Contains(t, fmt.Sprint(visit(damaged, c.all)), file, c.name, "byte", at, "of", len(damaged), "is flipped")
			at = 100 + r.IntN(len(c.data)-100)
			short.Contains(t, fmt.Sprint(visit(c.data[:at], c.all)), file, c.name, "cut to", at, "bytes of", len(damaged))
		}
		if c.tail == "" {
			continue
		}
		if err := visit(append(bytes.Clone(c.data), c.tail...), c.all); err == nil {
			t.Errorf("%s with %q behind it: no error", c.name, c.tail)
		}
	}
}

// Bombs are refused after what an honest archive of their size can have.
func TestArchiveBomb(t *testing.T) {
	zeros := make([]byte, short.Of(128, 80)<<20)
	bomb := tarOf(t, member{"x", zeros, 0})
	for name, data := range map[string][]byte{"zstd": zst(t, bomb)} {
		file := filepath.Join(t.TempDir(), name)
		short.Check(t, os.WriteFile(file, data, 0o600))
		err := EachMember(file, func(m Member) error {
			_, err := io.Copy(io.Discard, m.From)
			return err
		})
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "out of proportion") {
			t.Errorf("%s of %d bytes: %v", name, len(data), err)
		}
	}
}

// Members that are compressed themselves are undone, also with a bound for all together.
func TestPackedMembers(t *testing.T) {
	text := []byte(strings.Repeat("START_NODES\n", 100))
	plain := tarOf(t, member{"a.gz", gz(t, text), 0}, member{"b.zst", zst(t, text), 0}, member{"c.txt", utf16Of(string(text), binary.LittleEndian), 0}, member{"d", nil, 0}, member{"e", []byte("x"), 0})
	file := filepath.Join(t.TempDir(), "x")
	for name, data := range map[string][]byte{"tar": plain, "tar.gz": gz(t, plain)} {
		short.Check(t, os.WriteFile(file, data, 0o600))
		var got []string
		err := EachMember(file, func(m Member) error {
			text, err := io.ReadAll(m.From)
			got = append(got, m.Name+"="+string(text))
			return err
		})
		want := []string{"a.gz=" + string(text), "b.zst=" + string(text), "c.txt=" + string(text), "d=", "e=x"}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %.80q, %v", name, got, err)
		}
	}
	bomb := zst(t, make([]byte, short.Of(128, 80)<<20))
	short.Check(t, os.WriteFile(file, tarOf(t, member{"x.zst", bomb, 0}), 0o600))
	var refused *RefusedError
	err := EachMember(file, func(m Member) error {
		_, err := io.Copy(io.Discard, m.From)
		return err
	})
	if !errors.As(err, &refused) {
		t.Errorf("bomb of %d bytes: %v", len(bomb), err)
	}
	broken := tarOf(t, member{"x.gz", gz(t, text)[:40], 0})
	short.Check(t, os.WriteFile(file, broken, 0o600))
	if err := EachMember(file, func(m Member) error { _, err := io.Copy(io.Discard, m.From); return err }); !errors.As(err, &refused) {
		t.Errorf("a member cut short: %v", err)
	}
}

// A zip with a password says so.
func TestLockedZip(t *testing.T) {
	data := zipOf(t, member{"a", []byte("one"), 0})
	at := bytes.Index(data, []byte("PK\x01\x02"))
	data[at+8] |= 1
	file := filepath.Join(t.TempDir(), "x.zip")
	short.Check(t, os.WriteFile(file, data, 0o600))
	short.Contains(t, fmt.Sprint(EachMember(file, func(Member) error { return nil })), "password")
}

// Entries of a zip that share their data are bounded together.
func TestOverlappingZip(t *testing.T) {
	b := &bounded{name: "x.zip", from: bytes.NewReader(make([]byte, 1<<20)), most: func() int64 { return 0 }}
	var err error
	for n := int64(0); err == nil && n < freely+2<<20; n += 1 << 20 {
		b.from = bytes.NewReader(make([]byte, 1<<20))
		_, err = io.Copy(io.Discard, b)
	}
	var refused *RefusedError
	if !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}

func TestOpenText(t *testing.T) {
	text := []byte(strings.Repeat("START_NODES\n", 100))
	for name, data := range map[string][]byte{"plain": text, "gzip": gz(t, text), "zstd": zst(t, text), "utf-16": utf16Of(string(text), binary.BigEndian)} {
		file := filepath.Join(t.TempDir(), name)
		short.Check(t, os.WriteFile(file, data, 0o600))
		x := short.Must(OpenText(file))(t)
		got, err := io.ReadAll(x.From)
		if _, sized := x.From.(*io.SectionReader); err != nil || !bytes.Equal(got, text) || sized != (name == "plain") {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		short.Check(t, x.Close())
	}
	if _, err := OpenText(t.TempDir()); err == nil {
		t.Error("a directory is a text")
	}
}

func FuzzEachMember(f *testing.F) {
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Add(tarOf(&testing.T{}, member{"a", []byte("\xff\xfea\x00"), 0}))
	for _, open := range []func(io.Writer) (io.WriteCloser, error){
		func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, 1) },
	} {
		var b bytes.Buffer
		w, _ := open(&b)
		tw := tar.NewWriter(w)
		_ = tw.WriteHeader(&tar.Header{Name: "a", Size: 3, Mode: 0o600, Typeflag: tar.TypeReg})
		_, _ = tw.Write([]byte("one"))
		_, _ = tw.Close(), w.Close()
		f.Add(b.Bytes())
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(dir, "x")
		short.Check(t, os.WriteFile(name, data, 0o600))
		_ = EachMember(name, func(m Member) error {
			if strings.HasPrefix(m.Name, "/") || strings.HasPrefix(m.Name, "..") {
				t.Errorf("path %q", m.Name)
			}
			_, err := io.Copy(io.Discard, m.From)
			return err
		})
	})
}

// openLarge opens a new file of 4 MiB of text, and its name.
func openLarge(t *testing.T) (string, *os.File) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "text")
	short.Check(t, os.WriteFile(name, bytes.Repeat([]byte("0123456789abcde\n"), 1<<18), 0o600))
	f := short.Must(os.Open(name))(t)
	t.Cleanup(func() { _ = f.Close() })
	return name, f
}

func noLimit([]byte) (int64, error) { return math.MaxInt64, nil }

// A file that is cut short while it is read is an error, whatever reads it by then.
func TestCutWhileMapped(t *testing.T) {
	t.Parallel()
	for what, use := range map[string]func(data []byte) error{
		"bytes":  func(data []byte) error { bytes.Count(data, []byte("\n")); return nil },
		"sum":    func(data []byte) error { sha256.Sum256(data); return nil },
		"string": func(data []byte) error { _ = strings.Clone(string(data)); return nil },
		"workers": func(data []byte) error {
			par.Each(8, func(i int) { bytes.IndexByte(data[i<<19:(i+1)<<19], 0xff) })
			return nil
		},
		"workers with errors": func(data []byte) error {
			return par.ForEach(context.Background(), 0, 8, func(i int) error { _ = string(data[i<<19 : (i+1)<<19]); return nil })
		},
		"one goroutine": func(data []byte) error {
			return par.Go(func() error { bytes.IndexByte(data, 0xff); return nil })()
		},
		"workers of workers": func(data []byte) error {
			par.Each(2, func(int) { par.Each(8, func(i int) { bytes.IndexByte(data[i<<19:(i+1)<<19], 0xff) }) })
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name, f := openLarge(t)
			err := WithMaps(func() error {
				data, err := ReadAll(name, f, noLimit, new(atomic.Int64))
				if err != nil {
					return err
				}
				if err := use(data); err != nil {
					t.Errorf("before: %v", err)
				}
				if err := os.Truncate(name, 1<<20); err != nil {
					return err
				}
				return use(data)
			})
			if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.File != name || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v; want one line of a *RefusedError of %s", err, name)
			}
		})
	}
}

// WithMaps is for faults: other errors and panics of f come back as they are.
func TestWithMapsKeepsPanics(t *testing.T) {
	t.Parallel()
	short.Equal(t, WithMaps(func() error { return os.ErrNotExist }), os.ErrNotExist)
	for _, f := range []func() error{
		func() error { panic("mine") },
		func() error { return par.Go(func() error { panic("mine") })() },
		func() error { par.Each(2, func(int) { panic("mine") }); return nil },
	} {
		err := WithMaps(f)
		if p, ok := errors.AsType[*par.Panic](err); !ok || p.Value != "mine" {
			t.Error(err)
		}
	}
}

// What is mapped is what would be read, and the same limits hold.
func TestReadMapped(t *testing.T) {
	t.Parallel()
	name, f := openLarge(t)
	want := short.Must(os.ReadFile(name))(t)
	short.Check(t, WithMaps(func() error {
		var done atomic.Int64
		data, err := ReadAll(name, f, noLimit, &done)
		if err != nil || !bytes.Equal(data, want) || done.Load() != int64(len(want)) || cap(data) != len(data) {
			t.Errorf("%d bytes, %d said, capacity %d, %v; want %d", len(data), done.Load(), cap(data), err, len(want))
		}
		if _, err := ReadAll(name, f, func([]byte) (int64, error) { return int64(len(want)) - 1, nil }, &done); !isRefused(err) {
			t.Errorf("too large: %v", err)
		}
		if _, err := ReadAll(name, f, func([]byte) (int64, error) { return 0, errors.New("no text") }, &done); !isRefused(err) {
			t.Errorf("no text: %v", err)
		}
		short.Check(t, CheckUnchanged(name))
		if _, err := f.Seek(1<<20, 0); err != nil {
			return err
		}
		short.EqualList(t, short.Must(ReadAll(name, f, noLimit, &done))(t), want[1<<20:], "from 1 MiB on bytes")
		return nil
	}))
	// zstd unpacks by goroutines of its own, which must not meet a mapping.
	z := short.Must(zstd.NewWriter(nil))(t)
	random := make([]byte, 2<<20)
	for i := range random {
		random[i] = byte(i * i >> 7 * 31)
	}
	packed := append(z.EncodeAll(random, nil), make([]byte, 2*StartSize)...)
	short.Check(t, os.WriteFile(name, packed, 0o600))
	err := WithMaps(func() error {
		if _, err := f.Seek(0, 0); err != nil {
			return err
		}
		data, err := readMapped(name, f, noLimit)
		if data != nil {
			t.Errorf("compressed: %d bytes are mapped", len(data))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*RefusedError](err)
	return ok
}

// A file that grows, or is written to, is told; one that is replaced is what it was.
func TestCheckUnchanged(t *testing.T) {
	t.Parallel()
	name, f := openLarge(t)
	short.Check(t, WithMaps(func() error {
		if _, err := ReadAll(name, f, noLimit, new(atomic.Int64)); err != nil {
			return err
		}
		if err := os.Rename(name, name+".old"); err != nil {
			return err
		}
		if err := CheckUnchanged(name); err != nil {
			t.Errorf("it has vanished: %v", err)
		}
		if err := os.WriteFile(name, []byte("new"), 0o600); err != nil {
			return err
		}
		if err := CheckUnchanged(name); err != nil {
			t.Errorf("another file has its name: %v", err)
		}
		if err := os.Rename(name+".old", name); err != nil {
			return err
		}
		more, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		if _, err := more.WriteString("more\n"); err != nil {
			return err
		}
		if err := CheckUnchanged(name); !isRefused(err) {
			t.Errorf("it has grown: %v", err)
		}
		return more.Close()
	}))
}

// Mapped files are no memory that the process takes.
func TestResidentPages(t *testing.T) {
	t.Parallel()
	for statm, want := range map[string]int64{"431650 6578 3791 2260 0 35447 0\n": 6578 - 3791, "": 0} {
		short.Equal(t, residentPages(statm), want, statm, "pages")
	}
}
