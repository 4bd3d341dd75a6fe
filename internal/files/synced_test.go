package files

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Files of all sizes around that of a block, written in pieces of any size, hold
// what was written, where files can be written past the page cache and where not.
func TestSyncedFile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	data := make([]byte, 3*blockSize+5000)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	for _, size := range []int{0, 1, 4095, blockSize - 1, blockSize, blockSize + 1, 2 * blockSize, 3*blockSize + 4096, len(data)} {
		for _, cached := range []bool{false, true} {
			name := filepath.Join(t.TempDir(), "file")
			f, err := os.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			s := NewSyncedFile(f)
			s.tried = cached
			for rest := data[:size]; len(rest) > 0; {
				n := min(len(rest), 1+random.IntN(blockSize+blockSize/2))
				if k, err := s.Write(rest[:n]); k != n || err != nil {
					t.Fatalf("size %d: Write: %d, %v; want %d", size, k, err, n)
				}
				rest = rest[n:]
			}
			if err := s.Close(); err != nil {
				t.Fatalf("size %d: %v", size, err)
			}
			got, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, data[:size]) {
				t.Errorf("size %d, cached %t: the file has %d bytes, not those that were written", size, cached, len(got))
			}
		}
	}
}

// A disk that is full is told by Write soon, and once only.
func TestSyncedFileFull(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSyncedFile(f)
	block := make([]byte, blockSize)
	n := 0
	for ; n < 100 && err == nil; n++ {
		_, err = s.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) || n > 2*blocks+1 {
		t.Errorf("after %d blocks: %v, want %v", n, err, syscall.ENOSPC)
	}
	if err := s.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close: %v, want %v", err, syscall.ENOSPC)
	}
}

// What a writer makes of an error is what Write returns, and no file is left.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	want := errors.New("no more")
	err := Write(filepath.Join(dir, "file"), func(w io.Writer) error {
		for range 3 {
			if _, err := w.Write(make([]byte, blockSize)); err != nil {
				return err
			}
		}
		return want
	})
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v and %v are left", left, err)
	}
}
