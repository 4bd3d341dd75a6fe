package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/short"
)

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
