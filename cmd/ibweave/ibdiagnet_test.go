package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/ibweave/ibweave"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
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

// The LIDs of virtual ports are to be in every table, as those of other ports.
func TestVirtualPorts(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	if err != nil {
		t.Fatal(err)
	}
	r, err := ibweave.Compile(t.Context(), f, "updn", compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f = r.Routing.Fabric
	host := f.CAPorts()[3]
	node := f.Node(f.Owner(host)).GUID
	var database bytes.Buffer
	if err := ibdiagnet.Write(&database, f, ibdiagnet.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	virtual := fmt.Sprintf("START_VPORTS\nNodeGuid,PortGUID,PortNum,VPortIndex,VPortGuid,VPortLid,VPortState\n%s,%s,%d,0,%s,%d,4\n%s,%s,%d,1,0x99,%d,4\nEND_VPORTS\n\n",
		node, f.PortGUID(host), f.Num(host), f.PortGUID(host), f.LID(host), node, f.PortGUID(host), f.Num(host), f.MaxLID()+1)
	text := strings.Replace(database.String(), "START_LINKS", virtual+"START_LINKS", 1)
	check := func(what string, status int, want string, tables *lft.Tables) {
		t.Helper()
		dir := t.TempDir()
		var lfts bytes.Buffer
		if err := dump.WriteLFTs(&lfts, f, tables, dump.WriteOptions{Lean: true}); err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string]string{"ibdiagnet2.db_csv": text, "opensm-lfts.dump": lfts.String()} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var out, errs bytes.Buffer
		if got := run([]string{"check", dir}, nil, &out, &errs); got != status || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit status %d, want %d and %q\n%s%s", what, got, status, want, &out, &errs)
		}
	}
	check("no entries", exitFindings, fmt.Sprintf("error: unicast-unreachable: LID %d", f.MaxLID()+1), r.Routing.Tables)
	// Entries as those of the port itself.
	whole, err := f.WithVirtualLIDs(map[fabric.LID]fabric.PortID{f.MaxLID() + 1: host})
	if err != nil {
		t.Fatal(err)
	}
	tables := lft.NewTables(whole.NumSwitches(), whole.MaxLID())
	for s := range fabric.NodeID(f.NumSwitches()) {
		copy(tables.Row(s), r.Routing.Tables.Row(s))
		tables.Row(s)[whole.MaxLID()] = tables.Row(s)[f.LID(host)]
	}
	check("entries", exitClean, "verdict      clean", tables)
	tables.Row(2)[whole.MaxLID()] = fabric.NoPath
	check("an entry less", exitFindings, "unicast-unreachable", tables)
}
