package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/ibweave/ibweave"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
)

// A run of ibdiagnet with 500 MB of counters is read in the memory that its fabric needs,
// compressed too.
func TestLargeRun(t *testing.T) {
	short.NeedPrograms(t)
	const most = 400 << 20 // bytes of memory; the threads of libc take 8 MiB each
	size := short.Usual(500<<20, 50<<20)
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 16, Levels: 3}))(t)
	dir := t.TempDir()
	name := filepath.Join(dir, "ibdiagnet2.db_csv")
	file := short.Must(os.Create(name))(t)
	short.Check(t, errors.Join(ibdiagnet.Write(file, f), file.Close()))
	row := strings.Repeat("0x0000000000000000,0,", 18) + "0\n" // of all counters
	rewrite(t, name, func(w io.Writer, r *bufio.Reader) error {
		data, err := io.ReadAll(r)
		before, index, _ := bytes.Cut(data, []byte("START_INDEX_TABLE"))
		_, err1 := fmt.Fprintf(w, "%sSTART_PM_INFO\n%s", before, row)
		for range size / len(row) {
			_, err2 := io.WriteString(w, row)
			err1 = cmp.Or(err1, err2)
		}
		_, err2 := fmt.Fprintf(w, "END_PM_INFO\n\n\nSTART_INDEX_TABLE%s", index)
		return errors.Join(err, err1, err2)
	})
	check := func(what string) {
		t.Helper()
		if got := runWithin(t, most, "check", dir); got.status != exitClean || !strings.Contains(string(got.stdout), "three-level fat tree") {
			t.Errorf("%s: exit status %d\n%s%s", what, got.status, got.stdout, got.stderr)
		}
	}
	info, err := os.Stat(name)
	if err != nil || info.Size() < int64(size) {
		t.Fatalf("%d bytes, %v; want %d", info.Size(), err, size)
	}
	check("as it is")
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
	check("compressed")
}

// rewrite replaces a file by what change makes of it.
func rewrite(t *testing.T, name string, change func(io.Writer, *bufio.Reader) error) {
	t.Helper()
	from := short.Must(os.Open(name))(t)
	defer from.Close()
	to := short.Must(os.Create(name + ".new"))(t)
	short.Check(t, change(to, bufio.NewReaderSize(from, 1<<20)))
	short.Check(t, to.Close())
	short.Check(t, os.Rename(name+".new", name))
}

// virtualRun writes the db_csv of a fabric with LIDs, and of two virtual ports on a host
// with these LIDs and a third that is the port itself.
func virtualRun(t *testing.T, f *fabric.Fabric, host fabric.PortID, lids ...fabric.LID) string {
	t.Helper()
	var database bytes.Buffer
	short.Check(t, ibdiagnet.Write(&database, f))
	rows := ""
	for i, l := range append([]fabric.LID{f.LID(host)}, lids...) {
		guid := f.PortGUID(host) + fabric.GUID(i)<<32
		rows += fmt.Sprintf("%s,%s,%d,%d,%s,%d,4\n", f.Node(f.Owner(host)).GUID, f.PortGUID(host), f.Num(host), i, guid, l)
	}
	return strings.Replace(database.String(), "START_LINKS",
		"START_VPORTS\nNodeGuid,PortGUID,PortNum,VPortIndex,VPortGuid,VPortLid,VPortState\n"+rows+"END_VPORTS\n\nSTART_LINKS", 1)
}

// routed is a fabric with LIDs and tables.
func routed(t *testing.T) *lft.Routing {
	t.Helper()
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))(t)
	r := short.Must(ibweave.Compile(t.Context(), f, "updn", compile.Options{}))(t)
	return r.Routing
}

// compile gives the LIDs of virtual ports the entries of their ports, and check holds the
// directory to them. A port without a LID does not get one of theirs.
func TestCompileVirtualPorts(t *testing.T) {
	f := routed(t).Fabric
	host, other, top := f.CAPorts()[3], f.CAPorts()[5], f.MaxLID()+1
	lids, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
	f.EndPorts(func(p fabric.PortID) { lids[p] = f.LID(p) })
	gap := lids[other]
	lids[other] = 0
	f = short.Must(f.WithLIDs(lids, lmc))(t)
	database := virtualRun(t, f, host, top, gap)
	t.Chdir(t.TempDir())
	short.Check(t, os.WriteFile("ibdiagnet2.db_csv", []byte(database), 0o600))
	ibweave := func(status int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(args, nil, &out, &errs); got != status {
			t.Fatalf("ibweave %q: exit status %d, want %d\n%s%s", args, got, status, &out, &errs)
		}
		return out.String() + errs.String()
	}
	for _, engine := range []string{"layered", "updn", "minhop", "fattree"} {
		ibweave(exitClean, "compile", "-t", "ibdiagnet2.db_csv", "-e", engine, "-o", engine)
		// Eight hosts with ten LIDs.
		if out := ibweave(exitClean, "check", engine); strings.Contains(out, "error") || !strings.Contains(out, "unicast      70 pairs of a CA port and a LID: 0 unreachable") {
			t.Errorf("%s: %s", engine, out)
		}
		data := short.Must(os.ReadFile(filepath.Join(engine, "opensm-lfts.dump")))(t)
		row := func(l fabric.LID) (ports []string) {
			for line := range strings.Lines(string(data)) {
				if rest, ok := strings.CutPrefix(line, fmt.Sprintf("0x%04x ", l)); ok {
					ports = append(ports, rest[:3])
					if virtual := l != f.LID(host); virtual == strings.Contains(rest, "portguid") {
						t.Errorf("%s: row of LID %d, where OpenSM would move one with a port GUID: %s", engine, l, rest)
					}
				}
			}
			return ports
		}
		want := row(f.LID(host))
		if len(want) != f.NumSwitches() || !slices.Equal(row(top), want) || !slices.Equal(row(gap), want) {
			t.Errorf("%s: entries %q, those of virtual ports %q and %q", engine, want, row(top), row(gap))
		}
	}
	// Another policy for LIDs leaves them out, and so tables lack them.
	ibweave(exitClean, "compile", "-t", "ibdiagnet2.db_csv", "-e", "updn", "-o", "dense", "--lids", "dense")
	if out := ibweave(exitClean, "check", "dense"); strings.Contains(out, fmt.Sprintf("LID %d", top)) {
		t.Error(out)
	}
	// An entry less is found in the directory too.
	name := filepath.Join("updn", "opensm-lfts.dump")
	data := short.Must(os.ReadFile(name))(t)
	row := fmt.Sprintf("0x%04x ", top)
	from := strings.Index(string(data), row)
	to := from + strings.Index(string(data[from:]), "\n") + 1
	short.Check(t, os.WriteFile(name, slices.Delete(data, from, to), 0o600))
	if out := ibweave(exitFindings, "check", "updn"); !strings.Contains(out, fmt.Sprintf("unreachable: \"leaf 0\" has no entry for \"host 1 leaf 1\"[1] (LID %d)", top)) {
		t.Error(out)
	}
	ibweave(exitFindings, "rehearse", "layered")
	ibweave(exitClean, "compile", "-t", "ibdiagnet2.db_csv", "-e", "minhop", "-o", "next", "--previous", "minhop")
	ibweave(exitClean, "check", "next")
	// A manifest that was changed.
	name = filepath.Join("layered", "manifest.json")
	data = short.Must(os.ReadFile(name))(t)
	short.Check(t, os.WriteFile(name, bytes.Replace(data, []byte(f.PortGUID(host).String()), []byte("0x0000000000000077"), 1), 0o600))
	if out := ibweave(exitInput, "check", "layered"); !strings.Contains(out, "virtual_lids: no port GUID 0x0000000000000077 in the topology") {
		t.Error(out)
	}
}

// The LIDs of virtual ports are to be in every table, as those of other ports.
func TestVirtualPorts(t *testing.T) {
	r := routed(t)
	f := r.Fabric
	host := f.CAPorts()[3]
	text := virtualRun(t, f, host, f.MaxLID()+1)
	check := func(what string, status int, want string, tables *lft.Tables) {
		t.Helper()
		dir := t.TempDir()
		var lfts bytes.Buffer
		short.Check(t, dump.WriteLFTs(&lfts, f, tables, dump.WriteOptions{Lean: true}))
		for name, data := range map[string]string{"ibdiagnet2.db_csv": text, "opensm-lfts.dump": lfts.String()} {
			short.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
		}
		var out, errs bytes.Buffer
		if got := run([]string{"check", dir}, nil, &out, &errs); got != status || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit status %d, want %d and %q\n%s%s", what, got, status, want, &out, &errs)
		}
	}
	check("no entries", exitFindings, fmt.Sprintf("error: unicast-unreachable: no switch has an entry for \"host 1 leaf 1\"[1] (LID %d): 7 pairs of hosts", f.MaxLID()+1), r.Tables)
	// Entries as those of the port itself.
	whole := short.Must(f.WithVirtualLIDs(map[fabric.LID]fabric.PortID{f.MaxLID() + 1: host}))(t)
	tables := lft.NewTables(whole.NumSwitches(), whole.MaxLID())
	for s := range fabric.NodeID(f.NumSwitches()) {
		copy(tables.Row(s), r.Tables.Row(s))
		tables.Row(s)[whole.MaxLID()] = tables.Row(s)[f.LID(host)]
	}
	check("entries", exitClean, "verdict      warnings (1 warning)", tables)
	tables.Row(2)[whole.MaxLID()] = fabric.NoPath
	check("an entry less", exitFindings, "unicast-unreachable", tables)
}

// TestFilesOfOneName reads archives in which names come several times, with other text each
// time, and the directory that unpacking leaves, in which the last of each counts.
func TestFilesOfOneName(t *testing.T) {
	var texts []string
	for _, radix := range []int{4, 6} {
		f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: 2}))(t)
		var database bytes.Buffer
		short.Check(t, ibdiagnet.Write(&database, f))
		texts = append(texts, database.String(), string(topology.Append(nil, f)))
	}
	texts = append(texts, "notes", "", texts[0][:len(texts[0])/2])
	names := []string{"run/ibdiagnet2.db_csv", "run/ibdiagnet2.ibnetdiscover", "run/notes.txt"}
	it := filepath.Join(t.TempDir(), "it")
	check := func(name string) string {
		var out, errs bytes.Buffer
		status := run([]string{"check", "-t", name, "--wiring"}, nil, &out, &errs)
		if status == exitInput {
			return "no input"
		}
		return fmt.Sprint(status, strings.ReplaceAll(out.String(), name+"/run/", name+"/"))
	}
	for seed := range uint64(short.Of(40, 10)) {
		r := rand.New(rand.NewPCG(seed, 10))
		var plain, zipped bytes.Buffer
		tars, zips := tar.NewWriter(&plain), zip.NewWriter(&zipped)
		short.Check(t, os.RemoveAll(it))
		short.Check(t, os.Mkdir(it, 0o700))
		for range 1 + r.IntN(6) {
			name, text := names[r.IntN(len(names))], texts[r.IntN(len(texts))]
			err := tars.WriteHeader(&tar.Header{Name: "./"[:2*r.IntN(2)] + name, Mode: 0o600, Size: int64(len(text)), Typeflag: tar.TypeReg})
			if err == nil {
				_, err = io.WriteString(tars, text)
			}
			var w io.Writer
			if err == nil {
				w, err = zips.Create(name)
			}
			if err == nil {
				_, err = io.WriteString(w, text)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(it, filepath.Base(name)), []byte(text), 0o600)
			}
			short.Check(t, err)
		}
		short.Check(t, tars.Close())
		short.Check(t, zips.Close())
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		short.Must(z.Write(plain.Bytes()))(t)
		short.Check(t, z.Close())
		want := check(it)
		short.Check(t, os.RemoveAll(it))
		for _, data := range [][]byte{plain.Bytes(), packed.Bytes(), zipped.Bytes()} {
			short.Check(t, os.WriteFile(it, data, 0o600))
			short.MustEqual(t, check(it), want, "seed", seed, "want, as from what is unpacked")
		}
	}
}
