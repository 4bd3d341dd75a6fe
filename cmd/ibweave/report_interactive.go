package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"path/filepath"

	"github.com/ibweave/ibweave/audit/session"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// pageCompiler is cmd/ibweave-page as WebAssembly, as gzip; nil where make did not build this
// program, see compiler_embedded.go.
var pageCompiler []byte

// wasmMagic is what a WebAssembly module begins with.
var wasmMagic = []byte("\x00asm\x01\x00\x00\x00")

// packTables packs the tables in force for the compiler in the page.
func packTables(r *reporting, x *auditResult) ([]byte, error) {
	if r.compiled == nil {
		return nil, usagef("--interactive keeps tables that compile wrote: want a directory with %s", outdir.ManifestName)
	}
	dir, m := r.compiled.Path, r.compiled.Manifest
	if x.result.Verdict == verify.VerdictErrors {
		return nil, inputf("%s: the tables have errors, which ibweave check %s lists; want tables that are safe to begin with, or a page without --interactive", dir, dir)
	}
	e, err := compile.EngineByName(m.Engine)
	if err != nil {
		return nil, inputf("%s: %v", filepath.Join(dir, outdir.ManifestName), err)
	}
	routing := &lft.Routing{Engine: m.Engine, Fabric: x.fabric.WithoutVirtualLIDs(), Tables: x.tables, SL2VL: x.options.SL2VL, Order: x.options.Order}
	data, err := session.Encode(e, routing)
	if err != nil {
		return nil, inputf("%s: --interactive: %w", dir, err)
	}
	return data, nil
}

// readCompiler gives the compiler for pages, which is kept as gzip.
func (a *app) readCompiler(name string) ([]byte, error) {
	if name == "" {
		if pageCompiler == nil {
			return nil, usagef("--interactive: this program was built without the compiler for pages, which make puts in; want that, or --compiler FILE, which docs/report.md says how to build")
		}
		return pageCompiler, nil
	}
	data, err := a.readRaw(name)
	if err != nil {
		return nil, err
	}
	head := make([]byte, len(wasmMagic))
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		_, err = io.ReadFull(z, head)
	}
	if err != nil || !bytes.Equal(head, wasmMagic) {
		return nil, inputf("%s: want cmd/ibweave-page as a WebAssembly module that gzip compressed", name)
	}
	return data, nil
}
