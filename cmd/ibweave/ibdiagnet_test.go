package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
)

// A run of ibdiagnet with 500 MB of counters is read in the memory that its fabric needs:
// by its index, without one, and compressed.
func TestLargeRun(t *testing.T) {
	const most = 256 << 20 // bytes of memory
	size := short.Of(500<<20, 40<<20)
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 16, Levels: 3})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "ibdiagnet2.db_csv")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := ibdiagnet.Write(file, f, ibdiagnet.WriteOptions{Counters: size / 430}); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	check := func(what string, limit time.Duration) {
		t.Helper()
		begun := time.Now()
		got := runProgram(t, nil, nil, "check", dir)
		took := time.Since(begun)
		t.Logf("%s: %v, %d MiB of memory", what, took.Round(time.Millisecond), got.memory>>20)
		if got.status != exitClean || !strings.Contains(string(got.stdout), "three-level fat tree") || got.memory > most || took > limit {
			t.Errorf("%s: exit status %d in %v, with %d MiB\n%s%s", what, got.status, took, got.memory>>20, got.stdout, got.stderr)
		}
	}
	info, err := os.Stat(name)
	if err != nil || info.Size() < int64(size) {
		t.Fatalf("%d bytes, %v; want %d", info.Size(), err, size)
	}
	check("by the index", 5*time.Second)
	// The first line gets a place where there is no index.
	rewrite(t, name, func(w io.Writer, r *bufio.Reader) error {
		if _, err := r.ReadString('\n'); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "# INDEX_TABLE offset:           7, line:           7\n"); err != nil {
			return err
		}
		_, err := io.Copy(w, r)
		return err
	})
	check("without a right index", 5*time.Second)
	rewrite(t, name, func(w io.Writer, r *bufio.Reader) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			return err
		}
		if _, err := io.Copy(z, r); err != nil {
			return err
		}
		return z.Close()
	})
	check("compressed", 10*time.Second)
}

// rewrite makes a file anew from itself.
func rewrite(t *testing.T, name string, change func(io.Writer, *bufio.Reader) error) {
	t.Helper()
	from, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.Create(name + ".new")
	if err != nil {
		t.Fatal(err)
	}
	if err := change(to, bufio.NewReaderSize(from, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}
