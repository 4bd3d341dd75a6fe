//go:build interactive

package main

import _ "embed"

// The Makefile builds the module before it builds the program with this tag. It is in no commit:
// it has 3 MB and changes with every change of the pipeline.
//
//go:embed page.wasm.gz
var embeddedCompiler []byte

func init() { pageCompiler = embeddedCompiler }
