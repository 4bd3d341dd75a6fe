package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
)

// source is where a fabric and its forwarding tables come from: a directory that compile
// wrote, or two files.
type source struct {
	dir            string // "" for none
	topology, lfts string // files
	nameMap        string // file of --node-name-map
	strict         bool
	lenient        bool
	compiled       *outdir.Directory // nil without dir
}

// readTables reads the fabric and its tables.
func (a *app) readTables(in *source) (*fabric.Fabric, *lft.Tables, error) {
	if in.dir != "" {
		d, err := outdir.Open(in.dir)
		if err != nil {
			return nil, nil, inputf("%w; want a directory that compile wrote, or -t FILE --lfts FILE", err)
		}
		in.compiled, in.topology = d, filepath.Join(in.dir, outdir.TopologyName)
		in.lfts, _ = d.Find(outdir.LFTsName)
	}
	f, err := a.readFabric(in)
	if err != nil {
		return nil, nil, err
	}
	text, err := a.readInput(in, in.lfts)
	if err != nil {
		return nil, nil, err
	}
	tables, problems, err := dump.ReadLFTs(in.lfts, text, f, dump.Options{Lenient: in.lenient})
	if err == nil {
		listProblems(a.stderr, problems, in.lenient)
	}
	return f, tables, err
}

// readFabric reads the topology, in any form.
func (a *app) readFabric(in *source) (*fabric.Fabric, error) {
	text, err := a.readInput(in, in.topology)
	if err != nil {
		return nil, err
	}
	f, problems, err := a.parseFabric(in, text)
	if err != nil {
		return nil, err
	}
	if in.nameMap != "" {
		data, err := a.readInput(in, in.nameMap)
		if err != nil {
			return nil, err
		}
		names, odd, err := topology.ParseNames(in.nameMap, data)
		if err != nil {
			return nil, err
		}
		problems = append(problems, odd...)
		f = f.WithNames(names)
	}
	if in.compiled != nil {
		if f, err = in.compiled.WithVirtualLIDs(f); err != nil {
			return nil, inputf("%w", err)
		}
	}
	for _, x := range capture.Findings(f, problems) {
		fmt.Fprintln(a.stderr, x.Message)
	}
	rest := slices.DeleteFunc(problems, func(p fabric.Problem) bool { return capture.RuleOf(p.Kind) != "" })
	listProblems(a.stderr, rest, in.lenient)
	return f, nil
}

// parseFabric makes a fabric of the text of a topology.
func (a *app) parseFabric(in *source, text []byte) (*fabric.Fabric, []fabric.Problem, error) {
	switch dump.Recognize(text) {
	case dump.Database:
		d, err := ibdiagnet.Read(in.topology, bytes.NewReader(text), ibdiagnet.Options{Lenient: in.lenient, Strict: in.strict})
		if err != nil {
			return nil, nil, err
		}
		return d.Fabric, d.Problems, nil
	case dump.UFMLinks:
		return nil, nil, inputf("%s: the links of UFM have no LIDs, and forwarding tables go by LIDs; want what ibnetdiscover or iblinkinfo prints", in.topology)
	case dump.SubnetList:
		if in.strict {
			if err := topology.CheckEnds(in.topology, text); err != nil {
				return nil, nil, err
			}
		}
		return dump.ReadSubnetList(in.topology, text, dump.Options{Lenient: in.lenient})
	}
	return topology.Parse(in.topology, text, topology.Options{Lenient: in.lenient, Strict: in.strict})
}

// readInput reads a whole file, or standard input for "-", and undoes zstd, gzip or UTF-16. A
// line says when a file of the compiled directory is not as compile wrote it. A byte order
// mark goes, unless --strict is to refuse it.
func (a *app) readInput(in *source, name string) ([]byte, error) {
	from := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, inputf("%w", err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, inputf("%s is a directory, want a file", name)
		}
		from = f
	}
	raw, err := files.ReadAll(name, from, inputLimit, new(atomic.Int64))
	if err != nil {
		return nil, inputf("%w", err)
	}
	if in.compiled != nil && in.compiled.Read(name, func() string { return fmt.Sprintf("%x", sha256.Sum256(raw)) }) {
		fmt.Fprintf(a.stderr, "%s: warning: changed since it was compiled (%s has another SHA-256)\n", name, outdir.ManifestName)
	}
	text, err := files.Decompress(name, raw, inputLimit)
	if err != nil {
		return nil, inputf("%w", err)
	}
	if !in.strict {
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
	}
	return text, nil
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
func listProblems(w io.Writer, problems []fabric.Problem, all bool) {
	const few = 10
	for i := range problems {
		if i == few && len(problems) > few+1 && !all {
			fmt.Fprintf(w, "and %d more of these\n", len(problems)-i)
			return
		}
		fmt.Fprintln(w, problems[i].String())
	}
}
