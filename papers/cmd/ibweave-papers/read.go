package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
)

// source is where a fabric and its forwarding tables come from: a directory that compile wrote, a
// folder or an archive of dumps, or two files.
type source struct {
	dir            string // "" for none
	topology, lfts string // files; of an archive names in loaded
	lenient        bool
	loaded         map[string][]byte // texts of an archive, by name
	compiled       *outdir.Directory // nil unless compile wrote the directory
}

// readTables reads the fabric and its tables.
func (a *app) readTables(ctx context.Context, in *source) (*fabric.Fabric, *lft.Tables, error) {
	if in.dir != "" {
		if err := a.find(in, in.dir, true); err != nil {
			return nil, nil, err
		}
	} else if info, err := os.Stat(in.topology); err == nil && info.IsDir() || in.topology != "-" && files.Archive(in.topology) {
		if err := a.find(in, in.topology, false); err != nil {
			return nil, nil, err
		}
	}
	f, err := a.readFabric(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	text, err := a.readSource(ctx, in, in.lfts)
	if err != nil {
		return nil, nil, err
	}
	stage := cli.StartStage(a.screen, "parse "+in.lfts)
	defer stage.End()
	tables, problems, err := dump.ReadLFTs(in.lfts, text, f, dump.Options{Lenient: in.lenient})
	if err != nil {
		return nil, nil, err
	}
	listProblems(a.stderr, problems, in.lenient)
	return f, tables, nil
}

// find finds the topology, and with tables set the forwarding tables, in a directory that
// compile wrote, else in a folder or an archive of dumps. A line says what it takes of these.
func (a *app) find(in *source, dir string, tables bool) error {
	d, err := outdir.Open(dir)
	if err == nil {
		in.compiled, in.topology = d, filepath.Join(dir, outdir.TopologyName)
		if tables {
			in.lfts, _ = d.Find(outdir.LFTsName)
		}
		return nil
	}
	if _, there := os.Lstat(filepath.Join(dir, outdir.ManifestName)); there == nil {
		return inputf("%w", err)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() && !files.Archive(dir) {
		return inputf("%s is a file, want a directory; files are named by -t FILE --lfts FILE", dir)
	}
	found, err := in.listDumps(dir)
	if err != nil {
		return inputf("%w", err)
	}
	kinds := []dump.Kind{dump.Topology, dump.ForwardingTables}
	if !tables {
		kinds = kinds[:1]
	}
	var parts []string
	for i, kind := range kinds {
		var names []string // the one to read first
		for _, form := range dump.Forms(kind) {
			if list := found[form]; len(names) == 0 && len(list) > 1 {
				return inputf("%s has several files of %s in one form, %s: name the files, -t FILE --lfts FILE", dir, kind, strings.Join(list, " and "))
			}
			names = append(names, found[form]...)
		}
		if len(names) == 0 {
			return inputf("%s is no directory that compile wrote: it has no %s. As a folder of dumps it lacks %s", dir, outdir.ManifestName, kind)
		}
		*[]*string{&in.topology, &in.lfts}[i] = filepath.Join(dir, names[0])
		part := string(kind) + " " + names[0]
		if len(names) > 1 {
			part += ", not " + strings.Join(names[1:], ", ")
		}
		parts = append(parts, part)
	}
	fmt.Fprintf(a.stderr, "%s: %s\n", dir, strings.Join(parts, "; "))
	return nil
}

// listDumps lists the names of dumps in a folder or an archive by their form, without those
// that are there unpacked, too. Those of an archive are read.
func (in *source) listDumps(dir string) (map[dump.Form][]string, error) {
	found := map[dump.Form][]string{}
	add := func(name string, head []byte) bool {
		form := dump.Recognize(head)
		if form == dump.Unknown || files.IsArchive(head) {
			return false
		}
		found[form] = append(found[form], name)
		return true
	}
	if files.Archive(dir) {
		in.loaded = map[string][]byte{}
		return found, files.EachMember(dir, func(m files.Member) error {
			path := filepath.Join(dir, m.Name)
			text, err := files.ReadAll(path, m.From, inputLimit, new(atomic.Int64))
			if err == nil && add(m.Name, text) {
				in.loaded[path] = text
			}
			return err
		})
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	for _, e := range entries {
		plain := strings.TrimSuffix(strings.TrimSuffix(e.Name(), outdir.ZstdSuffix), ".gz")
		if plain != e.Name() && names[plain] {
			continue
		}
		t, err := files.OpenText(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // it is no regular file, or no text
		}
		head, err := files.Head(t.From)
		_ = t.Close()
		if err == nil {
			add(e.Name(), head)
		}
	}
	return found, nil
}

// readFabric reads the topology, in any form.
func (a *app) readFabric(ctx context.Context, in *source) (*fabric.Fabric, error) {
	text, err := a.readSource(ctx, in, in.topology)
	if err != nil {
		return nil, err
	}
	f, problems, err := a.parseFabric(in, text)
	if err != nil {
		return nil, err
	}
	if a.nameMap != "" {
		data, err := a.readInput(ctx, a.nameMap)
		if err != nil {
			return nil, err
		}
		names, odd, err := topology.ParseNames(a.nameMap, data)
		if err != nil {
			return nil, err
		}
		problems = append(problems, odd...)
		f = f.WithNames(names)
	}
	if in.compiled != nil && in.topology == filepath.Join(in.compiled.Path, outdir.TopologyName) {
		if f, err = in.compiled.WithVirtualLIDs(f); err != nil {
			return nil, inputf("%w", err)
		}
	}
	for _, x := range capture.Findings(f, problems) {
		fmt.Fprintln(a.stderr, x.Message)
	}
	rest := slices.DeleteFunc(problems, func(p topology.Problem) bool { return capture.RuleOf(p.Kind) != "" })
	listProblems(a.stderr, rest, in.lenient)
	return f, nil
}

// parseFabric makes a fabric of the text of a topology.
func (a *app) parseFabric(in *source, text []byte) (*fabric.Fabric, []topology.Problem, error) {
	switch dump.Recognize(text) {
	case dump.Database:
		d, err := ibdiagnet.Read(in.topology, bytes.NewReader(text), ibdiagnet.Options{Lenient: in.lenient, Strict: a.strict})
		if err != nil {
			return nil, nil, err
		}
		return d.Fabric, d.Problems, nil
	case dump.UFMLinks:
		return nil, nil, inputf("%s: the links of UFM have no LIDs, and forwarding tables go by LIDs; want what ibnetdiscover or iblinkinfo prints", in.topology)
	case dump.SubnetList:
		if a.strict {
			if err := topology.CheckEnds(in.topology, text); err != nil {
				return nil, nil, err
			}
		}
		f, problems, err := dump.ReadSubnetList(in.topology, text, dump.Options{Lenient: in.lenient})
		if err == nil {
			listProblems(a.stderr, problems, in.lenient)
		}
		return f, nil, err
	}
	return topology.Parse(in.topology, text, topology.Options{Lenient: in.lenient, Strict: a.strict})
}

// readSource is readInput for a file of the source. A line says when it is not as compile
// wrote it.
func (a *app) readSource(ctx context.Context, in *source, name string) ([]byte, error) {
	if text, ok := in.loaded[name]; ok {
		return a.withoutMark(text), nil
	}
	raw, err := a.readRaw(ctx, name)
	if err != nil {
		return nil, err
	}
	if in.compiled != nil && in.compiled.Read(name, func() string { return fmt.Sprintf("%x", sha256.Sum256(raw)) }) {
		fmt.Fprintf(a.stderr, "%s: warning: changed since it was compiled (%s has another SHA-256)\n", name, outdir.ManifestName)
	}
	return a.decompress(name, raw)
}

// readInput reads a whole file, or standard input for "-", and undoes zstd, gzip or UTF-16.
func (a *app) readInput(ctx context.Context, name string) ([]byte, error) {
	raw, err := a.readRaw(ctx, name)
	if err != nil {
		return nil, err
	}
	return a.decompress(name, raw)
}

func (a *app) decompress(name string, raw []byte) ([]byte, error) {
	text, err := files.Decompress(name, raw, inputLimit)
	if err != nil {
		return nil, inputf("%w", err)
	}
	return a.withoutMark(text), nil
}

// withoutMark is text without a byte order mark, which --strict refuses.
func (a *app) withoutMark(text []byte) []byte {
	if a.strict {
		return text
	}
	return bytes.TrimPrefix(text, []byte("\ufeff"))
}

// readRaw reads a whole file as it is, or standard input for "-". It ends when the program
// is interrupted: the writer of a FIFO may never come.
func (a *app) readRaw(ctx context.Context, name string) ([]byte, error) {
	stage := cli.StartStage(a.screen, "read "+name)
	defer stage.End()
	type result struct {
		raw []byte
		err error
	}
	ended := make(chan result, 1)
	go func() {
		raw, err := a.readWhole(name, stage)
		ended <- result{raw, err}
	}()
	select {
	case r := <-ended:
		if r.err != nil {
			return nil, inputf("%w", r.err)
		}
		return r.raw, nil
	case <-ctx.Done():
		return nil, context.Canceled
	}
}

func (a *app) readWhole(name string, stage *cli.Stage) ([]byte, error) {
	if name == "-" {
		return files.ReadAll(name, a.stdin, inputLimit, &stage.Done)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory, want a file", name)
	}
	stage.Total.Store(info.Size())
	return files.ReadAll(name, f, inputLimit, &stage.Done)
}

// maxInput bounds what is read, in bytes of text.
const maxInput = 64 << 30

// inputLimit refuses what is no text, as devices that never end.
func inputLimit(start []byte) (int64, error) {
	if bytes.IndexByte(start, 0) >= 0 {
		return 0, errors.New("no text: it has zero bytes; want a text form, or one that zstd or gzip compressed")
	}
	return maxInput, nil
}

// listProblems prints what was odd in the input: all of it where input was left out, else the
// first ten and how many more there are.
func listProblems[P any, S interface {
	*P
	fmt.Stringer
}](w io.Writer, problems []P, all bool) {
	const few = 10
	for i := range problems {
		if i == few && len(problems) > few+1 && !all {
			fmt.Fprintf(w, "and %d more of these\n", len(problems)-i)
			return
		}
		fmt.Fprintln(w, S(&problems[i]))
	}
}
