//go:build !opensm

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, `ibweave-opensm is no program but a plugin of OpenSM. Build it, with libopensm-dev installed:
    go build -tags opensm -buildmode=c-shared -o libibweave-opensm.so ./cmd/ibweave-opensm`)
	os.Exit(2)
}
