//go:build interactive

package main

import _ "embed"

// page.wasm.gz is the compiler of interactive pages, which the Makefile builds before the
// program with this tag. It is in no commit: it has 3 MB and changes with the pipeline.
//
//go:embed page.wasm.gz
var embeddedCompiler []byte

func init() { pageCompiler = embeddedCompiler }
