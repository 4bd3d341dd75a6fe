//go:build opensm && !ibweave_fault

package main

import "github.com/ibweave/ibweave/compile"

// engineTable returns the engines to offer to OpenSM.
func engineTable() []compile.Engine { return compile.Engines }
